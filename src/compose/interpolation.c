/*
 * interpolation.c: `${…}` in a composed tree. Every value that interpolates is resolved once and
 * remembered, so that references cost the same however often they are followed; what they would
 * grow to is counted all the same, and ends in an error before it ends in memory.
 */
#include "compose/config_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 100       /* of interpolations in each other, and of references to references */
#define TEXT_MAX    (1 << 20) /* bytes of a text that holds interpolations */

struct place { /* a value and the containers that it lies in */
    const struct place *up;
    struct lab_value *value;
};

struct memo {
    const struct lab_value *value;
    struct lab_value *result; /* NULL while it is being resolved */
    int64_t nodes;            /* of the result, shared ones counted as often as they appear */
};

struct resolver {
    const struct place *root;
    int64_t wall_s;
    struct lab_arena *arena;
    struct memo *memos; /* open hashing; a power of two */
    size_t memo_count, memo_capacity;
    const struct lab_value *current; /* the text that is being resolved, for errors */
    int nesting;
    struct lab_err *err;
};

static int resolve(struct resolver *r, const struct place *place, struct lab_value **ret_value);
static int evaluate(struct resolver *r, const struct place *place, const char **text,
                    struct lab_value **ret_value);

/* --- what was resolved --- */

static struct memo *find_memo(struct resolver *r, const struct lab_value *value) {
    size_t mask = r->memo_capacity - 1;
    size_t at = (size_t)(((uintptr_t)value >> 4) * 0x9e3779b97f4a7c15ULL >> 32) & mask;
    while (r->memos[at].value && r->memos[at].value != value)
        at = (at + 1) & mask;
    return &r->memos[at];
}

static void grow_memos(struct resolver *r) {
    struct memo *old = r->memos;
    size_t capacity = r->memo_capacity;
    r->memo_capacity = capacity ? 4 * capacity : 256;
    r->memos = lab_mem_alloc(r->memo_capacity, sizeof *r->memos);
    for (size_t i = 0; i < capacity; i++)
        if (old[i].value)
            *find_memo(r, old[i].value) = old[i];
    lab_mem_free(old);
}

static void set_memo(struct resolver *r, struct memo memo) {
    if (r->memo_count >= r->memo_capacity / 2)
        grow_memos(r);
    struct memo *at = find_memo(r, memo.value);
    r->memo_count += !at->value;
    *at = memo;
}

static bool has_children(const struct lab_value *value) {
    return value->type == LAB_VALUE_LIST || value->type == LAB_VALUE_MAP;
}

static int64_t count_nodes(const struct lab_value *value) {
    int64_t nodes = 1;
    for (int i = 0; i < value->count; i++)
        nodes += count_nodes(value->items[i]);
    return nodes;
}

/* --- errors --- */

static int fail(struct resolver *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct resolver *r, const char *format, ...) {
    LAB_WITH_ARGS(format, lab_err_vset(r->err, LAB_ERR_USER, format, args));
    if (!r->current)
        return -1;
    lab_err_context(r->err, "'%.120s'", r->current->string);
    return lab_config_blame(r->current, r->err);
}

/* --- following a key --- */

static int fail_no_key(struct resolver *r, const struct lab_value *value, const char *part,
                       const char *key) {
    LAB_AUTO(str, hint);
    if (value->type == LAB_VALUE_MAP)
        lab_config_suggest(value, part, &hint);
    if (value->type == LAB_VALUE_LIST)
        fail(r, "'%s': the list has %d elements, and no '%s'", key, value->count, part);
    else if (value->type == LAB_VALUE_MAP)
        fail(r, "'%s': there is no key '%s'%s", key, part, hint.text);
    else
        fail(r, "'%s': '%s' must be in a map or list, not in %s", key, part,
             lab_value_type_name(value->type));
    return -1;
}

static struct lab_value *child_of(const struct lab_value *value, const char *part) {
    if (value->type == LAB_VALUE_MAP)
        return lab_value_get(value, part);
    int index = lab_config_index(part);
    if (value->type == LAB_VALUE_LIST && index >= 0 && index < value->count)
        return value->items[index];
    return NULL;
}

/* From a place down the parts of a key. `ret_place` is NULL if there is nothing and none is
 * needed. */
