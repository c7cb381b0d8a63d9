/* proof_judge.c: from counts to verdicts, and to the table that docs/PROOF.md shows. */
#include "proof.h"

#include "stats/stats.h"

#include <math.h>

#define PROMISED   0.95
#define LEVEL      0.05
#define BAND_LOW   0.93
#define BAND_HIGH  0.97
#define POOLED_MIN 2000
#define CELL_P     0.001
#define SAMPLE_P   0.00001 /* a new seed each time: what fails once in 100,000 cells isn't chance */

static const char *const kind_words[] = {[PROOF_COVERS] = "covers 93 to 97 %",
                                         [PROOF_ALARMS] = "at most 5 %",
                                         [PROOF_FINDS] = "at least 95 %"};

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
    struct lab_arena arena;
    lab_arena_init(&arena);
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
    lab_arena_release(&arena);
}

/* --- Markdown --- */

static void add_row(const struct proof_tally *tally, const struct proof_experiment *experiment,
                    int claim, void *state) {
    struct lab_str *out = state;
    struct proof_count pooled;
    bool holds = proof_claim_holds(tally, experiment, claim, &pooled);
    lab_str_printf(out, "| `%s` | %s | %s | %lld | %.2f %% | %s |\n", experiment->name,
                   experiment->claims[claim].name, kind_words[experiment->claims[claim].kind],
                   (long long)pooled.trials, percent(&pooled), holds ? "yes" : "**no**");
}

static void add_cells(const struct proof_tally *tally, const struct proof_experiment *experiment,
                      int claim, void *state) {
    struct lab_str *out = state;
    struct lab_arena arena;
    lab_arena_init(&arena);
    if (claim == 0)
        lab_str_printf(out, "\n## `%s`\n\n%s\n", experiment->name, experiment->about);
    lab_str_printf(
        out, "\n%s:\n\n| planted | hits | trials | share | p | |\n|---|--:|--:|--:|--:|---|\n",
        experiment->claims[claim].name);
    for (int i = 0; i < tally->count; i++) {
        const struct proof_outcome *outcome = &tally->outcomes[i];
        if (outcome->experiment != experiment || outcome->claim != claim ||
            outcome->count.trials == 0)
            continue;
        lab_str_printf(out, "| %s | %lld | %lld | %.1f %% | %.2g | %s%s |\n",
                       experiment->label(outcome->cell, &arena), (long long)outcome->count.hits,
                       (long long)outcome->count.trials, percent(&outcome->count), outcome->p,
                       outcome->holds ? "" : "**fails**", outcome->redrawn ? " drawn again" : "");
    }
    lab_arena_release(&arena);
}

void proof_write_markdown(const struct proof_tally *tally, struct lab_str *out) {
    lab_str_printf(
        out,
        "# Proof by planted truth\n\n"
        "Written by `tools/proof`; do not edit. Seed %llu%s.\n\n"
        "Simulated machines, labelled so everywhere, have effects of known size planted in them. "
        "Studies of them are run, and the analyses, which see nothing but the studies' tables, are "
        "held against what was planted. A claim holds if its pooled share is as promised: "
        "intervals "
        "at 95 %% hold the truth in 93 to 97 %% of at least 2,000 of them; the lower bound of the "
        "share of false alarms, at 99 %%, isn't above 5 %%; what is there is found in at least "
        "95 %%. Besides, no cell may be too improbable (binomial test, p ≤ 0.001). Of hundreds of "
        "cells one is that by chance now and then: such a cell is drawn once more with another "
        "seed, and that draw counts.\n\n"
        "| analysis | claim | promise | trials | share | holds |\n|---|---|---|--:|--:|---|\n",
        (unsigned long long)tally->seed, tally->sample ? "; a sample, not the whole" : "");
    walk(tally, add_row, out);
    walk(tally, add_cells, out);
}
