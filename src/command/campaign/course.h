/*
 * course.h: a campaign that is carried out: its folder, its studies there, how far each is.
 *
 *     <output_dir>/campaign/<name>/<date>/<time>/
 *         lock                     held while it runs
 *         campaign.yaml            the plan as it was composed
 *         machine.json
 *         campaign.json            identity, what is decided of each phase; written last
 *         <phase>/<study>/…        each study as `gpulab run` leaves it
 *         report/                  the answers, over all phases
 *
 * Decisions follow from the studies' own files alone, each time anew: campaign.json is for people
 * and for finding the folder again.
 */
#pragma once

#include "campaign/campaign.h"
#include "command/command.h"

struct course_study {
    const char *const *words; /* of `gpulab run`, the campaign's overrides behind its own */
    bool multirun;
    bool refined;       /* what it runs is known by now; true of one that doesn't refine */
    const char *why;    /* of one that refines: what was chosen, or why nothing; NULL = unknown */
    const char *title;  /* "numa_study experiment.hardware.gpu_ids=[0,3]" */
    const char *slot;   /* the folder below which it lies; NULL = there is no campaign's yet */
    const char *folder; /* the study's own; NULL = it hasn't begun */
    int run_count;      /* planned */
    bool resume;
};

struct course {
    const struct lab_command_call *call;
    struct lab_arena *arena;
    const char *config_dir; /* NULL = not given */
    struct lab_config_path path;
    struct lab_campaign campaign;
    const char *yaml;                 /* as composed */
    const char *const *overrides;     /* for each study */
    const char *device;               /* of --device when it began; NULL = not given */
    struct lab_machine *machine;      /* of this host; the caller closes it */
    struct lab_plan_devices *devices; /* of all studies' plans; NULL = none is planned */
    const char *machine_json;         /* of the one that studies run on */
    uint64_t identity, machine_identity;
    const char *output_dir;
    bool simulated, resume;
    const char **device_names; /* that studies use; bits of lab_campaign_use count them */
    int device_count;
    struct course_study *studies; /* in the order of the file */
    struct lab_campaign_found *found;
    struct lab_campaign_claims *claims; /* of each phase */
    struct lab_campaign_claims *steps;  /* of each study that a step of its phase goes by */
    bool *is_read;                      /* claims of each phase, then of each step */
    const char *folder;                 /* NULL = none yet */
    bool resumed;
    int lock_fd;
    const char *machine_note; /* how the machine differs from the one it began on; NULL = not */
};

/* Composes the campaign: words "campaign.KEY=…" change its file, all others go to each study. */
int course_compose(struct course *course, const char *config_dir, const char *name,
                   const char *const *words, int count, struct lab_err *err);

/* What course_compose makes of the composed tree. */
int course_take(struct course *course, const char *name, const struct lab_value *tree,
                struct lab_err *err);

/* Plans each study on this machine, so that what is wrong is said before anything runs. With
 * `estimate`, what each takes, after a few short runs where `calibrate`. */
int course_plan(struct course *course, bool estimate, bool calibrate, struct lab_err *err);

/* Runs that the command lines would take which the campaign replaces. */
int course_count_replaced(struct course *course, int64_t *ret_runs, struct lab_err *err);

/* Finds the newest unfinished folder of the same plan, or makes one; holds it. A machine that
 * changed in between is LAB_ERR_USER, unless accepted. */
int course_open(struct course *course, bool accept_machine, struct lab_err *err);
/* The newest folder of the same plan, finished or not, to look at: nothing is held. */
int course_look(struct course *course, struct lab_err *err);
/* Whether the word is a campaign's folder; then likewise, with the plan that is frozen there. */
bool course_is_folder(const char *word);
int course_reopen(struct course *course, const char *folder, struct lab_err *err);
/* A folder that was made and in which nothing will run. */
void course_discard(struct course *course);
void course_close(struct course *course);

/* Reads what is known of each study; then as course_refine. */
int course_read(struct course *course, struct lab_err *err);
/* The same of one study that has run. */
int course_read_study(struct course *course, int study, struct lab_err *err);

/* Reads the claims of phases that have ended, and gives studies that refine their points, once the
 * phases and steps before have ended. Those without any count as ended. */
int course_refine(struct course *course, struct lab_err *err);
/* Claims of this phase are to be read again: it has run. */
void course_forget_claims(struct course *course, int phase);

struct lab_campaign_known course_known(const struct course *course);
/* campaign.json. `ended`: nothing else is to be done, its report is written: where all phases are
 * done or skipped, the same command begins a new one. */
int course_write(const struct course *course, const struct lab_campaign_status *statuses,
                 bool ended, struct lab_err *err);

/* The folders of all studies of these phases that have begun; NULL-terminated. */
const char *const *course_folders(const struct course *course, const int *phases, int count,
                                  int *ret_count);

/* The study's words, with its output_dir where there is a folder. */
int course_study_plan(const struct course *course, int study, struct lab_arena *arena,
                      struct lab_plan *ret_plan, const char *const **ret_words,
                      const char *const **ret_overrides, struct lab_err *err);

/* What the study takes of the machine, of a plan that is made for it, into what is known of it. */
int course_find_use(struct course *course, int study, struct lab_err *err);

/* Carries out what is left. */
int course_run(struct course *course, bool verbose, int *ret_status, struct lab_err *err);
/* Returns once all GPUs are cooler than the campaign asks for, or it has waited long enough. */
void course_wait_for_heat(const struct course *course);

/* The folder as an archive, with what a rerun elsewhere needs. `output` NULL: NAME-DATE-TIME.tar.gz
 * here. */
int course_pack(const struct course *course, const char *output, const char **ret_path,
                struct lab_err *err);

/* --- shown --- */

struct lab_doc;
void course_add_schedule(const struct course *course, const struct lab_campaign_schedule *schedule,
                         struct lab_doc *doc);
void course_add_phases(const struct course *course, const struct lab_campaign_status *statuses,
                       struct lab_doc *doc);
