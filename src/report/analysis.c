/* analysis.c: what an analysis found, as text, as Markdown and as a tree. */
#include "report/analysis_internal.h"

#include "base/names.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define LABEL_COLUMNS 19
#define NAME_COLUMNS  24 /* of a table; longer names are shortened to what tells them apart */
/* --- text --- */

/* In ASCII some signs are wider ("+-"), so the text is turned before it is broken into lines. */
static void wrap(const char *text, int start, int indent, struct lab_style style,
                 struct lab_str *out) {
    if (style.unicode) {
        lab_text_wrap(text, start, indent, style.columns, out);
        return;
    }
    struct lab_str plain;
    lab_str_init(&plain);
    lab_text_to_ascii(text, &plain);
    lab_text_wrap(plain.text, start, indent, style.columns, out);
    lab_str_release(&plain);
}

/* The first column, where it has names: those of the rows, shortened. NULL = it has figures. */
static const char **row_names(const struct lab_doc_table *table, struct lab_arena *arena) {
    if (table->column_count == 0 || table->columns[0].unit != LAB_UNIT_TEXT)
        return NULL;
    const char **names = lab_arena_alloc(arena, (size_t)table->row_count + 1, sizeof *names);
    for (int r = 0; r < table->row_count; r++)
        names[r] = table->cells[(ptrdiff_t)r * table->column_count].text;
    return lab_names_shorten(names, table->row_count, NAME_COLUMNS, arena);
}

static void add_table(const struct lab_doc_table *table, struct lab_style style,
                      struct lab_str *out) {
    struct lab_table *shown = lab_table_open();
    struct lab_arena arena;
    lab_arena_init(&arena);
    const char **names = row_names(table, &arena);
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title)
            lab_table_column(shown, table->columns[c].title,
                             table->columns[c].unit == LAB_UNIT_TEXT ? LAB_ALIGN_LEFT
                                                                     : LAB_ALIGN_RIGHT);
    struct lab_str text;
    lab_str_init(&text);
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const struct lab_doc_column *column = &table->columns[i % table->column_count];
        if (!column->title)
            continue;
        lab_str_clear(&text);
        const char *name =
            names && column == table->columns ? names[i / table->column_count] : NULL;
        if (name)
            lab_str_add(&text, name);
        else
            lab_doc_add_cell(&table->cells[i], column, true, &text);
        lab_table_cell(shown, "%s", text.text);
    }
    lab_table_write(shown, style, out);
    lab_str_release(&text);
    lab_table_close(shown);
    lab_arena_release(&arena);
}

static void add_lines(const char *const *lines, const char *indent, struct lab_str *out) {
    for (int i = 0; lines[i]; i++)
        lab_str_printf(out, "%s%s\n", indent, lines[i]);
}

static void add_comparison(const struct lab_analysis_result *result, struct lab_style style,
                           struct lab_str *out) {
    struct lab_table *shown = lab_table_open();
    struct lab_str text;
    lab_str_init(&text);
    struct lab_arena arena;
    lab_arena_init(&arena);
    const char **names = lab_arena_alloc(&arena, (size_t)result->part_count + 1, sizeof *names);
    for (int i = 0; i < result->part_count; i++)
        names[i] = result->parts[i].name;
    names = lab_names_shorten(names, result->part_count, NAME_COLUMNS, &arena);
    lab_table_column(shown, "Name", LAB_ALIGN_LEFT);
    for (int c = 0; c < result->column_count; c++)
        if (result->columns[c].brief)
            lab_table_column(shown, result->columns[c].brief, LAB_ALIGN_RIGHT);
    for (int i = 0; i < result->part_count; i++) {
        lab_table_cell(shown, "%s", names[i]);
        for (int c = 0; c < result->column_count; c++) {
            if (!result->columns[c].brief)
                continue;
            lab_str_clear(&text);
            lab_doc_add_cell(&result->parts[i].cells[c], &result->columns[c], true, &text);
            lab_table_cell(shown, "%s", text.text);
        }
    }
    lab_table_write(shown, style, out);
    lab_str_release(&text);
    lab_arena_release(&arena);
    lab_table_close(shown);
}

static void add_paragraph(const char *text, int indent, struct lab_style style,
                          struct lab_str *out) {
    lab_str_add_repeat(out, " ", indent);
    wrap(text, indent, indent, style, out);
    lab_str_add(out, "\n");
}

/* "  Overlap          98.0 %, of the copies' time lies under compute" */
static void add_figure(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                       struct lab_style style, struct lab_str *out) {
    if (!lab_doc_cell_is_shown(cell, column))
        return;
    struct lab_str text;
    lab_str_init(&text);
    lab_doc_add_cell(cell, column, false, &text);
    if (column->unit != LAB_UNIT_TEXT)
        lab_text_keep(&text, 0);
    if (cell->text && column->unit != LAB_UNIT_TEXT)
        lab_str_printf(&text, " %s", cell->text);
    lab_str_add(out, "  ");
    if (style.colour)
        lab_str_printf(out, "\033[1m%s\033[0m", column->title);
    else
        lab_str_add(out, column->title);
    lab_str_add_repeat(out, " ", LABEL_COLUMNS - 2 - lab_str_columns(column->title));
    wrap(text.text, LABEL_COLUMNS, LABEL_COLUMNS, style, out);
    lab_str_add(out, "\n");
    lab_str_release(&text);
}

