/*
 * correlate.c: `gpulab analyze correlate`: what the machine did when iterations took longer, or
 * varied more. Every gauge, every counter's rate and every reason that held clocks back, of all
 * GPUs and of the host, against the iterations of each device.
 */
#include "analysis/correlate/correlate.h"
#include "analysis/analysis.h"
#include "analysis/analysis_timeline.h"

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

enum { DEVICES, RESOURCES, CONSTANT, QUESTIONS, FOUND, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [RESOURCES] = {"resources", "Resources", LAB_UNIT_COUNT, "Resources"},
    [CONSTANT] = {"constant", "Constant", LAB_UNIT_COUNT},
    [QUESTIONS] = {"tested", "Tested", LAB_UNIT_COUNT},
    [FOUND] = {"found", "Found", LAB_UNIT_COUNT, "Found"},
};

enum {
    TIE_DEVICE,
    TIE_GPU_ID,
    TIE_KEY,
    TIE_RESOURCE,
    TIE_FIGURE,
    TIE_WORDS,
    TIE_RHO,
    TIE_RHO_TEXT,
    TIE_P,
    TIE_P_ADJUSTED,
    TIE_R,
    TIE_R_P,
    TIE_WINDOWS,
    TIE_EFFECTIVE,
    TIE_WINDOW_S,
    TIE_LAG,
    TIE_ROLE,
    TIE_COLUMNS
};

