/* recording_stats_chart.c: memory, balance and use of GPUs as pictures. */
#include "analysis/recording/recording_stats_chart.h"
#include "analysis/analysis_timeline.h"

#include <math.h>

#define MIB_OF_GIB  1024.0
#define LINE_POINTS 500 /* of a recording over time */

static struct lab_chart_axis numbers(const char *title) {
    return (struct lab_chart_axis){.title = title, .low = NAN, .high = NAN};
}

static struct lab_chart_axis categories(const char *title, const char *const *names, int count) {
    return (struct lab_chart_axis){
        .title = title, .low = NAN, .high = NAN, .names = names, .name_count = count};
}

static double *positions(int count, struct lab_arena *arena) {
    double *x = lab_arena_alloc(arena, (size_t)count + 1, sizeof *x);
    for (int i = 0; i < count; i++)
        x[i] = i;
    return x;
}

static double *places(int count, struct lab_arena *arena) {
    double *y = lab_arena_alloc(arena, (size_t)count + 1, sizeof *y);
    for (int i = 0; i < count; i++)
        y[i] = NAN;
    return y;
}

static double longest_s(const struct lab_recording_stats *const *all_stats, int count) {
    double longest = 0;
    for (int i = 0; i < count; i++)
        longest = fmax(longest, all_stats[i]->duration_s);
    return longest;
}

/* "Memory over time, 8 of 12" where not all are drawn. */
static const char *title_of(const char *text, int drawn, int count, struct lab_arena *arena) {
    return drawn < count ? lab_arena_printf(arena, "%s, %d of %d shown", text, drawn, count) : text;
}

/* "8 of 12 recordings are drawn, …" likewise. */
static const char *caption(const char *text, int drawn, int count, const char *noun,
                           const char *which, struct lab_arena *arena) {
    if (drawn >= count)
        return text;
    return lab_arena_printf(arena, "%s%s%d of %d %s are drawn: %s.", text ? text : "",
                            text ? " " : "", drawn, count, noun, which);
}

/* --- each GPU over time --- */

static const struct lab_recording_stats_gpu *find_gpu(const struct lab_recording_stats *stats,
                                                      int index) {
    for (int g = 0; g < stats->gpu_count; g++)
        if (stats->gpus[g].track->entity.index == index)
            return &stats->gpus[g];
    return NULL;
}

/* All that any of them has, ascending. */
static int find_indices(const struct lab_recording_stats *all_stats, int count,
                        int ret_indices[LAB_RECORDING_STATS_GPUS_MAX]) {
    const struct lab_recording_stats **all = lab_mem_alloc((size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = &all_stats[i];
    struct lab_recording_stats_label label = {.all_stats = all, .count = count};
    int found = lab_recording_stats_label_gpus(&label, ret_indices);
    lab_mem_free(all);
    return found;
}

static struct lab_chart_series memory_line(const struct lab_recording_stats *stats, int index,
                                           double unit_s, int colour, struct lab_arena *arena) {
    const struct lab_recording_stats_gpu *gpu = find_gpu(stats, index);
    struct lab_chart_series series = {
        .title = stats->source->name, .mark = LAB_CHART_LINE, .colour = colour};
    if (!gpu)
        return series;
    double *y = lab_mem_alloc(gpu->track->count + 1, sizeof *y),
           *x = lab_mem_alloc(gpu->track->count + 1, sizeof *x);
    int64_t *times_ns = lab_mem_alloc(gpu->track->count + 1, sizeof *times_ns);
    size_t count = lab_recording_stats_read(gpu, LAB_RECORDING_STATS_MEMORY, y, times_ns);
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)(times_ns[i] - stats->start_ns) * 1e-9 / unit_s;
        y[i] /= MIB_OF_GIB;
    }
    double gap = count > 1 ? 10 * (x[count - 1] - x[0]) / (double)(count - 1) : 0;
    struct lab_points points = lab_points_thin(x, y, count, LINE_POINTS, gap, arena);
    series.x = points.x;
    series.y = points.y;
    series.count = points.count;
    lab_mem_free(x);
    lab_mem_free(y);
    lab_mem_free(times_ns);
    return series;
}

static int grid_columns(int gpus) {
    return gpus <= 2 ? gpus : gpus <= 4 ? 2 : gpus <= 6 ? 3 : 4;
}

