/*
 * summary.c: `gpulab analyze summary`: everything that many recordings tell, by label and by GPU,
 * on a page. All recordings of a label count; the newest is marked.
 */
#include "analysis/analysis_timeline.h"
#include "analysis/recording/recording_stats.h"
#include "analysis/recording/recording_stats_chart.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct summary_config {
    struct lab_recording_stats_config stats;
};

static const struct lab_option summary_options[] = {LAB_RECORDING_STATS_OPTIONS(summary_config),
                                                    {NULL}};

enum {
    RECORDINGS,
    DURATION,
    MEMORY,
    PEAK,
    UTILIZATION,
    POWER,
    ENERGY,
    TEMPERATURE,
    THROTTLED,
    GAPS,
    BALANCE,
    RATE,
    RATE_UNIT,
    CPU,
    HOST,
    FIGURES
};

static const struct lab_doc_column figure_columns[FIGURES] = {
    [RECORDINGS] = {"recordings", "Recordings", LAB_UNIT_COUNT},
    [DURATION] = {"duration_s", "Duration", LAB_UNIT_DURATION, "Time"},
    [MEMORY] = {"memory_total_mib", "Memory, mean", LAB_UNIT_MEBIBYTES, "Memory"},
    [PEAK] = {"memory_peak_mib", "Memory, peak", LAB_UNIT_MEBIBYTES},
    [UTILIZATION] = {"utilization_percent", "Utilisation", LAB_UNIT_PERCENT, "Util."},
    [POWER] = {"power_total_w", "Power", LAB_UNIT_WATTS, "Power"},
    [ENERGY] = {"energy_j", "Energy", LAB_UNIT_JOULES, "Energy"},
    [TEMPERATURE] = {"temperature_peak_c", "Hottest", LAB_UNIT_CELSIUS},
    [THROTTLED] = {"throttled_s", "Held back", LAB_UNIT_DURATION},
    [GAPS] = {"missing_s", "Missing", LAB_UNIT_DURATION},
    [BALANCE] = {"memory_cv", "Memory balance", LAB_UNIT_SHARE},
    [RATE] = {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND},
    [RATE_UNIT] = {"rate_unit", NULL, LAB_UNIT_TEXT},
    [CPU] = {"cpu_percent", "CPUs", LAB_UNIT_PERCENT, "CPUs"},
    [HOST] = {"host_memory_peak_mib", "Host memory", LAB_UNIT_MEBIBYTES},
};

enum {
    GPU,
    GPU_MEMORY,
    GPU_PEAK,
    GPU_UTILIZATION,
    GPU_POWER,
    GPU_ENERGY,
    GPU_TEMPERATURE,
    GPU_THROTTLED,
    GPU_MISSING,
    GPU_GAPS,
    GPU_COLUMNS
};

static const struct lab_doc_column gpu_columns[GPU_COLUMNS] = {
    [GPU] = {"gpu", "GPU", LAB_UNIT_COUNT},
    [GPU_MEMORY] = {"memory_mib", "Memory", LAB_UNIT_MEBIBYTES},
    [GPU_PEAK] = {"memory_peak_mib", "Peak", LAB_UNIT_MEBIBYTES},
    [GPU_UTILIZATION] = {"utilization_percent", "Util.", LAB_UNIT_PERCENT},
    [GPU_POWER] = {"power_w", "Power", LAB_UNIT_WATTS},
    [GPU_ENERGY] = {"energy_j", "Energy", LAB_UNIT_JOULES},
    [GPU_TEMPERATURE] = {"temperature_peak_c", "Hottest", LAB_UNIT_CELSIUS},
    [GPU_THROTTLED] = {"throttled_s", "Held back", LAB_UNIT_DURATION},
    [GPU_MISSING] = {"missing_s", NULL, LAB_UNIT_DURATION},
    [GPU_GAPS] = {"gaps", NULL, LAB_UNIT_COUNT},
};

enum {
    REC,
    REC_START,
    REC_NEWEST,
    REC_DURATION,
    REC_MEMORY,
    REC_UTILIZATION,
    REC_POWER,
    REC_ENERGY,
    REC_COLUMNS
};

