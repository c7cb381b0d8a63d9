/* settings.c: points of all studies, named by what varies between them. */
#include "analysis/metrics/metrics.h"

#include "analysis/analysis_words.h"
#include "base/list.h"
#include "base/str.h"
#include "model/setting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_gpu_memory(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].used && metrics_memory_all(&study->runs[i], true) > 0)
            return true;
    return false;
}

static bool is_value(const struct lab_value *a, const struct lab_value *b) {
    if (a->type == LAB_VALUE_STRING || (b && b->type == LAB_VALUE_STRING))
        return b && a->type == b->type && lab_str_equal(a->string, b->string);
    return b && lab_study_value(a) == lab_study_value(b);
}

/* --- matrices --- */

static const struct lab_value *of_type(const struct lab_value *value, enum lab_value_type type) {
    return value && value->type == type ? value : NULL;
}

bool metrics_is_of_workload(const struct lab_study_table *study, const struct lab_study_run *run) {
    return of_type(study->matrix, LAB_VALUE_MAP) && !lab_value_get(run->options, "command") &&
           !lab_value_get(run->options, "matrix");
}

/* Of a key's planned values the one at that place; of keys that move together, from the element
 * that has it. NULL = it isn't planned. */
static struct lab_value *planned_value(const struct lab_value *matrix, const char *key, int place) {
    for (int i = 0; i < matrix->count; i++) {
        struct lab_value *value = matrix->items[i];
        if (value->type == LAB_VALUE_LIST && value->count > 0)
            value = value->items[place < value->count ? place : value->count - 1];
        if (value->type == LAB_VALUE_MAP && lab_value_get(value, key))
            return lab_value_get(value, key);
        if (lab_str_equal(matrix->keys[i], key))
            return value;
    }
    return NULL;
}

/* The run's own matrix; of a workload of gpulab's, those of its options that the study crosses. */
static const struct lab_value *matrix_of(const struct lab_study_table *study,
                                         const struct lab_study_run *run, struct lab_arena *arena) {
    if (!metrics_is_of_workload(study, run) || !of_type(run->options, LAB_VALUE_MAP))
        return lab_value_get(run->options, "matrix");
    struct lab_value *matrix = lab_value_map(arena);
    for (int i = 0; i < run->options->count; i++)
        if (planned_value(study->matrix, run->options->keys[i], 0))
            lab_value_set(arena, matrix, run->options->keys[i], run->options->items[i]);
    return matrix;
}

/* Options with that matrix, or with the planned values at a place of it instead of its own. */
static const struct lab_value *with_matrix(const struct lab_value *own,
                                           const struct lab_value *planned, int place,
                                           struct lab_arena *arena) {
    struct lab_value *options = lab_value_map(arena), *matrix = lab_value_map(arena);
    for (int i = 0; of_type(own, LAB_VALUE_MAP) && i < own->count; i++) {
        struct lab_value *value = planned ? planned_value(planned, own->keys[i], place) : NULL;
        lab_value_set(arena, matrix, own->keys[i], value ? value : own->items[i]);
    }
    lab_value_set(arena, options, "matrix", matrix);
    return options;
}

/* The place in the matrix as its author wrote it, the last key fastest: runs are shuffled. */
static int64_t place_of(const struct lab_study_table *study, const struct lab_study_point *point,
                        struct lab_arena *arena) {
    const struct lab_value *own = matrix_of(study, point->runs[0], arena);
    int64_t place = 0;
    for (int k = 0;
         study->matrix && study->matrix->type == LAB_VALUE_MAP && k < study->matrix->count; k++) {
        const struct lab_value *list = study->matrix->items[k];
        int at = 0, count = list->type == LAB_VALUE_LIST ? list->count : 0;
        while (at < count && !is_value(list->items[at], lab_value_get(own, study->matrix->keys[k])))
            at++;
        place = place * (count + 1) + at;
    }
    return place;
}

/* --- copies --- */

/* What a run says of quality: not of its pace, which differs whatever it computes. */
static bool is_quality(const struct lab_study_run *run, const struct lab_study_metric *said) {
    return !lab_metric_name_is_rate(said->name, said->unit) &&
           lab_metric_direction(said->name, lab_value_get(run->options, "metrics")) !=
               LAB_DIRECTION_NONE;
}

static bool says_same(const struct lab_study_metric *a, const struct lab_study_metric *b) {
    return lab_str_equal(a->name, b->name) && a->rank == b->rank && a->value == b->value &&
           a->curve.sum == b->curve.sum && a->curve.values == b->curve.values;
}

