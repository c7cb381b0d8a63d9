/*
 * test_manual.c: help, man page and completion of a small made-up program, the latter two tried in
 * groff and in the shells themselves, where they are installed; and all of them to the letter.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/subprocess.h"
#include "command/manual/manual.h"

#include "golden.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config {
    bool json, hints;
    int64_t repeat, depth;
    double wait;
    const char *input, *folder, *device, *dtype;
};

static const char *const dtypes[] = {"fp32", "bf16", NULL};

static const struct lab_option run_options[] = {
    {"repeat", LAB_OPTION_INT, offsetof(struct config, repeat), .fallback = "5", .min = 1,
     .max = 1000, .letter = 'r', .help = "how often it runs"},
    {"input", LAB_OPTION_STRING, offsetof(struct config, input), .value_name = "FILE",
     .help = "what to read; it's text"},
    {"output-dir", LAB_OPTION_STRING, offsetof(struct config, folder), .value_name = "DIR",
     .help = "where results go"},
    {NULL},
};

static const char *const selectors[] = {"auto", "cpu", "cpu:0", "cuda", "cuda:0", "sim:", NULL};

static const struct lab_option shared_options[] = {
    {"device", LAB_OPTION_STRING, offsetof(struct config, device), .value_name = "DEVICE",
     .suggestions = selectors, .help = "which devices"},
    {"json", LAB_OPTION_FLAG, offsetof(struct config, json), .letter = 'j',
     .help = "machine-readable output"},
    {"hints", LAB_OPTION_FLAG, offsetof(struct config, hints), .fallback = "true",
     .help = "say what to try next"},
    {NULL},
};

static const struct lab_option vit_keys[] = {
    {"depth", LAB_OPTION_INT, offsetof(struct config, depth), .fallback = "6", .max = 512,
     .help = "layers [each with a backslash \\ and a 'quote']"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct config, dtype), .fallback = "fp32",
     .choices = dtypes, .help = "type of numbers"},
    {"wait", LAB_OPTION_DURATION, offsetof(struct config, wait), .min = 0.001, .max = 60,
     .help = "pause between runs, which is rather long and therefore makes this line wrap around"},
    {"weights", LAB_OPTION_STRING, offsetof(struct config, input), .value_name = "FILE",
     .help = "start from these"},
    {"fast", LAB_OPTION_FLAG, offsetof(struct config, json), .help = "hurry"},
    {NULL},
};

static const struct lab_option *const run_tables[] = {run_options, shared_options, NULL};
static const char *const run_words[] = {"vit", "memcpy", NULL};
static const struct lab_option *const run_keys[] = {vit_keys, NULL};
static const struct lab_manual_section run_sections[] = {
    {"Keys of vit", "All have defaults.", vit_keys}, {NULL}};
static const struct lab_manual_example run_examples[] = {
    {"lab run vit depth=2 -r 3", "a small one, three times"}, {NULL}};

static const struct lab_manual_page run_page = {
    .name = "run",
    .summary = "runs a workload",
    .usage = "WORKLOAD [key=value...]",
    .description = "Runs it, measures it,\nand says how long it took in a sentence that is longer "
                   "than one line.\n\n.A second paragraph begins with a dot:\n\n    as it is   "
                   "written\n\nThe end costs 5 \xc2\xb5s.",
    .tables = run_tables,
    .sections = run_sections,
    .examples = run_examples,
    .words = run_words,
    .word_keys = run_keys,
};
static const struct lab_manual_page open_page = {
    .name = "open", .summary = "looks into files", .usage = "[FILE...]"};
static const struct lab_manual_page version_page = {.name = "version", .summary = "says which"};
static const struct lab_manual_page *const pages[] = {&open_page, &run_page, &version_page, NULL};
static const struct lab_manual manual = {"lab", "1.2", "a made-up program", pages};

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

LAB_TEST(an_overview) {
    lab_manual_overview(&manual, 80, LAB_MANUAL_PLAIN, &out);
    assert_string_equal(out.text, "lab 1.2: a made-up program\n"
                                  "\n"
                                  "Usage: lab COMMAND [option...]\n"
                                  "\n"
                                  "Commands:\n"
                                  "  open     looks into files\n"
                                  "  run      runs a workload\n"
                                  "  version  says which\n"
                                  "\n"
                                  "`lab help COMMAND` shows all about one.\n");
}

LAB_TEST(help_for_a_command) {
    lab_manual_help(&manual, &run_page, 72, LAB_MANUAL_PLAIN, &out);
    assert_string_equal(out.text,
                        "lab run: runs a workload\n"
                        "\n"
                        "Usage: lab run WORKLOAD [key=value...] [option...]\n"
                        "\n"
                        "Runs it, measures it, and says how long it took in a sentence that is\n"
                        "longer than one line.\n"
                        "\n"
                        ".A second paragraph begins with a dot:\n"
                        "\n"
                        "    as it is   written\n"
                        "\n"
                        "The end costs 5 \xc2\xb5s.\n"
                        "\n"
                        "Keys of vit:\n"
                        "  All have defaults.\n"
                        "  depth=N          layers [each with a backslash \\ and a 'quote'] (0 to\n"
                        "                   512; default 6)\n"
                        "  dtype=CHOICE     type of numbers (fp32 or bf16; default fp32)\n"
                        "  wait=TIME        pause between runs, which is rather long and\n"
                        "                   therefore makes this line wrap around (1ms to 1min)\n"
                        "  weights=FILE     start from these\n"
                        "  fast=true|false  hurry\n"
                        "\n"
                        "Options:\n"
                        "  -r, --repeat N        how often it runs (1 to 1000; default 5)\n"
                        "      --input FILE      what to read; it's text\n"
                        "      --output-dir DIR  where results go\n"
                        "      --device DEVICE   which devices\n"
                        "  -j, --json            machine-readable output\n"
                        "      --[no-]hints      say what to try next (default true)\n"
                        "\n"
                        "Examples:\n"
                        "  lab run vit depth=2 -r 3\n"
                        "      a small one, three times\n");
}

LAB_TEST(help_without_options) {
    lab_manual_help(&manual, &version_page, 80, LAB_MANUAL_PLAIN, &out);
    assert_string_equal(out.text, "lab version: says which\n\nUsage: lab version\n");
}

LAB_TEST(no_line_is_wider_than_the_terminal) {
    for (int columns = 50; columns < 130; columns += 7) {
        lab_str_clear(&out);
        lab_manual_help(&manual, &run_page, columns, LAB_MANUAL_PLAIN, &out);
        lab_manual_overview(&manual, columns, LAB_MANUAL_PLAIN, &out);
        for (const char *line = out.text; *line;) {
            size_t length = strcspn(line, "\n");
            int width = lab_str_columns(lab_arena_strndup(&test_arena, line, length));
            assert_true(width <= columns);
            assert_true(length == 0 || line[length - 1] != ' ');
            line += length + 1;
        }
    }
}

LAB_TEST(colour_changes_nothing_else) {
    LAB_AUTO(str, plain);
    LAB_AUTO(str, stripped);
    lab_manual_help(&manual, &run_page, 80, LAB_MANUAL_PLAIN, &plain);
    lab_manual_help(&manual, &run_page, 80, LAB_MANUAL_COLOUR, &out);
    assert_contains(out.text, "\033[1m");
    for (const char *c = out.text; *c; c++) {
        if (*c == '\033')
            c = strchr(c, 'm');
        else
            lab_str_add_bytes(&stripped, c, 1);
    }
    assert_string_equal(stripped.text, plain.text);
}

/* Runs a program on a file that holds `out`; false if the program isn't installed. */
static bool run_with_file(const char *const *argv, const char *name,
                          struct lab_subprocess_result *result) {
    struct lab_err err = LAB_ERR_INIT;
    const char *path = test_path("%s", name);
    if (lab_file_write_atomic(path, out.text, out.length, &err) < 0)
        fail_msg("%s", err.text);
    const char *const env[] = {lab_arena_printf(&test_arena, "FILE=%s", path),
                               lab_arena_printf(&test_arena, "HOME=%s", test_folder()),
                               "LC_ALL=C.UTF-8", NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .env = env, .max_output_bytes = 100000, .timeout_ns = 30 * LAB_NS_PER_S};
    return lab_subprocess_run(&spec, &test_arena, result, &err) == 0;
}

