/* page_study.c: how a study was measured, its points, what its programs reported; runs.csv. */
#include "report/page/page_internal.h"

#include "base/list.h"
#include "doc/stream.h"
#include "model/result.h"
#include "report/study/study_axes.h"

#define POINTS_SCREEN 48
#define POINTS_PAPER  16

/* The study with its runs' ids by their names. */
static struct lab_study_info name_metrics(const struct page_build *build) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    struct lab_study_info study = *build->digest->study;
    struct lab_study_info_metric *metrics =
        lab_arena_copy(arena, study.metrics, (size_t)study.metric_count, sizeof *metrics);
    for (int i = 0; i < study.metric_count; i++)
        metrics[i].run = i > 0 && study.metrics[i].run == study.metrics[i - 1].run
                             ? metrics[i - 1].run
                             : page_named(build->names, study.metrics[i].run, arena);
    study.metrics = metrics;
    return study;
}

/* Whether an analysis that is shown names the longest iteration: by rank, from records. */
static bool names_longest(const struct lab_page *page) {
    for (int i = 0; i < page->analysis_count; i++) {
        const struct lab_page_analysis *analysis = &page->analyses[i];
        if (lab_str_equal(analysis->name, "stability") && analysis->result && !analysis->skipped &&
            !analysis->result->lacks)
            return true;
    }
    return false;
}

static void add_study(const struct page_build *build) {
    static const char elsewhere[] = "in runs.csv";
    struct lab_doc *doc = build->doc;
    const struct study_digest *digest = build->digest;
    if (digest->study->metric_count) {
        struct lab_study_info named = name_metrics(build);
        lab_doc_begin(doc, (struct lab_doc_section){.title = "Reported by the programs"});
        study_add_metrics(doc, &named);
        lab_doc_end(doc);
    }
    study_add_problems(doc, digest, !names_longest(build->page));
    study_add_conditions(doc, digest, build->page->order);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_FOLD,
                                                .title = lab_arena_printf(lab_doc_arena(doc),
                                                                          "All points (%d)",
                                                                          digest->row_count)});
    study_add_points(doc, digest, POINTS_SCREEN, elsewhere);
    lab_doc_end(doc);
    if (build->page->config)
        lab_doc_code(doc, "Configuration as it ran", build->page->config);
    lab_doc_only(doc, LAB_DOC_PAPER);
    lab_doc_begin(doc, (struct lab_doc_section){.title = "Points"});
    study_add_points(doc, digest, POINTS_PAPER, elsewhere);
    lab_doc_end(doc);
}

/* "Skipped for lack of time: balance and memory. 'gpulab analyze NAME' runs one."; NULL = none. */
static const char *skipped(const struct page_build *build) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const char **names = NULL;
    int count = 0;
    LAB_AUTO(str, list);
    for (int i = 0; i < build->page->analysis_count; i++)
        if (build->page->analyses[i].skipped)
            LAB_ADD(names, count, arena) = build->page->analyses[i].name;
    if (count == 0)
        return NULL;
    LAB_ADD(names, count, arena) = NULL;
    lab_str_add_list(&list, names, "and");
    return lab_arena_printf(arena, "Skipped for lack of time: %s. 'gpulab analyze NAME' runs one.",
                            list.text);
}

void page_add_method(const struct page_build *build) {
    struct lab_doc *doc = build->doc;
    const char *without = skipped(build);
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
    if (!build->digest && !build->page->missing && !without)
        return;
    lab_doc_begin(doc, (struct lab_doc_section){
                           .title = "Method and runs", .name = "method and runs", .id = "method"});
    if (build->page->missing)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s.", build->page->missing);
    if (without)
        lab_doc_text(doc, LAB_DOC_FAINT, "%s", without);
    if (build->digest)
        add_study(build);
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
    lab_doc_end(doc);
    lab_doc_only(doc, LAB_DOC_ALL);
}

/* --- runs.csv --- */

static struct lab_doc_cell text_or_none(const char *text) {
    return lab_cell_text(text && *text ? text : NULL);
}

/* Where a run was, which is no axis where any free device was taken: "cuda:0, cuda:1". */
static struct lab_doc_cell devices_of(const struct lab_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, list);
    for (int k = 0; k < run->rank_count; k++)
        if (run->ranks[k].device)
            lab_str_printf(&list, "%s%s", list.length ? ", " : "", run->ranks[k].device);
    return text_or_none(lab_arena_strdup(arena, list.text));
}

void lab_page_runs_csv(const struct lab_page *page, struct lab_str *out) {
    static const struct lab_doc_column last[] = {
        {"rate", NULL, LAB_UNIT_NUMBER},           {"unit", NULL, LAB_UNIT_TEXT},
        {"latency_ms_p95", NULL, LAB_UNIT_NUMBER}, {"state", NULL, LAB_UNIT_TEXT},
        {"valid", NULL, LAB_UNIT_COUNT},
    };
    enum { LAST = sizeof last / sizeof *last };
    LAB_AUTO(arena, arena);
    const struct lab_study_info *study = page->study;
    const struct lab_run **runs =
        lab_arena_alloc(&arena, (size_t)study->run_count + 1, sizeof *runs);
    for (int i = 0; i < study->run_count; i++)
        runs[i] = &study->runs[i];
    bool spread = false;
    for (int i = 0; i < study->run_count; i++)
        spread |= runs[i]->spread;
    struct study_axes axes = study_axes_make(runs, study->run_count, &arena);
    int count = axes.count + 1 + (spread ? 2 : 0) + LAST;
    struct lab_doc_column *columns = lab_arena_alloc(&arena, (size_t)count, sizeof *columns);
    struct lab_doc_stream stream;
    columns[0].key = "run_id";
    for (int a = 0; a < axes.count; a++)
        columns[a + 1].key = axes.items[a].title;
    if (spread) {
        columns[axes.count + 1].key = "device";
        columns[axes.count + 2] = (struct lab_doc_column){"numa_node", NULL, LAB_UNIT_COUNT};
    }
    for (int c = 0; c < LAST; c++)
        columns[count - LAST + c] = last[c];
    lab_doc_stream_begin(&stream, lab_doc_row_format_find("csv"), columns, count, out);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_run *run = runs[i];
        lab_doc_stream_add(&stream, lab_cell_text(run->id));
        for (int a = 0; a < axes.count; a++)
            lab_doc_stream_add(&stream, text_or_none(axes.items[a].values[i]));
        if (spread) {
            int node = run->rank_count ? run->ranks[0].numa_node : -1;
            lab_doc_stream_add(&stream, devices_of(run, &arena));
            lab_doc_stream_add(&stream, node < 0 ? lab_cell_text(NULL) : lab_cell_exact(node, 0));
        }
        lab_doc_stream_add(&stream, lab_cell_figure(run->rate));
        lab_doc_stream_add(&stream, text_or_none(run->rate_unit));
        lab_doc_stream_add(&stream, lab_cell_figure(lab_run_result(run)->latency_ms_p95));
        lab_doc_stream_add(&stream, lab_cell_text(lab_run_state_name(run->state)));
        lab_doc_stream_add(&stream, lab_cell_figure(run->state == LAB_RUN_DONE && run->valid));
    }
}
