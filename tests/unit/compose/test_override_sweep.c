/* test_override_sweep.c: the functions of the override grammar, row by row; zip. */
#include "base/random.h"
#include "override_fixture.h"

#include <stdlib.h>

LAB_TEST(choice) {
    sweeps("choice(a,b)", "a,b");
    sweeps("choice(a)", "a");
    sweeps("choice ( 10 , 20 )", "10,20");
    sweeps("choice([1,2],[3,4])", "[1,2],[3,4]");
    sweeps("choice('a,b',str(10),{x:1})", "'a,b','10',{x:1}");
    refuses("k=choice()", "column 3: choice() is empty: choice(a,b)");
    refuses("k=choice(choice(a,b))", "column 10: choice() can't hold a sweep");
    refuses("k=choice(a,choice(b))", "column 12: a sweep can't be one of several values");
    refuses("k=choice(range(3),a)", "column 10: a sweep can't be one of several values");
    refuses("k=choice(a", "column 9: '(' without its ')'");
    refuses("k=choice(", "column 9: '(' without its ')'");
    refuses("k=choice(a,", "column 9: '(' without its ')'");
    refuses("k=choice(a,)", "column 12: a value is missing before ')'");
    refuses("k=choice(,a)", "column 10: a value is missing before ','");
    refuses("k=choice(a)b", "column 12: text after a ')'");
    refuses("k=choice(a=b)", "column 10: choice() has no argument 'a'; '=' in text needs quotes");
    refuses("k=choice([a)]", "column 12: ')' needs quotes or a backslash");
    refuses("k=choice('a'b)", "column 13: text after the end of a quoted string");
}

LAB_TEST(ranges_are_half_open) {
    sweeps("range(5)", "0,1,2,3,4");
    sweeps("range(1,5)", "1,2,3,4");
    sweeps("range(0,10,4)", "0,4,8");
    sweeps("range(0,8,4)", "0,4");
    sweeps("range(5,1,-2)", "5,3");
    sweeps("range(-5,step=-1)", "0,-1,-2,-3,-4");
    sweeps("range(start=1,stop=10,step=4)", "1,5,9");
    sweeps("range(step=4,start=1,stop=10)", "1,5,9");
    sweeps("range(1,step=4,stop=10)", "1,5,9");
    sweeps("range(stop=3)", "0,1,2");
    sweeps("range(9223372036854775805,9223372036854775807)",
           "9223372036854775805,9223372036854775806");
    sweeps("range(-9223372036854775808,9223372036854775807,9223372036854775807)",
           "-9223372036854775808,-1,9223372036854775806");
}

LAB_TEST(ranges_count_fractions_in_decimal) {
    sweeps("range(0,10,3.3)", "0.0,3.3,6.6,9.9");
    sweeps("range(0,1,0.1)", "0.0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9");
    sweeps("range(1.0,3.14)", "1.0,2.0,3.0");
    sweeps("range(5.0)", "0.0,1.0,2.0,3.0,4.0");
    sweeps("range(1,0,-0.25)", "1.0,0.75,0.5,0.25");
    sweeps("range(-0.3,0.31,0.3)", "-0.3,0.0,0.3");
    sweeps("range(1e-5,4e-5,1e-5)", "1e-05,2e-05,3e-05");
    sweeps("range(1e300,3e300,1e300)", "1e+300,2e+300");
    sweeps("range(1e-300,3e-300,1e-300)", "1e-300,2e-300");
    sweeps("range(0.1,1e15,4e14)", "0.1,400000000000000.1,800000000000000.1");
    sweeps("range(1e20,1.2e20,1e19)", "1e+20,1.1e+20");
}

/* A multiple of 10^-places as text: -1234, 2 → "-12.34". */
static const char *decimal(int64_t multiple, int places) {
    int64_t one = 1;
    for (int i = 0; i < places; i++)
        one *= 10;
    int64_t size = multiple < 0 ? -multiple : multiple;
    return lab_arena_printf(&test_arena, "%s%lld.%0*lld", multiple < 0 ? "-" : "",
                            (long long)(size / one), places, (long long)(size % one));
}

