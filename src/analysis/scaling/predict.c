/*
 * predict.c: iteration times of models that weren't run, by the cost model. The workload counts
 * their kernels (study->work_of); keys that aren't named are as in a model like it that was run.
 */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PREDICTIONS_MAX 32
#define WIDER           1.25 /* than the widest, by itself; in steps of a head */
#define HEAD            64

struct wanted {
    int64_t patch_size, depth, dim;
};

/* --- which --- */

/* The letters before the numbers of a model's name: "vit" of "vit32x10x512". */
static size_t count_letters(const char *name) {
    return strcspn(name, "0123456789");
}

static int read_name(const struct lab_value *value, struct wanted *ret_wanted,
                     struct lab_err *err) {
    const char *name = value->type == LAB_VALUE_STRING ? value->string : "";
    int64_t *parts[] = {&ret_wanted->patch_size, &ret_wanted->depth, &ret_wanted->dim};
    const char *text = name + count_letters(name);
    int read = 0;
    for (; read < 3 && *text >= '0' && *text <= '9'; read++) {
        char *end;
        *parts[read] = strtoll(text, &end, 10);
        if (*parts[read] < 1 || *parts[read] > INT32_MAX)
            break;
        text = *end == 'x' && read < 2 ? end + 1 : end;
    }
    if (read == 3 && *text == '\0')
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "predict=%.80s: must be a model by patch size, depth and width, such as "
                       "vit32x10x512, or a list of them in brackets; or auto, or none",
                       value->type == LAB_VALUE_STRING ? name : lab_value_type_name(value->type));
}

static bool is_word(const struct lab_value *value, const char *word) {
    return value->type == LAB_VALUE_STRING && lab_str_equal(value->string, word);
}

static int64_t setting_of(const struct lab_study_point *point, const char *key) {
    double value = lab_study_setting_number(point->runs[0], key);
    return isnan(value) ? 0 : (int64_t)value;
}

static struct wanted like(const struct lab_study_point *point) {
    return (struct wanted){setting_of(point, "patch_size"), setting_of(point, "depth"),
                           setting_of(point, "dim")};
}

/* By itself: twice the deepest, and one wider than the widest. */
static int choose(const struct scaling_group *group, struct wanted *ret_wanted) {
    int count = 0;
    if (group->depth.count > 0) {
        ret_wanted[count] = like(group->depth.points[group->depth.count - 1]);
        ret_wanted[count++].depth *= 2;
    }
    if (group->width.count > 0) {
        struct wanted *wider = &ret_wanted[count++];
        *wider = like(group->width.points[group->width.count - 1]);
        wider->dim = (int64_t)ceil(WIDER * (double)wider->dim / HEAD) * HEAD;
    }
    return count;
}

static int find_wanted(const struct lab_value *value, const struct scaling_group *group,
                       struct wanted *ret_wanted, struct lab_err *err) {
    if (!value || is_word(value, "auto"))
        return choose(group, ret_wanted);
    if (is_word(value, "none"))
        return 0;
    bool list = value->type == LAB_VALUE_LIST;
    int count = list ? value->count : 1;
    if (count > PREDICTIONS_MAX)
        return lab_err_set(err, LAB_ERR_USER, "predict names %d models: must be at most %d", count,
                           PREDICTIONS_MAX);
    for (int i = 0; i < count; i++)
        if (read_name(list ? value->items[i] : value, &ret_wanted[i], err) < 0)
            return -1;
    return count;
}

/* --- its work --- */

static const struct lab_value *make_options(const struct lab_study_point *point,
                                            const struct wanted *wanted, struct lab_arena *arena) {
    struct lab_value *options = lab_value_copy(arena, point->runs[0]->options);
    struct wanted was = like(point);
    int64_t hidden = setting_of(point, "mlp_dim"); /* 0 = it follows by itself */
    if (hidden > 0 && was.dim > 0)
        lab_value_set_int(arena, options, "mlp_dim", hidden * wanted->dim / was.dim);
    lab_value_set_int(arena, options, "patch_size", wanted->patch_size);
    lab_value_set_int(arena, options, "depth", wanted->depth);
    lab_value_set_int(arena, options, "dim", wanted->dim);
    return options;
}

/* --- the claim --- */

