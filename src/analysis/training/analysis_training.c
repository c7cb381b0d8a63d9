/* analysis_training.c: cost models of a training step: fitted, tested on what was left out, and
 * used. */
#include "analysis/training/analysis_training.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

#define BIT(term)     (1u << (term))
#define ABOUT_AS_GOOD 1.25  /* times the best's error */
#define ERROR_LEAST   0.002 /* of a speed-up: less tells no two laws apart */
#define LEAST_TESTS   4     /* left-out speed-ups: with fewer no law of hindrance is tested */
#define ROUNDING      1e-6

enum {
    BY_STEP = BIT(LAB_TRAINING_STEP) | BIT(LAB_TRAINING_COMPUTE) | BIT(LAB_TRAINING_ROUND),
    BY_LAYER = BIT(LAB_TRAINING_LAYER) | BIT(LAB_TRAINING_COMPUTE) | BIT(LAB_TRAINING_ROUND_LAYER),
    BY_PARAMETER = BIT(LAB_TRAINING_PARAMETER) | BIT(LAB_TRAINING_COMPUTE) | BIT(LAB_TRAINING_BYTE),
    HINDERED = BIT(LAB_TRAINING_HINDRANCE),
};

/* Which goes first where nothing tells them apart. */
static const unsigned candidates[] = {
    BY_LAYER | BY_PARAMETER,
    BY_STEP | BY_PARAMETER,
    BY_STEP | BIT(LAB_TRAINING_LAYER) | BY_PARAMETER,
    BY_LAYER,
    BY_STEP,
    BY_PARAMETER,
    BY_LAYER | BY_PARAMETER | HINDERED,
    BY_STEP | BY_PARAMETER | HINDERED,
    BY_STEP | BIT(LAB_TRAINING_LAYER) | BY_PARAMETER | HINDERED,
    BY_LAYER | HINDERED,
    BY_STEP | HINDERED,
    BY_PARAMETER | HINDERED,
};

static const int tiles[] = {1, 8, 16, 64}; /* rows */
#define TILES (int)(sizeof tiles / sizeof *tiles)

_Static_assert(sizeof candidates / sizeof *candidates * sizeof tiles / sizeof *tiles ==
                   LAB_TRAINING_LAWS,
               "room for all models");

/* --- terms --- */

/* Kernels take rows in tiles: a few more may cost nothing, or as much as a whole tile. */
static double rows_of(const struct lab_training_work *work, int tile) {
    double rows = work->weak ? work->batch : ceil(work->batch / work->devices);
    return ceil(rows / tile) * tile;
}

static double term_of(const struct lab_training_work *work, enum lab_training_term term, int tile) {
    double n = work->devices, rounds = 2 * (n - 1);
    switch (term) {
    case LAB_TRAINING_STEP:
        return 1;
    case LAB_TRAINING_LAYER:
        return work->layers;
    case LAB_TRAINING_PARAMETER:
        return work->parameters;
    case LAB_TRAINING_COMPUTE:
        return work->parameters * rows_of(work, tile);
    case LAB_TRAINING_ROUND:
        return rounds;
    case LAB_TRAINING_ROUND_LAYER:
        return rounds * work->layers;
    case LAB_TRAINING_BYTE:
        return 4 * work->parameters * rounds / n;
    case LAB_TRAINING_HINDRANCE:
        return work->parameters * rows_of(work, tile) * (1 - 1 / n);
    default:
        return 0;
    }
}

/* The columns of a law, in the order of its coefficients; returns how many. */
static size_t fill(const struct lab_training_work *work, unsigned terms, int tile, double *ret_x) {
    size_t count = 0;
    for (int term = 0; term < LAB_TRAINING_TERMS; term++)
        if (terms & BIT(term))
            ret_x[count++] = term_of(work, (enum lab_training_term)term, tile);
    return count;
}

static double time_of(const struct lab_fit *fit, const double *x) {
    double time_s = 0;
    for (size_t i = 0; i < fit->p; i++)
        time_s += fit->coefficients[i] * x[i];
    return time_s;
}

/* --- fitting --- */

enum { NONE_LEFT_OUT = -1 };

struct left_out {
    int place;         /* NONE_LEFT_OUT, or that place's rows */
    const char *model; /* NULL, or all rows of that model */
};

static bool is_in(const struct lab_training_row *row, const struct left_out *without) {
    return row->place != without->place &&
           !(without->model && lab_str_equal(row->model, without->model));
}

