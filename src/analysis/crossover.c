/*
 * crossover.c: `gpulab analyze crossover`: which models are transfer-bound, which compute-bound,
 * and at how much work of a sample that changes. The claims are made in crossover/.
 */
#include "analysis/crossover/crossover.h"

#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "analysis/peers/peers.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

struct figures { /* of a group */
    struct lab_claim claim;
    const char *transfer, *others; /* models, "7 models" */
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, claim, "crossover_flop_per_sample", "Crossover", LAB_UNIT_NUMBER,
              "Crossover (interpolated)"),
    LAB_FIELD(struct figures, transfer, "transfer_bound", "Transfer-bound", LAB_UNIT_TEXT,
              "Transfer-bound"),
    LAB_FIELD(struct figures, others, "other_models", "Neither for certain", LAB_UNIT_TEXT,
              "Neither for certain"),
};

static const struct lab_field series_fields[] = {
    LAB_FIELD(struct crossover_series, title, "series", "Models", LAB_UNIT_TEXT),
    LAB_FIELD(struct crossover_series, claim, "crossover_flop_per_sample", "Crossover",
              LAB_UNIT_NUMBER),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct crossover_model, name, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct crossover_model, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER,
              .yields = 2),
    LAB_FIELD(struct crossover_model, compute_s, "compute_ms", "Compute", LAB_UNIT_TIME,
              .yields = 1),
    LAB_FIELD(struct crossover_model, transfer_s, "transfer_ms", "Transfer", LAB_UNIT_TIME,
              .yields = 1),
    LAB_FIELD(struct crossover_model, excess, "excess", "Compute vs transfer", LAB_UNIT_CHANGE),
    LAB_FIELD(struct crossover_model, bound, "bound_by", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct crossover_model, shown, NULL, "Bound by", LAB_UNIT_TEXT),
    LAB_FIELD(struct crossover_model, runs, "runs", "Runs", LAB_UNIT_COUNT, .yields = 3),
};

/* --- sentences --- */

#define NONE_WITHIN "no crossover within the tested range"

/* Whether it both computes and copies. */
static bool is_compared(const struct crossover_model *model) {
    return model->gflop > 0 && !isnan(model->excess.effect);
}

/* "compute" if all are bound so, and so is what was found before; "" = they differ. */
static const char *common_bound(const struct crossover_model *model, const char *before) {
    bool known = *model->bound == 'c' || *model->bound == 't';
    return known && (!before || lab_str_equal(before, model->bound)) ? model->bound : "";
}

static const char *series_bound(const struct crossover_series *series) {
    const char *bound = NULL;
    for (int m = 0; m < series->count; m++)
        bound = common_bound(series->models[m], bound);
    return bound ? bound : "";
}

/* "all 8 models are compute-bound" */
static const char *bound_words(int count, const char *bound, struct lab_arena *arena) {
    return count == 2 ? lab_arena_printf(arena, "both models are %s-bound", bound)
                      : lab_arena_printf(arena, "all %d models are %s-bound", count, bound);
}

/* "models of width 512 are ": what a series by depth holds for; "" = all models. */
static const char *held_words(const struct crossover_series *series, struct lab_arena *arena) {
    bool depth = lab_str_equal(series->title, "by depth"),
         width = lab_str_equal(series->title, "by width");
    return !depth && !width
               ? ""
               : lab_arena_printf(arena, "models of %s %g are ", depth ? "width" : "depth",
                                  lab_study_setting_number(series->models[0]->point->runs[0],
                                                           depth ? "dim" : "depth"));
}

