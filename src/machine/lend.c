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
#include <sys/syscall.h>
#include <unistd.h>

#define WORD_BITS (8 * (int)sizeof(long))

static void set_bit(unsigned long *words, int bit) {
    words[bit / WORD_BITS] |= 1UL << (bit % WORD_BITS);
}

static int lend_cpus(const struct lab_cpus *cpus, struct lab_bind_loan *loan, struct lab_err *err) {
    unsigned long wanted[sizeof loan->cpus / sizeof *loan->cpus] = {0};
    if (sched_getaffinity(0, sizeof loan->cpus, (cpu_set_t *)loan->cpus) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "reading where a thread may run");
    for (int i = 0; i < cpus->count; i++)
        if (cpus->items[i] >= 0 && cpus->items[i] < (int)(8 * sizeof wanted))
            set_bit(wanted, cpus->items[i]);
    if (sched_setaffinity(0, sizeof wanted, (const cpu_set_t *)wanted) < 0) {
        int why = errno;
        struct lab_str list;
        lab_str_init(&list);
        lab_cpus_write(cpus, &list);
        lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "binding a program to CPUs %s", list.text);
        lab_str_release(&list);
        return -1;
    }
    loan->has_cpus = true;
    return 0;
}

/* The kernel reads one bit less than it is told. */
#define NODE_BITS(loan) (8 * sizeof(loan)->nodes + 1)

static void lend_memory(int node, struct lab_bind_loan *loan) {
    unsigned long wanted[sizeof loan->nodes / sizeof *loan->nodes] = {0};
    if (node >= (int)(8 * sizeof wanted))
        return;
    set_bit(wanted, node);
    if (syscall(SYS_get_mempolicy, &loan->policy, loan->nodes, NODE_BITS(loan), NULL, 0) < 0 ||
        syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, NODE_BITS(loan)) < 0) {
        lab_log(LAB_LOG_INFO, "a program's memory can't be asked to lie on node %d: %s", node,
                strerrordesc_np(errno));
        return;
    }
    loan->has_policy = true;
}

int lab_bind_lend(const struct lab_cpus *cpus, int node, struct lab_bind_loan *ret_loan,
                  struct lab_err *err) {
    *ret_loan = (struct lab_bind_loan){0};
    if (cpus->count > 0 && lend_cpus(cpus, ret_loan, err) < 0)
        return -1;
    if (node >= 0)
        lend_memory(node, ret_loan);
    return 0;
}

void lab_bind_take_back(struct lab_bind_loan *loan) {
    if (loan->has_cpus)
        sched_setaffinity(0, sizeof loan->cpus, (const cpu_set_t *)loan->cpus);
    if (loan->has_policy)
        syscall(SYS_set_mempolicy, loan->policy, loan->policy == MPOL_DEFAULT ? NULL : loan->nodes,
                loan->policy == MPOL_DEFAULT ? 0 : NODE_BITS(loan));
    *loan = (struct lab_bind_loan){0};
}
