/*
 * recording_pack.c: packing ticks. Neighbouring values of a column are alike while those of a tick are
 * not, so a chunk goes column by column:
 *
 *     chunk   := version · ticks · columns · patterns
 *                length of the times · of each pattern · of each column
 *                times · pattern … · column … · sum of all bytes before (4 bytes)
 *     pattern := in which ticks there is a value: 0 and a bitmap, or 1 and the lengths of runs, the
 *                first of them without; slow metrics are read together and share one
 *     column  := nothing: no tick has a value; or
 *                (pattern · 4 + coding) and the values that there are; pattern 0 = every tick
 *     values  := constant: the value
 *                plain:    the least one · what each is above it
 *                delta:    the first one · the steps
 *                delta2:   the first one · the first step · the changes of the steps
 *
 * The coding is the one that takes the fewest bytes: plain suits noise, delta what wanders, delta2
 * counters and times. What follows the first numbers is in blocks of 32, each as wide as its largest
 * number needs: a byte with that many bits, then the bits. For noise that is within a tenth of what is
 * possible at all, and it unpacks without a branch for each value.
 *
 * Single numbers are 7 bits to a byte, those that may be negative in zigzag. All arithmetic is modulo
 * 2^64: any value comes back exactly.
 */
#include "store/recording_pack.h"

#include "base/hash.h"
#include "base/mem.h"
#include "model/sample.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define VERSION 1
#define BLOCK   32

enum coding { CONSTANT, PLAIN, DELTA, DELTA2 };
enum pattern_kind { BITMAP, RUNS };

/* --- numbers --- */

void lab_varint_put(struct lab_str *out, uint64_t value) {
    char bytes[LAB_VARINT_BYTES];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    lab_str_add_bytes(out, bytes, length);
}

bool lab_varint_take(struct lab_packed *packed, uint64_t *ret_value) {
    uint64_t value = 0;
    for (unsigned shift = 0; packed->at < packed->end && shift < 64; shift += 7) {
        uint8_t byte = *packed->at++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static uint32_t sum_of(const void *bytes, size_t length) {
    uint64_t hash = lab_hash_bytes(LAB_HASH_START, bytes, length);
    return (uint32_t)(hash ^ (hash >> 32));
}

void lab_packed_sum_put(struct lab_str *out, size_t from) {
    uint32_t sum = htole32(sum_of(out->text + from, out->length - from));
    lab_str_add_bytes(out, (const char *)&sum, sizeof sum);
}

bool lab_packed_sum_fits(const void *bytes, size_t length) {
    uint32_t sum;
    if (length < sizeof sum)
        return false;
    memcpy(&sum, (const uint8_t *)bytes + length - sizeof sum, sizeof sum);
    return le32toh(sum) == sum_of(bytes, length - sizeof sum);
}

/* --- blocks of bits --- */

static unsigned width_of(const uint64_t *values, size_t count) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= values[i];
    return all ? 64 - (unsigned)__builtin_clzll(all) : 0;
}

static size_t block_bytes(size_t count, unsigned width) {
    return (count * width + 7) / 8;
}

static size_t block_count(size_t done, size_t count) {
    return count - done < BLOCK ? count - done : BLOCK;
}

static size_t blocks_size(const uint64_t *values, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t now = block_count(i, count);
        size += 1 + block_bytes(now, width_of(values + i, now));
    }
    return size;
}

static void put_block(struct lab_str *out, const uint64_t *values, size_t count) {
    unsigned width = width_of(values, count), filled = 0;
    uint64_t words[BLOCK + 1] = {0}, word = 0;
    size_t full = 0;
    for (size_t i = 0; i < count && width; i++) {
        word |= values[i] << filled;
        if (filled + width >= 64) {
            words[full++] = htole64(word);
            word = 64 - filled < 64 ? values[i] >> (64 - filled) : 0;
            filled += width - 64;
        } else {
            filled += width;
        }
    }
    words[full] = htole64(word);
    char head = (char)width;
    lab_str_add_bytes(out, &head, 1);
    lab_str_add_bytes(out, (const char *)words, block_bytes(count, width));
}

