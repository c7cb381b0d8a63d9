/*
 * proof.c: runs inside the four-node machine that tests/numa/run boots, and shows that threads run
 * and pages lie where gpulab says. The machine:
 *
 *     node 0  CPUs 0-1                              distances  10 12 14 16
 *     node 1  CPUs 2-3, a switch with two disks                12 10 18 20
 *     node 2  CPUs 4-5, a display controller                   14 18 10 22
 *     node 3  memory only                                      16 20 22 10
 *     a disk controller of which the firmware doesn't say where it is
 *
 * What gpulab says is compared with other sources than those it uses: sysfs's lists, sched_getcpu,
 * numa_maps.
 */
#include "proof.h"

#include "base/mem.h"
#include "base/str.h"
#include "machine/machine.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES      4
#define MEMORY     3 /* the node with memory only */
#define PAGES      64
#define SIZE_BYTES ((size_t)PAGES * 4096)

static int claims, failures;

void claim(bool holds, struct lab_err *err, const char *format, ...) {
    printf("%s %d - ", holds ? "ok" : "not ok", ++claims);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    failures += !holds;
    if (!err)
        return;
    if (!holds && *err->text)
        printf("# %s\n", err->text);
    *err = LAB_ERR_INIT;
}

bool failed_with(int result, const struct lab_err *err, enum lab_err_code code, const char *part) {
    return result < 0 && err->code == code && strstr(err->text, part);
}

bool cpus_within(const struct lab_cpus *inner, const struct lab_cpus *outer) {
    for (int i = 0; i < inner->count; i++)
        if (!lab_cpus_contain(outer, inner->items[i]))
            return false;
    return inner->count > 0;
}

/* --- what is there --- */

static bool cpus_are(const struct lab_cpus *cpus, const char *expected) {
    LAB_AUTO(str, text);
    lab_cpus_write(cpus, &text);
    bool same = lab_str_equal(text.text, expected);
    return same;
}

static void prove_shape(const struct lab_machine *machine) {
    static const char *const cpus[NODES] = {"0-1", "2-3", "4-5", "none"};
    static const int distances[NODES][NODES] = {
        {10, 12, 14, 16}, {12, 10, 18, 20}, {14, 18, 10, 22}, {16, 20, 22, 10}};
    claim(machine->node_count == NODES && machine->numa_in_kernel, NULL, "four nodes are seen");
    for (int i = 0; i < NODES; i++) {
        const struct lab_node *node = &machine->nodes[i];
        claim(node->number == i && cpus_are(&node->cpus, cpus[i]), NULL, "node %d has CPUs %s", i,
              cpus[i]);
        claim(node->core_count == (i == MEMORY ? 0 : 2), NULL, "node %d has %d cores", i,
              i == MEMORY ? 0 : 2);
        claim(node->memory_bytes > 400LL << 20 && node->memory_bytes <= 512LL << 20 &&
                  node->free_bytes > 0 && node->free_bytes < node->memory_bytes,
              NULL, "node %d has its 512 MiB, some of it free", i);
        bool same = true;
        for (int j = 0; j < NODES; j++)
            same = same && lab_machine_distance(machine, i, j) == distances[i][j];
        claim(same, NULL, "node %d's distances are as configured", i);
    }
    struct lab_err err = LAB_ERR_INIT;
    int result = lab_machine_require_node(machine, 4, &err);
    claim(failed_with(result, &err, LAB_ERR_USER, "has nodes 0, 1, 2 and 3"), &err,
          "a fifth node is refused with the names of the four");
}

static const struct lab_pci *find_pci(const struct lab_machine *machine, unsigned class_id,
                                      int which) {
    for (int i = 0; i < machine->pci_count; i++)
        if (machine->pci[i].class_id == class_id && which-- == 0)
            return &machine->pci[i];
    return NULL;
}

static void prove_pci(const struct lab_machine *machine) {
    const struct lab_pci *display = find_pci(machine, 0x0380, 0);
    const struct lab_pci *disk = find_pci(machine, 0x0100, 0);
    const struct lab_pci *sister = find_pci(machine, 0x0100, 1);
    const struct lab_pci *unplaced = find_pci(machine, 0x0106, 0);
    claim(display && display->kind == LAB_PCI_GPU && display->node == 2, NULL,
          "the display controller behind node 2's host bridge belongs to node 2");
    claim(disk && disk->node == 1 && sister && sister->node == 1, NULL,
          "the disks behind node 1's switch belong to node 1");
    claim(unplaced && unplaced->node == -1, NULL,
          "a device that the firmware doesn't place has no node");
    if (!display || !disk || !sister || !unplaced)
        return;
    claim(lab_machine_link(machine, disk, sister) == LAB_LINK_PIX, NULL,
          "two ports of one switch are PIX");
    claim(lab_machine_link(machine, disk, display) == LAB_LINK_SYS, NULL,
          "devices of two nodes are SYS");
    claim(lab_machine_link(machine, display, unplaced) == LAB_LINK_UNKNOWN, NULL,
          "the link to an unplaced device is unknown");
}

