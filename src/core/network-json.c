/* A network policy as its owner writes it. */
#include <ctype.h>
#include <string.h>

#include "core/network.h"
#include "lib/errno-map.h"
#include "lib/json.h"
#include "lib/str.h"

struct body {
	char mode[16];
	struct strv rules, bootstrap, secrets;
	int64_t max_connections, max_requests, max_bytes_out;
};

struct rule_body {
	char host[NETWORK_HOST_SIZE];
	struct strv ports, methods, paths;
};

/* clang-format off */
static const struct json_field body_fields[] = {
	JSON_FIELD_STR(body, mode, .required = true),
	JSON_FIELD_LIST(body, rules),
	JSON_FIELD_LIST(body, bootstrap),
	JSON_FIELD_STRV(body, secrets),
	JSON_FIELD_INT(body, max_connections),
	JSON_FIELD_INT(body, max_requests),
	JSON_FIELD_INT(body, max_bytes_out),
	JSON_FIELD_END
};

static const struct json_field rule_fields[] = {
	JSON_FIELD_STR(rule_body, host, .required = true),
	JSON_FIELD_LIST(rule_body, ports),
	JSON_FIELD_STRV(rule_body, methods),
	JSON_FIELD_STRV(rule_body, paths),
	JSON_FIELD_END
};
/* clang-format on */

static void body_done(struct body *b)
{
	strv_done(&b->rules);
	strv_done(&b->bootstrap);
	strv_done(&b->secrets);
}

static void rule_body_done(struct rule_body *b)
{
	strv_done(&b->ports);
	strv_done(&b->methods);
	strv_done(&b->paths);
}

/* A list of words becomes one text, with a blank between them. */
static int join(const char *what, const struct strv *words, char *out, size_t size, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(size - 1);

	for (size_t i = 0; i < words->len; i++) {
		if (!words->items[i][0] || strpbrk(words->items[i], " \t\r\n"))
			return err_set(e, ERR_INVALID, "%s: \"%.40s\" is no word", what,
				       words->items[i]);
		buf_addf(&text, "%s%s", i ? " " : "", words->items[i]);
	}
	if (buf_overflowed(&text))
		return err_set(e, ERR_INVALID, "%s: more than %zu bytes", what, size - 1);
	memcpy(out, buf_str(&text), text.len + 1);
	return 0;
}

static int bad_port(const struct network_rule *r, struct err *e)
{
	err_set(e, ERR_INVALID, "%.80s: a port is from 1 to 65535", r->host);
	return err_reason(e, REASON_INVALID_PORT, 0);
}

static int read_ports(const struct strv *ports, struct network_rule *r, struct err *e)
{
	uint64_t port;

	if (ports->len > NETWORK_PORTS_MAX)
		return err_set(e, ERR_INVALID, "%.80s: more than %d ports", r->host,
			       NETWORK_PORTS_MAX);
	for (size_t i = 0; i < ports->len; i++) {
		if (str_u64(ports->items[i], &port, e) < 0 || port < 1 || port > UINT16_MAX)
			return bad_port(r, e);
		r->ports[r->port_count++] = (uint16_t)port;
	}
	if (ports->len == 0) {
		r->ports[r->port_count++] = 443;
		r->ports[r->port_count++] = 80;
	}
	return 0;
}

static int read_rule(const char *text, bool bootstrap, struct network *n, struct err *e)
{
	cleanup(rule_body_done) struct rule_body b = { 0 };
	struct network_rule r = { .bootstrap = bootstrap };

	if (json_read(text, strlen(text), rule_fields, &b, e) < 0)
		return -1;
	for (size_t i = 0; b.host[i]; i++)
		r.host[i] = (char)tolower((unsigned char)b.host[i]);
	if (read_ports(&b.ports, &r, e) < 0 ||
	    join("methods", &b.methods, r.methods, sizeof(r.methods), e) < 0 ||
	    join("paths", &b.paths, r.paths, sizeof(r.paths), e) < 0)
		return -1;
	return network_add(n, &r, e);
}

static int read_rules(const char *what, const struct strv *list, bool bootstrap,
		      struct network *n, struct err *e)
{
	for (size_t i = 0; i < list->len; i++) {
		if (list->items[i][0] != '{') {
			err_set(e, ERR_INVALID, "%s[%zu] is no object", what, i);
			return err_fix(e, "Write {\"host\": \"api.example.com\"}.");
		}
		if (read_rule(list->items[i], bootstrap, n, e) < 0)
			return err_wrap(e, "%s[%zu]", what, i);
	}
	return 0;
}

static int read_caps(const char *text, size_t len, const struct body *b, struct network *n,
		     struct err *e)
{
	cleanup(json_free) struct json *root = NULL;
	const struct {
		const char *name;
		int64_t value;
		uint64_t *to;
	} caps[] = {
		{ "max_connections", b->max_connections, &n->max_connections },
		{ "max_requests", b->max_requests, &n->max_requests },
		{ "max_bytes_out", b->max_bytes_out, &n->max_bytes_out },
	};

