/* proof_judge.c: from counts to verdicts, and to the table that docs/PROOF.md shows. */
#include "proof.h"

#include "stats/stats.h"

#include <math.h>

#define PROMISED      0.95
#define LEVEL         0.05
#define BAND_LOW      0.93
#define BAND_HIGH     0.97
#define POOLED_MIN    2000
#define PREDICTS_LOW  0.90
#define PREDICTS_HIGH 0.99
#define CELL_P        0.001
/* a new seed each time: what fails once in 100,000 cells isn't chance */
#define SAMPLE_P 0.00001

static const char *const kind_words[] = {[PROOF_COVERS] = "covers 93 to 97%",
                                         [PROOF_ALARMS] = "at most 5%",
                                         [PROOF_FINDS] = "at least 95%",
                                         [PROOF_PREDICTS] = "covers 90 to 99%"};

/* One side for alarms and finds: to be better than promised is no fault. */
static double cell_p(enum proof_kind kind, const struct proof_count *count) {
    if (count->trials == 0)
        return NAN;
    switch (kind) {
    case PROOF_COVERS:
        return lab_stats_binomial_test(count->hits, count->trials, PROMISED);
    case PROOF_ALARMS:
        return 1 - lab_stats_binomial_cdf(count->hits - 1, count->trials, LEVEL);
    case PROOF_FINDS:
        return lab_stats_binomial_cdf(count->hits, count->trials, PROMISED);
    case PROOF_PREDICTS: /* of so many hits or fewer at the lower end, or more at the upper */
        return fmin(lab_stats_binomial_cdf(count->hits, count->trials, PREDICTS_LOW),
                    1 - lab_stats_binomial_cdf(count->hits - 1, count->trials, PREDICTS_HIGH));
    }
    return NAN;
}

bool proof_cell_holds(enum proof_kind kind, const struct proof_count *count, bool sample,
                      double *ret_p) {
    *ret_p = cell_p(kind, count);
    return isnan(*ret_p) || *ret_p > (sample ? SAMPLE_P : CELL_P);
}

static bool pooled_holds(enum proof_kind kind, const struct proof_count *pooled, bool sample) {
    double share = (double)pooled->hits / (double)pooled->trials, p;
    if (sample)
        return proof_cell_holds(kind, pooled, true, &p);
    switch (kind) {
    case PROOF_COVERS:
        return pooled->trials >= POOLED_MIN && share >= BAND_LOW && share <= BAND_HIGH;
    case PROOF_ALARMS: /* the lower bound on one side at 99 % */
        return lab_stats_binomial_interval(pooled->hits, pooled->trials, 0.98).low <= LEVEL;
    case PROOF_FINDS:
        return share >= PROMISED;
    case PROOF_PREDICTS:
        return pooled->trials >= POOLED_MIN && share >= PREDICTS_LOW && share <= PREDICTS_HIGH;
    }
    return false;
}

bool proof_claim_holds(const struct proof_tally *tally, const struct proof_experiment *experiment,
                       int claim, struct proof_count *ret_pooled) {
    struct proof_count pooled = {0};
    bool cells = true;
    for (int i = 0; i < tally->count; i++) {
        const struct proof_outcome *outcome = &tally->outcomes[i];
        if (outcome->experiment != experiment || outcome->claim != claim)
            continue;
        pooled.hits += outcome->count.hits;
        pooled.trials += outcome->count.trials;
        cells = cells && outcome->holds;
    }
    *ret_pooled = pooled;
    return cells && pooled.trials > 0 &&
           pooled_holds(experiment->claims[claim].kind, &pooled, tally->sample);
}

/* Calls for each claim of each experiment that was run, in order. */
typedef void each_claim(const struct proof_tally *tally, const struct proof_experiment *experiment,
                        int claim, void *state);

static void walk(const struct proof_tally *tally, each_claim *each, void *state) {
    const struct proof_experiment *last = NULL;
    for (int i = 0; i < tally->count; i++) {
        const struct proof_experiment *experiment = tally->outcomes[i].experiment;
        if (experiment == last)
            continue;
        last = experiment;
        for (int c = 0; c < experiment->claim_count; c++)
            each(tally, experiment, c, state);
    }
}

static void and_holds(const struct proof_tally *tally, const struct proof_experiment *experiment,
                      int claim, void *state) {
    struct proof_count pooled;
    bool *holds = state;
    *holds = *holds && proof_claim_holds(tally, experiment, claim, &pooled);
}

bool proof_all_hold(const struct proof_tally *tally) {
    bool holds = tally->count > 0;
    walk(tally, and_holds, &holds);
    return holds;
}

/* --- text --- */

static double percent(const struct proof_count *count) {
    return count->trials ? 100.0 * (double)count->hits / (double)count->trials : (double)NAN;
}

static void add_text(const struct proof_tally *tally, const struct proof_experiment *experiment,
                     int claim, void *state) {
    struct lab_str *out = state;
    struct proof_count pooled;
    bool holds = proof_claim_holds(tally, experiment, claim, &pooled);
    lab_str_printf(out, "%-10s %-44s %6.2f %% of %6lld  (%s)  %s\n", experiment->name,
                   experiment->claims[claim].name, percent(&pooled), (long long)pooled.trials,
                   kind_words[experiment->claims[claim].kind], holds ? "holds" : "FAILS");
}

