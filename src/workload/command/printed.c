/*
 * command/printed.c: values as training programs print them, without a pattern:
 *
 *   Iter   100 | loss 3.4512 | ppl 31.5
 *   iter 100: loss 3.4, time 45ms, mfu 38%
 *   step 250: train loss 1.9, val loss 2.0
 *   Epoch 1/10, Iter 100/500, Loss: 3.4
 *   Epoch: [0][ 10/5005]  Loss 6.9 (7.0)
 *   step   12/14 | loss 10.97 (+0.3z)| lr 3e-04 | 45.7 ms | 55.1% bf16 MFU | 358383 tok/s
 *   Epoch 0: 32%|███▏ | 600/1875 [00:05<00:10, 118.2it/s, loss=0.12]
 *   1875/1875 [=====] - 4s 2ms/step - loss: 0.29 - accuracy: 0.91
 *   Train Epoch: 1 [640/60000 (1%)]   Loss: 0.3
 *   [1,  2000] loss: 2.2
 *   Accuracy of the network on the 10000 test images: 55 %
 *   Validation: loss 0.9, 12.5K tok/s
 *
 * A line is cut into words, numbers and marks. A number has the words before it as its name, unless
 * it counts steps or epochs. Since programs print much else, a line is read only where it counts
 * steps, or for names that are known to be of a training (loss, accuracy, …). Where no steps are
 * counted, epochs are the step, and a value of their own: so readers know what the step is.
 */
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>

#define NAME_WORDS 5
#define NAME_BYTES 96

struct item { /* a number, and what stands around it */
    double scale;
    int of;           /* "12/14": the token of 14; -1 = it has none */
    int first, words; /* tokens of its name; 0 = it has none */
    const char *name; /* where it comes from its unit; NULL = from its words */
    const char *unit;
    char before;     /* the mark before it, where it has no name; '\0' = it begins the line */
    bool marked;     /* ':' or '=' before it */
    bool percents;   /* "[640/60000 (1%)]" */
    bool ends;       /* "[640/60000]" behind the line's values */
    bool counts;     /* of a bar without end: "120it [00:05, 22it/s]" */
    int token, next; /* its own, and that after it */
};

static bool is_word(const struct command_line *line, int t, const char *word) {
    if (!command_line_is(line, t, COMMAND_WORD))
        return false;
    const struct command_token *token = &line->tokens[t];
    return token->end - token->start == strlen(word) &&
           memcmp(line->text + token->start, word, strlen(word)) == 0;
}

/* --- units --- */

/* Whether the number at `t`, or its suffix, has words of its own before it. */
static bool has_name(const struct command_line *line, int t) {
    t -= command_line_suffix(line, t) > 0;
    char mark = command_line_mark(line, t - 1);
    return command_line_is(line, t - 1, COMMAND_WORD) || mark == ':' || mark == '=';
}

static const struct command_unit *unit_at(const struct command_line *line, int t) {
    return t >= 0 && t < line->count ? line->tokens[t].unit : NULL;
}

/* Whether the token is the unit of the number before it: in "loss 0.14 tok/s 1000" it is the name
 * of the next. */
static bool is_unit(const struct command_line *line, int t) {
    const struct command_unit *unit = unit_at(line, t);
    if (!unit ||
        !(command_line_is(line, t - 1, COMMAND_NUMBER) || command_line_suffix(line, t - 1) > 0))
        return false;
    char mark = command_line_mark(line, t + 1);
    bool number = command_line_is(line, t + 2, COMMAND_NUMBER);
    bool may_name = unit->name || is_word(line, t, "min") || is_word(line, t, "W");
    if (line->tokens[t].attached || line->tokens[t].kind == COMMAND_MARK)
        return true;
    if (number && (mark == '=' || (mark == ':' && may_name)))
        return false;
    return !(may_name && command_line_is(line, t + 1, COMMAND_NUMBER) && has_name(line, t - 1) &&
             !is_unit(line, t + 2));
}

