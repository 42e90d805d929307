/*
 * Records about shells, and what a guest writes to a shell's pipe: what is decoded
 * is sane, and comes out the same when it is encoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "init/shell-text.h"
#include "proto/shell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(struct bytes wire)
{
	cleanup(buf_done) struct buf again = buf_make(1 << 20);
	struct shell_request q = { 0 };
	struct err e;

	if (shell_request_decode(wire, &q, &e) < 0)
		return;
	if (shell_name_check(q.name, &e) < 0)
		abort();
	shell_request_encode(&again, &q);
	if (again.len != wire.len || memcmp(again.data, wire.data, wire.len) != 0)
		abort();
	shell_request_done(&q);
}

static void try_state(struct bytes wire)
{
	cleanup(buf_done) struct buf again = buf_make(1 << 20);
	struct shell_state s;
	struct err e;

	if (shell_state_decode(wire, &s, &e) < 0)
		return;
	shell_state_encode(&again, &s);
	if (again.len != wire.len || memcmp(again.data, wire.data, wire.len) != 0)
		abort();
}

static void try_words(struct bytes wire)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	unsigned code = 0;

	buf_add(&in, wire.data, wire.len);
	while (shell_text_said(&in, "0123456789abcdef", &code) != SHELL_WORD_NONE)
		if (code > 255)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes wire = { data, size };

	try_request(wire);
	try_state(wire);
	try_words(wire);
	return 0;
}
