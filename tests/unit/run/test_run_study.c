/* test_run_study.c: the words of `gpulab run`: which become what, and what a study's file says. */
#include "base/file/own.h"
#include "run/run_study.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct lab_config_path built_in;

/* The overrides that words become, or the error. */
static const char *expand(const char *device, const char *const *words) {
    struct lab_override *overrides;
    struct lab_err err = LAB_ERR_INIT;
    int count = 0, made;
    const char *text = "";
    while (words[count])
        count++;
    if (lab_run_words(&built_in, device, words, count, &test_arena, &overrides, &made, &err) < 0) {
        assert_int_equal(err.code, LAB_ERR_USER);
        return lab_arena_strdup(&test_arena, err.text);
    }
    for (int i = 0; i < made; i++)
        text = lab_arena_printf(&test_arena, "%s%s%s", text, i ? " " : "", overrides[i].text);
    return text;
}

#define EXPAND(device, ...) expand(device, (const char *const[]){__VA_ARGS__, NULL})

LAB_TEST(words_become_overrides) {
    assert_string_equal(expand(NULL, (const char *const[]){NULL}), "");
    assert_string_equal(EXPAND(NULL, "quick_test"), "experiment=quick_test");
    assert_string_equal(EXPAND(NULL, "seed=7", "quick_test", "~device"),
                        "seed=7 experiment=quick_test ~device");
    assert_string_equal(EXPAND("cpu", "quick_test"), "device='cpu' experiment=quick_test");
    assert_string_equal(EXPAND("cuda:0,1", "seed=1"), "device='cuda:0,1' seed=1");
    assert_string_equal(EXPAND("a'b", "seed=1"), "device='a\\'b' seed=1");
    assert_string_equal(EXPAND(NULL, "quick_test,numa_study"), "experiment=quick_test,numa_study");
    assert_string_equal(EXPAND(NULL, "glob(quick*)"), "experiment=glob(quick*)");
    /* refused */
    assert_string_equal(EXPAND(NULL, "quick_test", "numa_study"),
                        "'numa_study' after 'quick_test': one study at a time; its keys are "
                        "changed by key=value");
    assert_contains(EXPAND(NULL, "quikc_test"),
                    "there is no study 'quikc_test' (did you mean 'quick_test'?); there are ");
    assert_contains(EXPAND(NULL, "zebra"), "there is no study 'zebra'; there are ");
    assert_null(strstr(EXPAND(NULL, "zebra"), "a key is changed"));
    assert_contains(EXPAND(NULL, "test.seed"), "; a key is changed by key=value");
    assert_contains(EXPAND(NULL, "quick_test", "seed=a=b"), "column 7");
}

LAB_TEST(several_trackers_are_a_list_and_no_sweep) {
    static const struct {
        const char *word;
        enum lab_sweep_kind sweep;
        int count; /* of values in the list; 0 = none */
    } cases[] = {{"tracker=wandb,mlflow", LAB_SWEEP_NONE, 2},
                 {"tracker=wandb", LAB_SWEEP_NONE, 0},
                 {"seed=1,2,3", LAB_SWEEP_VALUES, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_override *overrides;
        int count;
        ASSERT_OK(lab_run_words(&built_in, NULL, &cases[i].word, 1, &test_arena, &overrides, &count,
                                err));
        assert_int_equal(count, 1);
        assert_int_equal(overrides[0].sweep, cases[i].sweep);
        const struct lab_value *list =
            cases[i].sweep == LAB_SWEEP_NONE ? overrides[0].value : overrides[0].values;
        assert_int_equal(list->type == LAB_VALUE_LIST ? list->count : 0, cases[i].count);
        if (cases[i].sweep == LAB_SWEEP_NONE)
            assert_null(overrides[0].values);
    }
}

LAB_TEST(the_comment_at_the_head_is_what_a_file_says) {
    static const struct {
        const char *file, *comment, *summary;
    } cases[] = {
        {"", "", ""},
        {"key: 1\n# behind\n", "", ""},
        {"# One.\n#Two\n#\n# @package x\nkey: 1\n# later\n", "One.\nTwo\n\n", "One"},
        {"# @package x\n# What?\n", "What?\n", "What?"},
        {"# No mark", "No mark\n", "No mark"},
        {"# Is it v1.2? Who knows! Some.\n", "Is it v1.2? Who knows! Some.\n", "Is it v1.2?"},
        {"# Stop! Now.\n", "Stop! Now.\n", "Stop!"},
        {"# It runs\n# on. And on.\n", "It runs\non. And on.\n", "It runs on"},
        {"# Its end.\n# More.\n", "Its end.\nMore.\n", "Its end"},
        {"# Trailing  \n", "Trailing  \n", "Trailing"},
        {"#   In\n", "  In\n", "  In"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(lab_run_comment(cases[i].file, &test_arena), cases[i].comment);
        assert_string_equal(lab_run_summary(cases[i].file, &test_arena), cases[i].summary);
    }
}

LAB_TEST(a_command_can_be_pasted) {
    const char *const words[] = {"quick_test", "a='b c'", "d=$e", NULL};
    assert_string_equal(lab_run_command(NULL, &test_arena), "gpulab run");
    assert_string_equal(lab_run_command(&words[3], &test_arena), "gpulab run");
    assert_string_equal(lab_run_command(words, &test_arena),
                        "gpulab run quick_test 'a='\\''b c'\\''' 'd=$e'");
}

static const char *path_text(const char *config_dir) {
    struct lab_config_path path = lab_run_path(config_dir, &test_arena);
    const char *text = "";
    for (int i = 0; path.folders[i]; i++)
        text = lab_arena_printf(&test_arena, "%s%s;", text, path.folders[i]);
    return text;
}

LAB_TEST(the_asked_for_folder_comes_before_the_users) {
    const char *user = test_path("gpulab");
    setenv("XDG_CONFIG_HOME", lab_arena_strndup(&test_arena, user, strlen(user) - 7), 1);
    assert_string_equal(path_text(NULL), "");
    assert_string_equal(path_text("conf"), "conf;");
    assert_int_equal(lab_own_new_folder(user), 0);
    assert_string_equal(path_text(NULL), lab_arena_printf(&test_arena, "%s;", user));
    assert_string_equal(path_text("conf"), lab_arena_printf(&test_arena, "conf;%s;", user));
}

LAB_TEST(a_studys_file_is_read_by_its_name) {
    const char *text, *origin;
    size_t length;
    ASSERT_OK(
        lab_run_read_study(&built_in, "quick_test", &test_arena, &text, &length, &origin, err));
    assert_int_equal(length, strlen(text));
    assert_contains(text, "experiment");
    assert_contains(origin, "experiment/quick_test.yaml");
    assert_true(lab_run_is_study(&built_in, "quick_test", &test_arena));
    assert_false(lab_run_is_study(&built_in, "quick", &test_arena));
    ASSERT_FAILS(lab_run_read_study(&built_in, "slow", &test_arena, &text, &length, &origin, err),
                 LAB_ERR_USER, "there is no study 'slow'");
    /* a preset's by the end of its name, where that is its alone */
    ASSERT_OK(lab_run_read_study(&built_in, "quick", &test_arena, &text, &length, &origin, err));
    assert_contains(origin, "experiment/matrix/quick.yaml");
}
