/* Needed values against R (tests/fixtures/stats/reference_compare.R). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

LAB_TEST(needed_values_are_those_of_r) {
    /* R: power.t.test(power = ...) gives 63.77, 31.46, 6280.05 and 3.07 */
    assert_close(lab_stats_needed_t(.5, .8, .05), 64, 0);
    assert_close(lab_stats_needed_t(1, .9, .01), 32, 0);
    assert_close(lab_stats_needed_t(.05, .8, .05), 6281, 0);
    assert_close(lab_stats_needed_t(-3, .8, .05), 4, 0);
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
    assert_nan(lab_stats_needed_t(1, 1, .05));
    assert_nan(lab_stats_needed_t(NAN, .8, .05));
}
