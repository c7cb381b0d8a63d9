/*
 * report_write.c: a report's files. Pictures are drawn in a private directory; everything is
 * staged in the report's own and renamed when all is whole.
 */
#include "report/report_internal.h"

#include "base/file/out_dir.h"

#include <string.h>

/* --- pictures --- */

static int gather_charts(struct report_found *found, struct lab_plot *plots,
                         struct lab_chart *charts) {
    int at = 0;
    for (int i = 0; i < found->count; i++) {
        const struct lab_analysis_result *result = found->items[i].result;
        found->items[i].plots = plots + at;
        found->items[i].plot_count = result ? result->chart_count : 0;
        for (int c = 0; result && c < result->chart_count; c++)
            charts[at++] = result->charts[c];
    }
    return at;
}

/* Without a directory to draw in, the report comes without pictures and says why. */
static int draw(struct report_found *found, const struct lab_report_request *request,
                const struct lab_scratch_dir *scratch, const struct lab_err *refused,
                struct lab_report_made *made) {
    int count = 0;
    for (int i = 0; i < found->count; i++)
        count += found->items[i].result ? found->items[i].result->chart_count : 0;
    struct lab_chart *charts = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *charts);
    struct lab_plot *plots = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *plots);
    if (request->without_pictures || scratch->fd < 0) {
        made->page.missing = scratch->fd < 0 ? refused->text : NULL;
        return 0;
    }
    gather_charts(found, plots, charts);
    lab_page_name_charts(&made->page, charts, count, found->arena);
    lab_plot_draw(charts, count, scratch->path, found->deadline_ns, found->arena, plots);
    made->page.missing = lab_plot_missing(plots, count, found->arena);
    for (int i = 0; i < count; i++)
        made->picture_count += plots[i].drawn;
    return count;
}

/* --- texts --- */

/* All values of all analyses, and all runs, for programs and spreadsheets. */
static int stage_tables(struct lab_out_dir *dir, const struct lab_page *page,
                        struct lab_arena *arena, struct lab_err *err) {
    for (int a = 0; a < page->analysis_count; a++)
        for (int number = 0;; number++) {
            LAB_AUTO(str, text);
            const char *name = lab_page_csv(page, a, number, arena, &text);
            if (!name)
                break;
            if (text.length && lab_out_dir_add(dir, name, text.text, text.length, err) < 0)
                return -1;
        }
    LAB_AUTO(str, text);
    if (!page->study)
        return 0;
    lab_page_runs_csv(page, &text);
    return lab_out_dir_add(dir, "runs.csv", text.text, text.length, err);
}

static int stage_texts(struct lab_out_dir *dir, const struct lab_page *page,
                       struct lab_arena *arena, struct lab_err *err) {
    static const char *const names[] = {"report.md", "best_practices.md", "index.html"};
    const struct lab_doc *doc = lab_page_doc(page, arena);
    for (int i = 0; i < 3; i++) {
        LAB_AUTO(str, text);
        if (i == 1)
            lab_page_practices(page, &text);
        else
            lab_doc_write(doc, names[i], (struct lab_style){0}, &text);
        if (lab_out_dir_add(dir, names[i], text.text, text.length, err) < 0)
            return -1;
    }
    return 0;
}

/* --- all --- */

static int stage(struct report_found *found, struct lab_out_dir *dir, const struct lab_plot *plots,
                 int plot_count, const char *scratch, const struct lab_page *page,
                 struct lab_err *err) {
    if (lab_plot_publish(plots, plot_count, scratch, dir, err) < 0)
        return -1;
    for (int i = 0; i < found->file_count; i++) {
        const struct report_file *file = &found->files[i];
        if (lab_out_dir_add(dir, file->name, file->text, strlen(file->text), err) < 0)
            return -1;
    }
    if (stage_tables(dir, page, found->arena, err) < 0)
        return -1;
    return stage_texts(dir, page, found->arena, err);
}

int report_write(struct report_found *found, const struct lab_report_request *request,
                 struct lab_report_made *made, struct lab_err *err) {
    struct lab_out_dir_spec spec = {.path = request->folder,
                                    .force = "--force",
                                    .forced = request->forced,
                                    .owner = request->own ? "study.db" : NULL};
    struct lab_scratch_dir scratch = {.fd = -1};
    struct lab_err *refused = lab_arena_alloc(found->arena, 1, sizeof *refused);
    struct lab_out_dir *dir;
    if (lab_out_dir_open(&spec, &dir, err) < 0)
        return -1;
    lab_scratch_dir_open(found->arena, &scratch, refused);
    made->page.analyses = found->items;
    made->page.analysis_count = found->count;
    int plot_count = draw(found, request, &scratch, refused, made);
    made->page.folder = scratch.path;
    int result = stage(found, dir, plot_count ? found->items[0].plots : NULL, plot_count,
                       scratch.path, &made->page, err);
    if (result == 0)
        result = lab_out_dir_commit(dir, err);
    lab_scratch_dir_close(&scratch);
    lab_out_dir_close(dir);
    made->page.folder = request->folder;
    if (result == 0)
        made->page.index = lab_arena_printf(found->arena, "%s/index.html", request->folder);
    return result;
}
