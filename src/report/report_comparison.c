/*
 * report_comparison.c: comparison_report_<model>.md: one device and several, batch by batch, with a
 * recommendation for each, break-even, and what was published for a model of that name.
 *
 * A study may sweep over other keys (allreduce=ring,hierarchical): each such set has its own
 * conclusion.
 */
#include "report/report_internal.h"

#include "analysis/analysis_build.h"
#include "analysis/analysis_published.h"
#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

struct set {
    const char *label; /* lab_training_label's */
    struct lab_gangs gangs;
};

struct comparison {
    const struct lab_study_table *study;
    const char *model;
    double parameters;
    struct set *sets; /* with a point of the model on several devices */
    int count;
    struct lab_arena *arena;
};

/* --- rows --- */

static bool is_shown(const struct comparison *comparison, const struct lab_gang *gang) {
    return gang->alone_count > 0 && lab_str_equal(gang->model, comparison->model);
}

static void find_sets(struct comparison *comparison) {
    struct lab_training_set *sets;
    struct lab_arena *arena = comparison->arena;
    int count = lab_training_sets(comparison->study, arena, &sets);
    comparison->sets = lab_arena_alloc(arena, (size_t)count + 1, sizeof *comparison->sets);
    for (int i = 0; i < count; i++) {
        struct lab_study_table *own = lab_arena_alloc(arena, 1, sizeof *own);
        *own = lab_training_set_study(comparison->study, &sets[i], arena);
        struct set set = {sets[i].what, lab_gangs_make(own, "training", arena)};
        bool any = false;
        for (int g = 0; g < set.gangs.count; g++)
            any |= is_shown(comparison, &set.gangs.items[g]);
        if (any)
            comparison->sets[comparison->count++] = set;
    }
}

static const char *recommendation(const char *grade) {
    static const struct {
        const char *grade, *words;
    } all[] = {{"beneficial", "Several devices beneficial"},
               {"faster", "Several devices faster"},
               {"marginal", "Marginal difference"},
               {"stay single", "Single device preferred"},
               {"independent", "Single device: several train a model each"},
               {LAB_SPEEDUP_NO_ANSWER, "No answer: simulated"}};
    int found = LAB_FIND(all, sizeof all / sizeof *all, grade, grade);
    return found < 0 ? "Inconclusive: needs more runs" : all[found].words;
}

static void add_share(struct lab_str *text, double share) {
    if (isnan(share))
        lab_str_add(text, " – |");
    else
        lab_str_printf(text, " %.1f%% |", 100 * share);
}

static void add_row(struct lab_str *text, const struct comparison *comparison,
                    const struct set *set, const struct lab_gang *gang) {
    const struct lab_effect *speedup = &gang->speedup;
    lab_str_printf(text, "| %.0f%s |", gang->batch, gang->scaling ? " each" : "");
    if (comparison->count > 1)
        lab_str_printf(text, " %s |", set->label);
    lab_str_printf(text, " %d | %.0f | %.0f | %.2fx", gang->devices, gang->one_per_s,
                   gang->many_per_s, speedup->value);
    if (!isnan(speedup->interval.low))
        lab_str_printf(text, " [%.2f, %.2f]", speedup->interval.low, speedup->interval.high);
    lab_str_add(text, " |");
    add_share(text, gang->efficiency.value);
    add_share(text, gang->communication);
    lab_str_printf(text, " %s |\n", recommendation(gang->grade));
}

static void add_summary(struct lab_str *text, const struct comparison *comparison) {
    bool sets = comparison->count > 1;
    const char *share = lab_gangs_share_note(comparison->study, comparison->arena);
    lab_str_printf(text,
                   "# %s: one device and several%s\n\n%.0f parameters. Throughput in %s, "
                   "speed-ups with 95%% intervals over runs, all-reduce as a share of a "
                   "step.%s\n\n",
                   comparison->model, comparison->study->simulated ? " (simulated)" : "",
                   comparison->parameters, lab_analysis_rate_unit(comparison->study),
                   lab_training_lacks_nvlink(comparison->study) ? " " LAB_TRAINING_SIMULATED_SUMS
                                                                : "");
    if (share)
        lab_str_printf(text, "%s\n\n", share);
    lab_str_printf(
        text,
        "## Summary\n\n| Batch Size |%s Devices | Single | Multi | Speedup | Efficiency | "
        "All-reduce | Recommendation |\n|---:|%s---:|---:|---:|---:|---:|---:|---|\n",
        sets ? " With |" : "", sets ? "---|" : "");
    for (int s = 0; s < comparison->count; s++)
        for (int i = 0; i < comparison->sets[s].gangs.count; i++)
            if (is_shown(comparison, &comparison->sets[s].gangs.items[i]))
                add_row(text, comparison, &comparison->sets[s],
                        &comparison->sets[s].gangs.items[i]);
}

/* --- published --- */

/* The speed-up of two devices at that batch, training one model; NaN = none. */
static double here(const struct comparison *comparison, const struct set *set, int batch) {
    for (int i = 0; i < set->gangs.count; i++) {
        const struct lab_gang *gang = &set->gangs.items[i];
        if (is_shown(comparison, gang) && gang->devices == 2 && gang->batch == batch &&
            !gang->scaling && !gang->independent)
            return gang->speedup.value;
    }
    return NAN;
}

