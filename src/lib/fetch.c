#include "lib/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/errno-map.h"
#include "lib/reply-head.h"
#include "lib/str.h"
#include "lib/time.h"

#define CONNECT_TIMEOUT_MS 10000L
#define UPGRADE_TIMEOUT_MS 60000
#define RECEIVE_AT_ONCE    (256UL * 1024)

static void easy_done(CURL **curl)
{
	curl_easy_cleanup(*curl);
}

static void list_done(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
	cleanup(buf_done) struct buf line = buf_make(FETCH_HEAD_MAX);

	buf_addf(&line, "%s: %s", name, value);
	*list = curl_slist_append(*list, buf_str(&line));
}

/* One request under way, as the callbacks see it. */
struct transfer {
	const struct fetch_request *q;
	struct fetch_reply *reply;
	CURL *curl;
	bool gave_up;
	bool failed; /* `e` says why */
	struct err *e;
};

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	const char *type = NULL, *want = t->q->sink_type ? t->q->sink_type : "text/event-stream";

	(void)size; /* always 1 */
	(void)curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
	t->reply->streamed = t->q->sink && type && str_starts(type, want);
	if (t->reply->streamed) {
		t->failed = t->q->sink(t->q->arg, data, n, t->e) < 0;
		return t->failed ? 0 : n;
	}
	buf_add(&t->reply->body, data, n);
	if (!buf_overflowed(&t->reply->body))
		return n;
	err_set(t->e, ERR_TOO_LARGE, "the answer has more than %lu bytes", FETCH_BODY_MAX);
	t->failed = true;
	return 0;
}

static size_t on_upload(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	ssize_t got;

	do
		got = read(t->q->body_fd, data, size * n);
	while (got < 0 && errno == EINTR);
	if (got >= 0)
		return (size_t)got;
	err_sys(t->e, errno, "read what is to be sent");
	t->failed = true;
	return CURL_READFUNC_ABORT;
}

static int on_tick(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
		   curl_off_t up)
{
	struct transfer *t = arg;

	(void)down_total, (void)down, (void)up_total;
	t->gave_up = t->q->tick && t->q->tick(t->q->arg, (uint64_t)up);
	return t->gave_up;
}

static int to_err(CURLcode code, const char *detail, const char *url, struct err *e)
{
	const char *says = detail[0] ? detail : curl_easy_strerror(code);

	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(e, ERR_TIMEOUT, "%.100s: %s", url, says);
	if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
		err_set(e, ERR_BUSY, "no server answers at %.100s: %s", url, says);
		err_reason(e, REASON_CONNECTION, 0);
		return err_fix(e, "Start one (`sudo berth dev --dir DIR`), or set BERTH_URL.");
	}
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		return err_set(e, ERR_INVALID, "not a URL for this: %.100s", url);
	return err_set(e, ERR_INTERNAL, "%.100s: %s", url, says);
}

static void set_common(CURL *curl, const struct fetch_request *q, char *detail)
{
	detail[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_URL, q->url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L); /* a name `..` is not another path */
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
}

static void set_body(CURL *curl, struct transfer *t)
{
	const struct fetch_request *q = t->q;

	if (q->upload) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
		curl_easy_setopt(curl, CURLOPT_READDATA, t);
		curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
		if (q->body_size)
			curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_size);
	} else if (q->body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body);
	}
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method ? q->method : "GET");
}

static struct curl_slist *make_headers(const struct fetch_request *q)
{
	struct curl_slist *list = NULL;

	add_header(&list, "Accept", q->accept ? q->accept : "application/json");
	if (q->content_type)
		add_header(&list, "Content-Type", q->content_type);
	if (q->idempotency_key)
		add_header(&list, "Idempotency-Key", q->idempotency_key);
	if (q->upload) /* no second of silence before the first byte */
		list = curl_slist_append(list, "Expect:");
	if (q->key && q->key[0]) {
		cleanup(buf_done) struct buf bearer = buf_make(FETCH_HEAD_MAX);

		buf_addf(&bearer, "Bearer %s", q->key);
		add_header(&list, "Authorization", buf_str(&bearer));
	}
	return list;
}

