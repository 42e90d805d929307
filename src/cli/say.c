#include "cli/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/plain.h"
#include "lib/errno-map.h"
#include "lib/file.h"
#include "lib/json.h"

#define LINE_MAX_BYTES 2048 /* with the end of a log in it */
#define OUT_MAX        (256UL << 20)

/* A whole line, one write: two programs on one terminal do not mix. */
static void put(const char *before, const char *text)
{
	cleanup(buf_done) struct buf line = buf_make(8UL * LINE_MAX_BYTES);

	buf_adds(&line, before);
	plain_add_lines(&line, text, strnlen(text, LINE_MAX_BYTES));
	buf_adds(&line, "\n");
	(void)!write(STDERR_FILENO, line.data, line.len); /* there is no other way to tell it */
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

void say_beside(const char *data, size_t len)
{
	cleanup(buf_done) struct buf plain = buf_make(OUT_MAX);

	plain_add_lines(&plain, data, len);
	(void)!write_all(STDERR_FILENO, plain.data, plain.len); /* there is no other way */
}

static void put_json(const struct err *e, const char *fix)
{
	cleanup(buf_done) struct buf line = buf_make(8UL * LINE_MAX_BYTES);
	/* The SDKs have that code of their own for it, too. */
	bool away = e->reason && strcmp(e->reason, REASON_CONNECTION) == 0;

	json_open(&line, '{');
	json_str(&line, "code", away ? e->reason : err_name(e->code));
	if (e->reason && !away)
		json_str(&line, "reason", e->reason);
	json_str(&line, "message", e->msg);
	json_str(&line, "remediation", fix);
	buf_adds(&line, "}\n");
	say_beside(buf_str(&line), line.len);
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
	cleanup(buf_done) struct buf plain = buf_make(OUT_MAX);

	plain_add_lines(&plain, data, len);
	return say_bytes(buf_str(&plain), plain.len, e);
}

int say_bytes(const char *data, size_t len, struct err *e)
{
	if (write_all(STDOUT_FILENO, data, len) < 0)
		return err_sys(e, errno, "write the output");
	return 0;
}
