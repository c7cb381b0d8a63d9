/*
 * proof_monitor.c: a process that is kept on the wrong node is named, in the four-node machine (see
 * proof.c). A child is bound to node 1, cores and memory; a probe of the proof's own says that it
 * uses a GPU of node 0; the sampler and the probe `process`, which reads the real /proc, must tell
 * the rest.
 */
#include "proof.h"

#include "machine/machine.h"
#include "probe/probe_sampler.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE_BYTES  ((size_t)96 << 20)
#define PATIENCE_NS (20 * LAB_NS_PER_S) /* emulated, a second may be long */

extern const struct lab_probe lab_probe_process;

static pid_t child;

/* --- the child: lives on node 1 until it is killed --- */

static pid_t start_child(const struct lab_machine *machine) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) < 0)
        return -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        void *memory;
        if (lab_bind_cpus(machine, &machine->nodes[1].cpus, true, NULL) < 0 ||
            lab_memory_map(machine, 1, SIZE_BYTES, LAB_MEMORY_TOUCH, &memory, NULL) < 0 ||
            write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    bool well = pid > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return well ? pid : -1;
}

/* --- a GPU of node 0 on which it is --- */

static int gpu_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    (void)setup, (void)err;
    *ret_state = &child;
    return 0;
}

static void gpu_close(void *state) {
    (void)state;
}

static int gpu_lane_count(void *state) {
    (void)state;
    return 1;
}

static const char *gpu_lane_name(void *state, int lane) {
    (void)state, (void)lane;
    return "GPU 0";
}

static void gpu_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    static const struct lab_column columns[] = {{LAB_METRIC_PROCESSES, -1}};
    (void)state, (void)lane;
    sink->entity(sink->state, &(struct lab_entity){.kind = LAB_ENTITY_GPU,
                                                   .id = "GPU-proof",
                                                   .name = "GPU",
                                                   .pci = "",
                                                   .node = 0,
                                                   .parent = -1,
                                                   .columns = columns,
                                                   .column_count = 1});
}

static int gpu_read(void *state, int lane, enum lab_probe_when when,
                    const struct lab_probe_sink *sink, struct lab_err *err) {
    (void)state, (void)lane, (void)when, (void)err;
    struct lab_gpu_process process = {.pid = child, .memory_bytes = 1 << 30, .compute = true};
    sink->gpu_processes(sink->state, 0, &process, 1);
    return 0;
}

static const struct lab_probe gpu_probe = {
    .name = "gpu",
    .open = gpu_open,
    .close = gpu_close,
    .lane_count = gpu_lane_count,
    .lane_name = gpu_lane_name,
    .describe = gpu_describe,
    .read = gpu_read,
};

/* --- what is told of it --- */

struct found {
    bool known;
    int cpu_node;
    uint64_t allowed_nodes;
    int64_t node_bytes[4];
    enum lab_placement placement;
    char advice[256];
};

static void find_child(void *state, const struct lab_process_list *list) {
    struct found *found = state;
    for (int i = 0; i < list->count; i++) {
        const struct lab_process_sample *item = &list->items[i];
        if (item->pid != child || !item->node_bytes || item->node_count != 4)
            continue;
        found->known = true;
        found->cpu_node = item->cpu_node;
        found->allowed_nodes = item->allowed_nodes;
        memcpy(found->node_bytes, item->node_bytes, sizeof found->node_bytes);
        found->placement = item->placement;
        snprintf(found->advice, sizeof found->advice, "%s", item->advice);
    }
}

static int64_t no_offset_ns(void) {
    return 0;
}

static void watch_child(const struct lab_machine *machine, struct found *found,
                        struct lab_err *err) {
    static const struct lab_probe *const probes[] = {&gpu_probe, &lab_probe_process, NULL};
    struct sampler_parts parts = {probes, no_offset_ns};
    struct lab_sampler_config config = {
        .setup = {.machine = machine, .interval_ns = LAB_NS_PER_S / 5}};
    struct lab_sampler *sampler;
    if (lab_sampler_open_parts(&parts, &config, &sampler, err) < 0)
        return;
    struct lab_sink_samples sink = {.processes = find_child, .state = found};
    int64_t until_ns = lab_clock_now(lab_clock_system()) + PATIENCE_NS;
    while (!found->known && lab_clock_now(lab_clock_system()) < until_ns) {
        struct pollfd fd = {.fd = lab_sampler_fd(sampler), .events = POLLIN};
        poll(&fd, 1, 200);
        lab_sampler_take(sampler, &sink);
        lab_sampler_edge(sampler); /* the list needn't wait for its second */
    }
    lab_sampler_close(sampler);
}

void prove_monitor(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    struct found found = {0};
    child = start_child(machine);
    claim(child > 0, NULL, "a child can be kept on node 1 with 96 MiB");
    if (child <= 0)
        return;
    watch_child(machine, &found, &err);
    claim(found.known && found.cpu_node == 1 && found.allowed_nodes == 1 << 1, &err,
          "it is seen to run on node 1, and that it may nowhere else");
    claim(found.node_bytes[1] >= (int64_t)SIZE_BYTES, NULL, "its memory is seen on node 1");
    claim(found.placement == LAB_PLACEMENT_BOTH, NULL,
          "for a GPU of node 0 its cores and its memory are wrong");
    char expected[128];
    snprintf(expected, sizeof expected, "taskset -a -cp 0-1 %d && migratepages %d ", child, child);
    claim(strncmp(found.advice, expected, strlen(expected)) == 0 &&
              strcmp(found.advice + strlen(found.advice) - 2, " 0") == 0,
          NULL, "the advice would take both to node 0 (%s)", found.advice);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
