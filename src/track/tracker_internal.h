/* tracker_internal.h: parts of tracker_send.c: a run's values, and the journal. */
#pragma once

#include "model/run.h"
#include "store/store.h"
#include "track/tracker_send.h"

/* How far a run was sent. */
struct track_position {
    int64_t attempt;   /* 0 = nothing was sent */
    int64_t batch;     /* that come next; bytes of all before */
    int64_t bytes;     /* in the run's file */
    int64_t rows;      /* and samples */
    int64_t metric;    /* the store's number of the last one */
    int64_t sample_ns; /* the last one's time; 0 = none */
    int64_t ended;     /* 1 = its end, too */
    int64_t read;      /* metrics of the last batch */
    int64_t digest;    /* of all metrics until then; 0 = unknown */
    int64_t revision;  /* how often values that had been sent were others later */
    int64_t all_gpus;  /* 1 = not the run's GPUs alone */
    int64_t counted;   /* rows without samples */
    int64_t fractions; /* 1 = among the steps: rows are counted instead */
};

/* --- the journal: <study>/track/<tracker>.log, a line for each batch that was delivered --- */

struct track_journal {
    int fd;                       /* -1 = only read */
    struct track_position *items; /* by the run's number */
    struct track_position *next;  /* what was about to be delivered; attempt 0 = nothing */
    int count;
    bool noted;         /* something, since it was opened */
    int64_t changed_ns; /* when it was written last; 0 = it is new */
};

/* Positions of runs 0 to `run_count`. Locked until it is closed: `ret_busy` says that another
 * process has it. With `look` nothing is made or locked. */
int track_journal_open(const char *folder, const char *name, int run_count, bool look,
                       struct lab_arena *arena, struct track_journal *ret_journal, bool *ret_busy,
                       struct lab_err *err);
void track_journal_close(struct track_journal *journal);
/* `about_to`: a batch up to there will be delivered, and the note is durable before. If a crash
 * follows, the same batch is made again, whatever the study has got since. Other notes become
 * durable with the next such or when the journal is closed: what they note lies with the tracker by
 * then, and without them it would be sent again, over the same bytes. */
int track_journal_note(struct track_journal *journal, int64_t run,
                       const struct track_position *position, bool about_to, struct lab_err *err);

/* --- a run's values --- */

/* When a command that is recorded first used each GPU, by index; INT64_MAX = never. */
struct track_usage {
    int64_t first_ns, *used_ns;
    int count;
};

struct track_feed {
    const struct lab_tracker *tracker;
    const struct lab_track_run *about;
    const struct lab_run *run;
    struct lab_store *store;         /* NULL = a recording, which has samples alone */
    const char *recording;           /* its path */
    const struct track_usage *usage; /* NULL = all GPUs of it are the run's */
    bool ended;                      /* no more values come */
    int64_t until_ns;                /* samples from then on may be another run's */
    int64_t max_points;
    struct track_position at;    /* behind what is in `out` */
    struct track_position bound; /* of the batch, since it may be there already; attempt 0 = none */
    struct lab_track_out out;
    bool more_metrics, more_samples;  /* are stored, or may be */
    int64_t points;                   /* values in `out` */
    int64_t thinned_from, thinned_to; /* values of series that were too long */
};

/* Of all metrics of a run, as a position has it; 0 = they can't be read. */
int64_t track_metrics_digest(struct lab_store *store, int64_t run);
/* The next metrics, into `out`: how many were read; -1 = failure. */
int64_t track_feed_metrics(struct track_feed *feed, struct lab_err *err);
/* The next samples likewise. */
int64_t track_feed_samples(struct track_feed *feed, struct lab_err *err);
/* Times of the iterations of a workload, thinned; once, when the run has ended. */
int track_feed_iterations(struct track_feed *feed, struct lab_err *err);

/* --- sending --- */

struct track_sender {
    const struct lab_tracker *tracker;
    const struct lab_track_request *request;
    struct lab_store *store;
    const char *recording; /* as of a feed */
    const struct track_usage *usage;
    bool compare; /* what is stored with what was sent: the store is the newer */
    struct track_journal journal;
    const char *host; /* on which the study ran */
    int64_t now_ns;   /* before the runs were read: one that ran then had all samples until then */
    struct lab_track_sent *sent;
    struct lab_arena *arena; /* of what is in `sent` */
};

/* Durable when it returns 0; the folder is made. */
int track_deliver(const struct lab_tracker *tracker, const struct lab_track_run *run,
                  const char *place, int64_t batch, const struct lab_track_out *out,
                  struct lab_err *err);

/* What is new of a run, and its end where it has ended; counts it. */
int track_send_run(struct track_sender *sender, const struct lab_run *run,
                   struct lab_track_run *about, struct lab_err *err);

/* The journal of what lies at `home`; runs are numbered from 1. */
int track_send_open(struct track_sender *sender, const char *home, int run_count,
                    struct lab_arena *arena, struct lab_err *err);

/* Behind the last of a study's runs: the study as a whole, as run 0. */
struct lab_study_file;
int track_send_whole(struct track_sender *sender, struct lab_study_file *file, struct lab_err *err);

/* A recording, which is a run by itself. */
int track_send_recording(struct track_sender *sender, const char *path, struct lab_arena *arena,
                         struct lab_err *err);
/* Whether a recorder writes to it now: it does so every second, and leaves one file in the end. */
bool track_recording_is_open(const char *path);

/* Wall time of a time of the run; one that is unknown is its beginning. */
int64_t track_feed_wall(const struct track_feed *feed, int64_t time_ns);
