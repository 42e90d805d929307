#include "berthd/cluster/peer-token.h"

#include <inttypes.h>
#include <string.h>

#include "lib/errno-map.h"
#include "lib/hash.h"
#include "lib/str.h"

/* v2;FROM;TO;REQUEST;KEY;ROLE;OWNER;AT;NONCE;MAC: the owner as hex, whatever is in it. */
enum pass_part {
	PART_VERSION,
	FROM,
	TO,
	REQUEST,
	KEY,
	ROLE,
	OWNER,
	AT,
	NONCE,
	PROVEN
};

static void prove(const char *text, size_t len, const struct peer_token_request *rq,
		  char out[HASH_HEX_SIZE])
{
	cleanup(buf_done) struct buf all = buf_make(64UL * 1024);

	buf_add(&all, text, len);
	buf_addf(&all, "\n%s\n%s\n%s", rq->method, rq->path, rq->query);
	hash_mac_hex(rq->secret, strlen(rq->secret), all.data, all.len, out);
}

void peer_token_write(const struct peer_token *p, const struct peer_token_request *rq,
		      struct buf *out)
{
	size_t from = out->len;
	char owner[2 * PASS_ID_SIZE + 1], mac[HASH_HEX_SIZE];

	str_hex(owner, p->owner, strlen(p->owner));
	buf_addf(out, "v2;%s;%s;%s;%s;%s;%s;%" PRIu64 ";%" PRIu64, p->from, p->to, p->request,
		 p->key, role_name(p->role), owner, p->at_ms, p->nonce);
	prove(out->data + from, out->len - from, rq, mac);
	buf_addf(out, ";%s", mac);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
								     : -1;
}

static bool unhex(char *to, size_t size, const char *hex, size_t len)
{
	if (len % 2 || len / 2 >= size)
		return false;
	for (size_t i = 0; i < len; i += 2) {
		if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0)
			return false;
		to[i / 2] = (char)(digit(hex[i]) << 4 | digit(hex[i + 1]));
	}
	to[len / 2] = '\0';
	return strlen(to) == len / 2;
}

static bool split(const char *text, size_t len, struct peer_token *p)
{
	struct peer_token got = { 0 };
	const char *at = text;
	char role[16] = "", version[4] = "", at_ms[24] = "", nonce[24] = "";
	struct err ignored;
	struct {
		char *to;
		size_t size;
	} parts[PROVEN] = {
		[PART_VERSION] = { version, sizeof(version) },
		[FROM] = { got.from, sizeof(got.from) },
		[TO] = { got.to, sizeof(got.to) },
		[REQUEST] = { got.request, sizeof(got.request) },
		[KEY] = { got.key, sizeof(got.key) },
		[ROLE] = { role, sizeof(role) },
		[OWNER] = { got.owner, sizeof(got.owner) },
		[AT] = { at_ms, sizeof(at_ms) },
		[NONCE] = { nonce, sizeof(nonce) },
	};

	for (int i = 0; i < PROVEN; i++) {
		const char *end = memchr(at, ';', (size_t)(text + len - at));
		size_t n = (size_t)((end ? end : text + len) - at);

		if ((i == PROVEN - 1) != !end)
			return false;
		if (i == OWNER ? !unhex(parts[i].to, parts[i].size, at, n)
			       : !str_copy_bytes(parts[i].to, parts[i].size, at, n))
			return false;
		at += n + 1;
	}
	got.role = strcmp(role, role_name(ROLE_ANYONE)) == 0 ? ROLE_ANYONE : role_by_name(role);
	if (str_u64(at_ms, &got.at_ms, &ignored) < 0 || str_u64(nonce, &got.nonce, &ignored) < 0)
		return false;
	*p = got;
	return strcmp(version, "v2") == 0 && got.nonce && got.role != ROLE_UNSET && got.request[0];
}

static int forged(struct err *e, const char *why)
{
	err_set(e, ERR_DENIED, "%s", why);
	return err_reason(e, REASON_FORGED_PASS, 0);
}

int peer_token_read(const char *text, const struct peer_token_request *rq, struct peer_token *ret,
		    struct err *e)
{
	const char *mac = strrchr(text, ';');
	char want[HASH_HEX_SIZE];

	if (!mac || strlen(text) > PASS_TEXT_MAX)
		return forged(e, "this is no pass of a host");
	prove(text, (size_t)(mac - text), rq, want);
	if (strlen(mac + 1) != HASH_HEX_SIZE - 1 || !hash_equal(want, mac + 1, HASH_HEX_SIZE - 1) ||
	    !split(text, (size_t)(mac - text), ret))
		return forged(e, "this pass was not written by a host of this cell");
	return 0;
}
