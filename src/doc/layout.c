/*
 * layout.c: a table on a terminal: which of its columns, how wide, what is cut. Figures are never
 * cut: rather too wide than wrong.
 */
#include "base/names.h"
#include "doc/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP        2
#define WIDTH_MIN  8  /* of a column that is cut */
#define NAME_MIN   40 /* up to which the first column keeps what tells its rows apart */
#define NAME_LEAST 20 /* of a name that loses its middle */
#define NAME_SHORT 24 /* longer names are shortened to what tells them apart, where asked for */

struct column {
    const struct lab_doc_column *column;
    enum lab_align align;
    const char *title;
    const char **cells;
    int width;
    bool hidden;
};

struct sheet {
    const struct lab_doc_table *table;
    struct lab_style style;
    struct column *columns;
    int count;
    struct column *below; /* on lines of its own; NULL = none is */
    bool yielded;         /* some column did */
    struct lab_arena *arena;
};

/* --- cells --- */

static const char *plain(const struct sheet *sheet, const char *text) {
    if (sheet->style.unicode)
        return text;
    LAB_AUTO(str, ascii);
    lab_text_to_ascii(text, &ascii);
    return lab_arena_strdup(sheet->arena, ascii.text);
}

static void fill_column(const struct sheet *sheet, int at, struct column *column) {
    const struct lab_doc_table *table = sheet->table;
    LAB_AUTO(str, text);
    bool empty = true;
    column->column = &table->columns[at];
    column->title = plain(sheet, column->column->title);
    column->align = column->column->align;
    if (column->align == LAB_ALIGN_BY_UNIT)
        column->align = column->column->unit == LAB_UNIT_TEXT ? LAB_ALIGN_LEFT : LAB_ALIGN_RIGHT;
    column->cells =
        lab_arena_alloc(sheet->arena, (size_t)table->row_count + 1, sizeof *column->cells);
    for (int r = 0; r < table->row_count; r++) {
        const struct lab_doc_cell *cell = &table->cells[(ptrdiff_t)r * table->column_count + at];
        lab_str_clear(&text);
        lab_doc_add_cell(cell, column->column, true, &text);
        empty &= !text.length || strcmp(text.text, "–") == 0 || strcmp(text.text, "…") == 0;
        column->cells[r] = plain(sheet, lab_arena_strdup(sheet->arena, text.text));
    }
    if (table->shortened && at == 0 && column->column->unit == LAB_UNIT_TEXT)
        column->cells =
            lab_names_shorten(column->cells, table->row_count, NAME_SHORT, sheet->arena);
    column->hidden = column->column->optional && empty;
}

static void measure(const struct sheet *sheet, struct column *column) {
    column->width = lab_str_columns(column->title);
    for (int r = 0; r < sheet->table->row_count; r++) {
        int width = lab_str_columns(column->cells[r]);
        column->width = width > column->width ? width : column->width;
    }
}

static int total_width(const struct sheet *sheet) {
    int total = 0; /* the indent is as wide as a gap */
    for (int c = 0; c < sheet->count; c++)
        total += sheet->columns[c].hidden ? 0 : GAP + sheet->columns[c].width;
    return total;
}

static bool is_too_wide(const struct sheet *sheet) {
    return total_width(sheet) > sheet->style.columns;
}

/* --- columns that yield --- */

/* Of rates that all have it; NULL = they differ, or there is none. */
static const char *common_unit(const struct sheet *sheet, const struct column *column) {
    const struct lab_doc_table *table = sheet->table;
    const char *common = NULL;
    for (int r = 0; r < table->row_count && column->column->unit == LAB_UNIT_PER_SECOND; r++) {
        const struct lab_doc_cell *cell =
            &table->cells[(ptrdiff_t)r * table->column_count + (column->column - table->columns)];
        const char *unit = cell->unit ? cell->unit : LAB_UNIT_SAMPLES;
        if (isnan(cell->value))
            continue;
        if (common && strcmp(unit, common) != 0)
            return NULL;
        common = unit;
    }
    return common;
}