static int follow(struct resolver *r, const struct place *from, const char **parts, const char *key,
                  bool needed, const struct place **ret_place) {
    for (int i = 0; parts[i]; i++) {
        struct lab_value *value = from->value;
        if (value->type == LAB_VALUE_STRING && resolve(r, from, &value) < 0)
            return -1;
        struct lab_value *child = child_of(value, parts[i]);
        if (!child && needed)
            return fail_no_key(r, value, parts[i], key);
        if (!child) {
            *ret_place = NULL;
            return 0;
        }
        struct place *place = lab_arena_alloc(r->arena, 1, sizeof *place);
        *place = (struct place){.up = from, .value = child};
        from = place;
    }
    *ret_place = from;
    return 0;
}

/* The resolved value of a key: from the root, or with leading dots from the place's container. */
static int look_up(struct resolver *r, const struct place *place, const char *key, bool needed,
                   struct lab_value **ret_value) {
    const struct place *from = r->root;
    const char *name = key;
    if (*name == '.') {
        from = place;
        for (; *name == '.'; name++) {
            from = from->up;
            if (!from)
                return fail(r, "'%s' has more dots than there are levels above", key);
        }
    }
    const char **parts = NULL;
    if (!*name)
        return fail(r, "'%s' names no key", key);
    if (lab_key_split(name, r->arena, &parts, r->err) < 0)
        return fail(r, "'%.80s' is not a key", key);
    const struct place *target = NULL;
    if (follow(r, from, parts, key, needed, &target) < 0)
        return -1;
    if (!target) {
        *ret_value = NULL;
        return 0;
    }
    if (resolve(r, target, ret_value) < 0)
        return -1;
    if ((*ret_value)->type == LAB_VALUE_STRING && !(*ret_value)->quoted &&
        strcmp((*ret_value)->string, "???") == 0)
        return fail(r, "'%s' has no value yet", key);
    return 0;
}

/* --- resolvers --- */

#define ARGUMENTS_MAX 2

struct argument {
    const char *text;
    bool quoted;
};

static int read_literal(struct resolver *r, const struct argument *argument,
                        struct lab_value **ret_value) {
    if (argument->quoted) {
        *ret_value = lab_value_string(r->arena, argument->text);
        return 0;
    }
    struct lab_err err = LAB_ERR_INIT;
    if (lab_value_parse(argument->text, r->arena, ret_value, &err) < 0)
        return fail(r, "'%.80s': %.200s", argument->text, err.text);
    return 0;
}

static int call_env(struct resolver *r, const struct place *place, const struct argument *arguments,
                    int count, struct lab_value **ret_value) {
    (void)place;
    const char *text = getenv(arguments[0].text);
    if (!text && count < 2)
        return fail(r,
                    "the environment variable %s isn't set; ${oc.env:%s,default} gives a value "
                    "for that case",
                    arguments[0].text, arguments[0].text);
    if (!text && !arguments[1].quoted && strcmp(arguments[1].text, "null") == 0)
        *ret_value = lab_value_null(r->arena);
    else
        *ret_value = lab_value_string(r->arena, text ? text : arguments[1].text);
    return 0;
}

static int call_select(struct resolver *r, const struct place *place,
                       const struct argument *arguments, int count, struct lab_value **ret_value) {
    if (look_up(r, place, arguments[0].text, false, ret_value) < 0)
        return -1;
    if (*ret_value)
        return 0;
    if (count > 1)
        return read_literal(r, &arguments[1], ret_value);
    *ret_value = lab_value_null(r->arena);
    return 0;
}

static int call_decode(struct resolver *r, const struct place *place,
                       const struct argument *arguments, int count, struct lab_value **ret_value) {
    (void)place;
    (void)count;
    return read_literal(r, &(struct argument){.text = arguments[0].text}, ret_value);
}

static int call_now(struct resolver *r, const struct place *place, const struct argument *arguments,
                    int count, struct lab_value **ret_value) {
    (void)place;
    (void)count;
    LAB_AUTO(str, text);
    lab_str_add_clock(&text, r->wall_s * 1000000000, arguments[0].text);
    if (!text.length)
        return fail(r, "'%.80s' is not a date format, such as %%Y-%%m-%%d", arguments[0].text);
    *ret_value = lab_value_string(r->arena, text.text);
    return 0;
}

static const struct {
    const char *name;
    int (*call)(struct resolver *r, const struct place *place, const struct argument *arguments,
                int count, struct lab_value **ret_value);
    int max_arguments;
} resolvers[] = {
    {"oc.env", call_env, 2},
    {"oc.select", call_select, 2},
    {"oc.decode", call_decode, 1},
    {"now", call_now, 1},
};

