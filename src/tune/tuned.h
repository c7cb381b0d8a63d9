/*
 * tuned.h: between the tuner and the cache: under which key a tuning is kept, and what a run that
 * asks for config=tuned gets. The runner and `bench` ask; a worker gets what they found and never
 * looks.
 */
#pragma once

#include "device/tunable.h"
#include "store/tuning/tuning.h"
#include "tune/tune.h"

struct lab_tuned_key {
    const char *text; /* the cache's key: all that a tuning holds for, on one line */
    const char *kernel, *shape, *device;
    const struct lab_tunable *tunable;
    struct lab_launch launch;
};

/*
 * Of a workload's checked config on a device that needn't be open; in the arena. `text` is NULL
 * where nothing there can be tuned.
 */
int lab_tuned_key(const struct lab_workload *workload, const void *config,
                  const struct lab_tunable_place *place, struct lab_arena *arena,
                  struct lab_tuned_key *ret_key, struct lab_err *err);

struct lab_tuned {
    const char
        *config; /* what it resolves to: a configuration or "default"; NULL = nothing to resolve */
    /* launches of different shapes that could be tuned: 0 or 1, unless it does several */
    int wanted;
    int found;                     /* of them were */
    bool unread;                   /* unknown: the cache exists, but can't be opened */
    struct lab_tuning_entry entry; /* of the one launch */
    const char *advice; /* the command that may find a faster one where some weren't; NULL */
    const char *note;   /* why a tuned one isn't used though there is one, and such; NULL */
};

/*
 * What config=tuned means here; other configs and workloads resolve to nothing. Never fails because
 * of the cache: what can't be read isn't there, and the note says so. `path` NULL = the user's own
 * cache.
 */
void lab_tuned_find(const struct lab_workload *workload, const void *config,
                    const struct lab_tunable_place *place, const char *path,
                    struct lab_arena *arena, struct lab_tuned *ret_tuned);

/* The workload's options with that in place of "tuned": a copy, or `options` itself. */
struct lab_value *lab_tuned_freeze(struct lab_value *options, const struct lab_tuned *tuned,
                                   struct lab_arena *arena);

/* The same for `bench`: the workload's config as it will be run, and what there is to say of it. */
struct lab_tuned_config {
    const void *config;      /* checked, with a tuned configuration in place of "tuned" */
    struct lab_value *value; /* likewise: all keys */
    const char *text; /* how the kernel does it, in words; NULL = there is nothing to choose */
    const char *note; /* as above; NULL */
};
int lab_tuned_resolve(const struct lab_workload *workload, const void *config,
                      struct lab_value *value, const struct lab_tunable_place *place,
                      struct lab_arena *arena, struct lab_tuned_config *ret_config,
                      struct lab_err *err);

/*
 * The same for a runner: of a plan's options, for the device of that name, which needn't be open.
 * Notes go to the log.
 */
struct lab_value *lab_tuned_options(const struct lab_workload *workload, struct lab_value *options,
                                    const struct lab_machine *machine, const char *device,
                                    struct lab_arena *arena);
