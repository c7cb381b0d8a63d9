/* model/metric_name.h: what the name of a program's metric says: which way it is better, whether it
 * is a rate, and how soon it is shown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lab_err;
struct lab_value;

enum lab_direction { LAB_DIRECTION_NONE, LAB_DIRECTION_HIGHER, LAB_DIRECTION_LOWER };

/* Of "none", "higher" or "lower"; -1 = it is another word. */
int lab_direction_find(const char *name);

/*
 * Which way the metric is better: as `settings` has it, the option `metrics` of the program's run
 * (direction: {score_x: lower}; NULL = it has none); else by the words of its name. A rate is
 * better higher.
 */
enum lab_direction lab_metric_direction(const char *name, const struct lab_value *settings);

/*
 * What settings are to be chosen by: "val_loss", "reward:max". The length of the metric's name, and
 * which way it is better: min or lower, max or higher; NONE = it isn't said. Any other word behind
 * the last colon is refused.
 */
int lab_metric_objective_read(const char *text, size_t *ret_length, enum lab_direction *ret_better,
                              struct lab_err *err);

#define LAB_RATE_WORDS "words/s" /* as LAB_RATE_TOKENS and others of result.h */

/* The unit of a value that is its program's rate, LAB_RATE_TOKENS or LAB_RATE_WORDS:
 * "train/tokens_per_second", "tok/s"; NULL = it is none, as "eval_tokens_per_second". */
const char *lab_metric_rate_unit(const char *name, const char *unit);

/* "tokens_per_s", "it/s", or anything in a unit per second: a run's is the mean of its values. */
bool lab_metric_name_is_rate(const char *name, const char *unit);

/* "eval_loss", "val/acc", "test_tokens_per_s": of an evaluation, not of the training. */
bool lab_metric_name_is_evaluation(const char *name);

/* 0 = a reward or return, which decides over any loss; 1 = its least or largest; 2 = anything
 * else. */
int lab_metric_name_goal(const char *name);

/* Small = first: a reward or return, then validation before training, a loss before other
 * qualities, then rates, those of evaluations after others; learning rates, times and counters
 * last. */
int lab_metric_name_place(const char *name, const char *unit);
