/* scrape_fixture.h: a machine made by hand, told to a scrape as a sampler would tell it. */
#pragma once

#include "serve/serve.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "probe/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* Entities as they are numbered here. */
enum { GPU0, GPU1, MIG0, CPU, MEMORY, NUMA, ENTITY_COUNT };

static const struct lab_column gpu_columns[] = {
    {LAB_METRIC_UTILIZATION, -1},
    {LAB_METRIC_MEMORY_USED, -1},
    {LAB_METRIC_MEMORY_RESERVED, -1},
    {LAB_METRIC_MEMORY_TOTAL, -1},
    {LAB_METRIC_POWER, -1},
    {LAB_METRIC_TEMPERATURE, -1},
    {LAB_METRIC_SM_CLOCK, -1},
    {LAB_METRIC_CLOCK_REASONS, -1},
    {LAB_METRIC_SM_ACTIVE, -1},
    {LAB_METRIC_PCIE_TX_RATE, -1},
    {LAB_METRIC_ENERGY, -1},
    {LAB_METRIC_NVLINK_TX_BYTES, -1},
    {LAB_METRIC_NVLINK_RX_BYTES, -1},
    {LAB_METRIC_THROTTLED_POWER, -1},
    {LAB_METRIC_XIDS, -1},
    {LAB_METRIC_LAST_XID, -1},
};
static const struct lab_column mig_columns[] = {
    {LAB_METRIC_MEMORY_USED, -1},
    {LAB_METRIC_MEMORY_TOTAL, -1},
};
static const struct lab_column cpu_columns[] = {
    {LAB_METRIC_CPU_UTILIZATION, -1},
    {LAB_METRIC_LOAD, -1},
    {LAB_METRIC_CORE_UTILIZATION, 0},
    {LAB_METRIC_CORE_UTILIZATION, 1},
};
static const struct lab_column memory_columns[] = {{LAB_METRIC_HOST_USED, -1}};
static const struct lab_column numa_columns[] = {
    {LAB_METRIC_NODE_FREE, 0},
    {LAB_METRIC_NODE_FREE, 2},
    {LAB_METRIC_NODE_MISS, 2},
};

#define COLUMNS(columns) columns, (int)(sizeof(columns) / sizeof *(columns))

static const struct lab_entity fixture_entities[ENTITY_COUNT] = {
    [GPU0] = {LAB_ENTITY_GPU, 0, "GPU-5f0c0000-0000", "NVIDIA H200", "0000:3b:00.0", 0, -1, false,
              COLUMNS(gpu_columns)},
    [GPU1] = {LAB_ENTITY_GPU, 1, "GPU-5f0c0000-0001", "NVIDIA H200", "0000:af:00.0", 1, -1, false,
              COLUMNS(gpu_columns)},
    [MIG0] = {LAB_ENTITY_MIG, 7, "MIG-77", "NVIDIA H200 MIG 1g.18gb", "0000:af:00.0", 1, GPU1,
              false, COLUMNS(mig_columns)},
    [CPU] = {LAB_ENTITY_CPU, 0, "cpu", "AMD EPYC 7713", "", -1, -1, false, COLUMNS(cpu_columns)},
    [MEMORY] = {LAB_ENTITY_MEMORY, 0, "memory", "memory", "", -1, -1, false,
                COLUMNS(memory_columns)},
    [NUMA] = {LAB_ENTITY_NUMA, 0, "numa", "2 nodes", "", -1, -1, false, COLUMNS(numa_columns)},
};

struct fixture {
    struct lab_scrape *scrape;
    struct lab_sink_samples sink;
    struct lab_str text;
    int64_t now_ns;
};

static inline void fixture_open(struct fixture *f) {
    struct lab_scrape_setup setup = {"node7", "580.65.06", "0.3.0", LAB_NS_PER_S};
    *f = (struct fixture){.scrape = lab_scrape_open(&setup), .now_ns = 100 * LAB_NS_PER_S};
    f->sink = lab_scrape_sink(f->scrape);
    lab_str_init(&f->text);
}

static inline void fixture_close(struct fixture *f) {
    lab_scrape_close(f->scrape);
    lab_str_release(&f->text);
}

static inline void fixture_tell(struct fixture *f, int number) {
    f->sink.entity(f->sink.state, number, &fixture_entities[number]);
}

/* A second later: a tick of so many values; NONE where there is none. */
#define NONE INT64_MIN
static inline void fixture_tick(struct fixture *f, int number, const int64_t *values) {
    uint64_t valid[LAB_VALID_WORDS(64)] = {0};
    for (int i = 0; i < fixture_entities[number].column_count; i++)
        if (values[i] != NONE)
            lab_valid_set(valid, i);
    f->now_ns += LAB_NS_PER_S;
    struct lab_tick tick = {number, f->now_ns, 0, 1000, values, valid};
    f->sink.tick(f->sink.state, &tick);
}
#define TICK(f, number, ...) fixture_tick(f, number, (const int64_t[]){__VA_ARGS__})

static inline void fixture_gap(struct fixture *f, int number) {
    struct lab_sample_event event = {f->now_ns, number, LAB_EVENT_GAP, 0, "GPU is lost"};
    f->sink.event(f->sink.state, &event);
}

static inline const char *fixture_text(struct fixture *f) {
    lab_str_clear(&f->text);
    lab_scrape_write(f->scrape, &f->text);
    return f->text.text;
}

/* The value of the line that begins so, or NaN if there is none. */
static inline double fixture_value(struct fixture *f, const char *series) {
    char start[512];
    snprintf(start, sizeof start, "\n%s ", series);
    const char *line = strstr(fixture_text(f), start);
    return line ? strtod(line + strlen(start), NULL) : NAN;
}

static inline void assert_series(struct fixture *f, const char *series, double value) {
    double found = fixture_value(f, series);
    if (!(fabs(found - value) < 1e-12))
        fail_msg("%s is %g instead of %g in:\n%s", series, found, value, f->text.text);
}

static inline void assert_absent(struct fixture *f, const char *part) {
    if (strstr(fixture_text(f), part))
        fail_msg("%s is in:\n%s", part, f->text.text);
}