struct lab_interval scaling_predictable(const struct scaling_group *group) {
    double beyond = group->misfit ? 1 : SCALING_BEYOND;
    return (struct lab_interval){group->models[0].gflop / beyond,
                                 group->models[group->count - 1].gflop * beyond, NAN};
}

struct scaling_prediction scaling_predict_work(const struct scaling_group *group,
                                               const struct lab_study_work *work, const char *model,
                                               struct lab_arena *arena) {
    double samples = work->samples > 0 ? work->samples : 1, gflop = 1e-9 * work->flops / samples;
    struct scaling_prediction made = {
        .model = model, .gflop = gflop, .rate = NAN, .time = lab_claim_none};
    struct lab_interval range = scaling_predictable(group);
    if (range.low <= gflop && gflop <= range.high) {
        double *values = lab_arena_alloc(arena, (size_t)group->blocks + 1, sizeof *values);
        for (int b = 0; b < group->blocks; b++)
            values[b] = scaling_cost_iteration_s(&group->costs[b], work);
        made.time = lab_claim_from_blocks(values, group->blocks, "s");
        scaling_widen(&made.time, group, group->leave_one_out);
        made.rate = samples / made.time.effect * (1 - scaling_pipeline_loss(group));
    }
    made.time.unit = "s";
    made.time.at_least = true;
    made.time = lab_claim_named(made.time, "scaling.prediction",
                                lab_arena_printf(arena, "%s, %s", group->title, model), "",
                                "predicted iteration time");
    made.time.scope = group->parameters[0].scope;
    made.time.scope_count = group->parameters[0].scope_count;
    return made;
}

/* The model that was run that has most in common, the largest of such: keys that a name doesn't
 * have, heads above all, go by width, then by patch size, then by depth. */
static const struct lab_study_point *base_of(const struct scaling_group *group,
                                             const struct wanted *wanted) {
    const struct lab_study_point *best = NULL;
    int most = -1;
    for (int m = 0; m < group->count; m++) {
        struct wanted was = like(group->models[m].point);
        int common = 4 * (was.dim == wanted->dim) + 2 * (was.patch_size == wanted->patch_size) +
                     (was.depth == wanted->depth);
        if (common >= most) {
            best = group->models[m].point;
            most = common;
        }
    }
    return best;
}

/* NaN is of models without such a key. */
static bool is_outside(const struct scaling_group *group, double value, size_t member) {
    double low = INFINITY, high = -INFINITY;
    for (int m = 0; m < group->count; m++) {
        double run;
        memcpy(&run, (const char *)&group->models[m] + member, sizeof run);
        low = fmin(low, run);
        high = fmax(high, run);
    }
    return value < low || value > high;
}

int scaling_predict(const struct lab_study_table *study, const struct lab_value *value,
                    const struct scaling_group *group, struct lab_arena *arena,
                    struct scaling_prediction **ret_predictions, int *ret_count,
                    struct lab_err *err) {
    struct wanted wanted[PREDICTIONS_MAX] = {{0, 0, 0}};
    int count = find_wanted(value, group, wanted, err);
    *ret_count = 0;
    *ret_predictions = NULL;
    if (count < 0)
        return -1;
    for (int i = 0; i < count && group->fits && study->work_of; i++) {
        const struct lab_study_point *point = base_of(group, &wanted[i]);
        const char *name = point->runs[0]->model,
                   *model = lab_arena_printf(arena, "%.*s%lldx%lldx%lld", (int)count_letters(name),
                                             name, (long long)wanted[i].patch_size,
                                             (long long)wanted[i].depth, (long long)wanted[i].dim);
        struct lab_study_work work = {0};
        if (study->work_of(point->runs[0]->run->workload, make_options(point, &wanted[i], arena),
                           arena, &work, err) < 0)
            return lab_err_context(err, "predicting %s", model);
        struct scaling_prediction made = scaling_predict_work(group, &work, model, arena);
        made.depth = (double)wanted[i].depth;
        made.dim = (double)wanted[i].dim;
        made.outside = is_outside(group, made.depth, offsetof(struct scaling_model, depth)) ||
                       is_outside(group, made.dim, offsetof(struct scaling_model, dim)) ||
                       is_outside(group, made.gflop, offsetof(struct scaling_model, gflop));
        LAB_ADD(*ret_predictions, *ret_count, arena) = made;
    }
    return 0;
}
