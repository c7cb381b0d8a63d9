/*
 * select.c: which devices a selector of the cuda backend names. Numbers count what
 * CUDA_VISIBLE_DEVICES leaves, in PCI order or in that variable's own; MIG instances go by their
 * UUID, since a process can use only one and has to name it before CUDA is initialised.
 *
 * Nothing here initialises CUDA (see cuda.h). So what a slice will have is reckoned from the number
 * of multiprocessors; the driver decides when the device is opened.
 */
#include "base/str.h"
#include "device/cuda/cuda.h"

#include <assert.h>
#include <stdlib.h>

static int node_of(const struct lab_machine *machine, const char *address) {
    for (int i = 0; i < machine->pci_count; i++)
        if (lab_str_equal(machine->pci[i].address, address))
            return machine->pci[i].node < 0 ? -1 : machine->nodes[machine->pci[i].node].number;
    /* a virtual machine or container may hide the bus: with one node there is no other place */
    return machine->node_count == 1 ? machine->nodes[0].number : -1;
}

/* --- what is here --- */

/* Multiprocessors of each slice; 0 = that many slices aren't possible. -1 = not known here. */
static int slice_size(const struct cuda_gpu *gpu, int slices) {
    assert(slices > 0);
    if (slices == 1)
        return gpu->sm_count ? gpu->sm_count : -1;
    if (!gpu->sm_count || !gpu->capability)
        return -1;
    int unit = cuda_slice_unit(gpu->capability);
    return gpu->sm_count / slices / unit * unit;
}

static const char *describe(const struct cuda_gpu *gpu, int slices, struct lab_arena *arena) {
    const char *name = *gpu->name ? gpu->name : "an NVIDIA GPU";
    int size = slice_size(gpu, slices);
    if (size < 0)
        return slices == 1 ? name : lab_arena_printf(arena, "one of %d slices of %s", slices, name);
    if (slices == 1)
        return lab_arena_printf(arena, "%s, %d multiprocessors", name, size);
    int idle = gpu->sm_count - slices * size;
    const char *rest = idle ? lab_arena_printf(arena, " (%d stay idle)", idle) : "";
    return lab_arena_printf(arena, "%d of %d multiprocessors of %s%s", size, gpu->sm_count, name,
                            rest);
}

static void add(const struct lab_machine *machine, const struct cuda_gpu *gpu, int unit, int slices,
                int slice, struct lab_arena *arena, struct lab_device_list *list) {
    struct lab_device_ref *ref = lab_device_list_add(list, arena);
    int size = slice_size(gpu, slices);
    *ref = (struct lab_device_ref){
        .backend = "cuda",
        .description = describe(gpu, slices, arena),
        .physical = lab_arena_printf(arena, "cuda:%s", *gpu->uuid ? gpu->uuid : gpu->address),
        .unit = unit,
        .slices = slices,
        .slice = slice,
        .node = node_of(machine, gpu->address),
        .memory_bytes = gpu->memory_bytes,
        .compute_units = size > 0 ? size : 0,
        .capability = gpu->capability,
        .uuid = *gpu->uuid ? gpu->uuid : NULL,
    };
    if (lab_str_starts(gpu->uuid, "MIG-"))
        ref->name = lab_arena_printf(arena, "cuda:%s", gpu->uuid);
    else if (slices == 1)
        ref->name = lab_arena_printf(arena, "cuda:%d", unit);
    else
        ref->name = lab_arena_printf(arena, "cuda:%d/%d.%d", unit, slices, slice);
}

/* Instances of a GPU that is listed too have no number of their own. */
static int unit_index(const struct cuda_inventory *inventory, int unit) {
    for (int i = 0, count = 0; i < inventory->count; i++)
        if (inventory->items[i].parent < 0 && count++ == unit)
            return i;
    return -1;
}

static int unit_of(const struct cuda_inventory *inventory, int index) {
    int unit = 0;
    for (int i = 0; i < index; i++)
        unit += inventory->items[i].parent < 0;
    return inventory->items[index].parent < 0 ? unit : unit - 1;
}

static void add_all(const struct lab_machine *machine, const struct cuda_inventory *inventory,
                    struct lab_arena *arena, struct lab_device_list *list) {
    for (int i = 0; i < inventory->count; i++)
        if (!inventory->items[i].mig_parent)
            add(machine, &inventory->items[i], unit_of(inventory, i), 1, 0, arena, list);
}

/* --- refusals --- */

static void add_names(const struct cuda_inventory *inventory, int parent, struct lab_str *out) {
    int count = 0;
    for (int i = 0; i < inventory->count; i++) {
        const struct cuda_gpu *gpu = &inventory->items[i];
        if (gpu->mig_parent || (parent >= 0 && gpu->parent != parent))
            continue;
        lab_str_add(out, count++ ? ", " : "");
        if (lab_str_starts(gpu->uuid, "MIG-"))
            lab_str_printf(out, "cuda:%s", gpu->uuid);
        else
            lab_str_printf(out, "cuda:%d", unit_of(inventory, i));
    }
}

static int refuse_absent_instance(const struct cuda_inventory *inventory, const char *rest,
                                  struct lab_err *err) {
    LAB_AUTO(str, names);
    for (int i = 0; i < inventory->count; i++)
        if (lab_str_starts(inventory->items[i].uuid, "MIG-"))
            lab_str_printf(&names, "%scuda:%s", names.length ? ", " : "", inventory->items[i].uuid);
    lab_err_set(err, LAB_ERR_USER, "cuda%s: there is no such MIG instance; %s%s", rest,
                names.length ? "there are " : "none exists (nvidia-smi -L lists them)", names.text);
    return -1;
}

