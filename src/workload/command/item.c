/*
 * command/item.c: a number of a line, and what stands around it: the words before it are its name,
 * unless its unit or what follows says more.
 */
#include "workload/command/item.h"

#include <string.h>

#define NAME_WORDS 5

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

/* "2.1 sentences/sec": a unit that nothing is known of. */
static bool is_rate(const struct command_line *line, int t) {
    static const char *const endings[] = {"/s", "/sec", "/second"};
    if (!command_line_is(line, t, COMMAND_WORD))
        return false;
    const struct command_token *word = &line->tokens[t];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (word->end - word->start > ending &&
            memcmp(line->text + word->end - ending, endings[i], ending) == 0)
            return true;
    }
    return false;
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
    bool may_name =
        unit->name || command_line_is_word(line, t, "min") || command_line_is_word(line, t, "W");
    if (line->tokens[t].attached || line->tokens[t].kind == COMMAND_MARK)
        return true;
    if (command_line_is_word(line, t, "min") && command_line_is(line, t + 1, COMMAND_WORD) &&
        command_line_meaning(line, t + 1) & COMMAND_KNOWN)
        return false; /* "step 5 min loss 2" */
    if (number && (mark == '=' || (mark == ':' && may_name)))
        return false;
    return !(may_name && command_line_is(line, t + 1, COMMAND_NUMBER) && has_name(line, t - 1) &&
             !is_unit(line, t + 2) && !is_rate(line, t + 2));
}

