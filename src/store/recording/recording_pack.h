/*
 * recording_pack.h: the ticks of one entity as few bytes. recording_pack.c says how they lie; here
 * is how they are put in and taken out, whole or a column at a time.
 *
 * Packed bytes may come from anywhere: whatever they are, reading them touches nothing outside of
 * them and of the arrays given, and a change in any of them is noticed.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/varint.h"

#define LAB_CHUNK_TICKS     256 /* what is written at most: half a minute at 10 Hz */
#define LAB_CHUNK_TICKS_MAX 512 /* what is read at most */

/* --- packing --- */

/* Ticks as they are collected: column k's value of tick i is values[k · capacity + i], and bit i %
 * 64 of valid[k · LAB_CHUNK_WORDS(capacity) + i / 64] says whether there is one. */
struct lab_chunk {
    int column_count;
    int count, capacity; /* at most LAB_CHUNK_TICKS_MAX */
    int64_t *times_ns;
    int64_t *values;
    uint64_t *valid;
};

#define LAB_CHUNK_WORDS(ticks) (((size_t)(ticks) + 63) / 64)

/* Appends; there is at least one tick. */
void lab_chunk_pack(const struct lab_chunk *chunk, struct lab_str *out);

/* --- unpacking --- */

struct lab_chunk_reader {
    int count, column_count;
    /* the rest is the reader's own */
    const uint8_t *bytes;
    size_t times_at, times_length;
    struct lab_chunk_part {
        uint32_t at, length;
    } * parts; /* the patterns, then the columns */
    int pattern_count, part_capacity;
    int expanded; /* the pattern in `valid` now; -1 = none */
    int expanded_count;
    uint8_t valid[LAB_CHUNK_TICKS_MAX];
    int64_t values[LAB_CHUNK_TICKS_MAX];
};

void lab_chunk_reader_init(struct lab_chunk_reader *reader);
void lab_chunk_reader_release(struct lab_chunk_reader *reader);

/* Looks at a chunk; the bytes must live until the next one or the reader's end. -1 with the
 * reason. */
int lab_chunk_reader_open(struct lab_chunk_reader *reader, const void *bytes, size_t length,
                          struct lab_err *err);

/* `count` times, ascending; the times of others are refused. */
int lab_chunk_reader_times(struct lab_chunk_reader *reader, int64_t *ret_times_ns,
                           struct lab_err *err);

/* One column; places without a value are left as they are in `ret_values`, and 0 in `ret_valid`. */
int lab_chunk_reader_column(struct lab_chunk_reader *reader, int column, int64_t *ret_values,
                            uint8_t *ret_valid, struct lab_err *err);

/* --- numbers, for whoever packs something else --- */

void lab_varint_put(struct lab_str *out, uint64_t value);

/* The last four bytes of everything packed here: a sum of those before them. */
#define LAB_PACKED_SUM_BYTES 4
void lab_packed_sum_put(struct lab_str *out, size_t from);
bool lab_packed_sum_fits(const void *bytes, size_t length);