/* The same for all panels, so that they can be compared: up to the largest GPU's end where it is
 * used by more than a third, else as the data ask for. */
static double memory_end(const struct lab_recording_stats *all_stats, int count) {
    double peak = NAN, capacity = NAN;
    for (int i = 0; i < count; i++)
        for (int g = 0; g < all_stats[i].gpu_count; g++) {
            peak = fmax(peak, all_stats[i].gpus[g].figures[LAB_RECORDING_STATS_MEMORY].peak);
            capacity = fmax(capacity, all_stats[i].gpus[g].capacity_mib);
        }
    double end = capacity > 0 && peak > capacity / 3 ? capacity : 1.1 * peak;
    return end > 0 ? end / MIB_OF_GIB : (double)NAN;
}

bool lab_recording_stats_chart_breakdown(const struct lab_recording_stats *all_stats, int count,
                                         bool simulated, struct lab_arena *arena,
                                         struct lab_chart *ret_chart) {
    int indices[LAB_RECORDING_STATS_GPUS_MAX], gpus = find_indices(all_stats, count, indices);
    const struct lab_recording_stats **chosen =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *chosen);
    int most = gpus > LAB_RECORDING_STATS_LINES_MOST ? gpus : LAB_RECORDING_STATS_LINES_MOST;
    int lines = lab_recording_stats_choose(all_stats, count, indices, gpus, most, chosen);
    const char *time_title;
    double unit_s = lab_timeline_unit(longest_s(chosen, lines), &time_title);
    if (gpus == 0 || isnan(memory_end(all_stats, count)))
        return false;
    struct lab_chart_panel *panels = lab_arena_alloc(arena, (size_t)gpus, sizeof *panels);
    for (int g = 0; g < gpus; g++) {
        struct lab_chart_series *series = lab_arena_alloc(arena, (size_t)lines, sizeof *series);
        for (int i = 0; i < lines; i++) {
            series[i] = memory_line(chosen[i], indices[g], unit_s, i, arena);
            if (lines == 1)
                series[i].title = NULL;
        }
        panels[g] = (struct lab_chart_panel){.title = lab_arena_printf(arena, "GPU %d", indices[g]),
                                             .x = numbers(time_title),
                                             .y = numbers("Memory [GiB]"),
                                             .series = series,
                                             .series_count = lines};
        panels[g].x.low = panels[g].y.low = 0;
        panels[g].x.high = longest_s(chosen, lines) / unit_s;
        panels[g].y.high = memory_end(all_stats, count);
    }
    *ret_chart = (struct lab_chart){
        .name = "per_gpu_memory_breakdown",
        .title = title_of("Memory of each GPU over time", lines, count, arena),
        .caption = caption("All panels have the same scale.", lines, count, "recordings",
                           "of each GPU in turn the one that took most of it", arena),
        .panels = panels,
        .panel_count = gpus,
        .columns = grid_columns(gpus),
        .simulated = simulated};
    return true;
}

/* --- balance --- */

#define GRADES 3
static const double bounds[GRADES] = {5, 10, 20}; /* %, as lab_recording_stats_grade has them */
static const char *const grades[GRADES] = {"excellent below 5 %", "good below 10 %",
                                           "fair below 20 %, else poor"};

static struct lab_chart_series memory_bars(const struct lab_recording_stats *stats,
                                           const int *indices, int gpus, int colour,
                                           struct lab_arena *arena) {
    double *y = places(gpus, arena), *low = places(gpus, arena), *high = places(gpus, arena);
    for (int g = 0; g < gpus; g++) {
        const struct lab_recording_stats_gpu *gpu = find_gpu(stats, indices[g]);
        if (!gpu || gpu->figures[LAB_RECORDING_STATS_MEMORY].count == 0)
            continue;
        double deviation = gpu->figures[LAB_RECORDING_STATS_MEMORY].deviation;
        y[g] = gpu->figures[LAB_RECORDING_STATS_MEMORY].mean / MIB_OF_GIB;
        low[g] = y[g] - (isnan(deviation) ? 0 : deviation) / MIB_OF_GIB;
        high[g] = y[g] + (isnan(deviation) ? 0 : deviation) / MIB_OF_GIB;
    }
    return (struct lab_chart_series){.title = stats->source->name,
                                     .mark = LAB_CHART_BARS,
                                     .x = positions(gpus, arena),
                                     .y = y,
                                     .low = low,
                                     .high = high,
                                     .count = (size_t)gpus,
                                     .colour = colour};
}

