/* point_set.c: points by their axes, and as JSON. */
#include "model/point_set.h"

#include "base/list.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <string.h>

bool lab_quantity_less_is_better(const char *quantity) {
    static const char *const names[] = {"time", "CPU time", "latency", NULL};
    return lab_str_find(quantity, names) >= 0;
}

bool lab_point_less_is_better(const struct lab_point *point) {
    return point->better ? point->better == LAB_DIRECTION_LOWER
                         : lab_quantity_less_is_better(point->quantity);
}

const char *lab_point_axis(const struct lab_point *point, const char *name) {
    int axis = LAB_FIND(point->axes, point->axis_count, name, name);
    return axis < 0 ? NULL : point->axes[axis].text;
}

bool lab_point_failed(const struct lab_point *point, const struct lab_point_failure *failure) {
    for (int i = 0; i < failure->axis_count; i++)
        if (!lab_str_equal(lab_point_axis(point, failure->axes[i].name), failure->axes[i].text))
            return false;
    return true;
}

const char *lab_point_set_fact(const struct lab_point_set *set, const char *topic,
                               const char *name) {
    for (int i = 0; i < set->fact_count; i++)
        if (lab_str_equal(set->facts[i].topic, topic) && lab_str_equal(set->facts[i].name, name))
            return set->facts[i].text;
    return NULL;
}

const char *lab_point_set_other_machine(const struct lab_point_set *a,
                                        const struct lab_point_set *b, struct lab_arena *arena) {
    for (int i = 0; i < a->fact_count; i++) {
        const struct lab_fact *fact = &a->facts[i];
        const char *theirs = lab_point_set_fact(b, fact->topic, fact->name);
        if (lab_str_equal(fact->topic, "machine") && theirs && !lab_str_equal(theirs, fact->text))
            return lab_arena_printf(arena, "%s: %s, %s", fact->name, fact->text, theirs);
    }
    return NULL;
}

/* --- building --- */

/* Room for one more, in the arena: doubled at powers of two. */
static void *grow(void *items, int count, size_t size, struct lab_arena *arena) {
    if (count & (count - 1))
        return items;
    char *more = lab_arena_alloc(arena, count ? 2 * (size_t)count : 1, size);
    if (count)
        memcpy(more, items, (size_t)count * size);
    return more;
}

void lab_point_set_add_fact(struct lab_point_set *set, const char *topic, const char *name,
                            const char *text, struct lab_arena *arena) {
    set->facts = grow(set->facts, set->fact_count, sizeof *set->facts, arena);
    set->facts[set->fact_count++] = (struct lab_fact){topic, name, text};
}

/* Two lists of one study's points have their axes in one order mostly. */
static bool has_axes(const struct lab_point *point, const struct lab_axis_setting *axes,
                     int count) {
    if (point->axis_count != count)
        return false;
    for (int i = 0; i < count; i++) {
        bool in_order = lab_str_equal(point->axes[i].name, axes[i].name);
        const char *text = in_order ? point->axes[i].text : lab_point_axis(point, axes[i].name);
        if (!lab_str_equal(text, axes[i].text))
            return false;
    }
    return true;
}

struct lab_point *lab_point_set_point(struct lab_point_set *set,
                                      const struct lab_axis_setting *axes, int axis_count,
                                      const char *quantity, const char *unit,
                                      struct lab_arena *arena) {
    for (int i = 0; i < set->point_count; i++)
        if (has_axes(&set->points[i], axes, axis_count) &&
            lab_str_equal(set->points[i].quantity, quantity))
            return &set->points[i];
    set->points = grow(set->points, set->point_count, sizeof *set->points, arena);
    struct lab_point *point = &set->points[set->point_count++];
    *point =
        (struct lab_point){.axes = lab_arena_copy(arena, axes, (size_t)axis_count, sizeof *axes),
                           .axis_count = axis_count,
                           .quantity = quantity,
                           .unit = unit};
    return point;
}

void lab_point_add_value(struct lab_point *point, double value, int block,
                         struct lab_arena *arena) {
    if (!(value > 0) || !isfinite(value))
        return;
    point->values = grow(point->values, point->count, sizeof *point->values, arena);
    point->blocks = grow(point->blocks, point->count, sizeof *point->blocks, arena);
    point->values[point->count] = value;
    point->blocks[point->count++] = block;
}