static void add_published(struct lab_str *text, const struct comparison *comparison) {
    const char *claimed = lab_published_size(comparison->model);
    bool sets = comparison->count > 1;
    if (!claimed)
        return;
    lab_str_printf(text,
                   "\n## Published values of a model of this name\n\nTwo RTX 4070 Ti SUPER without "
                   "peer access, TensorFlow, samples/s. %s The model was said to have %s "
                   "parameters; its layers have %.0f.\n\n"
                   "| Batch Size | One | Two | Speedup |",
                   lab_gangs_unshared(comparison->study)
                       ? "The simulated host's times were fitted to these values."
                       : "Measured on another machine: no check of the values here.",
                   claimed, comparison->parameters);
    for (int i = 0; i < comparison->count; i++)
        lab_str_printf(text, " Here%s%s |", sets ? ", " : "",
                       sets ? comparison->sets[i].label : "");
    lab_str_add(text, "\n|---:|---:|---:|---:|");
    for (int i = 0; i < comparison->count; i++)
        lab_str_add(text, "---:|");
    lab_str_add(text, "\n");
    for (const struct lab_published *row = lab_published; row->model; row++) {
        if (!lab_str_equal(row->model, comparison->model))
            continue;
        lab_str_printf(text, "| %d | %.0f | %.0f | %.2fx |", row->batch, row->one, row->two,
                       row->two / row->one);
        for (int i = 0; i < comparison->count; i++) {
            double ours = here(comparison, &comparison->sets[i], row->batch);
            if (isnan(ours))
                lab_str_add(text, " – |");
            else
                lab_str_printf(text, " %.2fx |", ours);
        }
        lab_str_add(text, "\n");
    }
}

/* --- findings --- */

static const char *conclude(const struct comparison *comparison, const struct set *set) {
    static const struct {
        const char *grade, *all, *some;
    } kinds[] = {
        {"beneficial", "several devices train it faster", "beneficial"},
        {"faster", "several devices train it faster", "faster"},
        {"stay single", "one device trains it faster; stay on one", "single preferred"},
        {"marginal", "marginal difference; one device will do", "marginal"},
        {"independent",
         "allreduce=none: each device trains a model of its own, and no training is faster",
         "independent"},
        {LAB_SPEEDUP_NO_ANSWER, "no answer for real devices: simulated ones don't share a batch",
         "no answer"},
        {"inconclusive", "inconclusive; needs more runs", "inconclusive"}};
    const char *some = NULL;
    int total = 0, found[sizeof kinds / sizeof *kinds] = {0};
    for (int i = 0; i < set->gangs.count; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (is_shown(comparison, &set->gangs.items[i]) &&
                lab_str_equal(set->gangs.items[i].grade, kinds[k].grade)) {
                found[k]++;
                total++;
            }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (found[k] == total && total > 0)
            return kinds[k].all;
        if (found[k] > 0)
            some =
                lab_arena_printf(comparison->arena, "%s%s%s at %d of %d points", some ? some : "",
                                 some ? ", " : "", kinds[k].some, found[k], total);
    }
    return some ? some : "not tested";
}

static void add_findings(struct lab_str *text, const struct comparison *comparison,
                         const struct set *set) {
    struct lab_arena *arena = comparison->arena;
    double log_sum = 0;
    int count = 0;
    bool weak = false, independent = false;
    for (int i = 0; i < set->gangs.count; i++) {
        const struct lab_gang *gang = &set->gangs.items[i];
        if (!is_shown(comparison, gang))
            continue;
        log_sum += log(gang->speedup.value);
        count++;
        weak |= gang->scaling != NULL;
        independent |= gang->independent;
    }
    const char *of = comparison->count > 1 ? lab_arena_printf(arena, " (%s)", set->label) : "";
    const char *even = lab_gangs_break_even_words(&set->gangs, comparison->model, arena);
    lab_str_printf(
        text, "\n**Conclusion**%s: %s%s\n\n**Average %s**%s: %.2fx (geometric mean of %d)\n", of,
        conclude(comparison, set),
        weak && !independent ? "; scaling=weak: the batch grows with the devices" : "",
        independent ? "Throughput of All Devices" : "Speedup", of, exp(log_sum / count), count);
    if (lab_gangs_share_note(comparison->study, arena))
        even = "No answer: simulated.";
    if (!independent)
        lab_str_printf(text, "\n**Break-even**%s: %s\n", of,
                       even ? even : "Not tested: run more batch sizes.");
}

/* --- the whole --- */

void report_training_comparison(struct report_found *found, const struct lab_study_table *study,
                                const char *model, double parameters) {
    struct comparison comparison = {
        .study = study, .model = model, .parameters = parameters, .arena = found->arena};
    LAB_AUTO(str, text);
    find_sets(&comparison);
    if (comparison.count == 0)
        return;
    add_summary(&text, &comparison);
    lab_str_add(&text, "\n## Key Findings\n");
    for (int i = 0; i < comparison.count; i++)
        add_findings(&text, &comparison, &comparison.sets[i]);
    add_published(&text, &comparison);
    report_add_file(found, lab_arena_printf(found->arena, "comparison_report_%s.md", model), &text);
}
