/*
 * analysis_timeline.h: recordings as a picture over time: GPU utilisation, PCIe, memory and CPU,
 * one above the other, with what ran behind them; and long series made short enough to be drawn.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "base/mem.h"
#include "model/chart.h"

#define LAB_TIMELINE_POINTS 2000 /* of a series at most */

struct lab_points { /* of a series; y of NaN = a gap */
    double *x, *y;
    size_t count;
};

/* Means of blocks of neighbours, so that no more than `most` are left. A block ends at a gap (y is
 * NaN, or x goes on by more than `gap`; 0 = never), which stays one. Arrays lie in the arena. */
struct lab_points lab_points_thin(const double *x, const double *y, size_t count, size_t most,
                                  double gap, struct lab_arena *arena);

/* Seconds, minutes or hours, as fits: what to divide by, and the axis's title. */
double lab_timeline_unit(double span_s, const char **ret_title);

struct lab_timeline_segment {  /* what ran: shaded */
    int64_t from_ns, until_ns; /* since 1970 */
    const char *title;
    int colour;
};

/*
 * "resource_timeline": up to four panels, those that there are readings for. Recordings follow each
 * other in time. False: there is nothing to draw.
 */
bool lab_timeline_make(const struct lab_recording *const *recordings, int recording_count,
                       const struct lab_timeline_segment *segments, int segment_count,
                       bool simulated, struct lab_arena *arena, struct lab_chart *ret_chart);

/* The same of a study's runs, shaded by their phases, or else one by one. An idle GPU that no run
 * had is left out. */
bool lab_timeline_of_study(const struct lab_study_table *study, struct lab_arena *arena,
                           struct lab_chart *ret_chart);
