/*
 * command/judge.c: what a number of a line is: a step, an epoch, a part of one, a rank, a value, or
 * nothing that is read: a setting, the line of a source, a word of a sentence.
 */
#include "workload/command/form.h"
#include "workload/command/item.h"

#include <string.h>
#include <strings.h>

/* --- what counts --- */

unsigned command_item_meaning(const struct command_line *line, const struct command_item *item) {
    return item->words > 0 && !item->name
               ? command_line_meaning(line, item->first + item->words - 1)
               : 0;
}

/* "per step" */
static bool begins_with_per(const struct command_line *line, const struct command_item *item) {
    const struct command_token *word = &line->tokens[item->first];
    return word->end - word->start >= 3 && memcmp(line->text + word->start, "per", 3) == 0 &&
           (word->end - word->start == 3 || line->text[word->start + 3] == '_');
}

/* "total step: 50": all steps so far */
static bool is_total(const struct command_line *line, const struct command_item *item) {
    return item->words == 2 && item->marked && command_line_is_word(line, item->first, "total") &&
           command_line_is_word(line, item->first + 1, "step");
}

/* "Total steps: 1000", "fps step: 900", "loss step: 2" */
static bool is_setting(const struct command_line *line, const struct command_item *item) {
    static const char *const words[] = {"total", "num", "max", "warmup", "fps", "time", "sec"};
    const struct command_token *word = &line->tokens[item->first];
    if (command_line_meaning(line, item->first) & COMMAND_KNOWN)
        return true;
    if (is_total(line, item))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == word->end - word->start &&
            strncasecmp(words[i], line->text + word->start, strlen(words[i])) == 0)
            return true;
    return false;
}

/* "Finished training it 1024/16384": steps, since how many there are is said. */
static bool is_counted_of(const struct command_line *line, const struct command_item *item) {
    return item->of >= 0 && item->words <= 4 && !item->marked &&
           command_item_meaning(line, item) & COMMAND_STEP &&
           command_line_meaning(line, item->first + item->words - 2) & COMMAND_TRAINING;
}

/* "step", "global step", "train epoch"; not "time per step". */
static bool counts(const struct command_line *line, const struct command_item *item, unsigned whole,
                   unsigned last) {
    if (item->words == 1)
        return command_item_meaning(line, item) & whole;
    if (item->words > 2)
        return whole == COMMAND_STEP && is_counted_of(line, item);
    return item->words == 2 && command_item_meaning(line, item) & last &&
           !begins_with_per(line, item) && !is_setting(line, item);
}

/* "Step: 69ms", "Time taken for 1 epoch: 45.2 secs": how long one takes. */
static bool is_duration(const struct command_line *line, const struct command_item *item) {
    const struct command_token *after = &line->tokens[item->next - 1];
    int next = item->next;
    bool closed = next == line->count || line->tokens[next].kind == COMMAND_MARK;
    return lab_str_equal(item->unit, "ms") && item->next > item->token + 1 &&
           (after->attached || (item->marked && closed));
}

/* "epochs: 3" by itself is a setting. */
static unsigned named(const struct command_line *line, const struct command_item *item) {
    const struct command_token *word = &line->tokens[item->first + item->words - 1];
    bool global = (command_line_meaning(line, item->first) | command_item_meaning(line, item)) &
                      COMMAND_GLOBAL ||
                  is_total(line, item);
    return global                                      ? COMMAND_IS_NAMED | COMMAND_IS_GLOBAL
           : (line->text[word->end - 1] | 0x20) == 's' ? 0
                                                       : COMMAND_IS_NAMED;
}

/* A bar has no name: "600/1875" after '|', '[' or the backspaces of pytorch-cifar's. */
static bool is_bar(const struct command_item *item) {
    static const char marks[] = {'|', '[', COMMAND_BAR_BYTE, '\b', '\0'}; /* or the line's begin */
    return item->words == 0 &&
           (item->counts || (item->of >= 0 && memchr(marks, item->before, sizeof marks)));
}

/* "[1/25][100/1583]", "Train: [1/300][10/1251]": the first is an epoch. */
static bool is_double_bar(const struct command_line *line, const struct command_item *item) {
    int t = item->token;
    return item->of == t + 2 && command_line_mark(line, t - 1) == '[' &&
           command_line_mark(line, t + 3) == ']' && command_line_mark(line, t + 4) == '[' &&
           command_line_is(line, t + 5, COMMAND_NUMBER) && command_line_mark(line, t + 6) == '/';
}

