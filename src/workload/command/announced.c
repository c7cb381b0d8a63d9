/*
 * command/announced.c: lines that say what those behind them are of, which have neither a step nor
 * a word for it of their own:
 *
 *   ***** Evaluating perplexity, Epoch 2/2 *****      DeepSpeed-Chat
 *   ppl: 5.123, loss: 1.612
 *
 *   Epoch 2 - Evaluation time: 1.12 - test metrics:   ignite
 *       Loss: 1.2456
 *
 *   "validation": {                                   a file of results that is printed
 *       "loss": 5.756,
 *
 *   Early stopping, best iteration is:                LightGBM: one line
 *   [6] training's l2: 0.3
 *
 *   > EVALUATION                                      Coqui; "Validating...", "--- Test ---"
 *     --> STEP: 0
 *      | > loss: 1.53
 */
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define STARS 3

static const char *trim(const char *text, size_t *length, const char *marks) {
    while (*length > 0 && (isspace((unsigned char)*text) || (*text && strchr(marks, *text))))
        text++, --*length;
    while (*length > 0 && (isspace((unsigned char)text[*length - 1]) ||
                           (text[*length - 1] && strchr(marks, text[*length - 1]))))
        --*length;
    return text;
}

/* "val_" of a word that means so; "train_"; NULL = it is neither. */
static const char *phase_of(const char *word, size_t length) {
    unsigned meaning = command_meaning_look_up(word, length);
    char letter = (char)tolower((unsigned char)*word);
    return meaning & COMMAND_TRAINING        ? "train_"
           : !(meaning & COMMAND_EVALUATION) ? NULL
           : letter == 't'                   ? "test_"
           : letter == 'e'                   ? "eval_"
                                             : "val_";
}

static size_t word_length(const char *text, size_t length) {
    size_t word = 0;
    while (word < length && isalpha((unsigned char)text[word]))
        word++;
    return word;
}

/* "***** Evaluating perplexity, Epoch 2/2 *****", also behind a log's "INFO:tensorflow:" */
static const char *of_stars(const char *line, size_t length) {
    size_t stars = 0;
    const char *first = *line == '*' || *line == '=' || line[length - 1] != '*'
                            ? NULL
                            : memmem(line, length, "***", STARS);
    length -= first ? (size_t)(first - line) : 0;
    line = first ? first : line;
    while (stars < length && (line[stars] == '*' || line[stars] == '='))
        stars++;
    if (stars < STARS)
        return NULL;
    line = trim(line, &length, "*=");
    size_t word = word_length(line, length);
    const char *names = phase_of(line, word);
    return command_meaning_look_up(line, word) & COMMAND_TRAINING ? NULL : names; /* as "Train:" */
}

/* "test metrics:" at the end */
static const char *of_ending(const char *line, size_t length) {
    static const char ending[] = " metrics:";
    size_t end = length - (sizeof ending - 1), start;
    if (length < sizeof ending || strncasecmp(line + end, ending, sizeof ending - 1) != 0)
        return NULL;
    for (start = end; start > 0 && isalpha((unsigned char)line[start - 1]);)
        start--;
    return phase_of(line + start, end - start);
}

/* "validation": { */
static const char *of_object(const char *line, size_t length) {
    if (length < 5 || *line != '"' || line[length - 1] != '{')
        return NULL;
    size_t word = word_length(line + 1, length - 1);
    return word + 1 < length && line[word + 1] == '"' ? phase_of(line + 1, word) : NULL;
}

/* A word of such a heading; `*ret_phase`: what it is of, or NULL. */
static bool is_of_heading(const char *word, size_t length, const char **ret_phase) {
    static const char *const others[] = {"results", "result",   "metrics", "set",    "performance",
                                         "running", "phase",    "stats",   "step",   "the",
                                         "model",   "starting", "begin",   "summary"};
    *ret_phase = phase_of(word, length);
    if (*ret_phase)
        return !(command_meaning_look_up(word, length) & COMMAND_TRAINING);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == length && strncasecmp(others[i], word, length) == 0)
            return true;
    return false;
}

/* "2026-01-05 10:00:00 - INFO - ", "[rank0]: ", "INFO ", or nothing: what loggers begin with. */
static bool is_prefix(const char *text, size_t length) {
    size_t word = 0;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0 || strchr("]|>-*=#)", text[length - 1]))
        return true;
    bool colon = text[length - 1] == ':';
    length -= colon;
    while (word < length && isupper((unsigned char)text[length - 1 - word]))
        word++;
    return (colon && length > 0 && text[length - 1] == ']') ||
           (word > 0 && command_meaning_look_up(text + length - word, word) == COMMAND_LEVEL);
}

/* "> EVALUATION", "--- Test results ---", "INFO Validating...": a heading that says no more. */
static const char *of_heading(const char *line, size_t length) {
    const char *names = NULL, *phase;
    line = trim(line, &length, "*=-#>~_+.:[]()<|!");
    while (length > 0) {
        size_t word = 0;
        while (word < length && isalpha((unsigned char)line[length - 1 - word]))
            word++;
        if (word == 0 || !is_of_heading(line + length - word, word, &phase))
            break;
        length -= word;
        names = phase ? phase : names;
        if (length > 0 && !isspace((unsigned char)line[length - 1]))
            break;
        while (length > 0 && isspace((unsigned char)line[length - 1]))
            length--;
    }
    return names && is_prefix(line, length) ? names : NULL;
}

static bool is_of_best(const char *line, size_t length) {
    for (size_t i = 0; length > 5 && line[length - 1] == ':' && i + 4 < length; i++)
        if (strncasecmp(line + i, "best", 4) == 0)
            return true;
    return false;
}

const char *command_line_announces(const char *line, size_t length, bool valued) {
    const char *names = NULL;
    bool worded = isalnum((unsigned char)line[length - 1]); /* as most lines end */
    if (worded && valued)
        return NULL;
    line = trim(line, &length, "");
    if (length == 0)
        return NULL;
    if (!worded && strchr("*:{=", line[length - 1])) {
        names = of_stars(line, length);
        names = names ? names : of_ending(line, length);
        names = names ? names : of_object(line, length);
    }
    names = names || valued ? names : of_heading(line, length);
    return names || worded || valued || !is_of_best(line, length) ? names : COMMAND_ANNOUNCED_BEST;
}

bool command_line_is_average(const char *line, size_t length) {
    static const char begin[] = "Averaged stats:";
    return *line == *begin && length >= sizeof begin && memcmp(line, begin, sizeof begin - 1) == 0;
}
