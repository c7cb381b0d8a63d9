/* test_value.c: the value grammar by example, and that writing and reading are inverse. */
#include "base/random.h"
#include "base/value.h"
#include "base/value_text.h"

#include "test.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct lab_value *parse(const char *text) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    if (lab_value_parse(text, &test_arena, &value, &err) < 0)
        fail_msg("'%s': %s", text, err.text);
    return value;
}

static void reads_string(const char *text, const char *expected) {
    const struct lab_value *value = parse(text);
    assert_int_equal(value->type, LAB_VALUE_STRING);
    assert_string_equal(value->string, expected);
}

static void reads_int(const char *text, int64_t expected) {
    const struct lab_value *value = parse(text);
    assert_int_equal(value->type, LAB_VALUE_INT);
    assert_true(value->integer == expected);
}

static void reads_float(const char *text, double expected) {
    const struct lab_value *value = parse(text);
    assert_int_equal(value->type, LAB_VALUE_FLOAT);
    assert_true(value->number == expected || (isnan(expected) && isnan(value->number)));
}

static void refuses(const char *text, const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    if (lab_value_parse(text, &test_arena, &value, &err) == 0)
        fail_msg("'%s' was taken", text);
    assert_null(value);
    assert_int_equal(err.code, LAB_ERR_USER);
    if (!strstr(err.text, expected))
        fail_msg("'%s': '%s' lacks '%s'", text, err.text, expected);
}

/* The canonical text that a text is written back as. */
static void is_written(const char *text, const char *expected) {
    LAB_AUTO(str, out);
    lab_value_write(parse(text), &out);
    assert_string_equal(out.text, expected);
}

LAB_TEST(numbers) {
    reads_int("3", 3);
    reads_int(" 3 ", 3);
    reads_int("+1", 1);
    reads_int("-20", -20);
    reads_int("0", 0);
    reads_int("1_000", 1000);
    reads_int("9223372036854775807", INT64_MAX);
    reads_int("-9223372036854775808", INT64_MIN);
    reads_float(".5", .5);
    reads_float("5.", 5);
    reads_float("-0.25", -.25);
    reads_float("1e-3", 1e-3);
    reads_float("1E3", 1000);
    reads_float("1_0.5_0", 10.5);
    reads_float("inf", INFINITY);
    reads_float("+Inf", INFINITY);
    reads_float("-INF", -INFINITY);
    reads_float("nan", NAN);
    reads_float("1e-400", 0);
    refuses("9223372036854775808", "too large");
    refuses("1e400", "too large");
}

