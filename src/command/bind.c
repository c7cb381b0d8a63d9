/*
 * bind.c: `gpulab bind`: starts a program on the cores and memory next to its rank's GPU. It stands
 * between a launcher and the program: torchrun --no-python … gpulab bind python train.py
 */
#include "command/command.h"

#include "advise/bind.h"
#include "device/device.h"
#include "machine/machine.h"
#include "record/record_child.h"
#include "record/record_pages.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <unistd.h>

struct bind_config {
    int64_t rank;
    bool exclusive, report;
};

static const struct lab_option bind_options[] = {
    {"rank", LAB_OPTION_INT, offsetof(struct bind_config, rank), .fallback = "-1", .min = -1,
     .max = 1 << 20, .value_name = "N",
     .help = "this process's rank on the host; -1 = as the launcher's variable says"},
    {"exclusive", LAB_OPTION_FLAG, offsetof(struct bind_config, exclusive),
     .help = "divide a NUMA node's cores among the ranks whose GPUs are attached to it"},
    {"report", LAB_OPTION_FLAG, offsetof(struct bind_config, report),
     .help = "print where the rank ran and where its memory was, when it ends"},
    {NULL},
};

struct binding {
    const struct lab_command_call *call;
    const struct lab_machine *machine;
    struct lab_bind_rank rank;
    struct lab_bind_place place;
    struct lab_cpus cpus; /* that the program may use */
};

/* --- report --- */

static void print_report(const struct binding *binding, const int64_t *bytes) {
    const struct lab_bind_place *place = &binding->place;
    struct lab_arena *arena = binding->call->arena;
    int index = place->node < 0 ? -1 : lab_machine_node_index(binding->machine, place->node);
    int64_t total = 0;
    for (int i = 0; i < binding->machine->node_count; i++)
        total += bytes[i];
    double local = index >= 0 && total > 0 ? (double)bytes[index] / (double)total : (double)NAN;
    if (binding->call->console->json) {
        struct lab_value *map = lab_value_map(arena);
        if (binding->rank.rank >= 0)
            lab_value_set_int(arena, map, "rank", binding->rank.rank);
        lab_value_set_string(arena, map, "device", place->device ? place->device->name : NULL);
        lab_value_set_string(arena, map, "uuid", place->device ? place->device->uuid : NULL);
        lab_value_set(arena, map, "numa_node",
                      place->node < 0 ? lab_value_null(arena) : lab_value_int(arena, place->node));
        lab_value_set(arena, map, "cpus", lab_cpus_value(&binding->cpus, arena));
        lab_value_set_int(arena, map, "memory_bytes", total);
        lab_value_set_float(arena, map, "local_share", local);
        lab_value_set_string(arena, map, "note", place->note);
        lab_console_print_json_line(binding->call->console, map);
        return;
    }
    LAB_AUTO(str, text);
    if (binding->rank.rank >= 0)
        lab_str_printf(&text, "rank %d: ", binding->rank.rank);
    if (place->device)
        lab_str_printf(&text, "%s, ", place->device->name);
    if (place->node >= 0)
        lab_str_printf(&text, "NUMA node %d, ", place->node);
    lab_str_add(&text, place->node >= 0 ? "CPUs " : "not bound, CPUs ");
    lab_cpus_write(&binding->cpus, &text);
    if (total > 0 && index >= 0) {
        lab_str_printf(&text, ", %.1f%% of ", 100 * local);
        lab_str_add_bytes_binary(&text, (double)total);
        lab_str_add(&text, " local");
    } else {
        lab_str_add(&text, total > 0 ? "" : ", memory not read");
    }
    lab_console_say("%s", text.text);
}

/* --- start --- */

static int replace_process(const char *const *argv, int *ret_status, struct lab_err *err) {
    lab_console_finish();
    execvp(argv[0], (char *const *)argv);
    int why = errno;
    *ret_status =
        why == ENOENT || why == ENOTDIR ? LAB_RECORD_NOT_FOUND : LAB_RECORD_NOT_EXECUTABLE;
    lab_err_set_errno(err, LAB_ERR_USER, why, "can't start '%s'", argv[0]);
    lab_console_note("%s", err->text);
    return 0;
}

