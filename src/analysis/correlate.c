/*
 * correlate.c: `gpulab analyze correlate`: what the machine did when iterations took longer, or
 * varied more. Every gauge, every counter's rate and every reason that held clocks back, of all
 * GPUs and of the host, against the iterations of each device.
 */
#include "analysis/correlate/correlate.h"
#include "analysis/analysis_build.h"
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"

#include "base/str.h"

#include <math.h>

#define BUDGET 800000 /* windows × resources of all devices: less than a second */

struct correlate_config {
    int64_t top, gpu;
};

static const struct lab_option correlate_options[] = {
    {"top", LAB_OPTION_INT, offsetof(struct correlate_config, top), .fallback = "10", .min = 1,
     .max = 1000, .help = "findings that are shown"},
    {"gpu", LAB_OPTION_INT, offsetof(struct correlate_config, gpu), .fallback = "-1", .min = -1,
     .max = 65536, .help = "only of this device, by its gpu_id; -1 = of all"},
    {NULL},
};

/* --- columns --- */

static const struct lab_doc_column figure_columns[] = {
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"resources", "Resources", LAB_UNIT_COUNT, "Resources"},
    {"constant", "Constant", LAB_UNIT_COUNT},
    {"tested", "Tested", LAB_UNIT_COUNT},
    {"found", "Found", LAB_UNIT_COUNT, "Found"},
};

static const struct lab_doc_column tie_columns[] = {
    {"device", "Device", LAB_UNIT_TEXT},
    {"gpu_id", NULL, LAB_UNIT_COUNT},
    {"resource", NULL, LAB_UNIT_TEXT},
    {NULL, "Resource", LAB_UNIT_TEXT},
    {"figure", NULL, LAB_UNIT_TEXT},
    {NULL, "Goes with", LAB_UNIT_TEXT},
    {"spearman", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Spearman's ρ", LAB_UNIT_FIGURE},
    {"spearman_p", NULL, LAB_UNIT_NUMBER},
    {"p_adjusted", NULL, LAB_UNIT_NUMBER},
    {"pearson", NULL, LAB_UNIT_NUMBER},
    {"pearson_p", NULL, LAB_UNIT_NUMBER},
    {"windows", "Windows", LAB_UNIT_COUNT},
    {"effective_windows", NULL, LAB_UNIT_COUNT},
    {"window_ms", NULL, LAB_UNIT_TIME},
    {"lag_ms", NULL, LAB_UNIT_TIME},
    {"role", NULL, LAB_UNIT_TEXT},
};

static const struct lab_doc_column spike_columns[] = {
    {"device", "Device", LAB_UNIT_TEXT},
    {"resource", NULL, LAB_UNIT_TEXT},
    {NULL, "Spikes of", LAB_UNIT_TEXT},
    {"events", "Events", LAB_UNIT_COUNT},
    {"time_change", "Time", LAB_UNIT_CHANGE, .with_interval = true},
    {"p", NULL, LAB_UNIT_NUMBER},
    {"p_adjusted", NULL, LAB_UNIT_NUMBER},
};

static const struct lab_doc_column device_columns[] = {
    {"device", "Device", LAB_UNIT_TEXT},
    {"runs", "Runs", LAB_UNIT_COUNT},
    {"windows", "Windows", LAB_UNIT_COUNT},
    {"window_ms", "Of", LAB_UNIT_TIME},
    {"resources", "Resources", LAB_UNIT_COUNT},
    {"constant", "Constant", LAB_UNIT_COUNT},
    {"too_few_windows", "Too few windows", LAB_UNIT_COUNT},
    {"found", "Found", LAB_UNIT_COUNT},
};

/* --- tables --- */

static const char *role_name(const struct lab_resource_correlation *correlation) {
    return lab_resource_correlation_is_suspect(correlation) ? "a cause"
           : correlation->role == LAB_RESOURCE_OUTSIDE      ? "a consequence"
           : correlation->role == LAB_RESOURCE_STATE        ? "a consequence"
                                                            : "its own pace";
}

static void add_tie(struct lab_doc_table *table,
                    const struct lab_resource_correlations *correlations,
                    const struct lab_resource_correlation *correlation, struct lab_arena *arena) {
    bool lag = correlation->lag.tried > 0;
    LAB_ROW(
        table, arena, lab_cell_text(correlations->rank_times.device),
        lab_cell_figure(correlations->rank_times.gpu_id),
        lab_cell_text(lab_resource_key(&correlation->resource, arena)),
        lab_cell_text(lab_resource_title(&correlation->resource, arena)),
        lab_cell_text(correlation->figure == LAB_TIE_TIME ? "time" : "spread"),
        lab_cell_text(correlation->figure == LAB_TIE_TIME
                          ? (correlation->spearman.r > 0 ? "longer" : "shorter")
                          : (correlation->spearman.r > 0 ? "more spread" : "less spread")),
        lab_cell_interval(correlation->spearman.r, correlation->spearman.interval.low,
                          correlation->spearman.interval.high,
                          correlation->spearman.interval.confidence),
        lab_cell_text(lab_finding_figure(&correlation->spearman, arena)),
        lab_cell_figure(correlation->spearman.p), lab_cell_figure(correlation->p_adjusted),
        lab_cell_figure(correlation->pearson.r), lab_cell_figure(correlation->pearson.p),
        lab_cell_figure((double)correlation->windows),
        lab_cell_figure(floor(correlation->effective)), lab_cell_figure(correlation->window_s),
        lab_cell_figure(lag ? (double)correlation->lag.lag * correlation->window_s : (double)NAN),
        lab_cell_text(role_name(correlation)));
}

static void add_finding_table(struct lab_analysis_part *part, const struct lab_finding *findings,
                              int count, struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "findings", "What goes together with the iterations", tie_columns, arena);
    for (int i = 0; i < count; i++)
        add_tie(table, findings[i].correlations, findings[i].correlation, arena);
    lab_analysis_hide_empty(table);
}

