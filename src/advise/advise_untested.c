/*
 * advise_untested.c: what may help on this machine and no study of ours measures: a table of lines,
 * each with the condition that it needs and one reason.
 */
#include "advise/advise.h"

#include "advise/advise_place.h"
#include "base/list.h"
#include "base/str.h"
#include "model/run.h"

#include <stdlib.h>
#include <string.h>

struct facts { /* of the devices that the study ran on, each once, bound to its local node */
    const struct lab_machine *machine;
    struct lab_arena *arena;
    struct lab_study_rank *ranks;
    bool *local; /* the study bound it there, too */
    int count;
    bool gpus, sliced; /* all are GPUs; several share one */
    struct lab_advice_place place;
};

/* --- facts --- */

/* Of how many parts of its device it is one: 4 of "cuda:0/4.2". */
static int parts_of(const struct lab_study_rank *rank) {
    const char *slash =
        lab_run_device_is_simulated(rank->device) ? NULL : strchr(rank->device, '/');
    return slash ? (int)strtol(slash + 1, NULL, 10) : 1;
}

/* By the GPUs' numbers. */
static void add_rank(struct facts *facts, const struct lab_study_rank *rank) {
    int at = LAB_FIND(facts->ranks, facts->count, device, rank->device);
    if (at < 0) {
        for (at = facts->count++; at > 0 && facts->ranks[at - 1].gpu > rank->gpu; at--) {
            facts->ranks[at] = facts->ranks[at - 1];
            facts->local[at] = facts->local[at - 1];
        }
        facts->local[at] = false;
        facts->ranks[at] = *rank;
        facts->ranks[at].numa_node = rank->device_node >= 0 ? rank->device_node : rank->numa_node;
        facts->gpus &= !lab_str_starts(rank->device, "cpu:");
        facts->sliced |= parts_of(rank) > 1;
    }
    facts->local[at] |= rank->numa_node == facts->ranks[at].numa_node;
}

static struct facts find_facts(const struct lab_study_table *study, struct lab_arena *arena) {
    struct facts facts = {.machine = study->machine, .arena = arena, .gpus = true};
    size_t room = 1;
    for (int i = 0; i < study->run_count; i++)
        room += (size_t)study->runs[i].rank_count;
    facts.ranks = lab_arena_alloc(arena, room, sizeof *facts.ranks);
    facts.local = lab_arena_alloc(arena, room, sizeof *facts.local);
    for (int i = 0; i < study->run_count; i++)
        for (int r = 0; r < study->runs[i].rank_count; r++)
            add_rank(&facts, &study->runs[i].ranks[r]);
    facts.place =
        lab_advice_place_make(facts.ranks, facts.count, facts.machine, study->simulated, arena);
    return facts;
}

static const struct lab_pci *gpu_of(const struct facts *facts, int rank) {
    return lab_machine_gpu(facts->machine, facts->ranks[rank].gpu);
}

/* --- lines; NULL = it doesn't apply here --- */

static const char *local_line(const struct facts *facts) {
    struct lab_study_rank *ranks =
        lab_arena_alloc(facts->arena, (size_t)facts->count + 1, sizeof *ranks);
    int count = 0;
    for (int i = 0; i < facts->count; i++)
        if (!facts->local[i])
            ranks[count++] = facts->ranks[i];
    struct lab_advice_place place = lab_advice_place_make(ranks, count, facts->machine,
                                                          facts->machine->simulated, facts->arena);
    if (place.missing)
        return NULL;
    return count == 1 ? lab_advice_place_line(&place, facts->arena)
                      : lab_advice_place_torchrun(&place, facts->arena);
}

/* A node's cores, shared by its GPUs and their slices. */
static const char *threads_line(const struct facts *facts) {
    const struct lab_machine *machine = facts->machine;
    int least = 0;
    for (int i = 0; i < facts->count; i++) {
        int node = lab_machine_node_index(machine, facts->ranks[i].numa_node), gpus = 0;
        for (int p = 0; p < machine->pci_count; p++)
            gpus += facts->gpus && lab_pci_is_gpu(&machine->pci[p]) && machine->pci[p].node == node;
        int users = (gpus > 0 ? gpus : 1) * parts_of(&facts->ranks[i]);
        int share = node < 0 || users < 1 ? 0 : machine->nodes[node].core_count / users;
        least = i == 0 || share < least ? share : least;
    }
    return least > 0 ? lab_arena_printf(facts->arena, "OMP_NUM_THREADS=%d PROGRAM", least) : NULL;
}

static const char *taskset_line(const struct facts *facts) {
    bool numactl = facts->place.bind && lab_str_starts(facts->place.bind, "numactl");
    return facts->place.cpus && numactl && facts->machine->node_count > 1
               ? lab_arena_printf(facts->arena, "taskset -c %s PROGRAM", facts->place.cpus)
               : NULL;
}

static const char *peer_line(const struct facts *facts) {
    for (int i = 0; i < facts->count && facts->gpus; i++)
        for (int k = 0; k < i; k++)
            if (gpu_of(facts, i) && gpu_of(facts, k)) {
                enum lab_link link =
                    lab_machine_link(facts->machine, gpu_of(facts, i), gpu_of(facts, k));
                if (link == LAB_LINK_NODE || link == LAB_LINK_SYS)
                    return "NCCL_P2P_LEVEL=SYS PROGRAM";
            }
    return NULL;
}

