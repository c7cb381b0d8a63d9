/* recording_stats_chart.c: memory, balance and use of GPUs as pictures. */
#include "analysis/recording/recording_stats_chart.h"
#include "analysis/analysis_build.h"
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "base/list.h"
#include "base/str.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB_OF_GIB  1024.0
#define LINE_POINTS 500
#define LINES_MOST  8  /* recordings, or labels, in one picture over time */
#define MANY_GPUS   4  /* panels of a picture, from which on they are narrow */
#define BARS_MOST   24 /* labels next to each other */
#define ALONE_MOST  8  /* labels of one panel, where there could be several */
#define KINDS_MOST  6
#define PARTS_MOST  8    /* of an id */
#define FEW         3    /* recordings that are drawn even if they are alike */
#define ALIKE       0.99 /* of the largest value: a chart of nothing less shows nothing */

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

/* --- the runs of a study --- */

/* "gpu0_numa1_vit32x2x128_r3" */
static bool is_of_study(const char *name) {
    return lab_str_starts(name, "gpu") && isdigit((unsigned char)name[3]);
}

/* 3 of "gpu0_baseline_softmax8192x2048_r3", counted from 0; -1 = it has none. */
static int run_of(const char *name) {
    const char *run = strrchr(name, '_');
    bool is = run && run[1] == 'r' && run[2] && !run[2 + strspn(run + 2, "0123456789")];
    return is ? (int)strtol(run + 2, NULL, 10) : -1;
}

/* Runs of a study, whose order is by chance: the first of each point, by their names, before
 * others. Recordings with names of the user's own stay as they come. */
static struct lab_recording_stats *order_runs(const struct lab_recording_stats *all_stats,
                                              int count, struct lab_arena *arena) {
    struct run {
        const char *name;
        int run, from;
    } *runs = lab_arena_alloc(arena, (size_t)count + 1, sizeof *runs);
    struct lab_recording_stats *ordered =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *ordered);
    bool study = true;
    for (int i = 0; i < count; i++) {
        const char *name = all_stats[i].source->name ? all_stats[i].source->name : "";
        runs[i] = (struct run){name, run_of(name), i};
        study &= is_of_study(name);
    }
    if (study)
        LAB_SORT(runs, count, LAB_BY(runs, run), LAB_BY(runs, name));
    for (int i = 0; i < count; i++)
        ordered[i] = all_stats[runs[i].from];
    return ordered;
}

/* The points of a study likewise. */
static const struct lab_recording_stats_label **
order_labels(const struct lab_recording_stats_label *const *labels, int count,
             struct lab_arena *arena) {
    const struct lab_recording_stats_label **ordered =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *ordered);
    bool study = true;
    for (int i = 0; i < count; i++) {
        ordered[i] = labels[i];
        study &= is_of_study(labels[i]->name);
    }
    if (study)
        LAB_SORT_REFS(ordered, count, LAB_BY(*ordered, name));
    return ordered;
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

/* Those that show each GPU, then the first of the others, up to LINES_MOST: up to half of it in
 * panels of many GPUs, which are narrow. Returns how many. */
