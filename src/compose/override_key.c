/*
 * override_key.c: the keys of overrides. A key is a path through the tree, a.b[0].c or a.b.0.c, or
 * that of a config group, a/group; a package may follow it, group@pkg. Names hold letters, digits,
 * '_', '-' and '$', none of which needs quotes, so that a key never is quoted.
 */
#include "compose/override_internal.h"

#include <ctype.h>
#include <string.h>

struct parts { /* of a path, if somebody wants them */
    const char **names;
    int count;
};

static bool is_name(char c) {
    return !(c & 0x80) && (isalnum((unsigned char)c) || (c && strchr("_-$", c)));
}

static int fail_at_key_character(struct lab_value_text *t) {
    const char *c = t->text + t->at;
    if (*c == ' ' || *c == '\t')
        return lab_value_text_fail(t, t->at, "a key has no spaces, nor has its '='");
    if (*c == '\'' || *c == '"')
        return lab_value_text_fail(t, t->at, "a key is never quoted; only its value may be");
    if (iscntrl((unsigned char)*c))
        return lab_value_text_fail(t, t->at, "a key can't contain the control character 0x%02x",
                                   (unsigned)*c & 0xff);
    int length = 1;
    while ((c[length] & 0xc0) == 0x80)
        length++;
    return lab_value_text_fail(t, t->at,
                               "a key can't contain '%.*s': it has letters, digits, _ - $, "
                               "and between names . or / or [index]",
                               length, c);
}

static int read_name(struct lab_value_text *t, struct parts *parts) {
    const char *name = t->text + t->at;
    if (*name == '-')
        return lab_value_text_fail(t, t->at, "a key can't begin with '-'");
    if (*name == '\0')
        return lab_value_text_fail(t, t->at, "a key is missing at the end");
    if (strchr("=./[@", *name))
        return lab_value_text_fail(t, t->at, "a key is missing before '%c'", *name);
    if (!is_name(*name))
        return fail_at_key_character(t);
    size_t length = 0;
    while (is_name(name[length]))
        length++;
    t->at += length;
    if (parts)
        parts->names[parts->count++] = lab_arena_strndup(t->arena, name, length);
    return 0;
}

static int read_index(struct lab_value_text *t, struct parts *parts) {
    size_t start = ++t->at;
    const char *digits = t->text + start;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length] != ']' || (length > 1 && *digits == '0'))
        return lab_value_text_fail(t, start, "a whole number from 0 and ']' belong after '['");
    t->at += length + 1;
    if (parts)
        parts->names[parts->count++] = lab_arena_strndup(t->arena, digits, length);
    return 0;
}

/* A path up to the first character that can't go on with it. */
static int read_path(struct lab_value_text *t, struct parts *parts) {
    char first = '\0'; /* the first separator: those of trees and of groups don't mix */
    if (read_name(t, parts) < 0)
        return -1;
    for (;;) {
        char c = t->text[t->at];
        if (c != '.' && c != '/' && c != '[')
            break;
        if (!first)
            first = c;
        if ((first == '/') != (c == '/'))
            return lab_value_text_fail(t, t->at,
                                       "'%c' and '%c' in one key: a config group is a/b, a key "
                                       "in the config is a.b",
                                       first, c);
        if (c == '[') {
            if (read_index(t, parts) < 0)
                return -1;
            continue;
        }
        t->at++;
        if (read_name(t, parts) < 0)
            return -1;
    }
    if (t->text[t->at - 1] == ']' && is_name(t->text[t->at]))
        return lab_value_text_fail(t, t->at, "'.' belongs between ']' and the next name");
    return 0;
}

static bool is_at_end(const struct lab_value_text *t) {
    return !t->text[t->at] || t->text[t->at] == '=';
}

int lab_override_read_key(struct lab_value_text *t, const char **ret_key,
                          const char **ret_package) {
    size_t start = t->at;
    if (read_path(t, NULL) < 0)
        return -1;
    const char *key = lab_arena_strndup(t->arena, t->text + start, t->at - start);
    const char *package = NULL;
    if (t->text[t->at] == '@') {
        start = ++t->at;
        if (!is_at_end(t) && read_path(t, NULL) < 0)
            return -1;
        package = lab_arena_strndup(t->arena, t->text + start, t->at - start);
    }
    if (!is_at_end(t))
        return fail_at_key_character(t);
    *ret_key = key;
    *ret_package = package;
    return 0;
}

int lab_key_split(const char *key, struct lab_arena *arena, const char ***ret_parts,
                  struct lab_err *err) {
    /* no two names without a separator between them, and a NULL behind the last */
    struct parts parts = {lab_arena_alloc(arena, strlen(key) / 2 + 2, sizeof *parts.names), 0};
    struct lab_value_text t;
    lab_value_text_init(&t, key, arena, err);
    int result = read_path(&t, &parts);
    if (result == 0 && t.text[t.at])
        result = fail_at_key_character(&t);
    lab_value_text_release(&t);
    if (result < 0)
        return lab_err_context(err, "the key '%.80s'", key);
    *ret_parts = parts.names;
    return 0;
}
