/*
 * command/command.h: the parts of the workload `command`, which runs a program of the user's.
 *
 *   words.c        the command as the words that the program is given
 *   fill.c         {placeholders} in them
 *   environment.c  variables that tell the program where it runs
 *   number.c       a number in a line
 *   pattern.c      numbers read from a line by a pattern
 *   object.c       those of a line that is JSON or a Python dictionary
 *   line.c         a line as words, numbers and marks
 *   meaning.c      what its words mean
 *   units.c        units behind numbers, or in names
 *   subject.c      what such a line is about
 *   announced.c    what the lines behind one are about
 *   item.c         a number of such a line, and what stands around it
 *   judge.c        what it is: a step, an epoch, a value, nothing
 *   printed.c      those of a line as training programs print it
 *   table.c        those of a row, by the names above it
 *   cells.c        those of a table of names and values
 *   names.c        one spelling and one unit for all values of a name
 *   form.c         what the numbers of a line mean
 *   kept.c         that of lines before, for the next like them
 *   suggest.c      a pattern for a program of which no value is read
 *   rank.c         the label of the rank that printed a line
 *   error.c        a line that says what a program died of
 *   batch.c        values on their way to who listens
 *   log.c          values of a program's kept output (program_log.h)
 *   stream.c       what the program prints, cut into lines
 *   metrics.c      those as values
 */
#pragma once

#include "base/value.h"
#include "workload/workload.h"

struct command_config { /* NULL = not given */
    struct lab_value *command, *env, *metrics, *matrix;
};

/* A scalar as a program is given it: text as it is, numbers with the fewest digits. */
void command_add_scalar(const struct lab_value *value, struct lab_str *out);
bool command_is_scalar(const struct lab_value *value);

/* --- words.c --- */

/*
 * Words of a text as a shell would split it: blanks separate, '…' is as it stands, in "…" and
 * outside a backslash takes the next character as it is. Nothing is expanded, and what only a shell
 * could do (pipes, redirections) is refused. A list is its words. `ret_words` ends with NULL, has
 * one word at least and lives in the arena.
 */
int command_words(const struct lab_value *command, struct lab_arena *arena, const char ***ret_words,
                  int *ret_count, struct lab_err *err);

/* --- fill.c --- */

/* Fails unless each {name} in the text is one of our own or a key of the matrix with one value. */
int command_check_text(const char *what, const char *text, const struct lab_value *matrix,
                       const struct lab_value *place, struct lab_err *err);

/* Fails unless it is a map whose keys can be placeholders. `matrix` may be NULL. */
int command_check_matrix(const struct lab_value *matrix, struct lab_err *err);

/* Appends the (checked) text with its placeholders filled; a key of the matrix goes before ours. */
void command_fill(const char *text, const struct lab_value *matrix, const struct lab_rank *rank,
                  struct lab_str *out);

/* Whether {key} is in the text. */
bool command_text_uses(const char *text, const char *key);

#define COMMAND_GPU_IDS   "gpu_ids"
#define COMMAND_GPU_COUNT "gpu_count"

/* Where the rank runs; NULL = nobody says. */
const struct lab_device_ref *command_place(const struct lab_rank *rank);
/* All devices that its program is given: the gang's, or that one. */
int command_place_count(const struct lab_rank *rank);
const struct lab_device_ref *command_place_at(const struct lab_rank *rank, int index);

/* --- environment.c --- */

int command_check_env(const struct lab_value *env, const struct lab_value *matrix,
                      struct lab_err *err);

/* A whole NVIDIA GPU, or a MIG instance; accepts NULL. */
bool command_is_cuda(const struct lab_device_ref *ref);

/* What the subprocess is given: "K=V" to set, "K" to take away; NULL-terminated, in the arena. */
const char **command_environment(const struct command_config *config, const struct lab_rank *rank,
                                 struct lab_arena *arena);

/* --- number.c --- */

bool command_is_word(char c);

enum command_groups { /* of three digits: 1,234,567 */
                      COMMAND_UNGROUPED,
                      COMMAND_GROUPED,
                      COMMAND_EITHER,
                      COMMAND_COMMA /* or a decimal comma, and no point: 1,5 and 0,532 */
};

/* The number at `place`: 3, -1.5e-3, nan or inf. Returns where it ends, or `place` where there is
 * none. Looks at few bytes, however long the row of digits. */
size_t command_number(const char *line, size_t length, size_t place, enum command_groups groups,
                      double *ret_value);

/* "loss=1,5 acc: 0,91": decimal commas, where the line has no decimal point; not "1,5,7", nor
 * "1,234". */
bool command_line_has_comma(const char *text, size_t length);

/* --- what a line says --- */

struct command_value {
    const char *name; /* lives until `found` returns */
    const char *unit; /* of static storage; "" = none */
    double value;
    double step;   /* that it belongs to; NaN = unknown */
    int rank;      /* that printed it; -1 = the program doesn't say */
    bool by_epoch; /* the step counts epochs */
};
typedef void command_found(void *state, const struct command_value *value);

