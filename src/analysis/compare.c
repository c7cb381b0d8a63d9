/*
 * compare.c: `gpulab analyze compare`: what differs between two recordings, or two labels of
 * several, by how much, and whether that can be told from nothing. The first label is what the
 * others are held against.
 */
#include "analysis/analysis_change.h"
#include "analysis/compare/histogram.h"

#include "base/str.h"

#include <math.h>

struct compare_config {
    struct lab_recording_stats_config stats;
    int64_t bins;
};

static const struct lab_option compare_options[] = {
    LAB_RECORDING_STATS_OPTIONS(compare_config),
    {"bins", LAB_OPTION_INT, offsetof(struct compare_config, bins), .fallback = "10", .min = 0,
     .max = LAB_HISTOGRAM_BINS_MAX, .help = "of the histograms; 0 leaves them out"},
    {NULL},
};

/* --- what is compared --- */

enum { /* beyond the metrics over time */
       PEAK_MEMORY = LAB_RECORDING_STATS_METRICS,
       PEAK_TEMPERATURE,
       ENERGY,
       DURATION,
       RATE,
       COMPARED
};

struct compared {
    const char *key, *title, *noun, *unit;
    int decimals;
};

static const struct compared compared[COMPARED] = {
    [LAB_RECORDING_STATS_MEMORY] = {"memory", "Memory", "memory", "MB", 1},
    [LAB_RECORDING_STATS_UTILIZATION] = {"utilization", "Utilisation", "utilisation", "%", 1},
    [LAB_RECORDING_STATS_POWER] = {"power", "Power", "power", "W", 1},
    [LAB_RECORDING_STATS_TEMPERATURE] = {"temperature", "Temperature", "temperature", "°C", 1},
    [LAB_RECORDING_STATS_CLOCK] = {"sm_clock", "SM clock", "SM clock", "MHz", 0},
    [PEAK_MEMORY] = {"memory_peak", "Peak memory", "peak memory", "MB", 1},
    [PEAK_TEMPERATURE] = {"temperature_peak", "Hottest", "highest temperature", "°C", 0},
    [ENERGY] = {"energy", "Energy", "energy", "J", 0},
    [DURATION] = {"duration", "Duration", "duration", "s", 1},
    [RATE] = {"rate", "Throughput", "throughput", "/s", 1},
};

/* In the order in which they are shown. */
static const int shown_order[COMPARED] = {
    RATE,
    LAB_RECORDING_STATS_UTILIZATION,
    LAB_RECORDING_STATS_MEMORY,
    PEAK_MEMORY,
    LAB_RECORDING_STATS_POWER,
    ENERGY,
    LAB_RECORDING_STATS_CLOCK,
    LAB_RECORDING_STATS_TEMPERATURE,
    PEAK_TEMPERATURE,
    DURATION,
};

static double single_value(const struct lab_recording_stats *stats, int what) {
    double hottest = NAN;
    bool integrated;
    switch (what) {
    case PEAK_MEMORY:
        return stats->peak_total_mib;
    case PEAK_TEMPERATURE:
        for (int g = 0; g < stats->gpu_count; g++)
            hottest = fmax(hottest, stats->gpus[g].figures[LAB_RECORDING_STATS_TEMPERATURE].peak);
        return hottest;
    case ENERGY:
        return lab_recording_stats_energy(stats, &integrated);
    case DURATION:
        return stats->duration_s;
    default:
        return stats->source->rate;
    }
}

static struct lab_change_side make_side(const struct lab_recording_stats_label *label, int what,
                                        struct lab_arena *arena) {
    if (what < LAB_RECORDING_STATS_METRICS)
        return lab_change_side_make(label, what, -1, arena);
    double *values = lab_arena_alloc(arena, (size_t)label->count, sizeof *values);
    for (int i = 0; i < label->count; i++)
        values[i] = single_value(label->all_stats[i], what);
    return lab_change_side_single(values, label->count);
}

/* --- columns --- */