static void put_blocks(struct lab_str *out, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i += BLOCK)
        put_block(out, values + i, block_count(i, count));
}

static uint64_t bits_at(const uint8_t *from, size_t bit, unsigned width) {
    uint64_t word;
    memcpy(&word, from + bit / 8, sizeof word);
    word = le64toh(word) >> (bit % 8);
    if (bit % 8 + width > 64)
        word |= (uint64_t)from[bit / 8 + 8] << (64 - bit % 8);
    return width < 64 ? word & ((UINT64_C(1) << width) - 1) : word;
}

/* Takes a block's numbers out. Eight bytes are loaded at once, so the last ones need room behind. */
static bool take_block(struct lab_packed *packed, uint64_t *values, size_t count) {
    if (packed->at == packed->end)
        return false;
    unsigned width = *packed->at++;
    size_t size = block_bytes(count, width), left = (size_t)(packed->end - packed->at);
    if (width > 64 || size > left)
        return false;
    uint8_t padded[BLOCK * 8 + 16];
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

/* What follows the coding's first numbers; how many those are. */
static size_t transform(enum coding coding, const uint64_t *values, size_t count, uint64_t *rest) {
    size_t first = coding == DELTA2 ? 2 : coding == DELTA ? 1 : 0;
    if (coding == PLAIN) {
        int64_t least = (int64_t)values[0];
        for (size_t i = 1; i < count; i++)
            least = (int64_t)values[i] < least ? (int64_t)values[i] : least;
        for (size_t i = 0; i < count; i++)
            rest[i] = values[i] - (uint64_t)least;
        return 0;
    }
    for (size_t i = first; i < count; i++) {
        uint64_t step = values[i] - values[i - 1];
        rest[i - first] =
            lab_zigzag(coding == DELTA2 ? step - (values[i - 1] - values[i - 2]) : step);
    }
    return first;
}

static enum coding choose(const uint64_t *values, size_t count) {
    size_t same = 1;
    while (same < count && values[same] == values[0])
        same++;
    if (same == count)
        return CONSTANT;
    uint64_t rest[LAB_CHUNK_TICKS_MAX];
    enum coding best = PLAIN;
    size_t least = SIZE_MAX;
    for (enum coding coding = PLAIN; coding <= DELTA2 && coding <= count; coding++) {
        size_t first = transform(coding, values, count, rest);
        size_t size = 3 * first + blocks_size(rest, count - first);
        if (size < least) {
            least = size;
            best = coding;
        }
    }
    return best;
}

static void put_values(struct lab_str *out, uint64_t pattern, const uint64_t *values,
                       size_t count) {
    enum coding coding = choose(values, count);
    lab_varint_put(out, pattern << 2 | (uint64_t)coding);
    if (coding == CONSTANT) {
        lab_varint_put(out, lab_zigzag(values[0]));
        return;
    }
    uint64_t rest[LAB_CHUNK_TICKS_MAX];
    size_t first = transform(coding, values, count, rest);
    lab_varint_put(out, lab_zigzag(coding == PLAIN ? values[0] - rest[0] : values[0]));
    if (coding == DELTA2)
        lab_varint_put(out, lab_zigzag(values[1] - values[0]));
    put_blocks(out, rest, count - first);
}

/* What the steps so far come to; each coding has its own loop, so that none branches within. */
static void sum_up(enum coding coding, uint64_t *last, uint64_t *step, const uint64_t *rest,
                   size_t count, int64_t *ret) {
    uint64_t value = *last, change = *step;
    if (coding == PLAIN) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value + rest[i]);
        return;
    }
    if (coding == DELTA) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value += lab_unzigzag(rest[i]));
    } else {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)(value += change += lab_unzigzag(rest[i]));
    }
    *last = value;
    *step = change;
}

