#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/json.h"
#include "lib/time.h"

#define LINE_MAX_BYTES 4096
#define KEY_LEAST      16 /* letters and digits behind "berth_": one that was cut is hidden, too */

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
};

/* The exceptions to "no globals": which program this is, how much it says, and how. */
static const char *log_program = "berth";
static enum log_level log_up_to = LOG_INFO;

/* ---- formats ---- */

struct format {
	const char *name;
	void (*begin)(struct buf *line, const char *now, const char *level, const char *msg);
	void (*add)(struct buf *line, const char *name, const char *value);
	const char *end;
};

static void add_json(struct buf *line, const char *name, const char *value)
{
	buf_add(line, ",", 1);
	json_add_string(line, name);
	buf_add(line, ":", 1);
	json_add_string(line, value);
}

static void add_pretty(struct buf *line, const char *name, const char *value)
{
	buf_addf(line, " %s=", name);
	json_add_string(line, value);
}

static void begin_json(struct buf *line, const char *now, const char *level, const char *msg)
{
	buf_addf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\"", now, level,
		 log_program);
	add_json(line, "msg", msg);
}

/* A message is ours, and plain text. */
static void begin_pretty(struct buf *line, const char *now, const char *level, const char *msg)
{
	buf_addf(line, "%s %s %s: %s", now, level, log_program, msg);
}

static const struct format formats[] = {
	{ "json", begin_json, add_json, "}\n" },
	{ "pretty", begin_pretty, add_pretty, "\n" },
};

static const struct format *log_format = &formats[0];

/* ---- settings ---- */

void log_open(const char *program)
{
	log_program = program;
}

static int set_level(const char *word, struct err *e)
{
	for (int i = 0; i < LOG_LEVEL_COUNT; i++)
		if (strcmp(level_names[i], word) == 0) {
			log_up_to = (enum log_level)i;
			return 0;
		}
	err_set(e, ERR_INVALID, "the setting log_level cannot be \"%s\"", word);
	return err_fix(e, "Write log_level = error, warn or info.");
}

static int set_format(const char *word, struct err *e)
{
	for (size_t i = 0; i < array_len(formats); i++)
		if (strcmp(formats[i].name, word) == 0) {
			log_format = &formats[i];
			return 0;
		}
	err_set(e, ERR_INVALID, "the setting log_format cannot be \"%s\"", word);
	return err_fix(e, "Write log_format = json or pretty.");
}

int log_configure(const char *level, const char *format, struct err *e)
{
	return set_level(level, e) < 0 ? -1 : set_format(format, e);
}

/* A key of Berth's that a client put where it does not belong: a path, a name. */
static void hide_keys(char *line)
{
	static const char prefix[] = "berth_", known[] = "0123456789abcdefghijklmnopqrstuvwxyz";

	for (char *at = line; (at = strstr(at, prefix));) {
		size_t len = strspn(at += sizeof(prefix) - 1, known);

		if (len >= KEY_LEAST)
			memset(at, '*', len);
		at += len;
	}
}

void log_event(enum log_level level, const char *msg, ...)
{
	cleanup(buf_done) struct buf line = buf_make(LINE_MAX_BYTES);
	char now[TIME_TEXT_SIZE];
	const char *name;
	va_list ap;

	if (level > log_up_to)
		return;
	time_text(time_wall_ms(), now);
	log_format->begin(&line, now, level_names[level], msg);
	va_start(ap, msg);
	while ((name = va_arg(ap, const char *))) {
		const char *value = va_arg(ap, const char *);

		if (value)
			log_format->add(&line, name, value);
	}
	va_end(ap);
	if (buf_overflowed(&line)) {
		buf_done(&line);
		log_format->begin(&line, now, level_names[level], "a line too long to log");
	}
	buf_adds(&line, log_format->end);
	hide_keys(line.data);
	/* One write a line, so that two threads' lines do not mix. */
	(void)!write(STDERR_FILENO, line.data, line.len);
}
