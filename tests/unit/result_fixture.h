/*
 * result_fixture.h: results for tests: from a JSON text with the keys of model/result.h, or with
 * something in every row of its table; and whether two are the same.
 */
#pragma once

#include "model/result.h"

#include <math.h>
#include <string.h>

/* NULL or what is no JSON is a result without values. */
static inline const struct lab_result *result_from(const char *json, struct lab_arena *into) {
    return lab_result_read(lab_result_json(json, into), into);
}

/* --- something in every row --- */

static inline void result_fill_rows(void *record, const struct lab_result_row *rows, int count,
                                    int seed, struct lab_arena *into) {
    for (int i = 0; i < count; i++) {
        void *at = lab_result_member(record, &rows[i]);
        int value = 1000 * seed + i;
        switch (rows[i].type) {
        case LAB_RESULT_NUMBER:
            *(double *)at = value / 7.0;
            break;
        case LAB_RESULT_COUNT:
            *(int64_t *)at = INT64_MAX - value;
            break;
        case LAB_RESULT_FLAG:
            *(signed char *)at = (signed char)(value % 2);
            break;
        case LAB_RESULT_TEXT:
            *(const char **)at = lab_arena_printf(into, "\"text\" \\ %d, größer\n", value);
            break;
        case LAB_RESULT_JSON:
            *(const char **)at =
                lab_arena_printf(into, "{\"a\": [%d, 0.5, null], \"b\": \"ü\"}", value);
            break;
        case LAB_RESULT_LIST:
            for (int k = 0; k < 5; k++)
                result_fill_rows(lab_result_add(record, &rows[i], into), rows[i].item->rows,
                                 rows[i].item->row_count, value + k, into);
            break;
        }
    }
}

static inline struct lab_result *result_full(int rank_count, struct lab_arena *into) {
    struct lab_result *results = lab_arena_alloc(into, (size_t)rank_count + 1, sizeof *results);
    for (int i = 0; i <= rank_count; i++) {
        results[i] = lab_result_none;
        result_fill_rows(&results[i], lab_result_rows, LAB_RESULT_ROW_COUNT, i + 1, into);
    }
    results[0].ranks = &results[1];
    results[0].rank_count = rank_count;
    return results;
}

/* --- the same --- */

static inline const char *result_unequal_rows(const void *a, const void *b,
                                              const struct lab_result_row *rows, int count,
                                              unsigned of) {
    for (int i = 0; i < count; i++) {
        const struct lab_result_row *row = &rows[i];
        const void *x = lab_result_get(a, row), *y = lab_result_get(b, row);
        if (of && !(row->of & of))
            continue;
        bool same = lab_result_has(a, row) == lab_result_has(b, row);
        if (same && lab_result_has(a, row) && row->type == LAB_RESULT_LIST) {
            struct lab_result_list p = lab_result_items(a, row), q = lab_result_items(b, row);
            same = p.count == q.count;
            for (int k = 0; same && k < p.count; k++)
                same = !result_unequal_rows((const char *)p.items + (size_t)k * row->item->size,
                                            (const char *)q.items + (size_t)k * row->item->size,
                                            row->item->rows, row->item->row_count, 0);
        } else if (same && lab_result_has(a, row)) {
            same = row->type == LAB_RESULT_NUMBER  ? *(const double *)x == *(const double *)y
                   : row->type == LAB_RESULT_COUNT ? *(const int64_t *)x == *(const int64_t *)y
                   : row->type == LAB_RESULT_FLAG
                       ? *(const signed char *)x == *(const signed char *)y
                       : strcmp(*(const char *const *)x, *(const char *const *)y) == 0;
        }
        if (!same)
            return row->key;
    }
    return NULL;
}

/* The key of the first value in which they differ, or NULL. Of a row that a rank or a run doesn't
 * have, nothing is asked where `strict` is false. */
static inline const char *result_unequal(const struct lab_result *a, const struct lab_result *b,
                                         bool strict) {
    if (a->rank_count != b->rank_count)
        return "ranks";
    const char *key = result_unequal_rows(a, b, lab_result_rows, LAB_RESULT_ROW_COUNT,
                                          strict ? 0 : LAB_RESULT_OF_RUN);
    for (int i = 0; !key && i < a->rank_count; i++)
        key = result_unequal_rows(&a->ranks[i], &b->ranks[i], lab_result_rows, LAB_RESULT_ROW_COUNT,
                                  strict ? 0 : LAB_RESULT_OF_RANK);
    return key;
}
