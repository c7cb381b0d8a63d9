/*
 * recommend.c: `gpulab analyze recommend`: where each model runs best, among all places that it was
 * run in; how sure that is, what it gains, and what to run to be surer.
 */
#include "analysis/recommend/recommend.h"
#include "analysis/analysis.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct recommend_config {
    const char *model;
};

static const struct lab_option recommend_options[] = {
    {"model", LAB_OPTION_STRING, offsetof(struct recommend_config, model), .value_name = "NAME",
     .help = "only this one, such as vit32x6x512"},
    {NULL},
};

enum {
    BEST,
    BEST_BRIEF,
    DEVICES,
    DEVICE_NAMES,
    NODES,
    BATCH,
    COMPILED,
    RATE,
    SURE,
    OVER_DEFAULT,
    OVER_WORST,
    ALIKE,
    RUNS,
    FIGURES
};

static const struct lab_doc_column figure_columns[FIGURES] = {
    [BEST] = {"best", NULL, LAB_UNIT_TEXT},
    [BEST_BRIEF] = {NULL, "Fastest device", LAB_UNIT_TEXT, "Fastest device"},
    [DEVICES] = {"gpu_ids", NULL, LAB_UNIT_TEXT},
    [DEVICE_NAMES] = {"devices", NULL, LAB_UNIT_TEXT},
    [NODES] = {"numa_nodes", NULL, LAB_UNIT_TEXT},
    [BATCH] = {"batch_size", NULL, LAB_UNIT_COUNT},
    [COMPILED] = {"compile_model", NULL, LAB_UNIT_TEXT},
    [RATE] = {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, .with_interval = true},
    [SURE] = {"first_share", "Came first", LAB_UNIT_SHARE},
    [OVER_DEFAULT] = {"gain_over_default", "Over the default", LAB_UNIT_CHANGE,
                      .with_interval = true},
    [OVER_WORST] = {"gain_over_worst", "Over the slowest", LAB_UNIT_CHANGE, "Over slowest",
                    .with_interval = true},
    [ALIKE] = {"alike", "As good", LAB_UNIT_COUNT, "As good"},
    [RUNS] = {"runs", NULL, LAB_UNIT_COUNT},
};

