/*
 * Errors.
 *
 * A function that can fail returns int, 0 or -1, and takes a `struct err *`
 * as its last parameter. On failure the error is filled in and every other
 * out parameter is left as it was; on success the error is left as it was.
 *
 * The caller owns the struct, on its stack: there is nothing to free and
 * setting an error cannot fail. Long messages are cut.
 *
 * A message says what was wrong and with what. What to do about it is the
 * remediation: the code's own sentence, unless err_fix() gave a better one.
 */
#pragma once

#include "lib/base.h"

enum err_code {
	ERR_NONE,
	ERR_INVALID,         /* the caller sent something wrong */
	ERR_UNAUTHENTICATED, /* no key, or one we do not know */
	ERR_DENIED,          /* the caller may not do this */
	ERR_NOT_FOUND,
	ERR_CONFLICT,    /* not in this state, or already there */
	ERR_TOO_LARGE,   /* more bytes than this takes */
	ERR_LIMIT,       /* a quota */
	ERR_BUSY,        /* try again later */
	ERR_TIMEOUT,     /* something did not answer in time */
	ERR_UNSUPPORTED, /* this host cannot do it */
	ERR_INTERNAL,    /* our fault; details go to the log only */
	ERR_COUNT
};

struct err {
	enum err_code code;
	char msg[320];
	char fix[200];      /* what to do; empty: the code's own sentence */
	const char *reason; /* a finer word than the code, for programs; NULL: none. Never freed */
	int status;         /* another HTTP status than the code's; 0: none */
	unsigned retry_s;   /* of ERR_BUSY: when it may be worth asking again; 0: soon */
	bool inner;         /* msg has another program's words: for the log, not for a user */
};

/* All of these return -1, so a failing function ends in `return err_...`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) printf_like(3, 4);
int err_sys(struct err *e, int errnum, const char *fmt, ...) printf_like(3, 4);

/* Put context in front: "start sandbox 7: open config.json: No space left". */
int err_wrap(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Say what the reader should do about it. Comes after err_set() or err_sys(). */
int err_fix(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Give it a finer word, and unless 0 another HTTP status. Comes after err_set(). */
int err_reason(struct err *e, const char *reason, int status);

/* Say when to try again. Comes after err_set(). */
int err_retry(struct err *e, unsigned seconds);

/* These are another program's words. Comes after err_set(). */
int err_inner(struct err *e);

const char *err_name(enum err_code code); /* "not_found", for JSON */
int err_http_status(enum err_code code);
int err_status(const struct err *e);              /* its own HTTP status, or the code's */
const char *err_remediation(const struct err *e); /* never NULL, may be "" */

/* The code of that name or number; ERR_INTERNAL for anything else. */
enum err_code err_code_by_name(const char *name);
enum err_code err_code_by_number(uint32_t number);
