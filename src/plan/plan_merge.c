/*
 * plan_merge.c: points that are the same run as another point, and which key has no effect on them.
 * A plan with fewer runs than points is right, but seldom what was meant: gpu_ids=[0,1] in a sweep
 * is two devices one after the other, each of which another job may have already.
 *
 * A point that two series share is meant so and isn't told.
 */
#include "plan/plan_internal.h"

#include <string.h>

/* Where a draft came from first; in the book's arena. */
struct plan_origin {
    int64_t job;
    const struct plan_product *product; /* to compare with, not to read: a job's goes with it */
    const int *at;                      /* the place on each axis of the product */
};

static void count(struct plan_book *book, const char *key) {
    for (int i = 0; i < book->merge_count; i++)
        if (lab_str_equal(book->merges[i].key, key)) {
            book->merges[i].points++;
            return;
        }
    if (book->merge_count < PLAN_MERGES_MAX)
        book->merges[book->merge_count++] =
            (struct plan_merge){lab_arena_strdup(book->arena, key), 1};
}

/* The first axis on which the two places differ. */
static const char *differing_axis(const struct plan_product *product, const int *a, const int *b) {
    for (int i = 0; i < product->count; i++)
        if (a[i] != b[i])
            return product->axes[i].paths[0];
    return NULL;
}

/* The first word in which the two jobs of the sweep differ: its key, in `arena`; NULL = none. */
static const char *differing_word(const struct lab_sweep *sweep, int64_t a, int64_t b,
                                  struct lab_arena *arena) {
    struct lab_override *first, *second;
    int first_count, second_count;
    if (lab_sweep_job(sweep, a, arena, &first, &first_count, NULL) < 0 ||
        lab_sweep_job(sweep, b, arena, &second, &second_count, NULL) < 0)
        return NULL;
    for (int i = 0; i < first_count && i < second_count; i++)
        if (!lab_str_equal(first[i].text, second[i].text))
            return first[i].key;
    return NULL;
}

/* Most points of a job merge with those of one other: the last answer serves them all. */
static const char *differing_key(struct plan_book *book, int64_t first, int64_t second) {
    struct plan_pair *last = &book->last_pair;
    if (!last->key || last->first != first || last->second != second) {
        LAB_AUTO(arena, arena);
        const char *key = differing_word(book->sweep, first, second, &arena);
        *last = (struct plan_pair){first, second, key ? lab_arena_strdup(book->arena, key) : ""};
    }
    return *last->key ? last->key : NULL;
}

void plan_merge_point(struct plan_book *book, const struct plan_job *job,
                      const struct plan_product *product, const int *at, struct plan_draft *draft) {
    const struct plan_origin *first = draft->origin;
    if (!first) {
        struct plan_origin *origin = lab_arena_alloc(book->arena, 1, sizeof *origin);
        *origin = (struct plan_origin){
            job->index, product,
            lab_arena_copy(book->arena, at, (size_t)product->count, sizeof *at)};
        draft->origin = origin;
        return;
    }
    const char *key = NULL;
    if (first->job != job->index)
        key = differing_key(book, first->job, job->index);
    else if (first->product == product)
        key = differing_axis(product, first->at, at);
    if (key)
        count(book, key);
}

void plan_merge_notes(struct plan_book *book) {
    for (int i = 0; i < book->merge_count; i++) {
        const struct plan_merge *merge = &book->merges[i];
        plan_note(book, "%lld point%s the same run as another point: %s has no effect on %s%s",
                  (long long)merge->points, merge->points == 1 ? " is" : "s are", merge->key,
                  merge->points == 1 ? "it" : "them",
                  strstr(merge->key, PLAN_GPU_IDS)
                      ? "; [0,1] is each device alone, [[0,1]] both at once"
                      : "");
    }
}
