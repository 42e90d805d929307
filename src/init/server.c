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

#include "init/cgroup.h"
#include "init/operation.h"
#include "init/pid1-broker.h"
#include "proto/frame.h"

#define BACKLOG       512
#define STOP_GRACE_MS 5000
#define STOPS_MAX     100 /* of one process of ours; then it is killed, with what it started */
#define KILL_AGAIN_MS 10  /* until what a killed one has left is looked for again */

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
	*s = (struct server){ .listener = fd, .sigfd = -1, .spare_queue = -1 };
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

int server_hide_cgroups(struct server *s, struct err *e)
{
	if (!getcwd(s->cwd, sizeof(s->cwd)))
		return err_sys(e, errno, "find the working directory");
	return cgroups_hide(&s->has_cgroups, e);
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

/* In a new process: what is pid 1's alone. */
static void drop_server(struct server *s)
{
	sigset_t none;

	if (s->has_cgroups && chdir(s->cwd) < 0 && chdir("/") < 0)
		_exit(1); /* it must not stay in pid 1's */
	close_fd(&s->listener);
	close_fd(&s->sigfd);
	close_fd(&s->spare_queue);
	for (size_t i = 0; i < s->count; i++)
		close_fd(&s->operations[i].broker);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* As fork(): 0 in the new process, with its end of the broker. */
static pid_t fork_operation(struct server *s, struct broker *broker)
{
	int pair[2];
	pid_t pid;

	if (broker_pair(pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close_fd(&pair[0]);
		drop_server(s);
		*broker = (struct broker){ .fd = pair[1] };
		return 0;
	}
	close_fd(&pair[1]);
	if (pid > 0)
		s->operations[s->count++] = (struct server_operation){
			.pid = pid, .serial = ++s->serial, .broker = pair[0]
		};
	else
		close_fd(&pair[0]);
	return pid;
}

static void take_connection(struct server *s)
{
	cleanup(close_fd) int conn = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct broker broker;
	pid_t pid;

	if (conn < 0)
		return; /* it went away again */
	pid = s->count == SERVER_OPERATIONS_MAX ? -1 : fork_operation(s, &broker);
	if (pid == 0) {
		operation_run(take_fd(conn), &broker);
		_exit(0);
	}
	if (pid < 0 && broker_send(s->spare_queue, &(struct broker_packet){ .word = BROKER_GIVE },
				   conn) < 0)
		refuse(conn, ERR_LIMIT, "the sandbox has no room for another process");
}

static void start_spare(struct server *s)
{
	struct broker broker;
	int queue[2];
	pid_t pid;

	if (s->spare > 0 || s->stopping || s->count == SERVER_OPERATIONS_MAX ||
	    broker_pair(queue) < 0)
		return;
	pid = fork_operation(s, &broker);
	if (pid == 0) {
		close_fd(&queue[0]);
		operation_run_spare(queue[1], &broker);
		_exit(0);
	}
	close_fd(&queue[1]);
	if (pid < 0) {
		close_fd(&queue[0]); /* there is no room; the next turn tries again */
		return;
	}
	s->spare = pid;
	s->spare_queue = queue[0];
}

static bool is_context(const char *id)
{
	return id[0] == ':';
}

static bool is_exec(const char *id)
{
	return id[0] && id[0] != '.' && !is_context(id); /* a dot is a shell's */
}

/* One that ends by itself has waited until nothing of it was left; with cgroups we look, too. */
static void note_end(struct server *s, const struct server_operation *op, bool killed)
{
	s->orphans |= killed || op->tree > 0;
	if (!killed)
		return;
	if (op->id[0] || op->tree > 0 || op->unaccounted)
		unseen_add(&s->unseen, op->id);
	s->unaccounted |= op->unaccounted;
	s->torn |= is_exec(op->id) && !op->ended;
}

static void forget(struct server *s, pid_t pid, int status)
{
	if (pid == s->spare) {
		s->spare = 0;
		close_fd(&s->spare_queue);
		s->spare_queue = -1;
	}
	for (size_t i = 0; i < s->count; i++)
		if (s->operations[i].pid == pid) {
			note_end(s, &s->operations[i], WIFSIGNALED(status));
			close_fd(&s->operations[i].broker);
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

/* --- which process runs which exec --- */

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

/* As pid 1's own word: the number of the question is for the one that asked. */
static int pass_on(const struct server_operation *to, const struct broker_packet *p, int fd)
{
	struct broker_packet copy = { .word = p->word, .attach = p->attach };

	return to->broker < 0 ? -1 : broker_send(to->broker, &copy, fd);
}

/* What killed ones started is found, and its end seen. */
static bool finds_orphans(const struct server *s)
{
	return !s->no_subreaper || (s->has_cgroups && !s->unaccounted);
}

/* The answer about one that was killed, before what it started was seen to be gone. */
static enum broker_word not_seen(const struct server *s)
{
	return finds_orphans(s) ? BROKER_BUSY : BROKER_UNSEEN;
}

static enum broker_word give(struct server *s, const struct broker_packet *p, int fd)
{
	const struct server_operation *to = find(s, p->attach.id);

	if (to && pass_on(to, p, fd) == 0)
		return BROKER_YES;
	if (to)
		return BROKER_BUSY; /* or it has just ended, and will be reaped */
	if (!is_exec(p->attach.id) && unseen_has(&s->unseen, p->attach.id))
		return not_seen(s);
	if (!is_exec(p->attach.id))
		return BROKER_NO; /* a shell's or context's name may be used again */
	memcpy(s->spent[s->spent_next], p->attach.id, EXEC_ID_SIZE);
	s->spent_next = (s->spent_next + 1) % SERVER_SPENT_MAX;
	return s->torn ? BROKER_TORN : BROKER_NO;
}

/* Asks those that are there, even if of another one there is no telling any more. */
static struct broker_packet kill_left(struct server *s, const struct broker_packet *p, int fd)
{
	struct broker_packet answer = { .word = BROKER_YES };
	bool any = !p->attach.id[0] || strcmp(p->attach.id, EXEC_ID_NONE) == 0;

	if (unseen_has(&s->unseen, any ? "" : p->attach.id) || (any && s->orphans))
		answer.word = not_seen(s);
	for (size_t i = 0; i < s->count; i++) {
		const struct server_operation *op = &s->operations[i];
		bool meant = p->attach.id[0] ? strcmp(op->id, p->attach.id) == 0 : is_exec(op->id);

		if (!meant)
			continue;
		if (pass_on(op, p, fd) == 0)
			answer.asked++;
		else
			answer.word = BROKER_BUSY;
	}
	return answer;
}

static enum broker_word take_id(struct server *s, struct server_operation *op, const char *id)
{
	bool beside = s->orphans || unseen_has(&s->unseen, "");

	if (find(s, id) || is_spent(s, id))
		return BROKER_NO;
	if (!is_exec(id) && unseen_has(&s->unseen, id) && finds_orphans(s))
		return BROKER_BUSY; /* the one before is not gone yet */
	memcpy(op->id, id, sizeof(op->id));
	for (size_t i = 0; i < s->count; i++)
		beside |= s->operations[i].ended;
	return beside && is_exec(id) ? BROKER_BESIDE : BROKER_YES;
}

static enum broker_word leave(struct server_operation *op)
{
	op->id[0] = '\0';
	return BROKER_YES;
}

static bool in_use(const void *data, struct cgroup_id id)
{
	const struct server *s = data;

	for (size_t i = 0; i < s->count; i++)
		if (s->operations[i].serial == id.owner)
			return s->operations[i].tree == id.number;
	return false;
}

static bool has_owner(const void *data, struct cgroup_id id)
{
	const struct server *s = data;

	for (size_t i = 0; i < s->count; i++)
		if (s->operations[i].serial == id.owner)
			return true;
	return false;
}

static int make_tree(const struct server *s, struct server_operation *op)
{
	cgroups_sweep(in_use, s);
	if (cgroup_make((struct cgroup_id){ op->serial, ++op->tree }) == 0)
		return 0;
	op->unaccounted = true;
	return -1;
}

static struct broker_packet on_tree(const struct server *s, struct server_operation *op,
				    const struct broker_packet *p)
{
	struct broker_packet answer = { .word = BROKER_NO };
	struct cgroup_id own = { op->serial, op->tree }, all = { op->serial, 0 };
	int n = -1;

	if (!s->has_cgroups) {
		op->unaccounted = true;
		return answer;
	}
	if (p->word == BROKER_TREE)
		n = make_tree(s, op);
	else if (p->word == BROKER_TREE_ADD && op->tree)
		n = cgroup_add(own, (pid_t)p->value);
	else if (p->word == BROKER_TREE_SIGNAL && op->tree)
		n = cgroup_signal(own, (int)p->value, &answer.value);
	else if (p->word == BROKER_WIDE_SIGNAL)
		n = cgroup_signal(all, (int)p->value, &answer.value);
	if (n == 0)
		answer.word = BROKER_YES;
	return answer;
}

static bool is_about_tree(enum broker_word word)
{
	return word >= BROKER_TREE && word <= BROKER_WIDE_SIGNAL;
}

static void on_broker(struct server *s, struct server_operation *op)
{
	struct broker_packet p, answer = { 0 };
	int fd = -1;
	int n = broker_receive(op->broker, &p, &fd);

	if (n < 0) {
		close_fd(&op->broker);
		op->broker = -1;
		return;
	}
	if (n == 0)
		return;
	if (p.word == BROKER_ENDED) {
		op->ended = true;
		return;
	}
	if (p.word == BROKER_SUBREAPER || p.word == BROKER_NO_SUBREAPER) {
		s->no_subreaper = p.word == BROKER_NO_SUBREAPER;
		s->kernel_known = true;
		return;
	}
	if (p.word == BROKER_GIVE && fd >= 0)
		answer.word = give(s, &p, fd);
	else if (p.word == BROKER_KILL_LEFT && fd >= 0)
		answer = kill_left(s, &p, fd);
	else if (is_about_tree(p.word))
		answer = on_tree(s, op, &p);
	else if (p.word == BROKER_TAKE && p.attach.id[0])
		answer.word = take_id(s, op, p.attach.id);
	else if (p.word == BROKER_LEAVE)
		answer.word = leave(op);
	close_fd(&fd);
	answer.number = p.number;
	(void)!broker_send(op->broker, &answer,
			   -1); /* it asks one thing at a time: there is room */
}

/* True if there is no process left at all. */
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

/* How many were seen; more than none: again. */
static size_t kill_found(const struct server *s)
{
	pid_t pids[SERVER_OPERATIONS_MAX];
	struct tree_ours all = { pids, ours(s, pids) };

	if (!s->no_subreaper)
		return orphans_kill(&all);
	return s->has_cgroups ? cgroups_kill(has_owner, s) : 0;
}

/* What a killed one of ours has started does not outlive it for long. */
static void kill_orphans(struct server *s)
{
	if (!s->orphans || !s->kernel_known || kill_found(s) > 0)
		return;
	s->orphans = false;
	if (finds_orphans(s))
		unseen_clear(&s->unseen);
}

/* As pid 1, every process but us. Elsewhere (tests) that would be the whole machine. */
static void signal_all(int signum)
{
	struct tree t;

	if (getpid() == 1) {
		(void)kill(-1, signum);
		return;
	}
	tree_open(&t, NULL);
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
	SLOT_BROKERS,
};

/* Returns whether to go on. */
static bool turn(struct server *s)
{
	struct pollfd fds[SLOT_BROKERS + SERVER_OPERATIONS_MAX];
	size_t count = s->count;
	uint64_t now = now_ms();
	int wait = -1;

	fds[SLOT_SIGNALS] = (struct pollfd){ s->sigfd, POLLIN, 0 };
	fds[SLOT_LISTENER] = (struct pollfd){ s->stopping ? -1 : s->listener, POLLIN, 0 };
	for (size_t i = 0; i < count; i++)
		fds[SLOT_BROKERS + i] = (struct pollfd){ s->operations[i].broker, POLLIN, 0 };
	if (s->orphans)
		wait = KILL_AGAIN_MS;
	if (s->stopping)
		wait = s->stop_by_ms > now ? (int)(s->stop_by_ms - now) : 0;
	if (poll(fds, SLOT_BROKERS + count, wait) == 0 && s->stopping)
		return false;
	for (size_t i = 0; i < count; i++) /* before any is forgotten */
		if (fds[SLOT_BROKERS + i].revents)
			on_broker(s, &s->operations[i]);
	if (fds[SLOT_SIGNALS].revents)
		on_signals(s);
	if (fds[SLOT_LISTENER].revents)
		take_connection(s);
	if (reap(s) && s->stopping)
		return false;
	kill_orphans(s);
	start_spare(s);
	return true;
}

void server_run(struct server *s)
{
	while (turn(s))
		;
	signal_all(SIGKILL);
}
