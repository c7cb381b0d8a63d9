/*
 * memory.c: `gpulab analyze memory`: how much memory of the GPUs each label takes, mean and peak,
 * compared with the first label. The unit of replication is the recording.
 */
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
#include "analysis/recording/recording_stats_chart.h"
#include "base/list.h"

#include <math.h>

struct memory_config {
    struct lab_recording_stats_config stats;
};

static const struct lab_option memory_options[] = {LAB_RECORDING_STATS_OPTIONS(memory_config),
                                                   {NULL}};

struct memory { /* of a label */
    const struct lab_recording_stats_label *label;
    int recordings;
    double mean; /* of the recordings' means */
    struct lab_doc_cell total, peak, peaks, fullest;
    struct lab_claim change; /* "memory.total", against the first label */
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct memory, recordings, "recordings", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct memory, total, "total_mean_mib", "Total, mean", LAB_UNIT_MEBIBYTES, "Mean"),
    LAB_FIELD(struct memory, peak, "total_peak_mib", "Total, peak", LAB_UNIT_MEBIBYTES, "Peak"),
    LAB_FIELD(struct memory, peaks, "sum_of_peaks_mib", "Sum of peaks", LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct memory, fullest, "fullest_share", "Fullest GPU's memory", LAB_UNIT_SHARE,
              "Fullest GPU"),
    LAB_FIELD(struct memory, change, "change", "Change", LAB_UNIT_CHANGE, "Change"),
};

/* The change is the last. */
static int figure_count(bool compared) {
    return LAB_COUNT_OF(figure_fields) - !compared;
}

struct gpu_row { /* over the recordings of a label */
    int gpu;
    double mean, deviation, peak, share;
    struct lab_claim change; /* "memory.gpu" */
};

static const struct lab_field gpu_fields[] = {
    LAB_FIELD(struct gpu_row, gpu, "gpu", "GPU", LAB_UNIT_COUNT),
    LAB_FIELD(struct gpu_row, mean, "mean_mib", "Mean", LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct gpu_row, deviation, "deviation_mib", "±", LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct gpu_row, peak, "peak_mib", "Peak", LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct gpu_row, share, "peak_share", "Of its memory", LAB_UNIT_SHARE),
    LAB_FIELD(struct gpu_row, change, "change", "Change", LAB_UNIT_CHANGE),
};

/* --- a label --- */

static struct memory describe(const struct lab_recording_stats_label *label,
                              const struct lab_recording_stats_label *first,
                              struct lab_arena *arena) {
    double mean = 0, peak = NAN, peaks = NAN, fullest = NAN;
    int known = 0, fullest_gpu = -1;
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        double total = lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY), sum = NAN;
        for (int g = 0; g < stats->gpu_count; g++) {
            double own = stats->gpus[g].figures[LAB_RECORDING_STATS_MEMORY].peak;
            double share = own / stats->gpus[g].capacity_mib;
            sum = isnan(own) ? sum : (isnan(sum) ? 0 : sum) + own;
            if (isnan(share) || share <= fullest)
                continue;
            fullest = share;
            fullest_gpu = stats->gpus[g].track->entity.index;
        }
        peaks = fmax(peaks, sum); /* fmax passes NaN over */
        peak = fmax(peak, stats->peak_total_mib);
        mean += isnan(total) ? 0 : total;
        known += !isnan(total);
    }
    mean = known ? mean / known : (double)NAN;
    return (struct memory){
        .label = label,
        .recordings = label->count,
        .mean = mean,
        .total = lab_cell_figure(mean),
        .peak = lab_cell_remark(peak, "that all GPUs had at one time"),
        .peaks = lab_cell_remark(peaks, "each GPU's own, at its own time"),
        .fullest = lab_cell_remark(
            fullest, lab_arena_printf(arena, "of GPU %d's memory at its peak", fullest_gpu)),
        .change = lab_recording_stats_compare(first, label, LAB_RECORDING_STATS_MEMORY, -1,
                                              "memory.total", arena)};
}

/* Mean of the recordings' means, mean of their deviations, the largest peak. */
static struct gpu_row describe_gpu(const struct memory *memory,
                                   const struct lab_recording_stats_label *first, int index,
                                   struct lab_arena *arena) {
    const struct lab_recording_stats_label *label = memory->label;
    struct gpu_row row = {.gpu = index, .peak = NAN, .share = NAN};
    int known = 0;
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            const struct lab_recording_stats_gpu *gpu = &label->all_stats[i]->gpus[g];
            const struct lab_recording_stats_figures *figures =
                &gpu->figures[LAB_RECORDING_STATS_MEMORY];
            if (gpu->track->entity.index != index || figures->count == 0)
                continue;
            row.mean += figures->mean;
            row.deviation += figures->deviation;
            row.peak = fmax(row.peak, figures->peak);
            row.share = fmax(row.share, figures->peak / gpu->capacity_mib);
            known++;
        }
    row.mean = known ? row.mean / known : (double)NAN;
    row.deviation = known ? row.deviation / known : (double)NAN;
    row.change = lab_recording_stats_compare(first, label, LAB_RECORDING_STATS_MEMORY, index,
                                             "memory.gpu", arena);
    if (label == first)
        row.change.subject = first->name; /* the reference itself */
    else if (memory->change.verdict != LAB_CLAIM_YES && !isnan(row.change.p))
        lab_claim_judge(&row.change, 1);
    return row;
}

/* --- parts --- */

