/*
 * tuning.h: the cache of tuned configurations, one SQLite file for each user:
 * $XDG_CACHE_HOME/gpulab/tuning.db (or ~/.cache/gpulab/tuning.db).
 *
 * An entry holds for its key alone: kernel and version, shape class, dtype, flags, device model,
 * number of cores or multiprocessors, driver, compiler, power limit, as one line of text. Beside
 * the entries it keeps what unfinished tunings know of single configurations.
 *
 * Any number of processes may use it at once: each change is one transaction, and of two tunings of
 * the same key the later one stands. A file of another version, a damaged one, or one that is no
 * such cache is set aside under another name when it is to be written, and counts as empty when it
 * is read; `note` says so. Writing looks the whole file through first; reading finds damage where
 * it meets it.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/value.h"
#include "model/tuning.h"

#include <stdbool.h>
#include <stdint.h>

#define LAB_TUNING_CACHE_VERSION 1

struct lab_tuning_entry { /* texts in the arena or the caller's */
    const char *key;
    const char *kernel, *shape, *device; /* of the key, for people */
    const char *config;                  /* "block_q=64,block_k=128" */
    double time_s, low_s, high_s;        /* NaN = unknown */
    bool certain;                        /* it won; else others could not be told apart */
    int64_t tuned_wall_ns;
    const char *result; /* the tuning's JSON; "" where it was imported without */
};

struct lab_tuning_cache;

/* Where it is, whether it exists or not; NULL where this user has no place for it. */
const char *lab_tuning_cache_path(struct lab_arena *arena);

/*
 * `writable` makes file and folder. For reading, a file that isn't there gives an empty cache.
 * `ret_note` is NULL or a sentence for the user, in the arena; it may itself be NULL.
 */
int lab_tuning_cache_open(const char *path, bool writable, struct lab_arena *arena,
                          struct lab_tuning_cache **ret_cache, const char **ret_note,
                          struct lab_err *err);
void lab_tuning_cache_close(struct lab_tuning_cache *cache); /* accepts NULL */

/* 1 = found, 0 = not there, -1 = failed. */
int lab_tuning_cache_find(struct lab_tuning_cache *cache, const char *key, struct lab_arena *arena,
                          struct lab_tuning_entry *ret_entry, struct lab_err *err);
/* Stores it in the place of its key. */
int lab_tuning_cache_put(struct lab_tuning_cache *cache, const struct lab_tuning_entry *entry,
                         struct lab_err *err);
/* The latest first. */
int lab_tuning_cache_list(struct lab_tuning_cache *cache, struct lab_arena *arena,
                          struct lab_tuning_entry **ret_entries, int *ret_count,
                          struct lab_err *err);
/* Removes all, unfinished ones too; `ret_count` entries. */
int lab_tuning_cache_clear(struct lab_tuning_cache *cache, int *ret_count, struct lab_err *err);

/* --- unfinished tunings --- */

/* `session` is the key and whatever else a tuning must share with another to go on with it. */
int lab_tuning_cache_keep(struct lab_tuning_cache *cache, const char *session,
                          const struct lab_trial *trial, struct lab_err *err);
/* Several, all or none: as one transaction, since each waits for the disk. */
int lab_tuning_cache_keep_all(struct lab_tuning_cache *cache, const char *session,
                              const struct lab_trial *const *trials, int count,
                              struct lab_err *err);
/* Without single times. */
int lab_tuning_cache_trials(struct lab_tuning_cache *cache, const char *session,
                            struct lab_arena *arena, struct lab_trial **ret_trials, int *ret_count,
                            struct lab_err *err);
/* How many there are. */
int lab_tuning_cache_unfinished(struct lab_tuning_cache *cache, int *ret_count,
                                struct lab_err *err);
int lab_tuning_cache_forget(struct lab_tuning_cache *cache, const char *session,
                            struct lab_err *err);

/* --- sharing between machines --- */

/* All entries as a tree, for a file: {"format": "gpulab tuning", "version": 1, "entries": […]}. */
int lab_tuning_cache_export(struct lab_tuning_cache *cache, struct lab_arena *arena,
                            struct lab_value **ret_value, int *ret_count, struct lab_err *err);
/*
 * Takes in what such a tree holds, all or nothing; of two entries for a key the later one stands.
 * `ret_taken` of `ret_count` were new or later. LAB_ERR_USER for what is no such tree.
 */
int lab_tuning_cache_import(struct lab_tuning_cache *cache, const struct lab_value *value,
                            int *ret_taken, int *ret_count, struct lab_err *err);