static int choose(const struct lab_recording_stats *all_stats, int count, const int *indices,
                  int gpus, const struct lab_recording_stats **ret_chosen) {
    LAB_AUTO_FREE bool *taken = lab_mem_alloc((size_t)count + 1, sizeof *taken);
    int most = gpus > MANY_GPUS ? LINES_MOST / 2 : LINES_MOST, chosen = 0;
    int left = count < most ? count : most;
    for (int g = 0; g < gpus; g++) {
        int first = -1;
        bool drawn = false;
        for (int i = 0; i < count; i++)
            if (find_gpu(&all_stats[i], indices[g])) {
                drawn |= taken[i];
                first = first < 0 ? i : first;
            }
        if (drawn || first < 0)
            continue;
        taken[first] = true;
        left--;
    }
    for (int i = 0; i < count; i++) {
        bool rest = !taken[i] && left > 0;
        left -= rest;
        if (taken[i] || rest)
            ret_chosen[chosen++] = &all_stats[i];
    }
    return chosen;
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
    LAB_AUTO_FREE int64_t *times_ns = lab_mem_alloc(gpu->track->count + 1, sizeof *times_ns);
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

/* Of many recordings, the memory that each GPU has used all the time; NaN = it differs. */
static double same_memory_mib(const struct lab_recording_stats *all_stats, int count) {
    double least = NAN, most = NAN;
    for (int i = 0; i < count; i++)
        for (int g = 0; g < all_stats[i].gpu_count; g++) {
            const struct lab_recording_stats_figures *memory =
                &all_stats[i].gpus[g].figures[LAB_RECORDING_STATS_MEMORY];
            least = fmin(least, memory->mean); /* fmin passes NaN over */
            most = fmax(most, memory->peak);
        }
    return count > FEW && least >= ALIKE * most ? most : (double)NAN;
}

void lab_recording_stats_chart_breakdown(const struct lab_recording_stats *all_stats, int count,
                                         struct lab_arena *arena,
                                         struct lab_analysis_result *result) {
    int indices[LAB_RECORDING_STATS_GPUS_MAX], gpus = find_indices(all_stats, count, indices);
    const struct lab_recording_stats **chosen =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *chosen);
    int lines = choose(order_runs(all_stats, count, arena), count, indices, gpus, chosen);
    const char *time_title;
    double unit_s = lab_timeline_unit(longest_s(chosen, lines), &time_title);
    double same_mib = same_memory_mib(all_stats, count);
    if (!isnan(same_mib))
        lab_analysis_note(
            &result->notes, arena,
            "Memory: %s on each GPU, in all recordings and all the time (within 1%%).",
            lab_words_memory(same_mib, arena));
    if (gpus == 0 || isnan(memory_end(all_stats, count)) || !isnan(same_mib))
        return;
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = "per_gpu_memory_breakdown",
                           .title = title_of("Memory of each GPU over time", lines, count, arena),
                           .caption = "All panels have the same scale.",
                           .columns = grid_columns(gpus),
                           .simulated = result->simulated},
        arena);
    for (int g = 0; g < gpus; g++) {
        struct lab_chart_panel *panel = lab_chart_add_panel(
            chart, lab_arena_printf(arena, "GPU %d", indices[g]), lab_axis_from(time_title, 0),
            lab_axis_from("Memory [GiB]", 0), arena);
        panel->x.high = longest_s(chosen, lines) / unit_s;
        panel->y.high = memory_end(all_stats, count);
        for (int i = 0; i < lines; i++) {
            struct lab_chart_series line = memory_line(chosen[i], indices[g], unit_s, i, arena);
            if (lines == 1)
                line.title = NULL;
            lab_panel_add_series(panel, line, arena);
        }
    }
}

/* --- balance --- */

#define GRADES 3
static const double bounds[GRADES] = {5, 10, 20}; /* %, as lab_recording_stats_grade has them */
static const char *const grades[GRADES] = {"excellent below 5%", "good below 10%",
                                           "fair below 20%, else poor"};

static struct lab_chart_series memory_bars(const struct lab_recording_stats *stats,
                                           const int *indices, int gpus, int colour,
                                           struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int g = 0; g < gpus; g++) {
        const struct lab_recording_stats_gpu *gpu = find_gpu(stats, indices[g]);
        const struct lab_recording_stats_figures *figures =
            gpu ? &gpu->figures[LAB_RECORDING_STATS_MEMORY] : NULL;
        if (!figures || figures->count == 0) {
            lab_series_add(&series, g, NAN, NAN, NAN);
            continue;
        }
        double deviation = (isnan(figures->deviation) ? 0 : figures->deviation) / MIB_OF_GIB;
        double mean = figures->mean / MIB_OF_GIB;
        lab_series_add(&series, g, mean, fmax(0, mean - deviation), mean + deviation);
    }
    /* the other panel's have the names */
    return lab_series_chart(&series, NULL, LAB_CHART_BARS, colour);
}

#define WIDE_BARS    16 /* that have room for their values in half of a picture */
#define BALANCED     3  /* memory, utilisation, power */
#define BALANCE_MOST 5  /* recordings: as many as there are colours left */

