/* plan.c: names of what keeps a phase's ranks apart. */
#include "model/plan.h"

const char *const lab_plan_mitigations[] = {"process",      "affinity", "numa", "topology",
                                            "tuning_cache", "mps",      NULL};
