/* gang.c: gangs of devices and their members alone, as claims. */
#include "analysis/speedup/gang.h"

#include "analysis/analysis_group.h"
#include "analysis/analysis_words.h"
#include "analysis/stages/stages.h"
#include "analysis/training/analysis_training.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

static const char *list_gpus(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i < run->rank_count; i++)
        text = lab_arena_printf(arena, "%s%s%d", text, i ? "+" : "", run->ranks[i].gpu_id);
    return text;
}

/* The nearest one that all have above them; the host's is none. */
static const char *shared_bridge(const struct lab_machine *machine,
                                 const struct lab_study_run *run) {
    const struct lab_pci *first = lab_machine_gpu(machine, run->ranks[0].gpu);
    int shared = first && first->bridge_names ? first->bridge_count : 0;
    for (int i = 1; i < run->rank_count && shared > 0; i++) {
        const struct lab_pci *other = lab_machine_gpu(machine, run->ranks[i].gpu);
        int both = other && other != first ? lab_pci_shared_bridges(first, other) : 0;
        shared = both < shared ? both : shared;
    }
    return shared > 1 ? first->bridge_names[shared - 1] : NULL;
}

static bool is_weak(const struct lab_study_run *run) {
    return lab_str_equal(lab_study_text(run, "options.scaling"), "weak");
}

/* "medium, batch 128" where model and batch are all that the name has; else the name. */
static const char *make_title(const struct lab_gang *gang, struct lab_arena *arena) {
    const char *plain = lab_arena_printf(arena, "mlp_%s_batch%.0f%s", gang->model, gang->batch,
                                         gang->scaling ? "_weak" : "");
    if (!gang->trains || !lab_str_equal(plain, gang->work))
        return gang->work;
    return lab_arena_printf(arena, "%s, batch %.0f%s", gang->model, gang->batch,
                            gang->scaling ? " each" : "");
}

/* --- one gang --- */

struct points {
    struct lab_study_point *items;
    const char **works;
    int count;
};

static bool is_member(const struct lab_study_run *gang, const struct lab_study_rank *rank,
                      bool same_node) {
    for (int i = 0; i < gang->rank_count; i++)
        if (gang->ranks[i].gpu_id == rank->gpu_id &&
            (!same_node || gang->ranks[i].numa_node == rank->numa_node))
            return true;
    return false;
}

/* Its members bound as they are in it; else bound otherwise; else any device. */
static void find_alone(struct lab_gang *gang, const struct points *points,
                       struct lab_arena *arena) {
    const struct lab_study_run *run = gang->point->runs[0];
    for (int strict = 2; strict >= 0 && gang->alone_count == 0; strict--)
        for (int i = 0; i < points->count; i++) {
            const struct lab_study_run *other = points->items[i].runs[0];
            if (other->rank_count == 1 && lab_str_equal(points->works[i], gang->work) &&
                (strict == 0 || is_member(run, &other->ranks[0], strict == 2)))
                LAB_ADD(gang->alone, gang->alone_count, arena) = &points->items[i];
        }
}

/* ", NUMA node 2" of a gang that did the same bound to others, too; else "". */
static const char *list_nodes(const struct points *points, int number, struct lab_arena *arena) {
    const struct lab_study_run *run = points->items[number].runs[0];
    const char *gpus = list_gpus(run, arena), *nodes = "";
    bool several = false, differ = false;
    for (int i = 0; i < points->count; i++)
        several |= i != number && lab_str_equal(points->works[i], points->works[number]) &&
                   lab_str_equal(list_gpus(points->items[i].runs[0], arena), gpus);
    for (int i = 0; i < run->rank_count; i++) {
        differ |= run->ranks[i].numa_node != run->ranks[0].numa_node;
        nodes = lab_arena_printf(arena, "%s%s%d", nodes, i ? "+" : "", run->ranks[i].numa_node);
    }
    if (!several)
        return "";
    return differ ? lab_arena_printf(arena, ", NUMA nodes %s", nodes)
                  : lab_arena_printf(arena, ", NUMA node %d", run->ranks[0].numa_node);
}

static void add_contrast(struct lab_contrast *contrast, const struct lab_gang *gang,
                         double weight) {
    for (int i = 0; i < gang->alone_count; i++)
        lab_contrast_add_pair(contrast, gang->alone[i], gang->point, weight / gang->alone_count);
}

