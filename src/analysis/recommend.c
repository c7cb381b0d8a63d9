/*
 * recommend.c: `gpulab analyze recommend`: what to choose for a workload: NUMA node, device, batch,
 * compilation. The claims are made in recommend/; here they become tables and a headline.
 */
#include "analysis/recommend/recommend.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

struct recommend_config {
    const char *model;
};

static const struct lab_option recommend_options[] = {
    {"model", LAB_OPTION_STRING, offsetof(struct recommend_config, model), .value_name = "NAME",
     .help = "only this one, such as vit32x6x512"},
    {NULL},
};

/* --- tables --- */

struct figures { /* of a model */
    const char *best, *gpu_ids, *devices, *nodes;
    double batch;
    bool compiled;
    struct lab_doc_cell rate;
    struct lab_claim change;
    int placements, runs;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, best, "best", "Use", LAB_UNIT_TEXT, "Use"),
    LAB_FIELD(struct figures, gpu_ids, "gpu_ids", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, devices, "devices", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, nodes, "numa_nodes", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, batch, "batch_size", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, compiled, "compile_model", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, "Throughput",
              .with_interval = true),
    LAB_FIELD(struct figures, change, "change", "Change", LAB_UNIT_CHANGE, "Compared with default"),
    LAB_FIELD(struct figures, placements, "placements", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, runs, "runs", NULL, LAB_UNIT_COUNT),
};

static const struct lab_field factor_fields[] = {
    LAB_FIELD(struct lab_factor_row, choice, "choice", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_factor_row, level, "level", "Choice", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_factor_row, reference, "reference", "Compared with", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_factor_row, pairs, "pairs", "Pairs", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_factor_row, claim, "change", "Throughput", LAB_UNIT_CHANGE),
};

struct row { /* a placement */
    const char *words, *label, *point, *gpu_ids, *nodes, *series;
    double batch;
    bool compiled, local;
    int runs;
    struct lab_doc_cell rate;
    struct lab_claim change;
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, words, "placement", "Placement", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, point, "point", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, gpu_ids, "gpu_ids", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, nodes, "numa_nodes", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, series, "use", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, batch, "batch_size", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, compiled, "compile_model", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, local, "local", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, runs, "runs", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND,
              .with_interval = true),
    LAB_FIELD(struct row, change, "change", "Compared with the default", LAB_UNIT_CHANGE),
};

static const struct lab_field mark_fields[] = {
    LAB_FIELD(struct row, label, "label", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, series, "use", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct row, rate, "rate_per_s", NULL, LAB_UNIT_PER_SECOND, .with_interval = true),
};

static struct lab_doc_cell rate_of(const struct lab_choice *placement) {
    struct lab_interval interval = {NAN, NAN, NAN};
    const struct lab_study_point *point = placement->point;
    if (point->count > 1)
        interval = lab_stats_log_mean_interval(point->rates, (size_t)point->count, 0.95);
    struct lab_doc_cell cell =
        lab_cell_interval(placement->rate, interval.low, interval.high, interval.confidence);
    const char *unit = point->runs[0]->run->rate_unit;
    cell.unit = unit && *unit ? unit : NULL;
    return cell;
}

/* In the order of the study, which says more than the order of chance does. Where some choice
 * matters for the model, the best placement is marked, else the default; and those as good, unless
 * their devices are avoided. */
static int list_rows(const struct lab_choices *placements, int model, struct lab_arena *arena,
                     struct row **ret_rows) {
    struct row *rows = NULL;
    int count = 0;
    bool decided = lab_choices_decided(placements, model);
    int best =
        decided ? lab_choices_best(placements, model) : lab_choices_default(placements, model);
    for (int i = 0; i < placements->count; i++) {
        const struct lab_choice *item = &placements->items[i];
        if (item->model != model)
            continue;
        bool use = lab_choices_alike(placements, best, i) &&
                   (i == best || !item->avoided || !decided),
             open = lab_choices_open(placements, best, i);
        LAB_ADD(rows, count, arena) = (struct row){.words = item->words,
                                                   .point = item->point->name,
                                                   .gpu_ids = item->devices,
                                                   .nodes = item->nodes,
                                                   .series = open      ? "inconclusive"
                                                             : !use    ? "others"
                                                             : decided ? "recommended"
                                                                       : "default",
                                                   .batch = item->batch,
                                                   .compiled = item->compiled,
                                                   .local = item->local,
                                                   .runs = item->point->count,
                                                   .rate = rate_of(item),
                                                   .change = item->claim};
    }
    *ret_rows = rows;
    return count;
}

