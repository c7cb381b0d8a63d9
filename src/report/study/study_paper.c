/*
 * study_paper.c: a study in report/report.md: all that the terminal shows, and all of the runs, for
 * people who weren't there. The same records always give the same text.
 */
#include "report/study/study_internal.h"

#include "model/result.h"
#include "report/study/study_axes.h"

#include <math.h>
#include <string.h>

#define DIGITS      4  /* of a rate: one more than is sure, so that intervals show */
#define FARTHEST    10 /* ends of an interval over runs, of which one is so many times the other */
#define NAMES_SHOWN 3  /* runs named for one note */
#define NOTES_SHOWN 12 /* of a kind */
#define ROWS_SHOWN  40

static void begin(struct lab_doc *doc, const struct study_digest *digest, const char *title) {
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = title, .simulated = digest->study->simulated});
}

static struct study_axes make_axes(const struct study_digest *digest, struct lab_arena *arena) {
    size_t count = (size_t)digest->row_count;
    const struct lab_run **first = lab_arena_alloc(arena, count + 1, sizeof *first);
    for (size_t i = 0; i < count; i++)
        first[i] = digest->rows[i].run[0];
    return study_axes_make(first, digest->row_count, arena);
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
    if (row->rate_count > 1 && row->high > FARTHEST * row->low) {
        lab_str_printf(out, "wider than %d×", FARTHEST);
        return;
    }
    bool time = strcmp(row->unit, STUDY_TIME) == 0;
    add_figure(out, time ? row->high : row->low, row->unit);
    lab_str_add(out, " to ");
    add_figure(out, time ? row->low : row->high, row->unit);
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
    double least = NAN, most = NAN; /* fmin and fmax pass NaN over */
    for (int i = 0; i < row->run_count; i++) {
        least = fmin(least, lab_run_result(row->run[i])->gang_overlap);
        most = fmax(most, lab_run_result(row->run[i])->gang_overlap);
    }
    if (row->run[0]->rank_count > 1 && row->rate_count && !isnan(least)) {
        lab_str_printf(out, "; ranks overlap %.0f", 100 * least);
        if (round(100 * most) > round(100 * least))
            lab_str_printf(out, " to %.0f", 100 * most);
        lab_str_add(out, "%");
    }
}

static void add_row(struct lab_doc *doc, const struct study_digest *digest,
                    const struct study_axes *axes, int index) {
    const struct study_row *row = &digest->rows[index];
    LAB_AUTO(str, rate);
    LAB_AUTO(str, interval);
    LAB_AUTO(str, state);
    add_figure(&rate, row->rate, row->unit);
    if (digest->range_count != 1 && *row->unit && strcmp(row->unit, STUDY_TIME) != 0)
        lab_str_printf(&rate, " %s", row->unit);
    add_interval(row, &interval);
    add_state(digest, row, &state);
    for (int a = 0; a < axes->count; a++)
        lab_doc_cell(doc, "%s", axes->items[a].values[index]);
    if (axes->count == 0)
        lab_doc_cell(doc, "%s", row->run[0]->label ? row->run[0]->label : row->name);
    lab_doc_figure(doc, row->rate_count);
    lab_doc_cell(doc, "%s", rate.text);
    lab_doc_cell(doc, "%s", interval.text);
    lab_doc_figure(doc, study_row_latency_s(row));
    lab_doc_cell(doc, "%s", state.text);
}

static void add_meaning(struct lab_doc *doc, const struct study_digest *digest, bool latency) {
    bool across = false, within = false;
    for (int i = 0; i < digest->row_count; i++) {
        across |= digest->rows[i].rate_count > 1;
        within |= digest->rows[i].rate_count == 1 && !isnan(digest->rows[i].low);
    }
    if (!across && !within)
        return;
    lab_doc_marked(
        doc, LAB_DOC_FAINT, "%s%s%s",
        across ? "Values are means over the runs of a point. Intervals are 95%, across runs."
               : "Intervals are 95%, within the run: they don't cover other runs.",
        across && within ? " A point with one run has the interval within that run." : "",
        latency && shows_latency(digest) && strcmp(study_latency_title(digest), "Time") != 0
            ? " Latency: one iteration, first to last stage, with its waits where iterations "
              "overlap; 95% are below p95."
            : "");
}

