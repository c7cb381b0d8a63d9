/*
 * hint.h: what a user can do about an error. Whoever makes the error names its hint (lab_err_hint
 * in err.h). Files and frames keep the hint by its stable name; reports print its text.
 *
 * A row: id, name, text, and the text for a workload that has no size to reduce (NULL = none).
 * {less} stands for the keys that take less memory ("a smaller batch_size"), {model} for ", or a
 * smaller model" where the workload has one. A name is never used for anything else again.
 */
#pragma once

#define LAB_HINTS(ROW)                                                                             \
    ROW(OUT_OF_SPACE, "out_of_space", "Free disk space there and repeat the command: it resumes.", \
        NULL)                                                                                      \
    ROW(OPEN_FILES, "open_files", "Raise the limit with `ulimit -n 65536` and try again.", NULL)   \
    ROW(PERMISSION, "permission", "Check the permissions of what the message names.", NULL)        \
    ROW(NO_SUCH_FILE, "no_such_file", "Check the path: it is relative to the working directory.",  \
        NULL)                                                                                      \
                                                                                                   \
    /* how a process ended */                                                                      \
    ROW(PROGRAM_KILLED, "program_killed",                                                          \
        "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` shows.", NULL)   \
    ROW(PROGRAM_FAILED, "program_failed",                                                          \
        "Its logs/<run>{rank}.stderr and logs/<run>{rank}.stdout say why, mostly at their ends.",  \
        NULL)                                                                                      \
    ROW(WORKER_KILLED, "worker_killed",                                                            \
        "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` shows. It "      \
        "takes less with {less}.",                                                                 \
        "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` shows.")         \
    ROW(WORKER_CRASHED, "worker_crashed",                                                          \
        "The end of its logs/<run>{rank}.stderr may say why. If it is gpulab that crashed, "       \
        "report a "                                                                                \
        "bug with it.",                                                                            \
        NULL)                                                                                      \
                                                                                                   \
    /* time */                                                                                     \
    ROW(TIMEOUT, "timeout", "Give it more time with experiment.test.timeout_s=…", NULL)            \
    ROW(TIMEOUT_MEASURING, "timeout_measuring",                                                    \
        "Give it more time with experiment.test.timeout_s=…, or less to do with "                \
        "experiment.test.num_samples=…",                                                           \
        NULL)                                                                                      \
    ROW(TIMEOUT_VERIFYING, "timeout_verifying",                                                    \
        "Verifying a large model takes long: give it more time with "                              \
        "experiment.test.timeout_s=…",                                                             \
        NULL)                                                                                      \
                                                                                                   \
    /* memory */                                                                                   \
    ROW(OUT_OF_MEMORY, "out_of_memory", "Give {less}.", NULL)                                      \
    ROW(OUT_OF_DEVICE_MEMORY, "out_of_device_memory", "Give {less}{model}.", NULL)                 \
    ROW(OUT_OF_HOST_MEMORY, "out_of_host_memory",                                                  \
        "Give {less}, or free memory on that NUMA node.", "Free memory on that NUMA node.")        \
    ROW(OUT_OF_VERIFY_MEMORY, "out_of_verify_memory",                                              \
        "Verification needs memory too: give {less}, or free memory.",                             \
        "Verification needs memory too: free memory.")                                             \
    ROW(MEMORY_LIMIT, "memory_limit",                                                              \
        "Raise the memory limit of the container or job, or give {less}.",                         \
        "Raise the memory limit of the container or job.")                                         \
                                                                                                   \
    /* placement */                                                                                \
    ROW(NUMA_NODE, "numa_node",                                                                    \
        "Give NUMA nodes that it may use to experiment.hardware.numa_nodes=[…]: `gpulab "        \
        "devices` shows them.",                                                                    \
        NULL)                                                                                      \
    ROW(CPUSET, "cpuset",                                                                          \
        "Its cpuset (taskset, numactl, container or job) leaves that core out: give it more "      \
        "cores, or other NUMA nodes with experiment.hardware.numa_nodes=[…].",                     \
        NULL)                                                                                      \
    ROW(THREAD_MOVED, "thread_moved",                                                              \
        "Something moved the thread, a cpuset or a daemon that balances CPUs: stop it, or give "   \
        "other NUMA nodes with experiment.hardware.numa_nodes=[…].",                               \
        NULL)                                                                                      \
    ROW(MEMORY_MOVED, "memory_moved",                                                              \
        "The NUMA node was full or the kernel moved pages: free memory there, or switch NUMA "     \
        "balancing off (kernel.numa_balancing=0).",                                                \
        NULL)                                                                                      \
    ROW(MOVE_PAGES_FORBIDDEN, "move_pages_forbidden",                                              \
        "Give the container --cap-add SYS_NICE, or run it outside of one.", NULL)                  \
                                                                                                   \
    ROW(WRONG_RESULTS, "wrong_results",                                                            \
        "Its results are wrong, so it was not timed. See whether `gpulab bench` with the same "    \
        "keys says so too, and report a bug with what it prints.",                                 \
        NULL)

enum lab_hint_id {
    LAB_HINT_NONE = 0,
#define LAB_HINT_ID(id, name, text, without) LAB_HINT_##id,
    LAB_HINTS(LAB_HINT_ID)
#undef LAB_HINT_ID
        LAB_HINT_COUNT,
};

struct lab_hint {
    const char *name;    /* "out_of_device_memory"; "" of LAB_HINT_NONE */
    const char *text;    /* with {less} and {model}; "" of LAB_HINT_NONE */
    const char *without; /* instead, where there is nothing for {less}; NULL = no hint then */
};

const struct lab_hint *lab_hint(enum lab_hint_id id);

/* LAB_HINT_NONE for a name that is unknown here, as a later version's may be. */
enum lab_hint_id lab_hint_find(const char *name);
