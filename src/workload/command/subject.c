/*
 * command/subject.c: what a line, or a part of it, is about: an evaluation ("Validation: loss
 * 0.9"), settings ("Namespace(lr=0.1)"), or nothing measured ("Step 3: install 4 packages").
 */
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define HEAD_WORDS 8

/* --- evaluations --- */

bool command_line_is_share(const struct command_line *line, int t) {
    return command_line_is(line, t, COMMAND_NUMBER) && command_line_mark(line, t + 1) == '%' &&
           command_line_mark(line, t + 2) == '|' && line->tokens[t + 2].attached;
}

bool command_line_is_both(const struct command_line *line, int t) {
    const unsigned both = COMMAND_EVALUATION | COMMAND_TRAINING;
    const struct command_token *word = &line->tokens[t];
    return command_line_is(line, t, COMMAND_WORD) && (word->meaning & both) == both &&
           memchr(line->text + word->start, '/', word->end - word->start);
}

const char *command_line_head_of(const struct command_line *line, int first, unsigned meanings) {
    for (; !(command_line_meaning(line, first) & (COMMAND_EVALUATION | COMMAND_TRAINING)); first++)
        continue;
    char letter = (char)tolower((unsigned char)line->text[line->tokens[first].start]);
    return !(meanings & COMMAND_EVALUATION) || command_line_is_both(line, first) ? ""
           : letter == 't'                                                       ? "test_"
           : letter == 'e'                                                       ? "eval_"
                                                                                 : "val_";
}

/* 'msg="eval" step=10 loss=2.4' */
static bool is_message(const struct command_line *line, int t) {
    static const char *const keys[] = {"msg", "message", "event", "phase", "split", "mode"};
    bool quoted = command_line_meaning(line, t) & (COMMAND_EVALUATION | COMMAND_TRAINING) &&
                  command_line_mark(line, t - 1) == '"' && command_line_mark(line, t + 1) == '"' &&
                  command_line_mark(line, t - 2) == '=';
    for (size_t i = 0; quoted && i < sizeof keys / sizeof *keys; i++)
        if (command_line_is_word(line, t - 3, keys[i]))
            return true;
    return false;
}

/* A word that names a phase alone: "val", not "val_loss". */
static bool is_phase(unsigned meaning) {
    return meaning & (COMMAND_EVALUATION | COMMAND_TRAINING) && !(meaning & COMMAND_KNOWN);
}

/* "val(loss=2.6)", "val [loss 2.6]", "val={'loss': 2.6}", "valid (1/3) loss 2.6": the bracket that
 * begins at `t`; -1 = none does. */
static int bracket_at(const struct command_line *line, int t) {
    t += command_line_mark(line, t) == '=';
    char mark = command_line_mark(line, t);
    return mark == '(' || mark == '[' || mark == '{' ? t : -1;
}

/* The mark that closes the bracket at `t`; the line's end = none does. */
static int closing_of(const struct command_line *line, int t) {
    char open = command_line_mark(line, t), close = open == '(' ? ')' : open == '[' ? ']' : '}';
    int depth = 0;
    for (; t < line->count; t++) {
        char mark = command_line_mark(line, t);
        depth += (mark == open) - (mark == close);
        if (depth == 0)
            break;
    }
    return t;
}

/* "Test net output #1:", "Validation @ epoch 3:" */
static bool is_joint(const struct command_line *line, int t, unsigned before) {
    char mark = command_line_mark(line, t);
    return (mark == '#' && command_line_is(line, t + 1, COMMAND_NUMBER)) ||
           (mark == '@' && is_phase(before) && command_line_is(line, t + 1, COMMAND_WORD));
}

/* "Validation: loss 0.9", "[val]", "| valid |", "Eval results - ", "Evaluating: 50%|", "validation
 * loss at iteration 20 |"; " * Acc@1 71.3", as torchvision's references end theirs */