static void add_all_table(struct lab_analysis_part *part,
                          const struct lab_resource_correlations *correlations, int device_count,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "tested", NULL, tie_columns, arena);
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].count; i++)
            add_tie(table, &correlations[d], &correlations[d].items[i], arena);
}

static void add_spike_table(struct lab_analysis_part *part,
                            const struct lab_resource_correlations *correlations, int device_count,
                            int top, struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "spikes", "Spikes, each against just before it", spike_columns, arena);
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].spike_count && correlations[d].spikes[i].found &&
                        table->row_count < top;
             i++) {
            const struct lab_spikes *spikes = &correlations[d].spikes[i];
            LAB_ROW(table, arena, lab_cell_text(correlations[d].rank_times.device),
                    lab_cell_text(lab_resource_key(&spikes->resource, arena)),
                    lab_cell_text(lab_resource_title(&spikes->resource, arena)),
                    lab_cell_figure(spikes->events),
                    lab_cell_interval(spikes->rise, spikes->interval.low, spikes->interval.high,
                                      spikes->interval.confidence),
                    lab_cell_figure(spikes->p), lab_cell_figure(spikes->p_adjusted));
        }
    lab_analysis_hide_empty(table);
}

static int count_found(const struct lab_resource_correlations *correlations) {
    int count = 0;
    while (count < correlations->count && correlations->items[count].found)
        count++;
    return count;
}

static void add_device_table(struct lab_analysis_part *part,
                             const struct lab_resource_correlations *correlations, int device_count,
                             struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "devices", "By device", device_columns, arena);
    for (int d = 0; d < device_count; d++) {
        LAB_ROW(table, arena, lab_cell_text(correlations[d].rank_times.device),
                lab_cell_figure(correlations[d].rank_times.count),
                lab_cell_figure((double)correlations[d].windows),
                lab_cell_figure(correlations[d].window_s),
                lab_cell_figure(correlations[d].resource_count),
                lab_cell_figure(correlations[d].constant_count),
                lab_cell_figure(correlations[d].short_count),
                lab_cell_figure(count_found(&correlations[d])));
    }
}

/* --- a study --- */

struct correlated {
    const struct lab_study_table *study;
    struct lab_resource_correlations *correlations; /* of each device */
    int device_count;
    struct lab_finding *findings;
    int finding_count;
    int questions, resources, constant, merged;
    int without_iterations, without_samples;
    struct lab_arena *arena;
};

static int list_devices(const struct lab_study_run *const *runs, int run_count, int *ret_ids,
                        int most) {
    int count = 0;
    for (int i = 0; i < run_count; i++)
        for (int r = 0; r < runs[i]->rank_count; r++) {
            int id = runs[i]->ranks[r].gpu_id, at = 0;
            while (at < count && ret_ids[at] < id)
                at++;
            if ((at < count && ret_ids[at] == id) || count == most)
                continue;
            for (int k = count++; k > at; k--)
                ret_ids[k] = ret_ids[k - 1];
            ret_ids[at] = id;
        }
    return count;
}

