/* study_bar.c: the one line that `gpulab run` draws again and again, and its bar. */
#include "report/study/study_internal.h"

#include <math.h>

static double clamp(double fraction) {
    return isnan(fraction) || fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
}

void study_add_bar(double fraction, int columns, bool unicode, struct lab_str *out) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int inside = columns - 2;
    if (inside < 1)
        return;
    /* not one step too many: a full bar means that all is done */
    int steps = (int)floor(clamp(fraction) * inside * (unicode ? 8 : 1) + 1e-9);
    int full = unicode ? steps / 8 : steps, part = unicode ? steps % 8 : 0;
    lab_str_add(out, unicode ? "▕" : "[");
    lab_str_add_repeat(out, unicode ? "█" : "#", full);
    lab_str_add(out, eighths[part]);
    lab_str_add_repeat(out, unicode ? " " : ".", inside - full - (part > 0));
    lab_str_add(out, unicode ? "▏" : "]");
}

/* What can be done without goes row by row, until the line fits. */
static const struct shape {
    int bar;  /* columns */
    int name; /* least columns of the run's name, 0 = without it */
    bool phase, iterations, failed, left;
} shapes[] = {
    {26, 24, true, true, true, true},   {14, 24, true, true, true, true},
    {14, 8, true, true, true, true},    {14, 0, true, true, true, true},
    {14, 0, false, true, true, true},   {10, 0, false, false, true, true},
    {10, 0, false, false, false, true}, {0, 0, false, false, false, true},
    {0, 0, false, false, false, false},
};
#define SHAPE_COUNT (sizeof shapes / sizeof *shapes)

static void add_before(const struct lab_report_bar *bar, const struct shape *shape,
                       struct lab_style style, struct lab_str *out) {
    int digits = snprintf(NULL, 0, "%d", bar->total);
    lab_str_printf(out, " %*d/%d", digits, bar->done, bar->total);
    if (shape->failed && bar->failed)
        lab_str_printf(out, style.colour ? " \033[1;31m%d failed\033[0m" : " %d failed",
                       bar->failed);
    if (shape->bar)
        lab_str_add(out, " ");
    study_add_bar(bar->fraction, shape->bar, style.unicode, out);
    if (!shape->bar)
        lab_str_printf(out, " %.0f%%", floor(100 * clamp(bar->fraction)));
}

static void add_behind(const struct lab_report_bar *bar, const struct shape *shape,
                       struct lab_style style, struct lab_str *out) {
    if (shape->phase && bar->phase && *bar->phase)
        lab_str_printf(out, " %s", bar->phase);
    if (shape->iterations && bar->iteration_total > 0)
        lab_str_printf(out, " %lld/%lld", (long long)bar->iterations,
                       (long long)bar->iteration_total);
    else if (shape->iterations && bar->iterations > 0)
        lab_str_printf(out, " %lld", (long long)bar->iterations);
    bool known = isfinite(bar->left_s) && bar->left_s >= 0;
    if (!shape->left || (!known && !(bar->elapsed_s > 0)))
        return;
    lab_str_add(out, style.unicode ? " · " : ", ");
    lab_str_add_duration(out, known ? bar->left_s : bar->elapsed_s, LAB_DURATION_ROUNDED);
    lab_str_add(out, known ? " left" : " so far");
}

void lab_report_bar(const struct lab_report_bar *bar, struct lab_style style, struct lab_str *out) {
    LAB_AUTO(str, name);
    LAB_AUTO(str, before);
    LAB_AUTO(str, behind);
    if (style.unicode)
        lab_str_add(&name, bar->run ? bar->run : "");
    else
        lab_text_to_ascii(bar->run ? bar->run : "", &name);
    int width = lab_str_columns(name.text), room = 0;
    const struct shape *shape = shapes;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        shape = &shapes[i];
        lab_str_clear(&before);
        lab_str_clear(&behind);
        add_before(bar, shape, style, &before);
        add_behind(bar, shape, style, &behind);
        room = style.columns - 1 - lab_text_columns(before.text) - lab_text_columns(behind.text);
        int least = shape->name && width ? 1 + (width < shape->name ? width : shape->name) : 0;
        if (room >= least)
            break;
    }
    lab_str_add(out, before.text);
    if (shape->name && width) {
        lab_str_add(out, " ");
        lab_text_fit(name.text, width < room - 1 ? width : room - 1, style.unicode, out);
    }
    lab_str_add(out, behind.text);
}