/* A key with a line break in it would be a header of its own. */
static int check_key(const struct fetch_request *q, struct err *e)
{
	for (const char *p = q->key ? q->key : ""; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(e, ERR_INVALID, "the API key has a blank or worse in it");
	return 0;
}

int fetch(const struct fetch_request *q, struct fetch_reply *ret, struct err *e)
{
	cleanup(easy_done) CURL *curl = curl_easy_init();
	cleanup(list_done) struct curl_slist *headers = make_headers(q);
	struct transfer t = { .q = q, .reply = ret, .curl = curl, .e = e };
	char detail[CURL_ERROR_SIZE];
	CURLcode code;
	long status = 0;

	if (check_key(q, e) < 0)
		return -1;
	if (!curl || !headers)
		return err_set(e, ERR_INTERNAL, "libcurl does not start");
	ret->body.max = FETCH_BODY_MAX;
	set_common(curl, q, detail);
	set_body(curl, &t);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &t);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_tick);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &t);

	code = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	ret->status = (int)status;
	if (t.failed)
		return -1;
	if (t.gave_up)
		return err_set(e, ERR_TIMEOUT, "interrupted");
	/* A server that refuses an upload in the middle has said why: that is the answer. */
	if (code == CURLE_SEND_ERROR && status >= 400 && ret->body.len)
		return 0;
	return code == CURLE_OK ? 0 : to_err(code, detail, q->url, e);
}

void fetch_reply_done(struct fetch_reply *r)
{
	buf_done(&r->body);
}

struct fetch_link {
	CURL *curl;
	int fd;
	struct buf early; /* what came right behind the head */
};

void fetch_link_close(struct fetch_link **link)
{
	if (!*link)
		return;
	curl_easy_cleanup((*link)->curl);
	buf_done(&(*link)->early);
	free_ptr(link);
	*link = NULL;
}

int fetch_link_fd(const struct fetch_link *link)
{
	return link->fd;
}

int fetch_link_send(struct fetch_link *link, const void *data, size_t len, size_t *ret,
		    struct err *e)
{
	size_t sent = 0;
	CURLcode code = curl_easy_send(link->curl, data, len, &sent);

	if (code != CURLE_OK && code != CURLE_AGAIN)
		return err_set(e, ERR_INTERNAL, "send: %s", curl_easy_strerror(code));
	*ret = code == CURLE_AGAIN ? 0 : sent;
	return 0;
}

int fetch_link_receive(struct fetch_link *link, struct buf *in, bool *ended, struct err *e)
{
	char chunk[64 * 1024];
	size_t total = link->early.len, n = 0;
	CURLcode code = CURLE_OK;

	if (link->early.len)
		buf_add(in, link->early.data, link->early.len);
	buf_clear(&link->early);
	for (; total < RECEIVE_AT_ONCE; total += n) {
		code = curl_easy_recv(link->curl, chunk, sizeof(chunk), &n);
		if (code != CURLE_OK || n == 0)
			break;
		buf_add(in, chunk, n);
	}
	if (code != CURLE_OK && code != CURLE_AGAIN && code != CURLE_GOT_NOTHING)
		return err_set(e, ERR_INTERNAL, "receive: %s", curl_easy_strerror(code));
	*ended = code == CURLE_GOT_NOTHING || (code == CURLE_OK && n == 0);
	return 0;
}

static int wait_for(const struct fetch_link *link, short events, uint64_t deadline, struct err *e)
{
	struct pollfd p = { .fd = link->fd, .events = events };
	uint64_t now = time_mono_ms();

	if (now >= deadline)
		return err_set(e, ERR_TIMEOUT, "the server does not answer the upgrade");
	if (poll(&p, 1, (int)(deadline - now)) < 0 && errno != EINTR)
		return err_sys(e, errno, "poll");
	return 0;
}

static int send_head(struct fetch_link *link, const struct buf *head, uint64_t deadline,
		     struct err *e)
{
	for (size_t at = 0, n = 0; at < head->len; at += n) {
		if (fetch_link_send(link, head->data + at, head->len - at, &n, e) < 0)
			return -1;
		if (n == 0 && wait_for(link, POLLOUT, deadline, e) < 0)
			return -1;
	}
	return 0;
}

