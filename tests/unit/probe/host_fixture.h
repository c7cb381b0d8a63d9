/*
 * host_fixture.h: a folder that stands for / with the files of /proc and /sys that a test writes,
 * and a probe that is opened on it and read without a sampler.
 */
#pragma once

#include "base/str.h"
#include "probe/probe_gpu_process_table.h"

#include <ftw.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

struct host {
    int64_t now_ns;
    struct lab_clock clock;
    struct lab_probe_setup setup;
    const struct lab_probe *probe;
    void *state;
    /* what was told; the last of each */
    struct lab_entity entities[8];
    int entity_count;
    int ticks;
    int64_t values[LAB_COLUMNS_MAX], time_ns;
    uint64_t valid[LAB_VALID_WORDS(LAB_COLUMNS_MAX)];
    struct lab_arena arena;
    struct lab_process_list list;
    int lists;
    struct lab_str events;
};

static inline void host_init(struct host *host) {
    *host = (struct host){.now_ns = 1000 * LAB_NS_PER_S};
    host->clock = lab_clock_manual(&host->now_ns);
    host->setup = (struct lab_probe_setup){
        .clock = &host->clock, .interval_ns = LAB_NS_PER_S / 10, .root = test_folder()};
    lab_str_init(&host->events);
}

/* --- the probe --- */

static inline int host_entity(void *state, const struct lab_entity *entity) {
    struct host *host = state;
    host->entities[host->entity_count] = *entity;
    return host->entity_count++;
}

static inline void host_tick(void *state, int entity, int64_t time_ns, const int64_t *values,
                             const uint64_t *valid) {
    struct host *host = state;
    int columns = host->entities[entity].column_count;
    memcpy(host->values, values, (size_t)columns * sizeof *values);
    memcpy(host->valid, valid, (size_t)LAB_VALID_WORDS(columns) * sizeof *valid);
    host->time_ns = time_ns;
    host->ticks++;
}

static inline void host_event(void *state, int entity, enum lab_event_kind kind, int64_t number,
                              const char *text) {
    struct host *host = state;
    lab_str_printf(&host->events, "%d %s %lld %s; ", entity, lab_event_kind_name(kind),
                   (long long)number, text);
}

static inline void host_gpu_processes(void *state, int entity, const struct lab_gpu_process *items,
                                      int count) {
    (void)state, (void)entity, (void)items, (void)count;
}

static inline void host_processes(void *state, const struct lab_process_list *list) {
    struct host *host = state;
    lab_arena_release(&host->arena);
    host->list = *list;
    host->list.items = lab_arena_alloc(&host->arena, (size_t)list->count, sizeof *host->list.items);
    for (int i = 0; i < list->count; i++) {
        struct lab_process_sample *item = &host->list.items[i];
        *item = list->items[i];
        item->user = lab_arena_strdup(&host->arena, item->user);
        item->name = lab_arena_strdup(&host->arena, item->name);
        item->command = lab_arena_strdup(&host->arena, item->command);
        item->container = lab_arena_strdup(&host->arena, item->container);
        item->advice = lab_arena_strdup(&host->arena, item->advice);
        size_t gpus = (size_t)item->gpu_count * sizeof *item->gpus;
        void *copy = lab_arena_alloc(&host->arena, gpus, 1);
        item->gpus = gpus ? memcpy(copy, item->gpus, gpus) : copy;
        size_t nodes = (size_t)item->node_count * sizeof *item->node_bytes;
        copy = lab_arena_alloc(&host->arena, nodes, 1);
        if (item->node_bytes)
            item->node_bytes = memcpy(copy, item->node_bytes, nodes);
    }
    host->lists++;
}

static inline struct lab_probe_sink host_sink(struct host *host) {
    return (struct lab_probe_sink){host_entity,        host_tick,      host_event,
                                   host_gpu_processes, host_processes, host};
}

static inline void host_open(struct host *host, const struct lab_probe *probe) {
    struct lab_err err = LAB_ERR_INIT;
    host->probe = probe;
    if (probe->open(&host->setup, &host->state, &err) < 0)
        fail_msg("%s: %s", probe->name, err.text);
    struct lab_probe_sink sink = host_sink(host);
    assert_non_null(probe->only_lane);
    if (probe->describe)
        probe->describe(host->state, 0, &sink);
}

/* Reads after that many milliseconds. */
static inline int host_read(struct host *host, int64_t after_ms, enum lab_probe_when when) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_probe_sink sink = host_sink(host);
    host->now_ns += after_ms * LAB_NS_PER_MS;
    return host->probe->read(host->state, 0, when, &sink, &err);
}

/* The last tick's value in the metric's unit. */
static inline double host_value(struct host *host, enum lab_metric_id metric, int instance) {
    struct lab_tick tick = {.values = host->values, .valid = host->valid};
    return lab_tick_value(&host->entities[0], &tick, metric, instance);
}

#define assert_close(value, expected) assert_near(value, expected, 1e-6)

static inline void host_release(struct host *host) {
    if (host->state)
        host->probe->close(host->state);
    lab_arena_release(&host->arena);
    lab_str_release(&host->events);
}
