#include "berthd/journal/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/frame.h"

#define NAME_SIZE      (SANDBOX_ID_SIZE + EXEC_ID_SIZE)
#define WALK_BLOCK     ((size_t)256 * 1024)
/* Out of sight, and not unlinked yet: no sandbox's id begins like this. */
#define REMOVED_PREFIX ".removed-"
#define REMOVED_SIZE   (sizeof(REMOVED_PREFIX) + 24)

/* What a berthd that died had not unlinked yet. */
static void unlink_removed(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;

	while (d && (ent = readdir(d)))
		if (strncmp(ent->d_name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)) == 0)
			(void)unlinkat(dir, ent->d_name, 0);
}

int journals_open(struct journals *js, const char *state_dir, uint64_t cap, struct err *e)
{
	cleanup(close_fd) int state = -1;

	*js = (struct journals){ .dir = -1, .cap = cap };
	pthread_mutex_init(&js->lock, NULL);
	(void)!time_boot_id(js->boot_id, e); /* else a reboot is not told of, which is no lie */
	if (dir_open(AT_FDCWD, state_dir, 0700, &state, e) < 0)
		return -1;
	if (dir_open(state, "journal", 0700, &js->dir, e) < 0)
		return -1;
	unlink_removed(js->dir);
	tmpfile_pool_open(&js->spares, js->dir);
	return 0;
}

void journals_close(struct journals *js)
{
	tmpfile_pool_close(&js->spares);
	close_fd(&js->dir);
	js->dir = -1;
}

/* ---- those that are held ---- */

static struct journal **bucket(struct journals *js, const char *sandbox, const char *id)
{
	return &js->buckets[(str_hash(sandbox) * 31 + str_hash(id)) % JOURNALS_BUCKETS];
}

static struct journal *held(struct journals *js, const char *sandbox, const char *id)
{
	struct journal *j = *bucket(js, sandbox, id);

	while (j && (strcmp(j->head.ask.id, id) != 0 || strcmp(j->head.sandbox, sandbox) != 0))
		j = j->next;
	return j;
}

static void journal_free(struct journal *j)
{
	journal_head_done(&j->head);
	free(j->refused);
	pthread_mutex_destroy(&j->lock);
	close_fd(&j->fd);
	free(j);
}

static struct journal *journal_new(struct journals *js, int fd)
{
	struct journal *j = xcalloc(1, sizeof(*j));

	j->all = js;
	j->fd = fd;
	j->refs = 1;
	atomic_store(&j->sign_ms, time_mono_ms());
	pthread_mutex_init(&j->lock, NULL);
	return j;
}

static void name_of(char to[NAME_SIZE], const char *sandbox, const char *id)
{
	snprintf(to, NAME_SIZE, "%s/%s", sandbox, id);
}

/* Is this file still the one of its name? It may have been removed since it was opened. */
static bool is_named(struct journals *js, const struct journal *j)
{
	struct stat mine, named;
	char name[NAME_SIZE];

	name_of(name, j->head.sandbox, j->head.ask.id);
	return fstat(j->fd, &mine) == 0 &&
	       fstatat(js->dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

/*
 * The one that is there already, if another caller was faster; then `j` is freed. NULL
 * if one that was `opened` was removed meanwhile.
 */
static struct journal *hold(struct journals *js, struct journal *j, bool opened)
{
	struct journal **at, *other;
	bool named;

	pthread_mutex_lock(&js->lock);
	other = held(js, j->head.sandbox, j->head.ask.id);
	named = other || !opened || is_named(js, j);
	if (other) {
		other->refs++;
	} else if (named) {
		at = bucket(js, j->head.sandbox, j->head.ask.id);
		j->next = *at;
		*at = j;
	}
	pthread_mutex_unlock(&js->lock);
	if (!other && named)
		return j;
	journal_free(j);
	return other;
}

struct journal *journal_ref(struct journal *j)
{
	pthread_mutex_lock(&j->all->lock);
	j->refs++;
	pthread_mutex_unlock(&j->all->lock);
	return j;
}

void journal_unref(struct journal *j)
{
	struct journals *js;
	struct journal **at;
	bool last;

	if (!j)
		return;
	js = j->all;
	pthread_mutex_lock(&js->lock);
	last = --j->refs == 0;
	if (last) {
		at = bucket(js, j->head.sandbox, j->head.ask.id);
		while (*at && *at != j)
			at = &(*at)->next;
		if (*at)
			*at = j->next;
	}
	pthread_mutex_unlock(&js->lock);
	if (last)
		journal_free(j);
}

/* ---- the file ---- */

/* Under its name, whole: a reader that finds it finds all of its head. */
static int give_name(struct journals *js, int fd, const char *name)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, js->dir, name, AT_SYMLINK_FOLLOW);
}

