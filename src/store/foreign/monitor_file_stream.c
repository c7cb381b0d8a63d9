/*
 * monitor_file_stream.c: samples to files and pipes while they come. What can't be written yet
 * waits in memory, up to a bound; nobody waits for a disk that is full or for a reader who is slow.
 */
#include "store/foreign/monitor_file_stream.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAITING_BYTES (8 << 20)
#define PIECE_BYTES   4096 /* what a pipe that is ready takes without making us wait: PIPE_BUF */
#define PATIENCE_MS   5000 /* for a reader, at the end */

struct stream_out {
    struct lab_monitor_writer writer;
    struct lab_str waiting; /* what the writer made */
    size_t left_out;        /* ticks, for want of room */
    struct lab_monitor_list list;
};

struct lab_monitor_stream {
    struct stream_out outs[2];
    int count;
    int fd; /* of CSV; -1 = files */
    bool plain, over, without_host;
};

/* --- the sink --- */

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_monitor_stream *stream = state;
    if (stream->without_host && entity->kind != LAB_ENTITY_GPU && entity->kind != LAB_ENTITY_MIG)
        return;
    for (int i = 0; i < stream->count; i++)
        lab_monitor_writer_entity(&stream->outs[i].writer, number, entity);
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct lab_monitor_stream *stream = state;
    for (int i = 0; i < stream->count && !stream->over; i++) {
        struct stream_out *out = &stream->outs[i];
        if (out->waiting.length < WAITING_BYTES)
            lab_monitor_writer_tick(&out->writer, tick);
        else
            out->left_out++;
    }
}

static void take_event(void *state, const struct lab_sample_event *event) {
    struct lab_monitor_stream *stream = state;
    for (int i = 0; i < stream->count; i++)
        lab_monitor_writer_event(&stream->outs[i].writer, event);
}

static void take_processes(void *state, const struct lab_process_list *list) {
    struct lab_monitor_stream *stream = state;
    for (int i = 0; i < stream->count; i++)
        lab_monitor_writer_processes(&stream->outs[i].writer, list);
}

struct lab_sink_samples lab_monitor_stream_sink(struct lab_monitor_stream *stream) {
    return (struct lab_sink_samples){take_entity, take_tick, take_event, take_processes, stream};
}

/* --- opening --- */

static struct lab_monitor_stream *make(const enum lab_monitor_format *formats, int count,
                                       const struct lab_monitor_stream_setup *setup) {
    struct lab_monitor_stream *stream = lab_mem_alloc(1, sizeof *stream);
    int64_t offset_ns = setup->wall_offset_ns
                            ? setup->wall_offset_ns
                            : lab_clock_wall_ns() - lab_clock_now(lab_clock_system());
    stream->count = count;
    stream->without_host = setup->without_host;
    stream->fd = -1;
    for (int i = 0; i < count; i++) {
        struct stream_out *out = &stream->outs[i];
        lab_str_init(&out->waiting);
        lab_monitor_writer_init(&out->writer, formats[i], &out->waiting);
        out->writer.gpu = setup->gpu;
        out->writer.interval_ns = setup->interval_ns;
        out->writer.wall_offset_ns = offset_ns;
    }
    return stream;
}

static void release(struct lab_monitor_stream *stream) {
    for (int i = 0; i < stream->count; i++) {
        lab_monitor_writer_release(&stream->outs[i].writer);
        lab_str_release(&stream->outs[i].waiting);
        lab_monitor_list_close(&stream->outs[i].list);
    }
    lab_mem_free(stream);
}

int lab_monitor_stream_files(const char *name, const struct lab_monitor_stream_setup *setup,
                             struct lab_monitor_stream **ret_stream, struct lab_err *err) {
    static const enum lab_monitor_format formats[] = {LAB_MONITOR_SINGLE, LAB_MONITOR_MULTI};
    static const char *const endings[] = {".json", "_multi_gpu.json"};
    size_t length = strlen(name);
    const char *slash = strrchr(name, '/');
    if (length >= 5 && lab_str_equal(name + length - 5, ".json"))
        length -= 5;
    if (length == 0 || (slash && slash + 1 >= name + length))
        return lab_err_set(err, LAB_ERR_USER, "'%s' is not a file name", name);
    struct lab_monitor_stream *stream = make(formats, 2, setup);
    LAB_AUTO(str, path);
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++) {
        struct stream_out *out = &stream->outs[i];
        lab_str_clear(&path);
        lab_str_add_bytes(&path, name, length);
        lab_str_add(&path, endings[i]);
        result = lab_monitor_list_open(path.text, formats[i], &out->list, err);
        out->writer.records = out->list.has_records;
    }
    if (result < 0)
        lab_monitor_stream_undo(stream);
    else
        *ret_stream = stream;
    return result;
}

