/* Two programs in turn: their order, when it is enough, what ends it. */
#include "command/compare/turn_process.h"

#include "base/json.h"
#include "doc/doc.h"

#include "test.h"
#include <math.h>
#include <string.h>

struct fake {
    char order[4096];
    int count;
    int fails_at, stops_at; /* -1 = never */
    double spread, slower;  /* of times; of B */
    double clock_s;
};

static int fake_run(void *opaque, int side, struct lab_turn *ret_turn, struct lab_err *err) {
    static const double around[] = {0.9, -0.7, 0.3, -0.2, 0.6, -0.9, 0.1};
    struct fake *fake = opaque;
    int at = fake->count++;
    fake->order[at] = (char)('A' + side);
    if (at == fake->fails_at)
        return lab_err_set(err, LAB_ERR_SYSTEM, "bad");
    if (at == fake->stops_at)
        return 1;
    double time_s = (side ? 1 + fake->slower : 1) * (1 + fake->spread * around[at % 7]);
    fake->clock_s += time_s;
    ret_turn->start_ns = 1000;
    ret_turn->end_ns = 1000 + (int64_t)(1e9 * time_s);
    return 0;
}

static double fake_elapsed(void *opaque) {
    return ((struct fake *)opaque)->clock_s;
}

static const char *const a_words[] = {"./a", "two words", NULL}, *const b_words[] = {"./b", NULL};

static struct lab_turns turns_of(struct fake *fake) {
    return (struct lab_turns){.argv = {a_words, b_words},
                              .budget_s = 1e9,
                              .run = fake_run,
                              .elapsed_s = fake_elapsed,
                              .state = fake};
}

#define NEVER .fails_at = -1, .stops_at = -1

LAB_TEST(turns_are_taken_a_b_b_a_after_the_warm_up) {
    struct fake fake = {NEVER};
    struct lab_turns turns = turns_of(&fake);
    turns.warmup = 1;
    turns.runs = 3; /* whole A B B A: four of each */
    ASSERT_OK(lab_turns_run(&turns, err));
    assert_string_equal(fake.order, "AB"
                                    "ABBAABBA");
    assert_int_equal(turns.count, 8);
    struct lab_point_set *sets = lab_turns_sets(&turns, &test_arena);
    assert_string_equal(sets[0].name, "./a 'two words'");
    assert_int_equal(sets[1].points[0].count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sets[1].points[0].blocks[i], i);
    lab_turns_release(&turns);
}

LAB_TEST(it_is_enough_when_two_percent_would_be_detected_or_the_budget_is_spent) {
    struct fake quiet = {NEVER, .spread = 0.002}, noisy = {NEVER, .spread = 0.05},
                short_of_time = {NEVER, .spread = 0.05};
    struct lab_turns first = turns_of(&quiet), second = turns_of(&noisy),
                     third = turns_of(&short_of_time);
    ASSERT_OK(lab_turns_run(&first, err));
    assert_int_equal(first.count, 2 * LAB_TURNS_LEAST);
    ASSERT_OK(lab_turns_run(&second, err));
    assert_true(second.count > 4 * LAB_TURNS_LEAST);
    third.budget_s = 0.5; /* less than one run takes: one A B B A all the same */
    ASSERT_OK(lab_turns_run(&third, err));
    assert_string_equal(short_of_time.order, "ABBA");
    lab_turns_release(&first);
    lab_turns_release(&second);
    lab_turns_release(&third);
}

LAB_TEST(a_failure_ends_it_and_says_whose_a_stop_keeps_what_is_whole) {
    struct fake bad = {NEVER, .spread = 0.05}, stopped = {NEVER, .spread = 0.05};
    struct lab_turns turns = turns_of(&bad), kept = turns_of(&stopped);
    bad.fails_at = 5;
    ASSERT_FAILS(lab_turns_run(&turns, err), LAB_ERR_SYSTEM, "B: bad");
    stopped.stops_at = 6;
    assert_int_equal(lab_turns_run(&kept, NULL), 1);
    assert_int_equal(kept.count, 4);
    lab_turns_release(&turns);
    lab_turns_release(&kept);
}

/* --- what it came to --- */

static const char *text_of(const struct lab_turns *turns, bool json) {
    LAB_AUTO(str, text);
    struct lab_doc *doc = lab_doc_open("x", &test_arena);
    lab_turn_process_add(doc, turns);
    if (json)
        lab_json_write(lab_doc_value(doc, &test_arena), 0, &text);
    else
        lab_doc_write(doc, "text", (struct lab_style){.columns = 80}, &text);
    return lab_arena_strdup(&test_arena, text.text);
}

/* Means over each side's runs, of what was read in them. */
LAB_TEST(gpus_are_shown_by_side) {
    struct lab_turn_gpu gpus[4][2] = {{{0, 1000, 100, 40}, {3, 500, 50, NAN}},
                                      {{0, 2000, 300, 50}, {3, NAN, NAN, NAN}},
                                      {{0, 2001.6, 301, 60}},
                                      {{0, 1100, NAN, 42}, {3, 700, 60, NAN}}};
    struct lab_turn items[4];
    for (int i = 0; i < 4; i++)
        items[i] = (struct lab_turn){.side = i == 1 || i == 2,
                                     .pair = i / 2,
                                     .start_ns = 1000,
                                     .end_ns = 1000 + (i + 1) * INT64_C(500000000),
                                     .gpus = gpus[i],
                                     .gpu_count = i == 2 ? 1 : 2};
    struct lab_turns turns = {.items = items, .count = 4};
    assert_string_equal(text_of(&turns, false),
                        "  GPU  Run of  SM clock, MHz    Power  Temperature\n"
                        "  ---  ------  -------------  -------  -----------\n"
                        "    0  A                1050  100.0 W     41  degC\n"
                        "    0  B                2001  300.5 W     55  degC\n"
                        "    3  A                 600   55.0 W            -\n"
                        "    3  B                   -        -            -\n");
    assert_string_equal(
        text_of(&(struct lab_turns){.items = items, .count = 1}, true),
        "{\"runs\": [{\"command\": \"A\", \"pair\": 0, \"time_s\": 0.5, \"gpus\": "
        "[{\"gpu\": 0, \"sm_clock_mhz\": 1000.0, \"power_w\": 100.0, \"temperature_c\": 40.0}, "
        "{\"gpu\": 3, \"sm_clock_mhz\": 500.0, \"power_w\": 50.0, \"temperature_c\": null}]}]}");
    turns.items = &items[1]; /* of B alone nothing is known of A */
    turns.count = 2;
    assert_non_null(strstr(text_of(&turns, true), "\"pair\": 1, \"time_s\": 1.5, \"gpus\": [{"));
    assert_non_null(strstr(text_of(&turns, true), "\"command\": \"B\""));
    items[0].gpu_count = 0; /* nor without any */
    turns.items = items;
    assert_string_equal(text_of(&turns, false), "");
    turns.count = 0;
    assert_string_equal(text_of(&turns, false), "");
}
