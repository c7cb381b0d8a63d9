/* table.c: this variant's table. */
#include "device/cpu/simd/simd.h"

#if defined(__AVX512F__)
#define NAME "AVX-512"
#elif defined(__AVX2__)
#define NAME "AVX2"
#elif defined(__x86_64__)
#define NAME "SSE2"
#elif defined(__aarch64__)
#define NAME "NEON"
#else
#define NAME "portable C"
#endif

#define TABLE SIMD_JOIN(cpu_simd, LAB_SIMD)

#define ROW(name) .name = SIMD(name),
const struct cpu_simd TABLE = {.name = NAME, SIMD_FUNCTIONS(ROW)};
