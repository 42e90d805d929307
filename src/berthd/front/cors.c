#include "berthd/front/cors.h"

#include <string.h>

#include "berthd/front/request.h"
#include "berthd/runtime/berthd.h"
#include "lib/str.h"

#define SEPARATORS " ,"
#define MAX_AGE    "600" /* seconds that a browser may keep the answer to its question */

/* What the API reads besides those that every page may send, and what it says that matters. */
#define MAY_SEND   "Authorization, X-API-Key, Accept, Content-Type, Idempotency-Key, " \
		 "If-None-Match, If-Range, Last-Event-ID, Range, X-Trace-Id"
#define MAY_READ "X-Request-Id, X-Trace-Id, Retry-After, Idempotency-Replayed, Accept-Ranges, " \
		 "Allow, Content-Range, ETag"

/* The next one of the list, its length in *len; NULL at the end. */
static const char *next_origin(const char **at, size_t *len)
{
	const char *begin = *at + strspn(*at, SEPARATORS);

	*len = strcspn(begin, SEPARATORS);
	*at = begin + *len;
	return *len > 0 ? begin : NULL;
}

static bool is_origin(const char *text, size_t len)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]";
	const char *host = memmem(text, len, "://", 3);
	size_t left;

	if (!str_starts(text, "https://") && !str_starts(text, "http://"))
		return false;
	host += 3;
	left = len - (size_t)(host - text);
	if (left == 0 || len > CORS_ORIGIN_MAX)
		return false;
	for (size_t i = 0; i < left; i++)
		if (!strchr(may, host[i]))
			return false;
	return true;
}

int cors_check(const char *origins, struct err *e)
{
	const char *at = origins, *one;
	size_t len;

	while ((one = next_origin(&at, &len)))
		if (!is_origin(one, len)) {
			err_set(e, ERR_INVALID, "cors_origins has \"%.*s\", which is no origin",
				(int)(len < 80 ? len : 80), one);
			return err_fix(e, "An origin is a scheme, a host in small letters and "
					  "perhaps a port: https://app.example.org:8443");
		}
	return 0;
}

bool cors_allows(const char *origins, const char *origin)
{
	const char *at = origins, *one;
	size_t len;

	while (origin && (one = next_origin(&at, &len)))
		if (strlen(origin) == len && memcmp(origin, one, len) == 0)
			return true;
	return false;
}

static const char *origins_of(const struct request *rq)
{
	return rq->reactor->berthd->settings.cors_origins;
}

static void add(struct request *rq, const char *name, const char *value)
{
	(void)!http_reply_header(rq->x, name, value); /* all of it is ours, or was compared */
}

void cors_begin(struct request *rq)
{
	const char *origin = http_header(rq->x, "Origin");

	if (!origins_of(rq)[0])
		return;
	add(rq, "Vary", "Origin"); /* a cache must not give one page's answer to another */
	if (!cors_allows(origins_of(rq), origin))
		return;
	add(rq, "Access-Control-Allow-Origin", origin);
	add(rq, "Access-Control-Expose-Headers", MAY_READ);
}

bool cors_asks(const struct request *rq)
{
	return strcmp(rq->method, "OPTIONS") == 0 &&
	       http_header(rq->x, "Access-Control-Request-Method") &&
	       cors_allows(origins_of(rq), http_header(rq->x, "Origin"));
}

void cors_answer(struct request *rq, const struct buf *methods)
{
	add(rq, "Access-Control-Allow-Methods", buf_str(methods));
	add(rq, "Access-Control-Allow-Headers", MAY_SEND);
	add(rq, "Access-Control-Max-Age", MAX_AGE);
	http_reply(take_ptr(rq->x), 204, NULL, NULL, 0);
	request_end(rq, 204);
}
