#include "http/address.h"

#include <string.h>
#include <uv.h>

#include "lib/str.h"

int http_address(const char *text, struct sockaddr_storage *ret, struct err *e)
{
	struct sockaddr_storage got = { 0 };
	const char *colon = strrchr(text, ':');
	bool is_6 = text[0] == '[';
	uint64_t port;
	char host[64];
	int bad;

	if (!colon || (is_6 && (colon == text || colon[-1] != ']')) ||
	    !str_copy_bytes(host, sizeof(host), text + is_6,
			    (size_t)(colon - text) - (is_6 ? 2 : 0)) ||
	    str_u64(colon + 1, &port, e) < 0 || port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "not an address like 127.0.0.1:7070: %.80s", text);
	bad = is_6 ? uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)&got)
		   : uv_ip4_addr(host, (int)port, (struct sockaddr_in *)&got);
	if (bad)
		return err_set(e, ERR_INVALID, "not a numeric address: %.80s", text);
	*ret = got;
	return 0;
}
