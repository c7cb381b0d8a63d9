/* test_result.c: results as bytes and as JSON, the table that both walk, and bytes that lie. */
#include "unit/result_fixture.h"

#include "base/json.h"

#include "test.h"

static struct lab_arena arena;
static struct lab_err err;

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_arena_release(&arena);
    return 0;
}

static void assert_same(const struct lab_result *a, const struct lab_result *b, bool strict) {
    const char *key = result_unequal(a, b, strict);
    if (key)
        fail_msg("they differ in %s", key);
}

/* --- the table --- */

LAB_TEST(keys_are_distinct_and_explained) {
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++) {
        const struct lab_result_row *row = &lab_result_rows[i];
        assert_ptr_equal(lab_result_row(row->key), row);
        assert_true(*row->title && row->help && row->unit);
        assert_true(strlen(row->key) < 60);
        if (row->of == LAB_RESULT_OF_RANK)
            assert_true(row->place == 0 && row->combine != LAB_COMBINE_SUM);
        if (row->combine == LAB_COMBINE_PROCESS || row->combine == LAB_COMBINE_GPU_SUM ||
            row->combine == LAB_COMBINE_GPU_MIN || row->shown & 4)
            assert_int_equal(row->type, LAB_RESULT_NUMBER);
        if (row->combine == LAB_COMBINE_ALL || row->combine == LAB_COMBINE_ANY)
            assert_int_equal(row->type, LAB_RESULT_FLAG);
        assert_false(lab_result_has(&lab_result_none, row));
    }
    assert_null(lab_result_row("no_such_key"));
}

LAB_TEST(places_ascend) {
    const struct lab_result_row *const *row = lab_result_order();
    assert_string_equal((*row)->key, "rate");
    for (; row[1]; row++)
        assert_true(row[0]->place < row[1]->place);
}

/* --- bytes --- */

LAB_TEST(a_result_comes_back_from_bytes) {
    const struct lab_result *full = result_full(0, &arena);
    LAB_AUTO(str, bytes);
    struct lab_result back;
    lab_result_pack(full, 1 << 20, &bytes);
    if (lab_result_unpack(bytes.text, bytes.length, &arena, &back, &err) < 0)
        fail_msg("%s", err.text);
    assert_same(full, &back, true);
    lab_str_clear(&bytes);
    lab_result_pack(&lab_result_none, 1 << 20, &bytes);
    assert_int_equal(bytes.length, 2);
    assert_int_equal(lab_result_unpack(bytes.text, bytes.length, &arena, &back, &err), 0);
    assert_same(&lab_result_none, &back, true);
}

LAB_TEST(what_does_not_fit_is_left_out) {
    struct lab_result result = lab_result_none, back;
    char *large = lab_arena_alloc(&arena, 5001, 1);
    memset(large, '1', 5000);
    result.tuning = large;
    result.rate = 12.5;
    result.device = "cpu:\xff";
    result.gang_overlap = INFINITY;
    LAB_AUTO(str, bytes);
    lab_result_pack(&result, 4000, &bytes);
    assert_true(bytes.length <= 4000);
    assert_int_equal(lab_result_unpack(bytes.text, bytes.length, &arena, &back, &err), 0);
    assert_null(back.tuning);
    assert_true(back.rate == 12.5 && isnan(back.gang_overlap));
    assert_string_equal(back.device, "cpu:?");
}

