/*
 * What is typed into a persistent shell's standard input. Nothing of a command
 * is ever typed as it is: it goes as one quoted word to `eval`, with streams of
 * its own, so whatever it holds (a quote without its partner, a stray brace, a
 * here-document) is that command's error and no other's. No variable, function
 * or descriptor of ours is left in the user's shell.
 *
 * How a command ended is written to a FIFO together with a word only we know.
 */
#pragma once

#include "lib/buf.h"
#include "lib/strv.h"

#define SHELL_TEXT_MAX (1024UL * 1024)
#define SHELL_DIR_SIZE 64
#define SHELL_KEY_SIZE 33

enum shell_kind {
	SHELL_SH, /* whatever /bin/sh is: keeps exported variables and options when it restarts */
	SHELL_BASH,
};

struct shell_text {
	enum shell_kind kind;
	const char *dir;         /* of the shell: status, state, new */
	const char *key;         /* the word */
	const char *command_dir; /* of the command: in, out, err */
	const char *command;
	const struct strv *env; /* for this command alone */
	const char *cwd;        /* likewise; "": where the shell is */
	const char *back;       /* where it is now; needed with `cwd` */
	bool input;             /* the command has a standard input; otherwise /dev/null */
	unsigned last;          /* exit code of the command before, for $? */
};

/* Once after the start; `restore`: what the one before had, from DIR/state. Says "ready". */
void shell_text_begin(struct buf *out, const struct shell_text *t, bool restore);

/*
 * One command. Says "exit N" when it ended, and "kept" or "unkept" when the shell
 * has written its state to DIR/new and is ready for another.
 */
void shell_text_command(struct buf *out, const struct shell_text *t);

enum shell_word {
	SHELL_WORD_NONE,
	SHELL_WORD_READY,
	SHELL_WORD_EXIT, /* the code in *code */
	SHELL_WORD_KEPT,
	SHELL_WORD_UNKEPT,
};

/* Take the first line off what came from the FIFO; lines without our word are dropped. */
enum shell_word shell_text_said(struct buf *in, const char *key, unsigned *code);
