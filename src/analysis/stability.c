/*
 * stability.c: `gpulab analyze stability`: whether runs hold their pace: drift, changes for good,
 * and clocks that were held back. A figure of a run that doesn't is a mean over different states.
 */
#include "analysis/analysis.h"
#include "analysis/stability/rate_series.h"

#include "base/str.h"

#include <math.h>

#define LONG_RUN 100 /* iterations */

struct stability_config {
    double least;
};

static const struct lab_option stability_options[] = {
    {"least", LAB_OPTION_FLOAT, offsetof(struct stability_config, least), .fallback = "0.01",
     .min = 0.0001, .max = 1, .help = "the smallest change that counts, as a share: 0.01 is 1 %"},
    {NULL},
};

/* --- columns --- */

enum { RUNS, UNSTEADY, CHANGES, DRIFTS, HELD, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [RUNS] = {"runs", "Runs", LAB_UNIT_COUNT, "Runs"},
    [UNSTEADY] = {"unsteady", "Not steady", LAB_UNIT_COUNT, "Not steady"},
    [CHANGES] = {"changes", "Changes", LAB_UNIT_COUNT},
    [DRIFTS] = {"drifts", "Drifts", LAB_UNIT_COUNT},
    [HELD] = {"throttled_s", "Held back", LAB_UNIT_DURATION},
};

enum {
    RUN_NAME,
    RUN_DEVICE,
    RUN_COUNT,
    RUN_TIME,
    RUN_CLASS,
    RUN_FROM,
    RUN_DRIFT,
    RUN_DRIFT_P,
    RUN_MEMORY,
    RUN_CHANGES,
    RUN_HELD,
    RUN_WHY,
    RUN_COLUMNS
};

static const struct lab_doc_column run_columns[RUN_COLUMNS] = {
    [RUN_NAME] = {"run", "Run", LAB_UNIT_TEXT},
    [RUN_DEVICE] = {"device", NULL, LAB_UNIT_TEXT},
    [RUN_COUNT] = {"iterations", NULL, LAB_UNIT_COUNT},
    [RUN_TIME] = {"iteration_ms", "Time", LAB_UNIT_TIME},
    [RUN_CLASS] = {"class", "Class", LAB_UNIT_TEXT},
    [RUN_FROM] = {"steady_from_s", NULL, LAB_UNIT_DURATION},
    [RUN_DRIFT] = {"drift", "Drift", LAB_UNIT_CHANGE, .with_interval = true},
    [RUN_DRIFT_P] = {"drift_p_adjusted", NULL, LAB_UNIT_NUMBER},
    [RUN_MEMORY] = {"memory_ms", NULL, LAB_UNIT_TIME},
    [RUN_CHANGES] = {"changes", NULL, LAB_UNIT_COUNT},
    [RUN_HELD] = {"throttled_s", "Held back", LAB_UNIT_DURATION},
    [RUN_WHY] = {"throttled_by", NULL, LAB_UNIT_TEXT},
};

enum {
    CHANGE_RUN,
    CHANGE_AT,
    CHANGE_AT_TEXT,
    CHANGE_BEFORE,
    CHANGE_AFTER,
    CHANGE_SHARE,
    CHANGE_CLOCK_BEFORE,
    CHANGE_CLOCK_AFTER,
    CHANGE_HELD_BEFORE,
    CHANGE_HELD_AFTER,
    CHANGE_REASON,
    CHANGE_COLUMNS
};

static const struct lab_doc_column change_columns[CHANGE_COLUMNS] = {
    [CHANGE_RUN] = {"run", "Run", LAB_UNIT_TEXT},
    [CHANGE_AT] = {"at_s", NULL, LAB_UNIT_DURATION},
    [CHANGE_AT_TEXT] = {NULL, "At", LAB_UNIT_FIGURE},
    [CHANGE_BEFORE] = {"before_ms", "Before", LAB_UNIT_TIME},
    [CHANGE_AFTER] = {"after_ms", "After", LAB_UNIT_TIME},
    [CHANGE_SHARE] = {"change", "Change", LAB_UNIT_CHANGE},
    [CHANGE_CLOCK_BEFORE] = {"clock_before_mhz", "MHz before", LAB_UNIT_COUNT},
    [CHANGE_CLOCK_AFTER] = {"clock_after_mhz", "after", LAB_UNIT_COUNT},
    [CHANGE_HELD_BEFORE] = {"throttled_before", NULL, LAB_UNIT_SHARE},
    [CHANGE_HELD_AFTER] = {"throttled_after", NULL, LAB_UNIT_SHARE},
    [CHANGE_REASON] = {"reason", "Held back by", LAB_UNIT_TEXT},
};

