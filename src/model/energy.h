/*
 * model/energy.h: what a GPU used, reading by reading. Used while samples come and on recordings
 * alike, so that the two never differ.
 *
 * Between its first and its last reading the GPU's own counter is believed, if they lie a second or
 * more apart; before and after them, or where there is no such counter, its power is: between two
 * readings their mean. Where readings lie farther apart than `gap_ns` nobody knows the power, and
 * nothing is added; likewise before the first reading and after the last.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lab_energy_sum { /* of power over time */
    double joules, seconds;
};

struct lab_energy_meter {
    int64_t from_ns, until_ns, gap_ns;
    double power_w; /* the last reading; NaN = none yet */
    int64_t power_ns;
    double counter_j; /* the last reading in the time asked for; NaN = none yet */
    int64_t first_ns, last_ns;
    double counted_j;
    /* before the counter's first reading, between its first and last, and after it */
    struct lab_energy_sum before, between, after;
};

struct lab_energy {
    double joules;    /* NaN = unknown */
    double covered_s; /* the time that it was used in; less than asked for where there are gaps */
    bool estimated;   /* more than a hundredth of it is from power, not from a counter */
};

/* How far readings may lie apart: three intervals, or a second, of which a driver's power is the
 * mean anyway. */
int64_t lab_energy_gap_ns(int64_t interval_ns);

void lab_energy_begin(struct lab_energy_meter *meter, int64_t gap_ns, int64_t from_ns,
                      int64_t until_ns);
/* A reading; times ascend. NaN = it has no power, or no counter. */
void lab_energy_take(struct lab_energy_meter *meter, int64_t time_ns, double power_w,
                     double counter_j);
struct lab_energy lab_energy_of(const struct lab_energy_meter *meter);
