/*
 * study.c: a study's first report in a terminal: the answer, the runs, what is wrong with them,
 * where it all lies. It stays within two screens however many runs there are.
 */
#include "report/study/study_internal.h"

#include <math.h>

#define ROWS_ALL    24 /* a table of so many rows is shown whole */
#define ROWS_END    8  /* of a longer one: so many from either end */
#define NOTES_SHOWN 6
#define NAME_LEAST  20 /* columns of a run's name */

/* --- which rows --- */

struct choice {
    const struct study_row **rows;
    int count, of;
    int split; /* rows from here on are the slowest, those before it the fastest; 0 = they aren't */
};

static bool has_ended(const struct study_row *row) {
    return row->state_counts[LAB_RUN_DONE] + row->state_counts[LAB_RUN_FAILED] > 0;
}

static int by_rate(const void *a, const void *b) {
    const struct study_row *x = *(const struct study_row *const *)a;
    const struct study_row *y = *(const struct study_row *const *)b;
    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    return x < y ? -1 : 1; /* they lie in the order of their names */
}

/* All that have ended; of many, the fastest and the slowest, which are what a study looks for.
 * Rates of different units have no order: then the first ones. Failures are listed below in any
 * case. */
static struct choice choose(struct study_digest *digest) {
    size_t most = (size_t)digest->row_count + 1;
    struct choice choice = {.rows = lab_arena_alloc(&digest->arena, most, sizeof *choice.rows)};
    int ended = 0;
    for (int i = 0; i < digest->row_count; i++)
        ended += has_ended(&digest->rows[i]);
    for (int i = 0; i < digest->row_count; i++) {
        const struct study_row *row = &digest->rows[i];
        bool usable = !isnan(row->rate) && (row->valid || digest->nothing_valid);
        if (ended <= ROWS_ALL ? has_ended(row) : usable)
            choice.rows[choice.count++] = row;
    }
    choice.of = ended;
    if (choice.count <= ROWS_ALL)
        return choice;
    if (digest->range_count == 1) {
        qsort(choice.rows, (size_t)choice.count, sizeof *choice.rows, by_rate);
        for (int i = 0; i < ROWS_END; i++)
            choice.rows[ROWS_END + i] = choice.rows[choice.count - ROWS_END + i];
        choice.split = ROWS_END;
    }
    choice.count = 2 * ROWS_END;
    return choice;
}

/* --- the table --- */

enum { NAME, DEVICE, NODE, RUNS, RATE, SPREAD, LATENCY, REMARK, COLUMN_COUNT };

struct column {
    char title[64];
    enum lab_align align;
    const char **cells;
    int width;
    bool shown;
};

struct sheet {
    struct study_digest *digest;
    struct lab_style style;
    struct choice choice;
    struct column columns[COLUMN_COUNT];
};

static void title_rate(const struct study_digest *digest, char *buffer, size_t size) {
    const char *unit = digest->range_count == 1 ? digest->ranges[0].unit : "";
    snprintf(buffer, size, "%s%s", digest->study->simulated ? "simulated " : "",
             *unit ? unit : "rate");
    buffer[0] = (char)(buffer[0] - 'a' + 'A');
}

static void add_cell(const struct sheet *sheet, int column, const struct study_row *row,
                     struct lab_str *out) {
    struct lab_str other;
    double latency_s;
    bool one_unit;
    switch (column) {
    case NAME:
        lab_str_add(out, row->name);
        return;
    case DEVICE:
    case NODE:
        lab_str_init(&other);
        study_add_places(row->run[0], column == DEVICE ? out : &other,
                         column == DEVICE ? &other : out);
        lab_str_release(&other);
        return;
    case RUNS:
        lab_str_printf(out, "%d", row->rate_count);
        return;
    case RATE:
        one_unit = sheet->digest->range_count == 1 && strcmp(row->unit, STUDY_TIME) != 0;
        study_add_rate(out, row->rate, one_unit ? "" : row->unit);
        return;
    case SPREAD:
        study_add_spread(out, row->rate, row->low, row->high);
        return;
    case LATENCY: /* of what was done once it is the time again */
        latency_s = strcmp(row->unit, STUDY_TIME) != 0 ? study_row_latency_s(row) : NAN;
        lab_str_add(out, isnan(latency_s) ? "–" : "");
        if (!isnan(latency_s))
            lab_str_add_time(out, latency_s);
        return;
    default:
        study_add_remark(sheet->digest, row, out);
        return;
    }
}

