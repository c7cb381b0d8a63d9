/*
 * kernel_cache.h: compiled kernels kept on disk, so that only the first run waits for the compiler.
 *
 * An entry is a file in $XDG_CACHE_HOME/gpulab/kernels (or ~/.cache/gpulab/kernels), named by a
 * hash of its key and holding title, key, checksum and code. The key says all that the code depends
 * on: source, options, compiler, architecture. What is damaged, or of another key, is a miss. Files
 * are written beside and renamed, so any number of processes may use the folder at once; where it
 * can't be written there is no cache, and nothing else changes.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where it is, whether it exists or not; NULL where this user has no place for it. */
const char *lab_kernel_cache_folder(struct lab_arena *arena);

/* 0 and the code, in the arena; -1 where it isn't there. Marks the entry as used now. */
int lab_kernel_cache_load(const char *folder, const char *key, struct lab_arena *arena,
                          char **ret_code, size_t *ret_length);

/*
 * Keeps the code; `title` is for people, neither it nor `key` has a newline. Failures don't matter:
 * the next process compiles again.
 */
void lab_kernel_cache_store(const char *folder, const char *key, const char *title,
                            const char *code, size_t length);

struct lab_kernel_cache_entry {
    const char *file;     /* its name in the folder */
    const char *title;    /* "layer_norm bf16 COLUMNS=512 …, sm_90"; "damaged" where it is */
    int64_t size_bytes;   /* of the file */
    int64_t used_wall_ns; /* when it was last used or made */
    bool damaged;
};

/* Every entry, the last used first, in the arena. A folder that isn't there is an empty one. */
int lab_kernel_cache_list(const char *folder, struct lab_arena *arena,
                          struct lab_kernel_cache_entry **ret_entries, int *ret_count,
                          struct lab_err *err);

/* Removes every entry and what killed processes left; other files stay. */
int lab_kernel_cache_clear(const char *folder, int *ret_count, int64_t *ret_bytes,
                           struct lab_err *err);

/* FNV-1a, 64 bits; for keys. */
uint64_t lab_kernel_cache_hash(const char *bytes, size_t length);
