/*
 * config_defaults.c: which configs are merged, in which order. The primary config's defaults list
 * is expanded from its end to its start, because what a later config overrides (`override /db: x`,
 * as experiments do) must be known when an earlier list chooses; the items come out in reverse,
 * too. An option that names other choices (`${db}_${server}`) waits until the rest of its list is
 * expanded.
 */
#include "compose/config_internal.h"

#include <assert.h>
#include <string.h>

#define ITEMS_MAX 1000

struct entry { /* of a defaults list */
    enum { SELF, CONFIG, GROUP } kind;
    bool optional, overrides;
    const char *group;              /* from the root; of a CONFIG: where it lies */
    const char *package;            /* where it lands if the config's own header doesn't object */
    bool package_given;             /* by '@' */
    const char *parent_package;     /* what a header's package is below */
    const struct lab_value *option; /* a name, a list of them, or null */
    bool overridden, interpolated;
    const struct lab_override *word; /* that chose the option; or */
    const struct lab_value *item;    /* what stands in the list */
};

struct override { /* of a choice */
    const char *group, *package;
    const struct lab_value *option;  /* NULL: delete */
    const struct lab_value *must_be; /* `~group=option` */
    const struct lab_override *word; /* NULL: a list's; then `option` knows its place */
    bool append, used;
};

struct expansion {
    struct lab_composer *composer;
    struct lab_arena *arena;
    struct override *overrides; /* the strongest first */
    int override_count;
    struct lab_config_item *items; /* the last first */
    int item_count;
    struct lab_value *choices; /* a map: "db", "db@backup" → the option */
    struct lab_err *err;
};

struct level { /* a config that is being expanded */
    const struct level *up;
    const struct lab_config_source *source;
    const char *group, *package;
    bool interpolated; /* chosen by other choices, or below such a one */
};

static int expand(struct expansion *e, const struct level *level);

static const char *dotted(struct expansion *e, const char *group) {
    char *package = lab_arena_strdup(e->arena, group);
    for (char *c = package; *c; c++)
        if (*c == '/')
            *c = '.';
    return package;
}

static const char *joined(struct expansion *e, const char *left, const char *between,
                          const char *right) {
    if (!*left || !*right)
        return *left ? left : right;
    return lab_arena_printf(e->arena, "%s%s%s", left, between, right);
}

/* A package as written, below its parent's. */
static const char *placed(struct expansion *e, const char *parent, const char *group,
                          const char *package) {
    if (strcmp(package, "_here_") == 0)
        return parent;
    if (strcmp(package, "_group_") == 0)
        return dotted(e, group);
    if (strcmp(package, "_global_") == 0)
        return "";
    if (lab_str_starts(package, "_global_."))
        return package + strlen("_global_.");
    return joined(e, parent, ".", package);
}

/* How a word addresses a choice: the package only where it isn't the group's own. */
static const char *choice_name(struct expansion *e, const char *group, const char *package) {
    if (strcmp(dotted(e, group), package) == 0)
        return group;
    return lab_arena_printf(e->arena, "%s@%s", group, package);
}

/* --- reading a list --- */

static int fail_entry(struct expansion *e, const struct lab_value *item, const char *text) {
    lab_err_set(e->err, LAB_ERR_USER,
                "%s: an entry of a defaults list is `name`, `_self_`, or `group: option` with "
                "`optional` or `override` before it and `@package` after the group",
                text);
    return lab_config_blame(item, e->err);
}

static bool take_word(const char **text, const char *word) {
    size_t length = strlen(word);
    if (!lab_str_starts(*text, word) || !strchr(" \t", (*text)[length]) || !(*text)[length])
        return false;
    *text += length + strspn(*text + length, " \t");
    return true;
}

