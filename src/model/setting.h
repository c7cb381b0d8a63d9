/*
 * model/setting.h: what a run of the user's program is called: by the keys of its matrix that vary
 * in the study, "lr=0.03, optimizer=adam"; by the word alone, "adam", where one key varies and its
 * values are words. Ids and files keep their long names.
 */
#pragma once

#include "base/mem.h"
#include "base/value.h"

struct lab_settings {
    const char **keys; /* those that vary, in the matrix's order */
    int key_count;
    const char **values; /* run × key; "" = the run has none */
    int run_count;
    bool bare; /* one key, whose values are all words */
};

/* `options`: each run's, a map; NULL = unknown. A run without a matrix makes no setting. */
struct lab_settings lab_settings_make(const struct lab_value *const *options, int count,
                                      struct lab_arena *arena);

/* "adam", "lr=0.03, optimizer=adam"; "" = nothing varies. */
const char *lab_setting_name(const struct lab_settings *settings, int run, struct lab_arena *arena);
/* Of a matrix with one setting, all of its keys: "max_iters=40, optimizer=adamw"; "" = none. */
const char *lab_setting_whole(const struct lab_value *matrix, struct lab_arena *arena);

/* "optimizer=adam" of one key; the value alone where that is enough. */
const char *lab_setting_value(const struct lab_settings *settings, int run, int key,
                              struct lab_arena *arena);

/* "train" of "python3 train.py" and "python3 -m train", "cat" of "cat out.txt"; one word at
 * least. */
const char *lab_program_name(const char *const *words, int count, struct lab_arena *arena);
/* Of a run's options; NULL = it has no command. */
const char *lab_setting_program(const struct lab_value *options, struct lab_arena *arena);
