/*
 * folder.h: a study's directory: making it, finding it again, holding it, and knowing all of them.
 *
 *     <output_dir>/<study>/<YYYY-MM-DD>/<HH-MM-SS>/     a second one in the same second gets "_2"
 *         lock        flock'ed while a runner works on it; its content says who that is
 *         .room       there while a runner works on it, and after one that was killed
 *         study.db    …and what else a study leaves
 *
 * A folder is made whole under a hidden name beside its place and then renamed: whoever finds one
 * by its name finds the study in it. What a killed program left under a hidden name is removed by
 * the next one.
 *
 * Locks are flock: the kernel drops them with the last descriptor. Workers inherit it, so that a
 * folder stays held until the last worker of a killed runner is gone.
 */
#pragma once

#include "base/err.h"
#include "base/file/lock.h"
#include "base/mem.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

/* --- a study's own folder --- */

struct lab_folder {
    char *path;   /* absolute; while it is being made, the hidden one */
    char *place;  /* where it will be, or is */
    int lock_fd;  /* held */
    int turn_fd;  /* held while it is being made: others with the same study wait; -1 = not held */
    bool resumed; /* it was there already */
};

#define LAB_FOLDER_ROOM ".room"

#define LAB_FOLDER_INIT ((struct lab_folder){.lock_fd = -1, .turn_fd = -1})

struct lab_folder_request {
    const char *output_dir, *study; /* "outputs", "numa_locality_study" */
    uint64_t identity;              /* of the plan */
    uint64_t once_identity;         /* of the plan with repeat=1 */
    const char *words;              /* of the command, as study.db has them */
    const struct lab_value *config; /* as composed; NULL = unknown */
    uint64_t machine_identity;
    bool resume;         /* look for one that is unfinished */
    const char *command; /* for the lock's content, and to say how an older study is resumed */
};

/*
 * Finds the caller's newest unfinished folder of the same plan and machine and locks it
 * (`resumed`), or makes a hidden one, locked, for the caller to fill and publish. Those of other
 * users are passed over. Unfinished: a run isn't done, or whoever did the last one could not
 * complete the files (LAB_FOLDER_ROOM is there). One that another runner holds is LAB_ERR_USER and
 * says who; a runner that was just killed is given two seconds to be gone. So is one that is just
 * making the study's folder to publish it: of two that begin at once, one finds the other's.
 *
 * Up to 0.1.0 studies repeated nothing by default. One that the very same words began then has the
 * plan of repeat=1, and goes on with it.
 */
int lab_folder_open(const struct lab_folder_request *request, struct lab_folder *ret_folder,
                    struct lab_err *err);
/* Gives a new folder its name: at its place, or with a suffix where another came first. */
int lab_folder_publish(struct lab_folder *folder, struct lab_err *err);
/* Gives the lock back. A folder that was never published is removed. Accepts one of
 * LAB_FOLDER_INIT. */
void lab_folder_close(struct lab_folder *folder);

/* --- looking from outside --- */

/* Whether a runner works on it now, and who (may be NULL). */
bool lab_folder_held(const char *path, struct lab_holder *ret_holder);

/* Where this user's state is kept: $XDG_STATE_HOME/gpulab; NULL = there is no place for it. */
const char *lab_folder_state(struct lab_arena *arena);

/* Notes it among this user's studies ($XDG_STATE_HOME/gpulab/studies); failures don't matter. */
void lab_folder_register(const char *path);

/* All of this user's studies that still exist, newest first: absolute paths in the arena. Where
 * there is no place for their list, those below "outputs" here. */
void lab_folder_known(struct lab_arena *arena, const char *const **ret_paths, int *ret_count);

/*
 * Which study a word of a command line means: a folder, anything in it such as study.db or
 * results.json, the newest known one below a directory, the beginning of a known folder's path
 * below its output_dir ("quick_test", "quick_test/2026-11-15"): the newest; or what it was run by
 * ("numa_study"). NULL = the newest of all. LAB_ERR_USER names the nearest.
 */
int lab_folder_resolve(const char *word, struct lab_arena *arena, const char **ret_path,
                       struct lab_err *err);
