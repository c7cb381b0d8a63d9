/* command/log.c: see program_log.h. Lines that gpulab itself put into the log are "=== … ===". */
#include "workload/command/program_log.h"

#include "base/file/file.h"
#include "workload/command/command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (1 << 18)

struct log_reader {
    struct command_reader *reader;
    struct command_reading reading;
    struct command_batch batch;
    lab_program_log_found *found;
    void *state;
    struct lab_program_log log;
    int64_t attempts_left; /* before the one that counts */
    bool failed;
};

static bool is_ours(const char *text, size_t length) {
    return length > 8 && memcmp(text, "=== ", 4) == 0 && memcmp(text + length - 4, " ===", 4) == 0;
}

static bool begins(const char *text, size_t length, const char *with) {
    return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* Whether it ends with such a line: behind what an attempt before printed without its end. */
static bool begins_attempt(const char *text, size_t length) {
    static const char again[] = "=== started again ===", attempt[] = "=== attempt ";
    size_t at = length;
    if (length < sizeof attempt || memcmp(text + length - 4, " ===", 4) != 0)
        return false;
    if (length >= strlen(again) && begins(text + length - strlen(again), strlen(again), again))
        return true;
    for (at -= 4; at > 0 && isdigit((unsigned char)text[at - 1]);)
        at--;
    return at < length - 4 && at >= strlen(attempt) &&
           begins(text + at - strlen(attempt), strlen(attempt), attempt);
}

static void hand_on(struct log_reader *log) {
    size_t count;
    const struct lab_reported_metric *items = command_batch_take(&log->batch, &count);
    if (count && !log->failed)
        log->failed = log->found(log->state, items, count) != 0;
    log->log.values += (int64_t)count;
}

static void on_value(void *opaque, const struct command_value *value) {
    struct log_reader *log = opaque;
    if (log->batch.count == COMMAND_BATCH_MOST)
        hand_on(log);
    command_batch_add(&log->batch, value, -1);
}

static void on_line(void *opaque, const char *text, size_t length) {
    struct log_reader *log = opaque;
    bool begun = text[length - 1] == '=' && log->attempts_left > 0 && begins_attempt(text, length);
    if (begun || (*text == '=' && is_ours(text, length))) {
        log->attempts_left -= begun;
        log->log.cut |= log->attempts_left == 0 && memmem(text, length, " more bytes of ", 15);
        return;
    }
    if (log->attempts_left > 0)
        return;
    log->log.lines++;
    command_reader_line(log->reader, &log->reading, text, length, on_value, log);
}

static void count_attempt(void *opaque, const char *text, size_t length) {
    int64_t *count = opaque;
    *count += begins_attempt(text, length);
}

/* Hands each chunk of the file to the lines. */
static int read_lines(const char *path, void (*line)(void *state, const char *text, size_t length),
                      void *state, const bool *failed, struct lab_program_log *ret_log,
                      struct lab_err *err) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't read %s", path);
    LAB_AUTO_FREE char *chunk = lab_mem_alloc(CHUNK_BYTES, 1);
    struct command_lines lines = {0};
    ssize_t got = 0;
    while (!*failed && (got = read(fd, chunk, CHUNK_BYTES)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        command_lines_add(&lines, chunk, (size_t)got, line, state);
        ret_log->bytes += got;
    }
    int why = got < 0 ? errno : 0;
    ret_log->clipped += command_lines_end(&lines, line, state);
    return why ? lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "can't read %s", path) : 0;
}

int lab_program_log_read(const char *path, const struct lab_value *settings, bool several,
                         lab_program_log_found *found, void *state, struct lab_program_log *ret_log,
                         struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct log_reader log = {.found = found, .state = state};
    const bool never = false;
    struct lab_program_log ignored = {0};
    if (command_reader_make(settings, &arena, &log.reader, err) < 0 ||
        (several && read_lines(path, count_attempt, &log.attempts_left, &never, &ignored, err) < 0))
        return -1;
    command_batch_init(&log.batch);
    int result = read_lines(path, on_line, &log, &log.failed, &log.log, err);
    command_reading_end(&log.reading, on_value, &log);
    hand_on(&log);
    command_batch_release(&log.batch);
    log.log.matched = log.reading.matched;
    log.log.split = log.reading.split;
    log.log.clipped += log.reading.full;
    command_reading_release(&log.reading);
    if (result == 0 && !log.failed)
        *ret_log = log.log;
    return result < 0 || log.failed ? -1 : 0;
}
