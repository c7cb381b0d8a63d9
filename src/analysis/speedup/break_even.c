/*
 * break_even.c: the break-even of one device and several, over the size of the model or of the
 * batch.
 *
 * In logarithms throughput over size is about a line for each number of devices; where the two
 * lines meet is the break-even, with Fieller's interval. It is sought up to ten times beyond what
 * was measured, and said to be an extrapolation there.
 */
#include "analysis/speedup/break_even.h"
#include "analysis/analysis_build.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95
#define BEYOND     10 /* times the largest that was measured, and the smallest over so much */

static double batch_of(const struct lab_study_run *run) {
    double batch = lab_study_number(run, "options.batch_size");
    return isnan(batch) ? lab_study_number(run, "test.batch_size") : batch;
}

static double place_of(const struct lab_study_run *run, enum lab_even_axis axis) {
    switch (axis) {
    case LAB_EVEN_PARAMETERS:
        return run->work.parameters > 0 ? run->work.parameters : (double)NAN;
    case LAB_EVEN_FLOPS:
        return run->work.flops > 0 && !(run->work.parameters > 0) ? run->work.flops : (double)NAN;
    case LAB_EVEN_BATCH:
        break;
    }
    return batch_of(run);
}

/* Whether it is held against one device at the same work, and at one piece of it. */
static bool is_compared(const struct lab_gang *gang) {
    return gang->base && gang->grade != LAB_SPEEDUP_APART;
}

/* Whether two gangs differ along the axis alone: the same batch for models, the same model for
 * batches.
 */
static bool belong_together(const struct lab_gang *a, const struct lab_gang *b,
                            enum lab_even_axis axis) {
    const struct lab_study_run *x = a->point->runs[0], *y = b->point->runs[0];
    if (strcmp(a->gpus, b->gpus) != 0 || strcmp(x->phase, y->phase) != 0 ||
        strcmp(lab_study_text(x, "options.scaling"), lab_study_text(y, "options.scaling")) != 0)
        return false;
    if (axis == LAB_EVEN_BATCH)
        return strcmp(x->model, y->model) == 0;
    double of_x = batch_of(x), of_y = batch_of(y);
    return axis == LAB_EVEN_FLOPS || of_x == of_y || (isnan(of_x) && isnan(of_y));
}

/* In logarithms. */
static void add_runs(struct lab_series *line, const struct lab_study_point *point,
                     enum lab_even_axis axis) {
    for (int i = 0; i < point->count; i++)
        if (point->rates[i] > 0)
            lab_series_add_point(line, log(place_of(point->runs[i], axis)), log(point->rates[i]));
}

static struct lab_fit fit_line(const struct lab_series *line) {
    struct lab_fit_data data = {.x = line->x, .y = line->y, .n = line->count, .inputs = 1};
    return lab_fit_run(&lab_law_line, &data);
}

static double height(const struct lab_fit *fit, double x) {
    return fit->coefficients[0] + fit->coefficients[1] * x;
}

/* An end that lies where the search ended is none. */
static double end_of(double end, double limit) {
    return fabs(end - limit) < 1e-3 ? (double)NAN : exp(end);
}

static void set_crossing(struct lab_break_even *even, const struct lab_fit *one,
                         const struct lab_fit *many) {
    double from = log(even->from / BEYOND), until = log(even->until * BEYOND);
    struct lab_crossover crossing = lab_fit_crossover(one, many, from, until, CONFIDENCE);
    double middle = (log(even->from) + log(even->until)) / 2;
    even->at = exp(crossing.at);
    even->low = end_of(crossing.interval.low, from);
    even->high = end_of(crossing.interval.high, until);
    even->above = many->coefficients[1] > one->coefficients[1];
    even->faster = height(many, middle) > height(one, middle);
}

static const char *where(const struct lab_gang *gang, enum lab_even_axis axis,
                         struct lab_arena *arena) {
    const struct lab_study_run *run = gang->point->runs[0];
    if (axis == LAB_EVEN_BATCH)
        return run->model;
    double batch = batch_of(run);
    return axis == LAB_EVEN_FLOPS || isnan(batch) ? ""
                                                  : lab_arena_printf(arena, "batch %.0f", batch);
}

/* Of the gangs that belong to number `first`; false if that isn't the first of them, or they have
 * no two places. */
static bool make_even(const struct lab_gangs *gangs, int first, enum lab_even_axis axis,
                      struct lab_arena *arena, struct lab_break_even *even) {
    const struct lab_gang *gang = &gangs->items[first];
    struct lab_series one = {.arena = arena}, many = {.arena = arena};
    *even = (struct lab_break_even){.axis = axis,
                                    .size = gang->size,
                                    .where = where(gang, axis, arena),
                                    .at = NAN,
                                    .low = NAN,
                                    .high = NAN,
                                    .from = INFINITY,
                                    .until = 0};
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *other = &gangs->items[i];
        double place = place_of(other->point->runs[0], axis);
        if (!is_compared(other) || isnan(place) || !belong_together(gang, other, axis))
            continue;
        if (i < first)
            return false;
        add_runs(&one, other->base, axis);
        add_runs(&many, other->point, axis);
        even->from = fmin(even->from, place);
        even->until = fmax(even->until, place);
    }
    if (!(even->until > even->from))
        return false;
    struct lab_fit of_one = fit_line(&one), of_many = fit_line(&many);
    if (of_one.state != LAB_FIT_OK || of_many.state != LAB_FIT_OK)
        return false;
    set_crossing(even, &of_one, &of_many);
    return true;
}

void lab_break_even_make(struct lab_gangs *gangs, struct lab_arena *arena) {
    static const enum lab_even_axis axes[] = {LAB_EVEN_PARAMETERS, LAB_EVEN_FLOPS, LAB_EVEN_BATCH};
    enum { AXES = sizeof axes / sizeof *axes };
    gangs->break_even =
        lab_arena_alloc(arena, (size_t)gangs->count * AXES + 1, sizeof *gangs->break_even);
    for (int a = 0; a < AXES; a++)
        for (int i = 0; i < gangs->count; i++)
            if (is_compared(&gangs->items[i]) &&
                !isnan(place_of(gangs->items[i].point->runs[0], axes[a])))
                gangs->even_count +=
                    make_even(gangs, i, axes[a], arena, &gangs->break_even[gangs->even_count]);
}
