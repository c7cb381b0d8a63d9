/*
 * libraries.c: the vendor's libraries that were found, and what can't be done without those that
 * weren't.
 */
#include "report/report.h"

static void add_line(const char *title, const char *text, const char *effect,
                     struct lab_style style, struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    lab_str_printf(&line, "%s: %s: %s", title, text, effect);
    lab_str_add(out, "  ");
    lab_text_wrap(line.text, 2, 4, style.columns, out);
    lab_str_add(out, "\n");
    lab_str_release(&line);
}

void lab_report_libraries(const struct lab_vendor_library *libraries, int count,
                          struct lab_style style, struct lab_str *out) {
    struct lab_table *table = lab_table_open();
    int found = 0;
    lab_text_heading("Libraries", style, out);
    lab_table_column(table, "Library", LAB_ALIGN_LEFT);
    lab_table_column(table, "Version", LAB_ALIGN_LEFT);
    lab_table_column(table, "File", LAB_ALIGN_LEFT);
    for (int i = 0; i < count; i++) {
        const struct lab_vendor_library *library = &libraries[i];
        if (!library->path)
            continue;
        lab_table_cell(table, "%s", library->title);
        lab_table_cell(table, "%s", library->version ? library->version : "");
        lab_table_cell(table, "%s", library->path);
        found++;
    }
    if (found)
        lab_table_write(table, style, out);
    lab_table_close(table);
    for (int i = 0; i < count; i++) {
        const struct lab_vendor_library *library = &libraries[i];
        if (library->reason)
            add_line(library->title, library->reason, library->effect, style, out);
        for (int k = 0; library->path && library->effects[k]; k++)
            add_line(library->title, "functions are missing", library->effects[k], style, out);
    }
}

struct lab_value *lab_report_libraries_value(const struct lab_vendor_library *libraries, int count,
                                             struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        const struct lab_vendor_library *library = &libraries[i];
        struct lab_value *map = lab_value_map(arena), *missing = lab_value_list(arena);
        lab_value_set_string(arena, map, "library", library->title);
        lab_value_set_string(arena, map, "path", library->path);
        lab_value_set_string(arena, map, "version", library->version);
        lab_value_set_string(arena, map, "why_none", library->reason);
        if (library->reason)
            lab_value_append(arena, missing, lab_value_string(arena, library->effect));
        for (int k = 0; library->path && library->effects[k]; k++)
            lab_value_append(arena, missing, lab_value_string(arena, library->effects[k]));
        lab_value_set(arena, map, "unavailable", missing);
        lab_value_append(arena, list, map);
    }
    return list;
}
