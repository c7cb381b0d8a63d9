/* recording.c: asking a recording: when something was, what a column held, how much a counter
 * grew. */
#include "model/recording.h"

#include "base/list.h"

#include <assert.h>
#include <math.h>

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

/* --- between two times --- */

/* A column that is there and was asked for; false = it isn't. */
static bool find_column(const struct lab_track *track, enum lab_metric_id metric, int *ret_column) {
    *ret_column = lab_entity_column(&track->entity, metric, -1);
    return *ret_column >= 0 && track->values[*ret_column];
}

struct lab_track_figures lab_track_between(const struct lab_track *track, enum lab_metric_id metric,
                                           int64_t from_ns, int64_t until_ns) {
    struct lab_track_figures figures = {0, NAN, NAN, NAN};
    double scale = lab_metric(metric)->scale, sum = 0;
    int column;
    if (!find_column(track, metric, &column))
        return figures;
    for (size_t i = 0; i < track->count && track->times_ns[i] <= until_ns; i++) {
        if (!track->valid[column][i] || track->times_ns[i] < from_ns)
            continue;
        double value = (double)track->values[column][i] * scale;
        sum += value;
        figures.min = figures.count ? fmin(figures.min, value) : value;
        figures.max = figures.count ? fmax(figures.max, value) : value;
        figures.count++;
    }
    figures.mean = figures.count ? sum / (double)figures.count : (double)NAN;
    return figures;
}

/* How far readings may lie apart. The interval is the one asked for, or that of the ticks where it
 * is longer: the median of some differences, unless there are too few to tell a pause from the
 * pace. */
#define DIFFERENCES_LEAST 3
static int64_t find_gap_ns(const struct lab_track *track, int64_t interval_ns) {
    enum { MOST = 1024 };
    int64_t differences[MOST];
    int count = 0;
    for (size_t i = 1; i < track->count && count < MOST; i++)
        differences[count++] = track->times_ns[i] - track->times_ns[i - 1];
    if (count >= DIFFERENCES_LEAST) {
        LAB_SORT_NUMBERS(differences, count);
        if (differences[count / 2] > interval_ns)
            interval_ns = differences[count / 2];
    }
    return lab_energy_gap_ns(interval_ns);
}

/* Of a file that names no interval and has few readings; two may lie apart by a pause. */
static int64_t smallest_difference(const struct lab_track *track) {
    int64_t smallest = 0;
    for (size_t i = 1; i < track->count && track->count > 2; i++) {
        int64_t difference = track->times_ns[i] - track->times_ns[i - 1];
        if (difference > 0 && (smallest == 0 || difference < smallest))
            smallest = difference;
    }
    return smallest;
}

double lab_track_flag_s(const struct lab_track *track, enum lab_metric_id metric, uint64_t bit,
                        int64_t from_ns, int64_t until_ns) {
    int column;
    if (until_ns <= from_ns || !find_column(track, metric, &column))
        return NAN;
    int64_t gap_ns = find_gap_ns(track, 0), since_ns = 0, total_ns = 0;
    bool any = false, set = false;
    for (size_t i = 0; i < track->count && !(any && since_ns >= until_ns); i++) {
        if (!track->valid[column][i])
            continue;
        int64_t time_ns = track->times_ns[i];
        int64_t end_ns = time_ns < until_ns ? time_ns : until_ns;
        if (set && time_ns - since_ns <= gap_ns && end_ns > from_ns)
            total_ns += end_ns - (since_ns > from_ns ? since_ns : from_ns);
        set = ((uint64_t)track->values[column][i] & bit) != 0;
        since_ns = time_ns;
        any = true;
    }
    return any ? (double)total_ns * 1e-9 : (double)NAN;
}

struct lab_energy lab_track_energy(const struct lab_track *track, int64_t interval_ns,
                                   int64_t from_ns, int64_t until_ns) {
    struct lab_energy_meter meter;
    int energy, power;
    enum lab_metric_id power_metric = LAB_METRIC_POWER;
    bool has_energy = find_column(track, LAB_METRIC_ENERGY, &energy);
    bool has_power = find_column(track, power_metric, &power);
    if (!has_power) {
        power_metric = LAB_METRIC_POWER_INSTANT;
        has_power = find_column(track, power_metric, &power);
    }
    interval_ns = interval_ns > 0 ? interval_ns : smallest_difference(track);
    lab_energy_begin(&meter, find_gap_ns(track, interval_ns), from_ns, until_ns);
    for (size_t i = 0; i < track->count; i++) {
        double power_w = NAN, counter_j = NAN;
        if (has_power && track->valid[power][i])
            power_w = (double)track->values[power][i] * lab_metric(power_metric)->scale;
        if (has_energy && track->valid[energy][i])
            counter_j = (double)track->values[energy][i] * lab_metric(LAB_METRIC_ENERGY)->scale;
        lab_energy_take(&meter, track->times_ns[i], power_w, counter_j);
    }
    return lab_energy_of(&meter);
}

const struct lab_track *lab_recording_gpu(const struct lab_recording *recording, int index) {
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
            return &recording->tracks[i];
    }
    return NULL;
}

/* --- parts --- */

static_assert(offsetof(struct lab_sample_event, time_ns) == 0 &&
                  offsetof(struct lab_process_list, time_ns) == 0,
              "lists are searched by their items' first member");

/* The first of `count` times, `stride` bytes from each other, that is at or after `time_ns`. */
static size_t find_time(const void *times, size_t stride, size_t count, int64_t time_ns) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*(const int64_t *)((const char *)times + middle * stride) >= time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Moves a list, whose items begin with their times, to those between two times. */
#define CUT(items, count, from_ns, until_ns)                                                       \
    do {                                                                                           \
        size_t first = find_time((items), sizeof *(items), (count), (from_ns));                    \
        (count) = find_time((items), sizeof *(items), (count), (until_ns) + 1) - first;            \
        (items) = (count) ? (items) + first : NULL;                                                \
    } while (0)

static struct lab_track cut_track(const struct lab_track *track, int64_t from_ns, int64_t until_ns,
                                  struct lab_arena *arena) {
    struct lab_track cut = *track;
    size_t columns = (size_t)track->entity.column_count;
    CUT(cut.times_ns, cut.count, from_ns, until_ns);
    if (cut.count == 0)
        return cut;
    cut.values = lab_arena_alloc(arena, columns, sizeof *cut.values);
    cut.valid = lab_arena_alloc(arena, columns, sizeof *cut.valid);
    for (size_t i = 0; i < columns; i++) {
        if (!track->values[i])
            continue;
        cut.values[i] = track->values[i] + (cut.times_ns - track->times_ns);
        cut.valid[i] = track->valid[i] + (cut.times_ns - track->times_ns);
    }
    return cut;
}

const struct lab_recording *lab_recording_between(const struct lab_recording *recording,
                                                  int64_t from_ns, int64_t until_ns,
                                                  struct lab_arena *arena) {
    struct lab_recording *cut = lab_arena_copy(arena, recording, 1, sizeof *cut);
    cut->tracks = lab_arena_alloc(arena, (size_t)cut->track_count + 1, sizeof *cut->tracks);
    for (int i = 0; i < cut->track_count; i++)
        cut->tracks[i] = cut_track(&recording->tracks[i], from_ns, until_ns, arena);
    CUT(cut->events, cut->event_count, from_ns, until_ns);
    CUT(cut->processes, cut->process_count, from_ns, until_ns);
    return cut;
}

bool lab_recording_has_ticks(const struct lab_recording *recording) {
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].count > 0)
            return true;
    return false;
}
