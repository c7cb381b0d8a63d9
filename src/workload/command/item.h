/*
 * command/item.h: a number of a line as trainings print it, with its name and its unit.
 */
#pragma once

#include "workload/command/line.h"

struct command_item { /* a number, and what stands around it */
    double scale;
    int of;           /* "12/14": the token of 14; -1 = it has none */
    int first, words; /* tokens of its name; 0 = it has none */
    const char *name; /* where it comes from its unit; NULL = from its words */
    const char *unit;
    char before;     /* the mark before it, where it has no name; '\0' = it begins the line */
    bool marked;     /* ':' or '=' before it */
    bool headed;     /* its unit is the line's: "time (ms) | fwd: 12.3 | step: 5.6" */
    bool inverse;    /* the value is 1000 / what it says */
    bool percents;   /* "[640/60000 (1%)]" */
    bool ends;       /* "[640/60000]" behind the line's values */
    bool counts;     /* of a bar without end: "120it [00:05, 22it/s]" */
    int token, next; /* its own, and that after it */
};

/* The number at token `t`; false = none is there. */
bool command_item_read(const struct command_line *line, int t, struct command_item *item);

/* Whether one of its words is a known name: the last, or one that "on", "of" or "for" follow, or
 * any where a mark stands before the number; not "loss function 2", nor "loss scale: 2". */
bool command_item_is_known(const struct command_line *line, const struct command_item *item);

/* "Train loss 10 1.2345": whether the number at `t` is a step before the value. */
bool command_item_is_before_value(const struct command_line *line, int t);

/* --- judge.c --- */

/* What the last word of its name means; of a name of several, that one's last part counts. */
unsigned command_item_meaning(const struct command_line *line, const struct command_item *item);
/* What the number is: COMMAND_IS_…; 0 = nothing that is read. */
unsigned command_item_judge(const struct command_line *line, struct command_item *item);
/* "best loss: 0.3" */
bool command_item_is_best(const struct command_line *line, const struct command_item *item);
/* "'val_loss' reached 0.3 (best 0.3)": the second is the first, or of before. */
bool command_item_is_repeated(const struct command_line *line, const struct command_item *item,
                              const struct command_recall *recall);
