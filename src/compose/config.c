/*
 * config.c: the composer. A job's tree is made in three steps: the configs that its group choices
 * name are merged (once for each set of choices), its other words are applied to that, and what
 * interpolates is resolved.
 */
#include "compose/config_internal.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

int lab_composer_make(const struct lab_config_path *path, const char *primary,
                      struct lab_arena *arena, struct lab_composer **ret_composer,
                      struct lab_err *err) {
    if (lab_config_check_path(path, err) < 0)
        return -1;
    struct lab_composer *composer = lab_arena_alloc(arena, 1, sizeof *composer);
    *composer = (struct lab_composer){
        .arena = arena,
        .path = path,
        .primary = lab_arena_strdup(arena, primary),
        .wall_s = lab_clock_wall_ns() / LAB_NS_PER_S,
        .source_index = lab_value_map(arena),
        .base_index = lab_value_map(arena),
        .groups = lab_value_map(arena),
    };
    *ret_composer = composer;
    return 0;
}

/* --- words that choose --- */

/* Whether a word chooses a group's option: 1, or 0 for a value; -1 if it can be neither. */
static int chooses(struct lab_composer *composer, const struct lab_override *word,
                   struct lab_err *err) {
    bool must = strchr(word->key, '/') || word->package;
    if (!must && strpbrk(word->key, ".["))
        return 0;
    bool is_map = word->value && word->value->type == LAB_VALUE_MAP;
    bool group = lab_composer_has_group(composer, word->key);
    if (must && !group) {
        lab_err_set(err, LAB_ERR_USER, "there is no config group '%s'", word->key);
        return lab_config_blame_word(word, err);
    }
    if (!group || (is_map && !must))
        return 0;
    if (word->kind == LAB_OVERRIDE_FORCE) {
        lab_err_set(err, LAB_ERR_USER,
                    "'%s' is a config group, which is chosen with '%s=' or '+%s=', not '++'",
                    word->key, word->key, word->key);
        return lab_config_blame_word(word, err);
    }
    return 1;
}

/* The words that choose, in their order; the key that the base is kept under is their texts. */
static int split_words(struct lab_composer *composer, const struct lab_override *words, int count,
                       const struct lab_override **choosing, int *ret_count, bool *is_choice,
                       struct lab_err *err) {
    *ret_count = 0;
    for (int i = 0; i < count; i++) {
        if (words[i].sweep != LAB_SWEEP_NONE) {
            lab_err_set(err, LAB_ERR_USER, "a sweep, where one value is needed");
            return lab_config_blame_word(&words[i], err);
        }
        int result = chooses(composer, &words[i], err);
        if (result < 0)
            return -1;
        is_choice[i] = result;
        if (result)
            choosing[(*ret_count)++] = &words[i];
    }
    return 0;
}

/* --- bases --- */

static int count_levels(const char *package) {
    int levels = *package != '\0';
    for (const char *c = package; *c; c++)
        levels += *c == '.';
    return levels;
}

static int make_base(struct lab_composer *composer, const struct lab_override *const *words,
                     int count, struct lab_config_base **ret_base, struct lab_err *err) {
    struct lab_arena *arena = composer->arena;
    struct lab_config_item *items = NULL;
    int item_count = 0;
    if (lab_config_expand(composer, words, count, &items, &item_count, err) < 0)
        return -1;
    struct lab_value *tree = lab_value_map(arena);
    struct lab_config_choice *choices = lab_arena_alloc(arena, (size_t)item_count, sizeof *choices);
    for (int i = 0; i < item_count; i++) {
        choices[i] = items[i].choice;
        if (count_levels(choices[i].package) > LAB_CONFIG_MAX_DEPTH)
            return lab_err_set(err, LAB_ERR_USER, "%s: a package deeper than %d levels",
                               choices[i].origin, LAB_CONFIG_MAX_DEPTH);
        struct lab_value *content =
            lab_config_wrap(arena, choices[i].package, items[i].source->content);
        tree = lab_config_merge(arena, tree, content);
    }
    struct lab_config_base *base = lab_arena_alloc(arena, 1, sizeof *base);
    *base = (struct lab_config_base){.tree = tree,
                                     .interpolates = lab_config_interpolates(tree),
                                     .choices = choices,
                                     .choice_count = item_count};
    *ret_base = base;
    return 0;
}

