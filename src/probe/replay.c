/*
 * replay.c: the probe `replay`: a recording that is played again, as if it happened now: its times
 * are moved to begin when the playing does, and drawn together by the speed. One lane plays all of
 * it.
 */
#include "probe/probe.h"

#include <math.h>
#include <string.h>

struct replay {
    const struct lab_recording *recording;
    const struct lab_clock *clock;
    double speed;
    int64_t first_ns, last_ns; /* of the recording */
    int64_t start_ns;          /* of the playing; -1 = it has not begun */
    size_t *next;              /* tick of each track */
    size_t next_event, next_list;
    bool ended;
    int64_t *values;
    uint64_t *valid;
};

static void stretch(struct replay *replay, int64_t time_ns) {
    replay->first_ns = time_ns < replay->first_ns ? time_ns : replay->first_ns;
    replay->last_ns = time_ns > replay->last_ns ? time_ns : replay->last_ns;
}

static void find_span(struct replay *replay) {
    const struct lab_recording *recording = replay->recording;
    replay->first_ns = INT64_MAX;
    replay->last_ns = INT64_MIN;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->count > 0) {
            stretch(replay, track->times_ns[0]);
            stretch(replay, track->times_ns[track->count - 1]);
        }
    }
    if (recording->event_count > 0) {
        stretch(replay, recording->events[0].time_ns);
        stretch(replay, recording->events[recording->event_count - 1].time_ns);
    }
    if (recording->process_count > 0) {
        stretch(replay, recording->processes[0].time_ns);
        stretch(replay, recording->processes[recording->process_count - 1].time_ns);
    }
}

static int replay_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    const struct lab_recording *recording = setup->recording;
    if (!recording)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "no recording to replay");
    double speed = setup->speed == 0 ? 1 : setup->speed;
    if (!(speed > 0) || !isfinite(speed))
        return lab_err_set(err, LAB_ERR_USER, "a recording can't be played at %g times its speed",
                           setup->speed);
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].entity.column_count > LAB_COLUMNS_MAX)
            return lab_err_set(err, LAB_ERR_USER, "%s has %d columns in one track, %d are the most",
                               recording->path, recording->tracks[i].entity.column_count,
                               LAB_COLUMNS_MAX);
    struct replay *replay = lab_mem_alloc(1, sizeof *replay);
    replay->recording = recording;
    replay->clock = setup->clock;
    replay->speed = speed;
    replay->start_ns = -1;
    find_span(replay);
    replay->next = lab_mem_alloc((size_t)recording->track_count, sizeof *replay->next);
    replay->values = lab_mem_alloc(LAB_COLUMNS_MAX, sizeof *replay->values);
    replay->valid = lab_mem_alloc(LAB_VALID_WORDS(LAB_COLUMNS_MAX), sizeof *replay->valid);
    *ret_state = replay;
    return 0;
}

static void replay_close(void *state) {
    struct replay *replay = state;
    lab_mem_free(replay->next);
    lab_mem_free(replay->values);
    lab_mem_free(replay->valid);
    lab_mem_free(replay);
}

static void replay_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    struct replay *replay = state;
    (void)lane;
    for (int i = 0; i < replay->recording->track_count; i++)
        sink->entity(sink->state, &replay->recording->tracks[i].entity);
}

/* When in the playing something of the recording comes. */
static int64_t played_ns(const struct replay *replay, int64_t time_ns) {
    return replay->start_ns + (int64_t)((double)(time_ns - replay->first_ns) / replay->speed);
}

static void play_tick(struct replay *replay, int entity, const struct lab_probe_sink *sink) {
    const struct lab_track *track = &replay->recording->tracks[entity];
    size_t tick = replay->next[entity]++;
    int columns = track->entity.column_count;
    memset(replay->valid, 0, (size_t)LAB_VALID_WORDS(columns) * sizeof *replay->valid);
    for (int i = 0; i < columns; i++) {
        bool known = track->values[i] && track->valid[i][tick];
        replay->values[i] = known ? track->values[i][tick] : 0;
        if (known)
            lab_valid_set(replay->valid, i);
    }
    sink->tick(sink->state, entity, played_ns(replay, track->times_ns[tick]), replay->values,
               replay->valid);
}

/* The earliest tick that comes before `until_ns`, as a track's index; -1 = none. */
static int next_track(const struct replay *replay, int64_t *until_ns) {
    int best = -1;
    for (int i = 0; i < replay->recording->track_count; i++) {
        const struct lab_track *track = &replay->recording->tracks[i];
        if (replay->next[i] < track->count && track->times_ns[replay->next[i]] < *until_ns) {
            best = i;
            *until_ns = track->times_ns[replay->next[i]];
        }
    }
    return best;
}

/* Plays the next thing that comes before `until_ns`; false = nothing does. */
static bool play_next(struct replay *replay, int64_t until_ns, const struct lab_probe_sink *sink) {
    const struct lab_recording *recording = replay->recording;
    const struct lab_sample_event *event =
        replay->next_event < recording->event_count ? &recording->events[replay->next_event] : NULL;
    const struct lab_process_list *list = replay->next_list < recording->process_count
                                              ? &recording->processes[replay->next_list]
                                              : NULL;
    int64_t first_ns = until_ns;
    int track = next_track(replay, &first_ns);
    if (event && event->time_ns < first_ns && (!list || event->time_ns <= list->time_ns)) {
        sink->event(sink->state, event->entity, event->kind, event->number, event->text);
        replay->next_event++;
    } else if (list && list->time_ns < first_ns) {
        struct lab_process_list moved = *list;
        moved.time_ns = played_ns(replay, list->time_ns);
        sink->processes(sink->state, &moved);
        replay->next_list++;
    } else if (track >= 0) {
        play_tick(replay, track, sink);
    } else {
        return false;
    }
    return true;
}

static int replay_read(void *state, int lane, enum lab_probe_when when,
                       const struct lab_probe_sink *sink, struct lab_err *err) {
    struct replay *replay = state;
    (void)lane, (void)when, (void)err;
    if (replay->ended)
        return 0;
    int64_t now_ns = lab_clock_now(replay->clock);
    if (replay->start_ns < 0)
        replay->start_ns = now_ns;
    /* in double: at a high speed the end of time would come sooner than the recording's */
    double passed_ns = (double)(now_ns - replay->start_ns) * replay->speed;
    bool all = replay->last_ns < replay->first_ns ||
               passed_ns >= (double)replay->last_ns - (double)replay->first_ns;
    int64_t until_ns = all ? INT64_MAX : replay->first_ns + (int64_t)passed_ns + 1;
    while (play_next(replay, until_ns, sink))
        continue;
    if (all) {
        sink->event(sink->state, -1, LAB_EVENT_MARK, 0, "the recording ends");
        replay->ended = true;
    }
    return 0;
}

const struct lab_probe lab_probe_replay = {
    .name = "replay",
    .summary = "a recording, played again at any speed",
    .without = "recordings, as if they happened now",
    .open = replay_open,
    .close = replay_close,
    .only_lane = "the recording",
    .describe = replay_describe,
    .read = replay_read,
};
