/*
 * override_fixture.h: reading words in tests. What a word means is compared as text: its values as
 * they are written back, joined by commas; types show in it (1, 1.0, '1').
 */
#pragma once

#include "compose/override.h"

#include "test.h"
#include <string.h>

static inline struct lab_override parse(const char *word) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_override override = {0};
    if (lab_override_parse(word, &test_arena, &override, &err) < 0)
        fail_msg("'%s' isn't read: %s", word, err.text);
    assert_string_equal(override.text, word);
    return override;
}

/* The error starts with the word, then the column. */
static inline void refuses(const char *word, const char *gist) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_override override = {.column_count = -7};
    if (lab_override_parse(word, &test_arena, &override, &err) == 0)
        fail_msg("'%s' was taken", word);
    assert_int_equal(override.column_count, -7);
    assert_int_equal(err.code, LAB_ERR_USER);
    if (strncmp(err.text, word, strlen(word)) != 0 || !strstr(err.text, ": column "))
        fail_msg("'%s' isn't placed: %s", word, err.text);
    if (!strstr(err.text + strlen(word), gist))
        fail_msg("'%s': '%s' lacks '%s'", word, err.text, gist);
}

static inline const char *values_of(const struct lab_override *override) {
    LAB_AUTO(str, out);
    for (int i = 0; i < lab_override_count(override); i++) {
        lab_str_add(&out, i > 0 ? "," : "");
        lab_value_write(lab_override_value(override, i), &out);
    }
    const char *text = lab_arena_strdup(&test_arena, out.text);
    return text;
}

/* `k=<value>` is one value. */
static inline void is_one(const char *value, const char *expected) {
    struct lab_override override = parse(lab_arena_printf(&test_arena, "k=%s", value));
    if (override.sweep != LAB_SWEEP_NONE)
        fail_msg("'%s' is a sweep", value);
    assert_string_equal(values_of(&override), expected);
}

/* `k=<value>` is a sweep over values. */
static inline void sweeps(const char *value, const char *expected) {
    struct lab_override override = parse(lab_arena_printf(&test_arena, "k=%s", value));
    if (override.sweep != LAB_SWEEP_VALUES)
        fail_msg("'%s' is no sweep", value);
    assert_string_equal(values_of(&override), expected);
}
