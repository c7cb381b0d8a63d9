/*
 * sampler_fixture.h: a clock that the test moves, probes whose lanes do as they are told, and a
 * sink that keeps what it was given as lines of text.
 */
#pragma once

#include "base/str.h"
#include "probe/probe_sampler.h"

#include <unistd.h>

#include "test.h"

#define MS LAB_NS_PER_MS

/* --- a clock: whoever sleeps on it stays asleep until the test says that it is time --- */

struct sleeper {
    int64_t until_ns;
    bool asleep;
    struct sleeper *next;
};

struct stepped {
    struct lab_clock clock;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int64_t now_ns;
    struct sleeper *first;
    int sleepers;
    bool let_go; /* nobody sleeps any more */
};

static inline int64_t stepped_now(const struct lab_clock *clock) {
    struct stepped *stepped = clock->state;
    pthread_mutex_lock(&stepped->mutex);
    int64_t now_ns = stepped->now_ns;
    pthread_mutex_unlock(&stepped->mutex);
    return now_ns;
}

static inline void stepped_sleep_until(const struct lab_clock *clock, int64_t time_ns) {
    struct stepped *stepped = clock->state;
    pthread_mutex_lock(&stepped->mutex);
    if (time_ns > stepped->now_ns && !stepped->let_go) {
        struct sleeper me = {time_ns, true, stepped->first};
        stepped->first = &me;
        stepped->sleepers++;
        pthread_cond_broadcast(&stepped->changed);
        while (me.asleep && !stepped->let_go)
            pthread_cond_wait(&stepped->changed, &stepped->mutex);
    }
    bool let_go = stepped->let_go;
    pthread_mutex_unlock(&stepped->mutex);
    if (let_go)
        usleep(100);
}

static inline void stepped_init(struct stepped *stepped) {
    *stepped = (struct stepped){.clock = {stepped_now, stepped_sleep_until, stepped},
                                .now_ns = 1000 * LAB_NS_PER_S};
    pthread_mutex_init(&stepped->mutex, NULL);
    pthread_cond_init(&stepped->changed, NULL);
}

/* Waits until that many threads sleep, so all others have done what they had to. */
static inline void stepped_settle(struct stepped *stepped, int sleepers) {
    pthread_mutex_lock(&stepped->mutex);
    while (stepped->sleepers < sleepers)
        pthread_cond_wait(&stepped->changed, &stepped->mutex);
    pthread_mutex_unlock(&stepped->mutex);
}

/* Moves on at once, when that many threads sleep, and waits until they do again. */
static inline void stepped_jump(struct stepped *stepped, int64_t duration_ns, int sleepers) {
    stepped_settle(stepped, sleepers);
    pthread_mutex_lock(&stepped->mutex);
    stepped->now_ns += duration_ns;
    for (struct sleeper **at = &stepped->first; *at;) {
        struct sleeper *sleeper = *at;
        if (sleeper->until_ns > stepped->now_ns) {
            at = &sleeper->next;
            continue;
        }
        *at = sleeper->next;
        sleeper->asleep = false;
        stepped->sleepers--;
    }
    pthread_cond_broadcast(&stepped->changed);
    pthread_mutex_unlock(&stepped->mutex);
    stepped_settle(stepped, sleepers);
}

/* Likewise in steps of 10 ms. */
static inline void stepped_pass(struct stepped *stepped, int64_t duration_ns, int sleepers) {
    for (; duration_ns > 0; duration_ns -= 10 * MS)
        stepped_jump(stepped, 10 * MS, sleepers);
    stepped_settle(stepped, sleepers);
}

static inline void stepped_let_go(struct stepped *stepped) {
    pthread_mutex_lock(&stepped->mutex);
    stepped->let_go = true;
    pthread_cond_broadcast(&stepped->changed);
    pthread_mutex_unlock(&stepped->mutex);
}

/* --- lanes: GPUs with one column, `utilization`, that counts their readings --- */

#define FAKE_LANES 4

struct fake_lane {
    struct lab_entity entity;
    int readings, edges;
    bool fails, hangs, hanging;
    int64_t takes_ns; /* of the clock's time, by each reading */
    int64_t rests_ns; /* until the next one is due */
    struct lab_gpu_process processes[2];
    int process_count;
};

