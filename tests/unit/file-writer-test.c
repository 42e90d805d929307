/* Files are written beside the loop: a write that has to wait stops nothing else. */
#include "berthd/runtime/file-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/file.h"
#include "test.h"

#define BIG (FILE_WRITER_FULL / 2)

static uv_loop_t loop;
static struct file_writer w;
static int calls, last_error;
static char big[BIG];

static void on_written(struct file_writer *writer, int error)
{
	CHECK(writer == &w);
	calls++;
	last_error = error;
}

static void run_until_idle(void)
{
	while (w.busy)
		uv_run(&loop, UV_RUN_ONCE);
}

static void ticked(uv_timer_t *timer)
{
	*(int *)timer->data += 1;
}

static void finish(void)
{
	file_writer_close(&w);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&loop), 0);
}

TEST(a_write_that_waits_does_not_stop_the_loop)
{
	uv_timer_t timer;
	int ticks = 0, ends[2];
	size_t got = 0, added = 0;

	uv_loop_init(&loop);
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0); /* holds 64 KiB, then its writer waits */
	file_writer_open(&w, &loop, ends[1], on_written);
	CHECK(!file_writer_add(&w, big, BIG));
	added += BIG;

	uv_timer_init(&loop, &timer);
	timer.data = &ticks;
	uv_timer_start(&timer, ticked, 1, 1);
	while (ticks < 20)
		uv_run(&loop, UV_RUN_ONCE);
	CHECK(w.busy);
	CHECK_INT(calls, 0);

	/* What comes meanwhile is kept, up to what is full. */
	CHECK(!file_writer_add(&w, big, BIG));
	CHECK(file_writer_add(&w, big, BIG));
	added += 2UL * BIG;

	CHECK_INT(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	while (got < added) {
		ssize_t n = read(ends[0], big, sizeof(big));

		if (n > 0)
			got += (size_t)n;
		else
			CHECK_INT(errno, EAGAIN);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	run_until_idle();
	CHECK_INT(calls, 2);
	CHECK_INT(last_error, 0);
	CHECK(read(ends[0], big, sizeof(big)) < 0);

	uv_close((uv_handle_t *)&timer, NULL);
	finish();
	close(ends[0]);
	close(ends[1]);
}

TEST(the_file_has_every_byte_in_its_order)
{
	char path[] = "/tmp/file-writer.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	uint32_t n, word;

	uv_loop_init(&loop);
	CHECK(fd >= 0);
	CHECK_INT(unlink(path), 0);
	file_writer_open(&w, &loop, fd, on_written);
	for (n = 0; n < 100000; n++)
		if (file_writer_add(&w, &n, sizeof(n)))
			run_until_idle();
	run_until_idle();
	CHECK_INT(last_error, 0);
	CHECK_INT(lseek(fd, 0, SEEK_END), (off_t)(n * sizeof(n)));
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	for (n = 0; n < 100000; n++) {
		if (read(fd, &word, sizeof(word)) != sizeof(word) || word != n)
			break;
	}
	CHECK_INT(n, 100000);
	finish();
	close(fd);
}

TEST(an_error_is_told_and_nothing_is_written_after_it)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	uv_loop_init(&loop);
	CHECK(fd >= 0);
	file_writer_open(&w, &loop, fd, on_written);
	CHECK(!file_writer_add(&w, big, BIG));
	CHECK(!file_writer_add(&w, big, 1));
	run_until_idle();
	CHECK_INT(calls, 1);
	CHECK_INT(last_error, ENOSPC);
	CHECK(file_writer_add(&w, big, 1));
	CHECK(!w.busy);
	finish();
	close(fd);
}