/* --- words --- */

/* How far a factor's levels reach with single models: their own rows, and of devices that were
 * compared with their peers what `gpulab analyze peers` has of them, else their placements. */
static struct lab_words_singles singles_of(const struct lab_choices *placements,
                                           enum lab_factor factor) {
    struct lab_words_singles singles = {0};
    bool of_peers = false;
    for (int i = 0; i < placements->row_count; i++)
        of_peers |= placements->rows[i].factor == factor && placements->rows[i].of_peers;
    for (int d = 0; d < placements->peers.device_count && of_peers; d++)
        for (int i = 0; i < placements->peers.devices[d].row_count; i++)
            lab_words_add_single(&singles, &placements->peers.devices[d].rows[i].claim);
    if (of_peers)
        return singles;
    for (int i = 0; i < placements->row_count; i++)
        if (placements->rows[i].factor == factor && placements->rows[i].model >= 0)
            lab_words_add_single(&singles, &placements->rows[i].claim);
    for (int i = 0; i < placements->count && factor == LAB_FACTOR_DEVICE; i++) {
        const struct lab_choice *item = &placements->items[i];
        bool alone = true;
        for (int f = 0; f < LAB_FACTORS; f++)
            alone &= f == LAB_FACTOR_DEVICE || !*item->levels[f];
        if (alone)
            lab_words_add_single(&singles, &item->claim);
    }
    return singles;
}

/* Of a device over all models what `gpulab analyze peers` says of it; of a batch what it gains
 * where programs are advised to run. */
static const struct lab_claim *told_of(const struct lab_choices *placements,
                                       const struct lab_factor_row *row) {
    if (row->claim.verdict == LAB_CLAIM_YES && row->in_use.verdict != LAB_CLAIM_NOT_TESTED)
        return &row->in_use;
    int peer =
        row->of_peers && row->model < 0
            ? LAB_FIND(placements->peers.devices, placements->peers.device_count, title, row->level)
            : -1;
    return peer < 0 ? &row->claim : lab_peer_told(&placements->peers.devices[peer]);
}

/* "GPU 1 compared with GPU 0: +31.7% [−10.3, 93.2]" */
static const char *compared_words(const struct lab_factor_row *row, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s compared with %s: %s", lab_claim_within(row->level, arena),
                            row->reference, lab_claim_effect(&row->claim, arena));
}

/* Of that level by model: what a mean over all of them hides, of what isn't certain 0. NULL = there
 * is none, or all gain alike. */
static const char *range_of(const struct lab_choices *placements, const struct lab_factor_row *all,
                            const struct lab_analysis_result *result, struct lab_arena *arena) {
    double least = INFINITY, most = -INFINITY;
    if (all->model >= 0 || all->of_peers)
        return NULL;
    for (int i = 0; i < result->advised_count; i++)
        if (lab_str_equal(result->advised[i].claim.subject, all->in_use.subject))
            return result->advised[i].range;
    for (int m = 0; m < placements->model_count; m++) {
        const struct lab_factor_row *row = lab_choices_row(placements, m, all->factor, all->level);
        if (!row)
            continue;
        double effect = row->claim.verdict == LAB_CLAIM_YES ? row->claim.effect : 0;
        least = fmin(least, effect);
        most = fmax(most, effect);
    }
    return most > least ? lab_words_range(least, most, arena) : NULL;
}

/* "GPUs 0+2: 0 to +87.5% throughput compared with GPUs 0+1, by model (0: none certain); mean of 18
 * configurations: +37.7% [37.5, 37.9] (5 runs each)" */
