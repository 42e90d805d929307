#include "proto/shell.h"

#include <string.h>

#include "proto/writer.h"

int shell_name_check(const char *name, struct err *e)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._-";
	size_t len = strlen(name);

	if (len == 0 || len >= SHELL_NAME_SIZE || strspn(name, chars) != len ||
	    strchr("._-", name[0]))
		return err_set(e, ERR_INVALID,
			       "a shell's name is 1 to %d of A-Z a-z 0-9 . _ - and begins with a "
			       "letter or digit",
			       SHELL_NAME_SIZE - 1);
	return 0;
}

void shell_request_done(struct shell_request *q)
{
	strv_done(&q->env);
}

void shell_request_encode(struct buf *out, const struct shell_request *q)
{
	writer_str(out, q->name);
	writer_str(out, q->cwd);
	writer_strv(out, &q->env);
}

int shell_request_decode(struct bytes wire, struct shell_request *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);

	reader_str(&r, ret->name, sizeof(ret->name));
	reader_str(&r, ret->cwd, sizeof(ret->cwd));
	reader_strv(&r, EXEC_ENV_MAX, &ret->env);
	if (!reader_done(&r)) {
		shell_request_done(ret);
		return err_set(e, ERR_INVALID, "a request for a shell that cannot be read");
	}
	if (shell_name_check(ret->name, e) < 0) {
		shell_request_done(ret);
		return -1;
	}
	return 0;
}

void shell_state_encode(struct buf *out, const struct shell_state *s)
{
	writer_u32(out, s->pid);
	writer_u32(out, s->waiting);
	writer_u32(out, s->restarts);
	writer_str(out, s->cwd);
}

int shell_state_decode(struct bytes wire, struct shell_state *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct shell_state s = { .pid = reader_u32(&r) };

	s.waiting = reader_u32(&r);
	s.restarts = reader_u32(&r);
	reader_str(&r, s.cwd, sizeof(s.cwd));
	if (!reader_done(&r))
		return err_set(e, ERR_INVALID, "a shell's state that cannot be read");
	*ret = s;
	return 0;
}