static bool take_values(struct lab_packed *packed, enum coding coding, size_t count, int64_t *ret) {
    uint64_t first, step = 0, rest[BLOCK];
    size_t done = 0;
    if (!lab_varint_take(packed, &first))
        return false;
    first = lab_unzigzag(first);
    if (coding == CONSTANT) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (int64_t)first;
        return packed->at == packed->end;
    }
    if (coding != PLAIN)
        ret[done++] = (int64_t)first;
    if (coding == DELTA2) {
        if (count < 2 || !lab_varint_take(packed, &step))
            return false;
        step = lab_unzigzag(step);
        ret[done++] = (int64_t)(first += step);
    }
    while (done < count) {
        size_t now = block_count(done, count);
        if (!take_block(packed, rest, now))
            return false;
        sum_up(coding, &first, &step, rest, now, ret + done);
        done += now;
    }
    return packed->at == packed->end;
}

/* --- patterns --- */

static bool has(const uint64_t *bits, int tick) {
    return bits[tick / 64] >> (tick % 64) & 1;
}

static void put_pattern(struct lab_str *out, const uint64_t *bits, int count) {
    struct lab_str runs;
    lab_str_init(&runs);
    bool on = false;
    for (int i = 0, start = 0; i <= count; i++) {
        if (i < count && has(bits, i) == on)
            continue;
        lab_varint_put(&runs, (uint64_t)(i - start));
        start = i;
        on = !on;
    }
    size_t bytes = ((size_t)count + 7) / 8;
    char kind = runs.length < bytes ? RUNS : BITMAP;
    lab_str_add_bytes(out, &kind, 1);
    if (kind == RUNS) {
        lab_str_add_bytes(out, runs.text, runs.length);
    } else {
        for (size_t i = 0; i < bytes; i++) {
            char byte = (char)(bits[i / 8] >> (8 * (i % 8)));
            lab_str_add_bytes(out, &byte, 1);
        }
    }
    lab_str_release(&runs);
}

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
    return kind == BITMAP ? take_bitmap(&packed, count, ret)
                          : kind == RUNS && take_runs(&packed, count, ret);
}

/* --- packing a chunk --- */

/* The parts' bytes one after the other, and how long each of them is. */
struct parts {
    struct lab_str bytes, lengths;
    size_t from;
};

static void parts_init(struct parts *parts) {
    *parts = (struct parts){.from = 0};
    lab_str_init(&parts->bytes);
    lab_str_init(&parts->lengths);
}

static void parts_release(struct parts *parts) {
    lab_str_release(&parts->bytes);
    lab_str_release(&parts->lengths);
}

static void end_part(struct parts *parts) {
    lab_varint_put(&parts->lengths, parts->bytes.length - parts->from);
    parts->from = parts->bytes.length;
}

/* The patterns so far: each as the column that it was first seen in. */
struct patterns {
    struct parts parts;
    int *columns;
    int count, capacity;
};

/* The pattern's number from 1 on. */
static uint64_t find_pattern(const struct lab_chunk *chunk, int column, struct patterns *patterns) {
    size_t words = LAB_CHUNK_WORDS(chunk->capacity), used = LAB_CHUNK_WORDS(chunk->count);
    const uint64_t *bits = chunk->valid + (size_t)column * words;
    for (int i = patterns->count - 1; i >= 0; i--)
        if (memcmp(chunk->valid + (size_t)patterns->columns[i] * words, bits,
                   used * sizeof *bits) == 0)
            return (uint64_t)i + 1;
    put_pattern(&patterns->parts.bytes, bits, chunk->count);
    end_part(&patterns->parts);
    LAB_MEM_GROW(&patterns->columns, patterns->count, &patterns->capacity);
    patterns->columns[patterns->count++] = column;
    return (uint64_t)patterns->count;
}

static void put_column(const struct lab_chunk *chunk, int column, struct patterns *patterns,
                       struct lab_str *out) {
    const int64_t *values = chunk->values + (size_t)column * (size_t)chunk->capacity;
    const uint64_t *bits = chunk->valid + (size_t)column * LAB_CHUNK_WORDS(chunk->capacity);
    uint64_t present[LAB_CHUNK_TICKS_MAX];
    size_t count = 0;
    for (int i = 0; i < chunk->count; i++)
        if (has(bits, i))
            present[count++] = (uint64_t)values[i];
    if (count == 0)
        return;
    bool all = count == (size_t)chunk->count;
    put_values(out, all ? 0 : find_pattern(chunk, column, patterns), present, count);
}