/* Rates of a table that is too wide have their unit in the title. */
static void move_units(const struct sheet *sheet) {
    for (int c = 0; c < sheet->count; c++) {
        struct column *column = &sheet->columns[c];
        const char *unit = is_too_wide(sheet) ? common_unit(sheet, column) : NULL;
        if (!unit || column->hidden)
            continue;
        for (int r = 0; r < sheet->table->row_count; r++) {
            const char *cell = column->cells[r], *at = strstr(cell, unit);
            if (at && at > cell)
                column->cells[r] = lab_arena_printf(sheet->arena, "%.*s%s", (int)(at - 1 - cell),
                                                    cell, at + strlen(unit));
        }
        column->title = unit;
        measure(sheet, column);
    }
}

static void hide_some(struct sheet *sheet) {
    bool *before = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *before);
    for (int c = 0; c < sheet->count; c++)
        before[c] = sheet->columns[c].hidden;
    while (is_too_wide(sheet)) {
        int most = 0;
        for (int c = 0; c < sheet->count; c++)
            if (!sheet->columns[c].hidden && sheet->columns[c].column->yields > most)
                most = sheet->columns[c].column->yields;
        if (!most)
            break;
        sheet->yielded = true;
        for (int c = 0; c < sheet->count; c++)
            sheet->columns[c].hidden |= sheet->columns[c].column->yields == most;
    }
    if (!is_too_wide(sheet))
        return;
    for (int c = 0; c < sheet->count; c++)
        if (sheet->columns[c].column->below)
            sheet->below = &sheet->columns[c];
    for (int c = 0; c < sheet->count && sheet->below; c++)
        sheet->columns[c].hidden = before[c] || &sheet->columns[c] == sheet->below;
}

/* --- cells that are cut --- */

/* A name without its middle; ids are ASCII. */
static const char *cut_middle(const struct sheet *sheet, const char *name, int columns) {
    int length = (int)strlen(name);
    if (length <= columns)
        return name;
    int head = (columns - 1) / 2, tail = columns - 1 - head;
    return lab_arena_printf(sheet->arena, "%.*s%s%s", head, name, sheet->style.unicode ? "…" : "~",
                            name + length - tail);
}

/* Names without their middles, unless two of them would look alike. */
static void cut_middles(const struct sheet *sheet, struct column *column, int columns) {
    int rows = sheet->table->row_count;
    const char **whole = column->cells;
    column->cells = lab_arena_alloc(sheet->arena, (size_t)rows + 1, sizeof *column->cells);
    for (int r = 0; r < rows; r++)
        column->cells[r] = cut_middle(sheet, whole[r], columns);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < r; k++)
            if (strcmp(column->cells[r], column->cells[k]) == 0 && strcmp(whole[r], whole[k]) != 0)
                column->cells = whole;
    measure(sheet, column);
}