static const struct lab_doc_column tie_columns[TIE_COLUMNS] = {
    [TIE_DEVICE] = {"device", "Device", LAB_UNIT_TEXT},
    [TIE_GPU_ID] = {"gpu_id", NULL, LAB_UNIT_COUNT},
    [TIE_KEY] = {"resource", NULL, LAB_UNIT_TEXT},
    [TIE_RESOURCE] = {NULL, "Resource", LAB_UNIT_TEXT},
    [TIE_FIGURE] = {"figure", NULL, LAB_UNIT_TEXT},
    [TIE_WORDS] = {NULL, "Goes with", LAB_UNIT_TEXT},
    [TIE_RHO] = {"spearman", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [TIE_RHO_TEXT] = {NULL, "Spearman's ρ", LAB_UNIT_FIGURE},
    [TIE_P] = {"spearman_p", NULL, LAB_UNIT_NUMBER},
    [TIE_P_ADJUSTED] = {"p_adjusted", NULL, LAB_UNIT_NUMBER},
    [TIE_R] = {"pearson", NULL, LAB_UNIT_NUMBER},
    [TIE_R_P] = {"pearson_p", NULL, LAB_UNIT_NUMBER},
    [TIE_WINDOWS] = {"windows", "Windows", LAB_UNIT_COUNT},
    [TIE_EFFECTIVE] = {"effective_windows", NULL, LAB_UNIT_COUNT},
    [TIE_WINDOW_S] = {"window_ms", NULL, LAB_UNIT_TIME},
    [TIE_LAG] = {"lag_ms", NULL, LAB_UNIT_TIME},
    [TIE_ROLE] = {"role", NULL, LAB_UNIT_TEXT},
};

enum {
    SPIKE_DEVICE,
    SPIKE_KEY,
    SPIKE_RESOURCE,
    SPIKE_EVENTS,
    SPIKE_RISE,
    SPIKE_P,
    SPIKE_P_ADJUSTED,
    SPIKE_COLUMNS
};

static const struct lab_doc_column spike_columns[SPIKE_COLUMNS] = {
    [SPIKE_DEVICE] = {"device", "Device", LAB_UNIT_TEXT},
    [SPIKE_KEY] = {"resource", NULL, LAB_UNIT_TEXT},
    [SPIKE_RESOURCE] = {NULL, "Spikes of", LAB_UNIT_TEXT},
    [SPIKE_EVENTS] = {"events", "Events", LAB_UNIT_COUNT},
    [SPIKE_RISE] = {"time_change", "Time", LAB_UNIT_CHANGE, .with_interval = true},
    [SPIKE_P] = {"p", NULL, LAB_UNIT_NUMBER},
    [SPIKE_P_ADJUSTED] = {"p_adjusted", NULL, LAB_UNIT_NUMBER},
};

enum {
    DEVICE_NAME,
    DEVICE_RUNS,
    DEVICE_WINDOWS,
    DEVICE_WINDOW_S,
    DEVICE_RESOURCES,
    DEVICE_CONSTANT,
    DEVICE_SHORT,
    DEVICE_FOUND,
    DEVICE_COLUMNS
};

static const struct lab_doc_column device_columns[DEVICE_COLUMNS] = {
    [DEVICE_NAME] = {"device", "Device", LAB_UNIT_TEXT},
    [DEVICE_RUNS] = {"runs", "Runs", LAB_UNIT_COUNT},
    [DEVICE_WINDOWS] = {"windows", "Windows", LAB_UNIT_COUNT},
    [DEVICE_WINDOW_S] = {"window_ms", "Of", LAB_UNIT_TIME},
    [DEVICE_RESOURCES] = {"resources", "Resources", LAB_UNIT_COUNT},
    [DEVICE_CONSTANT] = {"constant", "Constant", LAB_UNIT_COUNT},
    [DEVICE_SHORT] = {"too_few_windows", "Too few windows", LAB_UNIT_COUNT},
    [DEVICE_FOUND] = {"found", "Found", LAB_UNIT_COUNT},
};

/* --- tables --- */

static const char *role_name(const struct lab_resource_correlation *correlation) {
    return lab_resource_correlation_is_suspect(correlation) ? "a cause"
           : correlation->role == LAB_RESOURCE_OUTSIDE      ? "a consequence"
           : correlation->role == LAB_RESOURCE_STATE        ? "a consequence"
                                                            : "its own pace";
}

static void fill_tie(struct lab_doc_cell *row, const struct lab_resource_correlations *correlations,
                     const struct lab_resource_correlation *correlation, struct lab_arena *arena) {
    bool lag = correlation->lag.tried > 0;
    row[TIE_DEVICE] = lab_cell_text(correlations->rank_times.device);
    row[TIE_GPU_ID] = lab_cell_figure(correlations->rank_times.gpu_id);
    row[TIE_KEY] = lab_cell_text(lab_resource_key(&correlation->resource, arena));
    row[TIE_RESOURCE] = lab_cell_text(lab_resource_title(&correlation->resource, arena));
    row[TIE_FIGURE] = lab_cell_text(correlation->figure == LAB_TIE_TIME ? "time" : "spread");
    row[TIE_WORDS] =
        lab_cell_text(correlation->figure == LAB_TIE_TIME
                          ? (correlation->spearman.r > 0 ? "longer" : "shorter")
                          : (correlation->spearman.r > 0 ? "more spread" : "less spread"));
    row[TIE_RHO] = (struct lab_doc_cell){.value = correlation->spearman.r,
                                         .low = correlation->spearman.interval.low,
                                         .high = correlation->spearman.interval.high,
                                         .confidence = correlation->spearman.interval.confidence};
    row[TIE_RHO_TEXT] = lab_cell_text(lab_finding_figure(&correlation->spearman, arena));
    row[TIE_P] = lab_cell_figure(correlation->spearman.p);
    row[TIE_P_ADJUSTED] = lab_cell_figure(correlation->p_adjusted);
    row[TIE_R] = lab_cell_figure(correlation->pearson.r);
    row[TIE_R_P] = lab_cell_figure(correlation->pearson.p);
    row[TIE_WINDOWS] = lab_cell_figure((double)correlation->windows);
    row[TIE_EFFECTIVE] = lab_cell_figure(floor(correlation->effective));
    row[TIE_WINDOW_S] = lab_cell_figure(correlation->window_s);
    row[TIE_LAG] =
        lab_cell_figure(lag ? (double)correlation->lag.lag * correlation->window_s : (double)NAN);
    row[TIE_ROLE] = lab_cell_text(role_name(correlation));
}

static struct lab_doc_table finding_table(const struct lab_finding *findings, int count,
                                          struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * TIE_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++)
        fill_tie(cells + (ptrdiff_t)i * TIE_COLUMNS, findings[i].correlations,
                 findings[i].correlation, arena);
    return (struct lab_doc_table){.key = "findings",
                                  .title = "What goes together with the iterations",
                                  .columns = tie_columns,
                                  .column_count = TIE_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

static struct lab_doc_table all_table(const struct lab_resource_correlations *correlations,
                                      int device_count, struct lab_arena *arena) {
    int count = 0;
    for (int d = 0; d < device_count; d++)
        count += correlations[d].count;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * TIE_COLUMNS + 1, sizeof *cells);
    struct lab_doc_cell *row = cells;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].count; i++, row += TIE_COLUMNS)
            fill_tie(row, &correlations[d], &correlations[d].items[i], arena);
    return (struct lab_doc_table){.key = "tested",
                                  .columns = tie_columns,
                                  .column_count = TIE_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

static struct lab_doc_table spike_table(const struct lab_resource_correlations *correlations,
                                        int device_count, int top, struct lab_arena *arena) {
    int count = 0;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < correlations[d].spike_count; i++)
            count += correlations[d].spikes[i].found;
    count = count < top ? count : top;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * SPIKE_COLUMNS + 1, sizeof *cells);
    int made = 0;
    for (int d = 0; d < device_count; d++)
        for (int i = 0;
             i < correlations[d].spike_count && correlations[d].spikes[i].found && made < count;
             i++) {
            const struct lab_spikes *spikes = &correlations[d].spikes[i];
            struct lab_doc_cell *row = cells + (ptrdiff_t)made++ * SPIKE_COLUMNS;
            row[SPIKE_DEVICE] = lab_cell_text(correlations[d].rank_times.device);
            row[SPIKE_KEY] = lab_cell_text(lab_resource_key(&spikes->resource, arena));
            row[SPIKE_RESOURCE] = lab_cell_text(lab_resource_title(&spikes->resource, arena));
            row[SPIKE_EVENTS] = lab_cell_figure(spikes->events);
            row[SPIKE_RISE] = (struct lab_doc_cell){.value = spikes->rise,
                                                    .low = spikes->interval.low,
                                                    .high = spikes->interval.high,
                                                    .confidence = spikes->interval.confidence};
            row[SPIKE_P] = lab_cell_figure(spikes->p);
            row[SPIKE_P_ADJUSTED] = lab_cell_figure(spikes->p_adjusted);
        }
    return (struct lab_doc_table){.key = "spikes",
                                  .title = made ? "Spikes, each against just before it" : NULL,
                                  .columns = spike_columns,
                                  .column_count = SPIKE_COLUMNS,
                                  .cells = cells,
                                  .row_count = made};
}

