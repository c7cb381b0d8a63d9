/* session_progress.c: the status line of a measurement. */
#include "session/session_progress.h"

#include "base/clock.h"
#include "base/tty/console.h"

#include <math.h>

#define REDRAW_NS       (100 * LAB_NS_PER_MS)
#define BAR_COLUMNS     24
#define BAR_COLUMNS_MIN 10

/* "gemm1024x1024x1024, run 2 of 5: measuring" */
static void add_subject(const struct lab_progress *progress, const char *phase,
                        struct lab_str *out) {
    lab_str_add(out, progress->label);
    if (progress->run_count > 1)
        lab_str_printf(out, ", run %d of %d", progress->run, progress->run_count);
    lab_str_printf(out, ": %s", phase);
}

static void draw(const struct lab_progress *progress, const char *text) {
    LAB_AUTO(str, line);
    /* a full last column would wrap on some terminals, and the line could not be taken away */
    if (lab_str_columns(text) < progress->columns)
        lab_str_add(&line, text);
    else
        lab_text_fit(text, progress->columns - 1, progress->unicode, &line);
    lab_console_status_line(line.text);
}

void lab_progress_phase(struct lab_progress *progress, const char *phase) {
    if (!progress->shown)
        return;
    LAB_AUTO(str, line);
    add_subject(progress, phase, &line);
    draw(progress, line.text);
}

/* In the order of what can be done without first: the median so far, the time left, the share. */
enum figures { SHARE, SHARE_AND_TIME, ALL_FIGURES };

static void add_figures(const struct lab_measure_progress *now, double fraction,
                        enum figures figures, struct lab_str *out) {
    lab_str_printf(out, " %3.0f%%", 100 * fraction);
    if (figures >= SHARE_AND_TIME && isfinite(now->left_s) && now->left_s >= 0)
        lab_str_printf(out, "  %.0f s left", ceil(now->left_s));
    if (figures < ALL_FIGURES || !isfinite(now->median_s))
        return;
    lab_str_add(out, "  ");
    lab_str_add_time(out, now->median_s);
    if (isfinite(now->precision))
        lab_str_printf(out, " ± %.1f%%", 100 * now->precision);
}

void lab_progress_line(const struct lab_progress *progress, const struct lab_measure_progress *now,
                       struct lab_str *out) {
    double fraction = isfinite(now->fraction) ? fmin(fmax(now->fraction, 0), 1) : 0;
    add_subject(progress, now->phase == LAB_MEASURE_WARMUP ? "warming up" : "measuring", out);
    lab_str_add(out, " ");
    LAB_AUTO(str, figures);
    int room = 0;
    for (int most = ALL_FIGURES; most >= SHARE && room < BAR_COLUMNS_MIN; most--) {
        lab_str_clear(&figures);
        add_figures(now, fraction, (enum figures)most, &figures);
        room = progress->columns - 1 - lab_str_columns(out->text) - lab_str_columns(figures.text);
    }
    int bar = room > BAR_COLUMNS ? BAR_COLUMNS : room < BAR_COLUMNS_MIN ? 0 : room;
    int filled = (int)(fraction * bar + 0.5);
    lab_str_add_repeat(out, "█", filled);
    lab_str_add_repeat(out, "░", bar - filled);
    lab_str_add(out, figures.text);
}

void lab_progress_measure(struct lab_progress *progress, const struct lab_measure_progress *now) {
    int64_t time_ns = lab_clock_now(lab_clock_system());
    if (!progress->shown || (progress->drawn_ns && time_ns - progress->drawn_ns < REDRAW_NS))
        return;
    progress->drawn_ns = time_ns;
    LAB_AUTO(str, line);
    lab_progress_line(progress, now, &line);
    draw(progress, line.text);
}

void lab_progress_clear(const struct lab_progress *progress) {
    if (progress->shown)
        lab_console_status_line(NULL);
}
