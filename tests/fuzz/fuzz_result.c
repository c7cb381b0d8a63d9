/*
 * fuzz_result.c: any bytes either fail with a message or are a result, and then pack and unpack to
 * the same, are written as JSON and read back, and outlive their copy.
 * covers: src/model/result
 */
#include "model/result.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(const struct lab_result *result, struct lab_arena *arena) {
    struct lab_result again;
    LAB_AUTO(str, packed);
    LAB_AUTO(str, twice);
    lab_result_pack(result, SIZE_MAX / 2, &packed);
    if (lab_result_unpack(packed.text, packed.length, arena, &again, NULL) < 0)
        abort();
    lab_result_pack(lab_result_copy(&again, arena), SIZE_MAX / 2, &twice);
    if (packed.length != twice.length || memcmp(packed.text, twice.text, packed.length) != 0)
        abort();
}

/* What JSON can't hold, such as an item without its key, is lost at the first writing. */
static void check_json(const struct lab_result *result, struct lab_arena *arena) {
    struct lab_value *maps[3];
    for (int i = 0; i < 3; i++) {
        maps[i] = lab_result_value(result, LAB_RESULT_RANK_VIEW, NULL, arena);
        result = lab_result_read(maps[i], arena);
    }
    if (!lab_value_equal(maps[1], maps[2]))
        abort();
    lab_result_value(result, LAB_RESULT_RUN_VIEW, NULL, arena);
    lab_result_value(result, LAB_RESULT_FILE_VIEW, NULL, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_result result;
    /* no room behind the last byte, so that the sanitizer sees any read there */
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        abort();
    if (size)
        memcpy(bytes, data, size);
    if (lab_result_unpack(bytes, size, &arena, &result, &err) == 0) {
        check_bytes(&result, &arena);
        check_json(&result, &arena);
    } else if (err.code != LAB_ERR_SYSTEM || !err.text[0]) {
        abort();
    }
    free(bytes);
    return 0;
}
