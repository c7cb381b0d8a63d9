/* bridges.c: which GPUs of a phase share a PCIe bridge, and how much bandwidth that leaves each. */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

static const struct lab_pci *pci_of(const struct contention *made, const char *device) {
    const struct lab_phases *phases = &made->phases;
    int unit = LAB_FIND(phases->units, phases->unit_count, device, device);
    for (int i = 0; unit >= 0 && i < phases->run_count; i++)
        for (int r = 0; r < phases->runs[i]->rank_count; r++)
            if (phases->runs[i]->ranks[r].gpu_id == phases->units[unit].gpu_id)
                return lab_machine_gpu(made->machine, phases->runs[i]->ranks[r].gpu);
    return NULL;
}

/* Of each device, the first one that it shares a bridge with: itself where it has its own. */
static int *find_groups(const struct contention *made, const struct contention_resource *resource) {
    int count = resource->device_count;
    int *first = lab_arena_alloc(made->arena, (size_t)count + 1, sizeof *first);
    const struct lab_pci **pcis = lab_arena_alloc(made->arena, (size_t)count + 1, sizeof *pcis);
    for (int i = 0; i < count; i++) {
        pcis[i] = pci_of(made, resource->devices[i]);
        first[i] = i;
        for (int k = 0; k < i && first[i] == i; k++)
            if (pcis[i] && pcis[k] && pcis[i] != pcis[k] &&
                lab_machine_link(made->machine, pcis[k], pcis[i]) <= LAB_LINK_PXB)
                first[i] = first[k];
    }
    return first;
}

static int count_members(const int *first, int count, int group) {
    int members = 0;
    for (int i = 0; i < count; i++)
        members += first[i] == group;
    return members;
}

/* "0+1": without the word before each number. */
static const char *join_group(const struct contention_resource *resource, const int *first,
                              int group, struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i < resource->device_count; i++)
        if (first[i] == group)
            text = lab_arena_printf(arena, "%s%s%s", text, *text ? "+" : "",
                                    resource->devices[i] + strlen("GPU "));
    return text;
}

static bool are_numbered(const struct contention_resource *resource) {
    for (int i = 0; i < resource->device_count; i++)
        if (!lab_str_starts(resource->devices[i], "GPU ") || strchr(resource->devices[i], ','))
            return false;
    return resource->device_count > 1;
}

struct contention_bridges contention_bridges_find(const struct contention *made,
                                                  const struct contention_resource *resource) {
    struct lab_arena *arena = made->arena;
    struct contention_bridges found = {NULL};
    const int count = resource->device_count, *first = find_groups(made, resource);
    const char **shared = NULL, **own = NULL, **one = NULL;
    int shared_count = 0, own_count = 0, one_count = 0;
    double least = -INFINITY, most = 0, kept = 0; /* logarithms */
    if (!made->machine || !are_numbered(resource))
        return found;
    for (int i = 0; i < count; i++) {
        bool alone = count_members(first, count, first[i]) == 1;
        if (first[i] == i)
            LAB_ADD(one, one_count, arena) = resource->devices[i];
        if (first[i] == i && !alone)
            LAB_ADD(shared, shared_count, arena) = join_group(resource, first, i, arena);
        if (alone)
            LAB_ADD(own, own_count, arena) = resource->devices[i];
        if (alone) {
            kept = fmin(kept, resource->logs[i]);
        } else {
            least = fmax(least, resource->logs[i]);
            most = fmin(most, resource->logs[i]);
        }
    }
    /* where a GPU on its own bridge falls as well, the bridges aren't what is shared */
    if (shared_count == 0 || least > -LAB_CLAIM_NEGLIGIBLE || kept < least)
        return found;
    LAB_ADD(shared, shared_count, arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, shared, "and");
    found.shared = lab_arena_printf(arena, "GPUs %s", list.text);
    found.own = own_count ? lab_words_devices(own, own_count, arena) : NULL;
    found.one_each = lab_words_devices(one, one_count, arena);
    found.range = contention_range_words(least, most, arena);
    found.own_most = -100 * expm1(kept);
    return found;
}

const char *contention_range_words(double least, double most, struct lab_arena *arena) {
    double low = -100 * expm1(least), high = -100 * expm1(most);
    return high - low < 0.1 ? lab_arena_printf(arena, "%.1f%%", high)
                            : lab_arena_printf(arena, "%.1f to %.1f%%", low, high);
}

const char *contention_bridges_words(const struct contention *made,
                                     const struct contention_resource *resource,
                                     const struct contention_bridges *bridges) {
    return lab_arena_printf(made->arena, "%s of %s, which share a bridge, is %s lower than alone",
                            resource->title, bridges->shared, bridges->range);
}
