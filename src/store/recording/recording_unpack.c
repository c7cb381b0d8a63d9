/*
 * recording_unpack.c: ticks out of their bytes (recording_pack.c says how they lie), a column at a
 * time. Nothing in the bytes is believed before it is checked against what is left of them.
 */
#include "store/recording/recording_pack_internal.h"

#include "base/mem.h"
#include "model/sample.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* --- blocks of bits --- */

static uint64_t bits_at(const uint8_t *from, size_t bit, unsigned width) {
    uint64_t word;
    memcpy(&word, from + bit / 8, sizeof word);
    word = le64toh(word) >> (bit % 8);
    if (bit % 8 + width > 64)
        word |= (uint64_t)from[bit / 8 + 8] << (64 - bit % 8);
    return width < 64 ? word & ((UINT64_C(1) << width) - 1) : word;
}

/* Takes a block's numbers out. Eight bytes are loaded at once, so the last ones need room
 * behind. */
static bool take_block(struct lab_packed *packed, uint64_t *values, size_t count) {
    if (packed->at == packed->end)
        return false;
    unsigned width = *packed->at++;
    size_t size = lab_pack_block_bytes(count, width), left = (size_t)(packed->end - packed->at);
    if (width > 64 || size > left)
        return false;
    uint8_t padded[LAB_PACK_BLOCK * 8 + 16];
    const uint8_t *from = packed->at;
    if (left < size + 16) {
        memcpy(padded, from, size);
        memset(padded + size, 0, 16);
        from = padded;
    }
    packed->at += size;
    if (width == 0) {
        memset(values, 0, count * sizeof *values);
        return true;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = bits_at(from, i * width, width);
    return true;
}

/* --- values --- */

/* What the steps so far come to; each coding has its own loop, so that none branches within. */
static void sum_up(enum lab_pack_coding coding, uint64_t *last, uint64_t *step,
                   const uint64_t *rest, size_t count, int64_t *ret) {
    uint64_t value = *last, change = *step;
    if (coding == LAB_PACK_PLAIN) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value + rest[i]);
        return;
    }
    if (coding == LAB_PACK_DELTA) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value += lab_unzigzag(rest[i]));
    } else {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value += change += lab_unzigzag(rest[i]));
    }
    *last = value;
    *step = change;
}

static bool take_values(struct lab_packed *packed, enum lab_pack_coding coding, size_t count,
                        int64_t *ret) {
    uint64_t first, step = 0, rest[LAB_PACK_BLOCK];
    size_t done = 0;
    if (!lab_varint_take(packed, &first))
        return false;
    first = lab_unzigzag(first);
    if (coding == LAB_PACK_CONSTANT) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)first;
        return packed->at == packed->end;
    }
    if (coding != LAB_PACK_PLAIN)
        ret[done++] = (int64_t)first;
    if (coding == LAB_PACK_DELTA2) {
        if (count < 2 || !lab_varint_take(packed, &step))
            return false;
        step = lab_unzigzag(step);
        ret[done++] = (int64_t)(first += step);
    }
    while (done < count) {
        size_t now = lab_pack_block_count(done, count);
        if (!take_block(packed, rest, now))
            return false;
        sum_up(coding, &first, &step, rest, now, ret + done);
        done += now;
    }
    return packed->at == packed->end;
}

/* --- patterns --- */

static bool take_bitmap(struct lab_packed *packed, int count, uint8_t *ret) {
    if ((size_t)(packed->end - packed->at) != ((size_t)count + 7) / 8)
        return false;
    for (int i = 0; i < count; i++)
        ret[i] = packed->at[i / 8] >> (i % 8) & 1;
    return true;
}

static bool take_runs(struct lab_packed *packed, int count, uint8_t *ret) {
    int done = 0;
    for (uint8_t on = 0; packed->at < packed->end; on = !on) {
        uint64_t length;
        if (!lab_varint_take(packed, &length) || length > (uint64_t)(count - done))
            return false;
        memset(ret + done, on, (size_t)length);
        done += (int)length;
    }
    return done == count;
}

static bool take_pattern(struct lab_packed packed, int count, uint8_t *ret) {
    if (packed.at == packed.end)
        return false;
    uint8_t kind = *packed.at++;
    return kind == LAB_PACK_BITMAP ? take_bitmap(&packed, count, ret)
                                   : kind == LAB_PACK_RUNS && take_runs(&packed, count, ret);
}

/* --- a chunk --- */

void lab_chunk_reader_init(struct lab_chunk_reader *reader) {
    memset(reader, 0, sizeof *reader);
}

void lab_chunk_reader_release(struct lab_chunk_reader *reader) {
    lab_mem_free(reader->parts);
    reader->parts = NULL;
    reader->part_capacity = 0;
}

static int damaged(struct lab_err *err, const char *what) {
    return lab_err_set(err, LAB_ERR_SYSTEM, "packed ticks: %s", what);
}