static void cut_names(const struct sheet *sheet) {
    for (int c = 0; c < sheet->count; c++) {
        struct column *column = &sheet->columns[c];
        int over = total_width(sheet) - sheet->style.columns, width = column->width - over;
        if (over > 0 && !column->hidden && column->align == LAB_ALIGN_NAME)
            cut_middles(sheet, column, width > NAME_LEAST ? width : NAME_LEAST);
    }
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int shared_columns(const char *a, const char *b) {
    int columns = 0;
    for (size_t left = strlen(a), length; left > 0; left -= length, a += length, b += length) {
        bool printable;
        length = lab_str_next(a, left, &printable);
        if (strncmp(a, b, length) != 0)
            break;
        columns++;
    }
    return columns;
}

/* How far a column of names may be cut before two of them look alike. */
static int least_width(const struct sheet *sheet, const struct column *column) {
    int rows = sheet->table->row_count, least = WIDTH_MIN;
    const char **names = lab_arena_alloc(sheet->arena, (size_t)rows + 1, sizeof *names);
    memcpy(names, column->cells, (size_t)rows * sizeof *names);
    if (rows > 1)
        qsort(names, (size_t)rows, sizeof *names, by_text);
    for (int r = 1; r < rows; r++) {
        int width = shared_columns(names[r - 1], names[r]) + 2; /* one that differs, and the sign */
        if (strcmp(names[r - 1], names[r]) != 0 && width > least)
            least = width;
    }
    return least;
}

/* Names that differ only far behind lose what they share, or their middle; rather too wide than
 * alike. Returns how far they may be cut then. */
static int tell_apart(const struct sheet *sheet, struct column *column) {
    int rows = sheet->table->row_count, least = least_width(sheet, column);
    if (least <= NAME_MIN)
        return least;
    column->cells = lab_names_shorten(column->cells, rows, NAME_SHORT, sheet->arena);
    measure(sheet, column);
    least = least_width(sheet, column);
    if (least <= NAME_MIN)
        return least;
    int room = column->width - (total_width(sheet) - sheet->style.columns);
    cut_middles(sheet, column, room < NAME_LEAST ? NAME_LEAST : room < NAME_MIN ? room : NAME_MIN);
    return column->width;
}

/* The column that tells rows apart: the first, or, where that only counts them, the next. */
static struct column *find_names(const struct sheet *sheet) {
    for (int c = 0; c < sheet->count; c++)
        if (!sheet->columns[c].hidden && sheet->columns[c].align != LAB_ALIGN_RIGHT)
            return &sheet->columns[c];
    return NULL;
}

/* Cuts texts, the widest first, until the table fits; names not below `least`. */
static void cut_texts(const struct sheet *sheet, const struct column *names, int least) {
    for (int over = total_width(sheet) - sheet->style.columns; over > 0; over--) {
        struct column *widest = NULL;
        for (int c = 0; c < sheet->count; c++) {
            struct column *column = &sheet->columns[c];
            bool cut = column->align == LAB_ALIGN_LEFT || column->align == LAB_ALIGN_NAME;
            if (!column->hidden && cut && column->width > (column == names ? least : WIDTH_MIN) &&
                (!widest || column->width >= widest->width))
                widest = column;
        }
        if (!widest)
            return;
        widest->width--;
    }
}

/* Whether its rows are numbered, so that names needn't tell them apart. */
static bool is_numbered(const struct sheet *sheet) {
    int c = 0;
    while (c < sheet->count && sheet->columns[c].hidden)
        c++;
    return c < sheet->count && sheet->columns[c].align == LAB_ALIGN_RIGHT;
}

/* A name of usual length stays whole as long as other texts can be cut; then what tells names apart
 * stays. */
static void cut_columns(const struct sheet *sheet) {
    struct column *names = find_names(sheet);
    int least = is_too_wide(sheet) && names ? tell_apart(sheet, names) : WIDTH_MIN;
    cut_texts(sheet, names, least > NAME_SHORT ? least : NAME_SHORT);
    cut_texts(sheet, names, least);
    if (is_numbered(sheet))
        cut_texts(sheet, names, WIDTH_MIN);
}

/* What says where the rest is may lose columns, the last ones first. */
static void shed_columns(struct sheet *sheet) {
    for (int c = sheet->count - 1; c > 1 && sheet->table->more && is_too_wide(sheet); c--) {
        sheet->yielded |= !sheet->columns[c].hidden;
        sheet->columns[c].hidden = true;
    }
}

/* --- rows --- */

static void end_line(struct lab_str *out) {
    while (out->length && out->text[out->length - 1] == ' ')
        out->text[--out->length] = '\0';
    lab_str_add(out, "\n");
}

/* Row -1 is that of the titles. */
static void write_row(const struct sheet *sheet, int row, struct lab_str *out) {
    for (int c = 0; c < sheet->count; c++) {
        const struct column *column = &sheet->columns[c];
        if (column->hidden)
            continue;
        const char *text = row < 0 ? column->title : column->cells[row];
        int spare = column->width - lab_str_columns(text);
        lab_str_add_repeat(out, " ", GAP + (column->align == LAB_ALIGN_RIGHT ? spare : 0));
        if (spare < 0)
            lab_text_fit(text, column->width, sheet->style.unicode, out);
        else
            lab_str_add(out, text);
        lab_str_add_repeat(out, " ", column->align == LAB_ALIGN_RIGHT ? 0 : spare);
    }
    end_line(out);
    if (row >= 0 && sheet->below)
        lab_str_printf(out, "    %s\n", sheet->below->cells[row]);
}

static void write_rule(const struct sheet *sheet, struct lab_str *out) {
    for (int c = 0; c < sheet->count; c++)
        if (!sheet->columns[c].hidden) {
            lab_str_add_repeat(out, " ", GAP);
            lab_str_add_repeat(out, sheet->style.unicode ? "─" : "-", sheet->columns[c].width);
        }
    lab_str_add(out, "\n");
}

static void write_rows(const struct sheet *sheet, struct lab_str *out) {
    write_row(sheet, -1, out);
    write_rule(sheet, out);
    for (int r = 0; r < sheet->table->row_count; r++)
        write_row(sheet, r, out);
}

/* As many columns as fit, then the next, each time behind the first one. */
static void write_folded(struct sheet *sheet, struct lab_str *out) {
    bool *gone = lab_arena_alloc(sheet->arena, (size_t)sheet->count + 1, sizeof *gone);
    int first = 0, next;
    for (int c = 0; c < sheet->count; c++)
        gone[c] = sheet->columns[c].hidden;
    while (first < sheet->count && gone[first])
        first++;
    for (int from = first + 1; from < sheet->count; from = next) {
        for (int c = 0; c < sheet->count; c++)
            sheet->columns[c].hidden = c != first;
        for (next = from; next < sheet->count; next++) {
            sheet->columns[next].hidden = gone[next];
            if (next > from && is_too_wide(sheet)) {
                sheet->columns[next].hidden = true;
                break;
            }
        }
        lab_str_add(out, from > first + 1 ? "\n" : "");
        write_rows(sheet, out);
    }
}

/* False = it is folded. */
static bool lay_out(struct sheet *sheet, const struct lab_doc_table *table) {
    sheet->columns =
        lab_arena_alloc(sheet->arena, (size_t)table->column_count + 1, sizeof *sheet->columns);
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title) {
            fill_column(sheet, c, &sheet->columns[sheet->count]);
            measure(sheet, &sheet->columns[sheet->count++]);
        }
    if (table->folds && sheet->count > 1 && is_too_wide(sheet))
        return false;
    move_units(sheet);
    hide_some(sheet);
    if (!table->uncut) {
        cut_names(sheet);
        cut_columns(sheet);
        shed_columns(sheet);
    }
    return true;
}

void lab_doc_table_shown(const struct lab_doc_table *table, struct lab_style style,
                         bool *ret_shown) {
    LAB_AUTO(arena, arena);
    struct sheet sheet = {.table = table, .style = style, .arena = &arena};
    memset(ret_shown, 0, (size_t)table->column_count * sizeof *ret_shown);
    lay_out(&sheet, table);
    for (int c = 0; c < sheet.count; c++)
        ret_shown[sheet.columns[c].column - table->columns] = !sheet.columns[c].hidden;
}

void lab_doc_table_write(const struct lab_doc_table *table, struct lab_style style,
                         struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct sheet sheet = {.table = table, .style = style, .arena = &arena};
    if (!lay_out(&sheet, table)) {
        write_folded(&sheet, out);
        return;
    }
    write_rows(&sheet, out);
    if (table->more && (sheet.yielded || table->row_total > table->row_count))
        lab_str_printf(out, "  %s\n", table->more);
}
