/*
 * settings.c: throughput by batch and by size of the pinned pool, and whether a pool under memory
 * pressure changes the penalty of a remote NUMA node. Points are compared that agree in all else.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_group.h"
#include "analysis/transfer/transfer.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

static const char *const kinds[LAB_TRANSFER_QUESTIONS][2] = {
    [LAB_TRANSFER_BATCH] = {"transfer.batch", "transfer.batch_model"},
    [LAB_TRANSFER_POOL] = {"transfer.pool", "transfer.pool_model"},
    [LAB_TRANSFER_PRESSURE] = {"transfer.pressure", "transfer.pressure_model"},
};
static const char *const varying[LAB_TRANSFER_QUESTIONS][3] = {
    [LAB_TRANSFER_BATCH] = {"batch_size"},
    [LAB_TRANSFER_POOL] = {"memory_size_mb"},
    [LAB_TRANSFER_PRESSURE] = {"memory_size_mb", "numa_node"},
};

struct asked {
    enum lab_transfer_question question;
    const struct lab_study_table *study;
    struct lab_study_group *groups; /* that have several values, the least complex model first */
    int group_count;
    double *values; /* ascending */
    int value_count;
    struct lab_arena *arena;
};

static double value_of(const struct asked *asked, const struct lab_study_point *point) {
    return lab_study_setting_number(point->runs[0], varying[asked->question][0]);
}

/* --- what varies --- */

static int by_complexity(const void *a, const void *b) {
    const struct lab_study_run *x = ((const struct lab_study_group *)a)->points[0]->runs[0],
                               *y = ((const struct lab_study_group *)b)->points[0]->runs[0];
    return lab_study_order(lab_study_complexity(x), x->model, lab_study_complexity(y), y->model);
}

static void add_value(struct asked *asked, double value) {
    for (int k = 0; k < asked->value_count; k++)
        if (asked->values[k] == value)
            return;
    if (value > 0)
        LAB_ADD(asked->values, asked->value_count, asked->arena) = value;
}

static void find_values(struct asked *asked) {
    int kept = 0;
    for (int g = 0; g < asked->group_count; g++) {
        const struct lab_study_group *group = &asked->groups[g];
        bool several = false;
        for (int i = 0; i < group->count; i++)
            several |= value_of(asked, group->points[i]) != value_of(asked, group->points[0]);
        for (int i = 0; i < group->count && several; i++)
            add_value(asked, value_of(asked, group->points[i]));
        if (several)
            asked->groups[kept++] = *group;
    }
    asked->group_count = kept;
    if (kept > 0)
        qsort(asked->groups, (size_t)kept, sizeof *asked->groups, by_complexity);
    LAB_SORT_NUMBERS(asked->values, asked->value_count);
}

/* The two points that a value compares in a group; false = one is lacking. */
static bool find_pair(const struct asked *asked, const struct lab_study_group *group, double value,
                      const struct lab_study_point *ret_pair[2]) {
    bool nodes = asked->question == LAB_TRANSFER_PRESSURE;
    int near = -1, far = -1;
    if (nodes && !lab_study_far_node(group, &near, &far))
        return false;
    ret_pair[0] =
        lab_study_find(group, near, varying[asked->question][0], nodes ? value : asked->values[0]);
    ret_pair[1] = lab_study_find(group, far, varying[asked->question][0], value);
    return ret_pair[0] && ret_pair[1];
}

/* --- claims --- */

static const char *value_words(const struct asked *asked, double value) {
    return lab_arena_printf(
        asked->arena, asked->question == LAB_TRANSFER_BATCH ? "batch %g" : "a %g MiB pool", value);
}

static struct lab_claim make_claim(struct lab_contrast *contrast, int pairs, const char *kind,
                                   const char *subject, const char *reference) {
    for (int t = 0; t < contrast->count; t++)
        contrast->terms[t].weight /= pairs;
    return lab_claim_named(lab_claim_estimate(contrast, LAB_STUDY_RATE), kind, subject, reference,
                           "throughput");
}

/* The largest value against the smallest; of PRESSURE a difference of differences. */
static struct lab_claim pool(const struct asked *asked) {
    struct lab_contrast contrast = {.arena = asked->arena};
    const struct lab_study_point *most[2], *least[2];
    double smallest = asked->values[0], largest = asked->values[asked->value_count - 1];
    int pairs = 0;
    for (int g = 0; g < asked->group_count; g++) {
        if (!find_pair(asked, &asked->groups[g], largest, most) ||
            !find_pair(asked, &asked->groups[g], smallest, least))
            continue;
        lab_contrast_add_pair(&contrast, most[0], most[1], 1);
        lab_contrast_add_pair(&contrast, least[0], least[1], -1);
        pairs++;
    }
    struct lab_claim claim = make_claim(&contrast, pairs, kinds[asked->question][0],
                                        value_words(asked, largest), value_words(asked, smallest));
    if (asked->question == LAB_TRANSFER_PRESSURE)
        claim.quantity = LAB_CLAIM_REMOTE;
    return claim;
}

