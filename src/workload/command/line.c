/*
 * command/line.c: a line as words, numbers and marks. Programs print millions of lines, of which
 * most hold nothing for us: a look at their words is all that those get.
 */
#include "workload/command/line.h"

#include "workload/command/character.h"

#include <string.h>
#include <strings.h>

/* "it/s", "s/it", "tok/s", "images/sec" */
static bool is_rate(const char *word, size_t length, const char *rest, size_t left) {
    static const char begins[][3] = {"it", "to", "im", "sa", "ex", "st", "ba", "wo", "up"};
    if (left < 2 || *rest != '/' || length > 8)
        return false;
    if (length == 1)
        return *word == 's' && rest[1] == 'i';
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (rest[1] == 's' && command_is_same(begins[i], word, 2))
            return true;
    return false;
}

/* Words of letters alone; f1, top5 and map50 go on with digits. */
bool command_line_is_candidate(const char *text, size_t length) {
    if (*text == '[' && length > 1 && is(text[1], DIGIT) && memmem(text, length, "'s ", 3))
        return true; /* "[10] valid_0's l2: 0.2" */
    for (size_t i = 0; i < length;) {
        if (!is(text[i], LETTER)) {
            i++;
            continue;
        }
        size_t start = i;
        while (i < length && is(text[i], LETTER))
            i++;
        size_t end = i;
        while (end < length && i - start <= 3 && text[end] >= '0' && text[end] <= '5')
            end++;
        if (command_meaning_look_up(text + start, end - start) &
                (COMMAND_KNOWN | COMMAND_MARKED | COMMAND_STEP | COMMAND_EPOCH | COMMAND_FOLDER |
                 COMMAND_BEST) ||
            is_rate(text + start, i - start, text + i, length - i))
            return true;
    }
    return false;
}

/* --- units --- */

const struct command_unit *command_line_unit(const struct command_line *line, int t) {
    const struct command_token *token = &line->tokens[t];
    return command_unit_find(line->text + token->start, token->end - token->start);
}

const struct command_unit *command_line_per_second(const struct command_line *line, int t) {
    static const char *const seconds[] = {"s", "sec", "second"};
    char text[32];
    for (int i = 0; i < 3; i++)
        if (!command_line_is(line, t + i, COMMAND_WORD))
            return NULL;
    const struct command_token *what = &line->tokens[t], *per = what + 1, *time = what + 2;
    size_t length = what->end - what->start, last = time->end - time->start;
    bool second = false;
    for (int i = 0; i < 3; i++)
        second |=
            strlen(seconds[i]) == last && memcmp(seconds[i], line->text + time->start, last) == 0;
    if (!second || per->end - per->start != 3 ||
        !command_is_same("per", line->text + per->start, 3) || length + 3 > sizeof text)
        return NULL;
    memcpy(text, line->text + what->start, length);
    memcpy(text + length, "/s", 3);
    return command_unit_find(text, length + 2);
}

double command_line_suffix(const struct command_line *line, int t) {
    if (!command_line_is(line, t, COMMAND_WORD) || !command_line_is(line, t - 1, COMMAND_NUMBER) ||
        !line->tokens[t].attached || line->tokens[t].end - line->tokens[t].start != 1)
        return 0;
    return command_suffix(line->text[line->tokens[t].start]);
}

/* "ms", or "kit/s" with what its prefix multiplies. */
static void take_unit(struct command_line *line, struct command_token *token) {
    const char *text = line->text + token->start;
    size_t length = token->end - token->start;
    token->unit = command_unit_find(text, length);
    token->value = 1;
    if (token->unit || length < 4 || !command_suffix(*text))
        return;
    const struct command_unit *unit = command_unit_find(text + 1, length - 1);
    if (unit && unit->name) {
        token->unit = unit;
        token->value = command_suffix(*text);
    }
}

/* --- tokens --- */

/* "valid_0's auc" */
static bool is_owner(const char *text, size_t length, size_t quote) {
    return length - quote > 2 && text[quote + 1] == 's' && is(text[quote + 2], SPACE);
}

/* "0.9 ± 0.1": a mark, though its bytes may begin a word. */
static bool is_plus_minus(const char *text, size_t length, size_t place) {
    return length - place >= 2 && memcmp(text + place, "±", 2) == 0;
}

