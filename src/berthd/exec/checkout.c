#include "berthd/exec/checkout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/exec.h"
#include "berthd/exec/file-op.h"
#include "berthd/exec/input.h"
#include "lib/id.h"

#define SAID_MAX  (64UL * 1024) /* of each stream */
#define ASK_TIMES 8             /* how often git may ask for the credentials */

/* clang-format off */
static const char script[] =
	"p=$1 u=$2 d=$3 b=$4 r=$5 o=$6 t=$7 s=$8 again=$9 w=$7\n"
	"command -v git >/dev/null 2>&1 || exit 97\n"
	"if [ -e \"$p\" ] || [ -L \"$p\" ]; then\n"
	"	if [ -n \"$again\" ] && [ -e \"$p/.git\" ] &&\n"
	"	   [ \"$(git -C \"$p\" config remote.origin.url)\" = \"$u\" ]; then\n"
	"		w=$p\n"
	"	else\n"
	"		[ -d \"$p\" ] && [ -z \"$(ls -A \"$p\")\" ] || exit 98\n"
	"	fi\n"
	"fi\n"
	"exec 3<&0 </dev/null\n"
	"unset GIT_TRACE GIT_TRACE_CURL GIT_TRACE_PACKET GIT_CURL_VERBOSE GIT_DIR GIT_WORK_TREE\n"
	"trap 'rm -rf \"$t\"' EXIT\n"
	"mkdir -p \"${t%/*}/\" || exit 1\n"
	"h='!f() { test \"$1\" = get || exit 0; read -r a <&3; read -r b <&3;"
	" printf \"%s\\n%s\\n\" \"$a\" \"$b\"; }; f'\n"
	"g() { git -c core.hooksPath=/dev/null -c credential.helper="
	" ${o:+-c \"credential.$o.helper=$h\"} \"$@\"; }\n"
	"l() { git -C \"$w\" -c core.hooksPath=/dev/null \"$@\" 3<&-; }\n"
	/* fetch_branch NAME [DEPTH]: whether the remote has it, and then it is here, too. */
	"fetch_branch() {\n"
	"	x=$(g -C \"$w\" ls-remote origin \"refs/heads/$1\") || exit $?\n"
	"	[ -n \"$x\" ] || return 1\n"
	"	n=$1; shift\n"
	"	[ $# = 0 ] || l remote set-branches --add origin \"$n\"\n"
	"	g -C \"$w\" fetch -q \"$@\" origin"
	" \"+refs/heads/$n:refs/remotes/origin/$n\" || exit $?\n"
	"}\n"
	/* go_to NAME: local and remote, local only, remote only. 1 if it is neither. */
	"go_to() {\n"
	"	n=$1; shift\n"
	"	fetch_branch \"$n\" \"$@\"; there=$?\n"
	"	if l show-ref -q --verify \"refs/heads/$n\"; then\n"
	"		l checkout -q \"$n\" -- || exit $?\n"
	"		[ $there = 1 ] || l merge -q --ff-only \"origin/$n\" >/dev/null 2>&1\n"
	"		return 0\n"
	"	fi\n"
	"	[ $there = 0 ] || return 1\n"
	"	l checkout -q -b \"$n\" --track \"origin/$n\" || exit $?\n"
	"}\n"
	"absent() { echo \"fatal: Remote branch $1 not found in origin\" >&2; exit 128; }\n"
	"set --\n"
	"[ \"$d\" = 0 ] || set -- --depth \"$d\"\n"
	"if [ \"$w\" = \"$p\" ]; then\n"
	"	if [ -n \"$r\" ]; then\n"
	"		g -C \"$w\" fetch -q \"$@\" origin \"$r\" || exit $?\n"
	"		c=$(l rev-parse FETCH_HEAD)\n"
	"		[ -n \"$s\" ] || l checkout -q --detach \"$c\" || exit $?\n"
	"	else\n"
	"		[ -n \"$b\" ] || b=$(g -C \"$w\" ls-remote --symref origin HEAD |\n"
	"			sed -n 's|^ref: refs/heads/\\(.*\\)\tHEAD$|\\1|p')\n"
	"		fetch_branch \"$b\" \"$@\" || absent \"$b\"\n"
	"		c=refs/remotes/origin/$b\n"
	"		[ -n \"$s\" ] || go_to \"$b\" \"$@\"\n"
	"	fi\n"
	"elif [ -n \"$r\" ]; then\n"
	"	g clone -q --no-checkout \"$@\" -- \"$u\" \"$t\" || exit $?\n"
	"	if git -C \"$t\" rev-parse -q --verify \"$r^{commit}\" >/dev/null 2>&1; then\n"
	"		git -C \"$t\" checkout -q --detach \"$r\" || exit $?\n"
	"	else\n"
	"		g -C \"$t\" fetch -q \"$@\" origin \"$r\" || exit $?\n"
	"		git -C \"$t\" checkout -q --detach FETCH_HEAD || exit $?\n"
	"	fi\n"
	"else\n"
	"	g clone -q \"$@\" ${b:+--branch \"$b\"} -- \"$u\" \"$t\" || exit $?\n"
	"fi\n"
	"if [ -n \"$s\" ]; then\n"
	"	[ \"$w\" = \"$p\" ] || c=HEAD\n"
	"	go_to \"$s\" \"$@\" || l checkout -q --no-track -b \"$s\" \"$c\" || exit $?\n"
	"fi\n"
	"c=$(git -C \"$w\" rev-parse -q --verify HEAD)\n"
	"n=$(git -C \"$w\" symbolic-ref -q --short HEAD)\n"
	"if [ \"$w\" = \"$t\" ]; then\n"
	"	rmdir \"$p\" 2>/dev/null\n"
	"	[ -e \"$p\" ] && exit 98\n"
	"	mv \"$t\" \"$p\" || exit 1\n"
	"fi\n"
	"printf '%s\\n%s\\n' \"$c\" \"$n\"\n";

