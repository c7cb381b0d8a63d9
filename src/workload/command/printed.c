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
 *
 * A line is cut into words, numbers and marks. A number has the words before it as its name, unless
 * it counts steps or epochs. Since programs print much else, a line is read only where it counts
 * steps, or for names that are known to be of a training (loss, accuracy, …). Where no steps are
 * counted, epochs are the step, and a value of their own: so readers know what the step is.
 */
#include "workload/command/line.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define ITEMS_MAX  64
#define NAME_WORDS 5
#define NAME_BYTES 96

struct item {         /* a number, and what stands around it */
    double value, of; /* "12/14": of 14; NaN = it has none */
    int first, words; /* tokens of its name; 0 = it has none */
    const char *name; /* where it comes from its unit; NULL = from its words */
    const char *unit;
    char before;     /* the mark before it, where it has no name; '\0' = it begins the line */
    bool percents;   /* "[640/60000 (1%)]" */
    bool ends;       /* "[640/60000]" behind the line's values */
    int token, next; /* its own, and that after it */
};

/* --- items --- */

/* "ms" of "elapsed time (ms): 12" */
static int take_unit_before(const struct command_line *line, int t, struct item *item) {
    if (command_line_mark(line, t) != ')' || !command_line_is(line, t - 1, COMMAND_WORD) ||
        command_line_mark(line, t - 2) != '(')
        return t;
    const struct command_unit *unit = line->tokens[t - 1].unit;
    item->unit = unit ? unit->unit : "";
    return t - 3;
}

/* Whether a word may be of a name: not the unit of the number before it. */
static bool is_name(const struct command_line *line, int t) {
    return command_line_is(line, t, COMMAND_WORD) &&
           !(command_line_is(line, t - 1, COMMAND_NUMBER) &&
             (line->tokens[t].attached || line->tokens[t].unit));
}

static unsigned meaning_at(const struct command_line *line, int t) {
    return line->tokens[t].meaning;
}

