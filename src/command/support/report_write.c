/*
 * support/report_write.c: a report's files. They are made in a folder of their own beside their places
 * and moved there when all are whole.
 */
#include "command/support/report_internal.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const plot_endings[] = {"gp", "dat", "png", "svg"};
#define PLOT_ENDINGS ((int)(sizeof plot_endings / sizeof *plot_endings))

struct writing {
    const char *folder, *workshop; /* where they go; where they are made */
    struct lab_arena *arena;
    struct lab_plot *plots;
    int plot_count;
    const struct report_file *files;
    int file_count;
};

/* --- pictures --- */

static void draw(struct report_found *found, const struct lab_report_request *request,
                 struct writing *writing, struct lab_report_made *made) {
    int count = 0;
    for (int i = 0; i < found->count; i++)
        count += found->items[i].result ? found->items[i].result->chart_count : 0;
    struct lab_chart *charts = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *charts);
    writing->plots = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *writing->plots);
    for (int i = 0, at = 0; i < found->count; i++) {
        const struct lab_analysis_result *result = found->items[i].result;
        found->items[i].plots = writing->plots + at;
        found->items[i].plot_count = result ? result->chart_count : 0;
        for (int c = 0; result && c < result->chart_count; c++)
            charts[at++] = result->charts[c];
    }
    if (request->without_pictures) {
        for (int i = 0; i < found->count; i++)
            found->items[i].plot_count = 0;
        return;
    }
    writing->plot_count = count;
    lab_plot_draw(charts, count, writing->workshop, found->deadline_ns, found->arena,
                  writing->plots);
    made->page.missing = lab_plot_missing(writing->plots, count, found->arena);
    for (int i = 0; i < count; i++)
        made->picture_count += writing->plots[i].drawn;
}

/* --- texts --- */

static int write_text(const struct writing *writing, const char *name, const struct lab_str *text,
                      struct lab_err *err) {
    return lab_file_replace(lab_arena_printf(writing->arena, "%s/%s", writing->workshop, name),
                            text->text, text->length, err);
}

static const char *const texts[] = {"report.md", "best_practices.md", "index.html"};

static int write_texts(const struct writing *writing, const struct lab_page *page,
                       struct lab_err *err) {
    void (*const writers[])(const struct lab_page *, struct lab_str *) = {
        lab_page_markdown, lab_page_practices, lab_page_html};
    struct lab_str text;
    int result = 0;
    lab_str_init(&text);
    for (int i = 0; i < 3 && result == 0; i++) {
        lab_str_clear(&text);
        writers[i](page, &text);
        result = write_text(writing, texts[i], &text, err);
    }
    lab_str_release(&text);
    for (int i = 0; i < writing->file_count && result == 0; i++) {
        const struct report_file *file = &writing->files[i];
        result = lab_file_replace(
            lab_arena_printf(writing->arena, "%s/%s", writing->workshop, file->name), file->text,
            strlen(file->text), err);
    }
    return result;
}

/* --- into their places --- */

static int move(const struct writing *writing, const char *name, struct lab_err *err) {
    const char *from = lab_arena_printf(writing->arena, "%s/%s", writing->workshop, name);
    const char *to = lab_arena_printf(writing->arena, "%s/%s", writing->folder, name);
    if (rename(from, to) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't write %s", to);
    return 0;
}

static bool is_known(const struct writing *writing, const char *name) {
    for (int i = 0; i < writing->plot_count; i++)
        if (lab_str_equal(writing->plots[i].name, name))
            return true;
    return false;
}

/* Pictures of an earlier report that this one has no more: known by their scripts. */
static void remove_old(const struct writing *writing) {
    DIR *folder = opendir(writing->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length < 4 || !lab_str_equal(entry->d_name + length - 3, ".gp"))
            continue;
        const char *name = lab_arena_strndup(writing->arena, entry->d_name, length - 3);
        for (int e = 0; e < PLOT_ENDINGS && !is_known(writing, name); e++)
            unlink(lab_arena_printf(writing->arena, "%s/%s.%s", writing->folder, name,
                                    plot_endings[e]));
    }
    if (folder)
        closedir(folder);
}

static int move_all(const struct writing *writing, struct lab_err *err) {
    int result = 0;
    remove_old(writing);
    for (int i = 0; i < writing->plot_count; i++) {
        const struct lab_plot *plot = &writing->plots[i];
        for (int e = 0; e < PLOT_ENDINGS && result == 0; e++) {
            const char *name =
                lab_arena_printf(writing->arena, "%s.%s", plot->name, plot_endings[e]);
            if (e < 2 ? plot->written : plot->drawn)
                result = move(writing, name, err);
            else
                unlink(lab_arena_printf(writing->arena, "%s/%s", writing->folder, name));
        }
    }
    for (int i = 0; i < writing->file_count && result == 0; i++)
        result = move(writing, writing->files[i].name, err);
    for (int i = 0; i < 3 && result == 0; i++)
        result = move(writing, texts[i], err);
    if (result == 0)
        lab_file_sync_directory(writing->folder);
    return result;
}

static void remove_workshop(const struct writing *writing) {
    DIR *folder = opendir(writing->workshop);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlink(lab_arena_printf(writing->arena, "%s/%s", writing->workshop, entry->d_name));
    if (folder)
        closedir(folder);
    rmdir(writing->workshop);
}

int report_write(struct report_found *found, const struct lab_report_request *request,
                 struct lab_report_made *made, struct lab_err *err) {
    struct writing writing = {
        .folder = request->folder,
        .workshop = lab_arena_printf(found->arena, "%s/" LAB_FILE_TEMPORARY "report-%ld",
                                     request->folder, (long)getpid()),
        .arena = found->arena,
        .files = found->files,
        .file_count = found->file_count,
    };
    made->page.analyses = found->items;
    made->page.analysis_count = found->count;
    if ((mkdir(writing.folder, 0777) < 0 && errno != EEXIST) ||
        (mkdir(writing.workshop, 0777) < 0 && errno != EEXIST))
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't make %s", writing.folder);
    draw(found, request, &writing, made);
    made->page.folder = writing.workshop;
    int result = write_texts(&writing, &made->page, err);
    if (result == 0)
        result = move_all(&writing, err);
    remove_workshop(&writing);
    made->page.folder = writing.folder;
    if (result == 0)
        made->index = lab_arena_printf(found->arena, "%s/index.html", writing.folder);
    return result;
}
