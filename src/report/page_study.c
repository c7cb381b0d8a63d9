/* page_study.c: how a study was measured, and all of its runs, on the page. */
#include "report/page_internal.h"

#include <math.h>
#include <string.h>

#define RUNS_MOST  5000
#define NAMES_MOST 12

/* --- how --- */

static void add_row(struct lab_str *out, const char *name, const char *text) {
    if (!text || !*text)
        return;
    lab_str_printf(out, "<tr><th>%s</th><td class=\"free\">", name);
    page_add_text(out, text);
    lab_str_add(out, "</td></tr>\n");
}

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
        lab_str_add(out, "each point ran once: intervals are those within the run, and say nothing "
                         "of another run; repeat=5 tells that");
    else if (least == most)
        lab_str_printf(out, "each point ran %d times; intervals are across runs", most);
    else
        lab_str_printf(out, "each point ran %d to %d times", least, most);
}

static void add_conditions(const struct lab_page *page, const struct study_digest *digest,
                           struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(out, "<div class=\"wide\"><table>\n");
    add_row(out, "Study", study->option);
    add_row(out, "Command", study->command);
    add_row(out, "Machine", study->machine);
    add_validity(digest, &text);
    add_row(out, "Runs", text.text);
    lab_str_clear(&text);
    add_repeats(digest, &text);
    add_row(out, "Repeats", text.text);
    lab_str_clear(&text);
    if (page->order)
        lab_str_printf(&text, "%s%s", page->order,
                       strcmp(page->order, "random") == 0 ? ", from the seed" : "");
    add_row(out, "Order", text.text);
    lab_str_clear(&text);
    if (study->seed_known)
        lab_str_printf(&text, "%llu, of the order of the runs and of their data",
                       (unsigned long long)study->seed);
    add_row(out, "Seed", text.text);
    lab_str_clear(&text);
    study_add_when(digest, &text);
    add_row(out, "Time", text.text);
    add_row(out, "gpulab", study->version);
    add_row(out, "Folder", study->folder);
    lab_str_add(out, "</table></div>\n");
    lab_str_release(&text);
}

/* --- what is wrong --- */

static void add_who(const struct study_note *note, int of, struct lab_str *out) {
    if (note->run_count == of && of > NAMES_MOST) {
        lab_str_printf(out, "all %d runs", of);
        return;
    }
    for (int i = 0; i < note->run_count && i < NAMES_MOST; i++) {
        lab_str_add(out, i ? ", <code>" : "<code>");
        page_add_text(out, note->run[i]->id);
        lab_str_add(out, "</code>");
    }
    if (note->run_count > NAMES_MOST)
        lab_str_printf(out, " and %d more", note->run_count - NAMES_MOST);
}

static void add_notes(const struct study_digest *digest, const char *title,
                      const struct study_notes *notes, struct lab_str *out) {
    if (notes->count == 0)
        return;
    bool failures = notes == &digest->failures;
    int of = failures ? digest->study->run_count : digest->state_counts[LAB_RUN_DONE];
    page_add_heading(out, 3, NULL, title, digest->study->simulated);
    lab_str_add(out, "<ul>\n");
    struct lab_str hint;
    lab_str_init(&hint);
    for (int i = 0; i < notes->count; i++) {
        lab_str_add(out, "<li>");
        page_add_text(out, notes->items[i].text);
        lab_str_add(out, "<br><span class=\"faint\">");
        add_who(&notes->items[i], of, out);
        lab_str_add(out, "</span>");
        lab_str_clear(&hint);
        if (failures && study_add_hint(&notes->items[i], &hint)) {
            lab_str_add(out, "<br>");
            page_add_text(out, hint.text);
        }
        lab_str_add(out, "</li>\n");
    }
    lab_str_release(&hint);
    lab_str_add(out, "</ul>\n");
}

static void add_method_of_recordings(const struct lab_page *page, struct lab_str *out) {
    lab_str_add(out, "<p>From the samples in <code>");
    page_add_text(out, page->source);
    lab_str_add(out, "</code>. Means, deviations and peaks are over the readings that are there; "
                     "gaps are never filled, and are told with each part.</p>\n");
}

void page_add_method(const struct lab_page *page, const struct study_digest *digest,
                     struct lab_str *out) {
    page_add_heading(out, 2, "measured", "How it was measured", page->simulated);
    if (!digest) {
        add_method_of_recordings(page, out);
        return;
    }
    add_conditions(page, digest, out);
    add_notes(digest, "Failures", &digest->failures, out);
    add_notes(digest, "Invalid runs", &digest->problems, out);
    add_notes(digest, "Warnings", &digest->warnings, out);
    if (digest->concurrent)
        lab_str_printf(out, "<p class=\"note\">%d run%s %s.</p>\n", digest->concurrent,
                       study_plural(digest->concurrent), STUDY_CONCURRENT);
    if (!page->config)
        return;
    lab_str_add(
        out,
        "<details class=\"more\"><summary>The study's configuration, as it ran</summary>\n<pre>");
    page_add_text(out, page->config);
    lab_str_add(out, "</pre></details>\n");
}

