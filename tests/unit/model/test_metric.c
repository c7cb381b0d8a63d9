/* test_metric.c: the table of metrics holds together, since files name them by what it says. */
#include "model/metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void every_metric_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)i);
        assert_int_equal(lab_metric_find(metric->name), i); /* so no two have one name */
    }
    assert_int_equal(lab_metric_find("aura"), -1);
    assert_int_equal(lab_metric_find(""), -1);
}

/* A name stands in files with spaces between and a number in brackets behind. */
static void names_are_words_for_programs(void **state) {
    (void)state;
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const char *name = lab_metric((enum lab_metric_id)i)->name;
        assert_true(name[0] >= 'a' && name[0] <= 'z');
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
    }
}

static void every_metric_has_a_title_and_a_scale(void **state) {
    (void)state;
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)i);
        assert_true(metric->title && metric->title[0] && metric->unit);
        assert_true(metric->scale > 0);
        assert_true(metric->kind != LAB_METRIC_FLAGS || metric->scale == 1);
    }
    assert_true(lab_metric(LAB_METRIC_POWER)->scale == 0.001);
    assert_string_equal(lab_metric(LAB_METRIC_POWER)->unit, "W");
    assert_int_equal(lab_metric(LAB_METRIC_ENERGY)->kind, LAB_METRIC_COUNTER);
    assert_int_equal(lab_metric(LAB_METRIC_CLOCK_REASONS)->kind, LAB_METRIC_FLAGS);
}

static void names_for_others_tell_the_unit_once(void **state) {
    (void)state;
    assert_string_equal(lab_metric_ending(LAB_METRIC_POWER), "_w");
    assert_string_equal(lab_metric_ending(LAB_METRIC_MEMORY_USED), "_bytes");
    assert_string_equal(lab_metric_ending(LAB_METRIC_PCIE_TX_BYTES), ""); /* pcie_tx_bytes */
    assert_string_equal(lab_metric_ending(LAB_METRIC_XIDS), "");
}

static void every_reason_has_one_bit_of_its_own(void **state) {
    (void)state;
    uint64_t seen = 0;
    int count = 0;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++) {
        assert_true((reason->bit & (reason->bit - 1)) == 0);
        assert_true((seen & reason->bit) == 0);
        assert_true(reason->name[0] && reason->words[0]);
        seen |= reason->bit;
        count++;
    }
    assert_int_equal(count, 9);
}

static void an_idle_clock_spoils_nothing(void **state) {
    (void)state;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++) {
        if (strcmp(reason->name, "idle") == 0)
            assert_false(reason->harmful);
        if (strcmp(reason->name, "hw_thermal") == 0)
            assert_true(reason->harmful);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_is_found_by_its_name),
        cmocka_unit_test(names_are_words_for_programs),
        cmocka_unit_test(every_metric_has_a_title_and_a_scale),
        cmocka_unit_test(names_for_others_tell_the_unit_once),
        cmocka_unit_test(every_reason_has_one_bit_of_its_own),
        cmocka_unit_test(an_idle_clock_spoils_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