/* Where each part begins and ends; together they have to fill the bytes exactly. */
static bool find_parts(struct lab_chunk_reader *reader, struct lab_packed *packed, int count) {
    if (count > reader->part_capacity) {
        reader->parts = lab_mem_resize(reader->parts, (size_t)count, sizeof *reader->parts);
        reader->part_capacity = count;
    }
    uint64_t length, left = (uint64_t)(packed->end - packed->at);
    for (int i = 0; i < count; i++) {
        if (!lab_varint_take(packed, &length) || length > left)
            return false;
        left -= length;
        reader->parts[i].length = (uint32_t)length;
    }
    reader->times_at = (size_t)(packed->at - reader->bytes);
    uint64_t at = reader->times_at + reader->times_length;
    for (int i = 0; i < count; i++) {
        reader->parts[i].at = (uint32_t)at;
        at += reader->parts[i].length;
    }
    return at == (uint64_t)(packed->end - reader->bytes);
}

int lab_chunk_reader_open(struct lab_chunk_reader *reader, const void *bytes, size_t length,
                          struct lab_err *err) {
    uint64_t count, columns, patterns, times_length;
    if (length <= LAB_PACKED_SUM_BYTES || length > UINT32_MAX)
        return damaged(err, length > UINT32_MAX ? "too many bytes" : "no bytes");
    reader->bytes = bytes;
    if (reader->bytes[0] != LAB_PACK_VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed ticks: version %d, known is %d",
                           reader->bytes[0], LAB_PACK_VERSION);
    if (!lab_packed_sum_fits(bytes, length))
        return damaged(err, "checksum mismatch: truncated or changed");
    struct lab_packed packed = {reader->bytes + 1, reader->bytes + length - LAB_PACKED_SUM_BYTES};
    if (!lab_varint_take(&packed, &count) || !lab_varint_take(&packed, &columns) ||
        !lab_varint_take(&packed, &patterns) || !lab_varint_take(&packed, &times_length))
        return damaged(err, "invalid header");
    if (count == 0 || count > LAB_CHUNK_TICKS_MAX || columns > LAB_COLUMNS_MAX ||
        patterns > columns || times_length > length)
        return damaged(err, "too many");
    reader->count = (int)count;
    reader->column_count = (int)columns;
    reader->pattern_count = (int)patterns;
    reader->times_length = (size_t)times_length;
    reader->expanded = -1;
    if (!find_parts(reader, &packed, (int)(patterns + columns)))
        return damaged(err, "inconsistent lengths");
    return 0;
}

int lab_chunk_reader_times(struct lab_chunk_reader *reader, int64_t *ret_times_ns,
                           struct lab_err *err) {
    struct lab_packed packed = {.at = reader->bytes + reader->times_at};
    packed.end = packed.at + reader->times_length;
    uint64_t head;
    if (!lab_varint_take(&packed, &head) || head > LAB_PACK_DELTA2 ||
        !take_values(&packed, (enum lab_pack_coding)head, (size_t)reader->count, reader->values))
        return damaged(err, "invalid times");
    for (int i = 1; i < reader->count; i++)
        if (reader->values[i] < reader->values[i - 1])
            return damaged(err, "the times don't ascend");
    memcpy(ret_times_ns, reader->values, (size_t)reader->count * sizeof *ret_times_ns);
    return 0;
}

static struct lab_packed part(const struct lab_chunk_reader *reader, int index) {
    const uint8_t *at = reader->bytes + reader->parts[index].at;
    return (struct lab_packed){at, at + reader->parts[index].length};
}

static bool expand(struct lab_chunk_reader *reader, int pattern) {
    if (reader->expanded == pattern)
        return true;
    reader->expanded = -1;
    reader->expanded_count = 0;
    if (!take_pattern(part(reader, pattern), reader->count, reader->valid))
        return false;
    for (int i = 0; i < reader->count; i++)
        reader->expanded_count += reader->valid[i];
    if (reader->expanded_count == 0)
        return false;
    reader->expanded = pattern;
    return true;
}

int lab_chunk_reader_column(struct lab_chunk_reader *reader, int column, int64_t *ret_values,
                            uint8_t *ret_valid, struct lab_err *err) {
    assert(column >= 0 && column < reader->column_count);
    size_t count = (size_t)reader->count;
    struct lab_packed packed = part(reader, reader->pattern_count + column);
    if (packed.at == packed.end) {
        memset(ret_valid, 0, count);
        return 0;
    }
    uint64_t head;
    if (!lab_varint_take(&packed, &head) || head >> 2 > (uint64_t)reader->pattern_count)
        return damaged(err, "invalid column");
    enum lab_pack_coding coding = (enum lab_pack_coding)(head & 3);
    if (head >> 2 == 0) {
        memset(ret_valid, 1, count);
        return take_values(&packed, coding, count, ret_values)
                   ? 0
                   : damaged(err, "invalid values of a column");
    }
    if (!expand(reader, (int)(head >> 2) - 1) ||
        !take_values(&packed, coding, (size_t)reader->expanded_count, reader->values))
        return damaged(err, "invalid values of a column");
    memcpy(ret_valid, reader->valid, count);
    for (size_t i = 0, next = 0; i < count; i++)
        if (reader->valid[i])
            ret_values[i] = reader->values[next++];
    return 0;
}
