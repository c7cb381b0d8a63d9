/*
 * long.c: the tests of level 3: what shows after minutes, or when all GPUs work at once.
 */
#include "check/check_internal.h"

#include "base/clock.h"
#include "base/random.h"
#include "machine/machine.h"
#include "stats/stats.h"

#include <string.h>

#define PRINT(...) lab_arena_printf(run->arena, __VA_ARGS__)

#define SOAK_S           600.0
#define SOAK_SIMULATED_S 20.0
#define SOAK_AGAIN_S     60.0
#define SOAK_LOSS_MOST   0.1 /* of what the GPU reached alone and cold */
#define REPEATS          8
#define VARIATION_MOST   0.02
#define GIB              1073741824.0
#define CHUNK_BYTES      ((size_t)256 << 20)
#define FREE_SHARE       0.9 /* of the GPU's free memory that patterns go through */
#define ROUNDS           2
#define TIME_SHARE       0.4 /* of what is left for it, so that it can be tested again */

static const char *const gemm_keys[] = {"m=4096",     "n=4096",         "k=4096",
                                        "dtype=bf16", "config=default", NULL};

/* What the test has measured before, of this GPU; NaN = nothing. */
static double known(const struct check_run *run, const char *test, int gpu) {
    double most = NAN;
    for (int i = 0; i < run->count; i++)
        if (lab_str_equal(run->findings[i].test->name, test) && run->findings[i].gpu == gpu)
            most = fmax(most, run->findings[i].measured);
    return most;
}

static void begin(struct check_run *run, int index, const char *key,
                  struct lab_check_finding *finding) {
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    finding->group = run->devices->items[index].description;
    finding->key = key;
}

/* Why the test was skipped on this GPU; NULL = it wasn't, or broke. */
static const char *skipped(const struct check_run *run, const char *test, int gpu) {
    const char *why = NULL;
    for (int i = 0; i < run->count; i++)
        if (lab_str_equal(run->findings[i].test->name, test) && run->findings[i].gpu == gpu)
            why = run->findings[i].verdict == LAB_CHECK_SKIPPED ? run->findings[i].reason : NULL;
    return why;
}

/* --- all at once; measured for the first GPU, remembered for the others --- */

/* -1: the finding is complete. */
static int together(struct check_run *run, struct check_rates **rates,
                    const struct check_work *work, int64_t iterations,
                    struct lab_check_finding *finding) {
    struct lab_err err = LAB_ERR_INIT;
    if (*rates)
        return 0;
    struct check_rates *found =
        lab_arena_alloc(run->arena, (size_t)run->devices->count, sizeof *found);
    if (check_measure_all(run, work, iterations, found, &err) < 0) {
        check_error(finding, &err, run);
        return -1;
    }
    *rates = found;
    return 0;
}

static void look_soak(struct check_run *run, int index, int attempt,
                      struct lab_check_finding *finding) {
    struct check_work work = {.workload = "gemm", .keys = gemm_keys};
    double alone = known(run, "gemm", index); /* TFLOP/s */
    bool simulated = run->devices->items[0].simulated;
    double whole_s = simulated ? SOAK_SIMULATED_S : SOAK_S;
    double seconds = fmin(whole_s, check_left_s(run) / 4);
    begin(run, index, "soak_bf16_tflops", finding);
    if (isnan(alone) && skipped(run, "gemm", index)) {
        check_skip(finding, skipped(run, "gemm", index));
        return;
    }
    if (isnan(alone)) {
        check_break(finding, "the test 'gemm' has no rate to plan it by");
        return;
    }
    if (attempt > 0) { /* they are warm by now */
        run->soak = NULL;
        seconds = fmin(seconds, SOAK_AGAIN_S);
    }
    double each_s = 2.0 * 4096 * 4096 * 4096 / (1e12 * alone);
    if (!run->soak)
        run->soak_s = work.seconds = seconds;
    if (together(run, &run->soak, &work, (int64_t)(seconds / each_s) + 1, finding) < 0)
        return;
    finding->measured = 1e-12 * run->soak[index].rates.flops_per_s;
    finding->expected = alone;
    finding->least = (1 - SOAK_LOSS_MOST) * alone;
    if (run->soak_s < whole_s)
        finding->reason = PRINT("%.0f s of %.0f s: the limit allows no more", run->soak_s, whole_s);
}

