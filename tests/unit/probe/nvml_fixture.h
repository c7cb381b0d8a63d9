/*
 * nvml_fixture.h: what the tests of the probe `nvml` share: the fake NVML, a clock that both the
 * fake and the probe go by, and a sink that remembers what it was told.
 */
#pragma once

#include "nvml_fake.h"

#include "probe/probe.h"

#include <math.h>

extern const struct lab_probe lab_probe_nvml;

#define ENTITIES_MAX  8
#define PROCESSES_MAX 160
#define COLUMNS_MAX   64

struct told { /* by one lane */
    struct lab_entity entities[ENTITIES_MAX];
    char ids[ENTITIES_MAX][96], names[ENTITIES_MAX][96], pcis[ENTITIES_MAX][16];
    int entity_count;
    int ticks[ENTITIES_MAX];
    int64_t time_ns, values[ENTITIES_MAX][COLUMNS_MAX];
    uint64_t valid[ENTITIES_MAX][LAB_VALID_WORDS(COLUMNS_MAX)];
    int event_count;
    enum lab_event_kind event_kind;
    int64_t event_number;
    char event_text[200];
    struct lab_gpu_process processes[ENTITIES_MAX][PROCESSES_MAX];
    int process_counts[ENTITIES_MAX]; /* -1 = not told */
};

static int64_t fixture_ns = 1000 * LAB_NS_PER_S, fixture_begun_ns; /* never goes back */
static struct lab_clock fixture_clock;
static struct told told[16];

/* --- time --- */

static inline void advance(double seconds) {
    fixture_ns += llround(seconds * 1e9);
    fake.set_time((double)(fixture_ns - fixture_begun_ns) * 1e-9);
}

/* --- the sink --- */

static inline int take_entity(void *state, const struct lab_entity *entity) {
    struct told *lane = state;
    int number = 0;
    while (number < lane->entity_count && strcmp(lane->ids[number], entity->id) != 0)
        number++;
    assert_true(number < ENTITIES_MAX);
    assert_true(entity->column_count <= COLUMNS_MAX);
    lane->entities[number] = *entity;
    snprintf(lane->ids[number], sizeof lane->ids[number], "%s", entity->id);
    snprintf(lane->names[number], sizeof lane->names[number], "%s", entity->name);
    snprintf(lane->pcis[number], sizeof lane->pcis[number], "%s", entity->pci);
    if (number == lane->entity_count)
        lane->process_counts[lane->entity_count++] = -1;
    return number;
}

static inline void take_tick(void *state, int entity, int64_t time_ns, const int64_t *values,
                             const uint64_t *valid) {
    struct told *lane = state;
    size_t count = (size_t)lane->entities[entity].column_count;
    lane->ticks[entity]++;
    lane->time_ns = time_ns;
    memcpy(lane->values[entity], values, count * sizeof *values);
    memcpy(lane->valid[entity], valid, LAB_VALID_WORDS(count) * sizeof *valid);
}

static inline void take_event(void *state, int entity, enum lab_event_kind kind, int64_t number,
                              const char *text) {
    struct told *lane = state;
    assert_int_equal(entity, 0);
    lane->event_count++;
    lane->event_kind = kind;
    lane->event_number = number;
    snprintf(lane->event_text, sizeof lane->event_text, "%s", text);
}

static inline void take_gpu_processes(void *state, int entity, const struct lab_gpu_process *items,
                                      int count) {
    struct told *lane = state;
    assert_true(count <= PROCESSES_MAX);
    if (count)
        memcpy(lane->processes[entity], items, (size_t)count * sizeof *items);
    lane->process_counts[entity] = count;
}

static inline struct lab_probe_sink sink_of(int lane) {
    return (struct lab_probe_sink){.entity = take_entity,
                                   .tick = take_tick,
                                   .event = take_event,
                                   .gpu_processes = take_gpu_processes,
                                   .state = &told[lane]};
}

/* --- the probe --- */

static inline struct lab_probe_setup fixture_setup(void) {
    fixture_clock = lab_clock_manual(&fixture_ns);
    return (struct lab_probe_setup){.clock = &fixture_clock,
                                    .interval_ns = 100 * LAB_NS_PER_MS,
                                    .gpm_ns = 100 * LAB_NS_PER_MS,
                                    .root = ""};
}

/* The script from its beginning, and a probe that watches it. */
static inline void *open_with(const char *script, const struct lab_probe_setup *setup) {
    void *probe = NULL;
    fixture_ns += 3600 * LAB_NS_PER_S; /* a restart in an earlier test is long past */
    fixture_begun_ns = fixture_ns;
    fake.set_time(0);
    const char *wrong = fake.play(script);
    if (wrong)
        fail_msg("%s", wrong);
    memset(told, 0, sizeof told);
    ASSERT_OK(lab_probe_nvml.open(setup, &probe, err));
    for (int i = 0; i < lab_probe_nvml.lane_count(probe); i++) {
        struct lab_probe_sink sink = sink_of(i);
        lab_probe_nvml.describe(probe, i, &sink);
    }
    return probe;
}

static inline void *open_script(const char *script) {
    struct lab_probe_setup setup = fixture_setup();
    return open_with(script, &setup);
}

static inline int read_when(void *probe, int lane, enum lab_probe_when when, struct lab_err *err) {
    struct lab_probe_sink sink = sink_of(lane);
    return lab_probe_nvml.read(probe, lane, when, &sink, err);
}

static inline void read_ok(void *probe, int lane) {
    struct lab_err err = LAB_ERR_INIT;
    if (read_when(probe, lane, LAB_PROBE_TICK, &err))
        fail_msg("lane %d: %s", lane, err.text);
}

/* Fails with a text that holds the part. */
static inline void read_fails(void *probe, int lane, const char *part) {
    struct lab_err err = LAB_ERR_INIT;
    if (read_when(probe, lane, LAB_PROBE_TICK, &err) == 0)
        fail_msg("lane %d answers", lane);
    assert_contains(err.text, part);
}

/* In the metric's unit; NaN = not valid. */
static inline double value_of(int lane, int entity, enum lab_metric_id metric) {
    struct lab_tick tick = {.values = told[lane].values[entity], .valid = told[lane].valid[entity]};
    return lab_tick_value(&told[lane].entities[entity], &tick, metric, -1);
}

static inline double value(int lane, enum lab_metric_id metric) {
    return value_of(lane, 0, metric);
}

#define ASSERT_VALUE(lane, metric, expected)                                                       \
    do {                                                                                           \
        double found_value = value(lane, LAB_METRIC_##metric), expected_value = expected;          \
        if (!(fabs(found_value - expected_value) <= 1e-6 + 1e-6 * fabs(expected_value)))           \
            fail_msg("%s is %.9g, not %.9g", #metric, found_value, expected_value);                \
    } while (0)
#define ASSERT_UNKNOWN(lane, metric) assert_true(isnan(value(lane, LAB_METRIC_##metric)))
