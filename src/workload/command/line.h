/*
 * command/line.h: a line of a program's output, cut into words, numbers and marks, for those who
 * read values out of it (printed.c) and who suggest a pattern that does (suggest.c).
 */
#pragma once

#include "workload/command/command.h"

#include <string.h>

#define COMMAND_TOKENS_MAX 512

enum command_kind { COMMAND_WORD, COMMAND_NUMBER, COMMAND_MARK };

enum { /* what a word means; LAST = its part after the last '_' does */
       COMMAND_STEP = 1,
       COMMAND_EPOCH = 2,
       COMMAND_PROSE = 4, /* no name of the number after it */
       COMMAND_KNOWN = 8, /* only a training prints it; also as a part between '_', '/' and '.' */
       COMMAND_STEP_LAST = 16,
       COMMAND_EPOCH_LAST = 32,
       COMMAND_OUTSIDE = 64, /* no part of a name that it begins; without PROSE: a log's level */
       COMMAND_IS = 128,     /* none of a name that it ends: "loss is nan" */
       COMMAND_EVALUATION = 256, /* "val", "Test"; as a part, too */
       COMMAND_TRAINING = 512,
       COMMAND_SAYS = 1024,    /* begins a sentence: "using loss function 2" */
       COMMAND_SETTING = 2048, /* of what is named before it: "loss scale", "loss_weight" */
       COMMAND_MARKED = 4096,  /* known where ':' or '=' follows: "learn: 0.6"; as a part, too */
       COMMAND_CONFIG = 8192,  /* settings follow it: "Namespace(lr=0.1)", "config: lr=0.1" */
       COMMAND_MEMORY = 16384, /* "gpu_mem"; as a part, too */
       COMMAND_FOLDER = 32768, /* what stands in it is known: "metrics/train/Dice" */
       COMMAND_GLOBAL = 65536, /* of all epochs: "global step" */
       COMMAND_BEST = 1 << 17, /* what follows was before: "Best epoch: 5, val_loss 1.1" */
       COMMAND_RESTORED = 1 << 18,
       COMMAND_GLOBAL_STEP = COMMAND_GLOBAL | COMMAND_STEP,
       COMMAND_LEVEL = COMMAND_OUTSIDE,
       COMMAND_PREPOSITION = COMMAND_OUTSIDE | COMMAND_PROSE,
       COMMAND_OF = COMMAND_PREPOSITION | COMMAND_IS,
};

/* --- meaning.c --- */

/* In either case; letters of `word` are small. */
bool command_is_same(const char *word, const char *text, size_t length);
/* What a word means by itself; 0 = nothing. */
unsigned command_meaning_look_up(const char *text, size_t length);
/* The same with its parts. `split`: it may have some. */
unsigned command_word_meaning(const char *text, size_t length, bool split);

/* --- line.c --- */

struct command_unit {        /* of a kind all values are kept in one: 2.5s and 800ms are alike */
    const char *text, *unit; /* as it is printed, and kept; NULL = of no value: "1 day, 2:03:04" */
    double scale;            /* from the one to the other */
    const char *name;        /* of a value that has no other; NULL = it needs one */
    const char *rate;        /* of 1000 / the value, where it has that name; NULL = it is none */
};

struct command_token { /* small: a line has many */
    uint32_t start, end;
    unsigned char kind;              /* enum command_kind */
    bool attached;                   /* to the token before it: no blank lies between */
    uint32_t meaning;                /* WORD */
    double value;                    /* NUMBER; of a unit: what its prefix multiplies, "kit/s" */
    const struct command_unit *unit; /* WORD or MARK that may be one, where it stands; or NULL */
};

struct command_line {
    const char *text;
    size_t length;
    struct command_token tokens[COMMAND_TOKENS_MAX];
    int count;
    enum command_groups groups; /* in which its numbers are read */
};

/* Whether the line has a word that lines of trainings have: the others need not be cut. */
bool command_line_is_candidate(const char *text, size_t length);

void command_line_cut(struct command_line *line, const char *text, size_t length);

#define COMMAND_BAR_BYTE '\xe2' /* that the characters of bars begin with: "━━━ 50/100" */

static inline bool command_line_is(const struct command_line *line, int t, enum command_kind kind) {
    return t >= 0 && t < line->count && line->tokens[t].kind == kind;
}

/* What K, M, B, G or T behind a number multiplies it with; 0 = it is none of them. */
double command_suffix(char c);
double command_line_suffix(const struct command_line *line, int t);

/* Whether the name is of an amount of memory; K, M, G or T as its unit, NULL = it is none. */
bool command_is_memory(const char *name, size_t length);
const char *command_memory_letter(char c);
/* Of a unit of memory: "GB", "GiB", "G"; 0 = it is none. */
double command_unit_bytes(const char *unit);

/* The unit that is printed so; NULL = there is none. */
const struct command_unit *command_unit_find(const char *text, size_t length);
/* The unit that the word is by itself, as a name may be: "tok/s"; or NULL. */
const struct command_unit *command_line_unit(const struct command_line *line, int t);
/* "tokens per second": the unit of the three words that begin at `t`; or NULL. */
const struct command_unit *command_line_per_second(const struct command_line *line, int t);

/* --- announced.c --- */

#define COMMAND_ANNOUNCED_BEST "best_"