/* Columns of what varies, then of what came out. */
static struct lab_doc_column *make_columns(const struct study_digest *digest,
                                           const struct study_axes *axes, bool brief,
                                           struct lab_arena *arena, int *ret_count) {
    static const struct lab_doc_column values[] = {
        {NULL, "Runs", LAB_UNIT_COUNT},
        {NULL, "Rate", LAB_UNIT_FIGURE},
        {NULL, "Interval", LAB_UNIT_FIGURE},
        {NULL, "p95 latency", LAB_UNIT_TIME},
        {NULL, "State"},
    };
    enum { RUNS, RATE, INTERVAL, LATENCY, STATE, COUNT };
    int before = axes->count ? axes->count : 1;
    struct lab_doc_column *columns =
        lab_arena_alloc(arena, (size_t)before + COUNT, sizeof *columns);
    columns[0].title = "Point";
    for (int a = 0; a < axes->count; a++)
        columns[a].title = axes->items[a].title;
    memcpy(columns + before, values, sizeof values);
    columns[before + RATE].title =
        lab_arena_printf(arena, "%s%s", study_rate_title(digest), digest->repeats ? ", mean" : "");
    if (!digest->repeats)
        columns[before + INTERVAL].title = "Within the run";
    columns[before + LATENCY].title =
        shows_latency(digest) && !brief ? study_latency_title(digest) : NULL;
    if (brief)
        columns[before + RUNS].title = columns[before + STATE].title = NULL;
    *ret_count = before + COUNT;
    return columns;
}

void study_add_points(struct lab_doc *doc, const struct study_digest *digest, int most,
                      const char *elsewhere) {
    struct lab_arena *arena = lab_doc_arena(doc);
    int shown = digest->row_count < most ? digest->row_count : most, column_count;
    struct study_axes axes = make_axes(digest, arena);
    struct lab_doc_column *columns = make_columns(digest, &axes, !elsewhere, arena, &column_count);
    struct lab_doc_table *table = lab_doc_rows(doc, NULL, NULL, columns, column_count);
    table->row_total = digest->row_count;
    table->elsewhere = elsewhere;
    for (int i = 0; i < shown; i++)
        add_row(doc, digest, &axes, i);
    if (shown < digest->row_count) {
        lab_doc_only(doc, LAB_DOC_PAPER);
        lab_doc_text(doc, LAB_DOC_PLAIN, "%d more %s.", digest->row_count - shown, elsewhere);
        lab_doc_only(doc, LAB_DOC_ALL);
    }
    add_meaning(doc, digest, elsewhere != NULL);
}

/* --- what is wrong --- */

/* By what varies: "GPU 0, NUMA node 2, vit32x6x512". */
static void add_name(const struct study_digest *digest, const struct study_axes *axes,
                     const struct lab_run *run, struct lab_str *out) {
    for (int i = 0; i < digest->row_count && axes->count > 0; i++)
        for (int k = 0; k < digest->rows[i].run_count; k++)
            if (digest->rows[i].run[k] == run) {
                study_axes_add_name(axes, i, out);
                if (digest->rows[i].run_count > 1)
                    lab_str_printf(out, ", run %d", run->repeat + 1);
                return;
            }
    lab_str_add(out, run->id);
}

