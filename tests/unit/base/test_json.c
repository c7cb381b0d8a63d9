/* test_json.c: JSON in and out. */
#include "base/json.h"

#include "test.h"
#include <math.h>
#include <string.h>

static struct lab_str out;

static int set_up(void **state) {
    (void)state;
    lab_str_init(&out);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_str_release(&out);
    return 0;
}

static const struct lab_value *parse(const char *text) {
    struct lab_value *value = NULL;
    ASSERT_OK(lab_json_parse(text, strlen(text), "f.json", &test_arena, &value, err));
    return value;
}

static void refuses(const char *text, size_t length, const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    assert_int_equal(lab_json_parse(text, length, "f.json", &test_arena, &value, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_null(value);
    assert_contains(err.text, expected);
}

static void is_written(const struct lab_value *value, int indent, const char *expected) {
    lab_str_clear(&out);
    lab_json_write(value, indent, &out);
    assert_string_equal(out.text, expected);
}

LAB_TEST(reading) {
    const struct lab_value *map =
        parse("{\"z\": 1, \"a\": [2.5, null, true, \"10\"], \"m\": {\"big\": 9007199254740993}}");
    assert_int_equal(map->type, LAB_VALUE_MAP);
    assert_string_equal(map->keys[0], "z"); /* order is kept */
    assert_int_equal(map->items[0]->integer, 1);
    assert_string_equal(map->items[0]->origin, "f.json");
    const struct lab_value *list = lab_value_get(map, "a");
    assert_true(list->items[0]->number == 2.5);
    assert_int_equal(list->items[1]->type, LAB_VALUE_NULL);
    assert_true(list->items[2]->boolean);
    assert_int_equal(list->items[3]->type, LAB_VALUE_STRING);
    assert_true(list->items[3]->quoted);
    assert_true(lab_value_get(lab_value_get(map, "m"), "big")->integer == 9007199254740993);
    assert_int_equal(parse("3")->integer, 3);
    assert_string_equal(parse("\"\\u00b5s \\\"\"")->string, "µs \"");
}

LAB_TEST(what_is_no_json) {
    refuses("{\"a\": 1,\n \"b\" 2}", 16, "f.json:2: invalid JSON: ':' expected");
    refuses("", 0, "f.json:1: invalid JSON");
    refuses("[1] x", 5, "end of file expected");
    refuses("{\"a\":1,\"a\":2}", 13, "duplicate object key");
    refuses("[\"\xff\"]", 5, "0xff");
    refuses("\"\\u0000\"", 8, "\\u0000");
    refuses("[1\0]", 4, "f.json: invalid JSON: NUL bytes");
    refuses("99999999999999999999", 20, "too big integer");
    char deep[5000];
    memset(deep, '[', sizeof deep);
    refuses(deep, sizeof deep, "maximum parsing depth");
}

LAB_TEST(writing_on_one_line_and_indented) {
    const struct lab_value *map = parse("{\"a\":[1,2.0,[]],\"b\":{},\"c\":{\"d\":null}}");
    is_written(map, 0, "{\"a\": [1, 2.0, []], \"b\": {}, \"c\": {\"d\": null}}");
    is_written(map, 2,
               "{\n  \"a\": [\n    1,\n    2.0,\n    []\n  ],\n  \"b\": {},\n  \"c\": {\n"
               "    \"d\": null\n  }\n}");
}

LAB_TEST(what_json_lacks) {
    is_written(lab_value_float(&test_arena, NAN), 0, "null");
    is_written(lab_value_float(&test_arena, -INFINITY), 0, "null");
    is_written(lab_value_float(&test_arena, 0.1), 0, "0.1");
    is_written(lab_value_int(&test_arena, INT64_MIN), 0, "-9223372036854775808");
    is_written(lab_value_string(&test_arena, "a\"b\\c\n\t\x01\x7f µ"), 0,
               "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f µ\"");
    is_written(lab_value_string(&test_arena, "x\xffµ\xc2"), 0, "\"x\xef\xbf\xbdµ\xef\xbf\xbd\"");
}

LAB_TEST(written_numbers_read_back_the_same) {
    static const double numbers[] = {0.1, 1.0 / 3, 1e308, 5e-324, -0.0, 123456789.125};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct lab_value *value = lab_value_float(&test_arena, numbers[i]);
        lab_str_clear(&out);
        lab_json_write(value, 0, &out);
        assert_true(lab_value_equal(parse(out.text), value));
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