/* Of the groups of a model, from `first` on, where one has both points. */
static void add_row(const struct asked *asked, int first, double value,
                    struct lab_transfer_answer *answer) {
    struct lab_contrast contrast = {.arena = asked->arena}, from_least = contrast;
    const char *model = asked->groups[first].points[0]->runs[0]->model,
               *words = value_words(asked, value),
               *reference = value_words(asked, asked->values[0]),
               *subject = lab_arena_printf(asked->arena, "%s with %s", model, words);
    const struct lab_study_point *pair[2], *least[2];
    double logs = 0;
    int pairs = 0, both = 0;
    for (int g = first; g < asked->group_count; g++) {
        if (!lab_str_equal(asked->groups[g].points[0]->runs[0]->model, model) ||
            !find_pair(asked, &asked->groups[g], value, pair))
            continue;
        if (pair[0] != pair[1])
            lab_contrast_add_pair(&contrast, pair[0], pair[1], 1);
        if (value > asked->values[0] &&
            find_pair(asked, &asked->groups[g], asked->values[0], least)) {
            lab_contrast_add_pair(&from_least, pair[0], pair[1], 1);
            lab_contrast_add_pair(&from_least, least[0], least[1], -1);
            both++;
        }
        logs += log(lab_study_estimate(pair[1]->rates, pair[1]->count).value);
        pairs++;
    }
    if (pairs == 0)
        return;
    if (asked->question == LAB_TRANSFER_PRESSURE) {
        subject = lab_arena_printf(asked->arena, "The farthest NUMA node, %s", subject);
        reference = "the nearest node";
    } else if (value == asked->values[0]) {
        subject = reference;
    }
    double rate = exp(logs / pairs);
    struct lab_claim claim =
        make_claim(&contrast, pairs, kinds[asked->question][1], subject, reference);
    if (pairs > 1)
        claim.mean_of = lab_study_pair_words(asked->study, pairs, 1, asked->arena);
    struct lab_claim differs = claim;
    if (asked->question == LAB_TRANSFER_PRESSURE)
        differs = both > 0 ? make_claim(&from_least, both, kinds[asked->question][1], subject,
                                        value_words(asked, asked->values[0]))
                           : lab_claim_none;
    LAB_ADD(answer->rows, answer->count, asked->arena) = (struct lab_transfer_row){
        model, value, rate, lab_words_number(rate, asked->arena), claim, differs};
}

/* "batch 10, 224 px" of "vit0x0x0, batch 10, 224 px, 256 MiB pool"; NULL = nothing is left. */
static const char *condition_of(const struct lab_study_point *point, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char *words = lab_study_point_model(point, arena);
    for (const char *at = strstr(words, ", "), *next; at; at = next) {
        next = strstr(at + 2, ", ");
        const char *part =
            next ? lab_arena_strndup(arena, at + 2, (size_t)(next - at) - 2) : at + 2;
        if (!lab_str_ends(part, " MiB pool"))
            lab_str_printf(&text, "%s%s", text.length ? ", " : "", part);
    }
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}

/* Of all points with the smallest value; NULL = they differ in it. */
static const char *common_condition(const struct asked *asked) {
    const char *common = NULL;
    for (int g = 0; g < asked->group_count; g++) {
        const struct lab_study_point *least =
            lab_study_find(&asked->groups[g], -1, varying[asked->question][0], asked->values[0]);
        const char *own = least ? condition_of(least, asked->arena) : NULL;
        if (own && common && !lab_str_equal(own, common))
            return NULL;
        common = own ? own : common;
    }
    return common;
}

struct lab_transfer_answer lab_transfer_ask(const struct lab_study_table *study,
                                            const struct lab_study_point *points, int count,
                                            enum lab_transfer_question question,
                                            struct lab_arena *arena) {
    struct asked asked = {.question = question, .study = study, .arena = arena};
    struct lab_transfer_answer answer = {.pooled = lab_claim_none};
    const char *model = "";
    asked.group_count = lab_study_groups(points, count, varying[question], arena, &asked.groups);
    find_values(&asked);
    if (asked.value_count > 1)
        answer.pooled = pool(&asked);
    if (answer.pooled.verdict == LAB_CLAIM_NOT_TESTED)
        return answer;
    answer.at = common_condition(&asked);
    for (int g = 0; g < asked.group_count; g++) {
        if (lab_str_equal(asked.groups[g].points[0]->runs[0]->model, model))
            continue;
        model = asked.groups[g].points[0]->runs[0]->model;
        for (int v = 0; v < asked.value_count; v++)
            add_row(&asked, g, asked.values[v], &answer);
    }
    return answer;
}
