/*
 * history_cost.c: the least squares behind history_cost.h. The coefficients are kept until another
 * run is added: plans of thousands of runs ask for each of them.
 */
#include "run/estimate/history_cost.h"

#include "stats/fit.h"

#include <math.h>

double history_amount_work(struct history_amount amount) {
    enum { PER_COPIED_BYTE = 100 }; /* FLOPs of a device of the day meanwhile */
    return amount.computed + PER_COPIED_BYTE * amount.copied;
}

void history_cost_add(struct history_cost *cost, struct history_amount amount, double seconds,
                      struct lab_arena *arena) {
    if (!(history_amount_work(amount) > 0))
        return;
    int count = cost->count;
    LAB_ADD(cost->amounts, count, arena) = amount;
    LAB_ADD(cost->seconds, cost->count, arena) = seconds;
}

/* --- the coefficients --- */

static double mean_seconds(const struct history_cost *cost) {
    double sum = 0;
    for (int i = 0; i < cost->count; i++)
        sum += cost->seconds[i];
    return sum / cost->count;
}

/* With these terms next to the constant one. */
static bool fit_terms(struct history_cost *cost, bool computed, bool copied, double mean) {
    const double least = mean / 100; /* what is near 0 need not be met that well */
    size_t n = (size_t)cost->count, inputs = (size_t)(1 + computed + copied);
    LAB_AUTO_FREE double *x = lab_mem_alloc(n * inputs, sizeof *x);
    LAB_AUTO_FREE double *weights = lab_mem_alloc(n, sizeof *weights);
    double *next = x;
    for (size_t i = 0; i < n; i++) {
        double seconds = fmax(cost->seconds[i], least);
        weights[i] = 1 / (seconds * seconds);
        *next++ = 1;
        if (computed)
            *next++ = cost->amounts[i].computed;
        if (copied)
            *next++ = cost->amounts[i].copied;
    }
    struct lab_fit fit = lab_fit_nonnegative(&(struct lab_fit_data){
        .x = x, .y = cost->seconds, .weights = weights, .n = n, .inputs = inputs});
    if (fit.state != LAB_FIT_OK)
        return false;
    cost->a = fit.coefficients[0];
    cost->b = computed ? fit.coefficients[1] : 0;
    cost->c = copied ? fit.coefficients[inputs - 1] : 0;
    return true;
}

/* Of one amount: half of the time is fixed, the other goes by the work. */
static void halve(struct history_cost *cost, double mean) {
    double work = history_amount_work(cost->amounts[0]);
    cost->a = 0.5 * mean;
    cost->b = 0.5 * mean / work;
    cost->c = 0.5 * mean / work * (history_amount_work((struct history_amount){0, 1}));
}

double history_cost_expect(struct history_cost *cost, struct history_amount amount) {
    if (cost->count == 0 || !(history_amount_work(amount) > 0))
        return NAN;
    if (cost->fitted != cost->count) {
        double mean = mean_seconds(cost);
        if (!(mean > 0))
            cost->a = cost->b = cost->c = 0;
        else if (!fit_terms(cost, true, true, mean) && !fit_terms(cost, true, false, mean) &&
                 !fit_terms(cost, false, true, mean))
            halve(cost, mean);
        cost->fitted = cost->count;
    }
    return cost->a + cost->b * amount.computed + cost->c * amount.copied;
}
