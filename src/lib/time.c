#include "lib/time.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "lib/buf.h"
#include "lib/file.h"

static uint64_t clock_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t time_wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

uint64_t time_mono_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

uint64_t time_mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

uint64_t time_boot_ms(void)
{
	return clock_us(CLOCK_BOOTTIME) / 1000;
}

uint64_t time_booted_ms(void)
{
	return time_wall_ms() - time_boot_ms();
}

int time_boot_id(char out[BOOT_ID_SIZE], struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(64);

	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, e) < 0)
		return -1;
	snprintf(out, BOOT_ID_SIZE, "%.36s", buf_str(&text));
	return 0;
}

void time_text(uint64_t wall_ms, char out[TIME_TEXT_SIZE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(out, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, TIME_TEXT_SIZE - n, ".%03uZ", (unsigned)(wall_ms % 1000));
}