/* "[optional|override] [/]path[@package]" */
static int read_path(struct expansion *e, const struct level *level, const struct lab_value *item,
                     const char *text, struct entry *entry) {
    entry->optional = take_word(&text, "optional");
    entry->overrides = !entry->optional && take_word(&text, "override");
    size_t length = strcspn(text, "@");
    const char *path = lab_arena_strndup(e->arena, text, length);
    const char *package = text[length] ? text + length + 1 : NULL;
    if (strstr(text, "${"))
        return fail_entry(e, item, "interpolation isn't possible here");
    if (!*path || strpbrk(path, " \t") || (package && !*package))
        return fail_entry(e, item, "can't be read");
    bool from_root = path[0] == '/';
    path += from_root;
    const char *below = path; /* what the path adds to the parent's package */
    if (entry->kind == CONFIG) {
        const char *slash = strrchr(path, '/');
        below = slash ? lab_arena_strndup(e->arena, path, (size_t)(slash - path)) : "";
        entry->option = lab_value_string(e->arena, slash ? slash + 1 : path);
    }
    entry->group = from_root ? below : joined(e, level->group, "/", below);
    entry->package_given = package != NULL;
    /* whoever overrides names a choice as the command line would, whatever list it stands in */
    entry->parent_package = entry->overrides ? "" : level->package;
    if (package)
        entry->package = placed(e, entry->parent_package, entry->group, package);
    else
        entry->package = entry->overrides ? dotted(e, entry->group)
                                          : joined(e, level->package, ".", dotted(e, below));
    return 0;
}

static bool is_option(const struct lab_value *value) {
    if (value->type != LAB_VALUE_LIST)
        return value->type == LAB_VALUE_STRING || value->type == LAB_VALUE_NULL;
    for (int i = 0; i < value->count; i++)
        if (value->items[i]->type != LAB_VALUE_STRING)
            return false;
    return true;
}

static int read_entry(struct expansion *e, const struct level *level, const struct lab_value *item,
                      struct entry *ret_entry) {
    struct entry entry = {.kind = CONFIG, .group = "", .package = "", .item = item};
    if (item->type == LAB_VALUE_STRING && strcmp(item->string, "_self_") == 0) {
        entry.kind = SELF;
    } else if (item->type == LAB_VALUE_STRING) {
        if (read_path(e, level, item, item->string, &entry) < 0)
            return -1;
        if (entry.overrides)
            return fail_entry(e, item, "`override` needs a group and an option");
    } else if (item->type == LAB_VALUE_MAP && item->count == 1) {
        entry.kind = GROUP;
        entry.option = item->items[0];
        if (!is_option(entry.option))
            return fail_entry(e, item, "an option is a name, a list of names, or null");
        if (read_path(e, level, item, item->keys[0], &entry) < 0)
            return -1;
    } else {
        return fail_entry(e, item, "can't be read");
    }
    *ret_entry = entry;
    return 0;
}

/* --- overriding --- */

static struct override *find_override(struct expansion *e, const char *group, const char *package) {
    for (int i = 0; i < e->override_count; i++) {
        struct override *o = &e->overrides[i];
        if (strcmp(o->group, group) == 0 && strcmp(o->package, package) == 0)
            return o;
    }
    return NULL;
}

static void add_override(struct expansion *e, struct override override) {
    LAB_ADD(e->overrides, e->override_count, e->arena) = override;
}

/* Words that add: in the place of a choice that the primary list makes, or behind it. */
static void place_additions(struct expansion *e, const struct level *level, struct entry *entries,
                            int *count) {
    int listed = *count;
    for (int i = 0; i < e->override_count; i++) {
        struct override *o = &e->overrides[i];
        if (!o->append)
            continue;
        bool found = false;
        for (int j = 0; j < listed && !found; j++)
            found = entries[j].kind == GROUP && !entries[j].overrides &&
                    strcmp(entries[j].group, o->group) == 0 &&
                    strcmp(entries[j].package, o->package) == 0;
        bool own = strcmp(dotted(e, o->group), o->package) == 0;
        if (!found)
            entries[(*count)++] = (struct entry){.kind = GROUP,
                                                 .group = o->group,
                                                 .package = o->package,
                                                 .package_given = !own,
                                                 .parent_package = level->package,
                                                 .option = o->option};
    }
}

/* The entry as the words and other lists want it; -1 if a deletion doesn't fit. */
static int override_entry(struct expansion *e, struct entry *entry) {
    struct override *o = find_override(e, entry->group, entry->package);
    if (!o)
        return 0;
    o->used = true;
    entry->overridden = o->word != NULL;
    entry->word = o->word;
    if (!o->word)
        entry->item = o->option;
    assert(o->word || !o->must_be);
    if (o->must_be && !lab_value_equal(o->must_be, entry->option)) {
        LAB_AUTO(str, chosen);
        lab_value_write(entry->option, &chosen);
        lab_err_set(e->err, LAB_ERR_USER, "the choice is %s, so this deletes nothing", chosen.text);
        return lab_config_blame_word(o->word, e->err);
    }
    entry->option = o->option;
    if (o->option)
        entry->optional = false;
    return 0;
}

