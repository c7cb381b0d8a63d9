/* hint.c: the table of hints, by id and by name. */
#include "base/hint.h"

#include "base/str.h"

static const struct lab_hint hints[LAB_HINT_COUNT] = {[LAB_HINT_NONE] = {"", "", NULL},
#define ROW(id, name, text, without) [LAB_HINT_##id] = {name, text, without},
                                                      LAB_HINTS(ROW)
#undef ROW
};

const struct lab_hint *lab_hint(enum lab_hint_id id) {
    return &hints[id];
}

enum lab_hint_id lab_hint_find(const char *name) {
    for (int i = LAB_HINT_NONE + 1; i < LAB_HINT_COUNT; i++)
        if (lab_str_equal(hints[i].name, name))
            return (enum lab_hint_id)i;
    return LAB_HINT_NONE;
}