#define BALANCED     3 /* memory, utilisation, power */
#define BALANCE_MOST 5 /* recordings: as many as there are colours left */

static struct lab_chart_series cv_bars(const struct lab_recording_stats *stats, int colour,
                                       struct lab_arena *arena) {
    double *y = places(BALANCED, arena);
    for (int m = 0; m < BALANCED; m++)
        y[m] = 100 * lab_recording_stats_cv_of(stats, m);
    return (struct lab_chart_series){.title = stats->source->name,
                                     .mark = LAB_CHART_BARS,
                                     .x = positions(BALANCED, arena),
                                     .y = y,
                                     .count = BALANCED,
                                     .colour = colour};
}

static struct lab_chart_series grade_line(int grade, struct lab_arena *arena) {
    static const int colours[GRADES] = {2, 1, 5};
    double *x = positions(2, arena), *y = places(2, arena);
    x[0] = -0.6;
    x[1] = BALANCED - 0.4;
    y[0] = y[1] = bounds[grade];
    return (struct lab_chart_series){.title = grades[grade],
                                     .mark = LAB_CHART_DASHES,
                                     .x = x,
                                     .y = y,
                                     .count = 2,
                                     .colour = colours[grade]};
}

bool lab_recording_stats_chart_balance(const struct lab_recording_stats *all_stats, int count,
                                       bool simulated, struct lab_arena *arena,
                                       struct lab_chart *ret_chart) {
    static const char *const metrics[BALANCED] = {"memory", "utilisation", "power"};
    static const int colours[BALANCE_MOST] = {0, 3, 4, 6, 7}; /* others than the grades have */
    int indices[LAB_RECORDING_STATS_GPUS_MAX], gpus = find_indices(all_stats, count, indices);
    const struct lab_recording_stats *chosen[BALANCE_MOST];
    int several,
        lines = lab_recording_stats_choose_uneven(all_stats, count, BALANCE_MOST, &several, chosen);
    if (lines == 0)
        return false;
    const char **names = lab_arena_alloc(arena, (size_t)gpus, sizeof *names);
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 2, sizeof *panels);
    struct lab_chart_series *memory = lab_arena_alloc(arena, (size_t)lines, sizeof *memory),
                            *cv = lab_arena_alloc(arena, (size_t)lines + GRADES, sizeof *cv);
    for (int g = 0; g < gpus; g++)
        names[g] = lab_arena_printf(arena, "GPU %d", indices[g]);
    for (int i = 0; i < lines; i++) {
        memory[i] = memory_bars(chosen[i], indices, gpus, colours[i], arena);
        cv[i] = cv_bars(chosen[i], colours[i], arena);
        memory[i].title = NULL; /* the key of the right panel has them */
        if (lines == 1)
            cv[i].title = NULL;
    }
    for (int i = 0; i < GRADES; i++)
        cv[lines + i] = grade_line(i, arena);
    panels[0] = (struct lab_chart_panel){.title = "Mean, with its deviation over time",
                                         .x = categories("", names, gpus),
                                         .y = numbers("Memory [GiB]"),
                                         .series = memory,
                                         .series_count = lines};
    panels[1] = (struct lab_chart_panel){.title = "Coefficient of variation between GPUs",
                                         .x = categories("", metrics, BALANCED),
                                         .y = numbers("CV [%]"),
                                         .series = cv,
                                         .series_count = lines + GRADES};
    panels[1].y.low = 0;
    *ret_chart = (struct lab_chart){
        .name = "gpu_load_balance_analysis",
        .title = title_of("How evenly the GPUs are loaded", lines, several, arena),
        .caption = caption("The lower the bars on the right, the more evenly.", lines, several,
                           "recordings", "those whose memory is the most uneven", arena),
        .panels = panels,
        .panel_count = 2,
        .columns = 2,
        .simulated = simulated};
    return true;
}

/* --- labels --- */

struct spread { /* of a figure over the recordings of a label */
    double middle, low, high;
};

static void widen(struct spread *spread, double value, int *count) {
    if (isnan(value))
        return;
    spread->middle = (*count ? spread->middle : 0) + value;
    spread->low = fmin(spread->low, value);
    spread->high = fmax(spread->high, value);
    ++*count;
}

enum figure { MEMORY_MEAN, MEMORY_PEAK, UTILIZATION, POWER };

