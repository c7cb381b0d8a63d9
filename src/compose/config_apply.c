/*
 * config_apply.c: one value override applied to a tree. The containers on the way to the key are
 * copied, the rest is shared with the tree before.
 */
#include "compose/config_internal.h"

#include <string.h>

struct change {
    const struct lab_override *word;
    const char *key;
    const char **parts;
    int part_count;
    struct lab_value *root;
    struct lab_arena *arena;
    struct lab_err *err;
};

void lab_config_mark(struct lab_value *value, const char *word) {
    if (value->origin)
        return;
    value->origin = word;
    value->line = 0;
    for (int i = 0; i < value->count; i++)
        lab_config_mark(value->items[i], word);
}

/* --- errors --- */

/* Where part `depth` of the key stands in the word, from 1; 0 if the word doesn't hold the key. */
static int part_column(const struct change *c, int depth) {
    const char *at = strstr(c->word->text, c->key);
    if (!at)
        return 0;
    for (int i = 0; at && i <= depth; i++) {
        at = strstr(at, c->parts[i]);
        if (at && i < depth)
            at += strlen(c->parts[i]);
    }
    if (!at)
        return 0;
    return lab_str_columns(
               lab_arena_strndup(c->arena, c->word->text, (size_t)(at - c->word->text))) +
           1;
}

static int fail(struct change *c, int depth, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct change *c, int depth, const char *format, ...) {
    LAB_WITH_ARGS(format, lab_err_vset(c->err, LAB_ERR_USER, format, args));
    int column = part_column(c, depth);
    if (column)
        lab_err_context(c->err, "column %d", column);
    return lab_config_blame_word(c->word, c->err);
}

/* "experiment.test": the key's first `count` parts. */
static const char *prefix(const struct change *c, int count) {
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = *text ? lab_arena_printf(c->arena, "%s.%s", text, c->parts[i]) : c->parts[i];
    return text;
}

/* The path of some map that holds the key, anywhere in the tree: for those who forget a prefix. */
static bool find_elsewhere(const struct lab_value *value, const char *key, struct lab_str *out) {
    if (value->type != LAB_VALUE_MAP)
        return false;
    size_t length = out->length;
    for (int pass = 0; pass < 2; pass++) /* what is near before what is deep */
        for (int i = 0; i < value->count; i++) {
            lab_str_printf(out, "%s%s", length ? "." : "", value->keys[i]);
            if (pass == 0 ? strcmp(value->keys[i], key) == 0
                          : find_elsewhere(value->items[i], key, out))
                return true;
            out->length = length;
            out->text[length] = '\0';
        }
    return false;
}

static int fail_unknown(struct change *c, const struct lab_value *map, int depth) {
    LAB_AUTO(str, elsewhere);
    LAB_AUTO(str, hint);
    lab_config_suggest(map, c->parts[depth], &hint);
    if (!hint.length && find_elsewhere(c->root, c->parts[c->part_count - 1], &elsewhere))
        lab_str_printf(&hint, "; did you mean '%s'?", elsewhere.text);
    if (c->word->kind == LAB_OVERRIDE_CHANGE)
        lab_str_printf(&hint, "%s to add it: +%.*s", hint.length ? "" : ";", LAB_CONFIG_WORD_SHOWN,
                       c->word->text);
    const char *above = prefix(c, depth);
    fail(c, depth, "%s '%s'%s%s%s%s",
         c->word->kind == LAB_OVERRIDE_DELETE ? "there is no key" : "unknown key", c->parts[depth],
         *above ? " in '" : "", above, *above ? "'" : "", hint.text);
    return -1;
}

static int fail_scalar(struct change *c, const struct lab_value *value, int depth) {
    const char *above = prefix(c, depth);
    if (value->type == LAB_VALUE_NULL)
        return fail(c, depth, "'%s' is null and has no key '%s'; to add it: +%.*s", above,
                    c->parts[depth], LAB_CONFIG_WORD_SHOWN, c->word->text);
    return fail(c, depth, "'%s' is %s and has no keys", above, lab_value_type_name(value->type));
}

