/* advise_place.c: see the header. */
#include "advise/advise_place.h"

#include "base/str.h"
#include "model/run.h"

#include <string.h>

#define NODES_MAX 1024 /* of any kernel */

static const char *taken(struct lab_str *text, struct lab_arena *arena) {
    const char *copy = lab_arena_strdup(arena, text->text);
    lab_str_release(text);
    return copy;
}

/* --- what can be named from outside --- */

static bool is_cpu(const struct lab_study_rank *rank) {
    return lab_str_starts(rank->device, "cpu:");
}

/* A simulated machine has none; its name may have slashes, being a path. */
static bool is_slice(const struct lab_study_rank *rank) {
    return !lab_run_device_is_simulated(rank->device) && strchr(rank->device, '/');
}

static bool is_mig(const struct lab_study_rank *rank) {
    return rank->uuid && lab_str_starts(rank->uuid, "MIG-");
}

static const char *why_missing(const struct lab_study_rank *ranks, int count,
                               struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        const struct lab_study_rank *rank = &ranks[i];
        const char *name = rank->device;
        if (is_slice(rank))
            return lab_arena_printf(arena, "%s is a slice of %s, which gpulab alone can address",
                                    name, is_cpu(rank) ? "a NUMA node's cores" : "a GPU");
        if (!is_cpu(rank) && rank->gpu < 0 && !rank->uuid)
            return lab_arena_printf(arena, "the GPU of %s is unknown", name);
        if (rank->numa_node < 0 || rank->numa_node >= NODES_MAX)
            return lab_arena_printf(arena, "the NUMA node of %s is unknown", name);
    }
    return count > 0 ? NULL : "its placement is unknown";
}

/* --- GPUs --- */

/* By UUIDs where all have one: CUDA takes no list of both kinds. */
static void name_gpus(struct lab_advice_place *place, struct lab_arena *arena) {
    LAB_AUTO(str, list);
    for (int i = 0; i < place->rank_count; i++)
        place->by_number |= !is_cpu(&place->ranks[i]) && !place->ranks[i].uuid;
    for (int i = 0; i < place->rank_count; i++) {
        const struct lab_study_rank *rank = &place->ranks[i];
        if (is_cpu(rank))
            continue;
        lab_str_add(&list, list.length ? "," : "");
        if (place->by_number)
            lab_str_printf(&list, "%d", rank->gpu);
        else
            lab_str_add(&list, rank->uuid);
    }
    place->gpus = *list.text ? lab_arena_strdup(arena, list.text) : NULL;
}

/* --- cores and memory --- */

struct nodes { /* by the kernel's number, ascending */
    unsigned char in[NODES_MAX];
    int count, last;
};

static void add_node(struct nodes *nodes, int number) {
    if (number < 0 || number >= NODES_MAX || nodes->in[number])
        return;
    nodes->in[number] = 1;
    nodes->count++;
    nodes->last = number;
}

static void write_nodes(const struct nodes *nodes, struct lab_str *out) {
    const char *between = "";
    for (int i = 0; i < NODES_MAX; i++)
        if (nodes->in[i]) {
            lab_str_printf(out, "%s%d", between, i);
            between = ",";
        }
}

static const struct lab_node *find_node(const struct lab_machine *machine, int number) {
    int index = machine ? lab_machine_node_index(machine, number) : -1;
    return index < 0 ? NULL : &machine->nodes[index];
}

/* A CPU device computes on its own node's cores, whichever node it is fed from. Threads of a node
 * that has memory only may be anywhere. */
static void add_cores(struct nodes *nodes, const struct lab_study_rank *rank,
                      const struct lab_machine *machine) {
    int number = is_cpu(rank) && rank->device_node >= 0 ? rank->device_node : rank->numa_node;
    const struct lab_node *node = find_node(machine, number);
    if (!node || node->cpus.count > 0)
        add_node(nodes, number);
}

static const char *cpu_list(const struct lab_node *node, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    lab_cpus_write(&node->cpus, &text);
    return taken(&text, arena);
}

static const char *numactl(const struct lab_advice_place *place, struct lab_arena *arena) {
    struct nodes cores = {.count = 0}, memory = {.count = 0};
    struct lab_str text;
    lab_str_init(&text);
    for (int i = 0; i < place->rank_count; i++) {
        add_cores(&cores, &place->ranks[i], place->machine);
        add_node(&memory, place->ranks[i].numa_node);
    }
    lab_str_add(&text, "numactl");
    if (cores.count > 0) {
        lab_str_add(&text, " --cpunodebind=");
        write_nodes(&cores, &text);
    }
    lab_str_add(&text, " --membind=");
    write_nodes(&memory, &text);
    return taken(&text, arena);
}

static void bind_all(struct lab_advice_place *place, bool simulated, struct lab_arena *arena) {
    struct nodes cores = {.count = 0};
    for (int i = 0; i < place->rank_count; i++)
        add_cores(&cores, &place->ranks[i], place->machine);
    place->node = cores.count == 1 ? cores.last : -1;
    const struct lab_node *node = place->node >= 0 ? find_node(place->machine, place->node) : NULL;
    if (node && !simulated)
        place->cpus = node->cpus.count > 0 ? cpu_list(node, arena) : NULL;
    /* numactl refuses to start anything on a kernel without NUMA; there all memory is one */
    const struct lab_machine *machine = place->machine;
    bool plain = machine && machine->node_count == 1 && !machine->numa_in_kernel && place->cpus;
    place->bind =
        plain ? lab_arena_printf(arena, "taskset -c %s", place->cpus) : numactl(place, arena);
}