/* "ms" of "elapsed time (ms): 12" */
static int take_unit_before(const struct command_line *line, int t, struct item *item) {
    if (t < 2 || command_line_mark(line, t) != ')' || command_line_mark(line, t - 2) != '(' ||
        !(command_line_is(line, t - 1, COMMAND_WORD) || line->tokens[t - 1].unit))
        return t;
    const struct command_unit *unit = line->tokens[t - 1].unit;
    if (unit && unit->unit) {
        item->unit = unit->unit;
        item->scale *= unit->scale * line->tokens[t - 1].value;
    }
    return t - 3;
}

/* --- names --- */

/* "--lr 0.1", "/runs/epoch=3": an option of a command, the path of a file. */
static bool is_argument(const struct command_line *line, int t) {
    char mark = line->tokens[t].attached ? command_line_mark(line, t - 1) : '\0';
    return (mark == '-' && command_line_mark(line, t - 2) == '-' && line->tokens[t - 1].attached) ||
           (mark == '/' && !command_line_is(line, t - 2, COMMAND_NUMBER));
}

/* Whether a word may be of a name: not the unit of the number before it. */
static bool is_name(const struct command_line *line, int t) {
    return command_line_is(line, t, COMMAND_WORD) && !is_unit(line, t) &&
           !(command_line_is(line, t - 1, COMMAND_NUMBER) && line->tokens[t].attached) &&
           command_line_suffix(line, t) == 0 && !is_argument(line, t);
}

static unsigned meaning_at(const struct command_line *line, int t) {
    return line->tokens[t].meaning;
}

/* "INFO trainer.py the loss is", "saved with loss": what a log puts before it, and words of a
 * sentence. */
static void trim_name(const struct command_line *line, struct item *item) {
    int first = item->first, last = first + item->words - 1, known = -1;
    for (int t = first; t <= last; t++) {
        first = meaning_at(line, t) == COMMAND_LEVEL ? t + 1 : first;
        known = meaning_at(line, t) & COMMAND_KNOWN && known < 0 ? t : known;
    }
    bool logged = first > item->first;
    for (int t = first; t < known; t++)
        first = meaning_at(line, t) & COMMAND_OUTSIDE ? t + 1 : first;
    while (first < last &&
           (meaning_at(line, first) & COMMAND_OUTSIDE ||
            (logged && memchr(line->text + line->tokens[first].start, '.',
                              line->tokens[first].end - line->tokens[first].start))))
        first++;
    while (first < last && meaning_at(line, last) & COMMAND_IS &&
           (!(meaning_at(line, last) & COMMAND_PROSE) ||
            meaning_at(line, last - 1) & COMMAND_KNOWN)) /* "loss of 2", not "time of 2" */
        last--;
    if (last > first + 1 && meaning_at(line, last) & (COMMAND_STEP | COMMAND_EPOCH) &&
        meaning_at(line, last - 1) & COMMAND_OUTSIDE) /* "validation loss at iteration 20" */
        first = last;
    item->first = first;
    item->words = last - first + 1;
}

/* The words that end with token `t`. */
static void take_name(const struct command_line *line, int t, struct item *item) {
    item->first = t;
    while (is_name(line, item->first - 1) && t - item->first + 1 < NAME_WORDS)
        item->first--;
    item->words = t - item->first + 1;
    trim_name(line, item);
}

/* "[10] training's l2: 0.1" */
static bool is_owned(const struct command_line *line, const struct item *item) {
    const struct command_token *word = &line->tokens[item->first];
    return item->words == 2 && !item->name && command_line_mark(line, 0) == '[' &&
           command_line_is(line, 1, COMMAND_NUMBER) && line->text[word->end - 2] == '\'';
}

/* Whether one of its words is a known name: the last, or one that "on", "of" or "for" follow, or
 * any where a mark stands before the number; not "loss function 2", nor "loss scale: 2". */
