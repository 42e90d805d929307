#include "cli/pool-size.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/table.h"
#include "lib/str.h"

/* DIR, or what there is of it so far. */
static bool disk_of(const char *dir, struct statvfs *ret)
{
	char at[PATH_MAX];

	if (!str_copy(at, sizeof(at), dir))
		return false;
	for (;;) {
		char *slash = strrchr(at, '/');

		if (statvfs(at, ret) == 0)
			return true;
		if (!slash)
			return statvfs(".", ret) == 0;
		if (slash == at)
			return statvfs("/", ret) == 0;
		*slash = '\0';
	}
}

int pool_size_check(const char *dir, const char *size, struct err *e)
{
	char file[PATH_MAX], asked[TABLE_SIZE_TEXT], left[TABLE_SIZE_TEXT];
	uint64_t bytes, available;
	struct statvfs st;

	if (str_size(size, &bytes, e) < 0)
		return err_wrap(e, "--pool-size");
	snprintf(file, sizeof(file), "%s/pool.img", dir);
	if (access(file, F_OK) == 0 || !disk_of(dir, &st))
		return 0;
	available = (uint64_t)st.f_bavail * st.f_frsize;
	if (bytes <= available)
		return 0;
	table_size_text(bytes, asked);
	table_size_text(available, left);
	err_set(e, ERR_LIMIT,
		"a pool of %s does not fit: the disk of %.200s has %s free, and sandboxes would "
		"fail when that is used up",
		asked, dir, left);
	return err_fix(e, "Give a smaller --pool-size, or a larger disk.");
}