struct lab_advice_place lab_advice_place_make(const struct lab_study_rank *ranks, int count,
                                              const struct lab_machine *machine, bool simulated,
                                              struct lab_arena *arena) {
    struct lab_advice_place place = {.missing = why_missing(ranks, count, arena),
                                     .ranks = ranks,
                                     .rank_count = count,
                                     .machine = machine,
                                     .node = -1};
    if (place.missing)
        return place;
    name_gpus(&place, arena);
    bind_all(&place, simulated, arena);
    return place;
}

/* --- lines --- */

/* "CUDA_VISIBLE_DEVICES=GPU-… ", or "" */
static void add_gpus(const char *gpus, bool by_number, struct lab_str *out) {
    if (!gpus)
        return;
    lab_str_add(out, by_number ? "CUDA_DEVICE_ORDER=PCI_BUS_ID " : "");
    lab_str_add(out, "CUDA_VISIBLE_DEVICES=");
    lab_str_add_shell(out, gpus);
    lab_str_add(out, " ");
}

/* What a launcher starts: variables by `env`, which no launcher reads, drops or replaces. */
static void add_started(const struct lab_advice_place *place, const char *bind,
                        struct lab_str *out) {
    lab_str_add(out, place->gpus ? "env " : "");
    add_gpus(place->gpus, place->by_number, out);
    lab_str_printf(out, "%s PROGRAM", bind);
}

/* One rank by itself. */
static void add_rank(const struct lab_advice_place *place, int rank, struct lab_str *out,
                     struct lab_arena *arena) {
    bool nodes = !lab_str_starts(place->bind, "taskset");
    struct lab_advice_place own = *place;
    own.ranks = &place->ranks[rank];
    own.rank_count = 1;
    name_gpus(&own, arena);
    add_started(&own, nodes ? numactl(&own, arena) : place->bind, out);
}

/* What binds every rank alike, all GPUs visible: one node, or `gpulab bind` where each GPU's local
 * node is meant. NULL = each rank needs words of its own. */
static const char *common_bind(const struct lab_advice_place *place) {
    bool local = true, same = place->node >= 0;
    for (int i = 0; i < place->rank_count; i++) {
        const struct lab_study_rank *rank = &place->ranks[i];
        if (place->rank_count > 1 && (is_cpu(rank) || is_mig(rank)))
            return NULL;
        local = local && rank->device_node == rank->numa_node;
        same = same && rank->numa_node == place->ranks[0].numa_node;
    }
    return same || place->rank_count == 1 ? place->bind : local ? "gpulab bind" : NULL;
}

const char *lab_advice_place_torchrun(const struct lab_advice_place *place,
                                      struct lab_arena *arena) {
    struct lab_str text;
    const char *bind = common_bind(place);
    if (!bind)
        return NULL;
    lab_str_init(&text);
    add_gpus(place->gpus, place->by_number, &text);
    lab_str_printf(&text, "torchrun --nproc-per-node %d --no-python %s PROGRAM", place->rank_count,
                   bind);
    return taken(&text, arena);
}

const char *lab_advice_place_mpi(const struct lab_advice_place *place, struct lab_arena *arena) {
    struct lab_str text;
    const char *bind = common_bind(place);
    lab_str_init(&text);
    lab_str_add(&text, "mpirun --bind-to none ");
    if (bind) {
        lab_str_printf(&text, "-n %d ", place->rank_count);
        add_started(place, bind, &text);
    }
    for (int i = 0; i < place->rank_count && !bind; i++) {
        lab_str_add(&text, i ? " : -n 1 " : "-n 1 ");
        add_rank(place, i, &text, arena);
    }
    return taken(&text, arena);
}

const char *lab_advice_place_line(const struct lab_advice_place *place, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    add_gpus(place->gpus, place->by_number, &text);
    lab_str_printf(&text, "%s PROGRAM", place->bind);
    return taken(&text, arena);
}

/* Each task looks up its own part. */
static void add_tasks(const struct lab_advice_place *place, struct lab_str *out,
                      struct lab_arena *arena) {
    LAB_AUTO(str, script);
    lab_str_add(&script, "case $SLURM_LOCALID in");
    for (int i = 0; i < place->rank_count; i++) {
        lab_str_printf(&script, " %d) exec ", i);
        add_rank(place, i, &script, arena);
        lab_str_add(&script, ";;");
    }
    lab_str_add(&script, " esac");
    lab_str_printf(out, "srun -n %d --cpu-bind=none sh -c ", place->rank_count);
    lab_str_add_shell(out, script.text);
}

const char *lab_advice_place_slurm(const struct lab_advice_place *place, struct lab_arena *arena) {
    struct lab_str text;
    const char *bind = common_bind(place);
    lab_str_init(&text);
    if (bind) {
        lab_str_printf(&text, "srun -n %d --cpu-bind=none ", place->rank_count);
        add_started(place, bind, &text);
    } else {
        add_tasks(place, &text, arena);
    }
    return taken(&text, arena);
}
