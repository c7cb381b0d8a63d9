/*
 * study_paper.c: a study in report/report.md: all that the terminal shows, and all of the runs, for
 * people who weren't there. The same records always give the same text.
 */
#include "report/study/study_internal.h"

#include "model/result.h"

#include <math.h>
#include <string.h>

#define DIGITS      4  /* of a rate: one more than is sure, so that intervals show */
#define NAMES_SHOWN 20 /* runs named for one note, and figures of one row */

static void begin(struct lab_doc *doc, const struct study_digest *digest, const char *title) {
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = title, .simulated = digest->study->simulated});
}

/* --- the table of runs --- */

static void add_figure(struct lab_str *out, double rate, const char *unit) {
    if (strcmp(unit, STUDY_TIME) == 0)
        study_add_rate(out, rate, unit);
    else
        study_add_figure(out, rate, DIGITS);
}

/* Of what was done once, the latency is the time again. */
static bool shows_latency(const struct study_digest *digest) {
    return digest->range_count != 1 || strcmp(digest->ranges[0].unit, STUDY_TIME) != 0;
}

static void add_interval(const struct study_row *row, struct lab_str *out) {
    if (isnan(row->low) || isnan(row->high)) {
        lab_str_add(out, "–");
        return;
    }
    bool time = strcmp(row->unit, STUDY_TIME) == 0;
    add_figure(out, time ? row->high : row->low, row->unit);
    lab_str_add(out, " to ");
    add_figure(out, time ? row->low : row->high, row->unit);
    if (row->rate_count > 1)
        lab_str_printf(out, ", %.0f %%", 100 * row->confidence);
}

static void add_each(const struct study_row *row, struct lab_str *out) {
    int shown = 0;
    for (int i = 0; i < row->run_count && shown < NAMES_SHOWN; i++) {
        if (!study_row_counts(row, row->run[i]))
            continue;
        lab_str_add(out, shown++ ? ", " : "");
        add_figure(out, row->run[i]->rate, row->unit);
    }
    lab_str_add(out, shown == 0 ? "–" : shown < row->rate_count ? ", …" : "");
}

static void add_state(const struct study_digest *digest, const struct study_row *row,
                      struct lab_str *out) {
    int done = row->state_counts[LAB_RUN_DONE];
    if (done == row->run_count)
        lab_str_add(out, "done");
    else if (done)
        lab_str_printf(out, "%d done", done);
    LAB_AUTO(str, remark);
    study_add_remark(digest, row, &remark);
    lab_str_printf(out, "%s%s", done && remark.length ? ", " : "", remark.text);
    double overlap = lab_run_result(row->run[0])->gang_overlap;
    if (row->run[0]->rank_count > 1 && row->rate_count && !isnan(overlap))
        lab_str_printf(out, "; ranks overlap %.0f %%", 100 * overlap);
}

static void add_row(struct lab_doc *doc, const struct study_digest *digest,
                    const struct study_row *row) {
    LAB_AUTO(str, devices);
    LAB_AUTO(str, nodes);
    LAB_AUTO(str, rate);
    LAB_AUTO(str, interval);
    LAB_AUTO(str, each);
    LAB_AUTO(str, state);
    study_add_places(row->run[0], &devices, &nodes);
    add_figure(&rate, row->rate, row->unit);
    if (digest->range_count != 1 && *row->unit && strcmp(row->unit, STUDY_TIME) != 0)
        lab_str_printf(&rate, " %s", row->unit);
    add_interval(row, &interval);
    add_each(row, &each);
    add_state(digest, row, &state);
    lab_doc_cell(doc, "%s", row->name);
    lab_doc_cell(doc, "%s", devices.text);
    lab_doc_cell(doc, "%s", nodes.text);
    lab_doc_cell(doc, "%s", rate.text);
    lab_doc_cell(doc, "%s", interval.text);
    lab_doc_cell(doc, "%s", each.text);
    lab_doc_figure(doc, study_row_latency_s(row));
    lab_doc_cell(doc, "%s", state.text);
}

static void add_meaning(struct lab_doc *doc, const struct study_digest *digest) {
    bool across = false, within = false;
    for (int i = 0; i < digest->row_count; i++) {
        across |= digest->rows[i].rate_count > 1;
        within |= digest->rows[i].rate_count == 1 && !isnan(digest->rows[i].low);
    }
    if (!across && !within)
        return;
    lab_doc_marked(
        doc, LAB_DOC_PLAIN, "%s%s%s",
        across ? "Rates are medians of the runs of a row. Intervals are those of the median "
                 "*across runs*, from order statistics, with the confidence that so many runs "
                 "reach; they speak about another run."
               : "Intervals are 95 % *within the run*: they say how well this run's rate is "
                 "known, not how far another run may be.",
        across && within ? " Where a row has one run, the interval is the one *within the run*."
                         : "",
        shows_latency(digest)
            ? " Latency is the time of one iteration from its first to its last stage; 95 % of "
              "them are shorter than p95."
            : "");
}