static struct lab_claim make_claim(const struct lab_gangs *gangs,
                                   const struct lab_contrast *contrast, const char *kind,
                                   const char *subject, const char *reference) {
    return lab_claim_named(lab_claim_estimate(contrast, LAB_STUDY_RATE),
                           lab_arena_printf(contrast->arena, "%s.%s", gangs->analysis, kind),
                           subject, reference, "throughput");
}

/* Over the runs that the claim rests on: the speed-up is the ratio of two of these. */
static double mean_rate(const struct lab_contrast *contrast,
                        const struct lab_study_point *const *points, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += log(lab_contrast_mean(contrast, points[i], LAB_STUDY_RATE));
    return count > 0 ? exp(sum / count) : (double)NAN;
}

static double communication_share(const struct lab_study_point *point) {
    double sum_s =
        lab_study_point_figure(point, offsetof(struct lab_result, communication_time_ms), 1e-3)
            .value;
    return sum_s / lab_study_estimate(point->times_s, point->count).value;
}

static struct lab_gang make_gang(const struct lab_gangs *gangs, const struct points *points,
                                 int number, struct lab_arena *arena) {
    const struct lab_study_point *point = &points->items[number];
    const struct lab_study_run *run = point->runs[0];
    const char *trained = lab_study_trained_model(run, arena);
    struct lab_gang gang = {.work = points->works[number],
                            .model = trained ? trained : run->model,
                            .parameters = run->work.parameters > 0 ? run->work.parameters : NAN,
                            .order = run->work.parameters,
                            .batch = lab_study_setting_number(run, "batch_size"),
                            .scaling = is_weak(run) ? "weak" : NULL,
                            .devices = run->rank_count,
                            .gpus = list_gpus(run, arena),
                            .names = lab_words_gang(run, arena),
                            .bridge = shared_bridge(gangs->study->machine, run),
                            .trains = trained && run->work.parameters > 0,
                            .independent = lab_training_is_apart(run),
                            .point = point,
                            .runs = point->count,
                            .communication = communication_share(point)};
    struct lab_contrast contrast = {.arena = arena};
    gang.title = make_title(&gang, arena);
    find_alone(&gang, points, arena);
    gang.title = lab_arena_printf(arena, "%s%s", gang.title, list_nodes(points, number, arena));
    gang.work = lab_arena_printf(arena, "%s%s", gang.work, list_nodes(points, number, arena));
    add_contrast(&contrast, &gang, 1);
    gang.one_per_s = mean_rate(&contrast, gang.alone, gang.alone_count);
    gang.many_per_s = mean_rate(&contrast, &point, 1);
    gang.claim = make_claim(gangs, &contrast, "cell",
                            lab_arena_printf(arena, "%s, %s", gang.names, gang.title),
                            lab_arena_printf(arena, "1 %s", gangs->unit));
    return gang;
}

/* --- after the claims of a family were adjusted --- */

static struct lab_effect ratio_of(const struct lab_claim *claim, double over) {
    return (struct lab_effect){
        (1 + claim->effect) / over,
        {(1 + claim->low) / over, (1 + claim->high) / over, claim->confidence}};
}

