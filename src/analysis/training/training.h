/*
 * training.h: what the files of `training` share: a study's points, the laws fitted to them, and
 * their tables. For training.c and this folder alone; the laws themselves are
 * analysis_training.h's.
 */
#ifndef LAB_ANALYSIS_TRAINING_TRAINING_H
#define LAB_ANALYSIS_TRAINING_TRAINING_H

#include "analysis/analysis.h"
#include "analysis/analysis_group.h"
#include "analysis/training/analysis_training.h"

/* A speed-up that was measured, and what was said of it without having seen it. */
struct training_test {
    const struct lab_training_row *row, *base;
    struct lab_study_ratio measured;
    struct lab_training_speedup left_out;
    bool told; /* there is an interval */
    bool within;
};

struct training_part {
    const char *name;
    const struct lab_training_set *set;
    struct lab_training training;
    struct training_test *tests;
    int test_count, told_count, within_count;
    bool simulated;
    struct lab_arena *arena;
};

/* Fits and tests; a part without a law has its reason in training.lacks. */
void training_part_make(const struct lab_training_set *set, struct training_part *part);
/* Rows in the order in which tables show them: by model, batch, devices. */
const struct lab_training_row **training_order(const struct training_part *part);

/* --- tables --- */

/* "weak" where each device has a batch of that size; empty where they share it. */
struct lab_doc_cell training_scaling_cell(const struct lab_training_row *row);

void training_add_comparison_table(struct lab_analysis_part *to, const struct training_part *part);
/* Rows of models of the same name; none = there are no such models. */
void training_add_published_table(struct lab_analysis_part *to, const struct training_part *part);

void training_add_timeline_table(struct lab_analysis_part *to, const struct training_part *part);
void training_add_test_table(struct lab_analysis_part *to, const struct training_part *part);
void training_add_law_table(struct lab_analysis_part *to, const struct training_part *part);
void training_add_even_table(struct lab_analysis_part *to, const struct training_part *part);

/* --- pictures --- */

void training_add_charts(struct lab_analysis_result *result, const struct training_part *part,
                         const char *suffix);

/* --- words --- */

/* Where several devices begin to pay, or why that can't be told; NULL = there are no several. */
const char *training_even_words(const struct training_part *part);
/* "A step takes …": the best law, and how wrong it is. */
const char *training_law_words(const struct training_part *part);
/* One term: "1.67 ms a layer"; NULL = the law has none of it. */
const char *training_term_words(const struct lab_training_law *law, enum lab_training_term term,
                                struct lab_arena *arena);

#endif
