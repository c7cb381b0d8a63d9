/* session_progress.h: the status line of a measurement. */
#pragma once

#include "measure/measure.h"

struct lab_progress {
    bool shown;  /* false: nothing is drawn */
    int columns; /* of the terminal that stderr is */
    bool unicode;
    const char *label;
    int run, run_count;
    int64_t drawn_ns; /* last drawn at; redraws are at least 100 ms apart */
};

/* A phase without known length: "opening", "verifying". Drawn at once. */
void lab_progress_phase(struct lab_progress *progress, const char *phase);
void lab_progress_measure(struct lab_progress *progress, const struct lab_measure_progress *now);
void lab_progress_clear(const struct lab_progress *progress);

/* The line itself. Where it is too long for `columns` − 1, figures go before the bar does. */
void lab_progress_line(const struct lab_progress *progress, const struct lab_measure_progress *now,
                       struct lab_str *out);
