/* config_source.c: config files taken apart, each of them once in a composer's life. */
#include "compose/config_internal.h"

#include "base/yaml/yaml.h"

#include <string.h>

/* What a comment "# @package name" among the first lines says, or NULL. */
static const char *read_header(const char *text, size_t length, struct lab_arena *arena) {
    const char *end = text + length;
    for (const char *line = text; line < end && (*line == '#' || *line == '\n');) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (!line_end)
            line_end = end;
        char *comment = lab_arena_strndup(arena, line, (size_t)(line_end - line));
        char *word = comment + strspn(comment, "# \t");
        if (lab_str_starts(word, "@package") && strchr(" \t", word[8])) {
            word += 8 + strspn(word + 8, " \t");
            word[strcspn(word, " \t\r")] = '\0';
            return word;
        }
        line = line_end + (line_end < end);
    }
    return NULL;
}

static int take_apart(struct lab_config_source *source, struct lab_value *document,
                      struct lab_arena *arena, struct lab_err *err) {
    if (document->type == LAB_VALUE_NULL) {
        struct lab_value *empty = lab_value_map(arena);
        empty->origin = document->origin;
        empty->line = document->line;
        document = empty;
    }
    if (document->type != LAB_VALUE_MAP) {
        lab_err_set(err, LAB_ERR_USER, "a config is a map of keys, and this is %s",
                    lab_value_type_name(document->type));
        return lab_config_blame(document, err);
    }
    int at = lab_config_find(document, "defaults");
    source->content = at < 0 ? document : lab_config_without(arena, document, at);
    source->defaults = at < 0 ? NULL : document->items[at];
    if (source->defaults && source->defaults->type != LAB_VALUE_LIST) {
        lab_err_set(err, LAB_ERR_USER, "`defaults` is a list, such as [_base, _self_], and here %s",
                    lab_value_type_name(source->defaults->type));
        return lab_config_blame(source->defaults, err);
    }
    return 0;
}

int lab_config_source(struct lab_composer *composer, const char *name,
                      const struct lab_config_source **ret_source, struct lab_err *err) {
    struct lab_arena *arena = composer->arena;
    const struct lab_value *known = lab_value_get(composer->source_index, name);
    if (known) {
        *ret_source = composer->sources[known->integer];
        return 0;
    }
    const char *text;
    size_t length;
    struct lab_config_source *source = lab_arena_alloc(arena, 1, sizeof *source);
    source->name = lab_arena_strdup(arena, name);
    if (lab_config_read(composer->path, lab_arena_printf(arena, "%s.yaml", name), arena, &text,
                        &length, &source->origin, err) < 0)
        return -1;
    struct lab_yaml_limits limits = {LAB_CONFIG_MAX_BYTES, LAB_CONFIG_MAX_NODES,
                                     LAB_CONFIG_MAX_DEPTH};
    struct lab_value *document = NULL;
    if (lab_yaml_parse(text, length, source->origin, limits, arena, &document, err) < 0 ||
        take_apart(source, document, arena, err) < 0)
        return -1;
    source->package = read_header(text, length, arena);
    lab_value_set_int(arena, composer->source_index, name, composer->source_count);
    LAB_ADD(composer->sources, composer->source_count, arena) = source;
    *ret_source = source;
    return 0;
}

bool lab_composer_has_group(struct lab_composer *composer, const char *group) {
    const struct lab_value *known = lab_value_get(composer->groups, group);
    if (known)
        return known->boolean;
    bool there = lab_config_has_group(composer->path, group);
    lab_value_set_bool(composer->arena, composer->groups, group, there);
    return there;
}
