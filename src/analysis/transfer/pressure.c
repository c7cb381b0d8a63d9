/*
 * pressure.c: whether a far node costs more when the pool of inputs is larger: a small pool may sit
 * in caches, a large one comes from the node's memory each time.
 */
#include "analysis/transfer/transfer.h"

#include <math.h>
#include <stdlib.h>

static const char *const varying[] = {"memory_size_mb", "numa_node", NULL};

static const struct lab_study_point *find(const struct lab_study_group *group, int node,
                                          double pool) {
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_run *run = group->points[i]->runs[0];
        if (run->ranks[0].numa_node == node &&
            lab_study_setting_number(run, "memory_size_mb") == pool)
            return group->points[i];
    }
    return NULL;
}

/* The nearest node and the farthest; by number where distances aren't known. false = there is
 * one. */
static bool find_nodes(const struct lab_study_group *group, int *ret_near, int *ret_far) {
    const struct lab_study_rank *near = NULL, *far = NULL;
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_rank *rank = &group->points[i]->runs[0]->ranks[0];
        if (group->points[i]->runs[0]->rank_count != 1)
            return false;
        if (!near || rank->distance < near->distance ||
            (rank->distance == near->distance && rank->numa_node < near->numa_node))
            near = rank;
        if (!far || rank->distance > far->distance ||
            (rank->distance == far->distance && rank->numa_node > far->numa_node))
            far = rank;
    }
    if (!near || near->numa_node == far->numa_node)
        return false;
    *ret_near = near->numa_node;
    *ret_far = far->numa_node;
    return true;
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Pools that ran from both nodes, rising. */
static int find_pools(const struct transfer_pressure *pressure, double *ret_pools) {
    const struct lab_study_group *group = pressure->group;
    int count = 0;
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_run *run = group->points[i]->runs[0];
        double pool = lab_study_setting_number(run, "memory_size_mb");
        if (run->ranks[0].numa_node == pressure->near && pool > 0 &&
            find(group, pressure->near, pool) == group->points[i] &&
            find(group, pressure->far, pool))
            ret_pools[count++] = pool;
    }
    qsort(ret_pools, (size_t)count, sizeof *ret_pools, by_value);
    return count;
}

/* Half of the interval's width, in logarithms. */
static double half_width(const struct lab_study_ratio *ratio) {
    return log(ratio->high / ratio->low) / 2;
}

/* The two penalties come from different runs, so that their errors add up in squares. */
static struct lab_effect find_growth(const struct lab_study_ratio *first,
                                     const struct lab_study_ratio *last) {
    double value = last->ratio / first->ratio, reach = hypot(half_width(first), half_width(last));
    return (struct lab_effect){value,
                               {value * exp(-reach), value * exp(reach), TRANSFER_CONFIDENCE}};
}

static void adjust(struct transfer_pressure *pressures, int count, struct lab_arena *arena) {
    int total = 0, next = 0;
    for (int i = 0; i < count; i++)
        total += pressures[i].count;
    struct lab_study_ratio *ratios = lab_arena_alloc(arena, (size_t)total + 1, sizeof *ratios);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < pressures[i].count; k++)
            ratios[next++] = pressures[i].penalty[k];
    lab_study_adjust(ratios, total);
    next = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < pressures[i].count; k++)
            pressures[i].penalty[k] = ratios[next++];
}

int transfer_pressures(const struct lab_study_point *points, int count, struct lab_arena *arena,
                       struct transfer_pressure **ret_pressures) {
    struct lab_study_group *groups;
    int group_count = lab_study_groups(points, count, varying, arena, &groups), found = 0;
    struct transfer_pressure *pressures =
        lab_arena_alloc(arena, (size_t)group_count + 1, sizeof *pressures);
    for (int g = 0; g < group_count; g++) {
        struct transfer_pressure pressure = {.group = &groups[g]};
        size_t room = (size_t)groups[g].count + 1;
        double *pools = lab_arena_alloc(arena, room, sizeof *pools);
        if (!find_nodes(&groups[g], &pressure.near, &pressure.far))
            continue;
        pressure.count = find_pools(&pressure, pools);
        if (pressure.count < 2)
            continue;
        pressure.pools_mib = pools;
        pressure.penalty = lab_arena_alloc(arena, room, sizeof *pressure.penalty);
        for (int k = 0; k < pressure.count; k++)
            pressure.penalty[k] =
                lab_study_compare(find(&groups[g], pressure.near, pools[k]),
                                  find(&groups[g], pressure.far, pools[k]), LAB_STUDY_RATE);
        pressure.growth = find_growth(&pressure.penalty[0], &pressure.penalty[pressure.count - 1]);
        pressures[found++] = pressure;
    }
    adjust(pressures, found, arena);
    *ret_pressures = pressures;
    return found;
}