enum { RECORDINGS, FIRST_RECORDINGS, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [RECORDINGS] = {"recordings", NULL, LAB_UNIT_COUNT},
    [FIRST_RECORDINGS] = {"recordings_of_first", NULL, LAB_UNIT_COUNT},
};

enum {
    METRIC_KEY,
    METRIC_UNIT,
    METRIC_TITLE,
    METRIC_FIRST,
    METRIC_FIRST_TEXT,
    METRIC_SECOND,
    METRIC_SECOND_TEXT,
    METRIC_CHANGE,
    METRIC_DIFFERENCE,
    METRIC_CHANGE_TEXT,
    METRIC_VERDICT,
    METRIC_WORDS,
    METRIC_COLUMNS
};

#define TITLE_COLUMNS 12 /* that a label may take as the title of a column */

/* Long labels would push figures off the screen: those are A and B in tables. */
static bool is_brief(const struct lab_recording_stats_label *first,
                     const struct lab_recording_stats_label *second) {
    return lab_str_columns(first->name) <= TITLE_COLUMNS &&
           lab_str_columns(second->name) <= TITLE_COLUMNS;
}

static const struct lab_doc_column *metric_columns(const char *first, const char *second,
                                                   bool brief, struct lab_arena *arena) {
    static const struct lab_doc_column template[METRIC_COLUMNS] = {
        [METRIC_KEY] = {"metric", NULL, LAB_UNIT_TEXT},
        [METRIC_UNIT] = {"unit", NULL, LAB_UNIT_TEXT},
        [METRIC_TITLE] = {NULL, "", LAB_UNIT_TEXT},
        [METRIC_FIRST] = {"first", NULL, LAB_UNIT_NUMBER},
        [METRIC_FIRST_TEXT] = {NULL, "A", LAB_UNIT_FIGURE},
        [METRIC_SECOND] = {"second", NULL, LAB_UNIT_NUMBER},
        [METRIC_SECOND_TEXT] = {NULL, "B", LAB_UNIT_FIGURE},
        [METRIC_CHANGE] = {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
        [METRIC_DIFFERENCE] = {"difference", NULL, LAB_UNIT_NUMBER, .with_interval = true},
        [METRIC_CHANGE_TEXT] = {NULL, "Change", LAB_UNIT_FIGURE},
        [METRIC_VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
        [METRIC_WORDS] = {NULL, "Verdict", LAB_UNIT_TEXT},
    };
    struct lab_doc_column *columns = lab_arena_alloc(arena, METRIC_COLUMNS, sizeof *columns);
    for (int c = 0; c < METRIC_COLUMNS; c++)
        columns[c] = template[c];
    if (!brief)
        return columns;
    columns[METRIC_FIRST_TEXT].title = first;
    columns[METRIC_SECOND_TEXT].title = second;
    return columns;
}

#define BY_GPU 3 /* metrics: memory, utilisation, power */
enum { GPU, GPU_CHANGE, GPU_TEXT = GPU_CHANGE + BY_GPU, GPU_COLUMNS = GPU_TEXT + BY_GPU };
static const struct lab_doc_column gpu_columns[GPU_COLUMNS] = {
    [GPU] = {"gpu", "GPU", LAB_UNIT_COUNT},
    [GPU_CHANGE + LAB_RECORDING_STATS_MEMORY] = {"memory_change", NULL, LAB_UNIT_CHANGE,
                                                 .with_interval = true},
    [GPU_CHANGE + LAB_RECORDING_STATS_UTILIZATION] = {"utilization_change", NULL, LAB_UNIT_CHANGE,
                                                      .with_interval = true},
    [GPU_CHANGE +
        LAB_RECORDING_STATS_POWER] = {"power_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [GPU_TEXT + LAB_RECORDING_STATS_MEMORY] = {NULL, "Memory", LAB_UNIT_FIGURE},
    [GPU_TEXT + LAB_RECORDING_STATS_UTILIZATION] = {NULL, "Utilisation", LAB_UNIT_FIGURE},
    [GPU_TEXT + LAB_RECORDING_STATS_POWER] = {NULL, "Power", LAB_UNIT_FIGURE},
};

/* --- a pair --- */

struct pair {
    const struct lab_recording_stats_label *first, *second;
    struct lab_change changes[COMPARED];
};

static const char *value_text(double value, const struct compared *what, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    if (what == &compared[ENERGY]) {
        LAB_AUTO(str, text);
        lab_str_add_si(&text, value, "J");
        return lab_arena_strdup(arena, text.text);
    }
    return lab_arena_printf(arena, "%.*f %s", what->decimals, value, what->unit);
}

static struct lab_doc_table metric_table(const struct pair *pair, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)COMPARED * METRIC_COLUMNS, sizeof *cells);
    int rows = 0;
    for (int i = 0; i < COMPARED; i++) {
        const struct compared *what = &compared[shown_order[i]];
        const struct lab_change *change = &pair->changes[shown_order[i]];
        struct lab_doc_cell *row = cells + (ptrdiff_t)rows * METRIC_COLUMNS;
        if (isnan(change->first) && isnan(change->second))
            continue;
        rows++;
        row[METRIC_KEY] = lab_cell_text(what->key);
        row[METRIC_UNIT] =
            lab_cell_text(what->unit[0] == 'M' && what->unit[1] == 'B' ? "MiB" : what->unit);
        row[METRIC_FIRST] = lab_cell_figure(change->first);
        row[METRIC_SECOND] = lab_cell_figure(change->second);
        row[METRIC_CHANGE] = change->absolute ? lab_cell_figure(NAN) : lab_change_cell(change);
        row[METRIC_DIFFERENCE] = change->absolute ? lab_change_cell(change)
                                                  : lab_cell_figure(change->second - change->first);
        row[METRIC_VERDICT] = lab_cell_text(lab_change_verdict_name(change->verdict));
        row[METRIC_TITLE] = lab_cell_text(what->title);
        row[METRIC_FIRST_TEXT] = lab_cell_text(value_text(change->first, what, arena));
        row[METRIC_SECOND_TEXT] = lab_cell_text(value_text(change->second, what, arena));
        row[METRIC_CHANGE_TEXT] = lab_cell_text(lab_change_text(change, arena));
        row[METRIC_WORDS] = lab_cell_text(lab_change_words(change, arena));
    }
    return (struct lab_doc_table){.key = "metrics",
                                  .title = "All GPUs",
                                  .columns =
                                      metric_columns(pair->first->name, pair->second->name,
                                                     is_brief(pair->first, pair->second), arena),
                                  .column_count = METRIC_COLUMNS,
                                  .cells = cells,
                                  .row_count = rows};
}

static struct lab_doc_table gpu_table(const struct pair *pair, struct lab_arena *arena) {
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(pair->second, indices);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * GPU_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * GPU_COLUMNS;
        row[GPU] = lab_cell_figure(indices[i]);
        for (int m = 0; m < BY_GPU; m++) {
            struct lab_change_side first = lab_change_side_make(pair->first, m, indices[i], arena),
                                   second =
                                       lab_change_side_make(pair->second, m, indices[i], arena);
            struct lab_change change = lab_change_make(&first, &second);
            row[GPU_CHANGE + m] = lab_change_cell(&change);
            row[GPU_TEXT + m] = lab_cell_text(lab_change_text(&change, arena));
        }
    }
    return (struct lab_doc_table){.key = "gpus",
                                  .title = "By GPU",
                                  .columns = gpu_columns,
                                  .column_count = GPU_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

/* --- histograms --- */

enum {
    BIN_FROM,
    BIN_TO,
    BIN_RANGE,
    BIN_FIRST,
    BIN_FIRST_BAR,
    BIN_SECOND,
    BIN_SECOND_BAR,
    BIN_COLUMNS
};

#define BAR_CELLS 12

/* In halves of a cell; what is there at all has one. */
static const char *bar(double share, struct lab_arena *arena) {
    int halves = share > 0 ? (int)fmax(1, round(share * 2 * BAR_CELLS)) : 0;
    const char *text = "";
    for (int i = 0; i < halves / 2; i++)
        text = lab_arena_printf(arena, "%s█", text);
    return halves % 2 ? lab_arena_printf(arena, "%s▌", text) : text;
}

static const struct lab_doc_column *bin_columns(int metric, const struct pair *pair,
                                                struct lab_arena *arena) {
    const struct lab_recording_stats_kind *kind = &lab_recording_stats_kinds[metric];
    struct lab_doc_column *columns = lab_arena_alloc(arena, BIN_COLUMNS, sizeof *columns);
    columns[BIN_FROM] = (struct lab_doc_column){lab_arena_printf(arena, "from_%s", kind->key_unit),
                                                NULL, LAB_UNIT_NUMBER};
    columns[BIN_TO] = (struct lab_doc_column){lab_arena_printf(arena, "to_%s", kind->key_unit),
                                              NULL, LAB_UNIT_NUMBER};
    columns[BIN_RANGE] = (struct lab_doc_column){NULL, kind->unit, LAB_UNIT_TEXT};
    columns[BIN_FIRST] = (struct lab_doc_column){"first", pair->first->name, LAB_UNIT_SHARE};
    columns[BIN_SECOND] = (struct lab_doc_column){"second", pair->second->name, LAB_UNIT_SHARE};
    columns[BIN_FIRST_BAR] = columns[BIN_SECOND_BAR] =
        (struct lab_doc_column){NULL, " ", LAB_UNIT_TEXT};
    if (!is_brief(pair->first, pair->second)) {
        columns[BIN_FIRST].title = "A";
        columns[BIN_SECOND].title = "B";
    }
    return columns;
}

/* false = all values are the same */
static bool histogram_table(const struct pair *pair, int metric, int bins, struct lab_arena *arena,
                            struct lab_doc_table *ret_table) {
    struct lab_histogram *h = lab_arena_alloc(arena, 1, sizeof *h);
    lab_histogram_make(pair->first, pair->second, metric, bins, h);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)h->bins * BIN_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < h->bins; i++) {
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * BIN_COLUMNS;
        double from = h->from + i * h->width, to = h->from + (i + 1) * h->width;
        row[BIN_FROM] = lab_cell_figure(from);
        row[BIN_TO] = lab_cell_figure(to);
        row[BIN_RANGE] = lab_cell_text(lab_arena_printf(arena, "%.1f to %.1f", from, to));
        row[BIN_FIRST] = lab_cell_figure(h->first[i]);
        row[BIN_FIRST_BAR] = lab_cell_text(bar(h->first[i], arena));
        row[BIN_SECOND] = lab_cell_figure(h->second[i]);
        row[BIN_SECOND_BAR] = lab_cell_text(bar(h->second[i], arena));
    }
    *ret_table = (struct lab_doc_table){
        .key = lab_arena_printf(arena, "%s_histogram", lab_recording_stats_kinds[metric].key),
        .title = lab_arena_printf(arena, "%s of single GPUs: share of the samples",
                                  lab_recording_stats_kinds[metric].title),
        .columns = bin_columns(metric, pair, arena),
        .column_count = BIN_COLUMNS,
        .cells = cells,
        .row_count = h->bins};
    return h->bins > 0;
}