const char *command_line_head(const struct command_line *line, int t, int *ret_end) {
    unsigned all = 0, last = 0;
    int end = t;
    *ret_end = line->count;
    bool begins = t == 1 || (command_line_is(line, t - 2, COMMAND_WORD) &&
                             command_line_meaning(line, t - 2) == COMMAND_LEVEL);
    if (begins && command_line_mark(line, t - 1) == '*' &&
        command_line_meaning(line, t) & COMMAND_KNOWN)
        return "test_";
    if (is_message(line, t))
        return command_line_head_of(line, t, command_line_meaning(line, t));
    if (command_line_is_word(line, t, "Saving") && command_line_is_word(line, t + 1, "dict"))
        return "eval_"; /* TensorFlow: "Saving dict for global step 1000: loss = 0.3" */
    for (; end < t + HEAD_WORDS; end++) {
        if (end > t && is_joint(line, end, last))
            continue;
        bool counted =
            command_line_is(line, end, COMMAND_NUMBER) &&
            (last & (COMMAND_STEP | COMMAND_EPOCH) || command_line_mark(line, end - 1) == '#' ||
             (last & COMMAND_OUTSIDE && all & COMMAND_EVALUATION &&
              command_line_is(line, end + 1, COMMAND_WORD))); /* "on 100 samples:" */
        if (!command_line_is(line, end, COMMAND_WORD) && !counted)
            break;
        last = counted ? 0 : command_line_meaning(line, end);
        all |= last;
    }
    char mark = command_line_mark(line, end);
    bool number =
        command_line_is(line, end + 1, COMMAND_NUMBER) && !command_line_is_share(line, end + 1);
    bool none = command_line_is_none(line, end + 1); /* "val: n/a | iter time: 551 ms" */
    bool first = t == 0 || (t == 1 && command_line_mark(line, 0) == '-') ||
                 command_line_mark(line, t - 2) == ']'; /* "[INFO] - val, rank: 0, loss: 2.9" */
    bool listed = is_phase(last) && command_line_mark(line, t - 1) == ','; /* "1, val, loss=2" */
    bool closed =
        (mark == ':' && !number && !none) || mark == ']' || mark == '|' ||
        (mark == ')' && !command_line_is(line, t - 1, COMMAND_NUMBER)) || /* "(2.6 val)" */
        (mark == ',' && end == t + 1 && (first || listed) && !number) ||
        (mark == '-' && !line->tokens[end].attached && command_line_mark(line, end + 1) != '|') ||
        (mark == '>' && is_phase(last));
    int bracket =
        (is_phase(last) || mark == '{') && !(all & COMMAND_KNOWN) ? bracket_at(line, end) : -1;
    if (!(all & (COMMAND_EVALUATION | COMMAND_TRAINING)) || !(closed || bracket >= 0))
        return NULL;
    if (bracket >= 0)
        *ret_end = closing_of(line, bracket);
    return command_line_head_of(line, t, all);
}

int command_line_group(const struct command_line *line, int t) {
    while (t > 0 && command_line_mark(line, t) != '[' && command_line_mark(line, t) != ']')
        t--;
    return command_line_mark(line, t) == '[' && line->tokens[t].attached &&
                   command_line_is(line, t - 1, COMMAND_WORD)
               ? t - 1
               : -1;
}

/* "loss=2.5 acc=0.3 (train), loss=2.6 acc=0.2 (val)": what the values before `t` are of; NULL = it
 * is no such end of a group. */
const char *command_line_group_end(const struct command_line *line, int t) {
    unsigned meanings = COMMAND_EVALUATION | COMMAND_TRAINING;
    bool valued =
        command_line_is(line, t - 1, COMMAND_NUMBER) ||
        (command_line_mark(line, t - 1) == '%' && command_line_is(line, t - 2, COMMAND_NUMBER));
    return valued && command_line_mark(line, t) == '(' &&
                   command_line_is(line, t + 1, COMMAND_WORD) &&
                   command_line_meaning(line, t + 1) & meanings &&
                   command_line_mark(line, t + 2) == ')'
               ? command_line_head_of(line, t + 1, command_line_meaning(line, t + 1))
               : NULL;
}

/* --- what was before --- */

bool command_line_is_saved(const struct command_line *line, int t) {
    return command_line_is_word(line, t, "saved") || command_line_is_word(line, t, "Saved");
}

bool command_line_is_reached(const struct command_line *line, int t) {
    return command_line_is_word(line, t, "reached") && command_line_mark(line, t - 1) == '\'' &&
           command_line_is(line, t - 2, COMMAND_WORD) && command_line_mark(line, t - 3) == '\'';
}