	if (json_parse(text, len, &root, e) < 0)
		return -1;
	for (size_t i = 0; i < array_len(caps); i++) {
		if (!json_get(root, caps[i].name))
			continue;
		if (caps[i].value < 1) {
			err_set(e, ERR_INVALID, "%s must be at least 1", caps[i].name);
			return err_fix(e, "Leave it out where there shall be no limit.");
		}
		*caps[i].to = (uint64_t)caps[i].value;
	}
	return 0;
}

static int read_secrets(const struct strv *names, struct network *n, struct err *e)
{
	if (names->len > NETWORK_SECRETS_MAX)
		return err_set(e, ERR_INVALID, "more than %d secrets", NETWORK_SECRETS_MAX);
	for (size_t i = 0; i < names->len; i++)
		if (!names->items[i][0] ||
		    !str_copy(n->secrets[n->secret_count++], NETWORK_SECRET_NAME, names->items[i]))
			return err_set(e, ERR_INVALID, "secrets[%zu] is no name of a secret", i);
	return 0;
}

static int read_mode(const struct body *b, enum network_mode *ret, struct err *e)
{
	enum network_mode mode = NETWORK_NONE;

	while (mode < NETWORK_MODE_COUNT && strcmp(b->mode, network_mode_name(mode)) != 0)
		mode++;
	if (mode == NETWORK_MODE_COUNT)
		return err_set(e, ERR_INVALID,
			       "mode must be \"none\", \"allow\" or \"open\", not \"%s\"",
			       str_has_control(b->mode) ? "..." : b->mode);
	if (mode == NETWORK_NONE && b->rules.len + b->bootstrap.len + b->secrets.len > 0)
		return err_set(e, ERR_INVALID, "mode \"none\" has no rules");
	if (mode == NETWORK_OPEN && b->rules.len + b->bootstrap.len > 0) {
		err_set(e, ERR_INVALID, "mode \"open\" has no rules: it reaches every public name");
		return err_fix(e, "Leave them out, or say \"allow\" to reach only what they name.");
	}
	*ret = mode;
	return 0;
}

int network_read(const char *text, size_t len, struct network *n, struct err *e)
{
	cleanup(body_done) struct body b = { 0 };

	if (json_read(text, len, body_fields, &b, e) < 0 || read_mode(&b, &n->mode, e) < 0)
		return -1;
	if (read_rules("rules", &b.rules, false, n, e) < 0 ||
	    read_rules("bootstrap", &b.bootstrap, true, n, e) < 0 ||
	    read_secrets(&b.secrets, n, e) < 0)
		return -1;
	return read_caps(text, len, &b, n, e);
}

static void words_json(struct buf *out, const char *name, const char *words)
{
	json_key(out, name);
	json_open(out, '[');
	for (const char *at = words; *at;) {
		size_t len = strcspn(at, " ");

		if (at != words)
			buf_adds(out, ",");
		json_add_text(out, at, len);
		at += len;
		at += strspn(at, " ");
	}
	buf_adds(out, "]");
}

static void rules_json(struct buf *out, const char *name, const struct network *n, bool bootstrap)
{
	json_key(out, name);
	json_open(out, '[');
	for (size_t i = 0; i < n->count; i++) {
		const struct network_rule *r = &n->rules[i];

		if (r->bootstrap != bootstrap)
			continue;
		json_open(out, '{');
		json_str(out, "host", r->host);
		json_key(out, "ports");
		json_open(out, '[');
		for (size_t k = 0; k < r->port_count; k++)
			buf_addf(out, "%s%u", k ? "," : "", r->ports[k]);
		buf_adds(out, "]");
		if (r->methods[0])
			words_json(out, "methods", r->methods);
		if (r->paths[0])
			words_json(out, "paths", r->paths);
		buf_adds(out, "}");
	}
	buf_adds(out, "]");
}

void network_json(struct buf *out, const struct network *n)
{
	json_str(out, "mode", network_mode_name(n->mode));
	if (n->mode == NETWORK_ALLOW) {
		rules_json(out, "rules", n, false);
		rules_json(out, "bootstrap", n, true);
	}
	if (n->max_connections)
		json_int(out, "max_connections", (int64_t)n->max_connections);
	if (n->max_requests)
		json_int(out, "max_requests", (int64_t)n->max_requests);
	if (n->max_bytes_out)
		json_int(out, "max_bytes_out", (int64_t)n->max_bytes_out);
	if (n->secret_count > 0) {
		json_key(out, "secrets");
		json_open(out, '[');
		for (size_t i = 0; i < n->secret_count; i++) {
			if (i > 0)
				buf_adds(out, ",");
			json_add_string(out, n->secrets[i]);
		}
		buf_adds(out, "]");
	}
}
