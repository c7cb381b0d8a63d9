/*
 * override.c: a whole word of the command line: sign, key and value, or zip(...). Only here values
 * become a sweep; the functions that make them are in override_call.c.
 */
#include "compose/override.h"

#include "base/str.h"
#include "compose/override_internal.h"

#include <assert.h>
#include <string.h>

#define ZIP_KEYS     64
#define WORD_COLUMNS 80 /* of a word in an error's text */

/* --- one key --- */

static int fail_sweep_in_sweep(struct lab_value_text *t, size_t at) {
    return lab_value_text_fail(t, at,
                               "a sweep can't be one of several values; write its values out");
}

/* The rest of `a,b,c`, from the first comma on. */
static int read_simple_sweep(struct lab_override_reader *reader,
                             struct lab_override_result *first) {
    struct lab_value_text *t = &reader->text;
    if (first->kind != LAB_RESULT_ELEMENT)
        return fail_sweep_in_sweep(t, first->at);
    struct lab_value *values = lab_value_list(t->arena);
    lab_value_append(t->arena, values, first->value);
    while (t->text[t->at] == ',') {
        t->at++;
        struct lab_override_result next;
        if (lab_override_read(reader, ",", &next) < 0)
            return -1;
        if (next.kind != LAB_RESULT_ELEMENT)
            return fail_sweep_in_sweep(t, next.at);
        if (values->count == LAB_SWEEP_MAX)
            return lab_value_text_fail(t, next.at, "more than %d values", LAB_SWEEP_MAX);
        lab_value_append(t->arena, values, next.value);
    }
    first->kind = LAB_RESULT_VALUES;
    first->value = values;
    return 0;
}

static int read_value(struct lab_override_reader *reader, struct lab_override *o) {
    struct lab_value_text *t = &reader->text;
    lab_value_text_skip_spaces(t);
    o->value_column = lab_value_text_column(t, t->at);
    struct lab_override_result result = {.kind = LAB_RESULT_ELEMENT, .at = t->at};
    if (!t->text[t->at]) {
        result.value = lab_value_string(t->arena, "");
        result.value->line = 1;
        result.value->column = o->value_column;
    } else if (lab_override_read(reader, ",", &result) < 0) {
        return -1;
    }
    if (t->text[t->at] == ',' && read_simple_sweep(reader, &result) < 0)
        return -1;
    switch (result.kind) {
    case LAB_RESULT_ELEMENT:
        o->sweep = LAB_SWEEP_NONE;
        o->value = result.value;
        break;
    case LAB_RESULT_GLOB:
        o->sweep = LAB_SWEEP_GLOB;
        o->glob = result.glob;
        break;
    case LAB_RESULT_VALUES:
    case LAB_RESULT_RANGE:
        o->sweep = LAB_SWEEP_VALUES;
        o->values = lab_override_result_values(&result, t->arena);
        break;
    }
    return 0;
}

static const char *sign_of(enum lab_override_kind kind) {
    static const char *const signs[] = {
        [LAB_OVERRIDE_CHANGE] = "",
        [LAB_OVERRIDE_ADD] = "+",
        [LAB_OVERRIDE_FORCE] = "++",
        [LAB_OVERRIDE_DELETE] = "~",
    };
    return signs[kind];
}

static int read_keyed(struct lab_override_reader *reader, struct lab_override *o) {
    struct lab_value_text *t = &reader->text;
    if (lab_override_read_key(t, &o->key, &o->package) < 0)
        return -1;
    if (t->text[t->at] == '=') {
        t->at++;
        return read_value(reader, o);
    }
    if (o->kind == LAB_OVERRIDE_DELETE)
        return 0;
    return lab_value_text_fail(t, t->at,
                               "'=' and a value are missing: %s%.80s=VALUE, or ~%.80s to delete it",
                               sign_of(o->kind), o->key, o->key);
}

/* --- zip --- */

static int check_zip_key(struct lab_value_text *t, size_t at, const struct lab_override *o,
                         const struct lab_zip_column *column) {
    if (t->text[t->at] != '=')
        return lab_value_text_fail(t, t->at, "'=' and a list belong after the key '%.80s'",
                                   column->key);
    if (o->column_count == ZIP_KEYS)
        return lab_value_text_fail(t, at, "zip() takes up to %d keys", ZIP_KEYS);
    for (int i = 0; i < o->column_count; i++)
        if (strcmp(o->columns[i].key, column->key) == 0 &&
            lab_str_equal(o->columns[i].package, column->package))
            return lab_value_text_fail(t, at, "zip() has the key '%.80s' twice", column->key);
    return 0;
}

static int check_zip_count(struct lab_value_text *t, const struct lab_override_result *result,
                           int count, const struct lab_override *o, const char *key) {
    if (count == 0)
        return lab_value_text_fail(t, result->at, "zip() needs at least one value for '%.80s'",
                                   key);
    if (o->column_count > 0 && o->columns[0].values->count != count)
        return lab_value_text_fail(t, result->at,
                                   "zip() needs lists of one length: '%.80s' has %d values, "
                                   "'%.80s' has %d",
                                   o->columns[0].key, o->columns[0].values->count, key, count);
    if (count > LAB_SWEEP_MAX / (o->column_count + 1))
        return lab_value_text_fail(t, result->at, "zip() takes up to %d values in all",
                                   LAB_SWEEP_MAX);
    return 0;
}

