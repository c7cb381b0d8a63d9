/*
 * copies.c: bandwidth and latency of copies. A copy takes a latency and then its bytes at the
 * path's bandwidth, whatever model they are for: in each block one line is fitted to all copies
 * over a path, relative errors alike, and intervals are over the blocks.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_group.h"
#include "analysis/analysis_words.h"
#include "analysis/transfer/transfer.h"
#include "stats/fit.h"

#include "base/list.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>

#define SIZES_LEAST 3 /* a line through two shows nothing of how well it holds */
#define SAME_SIZE   1.02
#define LINE_FAILS  0.99 /* confidence that the bandwidth depends on the size */

static const char *const by_node[] = {"numa_node", NULL};

struct copies {
    const struct lab_study_table *study;
    const struct lab_study_point *points;
    enum lab_transfer_direction direction;
    struct lab_arena *arena;
    struct lab_study_group *groups; /* that differ in the NUMA node alone */
    int group_count, count, blocks;
    bool *reference; /* by point: no node of its device that was tested is nearer */
    bool several;    /* devices */
    bool local;      /* all references are */
    double *sizes;   /* of a path, ascending; the last one listed */
    int size_count;
};

struct filter {         /* of a path's points */
    const char *device; /* with its node; NULL = all devices, by distance */
    int node;
    int distance; /* INT_MAX = references */
};

/* --- one run --- */

static double bytes_of(const struct lab_study_point *point, enum lab_transfer_direction direction) {
    const struct lab_study_work *work = &point->runs[0]->work;
    return direction == LAB_TRANSFER_H2D ? work->h2d_bytes : work->d2h_bytes;
}

/* Bytes a second, while copies of that direction run. */
static double bandwidth_of(const struct lab_study_run *run, const void *context) {
    return 1e9 * (*(const enum lab_transfer_direction *)context == LAB_TRANSFER_H2D
                      ? run->result->h2d_gb_per_s
                      : run->result->d2h_gb_per_s);
}

/* NaN = the point has no copy in that block. */
static double in_block(const struct copies *copies, int point, int block) {
    const struct lab_study_point *at = &copies->points[point];
    for (int i = 0; i < at->count && bytes_of(at, copies->direction) > 0; i++) {
        double value = bandwidth_of(at->runs[i], &copies->direction);
        if (at->runs[i]->run->repeat == block && value > 0 && isfinite(value))
            return value;
    }
    return NAN;
}

static const struct lab_study_rank *rank_of(const struct copies *copies, int point) {
    return &copies->points[point].runs[0]->ranks[0];
}

/* --- paths --- */

static bool is_nearer(const struct lab_study_rank *a, const struct lab_study_rank *b) {
    int of_a = a->distance > 0 ? a->distance : INT_MAX,
        of_b = b->distance > 0 ? b->distance : INT_MAX;
    if ((a->numa_node == a->device_node) != (b->numa_node == b->device_node))
        return a->numa_node == a->device_node;
    return of_a != of_b ? of_a < of_b : a->numa_node < b->numa_node;
}

static void find_references(struct copies *copies) {
    for (int i = 0; i < copies->count; i++) {
        const struct lab_study_rank *rank = rank_of(copies, i);
        copies->reference[i] = true;
        for (int k = 0; k < copies->count; k++) {
            bool same = lab_str_equal(rank_of(copies, k)->device, rank->device);
            copies->several |= !same;
            copies->reference[i] &= !same || !is_nearer(rank_of(copies, k), rank);
        }
        copies->local &= !copies->reference[i] || rank->numa_node == rank->device_node;
    }
}

static bool is_on(const struct copies *copies, const struct filter *path, int point) {
    const struct lab_study_rank *rank = rank_of(copies, point);
    if (path->device)
        return rank->numa_node == path->node && lab_str_equal(rank->device, path->device);
    return path->distance == INT_MAX
               ? copies->reference[point]
               : !copies->reference[point] && rank->distance == path->distance;
}