/* Whether both report the same, value for value; at least one. */
static bool is_copy(const struct lab_study_run *a, const struct lab_study_run *b) {
    int same = 0;
    for (int i = 0; i < a->metric_count; i++) {
        bool found = false;
        if (!is_quality(a, &a->metrics[i]))
            continue;
        for (int k = 0; k < b->metric_count && !found; k++)
            found = says_same(&a->metrics[i], &b->metrics[k]);
        if (!found)
            return false;
        same++;
    }
    return same > 0;
}

static bool are_copies(const struct lab_study_point *point) {
    for (int i = 1; i < point->count; i++)
        if (!is_copy(point->runs[0], point->runs[i]))
            return false;
    return point->count > 1;
}

/* In its own study, before it was pooled: of "…_r2" 2; a study without repeats has no ending. */
static int own_repeat(const struct lab_study_run *run) {
    const char *end = strrchr(run->run->id, '_');
    int repeat;
    return end && sscanf(end, "_r%d", &repeat) == 1 ? repeat : 0;
}

/* Studies of one plan that are pooled ran the same seeds: a repeat of the same number that reports
 * the same is the same run once more. `ret_again`: how many. */
static void drop_again(struct lab_study_point *point, int *ret_again, struct lab_arena *arena) {
    size_t count = (size_t)point->count;
    double *rates = lab_arena_copy(arena, point->rates, count, sizeof *rates),
           *times = lab_arena_copy(arena, point->times_s, count, sizeof *times);
    int kept = 0;
    for (int i = 0; i < point->count; i++) {
        bool again = false;
        for (int k = 0; k < kept && !again; k++)
            again = point->runs[k]->run->repeat != point->runs[i]->run->repeat &&
                    own_repeat(point->runs[k]) == own_repeat(point->runs[i]) &&
                    is_copy(point->runs[k], point->runs[i]);
        *ret_again += again;
        if (again)
            continue;
        point->runs[kept] = point->runs[i];
        rates[kept] = rates[i];
        times[kept++] = times[i];
    }
    point->rates = rates;
    point->times_s = times;
    point->count = kept;
}

/* --- in order --- */

static int count_runs(const struct lab_study_run *runs, int count, const struct lab_study_run *of) {
    int alike = 0;
    for (int i = 0; runs && i < count; i++)
        alike += !runs[i].used && lab_str_equal(runs[i].point, of->point) &&
                 lab_str_equal(runs[i].phase, of->phase);
    return alike;
}

/* Those that count, are invalid, or failed. */
static int count_planned(const struct lab_study_table *study, const struct lab_study_point *point) {
    return point->count + count_runs(study->runs, study->run_count, point->runs[0]) +
           count_runs(study->failed, study->failed_count, point->runs[0]);
}

struct planned {
    int64_t place, number;
    struct lab_study_point *point;
};

static void add_study(struct metrics_settings *settings, const struct lab_study_table *study,
                      struct lab_arena *arena) {
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    struct planned *order = lab_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = (struct planned){place_of(study, &points[i], arena),
                                    points[i].runs[0]->run->number, &points[i]};
    LAB_SORT(order, count, LAB_BY(order, place), LAB_BY(order, number));
    for (int i = 0; i < count; i++) {
        bool copied = are_copies(order[i].point);
        if (!copied && !study->simulated)
            drop_again(order[i].point, &settings->again, arena);
        LAB_ADD(settings->items, settings->count, arena) =
            (struct metrics_setting){.study = study,
                                     .point = *order[i].point,
                                     .planned = count_planned(study, order[i].point),
                                     .copied = copied};
    }
    settings->of_gpu |= has_gpu_memory(study);
    for (int i = 0; i < study->run_count; i++)
        settings->of_workload |= metrics_is_of_workload(study, &study->runs[i]);
}

/* Counts a failed run of the setting. */
static void add_failed(struct metrics_settings *settings, const char *name,
                       struct lab_arena *arena) {
    int found = LAB_FIND(settings->failed, settings->failed_count, name, name);
    if (settings->failed && found >= 0) {
        settings->failed[found].runs++;
        settings->failed[found].of++;
        return;
    }
    struct metrics_failed failed = {.name = name, .runs = 1, .of = 1};
    for (int i = 0; i < settings->count; i++)
        if (lab_str_equal(settings->items[i].name, name))
            failed.of += settings->items[i].point.count;
    LAB_ADD(settings->failed, settings->failed_count, arena) = failed;
}

struct options { /* of runs, that settings are named by */
    const struct lab_value **items;
    int count;
};

#define ALONE_MOST 60 /* columns of a name */

/* Of a matrix in which nothing varies; one with many keys is called as its program is. */
static const char *name_alone(const struct metrics_setting *setting, struct lab_arena *arena) {
    const struct lab_study_run *run = setting->point.runs[0];
    const char *whole = lab_setting_whole(matrix_of(setting->study, run, arena), arena);
    const char *program = *whole ? lab_setting_program(run->options, arena) : NULL;
    return *whole && strlen(whole) <= ALONE_MOST ? whole : program ? program : run->model;
}

