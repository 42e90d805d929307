#include "lib/pattern.h"

#include <string.h>

#define START     UINT64_C(1) /* place 0: nothing of it has come */
#define DEPTH_MAX 32

/* Glushkov's construction: what a part of the expression can begin and end with. */
struct part {
	uint64_t first, last;
	bool empty; /* it may be nothing */
};

struct parser {
	struct pattern *p;
	const char *at;
	bool fold;
	unsigned depth;
};

static int refuse(const struct parser *r, const char *what, struct err *e)
{
	err_set(e, ERR_INVALID, "%s in the expression, at \"%.20s\"", what, r->at);
	err_fix(e,
		"Known are x . [a-z] [^a-z] \\d \\w \\s ^ $ \\b ( ) | * + ?, with up to %d "
		"letters, classes and anchors.",
		PATTERN_PLACES);
	return -1;
}

/* ---- sets of bytes ---- */

struct bytes_set {
	uint64_t bits[4];
};

static void set_add(struct bytes_set *s, uint8_t c)
{
	s->bits[c / 64] |= UINT64_C(1) << c % 64;
}

static bool set_has(const struct bytes_set *s, uint8_t c)
{
	return s->bits[c / 64] >> c % 64 & 1;
}

static void set_add_range(struct bytes_set *s, uint8_t from, uint8_t to)
{
	for (unsigned c = from; c <= to; c++)
		set_add(s, (uint8_t)c);
}

static void set_invert(struct bytes_set *s)
{
	for (size_t i = 0; i < 4; i++)
		s->bits[i] = ~s->bits[i];
}

static bool is_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* \d and its like. False if it is none. */
static bool set_add_named(struct bytes_set *s, char name)
{
	struct bytes_set named = { 0 };

	switch (name | 0x20) {
	case 'd':
		set_add_range(&named, '0', '9');
		break;
	case 'w':
		for (unsigned c = 0; c < 256; c++)
			if (is_word((uint8_t)c))
				set_add(&named, (uint8_t)c);
		break;
	case 's':
		set_add(&named, ' ');
		set_add_range(&named, '\t', '\r');
		break;
	default:
		return false;
	}
	if (!(name & 0x20))
		set_invert(&named);
	for (size_t i = 0; i < 4; i++)
		s->bits[i] |= named.bits[i];
	return true;
}

static void set_fold(struct bytes_set *s)
{
	for (unsigned i = 0; i < 26; i++) {
		uint8_t small = (uint8_t)('a' + i), large = (uint8_t)('A' + i);

		if (set_has(s, small) || set_has(s, large)) {
			set_add(s, small);
			set_add(s, large);
		}
	}
}

/* ---- one place ---- */

static int place_new(struct parser *r, struct part *ret, struct err *e)
{
	if (r->p->places == PATTERN_PLACES)
		return refuse(r, "there is too much", e);
	ret->first = ret->last = UINT64_C(1) << ++r->p->places;
	ret->empty = false;
	return 0;
}

static int place_set(struct parser *r, struct bytes_set *s, struct part *ret, struct err *e)
{
	if (place_new(r, ret, e) < 0)
		return -1;
	if (r->fold)
		set_fold(s);
	for (unsigned c = 0; c < 256; c++)
		if (set_has(s, (uint8_t)c))
			r->p->on[c] |= ret->first;
	return 0;
}

static int place_mark(struct parser *r, enum pattern_mark mark, struct part *ret, struct err *e)
{
	if (place_new(r, ret, e) < 0)
		return -1;
	r->p->on[mark] |= ret->first;
	return 0;
}

/* Behind a backslash: a byte, if it is one. */
static bool escaped(char c, uint8_t *ret)
{
	if (c == 't')
		*ret = '\t';
	else if (c && !is_word((uint8_t)c))
		*ret = (uint8_t)c;
	else
		return false;
	return true;
}

static int read_escape(struct parser *r, struct part *ret, struct err *e)
{
	struct bytes_set s = { 0 };
	uint8_t c;

	if (r->at[1] == 'b') {
		r->at += 2;
		return place_mark(r, PATTERN_WORD, ret, e);
	}
	if (escaped(r->at[1], &c))
		set_add(&s, c);
	else if (!r->at[1] || !set_add_named(&s, r->at[1]))
		return refuse(r, "there is an unknown escape", e);
	r->at += 2;
	return place_set(r, &s, ret, e);
}

/* One byte of a class, or a named one: then `*named`. */
static int read_member(struct parser *r, struct bytes_set *s, uint8_t *ret, bool *named,
		       struct err *e)
{
	*named = false;
	if (!*r->at)
		return refuse(r, "there is a class without an end", e);
	if (*r->at != '\\') {
		*ret = (uint8_t)*r->at++;
		return 0;
	}
	if (!escaped(r->at[1], ret)) {
		if (!r->at[1] || !set_add_named(s, r->at[1]))
			return refuse(r, "there is an unknown escape", e);
		*named = true;
	}
	r->at += 2;
	return 0;
}

static int read_class(struct parser *r, struct part *ret, struct err *e)
{
	struct bytes_set s = { 0 };
	bool inverted = r->at[1] == '^', named;
	uint8_t from, to;

	r->at += inverted ? 2 : 1;
	do {
		if (read_member(r, &s, &from, &named, e) < 0)
			return -1;
		if (named)
			continue;
		to = from;
		if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
			r->at++;
			if (read_member(r, &s, &to, &named, e) < 0)
				return -1;
			if (named || to < from)
				return refuse(r, "there is a range that is none", e);
		}
		set_add_range(&s, from, to);
	} while (*r->at != ']');
	r->at++;
	if (inverted)
		set_invert(&s);
	return place_set(r, &s, ret, e);
}

