/*
 * compare.c: `gpulab analyze compare`: what differs between labels, by how much. The unit of
 * replication is the recording: one of each label gives values and no verdict. The first label is
 * the reference.
 */
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
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
};

/* In the order in which they are shown. */
static const struct compared {
    int what;
    const char *key, *title, *noun, *unit;
    int decimals;
    bool main; /* in the answer */
} compared[] = {
    {RATE, "rate", "Throughput", "throughput", "/s", 1, true},
    {LAB_RECORDING_STATS_UTILIZATION, "utilization", "Utilisation", "utilisation", "%", 1, true},
    {LAB_RECORDING_STATS_MEMORY, "memory", "Memory", "memory", "MiB", 1, true},
    {PEAK_MEMORY, "memory_peak", "Peak memory", "peak memory", "MiB", 1},
    {LAB_RECORDING_STATS_POWER, "power", "Power", "power", "W", 1, true},
    {ENERGY, "energy", "Energy", "energy", "J", 0},
    {LAB_RECORDING_STATS_CLOCK, "sm_clock", "SM clock", "SM clock", "MHz", 0},
    {LAB_RECORDING_STATS_TEMPERATURE, "temperature", "Temperature", "temperature", "°C", 1},
    {PEAK_TEMPERATURE, "temperature_peak", "Highest temp.", "highest temperature", "°C", 0},
    {DURATION, "duration", "Duration", "duration", "s", 1},
};
#define COMPARED LAB_COUNT_OF(compared)

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
        return what == RATE ? stats->source->rate : lab_recording_stats_together(stats, what);
    }
}

/* --- rows --- */

struct row { /* a metric of a label */
    const char *label, *key, *title, *unit, *first_text, *second_text, *text;
    double first, second, difference;
    bool main;
    struct lab_claim change; /* "compare.metric"; degrees have none: they have no ratio */
};

enum { FIRST_TEXT = 4, SECOND_TEXT = 6 };
static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, key, "metric", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, unit, "unit", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, title, "title", "", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, first, "first", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, first_text, NULL, "A", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, second, "second", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, second_text, NULL, "B", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, difference, "difference", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, text, NULL, "Change", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, change, "change", NULL, LAB_UNIT_CHANGE),
    LAB_FIELD(struct row, label, "label", NULL, LAB_UNIT_TEXT),
};

#define BY_GPU 3 /* metrics: memory, utilisation, power */
struct gpu_row {
    int gpu;
    struct lab_claim memory, utilization, power; /* "compare.gpu" */
};

static const struct lab_field gpu_fields[] = {
    LAB_FIELD(struct gpu_row, gpu, "gpu", "GPU", LAB_UNIT_COUNT),
    LAB_FIELD(struct gpu_row, memory, "memory_change", "Memory", LAB_UNIT_CHANGE),
    LAB_FIELD(struct gpu_row, utilization, "utilization_change", "Utilisation", LAB_UNIT_CHANGE),
    LAB_FIELD(struct gpu_row, power, "power_change", "Power", LAB_UNIT_CHANGE),
};

struct pair {
    const struct lab_recording_stats_label *first, *second;
    struct row *rows;
    int count;
    struct gpu_row *gpus;
    int gpu_count;
};

static double mean_of(const double *values, int count) {
    double sum = 0;
    int known = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(values[i])) {
            sum += values[i];
            known++;
        }
    return known ? sum / known : (double)NAN;
}

static const char *value_text(double value, const struct compared *what, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return what->what == ENERGY
               ? lab_words_si(value, "J", arena)
               : lab_arena_printf(arena, "%.*f %s", what->decimals, value, what->unit);
}

