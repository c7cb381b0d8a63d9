/*
 * yaml.c: YAML from libyaml's events. The event interface, not the document one, because only
 * events tell `10` from `!!str 10`. An alias is a copy of what its anchor stood for, counted
 * against the limits like text that had been written out.
 */
#include "base/yaml/yaml.h"

#include "base/yaml/yaml_scalar.h"

#include <assert.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    struct lab_yaml_limits limits;
    struct lab_arena *arena;
    const char *origin; /* never NULL */
    struct lab_value *anchors;
    struct lab_value unfinished; /* what an anchor stands for until its node is complete */
    int nodes;
    struct lab_err *err;
};

static int read_node(struct reader *r, yaml_event_t *event, int depth,
                     struct lab_value **ret_value);

static int fail(struct reader *r, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct reader *r, yaml_mark_t mark, const char *format, ...) {
    LAB_WITH_ARGS(format, lab_err_vset(r->err, LAB_ERR_USER, format, args));
    return lab_err_context(r->err, "%s:%zu", r->origin, mark.line + 1);
}

/* What libyaml found wrong, at its place. */
static int fail_syntax(struct reader *r) {
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t mark = p->problem_mark;
    if (p->error == YAML_MEMORY_ERROR)
        lab_mem_exhausted(1, sizeof *p);
    if (p->error == YAML_READER_ERROR)
        mark = p->mark;
    if (p->context)
        return fail(r, mark, "invalid YAML: %s %s", p->problem ? p->problem : "trouble",
                    p->context);
    return fail(r, mark, "invalid YAML: %s", p->problem ? p->problem : "trouble");
}

/* An event that releases itself. `next` fills it at once, or empties it where it fails. */
#define AUTO_EVENT __attribute__((cleanup(yaml_event_delete))) yaml_event_t

static int next(struct reader *r, yaml_event_t *event) {
    return yaml_parser_parse(&r->parser, event) ? 0 : fail_syntax(r);
}

static int count_node(struct reader *r, yaml_mark_t mark) {
    if (++r->nodes > r->limits.max_nodes)
        return fail(r, mark, "too many values: at most %d, those of aliases included",
                    r->limits.max_nodes);
    return 0;
}

static void set_place(struct reader *r, struct lab_value *value, yaml_mark_t mark) {
    assert(value);
    value->origin = r->origin;
    value->line = (int)mark.line + 1;
    value->column = (int)mark.column + 1;
}

static int copy(struct reader *r, const struct lab_value *from, yaml_mark_t mark, int depth,
                struct lab_value **ret_value) {
    if (count_node(r, mark) < 0)
        return -1;
    if (depth > r->limits.max_depth)
        return fail(r, mark, "nested deeper than %d levels", r->limits.max_depth);
    struct lab_value *value = lab_arena_alloc(r->arena, 1, sizeof *value);
    *value = *from;
    value->items = NULL;
    value->keys = NULL;
    value->slots = NULL;
    value->count = value->capacity = value->slot_count = 0;
    for (int i = 0; i < from->count; i++) {
        struct lab_value *item = NULL;
        if (copy(r, from->items[i], mark, depth + 1, &item) < 0)
            return -1;
        if (from->type == LAB_VALUE_MAP)
            lab_value_set(r->arena, value, from->keys[i], item);
        else
            lab_value_append(r->arena, value, item);
    }
    *ret_value = value;
    return 0;
}

static int read_alias(struct reader *r, const yaml_event_t *event, int depth,
                      struct lab_value **ret_value) {
    const char *name = (const char *)event->data.alias.anchor;
    const struct lab_value *target = lab_value_get(r->anchors, name);
    if (!target)
        return fail(r, event->start_mark, "'*%.40s' names no anchor before it", name);
    if (target == &r->unfinished)
        return fail(r, event->start_mark, "'*%.40s' refers to itself", name);
    return copy(r, target, event->start_mark, depth, ret_value);
}

