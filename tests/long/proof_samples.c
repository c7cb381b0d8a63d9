/* proof_samples.c: a sink that keeps what it is told as tracks. */
#include "proof_samples.h"

#include <string.h>

#define TRACKS_MAX 128

struct collected {
    struct lab_arena *arena;
    struct lab_track tracks[TRACKS_MAX];
    size_t capacities[TRACKS_MAX];
    int count;
};

static void on_entity(void *opaque, int number, const struct lab_entity *entity) {
    struct collected *collected = opaque;
    if (number < 0 || number >= TRACKS_MAX || collected->tracks[number].values)
        return;
    struct lab_track *track = &collected->tracks[number];
    size_t columns = (size_t)entity->column_count;
    struct lab_column *copy = lab_arena_alloc(collected->arena, columns + 1, sizeof *copy);
    for (size_t i = 0; i < columns; i++)
        copy[i] = entity->columns[i];
    track->entity = *entity;
    track->entity.columns = copy;
    track->entity.id = lab_arena_strdup(collected->arena, entity->id);
    track->entity.name = lab_arena_strdup(collected->arena, entity->name);
    track->entity.pci = lab_arena_strdup(collected->arena, entity->pci ? entity->pci : "");
    track->values = lab_arena_alloc(collected->arena, columns + 1, sizeof *track->values);
    track->valid = lab_arena_alloc(collected->arena, columns + 1, sizeof *track->valid);
    collected->count = number >= collected->count ? number + 1 : collected->count;
}

/* Twice the room in the arena: what is left behind is freed with it. */
static void grow(struct collected *collected, struct lab_track *track, size_t *capacity) {
    size_t room = *capacity ? 2 * *capacity : 64;
    int64_t *times = lab_arena_alloc(collected->arena, room, sizeof *times);
    if (track->count)
        memcpy(times, track->times_ns, track->count * sizeof *times);
    track->times_ns = times;
    for (int c = 0; c < track->entity.column_count; c++) {
        int64_t *values = lab_arena_alloc(collected->arena, room, sizeof *values);
        uint8_t *valid = lab_arena_alloc(collected->arena, room, sizeof *valid);
        if (track->count) {
            memcpy(values, track->values[c], track->count * sizeof *values);
            memcpy(valid, track->valid[c], track->count * sizeof *valid);
        }
        track->values[c] = values;
        track->valid[c] = valid;
    }
    *capacity = room;
}

static void on_tick(void *opaque, const struct lab_tick *tick) {
    struct collected *collected = opaque;
    if (tick->entity < 0 || tick->entity >= collected->count)
        return;
    struct lab_track *track = &collected->tracks[tick->entity];
    if (track->count == collected->capacities[tick->entity])
        grow(collected, track, &collected->capacities[tick->entity]);
    track->times_ns[track->count] = tick->time_ns;
    for (int c = 0; c < track->entity.column_count; c++) {
        track->values[c][track->count] = tick->values[c];
        track->valid[c][track->count] = lab_valid_get(tick->valid, c);
    }
    track->count++;
}

const struct lab_recording *proof_samples_read(struct lab_device *device, struct lab_arena *arena) {
    struct collected *collected = lab_arena_alloc(arena, 1, sizeof *collected);
    collected->arena = arena;
    struct lab_sink_samples sink = {.entity = on_entity, .tick = on_tick, .state = collected};
    lab_device_samples(device, &sink);
    struct lab_recording *recording = lab_arena_alloc(arena, 1, sizeof *recording);
    struct lab_recording_epoch *epoch = lab_arena_alloc(arena, 1, sizeof *epoch);
    *epoch = (struct lab_recording_epoch){.host = "", .boot_id = ""};
    *recording = (struct lab_recording){.path = "",
                                        .label = "",
                                        .maker = "",
                                        .tracks = collected->tracks,
                                        .track_count = collected->count,
                                        .epochs = epoch,
                                        .epoch_count = 1,
                                        .simulated = true};
    return recording;
}
