/* test_config_interpolation.c: `${…}` in configs and words, and what can go wrong with it. */
#include "config_fixture.h"

/* The key `x` of a config that ends in "x: <text>". */
static void becomes(const char *before, const char *text, const char *expected) {
    given_primary(lab_arena_printf(&arena, "%sx: %s\n", before, text));
    composes("", "x", expected);
}

static void fails(const char *text, const char *gist) {
    given_primary(text);
    refuses("", "test.yaml:", gist, NULL);
}

#define TREE "a: 1\nb: {c: 2.5, d: [10, 20], e: {f: words}}\n"

LAB_TEST(references) {
    becomes(TREE, "${a}", "1");
    becomes(TREE, "${b.c}", "2.5");
    becomes(TREE, "${b.d}", "[10,20]");
    becomes(TREE, "${b.d[1]}", "20");
    becomes(TREE, "${b.d.0}", "10");
    becomes(TREE, "${b.e}", "{f:words}");
    becomes(TREE, "'${ a }'", "1");
    becomes("t: null\n", "${t}", "null");
    becomes("t: '10'\n", "${t}", "'10'");
}

LAB_TEST(text_with_references) {
    becomes(TREE, "vit${a}x${b.c}", "vit1x2.5");
    becomes(TREE, "${a}${a}", "'11'");
    becomes(TREE, "' ${a}'", "' 1'");
    becomes("t: true\n", "is ${t}", "is true");
}

LAB_TEST(relative_references) {
    given_primary(
        "top: 1\nb: {c: 2, d: '${.c}', e: {f: '${..c}', g: '${...top}'}, l: ['${..c}']}\n");
    composes("", "b", "{c:2,d:2,e:{f:2,g:1},l:[2]}");
    fails("b: {c: '${....x}'}\n", "has more dots than there are levels above");
    /* each place has its own neighbours */
    given("g/one.yaml", "n: 1\nm: ${.n}\n");
    given_primary(
        "defaults: [g@p: one, g@q: one]\nq: {n: 2}\nlist: [{v: 1, w: 0}, {v: 2, w: 0}]\n");
    composes("list.w=${.v}", "", "{p:{n:1,m:1},q:{n:2,m:2},list:[{v:1,w:1},{v:2,w:2}]}");
}

LAB_TEST(references_to_references) {
    becomes("a: ${b}\nb: ${c}\nc: 7\n", "${a}", "7");
    becomes("which: b\nb: 3\n", "${${which}}", "3");
    becomes("which: b\nm: {b: 3}\n", "${m.${which}}", "3");
    becomes("m: ${n}\nn: {k: 4}\n", "${m.k}", "4");
    becomes("m: {k: '${n}'}\nn: {q: [5]}\n", "${m.k.q[0]}", "5");
}

LAB_TEST(environment) {
    setenv("LAB_TEST_NAME", "somebody", 1);
    unsetenv("LAB_TEST_NONE");
    becomes("", "${oc.env:LAB_TEST_NAME}", "somebody");
    becomes("", "hello ${oc.env:LAB_TEST_NAME,nobody}", "hello somebody");
    becomes("", "${oc.env:LAB_TEST_NONE,nobody}", "nobody");
    becomes("", "'${oc.env:LAB_TEST_NONE,''a, b''}'", "'a, b'");
    becomes("", "${oc.env:LAB_TEST_NONE,null}", "null");
    becomes("", "'${oc.env:LAB_TEST_NONE,}'", "''");
    becomes("a: 5\n", "${oc.env:LAB_TEST_NONE,${a}}", "'5'");
    becomes("a: LAB_TEST_NAME\n", "${oc.env:${a}}", "somebody");
    fails("x: ${oc.env:LAB_TEST_NONE}\n", "the environment variable LAB_TEST_NONE isn't set");
}

