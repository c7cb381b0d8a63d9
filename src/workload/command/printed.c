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
 *
 * A line is cut into words, numbers and marks. A number has the words before it as its name, unless
 * it counts steps or epochs. Since programs print much else, a line is read only where it counts
 * steps, or for names that are known to be of a training (loss, accuracy, …).
 */
#include "workload/command/command.h"

#include "base/list.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TOKENS_MAX 512
#define ITEMS_MAX  64
#define NAME_WORDS 5
#define NAME_BYTES 96
#define UNIT_BYTES 24

enum kind { WORD, NUMBER, MARK };

struct token {
    enum kind kind;
    size_t start, end;
    double value;  /* NUMBER */
    bool attached; /* to the token before it: no blank lies between */
};

struct line {
    const char *text;
    size_t length;
    struct token tokens[TOKENS_MAX];
    int count;
};

struct item {         /* a number, and what stands around it */
    double value, of; /* "12/14": of 14; NaN = it has none */
    char name[NAME_BYTES], unit[UNIT_BYTES];
    int words;      /* of the name; 0 = none stands before it */
    bool separated; /* from its name, by ':' or '=' */
    char before;    /* the mark before it, where it has no name; '\0' = it begins the line */
    int next;       /* token behind it */
};

/* --- words --- */

static bool is_one_of(const char *text, size_t length, const char *const *words) {
    for (; *words; words++)
        if (strlen(*words) == length && strncasecmp(*words, text, length) == 0)
            return true;
    return false;
}

bool command_is_step(const char *name) {
    static const char *const names[] = {"iter",        "iters",      "iteration",   "step",
                                        "global_step", "train_step", "global_iter", "train_iter",
                                        "batch",       "iterations", "steps",       NULL};
    return is_one_of(name, strlen(name), names);
}

static bool is_epoch(const char *name) {
    static const char *const names[] = {"epoch", "epochs", NULL};
    return is_one_of(name, strlen(name), names);
}

/* Whether a name, of words that '_' or '/' or '.' join, has a word that only a training prints. */
static bool is_known(const char *name) {
    static const char *const words[] = {
        "loss", "acc",   "accuracy", "ppl",    "perplexity", "mfu",      "auc", "f1",
        "bleu", "iou",   "wer",      "mae",    "mse",        "rmse",     "nll", "top1",
        "top5", "acc@1", "acc@5",    "reward", "bpb",        "val_loss", NULL};
    while (*name) {
        size_t length = strcspn(name, "_/.");
        if (is_one_of(name, length, words))
            return true;
        name += length + (name[length] != '\0');
    }
    return false;
}

/* Words before a number that are no name of it. */
static bool is_prose(const char *name) {
    static const char *const names[] = {
        "to",   "of",  "in",   "at",   "for",  "from",  "after", "gpu", "rank", "version", "line",
        "port", "pid", "node", "seed", "with", "v_num", "saved", "and", "than", "took",    NULL};
    return is_one_of(name, strlen(name), names);
}

struct unit {
    const char *text, *unit; /* as it is printed, and kept */
    const char *name;        /* of a value that has no other; NULL = it needs one */
};

static const struct unit units[] = {
    {"%", "%", NULL},
    {"ms", "ms", NULL},
    {"us", "µs", NULL},
    {"µs", "µs", NULL},
    {"s", "s", NULL},
    {"sec", "s", NULL},
    {"secs", "s", NULL},
    {"seconds", "s", NULL},
    {"min", "min", NULL},
    {"h", "h", NULL},
    {"KB", "KB", NULL},
    {"MB", "MB", NULL},
    {"GB", "GB", NULL},
    {"MiB", "MiB", NULL},
    {"GiB", "GiB", NULL},
    {"W", "W", NULL},
    {"J", "J", NULL},
    {"tok/s", "tokens/s", "tokens_per_s"},
    {"tok/sec", "tokens/s", "tokens_per_s"},
    {"tokens/s", "tokens/s", "tokens_per_s"},
    {"tokens/sec", "tokens/s", "tokens_per_s"},
    {"it/s", "iterations/s", "iterations_per_s"},
    {"iter/s", "iterations/s", "iterations_per_s"},
    {"steps/s", "iterations/s", "iterations_per_s"},
    {"s/it", "s", "iteration_time"},
    {"ms/it", "ms", "iteration_time"},
    {"ms/iter", "ms", "iteration_time"},
    {"s/step", "s", "step_time"},
    {"ms/step", "ms", "step_time"},
    {"us/step", "µs", "step_time"},
    {"samples/s", "samples/s", "samples_per_s"},
    {"samples/sec", "samples/s", "samples_per_s"},
    {"examples/s", "samples/s", "samples_per_s"},
    {"img/s", "samples/s", "samples_per_s"},
    {"images/s", "samples/s", "samples_per_s"},
    {"TFLOP/s", "TFLOP/s", "tflops"},
    {"TFLOPS", "TFLOP/s", "tflops"},
    {"TFLOPs", "TFLOP/s", "tflops"},
};

