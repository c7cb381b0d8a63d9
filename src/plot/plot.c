/* plot.c: draws charts: writes each one's SVG, script and values, and lets gnuplot work on several
 * at once. */
#include "plot/plot_internal.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/out_dir.h"
#include "base/file/out_file.h"
#include "base/file/own.h"
#include "base/list.h"
#include "base/subprocess.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S   ((int64_t)1000000000)
#define GNUPLOT_NS (60 * NS_PER_S)
#define WORKERS    16

#define PICTURE_MAX_BYTES ((size_t)256 << 20)

/* --- gnuplot --- */

/* Feeds a script to gnuplot, which first enters the folder: the script holds no path that is only
 * true here. */
static int run_gnuplot(const char *script, const char *name, const char *folder, int64_t timeout_ns,
                       struct lab_err *err) {
    LAB_AUTO(arena, arena);
    /* -d: without the user's ~/.gnuplot; -: the script comes through stdin */
    LAB_AUTO(str, enter);
    lab_str_add(&enter, "cd '");
    for (const char *at = folder; *at; at++)
        lab_str_printf(&enter, *at == '\'' ? "''" : "%c", *at);
    lab_str_add(&enter, "'");
    const char *argv[] = {"gnuplot", "-d", "-e", enter.text, "-", NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .input = script, .max_output_bytes = 4096, .timeout_ns = timeout_ns};
    struct lab_subprocess_result result = {0};
    struct lab_err refused = LAB_ERR_INIT;
    int status = lab_subprocess_run(&spec, &arena, &result, &refused);
    bool there = access(folder, X_OK) == 0; /* else it isn't gnuplot that is missing */
    if (status < 0 && refused.code == LAB_ERR_USER && there) {
        status = lab_err_set(err, LAB_ERR_UNSUPPORTED,
                             "no PNG and PDF: gnuplot isn't installed; 'gnuplot %s.gp' draws them "
                             "where it is",
                             name);
    } else if (status < 0) {
        lab_err_set(err, refused.code, "%s", refused.text);
    } else if (result.exit_status != 0) {
        char *line = result.err + strspn(result.err, "\n");
        line[strcspn(line, "\n")] = 0;
        status = lab_err_set(err, LAB_ERR_SYSTEM, "gnuplot could not draw %s: %s", name,
                             result.timed_out ? "it took too long" : line);
    }
    return status;
}

/* --- one chart --- */

static int write_file(const struct lab_plot *plot, const char *folder, const char *ending,
                      const struct lab_str *text, struct lab_err *err) {
    LAB_AUTO(str, path);
    lab_str_printf(&path, "%s/%s.%s", folder, plot->name, ending);
    return lab_file_replace(path.text, text->text, text->length, err);
}

static int write_files(const struct lab_plot *plot, const char *folder, struct lab_str *ret_script,
                       struct lab_err *err) {
    LAB_AUTO(str, data);
    LAB_AUTO(str, svg);
    lab_plot_data(plot->chart, &data);
    lab_plot_svg(plot->chart, (struct lab_plot_view){0}, &svg);
    lab_plot_script(plot->chart, plot->name, ret_script);
    if (write_file(plot, folder, "csv", &data, err) < 0 ||
        write_file(plot, folder, "svg", &svg, err) < 0)
        return -1;
    return write_file(plot, folder, "gp", ret_script, err);
}

/* Half a picture must not stand for a whole one. */
static void remove_pictures(const struct lab_plot *plot, const char *folder) {
    static const char *const endings[] = {"png", "pdf"};
    LAB_AUTO(str, path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        lab_str_clear(&path);
        lab_str_printf(&path, "%s/%s.%s", folder, plot->name, endings[i]);
        lab_own_remove(path.text);
    }
}

static void draw(struct lab_plot *plot, const char *folder, int64_t deadline_ns) {
    struct lab_str script;
    int64_t left_ns = deadline_ns ? deadline_ns - lab_clock_now(lab_clock_system()) : GNUPLOT_NS;
    if (plot->chart->panel_count < 1) {
        lab_err_set(&plot->err, LAB_ERR_USER, "chart %s has no panel", plot->name);
        return;
    }
    lab_str_init(&script);
    plot->written = write_files(plot, folder, &script, &plot->err) == 0;
    if (plot->written && left_ns <= 0)
        lab_err_set(&plot->err, LAB_ERR_SYSTEM, "no time was left");
    else if (plot->written)
        plot->drawn = run_gnuplot(script.text, plot->name, folder,
                                  left_ns < GNUPLOT_NS ? left_ns : GNUPLOT_NS, &plot->err) == 0;
    if (plot->written && !plot->drawn)
        remove_pictures(plot, folder);
    plot->without = plot->err.code == LAB_ERR_UNSUPPORTED;
    lab_str_release(&script);
}

/* --- all --- */

