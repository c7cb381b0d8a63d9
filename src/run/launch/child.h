/*
 * child.h: one contained process: a worker of the runner. Whatever it does (ignores TERM, starts
 * others that leave its group or its session, closes or floods its descriptors), its keeper never
 * waits for it, and in the end it and all that it started are gone.
 *
 * A child gets a session of its own, default signals, an empty stdin, pipes for stdout and stderr,
 * the other end of a socket as LAB_WORKER_FD, and behind it the descriptors that it shall inherit.
 * Nothing else is open in it.
 *
 * What it started is found by several marks, since each alone can be shaken off: parents, session
 * and group; a variable in the environment; and having been seen below it while it ran. For that
 * the keeper is a child subreaper: those whose parent ends become its own children. Processes below
 * other children, and such as never had to do with this one, are left alone.
 *
 * All functions of a set of children are called by one thread, which outlives them: a worker dies
 * with the thread that started it.
 */
#pragma once

#include "base/err.h"
#include "run/launch/process_tree.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The variable: "<keeper's process>.<time>.<count>". */
#define LAB_CHILD_MARK "GPULAB_WORKER_OF"

/* --- the set: a keeper has one --- */

struct lab_children {
    struct lab_child *first;
    struct lab_process_tree tree; /* as last read */
    int64_t look_ns;              /* when to look next at what they have started */
    int64_t tree_cost_ns;         /* what reading the tree took */
    int64_t started_count;
    bool was_subreaper;
};

void lab_children_init(struct lab_children *children); /* makes the process a subreaper */
void lab_children_release(struct lab_children *children);

/* Remembers what runs below the children, now and then: to be called often, it does little
 * mostly. */
void lab_children_look(struct lab_children *children, int64_t now_ns);

/* A process that descends from a child of `parent`, which may be gone; 0 = none that can be
 * seen. */
pid_t lab_children_find_left(pid_t parent);

/* --- one of them --- */

enum lab_child_state {
    LAB_CHILD_NONE,
    LAB_CHILD_RUNNING,
    LAB_CHILD_ENDED, /* what it started is being ended */
    LAB_CHILD_GONE,  /* with all that it started */
};

struct lab_child_spec {
    const char *program;     /* the file; NULL = argv[0] is looked up on PATH */
    const char *const *argv; /* NULL-terminated */
    const int *inherit_fds;
    int inherit_count;
    int64_t grace_ns; /* between TERM and KILL */
};

struct lab_child {
    enum lab_child_state state;
    pid_t pid;
    /* our ends, not blocking; -1 = closed, which their user may do */
    int socket, out, err;
    int pidfd;       /* to poll for its end; -1 = there is none */
    int exit_status; /* once it has ended; -1 = a signal */
    int signal;      /* 0 = none */
    bool stopped;    /* its keeper asked it to end */
    bool killed;     /* and had to insist */
    bool stuck;      /* gone only as far as a signal can do it: it hangs in the kernel */
    /* the rest is child.c's */
    struct lab_children *children;
    struct lab_child *next;
    char mark[64]; /* in the environment of whatever it starts */
    struct lab_child_seen {
        pid_t pid;
        uint64_t start;
    } * seen;
    int seen_count, clean_looks;
    int64_t grace_ns, stop_ns, ended_ns, sweep_ns, pause_ns;
    bool reaped;
};

/* The child must stay where it is until it is released. */
int lab_child_start(struct lab_child *child, const struct lab_child_spec *spec,
                    struct lab_children *children, struct lab_err *err);

/* Asks it to end: TERM to its group now, KILL to all that is left after the grace. */
void lab_child_stop(struct lab_child *child, int64_t now_ns);
/* The same without grace. */
void lab_child_kill(struct lab_child *child, int64_t now_ns);

/* Sees what happened and does what is due; never blocks. Returns the new state. */
enum lab_child_state lab_child_tend(struct lab_child *child, int64_t now_ns);

/* When it must be tended again at the latest (its pidfd may tell earlier); INT64_MAX = no
 * matter. */
int64_t lab_child_due(const struct lab_child *child, int64_t now_ns);

/* Closes what is open and forgets it. Accepts a zeroed or released one; a running one is killed and
 * left to init. */
void lab_child_release(struct lab_child *child);
