/* words.c: the law of a study's training, in sentences. */
#include "analysis/training/training.h"

#include "analysis/training/analysis_training_words.h"
#include "base/str.h"

#include <math.h>

#define HIDDEN_LEAST        0.02
#define FLOPS_PER_PARAMETER 6 /* and row: two forward, four backward */

static double coefficient(const struct lab_training_law *law, enum lab_training_term term) {
    return law->fit.coefficients[__builtin_popcount(law->terms & ((1u << term) - 1))];
}

/* Beside one other device, half of it comes on top of the arithmetic. */
static const char *hindrance_words(const struct lab_training_law *law, double cost_s,
                                   struct lab_arena *arena) {
    double share = cost_s / 2 / coefficient(law, LAB_TRAINING_COMPUTE);
    if (!isfinite(share))
        return "arithmetic that one device does for nothing";
    return lab_arena_printf(arena, "%.0f %% more arithmetic beside one other", 100 * share);
}

const char *training_term_words(const struct lab_training_law *law, enum lab_training_term term,
                                struct lab_arena *arena) {
    if (!(law->terms & (1u << term)))
        return NULL;
    double cost_s = coefficient(law, term);
    if (!(cost_s > 0))
        return "nothing";
    switch (term) {
    case LAB_TRAINING_STEP:
        return lab_arena_printf(arena, "%s a step", lab_words_time(cost_s, arena));
    case LAB_TRAINING_LAYER:
        return lab_arena_printf(arena, "%s a layer", lab_words_time(cost_s, arena));
    case LAB_TRAINING_PARAMETER:
        return lab_arena_printf(arena, "%s a million parameters",
                                lab_words_time(1e6 * cost_s, arena));
    case LAB_TRAINING_COMPUTE:
        return lab_arena_printf(arena, "its arithmetic at %s",
                                lab_words_si(FLOPS_PER_PARAMETER / cost_s, "FLOP/s", arena));
    case LAB_TRAINING_ROUND:
        return lab_arena_printf(arena, "%s a round", lab_words_time(cost_s, arena));
    case LAB_TRAINING_ROUND_LAYER:
        return lab_arena_printf(arena, "%s a layer's round", lab_words_time(cost_s, arena));
    case LAB_TRAINING_BYTE:
        return lab_arena_printf(arena, "its bytes at %s", lab_words_si(1 / cost_s, "B/s", arena));
    case LAB_TRAINING_HINDRANCE:
        return hindrance_words(law, cost_s, arena);
    default:
        return NULL;
    }
}

/* Those of the terms that cost anything: "1.67 ms a layer, …" */
static void add_terms(const struct training_part *part, const enum lab_training_term *terms,
                      int count, const char *nothing, struct lab_str *text) {
    const struct lab_training_law *law = &part->training.laws[0];
    bool any = false;
    for (int i = 0; i < count; i++) {
        const char *words = training_term_words(law, terms[i], part->arena);
        if (!words || lab_str_equal(words, "nothing"))
            continue;
        lab_str_printf(text, "%s%s", any ? ", " : "", words);
        any = true;
    }
    if (!any)
        lab_str_add(text, nothing);
}

/* Share of the sums' time that the backward pass hides, over all points on several devices. */
static double hidden_share(const struct training_part *part) {
    double sums = 0, exposed = 0;
    for (int i = 0; i < part->test_count; i++) {
        const struct lab_study_point *point = part->tests[i].row->point;
        double sum =
            lab_study_point_figure(point, offsetof(struct lab_result, communication_time_ms), 1)
                .value;
        double seen =
            lab_study_point_figure(point, offsetof(struct lab_result, exposed_communication_ms), 1)
                .value;
        if (isnan(sum) || isnan(seen))
            continue;
        sums += sum;
        exposed += fmin(seen, sum);
    }
    return sums > 0 ? 1 - exposed / sums : (double)NAN;
}

const char *training_law_words(const struct training_part *part) {
    static const enum lab_training_term step[] = {LAB_TRAINING_STEP, LAB_TRAINING_LAYER,
                                                  LAB_TRAINING_PARAMETER, LAB_TRAINING_COMPUTE};
    static const enum lab_training_term sum[] = {LAB_TRAINING_ROUND, LAB_TRAINING_ROUND_LAYER,
                                                 LAB_TRAINING_BYTE, LAB_TRAINING_HINDRANCE};
    LAB_AUTO(str, text);
    lab_str_add(&text, "On one device a step takes ");
    add_terms(part, step, 4, "no time that could be told", &text);
    lab_str_add(&text, "; several pay besides ");
    add_terms(part, sum, 4, "nothing that could be told", &text);
    double hidden = hidden_share(part);
    if (hidden >= HIDDEN_LEAST)
        lab_str_printf(&text, ", with %.0f %% of their sums hidden by the backward pass",
                       100 * hidden);
    double error = part->training.laws[0].error;
    if (!isnan(error))
        lab_str_printf(
            &text,
            ". Points left out of the fit were predicted %.1f %% wrong, and %d of %d lay "
            "within their %.0f %% interval",
            100 * error, part->within_count, part->told_count, 100 * LAB_TRAINING_CONFIDENCE);
    lab_str_add(&text, ".");
    return lab_arena_strdup(part->arena, text.text);
}

static const char *even_words(const struct training_part *part, const struct lab_training_row *row,
                              bool batch, const struct lab_training_break_even *even) {
    bool both = false; /* ways to share work */
    for (int i = 0; i < part->training.row_count; i++)
        both |= part->training.rows[i].work.weak != row->work.weak;
    const char *share = row->work.weak ? " a device" : both ? " that they share" : "";
    const char *where =
        batch ? lab_arena_printf(part->arena, "for the %s model", row->model)
              : lab_arena_printf(part->arena, "at a batch of %.0f%s", row->work.batch, share);
    return lab_training_break_even_words(&part->training, even, batch, row->work.devices, where,
                                         part->arena);
}

/* A shared batch before one of each device's own, then the fewest devices, then the largest
 * batch. */
static bool comes_first(const struct lab_training_row *row, const struct lab_training_row *than) {
    if (row->work.weak != than->work.weak)
        return than->work.weak;
    if (row->work.devices != than->work.devices)
        return row->work.devices < than->work.devices;
    return row->work.batch >= than->work.batch;
}

/* Of the fewest devices, over models at the largest batch; where no model would do, it can't
 * be told, or only one was run, over batches for the largest model. */
const char *training_even_words(const struct training_part *part) {
    const struct lab_training_row *chosen = NULL;
    for (int i = 0; i < part->test_count; i++) {
        const struct lab_training_row *row = part->tests[i].row;
        if (!chosen || comes_first(row, chosen))
            chosen = row;
    }
    if (!chosen)
        return NULL;
    struct lab_training_break_even batch =
        lab_training_break_even_batch(&part->training, &chosen->work);
    struct lab_training_break_even size =
        lab_training_break_even_parameters(&part->training, &chosen->work);
    bool by_batch = part->training.model_count < 2 ||
                    (size.state == LAB_TRAINING_NEVER && batch.state == LAB_TRAINING_FROM) ||
                    (size.state == LAB_TRAINING_UNTOLD && batch.state != LAB_TRAINING_UNTOLD);
    return even_words(part, chosen, by_batch, by_batch ? &batch : &size);
}
