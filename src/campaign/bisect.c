/*
 * bisect.c: which model to measure next, to find the crossover: the model size from which on
 * compute takes longer than copies. Of all models, two are next to it on either side; a model of
 * about their geometric mean of work is run with these two, since a block without them shows no
 * crossover. It ends once a model's compute time is within `width` of its transfer time.
 */
#include "campaign/campaign_internal.h"

#include "analysis/analysis_study.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define REPEATS_LEAST 2
#define REPEATS_MOST  20
#define DIM_STEP      32 /* of widths that are tried */
#define MODELS_MOST   5  /* of a step */

/* --- models that were run --- */

struct tried {
    const struct lab_campaign_point *model; /* on the first of its devices */
    double sum, low, high; /* of log(compute time / transfer time), over its devices */
    int devices;
    double excess; /* mean */
};

struct bracket {
    struct tried *models; /* ascending by excess */
    int count;
    struct campaign_numbers gpus;
    int node, repeats;
};

static bool same_model(const struct lab_campaign_point *a, const struct lab_campaign_point *b) {
    return a->patch_size == b->patch_size && a->depth == b->depth && a->dim == b->dim &&
           a->heads == b->heads && a->mlp_dim == b->mlp_dim;
}

static const char *name_of(const struct lab_campaign_point *model, struct lab_arena *arena) {
    return lab_arena_printf(arena, "vit%dx%dx%d", model->patch_size, model->depth, model->dim);
}

static struct tried *find_tried(struct bracket *bracket, const struct lab_campaign_point *model,
                                struct lab_arena *arena) {
    for (int i = 0; i < bracket->count; i++)
        if (same_model(bracket->models[i].model, model))
            return &bracket->models[i];
    LAB_ADD(bracket->models, bracket->count, arena) = (struct tried){.model = model};
    return &bracket->models[bracket->count - 1];
}

/* Claims on the NUMA node that the first one is of, as the crossover's headline is. A model that
 * ran again goes by what it showed last. */
static void gather(struct bracket *bracket, const struct lab_campaign_claims *claims,
                   const char *kind, struct lab_arena *arena) {
    int before = bracket->count;
    bool *again = lab_arena_alloc(arena, (size_t)before + 1, sizeof *again);
    for (int c = 0; c < claims->count; c++) {
        const struct lab_claim *claim = claims->items[c];
        int at = lab_str_equal(claim->kind, kind) && claim->scope_count == 1
                     ? LAB_FIND(claims->points, claims->point_count, name, claim->scope[0])
                     : -1;
        if (at < 0 || !(claim->effect > -1))
            continue;
        const struct lab_campaign_point *point = &claims->points[at];
        bracket->node = bracket->gpus.count ? bracket->node : point->node;
        if (point->node != bracket->node)
            continue;
        struct tried *tried = find_tried(bracket, point, arena);
        ptrdiff_t number = tried - bracket->models;
        if (number < before && !again[number]) {
            *tried = (struct tried){.model = tried->model};
            again[number] = true;
        }
        double mean = log1p(claim->effect); /* of one run by its value */
        double low = isnan(claim->low) ? mean : log1p(claim->low),
               high = isnan(claim->high) ? mean : log1p(claim->high);
        tried->sum += mean;
        tried->low = tried->devices && tried->low < low ? tried->low : low;
        tried->high = tried->devices && tried->high > high ? tried->high : high;
        tried->devices++;
        tried->excess = tried->sum / tried->devices;
        campaign_number_add(&bracket->gpus, point->gpu, arena);
        bracket->repeats = claim->n > bracket->repeats ? claim->n : bracket->repeats;
    }
}

static struct bracket find_bracket(const struct lab_campaign *campaign, int phase, int study,
                                   const struct lab_campaign_known *known,
                                   struct lab_arena *arena) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    const char *kind = own->studies[study].kind;
    struct bracket bracket = {.models = NULL};
    for (int i = 0; i < campaign->phase_count; i++)
        if (lab_campaign_comes_before(campaign, campaign->order[i], phase))
            gather(&bracket, &known->phases[campaign->order[i]], kind, arena);
    for (int s = study - own->studies[study].step; s < study; s++)
        gather(&bracket, &known->steps[own->first_study + s], kind, arena);
    LAB_SORT(bracket.models, bracket.count, LAB_BY(bracket.models, excess));
    bracket.repeats = bracket.repeats < REPEATS_LEAST  ? REPEATS_LEAST
                      : bracket.repeats > REPEATS_MOST ? REPEATS_MOST
                                                       : bracket.repeats;
    return bracket;
}