LAB_TEST(other_resolvers) {
    setenv("LAB_TEST_NUMBER", "[1, 2.5]", 1);
    becomes("", "${oc.decode:${oc.env:LAB_TEST_NUMBER}}", "[1,2.5]");
    becomes("a: 1\n", "${oc.select:a,2}", "1");
    becomes("a: 1\n", "${oc.select:b,2}", "2");
    becomes("a: 1\n", "${oc.select:b}", "null");
    given_primary("x: ${now:%Y-%m-%d}\ny: 'at ${now:%H:%M}'\n");
    struct lab_value *tree = compose("").tree;
    int year, month, day, hour, minute;
    assert_int_equal(sscanf(value_at(tree, "x")->string, "%4d-%2d-%2d", &year, &month, &day), 3);
    assert_true(year >= 2024 && month >= 1 && month <= 12 && day >= 1 && day <= 31);
    assert_int_equal(sscanf(value_at(tree, "y")->string, "at %2d:%2d", &hour, &minute), 2);
    fails("x: ${nowhere:1}\n", "there is no resolver 'nowhere'; there are oc.env, oc.select");
    fails("x: '${oc.env:a,b,c}'\n", "more than 2 arguments");
    fails("x: '${now:}'\n", "now takes one argument");
}

LAB_TEST(escapes) {
    becomes(TREE, "\\${a}", "'${a}'");
    becomes(TREE, "\\\\${a}", "'\\1'");
    becomes(TREE, "c:\\dir\\${a}", "'c:\\dir${a}'");
    becomes("m: ${n}\nn: {k: '\\${a}'}\n", "${m.k}", "'${a}'");
}

LAB_TEST(words_interpolate) {
    composes("experiment.test.batch_size=${seed}", "experiment.test.batch_size", "42");
    composes("+list=[1,${seed}]", "list", "[1,42]");
    composes("experiment.name=s${seed}", "experiment.name", "s42");
    composes("experiment.name=a experiment.cooldown=${.name}", "experiment.cooldown", "a");
    refuses("seed=${sede}", "seed=${sede}: '${sede}': 'sede': there is no key 'sede'",
            "did you mean 'seed'?", NULL);
}

LAB_TEST(what_refers_to_nothing) {
    fails("a: 1\nx: ${b}\n", "test.yaml:2: '${b}': 'b': there is no key 'b'");
    fails("abc: {d: 1}\nx: ${abc.e}\n", "there is no key 'e'; did you mean 'd'?");
    fails("a: 1\nx: ${a.b}\n", "'b' must be in a map or list, not in a whole number");
    fails("a: [1]\nx: ${a[1]}\n", "the list has 1 elements, and no '1'");
    fails("a: ???\nx: ${a}\n", "'a' has no value yet");
    fails("a: [1]\nx: see ${a}\n", "a list can't be part of a text");
    fails("x: ${a\n", "'${' without its '}'");
    fails("x: ${}\n", "names no key");
    fails("x: '${oc.env:\"a}'\n", "a quote is never closed");
}

LAB_TEST(circles) {
    fails("a: ${a}\n", "test.yaml:1: '${a}': circular reference to '${a}'");
    fails("a: ${b}\nb: ${c}\nc: x${a}\n", "test.yaml:3: 'x${a}': circular reference to");
    fails("m: {k: '${m}'}\n", "refers to a map that contains it");
    /* inside of the same map, but no circle */
    given_primary("m: {k: '${m.l}', l: 1}\n");
    composes("", "m", "{k:1,l:1}");
}

/* Texts, trees and nesting that would grow without end. */
LAB_TEST(bombs) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "a0: aaaaaaaaaa\nm0: {x: 1}\n");
    for (int i = 1; i < 40; i++)
        lab_str_printf(&text, "a%d: ${a%d}${a%d}\n", i, i - 1, i - 1);
    fails(text.text, "this grows to a text of more than 1048576 bytes");
    lab_str_clear(&text);
    lab_str_add(&text, "m0: {x: 1}\n");
    for (int i = 1; i < 40; i++)
        lab_str_printf(&text, "m%d: {x: '${m%d}', y: '${m%d}'}\n", i, i - 1, i - 1);
    given_primary(text.text);
    refuses("", "interpolations make the config grow to more than 200000 values", NULL);
    lab_str_clear(&text);
    lab_str_add(&text, "x: '");
    lab_str_add_repeat(&text, "${", 10000);
    lab_str_add(&text, "'\n");
    fails(text.text, "interpolations nest deeper than 100");
    lab_str_clear(&text);
    for (int i = 0; i < 5000; i++)
        lab_str_printf(&text, "r%d: ${r%d}\n", i, i + 1);
    fails(text.text, "interpolations nest deeper than 100");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
