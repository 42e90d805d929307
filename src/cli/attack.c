#include "cli/attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/list.h"
#include "cli/programs.h"
#include "cli/say.h"
#include "lib/file.h"
#include "lib/proc.h"
#include "lib/str.h"

#define PROGRAM_MAX (4UL << 20)
#define LIST_MAX    (256UL * 1024)
#define IMAGE_MAX   (16UL << 20)

/* The box for bombs: small, so that little is enough. */
#define BOMB_MEMORY 128 /* MiB */
#define BOMB_DISK   64
#define BOMB_PIDS   16
#define RUNSC_PIDS  (512 + 4 * BOMB_PIDS) /* on the host: gVisor's own and its stubs count */
#define BOMB_CPU    500                   /* thousandths */
#define OPEN_FILES  20000

static const struct sandbox_options bomb_box = {
	.memory = (uint64_t)BOMB_MEMORY << 20,
	.disk = (uint64_t)BOMB_DISK << 20,
	.pids = BOMB_PIDS,
	.cpu_milli = BOMB_CPU,
};

/* ---- what berth-probe has ---- */

static int read_program(struct attack *a, char path[PATH_MAX], struct err *e)
{
	a->program = buf_make(PROGRAM_MAX);
	return program_find("berth-probe", path, e) < 0 ||
			       file_read(AT_FDCWD, path, &a->program, e) < 0
		       ? -1
		       : 0;
}

int attack_here(const char *const *words, struct buf *out, struct err *e)
{
	char program[PATH_MAX];
	const char *argv[4] = { program };
	struct proc_spec spec = { .argv = argv, .in = -1, .err = -1 };
	cleanup(close_fd) int from = -1;
	struct proc proc;
	char some[4096];
	int ends[2];
	ssize_t n;

	for (size_t i = 0; words[i] && i + 2 < array_len(argv); i++)
		argv[i + 1] = words[i];
	if (program_find("berth-probe", program, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, ERR_INTERNAL, "no pipe");
	from = ends[0];
	spec.out = ends[1];
	n = proc_start(&spec, &proc, e);
	close(ends[1]);
	if (n < 0)
		return -1;
	while ((n = read(from, some, sizeof(some))) > 0)
		buf_add(out, some, (size_t)n);
	if (proc_wait(&proc) != 0)
		return err_set(e, ERR_INTERNAL, "%s %s did not work", program, words[0]);
	return 0;
}

/* The next line, cut into its fields; false at the end. */
static bool next_row(char **text, char *fields[], size_t count)
{
	char *line = *text, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return false;
	*end = '\0';
	*text = end + 1;
	for (size_t i = 0; i < count; i++) {
		fields[i] = line ? line : (char *)"";
		line = line ? strchr(line, '\t') : NULL;
		if (line)
			*line++ = '\0';
	}
	return true;
}

/* Every probe that was asked for gets its row before anything is tried. */
static int expect(struct attack *a, struct strv *bombs, struct strv *shared, struct err *e)
{
	static const char *const words[] = { "list", NULL };
	cleanup(buf_done) struct buf list = buf_make(LIST_MAX);
	char *text, *f[4];

	if (attack_here(words, &list, e) < 0)
		return -1;
	text = list.data;
	while (next_row(&text, f, array_len(f))) {
		bool other_engine = strcmp(f[3], "runsc") == 0 && strcmp(a->runtime, "runsc") != 0;

		if (!attack_wants(a, f[0]) || other_engine)
			continue;
		findings_add(&a->found, f[0], f[1], f[2]);
		if (strcmp(f[3], "bomb") == 0)
			strv_add(bombs, f[0]);
		else if (strcmp(f[3], "shared") == 0)
			strv_add(shared, f[0]);
	}
	return 0;
}

static void take_rows(struct attack *a, struct buf *out)
{
	char *text = out->len ? out->data : NULL, *f[5];

	while (next_row(&text, f, array_len(f))) {
		struct finding *x = findings_find(&a->found, f[0]);

		if (x)
			finding_set(x, verdict_by_name(f[3]), "%s", f[4]);
	}
}

/* ---- the boxes ---- */

static int make_image(struct attack *a, struct err *e)
{
	const struct attack_entry entries[] = {
		{ TAR_DIRECTORY, "tmp" },
		{ TAR_DIRECTORY, "root" },
		{ TAR_DIRECTORY, "mnt" },
		{ TAR_DIRECTORY, "etc" },
		{ TAR_FILE, "etc/shared", .bytes = "of the image", .len = 12 },
		{ TAR_FILE, &ATTACK_PROBE[1], .bytes = a->program.data, .len = a->program.len },
	};
	cleanup(buf_done) struct buf tar = buf_make(IMAGE_MAX);

	attack_tar(&tar, entries, array_len(entries));
	snprintf(a->image, sizeof(a->image), ATTACK_LABEL "-%s", a->canary.id);
	if (attack_import(a, a->image, &tar, e) == 0)
		return 0;
	a->image[0] = '\0';
	return err_wrap(e, "the probes' image");
}

static int make_neighbour(struct attack *a, struct err *e)
{
	cleanup(strv_done) struct strv words = { 0 };

	if (attack_create(a, a->image, NULL, a->neighbour, e) < 0)
		return -1;
	strv_add(&words, "neighbour");
	strv_add(&words, a->canary.token);
	strv_addf(&words, "%u", a->canary.port);
	strv_addf(&words, "%d", a->canary.key);
	return attack_start(a, a->neighbour, &words, e);
}

/* What berth-probe says in the neighbour, for these one or two words. */
static void ask_neighbour(const struct attack *a, const char *word, const char *more,
			  struct attack_answer *ret)
{
	cleanup(strv_done) struct strv words = { 0 };
	struct err ignored;

	strv_add(&words, word);
	if (more)
		strv_add(&words, more);
	(void)!attack_exec(a, a->neighbour, NULL, &words, ret, &ignored);
}

/* Its user ids, to compare with ours, and its addresses. */
static void add_neighbour(const struct attack *a, struct strv *words)
{
	cleanup(attack_answer_done) struct attack_answer ids = { 0 }, addresses = { 0 };
	char *text, *field[1];

	ask_neighbour(a, "show", "/proc/self/uid_map", &ids);
	text = ids.out.data;
	if (next_row(&text, field, 1))
		strv_addf(words, "ids=%s", field[0]);
	ask_neighbour(a, "addresses", NULL, &addresses);
	text = addresses.out.data;
	while (next_row(&text, field, 1))
		strv_addf(words, "address=%s", field[0]);
}

static void api_port(const struct attack *a, struct strv *words)
{
	const char *colon = strrchr(a->context->url, ':');

	if (colon && colon[1] >= '0' && colon[1] <= '9')
		strv_addf(words, "api=%.5s", colon + 1);
}

static void run_words(const struct attack *a, struct strv *words)
{
	struct utsname u = { 0 };

	(void)uname(&u);
	strv_add(words, "run");
	strv_addf(words, "engine=%s", a->runtime);
	strv_addf(words, "token=%s", a->canary.token);
	strv_addf(words, "file=%s", a->canary.file);
	strv_addf(words, "release=%s", u.release);
	strv_addf(words, "name=%s", u.nodename);
	strv_addf(words, "pid=%d", (int)a->canary.server);
	strv_addf(words, "port=%u", a->canary.port);
	strv_addf(words, "key=%d", a->canary.key);
	api_port(a, words);
	for (size_t i = 0; i < a->canary.addresses.len; i++)
		strv_addf(words, "address=%s", a->canary.addresses.items[i]);
	add_neighbour(a, words);
}

/* ---- the probes ---- */

static bool is_in(const struct strv *list, const char *name)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->items[i], name) == 0)
			return true;
	return false;
}

