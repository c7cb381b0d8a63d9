/* shared.c: what the words of all placements have in common: labels of a chart leave it out. */
#include "analysis/recommend/recommend.h"

#include <string.h>

static struct lab_choice_shared share(struct lab_choice_shared most, const char *a, const char *b) {
    size_t a_length = strlen(a), b_length = strlen(b);
    struct lab_choice_shared all = {0};
    for (size_t i = 0; i < most.before && a[i] == b[i]; i++)
        if (i > 0 && a[i - 1] == ',' && a[i] == ' ')
            all.before = i + 1;
    size_t left = (a_length < b_length ? a_length : b_length) - all.before;
    for (size_t i = 1; i <= most.after && i < left && a[a_length - i] == b[b_length - i]; i++)
        if (a[a_length - i] == ',')
            all.after = i;
    return all;
}

struct lab_choice_shared lab_choices_shared(const struct lab_choices *placements) {
    struct lab_choice_shared all = {0};
    if (placements->count > 0)
        all.before = all.after = strlen(placements->items[0].words);
    for (int i = 0; i < placements->count; i++)
        all = share(all, placements->items[0].words, placements->items[i].words);
    return all;
}

const char *lab_choices_shared_words(const struct lab_choices *placements,
                                     struct lab_choice_shared all, struct lab_arena *arena) {
    if (all.before + all.after == 0)
        return NULL;
    const char *words = placements->items[0].words;
    return lab_arena_printf(arena, "All placements: %.*s%s.",
                            (int)(all.before ? all.before - 2 : 0), words,
                            words + strlen(words) - all.after + (all.before ? 0 : 2));
}
