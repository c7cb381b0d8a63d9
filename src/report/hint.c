/*
 * hint.c: what a user can do about a failed run. Errors are recognised by their words, since that
 * is all that is kept of them; tests/unit/report/test_report_hint.c holds them as they are written.
 * What takes less memory differs between workloads: a hint names keys that the run has, or none.
 */
#include "report/study/study.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

static const char space[] =
    "Free some space there and give the same command again: it goes on where it stopped.";
static const char less_memory[] = "Give {less}.";
static const char other_node[] = "Give nodes that it may use to "
                                 "experiment.hardware.numa_nodes=[…]: `gpulab devices` shows them.";
static const char bug[] =
    "Its results are wrong, so it was not timed: see whether `gpulab bench` with "
    "the same keys says so too, and report a bug with what it prints.";
static const char look[] = "The end of its logs/<run>.stderr says why.";

/* The first row that fits counts: the narrower one stands before the wider one. */
static const struct row {
    const char *needle, *also; /* both must be there; NULL = one is enough */
    const char
        *hint; /* {less}: a smaller this or that; {model}: ", or a smaller model", or nothing */
    const char *without; /* instead, where the workload has no sizes to make less; NULL = nothing */
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
     "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` tells. It takes "
     "less "
     "with {less}.",
     "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` tells."},
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
     "The check before the measurement needs room too: give {less}, or free memory.",
     "The check before the measurement needs room too: free memory."},
    {"control group leaves", NULL,
     "Raise the memory limit of the container or job, or give {less}.",
     "Raise the memory limit of the container or job."},
    {"host memory of ", "asked for", "Give {less}, or free memory on that node.",
     "Free memory on that node."},
    {"device memory", "asked for", "Give {less}{model}."},
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

/* --- what a workload has --- */

static bool has(const struct lab_value *options, const char *key) {
    return options && lab_value_get(options, key);
}

/* "a smaller batch_size", "smaller m, n or k"; nothing where the workload has no such key. Where a
 * study has them differs from one to the next, but for those of the test. */
static void add_less(const struct lab_value *options, struct lab_str *out) {
    static const char *const sizes[] = {"batch_size", "batch", "seq", "rows", "columns",
                                        "m",          "n",     "k",   "size", "bytes"};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    const char *found[SIZES];
    int count = 0;
    if (has(options, "memory_size_mb")) {
        lab_str_add(out, "a smaller experiment.test.batch_size or experiment.test.memory_size_mb");
        return;
    }
    for (int i = 0; i < SIZES; i++)
        if (has(options, sizes[i]))
            found[count++] = sizes[i];
    for (int i = 0; i < count; i++)
        lab_str_printf(out, "%s%s",
                       i > 0       ? i + 1 < count ? ", " : " or "
                       : count > 1 ? "smaller "
                                   : "a smaller ",
                       found[i]);
}

static void add_hint(const struct row *row, const struct lab_value *options, struct lab_str *out) {
    struct lab_str less;
    lab_str_init(&less);
    add_less(options, &less);
    const char *at = strstr(row->hint, "{less}") && !less.length ? row->without : row->hint;
    for (const char *open; at && (open = strchr(at, '{')); at = strchr(open, '}') + 1) {
        lab_str_add_bytes(out, at, (size_t)(open - at));
        if (lab_str_starts(open, "{less}"))
            lab_str_add(out, less.text);
        else if (has(options, "model") || has(options, "depth"))
            lab_str_add(out, ", or a smaller model");
    }
    if (at)
        lab_str_add(out, at);
    lab_str_release(&less);
}

/* Its keys; NULL = unknown. */
static const struct lab_value *parse(const char *options, struct lab_arena *arena) {
    struct lab_err ignored = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    if (!options || lab_json_parse(options, strlen(options), "options", arena, &value, &ignored))
        return NULL;
    return value->type == LAB_VALUE_MAP ? value : NULL;
}

bool lab_report_hint(const char *error, const char *options, struct lab_str *out) {
    size_t before = out->length;
    for (size_t i = 0; error && i < sizeof hints / sizeof *hints; i++) {
        const struct row *row = &hints[i];
        if (!strstr(error, row->needle) || (row->also && !strstr(error, row->also)))
            continue;
        struct lab_arena arena;
        lab_arena_init(&arena);
        add_hint(row, parse(options, &arena), out);
        lab_arena_release(&arena);
        break;
    }
    return out->length > before;
}
