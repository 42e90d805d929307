#include "lib/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *name;
	int http_status;
	const char *remediation;
} codes[ERR_COUNT] = {
	[ERR_NONE] = { "none", 200,
		"" },
	[ERR_INVALID] = { "invalid", 400,
		"Correct the request and send it again." },
	[ERR_UNAUTHENTICATED] = { "unauthenticated", 401,
		"Send 'Authorization: Bearer KEY' with a key from 'berth key create'." },
	[ERR_DENIED] = { "denied", 403,
		"Use a key with a role that allows this." },
	[ERR_NOT_FOUND] = { "not_found", 404,
		"Check the name; 'berth ps' lists what there is." },
	[ERR_CONFLICT] = { "conflict", 409,
		"Look at its present state, then decide again." },
	[ERR_TOO_LARGE] = { "too_large", 413,
		"Send less in one request." },
	[ERR_LIMIT] = { "limit", 429,
		"Free something you hold, or ask for a higher limit." },
	[ERR_BUSY] = { "busy", 503,
		"Try again in a few seconds." },
	[ERR_TIMEOUT] = { "timeout", 504,
		"Try again; if it stays, 'berth doctor' on the host says more." },
	[ERR_UNSUPPORTED] = { "unsupported", 501,
		"'berth doctor' says what this host lacks." },
	[ERR_INTERNAL] = { "internal", 500,
		"The host's log has the details under this request_id." },
};
/* clang-format on */

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	e->fix[0] = '\0';
	e->reason = NULL;
	e->status = 0;
	e->retry_s = 0;
	e->inner = false;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INTERNAL, "%s: %s", what, strerror(errnum));
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	struct err inner = *e;
	char where[120];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(where, sizeof(where), fmt, ap);
	va_end(ap);
	snprintf(e->msg, sizeof(e->msg), "%s: %s", where, inner.msg);
	return -1;
}

int err_inner(struct err *e)
{
	e->inner = true;
	return -1;
}

/* It was too long for its place: back to the end of a word, and a sign of it. */
static void end_at_word(char *text)
{
	static const char sign[] = " ...";
	char *end = text + strlen(text) - strlen(sign);

	while (end > text && *end != ' ')
		end--;
	if (end > text)
		memcpy(end, sign, sizeof(sign));
}

int err_fix(struct err *e, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(e->fix, sizeof(e->fix), fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(e->fix))
		end_at_word(e->fix);
	return -1;
}

int err_reason(struct err *e, const char *reason, int status)
{
	e->reason = reason;
	e->status = status;
	return -1;
}

int err_retry(struct err *e, unsigned seconds)
{
	e->retry_s = seconds;
	return -1;
}

const char *err_name(enum err_code code)
{
	return codes[code].name;
}

int err_http_status(enum err_code code)
{
	return codes[code].http_status;
}

int err_status(const struct err *e)
{
	return e->status ? e->status : err_http_status(e->code);
}

const char *err_remediation(const struct err *e)
{
	return e->fix[0] ? e->fix : codes[e->code].remediation;
}

enum err_code err_code_by_name(const char *name)
{
	for (int code = ERR_NONE + 1; code < ERR_COUNT; code++)
		if (strcmp(codes[code].name, name) == 0)
			return (enum err_code)code;
	return ERR_INTERNAL;
}

enum err_code err_code_by_number(uint32_t number)
{
	return number > ERR_NONE && number < ERR_COUNT ? (enum err_code)number : ERR_INTERNAL;
}