/* Decimals that show three digits. */
static int three_digits(double value) {
    return value < 0.0995 ? 4 : value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

const char *lab_speedup_times(double value, double low, double high, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    if (isnan(low))
        return lab_arena_printf(arena, "%.*f×", three_digits(value), value);
    return lab_arena_printf(arena, "%.*f× [%.*f, %.*f]", three_digits(value), value,
                            three_digits(low), low, three_digits(high), high);
}

static const char *grade_of(const struct lab_gang *gang, bool shared) {
    const struct lab_claim *claim = &gang->claim;
    double low = gang->speedup.interval.low, high = gang->speedup.interval.high;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return "not tested";
    if (gang->independent)
        return "independent";
    if (shared)
        return LAB_SPEEDUP_NO_ANSWER;
    if (claim->verdict == LAB_CLAIM_YES && low > 1)
        return low >= LAB_SPEEDUP_BENEFICIAL   ? "beneficial"
               : high < LAB_SPEEDUP_BENEFICIAL ? "marginal"
                                               : "faster";
    if (claim->verdict == LAB_CLAIM_YES && high < 1)
        return "stay single";
    return low >= LAB_SPEEDUP_MARGINAL && high < LAB_SPEEDUP_BENEFICIAL ? "marginal"
                                                                        : "inconclusive";
}

static bool has_rival(const struct lab_gangs *gangs, const struct lab_gang *gang) {
    for (int i = 0; i < gangs->count; i++)
        if (gangs->items[i].devices == gang->devices &&
            !lab_str_equal(gangs->items[i].gpus, gang->gpus))
            return true;
    return false;
}

/* Gangs against one device are a family, gangs against each other another: that two devices are
 * faster than one makes it no easier to find a bridge that slows them. */
static void judge(struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_claim **alone = NULL, **rivals = NULL;
    int count = 0, rival_count = 0;
    for (int i = 0; i < gangs->count; i++)
        LAB_ADD(alone, count, arena) = &gangs->items[i].claim;
    for (int i = 0; i < gangs->pool_count; i++)
        LAB_ADD(alone, count, arena) = &gangs->pools[i].claim;
    if (gangs->advised)
        LAB_ADD(alone, count, arena) = &gangs->advised->claim;
    for (int i = 0; i < gangs->rival_count; i++)
        LAB_ADD(rivals, rival_count, arena) = &gangs->rivals[i].claim;
    for (int i = 0; i < gangs->model_count; i++)
        LAB_ADD(rivals, rival_count, arena) = &gangs->models[i].claim;
    if (gangs->model_count > 0)
        LAB_ADD(rivals, rival_count, arena) = &gangs->transfer_bound;
    lab_claim_adjust(alone, count);
    lab_claim_adjust(rivals, rival_count);
}

bool lab_gang_is_above_ideal(const struct lab_gang *gang) {
    return gang->efficiency.interval.low > 1;
}

static void describe_cells(struct lab_gangs *gangs, struct lab_arena *arena) {
    bool shared = lab_gangs_share_note(gangs->study, arena) != NULL;
    for (int i = 0; i < gangs->count; i++) {
        struct lab_gang *gang = &gangs->items[i];
        gang->speedup = ratio_of(&gang->claim, 1);
        gang->efficiency = ratio_of(&gang->claim, gang->devices);
        gang->times = lab_speedup_times(gang->speedup.value, gang->speedup.interval.low,
                                        gang->speedup.interval.high, arena);
        gang->grade = grade_of(gang, shared);
        gang->graded = lab_gang_is_above_ideal(gang)
                           ? lab_arena_printf(arena, "%s, above %d×", gang->grade, gang->devices)
                           : gang->grade;
        gang->which = has_rival(gangs, gang) ? gang->gpus : NULL;
        gang->series = gang->which ? gang->names
                                   : lab_arena_printf(arena, "%d %ss", gang->devices, gangs->unit);
    }
}

int lab_gangs_count(const struct lab_gangs *gangs, const char *grade) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++)
        count += lab_str_equal(gangs->items[i].grade, grade);
    return count;
}

/* --- all gangs of a size --- */

/* `names`: of these devices alone; NULL = of all. */
static struct lab_gang_pool make_pool(const struct lab_gangs *gangs, int devices, const char *names,
                                      struct lab_arena *arena) {
    struct lab_gang_pool pool = {.devices = devices};
    struct lab_contrast contrast = {.arena = arena};
    const struct lab_gang **cells = NULL;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (gang->devices == devices && !isnan(gang->claim.effect) &&
            (!names || lab_str_equal(gang->names, names)))
            LAB_ADD(cells, pool.cells, arena) = gang;
    }
    for (int i = 0; i < pool.cells; i++)
        add_contrast(&contrast, cells[i], 1.0 / pool.cells);
    for (int t = 0; t < contrast.count; t++)
        if (contrast.terms[t].point->count > pool.runs)
            pool.runs = contrast.terms[t].point->count;
    const struct lab_gang *last = pool.cells > 0 ? cells[pool.cells - 1] : NULL;
    const char *points = lab_arena_printf(arena, "%d points", pool.cells),
               *subject = names ? names : lab_arena_printf(arena, "%d %ss", devices, gangs->unit);
    bool single = pool.cells == 1;
    pool.over = single ? last->title : lab_arena_printf(arena, "mean of %s", points);
    pool.claim =
        make_claim(gangs, &contrast, "devices",
                   single ? lab_arena_printf(arena, "%s, %s", subject, last->title) : subject,
                   lab_arena_printf(arena, "1 %s", gangs->unit));
    pool.claim.mean_of = single ? NULL : points;
    return pool;
}

