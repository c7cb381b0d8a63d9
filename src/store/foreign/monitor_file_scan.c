/*
 * monitor_file_scan.c: finds where records begin and end in a file of any size, whole or not,
 * without building a tree of it. Only brackets and quotes are looked at; what lies between is
 * jansson's, a record at a time.
 *
 * Where a record doesn't end (its writer was killed, and another went on behind it), the next
 * record is looked for at the beginning of a line that is indented as this one's was.
 */
#include "store/foreign/monitor_file_reader.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES (64 << 20)         /* no record of a monitor is as large as this */
#define AGAIN_BYTES  (INT64_C(1) << 28) /* gone through again at most, so that garbage ends */
#define READ_BYTES   65536
#define NO_ANCHOR    SIZE_MAX

void lab_monitor_scan_init(struct lab_monitor_scan *scan, int fd) {
    *scan = (struct lab_monitor_scan){.fd = fd, .anchor = NO_ANCHOR};
    lab_str_init(&scan->text);
}

void lab_monitor_scan_release(struct lab_monitor_scan *scan) {
    lab_mem_free(scan->bytes);
    lab_str_release(&scan->text);
}

static void read_more(struct lab_monitor_scan *scan) {
    size_t keep = scan->anchor < scan->at ? scan->anchor : scan->at;
    if (keep > 0 && scan->capacity - scan->length < READ_BYTES) {
        memmove(scan->bytes, scan->bytes + keep, scan->length - keep);
        scan->offset += (int64_t)keep;
        scan->at -= keep;
        scan->length -= keep;
        if (scan->anchor != NO_ANCHOR)
            scan->anchor -= keep;
    }
    if (scan->capacity - scan->length < READ_BYTES) {
        scan->capacity = scan->capacity ? 2 * scan->capacity : (size_t)4 * READ_BYTES;
        scan->bytes = lab_mem_resize(scan->bytes, scan->capacity, 1);
    }
    ssize_t got;
    do
        got = read(scan->fd, scan->bytes + scan->length, scan->capacity - scan->length);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        scan->errno_value = errno;
    if (got <= 0)
        scan->at_end = true;
    else
        scan->length += (size_t)got;
}

size_t lab_monitor_scan_fill(struct lab_monitor_scan *scan, size_t wanted) {
    while (scan->length - scan->at < wanted && !scan->at_end)
        read_more(scan);
    size_t there = scan->length - scan->at;
    return there < wanted ? there : wanted;
}

/* The byte `ahead` of here, or -1. */
static int byte_at(struct lab_monitor_scan *scan, size_t ahead) {
    if (scan->length - scan->at <= ahead && lab_monitor_scan_fill(scan, ahead + 1) <= ahead)
        return -1;
    return (unsigned char)scan->bytes[scan->at + ahead];
}

static void step(struct lab_monitor_scan *scan, size_t bytes) {
    scan->at += bytes;
    scan->indent = -1;
}

/* The next byte that is neither blank nor a comma, or -1 at the end. */
static int skip_blanks(struct lab_monitor_scan *scan) {
    for (;;) {
        int byte = byte_at(scan, 0);
        if (byte == '\n')
            scan->indent = 0;
        else if (byte == ' ' || byte == '\t')
            scan->indent += scan->indent >= 0;
        else if (byte == ',')
            scan->indent = -1;
        else if (byte != '\r')
            return byte;
        scan->at++;
    }
}

/* --- values --- */

enum value_end { WHOLE, CUT, ENDLESS };