static struct row make_row(const struct pair *pair, const struct compared *what,
                           struct lab_arena *arena) {
    const struct lab_recording_stats_label *sides[2] = {pair->first, pair->second};
    double *values[2], means[2];
    for (int s = 0; s < 2; s++) {
        values[s] = lab_arena_alloc(arena, (size_t)sides[s]->count + 1, sizeof **values);
        for (int i = 0; i < sides[s]->count; i++)
            values[s][i] = single_value(sides[s]->all_stats[i], what->what);
        means[s] = mean_of(values[s], sides[s]->count);
    }
    bool degrees = lab_str_equal(what->unit, "°C");
    struct row row = {.label = pair->second->name,
                      .key = what->key,
                      .title = what->title,
                      .unit = what->unit,
                      .first = means[0],
                      .second = means[1],
                      .difference = means[1] - means[0],
                      .main = what->main,
                      .first_text = value_text(means[0], what, arena),
                      .second_text = value_text(means[1], what, arena),
                      .change = lab_claim_none};
    if (!degrees)
        row.change =
            lab_claim_from_samples(values[0], pair->first->count, values[1], pair->second->count);
    row.change = lab_claim_named(row.change, "compare.metric", pair->second->name,
                                 pair->first->name, what->noun);
    return row;
}

/* Verdicts of all metrics hold together; single GPUs have one where all of them together do. */
static struct pair make_pair(const struct lab_recording_stats_label *first,
                             const struct lab_recording_stats_label *second,
                             struct lab_arena *arena) {
    struct pair pair = {.first = first, .second = second};
    struct lab_claim *claims[COMPARED];
    bool found[BY_GPU] = {0};
    int indices[LAB_RECORDING_STATS_GPUS_MAX];
    pair.rows = lab_arena_alloc(arena, COMPARED, sizeof *pair.rows);
    for (int i = 0; i < COMPARED; i++) {
        struct row row = make_row(&pair, &compared[i], arena);
        if (!isnan(row.first) || !isnan(row.second))
            pair.rows[pair.count++] = row;
    }
    for (int i = 0; i < pair.count; i++)
        claims[i] = &pair.rows[i].change;
    lab_claim_adjust(claims, pair.count);
    for (int i = 0; i < pair.count; i++) {
        struct row *row = &pair.rows[i];
        row->text = row->change.verdict != LAB_CLAIM_NOT_TESTED
                        ? lab_claim_short(&row->change, arena)
                    : isnan(row->difference)
                        ? "–"
                        : lab_arena_printf(arena, "%+.1f %s", row->difference, row->unit);
        for (int m = 0; m < BY_GPU; m++)
            found[m] |= lab_str_equal(row->key, lab_recording_stats_kinds[m].key) &&
                        row->change.verdict == LAB_CLAIM_YES;
    }
    pair.gpu_count = lab_recording_stats_label_gpus(second, indices);
    pair.gpus = lab_arena_alloc(arena, (size_t)pair.gpu_count + 1, sizeof *pair.gpus);
    for (int i = 0; i < pair.gpu_count; i++) {
        pair.gpus[i].gpu = indices[i];
        struct lab_claim *own[BY_GPU] = {&pair.gpus[i].memory, &pair.gpus[i].utilization,
                                         &pair.gpus[i].power};
        for (int m = 0; m < BY_GPU; m++) {
            *own[m] =
                lab_recording_stats_compare(first, second, m, indices[i], "compare.gpu", arena);
            if (!found[m] && !isnan(own[m]->p))
                lab_claim_judge(own[m], 1);
        }
    }
    return pair;
}

/* --- histograms --- */

#define TITLE_COLUMNS 12 /* that a label may take as the title of a column */

/* Long labels would push figures off the screen: those are A and B in tables. */
static bool is_brief(const struct pair *pair) {
    return lab_str_columns(pair->first->name) <= TITLE_COLUMNS &&
           lab_str_columns(pair->second->name) <= TITLE_COLUMNS;
}

#define BAR_CELLS 12

