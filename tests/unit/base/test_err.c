/* test_err.c: how an error's text grows on its way up. */
#include "base/err.h"

#include "test.h"
#include <errno.h>
#include <string.h>

LAB_TEST(context_goes_in_front) {
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_err_set(&err, LAB_ERR_UNSUPPORTED, "no binary for sm_%d", 90), -1);
    assert_int_equal(lab_err_context(&err, "loading kernel '%s'", "softmax"), -1);
    assert_string_equal(err.text, "loading kernel 'softmax': no binary for sm_90");
    assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
}

LAB_TEST(errno_goes_behind) {
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_err_set_errno(&err, LAB_ERR_SYSTEM, ENOENT, "%s", "/x"), -1);
    assert_string_equal(err.text, "/x: No such file or directory");
}

LAB_TEST(no_character_is_cut_in_two) {
    static const char word[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80.";
    static const char *const kept[] = {[1] = "a",
                                       [2] = "a",
                                       [3] = "a\xc3\xa4",
                                       [5] = "a\xc3\xa4",
                                       [6] = "a\xc3\xa4\xe2\x82\xac",
                                       [9] = "a\xc3\xa4\xe2\x82\xac"};
    struct lab_err err = LAB_ERR_INIT;
    for (int i = 1; i < 10; i++)
        if (kept[i]) {
            lab_err_set(&err, LAB_ERR_USER, "'%.*s' is no key", i, word);
            assert_string_equal(err.text, lab_arena_printf(&test_arena, "'%s' is no key", kept[i]));
        }
    lab_err_set(&err, LAB_ERR_USER, "x\xff\x80y");
    assert_string_equal(err.text, "x??y");
    char *long_text = lab_arena_alloc(&test_arena, 40001, 1); /* longer than any buffer there is */
    for (int i = 0; i < 40000; i++)
        long_text[i] = i % 2 ? '\xa4' : '\xc3';
    lab_err_set(&err, LAB_ERR_USER, "-%s", long_text);
    assert_int_equal(strlen(err.text) % 2, 0);
    assert_string_equal(err.text + strlen(err.text) - 2, "\xc3\xa4");
}

/* A hint belongs to the error it was set for: context keeps it, another error drops it. */
LAB_TEST(a_hint_travels_with_its_error) {
    struct lab_err err = LAB_ERR_INIT;
    lab_err_set(&err, LAB_ERR_MEMORY, "full");
    assert_int_equal(err.hint, LAB_HINT_NONE);
    assert_int_equal(lab_err_hint(&err, LAB_HINT_OUT_OF_DEVICE_MEMORY), -1);
    lab_err_context(&err, "opening");
    assert_int_equal(err.hint, LAB_HINT_OUT_OF_DEVICE_MEMORY);
    lab_err_set(&err, LAB_ERR_USER, "another");
    assert_int_equal(err.hint, LAB_HINT_NONE);
    assert_int_equal(lab_err_hint(NULL, LAB_HINT_TIMEOUT), -1);
}

LAB_TEST(errno_has_hints) {
    static const struct {
        int errno_value;
        enum lab_hint_id hint;
    } known[] = {
        {ENOSPC, LAB_HINT_OUT_OF_SPACE},
        {EDQUOT, LAB_HINT_OUT_OF_SPACE},
        {EMFILE, LAB_HINT_OPEN_FILES},
        {ENFILE, LAB_HINT_OPEN_FILES},
        {EACCES, LAB_HINT_PERMISSION},
        {ENOENT, LAB_HINT_NO_SUCH_FILE},
        {EIO, LAB_HINT_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct lab_err err = LAB_ERR_INIT;
        lab_err_set_errno(&err, LAB_ERR_SYSTEM, known[i].errno_value, "x");
        assert_int_equal(err.hint, known[i].hint);
    }
}

/* Names stand in files: each is found again, none twice, and an unknown one is none. */
LAB_TEST(hints_have_names) {
    for (int i = LAB_HINT_NONE + 1; i < LAB_HINT_COUNT; i++)
        assert_int_equal(lab_hint_find(lab_hint((enum lab_hint_id)i)->name), i);
    assert_int_equal(lab_hint_find(""), LAB_HINT_NONE);
    assert_int_equal(lab_hint_find(NULL), LAB_HINT_NONE);
    assert_int_equal(lab_hint_find("of_a_later_version"), LAB_HINT_NONE);
}

LAB_TEST(nobody_has_to_listen) {
    assert_int_equal(lab_err_set(NULL, LAB_ERR_USER, "x"), -1);
    assert_int_equal(lab_err_set_errno(NULL, LAB_ERR_USER, EIO, "x"), -1);
    assert_int_equal(lab_err_context(NULL, "x"), -1);
}

LAB_TEST(a_text_can_be_built_from_itself) {
    struct lab_err err = LAB_ERR_INIT;
    lab_err_set(&err, LAB_ERR_USER, "inner");
    lab_err_set(&err, LAB_ERR_WRONG, "[%s]", err.text);
    assert_string_equal(err.text, "[inner]");
    assert_int_equal(err.code, LAB_ERR_WRONG);
}

LAB_TEST(long_texts_are_cut) {
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct lab_err err = LAB_ERR_INIT;
    lab_err_set(&err, LAB_ERR_USER, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    lab_err_context(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    lab_err_set_errno(&err, LAB_ERR_USER, EIO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

LAB_TEST(a_text_that_is_cut_keeps_both_ends) {
    char word[10001];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    struct lab_err err = LAB_ERR_INIT;
    lab_err_set(&err, LAB_ERR_USER, "unknown workload '%s'; there are gemm and vit", word);
    assert_memory_equal(err.text, "unknown workload 'xxx", 21);
    assert_contains(err.text, "xxx…xxx");
    assert_contains(err.text, "xxx'; there are gemm and vit");
    lab_err_set_errno(&err, LAB_ERR_USER, ENOENT, "%s", word);
    assert_contains(err.text, "xxx: No such file or directory");
    lab_err_set(&err, LAB_ERR_USER, "too small");
    lab_err_context(&err, "%s", word);
    assert_contains(err.text, "xxx: too small");
    for (int i = 0; i + 1 < (int)sizeof word; i += 2) /* é, so that a cut may fall within one */
        memcpy(word + i, "é", 2);
    for (int skip = 0; skip < 2; skip++) {
        lab_err_set(&err, LAB_ERR_USER, "%s%s", skip ? "x" : "", word);
        const char *mark = strstr(err.text, "…");
        assert_non_null(mark);
        assert_memory_equal(mark - 2, "é…é", strlen("é…é"));
    }
}

LAB_TEST(exit_statuses) {
    assert_int_equal(lab_err_exit_status(LAB_ERR_NONE), 0);
    assert_int_equal(lab_err_exit_status(LAB_ERR_USER), 2);
    assert_int_equal(lab_err_exit_status(LAB_ERR_SYSTEM), 1);
    assert_int_equal(lab_err_exit_status(LAB_ERR_MEMORY), 1);
    assert_int_equal(lab_err_exit_status(LAB_ERR_INTERRUPTED), 130);
}