struct drawing {
    struct lab_plot *plots;
    int count;
    const char *folder;
    int64_t deadline_ns;
    _Atomic int next;
};

static void *work(void *opaque) {
    struct drawing *drawing = opaque;
    for (int i = drawing->next++; i < drawing->count; i = drawing->next++)
        draw(&drawing->plots[i], drawing->folder, drawing->deadline_ns);
    return NULL;
}

/* Letters, digits, '_' and '-' of the chart's name; a number behind it where others have the
 * same. */
static const char *make_name(const struct lab_plot *plots, int count, const char *wanted,
                             struct lab_arena *arena) {
    char *plain = lab_arena_strdup(arena, wanted && *wanted ? wanted : "chart");
    for (char *c = plain; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            *c = '_';
    const char *name = plain;
    for (int number = 2;; number++) {
        if (LAB_FIND(plots, count, name, name) < 0)
            return name;
        name = lab_arena_printf(arena, "%s_%d", plain, number);
    }
}

void lab_plot_draw(const struct lab_chart *charts, int count, const char *folder,
                   int64_t deadline_ns, struct lab_arena *arena, struct lab_plot *ret_plots) {
    struct drawing drawing = {ret_plots, count, folder, deadline_ns, 0};
    pthread_t threads[WORKERS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int workers = cores < 1 ? 1 : cores > WORKERS ? WORKERS : (int)cores, started = 0;
    workers = workers > count ? count : workers;
    for (int i = 0; i < count; i++)
        ret_plots[i] = (struct lab_plot){.chart = &charts[i],
                                         .name = make_name(ret_plots, i, charts[i].name, arena)};
    while (started < workers - 1 && pthread_create(&threads[started], NULL, work, &drawing) == 0)
        started++;
    work(&drawing); /* this thread, too; alone where no other could be started */
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

int lab_plot_publish(const struct lab_plot *plots, int count, const char *folder,
                     struct lab_out_dir *into, struct lab_err *err) {
    static const char *const endings[] = {"svg", "gp", "csv", "png", "pdf"};
    LAB_AUTO(str, path);
    int result = 0;
    LAB_AUTO(str, name);
    for (int i = 0; i < count; i++)
        for (int e = 0; e < 5 && result == 0; e++) {
            if (e < 3 ? !plots[i].written : !plots[i].drawn)
                continue;
            lab_str_clear(&name);
            lab_str_clear(&path);
            lab_str_printf(&name, "%s.%s", plots[i].name, endings[e]);
            lab_str_printf(&path, "%s/%s", folder, name.text);
            result = lab_out_dir_add_copy(into, name.text, path.text, err);
        }
    return result;
}

const char *lab_plot_missing(const struct lab_plot *plots, int count, struct lab_arena *arena) {
    const struct lab_plot *first = NULL;
    int missing = 0;
    for (int i = 0; i < count; i++) {
        if (plots[i].drawn)
            continue;
        missing++;
        if (!first)
            first = &plots[i];
        if (plots[i].without)
            return "no PNG and PDF: gnuplot isn't installed here. '" LAB_PLOT_GET
                   "' installs it; or run 'gpulab report' on a machine that has it";
    }
    if (!first)
        return NULL;
    return lab_arena_printf(arena, "%d of %d charts without %s: %s", missing, count,
                            first->written ? "PNG and PDF copy (the SVG is there)" : "picture",
                            first->err.text);
}

/* --- one picture --- */

static int save_drawn(const struct lab_chart *chart, const char *path, struct lab_arena *arena,
                      struct lab_err *err) {
    struct lab_scratch_dir scratch;
    struct lab_plot plot = {0};
    char *picture;
    size_t length;
    if (lab_scratch_dir_open(arena, &scratch, err) < 0)
        return -1;
    lab_plot_draw(chart, 1, scratch.path, 0, arena, &plot);
    const char *drawn = lab_arena_printf(arena, "%s/%s.%s", scratch.path, plot.name,
                                         lab_str_ends(path, ".pdf") ? "pdf" : "png");
    int result = 0;
    if (plot.without)
        result = lab_err_set(err, LAB_ERR_UNSUPPORTED,
                             "can't draw %s: gnuplot isn't installed; FILE.svg needs none", path);
    else if (!plot.drawn)
        result = lab_err_set(err, plot.err.code, "%s", plot.err.text);
    if (result == 0)
        result = lab_file_read(drawn, PICTURE_MAX_BYTES, arena, &picture, &length, err);
    if (result == 0)
        result = lab_out_file_save(path, picture, length, err);
    lab_scratch_dir_close(&scratch);
    return result;
}

int lab_plot_save(const struct lab_chart *chart, const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, svg);
    if (!lab_str_ends(path, ".svg"))
        return save_drawn(chart, path, &arena, err);
    lab_plot_svg(chart, (struct lab_plot_view){0}, &svg);
    return lab_out_file_save(path, svg.text, svg.length, err);
}
