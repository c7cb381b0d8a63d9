/*
 * gang.c: pairs of one device and several at the same work, and the law of several sizes.
 *
 * What a gang is held against is the fastest of its members alone: that is what its owner would use
 * otherwise.
 */
#include "analysis/speedup/gang.h"

#include "analysis/speedup/break_even.h"
#include "analysis/training/analysis_training.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95
#define USL_SIZES  3

const char *lab_speedup_grade_name(enum lab_speedup_grade grade) {
    switch (grade) {
    case LAB_SPEEDUP_PAYS:
        return "beneficial";
    case LAB_SPEEDUP_MAYBE:
        return "marginal";
    case LAB_SPEEDUP_STAY:
        return "stay single";
    case LAB_SPEEDUP_AMBIGUOUS:
        return "ambiguous";
    case LAB_SPEEDUP_APART:
        return "apart";
    case LAB_SPEEDUP_UNKNOWN:
        break;
    }
    return "unknown";
}

enum lab_speedup_grade lab_speedup_grade(const struct lab_study_ratio *ratio) {
    if (isnan(ratio->ratio) || isnan(ratio->low) || isnan(ratio->high))
        return LAB_SPEEDUP_UNKNOWN;
    if (ratio->low >= LAB_SPEEDUP_BENEFICIAL)
        return LAB_SPEEDUP_PAYS;
    if (ratio->low >= LAB_SPEEDUP_MARGINAL && ratio->high < LAB_SPEEDUP_BENEFICIAL)
        return LAB_SPEEDUP_MAYBE;
    return ratio->high < LAB_SPEEDUP_MARGINAL ? LAB_SPEEDUP_STAY : LAB_SPEEDUP_AMBIGUOUS;
}

/* --- works --- */

static int find_work(struct lab_gangs *gangs, const struct lab_study_point *point,
                     struct lab_arena *arena) {
    const char *name = lab_study_point_model(point, arena);
    int work = 0;
    while (work < gangs->work_count && strcmp(gangs->works[work].name, name) != 0)
        work++;
    if (work == gangs->work_count)
        gangs->works[gangs->work_count++] = (struct lab_gang_work){
            .name = name, .example = point->runs[0], .usl = {.state = LAB_FIT_TOO_FEW}};
    return work;
}

static const char *list_gpus(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i < run->rank_count; i++)
        text = lab_arena_printf(arena, "%s%s%d", text, i ? "+" : "", run->ranks[i].gpu_id);
    return text;
}

static bool has_member(const struct lab_study_run *gang, int gpu_id) {
    for (int i = 0; i < gang->rank_count; i++)
        if (gang->ranks[i].gpu_id == gpu_id)
            return true;
    return false;
}

static double median_rate(const struct lab_study_point *point) {
    return lab_stats_median(point->rates, (size_t)point->count);
}

/* Among single devices at the same work: the fastest member; without any, the fastest of all. */
static const struct lab_study_point *find_base(const struct lab_study_point *points,
                                               const int *works, int count,
                                               const struct lab_study_point *gang, int work) {
    const struct lab_study_point *best = NULL;
    for (int members = 1; members >= 0 && !best; members--)
        for (int i = 0; i < count; i++) {
            const struct lab_study_run *run = points[i].runs[0];
            if (works[i] != work || run->rank_count != 1 ||
                (members && !has_member(gang->runs[0], run->ranks[0].gpu_id)))
                continue;
            if (!best || median_rate(&points[i]) > median_rate(best))
                best = &points[i];
        }
    return best;
}

static double communication_share(const struct lab_study_point *point) {
    double *shares = lab_mem_resize(NULL, (size_t)point->count + 1, sizeof *shares);
    size_t n = 0;
    for (int i = 0; i < point->count; i++) {
        double share =
            1e-3 * point->runs[i]->result->communication_time_ms / point->runs[i]->time_s;
        if (!isnan(share))
            shares[n++] = share;
    }
    double median = n > 0 ? lab_stats_median(shares, n) : (double)NAN;
    lab_mem_free(shares);
    return median;
}

static struct lab_gang make_gang(const struct lab_study_point *points, const int *works, int count,
                                 int number, struct lab_arena *arena) {
    const struct lab_study_point *point = &points[number];
    struct lab_gang gang = {.work = works[number],
                            .size = point->runs[0]->rank_count,
                            .gpus = list_gpus(point->runs[0], arena),
                            .point = point,
                            .base = find_base(points, works, count, point, works[number]),
                            .ratio = {.ratio = NAN, .low = NAN, .high = NAN, .p = NAN},
                            .communication = communication_share(point)};
    if (gang.base)
        gang.ratio = lab_study_compare(gang.base, point, LAB_STUDY_RATE);
    bool apart = gang.base && lab_training_is_apart(point->runs[0]);
    gang.grade = apart ? LAB_SPEEDUP_APART : lab_speedup_grade(&gang.ratio);
    return gang;
}

