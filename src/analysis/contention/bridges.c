/* bridges.c: which GPUs of a phase share a PCIe bridge, and how much bandwidth that leaves each. */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "analysis/peers/peers.h"
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

/* --- what is slow by itself --- */

/* Of a run on one device: its rank's own probe. */
static double copies_of(const struct lab_study_run *run, const void *context) {
    struct lab_result own = run->result->rank_count > 0 ? run->result->ranks[0] : *run->result;
    struct lab_study_run view = {.result = &own};
    return contention_probe(&view, context);
}

/* The study with the baseline's runs alone. */
static struct lab_study_table baseline_of(const struct contention *made) {
    struct lab_study_table table = *made->study;
    const char *base = made->phases.names[made->phases.base];
    table.runs =
        lab_arena_copy(made->arena, table.runs, (size_t)table.run_count, sizeof *table.runs);
    for (int i = 0; i < table.run_count; i++)
        table.runs[i].used &= lab_str_equal(table.runs[i].phase, base);
    return table;
}

#define STEADY 1.1 /* of a link: the fastest run, compared with the slowest one */

/* A narrow link is as slow in each run; what other traffic leaves differs between them. */
static const char *check_words(const struct contention *made, const struct lab_peer *device,
                               const struct lab_study_table *alone, int number) {
    double low = INFINITY, high = 0;
    for (int i = 0; i < alone->run_count; i++) {
        const struct lab_study_run *run = &alone->runs[i];
        if (!run->used || run->rank_count != 1 ||
            !lab_str_equal(run->ranks[0].device, device->name))
            continue;
        double own = copies_of(run, &number);
        low = own > 0 ? fmin(low, own) : low;
        high = own > 0 ? fmax(high, own) : high;
    }
    struct lab_claim claim = device->claim;
    const char *range = lab_arena_printf(made->arena, "%.1f to %.1f GB/s", 1e-9 * low, 1e-9 * high);
    bool steady = high < STEADY * low;
    claim.reference = "its peers"; /* no mean of kernels: the copies are the probe's */
    claim.quantity = "copy bandwidth";
    claim.subject = lab_arena_printf(made->arena,
                                     steady ? "Check PCIe width and generation of %s"
                                            : "Find what else copies over %s's "
                                              "PCIe path",
                                     device->title);
    return lab_arena_printf(
        made->arena,
        steady ? "%s. Every run is slow: %.0s%s"
               : "%s. %s varies between runs (%s); a narrow link would be slow in all",
        lab_claim_sentence(&claim, made->arena), device->title, range);
}

struct contention_slow contention_slow_find(const struct contention *made) {
    static const int number = CONTENTION_PCIE;
    struct contention_slow slow = {NULL};
    if (!made->machine)
        return slow;
    struct lab_study_table alone = baseline_of(made);
    struct lab_peers times = lab_peers_make(made->study, made->arena),
                     copies = lab_peers_make_of(&alone, "PCIe bandwidth of test copies", copies_of,
                                                &number, made->arena);
    double least = -LAB_CLAIM_WORTH;
    for (int d = 0; d < times.device_count; d++) {
        const struct lab_claim *claim = &times.devices[d].claim;
        if (claim->verdict != LAB_CLAIM_YES || !(claim->effect <= least))
            continue;
        least = claim->effect;
        slow.as_time =
            lab_arena_printf(made->arena, "%s: %.1f%% lower throughput is a %.1f%% longer time.",
                             times.devices[d].title, -100 * least, 100 * (1 / (1 + least) - 1));
    }
    for (int d = 0; d < copies.device_count; d++) {
        struct lab_claim claim = copies.devices[d].claim;
        bool open = claim.verdict == LAB_CLAIM_INCONCLUSIVE;
        if ((claim.verdict != LAB_CLAIM_YES && !open) || claim.effect > -LAB_CLAIM_WORTH)
            continue;
        claim.kind = "contention.alone";
        claim.subject = lab_arena_printf(made->arena, "%s alone", copies.devices[d].title);
        claim.reference = "its peers";
        if (open) {
            LAB_ADD(slow.doubtful, slow.doubtful_count, made->arena) = copies.devices[d].title;
            int count = slow.doubtful_count - 1;
            LAB_ADD(slow.doubts, count, made->arena) = claim;
            continue;
        }
        int checks = slow.copy_count;
        LAB_ADD(slow.checks, checks, made->arena) =
            check_words(made, &copies.devices[d], &alone, number);
        LAB_ADD(slow.copies, slow.copy_count, made->arena) = claim;
    }
    if (slow.copy_count && slow.doubtful_count)
        slow.checks[slow.copy_count - 1] =
            lab_arena_printf(made->arena, "%s. Inconclusive: %s", slow.checks[slow.copy_count - 1],
                             lab_words_devices(slow.doubtful, slow.doubtful_count, made->arena));
    return slow;
}

/* --- bridges --- */

struct contention_bridges contention_bridges_find(const struct contention *made,
                                                  const struct contention_resource *resource) {
    struct lab_arena *arena = made->arena;
    struct contention_bridges found = {NULL};
    const int count = resource->device_count, *first = find_groups(made, resource);
    const char **shared = NULL, **own = NULL;
    int shared_count = 0, own_count = 0;
    double least = -INFINITY, most = 0, kept = 0; /* logarithms */
    if (!made->machine || !are_numbered(resource))
        return found;
    for (int i = 0; i < count; i++) {
        bool alone = count_members(first, count, first[i]) == 1;
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
    found.range = contention_range_words(least, most, arena);
    found.own_most = -100 * expm1(kept);
    return found;
}

const char *contention_range_words(double least, double most, struct lab_arena *arena) {
    double low = -100 * expm1(least), high = -100 * expm1(most);
    return high - low < 0.1 ? lab_arena_printf(arena, "%.1f%%", high)
                            : lab_arena_printf(arena, "%.1f to %.1f%%", low, high);
}

const char *contention_values_words(const struct contention_resource *resource,
                                    struct lab_arena *arena) {
    const char *here = lab_words_si(resource->here, resource->unit, arena),
               *base = lab_words_si(resource->base, resource->unit, arena);
    const char *unit = strrchr(here, ' '), *other = strrchr(base, ' ');
    bool same = unit && other && lab_str_equal(unit, other);
    return lab_arena_printf(arena, "%.*s instead of %s",
                            (int)(same ? (size_t)(unit - here) : strlen(here)), here, base);
}

const char *contention_bridges_words(const struct contention *made,
                                     const struct contention_resource *resource,
                                     const struct contention_bridges *bridges) {
    return lab_arena_printf(made->arena, "%s of %s, which share a bridge, is %s lower than alone",
                            resource->title, bridges->shared, bridges->range);
}
