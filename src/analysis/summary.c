/*
 * summary.c: `gpulab analyze summary`: everything that many recordings tell, by label and by GPU,
 * on a page. All recordings of a label count; the newest is marked.
 */
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
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

/* --- over recordings --- */

enum {
    DURATION,
    MEMORY,
    PEAK,
    UTILIZATION,
    POWER,
    ENERGY,
    TEMPERATURE,
    THROTTLED,
    MISSING,
    GAPS,
    BALANCE,
    RATE,
    CPU,
    HOST,
    VALUES
};
enum over { MEAN, MOST, SUM };
static const enum over overs[VALUES] = {
    [DURATION] = SUM, [MEMORY] = MEAN, [PEAK] = MOST,        [UTILIZATION] = MEAN, [POWER] = MEAN,
    [ENERGY] = SUM,   [GAPS] = SUM,    [TEMPERATURE] = MOST, [THROTTLED] = SUM,    [MISSING] = SUM,
    [BALANCE] = MEAN, [RATE] = MEAN,   [CPU] = MEAN,         [HOST] = MOST,
};

struct values { /* of a GPU, of a recording, or over several; NaN = none */
    double at[VALUES];
};

struct tally { /* NaN is left out */
    double sum[VALUES], peak[VALUES];
    int count[VALUES];
};

static void count_in(struct tally *tally, struct values values) {
    for (int v = 0; v < VALUES; v++) {
        if (isnan(values.at[v]))
            continue;
        tally->sum[v] += values.at[v];
        tally->peak[v] = tally->count[v]++ ? fmax(tally->peak[v], values.at[v]) : values.at[v];
    }
}

static struct values result_of(const struct tally *tally) {
    struct values values;
    for (int v = 0; v < VALUES; v++)
        values.at[v] = tally->count[v] == 0 ? (double)NAN
                       : overs[v] == MEAN   ? tally->sum[v] / tally->count[v]
                       : overs[v] == MOST   ? tally->peak[v]
                                            : tally->sum[v];
    return values;
}

static struct values values_of_gpu(const struct lab_recording_stats_gpu *gpu) {
    const struct lab_recording_stats_figures *figures = gpu->figures;
    return (struct values){{[MEMORY] = figures[LAB_RECORDING_STATS_MEMORY].mean,
                            [PEAK] = figures[LAB_RECORDING_STATS_MEMORY].peak,
                            [UTILIZATION] = figures[LAB_RECORDING_STATS_UTILIZATION].mean,
                            [POWER] = figures[LAB_RECORDING_STATS_POWER].mean,
                            [ENERGY] = gpu->energy_j,
                            [TEMPERATURE] = figures[LAB_RECORDING_STATS_TEMPERATURE].peak,
                            [THROTTLED] = gpu->throttled_s,
                            [MISSING] = gpu->missing_s,
                            [GAPS] = gpu->gap_count}};
}

static struct values values_of(const struct lab_recording_stats *stats) {
    struct tally gpus = {0};
    bool integrated;
    for (int g = 0; g < stats->gpu_count; g++)
        count_in(&gpus, values_of_gpu(&stats->gpus[g]));
    struct values values = result_of(&gpus);
    values.at[DURATION] = stats->duration_s;
    values.at[MEMORY] = lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY);
    values.at[PEAK] = stats->peak_total_mib;
    values.at[POWER] = lab_recording_stats_together(stats, LAB_RECORDING_STATS_POWER);
    values.at[ENERGY] = lab_recording_stats_energy(stats, &integrated);
    values.at[BALANCE] = lab_recording_stats_cv_of(stats, LAB_RECORDING_STATS_MEMORY);
    values.at[RATE] = stats->source->rate;
    values.at[CPU] = stats->cpu_percent;
    values.at[HOST] = stats->host_peak_mib;
    return values;
}

/* --- tables --- */

struct row { /* a GPU over recordings, or a recording */
    int gpu, newest;
    const char *name, *started;
    struct values values;
};

