/*
 * power.c: what a GPU draws, how warm it gets, and what it does about it. Power grows with the cube
 * of the clock; the temperature follows the power with a delay; above a limit of either, clocks go
 * down step by step, and up again below it.
 */
#include "device/sim/sim.h"

#include <math.h>

/* Bits of lab_clock_reasons. */
#define REASON_IDLE  0x1
#define REASON_POWER 0x4
#define REASON_HEAT  0x20

/* Of the clock, in a second: firmware reacts within tens of milliseconds, and relents slowly. */
#define DOWN_PER_S 2.0
#define UP_PER_S   0.5
/* It relents only this far below the limits, or it would swing about them. */
#define RELENT_W 0.97
#define RELENT_C 1.0
/* Clocks this near to the highest count as it. */
#define FULL 0.999

void sim_condition_init(struct sim_condition *condition, const struct sim_model *model) {
    *condition = (struct sim_condition){
        .temperature_c = model->heat.ambient_c + model->power.idle_w * model->heat.c_per_w,
        .clock_mhz = model->clock_mhz,
        .power_w = model->power.idle_w,
        .reasons = REASON_IDLE,
    };
}

double sim_power_w(const struct sim_model *model, double compute, double memory, double clock_mhz) {
    double clock = clock_mhz / model->clock_mhz;
    return model->power.idle_w + model->power.compute_w * fmin(compute, 1) * clock * clock * clock +
           model->power.memory_w * fmin(memory, 1);
}

static double move(const struct sim_model *model, double clock_mhz, double per_s, double time_s) {
    double moved = clock_mhz * exp(per_s * fmin(time_s, 0.1));
    return fmin(model->clock_mhz, fmax(model->clock_min_mhz, moved));
}

void sim_condition_step(struct sim_condition *condition, const struct sim_model *model,
                        double time_s, double power_w, double load) {
    const struct sim_heat *heat = &model->heat;
    double target_c = heat->ambient_c + power_w * heat->c_per_w;
    double kept = exp(-time_s / heat->time_s);
    condition->temperature_c = target_c + (condition->temperature_c - target_c) * kept;
    condition->power_w = power_w;
    bool strong = power_w > model->power.limit_w, hot = condition->temperature_c > heat->throttle_c;
    bool relents = power_w < RELENT_W * model->power.limit_w &&
                   condition->temperature_c < heat->throttle_c - RELENT_C;
    uint64_t held = condition->reasons & (REASON_POWER | REASON_HEAT);
    if (strong || hot)
        condition->clock_mhz = move(model, condition->clock_mhz, -DOWN_PER_S, time_s);
    else if (relents)
        condition->clock_mhz = move(model, condition->clock_mhz, UP_PER_S, time_s);
    held |= (strong ? REASON_POWER : 0) | (hot ? REASON_HEAT : 0);
    if (condition->clock_mhz >= FULL * model->clock_mhz && !strong && !hot)
        held = 0;
    condition->reasons = held | (load <= 0 ? REASON_IDLE : 0);
}
