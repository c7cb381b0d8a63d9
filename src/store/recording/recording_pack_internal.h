/*
 * recording_pack_internal.h: what packing and unpacking ticks have in common. The format is
 * described in recording_pack.c.
 */
#pragma once

#include "store/recording/recording_pack.h"

#define LAB_PACK_VERSION 1
#define LAB_PACK_BLOCK   32

enum lab_pack_coding { LAB_PACK_CONSTANT, LAB_PACK_PLAIN, LAB_PACK_DELTA, LAB_PACK_DELTA2 };
enum lab_pack_pattern { LAB_PACK_BITMAP, LAB_PACK_RUNS };

static inline size_t lab_pack_block_bytes(size_t count, unsigned width) {
    return (count * width + 7) / 8;
}

/* How many numbers the next block has. */
static inline size_t lab_pack_block_count(size_t done, size_t count) {
    return count - done < LAB_PACK_BLOCK ? count - done : LAB_PACK_BLOCK;
}