static const char *make_sentence(const struct crossover_series *series, struct lab_arena *arena) {
    const struct lab_claim *claim = &series->claim;
    const char *bound = series_bound(series);
    if (series->count < 2)
        return lab_arena_printf(arena,
                                "%s: crossover not tested: fewer than 2 models compute and copy.",
                                claim->subject);
    if (claim->verdict == LAB_CLAIM_YES || claim->verdict == LAB_CLAIM_INCONCLUSIVE)
        return crossover_sentence(claim, &(struct crossover_pool){&series, 1},
                                  held_words(series, arena), arena);
    if (*bound)
        return lab_arena_printf(arena, "%s: %s; " NONE_WITHIN ".", claim->subject,
                                bound_words(series->count, bound, arena));
    return lab_arena_printf(arena, "%s: " NONE_WITHIN ", %.3g to %.3g GFLOP/sample.",
                            claim->subject, series->models[0]->gflop,
                            series->models[series->count - 1]->gflop);
}

/* Where one sentence holds for every device: "All 8 models are compute-bound on GPUs 0–3; …". NULL
 * = it doesn't. */
static const char *common_sentence(const struct crossover_group *groups, int count,
                                   struct lab_arena *arena) {
    const char *bound = NULL, **devices = NULL;
    int device_count = 0, models = 0;
    for (int g = 0; g < count; g++) {
        int own = 0;
        for (int m = 0; m < groups[g].count; m++) /* those outside of a series, too */
            if (is_compared(&groups[g].models[m])) {
                bound = common_bound(&groups[g].models[m], bound);
                own++;
            }
        models = g == 0 || own == models ? own : 0;
        const char *device = groups[g].models[0].point->runs[0]->ranks[0].device;
        device = lab_study_device_title(device, arena);
        if (lab_list_find_text(devices, device_count, device) < 0)
            LAB_ADD(devices, device_count, arena) = device;
    }
    if (models < 2 || !bound || !*bound)
        return NULL;
    return lab_arena_printf(arena, "%s on %s; " NONE_WITHIN ".",
                            lab_words_capital(bound_words(models, bound, arena), arena),
                            lab_words_devices(devices, device_count, arena));
}

#define NAMED_MOST 4

/* "vit32x2x128, vit32x2x256 (compiled)" of models bound so in all groups, or in those in
 * brackets; "8 models" of more than are read. */
static const char *list_bound(const struct crossover_group *groups, int count, const char *bound,
                              struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char **names = NULL;
    int name_count = 0;
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++)
            if (is_compared(&groups[g].models[m]) &&
                lab_list_find_text(names, name_count, crossover_model_name(&groups[g].models[m])) <
                    0)
                LAB_ADD(names, name_count, arena) = crossover_model_name(&groups[g].models[m]);
    int listed = 0;
    for (int n = 0; n < name_count; n++) {
        LAB_AUTO(str, where);
        int run = 0, so = 0;
        for (int g = 0; g < count; g++)
            for (int m = 0; m < groups[g].count; m++) {
                const struct crossover_model *model = &groups[g].models[m];
                if (!is_compared(model) || !lab_str_equal(crossover_model_name(model), names[n]))
                    continue;
                run++;
                bool other = *model->bound != 'c' && *model->bound != 't' && model->excess.n > 1;
                if (*bound ? !lab_str_equal(model->bound, bound) : !other)
                    continue;
                so++;
                lab_str_printf(&where, "%s%s", where.length ? "; " : "",
                               *groups[g].what ? groups[g].what : groups[g].title);
            }
        if (so == 0)
            continue;
        lab_str_printf(&text, "%s%s", listed++ ? ", " : "", names[n]);
        if (so < run)
            lab_str_printf(&text, " (%s)", where.text);
    }
    return listed == 0           ? NULL
           : listed > NAMED_MOST ? lab_arena_printf(arena, "%d models", listed)
                                 : lab_arena_strdup(arena, text.text);
}

/* Where no series has a crossover, and models outside of them are bound otherwise: "Transfer-bound:
 * vit32x2x128. Compute-bound: 11 models." NULL = some series has one. */