static void is_installed_or_skip(bool installed, const char *name) {
    if (!installed) {
        print_message("%s isn't installed: not tried\n", name);
        skip();
    }
}

LAB_TEST(a_man_page_without_warnings) {
    const char *const argv[] = {"sh", "-c",
                                "command -v groff >/dev/null || exit 77\n"
                                "groff -man -ww -Tutf8 -P-cbou \"$FILE\"",
                                NULL};
    const struct lab_manual_page *const all[] = {NULL, &run_page, &version_page};
    for (int i = 0; i < 3; i++) {
        struct lab_subprocess_result result;
        lab_str_clear(&out);
        lab_manual_man(&manual, all[i], &out);
        assert_true(run_with_file(argv, "page.1", &result));
        is_installed_or_skip(result.exit_status != 77, "groff");
        assert_int_equal(result.exit_status, 0);
        assert_string_equal(result.err, "");
        if (i == 0) {
            assert_contains(result.out, "LAB(1)");
            assert_contains(result.out, "lab - a made-up program");
            assert_contains(result.out, "lab-run(1), lab-version(1)");
        } else if (i == 1) {
            assert_contains(result.out, "lab run WORKLOAD [key=value...] [option...]");
            assert_contains(result.out, ".A second paragraph begins with a dot:");
            assert_contains(result.out, "    as it is   written\n");
            assert_contains(result.out, "5 \xc2\xb5s.");
            assert_contains(result.out, "-r, --repeat N\n");
            assert_contains(result.out, "--hints, --no-hints\n");
            assert_contains(result.out, "depth=N");
            assert_contains(result.out, "a backslash \\ and a 'quote']");
            assert_contains(result.out, "(1 to 1000; default 5)");
        }
    }
}