LAB_TEST(every_value_of_a_range_is_its_decimal) {
    for (uint64_t seed = 0; seed < 500; seed++) {
        int places = (int)lab_random_below(seed, 0, 8) + 1;
        int64_t start = (int64_t)lab_random_below(seed, 1, 2000000) - 1000000;
        int64_t step = (int64_t)lab_random_below(seed, 2, 20000) - 10000;
        int count = (int)lab_random_below(seed, 3, 50) + 1;
        step += step == 0;
        /* the end lies anywhere behind the last value, up to the next one */
        int64_t size = step < 0 ? -step : step;
        int64_t rest = (int64_t)lab_random_below(seed, 4, (uint64_t)size) + 1;
        int64_t stop = start + (count - 1) * step + (step < 0 ? -rest : rest);
        struct lab_override range =
            parse(lab_arena_printf(&test_arena, "k=range(%s,%s,%s)", decimal(start, places),
                                   decimal(stop, places), decimal(step, places)));
        assert_int_equal(lab_override_count(&range), count);
        for (int i = 0; i < count; i++) {
            double expected = strtod(decimal(start + i * step, places), NULL);
            if (lab_override_value(&range, i)->number != expected)
                fail_msg("%s: value %d", range.text, i);
        }
    }
}

LAB_TEST(ranges_that_are_refused) {
    refuses("k=range(5,1)", "column 3: the range from 5 to 1 is empty; counting down needs a "
                            "negative step: range(5,1,-1)");
    refuses("k=range(-3)", "counting down needs a negative step: range(0,-3,-1)");
    refuses("k=range(1,5,-1)", "counting up needs a positive step");
    refuses("k=range(2,2)", "its end is excluded");
    refuses("k=range(0)", "the range from 0 to 0 is empty");
    refuses("k=range(1,5,0)", "column 3: the range's step is 0");
    refuses("k=range(1,5,0.0)", "the range's step is 0");
    refuses("k=range(inf)", "a range needs finite numbers");
    refuses("k=range(0,nan)", "a range needs finite numbers");
    refuses("k=range(1e-300,1,0.5)", "span too much to be counted exactly");
    refuses("k=range(a)", "column 9: range() takes numbers: range(5), range(1,5)");
    refuses("k=range(1,'5')", "column 11: range() takes numbers");
    refuses("k=range(true)", "column 9: range() takes numbers");
    refuses("k=range(range(3))", "column 9: range() takes numbers");
    refuses("k=range()", "range() needs an end: range(5)");
    refuses("k=range(step=2)", "range() needs an end");
    refuses("k=range(1,2,3,4)", "column 15: range() has too many arguments");
    refuses("k=range(1,start=2)", "column 11: range() has its 'start' twice");
    refuses("k=range(start=1,5)", "column 17: an argument without a name can't follow one");
    refuses("k=range(1,5,stepp=2)", "column 13: range() has no argument 'stepp', but 'step'");
}

LAB_TEST(a_range_has_at_most_a_million_values) {
    struct lab_override override = parse("k=range(1000000)");
    assert_int_equal(lab_override_count(&override), LAB_SWEEP_MAX);
    assert_int_equal(lab_override_value(&override, 999999)->integer, 999999);
    refuses("k=range(1000001)", "column 3: the range has more than 1000000 values");
    refuses("k=range(9223372036854775807)", "more than 1000000 values");
    refuses("k=range(0,1e300)", "more than 1000000 values");
    refuses("k=range(0,1,1e-9)", "more than 1000000 values");
}

static void is_glob(const char *word, const char *include, const char *exclude) {
    struct lab_override override = parse(word);
    assert_int_equal(override.sweep, LAB_SWEEP_GLOB);
    assert_int_equal(lab_override_count(&override), -1);
    const char **patterns[] = {override.glob.include, override.glob.exclude};
    const char *expected[] = {include, exclude};
    for (int side = 0; side < 2; side++) {
        LAB_AUTO(str, joined);
        for (int i = 0; patterns[side][i]; i++)
            lab_str_printf(&joined, "%s%s", i > 0 ? " " : "", patterns[side][i]);
        assert_string_equal(joined.text, expected[side]);
    }
}

LAB_TEST(globs_wait_for_the_config) {
    is_glob("experiment=glob(*)", "*", "");
    is_glob("g=glob(include=*)", "*", "");
    is_glob("g=glob(*,exclude=x*)", "*", "x*");
    is_glob("g=glob([s*,w*],exclude=x)", "s* w*", "x");
    is_glob("g=glob([s*, w?], [x, y])", "s* w?", "x y");
    is_glob("g=glob('[a-c]*')", "[a-c]*", "");
    is_glob("g=tag(t,glob(*))", "*", "");
    refuses("g=glob()", "column 3: glob() needs a pattern");
    refuses("g=glob([])", "column 3: glob() needs a pattern");
    refuses("g=glob(3)", "column 8: glob() takes patterns, which are text");
    refuses("g=glob([a,[b]])", "column 8: glob() takes patterns");
    refuses("g=glob(choice(a,b))", "column 8: glob() takes patterns, not a sweep");
    refuses("g=glob([a-c]*)", "column 13: text after the end of a list");
    refuses("g=sort(glob(*))", "column 8: sort() can't order a glob");
    refuses("g=str(glob(*))", "column 3: str() can't be made of a glob");
}