static int read_scalar(struct reader *r, const yaml_event_t *event, struct lab_value **ret_value) {
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    if (strlen(text) != event->data.scalar.length)
        return fail(r, event->start_mark, "text with a NUL character in it");
    LAB_AUTO(str, problem);
    int result = 0;
    bool tagged = !event->data.scalar.plain_implicit && !event->data.scalar.quoted_implicit;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!tagged && plain) {
        result = lab_yaml_read_plain(text, r->arena, ret_value, &problem);
    } else if (!tagged) {
        *ret_value = lab_value_string(r->arena, text);
        (*ret_value)->quoted = true;
    } else {
        result = lab_yaml_read_tagged(text, tag, r->arena, ret_value, &problem);
    }
    if (result < 0)
        fail(r, event->start_mark, "%s", problem.text);
    return result;
}

static int read_list(struct reader *r, int depth, struct lab_value *list) {
    for (;;) {
        AUTO_EVENT event;
        struct lab_value *item = NULL;
        if (next(r, &event) < 0)
            return -1;
        if (event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        if (read_node(r, &event, depth + 1, &item) < 0)
            return -1;
        lab_value_append(r->arena, list, item);
    }
}

static int read_key(struct reader *r, const yaml_event_t *event, const struct lab_value *map,
                    const char **ret_key) {
    if (event->type != YAML_SCALAR_EVENT)
        return fail(r, event->start_mark, "a key must be plain text, no list, map or alias");
    const char *key = (const char *)event->data.scalar.value;
    if (strlen(key) != event->data.scalar.length)
        return fail(r, event->start_mark, "a key with a NUL character in it");
    if (lab_value_get(map, key))
        return fail(r, event->start_mark, "duplicate key '%.80s'", key);
    *ret_key = lab_arena_strdup(r->arena, key);
    return count_node(r, event->start_mark);
}

/* `<<: *base`, `<<: [*a, *b]`: keys that aren't there yet; the earlier one of a list wins. */
static int merge(struct reader *r, struct lab_value *map, const struct lab_value *from,
                 yaml_mark_t mark) {
    if (from->type == LAB_VALUE_LIST) {
        for (int i = 0; i < from->count; i++)
            if (from->items[i]->type != LAB_VALUE_MAP || merge(r, map, from->items[i], mark) < 0)
                return fail(r, mark, "'<<' takes a map, or a list of maps");
        return 0;
    }
    if (from->type != LAB_VALUE_MAP)
        return fail(r, mark, "'<<' takes a map, or a list of maps");
    for (int i = 0; i < from->count; i++)
        if (!lab_value_get(map, from->keys[i]))
            lab_value_set(r->arena, map, from->keys[i], from->items[i]);
    return 0;
}

static int read_map(struct reader *r, int depth, struct lab_value *map) {
    struct lab_value *merged = NULL;
    yaml_mark_t merged_mark = {0};
    for (;;) {
        AUTO_EVENT name;
        if (next(r, &name) < 0)
            return -1;
        if (name.type == YAML_MAPPING_END_EVENT)
            return merged ? merge(r, map, merged, merged_mark) : 0;
        const char *key = NULL;
        if (read_key(r, &name, map, &key) < 0)
            return -1;
        bool is_merge = name.data.scalar.plain_implicit && strcmp(key, "<<") == 0;
        if (is_merge && merged)
            return fail(r, name.start_mark, "duplicate key '<<'");
        AUTO_EVENT content;
        struct lab_value *item = NULL;
        if (next(r, &content) < 0 || read_node(r, &content, depth + 1, &item) < 0)
            return -1;
        if (is_merge) {
            merged = item;
            merged_mark = content.start_mark;
        } else {
            lab_value_set(r->arena, map, key, item);
        }
    }
}

static int check_tag(struct reader *r, const yaml_event_t *event, const unsigned char *tag,
                     const char *expected) {
    if (!tag || strcmp((const char *)tag, expected) == 0 || strcmp((const char *)tag, "!") == 0)
        return 0;
    return fail(r, event->start_mark, "unknown tag '%.80s'", (const char *)tag);
}

static int read_children(struct reader *r, const yaml_event_t *event, int depth,
                         struct lab_value **ret_value) {
    if (depth >= r->limits.max_depth)
        return fail(r, event->start_mark, "nested deeper than %d levels", r->limits.max_depth);
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    if (check_tag(r, event, is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag,
                  is_map ? YAML_MAP_TAG : YAML_SEQ_TAG) < 0)
        return -1;
    *ret_value = is_map ? lab_value_map(r->arena) : lab_value_list(r->arena);
    return is_map ? read_map(r, depth, *ret_value) : read_list(r, depth, *ret_value);
}

static const char *anchor_of(const yaml_event_t *event) {
    if (event->type == YAML_SCALAR_EVENT)
        return (const char *)event->data.scalar.anchor;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return (const char *)event->data.sequence_start.anchor;
    return (const char *)event->data.mapping_start.anchor;
}

static int read_node(struct reader *r, yaml_event_t *event, int depth,
                     struct lab_value **ret_value) {
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event, depth, ret_value);
    if (count_node(r, event->start_mark) < 0)
        return -1;
    const char *anchor = anchor_of(event);
    if (anchor)
        lab_value_set(r->arena, r->anchors, anchor, &r->unfinished);
    int result = event->type == YAML_SCALAR_EVENT ? read_scalar(r, event, ret_value)
                                                  : read_children(r, event, depth, ret_value);
    if (result < 0)
        return -1;
    set_place(r, *ret_value, event->start_mark);
    if (anchor)
        lab_value_set(r->arena, r->anchors, anchor, *ret_value);
    return 0;
}

