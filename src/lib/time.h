/* Clocks, and times as people and programs write them. */
#pragma once

#include "lib/err.h"

uint64_t time_wall_ms(void); /* since 1970 */
uint64_t time_mono_ms(void); /* never jumps */
uint64_t time_mono_us(void);
uint64_t time_boot_ms(void);   /* never jumps, and counts while the machine sleeps */
uint64_t time_booted_ms(void); /* when the machine was started, since 1970 */

#define BOOT_ID_SIZE 37
/*
 * Another one after each start of the machine: what ran under another is gone. From
 * BERTH_BOOT_ID if that is set: a service that sees nothing of /proc but processes is told by
 * systemd. One form, whether it came with dashes or without.
 */
must_check int boot_id_parse(const char *text, char out[BOOT_ID_SIZE], struct err *e);
must_check int time_boot_id(char out[BOOT_ID_SIZE], struct err *e);

#define TIME_TEXT_SIZE 32
void time_text(uint64_t wall_ms, char out[TIME_TEXT_SIZE]); /* 2026-11-15T01:55:07.123Z */