/* How long the value is that begins here. */
static enum value_end measure(struct lab_monitor_scan *scan, size_t *ret_length) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < RECORD_BYTES; i++) {
        int byte = byte_at(scan, i);
        if (byte < 0)
            return CUT;
        if (in_string) {
            if (byte == '\\')
                i++;
            in_string = byte != '"';
            if (in_string || depth > 0)
                continue;
            *ret_length = i + 1;
            return WHOLE;
        }
        if (byte == '"') {
            in_string = true;
        } else if (byte == '{' || byte == '[') {
            depth++;
        } else if (byte == '}' || byte == ']') {
            if (depth <= 1) {
                *ret_length = i + (depth == 1);
                return WHOLE;
            }
            depth--;
        } else if (depth == 0 && (byte == ',' || byte == ':' || (byte <= ' ' && i > 0))) {
            *ret_length = i;
            return WHOLE;
        } else if (byte == 'N' || byte == 'I') {
            scan->odd = true;
        }
    }
    return ENDLESS;
}

/* From `from` on: a line's beginning that is indented as the broken record was; SIZE_MAX = none. */
static size_t find_line(const struct lab_monitor_scan *scan, size_t from, int indent) {
    for (size_t i = from; i < scan->length; i++) {
        const char *line = memchr(scan->bytes + i, '\n', scan->length - i);
        if (!line)
            break;
        i = (size_t)(line - scan->bytes);
        size_t begin = i + 1, at = begin;
        while (at < scan->length && (scan->bytes[at] == ' ' || scan->bytes[at] == '\t'))
            at++;
        if (at < scan->length && scan->bytes[at] == '{' && at - begin == (size_t)indent)
            return begin;
    }
    return SIZE_MAX;
}

/* A record that began at `begin` doesn't end, or its end is nonsense. Goes on at the next one. */
static void recover(struct lab_monitor_scan *scan, size_t begin, int indent) {
    size_t line = SIZE_MAX, from = 1;
    scan->anchor = begin;
    while (indent >= 0 && line == SIZE_MAX) {
        size_t seen = scan->length - scan->anchor;
        line = find_line(scan, scan->anchor + from, indent);
        if (line != SIZE_MAX || scan->at_end || seen > RECORD_BYTES)
            break;
        read_more(scan);
        from = seen > (size_t)indent + 2 ? seen - (size_t)indent - 2 : 1;
    }
    scan->again_bytes += (int64_t)(scan->length - scan->anchor);
    if (line == SIZE_MAX || scan->again_bytes > AGAIN_BYTES) {
        scan->stray_bytes += scan->at_end ? 0 : scan->length - scan->anchor;
        scan->cut |= scan->at_end;
        scan->at = scan->length;
        scan->indent = -1;
    } else {
        scan->broken++;
        scan->at = line;
        scan->indent = 0;
    }
    scan->anchor = NO_ANCHOR;
}

/* --- parts --- */

/* Appends to the text: null instead of NaN, Infinity and -Infinity. */
static void add_replaced(struct lab_monitor_scan *scan, const char *bytes, size_t length) {
    static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        size_t skip = 0;
        for (int k = 0; !in_string && k < 3 && !skip; k++)
            if (length - i >= strlen(words[k]) &&
                memcmp(bytes + i, words[k], strlen(words[k])) == 0)
                skip = strlen(words[k]);
        if (skip) {
            lab_str_add(&scan->text, "null");
            i += skip - 1;
            continue;
        }
        if (in_string && bytes[i] == '\\' && i + 1 < length)
            lab_str_add_bytes(&scan->text, bytes + i++, 1);
        else if (bytes[i] == '"')
            in_string = !in_string;
        lab_str_add_bytes(&scan->text, bytes + i, 1);
    }
}

static void give(struct lab_monitor_scan *scan, const char *bytes, size_t length,
                 const char **ret_text, size_t *ret_length) {
    *ret_text = bytes;
    *ret_length = length;
    if (!scan->odd)
        return;
    lab_str_clear(&scan->text);
    add_replaced(scan, bytes, length);
    *ret_text = scan->text.text;
    *ret_length = scan->text.length;
}

