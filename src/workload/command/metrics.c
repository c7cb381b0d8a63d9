/*
 * command/metrics.c: what a program prints, as figures. Lines that are JSON objects speak for
 * themselves; of the others, patterns say what is in them.
 */
#include "workload/command/command.h"

#include "base/json.h"

#include <ctype.h>

#define PATTERNS_MAX   64
#define JSON_COUNT_MAX 256 /* figures of one line */
#define NAME_BYTES     128

struct command_reader {
    bool json;
    struct command_pattern **patterns;
    int pattern_count;
};

/* --- settings --- */

static int read_patterns(const struct lab_value *list, struct lab_arena *arena,
                         struct command_reader *reader, struct lab_err *err) {
    bool one = list->type == LAB_VALUE_STRING;
    struct lab_value *const *items = one ? (struct lab_value *const *)&list : list->items;
    int count = one ? 1 : list->count;
    if (!one && list->type != LAB_VALUE_LIST)
        return lab_value_err(list, err, "metrics.patterns: must be a list of texts, not %s",
                             lab_value_type_name(list->type));
    if (count > PATTERNS_MAX)
        return lab_value_err(list, err, "metrics.patterns: at most %d", PATTERNS_MAX);
    reader->patterns = lab_arena_alloc(arena, (size_t)count + 1, sizeof *reader->patterns);
    for (int i = 0; i < count; i++) {
        struct lab_err why = LAB_ERR_INIT;
        if (items[i]->type != LAB_VALUE_STRING)
            return lab_value_err(items[i], err,
                                 "metrics.patterns: a pattern is text, such as \"Iter {iter} loss "
                                 "{loss}\", in quotes; not %s",
                                 lab_value_type_name(items[i]->type));
        if (command_pattern_read(items[i]->string, arena, &reader->patterns[i], &why) < 0)
            return lab_value_err(items[i], err, "metrics.patterns: '%.80s': %s", items[i]->string,
                                 why.text);
        reader->pattern_count++;
    }
    return 0;
}

int command_reader_make(const struct lab_value *metrics, struct lab_arena *arena,
                        struct command_reader **ret_reader, struct lab_err *err) {
    static const char *const keys[] = {"json", "patterns", NULL};
    struct command_reader *reader = lab_arena_alloc(arena, 1, sizeof *reader);
    reader->json = true;
    if (metrics && metrics->type != LAB_VALUE_MAP)
        return lab_value_err(metrics, err,
                             "metrics: must be a map such as {json: true, patterns: [\"Iter {iter} "
                             "loss {loss}\"]}, not %s",
                             lab_value_type_name(metrics->type));
    for (int i = 0; metrics && i < metrics->count; i++) {
        const char *key = metrics->keys[i];
        const struct lab_value *value = metrics->items[i];
        if (value->type == LAB_VALUE_NULL)
            continue;
        if (strcmp(key, "patterns") == 0) {
            if (read_patterns(value, arena, reader, err) < 0)
                return -1;
        } else if (strcmp(key, "json") == 0) {
            if (value->type != LAB_VALUE_BOOL)
                return lab_value_err(value, err, "metrics.json: must be true or false");
            reader->json = value->boolean;
        } else {
            const char *nearest = lab_str_nearest(key, keys);
            return lab_value_err(value, err, "unknown key 'metrics.%.80s'; %s%s%s", key,
                                 nearest ? "did you mean '" : "there are json and patterns",
                                 nearest ? nearest : "", nearest ? "'?" : "");
        }
    }
    *ret_reader = reader;
    return 0;
}

/* --- a line --- */

struct figures {
    void (*found)(void *state, const char *name, double value);
    void *state;
    int count;
};

static bool is_plain(const char *name) {
    for (; *name; name++)
        if (iscntrl((unsigned char)*name))
            return false;
    return true;
}