static const char *make_answer(const struct memory *memory, bool reference,
                               struct lab_arena *arena) {
    if (isnan(memory->mean))
        return lab_arena_printf(arena, "%s: no memory was recorded.", memory->label->name);
    if (reference)
        return lab_arena_printf(arena, "%s: %s on average, %s at its peak.", memory->label->name,
                                lab_words_memory(memory->mean, arena),
                                lab_words_memory(memory->peak.value, arena));
    return lab_arena_printf(arena, "%s.", lab_claim_sentence(&memory->change, arena));
}

/* What a GPU needs to have is the peak. */
static const char *range_words(const struct memory *memories, int count, struct lab_arena *arena) {
    const struct memory *low = memories, *high = memories;
    for (int i = 1; i < count; i++) {
        low = memories[i].peak.value < low->peak.value ? &memories[i] : low;
        high = memories[i].peak.value > high->peak.value ? &memories[i] : high;
    }
    const char *least = lab_words_memory(low->peak.value, arena),
               *most = lab_words_memory(high->peak.value, arena);
    if (lab_str_equal(least, most)) /* as shown */
        return lab_arena_printf(arena, "All %d: %s at the peak, all GPUs together.", count, least);
    return lab_arena_printf(arena, "At the peak, all GPUs together: %s (%s) to %s (%s).", least,
                            low->label->name, most, high->label->name);
}

static void add_part(struct lab_analysis_result *result, const struct memory *memory,
                     const struct lab_recording_stats_label *first, bool compared,
                     struct lab_arena *arena) {
    const struct lab_recording_stats_label *label = memory->label;
    struct lab_analysis_part *part = lab_analysis_add_part(result, label->name, arena);
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(label, indices);
    struct gpu_row *rows = lab_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    for (int i = 0; i < count; i++)
        rows[i] = describe_gpu(memory, first, indices[i], arena);
    lab_rows_set_figures(part, figure_fields, figure_count(compared), memory, arena);
    /* of one label, or of the reference, there is nothing to compare */
    int fields = LAB_COUNT_OF(gpu_fields) - (label == first || !compared);
    struct lab_rows table = LAB_ROWS(gpu_fields, rows, count);
    table.field_count = fields;
    if (count > 0)
        lab_rows_add_table(part, "gpus", "By GPU", &table, arena);
    if (label != first && compared) {
        lab_analysis_add_claim(result, &memory->change, arena);
        lab_rows_add_claims(result, &table, arena);
    }
    part->about = lab_recording_stats_about(label->all_stats, label->count, arena);
    part->answer = make_answer(memory, label == first || !compared, arena);
    lab_recording_stats_add_notes(label->all_stats, label->count, &part->notes, arena);
}

/* --- the whole --- */

#define FEW 3 /* labels that the answer names all */

/* In the order of the parts. */
static void add_charts(const struct memory *memories, int count, struct lab_arena *arena,
                       struct lab_analysis_result *result) {
    const struct lab_recording_stats_label **labels =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    for (int i = 0; i < count; i++)
        labels[i] = memories[i].label;
    if (count > FEW && lab_recording_stats_is_alike(labels, count, arena))
        return; /* the answer says it */
    lab_recording_stats_chart_comparison(labels, count, arena, result);
    lab_recording_stats_chart_timeline(labels, count, arena, result);
}

static int memory_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                      struct lab_err *err) {
    const struct memory_config *config = input->config;
    struct lab_arena *arena = result->arena;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = lab_recording_stats_labels(all_stats, input->recording_count, arena, &labels);
    /* of a study with many points, the first to be run is no reference */
    bool compared = count <= FEW || isnan(input->recordings[0].rate);
    result->column_count = lab_rows_column_count(figure_fields, figure_count(compared));
    struct memory *memories = lab_arena_alloc(arena, (size_t)count, sizeof *memories);
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)count, sizeof *claims);
    for (int i = 0; i < count; i++) {
        memories[i] = describe(&labels[i], &labels[0], arena);
        claims[i] = &memories[i].change;
    }
    lab_claim_adjust(claims + 1, count - 1);
    LAB_SORT(memories, count, LAB_BY(memories, mean));
    for (int i = 0; i < count / 2 && count > FEW; i++) { /* the first ones are shown */
        struct memory last = memories[count - 1 - i];
        memories[count - 1 - i] = memories[i];
        memories[i] = last;
    }
    const char *answer = "";
    for (int i = 0; i < count; i++) {
        add_part(result, &memories[i], &labels[0], compared, arena);
        if (memories[i].label != &labels[0] && count <= FEW)
            answer = lab_arena_printf(arena, "%s %s", answer, result->parts[i].answer);
    }
    if (count > FEW)
        answer = range_words(memories, count, arena);
    for (int i = 0; i < count && count <= FEW; i++) /* the reference first */
        if (memories[i].label == &labels[0])
            answer = lab_arena_printf(arena, "%s%s", result->parts[i].answer, answer);
    result->answer = answer;
    add_charts(memories, count, arena, result);
    return 0;
}

const struct lab_analysis lab_analysis_memory = {
    .name = "memory",
    .summary = "how much GPU memory each point or recording takes",
    .description =
        "Recordings by label, the least memory first, of more than three the most, compared with "
        "the first label. Mean and peak "
        "of each GPU and of all together, next to the sum of the single peaks. A label is a file's "
        "name, a folder's, a run's of a study, or what is written before it: LABEL=PATH. Intervals "
        "are over the recordings of a label; one of each gives values and no verdict.",
    .options = memory_options,
    .config_size = sizeof(struct memory_config),
    .kinds = (const struct lab_analysis_kind[]){{"memory.total", LAB_KIND_ESTIMATE},
                                                {"memory.gpu", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    LAB_PARTS_OF("labels", figure_fields),
    .run = memory_run,
};
