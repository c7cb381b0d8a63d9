/* test_sample.c: finding a value in a tick; what isn't known is never 0 instead. */
#include "model/sample.h"

#include "test.h"
#include <math.h>

static const struct lab_column columns[] = {
    {LAB_METRIC_POWER, -1},
    {LAB_METRIC_CORE_UTILIZATION, 0},
    {LAB_METRIC_CORE_UTILIZATION, 70},
};

static const struct lab_entity entity = {
    .kind = LAB_ENTITY_CPU, .id = "cpu", .columns = columns, .column_count = 3};

LAB_TEST(columns_are_found_by_metric_and_instance) {
    assert_int_equal(lab_entity_column(&entity, LAB_METRIC_POWER, -1), 0);
    assert_int_equal(lab_entity_column(&entity, LAB_METRIC_CORE_UTILIZATION, 70), 2);
    assert_int_equal(lab_entity_column(&entity, LAB_METRIC_CORE_UTILIZATION, 1), -1);
    assert_int_equal(lab_entity_column(&entity, LAB_METRIC_CORE_UTILIZATION, -1), -1);
    assert_int_equal(lab_entity_column(&entity, LAB_METRIC_FAN, -1), -1);
}

LAB_TEST(a_value_is_in_its_unit_or_not_a_number) {
    const int64_t values[] = {350250, 0, 999};
    uint64_t valid[LAB_VALID_WORDS(3)] = {0};
    lab_valid_set(valid, 0);
    lab_valid_set(valid, 2);
    const struct lab_tick tick = {.values = values, .valid = valid};
    assert_true(fabs(lab_tick_value(&entity, &tick, LAB_METRIC_POWER, -1) - 350.25) < 1e-9);
    assert_true(isnan(lab_tick_value(&entity, &tick, LAB_METRIC_CORE_UTILIZATION, 0)));
    assert_true(fabs(lab_tick_value(&entity, &tick, LAB_METRIC_CORE_UTILIZATION, 70) - 99.9) <
                1e-9);
    assert_true(isnan(lab_tick_value(&entity, &tick, LAB_METRIC_FAN, -1)));
}

LAB_TEST(validity_has_a_bit_for_each_column) {
    uint64_t valid[LAB_VALID_WORDS(130)] = {0};
    assert_int_equal(sizeof valid / sizeof *valid, 3);
    static const int set[] = {0, 63, 64, 129};
    for (int i = 0; i < 4; i++)
        lab_valid_set(valid, set[i]);
    int count = 0;
    for (int i = 0; i < 130; i++)
        count += lab_valid_get(valid, i);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++)
        assert_true(lab_valid_get(valid, set[i]));
}

LAB_TEST(every_event_has_a_name_of_its_own) {
    for (int i = 0; i < LAB_EVENT_KIND_COUNT; i++) {
        const char *name = lab_event_kind_name((enum lab_event_kind)i);
        assert_true(name && name[0]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, lab_event_kind_name((enum lab_event_kind)k));
    }
    assert_string_equal(lab_event_kind_name(LAB_EVENT_NOT_STORED), "not_stored");
}
