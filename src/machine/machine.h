/*
 * machine.h: what is here, and how to be in one place of it. The only user of hwloc.
 *
 * A machine is read once and stays as it was read. Binding acts on the calling process or thread
 * and on memory; every binding can be proven afterwards from what the kernel says, not from what
 * was asked for. Nodes are always given as the kernel's numbers.
 */
#pragma once

#include "base/err.h"
#include "model/machine.h"

#include <stddef.h>
#include <sys/types.h>

/* --- life --- */

/* Reads this computer (topology_file NULL) or a recorded hwloc XML file. */
int lab_machine_open(const char *topology_file, struct lab_machine **ret_machine,
                     struct lab_err *err);
/* This computer's NUMA nodes and cores alone, without PCI devices: in a virtual machine most of the
 * time goes into these, and asking each core about itself waits for its turn on each. */
int lab_machine_open_cores(struct lab_machine **ret_machine, struct lab_err *err);
void lab_machine_close(struct lab_machine *machine); /* accepts NULL */

/* Memory that this process can have on a node now, or for node -1 on all of them; -1 = unknown. */
int64_t lab_machine_free_bytes(const struct lab_machine *machine, int node);

/*
 * Checks that the node exists; the error lists those that do and, where the machine has one node
 * only or a kernel without NUMA, says so.
 */
int lab_machine_require_node(const struct lab_machine *machine, int node, struct lab_err *err);

/* --- cores --- */

/*
 * A recorded machine can't be bound or asked: everything from here on is LAB_ERR_UNSUPPORTED there.
 *
 * Binds the calling thread, or with `whole_process` all present threads and those started later.
 */
int lab_bind_cpus(const struct lab_machine *machine, const struct lab_cpus *cpus,
                  bool whole_process, struct lab_err *err);

/* Binds the calling thread to a node's cores (any core for a node with memory only, logged). */
int lab_bind_thread_to_node(const struct lab_machine *machine, int node, struct lab_err *err);

/* Where thread `tid` (0 = the caller) may run, from /proc; `ret_cpus->items` is the caller's to
 * free. */
int lab_bind_read_cpus(pid_t tid, struct lab_cpus *ret_cpus, struct lab_err *err);

/* --- memory --- */

enum lab_memory_flags {
    LAB_MEMORY_TOUCH = 1, /* every page is written once, so that it exists */
    LAB_MEMORY_LOCK = 2,  /* pages can't be swapped; refused by limits: logged, not fatal */
    LAB_MEMORY_HUGE = 4,  /* transparent huge pages are asked for */
};

/*
 * Maps zeroed memory strictly on `node`, or wherever the kernel likes for node -1. The node's free
 * memory is checked first, since a strict bind beyond it is answered by the OOM killer: too little
 * is LAB_ERR_MEMORY with the size asked for and what is free.
 */
int lab_memory_map(const struct lab_machine *machine, int node, size_t size_bytes, unsigned flags,
                   void **ret_memory, struct lab_err *err);
void lab_memory_unmap(void *memory, size_t size_bytes); /* accepts NULL */

/* --- for programs that a thread starts --- */

/* How a thread was bound before lab_affinity_guard_begin; sized for as many CPUs and nodes as Linux
 * can have. */
struct lab_affinity_guard {
    unsigned long cpus[8192 / (8 * sizeof(long))], nodes[1024 / (8 * sizeof(long))];
    int policy;
    bool has_cpus, has_policy;
};

/*
 * A program inherits where the thread that starts it may run and where that thread's memory goes.
 * Between these two the calling thread is bound to `cpus` (an empty list: as it was) and prefers
 * the node's memory (-1: as it was). Needs no machine: a worker may not have read it. CPUs that
 * can't be had are an error; a kernel without memory policies is logged, since all its memory is
 * alike.
 */
int lab_affinity_guard_begin(const struct lab_cpus *cpus, int node,
                             struct lab_affinity_guard *ret_guard, struct lab_err *err);
void lab_affinity_guard_end(struct lab_affinity_guard *guard); /* the second time does nothing */

/* --- proof --- */

#define LAB_MACHINE_NODES_MAX 1024 /* as many as Linux can have */

struct lab_page_census {
    int64_t pages;                          /* in the range */
    int64_t absent;                         /* not backed by memory yet */
    int64_t on_node[LAB_MACHINE_NODES_MAX]; /* by index into nodes */
    int64_t elsewhere;                      /* on a node this machine doesn't list */
};

/*
 * Asks the kernel for every page (move_pages). On a machine with one node whose kernel can't or may
 * not answer, all that exist are on that node.
 */
int lab_memory_census(const struct lab_machine *machine, const void *memory, size_t size_bytes,
                      struct lab_page_census *ret_census, struct lab_err *err);

/*
 * Fails with LAB_ERR_WRONG, saying where the pages are, unless all present ones lie on the node.
 * Memory of which no page exists proves nothing, and fails too.
 */
int lab_memory_prove(const struct lab_machine *machine, const void *memory, size_t size_bytes,
                     int node, struct lab_err *err);

/*
 * Likewise for the calling thread: where it runs now and where it may run. On a node with memory
 * only it holds anywhere, as lab_bind_thread_to_node does.
 */
int lab_bind_prove_thread(const struct lab_machine *machine, int node, struct lab_err *err);