/* --- words --- */

/* "power 12.0 % [11.1, 12.9] higher" */
static void add_difference(struct lab_str *text, const struct compared *what,
                           const struct lab_change *change) {
    bool lower = change->share < 0;
    lab_str_printf(text, "%s %.1f %% [%.1f, %.1f] %s", what->noun, 100 * fabs(change->share),
                   100 * (lower ? -change->high : change->low),
                   100 * (lower ? -change->low : change->high), lower ? "lower" : "higher");
}

/* "b against a: power 12.0 % [11.1, 12.9] higher; no difference larger than 1.3 % in
 * utilisation." */
static const char *make_answer(const struct pair *pair, struct lab_arena *arena) {
    static const int main_ones[] = {RATE, LAB_RECORDING_STATS_UTILIZATION,
                                    LAB_RECORDING_STATS_MEMORY, LAB_RECORDING_STATS_POWER};
    enum { MAIN = sizeof main_ones / sizeof *main_ones };
    int differences = 0, same = 0;
    LAB_AUTO(str, rest);
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s against %s: ", pair->second->name, pair->first->name);
    for (int i = 0; i < MAIN; i++) {
        const struct lab_change *change = &pair->changes[main_ones[i]];
        const struct compared *what = &compared[main_ones[i]];
        if (change->verdict == LAB_CHANGE_HIGHER || change->verdict == LAB_CHANGE_LOWER) {
            lab_str_add(&text, differences++ ? ", " : "");
            add_difference(&text, what, change);
        } else if (change->verdict == LAB_CHANGE_SAME || change->verdict == LAB_CHANGE_SMALL) {
            lab_str_printf(&rest, "%s%.1f %% in %s", same++ ? ", " : "",
                           lab_change_bound_percent(change), what->noun);
        }
    }
    if (same > 0)
        lab_str_printf(&text, "%sno difference larger than %s", differences ? "; " : "", rest.text);
    if (differences + same == 0)
        lab_str_add(&text, "too few samples to tell a difference");
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

static struct lab_analysis_part make_part(const struct pair *pair, int bins,
                                          struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, BY_GPU + 2, sizeof *tables);
    const struct lab_recording_stats **both =
        lab_arena_alloc(arena, (size_t)(pair->first->count + pair->second->count), sizeof *both);
    int table_count = 0, watch_count = 0;
    for (int i = 0; i < pair->first->count; i++)
        both[watch_count++] = pair->first->all_stats[i];
    for (int i = 0; i < pair->second->count; i++)
        both[watch_count++] = pair->second->all_stats[i];
    tables[table_count++] = metric_table(pair, arena);
    struct lab_doc_table gpus = gpu_table(pair, arena);
    if (gpus.row_count > 1)
        tables[table_count++] = gpus;
    for (int m = 0; m < BY_GPU; m++)
        if (histogram_table(pair, m, bins, arena, &tables[table_count]))
            table_count++;
    cells[RECORDINGS] = lab_cell_figure(pair->second->count);
    cells[FIRST_RECORDINGS] = lab_cell_figure(pair->first->count);
    return (struct lab_analysis_part){
        .name = pair->second->name,
        .about = lab_arena_printf(
            arena, is_brief(pair->first, pair->second) ? "against %s" : "B, against A: %s",
            pair->first->name),
        .answer = make_answer(pair, arena),
        .cells = cells,
        .tables = tables,
        .table_count = table_count,
        .notes = lab_recording_stats_notes(both, watch_count, 0, arena),
    };
}