#define DEVICES_MAX 256

/* Leaves one of them. */
static int only(int *ids, int count, int64_t wanted) {
    for (int i = 0; i < count; i++)
        if (ids[i] == wanted) {
            ids[0] = ids[i];
            return 1;
        }
    return 0;
}

static void correlate_study(struct correlated *made, int64_t gpu) {
    const struct lab_study_table *study = made->study;
    const struct lab_study_run **runs =
        lab_arena_alloc(made->arena, (size_t)study->run_count + 1, sizeof *runs);
    int ids[DEVICES_MAX], run_count = 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].used)
            runs[run_count++] = &study->runs[i];
    made->device_count = list_devices(runs, run_count, ids, DEVICES_MAX);
    if (gpu >= 0)
        made->device_count = only(ids, made->device_count, gpu);
    made->correlations =
        lab_arena_alloc(made->arena, (size_t)made->device_count + 1, sizeof *made->correlations);
    for (int d = 0; d < made->device_count; d++) {
        lab_resource_correlations_make(runs, run_count, ids[d],
                                       (size_t)(BUDGET / made->device_count), made->arena,
                                       &made->correlations[d]);
        made->questions += made->correlations[d].count;
        made->resources += made->correlations[d].resource_count;
        made->constant += made->correlations[d].constant_count;
        made->merged += made->correlations[d].merged;
        made->without_iterations += made->correlations[d].rank_times.without_iterations;
        made->without_samples += made->correlations[d].rank_times.without_samples;
    }
    lab_resource_correlations_adjust(made->correlations, made->device_count);
    made->finding_count =
        lab_findings_make(made->correlations, made->device_count, made->arena, &made->findings);
}

static const char *no_answer(const struct correlated *made) {
    if (made->device_count == 0)
        return "There is no run to look at.";
    if (made->questions > 0 || made->resources > 0)
        return NULL;
    if (made->without_iterations > 0 && made->without_samples == 0)
        return "No iterations were kept, so that nothing can be said about their times.";
    if (made->without_samples > 0)
        return "Nothing was sampled while the runs ran, so that there is nothing to hold their "
               "times against.";
    return "The samples don't reach into the time of the iterations, so that there is nothing to "
           "hold their times against.";
}

static const char *make_answer(const struct correlated *made) {
    struct lab_arena *arena = made->arena;
    const char *lacking = no_answer(made);
    if (lacking)
        return lacking;
    if (made->questions == 0)
        return lab_arena_printf(arena,
                                "Nothing can be said: of %d resources that were sampled %d never "
                                "changed, and of the others there are too few windows.",
                                made->resources, made->constant);
    if (made->finding_count == 0) {
        double least = lab_finding_least(made->correlations, made->device_count);
        return least > 0.95
                   ? lab_arena_printf(arena,
                                      "Nothing that was sampled goes together with the iterations' "
                                      "times, but the runs are too short to see it if it did "
                                      "(%d resources).",
                                      made->resources)
                   : lab_arena_printf(
                         arena,
                         "Nothing that was sampled goes together with the iterations' "
                         "times: of %d resources none, and a correlation of %.2f would "
                         "mostly have been seen.",
                         made->resources, least);
    }
    const char *first = lab_words_capital(lab_finding_words(&made->findings[0], arena), arena);
    if (!lab_resource_correlation_is_suspect(made->findings[0].correlation))
        return lab_arena_printf(arena,
                                "Nothing that could be a cause goes together with the iterations' "
                                "times by ρ = %.1f or more. What follows from their own pace does: "
                                "%s.",
                                LAB_TIE_LEAST, lab_finding_words(&made->findings[0], arena));
    if (made->finding_count == 1)
        return lab_arena_printf(arena, "%s.", first);
    return lab_arena_printf(arena,
                            "%s; %d more of %d that were asked go together with their times "
                            "or spread.",
                            first, made->finding_count - 1, made->questions);
}