/* An element of a list. true = it is a record, and given. */
static bool take_element(struct lab_monitor_scan *scan, int byte, const char **ret_text,
                         size_t *ret_length) {
    size_t length, begin = scan->at;
    int indent = scan->indent;
    scan->odd = false;
    scan->anchor = begin;
    enum value_end end = measure(scan, &length);
    begin = scan->anchor;
    scan->anchor = NO_ANCHOR;
    if (end != WHOLE) {
        recover(scan, begin, byte == '{' ? indent : -1);
        return false;
    }
    if (length == 0)
        length = 1; /* a closing bracket that nothing opened */
    step(scan, length);
    if (byte != '{') {
        scan->stray_bytes += length;
        return false;
    }
    scan->record_end = scan->offset + (int64_t)scan->at;
    give(scan, scan->bytes + begin, length, ret_text, ret_length);
    return true;
}

static bool in_list(struct lab_monitor_scan *scan, const char **ret_text, size_t *ret_length,
                    bool *ret_over) {
    int byte = skip_blanks(scan);
    if (byte < 0) {
        scan->cut = true;
        *ret_over = true;
        return false;
    }
    if (byte != ']')
        return take_element(scan, byte, ret_text, ret_length);
    step(scan, 1);
    scan->depth--;
    scan->section[0] = '\0';
    return false;
}

static bool is_section(const struct lab_monitor_scan *scan, const char *key) {
    static const char *const sections[] = {"epochs", "entities",  "ticks",
                                           "events", "processes", NULL};
    if (!scan->own)
        return lab_str_equal(key, "samples");
    return lab_str_find(key, sections) >= 0;
}

static bool says_own(const struct lab_monitor_scan *scan, const char *key, size_t length) {
    static const char own[] = "\"" LAB_MONITOR_OWN "\"";
    return lab_str_equal(key, "format") && length == sizeof own - 1 &&
           memcmp(scan->bytes + scan->at, own, length) == 0;
}

/* The object's members up to here as an object of their own. */
static bool give_members(struct lab_monitor_scan *scan, size_t begin, size_t end,
                         const char **ret_text, size_t *ret_length) {
    while (end > begin && strchr(" \t\r\n,", scan->bytes[end - 1]))
        end--;
    if (end <= begin)
        return false;
    lab_str_clear(&scan->text);
    lab_str_add(&scan->text, "{");
    add_replaced(scan, scan->bytes + begin, end - begin);
    lab_str_add(&scan->text, "}");
    *ret_text = scan->text.text;
    *ret_length = scan->text.length;
    return true;
}

enum member { MEMBER, HEADER, BROKEN };

/* Reads `"key": value`, or enters the section that it is. */
static enum member take_member(struct lab_monitor_scan *scan, const char **ret_text,
                               size_t *ret_length) {
    size_t length, before = scan->at - scan->anchor;
    char key[16] = "";
    if (measure(scan, &length) != WHOLE || length < 2)
        return BROKEN;
    if (length - 2 < sizeof key)
        memcpy(key, scan->bytes + scan->at + 1, length - 2);
    step(scan, length);
    if (skip_blanks(scan) != ':')
        return BROKEN;
    step(scan, 1);
    int byte = skip_blanks(scan);
    if (byte == '[' && is_section(scan, key)) {
        bool headers =
            !scan->sectioned &&
            give_members(scan, scan->anchor + 1, scan->anchor + before, ret_text, ret_length);
        step(scan, 1);
        scan->anchor = NO_ANCHOR;
        scan->sectioned = true;
        scan->depth = 2;
        snprintf(scan->section, sizeof scan->section, "%s", key);
        return headers ? HEADER : MEMBER;
    }
    if (byte < 0 || measure(scan, &length) != WHOLE || length == 0)
        return BROKEN;
    size_t begin = scan->sectioned ? before : 1;
    if (!scan->sectioned && says_own(scan, key, length))
        scan->own = scan->sectioned = true;
    step(scan, length);
    if (!scan->sectioned)
        return MEMBER;
    give_members(scan, scan->anchor + begin, scan->at, ret_text, ret_length);
    scan->anchor = NO_ANCHOR;
    return HEADER;
}