static void list_sizes(struct copies *copies, const struct filter *path) {
    double *sizes = copies->sizes;
    int count = 0;
    for (int i = 0; i < copies->count; i++)
        if (is_on(copies, path, i) && bytes_of(&copies->points[i], copies->direction) > 0)
            sizes[count++] = bytes_of(&copies->points[i], copies->direction);
    LAB_SORT_NUMBERS(sizes, count);
    copies->size_count = 0;
    for (int i = 0; i < count; i++)
        if (copies->size_count == 0 || sizes[i] > SAME_SIZE * sizes[copies->size_count - 1])
            sizes[copies->size_count++] = sizes[i];
}

/* --- the line --- */

struct line { /* of a block; NaN = unknown */
    double bandwidth;
    double latency_s; /* may be below 0: chance makes it so */
    double bend;      /* of time per byte with the logarithm of the size; 0 of a line */
};

static struct line fit_block(const struct copies *copies, const struct filter *path, int block) {
    LAB_AUTO(arena, scratch);
    size_t room = (size_t)copies->count + 1, n = 0;
    double *x = lab_arena_alloc(&scratch, 7 * room, sizeof *x), *bent = x + 2 * room,
           *y = bent + 3 * room, *weights = y + room;
    for (int i = 0; i < copies->count; i++) {
        double bytes = bytes_of(&copies->points[i], copies->direction);
        double time_s = bytes / in_block(copies, i, block);
        if (!is_on(copies, path, i) || !(time_s > 0))
            continue;
        x[2 * n] = bent[3 * n] = 1;
        x[2 * n + 1] = bent[3 * n + 1] = bytes;
        bent[3 * n + 2] = bytes * log(1e-6 * bytes);
        y[n] = time_s;
        weights[n++] = 1 / (time_s * time_s);
    }
    struct line line = {NAN, NAN, NAN};
    if (n < SIZES_LEAST)
        return line;
    struct lab_fit fit = lab_fit_linear(&(struct lab_fit_data){x, y, weights, n, 2}),
                   with_bend = lab_fit_linear(&(struct lab_fit_data){bent, y, weights, n, 3});
    if (fit.state == LAB_FIT_OK && fit.coefficients[1] > 0)
        line = (struct line){1 / fit.coefficients[1], fit.coefficients[0], NAN};
    if (with_bend.state == LAB_FIT_OK)
        line.bend = with_bend.coefficients[2];
    return line;
}

/* Whether the bandwidth depends on the size beyond what a latency explains, for certain and by an
 * amount that matters between the smallest copies and the largest. */
static bool is_bent(const struct copies *copies, const double *bends, const double *bandwidths) {
    double range = log(copies->sizes[copies->size_count - 1] / copies->sizes[0]);
    double *changes = lab_arena_alloc(copies->arena, (size_t)copies->blocks, sizeof *changes);
    for (int b = 0; b < copies->blocks; b++)
        changes[b] = bends[b] * bandwidths[b] * range;
    struct lab_interval interval =
        lab_stats_mean_interval(changes, (size_t)copies->blocks, LINE_FAILS);
    return interval.low > LAB_CLAIM_NEGLIGIBLE || interval.high < -LAB_CLAIM_NEGLIGIBLE;
}

/* --- claims --- */

static struct lab_claim name_claim(const struct copies *copies, const struct filter *path,
                                   struct lab_claim claim, const char *kind, const char *subject,
                                   const char *reference) {
    const char **scope = NULL;
    claim = lab_claim_named(claim, kind, subject, reference,
                            lab_str_equal(kind, "transfer.latency")     ? "copy latency"
                            : lab_str_equal(kind, "transfer.bandwidth") ? "fitted copy bandwidth"
                                                                        : "copy bandwidth");
    for (int i = 0; i < copies->count && !claim.scope; i++)
        if (is_on(copies, path, i))
            LAB_ADD(scope, claim.scope_count, copies->arena) = copies->points[i].name;
    claim.scope = claim.scope ? claim.scope : scope;
    return claim;
}