bool command_is_step(const char *name);   /* "iter", "global_step" */
bool command_is_epoch(const char *name);  /* "epoch" */
bool command_is_global(const char *name); /* "global_step" */

struct command_progress { /* of one rank, from line to line; zeroed = nothing was read yet */
    bool has_epoch, has_step, has_part;
    double epoch, first_epoch, step, total; /* total 0 = unknown */
    double epochs_total, epochs_first;      /* of lines that say how many there are; 0 = none did */
    bool has_fraction;                      /* an epoch was one */
    bool within;                            /* lines name their rank among their values */
    double printed, printed_epoch, base;    /* the step as it was printed, and those before it */
    double printed_total;                   /* of that; 0 = none was */
    double gap, gap_most;            /* between printed steps of an epoch: the last, the most */
    double epoch_start, epoch_steps; /* its first step; how many the one before had; 0 = none */
    double last_printed, last_span;  /* of the epoch before: its last step, as printed; the steps
                                        from its first line to its last */
    bool has_last;                   /* there was one before */
    bool restarts, goes_on; /* what it did when an epoch began; restarting once is enough */
    bool evaluates;         /* its bars, since the epoch's steps were done */
    double part, wraps;     /* the share of the epoch that is done, and how often it began anew */
    bool has_given, has_bar;
    double given;          /* an object's epoch */
    double bar, bar_total; /* of a bar by itself: the step where nothing else counts */
};

#define COMMAND_RANKS_MAX 65536

struct command_reading { /* of a program; zeroed = nothing was read yet. Steps of ranks don't mix */
    struct command_progress *ranks; /* by rank + 1: the first is of lines without a label */
    int rank_count;                 /* of `ranks` */
    int rank;                       /* of the line that is being read; -1 = it has no label */
    struct command_forms *forms;    /* of its lines; NULL = none yet (form.h) */
    struct command_table *table;    /* that it prints; NULL = none yet */
    struct command_cells *cells;    /* of a table that has begun; NULL = none has */
    bool ruled;                     /* the line before is of dashes */
    struct command_names *names;    /* of its values; NULL = none yet */
    struct command_draft *draft;    /* of the line that is being read; NULL = none was */
    uint64_t matched;               /* of the user's patterns, a bit each: it read a line */
    int64_t split;                  /* lines of several ranks that ran together */
    int64_t full;                   /* lines with more numbers than are read */
    size_t label_bytes;             /* of srun's labels; 0 = none was seen */
    const char *announced;          /* by the line before: how names of this one's values begin */
    const char *head;               /* of the line that counted last: "test_"; NULL = none */
};

/* The progress of the line that is being read, which has this rank from here on; -1 = as it was. */
struct command_progress *command_reading_of(struct command_reading *reading, int rank);
void command_reading_release(struct command_reading *reading);
void command_forms_release(struct command_forms *forms);

/* --- names.c --- */

/* The name as the program first spelled it, in either case. */
const char *command_names_spell(struct command_names **names, const char *text);
void command_names_release(struct command_names *names);

/* Steps, else epochs and the part of the one that runs, else the steps of a bar, else NaN. */
double command_progress_step(const struct command_progress *progress, bool *ret_by_epoch);

/* --- rank.c --- */

/* The bytes of the label that the line begins with; 0 = it has none. Rank -1 = it names none. */
size_t command_rank_label(const char *line, size_t length, int *ret_rank);

/* Whether neither the line nor one that differs in its numbers alone has a label: it counts by a
 * name first, "step 5: …", or begins with numbers: a row of a table, a date. */
bool command_line_is_bare(const char *line, size_t length);

/* Of a label that is srun's: those before its ':', which all of its labels have; else 0. */
size_t command_label_bytes(const char *line, size_t label);

/* Where another line begins, of two ranks whose lines ran together; 0 = nowhere. `label_bytes`: of
 * srun's labels, where it put some; else 0. */
size_t command_line_two(const char *text, size_t length, size_t label_bytes);

/* --- error.c --- */

/* Whether the line ends a Python traceback, "torch.cuda.OutOfMemoryError: …", or refuses arguments,
 * "train.py: error: …"; not where a launcher only tells that a process of its own failed. */
bool command_is_error(const char *line, size_t length);

#define COMMAND_LAST_MAX   640 /* bytes of a program's last words */
#define COMMAND_ERRORS_MAX 8   /* of ranks */

struct command_error {
    int rank;                        /* that its line names; -1 = none */
    bool traceback;                  /* it ends one */
    int lines_after;                 /* of the same rank, with values */
    char text[COMMAND_LAST_MAX + 1]; /* without the rank's label; "" = the traceback goes on */
};

struct command_errors { /* of a program's ranks, the first of each; zeroed = none */
    struct command_error items[COMMAND_ERRORS_MAX];
    int count;
    int root;     /* the rank that the launcher says failed first, + 1; 0 = it doesn't */
    bool summary; /* the launcher begins to say so */
};

