/*
 * Frames on a byte stream: what berthd and berth-init say to each other about
 * one operation, and what a client that upgraded its connection says to berthd.
 *
 * A frame is a type (1 byte), a length (4 bytes, big endian) and that many
 * bytes. One connection carries one operation:
 *
 *   -> HELLO                      <- HELLO           is the other side there
 *   -> EXEC                       <- STARTED         a command runs
 *   -> STDIN* STDIN_END SIGNAL*   <- STDOUT* STDERR* meanwhile
 *                                 <- EXITED          the one terminal record
 *                                 <- ERROR           instead of any of these
 *
 *   -> EXEC, with EXEC_HOLD       <- HELD            its process waits
 *   -> GO                         <- STARTED ...     an init of before starts at once
 *
 *   -> EXEC, with EXEC_DOUBT      <- STARTED ... KILLED  a SIGKILL of others ended it: whose?
 *   -> GO, when that is looked up <- EXITED          it can be seen until then
 *
 *   -> CONTEXT                    <- STARTED RUN     code runs in a context
 *   -> STDIN* STDIN_END SIGNAL*   <- STDOUT* STDERR* NOTE* RUN EXITED
 *
 *   -> FILE DATA* DATA_END        <- ENTRY* DATA* CHANGE* TICK*
 *                                 <- DONE, or FAILED
 *
 * An EXEC without an id belongs to its connection: a peer that closes that
 * before EXITED wants the command and everything it started killed. An EXEC with an
 * id belongs to no connection:
 *
 *   -> ACK*                       <- TAKEN* SIGNALLED*  meanwhile
 *   -> ATTACH                     <- STARTED ...     on another connection: go on from there
 *
 * Its output is kept until ACK says that it is safe elsewhere, and so is EXITED. A
 * connection that closes ends nothing; a new one takes the place of the one before.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "proto/reader.h"

#define FRAME_HEAD        5
#define FRAME_PAYLOAD_MAX (256 * 1024)

/* Said in HELLO, as minor * 65536 + major. core/guest.h compares two. */
#define FRAME_MAJOR       2
#define FRAME_MINOR       1 /* since 1: KILLED */
#define FRAME_VERSION     (FRAME_MINOR << 16 | FRAME_MAJOR)

enum frame_type {
	FRAME_NONE,
	FRAME_HELLO,       /* u32 version */
	FRAME_EXEC,        /* struct exec_request */
	FRAME_STDIN,       /* bytes */
	FRAME_STDIN_END,   /* nothing */
	FRAME_SIGNAL,      /* u32 number, to the command's whole tree */
	FRAME_STARTED,     /* u32 pid inside */
	FRAME_STDOUT,      /* bytes */
	FRAME_STDERR,      /* bytes */
	FRAME_EXITED,      /* struct exec_exit */
	FRAME_ERROR,       /* u32 enum err_code, str message, str remediation; str reason, or not */
	FRAME_FILE,        /* struct file_request: begins an operation on files */
	FRAME_DATA,        /* bytes of a file or an archive */
	FRAME_DATA_END,    /* nothing; all of it was sent */
	FRAME_ENTRY,       /* struct file_entry */
	FRAME_CHANGE,      /* struct file_change */
	FRAME_DONE,        /* struct file_done */
	FRAME_FAILED,      /* struct file_failed */
	FRAME_TICK,        /* nothing; it is still at work */
	FRAME_ATTACH,      /* struct exec_attach */
	FRAME_ACK,         /* struct exec_ack */
	FRAME_TAKEN,       /* u32: so many more bytes of standard input are out of our hands */
	FRAME_RESIZE,      /* struct exec_size */
	FRAME_SHELL,       /* struct shell_request: begin a persistent shell */
	FRAME_SHELL_ASK,   /* str name: what is it like? */
	FRAME_SHELL_END,   /* str name: end it and all it started */
	FRAME_SHELL_STATE, /* struct shell_state */
	FRAME_SIGNALLED,   /* u32: so many more SIGNAL frames have been carried out */
	FRAME_PORT,        /* u32 port: tell me when a process listens there. The same back: now */
	FRAME_CONTEXT,     /* struct context_request */
	FRAME_NOTE,        /* bytes of a code context's notes: results and errors, a line each */
	FRAME_RUN,         /* struct context_run: after STARTED, and before EXITED */
	/*
	 * str id, or empty: kill what ended execs left. Back: u32, how many. With EXEC_ID_NONE
	 * nothing is killed; it comes back when nothing runs that init has lost sight of.
	 */
	FRAME_KILL_LEFT,
	FRAME_BESIDE, /* nothing; what an ended exec left runs beside the one that starts */
	FRAME_HELD,   /* u32 pid inside: it is there, and runs nothing before GO */
	FRAME_GO,     /* nothing */
	FRAME_KILLED, /* nothing; its process is kept until GO, and not for long */
	FRAME_TYPE_END
};

struct frame {
	enum frame_type type;
	struct bytes payload; /* points into the bytes it was read from */
};

/*
 * Take the first whole frame off `wire`. Returns how many bytes it used, 0 if
 * more are needed, -1 if this can never become a frame.
 */
must_check ssize_t frame_next(struct bytes wire, struct frame *ret, struct err *e);

void frame_head(uint8_t head[FRAME_HEAD], enum frame_type type, size_t len);

/* Append a whole frame. The payload must fit FRAME_PAYLOAD_MAX. */
void frame_add(struct buf *out, enum frame_type type, const void *payload, size_t len);

/* The two small payloads that need no record of their own. */
void frame_add_u32(struct buf *out, enum frame_type type, uint32_t n);
must_check int frame_u32(const struct frame *f, uint32_t *ret, struct err *e);
void frame_add_error(struct buf *out, const struct err *why);
void frame_error(const struct frame *f, struct err *ret); /* garbage becomes ERR_INTERNAL */

/*
 * The same from a sandbox's init, which a process of the guest may have made say anything:
 * codes and reasons are those that init has, any other one is ERR_INTERNAL without a word of
 * the guest's. What to do about it is never the guest's to say.
 */
void frame_guest_error(const struct frame *f, struct err *ret);
must_check bool frame_guest_says(enum err_code code); /* init does, too */
