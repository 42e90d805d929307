#include "lib/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void close_fd(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

void free_ptr(void *pointer)
{
	free(*(void **)pointer);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *xrealloc(void *p, size_t size)
{
	void *grown = realloc(p, size ? size : 1);

	if (!grown)
		abort();
	return grown;
}

char *xstrdup(const char *s)
{
	char *copy = strdup(s);

	if (!copy)
		abort();
	return copy;
}
