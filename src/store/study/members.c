/*
 * members.c: a JSON scanner that keeps nothing but where the outermost members are. It accepts what
 * jansson accepts, but for the meaning of escapes and numbers: \ud800 alone or 1e999 pass here.
 */
#include "store/study/members.h"

#include "base/mem.h"

#include <string.h>

#define DEPTH_MAX 64 /* of nested values; ours have four */

struct scanner {
    const char *at, *end;
};

static void skip_space(struct scanner *scanner) {
    while (scanner->at < scanner->end && *scanner->at && strchr(" \t\r\n", *scanner->at))
        scanner->at++;
}

static bool take(struct scanner *scanner, char c) {
    skip_space(scanner);
    if (scanner->at == scanner->end || *scanner->at != c)
        return false;
    scanner->at++;
    return true;
}

static bool skip_escape(struct scanner *scanner) {
    if (scanner->at == scanner->end || !*scanner->at)
        return false;
    char kind = *scanner->at++;
    if (kind != 'u')
        return strchr("\"\\/bfnrt", kind) != NULL;
    for (int i = 0; i < 4; i++, scanner->at++) {
        if (scanner->at == scanner->end || !*scanner->at ||
            !strchr("0123456789abcdefABCDEF", *scanner->at))
            return false;
    }
    return true;
}

/* Behind the opening quote; ends behind the closing one. */
static bool skip_string(struct scanner *scanner) {
    const char *start = scanner->at;
    bool ascii = true;
    while (scanner->at < scanner->end) {
        unsigned char c = (unsigned char)*scanner->at++;
        if (c == '"') {
            size_t length = (size_t)(scanner->at - 1 - start);
            return ascii || lab_str_utf8_prefix(start, length) == length;
        }
        ascii = ascii && c < 0x80;
        if (c < 0x20 || (c == '\\' && !skip_escape(scanner)))
            return false;
    }
    return false;
}

static bool skip_digits(struct scanner *scanner) {
    const char *start = scanner->at;
    while (scanner->at < scanner->end && *scanner->at >= '0' && *scanner->at <= '9')
        scanner->at++;
    return scanner->at > start;
}

static bool next_is(const struct scanner *scanner, const char *set) {
    return scanner->at < scanner->end && *scanner->at && strchr(set, *scanner->at);
}

static bool skip_number(struct scanner *scanner) {
    if (next_is(scanner, "-"))
        scanner->at++;
    bool zero = next_is(scanner, "0");
    const char *start = scanner->at;
    if (!skip_digits(scanner) || (zero && scanner->at > start + 1))
        return false;
    if (next_is(scanner, ".")) {
        scanner->at++;
        if (!skip_digits(scanner))
            return false;
    }
    if (!next_is(scanner, "eE"))
        return true;
    scanner->at++;
    if (next_is(scanner, "+-"))
        scanner->at++;
    return skip_digits(scanner);
}

static bool skip_word(struct scanner *scanner, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(scanner->end - scanner->at) < length || strncmp(scanner->at, word, length) != 0)
        return false;
    scanner->at += length;
    return true;
}

static bool skip_value(struct scanner *scanner, int depth);

/* Behind the opening brace. `members` is NULL for inner objects. */
static bool scan_object(struct scanner *scanner, int depth, struct lab_members *members) {
    if (take(scanner, '}'))
        return true;
    do {
        struct lab_member member;
        if (!take(scanner, '"'))
            return false;
        member.key = scanner->at;
        if (!skip_string(scanner))
            return false;
        member.key_length = (size_t)(scanner->at - 1 - member.key);
        if (!take(scanner, ':'))
            return false;
        skip_space(scanner);
        member.value = scanner->at;
        if (!skip_value(scanner, depth + 1))
            return false;
        member.value_length = (size_t)(scanner->at - member.value);
        if (members) {
            LAB_MEM_GROW(&members->items, members->count, &members->capacity);
            members->items[members->count++] = member;
        }
    } while (take(scanner, ','));
    return take(scanner, '}');
}

static bool skip_list(struct scanner *scanner, int depth) {
    if (take(scanner, ']'))
        return true;
    do {
        if (!skip_value(scanner, depth + 1))
            return false;
    } while (take(scanner, ','));
    return take(scanner, ']');
}

static bool skip_value(struct scanner *scanner, int depth) {
    skip_space(scanner);
    if (scanner->at == scanner->end || depth > DEPTH_MAX)
        return false;
    switch (*scanner->at) {
    case '{':
        scanner->at++;
        return scan_object(scanner, depth, NULL);
    case '[':
        scanner->at++;
        return skip_list(scanner, depth);
    case '"':
        scanner->at++;
        return skip_string(scanner);
    case 't':
        return skip_word(scanner, "true");
    case 'f':
        return skip_word(scanner, "false");
    case 'n':
        return skip_word(scanner, "null");
    default:
        return skip_number(scanner);
    }
}

static int read_members(struct lab_members *members, const char *text, size_t length) {
    struct scanner scanner = {text, text + length};
    members->count = 0;
    bool valid = take(&scanner, '{') && scan_object(&scanner, 0, members);
    skip_space(&scanner);
    if (valid && scanner.at == scanner.end)
        return 0;
    members->count = 0;
    return -1;
}

/* --- for others --- */

void lab_members_release(struct lab_members *members) {
    lab_mem_free(members->items);
    *members = LAB_MEMBERS_INIT;
}

int lab_members_read(struct lab_members *members, const char *text) {
    return read_members(members, text, strlen(text));
}

int lab_members_read_value(struct lab_members *members, const struct lab_member *object) {
    return read_members(members, object->value, object->value_length);
}

const struct lab_member *lab_members_find(const struct lab_members *members, const char *key) {
    size_t length = strlen(key);
    for (int i = 0; i < members->count; i++) {
        if (members->items[i].key_length == length &&
            memcmp(members->items[i].key, key, length) == 0)
            return &members->items[i];
    }
    return NULL;
}

bool lab_members_check(const char *text) {
    struct scanner scanner = {text, text + strlen(text)};
    if (!skip_value(&scanner, 0))
        return false;
    skip_space(&scanner);
    return scanner.at == scanner.end;
}