/* "metric, acc: 0.9": a word for all that follows. */
static bool is_heading_all(const struct command_line *line, int t) {
    static const char *const words[] = {"metric", "metrics", "result", "results"};
    char mark = command_line_mark(line, t + 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (command_line_is_word(line, t, words[i]))
            return (mark == ',' || mark == ':') && command_line_is(line, t + 2, COMMAND_WORD);
    return false;
}

/* "best_metric: 0.95 at epoch: 180" */
static bool is_at_best(const struct command_line *line, int t) {
    if (!command_line_is_word(line, t, "at") || !command_line_is(line, t + 1, COMMAND_WORD) ||
        !(command_line_meaning(line, t + 1) & (COMMAND_EPOCH | COMMAND_STEP)))
        return false;
    for (int i = 0; i < t; i++)
        if (command_line_is(line, i, COMMAND_WORD) &&
            line->tokens[i].end - line->tokens[i].start > 4 &&
            command_is_same("best", line->text + line->tokens[i].start, 4))
            return true;
    return false;
}

void command_line_recall(const struct command_line *line, int t, struct command_recall *recall) {
    unsigned word = command_line_is(line, t, COMMAND_WORD)
                        ? command_line_meaning(line, t) & (COMMAND_BEST | COMMAND_RESTORED)
                        : 0;
    if (command_line_mark(line, t) == '|')
        recall->word = 0;
    /* "Model saved with loss 0.7", "saved best model with loss 0.7": printed before, of another */
    if (command_line_is_saved(line, t) && !*recall->names)
        recall->names = recall->word & COMMAND_BEST ? "best_" : "saved_";
    if (command_line_is_reached(line, t))
        recall->names = "best_";
    if (!word && is_at_best(line, t)) {
        recall->word = COMMAND_BEST;
        recall->numbered = true;
    }
    if (!word)
        return;
    if (word & COMMAND_BEST && lab_str_equal(recall->names, "saved_"))
        recall->names = "best_";
    /* "New best! loss 2.1", "best metric, acc: 0.9", "Reloading best weights (val loss 2.6)" */
    if (word & COMMAND_BEST && (command_line_mark(line, t + 1) == '!' ||
                                is_heading_all(line, t + 1) || recall->word & COMMAND_RESTORED))
        recall->names = "best_";
    recall->word = recall->word & COMMAND_BEST ? recall->word : word;
    recall->numbered = false;
}

/* "Epoch 9 | best epoch 5 | loss 2" recalls no loss, nor does "Epoch 9, loss 2, best epoch 5". */
bool command_line_recalls(const struct command_line *line, int next, bool counts,
                          struct command_recall *recall) {
    bool recalls = counts && recall->word;
    if (recalls && !recall->numbered && !recall->valued &&
        !(recall->counted && command_line_mark(line, next) == '|'))
        recall->names = recall->word & COMMAND_BEST ? "best_" : "restored_";
    recall->counted |= counts && !recalls;
    recall->numbered = true;
    return recalls;
}

/* --- cells --- */

static bool is_border(const struct command_line *line, int t) {
    return command_line_mark(line, t) == '|' ||
           (command_line_is(line, t, COMMAND_MARK) && line->length - line->tokens[t].start >= 3 &&
            memcmp(line->text + line->tokens[t].start, "│", 3) == 0);
}

/* "1 | loss | CrossEntropyLoss | 0 | train": Lightning's list of modules. */
static bool is_of_list(const struct command_line *line, int border) {
    int number = is_border(line, 0);
    return command_line_is(line, number, COMMAND_NUMBER) && is_border(line, number + 1) &&
           command_line_is(line, border - 1, COMMAND_WORD);
}

/* Whether cells from the border at `t` on are numbers, or names and numbers in turn. */
static bool are_values(const struct command_line *line, int t) {
    while (t + 1 < line->count) {
        int name = t + 1, number = name;
        while (command_line_is(line, number, COMMAND_WORD))
            number++;
        number += number > name;
        if ((number > name && !is_border(line, number - 1)) ||
            !command_line_is(line, number, COMMAND_NUMBER) || !is_border(line, number + 1))
            return false;
        t = number + 1;
    }
    return true;
}

bool command_line_is_cell(const struct command_line *line, int t) {
    int first = t - 1;
    while (command_line_is(line, first, COMMAND_WORD))
        first--;
    bool named = first > 0 && is_border(line, 0) && command_line_is(line, first - 1, COMMAND_WORD);
    return is_border(line, t) && !is_of_list(line, first) && first < t - 1 && !named &&
           is_border(line, first) && is_border(line, t + 2) && are_values(line, t + 2);
}

/* --- brackets --- */

bool command_line_is_alone(const struct command_line *line, int t) {
    bool process = command_line_is(line, t - 3, COMMAND_NUMBER) && line->tokens[t - 1].attached;
    return command_line_mark(line, t - 1) == '[' && command_line_mark(line, t + 1) == ']' &&
           (t == 1 || (command_line_mark(line, t - 2) == ']' && !process));
}

bool command_line_is_pair(const struct command_line *line, int t) {
    return t == 1 && command_line_mark(line, 0) == '[' && command_line_mark(line, 2) == ',' &&
           command_line_is(line, 3, COMMAND_NUMBER) && command_line_mark(line, 4) == ']';
}

bool command_line_is_element(const struct command_line *line, int t) {
    return command_line_mark(line, t - 1) == '[' && command_line_mark(line, t + 1) == ',' &&
           command_line_is(line, t + 2, COMMAND_NUMBER);
}

bool command_line_is_key(const struct command_line *line, int next) {
    char after = command_line_mark(line, next + 1);
    if (command_line_mark(line, next) == ']' && command_line_mark(line, next - 2) == '[' &&
        line->tokens[next - 2].attached && (after == ':' || after == '='))
        return command_line_is(line, next - 3, COMMAND_WORD); /* "loss[0]: 2.5" */
    return command_line_mark(line, next) == ':' && line->tokens[next].attached &&
           command_line_is(line, next + 1, COMMAND_NUMBER) && !line->tokens[next + 1].attached &&
           !command_line_is_share(line, next + 1);
}

/* "(1.6)", "(55.2%)" */
int command_line_mean(const struct command_line *line, int t) {
    int end = t + 2 + (command_line_mark(line, t + 2) == '%');
    return command_line_mark(line, t) == '(' && command_line_is(line, t + 1, COMMAND_NUMBER) &&
                   command_line_mark(line, end) == ')'
               ? t + 1
               : -1;
}

const struct command_unit *command_line_heading(const struct command_line *line, int t) {
    bool headed = command_line_mark(line, t) == '|' && command_line_mark(line, t - 1) == ')' &&
                  command_line_mark(line, t - 3) == '(' &&
                  command_line_is(line, t - 4, COMMAND_WORD);
    const struct command_unit *unit = headed ? line->tokens[t - 2].unit : NULL;
    return unit && unit->unit ? unit : NULL;
}

/* --- bars --- */

bool command_line_is_epoch_bar(const struct command_line *line) {
    int t = 0;
    while (command_line_is(line, t, COMMAND_WORD))
        t++;
    int share = t + (command_line_mark(line, t) == ':');
    return t > 0 && command_line_is_share(line, share) &&
           command_line_meaning(line, t - 1) & COMMAND_EPOCH;
}

bool command_line_is_lone_bar(const struct command_line *line) {
    int t = 0;
    unsigned all = 0;
    for (; command_line_is(line, t, COMMAND_WORD); t++)
        all |= command_line_meaning(line, t);
    bool known = t == 0 || all & (COMMAND_TRAINING | COMMAND_STEP | COMMAND_EPOCH);
    t += command_line_mark(line, t) == ':';
    return known && command_line_is(line, t, COMMAND_NUMBER) &&
           ((command_line_mark(line, t + 1) == '%' && command_line_mark(line, t + 2) == '|') ||
            (t == 0 && command_line_is(line, 1, COMMAND_WORD) &&
             line->tokens[1].end - line->tokens[1].start == 2 &&
             memcmp(line->text + line->tokens[1].start, "it", 2) == 0 &&
             command_line_mark(line, 2) == '['));
}

/* --- settings --- */

/* "TrainConfig", "TrainingArguments" */
static bool ends_as_settings(const struct command_line *line, int t) {
    static const char *const endings[] = {"config",    "args",     "arguments", "params",
                                          "namespace", "settings", "options"};
    const char *end = line->text + line->tokens[t].end;
    size_t length = line->tokens[t].end - line->tokens[t].start;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length >= ending && strncasecmp(end - ending, endings[i], ending) == 0)
            return true;
    }
    return false;
}

