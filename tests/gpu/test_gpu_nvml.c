/*
 * test_gpu_nvml.c: the probe on a real GPU: what it tells can be, changes as it should, and a tick
 * costs little. Prints every value of the last reading and the thread time of each tier. Skipped
 * where there is no GPU.
 */
#include "test.h"
#include <stdlib.h>

#include "probe/probe.h"

#include <math.h>
#include <time.h>

#define TICKS 20

extern const struct lab_probe lab_probe_nvml;

static void *probe;
static struct lab_entity entity;
static int64_t values[128];
static uint64_t valid[2];
static int process_count = -1;

static int take_entity(void *state, const struct lab_entity *told) {
    (void)state;
    if (told->kind == LAB_ENTITY_GPU)
        entity = *told;
    return told->kind == LAB_ENTITY_GPU ? 0 : 1;
}

static void take_tick(void *state, int number, int64_t time_ns, const int64_t *told_values,
                      const uint64_t *told_valid) {
    (void)state, (void)time_ns;
    if (number != 0)
        return;
    memcpy(values, told_values, (size_t)entity.column_count * sizeof *values);
    memcpy(valid, told_valid, LAB_VALID_WORDS((size_t)entity.column_count) * sizeof *valid);
}

static void take_event(void *state, int number, enum lab_event_kind kind, int64_t which,
                       const char *text) {
    (void)state, (void)number, (void)kind;
    print_message("event %lld %s\n", (long long)which, text);
}

static void take_processes(void *state, int number, const struct lab_gpu_process *items,
                           int count) {
    (void)state, (void)items;
    if (number == 0)
        process_count = count;
}

static const struct lab_probe_sink sink = {
    .entity = take_entity, .tick = take_tick, .event = take_event, .gpu_processes = take_processes};

static double value(enum lab_metric_id metric) {
    struct lab_tick tick = {.values = values, .valid = valid};
    return lab_tick_value(&entity, &tick, metric, -1);
}

static int64_t thread_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * LAB_NS_PER_S + now.tv_nsec;
}

/* One reading; its thread time and wall time, µs. */
static void read_once(enum lab_probe_when when, double *ret_thread_us, double *ret_wall_us) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t thread = thread_ns(CLOCK_THREAD_CPUTIME_ID), wall = thread_ns(CLOCK_MONOTONIC);
    int result = lab_probe_nvml.read(probe, 0, when, &sink, &err);
    *ret_thread_us = 1e-3 * (double)(thread_ns(CLOCK_THREAD_CPUTIME_ID) - thread);
    *ret_wall_us = 1e-3 * (double)(thread_ns(CLOCK_MONOTONIC) - wall);
    if (result)
        fail_msg("%s", err.text);
}

static void print_values(void) {
    for (int i = 0; i < entity.column_count; i++) {
        const struct lab_metric *metric = lab_metric(entity.columns[i].metric);
        double now = value(entity.columns[i].metric);
        print_message("  %-24s %s%.6g %s\n", metric->name, isnan(now) ? "? " : "", now,
                      metric->unit);
    }
}

LAB_TEST(what_is_told_can_be) {
    double thread_us, wall_us;
    lab_probe_nvml.describe(probe, 0, &sink);
    print_message("%s: %s, %s, node %d\n", lab_probe_nvml.lane_name(probe, 0), entity.name,
                  entity.id, entity.node);
    assert_false(entity.simulated);
    read_once(LAB_PROBE_EDGE, &thread_us, &wall_us);
    double energy = value(LAB_METRIC_ENERGY);
    lab_clock_sleep(lab_clock_system(), 500 * LAB_NS_PER_MS);
    read_once(LAB_PROBE_EDGE, &thread_us, &wall_us);
    print_values();
    print_message("all tiers: %.0f µs of thread time, %.0f µs\n", thread_us, wall_us);
    assert_true(value(LAB_METRIC_MEMORY_TOTAL) > 1e9);
    assert_true(value(LAB_METRIC_MEMORY_USED) <= value(LAB_METRIC_MEMORY_TOTAL));
    assert_in_range((int)value(LAB_METRIC_TEMPERATURE), 5, 110);
    assert_true(value(LAB_METRIC_POWER) > 1 && value(LAB_METRIC_POWER) < 3000);
    assert_true(isnan(energy) || value(LAB_METRIC_ENERGY) >= energy);
    assert_true(process_count >= 0);
}

static int by_number(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The machine may be busy, so the time itself is printed, not judged. */
LAB_TEST(a_tick_is_cheap) {
    double plain[TICKS], with_gpm[TICKS], wall_us;
    for (int i = 0; i < TICKS; i++) {
        lab_clock_sleep(lab_clock_system(), 20 * LAB_NS_PER_MS);
        read_once(LAB_PROBE_TICK, &plain[i], &wall_us);
    }
    for (int i = 0; i < TICKS; i++) {
        lab_clock_sleep(lab_clock_system(), 105 * LAB_NS_PER_MS);
        read_once(LAB_PROBE_TICK, &with_gpm[i], &wall_us);
    }
    qsort(plain, TICKS, sizeof *plain, by_number);
    qsort(with_gpm, TICKS, sizeof *with_gpm, by_number);
    print_message("fast tier: median %.1f µs of thread time, highest %.1f\n", plain[TICKS / 2],
                  plain[TICKS - 1]);
    print_message("with GPM: median %.1f µs, highest %.1f (each tenth has the slow tier too)\n",
                  with_gpm[TICKS / 2], with_gpm[TICKS - 1]);
    assert_false(isnan(value(LAB_METRIC_POWER)));
}

static int begin(int argc, char **argv) {
    struct lab_probe_setup setup = {
        .clock = lab_clock_system(), .interval_ns = 100 * LAB_NS_PER_MS, .root = ""};
    struct lab_err err = LAB_ERR_INIT;
    (void)argc;
    (void)argv;
    if (lab_probe_nvml.open(&setup, &probe, &err)) {
        print_message("skipped: %s\n", err.text);
        return LAB_TEST_SKIPPED;
    }
    return LAB_TEST_GO;
}

static int end(int failed) {
    lab_probe_nvml.close(probe);
    return failed;
}

const struct lab_test_program lab_test_program = {.begin = begin, .end = end};