/* --- the picture --- */

#define ZERO_COLOUR 6 /* black */

/* Degrees have no share, and what no label has isn't in it. */
static bool is_drawn(const struct pair *pairs, int count, int what) {
    for (int i = 0; i < count; i++)
        if (!pairs[i].changes[what].absolute && !isnan(pairs[i].changes[what].share))
            return true;
    return false;
}

/* Changes in percent by metric, a series for each label. */
static struct lab_chart_series change_points(const struct pair *pairs, int pair_count, int number,
                                             struct lab_arena *arena) {
    const struct pair *pair = &pairs[number];
    double *figures = lab_arena_alloc(arena, (size_t)4 * COMPARED, sizeof *figures);
    double *x = figures, *y = x + COMPARED, *low = y + COMPARED, *high = low + COMPARED;
    int count = 0;
    for (int i = 0; i < COMPARED; i++) {
        const struct lab_change *change = &pair->changes[shown_order[i]];
        if (!is_drawn(pairs, pair_count, shown_order[i]))
            continue;
        x[count] = count;
        y[count] = 100 * change->share;
        low[count] = 100 * change->low;
        high[count] = 100 * change->high;
        count++;
    }
    return (struct lab_chart_series){.title = pair->second->name,
                                     .mark = LAB_CHART_POINTS,
                                     .x = x,
                                     .y = y,
                                     .low = low,
                                     .high = high,
                                     .count = (size_t)count,
                                     .colour = number < ZERO_COLOUR ? number : number + 1};
}