/* `name` has the keys above and is `length` long. */
static void take_json(struct figures *figures, const struct lab_value *map, char *name,
                      size_t length) {
    for (int i = 0; i < map->count; i++) {
        const struct lab_value *value = map->items[i];
        size_t room = NAME_BYTES - length;
        int added = snprintf(name + length, room, "%s%s", length ? "." : "", map->keys[i]);
        bool named = *map->keys[i] && is_plain(map->keys[i]);
        if (added < 0 || (size_t)added >= room || !named)
            continue;
        if (value->type == LAB_VALUE_MAP)
            take_json(figures, value, name, length + (size_t)added);
        bool number = value->type == LAB_VALUE_INT || value->type == LAB_VALUE_FLOAT;
        if (number && figures->count++ < JSON_COUNT_MAX)
            figures->found(figures->state, name,
                           value->type == LAB_VALUE_INT ? (double)value->integer : value->number);
    }
}

/* Whether the line is a JSON object, figures or none. */
static bool read_json(struct figures *figures, const char *line, size_t length) {
    while (length && isspace((unsigned char)line[0]))
        line++, length--;
    while (length && isspace((unsigned char)line[length - 1]))
        length--;
    if (length < 2 || line[0] != '{' || line[length - 1] != '}')
        return false;
    LAB_AUTO(arena, arena);
    struct lab_value *value;
    struct lab_err ignored;
    bool object = lab_json_parse(line, length, "line", &arena, &value, &ignored) == 0 &&
                  value->type == LAB_VALUE_MAP;
    char name[NAME_BYTES] = "";
    if (object)
        take_json(figures, value, name, 0);
    return object;
}

void command_reader_line(const struct command_reader *reader, const char *line, size_t length,
                         void (*found)(void *state, const char *name, double value), void *state) {
    struct figures figures = {found, state, 0};
    if (reader->json && read_json(&figures, line, length))
        return;
    for (int i = 0; i < reader->pattern_count; i++) {
        double values[COMMAND_NUMBERS_MAX];
        const struct command_pattern *pattern = reader->patterns[i];
        if (!command_pattern_match(pattern, line, length, values))
            continue;
        for (int k = 0; k < command_pattern_count(pattern); k++)
            found(state, command_pattern_name(pattern, k), values[k]);
    }
}

/* --- lines of a stream --- */

/* Takes out what colours and moves a terminal's text: ESC [ … letter. */
static size_t without_escapes(char *text, size_t length) {
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\033' || i + 1 >= length || text[i + 1] != '[') {
            text[kept++] = text[i];
            continue;
        }
        for (i += 2; i < length && !(text[i] >= '@' && text[i] <= '~');)
            i++;
    }
    return kept;
}

static void hand_over(struct command_lines *lines,
                      void (*line)(void *state, const char *text, size_t length), void *state) {
    size_t length = without_escapes(lines->text, lines->length);
    lines->length = 0;
    if (length > 0)
        line(state, lines->text, length);
}

static void keep(struct command_lines *lines, const char *bytes, size_t length) {
    size_t room = COMMAND_LINE_MAX - lines->length;
    length = length < room ? length : room;
    if (lines->length + length > lines->capacity) {
        lines->capacity = 2 * (lines->length + length);
        lines->text = lab_mem_resize(lines->text, lines->capacity, 1);
    }
    if (length > 0)
        memcpy(lines->text + lines->length, bytes, length);
    lines->length += length;
}

void command_lines_add(struct command_lines *lines, const char *bytes, size_t length,
                       void (*line)(void *state, const char *text, size_t length), void *state) {
    size_t start = 0;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r')
            continue;
        keep(lines, bytes + start, i - start);
        hand_over(lines, line, state);
        start = i + 1;
    }
    keep(lines, bytes + start, length - start);
}

void command_lines_end(struct command_lines *lines,
                       void (*line)(void *state, const char *text, size_t length), void *state) {
    hand_over(lines, line, state);
    lab_mem_free(lines->text);
    *lines = (struct command_lines){0};
}
