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

#define STARS         3
#define HEADING_BYTES 48

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

/* "> EVALUATION", "--- Test results ---", "Validating...": a heading that says no more. */
static const char *of_heading(const char *line, size_t length) {
    static const char *const others[] = {"results",  "result", "metrics", "set",  "performance",
                                         "running",  "phase",  "stats",   "step", "the",
                                         "starting", "begin",  "model",   "eval", "summary"};
    const char *names = NULL;
    line = trim(line, &length, "*=-#>~_+.:[]()<|! ");
    if (length == 0 || length > HEADING_BYTES)
        return NULL;
    for (size_t word; length > 0; line += word, length -= word) {
        word = word_length(line, length);
        const char *phase = word > 0 ? phase_of(line, word) : NULL;
        bool known = phase != NULL;
        for (size_t i = 0; !known && i < sizeof others / sizeof *others; i++)
            known = strlen(others[i]) == word && strncasecmp(others[i], line, word) == 0;
        if (!known || (phase && command_meaning_look_up(line, word) & COMMAND_TRAINING))
            return NULL;
        names = names ? names : phase;
        while (word < length && line[word] == ' ')
            word++;
    }
    return names;
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
    if (worded && (valued || length > HEADING_BYTES))
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
