#include "proto/router.h"

/* clang-format off */
static const struct field socket_fields[] = {
	FIELD(FIELD_U32, router_socket, version),
	FIELD(FIELD_U32, router_socket, kind),
	{ 0 }
};
/* clang-format on */

void router_socket_encode(struct buf *out, enum router_socket_kind kind)
{
	struct router_socket s = { .version = ROUTER_VERSION, .kind = kind };

	record_encode(out, socket_fields, &s);
}

int router_socket_decode(struct bytes wire, enum router_socket_kind *ret, struct err *e)
{
	struct router_socket s;

	if (record_decode(wire, socket_fields, &s, e) < 0)
		return err_wrap(e, "a socket of the router");
	if (s.version != ROUTER_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "protocol version %u, not %d", s.version,
			       ROUTER_VERSION);
	if (s.kind <= ROUTER_NONE || s.kind >= ROUTER_SOCKET_COUNT)
		return err_set(e, ERR_INVALID, "no such socket of the router: %u", s.kind);
	*ret = (enum router_socket_kind)s.kind;
	return 0;
}
