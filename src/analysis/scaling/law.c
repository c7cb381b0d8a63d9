/*
 * law.c: laws of how long an iteration takes, fitted to a group's models, one value each.
 *
 * Repeats of a model are one value: what a law gets wrong about a model it gets wrong about all of
 * its runs, so that runs aren't independent of each other here. Relative errors count alike,
 * whether a model takes a millisecond or a second.
 */
#include "analysis/scaling/scaling.h"

#include <math.h>

#define LEAST_FREEDOM 2 /* with fewer, intervals are there but say nothing */
#define MILLION       1e6

static const char *const keys[SCALING_LAWS] = {"overhead_flops_bytes", "overhead_flops",
                                               "power_law"};
static const char *const words[SCALING_LAWS] = {"overhead + FLOPs/rate + bytes/bandwidth",
                                                "overhead + FLOPs/rate", "samples/s = a · FLOPs^b"};

const char *scaling_law_key(enum scaling_law_kind kind) {
    return keys[kind];
}

const char *scaling_law_words(enum scaling_law_kind kind) {
    return words[kind];
}

/* --- fitting --- */

struct table { /* what a law is fitted to; one allocation that begins at x */
    double *x, *y, *weights, *errors;
    struct lab_fit_data data;
};

static void table_init(struct table *table, int count, size_t inputs) {
    size_t n = (size_t)count;
    table->x = lab_mem_alloc(n * (inputs + 3) + 1, sizeof *table->x);
    table->y = table->x + n * inputs;
    table->weights = table->y + n;
    table->errors = table->weights + n;
    table->data = (struct lab_fit_data){table->x, table->y, table->weights, n, inputs};
}

static const char *state_words(enum lab_fit_state state, bool bytes) {
    switch (state) {
    case LAB_FIT_OK:
        return NULL;
    case LAB_FIT_TOO_FEW:
        return "too few models";
    case LAB_FIT_RANK_DEFICIENT:
        return bytes ? "bytes and FLOPs grow together in these models"
                     : "all models do the same work";
    default:
        return "the figures don't allow it";
    }
}

/* time = overhead + FLOPs × c + bytes × d, none below 0. */
static struct scaling_law fit_time(const struct scaling_rows *rows, bool bytes) {
    struct scaling_law law = {.kind = bytes ? SCALING_ROOFLINE : SCALING_LINE,
                              .leave_one_out = NAN};
    size_t inputs = bytes ? 3 : 2;
    if (bytes && rows->bytes == SCALING_NO_BYTES) {
        law.lacks = "no bytes are counted";
        return law;
    }
    if (rows->count < (int)inputs + (bytes ? LEAST_FREEDOM : 1)) {
        law.lacks = "too few models";
        return law;
    }
    struct table table;
    table_init(&table, rows->count, inputs);
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        double *x = table.x + (size_t)i * inputs;
        x[SCALING_OVERHEAD] = 1;
        x[SCALING_PER_FLOP] = row->flops;
        if (bytes)
            x[SCALING_PER_BYTE] = row->bytes;
        table.y[i] = row->time_s;
        table.weights[i] = 1 / (row->time_s * row->time_s);
    }
    law.fit = lab_fit_nonnegative(&table.data);
    law.lacks = state_words(law.fit.state, bytes);
    if (!law.lacks) {
        double squares = 0;
        lab_fit_leave_one_out(&law.fit, &table.data, table.errors);
        for (int i = 0; i < rows->count; i++)
            squares += table.errors[i] * table.errors[i] * table.weights[i];
        law.leave_one_out = sqrt(squares / rows->count);
    }
    lab_mem_free(table.x);
    return law;
}

