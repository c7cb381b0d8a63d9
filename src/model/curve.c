/* curve.c: points of a curve, merged in pairs whenever there are too many. */
#include "model/curve.h"

#include "base/str.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static struct lab_curve_point merge(const struct lab_curve_point *a,
                                    const struct lab_curve_point *b) {
    double x = (double)a->count, y = (double)b->count, all = x + y;
    double p = (double)a->finite, q = (double)b->finite;
    return (struct lab_curve_point){
        .step = (a->step * x + b->step * y) / all,
        .time_s = (a->time_s * x + b->time_s * y) / all,
        .value = p == 0   ? b->value
                 : q == 0 ? a->value
                          : (a->value * p + b->value * q) / (p + q),
        .low = fmin(a->low, b->low), /* fmin and fmax pass NaN over */
        .high = fmax(a->high, b->high),
        .count = a->count + b->count,
        .finite = a->finite + b->finite,
    };
}

static void halve(struct lab_curve_line *line) {
    const struct lab_curve_point *from = line->points;
    for (int i = 0; i < line->count / 2; i++, from += 2)
        line->points[i] = merge(from, from + 1);
    line->count /= 2;
    line->share *= 2;
}

static void add_point(struct lab_curve_line *line, const struct lab_curve_point *point) {
    int last = line->count - 1;
    if (last >= 0 && line->points[last].count < line->share) {
        line->points[last] = merge(&line->points[last], point);
        return;
    }
    if (line->count == LAB_CURVE_POINTS)
        halve(line);
    line->points[line->count++] = *point;
}

/* The last value of the line gives way to another at its step; its extremes stay. */
static void replace_last(struct lab_curve_line *line, const struct lab_curve *curve,
                         const struct lab_curve_point *other) {
    struct lab_curve_point *last = &line->points[line->count - 1];
    bool was_finite = isfinite(curve->last);
    double count = (double)last->count, finite = (double)last->finite;
    double sum = (finite > 0 ? last->value * finite : 0) - (was_finite ? curve->last : 0) +
                 (other->finite ? other->value : 0);
    last->finite += other->finite - was_finite;
    last->value = last->count == 1   ? other->value
                  : last->finite > 0 ? sum / (double)last->finite
                                     : (double)NAN;
    last->time_s += (other->time_s - curve->last_time_s) / count;
    last->low = fmin(last->low, other->low);
    last->high = fmax(last->high, other->high);
}

/* Most curves need no line of their own over steps. */
static void add_by_step(struct lab_curve *curve, const struct lab_curve_point *point, bool again,
                        struct lab_arena *arena) {
    struct lab_curve_line *line = &curve->by_step;
    if (again && !line->points) {
        *line =
            (struct lab_curve_line){lab_arena_alloc(arena, LAB_CURVE_POINTS, sizeof *line->points),
                                    curve->count, curve->share};
        memcpy(line->points, curve->points, (size_t)curve->count * sizeof *line->points);
    }
    if (again)
        replace_last(line, curve, point);
    else if (line->points)
        add_point(line, point);
}

struct lab_curve_line lab_curve_line(const struct lab_curve *curve, bool over_time) {
    return over_time || !curve->by_step.points
               ? (struct lab_curve_line){curve->points, curve->count, curve->share}
               : curve->by_step;
}

static void begin(struct lab_curve *curve, struct lab_arena *arena) {
    curve->points = lab_arena_alloc(arena, LAB_CURVE_POINTS, sizeof *curve->points);
    curve->share = 1;
    curve->first = curve->least = curve->most = NAN;
    curve->step_least = curve->step_most = curve->last_step = NAN;
    curve->stepped = true;
}

static void add_finite(struct lab_curve *curve, double step, double value) {
    curve->first = curve->finite ? curve->first : value;
    if (!(curve->least <= value)) {
        curve->least = value;
        curve->step_least = step;
    }
    if (!(curve->most >= value)) {
        curve->most = value;
        curve->step_most = step;
    }
    curve->sum += value;
    curve->finite++;
}

