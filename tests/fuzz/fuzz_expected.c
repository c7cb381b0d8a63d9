/*
 * fuzz_expected.c: a file of expected values is refused with words, or its values are positive and
 * its tolerances below 1. The same bytes as a kernel log give Xids or none.
 * covers: src/check/expected.c src/device/health.c
 */
#include "check/check.h"
#include "device/health.h"
#include "folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_expected expected;
    struct lab_health health = {0};
    if (lab_expected_read((const char *)data, size, "f.yaml", &arena, &expected, &err) < 0) {
        require_error(&err);
    } else {
        require(expected.model && *expected.model && expected.origin);
        for (int i = 0; i < expected.count; i++)
            require(expected.values[i].value > 0 && expected.values[i].tolerance < 1);
    }
    lab_health_read_xids(folder_write("kmsg", data, size), &arena, &health);
    require(!health.xids_unknown);
    return 0;
}
