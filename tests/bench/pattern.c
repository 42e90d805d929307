/*
 * pattern write MIB   the pattern on standard output, 128 KiB at a time
 * pattern check       how many bytes came on standard input; fails at the first wrong one
 *
 * Static: the same program writes in a sandbox and into a bare pipe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pattern.h"

#define CHUNK (128 * 1024)

static uint64_t words[CHUNK / 8];

static int write_all(const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_pattern(uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes; done += CHUNK) {
		pattern_fill(words, CHUNK / 8, done / 8);
		if (write_all((const uint8_t *)words, CHUNK) < 0)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static int check_pattern(void)
{
	uint64_t offset = 0;
	ssize_t n;

	while ((n = read(STDIN_FILENO, words, CHUNK)) > 0) {
		if (!pattern_ok((const uint8_t *)words, (size_t)n, offset))
			return EXIT_FAILURE;
		offset += (uint64_t)n;
	}
	printf("%llu\n", (unsigned long long)offset);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		return write_pattern(strtoull(argv[2], NULL, 10) * 1024 * 1024);
	if (argc == 2 && strcmp(argv[1], "check") == 0)
		return check_pattern();
	return 2;
}
