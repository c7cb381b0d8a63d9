/* monitor_file_read.c: any text of a monitor as a recording, told by what is in it. */
#include "store/foreign/monitor_file_reader.h"

#include "base/json.h"

#include <string.h>

/* Values without names, nvidia-smi's noheader: a field begins with a digit. */
static bool is_nameless(const char *names) {
    for (; names; names = strstr(names, ", ")) {
        names += strspn(names, ", ");
        if (*names >= '0' && *names <= '9')
            return true;
    }
    return false;
}

/* `names`: the first fields that were met; "" = there was none. */
static int refuse(const char *path, const char *names, struct lab_err *err) {
    LAB_AUTO(str, known);
    lab_monitor_add_json_names(&known);
    if (is_nameless(names))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s has values without names (the first: %s). Use --format=csv without "
                           "noheader, or put the list of --query-gpu before them as a first line, "
                           "such as 'timestamp, index, memory.used'",
                           path, names);
    return lab_err_set(
        err, LAB_ERR_USER,
        "%s has no known field%s%s%s; known files: gpulab's own; nvidia-smi's CSV (with header "
        "line or units), dmon, pmon; nvitop's CSV; JSON of %s",
        path, *names ? " (the first: " : "", names, *names ? ")" : "", known.text);
}

/* Records were met, and none gave a value. */
static int refuse_empty(struct lab_monitor_builder *builder, const char *path, const char *names,
                        struct lab_err *err) {
    LAB_AUTO(str, odd);
    lab_monitor_builder_add_odd(builder, &odd);
    return lab_err_set(err, LAB_ERR_USER, "%s holds no value that can be read%s%s; its fields: %s",
                       path, odd.length ? ": left out: " : "", odd.text, names);
}

/* --- JSON --- */

struct json_reader {
    struct lab_monitor_builder *builder;
    struct lab_monitor_scan *scan;
    struct lab_monitor_own *own;
    struct lab_recording *recording;
    size_t taken, foreign;
    bool recognised;       /* it is a file of a monitor, even without any record */
    struct lab_str *names; /* keys of the first record */
};

static void take_header(struct json_reader *reader, const struct lab_value *header) {
    int64_t start_ns;
    reader->recognised = true;
    if (reader->own)
        lab_monitor_own_header(reader->own, header, reader->recording);
    else if (lab_monitor_value_time(lab_value_get(header, "start_time"), &start_ns) ==
             LAB_MONITOR_TIME_WALL)
        lab_monitor_builder_start(reader->builder, start_ns);
}

static void take_record(struct json_reader *reader, const struct lab_value *record) {
    if (reader->scan->own && *reader->scan->section) {
        lab_monitor_own_record(reader->own, reader->scan->section, record);
        reader->taken++;
    } else if (lab_monitor_read_record(reader->builder, record)) {
        reader->taken++;
    } else {
        reader->foreign++;
    }
    bool first = !reader->names->length && record->type == LAB_VALUE_MAP;
    for (int i = 0; first && i < record->count && i < 6; i++)
        lab_str_printf(reader->names, "%s%.40s", i ? ", " : "", record->keys[i]);
}

static void take_part(struct json_reader *reader, enum lab_monitor_part part, const char *text,
                      size_t length) {
    LAB_AUTO(arena, arena);
    struct lab_value *value;
    if (reader->scan->own && !reader->own)
        reader->own = lab_monitor_own_new(reader->builder);
    if (lab_json_parse(text, length, "record", &arena, &value, NULL) < 0)
        lab_monitor_builder_odd(reader->builder, "records that are invalid JSON", 1);
    else if (part == LAB_MONITOR_PART_HEADER)
        take_header(reader, value);
    else
        take_record(reader, value);
}

static void tell_of_scan(struct lab_monitor_builder *builder, const struct lab_monitor_scan *scan) {
    if (scan->errno_value)
        lab_monitor_builder_note(builder,
                                 lab_arena_printf(lab_monitor_builder_arena(builder),
                                                  "the file could not be read to its end: %s",
                                                  strerror(scan->errno_value)));
    else if (scan->cut)
        lab_monitor_builder_note(builder,
                                 "the file is cut off: what came after its last whole record");
    if (scan->broken)
        lab_monitor_builder_odd(builder, "records that don't end", scan->broken);
    if (scan->stray_bytes)
        lab_monitor_builder_odd(builder, "bytes that belong to no record", scan->stray_bytes);
}

