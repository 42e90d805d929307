#include "lib/time.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int boot_id_parse(const char *text, char out[BOOT_ID_SIZE], struct err *e)
{
	char id[BOOT_ID_SIZE] = { 0 };
	size_t n = 0;

	for (; *text && strchr("0123456789abcdef-", *text); text++) {
		if (*text == '-')
			continue;
		if (n == 8 || n == 13 || n == 18 || n == 23)
			id[n++] = '-';
		if (n == BOOT_ID_SIZE - 1)
			return err_set(e, ERR_INVALID, "a boot id is too long");
		id[n++] = *text;
	}
	if (n != BOOT_ID_SIZE - 1 || (*text && *text != '\n'))
		return err_set(e, ERR_INVALID, "a boot id has 32 digits of 16");
	memcpy(out, id, BOOT_ID_SIZE);
	return 0;
}

int time_boot_id(char out[BOOT_ID_SIZE], struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(64);
	const char *told = getenv("BERTH_BOOT_ID");

	if (told)
		return boot_id_parse(told, out, e);
	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, e) < 0)
		return err_fix(e, "Where /proc/sys is hidden, the unit has to say it: "
				  "Environment=BERTH_BOOT_ID=%%b");
	return boot_id_parse(buf_str(&text), out, e);
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