static void describe_pool(struct lab_gang_pool *pool, struct lab_arena *arena) {
    struct lab_effect ratio = ratio_of(&pool->claim, 1);
    pool->times = lab_speedup_times(ratio.value, ratio.interval.low, ratio.interval.high, arena);
}

static void make_pools(struct lab_gangs *gangs, struct lab_arena *arena) {
    int most = 0;
    for (int i = 0; i < gangs->count; i++)
        most = gangs->items[i].devices > most ? gangs->items[i].devices : most;
    for (int devices = 2; devices <= most; devices++) {
        struct lab_gang_pool pool = make_pool(gangs, devices, NULL, arena);
        if (pool.cells > 0)
            LAB_ADD(gangs->pools, gangs->pool_count, arena) = pool;
    }
    for (int i = 0; i < gangs->pool_count; i++)
        describe_pool(&gangs->pools[i], arena);
}

/* --- gangs of one size against each other --- */

static const struct lab_gang *find_gang(const struct lab_gangs *gangs, const char *work,
                                        const char *gpus) {
    for (int i = 0; i < gangs->count; i++)
        if (lab_str_equal(gangs->items[i].work, work) && lab_str_equal(gangs->items[i].gpus, gpus))
            return &gangs->items[i];
    return NULL;
}

/* The first of its size without a shared bridge, if it can be one with a device in common. */
static const struct lab_gang *find_reference(const struct lab_gangs *gangs,
                                             const struct lab_gang *gang) {
    const struct lab_gang *found = NULL;
    for (int strict = 1; strict >= 0 && !found; strict--)
        for (int i = 0; i < gangs->count && !found; i++) {
            const struct lab_gang *other = &gangs->items[i];
            const struct lab_study_run *run = other->point->runs[0];
            bool common = false;
            for (int k = 0; k < run->rank_count; k++)
                common |= is_member(gang->point->runs[0], &run->ranks[k], false);
            if (other->devices == gang->devices && !other->bridge && (common || !strict))
                found = other;
        }
    return found;
}

/* `model`: of this one alone; NULL = of all. */
static int add_rival(const struct lab_gangs *gangs, const struct lab_gang *gang,
                     const struct lab_gang *reference, const char *model,
                     struct lab_contrast *contrast) {
    int works = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *other = &gangs->items[i];
        const struct lab_gang *base = find_gang(gangs, other->work, reference->gpus);
        if (!base || !lab_str_equal(other->gpus, gang->gpus) ||
            (model && !lab_str_equal(other->model, model)))
            continue;
        lab_contrast_add_pair(contrast, base->point, other->point, 1);
        works++;
    }
    return works;
}

static void scale(struct lab_contrast *contrast, double factor) {
    for (int i = 0; i < contrast->count; i++)
        contrast->terms[i].weight *= factor;
}

static struct lab_gang_rival rival_of(const struct lab_gangs *gangs, struct lab_contrast *contrast,
                                      const char *subject, const char *reference,
                                      const char *mean_of) {
    struct lab_gang_rival rival = {
        .reference = reference, .claim = make_claim(gangs, contrast, "gang", subject, reference)};
    rival.claim.quantity = lab_arena_printf(contrast->arena, "throughput per %s", gangs->unit);
    rival.claim.mean_of = mean_of;
    rival.gangs = lab_claim_subject(&rival.claim, contrast->arena);
    return rival;
}

/* "GPUs 0+1 (shared PCIe bridge switch0)" */
static const char *rival_words(const struct lab_gang *gang, struct lab_arena *arena) {
    return gang->bridge
               ? lab_arena_printf(arena, "%s (shared PCIe bridge %s)", gang->names, gang->bridge)
               : gang->names;
}

