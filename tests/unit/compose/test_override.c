/* test_override.c: words with one value or a plain list of them, row by row of the grammar. */
#include "base/random.h"
#include "override_fixture.h"

static void is_word(const char *word, enum lab_override_kind kind, const char *key,
                    const char *package, const char *value) {
    struct lab_override override = parse(word);
    assert_int_equal(override.kind, kind);
    assert_string_equal(override.key, key);
    if (package)
        assert_string_equal(override.package, package);
    else
        assert_null(override.package);
    assert_int_equal(override.sweep, LAB_SWEEP_NONE);
    if (value)
        assert_string_equal(values_of(&override), value);
    else
        assert_null(override.value);
}

LAB_TEST(signs_say_what_happens_to_the_key) {
    is_word("a.b=3", LAB_OVERRIDE_CHANGE, "a.b", NULL, "3");
    is_word("+a.b=3", LAB_OVERRIDE_ADD, "a.b", NULL, "3");
    is_word("++a.b=3", LAB_OVERRIDE_FORCE, "a.b", NULL, "3");
    is_word("~a.b", LAB_OVERRIDE_DELETE, "a.b", NULL, NULL);
    is_word("~a.b=3", LAB_OVERRIDE_DELETE, "a.b", NULL, "3");
    refuses("+++a=1", "column 3: a key can't contain '+'");
    refuses("~+a=1", "column 2: a key can't contain '+'");
    refuses("+~a=1", "column 2: a key can't contain '~'");
}

LAB_TEST(nothing_behind_the_equals_sign_is_the_empty_string) {
    is_word("k=", LAB_OVERRIDE_CHANGE, "k", NULL, "''");
    is_word("k=  ", LAB_OVERRIDE_CHANGE, "k", NULL, "''");
    is_word("+k=", LAB_OVERRIDE_ADD, "k", NULL, "''");
    is_word("~k=", LAB_OVERRIDE_DELETE, "k", NULL, "''");
}

LAB_TEST(groups_and_packages) {
    is_word("experiment=numa_study", LAB_OVERRIDE_CHANGE, "experiment", NULL, "numa_study");
    is_word("a/group=x", LAB_OVERRIDE_CHANGE, "a/group", NULL, "x");
    is_word("+group=x", LAB_OVERRIDE_ADD, "group", NULL, "x");
    is_word("~group", LAB_OVERRIDE_DELETE, "group", NULL, NULL);
    is_word("group@pkg=x", LAB_OVERRIDE_CHANGE, "group", "pkg", "x");
    is_word("~a/group@pkg.sub", LAB_OVERRIDE_DELETE, "a/group", "pkg.sub", NULL);
    is_word("group@_global_=x", LAB_OVERRIDE_CHANGE, "group", "_global_", "x");
    is_word("group@=x", LAB_OVERRIDE_CHANGE, "group", "", "x");
    refuses("a/b.c=1", "column 4: '/' and '.' in one key: a config group is a/b");
    refuses("a.b/c=1", "column 4: '.' and '/' in one key");
    refuses("/a=1", "column 1: a key is missing before '/'");
    refuses("a/=1", "column 3: a key is missing before '='");
    refuses("g@a@b=1", "column 4: a key can't contain '@'");
    refuses("g@a:b=1", "column 4: a key can't contain ':'");
}

LAB_TEST(keys_reach_into_lists) {
    is_word("list.0=v", LAB_OVERRIDE_CHANGE, "list.0", NULL, "v");
    is_word("list[0]=v", LAB_OVERRIDE_CHANGE, "list[0]", NULL, "v");
    is_word("a.b[10][2].c=v", LAB_OVERRIDE_CHANGE, "a.b[10][2].c", NULL, "v");
    refuses("list[]=1", "column 6: a whole number from 0 and ']' belong after '['");
    refuses("list[-1]=1", "column 6: a whole number from 0");
    refuses("list[01]=1", "column 6: a whole number from 0");
    refuses("list[x]=1", "column 6: a whole number from 0");
    refuses("list[0=1", "column 6: a whole number from 0");
    refuses("list[0]k=1", "column 8: '.' belongs between ']' and the next name");
    refuses("[0]=1", "column 1: a key is missing before '['");
    refuses("list]=1", "column 5: a key can't contain ']'");
}

