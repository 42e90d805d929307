/*
 * One command and how it ended, as they travel in frames.
 *
 * The request names what to run; the exit is the one terminal record. A
 * missing exit code is never 0: only EXEC_EXITED carries one.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"
#include "proto/reader.h"

#define EXEC_ID_SIZE    64  /* with its NUL */
#define EXEC_ID_NONE    "?" /* in KILL_LEFT: no exec's; see FRAME_KILL_LEFT */
#define EXEC_ARGS_MAX   4096
#define EXEC_ENV_MAX    1024
#define EXEC_CWD_SIZE   4096
#define EXEC_BYTES_MAX  (128 * 1024) /* all strings of one request together */
#define EXEC_SIGNUM_MAX 64

enum exec_flags {
	EXEC_STDIN = 1,  /* STDIN frames will come; otherwise /dev/null */
	EXEC_KEEP = 2,   /* for berthd: goes on when the client is gone */
	EXEC_PTY = 4,    /* on a terminal: one stream out, RESIZE frames may come */
	EXEC_WHOLE = 8,  /* it has ended when everything it started has: what is left is killed */
	EXEC_HOLD = 16,  /* HELD is said before it runs anything, and GO waited for */
	EXEC_DOUBT = 32, /* KILLED is said if a SIGKILL of others ends it, and GO waited for */
};
/* Those a client may set. The others are berthd's own: a journal that stays, a cgroup. */
#define EXEC_CLIENT_FLAGS (EXEC_STDIN | EXEC_KEEP | EXEC_PTY)

/* Of a terminal. */
struct exec_size {
	uint16_t cols, rows;
};
#define EXEC_SIZE_MAX 1000 /* of either */

struct exec_request {
	char id[EXEC_ID_SIZE]; /* empty: it belongs to its connection */
	uint32_t flags;
	struct exec_size size;    /* EXEC_PTY */
	char shell[EXEC_ID_SIZE]; /* run argv[0] as a line of this persistent shell; empty: none */
	uint64_t timeout_ms;      /* 0: none */
	char cwd[EXEC_CWD_SIZE];
	struct strv argv; /* one item and no '/': found on the guest's PATH */
	struct strv env;  /* "name=value", over the image's own */
};

void exec_request_done(struct exec_request *q);
void exec_request_encode(struct buf *out, const struct exec_request *q);

/* Fails on anything a command could not be started from. `ret` must be zeroed. */
must_check int exec_request_decode(struct bytes wire, struct exec_request *ret, struct err *e);
must_check int exec_request_check(const struct exec_request *q, struct err *e);

must_check int exec_size_check(const struct exec_size *size, struct err *e);
struct exec_size exec_size_read(struct reader *r);
void exec_size_encode(struct buf *out, const struct exec_size *size);
must_check int exec_size_decode(struct bytes wire, struct exec_size *ret, struct err *e);

/* 1 to 63 of A-Z a-z 0-9 . _ -, not beginning with a dot: it is a file's name, too. */
must_check int exec_id_check(const char *id, struct err *e);

/* Standard output and error, in bytes from their beginning. */
struct exec_attach {
	char id[EXEC_ID_SIZE];
	uint64_t offset[2]; /* where to go on */
};

void exec_attach_encode(struct buf *out, const struct exec_attach *a);
must_check int exec_attach_decode(struct bytes wire, struct exec_attach *ret, struct err *e);

struct exec_ack {
	uint64_t offset[2]; /* what is before these need not be kept */
	bool ended;         /* the exit record is safe: forget the exec. Still running: kill it */
};

void exec_ack_encode(struct buf *out, const struct exec_ack *a);
must_check int exec_ack_decode(struct bytes wire, struct exec_ack *ret, struct err *e);

enum exec_kind {
	EXEC_NONE,
	EXEC_EXITED,    /* code */
	EXEC_SIGNALLED, /* signum */
	EXEC_TIMED_OUT, /* the tree was killed at its deadline */
	EXEC_OOM,       /* the kernel ended it for memory; only the host can know */
	EXEC_KILLED,    /* on request */
	EXEC_LOST,      /* its end was not seen; only the host says so */
	EXEC_KIND_COUNT
};

struct exec_exit {
	enum exec_kind kind;
	uint32_t code;   /* EXEC_EXITED */
	uint32_t signum; /* EXEC_SIGNALLED, and what ended a killed one */
	uint64_t wall_us;
	uint64_t user_us;
	uint64_t system_us;
	uint64_t max_rss_kb;

	/* Of a command in a persistent shell. */
	bool restarted; /* the shell is another process than before */
	char cwd[EXEC_CWD_SIZE];
};

#define EXEC_EXIT_MAX (EXEC_CWD_SIZE + 128) /* bytes, encoded */

void exec_exit_encode(struct buf *out, const struct exec_exit *x);
must_check int exec_exit_decode(struct bytes wire, struct exec_exit *ret, struct err *e);
const char *exec_kind_name(enum exec_kind kind); /* "timed_out", for JSON */

/* What the process that waited for a command knows of its end. */
struct exec_end {
	int signum;               /* that ended it; 0: it exited by itself */
	enum exec_kind killed_as; /* everything it started was killed, for this; EXEC_NONE: no */
	int asked;                /* the last signal that a caller asked for; 0: none */
	bool stopping;            /* the sandbox ends: pid 1 has sent SIGTERM to everything */
};

/* The one word for it. EXEC_OOM and EXEC_LOST are not a guest's to say. */
enum exec_kind exec_end_word(const struct exec_end *end);
