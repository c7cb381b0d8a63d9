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

/* Ends the program with a line about memory of that size, and status 1: also for whoever gets his
 * from a library or a mapping. */
_Noreturn void lab_mem_exhausted(size_t count, size_t size);

void *lab_mem_alloc(size_t count, size_t size); /* zeroed; count × size is checked */
void *lab_mem_resize(void *old, size_t count,
                     size_t size); /* new part not zeroed; old may be NULL */
char *lab_mem_strdup(const char *text);
void lab_mem_free(void *memory); /* accepts NULL */
/* Of LAB_AUTO_FREE: what the pointer at `place` points to. */
static inline void lab_mem_free_at(void *place) {
    lab_mem_free(*(void **)place);
}

/* Room for one more of a list that grew by this alone: LAB_PUSH(items, count) = item. The list is
 * NULL at first; whoever empties it may keep its memory. */
#define LAB_PUSH(items, count)                                                                     \
    (*((items) = lab_mem_grow((items), (size_t)(count), sizeof *(items)), &(items)[(count)++]))
void *lab_mem_grow(void *items, size_t count, size_t size);

struct lab_arena_block;

struct lab_arena {
    struct lab_arena_block *blocks; /* newest first */
};

void lab_arena_init(struct lab_arena *arena);
void lab_arena_release(struct lab_arena *arena); /* accepts a released arena */

void *lab_arena_alloc(struct lab_arena *arena, size_t count, size_t size); /* zeroed, 16-aligned */
/* A copy of an array, with a zeroed item behind it; `items` may be NULL where there are none. */
void *lab_arena_copy(struct lab_arena *arena, const void *items, size_t count, size_t size);
/* The same with room for `room` items; the new ones are zeroed. */
void *lab_arena_enlarge(struct lab_arena *arena, const void *items, size_t count, size_t room,
                        size_t size);
/* Room for one more of a list that grew by this alone, with a zeroed item behind it:
 * LAB_ADD(items, count, arena) = item. The list is NULL while it is empty. */
#define LAB_ADD(items, count, arena)                                                               \
    (*((items) = lab_arena_grow((arena), (items), (size_t)(count), sizeof *(items)),               \
       &(items)[(count)++]))
void *lab_arena_grow(struct lab_arena *arena, const void *items, size_t count, size_t size);
char *lab_arena_strdup(struct lab_arena *arena, const char *text);
char *lab_arena_strndup(struct lab_arena *arena, const char *text, size_t length);
char *lab_arena_printf(struct lab_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *lab_arena_vprintf(struct lab_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