static const struct lab_doc_column recording_columns[REC_COLUMNS] = {
    [REC] = {"name", "Recording, newest first", LAB_UNIT_TEXT},
    [REC_START] = {"started", NULL, LAB_UNIT_TEXT},
    [REC_NEWEST] = {"newest", NULL, LAB_UNIT_COUNT},
    [REC_DURATION] = {"duration_s", "Time", LAB_UNIT_DURATION},
    [REC_MEMORY] = {"memory_total_mib", "Memory", LAB_UNIT_MEBIBYTES},
    [REC_UTILIZATION] = {"utilization_percent", "Util.", LAB_UNIT_PERCENT},
    [REC_POWER] = {"power_total_w", "Power", LAB_UNIT_WATTS},
    [REC_ENERGY] = {"energy_j", "Energy", LAB_UNIT_JOULES},
};

/* --- over recordings --- */

struct tally { /* NaN is left out of all of them */
    double sum, peak;
    int count;
};

#define TALLY_INIT ((struct tally){0, NAN, 0})

static void count_in(struct tally *tally, double value) {
    if (isnan(value))
        return;
    tally->sum += value;
    tally->peak = fmax(tally->peak, value);
    tally->count++;
}

static double sum_of(const struct tally *tally) {
    return tally->count ? tally->sum : (double)NAN;
}

static double mean_of(const struct tally *tally) {
    return tally->count ? tally->sum / tally->count : (double)NAN;
}

/* --- tables --- */

static void fill_gpu_row(const struct lab_recording_stats_label *label, int index,
                         struct lab_doc_cell *row) {
    struct tally t[GPU_COLUMNS];
    for (int c = 0; c < GPU_COLUMNS; c++)
        t[c] = TALLY_INIT;
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            const struct lab_recording_stats_gpu *gpu = &label->all_stats[i]->gpus[g];
            if (gpu->track->entity.index != index)
                continue;
            count_in(&t[GPU_MEMORY], gpu->figures[LAB_RECORDING_STATS_MEMORY].mean);
            count_in(&t[GPU_PEAK], gpu->figures[LAB_RECORDING_STATS_MEMORY].peak);
            count_in(&t[GPU_UTILIZATION], gpu->figures[LAB_RECORDING_STATS_UTILIZATION].mean);
            count_in(&t[GPU_POWER], gpu->figures[LAB_RECORDING_STATS_POWER].mean);
            count_in(&t[GPU_ENERGY], gpu->energy_j);
            count_in(&t[GPU_TEMPERATURE], gpu->figures[LAB_RECORDING_STATS_TEMPERATURE].peak);
            count_in(&t[GPU_THROTTLED], gpu->throttled_s);
            count_in(&t[GPU_MISSING], gpu->missing_s);
            count_in(&t[GPU_GAPS], gpu->gap_count);
        }
    row[GPU] = lab_cell_figure(index);
    row[GPU_MEMORY] = lab_cell_figure(mean_of(&t[GPU_MEMORY]));
    row[GPU_PEAK] = lab_cell_figure(t[GPU_PEAK].peak);
    row[GPU_UTILIZATION] = lab_cell_figure(mean_of(&t[GPU_UTILIZATION]));
    row[GPU_POWER] = lab_cell_figure(mean_of(&t[GPU_POWER]));
    row[GPU_ENERGY] = lab_cell_figure(sum_of(&t[GPU_ENERGY]));
    row[GPU_TEMPERATURE] = lab_cell_figure(t[GPU_TEMPERATURE].peak);
    row[GPU_THROTTLED] = lab_cell_figure(sum_of(&t[GPU_THROTTLED]));
    row[GPU_MISSING] = lab_cell_figure(sum_of(&t[GPU_MISSING]));
    row[GPU_GAPS] = lab_cell_figure(sum_of(&t[GPU_GAPS]));
}