enum {
    PLACE,
    PLACE_POINT,
    PLACE_DEVICES,
    PLACE_NODES,
    PLACE_BATCH,
    PLACE_COMPILED,
    PLACE_LOCAL,
    PLACE_RUNS,
    PLACE_RATE,
    PLACE_AGAINST,
    PLACE_VERDICT,
    PLACE_VERDICT_WORDS,
    PLACE_COLUMNS
};
static const struct lab_doc_column place_columns[PLACE_COLUMNS] = {
    [PLACE] = {NULL, "Device", LAB_UNIT_TEXT},
    [PLACE_POINT] = {"point", NULL, LAB_UNIT_TEXT},
    [PLACE_DEVICES] = {"gpu_ids", NULL, LAB_UNIT_TEXT},
    [PLACE_NODES] = {"numa_nodes", NULL, LAB_UNIT_TEXT},
    [PLACE_BATCH] = {"batch_size", NULL, LAB_UNIT_COUNT},
    [PLACE_COMPILED] = {"compile_model", NULL, LAB_UNIT_TEXT},
    [PLACE_LOCAL] = {"local", NULL, LAB_UNIT_TEXT},
    [PLACE_RUNS] = {"runs", "Runs", LAB_UNIT_COUNT},
    [PLACE_RATE] = {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, .with_interval = true},
    [PLACE_AGAINST] = {"against_best", "Against best", LAB_UNIT_CHANGE, .with_interval = true},
    [PLACE_VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
    [PLACE_VERDICT_WORDS] = {NULL, "Verdict", LAB_UNIT_TEXT},
};

enum {
    CHOICE,
    CHOICE_WORDS,
    CHOICE_GAIN,
    CHOICE_WITHIN,
    CHOICE_VERDICT,
    CHOICE_VERDICT_WORDS,
    CHOICE_COLUMNS
};
static const struct lab_doc_column choice_columns[CHOICE_COLUMNS] = {
    [CHOICE] = {"choice", NULL, LAB_UNIT_TEXT},
    [CHOICE_WORDS] = {"words", "Choice", LAB_UNIT_TEXT},
    [CHOICE_GAIN] = {"gain", "Gain", LAB_UNIT_CHANGE, .with_interval = true},
    [CHOICE_WITHIN] = {"within_one_run", NULL, LAB_UNIT_COUNT}, /* 1 where the interval is */
    [CHOICE_VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
    [CHOICE_VERDICT_WORDS] = {NULL, "Verdict", LAB_UNIT_TEXT},
};
static const char *const choice_names[LAB_PLACE_CHOICES] = {"node", "device", "batch", "compile"};

enum {
    FACTOR,
    FACTOR_WORDS,
    FACTOR_PAIRS,
    FACTOR_GAIN,
    FACTOR_VERDICT,
    FACTOR_VERDICT_WORDS,
    FACTOR_COLUMNS
};
static const struct lab_doc_column factor_columns[FACTOR_COLUMNS] = {
    [FACTOR] = {"choice", NULL, LAB_UNIT_TEXT},
    [FACTOR_WORDS] = {"words", "Choice", LAB_UNIT_TEXT},
    [FACTOR_PAIRS] = {"pairs", "Pairs", LAB_UNIT_COUNT},
    [FACTOR_GAIN] = {"gain", "Gain", LAB_UNIT_CHANGE, .with_interval = true},
    [FACTOR_VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
    [FACTOR_VERDICT_WORDS] = {NULL, "Verdict", LAB_UNIT_TEXT},
};
static const char *const factor_names[LAB_PLACE_FACTORS] = {
    [LAB_FACTOR_HOME] = "own_node",   [LAB_FACTOR_NODE] = "node",
    [LAB_FACTOR_DEVICE] = "device",   [LAB_FACTOR_BATCH] = "batch",
    [LAB_FACTOR_COMPILE] = "compile", [LAB_FACTOR_SETTINGS] = "settings",
};

enum { NEXT_COMMAND, NEXT_WHY, NEXT_COLUMNS };
static const struct lab_doc_column next_columns[NEXT_COLUMNS] = {
    [NEXT_COMMAND] = {"command", "Command", LAB_UNIT_TEXT},
    [NEXT_WHY] = {"why", "Why", LAB_UNIT_TEXT},
};

/* --- cells --- */

static struct lab_doc_cell ratio_cell(const struct lab_study_ratio *ratio) {
    return (struct lab_doc_cell){.value = ratio->ratio - 1,
                                 .low = ratio->low - 1,
                                 .high = ratio->high - 1,
                                 .confidence = ratio->confidence};
}

static struct lab_doc_cell rate_cell(const struct lab_place *place) {
    return (struct lab_doc_cell){
        .value = place->rate, .low = place->low, .high = place->high, .confidence = 0.95};
}

static const char *const verdict_names[] = {[LAB_STUDY_UNDECIDED] = "undecided",
                                            [LAB_STUDY_SAME] = "same",
                                            [LAB_STUDY_MORE] = "faster",
                                            [LAB_STUDY_LESS] = "slower"};

static const char *verdict_words(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    switch (ratio->verdict) {
    case LAB_STUDY_MORE:
        return "faster";
    case LAB_STUDY_LESS:
        return "slower";
    case LAB_STUDY_SAME:
        return lab_arena_printf(arena, "no more than %.1f %% apart", 100 * ratio->bound + 0.05);
    case LAB_STUDY_UNDECIDED:
        break;
    }
    return "undecided: one run each";
}

/* --- tables --- */

/* Where all places have as many runs, the heading says so already, and lines of gangs need the
 * room. */
static const struct lab_doc_column *columns_of(const struct lab_place_group *group,
                                               struct lab_arena *arena) {
    struct lab_doc_column *columns = lab_arena_alloc(arena, PLACE_COLUMNS, sizeof *columns);
    bool alike = true;
    memcpy(columns, place_columns, sizeof place_columns);
    for (int i = 1; i < group->count; i++)
        alike &= group->places[i].point->count == group->places[0].point->count;
    if (alike)
        columns[PLACE_RUNS].title = NULL;
    return columns;
}

static struct lab_doc_table place_table(const struct lab_place_group *group,
                                        struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)group->count * PLACE_COLUMNS, sizeof *cells);
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * PLACE_COLUMNS;
        row[PLACE] = lab_cell_text(place->brief);
        row[PLACE_POINT] = lab_cell_text(place->point->name);
        row[PLACE_DEVICES] = lab_cell_text(place->devices);
        row[PLACE_NODES] = lab_cell_text(place->nodes);
        row[PLACE_BATCH] = lab_cell_figure(place->batch);
        row[PLACE_COMPILED] = lab_cell_text(place->compiled ? "true" : "false");
        row[PLACE_LOCAL] = lab_cell_text(!place->knows_home ? NULL
                                         : place->local     ? "true"
                                                            : "false");
        row[PLACE_RUNS] = lab_cell_figure(place->point->count);
        row[PLACE_RATE] = rate_cell(place);
        row[PLACE_RATE].unit = "/s"; /* of what stands above the table, where there is room */
        row[PLACE_AGAINST] = i ? ratio_cell(&place->against_best) : lab_cell_figure(NAN);
        row[PLACE_VERDICT] = lab_cell_text(i ? verdict_names[place->against_best.verdict] : "best");
        row[PLACE_VERDICT_WORDS] = lab_cell_text(i ? verdict_words(&place->against_best, arena)
                                                 : group->alike > 1 ? "fastest"
                                                                    : "best");
    }
    return (struct lab_doc_table){.key = "places",
                                  .title = "Places, fastest first",
                                  .columns = columns_of(group, arena),
                                  .column_count = PLACE_COLUMNS,
                                  .cells = cells,
                                  .row_count = group->count};
}

