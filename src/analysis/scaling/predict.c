/*
 * predict.c: the throughput and the memory of models that weren't run, by the law that is least
 * wrong about models it hasn't seen.
 *
 * How much work a model is, is the workload's to say (study->work_of); whatever isn't asked for
 * otherwise is as in the model that was run and comes nearest.
 */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PREDICTIONS_MAX 32
#define SAME_WORK       1e-6 /* relative; closer is the same model */

struct wanted {
    int64_t patch_size, depth, dim; /* 0 = as in what was run */
};

/* --- which --- */

/* The letters before the numbers of a model's name: "vit" of "vit32x10x512". */
static size_t count_letters(const char *name) {
    return strcspn(name, "0123456789");
}

/* A number without its sign, up to the end or an 'x'; 0 = there is none. */
static int64_t read_part(const char **text) {
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    long long value = strtoll(*text, &end, 10);
    *text = *end == 'x' ? end + 1 : end;
    return value <= INT32_MAX ? value : 0;
}

static int read_name(const struct lab_value *value, struct wanted *ret_wanted,
                     struct lab_err *err) {
    const char *name = value->type == LAB_VALUE_STRING ? value->string : "";
    const char *text = name + count_letters(name);
    ret_wanted->patch_size = read_part(&text);
    ret_wanted->depth = read_part(&text);
    ret_wanted->dim = read_part(&text);
    if (*text == '\0' && ret_wanted->patch_size && ret_wanted->depth && ret_wanted->dim)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "predict=%.80s: must be a model by patch size, depth and width, such as "
                       "vit32x10x512, or a list of them in brackets; or auto, or none",
                       value->type == LAB_VALUE_STRING ? name : lab_value_type_name(value->type));
}

static int read_names(const struct lab_value *value, struct wanted *ret_wanted, int *ret_count,
                      struct lab_err *err) {
    bool list = value->type == LAB_VALUE_LIST;
    int count = list ? value->count : 1;
    if (count > PREDICTIONS_MAX)
        return lab_err_set(err, LAB_ERR_USER, "predict names %d models: must be at most %d", count,
                           PREDICTIONS_MAX);
    for (int i = 0; i < count; i++)
        if (read_name(list ? value->items[i] : value, &ret_wanted[i], err) < 0)
            return -1;
    *ret_count = count;
    return 0;
}

static bool is_word(const struct lab_value *value, const char *word) {
    return value && value->type == LAB_VALUE_STRING && lab_str_equal(value->string, word);
}

/* By itself: twice the deepest and twice the widest of each series. */
static int choose(const struct scaling_series *series, struct wanted *ret_wanted) {
    int count = 0;
    for (int k = 0; k < SCALING_KEYS; k++) {
        if (series[k].count < 3)
            continue;
        const struct scaling_row *last = series[k].rows[series[k].count - 1];
        ret_wanted[count++] =
            (struct wanted){isnan(last->patch_size) ? 0 : (int64_t)last->patch_size,
                            (int64_t)(last->depth * (k == SCALING_DEPTH ? 2 : 1)),
                            (int64_t)(last->dim * (k == SCALING_WIDTH ? 2 : 1))};
    }
    return count;
}

/* --- its work --- */

static double distance(double value, int64_t wanted) {
    return wanted > 0 && value > 0 ? fabs(log((double)wanted / value)) : 0;
}

static const struct scaling_row *find_nearest(const struct scaling_rows *rows,
                                              const struct wanted *wanted) {
    const struct scaling_row *nearest = NULL;
    double least = INFINITY;
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        double far = distance(row->patch_size, wanted->patch_size) +
                     distance(row->depth, wanted->depth) + distance(row->dim, wanted->dim);
        if (far < least) {
            least = far;
            nearest = row;
        }
    }
    return nearest;
}

