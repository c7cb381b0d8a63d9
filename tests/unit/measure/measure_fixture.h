/*
 * measure_fixture.h: subjects that only pretend to work: they move a clock that stands still
 * otherwise, so that every figure is known beforehand.
 */
#pragma once

#include "base/random.h"
#include "measure/measure.h"

#include "test.h"
#include <math.h>
#include <string.h>

#define MS LAB_NS_PER_MS
#define US LAB_NS_PER_US

static int64_t now_ns;
static struct lab_clock clock_by_hand;
static char run_order[4096]; /* the first letter of each stretch's subject */

struct fake {
    char letter;
    int64_t (*duration_ns)(int64_t index); /* of iteration `index` since the beginning */
    int64_t index;                         /* next */
    int64_t fails_at;                      /* 0 = never */
    int64_t stage_ns;                      /* > 0: H2D, compute and D2H of this length each */
    int64_t chunks, longest;
};

static inline int run_fake(void *state, int count, struct lab_iteration *records,
                           struct lab_err *err) {
    struct fake *fake = state;
    size_t length = strlen(run_order);
    if (length + 1 < sizeof run_order)
        run_order[length] = fake->letter;
    fake->chunks++;
    fake->longest = count > fake->longest ? count : fake->longest;
    for (int i = 0; i < count; i++) {
        if (fake->fails_at > 0 && fake->index == fake->fails_at)
            return lab_err_set(err, LAB_ERR_MEMORY, "no room for 8 GB");
        records[i].start_ns = now_ns;
        now_ns += fake->duration_ns(fake->index++);
        records[i].end_ns = now_ns;
        for (int s = 0; fake->stage_ns > 0 && s < LAB_STAGE_COUNT; s++) {
            records[i].stages[s].start_ns = records[i].start_ns + s * fake->stage_ns;
            records[i].stages[s].end_ns = records[i].start_ns + (s + 1) * fake->stage_ns;
        }
    }
    return 0;
}

/* ± `spread` of noise, uniform, by counter. */
static inline int64_t noisy(int64_t duration_ns, double spread, int64_t index) {
    double u = lab_random_uniform(99, (uint64_t)index);
    return duration_ns + (int64_t)((double)duration_ns * spread * (2 * u - 1));
}

static inline int64_t steady_1ms(int64_t index) {
    return noisy(MS, 0.02, index);
}

static inline struct lab_measure_plan plan_by_hand(void) {
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.clock = &clock_by_hand;
    return plan;
}

static inline struct lab_measurement measure_one(struct lab_measure_plan plan, struct fake *fake) {
    struct lab_subject subject = {.name = "fake", .run = run_fake, .state = fake};
    struct lab_measurement m;
    struct lab_err err = LAB_ERR_INIT;
    int result = lab_measure(&plan, &subject, 1, &test_arena, &m, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
    return m;
}

static inline int set_up(void **state) {
    (void)state;
    now_ns = 1000 * LAB_NS_PER_S;
    clock_by_hand = lab_clock_manual(&now_ns);
    memset(run_order, 0, sizeof run_order);
    return 0;
}

static inline int64_t wild_1ms(int64_t index) {
    return noisy(MS, 0.3, index);
}
