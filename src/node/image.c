#include "node/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/id.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/strv.h"
#include "node/node.h"
#include "node/task.h"
#include "node/verbs.h"
#include "proto/image.h"

#define JOB_LIMIT_MS (30 * 60 * 1000)
#define JOBS_MAX     8
#define PARTIAL      ".partial"
#define HEX_CHARS    64
#define FACTS_MAX    1024
#define TIDY_TRIES   5

/* One berth-image at work, and the calls that wait for it. */
#define KEEP_MAX     (2ULL << 30) /* or a tenth of the pool, if that is less */

struct image_job {
	struct node *node;
	struct task *task;
	struct call *waiters;
	bool failed;                     /* it is being removed: no call may join it */
	char source[NODE_REFERENCE_MAX]; /* "": an import */
	char partial[48];                /* its directory below images/ */
	int dir;                         /* that directory */
	int results;                     /* the pipe berth-image writes to */
	bool short_of_space;             /* the pool sets its limit, not the setting */
	uv_poll_t poll;
	struct buf in;
	struct node_image done; /* what it said at its end; digest empty: nothing yet */
	struct err why;         /* or what went wrong */
	struct image_job *next;
};

/* The directory name of a digest; refused unless it is "sha256:" and 64 hex digits. */
static int dir_name(const char *digest, char out[HEX_CHARS + 1], struct err *e)
{
	const char *hex = digest + strlen("sha256:");

	if (!str_starts(digest, "sha256:") || strspn(hex, "0123456789abcdef") != HEX_CHARS ||
	    hex[HEX_CHARS])
		return err_set(e, ERR_INVALID, "not a digest: %.80s", digest);
	memcpy(out, hex, HEX_CHARS + 1);
	return 0;
}

static int open_dir(const struct node *n, const char *digest, int *ret, struct err *e)
{
	char name[HEX_CHARS + 1];
	int fd;

	if (dir_name(digest, name, e) < 0)
		return -1;
	fd = openat(n->pool.images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "image %.20s... is not on this host", digest);
	if (fd < 0)
		return err_sys(e, errno, "open image %.20s...", digest);
	*ret = fd;
	return 0;
}

int image_exists(const struct node *n, const char *digest, struct err *e)
{
	cleanup(close_fd) int dir = -1;

	return open_dir(n, digest, &dir, e);
}