static bool is_known(const struct command_line *line, const struct item *item) {
    for (int i = 0; i < item->words && !item->name; i++) {
        unsigned next = i + 1 < item->words ? meaning_at(line, item->first + i + 1) : 0,
                 known = item->marked ? COMMAND_KNOWN | COMMAND_MARKED : COMMAND_KNOWN;
        if (meaning_at(line, item->first + i) & known && !(next & COMMAND_SETTING) &&
            (item->marked || i + 1 == item->words || next & COMMAND_OUTSIDE))
            return true;
    }
    return lab_str_equal(item->unit, "tokens/s") || (item->marked && is_owned(line, item));
}

/* "Accuracy of the network on the 10000 test images: 55 %" */
static void look_for_subject(const struct command_line *line, struct item *item) {
    int start = item->first, first = -1;
    if (!item->marked || item->words == 0 || is_known(line, item))
        return;
    while (command_line_is(line, start - 1, COMMAND_WORD) ||
           command_line_is(line, start - 1, COMMAND_NUMBER))
        start--;
    for (int t = start; t + 1 < item->first; t++) {
        if (command_line_is(line, t, COMMAND_NUMBER))
            return;
        first = first < 0 ? t : first;
        if (meaning_at(line, t) & COMMAND_KNOWN &&
            (meaning_at(line, t + 1) & COMMAND_PREPOSITION) == COMMAND_PREPOSITION) {
            item->first = first;
            item->words = t - first + 1;
            trim_name(line, item);
            return;
        }
    }
}

/* What a value is wrapped in: "tensor(2.3", "'1.8'" */
static int skip_wrapping(const struct command_line *line, int t) {
    char mark = command_line_mark(line, t);
    if (mark == '"' || mark == '\'')
        return t - 1;
    if (mark == '[' && command_line_mark(line, t - 1) == '(' && is_word(line, t - 2, "tensor"))
        return t - 3;
    return mark == '(' && (is_word(line, t - 1, "tensor") || is_word(line, t - 1, "np.float32") ||
                           is_word(line, t - 1, "np.float64"))
               ? t - 2
               : t;
}

static void look_before(const struct command_line *line, int number, struct item *item) {
    int t = skip_wrapping(line, number - 1);
    t -= command_line_is_cell(line, t);
    bool bracket = command_line_mark(line, t) == '[';
    t -= bracket;
    char mark = command_line_mark(line, t);
    item->marked = mark == ':' || mark == '=';
    t -= item->marked;
    t = take_unit_before(line, t, item);
    mark = command_line_mark(line, t);
    t -= mark == '"' || mark == '\'';
    if (is_name(line, t))
        take_name(line, t, item);
    look_for_subject(line, item);
    if (item->words == 0)
        item->before = bracket ? '[' : command_line_mark(line, number - 1);
}

/* "tok/s: 1000" and "tokens per second: 1000" are named as "1000 tok/s" is. */
static void look_at_name(const struct command_line *line, struct item *item) {
    const struct command_unit *unit = item->name || item->words == 0 ? NULL
                                      : item->words == 1 ? command_line_unit(line, item->first)
                                      : item->words == 3
                                          ? command_line_per_second(line, item->first)
                                          : NULL;
    if (!unit || !unit->name)
        return;
    item->name = unit->name;
    item->unit = unit->unit;
    item->scale *= unit->scale;
}

/* --- what follows --- */

static bool follows(const struct command_line *line, int t, char mark) {
    return command_line_mark(line, t) == mark && line->tokens[t].attached &&
           command_line_is(line, t + 1, COMMAND_NUMBER) && line->tokens[t + 1].attached;
}

/* "0:05:12", "2026-11-18", "05/01 10:00:00" */
static bool is_of_date(const struct command_line *line, const struct item *item) {
    int t = item->next;
    return follows(line, t, ':') || (follows(line, t, '-') && follows(line, t + 2, '-')) ||
           (item->of >= 0 &&
            (command_line_mark(line, t) == '/' ||
             (command_line_is(line, t, COMMAND_NUMBER) && follows(line, t + 1, ':'))));
}

