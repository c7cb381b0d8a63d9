/* Figures out of what a program prints: patterns, JSON lines, lines of a stream. */
#include "workload/command/command.h"

#include "test.h"
#include <math.h>

static struct lab_err err;
static struct lab_str seen;

static int set_up(void **state) {
    (void)state;
    lab_str_init(&seen);
    err = LAB_ERR_INIT;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_str_release(&seen);
    return 0;
}

static void note(void *state, const char *name, double value) {
    (void)state;
    lab_str_printf(&seen, "%s%s=%.10g", seen.length ? " " : "", name, value);
}

static struct command_reader *reader_of(const char *metrics) {
    struct lab_value *value;
    struct command_reader *reader = NULL;
    if (lab_value_parse(metrics, &test_arena, &value, &err) == 0)
        command_reader_make(value, &test_arena, &reader, &err);
    return reader;
}

/* What a line says to one pattern: "iter=120 loss=3.21"; "" = it doesn't match. */
static const char *reads(const char *pattern, const char *line) {
    struct lab_value *metrics = lab_value_map(&test_arena);
    struct command_reader *reader;
    lab_value_set_string(&test_arena, metrics, "patterns", pattern);
    if (command_reader_make(metrics, &test_arena, &reader, &err) < 0)
        fail_msg("%s", err.text);
    lab_str_clear(&seen);
    command_reader_line(reader, line, strlen(line), note, NULL);
    return seen.text;
}

#define ITER "Iter {iter} loss {loss}"

