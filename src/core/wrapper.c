#include "core/wrapper.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/str.h"

#define PREFIX "wr."

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

int wrapper_name_check(const char *name, struct err *e)
{
	size_t len = 0;

	while (is_letter(name[len]))
		len++;
	if (len > 0 && len < WRAPPER_NAME_SIZE && !name[len])
		return 0;
	return err_set(e, ERR_INVALID, "a wrapper's name has 1 to %d of A-Z a-z 0-9 _ -",
		       WRAPPER_NAME_SIZE - 1);
}

void wrapper_exec_id(char out[WRAPPER_EXEC_SIZE], const char *name, const struct instance *i)
{
	snprintf(out, WRAPPER_EXEC_SIZE, PREFIX "%s.%" PRIu64 ".%s", name, i->generation, i->id);
}

void wrapper_exec_prefix(char out[WRAPPER_EXEC_SIZE], const char *name)
{
	snprintf(out, WRAPPER_EXEC_SIZE, PREFIX "%s.", name);
}

bool wrapper_exec_is(const char *exec)
{
	return str_starts(exec, PREFIX);
}

bool wrapper_exec_read(const char *exec, const char *name, struct instance *ret)
{
	struct instance got = { 0 };
	size_t len = strlen(name);
	char number[24] = "";
	const char *dot;
	struct err ignored;

	if (!str_starts(exec, PREFIX) || strncmp(exec + strlen(PREFIX), name, len) != 0 ||
	    exec[strlen(PREFIX) + len] != '.')
		return false;
	exec += strlen(PREFIX) + len + 1;
	dot = strchr(exec, '.');
	if (!dot || !str_copy_bytes(number, sizeof(number), exec, (size_t)(dot - exec)) ||
	    str_u64(number, &got.generation, &ignored) < 0 ||
	    !str_copy(got.id, sizeof(got.id), dot + 1))
		got = (struct instance){ 0 };
	*ret = got;
	return true;
}

bool wrapper_boot_is_over(const struct wrapper_boot *began, const struct wrapper_boot *now)
{
	return began->boot_id[0] && now->boot_id[0] && strcmp(began->host, now->host) == 0 &&
	       strcmp(began->boot_id, now->boot_id) != 0;
}