void lab_chunk_pack(const struct lab_chunk *chunk, struct lab_str *out) {
    assert(chunk->count > 0 && chunk->count <= LAB_CHUNK_TICKS_MAX);
    struct patterns patterns = {.count = 0};
    struct parts columns;
    struct lab_str times;
    parts_init(&patterns.parts);
    parts_init(&columns);
    lab_str_init(&times);
    put_values(&times, 0, (const uint64_t *)chunk->times_ns, (size_t)chunk->count);
    for (int i = 0; i < chunk->column_count; i++) {
        put_column(chunk, i, &patterns, &columns.bytes);
        end_part(&columns);
    }
    size_t from = out->length;
    char version = VERSION;
    lab_str_add_bytes(out, &version, 1);
    lab_varint_put(out, (uint64_t)chunk->count);
    lab_varint_put(out, (uint64_t)chunk->column_count);
    lab_varint_put(out, (uint64_t)patterns.count);
    lab_varint_put(out, times.length);
    const struct lab_str *const texts[] = {&patterns.parts.lengths, &columns.lengths, &times,
                                           &patterns.parts.bytes, &columns.bytes};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        lab_str_add_bytes(out, texts[i]->text, texts[i]->length);
    lab_packed_sum_put(out, from);
    lab_str_release(&times);
    parts_release(&columns);
    parts_release(&patterns.parts);
    lab_mem_free(patterns.columns);
}

/* --- unpacking a chunk --- */

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
    if (reader->bytes[0] != VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed ticks: version %d, known is %d",
                           reader->bytes[0], VERSION);
    if (!lab_packed_sum_fits(bytes, length))
        return damaged(err, "their sum doesn't fit: cut off or changed");
    struct lab_packed packed = {reader->bytes + 1, reader->bytes + length - LAB_PACKED_SUM_BYTES};
    if (!lab_varint_take(&packed, &count) || !lab_varint_take(&packed, &columns) ||
        !lab_varint_take(&packed, &patterns) || !lab_varint_take(&packed, &times_length))
        return damaged(err, "their beginning doesn't read");
    if (count == 0 || count > LAB_CHUNK_TICKS_MAX || columns > LAB_COLUMNS_MAX ||
        patterns > columns || times_length > length)
        return damaged(err, "more of them than there can be");
    reader->count = (int)count;
    reader->column_count = (int)columns;
    reader->pattern_count = (int)patterns;
    reader->times_length = (size_t)times_length;
    reader->expanded = -1;
    if (!find_parts(reader, &packed, (int)(patterns + columns)))
        return damaged(err, "their parts don't fit together");
    return 0;
}

int lab_chunk_reader_times(struct lab_chunk_reader *reader, int64_t *ret_times_ns,
                           struct lab_err *err) {
    struct lab_packed packed = {.at = reader->bytes + reader->times_at};
    packed.end = packed.at + reader->times_length;
    uint64_t head;
    if (!lab_varint_take(&packed, &head) || head > DELTA2 ||
        !take_values(&packed, (enum coding)head, (size_t)reader->count, reader->values))
        return damaged(err, "the times don't read");
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
        return damaged(err, "a column doesn't read");
    enum coding coding = (enum coding)(head & 3);
    if (head >> 2 == 0) {
        memset(ret_valid, 1, count);
        return take_values(&packed, coding, count, ret_values)
                   ? 0
                   : damaged(err, "a column's values don't read");
    }
    if (!expand(reader, (int)(head >> 2) - 1) ||
        !take_values(&packed, coding, (size_t)reader->expanded_count, reader->values))
        return damaged(err, "a column's values don't read");
    memcpy(ret_valid, reader->valid, count);
    for (size_t i = 0, next = 0; i < count; i++)
        if (reader->valid[i])
            ret_values[i] = reader->values[next++];
    return 0;
}
