/* reported_metric.c: which way a metric is better, by the words of its name or as a study says. */
#include "model/reported_metric.h"

#include "base/list.h"
#include "base/value.h"

#include <ctype.h>

static const char *const names[] = {[LAB_DIRECTION_NONE] = "none",
                                    [LAB_DIRECTION_HIGHER] = "higher",
                                    [LAB_DIRECTION_LOWER] = "lower"};

/* Words that a metric's name is made of. */
static const struct {
    const char *word;
    enum lab_direction better;
} words[] = {
    {"acc", LAB_DIRECTION_HIGHER},    {"accuracy", LAB_DIRECTION_HIGHER},
    {"auc", LAB_DIRECTION_HIGHER},    {"bleu", LAB_DIRECTION_HIGHER},
    {"f1", LAB_DIRECTION_HIGHER},     {"iou", LAB_DIRECTION_HIGHER},
    {"map", LAB_DIRECTION_HIGHER},    {"precision", LAB_DIRECTION_HIGHER},
    {"recall", LAB_DIRECTION_HIGHER}, {"reward", LAB_DIRECTION_HIGHER},
    {"score", LAB_DIRECTION_HIGHER},  {"throughput", LAB_DIRECTION_HIGHER},
    {"top1", LAB_DIRECTION_HIGHER},   {"top5", LAB_DIRECTION_HIGHER},
    {"bpb", LAB_DIRECTION_LOWER},     {"error", LAB_DIRECTION_LOWER},
    {"latency", LAB_DIRECTION_LOWER}, {"loss", LAB_DIRECTION_LOWER},
    {"mae", LAB_DIRECTION_LOWER},     {"mse", LAB_DIRECTION_LOWER},
    {"nll", LAB_DIRECTION_LOWER},     {"perplexity", LAB_DIRECTION_LOWER},
    {"ppl", LAB_DIRECTION_LOWER},     {"rmse", LAB_DIRECTION_LOWER},
    {"wer", LAB_DIRECTION_LOWER},
};

int lab_direction_find(const char *name) {
    return lab_list_find_text(names, sizeof names / sizeof *names, name);
}

static enum lab_direction by_words(const char *name) {
    char word[64];
    size_t length = 0;
    for (const char *c = name;; c++) {
        if (isalnum((unsigned char)*c) && length < sizeof word - 1) {
            word[length++] = (char)tolower((unsigned char)*c);
            continue;
        }
        word[length] = '\0';
        int found = LAB_FIND(words, sizeof words / sizeof *words, word, word);
        if (found >= 0)
            return words[found].better;
        length = 0;
        if (!*c)
            return LAB_DIRECTION_NONE;
    }
}

enum lab_direction lab_metric_direction(const char *name, const struct lab_value *settings) {
    const struct lab_value *set = lab_value_get(lab_value_get(settings, "direction"), name);
    int direction = set && set->type == LAB_VALUE_STRING ? lab_direction_find(set->string) : -1;
    return direction < 0 ? by_words(name) : (enum lab_direction)direction;
}