static int start(const struct binding *binding, int *ret_status, struct lab_err *err) {
    const struct lab_command_call *call = binding->call;
    const struct bind_config *config = call->config;
    struct lab_affinity_guard guard;
    *ret_status = lab_record_child_check(call->rest, err);
    if (*ret_status) {
        lab_console_note("%s", err->text);
        return 0;
    }
    if (binding->place.note && !call->console->quiet)
        lab_console_note("%s: %s", binding->place.node < 0 ? "not bound" : "bound",
                         binding->place.note);
    if (binding->place.node >= 0 &&
        lab_affinity_guard_begin(&binding->place.cpus, binding->place.node, &guard, err) < 0)
        lab_console_note("not bound: %s", err->text);
    if (!config->report)
        return replace_process(call->rest, ret_status, err);
    int64_t *bytes =
        lab_arena_alloc(call->arena, (size_t)binding->machine->node_count, sizeof *bytes);
    *ret_status = lab_record_pages_run(call->rest, binding->machine, bytes, err);
    if (*ret_status == LAB_RECORD_NOT_FOUND && err->text[0])
        lab_console_note("%s", err->text);
    print_report(binding, bytes);
    return 0;
}

static int bind_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct bind_config *config = call->config;
    struct binding binding = {.call = call};
    struct lab_device_list devices = {0};
    struct lab_machine *machine;
    struct lab_cpus allowed = {0};
    if (!call->rest || !call->rest[0])
        return lab_err_set(err, LAB_ERR_USER,
                           "bind: no program: the usage is 'gpulab bind PROGRAM [ARGUMENTS]'");
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    binding.machine = machine;
    binding.rank = lab_bind_find_rank(call->arena);
    if (config->rank >= 0)
        binding.rank.rank = (int)config->rank;
    binding.place = (struct lab_bind_place){.node = -1};
    if (lab_bind_read_cpus(0, &allowed, err) < 0 ||
        lab_device_select(machine, call->shared->device ? call->shared->device : "cuda",
                          call->arena, &devices, err) < 0) {
        /* a wrong selector is the user's mistake; no GPU at all is none */
        if (call->shared->device) {
            lab_mem_free(allowed.items);
            lab_machine_close(machine);
            return -1;
        }
        binding.place.note = lab_arena_strdup(call->arena, err->text);
    } else {
        binding.place = lab_bind_place_make(machine, &devices, &binding.rank, &allowed,
                                            config->exclusive, call->arena);
    }
    binding.cpus = binding.place.node < 0 ? allowed : binding.place.cpus;
    int result = start(&binding, ret_status, err);
    lab_mem_free(allowed.items);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"torchrun --nproc-per-node 4 --no-python gpulab bind python train.py",
     "each rank next to its GPU"},
    {"srun --ntasks-per-node 8 gpulab bind --report ./app", "and a line per rank at the end"},
    {"mpirun -np 8 gpulab bind --exclusive ./app", "ranks of one NUMA node divide its cores"},
    {"CUDA_VISIBLE_DEVICES=2 gpulab bind python infer.py", "one process, next to its one GPU"},
    {NULL},
};

const struct lab_command lab_command_bind = {
    .name = "bind",
    .summary = "start a program on the cores and memory next to its GPU",
    .usage = "PROGRAM [ARGUMENTS]",
    .description =
        "Binds CPUs and memory to the NUMA node of the rank's GPU, then becomes the program. The "
        "rank on this host comes from LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, SLURM_LOCALID, "
        "MPI_LOCALRANKID, MV2_COMM_WORLD_LOCAL_RANK or PALS_LOCAL_RANKID, in this order, or from "
        "--rank. Rank N uses the N-th GPU of CUDA_VISIBLE_DEVICES. A process that sees one GPU "
        "uses that one. Memory is preferred on the NUMA node, not forced: a full NUMA node doesn't "
        "end the program.\n"
        "\n"
        "Without a GPU, a rank, or cores of the job on that NUMA node, the program starts unbound, "
        "after a note on standard error.\n"
        "\n"
        "--report prints rank, device, NUMA node, CPUs and the share of local memory when the "
        "program ends. It prints on standard error, with --json on standard output. The program's "
        "exit status is passed on.",
    .options = bind_options,
    .config_size = sizeof(struct bind_config),
    .uses_device = true,
    .device_help = "the devices that ranks use, in their order: cuda (all), cuda:1,3, cpu",
    .max_words = -1,
    .takes_program = true,
    .examples = examples,
    .run = bind_run,
};
