/*
 * hint.c: what a user can do about a failed run. Errors are recognised by their words, since that is
 * all that is kept of them; tests/unit/report/test_report_hint.c holds them as they are written.
 */
#include "report/study.h"

#include <string.h>

static const char space[] =
    "Free some space there and give the same command again: it goes on where it stopped.";
static const char less_memory[] =
    "Give a smaller experiment.test.batch_size or experiment.test.memory_size_mb.";
static const char other_node[] = "Give nodes that it may use to "
                                 "experiment.hardware.numa_nodes=[…]: `gpulab devices` shows them.";
static const char bug[] =
    "Its results are wrong, so it was not timed: see whether `gpulab bench` with "
    "the same keys says so too, and report a bug with what it prints.";
static const char look[] = "The end of its logs/<run>.stderr says why.";

/* The first row that fits counts: the narrower one stands before the wider one. */
static const struct {
    const char *needle, *also; /* both must be there; NULL = one is enough */
    const char *hint;
} hints[] = {
    /* full: such a text may name memory or time as well */
    {"No space left", NULL, space},
    {"disk is full", NULL, space},
    {"Disk quota exceeded", NULL, space},
    {"Too many open files", NULL, "Raise the limit with `ulimit -n 65536` and try again."},

    /* a process's end: the text may quote its last words, or guess */
    {"the program ", "signal 9",
     "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` tells."},
    {"the program ", NULL, look},
    {"signal 9", NULL,
     "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` tells. A smaller "
     "experiment.test.batch_size or memory_size_mb needs less."},
    {"the worker ", NULL,
     "The end of its logs/<run>.stderr may say why. If it is gpulab that crashed, report a bug "
     "with "
     "it."},

    /* time */
    {"timed out", "measuring",
     "Give it more time with experiment.test.timeout_s=…, or less to do with "
     "experiment.test.num_samples=…"},
    {"timed out", "verifying",
     "Comparing a large model with double precision takes long: give it more time with "
     "experiment.test.timeout_s=…"},
    {"timed out", NULL, "Give it more time with experiment.test.timeout_s=…"},

    /* memory */
    {"comparing with double precision takes", NULL,
     "The check before the measurement needs room too: give a smaller experiment.test.batch_size, "
     "or "
     "free memory."},
    {"control group leaves", NULL,
     "Raise the memory limit of the container or job, or give a smaller "
     "experiment.test.memory_size_mb or experiment.test.batch_size."},
    {"host memory of ", "asked for",
     "Give a smaller experiment.test.memory_size_mb or experiment.test.batch_size, or free memory "
     "on "
     "that node."},
    {"device memory", "asked for",
     "Give a smaller experiment.test.batch_size or experiment.test.memory_size_mb, or a smaller "
     "model."},
    {"free, ", "asked for", less_memory},
    {"too little memory", NULL, less_memory},
    {"out of memory", NULL, less_memory},
    {"out of device memory", NULL, less_memory},
    {"OUT_OF_MEMORY", NULL, less_memory},

    /* places */
    {"there is no NUMA node", NULL, other_node},
    {"no CPUs to bind to", NULL, other_node},
    {"binding ", " to CPUs ", other_node},
    {"this process has no CPU ", NULL,
     "Its cpuset (taskset, numactl, container or job) leaves that core out: give it more cores, or "
     "other nodes with experiment.hardware.numa_nodes=[…]."},
    {"is not bound to node", NULL,
     "Something moved the thread, a cpuset or a daemon that balances CPUs: stop it, or give other "
     "nodes with experiment.hardware.numa_nodes=[…]."},
    {"memory is not on node", NULL,
     "The node was full or the kernel moved pages: free memory there, or switch NUMA balancing off "
     "(kernel.numa_balancing=0)."},
    {"asking where pages lie", "forbidden",
     "Give the container --cap-add SYS_NICE, or run it outside of one."},

    /* results */
    {"erification failed", NULL, bug},
    {"failed its verification", NULL, bug},
    {"relative error", NULL, bug},
    {"wrong result", NULL, bug},
    {"results are wrong", NULL, bug},

    /* files */
    {"Permission denied", NULL, "Check who may read or run what the message names."},
    {"No such file or directory", NULL, "Check the path: it is looked up from where gpulab runs."},
};

const char *lab_report_hint(const char *error) {
    if (!error)
        return NULL;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(error, hints[i].needle) && (!hints[i].also || strstr(error, hints[i].also)))
            return hints[i].hint;
    return NULL;
}