static const char *told_words(const struct lab_choices *placements,
                              const struct lab_factor_row *row,
                              const struct lab_analysis_result *result, struct lab_arena *arena) {
    const struct lab_claim *claim = told_of(placements, row);
    const char *range = range_of(placements, row, result, arena);
    if (!range || !claim->mean_of)
        return lab_claim_sentence(claim, arena);
    bool zero = lab_str_starts(range, "0 to ") || lab_str_ends(range, " to 0%");
    return lab_arena_printf(arena,
                            "%s: %s throughput compared with %s, by model%s; mean of %s: %s "
                            "(%d runs each)",
                            claim->subject, range, claim->reference,
                            zero ? " (0: none certain)" : "", claim->mean_of,
                            lab_claim_effect(claim, arena), claim->n);
}

#define LEVELS_NAMED 6

/* "Batches 10 and 32" of "Batch 10" and "Batch 32"; of many "8 more of 9 batch sizes". */
static const char *level_words(const char **levels, int count, enum lab_factor factor, int all,
                               const char *plural, struct lab_arena *arena) {
    if (count > LEVELS_NAMED)
        return lab_arena_printf(arena, "%d more of %d %s", count, all, plural);
    if (factor != LAB_FACTOR_BATCH)
        return lab_words_devices(levels, count, arena);
    LAB_AUTO(str, list);
    for (int i = 0; i < count; i++)
        levels[i] += strlen("Batch ");
    LAB_ADD(levels, count, arena) = NULL;
    lab_str_add_list(&list, levels, "and");
    return lab_arena_printf(arena, "Batch%s %s", count > 2 ? "es" : "", list.text);
}

/* "No difference larger than 0.8% between 10 devices" of a factor none of whose levels differs. */
static void add_factor(const struct lab_choices *placements, int model, enum lab_factor factor,
                       const struct lab_analysis_result *result, struct lab_str *yes,
                       struct lab_str *rest) {
    struct lab_arena *arena = result->arena;
    static const char *const plural[LAB_FACTORS] = {"NUMA nodes", "devices", "batch sizes",
                                                    "compiled and uncompiled", "settings"};
    const struct lab_factor_row *most = NULL; /* of those that are inconclusive */
    const char *against = "";
    const char *mean_of = NULL, **levels = NULL; /* levels that have no sentence of their own */
    struct lab_words_singles singles = {0};
    double bound = 0;
    double lowest = INFINITY, highest = -INFINITY; /* of these */
    int count = 0, same = 0, told = 0, runs = 0, level_count = 0;
    for (int i = 0; i < placements->row_count; i++) {
        const struct lab_factor_row *row = &placements->rows[i];
        if (row->factor != factor || row->model != model)
            continue;
        count++;
        runs = row->claim.n;
        mean_of = row->of_peers && row->pairs > 1
                      ? lab_study_count_words(placements->study, row->pairs, arena)
                      : row->claim.mean_of;
        same += row->claim.verdict == LAB_CLAIM_NO;
        bound = fmax(bound, row->claim.bound); /* fmax passes NaN over */
        if (row->claim.verdict == LAB_CLAIM_INCONCLUSIVE &&
            (!most || fabs(row->claim.effect) > fabs(most->claim.effect)))
            most = row;
        const struct lab_claim *claim = told_of(placements, row);
        if (claim->verdict != LAB_CLAIM_YES)
            continue;
        if (told++ < 2) {
            const char *models = factor == LAB_FACTOR_NODE && model < 0
                                     ? lab_choices_by_model(placements, row, arena)
                                     : NULL;
            lab_str_printf(yes, "%s%s%s", yes->length ? " " : "",
                           models ? models : told_words(placements, row, result, arena),
                           models ? "" : ".");
            continue;
        }
        LAB_ADD(levels, level_count, arena) = row->level;
        lowest = fmin(lowest, claim->effect);
        highest = fmax(highest, claim->effect);
        against = row->of_peers ? "their peers" : row->reference;
    }
    if (told > 2)
        lab_str_printf(yes, " %s: %s throughput compared with %s.",
                       level_words(levels, level_count, factor, count, plural[factor], arena),
                       lab_words_range(lowest, highest, arena), against);
    if (count == 0 || told > 0 || (same < count && !most))
        return;
    lab_str_add(rest, rest->length ? " " : "");
    if (model < 0)
        singles = singles_of(placements, factor);
    if (same == count)
        lab_str_printf(rest, "No difference%s between %s%s%s%s.", lab_claim_larger(bound, arena),
                       plural[factor], mean_of ? ", mean of " : "", mean_of ? mean_of : "",
                       lab_words_singles(bound, &singles, "model", arena));
    else if (same > 0)
        lab_str_printf(rest, "%s: no difference%s for %d of %d, %d inconclusive, the largest: %s.",
                       lab_words_capital(plural[factor], arena), lab_claim_larger(bound, arena),
                       same, count, count - same, compared_words(most, arena));
    else
        lab_str_printf(rest, "%s: inconclusive, %s%s (%d run%s each).",
                       lab_words_capital(plural[factor], arena),
                       count > 1 ? "largest difference: " : "", compared_words(most, arena), runs,
                       runs == 1 ? "" : "s");
}