static const struct unit *find_unit(const struct line *line, const struct token *token) {
    size_t length = token->end - token->start;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].text) == length &&
            memcmp(units[i].text, line->text + token->start, length) == 0)
            return &units[i];
    return NULL;
}

/* --- tokens --- */

static bool is_any(char c, const char *of) {
    return c && strchr(of, c);
}

/* 0xe2 begins the characters that bars and frames are drawn with. */
static bool begins_word(char c) {
    return isalpha((unsigned char)c) || c == '_' || ((unsigned char)c >= 0x80 && c != '\xe2');
}

static size_t word_end(const char *text, size_t length, size_t place) {
    while (place < length && text[place] != '\xe2' &&
           (command_is_word(text[place]) || is_any(text[place], "@/.-#")))
        place++;
    while (is_any(text[place - 1], "/.-")) /* "loss." ends a sentence */
        place--;
    return place;
}

static void cut(struct line *line, const char *text, size_t length) {
    line->text = text;
    line->length = length;
    line->count = 0;
    for (size_t place = 0; place < length && line->count < TOKENS_MAX;) {
        if (isspace((unsigned char)text[place])) {
            place++;
            continue;
        }
        struct token token = {MARK, place, place + 1, (double)NAN,
                              place > 0 && !isspace((unsigned char)text[place - 1])};
        char before = place ? text[place - 1] : ' ';
        bool signs = is_any(text[place], "+-");
        size_t end = place;
        for (int grouped = 1; grouped >= 0 && end == place; grouped--)
            if (!signs || !(command_is_word(before) || before == '.'))
                end = command_number(text, length, place, grouped, &token.value);
        if (end > place) {
            token.kind = NUMBER;
            token.end = end;
        } else if (begins_word(text[place])) {
            token.kind = WORD;
            token.end = word_end(text, length, place);
        } else if (text[place] == '\xe2') {
            token.end = place + 3 < length ? place + 3 : length;
        }
        line->tokens[line->count++] = token;
        place = token.end;
    }
}

static bool is_mark(const struct line *line, int t, char mark) {
    return t >= 0 && t < line->count && line->tokens[t].kind == MARK &&
           line->text[line->tokens[t].start] == mark;
}

static char mark_at(const struct line *line, int t) {
    return t >= 0 && line->tokens[t].kind == MARK ? line->text[line->tokens[t].start] : '\0';
}

static bool is_kind(const struct line *line, int t, enum kind kind) {
    return t >= 0 && t < line->count && line->tokens[t].kind == kind;
}

/* --- items --- */

static void keep_unit(struct item *item, const char *unit) {
    snprintf(item->unit, sizeof item->unit, "%s", unit);
}

/* "ms" of "elapsed time (ms): 12" */
static int take_unit_before(const struct line *line, int t, struct item *item) {
    if (!is_mark(line, t, ')') || !is_kind(line, t - 1, WORD) || !is_mark(line, t - 2, '('))
        return t;
    const struct unit *unit = find_unit(line, &line->tokens[t - 1]);
    if (unit)
        keep_unit(item, unit->unit);
    return t - 3;
}

/* Whether a word may be of a name: not the unit of the number before it. */
static bool is_name(const struct line *line, int t) {
    return is_kind(line, t, WORD) &&
           !(is_kind(line, t - 1, NUMBER) &&
             (line->tokens[t].attached || find_unit(line, &line->tokens[t])));
}

/* The words that end with token `t`, joined by '_', in small letters. */
static void take_name(const struct line *line, int t, struct item *item) {
    int first = t;
    size_t length = 0;
    while (is_name(line, first - 1) && t - first + 1 < NAME_WORDS)
        first--;
    for (int i = first; i <= t; i++, item->words++) {
        const struct token *word = &line->tokens[i];
        for (size_t c = word->start; c < word->end && length + 2 < sizeof item->name; c++)
            item->name[length++] = (char)tolower((unsigned char)line->text[c]);
        if (i < t && length + 2 < sizeof item->name)
            item->name[length++] = '_';
    }
    item->name[length] = '\0';
    item->name[lab_str_utf8_prefix(item->name, length)] = '\0'; /* a name may have been cut */
    if (!item->name[0])
        item->words = 0;
}

static void look_before(const struct line *line, int number, struct item *item) {
    int t = number - 1;
    bool bracket = is_mark(line, t, '[');
    t -= bracket;
    item->separated = is_mark(line, t, ':') || is_mark(line, t, '=');
    t -= item->separated;
    t = take_unit_before(line, t, item);
    char quote = mark_at(line, t);
    if (quote == '"' || quote == '\'')
        t--;
    if (is_name(line, t))
        take_name(line, t, item);
    else
        item->before = bracket ? '[' : number > 0 ? mark_at(line, number - 1) : '\0';
}

/* A unit that is attached or known, and the name that comes with it: "45ms", "358383 tok/s",
 * "55.1% bf16 MFU". False: it is no number after all, such as 3rd or 0:05:12. */
