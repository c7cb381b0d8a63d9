/*
 * break_even.c: where several devices are as fast as one, over the batch or over the size of the
 * model, within what was run.
 *
 * Between neighbours the logarithm of the speed-up is taken to be linear in that of the size, if
 * they aren't farther than a factor of STEP_MOST from each other. The interval has every place
 * where Student's test over the blocks can't tell the speed-up from 1: so it holds the break-even
 * as often as it says. Where the test finds the same everywhere, break-even isn't within the range.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_group.h"
#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define CONFIDENCE 0.95
#define STEP_MOST  4.0
#define STEPS      64 /* looked at between neighbours */
#define HALVINGS   20 /* of a step, to the edge of an interval */
#define EQUAL      1e-9

enum axis { BATCH, SIZE };

struct place {
    double x; /* logarithm */
    const struct lab_gang *gang;
    double *logs; /* of its speed-up, block by block */
};

struct line { /* gangs that differ along an axis alone */
    struct place *places;
    int count, blocks;
};

static double size_of(const struct lab_gang *gang, enum axis axis) {
    return axis == BATCH ? gang->batch : gang->parameters;
}

static bool belong_together(const struct lab_gang *a, const struct lab_gang *b, enum axis axis) {
    static const char *const keys[] = {"dtype", "compile_model", "allreduce", "overlap"};
    const struct lab_study_run *x = a->point->runs[0], *y = b->point->runs[0];
    if (!lab_str_equal(a->gpus, b->gpus) || !lab_str_equal(x->phase, y->phase) ||
        !a->scaling != !b->scaling)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct lab_value *of_x = lab_study_setting(x, keys[i]),
                               *of_y = lab_study_setting(y, keys[i]);
        if (of_x && of_y && !lab_value_equal(of_x, of_y))
            return false;
    }
    return axis == BATCH ? lab_str_equal(a->model, b->model) : a->batch == b->batch;
}

/* --- the line --- */

static double log_in_block(const struct lab_study_point *point, int block) {
    for (int i = 0; i < point->count; i++)
        if (point->runs[i]->run->repeat == block)
            return log(point->rates[i]);
    return NAN;
}

static double log_speedup(const struct lab_gang *gang, int block) {
    double sum = log_in_block(gang->point, block);
    for (int i = 0; i < gang->alone_count; i++)
        sum -= log_in_block(gang->alone[i], block) / gang->alone_count;
    return sum;
}

/* Blocks in which every place has a value. */
static void fill_blocks(struct line *line, struct lab_arena *arena) {
    int last = 0;
    for (int p = 0; p < line->count; p++) {
        const struct lab_study_point *point = line->places[p].gang->point;
        for (int i = 0; i < point->count; i++)
            last = point->runs[i]->run->repeat > last ? point->runs[i]->run->repeat : last;
    }
    for (int p = 0; p < line->count; p++)
        line->places[p].logs = lab_arena_alloc(arena, (size_t)last + 2, sizeof(double));
    for (int block = 0; block <= last; block++) {
        bool whole = true;
        for (int p = 0; p < line->count; p++) {
            double value = log_speedup(line->places[p].gang, block);
            line->places[p].logs[line->blocks] = value;
            whole = whole && isfinite(value);
        }
        line->blocks += whole;
    }
}

/* Of the gangs that belong to number `first`, if that is the first of them. */
static struct line make_line(const struct lab_gangs *gangs, int first, enum axis axis,
                             struct lab_arena *arena) {
    struct line line = {0};
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        double size = size_of(gang, axis);
        if (gang->alone_count == 0 || gang->independent || !(size > 0) || !gang->trains ||
            !belong_together(gang, &gangs->items[first], axis))
            continue;
        if (i < first)
            return (struct line){0};
        LAB_ADD(line.places, line.count, arena) = (struct place){.x = log(size), .gang = gang};
    }
    LAB_SORT(line.places, line.count, LAB_BY(line.places, x));
    fill_blocks(&line, arena);
    return line;
}

