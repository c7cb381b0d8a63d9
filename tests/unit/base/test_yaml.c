/* test_yaml.c: YAML as Hydra's users write it, its limits, and writing it. */
#include "base/random.h"
#include "base/yaml/yaml.h"

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
    ASSERT_OK(
        lab_yaml_parse(text, strlen(text), "f.yaml", LAB_YAML_LIMITS, &test_arena, &value, err));
    return value;
}

static void refuses_bytes(const char *text, size_t length, struct lab_yaml_limits limits,
                          const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    assert_int_equal(lab_yaml_parse(text, length, "f.yaml", limits, &test_arena, &value, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_null(value);
    assert_contains(err.text, expected);
}

static void refuses(const char *text, const char *expected) {
    refuses_bytes(text, strlen(text), LAB_YAML_LIMITS, expected);
}

/* The document in the value grammar, which shows the types. */
static void reads(const char *text, const char *expected) {
    lab_str_clear(&out);
    lab_value_write(parse(text), &out);
    assert_string_equal(out.text, expected);
}

LAB_TEST(plain_scalars) {
    reads("[1, -2, +3, 0, 1_000, 0x1F, 0o17, 0b101, -0x10]", "[1,-2,3,0,1000,31,15,5,-16]");
    reads("[1e-3, .5, 5., 1.5e3, -2E+2, 1_0.5]", "[0.001,0.5,5.0,1500.0,-200.0,10.5]");
    reads("[.inf, -.INF, +.Inf, .nan, .NaN]", "[inf,-inf,inf,nan,nan]");
    reads("[null, ~, Null, true, False, TRUE]", "[null,null,null,true,false,true]");
    reads("{a: , b: ''}", "{a:null,b:''}");
    /* what YAML 1.1 would make something else of */
    reads("[yes, no, on, Off, y, n]", "[yes,no,on,Off,y,n]");
    reads("[007, 1:30, 2024-01-01, inf, nan, 1__0, 0x, 08, tRue]",
          "[007,1:30,2024-01-01,'inf','nan',1__0,0x,08,'tRue']");
    reads("['10', \"true\", '']", "['10','true','']");
    assert_true(parse("'10'")->quoted);
    refuses("a: 99999999999999999999", "f.yaml:1: 99999999999999999999 is too large");
    refuses("a:\n- 1e999", "f.yaml:2: 1e999 is too large");
}

LAB_TEST(tags) {
    reads("[!!str 10, !!int '10', !!float 3, !!bool 'true', !!null '', ! '5']",
          "['10',10,3.0,true,null,'5']");
    reads("!!map {a: !!seq [1]}", "{a:[1]}");
    refuses("a: !!int x", "f.yaml:1: 'x' doesn't match its tag");
    refuses("a: !python/object x", "f.yaml:1: unknown tag '!python/object'");
    refuses("a: !!set {x}", "unknown tag");
}

LAB_TEST(trees_know_their_places) {
    const struct lab_value *map = parse("# study\nname: x\naxes:\n  - {depth: 2}\n  - b\n");
    assert_string_equal(map->keys[0], "name");
    const struct lab_value *axes = lab_value_get(map, "axes");
    assert_int_equal(axes->items[1]->line, 5);
    assert_int_equal(axes->items[1]->column, 5);
    assert_string_equal(axes->items[1]->origin, "f.yaml");
    assert_int_equal(lab_value_get(axes->items[0], "depth")->line, 4);
}

LAB_TEST(empty_documents_are_null) {
    reads("", "null");
    reads("# only a comment\n", "null");
    reads("---\n", "null");
    reads("--- x\n...\n", "x");
}

LAB_TEST(anchors_and_merges) {
    reads("a: &x [1, {b: 2}]\nc: *x\n", "{a:[1,{b:2}],c:[1,{b:2}]}");
    reads("base: &b {p: 1, q: 2}\nmine:\n  <<: *b\n  q: 3\n", "{base:{p:1,q:2},mine:{q:3,p:1}}");
    reads("- &a {p: 1}\n- &b {p: 2, q: 2}\n- {<<: [*a, *b]}\n", "[{p:1},{p:2,q:2},{p:1,q:2}]");
    reads("- &x 1\n- *x\n- &x 2\n- *x\n", "[1,1,2,2]");
    refuses("a: *nowhere\n", "f.yaml:1: '*nowhere' names no anchor before it");
    refuses("a: &x [1, *x]\n", "f.yaml:1: '*x' refers to itself");
    refuses("a: {<<: 5}\n", "'<<' takes a map");
    refuses("a: {<<: [5]}\n", "'<<' takes a map");
}

LAB_TEST(mistakes_name_their_line) {
    refuses("a: 1\nb: 2\na: 3\n", "f.yaml:3: duplicate key 'a'");
    refuses("a: 1\n b: 2\n", "f.yaml:2: invalid YAML");
    refuses("a: [1,\n", "f.yaml:");
    refuses("a: 1\n---\nb: 2\n", "f.yaml:2: a second document begins here");
    refuses("[a]: 1\n", "f.yaml:1: a key must be plain text");
    refuses("a: \"x\\0y\"\n", "f.yaml:1: text with a NUL character");
    refuses("\tx: 1\n", "f.yaml:1: invalid YAML");
}

LAB_TEST(bytes_that_are_no_text) {
    refuses_bytes("a: 1\nb: \xff\n", 10, LAB_YAML_LIMITS,
                  "f.yaml:2: invalid YAML: the byte 0xff isn't UTF-8");
    refuses_bytes("\x7f"
                  "ELF\0\0",
                  6, LAB_YAML_LIMITS, "f.yaml:1: invalid YAML: the byte 0x00");
    refuses_bytes("\xff\xfe"
                  "a\0",
                  4, LAB_YAML_LIMITS, "the byte 0xff isn't UTF-8");
    refuses("a: \x01\n", "f.yaml:1: invalid YAML: control characters are not allowed");
    reads("\xef\xbb\xbf"
          "a: µ\n",
          "{a:µ}");
}

LAB_TEST(a_bomb_ends_in_an_error) {
    lab_str_add(&out, "a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 12; i++)
        lab_str_printf(&out, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i,
                       i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    refuses(lab_arena_strdup(&test_arena, out.text), "too many values: at most 1000000");
}

LAB_TEST(limits_are_kept) {
    refuses_bytes("abcdef", 6, (struct lab_yaml_limits){5, 100, 10},
                  "f.yaml is too large: 6 bytes, at most 5");
    refuses_bytes("[1,2,3]", 7, (struct lab_yaml_limits){100, 3, 10}, "too many values: at most 3");
    refuses_bytes("[[[1]]]", 7, (struct lab_yaml_limits){100, 100, 2},
                  "nested deeper than 2 levels");
    char deep[3000];
    memset(deep, '[', sizeof deep);
    refuses_bytes(deep, sizeof deep, LAB_YAML_LIMITS, "f.yaml:1: nested deeper than 64 levels");
}

LAB_TEST(writing) {
    struct lab_value *value = NULL;
    ASSERT_OK(lab_value_parse("{name:vit,list:[1,'1',2.0,null,true,yes],empty:[],none:{},"
                              "deep:{x:[{a:1,b:2}]},'a: b':inf,text:'two: words'}",
                              &test_arena, &value, err));
    lab_yaml_write(value, &out);
    assert_string_equal(out.text, "name: vit\n"
                                  "list:\n"
                                  "- 1\n"
                                  "- '1'\n"
                                  "- 2.0\n"
                                  "- null\n"
                                  "- true\n"
                                  "- yes\n"
                                  "empty: []\n"
                                  "none: {}\n"
                                  "deep:\n"
                                  "  x:\n"
                                  "  - a: 1\n"
                                  "    b: 2\n"
                                  "'a: b': .inf\n"
                                  "text: 'two: words'\n");
    assert_true(lab_value_equal(parse(out.text), value));
}

/* Text made of what YAML finds hard, as value and as key, at every depth. */
static const char *draw_text(uint64_t seed, uint64_t *index) {
    static const char *const pieces[] = {
        "\n",   " ",   "\t", ":", "#",  "-", "'",  "\"",       "\\",           "&a",
        "*a",   "!",   "|",  ">", "%",  "@", "~",  "1",        ".5",           "a",
        "é",    "[",   "}",  ",", "\r", "?", "<<", "\xc2\x85", "\xe2\x80\xa8", "\xef\xbb\xbf",
        "\x01", "null"};
    LAB_AUTO(str, text);
    for (uint64_t n = lab_random_below(seed, (*index)++, 6); n > 0; n--)
        lab_str_add(&text,
                    pieces[lab_random_below(seed, (*index)++, sizeof pieces / sizeof pieces[0])]);
    const char *copy = lab_arena_strdup(&test_arena, text.text);
    return copy;
}

LAB_TEST(what_is_written_reads_back_the_same) {
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint64_t index = 0;
        struct lab_value *map = lab_value_map(&test_arena), *list = lab_value_list(&test_arena);
        for (int i = 0; i < 3; i++) {
            lab_value_set_string(&test_arena, map, draw_text(seed, &index),
                                 draw_text(seed, &index));
            lab_value_append(&test_arena, list,
                             lab_value_string(&test_arena, draw_text(seed, &index)));
        }
        lab_value_set(&test_arena, map, "list", list);
        lab_value_set_float(&test_arena, map, "x", lab_random_uniform(seed, index++) * 1e9);
        lab_str_clear(&out);
        lab_yaml_write(map, &out);
        if (!lab_value_equal(map, parse(out.text)))
            fail_msg("seed %d:\n%s", (int)seed, out.text);
    }
}

LAB_TEST(bytes_that_are_no_utf8_are_replaced) {
    lab_yaml_write(lab_value_string(&test_arena, "a\xff"), &out);
    assert_string_equal(parse(out.text)->string, "a\xef\xbf\xbd");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
