/*
 * record_session.h: sampling into files until the time is up, the command has ended, or somebody
 * says stop. One thread takes what the sampler found and writes it; a disk that is full or a reader
 * who is slow stops neither the sampling nor the command.
 */
#pragma once

#include "probe/sampler.h"
#include "record/record_child.h"
#include "record/record_summary.h"
#include "store/foreign/monitor_file.h"
#include "store/recording/recording.h"

struct lab_record_request {
    int64_t interval_ns, duration_ns; /* duration 0 = no limit */
    const char *path;                 /* of the recording; must be new */
    const char *stats_name;           /* NULL = none */
    const char *csv;                  /* "-" = standard output; NULL = none */
    const char *note;                 /* the command's words */
    const char *const *argv;          /* NULL = no command */
    const char *device;               /* what to watch; NULL = everything */
    struct lab_arena *arena;
    bool all_processes;
    bool any_processes; /* all of them where there is no GPU */
};

struct lab_record_session {
    struct lab_machine *machine;
    bool host_only; /* no GPU was asked for */
    struct lab_sampler *sampler;
    struct lab_recorder *recorder;
    struct lab_monitor_stream *stats, *csv;
    int csv_fd; /* -1 = none of ours */
    int signal_fd;
    sigset_t old_mask;
    struct lab_record_child child;
    struct lab_record_summary summary;
    struct lab_sampler_stats sampled;
    int64_t lost; /* samples that are not in the file */
    int64_t start_ns, end_ns;
    uint64_t used_gpus, marked_gpus;      /* entities that the command's processes are on */
    int stop_signal;                      /* that ended it; 0 = none */
    bool told_disk, told_stats, told_csv; /* once is enough */
};

/* Checks everything, opens all outputs and begins to sample; on failure nothing is left behind. */
int lab_record_begin(struct lab_record_session *session, const struct lab_record_request *request,
                     struct lab_err *err);

/* Starts the command, if there is one, and samples to the end. 0, or the exit status of a command
 * that could not be started, and why. */
int lab_record_run(struct lab_record_session *session, const struct lab_record_request *request,
                   struct lab_err *err);

/* Writes what is left and closes. -1: something is missing in the files, and what. */
int lab_record_end(struct lab_record_session *session, struct lab_err *err);

/* Closes, and removes what was made. */
void lab_record_undo(struct lab_record_session *session, const struct lab_record_request *request);

void lab_record_release(struct lab_record_session *session);