/* What names of the values behind the line begin with, up to a line that has none; of the best, of
 * the next line alone. NULL = it says nothing of them. `valued`: it has values itself. */
const char *command_line_announces(const char *line, size_t length, bool valued);
/* "Averaged stats: loss: 2.3 (2.5)": means, of an evaluation where that came last (DETR, MAE). */
bool command_line_is_average(const char *line, size_t length);

/* --- subject.c --- */

/* Whether what follows the word at `t` are settings: "Namespace(lr=0.1, …)", "config: {…}". */
bool command_line_is_settings(const struct command_line *line, int t);
/* Whether the number at `t` is a line of a module: "[olmo.train:1000]", "callbacks.py:157 >>". */
bool command_line_is_place(const struct command_line *line, int t);
/* "… | INFO | trainer:train_loss:120 -": the same, whatever the function's name means. */
bool command_line_is_logged(const struct command_line *line, int t);
/* Whether words from `t` on go on as a sentence does: "install 4 packages". */
bool command_line_is_sentence(const struct command_line *line, int t);
/* "32%|███": the share of a bar. */
bool command_line_is_share(const struct command_line *line, int t);
/* "Epochs: 50%|██ | 1/2 [00:02<00:02, 2.0s/it]": it counts epochs, around others of steps. */
bool command_line_is_epoch_bar(const struct command_line *line);
/* A bar of a training, by itself: others say what they are of, "Loading: 100%|███| 3/3 [00:01]". */
bool command_line_is_lone_bar(const struct command_line *line);
/* What all values of the line from the words at `t` on are of: "val_" of "Validation: loss 0.9", ""
 * of "Train: loss 0.5". NULL = they say nothing of that. `ret_end`: the values before that token,
 * if there are any; of "val(loss=2.6), lr=0.1" its bracket. */
const char *command_line_head(const struct command_line *line, int t, int *ret_end);
/* "train/val": of both. */
bool command_line_is_both(const struct command_line *line, int t);
/* The same of words with these meanings. */
const char *command_line_head_of(const struct command_line *line, int first, unsigned meanings);

/* "tot_loss" of "tot_loss[loss=2.1, lr=3]", where `t` is in the brackets; -1 = in none. */
int command_line_group(const struct command_line *line, int t);
/* What the values are of that `t` closes: "val_" of "loss=2.6 acc=0.2 (val)"; NULL = none. */
const char *command_line_group_end(const struct command_line *line, int t);

struct command_recall {   /* what a line says of before: "Best epoch: 5, val_loss 1.1" */
    unsigned word;        /* BEST, RESTORED; 0 = none has come */
    bool numbered;        /* a number has come since: "Best val_loss 2.1 at epoch 2" */
    bool counted, valued; /* an epoch or a step that isn't recalled has come; a value has */
    const char *names;    /* what values begin with from here on */
};

/* "Model saved with loss 0.7": what follows was printed before. */
bool command_line_is_saved(const struct command_line *line, int t);
/* "'val_loss' reached 0.3": whether `t` is that word, behind a name in quotes. */
bool command_line_is_reached(const struct command_line *line, int t);
/* Takes in the token at `t`. */
void command_line_recall(const struct command_line *line, int t, struct command_recall *recall);
/* Whether a number that ends before `next` is an epoch or a step of before; `counts`: it is one. */
bool command_line_recalls(const struct command_line *line, int next, bool counts,
                          struct command_recall *recall);
/* "| test_loss | 0.16 |": whether `t` is the mark between a name and its value. */
bool command_line_is_cell(const struct command_line *line, int t);

/* "[100] loss=6.5": a step, where nothing else is. */
bool command_line_is_alone(const struct command_line *line, int t);
/* "step: [0, 10]": the first of a list. */
bool command_line_is_element(const struct command_line *line, int t);
/* "Throughput: 0: 3086.4", "loss[0]: 2.5": what ends before `next` names the value behind it. */
bool command_line_is_key(const struct command_line *line, int next);
/* "Loss 1.5 (1.6)": the number in the brackets that begin at `t`; -1 = none is alone there. */
int command_line_mean(const struct command_line *line, int t);
/* The unit of all values behind the '|' at `t`: "time (ms) |"; NULL = it ends no such heading. */
const struct command_unit *command_line_heading(const struct command_line *line, int t);
/* "[1,  2000] loss: 2.2": an epoch and a step. */
bool command_line_is_pair(const struct command_line *line, int t);

/* '\0' = it is no mark */
static inline char command_line_mark(const struct command_line *line, int t) {
    return command_line_is(line, t, COMMAND_MARK) ? line->text[line->tokens[t].start] : '\0';
}

static inline unsigned command_line_meaning(const struct command_line *line, int t) {
    return line->tokens[t].meaning;
}

/* "None", "n/a": no value. */
bool command_line_is_none(const struct command_line *line, int t);

/* Whether it is that word, spelled so. Inline, since the word is mostly known to the compiler. */
static inline bool command_line_is_word(const struct command_line *line, int t, const char *word) {
    if (!command_line_is(line, t, COMMAND_WORD))
        return false;
    const struct command_token *token = &line->tokens[t];
    return token->end - token->start == strlen(word) &&
           memcmp(line->text + token->start, word, strlen(word)) == 0;
}
