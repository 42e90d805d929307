#include "egress/redact.h"

#include <ctype.h>
#include <string.h>

#define ESCAPES_MAX 8 /* backslashes before one character: JSON within JSON within JSON */
#define AGAIN_MAX   2 /* escapes of the escape itself: %252F, &amp;lt; */
#define DIGITS_MAX  6
/* The longest form of one character: backslashes, then &amp;amp;#x00002f; */
#define UNIT_MAX    (ESCAPES_MAX + 1 + 4 * AGAIN_MAX + 2 + DIGITS_MAX + 1)
#define PATHS_MAX   8 /* ways to read a text at once: %25 is one character, or three */
#define HELD_MAX    ((size_t)REDACT_LEN_MAX * UNIT_MAX)

void redact_init(struct redact *r)
{
	*r = (struct redact){ .held = buf_make(HELD_MAX + 256UL * 1024) };
}

void redact_done(struct redact *r)
{
	buf_done(&r->held);
}

void redact_add(struct redact *r, const char *text)
{
	static const char escapes[] = { '\\', '%', '&', '+' };
	size_t len = strlen(text), count = 0;

	for (size_t i = 0; i < len; i++)
		count += text[i] != '\\';
	if (count < REDACT_LEN_MIN || len > REDACT_LEN_MAX || r->count == REDACT_MAX)
		return;
	r->secrets[r->count++] = (struct redact_secret){ text, len, count };
	r->begins[(unsigned char)text[strspn(text, "\\")]] = true;
	for (size_t i = 0; i < array_len(escapes); i++)
		r->begins[(unsigned char)escapes[i]] = true;
}

/* ---- the forms of one character ---- */

/* What a form answers: how many bytes it takes, 0 if it is not there, or MORE if it may be. */
#define MORE (-1)

struct text {
	const char *at;
	size_t len;   /* at least 1 */
	bool escaped; /* a backslash stands before it */
};

static struct text behind(struct text t, int bytes)
{
	return (struct text){ t.at + bytes, t.len - (size_t)bytes, t.escaped };
}

static int match_word(struct text t, const char *word)
{
	size_t len = strlen(word), both = t.len < len ? t.len : len;

	if (memcmp(t.at, word, both) != 0)
		return 0;
	return both < len ? MORE : (int)len;
}

static int digit_of(char c, int base)
{
	int d = isdigit((unsigned char)c)    ? c - '0'
		: isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					     : base;

	return d < base ? d : -1;
}

/* At most `max` digits with the number of c; if none may be missing, just as many. */
static int match_digits(struct text t, int base, int max, bool all, char c)
{
	int value = 0, n = 0;

	while (n < max && (size_t)n < t.len && digit_of(t.at[n], base) >= 0)
		value = value * base + digit_of(t.at[n++], base);
	if (n < max && (size_t)n == t.len)
		return MORE;
	return n > 0 && (n == max || !all) && value == (unsigned char)c ? n : 0;
}

/* Whatever follows is only there if this is: its bytes and those, or what this one said. */
static int and_then(int first, int rest)
{
	return first <= 0 ? first : rest <= 0 ? rest
					      : first + rest;
}

static int match_plain(struct text t, char c)
{
	return *t.at == c || (*t.at == '+' && c == ' '); /* as forms write it */
}

static int match_backslash(struct text t, char c)
{
	if (!t.escaped || (*t.at != 'u' && *t.at != 'x'))
		return 0;
	if (t.len == 1)
		return MORE;
	return and_then(1, match_digits(behind(t, 1), 16, *t.at == 'u' ? 4 : 2, true, c));
}

/* Past the first byte, and past what is only the escape of it. */
static int skip_again(struct text t, char first, const char *again)
{
	int at = 1, n;

	if (*t.at != first)
		return 0;
	for (int i = 0; i < AGAIN_MAX; i++) {
		if ((size_t)at == t.len)
			return MORE;
		n = match_word(behind(t, at), again);
		if (n <= 0)
			break; /* the end may be in the middle of it: what is next asks for more */
		at += n;
	}
	return (size_t)at == t.len ? MORE : at;
}

static int match_percent(struct text t, char c)
{
	int at = skip_again(t, '%', "25"), n;

	if (at <= 0)
		return at;
	n = and_then(at, match_digits(behind(t, at), 16, 2, true, c));
	/* %25 is also the last of them, if c is a percent sign */
	return n == 0 && c == '%' && at > 1 ? at : n;
}

static int match_number(struct text t, char c)
{
	bool hex = t.len > 1 && (t.at[1] == 'x' || t.at[1] == 'X');
	int at = hex ? 2 : 1, n;

	if (*t.at != '#')
		return 0;
	if ((size_t)at >= t.len)
		return MORE;
	n = and_then(at, match_digits(behind(t, at), hex ? 16 : 10, DIGITS_MAX, false, c));
	if (n > 0 && (size_t)n == t.len)
		return MORE;
	if (n > 0)
		return t.at[n] == ';' ? n + 1 : 0;
	return n;
}

