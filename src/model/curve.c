/* curve.c: points of a curve, merged in pairs whenever there are too many. */
#include "model/curve.h"

#include "base/str.h"

#include <math.h>
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

static void halve(struct lab_curve *curve, struct lab_curve_point *points) {
    const struct lab_curve_point *from = points;
    for (int i = 0; i < curve->count / 2; i++, from += 2)
        points[i] = merge(from, from + 1);
    curve->count /= 2;
    curve->share *= 2;
}

static struct lab_curve_point *begin(struct lab_curve *curve, struct lab_arena *arena) {
    curve->points = lab_arena_alloc(arena, LAB_CURVE_POINTS, sizeof *curve->points);
    curve->share = 1;
    curve->first = curve->least = curve->most = NAN;
    curve->step_least = curve->step_most = curve->last_step = NAN;
    curve->stepped = true;
    return curve->points;
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
    struct lab_curve_point *points = curve->points;
    if (!points)
        points = begin(curve, arena);
    bool finite = isfinite(value);
    double kept = finite ? value : (double)NAN;
    double before = curve->last_step + curve->step_before, counted = count_on(curve, step);
    curve->stepped &= !isnan(step) && !(counted < before);
    curve->arrivals += curve->values == 0 || time_s != curve->last_time_s;
    if (finite)
        add_finite(curve, step, value);
    curve->values++;
    curve->last = value;
    curve->last_step = step;
    curve->last_time_s = time_s;
    struct lab_curve_point point = {counted, time_s, kept, kept, kept, 1, finite};
    int last = curve->count - 1;
    if (last >= 0 && points[last].count < curve->share) {
        points[last] = merge(&points[last], &point);
        return;
    }
    if (curve->count == LAB_CURVE_POINTS)
        halve(curve, points);
    points[curve->count++] = point;
}

bool lab_curve_has_times(const struct lab_curve *curve) {
    enum { VALUES_LEAST = 8, PER_ARRIVAL = 4, ARRIVALS_ENOUGH = 32 };
    return curve->values < VALUES_LEAST || curve->arrivals * PER_ARRIVAL > curve->values ||
           curve->arrivals >= ARRIVALS_ENOUGH;
}

bool lab_curve_is_buffered(const struct lab_curve *curve) {
    static const double pause_s = 0.1;
    return !lab_curve_has_times(curve) && curve->arrivals > 1 &&
           curve->last_time_s - curve->points[0].time_s >= pause_s * (double)(curve->arrivals - 1);
}

double lab_curve_at(const struct lab_curve *curve, bool over_time, double x) {
    const struct lab_curve_point *before = NULL;
    for (int i = 0; i < curve->count; i++) {
        const struct lab_curve_point *point = &curve->points[i];
        double at = over_time ? point->time_s : point->step;
        if (isnan(point->value) || isnan(at))
            continue;
        if (at >= x) {
            double from = before ? (over_time ? before->time_s : before->step) : at;
            if (at == x)
                return point->value;
            return before
                       ? before->value + (point->value - before->value) * (x - from) / (at - from)
                       : (double)NAN;
        }
        before = point;
    }
    return NAN;
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
