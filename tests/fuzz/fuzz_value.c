/*
 * fuzz_value.c: any text either fails with a message or reads, and then writes back the same.
 * covers: src/base/value
 */
#include "base/value.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    const char *text = lab_arena_strndup(&arena, (const char *)data, size);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value, *again;
    if (lab_value_parse(text, &arena, &value, &err) == 0) {
        LAB_AUTO(str, out);
        lab_value_write(value, &out);
        if (lab_value_parse(out.text, &arena, &again, &err) < 0 || !lab_value_equal(value, again))
            abort();
    } else if (err.code != LAB_ERR_USER || !err.text[0]) {
        abort();
    }
    return 0;
}
