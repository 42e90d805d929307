#include "image/pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/confine.h"
#include "image/pull-error.h"
#include "lib/file.h"
#include "lib/proc.h"
#include "lib/str.h"
#include "proto/node.h"

#define POLL_MS     200
#define MESSAGE_MAX (16UL << 10)
#define POLICY      "/etc/containers/policy.json"

static int prepare(void *arg)
{
	return confine_nobody(*(int *)arg);
}

static bool is_reference(const char *s)
{
	size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			       "._-/:@[]");

	return len > 0 && len < NODE_REFERENCE_MAX && !s[len] && s[0] != '-' && s[0] != '/';
}

static int start(const struct pull *p, int home, int messages, struct proc *ret, struct err *e)
{
	static const char *const env[] = { "HOME=" CONFINE_HOME, "TMPDIR=" CONFINE_HOME,
					   "XDG_RUNTIME_DIR=" CONFINE_HOME,
					   "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	cleanup(strv_done) struct strv argv = { 0 };
	struct proc_spec spec = {
		.in = -1,
		.out = -1,
		.err = messages,
		.env = env,
		.prepare = prepare,
		.arg = &home,
	};

	strv_add(&argv, "skopeo");
	if (access(POLICY, R_OK) < 0)
		strv_add(&argv, "--insecure-policy"); /* it wants to be told that there is none */
	strv_add(&argv, "copy");
	strv_add(&argv, "--quiet");
	if (p->insecure)
		strv_add(&argv, "--src-tls-verify=false");
	strv_addf(&argv, "docker://%s", p->reference);
	strv_add(&argv, "oci:" CONFINE_HOME "/image:image");
	spec.argv = (const char *const *)argv.items;
	return proc_start(&spec, ret, e);
}

/* What has arrived so far, for people to look at. */
static uint64_t bytes_in(int home, const char *name)
{
	int fd = openat(home, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(dir_closep) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	uint64_t sum = 0;
	struct stat st;

	while (d && (ent = readdir(d)))
		if (fstatat(fd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	return sum;
}

static uint64_t arrived(int home)
{
	return bytes_in(home, "image") + bytes_in(home, "image/blobs/sha256") + bytes_in(home, ".");
}

static int watch(const struct pull *p, int home, struct proc *child, int messages, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(MESSAGE_MAX);
	char chunk[1024];
	int status;

	while (!proc_ended(child, &status)) {
		struct pollfd fds[2] = { { messages, POLLIN, 0 }, { child->pidfd, POLLIN, 0 } };
		uint64_t done = arrived(home);
		ssize_t n;

		if (done > p->max_bytes) {
			proc_kill(child, SIGKILL);
			(void)proc_wait(child);
			return err_set(e, ERR_TOO_LARGE, "the image is larger than %llu bytes",
				       (unsigned long long)p->max_bytes);
		}
		report_progress(p->report, "pulling", done, 0);
		(void)poll(fds, 2, POLL_MS);
		while ((n = read(messages, chunk, sizeof(chunk))) > 0)
			buf_add(&text, chunk, (size_t)n);
	}
	for (ssize_t n; (n = read(messages, chunk, sizeof(chunk))) > 0;)
		buf_add(&text, chunk, (size_t)n);
	return status == 0 ? 0 : pull_error(p->reference, &text, e);
}

int pull_run(const struct pull *p, int imagefd, struct err *e)
{
	cleanup(close_fd) int home = -1, messages = -1, child_end = -1;
	struct proc child;
	int pipe[2];

	if (!is_reference(p->reference))
		return err_set(e, ERR_INVALID, "not an image reference: \"%.100s\"", p->reference);
	if (dir_open(imagefd, PULL_DIR, 0700, &home, e) < 0)
		return -1;
	if (fchown(home, CONFINE_UID, CONFINE_UID) < 0)
		return err_sys(e, errno, "give %s away", PULL_DIR);
	if (pipe2(pipe, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	messages = pipe[0];
	child_end = pipe[1];
	(void)fcntl(messages, F_SETFL, O_NONBLOCK);
	if (start(p, home, child_end, &child, e) < 0)
		return -1;
	close_fd(&child_end);
	child_end = -1;
	return watch(p, home, &child, messages, e);
}
