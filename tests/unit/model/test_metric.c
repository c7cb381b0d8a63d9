/* test_metric.c: the table of metrics holds together, since files name them by what it says. */
#include "model/metric.h"

#include "test.h"
#include <string.h>

LAB_TEST(every_metric_is_found_by_its_name) {
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)i);
        assert_int_equal(lab_metric_find(metric->name), i); /* so no two have one name */
    }
    assert_int_equal(lab_metric_find("aura"), -1);
    assert_int_equal(lab_metric_find(""), -1);
}

/* A name stands in files with spaces between and a number in brackets behind. */
LAB_TEST(names_are_words_for_programs) {
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const char *name = lab_metric((enum lab_metric_id)i)->name;
        assert_true(name[0] >= 'a' && name[0] <= 'z');
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
    }
}

LAB_TEST(every_metric_has_a_title_and_a_scale) {
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

LAB_TEST(names_for_others_tell_the_unit_once) {
    assert_string_equal(lab_metric_ending(LAB_METRIC_POWER), "_w");
    assert_string_equal(lab_metric_ending(LAB_METRIC_MEMORY_USED), "_bytes");
    assert_string_equal(lab_metric_ending(LAB_METRIC_PCIE_TX_BYTES), ""); /* pcie_tx_bytes */
    assert_string_equal(lab_metric_ending(LAB_METRIC_XIDS), "");
}

LAB_TEST(every_reason_has_one_bit_of_its_own) {
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

/* idle 0x1, power limit 0x4, hardware slowdown 0x8, heat 0x20 and 0x40, power brake 0x80 */
LAB_TEST(an_idle_clock_does_no_harm) {
    assert_int_equal(lab_clock_harmful(0x1 | 0x2 | 0x100), 0);
    assert_int_equal(lab_clock_harmful(0x1 | 0x4 | 0x40), 0x44);
    assert_int_equal(lab_clock_harmful(UINT64_MAX), 0xfc);
}

LAB_TEST(heat_excludes_a_run_and_the_power_limit_does_not) {
    uint64_t excludes = 0;
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        excludes |= reason->excludes ? reason->bit : 0;
    assert_int_equal(excludes, 0x8 | 0x20 | 0x40 | 0x80);
    assert_int_equal(excludes & ~lab_clock_harmful(UINT64_MAX), 0);
}
