/*
 * training_machines.h: machines for tests of the laws of training, drawn at random: what a step
 * takes on them is known, and isn't quite what the laws say. Launches cost by the step and by the
 * layer; a sum hides behind a part of the backward pass; rows go in tiles; every point has a
 * deviation of its own besides its noise.
 */
#pragma once

#include "analysis/training/analysis_training.h"
#include "base/random.h"

#include <math.h>

struct drawn_machine {
    double step_s, layer_s, parameter_s,
        compute_s; /* the last two: for each, and for each row of it */
    double round_s, round_layer_s, byte_s;
    double hindrance; /* longer, beside very many others */
    double hidden;    /* up to this share of the arithmetic hides a sum */
    double tile;      /* rows are rounded up to so many */
    double noise;     /* of a point: standard deviation of logarithms */
    uint64_t seed, drawn;
};

static inline double drawn_uniform(struct drawn_machine *machine) {
    return lab_random_uniform(machine->seed, machine->drawn++);
}

static inline double drawn_between(struct drawn_machine *machine, double low, double high) {
    return low * pow(high / low, drawn_uniform(machine));
}

static inline double drawn_normal(struct drawn_machine *machine) {
    double radius = sqrt(-2 * log(1 - drawn_uniform(machine)));
    return radius * cos(6.283185307179586 * drawn_uniform(machine));
}

/* `misfit`: what the laws don't know of is there, too. */
static inline struct drawn_machine draw_machine(uint64_t seed, bool misfit) {
    struct drawn_machine machine = {.seed = seed, .tile = 1};
    machine.step_s = drawn_between(&machine, 5e-6, 5e-3);
    machine.layer_s =
        drawn_uniform(&machine) < 0.5 ? 0 : machine.step_s / 4 * drawn_uniform(&machine);
    machine.parameter_s = drawn_between(&machine, 1e-12, 3e-9);
    machine.compute_s = 6 / drawn_between(&machine, 3e10, 1e13);
    machine.round_s = drawn_between(&machine, 2e-6, 2e-3);
    machine.round_layer_s =
        drawn_uniform(&machine) < 0.5 ? 0 : machine.round_s / 4 * drawn_uniform(&machine);
    machine.byte_s = 1 / drawn_between(&machine, 1e9, 1e11);
    machine.hindrance = drawn_uniform(&machine) < 0.5 ? 0 : 0.4 * drawn_uniform(&machine);
    machine.noise = drawn_between(&machine, 0.003, 0.02);
    if (misfit) {
        machine.hidden = drawn_uniform(&machine) < 0.5 ? 0 : 0.6 * drawn_uniform(&machine);
        /* cost models know tiles of 1, 8, 16 and 64 rows */
        static const double tiles[] = {1, 4, 12, 16, 32};
        machine.tile = tiles[(int)(5 * drawn_uniform(&machine))];
        machine.noise = hypot(machine.noise, drawn_between(&machine, 0.005, 0.03));
    }
    return machine;
}

static inline double drawn_exact_s(const struct drawn_machine *machine,
                                   const struct lab_training_work *work) {
    double n = work->devices, rows = ceil(ceil(work->batch / n) / machine->tile) * machine->tile;
    double compute_s =
        machine->compute_s * work->parameters * rows * (1 + machine->hindrance * (1 - 1 / n));
    double sum_s = 2 * (n - 1) * (machine->round_s + machine->round_layer_s * work->layers) +
                   4 * work->parameters * 2 * (n - 1) / n * machine->byte_s;
    double exposed_s = fmax(0.2 * sum_s, sum_s - machine->hidden * compute_s);
    return machine->step_s + machine->layer_s * work->layers +
           machine->parameter_s * work->parameters + compute_s + exposed_s;
}

static inline double drawn_time_s(struct drawn_machine *machine,
                                  const struct lab_training_work *work) {
    return drawn_exact_s(machine, work) * exp(machine->noise * drawn_normal(machine));
}

struct drawn_model {
    const char *name;
    double parameters, layers;
};

/* As `train_scaling` has them, and four of different shape. */
static const struct drawn_model drawn_two[] = {{"medium", 54403, 4}, {"large", 2021379, 6}};
static const struct drawn_model drawn_four[] = {
    {"medium", 54403, 4}, {"wide", 310000, 3}, {"deep", 900000, 5}, {"large", 2021379, 6}};
/* That aren't among them. */
static const struct drawn_model drawn_others[] = {
    {"shallow", 1107971, 3}, {"small", 150000, 5}, {"middle", 600000, 4}, {"tall", 1700000, 7}};

enum { DRAWN_ROWS = 64 };

/* Every model and batch on one device and on two; returns how many rows. */
static inline int draw_rows(struct drawn_machine *machine, const struct drawn_model *models,
                            int model_count, const double *batches, int batch_count,
                            struct lab_training_row *ret_rows) {
    int count = 0;
    for (int m = 0; m < model_count; m++)
        for (int b = 0; b < batch_count; b++)
            for (int n = 1; n <= 2; n++) {
                struct lab_training_work work = {models[m].parameters, models[m].layers, batches[b],
                                                 n, false};
                ret_rows[count++] = (struct lab_training_row){
                    .work = work, .model = models[m].name, .time_s = drawn_time_s(machine, &work)};
            }
    return count;
}
