/*
 * recording_stats_chart.h: what recordings tell of their GPUs as pictures. Each function adds
 * one chart to a result, if there is something to draw. Everything lies in the arena.
 */
#pragma once

#include "analysis/recording/recording_stats.h"

/* "per_gpu_memory_breakdown": a panel for each GPU, a line for each recording. 1×2 for 2 GPUs, 2×2
 * for 4, 2×3 for 6, 2×4 for 8. Of many that are alike all the time, a note instead. */
void lab_recording_stats_chart_breakdown(const struct lab_recording_stats *all_stats, int count,
                                         struct lab_arena *arena,
                                         struct lab_analysis_result *result);

/* "gpu_load_balance_analysis": left the memory of each GPU, right the coefficient of variation of
 * each metric beside the bounds of its grades. Of several recordings, bars stand next to each
 * other; of many, those of the first. */
void lab_recording_stats_chart_balance(const struct lab_recording_stats *all_stats, int count,
                                       struct lab_arena *arena, struct lab_analysis_result *result);

/* Whether memory is the same of all labels and all the time, within 1%. */
bool lab_recording_stats_is_alike(const struct lab_recording_stats_label *const *labels, int count,
                                  struct lab_arena *arena);

/* "gpu_memory_comparison": memory of all GPUs together by label, mean and peak; whiskers span the
 * recordings of a label. */
void lab_recording_stats_chart_comparison(const struct lab_recording_stats_label *const *labels,
                                          int count, struct lab_arena *arena,
                                          struct lab_analysis_result *result);

/* "gpu_memory_timeline": the same over time, the first recording of each label. Of many labels,
 * both show the first. */
void lab_recording_stats_chart_timeline(const struct lab_recording_stats_label *const *labels,
                                        int count, struct lab_arena *arena,
                                        struct lab_analysis_result *result);

/* "gpu_usage": mean utilisation and power of each label's GPUs. */
void lab_recording_stats_chart_usage(const struct lab_recording_stats_label *labels, int count,
                                     struct lab_arena *arena, struct lab_analysis_result *result);
