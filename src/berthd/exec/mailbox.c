#include "berthd/exec/mailbox.h"

#include <stdlib.h>

#include "berthd/exec/exec.h"
#include "berthd/exec/signals.h"
#include "lib/errno-map.h"

#define INPUT_MAX   (1024UL * 1024) /* waiting for a command that does not read */
#define KEYS_MARK   (512UL * 1024)  /* the same, of a terminal: more keys are not sent then */
#define WAITING_MAX 2048            /* messages that wait for one exec */

struct mail *mail_new(enum mail_kind kind)
{
	struct mail *m = xcalloc(1, sizeof(*m));

	m->kind = kind;
	return m;
}

static void mail_free(struct mail *m)
{
	journal_unref(m->journal);
	buf_done(&m->bytes);
	free(m);
}

/* ---- the answer ---- */

static void on_answered(struct job *job)
{
	struct mail *m = container_of(job, struct mail, job);

	m->done(m->data, m->failed ? &m->e : NULL);
	mail_free(m);
}

void mail_answer(struct mail *m, const struct err *why)
{
	if (!m->done)
		return mail_free(m);
	m->failed = why;
	if (why)
		m->e = *why;
	m->job = (struct job){ .reactor = m->from, .done = on_answered };
	reactor_post(m->from, &m->job);
}

static void answer_ended(struct mail *m)
{
	struct err why;

	err_set(&why, ERR_CONFLICT, "exec %s has ended", m->journal->head.ask.id);
	mail_answer(m, &why);
}

static void answer_not_taken(struct mail *m, const char *because)
{
	struct err why;

	err_set(&why, ERR_BUSY, "exec %s %s; nothing of this input was taken",
		m->journal->head.ask.id, because);
	err_fix(&why, "Send it again.");
	err_reason(&why, REASON_NOT_TAKEN, 0);
	mail_answer(m, &why);
}

static void answer_full(struct mail *m)
{
	struct err why;

	err_set(&why, ERR_BUSY, "exec %s does not read what it was sent before",
		m->journal->head.ask.id);
	err_fix(&why, "Send it again, later.");
	mail_answer(m, &why);
}

/*
 * No loop has the exec. After a restart it may run and not be reached yet: whether it has ended is
 * what its journal says.
 */
static void answer_absent(struct mail *m)
{
	struct journal_glance now;
	struct err why;

	journal_glance(m->journal, &now);
	if (now.state != JOURNAL_RUNNING)
		return answer_ended(m);
	if (m->kind == MAIL_INPUT)
		return answer_not_taken(m, "is not reached yet");
	err_set(&why, ERR_BUSY, "exec %s runs, but berthd has not reached it since its restart",
		m->journal->head.ask.id);
	err_fix(&why, "Nothing was done to it: send this again.");
	err_reason(&why, REASON_NOT_REACHED, 0);
	mail_answer(m, &why);
}

/* ---- the delivery, on the exec's loop ---- */

static void deliver_signal(struct mail *m, struct exec *x)
{
	exec_signals_add(x, m); /* and answered when init has */
}

static void deliver_input(struct mail *m, struct exec *x)
{
	struct err why;

	if (!(x->journal->head.ask.flags & EXEC_STDIN)) {
		err_set(&why, ERR_CONFLICT, "exec %s has no standard input",
			x->journal->head.ask.id);
		err_fix(&why, "Begin it with stdin_open.");
		return mail_answer(m, &why);
	}
	if (x->input_ended && m->bytes.len > 0) {
		err_set(&why, ERR_CONFLICT, "the standard input of exec %s was ended before",
			x->journal->head.ask.id);
		return mail_answer(m, &why);
	}
	if (x->phase != EXEC_RUNNING || exec_send_backlog(x) + m->bytes.len > INPUT_MAX)
		return answer_not_taken(m, "does not read its standard input now");
	for (size_t at = 0; at < m->bytes.len; at += FRAME_PAYLOAD_MAX) {
		size_t n = m->bytes.len - at;

		exec_send(x, FRAME_STDIN, m->bytes.data + at,
			  n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX);
	}
	if (m->last)
		exec_send(x, FRAME_STDIN_END, NULL, 0);
	mail_answer(m, NULL);
}

static void deliver_keys(struct mail *m, struct exec *x)
{
	exec_send(x, FRAME_STDIN, m->bytes.data, m->bytes.len);
	mail_answer(m, NULL);
}

static void deliver_size(struct mail *m, struct exec *x)
{
	exec_send(x, FRAME_RESIZE, m->bytes.data, m->bytes.len);
	mail_answer(m, NULL);
}