static void fill(struct sheet *sheet) {
    static const struct {
        const char *title, *ascii;
        enum lab_align align;
    } kinds[COLUMN_COUNT] = {
        [NAME] = {"Run", "Run", LAB_ALIGN_LEFT},
        [DEVICE] = {"Device", "Device", LAB_ALIGN_LEFT},
        [NODE] = {"Node", "Node", LAB_ALIGN_RIGHT},
        [RUNS] = {"Runs", "Runs", LAB_ALIGN_RIGHT},
        [SPREAD] = {"±", "+-", LAB_ALIGN_RIGHT},
        [LATENCY] = {"p95 latency", "p95 latency", LAB_ALIGN_RIGHT},
        [REMARK] = {"Remark", "Remark", LAB_ALIGN_LEFT},
        [RATE] = {"", "", LAB_ALIGN_RIGHT},
    };
    struct lab_arena *arena = &sheet->digest->arena;
    struct lab_str cell;
    lab_str_init(&cell);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        struct column *column = &sheet->columns[c];
        snprintf(column->title, sizeof column->title, "%s",
                 sheet->style.unicode ? kinds[c].title : kinds[c].ascii);
        if (c == RATE)
            title_rate(sheet->digest, column->title, sizeof column->title);
        column->align = kinds[c].align;
        column->width = lab_str_columns(column->title);
        column->cells =
            lab_arena_alloc(arena, (size_t)sheet->choice.count + 1, sizeof *column->cells);
        bool empty = true;
        for (int i = 0; i < sheet->choice.count; i++) {
            lab_str_clear(&cell);
            add_cell(sheet, c, sheet->choice.rows[i], &cell);
            column->cells[i] = lab_arena_strdup(arena, cell.text);
            int width = lab_str_columns(cell.text);
            column->width = width > column->width ? width : column->width;
            empty &= !*cell.text || strcmp(cell.text, "–") == 0;
        }
        column->shown = !empty && (c != RUNS || sheet->digest->repeats);
    }
    lab_str_release(&cell);
}

static int width_of(const struct sheet *sheet) {
    int width = 0;
    for (int c = 0; c < COLUMN_COUNT; c++)
        width += sheet->columns[c].shown ? 2 + sheet->columns[c].width : 0;
    return width;
}

/* What a name says already goes before any name is cut. */
static void fit(struct sheet *sheet) {
    static const int given_up[] = {DEVICE, NODE, LATENCY};
    struct column *columns = sheet->columns, *name = &columns[NAME];
    if (width_of(sheet) > sheet->style.columns)
        columns[DEVICE].shown = columns[NODE].shown = false;
    for (size_t i = 0; i < sizeof given_up / sizeof *given_up; i++)
        if (width_of(sheet) > sheet->style.columns)
            columns[given_up[i]].shown = false;
    int over = width_of(sheet) - sheet->style.columns;
    if (over <= 0)
        return;
    name->width = name->width - over > NAME_LEAST ? name->width - over : NAME_LEAST;
    for (int i = 0; i < sheet->choice.count; i++)
        name->cells[i] = study_cut_name(name->cells[i], name->width, sheet->style.unicode,
                                        &sheet->digest->arena);
}

static void write_rows(const struct sheet *sheet, struct lab_str *out) {
    struct lab_table *table = lab_table_open();
    for (int c = 0; c < COLUMN_COUNT; c++)
        if (sheet->columns[c].shown)
            lab_table_column(table, sheet->columns[c].title, sheet->columns[c].align);
    for (int i = 0; i < sheet->choice.count; i++) {
        for (int c = 0; i > 0 && i == sheet->choice.split && c < COLUMN_COUNT; c++)
            if (sheet->columns[c].shown)
                lab_table_cell(table, "%s", c == NAME ? "…" : "");
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (sheet->columns[c].shown)
                lab_table_cell(table, "%s", sheet->columns[c].cells[i]);
    }
    lab_table_write(table, sheet->style, out);
    lab_table_close(table);
}

