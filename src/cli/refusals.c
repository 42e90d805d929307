#include "cli/refusals.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/say.h"

/* A refusal is on record some 300 ms after it happened. */
#define LOOKS     3
#define LOOK_MS   150
#define LINES_MAX 5

static void tell_one(const struct json *ev)
{
	const char *name = json_get_str(ev, "name");
	long long port = json_get_int(ev, "port"), count = json_get_int(ev, "count");
	char to[300];

	if (port > 0 && strcmp(json_get_str(ev, "kind"), "name") != 0) /* that is DNS's port */
		snprintf(to, sizeof(to), "%.250s:%lld", name, port);
	else
		snprintf(to, sizeof(to), "%.250s", name);
	if (count > 1)
		say("the sandbox may not reach %s (%s, %lld times)", to, json_get_str(ev, "rule"),
		    count);
	else
		say("the sandbox may not reach %s (%s)", to, json_get_str(ev, "rule"));
}

void refusals_tell(const struct context *c, const char *id)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, id);
	buf_adds(&path, "/security");
	for (int i = 0; i < LOOKS; i++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		const struct json *list;
		struct err ignored; /* the command's own end is what counts */

		(void)poll(NULL, 0, LOOK_MS);
		if (client_call(c, "GET", buf_str(&path), NULL, &reply, &ignored) < 0)
			return;
		list = json_get(reply.tree, "events");
		if (json_len(list) == 0)
			continue;
		for (size_t n = 0; n < json_len(list) && n < LINES_MAX; n++)
			tell_one(json_at(list, n));
		if (json_len(list) > LINES_MAX)
			say("and %zu more: berth network events %s",
			    json_len(list) - LINES_MAX, id);
		say("`--allow NAME` lets it reach a name");
		return;
	}
}
