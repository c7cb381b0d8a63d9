/* probe_host.c: files, numbers, periods and rows for the probes of the host. */
#include "probe/probe_host.h"

#include "base/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* --- files --- */

#define TAIL_BYTES 256 /* of a path behind the root */

static int open_below(const char *root, const char *tail, int tail_length) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s", root, tail);
    if (tail_length < 0 || tail_length >= TAIL_BYTES || length < 0 ||
        (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

int probe_file_open(const char *root, const char *format, ...) {
    char tail[TAIL_BYTES];
    int length;
    LAB_WITH_ARGS(format, length = vsnprintf(tail, sizeof tail, format, args));
    return open_below(root, tail, length);
}

ssize_t probe_file_read(int fd, char *buffer, size_t size) {
    ssize_t length = fd < 0 ? -1 : pread(fd, buffer, size - 1, 0);
    buffer[length > 0 ? length : 0] = '\0';
    return length;
}

ssize_t probe_file_slurp(char *buffer, size_t size, const char *root, const char *format, ...) {
    char tail[TAIL_BYTES];
    int tail_length;
    LAB_WITH_ARGS(format, tail_length = vsnprintf(tail, sizeof tail, format, args));
    LAB_AUTO_CLOSE int fd = open_below(root, tail, tail_length);
    return probe_file_read(fd, buffer, size);
}

/* --- text --- */

bool probe_text_number(const char **at, int64_t *ret_value) {
    const char *text = *at + strspn(*at, " \t");
    bool negative = *text == '-';
    text += negative;
    if (*text < '0' || *text > '9')
        return false;
    int64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text - '0', &value))
            value = INT64_MAX / 16; /* stays far from where sums overflow */
    *ret_value = negative ? -value : value;
    *at = text;
    return true;
}

const char *probe_text_line(const char *text, const char *key) {
    size_t length = strlen(key);
    while (text && *text) {
        if (strncmp(text, key, length) == 0)
            return text + length;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

void probe_text_cpus(const char *text, bool *marks, int count) {
    int64_t first, last;
    while (probe_text_number(&text, &first)) {
        last = first;
        if (*text == '-') {
            text++;
            if (!probe_text_number(&text, &last))
                return;
        }
        for (int64_t cpu = first < 0 ? 0 : first; cpu <= last && cpu < count; cpu++)
            marks[cpu] = true;
        if (*text != ',')
            return;
        text++;
    }
}

/* --- when --- */

bool probe_due(int64_t *next_ns, int64_t now_ns, int64_t period_ns,
               const struct lab_probe_setup *setup, enum lab_probe_when when) {
    if (when != LAB_PROBE_EDGE && now_ns < *next_ns - setup->interval_ns / 2)
        return false;
    *next_ns = now_ns + period_ns;
    return true;
}

/* --- rows --- */

void probe_row_add(struct probe_row *row, enum lab_metric_id metric, int instance) {
    LAB_PUSH(row->columns, row->count) = (struct lab_column){(int16_t)metric, (int16_t)instance};
    row->values = lab_mem_resize(row->values, (size_t)row->count, sizeof *row->values);
    row->valid =
        lab_mem_resize(row->valid, (size_t)LAB_VALID_WORDS(row->count), sizeof *row->valid);
    probe_row_clear(row);
}

void probe_row_clear(struct probe_row *row) {
    memset(row->values, 0, (size_t)row->count * sizeof *row->values);
    memset(row->valid, 0, (size_t)LAB_VALID_WORDS(row->count) * sizeof *row->valid);
}

void probe_row_set(struct probe_row *row, int column, int64_t value) {
    row->values[column] = value;
    lab_valid_set(row->valid, column);
}

void probe_row_release(struct probe_row *row) {
    lab_mem_free(row->columns);
    lab_mem_free(row->values);
    lab_mem_free(row->valid);
    *row = (struct probe_row){0};
}