#define VALUE(which, ...) LAB_FIELD(struct row, values.at[which], __VA_ARGS__)
static const struct lab_field gpu_fields[] = {
    LAB_FIELD(struct row, gpu, "gpu", "GPU", LAB_UNIT_COUNT),
    VALUE(MEMORY, "memory_mib", "Memory", LAB_UNIT_MEBIBYTES),
    VALUE(PEAK, "memory_peak_mib", "Peak", LAB_UNIT_MEBIBYTES),
    VALUE(UTILIZATION, "utilization_percent", "Util.", LAB_UNIT_PERCENT),
    VALUE(POWER, "power_w", "Power", LAB_UNIT_WATTS),
    VALUE(ENERGY, "energy_j", "Energy", LAB_UNIT_JOULES),
    VALUE(TEMPERATURE, "temperature_peak_c", "Hottest", LAB_UNIT_CELSIUS),
    VALUE(THROTTLED, "throttled_s", "Throttled", LAB_UNIT_DURATION),
    VALUE(MISSING, "missing_s", NULL, LAB_UNIT_DURATION),
    VALUE(GAPS, "gaps", NULL, LAB_UNIT_COUNT),
};

static const struct lab_field file_fields[] = {
    LAB_FIELD(struct row, name, "name", "Recording, newest first", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, started, "started", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, newest, "newest", NULL, LAB_UNIT_COUNT),
    VALUE(DURATION, "duration_s", "Time", LAB_UNIT_DURATION),
    VALUE(MEMORY, "memory_total_mib", "Memory", LAB_UNIT_MEBIBYTES),
    VALUE(UTILIZATION, "utilization_percent", "Util.", LAB_UNIT_PERCENT),
    VALUE(POWER, "power_total_w", "Power", LAB_UNIT_WATTS),
    VALUE(ENERGY, "energy_j", "Energy", LAB_UNIT_JOULES),
};

static void add_gpu_table(struct lab_analysis_part *part,
                          const struct lab_recording_stats_label *label, struct lab_arena *arena) {
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(label, indices);
    struct row *rows = lab_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    for (int i = 0; i < count; i++) {
        struct tally tally = {0};
        for (int r = 0; r < label->count; r++)
            for (int g = 0; g < label->all_stats[r]->gpu_count; g++)
                if (label->all_stats[r]->gpus[g].track->entity.index == indices[i])
                    count_in(&tally, values_of_gpu(&label->all_stats[r]->gpus[g]));
        rows[i] = (struct row){.gpu = indices[i], .values = result_of(&tally)};
    }
    if (count > 0)
        lab_rows_add_table(part, "gpus", "By GPU", &LAB_ROWS(gpu_fields, rows, count), arena);
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

static void add_file_table(struct lab_analysis_part *part,
                           const struct lab_recording_stats_label *label, struct lab_arena *arena) {
    size_t count = (size_t)label->count;
    const struct lab_recording_stats **sorted = lab_arena_alloc(arena, count, sizeof *sorted);
    struct row *rows = lab_arena_alloc(arena, count, sizeof *rows);
    memcpy(sorted, label->all_stats, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_newest);
    for (int i = 0; i < label->count; i++)
        rows[i] = (struct row){.name = sorted[i]->source->name,
                               .started = start_text(sorted[i], arena),
                               .newest = i == 0,
                               .values = values_of(sorted[i])};
    lab_rows_add_table(part, "files", count > 1 ? "Recordings" : NULL,
                       &LAB_ROWS(file_fields, rows, label->count), arena);
}

/* --- a label --- */

struct figures {
    int recordings;
    double duration;
    struct lab_doc_cell memory, peak, utilization, power, energy, throttled, missing, balance, rate,
        rate_unit, cpu, host;
    double temperature;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, recordings, "recordings", "Recordings", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, duration, "duration_s", "Duration", LAB_UNIT_DURATION, "Time"),
    LAB_FIELD(struct figures, memory, "memory_total_mib", "Memory, mean", LAB_UNIT_MEBIBYTES,
              "Memory"),
    LAB_FIELD(struct figures, peak, "memory_peak_mib", "Memory, peak", LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct figures, utilization, "utilization_percent", "Utilisation", LAB_UNIT_PERCENT,
              "Util."),
    LAB_FIELD(struct figures, power, "power_total_w", "Power", LAB_UNIT_WATTS, "Power"),
    LAB_FIELD(struct figures, energy, "energy_j", "Energy", LAB_UNIT_JOULES, "Energy"),
    LAB_FIELD(struct figures, temperature, "temperature_peak_c", "Hottest", LAB_UNIT_CELSIUS),
    LAB_FIELD(struct figures, throttled, "throttled_s", "Throttled", LAB_UNIT_DURATION),
    LAB_FIELD(struct figures, missing, "missing_s", "Missing", LAB_UNIT_DURATION),
    LAB_FIELD(struct figures, balance, "memory_cv", "Memory balance", LAB_UNIT_SHARE),
    LAB_FIELD(struct figures, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND),
    LAB_FIELD(struct figures, rate_unit, "rate_unit", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, cpu, "cpu_percent", "CPUs", LAB_UNIT_PERCENT, "CPUs"),
    LAB_FIELD(struct figures, host, "host_memory_peak_mib", "Host memory", LAB_UNIT_MEBIBYTES),
};

