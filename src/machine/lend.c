/*
 * lend.c: a thread's place, for a moment another one, so that a program it starts inherits that. By
 * system calls: hwloc binds through a topology, which who starts programs needn't have.
 */
#include "base/log.h"
#include "base/str.h"
#include "machine/machine.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD_BITS (8 * (int)sizeof(long))

static void set_bit(unsigned long *words, int bit) {
    words[bit / WORD_BITS] |= 1UL << (bit % WORD_BITS);
}

static int lend_cpus(const struct lab_cpus *cpus, struct lab_affinity_guard *guard,
                     struct lab_err *err) {
    unsigned long wanted[sizeof guard->cpus / sizeof *guard->cpus] = {0};
    if (sched_getaffinity(0, sizeof guard->cpus, (cpu_set_t *)guard->cpus) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "reading a thread's affinity");
    for (int i = 0; i < cpus->count; i++)
        if (cpus->items[i] >= 0 && cpus->items[i] < (int)(8 * sizeof wanted))
            set_bit(wanted, cpus->items[i]);
    if (sched_setaffinity(0, sizeof wanted, (const cpu_set_t *)wanted) < 0) {
        int why = errno;
        LAB_AUTO(str, list);
        lab_cpus_write(cpus, &list);
        lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "binding a program to CPUs %s", list.text);
        return lab_err_hint(err, LAB_HINT_NUMA_NODE);
    }
    guard->has_cpus = true;
    return 0;
}

/* The kernel reads one bit less than it is told. */
#define NODE_BITS(guard) (8 * sizeof(guard)->nodes + 1)

static void lend_memory(int node, struct lab_affinity_guard *guard) {
    unsigned long wanted[sizeof guard->nodes / sizeof *guard->nodes] = {0};
    if (node >= (int)(8 * sizeof wanted))
        return;
    set_bit(wanted, node);
    if (syscall(SYS_get_mempolicy, &guard->policy, guard->nodes, NODE_BITS(guard), NULL, 0) < 0 ||
        syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, NODE_BITS(guard)) < 0) {
        lab_log(LAB_LOG_INFO, "can't bind a program's memory to NUMA node %d: %s", node,
                strerror(errno));
        return;
    }
    guard->has_policy = true;
}

int lab_affinity_guard_begin(const struct lab_cpus *cpus, int node,
                             struct lab_affinity_guard *ret_guard, struct lab_err *err) {
    *ret_guard = (struct lab_affinity_guard){0};
    if (cpus->count > 0 && lend_cpus(cpus, ret_guard, err) < 0)
        return -1;
    if (node >= 0)
        lend_memory(node, ret_guard);
    return 0;
}

void lab_affinity_guard_end(struct lab_affinity_guard *guard) {
    if (guard->has_cpus)
        sched_setaffinity(0, sizeof guard->cpus, (const cpu_set_t *)guard->cpus);
    if (guard->has_policy)
        syscall(SYS_set_mempolicy, guard->policy,
                guard->policy == MPOL_DEFAULT ? NULL : guard->nodes,
                guard->policy == MPOL_DEFAULT ? 0 : NODE_BITS(guard));
    *guard = (struct lab_affinity_guard){0};
}
