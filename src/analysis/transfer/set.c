/*
 * set.c: points that agree in all but what a question asks about, in its order. Copies get a law:
 * each waits a while and then takes its bytes at the link's bandwidth, so that small ones seem
 * slow.
 */
#include "analysis/transfer/transfer.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

static const char *const by_image[] = {"tensor_shape", "batch_size", NULL};
/* outputs grow with a model's width, with the number of its patches and with the batch */
static const char *const by_model[] = {"model",   "patch_size",   "depth",      "heads", "dim",
                                       "mlp_dim", "tensor_shape", "batch_size", NULL};
static const char *const by_batch[] = {"batch_size", NULL};
static const char *const by_pool[] = {"memory_size_mb", NULL};
static const char *const *const varying[TRANSFER_QUESTIONS] = {by_image, by_model, by_batch,
                                                               by_pool};

bool transfer_is_copies(enum transfer_question question) {
    return question == TRANSFER_H2D || question == TRANSFER_D2H;
}

/* --- rows --- */

/* "10 × 3x224x224" */
static const char *image_words(const struct lab_study_run *run, struct lab_arena *arena) {
    const struct lab_value *shape = lab_study_setting(run, "tensor_shape");
    double batch = lab_study_setting_number(run, "batch_size");
    LAB_AUTO(str, text);
    if (!isnan(batch))
        lab_str_printf(&text, "%.0f × ", batch);
    for (int i = 0; shape && shape->type == LAB_VALUE_LIST && i < shape->count; i++)
        if (shape->items[i]->type == LAB_VALUE_INT)
            lab_str_printf(&text, "%s%lld", i ? "x" : "", (long long)shape->items[i]->integer);
    return lab_arena_strdup(arena, text.text);
}

static enum lab_stage stage_of(enum transfer_question question) {
    return question == TRANSFER_D2H ? LAB_STAGE_D2H : LAB_STAGE_H2D;
}

/* Where it lies in the set's order; what was measured there comes later, since it takes long. */
static struct transfer_row make_row(enum transfer_question question,
                                    const struct lab_study_point *point, struct lab_arena *arena) {
    const struct lab_study_run *run = point->runs[0];
    struct transfer_row row = {.point = point};
    switch (question) {
    case TRANSFER_H2D:
        row.x = transfer_bytes(point, stage_of(question));
        row.label = image_words(run, arena);
        break;
    case TRANSFER_D2H:
        row.x = transfer_bytes(point, stage_of(question));
        row.label = lab_arena_printf(arena, "%s, %s", run->model, image_words(run, arena));
        break;
    case TRANSFER_BATCH:
        row.x = lab_study_setting_number(run, "batch_size");
        row.label = lab_arena_printf(arena, "%.0f", row.x);
        break;
    default:
        row.x = lab_study_setting_number(run, "memory_size_mb");
        row.label = lab_arena_printf(arena, "%.0f MB", row.x);
        break;
    }
    return row;
}

static void measure(struct transfer_row *row, enum transfer_question question) {
    row->rate = lab_study_point_rate(row->point);
    row->bandwidth = transfer_bandwidth(row->point, stage_of(question));
}

static bool is_usable(const struct transfer_row *row, enum transfer_question question) {
    double value = transfer_is_copies(question) ? row->bandwidth.value : row->rate.value;
    return row->x > 0 && value > 0 && isfinite(value);
}

static int by_x(const void *a, const void *b) {
    const struct transfer_row *left = a, *right = b;
    return (left->x > right->x) - (left->x < right->x);
}

static int count_distinct(const struct transfer_row *rows, int count) {
    int distinct = count > 0;
    for (int i = 1; i < count; i++)
        distinct += rows[i].x > rows[i - 1].x;
    return distinct;
}

/* --- the law --- */

static void fit_law(struct transfer_set *set, struct lab_arena *arena) {
    size_t n = (size_t)set->count;
    double *x = lab_arena_alloc(arena, 4 * n + 1, sizeof *x), *y = x + 2 * n, *weights = y + n;
    if (count_distinct(set->rows, set->count) < 3)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct transfer_row *row = &set->rows[i];
        double time_s = row->x * row->point->runs[0]->rank_count / row->bandwidth.value;
        x[2 * i] = 1;
        x[2 * i + 1] = row->x;
        y[i] = time_s;
        weights[i] = 1 / (time_s * time_s);
    }
    set->law = lab_fit_nonnegative(&(struct lab_fit_data){x, y, weights, n, 2});
    set->fitted = set->law.state == LAB_FIT_OK && set->law.coefficients[1] > 0;
}

struct lab_effect transfer_law_bandwidth(const struct transfer_set *set) {
    return (struct lab_effect){
        1 / set->law.coefficients[1],
        lab_fit_reciprocal(lab_fit_interval(&set->law, 1, TRANSFER_CONFIDENCE))};
}

/* --- changes --- */

/* Against the first row, for all sets of a question together. */
static void compare_rates(struct transfer_sets *sets, struct lab_arena *arena) {
    int total = 0, next = 0;
    for (int s = 0; s < sets->count; s++)
        total += sets->items[s].count - 1;
    struct lab_study_ratio *ratios = lab_arena_alloc(arena, (size_t)total + 1, sizeof *ratios);
    for (int s = 0; s < sets->count; s++)
        for (int i = 1; i < sets->items[s].count; i++)
            ratios[next++] = lab_study_compare(sets->items[s].rows[0].point,
                                               sets->items[s].rows[i].point, LAB_STUDY_RATE);
    lab_study_adjust(ratios, total);
    next = 0;
    for (int s = 0; s < sets->count; s++)
        for (int i = 1; i < sets->items[s].count; i++)
            sets->items[s].rows[i].change = ratios[next++];
}

/* The points of a group that have a place in its order, rising; a million iterations aren't looked
 * at for a set that has nothing to hold against each other. */
static struct transfer_set make_set(enum transfer_question question,
                                    const struct lab_study_group *group, struct lab_arena *arena) {
    struct transfer_set set = {.group = group};
    set.rows = lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *set.rows);
    for (int i = 0; i < group->count; i++) {
        struct transfer_row row = make_row(question, group->points[i], arena);
        if (row.x > 0)
            set.rows[set.count++] = row;
    }
    qsort(set.rows, (size_t)set.count, sizeof *set.rows, by_x);
    int found = count_distinct(set.rows, set.count) < 2 ? 0 : set.count;
    set.count = 0;
    for (int i = 0; i < found; i++) {
        measure(&set.rows[i], question);
        if (is_usable(&set.rows[i], question))
            set.rows[set.count++] = set.rows[i];
    }
    return set;
}

struct transfer_sets transfer_sets_make(enum transfer_question question,
                                        const struct lab_study_point *points, int count,
                                        struct lab_arena *arena) {
    struct transfer_sets sets = {.question = question};
    struct lab_study_group *groups;
    int group_count = lab_study_groups(points, count, varying[question], arena, &groups);
    sets.items = lab_arena_alloc(arena, (size_t)group_count + 1, sizeof *sets.items);
    for (int g = 0; g < group_count; g++) {
        struct transfer_set set = make_set(question, &groups[g], arena);
        if (count_distinct(set.rows, set.count) < 2)
            continue;
        if (transfer_is_copies(question))
            fit_law(&set, arena);
        sets.items[sets.count++] = set;
    }
    if (!transfer_is_copies(question))
        compare_rates(&sets, arena);
    return sets;
}