/* --- tables --- */

static struct lab_doc_table run_table(const struct lab_rate_series *all_rate_series, int count,
                                      struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * RUN_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        const struct lab_rate_series *rate_series = &all_rate_series[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * RUN_COLUMNS;
        row[RUN_NAME] = lab_cell_text(rate_series->name);
        row[RUN_DEVICE] = lab_cell_text(rate_series->device);
        row[RUN_COUNT] = lab_cell_figure((double)rate_series->rank->iteration_count);
        row[RUN_TIME] = lab_cell_figure(rate_series->median_s);
        row[RUN_CLASS] = lab_cell_text(lab_steady_name(rate_series->steady));
        row[RUN_FROM] = lab_cell_figure(rate_series->steady_from_s);
        row[RUN_DRIFT] = (struct lab_doc_cell){.value = rate_series->drift,
                                               .low = rate_series->drift_low,
                                               .high = rate_series->drift_high,
                                               .confidence = 0.95};
        row[RUN_DRIFT_P] = lab_cell_figure(rate_series->drift_p_adjusted);
        row[RUN_MEMORY] = lab_cell_figure(rate_series->memory_s);
        row[RUN_CHANGES] = lab_cell_figure(rate_series->change_count);
        row[RUN_HELD] = lab_cell_figure(rate_series->held_s);
        row[RUN_WHY] = lab_cell_text(rate_series->held_why);
    }
    return (struct lab_doc_table){
        .key = "runs",
        .title = count ? "Runs" : NULL,
        .columns = lab_analysis_shown(run_columns, RUN_COLUMNS, cells, count, arena),
        .column_count = RUN_COLUMNS,
        .cells = cells,
        .row_count = count};
}

static struct lab_doc_table change_table(const struct lab_rate_series *all_rate_series, int count,
                                         struct lab_arena *arena) {
    int rows = 0;
    for (int i = 0; i < count; i++)
        rows += all_rate_series[i].change_count;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)rows * CHANGE_COLUMNS + 1, sizeof *cells);
    struct lab_doc_cell *row = cells;
    for (int i = 0; i < count; i++)
        for (int c = 0; c < all_rate_series[i].change_count; c++, row += CHANGE_COLUMNS) {
            const struct lab_rate_series_change *change = &all_rate_series[i].changes[c];
            row[CHANGE_RUN] = lab_cell_text(all_rate_series[i].name);
            row[CHANGE_AT] = lab_cell_figure(change->at_s);
            row[CHANGE_AT_TEXT] = lab_cell_text(lab_rate_series_moment(change->at_s, arena));
            row[CHANGE_BEFORE] = lab_cell_figure(change->before_s);
            row[CHANGE_AFTER] = lab_cell_figure(change->after_s);
            row[CHANGE_SHARE] = lab_cell_figure(change->after_s / change->before_s - 1);
            row[CHANGE_CLOCK_BEFORE] = lab_cell_figure(change->clock_before);
            row[CHANGE_CLOCK_AFTER] = lab_cell_figure(change->clock_after);
            row[CHANGE_HELD_BEFORE] = lab_cell_figure(change->held_before);
            row[CHANGE_HELD_AFTER] = lab_cell_figure(change->held_after);
            row[CHANGE_REASON] = lab_cell_text(change->reason);
        }
    return (struct lab_doc_table){
        .key = "change_points",
        .title = rows ? "Changes for good" : NULL,
        .columns = lab_analysis_shown(change_columns, CHANGE_COLUMNS, cells, rows, arena),
        .column_count = CHANGE_COLUMNS,
        .cells = cells,
        .row_count = rows};
}

/* --- a study --- */

struct stability {
    const struct lab_study_table *study;
    struct lab_rate_series *all_rate_series;
    int count, known, unsteady, warmups, drifts, changes, with_held, held_runs, blind;
    double held_s, bound; /* no drift is larger than that; NaN = unknown */
    double least;
};

