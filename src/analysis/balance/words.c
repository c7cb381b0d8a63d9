/* words.c: what is to be said of a balance: answers, advice, notes. */
#include "analysis/analysis_build.h"
#include "analysis/balance/balance.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>

#define RUNS_MIN 5 /* fewer can't be significant at 5 % by any order */

const char *lab_balance_advice(const struct lab_balance *balance, struct lab_arena *arena) {
    int worst = lab_balance_worst(balance), gpus = balance->stats->gpu_count;
    if (worst < 0)
        return NULL;
    double cv = balance->cv[worst];
    const char *title = lab_recording_stats_kinds[worst].title;
    for (int m = 0; m < LAB_BALANCED && cv < 0.05; m++)
        if (balance->drift[m].direction > 0)
            return lab_arena_printf(arena, "nothing to change yet; watch %s, which drifts apart",
                                    lab_recording_stats_kinds[m].noun);
    if (cv < 0.05)
        return "nothing to change";
    if (cv < 0.10)
        return lab_arena_printf(arena,
                                "%s: watch the trend; there is little to gain. A batch size that "
                                "%d divides gives each GPU the same share",
                                title, gpus);
    if (cv < 0.20)
        return lab_arena_printf(arena,
                                "%s: review the batch split and the loading of data: a batch size "
                                "that %d divides, as many samples and workers for each rank",
                                title, gpus);
    return lab_arena_printf(
        arena,
        "%s: check that each rank has a GPU of its own and its share of the batch (a size that %d "
        "divides), DDP's settings (find_unused_parameters off), fragmented memory, and contexts "
        "that processes hold on GPUs which aren't theirs (all of them on GPU 0, often)",
        title, gpus);
}

static void add_window(struct lab_str *text, const struct lab_balance *balance, int window) {
    double length_s = balance->stats->duration_s / balance->windows;
    lab_str_add_duration(text, window * length_s, LAB_DURATION_PRECISE);
    lab_str_add(text, " to ");
    lab_str_add_duration(text, (window + 1) * length_s, LAB_DURATION_PRECISE);
}

const char *lab_balance_over_time(const struct lab_balance *balance, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int worst = -1;
    bool drifts = false;
    for (int m = 0; m < LAB_BALANCED; m++) {
        const struct lab_drift *drift = &balance->drift[m];
        if (drift->worst >= 0 &&
            (worst < 0 || balance->window_cv[m][drift->worst] >
                              balance->window_cv[worst][balance->drift[worst].worst]))
            worst = m;
        if (drift->direction == 0)
            continue;
        lab_str_printf(&text, "%s %s: CV %.1f %% at first, %.1f %% at last; ",
                       lab_recording_stats_kinds[m].noun,
                       drift->direction > 0 ? "drifts apart" : "comes together", 100 * drift->first,
                       100 * drift->last);
        drifts = true;
    }
    if (worst < 0 || balance->windows < 2)
        return NULL;
    if (lab_balance_is_steady(balance))
        return "the same throughout";
    if (!drifts)
        lab_str_add(&text, "no drift; ");
    lab_str_add(&text, "worst from ");
    add_window(&text, balance, balance->drift[worst].worst);
    double cv = balance->window_cv[worst][balance->drift[worst].worst];
    lab_str_printf(&text, ": %s, CV %.1f %% (%s)", lab_recording_stats_kinds[worst].noun, 100 * cv,
                   lab_recording_stats_grade(cv));
    return lab_arena_strdup(arena, text.text);
}

/* --- GPUs that nobody uses --- */

/* less utilisation than this, and less memory than a tenth of the most: */
#define IDLE_PERCENT  1.0
#define UNUSED_MEMORY 0.1 /* nobody works there */

/* "2,3"; NULL = nothing is to be told apart. */
static const char *find_unused(const struct lab_recording_stats *stats, struct lab_arena *arena,
                               const char **ret_used) {
    const char *lists[2] = {"", ""}; /* used, unused */
    int counts[2] = {0};
    double most = 0;
    for (int g = 0; g < stats->gpu_count; g++)
        most = fmax(most, stats->gpus[g].figures[LAB_RECORDING_STATS_MEMORY].mean);
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_recording_stats_gpu *gpu = &stats->gpus[g];
        int idle = gpu->figures[LAB_RECORDING_STATS_UTILIZATION].mean < IDLE_PERCENT &&
                   gpu->figures[LAB_RECORDING_STATS_MEMORY].mean < UNUSED_MEMORY * most;
        lists[idle] = lab_arena_printf(arena, "%s%s%d", lists[idle], counts[idle]++ ? "," : "",
                                       gpu->track->entity.index);
    }
    *ret_used = lists[0];
    return counts[1] > 0 && counts[0] > 1 ? lists[1] : NULL;
}