static const char *mixed_sentence(const struct crossover_group *groups, int count,
                                  struct lab_arena *arena) {
    for (int g = 0; g < count; g++)
        for (int s = 0; s < groups[g].series_count; s++)
            if (groups[g].series_count < 2 ||
                groups[g].series[s].claim.verdict != LAB_CLAIM_NOT_TESTED)
                return NULL;
    const char *transfer = list_bound(groups, count, "transfer", arena),
               *compute = list_bound(groups, count, "compute", arena),
               *others = list_bound(groups, count, "", arena);
    if (count == 0 || !transfer || !compute)
        return NULL;
    return lab_arena_printf(arena, "Transfer-bound: %s. Compute-bound: %s.%s%s%s", transfer,
                            compute, others ? " Neither for certain: " : "", others ? others : "",
                            others ? "." : "");
}

/* Of groups that differ in more than device and NUMA node: how many have a crossover, and where;
 * NULL = fewer than two have for certain. */
static const char *range_sentence(const struct crossover_group *groups, int count,
                                  struct lab_arena *arena) {
    const struct crossover_series *least = NULL, *most = NULL;
    int found = 0, open = 0, all = 0;
    bool alike = true;
    for (int g = 0; g < count; g++) {
        alike &= lab_str_equal(groups[g].what, groups[0].what);
        for (int s = 0; s < groups[g].series_count; s++, all++) {
            const struct lab_claim *claim = &groups[g].series[s].claim;
            open += claim->verdict == LAB_CLAIM_INCONCLUSIVE;
            if (claim->verdict != LAB_CLAIM_YES)
                continue;
            found++;
            least = !least || claim->effect < least->claim.effect ? &groups[g].series[s] : least;
            most = !most || claim->effect > most->claim.effect ? &groups[g].series[s] : most;
        }
    }
    if (found < 2 || alike)
        return NULL;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "Crossover in %d of %d groups of models with the same settings", found,
                   all);
    if (open > 0)
        lab_str_printf(&text, ", inconclusive in %d", open);
    if (all > found + open)
        lab_str_printf(&text, ", not within the tested range in %d", all - found - open);
    lab_str_printf(&text, ". Lowest: %s. Highest: %s.",
                   crossover_clause(&least->claim, &(struct crossover_pool){&least, 1}, arena),
                   crossover_clause(&most->claim, &(struct crossover_pool){&most, 1}, arena));
    return lab_arena_strdup(arena, text.text);
}

static const char *device_of(const struct crossover_group *group) {
    return group->models[0].point->runs[0]->ranks[0].device;
}

/* Whether the group's device differs from its peers (peers.h), and has a crossover of its own. */
static bool is_odd(const struct lab_peers *peers, const struct crossover_group *group) {
    int device = LAB_FIND(peers->devices, peers->device_count, name, device_of(group));
    return peers->devices && device >= 0 && peers->devices[device].odd;
}

#define ALONE_MOST 4 /* sentences of placements that no mean covers */

/* Nearest NUMA nodes first: a remote one shifts the crossover. A mean with a device that differs
 * from its peers describes neither: that one has its own sentence, as a device without a peer at
 * its distance has. NULL = no devices are pooled. */
