/*
 * hash.h: FNV-1a, 64 bits: names for things whose content says what they are. Not against people
 * who choose the content. Its low bits are its weakest: an index by hash folds the high ones in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LAB_HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on with a hash: of two texts in a row as of one, so callers put something between them. */
static inline uint64_t lab_hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t lab_hash_text(uint64_t hash, const char *text) {
    for (; *text; text++)
        hash = lab_hash_bytes(hash, text, 1);
    return hash;
}