void lab_point_set_add_failure(struct lab_point_set *set, const struct lab_axis_setting *axes,
                               int axis_count, const char *reason, struct lab_arena *arena) {
    struct lab_point failed = {.axes =
                                   lab_arena_copy(arena, axes, (size_t)axis_count, sizeof *axes),
                               .axis_count = axis_count};
    for (int i = 0; i < set->failure_count; i++)
        if (has_axes(&failed, set->failures[i].axes, set->failures[i].axis_count) &&
            lab_str_equal(set->failures[i].reason, reason))
            return;
    set->failures = grow(set->failures, set->failure_count, sizeof *set->failures, arena);
    set->failures[set->failure_count++] =
        (struct lab_point_failure){failed.axes, axis_count, reason};
}

static int blocks_of(const struct lab_point_set *set) {
    int last = -1;
    for (int p = 0; p < set->point_count; p++)
        for (int i = 0; i < set->points[p].count; i++)
            last = set->points[p].blocks[i] > last ? set->points[p].blocks[i] : last;
    return last + 1;
}

void lab_point_set_merge(struct lab_point_set *set, const struct lab_point_set *other,
                         struct lab_arena *arena) {
    int first = blocks_of(set);
    for (int p = 0; p < other->point_count; p++) {
        const struct lab_point *from = &other->points[p];
        struct lab_point *to = lab_point_set_point(set, from->axes, from->axis_count,
                                                   from->quantity, from->unit, arena);
        to->is_sum = from->is_sum;
        to->better = from->better;
        for (int i = 0; i < from->count; i++)
            lab_point_add_value(to, from->values[i], first + from->blocks[i], arena);
    }
    for (int i = 0; i < other->fact_count; i++)
        if (!lab_point_set_fact(set, other->facts[i].topic, other->facts[i].name))
            lab_point_set_add_fact(set, other->facts[i].topic, other->facts[i].name,
                                   other->facts[i].text, arena);
    for (int i = 0; i < other->failure_count; i++)
        lab_point_set_add_failure(set, other->failures[i].axes, other->failures[i].axis_count,
                                  other->failures[i].reason, arena);
    set->simulated |= other->simulated;
}

/* --- writing --- */

static void set_axes(struct lab_value *map, const struct lab_axis_setting *axes, int count,
                     struct lab_arena *arena) {
    struct lab_value *value = lab_value_map(arena);
    for (int i = 0; i < count; i++)
        lab_value_set_string(arena, value, axes[i].name, axes[i].text);
    lab_value_set(arena, map, "axes", value);
}

static struct lab_value *point_value(const struct lab_point *point, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *values = lab_value_list(arena),
                     *blocks = lab_value_list(arena);
    set_axes(map, point->axes, point->axis_count, arena);
    for (int i = 0; i < point->count; i++) {
        lab_value_append(arena, values, lab_value_float(arena, point->values[i]));
        lab_value_append(arena, blocks, lab_value_int(arena, point->blocks[i]));
    }
    lab_value_set_string(arena, map, "quantity", point->quantity);
    lab_value_set_string(arena, map, "unit", point->unit);
    if (point->is_sum)
        lab_value_set_bool(arena, map, "is_sum", true);
    if (point->better)
        lab_value_set_string(arena, map, "better",
                             point->better == LAB_DIRECTION_LOWER ? "lower" : "higher");
    lab_value_set(arena, map, "values", values);
    lab_value_set(arena, map, "blocks", blocks);
    return map;
}

static struct lab_value *failures_value(const struct lab_point_set *set, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < set->failure_count; i++) {
        struct lab_value *map = lab_value_map(arena);
        set_axes(map, set->failures[i].axes, set->failures[i].axis_count, arena);
        lab_value_set_string(arena, map, "reason", set->failures[i].reason);
        lab_value_append(arena, list, map);
    }
    return list;
}

struct lab_value *lab_point_sets_value(const struct lab_point_set *sets, int count,
                                       struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int s = 0; s < count; s++) {
        const struct lab_point_set *set = &sets[s];
        struct lab_value *map = lab_value_map(arena), *facts = lab_value_list(arena),
                         *points = lab_value_list(arena);
        for (int i = 0; i < set->fact_count; i++) {
            struct lab_value *fact = lab_value_map(arena);
            lab_value_set_string(arena, fact, "topic", set->facts[i].topic);
            lab_value_set_string(arena, fact, "name", set->facts[i].name);
            lab_value_set_string(arena, fact, "text", set->facts[i].text);
            lab_value_append(arena, facts, fact);
        }
        for (int i = 0; i < set->point_count; i++)
            lab_value_append(arena, points, point_value(&set->points[i], arena));
        lab_value_set_string(arena, map, "name", set->name);
        lab_value_set_string(arena, map, "source", set->source);
        lab_value_set_string(arena, map, "session", set->session);
        lab_value_set_bool(arena, map, "simulated", set->simulated);
        lab_value_set(arena, map, "facts", facts);
        lab_value_set(arena, map, "points", points);
        if (set->failure_count)
            lab_value_set(arena, map, "failures", failures_value(set, arena));
        lab_value_append(arena, list, map);
    }
    return list;
}