/* By relative errors, a point each: repeats of a point have what the law gets wrong in common. */
static struct lab_fit fit_terms(const struct lab_training_row *rows, int count, unsigned terms,
                                int tile, const struct left_out *without) {
    double *x = lab_mem_alloc((size_t)count * (LAB_TRAINING_TERMS + 2) + 1, sizeof *x);
    double *y = x + (size_t)count * LAB_TRAINING_TERMS, *weights = y + count;
    size_t n = 0, columns = 0;
    for (int i = 0; i < count; i++) {
        if (!is_in(&rows[i], without))
            continue;
        columns = fill(&rows[i].work, terms, tile, x + n * columns);
        y[n] = rows[i].time_s;
        weights[n++] = 1 / (rows[i].time_s * rows[i].time_s);
    }
    struct lab_fit_data data = {x, y, weights, n, columns};
    struct lab_fit fit = {.state = LAB_FIT_TOO_FEW};
    if (n > columns)
        fit = lab_fit_nonnegative(&data);
    lab_mem_free(x);
    return fit;
}

/* --- speed-ups --- */

struct guess {
    double log_speedup;
    double spread; /* variance over the scale's square: the measurements' own, and the law's here */
    double one_s, many_s;
};

static double samples_of(const struct lab_training_work *work) {
    return work->batch * (work->weak ? work->devices : 1);
}

/* The variance of log(t₁/tₙ), by the law's coefficients, in units of that of a point's log. */
static double leverage(const struct lab_fit *fit, const double *one, const double *many,
                       double one_s, double many_s) {
    double sum = 0, unit = fit->residual_error * fit->residual_error;
    if (!(unit > 0))
        return 0;
    for (size_t i = 0; i < fit->p; i++)
        for (size_t j = 0; j < fit->p; j++)
            sum += (one[i] / one_s - many[i] / many_s) * (one[j] / one_s - many[j] / many_s) *
                   lab_fit_covariance(fit, i, j);
    return fmax(0, sum / unit);
}

static struct guess guess_by(const struct lab_fit *fit, unsigned terms, int tile,
                             const struct lab_training_work *work) {
    double one[LAB_TRAINING_TERMS], many[LAB_TRAINING_TERMS];
    struct lab_training_work alone = *work;
    alone.devices = 1;
    fill(&alone, terms, tile, one);
    fill(work, terms, tile, many);
    struct guess guess = {.one_s = time_of(fit, one), .many_s = time_of(fit, many)};
    guess.log_speedup = log(guess.one_s / guess.many_s * samples_of(work) / samples_of(&alone));
    guess.spread = 2 + leverage(fit, one, many, guess.one_s, guess.many_s);
    return guess;
}

double lab_training_measured(const struct lab_training_row *one,
                             const struct lab_training_row *many) {
    return one->time_s / many->time_s * samples_of(&many->work) / samples_of(&one->work);
}

const struct lab_training_row *lab_training_base(const struct lab_training *training,
                                                 const struct lab_training_row *row) {
    for (int i = 0; i < training->row_count; i++)
        if (training->rows[i].place == row->place && training->rows[i].work.devices == 1)
            return &training->rows[i];
    return NULL;
}

/* --- leaving out --- */

struct errors {
    double squares, scaled; /* sums: of the errors, and of those over their spread */
    int count;
};

static void add_error(const struct lab_training *training, const struct lab_training_row *row,
                      const struct lab_fit *fit, unsigned terms, int tile, struct errors *errors) {
    const struct lab_training_row *base = lab_training_base(training, row);
    if (row->work.devices == 1 || !base)
        return;
    struct guess guess = guess_by(fit, terms, tile, &row->work);
    double error = log(lab_training_measured(base, row)) - guess.log_speedup;
    if (!isfinite(error))
        return;
    errors->squares += error * error;
    errors->scaled += error * error / guess.spread;
    errors->count++;
}

static struct errors errors_of(const struct lab_training *training, unsigned terms, int tile,
                               const struct left_out *without) {
    struct errors errors = {0};
    struct lab_fit fit = fit_terms(training->rows, training->row_count, terms, tile, without);
    for (int i = 0; i < training->row_count && fit.state == LAB_FIT_OK; i++)
        if (!is_in(&training->rows[i], without))
            add_error(training, &training->rows[i], &fit, terms, tile, &errors);
    return errors;
}

static void add_errors(struct errors *sum, struct errors more) {
    sum->squares += more.squares;
    sum->scaled += more.scaled;
    sum->count += more.count;
}

