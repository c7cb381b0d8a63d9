/*
 * blas_core.c: makes OpenBLAS use the vector units that are there.
 *
 * OpenBLAS picks its kernels by the CPU's model number. A model that is newer than the library
 * falls back to kernels of 2004, at a tenth of the speed: Debian 12's doesn't know Emerald Rapids,
 * for instance. What such a CPU can do it says itself, so the choice is made again with the family
 * of kernels named. The variable that names it is read when the library is loaded, before main:
 * hence the library's own functions for starting anew, where it has them.
 */
#include "device/cpu/blas.h"

#include "base/log.h"
#include "base/str.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>

#define CORE_VARIABLE "OPENBLAS_CORETYPE"

/* Builds for one CPU only don't have them. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

#if defined(__x86_64__)

struct family {
    const char *name;           /* to ask for */
    const char *const *as_good; /* what is at least as wide */
};

static const char *const wide_512[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
static const char *const wide_256[] = {
    "Haswell", "Zen", "Excavator", "SkylakeX", "Cooperlake", "SapphireRapids", NULL};
static const struct family avx512 = {"SkylakeX", wide_512}, avx2 = {"Haswell", wide_256};

/* The widest family that this CPU can run; NULL = nothing better than the fallback. */
static const struct family *family_of_cpu(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
    return NULL;
}

const char *cpu_blas_better_core(const char *core) {
    const struct family *family = family_of_cpu();
    if (!family)
        return NULL;
    /* AMD's first CPUs with AVX-512 are known as Zen, whose kernels serve them well */
    const char *const *list = lab_str_equal(core, "Zen") ? wide_256 : family->as_good;
    return lab_str_find(core, list) < 0 ? family->name : NULL;
}

#else

const char *cpu_blas_better_core(const char *core) {
    (void)core;
    return NULL;
}

#endif

static void choose(void) {
    const char *better = cpu_blas_better_core(openblas_get_corename());
    if (!better || getenv(CORE_VARIABLE) || !gotoblas_dynamic_init || !gotoblas_dynamic_quit)
        return;
    char before[32];
    snprintf(before, sizeof before, "%s", openblas_get_corename());
    setenv(CORE_VARIABLE, better, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(CORE_VARIABLE);
    lab_log(LAB_LOG_INFO, "this CPU is unknown to OpenBLAS: %s kernels instead of %s",
            openblas_get_corename(), before);
}

const char *cpu_blas_core(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return openblas_get_corename();
}