LAB_TEST(blanks_colons_and_equals_signs_are_alike) {
    static const char *const lines[] = {
        "Iter 120 loss 3.21",
        "Iter 120: loss=3.21",
        "Iter: 120, loss:   3.21",
        "  Iter\t120  loss 3.21  end",
        "[10:30:00] Iter 120 loss 3.21 lr 0.1",
        "INFO:Iter 120 loss 3.21s",
        "Iter=120,loss=+3.21.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_string_equal(reads(ITER, lines[i]), "iter=120 loss=3.21");
}

LAB_TEST(what_is_written_otherwise_does_not_match) {
    static const char *const lines[] = {
        "",
        "Iter",
        "Iter 120",
        "Iter 120 loss",
        "Iter 120 loss none",
        "iter 120 loss 3.21",
        "MaxIter 120 loss 3.21",
        "Iter120 loss 3.21",
        "Iter 120 train loss 3.21",
        "Iter 1.2.3 loss 3.21",
        "Iter 120loss 3.21",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_string_equal(reads(ITER, lines[i]), "");
}

LAB_TEST(a_later_place_in_the_line_is_found) {
    assert_string_equal(reads(ITER, "Iter a Iter 120 loss x Iter 5 loss 2"), "iter=5 loss=2");
    assert_string_equal(reads("{a}/{b} done", "at 3 of 7/9 done"), "a=7 b=9");
}

LAB_TEST(a_star_is_anything_as_little_as_will_do) {
    assert_string_equal(reads("Final * {final}", "Final loss 0.93 after 7"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Final: 0.93"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Final accuracy top5 0.93"), "final=0.93");
    assert_string_equal(reads("Final*{final}", "Final (top5): 0.93"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Finalist 3"), "");
    assert_string_equal(reads("a * b * {x}", "a b 1 b 2"), "x=1");
    assert_string_equal(reads("step {step}/* loss {loss}", "step 3/10 | loss 1e-3"),
                        "step=3 loss=0.001");
    assert_string_equal(reads("*{x}*", "it is 7 now"), "x=7");
}

LAB_TEST(numbers_come_in_many_forms) {
    static const struct {
        const char *line, *found;
    } cases[] = {
        {"x -1.5e-3", "x=-0.0015"},
        {"x .5", "x=0.5"},
        {"x 5.", "x=5"},
        {"x 1E6 y", "x=1000000"},
        {"x 1,234,567 y", "x=1234567"},
        {"x 1,23", "x=1"},
        {"x 1234,567", "x=1234"},
        {"x nan", "x=nan"},
        {"x -inf", "x=-inf"},
        {"x Infinity", "x=inf"},
        {"x nano", ""},
        {"x 85%", "x=85"},
        {"x 3.2ms", "x=3.2"},
        {"x 1e", "x=1"},
        {"x -", ""},
        {"x 1.2.3", ""},
        {"x 00000000000000000000000000000000000000000000000000000000000000000000000001", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(reads("x {x}", cases[i].line), cases[i].found);
    /* a comma is a blank where the pattern wants one */
    assert_string_equal(reads("{a}, {b}", "12,345"), "a=12 b=345");
}

LAB_TEST(patterns_are_checked) {
    static const struct {
        const char *metrics, *part;
    } cases[] = {
        {"{patterns: ['no numbers']}", "'no numbers': reads no number"},
        {"{patterns: ['']}", "reads no number"},
        {"{patterns: ['a {}']}", "begins no {name}"},
        {"{patterns: ['a {x y}']}", "begins no {name}"},
        {"{patterns: ['{x} {x}']}", "duplicate {x}"},
        {"{patterns: [3]}", "a pattern is text"},
        {"{patterns: {a: b}}", "must be a list of texts"},
        {"{json: 3}", "must be true or false"},
        {"{pattern: []}", "did you mean 'patterns'?"},
        {"[1]", "metrics: must be a map"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(reader_of(cases[i].metrics));
        assert_int_equal(err.code, LAB_ERR_USER);
        if (!strstr(err.text, cases[i].part))
            fail_msg("no '%s' in: %s", cases[i].part, err.text);
    }
}

LAB_TEST(a_long_line_of_temptations_takes_no_time) {
    char *line = lab_arena_alloc(&test_arena, COMMAND_LINE_MAX, 1);
    for (int i = 0; i + 5 < COMMAND_LINE_MAX; i += 4)
        snprintf(line + i, 6, "1,23%d", i % 10);
    reads("{a} {b} {c} {d} {e} {f} {g} {h} {i} {j} {k} {l} {m} {n} {o} {p} end", line);
    assert_string_equal(seen.text, "");
    reads("a*a*a*a*a*a*{x}", memset(line, 'a', COMMAND_LINE_MAX - 1));
    assert_string_equal(seen.text, "");
}

/* --- JSON --- */

LAB_TEST(numbers_of_a_json_line_go_by_their_keys) {
    static const struct {
        const char *line, *found;
    } cases[] = {
        {"{\"iter\": 3, \"loss\": 0.5}", "iter=3 loss=0.5"},
        {"  {\"a\": {\"b\": 1, \"c\": {\"d\": 2}}}  ", "a.b=1 a.c.d=2"},
        {"{\"a\": true, \"b\": null, \"c\": \"3\", \"d\": [1, 2]}", ""},
        {"{}", ""},
        {"{\"a\": 1", ""},
        {"{\"a\": 1} end", ""},
        {"[1]", ""},
        {"{\"a\\n\": 1}", ""},
    };
    const struct command_reader *reader = reader_of("{}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_str_clear(&seen);
        command_reader_line(reader, cases[i].line, strlen(cases[i].line), note, NULL);
        assert_string_equal(seen.text, cases[i].found);
    }
}

LAB_TEST(json_can_be_switched_off_and_patterns_see_the_rest) {
    static const char line[] = "{\"loss\": 2}";
    command_reader_line(reader_of("{json: false}"), line, strlen(line), note, NULL);
    assert_string_equal(seen.text, "");
    command_reader_line(reader_of("{patterns: ['a {a}', 'b {b}']}"), "a 1 b 2", 7, note, NULL);
    assert_string_equal(seen.text, "a=1 b=2");
}

/* --- lines --- */

static void show(void *state, const char *text, size_t length) {
    (void)state;
    lab_str_printf(&seen, "<%.*s>", (int)length, text);
}

static void add(struct command_lines *lines, const char *text) {
    command_lines_add(lines, text, strlen(text), show, NULL);
}

LAB_TEST(a_stream_is_cut_into_lines) {
    struct command_lines lines = {0};
    add(&lines, "a\nb");
    assert_string_equal(seen.text, "<a>");
    add(&lines, "c\r\n\n10%\r20%\r");
    assert_string_equal(seen.text, "<a><bc><10%><20%>");
    add(&lines, "end");
    command_lines_end(&lines, show, NULL);
    assert_string_equal(seen.text, "<a><bc><10%><20%><end>");
}

LAB_TEST(colours_are_taken_out) {
    struct command_lines lines = {0};
    add(&lines, "\033[1;32mIter\033[0m 3\033[K\n\033[");
    command_lines_end(&lines, show, NULL);
    assert_string_equal(seen.text, "<Iter 3>");
}

static size_t longest;

static void measure(void *state, const char *text, size_t length) {
    (void)state, (void)text;
    longest = length > longest ? length : longest;
}

LAB_TEST(a_line_without_end_takes_no_memory) {
    struct command_lines lines = {0};
    char chunk[4096];
    memset(chunk, 'x', sizeof chunk);
    for (int i = 0; i < 100; i++)
        command_lines_add(&lines, chunk, sizeof chunk, measure, NULL);
    assert_in_range(lines.capacity, COMMAND_LINE_MAX, 2 * COMMAND_LINE_MAX);
    command_lines_end(&lines, measure, NULL);
    assert_int_equal(longest, COMMAND_LINE_MAX);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
