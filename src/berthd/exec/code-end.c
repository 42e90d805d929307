#include "berthd/exec/code-end.h"

#include <stdio.h>

#include "lib/json.h"

static const char *const kind_names[CODE_KIND_COUNT] = {
	[CODE_NONE] = "none",
	[CODE_OK] = "ok",
	[CODE_ERROR] = "error",
	[CODE_TIMED_OUT] = "timed_out",
	[CODE_KILLED] = "killed",
	[CODE_LOST] = "lost",
};

const char *code_kind_name(enum code_kind kind)
{
	return kind_names[kind];
}

static void say(struct code_run *r, const char *name, const char *message)
{
	if (r->error.len > 0)
		return; /* the code's own word is better */
	json_open(&r->error, '{');
	json_str(&r->error, "name", name);
	json_str(&r->error, "message", message);
	json_key(&r->error, "traceback");
	buf_adds(&r->error, "[]}");
}

static void explain_end(struct code_run *r)
{
	char text[160];

	switch (r->exit.kind) {
	case EXEC_EXITED:
		r->kind = CODE_ERROR;
		snprintf(text, sizeof(text), "the interpreter exited with code %u", r->exit.code);
		return say(r, "Exited", text);
	case EXEC_SIGNALLED:
		r->kind = CODE_KILLED;
		snprintf(text, sizeof(text), "the interpreter was killed by signal %u",
			 r->exit.signum);
		return say(r, "Killed", text);
	case EXEC_TIMED_OUT:
		r->kind = CODE_TIMED_OUT;
		return say(r, "TimedOut", "the run did not heed the interrupt and was killed");
	case EXEC_OOM:
		r->kind = CODE_KILLED;
		return say(r, "OutOfMemory", "the sandbox's memory limit was reached");
	case EXEC_KILLED:
		r->kind = CODE_KILLED;
		return say(r, "Killed", "the context was ended");
	default:
		r->kind = CODE_LOST;
		return say(r, "Lost", "the end of the run was not seen");
	}
}

void code_judge(struct code_run *r)
{
	if (!r->run.done || r->exit.kind == EXEC_LOST || r->exit.kind == EXEC_OOM) {
		r->run.done = false;
		return explain_end(r);
	}
	if (r->exit.kind == EXEC_TIMED_OUT) {
		r->kind = CODE_TIMED_OUT;
		return say(r, "TimedOut", "the run took too long and was interrupted");
	}
	if (r->exit.kind != EXEC_EXITED)
		r->kind = CODE_KILLED;
	else
		r->kind = r->error.len > 0 ? CODE_ERROR : CODE_OK;
}

void code_end_json(struct buf *out, const struct code_run *r)
{
	bool exited = !r->run.done && r->exit.kind == EXEC_EXITED;

	json_str(out, "kind", code_kind_name(r->kind));
	json_str(out, "context", r->context.id);
	json_str(out, "language", r->context.language);
	json_int(out, "run", r->run.number);
	json_bool(out, "restarted", r->restarted);
	json_bool(out, "context_lost", !r->run.done);
	json_key(out, "exit_code");
	if (exited)
		buf_addf(out, "%u", r->exit.code);
	else
		buf_adds(out, "null"); /* a missing exit code is never 0 */
	json_int(out, "signal", r->exit.signum);
	json_int(out, "stdout_bytes", (int64_t)r->offset[0]);
	json_int(out, "stderr_bytes", (int64_t)r->offset[1]);
	json_int(out, "results_dropped", (int64_t)r->results_dropped);
	json_int(out, "wall_ms", (int64_t)(r->exit.wall_us / 1000));
}