static int call(struct resolver *r, const struct place *place, const char *name,
                const struct argument *arguments, int count, struct lab_value **ret_value) {
    for (size_t i = 0; i < sizeof resolvers / sizeof *resolvers; i++) {
        if (strcmp(resolvers[i].name, name) != 0)
            continue;
        if (count < 1 || count > resolvers[i].max_arguments || !*arguments[0].text)
            return fail(r, "%s takes %s", name,
                        resolvers[i].max_arguments == 1 ? "one argument" : "a name and a default");
        return resolvers[i].call(r, place, arguments, count, ret_value);
    }
    return fail(r, "there is no resolver '%.60s'; there are oc.env, oc.select, oc.decode and now",
                name);
}

/* --- reading the text --- */

static int add_text(struct resolver *r, const struct lab_value *value, struct lab_str *out) {
    assert(value);
    if (has_children(value))
        return fail(r, "%s can't be part of a text", lab_value_type_name(value->type));
    if (value->type == LAB_VALUE_STRING)
        lab_str_add(out, value->string);
    else
        lab_value_write(value, out);
    if (out->length > TEXT_MAX)
        return fail(r, "this grows to a text of more than %d bytes", TEXT_MAX);
    return 0;
}

/*
 * Appends text up to one of `stops` (or the end), its interpolations evaluated. A '}' that stops
 * leaves alone what lies in brackets. `\${` stands for `${`; backslashes before `${` count in
 * pairs.
 */
static int expand(struct resolver *r, const struct place *place, const char **text,
                  const char *stops, struct lab_str *out) {
    bool nests = strchr(stops, '}');
    int brackets = 0;
    const char *c = *text;
    while (*c && (brackets > 0 || !strchr(stops, *c))) {
        size_t slashes = strspn(c, "\\");
        if (c[slashes] == '$' && c[slashes + 1] == '{') {
            lab_str_add_repeat(out, "\\", (int)(slashes / 2));
            c += slashes;
            if (slashes % 2) {
                lab_str_add(out, "${");
                c += 2;
                continue;
            }
            struct lab_value *value = NULL;
            if (evaluate(r, place, &c, &value) < 0 || add_text(r, value, out) < 0)
                return -1;
            continue;
        }
        size_t length = slashes ? slashes : 1;
        if (nests)
            brackets += (*c == '[' || *c == '{') - (*c == ']' || *c == '}');
        lab_str_add_bytes(out, c, length);
        c += length;
    }
    *text = c;
    return 0;
}

static const char *trimmed(struct resolver *r, const struct lab_str *text) {
    size_t start = strspn(text->text, " \t");
    size_t end = text->length;
    while (end > start && strchr(" \t", text->text[end - 1]))
        end--;
    return lab_arena_strndup(r->arena, text->text + start, end - start);
}

static int read_argument(struct resolver *r, const struct place *place, const char **text,
                         struct argument *ret_argument) {
    LAB_AUTO(str, out);
    *text += strspn(*text, " \t");
    char quote = **text;
    int result;
    if (quote == '\'' || quote == '"') {
        (*text)++;
        result = expand(r, place, text, quote == '\'' ? "'" : "\"", &out);
        if (result == 0 && **text != quote)
            result = fail(r, "a quote is never closed");
        else if (result == 0)
            (*text)++;
        *text += strspn(*text, " \t");
        *ret_argument = (struct argument){lab_arena_strdup(r->arena, out.text), true};
    } else {
        result = expand(r, place, text, ",}", &out);
        *ret_argument = (struct argument){trimmed(r, &out), false};
    }
    return result;
}

static int read_call(struct resolver *r, const struct place *place, const char *name,
                     const char **text, struct lab_value **ret_value) {
    struct argument arguments[ARGUMENTS_MAX];
    int count = 0;
    bool more = true;
    while (more) {
        if (count == ARGUMENTS_MAX)
            return fail(r, "%s: more than %d arguments", name, ARGUMENTS_MAX);
        if (read_argument(r, place, text, &arguments[count++]) < 0)
            return -1;
        more = **text == ',';
        *text += more;
    }
    if (**text != '}')
        return fail(r, "'${' without its '}'");
    return call(r, place, name, arguments, count, ret_value);
}

static int read_reference(struct resolver *r, const struct place *place, const char **text,
                          struct lab_value **ret_value) {
    LAB_AUTO(str, out);
    if (expand(r, place, text, "}", &out) < 0)
        return -1;
    if (**text != '}')
        return fail(r, "'${' without its '}'");
    return look_up(r, place, trimmed(r, &out), true, ret_value);
}

