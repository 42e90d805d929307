#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/json.h"
#include "lib/time.h"

#define LINE_MAX_BYTES 4096

/* The exceptions to "no globals": which program this is, and how much it says. */
static const char *log_program = "berth";
static enum log_level log_up_to = LOG_INFO;

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void log_open(const char *program, enum log_level up_to)
{
	log_program = program;
	log_up_to = up_to;
}

static void add_member(struct buf *line, const char *name, const char *value)
{
	buf_add(line, ",", 1);
	json_add_string(line, name);
	buf_add(line, ":", 1);
	json_add_string(line, value);
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
	buf_addf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\"", now,
		 level_names[level], log_program);
	add_member(&line, "msg", msg);
	va_start(ap, msg);
	while ((name = va_arg(ap, const char *))) {
		const char *value = va_arg(ap, const char *);

		if (value)
			add_member(&line, name, value);
	}
	va_end(ap);
	if (buf_overflowed(&line)) {
		buf_done(&line);
		buf_addf(&line, "{\"time\":\"%s\",\"level\":\"%s\"", now, level_names[level]);
		add_member(&line, "msg", "a line too long to log");
	}
	buf_addf(&line, "}\n");
	/* One write a line, so that two threads' lines do not mix. */
	(void)!write(STDERR_FILENO, line.data, line.len);
}