static bool look_behind(const struct line *line, struct item *item) {
    int t = item->next;
    if (t < 1 || t >= line->count)
        return true;
    const struct token *token = &line->tokens[t];
    if (token->attached && is_mark(line, t, ':') && is_kind(line, t + 1, NUMBER) &&
        line->tokens[t + 1].attached)
        return false;
    const struct unit *unit = token->kind != NUMBER ? find_unit(line, token) : NULL;
    if (!unit)
        return token->kind != WORD || !token->attached;
    item->next++;
    keep_unit(item, unit->unit);
    if (item->words == 0 && unit->name) {
        snprintf(item->name, sizeof item->name, "%s", unit->name);
        item->words = 1;
        item->separated = true;
    } else if (item->words == 0 && item->before == '|') {
        int last = item->next;
        while (is_kind(line, last, WORD) && last - item->next < NAME_WORDS)
            last++;
        bool closed = last == line->count || is_mark(line, last, '|');
        if (closed && last > item->next) {
            take_name(line, last - 1, item);
            item->next = last;
        } else if (closed && unit->unit[strlen(unit->unit) - 1] == 's') {
            snprintf(item->name, sizeof item->name, "time");
            item->words = 1;
        }
        item->separated = item->words > 0;
    }
    return true;
}

/* The number at token `t`; false = none is there. */
static bool read_item(const struct line *line, int t, struct item *ret_item) {
    if (!is_kind(line, t, NUMBER))
        return false;
    struct item item = {.value = line->tokens[t].value, .of = (double)NAN, .next = t + 1};
    if (is_mark(line, t + 1, '/') && is_kind(line, t + 2, NUMBER)) {
        item.of = line->tokens[t + 2].value;
        item.next = t + 3;
    }
    look_before(line, t, &item);
    if (!look_behind(line, &item))
        return false;
    *ret_item = item;
    return true;
}

/* --- what counts --- */

static const char *last_word(const struct item *item) {
    const char *last = item->words > 1 ? strrchr(item->name, '_') : NULL;
    return last ? last + 1 : item->name;
}

/* "step", "global step", "train epoch"; not "time per step". */
static bool may_count(const struct item *item) {
    return item->words == 1 || (item->words == 2 && !lab_str_starts(item->name, "per_"));
}

static bool counts_epochs(const struct item *item) {
    return may_count(item) && is_epoch(last_word(item));
}

/* A bar has no name: "600/1875" after '|' or '[', or at the line's begin. */
static bool counts_steps(const struct item *item) {
    bool bar = item->words == 0 && !isnan(item->of) &&
               (item->before == '\0' || item->before == '|' || item->before == '[');
    return bar || (may_count(item) && command_is_step(last_word(item)));
}

static void count_epoch(struct command_progress *progress, const struct item *item) {
    if (!progress->has_epoch || item->value < progress->first_epoch)
        progress->first_epoch = item->value;
    progress->has_epoch = true;
    progress->epoch = item->value;
}

/* Steps of an epoch begin anew in each; where their number is known, all are counted on. */
static void count_step(struct command_progress *progress, const struct item *item) {
    bool within = progress->has_epoch && item->of > 0;
    double first = progress->first_epoch >= 1 ? 1 : 0;
    progress->step = within ? (progress->epoch - first) * item->of + item->value : item->value;
    progress->total = within ? 0 : item->of > 0 ? item->of : 0;
    progress->has_step = true;
}

static bool is_told(const struct item *item, bool counted) {
    if (item->words == 0 || is_prose(last_word(item)) || counts_steps(item) ||
        counts_epochs(item) || !isnan(item->of))
        return false;
    return is_known(item->name) || counted;
}

/* All numbers of the line that have a name or count something. */
static int read_items(const char *text, size_t length, struct item items[ITEMS_MAX]) {
    struct line line;
    int count = 0;
    cut(&line, text, length);
    for (int t = 0; t < line.count && count < ITEMS_MAX; t++)
        if (read_item(&line, t, &items[count])) {
            t = items[count].next - 1;
            count += items[count].words > 0 || counts_steps(&items[count]);
        }
    return count;
}

bool command_printed_line(struct command_reading *reading, const char *text, size_t length,
                          command_found *found, void *state) {
    struct item items[ITEMS_MAX];
    bool named = false, counted = false, any = false;
    struct command_progress *progress = command_reading_of(reading, -1);
    int count = read_items(text, length, items);
    for (int i = 0; i < count; i++) {
        bool epoch = counts_epochs(&items[i]);
        if (epoch)
            count_epoch(progress, &items[i]);
        counted |= epoch;
        named |=
            items[i].words > 0 && (epoch || counts_steps(&items[i]) || is_known(items[i].name));
    }
    for (int i = 0; i < count && named; i++)
        if (counts_steps(&items[i])) {
            count_step(progress, &items[i]);
            counted = true;
            break;
        }
    double step = progress->has_step    ? progress->step
                  : progress->has_epoch ? progress->epoch
                                        : (double)NAN;
    for (int i = 0; i < count && named; i++)
        if (is_told(&items[i], counted)) {
            struct command_value value = {items[i].name, items[i].unit, items[i].value, step,
                                          reading->rank};
            found(state, &value);
            any = true;
        }
    return any || counted;
}