static int match_entity(struct text t, char c)
{
	static const struct {
		const char *name;
		char c;
	} names[] = {
		{ "amp;", '&' },
		{ "lt;", '<' },
		{ "gt;", '>' },
		{ "quot;", '"' },
		{ "apos;", '\'' },
	};
	int at = skip_again(t, '&', "amp;"), n;

	if (at <= 0)
		return at;
	n = match_number(behind(t, at), c);
	for (size_t i = 0; i < array_len(names) && n == 0; i++)
		if (names[i].c == c)
			n = match_word(behind(t, at), names[i].name);
	if (n == 0 && match_word(behind(t, at), "amp;") == MORE)
		return MORE;
	return n == 0 && c == '&' && at > 1 ? at : and_then(at, n);
}

static int (*const forms[])(struct text t, char c) = {
	match_plain, /* the first: the plain path is never left out */
	match_backslash,
	match_percent,
	match_entity,
};

/* ---- a secret, from one byte of the text on ---- */

struct paths {
	size_t at[PATHS_MAX]; /* the first is the plain one, if that goes on */
	size_t count;
};

struct found {
	size_t count, end; /* characters of the secret; the byte behind them */
	bool more;         /* the text ends before it can be told */
};

static void paths_add(struct paths *p, size_t at)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->at[i] == at)
			return;
	if (p->count < PATHS_MAX)
		p->at[p->count++] = at;
}

/* One character further. Backslashes before it are only its escape, however many. */
static void step(const char *data, size_t len, char c, struct paths *p, bool *more)
{
	struct paths next = { .count = 0 };

	for (size_t i = 0; i < p->count; i++) {
		size_t at = p->at[i], from = at;

		while (at < len && at - from < ESCAPES_MAX && data[at] == '\\')
			at++;
		if (at == len) {
			*more = true;
			continue;
		}
		for (size_t f = 0; f < array_len(forms); f++) {
			const struct text t = { data + at, len - at, at > from };
			int n = forms[f](t, c);

			*more = *more || n == MORE;
			if (n > 0)
				paths_add(&next, at + (size_t)n);
		}
	}
	*p = next;
}

static struct found look(const struct redact_secret *s, const char *data, size_t len, size_t from)
{
	struct paths paths = { .at = { from }, .count = 1 };
	struct found f = { .end = from };

	for (size_t i = 0; i < s->len && paths.count > 0; i++) {
		if (s->text[i] == '\\')
			continue;
		step(data, len, s->text[i], &paths, &f.more);
		f.count += paths.count > 0;
		for (size_t k = 0; k < paths.count; k++)
			f.end = paths.at[k] > f.end ? paths.at[k] : f.end;
	}
	return f;
}

/* A beginning is as good as the whole if it is half of it; and if the answer was cut there. */
static bool tells(const struct redact_secret *s, const struct found *f, bool cut)
{
	return f->count == s->count ||
	       (f->count >= REDACT_PART_MIN && (cut || f->count >= s->count / 2));
}

/*
 * What begins at this byte is found, *end is behind it if it is a whole one; true if that cannot
 * be told yet.
 */
static bool take_byte(struct redact *r, size_t at, bool last, size_t *end)
{
	const size_t len = r->held.len;
	bool wait = false;

	for (size_t i = 0; i < r->count; i++) {
		const struct redact_secret *s = &r->secrets[i];
		struct found f = look(s, r->held.data, len, at);
		bool whole = f.count == s->count, cut = f.more && !whole;

		if (cut && !last)
			wait = true;
		else if (tells(s, &f, cut) && (cut ? len : f.end) > r->masked)
			r->masked = cut ? len : f.end;
		if (whole && f.end > *end)
			*end = f.end;
	}
	return wait;
}

void redact_feed(struct redact *r, const char *data, size_t len, bool last, struct buf *out)
{
	size_t at = 0, end = 0;

	if (r->count == 0) {
		buf_add(out, data, len);
		return;
	}
	buf_add(&r->held, data, len);
	for (; at < r->held.len; at++) {
		if (at >= end && r->begins[(unsigned char)r->held.data[at]] &&
		    take_byte(r, at, last, &end))
			break;
		if (at < r->masked)
			r->held.data[at] = '*';
	}
	r->masked -= r->masked < at ? r->masked : at;
	buf_add(out, r->held.data, at);
	buf_drop(&r->held, at);
}

void redact_all(const struct redact *r, const char *data, size_t len, struct buf *out)
{
	struct redact once = *r;

	once.held = buf_make(len + 1);
	once.masked = 0;
	redact_feed(&once, data, len, true, out);
	buf_done(&once.held);
}
