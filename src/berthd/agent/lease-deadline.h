/* The leases whose time has come, each by its own deadline. Runs on the first reactor. */
#pragma once

#include "berthd/runtime/reactor.h"

struct wrapper_alarm;

struct wrapper_alarm *wrapper_alarm_begin(struct reactor *r);
void wrapper_alarm_end(struct wrapper_alarm *a);
