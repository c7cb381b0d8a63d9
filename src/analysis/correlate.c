/*
 * correlate.c: `gpulab analyze correlate`: which sampled resources correlate with the iteration
 * times of each device, or their spread: every gauge, every counter's rate and every reason for
 * lower clocks, of all GPUs and of the host.
 */
#include "analysis/correlate/correlate.h"
#include "analysis/analysis_timeline.h"
#include "analysis/claims/rows.h"

#include <math.h>
#include <stdlib.h>

#define KIND        "correlate.resource"
#define BUDGET      800000 /* windows × resources of all devices: less than a second */
#define DEVICES_MAX 256
#define DETECTABLE  0.95 /* runs that would only show a stronger correlation are too short */

struct correlate_config {
    int64_t top, gpu;
};

static const struct lab_option correlate_options[] = {
    {"top", LAB_OPTION_INT, offsetof(struct correlate_config, top), .fallback = "10", .min = 1,
     .max = 1000, .help = "correlations that are shown"},
    {"gpu", LAB_OPTION_INT, offsetof(struct correlate_config, gpu), .fallback = "-1", .min = -1,
     .max = 65536, .help = "only of this device, by its gpu_id; -1 = of all"},
    {NULL},
};

/* --- rows --- */

struct figures {
    int devices, resources, constant, tested, expected, found;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, resources, "resources", "Sampled", LAB_UNIT_COUNT, "Sampled"),
    LAB_FIELD(struct figures, constant, "constant", "Constant", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, tested, "tested", "Tested as causes", LAB_UNIT_COUNT, "Tested"),
    LAB_FIELD(struct figures, expected, "expected", "Follow from the iterations", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, found, "found", "Possible causes", LAB_UNIT_COUNT, "Causes"),
};

struct row {
    const char *device, *key, *title, *figure, *with, *role;
    int gpu_id;
    struct lab_claim rho;
    double p, p_adjusted, pearson, pearson_p, windows, effective, window_s;
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, gpu_id, "gpu_id", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, key, "resource", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, title, NULL, "Resource", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, figure, "figure", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, with, NULL, "Correlated with", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, rho, "spearman", "Spearman's ρ", LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, p, "spearman_p", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, p_adjusted, "p_adjusted", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, pearson, "pearson", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, pearson_p, "pearson_p", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, windows, "windows", "Windows", LAB_UNIT_COUNT, .yields = 1),
    LAB_FIELD(struct row, effective, "effective_windows", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, window_s, "window_ms", NULL, LAB_UNIT_TIME),
    LAB_FIELD(struct row, role, "role", "Role", LAB_UNIT_TEXT),
};

struct spike_row {
    const char *device, *key, *title;
    int events;
    struct lab_claim change;
};

static const struct lab_field spike_fields[] = {
    LAB_FIELD(struct spike_row, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct spike_row, key, "resource", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct spike_row, title, NULL, "Spikes of", LAB_UNIT_TEXT),
    LAB_FIELD(struct spike_row, events, "events", "Events", LAB_UNIT_COUNT),
    LAB_FIELD(struct spike_row, change, "time_change", "Time", LAB_UNIT_CHANGE),
};

static const char *role_of(struct correlate_finding finding) {
    const struct lab_resource_correlation *item = finding.item;
    if (lab_resource_correlation_is_suspect(item))
        return "possible cause";
    if (item->role != LAB_RESOURCE_OWN)
        return "consequence";
    return item->resource.index == finding.of->rank_times.gpu ? "own activity"
                                                              : "same run's activity";
}

static struct row make_row(struct correlate_finding finding, const struct lab_study_table *study,
                           struct lab_arena *arena) {
    const struct lab_resource_correlation *item = finding.item;
    bool of_time = item->figure == LAB_TIE_TIME;
    struct lab_claim rho = lab_claim_of_correlation(finding.of, item, arena);
    rho.kind = KIND;
    rho.verdict =
        item->found && rho.n > 1 && study->repeated ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE;
    return (struct row){.device = finding.of->rank_times.device,
                        .key = lab_resource_key(&item->resource, arena),
                        .title = lab_resource_title(&item->resource, arena),
                        .figure = of_time ? "time" : "spread",
                        .with = of_time ? "iteration time" : "its spread",
                        .role = role_of(finding),
                        .gpu_id = finding.of->rank_times.gpu_id,
                        .rho = rho,
                        .p = item->spearman.p,
                        .p_adjusted = item->p_adjusted,
                        .pearson = item->pearson.r,
                        .pearson_p = item->pearson.p,
                        .windows = (double)item->windows,
                        .effective = floor(item->effective),
                        .window_s = item->window_s};
}

