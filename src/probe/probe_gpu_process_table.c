/*
 * probe_gpu_process_table.c: the board. Lanes of GPUs write on it, the lane that reads /proc copies
 * it: it is small and read once a second, so one lock does.
 */
#include "probe/probe_gpu_process_table.h"

#include "base/cond.h"

#include <string.h>

struct entry {
    struct lab_gpu_processes gpu;
    int capacity;
};

struct lab_gpu_process_table {
    pthread_mutex_t mutex;
    struct entry *entries;
    int count;
};

struct lab_gpu_process_table *lab_gpu_process_table_open(void) {
    struct lab_gpu_process_table *table = lab_mem_alloc(1, sizeof *table);
    pthread_mutex_init(&table->mutex, NULL);
    return table;
}

void lab_gpu_process_table_close(struct lab_gpu_process_table *table) {
    if (!table)
        return;
    for (int i = 0; i < table->count; i++)
        lab_mem_free(table->entries[i].gpu.items);
    lab_mem_free(table->entries);
    pthread_mutex_destroy(&table->mutex);
    lab_mem_free(table);
}

static struct entry *find(struct lab_gpu_process_table *table, int entity) {
    for (int i = 0; i < table->count; i++)
        if (table->entries[i].gpu.entity == entity)
            return &table->entries[i];
    return NULL;
}

void lab_gpu_process_table_add(struct lab_gpu_process_table *table, int entity,
                               const struct lab_entity *details) {
    LAB_AUTO_LOCK(&table->mutex);
    struct entry *entry = find(table, entity);
    if (!entry) {
        entry = &LAB_PUSH(table->entries, table->count);
        *entry = (struct entry){.gpu = {.entity = entity}};
    }
    entry->gpu.node = details->node;
    entry->gpu.index = details->index;
    entry->gpu.mig = details->kind == LAB_ENTITY_MIG;
}

void lab_gpu_process_table_tell(struct lab_gpu_process_table *table, int entity,
                                const struct lab_gpu_process *items, int count) {
    LAB_AUTO_LOCK(&table->mutex);
    struct entry *entry = find(table, entity);
    if (entry) {
        if (count > entry->capacity) {
            entry->gpu.items = lab_mem_resize(entry->gpu.items, (size_t)count, sizeof *items);
            entry->capacity = count;
        }
        if (count > 0)
            memcpy(entry->gpu.items, items, (size_t)count * sizeof *items);
        entry->gpu.count = count;
    }
}

int lab_gpu_process_table_read(struct lab_gpu_process_table *table, struct lab_arena *arena,
                               struct lab_gpu_processes **ret_items) {
    *ret_items = NULL;
    if (!table)
        return 0;
    LAB_AUTO_LOCK(&table->mutex);
    int count = table->count;
    struct lab_gpu_processes *copy = lab_arena_alloc(arena, (size_t)count, sizeof *copy);
    for (int i = 0; i < count; i++) {
        copy[i] = table->entries[i].gpu;
        size_t bytes = (size_t)copy[i].count * sizeof *copy[i].items;
        void *items = lab_arena_alloc(arena, bytes, 1);
        copy[i].items = bytes ? memcpy(items, copy[i].items, bytes) : items;
    }
    *ret_items = copy;
    return count;
}
