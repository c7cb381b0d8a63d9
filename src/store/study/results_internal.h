/* results_internal.h: parts of results.json, each a file. */
#pragma once

#include "store/study/results.h"

/* A list; empty where it reported nothing. Lives in the arena, or as long as `metrics`. */
const struct lab_value *results_metrics(struct lab_results_metrics *metrics,
                                        struct lab_store *store, const struct lab_run *run,
                                        struct lab_arena *arena);
