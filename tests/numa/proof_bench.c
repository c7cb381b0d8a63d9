/*
 * proof_bench.c: `gpulab bench` in the four-node machine (see proof.c), watched from outside while
 * it runs: `--device cpu:2 --node 1` computes on node 2's CPUs in node 2's memory and is fed by a
 * thread and memory of node 1; and when somebody moves that thread away, the result says so.
 *
 * What is watched comes from /proc/PID: each thread's name, the CPU it ran on last and those it may
 * use, and numa_maps, where a strict binding reads "bind:N" and pages are counted as "N1=64".
 */
#include "proof.h"

#include "base/file/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "machine/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM     "/bin/gpulab"
#define OUTPUT      "/tmp/bench.json"
#define POOL_PAGES  1000 /* whole batches within memory_size_mb=4 */
#define MODEL_TINY  "depth=1", "dim=64", "heads=1", "patch_size=32"
#define KEYS_COMMON "tensor_shape=[3,64,64]", "batch_size=2", "memory_size_mb=4", "--warmup=0"

struct sight {             /* of a running bench */
    int device_threads;    /* the most at once */
    bool device_outside;   /* one of them was seen, or allowed, off node 2 */
    bool host_outside;     /* likewise the thread that feeds it, off its node */
    int64_t host_pages;    /* on the host's node; the most at once */
    int64_t device_pages;  /* on node 2 */
    int64_t strayed_pages; /* of either on other nodes */
};

/* The CPU that a thread ran on last: field 39 of stat, where field 2 may hold spaces. */
static int last_cpu(pid_t pid, pid_t tid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 39; field++)
        at = strchr(at + 1, ' ');
    return at ? (int)strtol(at, NULL, 10) : -1;
}

static bool is_device_thread(pid_t pid, pid_t tid) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
    FILE *file = fopen(path, "r");
    if (file && !fgets(name, sizeof name, file))
        name[0] = '\0';
    if (file)
        fclose(file);
    return lab_str_starts(name, "cpu:2");
}

/* Whether the thread ran, and may run, on these CPUs alone; true for one that has just ended. */
static bool is_within(pid_t pid, pid_t tid, const struct lab_cpus *cpus) {
    struct lab_cpus allowed = {0};
    int cpu = last_cpu(pid, tid);
    if (lab_bind_read_cpus(tid, &allowed, NULL) < 0 || cpu < 0)
        return true;
    bool within = cpus_within(&allowed, cpus) && lab_cpus_contain(cpus, cpu);
    lab_mem_free(allowed.items);
    return within;
}

static void look_at_threads(const struct lab_machine *machine, pid_t pid, int host_node,
                            struct sight *sight) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    int count = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid == 0 || !is_device_thread(pid, tid))
            continue;
        count++;
        sight->device_outside =
            sight->device_outside || !is_within(pid, tid, &machine->nodes[2].cpus);
    }
    if (tasks)
        closedir(tasks);
    if (count > sight->device_threads)
        sight->device_threads = count;
    /* it binds itself before it opens the device */
    const struct lab_cpus *host = &machine->nodes[host_node].cpus;
    if (count > 0 && host->count > 0 && !is_within(pid, pid, host))
        sight->host_outside = true;
}