/* The step since the run began. A step below half of the last one restarts: a new epoch. */
static double count_on(struct lab_curve *curve, double step) {
    if (step >= 0 && step < curve->last_step / 2)
        curve->step_before += curve->last_step + curve->stride - step;
    else if (step > curve->last_step)
        curve->stride = step - curve->last_step;
    return curve->step_before + step;
}

void lab_curve_add(struct lab_curve *curve, double step, double time_s, double value,
                   struct lab_arena *arena) {
    if (!curve->points)
        begin(curve, arena);
    bool finite = isfinite(value);
    double kept = finite ? value : (double)NAN;
    double before = curve->last_step + curve->step_before, counted = count_on(curve, step);
    curve->stepped &= !isnan(step) && !(counted < before);
    curve->arrivals += curve->values == 0 || time_s != curve->last_time_s;
    if (finite)
        add_finite(curve, step, value);
    struct lab_curve_point point = {counted, time_s, kept, kept, kept, 1, finite};
    struct lab_curve_line line = lab_curve_line(curve, true);
    add_by_step(curve, &point, counted == before, arena);
    add_point(&line, &point);
    curve->count = line.count;
    curve->share = line.share;
    curve->values++;
    curve->last = value;
    curve->last_step = step;
    curve->last_time_s = time_s;
}

bool lab_curve_has_times(const struct lab_curve *curve) {
    enum { PER_ARRIVAL = 4, ARRIVALS_ENOUGH = 32 };
    return curve->arrivals * PER_ARRIVAL > curve->values || curve->arrivals >= ARRIVALS_ENOUGH;
}

bool lab_curve_is_buffered(const struct lab_curve *curve) {
    static const double pause_s = 0.1;
    return !lab_curve_has_times(curve) && curve->arrivals > 1 &&
           curve->last_time_s - curve->points[0].time_s >= pause_s * (double)(curve->arrivals - 1);
}

static double place_of(const struct lab_curve_point *point, bool over_time) {
    return isnan(point->value) ? (double)NAN : over_time ? point->time_s : point->step;
}

double lab_curve_at(const struct lab_curve *curve, bool over_time, double x) {
    struct lab_curve_line line = lab_curve_line(curve, over_time);
    const struct lab_curve_point *before = NULL, *after = NULL;
    for (int i = 0; i < line.count; i++) {
        double at = place_of(&line.points[i], over_time);
        if (after && !isnan(at) && at != place_of(after, over_time))
            break;
        if (at >= x)
            after = &line.points[i];
        else if (at < x)
            before = &line.points[i];
    }
    double until = after ? place_of(after, over_time) : (double)NAN;
    if (!after || (!before && until != x))
        return NAN;
    double from = before ? place_of(before, over_time) : until;
    return !before || until == x
               ? after->value
               : before->value + (after->value - before->value) * (x - from) / (until - from);
}

bool lab_curve_is_epoch_axis(const char *name, const struct lab_curve *curve) {
    return strcasecmp(name, "epoch") == 0 && curve->finite > 0 && curve->last == curve->last_step &&
           curve->least == curve->step_least && curve->most == curve->step_most;
}

struct lab_metric_curve *lab_metric_curves_get(struct lab_metric_curves *curves, const char *name,
                                               const char *unit, int rank) {
    for (int i = 0; i < curves->count; i++)
        if (curves->items[i].rank == rank && lab_str_equal(curves->items[i].name, name))
            return &curves->items[i];
    struct lab_metric_curve *made = &LAB_ADD(curves->items, curves->count, curves->arena);
    *made = (struct lab_metric_curve){.name = lab_arena_strdup(curves->arena, name),
                                      .unit = lab_arena_strdup(curves->arena, unit ? unit : ""),
                                      .rank = rank};
    return made;
}