/* --- threads --- */

static void prove_threads(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    for (int node = 0; node < MEMORY; node++) {
        int result = lab_bind_thread_to_node(machine, node, &err);
        int cpu = sched_getcpu();
        claim(result == 0 && cpu / 2 == node, &err, "a thread bound to node %d runs there (CPU %d)",
              node, cpu);
        claim(lab_bind_prove_thread(machine, node, &err) == 0, &err, "and is proven on node %d",
              node);
        int other = (node + 1) % MEMORY;
        char expected[64];
        snprintf(expected, sizeof expected, "the thread is on CPU %d of node %d", cpu, node);
        result = lab_bind_prove_thread(machine, other, &err);
        claim(failed_with(result, &err, LAB_ERR_WRONG, expected), &err,
              "but not on node %d, and the reason says where it is", other);
    }
    struct lab_cpus allowed = {0};
    int result = lab_bind_thread_to_node(machine, MEMORY, &err);
    if (result == 0)
        result = lab_bind_read_cpus(0, &allowed, &err);
    claim(result == 0 && cpus_are(&allowed, "0-5"), &err,
          "for the node with memory only a thread may run anywhere");
    claim(lab_bind_prove_thread(machine, MEMORY, &err) == 0, &err, "and that is its proof");
    lab_mem_free(allowed.items);
}

/* Cores outside the affinity are gone, their nodes' memory and devices aren't. */
static int open_bound_to_node_1(const struct lab_machine *machine) {
    struct lab_machine *mine;
    if (lab_bind_cpus(machine, &machine->nodes[1].cpus, true, NULL) < 0 ||
        lab_machine_open(NULL, &mine, NULL) < 0)
        return 1;
    const struct lab_pci *display = find_pci(mine, 0x0380, 0);
    bool right = mine->node_count == NODES && mine->core_count == 2 &&
                 mine->nodes[0].cpus.count == 0 && cpus_are(&mine->nodes[1].cpus, "2-3") &&
                 display && display->node == 2;
    lab_machine_close(mine);
    return right ? 0 : 1;
}

static bool child_succeeds(int (*body)(const struct lab_machine *), const struct lab_machine *m) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(body(m));
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* --- memory --- */

/* "N2=64" in the line of /proc/self/numa_maps that starts with the address. */
static bool numa_maps_agrees(const void *memory, int node, int pages) {
    char start[32], count[32], line[1024];
    snprintf(start, sizeof start, "%lx ", (unsigned long)memory);
    snprintf(count, sizeof count, " N%d=%d", node, pages);
    FILE *file = fopen("/proc/self/numa_maps", "r");
    bool found = false;
    while (file && fgets(line, sizeof line, file))
        found = found || (lab_str_starts(line, start) && strstr(line, count));
    if (file)
        fclose(file);
    return found;
}

static void prove_placement(const struct lab_machine *machine, int node) {
    struct lab_err err = LAB_ERR_INIT;
    void *memory = NULL;
    /* the thread is elsewhere, so that first touch alone would put the pages there */
    lab_bind_thread_to_node(machine, node == 0 ? 1 : 0, &err);
    if (lab_memory_map(machine, node, SIZE_BYTES, LAB_MEMORY_TOUCH, &memory, &err) < 0) {
        claim(false, &err, "memory can be had on node %d", node);
        return;
    }
    struct lab_page_census census;
    int result = lab_memory_census(machine, memory, SIZE_BYTES, &census, &err);
    claim(result == 0 && census.pages == PAGES && census.on_node[node] == PAGES, &err,
          "all pages asked for on node %d are there", node);
    claim(lab_memory_prove(machine, memory, SIZE_BYTES, node, &err) == 0 &&
              numa_maps_agrees(memory, node, PAGES),
          &err, "and proven, and numa_maps agrees");
    int other = (node + 1) % NODES;
    char expected[96];
    snprintf(expected, sizeof expected, "memory is not on NUMA node %d: of %d pages %d on node %d",
             other, PAGES, PAGES, node);
    result = lab_memory_prove(machine, memory, SIZE_BYTES, other, &err);
    claim(failed_with(result, &err, LAB_ERR_WRONG, expected), &err,
          "as is that they are not on node %d", other);
    lab_memory_unmap(memory, SIZE_BYTES);
}

static void prove_strays(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    char *memory = NULL;
    if (lab_memory_map(machine, 1, SIZE_BYTES, LAB_MEMORY_TOUCH, (void **)&memory, &err) < 0) {
        claim(false, &err, "memory can be had on node 1");
        return;
    }
    void *strays[2] = {memory + 5 * 4096, memory + 40 * 4096};
    int nodes[2] = {0, 3}, status[2] = {-1, -1};
    syscall(SYS_move_pages, 0, 2UL, strays, nodes, status, 2 /* MPOL_MF_MOVE */);
    int result = lab_memory_prove(machine, memory, SIZE_BYTES, 1, &err);
    claim(failed_with(result, &err, LAB_ERR_WRONG, "1 on node 0, 62 on node 1, 1 on node 3"), &err,
          "two pages that strayed to nodes 0 and 3 are found among 64");
    lab_memory_unmap(memory, SIZE_BYTES);
}