/* What was sent before it is here before it: it waits, or it was answered. */
static void deliver_drop(struct mail *drop, struct exec *x)
{
	struct mail **at = &x->mail;

	while (*at) {
		struct mail *m = *at;

		if (m->from != drop->from || m->data != drop->data) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		x->mail_count--;
		answer_full(m);
	}
	mail_free(drop);
}

static bool keys_wait(const struct exec *x)
{
	return x->phase != EXEC_RUNNING || exec_send_backlog(x) > KEYS_MARK;
}

static bool size_waits(const struct exec *x)
{
	return x->phase != EXEC_RUNNING;
}

static const struct {
	bool (*waits)(const struct exec *x); /* NULL: delivered at once, whatever comes of it */
	void (*deliver)(struct mail *m, struct exec *x);
} kinds[MAIL_KIND_COUNT] = {
	[MAIL_SIGNAL] = { NULL, deliver_signal },
	[MAIL_INPUT] = { NULL, deliver_input },
	[MAIL_KEYS] = { keys_wait, deliver_keys },
	[MAIL_SIZE] = { size_waits, deliver_size },
	[MAIL_DROP] = { NULL, deliver_drop },
};

static bool must_wait(const struct mail *m, const struct exec *x)
{
	return kinds[m->kind].waits && kinds[m->kind].waits(x);
}

static void add_waiting(struct mail *m, struct exec *x)
{
	struct mail **last = &x->mail;

	if (x->mail_count == WAITING_MAX)
		return answer_full(m);
	while (*last)
		last = &(*last)->next;
	m->next = NULL;
	*last = m;
	x->mail_count++;
}

void mailbox_look(struct exec *x)
{
	struct mail **at = &x->mail;

	while (*at) {
		struct mail *m = *at;

		if (!exec_is_over(x) && must_wait(m, x)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		x->mail_count--;
		if (exec_is_over(x))
			answer_ended(m);
		else
			kinds[m->kind].deliver(m, x);
	}
	if (!exec_is_over(x) && x->client && x->client->events->drained)
		x->client->events->drained(x->client);
}

static void on_arrived(struct job *job)
{
	struct mail *m = container_of(job, struct mail, job);
	struct exec *x = m->journal->exec; /* changes on this loop only */

	if (m->kind == MAIL_DROP && !x)
		return mail_free(m); /* the end of the exec answered what waited */
	if (!x)
		return answer_absent(m);
	if (exec_is_over(x) && m->kind != MAIL_DROP)
		return answer_ended(m);
	if (must_wait(m, x))
		return add_waiting(m, x);
	kinds[m->kind].deliver(m, x);
}

/* ---- on the loop that sends it ---- */

static struct mail *mail_from(enum mail_kind kind, struct reactor *from, struct journal *j,
			      mail_fn done, void *data)
{
	struct mail *m = mail_new(kind);

	m->from = from;
	m->journal = journal_ref(j);
	m->done = done;
	m->data = data;
	return m;
}

static void mail_send(struct mail *m)
{
	struct reactor *to = journal_loop(m->journal);

	if (!to)
		return m->kind == MAIL_DROP ? mail_free(m) : answer_absent(m);
	m->job = (struct job){ .reactor = to, .done = on_arrived };
	reactor_post(to, &m->job);
}

void mail_signal(struct reactor *from, struct journal *j, uint32_t signum, mail_fn done,
		 void *data)
{
	struct mail *m = mail_from(MAIL_SIGNAL, from, j, done, data);

	m->signum = signum;
	mail_send(m);
}

void mail_input(struct reactor *from, struct journal *j, struct buf *bytes, bool last,
		mail_fn done, void *data)
{
	struct mail *m = mail_from(MAIL_INPUT, from, j, done, data);

	m->bytes = *bytes;
	*bytes = (struct buf){ 0 };
	m->last = last;
	mail_send(m);
}

void mail_keys(struct reactor *from, struct journal *j, struct bytes keys, mail_fn done,
	       void *data)
{
	struct mail *m = mail_from(MAIL_KEYS, from, j, done, data);

	m->bytes = buf_make(FRAME_PAYLOAD_MAX + 1);
	buf_add(&m->bytes, keys.data, keys.len);
	mail_send(m);
}

void mail_size(struct reactor *from, struct journal *j, const struct exec_size *size,
	       mail_fn done, void *data)
{
	struct mail *m = mail_from(MAIL_SIZE, from, j, done, data);

	m->bytes = buf_make(64);
	exec_size_encode(&m->bytes, size);
	mail_send(m);
}

void mail_drop(struct reactor *from, struct journal *j, void *data)
{
	mail_send(mail_from(MAIL_DROP, from, j, NULL, data));
}