static int count_found(const struct lab_resource_correlations *correlations) {
    int count = 0;
    while (count < correlations->count && correlations->items[count].found)
        count++;
    return count;
}

static struct lab_doc_table device_table(const struct lab_resource_correlations *correlations,
                                         int device_count, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)device_count * DEVICE_COLUMNS + 1, sizeof *cells);
    for (int d = 0; d < device_count; d++) {
        struct lab_doc_cell *row = cells + (ptrdiff_t)d * DEVICE_COLUMNS;
        row[DEVICE_NAME] = lab_cell_text(correlations[d].rank_times.device);
        row[DEVICE_RUNS] = lab_cell_figure(correlations[d].rank_times.count);
        row[DEVICE_WINDOWS] = lab_cell_figure((double)correlations[d].windows);
        row[DEVICE_WINDOW_S] = lab_cell_figure(correlations[d].window_s);
        row[DEVICE_RESOURCES] = lab_cell_figure(correlations[d].resource_count);
        row[DEVICE_CONSTANT] = lab_cell_figure(correlations[d].constant_count);
        row[DEVICE_SHORT] = lab_cell_figure(correlations[d].short_count);
        row[DEVICE_FOUND] = lab_cell_figure(count_found(&correlations[d]));
    }
    return (struct lab_doc_table){.key = "devices",
                                  .title = "By device",
                                  .columns = device_columns,
                                  .column_count = DEVICE_COLUMNS,
                                  .cells = cells,
                                  .row_count = device_count};
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