/* --- where it is 1 --- */

struct test {
    double mean;
    int sign; /* -1 slower, 1 faster, 0 inconclusive */
};

/* Between places `at` and `at` + 1, so far from the first as a share. */
static struct test test_at(const struct line *line, int at, double share) {
    const double *from = line->places[at].logs,
                 *to = line->places[at + 1 < line->count ? at + 1 : at].logs;
    double sum = 0, squares = 0;
    int n = line->blocks;
    for (int b = 0; b < n; b++)
        sum += (1 - share) * from[b] + share * to[b];
    struct test test = {.mean = sum / n};
    for (int b = 0; b < n; b++) {
        double off = (1 - share) * from[b] + share * to[b] - test.mean;
        squares += off * off;
    }
    double far =
        n < 2 ? INFINITY
              : sqrt(squares / (n - 1) / n) * lab_stats_t_quantile((1 + CONFIDENCE) / 2, n - 1);
    if (fabs(test.mean) > fmax(far, EQUAL))
        test.sign = test.mean < 0 ? -1 : 1;
    return test;
}

static double x_at(const struct line *line, int at, double share) {
    return line->places[at].x + share * (line->places[at + 1].x - line->places[at].x);
}

/* Where the sign begins to be, or no longer is, within the step that ends at `share`. */
static double edge_at(const struct line *line, int at, double share, int sign, bool begins) {
    double from = share - 1.0 / STEPS, to = share;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (from + to) / 2;
        if ((test_at(line, at, middle).sign == sign) == begins)
            to = middle;
        else
            from = middle;
    }
    return x_at(line, at, to);
}

/* As the place's own comparison is judged, among all of the study. */
static bool is_certain(const struct place *place, int sign) {
    const struct lab_claim *claim = &place->gang->claim;
    return claim->verdict == LAB_CLAIM_YES && sign * claim->effect > 0;
}

/* From one sign to the other, both certain, with one inconclusive range in between. */
static void find_interval(const struct line *line, struct lab_claim *claim, bool *ret_rising) {
    int first = test_at(line, 0, 0).sign, sign = first, turns = 0, crossings = 0;
    for (int p = 0; p + 1 < line->count; p++)
        for (int step = 1; step <= STEPS; step++) {
            double share = (double)step / STEPS,
                   before = test_at(line, p, share - 1.0 / STEPS).mean;
            struct test test = test_at(line, p, share);
            if (before * test.mean <= 0 && before != test.mean && ++crossings)
                claim->effect = x_at(line, p, share - test.mean / (test.mean - before) / STEPS);
            if (test.sign == sign)
                continue;
            if (turns++ == 0)
                claim->low = edge_at(line, p, share, first, false);
            claim->high = edge_at(line, p, share, test.sign, true);
            sign = test.sign;
        }
    *ret_rising = test_at(line, line->count - 1, 0).mean > 0;
    if (turns == 0 && sign != 0)
        claim->verdict = LAB_CLAIM_NO;
    else if (sign == -first && first != 0 && turns <= 2 && !isnan(claim->effect) &&
             is_certain(&line->places[0], first) &&
             is_certain(&line->places[line->count - 1], sign))
        claim->verdict = LAB_CLAIM_YES;
    else
        claim->verdict = LAB_CLAIM_INCONCLUSIVE;
    if (claim->verdict == LAB_CLAIM_NO ||
        (claim->verdict == LAB_CLAIM_INCONCLUSIVE && crossings > 1))
        claim->effect = NAN;
    if (claim->verdict != LAB_CLAIM_YES)
        claim->low = claim->high = NAN;
}

static bool is_dense(const struct line *line) {
    for (int p = 0; p + 1 < line->count; p++)
        if (line->places[p + 1].x - line->places[p].x > log(STEP_MOST) + EQUAL)
            return false;
    return true;
}