static struct lab_chart_series cv_bars(const struct lab_recording_stats *stats, const char *title,
                                       int colour, struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int m = 0; m < BALANCED; m++)
        lab_series_add_point(&series, m, 100 * lab_recording_stats_cv_of(stats, m));
    return lab_series_chart(&series, title, LAB_CHART_BARS, colour);
}

void lab_recording_stats_chart_balance(const struct lab_recording_stats *all_stats, int count,
                                       struct lab_arena *arena,
                                       struct lab_analysis_result *result) {
    static const char *const metrics[BALANCED] = {"memory", "utilisation", "power"};
    static const int colours[BALANCE_MOST] = {0, 3, 4, 6, 7}; /* others than the grades have */
    static const int grade_colours[GRADES] = {2, 1, 5};
    int indices[LAB_RECORDING_STATS_GPUS_MAX], gpus = find_indices(all_stats, count, indices);
    const struct lab_recording_stats *chosen[BALANCE_MOST];
    const struct lab_recording_stats *ordered = order_runs(all_stats, count, arena);
    int several = 0, lines = 0, points = 0;
    double worst = 0;
    for (int i = 0; i < count; i++)
        points += ordered[i].gpu_count > 1 && run_of(ordered[i].source->name) == 0;
    for (int i = 0; i < count; i++) { /* of several points the first runs alone */
        bool repeated = points > 1 && run_of(ordered[i].source->name) > 0;
        if (ordered[i].gpu_count > 1 && several++ < BALANCE_MOST && !repeated)
            chosen[lines++] = &ordered[i];
    }
    if (lines == 0)
        return;
    for (int i = 0; i < lines; i++)
        for (int m = 0; m < BALANCED; m++)
            worst = fmax(worst, 100 * lab_recording_stats_cv_of(chosen[i], m));
    const char **names = lab_arena_alloc(arena, (size_t)gpus, sizeof *names);
    for (int g = 0; g < gpus; g++)
        names[g] = lab_arena_printf(arena, "GPU %d", indices[g]);
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = "gpu_load_balance_analysis",
                           .title = title_of("Load balance between GPUs", lines, several, arena),
                           .caption = lab_arena_printf(
                               arena,
                               "CV: standard deviation between GPUs as a share of their mean.%s",
                               points > 1 ? " Of each point, its first run." : ""),
                           .columns = gpus * lines > WIDE_BARS ? 1 : 2,
                           .simulated = result->simulated},
        arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, "Mean, with its deviation over time",
                            lab_axis_names("", names, gpus), lab_axis("Memory [GiB]"), arena);
    for (int i = 0; i < lines; i++)
        lab_panel_add_series(panel, memory_bars(chosen[i], indices, gpus, colours[i], arena),
                             arena);
    panel = lab_chart_add_panel(chart, "Coefficient of variation between GPUs",
                                lab_axis_names("", metrics, BALANCED), lab_axis_from("CV [%]", 0),
                                arena);
    for (int i = 0; i < lines; i++)
        lab_panel_add_series(
            panel,
            cv_bars(chosen[i], lines > 1 ? chosen[i]->source->name : NULL, colours[i], arena),
            arena);
    for (int i = 0; i < GRADES && (i == 0 || worst > bounds[i - 1]); i++)
        lab_panel_add_series(/* those beyond would press the bars flat */
                             panel,
                             lab_series_level(grades[i], -0.6, BALANCED - 0.4, bounds[i],
                                              grade_colours[i], arena),
                             arena);
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
    struct lab_series series = {.arena = arena};
    bool several = false;
    for (int i = 0; i < count; i++) {
        struct spread spread = find_spread(labels[i], figure);
        bool known = labels[i]->count > 1;
        lab_series_add(&series, i, spread.middle, known ? spread.low : (double)NAN,
                       known ? spread.high : (double)NAN);
        several |= known;
    }
    if (!several)
        series.low = series.high = NULL;
    return lab_series_chart(&series, title, LAB_CHART_BARS, colour);
}

static const char **label_names(const struct lab_recording_stats_label *const *labels, int count,
                                struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = labels[i]->name;
    return names;
}