static const char *add_pooled(struct lab_analysis_result *result, const struct lab_peers *peers,
                              const struct crossover_group *groups, int count,
                              struct lab_arena *arena) {
    struct lab_stage_estimates *found = NULL;
    const struct crossover_series **series = NULL, **alone = NULL;
    struct lab_stage_pooled *pooled = NULL;
    int found_count = 0, series_count = 0, alone_count = 0;
    LAB_AUTO(str, text);
    for (int g = 0; g < count; g++) {
        const struct crossover_series *own = &groups[g].series[0];
        if (is_odd(peers, &groups[g])) {
            LAB_ADD(alone, alone_count, arena) = own;
            continue;
        }
        LAB_ADD(found, found_count, arena) = own->found;
        LAB_ADD(series, series_count, arena) = own;
    }
    int pooled_count = lab_stage_pool(found, found_count, arena, &pooled);
    for (int i = 0; i < pooled_count; i++) {
        struct crossover_pool pool = {.count = pooled[i].member_count};
        struct lab_claim claim =
            crossover_claim(pooled[i].values, pooled[i].blocks, pooled[i].title, NAN, NAN, arena);
        const struct crossover_series **members =
            lab_arena_alloc(arena, (size_t)pool.count, sizeof *members);
        for (int m = 0; m < pool.count; m++)
            members[m] = series[pooled[i].members[m] - found];
        pool.members = members;
        if (claim.verdict == LAB_CLAIM_NOT_TESTED)
            continue;
        lab_analysis_add_claim(result, &claim, arena);
        lab_str_printf(&text, "%s%s", text.length ? " " : "",
                       crossover_sentence(&claim, &pool, held_words(members[0], arena), arena));
    }
    for (int s = 0; s < series_count; s++)
        if (!lab_stage_is_pooled(pooled, pooled_count, &found[s]) &&
            lab_str_equal(found[s].group->what, groups[0].what))
            LAB_ADD(alone, alone_count, arena) = series[s];
    for (int s = 0; s < alone_count && alone_count <= ALONE_MOST && text.length; s++)
        if (alone[s]->claim.verdict == LAB_CLAIM_YES)
            lab_str_printf(&text, " %s", make_sentence(alone[s], arena));
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

#define RATES_MOST 4

/* Geometric mean over runs, then over placements, without devices that differ. */
static double mean_rate(const struct lab_peers *peers, const struct crossover_group *groups,
                        int count, const char *model) {
    double sum = 0;
    int n = 0;
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count && !is_odd(peers, &groups[g]); m++) {
            const struct lab_study_point *point = groups[g].models[m].point;
            double own = 0;
            for (int i = 0; i < point->count; i++)
                own += log(point->runs[i]->rate) / point->count;
            if (lab_str_equal(crossover_model_name(&groups[g].models[m]), model)) {
                sum += own;
                n++;
            }
        }
    return exp(sum / n);
}

/* "Throughput, mean of 9 placements: vit0x0x0 38.2k, vit32x4x512 18.8k samples/s." of few models
 * whose groups differ in no more than placement. */
static void add_rates(struct lab_analysis_result *result, const struct lab_peers *peers,
                      const struct crossover_group *groups, int count, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char **answer = result->answer            ? &result->answer
                          : result->part_count == 1 ? &result->parts[0].answer
                                                    : NULL;
    int used = 0;
    for (int g = 0; g < count; g++) {
        used += !is_odd(peers, &groups[g]);
        if (!lab_str_equal(groups[g].what, groups[0].what) || groups[g].count != groups[0].count)
            return;
    }
    if (used == 0 || groups[0].count > RATES_MOST || !answer)
        return;
    for (int m = 0; m < groups[0].count; m++) {
        const char *model = crossover_model_name(&groups[0].models[m]);
        lab_str_printf(&text, "%s%s ", m ? ", " : "", model);
        double rate = mean_rate(peers, groups, count, model);
        lab_str_add_rate(&text, rate);
    }
    *answer =
        lab_arena_printf(arena, "%s Throughput%s: %s %s.", *answer,
                         used > 1 ? lab_arena_printf(arena, ", mean of %d placements", used) : "",
                         text.text, groups[0].models[0].point->runs[0]->run->rate_unit);
}

/* --- the whole --- */

static void add_part(struct lab_analysis_result *result, const struct crossover_group *group,
                     struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, group->name, arena);
    LAB_AUTO(str, text);
    for (int s = 0; s < group->series_count; s++)
        lab_str_printf(&text, "%s%s", s ? " " : "", make_sentence(&group->series[s], arena));
    part->answer = lab_arena_strdup(arena, text.text);
    struct figures figures = {group->series[0].claim, list_bound(group, 1, "transfer", arena),
                              list_bound(group, 1, "", arena)};
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    bool found = false;
    for (int s = 0; s < group->series_count; s++)
        found |= group->series[s].claim.verdict != LAB_CLAIM_NOT_TESTED;
    if (group->series_count > 1 && found)
        lab_rows_add_table(part, "crossovers", "Crossovers",
                           &LAB_ROWS(series_fields, group->series, group->series_count), arena);
    lab_rows_add_table(part, "models", "By model, of a sample",
                       &LAB_ROWS(model_fields, group->models, group->count), arena);
}

