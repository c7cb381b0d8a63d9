/*
 * analysis_watch_choice.c: which of many recordings or labels a picture shows. More than a few lines
 * can't be told apart; those that are drawn have to be worth it, and leave no GPU out.
 */
#include "analysis/recording/analysis_watch_chart.h"

#include <math.h>
#include <stdlib.h>

static double peak_on(const struct lab_watch *watch, int index) {
    for (int g = 0; g < watch->gpu_count; g++)
        if (watch->gpus[g].track->entity.index == index)
            return watch->gpus[g].figures[LAB_WATCH_MEMORY].peak;
    return NAN;
}

/* Of those that aren't taken, the one that took most of the GPU; -1 = none has it. */
static int find_fullest(const struct lab_watch *watches, int count, const bool *taken, int index) {
    int best = -1;
    double most = -INFINITY;
    for (int i = 0; i < count; i++) {
        double peak = taken[i] ? (double)NAN : peak_on(&watches[i], index);
        if (peak > most) {
            most = peak;
            best = i;
        }
    }
    return best;
}

int lab_watch_choose(const struct lab_watch *watches, int count, const int *indices, int gpus,
                     int most, const struct lab_watch **ret_chosen) {
    bool *taken = lab_mem_alloc((size_t)count + 1, sizeof *taken);
    int left = count < most ? count : most, chosen = 0;
    for (bool any = true; any && left > 0;) {
        any = false;
        for (int g = 0; g < gpus && left > 0; g++) {
            int best = count <= most ? -1 : find_fullest(watches, count, taken, indices[g]);
            if (best < 0)
                continue;
            taken[best] = any = true;
            left--;
        }
    }
    for (int i = 0; i < count; i++) {
        bool rest = !taken[i] && left > 0;
        left -= rest;
        if (taken[i] || rest)
            ret_chosen[chosen++] = &watches[i];
    }
    lab_mem_free(taken);
    return chosen;
}

struct candidate {
    const struct lab_watch *watch;
    double cv;
};

static int by_cv(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    double of_x = isnan(x->cv) ? -1 : x->cv, of_y = isnan(y->cv) ? -1 : y->cv;
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->watch < y->watch ? -1 : x->watch > y->watch;
}

static int by_place(const void *a, const void *b) {
    const struct lab_watch *x = *(const struct lab_watch *const *)a,
                           *y = *(const struct lab_watch *const *)b;
    return x < y ? -1 : x > y;
}

int lab_watch_choose_uneven(const struct lab_watch *watches, int count, int most, int *ret_several,
                            const struct lab_watch **ret_chosen) {
    struct candidate *all = lab_mem_alloc((size_t)count + 1, sizeof *all);
    int several = 0, chosen = 0;
    for (int i = 0; i < count; i++)
        if (watches[i].gpu_count > 1)
            all[several++] =
                (struct candidate){&watches[i], lab_watch_cv_of(&watches[i], LAB_WATCH_MEMORY)};
    if (several > most)
        qsort(all, (size_t)several, sizeof *all, by_cv);
    for (; chosen < several && chosen < most; chosen++)
        ret_chosen[chosen] = all[chosen].watch;
    if (chosen > 1)
        qsort(ret_chosen, (size_t)chosen, sizeof *ret_chosen, by_place);
    lab_mem_free(all);
    *ret_several = several;
    return chosen;
}

int lab_watch_choose_ends(const struct lab_watch_label *const *labels, int count, int most,
                          const struct lab_watch_label **ret_chosen) {
    int chosen = 0;
    for (int i = 0; i < count; i++)
        if (count <= most || i < most - most / 2 || i >= count - most / 2)
            ret_chosen[chosen++] = labels[i];
    return chosen;
}
