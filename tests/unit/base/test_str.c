/* test_str.c: text: growing it, comparing it, and numbers as people read them. */
#include "base/random.h"
#include "base/str.h"

#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lab_str str;

static int set_up(void **state) {
    (void)state;
    lab_str_init(&str);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_str_release(&str);
    return 0;
}

static void becomes(const char *expected) {
    assert_string_equal(str.text, expected);
    assert_int_equal(str.length, strlen(expected));
    lab_str_clear(&str);
}

LAB_TEST(it_grows) {
    becomes("");
    lab_str_add(&str, "one ");
    lab_str_add_bytes(&str, "two three", 3);
    lab_str_printf(&str, " %d", 3);
    lab_str_add_repeat(&str, "!", 2);
    becomes("one two 3!!");
    for (int i = 0; i < 1000; i++)
        lab_str_printf(&str, "%d,", i % 10);
    assert_int_equal(str.length, 2000);
    assert_int_equal(str.text[1999], ',');
}

LAB_TEST(comparing) {
    assert_true(lab_str_equal("a", "a"));
    assert_false(lab_str_equal("a", "b"));
    assert_true(lab_str_equal(NULL, NULL));
    assert_false(lab_str_equal(NULL, ""));
    assert_true(lab_str_starts("prefix", "pre"));
    assert_false(lab_str_starts("pre", "prefix"));
}

LAB_TEST(columns_are_not_bytes) {
    assert_int_equal(lab_str_columns(""), 0);
    assert_int_equal(lab_str_columns("abc"), 3);
    assert_int_equal(lab_str_columns("µs"), 2);
    assert_int_equal(lab_str_columns("e\xcc\x81"), 1);
    assert_int_equal(lab_str_columns("…→"), 2);
}

LAB_TEST(the_nearest_word) {
    static const char *const keys[] = {"depth", "dim", "heads", "samples_per_second", NULL};
    assert_string_equal(lab_str_nearest("dept", keys), "depth");
    assert_string_equal(lab_str_nearest("detph", keys), "depth");
    assert_string_equal(lab_str_nearest("haeds", keys), "heads");
    assert_string_equal(lab_str_nearest("samples", keys), "samples_per_second");
    assert_null(lab_str_nearest("colour", keys));
    assert_null(lab_str_nearest("", keys));
    static const char *const none[] = {NULL};
    assert_null(lab_str_nearest("x", none));
}

LAB_TEST(lists_for_sentences) {
    static const char *const three[] = {"cpu", "cuda", "sim", NULL};
    lab_str_add_list(&str, three, "or");
    becomes("cpu, cuda or sim");
    lab_str_add_list(&str, three + 1, "and");
    becomes("cuda and sim");
    lab_str_add_list(&str, three + 2, "and");
    becomes("sim");
    lab_str_add_list(&str, three + 3, "and");
    becomes("");
}

LAB_TEST(valid_utf8) {
    static const struct {
        const char *bytes;
        size_t valid;
    } cases[] = {
        {"plain", 5},
        {"µ→\xf0\x9f\x98\x80", 9},
        {"a\xff", 1},
        {"\xc0\x80", 0},
        {"\xe0\x80\x80", 0},
        {"\xed\xa0\x80", 0},
        {"\xf4\x90\x80\x80", 0},
        {"ab\xe2\x82", 2},
        {"\x80", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(lab_str_utf8_prefix(cases[i].bytes, strlen(cases[i].bytes)),
                         cases[i].valid);
}

LAB_TEST(what_steers_a_terminal_is_not_printable) {
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"NVIDIA H200", "NVIDIA H200"},
        {"é日本語 \xf0\x9f\x98\x80", "é日本語 \xf0\x9f\x98\x80"},
        {"\033]0;title\a\033[2J", "?]0;title??[2J"},
        {"a\tb\nc\x7f", "a?b?c?"},
        {"\xc2\x9b"
         "31m",
         "?31m"}, /* CSI as one character */
        {"\x9b"
         "31m \xff\xe2\x82",
         "?31m ???"},                                       /* no UTF-8 */
        {"txt\xe2\x80\xaegpj \xe2\x81\xa6x", "txt?gpj ?x"}, /* turns the direction */
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i].text);
        lab_str_make_printable(text);
        assert_string_equal(text, cases[i].shown);
    }
}

