/* metric_name.c: words in the names of metrics. */
#include "model/metric_name.h"

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "base/value.h"
#include "model/reported_metric.h"
#include "model/result.h"

#include <ctype.h>
#include <string.h>

static const char *const directions[] = {[LAB_DIRECTION_NONE] = "none",
                                         [LAB_DIRECTION_HIGHER] = "higher",
                                         [LAB_DIRECTION_LOWER] = "lower"};

/* Words that a metric's name is made of. What is lower better wins: "top1_error", "f1_loss". */
static const struct {
    const char *word;
    enum lab_direction better;
} known[] = {
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
    {"wer", LAB_DIRECTION_LOWER},     {"ap", LAB_DIRECTION_HIGHER},
    {"ar", LAB_DIRECTION_HIGHER},     {"err", LAB_DIRECTION_LOWER},
    {"auroc", LAB_DIRECTION_HIGHER},  {"dice", LAB_DIRECTION_HIGHER},
    {"ndcg", LAB_DIRECTION_HIGHER},   {"psnr", LAB_DIRECTION_HIGHER},
    {"return", LAB_DIRECTION_HIGHER}, {"cer", LAB_DIRECTION_LOWER},
    {"fid", LAB_DIRECTION_LOWER},     {"cost", LAB_DIRECTION_LOWER},
    {"rew", LAB_DIRECTION_HIGHER},    {"ssim", LAB_DIRECTION_HIGHER},
    {"miou", LAB_DIRECTION_HIGHER},   {"r2", LAB_DIRECTION_HIGHER},
    {"prec", LAB_DIRECTION_HIGHER},   {"accuracies", LAB_DIRECTION_HIGHER},
    {"aucpr", LAB_DIRECTION_HIGHER},  {"mcc", LAB_DIRECTION_HIGHER},
    {"kappa", LAB_DIRECTION_HIGHER},  {"mrr", LAB_DIRECTION_HIGHER},
    {"cider", LAB_DIRECTION_HIGHER},  {"meteor", LAB_DIRECTION_HIGHER},
    {"chrf", LAB_DIRECTION_HIGHER},   {"mfu", LAB_DIRECTION_HIGHER},
    {"fps", LAB_DIRECTION_HIGHER},    {"sps", LAB_DIRECTION_HIGHER},
    {"mape", LAB_DIRECTION_LOWER},    {"smape", LAB_DIRECTION_LOWER},
    {"rmsle", LAB_DIRECTION_LOWER},   {"merror", LAB_DIRECTION_LOWER},
    {"lpips", LAB_DIRECTION_LOWER},   {"fvd", LAB_DIRECTION_LOWER},
    {"bpc", LAB_DIRECTION_LOWER},     {"sacrebleu", LAB_DIRECTION_HIGHER},
    {"auprc", LAB_DIRECTION_HIGHER},  {"jaccard", LAB_DIRECTION_HIGHER},
    {"elbo", LAB_DIRECTION_HIGHER},   {"pesq", LAB_DIRECTION_HIGHER},
    {"stoi", LAB_DIRECTION_HIGHER},   {"em", LAB_DIRECTION_HIGHER},
    {"sdr", LAB_DIRECTION_HIGHER},    {"sisdr", LAB_DIRECTION_HIGHER},
    {"lddt", LAB_DIRECTION_HIGHER},   {"plddt", LAB_DIRECTION_HIGHER},
    {"mmlu", LAB_DIRECTION_HIGHER},   {"gsm8k", LAB_DIRECTION_HIGHER},
    {"tflops", LAB_DIRECTION_HIGHER}, {"rewards", LAB_DIRECTION_HIGHER},
    {"kid", LAB_DIRECTION_LOWER},     {"returns", LAB_DIRECTION_HIGHER},
    {"eer", LAB_DIRECTION_LOWER},     {"ce", LAB_DIRECTION_LOWER},
    {"epe", LAB_DIRECTION_LOWER},     {"rmsd", LAB_DIRECTION_LOWER},
    {"nmse", LAB_DIRECTION_LOWER},    {"mpjpe", LAB_DIRECTION_LOWER},
    {"brier", LAB_DIRECTION_LOWER},   {"ece", LAB_DIRECTION_LOWER},
};

