/* advise_training.c: see the header. */
#include "advise/advise_training.h"

#include "base/str.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "plan/plan.h"

#include <math.h>

#define MARGINAL LAB_SPEEDUP_MARGINAL /* down to here one device will do */

struct size { /* so many devices */
    struct lab_training_work work;
    struct lab_training_estimate estimate;
    struct lab_claim claim;
    const char *verdict; /* "use", "faster", "either", "stay", "inconclusive", "not_tested" */
};

struct advice {
    const struct lab_training_question *question;
    const struct lab_training_known *known;
    struct size *sizes; /* those that were run, ascending */
    int count;
    struct lab_arena *arena;
};

/* --- judging --- */

static const char *judge(const struct lab_training_estimate *estimate) {
    if (isnan(estimate->value))
        return "not_tested";
    if (estimate->low >= LAB_SPEEDUP_BENEFICIAL)
        return "use";
    if (estimate->high < 1)
        return "stay";
    if (estimate->low >= MARGINAL && estimate->high < LAB_SPEEDUP_BENEFICIAL)
        return "either";
    return estimate->low > 1 ? "faster" : "inconclusive";
}

/* What was measured is the study's claim; a prediction is one of its own. */
static struct lab_claim make_claim(const struct advice *advice, const struct size *size) {
    const struct lab_training_estimate *made = &size->estimate;
    if (made->gang)
        return made->gang->claim;
    struct lab_claim claim = lab_claim_named(
        lab_claim_none, "training.prediction",
        lab_arena_printf(advice->arena, "%d %ss, %s", size->work.devices, advice->known->gangs.unit,
                         advice->question->model),
        lab_arena_printf(advice->arena, "1 %s", advice->known->gangs.unit), "throughput");
    claim.effect = made->value - 1;
    claim.low = made->low - 1;
    claim.high = made->high - 1;
    claim.confidence = isnan(made->low) ? (double)NAN : LAB_TRAINING_CONFIDENCE;
    claim.at_least = true;
    claim.n = advice->known->training.pair_count;
    claim.simulated = advice->known->simulated;
    lab_claim_judge(&claim, 0);
    return claim;
}

static void make_sizes(struct advice *advice) {
    const struct lab_gangs *gangs = &advice->known->gangs;
    advice->sizes =
        lab_arena_alloc(advice->arena, (size_t)gangs->pool_count + 1, sizeof *advice->sizes);
    for (int i = 0; i < gangs->pool_count; i++) {
        struct size size = {.work = advice->question->work};
        size.work.devices = gangs->pools[i].devices;
        if (!size.work.weak && size.work.batch < size.work.devices)
            break;
        size.estimate = lab_training_ask(advice->known, &size.work, advice->arena);
        size.verdict = judge(&size.estimate);
        size.claim = make_claim(advice, &size);
        advice->sizes[advice->count++] = size;
    }
}

/* The fewest of those that may be the fastest; NULL = none is faster for certain. */
static const struct size *best_of(const struct advice *advice) {
    const struct size *best = NULL;
    for (int i = 0; i < advice->count; i++) {
        const struct size *size = &advice->sizes[i];
        if (lab_str_equal(size->verdict, "use") &&
            (!best || size->estimate.low > best->estimate.high))
            best = size;
    }
    return best;
}

/* --- words --- */

static const char *times(const struct size *size, struct lab_arena *arena) {
    return lab_speedup_times(size->estimate.value, size->estimate.low, size->estimate.high, arena);
}

static const char *source(const struct size *size) {
    return size->estimate.gang           ? "measured"
           : isnan(size->estimate.value) ? "not tested"
                                         : "predicted";
}

static const char *answer_of(const struct advice *advice) {
    struct lab_arena *arena = advice->arena;
    const struct size *best = best_of(advice), *size = best ? best : advice->sizes;
    const char *what = advice->question->model;
    if (advice->count == 0)
        return lab_arena_printf(arena, "%s: stay on one device: a batch of one can't be shared.",
                                what);
    if (lab_str_equal(size->verdict, "not_tested"))
        return lab_arena_printf(arena, "%s: not tested: %s.", what, size->estimate.why_not);
    const char *number =
        lab_arena_printf(arena, "%d %ss", size->work.devices, advice->known->gangs.unit);
    const char *speed =
        lab_arena_printf(arena, "%s as fast (%s, 95%% CI)", times(size, arena), source(size));
    if (best)
        return lab_arena_printf(arena, "%s: use %s, %s.", what, number, speed);
    if (lab_str_equal(size->verdict, "faster"))
        return lab_arena_printf(arena, "%s: %s are faster, %s.", what, number, speed);
    if (lab_str_equal(size->verdict, "inconclusive"))
        return lab_arena_printf(arena, "%s: inconclusive: %s are %s.", what, number, speed);
    return lab_arena_printf(arena, "%s: stay on one %s: %s are %s.", what,
                            advice->known->gangs.unit, number, speed);
}

