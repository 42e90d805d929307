#include "lib/errno-map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REFUSED "The sandbox's own kernel refuses it; choose another path."
#define FILES   "Name a part of the tree, or create a sandbox with more open_files."
#define FULL    "Remove something in the sandbox, or create one with a larger disk."

/* clang-format off */
static const struct fault {
	int errnum;
	enum err_code code;
	const char *reason;
	int status; /* 0: the code's */
	const char *fix;
} faults[] = {
	{ ENOENT, ERR_NOT_FOUND, "no_such_file", 0,
		"Check the path; a list of its parent says what there is." },
	{ EEXIST, ERR_CONFLICT, "exists", 0,
		"Remove it first, or allow that it is replaced." },
	{ EISDIR, ERR_INVALID, "is_a_directory", 0, "Name a file." },
	{ ENOTDIR, ERR_INVALID, "not_a_directory", 0, "Name a directory." },
	{ EACCES, ERR_DENIED, "permission_denied", 0, REFUSED },
	{ EPERM, ERR_DENIED, "permission_denied", 0, REFUSED },
	{ ENOSPC, ERR_LIMIT, "no_space", 507, FULL },
	{ EDQUOT, ERR_LIMIT, "no_space", 507, FULL },
	{ EFBIG, ERR_LIMIT, "no_space", 507, FULL },
	{ ELOOP, ERR_INVALID, "too_many_links", 0, "Name the file itself, not a link to it." },
	{ EMLINK, ERR_INVALID, "too_many_links", 0, "Name the file itself, not a link to it." },
	{ ENOTEMPTY, ERR_CONFLICT, "not_empty", 0, "Remove it with all that is in it." },
	{ EROFS, ERR_DENIED, "read_only", 0, "Choose a path that can be written." },
	{ ENXIO, ERR_INVALID, "not_a_file", 0, "Only regular files have contents here." },
	{ ENODEV, ERR_INVALID, "not_a_file", 0, "Only regular files have contents here." },
	{ ENAMETOOLONG, ERR_INVALID, "name_too_long", 0,
		"A name has at most 255 bytes, a path 4095." },
	{ EXDEV, ERR_INVALID, NULL, 0,
		"These are two filesystems: copy it, then remove the first one." },
	{ EINVAL, ERR_INVALID, NULL, 0, "Check the path." },
	{ EAGAIN, ERR_BUSY, NULL, 0, "Something in the sandbox holds it; try again." },
	{ EBUSY, ERR_CONFLICT, "in_use", 0,
		"Something in the sandbox uses it, or is mounted there." },
	{ ETXTBSY, ERR_CONFLICT, "in_use", 0, "Something in the sandbox runs it." },
	{ EMFILE, ERR_LIMIT, "too_many_files", 507, FILES },
	{ ENFILE, ERR_LIMIT, "too_many_files", 507, FILES },
};
/* clang-format on */

static void apply(struct err *e, const struct fault *f)
{
	e->code = f->code;
	err_reason(e, f->reason, f->status);
	err_fix(e, "%s", f->fix);
}

int err_file(struct err *e, int errnum, const char *fmt, ...)
{
	char what[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	err_set(e, ERR_INTERNAL, "%s: %s", what, strerror(errnum));
	for (size_t i = 0; i < array_len(faults); i++)
		if (faults[i].errnum == errnum) {
			apply(e, &faults[i]);
			break;
		}
	return -1;
}

void err_file_reason(struct err *e, const char *name)
{
	for (size_t i = 0; i < array_len(faults); i++)
		if (faults[i].reason && strcmp(faults[i].reason, name) == 0) {
			apply(e, &faults[i]);
			return;
		}
}

void err_word_reason(struct err *e, const char *name)
{
	static const char *const words[] = { REASON_NO_COMMAND, REASON_CANNOT_RUN,
					     REASON_OPTIONS_DIFFER, REASON_OTHER_IDENTITY,
					     REASON_NOT_TAKEN,
					     REASON_NOT_REACHED, REASON_HOST_DRAINING,
					     REASON_ENGINE_MISSING,
					     REASON_LEFT_UNKNOWN };

	for (size_t i = 0; i < array_len(words); i++)
		if (strcmp(words[i], name) == 0)
			err_reason(e, words[i], 0);
}
