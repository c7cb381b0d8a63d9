/* The user's patterns: what they read, which are refused, and which one is suggested. */
#include "command_fixture.h"

/* What a line says to one pattern: "loss=3.21@120"; "" = it doesn't match. */
static const char *reads(const char *pattern, const char *line) {
    struct lab_value *metrics = lab_value_map(&test_arena);
    struct command_reader *reader;
    lab_value_set_string(&test_arena, metrics, "patterns", pattern);
    lab_value_set_bool(&test_arena, metrics, "printed", false);
    if (command_reader_make(metrics, &test_arena, &reader, &err) < 0)
        fail_msg("%s", err.text);
    lab_str_clear(&seen);
    read_line(reader, line);
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
        assert_string_equal(reads(ITER, lines[i]), "loss=3.21@120");
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
    assert_string_equal(reads(ITER, "Iter a Iter 120 loss x Iter 5 loss 2"), "loss=2@5");
    assert_string_equal(reads("{a}/{b} done", "at 3 of 7/9 done"), "a=7 b=9");
    assert_string_equal(reads("E {epoch} l {l}", "E 2 l 7"), "epoch=2@e2 l=7@e2");
}

LAB_TEST(a_star_is_anything_as_little_as_will_do) {
    assert_string_equal(reads("Final * {final}", "Final loss 0.93 after 7"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Final: 0.93"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Final accuracy top5 0.93"), "final=0.93");
    assert_string_equal(reads("Final*{final}", "Final (top5): 0.93"), "final=0.93");
    assert_string_equal(reads("Final * {final}", "Finalist 3"), "");
    assert_string_equal(reads("a * b * {x}", "a b 1 b 2"), "x=1");
    assert_string_equal(reads("step {step}/* loss {loss}", "step 3/10 | loss 1e-3"),
                        "loss=0.001@3");
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
        {"x 1,23", "x=1.23"},
        {"x 1234,567", "x=1234.567"},
        {"x 1,23 at 0.5", "x=1"},
        {"x 1,5,7", "x=1"},
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

LAB_TEST(a_name_of_a_pattern_may_come_again_in_another_line) {
    const struct command_reader *reader = reader_of("{patterns: ['gap {gap} end']}");
    struct command_reading reading = {0};
    static const char *const lines[] = {"gap 3.5 end", "step 2 gap 2.5 loss 4"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        command_reader_line(reader, &reading, lines[i], strlen(lines[i]), note, NULL);
    command_reading_release(&reading);
    assert_string_equal(seen.text, "gap=3.5 gap=2.5@2 loss=4@2");
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
        {"{direction: lower}", "metrics.direction: must be a map"},
        {"{direction: {x: down}}", "metrics.direction.x: must be higher, lower or none"},
        {"{direction: {x: 1}}", "metrics.direction.x: must be higher, lower or none"},
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

/* --- suggestions --- */

LAB_TEST(a_line_is_shown_with_a_pattern_that_reads_it) {
    static const struct {
        const char *lines, *part; /* of what is said */
    } cases[] = {
        {"objective = 3.4 at 12\n", "the pattern 'objective {objective} at {step}' would"},
        {"[rank0]: objective = 3.4 at 12\n", "'objective {objective} at {step}' would"},
        {"alpha: 0.5\nobj 3.5 lr 2\nobj 3.4 lr 2\nobj 3.3 lr 2\n", "'obj {obj} lr {lr}' would"},
        {"t=12 | obj: 5 (+2) | gap -1.5%\n", "'t {t} | obj {obj} (*) | gap {gap}' would"},
        {"time 12.5ms obj 3\n", "'time {time}ms obj {obj}' would"},
        {"objective function value -> 11.5 after iteration no. 4\n",
         "'value -> {value} after iteration no. {iteration}' would"},
        {"score at 6 -> 18.5 points\n", "'at {step} -> {score}' would"},
        {"objective is now 51 after 49 rounds\n",
         "'objective is now {objective} after {step}' would"},
        {"<<44>> obj~0.02; gap->88\n", "'obj~{obj}; gap->{gap}' would"},
        {"frame 200 => 2.03 px\n", "'frame {frame} > {px}' would"},
        {"[300] 2.3 0.13\n", "'[{step}] {value1} {value2}' would"},
        {"[I 2026-11-18 10:00:01,000] Trial 1 finished with value: 0.7 and parameters: {'x': 1}\n",
         "'Trial {trial} finished with value {value}' would"},
        /* none: a line of the output is shown all the same */
        {"Loading 12 files from /data/v1.2.3\nready\n", "such as 'Loading 12 files from /data"},
        {"2026-11-17 16:02:17 ready\n127.0.0.1:29500\n", "such as '127.0.0.1:29500'"},
        {"no number\n{'a': 3.5\n\tit's x: 3.5\n", "such as 'it's x: 3.5'"},
        {"ready\n  \n", "such as 'ready'; lines such as 'step 10 loss 2.5' are read; all "
                        "of it: logs/<run>.stdout, logs/<run>.stderr"},
        {"", "it printed nothing on stdout and stderr"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_suggestions *all = command_suggestions_make(&test_arena);
        for (const char *line = cases[i].lines; *line; line += strcspn(line, "\n") + 1)
            command_suggestions_add(all, line, strcspn(line, "\n"));
        const char *text = command_suggestions_text(all, &test_arena);
        if (!strstr(text, cases[i].part))
            fail_msg("'%s': %s", cases[i].lines, text);
        const char *pattern = strstr(text, "the pattern '"), *end = strstr(text, "' would");
        if (pattern &&
            !*reads(lab_arena_strndup(&test_arena, pattern + 13, (size_t)(end - pattern) - 13),
                    strstr(text, "its line '") + 10))
            fail_msg("'%s': reads nothing", text);
    }
    static const char wide[] = {0, 'l', 0, 'o', 0, 's', 0, 's', 0, ' ', 0, '3', 0};
    struct command_suggestions *all = command_suggestions_make(&test_arena);
    command_suggestions_add(all, wide, sizeof wide);
    assert_non_null(strstr(command_suggestions_text(all, &test_arena), "its output is UTF-16"));
    assert_string_equal(reads("value -> {value} after iteration no. {iteration}",
                              "objective function value -> 11.5 after iteration no. 4"),
                        "value=11.5@4");
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

/* Given a bar that the next one will end, then it is given when it is looked for, and once. */
LAB_TEST(a_bar_is_read_before_its_end) {
    struct command_lines lines = {0};
    add(&lines, "loss 2.5");
    command_lines_look(&lines, show, NULL);
    add(&lines, "\n\r 10% 1/10 [00:01, 2it/s]");
    assert_string_equal(seen.text, "<loss 2.5>");
    command_lines_look(&lines, show, NULL);
    command_lines_look(&lines, show, NULL);
    assert_string_equal(seen.text, "<loss 2.5>< 10% 1/10 [00:01, 2it/s]>");
    add(&lines, "\r 20% 2/10 [");
    command_lines_look(&lines, show, NULL);
    assert_string_equal(seen.text, "<loss 2.5>< 10% 1/10 [00:01, 2it/s]>");
    add(&lines, "00:02]\033[A");
    command_lines_look(&lines, show, NULL);
    command_lines_end(&lines, show, NULL);
    assert_string_equal(seen.text, "<loss 2.5>< 10% 1/10 [00:01, 2it/s]>< 20% 2/10 [00:02]>");
}

LAB_TEST(colours_are_taken_out) {
    struct command_lines lines = {0};
    add(&lines,
        "\033[1;32mIter\033[0m 3\033[K\n\033(B\033[mIter\033]0;title\033\\ 4\033]2;x\a\n\033[");
    command_lines_end(&lines, show, NULL);
    assert_string_equal(seen.text, "<Iter 3><Iter 4>");
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
