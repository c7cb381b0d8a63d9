/*
 * fuzz_json.c: any bytes either fail with a message or read, and then write back the same.
 * covers: src/base/json.c
 */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value, *again;
    if (lab_json_parse((const char *)data, size, "f", &arena, &value, &err) == 0) {
        LAB_AUTO(str, out);
        lab_json_write(value, size % 3, &out);
        if (lab_json_parse(out.text, out.length, "again", &arena, &again, &err) < 0 ||
            !lab_value_equal(value, again))
            abort();
    } else if (err.code != LAB_ERR_USER || !err.text[0]) {
        abort();
    }
    return 0;
}