static const char *const environment[] = {
	"LC_ALL=C",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=",
	"SSH_ASKPASS=",
	"GIT_ALLOW_PROTOCOL=https:http:git:file",
};
/* clang-format on */

struct checkout {
	struct caller by;
	const char *sandbox;
	struct git_checkout ask;
	struct tail *tail; /* NULL: the script has ended */
	struct exec_input input;
	struct buf out[2];
	char temp[GIT_PATH_SIZE]; /* where it is put together */
	struct file_op *sweep;    /* of what the script left there */
	struct err why;
	checkout_fn done; /* NULL: the caller is gone */
	void *data;
};

static void checkout_free(struct checkout *k)
{
	if (k->tail)
		tail_close(k->tail);
	file_op_close(k->sweep);
	exec_input_done(&k->input);
	buf_done(&k->out[0]);
	buf_done(&k->out[1]);
	explicit_bzero(&k->ask, sizeof(k->ask));
	free(k);
}

static void on_started(struct tail *t, uint32_t pid)
{
	struct checkout *k = t->data;

	(void)pid;
	exec_input_send(&k->input, t->exec);
}

static bool on_output(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	struct checkout *k = t->data;

	buf_add(&k->out[stream == FRAME_STDERR], data, len); /* what is too much is not needed */
	return false;
}

static struct bytes line(const char *from)
{
	return (struct bytes){ (const uint8_t *)from, strcspn(from, "\n") };
}

static void succeed(struct checkout *k)
{
	const char *commit = buf_str(&k->out[0]), *end = strchr(commit, '\n');
	struct checkout_result result = {
		.path = k->ask.path,
		.commit = line(commit),
		.branch = line(end ? end + 1 : ""),
	};

	k->done(k->data, &result, NULL);
	checkout_free(k);
}

static void fail(struct checkout *k)
{
	if (k->done)
		k->done(k->data, NULL, &k->why);
	checkout_free(k);
}

/* ---- what a script that was ended in the middle has left ---- */

static void on_swept(void *data, const struct file_result *result)
{
	(void)result;
	fail(data);
}

/* Removed or not: to the caller it does not matter which. */
static void on_not_swept(void *data, const struct err *why, bool unsure)
{
	(void)why, (void)unsure;
	fail(data);
}

static const struct file_op_sink sweep_sink = { .done = on_swept, .failed = on_not_swept };