static void write_table(struct study_digest *digest, struct lab_style style, struct lab_str *out) {
    struct sheet sheet = {.digest = digest, .style = style, .choice = choose(digest)};
    struct choice *choice = &sheet.choice;
    if (choice->count == 0)
        return;
    fill(&sheet);
    fit(&sheet);
    lab_str_add(out, "\n");
    struct lab_str text;
    lab_str_init(&text);
    const char *word = digest->repeats ? "rows" : "runs";
    if (choice->split)
        lab_str_printf(&text,
                       "The %d fastest and the %d slowest of %d %s that have ended:", choice->split,
                       choice->count - choice->split, choice->of, word);
    else if (choice->count < choice->of)
        lab_str_printf(&text, "%d of %d %s that have ended:", choice->count, choice->of, word);
    if (text.length)
        study_write_text(text.text, style, out);
    write_rows(&sheet, out);

    lab_str_clear(&text);
    study_add_legend(choice->rows, choice->count, &text);
    if (text.length && sheet.columns[SPREAD].shown) {
        lab_str_add(out, "\n");
        study_write_text(text.text, style, out);
    }
    lab_str_release(&text);
}

/* --- what is wrong --- */

static void write_notes(const char *word, const char *colour, const struct study_notes *notes,
                        int of, struct lab_style style, struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    for (int i = 0; i < notes->count && i < NOTES_SHOWN; i++) {
        lab_str_clear(&text);
        study_add_who(&notes->items[i], of, &text);
        lab_str_printf(&text, ": %s", notes->items[i].text);
        study_write_sentence(word, colour, text.text, style, out);
    }
    if (notes->count > NOTES_SHOWN) {
        lab_str_clear(&text);
        lab_str_printf(&text, "%d more of other kinds in report/report.md",
                       notes->count - NOTES_SHOWN);
        study_write_sentence(word, colour, text.text, style, out);
    }
    lab_str_release(&text);
}

static void write_problems(const struct study_digest *digest, struct lab_style style,
                           struct lab_str *out) {
    int done = digest->state_counts[LAB_RUN_DONE];
    if (digest->failures.count || digest->problems.count || digest->warnings.count ||
        digest->concurrent || digest->nothing_valid)
        lab_str_add(out, "\n");
    if (digest->nothing_valid)
        study_write_sentence("Invalid", STUDY_RED, STUDY_NOTHING_VALID, style, out);
    study_write_failures(digest, style, out);
    write_notes("Invalid", STUDY_RED, &digest->problems, done, style, out);
    if (digest->concurrent) {
        struct lab_str text;
        lab_str_init(&text);
        lab_str_printf(&text, "%d run%s %s", digest->concurrent, study_plural(digest->concurrent),
                       STUDY_CONCURRENT);
        study_write_sentence("Warning", STUDY_YELLOW, text.text, style, out);
        lab_str_release(&text);
    }
    write_notes("Warning", STUDY_YELLOW, &digest->warnings, done, style, out);
}

/* --- where, and how to go on --- */

static void write_place(const struct study_digest *digest, struct lab_style style,
                        struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(out, "\n");
    study_add_when(digest, &text);
    const char *took = strstr(text.text, "took ");
    if (took)
        lab_text_keep(&text, (size_t)(took - text.text));
    if (text.length)
        study_write_line("Time", text.text, style, out);
    if (study->machine && *study->machine)
        study_write_line("Machine", study->machine, style, out);
    study_write_line("Folder", study->folder, style, out);
    lab_str_clear(&text);
    if (study->report)
        lab_str_add(&text, study->report);
    else
        lab_str_printf(&text, "%s/report/report.md", study->folder);
    if (!study->running) /* it is written at the end */
        study_write_line("Report", text.text, style, out);
    else if (study->holder && *study->holder)
        study_write_line("Running", study->holder, style, out);
    lab_str_clear(&text);
    study_add_next(digest, &text);
    if (text.length && study->command && *study->command) {
        study_write_whole("Go on", study->command, style, out);
        study_write_line("", text.text, style, out);
    }
    lab_str_release(&text);
}

void lab_report_study(const struct lab_study_info *study, struct lab_style style,
                      struct lab_str *out) {
    struct study_digest digest;
    study_digest_init(&digest, study);
    struct lab_str answer;
    lab_str_init(&answer);
    lab_str_printf(&answer, "%s%s: ", study->name, study->simulated ? " (simulated)" : "");
    study_add_answer(&digest, style.columns - 6, style.unicode, &answer);
    study_write_heading(answer.text, style, out);
    lab_str_release(&answer);
    write_table(&digest, style, out);
    study_write_metrics(study, style, out);
    write_problems(&digest, style, out);
    write_place(&digest, style, out);
    study_digest_release(&digest);
}