static int check_used(struct expansion *e) {
    for (int i = 0; i < e->override_count; i++) {
        const struct override *o = &e->overrides[i];
        if (o->used)
            continue;
        const char *name = choice_name(e, o->group, o->package);
        LAB_AUTO(str, hint);
        lab_config_suggest(e->choices, name, &hint);
        lab_err_set(e->err, LAB_ERR_USER, "no defaults list chooses '%s'%s%s%s", name, hint.text,
                    o->option && o->word ? "; to add it: +" : "",
                    o->option && o->word ? o->word->text : "");
        assert(o->word || o->option);
        return o->word ? lab_config_blame_word(o->word, e->err)
                       : lab_config_blame(o->option, e->err);
    }
    return 0;
}

/* --- expanding --- */

static int blame_entry(struct expansion *e, const struct entry *entry) {
    if (entry->word)
        return lab_config_blame_word(entry->word, e->err);
    return lab_config_blame(entry->item, e->err);
}

static bool is_choice(const struct lab_value *option) {
    return option && (option->type == LAB_VALUE_STRING || option->type == LAB_VALUE_NULL);
}

/* A choice is made once. A list of options and a deletion are none: they are noted as known. */
static int note_choice(struct expansion *e, const struct entry *entry) {
    const char *name = choice_name(e, entry->group, entry->package);
    const struct lab_value *known = lab_value_get(e->choices, name), *option = entry->option;
    if (is_choice(known) && is_choice(option) &&
        (known->type == LAB_VALUE_STRING || option->type == LAB_VALUE_STRING)) {
        LAB_AUTO(str, here);
        LAB_AUTO(str, later);
        lab_value_write(option, &here);
        lab_value_write(known, &later);
        lab_err_set(
            e->err, LAB_ERR_USER,
            "'%s' is chosen twice, here %s and later %s; `override %s: %s` changes a choice", name,
            here.text, later.text, name, later.text);
        return blame_entry(e, entry);
    }
    if (is_choice(option))
        lab_value_set(e->arena, e->choices, name, (struct lab_value *)option);
    else if (!known)
        lab_value_set_bool(e->arena, e->choices, name, true);
    return 0;
}

static bool interpolates(const struct lab_value *option) {
    return option && option->type == LAB_VALUE_STRING && strstr(option->string, "${");
}

/* "${db}_${server}", from choices that are made already. */
static int resolve_option(struct expansion *e, struct entry *entry) {
    LAB_AUTO(str, text);
    for (const char *rest = entry->option->string; *rest;) {
        if (!lab_str_starts(rest, "${")) {
            lab_str_add_bytes(&text, rest++, 1);
            continue;
        }
        size_t length = strcspn(rest, "}");
        const char *name = lab_arena_strndup(e->arena, rest + 2, length - 2);
        const struct lab_value *choice = lab_value_get(e->choices, name);
        if (!rest[length] || !choice || choice->type != LAB_VALUE_STRING) {
            LAB_AUTO(str, hint);
            if (!choice)
                lab_config_suggest(e->choices, name, &hint);
            lab_err_set(e->err, LAB_ERR_USER,
                        "'%s' is not the name of a choice made before this one%s; ${…} in a "
                        "defaults list stands for one",
                        name, hint.text);
            return blame_entry(e, entry);
        }
        lab_str_add(&text, choice->string);
        rest += length + 1;
    }
    entry->option = lab_value_string(e->arena, text.text);
    return 0;
}

static int fail_missing(struct expansion *e, const struct entry *entry, const char *option) {
    LAB_AUTO(str, text);
    const char *const *options = lab_config_options(e->composer->path, entry->group, e->arena);
    if (entry->kind == CONFIG)
        lab_str_printf(&text, "there is no config '%s'", joined(e, entry->group, "/", option));
    else if (strcmp(option, "???") == 0)
        lab_str_printf(&text, "'%s' must be chosen", choice_name(e, entry->group, entry->package));
    else
        lab_str_printf(&text, "'%s' is not an option of '%s'", option, entry->group);
    const char *nearest = lab_str_nearest(option, options);
    if (nearest)
        lab_str_printf(&text, "; did you mean '%s'?", nearest);
    else if (entry->kind == GROUP && options[0]) {
        lab_str_add(&text, "; there are ");
        lab_str_add_list(&text, options, "and");
    }
    lab_err_set(e->err, LAB_ERR_USER, "%s", text.text);
    return blame_entry(e, entry);
}

