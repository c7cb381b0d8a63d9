/*
 * analysis_training_break_even.c: where several devices begin to pay, by the laws of a study: over
 * batches for a model, over models for a batch. Looked for in steps, beyond what was run too, and
 * then closed in upon. What was measured has the last word.
 */
#include "analysis/training/analysis_training.h"

#include <math.h>

#define STEPS          240
#define HALVINGS       40
#define PLACES         8    /* looked at in what was run */
#define BATCH_REACH    16   /* times the largest that was run */
#define PARAMETERS_LOW 10   /* times less than the smallest */
#define PARAMETERS_UP  100  /* times more than the largest */
#define HARDLY         0.02 /* a measured speed-up so near to 1 contradicts nothing */
#define WIDEST         20   /* times its low end: a turn whose high end is farther is anywhere */

enum end { VALUE, LOW, HIGH };

struct search {
    const struct lab_training *training;
    struct lab_training_work work;
    bool over_batch;
    double from, until;
};

/* Whether so many devices are as fast as one there, by the prediction or an end of its interval. */
static bool pays(const struct search *search, enum end end, double at) {
    struct lab_training_work work = search->work;
    *(search->over_batch ? &work.batch : &work.parameters) = at;
    struct lab_training_speedup made = lab_training_predict(search->training, &work);
    return (end == VALUE ? made.value : end == LOW ? made.low : made.high) >= 1;
}

static double place(const struct search *search, int step) {
    return search->from * pow(search->until / search->from, (double)step / STEPS);
}

static double close_in(const struct search *search, enum end end, double low, double high) {
    bool before = pays(search, end, low);
    for (int i = 0; i < HALVINGS; i++) {
        double middle = sqrt(low * high);
        *(pays(search, end, middle) == before ? &low : &high) = middle;
    }
    return sqrt(low * high);
}

/* Where it last turns from not paying to paying (`up`) or the other way; NaN = nowhere. */
static double find_turn(const struct search *search, enum end end, bool up) {
    bool after = pays(search, end, search->until);
    for (int step = STEPS - 1; step >= 0; step--) {
        bool here = pays(search, end, place(search, step));
        if (here != after && after == up)
            return close_in(search, end, place(search, step), place(search, step + 1));
        after = here;
    }
    return NAN;
}

static double bound(const struct search *search, enum end end, bool up) {
    double at = find_turn(search, end, up);
    if (!isnan(at))
        return at;
    /* no turn: it pays all over, or nowhere */
    return pays(search, end, search->until) == up ? 0 : INFINITY;
}

static bool is_turn(const struct lab_training_break_even *even) {
    return even->state == LAB_TRAINING_FROM || even->state == LAB_TRAINING_UNTIL;
}

/* Several devices at what is looked at: points of this model, or at this batch. */
static bool is_looked_at(const struct search *search, const struct lab_training_row *row) {
    const struct lab_training_work *a = &row->work, *b = &search->work;
    return a->devices == b->devices && a->weak == b->weak && a->layers == b->layers &&
           (search->over_batch ? a->parameters == b->parameters : a->batch == b->batch);
}

static bool pays_by(const struct lab_training_break_even *even, double at) {
    return even->state == LAB_TRAINING_ALWAYS ||
           (even->state == LAB_TRAINING_FROM && at >= even->at) ||
           (even->state == LAB_TRAINING_UNTIL && at < even->at);
}

static void ask_measured(const struct search *search, struct lab_training_break_even *even) {
    for (int i = 0; i < search->training->row_count; i++) {
        const struct lab_training_row *row = &search->training->rows[i];
        const struct lab_training_row *base = lab_training_base(search->training, row);
        if (!base || !is_looked_at(search, row))
            continue;
        double speedup = lab_training_measured(base, row);
        bool should = pays_by(even, search->over_batch ? row->work.batch : row->work.parameters);
        if (should ? speedup >= 1 - HARDLY : speedup <= 1 + HARDLY)
            continue;
        even->doubt = LAB_TRAINING_CONTRADICTED;
        even->against = row;
        even->against_speedup = speedup;
        return;
    }
}