struct bin {
    double from, to, first, second;
    const char *range, *first_bar, *second_bar;
};

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
    bool brief = is_brief(pair);
    const struct lab_field fields[] = {
        LAB_FIELD(struct bin, from, lab_arena_printf(arena, "from_%s", kind->key_unit), NULL,
                  LAB_UNIT_NUMBER),
        LAB_FIELD(struct bin, to, lab_arena_printf(arena, "to_%s", kind->key_unit), NULL,
                  LAB_UNIT_NUMBER),
        LAB_FIELD(struct bin, range, NULL, kind->unit, LAB_UNIT_TEXT),
        LAB_FIELD(struct bin, first, "first", brief ? pair->first->name : "A", LAB_UNIT_SHARE),
        LAB_FIELD(struct bin, first_bar, NULL, " ", LAB_UNIT_TEXT),
        LAB_FIELD(struct bin, second, "second", brief ? pair->second->name : "B", LAB_UNIT_SHARE),
        LAB_FIELD(struct bin, second_bar, NULL, " ", LAB_UNIT_TEXT),
    };
    struct lab_histogram *h = lab_arena_alloc(arena, 1, sizeof *h);
    struct bin *rows = NULL;
    int count = 0;
    lab_histogram_make(pair->first, pair->second, metric, bins, h);
    for (int i = 0; i < h->bins; i++) {
        double from = h->from + i * h->width, to = h->from + (i + 1) * h->width;
        LAB_ADD(rows, count, arena) =
            (struct bin){from,
                         to,
                         h->first[i],
                         h->second[i],
                         lab_arena_printf(arena, "%.1f to %.1f", from, to),
                         bar(h->first[i], arena),
                         bar(h->second[i], arena)};
    }
    if (count > 0)
        lab_rows_add_table(
            part, lab_arena_printf(arena, "%s_histogram", kind->key),
            lab_arena_printf(arena, "%s of single GPUs: share of the samples", kind->title),
            &LAB_ROWS(fields, rows, count), arena);
}

/* --- parts --- */

/* What differs, then what doesn't; of one recording each the values. */
static const char *make_answer(const struct pair *pair, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    LAB_AUTO(str, same);
    LAB_AUTO(str, values);
    double bound = 0;
    int n = pair->first->count < pair->second->count ? pair->first->count : pair->second->count;
    for (int i = 0; i < pair->count; i++) {
        const struct lab_claim *claim = &pair->rows[i].change;
        if (!pair->rows[i].main || claim->verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        lab_str_printf(&values, "%s%s %+.1f%%", values.length ? ", " : "", claim->quantity,
                       100 * claim->effect);
        if (claim->verdict == LAB_CLAIM_YES)
            lab_str_printf(&text, "%s%s.", text.length ? " " : "",
                           lab_claim_sentence(claim, arena));
        if (claim->verdict != LAB_CLAIM_NO)
            continue;
        bound = fmax(bound, claim->bound);
        lab_str_printf(&same, "%s%s", same.length ? ", " : "", claim->quantity);
    }
    if (same.length)
        lab_str_printf(&text, "%sNo difference%s in %s.", text.length ? " " : "",
                       lab_claim_larger(bound, arena), same.text);
    if (!text.length && !values.length)
        lab_str_printf(&text, "%s and %s: not tested (no metric in common).", pair->second->name,
                       pair->first->name);
    else if (!text.length)
        lab_str_printf(&text, "%s and %s: inconclusive (%d recording%s each): %s.",
                       pair->second->name, pair->first->name, n, n == 1 ? "" : "s", values.text);
    return lab_arena_strdup(arena, text.text);
}

struct figures {
    int recordings, first;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, recordings, "recordings", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, first, "recordings_of_first", NULL, LAB_UNIT_COUNT),
};

