#include "lib/id.h"

#include <stdlib.h>
#include <sys/random.h>

void id_random(char *out, size_t chars)
{
	static const char table[] = "0123456789abcdefghijklmnopqrstuv";

	if (getrandom(out, chars, 0) != (ssize_t)chars)
		abort(); /* up to 256 bytes never fail once the pool is ready */
	for (size_t i = 0; i < chars; i++)
		out[i] = table[(unsigned char)out[i] & 31];
	out[chars] = '\0';
}

uint64_t id_number(void)
{
	uint64_t n = 0;

	while (n == 0) {
		if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
			abort();
		n >>= 11;
	}
	return n;
}
