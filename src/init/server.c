#include "init/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/hub.h"
#include "init/operation.h"
#include "proto/frame.h"

#define BACKLOG       512
#define STOP_GRACE_MS 5000
#define STOPS_MAX     100 /* of one process of ours; then it is killed, with what it started */
#define STRIKE_MS     10  /* between two blows at what a killed one has left */
#define TELL_MS       1000

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int watch_signals(struct server *s, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	s->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->sigfd < 0)
		return err_sys(e, errno, "signalfd");
	return 0;
}

static int listen_on(struct server *s, int fd, struct err *e)
{
	*s = (struct server){ .listener = fd, .sigfd = -1 };
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "set flags of descriptor %d", fd);
	return watch_signals(s, e);
}

int server_open_fd(struct server *s, int fd, struct err *e)
{
	int listening = 0;
	socklen_t len = sizeof(listening);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening)
		return err_set(e, ERR_INVALID, "descriptor %d is no listening socket", fd);
	return listen_on(s, fd, e);
}

int server_open_path(struct server *s, const char *path, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t before;
	int fd, n;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(e, ERR_INVALID, "socket path too long: %.150s", path);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	(void)unlink(path); /* left by the one before us */
	before = umask(0177);
	n = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(before);
	if (n < 0 || listen(fd, BACKLOG) < 0) {
		err_sys(e, errno, "listen on %s", path);
		close_fd(&fd);
		return -1;
	}
	return listen_on(s, fd, e); /* gVisor does not say SO_ACCEPTCONN of such a socket */
}

/* Said by pid 1 itself, so it must never wait: a few bytes into an empty socket. */
static void refuse(int conn, enum err_code code, const char *msg)
{
	cleanup(buf_done) struct buf frame = buf_make(1024);
	struct err e;

	err_set(&e, code, "%s", msg);
	frame_add_error(&frame, &e);
	(void)send(conn, frame.data, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* So that who lives on is not taken for one whose server was killed. */
static void tell_left(void *data, struct orphan o)
{
	struct hub_packet p = { .word = HUB_LEFT,
				.attach = { .offset = { (uint64_t)o.pid, o.started } } };
	struct pollfd room = { *(int *)data, POLLOUT, 0 };

	if (poll(&room, 1, TELL_MS) > 0)
		(void)!hub_send(room.fd, &p, -1); /* pid 1 is gone, and so is everybody */
}

static no_return void serve(struct server *s, int conn, int hub)
{
	int own = fcntl(hub, F_DUPFD_CLOEXEC, 3);
	sigset_t none;
	pid_t pid;

	close_fd(&s->listener);
	close_fd(&s->sigfd);
	for (size_t i = 0; i < s->count; i++)
		close_fd(&s->operations[i].hub);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	operation_run(conn, hub);
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	if (pid == 0)
		orphans_each(tell_left, &own);
	_exit(0);
}

static void take_connection(struct server *s)
{
	cleanup(close_fd) int conn = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int hub[2];
	pid_t pid;

	if (conn < 0)
		return; /* it went away again */
	if (s->count == SERVER_OPERATIONS_MAX || hub_pair(hub) < 0) {
		refuse(conn, ERR_BUSY, "the sandbox serves as many operations as it can");
		return;
	}
	pid = fork();
	if (pid == 0) {
		close_fd(&hub[0]);
		serve(s, take_fd(conn), hub[1]);
	}
	close_fd(&hub[1]);
	if (pid > 0) {
		s->operations[s->count++] = (struct server_operation){ .pid = pid, .hub = hub[0] };
		return;
	}
	close_fd(&hub[0]);
	refuse(conn, ERR_LIMIT, "the sandbox has no room for another process");
}

static bool is_exec(const char *id)
{
	return id[0] && id[0] != '.'; /* that is a shell's */
}

static void add_left(struct server *s, const struct hub_packet *p)
{
	orphans_add(&s->orphans,
		    (struct orphan){ (pid_t)p->attach.offset[0], p->attach.offset[1] });
}

/* Whom it leaves behind: it says so when it ends, and nothing more. */
static void hear_left(struct server *s, const struct server_operation *op)
{
	struct hub_packet p;
	int fd = -1;

	while (op->hub >= 0 && hub_next(op->hub) == HUB_LEFT &&
	       hub_receive(op->hub, &p, &fd) > 0) {
		close_fd(&fd);
		add_left(s, &p);
	}
}

static void forget(struct server *s, pid_t pid, int status)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->operations[i].pid == pid) {
			s->torn |= WIFSIGNALED(status) && is_exec(s->operations[i].id);
			s->slain |= WIFSIGNALED(status);
			hear_left(s, &s->operations[i]);
			close_fd(&s->operations[i].hub);
			s->operations[i] = s->operations[--s->count];
			return;
		}
}

/* It goes on; one that is stopped faster than it can goes on no more. */
static void on_stopped(struct server *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->operations[i].pid == pid)
			(void)kill(pid, s->operations[i].stops++ < STOPS_MAX ? SIGCONT : SIGKILL);
}

/* --- who runs which exec --- */

static struct server_operation *find(struct server *s, const char *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->operations[i].id, id) == 0)
			return &s->operations[i];
	return NULL;
}