/* All but the bombs, which have a box of their own. */
static int run_quiet(struct attack *a, const struct strv *bombs, struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };
	cleanup(strv_done) struct strv words = { 0 };
	cleanup(buf_done) struct buf only = buf_make(LIST_MAX);

	run_words(a, &words);
	for (size_t i = 0; i < a->only->len; i++)
		if (!is_in(bombs, a->only->items[i]))
			buf_addf(&only, "%s%s", only.len ? "," : "only=", a->only->items[i]);
	if (only.len)
		strv_add(&words, buf_str(&only));
	else if (a->only->len)
		return 0;
	if (attack_exec(a, a->box, NULL, &words, &answer, e) < 0)
		return -1;
	take_rows(a, &answer.out);
	return 0;
}

/* The neighbour still works. */
static bool neighbour_lives(const struct attack *a)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };

	ask_neighbour(a, "where", NULL, &answer);
	return strcmp(buf_str(&answer.out), "inside\n") == 0;
}

/* A box that did not survive its own bomb is one that held. */
static int run_bomb(struct attack *a, const char *name, char id[SANDBOX_ID_SIZE], struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };
	cleanup(strv_done) struct strv words = { 0 };
	struct finding *x = findings_find(&a->found, name);

	if (!id[0] && attack_create(a, a->image, &bomb_box, id, e) < 0)
		return -1;
	strv_add(&words, "run");
	strv_addf(&words, "engine=%s", a->runtime);
	strv_addf(&words, "only=%s", name);
	strv_addf(&words, "memory=%d", BOMB_MEMORY);
	strv_addf(&words, "disk=%d", BOMB_DISK);
	strv_addf(&words, "pids=%d",
		  strcmp(a->runtime, "runsc") == 0 ? RUNSC_PIDS : BOMB_PIDS);
	strv_addf(&words, "cpu=%d", BOMB_CPU);
	strv_addf(&words, "files=%d", OPEN_FILES);
	if (attack_exec(a, id, NULL, &words, &answer, e) < 0) {
		finding_set(x, VERDICT_UNKNOWN, "%.150s", e->msg);
		attack_delete(a, id);
	} else {
		take_rows(a, &answer.out);
		if (strcmp(answer.kind, "exited") != 0) {
			if (x->verdict == VERDICT_UNKNOWN && strcmp(answer.kind, "timed_out") != 0)
				finding_set(x, VERDICT_HELD, "its box ended it: %s", answer.kind);
			attack_delete(a, id);
		}
	}
	if (!neighbour_lives(a))
		finding_set(x, VERDICT_THROUGH, "the neighbour did not answer after it");
	return 0;
}

