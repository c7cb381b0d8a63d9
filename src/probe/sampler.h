/*
 * sampler.h: reads all probes at a steady pace and hands on what they found, in order. It belongs
 * to whoever records or shows: the runner, `record`, `top`, `exporter`.
 *
 * Each lane of each probe has a thread. Its ticks are due at start + k · interval, whatever the
 * readings take; one that takes longer skips the ticks that it missed and says so
 * (LAB_EVENT_MISSED). A lane that does not come back within `patience_ns` is a gap from then on
 * (LAB_EVENT_GAP), told by the sampler, not by the lane; when it comes back: LAB_EVENT_BACK. A lane
 * that fails is asked again after 0.1 s, then 0.2 s, up to 5 s. The caller never waits for a
 * driver.
 *
 * The clock is asked by several threads at once. On another than the system's, sleepers can't be
 * woken: edges and the end are noticed within 0.1 s or an interval of its time, whichever is
 * longer.
 */
#pragma once

#include "probe/probe.h"

struct lab_sampler;

struct lab_sampler_config {
    struct lab_probe_setup setup;
    const char *const *probes; /* names, NULL-terminated; NULL = all but `replay` */
    int64_t patience_ns;       /* 0 = 20 intervals, at least 2 s and at most 5 s */
    int64_t open_patience_ns;  /* with a driver that takes long to start; 0 = 5 s */
    const int *gpus;           /* indices as `cuda:N` counts; others are left alone; NULL = all */
    int gpu_count;
    const struct lab_cpus *cpus; /* where its threads run; NULL = anywhere */
};

struct lab_sampler_stats {
    int64_t ticks, missed, dropped; /* dropped: nobody took them in time */
    int lanes, lanes_away;          /* away: in a gap now */
    double late_p50_ms, late_p99_ms, late_max_ms;
    double cost_ms; /* thread time of a reading, mean, of the dearest lane */
    double
        pace_ms; /* between two readings, mean, of the lane that missed most; 0 = none missed any */
    char slowest[64]; /* that lane: "GPU 0 (0000:3b:00.0)" */
};

/*
 * Opens the probes that work here and starts. A probe that doesn't is no failure:
 * lab_sampler_refusal says why. No probe at all is one, and so is an unknown GPU (LAB_ERR_USER,
 * names those that exist).
 */
int lab_sampler_open(const struct lab_sampler_config *config, struct lab_sampler **ret_sampler,
                     struct lab_err *err);
void lab_sampler_close(struct lab_sampler *sampler); /* accepts NULL; at most a moment */

/* Why a probe isn't at work; NULL = it is. Lives as long as the sampler. */
const char *lab_sampler_refusal(const struct lab_sampler *sampler, const char *probe);

/*
 * Whether a probe isn't at work because its driver's start still takes, or failed in a way that may
 * pass: its entities are told when it is. LAB_EVENT_GAP and LAB_EVENT_BACK of entity -1 tell of the
 * time until then. A driver that failed is asked again after 0.25 s, then 0.5 s, up to 30 s.
 */
bool lab_sampler_awaits(struct lab_sampler *sampler, const char *probe);
bool lab_sampler_retries(struct lab_sampler *sampler, const char *probe); /* it failed */

/* Asks every lane for all it can read, as soon as it can. */
void lab_sampler_edge(struct lab_sampler *sampler);

/* Hands on what was found since the last call; from one thread at a time. Never waits. */
void lab_sampler_take(struct lab_sampler *sampler, const struct lab_sink_samples *sink);

/*
 * A descriptor that is readable while there is something to take (for poll), or -1. Woken at most
 * once per interval and lane.
 */
int lab_sampler_fd(struct lab_sampler *sampler);

void lab_sampler_stats(struct lab_sampler *sampler, struct lab_sampler_stats *ret_stats);

/* The same sink for several. `sinks` must outlive it. */
struct lab_sink_fan {
    const struct lab_sink_samples *const *sinks; /* NULL-terminated */
};
struct lab_sink_samples lab_sink_fan(struct lab_sink_fan *fan);
