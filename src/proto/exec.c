#include "proto/exec.h"

#include <signal.h>
#include <string.h>

#include "proto/writer.h"

static const char *const kind_names[EXEC_KIND_COUNT] = {
	[EXEC_NONE] = "none",
	[EXEC_EXITED] = "exited",
	[EXEC_SIGNALLED] = "signalled",
	[EXEC_TIMED_OUT] = "timed_out",
	[EXEC_OOM] = "oom",
	[EXEC_KILLED] = "killed",
	[EXEC_LOST] = "lost",
};

const char *exec_kind_name(enum exec_kind kind)
{
	return kind_names[kind];
}

void exec_request_done(struct exec_request *q)
{
	strv_done(&q->argv);
	strv_done(&q->env);
}

static size_t strv_bytes(const struct strv *v)
{
	size_t sum = 0;

	for (size_t i = 0; i < v->len; i++)
		sum += strlen(v->items[i]) + 1;
	return sum;
}

int exec_id_check(const char *id, struct err *e)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._-";
	size_t len = strlen(id);

	if (len == 0 || len >= EXEC_ID_SIZE || id[0] == '.' || strspn(id, chars) != len)
		return err_set(e, ERR_INVALID,
			       "an exec's id is 1 to %d of A-Z a-z 0-9 . _ - and begins with no "
			       "dot",
			       EXEC_ID_SIZE - 1);
	return 0;
}

int exec_size_check(const struct exec_size *size, struct err *e)
{
	if (size->cols == 0 || size->rows == 0 || size->cols > EXEC_SIZE_MAX ||
	    size->rows > EXEC_SIZE_MAX)
		return err_set(e, ERR_INVALID, "a terminal has 1 to %d columns and rows",
			       EXEC_SIZE_MAX);
	return 0;
}

/* One that a shell can assign to. */
static bool is_variable(const char *var)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				      "0123456789";

	return (var[0] < '0' || var[0] > '9') && var[0] != '=' &&
	       var[strspn(var, letters)] == '=';
}

int exec_request_check(const struct exec_request *q, struct err *e)
{
	if (q->id[0] && exec_id_check(q->id, e) < 0)
		return -1;
	if (q->flags & EXEC_PTY && exec_size_check(&q->size, e) < 0)
		return -1;
	if (q->flags & EXEC_PTY && q->shell[0])
		return err_set(e, ERR_INVALID, "a command in a shell has no terminal");
	for (size_t i = 0; q->shell[0] && i < q->env.len; i++)
		if (!is_variable(q->env.items[i]))
			return err_set(e, ERR_INVALID, "not a variable's name: \"%.40s\"",
				       q->env.items[i]);
	if (q->argv.len == 0 || !q->argv.items[0][0])
		return err_set(e, ERR_INVALID, "there is no command to run");
	if (q->argv.len > EXEC_ARGS_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d arguments", EXEC_ARGS_MAX);
	if (q->env.len > EXEC_ENV_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d environment variables",
			       EXEC_ENV_MAX);
	if (strv_bytes(&q->argv) + strv_bytes(&q->env) > EXEC_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE,
			       "arguments and environment are longer than %d bytes together",
			       EXEC_BYTES_MAX);
	for (size_t i = 0; i < q->env.len; i++)
		if (q->env.items[i][0] == '=' || !strchr(q->env.items[i], '='))
			return err_set(e, ERR_INVALID, "not an environment variable: \"%.40s\"",
				       q->env.items[i]);
	return 0;
}

void exec_request_encode(struct buf *out, const struct exec_request *q)
{
	writer_str(out, q->id);
	writer_u32(out, q->flags);
	writer_u32(out, q->size.cols);
	writer_u32(out, q->size.rows);
	writer_str(out, q->shell);
	writer_u64(out, q->timeout_ms);
	writer_str(out, q->cwd);
	writer_strv(out, &q->argv);
	writer_strv(out, &q->env);
}

static uint16_t read_u16(struct reader *r)
{
	uint32_t n = reader_u32(r);

	return n > UINT16_MAX ? UINT16_MAX : (uint16_t)n; /* too much stays too much */
}

struct exec_size exec_size_read(struct reader *r)
{
	struct exec_size size = { .cols = read_u16(r) };

	size.rows = read_u16(r);
	return size;
}

void exec_size_encode(struct buf *out, const struct exec_size *size)
{
	writer_u32(out, size->cols);
	writer_u32(out, size->rows);
}

int exec_size_decode(struct bytes wire, struct exec_size *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct exec_size size = exec_size_read(&r);

	if (!reader_done(&r))
		return err_set(e, ERR_INVALID, "a size that cannot be read");
	if (exec_size_check(&size, e) < 0)
		return -1;
	*ret = size;
	return 0;
}

int exec_request_decode(struct bytes wire, struct exec_request *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);

	reader_str(&r, ret->id, sizeof(ret->id));
	ret->flags = reader_u32(&r);
	ret->size = exec_size_read(&r);
	reader_str(&r, ret->shell, sizeof(ret->shell));
	ret->timeout_ms = reader_u64(&r);
	reader_str(&r, ret->cwd, sizeof(ret->cwd));
	reader_strv(&r, EXEC_ARGS_MAX, &ret->argv);
	reader_strv(&r, EXEC_ENV_MAX, &ret->env);
	if (!reader_done(&r)) {
		exec_request_done(ret);
		return err_set(e, ERR_INVALID, "an exec request that cannot be read");
	}
	if (exec_request_check(ret, e) < 0) {
		exec_request_done(ret);
		return -1;
	}
	return 0;
}

