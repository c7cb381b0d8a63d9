/*
 * recording_pack.c: packing ticks. Neighbouring values of a column are alike while those of a tick
 * are not, so a chunk goes column by column:
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
 * counters and times. What follows the first numbers is in blocks of 32, each as wide as its
 * largest number needs: a byte with that many bits, then the bits. For noise that is within a tenth
 * of what is possible at all, and it unpacks without a branch for each value.
 *
 * Single numbers are 7 bits to a byte, those that may be negative in zigzag. All arithmetic is
 * modulo 2^64: any value comes back exactly.
 */
#include "store/recording/recording_pack_internal.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* --- numbers --- */

void lab_varint_put(struct lab_str *out, uint64_t value) {
    uint8_t bytes[LAB_VARINT_BYTES];
    lab_str_add_bytes(out, (const char *)bytes, lab_varint_write(bytes, value));
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

static size_t blocks_size(const uint64_t *values, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i += LAB_PACK_BLOCK) {
        size_t now = lab_pack_block_count(i, count);
        size += 1 + lab_pack_block_bytes(now, width_of(values + i, now));
    }
    return size;
}

static void put_block(struct lab_str *out, const uint64_t *values, size_t count) {
    unsigned width = width_of(values, count), filled = 0;
    uint64_t words[LAB_PACK_BLOCK + 1] = {0}, word = 0;
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
    lab_str_add_bytes(out, (const char *)words, lab_pack_block_bytes(count, width));
}

static void put_blocks(struct lab_str *out, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i += LAB_PACK_BLOCK)
        put_block(out, values + i, lab_pack_block_count(i, count));
}

/* --- values --- */

/* What follows the coding's first numbers; how many those are. */
static size_t transform(enum lab_pack_coding coding, const uint64_t *values, size_t count,
                        uint64_t *rest) {
    size_t first = coding == LAB_PACK_DELTA2 ? 2 : coding == LAB_PACK_DELTA ? 1 : 0;
    assert(count > first && count <= LAB_CHUNK_TICKS_MAX);
    if (coding == LAB_PACK_PLAIN) {
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
            lab_zigzag(coding == LAB_PACK_DELTA2 ? step - (values[i - 1] - values[i - 2]) : step);
    }
    return first;
}

static enum lab_pack_coding choose(const uint64_t *values, size_t count) {
    size_t same = 1;
    while (same < count && values[same] == values[0])
        same++;
    if (same == count)
        return LAB_PACK_CONSTANT;
    uint64_t rest[LAB_CHUNK_TICKS_MAX] = {0};
    enum lab_pack_coding best = LAB_PACK_PLAIN;
    size_t least = SIZE_MAX;
    for (enum lab_pack_coding coding = LAB_PACK_PLAIN; coding <= LAB_PACK_DELTA2 && coding <= count;
         coding++) {
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
    enum lab_pack_coding coding = choose(values, count);
    lab_varint_put(out, pattern << 2 | (uint64_t)coding);
    if (coding == LAB_PACK_CONSTANT) {
        lab_varint_put(out, lab_zigzag(values[0]));
        return;
    }
    uint64_t rest[LAB_CHUNK_TICKS_MAX] = {0};
    size_t first = transform(coding, values, count, rest);
    lab_varint_put(out, lab_zigzag(coding == LAB_PACK_PLAIN ? values[0] - rest[0] : values[0]));
    if (coding == LAB_PACK_DELTA2)
        lab_varint_put(out, lab_zigzag(values[1] - values[0]));
    put_blocks(out, rest, count - first);
}

/* --- patterns --- */

static bool has(const uint64_t *bits, int tick) {
    return bits[tick / 64] >> (tick % 64) & 1;
}

static void put_pattern(struct lab_str *out, const uint64_t *bits, int count) {
    LAB_AUTO(str, runs);
    bool on = false;
    for (int i = 0, start = 0; i <= count; i++) {
        if (i < count && has(bits, i) == on)
            continue;
        lab_varint_put(&runs, (uint64_t)(i - start));
        start = i;
        on = !on;
    }
    size_t bytes = ((size_t)count + 7) / 8;
    char kind = runs.length < bytes ? LAB_PACK_RUNS : LAB_PACK_BITMAP;
    lab_str_add_bytes(out, &kind, 1);
    if (kind == LAB_PACK_RUNS) {
        lab_str_add_bytes(out, runs.text, runs.length);
    } else {
        for (size_t i = 0; i < bytes; i++) {
            char byte = (char)(bits[i / 8] >> (8 * (i % 8)));
            lab_str_add_bytes(out, &byte, 1);
        }
    }
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
    int count;
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
    LAB_PUSH(patterns->columns, patterns->count) = column;
    return (uint64_t)patterns->count;
}

static void put_column(const struct lab_chunk *chunk, int column, struct patterns *patterns,
                       struct lab_str *out) {
    const int64_t *values = chunk->values + (size_t)column * (size_t)chunk->capacity;
    const uint64_t *bits = chunk->valid + (size_t)column * LAB_CHUNK_WORDS(chunk->capacity);
    uint64_t present[LAB_CHUNK_TICKS_MAX] = {0};
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
    LAB_AUTO(str, times);
    parts_init(&patterns.parts);
    parts_init(&columns);
    put_values(&times, 0, (const uint64_t *)chunk->times_ns, (size_t)chunk->count);
    for (int i = 0; i < chunk->column_count; i++) {
        put_column(chunk, i, &patterns, &columns.bytes);
        end_part(&columns);
    }
    size_t from = out->length;
    char version = LAB_PACK_VERSION;
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
    parts_release(&columns);
    parts_release(&patterns.parts);
    lab_mem_free(patterns.columns);
}