static struct lab_doc_table choice_table(const struct lab_place_group *group,
                                         struct lab_arena *arena) {
    struct lab_place_alternative *list;
    int count = lab_place_alternatives(group, arena, &list);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * CHOICE_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * CHOICE_COLUMNS;
        row[CHOICE] = lab_cell_text(choice_names[list[i].choice]);
        row[CHOICE_WORDS] = lab_cell_text(list[i].words);
        row[CHOICE_GAIN] = ratio_cell(&list[i].gain);
        row[CHOICE_WITHIN] = lab_cell_figure(list[i].gain.within);
        row[CHOICE_VERDICT] = lab_cell_text(verdict_names[list[i].gain.verdict]);
        row[CHOICE_VERDICT_WORDS] = lab_cell_text(verdict_words(&list[i].gain, arena));
    }
    return (struct lab_doc_table){.key = "choices",
                                  .title = NULL,
                                  .columns = choice_columns,
                                  .column_count = CHOICE_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

/* The same over all places, which is what people are shown: one pair of places says little. */
static struct lab_doc_table factor_table(const struct lab_place_group *group,
                                         struct lab_arena *arena) {
    struct lab_place_factor factors[LAB_PLACE_FACTORS];
    int count = lab_place_factors(group, arena, factors), total = 0, next = 0;
    for (int f = 0; f < count; f++)
        total += factors[f].count - 1;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)total * FACTOR_COLUMNS + 1, sizeof *cells);
    for (int f = 0; f < count; f++)
        for (int i = 1; i < factors[f].count; i++) {
            const struct lab_place_factor *factor = &factors[f];
            struct lab_doc_cell *row = cells + (ptrdiff_t)next++ * FACTOR_COLUMNS;
            row[FACTOR] = lab_cell_text(factor_names[factor->kind]);
            row[FACTOR_WORDS] = lab_cell_text(lab_arena_printf(
                arena, "%s rather than %s",
                lab_place_level(&group->places[factor->levels[0]], factor->kind, arena),
                lab_place_level(&group->places[factor->levels[i]], factor->kind, arena)));
            row[FACTOR_PAIRS] = lab_cell_figure(factor->blocks[i]);
            row[FACTOR_GAIN] = ratio_cell(&factor->gains[i]);
            row[FACTOR_VERDICT] = lab_cell_text(verdict_names[factor->gains[i].verdict]);
            row[FACTOR_VERDICT_WORDS] = lab_cell_text(verdict_words(&factor->gains[i], arena));
        }
    return (struct lab_doc_table){.key = "factors",
                                  .title = total ? "What each choice gains, over all places "
                                                   "alike in the others"
                                                 : NULL,
                                  .columns = factor_columns,
                                  .column_count = FACTOR_COLUMNS,
                                  .cells = cells,
                                  .row_count = total};
}

