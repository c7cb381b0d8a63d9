/*
 * noise.c: chance, drawn by counter from the run's seed, so that a run is the same whenever it is
 * done again. Four kinds: a factor of the whole run; one that wanders and is forgotten after a
 * while; stalls with a heavy tail, as interrupts and other tenants cause; a slope.
 */
#include "base/random.h"
#include "device/sim/sim.h"

#include <math.h>

#define NS_PER_MINUTE 60e9
#define NEVER_NS      (INT64_MAX / 4)

static double uniform(uint64_t seed, uint64_t *drawn) {
    return lab_random_uniform(seed, (*drawn)++);
}

/* Box and Muller's, one of the pair. */
double sim_random_normal(uint64_t seed, uint64_t *drawn) {
    double radius = sqrt(-2 * log(1 - uniform(seed, drawn)));
    return radius * cos(2 * M_PI * uniform(seed, drawn));
}

double sim_random_exponential(uint64_t seed, uint64_t *drawn, double mean) {
    return -mean * log(1 - uniform(seed, drawn));
}

static double normal(struct sim_chance *chance) {
    return sim_random_normal(chance->seed, &chance->drawn);
}

static int64_t next_stall(struct sim_chance *chance, const struct sim_noise *noise,
                          int64_t from_ns) {
    if (noise->tail_per_s <= 0)
        return NEVER_NS;
    double pause_s = sim_random_exponential(chance->seed, &chance->drawn, 1 / noise->tail_per_s);
    return pause_s < 1e9 ? from_ns + (int64_t)(pause_s * 1e9) + 1 : NEVER_NS;
}

void sim_chance_init(struct sim_chance *chance, const struct sim_noise *noise, uint64_t seed,
                     int64_t start_ns) {
    *chance = (struct sim_chance){.seed = seed,
                                  .start_ns = start_ns,
                                  .compute_ns = start_ns,
                                  .copy_ns = start_ns,
                                  .asked_ns = start_ns};
    chance->run_compute = exp(noise->between.compute * normal(chance));
    chance->run_copy = exp(noise->between.copy * normal(chance));
    chance->now_compute = noise->within.compute * normal(chance);
    chance->now_copy = noise->within.copy * normal(chance);
    chance->slope_per_minute = noise->drift_per_minute * normal(chance);
    chance->stall_ns = next_stall(chance, noise, start_ns);
}

/* One step of the process whose memory fades with `within_s`, however long the step. */
static double wander(struct sim_chance *chance, double value, double deviation, double passed_s,
                     double within_s) {
    if (deviation <= 0)
        return 0;
    double kept = exp(-passed_s / within_s);
    return kept * value + deviation * sqrt(1 - kept * kept) * normal(chance);
}

double sim_chance_factor(struct sim_chance *chance, const struct sim_noise *noise, bool copy,
                         int64_t now_ns) {
    int64_t *last_ns = copy ? &chance->copy_ns : &chance->compute_ns;
    double *value = copy ? &chance->now_copy : &chance->now_compute;
    double deviation = copy ? noise->within.copy : noise->within.compute;
    double each = copy ? noise->each.copy : noise->each.compute;
    *value = wander(chance, *value, deviation, 1e-9 * (double)(now_ns - *last_ns), noise->within_s);
    *last_ns = now_ns;
    double minutes = (double)(now_ns - chance->start_ns) / NS_PER_MINUTE;
    double own = each > 0 ? each * normal(chance) : 0;
    return (copy ? chance->run_copy : chance->run_compute) * exp(*value + own) *
           fmax(0.1, 1 + chance->slope_per_minute * minutes);
}

double sim_chance_stall_s(struct sim_chance *chance, const struct sim_noise *noise,
                          int64_t now_ns) {
    double stall_us = 0;
    while (chance->stall_ns <= now_ns) {
        double length_us =
            noise->tail_us * pow(1 - uniform(chance->seed, &chance->drawn), -1 / noise->tail_shape);
        if (chance->stall_ns > chance->asked_ns) /* else it hit nobody: the device was idle */
            stall_us += fmin(length_us, noise->tail_most_us);
        chance->stall_ns = next_stall(chance, noise, chance->stall_ns);
    }
    chance->asked_ns = now_ns;
    return 1e-6 * stall_us;
}
