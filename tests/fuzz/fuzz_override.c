/*
 * fuzz_override.c: any word either fails with a message or reads, and then its values, written out
 * by themselves, read back the same. Of long sweeps the first values are enough.
 * covers: src/compose/override
 */
#include "compose/override.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECKED 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const struct lab_value *value, struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_override again;
    LAB_AUTO(str, word);
    lab_str_add(&word, "k=");
    lab_value_write(value, &word);
    if (lab_override_parse(word.text, arena, &again, &err) < 0 || again.sweep != LAB_SWEEP_NONE ||
        !lab_value_equal(again.value, value))
        abort();
}

static void check_key(const char *key, struct lab_arena *arena) {
    struct lab_err err = LAB_ERR_INIT;
    const char **parts = NULL;
    if (lab_key_split(key, arena, &parts, &err) < 0 || !parts[0] || !parts[0][0])
        abort();
}

static void check_zip(const struct lab_override *word, struct lab_arena *arena) {
    for (int c = 0; c < word->column_count; c++) {
        const struct lab_value *values = word->columns[c].values;
        check_key(word->columns[c].key, arena);
        if (values->count != lab_override_count(word))
            abort();
        for (int i = 0; i < values->count && i < CHECKED; i++)
            check_value(values->items[i], arena);
    }
}

static void check_word(const struct lab_override *word, const char *text, struct lab_arena *arena) {
    int count = lab_override_count(word);
    if (strcmp(word->text, text) != 0 || count == 0 || count > LAB_SWEEP_MAX)
        abort();
    if (word->sweep == LAB_SWEEP_ZIP) {
        check_zip(word, arena);
        return;
    }
    check_key(word->key, arena);
    if (word->sweep == LAB_SWEEP_GLOB && !word->glob.include[0])
        abort();
    for (int i = 0; i < count && i < CHECKED; i++)
        if (lab_override_value(word, i))
            check_value(lab_override_value(word, i), arena);
        else if (word->kind != LAB_OVERRIDE_DELETE)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    const char *text = lab_arena_strndup(&arena, (const char *)data, size);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_override word;
    if (lab_override_parse(text, &arena, &word, &err) == 0)
        check_word(&word, text, &arena);
    else if (err.code != LAB_ERR_USER || !strstr(err.text, "column "))
        abort();
    return 0;
}
