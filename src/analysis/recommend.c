/*
 * recommend.c: `gpulab analyze recommend`: where each model runs best, among all places that it was
 * run in; how sure that is, what it gains, and what to run to be surer.
 */
#include "analysis/recommend/recommend.h"
#include "analysis/analysis_words.h"

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

enum { PLACE_RUNS = 7 };
static const struct lab_doc_column place_columns[] = {
    {NULL, "Device", LAB_UNIT_TEXT},
    {"point", NULL, LAB_UNIT_TEXT},
    {"gpu_ids", NULL, LAB_UNIT_TEXT},
    {"numa_nodes", NULL, LAB_UNIT_TEXT},
    {"batch_size", NULL, LAB_UNIT_COUNT},
    {"compile_model", NULL, LAB_UNIT_TEXT},
    {"local", NULL, LAB_UNIT_TEXT},
    {"runs", "Runs", LAB_UNIT_COUNT},
    {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, .with_interval = true},
    {"against_best", "Against best", LAB_UNIT_CHANGE, .with_interval = true},
    {"verdict", NULL, LAB_UNIT_TEXT},
    {NULL, "Verdict", LAB_UNIT_TEXT},
};

static const struct lab_doc_column choice_columns[] = {
    {"choice", NULL, LAB_UNIT_TEXT},
    {"words", "Choice", LAB_UNIT_TEXT},
    {"gain", "Gain", LAB_UNIT_CHANGE, .with_interval = true},
    {"within_one_run", NULL, LAB_UNIT_COUNT}, /* 1 where the interval is */
    {"verdict", NULL, LAB_UNIT_TEXT},
    {NULL, "Verdict", LAB_UNIT_TEXT},
};
static const char *const choice_names[LAB_PLACE_CHOICES] = {"node", "device", "batch", "compile"};

static const struct lab_doc_column factor_columns[] = {
    {"choice", NULL, LAB_UNIT_TEXT},    {"words", "Choice", LAB_UNIT_TEXT},
    {"pairs", "Pairs", LAB_UNIT_COUNT}, {"gain", "Gain", LAB_UNIT_CHANGE, .with_interval = true},
    {"verdict", NULL, LAB_UNIT_TEXT},   {NULL, "Verdict", LAB_UNIT_TEXT},
};
static const char *const factor_names[LAB_PLACE_FACTORS] = {
    [LAB_FACTOR_HOME] = "own_node",   [LAB_FACTOR_NODE] = "node",
    [LAB_FACTOR_DEVICE] = "device",   [LAB_FACTOR_BATCH] = "batch",
    [LAB_FACTOR_COMPILE] = "compile", [LAB_FACTOR_SETTINGS] = "settings",
};

static const struct lab_doc_column next_columns[] = {
    {"command", "Command", LAB_UNIT_TEXT},
    {"why", "Why", LAB_UNIT_TEXT},
};

static struct lab_doc_cell rate_cell(const struct lab_place *place) {
    return lab_cell_interval(place->rate, place->low, place->high, 0.95);
}

static const char *verdict_name(const struct lab_study_ratio *ratio) {
    return lab_words_verdict(ratio->verdict, "faster", "slower");
}

static const char *verdict_words(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    if (ratio->verdict == LAB_STUDY_SAME)
        return lab_arena_printf(arena, "no more than %.1f %% apart", 100 * ratio->bound + 0.05);
    return ratio->verdict == LAB_STUDY_UNDECIDED ? "undecided: one run each" : verdict_name(ratio);
}

/* --- tables --- */

static void add_place_table(struct lab_analysis_part *part, const struct lab_place_group *group,
                            struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "places", "Places, fastest first", place_columns, arena);
    bool alike = true;
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        struct lab_doc_cell rate = rate_cell(place);
        rate.unit = "/s"; /* of what stands above the table, where there is room */
        alike &= place->point->count == group->places[0].point->count;
        LAB_ROW(table, arena, lab_cell_text(place->brief), lab_cell_text(place->point->name),
                lab_cell_text(place->devices), lab_cell_text(place->nodes),
                lab_cell_figure(place->batch), lab_cell_text(place->compiled ? "true" : "false"),
                lab_cell_text(!place->knows_home ? NULL
                              : place->local     ? "true"
                                                 : "false"),
                lab_cell_figure(place->point->count), rate,
                i ? lab_analysis_ratio(&place->against_best) : lab_cell_figure(NAN),
                lab_cell_text(i ? verdict_name(&place->against_best) : "best"),
                lab_cell_text(i                  ? verdict_words(&place->against_best, arena)
                              : group->alike > 1 ? "fastest"
                                                 : "best"));
    }
    /* the heading says so already, and lines of gangs need the room */
    if (alike)
        lab_analysis_own_columns(table, arena)[PLACE_RUNS].title = NULL;
}

static void add_choice_table(struct lab_analysis_part *part, const struct lab_place_group *group,
                             struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "choices", NULL, choice_columns, arena);
    struct lab_place_alternative *list;
    int count = lab_place_alternatives(group, arena, &list);
    for (int i = 0; i < count; i++) {
        LAB_ROW(table, arena, lab_cell_text(choice_names[list[i].choice]),
                lab_cell_text(list[i].words), lab_analysis_ratio(&list[i].gain),
                lab_cell_figure(list[i].gain.within), lab_cell_text(verdict_name(&list[i].gain)),
                lab_cell_text(verdict_words(&list[i].gain, arena)));
    }
}

