/*
 * stability.c: `gpulab analyze stability`: whether runs hold their pace: drift, changes for good,
 * and clocks that were held back. A figure of a run that doesn't is a mean over different states.
 */
#include "analysis/analysis_build.h"
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

static const struct lab_doc_column figure_columns[] = {
    {"runs", "Runs", LAB_UNIT_COUNT, "Runs"},
    {"unsteady", "Not steady", LAB_UNIT_COUNT, "Not steady"},
    {"changes", "Changes", LAB_UNIT_COUNT},
    {"drifts", "Drifts", LAB_UNIT_COUNT},
    {"throttled_s", "Held back", LAB_UNIT_DURATION},
};

static const struct lab_doc_column run_columns[] = {
    {"run", "Run", LAB_UNIT_TEXT},
    {"device", NULL, LAB_UNIT_TEXT},
    {"iterations", NULL, LAB_UNIT_COUNT},
    {"iteration_ms", "Time", LAB_UNIT_TIME},
    {"class", "Class", LAB_UNIT_TEXT},
    {"steady_from_s", NULL, LAB_UNIT_DURATION},
    {"drift", "Drift", LAB_UNIT_CHANGE, .with_interval = true},
    {"drift_p_adjusted", NULL, LAB_UNIT_NUMBER},
    {"memory_ms", NULL, LAB_UNIT_TIME},
    {"changes", NULL, LAB_UNIT_COUNT},
    {"throttled_s", "Held back", LAB_UNIT_DURATION},
    {"throttled_by", NULL, LAB_UNIT_TEXT},
};

static const struct lab_doc_column change_columns[] = {
    {"run", "Run", LAB_UNIT_TEXT},
    {"at_s", NULL, LAB_UNIT_DURATION},
    {NULL, "At", LAB_UNIT_FIGURE},
    {"before_ms", "Before", LAB_UNIT_TIME},
    {"after_ms", "After", LAB_UNIT_TIME},
    {"change", "Change", LAB_UNIT_CHANGE},
    {"clock_before_mhz", "MHz before", LAB_UNIT_COUNT},
    {"clock_after_mhz", "after", LAB_UNIT_COUNT},
    {"throttled_before", NULL, LAB_UNIT_SHARE},
    {"throttled_after", NULL, LAB_UNIT_SHARE},
    {"reason", "Held back by", LAB_UNIT_TEXT},
};

/* --- tables --- */

static void add_run_table(struct lab_analysis_part *part,
                          const struct lab_rate_series *all_rate_series, int count,
                          struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "runs", "Runs", run_columns, arena);
    for (int i = 0; i < count; i++) {
        const struct lab_rate_series *rate_series = &all_rate_series[i];
        LAB_ROW(table, arena, lab_cell_text(rate_series->name), lab_cell_text(rate_series->device),
                lab_cell_figure((double)rate_series->rank->iteration_count),
                lab_cell_figure(rate_series->median_s),
                lab_cell_text(lab_steady_name(rate_series->steady)),
                lab_cell_figure(rate_series->steady_from_s),
                lab_cell_interval(rate_series->drift, rate_series->drift_low,
                                  rate_series->drift_high, 0.95),
                lab_cell_figure(rate_series->drift_p_adjusted),
                lab_cell_figure(rate_series->memory_s), lab_cell_figure(rate_series->change_count),
                lab_cell_figure(rate_series->held_s), lab_cell_text(rate_series->held_why));
    }
    lab_analysis_hide_empty(table);
    lab_analysis_hide_columns(table, arena);
}

static void add_change_table(struct lab_analysis_part *part,
                             const struct lab_rate_series *all_rate_series, int count,
                             struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "change_points", "Changes for good", change_columns, arena);
    for (int i = 0; i < count; i++)
        for (int c = 0; c < all_rate_series[i].change_count; c++) {
            const struct lab_rate_series_change *change = &all_rate_series[i].changes[c];
            LAB_ROW(table, arena, lab_cell_text(all_rate_series[i].name),
                    lab_cell_figure(change->at_s),
                    lab_cell_text(lab_rate_series_moment(change->at_s, arena)),
                    lab_cell_figure(change->before_s), lab_cell_figure(change->after_s),
                    lab_cell_figure(change->after_s / change->before_s - 1),
                    lab_cell_figure(change->clock_before), lab_cell_figure(change->clock_after),
                    lab_cell_figure(change->held_before), lab_cell_figure(change->held_after),
                    lab_cell_text(change->reason));
        }
    lab_analysis_hide_empty(table);
    lab_analysis_hide_columns(table, arena);
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

static void add_notes(struct lab_analysis_result *result, const struct stability *made,
                      struct lab_arena *arena) {
    lab_study_add_notes(made->study, "", &result->notes, arena);
    if (made->known > 0 && made->known < made->count)
        lab_analysis_note(&result->notes, arena,
                          "%d of %d runs kept too few iterations to tell how steady they are.",
                          made->count - made->known, made->count);
    if (made->blind > 0)
        lab_analysis_note(
            &result->notes, arena,
            "%d of %d runs are too short for how much their pace wanders by itself, and for how "
            "long: drifts of a tenth stay possible there.",
            made->blind, made->count);
    if (made->count > 0 && made->with_held < made->count)
        lab_analysis_note(&result->notes, arena,
                          "Of %d of %d runs it isn't known whether clocks were held back.",
                          made->count - made->with_held, made->count);
}

static void add_part(struct lab_analysis_result *result, const struct stability *made,
                     struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, made->study->name, arena);
    const char *least = lab_arena_printf(arena, "of %.1f %% or more", 100 * made->least);
    part->answer = make_answer(made, arena);
    LAB_FIGURES(part, lab_cell_figure(made->count), lab_cell_figure(made->unsteady),
                lab_cell_remark(made->changes, least), lab_cell_remark(made->drifts, least),
                lab_cell_remark(made->with_held ? made->held_s : (double)NAN,
                                "of all runs, by power, heat or others' clocks"));
    add_run_table(part, made->all_rate_series, made->count, arena);
    add_change_table(part, made->all_rate_series, made->count, arena);
    for (int i = 0; i < made->count && made->count > 1; i++)
        if (!lab_rate_series_is_steady(&made->all_rate_series[i]))
            lab_analysis_note(&part->notes, arena, "%s: %s.", made->all_rate_series[i].name,
                              lab_rate_series_words(&made->all_rate_series[i], arena));
}

static int stability_run(const void *opaque, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    const struct stability_config *config = opaque;
    if (lab_analysis_open(input, LAB_RESULT("studies", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++) {
        struct stability made = {.study = &input->studies[i], .least = config->least};
        look_at(&made, arena);
        add_part(ret_result, &made, arena);
        lab_rate_series_add_chart(
            ret_result, made.all_rate_series, made.count,
            lab_arena_printf(arena, "stability%s", lab_analysis_suffix(i, arena)),
            made.study->simulated, arena);
        if (i == 0)
            add_notes(ret_result, &made, arena);
    }
    ret_result->answer = ret_result->parts[0].answer;
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