/* "power limit and thermal limit (driver)" */
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

static const char *balance_text(double cv, bool idle, struct lab_arena *arena) {
    return isnan(cv) ? NULL
                     : lab_arena_printf(arena, "CV between GPUs (%s)",
                                        idle ? "not graded" : lab_recording_stats_grade(cv));
}

/* "of all GPUs together"; "of 3 of 4 GPUs", where a recording lacks some. */
static const char *share_text(const struct lab_recording_stats_label *label,
                              enum lab_recording_stats_metric metric, const char *all,
                              struct lab_arena *arena) {
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        int known = lab_recording_stats_known(stats, metric);
        if (known > 0 && known < stats->gpu_count)
            return lab_arena_printf(arena, "of %d of %d GPUs", known, stats->gpu_count);
    }
    return all;
}

/* "of 3 of 4 GPUs"; NULL = of all. */
static const char *energy_share(const struct lab_recording_stats_label *label,
                                struct lab_arena *arena) {
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        int known = 0;
        for (int g = 0; g < stats->gpu_count; g++)
            known += !isnan(stats->gpus[g].energy_j);
        if (known > 0 && known < stats->gpu_count)
            return lab_arena_printf(arena, "of %d of %d GPUs", known, stats->gpu_count);
    }
    return NULL;
}

static const char *energy_text(const struct lab_recording_stats_label *label, bool integrated,
                               struct lab_arena *arena) {
    const char *how =
        integrated ? "from their power, where there is no counter" : "by the GPUs' counters";
    const char *share = energy_share(label, arena);
    return share ? lab_arena_printf(arena, "%s, %s", share, how) : how;
}

static struct figures describe(const struct lab_recording_stats_label *label,
                               struct lab_arena *arena) {
    uint64_t reasons = 0;
    bool any_integrated = false, idle = true;
    const char *rate_unit = NULL;
    struct tally tally = {0};
    for (int i = 0; i < label->count; i++) {
        const struct lab_recording_stats *stats = label->all_stats[i];
        bool integrated;
        lab_recording_stats_energy(stats, &integrated);
        count_in(&tally, values_of(stats));
        any_integrated |= integrated;
        idle &= stats->idle;
        rate_unit = rate_unit ? rate_unit : stats->source->rate_unit;
        for (int g = 0; g < stats->gpu_count; g++)
            reasons |= stats->gpus[g].reasons;
    }
    struct values values = result_of(&tally);
    const double *at = values.at;
    struct figures figures = {
        .recordings = label->count,
        .duration = at[DURATION],
        .memory = lab_cell_remark(at[MEMORY], share_text(label, LAB_RECORDING_STATS_MEMORY,
                                                         "of all GPUs together", arena)),
        .peak = lab_cell_remark(at[PEAK], "that all GPUs had at one time"),
        .utilization =
            lab_cell_remark(at[UTILIZATION], share_text(label, LAB_RECORDING_STATS_UTILIZATION,
                                                        "mean of the GPUs", arena)),
        .power = lab_cell_remark(
            at[POWER], share_text(label, LAB_RECORDING_STATS_POWER, "of all GPUs together", arena)),
        .energy = lab_cell_remark(at[ENERGY], energy_text(label, any_integrated, arena)),
        .temperature = at[TEMPERATURE],
        .throttled = lab_cell_remark(at[THROTTLED], reasons_text(reasons, arena)),
        .missing = lab_cell_remark(at[MISSING] > 0 ? at[MISSING] : (double)NAN,
                                   "of all GPUs' time without samples"),
        .balance = lab_cell_remark(at[BALANCE], balance_text(at[BALANCE], idle, arena)),
        .cpu = lab_cell_remark(at[CPU], "busy on average"),
        .host = lab_cell_remark(at[HOST], "at its peak")};
    lab_recording_stats_set_rate(at[RATE], rate_unit, &figures.rate, &figures.rate_unit);
    return figures;
}

/* --- words --- */

/* " (of 3 of 4 GPUs)" */
static void add_share(struct lab_str *text, const char *share) {
    if (share)
        lab_str_printf(text, " (%s)", share);
}