/* --- a model between two --- */

static int heads_of(int dim, const struct lab_campaign_point *a,
                    const struct lab_campaign_point *b) {
    return dim % a->heads == 0 ? a->heads : dim % b->heads == 0 ? b->heads : 1;
}

/* After `dim`, up to `most`: a multiple of DIM_STEP, or `most` itself. */
static int next_dim(int dim, int most) {
    int next = (dim / DIM_STEP + 1) * DIM_STEP;
    return dim < most && next > most ? most : next;
}

/* By depth × width² from the one with its patch size, which determines the number of tokens. */
static double guess_work(const struct lab_campaign_point *model,
                         const struct lab_campaign_point *like) {
    double width = (double)model->dim / like->dim;
    return like->work * model->depth / like->depth * width * width;
}

/* Whether it was run, or is the third depth of one width: with three widths of one depth, these
 * would be two series, and the crossover that of the first. */
static bool is_taken(const struct bracket *bracket, const struct lab_campaign_point *model,
                     bool by_depth) {
    int alike = 0;
    for (int i = 0; i < bracket->count; i++) {
        const struct lab_campaign_point *own = bracket->models[i].model;
        if (same_model(own, model))
            return true;
        alike += own->dim == model->dim && own->patch_size == model->patch_size;
    }
    return !by_depth && alike > 1;
}

/* Of about the geometric mean of their work and of their depth: the crossover depends on a model's
 * shape as well. False = there is none between them. */
static bool find_between(const struct bracket *bracket, const struct lab_campaign_point *a,
                         const struct lab_campaign_point *b, struct lab_campaign_point *ret_model) {
    const struct lab_campaign_point *ends[] = {a, b};
    int least = a->dim < b->dim ? a->dim : b->dim, most = a->dim < b->dim ? b->dim : a->dim;
    int shallow = a->depth < b->depth ? a->depth : b->depth,
        deep = a->depth < b->depth ? b->depth : a->depth;
    double nearest = INFINITY, low = fmin(a->work, b->work), high = fmax(a->work, b->work);
    for (int e = 0; e < 2; e++)
        for (int dim = least; dim <= most; dim = next_dim(dim, most))
            for (int depth = shallow; depth <= deep; depth++) {
                struct lab_campaign_point model = *ends[e];
                model.depth = depth;
                model.dim = dim;
                model.heads = heads_of(dim, ends[e], ends[1 - e]);
                model.mlp_dim = ends[e]->mlp_dim * dim / ends[e]->dim;
                model.work = guess_work(&model, ends[e]);
                double distance = fabs(log(model.work / sqrt(low * high))) +
                                  fabs(log(depth / sqrt((double)shallow * deep)));
                if (model.work > low && model.work < high && distance < nearest &&
                    !is_taken(bracket, &model, least == most)) {
                    nearest = distance;
                    *ret_model = model;
                }
            }
    return isfinite(nearest);
}

/* --- the step --- */

static const char *configs_word(const struct lab_campaign_point *const *models, int count,
                                struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "experiment.vit_configs=[");
    for (int i = 0; i < count; i++)
        lab_str_printf(&text, "%s{patch_size:%d,depth:%d,heads:%d,dim:%d,mlp_dim:%d}", i ? "," : "",
                       models[i]->patch_size, models[i]->depth, models[i]->heads, models[i]->dim,
                       models[i]->mlp_dim);
    lab_str_add(&text, "]");
    return lab_arena_strdup(arena, text.text);
}

/* The two next to the crossover, the model between them, and on either side the nearest that is
 * certainly there; returns how many. */
static int choose(const struct bracket *bracket, int above, const struct lab_campaign_point *next,
                  const struct lab_campaign_point **ret_models) {
    int low = above - 1, high = above, count = 0;
    while (low > 0 && !(bracket->models[low].high < 0))
        low--;
    while (high + 1 < bracket->count && !(bracket->models[high].low > 0))
        high++;
    if (low < above - 1)
        ret_models[count++] = bracket->models[low].model;
    ret_models[count++] = bracket->models[above - 1].model;
    ret_models[count++] = next;
    ret_models[count++] = bracket->models[above].model;
    if (high > above)
        ret_models[count++] = bracket->models[high].model;
    return count;
}