/* "| 55.1% bf16 MFU |", "| 45.7 ms |" */
static void take_name_after(const struct command_line *line, struct item *item) {
    int last = item->next;
    while (command_line_is(line, last, COMMAND_WORD) && last - item->next < NAME_WORDS)
        last++;
    bool closed = last == line->count || command_line_mark(line, last) == '|';
    if (closed && last > item->next) {
        take_name(line, last - 1, item);
        item->next = last;
    } else if (closed && lab_str_equal(item->unit, "ms")) {
        item->name = "time";
        item->words = 1;
    }
}

/* "3.2K", and "2400M" of memory */
static void take_suffix(const struct command_line *line, struct item *item) {
    double suffix = command_line_suffix(line, item->next);
    if (suffix == 0)
        return;
    char letter = line->text[line->tokens[item->next++].start];
    bool memory = false;
    for (int i = 0; i < item->words && !item->name && !is_unit(line, item->next); i++)
        memory |= meaning_at(line, item->first + i) & COMMAND_MEMORY;
    memory &= command_memory_suffix(letter) > 0;
    item->scale *= memory ? command_memory_suffix(letter) : suffix;
    item->unit = memory ? "GiB" : item->unit;
}

/* A unit that is attached or known, and the name that comes with it: "45ms", "358383 tok/s",
 * "55.1% bf16 MFU". False: it is no number after all, such as 3rd, or the share of a bar. */
static bool look_after(const struct command_line *line, struct item *item) {
    take_suffix(line, item);
    int t = item->next;
    if (t >= line->count)
        return true;
    const struct command_token *token = &line->tokens[t];
    const struct command_unit *rate = command_line_per_second(line, t);
    if (rate && rate->name) {
        item->name = item->words > 0 ? item->name : rate->name;
        item->words = item->words > 0 ? item->words : 1;
        item->unit = rate->unit;
        item->next += 3;
        return true;
    }
    item->counts = item->token == 0 && token->attached && is_word(line, t, "it") &&
                   command_line_mark(line, t + 1) == '[';
    if (!is_unit(line, t))
        return token->kind != COMMAND_WORD || !token->attached || item->counts;
    const struct command_unit *unit = token->unit;
    if (!unit->unit || command_line_is_share(line, t - 1))
        return false;
    item->next++;
    item->unit = unit->unit;
    item->scale *= unit->scale * token->value;
    if (item->words == 0 && unit->name) {
        item->name = unit->name;
        item->words = 1;
    } else if (item->words == 0 && (item->before == '|' || item->before == '(')) {
        take_name_after(line, item);
    }
    return true;
}

/* How a count without a name is printed, by which it may be one of samples. */
static void look_around(const struct command_line *line, struct item *item) {
    int t = item->next;
    if (item->of < 0 || item->words > 0 || item->before != '[')
        return;
    item->percents = command_line_mark(line, t) == '(' &&
                     command_line_is(line, t + 1, COMMAND_NUMBER) &&
                     command_line_mark(line, t + 2) == '%';
    item->ends = item->token > 1 && command_line_mark(line, t) == ']' && t + 1 == line->count &&
                 command_line_mark(line, item->token - 2) != ']';
}

/* The number at token `t`; false = none is there. */
static bool read_item(const struct command_line *line, int t, struct item *item) {
    if (!command_line_is(line, t, COMMAND_NUMBER))
        return false;
    *item = (struct item){.scale = 1, .of = -1, .unit = "", .token = t, .next = t + 1};
    if (command_line_mark(line, t + 1) == '/' && command_line_is(line, t + 2, COMMAND_NUMBER)) {
        item->of = t + 2;
        item->next = t + 3;
    }
    if (is_of_date(line, item))
        return false;
    look_before(line, t, item);
    look_at_name(line, item);
    look_around(line, item);
    return look_after(line, item);
}

