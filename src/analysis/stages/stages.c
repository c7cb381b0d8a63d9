/* stages.c: stage times of runs; blocks and series of points. */
#include "analysis/stages/stages.h"

#include "analysis/analysis_words.h"

#include "base/list.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <string.h>

const char *const lab_stage_model_keys[] = {"model", "patch_size", "depth",  "heads",
                                            "dim",   "mlp_dim",    "series", NULL};

/* --- times --- */

static double median_s(const struct lab_study_rank *rank, enum lab_stage stage) {
    LAB_AUTO_FREE double *lengths = lab_mem_alloc(rank->iteration_count + 1, sizeof *lengths);
    size_t n = 0;
    for (size_t i = 0; i < rank->iteration_count; i++) {
        const struct lab_span *span = &rank->iterations[i].stages[stage];
        if (span->end_ns > span->start_ns)
            lengths[n++] = 1e-9 * (double)(span->end_ns - span->start_ns);
    }
    return n > 0 ? lab_stats_median(lengths, n) : 0;
}

static double copied_s(double bytes, double gb_per_s) {
    return bytes > 0 ? 1e-9 * bytes / gb_per_s : 0;
}

struct lab_stage_times lab_stage_times_of(const struct lab_study_run *run) {
    const struct lab_study_rank *rank = &run->ranks[0];
    struct lab_stage_times times = {0, 0, 0};
    if (run->rank_count == 1 && rank->iterations && rank->iteration_count > 0)
        times = (struct lab_stage_times){median_s(rank, LAB_STAGE_H2D),
                                         median_s(rank, LAB_STAGE_COMPUTE),
                                         median_s(rank, LAB_STAGE_D2H)};
    if (times.h2d_s + times.compute_s + times.d2h_s > 0)
        return times;
    double samples = run->work.samples > 0 ? run->work.samples : 1;
    return (struct lab_stage_times){
        copied_s(run->work.h2d_bytes, run->result->h2d_gb_per_s),
        run->result->compute_utilization * samples / run->rate,
        copied_s(run->work.d2h_bytes, run->result->d2h_gb_per_s),
    };
}

double lab_stage_transfer_s(const struct lab_stage_times *times) {
    return times->h2d_s > times->d2h_s || isnan(times->h2d_s) ? times->h2d_s : times->d2h_s;
}

double lab_stage_excess(const struct lab_study_run *run, const void *context) {
    struct lab_stage_times times = lab_stage_times_of(run);
    (void)context;
    return times.compute_s / lab_stage_transfer_s(&times);
}

enum lab_stage_bound lab_stage_bound_of(const struct lab_study_point *const *points, int count,
                                        struct lab_arena *arena) {
    struct lab_contrast excess = {.arena = arena, .value = lab_stage_excess};
    for (int i = 0; i < count; i++) {
        struct lab_stage_times times = lab_stage_times_of(points[i]->runs[0]);
        if (lab_stage_transfer_s(&times) > 0)
            lab_contrast_add(&excess, points[i], 1);
    }
    for (int t = 0; t < excess.count; t++)
        excess.terms[t].weight /= excess.count;
    if (excess.count == 0)
        return LAB_STAGE_BOUND_OPEN;
    if (!(lab_study_complexity(points[0]->runs[0]) > 0)) /* copies only */
        return LAB_STAGE_BOUND_TRANSFER;
    struct lab_claim claim = lab_claim_estimate(&excess, LAB_STUDY_TIME);
    if (isnan(claim.effect) || (claim.verdict != LAB_CLAIM_YES && !isnan(claim.low)))
        return LAB_STAGE_BOUND_OPEN;
    return claim.effect < 0 ? LAB_STAGE_BOUND_TRANSFER : LAB_STAGE_BOUND_COMPUTE;
}

bool lab_stage_is_transfer_bound(const struct lab_study_point *const *points, int count,
                                 struct lab_arena *arena) {
    return lab_stage_bound_of(points, count, arena) == LAB_STAGE_BOUND_TRANSFER;
}

const char *lab_stage_bound_words(const char *const *models, int count, const char *counted,
                                  struct lab_arena *arena) {
    for (int i = 0; i < count; i++)
        if (count > 2 || strchr(models[i], ','))
            return counted;
    return count == 2 ? lab_arena_printf(arena, "transfer-bound %s and %s", models[0], models[1])
                      : lab_arena_printf(arena, "transfer-bound %s", models[0]);
}

#define NAMES_MOST 4

/* "vit0x0x0 and vit32x2x256"; of more than are read, "9 models" */
static const char *name_models(const char *const *names, int count, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (count > NAMES_MOST)
        lab_str_printf(&text, "%d models", count);
    else
        lab_str_add_list(&text, names, "and");
    return lab_arena_strdup(arena, text.text);
}

