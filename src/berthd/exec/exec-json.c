/* The members of an exec's record that all answers share. */
#include <string.h>

#include "berthd/exec/exec.h"
#include "berthd/exec/usage.h"
#include "lib/json.h"

static const char *const reboots[JOURNAL_REBOOT_COUNT] = {
	[JOURNAL_REBOOT_UNKNOWN] = "null",
	[JOURNAL_SAME_BOOT] = "false",
	[JOURNAL_REBOOTED] = "true",
};

void exec_exit_json(struct buf *out, struct journal *j, const struct exec_exit *exit)
{
	struct journal_view v;

	journal_look(j, &v);
	json_str(out, "id", j->head.ask.id);
	json_key(out, "kind");
	if (exit->kind == EXEC_NONE)
		buf_adds(out, "null"); /* it runs */
	else
		json_add_string(out, exec_kind_name(exit->kind));
	json_key(out, "exit_code");
	if (exit->kind == EXEC_EXITED)
		buf_addf(out, "%u", exit->code);
	else
		buf_adds(out, "null"); /* a missing exit code is never 0 */
	json_int(out, "signal", exit->signum);
	if (exit->kind == EXEC_LOST) {
		json_key(out, "host_rebooted");
		buf_adds(out, reboots[v.slot.reboot]);
	}
	json_int(out, "stdout_bytes", (int64_t)v.slot.offset[0]);
	json_int(out, "stderr_bytes", (int64_t)v.slot.offset[1]);
	json_int(out, "wall_ms", (int64_t)(exit->wall_us / 1000));
	json_int(out, "user_ms", (int64_t)(exit->user_us / 1000));
	json_int(out, "system_ms", (int64_t)(exit->system_us / 1000));
	json_int(out, "max_rss_kb", (int64_t)exit->max_rss_kb);
	exec_usage_json(out, &v.slot.use);
	if (j->head.ask.shell[0] && exit->kind != EXEC_NONE) {
		json_bytes(out, "cwd", exit->cwd, strlen(exit->cwd));
		json_bool(out, "restarted", exit->restarted);
	}
}