/* What the running test's probes do; under the mutex. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct fake_lane lanes[FAKE_LANES];
    int lane_count;
    const struct lab_clock *clock;
    struct lab_gpu_process_table *table;
    int opened, closed;
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const struct lab_column fake_columns[] = {{LAB_METRIC_UTILIZATION, -1}};
static const char *const fake_ids[FAKE_LANES] = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};

static inline int fake_open(const struct lab_probe_setup *setup, void **ret_state,
                            struct lab_err *err) {
    (void)err;
    pthread_mutex_lock(&fake.mutex); /* others may read already */
    fake.clock = setup->clock;
    fake.table = setup->table;
    fake.opened++;
    pthread_mutex_unlock(&fake.mutex);
    *ret_state = &fake;
    return 0;
}

static inline void fake_close(void *state) {
    (void)state;
    pthread_mutex_lock(&fake.mutex);
    fake.closed++;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
}

static inline int fake_lane_count(void *state) {
    (void)state;
    return fake.lane_count;
}

static inline const char *fake_lane_name(void *state, int lane) {
    (void)state;
    return fake_ids[lane];
}

static inline void fake_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    (void)state;
    sink->entity(sink->state, &fake.lanes[lane].entity);
}

static inline int fake_read(void *state, int lane, enum lab_probe_when when,
                            const struct lab_probe_sink *sink, struct lab_err *err) {
    (void)state;
    struct fake_lane *me = &fake.lanes[lane];
    int64_t time_ns = lab_clock_now(fake.clock);
    pthread_mutex_lock(&fake.mutex);
    int64_t value = me->readings++;
    me->edges += when == LAB_PROBE_EDGE;
    me->hanging = me->hangs;
    pthread_cond_broadcast(&fake.changed);
    while (me->hangs)
        pthread_cond_wait(&fake.changed, &fake.mutex);
    me->hanging = false;
    bool fails = me->fails;
    int64_t takes_ns = me->takes_ns;
    int count = me->process_count;
    struct lab_gpu_process processes[2] = {me->processes[0], me->processes[1]};
    pthread_mutex_unlock(&fake.mutex);
    if (takes_ns > 0)
        lab_clock_sleep(fake.clock, takes_ns);
    if (fails)
        return lab_err_set(err, LAB_ERR_SYSTEM, "GPU is lost");
    uint64_t valid = 1;
    sink->tick(sink->state, 0, time_ns, &value, &valid);
    sink->gpu_processes(sink->state, 0, processes, count);
    return 0;
}

static inline int64_t fake_due(void *state, int lane) {
    (void)state;
    return lab_clock_now(fake.clock) + fake.lanes[lane].rests_ns;
}

static const struct lab_probe fake_probe = {
    .name = "fake",
    .summary = "GPUs that do as they are told",
    .without = "nothing",
    .open = fake_open,
    .close = fake_close,
    .lane_count = fake_lane_count,
    .lane_name = fake_lane_name,
    .describe = fake_describe,
    .read = fake_read,
    .due = fake_due,
};

static const struct lab_probe *const fake_probes[] = {&fake_probe, NULL};

static int64_t fake_wall_offset; /* atomically: the test sets the wall clock while it is read */
static inline int64_t fake_wall_offset_ns(void) {
    return __atomic_load_n(&fake_wall_offset, __ATOMIC_SEQ_CST);
}

static inline void fake_reset(int lanes) {
    fake.lane_count = lanes;
    fake.opened = fake.closed = 0;
    for (int i = 0; i < lanes; i++)
        fake.lanes[i] = (struct fake_lane){.entity = {.kind = LAB_ENTITY_GPU,
                                                      .index = i,
                                                      .id = fake_ids[i],
                                                      .name = "Fake",
                                                      .pci = "",
                                                      .node = i % 2,
                                                      .parent = -1,
                                                      .columns = fake_columns,
                                                      .column_count = 1}};
}

#define FAKE_SET(lane, field, value)                                                               \
    do {                                                                                           \
        pthread_mutex_lock(&fake.mutex);                                                           \
        fake.lanes[lane].field = (value);                                                          \
        pthread_cond_broadcast(&fake.changed);                                                     \
        pthread_mutex_unlock(&fake.mutex);                                                         \
    } while (0)

/* Waits until the condition on the lanes holds. */
#define FAKE_WAIT(condition)                                                                       \
    do {                                                                                           \
        pthread_mutex_lock(&fake.mutex);                                                           \
        while (!(condition))                                                                       \
            pthread_cond_wait(&fake.changed, &fake.mutex);                                         \
        pthread_mutex_unlock(&fake.mutex);                                                         \
    } while (0)