const char *lab_study_bound_words(const struct lab_study_point *points, int count,
                                  struct lab_arena *arena) {
    const char **seen = NULL, **names[2] = {NULL};
    int seen_count = 0, counts[2] = {0};
    for (int i = 0; i < count; i++) {
        const char *model = lab_study_point_model(&points[i], arena);
        struct lab_stage_times times = lab_stage_times_of(points[i].runs[0]);
        if (!(lab_stage_transfer_s(&times) > 0) || lab_list_find_text(seen, seen_count, model) >= 0)
            continue;
        const struct lab_study_point **own = NULL;
        int own_count = 0;
        for (int k = i; k < count; k++)
            if (lab_str_equal(lab_study_point_model(&points[k], arena), model))
                LAB_ADD(own, own_count, arena) = &points[k];
        int kind = lab_stage_is_transfer_bound(own, own_count, arena) ? 0 : 1;
        LAB_ADD(seen, seen_count, arena) = model;
        LAB_ADD(names[kind], counts[kind], arena) = model;
    }
    for (int k = 0; k < 2; k++)
        LAB_ADD(names[k], counts[k], arena) = NULL;
    const char *transfer = name_models(names[0], counts[0] - 1, arena),
               *compute = name_models(names[1], counts[1] - 1, arena);
    if (seen_count == 0)
        return NULL;
    if (!*transfer || !*compute)
        return lab_arena_printf(arena, "%s takes longer: %s", *transfer ? "Transfer" : "Compute",
                                *transfer ? transfer : compute);
    return lab_arena_printf(arena, "Transfer takes longer: %s; compute takes longer: %s", transfer,
                            compute);
}

/* --- blocks --- */

const struct lab_study_run *lab_stage_run(const struct lab_study_point *point, int repeat) {
    for (int i = 0; i < point->count; i++)
        if (point->runs[i]->run->repeat == repeat)
            return point->runs[i];
    return NULL;
}

int lab_stage_blocks(const struct lab_study_point *const *points, int count,
                     struct lab_arena *arena, int **ret_repeats) {
    int *repeats = NULL, blocks = 0;
    for (int r = 0; count > 0 && r < points[0]->count; r++) {
        int repeat = points[0]->runs[r]->run->repeat;
        bool whole = true;
        for (int i = 1; i < count; i++)
            whole = whole && lab_stage_run(points[i], repeat);
        if (whole)
            LAB_ADD(repeats, blocks, arena) = repeat;
    }
    *ret_repeats = repeats;
    return blocks;
}

/* --- models --- */

const char *lab_stage_title(const struct lab_study_group *group, struct lab_arena *arena) {
    const struct lab_study_run *run = group->points[0]->runs[0];
    if (run->rank_count != 1)
        return group->name;
    return lab_arena_printf(arena, "%s%s%s%s", lab_study_device_title(run->ranks[0].device, arena),
                            lab_words_node(run->ranks[0].numa_node, arena),
                            *group->what ? ", " : "", group->what);
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static double mlp_ratio(const struct lab_study_run *run) {
    double width = lab_study_setting_number(run, "mlp_dim");
    return width == 0 ? 4 : width / lab_study_setting_number(run, "dim");
}

static bool differ_in_key_alone(const struct lab_study_run *a, const struct lab_study_run *b,
                                const char *key) {
    static const char *const keys[] = {"patch_size", "depth", "heads", "dim"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!lab_str_equal(keys[i], key) &&
            !same(lab_study_setting_number(a, keys[i]), lab_study_setting_number(b, keys[i])))
            return false;
    return same(mlp_ratio(a), mlp_ratio(b));
}

/* Those of the anchor's series by rising key, each value once; returns how many. */
static int gather(const struct lab_study_group *group, const struct lab_study_run *anchor,
                  const char *key, const struct lab_study_point **ret_points) {
    int count = 0;
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_run *run = group->points[i]->runs[0];
        double value = lab_study_setting_number(run, key);
        int at = count;
        if (!(value > 0) || !differ_in_key_alone(anchor, run, key))
            continue;
        while (at > 0 && lab_study_setting_number(ret_points[at - 1]->runs[0], key) > value)
            at--;
        if (at > 0 && lab_study_setting_number(ret_points[at - 1]->runs[0], key) == value)
            continue;
        for (int k = count++; k > at; k--)
            ret_points[k] = ret_points[k - 1];
        ret_points[at] = group->points[i];
    }
    return count;
}