/* --- what counts --- */

/* What the last word of the name means; in a name of several, its last part counts. */
static unsigned meaning(const struct command_line *line, const struct item *item) {
    return item->words > 0 && !item->name ? meaning_at(line, item->first + item->words - 1) : 0;
}

/* "per step" */
static bool begins_with_per(const struct command_line *line, const struct item *item) {
    const struct command_token *word = &line->tokens[item->first];
    return word->end - word->start >= 3 && memcmp(line->text + word->start, "per", 3) == 0 &&
           (word->end - word->start == 3 || line->text[word->start + 3] == '_');
}

/* "Total steps: 1000" */
static bool is_setting(const struct command_line *line, const struct item *item) {
    static const char *const words[] = {"total", "num", "max", "warmup"};
    const struct command_token *word = &line->tokens[item->first];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == word->end - word->start &&
            strncasecmp(words[i], line->text + word->start, strlen(words[i])) == 0)
            return true;
    return false;
}

/* "step", "global step", "train epoch"; not "time per step". */
static bool counts(const struct command_line *line, const struct item *item, unsigned whole,
                   unsigned last) {
    if (item->words == 1)
        return meaning(line, item) & whole;
    return item->words == 2 && meaning(line, item) & last && !begins_with_per(line, item) &&
           !is_setting(line, item);
}

/* "epochs: 3" by itself is a setting. */
static unsigned named(const struct command_line *line, const struct item *item) {
    const struct command_token *word = &line->tokens[item->first + item->words - 1];
    bool global = (meaning_at(line, item->first) | meaning(line, item)) & COMMAND_GLOBAL;
    return global                                      ? COMMAND_IS_NAMED | COMMAND_IS_GLOBAL
           : (line->text[word->end - 1] | 0x20) == 's' ? 0
                                                       : COMMAND_IS_NAMED;
}

/* A bar has no name: "600/1875" after '|' or '[', or at the line's begin. */
static bool is_bar(const struct item *item) {
    return item->words == 0 &&
           (item->counts || (item->of >= 0 &&
                             (item->before == '\0' || item->before == '|' || item->before == '[')));
}

/* "[1/25][100/1583]": the first is an epoch. */
static bool is_double_bar(const struct command_line *line, const struct item *item) {
    return item->token == 1 && item->of == 3 && command_line_mark(line, 0) == '[' &&
           command_line_mark(line, 4) == ']' && command_line_mark(line, 5) == '[' &&
           command_line_is(line, 6, COMMAND_NUMBER) && command_line_mark(line, 7) == '/';
}

/* "200:  learn: 0.6": a step that begins the line. */
static bool is_leading(const struct command_line *line, const struct item *item) {
    return item->token == 0 && item->of < 0 && command_line_mark(line, 1) == ':' &&
           command_line_is(line, 2, COMMAND_WORD) && !line->tokens[2].attached &&
           command_line_mark(line, 3) == ':';
}

/* "install 4 packages", "was not in top 1", "as top 1"; of a known name "loss of 4 packets". */
static bool is_of_sentence(const struct command_line *line, const struct item *item, bool known) {
    if (item->marked || item->name || item->words == 0)
        return false;
    int end = item->first + item->words;
    if (known)
        return end < item->token && meaning_at(line, end) & COMMAND_IS &&
               command_line_is_sentence(line, item->next);
    if (command_line_is(line, item->first - 1, COMMAND_WORD) &&
        meaning_at(line, item->first - 1) & COMMAND_PROSE)
        return true;
    for (int t = item->first; t < end; t++)
        if (meaning_at(line, t) & COMMAND_IS)
            return true;
    return end == item->token && command_line_is_sentence(line, item->next);
}

