/*
 * command/line.c: a line as words, numbers and marks. Programs print millions of lines, of which
 * most hold nothing for us: a look at their words is all that those get.
 */
#include "workload/command/line.h"

#include <string.h>
#include <strings.h>

/* --- characters --- */

enum {
    SPACE = 1,
    LETTER = 2, /* of ASCII */
    WORD = 4,   /* that words begin with */
    DIGIT = 64, /* inside a word, as JOINS */
    JOINS = 8,
    NUMERIC = 16, /* a number may begin with it */
    SIGN = 32,
    SPLITS = 128, /* a word into parts */
};

static const unsigned char classes[256] = {
    [' '] = SPACE,
    ['\t' ... '\r'] = SPACE,
    ['0' ... '9'] = DIGIT | NUMERIC,
    ['A' ... 'H'] = LETTER | WORD,
    ['I'] = LETTER | WORD | NUMERIC, /* Infinity */
    ['J' ... 'M'] = LETTER | WORD,
    ['N'] = LETTER | WORD | NUMERIC, /* NaN */
    ['O' ... 'Z'] = LETTER | WORD,
    ['a' ... 'h'] = LETTER | WORD,
    ['i'] = LETTER | WORD | NUMERIC,
    ['j' ... 'm'] = LETTER | WORD,
    ['n'] = LETTER | WORD | NUMERIC,
    ['o' ... 'z'] = LETTER | WORD,
    ['_'] = WORD | SPLITS,
    ['@'] = JOINS,
    ['/'] = JOINS | SPLITS,
    ['#'] = JOINS,
    ['.'] = JOINS | NUMERIC | SPLITS,
    ['-'] = JOINS | NUMERIC | SIGN,
    ['+'] = NUMERIC | SIGN,
    [0x80 ... 0xe1] = WORD,
    [0xe2] = 0, /* begins the characters that bars and frames are drawn with */
    [0xe3 ... 0xff] = WORD,
};

static bool is(char c, int class) {
    return classes[(unsigned char)c] & class;
}

/* --- words --- */

struct word {
    const char *text;
    unsigned char length, meaning;
};

#define W(text, meaning)                                                                           \
    { text, sizeof(text) - 1, COMMAND_##meaning }
#define WORDS (const struct word[])

static const struct word *const words[26] = {
    ['a' - 'a'] = WORDS{W("acc", KNOWN),
                        W("accuracy", KNOWN),
                        W("auc", KNOWN),
                        W("acc@1", KNOWN),
                        W("acc@5", KNOWN),
                        W("at", PREPOSITION),
                        W("after", PREPOSITION),
                        W("and", PREPOSITION),
                        {NULL}},
    ['b' - 'a'] = WORDS{W("batch", STEP), W("bleu", KNOWN), W("bpb", KNOWN), {NULL}},
    ['c' - 'a'] = WORDS{W("critical", LEVEL), {NULL}},
    ['d' - 'a'] = WORDS{W("debug", LEVEL), {NULL}},
    ['e' - 'a'] = WORDS{W("epoch", EPOCH), W("epochs", EPOCH), W("error", LEVEL), {NULL}},
    ['f' - 'a'] = WORDS{W("f1", KNOWN), W("for", PREPOSITION), W("from", PREPOSITION), {NULL}},
    ['g' - 'a'] = WORDS{W("global_step", STEP), W("global_iter", STEP), W("gpu", PROSE), {NULL}},
    ['i' - 'a'] = WORDS{W("iter", STEP),
                        W("iters", STEP),
                        W("iteration", STEP),
                        W("iterations", STEP),
                        W("iou", KNOWN),
                        W("in", PREPOSITION),
                        W("is", IS),
                        W("info", LEVEL),
                        {NULL}},
    ['l' - 'a'] = WORDS{W("loss", KNOWN), W("line", PROSE), {NULL}},
    ['m' - 'a'] = WORDS{W("mfu", KNOWN), W("mae", KNOWN), W("mse", KNOWN), {NULL}},
    ['n' - 'a'] = WORDS{W("nll", KNOWN), W("node", PROSE), {NULL}},
    ['o' - 'a'] = WORDS{W("of", OF), {NULL}},
    ['p' - 'a'] =
        WORDS{W("ppl", KNOWN), W("perplexity", KNOWN), W("port", PROSE), W("pid", PROSE), {NULL}},
    ['r' - 'a'] = WORDS{W("rmse", KNOWN), W("reward", KNOWN), W("rank", PROSE), {NULL}},
    ['s' - 'a'] =
        WORDS{W("step", STEP), W("steps", STEP), W("seed", PROSE), W("saved", PROSE), {NULL}},
    ['t' - 'a'] = WORDS{W("train_step", STEP),
                        W("train_iter", STEP),
                        W("top1", KNOWN),
                        W("top5", KNOWN),
                        W("to", PREPOSITION),
                        W("than", PREPOSITION),
                        W("the", PREPOSITION),
                        W("took", PREPOSITION),
                        {NULL}},
    ['v' - 'a'] = WORDS{W("version", PROSE), W("v_num", PROSE), {NULL}},
    ['w' - 'a'] = WORDS{W("wer", KNOWN),
                        W("with", PREPOSITION),
                        W("was", IS),
                        W("warning", LEVEL),
                        W("warn", LEVEL),
                        {NULL}},
};

/* In either case; letters of `word` are small. */
static bool is_same(const char *word, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (word[i] != (is(text[i], LETTER) ? text[i] | 0x20 : text[i]))
            return false;
    return true;
}

static unsigned look_up(const char *text, size_t length) {
    unsigned letter = (unsigned)(*text | 0x20) - 'a';
    const struct word *word = letter < 26 ? words[letter] : NULL;
    for (; word && word->text; word++)
        if (word->length == length && is_same(word->text, text, length))
            return word->meaning;
    return 0;
}

static unsigned word_meaning(const char *text, size_t length, bool split) {
    unsigned meaning = look_up(text, length), last;
    if (meaning == COMMAND_LEVEL && is(text[1], LETTER) && text[1] & 0x20)
        meaning = 0; /* INFO, but "error" is a value's name */
    last = meaning;
    size_t part = 0, name = 0; /* where parts begin: behind '_', '/' or '.', and behind '_' */
    for (size_t i = 0; split && i <= length; i++) {
        if (i < length && !is(text[i], SPLITS))
            continue;
        if (i > part && i - part < length)
            meaning |= look_up(text + part, i - part) & COMMAND_KNOWN;
        part = i + 1;
        if (i < length && text[i] == '_')
            name = i + 1;
    }
    if (name > 0)
        last = name < length ? look_up(text + name, length - name) : 0;
    return meaning | (last & COMMAND_STEP ? COMMAND_STEP_LAST : 0) |
           (last & COMMAND_EPOCH ? COMMAND_EPOCH_LAST : 0);
}

bool command_is_step(const char *name) {
    return look_up(name, strlen(name)) & COMMAND_STEP;
}

bool command_is_epoch(const char *name) {
    return (*name | 0x20) == 'e' && strcasecmp(name, "epoch") == 0; /* few begin so */
}

/* Words of letters alone; f1, top1 and top5 go on with a digit. */
bool command_line_is_candidate(const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        if (!is(text[i], LETTER)) {
            i++;
            continue;
        }
        size_t start = i;
        while (i < length && is(text[i], LETTER))
            i++;
        size_t end = i < length && i - start <= 3 && text[i] >= '1' && text[i] <= '5' ? i + 1 : i;
        if (look_up(text + start, end - start) & (COMMAND_KNOWN | COMMAND_STEP | COMMAND_EPOCH))
            return true;
    }
    return false;
}