/* --- reading --- */

static bool is_list(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_LIST;
}

static struct lab_axis_setting *parse_axes(const struct lab_value *axes, struct lab_arena *arena) {
    struct lab_axis_setting *settings =
        lab_arena_alloc(arena, (size_t)axes->count + 1, sizeof *settings);
    for (int i = 0; i < axes->count; i++)
        settings[i] =
            (struct lab_axis_setting){axes->keys[i], lab_value_as_text(axes->items[i], "")};
    return settings;
}

static int parse_point(const struct lab_value *map, const char *origin, struct lab_point_set *set,
                       struct lab_arena *arena, struct lab_err *err) {
    const struct lab_value *axes = lab_value_get(map, "axes"),
                           *values = lab_value_get(map, "values"),
                           *blocks = lab_value_get(map, "blocks");
    const char *quantity = lab_value_get_text(map, "quantity", NULL);
    if (!axes || axes->type != LAB_VALUE_MAP || !is_list(values) || !is_list(blocks) ||
        values->count != blocks->count || !quantity)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s: point %d lacks axes, quantity, values or a block for each value",
                           origin, set->point_count + 1);
    struct lab_point *point =
        lab_point_set_point(set, parse_axes(axes, arena), axes->count, quantity,
                            lab_value_get_text(map, "unit", ""), arena);
    int better = lab_direction_find(lab_value_get_text(map, "better", "none"));
    point->is_sum = lab_value_get_bool(map, "is_sum");
    point->better = better < 0 ? LAB_DIRECTION_NONE : (enum lab_direction)better;
    for (int i = 0; i < values->count; i++) {
        double block = lab_value_as_number(blocks->items[i]);
        if (!(block >= 0 && block < INT_MAX / 2))
            return lab_err_set(err, LAB_ERR_USER, "%s: a block of point %d is not a whole number",
                               origin, set->point_count);
        lab_point_add_value(point, lab_value_as_number(values->items[i]), (int)block, arena);
    }
    return 0;
}

static void parse_failures(const struct lab_value *list, struct lab_point_set *set,
                           struct lab_arena *arena) {
    for (int i = 0; is_list(list) && i < list->count; i++) {
        const struct lab_value *axes = lab_value_get(list->items[i], "axes");
        if (axes && axes->type == LAB_VALUE_MAP)
            lab_point_set_add_failure(set, parse_axes(axes, arena), axes->count,
                                      lab_value_get_text(list->items[i], "reason", ""), arena);
    }
}

int lab_point_sets_parse(const struct lab_value *root, const char *origin, struct lab_arena *arena,
                         struct lab_point_set **ret_sets, int *ret_count, struct lab_err *err) {
    const struct lab_value *list = lab_value_get(root, "sets");
    if (!is_list(list) || list->count == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s holds no sets of points", origin);
    struct lab_point_set *sets = lab_arena_alloc(arena, (size_t)list->count, sizeof *sets);
    for (int s = 0; s < list->count; s++) {
        const struct lab_value *map = list->items[s], *points = lab_value_get(map, "points"),
                               *facts = lab_value_get(map, "facts");
        sets[s] = (struct lab_point_set){.name = lab_value_get_text(map, "name", origin),
                                         .source = lab_value_get_text(map, "source", origin),
                                         .session = lab_value_get_text(map, "session", NULL),
                                         .simulated = lab_value_get_bool(map, "simulated")};
        if (!is_list(points))
            return lab_err_set(err, LAB_ERR_USER, "%s: set %d has no points", origin, s + 1);
        for (int i = 0; is_list(facts) && i < facts->count; i++)
            lab_point_set_add_fact(&sets[s], lab_value_get_text(facts->items[i], "topic", ""),
                                   lab_value_get_text(facts->items[i], "name", ""),
                                   lab_value_get_text(facts->items[i], "text", ""), arena);
        for (int i = 0; i < points->count; i++)
            if (parse_point(points->items[i], origin, &sets[s], arena, err) < 0)
                return -1;
        parse_failures(lab_value_get(map, "failures"), &sets[s], arena);
    }
    *ret_sets = sets;
    *ret_count = list->count;
    return 0;
}
