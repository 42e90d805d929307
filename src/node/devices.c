#include "node/devices.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/log.h"

#define MODE      0666
#define PATH_SIZE 256
#define FLAGS     (MS_NOSUID | MS_NOEXEC)

/* clang-format off */
static const struct device {
	const char *name;
	unsigned major, minor;
} devices[] = {
	{ "null",    1, 3 },
	{ "zero",    1, 5 },
	{ "full",    1, 7 },
	{ "random",  1, 8 },
	{ "urandom", 1, 9 },
	{ "tty",     5, 0 },
};
/* clang-format on */

static int make(const char *dir, const struct device *d, struct err *e)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir, d->name);
	if (mknod(path, S_IFCHR | MODE, makedev(d->major, d->minor)) < 0)
		return err_sys(e, errno, "make %s", path);
	if (chmod(path, MODE) < 0) /* the umask took some of it */
		return err_sys(e, errno, "mode of %s", path);
	return 0;
}

static int put_in_place(const char *dir, const struct device *d, struct err *e)
{
	char path[PATH_SIZE], place[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir, d->name);
	snprintf(place, sizeof(place), "/dev/%s", d->name);
	if (mount(path, place, NULL, MS_BIND, NULL) < 0)
		return err_sys(e, errno, "bind %s on %s", path, place);
	return 0;
}

int devices_stage(const char *dir, struct err *e)
{
	if (mkdir(dir, 0755) < 0 || mount("berth", dir, "tmpfs", FLAGS, "mode=0755,size=4k") < 0)
		return err_sys(e, errno, "mount %s", dir);
	for (size_t i = 0; i < array_len(devices); i++)
		if (make(dir, &devices[i], e) < 0)
			return -1;
	/* The filesystem itself, not this mount: no other mount of it can be written, either. */
	if (mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY | FLAGS, NULL) < 0)
		return err_sys(e, errno, "make %s read-only", dir);
	for (size_t i = 0; i < array_len(devices); i++)
		if (put_in_place(dir, &devices[i], e) < 0)
			return -1;
	return 0;
}

static bool is_of(uint64_t id, uint64_t first, uint64_t count)
{
	return id >= first && id - first < count;
}

int devices_repair(const char *dev, uint64_t first, uint64_t count)
{
	char path[PATH_SIZE], mode[8];
	struct stat st;
	int repaired = 0;

	for (size_t i = 0; i < array_len(devices); i++) {
		const struct device *d = &devices[i];

		snprintf(path, sizeof(path), "%s/%s", dev, d->name);
		if (lstat(path, &st) < 0 || !S_ISCHR(st.st_mode) ||
		    st.st_rdev != makedev(d->major, d->minor) ||
		    !(is_of(st.st_uid, first, count) || is_of(st.st_gid, first, count)))
			continue;
		snprintf(mode, sizeof(mode), "%04o", (unsigned)st.st_mode & 07777);
		if (chown(path, 0, 0) < 0 || chmod(path, MODE) < 0) {
			log_event(LOG_ERROR, "a device of the host belongs to a sandbox", "device",
				  path, "mode", mode, NULL);
			continue;
		}
		log_event(LOG_WARN, "a device of the host belonged to a sandbox; repaired",
			  "device", path, "mode", mode, NULL);
		repaired++;
	}
	return repaired;
}