/* --- a node's free memory --- */

static int fill_most_of_memory_node(const struct lab_machine *machine) {
    void *memory;
    size_t size_bytes = (size_t)lab_machine_free_bytes(machine, MEMORY) / 20 * 19;
    return lab_memory_map(machine, MEMORY, size_bytes, LAB_MEMORY_TOUCH, &memory, NULL) == 0 &&
                   lab_memory_prove(machine, memory, size_bytes, MEMORY, NULL) == 0
               ? 0
               : 1;
}

static void prove_limits(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    void *memory = NULL;
    int result = lab_memory_map(machine, 2, (size_t)1 << 30, LAB_MEMORY_TOUCH, &memory, &err);
    claim(failed_with(result, &err, LAB_ERR_MEMORY, " free, 1.00 GiB asked for") &&
              lab_str_starts(err.text, "NUMA node 2 has "),
          &err, "more than node 2 has is refused, with both sizes, before the OOM killer answers");
    claim(child_succeeds(fill_most_of_memory_node, machine), NULL,
          "19/20 of what node 3 is said to have free can really be used");

    size_t half = (size_t)lab_machine_free_bytes(machine, 2) / 2;
    result = lab_memory_map(machine, 2, half, LAB_MEMORY_TOUCH, &memory, &err);
    claim(result == 0, &err, "half of node 2 can be had");
    if (result < 0)
        return;
    void *more = NULL;
    size_t too_much = half + half / 8; /* other nodes hold the file system's pages */
    result = lab_memory_map(machine, 2, too_much, LAB_MEMORY_TOUCH, &more, &err);
    claim(failed_with(result, &err, LAB_ERR_MEMORY, "asked for"), &err,
          "what is in use is no longer free");
    result = lab_memory_map(machine, 1, too_much, LAB_MEMORY_TOUCH, &more, &err);
    claim(result == 0, &err, "the same size on another node is no problem");
    lab_memory_unmap(more, too_much);
    lab_memory_unmap(memory, half);
}

/* --- a control group's limit --- */

#define GROUP       "/sys/fs/cgroup/proof"
#define GROUP_BYTES (128LL << 20)

static bool write_number(const char *path, long long number) {
    FILE *file = fopen(path, "w");
    bool written = file && fprintf(file, "%lld", number) > 0;
    return file && fclose(file) == 0 && written;
}

/* In a group of 128 MiB: its limit is what counts, and most of it can really be used. */
static int live_within_a_limit(const struct lab_machine *machine) {
    struct lab_err err = LAB_ERR_INIT;
    void *memory = NULL;
    mkdir(GROUP, 0755);
    if (!write_number(GROUP "/memory.max", GROUP_BYTES) || !write_number(GROUP "/cgroup.procs", 0))
        return 1;
    int64_t left = lab_machine_free_bytes(machine, 2);
    if (left <= GROUP_BYTES / 2 || left > GROUP_BYTES)
        return 2;
    int result = lab_memory_map(machine, 2, GROUP_BYTES, LAB_MEMORY_TOUCH, &memory, &err);
    if (!failed_with(result, &err, LAB_ERR_MEMORY, "control group leaves 12") ||
        !strstr(err.text, "128 MiB asked for"))
        return 3;
    size_t most = (size_t)left / 20 * 19;
    if (lab_memory_map(machine, 2, most, LAB_MEMORY_TOUCH, &memory, &err) < 0)
        return 4;
    return lab_memory_prove(machine, memory, most, 2, &err) < 0 ? 5 : 0;
}

int main(void) {
    struct lab_machine *machine;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_machine_open(NULL, &machine, &err) < 0) {
        claim(false, &err, "the machine can be read");
        return 1;
    }
    prove_shape(machine);
    if (machine->node_count == NODES) {
        prove_pci(machine);
        claim(child_succeeds(open_bound_to_node_1, machine), NULL,
              "a process kept to node 1 sees only its cores, but all memory and devices");
        prove_threads(machine);
        for (int node = 0; node < NODES; node++)
            prove_placement(machine, node);
        prove_strays(machine);
        prove_limits(machine);
        claim(child_succeeds(live_within_a_limit, machine), NULL,
              "what a control group forbids is refused, and 19/20 of what it leaves can be used");
        prove_monitor(machine);
#ifdef NUMA_PROOF_DEVICE
        prove_device(machine);
        prove_bench(machine);
        prove_study(machine);
#endif
    }
    lab_machine_close(machine);
    printf("1..%d\n", claims);
    return failures > 0;
}
