/* bind.c: from a launcher's variables to a rank, from a rank to its GPU, its cores and memory. */
#include "advise/bind.h"

#include "base/list.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* --- ranks --- */

/* Digits, up to the end or one of `ends`: Slurm writes "4(x2)" and "4,3". -1 = anything else. */
static int read_number(const char *text, const char *ends) {
    size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || (text[digits] && !strchr(ends, text[digits])))
        return -1;
    long number = strtol(text, NULL, 10);
    return number < 1 << 20 ? (int)number : -1;
}

struct lab_bind_rank lab_bind_find_rank(struct lab_arena *arena) {
    static const struct {
        const char *rank, *ranks;
    } launchers[] = {
        {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"SLURM_LOCALID", "SLURM_TASKS_PER_NODE"},
        {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
        {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    };
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *text = getenv(launchers[i].rank);
        if (!text || !*text) /* a job script may have cleared it so */
            continue;
        struct lab_bind_rank rank = {.rank = read_number(text, ""),
                                     .ranks = read_number(getenv(launchers[i].ranks), "(,"),
                                     .variable = launchers[i].rank};
        if (rank.rank < 0)
            rank.note = lab_arena_printf(arena, "%s is '%.40s', not a rank", rank.variable, text);
        return rank;
    }
    return (struct lab_bind_rank){.rank = -1, .ranks = -1};
}

/* --- placement --- */

static struct lab_bind_place unbound(const char *note) {
    return (struct lab_bind_place){.node = -1, .note = note};
}

/* The one NUMA node that all devices sit on; -1 = there are several, or it is unknown. */
static int common_node(const struct lab_device_list *devices) {
    for (int i = 1; i < devices->count; i++)
        if (devices->items[i].node != devices->items[0].node)
            return -1;
    return devices->count > 0 ? devices->items[0].node : -1;
}

/* Which of the ranks on its NUMA node this one is, and how many there are. */
static void count_sharers(const struct lab_device_list *devices, int at, int ranks, int *ret_index,
                          int *ret_count) {
    int last = ranks > 0 && ranks < devices->count ? ranks : devices->count;
    *ret_index = *ret_count = 0;
    for (int i = 0; i < last; i++) {
        if (devices->items[i].node != devices->items[at].node)
            continue;
        *ret_index += i < at;
        *ret_count += 1;
    }
}

static void add_allowed(struct lab_cpus *to, const struct lab_cpus *from,
                        const struct lab_cpus *allowed) {
    for (int i = 0; i < from->count; i++)
        if (lab_cpus_contain(allowed, from->items[i]))
            to->items[to->count++] = from->items[i];
}

/* Whole cores, with all their hardware threads: share `index` of `count`. */
static struct lab_cpus share_cores(const struct lab_machine *machine, int node,
                                   const struct lab_cpus *allowed, int index, int count,
                                   struct lab_arena *arena) {
    struct lab_cpus cpus = {lab_arena_alloc(arena, (size_t)allowed->count + 1, sizeof(int)), 0};
    int cores = 0, at = 0;
    struct lab_cpus one = {lab_arena_alloc(arena, (size_t)allowed->count + 1, sizeof(int)), 0};
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < machine->core_count; c++) {
            one.count = 0;
            add_allowed(&one, &machine->cores[c].cpus, allowed);
            if (machine->cores[c].node != node || one.count == 0)
                continue;
            if (pass == 0)
                cores++;
            else if (cores > 0 && at++ * count / cores == index)
                add_allowed(&cpus, &one, allowed);
        }
    LAB_SORT_NUMBERS(cpus.items, cpus.count);
    return cpus;
}

static struct lab_bind_place on_node(const struct lab_machine *machine,
                                     const struct lab_device_ref *device, int node,
                                     const struct lab_cpus *allowed, struct lab_arena *arena) {
    int index = lab_machine_node_index(machine, node);
    if (node < 0 || index < 0)
        return unbound(lab_arena_printf(arena, "the NUMA node of %s is unknown", device->name));
    struct lab_bind_place place = {
        .node = node, .cpus = {lab_arena_alloc(arena, (size_t)allowed->count + 1, sizeof(int)), 0}};
    add_allowed(&place.cpus, &machine->nodes[index].cpus, allowed);
    if (place.cpus.count > 0)
        return place;
    LAB_AUTO(str, list);
    lab_cpus_write(allowed, &list);
    return unbound(lab_arena_printf(
        arena, "this process may use CPUs %s, none of them on NUMA node %d, where %s is", list.text,
        node, device->name));
}

/* The rank's device, as an index; -1 = it has none of its own, and why. */
static int find_device(const struct lab_device_list *devices, const struct lab_bind_rank *rank,
                       struct lab_arena *arena, const char **ret_note) {
    *ret_note = NULL;
    if (devices->count == 1) /* Slurm may have given each task its own */
        return 0;
    if (rank->rank >= 0 && rank->rank < devices->count)
        return rank->rank;
    *ret_note = rank->note       ? rank->note
                : rank->rank < 0 ? "no launcher gave a rank (LOCAL_RANK, SLURM_LOCALID, "
                                   "OMPI_COMM_WORLD_LOCAL_RANK), and --rank wasn't given"
                                 : lab_arena_printf(arena, "rank %d has no device: there are %d",
                                                    rank->rank, devices->count);
    return -1;
}

struct lab_bind_place lab_bind_place_make(const struct lab_machine *machine,
                                          const struct lab_device_list *devices,
                                          const struct lab_bind_rank *rank,
                                          const struct lab_cpus *allowed, bool exclusive,
                                          struct lab_arena *arena) {
    const char *note;
    int at = find_device(devices, rank, arena, &note);
    if (at < 0) { /* any of them, which is as good where all sit on one NUMA node */
        int node = common_node(devices);
        return node < 0 || rank->rank >= 0 || rank->note
                   ? unbound(note)
                   : on_node(machine, &devices->items[0], node, allowed, arena);
    }
    const struct lab_device_ref *device = &devices->items[at];
    struct lab_bind_place place = on_node(machine, device, device->node, allowed, arena);
    place.device = device;
    int index, count;
    count_sharers(devices, at, rank->ranks, &index, &count);
    if (!exclusive || place.node < 0 || count < 2)
        return place;
    struct lab_cpus own = share_cores(machine, lab_machine_node_index(machine, place.node), allowed,
                                      index, count, arena);
    if (own.count > 0)
        place.cpus = own;
    else
        place.note = lab_arena_printf(arena, "NUMA node %d has fewer cores than ranks: %d share it",
                                      place.node, count);
    return place;
}
