/*
 * expected.c: what a model of GPU should reach, from files; and such a file out of what a check of
 * healthy hosts has measured. A learnt value is the median of all that was seen, its tolerance four
 * times their spread, and no less than the test's own.
 */
#include "check/check_internal.h"

#include "base/list.h"
#include "base/yaml/yaml.h"
#include "stats/stats.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SPREADS   4.0
#define SEEN_MOST 4096 /* of one value: GPUs of hosts that were learnt from */

static const char *const origins[] = {"measured", "published", "learned", NULL};

static const struct lab_option file_keys[] = {
    {"model", LAB_OPTION_STRING, offsetof(struct lab_expected, model),
     .help = "what the GPU's name begins with"},
    {"origin", LAB_OPTION_CHOICE, offsetof(struct lab_expected, origin), .choices = origins,
     .fallback = "learned", .help = "where the values are from"},
    {"source", LAB_OPTION_STRING, offsetof(struct lab_expected, source), .fallback = "\"\"",
     .help = "which measurement or document"},
    {"gpus", LAB_OPTION_INT, offsetof(struct lab_expected, gpus), .fallback = "0", .max = 1024,
     .help = "GPUs of a host; 0: any number"},
    {"driver", LAB_OPTION_STRING, offsetof(struct lab_expected, driver),
     .help = "version of the driver; none: any"},
    {"values", LAB_OPTION_VALUE, 0, .help = "value and tolerance by key"},
    {NULL},
};

struct value_row {
    double value, tolerance;
};

static const struct lab_option value_keys[] = {
    {"value", LAB_OPTION_FLOAT, offsetof(struct value_row, value), .min = 1e-9, .max = 1e12,
     .help = "the median"},
    {"tolerance", LAB_OPTION_FLOAT, offsetof(struct value_row, tolerance), .fallback = "0.1",
     .max = 0.99, .help = "share below it that still passes"},
    {"seen", LAB_OPTION_VALUE, 0, .help = "what it was learnt from"},
    {NULL},
};

