/* ATTACH: a connection for an exec that another process of ours serves. */
#include "init/exec.h"

void exec_attach_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	struct broker_packet packet = { .word = BROKER_GIVE };
	enum broker_word answer;
	struct err e;

	if (exec_attach_decode(request->payload, &packet.attach, &e) < 0) {
		frame_conn_refuse(p, &e);
		return;
	}
	frame_conn_took(p, request);
	if (p->in.len > 0) {
		err_set(&e, ERR_INVALID, "nothing may follow ATTACH before STARTED");
		frame_conn_refuse(p, &e);
		return;
	}
	answer = broker_ask(broker, &packet, p->fd);
	if (answer == BROKER_YES)
		return; /* our end of it closes, the other process has its own */
	if (answer == BROKER_NO)
		err_set(&e, ERR_NOT_FOUND, "no process runs exec %s", packet.attach.id);
	else if (answer == BROKER_TORN)
		err_set(&e, ERR_CONFLICT, "no process runs exec %s; its own may have been killed",
			packet.attach.id);
	else
		err_set(&e, ERR_BUSY, "exec %s takes no connection now", packet.attach.id);
	frame_conn_refuse(p, &e);
}