/* Until the head is whole, and with it the body of a refusal. What is over stays in `in`. */
static int receive_head(struct fetch_link *link, struct reply_head *head, struct buf *in,
			uint64_t deadline, struct err *e)
{
	bool ended = false;

	for (;;) {
		ssize_t used = reply_head_parse(buf_str(in), in->len, head, e);

		if (used < 0)
			return -1;
		if (used > 0 && head->length > FETCH_HEAD_MAX)
			return err_set(e, ERR_TOO_LARGE, "the answer to the upgrade is too large");
		if (used > 0 && (head->status == 101 || ended ||
				 in->len - (size_t)used >= head->length)) {
			buf_drop(in, (size_t)used);
			return 0;
		}
		if (ended || (used == 0 && in->len > FETCH_HEAD_MAX) || buf_overflowed(in))
			return err_set(e, ERR_INTERNAL, "the server closed during the upgrade");
		if (wait_for(link, POLLIN, deadline, e) < 0 ||
		    fetch_link_receive(link, in, &ended, e) < 0)
			return -1;
	}
}

/* "http://host:1/path?x" to "host:1" and "/path?x". */
static int split_url(const char *url, struct buf *host, const char **path, struct err *e)
{
	const char *from = strstr(url, "://"), *slash;

	if (!from || strpbrk(url, " \r\n\t"))
		return err_set(e, ERR_INVALID, "not a URL: %.100s", url);
	from += 3;
	slash = strchr(from, '/');
	buf_add(host, from, slash ? (size_t)(slash - from) : strlen(from));
	*path = slash ? slash : "/";
	return 0;
}

static int make_head(const struct fetch_request *q, const char *protocol, struct buf *out,
		     struct err *e)
{
	cleanup(buf_done) struct buf host = buf_make(FETCH_HEAD_MAX);
	const char *path = "/";

	if (split_url(q->url, &host, &path, e) < 0 || check_key(q, e) < 0)
		return -1;
	buf_addf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", q->method ? q->method : "GET", path,
		 buf_str(&host));
	if (q->key && q->key[0])
		buf_addf(out, "Authorization: Bearer %s\r\n", q->key);
	buf_addf(out, "Connection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n\r\n", protocol);
	return buf_overflowed(out) ? err_set(e, ERR_TOO_LARGE, "the request is too large") : 0;
}

static int link_open(const struct fetch_request *q, struct fetch_link *link, struct err *e)
{
	char detail[CURL_ERROR_SIZE];
	curl_socket_t fd = CURL_SOCKET_BAD;
	CURLcode code;

	if (!link->curl)
		return err_set(e, ERR_INTERNAL, "libcurl does not start");
	set_common(link->curl, q, detail);
	curl_easy_setopt(link->curl, CURLOPT_CONNECT_ONLY, 1L);
	code = curl_easy_perform(link->curl);
	curl_easy_setopt(link->curl, CURLOPT_ERRORBUFFER, NULL); /* `detail` ends with us */
	if (code != CURLE_OK)
		return to_err(code, detail, q->url, e);
	(void)curl_easy_getinfo(link->curl, CURLINFO_ACTIVESOCKET, &fd);
	link->fd = fd;
	return 0;
}

int fetch_upgrade(const struct fetch_request *q, const char *protocol, struct fetch_link **ret,
		  struct fetch_reply *reply, struct err *e)
{
	cleanup(fetch_link_close) struct fetch_link *link = xcalloc(1, sizeof(*link));
	cleanup(buf_done) struct buf head = buf_make(FETCH_HEAD_MAX);
	cleanup(buf_done) struct buf in = buf_make(2 * RECEIVE_AT_ONCE);
	uint64_t deadline = time_mono_ms() + UPGRADE_TIMEOUT_MS;
	struct reply_head answer = { 0 };

	link->curl = curl_easy_init();
	link->early = buf_make(2 * RECEIVE_AT_ONCE);
	if (make_head(q, protocol, &head, e) < 0 || link_open(q, link, e) < 0 ||
	    send_head(link, &head, deadline, e) < 0 ||
	    receive_head(link, &answer, &in, deadline, e) < 0)
		return -1;

	reply->status = answer.status;
	if (answer.status == 101) {
		if (in.len)
			buf_add(&link->early, in.data, in.len);
		*ret = take_ptr(link);
	} else {
		reply->body.max = FETCH_BODY_MAX;
		buf_adds(&reply->body, buf_str(&in));
	}
	return 0;
}

void fetch_escape(struct buf *out, const char *s)
{
	for (; *s; s++) {
		bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9') || strchr("-._~", *s);

		if (plain)
			buf_add(out, s, 1);
		else
			buf_addf(out, "%%%02X", (unsigned)(unsigned char)*s);
	}
}