static struct lab_doc_table gpu_table(const struct lab_recording_stats_label *label,
                                      struct lab_arena *arena) {
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(label, indices);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * GPU_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++)
        fill_gpu_row(label, indices[i], cells + (ptrdiff_t)i * GPU_COLUMNS);
    return (struct lab_doc_table){.key = "gpus",
                                  .title = "By GPU",
                                  .columns = gpu_columns,
                                  .column_count = GPU_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

static int64_t wall_of(const struct lab_recording_stats *stats) {
    return lab_recording_wall_ns(stats->source->recording, stats->start_ns);
}

static int by_newest(const void *a, const void *b) {
    const struct lab_recording_stats *x = *(const struct lab_recording_stats *const *)a;
    const struct lab_recording_stats *y = *(const struct lab_recording_stats *const *)b;
    int64_t wall_x = wall_of(x), wall_y = wall_of(y);
    if (wall_x != wall_y)
        return wall_x < wall_y ? 1 : -1;
    return strcmp(x->source->name, y->source->name);
}

/* "2026-11-15T10:42:03Z": the same wherever it is read. */
static const char *start_text(const struct lab_recording_stats *stats, struct lab_arena *arena) {
    time_t seconds = (time_t)(wall_of(stats) / 1000000000);
    struct tm parts;
    char text[32];
    if (!gmtime_r(&seconds, &parts) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        return NULL;
    return lab_arena_strdup(arena, text);
}

static struct lab_doc_table recording_table(const struct lab_recording_stats_label *label,
                                            struct lab_arena *arena) {
    size_t count = (size_t)label->count;
    const struct lab_recording_stats **sorted = lab_arena_alloc(arena, count, sizeof *sorted);
    struct lab_doc_cell *cells = lab_arena_alloc(arena, count * REC_COLUMNS, sizeof *cells);
    memcpy(sorted, label->all_stats, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_newest);
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = sorted[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * REC_COLUMNS;
        bool integrated;
        row[REC] = lab_cell_text(stats->source->name);
        row[REC_START] = lab_cell_text(start_text(stats, arena));
        row[REC_NEWEST] = lab_cell_figure(i == 0);
        row[REC_DURATION] = lab_cell_figure(stats->duration_s);
        row[REC_MEMORY] =
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY));
        row[REC_UTILIZATION] =
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_UTILIZATION));
        row[REC_POWER] =
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_POWER));
        row[REC_ENERGY] = lab_cell_figure(lab_recording_stats_energy(stats, &integrated));
    }
    return (struct lab_doc_table){.key = "files",
                                  .title = label->count > 1 ? "Recordings" : NULL,
                                  .columns = recording_columns,
                                  .column_count = REC_COLUMNS,
                                  .cells = cells,
                                  .row_count = label->count};
}

/* --- a label --- */

/* "power limit and heat (driver)" */
static const char *reasons_text(uint64_t reasons, struct lab_arena *arena) {
    const char *words[16] = {0};
    int count = 0;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        if (reasons & reason->bit && count < 15)
            words[count++] = reason->words;
    if (count == 0)
        return NULL;
    LAB_AUTO(str, text);
    lab_str_add(&text, "of all GPUs' time, by: ");
    lab_str_add_list(&text, words, "and");
    return lab_arena_strdup(arena, text.text);
}

static struct lab_doc_cell with_text(double value, const char *text) {
    struct lab_doc_cell cell = lab_cell_figure(value);
    cell.text = text;
    return cell;
}

