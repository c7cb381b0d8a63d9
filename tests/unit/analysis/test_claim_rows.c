/* Structs become tables, figures of parts, and charts. */
#include "analysis/claims/rows.h"

#include <math.h>

#include "test.h"

struct row {
    const char *device, *node;
    double work;
    int runs;
    struct lab_claim claim;
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, node, "node", "Node", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, work, "work", "Work", LAB_UNIT_NUMBER),
    LAB_FIELD(struct row, runs, "runs", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, claim, "change", "Throughput", LAB_UNIT_CHANGE),
};

static struct lab_claim changed(double effect, double low, double high) {
    struct lab_claim claim = lab_claim_none;
    claim.kind = "test.change";
    claim.effect = effect;
    claim.low = low;
    claim.high = high;
    claim.confidence = 0.95;
    claim.n = 5;
    lab_claim_judge(&claim, 0.001);
    return claim;
}

static struct row *some_rows(void) {
    struct row *rows = lab_arena_alloc(&test_arena, 3, sizeof *rows);
    rows[0] = (struct row){"GPU 0", "node 1", 1, 5, changed(-0.125, -0.13, -0.12)};
    rows[1] = (struct row){"GPU 1", "node 1", 1, 5, changed(0.001, -0.0062, 0.0078)};
    rows[2] = (struct row){"GPU 0", "node 2", 8, 5, changed(-0.02, -0.05, 0.01)};
    return rows;
}

LAB_TEST(a_claim_is_five_columns_of_a_table) {
    struct lab_analysis_part part = {0};
    struct lab_rows rows = LAB_ROWS(row_fields, some_rows(), 3);
    struct lab_doc_table *table = lab_rows_add_table(&part, "rows", "Rows", &rows, &test_arena);
    assert_int_equal(table->column_count, 9);
    assert_int_equal(table->row_count, 3);
    assert_string_equal(table->columns[4].key, "change");
    assert_null(table->columns[4].title);
    assert_string_equal(table->columns[5].title, "Throughput");
    assert_string_equal(table->columns[6].key, "change_verdict");
    const struct lab_doc_cell *second = table->cells + 9;
    assert_string_equal(second[0].text, "GPU 1");
    assert_true(second[3].value == 5 && second[4].low == -0.0062);
    assert_string_equal(second[5].text, "within ±0.8%");
    assert_string_equal(second[6].text, "no");
    assert_true(second[7].value == 0.0078 && second[8].value == 5);
    rows.count = 0;
    assert_null(lab_rows_add_table(&part, "none", "None", &rows, &test_arena)->title);
}

LAB_TEST(figures_and_claims_of_a_result_come_from_records) {
    struct row *items = some_rows();
    struct lab_rows rows = LAB_ROWS(row_fields, items, 3);
    struct lab_analysis_result result =
        lab_rows_result("devices", row_fields, LAB_COUNT_OF(row_fields), &test_arena);
    struct lab_analysis_part *part = lab_analysis_add_part(&result, "GPU 0", &test_arena);
    LAB_PART_FIGURES(part, row_fields, &items[0], &test_arena);
    assert_int_equal(result.column_count, 9);
    assert_string_equal(part->cells[6].text, "yes");
    lab_rows_add_claims(&result, &rows, &test_arena);
    assert_int_equal(result.claim_count, 3);
    assert_int_equal(result.claims[1].verdict, LAB_CLAIM_NO);
}

LAB_TEST(a_series_for_each_text_with_intervals_in_per_cent) {
    struct lab_chart chart = {0};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&chart, NULL, lab_axis("x"), lab_axis("y"), &test_arena);
    struct lab_rows rows = LAB_ROWS(row_fields, some_rows(), 3);
    lab_rows_add_series(panel, &rows, "work", "change", "device", LAB_CHART_LINE_POINTS,
                        &test_arena);
    assert_int_equal(panel->series_count, 2);
    assert_string_equal(panel->series[0].title, "GPU 0");
    assert_int_equal(panel->series[0].count, 2);
    assert_true(panel->series[0].x[1] == 8 && fabs(panel->series[0].low[0] + 13) < 1e-9);
    assert_null(panel->x.names);
    lab_rows_add_series(panel, &rows, "node", "change", NULL, LAB_CHART_BARS, &test_arena);
    assert_int_equal(panel->series[2].count, 3);
    assert_int_equal(panel->x.name_count, 2);
    assert_true(panel->series[2].x[2] == 1);
}

LAB_TEST(a_heat_map_says_what_is_certain) {
    struct lab_chart chart = {0};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&chart, NULL, lab_axis("x"), lab_axis("y"), &test_arena);
    struct lab_rows rows = LAB_ROWS(row_fields, some_rows(), 3);
    lab_rows_set_heat(panel, &rows, "device", "node", "change", "Change [%]", &test_arena);
    assert_int_equal(panel->x.name_count, 2);
    assert_int_equal(panel->y.name_count, 2);
    assert_string_equal(panel->heat->texts[0], "−12.5");
    assert_string_equal(panel->heat->texts[1], "≤0.8");
    assert_string_equal(panel->heat->texts[2], "−2.0?");
    assert_true(isnan(panel->heat->values[3]));
    assert_true(panel->heat->open[2] && !panel->heat->open[0] && !panel->heat->open[1]);
    assert_true(fabs(panel->heat->low[0] + 13) < 1e-9 && isnan(panel->heat->low[3]));
    assert_contains(panel->heat->tips[0], "-12.5% [-13.0, ");
    assert_contains(panel->heat->tips[0], " runs");
}