static const char *why_untested(const struct lab_choices *placements, struct lab_arena *arena) {
    if (placements->count == 0)
        return "no run that counts is done.";
    if (!placements->allreduce)
        return "each model was run in one placement.";
    return lab_arena_printf(
        arena,
        "%s. A built-in %s all-reduce ran instead and ignored all settings: "
        "differences between points are noise. %s",
        placements->study->simulated ? "the simulator has no NCCL" : "NCCL was not used",
        placements->allreduce,
        placements->whole_gpus ? "The runs' warnings give the reason."
                               : "Two or more NVIDIA GPUs, not MIG slices, can answer it.");
}

/* Effects before what has none; NULL = nothing was compared. */
static const char *make_answer(const struct lab_choices *placements, int model,
                               const struct lab_analysis_result *result) {
    LAB_AUTO(str, text);
    LAB_AUTO(str, rest);
    for (int f = 0; f < LAB_FACTORS && !placements->allreduce; f++)
        add_factor(placements, model, (enum lab_factor)f, result, &text, &rest);
    lab_str_printf(&text, "%s%s", text.length && rest.length ? " " : "", rest.text);
    return text.length ? lab_arena_strdup(result->arena, text.text) : NULL;
}

/* --- parts --- */

/* "cuda:3", "cuda:0,cuda:1" */
static const char *device_names(const struct lab_choice *placement, struct lab_arena *arena) {
    const struct lab_study_run *run = placement->point->runs[0];
    const char *names = "";
    for (int i = 0; i < run->rank_count; i++)
        names = lab_arena_printf(arena, "%s%s%s", names, i ? "," : "", run->ranks[i].device);
    return names;
}

/* Commands are for pasting: they stand on lines of their own, never broken. */
static void add_next(struct lab_analysis_part *part, const struct lab_choices *placements,
                     int model, struct lab_arena *arena) {
    static const struct lab_doc_column columns[] = {{"command", "Command", LAB_UNIT_TEXT}};
    const char *command = lab_choices_next(placements, model, arena);
    struct lab_doc_table *table = LAB_TABLE(part, "next", "For a verdict, run", columns, arena);
    const char **lines = lab_arena_alloc(arena, 2, sizeof *lines);
    if (command)
        LAB_ROW(table, arena, lab_cell_text(command));
    lab_analysis_hide_empty(table);
    lines[0] = command;
    table->lines = lines;
}