static const struct lab_doc_cell *make_cells(const struct lab_recording_stats_label *label,
                                             struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct tally t[FIGURES];
    uint64_t reasons = 0;
    bool any_integrated = false;
    const char *rate_unit = NULL;
    for (int c = 0; c < FIGURES; c++)
        t[c] = TALLY_INIT;
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        bool integrated;
        count_in(&t[DURATION], stats->duration_s);
        count_in(&t[MEMORY], lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY));
        count_in(&t[PEAK], stats->peak_total_mib);
        count_in(&t[UTILIZATION],
                 lab_recording_stats_together(stats, LAB_RECORDING_STATS_UTILIZATION));
        count_in(&t[POWER], lab_recording_stats_together(stats, LAB_RECORDING_STATS_POWER));
        count_in(&t[ENERGY], lab_recording_stats_energy(stats, &integrated));
        count_in(&t[THROTTLED], lab_recording_stats_throttled(stats));
        count_in(&t[BALANCE], lab_recording_stats_cv_of(stats, LAB_RECORDING_STATS_MEMORY));
        count_in(&t[RATE], stats->source->rate);
        count_in(&t[CPU], stats->cpu_percent);
        count_in(&t[HOST], stats->host_peak_mib);
        any_integrated |= integrated;
        rate_unit = rate_unit ? rate_unit : stats->source->rate_unit;
        for (int g = 0; g < stats->gpu_count; g++) {
            count_in(&t[TEMPERATURE], stats->gpus[g].figures[LAB_RECORDING_STATS_TEMPERATURE].peak);
            count_in(&t[GAPS], stats->gpus[g].missing_s);
            reasons |= stats->gpus[g].reasons;
        }
    }
    cells[RECORDINGS] = lab_cell_figure(label->count);
    cells[DURATION] = lab_cell_figure(sum_of(&t[DURATION]));
    cells[MEMORY] = with_text(mean_of(&t[MEMORY]), "of all GPUs together");
    cells[PEAK] = with_text(t[PEAK].peak, "that all GPUs had at one time");
    cells[UTILIZATION] = with_text(mean_of(&t[UTILIZATION]), "mean of the GPUs");
    cells[POWER] = with_text(mean_of(&t[POWER]), "of all GPUs together");
    cells[ENERGY] =
        with_text(sum_of(&t[ENERGY]), any_integrated ? "from their power, where there is no counter"
                                                     : "by the GPUs' counters");
    cells[TEMPERATURE] = lab_cell_figure(t[TEMPERATURE].peak);
    cells[THROTTLED] = with_text(sum_of(&t[THROTTLED]), reasons_text(reasons, arena));
    cells[GAPS] =
        with_text(t[GAPS].sum > 0 ? t[GAPS].sum : (double)NAN, "of all GPUs' time gave nothing");
    double cv = mean_of(&t[BALANCE]);
    cells[BALANCE] = with_text(cv, isnan(cv) ? NULL
                                             : lab_arena_printf(arena, "CV between GPUs (%s)",
                                                                lab_recording_stats_grade(cv)));
    lab_recording_stats_set_rate(mean_of(&t[RATE]), rate_unit, &cells[RATE], &cells[RATE_UNIT]);
    cells[CPU] = with_text(mean_of(&t[CPU]), "busy on average");
    cells[HOST] = with_text(t[HOST].peak, "at its peak");
    return cells;
}

/* --- words --- */