int image_open_rootfs(const struct node *n, const char *digest, int *ret, struct err *e)
{
	cleanup(close_fd) int dir = -1;
	int fd;

	if (open_dir(n, digest, &dir, e) < 0)
		return -1;
	fd = openat(dir, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open the files of image %.20s...", digest);
	*ret = fd;
	return 0;
}

int image_read_config(const struct node *n, const char *digest, struct image_config *ret,
		      struct err *e)
{
	cleanup(close_fd) int dir = -1;
	cleanup(buf_done) struct buf text = buf_make(IMAGE_CONFIG_MAX + 1);

	if (open_dir(n, digest, &dir, e) < 0 || file_read(dir, IMAGE_CONFIG_FILE, &text, e) < 0)
		return -1;
	return image_config_decode((struct bytes){ (const uint8_t *)text.data, text.len }, ret, e);
}

static int remove_image_dir(const struct node *n, const char *name, struct err *e)
{
	cleanup(close_fd) int dir = openat(n->pool.images, name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 && errno == ENOENT)
		return 0;
	if (dir < 0)
		return err_sys(e, errno, "open images/%s", name);
	if (pool_subvolume_remove(dir, "rootfs", e) < 0)
		return -1;
	crash_point("node.image-disk-removed");
	return file_remove_tree(n->pool.images, name, e);
}

int image_clean(struct node *n, struct err *e)
{
	int fd = openat(n->pool.images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return err_sys(e, errno, "read images/");
	while ((entry = readdir(dir)))
		if (str_ends(entry->d_name, PARTIAL) && remove_image_dir(n, entry->d_name, e) < 0)
			return -1;
	return 0;
}

/* ---- what was left in the middle ---- */

struct leftovers {
	struct node *node;
	struct strv names; /* of images/, that no job is at */
};

static bool is_at_work(const struct node *n, const char *partial)
{
	for (const struct image_job *job = n->image_jobs; job; job = job->next)
		if (strcmp(job->partial, partial) == 0)
			return true;
	return false;
}

static int remove_leftovers(void *arg, struct err *e)
{
	const struct leftovers *l = arg;

	for (size_t i = 0; i < l->names.len; i++)
		if (remove_image_dir(l->node, l->names.items[i], e) < 0)
			return -1;
	return 0;
}

static void tidy(struct node *n);

static void on_tidied(struct task *task, int status)
{
	struct leftovers *l = task->data;
	struct node *n = l->node;

	strv_done(&l->names);
	free(l);
	n->image_tidies = status == 0 ? 0 : n->image_tidies + 1;
	if (status != 0 && n->image_tidies < TIDY_TRIES) /* the next start tries, too */
		tidy(n);
}

/* A child of ours was killed and left half an image: it must not stay until the next start. */
static void tidy(struct node *n)
{
	int fd = openat(n->pool.images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct leftovers *l = xcalloc(1, sizeof(*l));
	struct task_work work = {
		.run = remove_leftovers,
		.log = STDERR_FILENO,
		.on_done = on_tidied,
		.data = l,
	};
	const struct dirent *entry;
	struct err e;

	l->node = n;
	while (dir && (entry = readdir(dir)))
		if (str_ends(entry->d_name, PARTIAL) && !is_at_work(n, entry->d_name))
			strv_add(&l->names, entry->d_name);
	if (l->names.len > 0 && task_fork(&n->loop, &work, &e) == 0)
		return;
	strv_done(&l->names);
	free(l);
}

static void job_forget(struct image_job *job)
{
	struct image_job **at = &job->node->image_jobs;

	while (*at && *at != job)
		at = &(*at)->next;
	if (*at)
		*at = job->next;
}

static void on_job_closed(uv_handle_t *handle)
{
	struct image_job *job = handle->data;

	close_fd(&job->results);
	close_fd(&job->dir);
	buf_done(&job->in);
	free(job);
}

static void job_end(struct image_job *job, const struct err *why)
{
	struct call *next;

	for (struct call *c = job->waiters; c; c = next) {
		next = c->next_waiter;
		if (why)
			call_fail(c, why);
		else
			call_reply(c, &job->done, -1);
	}
	log_event(why ? LOG_WARN : LOG_INFO, why ? "image not made" : "image ready", "source",
		  job->source[0] ? job->source : "import", "digest", why ? NULL : job->done.digest,
		  "why", why ? why->msg : NULL, NULL);
	job_forget(job);
	uv_poll_stop(&job->poll);
	uv_close((uv_handle_t *)&job->poll, on_job_closed);
}

/* One record from berth-image: progress is passed on, the end is kept. */
static int job_record(struct image_job *job, struct bytes packet, struct err *e)
{
	struct node_image record;
	struct node_head h;

	if (node_head_decode(packet, &h, e) < 0)
		return -1;
	if (h.verb != NODE_IMAGE)
		return err_set(e, ERR_INVALID, "berth-image sent another verb");
	if (h.kind == NODE_ERROR) {
		node_error_decode(&h, &job->why);
		return 0;
	}
	if (node_body_decode(&h, &record, e) < 0)
		return -1;
	if (h.kind == NODE_REPLY)
		job->done = record;
	else if (h.kind == NODE_PART)
		for (struct call *c = job->waiters; c; c = c->next_waiter)
			call_part(c, &record);
	return 0;
}

static int job_records(struct image_job *job, struct err *e)
{
	for (;;) {
		struct reader r = reader_make(job->in.data, job->in.len);
		uint32_t len = reader_u32(&r);
		struct bytes packet = reader_bytes(&r, len);

		if (len > NODE_PACKET_MAX)
			return err_set(e, ERR_INVALID, "berth-image sent too long a record");
		if (r.bad)
			return 0;
		if (job_record(job, packet, e) < 0)
			return -1;
		buf_drop(&job->in, 4 + len);
	}
}

static void job_read(struct image_job *job)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(job->results, chunk, sizeof(chunk))) > 0) {
		buf_add(&job->in, chunk, (size_t)n);
		if (buf_overflowed(&job->in) || job_records(job, &job->why) < 0) {
			task_kill(job->task);
			uv_poll_stop(&job->poll);
			return;
		}
	}
	if (n == 0)
		uv_poll_stop(&job->poll);
}

