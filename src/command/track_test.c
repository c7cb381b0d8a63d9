/*
 * track_test.c: `gpulab track-test TRACKER`: a synthetic run for a tracker, to see that it arrives.
 */
#include "command/command.h"

#include "base/tty/console.h"
#include "doc/doc.h"
#include "track/tracker_test.h"

static int track_test_run(const struct lab_command_call *call, int *ret_status,
                          struct lab_err *err) {
    const struct lab_tracker *tracker = lab_tracker_find(call->words[0], err);
    const char *place;
    (void)ret_status;
    if (!tracker || lab_track_test(tracker, ".", call->arena, &place, err) < 0)
        return -1;
    struct lab_doc *doc = lab_doc_open("Tracker", call->arena);
    lab_doc_text(doc, LAB_DOC_WHOLE, "%d steps of loss and accuracy, and samples of two GPUs: %s",
                 LAB_TRACK_TEST_STEPS, place);
    lab_doc_text(doc, LAB_DOC_WHOLE,
                 "Project %s, run track-test. Show it:", LAB_TRACK_TEST_PROJECT);
    lab_doc_code(doc, NULL, lab_tracker_view(tracker, ".", call->arena));
    lab_doc_data(doc, "tracker", lab_value_string(call->arena, tracker->name));
    lab_doc_data(doc, "file", lab_value_string(call->arena, place));
    lab_doc_data(doc, "project", lab_value_string(call->arena, LAB_TRACK_TEST_PROJECT));
    lab_doc_print(doc, call->console);
    return 0;
}

static const char *const *track_test_complete(struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int i = 0; lab_trackers[i]; i++)
        LAB_ADD(names, count, arena) = lab_trackers[i]->name;
    return names;
}

static const struct lab_manual_example examples[] = {
    {"gpulab track-test tensorboard", "then: tensorboard --logdir ./tensorboard"},
    {"gpulab track-test trackio", "then: trackio show"},
    {NULL},
};

const struct lab_command lab_command_track_test = {
    .name = "track-test",
    .summary = "send a synthetic curve to a tracker",
    .usage = "TRACKER",
    .description =
        "Writes one synthetic run in the tracker's format: 100 steps of a loss that falls, and "
        "samples of two GPUs. tensorboard and wandb write into the current folder, trackio into "
        "its inbox, mlflow to the server at $MLFLOW_TRACKING_URI. It shows whether they arrive "
        "where the tracker looks for them.",
    .min_words = 1,
    .max_words = 1,
    .examples = examples,
    .complete = track_test_complete,
    .run = track_test_run,
};