/* Parts of longer words: torchmetrics' "LanguageCrossEntropy". */
static const struct {
    const char *part;
    enum lab_direction better;
} parts[] = {{"accuracy", LAB_DIRECTION_HIGHER},
             {"crossentropy", LAB_DIRECTION_LOWER},
             {"cross_entropy", LAB_DIRECTION_LOWER},
             {"exact_match", LAB_DIRECTION_HIGHER},
             {"rouge", LAB_DIRECTION_HIGHER},
             {"perplexity", LAB_DIRECTION_LOWER},
             {"hellaswag", LAB_DIRECTION_HIGHER},
             {"pass@", LAB_DIRECTION_HIGHER},
             {"hit@", LAB_DIRECTION_HIGHER},
             {"hits@", LAB_DIRECTION_HIGHER},
             {"success_rate", LAB_DIRECTION_HIGHER},
             {"win_rate", LAB_DIRECTION_HIGHER},
             {"hit_rate", LAB_DIRECTION_HIGHER},
             {"pearson", LAB_DIRECTION_HIGHER},
             {"spearman", LAB_DIRECTION_HIGHER},
             {"neg_log_likelihood", LAB_DIRECTION_LOWER},
             {"negative_log_likelihood", LAB_DIRECTION_LOWER},
             {"log_likelihood", LAB_DIRECTION_HIGHER},
             {"bits_per_byte", LAB_DIRECTION_LOWER}};

/* Between signs that are no letters: "val" is in "val_loss", not in "value". In small letters. */
static bool has_word(const char *name, const char *const *words) {
    for (const char *at = name; *at; at++) {
        if (at > name && isalnum((unsigned char)at[-1]))
            continue;
        for (const char *const *word = words; *word; word++) {
            size_t length = (*at | 0x20) == **word ? strlen(*word) : 0; /* mostly */
            if (length > 0 && strncasecmp(at, *word, length) == 0 &&
                !isalpha((unsigned char)at[length]))
                return true;
        }
    }
    return false;
}

/* "tok/s", "samples/sec", "tokens/s/device"; not "eval/score", "loss/s_student". */
static bool is_per_second(const char *name) {
    static const char *const seconds[] = {"s", "sec", "second", NULL};
    for (const char *at = strchr(name, '/'); at; at = strchr(at + 1, '/'))
        for (const char *const *second = seconds; *second; second++) {
            size_t length = strlen(*second);
            if (strncasecmp(at + 1, *second, length) == 0 &&
                !isalnum((unsigned char)at[length + 1]) && (at[length + 1] != '_' || length > 1))
                return true;
        }
    return false;
}

bool lab_metric_name_is_rate(const char *name, const char *unit) {
    static const char *const rates[] = {"per_s", "per_sec", "per_second", "throughput", NULL};
    return (unit && is_per_second(unit)) || is_per_second(name) || has_word(name, rates);
}

bool lab_metric_name_is_evaluation(const char *name) {
    static const char *const words[] = {"val",        "valid", "validation", "eval",
                                        "evaluation", "test",  "dev",        NULL};
    return has_word(name, words);
}

const char *lab_metric_rate_unit(const char *name, const char *unit) {
    static const char *const endings[] = {"tokens_per_s", "tokens_per_sec", "tokens_per_second",
                                          "tokens/s",     "tokens/sec",     "tokens/second",
                                          "tok/s",        "tok_per_s",      "tok_per_sec"};
    if (lab_metric_name_is_evaluation(name))
        return NULL;
    if (lab_str_equal(unit, LAB_RATE_WORDS))
        return LAB_RATE_WORDS;
    if (lab_str_equal(unit, LAB_RATE_TOKENS))
        return LAB_RATE_TOKENS;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(name), ending = strlen(endings[i]);
        if (length >= ending && strcasecmp(name + length - ending, endings[i]) == 0)
            return LAB_RATE_TOKENS;
    }
    return NULL;
}

/* The word, with or without its last digits ("map50"); < 0 = it is unknown. */
static int find_known(const char *text, size_t length) {
    char word[64];
    int found = -1;
    for (size_t i = 0; i < length && i < sizeof word; i++)
        word[i] = (char)tolower((unsigned char)text[i]);
    for (; found < 0 && length && length < sizeof word; length--) {
        word[length] = '\0';
        found = LAB_FIND(known, sizeof known / sizeof *known, word, word);
        if (!isdigit((unsigned char)word[length - 1]))
            break;
    }
    return found;
}

