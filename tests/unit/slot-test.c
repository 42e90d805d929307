#include "node/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/file.h"
#include "test.h"

struct place {
	char path[64];
	int dir;
	uv_loop_t loop;
};

static void place_open(struct place *p)
{
	snprintf(p->path, sizeof(p->path), "/tmp/slot-test-XXXXXX");
	CHECK(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p->dir >= 0 && uv_loop_init(&p->loop) == 0);
}

static void place_close(struct place *p)
{
	struct err e;

	CHECK_OK(file_remove_tree(AT_FDCWD, p->path, &e), &e);
	close_fd(&p->dir);
}

static struct slots *slots_new(struct place *p)
{
	struct slots *s = xcalloc(1, sizeof(*s));
	struct err e;

	s->loop = &p->loop;
	CHECK_OK(slots_open(s, p->dir, &e), &e);
	return s;
}

static void slots_free(struct slots *s)
{
	uv_loop_t *loop = s->loop;

	slots_close(s);
	uv_run(loop, UV_RUN_NOWAIT);
	free(s);
}

static uint32_t claim(struct slots *s)
{
	uint32_t number = SLOT_COUNT;
	struct err e;
	int netns;

	CHECK_OK(slot_claim(s, &number, &netns, &e), &e);
	CHECK_INT(netns, -1); /* none is warm here */
	CHECK(slot_is_used(s, number));
	return number;
}

static void check_none_left(struct slots *s)
{
	uint32_t number;
	struct err e;
	int netns;

	CHECK_ERR(slot_claim(s, &number, &netns, &e), &e, ERR_LIMIT);
}

TEST(a_number_is_one_sandboxs_and_rests_afterwards)
{
	struct place p;
	struct slots *s;
	uint32_t first, other;

	place_open(&p);
	s = slots_new(&p);
	first = claim(s);
	other = claim(s);
	CHECK(first != other);
	slot_rest(s, first);
	slot_give_back(s, first);
	CHECK(!slot_is_used(s, first));
	for (uint32_t i = 0; i < SLOT_COUNT - 2; i++)
		CHECK(claim(s) != first);
	check_none_left(s);
	slots_free(s);
	place_close(&p);
}

TEST(all_taken_or_resting_is_a_limit)
{
	struct place p;
	struct slots *s;

	place_open(&p);
	s = slots_new(&p);
	for (uint32_t i = 0; i < SLOT_COUNT; i++)
		(void)claim(s);
	check_none_left(s);
	slot_rest(s, 7);
	slot_give_back(s, 7);
	check_none_left(s);
	slot_give_back(s, 8); /* it was never anybody's to talk about */
	CHECK_INT(claim(s), 8);
	slots_free(s);
	place_close(&p);
}

TEST(who_comes_after_remembers_what_rests_and_what_was_next)
{
	struct place p;
	struct slots *s;
	uint32_t first, second;

	place_open(&p);
	s = slots_new(&p);
	first = claim(s);
	second = claim(s);
	slot_rest(s, first);
	slots_free(s); /* died before it could forget the number */

	s = slots_new(&p);
	slot_keep(s, second);
	for (uint32_t i = 0; i < SLOT_COUNT - 2; i++) {
		uint32_t number = claim(s);

		CHECK(number != first && number != second);
	}
	check_none_left(s);
	slots_free(s);
	place_close(&p);
}