static double figure_of(const struct lab_recording_stats *stats, enum figure figure) {
    switch (figure) {
    case MEMORY_MEAN:
        return lab_recording_stats_together(stats, LAB_RECORDING_STATS_MEMORY) / MIB_OF_GIB;
    case MEMORY_PEAK:
        return stats->peak_total_mib / MIB_OF_GIB;
    case UTILIZATION:
        return lab_recording_stats_together(stats, LAB_RECORDING_STATS_UTILIZATION);
    case POWER:
        break;
    }
    return lab_recording_stats_together(stats, LAB_RECORDING_STATS_POWER);
}

static struct spread find_spread(const struct lab_recording_stats_label *label,
                                 enum figure figure) {
    struct spread spread = {NAN, NAN, NAN};
    int count = 0;
    for (int i = 0; i < label->count; i++)
        widen(&spread, figure_of(label->all_stats[i], figure), &count);
    spread.middle /= count > 0 ? count : 1;
    return spread;
}

static struct lab_chart_series label_bars(const struct lab_recording_stats_label *const *labels,
                                          int count, enum figure figure, const char *title,
                                          int colour, struct lab_arena *arena) {
    double *y = places(count, arena), *low = places(count, arena), *high = places(count, arena);
    bool several = false;
    for (int i = 0; i < count; i++) {
        struct spread spread = find_spread(labels[i], figure);
        y[i] = spread.middle;
        low[i] = labels[i]->count > 1 ? spread.low : (double)NAN;
        high[i] = labels[i]->count > 1 ? spread.high : (double)NAN;
        several |= labels[i]->count > 1;
    }
    return (struct lab_chart_series){.title = title,
                                     .mark = LAB_CHART_BARS,
                                     .x = positions(count, arena),
                                     .y = y,
                                     .low = several ? low : NULL,
                                     .high = several ? high : NULL,
                                     .count = (size_t)count,
                                     .colour = colour};
}

static const char **label_names(const struct lab_recording_stats_label *const *labels, int count,
                                struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = labels[i]->name;
    return names;
}

static bool has_value(const struct lab_chart_series *series) {
    for (size_t i = 0; i < series->count; i++)
        if (!isnan(series->y[i]))
            return true;
    return false;
}

/* "of 4 GPUs together" where all recordings have as many. */
static const char *together(const struct lab_recording_stats_label *const *labels, int count,
                            const char *before, struct lab_arena *arena) {
    int gpus = labels[0]->all_stats[0]->gpu_count;
    for (int i = 0; i < count; i++)
        for (int w = 0; w < labels[i]->count; w++)
            if (labels[i]->all_stats[w]->gpu_count != gpus)
                return lab_arena_printf(arena, "%s of all GPUs together", before);
    return gpus == 1 ? lab_arena_printf(arena, "%s of the GPU", before)
                     : lab_arena_printf(arena, "%s of %d GPUs together", before, gpus);
}

#define ENDS "the first and the last of the table"

bool lab_recording_stats_chart_comparison(const struct lab_recording_stats_label *const *all,
                                          int all_count, bool simulated, struct lab_arena *arena,
                                          struct lab_chart *ret_chart) {
    const struct lab_recording_stats_label *labels[LAB_RECORDING_STATS_BARS_MOST];
    int count =
        lab_recording_stats_choose_ends(all, all_count, LAB_RECORDING_STATS_BARS_MOST, labels);
    struct lab_chart_series *series = lab_arena_alloc(arena, 2, sizeof *series);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    if (count < 1)
        return false;
    series[0] = label_bars(labels, count, MEMORY_MEAN, "mean", 0, arena);
    series[1] = label_bars(labels, count, MEMORY_PEAK, "peak", 1, arena);
    series[0].figures = series[1].figures = "%.1f";
    if (!has_value(&series[0]))
        return false;
    *panel = (struct lab_chart_panel){.x = categories("", label_names(labels, count, arena), count),
                                      .y = numbers("Memory [GiB]"),
                                      .series = series,
                                      .series_count = 2};
    *ret_chart = (struct lab_chart){
        .name = "gpu_memory_comparison",
        .title = title_of(together(labels, count, "Memory", arena), count, all_count, arena),
        .caption = caption(series[0].low ? "Whiskers span the recordings of a label." : NULL, count,
                           all_count, "labels", ENDS, arena),
        .panels = panel,
        .panel_count = 1,
        .simulated = simulated};
    return true;
}

