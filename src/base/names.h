/*
 * names.h: names of things that stand beside each other, shortened to what tells them apart. A
 * study's runs share most of their names; where those are cut to fit, all that is left is what they
 * share.
 */
#pragma once

#include "base/mem.h"

/*
 * "gpu0_numa1_vit2x2x64_batch_size8" and "gpu0_numa2_vit2x2x64_batch_size8" become "numa1" and
 * "numa2": terms that all names have are left out, well-known keys are abbreviated ("b8", "512
 * MiB"). Names that fit into so many columns stay as they are, all of them; so do those that would
 * no longer differ. NULL and "" among the names are passed over. The array and its texts live as
 * long as arena and names.
 */
const char **lab_names_shorten(const char *const *names, int count, int columns,
                               struct lab_arena *arena);
