#include "node/devices.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "test.h"

#define FIRST 1000000
#define COUNT 131072

/* Nodes can be made by root alone, and not in every container. */
static bool place_open(char path[64])
{
	char node[80];

	snprintf(path, 64, "/tmp/devices-test-XXXXXX");
	CHECK(mkdtemp(path));
	snprintf(node, sizeof(node), "%s/random", path);
	return mknod(node, S_IFCHR | 0666, makedev(1, 8)) == 0 && chmod(node, 0666) == 0;
}

static void place_close(const char *path)
{
	struct err e;

	CHECK_OK(file_remove_tree(AT_FDCWD, path, &e), &e);
}

static void make_node(const char *dir, const char *name, unsigned minor, mode_t mode, uid_t owner)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_INT(mknod(path, S_IFCHR | 0600, makedev(1, minor)), 0);
	CHECK_INT(chown(path, owner, owner), 0);
	CHECK_INT(chmod(path, mode), 0);
}

static struct stat look(const char *dir, const char *name)
{
	struct stat st = { 0 };
	char path[80];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_INT(lstat(path, &st), 0);
	return st;
}

TEST(only_what_a_sandbox_has_is_repaired)
{
	char dir[64], link[80];
	struct stat st;

	if (place_open(dir)) {
		make_node(dir, "null", 3, 0, FIRST + COUNT - 1);
		make_node(dir, "zero", 5, 0640, FIRST - 1);
		make_node(dir, "full", 7, 0640, FIRST + COUNT);
		make_node(dir, "tty", 9, 0600, FIRST); /* of another number: not that device */
		snprintf(link, sizeof(link), "%s/urandom", dir);
		CHECK_INT(symlink("zero", link), 0);
		CHECK_INT(lchown(link, FIRST, FIRST), 0);

		CHECK_INT(devices_repair(dir, FIRST, COUNT), 1);
		st = look(dir, "null");
		CHECK_INT(st.st_mode & 07777, 0666);
		CHECK_INT(st.st_uid, 0);
		CHECK_INT(st.st_gid, 0);
		CHECK_INT(look(dir, "zero").st_mode & 07777, 0640);
		CHECK_INT(look(dir, "zero").st_uid, FIRST - 1);
		CHECK_INT(look(dir, "full").st_uid, FIRST + COUNT);
		CHECK_INT(look(dir, "tty").st_uid, FIRST);
		CHECK_INT(look(dir, "urandom").st_uid, FIRST);
		CHECK_INT(look(dir, "random").st_uid, 0);
		CHECK_INT(devices_repair(dir, FIRST, COUNT), 0);
	}
	place_close(dir);
}

/* In a mount namespace of its own; 0: as it should be. */
static int staged(const char *dir)
{
	struct stat host = look("/dev", "null"), own;
	char stage[80];
	struct err e;
	int fd;

	snprintf(stage, sizeof(stage), "%s/dev", dir);
	umask(0077);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0; /* not here */
	if (devices_stage(stage, &e) < 0)
		return 1;
	own = look("/dev", "null");
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (own.st_rdev != host.st_rdev || own.st_uid != 0 || (own.st_mode & 07777) != 0666)
		return 2;
	if (own.st_dev == host.st_dev)
		return 3;
	if (chmod("/dev/null", 0666) == 0 || fchown(fd, 0, 0) == 0 || futimens(fd, NULL) == 0)
		return 4;
	return write(fd, "x", 1) == 1 ? 0 : 5;
}

TEST(a_stage_has_nodes_of_its_own)
{
	char dir[64];
	int status = 0;
	pid_t pid;

	if (place_open(dir)) {
		pid = fork();
		if (pid == 0)
			_exit(staged(dir));
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECK_INT(status, 0);
	}
	place_close(dir);
}