/* Σ over the GPUs; nothing while one of them gave no value. */
static struct lab_chart_series total_line(const struct lab_recording_stats *stats, double unit_s,
                                          struct lab_arena *arena) {
    int rows = lab_recording_stats_rows(stats);
    rows = rows > LINE_POINTS ? LINE_POINTS : rows < 1 ? 1 : rows;
    double *grid = lab_recording_stats_grid(stats, LAB_RECORDING_STATS_MEMORY, rows, arena),
           *x = places(rows, arena), *y = places(rows, arena);
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int g = 0; g < stats->gpu_count; g++)
            sum += grid[(ptrdiff_t)row * stats->gpu_count + g];
        x[row] = (row + 0.5) * stats->duration_s / rows / unit_s;
        y[row] = sum / MIB_OF_GIB;
    }
    return (struct lab_chart_series){.mark = LAB_CHART_LINE, .x = x, .y = y, .count = (size_t)rows};
}

bool lab_recording_stats_chart_timeline(const struct lab_recording_stats_label *const *all,
                                        int count, bool simulated, struct lab_arena *arena,
                                        struct lab_chart *ret_chart) {
    const struct lab_recording_stats_label *labels[LAB_RECORDING_STATS_LINES_MOST];
    int lines = lab_recording_stats_choose_ends(all, count, LAB_RECORDING_STATS_LINES_MOST, labels),
        made = 0;
    double longest = 0;
    const char *time_title;
    for (int i = 0; i < lines; i++)
        longest = fmax(longest, labels[i]->all_stats[0]->duration_s);
    double unit_s = lab_timeline_unit(longest, &time_title);
    struct lab_chart_series *series = lab_arena_alloc(arena, (size_t)lines + 1, sizeof *series);
    for (int i = 0; i < lines; i++) {
        const struct lab_recording_stats *stats = labels[i]->all_stats[0];
        struct lab_chart_series line = total_line(stats, unit_s, arena);
        if (stats->gpu_count == 0 || !has_value(&line))
            continue;
        line.title = count > 1 ? labels[i]->name : NULL;
        line.colour = made;
        series[made++] = line;
    }
    if (made == 0)
        return false;
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = numbers(time_title),
                                      .y = numbers("Memory [GiB]"),
                                      .series = series,
                                      .series_count = made};
    panel->y.low = 0;
    *ret_chart = (struct lab_chart){
        .name = "gpu_memory_timeline",
        .title = title_of(together(labels, lines, "Memory over time", arena), lines, count, arena),
        .caption =
            caption("Of each label, its first recording.", lines, count, "labels", ENDS, arena),
        .panels = panel,
        .panel_count = 1,
        .simulated = simulated};
    return true;
}

bool lab_recording_stats_chart_usage(const struct lab_recording_stats_label *labels,
                                     int label_count, bool simulated, struct lab_arena *arena,
                                     struct lab_chart *ret_chart) {
    static const char *const titles[] = {"Utilisation [%]", "Power, all GPUs [W]"};
    const struct lab_recording_stats_label *all[LAB_RECORDING_STATS_BARS_MOST];
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 2, sizeof *panels);
    int made = 0, count = label_count < LAB_RECORDING_STATS_BARS_MOST
                              ? label_count
                              : LAB_RECORDING_STATS_BARS_MOST;
    for (int i = 0; i < count; i++)
        all[i] = &labels[i];
    for (int p = 0; p < 2; p++) {
        struct lab_chart_series *series = lab_arena_alloc(arena, 1, sizeof *series);
        *series = label_bars(all, count, p ? POWER : UTILIZATION, NULL, p, arena);
        if (!has_value(series))
            continue;
        panels[made] =
            (struct lab_chart_panel){.x = categories("", label_names(all, count, arena), count),
                                     .y = numbers(titles[p]),
                                     .series = series,
                                     .series_count = 1};
        if (p == 0)
            panels[made].y.high = 100;
        made++;
    }
    if (made == 0)
        return false;
    *ret_chart = (struct lab_chart){
        .name = "gpu_usage",
        .title = title_of("How much the GPUs did", count, label_count, arena),
        .caption = caption(NULL, count, label_count, "labels", "the first of the table", arena),
        .panels = panels,
        .panel_count = made,
        .columns = 2,
        .simulated = simulated};
    return true;
}
