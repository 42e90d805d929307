#include "proto/context.h"

#include <string.h>

#include "proto/writer.h"

static const char *const language_names[CONTEXT_LANGUAGE_COUNT] = {
	[CONTEXT_UNSET] = "",
	[CONTEXT_PYTHON] = "python",
	[CONTEXT_JAVASCRIPT] = "javascript",
	[CONTEXT_TYPESCRIPT] = "typescript",
};

const char *context_language_name(enum context_language language)
{
	return language_names[language];
}

enum context_language context_language_by_name(const char *name)
{
	static const struct {
		const char *name;
		enum context_language language;
	} also[] = {
		{ "python3", CONTEXT_PYTHON },
		{ "js", CONTEXT_JAVASCRIPT },
		{ "node", CONTEXT_JAVASCRIPT },
		{ "ts", CONTEXT_TYPESCRIPT },
	};

	for (int i = CONTEXT_UNSET + 1; i < CONTEXT_LANGUAGE_COUNT; i++)
		if (strcmp(name, language_names[i]) == 0)
			return (enum context_language)i;
	for (size_t i = 0; i < array_len(also); i++)
		if (strcmp(name, also[i].name) == 0)
			return also[i].language;
	return CONTEXT_UNSET;
}

void context_request_done(struct context_request *q)
{
	strv_done(&q->env);
}

void context_request_encode(struct buf *out, const struct context_request *q)
{
	writer_u8(out, (uint8_t)q->verb);
	writer_u8(out, (uint8_t)q->language);
	writer_str(out, q->id);
	writer_u64(out, q->timeout_ms);
	writer_str(out, q->cwd);
	writer_strv(out, &q->env);
}

/* It becomes part of a name inside. */
static bool is_id(const char *s)
{
	size_t len = strlen(s);

	return len > 0 &&
	       len == strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

int context_request_decode(struct bytes wire, struct context_request *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);

	ret->verb = (enum context_verb)reader_u8(&r);
	ret->language = (enum context_language)reader_u8(&r);
	reader_str(&r, ret->id, sizeof(ret->id));
	ret->timeout_ms = reader_u64(&r);
	reader_str(&r, ret->cwd, sizeof(ret->cwd));
	reader_strv(&r, EXEC_ENV_MAX, &ret->env);
	if (reader_done(&r) && ret->verb > CONTEXT_NONE && ret->verb < CONTEXT_VERB_COUNT &&
	    ret->language > CONTEXT_UNSET && ret->language < CONTEXT_LANGUAGE_COUNT &&
	    is_id(ret->id))
		return 0;
	context_request_done(ret);
	return err_set(e, ERR_INVALID, "a context request that cannot be read");
}

void context_run_encode(struct buf *out, const struct context_run *run)
{
	writer_u32(out, run->number);
	writer_u8(out, run->fresh);
	writer_u8(out, run->done);
}

int context_run_decode(struct bytes wire, struct context_run *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct context_run run = { .number = reader_u32(&r) };
	uint8_t fresh = reader_u8(&r), done = reader_u8(&r);

	if (!reader_done(&r) || fresh > 1 || done > 1)
		return err_set(e, ERR_INVALID, "a record of a run that cannot be read");
	run.fresh = fresh;
	run.done = done;
	*ret = run;
	return 0;
}