/* "train: [1][990/1000]": so, too; "Training  [ 10/125000]" has steps alone. */
static unsigned named_bar(const struct command_line *line, const struct command_item *item) {
    int t = item->token;
    const unsigned phases = COMMAND_TRAINING | COMMAND_EVALUATION;
    if (item->words != 1 || item->name || command_line_mark(line, t - 1) != '[' ||
        !(command_line_meaning(line, item->first) & phases))
        return 0;
    if (item->of < 0 && command_line_mark(line, t + 1) == ']' &&
        command_line_mark(line, t + 2) == '[' && line->tokens[t + 2].attached &&
        command_line_is(line, t + 3, COMMAND_NUMBER) && command_line_mark(line, t + 4) == '/')
        return COMMAND_IS_EPOCH;
    return item->of >= 0 && command_line_mark(line, t + 3) == ']' && !item->percents &&
                   command_item_meaning(line, item) & COMMAND_TRAINING
               ? COMMAND_IS_STEP
               : 0;
}

/* "2|100|Loss: 1.2": an epoch and a step of all epochs, before a bar of its own. */
static bool is_numbered(const struct command_line *line) {
    return command_line_is(line, 0, COMMAND_NUMBER) && command_line_mark(line, 1) == '|' &&
           command_line_is(line, 2, COMMAND_NUMBER) && command_line_mark(line, 3) == '|' &&
           command_line_is(line, 4, COMMAND_WORD) && line->tokens[2].attached &&
           line->tokens[4].attached;
}

/* "loss = 0.5 * F.mse_loss(pred, y)": a line of a source, as warnings and tracebacks show it. */
static bool is_code(const struct command_line *line, const struct command_item *item) {
    int t = item->next;
    char mark = command_line_mark(line, t);
    return command_line_mark(line, item->token - 1) == '=' &&
           !line->tokens[item->token - 1].attached && !line->tokens[item->token].attached && mark &&
           strchr("*+/", mark) && !line->tokens[t].attached &&
           (command_line_is(line, t + 1, COMMAND_WORD) || command_line_mark(line, t + 1) == '(');
}

/* "Epoch: 0, Step: 1, Rank: 1, loss = 3.3", "loss 2.5 rank 1" */
static bool is_of_rank(const struct command_line *line, const struct command_item *item) {
    int next = item->next;
    const unsigned begins = COMMAND_KNOWN | COMMAND_STEP | COMMAND_EPOCH;
    return item->words == 1 && !item->name && item->of < 0 && !*item->unit &&
           (command_line_is_word(line, item->first, "rank") ||
            command_line_is_word(line, item->first, "Rank") ||
            command_line_is_word(line, item->first, "local_rank")) &&
           (item->marked || !command_line_is(line, next, COMMAND_WORD) ||
            command_line_meaning(line, next) & begins);
}

/* "200:  learn: 0.6": a step that begins the line. */
static bool is_leading(const struct command_line *line, const struct command_item *item) {
    return item->token == 0 && item->of < 0 && command_line_mark(line, 1) == ':' &&
           command_line_is(line, 2, COMMAND_WORD) && !line->tokens[2].attached &&
           command_line_mark(line, 3) == ':';
}

/* CatBoost: "0:  test: 0.95  best: 0.95 (0)  total: 181ms  remaining: 10.7s" */
static bool is_boosting(const struct command_line *line) {
    bool of_test = command_line_is_word(line, 2, "test"), best = false;
    for (int t = 4; of_test && t < line->count && !best; t++)
        best = command_line_is_word(line, t, "best") || command_line_is_word(line, t, "total");
    return best;
}

/* "install 4 packages", "was not in top 1", "as top 1"; of a known name "loss of 4 packets". */
static bool is_of_sentence(const struct command_line *line, const struct command_item *item,
                           bool known) {
    if (item->marked || item->name || item->words == 0)
        return false;
    int end = item->first + item->words;
    if (known)
        return end < item->token && command_line_meaning(line, end) & COMMAND_IS &&
               command_line_is_sentence(line, item->next);
    if (command_line_is(line, item->first - 1, COMMAND_WORD) &&
        command_line_meaning(line, item->first - 1) & COMMAND_PROSE)
        return true;
    for (int t = item->first; t < end; t++)
        if (command_line_meaning(line, t) & COMMAND_IS)
            return true;
    return end == item->token && command_line_is_sentence(line, item->next);
}

