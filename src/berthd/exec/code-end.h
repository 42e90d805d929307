/* How a run of code ended, in the words of the API: from init's record and the runner's notes. */
#pragma once

#include "berthd/exec/context-run.h"

/* The kind, an error where the code gave none, and whether the interpreter is still there. */
void code_judge(struct code_run *r);