static struct lab_chart make_chart(const struct pair *pairs, int count, bool simulated,
                                   struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, COMPARED, sizeof *names);
    struct lab_chart_series *series = lab_arena_alloc(arena, (size_t)count + 1, sizeof *series);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    double *zero = lab_arena_alloc(arena, 4, sizeof *zero);
    int name_count = 0;
    for (int i = 0; i < COMPARED; i++)
        if (is_drawn(pairs, count, shown_order[i]))
            names[name_count++] = compared[shown_order[i]].title;
    zero[0] = -0.6;
    zero[1] = name_count - 0.4;
    series[0] = (struct lab_chart_series){
        .mark = LAB_CHART_DASHES, .x = zero, .y = zero + 2, .count = 2, .colour = ZERO_COLOUR};
    for (int i = 0; i < count; i++)
        series[1 + i] = change_points(pairs, count, i, arena);
    *panel = (struct lab_chart_panel){
        .x = {.title = "", .low = NAN, .high = NAN, .names = names, .name_count = name_count},
        .y = {.title = "Change [%]", .low = NAN, .high = NAN},
        .series = series,
        .series_count = count + 1};
    return (struct lab_chart){
        .name = "recording_comparison",
        .title = lab_arena_printf(arena, "What differs from %s", pairs[0].first->name),
        .caption = "Whiskers are 95 % intervals; one that crosses the dashed line can't be told "
                   "from no change.",
        .panels = panel,
        .panel_count = 1,
        .simulated = simulated};
}