static void add_notes(struct lab_analysis_result *result, const struct correlated *made) {
    struct lab_arena *arena = made->arena;
    const char *const **notes = &result->notes;
    lab_study_add_notes(made->study, "", notes, arena);
    if (made->constant > 0)
        lab_analysis_note(notes, arena, "%d of %d resources never changed and are left out.",
                          made->constant, made->resources);
    if (made->without_iterations > 0 && made->resources > 0)
        lab_analysis_note(notes, arena, "%d ranks kept no iterations and are left out.",
                          made->without_iterations);
    if (made->without_samples > 0 && made->resources > 0)
        lab_analysis_note(notes, arena, "%d ranks have no samples of their time and are left out.",
                          made->without_samples);
    if (made->merged > 0)
        lab_analysis_note(notes, arena,
                          "There are more readings than need be told apart: neighbouring windows "
                          "were put together.");
    if (made->finding_count > 0)
        lab_analysis_note(notes, arena,
                          "Going together isn't a cause by itself: what a device does follows from "
                          "its own pace, and several resources may follow a third.");
}

static void add_part(struct lab_analysis_result *result, const struct correlated *made, int top) {
    struct lab_arena *arena = made->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, made->study->name, arena);
    part->answer = make_answer(made);
    LAB_FIGURES(part, lab_cell_figure(made->device_count),
                lab_cell_remark(made->resources, made->device_count > 1 ? "of all devices" : NULL),
                lab_cell_figure(made->constant),
                lab_cell_remark(made->questions, "time and spread of each that changed"),
                lab_cell_remark(made->finding_count, "with a false discovery rate of 5 %"));
    add_finding_table(part, made->findings, made->finding_count < top ? made->finding_count : top,
                      arena);
    add_spike_table(part, made->correlations, made->device_count, top, arena);
    if (made->device_count > 0)
        add_device_table(part, made->correlations, made->device_count, arena);
    add_all_table(part, made->correlations, made->device_count, arena);
    for (int d = 0; d < made->device_count; d++) {
        const struct lab_resource_correlations *of = &made->correlations[d];
        if (of->spike_count > 0 && of->spikes[0].found)
            lab_analysis_note(
                &part->notes, arena, "%s.",
                lab_words_capital(lab_spikes_words(of, &of->spikes[0], arena), arena));
    }
}

/* --- the whole --- */

static void add_charts(struct lab_analysis_result *result, const struct correlated *made,
                       int number) {
    struct lab_arena *arena = made->arena;
    const char *suffix = lab_analysis_suffix(number, arena);
    struct lab_chart timeline;
    if (made->finding_count > 0)
        lab_finding_add_chart(&made->findings[0],
                              lab_arena_printf(arena, "correlate_top%s", suffix),
                              made->study->simulated, arena, result);
    if (lab_timeline_of_study(made->study, arena, &timeline))
        lab_analysis_add_chart(result, timeline, arena)->name =
            lab_arena_printf(arena, "resource_timeline%s", suffix);
}

static int correlate_run(const void *opaque, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    const struct correlate_config *config = opaque;
    if (lab_analysis_open(input, LAB_RESULT("studies", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++) {
        struct correlated *made = lab_arena_alloc(arena, 1, sizeof *made);
        *made = (struct correlated){.study = &input->studies[i], .arena = arena};
        correlate_study(made, config->gpu);
        add_part(ret_result, made, (int)config->top);
        add_charts(ret_result, made, i);
        if (i == 0) {
            ret_result->lacks = made->questions == 0;
            add_notes(ret_result, made);
        }
    }
    ret_result->answer = ret_result->parts[0].answer;
    return 0;
}

static int correlate_interest(const struct lab_study_table *study) {
    return study->run_count > 0 ? 10 : 0;
}

const struct lab_analysis lab_analysis_correlate = {
    .name = "correlate",
    .summary = "what the machine did when iterations took longer or varied more",
    .description =
        "Every resource that was sampled beside the runs, against the mean time of the iterations "
        "and "
        "their spread, for each device: Spearman's and Pearson's correlation over windows between "
        "samples, counting windows that are worth an independent one; spikes against just before "
        "them; with a false discovery rate of 5 % over all possible causes, and by itself over all "
        "else, of all devices. A cause is named from ρ = 0.3 on. GPUs of one run are no causes of "
        "each other's times: they do the same work at the same time. Runs of different points are "
        "each held against themselves.",
    .options = correlate_options,
    .config_size = sizeof(struct correlate_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_FILES |
             LAB_STUDY_WITH_CONFIGURATIONS,
    .interest = correlate_interest,
    .run = correlate_run,
};
