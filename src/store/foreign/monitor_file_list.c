/* monitor_file_list.c: opening, mending and lengthening a JSON list of records. */
#include "store/foreign/monitor_file_stream.h"

#include "store/foreign/monitor_file_reader.h"

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL       "\n]\n"
#define TAIL_BYTES (sizeof TAIL - 1)
#define LOOK_BYTES 4096

static int fail(const struct lab_monitor_list *list, struct lab_err *err) {
    bool users = errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == EACCES ||
                 errno == ENAMETOOLONG || errno == EROFS;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno,
                             "%s can't be written", list->path);
}

/* 0, or -1 with errno: everything or an error. */
static int put(int fd, const char *bytes, size_t length, int64_t offset) {
    while (length > 0) {
        ssize_t done = pwrite(fd, bytes, length, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done < 0 ? errno : EIO;
            return -1;
        }
        bytes += done;
        length -= (size_t)done;
        offset += done;
    }
    return 0;
}

/* --- an existing file --- */

/* Is the text a record of that format? */
static bool is_record(const char *text, size_t length, enum lab_monitor_format format) {
    LAB_AUTO(arena, arena);
    struct lab_value *value;
    const struct lab_monitor_json *found = NULL;
    if (lab_json_parse(text, length, "record", &arena, &value, NULL) == 0)
        found = lab_monitor_find_json(value);
    return found && found->format == format;
}

static int refuse(const struct lab_monitor_list *list, enum lab_monitor_format format,
                  struct lab_err *err) {
    return lab_err_set(
        err, LAB_ERR_USER,
        "%s exists and is not a list of records in the format '%s': choose another name",
        list->path, lab_monitor_format_name(format));
}

/* The first record tells whose file it is. */
static int look_at_head(struct lab_monitor_list *list, struct lab_monitor_scan *scan,
                        enum lab_monitor_format format, struct lab_err *err) {
    const char *text;
    size_t length;
    enum lab_monitor_part part = lab_monitor_scan_next(scan, &text, &length);
    list->has_records = part == LAB_MONITOR_PART_RECORD;
    list->end = scan->record_end;
    bool fits = part == LAB_MONITOR_PART_END
                    ? scan->stray_bytes == 0
                    : part == LAB_MONITOR_PART_RECORD && is_record(text, length, format);
    return scan->list && fits ? 0 : refuse(list, format, err);
}

/* Ends it with a record and a bracket? Then `end` is behind the record. */
static bool look_at_tail(struct lab_monitor_list *list, int64_t size) {
    char bytes[LOOK_BYTES];
    int64_t from = size > LOOK_BYTES ? size - LOOK_BYTES : 0;
    ssize_t got = pread(list->fd, bytes, sizeof bytes, from);
    static const char blanks[] = {' ', '\t', '\r', '\n'};
    while (got > 0 && memchr(blanks, bytes[got - 1], sizeof blanks))
        got--;
    if (got <= 0 || bytes[--got] != ']')
        return false;
    while (got > 0 && memchr(blanks, bytes[got - 1], sizeof blanks))
        got--;
    if (got <= 0 || bytes[got - 1] != (list->has_records ? '}' : '['))
        return false;
    list->end = from + got;
    return true;
}

static int look_at_file(struct lab_monitor_list *list, enum lab_monitor_format format, int64_t size,
                        struct lab_err *err) {
    struct lab_monitor_scan scan;
    const char *text;
    size_t length;
    lab_monitor_scan_init(&scan, list->fd);
    int result = look_at_head(list, &scan, format, err);
    if (result == 0 && !look_at_tail(list, size)) {
        while (lab_monitor_scan_next(&scan, &text, &length) != LAB_MONITOR_PART_END)
            continue;
        list->end = scan.record_end;
        lab_log(LAB_LOG_WARNING, "%s was cut off: it continues after its last whole record",
                list->path);
    }
    lab_monitor_scan_release(&scan);
    return result;
}

/* --- life --- */

static int prepare(struct lab_monitor_list *list, enum lab_monitor_format format,
                   struct lab_err *err) {
    struct stat info;
    if (fstat(list->fd, &info) < 0)
        return fail(list, err);
    if (!S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a device or pipe, not a file", list->path);
    if (flock(list->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is being written by another process: choose another name",
                           list->path);
    if (info.st_size == 0) {
        list->end = 1;
        return put(list->fd, "[" TAIL, 1 + TAIL_BYTES, 0) < 0 ? fail(list, err) : 0;
    }
    if (look_at_file(list, format, info.st_size, err) < 0)
        return -1;
    if (put(list->fd, TAIL, TAIL_BYTES, list->end) < 0 ||
        ftruncate(list->fd, list->end + (int64_t)TAIL_BYTES) < 0)
        return fail(list, err);
    return 0;
}

int lab_monitor_list_open(const char *path, enum lab_monitor_format format,
                          struct lab_monitor_list *ret_list, struct lab_err *err) {
    struct lab_monitor_list list = {.path = lab_mem_strdup(path)};
    /* without O_NONBLOCK, opening a pipe would wait for its reader */
    static const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    list.fd = open(path, flags | O_EXCL, 0666);
    list.created = list.fd >= 0;
    if (list.fd < 0 && errno == EEXIST)
        list.fd = open(path, flags, 0666);
    if (list.fd < 0) {
        fail(&list, err);
        lab_mem_free(list.path);
        return -1;
    }
    if (prepare(&list, format, err) < 0) {
        lab_monitor_list_undo(&list);
        return -1;
    }
    *ret_list = list;
    return 0;
}

void lab_monitor_list_close(struct lab_monitor_list *list) {
    if (!list->path)
        return;
    close(list->fd);
    lab_mem_free(list->path);
    *list = (struct lab_monitor_list){0};
}

void lab_monitor_list_undo(struct lab_monitor_list *list) {
    if (list->path && list->created)
        unlink(list->path);
    lab_monitor_list_close(list);
}

/* What a full disk took only in part is taken back: the old end lies in space that is ours. */
int lab_monitor_list_append(struct lab_monitor_list *list, const char *records, size_t length,
                            struct lab_err *err) {
    if (length == 0)
        return 0;
    LAB_AUTO(str, text);
    lab_str_add_bytes(&text, records, length);
    lab_str_add_bytes(&text, TAIL, TAIL_BYTES);
    int result = put(list->fd, text.text, text.length, list->end);
    if (result < 0) {
        int why = errno;
        if (put(list->fd, TAIL, TAIL_BYTES, list->end) == 0 &&
            ftruncate(list->fd, list->end + (int64_t)TAIL_BYTES) < 0)
            lab_log(LAB_LOG_WARNING, "%s ends with part of a record: %s", list->path,
                    strerror(errno));
        errno = why;
        return fail(list, err);
    }
    list->end += (int64_t)length;
    list->has_records = true;
    lab_failpoint("after-append");
    return 0;
}
