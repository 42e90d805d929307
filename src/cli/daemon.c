#include "cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/say.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"

#define FAST_DEATH_MS  5000 /* one that lived shorter may not be hurried */
#define BACKOFF_MS     100
#define BACKOFF_MAX_MS 10000
#define KILL_WAIT_MS   5000
#define CMDLINE_MAX    (64UL * 1024)
#define SPARE_ID       65533 /* Debian reserves it and gives it to no account */

int account_find(struct account *ret, struct err *e)
{
	static const char *const names[] = { "berth", "nobody" };

	for (size_t i = 0; i < array_len(names); i++) {
		const struct passwd *pw = getpwnam(names[i]);

		if (!pw || pw->pw_uid == 0)
			continue;
		*ret = (struct account){ .uid = pw->pw_uid, .gid = pw->pw_gid };
		return str_copy(ret->name, sizeof(ret->name), names[i])
			       ? 0
			       : err_set(e, ERR_INTERNAL, "account name");
	}
	err_set(e, ERR_NOT_FOUND, "there is neither a user berth nor a user nobody");
	return err_fix(e, "Add one: useradd --system --shell /usr/sbin/nologin berth");
}

int account_find_egress(struct account *ret, struct err *e)
{
	static const char name[] = "berth-egress";
	const struct passwd *pw = getpwnam(name);

	if (pw && pw->pw_uid != 0) {
		*ret = (struct account){ .uid = pw->pw_uid, .gid = pw->pw_gid };
		(void)!str_copy(ret->name, sizeof(ret->name), name); /* it fits */
		return 0;
	}
	if (getpwuid(SPARE_ID) || getgrgid(SPARE_ID)) {
		err_set(e, ERR_NOT_FOUND, "there is no user %s, and the id %d is taken", name,
			SPARE_ID);
		return err_fix(e, "Add one: useradd --system --shell /usr/sbin/nologin %s", name);
	}
	*ret = (struct account){ .uid = SPARE_ID, .gid = SPARE_ID };
	snprintf(ret->name, sizeof(ret->name), "%d", SPARE_ID);
	return 0;
}

