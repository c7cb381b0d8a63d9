/*
 * tracker_bytes.h: bytes as trackers' files have them: Protocol Buffers, written field by field,
 * and the two checksums. The messages are few and their fields never change, so that a generator
 * and its library would be more than they save.
 */
#pragma once

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* CRC-32 as zlib computes it, and CRC-32C (Castagnoli); `crc` 0 at first, goes on with a former. */
uint32_t lab_track_crc32(uint32_t crc, const void *bytes, size_t length);
uint32_t lab_track_crc32c(uint32_t crc, const void *bytes, size_t length);

void lab_track_add_u32(struct lab_str *out, uint32_t value); /* little-endian */
void lab_track_add_u64(struct lab_str *out, uint64_t value);

/* Fields of a message. A negative int takes ten bytes, as the format has it. */
void lab_proto_int(struct lab_str *out, int field, int64_t value);
void lab_proto_double(struct lab_str *out, int field, double value);
void lab_proto_float(struct lab_str *out, int field, float value);
void lab_proto_bytes(struct lab_str *out, int field, const void *bytes, size_t length);
void lab_proto_text(struct lab_str *out, int field, const char *text);

/* A message within: what is added between the two is its content. */
size_t lab_proto_open(struct lab_str *out, int field);
void lab_proto_close(struct lab_str *out, size_t opened);

/* google.protobuf.Timestamp. */
void lab_proto_time(struct lab_str *out, int field, int64_t wall_ns);