static void look_contention(struct check_run *run, int index, int attempt,
                            struct lab_check_finding *finding) {
    static const char *const keys[] = {"direction=h2d", NULL};
    struct check_work work = {.workload = "memcpy", .keys = keys};
    begin(run, index, "contended_h2d_gb_s", finding);
    if (attempt > 0)
        run->contention = NULL;
    if (together(run, &run->contention, &work, 512, finding) == 0)
        finding->measured = 1e-9 * run->contention[index].rates.copy_bytes_per_s;
}

static int count_several(struct check_run *run, const char **ret_why) {
    *ret_why = "one GPU";
    return run->devices->count > 1 ? run->devices->count : 0;
}

/* --- variation --- */

static void look_variation(struct check_run *run, int index, int attempt,
                           struct lab_check_finding *finding) {
    struct check_work work = {.workload = "gemm", .keys = gemm_keys, .seconds = 0.5};
    struct lab_err err = LAB_ERR_INIT;
    double values[REPEATS];
    (void)attempt;
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    for (int i = 0; i < REPEATS; i++) {
        struct check_rates rates;
        if (check_measure(run, index, -1, &work, &rates, &err) < 0) {
            check_error(finding, &err, run);
            return;
        }
        values[i] = rates.rates.flops_per_s;
    }
    double cv = lab_stats_stddev(values, REPEATS) / lab_stats_mean(values, REPEATS);
    const char *found = PRINT("%.2f%%", 100 * cv);
    const char *wanted = PRINT("up to %.0f%%", 100 * VARIATION_MOST);
    if (cv > VARIATION_MOST)
        check_fail(finding, found, wanted,
                   PRINT("the rate varies by %.1f%% over %d runs", 100 * cv, REPEATS));
    else
        check_pass(finding, found, wanted);
}

/* --- patterns through device memory --- */

struct patterns {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer *chunks;
    int count;
    unsigned char *sent, *back;
};

static void fill(unsigned char *bytes, uint64_t seed, int chunk, int round) {
    uint64_t *words = (uint64_t *)(void *)bytes;
    uint64_t turn = lab_random_bits(seed, (uint64_t)chunk);
    for (size_t i = 0; i < CHUNK_BYTES / 8; i++)
        words[i] = (turn += 0x9e3779b97f4a7c15ull) ^ (round ? ~0ull : 0);
}

/* All chunks are written before the first is read: an address that aliases shows. */
static int pass_patterns(struct patterns *patterns, uint64_t seed, int round, int64_t *ret_wrong,
                         struct lab_err *err) {
    for (int i = 0; i < patterns->count; i++) {
        fill(patterns->sent, seed, i, round);
        if (lab_copy(patterns->stream, patterns->chunks[i].data, patterns->sent, CHUNK_BYTES,
                     LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err) < 0 ||
            lab_stream_sync(patterns->stream, err) < 0)
            return -1;
    }
    for (int i = 0; i < patterns->count; i++) {
        fill(patterns->sent, seed, i, round);
        if (lab_copy(patterns->stream, patterns->back, patterns->chunks[i].data, CHUNK_BYTES,
                     LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, err) < 0 ||
            lab_stream_sync(patterns->stream, err) < 0)
            return -1;
        if (memcmp(patterns->sent, patterns->back, CHUNK_BYTES) != 0)
            for (size_t k = 0; k < CHUNK_BYTES; k++)
                *ret_wrong += patterns->sent[k] != patterns->back[k];
    }
    return 0;
}

static int open_chunks(struct patterns *patterns, int count, struct lab_err *err) {
    for (; patterns->count < count; patterns->count++)
        if (lab_buffer_open(patterns->device, LAB_MEMORY_DEVICE, -1, CHUNK_BYTES,
                            &patterns->chunks[patterns->count], err) < 0)
            return -1;
    return 0;
}

/* How many chunks the time allows, at most `count`; the first one shows how long they take. */
static int fit_chunks(struct check_run *run, struct patterns *patterns, int gpu, int count,
                      int64_t *ret_wrong, int *ret_fitting, struct lab_err *err) {
    int64_t start_ns = lab_clock_now(lab_clock_system());
    if (open_chunks(patterns, count < 1 ? count : 1, err) < 0 ||
        pass_patterns(patterns, run->setup->seed, 0, ret_wrong, err) < 0)
        return -1;
    double chunk_s = 1e-9 * (double)(lab_clock_now(lab_clock_system()) - start_ns);
    double time_s = TIME_SHARE * check_left_s(run) / (run->devices->count - gpu);
    double fitting = fmax(1, time_s / (ROUNDS * chunk_s));
    *ret_fitting = fitting < count ? (int)fitting : count;
    return 0;
}

