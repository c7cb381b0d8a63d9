/* table.c: cells in columns that line up. */
#include "doc/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 64
#define INDENT      2
#define GAP         2
#define WIDTH_MIN   8  /* of a column that is cut */
#define NAME_MIN    40 /* up to which the first column keeps what tells its rows apart */

struct lab_table {
    struct lab_arena arena;
    const char *titles[COLUMNS_MAX];
    enum lab_align aligns[COLUMNS_MAX];
    int column_count;
    char **cells; /* row by row */
    int cell_count, cell_capacity;
};

struct lab_table *lab_table_open(void) {
    struct lab_table *table = lab_mem_alloc(1, sizeof *table);
    lab_arena_init(&table->arena);
    return table;
}

void lab_table_close(struct lab_table *table) {
    if (!table)
        return;
    lab_arena_release(&table->arena);
    lab_mem_free(table->cells);
    lab_mem_free(table);
}

void lab_table_column(struct lab_table *table, const char *title, enum lab_align align) {
    assert(table->column_count < COLUMNS_MAX && table->cell_count == 0);
    table->titles[table->column_count] = lab_arena_strdup(&table->arena, title);
    table->aligns[table->column_count++] = align;
}

void lab_table_cell(struct lab_table *table, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);
    char *text = lab_arena_alloc(&table->arena, (size_t)length + 1, 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    LAB_MEM_GROW(&table->cells, table->cell_count, &table->cell_capacity);
    table->cells[table->cell_count++] = text;
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

/* How far the first column, the rows' names, may be cut before two of them look alike. */
static int least_width(const struct lab_table *table, char *const *cells) {
    int rows = table->cell_count / table->column_count, least = WIDTH_MIN;
    const char **names = lab_mem_alloc((size_t)rows + 1, sizeof *names);
    for (int r = 0; r < rows; r++)
        names[r] = cells[(ptrdiff_t)r * table->column_count];
    if (rows > 1)
        qsort(names, (size_t)rows, sizeof *names, by_text);
    for (int r = 1; r < rows; r++) {
        int width = shared_columns(names[r - 1], names[r]) + 2; /* one that differs, and the sign */
        if (strcmp(names[r - 1], names[r]) != 0 && width > least)
            least = width;
    }
    lab_mem_free(names);
    return least > NAME_MIN ? WIDTH_MIN : least;
}

static void measure(const struct lab_table *table, char *const *cells, int columns,
                    int widths[COLUMNS_MAX]) {
    int total = INDENT;
    for (int c = 0; c < table->column_count; c++) {
        widths[c] = lab_str_columns(table->titles[c]);
        for (int i = c; i < table->cell_count; i += table->column_count)
            if (lab_str_columns(cells[i]) > widths[c])
                widths[c] = lab_str_columns(cells[i]);
        total += widths[c] + (c ? GAP : 0);
    }
    int least = total > columns ? least_width(table, cells) : WIDTH_MIN;
    while (total > columns) {
        int widest = -1;
        for (int c = 0; c < table->column_count; c++)
            if (table->aligns[c] == LAB_ALIGN_LEFT && widths[c] > (c == 0 ? least : WIDTH_MIN) &&
                (widest < 0 || widths[c] >= widths[widest]))
                widest = c;
        if (widest < 0)
            return; /* figures are never cut: rather too wide than wrong */
        widths[widest]--;
        total--;
    }
}

static void write_row(const struct lab_table *table, const char *const *cells, int count,
                      const int *widths, bool unicode, struct lab_str *out) {
    lab_str_add_repeat(out, " ", INDENT);
    for (int c = 0; c < count; c++) {
        int spare = widths[c] - lab_str_columns(cells[c]);
        if (c)
            lab_str_add_repeat(out, " ", GAP);
        if (table->aligns[c] == LAB_ALIGN_RIGHT && spare > 0)
            lab_str_add_repeat(out, " ", spare);
        if (spare < 0)
            lab_text_fit(cells[c], widths[c], unicode, out);
        else
            lab_str_add(out, cells[c]);
        if (table->aligns[c] != LAB_ALIGN_RIGHT && spare > 0 && c + 1 < count)
            lab_str_add_repeat(out, " ", spare);
    }
    while (out->length && out->text[out->length - 1] == ' ')
        out->text[--out->length] = '\0';
    lab_str_add(out, "\n");
}

static void write_rule(const struct lab_table *table, const int *widths, bool unicode,
                       struct lab_str *out) {
    lab_str_add_repeat(out, " ", INDENT);
    for (int c = 0; c < table->column_count; c++) {
        if (c)
            lab_str_add_repeat(out, " ", GAP);
        lab_str_add_repeat(out, unicode ? "─" : "-", widths[c]);
    }
    lab_str_add(out, "\n");
}

void lab_table_write(const struct lab_table *table, struct lab_style style, struct lab_str *out) {
    assert(table->column_count && table->cell_count % table->column_count == 0);
    struct lab_arena arena;
    lab_arena_init(&arena);
    char **cells = lab_arena_alloc(&arena, (size_t)table->cell_count + 1, sizeof *cells);
    for (int i = 0; i < table->cell_count; i++) {
        cells[i] = table->cells[i];
        if (style.unicode)
            continue;
        struct lab_str plain;
        lab_str_init(&plain);
        lab_text_to_ascii(cells[i], &plain);
        cells[i] = lab_arena_strdup(&arena, plain.text);
        lab_str_release(&plain);
    }
    int widths[COLUMNS_MAX];
    measure(table, cells, style.columns, widths);
    write_row(table, table->titles, table->column_count, widths, style.unicode, out);
    write_rule(table, widths, style.unicode, out);
    for (int i = 0; i < table->cell_count; i += table->column_count)
        write_row(table, (const char *const *)cells + i, table->column_count, widths, style.unicode,
                  out);
    lab_arena_release(&arena);
}