static const char *make_answer(const struct lab_recording_stats_label *label,
                               const struct figures *figures, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (!isnan(figures->utilization.value)) {
        lab_str_printf(&text, ", GPUs %.1f%% busy", figures->utilization.value);
        add_share(&text, share_text(label, LAB_RECORDING_STATS_UTILIZATION, NULL, arena));
    }
    if (!isnan(figures->memory.value)) {
        lab_str_printf(&text, ", %s of memory", lab_words_memory(figures->memory.value, arena));
        add_share(&text, share_text(label, LAB_RECORDING_STATS_MEMORY, NULL, arena));
    }
    if (!isnan(figures->energy.value)) {
        lab_str_add(&text, ", ");
        lab_str_add_si(&text, figures->energy.value, "J");
        add_share(&text, energy_share(label, arena));
    } else if (!isnan(figures->power.value)) {
        lab_str_printf(&text, ", %.1f W", figures->power.value);
        add_share(&text, share_text(label, LAB_RECORDING_STATS_POWER, NULL, arena));
    }
    if (text.length == 0 && !isnan(figures->cpu.value))
        lab_str_printf(&text, ", CPUs %.1f%% busy", figures->cpu.value);
    if (isnan(figures->utilization.value) && !isnan(figures->host.value))
        lab_str_printf(&text, ", at most %s of the host's memory",
                       lab_words_memory(figures->host.value, arena));
    if (text.length == 0)
        lab_str_printf(&text, ", neither memory nor load of a GPU, but %s,",
                       lab_recording_stats_others(label->all_stats[0], arena));
    lab_str_add(&text, " in ");
    lab_str_add_duration(&text, figures->duration, LAB_DURATION_PRECISE);
    return lab_arena_printf(arena, "%s:%s.", label->name, text.text + 1);
}

static struct figures add_part(struct lab_analysis_result *result,
                               const struct lab_recording_stats_label *label,
                               struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, label->name, arena);
    struct figures figures = describe(label, arena);
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    add_gpu_table(part, label, arena);
    add_file_table(part, label, arena);
    part->about = lab_recording_stats_about(label->all_stats, label->count, arena);
    part->answer = make_answer(label, &figures, arena);
    lab_recording_stats_add_notes(label->all_stats, label->count, &part->notes, arena);
    return figures;
}

/* --- the whole --- */

static int summary_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    const struct summary_config *config = input->config;
    struct lab_arena *arena = result->arena;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    struct lab_chart timeline;
    if (lab_recording_stats_make_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int recordings = input->recording_count;
    int count = lab_recording_stats_labels(all_stats, recordings, arena, &labels);
    double duration = 0, energy = NAN;
    bool partial = false;
    for (int i = 0; i < count; i++) {
        struct figures figures = add_part(result, &labels[i], arena);
        duration += figures.duration;
        partial |= isnan(figures.energy.value) || energy_share(&labels[i], arena);
        energy = isnan(energy) ? figures.energy.value : energy + fmax(figures.energy.value, 0);
    }
    if (recordings > count)
        lab_analysis_note(
            &result->notes, arena,
            "Of a label with several recordings: means are means of theirs, peaks the largest "
            "of them, times and energies their sums.");
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d recordings of %d labels, ", recordings, count);
    lab_str_add_duration(&text, duration, LAB_DURATION_PRECISE);
    lab_str_add(&text, isnan(energy) ? "" : ", ");
    if (!isnan(energy))
        lab_str_add_si(&text, energy, "J");
    add_share(&text, partial && !isnan(energy) ? "not of all GPUs" : NULL);
    result->answer =
        count == 1 ? result->parts[0].answer : lab_arena_printf(arena, "%s.", text.text);
    /* of one recording, what the machine did; of several, how their labels differ */
    if (recordings > 1)
        lab_recording_stats_chart_usage(labels, count, arena, result);
    else if (lab_timeline_make(&input->recordings->recording, 1, NULL, 0, result->simulated, arena,
                               &timeline))
        lab_analysis_add_chart(result, timeline, arena);
    return 0;
}

const struct lab_analysis lab_analysis_summary = {
    .name = "summary",
    .summary = "many recordings summarized, by label and by GPU, on a page",
    .description =
        "Time, memory, utilisation, power, energy, temperature, throttling and gaps of all "
        "recordings of "
        "a "
        "folder or study. All files of a label count, the newest comes first. A label is a file's "
        "name, a folder's, a run's of a study, or what is written before it: LABEL=PATH.",
    .options = summary_options,
    .config_size = sizeof(struct summary_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    LAB_PARTS_OF("labels", figure_fields),
    .run = summary_run,
};