static int count_values(const struct lab_chart_series *series) {
    int count = 0;
    for (size_t i = 0; i < series->count; i++)
        count += !isnan(series->y[i]);
    return count;
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

/* Of an id, that part: 1 of "gpu0_softmax8192x2048_baseline" is the kernel. "" = it has none. */
static const char *part_of(const char *id, int part, struct lab_arena *arena) {
    for (; part > 0 && id; part--) {
        id = strchr(id, '_');
        id = id ? id + 1 : NULL;
    }
    return id ? lab_arena_strndup(arena, id, strcspn(id, "_")) : "";
}

struct kinds { /* what the points of a study are parted by, where several points are of each */
    int part;  /* of their ids; 0 = by nothing */
    const char **names;
    int count;
    size_t length; /* of all names: the longest part is the one that ticks have no room for */
};

static struct kinds find_kinds(const struct lab_recording_stats_label *const *labels, int count,
                               struct lab_arena *arena) {
    struct kinds best = {0};
    for (int part = 1; count > ALONE_MOST && part < PARTS_MOST; part++) {
        struct kinds kinds = {.part = part};
        bool single = false;
        for (int i = 0; i < count; i++) {
            const char *own = part_of(labels[i]->name, part, arena);
            int alike = 0;
            for (int k = 0; k < count; k++)
                alike += lab_str_equal(part_of(labels[k]->name, part, arena), own);
            single |= alike < 2 || !*own || !is_of_study(labels[i]->name);
            kinds.length += strlen(own);
            if (lab_list_find_text(kinds.names, kinds.count, own) < 0)
                LAB_ADD(kinds.names, kinds.count, arena) = own;
        }
        if (!single && kinds.count > 1 && kinds.count <= KINDS_MOST && kinds.length > best.length)
            best = kinds;
    }
    return best;
}

#define BATCH "batch"

/* Those of a kind; of part 0 all. Names stay whole: reports know points by them. */
static void add_memory_panel(struct lab_chart *chart,
                             const struct lab_recording_stats_label *const *labels, int count,
                             int part, const char *kind, struct lab_arena *arena) {
    const struct lab_recording_stats_label **own = NULL;
    int own_count = 0;
    for (int i = 0; i < count; i++)
        if (part == 0 || lab_str_equal(part_of(labels[i]->name, part, arena), kind))
            LAB_ADD(own, own_count, arena) = labels[i];
    const char **names = label_names(own, own_count, arena);
    const char *title = kind && lab_str_starts(kind, BATCH) && kind[strlen(BATCH)]
                            ? lab_arena_printf(arena, BATCH " %s", kind + strlen(BATCH))
                            : kind;
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, title, lab_axis_names("", names, own_count), lab_axis("Memory [GiB]"), arena);
    lab_panel_add_series(panel, label_bars(own, own_count, MEMORY_MEAN, "mean", 0, arena), arena);
    lab_panel_add_series(panel, label_bars(own, own_count, MEMORY_PEAK, "peak", 1, arena), arena);
}

bool lab_recording_stats_is_alike(const struct lab_recording_stats_label *const *labels, int count,
                                  struct lab_arena *arena) {
    struct lab_chart_series mean = label_bars(labels, count, MEMORY_MEAN, NULL, 0, arena),
                            peak = label_bars(labels, count, MEMORY_PEAK, NULL, 0, arena);
    double least = NAN, most = NAN;
    for (size_t i = 0; i < mean.count; i++)
        least = fmin(least, mean.y[i]);
    for (size_t i = 0; i < peak.count; i++)
        most = fmax(most, peak.y[i]);
    return least >= ALIKE * most;
}