struct lab_stage_series lab_stage_series_find(const struct lab_study_group *group, const char *key,
                                              struct lab_arena *arena) {
    struct lab_stage_series series = {.key = key};
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_point **points =
            lab_arena_alloc(arena, (size_t)group->count, sizeof *points);
        int count = gather(group, group->points[i]->runs[0], key, points);
        if (count > series.count && count > 1) {
            series.points = points;
            series.count = count;
        }
    }
    return series;
}

/* --- several devices --- */

static const struct lab_study_rank *rank_of(const struct lab_stage_estimates *estimates) {
    return &estimates->group->points[0]->runs[0]->ranks[0];
}

/* 0 = local; unknown ones by their nodes, behind all others. */
static int distance_of(const struct lab_stage_estimates *estimates) {
    enum { UNKNOWN = 1 << 20 };
    const struct lab_study_rank *rank = rank_of(estimates);
    return rank->device_node >= 0 && rank->device_node == rank->numa_node ? 0
           : rank->distance > 0                                           ? rank->distance
                                : UNKNOWN + rank->numa_node;
}

/* "NUMA node 0" where all have that one. */
static const char *nodes_title(const struct lab_stage_estimates *const *members, int count,
                               struct lab_arena *arena) {
    int node = rank_of(members[0])->numa_node;
    for (int i = 1; i < count; i++)
        if (rank_of(members[i])->numa_node != node)
            return distance_of(members[0]) == 0
                       ? ", local NUMA nodes"
                       : lab_arena_printf(arena, ", NUMA nodes at distance %d",
                                          distance_of(members[0]));
    return lab_words_node(node, arena);
}

/* Each once, by their numbers; NULL = there are fewer than so many. */
static const char *device_names(const struct lab_stage_estimates *const *members, int count,
                                int least, struct lab_arena *arena) {
    const struct lab_study_rank **ranks = NULL;
    const char **names = NULL;
    int rank_count = 0, name_count = 0;
    for (int i = 0; i < count; i++)
        LAB_ADD(ranks, rank_count, arena) = rank_of(members[i]);
    LAB_SORT_REFS(ranks, rank_count, LAB_BY(*ranks, device));
    for (int i = 0; i < rank_count; i++)
        if (i == 0 || !lab_str_equal(ranks[i]->device, ranks[i - 1]->device))
            LAB_ADD(names, name_count, arena) = lab_study_device_title(ranks[i]->device, arena);
    return name_count < least ? NULL : lab_words_devices(names, name_count, arena);
}

static struct lab_stage_pooled pool(const struct lab_stage_estimates *const *members, int count,
                                    struct lab_arena *arena) {
    struct lab_stage_pooled made = {
        .blocks = members[0]->blocks, .members = members, .member_count = count};
    for (int i = 1; i < count; i++)
        made.blocks = members[i]->blocks < made.blocks ? members[i]->blocks : made.blocks;
    made.values = lab_arena_alloc(arena, (size_t)made.blocks + 1, sizeof *made.values);
    for (int b = 0; b < made.blocks; b++) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += log(members[i]->values[b]);
        made.values[b] = exp(sum / count);
    }
    return made;
}

int lab_stage_pool(const struct lab_stage_estimates *groups, int count, struct lab_arena *arena,
                   struct lab_stage_pooled **ret_pooled) {
    const struct lab_study_group *first = NULL;
    int made_count = 0;
    for (int at = -1, next; at < INT_MAX; at = next) { /* distance by distance */
        const struct lab_stage_estimates **members = NULL, **others = NULL;
        int member_count = 0, other_count = 0;
        next = INT_MAX;
        for (int g = 0; g < count; g++) {
            if (!groups[g].group)
                continue;
            first = first ? first : groups[g].group;
            if (!lab_str_equal(groups[g].group->what, first->what))
                continue;
            int own = distance_of(&groups[g]);
            if (own > at && own < next)
                next = own;
            if (own == at && groups[g].values)
                LAB_ADD(members, member_count, arena) = &groups[g];
            else if (own == at)
                LAB_ADD(others, other_count, arena) = &groups[g];
        }
        const char *names = members ? device_names(members, member_count, 2, arena) : NULL;
        if (!names)
            continue;
        struct lab_stage_pooled made = pool(members, member_count, arena);
        made.title =
            lab_arena_printf(arena, "%s%s%s%s", names, nodes_title(members, member_count, arena),
                             *first->what ? ", " : "", first->what);
        made.without = device_names(others, other_count, 1, arena);
        LAB_ADD(*ret_pooled, made_count, arena) = made;
    }
    return made_count;
}

bool lab_stage_is_pooled(const struct lab_stage_pooled *pooled, int count,
                         const struct lab_stage_estimates *group) {
    for (int i = 0; i < count; i++)
        for (int m = 0; m < pooled[i].member_count; m++)
            if (pooled[i].members[m] == group)
                return true;
    return false;
}
