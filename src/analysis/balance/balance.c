/* balance.c: the spread between GPUs, of the whole recording and of windows of it. */
#include "analysis/balance/balance.h"

#include <math.h>

#define WINDOWS 10 /* of a recording, unless told otherwise */

/* None while a GPU is away that is there at other times: fewer GPUs have another balance. */
static double cv_of_window(const struct lab_watch *watch, int metric, const double *row) {
    for (int g = 0; g < watch->gpu_count; g++)
        if (isnan(row[g]) && watch->gpus[g].figures[metric].count > 0)
            return NAN;
    return lab_watch_cv(row, watch->gpu_count);
}

static int count_windows(const struct lab_watch *watch, double window_s) {
    int most = lab_watch_rows(watch);
    double windows = window_s > 0 ? ceil(watch->duration_s / window_s) : WINDOWS;
    return windows > most ? most : windows < 1 ? 1 : (int)windows;
}

struct lab_balance lab_balance_make(const struct lab_watch *watch, double window_s,
                                    struct lab_arena *arena) {
    struct lab_balance balance = {.watch = watch, .windows = count_windows(watch, window_s)};
    for (int m = 0; m < LAB_BALANCED; m++) {
        double *grid = lab_watch_grid(watch, m, balance.windows, arena);
        balance.cv[m] = lab_watch_cv_of(watch, m);
        balance.window_cv[m] =
            lab_arena_alloc(arena, (size_t)balance.windows, sizeof *balance.window_cv[m]);
        for (int w = 0; w < balance.windows; w++)
            balance.window_cv[m][w] =
                cv_of_window(watch, m, grid + (ptrdiff_t)w * watch->gpu_count);
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
