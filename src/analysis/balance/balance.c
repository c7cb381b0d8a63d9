/* balance.c: the spread between GPUs, of the whole recording and of windows of it. */
#include "analysis/balance/balance.h"

#include <math.h>

#define WINDOWS 10 /* of a recording, unless told otherwise */

/* None while a GPU is away that is there at other times: fewer GPUs have another balance. */
static double cv_of_window(const struct lab_recording_stats *stats, int metric, const double *row) {
    for (int g = 0; g < stats->gpu_count; g++)
        if (isnan(row[g]) && stats->gpus[g].figures[metric].count > 0)
            return NAN;
    return lab_recording_stats_cv(row, stats->gpu_count);
}

static int count_windows(const struct lab_recording_stats *stats, double window_s) {
    int most = lab_recording_stats_rows(stats);
    double windows = window_s > 0 ? ceil(stats->duration_s / window_s) : WINDOWS;
    return windows > most ? most : windows < 1 ? 1 : (int)windows;
}

struct lab_balance lab_balance_make(const struct lab_recording_stats *stats, double window_s,
                                    struct lab_arena *arena) {
    struct lab_balance balance = {.stats = stats, .windows = count_windows(stats, window_s)};
    for (int m = 0; m < LAB_BALANCED; m++) {
        double *grid = lab_recording_stats_grid(stats, m, balance.windows, arena);
        balance.cv[m] = lab_recording_stats_cv_of(stats, m);
        balance.window_cv[m] =
            lab_arena_alloc(arena, (size_t)balance.windows, sizeof *balance.window_cv[m]);
        for (int w = 0; w < balance.windows; w++)
            balance.window_cv[m][w] =
                cv_of_window(stats, m, grid + (ptrdiff_t)w * stats->gpu_count);
        balance.drift[m] = lab_drift_make(balance.window_cv[m], balance.windows);
    }
    return balance;
}

#define POINT 0.01

bool lab_balance_is_steady(const struct lab_balance *balance) {
    for (int m = 0; m < LAB_BALANCED; m++) {
        if (balance->drift[m].direction != 0)
            return false;
        for (int w = 0; w < balance->windows; w++)
            if (fabs(balance->window_cv[m][w] - balance->cv[m]) >= POINT)
                return false;
    }
    return true;
}

int lab_balance_worst(const struct lab_balance *balance) {
    int worst = -1;
    for (int m = 0; m < LAB_BALANCED; m++)
        if (!isnan(balance->cv[m]) && (worst < 0 || balance->cv[m] > balance->cv[worst]))
            worst = m;
    return worst;
}