/* "INFO trainer.py the loss is": what a log puts before it, and words of a sentence. */
static void trim_name(const struct command_line *line, struct item *item) {
    int first = item->first, last = first + item->words - 1;
    for (int t = first; t <= last; t++)
        first = meaning_at(line, t) == COMMAND_LEVEL ? t + 1 : first;
    bool logged = first > item->first;
    while (first < last &&
           (meaning_at(line, first) & COMMAND_OUTSIDE ||
            (logged && memchr(line->text + line->tokens[first].start, '.',
                              line->tokens[first].end - line->tokens[first].start))))
        first++;
    while (first < last && meaning_at(line, last) & COMMAND_IS &&
           (!(meaning_at(line, last) & COMMAND_PROSE) ||
            meaning_at(line, last - 1) & COMMAND_KNOWN)) /* "loss of 2", not "time of 2" */
        last--;
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

static void look_before(const struct command_line *line, int number, struct item *item) {
    int t = number - 1;
    bool bracket = command_line_mark(line, t) == '[';
    t -= bracket;
    char mark = command_line_mark(line, t);
    t -= mark == ':' || mark == '=';
    t = take_unit_before(line, t, item);
    mark = command_line_mark(line, t);
    t -= mark == '"' || mark == '\'';
    if (is_name(line, t))
        take_name(line, t, item);
    if (item->words == 0)
        item->before = bracket ? '[' : command_line_mark(line, number - 1);
}

/* A unit that is attached or known, and the name that comes with it: "45ms", "358383 tok/s",
 * "55.1% bf16 MFU". False: it is no number after all, such as 3rd or 0:05:12. */
static bool look_after(const struct command_line *line, struct item *item) {
    int t = item->next;
    if (t < 1 || t >= line->count)
        return true;
    const struct command_token *token = &line->tokens[t];
    if (token->attached && command_line_mark(line, t) == ':' &&
        command_line_is(line, t + 1, COMMAND_NUMBER) && line->tokens[t + 1].attached)
        return false;
    const struct command_unit *unit = token->unit;
    if (!unit)
        return token->kind != COMMAND_WORD || !token->attached;
    item->next++;
    item->unit = unit->unit;
    if (item->words == 0 && unit->name) {
        item->name = unit->name;
        item->words = 1;
    } else if (item->words == 0 && item->before == '|') {
        int last = item->next;
        while (command_line_is(line, last, COMMAND_WORD) && last - item->next < NAME_WORDS)
            last++;
        bool closed = last == line->count || command_line_mark(line, last) == '|';
        if (closed && last > item->next) {
            take_name(line, last - 1, item);
            item->next = last;
        } else if (closed && unit->unit[strlen(unit->unit) - 1] == 's') {
            item->name = "time";
            item->words = 1;
        }
    }
    return true;
}

/* How a count without a name is printed, by which it may be one of samples. */
static void look_around(const struct command_line *line, struct item *item) {
    int t = item->next;
    if (isnan(item->of) || item->words > 0 || item->before != '[')
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
    *item = (struct item){
        .value = line->tokens[t].value, .of = (double)NAN, .unit = "", .token = t, .next = t + 1};
    if (command_line_mark(line, t + 1) == '/' && command_line_is(line, t + 2, COMMAND_NUMBER)) {
        item->of = line->tokens[t + 2].value;
        item->next = t + 3;
        if (command_line_mark(line, t + 3) == '/') /* 2026/11/17 */
            return false;
    }
    look_before(line, t, item);
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

/* "step", "global step", "train epoch"; not "time per step". */
static bool counts(const struct command_line *line, const struct item *item, unsigned whole,
                   unsigned last) {
    if (item->words == 1)
        return meaning(line, item) & whole;
    return item->words == 2 && meaning(line, item) & last && !begins_with_per(line, item);
}

static bool counts_epochs(const struct command_line *line, const struct item *item) {
    return counts(line, item, COMMAND_EPOCH, COMMAND_EPOCH_LAST);
}

/* A bar has no name: "600/1875" after '|' or '[', or at the line's begin. */
static bool counts_steps(const struct command_line *line, const struct item *item) {
    bool bar = item->words == 0 && !isnan(item->of) &&
               (item->before == '\0' || item->before == '|' || item->before == '[');
    return bar || counts(line, item, COMMAND_STEP, COMMAND_STEP_LAST);
}

static bool is_known(const struct command_line *line, const struct item *item) {
    unsigned all = 0;
    for (int i = 0; i < item->words && !item->name; i++)
        all |= meaning_at(line, item->first + i);
    return all & COMMAND_KNOWN;
}

static void count_epoch(struct command_progress *progress, const struct item *item) {
    if (!progress->has_epoch || item->value < progress->first_epoch)
        progress->first_epoch = item->value;
    progress->part = progress->has_epoch && progress->epoch == item->value ? progress->part : 0;
    progress->has_epoch = true;
    progress->epoch = item->value;
}

/* Samples or batches of an epoch: nobody says which. Without epochs, one that starts over is the
 * next. */
static void count_part(struct command_progress *progress, const struct item *item) {
    double part = item->of > 0 ? fmin(item->value / item->of, 1) : 0;
    progress->wraps += part < progress->part;
    progress->part = part;
    progress->has_part = true;
}

/* Steps of an epoch begin anew in each; where their number is known, all are counted on. */
static void count_step(struct command_progress *progress, const struct item *item) {
    bool within = progress->has_epoch && item->of > 0;
    double first = progress->first_epoch >= 1 ? 1 : 0;
    progress->step = within ? (progress->epoch - first) * item->of + item->value : item->value;
    progress->total = within ? 0 : item->of > 0 ? item->of : 0;
    progress->has_step = true;
}

/* --- a line --- */

enum { EPOCH = 1, STEP = 2, KNOWN = 4, TOLD = 8, PART = 16 };

static unsigned judge(const struct command_line *line, const struct item *item) {
    unsigned kind = counts_epochs(line, item)      ? EPOCH
                    : item->percents || item->ends ? PART
                    : counts_steps(line, item)     ? STEP
                                                   : 0;
    bool told = item->words > 0 && isnan(item->of) && !(meaning(line, item) & COMMAND_PROSE);
    return kind ? kind : (told ? TOLD : 0) | (is_known(line, item) ? KNOWN : 0);
}

/* Its words joined by '_', in small letters. */
static const char *join_name(const struct command_line *line, const struct item *item,
                             char name[NAME_BYTES]) {
    size_t length = 0;
    if (item->name)
        return item->name;
    for (int i = 0; i < item->words; i++) {
        const struct command_token *word = &line->tokens[item->first + i];
        if (i > 0 && length + 2 < NAME_BYTES)
            name[length++] = '_';
        for (size_t c = word->start; c < word->end && length + 2 < NAME_BYTES; c++)
            name[length++] = (char)tolower((unsigned char)line->text[c]);
    }
    name[length] = '\0';
    name[lab_str_utf8_prefix(name, length)] = '\0'; /* it may have been cut */
    return name;
}

/* "Accuracy: 9852/10000" is 98.52%. */
static void take_share(struct item *item) {
    item->value *= 100 / item->of;
    item->of = (double)NAN;
    item->unit = "%";
}

/* "Train: 0 [50/1251 (4%)]": a whole number before a part of an epoch is the epoch's. */
static bool is_epoch_of(const struct item *item, unsigned kind, const struct item *part) {
    return kind == TOLD && part->percents && item->next == part->token - 1 &&
           item->value == floor(item->value);
}

/* All numbers of the line that have a name or count something, and what each is. */
static int read_items(const struct command_line *line, struct item items[ITEMS_MAX],
                      unsigned kinds[ITEMS_MAX]) {
    int count = 0;
    for (int t = 0; t < line->count && count < ITEMS_MAX; t++)
        if (read_item(line, t, &items[count])) {
            t = items[count].next - 1;
            kinds[count] = judge(line, &items[count]);
            if (kinds[count] == KNOWN && items[count].of > 0 &&
                items[count].of >= items[count].value) {
                take_share(&items[count]);
                kinds[count] = judge(line, &items[count]);
            }
            if (count > 0 && is_epoch_of(&items[count - 1], kinds[count - 1], &items[count]))
                kinds[count - 1] = EPOCH;
            count += items[count].words > 0 || kinds[count] & (STEP | PART);
        }
    return count;
}

/* Whether the line counts steps or epochs. */
static bool count(struct command_progress *progress, const struct item *items,
                  const unsigned *kinds, int item_count) {
    bool counted = false, stepped = false;
    for (int i = 0; i < item_count; i++)
        if (kinds[i] == EPOCH) {
            count_epoch(progress, &items[i]);
            counted = true;
        }
    for (int i = 0; i < item_count && !stepped; i++)
        if (kinds[i] & (STEP | PART)) {
            if (kinds[i] == PART && (items[i].percents || progress->has_epoch))
                count_part(progress, &items[i]);
            else
                count_step(progress, &items[i]);
            counted = stepped = true;
        }
    return counted;
}

bool command_printed_line(struct command_reading *reading, const char *text, size_t length,
                          command_found *found, void *state) {
    struct command_line line;
    struct item items[ITEMS_MAX];
    unsigned kinds[ITEMS_MAX];
    bool named = false, any = false, by_epoch;
    command_line_cut(&line, text, length);
    int item_count = read_items(&line, items, kinds);
    for (int i = 0; i < item_count; i++)
        named |= items[i].words > 0 && kinds[i] & (EPOCH | STEP | KNOWN);
    if (!named)
        return false;
    struct command_progress *progress = command_reading_of(reading, -1);
    bool counted = count(progress, items, kinds, item_count);
    double step = command_progress_step(progress, &by_epoch);
    for (int i = 0; i < item_count; i++) {
        char name[NAME_BYTES];
        if (!(kinds[i] & TOLD) || (!counted && !(kinds[i] & KNOWN)))
            continue;
        struct command_value value = {join_name(&line, &items[i], name),
                                      items[i].unit,
                                      items[i].value,
                                      step,
                                      reading->rank,
                                      by_epoch};
        if (!*value.name)
            continue;
        found(state, &value);
        any = true;
    }
    if (any && by_epoch)
        found(state, &(struct command_value){"epoch", "", step, step, reading->rank, true});
    return any || counted;
}
