/*
 * inventory.c: the GPUs of this machine, found without initialising CUDA: through NVML, which gives
 * sizes and MIG instances too, or from the kernel module's files where NVML is missing.
 *
 * NVML doesn't tell the number of multiprocessors; it follows from the number of cores and how many
 * of them a multiprocessor of that generation has. The driver has the last word when a device is
 * opened.
 */
#include "base/file/file.h"
#include "base/list.h"
#include "device/cuda/cuda.h"
#include "vendor/ask.h"
#include "vendor/nvml_session.h"
#include "vendor/visible.h"

#include <dirent.h>

#define PROC_FILE_MAX 65536

static int cores_per_sm(int capability) {
    if (capability < 50)
        return 192;
    if (capability == 60 || (capability >= 70 && capability <= 80))
        return 64;
    return 128;
}

int cuda_slice_unit(int capability) {
    return capability >= 90 ? 8 : capability >= 80 ? 4 : 2;
}

static struct cuda_gpu *add(struct cuda_inventory *inventory, struct lab_arena *arena) {
    struct cuda_gpu *gpu = &LAB_ADD(inventory->items, inventory->count, arena);
    *gpu = (struct cuda_gpu){.uuid = "", .name = "", .address = "", .parent = -1};
    return gpu;
}

/* --- NVML --- */

/* A function that is about to be called: should it never return, its name is known. */
#define ASK(function) (lab_ask_calling(#function), nvml->function)

static const char *nvml_text(lab_nvml_result (*get)(lab_nvml_device, char *, unsigned),
                             lab_nvml_device device, struct lab_arena *arena) {
    char text[LAB_NVML_UUID_BYTES] = "";
    if (get(device, text, sizeof text) != LAB_NVML_SUCCESS)
        return "";
    return lab_arena_strdup(arena, text);
}

static void read_size(const struct lab_nvml *nvml, lab_nvml_device device, struct cuda_gpu *gpu) {
    struct lab_nvml_memory memory = {0};
    unsigned cores = 0;
    int major = 0, minor = 0;
    if (nvml->nvmlDeviceGetMemoryInfo &&
        ASK(nvmlDeviceGetMemoryInfo)(device, &memory) == LAB_NVML_SUCCESS)
        gpu->memory_bytes = (int64_t)memory.total_bytes;
    if (nvml->nvmlDeviceGetCudaComputeCapability &&
        ASK(nvmlDeviceGetCudaComputeCapability)(device, &major, &minor) == LAB_NVML_SUCCESS)
        gpu->capability = 10 * major + minor;
    if (gpu->capability && nvml->nvmlDeviceGetNumGpuCores &&
        ASK(nvmlDeviceGetNumGpuCores)(device, &cores) == LAB_NVML_SUCCESS)
        gpu->sm_count = (int)cores / cores_per_sm(gpu->capability);
}

static void read_mig(const struct lab_nvml *nvml, lab_nvml_device device,
                     struct cuda_inventory *inventory, int parent, struct lab_arena *arena) {
    unsigned current = 0, pending = 0, slots = 0;
    if (!nvml->nvmlDeviceGetMigMode ||
        ASK(nvmlDeviceGetMigMode)(device, &current, &pending) != LAB_NVML_SUCCESS || !current)
        return;
    inventory->items[parent].mig_parent = true;
    if (!nvml->nvmlDeviceGetMaxMigDeviceCount || !nvml->nvmlDeviceGetMigDeviceHandleByIndex ||
        ASK(nvmlDeviceGetMaxMigDeviceCount)(device, &slots) != LAB_NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < slots; i++) {
        lab_nvml_device instance = NULL;
        struct lab_nvml_attributes attributes = {0};
        if (ASK(nvmlDeviceGetMigDeviceHandleByIndex)(device, i, &instance) != LAB_NVML_SUCCESS)
            continue; /* an empty slot */
        struct cuda_gpu *gpu = add(inventory, arena);
        gpu->uuid = nvml_text(ASK(nvmlDeviceGetUUID), instance, arena);
        gpu->name = nvml_text(ASK(nvmlDeviceGetName), instance, arena);
        gpu->address = inventory->items[parent].address;
        gpu->capability = inventory->items[parent].capability;
        gpu->parent = parent;
        if (nvml->nvmlDeviceGetAttributes_v2 &&
            ASK(nvmlDeviceGetAttributes_v2)(instance, &attributes) == LAB_NVML_SUCCESS) {
            gpu->sm_count = (int)attributes.multiprocessor_count;
            gpu->memory_bytes = (int64_t)attributes.memory_mib << 20;
        }
    }
}

