/* simd.c: which of the instruction sets in simd/ this CPU gets, and what it can do at best. */
#include "device/cpu/simd/simd.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "device/cpu/cpu.h"

#include <stdbool.h>
#include <stdlib.h>

static bool always(void) {
    return true;
}

#if defined(__x86_64__)
/* the flags that cmake/library.cmake compiles these variants with */
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

static const struct {
    const char *key; /* GPULAB_SIMD's word */
    const struct cpu_simd *simd;
    bool (*supported)(void);
} variants[] = {
    /* from the poorest to the best */
    {"base", &cpu_simd_base, always},
#if defined(__x86_64__)
    {"avx2", &cpu_simd_avx2, has_avx2},
    {"avx512", &cpu_simd_avx512, has_avx512},
#endif
};

#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))

static void warn_ignored(const char *wish, const struct cpu_simd *taken) {
    LAB_AUTO(str, known);
    const char *words[VARIANTS + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < VARIANTS; i++)
        if (variants[i].supported())
            words[count++] = variants[i].key;
    lab_str_add_list(&known, words, "or");
    lab_log(LAB_LOG_WARNING, "GPULAB_SIMD=%s is not known to this CPU, which has %s; using %s",
            wish, known.text, taken->name);
}

const struct cpu_simd *cpu_simd_select(void) {
    const char *wish = getenv("GPULAB_SIMD");
    const struct cpu_simd *best = &cpu_simd_base;
    for (int i = 0; i < VARIANTS; i++) {
        if (!variants[i].supported())
            continue;
        best = variants[i].simd;
        if (wish && lab_str_equal(wish, variants[i].key))
            return best;
    }
    if (wish && *wish)
        warn_ignored(wish, best);
    return best;
}

const char *cpu_simd_name(const struct cpu_simd *simd) {
    return simd->name;
}

/*
 * The best of many short stretches: whatever else runs on the core only makes a stretch slower, so
 * the fastest is nearest to what the core can do.
 */
double cpu_simd_peak_flops(const struct cpu_simd *simd, int64_t duration_ns) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t end = lab_clock_now(clock) + duration_ns;
    int64_t stretch_ns =
        duration_ns / 32 > 200 * LAB_NS_PER_US ? duration_ns / 32 : 200 * LAB_NS_PER_US;
    int64_t rounds = 64;
    double best = 0;
    float sum = 2;
    int64_t now;
    do {
        int64_t start = lab_clock_now(clock);
        double flops = simd->multiply_add(rounds, &sum);
        now = lab_clock_now(clock);
        if (now - start < stretch_ns / 2) /* too short for the clock: not counted */
            rounds *= 2;
        else if (flops / (double)(now - start) > best)
            best = flops / (double)(now - start);
    } while (now < end || best == 0);
    return best * (double)LAB_NS_PER_S;
}

double cpu_simd_flops_until(const struct cpu_simd *simd, int64_t end_ns) {
    const int64_t rounds = 1024; /* some microseconds */
    double flops = 0;
    float sum = 2;
    do /* once even where the core comes late: its rate is low then, not 0 */
        flops += simd->multiply_add(rounds, &sum);
    while (lab_clock_now(lab_clock_system()) < end_ns);
    return flops;
}
