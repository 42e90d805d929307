/* Removes from the database what is older than the settings say: see store/retention.h. */
#pragma once

struct reactor;
struct retention_keeper;

struct retention_keeper *retention_begin(struct reactor *r);
void retention_end(struct retention_keeper *k);