static unsigned judge(const struct command_line *line, const struct item *item) {
    bool per = item->words > 1 && is_word(line, item->first + item->words - 2, "per");
    unsigned known = is_known(line, item) ? COMMAND_IS_KNOWN : 0;
    bool is_value = item->words > 0 && (per || !(meaning(line, item) & COMMAND_PROSE)) &&
                    !(!item->name && meaning_at(line, item->first) & COMMAND_SAYS) &&
                    !is_of_sentence(line, item, known) &&
                    (known || !command_line_is_place(line, item->token));
    if (counts(line, item, COMMAND_EPOCH, COMMAND_EPOCH_LAST))
        return COMMAND_IS_EPOCH | named(line, item);
    if (counts(line, item, COMMAND_STEP, COMMAND_STEP_LAST))
        return COMMAND_IS_STEP | named(line, item);
    if (command_line_is_pair(line, item->token) || is_double_bar(line, item))
        return COMMAND_IS_EPOCH;
    if (item->percents || item->ends)
        return COMMAND_IS_PART | (item->percents ? 0 : COMMAND_IS_ENDING);
    if (is_bar(item) || (item->token == 3 && command_line_is_pair(line, 1)))
        return COMMAND_IS_STEP;
    if (item->words == 0 && (command_line_is_alone(line, item->token) || is_leading(line, item)))
        return COMMAND_IS_STEP | COMMAND_IS_WHOLE;
    if (!is_value)
        return 0;
    return known | COMMAND_IS_VALUE | (item->of >= 0 && !*item->unit ? COMMAND_IS_SHARE : 0);
}

/* --- what a line is about --- */

static unsigned meanings_of(const struct command_line *line, const struct item *item) {
    unsigned all = 0;
    for (int i = 0; i < item->words && !item->name; i++)
        all |= meaning_at(line, item->first + i);
    return all & (COMMAND_EVALUATION | COMMAND_TRAINING);
}

static bool is_best(const struct command_line *line, const struct item *item) {
    return item->words > 0 && !item->name && meaning_at(line, item->first) & COMMAND_BEST;
}

/* Its words joined by '_', in small letters; of an evaluation where the line says so. */
static const char *join_name(const struct command_line *line, const struct item *item,
                             const char *recalled, const char *head, char name[NAME_BYTES]) {
    size_t length = 0;
    for (const char *c = is_best(line, item) ? "" : recalled; *c; c++)
        name[length++] = *c;
    for (const char *c = meanings_of(line, item) ? "" : head; *c; c++)
        name[length++] = *c;
    for (const char *c = item->name; c && *c; c++)
        name[length++] = *c;
    for (int i = 0; i < item->words && !item->name; i++) {
        const struct command_token *word = &line->tokens[item->first + i];
        if (i > 0 && length + 2 < NAME_BYTES)
            name[length++] = '_';
        for (size_t c = word->start; c < word->end && length + 2 < NAME_BYTES; c++)
            if (line->text[c] != '\'')
                name[length++] = (char)tolower((unsigned char)line->text[c]);
    }
    name[length] = '\0';
    name[lab_str_utf8_prefix(name, length)] = '\0'; /* it may have been cut */
    return name;
}

/* --- a line --- */

/* "eval epoch: 1, loss: 0.5", "eval metrics after step: 50"; batches of an evaluation are no steps
 * of the training: "[Eval batch=10/10]". */
static void take_head(const struct command_line *line, const struct item *item, const char **head,
                      unsigned *kind) {
    int first = item->first;
    unsigned all = 0;
    while (command_line_is(line, first - 1, COMMAND_WORD))
        first--;
    for (int t = first; t < item->first + item->words; t++)
        all |= meaning_at(line, t) & (COMMAND_EVALUATION | COMMAND_TRAINING);
    if (all)
        *head = command_line_head_of(line, first, all);
    if (all & COMMAND_EVALUATION && item->of >= 0 && *kind & COMMAND_IS_STEP)
        *kind = 0;
}

/* Its numbers; `places` says which a token is. A form doesn't last where what a number begins with
 * could make it part of a word: "x/+5". */
