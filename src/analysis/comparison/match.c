/* match.c: points of two sets that ran the same, axes that tell them apart, what else differs. */
#include "analysis/comparison/match.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/str.h"

#include <string.h>

struct matching {
    const struct lab_point_set *sets[2];
    const char **names; /* of all axes */
    bool *through;      /* one value in each set: no matter for the match */
    int count;
    struct lab_arena *arena;
};

/* --- axes --- */

static void add_names(struct matching *matching, const struct lab_point_set *set) {
    for (int p = 0; p < set->point_count; p++)
        for (int a = 0; a < set->points[p].axis_count; a++) {
            const char *name = set->points[p].axes[a].name;
            int i = 0;
            while (i < matching->count && !lab_str_equal(matching->names[i], name))
                i++;
            if (i == matching->count)
                LAB_ADD(matching->names, matching->count, matching->arena) = name;
        }
}

/* Whether all points of the set have the same text of an axis, or all have none. */
static bool is_constant(const struct lab_point_set *set, const char *name) {
    for (int p = 1; p < set->point_count; p++)
        if (!lab_str_equal(lab_point_axis(&set->points[p], name),
                           lab_point_axis(&set->points[0], name)))
            return false;
    return true;
}

static bool is_always_matched(const char *name) {
    static const char *const names[] = {"workload", "model", "benchmark", "test", NULL};
    return lab_str_find(name, names) >= 0;
}

static void find_axes(struct matching *matching) {
    add_names(matching, matching->sets[0]);
    add_names(matching, matching->sets[1]);
    matching->through =
        lab_arena_alloc(matching->arena, (size_t)matching->count + 1, sizeof *matching->through);
    for (int i = 0; i < matching->count; i++)
        matching->through[i] = !is_always_matched(matching->names[i]) &&
                               is_constant(matching->sets[0], matching->names[i]) &&
                               is_constant(matching->sets[1], matching->names[i]);
}

/* What a point ran, in one number: quantity and matched axes. */
static uint64_t identity_of(const struct matching *matching, const struct lab_point *point) {
    uint64_t hash = lab_hash_text(LAB_HASH_START, point->quantity);
    for (int i = 0; i < matching->count; i++) {
        const char *text = matching->through[i] ? NULL : lab_point_axis(point, matching->names[i]);
        hash = lab_hash_text(lab_hash_text(hash, "\n"), text ? text : "\t");
    }
    return hash;
}

static uint64_t *identities_of(const struct matching *matching, const struct lab_point_set *set) {
    uint64_t *all = lab_arena_alloc(matching->arena, (size_t)set->point_count + 1, sizeof *all);
    for (int p = 0; p < set->point_count; p++)
        all[p] = identity_of(matching, &set->points[p]);
    return all;
}

/* --- axes to show --- */

struct groups { /* points of a set that the chosen axes don't tell apart */
    const struct lab_point_set *set;
    int *first; /* of each point's group: its first point */
};

static bool differ(const struct groups *groups, int p, int q, const char *name) {
    return !lab_str_equal(lab_point_axis(&groups->set->points[p], name),
                          lab_point_axis(&groups->set->points[q], name));
}

static bool is_split(const struct groups *groups, const char *name) {
    for (int p = 0; p < groups->set->point_count; p++)
        if (differ(groups, p, groups->first[p], name))
            return true;
    return false;
}

static void split(struct groups *groups, const char *name) {
    int count = groups->set->point_count;
    for (int p = count - 1; p >= 0; p--) { /* the first of a group stays it until last */
        int q = groups->first[p];
        while (groups->first[q] != groups->first[p] || differ(groups, p, q, name))
            q++;
        groups->first[p] = q;
    }
}

/* Only those that tell points apart which the ones before them don't: a model's depth goes with
 * its name. */
static void choose_axes(const struct matching *matching, struct lab_comparison *comparison) {
    static const char *const first[] = {"benchmark", "test",      "workload",
                                        "device",    "numa_node", "model"};
    struct groups groups[2];
    const char **order = NULL;
    int count = 0;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (lab_list_find_text(matching->names, matching->count, first[i]) >= 0)
            LAB_ADD(order, count, matching->arena) = first[i];
    for (int i = 0; i < matching->count; i++)
        if (lab_list_find_text(order, count, matching->names[i]) < 0)
            LAB_ADD(order, count, matching->arena) = matching->names[i];
    for (int s = 0; s < 2; s++)
        groups[s] = (struct groups){matching->sets[s],
                                    lab_arena_alloc(matching->arena,
                                                    (size_t)matching->sets[s]->point_count + 1,
                                                    sizeof *groups[s].first)};
    for (int i = 0; i < count; i++)
        if (is_split(&groups[0], order[i]) || is_split(&groups[1], order[i])) {
            split(&groups[0], order[i]);
            split(&groups[1], order[i]);
            LAB_ADD(comparison->axes, comparison->axis_count, matching->arena) = order[i];
        }
}

/* --- facts --- */

