/*
 * probe_sampler_take.c: the taker's side: what the lanes found, merged by time; when to wake it;
 * what the sampler notices by itself (lanes that hang, a wall clock that was set); and the figures
 * of its own work.
 */
#include "probe/probe_sampler.h"

#include <linux/futex.h>
#include <math.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WATCH_NS      LAB_NS_PER_S
#define CLOCK_JUMP_NS (LAB_NS_PER_S / 10)
/* at least, before a sleeper who can't be woken looks again */
#define SLICE_NS (LAB_NS_PER_S / 10)

/* --- waking --- */

static void wake_taker(struct lab_sampler *sampler) {
    if (sampler->event_fd >= 0)
        eventfd_write(sampler->event_fd, 1);
    sampler->news = false;
}

void sampler_wake_taker(struct lab_sampler *sampler) {
    LAB_AUTO_LOCK(&sampler->mutex);
    wake_taker(sampler);
}

static void end_round(struct lab_sampler *sampler) {
    if (sampler->news)
        wake_taker(sampler);
    for (int i = 0; i < sampler->lane_count; i++)
        sampler->lanes[i]->delivered = false;
    sampler->delivered = 0;
}

void sampler_reading(struct lab_sampler *sampler, struct sampler_lane *lane) {
    if (!lane->rests) /* only this thread ever changes it */
        return;
    LAB_AUTO_LOCK(&sampler->mutex);
    sampler->present++;
    lane->rests = false;
}

void sampler_delivered(struct lab_sampler *sampler, struct sampler_lane *lane, bool news,
                       bool rests) {
    LAB_AUTO_LOCK(&sampler->mutex);
    if (lane->delivered) /* before others did once: they are for the next round */
        end_round(sampler);
    lane->delivered = !rests;
    lane->rests = rests;
    sampler->present -= rests;
    sampler->delivered += !rests;
    sampler->news = sampler->news || news;
    if (sampler->delivered >= sampler->present)
        end_round(sampler);
}

void sampler_count_present(struct lab_sampler *sampler, int by) {
    LAB_AUTO_LOCK(&sampler->mutex);
    sampler->present += by;
}

int lab_sampler_fd(struct lab_sampler *sampler) {
    return sampler->event_fd;
}

static void ask_for_edge(struct sampler_lane *lane) {
    lane->edge = true;
    sampler_ring(&lane->wake);
}

void sampler_paid(struct lab_sampler *sampler) {
    if (atomic_fetch_sub(&sampler->owed, 1) != 1)
        return;
    for (int i = 0; i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        if (!lane->last)
            continue;
        pthread_mutex_lock(&lane->queue.mutex);
        ask_for_edge(lane);
        pthread_mutex_unlock(&lane->queue.mutex);
    }
}

/* Who is on the GPUs is asked for once they have told it: a list made at the same time would be
 * that of a second ago. */
void lab_sampler_edge(struct lab_sampler *sampler) {
    atomic_fetch_add(&sampler->owed, 1); /* ours, until all have been asked */
    for (int i = 0; i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        if (lane->last || !lane->wanted)
            continue;
        pthread_mutex_lock(&lane->queue.mutex);
        if (!lane->owes && lane->gap_since_ns < 0) {
            lane->owes = true;
            atomic_fetch_add(&sampler->owed, 1);
        }
        ask_for_edge(lane);
        pthread_mutex_unlock(&lane->queue.mutex);
    }
    sampler_paid(sampler);
}

