/* advise_training.c: see the header. */
#include "advise/advise_training.h"

#include "analysis/training/analysis_training_words.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "plan/plan.h"

#include <math.h>

#define SIZES_MAX  5 /* 2, 4, … 32 devices */
#define BENEFICIAL 1.10
#define MARGINAL   0.95 /* down to here it is hardly a difference */

enum verdict { USE, HARDLY, STAY, UNSURE };

struct size {
    struct lab_training_work work;
    struct lab_training_speedup predicted;
    const struct lab_training_row *row, *base; /* measured; NULL = it wasn't */
    struct lab_study_ratio measured;
    enum verdict verdict;
};

struct advice {
    const struct lab_training_question *question;
    const struct lab_training_known *known;
    const struct lab_training_row *one; /* measured on one device; NULL = it wasn't */
    struct size sizes[SIZES_MAX];
    int count;
    struct lab_arena *arena;
};

/* --- judging --- */

static enum verdict judge(double low, double high) {
    if (low >= BENEFICIAL)
        return USE;
    if (high < 1)
        return STAY;
    return low >= MARGINAL && high < BENEFICIAL ? HARDLY : UNSURE;
}

static const struct lab_training_row *find_row(const struct lab_training *training,
                                               const struct lab_training_work *work) {
    for (int i = 0; i < training->row_count; i++) {
        const struct lab_training_work *run = &training->rows[i].work;
        if (run->parameters == work->parameters && run->layers == work->layers &&
            run->batch == work->batch && run->devices == work->devices && run->weak == work->weak)
            return &training->rows[i];
    }
    return NULL;
}

/* What was measured is surer than what follows from the law: a ratio of two that were. */
static bool is_measured(const struct size *size) {
    return size->row && size->base;
}

static void look_up(const struct lab_training *training, struct size *size) {
    size->row = find_row(training, &size->work);
    size->base = size->row ? lab_training_base(training, size->row) : NULL;
    if (is_measured(size))
        size->measured = lab_study_compare(size->base->point, size->row->point, LAB_STUDY_RATE);
}

static double low_of(const struct size *size) {
    return is_measured(size) ? size->measured.low : size->predicted.low;
}

static double high_of(const struct size *size) {
    return is_measured(size) ? size->measured.high : size->predicted.high;
}

static double value_of(const struct size *size) {
    return is_measured(size) ? size->measured.ratio : size->predicted.value;
}

/* Up to twice as many as were run, or four: beyond that nothing is known. Without a law what was
 * measured alone. */
static void make_sizes(struct advice *advice) {
    const struct lab_training *training = &advice->known->training;
    int most = 2 * training->devices_most > 4 ? 2 * training->devices_most : 4;
    for (int devices = 2; devices <= most && advice->count < SIZES_MAX; devices *= 2) {
        struct size size = {.work = advice->question->work};
        size.work.devices = devices;
        if (!size.work.weak && size.work.batch < devices)
            break;
        size.predicted = lab_training_predict(training, &size.work);
        look_up(training, &size);
        if (training->law_count == 0 && !is_measured(&size))
            continue;
        size.verdict = judge(low_of(&size), high_of(&size));
        advice->sizes[advice->count++] = size;
    }
}

/* The fewest of those that pay most, as far as intervals tell; NULL = none pays for sure. */
static const struct size *best_of(const struct advice *advice) {
    const struct size *best = NULL;
    for (int i = 0; i < advice->count; i++) {
        const struct size *size = &advice->sizes[i];
        if (size->verdict == USE && !size->predicted.devices_beyond &&
            (!best || low_of(size) > high_of(best)))
            best = size;
    }
    return best;
}

/* --- words --- */

static const char *times(const struct size *size, struct lab_arena *arena) {
    return isnan(low_of(size)) ? lab_arena_printf(arena, "%.2f×", value_of(size))
                               : lab_arena_printf(arena, "%.2f× [%.2f, %.2f]", value_of(size),
                                                  low_of(size), high_of(size));
}

static const char *subject(const struct advice *advice) {
    const struct lab_training_work *work = &advice->question->work;
    return lab_arena_printf(advice->arena, "%s, %s parameters", advice->question->model,
                            lab_training_count(work->parameters, advice->arena));
}

static bool can_share(const struct advice *advice) {
    const struct lab_training_work *work = &advice->question->work;
    return work->weak || work->batch > 1;
}

