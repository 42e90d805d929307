/*
 * What is wrong with the records alone, whatever the hosts hold: rows that wait
 * without a deadline or long past it, receipts that prove nothing, ids of which
 * neither a row nor a tombstone is left.
 */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

struct check_row {
	char kind[24];
	char id[SANDBOX_ID_SIZE];
	char detail[200];
};
typedef void check_row_fn(const struct check_row *row, void *arg);

/* Of this host where a record names one; `late_ms`: how long past its deadline is too long. */
must_check int store_check(struct store *s, const char *host, uint64_t late_ms,
			   check_row_fn *on_row, void *arg, struct err *e);