static int run_bombs(struct attack *a, const struct strv *bombs, struct err *e)
{
	char id[SANDBOX_ID_SIZE] = "";
	int n = 0;

	for (size_t i = 0; i < bombs->len && n == 0; i++)
		n = run_bomb(a, bombs->items[i], id, e);
	attack_delete(a, id);
	return n;
}

/* ---- what an attack that was killed has left ---- */

static int delete_page(void *arg, const struct client_reply *page, struct err *e)
{
	const struct attack *a = arg;
	const struct json *list = json_get(page->tree, "sandboxes");

	for (size_t i = 0; i < json_len(list); i++)
		if (sandbox_delete(a->context, json_get_str(json_at(list, i), "id"), NULL, e) < 0)
			return -1;
	return 0;
}

static int clear(void *arg, const char *id, struct err *e)
{
	const struct attack *a = arg;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	char path[128], prefix[64];
	const struct json *list;

	say("removing what an attack that was killed has left");
	snprintf(path, sizeof(path), "/v1/sandboxes?selector=" ATTACK_LABEL "%%3D%s", id);
	snprintf(prefix, sizeof(prefix), ATTACK_LABEL "-%s", id);
	if (list_pages(a->context, path, delete_page, arg, e) < 0 ||
	    client_call(a->context, "GET", "/v1/images", NULL, &reply, e) < 0)
		return -1;
	list = json_get(reply.tree, "images");
	for (size_t i = 0; i < json_len(list); i++)
		if (str_starts(json_get_str(json_at(list, i), "name"), prefix))
			attack_remove_image(a, json_get_str(json_at(list, i), "name"));
	return 0;
}

static int prepare(struct attack *a, struct strv *bombs, struct strv *shared, struct err *e)
{
	char path[PATH_MAX];

	if (canary_sweep(clear, a, e) < 0 || read_program(a, path, e) < 0 ||
	    expect(a, bombs, shared, e) < 0)
		return -1;
	attack_expect_outside(a);
	for (size_t i = 0; i < a->only->len; i++)
		if (!findings_find(&a->found, a->only->items[i]))
			return err_set(e, ERR_INVALID, "there is no probe \"%.60s\" for %s",
				       a->only->items[i], a->runtime);
	if (canary_open(&a->canary, e) < 0 || make_image(a, e) < 0 || make_neighbour(a, e) < 0)
		return -1;
	return attack_create(a, a->image, NULL, a->box, e);
}

static void end(struct attack *a)
{
	attack_delete(a, a->box);
	attack_delete(a, a->neighbour);
	attack_remove_image(a, a->image);
	canary_close(&a->canary);
	buf_done(&a->program);
	findings_done(&a->found);
}

int attack_run(const struct context *c, const char *runtime, const struct strv *only,
	       struct interrupt *stop, struct findings *ret, struct err *e)
{
	cleanup(strv_done) struct strv bombs = { 0 }, shared = { 0 };
	cleanup(end) struct attack a = {
		.context = c,
		.runtime = runtime,
		.only = only,
		.stop = stop,
	};

	if (prepare(&a, &bombs, &shared, e) < 0 || run_quiet(&a, &bombs, e) < 0)
		return -1;
	attack_shared(&a, &shared);
	if (run_bombs(&a, &bombs, e) < 0 || attack_outside(&a, e) < 0)
		return -1;
	*ret = a.found;
	a.found = (struct findings){ 0 };
	return 0;
}
