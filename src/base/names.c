/*
 * names.c: names as lists of terms. In sentences a comma ends a term ("cuda:0, NUMA node 1,
 * batch_size=8"); in ids it is the '_' behind a digit ("gpu0_batch_size8"), since keys have one
 * too.
 */
#include "base/names.h"

#include "base/list.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

struct name { /* terms, abbreviated */
    const char **terms;
    int count;
};

/* --- terms --- */

struct abbreviation {
    const char *key, *before, *behind; /* of its value */
};

static const struct abbreviation abbreviations[] = {
    {"batch_size", "batch ", ""},
    {"memory_size_mb", "", " MiB pool"},
    {"tensor_shape", "", ""},
    {"num_samples", "", " samples"},
};

/* "[3,224,224]" as "3x224x224", as ids have it. */
static const char *plain_value(const char *value, struct lab_arena *arena) {
    size_t length = strlen(value);
    if (length < 2 || value[0] != '[' || value[length - 1] != ']')
        return value;
    LAB_AUTO(str, text);
    for (const char *c = value + 1; c < value + length - 1; c++)
        if (*c != ' ')
            lab_str_add_bytes(&text, *c == ',' ? "x" : c, 1);
    return lab_arena_strdup(arena, text.text);
}

static const char *abbreviate(const char *term, struct lab_arena *arena) {
    for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++) {
        const struct abbreviation *known = &abbreviations[i];
        if (!lab_str_starts(term, known->key))
            continue;
        const char *value = term + strlen(known->key);
        value += *value == '=' || *value == ' ';
        value = plain_value(value, arena);
        if (isdigit((unsigned char)*value))
            return lab_arena_printf(arena, "%s%s%s", known->before, value, known->behind);
    }
    return term;
}

/* Bytes from here to where the next term begins; 0 = no term ends here. */
static size_t separator(const char *name, const char *at, int depth) {
    if (depth > 0 || at == name)
        return 0;
    if (lab_str_starts(at, ", "))
        return 2;
    return *at == '_' && isdigit((unsigned char)at[-1]) && at[1] ? 1 : 0;
}

static struct name split(const char *text, struct lab_arena *arena) {
    struct name name = {lab_arena_alloc(arena, strlen(text) + 1, sizeof *name.terms), 0};
    const char *from = text;
    int depth = 0;
    for (const char *c = text; *text; c++) {
        depth += (*c == '[') - (*c == ']');
        size_t skipped = *c ? separator(text, c, depth) : 0;
        if (*c && !skipped)
            continue;
        if (c > from)
            name.terms[name.count++] =
                abbreviate(lab_arena_strndup(arena, from, (size_t)(c - from)), arena);
        if (!*c)
            break;
        from = c + skipped;
        c = from - 1;
    }
    return name;
}

/* --- what tells them apart --- */

static bool has_term(const struct name *name, const char *term) {
    return lab_list_find_text(name->terms, name->count, term) >= 0;
}

/* The terms that all names have. */
static struct name find_shared(const struct name *names, int count, struct lab_arena *arena) {
    int first = 0;
    while (first < count && names[first].count == 0)
        first++;
    struct name shared = {NULL, 0};
    if (first == count)
        return shared;
    shared.terms = lab_arena_alloc(arena, (size_t)names[first].count, sizeof *shared.terms);
    for (int t = 0; t < names[first].count; t++) {
        bool all = true;
        for (int i = first; i < count && all; i++)
            all = names[i].count == 0 || has_term(&names[i], names[first].terms[t]);
        if (all)
            shared.terms[shared.count++] = names[first].terms[t];
    }
    return shared;
}

/* A name without the shared terms; its last term where none remains. */
static const char *join(const struct name *name, const struct name *shared,
                        struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i < name->count; i++)
        if (!has_term(shared, name->terms[i]))
            text = lab_arena_printf(arena, "%s%s%s", text, *text ? ", " : "", name->terms[i]);
    return *text ? text : name->terms[name->count - 1];
}

static bool are_distinct(const char *const *before, const char *const *after, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (lab_str_equal(after[i], after[k]) && !lab_str_equal(before[i], before[k]))
                return false;
    return true;
}

static bool all_fit(const char *const *names, int count, int columns) {
    for (int i = 0; i < count; i++)
        if (names[i] && lab_str_columns(names[i]) > columns)
            return false;
    return true;
}

static bool all_alike(const char *const *names, int count) {
    const char *first = NULL;
    for (int i = 0; i < count; i++) {
        if (!names[i] || !*names[i])
            continue;
        if (first && strcmp(first, names[i]) != 0)
            return false;
        first = names[i];
    }
    return true;
}

const char **lab_names_shorten(const char *const *names, int count, int columns,
                               struct lab_arena *arena) {
    const char **shown = lab_arena_alloc(arena, (size_t)count + 1, sizeof *shown);
    memcpy(shown, names, (size_t)count * sizeof *shown);
    if (all_fit(names, count, columns) || all_alike(names, count))
        return shown;
    struct name *split_names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *split_names);
    for (int i = 0; i < count; i++)
        if (names[i])
            split_names[i] = split(names[i], arena);
    struct name shared = find_shared(split_names, count, arena);
    for (int i = 0; i < count; i++)
        if (split_names[i].count > 0)
            shown[i] = join(&split_names[i], &shared, arena);
    if (!are_distinct(names, shown, count))
        memcpy(shown, names, (size_t)count * sizeof *shown);
    return shown;
}