static const char *make_answer(const struct lab_recording_stats_label *label,
                               const struct lab_doc_cell *cells, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s:", label->name);
    if (!isnan(cells[UTILIZATION].value))
        lab_str_printf(&text, " GPUs %.1f %% busy,", cells[UTILIZATION].value);
    if (!isnan(cells[MEMORY].value))
        lab_str_printf(&text, " %.1f MB of memory,", cells[MEMORY].value);
    if (!isnan(cells[ENERGY].value)) {
        lab_str_add(&text, " ");
        lab_str_add_si(&text, cells[ENERGY].value, "J");
    }
    if (text.text[text.length - 1] == ':') {
        if (!isnan(cells[CPU].value))
            lab_str_printf(&text, " CPUs %.1f %% busy,", cells[CPU].value);
        if (!isnan(cells[HOST].value))
            lab_str_printf(&text, " at most %.1f MB of the host's memory", cells[HOST].value);
        lab_str_add(&text, text.text[text.length - 1] == ':' ? " no figure of a GPU" : "");
    }
    lab_str_add(&text, " in ");
    lab_str_add_duration(&text, cells[DURATION].value, LAB_DURATION_PRECISE);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

static struct lab_analysis_part make_part(const struct lab_recording_stats_label *label,
                                          struct lab_arena *arena) {
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    const struct lab_doc_cell *cells = make_cells(label, arena);
    int table_count = 0;
    struct lab_doc_table gpus = gpu_table(label, arena);
    if (gpus.row_count > 0)
        tables[table_count++] = gpus;
    tables[table_count++] = recording_table(label, arena);
    return (struct lab_analysis_part){
        .name = label->name,
        .about = lab_recording_stats_about(label->all_stats, label->count, arena),
        .answer = make_answer(label, cells, arena),
        .cells = cells,
        .tables = tables,
        .table_count = table_count,
        .notes = lab_recording_stats_notes(label->all_stats, label->count, 0, arena),
    };
}

/* "12 recordings of 3 labels, 1.5 h: 4.2 MJ; the most power took b (812.0 W)." */
static const char *answer_for_all(const struct lab_analysis_part *parts, int count, int recordings,
                                  struct lab_arena *arena) {
    LAB_AUTO(str, text);
    double seconds = 0, energy = NAN;
    const struct lab_analysis_part *most = NULL;
    for (int i = 0; i < count; i++) {
        const struct lab_doc_cell *cells = parts[i].cells;
        seconds += cells[DURATION].value;
        if (!isnan(cells[ENERGY].value))
            energy = (isnan(energy) ? 0 : energy) + cells[ENERGY].value;
        if (!isnan(cells[POWER].value) && (!most || cells[POWER].value > most->cells[POWER].value))
            most = &parts[i];
    }
    lab_str_printf(&text, "%d recordings of %d labels, ", recordings, count);
    lab_str_add_duration(&text, seconds, LAB_DURATION_PRECISE);
    if (!isnan(energy)) {
        lab_str_add(&text, ", ");
        lab_str_add_si(&text, energy, "J");
    }
    if (most)
        lab_str_printf(&text, "; %s took the most power (%.1f W)", most->name,
                       most->cells[POWER].value);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

/* --- the whole --- */

/* Of one recording, what the machine did; of several, how their labels differ. */
static void add_charts(const struct lab_analysis_input *input,
                       const struct lab_recording_stats_label *labels, int count,
                       struct lab_arena *arena, struct lab_analysis_result *result) {
    struct lab_chart *charts = lab_arena_alloc(arena, 2, sizeof *charts);
    result->charts = charts;
    if (input->recording_count == 1)
        result->chart_count += lab_timeline_make(&input->recordings->recording, 1, NULL, 0,
                                                 result->simulated, arena, charts);
    else
        result->chart_count +=
            lab_recording_stats_chart_usage(labels, count, result->simulated, arena, charts);
}

static int summary_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    const struct summary_config *config = opaque;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    if (lab_recording_stats_make_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = lab_recording_stats_labels(all_stats, input->recording_count, arena, &labels);
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    const char **notes = lab_arena_alloc(arena, 2, sizeof *notes);
    for (int i = 0; i < count; i++)
        parts[i] = make_part(&labels[i], arena);
    if (input->recording_count > count)
        notes[0] =
            "Of a label with several recordings: means are means of theirs, peaks the largest "
            "of them, times and energies their sums.";
    *ret_result = (struct lab_analysis_result){
        .answer = count == 1 ? parts->answer
                             : answer_for_all(parts, count, input->recording_count, arena),
        .part_key = "labels",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts,
        .part_count = count,
        .simulated = lab_recording_stats_simulated(input),
        .notes = notes,
    };
    add_charts(input, labels, count, arena, ret_result);
    return 0;
}

const struct lab_analysis lab_analysis_summary = {
    .name = "summary",
    .summary = "what many recordings tell, by label and by GPU, on a page",
    .description =
        "Time, memory, utilisation, power, energy, heat, throttling and gaps of all recordings of "
        "a "
        "folder or study. All files of a label count, the newest comes first. A label is a file's "
        "name, a folder's, a run's of a study, or what is written before it: LABEL=PATH.",
    .options = summary_options,
    .config_size = sizeof(struct summary_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    .run = summary_run,
};
