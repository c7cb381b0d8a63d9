/*
 * recording_stats_chart.h: what recordings tell of their GPUs as pictures. Each function adds
 * one chart to a result, if there is something to draw. Everything lies in the arena.
 */
#ifndef LAB_ANALYSIS_RECORDING_RECORDING_STATS_CHART_H
#define LAB_ANALYSIS_RECORDING_RECORDING_STATS_CHART_H

#include "analysis/recording/recording_stats.h"

#define LAB_RECORDING_STATS_LINES_MOST 8  /* recordings, or labels, in one picture over time */
#define LAB_RECORDING_STATS_BARS_MOST  24 /* labels beside each other */

/*
 * Which ones a picture shows; each returns how many, in the order that they were given in.
 * `choose`: all, or of each GPU in turn the one that took most of it, so that none is left out.
 * `uneven`: of those with several GPUs, whose number is given back, the most uneven.
 * `ends`: all, or as many from the start as from the end.
 */
int lab_recording_stats_choose(const struct lab_recording_stats *all_stats, int count,
                               const int *indices, int gpus, int most,
                               const struct lab_recording_stats **ret_chosen);
int lab_recording_stats_choose_uneven(const struct lab_recording_stats *all_stats, int count,
                                      int most, int *ret_several,
                                      const struct lab_recording_stats **ret_chosen);
int lab_recording_stats_choose_ends(const struct lab_recording_stats_label *const *labels,
                                    int count, int most,
                                    const struct lab_recording_stats_label **ret_chosen);

/* "per_gpu_memory_breakdown": a panel for each GPU, a line for each recording. 1×2 for 2 GPUs, 2×2
 * for 4, 2×3 for 6, 2×4 for 8. */
void lab_recording_stats_chart_breakdown(const struct lab_recording_stats *all_stats, int count,
                                         struct lab_arena *arena,
                                         struct lab_analysis_result *result);

/* "gpu_load_balance_analysis": left the memory of each GPU, right the coefficient of variation of
 * each metric beside the bounds of its grades. Of several recordings, bars stand beside each other;
 * of many, those of the most uneven. */
void lab_recording_stats_chart_balance(const struct lab_recording_stats *all_stats, int count,
                                       struct lab_arena *arena, struct lab_analysis_result *result);

/* "gpu_memory_comparison": memory of all GPUs together by label, mean and peak; whiskers span the
 * recordings of a label. */
void lab_recording_stats_chart_comparison(const struct lab_recording_stats_label *const *labels,
                                          int count, struct lab_arena *arena,
                                          struct lab_analysis_result *result);

/* "gpu_memory_timeline": the same over time, the first recording of each label. Of many labels,
 * both show the first and the last. */
void lab_recording_stats_chart_timeline(const struct lab_recording_stats_label *const *labels,
                                        int count, struct lab_arena *arena,
                                        struct lab_analysis_result *result);

/* "gpu_usage": mean utilisation and power of each label's GPUs. */
void lab_recording_stats_chart_usage(const struct lab_recording_stats_label *labels, int count,
                                     struct lab_arena *arena, struct lab_analysis_result *result);

#endif
