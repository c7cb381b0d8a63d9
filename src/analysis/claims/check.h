/*
 * check.h: claims that are shown together agree. A fault is a mistake of this program, not of who
 * reads: the weaker claim becomes inconclusive, and a sentence says so.
 */
#pragma once

#include "model/claim.h"

/*
 * By themselves: YES needs an interval beyond 0, an effect lies within its interval, the bound of
 * NO isn't below the effect. In pairs, where `pairs` is set: the same comparison has one effect and
 * one verdict, and no two kinds of claim state opposite effects of one subject against one
 * reference. Adds a sentence for each fault to a list in the arena that ends with NULL, or is
 * NULL.
 */
void lab_claims_check(struct lab_claim *const *claims, int count, bool pairs,
                      const char *const **faults, struct lab_arena *arena);
