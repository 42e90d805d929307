/* Removes from the database what is older than the settings say: see store/retention.h. */
#pragma once

#include "store/retention.h"

struct berthd_settings;
struct reactor;
struct retention_keeper;

struct retention_keeper *retention_begin(struct reactor *r);
void retention_end(struct retention_keeper *k);

/* How old what of each table may become, as the settings say. */
struct retention_ages retention_ages(const struct berthd_settings *set);
