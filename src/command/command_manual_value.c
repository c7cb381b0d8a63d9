/* command_manual_value.c: a command's manual page for programs: what can be set, and to what. */
#include "command/command.h"

#include <math.h>

static struct lab_value *option_value(const struct lab_option *row, struct lab_arena *arena) {
    static const char *const types[] = {"flag", "int",    "float",  "duration",
                                        "size", "string", "choice", "ints"};
    bool bounded = row->min != 0 || row->max != 0;
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", row->name);
    if (row->letter)
        lab_value_set_string(arena, map, "letter", (const char[]){row->letter, '\0'});
    lab_value_set_string(arena, map, "type", types[row->type]);
    lab_value_set_string(arena, map, "default",
                         row->type == LAB_OPTION_FLAG && !row->fallback ? "false" : row->fallback);
    lab_value_set_float(arena, map, "min", bounded ? row->min : (double)NAN);
    lab_value_set_float(arena, map, "max",
                        bounded && row->max >= row->min ? row->max : (double)NAN);
    lab_value_set_string(arena, map, "unit", row->unit);
    if (row->choices)
        lab_value_set(arena, map, "choices", lab_value_strings(arena, row->choices));
    lab_value_set_string(arena, map, "help", row->help);
    return map;
}

static void append_options(const struct lab_option *table, struct lab_arena *arena,
                           struct lab_value *list) {
    for (; table && table->name; table++)
        lab_value_append(arena, list, option_value(table, arena));
}

static struct lab_value *sections_value(const struct lab_manual_section *sections,
                                        struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (; sections && sections->title; sections++) {
        struct lab_value *map = lab_value_map(arena), *keys = lab_value_list(arena);
        lab_value_set_string(arena, map, "title", sections->title);
        lab_value_set_string(arena, map, "text", sections->text);
        append_options(sections->keys, arena, keys);
        lab_value_set(arena, map, "keys", keys);
        lab_value_append(arena, list, map);
    }
    return list;
}

static struct lab_value *examples_value(const struct lab_manual_example *examples,
                                        struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (; examples && examples->line; examples++) {
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_string(arena, map, "line", examples->line);
        lab_value_set_string(arena, map, "text", examples->text);
        lab_value_append(arena, list, map);
    }
    return list;
}

struct lab_value *lab_command_help_value(const struct lab_command *command, const char *word,
                                         struct lab_arena *arena, struct lab_err *err) {
    const struct lab_manual_page *page = lab_command_page(command, word, arena, err);
    if (!page)
        return NULL;
    struct lab_value *map = lab_value_map(arena), *options = lab_value_list(arena);
    lab_value_set_string(arena, map, "command", page->name);
    lab_value_set_string(arena, map, "summary", page->summary);
    lab_value_set_string(arena, map, "usage", page->usage);
    lab_value_set_string(arena, map, "description", page->description);
    for (int i = 0; page->tables[i]; i++)
        append_options(page->tables[i], arena, options);
    lab_value_set(arena, map, "options", options);
    lab_value_set(arena, map, "sections", sections_value(page->sections, arena));
    lab_value_set(arena, map, "examples", examples_value(page->examples, arena));
    return map;
}