static void add_part(struct lab_analysis_result *result, const struct pair *pair, int bins,
                     struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, pair->second->name, arena);
    struct lab_doc_table *table = lab_rows_add_table(
        part, "metrics", "All GPUs", &LAB_ROWS(row_fields, pair->rows, pair->count), arena);
    if (is_brief(pair)) {
        struct lab_doc_column *columns = lab_analysis_own_columns(table, arena);
        columns[FIRST_TEXT].title = pair->first->name;
        columns[SECOND_TEXT].title = pair->second->name;
    }
    if (pair->gpu_count > 1)
        lab_rows_add_table(part, "gpus", "By GPU",
                           &LAB_ROWS(gpu_fields, pair->gpus, pair->gpu_count), arena);
    for (int m = 0; m < BY_GPU; m++)
        add_histogram(part, pair, m, bins, arena);
    struct figures figures = {pair->second->count, pair->first->count};
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    part->about = lab_arena_printf(
        arena, is_brief(pair) ? "compared with %s" : "B, compared with A: %s", pair->first->name);
    part->answer = make_answer(pair, arena);
    const struct lab_recording_stats **both = NULL;
    int count = 0;
    for (int i = 0; i < pair->first->count; i++)
        LAB_ADD(both, count, arena) = pair->first->all_stats[i];
    for (int i = 0; i < pair->second->count; i++)
        LAB_ADD(both, count, arena) = pair->second->all_stats[i];
    lab_recording_stats_add_notes(both, count, &part->notes, arena);
    for (int i = 0; i < pair->count; i++)
        if (pair->rows[i].change.verdict != LAB_CLAIM_NOT_TESTED)
            lab_analysis_add_claim(result, &pair->rows[i].change, arena);
    lab_rows_add_claims(result, &LAB_ROWS(gpu_fields, pair->gpus, pair->gpu_count), arena);
}

static void add_chart(struct lab_analysis_result *result, const struct row *rows, int count,
                      const char *first, struct lab_arena *arena) {
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = "recording_comparison",
                           .title = lab_arena_printf(arena, "What differs from %s", first),
                           .intervals = "95% intervals over recordings",
                           .simulated = result->simulated},
        arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(""), lab_axis("Change [%]"), arena);
    lab_rows_add_series(panel, &LAB_ROWS(row_fields, rows, count), "title", "change", "label",
                        LAB_CHART_POINTS, arena);
}

/* --- the whole --- */

static int compare_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    const struct compare_config *config = input->config;
    struct lab_arena *arena = result->arena;
    struct lab_recording_stats *all_stats;
    struct lab_recording_stats_label *labels;
    struct row *rows = NULL;
    int row_count = 0;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = lab_recording_stats_labels(all_stats, input->recording_count, arena, &labels);
    if (count < 2)
        return lab_err_set(err, LAB_ERR_USER,
                           "only %s is there: name two recordings or labels to compare, e.g. "
                           "before=a.db after=b.db",
                           labels[0].name);
    for (int i = 1; i < count; i++) {
        struct pair pair = make_pair(&labels[0], &labels[i], arena);
        add_part(result, &pair, (int)config->bins, arena);
        for (int k = 0; k < pair.count; k++)
            if (pair.rows[k].change.verdict != LAB_CLAIM_NOT_TESTED)
                LAB_ADD(rows, row_count, arena) = pair.rows[k];
    }
    result->answer = count == 2 ? result->parts[0].answer
                                : lab_arena_printf(arena, "%d labels compared with %s.", count - 1,
                                                   labels[0].name);
    if (row_count > 0)
        add_chart(result, rows, row_count, labels[0].name, arena);
    return 0;
}

const struct lab_analysis lab_analysis_compare = {
    .name = "compare",
    .summary = "what differs between recordings, and by how much",
    .description =
        "Compares each label with the first: memory, utilisation, power, clocks, temperature, "
        "energy and throughput, with histograms. A label is a file's name, a folder's, a run's of "
        "a study, or what is written before it: LABEL=PATH. Intervals are over the recordings of "
        "a label, at 95%; one recording of each gives values and no verdict.",
    .options = compare_options,
    .config_size = sizeof(struct compare_config),
    .kinds = (const struct lab_analysis_kind[]){{"compare.metric", LAB_KIND_OTHER},
                                                {"compare.gpu", LAB_KIND_OTHER},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    LAB_PARTS_OF("comparisons", figure_fields),
    .run = compare_run,
};