static int64_t pages_on(const char *line, int node) {
    char key[16];
    snprintf(key, sizeof key, " N%d=", node);
    const char *at = strstr(line, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static void look_at_memory(pid_t pid, int host_node, struct sight *sight) {
    char path[64], line[1024];
    int64_t host = 0, device = 0;
    snprintf(path, sizeof path, "/proc/%d/numa_maps", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *bound = strstr(line, " bind:");
        if (!bound)
            continue;
        int node = (int)strtol(bound + 6, NULL, 10);
        *(node == 2 ? &device : &host) += pages_on(line, node);
        if (node != 2 && node != host_node)
            sight->strayed_pages++;
        for (int other = 0; other < 4; other++)
            sight->strayed_pages += other == node ? 0 : pages_on(line, other);
    }
    if (file)
        fclose(file);
    sight->host_pages = host > sight->host_pages ? host : sight->host_pages;
    sight->device_pages = device > sight->device_pages ? device : sight->device_pages;
}

static pid_t start(const struct lab_machine *machine, const char *const *argv) {
    fflush(stdout);
    pid_t child = fork();
    if (child)
        return child;
    lab_bind_thread_to_node(machine, 3, NULL); /* any CPU: where this process is plays no part */
    int file = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    execv(PROGRAM, (char *const *)argv);
    _exit(127);
}

/* Runs a bench to its end; the exit status. `kidnap`: moves its host thread to CPU 0 meanwhile. */
static int watch(const struct lab_machine *machine, const char *const *argv, int host_node,
                 bool kidnap, struct sight *ret_sight) {
    *ret_sight = (struct sight){0};
    pid_t child = start(machine, argv);
    int status = 0;
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        look_at_threads(machine, child, host_node, ret_sight);
        look_at_memory(child, host_node, ret_sight);
        if (kidnap && ret_sight->device_threads > 0) {
            cpu_set_t first;
            CPU_ZERO(&first);
            CPU_SET(0, &first);
            kidnap = sched_setaffinity(child, sizeof first, &first) != 0;
        }
        usleep(20000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const struct lab_value *read_result(struct lab_arena *arena, struct lab_err *err) {
    char *text;
    size_t length;
    struct lab_value *value;
    if (lab_file_read(OUTPUT, 1 << 20, arena, &text, &length, err) < 0 ||
        lab_json_parse(text, length, OUTPUT, arena, &value, err) < 0)
        return NULL;
    return value;
}

static bool is_true(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_BOOL && value->boolean;
}

static void prove_run(const struct lab_machine *machine, const char *what, const char *const *argv,
                      int host_node) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_arena arena;
    struct sight sight;
    lab_arena_init(&arena);
    int status = watch(machine, argv, host_node, false, &sight);
    const struct lab_value *result = read_result(&arena, &err);
    const struct lab_value *node = lab_value_get(result, "numa_node");
    claim(status == 0 && is_true(lab_value_get(lab_value_get(result, "validity"), "valid")) &&
              is_true(lab_value_get(lab_value_get(result, "verification"), "passed")) && node &&
              node->integer == host_node,
          &err, "bench %s on cpu:2 fed from node %d is right and says that it is valid", what,
          host_node);
    claim(sight.device_threads > 0 && !sight.device_outside, NULL,
          "its %d device threads run on node 2's CPUs only", sight.device_threads);
    claim(!sight.host_outside, NULL, "its host thread runs where node %d wants it", host_node);
    claim(sight.device_pages > 0 && sight.host_pages >= POOL_PAGES && sight.strayed_pages == 0,
          NULL, "%lld pages of host memory lie on node %d, %lld of the device on node 2, none else",
          (long long)sight.host_pages, host_node, (long long)sight.device_pages);
    lab_arena_release(&arena);
}

void prove_bench(const struct lab_machine *machine) {
    static const char *const copies[] = {PROGRAM,     "bench",
                                         "vit",       "depth=0",
                                         KEYS_COMMON, "--device=cpu:2",
                                         "--node=1",  "--iterations=200",
                                         "--json",    NULL};
    static const char *const model[] = {
        PROGRAM,    "bench",           "vit",    MODEL_TINY, KEYS_COMMON, "--device=cpu:2",
        "--node=3", "--iterations=20", "--json", NULL};
    static const char *const moved[] = {
        PROGRAM,    "bench",           "vit",    MODEL_TINY, KEYS_COMMON, "--device=cpu:2",
        "--node=1", "--iterations=20", "--json", NULL};
    if (access(PROGRAM, X_OK) != 0)
        return;
    prove_run(machine, "vit0x0x0", copies, 1);
    prove_run(machine, "vit32x1x64", model, 3);

    struct lab_err err = LAB_ERR_INIT;
    struct sight sight;
    LAB_AUTO(arena, arena);
    int status = watch(machine, moved, 1, true, &sight);
    const struct lab_value *validity = lab_value_get(read_result(&arena, &err), "validity");
    LAB_AUTO(str, text);
    if (validity)
        lab_json_write(validity, 0, &text);
    claim(status != -1 && validity && !is_true(lab_value_get(validity, "valid")) &&
              strstr(text.text, "the thread is on CPU 0 of node 0"),
          &err, "a bench whose host thread was moved to node 0 says that it isn't valid, and why");
}
