/* comparison_result.h: comparisons as a result that reports show: a part for each set but the
 * first, with its points, what differs, and a chart of the changes. */
#pragma once

#include "analysis/analysis.h"
#include "analysis/comparison/comparison.h"

/* It refers to the comparisons, and lies in the arena. */
struct lab_analysis_result lab_comparison_result(const struct lab_comparison *comparisons,
                                                 int count, struct lab_arena *arena);
