/*
 * varint.h: whole numbers as few bytes, 7 bits to each, the lowest first; the top bit says that
 * more follow. Those that may be negative are written in zigzag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAB_VARINT_BYTES 10 /* of the largest */

struct lab_packed { /* what is still to be read */
    const uint8_t *at, *end;
};

/* Returns how many bytes it took. */
static inline size_t lab_varint_write(uint8_t *to, uint64_t value) {
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        to[length++] = (uint8_t)(value | 0x80);
    to[length++] = (uint8_t)value;
    return length;
}

/* False where the bytes end within the number, or it doesn't fit 64 bits. */
static inline bool lab_varint_take(struct lab_packed *packed, uint64_t *ret_value) {
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

/* Small numbers of either sign become small unsigned ones: 0, -1, 1, -2 … are 0, 1, 2, 3 … */
static inline uint64_t lab_zigzag(uint64_t value) {
    return (value << 1) ^ (0 - (value >> 63));
}

static inline uint64_t lab_unzigzag(uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}
