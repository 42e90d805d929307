#include "berthd/exec/signals.h"

#include "proto/writer.h"

void exec_signals_back(struct exec *x, size_t count, const struct err *why)
{
	while (count-- > 0 && x->signals) {
		struct mail *m = x->signals;

		x->signals = m->next;
		if (!x->signals)
			x->signals_last = &x->signals;
		x->signals_sent -= x->signals_sent > 0;
		mail_answer(m, why);
	}
}

static void send_signal(struct exec *x, const struct mail *m)
{
	cleanup(buf_done) struct buf out = buf_make(64);

	writer_u32(&out, m->signum);
	init_stream_send(x->stream, FRAME_SIGNAL, out.data, out.len);
	x->signals_sent++;
}

void exec_signals_add(struct exec *x, struct mail *m)
{
	m->next = NULL;
	*x->signals_last = m;
	x->signals_last = &m->next;
	if (x->phase == EXEC_RUNNING)
		send_signal(x, m);
}

void exec_signal(struct exec *x, uint32_t signum)
{
	struct mail *m = mail_new(MAIL_SIGNAL);

	m->signum = signum;
	exec_signals_add(x, m);
}

void exec_signals_send(struct exec *x)
{
	for (const struct mail *m = x->signals; m; m = m->next)
		send_signal(x, m);
}

/* We cannot tell whether init did what it had heard. To kill a second time does no harm. */
void exec_signals_unsure(struct exec *x)
{
	struct mail *all = x->signals, *next;
	size_t sent = x->signals_sent;
	struct err e;

	err_set(&e, ERR_BUSY, "it is not known whether the signal was delivered");
	x->signals = NULL;
	x->signals_last = &x->signals;
	x->signals_sent = 0;
	for (; all; all = next) {
		next = all->next;
		if (sent > 0 && all->signum != 9)
			mail_answer(all, &e);
		else
			exec_signals_add(x, all);
		sent -= sent > 0;
	}
}
