/*
 * compare.c: `gpulab analyze compare`: what differs between two recordings, or two labels of
 * several, by how much, and whether that can be told from nothing. The first label is what the
 * others are held against.
 */
#include "analysis/analysis_build.h"
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

static const struct lab_doc_column figure_columns[] = {
    {"recordings", NULL, LAB_UNIT_COUNT},
    {"recordings_of_first", NULL, LAB_UNIT_COUNT},
};

#define TITLE_COLUMNS 12 /* that a label may take as the title of a column */

/* Long labels would push figures off the screen: those are A and B in tables. */
static bool is_brief(const struct lab_recording_stats_label *first,
                     const struct lab_recording_stats_label *second) {
    return lab_str_columns(first->name) <= TITLE_COLUMNS &&
           lab_str_columns(second->name) <= TITLE_COLUMNS;
}

enum { METRIC_FIRST_TEXT = 4, METRIC_SECOND_TEXT = 6 };
static const struct lab_doc_column metric_columns[] = {
    {"metric", NULL, LAB_UNIT_TEXT},
    {"unit", NULL, LAB_UNIT_TEXT},
    {NULL, "", LAB_UNIT_TEXT},
    {"first", NULL, LAB_UNIT_NUMBER},
    {NULL, "A", LAB_UNIT_FIGURE},
    {"second", NULL, LAB_UNIT_NUMBER},
    {NULL, "B", LAB_UNIT_FIGURE},
    {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {"difference", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Change", LAB_UNIT_FIGURE},
    {"verdict", NULL, LAB_UNIT_TEXT},
    {NULL, "Verdict", LAB_UNIT_TEXT},
};

#define BY_GPU 3 /* metrics: memory, utilisation, power */
static const struct lab_doc_column gpu_columns[] = {
    {"gpu", "GPU", LAB_UNIT_COUNT},
    {"memory_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {"utilization_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {"power_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Memory", LAB_UNIT_FIGURE},
    {NULL, "Utilisation", LAB_UNIT_FIGURE},
    {NULL, "Power", LAB_UNIT_FIGURE},
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

static void add_metric_table(struct lab_analysis_part *part, const struct pair *pair,
                             struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "metrics", "All GPUs", metric_columns, arena);
    if (is_brief(pair->first, pair->second)) {
        struct lab_doc_column *columns = lab_analysis_own_columns(table, arena);
        columns[METRIC_FIRST_TEXT].title = pair->first->name;
        columns[METRIC_SECOND_TEXT].title = pair->second->name;
    }
    for (int i = 0; i < COMPARED; i++) {
        const struct compared *what = &compared[shown_order[i]];
        const struct lab_change *change = &pair->changes[shown_order[i]];
        if (isnan(change->first) && isnan(change->second))
            continue;
        LAB_ROW(table, arena, lab_cell_text(what->key),
                lab_cell_text(lab_str_equal(what->unit, "MB") ? "MiB" : what->unit),
                lab_cell_text(what->title), lab_cell_figure(change->first),
                lab_cell_text(value_text(change->first, what, arena)),
                lab_cell_figure(change->second),
                lab_cell_text(value_text(change->second, what, arena)),
                change->absolute ? lab_cell_figure(NAN) : lab_change_cell(change),
                change->absolute ? lab_change_cell(change)
                                 : lab_cell_figure(change->second - change->first),
                lab_cell_text(lab_change_text(change, arena)),
                lab_cell_text(lab_change_verdict_name(change->verdict)),
                lab_cell_text(lab_change_words(change, arena)));
    }
}

static void add_gpu_table(struct lab_analysis_part *part, const struct pair *pair,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "gpus", "By GPU", gpu_columns, arena);
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    int count = lab_recording_stats_label_gpus(pair->second, indices);
    for (int i = 0; i < count; i++) {
        struct lab_doc_cell row[1 + 2 * BY_GPU] = {lab_cell_figure(indices[i])};
        for (int m = 0; m < BY_GPU; m++) {
            struct lab_change change =
                lab_change_between(pair->first, pair->second, m, indices[i], arena);
            row[1 + m] = lab_change_cell(&change);
            row[1 + BY_GPU + m] = lab_cell_text(lab_change_text(&change, arena));
        }
        lab_analysis_add_row(table, row, 1 + 2 * BY_GPU, arena);
    }
}

/* --- histograms --- */

#define BAR_CELLS 12

/* In halves of a cell; what is there at all has one. */
static const char *bar(double share, struct lab_arena *arena) {
    int halves = share > 0 ? (int)fmax(1, round(share * 2 * BAR_CELLS)) : 0;
    const char *text = "";
    for (int i = 0; i < halves / 2; i++)
        text = lab_arena_printf(arena, "%s█", text);
    return halves % 2 ? lab_arena_printf(arena, "%s▌", text) : text;
}

/* None where all values are the same. */
static void add_histogram(struct lab_analysis_part *part, const struct pair *pair, int metric,
                          int bins, struct lab_arena *arena) {
    const struct lab_recording_stats_kind *kind = &lab_recording_stats_kinds[metric];
    bool brief = is_brief(pair->first, pair->second);
    struct lab_doc_column columns[] = {
        {lab_arena_printf(arena, "from_%s", kind->key_unit), NULL, LAB_UNIT_NUMBER},
        {lab_arena_printf(arena, "to_%s", kind->key_unit), NULL, LAB_UNIT_NUMBER},
        {NULL, kind->unit, LAB_UNIT_TEXT},
        {"first", brief ? pair->first->name : "A", LAB_UNIT_SHARE},
        {NULL, " ", LAB_UNIT_TEXT},
        {"second", brief ? pair->second->name : "B", LAB_UNIT_SHARE},
        {NULL, " ", LAB_UNIT_TEXT},
    };
    struct lab_doc_table *table =
        LAB_TABLE(part, lab_arena_printf(arena, "%s_histogram", kind->key),
                  lab_arena_printf(arena, "%s of single GPUs: share of the samples", kind->title),
                  columns, arena);
    struct lab_histogram *h = lab_arena_alloc(arena, 1, sizeof *h);
    lab_analysis_own_columns(table, arena);
    lab_histogram_make(pair->first, pair->second, metric, bins, h);
    for (int i = 0; i < h->bins; i++) {
        double from = h->from + i * h->width, to = h->from + (i + 1) * h->width;
        LAB_ROW(table, arena, lab_cell_figure(from), lab_cell_figure(to),
                lab_cell_text(lab_arena_printf(arena, "%.1f to %.1f", from, to)),
                lab_cell_figure(h->first[i]), lab_cell_text(bar(h->first[i], arena)),
                lab_cell_figure(h->second[i]), lab_cell_text(bar(h->second[i], arena)));
    }
    lab_analysis_drop_empty(part);
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

static void add_part(struct lab_analysis_result *result, const struct pair *pair, int bins,
                     struct lab_arena *arena) {
    const struct lab_recording_stats_label *first = pair->first, *second = pair->second;
    struct lab_analysis_part *part = lab_analysis_add_part(result, second->name, arena);
    const struct lab_recording_stats **both =
        lab_arena_alloc(arena, (size_t)(first->count + second->count), sizeof *both);
    int count = 0;
    for (int i = 0; i < first->count; i++)
        both[count++] = first->all_stats[i];
    for (int i = 0; i < second->count; i++)
        both[count++] = second->all_stats[i];
    add_metric_table(part, pair, arena);
    add_gpu_table(part, pair, arena);
    part->table_count -= part->tables[1].row_count <= 1;
    for (int m = 0; m < BY_GPU; m++)
        add_histogram(part, pair, m, bins, arena);
    LAB_FIGURES(part, lab_cell_figure(second->count), lab_cell_figure(first->count));
    part->about = lab_arena_printf(
        arena, is_brief(first, second) ? "against %s" : "B, against A: %s", first->name);
    part->answer = make_answer(pair, arena);
    lab_recording_stats_add_notes(both, count, &part->notes, arena);
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
    struct lab_series series = {.arena = arena};
    for (int i = 0; i < COMPARED; i++) {
        const struct lab_change *change = &pairs[number].changes[shown_order[i]];
        if (is_drawn(pairs, pair_count, shown_order[i]))
            lab_series_add(&series, (double)series.count, 100 * change->share, 100 * change->low,
                           100 * change->high);
    }
    return lab_series_chart(&series, pairs[number].second->name, LAB_CHART_POINTS,
                            number < ZERO_COLOUR ? number : number + 1);
}

static void add_chart(struct lab_analysis_result *result, const struct pair *pairs, int count,
                      struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, COMPARED, sizeof *names);
    int name_count = 0;
    for (int i = 0; i < COMPARED; i++)
        if (is_drawn(pairs, count, shown_order[i]))
            names[name_count++] = compared[shown_order[i]].title;
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = "recording_comparison",
            .title = lab_arena_printf(arena, "What differs from %s", pairs[0].first->name),
            .caption = "Whiskers are 95 % intervals; one that crosses the dashed line can't be "
                       "told from no change.",
            .simulated = result->simulated},
        arena);
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, NULL, lab_axis_names("", names, name_count), lab_axis("Change [%]"), arena);
    lab_panel_add_series(
        panel, lab_series_level(NULL, -0.6, name_count - 0.4, 0, ZERO_COLOUR, arena), arena);
    for (int i = 0; i < count; i++)
        lab_panel_add_series(panel, change_points(pairs, count, i, arena), arena);
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
    *ret_result = LAB_RESULT("comparisons", figure_columns);
    ret_result->simulated = lab_recording_stats_simulated(input);
    struct pair *pairs = lab_arena_alloc(arena, (size_t)count, sizeof *pairs);
    for (int i = 1; i < count; i++) {
        struct pair *pair = &pairs[i - 1];
        *pair = (struct pair){.first = &labels[0], .second = &labels[i]};
        for (int what = 0; what < COMPARED; what++) {
            struct lab_change_side first = make_side(pair->first, what, arena),
                                   second = make_side(pair->second, what, arena);
            bool degrees = what == LAB_RECORDING_STATS_TEMPERATURE || what == PEAK_TEMPERATURE;
            pair->changes[what] = degrees ? lab_change_make_absolute(&first, &second)
                                          : lab_change_make(&first, &second);
        }
        add_part(ret_result, pair, (int)config->bins, arena);
    }
    lab_analysis_note(&ret_result->notes, arena, "%s", lab_change_note(labels, count));
    ret_result->answer =
        count == 2 ? ret_result->parts[0].answer
                   : lab_arena_printf(arena, "%d labels against %s.", count - 1, labels[0].name);
    add_chart(ret_result, pairs, count - 1, arena);
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
