/* page_tables.c: what an analysis found, as few tables: for the page, and whole as CSV files. */
#include "report/page/page_internal.h"

#include "analysis/analysis_build.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

static struct lab_doc_column name_column(const struct lab_analysis_result *result) {
    return (struct lab_doc_column){"name", lab_report_part_title(result), LAB_UNIT_TEXT};
}

struct lab_doc_table page_figures(const struct lab_analysis_result *result, bool brief,
                                  const struct page_names *names, struct lab_arena *arena) {
    size_t most = (size_t)result->column_count + 1;
    struct lab_doc_column *columns = lab_arena_alloc(arena, most, sizeof *columns);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, most * (size_t)result->part_count + 1, sizeof *cells);
    int count = 0, at = 0;
    columns[count++] = name_column(result);
    for (int c = 0; c < result->column_count; c++)
        if (!brief || lab_report_is_compared(result, c)) {
            columns[count] = result->columns[c];
            columns[count].title = brief ? result->columns[c].brief : result->columns[c].title;
            count++;
        }
    for (int i = 0; i < result->part_count && count > 1; i++) {
        cells[at++] = lab_cell_text(page_named(names, result->parts[i].name, arena));
        for (int c = 0; c < result->column_count; c++)
            if (!brief || lab_report_is_compared(result, c)) {
                cells[at] = result->parts[i].cells[c];
                cells[at].text = page_named(names, cells[at].text, arena);
                at++;
            }
    }
    return (struct lab_doc_table){.columns = columns,
                                  .column_count = count,
                                  .cells = cells,
                                  .row_count = count > 1 ? result->part_count : 0,
                                  .untitled = true};
}

static bool is_mergeable(const struct lab_doc_table *table) {
    return table->title && !table->lines && table->row_count > 0;
}

/* The first table of the number-th key. */
static const struct lab_doc_table *find_key(const struct lab_analysis_result *result, int number) {
    const char *seen[64];
    int count = 0;
    for (int i = 0; i < result->part_count; i++)
        for (int t = 0; t < result->parts[i].table_count; t++) {
            const struct lab_doc_table *table = &result->parts[i].tables[t];
            if (!is_mergeable(table) || lab_list_find_text(seen, count, table->key) >= 0)
                continue;
            if (count == number)
                return table;
            if (count == 64)
                return NULL;
            seen[count++] = table->key;
        }
    return NULL;
}

static bool is_alike(const struct lab_doc_table *table, const struct lab_doc_table *first) {
    return is_mergeable(table) && lab_str_equal(table->key, first->key) &&
           table->column_count == first->column_count;
}

const struct lab_doc_table *page_merged(const struct lab_analysis_result *result, int number,
                                        const struct page_names *names, struct lab_arena *arena) {
    const struct lab_doc_table *first = find_key(result, number);
    if (!first)
        return NULL;
    struct lab_doc_table *merged = lab_arena_alloc(arena, 1, sizeof *merged);
    int rows = 0, sources = 0, at = 0;
    for (int i = 0; i < result->part_count; i++)
        for (int t = 0; t < result->parts[i].table_count; t++)
            if (is_alike(&result->parts[i].tables[t], first)) {
                rows += result->parts[i].tables[t].row_count;
                sources++;
            }
    bool named = sources > 1;
    int count = first->column_count + named;
    struct lab_doc_column *columns = lab_arena_alloc(arena, (size_t)count, sizeof *columns);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * (size_t)rows, sizeof *cells);
    columns[0] = name_column(result);
    memcpy(columns + named, first->columns, (size_t)first->column_count * sizeof *columns);
    for (int i = 0; i < result->part_count; i++) {
        const char *name = page_named(names, result->parts[i].name, arena);
        for (int t = 0; t < result->parts[i].table_count; t++) {
            const struct lab_doc_table *table = &result->parts[i].tables[t];
            for (int k = 0; is_alike(table, first) && k < table->row_count * table->column_count;
                 k++) {
                if (named && k % table->column_count == 0)
                    cells[at++] = lab_cell_text(name);
                cells[at] = table->cells[k];
                cells[at].text = page_named(names, cells[at].text, arena);
                at++;
            }
        }
    }
    *merged = (struct lab_doc_table){.key = first->key,
                                     .title = first->title,
                                     .aside = first->aside,
                                     .columns = columns,
                                     .column_count = count,
                                     .cells = cells,
                                     .row_count = rows};
    return merged;
}

