/* monitor_fixture.h: a folder for each test, and a machine of four GPUs and a host, watched for
 * three ticks. */
#pragma once

#include "store/foreign/monitor_file.h"
#include "store/foreign/monitor_file_reader.h"

#include "base/clock.h"
#include "base/json.h"

#include "test.h"
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define assert_works(call)                                                                         \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static struct lab_err err;
static struct lab_str written; /* what an export handed on */

#define START_NS (50 * LAB_NS_PER_S)
/* 2025-01-15T10:30:00Z at the first tick */
#define OFFSET_NS (1736937000 * LAB_NS_PER_S - START_NS)

/* --- the machine --- */

static const struct lab_column gpu_columns[] = {
    {LAB_METRIC_UTILIZATION, -1},  {LAB_METRIC_MEMORY_USED, -1},   {LAB_METRIC_MEMORY_TOTAL, -1},
    {LAB_METRIC_POWER, -1},        {LAB_METRIC_TEMPERATURE, -1},   {LAB_METRIC_CLOCK_REASONS, -1},
    {LAB_METRIC_PCIE_RX_RATE, -1}, {LAB_METRIC_PCIE_TX_BYTES, -1}, {LAB_METRIC_ENERGY, -1},
};
#define GPU_COLUMNS 9

static const struct lab_column cpu_columns[] = {{LAB_METRIC_CPU_UTILIZATION, -1},
                                                {LAB_METRIC_CORE_UTILIZATION, 0},
                                                {LAB_METRIC_CORE_UTILIZATION, 1},
                                                {LAB_METRIC_CORE_UTILIZATION, 3}};
static const struct lab_column memory_columns[] = {
    {LAB_METRIC_HOST_TOTAL, -1}, {LAB_METRIC_HOST_USED, -1}, {LAB_METRIC_HOST_AVAILABLE, -1}};
static const struct lab_column numa_columns[] = {
    {LAB_METRIC_NODE_TOTAL, 0}, {LAB_METRIC_NODE_TOTAL, 2}, {LAB_METRIC_NODE_HIT, 0},
    {LAB_METRIC_NODE_HIT, 2},   {LAB_METRIC_NODE_MISS, 0},  {LAB_METRIC_NODE_MISS, 2}};

static inline struct lab_track
make_track(struct lab_entity entity, const struct lab_column *columns, int count, size_t ticks) {
    struct lab_track track = {.entity = entity, .count = ticks};
    track.entity.columns = columns;
    track.entity.column_count = count;
    track.times_ns = lab_arena_alloc(&test_arena, ticks + 1, sizeof *track.times_ns);
    track.values = lab_arena_alloc(&test_arena, (size_t)count, sizeof *track.values);
    track.valid = lab_arena_alloc(&test_arena, (size_t)count, sizeof *track.valid);
    for (int i = 0; i < count; i++) {
        track.values[i] = lab_arena_alloc(&test_arena, ticks + 1, sizeof **track.values);
        track.valid[i] = lab_arena_alloc(&test_arena, ticks + 1, 1);
    }
    for (size_t i = 0; i < ticks; i++)
        track.times_ns[i] = START_NS + (int64_t)i * 100 * LAB_NS_PER_MS;
    return track;
}

static inline void put(struct lab_track *track, size_t tick, int column, int64_t value) {
    track->values[column][tick] = value;
    track->valid[column][tick] = 1;
}

/* Memory of the four GPUs in MiB, as in the guide's example. */
static const int64_t four_used[] = {12800, 12750, 12825, 12780};

static inline struct lab_track make_gpu(int index, size_t ticks) {
    struct lab_entity entity = {.kind = LAB_ENTITY_GPU,
                                .index = index,
                                .id = lab_arena_printf(&test_arena, "GPU-%d", index),
                                .name = "NVIDIA A10G",
                                .pci = "0000:3b:00.0",
                                .node = -1,
                                .parent = -1};
    struct lab_track track = make_track(entity, gpu_columns, GPU_COLUMNS, ticks);
    for (size_t i = 0; i < ticks; i++) {
        track.times_ns[i] += index * LAB_NS_PER_MS; /* each has a thread of its own */
        put(&track, i, 0, 80 + index);
        put(&track, i, 1, four_used[index] * 1024);
        put(&track, i, 3, 150125 + index);
        put(&track, i, 4, 70 + index);
        put(&track, i, 5, 0x4 | 0x40);
        if (i % 10 == 0) { /* what is slow */
            put(&track, i, 2, 24576 * 1024);
            put(&track, i, 7, 1000000 + (int64_t)i * 5000);
            put(&track, i, 8, 5000000 + (int64_t)i * 15000);
        }
        if (i > 0)
            put(&track, i, 6, 2000 + (int64_t)i);
    }
    return track;
}