static const char *complete_in_bash(const char *line) {
    static const char script[] = "cd \"${FILE%/*}\" && source \"$FILE\" || exit 1\n"
                                 "COMP_LINE=$0 COMP_POINT=${#0}\n"
                                 "read -ra COMP_WORDS <<<\"$COMP_LINE\"\n"
                                 "[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')\n"
                                 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                 "_lab\n"
                                 "IFS=' '; echo \"${COMPREPLY[*]}\"\n";
    const char *const argv[] = {"bash", "--norc", "-uc", script, line, NULL};
    struct lab_subprocess_result result;
    if (!run_with_file(argv, "lab.bash", &result))
        return NULL;
    assert_string_equal(result.err, "");
    result.out[strcspn(result.out, "\n")] = '\0';
    return result.out;
}

LAB_TEST(completion_in_bash) {
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"lab ", "open run version"},
        {"lab open inn", "inner"},
        {"lab open input.txt inp", "input.txt"},
        {"lab open inner some=inp", "input.txt"},
        {"lab v", "version"},
        {"lab run ", "vit memcpy"},
        {"lab run m", "memcpy"},
        {"lab run --", "--repeat --input --output-dir --device --json --hints --no-hints"},
        {"lab run --repeat 5 v", "vit"},
        {"lab run -r 5 -j vit ", "depth= dtype= wait= weights= fast="},
        {"lab run vit d", "depth= dtype="},
        {"lab run vit dtype=", "fp32 bf16"},
        {"lab run vit dtype=b", "bf16"},
        {"lab run vit depth=", ""},
        {"lab run vit fast=", "true false"},
        {"lab run memcpy ", ""},
        {"lab run --device ", "auto cpu cpu:0 cuda cuda:0 sim:"},
        {"lab run --device cpu:", "0"},
        {"lab run --device=cu", "cuda cuda:0"},
        {"lab run --input inn", "inner"},
        {"lab run --input=inp", "input.txt"},
        {"lab run vit weights=inp", "input.txt"},
        {"lab run --output-dir in", "inner"},
        {"lab version ", ""},
        {"lab nonsense ", ""},
    };
    const char *const make[] = {"sh", "-c", "cd \"${FILE%/*}\" && mkdir inner && touch input.txt",
                                NULL};
    struct lab_subprocess_result result;
    assert_int_equal(lab_manual_completion(&manual, "bash", &out), 0);
    assert_true(run_with_file(make, "lab.bash", &result));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *answer = complete_in_bash(cases[i].line);
        is_installed_or_skip(answer != NULL, "bash");
        if (strcmp(answer, cases[i].expected) != 0)
            fail_msg("'%s' gives '%s', not '%s'", cases[i].line, answer, cases[i].expected);
    }
}