void proof_write_text(const struct proof_tally *tally, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    walk(tally, add_text, out);
    for (int i = 0; i < tally->count; i++) {
        const struct proof_outcome *outcome = &tally->outcomes[i];
        if (outcome->holds)
            continue;
        lab_str_printf(out, "  FAILS: %s, %s, %s: %lld of %lld, p = %.2g\n",
                       outcome->experiment->name, outcome->experiment->claims[outcome->claim].name,
                       outcome->experiment->label(outcome->cell, &arena),
                       (long long)outcome->count.hits, (long long)outcome->count.trials,
                       outcome->p);
    }
}

/* --- Markdown --- */

static void add_row(const struct proof_tally *tally, const struct proof_experiment *experiment,
                    int claim, void *state) {
    struct lab_str *out = state;
    struct proof_count pooled;
    bool holds = proof_claim_holds(tally, experiment, claim, &pooled);
    lab_str_printf(out, "| `%s` | %s | %s | %lld | %.2f%% | %s |\n", experiment->name,
                   experiment->claims[claim].name, kind_words[experiment->claims[claim].kind],
                   (long long)pooled.trials, percent(&pooled), holds ? "yes" : "**no**");
}

/* A line for each claim: the cell that is least probable stands for all. */
static void add_worst(const struct proof_tally *tally, const struct proof_experiment *experiment,
                      int claim, void *state) {
    struct lab_str *out = state;
    LAB_AUTO(arena, arena);
    const struct proof_outcome *worst = NULL;
    int cells = 0;
    if (claim == 0)
        lab_str_printf(out,
                       "\n**`%s`**: %s\n\n| claim | cells | least probable | p |\n"
                       "|---|--:|---|--:|\n",
                       experiment->name, experiment->about);
    for (int i = 0; i < tally->count; i++) {
        const struct proof_outcome *outcome = &tally->outcomes[i];
        if (outcome->experiment != experiment || outcome->claim != claim ||
            outcome->count.trials == 0)
            continue;
        cells++;
        worst = !worst || outcome->p < worst->p ? outcome : worst;
    }
    if (worst)
        lab_str_printf(out, "| %s | %d | %.1f%% of %lld: %s | %.2g%s |\n",
                       experiment->claims[claim].name, cells, percent(&worst->count),
                       (long long)worst->count.trials, experiment->label(worst->cell, &arena),
                       worst->p, worst->holds ? "" : ", **fails**");
}

static const char criteria[] =
    "\n## Details: effects planted one at a time\n\n"
    "One effect is planted in several sizes, at several levels of noise. A cell is one size at one "
    "level.\n\n"
    "| promise | all cells together | each cell |\n|---|---|---|\n"
    "| covers 93 to 97% | of at least 2,000 intervals at 95% | p > 0.001, two-sided |\n"
    "| at most 5% | lower bound of the share, one-sided at 99% | p > 0.001, one-sided |\n"
    "| at least 95% | the share | p > 0.001, one-sided |\n"
    "| covers 90 to 99% | of at least 2,000 intervals at 95% | p > 0.001, one-sided each |\n\n"
    "A cell with p ≤ 0.001 is drawn once more with another seed; the second draw counts. The "
    "sample of every build takes some cells with fewer studies and fails at p ≤ 0.00001.\n\n"
    "| analysis | claim | promise | trials | share | holds |\n|---|---|---|--:|--:|---|\n";

static const char limits[] =
    "\nNot proven by these:\n\n"
    "- `correlate`: neighbours below 2 GB/s; several devices or runs in one study.\n"
    "- `stability`: drifts below 25 times the noise, change points, throttling. Noise that is "
    "remembered for longer than a second.\n"
    "- `crossover`: where a machine turns between two models. The truth here is that of straight "
    "lines between models that are run. Compared with models at every depth, on 12, 18 and 30 "
    "TFLOP/s, intervals covered in 50% of 2,160 (seed 1).\n"
    "- `speedup`: pairs that share a link with latency. Without noise they run in step and waste "
    "some of the link. Intervals then covered the quiet machine's value in 88% of 2,160 (seed 1).\n"
    "- `training`: more than two devices, weak scaling, and anything beyond what was run.\n"
    "- `scaling` and `transfer`: whether real times follow their models.\n"
    "- `latency`, `balance`, `memory`, `summary`, `compare` and `metrics`: unit tests alone.\n";

static void add_redraws(const struct proof_tally *tally, struct lab_str *out) {
    int cells = 0, redrawn = 0;
    for (int i = 0; i < tally->count; i++) {
        const struct proof_outcome *outcome = &tally->outcomes[i];
        cells += outcome->claim == 0;
        redrawn += outcome->claim == 0 && outcome->redrawn;
    }
    lab_str_printf(out, "\n%d of %d cells were drawn again.\n", redrawn, cells);
}

void proof_write_markdown(const struct proof_tally *tally, struct lab_str *out) {
    if (tally->count == 0)
        return;
    lab_str_add(out, criteria);
    walk(tally, add_row, out);
    add_redraws(tally, out);
    walk(tally, add_worst, out);
    lab_str_add(out, limits);
}