/* "ms" of "elapsed time (ms): 12", "rate[tok/s]=12" */
static int take_unit_before(const struct command_line *line, int t, struct command_item *item) {
    char closing = command_line_mark(line, t), opening = command_line_mark(line, t - 2);
    bool round = closing == ')' && opening == '(', square = closing == ']' && opening == '[';
    if (t < 2 || !(round || square) ||
        !((round && command_line_is(line, t - 1, COMMAND_WORD)) || line->tokens[t - 1].unit))
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

/* "loss: None acc: 0.5": a value that is missing. */
static bool is_missing(const struct command_line *line, int t) {
    char mark = command_line_mark(line, t - 1);
    return (mark == ':' || mark == '=') && command_line_is_none(line, t);
}

/* Whether a word may be of a name: not the unit of the number before it. */
static bool is_name(const struct command_line *line, int t) {
    bool per = command_line_mark(line, t - 1) == '/' &&
               command_line_is(line, t - 2, COMMAND_NUMBER) &&
               command_line_is(line, t, COMMAND_WORD) && line->tokens[t].attached &&
               (command_line_is_word(line, t, "s") ||
                memcmp(line->text + line->tokens[t].start, "s/", 2) == 0);
    return command_line_is(line, t, COMMAND_WORD) && !per &&
           /* "1122.81/s/gpu LR: 0.0005" */ !is_unit(line, t) && !is_missing(line, t) &&
           !(command_line_is(line, t - 1, COMMAND_NUMBER) &&
             (line->tokens[t].attached ||
              (is_rate(line, t) && command_line_is(line, t + 1, COMMAND_WORD)))) &&
           command_line_suffix(line, t) == 0 && !is_argument(line, t);
}

/* "INFO trainer.py the loss is", "saved with loss": what a log puts before it, and words of a
 * sentence. */
static void trim_name(const struct command_line *line, struct command_item *item) {
    int first = item->first, last = first + item->words - 1, known = -1;
    for (int t = first; t <= last; t++) {
        first = command_line_meaning(line, t) == COMMAND_LEVEL ? t + 1 : first;
        known = command_line_meaning(line, t) & COMMAND_KNOWN && known < 0 ? t : known;
    }
    bool logged = first > item->first;
    for (int t = first; t < known; t++)
        first = command_line_meaning(line, t) & COMMAND_OUTSIDE ? t + 1 : first;
    while (first < last &&
           (command_line_meaning(line, first) & COMMAND_OUTSIDE ||
            (logged && memchr(line->text + line->tokens[first].start, '.',
                              line->tokens[first].end - line->tokens[first].start))))
        first++;
    while (
        first < last && command_line_meaning(line, last) & COMMAND_IS &&
        (!(command_line_meaning(line, last) & COMMAND_PROSE) ||
         command_line_meaning(line, last - 1) & COMMAND_KNOWN)) /* "loss of 2", not "time of 2" */
        last--;
    if (last > first + 1 && command_line_meaning(line, last) & (COMMAND_STEP | COMMAND_EPOCH) &&
        command_line_meaning(line, last - 1) &
            COMMAND_OUTSIDE) /* "validation loss at iteration 20" */
        first = last;
    item->first = first;
    item->words = last - first + 1;
}

/* The words that end with token `t`. */
static void take_name(const struct command_line *line, int t, struct command_item *item) {
    item->first = t;
    while (is_name(line, item->first - 1) && t - item->first + 1 < NAME_WORDS)
        item->first--;
    item->words = t - item->first + 1;
    trim_name(line, item);
}

/* "[10] training's l2: 0.1" */
static bool is_owned(const struct command_line *line, const struct command_item *item) {
    const struct command_token *word = &line->tokens[item->first];
    return item->words == 2 && !item->name && command_line_mark(line, 0) == '[' &&
           command_line_is(line, 1, COMMAND_NUMBER) && line->text[word->end - 2] == '\'';
}

/* "Img/sec per GPU: 12.5", "Computation: 65321 steps/s" */
static bool is_named_rate(const struct command_line *line, const struct command_item *item) {
    static const char *const rates[] = {"iterations/s", "samples/s", "samples/s/GPU"};
    if (item->inverse || command_line_meaning(line, item->first) & COMMAND_SAYS)
        return false;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (lab_str_equal(item->unit, rates[i]))
            return true;
    return false;
}

bool command_item_is_known(const struct command_line *line, const struct command_item *item) {
    for (int i = 0; i < item->words && !item->name; i++) {
        unsigned next = i + 1 < item->words ? command_line_meaning(line, item->first + i + 1) : 0,
                 known = item->marked ? COMMAND_KNOWN | COMMAND_MARKED : COMMAND_KNOWN;
        if (command_line_meaning(line, item->first + i) & known && !(next & COMMAND_SETTING) &&
            (item->marked || i + 1 == item->words || next & COMMAND_OUTSIDE ||
             (i + 2 == item->words && next & (COMMAND_TRAINING | COMMAND_EVALUATION))))
            return true; /* "LOSS train 0.5" */
    }
    return lab_str_equal(item->unit, "tokens/s") ||
           (item->marked && (is_owned(line, item) || is_named_rate(line, item)));
}

/* "Accuracy of the network on the 10000 test images: 55 %" */
static void look_for_subject(const struct command_line *line, struct command_item *item) {
    int start = item->first, first = -1;
    if (!item->marked || item->words == 0 || command_item_is_known(line, item))
        return;
    while (command_line_is(line, start - 1, COMMAND_WORD) ||
           command_line_is(line, start - 1, COMMAND_NUMBER))
        start--;
    for (int t = start; t + 1 < item->first; t++) {
        if (command_line_is(line, t, COMMAND_NUMBER))
            return;
        first = first < 0 ? t : first;
        if (command_line_meaning(line, t) & COMMAND_KNOWN &&
            (command_line_meaning(line, t + 1) & COMMAND_PREPOSITION) == COMMAND_PREPOSITION) {
            item->first = first;
            item->words = t - first + 1;
            trim_name(line, item);
            return;
        }
    }
}

/* What a value is wrapped in: "tensor(2.3", "'1.8'" */
static int skip_wrapping(const struct command_line *line, int t) {
    static const char *const types[] = {"tensor", "Array", "array", "np.float32", "np.float64"};
    char mark = command_line_mark(line, t);
    if (mark == '"' || mark == '\'')
        return t - 1;
    int word = mark == '[' && command_line_mark(line, t - 1) == '(' ? t - 2 : t - 1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((mark == '(' || word == t - 2) && command_line_is_word(line, word, types[i]))
            return word - 1;
    return t;
}

/* "('loss', 2.1)" of an OrderedDict: whether `t` is its comma. */
static bool is_of_pair(const struct command_line *line, int t) {
    char quote = command_line_mark(line, t - 1);
    return command_line_mark(line, t) == ',' && (quote == '\'' || quote == '"') &&
           command_line_is(line, t - 2, COMMAND_WORD) && command_line_mark(line, t - 3) == quote &&
           command_line_mark(line, t - 4) == '(';
}

/* "The loss at step 100 was 2.5", "Loss after epoch 3 = 2.2": the name before what it counts. */
static void look_for_counted(const struct command_line *line, int number,
                             struct command_item *item) {
    int t = number - 1;
    char mark = command_line_mark(line, t);
    if (mark != ':' && mark != '=' &&
        !(command_line_is(line, t, COMMAND_WORD) && command_line_meaning(line, t) & COMMAND_IS))
        return;
    if (!command_line_is(line, t - 1, COMMAND_NUMBER) || t < 4)
        return;
    for (int i = t - 4; i < t - 1; i++)
        if (!command_line_is(line, i, COMMAND_WORD))
            return;
    if (!(command_line_meaning(line, t - 2) & (COMMAND_STEP | COMMAND_EPOCH)) ||
        (command_line_meaning(line, t - 3) & COMMAND_PREPOSITION) != COMMAND_PREPOSITION ||
        !(command_line_meaning(line, t - 4) & COMMAND_KNOWN))
        return;
    take_name(line, t - 4, item);
    item->marked = true;
}

/* Lightning: "'val_loss' reached 0.303 (best 0.303), saving model": the quoted name. */
static void look_for_reached(const struct command_line *line, int number,
                             struct command_item *item) {
    if (!command_line_is_reached(line, number - 1))
        return;
    item->first = number - 3;
    item->words = 1;
    item->marked = true;
}

/* Whether the token's text has a '.'. */
static bool has_point(const struct command_line *line, int t) {
    const struct command_token *number = &line->tokens[t];
    return memchr(line->text + number->start, '.', number->end - number->start);
}

/* "Train loss 10 1.2345", "Validation loss 10: 1.3" (Tacotron 2): a step between name and value. */
bool command_item_is_before_value(const struct command_line *line, int t) {
    if (!command_line_is(line, t, COMMAND_NUMBER) || has_point(line, t) ||
        !command_line_is(line, t - 1, COMMAND_WORD))
        return false;
    int value = t + 1 + (command_line_mark(line, t + 1) == ':' && line->tokens[t + 1].attached);
    const struct command_token *word = &line->tokens[t - 1], *number = &line->tokens[value];
    return word->end - word->start == 4 && command_is_same("loss", line->text + word->start, 4) &&
           command_line_is(line, value, COMMAND_NUMBER) && !number->attached &&
           has_point(line, value) && command_line_mark(line, value + 1) != '/';
}

/* Its number `t` itself. */
static void look_beyond_step(const struct command_line *line, int t, struct command_item *item) {
    t -= 1 + (command_line_mark(line, t - 1) == ':');
    if (command_item_is_before_value(line, t))
        take_name(line, t - 1, item);
}

static void look_before(const struct command_line *line, int number, struct command_item *item) {
    int t = skip_wrapping(line, number - 1);
    t -= command_line_is_cell(line, t);
    bool bracket = command_line_mark(line, t) == '[';
    t -= bracket;
    char mark = command_line_mark(line, t);
    item->marked = mark == ':' || mark == '=' || is_of_pair(line, t);
    t -= item->marked || mark == '#'; /* "Step #5" */
    while (item->marked && command_line_mark(line, t) == '.' && line->tokens[t].attached)
        t--; /* "loss.....: 2.4" */
    if (command_line_mark(line, t) == ')' && command_line_is_word(line, t - 1, "better")) {
        while (t > 0 && command_line_mark(line, t) != '(')
            t--; /* "acc (higher is better) : 0.7" */
        t--;
    }
    t = take_unit_before(line, t, item);
    mark = command_line_mark(line, t);
    t -= mark == '"' || mark == '\'';
    if (is_name(line, t))
        take_name(line, t, item);
    look_for_subject(line, item);
    look_for_counted(line, number, item);
    look_for_reached(line, number, item);
    if (item->words == 0)
        look_beyond_step(line, number, item);
    if (item->words == 0)
        item->before = bracket ? '[' : command_line_mark(line, number - 1);
}

/* A bar that says 2.0it/s while it is fast and 1.6s/it while it is slow has one metric. */
static void name_by_unit(const struct command_unit *unit, struct command_item *item) {
    item->name = unit->name;
    item->inverse = unit->rate != NULL;
    item->unit = item->inverse ? unit->rate : item->unit;
}

/* "tok/s: 1000" and "tokens per second: 1000" are named as "1000 tok/s" is. */
static void look_at_name(const struct command_line *line, struct command_item *item) {
    const struct command_unit *unit = item->name || item->words == 0 ? NULL
                                      : item->words == 1 ? command_line_unit(line, item->first)
                                      : item->words == 3
                                          ? command_line_per_second(line, item->first)
                                          : NULL;
    if (!unit || !unit->name)
        return;
    item->unit = unit->unit;
    item->scale *= unit->scale;
    name_by_unit(unit, item);
}

/* --- what follows --- */

static bool follows(const struct command_line *line, int t, char mark) {
    return command_line_mark(line, t) == mark && line->tokens[t].attached &&
           command_line_is(line, t + 1, COMMAND_NUMBER) && line->tokens[t + 1].attached;
}

/* "0:05:12", "2026-11-18", "05/01 10:00:00" */
static bool is_of_date(const struct command_line *line, const struct command_item *item) {
    int t = item->next;
    if (command_line_mark(line, item->token - 1) == COMMAND_BAR_BYTE)
        return false; /* rich: "━━━ 50/100 0:00:05" */
    return follows(line, t, ':') || (follows(line, t, '-') && follows(line, t + 2, '-')) ||
           (item->of >= 0 &&
            (command_line_mark(line, t) == '/' ||
             (command_line_is(line, t, COMMAND_NUMBER) && follows(line, t + 1, ':'))));
}

/* "| 55.1% bf16 MFU |", "| 45.7 ms |" */
static void take_name_after(const struct command_line *line, struct command_item *item) {
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
static void take_suffix(const struct command_line *line, struct command_item *item) {
    double suffix = command_line_suffix(line, item->next);
    if (suffix == 0)
        return;
    char letter = line->text[line->tokens[item->next++].start];
    bool memory = false;
    for (int i = 0; i < item->words && !item->name && !is_unit(line, item->next); i++)
        memory |= command_line_meaning(line, item->first + i) & COMMAND_MEMORY;
    memory &= command_memory_letter(letter) != NULL;
    item->scale *= memory ? 1 : suffix;
    item->unit = memory ? command_memory_letter(letter) : item->unit;
}

/* "1h 2m 3s": whether the unit at `t` is followed by a smaller one. */
static bool is_of_duration(const struct command_line *line, int t) {
    const struct command_unit *unit = line->tokens[t].unit;
    return lab_str_equal(unit->unit, "ms") && unit->scale >= 6e4 && line->tokens[t].attached &&
           command_line_is(line, t + 1, COMMAND_NUMBER) &&
           command_line_is(line, t + 2, COMMAND_WORD) && line->tokens[t + 2].attached &&
           (is_unit(line, t + 2) || command_line_is_word(line, t + 2, "m"));
}

/* A unit that is attached or known, and the name that comes with it: "45ms", "358383 tok/s",
 * "55.1% bf16 MFU". False: it is no number after all, such as 3rd, or the share of a bar. */
static bool look_after(const struct command_line *line, struct command_item *item) {
    take_suffix(line, item);
    int t = item->next;
    if (t >= line->count)
        return true;
    const struct command_token *token = &line->tokens[t];
    const struct command_unit *rate = command_line_per_second(line, t);
    char mark = command_line_mark(line, t + 3);
    bool names = (mark == ':' || mark == '=') && command_line_is(line, t + 4, COMMAND_NUMBER);
    if (rate && rate->name && !names) {
        item->name = item->words > 0 ? item->name : rate->name;
        item->words = item->words > 0 ? item->words : 1;
        item->unit = rate->unit;
        item->next += 3;
        return true;
    }
    item->counts = item->token == 0 && token->attached && command_line_is_word(line, t, "it") &&
                   command_line_mark(line, t + 1) == '[';
    if (!is_unit(line, t))
        return token->kind != COMMAND_WORD || !token->attached || item->counts;
    const struct command_unit *unit = token->unit;
    if (!unit->unit || command_line_is_share(line, t - 1) || is_of_duration(line, t))
        return false;
    item->next++;
    item->unit = unit->unit;
    item->scale *= unit->scale * token->value;
    if (item->words == 0 && unit->name) {
        name_by_unit(unit, item);
        item->words = 1;
    } else if (item->words == 0 && (item->before == '|' || item->before == '(')) {
        take_name_after(line, item);
    }
    return true;
}

/* How a count without a name is printed, by which it may be one of samples. */
static void look_around(const struct command_line *line, struct command_item *item) {
    int t = item->next;
    if (item->of < 0 || item->words > 0 || item->before != '[')
        return;
    item->percents = command_line_mark(line, t) == '(' &&
                     command_line_is(line, t + 1, COMMAND_NUMBER) &&
                     command_line_mark(line, t + 2) == '%';
    item->ends = item->token > 1 && command_line_mark(line, t) == ']' && t + 1 == line->count &&
                 command_line_mark(line, item->token - 2) != ']';
}

bool command_item_read(const struct command_line *line, int t, struct command_item *item) {
    if (!command_line_is(line, t, COMMAND_NUMBER))
        return false;
    *item = (struct command_item){.scale = 1, .of = -1, .unit = "", .token = t, .next = t + 1};
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