static const char *number_word(int devices, struct lab_arena *arena) {
    return devices == 2 ? "two" : lab_arena_printf(arena, "%d", devices);
}

static const char *answer_of(const struct advice *advice) {
    const struct size *best = best_of(advice), *two = &advice->sizes[0];
    const char *what = subject(advice);
    if (advice->count == 0 && can_share(advice))
        return lab_arena_printf(advice->arena,
                                "%s: it can't be told whether several devices pay: %s.", what,
                                advice->known->training.lacks);
    if (advice->count == 0)
        return lab_arena_printf(advice->arena,
                                "%s: stay on one device: a batch of one can't be shared.", what);
    if (best)
        return lab_arena_printf(advice->arena, "%s: use %d devices, which %s %s one.", what,
                                best->work.devices, is_measured(best) ? "were" : "would be",
                                times(best, advice->arena));
    const char *verb = is_measured(two) ? "were" : "would be";
    const char *number = number_word(two->work.devices, advice->arena);
    switch (two->verdict) {
    case STAY:
        return lab_arena_printf(advice->arena, "%s: stay on one device; %s %s %s of it.", what,
                                number, verb, times(two, advice->arena));
    case HARDLY:
        return lab_arena_printf(advice->arena,
                                "%s: one device will do; %s %s hardly different, %s.", what, number,
                                verb, times(two, advice->arena));
    default:
        return lab_arena_printf(advice->arena,
                                "%s: it can't be told whether %s devices pay; they %s %s one%s.",
                                what, number, verb, times(two, advice->arena),
                                isnan(low_of(two)) ? ", and how sure that is isn't known" : "");
    }
}

static struct lab_training_work two_of(const struct advice *advice) {
    struct lab_training_work two = advice->question->work;
    two.devices = 2;
    return two;
}

static const char *break_even_words(const struct advice *advice) {
    struct lab_training_work two = two_of(advice);
    return lab_training_break_evens_words(&advice->known->training, &two, advice->arena);
}

/* "1 model (54.4 k parameters)", "2 models (54.4 k to 2.02 M parameters)" */
static const char *models_words(const struct lab_training *training, struct lab_arena *arena) {
    const char *low = lab_training_count(training->parameters.low, arena);
    if (training->model_count == 1)
        return lab_arena_printf(arena, "1 model (%s parameters)", low);
    return lab_arena_printf(arena, "%d models (%s to %s parameters)", training->model_count, low,
                            lab_training_count(training->parameters.high, arena));
}

static const char *batches_words(const struct lab_training *training, struct lab_arena *arena) {
    if (training->batch.low == training->batch.high)
        return lab_arena_printf(arena, "batch %.0f", training->batch.low);
    return lab_arena_printf(arena, "batches %.0f to %.0f", training->batch.low,
                            training->batch.high);
}

static const char *basis_words(const struct advice *advice) {
    const struct lab_training *training = &advice->known->training;
    const char *tested = "they are too few for a law";
    if (training->law_count > 0)
        tested = lab_arena_printf(advice->arena,
                                  "points left out of the fit were predicted %.1f %% wrong, and "
                                  "intervals of predictions are at %.0f %%",
                                  100 * training->laws[0].error, 100 * LAB_TRAINING_CONFIDENCE);
    return lab_arena_printf(
        advice->arena, "It rests on %s%s: %d points of %s, %s, up to %d devices of %s; %s.",
        lab_study_view_shorten(advice->known->folder, advice->arena),
        advice->known->simulated ? " (simulated)" : "", training->row_count,
        models_words(training, advice->arena), batches_words(training, advice->arena),
        training->devices_most, advice->known->device ? advice->known->device : "?", tested);
}

/* What to mind: how far beyond what was run, and models that weren't. */
static const char *warning_words(const struct advice *advice) {
    const struct lab_training *training = &advice->known->training;
    if (advice->count == 0 || training->law_count == 0)
        return NULL;
    const struct lab_training_speedup *two = &advice->sizes[0].predicted;
    const char *beyond = lab_training_beyond(two, training, advice->arena);
    if (beyond)
        return lab_arena_printf(advice->arena,
                                "Beyond what was run: %s. The law may not hold there.", beyond);
    if (!two->model_run && training->model_count < 3)
        return lab_arena_printf(advice->arena, "A model of this size wasn't run, and %s.",
                                training->model_count < 2
                                    ? "one model alone tells little of others"
                                    : "what two models say of a third hasn't been tested");
    return NULL;
}