LAB_TEST(several_tokens_join_to_a_string) {
    static const char *const texts[] = {"10abc", "007",  "1__0", "1_",      "_1",    "1 2",  "1e",
                                        "e3",    "+",    "-",    ".",       "1.2.3", "0x10", "00",
                                        "--1",   "infx", "1:30", "nan nan", "1-2",   "+-1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        reads_string(texts[i], texts[i]);
}

LAB_TEST(constants_in_any_case) {
    static const char *const nulls[] = {"null", "NULL", "Null", " nUlL"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        assert_int_equal(parse(nulls[i])->type, LAB_VALUE_NULL);
    assert_int_equal(parse("true")->type, LAB_VALUE_BOOL);
    assert_true(parse("TrUe")->boolean);
    assert_false(parse("False")->boolean);
    reads_string("none", "none");
    reads_string("yes", "yes");
    reads_string("true story", "true story");
}

LAB_TEST(unquoted_text) {
    reads_string("", "");
    reads_string("  ", "");
    reads_string("fp32", "fp32");
    reads_string("  a b  c\t", "a b  c");
    reads_string("/data/x-1.yaml", "/data/x-1.yaml");
    reads_string("a:b/c@d?e|f%g*h+i$j", "a:b/c@d?e|f%g*h+i$j");
    reads_string("c:\\foo", "c:\\foo");
    reads_string("größe", "größe");
    refuses("a#b", "column 2: '#'");
    refuses("a=b", "column 2: '='");
    refuses("größe=1", "column 6: '='");
    refuses("a'b'", "column 2");
    refuses("a;b", "column 2: ';' needs quotes");
    refuses("a\nb", "0x0a");
    refuses("a]", "']' needs quotes or a backslash");
    refuses("x{y", "'{'");
    refuses("range(5)", "run -m");
}

LAB_TEST(escapes) {
    reads_string("a\\,b", "a,b");
    reads_string("\\(\\)\\[\\]\\{\\}\\:\\=\\,\\\\", "()[]{}:=,\\");
    reads_string("\\ a\\ ", " a ");
    reads_string("\\n\\t", "\\n\\t"); /* no others */
    /* an escape makes a string of what would be a number */
    reads_string("1\\ ", "1 ");
}

LAB_TEST(quotes) {
    reads_string("'10'", "10");
    assert_true(parse("'10'")->quoted);
    assert_false(parse("ten")->quoted);
    reads_string("\"null\"", "null");
    reads_string("''", "");
    reads_string("' a, b=c #d '", " a, b=c #d ");
    reads_string("'it\\'s'", "it's");
    reads_string("\"it's\"", "it's");
    reads_string("\"say \\\"hi\\\"\"", "say \"hi\"");
    reads_string("'a\\\\b\\n'", "a\\\\b\\n");
    reads_string("'end\\\\'", "end\\");
    reads_string("'\\\\\\''", "\\'");
    refuses("'open", "column 1: the quote (') is never closed");
    refuses("'open\\'", "never closed");
    refuses("'a' b", "text after the end of a quoted string");
}

LAB_TEST(interpolations_stay_as_they_are) {
    reads_string("${a.b}", "${a.b}");
    reads_string("x_${oc.env:USER,'}'}/y", "x_${oc.env:USER,'}'}/y");
    reads_string("${a:${b},{c}}", "${a:${b},{c}}");
    const struct lab_value *list = parse("[${a,b},2]");
    assert_int_equal(list->count, 2);
    assert_string_equal(list->items[0]->string, "${a,b}");
    refuses("x${a", "column 2: '${' without its '}'");
}

LAB_TEST(lists) {
    const struct lab_value *list = parse("[a, [1,2] ,'x,y', null]");
    assert_int_equal(list->type, LAB_VALUE_LIST);
    assert_int_equal(list->count, 4);
    assert_string_equal(list->items[0]->string, "a");
    assert_int_equal(list->items[1]->count, 2);
    assert_int_equal(list->items[1]->items[1]->integer, 2);
    assert_string_equal(list->items[2]->string, "x,y");
    assert_int_equal(list->items[3]->type, LAB_VALUE_NULL);
    assert_int_equal(list->items[1]->column, 5);
    assert_int_equal(parse("[ ]")->count, 0);
    assert_string_equal(parse("[a:b]")->items[0]->string, "a:b");
    refuses("[a", "column 1: '[' without its ']'");
    refuses("[a,]", "column 4: a value is missing before ']'");
    refuses("[,a]", "a value is missing before ','");
    refuses("[a}", "'}' where ',' or ']' belongs");
    refuses("[a]b", "text after the end of a list");
    refuses("]", "']'");
}

LAB_TEST(maps) {
    const struct lab_value *map = parse("{a:10, b : {c:1}, 'x y':[], d:p:q, 5:six}");
    assert_int_equal(map->type, LAB_VALUE_MAP);
    assert_int_equal(map->count, 5);
    assert_int_equal(lab_value_get(map, "a")->integer, 10);
    assert_int_equal(lab_value_get(lab_value_get(map, "b"), "c")->integer, 1);
    assert_int_equal(lab_value_get(map, "x y")->type, LAB_VALUE_LIST);
    assert_string_equal(lab_value_get(map, "d")->string, "p:q");
    assert_string_equal(lab_value_get(map, "5")->string, "six");
    assert_null(lab_value_get(map, "z"));
    assert_null(lab_value_get(NULL, "z"));
    assert_null(lab_value_get(lab_value_get(map, "a"), "z"));
    assert_int_equal(parse("{}")->count, 0);
    refuses("{a}", "':' and a value belong after the key 'a'");
    refuses("{a:}", "a value is missing before '}'");
    refuses("{:1}", "a key is missing");
    refuses("{a:1,a:2}", "duplicate key 'a'");
    refuses("{a:1", "'{' without its '}'");
    refuses("{a:1]", "']' where ',' or '}' belongs");
}

LAB_TEST(a_bare_comma_is_a_sweep) {
    refuses("a,b", "column 2: a comma outside of brackets makes a sweep, which needs `run -m`;"
                   " a string with a comma needs quotes");
    refuses("[a],[b]", "run -m");
    refuses("'a','b'", "run -m");
    refuses(",", "run -m");
}

LAB_TEST(elements_one_by_one) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    struct lab_value_text text;
    lab_value_text_init(&text, "f (ä , [1,2]) x", &test_arena, &err);
    assert_int_equal(lab_value_text_at_call(&text), 1);
    text.at = 3;
    assert_int_equal(lab_value_text_at_call(&text), 0);
    assert_int_equal(lab_value_text_read(&text, ",)", &value), 0);
    assert_string_equal(value->string, "ä");
    assert_int_equal(text.text[text.at++], ',');
    assert_int_equal(lab_value_text_read(&text, ",)", &value), 0);
    assert_int_equal(value->count, 2);
    assert_int_equal(value->column, 8);
    assert_int_equal(text.text[text.at], ')');
    /* what ends an element in one place is an error in another */
    text.at = 3;
    value = NULL;
    assert_int_equal(lab_value_text_read(&text, ")", &value), -1);
    assert_contains(err.text, "column 6: ");
    assert_null(value);
    lab_value_text_release(&text);
}

static int read_x_of_nothing(struct lab_value_text *text, struct lab_value **ret_value) {
    assert_int_equal(lab_value_text_at_call(text), 1);
    *ret_value = lab_value_string(text->arena, "called");
    text->at += 3;
    return 0;
}

LAB_TEST(calls_inside_of_brackets) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    struct lab_value_text text;
    lab_value_text_init(&text, "[x(), {a:x()}, x]", &test_arena, &err);
    text.call = read_x_of_nothing;
    assert_int_equal(lab_value_text_read(&text, "", &value), 0);
    assert_true(lab_value_equal(value, parse("[called,{a:called},x]")));
    assert_int_equal(value->items[1]->items[0]->column, 10);
    lab_value_text_release(&text);
}