static void count_in(struct stability *made, const struct lab_rate_series *rate_series) {
    made->changes += rate_series->change_count;
    made->drifts += rate_series->drifts;
    made->unsteady += !lab_rate_series_is_steady(rate_series);
    made->warmups += rate_series->steady == LAB_STEADY_WARMUP;
    made->known += rate_series->steady != LAB_STEADY_UNKNOWN;
    made->with_held += !isnan(rate_series->held_s);
    made->held_runs += rate_series->held_s > 0;
    if (!isnan(rate_series->held_s))
        made->held_s += rate_series->held_s;
    made->blind += rate_series->steady != LAB_STEADY_UNKNOWN && rate_series->blind;
    if (!rate_series->blind)
        made->bound =
            fmax(made->bound, fmax(fabs(rate_series->drift_low), fabs(rate_series->drift_high)));
}

static void look_at(struct stability *made, struct lab_arena *arena) {
    int ranks = 0;
    for (int i = 0; i < made->study->run_count; i++)
        ranks += made->study->runs[i].rank_count;
    made->all_rate_series =
        lab_arena_alloc(arena, (size_t)ranks + 1, sizeof *made->all_rate_series);
    made->bound = NAN;
    for (int i = 0; i < made->study->run_count; i++) {
        const struct lab_study_run *run = &made->study->runs[i];
        for (int r = 0; run->used && r < run->rank_count; r++)
            lab_rate_series_make(run, &run->ranks[r], made->least, arena,
                                 &made->all_rate_series[made->count++]);
    }
    lab_rate_series_adjust(made->all_rate_series, made->count, made->least);
    for (int i = 0; i < made->count; i++)
        count_in(made, &made->all_rate_series[i]);
}

static const struct lab_rate_series *worst_rate_series(const struct stability *made) {
    const struct lab_rate_series *worst = NULL;
    double most = -1;
    for (int i = 0; i < made->count; i++) {
        const struct lab_rate_series *rate_series = &made->all_rate_series[i];
        double weight = rate_series->drifts ? fabs(rate_series->drift) : 0;
        for (int c = 0; c < rate_series->change_count; c++)
            weight =
                fmax(weight,
                     fabs(log(rate_series->changes[c].after_s / rate_series->changes[c].before_s)));
        if (lab_rate_series_is_steady(rate_series) || weight <= most)
            continue;
        most = weight;
        worst = rate_series;
    }
    return worst;
}

/* "; clocks were held back in 2 runs, for 12.3 s in all" */
static void add_held(struct lab_str *text, const struct stability *made) {
    if (made->held_runs > 0) {
        lab_str_printf(text, "; clocks were held back in %d of them, for ", made->held_runs);
        lab_str_add_duration(text, made->held_s, LAB_DURATION_PRECISE);
        lab_str_add(text, " in all");
    } else if (made->with_held == made->count) {
        lab_str_add(text, "; clocks were never held back");
    }
}

