/*
 * memory.c: `gpulab analyze memory`: which of several labels needs the least memory of the GPUs, on
 * average and at its peak, and by how much the others need more.
 */
#include "analysis/analysis_change.h"
#include "analysis/recording/recording_stats_chart.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

struct memory_config {
    struct lab_recording_stats_config stats;
};

static const struct lab_option memory_options[] = {LAB_RECORDING_STATS_OPTIONS(memory_config),
                                                   {NULL}};

#define ALIKE 0.05 /* a bound below it: as much, for who chooses by it */

static const struct lab_doc_column figure_columns[] = {
    {"recordings", NULL, LAB_UNIT_COUNT},
    {"total_mean_mib", "Total, mean", LAB_UNIT_MEBIBYTES, "Total"},
    {"total_peak_mib", "Total, peak", LAB_UNIT_MEBIBYTES, "Peak"},
    {"sum_of_peaks_mib", "Sum of peaks", LAB_UNIT_MEBIBYTES},
    {"fullest_share", "Fullest GPU", LAB_UNIT_SHARE, "Fullest"},
    {"change", "Against the best", LAB_UNIT_CHANGE, "Against the best", .with_interval = true},
    {"verdict", NULL, LAB_UNIT_TEXT},
};

enum { GPU_CHANGE = 5 };
static const struct lab_doc_column gpu_columns[] = {
    {"gpu", "GPU", LAB_UNIT_COUNT},
    {"mean_mib", "Mean", LAB_UNIT_MEBIBYTES},
    {"deviation_mib", "±", LAB_UNIT_MEBIBYTES},
    {"peak_mib", "Peak", LAB_UNIT_MEBIBYTES},
    {"peak_share", "Of its memory", LAB_UNIT_SHARE},
    {"change", "Against the best", LAB_UNIT_CHANGE, .with_interval = true},
};

/* --- a label --- */

struct memory { /* of a label */
    const struct lab_recording_stats_label *label;
    double total, peak, peaks, fullest; /* means over the recordings; of the peaks the largest */
    int fullest_gpu;
    struct lab_change change; /* against the best */
};

static struct memory describe(const struct lab_recording_stats_label *label) {
    struct memory memory = {
        .label = label, .total = 0, .peak = NAN, .peaks = NAN, .fullest = NAN, .fullest_gpu = -1};
    int known = 0;
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        double total = lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY), peaks = NAN;
        for (int g = 0; g < stats->gpu_count; g++) {
            double peak = stats->gpus[g].figures[LAB_RECORDING_STATS_MEMORY].peak;
            double share = peak / stats->gpus[g].capacity_mib;
            if (!isnan(peak))
                peaks = (isnan(peaks) ? 0 : peaks) + peak;
            if (isnan(share) || share <= memory.fullest)
                continue;
            memory.fullest = share;
            memory.fullest_gpu = stats->gpus[g].track->entity.index;
        }
        memory.peaks = fmax(memory.peaks, peaks); /* fmax passes NaN over */
        memory.peak = fmax(memory.peak, stats->peak_total_mib);
        if (isnan(total))
            continue;
        memory.total += total;
        known++;
    }
    memory.total = known ? memory.total / known : (double)NAN;
    return memory;
}

static int by_total(const void *a, const void *b) {
    const struct memory *x = a, *y = b;
    if (isnan(x->total) || isnan(y->total))
        return isnan(x->total) - isnan(y->total);
    return (x->total > y->total) - (x->total < y->total);
}

/* --- its GPUs --- */

struct pooled { /* one GPU over the recordings of a label */
    double mean, deviation, peak, share;
};

/* Mean of the recordings' means, mean of their deviations, the largest peak. */
static struct pooled pool(const struct lab_recording_stats_label *label, int index) {
    struct pooled pooled = {0, 0, NAN, NAN};
    int known = 0;
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            const struct lab_recording_stats_gpu *gpu = &label->all_stats[i]->gpus[g];
            const struct lab_recording_stats_figures *figures =
                &gpu->figures[LAB_RECORDING_STATS_MEMORY];
            if (gpu->track->entity.index != index || figures->count == 0)
                continue;
            pooled.mean += figures->mean;
            pooled.deviation += figures->deviation;
            pooled.peak = fmax(pooled.peak, figures->peak);
            pooled.share = fmax(pooled.share, figures->peak / gpu->capacity_mib);
            known++;
        }
    pooled.mean = known ? pooled.mean / known : (double)NAN;
    pooled.deviation = known ? pooled.deviation / known : (double)NAN;
    return pooled;
}

static void add_gpu_table(struct lab_analysis_part *part, const struct memory *memory,
                          const struct memory *best, struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "gpus", "By GPU", gpu_columns, arena);
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(memory->label, indices);
    if (memory == best)
        lab_analysis_own_columns(table, arena)[GPU_CHANGE].title = NULL;
    for (int i = 0; i < count; i++) {
        struct pooled pooled = pool(memory->label, indices[i]);
        struct lab_doc_cell *row =
            LAB_ROW(table, arena, lab_cell_figure(indices[i]), lab_cell_figure(pooled.mean),
                    lab_cell_figure(pooled.deviation), lab_cell_figure(pooled.peak),
                    lab_cell_figure(pooled.share), lab_cell_figure(NAN));
        if (memory == best)
            continue;
        struct lab_change change = lab_change_between(
            best->label, memory->label, LAB_RECORDING_STATS_MEMORY, indices[i], arena);
        row[GPU_CHANGE] = lab_change_cell(&change);
    }
}

