#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/dev.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/time.h"

#define DELETE_CALL_MS  20000
#define DELETE_TOTAL_MS 60000
#define TURN_MS         50
#define STRAYS_WAIT_MS  3000
#define CHILDREN_MAX    (1024UL * 1024)

struct delete_all {
	struct dev *dev;
	unsigned stops; /* how often we had been asked when it began */
};

/* While a call waits the daemons are still looked after: the one it waits for may have died. */
static bool on_tick(void *arg, uint64_t sent)
{
	const struct delete_all *d = arg;

	(void)sent;
	dev_turn(d->dev, 0);
	return d->dev->stops > d->stops;
}

static int call(struct delete_all *d, const char *method, const char *path,
		struct client_reply *reply, struct err *e)
{
	struct context c = { .url = d->dev->url, .key = d->dev->key };
	struct fetch_request q = { .method = method, .body_fd = -1, .tick = on_tick, .arg = d };

	q.timeout_ms = DELETE_CALL_MS;
	return client_fetch(&c, path, &q, reply, e);
}

/* Ask for the deletion of every sandbox on the list; how many there were. */
static int delete_page(struct delete_all *d, size_t *left, struct err *e)
{
	cleanup(client_reply_done) struct client_reply list = { 0 };
	const struct json *boxes;

	if (call(d, "GET", "/v1/sandboxes?limit=100", &list, e) < 0)
		return -1;
	boxes = json_get(list.tree, "sandboxes");
	*left = json_len(boxes);
	for (size_t i = 0; i < *left; i++) {
		cleanup(client_reply_done) struct client_reply gone = { 0 };
		cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
		const char *id = json_get_str(json_at(boxes, i), "id");

		buf_adds(&path, "/v1/sandboxes/");
		fetch_escape(&path, id);
		if (call(d, "DELETE", buf_str(&path), &gone, e) < 0 && e->code != ERR_NOT_FOUND)
			return err_wrap(e, "delete %s", id);
	}
	return 0;
}

static bool delete_sandboxes(struct dev *dev)
{
	struct delete_all d = { .dev = dev, .stops = dev->stops };
	uint64_t deadline = time_mono_ms() + DELETE_TOTAL_MS;
	size_t left = 0, told = 0;
	struct err e = { 0 };
	int rc;

	do {
		rc = delete_page(&d, &left, &e);
		if (rc == 0 && left == 0)
			return true;
		if (rc == 0 && !told && !dev->options->quiet)
			say("deleting %zu%s sandbox%s", told = left, left == 100 ? " or more" : "",
			    left == 1 ? "" : "es");
		dev_turn(dev, TURN_MS);
	} while (dev->stops == d.stops && time_mono_ms() < deadline);
	say("not all sandboxes are deleted%s%s; the next `berth dev --dir %s` takes them up again",
	    rc < 0 ? ": " : "", rc < 0 ? e.msg : "", dev->dir);
	return false;
}

static void stop_daemon(struct dev *dev, struct daemon *d)
{
	uint64_t deadline = time_mono_ms() + d->stop_ms;
	unsigned stops = dev->stops;

	d->wanted = false;
	if (!daemon_runs(d))
		return;
	proc_kill(&d->proc, d->stop_signal);
	while (daemon_runs(d) && time_mono_ms() < deadline && dev->stops < stops + 2)
		dev_turn(dev, TURN_MS);
	if (!daemon_runs(d))
		return;
	say("%s does not stop; killing it", d->name);
	proc_kill(&d->proc, SIGKILL);
	while (daemon_runs(d))
		dev_turn(dev, TURN_MS);
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Our own descendants that no other process waits for. */
static void kill_strays(void)
{
	cleanup(buf_done) struct buf text = buf_make(CHILDREN_MAX);
	char path[64];
	struct err ignored;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (file_read(AT_FDCWD, path, &text, &ignored) < 0)
		return;
	for (const char *p = buf_str(&text); *p;) {
		pid_t pid = 0;

		for (; *p >= '0' && *p <= '9'; p++)
			pid = pid * 10 + (*p - '0');
		if (pid > 1) {
			say("pid %d was left over; killing it", (int)pid);
			(void)kill(pid, SIGKILL); /* our child and not waited for: the pid is its */
		}
		while (*p && (*p < '0' || *p > '9'))
			p++;
	}
}

static bool end_children(struct dev *dev)
{
	uint64_t deadline = time_mono_ms() + STRAYS_WAIT_MS;

	while (has_children() && time_mono_ms() < deadline)
		dev_turn(dev, TURN_MS);
	if (!has_children())
		return true;
	kill_strays();
	deadline = time_mono_ms() + STRAYS_WAIT_MS;
	while (has_children() && time_mono_ms() < deadline)
		dev_turn(dev, TURN_MS);
	return false;
}

bool dev_stop(struct dev *dev, bool with_sandboxes)
{
	static const enum dev_daemon order[] = { DEV_BERTHD, DEV_EGRESS, DEV_NODE, DEV_POSTGRES };
	bool clean = with_sandboxes ? delete_sandboxes(dev) : true;

	for (size_t i = 0; i < array_len(order); i++)
		stop_daemon(dev, &dev->daemons[order[i]]);
	/* Sandboxes that could not be deleted are children too: they stay for the next start. */
	if (!clean)
		return false;
	return end_children(dev);
}
