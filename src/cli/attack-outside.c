/* What is done from outside with what a guest has prepared: files, trees, images, waking up. */
#include <stdio.h>
#include <string.h>

#include "cli/attack.h"
#include "lib/id.h"

#define BODY_MAX    (64UL << 20)
#define REPLY_MS    30000
#define SWAPS       60
#define BOMB_MIB    24
#define DESCRIPTORS 16

/* A row and what it is done with. */
struct trial {
	struct attack *attack;
	struct finding *finding;
	const char *const *links; /* path, target; "@" is the canary's directory */
};

static const struct sandbox_options small_box = {
	.memory = 128UL << 20,
	.disk = 16UL << 20,
};

/* ---- words for all of them ---- */

static void judge(const struct trial *t, const char *held)
{
	char found[120];

	if (!canary_untouched(&t->attack->canary, found, sizeof(found)))
		finding_set(t->finding, VERDICT_THROUGH, "%s", found);
	else
		finding_set(t->finding, VERDICT_HELD, "%s", held);
}

/* berth-probe with up to three words; its standard output. */
static int say_probe(const struct trial *t, const char *id, const char *const words[3],
		     struct attack_answer *ret, struct err *e)
{
	cleanup(strv_done) struct strv list = { 0 };

	for (size_t i = 0; i < 3 && words[i]; i++)
		strv_add(&list, words[i]);
	return attack_exec(t->attack, id, NULL, &list, ret, e);
}

static int plant(const struct trial *t, const char *id, const char *target, const char *link,
		 struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };

	if (say_probe(t, id, (const char *const[3]){ "plant", target, link }, &answer, e) < 0)
		return -1;
	return answer.exit_code == 0 ? 0 : err_set(e, ERR_INTERNAL, "no link could be made");
}

/* One call of a sandbox's files. */
struct file_call {
	const char *method, *verb, *path;
	const struct buf *body; /* or NULL */
};

/* The answer, whatever its status. */
static int ask_files(const struct trial *t, const char *id, const struct file_call *call,
		     struct fetch_reply *ret, struct err *e)
{
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.method = call->method,
		.key = t->attack->context->key,
		.accept = "*/*",
		.body_fd = -1,
		.timeout_ms = REPLY_MS,
	};

	buf_addf(&url, "%s/v1/sandboxes/%s/files%s?path=", t->attack->context->url, id, call->verb);
	fetch_escape(&url, call->path);
	if (call->body) {
		q.content_type = call->verb[0] ? "application/x-tar" : "application/octet-stream";
		q.body = call->body->data;
		q.body_len = call->body->len;
		buf_adds(&url, call->verb[0] ? "" : "&parents=1");
	}
	q.url = buf_str(&url);
	return fetch(&q, ret, e);
}

/* ---- files ---- */

static bool has_token(const struct trial *t, const struct buf *b)
{
	const char *token = t->attack->canary.token;

	return b->len && memmem(b->data, b->len, token, strlen(token));
}

static int read_through(const struct trial *t, const char *verb, const char *path, struct err *e)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	const struct file_call call = { "GET", verb, path, NULL };

	if (ask_files(t, t->attack->box, &call, &reply, e) < 0)
		return -1;
	if (has_token(t, &reply.body))
		finding_set(t->finding, VERDICT_THROUGH, "the host's file came by %s", path);
	return 0;
}

static int try_read_link(struct trial *t, struct err *e)
{
	const struct canary *c = &t->attack->canary;
	char up[200], proc[200];

	snprintf(up, sizeof(up), "/../../../..%s", c->file);
	snprintf(proc, sizeof(proc), "/proc/1/root/../../..%s", c->file);
	finding_set(t->finding, VERDICT_HELD, "only the box's own files came");
	return plant(t, t->attack->box, c->file, "/root/link", e) < 0 ||
			       read_through(t, "", "/root/link", e) < 0 ||
			       read_through(t, "", up, e) < 0 ||
			       read_through(t, "", proc, e) < 0
		       ? -1
		       : 0;
}

static int try_read_tree(struct trial *t, struct err *e)
{
	const struct canary *c = &t->attack->canary;

	finding_set(t->finding, VERDICT_HELD, "the link came, not what is behind it");
	return plant(t, t->attack->box, c->dir, "/root/tree", e) < 0 ||
			       read_through(t, "/tar", "/root", e) < 0 ||
			       read_through(t, "/tar", "/root/tree", e) < 0
		       ? -1
		       : 0;
}