static int refuse_absent(const struct cuda_inventory *inventory, const char *rest,
                         struct lab_err *err) {
    LAB_AUTO(str, names);
    int count = 0;
    if (strncasecmp(rest, ":MIG-", 5) == 0)
        return refuse_absent_instance(inventory, rest, err);
    add_names(inventory, -1, &names);
    for (int i = 0; i < inventory->count; i++)
        count += inventory->items[i].parent < 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return lab_err_set(err, LAB_ERR_USER, "cuda%s: there %s %d GPU%s%s: %s", rest,
                       count == 1 ? "is" : "are", count, count == 1 ? "" : "s",
                       visible ? " in CUDA_VISIBLE_DEVICES" : "", names.text);
}

static int refuse_parent(const struct cuda_inventory *inventory, int index, const char *rest,
                         struct lab_err *err) {
    LAB_AUTO(str, names);
    add_names(inventory, index, &names);
    if (names.length)
        lab_err_set(err, LAB_ERR_USER,
                    "cuda%s: MIG is on, so this GPU computes by its instances alone: %s", rest,
                    names.text);
    else
        lab_err_set(err, LAB_ERR_USER,
                    "cuda%s: MIG is on, but there is no instance; make one (nvidia-smi mig -cgi … "
                    "-C) or turn MIG off (nvidia-smi -mig 0)",
                    rest);
    return -1;
}

static int refuse_slices(const struct cuda_gpu *gpu, const char *rest, struct lab_err *err) {
    if (lab_str_starts(gpu->uuid, "MIG-"))
        return lab_err_set(err, LAB_ERR_USER, "cuda%s: a MIG instance can't be cut into slices",
                           rest);
    int unit = cuda_slice_unit(gpu->capability);
    return lab_err_set(err, LAB_ERR_USER,
                       "cuda%s: %s has %d multiprocessors and a slice at least %d, so at most %d "
                       "slices",
                       rest, gpu->name, gpu->sm_count, unit, gpu->sm_count / unit);
}

/* --- selecting --- */

/* ":MIG-1c3f…" or ":GPU-5a…/4.1" as the number that it has: the rest behind the UUID stays. */
static const char *by_uuid(const struct cuda_inventory *inventory, const char *rest,
                           struct lab_arena *arena, int *ret_index) {
    size_t length = strcspn(rest + 1, "/");
    const char *uuid = lab_arena_strndup(arena, rest + 1, length);
    *ret_index = -1;
    for (int i = 0; i < inventory->count; i++)
        if (strcasecmp(inventory->items[i].uuid, uuid) == 0)
            *ret_index = i;
    return lab_arena_printf(arena, ":0%s", rest + 1 + length);
}

static int select_one(const struct lab_machine *machine, const struct cuda_inventory *inventory,
                      const char *rest, struct lab_arena *arena, struct lab_device_list *list,
                      struct lab_err *err) {
    struct lab_device_part part;
    int index = -1;
    bool named = !strncasecmp(rest, ":GPU-", 5) || !strncasecmp(rest, ":MIG-", 5);
    const char *numbers = named ? by_uuid(inventory, rest, arena, &index) : rest;
    if (lab_device_parse_part("cuda", numbers, &part, err))
        return -1;
    if (!named)
        index = unit_index(inventory, part.unit);
    if (index < 0)
        return refuse_absent(inventory, rest, err);
    const struct cuda_gpu *gpu = &inventory->items[index];
    int slices = part.slices < 0 ? 1 : part.slices;
    if (gpu->mig_parent)
        return refuse_parent(inventory, index, rest, err);
    if (slices > 1 && (lab_str_starts(gpu->uuid, "MIG-") || slice_size(gpu, slices) == 0))
        return refuse_slices(gpu, rest, err);
    int first = part.slice < 0 ? 0 : part.slice;
    int last = part.slice < 0 ? slices - 1 : part.slice;
    for (int slice = first; slice <= last; slice++)
        add(machine, gpu, unit_of(inventory, index), slices, slice, arena, list);
    return 0;
}

/* Why nothing here can compute although there are GPUs; NULL = it can. */
static const char *why_unusable(struct lab_arena *arena) {
    const struct lab_dl_report *report;
    lab_cuda_load(&report);
    if (!report->handle)
        return lab_arena_printf(arena,
                                "%s, though there is a GPU; a container needs "
                                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                                report->reason);
    if (lab_cuda_lacks()) {
        int version = lab_cuda_version();
        return lab_arena_printf(arena,
                                "the NVIDIA driver (CUDA %d.%d) is too old: it lacks %s; one for "
                                "CUDA 12.0 or later is needed",
                                version / 1000, version % 1000 / 10, lab_cuda_lacks());
    }
    return NULL;
}

int cuda_select(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
                struct lab_device_list *list, const char **ret_why_none, struct lab_err *err) {
    struct cuda_inventory inventory = {.why_none = "this machine is recorded, so nothing can run "
                                                   "on its GPUs"};
    if (!machine->recorded) {
        cuda_inventory_read(arena, &inventory);
        cuda_inventory_filter(&inventory, getenv("CUDA_VISIBLE_DEVICES"), arena);
        const char *why = inventory.count ? why_unusable(arena) : NULL;
        if (why)
            inventory = (struct cuda_inventory){.why_none = why};
    }
    if (*rest && inventory.count)
        return select_one(machine, &inventory, rest, arena, list, err);
    if (*rest)
        return lab_err_set(err, LAB_ERR_USER, "cuda%s: %s", rest, inventory.why_none);
    int before = list->count;
    add_all(machine, &inventory, arena, list);
    if (list->count == before)
        *ret_why_none =
            inventory.count ? "MIG is on, but there are no instances" : inventory.why_none;
    return 0;
}