static void make_rivals(struct lab_gangs *gangs, struct lab_arena *arena) {
    struct lab_contrast pooled = {.arena = arena};
    int sharing = 0;
    LAB_ADD(gangs->rivals, gangs->rival_count, arena) = (struct lab_gang_rival){0}; /* pooled */
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i], *reference = find_reference(gangs, gang);
        struct lab_contrast contrast = {.arena = arena};
        if (LAB_FIND(gangs->items, i, gpus, gangs->items[i].gpus) >= 0 || !reference ||
            lab_str_equal(reference->gpus, gang->gpus))
            continue;
        int works = add_rival(gangs, gang, reference, NULL, &contrast);
        if (works == 0)
            continue;
        scale(&contrast, 1.0 / works);
        for (int t = 0; gang->bridge && t < contrast.count; t++)
            lab_contrast_add(&pooled, contrast.terms[t].point, contrast.terms[t].weight);
        sharing += gang->bridge != NULL;
        struct lab_gang_rival rival =
            rival_of(gangs, &contrast, rival_words(gang, arena), reference->names,
                     works > 1 ? lab_arena_printf(arena, "%d points", works) : NULL);
        rival.shares = gang->bridge != NULL;
        rival.gang = gang;
        rival.base = reference;
        LAB_ADD(gangs->rivals, gangs->rival_count, arena) = rival;
    }
    if (sharing > 1) {
        scale(&pooled, 1.0 / sharing);
        gangs->rivals[0] = rival_of(
            gangs, &pooled, lab_arena_printf(arena, "%ss on a shared PCIe bridge", gangs->unit),
            lab_arena_printf(arena, "%ss on separate bridges", gangs->unit),
            lab_arena_printf(arena, "%d pairings", sharing));
        gangs->rivals[0].shares = true;
    } else {
        gangs->rivals++;
        gangs->rival_count--;
    }
}

/* --- the first of them by model: what a shared bridge slows is copies --- */

/* Members alone, of the two gangs and that model. */
static bool is_transfer_bound(const struct lab_gangs *gangs, const struct lab_gang_rival *rival,
                              const char *model, struct lab_arena *arena) {
    const struct lab_study_point **points = NULL;
    int count = 0;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        bool own = lab_str_equal(gang->names, rival->gang->names) ||
                   lab_str_equal(gang->names, rival->base->names);
        for (int a = 0; own && lab_str_equal(gang->model, model) && a < gang->alone_count; a++)
            LAB_ADD(points, count, arena) = gang->alone[a];
    }
    return count > 0 && lab_stage_is_transfer_bound(points, count, arena);
}

static struct lab_claim split_claim(const struct lab_gangs *gangs, struct lab_contrast *contrast,
                                    int works, const char *kind, const char *model) {
    const struct lab_claim *whole = &gangs->rivals[0].claim;
    struct lab_arena *arena = contrast->arena;
    scale(contrast, 1.0 / works);
    struct lab_claim claim = make_claim(
        gangs, contrast, kind,
        model ? lab_arena_printf(arena, "%s, %s", whole->subject, model) : whole->subject,
        whole->reference);
    claim.quantity = whole->quantity;
    claim.mean_of = model && works > 1 ? lab_arena_printf(arena, "%d points", works) : NULL;
    return claim;
}

/* What the mean of a model's works hides. */
static void set_range(const struct lab_gangs *gangs, struct lab_gang_model *model,
                      struct lab_arena *arena) {
    const struct lab_gang_rival *rival = gangs->rivals;
    double batch = NAN;
    model->least = INFINITY;
    model->most = -INFINITY;
    model->by = "configuration";
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i],
                              *base = find_gang(gangs, gang->work, rival->base->gpus);
        if (!base || !lab_str_equal(gang->gpus, rival->gang->gpus) ||
            !lab_str_equal(gang->model, model->model))
            continue;
        struct lab_contrast contrast = {.arena = arena};
        lab_contrast_add_pair(&contrast, base->point, gang->point, 1);
        struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
        model->least = fmin(model->least, claim.effect);
        model->most = fmax(model->most, claim.effect);
        model->open |= !(claim.low > 0 || claim.high < 0);
        model->reach = lab_words_reach(model->reach, &claim);
        model->by = gang->batch > 0 && !isnan(batch) && gang->batch != batch ? "batch" : model->by;
        batch = gang->batch;
    }
}