static const char *make_words(const struct lab_break_even *even, struct lab_arena *arena) {
    const struct lab_claim *claim = &even->claim;
    const char *from = lab_training_count(even->from, arena),
               *until = lab_training_count(even->until, arena);
    switch (claim->verdict) {
    case LAB_CLAIM_YES:
        return lab_arena_printf(arena, "%s [%s, %s]", lab_training_count(claim->effect, arena),
                                lab_training_count(claim->low, arena),
                                lab_training_count(claim->high, arena));
    case LAB_CLAIM_NO:
        return lab_arena_printf(arena, "not within %s to %s", from, until);
    case LAB_CLAIM_INCONCLUSIVE:
        return lab_arena_printf(
            arena, "%s%sinconclusive (%d run%s each)",
            isnan(claim->effect) ? "" : lab_training_count(claim->effect, arena),
            isnan(claim->effect) ? "" : ", ", claim->n, claim->n == 1 ? "" : "s");
    default:
        return lab_arena_printf(arena, "not tested between %s and %s", from, until);
    }
}

static struct lab_break_even make_even(const struct lab_gangs *gangs, const struct line *line,
                                       enum axis axis, struct lab_arena *arena) {
    const struct lab_gang *gang = line->places[0].gang;
    const char *each = gang->scaling ? " each" : "";
    struct lab_break_even even = {
        .devices = gang->devices,
        .over = axis == BATCH          ? "batch"
                : gang->parameters > 0 ? "parameters"
                                       : "FLOP",
        .where = axis == BATCH ? lab_arena_printf(arena, "%s%s", gang->model, each)
                               : lab_arena_printf(arena, "batch %.0f%s", gang->batch, each),
        .from = exp(line->places[0].x),
        .until = exp(line->places[line->count - 1].x),
        .claim = lab_claim_none};
    struct lab_claim *claim = &even.claim;
    *claim = lab_claim_named(*claim, lab_arena_printf(arena, "%s.break_even", gangs->analysis),
                             lab_arena_printf(arena, "%s, %s", gang->names, even.where), "",
                             lab_arena_printf(arena, "break-even %s", even.over));
    claim->unit = axis == BATCH ? "samples" : even.over;
    claim->n = line->blocks;
    for (int p = 0; p < line->count; p++)
        lab_claim_add_scope(claim, line->places[p].gang->point->name, arena);
    if (is_dense(line) && line->blocks > 0)
        find_interval(line, claim, &even.rising);
    claim->effect = exp(claim->effect);
    claim->low = exp(claim->low);
    claim->high = exp(claim->high);
    claim->confidence = claim->verdict == LAB_CLAIM_YES ? CONFIDENCE : (double)NAN;
    even.words = make_words(&even, arena);
    return even;
}

/* Models that are too far from each other are so at every batch: that is said once. */
static bool is_known(const struct lab_gangs *gangs, const struct lab_break_even *even) {
    for (int i = 0; i < gangs->break_even_count; i++)
        if (even->claim.verdict == LAB_CLAIM_NOT_TESTED &&
            gangs->break_even[i].claim.verdict == LAB_CLAIM_NOT_TESTED &&
            gangs->break_even[i].devices == even->devices &&
            lab_str_equal(gangs->break_even[i].over, even->over))
            return true;
    return false;
}

void lab_gangs_find_break_even(struct lab_gangs *gangs, struct lab_arena *arena) {
    for (int axis = BATCH; axis <= SIZE; axis++)
        for (int i = 0; i < gangs->count; i++) {
            struct line line = make_line(gangs, i, (enum axis)axis, arena);
            if (line.count < 2 || !(line.places[0].x < line.places[line.count - 1].x))
                continue;
            struct lab_break_even even = make_even(gangs, &line, (enum axis)axis, arena);
            if (!is_known(gangs, &even))
                LAB_ADD(gangs->break_even, gangs->break_even_count, arena) = even;
        }
}