void sampler_ring(sampler_bell *bell) {
    atomic_store(bell, 1);
    syscall(SYS_futex, bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void sampler_wait(struct lab_sampler *sampler, sampler_bell *bell, int64_t until_ns) {
    if (sampler->system_clock) {
        struct timespec until = {.tv_sec = until_ns / LAB_NS_PER_S,
                                 .tv_nsec = until_ns % LAB_NS_PER_S};
        if (!atomic_exchange(bell, 0)) {
            syscall(SYS_futex, bell, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY);
            atomic_exchange(bell, 0);
        }
        return;
    }
    int64_t slice_ns = sampler->interval_ns > SLICE_NS ? sampler->interval_ns : SLICE_NS;
    int64_t look_ns = lab_clock_now(sampler->clock) + slice_ns;
    sampler->clock->sleep_until(sampler->clock, until_ns < look_ns ? until_ns : look_ns);
}

/* --- watching --- */

static void check_wall_clock(struct lab_sampler *sampler, int64_t now_ns) {
    pthread_mutex_lock(&sampler->mutex);
    bool due = now_ns - sampler->wall_checked_ns >= LAB_NS_PER_S;
    int64_t jump_ns = 0;
    if (due) {
        int64_t offset_ns = sampler->wall_offset_ns();
        jump_ns = offset_ns - sampler->wall_last_ns;
        sampler->wall_checked_ns = now_ns;
        sampler->wall_last_ns = offset_ns;
    }
    pthread_mutex_unlock(&sampler->mutex);
    if (jump_ns < CLOCK_JUMP_NS && jump_ns > -CLOCK_JUMP_NS)
        return;
    struct lab_sample_event event = {.time_ns = now_ns,
                                     .entity = -1,
                                     .kind = LAB_EVENT_CLOCK,
                                     .number = jump_ns,
                                     .text = jump_ns > 0 ? "the wall clock was set forward"
                                                         : "the wall clock was set back"};
    pthread_mutex_lock(&sampler->queue.mutex);
    sample_queue_put_note(&sampler->queue, sample_queue_note_event(&event));
    pthread_mutex_unlock(&sampler->queue.mutex);
    sampler_wake_taker(sampler);
}

/* Looks for lanes that hang, and at the wall clock; any thread. */
static void watch(struct lab_sampler *sampler) {
    int64_t now_ns = lab_clock_now(sampler->clock);
    for (int i = 0; i < sampler->lane_count; i++)
        lane_watch(sampler->lanes[i], now_ns);
    check_wall_clock(sampler, now_ns);
}

static bool is_stopped(struct lab_sampler *sampler) {
    LAB_AUTO_LOCK(&sampler->mutex);
    return sampler->stop;
}

void sampler_watch_run(struct lab_sampler *sampler) {
    for (;;) {
        int64_t due_ns = lab_clock_now(sampler->clock) + WATCH_NS;
        while (!is_stopped(sampler) && lab_clock_now(sampler->clock) < due_ns)
            sampler_wait(sampler, &sampler->watch_wake, due_ns);
        if (is_stopped(sampler))
            return;
        watch(sampler);
    }
}

/* --- taking --- */

static void hand_tick(const struct sample_queue_tick *tick, const struct lab_sink_samples *sink) {
    struct lab_tick told = {.entity = tick->entity,
                            .time_ns = tick->time_ns,
                            .late_ns = tick->late_ns,
                            .cost_ns = tick->cost_ns,
                            .values = tick->data,
                            .valid = (const uint64_t *)(tick->data + tick->columns)};
    if (sink->tick)
        sink->tick(sink->state, &told);
}

static void hand_note(const struct sample_queue_note *note, const struct lab_sink_samples *sink) {
    switch (note->kind) {
    case OUTLET_ENTITY:
        if (sink->entity)
            sink->entity(sink->state, note->number, &note->entity);
        break;
    case OUTLET_EVENT:
        if (sink->event)
            sink->event(sink->state, &note->event);
        break;
    case OUTLET_PROCESSES:
        if (sink->processes)
            sink->processes(sink->state, &note->processes);
        break;
    }
}

/* The lane's next thing in time; INT64_MAX = it has none. */
static int64_t next_time_ns(struct sample_queue *queue) {
    struct sample_queue_tick *tick;
    struct sample_queue_note *note;
    sample_queue_next(queue, &tick, &note);
    return tick ? tick->time_ns : note ? note->time_ns : INT64_MAX;
}

static void hand_next(struct sample_queue *queue, const struct lab_sink_samples *sink) {
    struct sample_queue_tick *tick;
    struct sample_queue_note *note;
    sample_queue_next(queue, &tick, &note);
    if (tick) {
        hand_tick(tick, sink);
        sample_queue_ring_pop(&queue->taken.ring);
    } else if (note) {
        hand_note(note, sink);
        sample_queue_note_close(sample_queue_notes_pop(&queue->taken.notes));
    }
}

/* A list of processes speaks of GPUs, so they are told first, whatever lane they are from. */
static void hand_entities(struct sample_queue *queue, const struct lab_sink_samples *sink) {
    struct sample_queue_tick *tick;
    struct sample_queue_note *note;
    for (;;) {
        sample_queue_next(queue, &tick, &note);
        if (!note || note->kind != OUTLET_ENTITY)
            return;
        hand_next(queue, sink);
    }
}

void lab_sampler_take(struct lab_sampler *sampler, const struct lab_sink_samples *sink) {
    eventfd_t count;
    if (sampler->event_fd >= 0)
        eventfd_read(sampler->event_fd, &count);
    watch(sampler);
    sample_queue_take(&sampler->queue);
    for (int i = 0; i < sampler->lane_count; i++)
        sample_queue_take(&sampler->lanes[i]->queue);
    for (int i = 0; i < sampler->lane_count; i++)
        hand_entities(&sampler->lanes[i]->queue, sink);
    for (;;) {
        struct sample_queue *first = &sampler->queue;
        int64_t first_ns = next_time_ns(first);
        for (int i = 0; i < sampler->lane_count; i++) {
            int64_t time_ns = next_time_ns(&sampler->lanes[i]->queue);
            if (time_ns < first_ns) {
                first = &sampler->lanes[i]->queue;
                first_ns = time_ns;
            }
        }
        if (first_ns == INT64_MAX)
            return;
        hand_next(first, sink);
    }
}

/* --- figures --- */

#define BUCKETS_PER_OCTAVE 16

/* Microseconds, in shares of an octave: an error of 4 % at most. */
void lateness_add(struct lateness *lateness, int64_t late_ns) {
    double octaves = late_ns > 1000 ? log2((double)late_ns / 1000) : 0;
    int bucket = (int)(octaves * BUCKETS_PER_OCTAVE);
    bucket = bucket < LATENESS_BUCKETS ? bucket : LATENESS_BUCKETS - 1;
    lateness->buckets[bucket]++;
    lateness->count++;
    lateness->max_ns = late_ns > lateness->max_ns ? late_ns : lateness->max_ns;
}

static void merge_lateness(struct lateness *into, const struct lateness *from) {
    for (int i = 0; i < LATENESS_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
}

/* 0 = no reading */
static double lateness_quantile_ms(const struct lateness *lateness, double share) {
    int64_t before = 0;
    for (int i = 0; i < LATENESS_BUCKETS; i++) {
        before += lateness->buckets[i];
        if (before > 0 && (double)before >= share * (double)lateness->count) {
            double ms = 1e-3 * exp2((i + 0.5) / BUCKETS_PER_OCTAVE);
            double max_ms = (double)lateness->max_ns / 1e6;
            return ms < max_ms ? ms : max_ms;
        }
    }
    return 0;
}

void lab_sampler_stats(struct lab_sampler *sampler, struct lab_sampler_stats *ret_stats) {
    struct lab_sampler_stats stats = {0};
    LAB_AUTO_FREE struct lateness *late = lab_mem_alloc(1, sizeof *late);
    watch(sampler);
    for (int i = 0; i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        pthread_mutex_lock(&lane->queue.mutex);
        stats.ticks += lane->ticks;
        stats.missed += lane->missed;
        stats.dropped += lane->queue.dropped;
        stats.lanes += lane->wanted;
        stats.lanes_away += lane->gap_since_ns >= 0;
        merge_lateness(late, &lane->late);
        double cost_ms = lane->readings ? (double)lane->cost_ns / 1e6 / (double)lane->readings : 0;
        stats.cost_ms = cost_ms > stats.cost_ms ? cost_ms : stats.cost_ms;
        double share = lane->readings ? (double)lane->missed / (double)lane->readings : 0;
        double pace_ms = (double)sampler->interval_ns / 1e6 * (1 + share);
        if (lane->missed > 0 && pace_ms > stats.pace_ms) {
            stats.pace_ms = pace_ms;
            snprintf(stats.slowest, sizeof stats.slowest, "%s",
                     lab_probe_lane_name(lane->probe->probe, lane->probe->state, lane->index));
        }
        pthread_mutex_unlock(&lane->queue.mutex);
    }
    stats.late_p50_ms = lateness_quantile_ms(late, 0.5);
    stats.late_p99_ms = lateness_quantile_ms(late, 0.99);
    stats.late_max_ms = (double)late->max_ns / 1e6;
    *ret_stats = stats;
}

/* --- one sink for several --- */

static void fan_entity(void *state, int number, const struct lab_entity *entity) {
    const struct lab_sink_fan *fan = state;
    for (int i = 0; fan->sinks[i]; i++)
        if (fan->sinks[i]->entity)
            fan->sinks[i]->entity(fan->sinks[i]->state, number, entity);
}

static void fan_tick(void *state, const struct lab_tick *tick) {
    const struct lab_sink_fan *fan = state;
    for (int i = 0; fan->sinks[i]; i++)
        if (fan->sinks[i]->tick)
            fan->sinks[i]->tick(fan->sinks[i]->state, tick);
}

static void fan_event(void *state, const struct lab_sample_event *event) {
    const struct lab_sink_fan *fan = state;
    for (int i = 0; fan->sinks[i]; i++)
        if (fan->sinks[i]->event)
            fan->sinks[i]->event(fan->sinks[i]->state, event);
}

static void fan_processes(void *state, const struct lab_process_list *list) {
    const struct lab_sink_fan *fan = state;
    for (int i = 0; fan->sinks[i]; i++)
        if (fan->sinks[i]->processes)
            fan->sinks[i]->processes(fan->sinks[i]->state, list);
}

struct lab_sink_samples lab_sink_fan(struct lab_sink_fan *fan) {
    return (struct lab_sink_samples){fan_entity, fan_tick, fan_event, fan_processes, fan};
}