/* The stream's events around and in its one document. */
static int read_stream(struct reader *r, struct lab_value **ret_value) {
    struct lab_value *value = NULL;
    for (;;) {
        AUTO_EVENT event;
        if (next(r, &event) < 0)
            return -1;
        if (event.type == YAML_STREAM_END_EVENT)
            break;
        if (event.type == YAML_DOCUMENT_START_EVENT && value)
            return fail(r, event.start_mark,
                        "a second document begins here; a file holds only one");
        if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT &&
            event.type != YAML_DOCUMENT_END_EVENT && read_node(r, &event, 0, &value) < 0)
            return -1;
    }
    if (!value) {
        value = lab_value_null(r->arena);
        set_place(r, value, (yaml_mark_t){0});
    }
    *ret_value = value;
    return 0;
}

/* Bytes that are no text get a plain word instead of the scanner's. */
static int check_text(const char *text, size_t length, const struct reader *r) {
    if (length > r->limits.max_bytes)
        return lab_err_set(r->err, LAB_ERR_USER, "%s is too large: %zu bytes, at most %zu",
                           r->origin, length, r->limits.max_bytes);
    size_t valid = lab_str_utf8_prefix(text, length);
    const char *nul = memchr(text, '\0', valid);
    if (nul)
        valid = (size_t)(nul - text);
    if (valid == length)
        return 0;
    int line = 1;
    for (size_t i = 0; i < valid; i++)
        line += text[i] == '\n';
    return lab_err_set(r->err, LAB_ERR_USER, "%s:%d: invalid YAML: the byte 0x%02x isn't UTF-8",
                       r->origin, line, (unsigned)text[valid] & 0xff);
}

int lab_yaml_parse(const char *text, size_t length, const char *origin,
                   struct lab_yaml_limits limits, struct lab_arena *arena,
                   struct lab_value **ret_value, struct lab_err *err) {
    struct reader r = {.limits = limits,
                       .arena = arena,
                       .origin = lab_arena_strdup(arena, origin ? origin : "text"),
                       .anchors = lab_value_map(arena),
                       .err = err};
    if (check_text(text, length, &r) < 0)
        return -1;
    if (!yaml_parser_initialize(&r.parser))
        lab_mem_exhausted(1, sizeof r.parser);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
    int result = read_stream(&r, ret_value);
    yaml_parser_delete(&r.parser);
    return result;
}