/* Of rows that other code reads, only the names are checked. */
static int set_rows(const struct lab_option *table, void *target, const struct lab_value *map,
                    struct lab_arena *arena, struct lab_err *err) {
    lab_options_defaults(table, target, arena);
    for (int i = 0; i < map->count; i++) {
        const struct lab_option *row = lab_options_find(table, map->keys[i]);
        if ((!row || row->type != LAB_OPTION_VALUE) &&
            lab_options_set_value(table, target, arena, map->keys[i], map->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int read_value(const char *key, const struct lab_value *map, struct lab_arena *arena,
                      struct lab_expected_value *ret_value, struct lab_err *err) {
    struct value_row row = {0};
    if (map->type != LAB_VALUE_MAP)
        return lab_value_err(map, err, "%.60s: must be {value: …, tolerance: …}", key);
    if (lab_str_find(key, check_keys) < 0) {
        const char *nearest = lab_str_nearest(key, check_keys);
        return lab_value_err(map, err, "there is no value '%.60s'%s%s%s", key,
                             nearest ? "; did you mean '" : "", nearest ? nearest : "",
                             nearest ? "'?" : "");
    }
    if (set_rows(value_keys, &row, map, arena, err) < 0)
        return -1;
    if (!(row.value > 0))
        return lab_value_err(map, err, "%s: 'value' is missing", key);
    *ret_value = (struct lab_expected_value){key, row.value, row.tolerance, NULL, 0};
    const struct lab_value *seen = lab_value_get(map, "seen");
    if (!seen)
        return 0;
    if (seen->type != LAB_VALUE_LIST || seen->count > SEEN_MOST)
        return lab_value_err(seen, err, "%s: seen must be a list of up to %d numbers", key,
                             SEEN_MOST);
    double *list = lab_arena_alloc(arena, (size_t)seen->count, sizeof *list);
    for (int i = 0; i < seen->count; i++) {
        list[i] = lab_value_as_number(seen->items[i]);
        if (!(list[i] > 0 && list[i] < 1e12))
            return lab_value_err(seen->items[i], err, "%s: seen must hold rates", key);
    }
    ret_value->seen = list;
    ret_value->seen_count = seen->count;
    return 0;
}

int lab_expected_read(const char *text, size_t length, const char *name, struct lab_arena *arena,
                      struct lab_expected *ret_expected, struct lab_err *err) {
    struct lab_value *tree;
    struct lab_expected expected = {0};
    if (lab_yaml_parse(text, length, name, LAB_YAML_LIMITS, arena, &tree, err) < 0)
        return -1;
    if (tree->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_USER, "%s: holds no expected values: must be a map", name);
    if (set_rows(file_keys, &expected, tree, arena, err) < 0)
        return -1;
    if (!expected.model || !*expected.model)
        return lab_value_err(tree, err, "'model' is missing: what the GPU's name begins with");
    if (!expected.origin) /* a key without a value has no default */
        return lab_value_err(tree, err, "'origin' is empty: measured, published or learned");
    if (!expected.source)
        expected.source = "";
    const struct lab_value *values = lab_value_get(tree, "values");
    if (values && values->type != LAB_VALUE_MAP)
        return lab_value_err(values, err, "values: must be a map");
    int count = values ? values->count : 0;
    struct lab_expected_value *list = lab_arena_alloc(arena, (size_t)count, sizeof *list);
    for (int i = 0; i < count; i++)
        if (read_value(values->keys[i], values->items[i], arena, &list[i], err) < 0)
            return -1;
    expected.values = list;
    expected.count = count;
    *ret_expected = expected;
    return 0;
}

const struct lab_expected *lab_expected_find(const struct lab_expected *items, int count,
                                             const char *gpu_name) {
    const struct lab_expected *found = NULL;
    for (int i = 0; i < count; i++)
        if (lab_str_starts(gpu_name, items[i].model) &&
            (!found || strlen(items[i].model) > strlen(found->model)))
            found = &items[i];
    return found;
}

const struct lab_expected_value *lab_expected_get(const struct lab_expected *expected,
                                                  const char *key) {
    int index = LAB_FIND(expected->values, expected->count, key, key);
    return index < 0 ? NULL : &expected->values[index];
}

/* --- learning --- */

struct lesson {
    const char *key;
    double floor; /* of the tolerance */
    double *seen;
    int count;
    const struct lab_expected_value *kept; /* not measured now: it stays as it is; NULL = it was */
};

static struct lesson *lesson_of(struct lesson *lessons, int *count, const char *key) {
    for (int i = 0; i < *count; i++)
        if (lab_str_equal(lessons[i].key, key))
            return &lessons[i];
    lessons[*count] = (struct lesson){.key = key};
    return &lessons[(*count)++];
}

static void add_seen(struct lesson *lesson, double value, struct lab_arena *arena) {
    if (lesson->count < SEEN_MOST)
        LAB_ADD(lesson->seen, lesson->count, arena) = value;
}

static struct lab_value *lesson_value(const struct lesson *lesson, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *seen = lab_value_list(arena);
    const struct lab_expected_value *kept = lesson->kept;
    size_t n = (size_t)lesson->count;
    double median = kept ? kept->value : lab_stats_median(lesson->seen, n);
    double spread = kept ? 0 : lab_stats_mad(lesson->seen, n, true) / median;
    double tolerance = fmin(0.5, fmax(lesson->floor, SPREADS * spread));
    lab_value_set_float(arena, map, "value", strtod(lab_arena_printf(arena, "%.5g", median), NULL));
    lab_value_set_float(arena, map, "tolerance",
                        kept ? kept->tolerance : ceil(1000 * tolerance) / 1000);
    for (int i = 0; i < lesson->count; i++)
        lab_value_append(
            arena, seen,
            lab_value_float(arena, strtod(lab_arena_printf(arena, "%.5g", lesson->seen[i]), NULL)));
    if (n > 0) /* one that was written by hand has none */
        lab_value_set(arena, map, "seen", seen);
    return map;
}

static const char *write_lessons(const struct lab_check_result *result,
                                 const struct lesson *lessons, int count, struct lab_arena *arena) {
    struct lab_value *tree = lab_value_map(arena), *values = lab_value_map(arena);
    lab_value_set_string(arena, tree, "model", result->gpu_name);
    lab_value_set_string(arena, tree, "origin", "learned");
    lab_value_set_string(arena, tree, "source", "gpulab check --learn");
    lab_value_set_int(arena, tree, "gpus", result->gpu_count);
    if (result->driver)
        lab_value_set_string(arena, tree, "driver", result->driver);
    for (int i = 0; i < count; i++)
        lab_value_set(arena, values, lessons[i].key, lesson_value(&lessons[i], arena));
    lab_value_set(arena, tree, "values", values);
    LAB_AUTO(str, text);
    lab_str_add(&text, "# Expected values for `gpulab check --against`, learnt from healthy hosts. "
                       "docs/CHECK.md explains the keys.\n");
    lab_yaml_write(tree, &text);
    return lab_arena_strdup(arena, text.text);
}

int lab_check_learn(const struct lab_check_result *result, const struct lab_expected *before,
                    struct lab_arena *arena, const char **ret_text, struct lab_err *err) {
    struct lesson lessons[64];
    int count = 0;
    if (before && !lab_str_starts(result->gpu_name, before->model))
        return lab_err_set(err, LAB_ERR_USER, "it is about %s, and this host has %s", before->model,
                           result->gpu_name);
    for (int i = 0; i < result->count; i++) {
        const struct lab_check_finding *finding = &result->findings[i];
        if (finding->verdict == LAB_CHECK_FAIL)
            return lab_err_set(err, LAB_ERR_WRONG,
                               "nothing is learnt from a host with a failure: %s: %s: %s",
                               finding->subject, finding->test->name, finding->reason);
        if (isnan(finding->measured) || !finding->key)
            continue;
        struct lesson *lesson = lesson_of(lessons, &count, finding->key);
        lesson->floor = fmax(lesson->floor, finding->test->peer_tolerance);
        for (int k = 0; k < finding->seen_count; k++)
            add_seen(lesson, finding->seen[k], arena);
    }
    if (count == 0)
        return lab_err_set(err, LAB_ERR_WRONG, "nothing was measured, so nothing is learnt");
    for (int i = 0; before && i < before->count; i++) {
        const struct lab_expected_value *value = &before->values[i];
        struct lesson *lesson = lesson_of(lessons, &count, value->key);
        lesson->kept = lesson->count == 0 ? value : NULL;
        for (int k = 0; k < value->seen_count; k++)
            add_seen(lesson, value->seen[k], arena);
    }
    *ret_text = write_lessons(result, lessons, count, arena);
    return 0;
}
