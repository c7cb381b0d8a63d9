/* mem.c: allocation that ends the program when it fails, and arenas on top of it. */
#include "base/mem.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES 65536
#define FIRST_BYTES 4096 /* many arenas hold next to nothing, and clearing a block takes time */
#define ALIGNMENT   16

struct lab_arena_block {
    struct lab_arena_block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
};

_Noreturn void lab_mem_exhausted(size_t count, size_t size) {
    /* no stdio here: it may want memory too */
    char line[96];
    int length =
        snprintf(line, sizeof line, "gpulab: out of host memory (%zu x %zu bytes)\n", count, size);
    ssize_t said = write(STDERR_FILENO, line, (size_t)length);
    (void)said;
    /* who watches for faults has a screen to give back (top/top_terminal.c) */
    struct sigaction watched;
    if (sigaction(SIGABRT, NULL, &watched) == 0 && watched.sa_handler != SIG_DFL)
        abort();
    _exit(1);
}

void *lab_mem_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        lab_mem_exhausted(count, size);
    return memory;
}

void *lab_mem_resize(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        lab_mem_exhausted(count, size);
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        lab_mem_exhausted(count, size);
    return memory;
}

char *lab_mem_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    return memcpy(lab_mem_alloc(bytes, 1), text, bytes);
}

#define ROOM_FIRST 8 /* items of a list that grows */

/* There is room for 8, 16, 32, … items. */
void *lab_mem_grow(void *items, size_t count, size_t size) {
    if (count == 0)
        return lab_mem_resize(items, ROOM_FIRST, size);
    bool full = count >= ROOM_FIRST && (count & (count - 1)) == 0;
    return full ? lab_mem_resize(items, 2 * count, size) : items;
}

void lab_mem_free(void *memory) {
    free(memory);
}

void lab_arena_init(struct lab_arena *arena) {
    arena->blocks = NULL;
}

void lab_arena_release(struct lab_arena *arena) {
    while (arena->blocks) {
        struct lab_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}

void *lab_arena_alloc(struct lab_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        lab_mem_exhausted(count, size);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct lab_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t usual = !block                          ? FIRST_BYTES
                       : 2 * block->size < BLOCK_BYTES ? 2 * block->size
                                                       : BLOCK_BYTES;
        size_t room = bytes > usual / 4 ? bytes : usual;
        struct lab_arena_block *fresh = lab_mem_alloc(1, sizeof *fresh + room);
        fresh->size = room;
        if (block && room == bytes) {
            /* a large piece gets a block of its own; the current one keeps its free rest */
            fresh->used = bytes;
            fresh->next = block->next;
            block->next = fresh;
            return fresh->bytes;
        }
        fresh->next = block;
        arena->blocks = block = fresh;
    }
    void *memory = block->bytes + block->used;
    block->used += bytes;
    return memory;
}

char *lab_arena_strndup(struct lab_arena *arena, const char *text, size_t length) {
    char *copy = lab_arena_alloc(arena, length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

void *lab_arena_enlarge(struct lab_arena *arena, const void *items, size_t count, size_t room,
                        size_t size) {
    void *copy = lab_arena_alloc(arena, room, size);
    if (count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

void *lab_arena_copy(struct lab_arena *arena, const void *items, size_t count, size_t size) {
    return lab_arena_enlarge(arena, items, count, count + 1, size);
}

/* There is room for 7, 15, 31, … items and the one behind them. */
void *lab_arena_grow(struct lab_arena *arena, const void *items, size_t count, size_t size) {
    if (count == 0)
        return lab_arena_alloc(arena, ROOM_FIRST, size);
    bool full = count + 1 >= ROOM_FIRST && (count & (count + 1)) == 0;
    return full ? lab_arena_enlarge(arena, items, count, 2 * (count + 1), size) : (void *)items;
}

char *lab_arena_strdup(struct lab_arena *arena, const char *text) {
    return lab_arena_strndup(arena, text, strlen(text));
}

char *lab_arena_vprintf(struct lab_arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        abort();
    char *text = lab_arena_alloc(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *lab_arena_printf(struct lab_arena *arena, const char *format, ...) {
    char *text;
    LAB_WITH_ARGS(format, text = lab_arena_vprintf(arena, format, args));
    return text;
}