/* --- runs --- */

static void add_run(const struct lab_run *run, struct lab_str *out) {
    struct lab_str devices, nodes, rate;
    lab_str_init(&devices);
    lab_str_init(&nodes);
    lab_str_init(&rate);
    study_add_places(run, &devices, &nodes);
    bool done = run->state == LAB_RUN_DONE;
    lab_str_add(out, "<tr><td><code>");
    page_add_text(out, run->id);
    lab_str_add(out, "</code></td><td>");
    page_add_text(out, devices.text);
    lab_str_printf(out, "</td><td class=\"figure\">%s</td><td class=\"figure\">", nodes.text);
    if (done && !isnan(run->rate))
        lab_report_rate(run, &rate);
    page_add_text(out, rate.length ? rate.text : "–");
    lab_str_add(out, "</td><td class=\"figure\">");
    double latency_s = study_result_number(run, "latency_ms", "p95") * 1e-3;
    lab_str_clear(&rate);
    if (!isnan(latency_s))
        lab_str_add_time(&rate, latency_s);
    page_add_text(out, rate.length ? rate.text : "–");
    double took_s = (double)(run->end_ns - run->start_ns) * 1e-9;
    lab_str_add(out, "</td><td class=\"figure\">");
    lab_str_clear(&rate);
    if (run->end_ns > run->start_ns)
        lab_str_add_duration(&rate, took_s, LAB_DURATION_ROUNDED);
    page_add_text(out, rate.length ? rate.text : "–");
    lab_str_printf(out, "</td><td>%s%s%s</td></tr>\n", lab_run_state_name(run->state),
                   done && !run->valid ? ", invalid" : "", run->concurrent ? ", concurrent" : "");
    lab_str_release(&devices);
    lab_str_release(&nodes);
    lab_str_release(&rate);
}

static void add_metrics(const struct lab_study_info *study, size_t limit, struct lab_str *out) {
    if (study->metric_count == 0)
        return;
    page_add_heading(out, 3, NULL, "What the programs reported", study->simulated);
    lab_str_add(out, "<div class=\"wide\"><table>\n<thead><tr><th>Run</th><th>Metric</th><th "
                     "class=\"figure\">Last value</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < study->metric_count && out->length < limit; i++) {
        const struct lab_study_info_metric *metric = &study->metrics[i];
        lab_str_add(out, "<tr><td><code>");
        page_add_text(out, metric->run);
        lab_str_add(out, "</code></td><td>");
        page_add_text(out, metric->name);
        lab_str_printf(out, "</td><td class=\"figure\">%.6g ", metric->value);
        page_add_text(out, metric->unit ? metric->unit : "");
        lab_str_add(out, "</td></tr>\n");
    }
    lab_str_add(out, "</tbody></table></div>\n");
}

void page_add_runs(const struct lab_page *page, const struct study_digest *digest, size_t limit,
                   struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    page_add_heading(out, 2, "runs", "All runs", page->simulated);
    lab_str_printf(out,
                   "<div class=\"wide\"><table>\n<thead><tr><th>Run</th><th>Device</th><th "
                   "class=\"figure\">Node</th><th class=\"figure\">%s</th><th "
                   "class=\"figure\">p95 latency</th><th class=\"figure\">Took</th><th>State</th>"
                   "</tr></thead>\n<tbody>\n",
                   study->simulated ? "Simulated rate" : "Rate");
    int shown = 0;
    for (; shown < study->run_count && shown < RUNS_MOST && out->length < limit; shown++)
        add_run(&study->runs[shown], out);
    lab_str_add(out, "</tbody></table></div>\n");
    if (shown < study->run_count)
        lab_str_printf(out, "<p class=\"note\">%d more are in results.json.</p>\n",
                       study->run_count - shown);
    add_metrics(study, limit, out);
    lab_str_add(out, "<p class=\"faint\">All of it for programs: <a "
                     "href=\"../results.json\">results.json</a>, <a "
                     "href=\"../study.db\">study.db</a> (SQLite), <a "
                     "href=\"../config.yaml\">config.yaml</a>, <a "
                     "href=\"../machine.json\">machine.json</a>; in words: <a "
                     "href=\"report.md\">report.md</a>, <a "
                     "href=\"best_practices.md\">best_practices.md</a>.</p>\n");
}
