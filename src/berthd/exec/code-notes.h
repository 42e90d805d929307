/* The notes of a run of code, a line each, as their bytes come: results and errors for its sink. */
#pragma once

#include "berthd/exec/context-run.h"

/* True: the sink is full. */
bool code_notes_take(struct code_run *r, const uint8_t *data, size_t len);
