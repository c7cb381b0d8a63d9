/*
 * frame.h: what a worker and its runner tell each other, on a socket of their own: frames with a
 * length in front, so that neither what the workload prints nor a worker gone wrong can pass for a
 * result. worker.h has the order of the conversation.
 *
 *     u32 length of the payload · u16 type · u16 rank · payload          all little-endian
 *
 * A worker's first frame is HELLO with the protocol's version. Types that a reader doesn't know are
 * skipped: an older runner survives a newer worker. A length above the cap, a payload that doesn't
 * decode, a rank that doesn't exist end the conversation with an error; nothing is ever read beyond
 * a payload.
 *
 * ENTITY: number, kind, index, node, parent, columns (4 bytes each; number and columns from 0 on),
 * for each column its instance (4) and its metric's name, then id, name and PCI address. TICKS:
 * number, columns, rows (4), for each row its time and its values. METRICS: for each its value,
 * time, step, rank (4), name and unit. RESULT: model/result.h; keys that a reader doesn't know are
 * skipped, and what isn't sent is absent.
 *
 * In a payload, whole numbers and the bits of a double have 8 bytes, HELLO's version and number of
 * ranks, FAILURE's code and MEET's answer (0 or 1) 4; texts are UTF-8, end with a zero byte and
 * stand last. FAILURE's hint is such a text, its name: one that the reader doesn't know is none.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/iteration.h"
#include "model/reported_metric.h"
#include "model/result.h"
#include "model/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAB_WORKER_FD      3        /* where a worker finds its socket */
#define LAB_WORKER_COMMAND "worker" /* gpulab's hidden command that calls lab_worker_run */

#define LAB_FRAME_VERSION        4
#define LAB_FRAME_MAX_BYTES      ((size_t)4 << 20) /* of a payload */
#define LAB_FRAME_MAX_RANKS      65536
#define LAB_FRAME_MAX_ITERATIONS 32768 /* in a frame: fits the cap however badly they pack */
#define LAB_FRAME_MAX_VALUES     ((size_t)1 << 18) /* of ticks in a frame, their times among them */
#define LAB_FRAME_MAX_ENTITIES   1024
#define LAB_FRAME_MAX_METRICS    1024 /* in a frame */
#define LAB_FRAME_MAX_NAME       1024 /* bytes of an entity's, metric's or hint's name */

enum lab_frame_type {
    LAB_FRAME_HELLO = 1,  /* version, process id, ranks of the whole gang */
    LAB_FRAME_PHASE,      /* "opening", "verifying", "warm-up", "measuring", "tracing" */
    LAB_FRAME_PROGRESS,   /* iterations done, of so many */
    LAB_FRAME_ITERATIONS, /* a chunk of records, packed; first index */
    LAB_FRAME_METRICS,    /* values that the workload reports */
    LAB_FRAME_WARNING,    /* a sentence */
    LAB_FRAME_RESULT,     /* the last one of a run that worked: a rank's values */
    LAB_FRAME_FAILURE,    /* the last one of a run that didn't: code, text and hint */
    LAB_FRAME_ACK,        /* runner to worker: the result is stored, you may end */
    LAB_FRAME_JOB,        /* runner to worker, first: a JSON object (job.h) */
    LAB_FRAME_READY,      /* this rank is warm and waits for GO */
    LAB_FRAME_GO,         /* runner to worker: all ranks of the gang are ready, measure */
    LAB_FRAME_ENTITY,     /* something that a simulated machine's sampler watches */
    LAB_FRAME_TICKS,      /* what it saw of one: rows in the order of time */
    LAB_FRAME_MEET,       /* all of a worker's ranks wait for those of the gang's other workers, and
                             are willing or not; from the runner: all are here, willing or not */
};

struct lab_frame {
    enum lab_frame_type type;
    int rank;
    union {
        struct {
            int version;
            int64_t pid;
            int rank_count;
        } hello;
        struct {
            int64_t done, total; /* total 0 = unknown; else done is never more */
        } progress;
        struct {
            int64_t first;
            const struct lab_iteration *items;
            size_t count;
        } iterations;
        struct {
            const struct lab_reported_metric *items;
            size_t count;
        } metrics;
        struct {
            enum lab_err_code code;
            const char *text;
            enum lab_hint_id hint;
        } failure;
        struct {
            int number; /* that its ticks name */
            struct lab_entity entity;
        } entity;
        struct {
            int number;
            int column_count;
            const int64_t *times_ns;
            const int64_t *values; /* row after row; all of them are valid */
            size_t count;
        } ticks;
        const struct lab_result *result;
        bool willing;     /* MEET */
        const char *text; /* PHASE, WARNING, JOB */
    };
};

/*
 * Appends the frame as bytes. Texts are cut to fit the cap, and what isn't UTF-8 in them becomes
 * '?': an honest worker never sends what its reader must refuse. Iterations must be chunked by the
 * caller.
 */
void lab_frame_write(const struct lab_frame *frame, struct lab_str *out);

/* --- reading, however the bytes are cut --- */

struct lab_frame_reader {
    struct lab_str bytes; /* not yet decoded */
    size_t used;
    int rank_count;  /* from HELLO; -1 before. A worker, to whom nobody says HELLO, sets 1 */
    int64_t skipped; /* frames of unknown type */
    bool failed;     /* the sender lied: what else it sends is dropped */
};

void lab_frame_reader_init(struct lab_frame_reader *reader);
void lab_frame_reader_release(struct lab_frame_reader *reader);

/* Feed, then take all frames there are: less than one frame then stays, which bounds the memory. */
void lab_frame_reader_feed(struct lab_frame_reader *reader, const void *bytes, size_t length);

/*
 * The next whole frame, its content in the arena: 1 = one, 0 = more bytes are needed, -1 = the
 * sender lies, and nothing more can be read from it: further calls fail in the same way.
 */
int lab_frame_reader_next(struct lab_frame_reader *reader, struct lab_arena *arena,
                          struct lab_frame *ret_frame, struct lab_err *err);

/* How many bytes wait for the rest of their frame; 0 at the end of an orderly conversation. */
size_t lab_frame_reader_pending(const struct lab_frame_reader *reader);