static const char *range_words(struct lab_training_range range, struct lab_arena *arena) {
    const char *low = lab_training_count(range.low, arena);
    return range.low == range.high
               ? low
               : lab_arena_printf(arena, "%s to %s", low, lab_training_count(range.high, arena));
}

static const char *basis_words(const struct advice *advice) {
    const struct lab_training *training = &advice->known->training;
    struct lab_arena *arena = advice->arena;
    const char *error =
        isnan(training->error)
            ? ""
            : lab_arena_printf(arena, "; leave-one-out error %.1f%%", 100 * training->error);
    return lab_arena_printf(
        arena, "Tested in %s: %s parameters, batch %s, up to %d devices (%d points%s).",
        lab_study_view_shorten(advice->known->folder, arena),
        range_words(training->parameters, arena), range_words(training->batch, arena),
        training->devices_most, training->row_count, error);
}

/* Of this model, where it was run. */
static const char *break_even_words(const struct advice *advice) {
    const struct lab_gangs *gangs = &advice->known->gangs;
    for (int i = 0; i < gangs->count; i++)
        if (gangs->items[i].parameters == advice->question->work.parameters)
            return lab_gangs_break_even_words(gangs, gangs->items[i].model, advice->arena);
    return NULL;
}

/* --- for people --- */

static void add_row(struct lab_doc *doc, const struct advice *advice, int devices, double step_s,
                    const char *speedup, const char *whence) {
    const struct lab_training_work *work = &advice->question->work;
    lab_doc_figure(doc, devices);
    lab_doc_figure(doc, step_s);
    lab_doc_figure(doc, work->batch * (work->weak ? devices : 1) / step_s);
    lab_doc_cell(doc, "%s", speedup);
    lab_doc_cell(doc, "%s", whence);
}

static void add_table(struct lab_doc *doc, const struct advice *advice) {
    static const struct lab_doc_column columns[] = {{NULL, "Devices", LAB_UNIT_COUNT},
                                                    {NULL, "Step", LAB_UNIT_TIME},
                                                    {NULL, "Samples/s", LAB_UNIT_COUNT},
                                                    {NULL, "Speed-up, 95% CI", LAB_UNIT_FIGURE},
                                                    {NULL, ""}};
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < advice->count; i++) {
        const struct size *size = &advice->sizes[i];
        if (i == 0)
            add_row(doc, advice, 1, size->estimate.one_s, "1.00×", source(size));
        add_row(doc, advice, size->work.devices, size->estimate.many_s, times(size, advice->arena),
                source(size));
    }
}

static void add_text(struct lab_doc *doc, const struct advice *advice) {
    const char *even = break_even_words(advice);
    const char *share = lab_gangs_share_note(advice->known->gangs.study, advice->arena);
    bool open = advice->count > 0;
    lab_doc_text(doc, LAB_DOC_SAYS, "%s", answer_of(advice));
    lab_doc_gap(doc);
    for (int i = 0; i < advice->count; i++)
        open = open && (lab_str_equal(advice->sizes[i].verdict, "not_tested") ||
                        lab_str_equal(advice->sizes[i].verdict, "inconclusive"));
    if (advice->count > 0 && !isnan(advice->sizes[0].estimate.value)) {
        add_table(doc, advice);
        lab_doc_gap(doc);
        if (even)
            lab_doc_text(doc, LAB_DOC_SAYS, "%s", even);
    }
    lab_doc_text(doc, LAB_DOC_SAYS, "%s", basis_words(advice));
    if (share)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s", share);
    if (lab_gangs_lack_nvlink(&advice->known->gangs))
        lab_doc_text(doc, LAB_DOC_SAYS, "%s", LAB_TRAINING_SIMULATED_SUMS);
    if (!open)
        return;
    lab_doc_text(doc, LAB_DOC_SAYS, "To test it:");
    lab_doc_gap(doc);
    lab_doc_code(doc, NULL, advice->question->run);
}

/* --- for programs --- */

