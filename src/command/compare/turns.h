/*
 * turns.h: two programs run in turn, A B B A, a fresh process each: whatever drifts slowly
 * hits both alike. What the GPUs did meanwhile is kept of each run.
 */
#pragma once

#include "analysis/comparison/comparison.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdint.h>

struct lab_turn_gpu { /* means over a run; NaN = unknown */
    int index;
    double sm_clock_mhz, power_w, temperature_c;
};

struct lab_turn { /* one process */
    int side;     /* 0 = A, 1 = B */
    int pair;     /* from 0: each has an A and a B */
    int64_t start_ns, end_ns;
    struct lab_turn_gpu *gpus;
    int gpu_count;
};

struct lab_turns {
    const char *const *argv[2];
    int64_t warmup; /* runs of each that aren't counted */
    int64_t runs;   /* of each, counted, rounded up to whole A B B A; 0 = until `budget_s` is spent,
                        or before that when 2% would be detected with 80% power */
    double budget_s; /* of all of it; at least one A B B A is run */
    /* Runs one to its end. 1 = the user asked to stop. */
    int (*run)(void *state, int side, struct lab_turn *ret_turn, struct lab_err *err);
    double (*elapsed_s)(void *state); /* since the beginning */
    void *state;
    const struct lab_value *machine; /* where they run, as machine.json has it; NULL = unknown */
    uint64_t machine_identity;
    /* what came of it; freed by lab_turns_release */
    struct lab_turn *items;
    int count, checked; /* checked: count at the last look whether it is enough */
};

/* Runs them. 1 = stopped by the user: what is whole until then is kept. */
int lab_turns_run(struct lab_turns *turns, struct lab_err *err);

/* Two sets, each with the counted runs of one program as its only point, in pairs. */
struct lab_point_set *lab_turns_sets(const struct lab_turns *turns, struct lab_arena *arena);
void lab_turns_release(struct lab_turns *turns);

#define LAB_TURNS_LEAST 10 /* of each, where 2% is to be detected */