static int check_level(struct expansion *e, const struct level *level, const struct entry *entry) {
    int depth = 0;
    for (const struct level *up = level->up; up; up = up->up) {
        depth++;
        if (strcmp(up->source->name, level->source->name) != 0 && depth < LAB_CONFIG_MAX_DEPTH)
            continue;
        lab_err_set(e->err, LAB_ERR_USER, "the config '%s' includes itself, via '%s'",
                    level->source->name, level->up->source->name);
        return blame_entry(e, entry);
    }
    if (e->item_count >= ITEMS_MAX) {
        lab_err_set(e->err, LAB_ERR_USER, "the defaults lists name more than %d configs",
                    ITEMS_MAX);
        return blame_entry(e, entry);
    }
    return 0;
}

static void add_item(struct expansion *e, const struct level *level, const char *option,
                     bool overridden) {
    LAB_ADD(e->items, e->item_count, e->arena) = (struct lab_config_item){
        .choice = {.group = level->up ? level->group : NULL,
                   .option = option,
                   .package = level->package,
                   .parent = level->up ? level->up->source->name : NULL,
                   .origin = level->source->origin,
                   .overridden = overridden},
        .source = level->source,
    };
}

static int expand_option(struct expansion *e, const struct level *up, const struct entry *entry,
                         const char *option) {
    const char *name = joined(e, entry->group, "/", option);
    if (!*option ||
        !lab_config_has_file(e->composer->path, lab_arena_printf(e->arena, "%s.yaml", name)))
        return entry->optional ? 0 : fail_missing(e, entry, option);
    struct level level = {.up = up,
                          .group = entry->group,
                          .package = entry->package,
                          .interpolated = entry->interpolated || up->interpolated};
    if (lab_config_source(e->composer, name, &level.source, e->err) < 0)
        return -1;
    if (level.source->package && !entry->package_given)
        level.package = placed(e, entry->parent_package, entry->group, level.source->package);
    if (check_level(e, &level, entry) < 0)
        return -1;
    int before = e->item_count;
    if (expand(e, &level) < 0)
        return -1;
    for (int i = before; entry->overridden && i < e->item_count; i++)
        if (e->items[i].source == level.source)
            e->items[i].choice.overridden = true;
    return 0;
}

static int expand_entry(struct expansion *e, const struct level *level, struct entry *entry) {
    if (entry->kind == GROUP && note_choice(e, entry) < 0)
        return -1;
    const struct lab_value *option = entry->option;
    if (!option || option->type == LAB_VALUE_NULL)
        return 0;
    if (option->type == LAB_VALUE_STRING)
        return expand_option(e, level, entry, option->string);
    for (int i = option->count - 1; i >= 0; i--) {
        if (interpolates(option->items[i])) {
            lab_err_set(e->err, LAB_ERR_USER, "${…} isn't possible in a list of options");
            return blame_entry(e, entry);
        }
        if (expand_option(e, level, entry, option->items[i]->string) < 0)
            return -1;
    }
    return 0;
}

/* Those that waited: `places[i]` items were there when entry i was due. */
static int expand_waiting(struct expansion *e, const struct level *level, struct entry *entries,
                          const int *places, int count) {
    int moved = 0; /* items that earlier ones have put in */
    for (int i = count - 1; i >= 0; i--) {
        int end = e->item_count, place = places[i] + moved;
        if (!entries[i].interpolated)
            continue;
        if (resolve_option(e, &entries[i]) < 0 || expand_entry(e, level, &entries[i]) < 0)
            return -1;
        int added = e->item_count - end;
        struct lab_config_item *items =
            lab_arena_copy(e->arena, e->items + end, (size_t)added, sizeof *items);
        memmove(e->items + place + added, e->items + place, (size_t)(end - place) * sizeof *items);
        memcpy(e->items + place, items, (size_t)added * sizeof *items);
        moved += added;
    }
    return 0;
}

