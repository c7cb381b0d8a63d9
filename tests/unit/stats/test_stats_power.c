/* Power and needed values against R (tests/fixtures/stats/reference_compare.R). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

LAB_TEST(power_is_that_of_r) {
    /* R: power.t.test(strict = TRUE); unequal samples by pt(ncp) */
    assert_close(lab_stats_power_t(.5, 20, 20, .05), 0.33793902892509, 1e-9);
    assert_close(lab_stats_power_t(-2, 5, 5, .01), 0.476934734630697, 1e-9);
    assert_close(lab_stats_power_t(1, 2, 2, .05), 0.0952017554979728, 1e-8);
    assert_close(lab_stats_power_t(.1, 1000, 1000, .05), 0.60836670580908, 1e-9);
    assert_close(lab_stats_power_t(1, 5, 12, .05), 0.420223284588726, 1e-9);
}

LAB_TEST(no_effect_is_found_by_chance) {
    assert_close(lab_stats_power_t(0, 10, 10, .05), .05, 1e-9);
    assert_close(lab_stats_power_t(1e300, 10, 10, .05), 1, 1e-12);
    assert_close(lab_stats_power_t(1e-9, 1e6, 1e6, .05), .05, 1e-6);
}

LAB_TEST(needed_values_are_those_of_r) {
    /* R: power.t.test(power = ...) gives 63.77, 31.46, 6280.05 and 3.07 */
    assert_close(lab_stats_needed_t(.5, .8, .05), 64, 0);
    assert_close(lab_stats_needed_t(1, .9, .01), 32, 0);
    assert_close(lab_stats_needed_t(.05, .8, .05), 6281, 0);
    assert_close(lab_stats_needed_t(-3, .8, .05), 4, 0);
}

/* The number found has the power, one less hasn't. */
LAB_TEST(needed_values_are_the_fewest) {
    double effects[] = {.2, .7, 1.3, 2.5};
    for (size_t i = 0; i < COUNT(effects); i++) {
        double n = lab_stats_needed_t(effects[i], .9, .05);
        assert_true(lab_stats_power_t(effects[i], n, n, .05) >= .9);
        assert_true(lab_stats_power_t(effects[i], n - 1, n - 1, .05) < .9);
    }
}

LAB_TEST(effects_at_their_ends) {
    assert_true(isinf(lab_stats_needed_t(0, .8, .05)));
    assert_close(lab_stats_needed_t(1e300, .8, .05), 2, 0);
    assert_close(lab_stats_needed_t(1, .01, .05), 2, 0);
    /* 2 (z.975 + z.8)² / effect²; R: 2 * (qnorm(.975) + qnorm(.8))^2 * 1e12 */
    assert_close(lab_stats_needed_t(1e-6, .8, .05), 15697759468698.2, 1e-9);
    /* the search and the formula meet */
    assert_close(lab_stats_needed_t(.00397, .8, .05), 15.6977594686982 / .00397 / .00397, 1e-5);
}

LAB_TEST(impossible_arguments_give_no_number) {
    assert_nan(lab_stats_power_t(NAN, 5, 5, .05));
    assert_nan(lab_stats_power_t(1, 1, 5, .05));
    assert_nan(lab_stats_power_t(1, 5, 0, .05));
    assert_nan(lab_stats_power_t(1, 5, NAN, .05));
    assert_nan(lab_stats_power_t(1, 5, 5, 0));
    assert_nan(lab_stats_needed_t(1, 1, .05));
    assert_nan(lab_stats_needed_t(NAN, .8, .05));
}
