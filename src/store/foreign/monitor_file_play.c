/*
 * monitor_file_play.c: a recording as it was sampled: all that it holds, in order of time, handed
 * to a sink. Of things at the same time, events come first and lists of processes next, so that
 * what belongs to a tick is known when it comes.
 */
#include "store/foreign/monitor_file_writer.h"

#include <string.h>

struct place {
    const struct lab_recording *recording;
    const struct lab_monitor_player *player;
    size_t event, list;
    size_t *ticks; /* by track: the next */
    bool *wanted;
    int64_t *values;
    uint64_t *valid;
};

static void hand_tick(struct place *place, int number) {
    const struct lab_track *track = &place->recording->tracks[number];
    size_t at = place->ticks[number]++;
    int columns = track->entity.column_count;
    memset(place->valid, 0, LAB_VALID_WORDS((size_t)columns) * sizeof *place->valid);
    for (int i = 0; i < columns; i++) {
        if (!track->values[i] || !track->valid[i][at])
            continue;
        place->values[i] = track->values[i][at];
        lab_valid_set(place->valid, i);
    }
    struct lab_tick tick = {.entity = number,
                            .time_ns = track->times_ns[at],
                            .cost_ns = -1,
                            .values = place->values,
                            .valid = place->valid};
    place->player->sink.tick(place->player->sink.state, &tick);
}

/* The track whose turn it is, or -1. */
static int next_track(const struct place *place, int64_t *ret_time_ns) {
    int best = -1;
    for (int i = 0; i < place->recording->track_count; i++) {
        const struct lab_track *track = &place->recording->tracks[i];
        if (!place->wanted[i] || place->ticks[i] >= track->count)
            continue;
        int64_t time_ns = track->times_ns[place->ticks[i]];
        if (best < 0 || time_ns < *ret_time_ns) {
            best = i;
            *ret_time_ns = time_ns;
        }
    }
    return best;
}

static void hand_before(struct place *place, int64_t time_ns) {
    const struct lab_recording *recording = place->recording;
    const struct lab_sink_samples *sink = &place->player->sink;
    while (place->event < recording->event_count &&
           recording->events[place->event].time_ns <= time_ns) {
        if (sink->event)
            sink->event(sink->state, &recording->events[place->event]);
        place->event++;
    }
    while (place->list < recording->process_count &&
           recording->processes[place->list].time_ns <= time_ns) {
        if (sink->processes)
            sink->processes(sink->state, &recording->processes[place->list]);
        place->list++;
    }
}

static int play(struct place *place) {
    const struct lab_monitor_player *player = place->player;
    int64_t time_ns = 0;
    for (int track; (track = next_track(place, &time_ns)) >= 0;) {
        hand_before(place, time_ns);
        hand_tick(place, track);
        if (player->pass(player->state) < 0)
            return -1;
    }
    hand_before(place, INT64_MAX);
    return player->pass(player->state);
}

int lab_monitor_play(const struct lab_recording *recording,
                     const struct lab_monitor_player *player) {
    LAB_AUTO(arena, arena);
    size_t tracks = (size_t)recording->track_count, columns = 0;
    struct place place = {.recording = recording, .player = player};
    place.ticks = lab_arena_alloc(&arena, tracks + 1, sizeof *place.ticks);
    place.wanted = lab_arena_alloc(&arena, tracks + 1, sizeof *place.wanted);
    for (size_t i = 0; i < tracks; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        place.wanted[i] = !player->wants || player->wants(player->state, entity->kind);
        if ((size_t)entity->column_count > columns)
            columns = (size_t)entity->column_count;
        if (place.wanted[i] && player->sink.entity)
            player->sink.entity(player->sink.state, (int)i, entity);
    }
    place.values = lab_arena_alloc(&arena, columns + 1, sizeof *place.values);
    place.valid = lab_arena_alloc(&arena, LAB_VALID_WORDS(columns) + 1, sizeof *place.valid);
    return play(&place);
}
