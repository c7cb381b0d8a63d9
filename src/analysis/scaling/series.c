/*
 * series.c: models that differ in depth, or in width, alone; and what happens from one to the next.
 *
 * A regime is told by how the time follows the work: the elasticity ln(time ratio) / ln(FLOPs
 * ratio) is 1 where twice the work takes twice as long. Its interval is that of the time ratio;
 * what it touches is what it may be.
 */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>

/* Elasticities between the regimes. */
#define STAYS      0.2
#define LINEAR_LOW 0.9
#define LINEAR_TOP 1.1
#define WORK_LEAST 1.05 /* less of a difference in work tells nothing */

double scaling_series_value(const struct scaling_row *row, enum scaling_key key) {
    return key == SCALING_DEPTH ? row->depth : row->dim;
}

/* --- which models --- */

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static double mlp_ratio(const struct scaling_row *row) {
    return row->mlp_dim == 0 ? 4 : row->mlp_dim / row->dim;
}

static bool differ_in_key_alone(const struct scaling_row *a, const struct scaling_row *b,
                                enum scaling_key key) {
    return same(a->patch_size, b->patch_size) && same(a->heads, b->heads) &&
           same(mlp_ratio(a), mlp_ratio(b)) &&
           (key == SCALING_DEPTH ? same(a->dim, b->dim) : same(a->depth, b->depth));
}

/* Members of the anchor's series by rising key, each value once; returns how many. */
static int gather(const struct scaling_rows *rows, const struct scaling_row *anchor,
                  enum scaling_key key, const struct scaling_row **ret_members) {
    int count = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        double value = scaling_series_value(row, key);
        int at = count;
        if (isnan(value) || !differ_in_key_alone(anchor, row, key))
            continue;
        while (at > 0 && scaling_series_value(ret_members[at - 1], key) > value)
            at--;
        if (at > 0 && scaling_series_value(ret_members[at - 1], key) == value)
            continue;
        for (int k = count; k > at; k--)
            ret_members[k] = ret_members[k - 1];
        ret_members[at] = row;
        count++;
    }
    return count;
}

/* --- regimes --- */

static unsigned find_regimes(double low, double high) {
    static const struct {
        enum scaling_regime regime;
        double low, high;
    } bounds[] = {
        {SCALING_SATURATED, -INFINITY, STAYS},
        {SCALING_SUBLINEAR, STAYS, LINEAR_LOW},
        {SCALING_LINEAR, LINEAR_LOW, LINEAR_TOP},
        {SCALING_SUPERLINEAR, LINEAR_TOP, INFINITY},
    };
    unsigned found = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (low < bounds[i].high && high >= bounds[i].low)
            found |= bounds[i].regime;
    return found;
}

static struct scaling_step make_step(const struct scaling_row *from, const struct scaling_row *to) {
    struct scaling_step step = {
        .time = lab_study_compare(from->point, to->point, LAB_STUDY_TIME),
        .work = to->flops / from->flops,
        .elasticity = NAN,
        .low = NAN,
        .high = NAN,
    };
    if (isnan(step.time.ratio)) /* no times of iterations: their rates tell as well */
        step.time = lab_study_compare(to->point, from->point, LAB_STUDY_RATE);
    if (!(step.work >= WORK_LEAST))
        return step;
    step.elasticity = log(step.time.ratio) / log(step.work);
    step.low = log(step.time.low) / log(step.work);
    step.high = log(step.time.high) / log(step.work);
    if (!isnan(step.low) && !isnan(step.high))
        step.regimes = find_regimes(step.low, step.high);
    return step;
}

struct scaling_series scaling_series_find(const struct scaling_rows *rows, enum scaling_key key,
                                          struct lab_arena *arena) {
    size_t room = (size_t)rows->count + 1;
    const struct scaling_row **members = lab_arena_alloc(arena, room, sizeof *members);
    const struct scaling_row **best = lab_arena_alloc(arena, room, sizeof *best);
    struct scaling_series series = {.key = key};
    for (int i = 0; i < rows->count; i++) {
        int count = gather(rows, &rows->items[i], key, members);
        if (count <= series.count)
            continue;
        const struct scaling_row **other = best;
        best = members;
        members = other;
        series.count = count;
    }
    if (series.count < 2)
        series.count = 0;
    series.rows = best;
    series.steps = lab_arena_alloc(arena, room, sizeof *series.steps);
    for (int i = 0; i + 1 < series.count; i++)
        series.steps[i] = make_step(best[i], best[i + 1]);
    return series;
}

/* --- words --- */

const char *scaling_regime_words(unsigned regimes) {
    switch (regimes) {
    case 0:
        return "unknown";
    case SCALING_SATURATED:
        return "saturated";
    case SCALING_SUBLINEAR:
        return "sub-linear";
    case SCALING_LINEAR:
        return "linear";
    case SCALING_SUPERLINEAR:
        return "super-linear";
    case SCALING_SATURATED | SCALING_SUBLINEAR:
        return "saturated or sub-linear";
    case SCALING_SUBLINEAR | SCALING_LINEAR:
        return "sub-linear or linear";
    case SCALING_LINEAR | SCALING_SUPERLINEAR:
        return "linear or super-linear";
    default:
        return "undecided";
    }
}

const char *scaling_series_words(const struct scaling_series *series, struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i + 1 < series->count;) {
        const char *regime = scaling_regime_words(series->steps[i].regimes);
        int last = i;
        while (last + 2 < series->count &&
               lab_str_equal(scaling_regime_words(series->steps[last + 1].regimes), regime))
            last++;
        text = lab_arena_printf(arena, "%s%s%s from %g to %g", text, i ? ", " : "", regime,
                                scaling_series_value(series->rows[i], series->key),
                                scaling_series_value(series->rows[last + 1], series->key));
        i = last + 1;
    }
    return text;
}