static int write_to(const struct trial *t, const char *path, struct err *e)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(64);
	const struct file_call call = { "PUT", "", path, &body };

	buf_adds(&body, "written");
	return ask_files(t, t->attack->box, &call, &reply, e);
}

static int try_write_link(struct trial *t, struct err *e)
{
	const struct canary *c = &t->attack->canary;

	if (plant(t, t->attack->box, c->dir, "/root/out", e) < 0 ||
	    plant(t, t->attack->box, c->file, "/root/file", e) < 0 ||
	    write_to(t, "/root/out/new", e) < 0 || write_to(t, "/root/file", e) < 0)
		return -1;
	judge(t, "nothing was written on the host");
	return 0;
}

static int try_swap(struct trial *t, struct err *e)
{
	cleanup(strv_done) struct strv words = { 0 };

	if (plant(t, t->attack->box, t->attack->canary.dir, "/root/race.other", e) < 0 ||
	    write_to(t, "/root/race/first", e) < 0)
		return -1;
	strv_add(&words, "swap");
	strv_add(&words, "/root/race");
	if (attack_start(t->attack, t->attack->box, &words, e) < 0)
		return -1;
	for (int i = 0; i < SWAPS; i++)
		if (write_to(t, "/root/race/new", e) < 0)
			return -1;
	judge(t, "nothing was written on the host");
	return 0;
}

/* ---- trees ---- */

static int send_tree(struct trial *t, const char *id, const struct attack_entry *entries,
		     size_t count, struct err *e)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	cleanup(buf_done) struct buf tar = buf_make(BODY_MAX);
	const struct file_call call = { "PUT", "/tar", "/root/unpacked", &tar };

	attack_tar(&tar, entries, count);
	return ask_files(t, id, &call, &reply, e);
}

static int try_tree_up(struct trial *t, struct err *e)
{
	char up[200], absolute[200];
	struct attack_entry entries[] = {
		{ TAR_FILE, up, .bytes = "x", .len = 1 },
		{ TAR_FILE, absolute, .bytes = "x", .len = 1 },
	};

	snprintf(up, sizeof(up), "../../../../../../..%s/up", t->attack->canary.dir);
	snprintf(absolute, sizeof(absolute), "%s/absolute", t->attack->canary.dir);
	for (size_t i = 0; i < array_len(entries); i++)
		if (send_tree(t, t->attack->box, &entries[i], 1, e) < 0)
			return -1;
	judge(t, "nothing was written on the host");
	return 0;
}

static int try_tree_link(struct trial *t, struct err *e)
{
	const struct canary *c = &t->attack->canary;
	const struct attack_entry entries[] = {
		{ TAR_SYMLINK, "l", c->dir },
		{ TAR_FILE, "l/through", .bytes = "x", .len = 1 },
	};

	if (send_tree(t, t->attack->box, entries, array_len(entries), e) < 0)
		return -1;
	judge(t, "nothing was written on the host");
	return 0;
}

static int try_tree_hard_link(struct trial *t, struct err *e)
{
	const struct attack_entry entry = { TAR_HARDLINK, "h", t->attack->canary.file };

	finding_set(t->finding, VERDICT_HELD, "only the box's own files came");
	return send_tree(t, t->attack->box, &entry, 1, e) < 0 ||
			       read_through(t, "", "/root/unpacked/h", e) < 0
		       ? -1
		       : 0;
}

/* In a box of its own, with a small disk. */
static int try_tree_bomb(struct trial *t, struct err *e)
{
	cleanup(free_ptr) char *zeros = xcalloc(BOMB_MIB, 1 << 20);
	const struct attack_entry entry = { TAR_FILE, "big", .bytes = zeros,
					    .len = (size_t)BOMB_MIB << 20 };
	char id[SANDBOX_ID_SIZE] = "";
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };
	int n;

	if (attack_create(t->attack, t->attack->image, &small_box, id, e) < 0)
		return -1;
	n = send_tree(t, id, &entry, 1, e);
	attack_delete(t->attack, id);
	if (n < 0)
		return -1;
	n = say_probe(t, t->attack->neighbour, (const char *const[3]){ "where" }, &answer, e);
	if (n == 0)
		judge(t, "its disk was full, and only its own");
	return n;
}

/* ---- commands ---- */

