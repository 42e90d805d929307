#include "egress/answer-watch.h"

static void on_body(struct http_parser *p, const char *data, size_t len)
{
	(void)p;
	(void)data;
	(void)len;
}

void answer_watch_init(struct answer_watch *a)
{
	*a = (struct answer_watch){ 0 };
	http_parser_init_reply(&a->parser, false);
	a->parser.any_end = true;
	a->parser.on_body = on_body;
}

void answer_watch_done(struct answer_watch *a)
{
	http_parser_done(&a->parser);
}

/* Of two that are owed the second may be to a HEAD, which only their order tells. */
void answer_watch_asked(struct answer_watch *a, bool head_only)
{
	if (a->owed)
		a->lost = true;
	a->owed = true;
	a->parser.head_only = head_only;
}

static void end_answer(struct answer_watch *a)
{
	a->owed = a->begun = a->in_body = false;
	http_parser_next(&a->parser);
}

static void take_head(struct answer_watch *a)
{
	int status = http_parser_status(&a->parser);

	if (status == 101)
		a->lost = true; /* no HTTP from here on */
	else if (status < 200)
		http_parser_next(&a->parser); /* the real one follows, and may be ours */
	else if (a->parser.whole)
		end_answer(a);
	else
		a->in_body = true;
	a->begun = a->in_body;
}

void answer_watch_sent(struct answer_watch *a, const char *data, size_t len)
{
	enum parse_result r;
	size_t used;

	while (len > 0 && !a->lost) {
		a->begun = true;
		r = a->in_body ? http_parser_body(&a->parser, data, len, &used)
			       : http_parser_head(&a->parser, data, len, &used);
		if (r == PARSE_BAD || !a->owed) {
			a->lost = true;
			return;
		}
		data += used;
		len -= used;
		if (r == PARSE_DONE && a->in_body)
			end_answer(a);
		else if (r == PARSE_DONE)
			take_head(a);
	}
}

bool answer_watch_is_inside(const struct answer_watch *a)
{
	return a->lost || a->begun;
}