static inline struct lab_recording make_machine(size_t ticks) {
    struct lab_recording recording = {.path = "machine.db",
                                      .label = "machine",
                                      .maker = "gpulab 0.1.0",
                                      .interval_ns = 100 * LAB_NS_PER_MS};
    recording.tracks = lab_arena_alloc(&test_arena, 7, sizeof *recording.tracks);
    for (int i = 0; i < 4; i++)
        recording.tracks[i] = make_gpu(i, ticks);
    struct lab_entity host = {.name = "", .pci = "", .node = -1, .parent = -1};
    struct lab_track *cpu = &recording.tracks[4], *memory = cpu + 1, *numa = cpu + 2;
    host.kind = LAB_ENTITY_CPU;
    host.id = "cpu";
    *cpu = make_track(host, cpu_columns, 4, ticks);
    host.kind = LAB_ENTITY_MEMORY;
    host.id = "memory";
    *memory = make_track(host, memory_columns, 3, ticks);
    host.kind = LAB_ENTITY_NUMA;
    host.id = "numa";
    *numa = make_track(host, numa_columns, 6, ticks);
    for (size_t i = 0; i < ticks; i++) {
        static const int64_t cores[] = {2550, 125, 250, 390};
        for (int k = 0; k < 4; k++)
            put(cpu, i, k, cores[k]);
        put(memory, i, 0, INT64_C(64) << 20);
        put(memory, i, 1, INT64_C(16) << 20);
        put(memory, i, 2, INT64_C(40) << 20);
        for (int k = 0; k < 6; k++)
            put(numa, i, k, k < 2 ? INT64_C(32) << 20 : 256 * (k + 1));
    }
    recording.track_count = 7;
    recording.epochs = lab_arena_alloc(&test_arena, 1, sizeof *recording.epochs);
    recording.epochs[0] = (struct lab_recording_epoch){
        .from_ns = START_NS, .offset_ns = OFFSET_NS, .host = "node7", .boot_id = "b"};
    recording.epoch_count = 1;
    return recording;
}

/* --- files --- */

static inline int set_up(void **state) {
    (void)state;
    lab_str_init(&written);
    err = LAB_ERR_INIT;
    test_folder(); /* ahead of any fork */
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    lab_str_release(&written);
    return 0;
}

static inline struct lab_recording *read_bytes(const char *bytes, size_t length) {
    const char *path = test_path("read.json");
    struct lab_recording *recording = lab_arena_alloc(&test_arena, 1, sizeof *recording);
    test_write_bytes(path, bytes, length);
    int fd = open(path, O_RDONLY);
    assert_works(lab_monitor_read_text(fd, path, &test_arena, recording, &err));
    close(fd);
    return recording;
}

static inline struct lab_recording *read_text(const char *text) {
    return read_bytes(text, strlen(text));
}

/* --- exports --- */

static inline int take(void *state, const char *bytes, size_t length) {
    (void)state;
    lab_str_add_bytes(&written, bytes, length);
    return 0;
}

static inline void export_as(const struct lab_recording *recording, enum lab_monitor_format format,
                             int gpu) {
    LAB_AUTO(doc_sink, out);
    out.write = take;
    lab_str_clear(&written);
    assert_works(lab_monitor_export(recording, format, gpu, &out, &err));
}

static inline struct lab_value *parse(const char *text, size_t length) {
    struct lab_value *value = NULL;
    assert_works(lab_json_parse(text, length, "x", &test_arena, &value, &err));
    return value;
}

static inline double get_number(const struct lab_value *map, const char *key) {
    double number;
    const struct lab_value *value = lab_value_get(map, key);
    if (!value)
        fail_msg("no field %s", key);
    return lab_monitor_number(value, &number) ? number : (double)NAN;
}

static inline const char *get_text(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    if (!value || value->type != LAB_VALUE_STRING)
        fail_msg("no text %s", key);
    return value->string;
}

static inline bool is_null(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_NULL;
}

/* --- recordings --- */

static inline double track_value(const struct lab_track *track, enum lab_metric_id metric,
                                 int instance, size_t tick) {
    double *values = lab_arena_alloc(&test_arena, track->count + 1, sizeof *values);
    if (!lab_track_read(track, metric, instance, values))
        return NAN;
    assert_true(tick < track->count);
    return values[tick];
}

static inline bool is_missing(const struct lab_recording *recording, const char *part) {
    for (const char **text = recording->missing; text && *text; text++)
        if (strstr(*text, part))
            return true;
    return false;
}

static inline const struct lab_track *track_of(const struct lab_recording *recording,
                                               enum lab_entity_kind kind) {
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].entity.kind == kind)
            return &recording->tracks[i];
    fail_msg("no track of kind %d", kind);
    return NULL;
}