/* --- a study --- */

struct correlated {
    const struct lab_study_table *study;
    struct lab_resource_correlations *list; /* of each device */
    struct figures figures;
    struct correlate_finding *findings; /* possible causes first, then the strongest */
    int finding_count;
    int own;          /* of these, activity of the run's own GPUs */
    double effective; /* windows, the fewest of these */
    int without_iterations, without_samples;
    struct lab_arena *arena;
};

static double strength(const struct lab_resource_correlation *item) {
    struct lab_interval interval = item->spearman.interval;
    return interval.low > 0 ? interval.low : interval.high < 0 ? -interval.high : 0;
}

static int by_strength(const void *a, const void *b) {
    const struct correlate_finding *x = a, *y = b;
    bool suspect_x = lab_resource_correlation_is_suspect(x->item),
         suspect_y = lab_resource_correlation_is_suspect(y->item);
    if (suspect_x != suspect_y)
        return suspect_x ? -1 : 1;
    double of_x = strength(x->item), of_y = strength(y->item);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static void add_device(struct correlated *made, const struct lab_resource_correlations *of) {
    made->figures.resources += of->resource_count;
    made->figures.constant += of->constant_count;
    made->without_iterations += of->rank_times.without_iterations;
    made->without_samples += of->rank_times.without_samples;
    for (int i = 0; i < of->count; i++) {
        if (of->items[i].role == LAB_RESOURCE_OWN) {
            made->figures.expected++;
        } else {
            made->figures.tested++;
            made->effective = fmin(made->effective, of->items[i].effective);
        }
        if (!of->items[i].found)
            continue;
        LAB_ADD(made->findings, made->finding_count, made->arena) =
            (struct correlate_finding){of, &of->items[i]};
        made->own += of->items[i].role == LAB_RESOURCE_OWN;
        made->figures.found += lab_resource_correlation_is_suspect(&of->items[i]);
    }
}

static struct correlated correlate_study(const struct lab_study_table *study, int64_t gpu,
                                         struct lab_arena *arena) {
    struct correlated made = {.study = study, .effective = NAN, .arena = arena};
    const struct lab_study_run **runs = NULL;
    int ids[DEVICES_MAX], run_count = 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].used)
            LAB_ADD(runs, run_count, arena) = &study->runs[i];
    int count = lab_resource_devices(runs, run_count, ids, DEVICES_MAX), kept = 0;
    for (int d = 0; d < count; d++)
        if (gpu < 0 || ids[d] == gpu)
            ids[kept++] = ids[d];
    made.figures.devices = kept;
    made.list = lab_arena_alloc(arena, (size_t)kept + 1, sizeof *made.list);
    for (int d = 0; d < kept; d++)
        lab_resource_correlations_make(runs, run_count, ids[d], (size_t)(BUDGET / kept), arena,
                                       &made.list[d]);
    lab_resource_correlations_adjust(made.list, kept);
    for (int d = 0; d < kept; d++)
        add_device(&made, &made.list[d]);
    if (made.finding_count > 1)
        qsort(made.findings, (size_t)made.finding_count, sizeof *made.findings, by_strength);
    return made;
}

/* --- the headline --- */

/* Counts are of tests: of iteration time, and of its spread. */
static bool is_any_tested(const struct correlated *made) {
    return made->figures.tested + made->figures.expected > 0;
}

static const char *why_untested(const struct correlated *made) {
    if (made->figures.devices == 0)
        return "there is no run.";
    if (is_any_tested(made))
        return made->figures.found == 0 && made->figures.tested == 0
                   ? "only the activity of the runs' own GPUs was sampled."
                   : NULL;
    if (made->figures.resources > 0)
        return lab_arena_printf(made->arena,
                                "%d of %d sampled resources never changed, the "
                                "others have too few windows.",
                                made->figures.constant, made->figures.resources);
    if (made->without_iterations > 0 && made->without_samples == 0)
        return "no iterations were kept.";
    return made->without_samples > 0 ? "nothing was sampled during the runs."
                                     : "no sample lies within the iterations.";
}