/* The network device of this kind on the first GPU's node, where there are others. */
static const char *network(const struct facts *facts, bool infiniband) {
    enum { INFINIBAND = 0x0207 };
    const struct lab_machine *machine = facts->machine;
    int node = lab_machine_node_index(machine, facts->ranks[0].numa_node), count = 0;
    const char *near = NULL;
    for (int i = 0; i < machine->pci_count && facts->gpus; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        if (pci->kind != LAB_PCI_NETWORK || !*pci->os_name ||
            (pci->class_id == INFINIBAND) != infiniband)
            continue;
        count++;
        near = !near && pci->node == node ? pci->os_name : near;
    }
    return count > 1 ? near : NULL;
}

static const char *socket_line(const struct facts *facts) {
    const char *name = network(facts, false);
    return name ? lab_arena_printf(facts->arena, "NCCL_SOCKET_IFNAME=%s PROGRAM", name) : NULL;
}

static const char *hca_line(const struct facts *facts) {
    const char *name = network(facts, true);
    return name ? lab_arena_printf(facts->arena, "NCCL_IB_HCA=%s PROGRAM", name) : NULL;
}

/* Of the first two that share a bridge below the host's. */
static const char *bridge_line(const struct facts *facts) {
    for (int i = 0; i < facts->count && facts->gpus; i++)
        for (int k = 0; k < i; k++) {
            const struct lab_pci *a = gpu_of(facts, k), *b = gpu_of(facts, i);
            if (a && b && a != b && lab_machine_link(facts->machine, a, b) <= LAB_LINK_PXB)
                return lab_arena_printf(facts->arena, "flock /tmp/gpu%d-%d.lock PROGRAM",
                                        facts->ranks[k].gpu, facts->ranks[i].gpu);
        }
    return NULL;
}

static const char *mps_line(const struct facts *facts) {
    return facts->gpus && facts->sliced ? "nvidia-cuda-mps-control -d" : NULL;
}

/* "sudo nvidia-smi -i 0,2 -mig 1": of GPUs that can be split, or of all. */
static const char *smi_line(const struct facts *facts, bool split, const char *what) {
    static const char *const able[] = {"A30",   "A100", "H20",   "H100", "H200",        "H800",
                                       "GH200", "B200", "GB200", "B300", "RTX PRO 6000"};
    LAB_AUTO(str, list);
    for (int i = 0; i < facts->count; i++) {
        const struct lab_pci *gpu = gpu_of(facts, i);
        bool listed = gpu && !split;
        for (size_t k = 0; gpu && k < sizeof able / sizeof *able; k++)
            listed |= strstr(gpu->name, able[k]) != NULL;
        for (int k = 0; k < i; k++)
            listed &= facts->ranks[k].gpu != facts->ranks[i].gpu;
        if (listed)
            lab_str_printf(&list, "%s%d", list.length ? "," : "", facts->ranks[i].gpu);
    }
    return list.length ? lab_arena_printf(facts->arena, "sudo nvidia-smi -i %s %s", list.text, what)
                       : NULL;
}

static const char *mig_line(const struct facts *facts) {
    return facts->gpus && facts->sliced ? smi_line(facts, true, "-mig 1") : NULL;
}

static const char *exclusive_line(const struct facts *facts) {
    return facts->gpus && !facts->sliced ? smi_line(facts, false, "-c EXCLUSIVE_PROCESS") : NULL;
}

/* --- the table --- */

static const struct {
    const char *name;
    const char *(*line)(const struct facts *facts);
    const char *reason;
} rows[] = {
    {"local", local_line, "local NUMA node, which the study left out"},
    {"openmp", threads_line, "cores per device: its share of the NUMA node's"},
    {"taskset", taskset_line,
     "the same cores without numactl; first touch decides where memory "
     "is"},
    {"bridge", bridge_line, "one job at a time: these GPUs share a PCIe bridge"},
    {"nccl_p2p", peer_line, "NCCL: peer-to-peer copies between NUMA nodes, too"},
    {"nccl_socket", socket_line, "NCCL on several hosts: network card of the GPU's NUMA node"},
    {"nccl_ib", hca_line, "NCCL on several hosts: InfiniBand card of the GPU's NUMA node"},
    {"mps", mps_line, "processes share the GPU at the same time, not in turns"},
    {"mig", mig_line, "own memory and multiprocessors per process; needs an idle GPU"},
    {"exclusive", exclusive_line, "refuses a second process on the GPU"},
};

void lab_advice_add_untested(struct lab_advice *advice, const struct lab_study_table *study,
                             struct lab_arena *arena) {
    struct facts facts = find_facts(study, arena);
    if (!facts.machine || facts.count == 0)
        return;
    bool in_turn = false; /* a phase measured GPUs that share a bridge one after another */
    for (int i = 0; i < study->run_count; i++)
        in_turn |= lab_str_equal(study->runs[i].phase, "topology");
    advice->untested = lab_arena_alloc(arena, sizeof rows / sizeof *rows, sizeof *advice->untested);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (in_turn && rows[i].line == bridge_line)
            continue;
        const char *line = rows[i].line(&facts);
        if (line)
            advice->untested[advice->untested_count++] =
                (struct lab_advice_untested){rows[i].name, line, rows[i].reason};
    }
}