static void test_law(const struct lab_training *training, struct lab_training_law *law) {
    struct errors points = {0}, models = {0};
    for (int place = 0; place < training->place_count; place++)
        add_errors(&points,
                   errors_of(training, law->terms, law->tile, &(struct left_out){.place = place}));
    for (int i = 0; i < training->row_count && training->model_count > 2; i++)
        if (LAB_FIND(training->rows, i, model, training->rows[i].model) < 0)
            add_errors(&models, errors_of(training, law->terms, law->tile,
                                          &(struct left_out){.place = NONE_LEFT_OUT,
                                                             .model = training->rows[i].model}));
    bool tested = points.count >= LEAST_TESTS;
    law->error = tested ? sqrt(points.squares / points.count) : (double)NAN;
    law->scale = tested ? sqrt(points.scaled / points.count) : (double)NAN;
    law->model_scale =
        models.count >= LEAST_TESTS ? sqrt(models.scaled / models.count) : (double)NAN;
}

/* --- the laws of a study --- */

static bool same_place(const struct lab_training_row *a, const struct lab_training_row *b) {
    return lab_str_equal(a->model, b->model) && a->work.batch == b->work.batch &&
           a->work.weak == b->work.weak;
}

static void segment(struct lab_training_range *range, double value) {
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

static void survey(struct lab_training_row *rows, struct lab_training *training) {
    training->parameters = training->batch = (struct lab_training_range){INFINITY, 0};
    for (int i = 0; i < training->row_count; i++) {
        struct lab_training_row *row = &rows[i];
        row->place = training->place_count;
        for (int k = 0; k < i && row->place == training->place_count; k++)
            if (same_place(&rows[k], row))
                row->place = rows[k].place;
        training->place_count += row->place == training->place_count;
        training->model_count += LAB_FIND(training->rows, i, model, training->rows[i].model) < 0;
        segment(&training->parameters, row->work.parameters);
        segment(&training->batch, row->work.batch);
        if (row->work.devices > training->devices_most)
            training->devices_most = row->work.devices;
    }
    for (int i = 0; i < training->row_count; i++)
        training->pair_count += rows[i].work.devices > 1 && lab_training_base(training, &rows[i]);
}

#define LEAST_DIFFERENCE 0.01 /* of errors' logarithms: laws that differ by less are equal */

static double grade_of(const struct lab_training_law *law) {
    return floor(log(fmax(law->error, 1e-6)) / LEAST_DIFFERENCE);
}

static int place_of(const struct lab_training_law *law) {
    int place = 0;
    while (candidates[place] != law->terms)
        place++;
    return place;
}

/* Among equals fewer terms go first, then as they are listed. */
static int by_error(const void *a, const void *b) {
    const struct lab_training_law *x = a, *y = b;
    double left = grade_of(x), right = grade_of(y);
    if (left != right)
        return left < right ? -1 : 1;
    int difference = __builtin_popcount(x->terms) - __builtin_popcount(y->terms);
    if (difference == 0)
        difference = place_of(x) - place_of(y);
    return difference ? difference : x->tile - y->tile;
}

static bool layers_are_known(const struct lab_training *training) {
    for (int i = 0; i < training->row_count; i++)
        if (!(training->rows[i].work.layers > 0))
            return false;
    return true;
}

/* Those whose error is about the best's. */
static int count_as_good(const struct lab_training *training) {
    double most = fmax(ERROR_LEAST, ABOUT_AS_GOOD * training->laws[0].error);
    int count = 1;
    while (count < training->law_count && training->laws[count].error <= most)
        count++;
    return count;
}

void lab_training_fit(struct lab_training_row *rows, int count, struct lab_training *ret_training) {
    struct lab_training *training = ret_training;
    unsigned by_layer = BIT(LAB_TRAINING_LAYER) | BIT(LAB_TRAINING_ROUND_LAYER);
    *training = (struct lab_training){.rows = rows, .row_count = count, .error = NAN};
    survey(rows, training);
    if (training->pair_count == 0) {
        training->lacks = "no model was trained both on one device and on several together";
        return;
    }
    for (int i = 0; i < LAB_TRAINING_LAWS; i++) {
        struct lab_training_law law = {.terms = candidates[i / TILES], .tile = tiles[i % TILES]};
        if ((law.terms & by_layer) && !layers_are_known(training))
            continue;
        law.fit =
            fit_terms(rows, count, law.terms, law.tile, &(struct left_out){.place = NONE_LEFT_OUT});
        if (law.fit.state != LAB_FIT_OK)
            continue;
        test_law(training, &law);
        if (!isnan(law.scale))
            training->laws[training->law_count++] = law;
    }
    training->lacks = "too few points for a cost model; run more batch sizes, such as "
                      "experiment.batch_sizes=[16,32,64,128]";
    if (training->law_count == 0)
        return;
    qsort(training->laws, (size_t)training->law_count, sizeof *training->laws, by_error);
    training->error = training->laws[0].error;
    training->law_count = training->error > LAB_TRAINING_ERROR_MOST ? 0 : count_as_good(training);
    training->lacks = "the cost model fails its check: it predicts left-out points wrongly";
}

/* --- predicting --- */

static bool is_outside(struct lab_training_range range, double value) {
    return value < range.low * (1 - ROUNDING) || value > range.high * (1 + ROUNDING);
}

static const char *outside_words(struct lab_training_range range, const char *what,
                                 struct lab_arena *arena) {
    const char *low = lab_training_count(range.low, arena);
    return range.low == range.high ? lab_arena_printf(arena, "%s outside the tested %s", what, low)
                                   : lab_arena_printf(arena, "%s outside the tested %s to %s", what,
                                                      low, lab_training_count(range.high, arena));
}

/* What of the work was run: a model of that size; as many devices that share it so. */
static bool was_run(const struct lab_training *training, const struct lab_training_work *work,
                    bool model) {
    for (int i = 0; i < training->row_count; i++) {
        const struct lab_training_work *run = &training->rows[i].work;
        if (model ? fabs(run->parameters / work->parameters - 1) < ROUNDING
                  : run->devices == work->devices && run->weak == work->weak)
            return true;
    }
    return false;
}

const char *lab_training_why_not(const struct lab_training *training,
                                 const struct lab_training_work *work, struct lab_arena *arena) {
    if (!was_run(training, work, false))
        return lab_arena_printf(arena, "%d devices%s were not run", work->devices,
                                work->weak ? " with scaling=weak" : "");
    if (is_outside(training->parameters, work->parameters))
        return outside_words(training->parameters,
                             lab_arena_printf(arena, "%s parameters are",
                                              lab_training_count(work->parameters, arena)),
                             arena);
    if (is_outside(training->batch, work->batch))
        return outside_words(training->batch, lab_arena_printf(arena, "batch %.0f is", work->batch),
                             arena);
    if (!was_run(training, work, true) && training->model_count < LAB_TRAINING_MODELS)
        return lab_arena_printf(arena, "this model was not run, and %d models are too few",
                                training->model_count);
    return training->law_count == 0 ? training->lacks : NULL;
}

/* Student's t of so many left-out speed-ups: their scale is an estimate, too. */
static double reach(const struct lab_training *training) {
    return lab_stats_t_quantile((1 + LAB_TRAINING_CONFIDENCE) / 2,
                                fmax(1, training->pair_count - 2));
}

static bool needs_layers(const struct lab_training_law *law, const struct lab_training_work *work) {
    return (law->terms & (BIT(LAB_TRAINING_LAYER) | BIT(LAB_TRAINING_ROUND_LAYER))) &&
           !(work->layers > 0);
}

static struct lab_training_speedup predict(const struct lab_training *training,
                                           const struct lab_training_work *work) {
    struct lab_training_speedup speedup = {.value = NAN, .low = NAN, .high = NAN};
    bool model_run = was_run(training, work, true);
    for (int i = 0; i < training->law_count; i++) {
        const struct lab_training_law *law = &training->laws[i];
        if (needs_layers(law, work))
            continue;
        struct guess guess = guess_by(&law->fit, law->terms, law->tile, work);
        double scale = !model_run && law->model_scale > law->scale ? law->model_scale : law->scale;
        double far = reach(training) * scale * sqrt(guess.spread);
        if (isnan(speedup.value))
            speedup = (struct lab_training_speedup){exp(guess.log_speedup), INFINITY, 0,
                                                    guess.one_s, guess.many_s};
        speedup.low = fmin(speedup.low, exp(guess.log_speedup - far));
        speedup.high = fmax(speedup.high, exp(guess.log_speedup + far));
    }
    return speedup;
}

struct lab_training_speedup lab_training_predict(const struct lab_training *training,
                                                 const struct lab_training_work *work) {
    LAB_AUTO(arena, arena);
    return lab_training_why_not(training, work, &arena)
               ? (struct lab_training_speedup){NAN, NAN, NAN, NAN, NAN}
               : predict(training, work);
}

struct lab_training_speedup lab_training_leave_out(const struct lab_training *training,
                                                   const struct lab_training_row *row) {
    struct lab_training_row *others =
        lab_mem_alloc((size_t)training->row_count + 1, sizeof *others);
    struct lab_training without;
    int count = 0;
    for (int i = 0; i < training->row_count; i++)
        if (training->rows[i].place != row->place)
            others[count++] = training->rows[i];
    lab_training_fit(others, count, &without);
    struct lab_training_speedup speedup = predict(&without, &row->work);
    lab_mem_free(others);
    return speedup;
}