/* Of all that could be a cause: there is none, or the runs are too short. */
static struct lab_claim claim_of_none(const struct correlated *made) {
    struct lab_claim claim = lab_claim_none;
    double least = lab_correlation_detectable(made->effective, made->figures.tested);
    claim = lab_claim_named(claim, KIND, "any sampled resource", "", "ρ with iteration time");
    claim.unit = "";
    for (int d = 0; d < made->figures.devices; d++)
        if (d == 0 || made->list[d].rank_times.count < claim.n)
            claim.n = made->list[d].rank_times.count;
    if (made->figures.tested == 0)
        return claim;
    bool none = least <= DETECTABLE && claim.n > 1 && made->study->repeated;
    claim.verdict = none ? LAB_CLAIM_NO : LAB_CLAIM_INCONCLUSIVE;
    claim.bound = none ? least : (double)NAN;
    return claim;
}

static const char *make_answer(const struct correlated *made, const struct lab_claim *none) {
    struct lab_arena *arena = made->arena;
    if (made->figures.found > 0) {
        struct row first = make_row(made->findings[0], made->study, arena);
        if (first.rho.verdict != LAB_CLAIM_YES)
            return lab_arena_printf(
                arena, "Iteration %s on %s and the %s: inconclusive (ρ = %s within runs).",
                first.figure, first.device, first.title, lab_claim_short(&first.rho, arena));
        return lab_arena_printf(
            arena,
            "Iteration %s on %s correlates with the %s (ρ = %s, 95%% CI, %d runs, %.0f independent "
            "windows). %d of %d tested %s.",
            first.figure, first.device, first.title, lab_claim_short(&first.rho, arena),
            first.rho.n, first.effective, made->figures.found, made->figures.tested,
            made->figures.found > 1 ? "are possible causes" : "is a possible cause");
    }
    if (none->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena,
                                "%s sampled resource correlates with iteration time (%d tested; "
                                "|ρ| ≥ %.2f would have been detected).",
                                made->finding_count == 0 ? "No"
                                : made->own == made->finding_count
                                    ? "Besides the activity of a run's own GPUs, no"
                                    : "Besides what follows from the iterations, no",
                                made->figures.tested, none->bound);
    return lab_arena_printf(arena, "Correlation with iteration time: inconclusive, %s (%d tested).",
                            made->study->repeated ? "the runs are too short"
                                                  : "at most 1 run per point",
                            made->figures.tested);
}

/* --- the whole --- */

static void add_spikes(struct lab_analysis_result *result, struct lab_analysis_part *part,
                       const struct correlated *made, int top) {
    struct spike_row *rows = NULL;
    int count = 0;
    for (int d = 0; d < made->figures.devices; d++)
        for (int i = 0; i < made->list[d].spike_count && count < top; i++) {
            const struct lab_spikes *spikes = &made->list[d].spikes[i];
            if (!spikes->found)
                continue;
            struct spike_row *row = &LAB_ADD(rows, count, made->arena);
            *row = (struct spike_row){
                made->list[d].rank_times.device, lab_resource_key(&spikes->resource, made->arena),
                lab_resource_title(&spikes->resource, made->arena), spikes->events,
                lab_claim_of_spikes(&made->list[d], spikes, made->arena)};
            row->change.kind = KIND;
            if (!made->study->repeated)
                row->change.verdict = LAB_CLAIM_INCONCLUSIVE;
        }
    struct lab_rows table = LAB_ROWS(spike_fields, rows, count);
    lab_rows_add_table(part, "spikes", "Spikes, compared with just before each", &table,
                       made->arena);
    lab_rows_add_claims(result, &table, made->arena);
}

/* The strongest of what other GPUs of the same run do, which runs with several always have. */
static void add_note_of_mates(struct lab_analysis_part *part, const struct correlated *made) {
    for (int i = 0; i < made->finding_count; i++) {
        struct correlate_finding finding = made->findings[i];
        if (finding.item->role != LAB_RESOURCE_OWN ||
            finding.item->resource.kind != LAB_ENTITY_GPU ||
            finding.item->resource.index == finding.of->rank_times.gpu)
            continue;
        struct row row = make_row(finding, made->study, made->arena);
        lab_analysis_note(&part->notes, made->arena,
                          "Other GPUs of a run (%s: ρ = %s): expected, since they work during the "
                          "same iterations.",
                          row.title, lab_claim_short(&row.rho, made->arena));
        return;
    }
}