LAB_TEST(keys_are_never_quoted_and_have_no_spaces) {
    is_word("ab-c.d_e.$f=1", LAB_OVERRIDE_CHANGE, "ab-c.d_e.$f", NULL, "1");
    is_word("choice=reverse", LAB_OVERRIDE_CHANGE, "choice", NULL, "reverse");
    refuses("'a.b'=1", "column 1: a key is never quoted");
    refuses("a.\"b\"=1", "column 3: a key is never quoted");
    refuses("a b=1", "column 2: a key has no spaces");
    refuses("a =1", "column 2: a key has no spaces");
    refuses(" a=1", "column 1: a key has no spaces");
    refuses("-a=1", "column 1: a key can't begin with '-'");
    refuses("--multirun=1", "column 1: a key can't begin with '-'");
    refuses("a.-b=1", "column 3: a key can't begin with '-'");
    refuses("größe=1", "column 3: a key can't contain 'ö'");
    refuses("a#b=1", "column 2: a key can't contain '#'");
    refuses("a,b=1", "column 2: a key can't contain ','");
    refuses("a..b=1", "column 3: a key is missing before '.'");
    refuses(".a=1", "column 1: a key is missing before '.'");
    refuses("a.=1", "column 3: a key is missing before '='");
    refuses("=1", "column 1: a key is missing before '='");
    refuses("", "column 1: a key is missing at the end");
    refuses("~", "column 2: a key is missing at the end");
}

LAB_TEST(a_key_alone_says_how_to_go_on) {
    refuses("a.b", "column 4: '=' and a value are missing: a.b=VALUE, or ~a.b to delete it");
    refuses("+a.b", "column 5: '=' and a value are missing: +a.b=VALUE");
    refuses("range(5)", "column 1: a key and '=' are missing before range()");
    refuses("k(5)", "column 2: a key can't contain '('");
}

LAB_TEST(parts_of_keys) {
    static const struct {
        const char *key, *parts[6];
    } cases[] = {
        {"a", {"a"}},
        {"a.b[0].c", {"a", "b", "0", "c"}},
        {"a.b.0.c", {"a", "b", "0", "c"}},
        {"a[0][12]", {"a", "0", "12"}},
        {"a/group", {"a", "group"}},
        {"ab-c._d.$e", {"ab-c", "_d", "$e"}},
    };
    struct lab_err err = LAB_ERR_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char **parts = NULL;
        assert_int_equal(lab_key_split(cases[i].key, &test_arena, &parts, &err), 0);
        int n = 0;
        for (; cases[i].parts[n]; n++)
            assert_string_equal(parts[n], cases[i].parts[n]);
        assert_null(parts[n]);
    }
    static const char *const wrong[] = {"", ".", "a.", "a..b", "a[", "a[x]", "a b", "a=1", "a@b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char **parts = NULL;
        assert_int_equal(lab_key_split(wrong[i], &test_arena, &parts, &err), -1);
        assert_null(parts);
        assert_contains(err.text, "column ");
    }
}

LAB_TEST(numbers_and_what_only_looks_like_them) {
    is_one("1_000", "1000");
    is_one("+1", "1");
    is_one(".5", "0.5");
    is_one("1e-3", "0.001");
    is_one("inf", "inf");
    is_one("-inf", "-inf");
    is_one("nan", "nan");
    is_one("10abc", "10abc");
    assert_int_equal(parse("k=007").value->type, LAB_VALUE_STRING);
    refuses("k=99999999999999999999", "column 3: 99999999999999999999 is too large");
}

LAB_TEST(constants_in_any_case) {
    is_one("null", "null");
    is_one("NULL", "null");
    is_one("TrUe", "true");
    is_one("FALSE", "false");
    is_one("'true'", "'true'");
    is_one("\"null\"", "'null'");
}

LAB_TEST(unquoted_text) {
    is_one("a/b-c\\d+e.f$g%h*i@j?k|l:m", "'a/b-c\\d+e.f$g%h*i@j?k|l:m'");
    is_one("  hello  world ", "hello  world");
    is_one("größe", "größe");
    refuses("k=a#b", "column 4: '#' needs quotes");
    refuses("experiment.test.batch_size=a=b", "column 29: '=' needs quotes or a backslash here");
    refuses("k=a==b", "column 4: '='");
    refuses("k=a;b", "column 4: ';' needs quotes");
    refuses("k=a]", "column 4: ']' needs quotes or a backslash");
    refuses("k=a)", "column 4: ')' needs quotes or a backslash");
    refuses("k=a b(c)", "column 6: '(' needs quotes or a backslash");
}

LAB_TEST(escapes) {
    is_one("a\\,b", "'a,b'");
    is_one("\\(\\)\\[\\]\\{\\}\\:\\=\\\\", "'()[]{}:=\\\\'");
    is_one("\\ a\\ ", "' a '");
    is_one("c:\\foo", "'c:\\foo'");
    is_one("\\n", "'\\n'");
    is_one("f\\(x\\)", "'f(x)'");
    assert_string_equal(parse("dir=job\\{a\\=1\\,b\\=2\\}").value->string, "job{a=1,b=2}");
}