static int read_zip_column(struct lab_override_reader *reader, struct lab_override *o) {
    struct lab_value_text *t = &reader->text;
    lab_value_text_skip_spaces(t);
    size_t start = t->at;
    struct lab_zip_column column = {.column = lab_value_text_column(t, start)};
    if (lab_override_read_key(t, &column.key, &column.package) < 0 ||
        check_zip_key(t, start, o, &column) < 0)
        return -1;
    t->at++;
    struct lab_override_result result;
    if (lab_override_read(reader, ",)", &result) < 0)
        return -1;
    bool is_list = result.kind == LAB_RESULT_ELEMENT && result.value->type == LAB_VALUE_LIST;
    if (!is_list && result.kind != LAB_RESULT_VALUES && result.kind != LAB_RESULT_RANGE)
        return lab_value_text_fail(t, result.at,
                                   "zip() takes a list for each key: zip(a=[1,2],b=[x,y])");
    int count = is_list ? result.value->count : lab_override_result_count(&result);
    if (check_zip_count(t, &result, count, o, column.key) < 0)
        return -1;
    column.values = is_list ? result.value : lab_override_result_values(&result, t->arena);
    o->columns[o->column_count++] = column;
    return 0;
}

/* At "zip(", spaces allowed between. */
static int read_zip(struct lab_override_reader *reader, struct lab_override *o) {
    struct lab_value_text *t = &reader->text;
    if (o->kind == LAB_OVERRIDE_DELETE)
        return lab_value_text_fail(t, t->at, "zip() sets keys; it can't delete them");
    o->sweep = LAB_SWEEP_ZIP;
    o->value_column = lab_value_text_column(t, t->at);
    o->columns = lab_arena_alloc(t->arena, ZIP_KEYS, sizeof *o->columns);
    size_t open = t->at + strcspn(t->text + t->at, "(");
    char c;
    t->at = open;
    do {
        t->at++;
        if (read_zip_column(reader, o) < 0)
            return -1;
        c = t->text[t->at];
    } while (c == ',');
    if (c != ')')
        return lab_value_text_fail(t, open, "'(' without its ')'");
    t->at++;
    lab_value_text_skip_spaces(t);
    if (t->text[t->at])
        return lab_value_text_fail(t, t->at, "text after zip()'s ')'");
    return 0;
}

/* --- the word --- */

static enum lab_override_kind read_sign(struct lab_value_text *t) {
    if (t->text[0] == '~') {
        t->at = 1;
        return LAB_OVERRIDE_DELETE;
    }
    if (t->text[0] != '+')
        return LAB_OVERRIDE_CHANGE;
    t->at = t->text[1] == '+' ? 2 : 1;
    return t->at == 2 ? LAB_OVERRIDE_FORCE : LAB_OVERRIDE_ADD;
}

static int read_word(struct lab_override_reader *reader, struct lab_override *o) {
    struct lab_value_text *t = &reader->text;
    size_t length = strlen(t->text), valid = lab_str_utf8_prefix(t->text, length);
    if (valid < length)
        return lab_value_text_fail(t, valid, "the byte 0x%02x is not UTF-8",
                                   (unsigned)t->text[valid] & 0xff);
    o->kind = read_sign(t);
    size_t name_length = lab_value_text_at_call(t);
    const char *name = t->text + t->at;
    if (name_length == 0)
        return read_keyed(reader, o);
    if (name_length == 3 && strncmp(name, "zip", 3) == 0)
        return read_zip(reader, o);
    if (lab_override_is_function(name, name_length))
        return lab_value_text_fail(t, t->at, "a key and '=' are missing before %.*s()",
                                   (int)name_length, name);
    return read_keyed(reader, o);
}

/* The word in an error's text: one line, not too long. */
static const char *excerpt(const char *text, struct lab_arena *arena) {
    size_t length = strlen(text), shown = length > WORD_COLUMNS ? WORD_COLUMNS : length;
    shown = lab_str_utf8_prefix(text, shown);
    char *word = lab_arena_printf(arena, "%.*s%s", (int)shown, text, shown < length ? "…" : "");
    for (size_t i = 0; i < shown; i++)
        if ((unsigned char)word[i] < ' ' || word[i] == 0x7f)
            word[i] = '?';
    return word;
}

int lab_override_parse(const char *text, struct lab_arena *arena, struct lab_override *ret_override,
                       struct lab_err *err) {
    struct lab_override override = {.text = lab_arena_strdup(arena, text)};
    struct lab_override_reader reader = {.call_depth = 0};
    lab_value_text_init(&reader.text, override.text, arena, err);
    reader.text.call = lab_override_read_inner;
    int result = read_word(&reader, &override);
    lab_value_text_release(&reader.text);
    if (result < 0)
        return lab_err_context(err, "%s", excerpt(text, arena));
    *ret_override = override;
    return 0;
}

int lab_override_count(const struct lab_override *override) {
    return override->sweep == LAB_SWEEP_NONE     ? 1
           : override->sweep == LAB_SWEEP_VALUES ? override->values->count
           : override->sweep == LAB_SWEEP_ZIP    ? override->columns[0].values->count
                                                 : -1;
}

struct lab_value *lab_override_value(const struct lab_override *override, int index) {
    assert(index >= 0 && index < lab_override_count(override));
    if (override->sweep == LAB_SWEEP_NONE)
        return override->value;
    assert(override->sweep == LAB_SWEEP_VALUES);
    return override->values->items[index];
}
