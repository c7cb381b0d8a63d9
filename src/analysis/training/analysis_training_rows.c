/* analysis_training_rows.c: points of a study as rows that cost models can be fitted to. */
#include "analysis/analysis_group.h"
#include "analysis/training/analysis_training.h"

#include "base/list.h"
#include "base/str.h"

#include <string.h>

bool lab_training_knows(const char *key) {
    static const char *const keys[] = {"model",   "widths",       "dropout",   "batch_size",
                                       "scaling", "dataset_size", "data_seed", NULL};
    return lab_str_find(key, keys) >= 0;
}

bool lab_training_is_apart(const struct lab_study_run *run) {
    return run->rank_count > 1 && run->work.parameters > 0 &&
           lab_str_equal(lab_study_text(run, "options.allreduce"), "none");
}

bool lab_training_lacks_nvlink(const struct lab_study_table *study) {
    int sums = 0, linked = 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        bool several = run->rank_count > 1 && !lab_training_is_apart(run);
        sums += several;
        linked += several && lab_str_equal(run->result->allreduce, "nvlink");
    }
    return study->simulated && (sums == 0 || linked < sums);
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

/* --- names --- */

const char *lab_training_count(double value, struct lab_arena *arena) {
    static const char *const units[] = {"", " k", " M", " G", " T"};
    int unit = 0;
    double scaled = value;
    while (scaled >= 999.5 && unit < 4) {
        scaled /= 1e3;
        unit++;
    }
    int digits = unit == 0 || scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2;
    return lab_arena_printf(arena, "%.*f%s", digits, scaled, units[unit]);
}

static void add_word(struct lab_str *text, const char *key, const char *value) {
    lab_str_printf(text, "%s%s=%s", text->length ? ", " : "", key, value);
}

static bool is_training(const struct lab_study_run *run) {
    return run->used && run->work.parameters > 0;
}

/* Whether any other training of the study has another value, or none. */
static bool varies(const struct lab_study_table *study, const struct lab_study_run *run,
                   const char *key, const struct lab_value *value) {
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *other = &study->runs[i];
        const struct lab_value *theirs = lab_value_get(other->options, key);
        if (is_training(other) && lab_str_equal(other->run->workload, run->run->workload) &&
            (!theirs || !lab_value_equal(theirs, value)))
            return true;
    }
    return false;
}

const char *lab_training_label(const struct lab_study_table *study, const struct lab_study_run *run,
                               struct lab_arena *arena) {
    struct lab_str value;
    bool works = false, phases = false;
    for (int i = 0; i < study->run_count; i++)
        if (is_training(&study->runs[i])) {
            works |= !lab_str_equal(study->runs[i].run->workload, run->run->workload);
            phases |= !lab_str_equal(study->runs[i].phase, run->phase);
        }
    LAB_AUTO(str, text);
    if (works)
        add_word(&text, "workload", run->run->workload);
    if (phases)
        add_word(&text, "phase", run->phase);
    for (int i = 0; i < run->options->count; i++) {
        const char *key = run->options->keys[i];
        if (lab_training_knows(key) || !varies(study, run, key, run->options->items[i]))
            continue;
        lab_str_init(&value);
        lab_value_write(run->options->items[i], &value);
        add_word(&text, key, value.text);
        lab_str_release(&value);
    }
    return text.length ? lab_arena_strdup(arena, text.text) : "";
}

/* "_allreducering" of "gpu0_numa0_mlp_medium_batch32_allreducering"; NULL = its point doesn't name
 * its model. */
static const char *suffix_of(const struct lab_study_run *run) {
    const char *model = strstr(run->point, run->model);
    return model ? model + strlen(run->model) : NULL;
}

struct lab_study_table lab_training_set_study(const struct lab_study_table *study,
                                              const struct lab_training_set *set,
                                              struct lab_arena *arena) {
    const struct lab_study_run *first = set->rows[0].point->runs[0];
    const char *suffix = suffix_of(first);
    struct lab_study_table part = *study;
    bool common = suffix != NULL;
    part.runs = lab_arena_alloc(arena, (size_t)study->run_count + 1, sizeof *part.runs);
    part.run_count = 0;
    for (int i = 0; i < study->run_count; i++) {
        if (differing_key(&study->runs[i], first))
            continue;
        const char *other = suffix_of(&study->runs[i]);
        common = common && other && lab_str_equal(other, suffix);
        part.runs[part.run_count++] = study->runs[i];
    }
    for (int i = 0; i < part.run_count && common && *suffix; i++) {
        size_t length = strlen(part.runs[i].point) - strlen(suffix);
        part.runs[i].point = lab_arena_strndup(arena, part.runs[i].point, length);
    }
    return part;
}

/* --- rows --- */

static bool make_row(const struct lab_study_point *point, struct lab_arena *arena,
                     struct lab_training_row *ret_row) {
    const struct lab_study_run *run = point->runs[0];
    const char *model = lab_study_trained_model(run, arena);
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
                                  .model = model ? model : run->model,
                                  .point = point};
    return true;
}

static bool is_rival(const struct lab_training_row *a, const struct lab_training_row *b) {
    return lab_str_equal(a->model, b->model) && a->work.batch == b->work.batch &&
           a->work.devices == b->work.devices && a->work.weak == b->work.weak;
}

/* Of rivals the first by name: were it the fastest, chance would choose it. */
static void add_row(struct lab_training_set *set, const struct lab_training_row *row) {
    for (int i = 0; i < set->count; i++)
        if (is_rival(&set->rows[i], row)) {
            if (strverscmp(row->point->name, set->rows[i].point->name) < 0)
                set->rows[i] = *row;
            return;
        }
    set->rows[set->count++] = *row;
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
    for (int i = 0; i < count; i++) {
        sets[i].what = lab_training_label(study, sets[i].rows[0].point->runs[0], arena);
        LAB_SORT(sets[i].rows, sets[i].count, LAB_BY(sets[i].rows, work.parameters),
                 LAB_BY(sets[i].rows, work.weak), LAB_BY(sets[i].rows, work.batch),
                 LAB_BY(sets[i].rows, work.devices));
    }
    *ret_sets = sets;
    return count;
}
