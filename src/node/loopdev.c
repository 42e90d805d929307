#include "node/loopdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"

#define ATTACH_TRIES 16

/* By device and inode: the path the kernel shows may be of another mount namespace. */
static bool backs(const char *name, const struct stat *file, int *held)
{
	cleanup(close_fd) int fd = open(name, O_RDWR | O_CLOEXEC);
	struct loop_info64 info;

	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
		return false;
	if (info.lo_device != file->st_dev || info.lo_inode != file->st_ino)
		return false;
	*held = take_fd(fd);
	return true;
}

static bool find(const struct stat *file, char name[LOOPDEV_NAME_SIZE], int *held)
{
	cleanup(dir_closep) DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (!str_starts(entry->d_name, "loop"))
			continue;
		snprintf(name, LOOPDEV_NAME_SIZE, "/dev/%.20s", entry->d_name);
		if (backs(name, file, held))
			return true;
	}
	return false;
}

static int attach(int control, int file, char name[LOOPDEV_NAME_SIZE], int *held)
{
	struct loop_config config = { .fd = (unsigned)file,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	cleanup(close_fd) int fd = -1;
	int n = ioctl(control, LOOP_CTL_GET_FREE);

	if (n < 0)
		return -1;
	snprintf(name, LOOPDEV_NAME_SIZE, "/dev/loop%d", n);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		return -1;
	*held = take_fd(fd);
	return 0;
}

int loopdev_attach(const char *path, char name[LOOPDEV_NAME_SIZE], int *held, struct err *e)
{
	cleanup(close_fd) int file = open(path, O_RDWR | O_CLOEXEC);
	cleanup(close_fd) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0)
		return err_sys(e, errno, "open %s", path);
	if (find(&st, name, held))
		return 0;
	if (control < 0)
		return err_sys(e, errno, "open /dev/loop-control");
	/* Another process may take the free one first: ask again. */
	for (int i = 0; i < ATTACH_TRIES; i++)
		if (attach(control, file, name, held) == 0)
			return 0;
	return err_sys(e, errno, "attach %s to a loop device", path);
}
