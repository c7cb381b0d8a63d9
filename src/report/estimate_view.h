/*
 * estimate_view.h: studies and plans as report/estimate.h shows them: which run takes how
 * long, and how that is known.
 */
#pragma once

#include "load/study_view.h"
#include "model/plan.h"
#include "report/estimate.h"

/* Of a study on disk. `history` is the one that the view was read with. Lives in the arena. */
struct lab_report_estimate lab_estimate_of_study(const struct lab_study_view *view,
                                                 const struct lab_history *history,
                                                 struct lab_arena *arena);

/* Of one that hasn't begun. */
struct lab_report_estimate lab_estimate_of_plan(const struct lab_plan *plan,
                                                const struct lab_history *history,
                                                struct lab_arena *arena);

/* What an open study's samples say of its devices' memory: so many items, in its arena; 0 =
 * nothing. */
int lab_estimate_memory(const struct lab_study_file *file,
                        struct lab_report_estimate_memory **ret_items);