/* One interpolation, from its "${" to behind its "}". */
static int evaluate(struct resolver *r, const struct place *place, const char **text,
                    struct lab_value **ret_value) {
    if (r->nesting == NESTING_MAX)
        return fail(r, "interpolations nest deeper than %d", NESTING_MAX);
    r->nesting++;
    *text += 2;
    size_t name = strspn(*text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    int result;
    if ((*text)[name] == ':') {
        const char *resolver = lab_arena_strndup(r->arena, *text, name);
        *text += name + 1;
        result = read_call(r, place, resolver, text, ret_value);
    } else {
        result = read_reference(r, place, text, ret_value);
    }
    r->nesting--;
    if (result == 0)
        (*text)++;
    return result;
}

/* --- the tree --- */

static int resolve_text(struct resolver *r, const struct place *place,
                        struct lab_value **ret_value) {
    const char *text = place->value->string;
    struct lab_value *value = NULL;
    if (lab_str_starts(text, "${")) {
        if (evaluate(r, place, &text, &value) < 0)
            return -1;
        if (!*text) { /* nothing else: the value itself, type and all */
            *ret_value = value;
            return 0;
        }
    }
    LAB_AUTO(str, out);
    if ((value && add_text(r, value, &out) < 0) || expand(r, place, &text, "", &out) < 0)
        return -1;
    *ret_value = lab_value_string(r->arena, out.text);
    (*ret_value)->quoted = true; /* text, whatever it looks like now */
    (*ret_value)->origin = place->value->origin;
    (*ret_value)->line = place->value->line;
    return 0;
}

static int resolve_children(struct resolver *r, const struct place *place,
                            struct lab_value **ret_value, int64_t *ret_nodes) {
    struct lab_value *value = place->value;
    struct lab_value *result = value;
    *ret_nodes = 1;
    for (int i = 0; i < value->count; i++) {
        struct place child = {.up = place, .value = value->items[i]};
        struct lab_value *item = NULL;
        if (resolve(r, &child, &item) < 0)
            return -1;
        if (item != child.value && result == value)
            result = lab_config_with(r->arena, value, i, item);
        else if (item != child.value)
            result->items[i] = item;
        const struct memo *memo = find_memo(r, child.value);
        *ret_nodes += memo->value ? memo->nodes : 1;
        if (*ret_nodes > LAB_CONFIG_MAX_NODES)
            return fail(r, "interpolations make the config grow to more than %d values",
                        LAB_CONFIG_MAX_NODES);
    }
    *ret_value = result;
    return 0;
}

static int fail_circle(struct resolver *r, const struct lab_value *value) {
    if (value->type == LAB_VALUE_STRING)
        return fail(r, "circular reference to '%.120s'", value->string);
    return fail(r, "refers to %s that contains it", lab_value_type_name(value->type));
}

static int resolve(struct resolver *r, const struct place *place, struct lab_value **ret_value) {
    struct lab_value *value = place->value;
    bool text = value->type == LAB_VALUE_STRING && strstr(value->string, "${");
    if (!text && !has_children(value)) {
        *ret_value = value;
        return 0;
    }
    const struct memo *known = find_memo(r, value);
    if (known->value && !known->result)
        return fail_circle(r, value);
    if (known->value) {
        *ret_value = known->result;
        return 0;
    }
    set_memo(r, (struct memo){.value = value});
    const struct lab_value *before = r->current;
    if (text)
        r->current = value;
    struct lab_value *result = NULL;
    int64_t nodes = 1;
    if (text ? resolve_text(r, place, &result) < 0
             : resolve_children(r, place, &result, &nodes) < 0)
        return -1;
    r->current = before;
    assert(result);
    if (text && has_children(result)) {
        const struct memo *target = find_memo(r, result);
        nodes = target->value ? target->nodes : count_nodes(result);
    }
    set_memo(r, (struct memo){.value = value, .result = result, .nodes = nodes});
    /* what came out may be met again, on the way of another key, and is done: `\${` left "${" */
    if (result != value)
        set_memo(r, (struct memo){.value = result, .result = result, .nodes = nodes});
    *ret_value = result;
    return 0;
}

int lab_config_resolve(struct lab_value *tree, int64_t wall_s, struct lab_arena *arena,
                       struct lab_value **ret_tree, struct lab_err *err) {
    struct place root = {.value = tree};
    struct resolver r = {.root = &root, .wall_s = wall_s, .arena = arena, .err = err};
    grow_memos(&r);
    int result = resolve(&r, &root, ret_tree);
    lab_mem_free(r.memos);
    return result;
}