static void add_part(struct lab_analysis_result *result, const struct correlated *made, int top) {
    struct lab_arena *arena = made->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, made->study->name, arena);
    struct lab_claim none = claim_of_none(made);
    struct row *found = NULL, *all = NULL;
    int found_count = 0, all_count = 0;
    part->untested = why_untested(made);
    part->answer = part->untested ? NULL : make_answer(made, &none);
    LAB_PART_FIGURES(part, figure_fields, &made->figures, arena);
    for (int i = 0; i < made->finding_count && i < top; i++) {
        LAB_ADD(found, found_count, arena) = make_row(made->findings[i], made->study, arena);
        if (i < made->figures.found)
            lab_analysis_add_claim(result, &found[i].rho, arena);
    }
    if (made->figures.found == 0)
        lab_analysis_add_claim(result, &none, arena);
    for (int d = 0; d < made->figures.devices; d++)
        for (int i = 0; i < made->list[d].count; i++)
            LAB_ADD(all, all_count, arena) =
                make_row((struct correlate_finding){&made->list[d], &made->list[d].items[i]},
                         made->study, arena);
    lab_rows_add_table(part, "findings",
                       made->figures.found > 0 ? "Correlated with the iterations"
                                               : "Follows from the iterations (expected)",
                       &LAB_ROWS(row_fields, found, found_count), arena)
        ->aside = made->figures.found == 0;
    if (found_count > 0)
        lab_analysis_note(&part->notes, arena,
                          "Windows: intervals between samples, in which iterations are averaged.");
    add_note_of_mates(part, made);
    add_spikes(result, part, made, top);
    lab_rows_add_table(part, "tested", NULL, &LAB_ROWS(row_fields, all, all_count), arena);
}

static void add_charts(struct lab_analysis_result *result, const struct correlated *made,
                       int number) {
    const char *suffix = lab_analysis_suffix(number, made->arena);
    struct lab_chart timeline;
    if (made->figures.found > 0) { /* what follows from the iterations is no finding to draw */
        struct row first = make_row(made->findings[0], made->study, made->arena);
        correlate_add_chart(result, made->findings[0], &first.rho, suffix, made->study->simulated,
                            made->arena);
    }
    if (lab_timeline_of_study(made->study, made->arena, &timeline))
        lab_analysis_add_chart(result, timeline, made->arena)->name =
            lab_arena_printf(made->arena, "resource_timeline%s", suffix);
}

static int correlate_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                         struct lab_err *err) {
    const struct correlate_config *config = input->config;
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        struct correlated made = correlate_study(&input->studies[i], config->gpu, arena);
        add_part(result, &made, (int)config->top);
        add_charts(result, &made, i);
        if (i == 0)
            result->lacks = !is_any_tested(&made);
    }
    lab_study_add_notes(&input->studies[0], "", &result->notes, arena);
    return 0;
}

static int correlate_interest(const struct lab_study_table *study) {
    return study->run_count > 0 ? 10 : 0;
}

const struct lab_analysis lab_analysis_correlate = {
    .name = "correlate",
    .summary = "which sampled resources correlate with iteration times or their spread",
    .description =
        "Spearman's and Pearson's correlation of every sampled resource with the mean and the "
        "spread of iteration times, for each device. Windows lie between samples; tests are "
        "corrected for autocorrelation. Spikes are compared with just before each. The false "
        "discovery rate is 5% over all possible causes of all devices. A cause has ρ ≥ 0.3. GPUs "
        "of one run don't count as causes of each other's times. Points are compared with "
        "themselves "
        "alone. One run of each point gives values and no verdict.",
    .options = correlate_options,
    .config_size = sizeof(struct correlate_config),
    .kinds = (const struct lab_analysis_kind[]){{"correlate.resource", LAB_KIND_WITHIN}, {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_FILES |
             LAB_STUDY_WITH_CONFIGURATIONS,
    .interest = correlate_interest,
    LAB_PARTS_OF("studies", figure_fields),
    .run = correlate_run,
};
