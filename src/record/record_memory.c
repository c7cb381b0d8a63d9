/* record_memory.c: a sink that grows the tables of a recording in an arena. */
#include "record/record_memory.h"

#include <string.h>

static void keep_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_record_memory *memory = state;
    struct lab_recording *recording = &memory->recording;
    while (memory->told <= number)
        LAB_ADD(memory->tracks, memory->told, memory->arena) = -1;
    if (memory->tracks[number] >= 0)
        return; /* it came back: the columns are the same */
    memory->tracks[number] = recording->track_count;
    struct lab_track *track = &LAB_ADD(recording->tracks, recording->track_count, memory->arena);
    size_t columns = (size_t)entity->column_count + 1;
    *track = (struct lab_track){.entity = lab_entity_copy(entity, memory->arena)};
    track->values = lab_arena_alloc(memory->arena, columns, sizeof *track->values);
    track->valid = lab_arena_alloc(memory->arena, columns, sizeof *track->valid);
    recording->simulated |= entity->simulated;
}

static void keep_tick(void *state, const struct lab_tick *tick) {
    struct lab_record_memory *memory = state;
    if (tick->entity >= memory->told || memory->tracks[tick->entity] < 0)
        return;
    struct lab_track *track = &memory->recording.tracks[memory->tracks[tick->entity]];
    for (int c = 0; c < track->entity.column_count; c++) {
        size_t count = track->count, also = track->count;
        LAB_ADD(track->values[c], count, memory->arena) = tick->values[c];
        LAB_ADD(track->valid[c], also, memory->arena) = lab_valid_get(tick->valid, c);
    }
    LAB_ADD(track->times_ns, track->count, memory->arena) = tick->time_ns;
}

static void keep_processes(void *state, const struct lab_process_list *list) {
    struct lab_record_memory *memory = state;
    struct lab_recording *recording = &memory->recording;
    struct lab_arena *arena = memory->arena;
    struct lab_process_list *kept = &LAB_ADD(recording->processes, recording->process_count, arena);
    *kept = *list;
    kept->items = lab_arena_copy(arena, list->items, (size_t)list->count, sizeof *list->items);
    for (int i = 0; i < list->count; i++) {
        struct lab_process_sample *item = &kept->items[i];
        int count = 0;
        item->user = lab_arena_strdup(arena, item->user ? item->user : "");
        item->name = lab_arena_strdup(arena, item->name ? item->name : "");
        item->advice = lab_arena_strdup(arena, item->advice ? item->advice : "");
        item->command = item->container = "";
        item->node_bytes = NULL;
        item->node_count = 0;
        item->gpus = lab_arena_copy(arena, item->gpus, (size_t)item->gpu_count, sizeof *item->gpus);
        for (int g = 0; g < item->gpu_count; g++) {
            int entity = item->gpus[g].entity;
            if (entity < 0 || entity >= memory->told || memory->tracks[entity] < 0)
                continue;
            item->gpus[count] = item->gpus[g];
            item->gpus[count++].entity = memory->tracks[entity];
        }
        item->gpu_count = count;
    }
}

static void drop_event(void *state, const struct lab_sample_event *event) {
    (void)state, (void)event;
}

struct lab_sink_samples lab_record_memory_sink(struct lab_record_memory *memory) {
    return (struct lab_sink_samples){keep_entity, keep_tick, drop_event, keep_processes, memory};
}
