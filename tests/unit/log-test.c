#include "lib/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/json.h"
#include "test.h"

static char line[8192];

/* What one event writes to standard error. */
#define LOGGED(...) \
	do { \
		begin(); \
		log_event(__VA_ARGS__); \
		end(); \
	} while (0)

static int kept = -1, pipes[2];

static void begin(void)
{
	CHECK_INT(pipe(pipes), 0);
	kept = dup(STDERR_FILENO);
	CHECK(dup2(pipes[1], STDERR_FILENO) >= 0);
	close(pipes[1]);
}

static void end(void)
{
	ssize_t n;

	CHECK(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	n = read(pipes[0], line, sizeof(line) - 1);
	close(pipes[0]);
	CHECK(n >= 0);
	line[n] = '\0';
}

static void configure(const char *level, const char *format)
{
	struct err e;

	CHECK_OK(log_configure(level, format, &e), &e);
}

TEST(a_key_is_not_written)
{
	static const char key[] = "berth_n45bt89isos60lslf6f2hsec2ppa7j6saig6v2smjljak397k9kd";
	char path[128];

	snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", key);
	LOGGED(LOG_INFO, "request", "path", path, "why", "berth_n45bt89isos60lsl, berth_init",
	       NULL);
	CHECK(strstr(line, "/v1/sandboxes/berth_***") && strstr(line, "*/exec\""));
	CHECK(!strstr(line, "n45bt"));
	CHECK(strstr(line, " berth_init\""));
}

TEST(a_line_is_a_json_object)
{
	struct json *tree;
	struct err e;

	log_open("tester");
	LOGGED(LOG_INFO, "it is so", "id", "a\"b\nc", "absent", NULL, "why", "\x1b[2J", NULL);
	CHECK(line[0] == '{' && strchr(line, '\n') == line + strlen(line) - 1);
	CHECK(!strchr(line, '\x1b'));
	CHECK_OK(json_parse(line, strlen(line), &tree, &e), &e);
	CHECK_STR(json_get_str(tree, "level"), "info");
	CHECK_STR(json_get_str(tree, "program"), "tester");
	CHECK_STR(json_get_str(tree, "msg"), "it is so");
	CHECK_STR(json_get_str(tree, "id"), "a\"b\nc");
	CHECK(!json_get(tree, "absent"));
	CHECK(json_get_str(tree, "time"));
	json_free(&tree);
}

TEST(pretty_is_for_a_terminal)
{
	log_open("tester");
	configure("info", "pretty");
	LOGGED(LOG_WARN, "it is so", "id", "a\nb\x1b", NULL);
	CHECK(strstr(line, "Z warn tester: it is so id=\"a\\nb\\u001b\"\n"));
	CHECK(!strchr(line, '{'));
}

TEST(what_is_above_the_level_is_not_written)
{
	static const struct {
		const char *level;
		bool error, warn, info;
	} rows[] = {
		{ "error", true, false, false },
		{ "warn", true, true, false },
		{ "info", true, true, true },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		configure(rows[i].level, "json");
		LOGGED(LOG_ERROR, "x", NULL);
		CHECK_INT(line[0] != '\0', rows[i].error);
		LOGGED(LOG_WARN, "x", NULL);
		CHECK_INT(line[0] != '\0', rows[i].warn);
		LOGGED(LOG_INFO, "x", NULL);
		CHECK_INT(line[0] != '\0', rows[i].info);
	}
}

TEST(a_word_that_is_not_known_is_refused_and_told)
{
	struct err e;

	CHECK_ERR(log_configure("loud", "json", &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "log_level") && strstr(e.msg, "loud"));
	CHECK_ERR(log_configure("warn", "xml", &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "log_format") && strstr(e.msg, "xml"));
	CHECK_ERR(log_configure("", "json", &e), &e, ERR_INVALID);
}

TEST(a_line_too_long_says_so)
{
	static const char *const formats[] = { "json", "pretty" };
	static char value[6000];

	memset(value, 'x', sizeof(value) - 1);
	for (size_t i = 0; i < array_len(formats); i++) {
		configure("info", formats[i]);
		LOGGED(LOG_INFO, "long", "value", value, NULL);
		CHECK(strstr(line, "a line too long to log"));
		CHECK(strlen(line) < 200 && line[strlen(line) - 1] == '\n');
	}
}