/* What is better lower decides, wherever it stands: "top1_error". */
static enum lab_direction by_words(const char *name) {
    static const char *const undirected[] = {/* "reward_std", "chosen_reward" */
                                             "std",    "var",     "drop",     "gap",      "scale",
                                             "coef",   "weight",  "chosen",   "rejected", "reject",
                                             "margin", "margins", "neg_elbo", "code",     NULL};
    enum lab_direction better =
        lab_metric_name_is_rate(name, NULL) ? LAB_DIRECTION_HIGHER : LAB_DIRECTION_NONE;
    if (has_word(name, undirected))
        return LAB_DIRECTION_NONE;
    for (const char *c = name; *c && better != LAB_DIRECTION_LOWER;) {
        size_t length = 0;
        while (isalnum((unsigned char)c[length]))
            length++;
        int found = find_known(c, length);
        if (found >= 0)
            better = known[found].better;
        else if (length > 4 && strncasecmp(c + length - 4, "loss", 4) == 0) /* "CELoss" */
            better = LAB_DIRECTION_LOWER;
        c += length + (c[length] != '\0');
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts && better == LAB_DIRECTION_NONE; i++)
        if (strcasestr(name, parts[i].part))
            better = parts[i].better;
    return better;
}

/* "rollout/ep_rew_mean", "episode_return": what reinforcement learning is for, its loss being none
 * of it. Not "rewards/format_reward", which is one of its parts. */
static bool is_return(const char *name) {
    static const char *const words[] = {"reward", "rewards", "rew", "return", "returns", NULL};
    return has_word(name, words) && !strcasestr(name, "rewards/") &&
           by_words(name) == LAB_DIRECTION_HIGHER;
}

int lab_metric_name_goal(const char *name) {
    static const char *const ends[] = {"max", "min", NULL}; /* "episode_reward_max" */
    return !is_return(name) ? 2 : has_word(name, ends);
}

int lab_metric_name_place(const char *name, const char *unit) {
    static const char *const final[] = {"final", NULL};
    static const char *const losses[] = {"loss", "ppl", "perplexity", "nll", NULL};
    static const char *const qualities[] = {"acc",  "accuracy", "auc",   "bleu",  "f1",
                                            "ap",   "iou",      "map",   "score", "top1",
                                            "top5", "err",      "error", NULL};
    static const char *const schedules[] = {"lr",   "learning_rate", "time",  "dt",   "ms",
                                            "iter", "step",          "epoch", "norm", NULL};
    bool evaluation = lab_metric_name_is_evaluation(name),
         check = evaluation || has_word(name, final);
    if (lab_metric_name_is_rate(name, unit))
        return evaluation ? 9 : 8;
    if (is_return(name))
        return check ? -2 : -1;
    if (has_word(name, losses))
        return check ? 0 : 4;
    if (has_word(name, qualities))
        return check ? 1 : 5;
    return has_word(name, schedules) ? 16 : 6;
}

int lab_direction_find(const char *name) {
    return lab_list_find_text(directions, sizeof directions / sizeof *directions, name);
}

int lab_metric_objective_read(const char *text, size_t *ret_length, enum lab_direction *ret_better,
                              struct lab_err *err) {
    static const char *const words[] = {"min", "lower", "max", "higher"};
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    int word = colon ? lab_list_find_text(words, sizeof words / sizeof *words, colon + 1) : -1;
    if (length == 0 || (colon && word < 0))
        return lab_err_set(err, LAB_ERR_USER,
                           "objective=%.80s: must be a metric's name, or that with :min or :lower, "
                           ":max or :higher",
                           text);
    *ret_length = length;
    *ret_better = word < 0   ? LAB_DIRECTION_NONE
                  : word < 2 ? LAB_DIRECTION_LOWER
                             : LAB_DIRECTION_HIGHER;
    return 0;
}

enum lab_direction lab_metric_direction(const char *name, const struct lab_value *settings) {
    const struct lab_value *set = lab_value_get(lab_value_get(settings, "direction"), name);
    int direction = set && set->type == LAB_VALUE_STRING ? lab_direction_find(set->string) : -1;
    return direction < 0 ? by_words(name) : (enum lab_direction)direction;
}
