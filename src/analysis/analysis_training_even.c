/*
 * analysis_training_even.c: where several devices begin to pay, by the laws of a study: over
 * batches for a model, over models for a batch. Looked for in steps, beyond what was run too, and
 * then closed in upon.
 */
#include "analysis/analysis_training.h"

#include <math.h>

#define STEPS          240
#define HALVINGS       40
#define BATCH_REACH    16  /* times the largest that was run */
#define PARAMETERS_LOW 10  /* times less than the smallest */
#define PARAMETERS_UP  100 /* times more than the largest */

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

static struct lab_training_even look(const struct search *search) {
    struct lab_training_even even = {
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
    if (even.state != LAB_TRAINING_FROM && even.state != LAB_TRAINING_UNTIL)
        return even;
    bool up = even.state == LAB_TRAINING_FROM;
    if (!isnan(lab_training_predict(search->training, &search->work).low)) {
        even.low = bound(search, up ? HIGH : LOW, up);
        even.high = bound(search, up ? LOW : HIGH, up);
    }
    return even;
}

struct lab_training_even lab_training_even_batch(const struct lab_training *training,
                                                 const struct lab_training_work *work) {
    struct search search = {.training = training,
                            .work = *work,
                            .over_batch = true,
                            .from = work->weak ? 1 : work->devices,
                            .until = BATCH_REACH * training->batch.high};
    search.work.batch = search.from;
    return look(&search);
}

struct lab_training_even lab_training_even_parameters(const struct lab_training *training,
                                                      const struct lab_training_work *work) {
    struct search search = {.training = training,
                            .work = *work,
                            .from = training->parameters.low / PARAMETERS_LOW,
                            .until = training->parameters.high * PARAMETERS_UP};
    return look(&search);
}
