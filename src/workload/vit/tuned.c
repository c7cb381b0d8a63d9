/*
 * tuned.c: the model's products as they were tuned. The key `config` arrives as
 * "SHAPE:CONFIGURATION", several joined by ';', as tune/tuned.h has found them. All blocks are
 * alike, so five kinds of products are all there is, and a launch finds its own by comparing four
 * numbers.
 */
#include "workload/vit/vit.h"

#include "device/tunable.h"

#include <string.h>

/* --- the products --- */

struct visit {
    lab_launch_visit *visit;
    void *state;
};

static int emit_product(void *state, const struct lab_launch *launch, struct lab_err *err) {
    const struct visit *visit = state;
    (void)err;
    if (lab_op_is_gemm(launch->op))
        visit->visit(launch, visit->state);
    return 0;
}

void vit_products(const struct vit_shape *shape, bool fused, lab_launch_visit *visit, void *state) {
    struct vit_shape one = *shape;
    struct vit_model model;
    struct visit each = {visit, state};
    one.depth = 1;
    vit_model_plan(&one, fused, &model);
    vit_model_forward(&model, NULL, NULL, emit_product, &each, NULL);
    vit_model_close(&model);
}

/* --- how they are done --- */

static int64_t terms_of(const struct lab_launch *launch) {
    return launch->in[0].shape[launch->transpose_a ? 0 : 1];
}

static bool is_of(const struct vit_tuned *tuned, const struct lab_launch *launch) {
    return tuned->op == launch->op && tuned->columns == lab_tensor_columns(&launch->out) &&
           tuned->rows == lab_tensor_rows(&launch->out) && tuned->terms == terms_of(launch);
}

struct lab_tuning vit_tuning_of(const struct vit_model *model, const struct lab_launch *launch) {
    for (int i = 0; i < model->tuned_count; i++)
        if (is_of(&model->tuned[i], launch))
            return model->tuned[i].tuning;
    return (struct lab_tuning){0};
}

struct part { /* of the key's text: one shape, and what it shall be */
    struct vit_model *model;
    const struct lab_device *device;
    const char *shape, *config;
    bool found;
    struct lab_err *err;
    int result;
};

static void take(const struct lab_launch *launch, void *state) {
    struct part *part = state;
    struct vit_model *model = part->model;
    const struct lab_tunable_place place = {part->device->machine, &part->device->ref};
    struct lab_tuning tuning;
    LAB_AUTO(str, name);
    lab_tunable_shape_name(launch, &name);
    bool same = lab_str_equal(name.text, part->shape);
    part->found |= same;
    if (!same || part->result || vit_tuning_of(model, launch).count ||
        model->tuned_count == VIT_PRODUCTS)
        return;
    const struct lab_tunable *tunable = lab_tunable_find(&place, launch);
    if (!tunable)
        part->result =
            lab_err_set(part->err, LAB_ERR_USER, "%s has no configurations of %s to choose from",
                        part->device->ref.name, part->shape);
    else if (lab_tuning_parse(tunable, &place, launch, part->config, &tuning, part->err) ||
             lab_tuning_check(tunable, &place, launch, &tuning, part->err))
        part->result = -1;
    else
        model->tuned[model->tuned_count++] =
            (struct vit_tuned){launch->op, lab_tensor_rows(&launch->out),
                               lab_tensor_columns(&launch->out), terms_of(launch), tuning};
}

/* One "SHAPE:CONFIGURATION", which it may change. */
static int take_part(struct vit_model *model, const struct lab_device *device, char *text,
                     struct lab_err *err) {
    char *colon = strchr(text, ':');
    if (!colon)
        return lab_err_set(
            err, LAB_ERR_USER,
            "'%.60s' must be tuned, default, or SHAPE:name=value,…, several joined by "
            "';'",
            text);
    *colon = '\0';
    struct part part = {model, device, text, colon + 1, false, err, 0};
    vit_products(&model->shape, model->fused, take, &part);
    if (!part.found)
        return lab_err_set(err, LAB_ERR_USER, "no product of this model is '%.60s'", text);
    return part.result ? lab_err_context(err, "%s", text) : 0;
}

int vit_tune(struct vit_model *model, const struct lab_device *device, const char *config,
             struct lab_err *err) {
    if (!config || lab_str_equal(config, LAB_CONFIG_TUNED) ||
        lab_str_equal(config, LAB_CONFIG_DEFAULT))
        return 0;
    LAB_AUTO(str, text);
    lab_str_add(&text, config);
    int result = 0;
    for (char *part = text.text, *rest; part && result == 0; part = rest) {
        rest = strchr(part, ';');
        if (rest)
            *rest++ = '\0';
        result = take_part(model, device, part, err);
    }
    return result ? lab_err_context(err, LAB_WORKLOAD_CONFIG) : 0;
}