/* It goes, then the answer. */
static void sweep_and_fail(struct checkout *k)
{
	struct file_request ask = { .verb = FILE_REMOVE, .flags = FILE_RECURSIVE };
	struct file_begin b = { &k->by, k->sandbox, &ask, &sweep_sink, k };
	struct err e;

	snprintf(ask.path, sizeof(ask.path), "%s", k->temp);
	if (file_op_begin(&b, &k->sweep, &e) < 0)
		fail(k);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct checkout *k = t->data;

	tail_close(take_ptr(k->tail));
	if (why) {
		k->why = *why;
		return fail(k);
	}
	if (exit->kind == EXEC_EXITED && exit->code == 0)
		return succeed(k);
	if (exit->kind == EXEC_EXITED) {
		git_failure((int)exit->code, buf_str(&k->out[1]), &k->why);
		return fail(k);
	}
	if (exit->kind == EXEC_TIMED_OUT) {
		git_timed_out(&k->ask, &k->why);
	} else {
		err_set(&k->why, ERR_TIMEOUT, "git was ended in the middle: %s",
			exec_kind_name(exit->kind));
		err_fix(&k->why, "Look whether it is there; if not, send it again, without the "
				 "Idempotency-Key it had.");
	}
	sweep_and_fail(k);
}

static const struct tail_events events = {
	.started = on_started,
	.output = on_output,
	.finished = on_finished,
};

/* ---- its beginning ---- */

static char *credentials(const struct git_checkout *c)
{
	cleanup(buf_done) struct buf text = buf_make(ASK_TIMES * 4 * GIT_SECRET_SIZE);

	if (!c->password[0])
		return NULL;
	for (int i = 0; i < ASK_TIMES; i++)
		buf_addf(&text, "username=%s\npassword=%s\n", c->username, c->password);
	return take_ptr(text.data);
}

static void make_command(const struct checkout *k, struct exec_request *q)
{
	char origin[GIT_URL_SIZE], depth[24];
	const char *argv[] = { "/bin/sh", "-c", script, "git-checkout", k->ask.path,
			       k->ask.url, depth, k->ask.branch, k->ask.ref, origin,
			       k->temp, k->ask.session_branch, k->ask.reuse ? "1" : "" };

	git_origin(&k->ask, origin);
	snprintf(depth, sizeof(depth), "%lld", (long long)k->ask.depth);
	if (!k->ask.password[0])
		origin[0] = '\0';
	for (size_t i = 0; i < array_len(argv); i++)
		strv_add(&q->argv, argv[i]);
	for (size_t i = 0; i < array_len(environment); i++)
		strv_add(&q->env, environment[i]);
	memcpy(q->cwd, "/", 2);
	q->timeout_ms = (uint64_t)k->ask.timeout_ms;
	q->flags = k->ask.password[0] ? EXEC_STDIN : 0;
}

/* Beside the target, so that it can take its place in one step. */
static void choose_temp(struct checkout *k)
{
	const char *slash = strrchr(k->ask.path, '/');
	char random[13];

	id_random(random, 12);
	snprintf(k->temp, sizeof(k->temp), "%.*s/.berth-git-%s", (int)(slash - k->ask.path),
		 k->ask.path, random);
}

void checkout_begin(const struct caller *by, const struct checkout_begin *b, checkout_fn done,
		    void *data, void **held)
{
	struct exec_begin begin = { .sandbox = b->sandbox };
	struct checkout *k = xcalloc(1, sizeof(*k));

	k->by = *by;
	k->sandbox = b->sandbox;
	k->ask = *b->ask;
	k->done = done;
	k->data = data;
	k->out[0] = buf_make(SAID_MAX);
	k->out[1] = buf_make(SAID_MAX);
	choose_temp(k);
	make_command(k, &begin.ask);
	memcpy(begin.key, b->key, sizeof(begin.key));
	memcpy(begin.body, b->body, sizeof(begin.body));
	exec_input_init(&k->input, credentials(&k->ask));
	k->tail = tail_new(by->reactor, &events, k);
	*held = k;
	exec_begin(by, &begin, k->tail);
}

void checkout_cancel(struct checkout *k)
{
	k->done = NULL;
	if (!k->tail)
		return; /* what it left is being removed */
	exec_abandon(k->tail);
	checkout_free(k);
}