static void add_runs(struct lab_doc *doc, const struct study_digest *digest) {
    static const struct lab_doc_column kinds[] = {
        {NULL, "Run", .code = true},          {NULL, "Device"},
        {NULL, "Node", LAB_UNIT_FIGURE},      {NULL, "Rate", LAB_UNIT_FIGURE},
        {NULL, "Interval", LAB_UNIT_FIGURE},  {NULL, "Each run"},
        {NULL, "p95 latency", LAB_UNIT_TIME}, {NULL, "State"},
    };
    enum { COUNT = sizeof kinds / sizeof *kinds, RATE = 3, EACH = 5, LATENCY };
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_doc_column *columns = lab_arena_copy(arena, kinds, COUNT, sizeof *kinds);
    bool one_unit = digest->range_count == 1 && *digest->ranges[0].unit;
    bool simulated = digest->study->simulated;
    columns[RATE].title = lab_arena_printf(arena, "%s%s", simulated ? "Simulated " : "",
                                           !shows_latency(digest) ? "Time"
                                           : one_unit             ? digest->ranges[0].unit
                                           : simulated            ? "rate"
                                                                  : "Rate");
    if (!digest->repeats)
        columns[EACH].title = NULL;
    if (!shows_latency(digest))
        columns[LATENCY].title = NULL;
    begin(doc, digest, "Runs");
    lab_doc_rows(doc, NULL, NULL, columns, COUNT);
    for (int i = 0; i < digest->row_count; i++)
        add_row(doc, digest, &digest->rows[i]);
    add_meaning(doc, digest);
    lab_doc_end(doc);
}

/* --- what is wrong --- */

static const char *names_of(const struct study_note *note, int of, struct lab_arena *arena) {
    LAB_AUTO(str, names);
    if (note->run_count == of && of > NAMES_SHOWN)
        return lab_arena_printf(arena, "all %d runs", of);
    for (int i = 0; i < note->run_count && i < NAMES_SHOWN; i++) {
        lab_str_printf(&names, "%s%s", i ? ", " : "", lab_doc_as_code(note->run[i]->id, arena));
        if (note->run[i]->attempts > 1)
            lab_str_printf(&names, " (%d attempts)", note->run[i]->attempts);
    }
    if (note->run_count > NAMES_SHOWN)
        lab_str_printf(&names, " and %d more", note->run_count - NAMES_SHOWN);
    return lab_arena_strdup(arena, names.text);
}

/* A hint has code in it already. */
static const char *mark_hint(const char *hint, struct lab_arena *arena) {
    LAB_AUTO(str, marked);
    bool code = false;
    for (const char *c = hint ? hint : ""; *c; c++) {
        code ^= *c == '`';
        if (!code && (*c == '<' || *c == '[' || *c == ']'))
            lab_str_add(&marked, "\\");
        lab_str_add_bytes(&marked, c, 1);
    }
    return hint ? lab_arena_strdup(arena, marked.text) : NULL;
}

/* `more`: another one that several runs share; NULL = none. */
static void add_notes(struct lab_doc *doc, const struct study_digest *digest, const char *title,
                      const struct study_notes *notes, const char *more) {
    struct lab_arena *arena = lab_doc_arena(doc);
    bool failures = notes == &digest->failures;
    int of = failures ? digest->study->run_count : digest->state_counts[LAB_RUN_DONE];
    int count = notes->count;
    struct lab_doc_item *items = lab_arena_alloc(arena, (size_t)count + 1, sizeof *items);
    for (int i = 0; i < count; i++) {
        const struct study_note *note = &notes->items[i];
        bool alike = note->run_count == 1 || note->exact;
        items[i] = (struct lab_doc_item){
            .text = lab_arena_printf(arena, "%s%s", note->text,
                                     alike ? "" : " (the others with other figures)"),
            .who = names_of(note, of, arena),
            .hint = failures ? mark_hint(study_hint(note, arena), arena) : NULL};
    }
    if (more)
        items[count++].text = more;
    if (count == 0)
        return;
    begin(doc, digest, title);
    lab_doc_items(doc, items, count);
    lab_doc_end(doc);
}

/* --- how it was done --- */

void study_add_seed(struct lab_doc *doc, const struct lab_study_info *study) {
    if (study->seed_known)
        lab_doc_line(doc, "Seed", "%llu, of the order of the runs and of their data",
                     (unsigned long long)study->seed);
}

