/* Limits of a user or of the whole host: what one box takes must not be missing elsewhere. */
#include <stdio.h>
#include <string.h>

#include "cli/attack.h"

#define SAID_MAX 4096

/* The first line berth-probe says to two words in a sandbox, or on the host without one. */
static int ask(const struct attack *a, const char *id, const char *const words[3],
	       char said[SAID_MAX], struct err *e)
{
	cleanup(attack_answer_done) struct attack_answer answer = { 0 };
	cleanup(strv_done) struct strv list = { 0 };

	if (!id) {
		answer.out = buf_make(SAID_MAX);
		if (attack_here(words, &answer.out, e) < 0)
			return -1;
	} else {
		strv_add(&list, words[0]);
		strv_add(&list, words[1]);
		if (attack_exec(a, id, NULL, &list, &answer, e) < 0)
			return -1;
	}
	snprintf(said, SAID_MAX, "%s", buf_str(&answer.out));
	said[strcspn(said, "\n")] = '\0';
	return 0;
}

struct place {
	const char *name, *id; /* NULL: the host */
	bool had;              /* one, before it was tried */
};

/* What the box has then, if it still is: one that did not survive it has nothing. */
static void hold(struct attack *a, const char *name, char id[SANDBOX_ID_SIZE], char held[SAID_MAX])
{
	struct err e = { .msg = "it said nothing" };

	if (ask(a, id, (const char *const[3]){ "hold", name }, held, &e) == 0 && held[0])
		return;
	snprintf(held, SAID_MAX, " ended: %.80s", e.msg);
	attack_delete(a, id);
}

static void release(const struct attack *a, const char *id, const char *held)
{
	char pid[16], said[SAID_MAX];
	struct err ignored;

	snprintf(pid, sizeof(pid), "%.*s", (int)strspn(held, "0123456789"), held);
	if (id[0])
		(void)!ask(a, id, (const char *const[3]){ "release", pid }, said, &ignored);
}

static int try_shared(struct attack *a, const char *name, char id[SANDBOX_ID_SIZE], struct err *e)
{
	const char *const one[3] = { "one", name };
	struct place places[] = { { "the neighbour", a->neighbour, false },
				  { "the host", NULL, false } };
	struct finding *x = findings_find(&a->found, name);
	char held[SAID_MAX], said[SAID_MAX];

	if (!id[0] && attack_create(a, a->image, NULL, id, e) < 0)
		return -1;
	for (size_t i = 0; i < array_len(places); i++) {
		if (ask(a, places[i].id, one, said, e) < 0)
			return -1;
		places[i].had = strcmp(said, "ok") == 0;
	}
	hold(a, name, id, held);
	finding_set(x, VERDICT_HELD, "others still get one; the box:%.100s",
		    held + strspn(held, "0123456789"));
	for (size_t i = 0; i < array_len(places); i++) {
		/* Where it was had, and now nothing can even be run, it is missing as well. */
		if (ask(a, places[i].id, one, said, e) < 0)
			snprintf(said, sizeof(said), "%.150s", e->msg);
		if (places[i].had && strcmp(said, "ok") != 0)
			finding_set(x, VERDICT_THROUGH, "%s gets none: %.100s", places[i].name,
				    said);
	}
	release(a, id, held);
	return 0;
}

void attack_shared(struct attack *a, const struct strv *names)
{
	char id[SANDBOX_ID_SIZE] = "";
	struct err e;

	for (size_t i = 0; i < names->len; i++)
		if (try_shared(a, names->items[i], id, &e) < 0)
			finding_set(findings_find(&a->found, names->items[i]), VERDICT_UNKNOWN,
				    "could not be tried: %.150s", e.msg);
	attack_delete(a, id);
}