static const char *capital(const char *sentence, struct lab_arena *arena) {
    char *text = lab_arena_strdup(arena, sentence);
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    return text;
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
    const char *first = capital(lab_finding_words(&made->findings[0], arena), arena);
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

static const char *const *make_notes(const struct correlated *made) {
    struct lab_arena *arena = made->arena;
    const char **notes = lab_study_notes(made->study, 6, arena);
    int count = 0;
    while (notes[count])
        count++;
    if (made->constant > 0)
        notes[count++] =
            lab_arena_printf(arena, "%d of %d resources never changed and are left out.",
                             made->constant, made->resources);
    if (made->without_iterations > 0 && made->resources > 0)
        notes[count++] = lab_arena_printf(arena, "%d ranks kept no iterations and are left out.",
                                          made->without_iterations);
    if (made->without_samples > 0 && made->resources > 0)
        notes[count++] =
            lab_arena_printf(arena, "%d ranks have no samples of their time and are left out.",
                             made->without_samples);
    if (made->merged > 0)
        notes[count++] = "There are more readings than need be told apart: neighbouring windows "
                         "were put together.";
    if (made->finding_count > 0)
        notes[count++] = "Going together isn't a cause by itself: what a device does follows from "
                         "its own pace, and several resources may follow a third.";
    return notes;
}

static const char *const *spike_notes(const struct correlated *made) {
    struct lab_arena *arena = made->arena;
    const char **notes = lab_arena_alloc(arena, (size_t)made->device_count + 1, sizeof *notes);
    int count = 0;
    for (int d = 0; d < made->device_count; d++)
        if (made->correlations[d].spike_count > 0 && made->correlations[d].spikes[0].found)
            notes[count++] =
                lab_arena_printf(arena, "%s.",
                                 capital(lab_spikes_words(&made->correlations[d],
                                                          &made->correlations[d].spikes[0], arena),
                                         arena));
    return notes;
}

static struct lab_analysis_part make_part(const struct correlated *made, int top) {
    struct lab_arena *arena = made->arena;
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 4, sizeof *tables);
    int shown = made->finding_count < top ? made->finding_count : top, table_count = 0;
    cells[DEVICES] = lab_cell_figure(made->device_count);
    cells[RESOURCES] = lab_cell_figure(made->resources);
    cells[CONSTANT] = lab_cell_figure(made->constant);
    cells[QUESTIONS] = lab_cell_figure(made->questions);
    cells[FOUND] = lab_cell_figure(made->finding_count);
    cells[RESOURCES].text = made->device_count > 1 ? "of all devices" : NULL;
    cells[QUESTIONS].text = "time and spread of each that changed";
    cells[FOUND].text = "with a false discovery rate of 5 %";
    tables[table_count++] = finding_table(made->findings, shown, arena);
    if (shown == 0)
        tables[0].title = NULL;
    tables[table_count++] = spike_table(made->correlations, made->device_count, top, arena);
    if (made->device_count > 0)
        tables[table_count++] = device_table(made->correlations, made->device_count, arena);
    tables[table_count++] = all_table(made->correlations, made->device_count, arena);
    return (struct lab_analysis_part){.name = made->study->name,
                                      .answer = make_answer(made),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = table_count,
                                      .notes = spike_notes(made)};
}

/* --- the whole --- */

static int add_charts(const struct correlated *made, int number, struct lab_chart *charts) {
    struct lab_arena *arena = made->arena;
    int count = 0;
    const char *ending = number > 0 ? lab_arena_printf(arena, "_%d", number + 1) : "";
    if (made->finding_count > 0 &&
        lab_finding_chart(&made->findings[0], lab_arena_printf(arena, "correlate_top%s", ending),
                          made->study->simulated, arena, &charts[count]))
        count++;
    if (lab_timeline_of_study(made->study, arena, &charts[count])) {
        charts[count].name = lab_arena_printf(arena, "resource_timeline%s", ending);
        count++;
    }
    return count;
}

static int correlate_run(const void *opaque, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    const struct correlate_config *config = opaque;
    int count = input->study_count;
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    struct lab_chart *charts = lab_arena_alloc(arena, 2 * (size_t)count, sizeof *charts);
    struct lab_analysis_result result = {.part_key = "studies",
                                         .columns = figure_columns,
                                         .column_count = FIGURES,
                                         .parts = parts,
                                         .part_count = count,
                                         .charts = charts};
    for (int i = 0; i < count; i++) {
        struct correlated *made = lab_arena_alloc(arena, 1, sizeof *made);
        *made = (struct correlated){.study = &input->studies[i], .arena = arena};
        correlate_study(made, config->gpu);
        parts[i] = make_part(made, (int)config->top);
        result.simulated |= made->study->simulated;
        result.chart_count += add_charts(made, i, charts + result.chart_count);
        if (i == 0) {
            result.answer = parts[0].answer;
            result.lacks = made->questions == 0;
            result.notes = make_notes(made);
        }
    }
    *ret_result = result;
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