static void add_conditions(struct lab_doc *doc, const struct study_digest *digest) {
    const struct lab_study_info *study = digest->study;
    LAB_AUTO(str, begun);
    LAB_AUTO(str, when);
    lab_str_add_clock(&begun, study->created_wall_ns, LAB_STR_DATE);
    study_add_when(digest, &when);
    begin(doc, digest, "Conditions");
    lab_doc_lines_title(doc, "Condition");
    lab_doc_line(doc, "Study", "%s", study->option ? study->option : "");
    if (study->point_count > 0)
        lab_doc_line(doc, "Points", "%lld in %d run%s", (long long)study->point_count,
                     study->run_count, study_plural(study->run_count));
    lab_doc_line(doc, "Machine", "%s", study->machine ? study->machine : "");
    lab_doc_line(doc, "gpulab", "%s", study->version ? study->version : "");
    lab_doc_line(doc, "Begun", "%s", begun.text);
    lab_doc_line(doc, "Time", "%s", when.text);
    study_add_seed(doc, study);
    lab_doc_end(doc);
}

static void add_files(struct lab_doc *doc, const struct study_digest *digest) {
    static const struct {
        const char *name, *what;
    } files[] = {
        {"config.yaml", "the study as it was composed"},
        {"overrides.yaml", "what the command line added to it"},
        {"machine.json", "where it ran: nodes, cores, memory, devices"},
        {"study.db", "all of it, every iteration's times among them: one SQLite file"},
        {"results.json", "each run with its figures, for programs"},
        {"experiment_summary.json", "the study in a few figures, for programs"},
        {"logs/", "what each run printed"},
    };
    static const struct lab_doc_column columns[] = {{NULL, "File", .marked = true},
                                                    {NULL, "Content"}};
    begin(doc, digest, "Files");
    lab_doc_marked(doc, LAB_DOC_PLAIN,
                   "In %s:", lab_doc_as_code(digest->study->folder, lab_doc_arena(doc)));
    lab_doc_rows(doc, NULL, NULL, columns, 2);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        lab_doc_cell(doc, "[%s](../%s)", files[i].name, files[i].name);
        lab_doc_cell(doc, "%s", files[i].what);
    }
    lab_doc_end(doc);
}

static void add_next(struct lab_doc *doc, const struct study_digest *digest) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_study_info *study = digest->study;
    LAB_AUTO(str, next);
    study_add_next(digest, &next);
    begin(doc, digest, "How to go on");
    if (next.length && study->command && *study->command) {
        lab_doc_text(doc, LAB_DOC_PLAIN, "This %s:", next.text);
        lab_doc_code(doc, NULL, study->command);
    }
    LAB_AUTO(str, command);
    study_add_verdict_command(digest, &command);
    if (command.length) {
        lab_doc_text(doc, LAB_DOC_PLAIN, STUDY_NO_VERDICT ". 5 runs of each:");
        lab_doc_code(doc, NULL, command.text);
    }
    if (study->running) {
        bool held = study->holder && *study->holder;
        lab_doc_marked(doc, LAB_DOC_PLAIN,
                       "It is running%s%s. `gpulab status --follow` shows where it stands.",
                       held ? ": " : "", held ? lab_doc_escape(study->holder, arena) : "");
    }
    lab_doc_text(doc, LAB_DOC_PLAIN, "All figures, here and for other programs:");
    lab_doc_code(doc, NULL,
                 lab_arena_printf(arena, "gpulab show %s\ngpulab export %s --format csv",
                                  study->folder, study->folder));
    lab_doc_end(doc);
}

void study_add_paper(struct lab_doc *doc, const struct study_digest *digest) {
    const char *concurrent = NULL;
    if (digest->concurrent)
        concurrent = lab_arena_printf(lab_doc_arena(doc), "%d run%s %s", digest->concurrent,
                                      study_plural(digest->concurrent), STUDY_CONCURRENT);
    if (digest->nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_NOTE, STUDY_NOTHING_VALID ".");
    add_runs(doc, digest);
    if (digest->study->metric_count) {
        begin(doc, digest, "Metrics");
        study_add_metrics(doc, digest->study);
        lab_doc_end(doc);
    }
    add_notes(doc, digest, "Failures", &digest->failures, NULL);
    add_notes(doc, digest, "Invalid runs", &digest->problems, NULL);
    add_notes(doc, digest, "Warnings", &digest->warnings, concurrent);
    add_conditions(doc, digest);
    add_files(doc, digest);
    add_next(doc, digest);
}

void lab_report_study_markdown(const struct lab_study_info *study, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, answer);
    struct study_digest digest;
    struct lab_doc *doc = lab_doc_open(study->name, &arena);
    study_digest_init(&digest, study);
    study_add_answer(&digest, INT32_MAX, true, &answer);
    lab_doc_set_simulated(doc, study->simulated);
    lab_doc_text(doc, LAB_DOC_PLAIN, "%s", answer.text);
    study_add_paper(doc, &digest);
    lab_doc_write(doc, "markdown", (struct lab_style){0}, out);
    study_digest_release(&digest);
}