static const struct lab_training_range *range_of(const struct search *search) {
    return search->over_batch ? &search->training->batch : &search->training->parameters;
}

/* Without a turn: whether the interval has it otherwise somewhere in what was run. */
static bool may_turn(const struct search *search, const struct lab_training_break_even *even) {
    const struct lab_training_range *range = range_of(search);
    bool always = even->state == LAB_TRAINING_ALWAYS;
    for (int i = 0; i <= PLACES; i++) {
        double at = range->low * pow(range->high / range->low, (double)i / PLACES);
        if (pays(search, always ? LOW : HIGH, at) != always)
            return true;
    }
    return false;
}

static bool is_too_wide(const struct search *search, const struct lab_training_break_even *even) {
    bool low = even->low > 0 && isfinite(even->low), high = isfinite(even->high);
    if (!is_turn(even))
        return may_turn(search, even);
    return (!low && !high) || (low && high && even->high / even->low > WIDEST);
}

static void judge(const struct search *search, struct lab_training_break_even *even) {
    if (is_turn(even) && isnan(even->low))
        even->doubt = LAB_TRAINING_UNTESTED;
    else if (is_too_wide(search, even))
        even->doubt = LAB_TRAINING_TOO_WIDE;
    ask_measured(search, even);
    if (even->doubt == LAB_TRAINING_SURE)
        return;
    even->state = LAB_TRAINING_UNTOLD;
    even->at = even->low = even->high = NAN;
}

static struct lab_training_break_even find_even(const struct search *search) {
    struct lab_training_break_even even = {
        .at = NAN, .low = NAN, .high = NAN, .from = search->from, .until = search->until};
    bool first = pays(search, VALUE, search->from), last = pays(search, VALUE, search->until);
    even.at = find_turn(search, VALUE, true);
    even.state = LAB_TRAINING_FROM;
    if (isnan(even.at)) {
        even.at = find_turn(search, VALUE, false);
        even.state = !isnan(even.at) ? LAB_TRAINING_UNTIL
                     : first && last ? LAB_TRAINING_ALWAYS
                                     : LAB_TRAINING_NEVER;
    }
    if (!is_turn(&even))
        return even;
    bool up = even.state == LAB_TRAINING_FROM;
    if (!isnan(lab_training_predict(search->training, &search->work).low)) {
        even.low = bound(search, up ? HIGH : LOW, up);
        even.high = bound(search, up ? LOW : HIGH, up);
    }
    return even;
}

static double beyond_of(const struct search *search, double at) {
    const struct lab_training_range *range = range_of(search);
    return isnan(at) ? 1 : fmax(1, fmax(at / range->high, range->low / at));
}

static struct lab_training_break_even look(const struct search *search) {
    struct lab_training_break_even even = {.state = LAB_TRAINING_UNTOLD,
                                           .at = NAN,
                                           .low = NAN,
                                           .high = NAN,
                                           .from = search->from,
                                           .until = search->until,
                                           .doubt = LAB_TRAINING_NO_LAW};
    if (search->training->law_count > 0) {
        even = find_even(search);
        judge(search, &even);
    }
    even.beyond = beyond_of(search, even.at);
    even.layers = search->over_batch ? 0 : search->work.layers;
    return even;
}

struct lab_training_break_even lab_training_break_even_batch(const struct lab_training *training,
                                                             const struct lab_training_work *work) {
    struct search search = {.training = training,
                            .work = *work,
                            .over_batch = true,
                            .from = work->weak ? 1 : work->devices,
                            .until = BATCH_REACH * training->batch.high};
    search.work.batch = search.from;
    return look(&search);
}

struct lab_training_break_even
lab_training_break_even_parameters(const struct lab_training *training,
                                   const struct lab_training_work *work) {
    struct search search = {.training = training,
                            .work = *work,
                            .from = training->parameters.low / PARAMETERS_LOW,
                            .until = training->parameters.high * PARAMETERS_UP};
    for (int i = 0; i < training->row_count; i++)
        if (training->rows[i].work.parameters == training->parameters.high)
            search.work.layers = training->rows[i].work.layers;
    return look(&search);
}