static const char *base_key(const struct lab_override *const *words, int count,
                            struct lab_str *out) {
    for (int i = 0; i < count; i++) {
        lab_str_add(out, words[i]->text);
        lab_str_add(out, "\n");
    }
    return out->text;
}

static void keep_base(struct lab_composer *composer, const char *key,
                      struct lab_config_base *base) {
    struct lab_arena *arena = composer->arena;
    if (composer->base_count == composer->base_capacity) {
        composer->base_capacity = 2 * composer->base_capacity + 8;
        struct lab_config_base **bases =
            lab_arena_alloc(arena, (size_t)composer->base_capacity, sizeof(*bases));
        for (int i = 0; i < composer->base_count; i++)
            bases[i] = composer->bases[i];
        composer->bases = bases;
    }
    lab_value_set_int(arena, composer->base_index, key, composer->base_count);
    composer->bases[composer->base_count++] = base;
}

static int find_base(struct lab_composer *composer, const struct lab_override *const *words,
                     int count, const struct lab_config_base **ret_base, struct lab_err *err) {
    LAB_AUTO(str, key);
    const struct lab_value *known =
        lab_value_get(composer->base_index, base_key(words, count, &key));
    assert(!known || composer->bases);
    struct lab_config_base *base = known ? composer->bases[known->integer] : NULL;
    if (!base) {
        if (make_base(composer, words, count, &base, err) < 0)
            return -1;
        keep_base(composer, key.text, base);
    }
    *ret_base = base;
    return 0;
}

/* --- composing --- */

static int apply_values(const struct lab_override *words, const bool *is_choice, int count,
                        struct lab_arena *arena, struct lab_value **tree, bool *interpolates,
                        struct lab_err *err) {
    for (int i = 0; i < count; i++) {
        if (is_choice[i])
            continue;
        if (words[i].value) {
            lab_config_mark(words[i].value, words[i].text);
            *interpolates |= lab_config_interpolates(words[i].value);
        }
        if (lab_config_apply(*tree, &words[i], arena, tree, err) < 0)
            return -1;
    }
    return 0;
}

int lab_composer_compose(struct lab_composer *composer, const struct lab_override *overrides,
                         int count, struct lab_arena *arena, struct lab_config *ret_config,
                         struct lab_err *err) {
    LAB_AUTO_FREE const struct lab_override **choosing =
        lab_mem_alloc((size_t)count + 1, sizeof(*choosing));
    LAB_AUTO_FREE bool *is_choice = lab_mem_alloc((size_t)count + 1, sizeof *is_choice);
    int choosing_count = 0;
    const struct lab_config_base *base;
    if (split_words(composer, overrides, count, choosing, &choosing_count, is_choice, err) < 0 ||
        find_base(composer, choosing, choosing_count, &base, err) < 0)
        return -1;
    struct lab_value *tree = base->tree;
    bool interpolates = base->interpolates;
    if (apply_values(overrides, is_choice, count, arena, &tree, &interpolates, err) < 0 ||
        (interpolates && lab_config_resolve(tree, composer->wall_s, arena, &tree, err) < 0))
        return -1;
    *ret_config = (struct lab_config){
        .tree = tree, .choices = base->choices, .choice_count = base->choice_count};
    return 0;
}

int lab_config_compose(const struct lab_config_path *path, const char *primary,
                       const struct lab_override *overrides, int count, struct lab_arena *arena,
                       struct lab_config *ret_config, struct lab_err *err) {
    struct lab_composer *composer = NULL;
    if (lab_composer_make(path, primary, arena, &composer, err) < 0)
        return -1;
    return lab_composer_compose(composer, overrides, count, arena, ret_config, err);
}