static void add_claims(struct lab_analysis_result *result, const struct crossover_group *groups,
                       int count, struct lab_arena *arena) {
    for (int g = 0; g < count; g++)
        lab_rows_add_claims(
            result, &LAB_ROWS(series_fields, groups[g].series, groups[g].series_count), arena);
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++) {
            const struct crossover_model *model = &groups[g].models[m];
            if (isnan(model->compute_s) == isnan(model->transfer_s)) /* else the other bounds it */
                lab_rows_add_claims(result, &LAB_ROWS(model_fields, model, 1), arena);
        }
}

static int crossover_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                         struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    struct crossover_group *all = NULL;
    int count = 0;
    for (int s = 0; s < input->study_count; s++) {
        const struct lab_study_table *study = &input->studies[s];
        const char *prefix = lab_analysis_prefix(input, study, arena);
        struct crossover_group *groups;
        int own = crossover_groups_make(study, prefix, arena, &groups);
        for (int g = 0; g < own; g++) {
            LAB_ADD(all, count, arena) = groups[g];
            add_part(result, &groups[g], arena);
        }
        lab_study_add_notes(study, prefix, &result->notes, arena);
    }
    if (count == 0) {
        result->untested = "no run on a single device is done.";
        return 0;
    }
    struct lab_peers peers = {0}; /* of several studies, devices of one name aren't one */
    if (input->study_count == 1)
        peers = lab_peers_make(&input->studies[0], arena);
    result->answer = add_pooled(result, &peers, all, count, arena);
    if (!result->answer)
        result->answer = common_sentence(all, count, arena);
    if (!result->answer)
        result->answer = mixed_sentence(all, count, arena);
    if (!result->answer)
        result->answer = range_sentence(all, count, arena);
    add_rates(result, &peers, all, count, arena);
    add_claims(result, all, count, arena);
    crossover_add_chart(result, all, count, arena);
    return 0;
}

/* --- the analysis --- */

/* Models of different work that copy something. */
static int crossover_interest(const struct lab_study_table *study) {
    double seen[3];
    int count = 0, computing = 0;
    for (int i = 0; i < study->run_count && count < 3; i++) {
        const struct lab_study_run *run = &study->runs[i];
        double complexity = lab_study_complexity(run);
        bool known = isnan(complexity) || run->work.h2d_bytes + run->work.d2h_bytes <= 0;
        for (int k = 0; k < count; k++)
            known |= seen[k] == complexity;
        if (!known)
            seen[count++] = complexity;
        computing += !known && complexity > 0;
    }
    return computing < 2 ? 0 : count == 2 ? 20 : 30;
}

const struct lab_analysis lab_analysis_crossover = {
    .name = "crossover",
    .summary = "which models are transfer-bound, which compute-bound, and the crossover",
    .description =
        "Compares compute time with transfer time, the longer of H2D and D2H, for each model on "
        "each device and NUMA node. H2D, compute and D2H overlap, so that the longest of them "
        "bounds the pipeline. Models are compared within a group: batch size, image size, pool and "
        "compilation are the same.\n\n"
        "The crossover is the work of a sample at which both take as long, on straight lines "
        "between models of a series (by depth, by width); its interval is over runs, at 95%. It "
        "doesn't cover other models of as much work, whose kernels and copies differ. "
        "Blocks that hold the two models next to it count. Outside of the models that were run "
        "there is none.",
    .kinds = (const struct lab_analysis_kind[]){{"crossover.work", LAB_KIND_ESTIMATE},
                                                {"crossover.model", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = crossover_interest,
    LAB_PARTS_OF("groups", figure_fields),
    .run = crossover_run,
};