LAB_TEST(intervals_need_an_optimiser) {
    refuses("k=interval(1,5)", "column 3: interval() needs an optimiser to pick values, and there "
                               "is none here; give the values: range(1,5,0.5)");
    refuses("k=tag(log,interval(0,1))", "column 11: interval() needs an optimiser");
}

LAB_TEST(sort_orders_sweeps_and_lists) {
    sweeps("sort(1,3,2)", "1,2,3");
    sweeps("sort(1,3,2,reverse=true)", "3,2,1");
    sweeps("sort(b,a,c)", "a,b,c");
    sweeps("sort(choice(3,1,2))", "1,2,3");
    sweeps("sort(sweep=choice(3,1,2), reverse=True)", "3,2,1");
    sweeps("sort(range(0,5,2),reverse=true)", "4,2,0");
    sweeps("sort(range(3,0,-1))", "1,2,3");
    sweeps("sort(2.5,true,0,-inf,nan,2)", "-inf,0,true,2,2.5,nan");
    sweeps("sort(9223372036854775807,9223372036854775806)",
           "9223372036854775806,9223372036854775807");
    /* equal ones stay in order, backwards too */
    sweeps("sort(1.0,1,true,0)", "0,1.0,1,true");
    sweeps("sort(1.0,1,true,2,reverse=true)", "2,1.0,1,true");
    sweeps("float(sort(3,2,1))", "1.0,2.0,3.0");
    is_one("sort([1,3,2])", "[1,2,3]");
    is_one("sort(list=[1,3,2],reverse=true)", "[3,2,1]");
    is_one("sort(list=[])", "[]");
    is_one("sort(1)", "1");
    is_one("sort({a:10})", "{a:10}");
    refuses("k=sort(3,2,str(1))",
            "column 3: sort() can't order 3 and '1': all numbers, or all text");
    refuses("k=sort([a],[b])", "sort() orders numbers or text, not [a]");
    refuses("k=sort(null,1)", "not null");
    refuses("k=sort()", "sort() takes values, or a sweep, or a list");
    refuses("k=sort(1,2,list=[3])", "sort() takes values, or a sweep, or a list");
    refuses("k=sort(list=3)", "column 13: sort() takes a list by that name");
    refuses("k=sort(sweep=[3])", "column 14: sort() takes a sweep by that name");
    refuses("k=sort(1,2,reverse=1)", "sort() takes reverse=true or reverse=false");
    refuses("k=sort(1,2,revers=true)", "column 12: sort() has no argument 'revers', but 'reverse'");
}

LAB_TEST(shuffle_has_a_seed) {
    struct lab_override plain = parse("k=shuffle(range(10))");
    assert_int_equal(lab_override_count(&plain), 10);
    const char *order = values_of(&plain);
    assert_string_not_equal(order, "0,1,2,3,4,5,6,7,8,9");
    /* one word, one order, on every machine */
    sweeps("shuffle(range(10))", order);
    sweeps("shuffle(range(10),seed=42)", order);
    sweeps("shuffle(sweep=range(10))", order);
    sweeps("shuffle(0,1,2,3,4,5,6,7,8,9)", order);
    sweeps("sort(shuffle(range(10)))", "0,1,2,3,4,5,6,7,8,9");
    struct lab_override seeded = parse("k=shuffle(range(10),seed=7)");
    assert_string_not_equal(values_of(&seeded), order);
    struct lab_override list = parse("k=shuffle([0,1,2,3,4,5,6,7,8,9])");
    assert_int_equal(list.sweep, LAB_SWEEP_NONE);
    assert_string_equal(values_of(&list), lab_arena_printf(&test_arena, "[%s]", order));
    is_one("shuffle(a)", "a");
    refuses("k=shuffle(a,b,seed=x)", "column 20: shuffle() takes a whole number from 0");
    refuses("k=shuffle(a,b,seed=-1)", "shuffle() takes a whole number from 0 as its seed");
    refuses("k=shuffle()", "shuffle() takes values, or a sweep, or a list");
}