/* --- words --- */

/* "needs 12.0 % more than a [11.2, 12.8]" */
static const char *make_answer(const struct memory *memory, const struct memory *best,
                               struct lab_arena *arena) {
    const char *name = memory->label->name, *other = best->label->name;
    const struct lab_change *change = &memory->change;
    if (isnan(memory->total))
        return lab_arena_printf(arena, "%s: no memory was recorded.", name);
    if (memory == best)
        return lab_arena_printf(arena, "%s takes %.1f MB on average, %.1f MB at its peak.", name,
                                memory->total, memory->peak);
    switch (change->verdict) {
    case LAB_CHANGE_HIGHER:
    case LAB_CHANGE_LOWER:
        return lab_arena_printf(arena, "%s takes %.1f %% [%.1f, %.1f] more than %s.", name,
                                100 * change->share, 100 * change->low, 100 * change->high, other);
    case LAB_CHANGE_SAME:
        return lab_arena_printf(arena, "%s %s %s: no difference larger than %.1f %%.", name,
                                change->bound < ALIKE ? "takes as much as" : "can't be told from",
                                other, lab_change_bound_percent(change));
    default:
        return lab_arena_printf(arena,
                                "%s takes %.1f %% more than %s, which one recording each can't "
                                "prove.",
                                name, 100 * change->share, other);
    }
}

static const char *answer_for_all(const struct memory *memories, int count,
                                  struct lab_arena *arena) {
    const struct memory *best = &memories[0], *next = &memories[1];
    if (isnan(best->total))
        return "No memory of a GPU was recorded.";
    if (isnan(next->total))
        return make_answer(best, best, arena);
    const char *how = next->change.verdict == LAB_CHANGE_HIGHER ? "takes the least memory"
                                                                : "is first, but not for certain";
    return lab_arena_printf(arena, "Of %d labels %s %s (%.1f MB). %s", count, best->label->name,
                            how, best->total, make_answer(next, best, arena));
}

static void add_part(struct lab_analysis_result *result, const struct memory *memory,
                     const struct memory *best, struct lab_arena *arena) {
    const struct lab_recording_stats_label *label = memory->label;
    struct lab_analysis_part *part = lab_analysis_add_part(result, label->name, arena);
    LAB_FIGURES(
        part, lab_cell_figure(label->count), lab_cell_figure(memory->total),
        lab_cell_remark(memory->peak, "that all GPUs had at one time"),
        lab_cell_remark(memory->peaks, "each GPU's own, at its own time"),
        lab_cell_remark(memory->fullest, lab_arena_printf(arena, "of GPU %d's memory at its peak",
                                                          memory->fullest_gpu)),
        memory == best ? lab_cell_figure(NAN) : lab_change_cell(&memory->change),
        lab_cell_text(memory == best ? "best" : lab_change_verdict_name(memory->change.verdict)));
    add_gpu_table(part, memory, best, arena);
    lab_analysis_drop_empty(part);
    part->about = lab_recording_stats_about(label->all_stats, label->count, arena);
    part->answer = make_answer(memory, best, arena);
    lab_recording_stats_add_notes(label->all_stats, label->count, &part->notes, arena);
}

/* --- the whole --- */

/* In the order of the parts, the least first. */
static void add_charts(const struct memory *memories, int count, struct lab_arena *arena,
                       struct lab_analysis_result *result) {
    const struct lab_recording_stats_label **labels =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    for (int i = 0; i < count; i++)
        labels[i] = memories[i].label;
    lab_recording_stats_chart_comparison(labels, count, arena, result);
    lab_recording_stats_chart_timeline(labels, count, arena, result);
}

static int memory_run(const void *opaque, const struct lab_analysis_input *input,
                      struct lab_arena *arena, struct lab_analysis_result *ret_result,
                      struct lab_err *err) {
    const struct memory_config *config = opaque;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = lab_recording_stats_labels(all_stats, input->recording_count, arena, &labels);
    struct memory *memories = lab_arena_alloc(arena, (size_t)count, sizeof *memories);
    *ret_result = LAB_RESULT("labels", figure_columns);
    ret_result->simulated = lab_recording_stats_simulated(input);
    for (int i = 0; i < count; i++)
        memories[i] = describe(&labels[i]);
    qsort(memories, (size_t)count, sizeof *memories, by_total);
    for (int i = 0; i < count; i++)
        memories[i].change = lab_change_between(memories[0].label, memories[i].label,
                                                LAB_RECORDING_STATS_MEMORY, -1, arena);
    for (int i = 0; i < count; i++)
        add_part(ret_result, &memories[i], &memories[0], arena);
    if (count > 1)
        lab_analysis_note(&ret_result->notes, arena, "%s", lab_change_note(labels, count));
    ret_result->answer =
        count == 1 ? ret_result->parts[0].answer : answer_for_all(memories, count, arena);
    add_charts(memories, count, arena, ret_result);
    return 0;
}

const struct lab_analysis lab_analysis_memory = {
    .name = "memory",
    .summary = "which of several labels takes the least memory of the GPUs",
    .description =
        "Compares recordings by label, the least first: mean and peak of each GPU and of all "
        "together, against the sum of the single peaks. A label is a file's name, a folder's, a "
        "run's of a study, or what is written before it: LABEL=PATH.",
    .options = memory_options,
    .config_size = sizeof(struct memory_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    .run = memory_run,
};