/* A file of that name with this in it; -1 with errno. */
static int make_file(struct journals *js, const char *name, const struct buf *text)
{
	cleanup(close_fd) int fd = tmpfile_pool_take(&js->spares);
	bool named = fd < 0;

	if (named)
		fd = openat(js->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (write_all(fd, text->data, text->len) < 0) {
		int why = errno;

		if (named)
			(void)unlinkat(js->dir, name, 0);
		errno = why;
		return -1;
	}
	if (!named && give_name(js, fd, name) < 0)
		return -1;
	return take_fd(fd);
}

int journal_create(struct journals *js, struct journal_head *h, struct journal **ret,
		   struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(JOURNAL_HEAD_MAX + JOURNAL_HEAD_AT + 1);
	cleanup(close_fd) int fd = -1;
	struct journal_slot slot = { .state = JOURNAL_RUNNING };
	char name[NAME_SIZE];
	struct journal *j;

	name_of(name, h->sandbox, h->ask.id);
	memcpy(slot.boot_id, js->boot_id, sizeof(slot.boot_id));
	journal_begin_encode(&out, h, &slot);
	fd = make_file(js, name, &out);
	if (fd < 0 && errno == ENOENT) {
		(void)mkdirat(js->dir, h->sandbox, 0700);
		fd = make_file(js, name, &out);
	}
	if (fd < 0 && errno == EEXIST) {
		err_set(e, ERR_CONFLICT, "there is an exec %s already", h->ask.id);
		return err_fix(e, "Choose another id, or give none.");
	}
	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT)) {
		err_set(e, ERR_LIMIT, "this host has no room for what the command will say");
		err_fix(e, "Nothing was begun. An admin makes room, or lowers journal_host_bytes.");
		return err_reason(e, "no_space", 507);
	}
	if (fd < 0)
		return err_sys(e, errno, "make the journal %s", name);
	crash_point("exec.journal-made");
	j = journal_new(js, take_fd(fd));
	j->head = *h;
	j->slot = slot;
	*h = (struct journal_head){ 0 };
	j->frames_at = j->written = out.len;
	*ret = hold(js, j, false);
	return 0;
}

