#include "berthd/api/v1/secrets.h"

#include <ctype.h>
#include <string.h>

#include "berthd/netpolicy/policy-sync.h"
#include "berthd/netpolicy/vault.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/egress.h"
#include "store/network.h"

#define VALUE_MIN 8 /* shorter ones would be blotted out everywhere */

struct body {
	char host[NETWORK_HOST_SIZE];
	char header[EGRESS_HEADER_SIZE];
	char value[EGRESS_VALUE_SIZE];
	struct strv methods, paths;
};

/* clang-format off */
static const struct json_field fields[] = {
	JSON_FIELD_STR(body, host, .required = true),
	JSON_FIELD_STR(body, header, .required = true),
	JSON_FIELD_STR(body, value, .required = true),
	JSON_FIELD_STRV(body, methods),
	JSON_FIELD_STRV(body, paths),
	JSON_FIELD_END
};
/* clang-format on */

static void body_done(struct body *b)
{
	strv_done(&b->methods);
	strv_done(&b->paths);
	explicit_bzero(b->value, sizeof(b->value));
}

static void words_json(struct buf *out, const char *name, const char *words)
{
	json_key(out, name);
	json_open(out, '[');
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (at != words)
			buf_adds(out, ",");
		json_add_text(out, at, len);
		at += len;
	}
	buf_adds(out, "]");
}

static void secret_json(struct buf *out, const struct secret *k)
{
	char when[TIME_TEXT_SIZE];

	time_text(k->changed_ms, when);
	json_open(out, '{');
	json_str(out, "name", k->name);
	json_str(out, "host", k->host);
	json_str(out, "header", k->header);
	words_json(out, "methods", k->methods);
	words_json(out, "paths", k->paths);
	json_str(out, "changed_at", when);
	buf_adds(out, "}");
}

static int check_text(const struct body *b, const char *name, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	if (!name[0] || strlen(name) >= NETWORK_SECRET_NAME || name[strspn(name, letters)])
		return err_set(e, ERR_INVALID, "a secret's name is 1 to %d letters, digits and -_.",
			       NETWORK_SECRET_NAME - 1);
	if (!b->header[0] || b->header[strspn(b->header, letters)])
		return err_set(e, ERR_INVALID, "header must be the name of a header");
	if (strcasecmp(b->header, "Host") == 0 || strcasecmp(b->header, "Content-Length") == 0 ||
	    strcasecmp(b->header, "Transfer-Encoding") == 0 ||
	    strcasecmp(b->header, "Connection") == 0)
		return err_set(e, ERR_INVALID, "header must not be %s", b->header);
	if (strlen(b->value) < VALUE_MIN)
		return err_set(e, ERR_INVALID, "value must be of at least %d bytes", VALUE_MIN);
	for (const char *p = b->value; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			return err_set(e, ERR_INVALID, "value must be of printable ASCII");
	return 0;
}

/* What the rules of a policy are checked by decides about a secret, too. */
static int fill(const struct body *b, const char *name, struct secret *k, struct err *e)
{
	cleanup(buf_done) struct buf methods = buf_make(sizeof(k->methods) - 1);
	cleanup(buf_done) struct buf paths = buf_make(sizeof(k->paths) - 1);
	uint32_t address;

	for (size_t i = 0; i < b->methods.len; i++)
		buf_addf(&methods, "%s%s", i ? " " : "", b->methods.items[i]);
	for (size_t i = 0; i < b->paths.len; i++)
		buf_addf(&paths, "%s%s", i ? " " : "", b->paths.items[i]);
	if (buf_overflowed(&methods) || buf_overflowed(&paths))
		return err_set(e, ERR_INVALID, "methods or paths are too long");
	for (size_t i = 0; b->host[i]; i++)
		k->host[i] = (char)tolower((unsigned char)b->host[i]);
	if (network_address_read(k->host, &address))
		return err_set(e, ERR_INVALID, "a secret goes to a name, not to an address");
	memcpy(k->methods, buf_str(&methods), methods.len + 1);
	memcpy(k->paths, buf_str(&paths), paths.len + 1);
	memcpy(k->header, b->header, sizeof(k->header));
	(void)!str_copy(k->name, sizeof(k->name), name);
	if (network_host_check(k->host, e) < 0 || network_methods_check(k->methods, e) < 0)
		return -1;
	return network_paths_check(k->paths, e);
}

int secrets_put(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct berthd *b = rq->reactor->berthd;
	cleanup(body_done) struct body body = { 0 };
	struct secret k = { 0 };

	memcpy(k.owner, rq->key.owner, sizeof(k.owner));
	if (json_read(buf_str(&rq->body), rq->body.len, fields, &body, e) < 0 ||
	    check_text(&body, rq->param, e) < 0 || fill(&body, rq->param, &k, e) < 0 ||
	    vault_seal(b->vault, body.value, &k, e) < 0 || store_secret_put(s, &k, e) < 0)
		return -1;
	crash_point("egress.secret-written");
	if (store_network_touch(s, k.owner, k.name, e) < 0)
		return -1;
	egress_look(b->egress);
	if (store_secret_get(s, k.owner, k.name, &k, e) < 0)
		return -1;
	secret_json(reply, &k);
	return 0;
}

static void list_row(const struct secret *k, void *arg)
{
	secret_json(arg, k);
}

int secrets_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	json_open(reply, '{');
	json_key(reply, "secrets");
	json_open(reply, '[');
	if (store_secret_list(s, rq->key.owner, list_row, reply, e) < 0)
		return -1;
	buf_adds(reply, "]}");
	return 0;
}

int secrets_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct secret k = { 0 };

	if (store_secret_remove(s, rq->key.owner, rq->param, &k, e) < 0)
		return -1;
	crash_point("egress.secret-removed");
	if (store_network_touch(s, k.owner, k.name, e) < 0)
		return -1;
	egress_look(rq->reactor->berthd->egress);
	secret_json(reply, &k);
	return 0;
}