bool lab_gang_has_rival(const struct lab_gangs *gangs, const struct lab_gang *gang) {
    for (int i = 0; i < gangs->count; i++)
        if (&gangs->items[i] != gang && gangs->items[i].work == gang->work &&
            gangs->items[i].size == gang->size)
            return true;
    return false;
}

/* --- the law --- */

static int count_sizes(const struct lab_study_point *points, const int *works, int count,
                       int work) {
    int sizes = 0;
    for (int i = 0; i < count; i++) {
        bool seen = works[i] != work;
        for (int k = 0; k < i && !seen; k++)
            seen =
                works[k] == work && points[k].runs[0]->rank_count == points[i].runs[0]->rank_count;
        sizes += !seen;
    }
    return sizes;
}

/* All runs count, each by its relative error. */
static void fit_law(struct lab_gang_work *work, const struct lab_study_point *points,
                    const int *works, int count, int number) {
    size_t room = 0, n = 0;
    for (int i = 0; i < count; i++)
        room += works[i] == number ? (size_t)points[i].count : 0;
    double *x = lab_mem_resize(NULL, 3 * room + 1, sizeof *x), *y = x + room, *weights = y + room;
    for (int i = 0; i < count; i++)
        for (int r = 0; works[i] == number && r < points[i].count; r++) {
            if (!(points[i].rates[r] > 0))
                continue;
            x[n] = points[i].runs[r]->rank_count;
            y[n] = points[i].rates[r];
            weights[n] = 1 / (y[n] * y[n]);
            n++;
        }
    struct lab_fit_data data = {.x = x, .y = y, .weights = weights, .n = n, .inputs = 1};
    work->usl = lab_fit_run(&lab_law_usl, &data);
    if (work->usl.state == LAB_FIT_OK && work->usl.coefficients[2] > 0)
        work->peak = lab_fit_derive(&work->usl, lab_law_usl_peak, CONFIDENCE);
    lab_mem_free(x);
}

/* --- the whole --- */

/* Of those that pay the surest; a smaller one that may be as fast is enough. */
static void set_best(struct lab_gangs *gangs) {
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        struct lab_gang_work *work = &gangs->works[gang->work];
        if (gang->grade == LAB_SPEEDUP_PAYS &&
            (!work->best || gang->ratio.low > work->best->ratio.low))
            work->best = gang;
    }
    for (int w = 0; w < gangs->work_count; w++) {
        const struct lab_gang *fastest = gangs->works[w].best;
        for (int i = 0; fastest && i < gangs->count; i++) {
            const struct lab_gang *gang = &gangs->items[i];
            if (gang->work == w && gang->grade == LAB_SPEEDUP_PAYS &&
                gang->ratio.high >= fastest->ratio.low && gang->size < gangs->works[w].best->size)
                gangs->works[w].best = gang;
        }
    }
}

static int by_name(const void *a, const void *b) {
    const struct lab_study_point *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

void lab_gangs_make(const struct lab_study_table *study, struct lab_arena *arena,
                    struct lab_gangs *ret_gangs) {
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    /* runs come in a random order: tables and pictures go by model */
    qsort(points, (size_t)count, sizeof *points, by_name);
    size_t room = (size_t)count + 1;
    struct lab_gangs gangs = {.works = lab_arena_alloc(arena, room, sizeof *gangs.works),
                              .items = lab_arena_alloc(arena, room, sizeof *gangs.items)};
    int *works = lab_arena_alloc(arena, room, sizeof *works);
    for (int i = 0; i < count; i++)
        works[i] = find_work(&gangs, &points[i], arena);
    for (int i = 0; i < count; i++)
        if (points[i].runs[0]->rank_count > 1)
            gangs.items[gangs.count++] = make_gang(points, works, count, i, arena);
    for (int w = 0; w < gangs.work_count; w++) {
        struct lab_gang_work *work = &gangs.works[w];
        work->peak = (struct lab_fit_derived){NAN, NAN, {NAN, NAN, CONFIDENCE}};
        work->sizes = count_sizes(points, works, count, w);
        if (work->sizes >= USL_SIZES)
            fit_law(work, points, works, count, w);
    }
    set_best(&gangs);
    lab_break_even_make(&gangs, arena);
    *ret_gangs = gangs;
}