/* --- the whole --- */

static int compare_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    const struct compare_config *config = opaque;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = lab_recording_stats_labels(all_stats, input->recording_count, arena, &labels);
    if (count < 2)
        return lab_err_set(err, LAB_ERR_USER,
                           "only %s is there: name two recordings or labels to compare, e.g. "
                           "before=a.db after=b.db",
                           labels[0].name);
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    const char **notes = lab_arena_alloc(arena, 2, sizeof *notes);
    struct pair *pairs = lab_arena_alloc(arena, (size_t)count, sizeof *pairs);
    for (int i = 1; i < count; i++) {
        struct pair pair = {.first = &labels[0], .second = &labels[i]};
        for (int what = 0; what < COMPARED; what++) {
            struct lab_change_side first = make_side(pair.first, what, arena),
                                   second = make_side(pair.second, what, arena);
            bool degrees = what == LAB_RECORDING_STATS_TEMPERATURE || what == PEAK_TEMPERATURE;
            pair.changes[what] = degrees ? lab_change_make_absolute(&first, &second)
                                         : lab_change_make(&first, &second);
        }
        parts[i - 1] = make_part(&pair, (int)config->bins, arena);
        pairs[i - 1] = pair;
    }
    notes[0] = lab_change_note(labels, count);
    *ret_result = (struct lab_analysis_result){
        .answer = count == 2
                      ? parts->answer
                      : lab_arena_printf(arena, "%d labels against %s.", count - 1, labels[0].name),
        .part_key = "comparisons",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts,
        .part_count = count - 1,
        .simulated = lab_recording_stats_simulated(input),
        .notes = notes,
    };
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    *chart = make_chart(pairs, count - 1, ret_result->simulated, arena);
    ret_result->charts = chart;
    ret_result->chart_count = 1;
    return 0;
}

const struct lab_analysis lab_analysis_compare = {
    .name = "compare",
    .summary = "what differs between recordings, by how much, and how surely",
    .description =
        "Holds each label against the first: differences of memory, utilisation, power, clocks, "
        "heat, energy and throughput with their intervals, and histograms. A label is a file's "
        "name, a folder's, a run's of a study, or what is written before it: LABEL=PATH. Several "
        "recordings of a label say what another one would give; one each, how well these two are "
        "known.",
    .options = compare_options,
    .config_size = sizeof(struct compare_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    .run = compare_run,
};
