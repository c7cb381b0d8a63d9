/*
 * advise_training.h: how many devices to train a model on, by the law that a study's runs
 * were fitted with: speed-ups of 2, 4, … devices with their intervals, where they begin to pay, and
 * what that rests on.
 */
#ifndef LAB_ADVISE_ADVISE_TRAINING_H
#define LAB_ADVISE_ADVISE_TRAINING_H

#include "advise/training_known.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/tty/console.h"

struct lab_training_question {
    const char *model;             /* "mlp_50-1024-1024-3_batch64": the workload's label */
    struct lab_training_work work; /* on one device */
    const char *run;               /* the study that would tell, as a command line */
};

/* By a law; a part of it that was measured is told as well. */
void lab_advise_training(const struct lab_console *console, struct lab_arena *arena,
                         const struct lab_training_question *question,
                         const struct lab_training_known *known);
/* Without one: what the published rule says, and which study would tell. `why_none`: a sentence. */
void lab_advise_training_nothing(const struct lab_console *console, struct lab_arena *arena,
                                 const struct lab_training_question *question,
                                 const char *why_none);

#endif