static void add_part(struct lab_analysis_result *result, const struct lab_choices *placements,
                     int model, const char *prefix, struct lab_arena *arena) {
    int own = placements->model_count > 1 ? model : -1, factor_count = 0;
    int chosen = lab_choices_best(placements, model);
    const struct lab_choice *best = &placements->items[chosen];
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%s%s", prefix, placements->models[model]), arena);
    struct lab_factor_row *factors = NULL;
    struct row *rows;
    int count = list_rows(placements, model, arena, &rows);
    struct figures figures = {.best = lab_choices_use(placements, chosen, arena),
                              .gpu_ids = best->devices,
                              .devices = device_names(best, arena),
                              .nodes = best->nodes,
                              .batch = best->batch,
                              .compiled = best->compiled,
                              .rate = rate_of(best),
                              .change = best->claim,
                              .placements = count};
    for (int i = 0; i < count; i++)
        figures.runs += rows[i].runs;
    if (placements->allreduce) { /* settings without effect are nothing to use */
        figures.best = NULL;
        figures.rate.value = NAN;
        figures.change = lab_claim_none;
    }
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    for (int i = 0; i < placements->row_count; i++)
        if (placements->rows[i].model == own)
            LAB_ADD(factors, factor_count, arena) = placements->rows[i];
    if (!placements->allreduce) {
        lab_rows_add_table(part, "factors", "Each choice, over placements alike in the others",
                           &LAB_ROWS(factor_fields, factors, factor_count), arena);
        lab_rows_add_table(part, "placements", count > 1 ? "Placements" : NULL,
                           &LAB_ROWS(row_fields, rows, count), arena);
        add_next(part, placements, model, arena);
    }
    part->about =
        lab_arena_printf(arena, "%d placement%s, %d run%s%s", count, count == 1 ? "" : "s",
                         figures.runs, figures.runs == 1 ? "" : "s", own < 0 ? "" : " per model");
    part->answer = make_answer(placements, own, result);
    part->untested = part->answer ? NULL : why_untested(placements, arena);
}

/* --- the chart --- */

#define PANELS_MAX 12
#define NAMES_MOST 12 /* of placements, side by side with those of another model */
#define ROWS_MOST  48 /* of a panel: of more those on remote NUMA nodes are left out */

/* NUMA nodes have maps of their own. */
static int leave_remote(const struct lab_choices *placements, struct row *rows, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        int at = LAB_FIND(placements->items, placements->count, words, rows[i].words);
        bool near = at < 0 || !*placements->items[at].levels[LAB_FACTOR_NODE];
        if (near || lab_str_equal(rows[i].series, "recommended"))
            rows[kept++] = rows[i];
    }
    return kept;
}

/* "uncompiled" of "GPU 0, NUMA node 0, uncompiled" where all are on that device and node, which
 * the caption says: long labels would be cut. */
static void label_rows(struct row *rows, int count, struct lab_choice_shared all,
                       struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        size_t length = strlen(rows[i].words) - all.before - all.after;
        rows[i].label = lab_arena_printf(arena, "%.*s", (int)length, rows[i].words + all.before);
    }
}

/* "local NUMA node, smallest batch": what the default has of that which was varied. */
static const char *default_words(const struct lab_choices *placements, struct lab_arena *arena) {
    static const char *const words[LAB_FACTORS] = {
        "local NUMA node", "lowest device", "smallest batch", "uncompiled", "default settings"};
    const char *text = "";
    for (int f = 0; f < LAB_FACTORS; f++)
        if (placements->varies[f])
            text = lab_arena_printf(arena, "%s%s%s", text, *text ? ", " : "", words[f]);
    return text;
}

/* What marks mean, by the rule of the table. */
static const char *mark_words(const struct lab_chart *chart, const struct lab_choices *placements,
                              const char *shared, struct lab_arena *arena) {
    bool recommended = false, fallback = false, open = false;
    for (int p = 0; p < chart->panel_count; p++)
        for (int s = 0; s < chart->panels[p].series_count; s++) {
            recommended |= lab_str_equal(chart->panels[p].series[s].title, "recommended");
            fallback |= lab_str_equal(chart->panels[p].series[s].title, "default");
            open |= lab_str_equal(chart->panels[p].series[s].title, "inconclusive");
        }
    if (!recommended && !fallback)
        return shared;
    LAB_AUTO(str, text);
    if (recommended)
        lab_str_printf(&text, "Recommended: gains %.0f%% or more over another placement.",
                       100 * LAB_CLAIM_WORTH);
    if (fallback)
        lab_str_printf(&text, "%sDefault (%s): no gain of %.0f%% or more was found.",
                       text.length ? " " : "", default_words(placements, arena),
                       100 * LAB_CLAIM_WORTH);
    if (placements->varies[LAB_FACTOR_DEVICE])
        lab_str_printf(&text, " Devices without a difference are marked alike%s.",
                       open ? "; inconclusive: devices that may be as good" : "");
    lab_str_printf(&text, "%s%s", shared ? " " : "", shared ? shared : "");
    return lab_arena_strdup(arena, text.text);
}

