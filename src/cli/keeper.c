#include "cli/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"

#define RENEWALS 5 /* within one lifetime: a server may be away for most of it */

static no_return void renew_forever(const struct context *c, const char *sandbox,
				    uint64_t lifetime_ms)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX), body = buf_make(256);

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, sandbox);
	json_open(&body, '{');
	json_int(&body, "lifetime_ms", (int64_t)lifetime_ms);
	buf_adds(&body, "}");
	for (;;) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		struct err ignored; /* a server that is away is asked again */

		(void)poll(NULL, 0, (int)(lifetime_ms / RENEWALS));
		(void)!client_call(c, "PATCH", buf_str(&path), buf_str(&body), &reply, &ignored);
	}
}

int keeper_begin(struct keeper *k, const struct context *c, const char *sandbox,
		 uint64_t lifetime_ms, struct err *e)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it was killed before we had asked */
			_exit(0);
		/* Our caller's pipes are at their end when it is, and not when we are. */
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			(void)close(fd);
		renew_forever(c, sandbox, lifetime_ms);
	}
	k->pid = pid;
	return 0;
}

void keeper_end(struct keeper *k)
{
	if (!k->pid)
		return;
	(void)kill(k->pid, SIGKILL);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->pid = 0;
}
