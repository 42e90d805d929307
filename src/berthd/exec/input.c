#include "berthd/exec/input.h"

#include <stdlib.h>
#include <string.h>

void exec_input_init(struct exec_input *in, char *text)
{
	in->text = text;
}

void exec_input_done(struct exec_input *in)
{
	free(take_ptr(in->text));
}

void exec_input_send(struct exec_input *in, struct exec *x)
{
	size_t len = in->text ? strlen(in->text) : 0;

	if (!in->text || !x)
		return;
	for (size_t at = 0; at < len; at += FRAME_PAYLOAD_MAX)
		exec_send(x, FRAME_STDIN, in->text + at,
			  len - at < FRAME_PAYLOAD_MAX ? len - at : FRAME_PAYLOAD_MAX);
	if (!in->stay_open)
		exec_send(x, FRAME_STDIN_END, NULL, 0);
	exec_input_done(in);
}