LAB_TEST(quotes) {
    assert_string_equal(parse("k='a, b=c #d (e) [f'").value->string, "a, b=c #d (e) [f");
    assert_string_equal(parse("k=\"it's\"").value->string, "it's");
    assert_string_equal(parse("k='it\\'s'").value->string, "it's");
    assert_string_equal(parse("k='a\\nb\\\\'").value->string, "a\\nb\\");
    assert_true(parse("k='10'").value->quoted);
    refuses("k='a", "column 3: the quote (') is never closed");
    refuses("k='a'b", "column 6: text after the end of a quoted string");
    refuses("k=a'b'", "column 4: a quote inside of unquoted text");
}

LAB_TEST(lists_and_dicts) {
    is_one("[a,[1,2]]", "[a,[1,2]]");
    is_one("[]", "[]");
    is_one("{a:10,b:{c:1}}", "{a:10,b:{c:1}}");
    is_one("{a: 10, b: [x, y]}", "{a:10,b:[x,y]}");
    is_one("[int('3'),str(4),sort([2,1])]", "[3,'4',[1,2]]");
    is_one("{a:float(1)}", "{a:1.0}");
    refuses("k=[a", "column 3: '[' without its ']'");
    refuses("k=[a]b", "column 6: text after the end of a list");
    refuses("k={a}", "column 5: ':' and a value belong after the key 'a'");
    refuses("k=[a(b)]", "column 4: 'a' is not a function");
    refuses("k=[choice(a,b)]", "column 4: a sweep can't be part of a list or dict");
    refuses("k={a:range(3)}", "column 6: a sweep can't be part of a list or dict");
}

LAB_TEST(interpolations_stay_text) {
    static const char *const texts[] = {"${a.b}", "${oc.env:USER,me}", "${now:%Y-%m-%d}",
                                        "x/${a:${b},{c:[d,e]}}/y", "${a:'}'}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct lab_override override = parse(lab_arena_printf(&test_arena, "k=%s", texts[i]));
        assert_int_equal(override.sweep, LAB_SWEEP_NONE);
        assert_string_equal(override.value->string, texts[i]);
    }
    sweeps("${a:1,2},${b}", "'${a:1,2}','${b}'");
    sweeps("choice(${f:(1),2},b)", "'${f:(1),2}',b");
    refuses("k=x${a", "column 4: '${' without its '}'");
}

LAB_TEST(commas_make_a_simple_sweep) {
    sweeps("a,b", "a,b");
    sweeps("1 ,  2,\t3.0", "1,2,3.0");
    sweeps("[a],[b]", "[a],[b]");
    sweeps("[1,2],[3,4]", "[1,2],[3,4]");
    sweeps("{a:1},{b:2}", "{a:1},{b:2}");
    sweeps("'a,b',\"c,d\"", "'a,b','c,d'");
    sweeps("'',null,true", "'',null,true");
    sweeps("int(1.5),str(2)", "1,'2'");
    assert_int_equal(parse("~k=1,2").kind, LAB_OVERRIDE_DELETE);
    refuses("k=a,", "column 5: a value is missing");
    refuses("k=,a", "column 3: a value is missing before ','");
    refuses("k=a,,b", "column 5: a value is missing before ','");
    refuses("k=a,choice(b,c)", "column 5: a sweep can't be one of several values");
    refuses("k=range(3),5", "column 3: a sweep can't be one of several values");
    refuses("k=glob(*),a", "column 3: a sweep can't be one of several values");
}

LAB_TEST(places_are_kept) {
    struct lab_override override = parse("+a.b= 'ä' , [x, y]");
    assert_int_equal(override.value_column, 7);
    assert_int_equal(override.values->items[0]->column, 7);
    assert_int_equal(override.values->items[1]->column, 13);
    assert_int_equal(override.values->items[1]->items[1]->column, 17);
    assert_int_equal(parse("k=").value_column, 3);
    assert_int_equal(parse("~k").value_column, 0);
}

LAB_TEST(words_that_are_no_text) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_override override;
    assert_int_equal(lab_override_parse("k=a\xff", &test_arena, &override, &err), -1);
    assert_string_equal(err.text, "k=a…: column 4: the byte 0xff is not UTF-8");
    /* control characters don't reach the terminal */
    assert_int_equal(lab_override_parse("k=a\x1b[2J\n", &test_arena, &override, &err), -1);
    assert_contains(err.text, "k=a?[2J?: column 4: the control character 0x1b");
    /* and a long word doesn't fill the screen */
    char word[5000];
    memset(word, 'x', sizeof word);
    memcpy(word, "k=é", 4);
    word[sizeof word - 2] = '#';
    word[sizeof word - 1] = '\0';
    assert_int_equal(lab_override_parse(word, &test_arena, &override, &err), -1);
    assert_true(strlen(err.text) < 160);
    assert_contains(err.text, "x…: column 4998: '#'");
}

