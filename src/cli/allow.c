#include "cli/allow.h"

#include <string.h>

#include "lib/json.h"
#include "lib/str.h"

#define SHAPE "Write it like api.example.com or *.example.com:443,8443, without https:// and path."

static int add_rule(struct buf *out, const char *text, struct err *e)
{
	size_t len = strcspn(text, ":");

	if (str_starts(text + len, "://")) {
		err_set(e, ERR_INVALID, "%.80s: a host has no %.*s:// before it", text,
			len < 20 ? (int)len : 20, text);
		return err_fix(e, SHAPE);
	}
	json_open(out, '{');
	json_key(out, "host");
	json_add_text(out, text, len);
	if (text[len]) {
		const char *ports = text + len + 1;

		if (!*ports || ports[strspn(ports, "0123456789,")]) {
			err_set(e, ERR_INVALID, "%.80s: ports are numbers, with commas", text);
			return err_fix(e, SHAPE);
		}
		json_key(out, "ports");
		buf_addf(out, "[%s]", ports);
	}
	buf_adds(out, "}");
	return 0;
}

int allow_policy(struct buf *out, const char *mode, const struct strv *hosts, size_t first,
		 struct err *e)
{
	bool list = mode && strcmp(mode, "allow") == 0;

	if (list && hosts->len == first) {
		err_set(e, ERR_INVALID, "allow needs the names of what may be reached");
		return err_fix(e, "Give them with --allow NAME, or say none to reach nothing.");
	}
	if (mode && !list && hosts->len > first) {
		err_set(e, ERR_INVALID, "%.40s and names of hosts cannot both be given", mode);
		return err_fix(e, "Name hosts to reach only those, or say open and name none.");
	}
	json_open(out, '{');
	json_str(out, "mode", mode ? mode : hosts->len > first ? "allow"
							       : "none");
	if (hosts->len > first) {
		json_key(out, "rules");
		json_open(out, '[');
		for (size_t i = first; i < hosts->len; i++)
			if (add_rule(out, hosts->items[i], e) < 0)
				return -1;
		buf_adds(out, "]");
	}
	buf_adds(out, "}");
	return 0;
}

const char *allow_text(const char *mode)
{
	static const struct {
		const char *mode, *text;
	} rows[] = {
		{ "allow", "only what is listed here" },
		{ "open", "everything that is public" },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (strcmp(mode, rows[i].mode) == 0)
			return rows[i].text;
	return "nothing";
}
