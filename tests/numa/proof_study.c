/*
 * proof_study.c: `gpulab run numa_study` in the four-node machine (see proof.c): every CPU device
 * fed from every node, each run in a worker of its own that is watched from outside while it runs.
 * When the study has ended, each run's claim (results.json) is compared with what was seen of its
 * worker.
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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM    "/bin/gpulab"
#define OUTPUT     "/tmp/study.json"
#define NODES      4
#define DEVICES    3
#define RUNS       (DEVICES * NODES * 2)
#define POOL_PAGES 1000 /* whole batches within memory_size_mb=4 */

struct sight { /* of one worker */
    pid_t pid;
    int device;           /* node of its device's threads, by their name; -1 = none seen */
    bool outside;         /* one of them may run off that node */
    bool host_on[NODES];  /* some other thread may run on that node's CPUs alone */
    int64_t bound[NODES]; /* pages on N of memory bound to N; the most at once */
    int64_t strayed;      /* of any such memory on other nodes */
};

struct watch {
    struct sight sights[RUNS + 1];
    int count;
};

/* --- looking --- */

static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "r");
    bool got = file && fgets(line, size, file);
    if (file)
        fclose(file);
    return got;
}

static void look_at_thread(const struct lab_machine *machine, pid_t pid, pid_t tid,
                           struct sight *sight) {
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
    struct lab_cpus allowed = {0};
    if (!read_line(path, name, sizeof name) || lab_bind_read_cpus(tid, &allowed, NULL) < 0)
        return;
    if (lab_str_starts(name, "cpu:")) {
        sight->device = (int)strtol(name + 4, NULL, 10);
        sight->outside =
            sight->outside || !cpus_within(&allowed, &machine->nodes[sight->device].cpus);
    } else {
        for (int node = 0; node < NODES; node++)
            if (cpus_within(&allowed, &machine->nodes[node].cpus))
                sight->host_on[node] = true;
    }
    lab_mem_free(allowed.items);
}

static void look_at_threads(const struct lab_machine *machine, struct sight *sight) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)sight->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            look_at_thread(machine, sight->pid, tid, sight);
    }
    if (tasks)
        closedir(tasks);
}

static void look_at_memory(struct sight *sight) {
    char path[64], line[1024];
    int64_t bound[NODES] = {0};
    snprintf(path, sizeof path, "/proc/%d/numa_maps", (int)sight->pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, " bind:");
        int home = at ? (int)strtol(at + 6, NULL, 10) : -1;
        for (int node = 0; home >= 0 && home < NODES && node < NODES; node++) {
            char key[16];
            snprintf(key, sizeof key, " N%d=", node);
            const char *pages = strstr(line, key);
            int64_t count = pages ? strtoll(pages + strlen(key), NULL, 10) : 0;
            *(node == home ? &bound[node] : &sight->strayed) += count;
        }
    }
    if (file)
        fclose(file);
    for (int node = 0; node < NODES; node++)
        sight->bound[node] = bound[node] > sight->bound[node] ? bound[node] : sight->bound[node];
}

static struct sight *sight_of(struct watch *watch, pid_t pid) {
    for (int i = 0; i < watch->count; i++)
        if (watch->sights[i].pid == pid)
            return &watch->sights[i];
    if (watch->count > RUNS)
        return NULL;
    watch->sights[watch->count] = (struct sight){.pid = pid, .device = -1};
    return &watch->sights[watch->count++];
}

/* The runner's children are its workers. */
static void look_at_workers(const struct lab_machine *machine, pid_t runner, struct watch *watch) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)runner, (int)runner);
    if (!read_line(path, line, sizeof line))
        return;
    for (char *at = line, *end; *at; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        struct sight *sight = sight_of(watch, pid);
        if (sight) {
            look_at_threads(machine, sight);
            look_at_memory(sight);
        }
    }
}