/* A newer worker may know more: of values, of what lists hold, of lists. */
LAB_TEST(unknown_keys_are_skipped) {
    static const char bytes[] = "\6\0new_number\0n\0\0\0\0\0\0\xf0\x7f"
                                "new_text\0tsaid\0new_flag\0f\1"
                                "new_list\0l\2\0\0\0\1\0inner\0l\1\0\0\0\0\0\0\0"
                                "rate\0n\0\0\0\0\0\0\x59\x40"
                                "warnings\0l\1\0\0\0\2\0severity\0c\1\0\0\0\0\0\0\0text\0thot\0";
    struct lab_result back;
    if (lab_result_unpack(bytes, sizeof bytes - 1, &arena, &back, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(back.rate == 100);
    assert_int_equal(back.warnings.count, 1);
    assert_string_equal(back.warnings.items[0].text, "hot");
}

#define REFUSED(bytes, gist)                                                                       \
    do {                                                                                           \
        struct lab_result back;                                                                    \
        err = LAB_ERR_INIT;                                                                        \
        assert_int_equal(lab_result_unpack(bytes, sizeof bytes - 1, &arena, &back, &err), -1);     \
        assert_int_equal(err.code, LAB_ERR_SYSTEM);                                                \
        if (!strstr(err.text, gist))                                                               \
            fail_msg("'%s' doesn't say '%s'", err.text, gist);                                     \
    } while (0)

LAB_TEST(lies_are_refused) {
    REFUSED("", "ends within a value");
    REFUSED("\1\0", "a text has no end");
    REFUSED("\1\0rate", "a text has no end");
    REFUSED("\1\0rate\0", "ends within a value");
    REFUSED("\1\0rate\0n1234567", "ends within a value");
    REFUSED("\1\0rate\0n\0\0\0\0\0\0\xf8\x7f", "its rate isn't finite");
    REFUSED("\1\0rate\0tfast\0", "its rate is a text, not a number");
    REFUSED("\1\0rate\0c12345678", "its rate is a whole number, not a number");
    REFUSED("\1\0device\0tcpu", "a text has no end");
    REFUSED("\1\0device\0t\xed\xa0\x80\0", "isn't UTF-8");
    REFUSED("\1\0dev\xff\0t\0", "isn't UTF-8");
    REFUSED("\1\0tuning\0j{\0", "its tuning:1: invalid JSON");
    REFUSED("\1\0rate\0x", "a value of type 120");
    REFUSED("\1\0rate\0\0", "a value of type 0");
    REFUSED("\0\0more", "4 bytes too many");
    REFUSED("\1\0warnings\0l\xff\xff\xff\xff", "a list of 4294967295 items");
    REFUSED("\1\0warnings\0l\2\0\0\0\0\0", "ends within a value");
    REFUSED("\2\0xids\0l\0\0\0\0gpu.xids\0l\1\0\0\0\1\0number\0t5\0", "a text, not a whole number");
    REFUSED("\2\0warnings\0l\1\0\0\0\0\0warnings\0l\1\0\0\0\0\0", "came twice");
    REFUSED("\1\0a\0l\1\0\0\0\1\0a\0l\1\0\0\0\1\0a\0l\1\0\0\0\1\0a\0l\1\0\0\0\1\0a\0l\1\0\0\0\0\0",
            "in 4 lists");
}

/* --- JSON --- */

static struct lab_value *through_text(const struct lab_value *value) {
    LAB_AUTO(str, text);
    struct lab_value *again;
    lab_json_write(value, 0, &text);
    if (lab_json_parse(text.text, text.length, "it", &arena, &again, &err) < 0)
        fail_msg("%s", err.text);
    return again;
}

LAB_TEST(a_result_comes_back_from_json) {
    const struct lab_result *full = result_full(2, &arena);
    struct lab_value *map = lab_result_value(full, LAB_RESULT_RUN_VIEW, NULL, &arena);
    struct lab_value *ranks = lab_value_list(&arena);
    for (int i = 0; i < 2; i++)
        lab_value_append(&arena, ranks,
                         lab_result_value(&full->ranks[i], LAB_RESULT_RANK_VIEW, NULL, &arena));
    lab_value_set(&arena, map, "ranks", ranks);
    assert_same(full, lab_result_read(through_text(map), &arena), false);
}

static const char *json_of(const struct lab_result *result, enum lab_result_view view) {
    LAB_AUTO(str, text);
    lab_json_write(lab_result_value(result, view, NULL, &arena), 0, &text);
    return lab_arena_strdup(&arena, text.text);
}

static void assert_holds(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' isn't in %s", part, text);
}

/* What is absent is null, or not there at all; so are objects. */
LAB_TEST(absence_reads_as_it_always_did) {
    struct lab_result result = lab_result_none;
    result.iterations = 3;
    result.conditions_steal = 0;
    const char *rank = json_of(&result, LAB_RESULT_RANK_VIEW);
    assert_holds(rank,
                 "{\"device\": null, \"numa_node\": null, \"device_node\": null, \"distance\": "
                 "null, \"iterations\": 3,");
    assert_holds(rank, "\"latency_ms\": {\"mean\": null, \"median\": null,");
    assert_holds(rank, "\"verification\": null, \"placement_proven\": null");
    assert_holds(rank, "\"steal\": 0.0");
    assert_holds(rank, "\"warnings\": [], \"invalid\": [], \"trace\": null}");
    result.whole_gpu = false;
    result.power_w = 70;
    *LAB_RESULT_ADD(&result, throttled_s, &arena) = (struct lab_result_throttle){"hw_thermal", 1.5};
    LAB_RESULT_ADD(&result, foreign_processes, &arena)->pid = 7;
    rank = json_of(&result, LAB_RESULT_RANK_VIEW);
    assert_holds(rank, "\"gpu\": {\"energy_j\": null, \"power_w\": 70.0,");
    assert_holds(rank,
                 "\"whole_gpu\": false, \"throttled_s\": {\"hw_thermal\": 1.5}, \"xids\": [], "
                 "\"foreign_processes\": [{\"pid\": 7, \"name\": null, \"user\": null, "
                 "\"memory_mb\": null}]}}");
    const char *file = json_of(&result, LAB_RESULT_FILE_VIEW);
    assert_holds(file, "\"energy_j\": null, \"power_w\": 70.0, \"gpu_memory_peak_mb\": null,");
    assert_holds(file, "\"throttled_s\": {\"hw_thermal\": 1.5}, \"foreign_processes\": [{");
    assert_null(strstr(file, "forward_ms"));
    assert_holds(json_of(&lab_result_none, LAB_RESULT_FILE_VIEW),
                 "\"latency_ms\": null, \"interval_ms\": null,");
}

/* A run's GPUs were watched, and held back by nothing. */
LAB_TEST(an_empty_list_of_gpus_is_no_null) {
    struct lab_result both[2] = {lab_result_none, lab_result_none};
    both[0].ranks = &both[1];
    both[0].rank_count = 1;
    assert_holds(json_of(both, LAB_RESULT_FILE_VIEW),
                 "\"throttled_s\": null, \"foreign_processes\": null");
    both[1].whole_gpu = false;
    assert_holds(json_of(both, LAB_RESULT_FILE_VIEW),
                 "\"throttled_s\": {}, \"foreign_processes\": []");
}

LAB_TEST(what_does_not_fit_its_type_is_absent) {
    const struct lab_result *result = result_from(
        "{\"rate\": \"fast\", \"iterations\": 1.5, \"device\": 7, \"latency_ms\": 3, \"steady\": 1,"
        " \"warnings\": {}, \"invalid\": [1, null, [\"x\"], \"a\"], \"throttled_s\": [], "
        "\"rate_low\":"
        " 2, \"ranks\": {}, \"conditions\": {\"steal\": null}}",
        &arena);
    assert_true(isnan(result->rate) && result->iterations == LAB_RESULT_NO_COUNT);
    assert_true(!result->device && isnan(result->latency_ms_mean));
    assert_int_equal(result->steady, LAB_RESULT_NO_FLAG);
    assert_true(result->rate_low == 2);
    assert_int_equal(result->warnings.count, 0);
    assert_int_equal(result->invalid.count, 4);
    assert_null(result->invalid.items[0].text);
    assert_string_equal(result->invalid.items[3].text, "a");
    assert_int_equal(result->rank_count, 0);
    assert_same(&lab_result_none, result_from("{\"rate\": 1e999}", &arena), true);
    assert_same(&lab_result_none, result_from("[1]", &arena), true);
    assert_same(&lab_result_none, result_from(NULL, &arena), true);
}

/* --- copies --- */

LAB_TEST(a_copy_outlives_the_original) {
    struct lab_arena scratch;
    lab_arena_init(&scratch);
    struct lab_result *first = result_full(2, &scratch);
    struct lab_result *copy = lab_result_copy(first, &arena);
    lab_arena_release(&scratch);
    assert_same(copy, result_full(2, &arena), true);
    lab_result_warn(copy, &arena, "one more");
    assert_int_equal(copy->warnings.count, 6);
    assert_string_equal(copy->warnings.items[5].text, "one more");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
