/* metric_name.c: words in the names of metrics. */
#include "model/metric_name.h"

#include "base/list.h"
#include "base/value.h"

#include <ctype.h>
#include <string.h>

static const char *const directions[] = {[LAB_DIRECTION_NONE] = "none",
                                         [LAB_DIRECTION_HIGHER] = "higher",
                                         [LAB_DIRECTION_LOWER] = "lower"};

static const char *const higher[] = {"acc",   "accuracy",   "auc",       "bleu",   "f1",
                                     "iou",   "map",        "precision", "recall", "reward",
                                     "score", "throughput", "top1",      "top5",   NULL};
static const char *const lower[] = {"bpb", "error",      "latency", "loss", "mae", "mse",
                                    "nll", "perplexity", "ppl",     "rmse", "wer", NULL};

/* Between signs that are no letters: "val" is in "val_loss", not in "value". */
static bool has_word(const char *name, const char *const *words) {
    for (; *words; words++) {
        size_t length = strlen(*words);
        for (const char *at = name; (at = strcasestr(at, *words)); at++)
            if ((at == name || !isalnum((unsigned char)at[-1])) &&
                !isalpha((unsigned char)at[length]))
                return true;
    }
    return false;
}

bool lab_metric_name_is_rate(const char *name, const char *unit) {
    static const char *const rates[] = {"per_s", "per_sec", "per_second", "throughput", NULL};
    return (unit && strstr(unit, "/s")) || strstr(name, "/s") || has_word(name, rates);
}

int lab_metric_name_place(const char *name, const char *unit) {
    static const char *const checks[] = {"val",  "valid", "validation", "eval",
                                         "test", "final", "dev",        NULL};
    static const char *const losses[] = {"loss", "ppl", "perplexity", "nll", NULL};
    static const char *const qualities[] = {"acc",  "accuracy", "auc",    "bleu",  "f1",
                                            "iou",  "map",      "reward", "score", "top1",
                                            "top5", "error",    NULL};
    static const char *const schedules[] = {"lr",   "learning_rate", "time",  "dt",   "ms",
                                            "iter", "step",          "epoch", "norm", NULL};
    if (lab_metric_name_is_rate(name, unit))
        return 8;
    if (has_word(name, losses))
        return has_word(name, checks) ? 0 : 4;
    if (has_word(name, qualities))
        return has_word(name, checks) ? 1 : 5;
    return has_word(name, schedules) ? 16 : 6;
}

enum lab_direction lab_metric_direction(const char *name, const struct lab_value *settings) {
    const struct lab_value *set = lab_value_get(lab_value_get(settings, "direction"), name);
    int found = lab_list_find_text(directions, sizeof directions / sizeof *directions,
                                   lab_value_as_text(set, NULL));
    return found >= 0               ? (enum lab_direction)found
           : has_word(name, higher) ? LAB_DIRECTION_HIGHER
           : has_word(name, lower)  ? LAB_DIRECTION_LOWER
                                    : LAB_DIRECTION_NONE;
}
