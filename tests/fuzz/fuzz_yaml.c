/*
 * fuzz_yaml.c: any bytes either fail with a message or read, and then write back the same.
 * covers: src/base/yaml
 */
#include "base/yaml/yaml.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value, *again;
    struct lab_yaml_limits limits = {1 << 16, 20000, 32};
    if (lab_yaml_parse((const char *)data, size, "f", limits, &arena, &value, &err) == 0) {
        LAB_AUTO(str, out);
        lab_yaml_write(value, &out);
        if (lab_yaml_parse(out.text, out.length, "again", LAB_YAML_LIMITS, &arena, &again, &err) <
                0 ||
            !lab_value_equal(value, again))
            abort();
    } else if (err.code != LAB_ERR_USER || !err.text[0]) {
        abort();
    }
    return 0;
}
