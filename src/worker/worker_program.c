/*
 * worker_program.c: how fast a program of the user's is, by what it prints. gpulab counts none of
 * its samples, so it says none: tokens per second where the program prints them, else its steps
 * over time, else how many runs of it an hour has.
 */
#include "worker/worker_internal.h"

#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define TOKENS_KEPT 4096 /* values; of more, every second, fourth, … one */
#define SPAN_LEAST  0.5  /* of the program's time that its lines must cover to be timed by them */
#define HOUR_S      3600

/* "tokens_per_s", "train/tokens_per_second", "tok/s" */
static bool counts_tokens(const char *name, const char *unit) {
    static const char *const endings[] = {"tokens_per_s", "tokens_per_sec", "tokens_per_second",
                                          "tokens/s",     "tokens/sec",     "tokens/second",
                                          "tok/s",        "tok_per_s",      "tok_per_sec"};
    if (lab_str_equal(unit, "tokens/s"))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(name), ending = strlen(endings[i]);
        if (length >= ending && strcasecmp(name + length - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

/* Without bound on their number: of those that are kept, each stands for as many. */
static void keep_tokens(struct worker_program *program, double value, struct lab_arena *arena) {
    if (!(value > 0) || isinf(value) || program->seen++ % program->stride)
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

/* One name's steps are followed, so that two that are printed at other steps don't mix. A program
 * that starts over begins anew; a lagging rank that prints an earlier step is passed over. */
static void count_steps(struct worker_program *program, const char *name, double step,
                        int64_t time_ns) {
    if (isnan(step))
        return;
    if (!program->name[0]) {
        snprintf(program->name, sizeof program->name, "%s", name);
        program->first_step = INFINITY;
    }
    if (strncmp(program->name, name, sizeof program->name - 1) != 0)
        return;
    if (step <= program->first_step) {
        program->first_step = step;
    } else if (step > program->last_step) {
        program->steps += step - program->last_step;
        program->time_ns += time_ns - program->last_ns;
    } else {
        return;
    }
    program->last_step = step;
    program->last_ns = time_ns;
}

/* Of ranks that print into one stream, the first one's. */
void worker_follow_program(struct rank *rank, const struct lab_reported_metric *metric) {
    struct worker_program *program = &rank->program;
    if (!rank->worker->workload->external || !rank->go || metric->rank > 0)
        return;
    program->stride = program->stride ? program->stride : 1;
    if (counts_tokens(metric->name, metric->unit))
        keep_tokens(program, metric->value, &rank->arena);
    count_steps(program, metric->name, metric->step, metric->time_ns);
}

static void set_rate(struct lab_result *result, double rate, const char *unit) {
    result->rate = rate;
    result->rate_low = result->rate_high = NAN;
    result->rate_unit = unit;
}

void worker_set_program_rate(const struct rank *rank, struct lab_result *result) {
    const struct worker_program *program = &rank->program;
    double runs = (double)rank->measurement.count, per_s = result->rate;
    if (program->token_count > 0) {
        set_rate(result, lab_stats_median(program->tokens, (size_t)program->token_count),
                 LAB_RATE_TOKENS);
    } else if (program->steps > 0 && per_s > 0) {
        /* what a program keeps in a buffer comes at once, at the time of its end */
        double time_s = 1e-9 * (double)program->time_ns, all_s = runs / per_s;
        set_rate(result, program->steps / (time_s >= SPAN_LEAST * all_s ? time_s : all_s),
                 LAB_RATE_STEPS);
    } else {
        result->rate *= HOUR_S;
        result->rate_low *= HOUR_S;
        result->rate_high *= HOUR_S;
        result->rate_unit = LAB_RATE_RUNS;
    }
}