LAB_TEST(completion_in_fish) {
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"lab ", "open\tlooks into files\nrun\truns a workload\nversion\tsays which\n"},
        {"lab run ", "memcpy\nvit\n"},
        {"lab run --repeat 5 v", "vit\n"},
        {"lab run vit de", "depth=\tlayers [each with a backslash \\ and a 'quote']\n"},
        {"lab run vit dtype=", "dtype=bf16\ttype of numbers\ndtype=fp32\ttype of numbers\n"},
        {"lab run --device=cpu", "--device=cpu\twhich devices\n--device=cpu:0\twhich devices\n"},
        {"lab run --no-h", "--no-hints\tnot so\n"},
        {"lab version ", ""},
    };
    assert_int_equal(lab_manual_completion(&manual, "fish", &out), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const argv[] = {
            "fish", "--no-config", "-c", "source $FILE; complete -C $argv[1]", cases[i].line, NULL};
        struct lab_subprocess_result result;
        bool installed = run_with_file(argv, "lab.fish", &result);
        is_installed_or_skip(installed, "fish");
        assert_string_equal(result.err, "");
        if (strcmp(result.out, cases[i].expected) != 0)
            fail_msg("'%s' gives '%s', not '%s'", cases[i].line, result.out, cases[i].expected);
    }
}

LAB_TEST(completion_in_zsh) {
    assert_int_equal(lab_manual_completion(&manual, "zsh", &out), 0);
    assert_contains(out.text, "#compdef lab\n");
    assert_contains(out.text, "*) _files ;;");
    const char *const argv[] = {"zsh", "-fc", "zsh -fn \"$FILE\"", NULL};
    struct lab_subprocess_result result;
    bool installed = run_with_file(argv, "_lab", &result);
    is_installed_or_skip(installed, "zsh");
    assert_string_equal(result.err, "");
    assert_int_equal(result.exit_status, 0);
}

LAB_TEST(every_form_to_the_letter) {
    static const char *const shells[] = {"bash", "zsh", "fish"};
    uint64_t widths = LAB_HASH_START;
    for (int columns = 0; columns <= 100; columns++) {
        lab_str_clear(&out);
        lab_manual_overview(&manual, columns, LAB_MANUAL_PLAIN, &out);
        for (int i = 0; pages[i]; i++)
            lab_manual_help(&manual, pages[i], columns, LAB_MANUAL_COLOUR, &out);
        widths = lab_hash_text(widths, out.text);
    }
    lab_str_printf(&out, "of all widths: %016llx\n", (unsigned long long)widths);
    for (int i = 0; pages[i]; i++)
        lab_manual_man(&manual, i ? pages[i] : NULL, &out);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lab_manual_completion(&manual, shells[i], &out), 0);
    assert_golden(out.text, "manual.txt");
}

LAB_TEST(an_unknown_shell) {
    assert_int_equal(lab_manual_completion(&manual, "tcsh", &out), -1);
    assert_int_equal(out.length, 0);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