LAB_TEST(nesting_is_bounded) {
    char deep[4001];
    memset(deep, '[', 4000);
    deep[4000] = '\0';
    refuses(deep, "brackets nest deeper than 64");
}

LAB_TEST(writing) {
    is_written("{a:1,b:[x y,'1',\"it's\",.5,1.,null,TRUE]}",
               "{a:1,b:[x y,'1','it\\'s',0.5,1.0,null,true]}");
    is_written("''", "''");
    is_written("\\ x", "' x'");
    is_written("-inf", "-inf");
    is_written("{'a:b':c:d}", "{'a:b':c:d}");
    is_written("'\\\\'", "'\\\\'");
}

LAB_TEST(a_key_set_again_keeps_its_place) {
    struct lab_value *map = lab_value_map(&test_arena);
    lab_value_set_int(&test_arena, map, "a", 1);
    lab_value_set_string(&test_arena, map, "b", NULL);
    lab_value_set_float(&test_arena, map, "c", NAN);
    lab_value_set_bool(&test_arena, map, "a", true);
    assert_int_equal(map->count, 3);
    assert_string_equal(map->keys[0], "a");
    assert_int_equal(map->items[0]->type, LAB_VALUE_BOOL);
    assert_int_equal(map->items[1]->type, LAB_VALUE_NULL);
    assert_int_equal(map->items[2]->type, LAB_VALUE_NULL);
}

LAB_TEST(a_large_map_finds_all_its_keys) {
    struct lab_value *map = lab_value_map(&test_arena);
    char key[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(key, sizeof key, "key%d", i);
            lab_value_set_int(&test_arena, map, key, i + round);
        }
    assert_int_equal(map->count, 5000);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_string_equal(map->keys[i], key);
        assert_int_equal(lab_value_get(map, key)->integer, i + 1);
    }
    assert_null(lab_value_get(map, "key5000"));
}

struct source {
    uint64_t seed, index;
};

static uint64_t draw(struct source *source, uint64_t bound) {
    return lab_random_below(source->seed, source->index++, bound);
}

/* Text made of what the grammar finds hard. */
static const char *draw_text(struct source *source) {
    static const char *const pieces[] = {"\\", "'",  "\"", ",",    "[",   "}",  ":", "=",
                                         " ",  "${", "1",  "null", "inf", "a",  "é", "#",
                                         "\n", "\t", ".",  "-",    "e3",  "_9", "(", "\x01"};
    LAB_AUTO(str, text);
    for (uint64_t n = draw(source, 6); n > 0; n--)
        lab_str_add(&text, pieces[draw(source, sizeof pieces / sizeof pieces[0])]);
    const char *copy = lab_arena_strdup(&test_arena, text.text);
    return copy;
}

static struct lab_value *draw_tree(struct source *source, int depth) {
    uint64_t kind = draw(source, depth > 0 ? 7 : 5);
    struct lab_value *value;
    switch (kind) {
    case 0:
        return lab_value_null(&test_arena);
    case 1:
        return lab_value_bool(&test_arena, draw(source, 2));
    case 2:
        return lab_value_int(&test_arena, (int64_t)lab_random_bits(source->seed, source->index++) >>
                                              draw(source, 64));
    case 3: {
        uint64_t bits = lab_random_bits(source->seed, source->index++);
        double number;
        memcpy(&number, &bits, sizeof number);
        return lab_value_float(&test_arena, number);
    }
    case 4:
        return lab_value_string(&test_arena, draw_text(source));
    case 5:
        value = lab_value_list(&test_arena);
        break;
    default:
        value = lab_value_map(&test_arena);
    }
    for (uint64_t n = draw(source, 5); n > 0; n--) {
        struct lab_value *item = draw_tree(source, depth - 1);
        if (kind == 5)
            lab_value_append(&test_arena, value, item);
        else
            lab_value_set(&test_arena, value, draw_text(source), item);
    }
    return value;
}

LAB_TEST(what_is_written_reads_back_the_same) {
    LAB_AUTO(str, out);
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct source source = {seed, 0};
        const struct lab_value *tree = draw_tree(&source, 4);
        lab_str_clear(&out);
        lab_value_write(tree, &out);
        if (!lab_value_equal(tree, parse(out.text)))
            fail_msg("seed %d: %s", (int)seed, out.text);
    }
}

LAB_TEST(equality_tells_differences) {
    static const char *const different[] = {"1",     "1.0",   "'1'",       "null",      "[1]",
                                            "[1,2]", "[2,1]", "{a:1,b:2}", "{b:2,a:1}", "{a:1}",
                                            "true",  "{}",    "[]",        "''"};
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++)
        for (size_t j = 0; j < sizeof different / sizeof different[0]; j++)
            assert_int_equal(lab_value_equal(parse(different[i]), parse(different[j])), i == j);
    assert_true(lab_value_equal(parse("nan"), parse("nan")));
}