/* Models with several placements, from the first to the last where more than fit; returns how many
 * there are. Nothing of settings that had no effect: their differences are noise. */
static int choose_models(const struct lab_choices *placements, int room, int *ret_models,
                         int *ret_shown, struct lab_arena *arena) {
    int all = 0, chosen = 0, most = 0, *models, *counts;
    models = lab_arena_alloc(arena, 2 * (size_t)placements->model_count + 1, sizeof *models);
    counts = models + placements->model_count;
    for (int m = 0; m < placements->model_count && !placements->allreduce; m++) {
        struct row *rows;
        int count = list_rows(placements, m, arena, &rows);
        models[all] = m;
        counts[all] = count;
        most = count > most ? count : most;
        all += count > 1;
    }
    for (int i = 0; i < all; i++) /* those with most to choose from, where not all fit */
        if (all <= room || counts[i] == most)
            models[chosen++] = models[i];
    *ret_shown = chosen < room ? chosen : room;
    for (int i = 0; i < *ret_shown; i++)
        ret_models[i] = models[chosen > room && room > 1 ? i * (chosen - 1) / (room - 1) : i];
    return all;
}

static void add_panels(struct lab_chart *chart, const struct lab_choices *placements, bool only,
                       struct lab_arena *arena) {
    struct lab_choice_shared all =
        only ? lab_choices_shared(placements) : (struct lab_choice_shared){0};
    int models[PANELS_MAX], shown,
        count_all =
            choose_models(placements, PANELS_MAX - chart->panel_count, models, &shown, arena);
    if (shown < count_all)
        chart->title = lab_arena_printf(arena, "%s, %d of %s shown", chart->title, shown,
                                        lab_study_count_words(placements->study, count_all, arena));
    for (int i = 0; i < shown; i++) {
        struct row *rows;
        int m = models[i], count = list_rows(placements, m, arena, &rows);
        if (count > ROWS_MOST && placements->varies[LAB_FACTOR_NODE]) {
            count = leave_remote(placements, rows, count);
            chart->title = "Throughput of every placement on the nearest NUMA node";
        }
        label_rows(rows, count, all, arena);
        const char *unit = placements->items[0].point->runs[0]->run->rate_unit;
        struct lab_chart_panel *panel =
            lab_chart_add_panel(chart, placements->models[m], lab_axis(""),
                                lab_axis(lab_arena_printf(arena, "Throughput [%s]", unit)), arena);
        struct lab_chart_series *points =
            lab_rows_add_series(panel, &LAB_ROWS(mark_fields, rows, count), "label", "rate_per_s",
                                "use", LAB_CHART_POINTS, arena);
        for (int s = 0; s < panel->series_count; s++) /* blue among grey */
            points[s].colour = lab_str_equal(points[s].title, "recommended") ? 0
                               : lab_str_equal(points[s].title, "default")   ? 1
                               : lab_str_equal(points[s].title, "others")    ? 7
                                                                             : 4;
    }
    for (int p = 0; p < chart->panel_count; p++)
        if (chart->panels[p].x.name_count > NAMES_MOST)
            chart->columns = 1;
    if (chart->panel_count > 0)
        chart->caption =
            mark_words(chart, placements,
                       only ? lab_choices_shared_words(placements, all, arena) : NULL, arena);
    chart->simulated |= placements->study->simulated;
}

/* --- the whole --- */

