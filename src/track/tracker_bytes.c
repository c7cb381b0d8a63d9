/* tracker_bytes.c: checksums eight bytes at a time, and Protocol Buffers. */
#include "track/tracker_bytes.h"

#include "base/clock.h"

#include <pthread.h>
#include <string.h>

/* --- checksums --- */

#define SLICES 8 /* tables: a byte that has k more behind it within the word has the k-th */

static uint32_t zlib_tables[SLICES][256], castagnoli_tables[SLICES][256];

static void fill_tables(uint32_t tables[SLICES][256], uint32_t polynomial) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][i] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (uint32_t i = 0; i < 256; i++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

static void fill_both(void) {
    fill_tables(zlib_tables, 0xedb88320U);
    fill_tables(castagnoli_tables, 0x82f63b78U);
}

static uint32_t update(uint32_t tables[SLICES][256], uint32_t crc, const unsigned char *bytes,
                       size_t length) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_both);
    crc = ~crc;
    for (; length >= SLICES; length -= SLICES, bytes += SLICES) {
        uint32_t next = 0;
        for (int k = 0; k < SLICES; k++) {
            uint32_t byte = bytes[k] ^ (k < 4 ? crc >> 8 * k & 255 : 0);
            next ^= tables[SLICES - 1 - k][byte];
        }
        crc = next;
    }
    for (; length > 0; length--, bytes++)
        crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 255];
    return ~crc;
}

uint32_t lab_track_crc32(uint32_t crc, const void *bytes, size_t length) {
    return update(zlib_tables, crc, bytes, length);
}

uint32_t lab_track_crc32c(uint32_t crc, const void *bytes, size_t length) {
    return update(castagnoli_tables, crc, bytes, length);
}

/* --- numbers --- */

static void add_little(struct lab_str *out, uint64_t value, int size) {
    char bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (char)(value >> 8 * i & 255);
    lab_str_add_bytes(out, bytes, (size_t)size);
}

void lab_track_add_u32(struct lab_str *out, uint32_t value) {
    add_little(out, value, 4);
}

void lab_track_add_u64(struct lab_str *out, uint64_t value) {
    add_little(out, value, 8);
}

#define VARINT_MOST 10

static size_t put_varint(char *bytes, uint64_t value) {
    size_t length = 0;
    for (; value >= 128; value >>= 7)
        bytes[length++] = (char)((value & 127) | 128);
    bytes[length++] = (char)value;
    return length;
}

static void add_varint(struct lab_str *out, uint64_t value) {
    char bytes[VARINT_MOST];
    lab_str_add_bytes(out, bytes, put_varint(bytes, value));
}

/* --- fields --- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_tag(struct lab_str *out, int field, enum wire wire) {
    add_varint(out, (uint64_t)field << 3 | wire);
}

void lab_proto_int(struct lab_str *out, int field, int64_t value) {
    add_tag(out, field, WIRE_VARINT);
    add_varint(out, (uint64_t)value);
}

void lab_proto_double(struct lab_str *out, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_tag(out, field, WIRE_64);
    lab_track_add_u64(out, bits);
}

void lab_proto_float(struct lab_str *out, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_tag(out, field, WIRE_32);
    lab_track_add_u32(out, bits);
}

void lab_proto_bytes(struct lab_str *out, int field, const void *bytes, size_t length) {
    add_tag(out, field, WIRE_BYTES);
    add_varint(out, length);
    lab_str_add_bytes(out, bytes, length);
}

void lab_proto_text(struct lab_str *out, int field, const char *text) {
    lab_proto_bytes(out, field, text, strlen(text));
}

/* One byte is kept for the length, which is enough for most; a longer one moves the content. */
size_t lab_proto_open(struct lab_str *out, int field) {
    add_tag(out, field, WIRE_BYTES);
    lab_str_add_bytes(out, "", 1);
    return out->length;
}

void lab_proto_close(struct lab_str *out, size_t opened) {
    char bytes[VARINT_MOST];
    size_t content = out->length - opened, length = put_varint(bytes, content);
    if (length > 1) {
        lab_str_add_bytes(out, bytes, length - 1);
        memmove(out->text + opened + length - 1, out->text + opened, content);
    }
    memcpy(out->text + opened - 1, bytes, length);
}

void lab_proto_time(struct lab_str *out, int field, int64_t wall_ns) {
    size_t time = lab_proto_open(out, field);
    lab_proto_int(out, 1, wall_ns / LAB_NS_PER_S);
    lab_proto_int(out, 2, wall_ns % LAB_NS_PER_S);
    lab_proto_close(out, time);
}
