#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/str.h"

#define HELP_COLUMN 26
#define WORD_SHOWN  60

/* "1.5" to 1500, "2" to 2000. */
static int parse_cpus(const char *s, uint64_t *ret, struct err *e)
{
	static const unsigned scale[] = { 1000, 100, 10, 1 };
	const char *dot = strchr(s, '.');
	size_t digits = dot ? strlen(dot + 1) : 0;
	char whole[16], part[4] = "0";
	uint64_t n = 0, thousandths = 0;

	if (digits > 3 || (dot && !digits) || (dot && !str_copy(part, sizeof(part), dot + 1)) ||
	    !str_copy_bytes(whole, sizeof(whole), s, dot ? (size_t)(dot - s) : strlen(s)) ||
	    str_u64(whole, &n, e) < 0 || str_u64(part, &thousandths, e) < 0 || n > 1000000)
		return err_set(e, ERR_INVALID, "not a number of CPUs like 2 or 1.5: \"%.40s\"", s);
	*ret = n * 1000 + thousandths * scale[digits];
	return 0;
}

/* 0 in a record means "not given", so a user may not give it. */
static int store_number(const struct option_row *row, uint64_t *place, const char *value,
			struct err *e)
{
	uint64_t n = 0;
	int rc = row->type == OPTION_SIZE       ? str_size(value, &n, e)
		 : row->type == OPTION_DURATION ? str_duration_ms(value, &n, e)
		 : row->type == OPTION_CPUS     ? parse_cpus(value, &n, e)
						: str_u64(value, &n, e);

	if (rc < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_INVALID, "must be more than nothing, not \"%.40s\"", value);
	*place = n;
	return 0;
}

static int store(const struct option_row *row, void *record, char *value, struct err *e)
{
	void *place = (char *)record + row->offset;

	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)place = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)place = value;
		return 0;
	case OPTION_LIST:
		strv_add(place, value);
		return 0;
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_CPUS:
		return store_number(row, place, value, e);
	case OPTION_END:
		break;
	}
	return err_set(e, ERR_INTERNAL, "option without a type");
}

/* What getopt_long() wants, and the way back from its answer to our rows. */
struct plan {
	char letters[2 + 2 * OPTIONS_MAX + 1];
	struct option longs[OPTIONS_MAX + 1];
	const struct option_row *row[OPTIONS_MAX];
	void *record[OPTIONS_MAX];
	size_t count;
};

#define LONG_FIRST 1000 /* getopt's answer for row 0: above every letter */

static int plan_make(struct plan *p, const struct option_set *sets, size_t count, struct err *e)
{
	size_t at = 0;

	p->letters[at++] = '-'; /* arguments come in order, as option 1 */
	p->letters[at++] = ':'; /* a missing value is told apart */
	for (size_t i = 0; i < count; i++)
		for (const struct option_row *r = sets[i].rows; r && r->type != OPTION_END; r++) {
			if (p->count == OPTIONS_MAX)
				return err_set(e, ERR_INTERNAL, "too many options in a table");
			if (r->letter)
				p->letters[at++] = r->letter;
			if (r->letter && r->type != OPTION_FLAG)
				p->letters[at++] = ':';
			p->row[p->count] = r;
			p->record[p->count] = sets[i].record;
			p->longs[p->count] = (struct option){
				.name = r->name,
				.has_arg = r->type == OPTION_FLAG ? no_argument : required_argument,
				.val = LONG_FIRST + (int)p->count,
			};
			p->count++;
		}
	return 0;
}

static const struct option_row *plan_find(const struct plan *p, int answer, void **record)
{
	for (size_t i = 0; i < p->count; i++) {
		char letter = p->row[i]->letter;

		if (answer == LONG_FIRST + (int)i || (letter && answer == letter)) {
			*record = p->record[i];
			return p->row[i];
		}
	}
	return NULL;
}

/* getopt says only '?' or ':'; the reader wants to know which word it was. */
static int complain(int answer, const struct option_line *line, struct err *e)
{
	const char *word = line->argv[optind > 0 ? optind - 1 : 0];
	int name = (int)strcspn(word, "=");

	name = name < WORD_SHOWN ? name : WORD_SHOWN;
	if (answer == ':')
		err_set(e, ERR_INVALID, "%.60s needs a value", word);
	else if (optopt && optopt < LONG_FIRST)
		err_set(e, ERR_INVALID, "there is no option -%c", optopt);
	else if (optopt)
		err_set(e, ERR_INVALID, "%.*s takes no value", name, word);
	else
		err_set(e, ERR_INVALID, "there is no option %.*s", name, word);
	if (!line->command)
		return -1;
	return line->own ? err_fix(e, "Put -- before a command of your own, or see "
				      "`berth help %s`.",
				   line->command)
			 : err_fix(e, "`berth help %s` lists its options.", line->command);
}

int options_parse(const struct option_line *line, const struct option_set *sets, size_t count,
		  struct strv *args, struct err *e)
{
	struct plan p = { 0 };
	int answer;

	if (plan_make(&p, sets, count, e) < 0)
		return -1;
	opterr = 0;
	optind = 0; /* GNU: start over, also with the order mode */
	while ((answer = getopt_long(line->argc, line->argv, p.letters, p.longs, NULL)) != -1) {
		const struct option_row *row;
		void *record;

		if (answer == 1) {
			strv_add(args, optarg);
			if (line->own && args->len == line->own + 1)
				break;
			continue;
		}
		row = plan_find(&p, answer, &record);
		if (!row)
			return complain(answer, line, e);
		if (store(row, record, optarg, e) < 0)
			return err_wrap(e, "--%s", row->name);
	}
	for (int i = optind; i < line->argc; i++)
		strv_add(args, line->argv[i]);
	return 0;
}

void options_done(const struct option_set *set)
{
	for (const struct option_row *r = set->rows; r && r->type != OPTION_END; r++)
		if (r->type == OPTION_LIST)
			strv_done((struct strv *)(void *)((char *)set->record + r->offset));
}

void options_help(struct buf *out, const struct option_row *rows)
{
	for (const struct option_row *r = rows; r && r->type != OPTION_END; r++) {
		char left[64];
		int len = snprintf(left, sizeof(left), "%c%c%s--%s%s%s", r->letter ? '-' : ' ',
				   r->letter ? r->letter : ' ', r->letter ? ", " : "  ", r->name,
				   r->value ? " " : "", r->value ? r->value : "");

		buf_addf(out, "  %-*s", HELP_COLUMN, left);
		if (len > HELP_COLUMN - 2)
			buf_addf(out, "\n  %*s", HELP_COLUMN, "");
		buf_addf(out, "%s\n", r->help);
	}
}
