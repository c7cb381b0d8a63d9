/* analysis_training_words.h: figures of the laws of training, put in words. All lie in the
 * arena. */
#ifndef LAB_ANALYSIS_ANALYSIS_TRAINING_WORDS_H
#define LAB_ANALYSIS_ANALYSIS_TRAINING_WORDS_H

#include "analysis/analysis_training.h"
#include "base/mem.h"

const char *lab_training_count(double value, struct lab_arena *arena);  /* "54.4 k", "2.02 M" */
const char *lab_training_step(double seconds, struct lab_arena *arena); /* "16.8 ms" */
/* "1.35× [1.20, 1.52]" */
const char *lab_training_times(const struct lab_training_speedup *speedup, struct lab_arena *arena);
/* "from 9.1 M on [7.2 M, 12 M]", "never up to 2048": of parameters or of a batch. */
const char *lab_training_even_figure(const struct lab_training_even *even, bool batch,
                                     struct lab_arena *arena);
/* "2 devices begin to pay near 9.1 M parameters [7.2 M, 12 M] at batch 128"; `where` as it
 * stands there. */
const char *lab_training_even_words(const struct lab_training_even *even, bool batch, int devices,
                                    const char *where, struct lab_arena *arena);
/* "its batch is 4.0 times beyond what was run"; NULL = it is within. */
const char *lab_training_beyond(const struct lab_training_speedup *speedup,
                                const struct lab_training *training, struct lab_arena *arena);

#endif