static size_t word_end(const char *text, size_t length, size_t place, bool *ret_split) {
    unsigned all = 0;
    for (; place < length && !is_plus_minus(text, length, place) &&
           (is(text[place], WORD | DIGIT | JOINS) ||
            (text[place] == '\'' && is_owner(text, length, place)));
         place++)
        all |= command_classes[(unsigned char)text[place]];
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

/* "/x/epoch=1-val_loss=0.51.ckpt", "out/loss=2.40/model.pt": the bytes of a path that begins here;
 * 0 = none does. What its names hold was said before. */
static size_t path_bytes(const char *text, size_t length, size_t place) {
    static const char *const endings[] = {
        ".ckpt", ".pt",  ".pth", ".safetensors", ".bin",  ".h5",   ".keras", ".npz", ".npy",
        ".pkl",  ".tar", ".gz",  ".onnx",        ".json", ".yaml", ".png",   ".csv", ".log"};
    size_t end = place, slash = text[place] == '.' || text[place] == '~';
    bool pointed = false;
    if (place > 0 && !is(text[place - 1], BEFORE_PATH))
        return 0;
    for (; end < length && !is(text[end], ENDS_PATH); end++)
        pointed |= text[end] == '.';
    while (end > place && (text[end - 1] == '.' || text[end - 1] == ':'))
        end--;
    size_t bytes = end - place;
    if (bytes > slash + 1 && text[place + slash] == '/' && is(text[place + slash + 1], WORD))
        return memchr(text + place + slash + 1, '/', bytes - slash - 1) ? bytes : 0;
    const char *point = pointed ? memrchr(text + place, '.', bytes) : NULL;
    size_t ending = point ? (size_t)(text + end - point) : 0;
    for (size_t i = 0; ending > 0 && ending < bytes && i < sizeof endings / sizeof *endings; i++)
        if (strlen(endings[i]) == ending && memcmp(point, endings[i], ending) == 0)
            return bytes;
    return 0;
}

/* "step-64", "epoch_3": where the word ends that counts; 0 = it is none such. */
static size_t counting_end(const char *text, size_t length) {
    size_t word = 0, at;
    while (word < length && is(text[word], LETTER))
        word++;
    at = word + (word < length && (text[word] == '_' || text[word] == '-'));
    if (at == length || !(command_meaning_look_up(text, word) & (COMMAND_STEP | COMMAND_EPOCH)))
        return 0;
    for (; at < length; at++)
        if (!is(text[at], DIGIT))
            return 0;
    return word;
}

/* "GiB" of "12.3GiB/79.2GiB": where the unit behind a number ends; 0 = no value follows it. */
static size_t unit_end(const char *text, size_t length) {
    const char *slash = memchr(text, '/', length);
    size_t unit = slash ? (size_t)(slash - text) : 0;
    return unit > 0 && unit + 1 < length && is(slash[1], DIGIT) && command_unit_find(text, unit)
               ? unit
               : 0;
}

/* A part of a word that stands for itself; else the word's end. */
static size_t cut_word(const struct command_line *line, size_t place, size_t end) {
    const char *text = line->text + place;
    bool behind = line->count > 0 && line->tokens[line->count - 1].end == place &&
                  line->tokens[line->count - 1].kind == COMMAND_NUMBER;
    size_t part = behind ? unit_end(text, end - place) : counting_end(text, end - place);
    return part > 0 ? place + part : end;
}

static void add_token(struct command_line *line, size_t place) {
    const char *text = line->text;
    struct command_token *token = &line->tokens[line->count];
    bool split;
    *token = (struct command_token){.kind = COMMAND_MARK,
                                    .start = (uint32_t)place,
                                    .attached = place > 0 && !is(text[place - 1], SPACE)};
    size_t path = path_bytes(text, line->length, place),
           end = path == 0 && may_be_number(text, place)
                     ? command_number(text, line->length, place, line->groups, &token->value)
                     : place;
    if (path > 0) {
        end = place + path;
    } else if (end > place) {
        token->kind = COMMAND_NUMBER;
    } else if (is_plus_minus(text, line->length, place)) {
        end = place + 2;
    } else if (is(text[place], WORD)) {
        token->kind = COMMAND_WORD;
        end = cut_word(line, place, word_end(text, line->length, place, &split));
        token->meaning = command_word_meaning(text + place, end - place, split);
    } else if (is(text[place], DIGIT)) { /* 127.0.0.1 */
        end = word_end(text, line->length, place, &split);
    } else {
        end = place + (text[place] == '\xe2' ? 3 : 1);
        end = end < line->length ? end : line->length;
    }
    token->end = (uint32_t)end;
    int before = line->count - 1;
    if (token->kind != COMMAND_NUMBER &&
        (command_line_is(line, before, COMMAND_NUMBER) || command_line_mark(line, before) == '(' ||
         command_line_mark(line, before) == '[' || command_line_suffix(line, before) > 0))
        take_unit(line, token);
    line->count++;
}

/* "Val. Loss: 0.5", "Acc.: 90%": the point of an abbreviation, no end of a sentence. */
static bool is_abbreviated(const struct command_line *line, size_t place) {
    static const char *const short_words[] = {"val", "valid", "eval", "acc", "avg"};
    if (line->text[place] != '.' || !command_line_is(line, line->count - 1, COMMAND_WORD))
        return false;
    const struct command_token *word = &line->tokens[line->count - 1];
    if (word->end != place)
        return false;
    for (size_t i = 0; i < sizeof short_words / sizeof *short_words; i++)
        if (strlen(short_words[i]) == place - word->start &&
            command_is_same(short_words[i], line->text + word->start, place - word->start))
            return true;
    return false;
}

void command_line_cut(struct command_line *line, const char *text, size_t length) {
    line->text = text;
    line->length = length;
    line->count = 0;
    line->groups = command_line_has_comma(text, length) ? COMMAND_COMMA : COMMAND_EITHER;
    for (size_t place = 0; place < length && line->count < COMMAND_TOKENS_MAX;) {
        if (is(text[place], SPACE) || is_abbreviated(line, place)) {
            place++;
            continue;
        }
        add_token(line, place);
        const struct command_token *token = &line->tokens[line->count - 1];
        place = token->end;
        if (token->meaning & (COMMAND_STEP | COMMAND_EPOCH) && place + 1 < length &&
            (text[place] == '_' || text[place] == '-') && is(text[place + 1], DIGIT))
            place++; /* "step-64" */
    }
}