LAB_TEST(ten_thousand_values) {
    static const char *const forms[] = {"%d", "[%d]", "'v%d'", "${a:%d,b}", "int('%d')"};
    LAB_AUTO(str, word);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        lab_str_clear(&word);
        lab_str_add(&word, "k=");
        for (int i = 0; i < 10000; i++) {
            char value[32];
            const char *percent = strstr(forms[form], "%d");
            snprintf(value, sizeof value, "%.*s%d%s", (int)(percent - forms[form]), forms[form], i,
                     percent + 2);
            lab_str_add(&word, i > 0 ? "," : "");
            lab_str_add(&word, value);
        }
        struct lab_override override = parse(word.text);
        assert_int_equal(lab_override_count(&override), 10000);
    }
}

/* --- what is written reads back the same --- */

static const char *draw_key(uint64_t seed, uint64_t *index) {
    static const char *const names[] = {"a", "b-c", "_d", "$e", "x9", "0", "12"};
    static const char *const joints[] = {".", "[3].", "[0][7]."};
    LAB_AUTO(str, key);
    for (uint64_t n = lab_random_below(seed, (*index)++, 4) + 1; n > 0; n--) {
        lab_str_add(&key, names[lab_random_below(seed, (*index)++, 7)]);
        if (n > 1)
            lab_str_add(&key, joints[lab_random_below(seed, (*index)++, 3)]);
    }
    const char *copy = lab_arena_strdup(&test_arena, key.text);
    return copy;
}

static struct lab_value *draw_value(uint64_t seed, uint64_t *index, int depth) {
    static const char *const texts[] = {"",   "a",       "1",    "a,b", " x ",    "f(x)", "a=b",
                                        "${", "choice(", "it's", "\\",  "null\n", "ä",    "[",
                                        "(",  "range(3", "zip",  ")",   "a (b)",  "\"",   "#"};
    switch (lab_random_below(seed, (*index)++, depth > 0 ? 6 : 4)) {
    case 0:
        return lab_value_int(&test_arena, (int64_t)lab_random_bits(seed, (*index)++));
    case 1:
        return lab_value_float(&test_arena, lab_random_uniform(seed, (*index)++));
    case 2:
        return lab_value_bool(&test_arena, lab_random_below(seed, (*index)++, 2));
    case 3:
        return lab_value_string(
            &test_arena, texts[lab_random_below(seed, (*index)++, sizeof texts / sizeof texts[0])]);
    case 4: {
        struct lab_value *list = lab_value_list(&test_arena);
        for (uint64_t n = lab_random_below(seed, (*index)++, 4); n > 0; n--)
            lab_value_append(&test_arena, list, draw_value(seed, index, depth - 1));
        return list;
    }
    default: {
        struct lab_value *map = lab_value_map(&test_arena);
        for (uint64_t n = lab_random_below(seed, (*index)++, 4); n > 0; n--)
            lab_value_set(&test_arena, map,
                          texts[lab_random_below(seed, (*index)++, sizeof texts / sizeof texts[0])],
                          draw_value(seed, index, depth - 1));
        return map;
    }
    }
}

LAB_TEST(what_is_written_reads_back_the_same) {
    static const char *const signs[] = {"", "+", "++", "~"};
    static const char *const heads[] = {"", "choice(", "tag(t,choice("};
    static const char *const tails[] = {"", ")", "))"};
    LAB_AUTO(str, text);
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint64_t index = 0;
        const char *key = draw_key(seed, &index);
        int kind = (int)(seed % 4), form = (int)(seed % 3);
        int count = (int)lab_random_below(seed, index++, 4) + 1;
        struct lab_value *values = lab_value_list(&test_arena);
        lab_str_clear(&text);
        for (int i = 0; i < count; i++) {
            lab_value_append(&test_arena, values, draw_value(seed, &index, 3));
            lab_str_add(&text, i > 0 ? "," : "");
            lab_value_write(values->items[i], &text);
        }
        struct lab_override read = parse(lab_arena_printf(
            &test_arena, "%s%s=%s%s%s", signs[kind], key, heads[form], text.text, tails[form]));
        assert_int_equal(read.kind, kind);
        assert_string_equal(read.key, key);
        assert_int_equal(read.sweep, form == 0 && count == 1 ? LAB_SWEEP_NONE : LAB_SWEEP_VALUES);
        assert_int_equal(lab_override_count(&read), count);
        for (int i = 0; i < count; i++)
            if (!lab_value_equal(lab_override_value(&read, i), values->items[i]))
                fail_msg("seed %d, value %d: %s", (int)seed, i, read.text);
    }
}