/* --- units --- */

static const struct command_unit units[] = {
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

static const struct command_unit *find_unit(const char *text, size_t length) {
    if (!is(*text, WORD))
        return *text == '%' ? &units[0] : NULL;
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if (*units[i].text == *text && strncmp(units[i].text, text, length) == 0 &&
            !units[i].text[length])
            return &units[i];
    return NULL;
}

/* --- tokens --- */

static size_t word_end(const char *text, size_t length, size_t place, bool *ret_split) {
    unsigned all = 0;
    for (; place < length && is(text[place], WORD | DIGIT | JOINS); place++)
        all |= classes[(unsigned char)text[place]];
    *ret_split = all & SPLITS;
    while (text[place - 1] == '/' || text[place - 1] == '.' || text[place - 1] == '-')
        place--; /* "loss." ends a sentence */
    return place;
}

/* "step-5", "0.5-0.6": a sign behind a word is none. */
static bool may_be_number(const char *text, size_t place) {
    if (!is(text[place], NUMERIC))
        return false;
    return !is(text[place], SIGN) || place == 0 ||
           !(command_is_word(text[place - 1]) || text[place - 1] == '.');
}

static void add_token(struct command_line *line, size_t place) {
    const char *text = line->text;
    struct command_token *token = &line->tokens[line->count];
    bool split;
    *token = (struct command_token){.kind = COMMAND_MARK,
                                    .start = (uint32_t)place,
                                    .attached = place > 0 && !is(text[place - 1], SPACE)};
    size_t end = may_be_number(text, place)
                     ? command_number(text, line->length, place, COMMAND_EITHER, &token->value)
                     : place;
    if (end > place) {
        token->kind = COMMAND_NUMBER;
    } else if (is(text[place], WORD)) {
        token->kind = COMMAND_WORD;
        end = word_end(text, line->length, place, &split);
        token->meaning = (unsigned char)word_meaning(text + place, end - place, split);
    } else if (is(text[place], DIGIT)) { /* 127.0.0.1 */
        end = word_end(text, line->length, place, &split);
    } else {
        end = place + (text[place] == '\xe2' ? 3 : 1);
        end = end < line->length ? end : line->length;
    }
    token->end = (uint32_t)end;
    int before = line->count - 1;
    if (token->kind != COMMAND_NUMBER &&
        (command_line_is(line, before, COMMAND_NUMBER) || command_line_mark(line, before) == '('))
        token->unit = find_unit(text + place, token->end - place);
    line->count++;
}

void command_line_cut(struct command_line *line, const char *text, size_t length) {
    line->text = text;
    line->length = length;
    line->count = 0;
    for (size_t place = 0; place < length && line->count < COMMAND_TOKENS_MAX;) {
        if (is(text[place], SPACE)) {
            place++;
            continue;
        }
        add_token(line, place);
        place = line->tokens[line->count - 1].end;
    }
}
