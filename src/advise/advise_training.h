/*
 * advise_training.h: how many devices to train a model on, by what a study measured or its cost
 * model predicts within the tested range.
 */
#pragma once

#include "advise/training_known.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/tty/console.h"

struct lab_training_question {
    const char *model;             /* "mlp_50-1024-1024-3_batch64": the workload's label */
    struct lab_training_work work; /* on one device */
    const char *run;               /* the study that tests it, as a command line */
};

void lab_advise_training(const struct lab_console *console, struct lab_arena *arena,
                         const struct lab_training_question *question,
                         const struct lab_training_known *known);
/* Without a study: what the published rule says, and which study to run. `why_none`: a sentence. */
void lab_advise_training_nothing(const struct lab_console *console, struct lab_arena *arena,
                                 const struct lab_training_question *question,
                                 const char *why_none);