/* "Training starts at step 1, with sequence length 2048, total steps 10" */
static bool is_start(const struct command_line *line, int t) {
    static const char *const words[] = {"start", "starts", "starting", "begins"};
    bool from =
        command_line_is_word(line, t + 1, "at") || command_line_is_word(line, t + 1, "from");
    for (size_t i = 0; from && i < sizeof words / sizeof *words; i++)
        if (command_line_is_word(line, t, words[i]))
            return true;
    return false;
}

bool command_line_is_settings(const struct command_line *line, int t) {
    char mark = command_line_mark(line, t + 1);
    if (mark == '(' && line->tokens[t + 1].attached)
        return ends_as_settings(line, t);
    if (is_start(line, t))
        return true;
    return command_line_meaning(line, t) & COMMAND_CONFIG && (mark == ':' || mark == '=') &&
           t + 2 < line->count && !command_line_is(line, t + 2, COMMAND_NUMBER);
}

/* --- places --- */

/* Its digits and the mark before it follow a word without a blank. */
static bool is_joined(const struct command_line *line, int t) {
    const struct command_token *number = &line->tokens[t];
    if (command_line_mark(line, t - 1) != ':' || !number->attached ||
        !line->tokens[t - 1].attached || !command_line_is(line, t - 2, COMMAND_WORD))
        return false;
    for (size_t i = number->start; i < number->end; i++)
        if (!isdigit((unsigned char)line->text[i]))
            return false;
    return true;
}

