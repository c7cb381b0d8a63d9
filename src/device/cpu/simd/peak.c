/*
 * peak.c: multiply-adds on registers alone, for finding what a core can do at best.
 *
 * Twelve chains keep two units of four cycles' latency busy and still fit the 16 registers of the
 * smaller instruction sets, beside the two factors.
 */
#include "device/cpu/simd/simd.h"
#include "device/cpu/simd/vector.h"

#define CHAINS 12
/* multiply-adds of each chain in a round, so that the loop itself costs nothing */
#define INNER 16

double SIMD(multiply_add)(int64_t rounds, float *sum) {
    /* x ← 0.999·x + 0.001 moves towards 1: never denormal, never infinite */
    vector factor = vector_of(0.999f), summand = vector_of(0.001f);
    vector chain[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        chain[c] = vector_of(*sum + (float)c); /* unknown here, so nothing can be folded */
    for (int64_t round = 0; round < rounds; round++)
#pragma GCC unroll 16
        for (int step = 0; step < INNER; step++)
#pragma GCC unroll 12
            for (int c = 0; c < CHAINS; c++)
                chain[c] = chain[c] * factor + summand;
    vector total = chain[0];
    for (int c = 1; c < CHAINS; c++)
        total += chain[c];
    *sum = vector_sum(total);
    const int per_step = 2 * CHAINS * LANES;
    return (double)per_step * INNER * (double)rounds;
}
