/*
 * sampler.c: what watching costs: how late ticks are, and how much CPU time and memory the whole
 * process takes, the one who takes the samples included.
 *
 *     bench_sampler INTERVAL_MS SECONDS       prints `name value` lines; bench/monitor judges them
 *
 * With build/fake in LD_LIBRARY_PATH and GPULAB_FAKE_NVML set it watches GPUs that nobody has.
 */
#include "probe/sampler.h"
#include "base/str.h"
#include "machine/machine.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct costs { /* of the readings that gave a tick, by kind of entity */
    enum lab_entity_kind kinds[256];
    int64_t ticks[LAB_ENTITY_KIND_COUNT], cost_ns[LAB_ENTITY_KIND_COUNT];
    int gpus;
};

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct costs *costs = state;
    if (number < 256)
        costs->kinds[number] = entity->kind;
    costs->gpus += entity->kind == LAB_ENTITY_GPU;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct costs *costs = state;
    if (tick->entity >= 256)
        return;
    costs->ticks[costs->kinds[tick->entity]]++;
    costs->cost_ns[costs->kinds[tick->entity]] += tick->cost_ns;
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Resident memory that no other process could share: what this one costs. */
static double private_mib(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib, sum_kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
            sscanf(line, "Private_Dirty: %ld", &kib) == 1)
            sum_kib += kib;
    if (file)
        fclose(file);
    return (double)sum_kib / 1024;
}

static void watch(struct lab_sampler *sampler, struct costs *costs, double seconds) {
    struct lab_sink_samples sink = {take_entity, take_tick, NULL, NULL, costs};
    struct pollfd fd = {.fd = lab_sampler_fd(sampler), .events = POLLIN};
    int64_t until_ns = lab_clock_now(lab_clock_system()) + (int64_t)(seconds * 1e9);
    while (lab_clock_now(lab_clock_system()) < until_ns) {
        poll(&fd, 1, 1000);
        lab_sampler_take(sampler, &sink);
    }
}

int main(int argc, char **argv) {
    double interval_ms = argc > 2 ? strtod(argv[1], NULL) : 0;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
    struct lab_machine *machine;
    struct lab_sampler *sampler;
    struct lab_err err = LAB_ERR_INIT;
    if (argc != 3 || !(seconds > 0)) {
        fprintf(stderr, "usage: bench_sampler INTERVAL_MS SECONDS\n");
        return 2;
    }
    if (lab_machine_open(NULL, &machine, &err) < 0) {
        fprintf(stderr, "bench_sampler: %s\n", err.text);
        return 1;
    }
    struct lab_sampler_config config = {
        .setup = {.machine = machine, .interval_ns = (int64_t)(interval_ms * 1e6)}};
    if (lab_sampler_open(&config, &sampler, &err) < 0) {
        fprintf(stderr, "bench_sampler: %s\n", err.text);
        return 1;
    }
    struct costs costs = {0}, start = {0};
    watch(sampler, &start, 0.5); /* starting is no part of it */
    costs = start;
    double cpu_before_s = cpu_seconds();
    int64_t before_ns = lab_clock_now(lab_clock_system());
    watch(sampler, &costs, seconds);
    double passed_s = (double)(lab_clock_now(lab_clock_system()) - before_ns) / 1e9;
    double cpu_percent = 100 * (cpu_seconds() - cpu_before_s) / passed_s;
    struct lab_sampler_stats stats;
    lab_sampler_stats(sampler, &stats);
    printf("gpus %d\nlanes %d\nticks %lld\n", costs.gpus, stats.lanes, (long long)stats.ticks);
    printf("missed %lld\n", (long long)stats.missed);
    printf("late_p50_ms %.3f\nlate_p99_ms %.3f\nlate_max_ms %.3f\n", stats.late_p50_ms,
           stats.late_p99_ms, stats.late_max_ms);
    printf("cpu_percent %.3f\nprivate_mib %.1f\n", cpu_percent, private_mib());
    static const char *const names[LAB_ENTITY_KIND_COUNT] = {"gpu", "mig", "cpu", "memory", "numa"};
    for (int i = 0; i < LAB_ENTITY_KIND_COUNT; i++)
        if (costs.ticks[i] > 0)
            printf("%s_us %.1f\n", names[i],
                   (double)costs.cost_ns[i] / 1e3 / (double)costs.ticks[i]);
    lab_sampler_close(sampler);
    lab_machine_close(machine);
    return 0;
}
