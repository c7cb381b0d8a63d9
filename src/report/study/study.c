/*
 * study.c: a study's first report in a terminal: the answer, the runs, what is wrong with them,
 * where it all lies. It stays within two screens however many runs there are.
 */
#include "report/study/study_internal.h"

#include <math.h>
#include <string.h>

#define ROWS_ALL    24 /* a table of so many rows is shown whole */
#define ROWS_END    8  /* of a longer one: so many from either end */
#define NOTES_SHOWN 6

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

static const char *rate_title(const struct study_digest *digest, struct lab_arena *arena) {
    const char *unit = digest->range_count == 1 ? digest->ranges[0].unit : "";
    char *title = lab_arena_printf(arena, "%s%s", digest->study->simulated ? "simulated " : "",
                                   *unit ? unit : "rate");
    title[0] = (char)(title[0] - 'a' + 'A');
    return title;
}

static void add_row(struct lab_doc *doc, const struct study_digest *digest,
                    const struct study_row *row) {
    LAB_AUTO(str, devices);
    LAB_AUTO(str, nodes);
    LAB_AUTO(str, rate);
    LAB_AUTO(str, spread);
    LAB_AUTO(str, latency);
    LAB_AUTO(str, remark);
    bool is_time = strcmp(row->unit, STUDY_TIME) == 0;
    /* of what was done once the latency is the time again */
    double latency_s = is_time ? NAN : study_row_latency_s(row);
    study_add_places(row->run[0], &devices, &nodes);
    study_add_rate(&rate, row->rate, digest->range_count == 1 && !is_time ? "" : row->unit);
    study_add_spread(&spread, row->rate, row->low, row->high);
    if (!isnan(latency_s))
        lab_str_add_time(&latency, latency_s);
    study_add_remark(digest, row, &remark);
    lab_doc_cell(doc, "%s", row->name);
    lab_doc_cell(doc, "%s", devices.text);
    lab_doc_cell(doc, "%s", nodes.text);
    lab_doc_cell(doc, "%d", row->rate_count);
    lab_doc_cell(doc, "%s", rate.text);
    lab_doc_cell(doc, "%s", spread.text);
    lab_doc_cell(doc, "%s", latency.length ? latency.text : "–");
    lab_doc_cell(doc, "%s", remark.text);
}

/* What a name says already goes before any name is cut. */
static void add_rows(struct lab_doc *doc, const struct study_digest *digest,
                     const struct choice *choice) {
    static const struct lab_doc_column kinds[COLUMN_COUNT] = {
        [NAME] = {NULL, "Run", .align = LAB_ALIGN_NAME},
        [DEVICE] = {NULL, "Device", .optional = true, .yields = 2},
        [NODE] = {NULL, "Node", LAB_UNIT_FIGURE, .optional = true, .yields = 2},
        [RUNS] = {NULL, "Runs", LAB_UNIT_FIGURE},
        [RATE] = {NULL, NULL, LAB_UNIT_FIGURE, .optional = true},
        [SPREAD] = {NULL, "±", LAB_UNIT_FIGURE, .optional = true},
        [LATENCY] = {NULL, "p95 latency", LAB_UNIT_FIGURE, .optional = true, .yields = 1},
        [REMARK] = {NULL, "Remark", .optional = true},
    };
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_doc_column *columns = lab_arena_copy(arena, kinds, COLUMN_COUNT, sizeof *kinds);
    columns[RATE].title = rate_title(digest, arena);
    if (!digest->repeats)
        columns[RUNS].title = NULL;
    lab_doc_rows(doc, NULL, NULL, columns, COLUMN_COUNT);
    for (int i = 0; i < choice->count; i++) {
        for (int c = 0; i > 0 && i == choice->split && c < COLUMN_COUNT; c++)
            lab_doc_cell(doc, "%s", c == NAME ? "…" : "");
        add_row(doc, digest, choice->rows[i]);
    }
}

static bool has_spread(const struct choice *choice) {
    LAB_AUTO(str, text);
    for (int i = 0; i < choice->count; i++) {
        const struct study_row *row = choice->rows[i];
        lab_str_clear(&text);
        study_add_spread(&text, row->rate, row->low, row->high);
        if (strcmp(text.text, "–") != 0)
            return true;
    }
    return false;
}

static void add_table(struct lab_doc *doc, struct study_digest *digest) {
    struct choice choice = choose(digest);
    const char *word = digest->repeats ? "rows" : "runs";
    LAB_AUTO(str, legend);
    if (choice.count == 0)
        return;
    lab_doc_gap(doc);
    if (choice.split)
        lab_doc_text(doc, LAB_DOC_PLAIN,
                     "The %d fastest and the %d slowest of %d %s that have ended:", choice.split,
                     choice.count - choice.split, choice.of, word);
    else if (choice.count < choice.of)
        lab_doc_text(doc, LAB_DOC_PLAIN, "%d of %d %s that have ended:", choice.count, choice.of,
                     word);
    add_rows(doc, digest, &choice);
    study_add_legend(choice.rows, choice.count, &legend);
    lab_doc_gap(doc);
    if (has_spread(&choice))
        lab_doc_text(doc, LAB_DOC_PLAIN, "%s", legend.text);
}