static bool is_spent(const struct server *s, const char *id)
{
	for (size_t i = 0; i < SERVER_SPENT_MAX; i++)
		if (strcmp(s->spent[i], id) == 0)
			return true;
	return false;
}

static enum hub_word give(struct server *s, const struct hub_packet *p, int fd)
{
	const struct server_operation *to = find(s, p->attach.id);

	if (to && to->hub >= 0 && hub_send(to->hub, p, fd) == 0)
		return HUB_YES;
	if (to)
		return HUB_BUSY; /* or it has just ended, and will be reaped */
	if (!is_exec(p->attach.id))
		return HUB_NO; /* a shell's name may be used again */
	memcpy(s->spent[s->spent_next], p->attach.id, EXEC_ID_SIZE);
	s->spent_next = (s->spent_next + 1) % SERVER_SPENT_MAX;
	return s->torn ? HUB_TORN : HUB_NO;
}

static enum hub_word take_id(struct server *s, struct server_operation *op, const char *id)
{
	if (find(s, id) || is_spent(s, id))
		return HUB_NO;
	memcpy(op->id, id, sizeof(op->id));
	return HUB_YES;
}

static enum hub_word leave(struct server_operation *op)
{
	op->id[0] = '\0';
	return HUB_YES;
}

static void on_hub(struct server *s, struct server_operation *op)
{
	struct hub_packet p, answer = { 0 };
	int fd = -1;
	int n = hub_receive(op->hub, &p, &fd);

	if (n < 0) {
		close_fd(&op->hub);
		op->hub = -1;
		return;
	}
	if (n == 0)
		return;
	if (p.word == HUB_LEFT)
		return add_left(s, &p);
	if (p.word == HUB_GIVE && fd >= 0)
		answer.word = give(s, &p, fd);
	else if (p.word == HUB_TAKE && p.attach.id[0])
		answer.word = take_id(s, op, p.attach.id);
	else if (p.word == HUB_LEAVE)
		answer.word = leave(op);
	close_fd(&fd);
	(void)!hub_send(op->hub, &answer, -1); /* it asks one thing at a time: there is room */
}

/* True if there is nobody left at all. */
static bool reap(struct server *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
		if (WIFSTOPPED(status))
			on_stopped(s, pid);
		else
			forget(s, pid, status);
	return pid < 0 && errno == ECHILD;
}

static size_t ours(const struct server *s, pid_t ret[SERVER_OPERATIONS_MAX])
{
	for (size_t i = 0; i < s->count; i++)
		ret[i] = s->operations[i].pid;
	return s->count;
}

static void listen_to_all(void *data)
{
	struct server *s = data;

	for (size_t i = 0; i < s->count; i++)
		hear_left(s, &s->operations[i]);
}

/* What a killed one of ours has started does not outlive it for long. */
static void strike(struct server *s)
{
	pid_t pids[SERVER_OPERATIONS_MAX];
	struct tree_ours all = { pids, ours(s, pids), listen_to_all, s };

	if (s->slain && orphans_kill(&s->orphans, &all) == 0)
		s->slain = false;
}

/* As pid 1, everybody but us. Elsewhere (tests) that would be the whole machine. */
static void signal_all(int signum)
{
	struct tree t;

	if (getpid() == 1) {
		(void)kill(-1, signum);
		return;
	}
	tree_open(&t);
	tree_signal(&t, signum);
	tree_close(&t);
}

static void on_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->sigfd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		s->stop_by_ms = s->stopping ? 0 : now_ms() + STOP_GRACE_MS;
		s->stopping = true;
		signal_all(SIGTERM);
	}
}

enum slot {
	SLOT_SIGNALS,
	SLOT_LISTENER,
	SLOT_HUBS,
};

/* Returns whether to go on. */
static bool turn(struct server *s)
{
	struct pollfd fds[SLOT_HUBS + SERVER_OPERATIONS_MAX];
	size_t count = s->count;
	uint64_t now = now_ms();
	int wait = -1;

	fds[SLOT_SIGNALS] = (struct pollfd){ s->sigfd, POLLIN, 0 };
	fds[SLOT_LISTENER] = (struct pollfd){ s->stopping ? -1 : s->listener, POLLIN, 0 };
	for (size_t i = 0; i < count; i++)
		fds[SLOT_HUBS + i] = (struct pollfd){ s->operations[i].hub, POLLIN, 0 };
	if (s->slain)
		wait = STRIKE_MS;
	if (s->stopping)
		wait = s->stop_by_ms > now ? (int)(s->stop_by_ms - now) : 0;
	if (poll(fds, SLOT_HUBS + count, wait) == 0 && s->stopping)
		return false;
	for (size_t i = 0; i < count; i++) /* before anybody is forgotten */
		if (fds[SLOT_HUBS + i].revents)
			on_hub(s, &s->operations[i]);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(s);
	if (fds[SLOT_LISTENER].revents)
		take_connection(s);
	if (reap(s) && s->stopping)
		return false;
	strike(s);
	return true;
}

void server_run(struct server *s)
{
	while (turn(s))
		;
	signal_all(SIGKILL);
}