static int run_study(const struct lab_machine *machine, const char *const *argv,
                     struct watch *watch) {
    fflush(stdout);
    pid_t runner = fork();
    if (runner == 0) {
        lab_bind_thread_to_node(machine, NODES - 1,
                                NULL); /* any CPU: what was proven before bound us */
        int file = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(file, STDOUT_FILENO);
        execv(PROGRAM, (char *const *)argv);
        _exit(127);
    }
    int status = 0;
    while (runner > 0 && waitpid(runner, &status, WNOHANG) == 0) {
        look_at_workers(machine, runner, watch);
        usleep(10000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- comparing --- */

static int64_t whole(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_INT ? value->integer : -1;
}

static const char *text(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    return value && value->type == LAB_VALUE_STRING ? value->string : "";
}

static bool is_true(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_BOOL && value->boolean;
}

static void prove_one(const struct lab_value *run, const struct sight *sight, struct lab_err *err) {
    int node = (int)whole(run, "numa_node"), device = (int)whole(run, "gpu_id");
    const struct lab_value *ranks = lab_value_get(run, "ranks");
    const struct lab_value *rank = ranks && ranks->count ? ranks->items[0] : NULL;
    bool memory_only = node == NODES - 1;
    claim(is_true(lab_value_get(run, "success")) &&
              is_true(lab_value_get(lab_value_get(run, "validity"), "valid")) &&
              is_true(lab_value_get(rank, "placement_proven")),
          err, "%s succeeds, is valid and says that its placement is proven", text(run, "run_id"));
    claim(node >= 0 && sight->bound[node] >= POOL_PAGES && sight->bound[device] > 0 &&
              sight->strayed == 0,
          NULL, "seen from outside, %lld of its pages are bound to and lie on node %d, %lld astray",
          node >= 0 ? (long long)sight->bound[node] : 0, node, (long long)sight->strayed);
    claim(sight->device == device && !sight->outside && (memory_only || sight->host_on[node]), NULL,
          "its device's threads keep to node %d, its host thread to node %d%s", device, node,
          memory_only ? ", which has no CPUs" : "");
}

static int64_t first_ns(const struct lab_value *run) {
    const struct lab_value *ranks = lab_value_get(run, "ranks");
    return ranks && ranks->count ? whole(ranks->items[0], "first_ns") : -1;
}

static int by_start(const void *a, const void *b) {
    int64_t x = first_ns(*(struct lab_value *const *)a),
            y = first_ns(*(struct lab_value *const *)b);
    return x < y ? -1 : x > y;
}

void prove_study(const struct lab_machine *machine) {
    static const char *const argv[] = {
        PROGRAM,
        "run",
        "numa_study",
        "--no-report", /* which would start more than workers */
        "device=cpu",
        "experiment.hardware.gpu_ids=[0,1,2]",
        "experiment.hardware.numa_nodes=[0,1,2,3]",
        "experiment.vit_configs=[{depth:0},{depth:1,dim:64,heads:1,patch_size:32}]",
        "experiment.repeat=1",
        "experiment.test.tensor_shape=[3,64,64]",
        "experiment.test.batch_size=2",
        "experiment.test.memory_size_mb=4",
        "experiment.test.num_samples=16",
        "experiment.test.warmup_samples=4",
        "output_dir=/tmp/outputs",
        "--json",
        NULL};
    if (access(PROGRAM, X_OK) != 0)
        return;
    setenv("HOME", "/tmp", 1);
    struct lab_err err = LAB_ERR_INIT;
    struct watch watch = {0};
    struct lab_value *result = NULL;
    char *json;
    size_t length;
    LAB_AUTO(arena, arena);
    int status = run_study(machine, argv, &watch);
    if (lab_file_read(OUTPUT, 4 << 20, &arena, &json, &length, &err) == 0 &&
        lab_json_parse(json, length, OUTPUT, &arena, &result, &err) == 0 && status != 0)
        lab_err_set(&err, LAB_ERR_SYSTEM, "status %d: %.800s", status, json);
    struct lab_value *runs = lab_value_get(result, "runs");
    int count = runs ? runs->count : 0;
    claim(status == 0 && count == RUNS && watch.count == RUNS, &err,
          "numa_study over %d devices and %d nodes ends well: %d runs, %d workers seen", DEVICES,
          NODES, count, watch.count);
    if (count == RUNS && watch.count == RUNS) {
        qsort(runs->items, (size_t)count, sizeof *runs->items, by_start);
        for (int i = 0; i < count; i++)
            prove_one(runs->items[i], &watch.sights[i], &err);
    }
}