static void split(struct lab_gangs *gangs, struct lab_arena *arena) {
    const struct lab_gang_rival *rival = gangs->rivals;
    struct lab_contrast bound = {.arena = arena};
    struct lab_gang_model *models = NULL;
    int count = 0, bound_models = 0, bound_works = 0;
    if (gangs->rival_count == 0 || !rival->shares || !rival->gang || rival->gang->trains)
        return;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        struct lab_contrast one = {.arena = arena};
        int works = LAB_FIND(models, count, model, gang->model) < 0
                        ? add_rival(gangs, rival->gang, rival->base, gang->model, &one)
                        : 0;
        if (works == 0)
            continue;
        struct lab_gang_model model = {
            .model = gang->model,
            .complexity = lab_study_complexity(gang->point->runs[0]),
            .transfer_bound = is_transfer_bound(gangs, rival, gang->model, arena),
            .claim = split_claim(gangs, &one, works, "gang_model", gang->model)};
        if (model.transfer_bound) {
            bound_works += add_rival(gangs, rival->gang, rival->base, gang->model, &bound);
            bound_models++;
        }
        set_range(gangs, &model, arena);
        LAB_ADD(models, count, arena) = model;
    }
    if (bound_models == 0 || bound_models == count)
        return;
    LAB_SORT(models, count, LAB_BY(models, complexity), LAB_BY(models, model));
    gangs->models = models;
    gangs->model_count = count;
    gangs->transfer_bound = split_claim(gangs, &bound, bound_works, "transfer_bound", NULL);
    const char **names = NULL;
    int named = 0;
    for (int i = 0; i < count; i++)
        if (models[i].transfer_bound)
            LAB_ADD(names, named, arena) = models[i].model;
    const char *counted = lab_arena_printf(arena, "%d transfer-bound models", named);
    gangs->transfer_bound.quantity =
        lab_arena_printf(arena, "%s on %s", gangs->transfer_bound.quantity,
                         lab_stage_bound_words(names, named, counted, arena));
}

/* --- the whole --- */

static int by_name(const void *a, const void *b) {
    const struct lab_study_point *x = a, *y = b;
    double of_x = x->runs[0]->work.parameters, of_y = y->runs[0]->work.parameters;
    return of_x != of_y ? (of_x > of_y) - (of_x < of_y) : strverscmp(x->name, y->name);
}

struct lab_gangs lab_gangs_make(const struct lab_study_table *study, const char *analysis,
                                struct lab_arena *arena) {
    struct lab_gangs gangs = {.analysis = analysis, .study = study, .unit = "GPU"};
    struct points points = {0};
    points.count = gangs.point_count = lab_study_points(study, arena, &points.items);
    qsort(points.items, (size_t)points.count, sizeof *points.items, by_name);
    points.works = lab_arena_alloc(arena, (size_t)points.count + 1, sizeof *points.works);
    for (int i = 0; i < points.count; i++) {
        const char *device = points.items[i].runs[0]->ranks[0].device;
        points.works[i] = lab_study_point_model(&points.items[i], arena);
        if (!lab_str_starts(lab_study_device_title(device, arena), "GPU "))
            gangs.unit = "device";
    }
    for (int i = 0; i < points.count; i++)
        if (points.items[i].runs[0]->rank_count > 1)
            LAB_ADD(gangs.items, gangs.count, arena) = make_gang(&gangs, &points, i, arena);
    LAB_SORT(gangs.items, gangs.count, LAB_BY(gangs.items, order), LAB_BY(gangs.items, work),
             LAB_BY(gangs.items, devices), LAB_BY(gangs.items, gpus));
    make_pools(&gangs, arena);
    make_rivals(&gangs, arena);
    split(&gangs, arena);
    if (gangs.pool_count > 0 && gangs.rival_count > 0 && gangs.rivals[0].shares &&
        gangs.rivals[0].base) {
        const struct lab_gang *base = gangs.rivals[0].base;
        gangs.advised = lab_arena_alloc(arena, 1, sizeof *gangs.advised);
        *gangs.advised = make_pool(&gangs, base->devices, base->names, arena);
        describe_pool(gangs.advised, arena);
    }
    judge(&gangs, arena);
    describe_cells(&gangs, arena);
    lab_gangs_find_break_even(&gangs, arena);
    return gangs;
}
