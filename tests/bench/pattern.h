/*
 * Bytes that say where they are: every eight of them are the number of their
 * place. One lost, doubled or moved byte shows, and looking costs little.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void pattern_fill(uint64_t *words, size_t count, uint64_t first)
{
	for (size_t i = 0; i < count; i++)
		words[i] = first + i;
}

static inline bool pattern_byte_ok(uint8_t byte, uint64_t offset)
{
	uint64_t word = offset / 8;
	uint8_t bytes[8];

	memcpy(bytes, &word, sizeof(word));
	return bytes[offset % 8] == byte;
}

/* Are these the bytes that belong at `offset`? */
static inline bool pattern_ok(const uint8_t *data, size_t len, uint64_t offset)
{
	uint64_t word, wrong = 0;

	for (; len > 0 && offset % 8; data++, offset++, len--)
		wrong |= !pattern_byte_ok(*data, offset);
	for (word = offset / 8; len >= 8; data += 8, word++, len -= 8) {
		uint64_t got;

		memcpy(&got, data, sizeof(got));
		wrong |= got ^ word;
	}
	for (offset = word * 8; len > 0; data++, offset++, len--)
		wrong |= !pattern_byte_ok(*data, offset);
	return wrong == 0;
}