static const char *add_study(struct lab_analysis_result *result,
                             const struct lab_analysis_input *input, int number, const char *model,
                             struct lab_chart *chart, struct lab_arena *arena) {
    const struct lab_study_table *study = &input->studies[number];
    const char *prefix = lab_analysis_prefix(input, study, arena);
    struct lab_choices placements = lab_choices_make(study, model, arena);
    lab_choices_compare(&placements, arena);
    for (int i = 0; i < placements.row_count; i++)
        if (!placements.rows[i].of_peers)
            lab_analysis_add_claim(result, &placements.rows[i].claim, arena);
    for (int i = 0; i < placements.count; i++)
        if (placements.items[i].claim.verdict != LAB_CLAIM_NOT_TESTED)
            lab_analysis_add_claim(result, &placements.items[i].claim, arena);
    result->exception_count = lab_choices_exceptions(&placements, arena, &result->exceptions);
    result->advised_count = lab_choices_advised(&placements, arena, &result->advised);
    for (int m = 0; m < placements.model_count; m++)
        add_part(result, &placements, m, prefix, arena);
    lab_study_add_notes(study, prefix, &result->notes, arena);
    if (placements.gaining > LAB_CHOICES_PAIRED)
        lab_analysis_note(&result->notes, arena,
                          "Of %d batch sizes or settings that gain, the %d that gain most are "
                          "compared with each other.",
                          placements.gaining, LAB_CHOICES_PAIRED);
    add_panels(chart, &placements, input->study_count == 1, arena);
    if (placements.allreduce) {
        result->command = lab_arena_printf(arena, "gpulab run %s device=cuda", study->option);
        result->action = placements.whole_gpus
                             ? "Mend what the warnings name, then test it"
                             : "Test it on two or more NVIDIA GPUs (not MIG slices)";
    }
    const char *answer = make_answer(&placements, -1, result),
               *untested = answer ? NULL : why_untested(&placements, arena);
    if (input->study_count == 1)
        result->untested = untested;
    return answer ? answer : lab_analysis_untested(untested, arena);
}

static int recommend_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                         struct lab_err *err) {
    const struct recommend_config *config = input->config;
    (void)err;
    struct lab_arena *arena = result->arena;
    struct lab_chart chart = {.name = "best_places",
                              .title = "Throughput of every placement",
                              .intervals = "95% intervals over runs",
                              .columns = 2};
    const char *answer = "";
    for (int i = 0; i < input->study_count; i++)
        answer = lab_arena_printf(arena, "%s%s%s%s", answer, *answer ? " " : "",
                                  lab_analysis_prefix(input, &input->studies[i], arena),
                                  add_study(result, input, i, config->model, &chart, arena));
    result->answer = answer;
    if (chart.panel_count <= 2)
        chart.columns = 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
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
    .summary = "which settings to use, and what each gains",
    .description =
        "Points of a study that did the same work are placements to choose from. Each choice is "
        "compared with a fixed reference over all pairs of placements that are alike otherwise. "
        "Remote NUMA nodes with the local one, a device with the others, a batch with the "
        "smallest, compiled with uncompiled, settings with NCCL's defaults. First over all models, "
        "then by model. Intervals are over runs, at 95%; verdicts hold together.\n"
        "\n"
        "The placement to use is the default unless a claim of 1% or more favours another: local "
        "NUMA node, smallest batch, uncompiled. A model whose batches are equal gets the batch of "
        "all models. Devices without difference stand together. One run a point gives values and "
        "no verdict.",
    .options = recommend_options,
    .config_size = sizeof(struct recommend_config),
    .kinds = (const struct lab_analysis_kind[]){{"recommend.device"},
                                                {"recommend.device_model"},
                                                {"recommend.node"},
                                                {"recommend.node_model"},
                                                {"recommend.placement"},
                                                {"recommend.batch"},
                                                {"recommend.batch_model"},
                                                {"recommend.compile"},
                                                {"recommend.compile_model"},
                                                {"recommend.settings", LAB_KIND_PROGRAM},
                                                {"recommend.settings_model", LAB_KIND_PROGRAM},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = recommend_interest,
    LAB_PARTS_OF("models", figure_fields),
    .run = recommend_run,
};
