/* analysis_training_words.h: figures of the laws of training, put in words. All lie in the
 * arena. */
#ifndef LAB_ANALYSIS_TRAINING_ANALYSIS_TRAINING_WORDS_H
#define LAB_ANALYSIS_TRAINING_ANALYSIS_TRAINING_WORDS_H

#include "analysis/training/analysis_training.h"
#include "base/mem.h"

/* Beside any verdict on simulated devices that sum. */
#define LAB_TRAINING_SIMULATED_SUMS                                                                \
    "Simulated sums go through host memory: of GPUs that have NVLink this says nothing."

const char *lab_training_count(double value, struct lab_arena *arena);  /* "54.4 k", "2.02 M" */
const char *lab_training_step(double seconds, struct lab_arena *arena); /* "16.8 ms" */
/* "1.35× [1.20, 1.52]" */
const char *lab_training_times(const struct lab_training_speedup *speedup, struct lab_arena *arena);
/* "from 9.1 M on [7.2 M, 12 M]", "never, up to 2048", "can't be told: …": of parameters or of a
 * batch. */
const char *lab_training_break_even_figure(const struct lab_training *training,
                                           const struct lab_training_break_even *even, bool batch,
                                           struct lab_arena *arena);
/* "by the law of these points 2 devices begin to pay near 9.1 M parameters in 6 layers [7.2 M, 12
 * M] at batch 128", "where 2 devices begin to pay at batch 128 can't be told: …"; `where` as it
 * stands there. */
const char *lab_training_break_even_words(const struct lab_training *training,
                                          const struct lab_training_break_even *even, bool batch,
                                          int devices, const char *where, struct lab_arena *arena);
/* Both, "for this model" and at this batch; over parameters only where several models were run. */
const char *lab_training_break_evens_words(const struct lab_training *training,
                                           const struct lab_training_work *work,
                                           struct lab_arena *arena);
/* "its batch is 4.0 times beyond what was run"; NULL = it is within. */
const char *lab_training_beyond(const struct lab_training_speedup *speedup,
                                const struct lab_training *training, struct lab_arena *arena);

#endif