/* `ret_bytes` of `ret_most` are tested: all of it where there is time. */
static int run_patterns(struct check_run *run, int gpu, int64_t *ret_wrong, double *ret_bytes,
                        double *ret_most, struct lab_err *err) {
    struct patterns patterns = {.device = NULL};
    const struct lab_gpu_health *health = check_gpu(run, gpu);
    int64_t most =
        (int64_t)(FREE_SHARE *
                  (double)(health->memory_bytes -
                           (health->memory_used_bytes > 0 ? health->memory_used_bytes : 0)));
    int chunks = (int)(most / (int64_t)CHUNK_BYTES), fitting = 0;
    int result = lab_device_open(run->setup->machine, &run->devices->items[gpu], LAB_DEVICE_SETUP,
                                 &patterns.device, err);
    if (result == 0)
        result = lab_stream_open(patterns.device, LAB_STREAM_COPY, &patterns.stream, err);
    LAB_AUTO_FREE unsigned char *sent = lab_mem_alloc(CHUNK_BYTES, 1);
    LAB_AUTO_FREE unsigned char *back = lab_mem_alloc(CHUNK_BYTES, 1);
    LAB_AUTO_FREE struct lab_buffer *buffers =
        lab_mem_alloc((size_t)(chunks > 0 ? chunks : 1), sizeof *buffers);
    patterns.sent = sent;
    patterns.back = back;
    patterns.chunks = buffers;
    if (result == 0)
        result = fit_chunks(run, &patterns, gpu, chunks, ret_wrong, &fitting, err);
    if (result == 0)
        result = open_chunks(&patterns, fitting, err);
    for (int round = 0; round < ROUNDS && result == 0; round++)
        result = pass_patterns(&patterns, run->setup->seed, round, ret_wrong, err);
    *ret_bytes = (double)patterns.count * (double)CHUNK_BYTES;
    *ret_most = (double)chunks * (double)CHUNK_BYTES;
    for (int i = 0; i < patterns.count; i++)
        lab_buffer_close(&patterns.chunks[i]);
    lab_stream_close(patterns.stream);
    lab_device_close(patterns.device);
    return result;
}

static void look_patterns(struct check_run *run, int index, int attempt,
                          struct lab_check_finding *finding) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t wrong = 0;
    double bytes = 0, most = 0;
    (void)attempt;
    finding->gpu = index;
    finding->subject = check_gpu_name(run, index);
    if (run->devices->items[index].simulated) {
        check_skip(finding, "simulated memory has no content");
        return;
    }
    if (run->no_health || check_gpu(run, index)->memory_bytes < 0) {
        check_break(finding, "the size of its memory is unknown");
        return;
    }
    if (run_patterns(run, index, &wrong, &bytes, &most, &err) < 0) {
        check_error(finding, &err, run);
        return;
    }
    const char *found = PRINT("%lld bytes wrong", (long long)wrong);
    const char *wanted = PRINT("0 of %.0f GiB wrong", bytes / GIB);
    if (wrong)
        check_fail(finding, found, wanted,
                   PRINT("%lld bytes of device memory came back wrong", (long long)wrong));
    else
        check_pass(finding, found, wanted);
    if (!wrong && bytes < most)
        finding->reason =
            PRINT("%.0f of %.0f GiB: the limit allows no more", bytes / GIB, most / GIB);
}

const struct lab_check_test check_long_tests[] = {
    {"soak", "Matrix product, all GPUs", 3, LAB_CHECK_ISOLATE, "TFLOP/s", 0.02, check_each_gpu,
     look_soak, "a GPU slows down when all of them are warm"},
    {"contention", "Copies, all GPUs", 3, LAB_CHECK_MONITOR, "GB/s", 0.15, count_several,
     look_contention, "a GPU gets less of the shared links than its peers"},
    {"variation", "Variation between runs", 3, LAB_CHECK_MONITOR, .count = check_each_gpu,
     .look = look_variation, .help = "the rate of the same work changes from run to run"},
    {"memory_patterns", "Memory patterns", 3, LAB_CHECK_ISOLATE, .count = check_each_gpu,
     .look = look_patterns, .help = "device memory doesn't hold what was written"},
    {NULL},
};
