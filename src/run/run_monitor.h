/*
 * run_monitor.h: what a study's runner sees of the machine while runs are under way. Samples go
 * into the study's database; when a run ends, what its GPUs did meanwhile becomes part of its
 * result, and spoils it where it must: a stranger on the GPU, an error that the driver reported,
 * clocks held back.
 *
 * Nothing here can fail a study. Where nothing can be sampled, a run's figures are null, and it is
 * said once why.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "machine/machine.h"
#include "model/result.h"
#include "model/run.h"
#include "model/sample.h"
#include "store/store.h"

#include <sys/types.h>

struct lab_run_monitor;

struct lab_run_monitor_spec {
    const struct lab_machine *machine;
    struct lab_store *store;     /* this thread is its writer */
    bool gpus;                   /* some run uses one: then ten times a second, else twice */
    const struct lab_cpus *cpus; /* where its threads run; NULL = anywhere */
    /* this machine isn't watched: samples come from the simulated one, through the two below */
    bool simulated;
};

int lab_run_monitor_open(const struct lab_run_monitor_spec *spec,
                         struct lab_run_monitor **ret_watch, struct lab_err *err);
void lab_run_monitor_close(struct lab_run_monitor *monitor); /* accepts NULL; writes what is left */

/* Readable when there is something to tend to; -1 without a watch. All of these accept NULL. */
int lab_run_monitor_fd(struct lab_run_monitor *monitor);

/* Takes what was sampled and writes what is due. */
void lab_run_monitor_tend(struct lab_run_monitor *monitor);

/*
 * Something that the simulated machine's sampler watches, under a number that its ticks name; it
 * may be told again. -1: a tick of what wasn't told, or of other columns.
 */
void lab_run_monitor_entity(struct lab_run_monitor *monitor, int number,
                            const struct lab_entity *entity);
int lab_run_monitor_tick(struct lab_run_monitor *monitor, int number, int64_t time_ns,
                         const int64_t *values, int column_count);

/* A run begins or ends: everything is read now. */
void lab_run_monitor_edge(struct lab_run_monitor *monitor);

/* Whether what was asked for by the last edge has come: from every GPU that answers at all, and who
 * is on them. */
bool lab_run_monitor_is_settled(const struct lab_run_monitor *monitor);

/*
 * How much more memory of the device's GPU is in use than before the study began, by the last
 * reading; 0 = none, or it is unknown: no GPU, none that answers.
 */
int64_t lab_run_monitor_memory_left(const struct lab_run_monitor *monitor, const char *device);

/*
 * Whether all GPUs are about as cool as when they were first read, and none is held back, by the
 * last reading; true where nothing is known.
 */
bool lab_run_monitor_is_cool(const struct lab_run_monitor *monitor);

/* What is asked about a run. */
struct lab_run_monitor_question {
    const struct lab_run_rank *ranks;
    int rank_count;
    int64_t start_ns, now_ns;          /* of the whole run */
    const int64_t *first_ns, *last_ns; /* by rank: of what was measured; 0 = unknown */
    const pid_t *own;                  /* processes of the run, workers and whatever they started */
    int own_count;
    bool tells_throttling; /* lowered clocks are what is looked for: they exclude no run */
    pid_t runner; /* whose other workers are no strangers, since runs share GPUs; 0 = they are */
    bool shares;  /* nor are their programs: several runs are meant to be on one device */
};

/*
 * Sets what each rank's GPU did (the group "gpu" of model/result.h), and adds sentences for the
 * run's verdict; nothing for one that isn't on a GPU or that nothing is known of. Texts live in the
 * arena.
 */
void lab_run_monitor_answer(struct lab_run_monitor *monitor,
                            const struct lab_run_monitor_question *question,
                            struct lab_arena *arena, struct lab_result *results);