static const char *names_of(const struct study_digest *digest, const struct study_axes *axes,
                            const struct study_note *note, int of, struct lab_arena *arena) {
    LAB_AUTO(str, names);
    if (note->run_count == of && of > NAMES_SHOWN)
        return lab_arena_printf(arena, "all %d runs", of);
    for (int i = 0; i < note->run_count && i < NAMES_SHOWN; i++) {
        LAB_AUTO(str, name);
        add_name(digest, axes, note->run[i], &name);
        lab_str_printf(&names, "%s%s", i ? "; " : "", lab_doc_escape(name.text, arena));
        if (note->run[i]->attempts > 1)
            lab_str_printf(&names, " (%d attempts)", note->run[i]->attempts);
    }
    if (note->run_count > NAMES_SHOWN)
        lab_str_printf(&names, "; %d more", note->run_count - NAMES_SHOWN);
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

#define LONGEST "the longest "

/* Warnings are of a share of times: a single longer one may be in a run without a warning.
 * ". Longest of all runs: 7.55 × its median (GPU 0, run 5)"; of several ranks it is the slowest
 * one's, as all of a result. "" = it is the one that is named. */
static const char *longest_words(const struct study_digest *digest, const struct study_axes *axes,
                                 const struct study_note *note, struct lab_arena *arena) {
    const char *said = strstr(note->most, LONGEST);
    const struct lab_run *longest = NULL;
    double most = 0;
    bool ranks = false;
    for (int i = 0; i < digest->study->run_count; i++) {
        const struct lab_run *run = &digest->study->runs[i];
        const struct lab_result *result = lab_run_result(run);
        double ratio = result->interval_ms_max / result->interval_ms_median;
        ratio = isnan(ratio) ? result->latency_ms_max / result->latency_ms_median : ratio;
        ranks |= run->rank_count > 1;
        if (run->state == LAB_RUN_DONE && ratio > most) {
            most = ratio;
            longest = run;
        }
    }
    if (!said || !longest || most < strtod(said + strlen(LONGEST), NULL) + 0.1)
        return "";
    LAB_AUTO(str, name);
    add_name(digest, axes, longest, &name);
    return lab_arena_printf(arena, ". Longest of all runs%s: %.3g × its median (%s)",
                            ranks ? ", of each its slowest rank" : "", most,
                            lab_doc_escape(name.text, arena));
}

/* `more`: another one that several runs share; NULL = none. `longest`: with the longest time. */
static void add_notes(struct lab_doc *doc, const struct study_digest *digest, const char *title,
                      const struct study_notes *notes, const char *more, bool longest) {
    struct lab_arena *arena = lab_doc_arena(doc);
    bool failures = notes == &digest->failures;
    struct study_axes axes = notes->count ? make_axes(digest, arena) : (struct study_axes){0};
    int of = failures ? digest->study->run_count : digest->state_counts[LAB_RUN_DONE];
    int count = notes->count < NOTES_SHOWN ? notes->count : NOTES_SHOWN;
    struct lab_doc_item *items = lab_arena_alloc(arena, (size_t)count + 2, sizeof *items);
    for (int i = 0; i < count; i++) {
        const struct study_note *note = &notes->items[i];
        const char *share;
        bool alike = note->run_count == 1 || note->exact;
        study_share_of(note->most, &share);
        items[i] = (struct lab_doc_item){
            .text =
                lab_arena_printf(arena, "%s%s%s", note->most,
                                 alike                                    ? ""
                                 : note->kind == LAB_RUN_WARNING_OUTLIERS ? " (the run with most)"
                                 : share                                  ? " (the largest value)"
                                         : " (other runs: other values)",
                                 longest && note->kind == LAB_RUN_WARNING_OUTLIERS
                                     ? longest_words(digest, &axes, note, arena)
                                     : ""),
            .who = names_of(digest, &axes, note, of, arena),
            .hint = failures ? mark_hint(study_hint(note, arena), arena) : NULL};
    }
    if (count < notes->count)
        items[count++].text =
            lab_arena_printf(arena, "%d more kind%s: gpulab show", notes->count - NOTES_SHOWN,
                             study_plural(notes->count - NOTES_SHOWN));
    if (more)
        items[count++].text = more;
    if (count == 0)
        return;
    begin(doc, digest, title);
    lab_doc_items(doc, items, count);
    lab_doc_end(doc);
}

/* --- how it was done --- */

void study_add_conditions(struct lab_doc *doc, const struct study_digest *digest,
                          const char *order) {
    const struct lab_study_info *study = digest->study;
    LAB_AUTO(str, when);
    LAB_AUTO(str, points);
    LAB_AUTO(str, shared);
    LAB_AUTO(str, measured);
    study_add_when(digest, &when);
    study_add_points_counted(digest, &points);
    study_add_shared(digest, &shared);
    study_add_measured(digest, &measured);
    lab_doc_lines_title(doc, "Condition");
    lab_doc_line(doc, "Study", "%s", lab_study_info_title(study));
    lab_doc_line(doc, "Command", "%s", study->command ? study->command : "");
    lab_doc_line(doc, "Points", "%s", points.text);
    lab_doc_line(doc, "All points", "%s", shared.text);
    lab_doc_line(doc, "Machine", "%s", study->machine ? study->machine : "");
    lab_doc_line(doc, "Measured", "%s", measured.text);
    lab_doc_line(doc, "Time", "%s", when.text);
    if (order)
        lab_doc_line(doc, "Order", "%s%s", order,
                     lab_str_equal(order, "random") ? ", in blocks, from the seed" : "");
    if (study->seed_known)
        lab_doc_line(doc, "Seed", "%llu", (unsigned long long)study->seed);
    lab_doc_line(doc, "gpulab", "%s", study->version ? study->version : "");
    lab_doc_line(doc, "Folder", "%s", study->folder ? study->folder : "");
}

/* What goes on with it, and what runs each point often enough for a verdict. */
static void add_next_steps(struct lab_doc *doc, const struct study_digest *digest) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_study_info *study = digest->study;
    LAB_AUTO(str, next);
    study_add_next(digest, &next);
    begin(doc, digest, "Next");
    if (next.length && study->command && *study->command) {
        lab_doc_text(doc, LAB_DOC_PLAIN, "This %s:", next.text);
        lab_doc_code(doc, NULL, study_resume_command(study, arena));
    }
    LAB_AUTO(str, command);
    study_add_verdict_command(digest, NULL, &command);
    if (command.length) {
        lab_doc_text(doc, LAB_DOC_PLAIN, "For a verdict, 5 runs per point%s:",
                     study_lacks_seed(study) ? STUDY_SEED : "");
        lab_doc_code(doc, NULL, command.text);
    }
    if (study->running) {
        bool held = study->holder && *study->holder;
        lab_doc_marked(doc, LAB_DOC_PLAIN,
                       "It is running%s%s. `gpulab status --follow` shows its progress.",
                       held ? ": " : "", held ? lab_doc_escape(study->holder, arena) : "");
    }
    lab_doc_text(doc, LAB_DOC_PLAIN, "All values, here and for other programs:");
    lab_doc_code(doc, NULL,
                 lab_arena_printf(arena, "gpulab show %s\ngpulab export %s --format csv",
                                  study_path(study), study_path(study)));
    lab_doc_end(doc);
}