int account_become(const struct account *a)
{
	if (setgroups(0, NULL) < 0 || setresgid(a->gid, a->gid, a->gid) < 0 ||
	    setresuid(a->uid, a->uid, a->uid) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

struct strv daemon_environment(void)
{
	/* What tests say to daemons, and to what is loaded into them. */
	static const char *const kept[] = { "BERTH_", "ASAN_OPTIONS=", "UBSAN_OPTIONS=",
					    "TSAN_OPTIONS=", "LD_PRELOAD=", "FAKETIME",
					    "NO_FAKE_STAT=" };
	struct strv env = { 0 };

	strv_add(&env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	strv_add(&env, "LANG=C.UTF-8");
	strv_add(&env, "HOME=/");
	for (char **v = environ; v && *v; v++)
		for (size_t i = 0; i < array_len(kept); i++)
			if (str_starts(*v, kept[i]) && !str_starts(*v, "BERTH_API_KEY="))
				strv_add(&env, *v);
	return env;
}

bool daemon_runs(const struct daemon *d)
{
	return d->proc.pid > 0;
}

static void pid_file_name(const struct daemon *d, char out[64])
{
	snprintf(out, 64, "%s.pid", d->name);
}

struct birth {
	const struct daemon *d;
	int pidfile;
};

/* Between fork and execve: system calls only. */
static int prepare(void *arg)
{
	const struct birth *b = arg;
	struct rlimit files;
	char text[24];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(b->pidfile, 0) < 0 || write(b->pidfile, text, (size_t)n) != n)
		return -1;
	if (setsid() < 0) /* the terminal's Ctrl-C is for us, not for it */
		return -1;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer will do */
	}
	return b->d->account ? account_become(b->d->account) : 0;
}

int daemon_start(struct daemon *d, const struct daemon_home *home, struct err *e)
{
	cleanup(strv_done) struct strv env = daemon_environment();
	cleanup(close_fd) int pidfile = -1, log = -1;
	struct birth birth = { .d = d };
	struct proc_spec spec = { .argv = d->argv, .in = -1, .cwd = "/", .prepare = prepare };
	char name[64];

	pid_file_name(d, name);
	pidfile = openat(home->runfd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (pidfile < 0)
		return err_sys(e, errno, "create %s", name);
	snprintf(name, sizeof(name), "%s.log", d->name);
	log = openat(home->logfd, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (log < 0)
		return err_sys(e, errno, "create %s", name);
	birth.pidfile = pidfile;
	spec.arg = &birth;
	spec.env = (const char *const *)env.items;
	spec.out = spec.err = log;
	if (proc_start(&spec, &d->proc, e) < 0)
		return -1;
	d->started_ms = time_mono_ms();
	return 0;
}

/* The one divisor of all times, for tests: a supervisor that waits seconds makes them long. */
static uint64_t divided(uint64_t ms)
{
	const char *text = getenv("BERTH_TIMER_DIVISOR");
	struct err ignored;
	uint64_t divisor;

	if (!text || str_u64(text, &divisor, &ignored) < 0 || divisor == 0)
		return ms;
	return ms / divisor;
}

void daemon_ended(struct daemon *d, int status, uint64_t now_ms)
{
	uint64_t wait = 0;
	char how[64];

	if (!d->wanted)
		return;
	d->fast_deaths = now_ms - d->started_ms < divided(FAST_DEATH_MS) ? d->fast_deaths + 1 : 0;
	if (d->fast_deaths > 1)
		wait = BACKOFF_MS << (d->fast_deaths < 9 ? d->fast_deaths - 2 : 7);
	if (wait > BACKOFF_MAX_MS)
		wait = BACKOFF_MAX_MS;
	wait = divided(wait);
	d->again_ms = now_ms + wait;
	proc_status_text(status, how, sizeof(how));
	if (wait)
		say("%s %s; it starts again in %llu ms", d->name, how, (unsigned long long)wait);
	else
		say("%s %s; it starts again", d->name, how);
}

static bool names_dir(const struct buf *cmdline, const char *dir)
{
	size_t len = strlen(dir);

	for (size_t at = 0; at < cmdline->len; at += strlen(cmdline->data + at) + 1) {
		const char *arg = cmdline->data + at;
		const char *found = strstr(arg, dir); /* "--config=DIR/x" names it too */

		if (found && found[len] == '/')
			return true;
	}
	return false;
}

bool daemon_is(pid_t pid, const struct daemon *d, const struct daemon_home *home)
{
	cleanup(buf_done) struct buf cmdline = buf_make(CMDLINE_MAX);
	char link[64], exe[PATH_MAX];
	struct err ignored;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	if (str_ends(exe, " (deleted)")) /* it was built anew meanwhile */
		exe[n - (ssize_t)strlen(" (deleted)")] = '\0';
	if (strcmp(strrchr(exe, '/') + 1, strrchr(d->program, '/') + 1) != 0)
		return false;
	snprintf(link, sizeof(link), "/proc/%d/cmdline", (int)pid);
	return file_read(AT_FDCWD, link, &cmdline, &ignored) == 0 && names_dir(&cmdline, home->dir);
}

static bool wait_gone(int pidfd, unsigned ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, (int)ms) > 0;
}

int daemon_stop_stale(const struct daemon *d, const struct daemon_home *home, struct err *e)
{
	cleanup(close_fd) int pidfd = -1;
	struct err ignored;
	char name[64];
	uint64_t pid;

	pid_file_name(d, name);
	if (file_read_u64(home->runfd, name, &pid, &ignored) < 0 || pid == 0 || pid > INT_MAX)
		return 0;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	/* The descriptor first, then the look: what we looked at is what we signal. */
	if (pidfd < 0 || !daemon_is((pid_t)pid, d, home))
		return 0;
	say("%s (pid %d) is still there from before; stopping it", d->name, (int)pid);
	(void)syscall(SYS_pidfd_send_signal, pidfd, d->stop_signal, NULL, 0);
	if (wait_gone(pidfd, d->stop_ms))
		return 0;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	if (wait_gone(pidfd, KILL_WAIT_MS))
		return 0;
	return err_set(e, ERR_CONFLICT, "%s (pid %d) does not end", d->name, (int)pid);
}