#define OPEN   ", inconclusive"
#define SINGLE "1 run each" /* as below the table */

void page_drop_single(struct lab_doc_table *table, const char *caption, struct lab_arena *arena) {
    int count = table->row_count * table->column_count;
    struct lab_doc_cell *cells = lab_arena_copy(arena, table->cells, (size_t)count, sizeof *cells);
    for (int i = 0; i < count && lab_str_starts(caption, SINGLE "."); i++)
        if (cells[i].text && lab_str_ends(cells[i].text, ", " SINGLE))
            cells[i].text = lab_arena_strndup(arena, cells[i].text,
                                              strlen(cells[i].text) - strlen(", " SINGLE));
    table->cells = cells;
}

/* Rows have little room: "-3.1% [-9.0, 2.8]?" of what is inconclusive; names lose their middles. */
static void shorten_cells(struct lab_doc_table *table, struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_copy(
        arena, table->cells, (size_t)(table->row_count * table->column_count), sizeof *cells);
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const char *text = page_cut_words(cells[i].text, arena), *at;
        while (text && (at = strstr(text, OPEN)))
            text = lab_arena_printf(arena, "%.*s?%s", (int)(at - text), text, at + strlen(OPEN));
        cells[i].text = text;
    }
    table->cells = cells;
}

/* What a row compares: of the last column that is shown. */
static const struct lab_doc_cell *last_cell(const struct lab_doc_table *table, int row) {
    int last = table->column_count - 1;
    while (last > 0 && !table->columns[last].title)
        last--;
    return &table->cells[(ptrdiff_t)row * table->column_count + last];
}

static bool is_compared(const struct lab_doc_table *table, int row) {
    const struct lab_doc_cell *cell = last_cell(table, row);
    return cell->text ? !lab_str_equal(cell->text, "–") : !isnan(cell->value);
}

/* Whether the answer has a change by its number: "47.7%" of "-47.7% [-47.9, -47.5]". A bound, of
 * which many rows have the same, is no change. */
static bool quotes(const char *answer, const char *text) {
    if (text && (lab_str_starts(text, "within") || lab_str_starts(text, "±")))
        return false;
    const char *number = text ? text + strcspn(text, "0123456789") : "";
    size_t length = strspn(number, "0123456789.");
    if (length == 0 || number[length] != '%')
        return false;
    for (const char *at = answer; at && *at; at++)
        if (strncmp(at, number, length + 1) == 0 &&
            (at == answer || !strchr("0123456789.", at[-1])))
            return true;
    return false;
}

static bool is_quoted(const struct lab_doc_table *table, int row, const char *answer) {
    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i].title &&
            quotes(answer, table->cells[(ptrdiff_t)row * table->column_count + i].text))
            return true;
    return false;
}

/* How many rows come first, so that all that the answer quotes after them have room, too; half of
 * the room at least. */
static int count_first(const struct lab_doc_table *table, int most, bool card, const char *answer) {
    int first = 0, quoted = 0;
    for (int r = 0; r < table->row_count; r++)
        first += !card || is_compared(table, r);
    for (int r = table->row_count - 1; r >= 0 && first + quoted > most && first > most / 2; r--) {
        if (card && !is_compared(table, r))
            continue;
        first--;
        quoted += is_quoted(table, r, answer);
    }
    return first;
}

/* The first rows, and those that the answer quotes instead of the last of them; on a card, where
 * few have room, those without a comparison yield. Returns which rows these are, in words.
 * `ret_quoted`: how many of the last ones are shown for a quote alone. */
