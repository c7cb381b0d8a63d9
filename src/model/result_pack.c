/*
 * result_pack.c: a rank's result as bytes and back. The writer is trusted, the reader trusts
 * nobody: nothing is read beyond the bytes, and nothing that they say decides how much memory is
 * taken.
 */
#include "model/result.h"

#include "base/json.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX 4 /* of lists in lists, of a newer worker's */

static const char letters[] = {
    [LAB_RESULT_NUMBER] = 'n', [LAB_RESULT_COUNT] = 'c', [LAB_RESULT_FLAG] = 'f',
    [LAB_RESULT_TEXT] = 't',   [LAB_RESULT_JSON] = 'j',  [LAB_RESULT_LIST] = 'l',
};

static const char *const type_names[] = {
    [LAB_RESULT_NUMBER] = "a number", [LAB_RESULT_COUNT] = "a whole number",
    [LAB_RESULT_FLAG] = "a flag",     [LAB_RESULT_TEXT] = "a text",
    [LAB_RESULT_JSON] = "JSON",       [LAB_RESULT_LIST] = "a list",
};

/* --- writing --- */

static void put(struct lab_str *out, uint64_t value, int bytes) {
    char number[8];
    for (int i = 0; i < bytes; i++)
        number[i] = (char)(value >> (8 * i));
    lab_str_add_bytes(out, number, (size_t)bytes);
}

/* What isn't UTF-8 in it becomes '?'. */
static void put_text(struct lab_str *out, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        size_t valid = lab_str_utf8_prefix(text, left);
        lab_str_add_bytes(out, text, valid);
        text += valid;
        left -= valid;
        if (left > 0) {
            lab_str_add(out, "?");
            text++;
            left--;
        }
    }
    lab_str_add_bytes(out, "", 1);
}

static void pack(const void *record, const struct lab_result_row *rows, int count, size_t end,
                 struct lab_str *out);

static void pack_list(const void *record, const struct lab_result_row *row, size_t end,
                      struct lab_str *out) {
    struct lab_result_list list = lab_result_items(record, row);
    int count = list.count < LAB_RESULT_ITEMS_MAX ? list.count : LAB_RESULT_ITEMS_MAX;
    put(out, (uint64_t)count, 4);
    for (int i = 0; i < count; i++)
        pack((const char *)list.items + (size_t)i * row->item->size, row->item->rows,
             row->item->row_count, end, out);
}

static void pack_value(const void *record, const struct lab_result_row *row, size_t end,
                       struct lab_str *out) {
    const void *at = lab_result_get(record, row);
    uint64_t bits = 0;
    put_text(out, row->key);
    put(out, (uint64_t)letters[row->type], 1);
    switch (row->type) {
    case LAB_RESULT_NUMBER:
    case LAB_RESULT_COUNT:
        memcpy(&bits, at, sizeof bits);
        put(out, bits, 8);
        break;
    case LAB_RESULT_FLAG:
        put(out, *(const signed char *)at != 0, 1);
        break;
    case LAB_RESULT_TEXT:
    case LAB_RESULT_JSON:
        put_text(out, *(const char *const *)at);
        break;
    case LAB_RESULT_LIST:
        pack_list(record, row, end, out);
        break;
    }
}

static void pack(const void *record, const struct lab_result_row *rows, int count, size_t end,
                 struct lab_str *out) {
    size_t start = out->length;
    uint64_t packed = 0;
    put(out, 0, 2);
    for (int i = 0; i < count; i++) {
        const void *at = lab_result_get(record, &rows[i]);
        size_t before = out->length;
        bool number = rows[i].type == LAB_RESULT_NUMBER;
        if (!lab_result_has(record, &rows[i]) || (number && !isfinite(*(const double *)at)))
            continue;
        pack_value(record, &rows[i], end, out);
        if (out->length > end) { /* it would be refused as a whole */
            out->length = before;
            out->text[before] = '\0';
        } else {
            packed++;
        }
    }
    out->text[start] = (char)packed;
    out->text[start + 1] = (char)(packed >> 8);
}

void lab_result_pack(const struct lab_result *result, size_t most, struct lab_str *out) {
    pack(result, lab_result_rows, LAB_RESULT_ROW_COUNT, out->length + most, out);
}

/* --- reading --- */

struct packed {
    const char *at, *end;
};

static int get(struct packed *packed, int bytes, uint64_t *ret_value, struct lab_err *err) {
    uint64_t value = 0;
    if (packed->end - packed->at < bytes)
        return lab_err_set(err, LAB_ERR_SYSTEM, "ends within a value");
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)packed->at[i] << (8 * i);
    packed->at += bytes;
    *ret_value = value;
    return 0;
}

static int get_text(struct packed *packed, const char **ret_text, struct lab_err *err) {
    size_t left = (size_t)(packed->end - packed->at);
    const char *zero = left ? memchr(packed->at, '\0', left) : NULL;
    if (!zero)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a text has no end");
    size_t length = (size_t)(zero - packed->at), valid = lab_str_utf8_prefix(packed->at, length);
    if (valid < length)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a text isn't UTF-8 from byte %zu on", valid);
    *ret_text = packed->at;
    packed->at = zero + 1;
    return 0;
}