int lab_monitor_stream_csv(int fd, const struct lab_monitor_stream_setup *setup,
                           struct lab_monitor_stream **ret_stream, struct lab_err *err) {
    static const enum lab_monitor_format format = LAB_MONITOR_CSV;
    struct stat info;
    if (fstat(fd, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "nowhere to write CSV to");
    struct lab_monitor_stream *stream = make(&format, 1, setup);
    stream->fd = fd;
    stream->plain = S_ISREG(info.st_mode);
    lab_monitor_begin_csv(&stream->outs[0].writer);
    *ret_stream = stream;
    return 0;
}

/* --- writing lines --- */

static void drop_front(struct lab_str *text, size_t bytes) {
    memmove(text->text, text->text + bytes, text->length - bytes + 1);
    text->length -= bytes;
}

/* A write into a pipe that nobody reads raises SIGPIPE in this thread; it is held back and
 * eaten. */
static ssize_t write_quietly(int fd, const char *bytes, size_t length) {
    sigset_t only_pipe, old, pending;
    sigemptyset(&only_pipe);
    sigaddset(&only_pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &only_pipe, &old);
    ssize_t put = write(fd, bytes, length);
    int why = errno;
    const struct timespec at_once = {0};
    if (put < 0 && why == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&only_pipe, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return put;
}

/* Will a piece be taken without waiting? `wait_ms` at most for that. */
static bool is_ready(const struct lab_monitor_stream *stream, int wait_ms) {
    struct pollfd ready = {.fd = stream->fd, .events = POLLOUT};
    return stream->plain || (poll(&ready, 1, wait_ms) > 0 && ready.revents);
}

static int write_lines(struct lab_monitor_stream *stream, int wait_ms, struct lab_err *err) {
    struct lab_str *text = &stream->outs[0].waiting;
    size_t done = 0;
    int result = 0;
    while (done < text->length && !stream->over && is_ready(stream, wait_ms)) {
        size_t piece = text->length - done;
        if (!stream->plain && piece > PIECE_BYTES)
            piece = PIECE_BYTES;
        ssize_t put = write_quietly(stream->fd, text->text + done, piece);
        if (put > 0) {
            done += (size_t)put;
        } else if (put < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            stream->over = true;
        } else if (put < 0 && errno != EINTR && errno != EAGAIN) {
            result = lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "CSV can't be written");
            break;
        } else if (put < 0 && errno == EAGAIN) {
            break;
        }
    }
    if (stream->over)
        lab_str_clear(text);
    else
        drop_front(text, done);
    return result;
}

/* --- flushing --- */

static int write_list(struct stream_out *out, struct lab_err *err) {
    if (lab_monitor_list_append(&out->list, out->waiting.text, out->waiting.length, err) < 0)
        return -1;
    lab_str_clear(&out->waiting);
    return 0;
}

static int flush(struct lab_monitor_stream *stream, int wait_ms, struct lab_err *err) {
    if (stream->fd >= 0)
        return write_lines(stream, wait_ms, err);
    int result = 0;
    for (int i = 0; i < stream->count; i++) /* both, whatever becomes of the first */
        if (write_list(&stream->outs[i], err) < 0)
            result = -1;
    return result;
}

int lab_monitor_stream_flush(struct lab_monitor_stream *stream, struct lab_err *err) {
    return flush(stream, 0, err);
}

bool lab_monitor_stream_is_over(const struct lab_monitor_stream *stream) {
    return stream->over;
}

int lab_monitor_stream_close(struct lab_monitor_stream *stream, struct lab_err *err) {
    if (!stream)
        return 0;
    size_t left_out = 0;
    for (int i = 0; i < stream->count; i++) {
        lab_monitor_writer_end(&stream->outs[i].writer);
        left_out += stream->outs[i].left_out;
    }
    int result = flush(stream, PATIENCE_MS, err);
    if (result == 0 && stream->fd >= 0 && !stream->over && stream->outs[0].waiting.length)
        result = lab_err_set(err, LAB_ERR_SYSTEM,
                             "the reader of the CSV is blocked: the last lines are missing");
    if (result == 0 && left_out && !stream->over)
        result = lab_err_set(err, LAB_ERR_SYSTEM,
                             "%zu ticks could not be written in time and are missing", left_out);
    release(stream);
    return result;
}

void lab_monitor_stream_undo(struct lab_monitor_stream *stream) {
    if (!stream)
        return;
    for (int i = 0; i < stream->count; i++)
        lab_monitor_list_undo(&stream->outs[i].list);
    release(stream);
}
