/* analysis_training_rows.c: points of a study as rows that laws of training can be fitted to. */
#include "analysis/analysis_group.h"
#include "analysis/analysis_training.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

bool lab_training_knows(const char *key) {
    static const char *const keys[] = {"model",   "widths",       "dropout",   "batch_size",
                                       "scaling", "dataset_size", "data_seed", NULL};
    for (int i = 0; keys[i]; i++)
        if (lab_str_equal(keys[i], key))
            return true;
    return false;
}

bool lab_training_is_apart(const struct lab_study_run *run) {
    return run->rank_count > 1 && run->work.parameters > 0 &&
           lab_str_equal(lab_study_text(run, "options.allreduce"), "none");
}

/* The first key that two runs differ in and a set doesn't; NULL = they are of one set. */
static const char *differing_key(const struct lab_study_run *a, const struct lab_study_run *b) {
    if (!lab_str_equal(a->run->workload, b->run->workload))
        return "workload";
    if (!lab_str_equal(a->phase, b->phase))
        return "phase";
    for (int i = 0; i < a->options->count; i++) {
        const char *key = a->options->keys[i];
        const struct lab_value *other = lab_value_get(b->options, key);
        if (!lab_training_knows(key) && (!other || !lab_value_equal(a->options->items[i], other)))
            return key;
    }
    return NULL;
}

/* "medium" of "mlp_medium_batch128_weak" */
static const char *model_of(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *start = run->model, *end = strstr(run->model, "_batch");
    size_t prefix = strlen(run->run->workload);
    if (strncmp(start, run->run->workload, prefix) == 0 && start[prefix] == '_')
        start += prefix + 1;
    return end && end > start ? lab_arena_strndup(arena, start, (size_t)(end - start)) : start;
}

static bool make_row(const struct lab_study_point *point, struct lab_arena *arena,
                     struct lab_training_row *ret_row) {
    const struct lab_study_run *run = point->runs[0];
    double rate = lab_study_estimate(point->rates, point->count).value;
    struct lab_training_work work = {
        .parameters = run->work.parameters,
        .layers = run->work.layers,
        .batch = lab_study_setting_number(run, "batch_size"),
        .devices = run->rank_count,
        .weak = lab_str_equal(lab_study_text(run, "options.scaling"), "weak")};
    if (!(work.parameters > 0) || !(work.batch > 0) || !(rate > 0) || work.devices < 1 ||
        lab_training_is_apart(run))
        return false;
    *ret_row =
        (struct lab_training_row){.work = work,
                                  .time_s = work.batch * (work.weak ? work.devices : 1) / rate,
                                  .model = model_of(run, arena),
                                  .point = point};
    return true;
}

static bool is_rival(const struct lab_training_row *a, const struct lab_training_row *b) {
    return lab_str_equal(a->model, b->model) && a->work.batch == b->work.batch &&
           a->work.devices == b->work.devices && a->work.weak == b->work.weak;
}

static void add_row(struct lab_training_set *set, const struct lab_training_row *row) {
    for (int i = 0; i < set->count; i++)
        if (is_rival(&set->rows[i], row)) {
            if (row->time_s < set->rows[i].time_s)
                set->rows[i] = *row;
            return;
        }
    set->rows[set->count++] = *row;
}

static const char *name_set(const struct lab_training_set *sets, int count, int at,
                            struct lab_arena *arena) {
    const struct lab_study_run *run = sets[at].rows[0].point->runs[0];
    for (int i = 0; i < count; i++) {
        const char *key = i == at ? NULL : differing_key(run, sets[i].rows[0].point->runs[0]);
        const struct lab_value *value = key ? lab_value_get(run->options, key) : NULL;
        if (!key)
            continue;
        struct lab_str text;
        lab_str_init(&text);
        lab_str_printf(&text, "%s=", key);
        if (value)
            lab_value_write(value, &text);
        const char *name = lab_arena_strdup(arena, value ? text.text : key);
        lab_str_release(&text);
        return name;
    }
    return "";
}

int lab_training_sets(const struct lab_study_table *study, struct lab_arena *arena,
                      struct lab_training_set **ret_sets) {
    struct lab_study_point *points;
    int point_count = lab_study_points(study, arena, &points), count = 0;
    struct lab_training_set *sets = lab_arena_alloc(arena, (size_t)point_count + 1, sizeof *sets);
    for (int i = 0; i < point_count; i++) {
        struct lab_training_row row;
        int at = 0;
        if (!make_row(&points[i], arena, &row))
            continue;
        while (at < count && differing_key(points[i].runs[0], sets[at].rows[0].point->runs[0]))
            at++;
        if (at == count)
            sets[count++].rows = lab_arena_alloc(arena, (size_t)point_count, sizeof *sets[at].rows);
        add_row(&sets[at], &row);
    }
    for (int i = 0; i < count; i++)
        sets[i].what = name_set(sets, count, i, arena);
    *ret_sets = sets;
    return count;
}
