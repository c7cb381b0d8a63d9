/*
 * libraries.c: the vendor's libraries that were found, and what can't be done without those that
 * weren't.
 */
#include "report/report.h"

static struct lab_value *libraries_value(const struct lab_vendor_library *libraries, int count,
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

void lab_report_add_libraries(struct lab_doc *doc, const struct lab_vendor_library *libraries,
                              int count) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Library"}, {NULL, "Version"}, {NULL, "File"}};
    lab_doc_data(doc, "libraries", libraries_value(libraries, count, lab_doc_arena(doc)));
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Libraries"});
    lab_doc_rows(doc, NULL, NULL, columns, 3);
    for (int i = 0; i < count; i++) {
        if (!libraries[i].path)
            continue;
        lab_doc_cell(doc, "%s", libraries[i].title);
        lab_doc_cell(doc, "%s", libraries[i].version ? libraries[i].version : "");
        lab_doc_cell(doc, "%s", libraries[i].path);
    }
    for (int i = 0; i < count; i++) {
        const struct lab_vendor_library *library = &libraries[i];
        if (library->reason)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: %s: %s", library->title, library->reason,
                         library->effect);
        for (int k = 0; library->path && library->effects[k]; k++)
            lab_doc_text(doc, LAB_DOC_ITEM, "%s: functions are missing: %s", library->title,
                         library->effects[k]);
    }
    lab_doc_end(doc);
}