static int read_json(struct lab_monitor_builder *builder, struct lab_monitor_scan *scan,
                     struct lab_recording *recording, const char *path, struct lab_err *err) {
    LAB_AUTO(str, names);
    struct json_reader reader = {
        .builder = builder, .scan = scan, .recording = recording, .names = &names};
    const char *text;
    size_t length;
    for (enum lab_monitor_part part;
         (part = lab_monitor_scan_next(scan, &text, &length)) != LAB_MONITOR_PART_END;)
        take_part(&reader, part, text, length);
    lab_monitor_own_free(reader.own);
    tell_of_scan(builder, scan);
    if (reader.foreign)
        lab_monitor_builder_odd(builder, "records of an unknown format", reader.foreign);
    bool empty_list = scan->list && !reader.foreign && !scan->stray_bytes;
    bool ours = reader.recognised || scan->sectioned || empty_list;
    if (!reader.taken && (!ours || reader.foreign))
        return refuse(path, names.text, err);
    return lab_monitor_builder_has_values(builder) || scan->own || !reader.taken
               ? 0
               : refuse_empty(builder, path, names.text, err);
}

/* --- any text --- */

/* The first byte that isn't blank, behind the mark that Windows puts first; -1 = none. */
static int first_byte(struct lab_monitor_scan *scan) {
    size_t there = lab_monitor_scan_fill(scan, 4096);
    if (there >= 3 && memcmp(scan->bytes, "\xef\xbb\xbf", 3) == 0)
        scan->at += 3;
    static const char blanks[] = {' ', '\t', '\r', '\n'};
    for (size_t i = scan->at; i < scan->length; i++)
        if (!memchr(blanks, scan->bytes[i], sizeof blanks))
            return (unsigned char)scan->bytes[i];
    return -1;
}

static bool begins_with_record(struct lab_monitor_scan *scan) {
    const char *text;
    size_t length;
    enum lab_monitor_part part = lab_monitor_scan_next(scan, &text, &length);
    if (part != LAB_MONITOR_PART_RECORD || scan->sectioned)
        return scan->sectioned;
    LAB_AUTO(arena, arena);
    struct lab_value *value;
    return lab_json_parse(text, length, "record", &arena, &value, NULL) == 0 &&
           lab_monitor_find_json(value);
}

bool lab_monitor_is_text(int fd) {
    LAB_AUTO(str, names);
    struct lab_monitor_scan scan;
    lab_monitor_scan_init(&scan, fd);
    int first = first_byte(&scan);
    bool is_one = first == '{' || first == '[' ? begins_with_record(&scan)
                                               : first >= 0 && lab_monitor_is_table(&scan, &names);
    lab_monitor_scan_release(&scan);
    return is_one;
}

static const struct {
    const char *magic, *command;
} packed[] = {{"\x28\xb5\x2f\xfd", "zstd -d"}, {"\x1f\x8b", "gunzip"}};

static int read_content(struct lab_monitor_builder *builder, struct lab_monitor_scan *scan,
                        struct lab_recording *recording, const char *path, struct lab_err *err) {
    int first = first_byte(scan);
    if (scan->errno_value)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, scan->errno_value, "%s", path);
    if (first < 0)
        return lab_err_set(err, LAB_ERR_USER, "%s is empty", path);
    if (first == '{' || first == '[')
        return read_json(builder, scan, recording, path, err);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (lab_monitor_scan_fill(scan, 4) == 4 &&
            memcmp(scan->bytes + scan->at, packed[i].magic, strlen(packed[i].magic)) == 0)
            return lab_err_set(err, LAB_ERR_USER, "%s is compressed: unpack it first: %s %s", path,
                               packed[i].command, path);
    if (lab_monitor_scan_fill(scan, 2) >= 2 &&
        (memcmp(scan->bytes, "\xff\xfe", 2) == 0 || memcmp(scan->bytes, "\xfe\xff", 2) == 0))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is UTF-16: convert it first: iconv -f UTF-16 -t UTF-8 %s", path,
                           path);
    LAB_AUTO(str, names);
    size_t lines = 0;
    bool mixed = false;
    if (!lab_monitor_read_table(builder, scan, &names, &lines, &mixed)) {
        lab_str_make_printable(names.text);
        return refuse(path, names.text, err);
    }
    if (mixed)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s names neither GPUs nor times: its lines may be of several GPUs, or "
                           "samples of one; add index and timestamp to --query-gpu",
                           path);
    tell_of_scan(builder, scan);
    return lab_monitor_builder_has_values(builder) || !lines
               ? 0
               : refuse_empty(builder, path, names.text, err);
}

/* "outputs/gpu_stats.json" is called gpu_stats. */
static const char *label_of(const char *path, struct lab_arena *arena) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return lab_arena_strndup(arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

int lab_monitor_read_text(int fd, const char *path, struct lab_arena *arena,
                          struct lab_recording *ret_recording, struct lab_err *err) {
    struct lab_recording recording = {
        .path = lab_arena_strdup(arena, path), .label = label_of(path, arena), .maker = ""};
    struct lab_monitor_builder *builder = lab_monitor_builder_new(arena);
    struct lab_monitor_scan scan;
    lab_monitor_scan_init(&scan, fd);
    int result = read_content(builder, &scan, &recording, path, err);
    if (result == 0) {
        lab_monitor_builder_finish(builder, &recording);
        *ret_recording = recording;
    }
    lab_monitor_scan_release(&scan);
    return result;
}
