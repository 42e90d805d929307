#include "lib/user.h"

#include <pwd.h>

#include "lib/str.h"

int user_find(const char *name, const char *program, uid_t *ret, struct err *e)
{
	const struct passwd *pw = NULL;
	struct err ignored;
	uint64_t uid;

	if (str_u64(name, &uid, &ignored) == 0) {
		/* Cut to 32 bits a large number would be another user, root among them. */
		if (uid >= (uid_t)-1)
			return err_set(e, ERR_INVALID, "%s is no user id", name);
		*ret = (uid_t)uid;
		return 0;
	}
	pw = getpwnam(name);
	if (!pw) {
		err_set(e, ERR_INVALID, "there is no user %s", name);
		return err_fix(e, "Run 'berth init', or name the user %s runs as.", program);
	}
	*ret = pw->pw_uid;
	return 0;
}