/* ---- what is made of places ---- */

static int read_any(struct parser *r, struct part *ret, struct err *e);

static int read_group(struct parser *r, struct part *ret, struct err *e)
{
	if (r->depth == DEPTH_MAX)
		return refuse(r, "there are too many brackets", e);
	r->depth++;
	r->at++;
	if (r->at[0] == '?' && r->at[1] == ':')
		r->at += 2;
	if (read_any(r, ret, e) < 0)
		return -1;
	if (*r->at != ')')
		return refuse(r, "there is a bracket without an end", e);
	r->at++;
	r->depth--;
	return 0;
}

static int read_one(struct parser *r, struct part *ret, struct err *e)
{
	struct bytes_set s = { 0 };

	switch (*r->at) {
	case '(':
		return read_group(r, ret, e);
	case '[':
		return read_class(r, ret, e);
	case '\\':
		return read_escape(r, ret, e);
	case '^':
		r->at++;
		return place_mark(r, PATTERN_LINE, ret, e);
	case '$':
		r->at++;
		return place_mark(r, PATTERN_LINE_END, ret, e);
	case '*':
	case '+':
	case '?':
		return refuse(r, "there is nothing to repeat", e);
	case '{':
		return refuse(r, "there is a count", e);
	case '.':
		set_invert(&s);
		break;
	default:
		set_add(&s, (uint8_t)*r->at);
	}
	r->at++;
	return place_set(r, &s, ret, e);
}

static void join(struct pattern *p, uint64_t from, uint64_t to)
{
	for (; from; from &= from - 1)
		p->follow[__builtin_ctzll(from)] |= to;
}

/* With what repeats it. `x*?`: how greedy it is makes no difference to whether it is there. */
static int read_repeated(struct parser *r, struct part *ret, struct err *e)
{
	char how;

	if (read_one(r, ret, e) < 0)
		return -1;
	if (!*r->at || !strchr("*+?", *r->at))
		return 0;
	how = *r->at++;
	ret->empty |= how != '+';
	if (how != '?')
		join(r->p, ret->last, ret->first);
	r->at += *r->at == '?';
	return 0;
}

static int read_sequence(struct parser *r, struct part *ret, struct err *e)
{
	*ret = (struct part){ .empty = true };
	while (*r->at && *r->at != '|' && *r->at != ')') {
		struct part next;

		if (read_repeated(r, &next, e) < 0)
			return -1;
		join(r->p, ret->last, next.first);
		ret->first |= ret->empty ? next.first : 0;
		ret->last = next.last | (next.empty ? ret->last : 0);
		ret->empty &= next.empty;
	}
	return 0;
}

static int read_any(struct parser *r, struct part *ret, struct err *e)
{
	if (read_sequence(r, ret, e) < 0)
		return -1;
	while (*r->at == '|') {
		struct part other;

		r->at++;
		if (read_sequence(r, &other, e) < 0)
			return -1;
		ret->first |= other.first;
		ret->last |= other.last;
		ret->empty |= other.empty;
	}
	return 0;
}

/* However many places it may be at, a byte of the text costs eight steps. */
static void fill_follow_8(struct pattern *p)
{
	for (size_t i = 0; i < 8; i++)
		for (size_t set = 1; set < 256; set++) {
			size_t place = 8 * i + (size_t)__builtin_ctzl(set);

			p->follow_8[i][set] = p->follow_8[i][set & (set - 1)] |
					      (place <= PATTERN_PLACES ? p->follow[place] : 0);
		}
}

int pattern_read(const char *text, bool fold, struct pattern *ret, struct err *e)
{
	struct pattern p = { 0 };
	struct parser r = { .p = &p, .at = text, .fold = fold };
	struct part all;

	if (read_any(&r, &all, e) < 0)
		return -1;
	if (*r.at)
		return refuse(&r, "there is a bracket that ends nothing", e);
	p.follow[0] = all.first;
	p.last = all.last | (all.empty ? START : 0);
	fill_follow_8(&p);
	*ret = p;
	return 0;
}

/* ---- looking ---- */

static uint64_t step(const struct pattern *p, uint64_t at, uint64_t allowed)
{
	uint64_t next = 0;

	for (size_t i = 0; at; i++, at >>= 8)
		next |= p->follow_8[i][at & 0xff];
	return next & allowed;
}

/* Marks take no room: they may be passed, one behind the other, in any order. */
static bool pass(const struct pattern *p, struct pattern_look *l, uint64_t marks)
{
	uint64_t before;

	if (!l->in_line) {
		l->at = START;
		marks |= p->on[PATTERN_LINE];
	}
	do {
		before = l->at;
		l->at |= step(p, l->at, marks);
	} while (l->at != before);
	return l->at & p->last;
}

static bool end_line(const struct pattern *p, struct pattern_look *l)
{
	uint64_t marks = p->on[PATTERN_LINE_END] | (l->in_word ? p->on[PATTERN_WORD] : 0);
	bool found = pass(p, l, marks);

	*l = (struct pattern_look){ 0 };
	return found;
}

static bool take(const struct pattern *p, struct pattern_look *l, uint8_t c)
{
	bool word = is_word(c), edge = word != l->in_word;

	if ((!l->in_line || edge) && pass(p, l, edge ? p->on[PATTERN_WORD] : 0))
		return true;
	l->in_line = true;
	l->in_word = word;
	l->at = START | step(p, l->at, p->on[c]);
	return l->at & p->last;
}

bool pattern_find(const struct pattern *p, struct pattern_look *l, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] == '\n' ? end_line(p, l) : take(p, l, data[i]))
			return true;
	return false;
}

bool pattern_find_end(const struct pattern *p, struct pattern_look *l)
{
	return l->in_line && end_line(p, l);
}