static void on_results(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	job_read(poll->data);
}

/* In a child: the files become read-only and get their name. */
static int publish(void *arg, struct err *e)
{
	const struct image_job *job = arg;
	cleanup(buf_done) struct buf facts = buf_make(FACTS_MAX);
	cleanup(close_fd) int rootfs = openat(job->dir, "rootfs",
					      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[HEX_CHARS + 1];
	uint64_t flags = BTRFS_SUBVOL_RDONLY;

	if (dir_name(job->done.digest, name, e) < 0)
		return -1;
	if (rootfs < 0 || ioctl(rootfs, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0)
		return err_sys(e, errno, "make the image read-only");
	crash_point("node.image-closed");
	node_encode(&facts, NODE_IMAGE, NODE_REPLY, 0, &job->done);
	if (file_replace(job->dir, "facts", facts.data, facts.len, e) < 0)
		return -1;
	crash_point("node.image-described");
	if (renameat(job->node->pool.images, job->partial, job->node->pool.images, name) == 0) {
		crash_point("node.image-named");
		return 0;
	}
	if (errno != EEXIST && errno != ENOTEMPTY)
		return err_sys(e, errno, "publish image %s", name);
	/* It is there already: the same bytes. */
	return remove_image_dir(job->node, job->partial, e);
}

static int discard(void *arg, struct err *e)
{
	const struct image_job *job = arg;

	return remove_image_dir(job->node, job->partial, e);
}

static void on_published(struct task *task, int status)
{
	struct image_job *job = task->data;
	struct node *n = job->node;

	crash_point("node.image-published");
	if (status == 0)
		return job_end(job, NULL);
	err_set(&job->why, ERR_INTERNAL, "the unpacked image could not be put in its place");
	job_end(job, &job->why);
	tidy(n);
}

static void on_discarded(struct task *task, int status)
{
	struct image_job *job = task->data;
	struct node *n = job->node;

	job_end(job, &job->why);
	if (status != 0)
		tidy(n);
}

/* With its link a call has lost the berthd that would record the image's name. */
static bool is_awaited(const struct image_job *job)
{
	const struct call *c = job->waiters;

	while (c && !c->link)
		c = c->next_waiter;
	return c != NULL;
}

static void on_helper_done(struct task *task, int status)
{
	struct image_job *job = task->data;
	struct task_work work;
	bool ok;
	struct err e;
	char how[64];

	crash_point("node.image-unpacked");
	job_read(job);
	job->task = NULL;
	if (job->why.code == ERR_TOO_LARGE && job->short_of_space) {
		err_set(&job->why, ERR_LIMIT, "the pool has no room for this image");
		err_fix(&job->why, "Remove images or sandboxes, or give the host more disk.");
	}
	ok = status == 0 && job->done.digest[0] && job->why.code == ERR_NONE;
	if (!ok && job->why.code == ERR_NONE) {
		proc_status_text(status, how, sizeof(how));
		err_set(&job->why, task->timed_out ? ERR_TIMEOUT : ERR_INTERNAL,
			"berth-image %s without an answer", how);
	}
	if (ok && !is_awaited(job)) {
		err_set(&job->why, ERR_BUSY, "the berthd that asked for it is gone");
		ok = false;
	}
	job->failed = !ok;
	work = (struct task_work){
		.run = ok ? publish : discard,
		.log = STDERR_FILENO,
		.on_done = ok ? on_published : on_discarded,
		.data = job,
	};
	if (task_fork(&job->node->loop, &work, &e) < 0)
		job_end(job, &e);
}

static bool is_insecure(const struct node *n, const char *reference)
{
	char list[sizeof(n->settings.insecure_registries)], *save = NULL;

	memcpy(list, n->settings.insecure_registries, sizeof(list));
	for (char *host = strtok_r(list, " ,", &save); host; host = strtok_r(NULL, " ,", &save))
		if (str_starts(reference, host) &&
		    (reference[strlen(host)] == ':' || reference[strlen(host)] == '/'))
			return true;
	return false;
}

/* Others' sandboxes write to the same pool: an image leaves them something. */
static uint64_t space_for_image(struct image_job *job)
{
	const struct node *n = job->node;
	uint64_t total, room, keep;

	pool_space(&n->pool, &total, &room);
	keep = total / 10 < KEEP_MAX ? total / 10 : KEEP_MAX;
	room = room > keep ? room - keep : 0;
	job->short_of_space = room < n->settings.image_bytes;
	return job->short_of_space ? room : n->settings.image_bytes;
}

static int job_start(struct image_job *job, const struct node_image_ask *ask, int tar,
		     struct err *e)
{
	struct node *n = job->node;
	char bytes[24];
	const char *argv[7] = { n->settings.image_helper, "--max-bytes", bytes, "import" };
	cleanup(close_fd) int out = -1;
	int results[2];
	struct task_end end;
	struct proc_spec spec = { .argv = argv, .in = tar, .out = -1, .err = STDERR_FILENO };

	if (ask->op == IMAGE_PULL) {
		argv[3] = "pull";
		argv[4] = ask->source;
		argv[5] = is_insecure(n, ask->source) ? "--insecure" : NULL;
	}
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)space_for_image(job));
	if (mkdirat(n->pool.images, job->partial, 0700) < 0)
		return err_sys(e, errno, "make images/%s", job->partial);
	crash_point("node.partial-made");
	if (dir_open(n->pool.images, job->partial, 0700, &job->dir, e) < 0 ||
	    pool_subvolume_make(job->dir, "rootfs", e) < 0)
		return -1;
	crash_point("node.image-disk-made");
	if (pipe2(results, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	out = results[1];
	job->results = results[0];
	(void)fcntl(job->results, F_SETFL, O_NONBLOCK);
	spec.pass[0] = job->dir;
	spec.pass[1] = out;
	spec.pass_count = 2;
	end = (struct task_end){
		.deadline_ms = JOB_LIMIT_MS,
		.on_done = on_helper_done,
		.data = job,
	};
	if (task_start(&n->loop, &spec, &end, &job->task, e) < 0)
		return -1;
	crash_point("node.image-begun");
	return 0;
}

static struct image_job *job_of(struct node *n, const char *source)
{
	struct image_job *job = n->image_jobs;

	while (job && (job->failed || !source[0] || strcmp(job->source, source) != 0))
		job = job->next;
	return job;
}

static int job_make(struct call *c, struct err *e)
{
	struct node *n = c->node;
	const struct node_image_ask *ask = &c->ask.image_ask;
	struct image_job *job = ask->op == IMAGE_PULL ? job_of(n, ask->source) : NULL;
	size_t count = 0;
	char random[17];

	if (job) { /* a job pulls it already: wait for the same */
		c->next_waiter = job->waiters;
		job->waiters = c;
		return 0;
	}
	for (const struct image_job *j = n->image_jobs; j; j = j->next)
		count++;
	if (count >= JOBS_MAX)
		return err_set(e, ERR_BUSY, "%d images are being made already", JOBS_MAX);
	job = xcalloc(1, sizeof(*job));
	job->node = n;
	job->dir = job->results = -1;
	job->in = buf_make(2 * NODE_PACKET_MAX);
	memcpy(job->source, ask->source, sizeof(job->source));
	id_random(random, sizeof(random) - 1);
	snprintf(job->partial, sizeof(job->partial), ".%s" PARTIAL, random);
	if (job_start(job, ask, c->fd, e) < 0) {
		struct err ignored;

		(void)!remove_image_dir(n, job->partial, &ignored);
		close_fd(&job->results);
		close_fd(&job->dir);
		free(job);
		return -1;
	}
	job->waiters = c;
	job->next = n->image_jobs;
	n->image_jobs = job;
	uv_poll_init(&n->loop, &job->poll, job->results);
	job->poll.data = job;
	uv_poll_start(&job->poll, UV_READABLE | UV_DISCONNECT, on_results);
	return 0;
}

void image_jobs_end(struct node *n)
{
	for (struct image_job *job = n->image_jobs; job; job = job->next)
		if (job->task)
			task_kill(job->task);
}

static int read_facts(const struct node *n, const char *name, struct node_image *ret,
		      struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(FACTS_MAX);
	struct node_head h;
	char path[HEX_CHARS + 16];

	snprintf(path, sizeof(path), "%.64s/facts", name);
	if (file_read(n->pool.images, path, &text, e) < 0 ||
	    node_head_decode((struct bytes){ (const uint8_t *)text.data, text.len }, &h, e) < 0)
		return -1;
	return node_body_decode(&h, ret, e);
}

static int image_list(struct call *c, struct err *e)
{
	int fd = openat(c->node->pool.images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct node_image image = { 0 };
	struct dirent *entry;

	if (!dir)
		return err_sys(e, errno, "read images/");
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && read_facts(c->node, entry->d_name, &image, e) == 0)
			call_part(c, &image);
	call_reply(c, &(struct node_image){ 0 }, -1);
	return 0;
}

static int remove_work(void *arg, struct err *e)
{
	const struct call *c = arg;
	char name[HEX_CHARS + 1], partial[HEX_CHARS + 16];

	if (dir_name(c->ask.image_ask.digest, name, e) < 0)
		return -1;
	/* At once, under another name: a reader must not take half an image for a whole one. */
	snprintf(partial, sizeof(partial), ".%s" PARTIAL, name);
	if (renameat(c->node->pool.images, name, c->node->pool.images, partial) < 0 &&
	    errno != ENOENT)
		return err_sys(e, errno, "take image %.20s... out of its place", name);
	crash_point("node.image-unnamed");
	return remove_image_dir(c->node, partial, e);
}

static void on_image_removed(struct task *task, int status)
{
	struct call *c = task->data;
	struct err e;

	if (status == 0)
		return call_reply(c, &(struct node_image){ 0 }, -1);
	tidy(c->node);
	err_set(&e, ERR_INTERNAL, "image %.20s... could not be removed", c->ask.image_ask.digest);
	call_fail(c, &e);
}

static int image_remove(struct call *c, struct err *e)
{
	char name[HEX_CHARS + 1];
	struct task_work work = {
		.run = remove_work,
		.log = STDERR_FILENO,
		.on_done = on_image_removed,
		.data = c,
	};

	if (dir_name(c->ask.image_ask.digest, name, e) < 0)
		return -1;
	return task_fork(&c->node->loop, &work, e);
}

void verb_image(struct call *c)
{
	static int (*const ops[IMAGE_OP_COUNT])(struct call *, struct err *) = {
		[IMAGE_PULL] = job_make,
		[IMAGE_IMPORT] = job_make,
		[IMAGE_LIST] = image_list,
		[IMAGE_REMOVE] = image_remove,
	};
	uint32_t op = c->ask.image_ask.op;
	struct err e = { 0 };

	if (op >= IMAGE_OP_COUNT || (op == IMAGE_IMPORT && c->fd < 0) ||
	    (op == IMAGE_PULL && !c->ask.image_ask.source[0]))
		err_set(&e, ERR_INVALID, "an image request that makes no sense");
	else if (ops[op](c, &e) == 0)
		return;
	call_fail(c, &e);
}