/* --- what is wrong --- */

void study_add_failures(struct lab_doc *doc, const struct study_digest *digest) {
    const struct study_notes *failures = &digest->failures;
    int shown = failures->count < NOTES_SHOWN ? failures->count : NOTES_SHOWN, others = 0;
    for (int i = 0; i < shown; i++) {
        const struct study_note *note = &failures->items[i];
        LAB_AUTO(str, who);
        study_add_who(note, digest->study->run_count, &who);
        lab_doc_said(doc, "Failed:", LAB_DOC_ERROR, "%s: %s", who.text, note->text);
        const char *hint = study_hint(note, lab_doc_arena(doc));
        const char *next = i + 1 < shown ? study_hint(note + 1, lab_doc_arena(doc)) : NULL;
        /* where the next has it too, it follows once, below the last of them */
        if (hint && !lab_str_equal(hint, next))
            lab_doc_text(doc, LAB_DOC_HINT, "%s", hint);
    }
    for (int i = shown; i < failures->count; i++)
        others += failures->items[i].run_count;
    if (others)
        lab_doc_said(doc, "Failed:", LAB_DOC_ERROR,
                     "%d more run%s, for other reasons: report/report.md has them all", others,
                     study_plural(others));
}

static void add_notes(struct lab_doc *doc, const char *word, enum lab_doc_tone tone,
                      const struct study_notes *notes, int of) {
    for (int i = 0; i < notes->count && i < NOTES_SHOWN; i++) {
        LAB_AUTO(str, who);
        study_add_who(&notes->items[i], of, &who);
        lab_doc_said(doc, word, tone, "%s: %s", who.text, notes->items[i].text);
    }
    if (notes->count > NOTES_SHOWN)
        lab_doc_said(doc, word, tone, "%d more of other kinds in report/report.md",
                     notes->count - NOTES_SHOWN);
}

static void add_problems(struct lab_doc *doc, const struct study_digest *digest) {
    int done = digest->state_counts[LAB_RUN_DONE];
    lab_doc_gap(doc);
    if (digest->nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_ERROR, STUDY_NOTHING_VALID);
    study_add_failures(doc, digest);
    add_notes(doc, "Invalid:", LAB_DOC_ERROR, &digest->problems, done);
    if (digest->concurrent)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%d run%s %s", digest->concurrent,
                     study_plural(digest->concurrent), STUDY_CONCURRENT);
    add_notes(doc, "Warning:", LAB_DOC_WARNING, &digest->warnings, done);
}

/* --- where, and how to go on --- */

void study_add_command(struct lab_doc *doc, const struct study_digest *digest) {
    LAB_AUTO(str, next);
    study_add_next(digest, &next);
    if (!next.length || !digest->study->command || !*digest->study->command)
        return;
    lab_doc_line_whole(doc, "Go on", "%s", digest->study->command);
    lab_doc_line(doc, "", "%s", next.text);
}

static void add_place(struct lab_doc *doc, const struct study_digest *digest) {
    const struct lab_study_info *study = digest->study;
    LAB_AUTO(str, when);
    study_add_when(digest, &when);
    const char *took = strstr(when.text, "took ");
    if (took)
        lab_text_keep(&when, (size_t)(took - when.text));
    lab_doc_gap(doc);
    lab_doc_line(doc, "Time", "%s", when.text);
    lab_doc_line(doc, "Machine", "%s", study->machine ? study->machine : "");
    lab_doc_line(doc, "Folder", "%s", study->folder);
    if (study->running)
        lab_doc_line(doc, "Running", "%s", study->holder ? study->holder : "");
    else if (study->report) /* it is written at the end */
        lab_doc_line(doc, "Report", "%s", study->report);
    else
        lab_doc_line(doc, "Report", "%s/report/report.md", study->folder);
    study_add_command(doc, digest);
    LAB_AUTO(str, command);
    study_add_verdict_command(digest, &command);
    if (command.length) {
        lab_doc_line(doc, "Verdict", STUDY_NO_VERDICT "; 5 runs of each:");
        lab_doc_line_whole(doc, "", "%s", command.text);
    }
}

void lab_report_add_study(struct lab_doc *doc, const struct lab_study_info *study,
                          struct lab_style style) {
    struct study_digest digest;
    LAB_AUTO(str, answer);
    study_digest_init(&digest, study);
    study_add_answer(&digest, style.columns - 6, style.unicode, &answer);
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s%s: %s", study->name,
                 study->simulated ? " (simulated)" : "", answer.text);
    add_table(doc, &digest);
    study_add_last_metrics(doc, study);
    add_problems(doc, &digest);
    add_place(doc, &digest);
    study_digest_release(&digest);
}
