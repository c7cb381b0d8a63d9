/*
 * index.c: which placements are alike in all but one factor, and which have a level: found once,
 * since every comparison asks. A study may have thousands of points.
 */
#include "analysis/recommend/recommend.h"

#include <stdlib.h>
#include <string.h>

/* --- numbers of texts --- */

struct text {
    const char *text;
    int at;
};

static int by_text(const void *a, const void *b) {
    return strcmp(((const struct text *)a)->text, ((const struct text *)b)->text);
}

/* Equal texts have equal numbers, in the order of their bytes; returns how many there are. */
static int number_texts(struct text *texts, int count, int *ret_numbers) {
    int number = -1;
    qsort(texts, (size_t)count, sizeof *texts, by_text);
    for (int i = 0; i < count; i++) {
        number += i == 0 || strcmp(texts[i].text, texts[i - 1].text) != 0;
        ret_numbers[texts[i].at] = number;
    }
    return number + 1;
}

/* --- lists --- */

/* Of each number below `count`, who has it, ascending. */
static struct lab_choice_lists list_by(const int *numbers, int items, int count,
                                       struct lab_arena *arena) {
    struct lab_choice_lists lists = {
        .first = lab_arena_alloc(arena, (size_t)count + 2, sizeof *lists.first),
        .items = lab_arena_alloc(arena, (size_t)items + 1, sizeof *lists.items)};
    int *next = lab_arena_alloc(arena, (size_t)count + 2, sizeof *next);
    for (int i = 0; i <= count; i++)
        lists.first[i] = 0;
    for (int i = 0; i < items; i++)
        lists.first[numbers[i] + 1]++;
    for (int i = 0; i < count; i++)
        lists.first[i + 1] += lists.first[i];
    memcpy(next, lists.first, ((size_t)count + 1) * sizeof *next);
    for (int i = 0; i < items; i++)
        lists.items[next[numbers[i]]++] = i;
    return lists;
}

/* --- alike in all else --- */

enum { MODEL, WHERE, DEVICES, BATCH, COMPILED, SETTINGS, PARTS };

struct key {
    int parts[PARTS], at;
};

static int by_parts(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    for (int p = 0; p < PARTS; p++)
        if (x->parts[p] != y->parts[p])
            return x->parts[p] < y->parts[p] ? -1 : 1;
    return 0;
}

static const char *text_of(const struct lab_choice *item, int which) {
    const char *const texts[] = {item->devices, item->nodes, item->distances, item->batch_text,
                                 item->settings};
    return texts[which];
}

/* Devices are compared from equally distant nodes, whatever their numbers. */
void lab_choices_group(struct lab_choices *placements, struct lab_arena *arena) {
    int count = placements->count, *numbers[5];
    struct text *texts = lab_arena_alloc(arena, (size_t)count + 1, sizeof *texts);
    struct key *keys = lab_arena_alloc(arena, (size_t)count + 1, sizeof *keys);
    int *groups = lab_arena_alloc(arena, (size_t)count + 1, sizeof *groups);
    for (int w = 0; w < 5; w++) {
        numbers[w] = lab_arena_alloc(arena, (size_t)count + 1, sizeof *numbers[w]);
        for (int i = 0; i < count; i++)
            texts[i] = (struct text){text_of(&placements->items[i], w), i};
        number_texts(texts, count, numbers[w]);
    }
    for (int f = 0; f < LAB_FACTORS; f++) {
        int group = -1;
        for (int i = 0; i < count; i++) {
            const struct lab_choice *item = &placements->items[i];
            bool device = f == LAB_FACTOR_DEVICE;
            keys[i] =
                (struct key){{item->model, f == LAB_FACTOR_NODE ? 0 : numbers[device ? 2 : 1][i],
                              device ? 0 : numbers[0][i], f == LAB_FACTOR_BATCH ? 0 : numbers[3][i],
                              f == LAB_FACTOR_COMPILE ? 0 : item->compiled,
                              f == LAB_FACTOR_SETTINGS ? 0 : numbers[4][i]},
                             i};
        }
        qsort(keys, (size_t)count, sizeof *keys, by_parts);
        for (int i = 0; i < count; i++) {
            group += i == 0 || by_parts(&keys[i], &keys[i - 1]) != 0;
            groups[keys[i].at] = placements->items[keys[i].at].groups[f] = group;
        }
        placements->index[f].groups = list_by(groups, count, group + 1, arena);
    }
}

/* --- levels --- */

void lab_choices_number_levels(struct lab_choices *placements, struct lab_arena *arena) {
    int count = placements->count;
    struct text *texts = lab_arena_alloc(arena, (size_t)count + 1, sizeof *texts);
    int *numbers = lab_arena_alloc(arena, (size_t)count + 1, sizeof *numbers);
    for (int f = 0; f < LAB_FACTORS; f++) {
        struct lab_choice_index *index = &placements->index[f];
        for (int i = 0; i < count; i++)
            texts[i] = (struct text){placements->items[i].levels[f], i};
        index->level_count = number_texts(texts, count, numbers);
        index->levels =
            lab_arena_alloc(arena, (size_t)index->level_count + 1, sizeof *index->levels);
        for (int i = 0; i < count; i++) {
            placements->items[i].level_numbers[f] = numbers[i];
            index->levels[numbers[i]] = placements->items[i].levels[f];
        }
        index->by_level = list_by(numbers, count, index->level_count, arena);
    }
}

int lab_choices_level(const struct lab_choices *placements, enum lab_factor factor,
                      const char *level) {
    const struct lab_choice_index *index = &placements->index[factor];
    int low = 0, high = index->level_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(index->levels[middle], level) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < index->level_count && strcmp(index->levels[low], level) == 0 ? low : -1;
}

/* --- rows --- */

void lab_choices_index_rows(struct lab_choices *placements, struct lab_arena *arena) {
    for (int f = 0; f < LAB_FACTORS; f++) {
        struct lab_choice_index *index = &placements->index[f];
        size_t cells = ((size_t)placements->model_count + 1) * (size_t)(index->level_count + 1);
        index->rows = lab_arena_alloc(arena, cells, sizeof *index->rows);
        for (size_t i = 0; i < cells; i++)
            index->rows[i] = -1;
    }
    for (int r = 0; r < placements->row_count; r++) {
        const struct lab_factor_row *row = &placements->rows[r];
        struct lab_choice_index *index = &placements->index[row->factor];
        int level = lab_choices_level(placements, row->factor, row->level);
        if (level >= 0)
            index->rows[(row->model + 1) * index->level_count + level] = r;
    }
}

const struct lab_factor_row *lab_choices_row(const struct lab_choices *placements, int model,
                                             enum lab_factor factor, const char *level) {
    const struct lab_choice_index *index = &placements->index[factor];
    int number = lab_choices_level(placements, factor, level);
    int row =
        number < 0 || !index->rows ? -1 : index->rows[(model + 1) * index->level_count + number];
    return row < 0 ? NULL : &placements->rows[row];
}
