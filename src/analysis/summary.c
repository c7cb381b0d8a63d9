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

/* Of a GPU over recordings: its mean or peak over them, or the sum. */
enum over { MEAN, MOST, SUM };
static const enum over gpu_over[] = {MEAN, MOST, MEAN, MEAN, SUM, MOST, SUM, SUM, SUM};
static const struct lab_doc_column gpu_columns[1 + LAB_COUNT_OF(gpu_over)] = {
    {"gpu", "GPU", LAB_UNIT_COUNT},
    {"memory_mib", "Memory", LAB_UNIT_MEBIBYTES},
    {"memory_peak_mib", "Peak", LAB_UNIT_MEBIBYTES},
    {"utilization_percent", "Util.", LAB_UNIT_PERCENT},
    {"power_w", "Power", LAB_UNIT_WATTS},
    {"energy_j", "Energy", LAB_UNIT_JOULES},
    {"temperature_peak_c", "Hottest", LAB_UNIT_CELSIUS},
    {"throttled_s", "Held back", LAB_UNIT_DURATION},
    {"missing_s", NULL, LAB_UNIT_DURATION},
    {"gaps", NULL, LAB_UNIT_COUNT},
};

static const struct lab_doc_column recording_columns[] = {
    {"name", "Recording, newest first", LAB_UNIT_TEXT},
    {"started", NULL, LAB_UNIT_TEXT},
    {"newest", NULL, LAB_UNIT_COUNT},
    {"duration_s", "Time", LAB_UNIT_DURATION},
    {"memory_total_mib", "Memory", LAB_UNIT_MEBIBYTES},
    {"utilization_percent", "Util.", LAB_UNIT_PERCENT},
    {"power_total_w", "Power", LAB_UNIT_WATTS},
    {"energy_j", "Energy", LAB_UNIT_JOULES},
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

static void add_gpu_row(struct lab_doc_table *table, const struct lab_recording_stats_label *label,
                        int index, struct lab_arena *arena) {
    enum { FIGURES_OF_GPU = LAB_COUNT_OF(gpu_over) };
    struct tally t[FIGURES_OF_GPU];
    for (int c = 0; c < FIGURES_OF_GPU; c++)
        t[c] = TALLY_INIT;
    for (int i = 0; i < label->count; i++)
        for (int g = 0; g < label->all_stats[i]->gpu_count; g++) {
            const struct lab_recording_stats_gpu *gpu = &label->all_stats[i]->gpus[g];
            const struct lab_recording_stats_figures *figures = gpu->figures;
            const double values[FIGURES_OF_GPU] = {figures[LAB_RECORDING_STATS_MEMORY].mean,
                                                   figures[LAB_RECORDING_STATS_MEMORY].peak,
                                                   figures[LAB_RECORDING_STATS_UTILIZATION].mean,
                                                   figures[LAB_RECORDING_STATS_POWER].mean,
                                                   gpu->energy_j,
                                                   figures[LAB_RECORDING_STATS_TEMPERATURE].peak,
                                                   gpu->throttled_s,
                                                   gpu->missing_s,
                                                   gpu->gap_count};
            for (int c = 0; c < FIGURES_OF_GPU && gpu->track->entity.index == index; c++)
                count_in(&t[c], values[c]);
        }
    struct lab_doc_cell row[1 + FIGURES_OF_GPU] = {lab_cell_figure(index)};
    for (int c = 0; c < FIGURES_OF_GPU; c++)
        row[1 + c] = lab_cell_figure(gpu_over[c] == MEAN   ? mean_of(&t[c])
                                     : gpu_over[c] == MOST ? t[c].peak
                                                           : sum_of(&t[c]));
    lab_analysis_add_row(table, row, 1 + FIGURES_OF_GPU, arena);
}

static void add_gpu_table(struct lab_analysis_part *part,
                          const struct lab_recording_stats_label *label, struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "gpus", "By GPU", gpu_columns, arena);
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(label, indices);
    for (int i = 0; i < count; i++)
        add_gpu_row(table, label, indices[i], arena);
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

static void add_recording_table(struct lab_analysis_part *part,
                                const struct lab_recording_stats_label *label,
                                struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "files", label->count > 1 ? "Recordings" : NULL, recording_columns, arena);
    size_t count = (size_t)label->count;
    const struct lab_recording_stats **sorted = lab_arena_alloc(arena, count, sizeof *sorted);
    memcpy(sorted, label->all_stats, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_newest);
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = sorted[i];
        bool integrated;
        LAB_ROW(
            table, arena, lab_cell_text(stats->source->name),
            lab_cell_text(start_text(stats, arena)), lab_cell_figure(i == 0),
            lab_cell_figure(stats->duration_s),
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY)),
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_UTILIZATION)),
            lab_cell_figure(lab_recording_stats_together(stats, LAB_RECORDING_STATS_POWER)),
            lab_cell_figure(lab_recording_stats_energy(stats, &integrated)));
    }
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

