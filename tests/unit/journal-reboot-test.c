/* A command whose end was not seen: was its host started again? */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berthd/journal/journal.h"
#include "lib/file.h"
#include "lib/str.h"
#include "test.h"

#define SANDBOX "sb_c1_0123456789abcdefghij"

static struct journals js;
static char dir[] = "journal-reboot-XXXXXX";

static void remove_dir(void)
{
	struct err ignored;

	(void)!file_remove_tree(AT_FDCWD, dir, &ignored);
}

static void open_all(const char *boot_id)
{
	struct err e;

	if (js.dir == 0)
		CHECK(mkdtemp(dir) && atexit(remove_dir) == 0);
	CHECK_OK(journals_open(&js, dir, 1000, &e), &e);
	CHECK(str_copy(js.boot_id, sizeof(js.boot_id), boot_id));
}

static void begin(const char *id)
{
	struct journal_head h = { .generation = 7 };
	struct journal *j;
	struct err e;

	CHECK(str_copy(h.owner, sizeof(h.owner), "me"));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), SANDBOX));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	journal_unref(j);
}

TEST(a_restart_of_the_host_is_told_by_its_boot_id)
{
	static const char one[] = "11111111-2222-3333-4444-555555555555";
	static const char other[] = "99999999-2222-3333-4444-555555555555";
	static const struct {
		const char *id, *began, *ended;
		enum journal_reboot told;
	} cases[] = {
		{ "rebooted", one, other, JOURNAL_REBOOTED },
		{ "same", one, one, JOURNAL_SAME_BOOT },
		{ "of-an-older-berthd", "", one, JOURNAL_REBOOT_UNKNOWN },
		{ "told-nothing", one, "", JOURNAL_REBOOT_UNKNOWN },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		const struct exec_exit lost = { .kind = EXEC_LOST };
		struct journal *j;
		struct err e;

		open_all(cases[i].began);
		begin(cases[i].id);
		journals_close(&js);
		open_all(cases[i].ended);
		CHECK_OK(journal_find(&js, SANDBOX, cases[i].id, &j, &e), &e);
		CHECK_OK(journal_end(j, &lost, &(struct exec_usage){ 0 }, false, &e), &e);
		journal_unref(j);
		CHECK_OK(journal_find(&js, SANDBOX, cases[i].id, &j, &e), &e); /* as written */
		CHECK_INT(j->slot.reboot, cases[i].told);
		journal_unref(j);
		journals_close(&js);
	}
}

static uint64_t cut(const char *id, uint64_t size)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/journal/%s/%s", dir, SANDBOX, id);
	CHECK(stat(path, &st) == 0 && truncate(path, (off_t)size) == 0);
	return (uint64_t)st.st_size;
}

/* A power cut leaves a name without its bytes; for a command it is as if it had never begun. */
TEST(a_journal_whose_head_was_never_written_is_removed_at_the_start)
{
	struct journal *j;
	uint64_t head;
	struct err e;

	open_all("");
	begin("cut");
	CHECK(!journal_remove_unwritten(&js, SANDBOX, "cut"));
	head = cut("cut", 0);
	for (uint64_t at = 0; at < head; at++) {
		cut("cut", at);
		CHECK(journal_remove_unwritten(&js, SANDBOX, "cut"));
		CHECK_ERR(journal_find(&js, SANDBOX, "cut", &j, &e), &e, ERR_NOT_FOUND);
		begin("cut");
	}
	cut("cut", 0);
	cut("cut", head); /* zeros */
	CHECK(journal_remove_unwritten(&js, SANDBOX, "cut"));
	CHECK(!journal_remove_unwritten(&js, SANDBOX, "cut"));
	journals_close(&js);
}