/* --- for people --- */

static void add_row(struct lab_doc *doc, const struct advice *advice, int devices, double step_s,
                    const char *speedup, const char *whence) {
    const struct lab_training_work *work = &advice->question->work;
    lab_doc_figure(doc, devices);
    lab_doc_cell(doc, "%s", lab_training_step(step_s, advice->arena));
    lab_doc_figure(doc, work->batch * (work->weak ? devices : 1) / step_s);
    lab_doc_cell(doc, "%s", speedup);
    lab_doc_cell(doc, "%s", whence);
}

static void add_sizes(struct lab_doc *doc, const struct advice *advice, bool measured) {
    for (int i = 0; i < advice->count; i++) {
        const struct size *size = &advice->sizes[i];
        if (is_measured(size) == measured)
            add_row(doc, advice, size->work.devices,
                    measured ? size->row->time_s : size->predicted.many_s,
                    times(size, advice->arena),
                    measured                         ? "measured"
                    : size->predicted.devices_beyond ? "by the law, never run"
                                                     : "by the law");
    }
}

/* What was measured, then what the law says, each with a device of its own kind to compare with: a
 * step that was measured over one by the law would be neither's speed-up. */
static void add_table(struct lab_doc *doc, const struct advice *advice) {
    static const struct lab_doc_column columns[] = {{NULL, "Devices", LAB_UNIT_COUNT},
                                                    {NULL, "Step", LAB_UNIT_FIGURE},
                                                    {NULL, "Samples/s", LAB_UNIT_COUNT},
                                                    {NULL, "Speed-up", LAB_UNIT_FIGURE},
                                                    {NULL, ""}};
    const struct lab_training *training = &advice->known->training;
    int by_law = 0;
    for (int i = 0; i < advice->count; i++)
        by_law += !is_measured(&advice->sizes[i]);
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    if (advice->one)
        add_row(doc, advice, 1, advice->one->time_s, "1.00×", "measured");
    add_sizes(doc, advice, true);
    if (training->law_count > 0 && (by_law > 0 || !advice->one))
        add_row(doc, advice, 1, lab_training_time(training, &advice->question->work), "1.00×",
                "by the law");
    add_sizes(doc, advice, false);
}

static void add_text(struct lab_doc *doc, const struct advice *advice) {
    const char *warning = warning_words(advice);
    lab_doc_text(doc, LAB_DOC_SAYS, "%s", answer_of(advice));
    if (advice->known->simulated)
        lab_doc_text(doc, LAB_DOC_SAYS,
                     "These are simulated devices. " LAB_TRAINING_SIMULATED_SUMS);
    lab_doc_gap(doc);
    add_table(doc, advice);
    lab_doc_gap(doc);
    if (advice->count > 0)
        lab_doc_text(doc, LAB_DOC_SAYS, "Break-even: %s.", break_even_words(advice));
    if (warning)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s", warning);
    lab_doc_text(doc, LAB_DOC_SAYS, "%s", basis_words(advice));
    bool sure = best_of(advice) || !can_share(advice) ||
                (advice->count > 0 && advice->sizes[0].verdict != UNSURE);
    if (sure && !warning)
        return;
    lab_doc_text(doc, LAB_DOC_SAYS, "To measure it:");
    lab_doc_gap(doc);
    lab_doc_code(doc, NULL, advice->question->run);
}

/* --- for programs --- */

static struct lab_value *even_value(const struct lab_training_break_even *even,
                                    struct lab_arena *arena) {
    static const char *const names[] = {[LAB_TRAINING_NEVER] = "never",
                                        [LAB_TRAINING_ALWAYS] = "always",
                                        [LAB_TRAINING_FROM] = "from",
                                        [LAB_TRAINING_UNTIL] = "until",
                                        [LAB_TRAINING_UNTOLD] = "unknown"};
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "pays", names[even->state]);
    lab_value_set_float(arena, map, "at", even->at);
    lab_value_set_float(arena, map, "low", isfinite(even->low) ? even->low : (double)NAN);
    lab_value_set_float(arena, map, "high", isfinite(even->high) ? even->high : (double)NAN);
    lab_value_set_float(arena, map, "looked_from", even->from);
    lab_value_set_float(arena, map, "looked_until", even->until);
    return map;
}

