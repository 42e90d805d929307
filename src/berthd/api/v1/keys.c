#include "berthd/api/v1/keys.h"

#include <stdio.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/hash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

#define SECRET_CHARS 52 /* 260 random bits */

struct key_body {
	char name[KEY_NAME_SIZE];
	char role[16];
	char owner[64];
};

static const struct json_field key_fields[] = {
	JSON_FIELD_STR(key_body, name, .required = true),
	JSON_FIELD_STR(key_body, role),
	JSON_FIELD_STR(key_body, owner),
	JSON_FIELD_END
};

int key_make(struct store *s, struct key *k, char secret[KEY_SECRET_SIZE], struct err *e)
{
	char hash[HASH_HEX_SIZE];

	memcpy(k->id, "key_", 4);
	id_random(k->id + 4, ID_RANDOM_CHARS);
	memcpy(secret, "berth_", 6);
	id_random(secret + 6, SECRET_CHARS);
	hash_hex(secret, strlen(secret), hash);
	return store_key_insert(s, k, hash, e);
}

static void key_json(struct buf *out, const struct key *k, const char *secret)
{
	char when[TIME_TEXT_SIZE];

	json_open(out, '{');
	json_str(out, "id", k->id);
	json_str(out, "name", k->name);
	json_str(out, "owner", k->owner);
	json_str(out, "role", role_name(k->role));
	if (secret)
		json_str(out, "key", secret);
	if (k->created_ms) {
		time_text(k->created_ms, when);
		json_str(out, "created_at", when);
	}
	if (!secret)
		json_bool(out, "revoked", k->revoked_ms != 0);
	buf_adds(out, "}");
}

/* Names are shown in tables and logs. */
static int check_name(const char *what, const char *name, struct err *e)
{
	if (str_has_control(name))
		return err_set(e, ERR_INVALID, "%s must not have control characters", what);
	return 0;
}

int keys_create(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct key_body body = { .role = "user" };
	char secret[KEY_SECRET_SIZE];
	struct key k = { 0 };

	if (json_read(buf_str(&rq->body), rq->body.len, key_fields, &body, e) < 0)
		return -1;
	k.role = role_by_name(body.role);
	if (k.role == ROLE_UNSET)
		return err_set(e, ERR_INVALID, "role must be user or admin");
	if (!body.name[0])
		return err_set(e, ERR_INVALID, "name must not be empty");
	if (check_name("name", body.name, e) < 0 || check_name("owner", body.owner, e) < 0)
		return -1;
	/* If the body names no owner, the key's name is the owner. */
	memcpy(k.name, body.name, sizeof(k.name));
	memcpy(k.owner, body.owner[0] ? body.owner : body.name, sizeof(k.owner));
	if (key_make(s, &k, secret, e) < 0)
		return -1;
	key_json(reply, &k, secret);
	rq->status = 201;
	return 0;
}

static void list_row(const struct key *k, void *arg)
{
	key_json(arg, k, NULL);
}

int keys_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	(void)rq;
	json_open(reply, '{');
	json_key(reply, "keys");
	json_open(reply, '[');
	if (store_key_list(s, list_row, reply, e) < 0)
		return -1;
	buf_adds(reply, "]}");
	return 0;
}

int keys_revoke(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct key k;

	if (store_key_revoke(s, rq->param, &k, e) < 0)
		return -1;
	key_cache_clear(rq->reactor->berthd->keys);
	key_json(reply, &k, NULL);
	return 0;
}