LAB_TEST(doubles_read_back) {
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {1e300, "1e+300"},
        {1e15, "1e+15"},
        {123456, "123456.0"},
        {1.0 / 3, "0.3333333333333333"},
        {-0.0, "-0.0"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lab_str_add_double(&str, cases[i].number);
        becomes(cases[i].text);
    }
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t bits = lab_random_bits(1, i);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        lab_str_clear(&str);
        lab_str_add_double(&str, number);
        assert_true(strtod(str.text, NULL) == number);
    }
}

/* Digit for digit what libc finds, trying 15, 16 and 17 of them. */
static void has_fewest_digits(double number) {
    LAB_AUTO(str, expected);
    for (int digits = 15; digits <= 17; digits++) {
        lab_str_clear(&expected);
        lab_str_printf(&expected, "%.*g", digits, number);
        if (strtod(expected.text, NULL) == number)
            break;
    }
    lab_str_add(&expected, strpbrk(expected.text, ".e") ? "" : ".0");
    lab_str_clear(&str);
    lab_str_add_double(&str, number);
    assert_string_equal(str.text, expected.text);
}

LAB_TEST(numbers_have_the_fewest_digits) {
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = lab_random_bits(2, i);
        double scale = pow(10, (double)(bits % 26) - 9), share = (double)(bits >> 11) * 0x1p-53;
        has_fewest_digits(share * scale);
        has_fewest_digits(-round(share * 1e6) / 1e3 * scale);
        has_fewest_digits((double)(float)(share * scale));
    }
    for (double power = 1e-10; power < 1e18; power *= 10)
        for (int side = -1; side <= 1; side++)
            has_fewest_digits(side ? nextafter(power, side * INFINITY) : power);
    for (double power = 0x1p-34; power < 1e18; power *= 2)
        for (int side = -1; side <= 1; side++)
            has_fewest_digits(side ? nextafter(power, side * INFINITY) : power);
}

LAB_TEST(numbers_for_people) {
    lab_str_add_si(&str, 1.5e9, "B/s");
    becomes("1.50 GB/s");
    lab_str_add_bytes_binary(&str, 12);
    becomes("12 B");
    lab_str_add_bytes_binary(&str, 3 * 512.0 * 1024 * 1024);
    becomes("1.50 GiB");
    lab_str_add_bytes_binary(&str, 1023.9 * 1024);
    becomes("1.00 MiB");
    lab_str_add_time(&str, 12.34e-6);
    becomes("12.3 µs");
    lab_str_add_time(&str, 1.5);
    becomes("1.50 s");
    lab_str_add_time(&str, 300);
    becomes("5 min");
    lab_str_add_time(&str, 0);
    becomes("0 ns");
    lab_str_add_si(&str, 98.76e9, "FLOP/s");
    becomes("98.8 GFLOP/s");
    lab_str_add_si(&str, NAN, "FLOP/s");
    becomes("unknown");
}

LAB_TEST(digits_without_exponents) {
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {{2925714.3, 5, "2925714"}, {0.123456, 4, "0.1235"},  {358383, 6, "358383"},
                 {-1234567, 4, "-1234567"}, {3.21e-7, 4, "3.21e-07"}, {2e18, 6, "2e+18"},
                 {INFINITY, 4, "inf"},      {999999.7, 6, "1000000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_str_add_digits(&str, cases[i].value, cases[i].digits);
        becomes(cases[i].text);
    }
}

LAB_TEST(words_for_a_shell) {
    lab_str_add_shell(&str, "experiment.test.batch_size=1,16");
    becomes("experiment.test.batch_size=1,16");
    lab_str_add_shell(&str, "gpu_ids=[0,1]");
    becomes("'gpu_ids=[0,1]'");
    lab_str_add_shell(&str, "it's $HOME; `ls` \"x\"\n");
    becomes("'it'\\''s $HOME; `ls` \"x\"\n'");
    lab_str_add_shell(&str, "~/mine");
    becomes("'~/mine'");
    lab_str_add_shell(&str, "");
    becomes("''");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