/* All points of the path against the same from the device's reference. */
static struct lab_claim compare(const struct copies *copies, const struct filter *path) {
    struct lab_contrast contrast = {
        .arena = copies->arena, .value = bandwidth_of, .context = &copies->direction};
    int pairs = 0;
    for (int g = 0; g < copies->group_count; g++) {
        const struct lab_study_group *group = &copies->groups[g];
        const struct lab_study_point *base = NULL;
        for (int i = 0; i < group->count; i++)
            if (copies->reference[group->points[i] - copies->points])
                base = group->points[i];
        for (int i = 0; base && i < group->count; i++)
            if (group->points[i] != base && bytes_of(base, copies->direction) > 0 &&
                is_on(copies, path, (int)(group->points[i] - copies->points))) {
                lab_contrast_add_pair(&contrast, base, group->points[i], 1);
                pairs++;
            }
    }
    for (int t = 0; t < contrast.count; t++)
        contrast.terms[t].weight /= pairs;
    return lab_claim_estimate(&contrast, LAB_STUDY_RATE);
}

/* `point` is one of the path's. */
static struct lab_transfer_path make_path(struct copies *copies, const struct filter *filter,
                                          int point, const char *title, const char *reference) {
    struct lab_arena *arena = copies->arena;
    const char *subject = lab_arena_printf(
        arena, "%s, %s", title,
        copies->direction == LAB_TRANSFER_H2D ? "host to device" : "device to host");
    int distance = rank_of(copies, point)->distance;
    struct lab_transfer_path path = {.title = title,
                                     .distance = distance > 0 ? distance : (double)NAN,
                                     .reference = copies->reference[point]};
    size_t blocks = (size_t)copies->blocks;
    double *bandwidths = lab_arena_alloc(arena, 3 * blocks, sizeof *bandwidths),
           *latencies_s = bandwidths + blocks, *bends = latencies_s + blocks;
    for (int i = 0; i < copies->count; i++)
        path.points += is_on(copies, filter, i);
    for (int b = 0; b < copies->blocks; b++) {
        struct line line = fit_block(copies, filter, b);
        bandwidths[b] = line.bandwidth;
        latencies_s[b] = line.latency_s;
        bends[b] = line.bend;
    }
    int used = copies->blocks;
    if (copies->size_count < SIZES_LEAST || is_bent(copies, bends, bandwidths))
        used = 0;
    path.bandwidth = name_claim(copies, filter, lab_claim_from_blocks(bandwidths, used, "B/s"),
                                "transfer.bandwidth", subject, "");
    path.latency = name_claim(copies, filter, lab_claim_from_amounts(latencies_s, used, "s"),
                              "transfer.latency", subject, "");
    path.change = path.reference ? name_claim(copies, filter, lab_claim_none, "transfer.node",
                                              reference, reference)
                                 : name_claim(copies, filter, compare(copies, filter),
                                              "transfer.node", subject, reference);
    return path;
}

static void add_sizes(const struct copies *copies, const struct filter *filter,
                      const struct lab_transfer_path *path, struct lab_transfer_copies *made) {
    struct lab_arena *arena = copies->arena;
    double *means = lab_arena_alloc(arena, (size_t)copies->blocks + 1, sizeof *means);
    for (int s = 0; s < copies->size_count; s++) {
        double size = copies->sizes[s];
        const char *example = NULL;
        for (int b = 0; b < copies->blocks; b++) {
            double sum = 0;
            int values = 0;
            for (int i = 0; i < copies->count; i++) {
                double bytes = bytes_of(&copies->points[i], copies->direction),
                       value = in_block(copies, i, b);
                if (isnan(value) || bytes < size || bytes > SAME_SIZE * size ||
                    !is_on(copies, filter, i))
                    continue;
                example = example ? example : lab_study_point_model(&copies->points[i], arena);
                sum += log(value);
                values++;
            }
            means[b] = exp(sum / values); /* NaN without a value */
        }
        struct lab_claim claim = lab_claim_from_blocks(means, copies->blocks, "B/s");
        const char *subject =
            lab_arena_printf(arena, "%s, %.3g MB", path->bandwidth.subject, 1e-6 * size);
        if (example)
            LAB_ADD(made->sizes, made->size_count, arena) = (struct lab_transfer_size){
                path->title, example, size, 1e-6 * size,
                name_claim(copies, filter, claim, "transfer.size", subject, "")};
    }
}