void command_errors_line(struct command_errors *errors, const char *line, size_t length);
/* The rank printed a value after its error. */
void command_errors_go_on(struct command_errors *errors, int rank);
/* The error that the others follow from, and its rank, -1 = unknown; NULL = there is none. */
char *command_errors_first(struct command_errors *errors, int *ret_rank);

/* The line without blanks around it, if it has anything else. */
void command_keep_line(char last[COMMAND_LAST_MAX + 1], const char *text, size_t length);

/* --- pattern.c --- */

#define COMMAND_NUMBERS_MAX 16 /* of one pattern */

struct command_pattern;

/*
 * "Iter {iter} loss {loss}". {name} is a number, * anything at all, as little as will do, and {{ a
 * brace. Blanks, ':', '=' and ',' are all alike, and as many as there are: the pattern reads "Iter
 * 120 loss 3.21" as well as "Iter 120: loss=3.21". The rest is literal. It may stand anywhere in
 * the line, but neither begins nor ends inside a word. A number is 3, -1.5e-3, 1,234,567, 1,5
 * where the line has no decimal point, nan or inf, and never a part of something like 1.2.3.
 */
int command_pattern_read(const char *text, struct lab_arena *arena,
                         struct command_pattern **ret_pattern, struct lab_err *err);

/* Appends to `values` the pattern's numbers in order; their names are in command_pattern_name. */
bool command_pattern_match(const struct command_pattern *pattern, const char *line, size_t length,
                           double values[COMMAND_NUMBERS_MAX]);
int command_pattern_count(const struct command_pattern *pattern);
const char *command_pattern_name(const struct command_pattern *pattern, int index);

/* --- metrics.c --- */

#define COMMAND_LINE_MAX 65536 /* bytes of a line that are looked at */

struct command_reader;

/* From {json: bool, patterns: list of texts, printed: bool, direction: map}, or NULL; the last is
 * only checked (model/reported_metric.h). */
int command_reader_make(const struct lab_value *metrics, struct lab_arena *arena,
                        struct command_reader **ret_reader, struct lab_err *err);

/* Calls `found` for each value of a line. Whether it has any, or counts steps. */
bool command_reader_line(const struct command_reader *reader, struct command_reading *reading,
                         const char *line, size_t length, command_found *found, void *state);

/* What a program's lines say that ended: how many epochs it did, where it counts steps of them. */
void command_reading_end(struct command_reading *reading, command_found *found, void *state);

/* Whether it reads anything at all: not if all three ways are switched off. */
bool command_reader_is_on(const struct command_reader *reader);

/* --- batch.c --- */

#define COMMAND_BATCH_MOST 1024

struct command_batch { /* metrics that wait to be handed on, with texts of their own */
    struct lab_reported_metric items[COMMAND_BATCH_MOST];
    size_t names[COMMAND_BATCH_MOST]; /* where in `texts` */
    size_t count;
    struct lab_str texts;
};

void command_batch_init(struct command_batch *batch);
void command_batch_release(struct command_batch *batch);
/* There must be room for it: count < COMMAND_BATCH_MOST. */
void command_batch_add(struct command_batch *batch, const struct command_value *value,
                       int64_t time_ns);
/* All of them, until the next is added; the batch is empty then. */
const struct lab_reported_metric *command_batch_take(struct command_batch *batch,
                                                     size_t *ret_count);

/* --- suggest.c --- */

struct command_suggestions; /* lives as long as the arena */

struct command_suggestions *command_suggestions_make(struct lab_arena *arena);
void command_suggestions_add(struct command_suggestions *all, const char *line, size_t length);

/* A sentence with a line of the output, and the pattern that would read it where there is one. */
const char *command_suggestions_text(const struct command_suggestions *all,
                                     struct lab_arena *arena);

struct command_lines { /* zeroed = empty */
    char *text;
    size_t length, capacity;
    size_t seen;    /* bytes of the line that is kept, which were given before its end; 0 = none */
    bool redrawn;   /* a \r stands before it: it is drawn over what was there */
    bool over;      /* the line that is kept is longer */
    int64_t longer; /* lines that were longer than COMMAND_LINE_MAX */
};

/*
 * Cuts a stream into lines, at \n and \r, calls `line` for each that isn't empty, without escape
 * sequences of terminals; what comes behind COMMAND_LINE_MAX bytes is dropped. Ending hands over a
 * last line without its end, releases, and returns how many lines were longer.
 */
void command_lines_add(struct command_lines *lines, const char *bytes, size_t length,
                       void (*line)(void *state, const char *text, size_t length), void *state);
/* Gives a bar whose end hasn't come, once: tqdm prints that with the next one. */
void command_lines_look(struct command_lines *lines,
                        void (*line)(void *state, const char *text, size_t length), void *state);
int64_t command_lines_end(struct command_lines *lines,
                          void (*line)(void *state, const char *text, size_t length), void *state);
