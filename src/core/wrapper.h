/*
 * What a wrapper is called, and the exec that its instance runs as. The exec's id
 * carries name, generation and instance: observation goes by it, and by nothing
 * that the wrapper itself could say.
 */
#pragma once

#include "core/lease.h"
#include "core/sandbox.h"
#include "lib/time.h"

#define WRAPPER_NAME_SIZE 17 /* with the NUL */
#define WRAPPER_EXEC_SIZE 64

/* A run of a machine. Empty: not known. */
struct wrapper_boot {
	char host[SANDBOX_HOST_SIZE];
	char boot_id[BOOT_ID_SIZE];
};

/* Was the machine started again between the two? Then nothing of before runs. Unknown is no. */
bool wrapper_boot_is_over(const struct wrapper_boot *began, const struct wrapper_boot *now);

must_check int wrapper_name_check(const char *name, struct err *e);

void wrapper_exec_id(char out[WRAPPER_EXEC_SIZE], const char *name, const struct instance *i);

/* With this the ids of all its instances begin. */
void wrapper_exec_prefix(char out[WRAPPER_EXEC_SIZE], const char *name);

bool wrapper_exec_is(const char *exec); /* of any name */

/*
 * Is this exec a wrapper of that name? Then which; generation 0 if its id says
 * nothing that could be ours.
 */
must_check bool wrapper_exec_read(const char *exec, const char *name, struct instance *ret);