static const char *cut_rows(struct lab_doc_table *table, int most, bool card, const char *answer,
                            struct lab_arena *arena, int *ret_quoted) {
    size_t width = (size_t)table->column_count;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, width * (size_t)table->row_count + 1, sizeof *cells);
    int total = table->row_count, shown = 0, kept = 0, all = 0;
    int first = count_first(table, most, card, answer);
    for (int r = 0; r < total; r++) {
        if (card && !is_compared(table, r))
            continue;
        bool named = is_quoted(table, r, answer);
        if (kept < most && (shown < first || named)) {
            memcpy(&cells[width * (size_t)kept++], &table->cells[(size_t)r * width],
                   width * sizeof *cells);
            all += named;
        }
        shown++;
    }
    int quoted = kept - first;
    table->cells = cells;
    table->row_count = kept;
    *ret_quoted = quoted;
    const char *of = shown == total ? ""
                     : kept < shown ? " with a comparison"
                                    : ": those with a comparison";
    if (quoted && all == kept)
        return lab_arena_printf(arena, "%d of %d rows%s: those that the answer quotes.", kept,
                                shown, of);
    if (quoted)
        return lab_arena_printf(arena,
                                "%d of %d rows%s: the first %d, then those that the answer quotes.",
                                kept, shown, of, first);
    return lab_arena_printf(arena, kept < shown ? "First %d of %d rows%s." : "%d of %d rows%s.",
                            kept, kept < shown ? shown : total, of);
}

static bool has_interval(const struct lab_doc_table *table, const bool *shown) {
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const struct lab_doc_cell *cell = &table->cells[i];
        bool interval = cell->text ? strstr(cell->text, "±") || strstr(cell->text, " [")
                                   : !isnan(cell->value) && !isnan(cell->low);
        if (shown[i % table->column_count] && interval)
            return true;
    }
    return false;
}

/* Whether a sentence names a column at its start that isn't shown. */
static bool is_about_hidden(const char *sentence, const struct lab_doc_table *whole,
                            const bool *shown) {
    if (lab_str_starts(sentence, "±: "))
        return !has_interval(whole, shown);
    for (int c = 0; c < whole->column_count; c++) {
        const struct lab_doc_column *column = &whole->columns[c];
        const char *title = column->title ? column->title : column->hidden;
        size_t length = title ? strlen(title) : 0;
        if (length && !shown[c] && lab_str_starts(sentence, title) && sentence[length] == ':')
            return true;
    }
    return false;
}

const char *page_caption(const char *words, const struct lab_doc_table *whole, const bool *shown,
                         struct lab_arena *arena) {
    LAB_AUTO(str, kept);
    for (const char *at = words, *next; *at; at = next) {
        const char *end = strstr(at, ". ");
        next = end ? end + 2 : at + strlen(at);
        if (!is_about_hidden(at, whole, shown))
            lab_str_add_bytes(&kept, at, (size_t)(next - at));
    }
    size_t length = kept.length;
    while (length && kept.text[length - 1] == ' ')
        length--;
    return lab_arena_strndup(arena, kept.text ? kept.text : "", length);
}

/* What stands below it, after which rows these are. */
static const char *overview_words(const struct lab_page *page, const struct lab_doc_table *overview,
                                  const char *rows, const char *caption, struct lab_arena *arena) {
    const struct lab_analysis_result *result = page_by_point(page)->result;
    bool open = false, corrected = false;
    for (int i = 0; i < overview->row_count * overview->column_count; i++)
        open |= overview->cells[i].text && (lab_str_ends(overview->cells[i].text, "]?") ||
                                            lab_str_ends(overview->cells[i].text, "×?"));
    for (int i = 0; i < result->claim_count; i++)
        corrected |= lab_claim_is_corrected(&result->claims[i]);
    LAB_AUTO(str, words);
    lab_str_printf(&words, "%s%s%s", rows, *rows ? " " : "", caption);
    if (open)
        lab_str_printf(&words, " ?: inconclusive%s.",
                       corrected ? "; verdicts are corrected for all comparisons" : "");
    return lab_arena_strdup(arena, words.text);
}

