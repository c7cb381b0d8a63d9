/*
 * crossover/find.c: how much work a sample has to be before compute takes longer than copies.
 *
 * Between two neighbouring models either time is taken to lie on the straight line over the
 * operations, as it does where work is repeated (a deeper model); the turn is where the two lines
 * cross. No law spans all models: over decades of work times are curved, and the misfit of a law
 * would stand for the noise of the runs.
 *
 * The interval holds every amount of work at which ln(compute / copies) can't be told from 0, by a
 * t test over the runs of the two models beside it (Fieller's way, with Welch's degrees of
 * freedom). At a model it is that model's own test. It covers however the turn lies to the models,
 * since no model is chosen by what its runs happened to give.
 */
#include "analysis/crossover/crossover.h"

#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95
#define CERTAIN    1e-9 /* a spread below that is rounding */
#define STEPS      64   /* between two models, in which an end of the interval is looked for */
#define HALVINGS   50

static const struct lab_crossover unknown = {NAN, {NAN, NAN, NAN}};

struct place { /* between two models: u of the way from a to b */
    const struct lab_crossover_model *a, *b;
    double u;
};

static double mix(double a, double b, double u) {
    return (1 - u) * a + u * b;
}

static double work_at(struct place at) {
    return mix(at.a->complexity, at.b->complexity, at.u);
}

/* Copies without any compute load both directions otherwise than a model does: they are no part. */
static bool is_part(const struct lab_crossover_model *model) {
    for (int i = 0; i < model->runs; i++)
        if (!(model->times[i].compute_s > 0 && model->times[i].copy_s > 0))
            return false;
    return model->runs > 0 && model->complexity > 0;
}

/* The variance that a model's runs bring into ln(compute / copies), where that hangs on its ln
 * compute and ln copies by these shares. */
static double variance_of(const struct lab_crossover_model *model, double compute_share,
                          double copy_share, double *ret_freedom) {
    *ret_freedom = model->runs > 1 ? model->runs - 1 : model->times[0].freedom;
    if (model->runs == 1) { /* within the run the two are known together alone */
        double share = (compute_share + copy_share) / 2;
        return share * share * model->times[0].variance;
    }
    double mean = 0, squares = 0;
    for (int i = 0; i < model->runs; i++) { /* Welford's */
        const struct lab_crossover_times *times = &model->times[i];
        double value = compute_share * log(times->compute_s) - copy_share * log(times->copy_s);
        double before = value - mean;
        mean += before / (i + 1);
        squares += before * (value - mean);
    }
    return squares / (model->runs - 1) / model->runs;
}

/* How far ln(compute / copies) is beyond what chance explains; ≤ 0: it can't be told from 0. */
static double beyond_chance(struct place at) {
    const struct lab_crossover_model *a = at.a, *b = at.b;
    double u = at.u, freedom_a, freedom_b;
    double compute = mix(a->compute_s, b->compute_s, u), copy = mix(a->copy_s, b->copy_s, u);
    double of_a =
        variance_of(a, (1 - u) * a->compute_s / compute, (1 - u) * a->copy_s / copy, &freedom_a);
    double of_b = variance_of(b, u * b->compute_s / compute, u * b->copy_s / copy, &freedom_b);
    double distance = fabs(log(compute / copy)), error = sqrt(of_a + of_b), chance = CERTAIN;
    if (!(error <= CERTAIN)) {
        double freedom = u <= 0   ? freedom_a
                         : u >= 1 ? freedom_b
                                  : lab_stats_welch_freedom(of_a, freedom_a, of_b, freedom_b);
        chance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom);
    }
    return isnan(chance) ? (double)NAN : distance - chance;
}

/* Where the lines cross between the two; NaN = they don't. */
static double crossing(const struct lab_crossover_model *a, const struct lab_crossover_model *b) {
    double at_a = a->compute_s - a->copy_s, at_b = b->compute_s - b->copy_s;
    return (at_a > 0) == (at_b > 0) ? (double)NAN : at_a / (at_a - at_b);
}

/* --- the ends of the interval --- */