/* The grade that all metrics have, or NULL. */
static const char *same_grade(const struct lab_balance *balance) {
    const char *grade = NULL;
    for (int m = 0; m < LAB_BALANCED; m++) {
        const char *own = lab_recording_stats_grade(balance->cv[m]);
        if (own && grade && !lab_str_equal(own, grade))
            return NULL;
        grade = own ? own : grade;
    }
    return grade;
}

const char *lab_balance_answer(const struct lab_balance *balance, struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    if (stats->gpu_count == 0)
        return "No GPU was recorded: balance needs two.";
    if (stats->gpu_count == 1)
        return lab_arena_printf(arena, "Only %s was recorded: balance needs two.",
                                stats->gpus[0].name);
    const char *grade = same_grade(balance), *used, *unused = find_unused(stats, arena, &used);
    LAB_AUTO(str, text);
    int told = 0;
    lab_str_printf(&text, "The balance of %d GPUs is %s", stats->gpu_count, grade ? grade : "");
    lab_str_add(&text, grade ? ": " : "");
    for (int m = 0; m < LAB_BALANCED; m++) {
        if (isnan(balance->cv[m]))
            continue;
        lab_str_add(&text, told++ ? ", " : grade ? "CV " : "");
        if (grade)
            lab_str_printf(&text, "%.1f %% in %s", 100 * balance->cv[m],
                           lab_recording_stats_kinds[m].noun);
        else
            lab_str_printf(&text, "%s in %s (CV %.1f %%)",
                           lab_recording_stats_grade(balance->cv[m]),
                           lab_recording_stats_kinds[m].noun, 100 * balance->cv[m]);
    }
    lab_str_add(&text, told ? "." : "unknown: neither memory nor load was recorded.");
    if (told && unused)
        lab_str_printf(&text, " Nobody seems to use GPU %s.", unused);
    return lab_arena_strdup(arena, text.text);
}

/* --- notes --- */

#define LOW_PERCENT 5.0

void lab_balance_add_notes(const struct lab_recording_stats *stats, const char *const **notes,
                           struct lab_arena *arena) {
    const char *used, *unused = find_unused(stats, arena, &used);
    double utilization = lab_recording_stats_together(stats, LAB_RECORDING_STATS_UTILIZATION);
    lab_recording_stats_add_notes(&stats, 1, notes, arena);
    if (unused)
        lab_analysis_note(notes, arena,
                          "nobody seems to use GPU %s: gpus=[%s] gives the balance of the others",
                          unused, used);
    else if (stats->gpu_count > 1 && utilization < LOW_PERCENT)
        lab_analysis_note(notes, arena,
                          "the GPUs are nearly idle (%.1f %%): the CV of utilisation and power "
                          "says little",
                          utilization);
}

/* "3 recordings: the worst balance is that of b: poor in utilisation (CV 24.0 %)." */
const char *lab_balance_answer_for_all(const struct lab_balance *balances, int count,
                                       struct lab_arena *arena) {
    const struct lab_balance *worst = NULL;
    int metric = -1;
    for (int i = 0; i < count; i++) {
        int own = lab_balance_worst(&balances[i]);
        if (own >= 0 && (!worst || balances[i].cv[own] > worst->cv[metric])) {
            worst = &balances[i];
            metric = own;
        }
    }
    if (!worst)
        return lab_arena_printf(arena, "%d recordings, none with two GPUs to compare.", count);
    return lab_arena_printf(
        arena, "%d recordings: the worst balance is that of %s: %s in %s (CV %.1f %%).", count,
        worst->stats->source->name, lab_recording_stats_grade(worst->cv[metric]),
        lab_recording_stats_kinds[metric].noun, 100 * worst->cv[metric]);
}

void lab_balance_add_rate_note(const struct lab_balance *balances, int count,
                               const char *const **notes, struct lab_arena *arena) {
    struct lab_series rates = {.arena = arena};
    for (int i = 0; i < count; i++) {
        const struct lab_labelled_recording *source = balances[i].stats->source;
        if (!lab_str_equal(source->label, balances[0].stats->source->label))
            return; /* different work: its rates aren't comparable */
        double cv = balances[i].cv[LAB_RECORDING_STATS_UTILIZATION];
        if (!isnan(source->rate) && !isnan(cv))
            lab_series_add_point(&rates, cv, source->rate);
    }
    int n = (int)rates.count;
    if (n < RUNS_MIN)
        return;
    struct lab_correlation found = lab_stats_spearman(rates.x, rates.y, rates.count, n, 0.95);
    if (isnan(found.r))
        return;
    lab_analysis_note(notes, arena,
                      "Throughput against the CV of utilisation, %d runs: rank "
                      "correlation %+.2f, %s.",
                      n, found.r,
                      !(found.p < 0.05) ? "which chance explains"
                      : found.r < 0     ? "the less balanced, the slower"
                                        : "the less balanced, the faster");
}