/* Commands are for pasting: they stand on lines of their own, never broken. */
static struct lab_doc_table next_table(const struct lab_place_group *group,
                                       struct lab_arena *arena) {
    struct lab_place_next next[LAB_PLACE_NEXT_MAX];
    int count = lab_place_next(group, arena, next), line = 0;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)LAB_PLACE_NEXT_MAX * NEXT_COLUMNS, sizeof *cells);
    const char **lines = lab_arena_alloc(arena, 2 * LAB_PLACE_NEXT_MAX + 1, sizeof *lines);
    for (int i = 0; i < count; i++) {
        cells[i * NEXT_COLUMNS + NEXT_COMMAND] = lab_cell_text(next[i].command);
        cells[i * NEXT_COLUMNS + NEXT_WHY] = lab_cell_text(next[i].why);
        lines[line++] = lab_arena_printf(arena, "# %s", next[i].why);
        lines[line++] = next[i].command;
    }
    return (struct lab_doc_table){.key = "next",
                                  .title = count ? "To be surer, run" : NULL,
                                  .columns = next_columns,
                                  .column_count = NEXT_COLUMNS,
                                  .cells = cells,
                                  .row_count = count,
                                  .lines = lines};
}

/* --- parts --- */

static void set_sureness(const struct lab_place_group *group, struct lab_doc_cell *cells,
                         struct lab_arena *arena) {
    cells[SURE] = lab_cell_figure(NAN);
    cells[ALIKE] = lab_cell_figure(group->count > 1 ? group->alike - 1 : NAN);
    if (group->count > 1)
        cells[ALIKE].text =
            lab_arena_printf(arena, "of %d other places can't be told from it", group->count - 1);
    if (group->resamples == 0)
        return;
    cells[SURE].value = (double)group->wins / group->resamples;
    cells[SURE].text = lab_arena_printf(arena, "of %d resamples of the runs", group->resamples);
}

static void set_gains(const struct lab_place_group *group, struct lab_doc_cell *cells) {
    cells[OVER_DEFAULT] = cells[OVER_WORST] = lab_cell_figure(NAN);
    if (group->standard > 0) {
        struct lab_study_ratio gain = lab_place_gain(group, group->standard);
        cells[OVER_DEFAULT] = ratio_cell(&gain);
        cells[OVER_DEFAULT].text = group->places[group->standard].words;
    }
    if (group->count > 1) {
        struct lab_study_ratio gain = lab_place_gain(group, group->count - 1);
        cells[OVER_WORST] = ratio_cell(&gain);
        cells[OVER_WORST].text = group->places[group->count - 1].words;
    }
}

/* "cuda:3", "cuda:0,cuda:1" */
static const char *device_names(const struct lab_place *place, struct lab_arena *arena) {
    const struct lab_study_run *run = place->point->runs[0];
    const char *names = "";
    for (int i = 0; i < run->rank_count; i++)
        names = lab_arena_printf(arena, "%s%s%s", names, i ? "," : "", run->ranks[i].device);
    return names;
}

static struct lab_analysis_part make_part(const struct lab_place_group *group, bool several,
                                          struct lab_arena *arena) {
    const struct lab_place *best = &group->places[0];
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 4, sizeof *tables);
    int runs = 0;
    for (int i = 0; i < group->count; i++)
        runs += group->places[i].point->count;
    cells[BEST] = lab_cell_text(best->words);
    cells[BEST_BRIEF] = lab_cell_text(best->brief);
    cells[DEVICES] = lab_cell_text(best->devices);
    cells[DEVICE_NAMES] = lab_cell_text(device_names(best, arena));
    cells[NODES] = lab_cell_text(best->nodes);
    cells[BATCH] = lab_cell_figure(best->batch);
    cells[COMPILED] = lab_cell_text(best->compiled ? "true" : "false");
    cells[RATE] = rate_cell(best);
    cells[RUNS] = lab_cell_figure(runs);
    set_sureness(group, cells, arena);
    set_gains(group, cells);
    tables[0] = place_table(group, arena);
    tables[1] = choice_table(group, arena);
    tables[2] = factor_table(group, arena);
    tables[3] = next_table(group, arena);
    const char *name =
        several ? lab_arena_printf(arena, "%s: %s", group->study->name, group->name) : group->name;
    return (struct lab_analysis_part){
        .name = name,
        .about = lab_arena_printf(arena, "%d place%s, %d run%s", group->count,
                                  group->count == 1 ? "" : "s", runs, runs == 1 ? "" : "s"),
        .answer = lab_place_answer(group, arena),
        .cells = cells,
        .tables = tables,
        .table_count = 4,
    };
}