static void add_fact(struct lab_comparison *comparison, const struct lab_compared_fact *fact,
                     struct lab_arena *arena) {
    if (!lab_str_equal(fact->base, fact->other))
        LAB_ADD(comparison->facts, comparison->fact_count, arena) = *fact;
}

/* "batch_size" of the points is "experiment.test.batch_size" of the config. */
static bool is_in_config(const struct lab_comparison *comparison, const char *axis) {
    for (int i = 0; i < comparison->fact_count; i++) {
        const char *name = comparison->facts[i].name, *dot = strrchr(name, '.');
        if (lab_str_equal(comparison->facts[i].topic, "config") &&
            lab_str_equal(dot ? dot + 1 : name, axis))
            return true;
    }
    return false;
}

/* A machine's identity is a hash: it stands only where nothing else tells the machines apart. */
static void drop_identity(struct lab_comparison *comparison) {
    int machine = 0, kept = 0;
    for (int i = 0; i < comparison->fact_count; i++)
        machine += lab_str_equal(comparison->facts[i].topic, "machine");
    for (int i = 0; i < comparison->fact_count; i++)
        if (machine == 1 || !lab_str_equal(comparison->facts[i].name, "identity"))
            comparison->facts[kept++] = comparison->facts[i];
    comparison->fact_count = kept;
}

static void find_facts(const struct matching *matching, struct lab_comparison *comparison) {
    const struct lab_point_set *base = matching->sets[0], *other = matching->sets[1];
    for (int i = 0; i < base->fact_count; i++) {
        const struct lab_fact *fact = &base->facts[i];
        add_fact(comparison,
                 &(struct lab_compared_fact){fact->topic, fact->name, fact->text,
                                             lab_point_set_fact(other, fact->topic, fact->name)},
                 matching->arena);
    }
    for (int i = 0; i < other->fact_count; i++) {
        const struct lab_fact *fact = &other->facts[i];
        if (!lab_point_set_fact(base, fact->topic, fact->name))
            add_fact(comparison,
                     &(struct lab_compared_fact){fact->topic, fact->name, NULL, fact->text},
                     matching->arena);
    }
    drop_identity(comparison);
    for (int i = 0; i < matching->count && base->point_count && other->point_count; i++)
        if (matching->through[i] && !is_in_config(comparison, matching->names[i]))
            add_fact(
                comparison,
                &(struct lab_compared_fact){"config", matching->names[i],
                                            lab_point_axis(&base->points[0], matching->names[i]),
                                            lab_point_axis(&other->points[0], matching->names[i])},
                matching->arena);
}

/* --- points --- */

struct named {
    const char *name;
    const struct lab_point *point;
};

/* A study runs them at random. */
static void sort_points(const struct lab_comparison *comparison, const struct lab_point **points,
                        int count, struct lab_arena *arena) {
    struct named *all = lab_arena_alloc(arena, (size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = (struct named){lab_comparison_point_name(comparison, points[i], arena), points[i]};
    LAB_SORT(all, count, LAB_BY(all, name));
    for (int i = 0; i < count; i++)
        points[i] = all[i].point;
}

/* Whether the set has no value of the point because it failed there. */
static bool has_failed(const struct lab_point_set *set, const struct lab_point *point) {
    for (int i = 0; i < set->failure_count; i++)
        if (lab_point_failed(point, &set->failures[i]))
            return true;
    return false;
}

void lab_comparison_match(const struct lab_point_set *base, const struct lab_point_set *other,
                          struct lab_arena *arena, struct lab_comparison *ret_comparison) {
    struct matching matching = {.sets = {base, other}, .arena = arena};
    struct lab_comparison comparison = {.base = base, .other = other};
    bool *taken = lab_arena_alloc(arena, (size_t)other->point_count + 1, sizeof *taken);
    find_axes(&matching);
    const uint64_t *ours = identities_of(&matching, base),
                   *theirs = identities_of(&matching, other);
    for (int p = 0; p < base->point_count; p++) {
        const struct lab_point *point = &base->points[p];
        int q = 0;
        while (q < other->point_count && (taken[q] || ours[p] != theirs[q]))
            q++;
        bool whole = q < other->point_count && point->count > 0 && other->points[q].count > 0;
        if (whole)
            LAB_ADD(comparison.points, comparison.point_count, arena) =
                (struct lab_compared_point){.base = point, .other = &other->points[q]};
        else if (point->count > 0 && has_failed(other, point))
            comparison.failed_count += !point->better;
        else if (point->count > 0 && !point->better)
            LAB_ADD(comparison.missing, comparison.missing_count, arena) = point;
        if (whole)
            taken[q] = true;
    }
    for (int q = 0; q < other->point_count; q++)
        if (!taken[q] && other->points[q].count > 0 && !other->points[q].better &&
            !has_failed(base, &other->points[q]))
            LAB_ADD(comparison.added, comparison.added_count, arena) = &other->points[q];
    choose_axes(&matching, &comparison);
    find_facts(&matching, &comparison);
    sort_points(&comparison, comparison.missing, comparison.missing_count, arena);
    sort_points(&comparison, comparison.added, comparison.added_count, arena);
    *ret_comparison = comparison;
}