/* How near the crossover is to a model, for certain; NaN = unknown. */
static double distance_of(const struct tried *tried) {
    return expm1(fmax(fabs(tried->low), fabs(tried->high)));
}

const char *const *campaign_bisect(const struct lab_campaign *campaign, int phase, int study,
                                   const struct lab_campaign_known *known, struct lab_arena *arena,
                                   const char **ret_why) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    const struct lab_campaign_study *asked = &own->studies[study];
    struct bracket bracket = find_bracket(campaign, phase, study, known, arena);
    int above = 0, nearest = 0;
    for (int i = 0; i < bracket.count; i++) {
        above += bracket.models[i].excess < 0;
        if (distance_of(&bracket.models[i]) < distance_of(&bracket.models[nearest]))
            nearest = i;
    }
    *ret_why = "no crossover between the models that were run";
    if (above == 0 || above == bracket.count)
        return NULL;
    double distance = distance_of(&bracket.models[nearest]);
    const char *near = lab_arena_printf(arena, "crossover within %.1f%% of %s", 100 * distance,
                                        name_of(bracket.models[nearest].model, arena));
    *ret_why = lab_arena_printf(arena, "%s, %.3g%% asked for", near, 100 * asked->width);
    if (distance <= asked->width)
        return NULL;
    const struct lab_campaign_point *models[MODELS_MOST], *below = bracket.models[above - 1].model,
                                                          *over = bracket.models[above].model;
    struct lab_campaign_point next;
    *ret_why = lab_arena_printf(arena, "%s; no model lies between %s and %s", near,
                                name_of(below, arena), name_of(over, arena));
    if (!find_between(&bracket, below, over, &next))
        return NULL;
    int count = choose(&bracket, above, &next, models);
    int64_t runs = (int64_t)count * bracket.gpus.count * bracket.repeats;
    for (int s = study - asked->step; s < study; s++)
        runs += known->studies[own->first_study + s].planned;
    *ret_why = lab_arena_printf(arena, "%s; %lld runs are allowed, the next step would make %lld",
                                near, (long long)asked->runs, (long long)runs);
    if (runs > asked->runs)
        return NULL;
    const char **words = lab_arena_alloc(arena, 5, sizeof *words);
    struct campaign_numbers nodes = {0};
    campaign_number_add(&nodes, bracket.node, arena);
    words[0] = campaign_number_word("gpu_ids", &bracket.gpus, arena);
    words[1] = campaign_number_word("numa_nodes", &nodes, arena);
    words[2] = lab_arena_printf(arena, "experiment.repeat=%d", bracket.repeats);
    words[3] = configs_word(models, count, arena);
    *ret_why = lab_arena_printf(arena, "crossover between %s and %s: next is %s",
                                name_of(below, arena), name_of(over, arena), name_of(&next, arena));
    return words;
}

/* --- points --- */

static int whole(const struct lab_study_run *run, const char *key) {
    double number = lab_value_as_number(lab_value_get(run->options, key));
    return number >= 0 && number < INT32_MAX ? (int)number : -1;
}

void lab_campaign_add_points(const struct lab_study_table *studies, int count,
                             struct lab_arena *arena, struct lab_campaign_claims *claims) {
    struct lab_campaign_point *points = NULL;
    int point_count = 0;
    for (int s = 0; s < count; s++)
        for (int i = 0; i < studies[s].run_count; i++) {
            const struct lab_study_run *run = &studies[s].runs[i];
            struct lab_campaign_point point = {.name = run->point,
                                               .patch_size = whole(run, "patch_size"),
                                               .depth = whole(run, "depth"),
                                               .heads = whole(run, "heads"),
                                               .dim = whole(run, "dim"),
                                               .mlp_dim = whole(run, "mlp_dim"),
                                               .work = lab_study_complexity(run)};
            bool sized = point.patch_size > 0 && point.depth > 0 && point.heads > 0 &&
                         point.dim > 0 && point.mlp_dim >= 0 && point.work > 0;
            /* one batch and image size: a sweep's points have these in their names */
            if (!sized || run->rank_count != 1 || !lab_str_ends(run->point, run->model) ||
                LAB_FIND(points, point_count, name, point.name) >= 0)
                continue;
            point.gpu = run->run->ranks[0].gpu_id;
            point.node = run->ranks[0].numa_node;
            LAB_ADD(points, point_count, arena) = point;
        }
    claims->points = points;
    claims->point_count = point_count;
}
