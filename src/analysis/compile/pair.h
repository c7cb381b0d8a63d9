/* compile/pair.h: a model compiled against the same model not compiled: what it gains, what it
 * costs. */
#ifndef LAB_ANALYSIS_COMPILE_PAIR_H
#define LAB_ANALYSIS_COMPILE_PAIR_H

#include "analysis/analysis_group.h"
#include "stats/fit.h"

#define COMPILE_CONFIDENCE 0.95

struct compile_pair {
    const struct lab_study_point *plain, *compiled;
    struct lab_study_ratio gain; /* rate compiled / plain */
    struct lab_effect cost_s;    /* set-up and first iteration, compiled − plain; NaN = unknown */
    bool setup_known;            /* the set-up is in the cost; else the first iteration alone */
    /* Samples after which compiling has paid for itself: where the time of both is the same. NaN =
     * never, or unknown; an end beyond COMPILE_NEVER is unbounded. */
    struct lab_crossover break_even;
};

#define COMPILE_NEVER 1e15 /* samples */

struct compile_place { /* all models of a device, a node and whatever else was asked for */
    const char *name;
    struct compile_pair **pairs; /* by rising work */
    int count;
};

/* All but `gain`, which is judged beside others. */
void compile_pair_weigh(struct compile_pair *pair);

void compile_add_chart(struct lab_analysis_result *result, const struct compile_place *places,
                       int count, int pair_count, struct lab_arena *arena);

#endif