bool command_item_is_best(const struct command_line *line, const struct command_item *item) {
    return item->words > 0 && !item->name && command_line_meaning(line, item->first) & COMMAND_BEST;
}

/* "Metric val_loss improved. New best score: 0.3": of a loss, though it is called a score. */
static bool is_of_stopping(const struct command_line *line, const struct command_item *item) {
    int last = item->first + item->words - 1;
    if (item->words < 2 || !command_line_is_word(line, last, "score") ||
        !(command_line_meaning(line, last - 1) & COMMAND_BEST))
        return false;
    for (int t = 0; t < item->first; t++)
        if (command_line_is_word(line, t, "improved") || command_line_is_word(line, t, "improve"))
            return true;
    return false;
}

bool command_item_is_repeated(const struct command_line *line, const struct command_item *item,
                              const struct command_recall *recall) {
    return lab_str_equal(recall->names, "best_") && item->words == 1 &&
           command_item_is_best(line, item) && command_line_mark(line, item->first - 1) == '(';
}

/* "epoch 1.5" */
static bool has_point(const struct command_line *line, const struct command_item *item) {
    const struct command_token *number = &line->tokens[item->token];
    return memchr(line->text + number->start, '.', number->end - number->start);
}

unsigned command_item_judge(const struct command_line *line, struct command_item *item) {
    bool per = item->words > 1 && command_line_is_word(line, item->first + item->words - 2, "per");
    unsigned known = item->headed || command_item_is_known(line, item) ? COMMAND_IS_KNOWN : 0;
    bool is_value = item->words > 0 &&
                    (per || !(command_item_meaning(line, item) & COMMAND_PROSE)) &&
                    !(!item->name && command_line_meaning(line, item->first) & COMMAND_SAYS) &&
                    !is_of_sentence(line, item, known) &&
                    (known || !command_line_is_place(line, item->token)) &&
                    !command_line_is_key(line, item->next) && !is_of_stopping(line, item) &&
                    !command_line_is_element(line, item->token);
    if (command_line_is_logged(line, item->token) || is_code(line, item))
        return 0;
    if (is_of_rank(line, item))
        return COMMAND_IS_RANK;
    if (command_item_is_before_value(line, item->token))
        return COMMAND_IS_STEP | COMMAND_IS_WHOLE | COMMAND_IS_NAMED;
    if (item->token <= 2 && is_numbered(line))
        return item->token == 0
                   ? COMMAND_IS_EPOCH
                   : COMMAND_IS_STEP | COMMAND_IS_WHOLE | COMMAND_IS_NAMED | COMMAND_IS_GLOBAL;
    bool epochs = !item->headed && counts(line, item, COMMAND_EPOCH, COMMAND_EPOCH_LAST),
         steps = !item->headed && !epochs && counts(line, item, COMMAND_STEP, COMMAND_STEP_LAST);
    if ((epochs || steps) && is_duration(line, item)) {
        item->name = epochs ? "epoch_time" : "step_time";
        return COMMAND_IS_VALUE | COMMAND_IS_KNOWN;
    }
    if (epochs)
        return COMMAND_IS_EPOCH | named(line, item) |
               (has_point(line, item) ? COMMAND_IS_VALUE : 0);
    if (steps)
        return command_line_is_element(line, item->token)
                   ? 0
                   : COMMAND_IS_STEP | COMMAND_IS_WHOLE | named(line, item);
    if (command_line_is_pair(line, item->token) || is_double_bar(line, item))
        return COMMAND_IS_EPOCH;
    if (named_bar(line, item))
        return named_bar(line, item);
    if (item->percents || item->ends)
        return COMMAND_IS_PART | (item->percents ? 0 : COMMAND_IS_ENDING);
    if (command_line_is_epoch_bar(line) && !item->marked)
        return is_bar(item) ? COMMAND_IS_EPOCH : 0; /* its rate is of epochs */
    if (is_bar(item) || (item->token == 3 && command_line_is_pair(line, 1)))
        return COMMAND_IS_STEP;
    if (item->words == 0 && (command_line_is_alone(line, item->token) || is_leading(line, item)))
        return COMMAND_IS_STEP | COMMAND_IS_WHOLE | (is_boosting(line) ? COMMAND_IS_NAMED : 0);
    if (!is_value)
        return 0;
    return known | COMMAND_IS_VALUE | (item->of >= 0 && !*item->unit ? COMMAND_IS_SHARE : 0);
}
