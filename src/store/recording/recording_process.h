/*
 * recording_process.h: lists of processes as few bytes. Most processes do the same as a second ago,
 * so of each only what changed is written; what never changes of one (its name, its command) stands
 * in a row of its own, once.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/sample.h"

#define LAB_PROCESS_LISTS 60 /* in one chunk at most: a minute */
#define LAB_PROCESS_CHUNK_BYTES                                                                    \
    (1 << 18) /* a chunk beyond this is full, however few lists it has */

/* --- packing --- */

/* Who a process is; a row of the file. */
struct lab_process_identity {
    int64_t number;
    int32_t pid, parent_pid;
    uint64_t start;
    uint32_t uid;
    char *user, *name, *command, *container, *advice;
};

struct lab_process_known;
struct lab_process_state; /* the figures of one process in the list before */

struct lab_process_packer {
    int64_t next_number;             /* of an identity */
    struct lab_process_known *known; /* those in the last list, in its order */
    int known_count;
    struct lab_process_identity *fresh; /* not in the file yet */
    int fresh_count;
    size_t fresh_bytes;
    struct lab_process_state *states; /* of the last list of this chunk */
    int state_count;
    struct lab_arena arenas[2]; /* the states are in the first, the next ones in the second */
    struct lab_str bytes;       /* the open chunk, without its sum */
    int64_t first_ns, last_ns;
    int count, items; /* of its lists, and of the processes in them */
};

/* Which row the entity with this number has in the file; 0 = none. */
typedef int64_t lab_process_entity_row(void *state, int entity);

void lab_process_packer_init(struct lab_process_packer *packer);
void lab_process_packer_release(struct lab_process_packer *packer);

/* Adds a list to the open chunk. */
void lab_process_packer_add(struct lab_process_packer *packer, const struct lab_process_list *list,
                            lab_process_entity_row *entity_row, void *state);

/* The chunk as it is now; at least one list is in it. */
void lab_process_packer_finish(const struct lab_process_packer *packer, struct lab_str *out);

/* The next list begins another chunk. */
void lab_process_packer_restart(struct lab_process_packer *packer);

/* The fresh identities are in the file. */
void lab_process_packer_stored(struct lab_process_packer *packer);

/* Nothing of what was packed or known so far will be in the file. */
void lab_process_packer_forget(struct lab_process_packer *packer);

/* --- unpacking --- */

/* Gives the identity's texts and numbers; false = there is no such row. */
typedef bool lab_process_identify(void *state, int64_t number, struct lab_process_sample *ret);

/* The index of the track that a row of entities became; -1 = none. */
typedef int lab_process_track(void *state, int64_t row);

struct lab_process_unpacking {
    lab_process_identify *identify;
    lab_process_track *track;
    void *state;
};

/* The lists of a chunk, `max_items` processes at most in all of them. */
int lab_process_unpack(const void *bytes, size_t length, int max_items,
                       const struct lab_process_unpacking *unpacking, struct lab_arena *arena,
                       struct lab_process_list **ret_lists, int *ret_count, struct lab_err *err);