static int fail_index(struct change *c, const struct lab_value *list, int depth) {
    if (list->count == 0)
        return fail(c, depth, "'%s' is an empty list", prefix(c, depth));
    return fail(c, depth, "'%s' has %d element%s: the index goes from 0 to %d", prefix(c, depth),
                list->count, list->count == 1 ? "" : "s", list->count - 1);
}

/* --- at the key --- */

/* A map's keys one by one; `strict`: none of them new. */
static int merge(struct change *c, struct lab_value *old, struct lab_value *value, bool strict,
                 struct lab_value **ret_value) {
    if (!old || old->type != LAB_VALUE_MAP || value->type != LAB_VALUE_MAP) {
        *ret_value = lab_config_adopt(c->arena, value);
        return 0;
    }
    for (int i = 0; i < value->count; i++) {
        int at = lab_config_find(old, value->keys[i]);
        if (at < 0 && strict) {
            LAB_AUTO(str, hint);
            lab_config_suggest(old, value->keys[i], &hint);
            fail(c, c->part_count - 1, "unknown key '%s' in '%s'%s%s to add it: +%.*s",
                 value->keys[i], c->key, hint.text, hint.length ? "" : ";", LAB_CONFIG_WORD_SHOWN,
                 c->word->text);
            return -1;
        }
        struct lab_value *child = NULL;
        if (merge(c, at < 0 ? NULL : old->items[at], value->items[i], strict, &child) < 0)
            return -1;
        old = at < 0 ? lab_config_with_key(c->arena, old, value->keys[i], child)
                     : lab_config_with(c->arena, old, at, child);
    }
    *ret_value = old;
    return 0;
}

static int set(struct change *c, struct lab_value *old, struct lab_value **ret_value) {
    struct lab_value *value = c->word->value;
    bool container = value->type == LAB_VALUE_MAP || value->type == LAB_VALUE_LIST;
    if (c->word->kind == LAB_OVERRIDE_ADD && old && old->type != LAB_VALUE_NULL && !container)
        return fail(c, c->part_count - 1, "'%s' is set already; to change it: %s=…, or ++%s=…",
                    c->key, c->key, c->key);
    return merge(c, old, value, c->word->kind == LAB_OVERRIDE_CHANGE, ret_value);
}

static int check_deletion(struct change *c, const struct lab_value *old) {
    if (!c->word->value || lab_value_equal(c->word->value, old))
        return 0;
    LAB_AUTO(str, text);
    lab_value_write(old, &text);
    int result =
        fail(c, c->part_count - 1, "'%s' is %.200s, so this deletes nothing", c->key, text.text);
    return result;
}

/* --- on the way --- */

static int change(struct change *c, struct lab_value *node, int depth, struct lab_value **ret_node);

/* What a child becomes: deleted (NULL), set, or changed further down. */
static int change_child(struct change *c, struct lab_value *child, int depth,
                        struct lab_value **ret_child) {
    if (depth + 1 < c->part_count)
        return change(c, child, depth + 1, ret_child);
    if (c->word->kind != LAB_OVERRIDE_DELETE)
        return set(c, child, ret_child);
    *ret_child = NULL;
    return check_deletion(c, child);
}

static int change_at(struct change *c, struct lab_value *node, int at, int depth,
                     struct lab_value **ret_node) {
    struct lab_value *child = NULL;
    if (change_child(c, node->items[at], depth, &child) < 0)
        return -1;
    *ret_node =
        child ? lab_config_with(c->arena, node, at, child) : lab_config_without(c->arena, node, at);
    return 0;
}

static int change_each(struct change *c, struct lab_value *list, int depth,
                       struct lab_value **ret_node) {
    if (list->count == 0)
        return fail_index(c, list, depth);
    list = lab_config_with(c->arena, list, 0, list->items[0]); /* a copy, ours to write to */
    for (int i = 0; i < list->count; i++) {
        struct lab_value *item = list->items[i];
        if (item->type != LAB_VALUE_MAP && item->type != LAB_VALUE_LIST)
            return fail(c, depth,
                        "element %d of '%s' is %s and has no key '%s'; an element's number goes "
                        "here, 0 to %d",
                        i, prefix(c, depth), lab_value_type_name(item->type), c->parts[depth],
                        list->count - 1);
        if (change(c, item, depth, &list->items[i]) < 0)
            return -1;
    }
    *ret_node = list;
    return 0;
}

