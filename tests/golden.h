/* golden.h: text that a test makes, compared with a file of tests/golden. GOLDEN_UPDATE=1 writes those
 * anew; look at them before they are committed. */
#pragma once

#include "base/file/file.h"

#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compares with tests/golden/<name>. */
static inline void assert_golden(const char *text, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", LAB_TEST_SOURCE_DIR, name);
    struct lab_err err = LAB_ERR_INIT;
    const char *update = getenv("GOLDEN_UPDATE");
    if (update && strcmp(update, "1") == 0) {
        assert_int_equal(lab_file_write_atomic(path, text, strlen(text), &err), 0);
        return;
    }
    struct lab_arena arena;
    lab_arena_init(&arena);
    char *expected;
    size_t length;
    if (lab_file_read(path, (size_t)1 << 20, &arena, &expected, &length, &err) < 0)
        fail_msg("%s", err.text);
    if (strcmp(expected, text) != 0)
        fail_msg("differs from tests/golden/%s:\n%s", name, text);
    lab_arena_release(&arena);
}