static void take_numbers(struct command_draft *draft, const struct command_line *line,
                         int places[COMMAND_TOKENS_MAX]) {
    for (int t = 0; t < line->count; t++) {
        const struct command_token *token = &line->tokens[t];
        if (token->kind != COMMAND_NUMBER)
            continue;
        char before = token->attached ? line->text[token->start - 1] : ' ';
        bool joined = (before == '/' || before == '-') && /* "12/14", "2026-11-18" */
                      command_line_is(line, t - 2, COMMAND_NUMBER);
        draft->lasting &= joined || !(command_is_word(before) || strchr("@/#.-", before));
        places[t] = command_draft_number(draft, token->start, token->end, token->value);
    }
    draft->lasting &= line->count < COMMAND_TOKENS_MAX;
}

/* "epoch 001:   100 / 2000", "Train: 0 [50/1251 (4%)]": what follows tells what it is. */
static void look_at_pair(const struct command_line *line, const struct item *before,
                         struct command_field *earlier, const struct item *item, unsigned *kind) {
    if (before->next != item->token - 1)
        return;
    if (earlier->kind & COMMAND_IS_EPOCH && command_line_mark(line, before->next) == ':' &&
        item->words == 0 && item->of >= 0)
        *kind = COMMAND_IS_STEP;
    if (earlier->kind == COMMAND_IS_VALUE && item->percents)
        earlier->kind |= COMMAND_IS_WHOLE;
}

/* Nothing is kept of a line that neither counts by a name nor has a known one. */
static void finish(struct command_draft *draft, const struct command_line *line) {
    struct command_form *form = &draft->form;
    unsigned all = 0;
    bool rate = false;
    for (int i = 0; i < form->count; i++) {
        all |= form->fields[i].kind;
        rate |= lab_str_equal(form->fields[i].name, "iterations_per_s") ||
                lab_str_equal(form->fields[i].name, "iteration_time");
    }
    if (all & (COMMAND_IS_KNOWN | COMMAND_IS_NAMED))
        return;
    form->bar = rate && all & COMMAND_IS_STEP && command_line_is_lone_bar(line);
    form->count = form->bar ? form->count : 0;
}

void command_printed_line(struct command_draft *draft, const char *text, size_t length) {
    struct command_line line;
    struct item item, before = {.next = -1};
    int places[COMMAND_TOKENS_MAX];
    const char *head = "", *other;
    struct command_recall recall = {.names = ""};
    command_line_cut(&line, text, length);
    command_draft_begin(draft, line.groups);
    take_numbers(draft, &line, places);
    for (int t = 0; t < line.count; t++) {
        char name[NAME_BYTES];
        if (command_line_is(&line, t, COMMAND_WORD) && command_line_is_settings(&line, t))
            break;
        if (command_line_is(&line, t, COMMAND_WORD) && (other = command_line_head(&line, t))) {
            head = other;
            draft->form.evaluation |= *head != '\0';
        }
        command_line_recall(&line, t, &recall);
        if (!read_item(&line, t, &item))
            continue;
        t = item.next - 1;
        unsigned kind = judge(&line, &item);
        if (kind & COMMAND_IS_NAMED)
            take_head(&line, &item, &head, &kind);
        if (command_line_recalls(&line, item.next, kind & COMMAND_IS_NAMED, &recall))
            kind |= COMMAND_IS_RECALLED;
        recall.valued |= (kind & COMMAND_IS_VALUE) != 0;
        if (draft->form.count > 0)
            look_at_pair(&line, &before, &draft->fields[draft->form.count - 1], &item, &kind);
        struct command_field field = {
            kind & COMMAND_IS_VALUE ? join_name(&line, &item, recall.names, head, name) : "",
            item.unit,
            item.scale,
            places[item.token],
            item.of < 0 ? -1 : places[item.of],
            kind};
        if (!kind || (kind & COMMAND_IS_VALUE && !*field.name))
            continue;
        if (!command_draft_add(draft, &field))
            break;
        before = item;
    }
    finish(draft, &line);
}
