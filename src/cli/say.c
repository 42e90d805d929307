#include "cli/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/json.h"

#define LINE_MAX_BYTES 2048 /* with the end of a log in it */

/* A whole line, one write: two programs on one terminal do not mix. */
static void put(const char *before, const char *text)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line) - 1, "%s%s", before, text);
	size_t len = n < 0 ? 0 : (size_t)n;

	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	for (size_t i = 0; i < len; i++) /* a server's words must not drive the terminal */
		if ((unsigned char)line[i] < 0x20 && line[i] != '\n')
			line[i] = '?';
	line[len++] = '\n';
	(void)!write(STDERR_FILENO, line, len); /* there is no other way to tell it */
}

int say_failure(int so_far, const struct err *why, bool json, struct err *first)
{
	if (so_far < 0)
		say_error(why, json);
	else
		*first = *why;
	return -1;
}

void say(const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	put("berth: ", text);
}

static void put_json(const struct err *e, const char *fix)
{
	cleanup(buf_done) struct buf line = buf_make(8UL * LINE_MAX_BYTES);

	json_open(&line, '{');
	json_str(&line, "code", err_name(e->code));
	if (e->reason)
		json_str(&line, "reason", e->reason);
	json_str(&line, "message", e->msg);
	json_str(&line, "remediation", fix);
	buf_adds(&line, "}\n");
	(void)!write_all(STDERR_FILENO, line.data, line.len); /* there is no other way to tell it */
}

void say_error(const struct err *e, bool json)
{
	/* The codes' own sentences speak of requests and logs: they are a server's. */
	const char *fix = e->code == ERR_INVALID ? "See `berth help`."
						 : "`berth doctor` looks for the usual causes.";

	fix = e->fix[0] ? e->fix : fix;
	if (json)
		return put_json(e, fix);
	put("berth: ", e->msg);
	put("       ", fix);
}

int say_out(const char *data, size_t len, struct err *e)
{
	if (write_all(STDOUT_FILENO, data, len) < 0)
		return err_sys(e, errno, "write the output");
	return 0;
}
