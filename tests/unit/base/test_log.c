/* test_log.c: messages reach the sink that was set, and no other. */
#include "base/log.h"

#include "test.h"
#include <stdio.h>
#include <string.h>

struct heard {
    int count;
    enum lab_log_level level;
    char text[2000];
};

static void hear(enum lab_log_level level, const char *text, void *state) {
    struct heard *heard = state;
    heard->count++;
    heard->level = level;
    snprintf(heard->text, sizeof heard->text, "%s", text);
}

LAB_TEST(levels_above_the_limit_are_dropped) {
    struct heard heard = {0};
    lab_log_set_sink(hear, &heard, LAB_LOG_INFO);
    lab_log(LAB_LOG_WARNING, "GPU %d is hot", 3);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.level, LAB_LOG_WARNING);
    assert_string_equal(heard.text, "GPU 3 is hot");
    lab_log(LAB_LOG_DEBUG, "detail");
    assert_int_equal(heard.count, 1);
    assert_true(lab_log_enabled(LAB_LOG_INFO));
    assert_false(lab_log_enabled(LAB_LOG_DEBUG));
    lab_log_set_sink(NULL, NULL, LAB_LOG_DEBUG);
    lab_log(LAB_LOG_ERROR, "nobody hears this");
    assert_int_equal(heard.count, 1);
    assert_false(lab_log_enabled(LAB_LOG_ERROR));
}

LAB_TEST(long_messages_are_cut) {
    struct heard heard = {0};
    lab_log_set_sink(hear, &heard, LAB_LOG_INFO);
    lab_log(LAB_LOG_INFO, "%5000d", 1);
    assert_int_equal(heard.count, 1);
    assert_int_equal(strlen(heard.text), 1023);
    lab_log_set_sink(NULL, NULL, LAB_LOG_INFO);
}

LAB_TEST(levels_have_names) {
    for (int i = LAB_LOG_ERROR; i <= LAB_LOG_DEBUG; i++) {
        enum lab_log_level level;
        assert_int_equal(lab_log_level_parse(lab_log_level_name((enum lab_log_level)i), &level), 0);
        assert_int_equal(level, i);
    }
    enum lab_log_level level;
    assert_int_equal(lab_log_level_parse("loud", &level), -1);
}