static int read_at(int fd, uint64_t at, size_t len, struct buf *to, struct err *e)
{
	char chunk[4096];

	while (len > 0) {
		ssize_t n = pread(fd, chunk, len < sizeof(chunk) ? len : sizeof(chunk), (off_t)at);

		if (n <= 0)
			return err_set(e, ERR_INTERNAL, "a journal is too short");
		buf_add(to, chunk, (size_t)n);
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static struct bytes bytes_of(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

static int load(struct journal *j, struct err *e)
{
	cleanup(buf_done) struct buf prelude = buf_make(JOURNAL_PRELUDE + 1);
	cleanup(buf_done) struct buf slot = buf_make(JOURNAL_SLOT + 1);
	cleanup(buf_done) struct buf head = buf_make(JOURNAL_HEAD_MAX + 1);
	uint32_t head_len;
	struct stat st;

	if (read_at(j->fd, 0, JOURNAL_PRELUDE, &prelude, e) < 0 ||
	    journal_prelude_decode(bytes_of(&prelude), &head_len, e) < 0 ||
	    read_at(j->fd, JOURNAL_PRELUDE, JOURNAL_SLOT, &slot, e) < 0 ||
	    journal_slot_decode(bytes_of(&slot), &j->slot, e) < 0 ||
	    read_at(j->fd, JOURNAL_HEAD_AT, head_len, &head, e) < 0 ||
	    journal_head_decode(bytes_of(&head), &j->head, e) < 0)
		return -1;
	if (fstat(j->fd, &st) < 0)
		return err_sys(e, errno, "stat of a journal");
	j->frames_at = JOURNAL_HEAD_AT + head_len;
	j->written = (uint64_t)st.st_size;
	return 0;
}

static int no_exec(const char *sandbox, const char *id, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "there is no exec %s in %s", id, sandbox);
	return err_fix(e, "'berth execs %s' lists its commands.", sandbox);
}

/* One that is there and cannot be opened is not absent: what it tells of may be alive. */
static int cannot_open(int why, const char *name, struct err *e)
{
	err_sys(e, why, "open the journal %s", name);
	if (why == EMFILE || why == ENFILE || why == ENOMEM)
		e->code = ERR_BUSY; /* for now */
	return -1;
}

int journal_find(struct journals *js, const char *sandbox, const char *id, struct journal **ret,
		 struct err *e)
{
	char name[NAME_SIZE];
	struct journal *j;
	int fd;

	if (sandbox_id_check(sandbox, e) < 0 || exec_id_check(id, e) < 0)
		return -1;
	pthread_mutex_lock(&js->lock);
	j = held(js, sandbox, id);
	if (j)
		j->refs++;
	pthread_mutex_unlock(&js->lock);
	if (j) {
		*ret = j;
		return 0;
	}
	name_of(name, sandbox, id);
	fd = openat(js->dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return no_exec(sandbox, id, e);
	if (fd < 0)
		return cannot_open(errno, name, e);
	j = journal_new(js, fd);
	if (load(j, e) < 0 || strcmp(j->head.sandbox, sandbox) != 0 ||
	    strcmp(j->head.ask.id, id) != 0) {
		journal_free(j);
		return err_set(e, ERR_INTERNAL, "the journal %s cannot be read", name);
	}
	*ret = hold(js, j, true);
	return *ret ? 0 : no_exec(sandbox, id, e);
}

/* It ends before the end of its head, or is nothing but zeros. */
static bool is_unwritten(int fd)
{
	static const uint8_t zeros[JOURNAL_PRELUDE];
	cleanup(buf_done) struct buf prelude = buf_make(JOURNAL_PRELUDE + 1);
	uint32_t head_len;
	struct stat st;
	struct err e;

	if (fstat(fd, &st) < 0)
		return false;
	if (st.st_size < JOURNAL_HEAD_AT)
		return true;
	if (read_at(fd, 0, JOURNAL_PRELUDE, &prelude, &e) < 0)
		return false;
	if (prelude.len >= sizeof(zeros) && memcmp(prelude.data, zeros, sizeof(zeros)) == 0)
		return true;
	return journal_prelude_decode(bytes_of(&prelude), &head_len, &e) == 0 &&
	       st.st_size - JOURNAL_HEAD_AT < head_len;
}

bool journal_remove_unwritten(struct journals *js, const char *sandbox, const char *id)
{
	cleanup(close_fd) int fd = -1;
	char name[NAME_SIZE];
	struct err e;

	if (sandbox_id_check(sandbox, &e) < 0 || exec_id_check(id, &e) < 0)
		return false;
	name_of(name, sandbox, id);
	fd = openat(js->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || !is_unwritten(fd) || unlinkat(js->dir, name, 0) < 0)
		return false;
	(void)unlinkat(js->dir, sandbox, AT_REMOVEDIR); /* if it was the last */
	return true;
}

void journal_remove(struct journal *j)
{
	struct journals *js = j->all;
	struct journal **at;
	char name[NAME_SIZE], removed[REMOVED_SIZE] = "";

	name_of(name, j->head.sandbox, j->head.ask.id);
	pthread_mutex_lock(&js->lock);
	at = bucket(js, j->head.sandbox, j->head.ask.id);
	while (*at && *at != j)
		at = &(*at)->next;
	if (*at) { /* else it was removed before, and the name may be another's */
		*at = j->next;
		snprintf(removed, sizeof(removed), REMOVED_PREFIX "%" PRIu64, ++js->removed);
		if (renameat(js->dir, name, js->dir, removed) < 0)
			removed[0] = '\0';
		(void)unlinkat(js->dir, j->head.sandbox, AT_REMOVEDIR); /* if it was the last */
	}
	pthread_mutex_unlock(&js->lock);
	/* Hundreds of megabytes take their time, and every loop needs the lock. */
	if (removed[0])
		(void)unlinkat(js->dir, removed, 0);
}

void journal_refuse(struct journal *j, const struct err *why)
{
	struct err *own = xcalloc(1, sizeof(*own));

	*own = *why;
	journal_remove(j);
	pthread_mutex_lock(&j->lock);
	free(j->refused);
	j->refused = own;
	pthread_mutex_unlock(&j->lock);
}

void journal_refusal(struct journal *j, struct err *ret)
{
	pthread_mutex_lock(&j->lock);
	*ret = *j->refused;
	pthread_mutex_unlock(&j->lock);
}

/* ---- what is in it ---- */

void journal_look(struct journal *j, struct journal_view *ret)
{
	pthread_mutex_lock(&j->lock);
	ret->slot = j->slot;
	ret->written = j->written;
	pthread_mutex_unlock(&j->lock);
}

void journal_glance(struct journal *j, struct journal_glance *ret)
{
	const struct journal_slot *s = &j->slot;

	pthread_mutex_lock(&j->lock);
	*ret = (struct journal_glance){ .state = s->state,
					.refused = j->refused,
					.pid = s->pid,
					.offset = { s->offset[0], s->offset[1] },
					.recorded = s->recorded,
					.written = j->written };
	pthread_mutex_unlock(&j->lock);
}

struct reactor *journal_loop(struct journal *j)
{
	struct reactor *loop;

	pthread_mutex_lock(&j->lock);
	loop = j->exec ? j->reactor : NULL;
	pthread_mutex_unlock(&j->lock);
	return loop;
}

uint64_t journal_view_end(const struct journal_view *v)
{
	return v->slot.offset[0] + v->slot.offset[1];
}

/* On the disk: many small pieces are more head than output. */
static bool is_at_cap(const struct journal *j)
{
	uint64_t over_at = atomic_load(&j->over_at);

	/* The last trim, or the one that is under way, found it so: see journal-expire.h. */
	return j->written - j->frames_at >= j->all->cap ||
	       (over_at > 0 && over_at >= atomic_load(&j->all->trims));
}

bool journal_is_full(struct journal *j)
{
	bool full;

	pthread_mutex_lock(&j->lock);
	full = j->full || is_at_cap(j);
	pthread_mutex_unlock(&j->lock);
	return full;
}

/* Half a frame is none: cut it off again, and record no more. */
static bool write_frame(struct journal *j, const struct journal_frame *f, const void *data)
{
	uint8_t head[JOURNAL_FRAME];
	struct iovec iov[2] = { { head, sizeof(head) }, { (void *)data, f->len } };
	ssize_t n;

	journal_frame_encode(head, f);
	n = pwritev(j->fd, iov, 2, (off_t)j->written);
	if (n == (ssize_t)(sizeof(head) + f->len))
		return true;
	(void)!ftruncate(j->fd, (off_t)j->written);
	return false;
}

bool journal_append(struct journal *j, int stream, const void *data, size_t len, bool late)
{
	struct journal_frame f = { .position = j->slot.recorded,
				   .time_us = time_mono_us(),
				   .len = (uint32_t)len,
				   .stream = stream };
	bool recorded = !j->full && (late || !is_at_cap(j)) && write_frame(j, &f, data);

	pthread_mutex_lock(&j->lock);
	j->slot.offset[stream] += len;
	if (recorded) {
		j->slot.recorded += len;
		j->written += JOURNAL_FRAME + len;
	}
	j->full = !recorded;
	pthread_mutex_unlock(&j->lock);
	if (recorded)
		atomic_fetch_add(&j->all->grown, JOURNAL_FRAME + len);
	atomic_store(&j->sign_ms, f.time_us / 1000);
	return recorded;
}

/*
 * Under the lock, like the change it writes: any thread may write these bytes, and
 * a stale one that came last would take back what another had written.
 */
static int write_slot(struct journal *j, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(JOURNAL_SLOT + 1);

	journal_slot_encode(&out, &j->slot);
	if (pwrite(j->fd, out.data, out.len, JOURNAL_PRELUDE) != (ssize_t)out.len)
		return err_sys(e, errno, "write the journal of %s", j->head.ask.id);
	return 0;
}

int journal_save(struct journal *j, struct err *e)
{
	int n;

	pthread_mutex_lock(&j->lock);
	n = j->full ? write_slot(j, e) : 0;
	pthread_mutex_unlock(&j->lock);
	return n;
}

void journal_resize(struct journal *j, const struct exec_size *size)
{
	struct err ignored;

	pthread_mutex_lock(&j->lock);
	j->slot.size = *size;
	(void)!write_slot(j, &ignored); /* it says what a client sees, and decides nothing */
	pthread_mutex_unlock(&j->lock);
}

void journal_gone(struct journal *j)
{
	struct err ignored;

	pthread_mutex_lock(&j->lock);
	j->slot.gone = true;
	(void)!write_slot(j, &ignored); /* then it stays in doubt, which is no lie */
	pthread_mutex_unlock(&j->lock);
}

void journal_work(struct journal *j, enum journal_work work)
{
	struct err ignored;

	atomic_store(&j->sign_ms, time_mono_ms());
	pthread_mutex_lock(&j->lock);
	j->slot.work = work;
	(void)!write_slot(j, &ignored); /* then the lease is the only record of it, as always */
	pthread_mutex_unlock(&j->lock);
}

uint64_t journal_silent_ms(const struct journal *j)
{
	uint64_t now = time_mono_ms(), last = atomic_load(&j->sign_ms);

	return now > last ? now - last : 0;
}

bool journal_is_doubt(struct journal *j)
{
	struct journal_view v;

	journal_look(j, &v);
	return j->head.ask.flags & EXEC_WHOLE && !v.slot.gone;
}

/* After another start of the machine than the one it began in, its processes are gone. */
static enum journal_reboot reboot_since(const struct journal *j)
{
	if (!j->slot.boot_id[0] || !j->all->boot_id[0])
		return JOURNAL_REBOOT_UNKNOWN;
	return strcmp(j->slot.boot_id, j->all->boot_id) == 0 ? JOURNAL_SAME_BOOT : JOURNAL_REBOOTED;
}

int journal_end(struct journal *j, const struct exec_exit *exit, const struct exec_usage *use,
		bool gone, struct err *e)
{
	struct journal_slot before;
	int n;

	pthread_mutex_lock(&j->lock);
	before = j->slot;
	j->slot.exit = *exit;
	j->slot.use = *use;
	j->slot.gone |= gone;
	j->slot.reboot = reboot_since(j);
	j->slot.state = JOURNAL_ENDED;
	j->slot.ended_ms = time_wall_ms();
	n = write_slot(j, e);
	if (n < 0)
		j->slot = before; /* no reader is told what does not stand */
	pthread_mutex_unlock(&j->lock);
	return n;
}

void journal_settle(struct journal *j)
{
	struct err ignored;

	pthread_mutex_lock(&j->lock);
	j->slot.state = JOURNAL_SETTLED;
	/* If it is not written, the next berthd asks init once more, and no harm is done. */
	(void)!write_slot(j, &ignored);
	pthread_mutex_unlock(&j->lock);
}

/* ---- after a restart ---- */

struct walk {
	uint64_t at, position;
	uint64_t offset[2];
};

static void walk(const struct journal *j, struct walk *w)
{
	uint8_t head[JOURNAL_FRAME];
	struct journal_frame f;
	struct stat st;
	uint64_t size = fstat(j->fd, &st) == 0 ? (uint64_t)st.st_size : 0;

	while (w->at < size && size - w->at >= JOURNAL_FRAME &&
	       pread(j->fd, head, sizeof(head), (off_t)w->at) == (ssize_t)sizeof(head) &&
	       journal_frame_decode(head, w->position, &f) &&
	       size - w->at - JOURNAL_FRAME >= f.len) {
		w->at += JOURNAL_FRAME + f.len;
		w->position += f.len;
		w->offset[f.stream] += f.len;
	}
}

int journal_recover(struct journal *j, struct err *e)
{
	struct walk w = { .at = j->frames_at };

	walk(j, &w);
	if (ftruncate(j->fd, (off_t)w.at) < 0)
		return err_sys(e, errno, "cut the journal of %s", j->head.ask.id);
	pthread_mutex_lock(&j->lock);
	j->written = w.at;
	/* Counts that were saved are of a time when nothing more was recorded. */
	j->full = j->slot.offset[0] + j->slot.offset[1] > w.position;
	j->slot.recorded = w.position;
	for (int i = 0; i < 2; i++)
		if (!j->full)
			j->slot.offset[i] = w.offset[i];
	pthread_mutex_unlock(&j->lock);
	return 0;
}

/* ---- all of them ---- */

static int each_exec(struct journals *js, const char *sandbox, journal_fn fn, void *data)
{
	int fd = openat(js->dir, sandbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	cleanup(dir_closep) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	struct err ignored;

	if (!d)
		return errno == ENOENT ? 0 : -1;
	while (errno = 0, (ent = readdir(d)))
		if (exec_id_check(ent->d_name, &ignored) == 0 &&
		    fn(data, sandbox, ent->d_name) < 0)
			return -1;
	return errno == 0 ? 0 : -1;
}

int journals_each(struct journals *js, const char *sandbox, journal_fn fn, void *data)
{
	int fd = sandbox ? -1 : openat(js->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	struct err ignored;

	if (sandbox)
		return each_exec(js, sandbox, fn, data);
	if (!d)
		return -1;
	while (errno = 0, (ent = readdir(d)))
		if (sandbox_id_check(ent->d_name, &ignored) == 0 &&
		    each_exec(js, ent->d_name, fn, data) < 0)
			return -1;
	return errno == 0 ? 0 : -1;
}

void journals_running(struct journals *js, const char *sandbox,
		      void (*fn)(void *data, struct journal *j), void *data)
{
	struct journal **found = NULL;
	size_t count = 0;

	pthread_mutex_lock(&js->lock);
	for (size_t i = 0; i < JOURNALS_BUCKETS; i++)
		for (struct journal *j = js->buckets[i]; j; j = j->next) {
			if (strcmp(j->head.sandbox, sandbox) != 0)
				continue;
			found = xrealloc(found, (count + 1) * sizeof(void *));
			found[count++] = j;
			j->refs++;
		}
	pthread_mutex_unlock(&js->lock);
	for (size_t i = 0; i < count; i++) {
		fn(data, found[i]);
		journal_unref(found[i]);
	}
	free(found);
}