/* Where values go: a record of these rows, in the arena. */
struct target {
    void *record; /* NULL = what comes is skipped */
    const struct lab_result_row *rows;
    int row_count;
    struct lab_arena *arena;
};

static int unpack(struct packed *packed, struct target target, int depth, struct lab_err *err);

/* `row` is NULL where the list is skipped. */
static int unpack_list(struct packed *packed, const struct target *target,
                       const struct lab_result_row *row, int depth, struct lab_err *err) {
    uint64_t count = 0;
    if (get(packed, 4, &count, err) < 0)
        return -1;
    if (count > LAB_RESULT_ITEMS_MAX || depth == DEPTH_MAX)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a list of %llu items, at most %d in %d lists",
                           (unsigned long long)count, LAB_RESULT_ITEMS_MAX, DEPTH_MAX);
    if (row && lab_result_has(target->record, row))
        return lab_err_set(err, LAB_ERR_SYSTEM, "its %s came twice", row->key);
    for (uint64_t i = 0; i < count; i++) {
        struct target item = {.arena = target->arena};
        if (row) /* only a result has lists, no item does */
            item = (struct target){lab_result_add(target->record, row, target->arena),
                                   row->item->rows, row->item->row_count, target->arena};
        if (unpack(packed, item, depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

static int set_number(const struct lab_result_row *row, void *at, uint64_t bits,
                      struct lab_err *err) {
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return lab_err_set(err, LAB_ERR_SYSTEM, "its %s isn't finite", row->key);
    *(double *)at = value;
    return 0;
}

static int set_text(const struct lab_result_row *row, void *at, const char *text,
                    struct lab_arena *arena, struct lab_err *err) {
    LAB_AUTO(arena, scratch);
    struct lab_value *value;
    struct lab_err why = LAB_ERR_INIT;
    if (row->type == LAB_RESULT_JSON &&
        lab_json_parse(text, strlen(text), row->key, &scratch, &value, &why) < 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "its %s", why.text);
    *(const char **)at = lab_arena_strdup(arena, text);
    return 0;
}

static const struct lab_result_row *find_row(const struct target *target, const char *key) {
    int row = target->record ? LAB_FIND(target->rows, target->row_count, key, key) : -1;
    return row < 0 ? NULL : &target->rows[row];
}

static int unpack_value(struct packed *packed, const struct target *target, int depth,
                        struct lab_err *err) {
    const char *key = "", *text = NULL;
    uint64_t letter = 0, bits = 0;
    if (get_text(packed, &key, err) < 0 || get(packed, 1, &letter, err) < 0)
        return -1;
    const char *known = letter ? memchr(letters, (int)letter, sizeof letters) : NULL;
    if (!known)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a value of type %llu", (unsigned long long)letter);
    enum lab_result_type type = (enum lab_result_type)(known - letters);
    const struct lab_result_row *row = find_row(target, key);
    if (row && row->type != type)
        return lab_err_set(err, LAB_ERR_SYSTEM, "its %s is %s, not %s", row->key, type_names[type],
                           type_names[row->type]);
    if (type == LAB_RESULT_LIST)
        return unpack_list(packed, target, row, depth, err);
    if (type == LAB_RESULT_TEXT || type == LAB_RESULT_JSON
            ? get_text(packed, &text, err) < 0
            : get(packed, type == LAB_RESULT_FLAG ? 1 : 8, &bits, err) < 0)
        return -1;
    if (!row)
        return 0;
    void *at = lab_result_member(target->record, row);
    if (text)
        return set_text(row, at, text, target->arena, err);
    if (type == LAB_RESULT_NUMBER)
        return set_number(row, at, bits, err);
    if (type == LAB_RESULT_FLAG)
        *(signed char *)at = bits != 0;
    else
        *(int64_t *)at = (int64_t)bits;
    return 0;
}

static int unpack(struct packed *packed, struct target target, int depth, struct lab_err *err) {
    uint64_t count = 0;
    if (get(packed, 2, &count, err) < 0)
        return -1;
    for (uint64_t i = 0; i < count; i++)
        if (unpack_value(packed, &target, depth, err) < 0)
            return -1;
    return 0;
}

int lab_result_unpack(const void *bytes, size_t length, struct lab_arena *arena,
                      struct lab_result *ret_result, struct lab_err *err) {
    struct packed packed = {bytes, (const char *)bytes + length};
    struct lab_result result = lab_result_none;
    struct target target = {&result, lab_result_rows, LAB_RESULT_ROW_COUNT, arena};
    if (unpack(&packed, target, 0, err) < 0)
        return -1;
    if (packed.at < packed.end)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%zu bytes too many",
                           (size_t)(packed.end - packed.at));
    *ret_result = result;
    return 0;
}