static const char *make_answer(const struct stability *made, struct lab_arena *arena) {
    if (made->count == 0)
        return "There is no run to look at.";
    if (made->known == 0)
        return "Too few iterations were kept to say how steady the runs are: 21 of each would do.";
    LAB_AUTO(str, text);
    bool told = made->known > made->blind;
    const char *runs = made->count == 1 ? "The run" : "The runs";
    if (told && made->blind > 0)
        runs = lab_arena_printf(arena, "%d of %d runs", made->known - made->blind, made->count);
    const struct lab_rate_series *worst = worst_rate_series(made);
    if (!worst) {
        if (!told)
            lab_str_printf(&text, "%s %s too short to tell a drift from how pace wanders by itself",
                           runs, made->count == 1 ? "is" : "are");
        else if (made->warmups > 0)
            lab_str_printf(&text,
                           "%d of %d runs still warm up while they are measured, then all "
                           "are steady",
                           made->warmups, made->count);
        else
            lab_str_printf(&text, "%s %s steady: no change that is surely %.1f %% or more", runs,
                           made->count == 1 ? "is" : "are", 100 * made->least);
        if (!isnan(made->bound))
            lab_str_printf(&text, ", no drift larger than %.1f %%", ceil(1000 * made->bound) / 10);
    } else if (made->count == 1) {
        lab_str_printf(&text, "The run isn't steady: it %s", lab_rate_series_words(worst, arena));
    } else {
        lab_str_printf(&text, "%d of %d runs %s steady; the worst, %s: %s", made->unsteady,
                       made->count, made->unsteady == 1 ? "isn't" : "aren't", worst->name,
                       lab_rate_series_words(worst, arena));
    }
    if (told && made->blind > 0)
        lab_str_printf(&text, "; %d %s too short to tell drifts", made->blind,
                       made->blind == 1 ? "is" : "are");
    add_held(&text, made);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

static const char *const *part_notes(const struct stability *made, struct lab_arena *arena) {
    const char **notes = lab_arena_alloc(arena, (size_t)made->count + 1, sizeof *notes);
    int count = 0;
    for (int i = 0; i < made->count && made->count > 1; i++)
        if (!lab_rate_series_is_steady(&made->all_rate_series[i]))
            notes[count++] =
                lab_arena_printf(arena, "%s: %s.", made->all_rate_series[i].name,
                                 lab_rate_series_words(&made->all_rate_series[i], arena));
    return notes;
}

static const char *const *whole_notes(const struct stability *made, struct lab_arena *arena) {
    const char **notes = lab_study_notes(made->study, 4, arena);
    int count = 0;
    while (notes[count])
        count++;
    if (made->known > 0 && made->known < made->count)
        notes[count++] = lab_arena_printf(
            arena, "%d of %d runs kept too few iterations to tell how steady they are.",
            made->count - made->known, made->count);
    if (made->blind > 0)
        notes[count++] = lab_arena_printf(
            arena,
            "%d of %d runs are too short for how much their pace wanders by itself, and for how "
            "long: drifts of a tenth stay possible there.",
            made->blind, made->count);
    if (made->count > 0 && made->with_held < made->count)
        notes[count++] = lab_arena_printf(
            arena, "Of %d of %d runs it isn't known whether clocks were held back.",
            made->count - made->with_held, made->count);
    return notes;
}

static struct lab_analysis_part make_part(const struct stability *made, struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    cells[RUNS] = lab_cell_figure(made->count);
    cells[UNSTEADY] = lab_cell_figure(made->unsteady);
    cells[CHANGES] = lab_cell_figure(made->changes);
    cells[CHANGES].text = lab_arena_printf(arena, "of %.1f %% or more", 100 * made->least);
    cells[DRIFTS] = lab_cell_figure(made->drifts);
    cells[DRIFTS].text = cells[CHANGES].text;
    cells[HELD] = lab_cell_figure(made->with_held ? made->held_s : (double)NAN);
    cells[HELD].text = "of all runs, by power, heat or others' clocks";
    tables[0] = run_table(made->all_rate_series, made->count, arena);
    tables[1] = change_table(made->all_rate_series, made->count, arena);
    return (struct lab_analysis_part){.name = made->study->name,
                                      .answer = make_answer(made, arena),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = 2,
                                      .notes = part_notes(made, arena)};
}

static int stability_run(const void *opaque, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    const struct stability_config *config = opaque;
    int count = input->study_count;
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    struct lab_chart *charts = lab_arena_alloc(arena, (size_t)count, sizeof *charts);
    struct lab_analysis_result result = {.part_key = "studies",
                                         .columns = figure_columns,
                                         .column_count = FIGURES,
                                         .parts = parts,
                                         .part_count = count,
                                         .charts = charts};
    for (int i = 0; i < count; i++) {
        struct stability made = {.study = &input->studies[i], .least = config->least};
        look_at(&made, arena);
        parts[i] = make_part(&made, arena);
        result.simulated |= made.study->simulated;
        const char *name = i > 0 ? lab_arena_printf(arena, "stability_%d", i + 1) : "stability";
        result.chart_count +=
            lab_rate_series_chart(made.all_rate_series, made.count, name, made.study->simulated,
                                  arena, &charts[result.chart_count]);
        if (i == 0) {
            result.answer = parts[0].answer;
            result.notes = whole_notes(&made, arena);
        }
    }
    *ret_result = result;
    return 0;
}

static int stability_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study))
        return 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].run->iterations >= LONG_RUN)
            return 30;
    return study->run_count > 0 ? LAB_INTEREST_IF_NAMED : 0;
}

const struct lab_analysis lab_analysis_stability = {
    .name = "stability",
    .summary = "whether runs hold their pace: drift, throttling, change points",
    .description =
        "Of each run: the trend of its iterations' times with its interval, where they change for "
        "good (PELT), the class that follows (flat, warm-up, slow-down, no steady state), and how "
        "long clocks were held back, and by what. Pace wanders by itself: a trend or change "
        "counts if it is sure whatever memory of that wander the run's own times leave plausible.",
    .options = stability_options,
    .config_size = sizeof(struct stability_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES,
    .interest = stability_interest,
    .run = stability_run,
};