/* "trainer:fit:120" */
static bool is_of_function(const struct command_line *line, int t) {
    return is_joined(line, t) && command_line_mark(line, t - 3) == ':' &&
           line->tokens[t - 3].attached && line->tokens[t - 2].attached &&
           command_line_is(line, t - 4, COMMAND_WORD);
}

/* "[NeMo I 2024-05-01 10:00:00 nemo_logging:393]": at the end of a bracket with a time. */
static bool ends_prefix(const struct command_line *line, int t) {
    if (command_line_mark(line, 0) != '[' || command_line_mark(line, t + 1) != ']')
        return false;
    for (int at = 1; at < t - 2 && command_line_mark(line, at) != ']'; at++)
        if (command_line_mark(line, at) == ':' && command_line_is(line, at - 1, COMMAND_NUMBER) &&
            command_line_is(line, at + 1, COMMAND_NUMBER))
            return true;
    return false;
}

bool command_line_is_place(const struct command_line *line, int t) {
    if (!is_joined(line, t))
        return false;
    const struct command_token *word = &line->tokens[t - 2];
    return memchr(line->text + word->start, '.', word->end - word->start) ||
           is_of_function(line, t) || ends_prefix(line, t);
}

/* "metrics:88 - INFO - step 20", "loss:45 INFO" */
static bool is_before_level(const struct command_line *line, int t) {
    char mark = command_line_mark(line, t + 1);
    int level = t + 1 + (mark == '-' || mark == '|');
    return command_line_is(line, level, COMMAND_WORD) && !line->tokens[level].attached &&
           command_line_meaning(line, level) == COMMAND_LEVEL;
}

bool command_line_is_logged(const struct command_line *line, int t) {
    if (is_joined(line, t) && (ends_prefix(line, t) || is_before_level(line, t)))
        return true;
    if (!is_of_function(line, t))
        return false;
    const struct command_token *module = &line->tokens[t - 4];
    for (int before = 4; before < t; before++)
        if (command_line_is(line, before, COMMAND_NUMBER) && is_of_function(line, before))
            return false;
    return command_line_is(line, 0, COMMAND_NUMBER) || command_line_mark(line, 0) == '[' ||
           command_line_meaning(line, t - 4) & COMMAND_LEVEL ||
           memchr(line->text + module->start, '.', module->end - module->start) ||
           memcmp(line->text + module->start, "__", 2) == 0;
}

/* --- sentences --- */

bool command_line_is_sentence(const struct command_line *line, int t) {
    int first = t;
    for (; command_line_is(line, t, COMMAND_WORD) && !line->tokens[t].attached; t++)
        if (t > first && command_line_meaning(line, t) & (COMMAND_IS | COMMAND_PROSE))
            return true;
    return t > first && (t == line->count || (command_line_mark(line, t) == '.'));
}

bool command_line_is_none(const struct command_line *line, int t) {
    static const char *const none[] = {"None", "none", "n/a", "N/A", "null"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (command_line_is_word(line, t, none[i]))
            return true;
    return false;
}