void lab_recording_stats_chart_comparison(const struct lab_recording_stats_label *const *all_labels,
                                          int all_count, struct lab_arena *arena,
                                          struct lab_analysis_result *result) {
    int count = all_count < BARS_MOST ? all_count : BARS_MOST;
    if (count < 1)
        return;
    const struct lab_recording_stats_label **labels = order_labels(all_labels, count, arena);
    struct lab_chart_series mean = label_bars(labels, count, MEMORY_MEAN, NULL, 0, arena);
    if (count_values(&mean) == 0)
        return;
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = "gpu_memory_comparison",
            .title = title_of(together(labels, count, "Memory", arena), count, all_count, arena),
            .caption = mean.low ? "Whiskers span the recordings of a label." : NULL,
            .simulated = result->simulated},
        arena);
    struct kinds kinds = find_kinds(labels, count, arena);
    chart->columns = kinds.part ? 2 : 1;
    for (int k = 0; k < (kinds.part ? kinds.count : 1); k++)
        add_memory_panel(chart, labels, count, kinds.part, kinds.part ? kinds.names[k] : NULL,
                         arena);
}

/* Σ over the GPUs; nothing while one of them gave no value. */
static struct lab_chart_series total_line(const struct lab_recording_stats *stats,
                                          const char *title, double unit_s, int colour,
                                          struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    int rows = lab_recording_stats_rows(stats);
    rows = rows > LINE_POINTS ? LINE_POINTS : rows < 1 ? 1 : rows;
    double *grid = lab_recording_stats_grid(stats, LAB_RECORDING_STATS_MEMORY, rows, arena);
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int g = 0; g < stats->gpu_count; g++)
            sum += grid[(ptrdiff_t)row * stats->gpu_count + g];
        lab_series_add_point(&series, (row + 0.5) * stats->duration_s / rows / unit_s,
                             sum / MIB_OF_GIB);
    }
    return lab_series_chart(&series, title, LAB_CHART_LINE, colour);
}

void lab_recording_stats_chart_timeline(const struct lab_recording_stats_label *const *labels,
                                        int count, struct lab_arena *arena,
                                        struct lab_analysis_result *result) {
    int lines = count < LINES_MOST ? count : LINES_MOST;
    double longest = 0;
    const char *time_title;
    labels = order_labels(labels, count, arena);
    for (int i = 0; i < lines; i++)
        longest = fmax(longest, labels[i]->all_stats[0]->duration_s);
    double unit_s = lab_timeline_unit(longest, &time_title);
    struct lab_chart chart = {.name = "gpu_memory_timeline",
                              .caption = "Of each label, its first recording.",
                              .simulated = result->simulated};
    struct lab_chart_panel *panel = lab_chart_add_panel(&chart, NULL, lab_axis(time_title),
                                                        lab_axis_from("Memory [GiB]", 0), arena);
    for (int i = 0; i < lines; i++) {
        const struct lab_recording_stats *stats = labels[i]->all_stats[0];
        struct lab_chart_series line = total_line(stats, count > 1 ? labels[i]->name : NULL, unit_s,
                                                  panel->series_count, arena);
        if (stats->gpu_count > 0 && count_values(&line) > 1) /* one is no course */
            lab_panel_add_series(panel, line, arena);
    }
    if (panel->series_count == 0)
        return;
    chart.title = title_of(together(labels, lines, "Memory over time", arena), lines, count, arena);
    lab_analysis_add_chart(result, chart, arena);
}

void lab_recording_stats_chart_usage(const struct lab_recording_stats_label *labels,
                                     int label_count, struct lab_arena *arena,
                                     struct lab_analysis_result *result) {
    const struct lab_recording_stats_label *all[BARS_MOST];
    int count = label_count < BARS_MOST ? label_count : BARS_MOST;
    for (int i = 0; i < count; i++)
        all[i] = &labels[i];
    struct lab_chart chart = {
        .name = "gpu_usage",
        .title = title_of("Utilisation and power of the GPUs", count, label_count, arena),
        .columns = 2,
        .simulated = result->simulated};
    for (int p = 0; p < 2; p++) {
        struct lab_chart_series bars =
            label_bars(all, count, p ? POWER : UTILIZATION, NULL, p, arena);
        if (count_values(&bars) == 0)
            continue;
        struct lab_chart_panel *panel = lab_chart_add_panel(
            &chart, NULL, lab_axis_names("", label_names(all, count, arena), count),
            lab_axis(p ? "Power, all GPUs [W]" : "Utilisation [%]"), arena);
        panel->y.high = p ? (double)NAN : 100;
        lab_panel_add_series(panel, bars, arena);
    }
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
