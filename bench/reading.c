/*
 * reading.c: what one reading of all GPUs costs: thread time of each, and wall time from the first
 * that begins to the last that is done, a thread for each GPU. A reading each 100 ms, so that one in
 * five takes a GPM sample and one in ten the slow tier: the median is the fast tier.
 *
 *     bench_reading SECONDS       prints `name value` lines; bench/monitor judges them
 *
 * With build/fake in LD_LIBRARY_PATH and GPULAB_FAKE_NVML set it reads GPUs that nobody has.
 */
#include "probe/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INTERVAL_NS (100 * LAB_NS_PER_MS)
#define GPUS_MAX    64

extern const struct lab_probe lab_probe_nvml;

struct reader {
    void *probe;
    int lane;
    pthread_t thread;
    int64_t began_ns, ended_ns, thread_ns; /* of this round */
    int metrics;
    bool failed;
};

static struct {
    pthread_barrier_t begin, end;
    bool stop, simulated;
    struct reader readers[GPUS_MAX];
    int count;
} bench;

/* --- a sink that keeps next to nothing --- */

static int take_entity(void *state, const struct lab_entity *entity) {
    struct reader *reader = state;
    bench.simulated = entity->simulated;
    reader->metrics = entity->column_count;
    return 0;
}

static void take_tick(void *state, int entity, int64_t time_ns, const int64_t *values,
                      const uint64_t *valid) {
    (void)state, (void)entity, (void)time_ns, (void)values, (void)valid;
}

static void take_event(void *state, int entity, enum lab_event_kind kind, int64_t number,
                       const char *text) {
    (void)state, (void)entity, (void)kind, (void)number, (void)text;
}

static void take_processes(void *state, int entity, const struct lab_gpu_process *items,
                           int count) {
    (void)state, (void)entity, (void)items, (void)count;
}

static struct lab_probe_sink sink_of(struct reader *reader) {
    return (struct lab_probe_sink){take_entity,    take_tick, take_event,
                                   take_processes, NULL,      reader};
}

/* --- reading --- */

static int64_t now_ns(void) {
    return lab_clock_now(lab_clock_system());
}

static int64_t thread_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * LAB_NS_PER_S + time.tv_nsec;
}

static void *read_rounds(void *argument) {
    struct reader *reader = argument;
    struct lab_probe_sink sink = sink_of(reader);
    for (;;) {
        pthread_barrier_wait(&bench.begin);
        if (bench.stop)
            return NULL;
        struct lab_err err = LAB_ERR_INIT;
        int64_t before_ns = thread_ns();
        reader->began_ns = now_ns();
        reader->failed |=
            lab_probe_nvml.read(reader->probe, reader->lane, LAB_PROBE_TICK, &sink, &err) < 0;
        reader->ended_ns = now_ns();
        reader->thread_ns = thread_ns() - before_ns;
        pthread_barrier_wait(&bench.end);
    }
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(int64_t *values, int count, double share) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count ? (double)values[(int)(share * (count - 1))] / 1e3 : 0;
}

static void measure(int rounds) {
    int64_t *walls = calloc((size_t)rounds, sizeof *walls);
    int64_t *threads = calloc((size_t)rounds * (size_t)bench.count, sizeof *threads);
    int64_t start_ns = now_ns();
    for (int round = -5; round < rounds; round++) { /* the first ones find out what is cheap */
        lab_clock_system()->sleep_until(lab_clock_system(), start_ns + (round + 6) * INTERVAL_NS);
        pthread_barrier_wait(&bench.begin);
        pthread_barrier_wait(&bench.end);
        int64_t first_ns = INT64_MAX, last_ns = 0;
        for (int i = 0; round >= 0 && i < bench.count; i++) {
            const struct reader *reader = &bench.readers[i];
            first_ns = reader->began_ns < first_ns ? reader->began_ns : first_ns;
            last_ns = reader->ended_ns > last_ns ? reader->ended_ns : last_ns;
            threads[round * bench.count + i] = reader->thread_ns;
        }
        if (round >= 0)
            walls[round] = last_ns - first_ns;
    }
    int readings = rounds * bench.count;
    printf("thread_p50_us %.1f\n", quantile_us(threads, readings, 0.5));
    printf("thread_p95_us %.1f\n", quantile_us(threads, readings, 0.95));
    printf("wall_p50_us %.1f\nwall_p95_us %.1f\n", quantile_us(walls, rounds, 0.5),
           quantile_us(walls, rounds, 0.95));
    free(walls);
    free(threads);
}

static int run(void *probe, int rounds) {
    bench.count = lab_probe_nvml.lane_count(probe);
    bench.count = bench.count < GPUS_MAX ? bench.count : GPUS_MAX;
    pthread_barrier_init(&bench.begin, NULL, (unsigned)bench.count + 1);
    pthread_barrier_init(&bench.end, NULL, (unsigned)bench.count + 1);
    for (int i = 0; i < bench.count; i++) {
        struct reader *reader = &bench.readers[i];
        *reader = (struct reader){.probe = probe, .lane = i};
        struct lab_probe_sink sink = sink_of(reader);
        lab_probe_nvml.describe(probe, i, &sink);
        if (pthread_create(&reader->thread, NULL, read_rounds, reader) != 0)
            return -1;
    }
    printf("gpus %d\nsimulated %d\nmetrics %d\n", bench.count, bench.simulated,
           bench.readers[0].metrics);
    measure(rounds);
    bench.stop = true;
    pthread_barrier_wait(&bench.begin);
    bool failed = false;
    for (int i = 0; i < bench.count; i++) {
        pthread_join(bench.readers[i].thread, NULL);
        failed |= bench.readers[i].failed;
    }
    printf("failed %d\n", failed);
    return 0;
}

int main(int argc, char **argv) {
    double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;
    struct lab_err err = LAB_ERR_INIT;
    void *probe;
    if (!(seconds > 0)) {
        fprintf(stderr, "usage: bench_reading SECONDS\n");
        return 2;
    }
    const struct lab_probe_setup setup = {
        .clock = lab_clock_system(), .interval_ns = INTERVAL_NS, .root = ""};
    if (lab_probe_nvml.open(&setup, &probe, &err) < 0) {
        fprintf(stderr, "bench_reading: %s\n", err.text);
        return 1;
    }
    int result = run(probe, (int)(seconds * LAB_NS_PER_S / INTERVAL_NS));
    lab_probe_nvml.close(probe);
    return result < 0;
}
