/*
 * recording_fixture.h: a machine of a GPU, a MIG instance on it and the CPUs, whose every value can
 * be told from its time, so that a test sees at once what came back and what didn't. On top of
 * store_fixture.h.
 */
#pragma once

#include "store_fixture.h"

#include "base/clock.h"
#include "store/recording/recording_internal.h"

/* Sanitizers take ten times as long: tests that repeat themselves do so less often there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { GPU, MIG, CPUS, ENTITIES };

#define TICK_NS (100 * LAB_NS_PER_MS)

static const struct lab_column gpu_columns[] = {
    {LAB_METRIC_UTILIZATION, -1}, {LAB_METRIC_POWER, -1}, {LAB_METRIC_MEMORY_USED, -1},
    {LAB_METRIC_ENERGY, -1},      {LAB_METRIC_FAN, -1},
};
static const struct lab_column mig_columns[] = {{LAB_METRIC_MEMORY_USED, -1}};
static const struct lab_column cpu_columns[] = {
    {LAB_METRIC_CPU_UTILIZATION, -1},
    {LAB_METRIC_CORE_UTILIZATION, 0},
    {LAB_METRIC_CORE_UTILIZATION, 7},
};

static const struct lab_entity machine[ENTITIES] = {
    [GPU] = {.kind = LAB_ENTITY_GPU,
             .index = 3,
             .id = "GPU-5f0c",
             .name = "NVIDIA H200",
             .pci = "0000:3b:00.0",
             .node = 1,
             .parent = -1,
             .columns = gpu_columns,
             .column_count = 5},
    [MIG] = {.kind = LAB_ENTITY_MIG,
             .index = 1,
             .id = "MIG-77",
             .name = "1g.18gb",
             .pci = "",
             .node = 1,
             .parent = GPU,
             .simulated = true,
             .columns = mig_columns,
             .column_count = 1},
    [CPUS] = {.kind = LAB_ENTITY_CPU,
              .id = "cpu",
              .name = "größer",
              .pci = "",
              .node = -1,
              .parent = -1,
              .columns = cpu_columns,
              .column_count = 3},
};

static inline void tell(const struct lab_sink_samples *sink) {
    for (int i = 0; i < ENTITIES; i++)
        sink->entity(sink->state, i, &machine[i]);
}

/* Tick k of an entity is at k tenths of a second and some: what it holds follows from k. */
static inline int64_t tick_time(int64_t k) {
    return k * TICK_NS + (k * 7919) % 40000;
}

/* The energy is read each second, the fan never. */
static inline bool tick_has(int column, int64_t k) {
    return column == 3 ? k % 10 == 0 : column != 4;
}

static inline int64_t tick_value(int entity, int column, int64_t k) {
    static const int64_t bases[] = {40, 350000, 80000000, 123456789, 0};
    int64_t noise = (k * 2654435761 + entity * 97 + column * 131) % 64;
    return column == 3 ? bases[3] + k * 30000 : bases[column] + noise * (column + 1);
}

static inline void send_tick(const struct lab_sink_samples *sink, int entity, int64_t k) {
    int64_t values[8] = {0};
    uint64_t valid = 0;
    for (int i = 0; i < machine[entity].column_count; i++) {
        values[i] = tick_value(entity, i, k);
        if (tick_has(i, k))
            lab_valid_set(&valid, i);
    }
    const struct lab_tick tick = {
        .entity = entity, .time_ns = tick_time(k), .values = values, .valid = &valid};
    sink->tick(sink->state, &tick);
}

static inline void send_ticks(const struct lab_sink_samples *sink, int entity, int64_t from,
                              int64_t until) {
    for (int64_t k = from; k < until; k++)
        send_tick(sink, entity, k);
}

/* The track holds ticks from, from + 1 … until - 1 and nothing else. */
static inline void check_ticks(const struct lab_track *track, int entity, int64_t from,
                               int64_t until) {
    assert_int_equal(track->count, until - from);
    assert_int_equal(track->entity.column_count, machine[entity].column_count);
    for (size_t i = 0; i < track->count; i++) {
        int64_t k = from + (int64_t)i;
        assert_true(track->times_ns[i] == tick_time(k));
        for (int c = 0; c < track->entity.column_count; c++) {
            if (!track->values[c])
                continue;
            assert_int_equal(track->valid[c][i], tick_has(c, k));
            if (tick_has(c, k))
                assert_true(track->values[c][i] == tick_value(entity, c, k));
        }
    }
}

/* --- writing and reading --- */

static int64_t now_ns;

static inline struct lab_recorder *record(const char *where) {
    static struct lab_clock clock;
    clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {
        .interval_ns = TICK_NS, .note = "sleep 5", .clock = &clock};
    struct lab_recorder *recorder = NULL;
    now_ns = 0;
    assert_works(lab_recorder_create(where, &setup, &recorder, &err));
    return recorder;
}

static inline struct lab_recording read_back(const char *where,
                                             const struct lab_recording_query *query) {
    struct lab_recording recording = {0};
    assert_works(lab_recording_read(where, query, &arena, &recording, &err));
    return recording;
}

static inline const struct lab_track *track_of(const struct lab_recording *recording, int entity) {
    for (int i = 0; i < recording->track_count; i++)
        if (strcmp(recording->tracks[i].entity.id, machine[entity].id) == 0)
            return &recording->tracks[i];
    fail_msg("no track of %s", machine[entity].id);
    return NULL;
}

#define assert_all_there(recording) assert_null((recording).missing)

/* All that was written, of a recording that wasn't closed. */
#define assert_only_open(recording)                                                                \
    do {                                                                                           \
        assert_non_null((recording).missing);                                                      \
        assert_non_null(strstr((recording).missing[0], "the recording was not closed"));           \
        assert_null((recording).missing[1]);                                                       \
    } while (0)