/* --- the whole --- */

/* By model, those of one model by what else differs, numbers by their value. */
static int by_name(const void *a, const void *b) {
    const struct lab_place_group *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static int gather(const struct lab_analysis_input *input, const char *model,
                  struct lab_arena *arena, struct lab_place_group **ret_groups) {
    int count = 0, room = 1;
    for (int i = 0; i < input->study_count; i++)
        room += input->studies[i].run_count;
    struct lab_place_group *all = lab_arena_alloc(arena, (size_t)room, sizeof *all), *groups;
    for (int i = 0; i < input->study_count; i++) {
        int own = lab_place_groups(&input->studies[i], arena, &groups);
        if (own > 1)
            qsort(groups, (size_t)own, sizeof *groups, by_name);
        for (int k = 0; k < own; k++)
            if (!model || !*model || lab_str_equal(groups[k].model, model))
                all[count++] = groups[k];
    }
    *ret_groups = all;
    return count;
}

static const char *lacking(const struct lab_analysis_input *input, const char *model,
                           struct lab_arena *arena) {
    if (model && *model)
        return lab_arena_printf(arena, "No run of %s that could be used is done.", model);
    return input->study_count == 1
               ? lab_arena_printf(arena,
                                  "No run of %s that could be used is done: there is nothing "
                                  "to recommend yet.",
                                  input->studies[0].name)
               : "No run that could be used is done: there is nothing to recommend yet.";
}

static int recommend_run(const void *opaque, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    const struct recommend_config *config = opaque;
    struct lab_place_group *groups;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to recommend from: no study was given");
    int count = gather(input, config->model, arena, &groups);
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count + 1, sizeof *parts);
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    bool simulated = false;
    for (int i = 0; i < count; i++)
        parts[i] = make_part(&groups[i], input->study_count > 1, arena);
    for (int i = 0; i < input->study_count; i++)
        simulated = simulated || input->studies[i].simulated;
    *ret_result = (struct lab_analysis_result){
        .answer = count == 0   ? lacking(input, config->model, arena)
                  : count == 1 ? parts->answer
                               : lab_place_answer_for_all(groups, count, arena),
        .part_key = "models",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts,
        .part_count = count,
        .simulated = simulated,
        .notes = input->study_count == 1 ? lab_study_notes(input->studies, 0, arena) : NULL,
        .charts = chart,
        .chart_count = lab_place_chart(groups, count, arena, chart) ? 1 : 0};
    return 0;
}

#define INTEREST 40 /* others answer a study's own question; this one what to do about it */

static int recommend_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study))
        return 0;
    for (int i = 0; i < study->run_count; i++)
        for (int k = 0; k < i; k++)
            if (study->runs[i].rank_count == study->runs[k].rank_count &&
                lab_str_equal(study->runs[i].model, study->runs[k].model) &&
                !lab_str_equal(study->runs[i].point, study->runs[k].point))
                return INTEREST;
    return 0;
}

const struct lab_analysis lab_analysis_recommend = {
    .name = "recommend",
    .summary = "where each model runs best, how sure that is, and what to run to be surer",
    .description =
        "Points of a study that did the same work on different devices, from different nodes, in "
        "different batches, compiled or not, are places to choose from. Each place is held against "
        "the fastest, over runs, and Benjamini and Hochberg's correction makes the verdicts hold "
        "for all of them together. Each choice by itself is measured over all pairs of places that "
        "agree in the others. 'Came first' says in how many resamples of the runs the fastest "
        "was the fastest again; the spread between runs of all places is pooled for it. The "
        "default "
        "is the same device and batch, fed from its own node, not compiled, settings left "
        "alone.\n\n"
        "Since the fastest was chosen by the figures that its gain is read from, gains of places "
        "that can hardly be told apart are a little too large.",
    .options = recommend_options,
    .config_size = sizeof(struct recommend_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS, /* or one run's interval would be another one in a report */
    .interest = recommend_interest,
    .run = recommend_run,
};
