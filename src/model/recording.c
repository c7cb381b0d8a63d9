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

/* --- between two times --- */

/* A column that is there and was asked for; false = it isn't. */
static bool find_column(const struct lab_track *track, enum lab_metric_id metric, int *ret_column) {
    *ret_column = lab_entity_column(&track->entity, metric, -1);
    return *ret_column >= 0 && track->values[*ret_column];
}

struct lab_track_figures lab_track_between(const struct lab_track *track, enum lab_metric_id metric,
                                           int64_t from_ns, int64_t until_ns) {
    struct lab_track_figures figures = {0, NAN, NAN, NAN};
    double scale = lab_metric(metric)->scale, sum = 0, before = NAN;
    int column;
    if (!find_column(track, metric, &column))
        return figures;
    for (size_t i = 0; i < track->count && track->times_ns[i] <= until_ns; i++) {
        if (!track->valid[column][i])
            continue;
        double value = (double)track->values[column][i] * scale;
        if (track->times_ns[i] < from_ns) {
            before = value;
            continue;
        }
        sum += value;
        figures.min = figures.count ? fmin(figures.min, value) : value;
        figures.max = figures.count ? fmax(figures.max, value) : value;
        figures.count++;
    }
    if (figures.count == 0 && !isnan(before))
        return (struct lab_track_figures){1, before, before, before};
    figures.mean = figures.count ? sum / (double)figures.count : (double)NAN;
    return figures;
}

/*
 * The integral over time in seconds of a reading, held until the next one; the first holds for what was
 * before it too. With a `bit`, of 1 where it is set.
 */
static double integrate(const struct lab_track *track, int column, uint64_t bit, int64_t from_ns,
                        int64_t until_ns) {
    double total = 0, held = NAN;
    int64_t since_ns = from_ns;
    for (size_t i = 0; i < track->count && (track->times_ns[i] < until_ns || isnan(held)); i++) {
        if (!track->valid[column][i])
            continue;
        int64_t raw = track->values[column][i];
        double value = bit ? ((uint64_t)raw & bit) != 0 : (double)raw;
        if (!isnan(held) && track->times_ns[i] > since_ns) {
            total += held * (double)(track->times_ns[i] - since_ns) * 1e-9;
            since_ns = track->times_ns[i];
        }
        held = value;
    }
    if (isnan(held))
        return NAN;
    return total + held * (double)(until_ns - since_ns) * 1e-9;
}

double lab_track_flag_s(const struct lab_track *track, enum lab_metric_id metric, uint64_t bit,
                        int64_t from_ns, int64_t until_ns) {
    int column;
    if (until_ns <= from_ns || !find_column(track, metric, &column))
        return NAN;
    return integrate(track, column, bit, from_ns, until_ns);
}

#define COUNTER_LEAST_NS 1000000000LL

double lab_track_energy(const struct lab_track *track, int64_t from_ns, int64_t until_ns) {
    int energy, power;
    bool has_power = find_column(track, LAB_METRIC_POWER, &power);
    double power_scale = lab_metric(LAB_METRIC_POWER)->scale;
    if (until_ns <= from_ns)
        return NAN;
    int64_t first_ns = -1, last_ns = -1;
    if (find_column(track, LAB_METRIC_ENERGY, &energy)) {
        for (size_t i = 0; i < track->count && track->times_ns[i] <= until_ns; i++) {
            if (!track->valid[energy][i] || track->times_ns[i] < from_ns)
                continue;
            first_ns = first_ns < 0 ? track->times_ns[i] : first_ns;
            last_ns = track->times_ns[i];
        }
    }
    if (last_ns - first_ns < COUNTER_LEAST_NS)
        return has_power ? integrate(track, power, 0, from_ns, until_ns) * power_scale
                         : (double)NAN;
    double counted = lab_track_growth(track, LAB_METRIC_ENERGY, first_ns, last_ns);
    if (!has_power) /* as if the edges were like the rest */
        return counted * (double)(until_ns - from_ns) / (double)(last_ns - first_ns);
    double edges = integrate(track, power, 0, from_ns, first_ns) * power_scale +
                   integrate(track, power, 0, last_ns, until_ns) * power_scale;
    return isnan(edges) ? counted : counted + edges;
}

const struct lab_track *lab_recording_gpu(const struct lab_recording *recording, int index) {
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_entity *entity = &recording->tracks[i].entity;
        if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
            return &recording->tracks[i];
    }
    return NULL;
}
