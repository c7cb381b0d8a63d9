/*
 * recording_stats_choice.c: which of many recordings or labels a picture shows. More than a few
 * lines can't be told apart; those that are drawn have to be worth it, and leave no GPU out.
 */
#include "analysis/recording/recording_stats_chart.h"

#include <math.h>
#include <stdlib.h>

static double peak_on(const struct lab_recording_stats *stats, int index) {
    for (int g = 0; g < stats->gpu_count; g++)
        if (stats->gpus[g].track->entity.index == index)
            return stats->gpus[g].figures[LAB_RECORDING_STATS_MEMORY].peak;
    return NAN;
}

/* Of those that aren't taken, the one that took most of the GPU; -1 = none has it. */
static int find_fullest(const struct lab_recording_stats *all_stats, int count, const bool *taken,
                        int index) {
    int best = -1;
    double most = -INFINITY;
    for (int i = 0; i < count; i++) {
        double peak = taken[i] ? (double)NAN : peak_on(&all_stats[i], index);
        if (peak > most) {
            most = peak;
            best = i;
        }
    }
    return best;
}

int lab_recording_stats_choose(const struct lab_recording_stats *all_stats, int count,
                               const int *indices, int gpus, int most,
                               const struct lab_recording_stats **ret_chosen) {
    bool *taken = lab_mem_alloc((size_t)count + 1, sizeof *taken);
    int left = count < most ? count : most, chosen = 0;
    for (bool any = true; any && left > 0;) {
        any = false;
        for (int g = 0; g < gpus && left > 0; g++) {
            int best = count <= most ? -1 : find_fullest(all_stats, count, taken, indices[g]);
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
            ret_chosen[chosen++] = &all_stats[i];
    }
    lab_mem_free(taken);
    return chosen;
}

struct candidate {
    const struct lab_recording_stats *stats;
    double cv;
};

static int by_cv(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    double of_x = isnan(x->cv) ? -1 : x->cv, of_y = isnan(y->cv) ? -1 : y->cv;
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->stats < y->stats ? -1 : x->stats > y->stats;
}

static int by_place(const void *a, const void *b) {
    const struct lab_recording_stats *x = *(const struct lab_recording_stats *const *)a,
                                     *y = *(const struct lab_recording_stats *const *)b;
    return x < y ? -1 : x > y;
}

int lab_recording_stats_choose_uneven(const struct lab_recording_stats *all_stats, int count,
                                      int most, int *ret_several,
                                      const struct lab_recording_stats **ret_chosen) {
    struct candidate *all = lab_mem_alloc((size_t)count + 1, sizeof *all);
    int several = 0, chosen = 0;
    for (int i = 0; i < count; i++)
        if (all_stats[i].gpu_count > 1)
            all[several++] = (struct candidate){
                &all_stats[i],
                lab_recording_stats_cv_of(&all_stats[i], LAB_RECORDING_STATS_MEMORY)};
    if (several > most)
        qsort(all, (size_t)several, sizeof *all, by_cv);
    for (; chosen < several && chosen < most; chosen++)
        ret_chosen[chosen] = all[chosen].stats;
    if (chosen > 1)
        qsort(ret_chosen, (size_t)chosen, sizeof *ret_chosen, by_place);
    lab_mem_free(all);
    *ret_several = several;
    return chosen;
}

int lab_recording_stats_choose_ends(const struct lab_recording_stats_label *const *labels,
                                    int count, int most,
                                    const struct lab_recording_stats_label **ret_chosen) {
    int chosen = 0;
    for (int i = 0; i < count; i++)
        if (count <= most || i < most - most / 2 || i >= count - most / 2)
            ret_chosen[chosen++] = labels[i];
    return chosen;
}
