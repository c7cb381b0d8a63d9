/* Seconds by what is computed and copied, from runs whose seconds follow a formula. */
#include "run/estimate/history_cost.h"

#include "test.h"

#include <math.h>

static struct history_cost cost_of(const struct history_amount *amounts, const double *seconds,
                                   int count) {
    struct history_cost cost = {0};
    for (int i = 0; i < count; i++)
        history_cost_add(&cost, amounts[i], seconds[i], &test_arena);
    return cost;
}

static double expect(struct history_cost *cost, double computed, double copied) {
    return history_cost_expect(cost, (struct history_amount){computed, copied});
}

/* Given models of one input, the smallest of which computes nothing, on a device that copies much
 * faster than it computes: then a large model is expected to take its computing time. */
LAB_TEST(copies_of_one_size_say_nothing_of_computing) {
    static const struct history_amount amounts[] = {{0, 1e7}, {5e8, 1e7}, {3e9, 1e7}, {3e10, 1e7}};
    double seconds[4];
    for (int i = 0; i < 4; i++)
        seconds[i] = 0.003 + amounts[i].computed / 5e10;
    struct history_cost cost = cost_of(amounts, seconds, 4);
    assert_float_equal(expect(&cost, 6e11, 1e7), 12.003, 1e-6);
    assert_float_equal(expect(&cost, 0, 1e7), 0.003, 1e-9);
}

LAB_TEST(computing_and_copying_each_have_a_rate) {
    static const struct history_amount amounts[] = {{0, 1e7}, {1e9, 2e7}, {8e9, 1e7}, {2e9, 9e7}};
    double seconds[4];
    for (int i = 0; i < 4; i++)
        seconds[i] = 0.01 + amounts[i].computed / 1e10 + amounts[i].copied / 1e9;
    struct history_cost cost = cost_of(amounts, seconds, 4);
    assert_float_equal(expect(&cost, 1e11, 1e9), 11.01, 1e-6);
}

LAB_TEST(copies_alone_go_by_their_size) {
    static const struct history_amount amounts[] = {{0, 1e7}, {0, 3e7}};
    static const double seconds[] = {0.02, 0.04};
    struct history_cost cost = cost_of(amounts, seconds, 2);
    assert_float_equal(expect(&cost, 0, 5e7), 0.06, 1e-9);
}

LAB_TEST(no_term_is_below_zero) {
    static const struct history_amount amounts[] = {{1e9, 0}, {2e9, 0}};
    static const double falls_s[] = {0.2, 0.1}, steep_s[] = {0.1, 0.4};
    struct history_cost falls = cost_of(amounts, falls_s, 2), steep = cost_of(amounts, steep_s, 2);
    double level_s = (1 / 0.2 + 1 / 0.1) / (1 / 0.04 + 1 / 0.01);
    assert_float_equal(expect(&falls, 9e9, 0), level_s, 1e-9);
    assert_float_equal(expect(&steep, 9e9, 0), 9 * (1 / 0.1 + 2 / 0.4) / (1 / 0.01 + 4 / 0.16),
                       1e-9);
}

LAB_TEST(of_one_amount_half_goes_by_the_work) {
    static const struct history_amount amounts[] = {{1e9, 1e7}, {1e9, 1e7}};
    static const double seconds[] = {1, 3};
    struct history_cost cost = cost_of(amounts, seconds, 2);
    assert_float_equal(history_amount_work(amounts[0]), 2e9, 0);
    assert_float_equal(expect(&cost, 1e9, 1e7), 2, 1e-9);
    assert_float_equal(expect(&cost, 3e9, 1e7), 3, 1e-9);
    assert_float_equal(expect(&cost, 1e9, 3e7), 3, 1e-9);
}

LAB_TEST(later_runs_count_too) {
    static const struct history_amount amounts[] = {{1e9, 0}, {2e9, 0}};
    static const double seconds[] = {1, 2};
    struct history_cost cost = cost_of(amounts, seconds, 1);
    assert_float_equal(expect(&cost, 3e9, 0), 2, 1e-9);
    history_cost_add(&cost, amounts[1], seconds[1], &test_arena);
    assert_float_equal(expect(&cost, 3e9, 0), 3, 1e-9);
}

LAB_TEST(unknown_amounts_have_no_time) {
    struct history_cost cost = {0};
    history_cost_add(&cost, (struct history_amount){0, 0}, 1, &test_arena);
    assert_true(isnan(expect(&cost, 1e9, 0)));
    history_cost_add(&cost, (struct history_amount){1e9, 0}, 0, &test_arena);
    assert_float_equal(expect(&cost, 1e9, 0), 0, 0);
    assert_true(isnan(expect(&cost, 0, 0)));
}
