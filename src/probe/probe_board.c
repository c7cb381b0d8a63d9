/*
 * probe_board.c: the board. Lanes of GPUs write on it, the lane that reads /proc copies it: it is small
 * and read once a second, so one lock does.
 */
#include "probe/probe_board.h"

#include <pthread.h>
#include <string.h>

struct entry {
    struct lab_gpu_processes gpu;
    int capacity;
};

struct lab_probe_board {
    pthread_mutex_t mutex;
    struct entry *entries;
    int count, capacity;
};

struct lab_probe_board *lab_probe_board_open(void) {
    struct lab_probe_board *board = lab_mem_alloc(1, sizeof *board);
    pthread_mutex_init(&board->mutex, NULL);
    return board;
}

void lab_probe_board_close(struct lab_probe_board *board) {
    if (!board)
        return;
    for (int i = 0; i < board->count; i++)
        lab_mem_free(board->entries[i].gpu.items);
    lab_mem_free(board->entries);
    pthread_mutex_destroy(&board->mutex);
    lab_mem_free(board);
}

static struct entry *find(struct lab_probe_board *board, int entity) {
    for (int i = 0; i < board->count; i++)
        if (board->entries[i].gpu.entity == entity)
            return &board->entries[i];
    return NULL;
}

void lab_probe_board_add(struct lab_probe_board *board, int entity,
                         const struct lab_entity *details) {
    pthread_mutex_lock(&board->mutex);
    struct entry *entry = find(board, entity);
    if (!entry) {
        LAB_MEM_GROW(&board->entries, board->count, &board->capacity);
        entry = &board->entries[board->count++];
        *entry = (struct entry){.gpu = {.entity = entity}};
    }
    entry->gpu.node = details->node;
    entry->gpu.index = details->index;
    entry->gpu.mig = details->kind == LAB_ENTITY_MIG;
    pthread_mutex_unlock(&board->mutex);
}

void lab_probe_board_tell(struct lab_probe_board *board, int entity,
                          const struct lab_gpu_process *items, int count) {
    pthread_mutex_lock(&board->mutex);
    struct entry *entry = find(board, entity);
    if (entry) {
        if (count > entry->capacity) {
            entry->gpu.items = lab_mem_resize(entry->gpu.items, (size_t)count, sizeof *items);
            entry->capacity = count;
        }
        if (count > 0)
            memcpy(entry->gpu.items, items, (size_t)count * sizeof *items);
        entry->gpu.count = count;
    }
    pthread_mutex_unlock(&board->mutex);
}

int lab_probe_board_read(struct lab_probe_board *board, struct lab_arena *arena,
                         struct lab_gpu_processes **ret_items) {
    *ret_items = NULL;
    if (!board)
        return 0;
    pthread_mutex_lock(&board->mutex);
    int count = board->count;
    struct lab_gpu_processes *copy = lab_arena_alloc(arena, (size_t)count, sizeof *copy);
    for (int i = 0; i < count; i++) {
        copy[i] = board->entries[i].gpu;
        size_t bytes = (size_t)copy[i].count * sizeof *copy[i].items;
        void *items = lab_arena_alloc(arena, bytes, 1);
        copy[i].items = bytes ? memcpy(items, copy[i].items, bytes) : items;
    }
    pthread_mutex_unlock(&board->mutex);
    *ret_items = copy;
    return count;
}