static void read_nvml(const struct lab_nvml *nvml, struct cuda_inventory *inventory,
                      struct lab_arena *arena) {
    unsigned count = 0;
    ASK(nvmlDeviceGetCount_v2)(&count);
    for (unsigned i = 0; i < count; i++) {
        lab_nvml_device device = NULL;
        struct lab_nvml_pci pci = {0};
        if (ASK(nvmlDeviceGetHandleByIndex_v2)(i, &device) != LAB_NVML_SUCCESS)
            continue; /* lost, or not ours to see */
        int index = inventory->count;
        struct cuda_gpu *gpu = add(inventory, arena);
        gpu->uuid = nvml_text(ASK(nvmlDeviceGetUUID), device, arena);
        gpu->name = nvml_text(ASK(nvmlDeviceGetName), device, arena);
        if (ASK(nvmlDeviceGetPciInfo_v3)(device, &pci) == LAB_NVML_SUCCESS)
            gpu->address =
                lab_arena_printf(arena, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
        read_size(nvml, device, gpu);
        read_mig(nvml, device, inventory, index, arena);
    }
}

/* --- the kernel module's files --- */

/* The value behind "GPU UUID:", without the blanks around it; "" where there is none. */
static const char *field(const char *text, const char *key, struct lab_arena *arena) {
    const char *at = strstr(text, key);
    if (!at)
        return "";
    at += strlen(key);
    at += strspn(at, " \t");
    size_t length = strcspn(at, "\n");
    while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    return lab_arena_strndup(arena, at, length);
}

void cuda_inventory_read_proc(const char *root, struct lab_arena *arena,
                              struct cuda_inventory *ret_inventory) {
    struct cuda_inventory inventory = {0};
    DIR *folder = opendir(root);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *text;
        size_t length;
        if (entry->d_name[0] == '.' ||
            lab_file_read(lab_arena_printf(arena, "%s/%s/information", root, entry->d_name),
                          PROC_FILE_MAX, arena, &text, &length, NULL))
            continue;
        struct cuda_gpu *gpu = add(&inventory, arena);
        gpu->address = lab_arena_strdup(arena, entry->d_name);
        gpu->name = field(text, "Model:", arena);
        gpu->uuid = field(text, "GPU UUID:", arena);
        if (strchr(gpu->uuid, '?'))
            gpu->uuid = ""; /* not read yet by the module: the address will do */
    }
    if (folder)
        closedir(folder);
    LAB_SORT(inventory.items, inventory.count, LAB_BY_BYTES(inventory.items, address));
    if (inventory.count == 0)
        inventory.why_none = "there is no NVIDIA driver";
    *ret_inventory = inventory;
}

/* --- either --- */

/* Of its own memory: a driver that hangs keeps it. */
struct question {
    struct lab_arena arena;
    struct cuda_inventory found;
    struct lab_err err;
    bool has_nvml;
};

static void ask_nvml(void *opaque) {
    struct question *question = opaque;
    unsigned generation;
    question->has_nvml = lab_nvml_enter(&generation, &question->err) == 0;
    if (question->has_nvml) {
        read_nvml(lab_nvml_load(NULL), &question->found, &question->arena);
        lab_nvml_leave();
    }
}

static void copy(const struct cuda_inventory *from, struct lab_arena *arena,
                 struct cuda_inventory *to) {
    for (int i = 0; i < from->count; i++) {
        const struct cuda_gpu *gpu = &from->items[i];
        struct cuda_gpu *copied = add(to, arena);
        *copied = *gpu;
        copied->uuid = lab_arena_strdup(arena, gpu->uuid);
        copied->name = lab_arena_strdup(arena, gpu->name);
        copied->address = lab_arena_strdup(arena, gpu->address);
    }
}

void cuda_inventory_read(struct lab_arena *arena, struct cuda_inventory *ret_inventory) {
    struct cuda_inventory inventory = {0};
    struct question *question = lab_mem_alloc(1, sizeof *question);
    struct lab_err hangs = LAB_ERR_INIT;
    lab_arena_init(&question->arena);
    if (lab_ask(ask_nvml, question, &hangs) < 0) {
        *ret_inventory = (struct cuda_inventory){.why_none = lab_arena_strdup(arena, hangs.text)};
        return;
    }
    copy(&question->found, arena, &inventory);
    if (!inventory.count) {
        cuda_inventory_read_proc("/proc/driver/nvidia/gpus", arena, &inventory);
        if (!inventory.count)
            inventory.why_none = question->has_nvml ? "the NVIDIA driver finds no GPU"
                                                    : lab_arena_strdup(arena, question->err.text);
    }
    lab_arena_release(&question->arena);
    lab_mem_free(question);
    *ret_inventory = inventory;
}

/* --- CUDA_VISIBLE_DEVICES --- */

static void keep(struct cuda_inventory *kept, const struct cuda_inventory *from, int index) {
    int parent = kept->count;
    kept->items[kept->count] = from->items[index];
    kept->items[kept->count++].parent = -1; /* named by itself: it counts as a device of its own */
    for (int i = 0; i < from->count; i++)
        if (from->items[i].parent == index) {
            kept->items[kept->count] = from->items[i];
            kept->items[kept->count++].parent = parent;
        }
}

static int count_gpus(const struct cuda_inventory *inventory) {
    int count = 0;
    for (int i = 0; i < inventory->count; i++)
        count += inventory->items[i].parent < 0;
    return count;
}

void cuda_inventory_filter(struct cuda_inventory *inventory, const char *visible,
                           struct lab_arena *arena) {
    if (!visible || !inventory->count)
        return;
    size_t count = (size_t)inventory->count;
    /* a MIG instance that is named, and then its GPU: listed twice */
    struct cuda_inventory kept = {.items = lab_arena_alloc(arena, 2 * count, sizeof *kept.items)};
    struct lab_visible_gpu *gpus = lab_arena_alloc(arena, count, sizeof *gpus);
    int *order = lab_arena_alloc(arena, count, sizeof *order);
    bool twice;
    for (int i = 0; i < inventory->count; i++)
        gpus[i] = (struct lab_visible_gpu){inventory->items[i].uuid, inventory->items[i].parent};
    int named = lab_visible_order(visible, gpus, inventory->count, order, &twice);
    for (int i = 0; i < named; i++)
        keep(&kept, inventory, order[i]);
    if (!kept.count)
        kept.why_none =
            lab_arena_printf(arena, "CUDA_VISIBLE_DEVICES='%s' %sleaves none of %d GPUs", visible,
                             twice ? "names one twice, which " : "", count_gpus(inventory));
    *inventory = kept;
}