static int try_working_directory(struct trial *t, struct err *e)
{
	cleanup(strv_done) struct strv words = { 0 };

	strv_add(&words, "where");
	finding_set(t->finding, VERDICT_HELD, "none leads out");
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		cleanup(attack_answer_done) struct attack_answer answer = { 0 };
		char cwd[40];

		snprintf(cwd, sizeof(cwd), "/proc/self/fd/%d", fd);
		if (attack_exec(t->attack, t->attack->box, cwd, &words, &answer, e) < 0)
			continue; /* no directory, says the API */
		if (strcmp(buf_str(&answer.out), "outside\n") == 0)
			finding_set(t->finding, VERDICT_THROUGH, "%s is outside", cwd);
	}
	return 0;
}

static int try_output(struct trial *t, struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 }, after = { 0 };
	struct err ignored;

	if (say_probe(t, t->attack->box, (const char *const[3]){ "shout", "64" }, &answer,
		      &ignored) == 0 &&
	    answer.out.len > (32UL << 20))
		finding_set(t->finding, VERDICT_THROUGH, "all of it came in one answer");
	else if (say_probe(t, t->attack->neighbour, (const char *const[3]){ "where" }, &after, e) <
		 0)
		return -1;
	else
		finding_set(t->finding, VERDICT_HELD, "the neighbour answers");
	return 0;
}

/* ---- images, and what is mounted where they say ---- */

static int post(const struct trial *t, const char *id, const char *verb, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	char path[SANDBOX_ID_SIZE + 64];

	snprintf(path, sizeof(path), "/v1/sandboxes/%s/%s", id, verb);
	return client_call(t->attack->context, "POST", path, NULL, &reply, e);
}

/* What the engine mounts at is moved away and a link put in its place while the box sleeps. */
static int try_wake(struct trial *t, struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer moved = { 0 }, answer = { 0 };
	const char *const uproot[3] = { "uproot", "/.berth", t->attack->canary.dir };
	char id[SANDBOX_ID_SIZE] = "";
	struct err ignored;

	if (attack_create(t->attack, t->attack->image, NULL, id, e) < 0)
		return -1;
	/* Its init's socket may go with it: what is said then does not matter. */
	(void)!say_probe(t, id, uproot, &moved, &ignored);
	(void)!post(t, id, "sleep", &ignored);
	(void)!say_probe(t, id, (const char *const[3]){ "where" }, &answer, &ignored);
	judge(t, "nothing was mounted or made on the host");
	attack_delete(t->attack, id);
	return 0;
}

/* The text with "@" in it replaced. */
static const char *expand(const struct trial *t, const char *text, char out[200])
{
	const char *at = strchr(text, '@');

	snprintf(out, 200, "%.*s%s%s", at ? (int)(at - text) : 0, text,
		 at ? t->attack->canary.dir : "", at ? at + 1 : text);
	return out;
}

/* A link; "/": a directory; "": a file; a path with "=" before it: a hard link. */
static struct attack_entry entry_of(const char *path, const char *target)
{
	if (strcmp(target, "/") == 0)
		return (struct attack_entry){ TAR_DIRECTORY, path };
	if (target[0] == '\0')
		return (struct attack_entry){ TAR_FILE, path, .bytes = "x", .len = 1 };
	if (path[0] == '=')
		return (struct attack_entry){ TAR_HARDLINK, path + 1, target };
	return (struct attack_entry){ TAR_SYMLINK, path, target };
}

static void image_tar(const struct trial *t, struct buf *out)
{
	struct attack_entry entries[8] = {
		{ TAR_FILE, &ATTACK_PROBE[1], .bytes = t->attack->program.data,
		  .len = t->attack->program.len },
		{ TAR_DIRECTORY, "tmp" },
	};
	char paths[8][200], targets[8][200];
	size_t n = 2;

	for (const char *const *l = t->links; *l && n < array_len(entries); l += 2, n++)
		entries[n] = entry_of(expand(t, l[0], paths[n]), expand(t, l[1], targets[n]));
	attack_tar(out, entries, n);
}

static int try_image(struct trial *t, struct err *e)
{
	cleanup(buf_done) struct buf tar = buf_make(BODY_MAX);
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };
	char id[SANDBOX_ID_SIZE] = "", name[64], said[160] = "a sandbox of it runs";

	snprintf(name, sizeof(name), "%s-%s", t->attack->image, t->finding->name);
	image_tar(t, &tar);
	if (attack_import(t->attack, name, &tar, e) < 0) {
		judge(t, e->msg);
		return 0;
	}
	if (attack_create(t->attack, name, NULL, id, e) < 0)
		snprintf(said, sizeof(said), "%s", e->msg);
	else if (say_probe(t, id, (const char *const[3]){ "show", "/h" }, &answer, e) == 0 &&
		 has_token(t, &answer.out))
		finding_set(t->finding, VERDICT_THROUGH, "the host's file came with the image");
	if (t->finding->verdict != VERDICT_THROUGH)
		judge(t, said);
	attack_delete(t->attack, id);
	attack_remove_image(t->attack, name);
	return 0;
}