/* In an object that is a record by itself, or stands around sections. */
static bool in_object(struct lab_monitor_scan *scan, const char **ret_text, size_t *ret_length,
                      enum lab_monitor_part *ret_part, bool *ret_over) {
    int byte = skip_blanks(scan);
    if (scan->sectioned)
        scan->anchor = scan->at;
    if (byte == '}') {
        size_t begin = scan->anchor;
        scan->anchor = NO_ANCHOR;
        step(scan, 1);
        scan->depth = 0;
        scan->record_end = scan->offset + (int64_t)scan->at;
        *ret_part = LAB_MONITOR_PART_RECORD;
        if (!scan->sectioned)
            give(scan, scan->bytes + begin, scan->at - begin, ret_text, ret_length);
        return !scan->sectioned;
    }
    bool fits = byte == '"' && scan->at - scan->anchor < RECORD_BYTES;
    enum member member = fits ? take_member(scan, ret_text, ret_length) : BROKEN;
    *ret_part = LAB_MONITOR_PART_HEADER;
    if (member != BROKEN)
        return member == HEADER;
    scan->depth = 0;
    recover(scan, scan->anchor, scan->sectioned ? -1 : scan->anchor_indent);
    *ret_over = scan->at >= scan->length && scan->at_end;
    return false;
}

static bool outside(struct lab_monitor_scan *scan, bool *ret_over) {
    int byte = skip_blanks(scan);
    *ret_over = byte < 0;
    if (byte == '[' || byte == '{') {
        scan->list |= byte == '[' && scan->record_end == 0;
        scan->depth = 1;
        scan->closer = byte == '[' ? ']' : '}';
        scan->sectioned = scan->own = scan->odd = false;
        scan->section[0] = '\0';
        scan->anchor = byte == '{' ? scan->at : NO_ANCHOR;
        scan->anchor_indent = scan->indent;
        step(scan, 1);
        if (byte == '[' && scan->record_end == 0)
            scan->record_end = scan->offset + (int64_t)scan->at;
    } else if (byte >= 0) {
        scan->stray_bytes++;
        step(scan, 1);
    }
    return false;
}

enum lab_monitor_part lab_monitor_scan_next(struct lab_monitor_scan *scan, const char **ret_text,
                                            size_t *ret_length) {
    enum lab_monitor_part part = LAB_MONITOR_PART_RECORD;
    bool given = false, over = false;
    while (!given && !over) {
        part = LAB_MONITOR_PART_RECORD;
        if (scan->depth == 0)
            given = outside(scan, &over);
        else if (scan->depth == 2 || scan->closer == ']')
            given = in_list(scan, ret_text, ret_length, &over);
        else
            given = in_object(scan, ret_text, ret_length, &part, &over);
    }
    return given ? part : LAB_MONITOR_PART_END;
}

/* --- lines --- */

bool lab_monitor_scan_line(struct lab_monitor_scan *scan, const char **ret_text,
                           size_t *ret_length) {
    bool in_quotes = false;
    size_t first = 0; /* end of the first line within quotes */
    for (size_t i = 0;; i++) {
        int byte = i < RECORD_BYTES ? byte_at(scan, i) : -1;
        if (byte < 0 && in_quotes && first && scan->again_bytes < AGAIN_BYTES) {
            /* quotes that nothing closes: that line is lost, not all that follow */
            scan->again_bytes += (int64_t)i;
            scan->broken++;
            scan->at += first + 1;
            in_quotes = false;
            first = 0;
            i = SIZE_MAX;
            continue;
        }
        if (byte < 0) {
            scan->cut |= i > 0;
            scan->at = scan->length;
            return false;
        }
        if (byte == '"')
            in_quotes = !in_quotes;
        if (byte == '\n' && in_quotes && !first)
            first = i;
        if (byte != '\n' || in_quotes)
            continue;
        *ret_text = scan->bytes + scan->at;
        *ret_length = i > 0 && scan->bytes[scan->at + i - 1] == '\r' ? i - 1 : i;
        scan->at += i + 1;
        return true;
    }
}