static void add_notes(const char *const *notes, const char *mark, struct lab_style style,
                      struct lab_str *out) {
    for (int i = 0; notes && notes[i]; i++) {
        lab_str_add(out, i == 0 ? "\n  " : "  ");
        lab_str_add(out, mark);
        int indent = 2 + lab_str_columns(mark);
        wrap(notes[i], indent, indent, style, out);
        lab_str_add(out, "\n");
    }
}

static void add_part(const struct lab_analysis_result *result, const struct lab_analysis_part *part,
                     struct lab_style style, struct lab_str *out) {
    struct lab_str heading;
    lab_str_init(&heading);
    lab_str_add(&heading, part->name);
    if (part->about)
        lab_str_printf(&heading, " (%s)", part->about);
    if (result->simulated)
        lab_str_add(&heading, ", simulated");
    lab_str_add(out, "\n");
    lab_text_heading(heading.text, style, out);
    lab_str_release(&heading);
    if (result->part_count > 1)
        add_paragraph(part->answer, 2, style, out);
    bool any = false;
    for (int c = 0; c < result->column_count; c++)
        any |= lab_doc_cell_is_shown(&part->cells[c], &result->columns[c]);
    lab_str_add(out, any ? "\n" : "");
    for (int c = 0; c < result->column_count; c++)
        add_figure(&part->cells[c], &result->columns[c], style, out);
    for (int i = 0; i < part->table_count; i++) {
        if (!part->tables[i].title)
            continue;
        lab_str_printf(out, "\n  %s\n", part->tables[i].title);
        if (part->tables[i].lines)
            add_lines(part->tables[i].lines, "    ", out);
        else
            add_table(&part->tables[i], style, out);
    }
    add_notes(part->notes, "! ", style, out);
}

static void write_text(const struct lab_analysis_result *result, struct lab_style style,
                       struct lab_str *out) {
    wrap(result->answer, 0, 0, style, out);
    lab_str_add(out, "\n");
    if (result->simulated)
        lab_str_add(out, "These are simulated devices.\n");
    if (result->part_count > 1) {
        lab_str_add(out, "\n");
        add_comparison(result, style, out);
    }
    for (int i = 0; i < result->part_count; i++)
        add_part(result, &result->parts[i], style, out);
    for (int i = 0; result->notes && result->notes[i]; i++) {
        lab_str_add(out, "\n");
        add_paragraph(result->notes[i], 0, style, out);
    }
}

void lab_report_analysis(const struct lab_analysis_result *result, struct lab_style style,
                         struct lab_str *out) {
    if (style.unicode) {
        write_text(result, style, out);
        return;
    }
    struct lab_str text;
    lab_str_init(&text);
    write_text(result, style, &text);
    lab_text_to_ascii(text.text, out);
    lab_str_release(&text);
}

/* --- Markdown --- */

void analysis_add_escaped(const char *text, struct lab_str *out) {
    for (const char *c = text; *c; c++) {
        bool within =
            *c == '_' && c > text && isalnum((unsigned char)c[-1]) && isalnum((unsigned char)c[1]);
        if (*c == '\n' || *c == '\r')
            lab_str_add(out, " ");
        else if (strchr("\\`*_<>[]|~&#", *c) && !within)
            lab_str_printf(out, "\\%c", *c);
        else
            lab_str_add_bytes(out, c, 1);
    }
}

static void add_markdown_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                              struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    lab_doc_add_cell(cell, column, false, &text);
    lab_str_add(out, " ");
    analysis_add_escaped(text.text, out);
    lab_str_add(out, " |");
    lab_str_release(&text);
}

static void add_markdown_table(const struct lab_doc_table *table, struct lab_str *out) {
    if (!table->title)
        return;
    lab_str_printf(out, "\n### %s\n\n", table->title);
    if (table->lines) {
        lab_str_add(out, "```\n");
        add_lines(table->lines, "", out);
        lab_str_add(out, "```\n");
        return;
    }
    lab_str_add(out, "|");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title) {
            lab_str_add(out, " ");
            analysis_add_escaped(table->columns[c].title, out);
            lab_str_add(out, " |");
        }
    lab_str_add(out, "\n|");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title)
            lab_str_add(out, table->columns[c].unit == LAB_UNIT_TEXT ? "---|" : "--:|");
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const struct lab_doc_column *column = &table->columns[i % table->column_count];
        lab_str_add(out, i % table->column_count == 0 ? "\n|" : "");
        if (column->title)
            add_markdown_cell(&table->cells[i], column, out);
    }
    lab_str_add(out, "\n");
}