/* ln rate = a + b ln FLOPs of a sample, in which errors are relative and intervals exact. */
static struct scaling_law fit_power(const struct scaling_rows *rows) {
    struct scaling_law law = {.kind = SCALING_POWER, .leave_one_out = NAN};
    if (rows->count < 3) {
        law.lacks = "too few models";
        return law;
    }
    struct table table;
    table_init(&table, rows->count, 1);
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        table.x[i] = log(row->flops / row->samples);
        table.y[i] = log(row->rate.value);
        table.weights[i] = 1;
    }
    law.fit = lab_fit_run(&lab_law_line, &table.data);
    law.lacks = state_words(law.fit.state, false);
    if (!law.lacks)
        law.leave_one_out = lab_fit_leave_one_out(&law.fit, &table.data, NULL);
    lab_mem_free(table.x);
    return law;
}

static struct lab_fit fit_memory(const struct scaling_rows *rows, bool *ret_fitted) {
    struct table table;
    table_init(&table, rows->count, 1);
    size_t n = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        if (isnan(row->memory_mib) || isnan(row->parameters))
            continue;
        table.x[n] = row->parameters / MILLION;
        table.y[n] = row->memory_mib;
        table.weights[n++] = 1;
    }
    table.data.n = n;
    struct lab_fit fit = lab_fit_run(&lab_law_line, &table.data);
    *ret_fitted = n >= 3 && fit.state == LAB_FIT_OK;
    lab_mem_free(table.x);
    return fit;
}

struct scaling_laws scaling_laws_fit(const struct scaling_rows *rows) {
    struct scaling_laws laws = {.items = {[SCALING_ROOFLINE] = fit_time(rows, true),
                                          [SCALING_LINE] = fit_time(rows, false),
                                          [SCALING_POWER] = fit_power(rows)}};
    laws.memory = fit_memory(rows, &laws.memory_fitted);
    return laws;
}

const struct scaling_law *scaling_laws_fullest(const struct scaling_laws *laws) {
    for (int i = SCALING_ROOFLINE; i <= SCALING_LINE; i++)
        if (!laws->items[i].lacks)
            return &laws->items[i];
    return NULL;
}

const struct scaling_law *scaling_laws_best(const struct scaling_laws *laws) {
    const struct scaling_law *best = scaling_laws_fullest(laws);
    for (int i = 0; i < SCALING_LAWS; i++) {
        const struct scaling_law *law = &laws->items[i];
        if (!law->lacks &&
            (!best || isnan(best->leave_one_out) || law->leave_one_out < best->leave_one_out))
            best = law;
    }
    return best;
}

/* --- using a law --- */

struct lab_effect scaling_law_coefficient(const struct scaling_law *law, size_t i) {
    struct lab_interval seconds = lab_fit_interval(&law->fit, i, SCALING_CONFIDENCE);
    return (struct lab_effect){1 / law->fit.coefficients[i], lab_fit_reciprocal(seconds)};
}

static struct lab_interval turned(struct lab_interval time_s, double samples) {
    struct lab_interval interval = lab_fit_reciprocal(time_s);
    interval.low *= samples;
    interval.high *= samples;
    return interval;
}

static struct lab_interval raised(struct lab_interval logs) {
    return (struct lab_interval){exp(logs.low), exp(logs.high), logs.confidence};
}

struct scaling_rate scaling_law_rate(const struct scaling_law *law, const struct scaling_rows *rows,
                                     double flops, double bytes, double samples) {
    if (law->kind == SCALING_POWER) {
        double x = log(flops / samples);
        struct lab_fit_prediction made = lab_fit_predict(&law->fit, &x, 1, SCALING_CONFIDENCE);
        return (struct scaling_rate){exp(made.value), raised(made.law), raised(made.next)};
    }
    double x[3] = {1, flops, bytes};
    double time_s = lab_fit_predict(&law->fit, x, 1, SCALING_CONFIDENCE).value;
    struct lab_fit_prediction made =
        lab_fit_predict(&law->fit, x, 1 / (time_s * time_s), SCALING_CONFIDENCE);
    samples *= rows->steady_share;
    return (struct scaling_rate){samples / time_s, turned(made.law, samples),
                                 turned(made.next, samples)};
}
