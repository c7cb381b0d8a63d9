/* page_study.c: how a study was measured, and all of its runs, on the page. */
#include "report/page_internal.h"

#include "model/result.h"

#include <math.h>
#include <string.h>

#define RUNS_MOST  5000
#define NAMES_MOST 12

/* --- how --- */

static void add_validity(const struct study_digest *digest, struct lab_str *out) {
    int done = digest->state_counts[LAB_RUN_DONE], failed = digest->state_counts[LAB_RUN_FAILED];
    lab_str_printf(out, "%d of %d runs are done", done, digest->study->run_count);
    if (failed)
        lab_str_printf(out, ", %d failed", failed);
    if (digest->invalid)
        lab_str_printf(out, "; %d of those that are done %s not valid", digest->invalid,
                       digest->invalid == 1 ? "is" : "are");
    else if (done)
        lab_str_add(out, "; all of those are valid");
}

static void add_repeats(const struct study_digest *digest, struct lab_str *out) {
    int least = INT32_MAX, most = 0;
    for (int i = 0; i < digest->row_count; i++) {
        int count = digest->rows[i].run_count;
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    if (most <= 1)
        lab_str_add(out, STUDY_NO_VERDICT "; intervals are within the run");
    else if (least == most)
        lab_str_printf(out, "each point ran %d times; intervals are across runs", most);
    else
        lab_str_printf(out, "each point ran %d to %d times", least, most);
}

static void add_conditions(struct lab_doc *doc, const struct lab_page *page,
                           const struct study_digest *digest) {
    const struct lab_study_info *study = digest->study;
    bool random = lab_str_equal(page->order, "random");
    LAB_AUTO(str, validity);
    LAB_AUTO(str, repeats);
    LAB_AUTO(str, when);
    add_validity(digest, &validity);
    add_repeats(digest, &repeats);
    study_add_when(digest, &when);
    lab_doc_line(doc, "Study", "%s", study->option ? study->option : "");
    lab_doc_line(doc, "Command", "%s", study->command ? study->command : "");
    lab_doc_line(doc, "Machine", "%s", study->machine ? study->machine : "");
    lab_doc_line(doc, "Runs", "%s", validity.text);
    lab_doc_line(doc, "Repeats", "%s", repeats.text);
    if (page->order)
        lab_doc_line(doc, "Order", "%s%s", page->order, random ? ", from the seed" : "");
    study_add_seed(doc, study);
    lab_doc_line(doc, "Time", "%s", when.text);
    lab_doc_line(doc, "gpulab", "%s", study->version ? study->version : "");
    lab_doc_line(doc, "Folder", "%s", study->folder ? study->folder : "");
}

static const char *names_of(const struct study_note *note, int of, struct lab_arena *arena) {
    LAB_AUTO(str, names);
    if (note->run_count == of && of > NAMES_MOST)
        return lab_arena_printf(arena, "all %d runs", of);
    for (int i = 0; i < note->run_count && i < NAMES_MOST; i++)
        lab_str_printf(&names, "%s%s", i ? ", " : "", lab_doc_as_code(note->run[i]->id, arena));
    if (note->run_count > NAMES_MOST)
        lab_str_printf(&names, " and %d more", note->run_count - NAMES_MOST);
    return lab_arena_strdup(arena, names.text);
}

static void add_notes(struct lab_doc *doc, const struct study_digest *digest, const char *title,
                      const struct study_notes *notes) {
    struct lab_arena *arena = lab_doc_arena(doc);
    if (notes->count == 0)
        return;
    bool failures = notes == &digest->failures;
    int of = failures ? digest->study->run_count : digest->state_counts[LAB_RUN_DONE];
    struct lab_doc_item *items = lab_arena_alloc(arena, (size_t)notes->count, sizeof *items);
    for (int i = 0; i < notes->count; i++)
        items[i] =
            (struct lab_doc_item){.text = lab_arena_strdup(arena, notes->items[i].text),
                                  .who = names_of(&notes->items[i], of, arena),
                                  .hint = failures ? study_hint(&notes->items[i], arena) : NULL};
    lab_doc_begin(doc,
                  (struct lab_doc_section){.title = title, .simulated = digest->study->simulated});
    lab_doc_items(doc, items, notes->count);
    lab_doc_end(doc);
}

void page_add_method(struct lab_doc *doc, const struct lab_page *page,
                     const struct study_digest *digest) {
    lab_doc_begin(doc, (struct lab_doc_section){.title = "How it was measured",
                                                .id = "measured",
                                                .unlisted = !page->study,
                                                .simulated = page->simulated});
    if (digest) {
        add_conditions(doc, page, digest);
        add_notes(doc, digest, "Failures", &digest->failures);
        add_notes(doc, digest, "Invalid runs", &digest->problems);
        add_notes(doc, digest, "Warnings", &digest->warnings);
        if (digest->concurrent)
            lab_doc_text(doc, LAB_DOC_NOTE, "%d run%s %s.", digest->concurrent,
                         study_plural(digest->concurrent), STUDY_CONCURRENT);
        if (page->config)
            lab_doc_code(doc, "The study's configuration, as it ran", page->config);
    } else {
        lab_doc_marked(doc, LAB_DOC_PLAIN,
                       "From the samples in %s. Means, deviations and peaks are over the readings "
                       "that are there; gaps are never filled, and are told with each part.",
                       lab_doc_as_code(page->source, lab_doc_arena(doc)));
    }
    lab_doc_end(doc);
}

/* --- runs --- */

static void add_run(struct lab_doc *doc, const struct lab_run *run) {
    LAB_AUTO(str, devices);
    LAB_AUTO(str, nodes);
    LAB_AUTO(str, rate);
    LAB_AUTO(str, took);
    bool done = run->state == LAB_RUN_DONE;
    study_add_places(run, &devices, &nodes);
    if (done && !isnan(run->rate))
        lab_report_rate(run, &rate);
    if (run->end_ns > run->start_ns)
        lab_str_add_duration(&took, (double)(run->end_ns - run->start_ns) * 1e-9,
                             LAB_DURATION_ROUNDED);
    lab_doc_cell(doc, "%s", run->id);
    lab_doc_cell(doc, "%s", devices.text);
    lab_doc_cell(doc, "%s", nodes.text);
    lab_doc_cell(doc, "%s", rate.length ? rate.text : "–");
    lab_doc_figure(doc, 1e-3 * lab_run_result(run)->latency_ms_p95);
    lab_doc_cell(doc, "%s", took.length ? took.text : "–");
    lab_doc_cell(doc, "%s%s%s", lab_run_state_name(run->state),
                 done && !run->valid ? ", invalid" : "", run->concurrent ? ", concurrent" : "");
}

static void add_metrics(struct lab_doc *doc, const struct lab_study_info *study) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Run", .code = true}, {NULL, "Metric"}, {NULL, "Last value", LAB_UNIT_FIGURE}};
    if (study->metric_count == 0)
        return;
    lab_doc_begin(doc, (struct lab_doc_section){.title = "What the programs reported",
                                                .simulated = study->simulated});
    lab_doc_rows(doc, NULL, NULL, columns, 3)->elsewhere = "";
    for (int i = 0; i < study->metric_count; i++) {
        const struct lab_study_info_metric *metric = &study->metrics[i];
        lab_doc_cell(doc, "%s", metric->run);
        lab_doc_cell(doc, "%s", metric->name);
        lab_doc_cell(doc, "%.6g %s", metric->value, metric->unit ? metric->unit : "");
    }
    lab_doc_end(doc);
}