static void add_markdown_comparison(const struct lab_analysis_result *result, struct lab_str *out) {
    lab_str_add(out, "\n| Name |");
    for (int c = 0; c < result->column_count; c++)
        if (result->columns[c].brief)
            lab_str_printf(out, " %s |", result->columns[c].brief);
    lab_str_add(out, "\n|---|");
    for (int c = 0; c < result->column_count; c++)
        lab_str_add(out, result->columns[c].brief ? "--:|" : "");
    for (int i = 0; i < result->part_count; i++) {
        lab_str_add(out, "\n| ");
        analysis_add_escaped(result->parts[i].name, out);
        lab_str_add(out, " |");
        for (int c = 0; c < result->column_count; c++)
            if (result->columns[c].brief)
                add_markdown_cell(&result->parts[i].cells[c], &result->columns[c], out);
    }
    lab_str_add(out, "\n");
}

static void add_markdown_part(const struct lab_analysis_result *result,
                              const struct lab_analysis_part *part, struct lab_str *out) {
    lab_str_add(out, "\n## ");
    analysis_add_escaped(part->name, out);
    lab_str_add(out, result->simulated ? " (simulated)\n\n" : "\n\n");
    if (part->about) {
        lab_str_add(out, "On ");
        analysis_add_escaped(part->about, out);
        lab_str_add(out, ". ");
    }
    analysis_add_escaped(part->answer, out);
    lab_str_add(out, "\n");
    bool any = false;
    for (int c = 0; c < result->column_count; c++) {
        const struct lab_doc_cell *cell = &part->cells[c];
        if (!lab_doc_cell_is_shown(cell, &result->columns[c]))
            continue;
        lab_str_add(out, any ? "" : "\n| Figure | Value | |\n|---|--:|---|\n");
        any = true;
        lab_str_printf(out, "| %s |", result->columns[c].title);
        add_markdown_cell(cell, &result->columns[c], out);
        lab_str_add(out, " ");
        analysis_add_escaped(
            cell->text && result->columns[c].unit != LAB_UNIT_TEXT ? cell->text : "", out);
        lab_str_add(out, " |\n");
    }
    for (int i = 0; i < part->table_count; i++)
        add_markdown_table(&part->tables[i], out);
    for (int i = 0; part->notes && part->notes[i]; i++) {
        lab_str_add(out, i == 0 ? "\n- " : "- ");
        analysis_add_escaped(part->notes[i], out);
        lab_str_add(out, "\n");
    }
}

void lab_report_analysis_markdown(const struct lab_analysis_result *result, const char *title,
                                  struct lab_str *out) {
    lab_str_printf(out, "# %s%s\n\n", title, result->simulated ? " (simulated)" : "");
    analysis_add_escaped(result->answer, out);
    lab_str_add(out, "\n");
    if (result->part_count > 1)
        add_markdown_comparison(result, out);
    for (int i = 0; i < result->part_count; i++)
        add_markdown_part(result, &result->parts[i], out);
    for (int i = 0; result->notes && result->notes[i]; i++) {
        lab_str_add(out, "\n");
        analysis_add_escaped(result->notes[i], out);
        lab_str_add(out, "\n");
    }
}

/* --- for programs --- */

static struct lab_value *table_value(const struct lab_doc_table *table, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < table->row_count; i++) {
        struct lab_value *row = lab_value_map(arena);
        for (int c = 0; c < table->column_count; c++)
            lab_doc_set_cell(arena, row, &table->cells[i * table->column_count + c],
                             &table->columns[c]);
        lab_value_append(arena, list, row);
    }
    return list;
}

static struct lab_value *notes_value(const char *const *notes, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; notes && notes[i]; i++)
        lab_value_append(arena, list, lab_value_string(arena, notes[i]));
    return list;
}

struct lab_value *lab_report_analysis_value(const struct lab_analysis_result *result,
                                            const char *name, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *parts = lab_value_list(arena);
    lab_value_set_string(arena, map, "analysis", name);
    lab_value_set_string(arena, map, "answer", result->answer);
    lab_value_set_bool(arena, map, "simulated", result->simulated);
    for (int i = 0; i < result->part_count; i++) {
        const struct lab_analysis_part *part = &result->parts[i];
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "name", part->name);
        lab_value_set_string(arena, item, "about", part->about);
        lab_value_set_string(arena, item, "answer", part->answer);
        for (int c = 0; c < result->column_count; c++)
            lab_doc_set_cell(arena, item, &part->cells[c], &result->columns[c]);
        for (int t = 0; t < part->table_count; t++)
            lab_value_set(arena, item, part->tables[t].key, table_value(&part->tables[t], arena));
        lab_value_set(arena, item, "notes", notes_value(part->notes, arena));
        lab_value_append(arena, parts, item);
    }
    lab_value_set(arena, map, result->part_key, parts);
    lab_value_set(arena, map, "notes", notes_value(result->notes, arena));
    return map;
}
