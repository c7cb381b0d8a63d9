/*
 * command/form.h: what the numbers of a line mean. Lines of a program differ in little but their
 * numbers: what one of them means is worked out once (printed.c, object.c), and kept.
 */
#pragma once

#include "workload/command/command.h"

#define COMMAND_FIELDS_MAX 4096
#define COMMAND_FORM_MAX   4096 /* numbers of a line */

enum { /* what a number is */
       COMMAND_IS_EPOCH = 1,
       COMMAND_IS_STEP = 2,
       COMMAND_IS_PART = 4,   /* of an epoch: "[640/60000 (1%)]" */
       COMMAND_IS_VALUE = 8,  /* it has a name */
       COMMAND_IS_KNOWN = 16, /* that only trainings print: a value even where nothing is counted */
       COMMAND_IS_RANK = 32,  /* if it can be one; else a value */
       COMMAND_IS_SHARE = 64, /* of another, in percent: "Accuracy: 9852/10000" */
       COMMAND_IS_WHOLE = 128,  /* only if it is: the epoch of "Train: 0 [50/1251 (4%)]", a step */
       COMMAND_IS_ENDING = 256, /* a part only where epochs are counted, else a step */
       COMMAND_IS_NAMED = 512,  /* counts by a name of its own: not "12/100" */
       COMMAND_IS_FRACTION = 1024, /* a SHARE of which 1 is all, as other values of its name */
       COMMAND_IS_GLOBAL = 2048,   /* a step of all epochs, before those of one */
       COMMAND_IS_RECALLED = 4096, /* an epoch or a step of before, maybe: "Best epoch: 5" */
       COMMAND_IS_INVERSE = 8192,  /* 1000 / what it says: "1.6s/it" as iterations/s */
};

struct command_field {
    const char *name, *unit;
    double scale;   /* from what is printed to the unit */
    int number, of; /* which of the line's; -1 = none */
    unsigned kind;
};

struct command_form {
    struct command_field *fields;
    int count;
    bool object;         /* JSON or a dictionary */
    bool bar;            /* of progress, by itself */
    bool evaluation;     /* its bars count no steps of the training */
    bool evaluated;      /* all of its values are of one */
    const char *head;    /* of an evaluation: how its names begin; NULL = it is none */
    bool global, ranked; /* one of its fields is; one names a rank */
};

struct command_draft { /* a form while it is made, with the line that it is made of; large */
    struct command_form form;
    struct command_field fields[COMMAND_FIELDS_MAX];
    double numbers[COMMAND_FORM_MAX];
    struct {
        uint32_t start, end;
    } places[COMMAND_FORM_MAX]; /* of the numbers, in order */
    int number_count;
    bool means;   /* of "2.3 (2.5)" the second is read; whoever makes it says so */
    bool full;    /* it has more fields than there is room for */
    bool lasting; /* another line with the same text between its numbers means the same */
    enum command_groups groups; /* in which its numbers are read */
    size_t length;              /* of `names` */
    char names[COMMAND_FIELDS_MAX * 64];
};

void command_draft_begin(struct command_draft *draft, enum command_groups groups);
/* Its index; -1 = there are too many, and the form will not last. */
int command_draft_number(struct command_draft *draft, size_t start, size_t end, double value);
/* The name is copied; false = there are too many. */
bool command_draft_add(struct command_draft *draft, const struct command_field *field);
/* The field's name with something before and after it; what it was where there is no room. */
void command_draft_rename(struct command_draft *draft, struct command_field *field,
                          const char *begin, const char *end);

/* Whether the line has values or counts steps or epochs. `found` NULL: it only counts. */
bool command_form_apply(const struct command_form *form, const double *numbers,
                        struct command_reading *reading, command_found *found, void *state);

/* Whether the line is an object; nothing is found in one that isn't whole. A key that counts
 * steps is the step of the others, else "epoch" is; the key "rank" is their rank. */
bool command_object_line(struct command_draft *draft, const char *line, size_t length);

/* A line as trainings print it, which may have no values. */
void command_printed_line(struct command_draft *draft, const char *text, size_t length);

/* Whether the line is one of COCO's evaluations: "Average Precision  (AP) @[ IoU=0.50 …". */
bool command_coco_line(struct command_draft *draft, const char *text, size_t length);

/* Whether the line is the head of a table, which is kept in `*table`: "epoch  train_loss  time"; or
 * one of other columns, which ends that table. */
bool command_table_head(struct command_table **table, const char *text, size_t length);
/* Whether the line begins as a row of it does. */
bool command_table_may_be_row(const struct command_table *table, const char *text, size_t length);
/* Whether the line is one. */
bool command_table_row(struct command_table *table, struct command_draft *draft, const char *text,
                       size_t length);

/* Whether the line is a row of a table of names and values; what it has is found at its end. */
bool command_cells_line(struct command_reading *reading, const char *text, size_t length,
                        command_found *found, void *state);

/*
 * One spelling and one unit for all values of a name; of a name that an object has twice, in either
 * case, the last value. What is printed for steps and for epochs are two: "loss", "loss_epoch".
 * Whether forms that were kept before hold no longer.
 */
bool command_names_settle(struct command_names **names, struct command_draft *draft);

/* --- those that are kept --- */

/* The form of the line, if it is the one that the last line's was followed by before; NULL = it
 * isn't. `bare`: one that no label stands before. */
const struct command_form *command_forms_next(struct command_forms *forms, bool bare,
                                              const char *text, size_t length,
                                              double numbers[COMMAND_FORM_MAX]);
/* The form that the line has, and its numbers; NULL = none that is kept. */
const struct command_form *command_forms_find(struct command_forms *forms, const char *text,
                                              size_t length, double numbers[COMMAND_FORM_MAX]);
/* `*forms` may be NULL at first. `bare`: no line of the form has a label. */
void command_forms_keep(struct command_forms **forms, const struct command_draft *draft, bool bare,
                        const char *text, size_t length);