#define CARD_WIDE 60 /* characters */
#define FIGURE    8  /* likewise, of a cell without text */

/* Whether a card has room for all columns, none of which is to yield. */
static bool is_narrow(const struct lab_doc_table *table) {
    int wide = 0;
    bool yields = false;
    for (int c = 0; c < table->column_count; c++) {
        int most = table->columns[c].title ? lab_str_columns(table->columns[c].title) : -1;
        for (int r = 0; r < table->row_count && most >= 0; r++) {
            const char *text = table->cells[(ptrdiff_t)r * table->column_count + c].text;
            int own = text ? lab_str_columns(text) : FIGURE;
            most = own > most ? own : most;
        }
        wide += most + 1;
        yields |= most >= 0 && table->columns[c].yields > 0;
    }
    return wide <= CARD_WIDE && !yields;
}

#define ROWS_SPARED 2 /* no more than these are left out of a card */

struct lab_doc_table *page_overview(const struct lab_page *page, const struct page_names *names,
                                    const struct lab_style *terminal, int columns, int rows,
                                    struct lab_arena *arena, const char **ret_words) {
    const struct lab_page_analysis *analysis = page ? page_by_point(page) : NULL;
    const struct lab_doc_table *whole =
        analysis ? page_merged(analysis->result, 0, names, arena) : NULL;
    if (!whole)
        return NULL;
    struct lab_doc_table *table = lab_arena_copy(arena, whole, 1, sizeof *table);
    struct lab_doc_column *own = lab_analysis_own_columns(table, arena);
    bool cards = columns < table->column_count && !is_narrow(table); /* there columns yield first */
    columns = cards ? columns : INT32_MAX;
    rows += !terminal && !cards && table->row_count <= rows + ROWS_SPARED ? ROWS_SPARED : 0;
    for (int i = 0; i < table->column_count; i++)
        if (own[i].title && ((cards && own[i].yields > 0) || columns-- <= 0))
            own[i].title = NULL;
        else if (own[i].title) /* a metric of the user's program */
            own[i].title = page_cut_words(own[i].title, arena);
    bool ranked = cards; /* the analysis says itself which columns yield */
    for (int i = 0; i < table->column_count; i++)
        ranked |= own[i].title && own[i].yields > 0;
    for (int i = 0, shown = 0; i < table->column_count && terminal && !ranked; i++)
        if (own[i].title && shown++ > 1)
            own[i].yields = shown; /* the last ones first, before names are cut */
    table->key = table->title = NULL;
    table->untitled = true;
    table->folds = false;
    shorten_cells(table, arena);
    page_drop_single(table, analysis->result->by_point, arena);
    const char *which = "";
    int quoted = 0;
    table->row_total = table->row_count;
    if (table->row_count > rows)
        which = cut_rows(table, rows, cards, analysis->result->answer, arena, &quoted);
    int left = table->row_total - table->row_count;
    table->more = left == 0 ? "More columns: in the report."
                  : quoted  ? lab_arena_printf(arena, "%d of %d rows shown (all: --verbose).",
                                               table->row_count, table->row_total)
                            : lab_arena_printf(arena, "… %d more row%s (--verbose).", left,
                                               study_plural(left));
    bool *shown = lab_arena_alloc(arena, (size_t)table->column_count + 1, sizeof *shown);
    for (int i = 0; i < table->column_count; i++)
        shown[i] = own[i].title;
    if (terminal)
        lab_doc_table_shown(table, *terminal, shown);
    struct lab_doc_table titled = *table;
    titled.columns = whole->columns;
    *ret_words =
        overview_words(page, table, terminal ? "" : which,
                       page_caption(analysis->result->by_point, &titled, shown, arena), arena);
    return table;
}