/* The list as entries, `_self_` among them; overrides are noted and left out. */
static int read_list(struct expansion *e, const struct level *level, struct entry *entries,
                     int *ret_count) {
    const struct lab_value *list = level->source->defaults;
    bool has_self = false;
    int count = 0;
    for (int i = 0; list && i < list->count; i++) {
        struct entry entry = {0};
        if (read_entry(e, level, list->items[i], &entry) < 0)
            return -1;
        if (entry.kind == SELF && has_self)
            return fail_entry(e, list->items[i], "duplicate `_self_`");
        has_self |= entry.kind == SELF;
        if (entry.overrides && level->interpolated)
            return fail_entry(e, list->items[i],
                              "no `override` in a config that other choices have chosen");
        if (!entry.overrides)
            entries[count++] = entry;
        else if (!find_override(e, entry.group, entry.package))
            add_override(e, (struct override){.group = entry.group,
                                              .package = entry.package,
                                              .option = entry.option});
    }
    if (!has_self)
        entries[count++] = (struct entry){.kind = SELF, .group = "", .package = ""};
    if (!level->up)
        place_additions(e, level, entries, &count);
    *ret_count = count;
    return 0;
}

static int expand(struct expansion *e, const struct level *level) {
    int room = (level->source->defaults ? level->source->defaults->count : 0) + 1;
    if (!level->up)
        room += e->override_count;
    struct entry *entries = lab_arena_alloc(e->arena, (size_t)room, sizeof *entries);
    int *places = lab_arena_alloc(e->arena, (size_t)room, sizeof *places), count = 0;
    if (read_list(e, level, entries, &count) < 0)
        return -1;
    const char *slash = strrchr(level->source->name, '/');
    for (int i = count - 1; i >= 0; i--) {
        places[i] = e->item_count;
        if (entries[i].kind == SELF) {
            add_item(e, level, slash ? slash + 1 : level->source->name, false);
            continue;
        }
        if (entries[i].kind == GROUP && override_entry(e, &entries[i]) < 0)
            return -1;
        entries[i].interpolated = entries[i].kind == GROUP && interpolates(entries[i].option);
        if (!entries[i].interpolated && expand_entry(e, level, &entries[i]) < 0)
            return -1;
    }
    return expand_waiting(e, level, entries, places, count);
}

static int note_words(struct expansion *e, const struct lab_override *const *words, int count) {
    for (int i = count - 1; i >= 0; i--) { /* of two words for one choice the last wins */
        const struct lab_override *word = words[i];
        bool deletes = word->kind == LAB_OVERRIDE_DELETE;
        if (word->value && !is_option(word->value)) {
            lab_err_set(e->err, LAB_ERR_USER,
                        "'%s' is a config group: it takes the name of an option, not %s", word->key,
                        lab_value_type_name(word->value->type));
            return lab_config_blame_word(word, e->err);
        }
        /* copies: what comes out outlives the words */
        const char *group = lab_arena_strdup(e->arena, word->key);
        const char *package =
            word->package ? placed(e, "", group, word->package) : dotted(e, group);
        if (find_override(e, group, package))
            continue;
        struct override override = {
            .group = group,
            .package = lab_arena_strdup(e->arena, package),
            .option = deletes ? NULL : word->value,
            .must_be = deletes ? word->value : NULL,
            .word = word,
            .append = word->kind == LAB_OVERRIDE_ADD,
        };
        add_override(e, override);
    }
    return 0;
}

int lab_config_expand(struct lab_composer *composer, const struct lab_override *const *words,
                      int word_count, struct lab_config_item **ret_items, int *ret_count,
                      struct lab_err *err) {
    struct expansion e = {.composer = composer,
                          .arena = composer->arena,
                          .choices = lab_value_map(composer->arena),
                          .err = err};
    struct level primary = {.group = "", .package = ""};
    if (lab_config_source(composer, composer->primary, &primary.source, err) < 0 ||
        note_words(&e, words, word_count) < 0 || expand(&e, &primary) < 0 || check_used(&e) < 0)
        return -1;
    struct lab_config_item *items = lab_arena_alloc(e.arena, (size_t)e.item_count, sizeof *items);
    for (int i = 0; i < e.item_count; i++)
        items[i] = e.items[e.item_count - 1 - i];
    *ret_items = items;
    *ret_count = e.item_count;
    return 0;
}
