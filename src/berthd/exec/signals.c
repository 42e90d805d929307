#include "berthd/exec/signals.h"

#include "proto/writer.h"

void exec_signals_back(struct exec *x, size_t count, const struct err *why)
{
	while (count-- > 0 && x->signals) {
		struct errand *e = x->signals;

		x->signals = e->next;
		if (!x->signals)
			x->signals_last = &x->signals;
		x->signals_sent -= x->signals_sent > 0;
		errand_back(e, why);
	}
}

static void send_signal(struct exec *x, const struct errand *e)
{
	cleanup(buf_done) struct buf out = buf_make(64);

	writer_u32(&out, e->signum);
	line_send(x->line, FRAME_SIGNAL, out.data, out.len);
	x->signals_sent++;
}

void exec_signal(struct exec *x, uint32_t signum, struct errand *e)
{
	if (!e) {
		e = xcalloc(1, sizeof(*e));
		e->signum = signum;
	}
	e->next = NULL;
	*x->signals_last = e;
	x->signals_last = &e->next;
	if (x->phase == EXEC_RUNNING)
		send_signal(x, e);
}

void exec_signals_send(struct exec *x)
{
	for (const struct errand *s = x->signals; s; s = s->next)
		send_signal(x, s);
}

/* We cannot tell whether init did what it had heard. To kill a second time does no harm. */
void exec_signals_unsure(struct exec *x)
{
	struct errand *all = x->signals, *next;
	size_t sent = x->signals_sent;
	struct err e;

	err_set(&e, ERR_BUSY, "it is not known whether the signal was delivered");
	x->signals = NULL;
	x->signals_last = &x->signals;
	x->signals_sent = 0;
	for (; all; all = next) {
		next = all->next;
		if (sent > 0 && all->signum != 9)
			errand_back(all, &e);
		else
			exec_signal(x, all->signum, all);
		sent -= sent > 0;
	}
}
