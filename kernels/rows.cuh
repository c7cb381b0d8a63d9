/*
 * rows.cuh: rows of COLUMNS elements that THREADS threads keep in registers, each a few pieces: 16
 * bytes where VECTOR says that rows are whole pieces and begin at one, else single elements.
 */
#ifndef ROWS_CUH
#define ROWS_CUH

#include "common.cuh"

#if VECTOR
#define STEP PER_16_BYTES
#else
#define STEP 1
#endif
#define PIECES ((COLUMNS + THREADS * STEP - 1) / (THREADS * STEP))
#define HELD   (PIECES * STEP)

struct row {
    float v[HELD];
};

struct raw { /* a row as it lies in memory */
#if VECTOR
    union chunk pieces[PIECES];
#else
    element pieces[PIECES];
#endif
};

__device__ __forceinline__ int column_of(int piece) {
    return (piece * THREADS + (int)(threadIdx.x % THREADS)) * STEP;
}

__device__ __forceinline__ void fetch(const element *x, struct raw *raw) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
#if VECTOR
        raw->pieces[p].bits = c < COLUMNS ? *(const uint4 *)(x + c) : make_uint4(0u, 0u, 0u, 0u);
#else
        raw->pieces[p] = c < COLUMNS ? x[c] : from_float(0.0f);
#endif
    }
}

__device__ __forceinline__ float item(const struct raw *raw, int i) {
#if VECTOR
    return to_float(raw->pieces[i / STEP].items[i % STEP]);
#else
    return to_float(raw->pieces[i]);
#endif
}

__device__ __forceinline__ void read_row(const element *x, struct row *row) {
    struct raw raw;
    fetch(x, &raw);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        row->v[i] = item(&raw, i);
}

__device__ __forceinline__ void write_row(element *out, const struct row *row) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
        if (c >= COLUMNS)
            continue;
#if VECTOR
        union chunk to;
#pragma unroll
        for (int i = 0; i < STEP; i++)
            to.items[i] = from_float(row->v[p * STEP + i]);
        *(uint4 *)(out + c) = to.bits;
#else
        out[c] = from_float(row->v[p]);
#endif
    }
}

#endif
