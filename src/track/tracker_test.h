/* tracker_test.h: a synthetic run, to see that a tracker's files arrive. */
#pragma once

#include "track/tracker.h"

#define LAB_TRACK_TEST_PROJECT "gpulab-track-test"
#define LAB_TRACK_TEST_STEPS   100 /* rows of the curve; and a sample of two GPUs with each tenth */

/* Sends it from `folder`, which stands for a study's; `ret_place` is the file, in the arena. */
int lab_track_test(const struct lab_tracker *tracker, const char *folder, struct lab_arena *arena,
                   const char **ret_place, struct lab_err *err);