static void set_cells(const struct lab_recording_stats_label *label, struct lab_doc_cell *cells,
                      struct lab_arena *arena) {
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
    cells[MEMORY] = lab_cell_remark(mean_of(&t[MEMORY]), "of all GPUs together");
    cells[PEAK] = lab_cell_remark(t[PEAK].peak, "that all GPUs had at one time");
    cells[UTILIZATION] = lab_cell_remark(mean_of(&t[UTILIZATION]), "mean of the GPUs");
    cells[POWER] = lab_cell_remark(mean_of(&t[POWER]), "of all GPUs together");
    cells[ENERGY] = lab_cell_remark(sum_of(&t[ENERGY]),
                                    any_integrated ? "from their power, where there is no counter"
                                                   : "by the GPUs' counters");
    cells[TEMPERATURE] = lab_cell_figure(t[TEMPERATURE].peak);
    cells[THROTTLED] = lab_cell_remark(sum_of(&t[THROTTLED]), reasons_text(reasons, arena));
    cells[GAPS] = lab_cell_remark(t[GAPS].sum > 0 ? t[GAPS].sum : (double)NAN,
                                  "of all GPUs' time gave nothing");
    double cv = mean_of(&t[BALANCE]);
    cells[BALANCE] =
        lab_cell_remark(cv, isnan(cv) ? NULL
                                      : lab_arena_printf(arena, "CV between GPUs (%s)",
                                                         lab_recording_stats_grade(cv)));
    lab_recording_stats_set_rate(mean_of(&t[RATE]), rate_unit, &cells[RATE], &cells[RATE_UNIT]);
    cells[CPU] = lab_cell_remark(mean_of(&t[CPU]), "busy on average");
    cells[HOST] = lab_cell_remark(t[HOST].peak, "at its peak");
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

static void add_part(struct lab_analysis_result *result,
                     const struct lab_recording_stats_label *label, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, label->name, arena);
    set_cells(label, part->cells, arena);
    add_gpu_table(part, label, arena);
    lab_analysis_drop_empty(part);
    add_recording_table(part, label, arena);
    part->about = lab_recording_stats_about(label->all_stats, label->count, arena);
    part->answer = make_answer(label, part->cells, arena);
    lab_recording_stats_add_notes(label->all_stats, label->count, &part->notes, arena);
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

static int summary_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    const struct summary_config *config = opaque;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    struct lab_chart timeline;
    if (lab_recording_stats_make_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int recordings = input->recording_count;
    int count = lab_recording_stats_labels(all_stats, recordings, arena, &labels);
    *ret_result = LAB_RESULT("labels", figure_columns);
    ret_result->simulated = lab_recording_stats_simulated(input);
    for (int i = 0; i < count; i++)
        add_part(ret_result, &labels[i], arena);
    if (recordings > count)
        lab_analysis_note(
            &ret_result->notes, arena,
            "Of a label with several recordings: means are means of theirs, peaks the largest "
            "of them, times and energies their sums.");
    ret_result->answer = count == 1 ? ret_result->parts[0].answer
                                    : answer_for_all(ret_result->parts, count, recordings, arena);
    /* of one recording, what the machine did; of several, how their labels differ */
    if (recordings > 1)
        lab_recording_stats_chart_usage(labels, count, arena, ret_result);
    else if (lab_timeline_make(&input->recordings->recording, 1, NULL, 0, ret_result->simulated,
                               arena, &timeline))
        lab_analysis_add_chart(ret_result, timeline, arena);
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
