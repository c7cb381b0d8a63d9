/*
 * random.h: random numbers by counter: number i of stream `seed` is a pure function of both, so
 * that any thread, device or later run can draw the same values in any order (SplitMix64's mixing
 * step).
 */
#pragma once

#include <stdint.h>

static inline uint64_t lab_random_bits(uint64_t seed, uint64_t index) {
    uint64_t z = seed * 0xd1342543de82ef95ULL + (index + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* Uniform in [0, 1), 53 bits. */
static inline double lab_random_uniform(uint64_t seed, uint64_t index) {
    return (double)(lab_random_bits(seed, index) >> 11) * 0x1p-53;
}

/* Uniform in [-1, 1), 24 bits: exact in single precision, for filling tensors. */
static inline float lab_random_symmetric(uint64_t seed, uint64_t index) {
    return (float)(int64_t)(lab_random_bits(seed, index) >> 40) * 0x1p-23f - 1.0f;
}

/* Uniform in [0, bound); bound ≥ 1. */
static inline uint64_t lab_random_below(uint64_t seed, uint64_t index, uint64_t bound) {
    return (uint64_t)(((unsigned __int128)lab_random_bits(seed, index) * bound) >> 64);
}