static struct lab_value *size_value(const struct size *size, struct lab_arena *arena) {
    static const char *const verdicts[] = {
        [USE] = "use", [HARDLY] = "hardly", [STAY] = "stay", [UNSURE] = "unsure"};
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "devices", size->work.devices);
    lab_value_set_float(arena, map, "speedup", value_of(size));
    lab_value_set_float(arena, map, "low", low_of(size));
    lab_value_set_float(arena, map, "high", high_of(size));
    lab_value_set_float(arena, map, "confidence",
                        is_measured(size) ? size->measured.confidence : LAB_TRAINING_CONFIDENCE);
    lab_value_set_bool(arena, map, "measured", is_measured(size));
    lab_value_set_bool(arena, map, "beyond", size->predicted.devices_beyond);
    lab_value_set_float(arena, map, "step_ms",
                        1e3 * (is_measured(size) ? size->row->time_s : size->predicted.many_s));
    lab_value_set_float(arena, map, "one_step_ms", /* that its speed-up is over */
                        1e3 * (is_measured(size) ? size->base->time_s : size->predicted.one_s));
    lab_value_set_string(arena, map, "verdict", verdicts[size->verdict]);
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

static struct lab_value *advice_value(const struct advice *advice) {
    struct lab_arena *arena = advice->arena;
    const struct lab_training *training = &advice->known->training;
    struct lab_value *map = lab_value_map(arena), *sizes = lab_value_list(arena);
    struct lab_value *made = question_value(advice->question, arena);
    struct lab_value *break_even = lab_value_map(arena);
    for (int i = 0; i < advice->count; i++)
        lab_value_append(arena, sizes, size_value(&advice->sizes[i], arena));
    lab_value_set(arena, made, "speedups", sizes);
    struct lab_training_work two = two_of(advice);
    struct lab_training_break_even batch = lab_training_break_even_batch(training, &two);
    struct lab_training_break_even parameters = lab_training_break_even_parameters(training, &two);
    lab_value_set(arena, break_even, "batch", even_value(&batch, arena));
    lab_value_set(arena, break_even, "parameters", even_value(&parameters, arena));
    lab_value_set_string(arena, break_even, "words", break_even_words(advice));
    lab_value_set(arena, made, "break_even", break_even);
    lab_value_set_string(arena, made, "study", advice->known->folder);
    lab_value_set_int(arena, made, "points", training->row_count);
    lab_value_set_int(arena, made, "models", training->model_count);
    lab_value_set_float(arena, made, "leave_one_out_error",
                        training->law_count > 0 ? training->laws[0].error : (double)NAN);
    if (advice->known->simulated)
        lab_value_set_string(arena, made, "simulated_sums", LAB_TRAINING_SIMULATED_SUMS);
    lab_value_set_string(arena, made, "warning", warning_words(advice));
    lab_value_set_string(arena, map, "answer", answer_of(advice));
    lab_value_set_string(arena, map, "study", lab_study_view_shorten(advice->known->folder, arena));
    lab_value_set_bool(arena, map, "simulated", advice->known->simulated);
    lab_value_set(arena, map, "models", lab_value_list(arena));
    lab_value_set(arena, map, "training", made);
    lab_value_set_string(arena, map, "run", advice->question->run);
    return map;
}

/* --- both --- */

void lab_advise_training(const struct lab_console *console, struct lab_arena *arena,
                         const struct lab_training_question *question,
                         const struct lab_training_known *known) {
    struct advice advice = {.question = question, .known = known, .arena = arena};
    advice.one = find_row(&known->training, &question->work);
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
    const char *rule =
        why ? lab_arena_printf(arena, "stay on one device (%s)", why) : "several devices may pay";
    const char *answer = lab_arena_printf(
        arena, "%s, %s parameters: %s. Until then a published rule is all there is: %s.",
        question->model, lab_training_count(question->work.parameters, arena), why_none, rule);
    struct lab_doc *doc = lab_doc_open("Advice", arena);
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, answer);
    lab_doc_data(doc, "study", lab_value_null(arena));
    lab_doc_data(doc, "simulated", lab_value_bool(arena, false));
    lab_doc_data(doc, "models", lab_value_list(arena));
    lab_doc_data(doc, "training", question_value(question, arena));
    lab_doc_data(doc, "run", lab_value_string(arena, question->run));
    lab_doc_text(doc, LAB_DOC_SAYS, "This study would tell:");
    lab_doc_gap(doc);
    lab_doc_code(doc, NULL, question->run);
    lab_doc_print(doc, console);
}