static const struct lab_value *make_options(const struct scaling_row *nearest,
                                            const struct wanted *wanted, struct lab_arena *arena) {
    struct lab_value *options = lab_value_copy(arena, nearest->point->runs[0]->options);
    if (wanted->patch_size > 0)
        lab_value_set_int(arena, options, "patch_size", wanted->patch_size);
    if (wanted->depth > 0)
        lab_value_set_int(arena, options, "depth", wanted->depth);
    if (wanted->dim > 0) {
        double ratio = nearest->mlp_dim / nearest->dim;
        if (ratio > 0) /* 0 = it follows by itself */
            lab_value_set_int(arena, options, "mlp_dim",
                              (int64_t)round(ratio * (double)wanted->dim));
        lab_value_set_int(arena, options, "dim", wanted->dim);
    }
    return options;
}

static const char *name_of(const struct scaling_row *nearest, const struct wanted *wanted,
                           struct lab_arena *arena) {
    const char *like = nearest->model;
    return lab_arena_printf(
        arena, "%.*s%lldx%lldx%lld", (int)count_letters(like), like,
        (long long)(wanted->patch_size > 0 ? wanted->patch_size : (int64_t)nearest->patch_size),
        (long long)(wanted->depth > 0 ? wanted->depth : (int64_t)nearest->depth),
        (long long)(wanted->dim > 0 ? wanted->dim : (int64_t)nearest->dim));
}

/* --- by the law --- */

static struct scaling_prediction apply(const struct scaling_rows *rows,
                                       const struct scaling_laws *laws,
                                       const struct lab_study_work *work, const char *model) {
    const struct scaling_law *law = scaling_laws_best(laws);
    double samples = work->samples > 0 ? work->samples : 1, per_sample = work->flops / samples;
    double least = rows->items[0].flops / rows->items[0].samples;
    const struct scaling_row *last = &rows->items[rows->count - 1];
    struct scaling_prediction made = {
        .model = model,
        .law = law,
        .rate =
            scaling_law_rate(law, rows, work->flops, scaling_bytes_of(work, rows->bytes), samples),
        .memory = {.value = NAN},
        .flops_per_sample = per_sample,
        .beyond = per_sample < least * (1 - SAME_WORK) ||
                  per_sample > last->flops / last->samples * (1 + SAME_WORK),
    };
    for (int i = 0; i < rows->count; i++)
        made.run |= lab_str_equal(rows->items[i].model, model) &&
                    fabs(rows->items[i].flops / work->flops - 1) < SAME_WORK;
    if (laws->memory_fitted && work->parameters > 0) {
        double million = 1e-6 * work->parameters;
        made.memory = lab_fit_predict(&laws->memory, &million, 1, SCALING_CONFIDENCE);
    }
    return made;
}

int scaling_predict(const struct lab_study_table *study, const struct scaling_config *config,
                    const struct scaling_rows *rows, const struct scaling_laws *laws,
                    const struct scaling_series *series, struct lab_arena *arena,
                    struct scaling_prediction **ret_predictions, int *ret_count,
                    struct lab_err *err) {
    struct wanted wanted[PREDICTIONS_MAX + 1] = {{0}};
    bool keys =
        config->predict_depth > 0 || config->predict_dim > 0 || config->predict_patch_size > 0;
    bool by_itself = !config->predict || is_word(config->predict, "auto");
    int count = 0;
    *ret_count = 0;
    if (by_itself && !keys)
        count = choose(series, wanted);
    else if (!by_itself && !is_word(config->predict, "none") &&
             read_names(config->predict, wanted, &count, err) < 0)
        return -1;
    if (keys)
        wanted[count++] =
            (struct wanted){config->predict_patch_size, config->predict_depth, config->predict_dim};
    *ret_predictions = lab_arena_alloc(arena, (size_t)count + 1, sizeof **ret_predictions);
    if (!scaling_laws_best(laws) || !study->work_of)
        return 0;
    for (int i = 0; i < count; i++) {
        const struct scaling_row *nearest = find_nearest(rows, &wanted[i]);
        const char *model = name_of(nearest, &wanted[i], arena);
        struct lab_study_work work = {0};
        if (study->work_of(nearest->point->runs[0]->run->workload,
                           make_options(nearest, &wanted[i], arena), arena, &work, err) < 0)
            return lab_err_context(err, "predicting %s", model);
        (*ret_predictions)[(*ret_count)++] = apply(rows, laws, &work, model);
    }
    return 0;
}
