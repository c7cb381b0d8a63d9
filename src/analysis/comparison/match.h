/* match.h: comparison's own: which points of two sets are the same thing. */
#pragma once

#include "analysis/comparison/comparison.h"

/* Fills in base, other, points without claims, missing, added, facts and axes. */
void lab_comparison_match(const struct lab_point_set *base, const struct lab_point_set *other,
                          struct lab_arena *arena, struct lab_comparison *ret_comparison);