void study_add_problems(struct lab_doc *doc, const struct study_digest *digest, bool longest) {
    const char *concurrent = NULL;
    if (digest->concurrent)
        concurrent = lab_arena_printf(lab_doc_arena(doc), "%d run%s %s", digest->concurrent,
                                      study_plural(digest->concurrent), STUDY_CONCURRENT);
    add_notes(doc, digest, "Failures", &digest->failures, NULL, false);
    add_notes(doc, digest, "Invalid runs", &digest->problems, NULL, false);
    add_notes(doc, digest, "Warnings", &digest->warnings, concurrent, longest);
}

void lab_report_study_markdown(const struct lab_study_info *study, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, answer);
    struct study_digest digest;
    struct lab_doc *doc = lab_doc_open(lab_study_info_title(study), &arena);
    study_digest_init(&digest, study);
    study_add_answer(&digest, INT32_MAX, true, &answer);
    lab_doc_set_simulated(doc, study->simulated);
    lab_doc_text(doc, LAB_DOC_PLAIN, "%s", answer.text);
    if (digest.nothing_valid)
        lab_doc_said(doc, "Invalid:", LAB_DOC_NOTE, STUDY_NOTHING_VALID ".");
    begin(doc, &digest, "Points");
    study_add_points(doc, &digest, ROWS_SHOWN, "in ../results.json");
    lab_doc_end(doc);
    study_add_problems(doc, &digest, true);
    begin(doc, &digest, "Conditions");
    study_add_conditions(doc, &digest, NULL);
    lab_doc_end(doc);
    add_next_steps(doc, &digest);
    lab_doc_write(doc, "markdown", (struct lab_style){0}, out);
    study_digest_release(&digest);
}