void exec_attach_encode(struct buf *out, const struct exec_attach *a)
{
	writer_str(out, a->id);
	writer_u64(out, a->offset[0]);
	writer_u64(out, a->offset[1]);
}

int exec_attach_decode(struct bytes wire, struct exec_attach *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct exec_attach a = { 0 };

	reader_str(&r, a.id, sizeof(a.id));
	a.offset[0] = reader_u64(&r);
	a.offset[1] = reader_u64(&r);
	if (!reader_done(&r))
		return err_set(e, ERR_INVALID, "an attach that cannot be read");
	if (exec_id_check(a.id, e) < 0)
		return -1;
	*ret = a;
	return 0;
}

void exec_ack_encode(struct buf *out, const struct exec_ack *a)
{
	writer_u64(out, a->offset[0]);
	writer_u64(out, a->offset[1]);
	writer_u8(out, a->ended);
}

int exec_ack_decode(struct bytes wire, struct exec_ack *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct exec_ack a = { .offset[0] = reader_u64(&r) };
	uint8_t ended;

	a.offset[1] = reader_u64(&r);
	ended = reader_u8(&r);
	if (!reader_done(&r) || ended > 1)
		return err_set(e, ERR_INVALID, "an acknowledgement that cannot be read");
	a.ended = ended;
	*ret = a;
	return 0;
}

void exec_exit_encode(struct buf *out, const struct exec_exit *x)
{
	writer_u8(out, (uint8_t)x->kind);
	writer_u32(out, x->code);
	writer_u32(out, x->signum);
	writer_u64(out, x->wall_us);
	writer_u64(out, x->user_us);
	writer_u64(out, x->system_us);
	writer_u64(out, x->max_rss_kb);
	writer_u8(out, x->restarted);
	writer_str(out, x->cwd);
}

int exec_exit_decode(struct bytes wire, struct exec_exit *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct exec_exit x = { .kind = (enum exec_kind)reader_u8(&r) };
	uint8_t restarted;

	x.code = reader_u32(&r);
	x.signum = reader_u32(&r);
	x.wall_us = reader_u64(&r);
	x.user_us = reader_u64(&r);
	x.system_us = reader_u64(&r);
	x.max_rss_kb = reader_u64(&r);
	restarted = reader_u8(&r);
	x.restarted = restarted;
	reader_str(&r, x.cwd, sizeof(x.cwd));
	if (!reader_done(&r) || restarted > 1 || x.kind <= EXEC_NONE || x.kind >= EXEC_KIND_COUNT)
		return err_set(e, ERR_INVALID, "an exit record that cannot be read");
	*ret = x;
	return 0;
}

enum exec_kind exec_end_word(const struct exec_end *end)
{
	const struct {
		bool holds;
		enum exec_kind word;
	} rows[] = {
		{ end->signum == 0, EXEC_EXITED }, /* also if it did so just before our signal */
		{ end->killed_as != EXEC_NONE, end->killed_as },
		{ end->stopping && end->signum == SIGTERM, EXEC_KILLED },
		{ end->asked == end->signum, EXEC_KILLED },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (rows[i].holds)
			return rows[i].word;
	return EXEC_SIGNALLED;
}
