#include "init/shell-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A backslash keeps aliases away, `builtin` functions. */
/* clang-format off */
static const struct {
	const char *call;	/* before every word of ours */
	const char *begin;
	const char *state;	/* prints itself as commands that bring it back */
} kinds[] = {
	[SHELL_SH] = {
		.call = "\\command",
		.begin = "",
		.state = "\\command export -p; \\command umask -S | { \\command read -r m; "
			 "\\command echo \"umask $m\"; }; \\command set +o",
	},
	[SHELL_BASH] = {
		.call = "\\builtin",
		.begin = "\\builtin shopt -s expand_aliases\n",
		/* Aliases and options last: they would change how the rest is read. */
		.state = "\\builtin shopt -p; \\builtin declare -p; \\builtin declare -f; "
			 "\\builtin trap -p; \\builtin umask -p; \\builtin alias -p; "
			 "\\builtin set +o",
	},
};
/* clang-format on */

/* 'it'\''s' */
static void quote(struct buf *out, const char *s)
{
	buf_adds(out, "'");
	for (; *s; s++)
		if (*s == '\'')
			buf_adds(out, "'\\''");
		else
			buf_add(out, s, 1);
	buf_adds(out, "'");
}

static void say(struct buf *out, const struct shell_text *t, const char *words)
{
	buf_addf(out, "%s echo %s %s >%s/status", kinds[t->kind].call, t->key, words, t->dir);
}

void shell_text_begin(struct buf *out, const struct shell_text *t, bool restore)
{
	buf_adds(out, kinds[t->kind].begin);
	if (restore)
		buf_addf(out, "%s . %s/state\n", kinds[t->kind].call, t->dir);
	say(out, t, "ready");
	buf_adds(out, "\n");
}

static void add_env(struct buf *out, const struct strv *env)
{
	for (size_t i = 0; i < env->len; i++) {
		const char *value = strchr(env->items[i], '=');

		buf_add(out, env->items[i], (size_t)(value - env->items[i]) + 1);
		quote(out, value + 1);
		buf_adds(out, " ");
	}
}

static void add_eval(struct buf *out, const struct shell_text *t)
{
	if (t->cwd[0]) {
		buf_addf(out, "%s cd -- ", kinds[t->kind].call);
		quote(out, t->cwd);
		buf_addf(out, " >/dev/null 2>%s/err && ", t->command_dir);
	} else if (t->last != 0) {
		/* In such a list neither `set -e` nor an ERR trap minds. */
		buf_addf(out, "(%s exit %u) && :\n", kinds[t->kind].call, t->last);
	}
	add_env(out, t->env);
	/* With `builtin` in its place bash would keep the variables from what eval runs. */
	buf_adds(out, "\\command eval ");
	quote(out, t->command);
	if (t->input)
		buf_addf(out, " <%s/in", t->command_dir);
	else
		buf_adds(out, " </dev/null");
	buf_addf(out, " >%s/out 2>%s/err\n", t->command_dir, t->command_dir);
}

void shell_text_command(struct buf *out, const struct shell_text *t)
{
	add_eval(out, t);
	say(out, t, "exit $?");
	buf_adds(out, "\n");
	if (t->cwd[0]) {
		buf_addf(out, "%s cd -- ", kinds[t->kind].call);
		quote(out, t->back);
		buf_adds(out, " >/dev/null && :\n");
	}
	buf_addf(out, "{ %s; } >%s/new 2>/dev/null && ", kinds[t->kind].state, t->dir);
	say(out, t, "kept");
	buf_adds(out, " || ");
	say(out, t, "unkept");
	buf_adds(out, "\n");
}

static enum shell_word word_of(const char *line, unsigned *code)
{
	unsigned n = 0;

	if (strcmp(line, "ready") == 0)
		return SHELL_WORD_READY;
	if (strcmp(line, "kept") == 0)
		return SHELL_WORD_KEPT;
	if (strcmp(line, "unkept") == 0)
		return SHELL_WORD_UNKEPT;
	if (strncmp(line, "exit ", 5) != 0 || !line[5])
		return SHELL_WORD_NONE;
	for (const char *c = line + 5; *c; c++) {
		if (*c < '0' || *c > '9' || n > 25)
			return SHELL_WORD_NONE;
		n = n * 10 + (unsigned)(*c - '0');
	}
	if (n > 255)
		return SHELL_WORD_NONE;
	*code = n;
	return SHELL_WORD_EXIT;
}

enum shell_word shell_text_said(struct buf *in, const char *key, unsigned *code)
{
	enum shell_word word = SHELL_WORD_NONE;
	size_t len = strlen(key);
	char *end;

	while (word == SHELL_WORD_NONE && in->len > 0 && (end = memchr(in->data, '\n', in->len))) {
		size_t line = (size_t)(end - in->data);

		*end = '\0';
		if (line > len && memcmp(in->data, key, len) == 0 && in->data[len] == ' ')
			word = word_of(in->data + len + 1, code);
		buf_drop(in, line + 1);
	}
	return word;
}
