/*
 * compose.c: what a large sweep costs before anything runs: 10,000 jobs of numa_study composed, all
 * of their trees kept. Prints seconds and the memory at its peak.
 *
 *     bench_compose [JOBS]
 */
#include "base/clock.h"
#include "compose/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int fail(const struct lab_err *err) {
    fprintf(stderr, "bench_compose: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv) {
    long jobs = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_config_path path = {0};
    const char *texts[] = {
        "experiment=numa_study",
        lab_arena_printf(&arena, "experiment.test.batch_size=range(1,%ld)", jobs / 2 + 1),
        "experiment.test.compile_model=true,false",
        "experiment.vit_configs.depth=4",
        "experiment.hardware.gpu_ids=[0,1]",
    };
    enum { WORDS = sizeof texts / sizeof *texts };
    int64_t start_ns = lab_clock_now(lab_clock_system());
    struct lab_override words[WORDS];
    for (int i = 0; i < WORDS; i++)
        if (lab_override_parse(texts[i], &arena, &words[i], &err) < 0)
            return fail(&err);
    struct lab_sweep sweep;
    struct lab_composer *composer;
    if (lab_sweep_init(&path, words, WORDS, true, &arena, &sweep, &err) < 0 ||
        lab_composer_make(&path, "config", &arena, &composer, &err) < 0)
        return fail(&err);
    for (int64_t i = 0; i < sweep.job_count; i++) {
        struct lab_override *overrides = NULL;
        int count = 0;
        struct lab_config config;
        if (lab_sweep_job(&sweep, i, &arena, &overrides, &count, &err) < 0 ||
            lab_composer_compose(composer, overrides, count, &arena, &config, &err) < 0)
            return fail(&err);
    }
    double seconds = (double)(lab_clock_now(lab_clock_system()) - start_ns) / LAB_NS_PER_S;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%lld jobs composed in %.3f s, %.1f us each; at most %.1f MiB in memory\n",
           (long long)sweep.job_count, seconds, 1e6 * seconds / (double)sweep.job_count,
           (double)usage.ru_maxrss / 1024);
    lab_arena_release(&arena);
    return 0;
}
