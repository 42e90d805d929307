/* berth logs: what a command said, from its beginning, and on as it goes on. */
#include "cli/command.h"
#include "cli/follow.h"

struct logs_options {
	bool follow;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_FLAG, logs_options, follow, "follow", 'f', NULL, "until it ends"),
	OPTION_ROWS_END
};
/* clang-format on */

/* A stream that breaks off is asked for again, from where it broke. */
static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct logs_options *o = given;
	cleanup(follow_done) struct follow f = { .sandbox = args->items[0],
						 .exec = args->items[1],
						 .on = o->follow };
	int rc = 0;

	for (int again = 0; again < FOLLOW_AGAIN_MAX; again++) {
		rc = follow_once(&f, c, e);
		if (f.failed || f.ended || (rc == 0 && !o->follow))
			return rc;
		if (rc < 0 && !f.heard && (again == 0 || e->code != ERR_BUSY))
			return rc; /* it was refused, or there never was a server */
		again = f.heard ? 0 : again;
		follow_pause();
	}
	return rc < 0 ? rc : err_set(e, ERR_BUSY, "the server does not go on");
}

const struct command cmd_logs = {
	.name = "logs",
	.usage = "[OPTIONS] SANDBOX EXEC",
	.help = "Print what a command said",
	.details = "Byte for byte, each stream to its own. Also after the sandbox is gone.",
	.options = options,
	.record_size = sizeof(struct logs_options),
	.min = 2,
	.max = 2,
	.run = run,
};