LAB_TEST(tags_are_dropped) {
    sweeps("tag(t1,t2,choice(a,b))", "a,b");
    sweeps("tag(choice(a,b))", "a,b");
    sweeps("tag(t1,sweep=range(2))", "0,1");
    sweeps("sort(tag(t,choice(2,1)),reverse=false)", "1,2");
    refuses("k=tag()", "column 3: tag() needs a sweep, and that last: tag(t1,t2,choice(a,b))");
    refuses("k=tag(a,b)", "column 9: tag() needs a sweep, and that last");
    refuses("k=tag(choice(a,b),t)", "column 7: a sweep can't be one of several values");
    refuses("k=tag(1,choice(a,b))", "column 7: tag() takes tags, which are text");
}

/* Hydra's table of conversions; NULL is an error. */
LAB_TEST(casts) {
    static const char *const functions[] = {"int", "float", "str", "bool"};
    static const struct {
        const char *value, *cast[4];
    } rows[] = {
        {"10", {"10", "10.0", "'10'", "true"}},
        {"0", {"0", "0.0", "'0'", "false"}},
        {"10.0", {"10", "10.0", "'10.0'", "true"}},
        {"0.0", {"0", "0.0", "'0.0'", "false"}},
        {"3.7", {"3", "3.7", "'3.7'", "true"}},
        {"-3.7", {"-3", "-3.7", "'-3.7'", "true"}},
        {"inf", {NULL, "inf", "'inf'", "true"}},
        {"nan", {NULL, "nan", "'nan'", "true"}},
        {"1e6", {"1000000", "1000000.0", "'1000000.0'", "true"}},
        {"1e30", {NULL, "1e+30", "'1e+30'", "true"}},
        {"foo", {NULL, NULL, "foo", NULL}},
        {"''", {NULL, NULL, "''", NULL}},
        {"'10'", {"10", "10.0", "'10'", NULL}},
        {"' 1_000 '", {"1000", "1000.0", "' 1_000 '", NULL}},
        {"'10.0'", {NULL, "10.0", "'10.0'", NULL}},
        {"007", {"7", "7.0", "007", NULL}},
        {"0x10", {NULL, NULL, "0x10", NULL}},
        {"'1_'", {NULL, NULL, "1_", NULL}},
        {"'inf'", {NULL, "inf", "'inf'", NULL}},
        {"'true'", {NULL, NULL, "'true'", "true"}},
        {"'False'", {NULL, NULL, "'False'", "false"}},
        {"'[1,2,3]'", {NULL, NULL, "'[1,2,3]'", NULL}},
        {"'99999999999999999999'", {NULL, "1e+20", "'99999999999999999999'", NULL}},
        {"true", {"1", "1.0", "'true'", "true"}},
        {"false", {"0", "0.0", "'false'", "false"}},
        {"null", {NULL, NULL, NULL, NULL}},
        {"[]", {"[]", "[]", "[]", "[]"}},
        {"[0,1,2]", {"[0,1,2]", "[0.0,1.0,2.0]", "['0','1','2']", "[false,true,true]"}},
        {"[1,[2]]", {"[1,[2]]", "[1.0,[2.0]]", "['1',['2']]", "[true,[true]]"}},
        {"[a,1]", {NULL, NULL, "[a,'1']", NULL}},
        {"{a:10}", {"{a:10}", "{a:10.0}", "{a:'10'}", "{a:true}"}},
        {"{a:10,b:xyz}", {NULL, NULL, "{a:'10',b:xyz}", NULL}},
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
        for (int i = 0; i < 4; i++) {
            const char *call =
                lab_arena_printf(&test_arena, "%s(%s)", functions[i], rows[row].value);
            if (rows[row].cast[i])
                is_one(call, rows[row].cast[i]);
            else
                refuses(lab_arena_printf(&test_arena, "k=%s", call), "() can't be made of ");
        }
}

LAB_TEST(casts_of_sweeps) {
    sweeps("float(choice(0,1))", "0.0,1.0");
    sweeps("str(choice(a,1))", "a,'1'");
    sweeps("bool(0,1,'true')", "false,true,true");
    sweeps("int(1.5,[2.5,'3'])", "1,[2,3]");
    sweeps("float(range(3))", "0.0,1.0,2.0");
    /* by its ends and step, as Hydra does */
    sweeps("int(range(0,10,3.3))", "0,3,6,9");
    sweeps("int(range(0.5,3.7,1.5))", "0,1,2");
    sweeps("str(range(3))", "'0','1','2'");
    sweeps("bool(range(2))", "false,true");
    is_one("int(value=3.14)", "3");
    is_one("float(float(10))", "10.0");
    refuses("k=int(range(0,1,0.1))", "column 3: the range's step is 0");
    refuses("k=int(choice(1,a))", "column 3: int() can't be made of a");
    refuses("k=int()", "column 3: int() needs a value: int(3.7)");
    refuses("k=int(1,value=2)", "column 15: int() has its value twice");
    refuses("k=int(${a})", "int() can't be made of '${a}': it is filled in only later");
    refuses("k=bool(1,x)", "bool() can't be made of x: of text, only of true and false");
    refuses("k=int(choice(a,b),1)", "column 7: a sweep can't be one of several values");
}

LAB_TEST(functions_that_dont_exist) {
    refuses("k=rnage(5)", "column 3: there is no function 'rnage', but there is range()");
    refuses("k=Choice(a,b)", "but there is choice(); parentheses in text need quotes");
    refuses("k=model(5)",
            "column 3: 'model' is not a function, and parentheses in text need quotes or a "
            "backslash: \\( \\)");
    refuses("k=a,model(5)", "column 5: 'model' is not a function");
    refuses("k=zip(a=[1])", "column 3: zip() is a word of its own, without a key");
}

LAB_TEST(calls_nest_only_so_deep) {
    is_one("int(int(int(int(int(int(int(int(1))))))))", "1");
    refuses("k=int(int(int(int(int(int(int(int(int(1)))))))))", "column 35: calls nest deeper");
    refuses("k=choice(str(range(1000000)),str(range(1000000)),str(range(1000000)))",
            "column 10: a sweep can't be one of several values");
}

LAB_TEST(zip_moves_keys_together) {
    struct lab_override zip = parse("zip(a=[1,2], b.c[0]=[x,[y]], g@p=choice(u,v), n=range(2))");
    assert_int_equal(zip.sweep, LAB_SWEEP_ZIP);
    assert_int_equal(zip.kind, LAB_OVERRIDE_CHANGE);
    assert_null(zip.key);
    assert_int_equal(lab_override_count(&zip), 2);
    assert_int_equal(zip.column_count, 4);
    static const struct {
        const char *key, *package, *values;
        int column;
    } expected[] = {{"a", NULL, "[1,2]", 5},
                    {"b.c[0]", NULL, "[x,[y]]", 14},
                    {"g", "p", "[u,v]", 30},
                    {"n", NULL, "[0,1]", 47}};
    for (int i = 0; i < 4; i++) {
        const struct lab_zip_column *column = &zip.columns[i];
        LAB_AUTO(str, values);
        lab_value_write(column->values, &values);
        assert_string_equal(column->key, expected[i].key);
        assert_true(lab_str_equal(column->package, expected[i].package));
        assert_string_equal(values.text, expected[i].values);
        assert_int_equal(column->column, expected[i].column);
    }
    assert_int_equal(parse("+zip(a=[1])").kind, LAB_OVERRIDE_ADD);
    assert_int_equal(parse("++zip (a=[1])").kind, LAB_OVERRIDE_FORCE);
    assert_string_equal(parse("zip=1").key, "zip");
}

LAB_TEST(zips_that_are_refused) {
    refuses("zip(a=[1,2],b=[x])",
            "column 15: zip() needs lists of one length: 'a' has 2 values, 'b' has 1");
    refuses("zip(a=[1],a=[2])", "column 11: zip() has the key 'a' twice");
    refuses("zip(a=[])", "column 7: zip() needs at least one value for 'a'");
    refuses("zip(a=1,b=2)", "column 7: zip() takes a list for each key: zip(a=[1,2],b=[x,y])");
    refuses("zip(a=glob(*))", "column 7: zip() takes a list for each key");
    refuses("zip()", "column 5: a key can't contain ')'");
    refuses("zip(", "column 5: a key is missing at the end");
    refuses("zip([1,2],[x,y])", "column 5: a key is missing before '['");
    refuses("zip(a", "column 6: '=' and a list belong after the key 'a'");
    refuses("zip(a=[1]", "column 4: '(' without its ')'");
    refuses("zip(a=[1],)", "column 11: a key can't contain ')'");
    refuses("zip(a=[1])b", "column 11: text after zip()'s ')'");
    refuses("~zip(a=[1])", "column 2: zip() sets keys; it can't delete them");
    refuses("zip(a=range(600000),b=range(600000))", "zip() takes up to 1000000 values in all");
}
