/* report_end.c: what a study leaves when its runs have ended: its files, and the answer in the
 * terminal. */
#include "report/report_end.h"

#include "base/file/file.h"
#include "base/file/own.h"
#include "load/study_view.h"
#include "report/report_build.h"
#include "report/study/study.h"
#include "store/study/results.h"

#define REPORT_NS ((int64_t)30 * 1000000000)

static void write_markdown(const struct lab_study_info *report, const char *folder,
                           struct lab_arena *arena) {
    const char *path = lab_arena_printf(arena, "%s/report", folder);
    struct lab_err err = LAB_ERR_INIT;
    LAB_AUTO(str, text);
    lab_report_study_markdown(report, &text);
    if (lab_own_folder(path, &err) == 0)
        lab_file_write_atomic(lab_arena_printf(arena, "%s/report.md", path), text.text, text.length,
                              &err);
    if (err.code)
        lab_console_note("%s", err.text);
}

/* The whole report. A failure of it fails nothing else: what there was before it remains,
 * report.md. */
static bool write_report(const struct lab_console *console, struct lab_arena *arena,
                         const struct lab_study_view *view, const char *folder,
                         struct lab_report_made *ret_made) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_report_request request = {
        .folder = lab_arena_printf(arena, "%s/report", folder), .limit_ns = REPORT_NS, .own = true};
    if (lab_console_draws(console))
        lab_console_status_line("writing the report…");
    int result = lab_report_build_study(view, &request, arena, ret_made, &err);
    if (lab_console_draws(console))
        lab_console_status_line(NULL);
    if (result == 0) {
        if (ret_made->page.missing && !console->quiet)
            lab_console_note("%s", ret_made->page.missing);
        return true;
    }
    lab_console_note("the report is not complete: %s", err.text);
    write_markdown(&view->report, folder, arena);
    return false;
}

static void print_json(const struct lab_console *console, struct lab_arena *arena,
                       const struct lab_report_end *end, const struct lab_study_info *report) {
    struct lab_value *map = lab_value_map(arena), *runs = lab_value_list(arena);
    lab_value_set_string(arena, map, "study", report->name);
    lab_value_set_string(arena, map, "folder", end->folder);
    lab_value_set_bool(arena, map, "resumed", end->resumed);
    lab_value_set(arena, map, "summary",
                  lab_results_summary(report->name, report->runs, report->run_count, arena));
    for (int i = 0; i < report->run_count; i++)
        lab_value_append(arena, runs, lab_results_run(&report->runs[i], arena));
    lab_value_set(arena, map, "runs", runs);
    lab_console_print_json(console, map);
}

static int report_study(const struct lab_report_end *end, struct lab_study_file *file,
                        const struct lab_console *console, struct lab_arena *arena,
                        struct lab_err *err) {
    struct lab_study_view view;
    if (lab_study_view_read_ended(file, &view, err) < 0 || lab_study_view_metrics(&view, err) < 0)
        return -1;
    view.report.command = end->command;
    view.report.point_count = end->point_count;
    struct lab_report_made made;
    bool whole = end->analysed && write_report(console, arena, &view, end->folder, &made);
    if (!end->analysed)
        write_markdown(&view.report, end->folder, arena);
    if (end->silent)
        return 0;
    if (console->json) {
        print_json(console, arena, end, &view.report);
        return 0;
    }
    struct lab_doc *doc = lab_doc_open(NULL, arena);
    if (whole)
        view.report.report = lab_study_view_shorten(made.page.index, arena);
    lab_report_add_study(doc, &view.report, whole ? &made.page : NULL, console->style,
                         end->verbose);
    lab_doc_print(doc, console);
    return 0;
}

int lab_report_end(const struct lab_report_end *end, const struct lab_console *console,
                   struct lab_arena *arena, struct lab_err *err) {
    struct lab_study_file *file;
    if (lab_study_file_open(end->folder, arena, &file, err) < 0)
        return -1;
    int result = report_study(end, file, console, arena, err);
    lab_study_file_close(file);
    return result;
}
