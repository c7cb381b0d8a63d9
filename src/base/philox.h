/*
 * philox.h: random words by counter, by Philox 4x32-10 (Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", 2011): four words are a pure function of a counter of four words and a key of
 * two. Unlike base/random.h it needs no 64-bit products, so that GPUs and vector units draw the
 * same numbers at full speed.
 */
#pragma once

#include <stdint.h>

#define LAB_PHILOX_ROUNDS 10
#define LAB_PHILOX_M0     0xD2511F53u /* the multipliers, */
#define LAB_PHILOX_M1     0xCD9E8D57u
#define LAB_PHILOX_W0     0x9E3779B9u /* and what the key grows by in each round */
#define LAB_PHILOX_W1     0xBB67AE85u

struct lab_philox {
    uint32_t words[4];
};

static inline struct lab_philox lab_philox(struct lab_philox counter, uint64_t key) {
    uint32_t *c = counter.words, k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < LAB_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)LAB_PHILOX_M0 * c[0], p1 = (uint64_t)LAB_PHILOX_M1 * c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)p0;
        k0 += LAB_PHILOX_W0;
        k1 += LAB_PHILOX_W1;
    }
    return counter;
}
