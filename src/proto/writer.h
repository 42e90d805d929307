/* Wire data out: the counterpart of proto/reader, into a buffer with a ceiling. */
#pragma once

#include "lib/buf.h"
#include "lib/strv.h"

void writer_u8(struct buf *out, uint8_t n);
void writer_u16(struct buf *out, uint16_t n);
void writer_u32(struct buf *out, uint32_t n);
void writer_u64(struct buf *out, uint64_t n);
void writer_str(struct buf *out, const char *s); /* cut at 65,535 bytes */
void writer_strv(struct buf *out, const struct strv *v);