void page_add_runs(struct lab_doc *doc, const struct lab_page *page,
                   const struct study_digest *digest) {
    static const struct lab_doc_column kinds[] = {
        {NULL, "Run", .code = true},
        {NULL, "Device"},
        {NULL, "Node", LAB_UNIT_FIGURE},
        {NULL, "Rate", LAB_UNIT_FIGURE},
        {NULL, "p95 latency", LAB_UNIT_TIME},
        {NULL, "Took", LAB_UNIT_FIGURE},
        {NULL, "State"},
    };
    enum { COUNT = sizeof kinds / sizeof *kinds, RATE = 3 };
    const struct lab_study_info *study = digest->study;
    struct lab_doc_column *columns =
        lab_arena_copy(lab_doc_arena(doc), kinds, COUNT, sizeof *kinds);
    if (study->simulated)
        columns[RATE].title = "Simulated rate";
    lab_doc_begin(doc, (struct lab_doc_section){.title = "All runs",
                                                .id = "runs",
                                                .simulated = page->simulated,
                                                .reserve = PAGE_FOR_METHOD});
    struct lab_doc_table *table = lab_doc_rows(doc, NULL, NULL, columns, COUNT);
    table->row_total = study->run_count;
    table->elsewhere = "are in results.json";
    for (int i = 0; i < study->run_count && i < RUNS_MOST; i++)
        add_run(doc, &study->runs[i]);
    add_metrics(doc, study);
    lab_doc_marked(doc, LAB_DOC_FAINT,
                   "All of it for programs: [results.json](../results.json), "
                   "[study.db](../study.db) (SQLite), [config.yaml](../config.yaml), "
                   "[machine.json](../machine.json); in words: [report.md](report.md), "
                   "[best_practices.md](best_practices.md).");
    lab_doc_end(doc);
}
