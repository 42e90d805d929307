#include "image/pull-error.h"

#include <string.h>

#include "lib/str.h"

#define WHY_MAX  190 /* of skopeo's words in a message, behind the reference */

#define FIX_NAME "Check its name and tag: the registry has none of that name."
#define FIX_LOGIN \
	"The registry wants a login, or has none of that name: pull one that needs no login, or " \
	"bring it with 'berth image import'."
#define FIX_REACH \
	"It is the server's host that pulls: check that it reaches the registry, then try again."

/* The log quotes the message; the reader gets it as it was. */
static void unquote(struct buf *text)
{
	size_t to = 0;

	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] != '\\' || i + 1 == text->len || text->data[i + 1] != '"')
			text->data[to++] = text->data[i];
	text->data[to] = '\0';
	text->len = to;
}

/* skopeo's last words: `time="..." level=fatal msg="what it did docker://NAME: why it failed"`. */
static const char *last_words(struct buf *text)
{
	static const char sign[] = "level=fatal msg=\"", scheme[] = "docker://";
	const char *msg, *name, *end;

	while (text->len > 0 && strchr("\n\"", text->data[text->len - 1]))
		text->data[--text->len] = '\0';
	if (text->len > 0)
		unquote(text);
	msg = strstr(buf_str(text), sign);
	msg = msg ? msg + strlen(sign) : buf_str(text);
	/* We say the name ourselves; skopeo's has a tag that was not given. */
	name = strstr(msg, scheme);
	end = name ? strstr(name, ": ") : NULL;
	return end ? end + 2 : msg;
}

/* The cause stands at the end of a long line: that is what is kept, from the begin of a word. */
static const char *end_of(const char *why)
{
	size_t len = strlen(why);
	const char *blank;

	if (len <= WHY_MAX)
		return why;
	why += len - WHY_MAX;
	blank = strchr(why, ' ');
	return blank ? blank + 1 : why;
}

int pull_error(const char *reference, struct buf *said, struct err *e)
{
	static const struct {
		const char *sign;
		enum err_code code;
		const char *fix;
	} signs[] = {
		{ "manifest unknown", ERR_NOT_FOUND, FIX_NAME },
		{ "name unknown", ERR_NOT_FOUND, FIX_NAME },
		{ "repository name not known", ERR_NOT_FOUND, FIX_NAME },
		{ "unauthorized", ERR_DENIED, FIX_LOGIN },
		{ "denied", ERR_DENIED, FIX_LOGIN },
		{ "invalid reference", ERR_INVALID, "Write it like HOST/NAME:TAG." },
		{ "HTTP response to HTTPS", ERR_INVALID,
		  "For a registry without TLS: insecure_registries of berth-node, or 'berth dev "
		  "--insecure-registry'." },
		{ "timeout", ERR_TIMEOUT, FIX_REACH },
		{ "connection refused", ERR_TIMEOUT, FIX_REACH },
		{ "no such host", ERR_NOT_FOUND,
		  "Check the registry's name. It is the server's host that pulls: it must know "
		  "that name, too." },
		{ "no space left", ERR_LIMIT, "" },
	};
	const char *all = last_words(said), *why = end_of(all);
	enum err_code code = ERR_INVALID;
	const char *fix = FIX_REACH;

	for (size_t i = 0; i < array_len(signs); i++)
		if (strstr(all, signs[i].sign)) {
			code = signs[i].code;
			fix = signs[i].fix;
			break;
		}
	err_set(e, code, "%.100s cannot be pulled: %s%s", reference, why == all ? "" : "... ", why);
	return fix[0] ? err_fix(e, "%s", fix) : -1;
}