/* The end between a place outside and one inside, both between the same models. */
static double end_between(struct place outside, struct place inside) {
    for (int i = 0; i < HALVINGS; i++) {
        struct place middle = inside;
        middle.u = (outside.u + inside.u) / 2;
        if (beyond_chance(middle) > 0)
            outside = middle;
        else
            inside = middle;
    }
    return work_at(inside);
}

/* From the model `from` (0 or 1: which of the two) to the other: the first place that can't be told
 * from the turn; NaN = none. */
static double first_end(const struct lab_crossover_model *a, const struct lab_crossover_model *b,
                        int from) {
    double sign = from == 0 ? 1 : -1, cross = crossing(a, b);
    struct place outside = {a, b, from};
    if (!(beyond_chance(outside) > 0))
        return work_at(outside);
    for (int i = 1; i <= STEPS; i++) {
        struct place next = {a, b, from + sign * i / STEPS};
        if (!isnan(cross) && sign * (cross - outside.u) > 0 && sign * (next.u - cross) >= 0)
            next.u = cross; /* the interval may be narrower than a step */
        if (!(beyond_chance(next) > 0))
            return end_between(outside, next);
        outside = next;
    }
    return NAN;
}

/* --- the whole --- */

struct path { /* the models from one that is bound by copies for certain to one by compute */
    const struct lab_crossover_model **models;
    int count;
};

static struct lab_interval interval_over(const struct path *path) {
    double low = NAN, high = NAN;
    for (int i = 0; i + 1 < path->count && isnan(low); i++)
        low = first_end(path->models[i], path->models[i + 1], 0);
    for (int i = path->count - 1; i > 0 && isnan(high); i--)
        high = first_end(path->models[i - 1], path->models[i], 1);
    return (struct lab_interval){low, high, CONFIDENCE};
}

/* Where noise lets them cross three times or more, the one in the middle. */
static double middle_crossing(const struct path *path) {
    int crossings = 0;
    for (int i = 0; i + 1 < path->count; i++)
        crossings += !isnan(crossing(path->models[i], path->models[i + 1]));
    for (int i = 0, seen = 0; i + 1 < path->count; i++) {
        double u = crossing(path->models[i], path->models[i + 1]);
        if (!isnan(u) && seen++ == crossings / 2)
            return work_at((struct place){path->models[i], path->models[i + 1], u});
    }
    return NAN;
}

static bool has_spread(const struct path *path) {
    for (int i = 0; i < path->count; i++)
        if (isnan(beyond_chance((struct place){path->models[i], path->models[i], 0})))
            return false;
    return true;
}

struct lab_crossover lab_crossover_turn(const struct lab_crossover_feed *feed) {
    const struct lab_crossover_model *models = feed->models;
    int below = feed->below, above = feed->above;
    /* where more work is bound by copies and less by compute, work alone doesn't decide */
    if (below < 0 || above < 0 || !(models[below].complexity < models[above].complexity) ||
        !is_part(&models[below]) || !is_part(&models[above]))
        return unknown;
    struct path path = {lab_mem_alloc((size_t)(above - below) + 1, sizeof *path.models), 0};
    for (int m = below; m <= above; m++)
        if (is_part(&models[m]))
            path.models[path.count++] = &models[m];
    struct lab_crossover crossover = unknown;
    if (has_spread(&path))
        crossover = (struct lab_crossover){middle_crossing(&path), interval_over(&path)};
    lab_mem_free(path.models);
    return isnan(crossover.at) || isnan(crossover.interval.low) || isnan(crossover.interval.high)
               ? unknown
               : crossover;
}

double lab_crossover_time_at(const struct lab_crossover_feed *feed, bool compute, double work) {
    const struct lab_crossover_model *last = NULL;
    for (int m = 0; m < feed->model_count; m++) {
        const struct lab_crossover_model *model = &feed->models[m];
        if (!is_part(model))
            continue;
        double y = compute ? model->compute_s : model->copy_s;
        if (model->complexity == work)
            return y;
        if (last && last->complexity < work && work < model->complexity)
            return mix(compute ? last->compute_s : last->copy_s, y,
                       (work - last->complexity) / (model->complexity - last->complexity));
        last = model;
    }
    return NAN;
}
