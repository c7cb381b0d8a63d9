/* recording.c: asking a recording: when something was, what a column held, how much a counter grew. */
#include "model/recording.h"

#include <math.h>
#include <string.h>

int64_t lab_recording_wall_ns(const struct lab_recording *recording, int64_t time_ns) {
    int64_t offset_ns = 0;
    for (int i = 0; i < recording->epoch_count; i++)
        if (i == 0 || recording->epochs[i].from_ns <= time_ns)
            offset_ns = recording->epochs[i].offset_ns;
    return time_ns + offset_ns;
}

bool lab_track_read(const struct lab_track *track, enum lab_metric_id metric, int instance,
                    double *ret) {
    int column = lab_entity_column(&track->entity, metric, instance);
    if (column < 0 || !track->values[column])
        return false;
    double scale = lab_metric(metric)->scale;
    for (size_t i = 0; i < track->count; i++)
        ret[i] = track->valid[column][i] ? (double)track->values[column][i] * scale : (double)NAN;
    return true;
}

/* The reading to start from, or track->count. */
static size_t find_first(const struct lab_track *track, int column, int64_t from_ns) {
    size_t first = track->count;
    for (size_t i = 0; i < track->count; i++) {
        if (!track->valid[column][i])
            continue;
        if (track->times_ns[i] > from_ns && first < track->count)
            break;
        first = i;
        if (track->times_ns[i] > from_ns)
            break;
    }
    return first;
}

double lab_track_growth(const struct lab_track *track, enum lab_metric_id metric, int64_t from_ns,
                        int64_t until_ns) {
    int column = lab_entity_column(&track->entity, metric, -1);
    if (column < 0 || !track->values[column])
        return NAN;
    size_t first = find_first(track, column, from_ns);
    if (first == track->count)
        return NAN;
    int64_t last = track->values[column][first], growth = 0;
    int readings = 1;
    for (size_t i = first + 1; i < track->count; i++) {
        if (!track->valid[column][i])
            continue;
        int64_t value = track->values[column][i];
        growth += value >= last ? value - last : value;
        last = value;
        readings++;
        if (track->times_ns[i] >= until_ns)
            break;
    }
    return readings > 1 ? (double)growth * lab_metric(metric)->scale : (double)NAN;
}

const struct lab_track *lab_recording_gpu(const struct lab_recording *recording, int index) {
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
            return &recording->tracks[i];
    }
    return NULL;
}
