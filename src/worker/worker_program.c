/*
 * worker_program.c: how fast a program of the user's is, by what it prints. gpulab counts none of
 * its samples, so it says none: tokens or words per second where the program prints them, else its
 * steps or epochs over time, else how many runs of it an hour has.
 */
#include "worker/worker_internal.h"

#include "model/metric_name.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define TOKENS_KEPT   4096 /* values; of more, every second, fourth, … one */
#define SPAN_LEAST    0.5  /* of the program's time that its lines must cover to be timed by them */
#define SPAN_SINGLE   0.02 /* the same of lines that came one by one */
#define SINGLE_LEAST  5    /* of those */
#define HOUR_S        3600
#define PROGRAMS_MOST 1024 /* labelled ranks of one output */

/* Without bound on their number: of those that are kept, each stands for as many. Tokens go before
 * words. */
static void keep_tokens(struct worker_program *program, const char *unit, double value,
                        struct lab_arena *arena) {
    bool other = !lab_str_equal(unit, program->token_unit);
    if (!(value > 0) || isinf(value) ||
        (other && lab_str_equal(unit, LAB_RATE_WORDS) && program->token_unit))
        return;
    if (other) {
        program->token_unit = unit;
        program->token_count = 0;
        program->seen = 0;
        program->stride = 1;
    }
    if (program->seen++ % program->stride)
        return;
    if (!program->tokens)
        program->tokens = lab_arena_alloc(arena, TOKENS_KEPT, sizeof *program->tokens);
    if (program->token_count == TOKENS_KEPT) {
        for (size_t i = 0; i < TOKENS_KEPT / 2; i++)
            program->tokens[i] = program->tokens[2 * i];
        program->token_count = TOKENS_KEPT / 2;
        program->stride *= 2;
    }
    program->tokens[program->token_count++] = value;
}

/* What a bar says by itself: its steps are left where the program tells its epochs. */
static bool is_pace(const struct worker_series *series) {
    return strcmp(series->name, "iterations_per_s") == 0 ||
           strcmp(series->name, "iteration_time") == 0;
}

/* One name's steps are followed, so that two that are printed at other steps don't mix. A program
 * that starts over begins anew; a lagging rank that prints an earlier step is passed over. Epochs
 * count only where no steps do. */
static void count_steps(struct rank *rank, struct worker_program *program,
                        const struct lab_reported_metric *metric,
                        const struct worker_series *series) {
    double step = metric->step;
    int64_t time_ns = metric->time_ns;
    int number = (int)(series - rank->series);
    if (isnan(step))
        return;
    if (program->followed < 0 || (program->by_epoch && !metric->by_epoch && !is_pace(series)) ||
        (!program->by_epoch && metric->by_epoch && is_pace(&rank->series[program->followed]))) {
        program->followed = number;
        program->first_step = INFINITY;
        program->steps = 0;
        program->time_ns = program->lines = program->times = 0;
        program->by_epoch = metric->by_epoch;
    }
    if (metric->by_epoch != program->by_epoch || program->followed != number)
        return;
    if (step <= program->first_step) {
        program->first_step = step;
    } else if (step > program->last_step) {
        program->steps += step - program->last_step;
        program->time_ns += time_ns - program->last_ns;
        program->lines++;
        program->times += time_ns != program->last_ns;
    } else {
        return;
    }
    program->last_step = step;
    program->last_ns = time_ns;
}

int worker_find_program(struct rank *rank, int label) {
    for (int i = 0; i < rank->program_count; i++)
        if (rank->programs[i].rank == label)
            return i;
    if (rank->program_count == PROGRAMS_MOST)
        return -1;
    LAB_ADD(rank->programs, rank->program_count, &rank->arena) =
        (struct worker_program){.rank = label, .followed = -1, .stride = 1};
    return rank->program_count - 1;
}

void worker_follow_program(struct rank *rank, const struct lab_reported_metric *metric,
                           const struct worker_series *series) {
    if (!rank->worker->workload->external || !rank->go || series->program < 0)
        return;
    struct worker_program *program = &rank->programs[series->program];
    if (series->rate_unit)
        keep_tokens(program, series->rate_unit, metric->value, &rank->arena);
    count_steps(rank, program, metric, series);
}

static void set_rate(struct lab_result *result, double rate, const char *unit) {
    result->rate = rate;
    result->rate_low = result->rate_high = NAN;
    result->rate_unit = unit;
}

static double tokens_per_s(const struct worker_program *program, double all_s) {
    (void)all_s;
    return lab_str_equal(program->token_unit, LAB_RATE_TOKENS)
               ? lab_stats_median(program->tokens, (size_t)program->token_count)
               : (double)NAN;
}

static double words_per_s(const struct worker_program *program, double all_s) {
    (void)all_s;
    return lab_str_equal(program->token_unit, LAB_RATE_WORDS)
               ? lab_stats_median(program->tokens, (size_t)program->token_count)
               : (double)NAN;
}

/* What a program keeps in a buffer comes at once, at the time of its end. Lines that come one by
 * one are timed by themselves, however long the program took before them. */
static double pace_of(const struct worker_program *program, double all_s) {
    double time_s = 1e-9 * (double)program->time_ns;
    bool single = program->times >= SINGLE_LEAST && 2 * program->times >= program->lines;
    if (!(program->steps > 0) || !(all_s > 0))
        return NAN;
    return program->steps /
           (time_s >= (single ? SPAN_SINGLE : SPAN_LEAST) * all_s ? time_s : all_s);
}

static double steps_per_s(const struct worker_program *program, double all_s) {
    return program->by_epoch ? (double)NAN : pace_of(program, all_s);
}

static double epochs_per_s(const struct worker_program *program, double all_s) {
    return program->by_epoch ? pace_of(program, all_s) : (double)NAN;
}

/* Of the slowest rank that has it; of lines without a label only where none has one. */
static double slowest(const struct rank *rank,
                      double (*pace)(const struct worker_program *program, double all_s),
                      double all_s) {
    double labelled = NAN, bare = NAN;
    for (int i = 0; i < rank->program_count; i++) {
        double value = pace(&rank->programs[i], all_s);
        double *least = rank->programs[i].rank < 0 ? &bare : &labelled;
        *least = fmin(*least, value); /* fmin passes NaN over */
    }
    return isnan(labelled) ? bare : labelled;
}

void worker_set_program_rate(const struct rank *rank, struct lab_result *result) {
    double runs = (double)rank->measurement.count, all_s = runs / result->rate;
    double tokens = slowest(rank, tokens_per_s, all_s), words = slowest(rank, words_per_s, all_s),
           steps = slowest(rank, steps_per_s, all_s), epochs = slowest(rank, epochs_per_s, all_s);
    if (!isnan(tokens)) {
        set_rate(result, tokens, LAB_RATE_TOKENS);
    } else if (!isnan(words)) {
        set_rate(result, words, LAB_RATE_WORDS);
    } else if (!isnan(steps)) {
        set_rate(result, steps, LAB_RATE_STEPS);
    } else if (!isnan(epochs)) {
        set_rate(result, epochs * HOUR_S, LAB_RATE_EPOCHS);
    } else {
        result->rate *= HOUR_S;
        result->rate_low *= HOUR_S;
        result->rate_high *= HOUR_S;
        result->rate_unit = LAB_RATE_RUNS;
    }
}
