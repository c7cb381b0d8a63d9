/*
 * mem.h: host memory. Allocation either works or ends the program with a message: no caller can do
 * anything sensible without memory for its own book-keeping, and code without those checks is half
 * as long. Large buffers that a workload asks for come from a device instead, and may fail.
 *
 * An arena owns everything allocated from it until it is released: use one where many small things
 * share a life (a parsed file, a plan, a command line).
 */
#pragma once

#include "base/auto.h"

#include <stdarg.h>
#include <stddef.h>

void *lab_mem_alloc(size_t count, size_t size); /* zeroed; count × size is checked */
void *lab_mem_resize(void *old, size_t count,
                     size_t size); /* new part not zeroed; old may be NULL */
char *lab_mem_strdup(const char *text);
void lab_mem_free(void *memory); /* accepts NULL */
/* Of LAB_AUTO_FREE: what the pointer at `place` points to. */
static inline void lab_mem_free_at(void *place) {
    lab_mem_free(*(void **)place);
}

/* Grows `*array` so that index `count` can be written; `*capacity` is kept by the caller. */
#define LAB_MEM_GROW(array, count, capacity)                                                       \
    do {                                                                                           \
        if ((count) >= *(capacity)) {                                                              \
            *(capacity) = *(capacity) ? 2 * *(capacity) : 8;                                       \
            *(array) = lab_mem_resize(*(array), (size_t) * (capacity), sizeof **(array));          \
        }                                                                                          \
    } while (0)

struct lab_arena_block;

struct lab_arena {
    struct lab_arena_block *blocks; /* newest first */
};

void lab_arena_init(struct lab_arena *arena);
void lab_arena_release(struct lab_arena *arena); /* accepts a released arena */

void *lab_arena_alloc(struct lab_arena *arena, size_t count, size_t size); /* zeroed, 16-aligned */
/* A copy of an array, with a zeroed item behind it; `items` may be NULL where there are none. */
void *lab_arena_copy(struct lab_arena *arena, const void *items, size_t count, size_t size);
/* Grows `*array` in the arena so that index `count` can be written, with a zeroed item behind it;
 * `*capacity` is kept by the caller, 0 at first, and the array NULL while it is empty. */
#define LAB_ARENA_GROW(arena, array, count, capacity)                                              \
    do {                                                                                           \
        if ((count) + 1 >= *(capacity)) {                                                          \
            *(capacity) = *(capacity) ? 2 * *(capacity) : 8;                                       \
            *(array) = lab_arena_grow((arena), *(array), (size_t)(count), (size_t) * (capacity),   \
                                      sizeof **(array));                                           \
        }                                                                                          \
    } while (0)
void *lab_arena_grow(struct lab_arena *arena, const void *items, size_t count, size_t capacity,
                     size_t size);
char *lab_arena_strdup(struct lab_arena *arena, const char *text);
char *lab_arena_strndup(struct lab_arena *arena, const char *text, size_t length);
char *lab_arena_printf(struct lab_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *lab_arena_vprintf(struct lab_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
