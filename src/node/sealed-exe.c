#include "node/sealed-exe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

void sealed_exe_done(struct sealed_exe *p)
{
	close_fd(&p->fd);
	p->fd = -1;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	/* Before 6.3 every memory file can be executed, and the kernel does not know the flag. */
	return fd >= 0 ? fd : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static int copy_sealed(int source, off_t size, const char *name)
{
	cleanup(close_fd) int fd = memory_file(name);
	off_t left = size;

	while (fd >= 0 && left > 0) {
		ssize_t n = sendfile(fd, source, NULL, (size_t)left);

		if (n <= 0)
			return -1;
		left -= n;
	}
	if (fd < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -1;
	return take_fd(fd);
}

int sealed_exe_of(struct sealed_exe *p, const char *path)
{
	cleanup(close_fd) int source = open(path, O_RDONLY | O_CLOEXEC);
	const char *slash = strrchr(path, '/');
	struct stat now;

	if (source < 0 || fstat(source, &now) < 0)
		return -1;
	if (p->fd >= 0 && same(&p->of, &now))
		return p->fd;
	sealed_exe_done(p);
	p->fd = copy_sealed(source, now.st_size, slash ? slash + 1 : path);
	p->of = now;
	return p->fd;
}
