/*
 * pair.c: what compiling costs, and when that is paid back.
 *
 * The time for n samples is a line: set-up + n × seconds a sample. Both lines are known as means
 * over runs, so that the break-even is where two lines with known errors meet (Fieller's interval).
 * Set-up and speed of a run are taken as independent of each other.
 */
#include "analysis/compile/pair.h"

#include <math.h>

/* The slowest rank's, since a gang begins when all are ready. */
static double first_ms(const struct lab_study_run *run) {
    double most = NAN;
    for (int i = 0; i < run->result->rank_count; i++)
        most = fmax(most, run->result->ranks[i].first_iteration_ms);
    return most;
}

static double opening_s(const struct lab_study_run *run) {
    double most = NAN;
    for (int i = 0; i < run->result->rank_count; i++)
        most = fmax(most, run->result->ranks[i].setup_s);
    return most;
}

/* What the first iteration takes beyond a usual one. */
static double first_excess_s(const struct lab_study_run *run) {
    double first_s = 1e-3 * first_ms(run);
    double usual_s = 1e-3 * run->result->latency_ms_median;
    if (isnan(usual_s))
        usual_s = run->time_s;
    return isnan(usual_s) ? first_s : first_s - usual_s;
}

static double setup_s(const struct lab_study_run *run, bool with_setup) {
    double first_s = first_excess_s(run), set_up_s = opening_s(run);
    if (!with_setup)
        return first_s;
    return isnan(first_s) ? set_up_s : set_up_s + first_s;
}

static bool has_setup(const struct lab_study_point *point) {
    for (int i = 0; i < point->count; i++)
        if (isnan(opening_s(point->runs[i])))
            return false;
    return true;
}

/* --- lines --- */

struct side {
    double *setups_s, *per_sample_s; /* by run; one allocation */
    size_t count;
};

static void side_init(struct side *side, const struct lab_study_point *point, bool with_setup) {
    side->count = 0;
    side->setups_s = lab_mem_alloc(2 * (size_t)point->count + 1, sizeof(double));
    side->per_sample_s = side->setups_s + point->count;
    for (int i = 0; i < point->count; i++) {
        double value = setup_s(point->runs[i], with_setup);
        if (isnan(value) || !(point->rates[i] > 0))
            continue;
        side->setups_s[side->count] = value;
        side->per_sample_s[side->count++] = 1 / point->rates[i];
    }
}

/* Means over runs in the shape of a fitted line. */
static struct lab_fit known_line(const struct side *side) {
    double n = (double)side->count;
    return (struct lab_fit){
        .state = LAB_FIT_OK,
        .method = LAB_FIT_LINEAR,
        .model = &lab_law_line,
        .n = side->count,
        .p = 2,
        .rank = 2,
        .coefficients = {lab_stats_mean(side->setups_s, side->count),
                         lab_stats_mean(side->per_sample_s, side->count)},
        .standard_errors = {lab_stats_stddev(side->setups_s, side->count) / sqrt(n),
                            lab_stats_stddev(side->per_sample_s, side->count) / sqrt(n)},
        .correlation = {{1, 0}, {0, 1}},
        .degrees_of_freedom = n - 1,
    };
}

static struct lab_crossover meet(const struct side *plain, const struct side *compiled) {
    struct lab_crossover crossover = {NAN, {NAN, NAN, COMPILE_CONFIDENCE}};
    if (plain->count < 1 || compiled->count < 1)
        return crossover;
    struct lab_fit a = known_line(plain), b = known_line(compiled);
    if (plain->count > 1 && compiled->count > 1)
        return lab_fit_crossover(&a, &b, 0, COMPILE_NEVER, COMPILE_CONFIDENCE);
    double at = (b.coefficients[0] - a.coefficients[0]) / (a.coefficients[1] - b.coefficients[1]);
    if (at >= 0 && at <= COMPILE_NEVER)
        crossover.at = at;
    return crossover;
}

void compile_pair_weigh(struct compile_pair *pair) {
    struct side plain, compiled;
    pair->setup_known = has_setup(pair->plain) && has_setup(pair->compiled);
    side_init(&plain, pair->plain, pair->setup_known);
    side_init(&compiled, pair->compiled, pair->setup_known);
    struct lab_mean_test test = lab_stats_welch(compiled.setups_s, compiled.count, plain.setups_s,
                                                plain.count, COMPILE_CONFIDENCE);
    pair->cost_s = (struct lab_effect){lab_stats_mean(compiled.setups_s, compiled.count) -
                                           lab_stats_mean(plain.setups_s, plain.count),
                                       test.interval};
    pair->break_even = meet(&plain, &compiled);
    lab_mem_free(plain.setups_s);
    lab_mem_free(compiled.setups_s);
}