/* Each by the keys that vary, also between settings that are only planned: runs may have failed. */
static void name_settings(struct metrics_settings *settings, struct lab_arena *arena) {
    enum { PLACES = 2 }; /* of the plan: two tell what varies */
    struct options options = {0};
    for (int place = -1; place < PLACES; place++)
        for (int i = 0; i < settings->count; i++) {
            const struct metrics_setting *setting = &settings->items[i];
            const struct lab_value *planned = of_type(setting->study->matrix, LAB_VALUE_MAP);
            if (place < 0 || planned)
                LAB_ADD(options.items, options.count, arena) =
                    with_matrix(matrix_of(setting->study, setting->point.runs[0], arena),
                                place < 0 ? NULL : planned, place, arena);
        }
    int failed = options.count;
    for (int s = 0; s < settings->study_count; s++)
        for (int i = 0; settings->studies[s].failed && i < settings->studies[s].failed_count; i++)
            LAB_ADD(options.items, options.count, arena) = with_matrix(
                matrix_of(&settings->studies[s], &settings->studies[s].failed[i], arena), NULL, 0,
                arena);
    struct lab_settings *names = lab_arena_alloc(arena, 1, sizeof *names);
    *names = lab_settings_make(options.items, options.count, arena);
    settings->several = names->key_count > 0;
    for (int i = 0; i < settings->count; i++) {
        settings->items[i].names = names;
        settings->items[i].place = i;
        settings->items[i].name = names->key_count > 0 ? lab_setting_name(names, i, arena)
                                                       : name_alone(&settings->items[i], arena);
    }
    for (int i = failed; i < options.count && names->key_count > 0; i++)
        add_failed(settings, lab_setting_name(names, i, arena), arena);
}

static const char *device_of(const struct metrics_setting *setting, struct lab_arena *arena) {
    return lab_words_gang(setting->point.runs[0], arena);
}

static const char *node_of(const struct metrics_setting *setting, struct lab_arena *arena) {
    const struct lab_study_run *run = setting->point.runs[0];
    int node = run->rank_count ? run->ranks[0].numa_node : -1;
    return node < 0 ? "" : lab_arena_printf(arena, "NUMA node %d", node); /* chosen by a spread */
}

static const char *phase_of(const struct metrics_setting *setting, struct lab_arena *arena) {
    (void)arena;
    return setting->point.runs[0]->phase;
}

/* Adds what differs between settings behind their names. */
static void add_where(struct metrics_settings *settings,
                      const char *(*where)(const struct metrics_setting *, struct lab_arena *),
                      struct lab_arena *arena) {
    bool varies = false;
    for (int i = 1; i < settings->count && !varies; i++)
        varies =
            !lab_str_equal(where(&settings->items[i], arena), where(&settings->items[0], arena));
    for (int i = 0; i < settings->count && varies; i++) {
        const char *name = settings->items[i].name, *text = where(&settings->items[i], arena);
        settings->items[i].name =
            lab_arena_printf(arena, "%s%s%s", name, *name && *text ? ", " : "", text);
    }
}

static bool is_unique(const struct metrics_settings *settings, int index) {
    for (int i = 0; i < settings->count; i++)
        if (i != index && lab_str_equal(settings->items[i].name, settings->items[index].name))
            return false;
    return true;
}

/* Studies come first where names collide; then the whole name of the point. */
static void make_unique(struct metrics_settings *settings, bool several, struct lab_arena *arena) {
    bool *taken = lab_arena_alloc(arena, (size_t)settings->count + 1, sizeof *taken);
    for (int i = 0; i < settings->count; i++)
        taken[i] = several && !is_unique(settings, i);
    for (int i = 0; i < settings->count; i++)
        if (taken[i])
            settings->items[i].name = lab_arena_printf(
                arena, "%s: %s", settings->items[i].study->name, settings->items[i].name);
    for (int i = 0; i < settings->count; i++)
        taken[i] = !is_unique(settings, i);
    for (int i = 0; i < settings->count; i++)
        if (taken[i])
            settings->items[i].name = settings->items[i].point.name;
}

struct metrics_settings metrics_settings_make(const struct lab_analysis_input *input,
                                              struct lab_arena *arena) {
    struct metrics_settings settings = {.studies = input->studies,
                                        .study_count = input->study_count};
    for (int i = 0; i < input->study_count; i++)
        add_study(&settings, &input->studies[i], arena);
    name_settings(&settings, arena);
    add_where(&settings, phase_of, arena);
    add_where(&settings, device_of, arena);
    add_where(&settings, node_of, arena);
    make_unique(&settings, input->study_count > 1, arena);
    return settings;
}
