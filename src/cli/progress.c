#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/table.h"
#include "lib/time.h"

#define REDRAW_MS 100
#define BAR_WIDTH 30

struct progress progress_make(void)
{
	return (struct progress){ .terminal = isatty(STDERR_FILENO) };
}

static void draw(const char *phase, uint64_t done, uint64_t total)
{
	char bar[BAR_WIDTH + 1], have[TABLE_SIZE_TEXT], all[TABLE_SIZE_TEXT];
	size_t full = done >= total ? BAR_WIDTH : (size_t)(done / (total / BAR_WIDTH + 1));

	memset(bar, ' ', BAR_WIDTH);
	memset(bar, '=', full);
	bar[BAR_WIDTH] = '\0';
	table_size_text(done, have);
	table_size_text(total, all);
	if (total)
		dprintf(STDERR_FILENO, "\r\033[K%-10s [%s] %s of %s", phase, bar, have, all);
	else
		dprintf(STDERR_FILENO, "\r\033[K%-10s %s", phase, have);
}

void progress_show(struct progress *p, const char *phase, uint64_t done, uint64_t total)
{
	bool fresh = strcmp(p->phase, phase) != 0;
	uint64_t now = time_mono_ms();

	if (fresh) {
		size_t n = 0;

		/* The word may be the server's: letters only, and cut. */
		for (; phase[n] >= 'a' && phase[n] <= 'z' && n + 1 < sizeof(p->phase); n++)
			p->phase[n] = phase[n];
		p->phase[n] = '\0';
	}
	if (!p->terminal) {
		if (fresh)
			say("%s", p->phase);
		return;
	}
	if (!fresh && now - p->drawn_ms < REDRAW_MS && done != total)
		return;
	draw(p->phase, done, total);
	p->drawn = true;
	p->drawn_ms = now;
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		dprintf(STDERR_FILENO, "\r\033[K");
	p->drawn = false;
}
