/* A command as its words, and what is filled into them. */
#include "workload/command/command.h"

#include "test.h"

static struct lab_err err;

static int set_up(void **state) {
    (void)state;
    err = LAB_ERR_INIT;
    return 0;
}

static struct lab_value *value_of(const char *text) {
    struct lab_value *value;
    if (lab_value_parse(text, &test_arena, &value, &err) < 0)
        fail_msg("%s", err.text);
    return value;
}

/* The words with a '|' between them. */
static const char *split(const struct lab_value *command) {
    const char **words;
    int count;
    if (command_words(command, &test_arena, &words, &count, &err) < 0)
        return NULL;
    assert_null(words[count]);
    LAB_AUTO(str, text);
    for (int i = 0; i < count; i++)
        lab_str_printf(&text, "%s%s", i ? "|" : "", words[i]);
    const char *kept = lab_arena_strdup(&test_arena, text.text);
    return kept;
}

LAB_TEST(words_are_split_as_a_shell_would) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"python3 train.py", "python3|train.py"},
        {"  a\tb\n c ", "a|b|c"},
        {"a 'b c' \"d e\"", "a|b c|d e"},
        {"a b' 'c\" \"d", "a|b c d"},
        {"a '' \"\"", "a||"},
        {"a b\\ c \\' \\\\", "a|b c|'|\\"},
        {"a 'b\\c' \"d\\e\\\"f\"", "a|b\\c|d\\e\"f"},
        {"a $HOME *.py ~ `b`", "a|$HOME|*.py|~|`b`"},
        {"awk '{{print $1}}' \"|\"", "awk|{{print $1}}||"},
        {"a é", "a|é"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(split(lab_value_string(&test_arena, cases[i].text)), cases[i].words);
}

LAB_TEST(a_list_is_its_words) {
    assert_string_equal(split(value_of("[sh, -c, 'a | b', 3, 0.1, true]")),
                        "sh|-c|a | b|3|0.1|true");
    assert_string_equal(split(value_of("true")), "true"); /* a program, too */
}

LAB_TEST(what_is_no_command_is_refused) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"a 'b", "single quote is never closed: a 'b"},
        {"a \"b", "double quote is never closed"},
        {"a b\\", "ends in a backslash"},
        {"a | b", "no shell is started that would understand '|'"},
        {"a > b", "'>'"},
        {"", "is empty"},
        {"'' a", "is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(split(lab_value_string(&test_arena, cases[i].text)));
        assert_int_equal(err.code, LAB_ERR_USER);
        if (!strstr(err.text, cases[i].part))
            fail_msg("no '%s' in: %s", cases[i].part, err.text);
    }
    assert_null(split(NULL));
    assert_contains(err.text, "command is missing");
    assert_null(split(value_of("{a: 1}")));
    assert_null(split(value_of("[a, [b]]")));
    assert_null(split(value_of("[]")));
}

/* --- placeholders --- */

static const struct lab_device_ref ref = {.name = "cpu:0/2.1", .unit = 0};
static const struct lab_rank rank = {.ref = &ref,
                                     .numa_node = 1,
                                     .index = 1,
                                     .count = 4,
                                     .seed = 42,
                                     .gpu_id = 3,
                                     .repeat = 2,
                                     .port = 4711,
                                     .run_id = "gpu3_numa1_lr0.1",
                                     .folder = "/tmp/study"};

static const char *fill(const char *text, const char *matrix) {
    struct lab_value *map = value_of(matrix);
    if (command_check_matrix(map, &err) < 0 ||
        command_check_text("command", text, map, NULL, &err) < 0)
        fail_msg("%s", err.text);
    LAB_AUTO(str, out);
    command_fill(text, map, &rank, &out);
    const char *kept = lab_arena_strdup(&test_arena, out.text);
    return kept;
}

LAB_TEST(numbers_are_filled_in_as_they_were_written) {
    assert_string_equal(fill("--lr={lr}", "{lr: 0.1}"), "--lr=0.1");
    assert_string_equal(fill("{a}{b}{a}", "{a: 500, b: -1.5e-7}"), "500-1.5e-07500");
    assert_string_equal(fill("{a} {b} {c}", "{a: true, b: null, c: 'x y {lr}'}"),
                        "true null x y {lr}"); /* filled once, not again */
    assert_string_equal(fill("{a.b}{c-d}", "{a.b: 1, c-d: 2}"), "12");
}

LAB_TEST(a_run_knows_where_it_is) {
    assert_string_equal(fill("{gpu_id},{numa_node},{seed},{rank}/{world_size}", "{}"),
                        "3,1,42,1/4");
    assert_string_equal(fill("{output_dir}/{run_id} {device}", "{}"),
                        "/tmp/study/gpu3_numa1_lr0.1 cpu:0/2.1");
    assert_string_equal(fill("{seed}", "{seed: 7}"), "7"); /* the matrix goes first */
    assert_string_equal(fill("{gpu_ids}/{gpu_count} {repeat} {port}", "{}"), "0/1 2 4711");
}

LAB_TEST(doubled_braces_are_braces) {
    assert_string_equal(fill("{{\"a\": {{\"b\": {x}}}}}", "{x: 1}"), "{\"a\": {\"b\": 1}}");
    assert_string_equal(fill("{{x}} a} {{", "{x: 1}"), "{x} a} {");
}

LAB_TEST(unknown_names_suggest_the_nearest) {
    struct lab_value *matrix = value_of("{lr: 0.1, max_iters: 500}");
    assert_int_equal(command_check_text("command", "--it {max_iter}", matrix, NULL, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "unknown placeholder {max_iter}; did you mean {max_iters}?");
    assert_contains(err.text, "There are {lr}, {max_iters}, {gpu_id}");
    assert_int_equal(command_check_text("command", "{}", matrix, NULL, &err), -1);
    assert_contains(err.text, "write {{ for a brace");
    assert_int_equal(command_check_text("command", "{print $1}", matrix, NULL, &err), -1);
    assert_int_equal(command_check_text("command", "a {lr", matrix, NULL, &err), -1);
    assert_int_equal(command_check_text("command", "{lr}", NULL, NULL, &err), -1);
}

LAB_TEST(a_matrix_has_single_values) {
    assert_int_equal(command_check_matrix(NULL, &err), 0);
    assert_int_equal(command_check_matrix(value_of("[1]"), &err), -1);
    assert_int_equal(command_check_matrix(value_of("{1a: 1}"), &err), -1);
    static const char *const bad[] = {"{a: [1, 2]}", "{a: {b: 1}}", "{a: inf}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(command_check_text("command", "{a}", value_of(bad[i]), NULL, &err), -1);
        assert_contains(err.text, "put it in quotes");
        /* what isn't used does no harm */
        assert_int_equal(command_check_text("command", "a", value_of(bad[i]), NULL, &err), 0);
    }
}

LAB_TEST(a_text_tells_what_it_uses) {
    assert_true(command_text_uses("a {lr} b", "lr"));
    assert_false(command_text_uses("a {lr} b", "l"));
    assert_false(command_text_uses("a {{lr}} b", "lr"));
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
