/*
 * session.h: one workload on one device: what `bench`, a worker's rank and the tuner share. A user
 * fills the first part of the struct, then takes the steps in this order:
 *
 *     choose   which device a selector names
 *     lease    the physical device, so that no one else measures on it; a worker's runner does so
 *     bind     the calling thread, before anything is allocated; may come before `choose`
 *     open     the device, then the workload; what they allocate lies on the node
 *     verify   the results against double precision
 *     measure  the workload as it is, or several configurations side by side
 *     prove    that thread and memory lie where they should; by then all pages are used
 *     close    workload and device; both may be opened again
 *
 * A step that isn't wanted is left out: the tuner proves nothing, `bench` doesn't configure. All of
 * them are called by one thread. Errors say what went wrong, not where: the user adds that.
 */
#pragma once

#include "measure/measure.h"
#include "session/lease.h"
#include "workload/workload.h"

/* What is told on the way. Each slot may be NULL: then it is lost. */
struct lab_session_listener {
    /* a part without progress begins: "opening", "verifying" */
    void (*phase)(void *state, const char *phase);
    /* between two chunks of iterations, outside of what is timed; true ends the measurement */
    bool (*progress)(void *state, const struct lab_measure_progress *now);
    /* before that: the measured chunk, warm-up excluded; of several choices, the first one's */
    void (*iterations)(void *state, const struct lab_iteration *records, int count);
    /* what the workload itself tells: metrics, warnings, output; the state is that of all slots */
    struct lab_sink sink;
};

struct lab_session {
    /* --- the user's: what is done, where, and who hears of it --- */
    const struct lab_machine *machine;
    const struct lab_workload *workload;
    const void *config;      /* checked; a tuned configuration is in it already */
    struct lab_arena *arena; /* of all texts and measurements */
    struct lab_session_listener listener;
    /* what the workload is told of its place: node, index, count, seed, …; device, ref and sink are
     * the session's */
    struct lab_rank rank;
    struct lab_device_setup setup; /* for simulated devices; node and copy cores are set by open */
    /* optional: before each iteration, outside of its time; with the listener's state */
    int (*before)(void *state, struct lab_err *err);

    /* --- what the steps leave --- */
    struct lab_device_list devices; /* choose: all that the selector names */
    struct lab_device_ref ref;      /* the first of them */
    struct lab_lease lease;
    struct lab_device *device; /* open; NULL for an external workload */
    void *state;               /* the workload's */
    bool opened;               /* it is open */
    double setup_s;            /* that opening the workload took, by the device's clock */
    bool verified;             /* `verification` holds something */
    struct lab_verification verification;     /* the last one */
    const struct lab_session_choice *choices; /* measure: while it runs */
    const struct lab_iteration *chunk;        /* likewise: what the listener hears next */
    int chunk_count;
    int failed;             /* of the choices that were measured, the one that failed; -1 = none */
    struct lab_err failure; /* and what it said */
    bool thread_proven, memory_proven; /* prove; false where there was nothing to prove, too */
    const char *invalid[2];            /* sentences: what was found to be elsewhere */
    int invalid_count;
};

/* LAB_ERR_USER where the selector names no device here. */
int lab_session_choose(struct lab_session *session, const char *selector, struct lab_err *err);

/*
 * Of the first `count` devices; of simulated ones there is no lease. While another process has one,
 * it says so once and waits, until Ctrl-C (LAB_ERR_INTERRUPTED). What a study's run starts may use
 * the study's devices: a holder that this process descends from isn't waited for. `command` is what
 * others are told: "gpulab bench gemm".
 */
int lab_session_lease(struct lab_session *session, int count, const char *command,
                      struct lab_err *err);

/* To rank.numa_node, unless that is -1 or the chosen device is simulated. */
int lab_session_bind(struct lab_session *session, struct lab_err *err);

/* The device alone; nothing where it is open already or the workload is external. */
int lab_session_open_device(struct lab_session *session, struct lab_err *err);
/* Both. On failure the device may be open: close it. */
int lab_session_open(struct lab_session *session, struct lab_err *err);

/* A configuration of its kernel, "tile_m=64,tile_n=128", that the open device can do. */
int lab_session_parse(const struct lab_session *session, const char *text,
                      struct lab_tuning *ret_tuning, struct lab_err *err);
/* From here on the kernel runs so. */
int lab_session_configure(struct lab_session *session, const struct lab_tuning *tuning,
                          struct lab_err *err);

/* Fills `verification`; wrong results are no error. Nothing for an external workload. */
int lab_session_verify(struct lab_session *session, uint64_t seed, struct lab_err *err);
/* What is wrong with the verified results, in the arena; NULL = nothing. */
const char *lab_session_why_wrong(const struct lab_session *session);

struct lab_session_choice { /* one of several configurations */
    const char *name;
    struct lab_tuning tuning;
};

/* So many iterations of a configuration (NULL = as it is), timed by nobody: a warm-up. */
int lab_session_run(struct lab_session *session, const struct lab_tuning *tuning, int count,
                    struct lab_iteration *records, struct lab_err *err);

/*
 * Measures the workload as it is configured (`choices` NULL, count 1), or the choices side by side;
 * `ret` has `count` measurements, their records in the arena. Clock and progress of the plan are
 * the session's.
 */
int lab_session_measure(struct lab_session *session, const struct lab_measure_plan *plan,
                        const struct lab_session_choice *choices, int count,
                        struct lab_arena *arena, struct lab_measurement *ret, struct lab_err *err);

/* Of a real device; leaves thread_proven, memory_proven and invalid. */
void lab_session_prove(struct lab_session *session);

/* Each accepts what isn't open. */
void lab_session_close_workload(struct lab_session *session);
void lab_session_close(struct lab_session *session);   /* and the device */
void lab_session_release(struct lab_session *session); /* and the lease */