/* --- the whole --- */

static void add_path(struct copies *copies, const struct filter *filter, int point,
                     struct lab_transfer_copies *made) {
    struct lab_arena *arena = copies->arena;
    const struct lab_study_rank *rank = rank_of(copies, point);
    const char *title, *reference = copies->local ? "the local node" : "the nearest node tested";
    if (filter->device) {
        title = lab_arena_printf(arena, "%s%s", lab_study_device_title(rank->device, arena),
                                 lab_words_node(rank->numa_node, arena));
        for (int i = 0; i < copies->count; i++)
            if (copies->reference[i] && lab_str_equal(rank_of(copies, i)->device, rank->device))
                reference = lab_arena_printf(arena, "NUMA node %d", rank_of(copies, i)->numa_node);
    } else if (filter->distance == INT_MAX) {
        title = copies->local ? "Local NUMA nodes" : "Nearest NUMA nodes";
    } else {
        title = rank->distance > 0
                    ? lab_arena_printf(arena, "NUMA nodes at distance %d", rank->distance)
                    : "Remote NUMA nodes";
    }
    list_sizes(copies, filter);
    struct lab_transfer_path path = make_path(copies, filter, point, title, reference);
    if (!filter->device == copies->several)
        add_sizes(copies, filter, &path, made);
    LAB_ADD(made->paths, made->path_count, arena) = path;
}

/* Over all devices, or each device's own. */
static void add_paths(struct copies *copies, bool pooled, struct lab_transfer_copies *made) {
    for (int distance = INT_MAX; distance >= 0;) {
        struct filter level = {.distance = distance};
        int next = -1;
        for (int i = 0; i < copies->count; i++) {
            const struct lab_study_rank *rank = rank_of(copies, i);
            struct filter own = {rank->device, rank->numa_node, 0};
            bool listed = false;
            if (!copies->reference[i] && rank->distance < distance && rank->distance > next)
                next = rank->distance;
            if (!is_on(copies, &level, i))
                continue;
            for (int k = 0; k < i; k++)
                listed |= is_on(copies, pooled ? &level : &own, k);
            if (!listed)
                add_path(copies, pooled ? &level : &own, i, made);
        }
        distance = next;
    }
}

struct lab_transfer_copies lab_transfer_copies_make(const struct lab_study_table *study,
                                                    const struct lab_study_point *points, int count,
                                                    enum lab_transfer_direction direction,
                                                    struct lab_arena *arena) {
    struct copies copies = {study, points, direction, arena, .count = count, .local = true};
    struct lab_transfer_copies made = {0};
    copies.group_count = lab_study_groups(points, count, by_node, arena, &copies.groups);
    copies.reference = lab_arena_alloc(arena, (size_t)count + 1, sizeof *copies.reference);
    copies.sizes = lab_arena_alloc(arena, (size_t)count + 1, sizeof *copies.sizes);
    for (int i = 0; i < count; i++)
        for (int r = 0; r < points[i].count; r++)
            if (points[i].runs[r]->run->repeat >= copies.blocks)
                copies.blocks = points[i].runs[r]->run->repeat + 1;
    find_references(&copies);
    if (copies.several)
        add_paths(&copies, true, &made);
    add_paths(&copies, false, &made);
    return made;
}