/* ---- all of them ---- */

/* clang-format off */
#define IMAGE(name, stands, tries, ...) \
	{ name, stands, tries, try_image, { __VA_ARGS__ } }

static const struct {
	const char *name, *stands_for, *tries;
	int (*run)(struct trial *t, struct err *e);
	const char *links[7];
} probes[] = {
	{ "api-read-link", "CVE-2024-28185 (judge0)", "read a file through a planted link",
	  try_read_link },
	{ "api-read-tree", "CVE-2024-28185 (judge0)", "download a tree with a planted link",
	  try_read_tree },
	{ "api-write-link", "CVE-2024-28189 (judge0)", "write a file through a planted link",
	  try_write_link },
	{ "api-write-swap", "symlink races: CVE-2018-15664",
	  "write while a directory and a link change places",
	  try_swap },
	{ "tree-up", "paths in archives: CVE-2007-4559", "unpack a tree with .. and / in its paths",
	  try_tree_up },
	{ "tree-link", "links in archives", "unpack a tree through a link of its own",
	  try_tree_link },
	{ "tree-hard-link", "links in archives: CVE-2020-27534",
	  "unpack a hard link to a file of the host",
	  try_tree_hard_link },
	{ "tree-bomb", "tar bombs", "unpack more than the disk holds", try_tree_bomb },
	{ "working-directory", "CVE-2024-21626", "start in /proc/self/fd/N",
	  try_working_directory },
	{ "output-bomb", "resources: output", "print 64 MiB", try_output },
	{ "wake-link", "mount targets: CVE-2021-30465",
	  "put a link where the engine mounts, and wake up", try_wake },
	IMAGE("image-dev", "CVE-2026-47766 (crun)", "an image whose /dev is a link", "dev", "@"),
	IMAGE("image-dev-null", "CVE-2025-31133", "an image whose /dev/null is a link", "dev", "/",
	  "dev/null",
	      "@/secret"),
	IMAGE("image-console", "CVE-2025-52565", "an image whose /dev/console is a link", "dev",
	  "/",
	      "dev/console", "@/secret"),
	IMAGE("image-pts", "CVE-2025-52565", "an image whose /dev/pts is a link", "dev", "/",
	  "dev/pts", "@"),
	IMAGE("image-proc", "CVE-2025-52881, CVE-2019-16884", "an image whose /proc is a link",
	  "proc", "@"),
	IMAGE("image-sys", "mount targets", "an image whose /sys is a link", "sys", "@"),
	IMAGE("image-init", "mount targets: CVE-2021-30465", "an image whose /.berth is a link",
	  ".berth", "@"),
	IMAGE("image-init-file", "mount targets: CVE-2021-30465",
	  "an image whose /.berth/init is a link",
	      ".berth", "/", ".berth/init", "@/secret"),
	IMAGE("image-etc", "files the host writes", "an image whose /etc is a link", "etc", "@"),
	IMAGE("image-up", "paths in archives: CVE-2021-29136", "an image with .. in its paths",
	      "../../../../../../..@/up", ""),
	IMAGE("image-through", "links in archives: CVE-2019-14271",
	  "an image that goes through a link of its own",
	      "l", "@", "l/through", ""),
	IMAGE("image-hard-link", "links in archives",
	  "an image with a hard link to a file of the host",
	      "=h", "@/secret"),
	IMAGE("image-link-parent", "links in archives", "an image with a link to .. of its root",
	      "l", "../../../../../../..@", "l/up", ""),
};
/* clang-format on */

void attack_expect_outside(struct attack *a)
{
	for (size_t i = 0; i < array_len(probes); i++)
		if (attack_wants(a, probes[i].name))
			findings_add(&a->found, probes[i].name, probes[i].stands_for,
				     probes[i].tries);
}

int attack_outside(struct attack *a, struct err *e)
{
	for (size_t i = 0; i < array_len(probes); i++) {
		struct trial t = {
			.attack = a,
			.finding = findings_find(&a->found, probes[i].name),
			.links = probes[i].links,
		};

		if (t.finding && probes[i].run(&t, e) < 0)
			finding_set(t.finding, VERDICT_UNKNOWN, "could not be tried: %.150s",
				    e->msg);
		if (a->stop->count)
			return -1;
	}
	return 0;
}
