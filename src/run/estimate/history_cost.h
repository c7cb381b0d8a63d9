/*
 * history_cost.h: seconds by what is computed and what is copied, from runs that are done:
 *
 *     a + b · computed + c · copied
 *
 * with the least relative error, none of the three below 0. Where the runs copied all the same, or
 * computed all the same, that term is left out; of one amount alone, others follow by half.
 */
#pragma once

#include "base/mem.h"

struct history_amount {
    double computed; /* FLOPs, with what they move in memory */
    double copied;   /* bytes to and from the device */
};

/* Both as one, in FLOPs: to compare amounts before any has run. 0 = unknown. */
double history_amount_work(struct history_amount amount);

struct history_cost { /* {0} = of no run yet */
    struct history_amount *amounts;
    double *seconds;
    int count;
    int fitted; /* of how many runs the coefficients are */
    double a, b, c;
};

/* Amounts that are unknown are passed over. */
void history_cost_add(struct history_cost *cost, struct history_amount amount, double seconds,
                      struct lab_arena *arena);

/* NaN = no run whose amount is known. */
double history_cost_expect(struct history_cost *cost, struct history_amount amount);