static struct lab_value *size_value(const struct size *size, struct lab_arena *arena) {
    const struct lab_training_estimate *made = &size->estimate;
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "devices", size->work.devices);
    lab_value_set_float(arena, map, "speedup", made->value);
    lab_value_set_float(arena, map, "low", made->low);
    lab_value_set_float(arena, map, "high", made->high);
    lab_value_set_float(arena, map, "confidence", size->claim.confidence);
    lab_value_set_bool(arena, map, "measured", made->gang != NULL);
    lab_value_set_float(arena, map, "step_ms", 1e3 * made->many_s);
    lab_value_set_float(arena, map, "one_step_ms", 1e3 * made->one_s);
    lab_value_set_string(arena, map, "verdict", size->verdict);
    return map;
}

static struct lab_value *question_value(const struct lab_training_question *question,
                                        struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "model", question->model);
    lab_value_set_int(arena, map, "parameters", (int64_t)question->work.parameters);
    lab_value_set_int(arena, map, "batch_size", (int64_t)question->work.batch);
    return map;
}

static struct lab_value *range_value(struct lab_training_range range, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    lab_value_append(arena, list, lab_value_float(arena, range.low));
    lab_value_append(arena, list, lab_value_float(arena, range.high));
    return list;
}

static struct lab_value *advice_value(const struct advice *advice) {
    struct lab_arena *arena = advice->arena;
    const struct lab_training *training = &advice->known->training;
    struct lab_value *map = lab_value_map(arena), *sizes = lab_value_list(arena);
    struct lab_value *made = question_value(advice->question, arena),
                     *claims = lab_value_list(arena);
    for (int i = 0; i < advice->count; i++) {
        lab_value_append(arena, sizes, size_value(&advice->sizes[i], arena));
        lab_value_append(arena, claims, lab_claim_value(&advice->sizes[i].claim, arena));
    }
    lab_value_set(arena, made, "speedups", sizes);
    lab_value_set(arena, made, "tested_parameters", range_value(training->parameters, arena));
    lab_value_set(arena, made, "tested_batch", range_value(training->batch, arena));
    lab_value_set_string(arena, made, "study", advice->known->folder);
    lab_value_set_int(arena, made, "points", training->row_count);
    lab_value_set_int(arena, made, "models", training->model_count);
    lab_value_set_float(arena, made, "leave_one_out_error", training->error);
    lab_value_set_string(arena, map, "answer", answer_of(advice));
    lab_value_set_string(arena, map, "study", lab_study_view_shorten(advice->known->folder, arena));
    lab_value_set_bool(arena, map, "simulated", advice->known->simulated);
    lab_value_set(arena, map, "models", lab_value_list(arena));
    lab_value_set(arena, map, "training", made);
    lab_value_set(arena, map, "claims", claims);
    lab_value_set_string(arena, map, "run", advice->question->run);
    return map;
}

/* --- both --- */

void lab_advise_training(const struct lab_console *console, struct lab_arena *arena,
                         const struct lab_training_question *question,
                         const struct lab_training_known *known) {
    struct advice advice = {.question = question, .known = known, .arena = arena};
    make_sizes(&advice);
    struct lab_doc *doc = lab_doc_open("Advice", arena);
    lab_doc_data(doc, NULL, advice_value(&advice));
    add_text(doc, &advice);
    lab_doc_print(doc, console);
}

void lab_advise_training_nothing(const struct lab_console *console, struct lab_arena *arena,
                                 const struct lab_training_question *question,
                                 const char *why_none) {
    const char *why = lab_plan_why_one(question->work.parameters, question->work.batch);
    const char *rule = why ? lab_arena_printf(arena, "stay on one device (%s)", why)
                           : "several devices may pay off";
    const char *answer = lab_arena_printf(arena, "%s: not tested: %s. A published rule: %s.",
                                          question->model, why_none, rule);
    struct lab_doc *doc = lab_doc_open("Advice", arena);
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, answer);
    lab_doc_data(doc, "study", lab_value_null(arena));
    lab_doc_data(doc, "simulated", lab_value_bool(arena, false));
    lab_doc_data(doc, "models", lab_value_list(arena));
    lab_doc_data(doc, "training", question_value(question, arena));
    lab_doc_data(doc, "run", lab_value_string(arena, question->run));
    lab_doc_text(doc, LAB_DOC_SAYS, "To test it:");
    lab_doc_gap(doc);
    lab_doc_code(doc, NULL, question->run);
    lab_doc_print(doc, console);
}
