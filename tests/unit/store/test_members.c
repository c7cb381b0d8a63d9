/* test_members.c: what may be spliced into a JSON document is what a parser of JSON accepts. */
#include "store_fixture.h"

#include "store/study/members.h"

#include "base/json.h"

static bool parses(const char *text, size_t length) {
    struct lab_value *value;
    LAB_AUTO(arena, scratch);
    err = LAB_ERR_INIT;
    bool good = lab_json_parse(text, length, NULL, &scratch, &value, &err) == 0;
    return good;
}

LAB_TEST(members_are_found_as_they_stand) {
    struct lab_members members = LAB_MEMBERS_INIT, inner = LAB_MEMBERS_INIT;
    const char *text =
        " {\"a\" : {\"b\": [1, {\"c\": 2}], \"d\": \"}\"} ,\n\"e\":-0.5e+3, \"f\": \"\\\"\"} ";
    assert_int_equal(lab_members_read(&members, text), 0);
    assert_int_equal(members.count, 3);
    const struct lab_member *member = lab_members_find(&members, "e");
    assert_int_equal(member->value_length, 7);
    assert_memory_equal(member->value, "-0.5e+3", 7);
    assert_int_equal(lab_members_read_value(&inner, lab_members_find(&members, "a")), 0);
    assert_int_equal(inner.count, 2);
    assert_memory_equal(lab_members_find(&inner, "d")->value, "\"}\"", 3);
    assert_null(lab_members_find(&members, "b"));
    assert_null(lab_members_find(&members, ""));
    assert_int_equal(lab_members_read_value(&inner, member), -1);
    assert_int_equal(inner.count, 0);
    assert_int_equal(lab_members_read(&members, "{\"a\": 1} {}"), -1);
    assert_int_equal(members.count, 0);
    lab_members_release(&members);
    lab_members_release(&inner);
}

LAB_TEST(deep_nesting_is_refused) {
    char text[100001];
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(lab_members_check(text));
}

/* Texts with a byte or two changed: both agree, but for what only a parser that converts can
 * see. */
LAB_TEST(it_agrees_with_the_parser) {
    static const char original[] = "{\"rate\": -850.5e2, \"ok\": [true, false, null, "
                                   "\"\\u00e9\\n\", 0], \"n\": {\"é\": 10, \"x\": {}}}";
    static const char bytes[] = "{}[]\":,.-+eE0179 \n\\u\xc3\xa9nt\x01\x7f";
    enum { LENGTH = sizeof original - 1, ROUNDS = 20000 };
    uint64_t random = 42;
    int accepted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char text[LENGTH + 1];
        memcpy(text, original, sizeof text);
        for (int change = 0; change < 1 + round % 2; change++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[(random >> 33) % LENGTH] = bytes[(random >> 20) % (sizeof bytes - 1)];
        }
        bool checked = lab_members_check(text);
        if (parses(text, LENGTH))
            assert_true(checked);
        else if (checked && !strstr(err.text, "duplicate") && !strstr(err.text, "overflow") &&
                 !strstr(err.text, "Unicode") && !strstr(err.text, "\\u0000"))
            fail_msg("%s: accepted, but %s", text, err.text);
        accepted += checked;
    }
    assert_true(accepted > ROUNDS / 50 && accepted < ROUNDS / 2);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
