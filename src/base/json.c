/*
 * json.c: reading is jansson's. Writing is our own, because jansson writes every real number with
 * 17 digits (0.1 becomes 0.10000000000000001) and refuses text that isn't UTF-8, which the name of
 * a device or a file may be.
 */
#include "base/json.h"

#include <jansson.h>
#include <pthread.h>
#include <string.h>

/* jansson asserts, or calls a text invalid, where it gets no memory: it gets ours, or the program
 * ends. */
static void *allocate(size_t size) {
    return lab_mem_resize(NULL, size, 1);
}

static void give_memory(void) {
    json_set_alloc_funcs(allocate, lab_mem_free);
}

static struct lab_value *convert(const json_t *json, const char *origin, struct lab_arena *arena) {
    struct lab_value *value = NULL;
    if (json_is_boolean(json)) {
        value = lab_value_bool(arena, json_is_true(json));
    } else if (json_is_integer(json)) {
        value = lab_value_int(arena, json_integer_value(json));
    } else if (json_is_real(json)) {
        value = lab_value_float(arena, json_real_value(json));
    } else if (json_is_string(json)) {
        value = lab_value_string(arena, json_string_value(json));
        value->quoted = true;
    } else if (json_is_array(json)) {
        value = lab_value_list(arena);
        for (size_t i = 0; i < json_array_size(json); i++)
            lab_value_append(arena, value, convert(json_array_get(json, i), origin, arena));
    } else if (json_is_object(json)) {
        value = lab_value_map(arena);
        /* jansson walks an object in the order of its keys in the text */
        for (void *at = json_object_iter((json_t *)json); at;
             at = json_object_iter_next((json_t *)json, at))
            lab_value_set(arena, value, json_object_iter_key(at),
                          convert(json_object_iter_value(at), origin, arena));
    } else {
        value = lab_value_null(arena);
    }
    value->origin = origin;
    return value;
}

int lab_json_parse(const char *text, size_t length, const char *origin, struct lab_arena *arena,
                   struct lab_value **ret_value, struct lab_err *err) {
    /* jansson skips NUL bytes instead of refusing them */
    if (memchr(text, '\0', length))
        return lab_err_set(err, LAB_ERR_USER, "%s: invalid JSON: NUL bytes",
                           origin ? origin : "text");
    static pthread_once_t given = PTHREAD_ONCE_INIT;
    pthread_once(&given, give_memory);
    json_error_t problem;
    json_t *json = json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &problem);
    if (!json)
        return lab_err_set(err, LAB_ERR_USER, "%s:%d: invalid JSON: %s", origin ? origin : "text",
                           problem.line > 0 ? problem.line : 1, problem.text);
    *ret_value = convert(json, origin ? lab_arena_strdup(arena, origin) : NULL, arena);
    json_decref(json);
    return 0;
}

static bool is_plain(char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void write_string(const char *text, struct lab_str *out) {
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    size_t length = strlen(text);
    lab_str_add(out, "\"");
    for (size_t at = 0; at < length;) {
        size_t plain = 0;
        for (; is_plain(text[at + plain]); plain++)
            continue;
        lab_str_add_bytes(out, text + at, plain);
        at += plain;
        unsigned char c = (unsigned char)text[at];
        if (!c)
            break;
        const char *letter = NULL;
        for (const char *l = letters; *l && !letter; l += 2)
            if (*l == text[at])
                letter = l;
        if (letter) {
            lab_str_printf(out, "\\%c", letter[1]);
            at++;
        } else if (c < 0x20 || c == 0x7f) {
            lab_str_printf(out, "\\u%04x", c);
            at++;
        } else {
            /* as far as the text is valid and not ASCII; a stray byte becomes U+FFFD */
            size_t end = at;
            while (end < length && (text[end] & 0x80))
                end++;
            size_t valid = lab_str_utf8_prefix(text + at, end - at);
            lab_str_add_bytes(out, text + at, valid);
            if (valid == 0)
                lab_str_add(out, "\xef\xbf\xbd");
            at += valid ? valid : 1;
        }
    }
    lab_str_add(out, "\"");
}

static void new_line(int indent, int depth, struct lab_str *out) {
    if (indent == 0)
        return;
    lab_str_add(out, "\n");
    lab_str_add_repeat(out, " ", indent * depth);
}

static void write_value(const struct lab_value *value, int indent, int depth, struct lab_str *out);

static void write_children(const struct lab_value *value, int indent, int depth,
                           struct lab_str *out) {
    bool is_map = value->type == LAB_VALUE_MAP;
    lab_str_add(out, is_map ? "{" : "[");
    for (int i = 0; i < value->count; i++) {
        if (i > 0)
            lab_str_add(out, indent ? "," : ", ");
        new_line(indent, depth + 1, out);
        if (is_map) {
            write_string(value->keys[i], out);
            lab_str_add(out, ": ");
        }
        write_value(value->items[i], indent, depth + 1, out);
    }
    if (value->count > 0)
        new_line(indent, depth, out);
    lab_str_add(out, is_map ? "}" : "]");
}

static void write_value(const struct lab_value *value, int indent, int depth, struct lab_str *out) {
    if (lab_value_write_plain(value, out))
        return;
    if (value->type == LAB_VALUE_FLOAT)
        lab_str_add(out, "null");
    else if (value->type == LAB_VALUE_STRING)
        write_string(value->string, out);
    else
        write_children(value, indent, depth, out);
}

void lab_json_write(const struct lab_value *value, int indent, struct lab_str *out) {
    write_value(value, indent, 0, out);
}

const char *lab_json_text(const struct lab_value *value, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_json_write(value, 0, &text);
    return lab_arena_strdup(arena, text.text);
}