/* The same over all places, which is what people are shown: one pair of places says little. */
static void add_factor_table(struct lab_analysis_part *part, const struct lab_place_group *group,
                             struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "factors",
                                            "What each choice gains, over all places "
                                            "alike in the others",
                                            factor_columns, arena);
    struct lab_place_factor factors[LAB_PLACE_FACTORS];
    int count = lab_place_factors(group, arena, factors);
    for (int f = 0; f < count; f++)
        for (int i = 1; i < factors[f].count; i++) {
            const struct lab_place_factor *factor = &factors[f];
            LAB_ROW(table, arena, lab_cell_text(factor_names[factor->kind]),
                    lab_cell_text(lab_arena_printf(
                        arena, "%s rather than %s",
                        lab_place_level(&group->places[factor->levels[0]], factor->kind, arena),
                        lab_place_level(&group->places[factor->levels[i]], factor->kind, arena))),
                    lab_cell_figure(factor->blocks[i]), lab_analysis_ratio(&factor->gains[i]),
                    lab_cell_text(verdict_name(&factor->gains[i])),
                    lab_cell_text(verdict_words(&factor->gains[i], arena)));
        }
    lab_analysis_hide_empty(table);
}

/* Commands are for pasting: they stand on lines of their own, never broken. */
static void add_next_table(struct lab_analysis_part *part, const struct lab_place_group *group,
                           struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "next", "To be surer, run", next_columns, arena);
    struct lab_place_next next[LAB_PLACE_NEXT_MAX];
    int count = lab_place_next(group, arena, next), line = 0;
    const char **lines = lab_arena_alloc(arena, 2 * LAB_PLACE_NEXT_MAX + 1, sizeof *lines);
    for (int i = 0; i < count; i++) {
        LAB_ROW(table, arena, lab_cell_text(next[i].command), lab_cell_text(next[i].why));
        lines[line++] = lab_arena_printf(arena, "# %s", next[i].why);
        lines[line++] = next[i].command;
    }
    lab_analysis_hide_empty(table);
    table->lines = lines;
}

/* --- parts --- */

static void set_sureness(const struct lab_place_group *group, struct lab_doc_cell *cells,
                         struct lab_arena *arena) {
    if (group->count > 1)
        cells[ALIKE] = lab_cell_remark(
            group->alike - 1,
            lab_arena_printf(arena, "of %d other places can't be told from it", group->count - 1));
    if (group->resamples > 0)
        cells[SURE] = lab_cell_remark(
            (double)group->wins / group->resamples,
            lab_arena_printf(arena, "of %d resamples of the runs", group->resamples));
}

static void set_gains(const struct lab_place_group *group, struct lab_doc_cell *cells) {
    if (group->standard > 0) {
        struct lab_study_ratio gain = lab_place_gain(group, group->standard);
        cells[OVER_DEFAULT] = lab_analysis_ratio(&gain);
        cells[OVER_DEFAULT].text = group->places[group->standard].words;
    }
    if (group->count > 1) {
        struct lab_study_ratio gain = lab_place_gain(group, group->count - 1);
        cells[OVER_WORST] = lab_analysis_ratio(&gain);
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

static void add_part(struct lab_analysis_result *result, const struct lab_place_group *group,
                     const char *prefix, struct lab_arena *arena) {
    const struct lab_place *best = &group->places[0];
    struct lab_analysis_part *part =
        lab_analysis_add_part(result, lab_arena_printf(arena, "%s%s", prefix, group->name), arena);
    struct lab_doc_cell *cells = part->cells;
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
    add_place_table(part, group, arena);
    add_choice_table(part, group, arena);
    add_factor_table(part, group, arena);
    add_next_table(part, group, arena);
    part->about = lab_arena_printf(arena, "%d place%s, %d run%s", group->count,
                                   group->count == 1 ? "" : "s", runs, runs == 1 ? "" : "s");
    part->answer = lab_place_answer(group, arena);
}

/* --- the whole --- */

/* By model, those of one model by what else differs, numbers by their value. */
static int by_name(const void *a, const void *b) {
    const struct lab_place_group *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static int gather(const struct lab_analysis_input *input, const char *model,
                  struct lab_arena *arena, struct lab_place_group **ret_groups) {
    struct lab_place_group *all = NULL, *groups;
    int count = 0;
    for (int i = 0; i < input->study_count; i++) {
        int own = lab_place_groups(&input->studies[i], arena, &groups);
        if (own > 1)
            qsort(groups, (size_t)own, sizeof *groups, by_name);
        for (int k = 0; k < own; k++)
            if (!model || !*model || lab_str_equal(groups[k].model, model))
                LAB_ADD(all, count, arena) = groups[k];
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
    if (lab_analysis_open(input, LAB_RESULT("models", figure_columns), ret_result, err) < 0)
        return -1;
    int count = gather(input, config->model, arena, &groups);
    for (int i = 0; i < count; i++)
        add_part(ret_result, &groups[i], lab_analysis_prefix(input, groups[i].study, arena), arena);
    ret_result->answer = count == 0   ? lacking(input, config->model, arena)
                         : count == 1 ? ret_result->parts[0].answer
                                      : lab_place_answer_for_all(groups, count, arena);
    if (input->study_count == 1)
        lab_study_add_notes(input->studies, "", &ret_result->notes, arena);
    lab_place_add_chart(ret_result, groups, count, arena);
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