/* What hangs below a key that isn't there yet: {b: {c: value}}. */
static int add_below(struct change *c, int depth, struct lab_value **ret_child) {
    struct lab_value *child = NULL;
    if (set(c, NULL, &child) < 0)
        return -1;
    for (int i = c->part_count - 1; i > depth; i--) {
        struct lab_value *map = lab_value_map(c->arena);
        map->origin = c->word->text;
        lab_value_set(c->arena, map, c->parts[i], child);
        child = map;
    }
    *ret_child = child;
    return 0;
}

static int change_map(struct change *c, struct lab_value *map, int depth,
                      struct lab_value **ret_node) {
    int at = lab_config_find(map, c->parts[depth]);
    if (at >= 0)
        return change_at(c, map, at, depth, ret_node);
    if (c->word->kind == LAB_OVERRIDE_CHANGE || c->word->kind == LAB_OVERRIDE_DELETE)
        return fail_unknown(c, map, depth);
    struct lab_value *child = NULL;
    if (add_below(c, depth, &child) < 0)
        return -1;
    *ret_node = lab_config_with_key(c->arena, map, c->parts[depth], child);
    return 0;
}

static int change(struct change *c, struct lab_value *node, int depth,
                  struct lab_value **ret_node) {
    int index = lab_config_index(c->parts[depth]);
    bool adds = c->word->kind == LAB_OVERRIDE_ADD || c->word->kind == LAB_OVERRIDE_FORCE;
    switch (node->type) {
    case LAB_VALUE_MAP:
        return change_map(c, node, depth, ret_node);
    case LAB_VALUE_LIST:
        if (index < 0)
            return change_each(c, node, depth, ret_node);
        if (index >= node->count)
            return fail_index(c, node, depth);
        return change_at(c, node, index, depth, ret_node);
    case LAB_VALUE_NULL:
        if (adds)
            return change_map(c, lab_value_map(c->arena), depth, ret_node);
        return fail_scalar(c, node, depth);
    default:
        return fail_scalar(c, node, depth);
    }
}

/* --- keys with a second name --- */

static const char *const aliases[][2] = {
    {"repeat", "experiment.repeat"},
    {"runs", "experiment.repeat"},
    {"experiment.runs", "experiment.repeat"},
    {"gpu_ids", "experiment.hardware.gpu_ids"},
    {"numa_nodes", "experiment.hardware.numa_nodes"},
    {"spread", "experiment.spread"},
};

/* The key that a word means; a config's own key of that name comes first. */
static const char *real_key(const struct lab_value *tree, const char *key) {
    const struct lab_value *experiment = lab_value_get(tree, "experiment");
    const char *dot = strrchr(key, '.');
    if (dot ? lab_value_get(experiment, dot + 1) : lab_value_get(tree, key))
        return key;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(key, aliases[i][0]) == 0 && experiment)
            return aliases[i][1];
    return key;
}

int lab_config_apply(struct lab_value *tree, const struct lab_override *word,
                     struct lab_arena *arena, struct lab_value **ret_tree, struct lab_err *err) {
    struct change c = {
        .word = word, .key = real_key(tree, word->key), .root = tree, .arena = arena, .err = err};
    if (lab_key_split(c.key, arena, &c.parts, err) < 0)
        return lab_config_blame_word(word, err);
    while (c.parts[c.part_count])
        c.part_count++;
    if (c.part_count > LAB_CONFIG_MAX_DEPTH) {
        lab_err_set(err, LAB_ERR_USER, "a key of more than %d parts", LAB_CONFIG_MAX_DEPTH);
        return lab_config_blame_word(word, err);
    }
    return change(&c, tree, 0, ret_tree);
}