/* --- a sink: "0@20=2" is GPU 0's third reading, 20 ms after the start --- */

struct told {
    struct lab_str entities, ticks, events, processes;
    int64_t start_ns, late_ns, cost_ns;
    int tick_count;
};

static inline void told_entity(void *state, int number, const struct lab_entity *entity) {
    struct told *told = state;
    lab_str_printf(&told->entities, "%d:%s/%d ", number, entity->id, entity->parent);
}

static inline void told_tick(void *state, const struct lab_tick *tick) {
    struct told *told = state;
    lab_str_printf(&told->ticks, "%d@%lld=%lld ", tick->entity,
                   (long long)((tick->time_ns - told->start_ns) / MS),
                   (long long)(lab_valid_get(tick->valid, 0) ? tick->values[0] : -1));
    told->late_ns += tick->late_ns;
    told->cost_ns += tick->cost_ns;
    told->tick_count++;
}

static inline void told_event(void *state, const struct lab_sample_event *event) {
    struct told *told = state;
    lab_str_printf(&told->events, "%d@%lld %s", event->entity,
                   (long long)((event->time_ns - told->start_ns) / MS),
                   lab_event_kind_name(event->kind));
    if (event->number)
        lab_str_printf(&told->events, " %lld", (long long)event->number);
    lab_str_printf(&told->events, "%s%s; ", *event->text ? " " : "", event->text);
}

static inline void told_processes(void *state, const struct lab_process_list *list) {
    struct told *told = state;
    for (int i = 0; i < list->count; i++) {
        lab_str_printf(&told->processes, "%d:", list->items[i].pid);
        for (int j = 0; j < list->items[i].gpu_count; j++)
            lab_str_printf(&told->processes, "%d,", list->items[i].gpus[j].entity);
        lab_str_add(&told->processes, " ");
    }
    lab_str_add(&told->processes, "; ");
}

static inline void told_init(struct told *told, int64_t start_ns) {
    *told = (struct told){.start_ns = start_ns};
    lab_str_init(&told->entities);
    lab_str_init(&told->ticks);
    lab_str_init(&told->events);
    lab_str_init(&told->processes);
}

static inline void told_clear(struct told *told) {
    lab_str_clear(&told->entities);
    lab_str_clear(&told->ticks);
    lab_str_clear(&told->events);
    lab_str_clear(&told->processes);
    told->tick_count = 0;
    told->late_ns = told->cost_ns = 0;
}

static inline void told_release(struct told *told) {
    lab_str_release(&told->entities);
    lab_str_release(&told->ticks);
    lab_str_release(&told->events);
    lab_str_release(&told->processes);
}

static inline struct lab_sink_samples told_sink(struct told *told) {
    return (struct lab_sink_samples){told_entity, told_tick, told_event, told_processes, told};
}

/* --- a sampler over the fake lanes and the stepped clock, ticking each 100 ms --- */

struct rig {
    struct stepped clock;
    struct lab_sampler_config config;
    struct lab_sampler *sampler;
    struct told told;
    int asleep; /* threads that are, once everything is done: the lanes' and the watch */
};

static inline void rig_open(struct rig *rig, int lanes) {
    stepped_init(&rig->clock);
    fake_reset(lanes);
    __atomic_store_n(&fake_wall_offset, 0, __ATOMIC_SEQ_CST);
    told_init(&rig->told, rig->clock.now_ns);
    rig->config =
        (struct lab_sampler_config){.setup = {.clock = &rig->clock.clock, .interval_ns = 100 * MS}};
    rig->asleep = lanes + 1;
    rig->sampler = NULL;
}

static inline void rig_start(struct rig *rig) {
    struct sampler_parts parts = {fake_probes, fake_wall_offset_ns};
    ASSERT_OK(lab_sampler_open_parts(&parts, &rig->config, &rig->sampler, err));
    stepped_settle(&rig->clock, rig->asleep);
}

static inline void rig_pass(struct rig *rig, int64_t ms) {
    stepped_pass(&rig->clock, ms * MS, rig->asleep);
}

static inline void rig_take(struct rig *rig) {
    struct lab_sink_samples sink = told_sink(&rig->told);
    told_clear(&rig->told);
    lab_sampler_take(rig->sampler, &sink);
}

static inline void rig_close(struct rig *rig) {
    stepped_let_go(&rig->clock);
    lab_sampler_close(rig->sampler);
    told_release(&rig->told);
}
