/* answer.c: which node to bind each device to, in sentences. */
#include "analysis/analysis_words.h"
#include "analysis/numa/numa.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum lab_claim_verdict lab_numa_verdict(const struct lab_numa_device *device) {
    enum lab_claim_verdict verdict = LAB_CLAIM_NOT_TESTED;
    bool certain = device->binding.verdict == LAB_CLAIM_YES;
    for (int n = 0; n < device->node_count; n++) {
        enum lab_claim_verdict own = device->nodes[n].claim.verdict;
        if (n == device->reference || own == LAB_CLAIM_NOT_TESTED)
            continue;
        if (own == LAB_CLAIM_YES)
            return certain ? own : LAB_CLAIM_INCONCLUSIVE;
        verdict = verdict == LAB_CLAIM_INCONCLUSIVE ? verdict : own;
    }
    return verdict;
}

/* Its best node; its own where that wasn't tested. */
static int binding_node(const struct lab_numa_device *device) {
    return lab_numa_home_tested(device) ? device->nodes[lab_numa_best_node(device)].number
                                        : device->home;
}

/* Whether a model is slower on that node for certain, and none is faster. */
static bool is_excluded(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                        int node) {
    const struct lab_claim *mean = &device->nodes[node].claim;
    bool lower = mean->verdict == LAB_CLAIM_YES, higher = lower && mean->effect > 0;
    for (int m = 0; m < grid->model_count; m++) {
        const struct lab_claim *cell = &lab_numa_cell_at(device, m, node)->claim;
        lower |= cell->verdict == LAB_CLAIM_YES;
        higher |= cell->verdict == LAB_CLAIM_YES && cell->effect > 0;
    }
    return lower && !higher;
}

/* "NUMA nodes 2 and 3": those that are excluded, or the others. */
static const char *node_words(const struct lab_numa_grid *grid,
                              const struct lab_numa_device *device, bool excluded,
                              struct lab_arena *arena, int *ret_count) {
    const char **numbers = NULL;
    int count = 0;
    for (int n = 0; n < device->node_count; n++)
        if (is_excluded(grid, device, n) == excluded)
            LAB_ADD(numbers, count, arena) = lab_arena_printf(arena, "%d", device->nodes[n].number);
    *ret_count = count;
    LAB_ADD(numbers, count, arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, numbers, "and");
    return lab_arena_printf(arena, "NUMA node%s %s", *ret_count == 1 ? "" : "s",
                            list.text ? list.text : "");
}

/* "between NUMA nodes 2 and 3" of a device that is inconclusive, where these aren't all; else "".
 */
static const char *between_words(const struct lab_numa_grid *grid,
                                 const struct lab_numa_device *device, struct lab_arena *arena) {
    int left, excluded;
    const char *words = node_words(grid, device, false, arena, &left);
    node_words(grid, device, true, arena, &excluded);
    return left > 1 && excluded > 0 ? lab_arena_printf(arena, "between %s", words) : "";
}

/* Whether one sentence says both: their verdict, and what follows from it. */
static bool are_alike(const struct lab_numa_grid *grid, const struct lab_numa_device *a,
                      const struct lab_numa_device *b, struct lab_arena *arena) {
    enum lab_claim_verdict verdict = lab_numa_verdict(a);
    if (lab_numa_verdict(b) != verdict)
        return false;
    if (verdict == LAB_CLAIM_YES)
        return lab_numa_home_tested(a) == lab_numa_home_tested(b) &&
               binding_node(a) == binding_node(b) &&
               a->nodes[lab_numa_best_node(a)].number == b->nodes[lab_numa_best_node(b)].number;
    if (verdict != LAB_CLAIM_INCONCLUSIVE)
        return true;
    const char *between = between_words(grid, a, arena);
    return lab_str_equal(between, between_words(grid, b, arena)) &&
           (!*between || a->nodes[a->reference].number == b->nodes[b->reference].number);
}

/* Of devices like that one, which are inconclusive, the claim with the largest effect: of the
 * bindings and, where a table has several, of single nodes. */
static const struct lab_claim *largest_open(const struct lab_numa_grid *grid,
                                            const struct lab_numa_device *own, bool several,
                                            struct lab_arena *arena) {
    const struct lab_claim *largest = &lab_claim_none;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        bool bound = device->binding.verdict != LAB_CLAIM_NOT_TESTED;
        for (int n = -1; n < device->node_count && are_alike(grid, own, device, arena); n++) {
            const struct lab_claim *claim = n < 0 ? &device->binding : &device->nodes[n].claim;
            if (claim->verdict != LAB_CLAIM_NOT_TESTED && (n < 0 || several || !bound) &&
                !(fabs(claim->effect) <= fabs(largest->effect))) /* NaN at first */
                largest = claim;
        }
    }
    return largest;
}

/* "GPUs 8 and 9: inconclusive between NUMA nodes 2 and 3; NUMA nodes 0 and 1: 8.6 to 13.2% lower
 * throughput than NUMA node 3 on 3 of 6 models (3 runs each)." */
static const char *between_sentence(const struct lab_numa_grid *grid,
                                    const struct lab_numa_device *own, const char *who,
                                    const char *between, struct lab_arena *arena) {
    double least = INFINITY, most = 0;
    int models = 0, runs = 0, excluded;
    for (int m = 0; m <= grid->model_count; m++) { /* the mean where no model is certain alone */
        bool lower = false;
        for (int d = 0; d < grid->device_count; d++) {
            const struct lab_numa_device *device = &grid->devices[d];
            for (int n = 0; n < device->node_count && are_alike(grid, own, device, arena); n++) {
                const struct lab_claim *claim = m == grid->model_count
                                                    ? &device->nodes[n].claim
                                                    : &lab_numa_cell_at(device, m, n)->claim;
                if (claim->verdict != LAB_CLAIM_YES || !is_excluded(grid, device, n) ||
                    (m == grid->model_count && models > 0))
                    continue;
                lower = true;
                least = fmin(least, -100 * claim->effect);
                most = fmax(most, -100 * claim->effect);
                runs = runs > 0 && runs < claim->n ? runs : claim->n;
            }
        }
        models += m < grid->model_count && lower;
    }
    const char *on = models == 0
                         ? ", mean of models"
                         : lab_arena_printf(arena, " on %d of %d model%s", models,
                                            grid->model_count, grid->model_count == 1 ? "" : "s");
    const char *range = most - least < 0.05
                            ? lab_arena_printf(arena, "%.1f%%", most)
                            : lab_arena_printf(arena, "%.1f to %.1f%%", least, most);
    return lab_arena_printf(arena,
                            "%s: inconclusive %s; %s: %s lower throughput than NUMA node %d%s "
                            "(%d runs each).",
                            who, between, node_words(grid, own, true, arena, &excluded), range,
                            own->nodes[own->reference].number, on, runs);
}

/* "GPUs 8 and 9: inconclusive; the largest difference: GPU 9, NUMA node 3: 0.9% higher throughput
 * than the other NUMA nodes (…)." */
static const char *open_sentence(const struct lab_numa_grid *grid,
                                 const struct lab_numa_device *own, const char *who, int count,
                                 struct lab_arena *arena) {
    const char *between = between_words(grid, own, arena);
    if (*between)
        return between_sentence(grid, own, who, between, arena);
    struct lab_claim value = *largest_open(grid, own, count > 1, arena);
    value.verdict = LAB_CLAIM_YES; /* only its values: the sentence has the verdict already */
    return lab_arena_printf(arena, "%s: inconclusive%s: %s.", who,
                            count > 1 ? "; the largest difference" : "",
                            lab_claim_sentence(&value, arena));
}

/* The sentence of the device and of all after it that have the same; NULL = an earlier one has
 * said it, or the verdict is another. */
static const char *binding_of(const struct lab_numa_grid *grid, int first,
                              enum lab_claim_verdict verdict, struct lab_arena *arena) {
    const char **names = NULL;
    const struct lab_numa_device *own = &grid->devices[first];
    bool tested = lab_numa_home_tested(own);
    int count = 0, best = binding_node(own);
    double bound = 0;
    if (lab_numa_verdict(own) != verdict)
        return NULL;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        bool alike = are_alike(grid, own, device, arena);
        if (alike && d < first)
            return NULL;
        if (alike)
            LAB_ADD(names, count, arena) = device->title;
        for (int n = 0; alike && n < device->node_count; n++)
            bound = fmax(bound, device->nodes[n].claim.bound);
    }
    const char *who = lab_words_devices(names, count, arena);
    if (verdict == LAB_CLAIM_YES && !tested)
        return lab_arena_printf(arena, "%s: NUMA node %d until local node %d is tested.", who,
                                own->nodes[lab_numa_best_node(own)].number, best);
    if (verdict == LAB_CLAIM_YES)
        return lab_arena_printf(arena, "Bind %s to NUMA node %d.", who, best);
    if (verdict == LAB_CLAIM_INCONCLUSIVE)
        return open_sentence(grid, own, who, count, arena);
    return lab_arena_printf(arena, "%s: no difference%s.", who, lab_claim_larger(bound, arena));
}

#define NODES_NAMED 3 /* in sentences; a table has more */

/* Whether every device is to be bound to the node that it is attached to, over many nodes. */
static bool binds_locally(const struct lab_numa_grid *grid) {
    int nodes = 0;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        bool known = false;
        if (lab_numa_verdict(device) != LAB_CLAIM_YES || !lab_numa_home_tested(device) ||
            binding_node(device) != device->home)
            return false;
        for (int k = 0; k < d; k++)
            known |= grid->devices[k].home == device->home;
        nodes += !known;
    }
    return nodes > NODES_NAMED;
}

/* "Bind GPUs 0–2 to NUMA node 0." of devices for which another node is slower for certain and whose
 * own was tested; then the others, where there are such. */
static void add_binding(const struct lab_numa_grid *grid, struct lab_arena *arena,
                        struct lab_str *text) {
    static const enum lab_claim_verdict verdicts[] = {LAB_CLAIM_YES, LAB_CLAIM_NO,
                                                      LAB_CLAIM_INCONCLUSIVE};
    if (binds_locally(grid)) {
        bool gpus = lab_str_starts(grid->devices[0].title, "GPU ");
        lab_str_printf(text, "Bind each %s to its local NUMA node.", gpus ? "GPU" : "device");
        return;
    }
    for (int v = 0; v < LAB_COUNT_OF(verdicts) && (v == 0 || text->length); v++)
        for (int d = 0; d < grid->device_count; d++) {
            const char *sentence = binding_of(grid, d, verdicts[v], arena);
            if (sentence)
                lab_str_printf(text, "%s%s", text->length ? " " : "", sentence);
        }
}

const char *lab_numa_unbound(const struct lab_numa_grid *grid, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int d = 0; d < grid->device_count; d++) {
        enum lab_claim_verdict verdict = lab_numa_verdict(&grid->devices[d]);
        const char *sentence =
            verdict == LAB_CLAIM_INCONCLUSIVE ? binding_of(grid, d, verdict, arena) : NULL;
        if (sentence)
            lab_str_printf(&text, "%s%s", text.length ? " " : "", sentence);
    }
    return lab_arena_strdup(arena, text.text);
}

/* One of several devices, where their mean shows nothing: with its value, after the mean. */
static void add_devices(const struct lab_numa_grid *grid, struct lab_arena *arena,
                        struct lab_str *text) {
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++)
            if (grid->devices[d].nodes[n].claim.verdict == LAB_CLAIM_YES)
                lab_str_printf(text, " %s.",
                               lab_claim_sentence(&grid->devices[d].nodes[n].claim, arena));
}

/* The cell of single devices that reaches farthest, of models from this pooled one up. */
static const struct lab_claim *farthest_cell(const struct lab_numa_grid *grid, int from, int last) {
    const struct lab_claim *farthest = &lab_claim_none;
    for (int i = from; i < last; i++)
        for (int m = 0; m < grid->model_count; m++)
            for (int d = 0; d < grid->device_count; d++)
                for (int n = 0; n < grid->devices[d].node_count; n++) {
                    const struct lab_claim *cell =
                        &lab_numa_cell_at(&grid->devices[d], m, n)->claim;
                    if (lab_str_equal(grid->models[m].name, grid->pooled[i].model) &&
                        lab_words_reach(0, cell) > lab_words_reach(0, farthest))
                        farthest = cell;
                }
    return farthest;
}

static const struct lab_numa_model *model_of(const struct lab_numa_grid *grid, int pooled) {
    int found = LAB_FIND(grid->models, grid->model_count, name, grid->pooled[pooled].model);
    return &grid->models[found];
}

/* The one model that these are, with all its settings; NULL = there are several, or more settings
 * of it, or one. */
static const char *common_model(const struct lab_numa_grid *grid, int from, int last) {
    const char *whole = model_of(grid, from)->whole;
    for (int i = 0; i < last; i++)
        if (lab_str_equal(model_of(grid, i)->whole, whole) != (i >= from))
            return NULL;
    return last - from > 1 ? whole : NULL;
}

/* What is neither transfer-bound nor among the last, without a difference: "vit32x4x256: 8.2%
 * lower."; of several "6 other configurations: 6.1 to 8.3% lower; 2 more: no difference larger than
 * 1.8%." */
static void add_between(const struct lab_numa_grid *grid, int from, struct lab_arena *arena,
                        struct lab_str *text) {
    const struct lab_numa_pooled *lower = NULL;
    double least = INFINITY, most = 0, bound = 0;
    int count = 0, none = 0;
    bool named = grid->transfer_bound.verdict != LAB_CLAIM_NOT_TESTED;
    for (int i = 0; i < from; i++) {
        const struct lab_numa_pooled *own = &grid->pooled[i];
        if (named ? own->transfer_bound : i == 0)
            continue;
        if (own->claim.verdict == LAB_CLAIM_YES && own->claim.effect < 0) {
            lower = own;
            least = fmin(least, -100 * own->claim.effect);
            most = fmax(most, -100 * own->claim.effect);
            count++;
        } else if (own->claim.verdict == LAB_CLAIM_NO) {
            bound = fmax(bound, own->claim.bound);
            none++;
        }
    }
    if (count == 0)
        return;
    if (count == 1)
        lab_str_printf(text, " %s: %.1f%% lower", lower->model, most);
    else
        lab_str_printf(text, " %s: %.1f to %.1f%% lower",
                       lab_study_counted(grid->study, count, grid->model_count, "other ", arena),
                       least, most);
    if (none > 0)
        lab_str_printf(text, "; %d more: no difference%s", none, lab_claim_larger(bound, arena));
    lab_str_add(text, ".");
}

/* Models that are transfer-bound; where none is, or that is unknown, the one with least
 * arithmetic. From the farthest nodes. */
static void add_pooled(const struct lab_numa_grid *grid, struct lab_arena *arena,
                       struct lab_str *text) {
    const struct lab_numa_pooled *first = &grid->pooled[0];
    const struct lab_claim *claim = &grid->transfer_bound;
    int last = 0;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        claim = &first->claim;
    lab_str_printf(text, "%s%s.", text->length ? " " : "", lab_claim_sentence(claim, arena));
    while (last < grid->pooled_count && grid->pooled[last].distance == first->distance)
        last++;
    int from = last;
    double bound = 0;
    while (from > 1 && grid->pooled[from - 1].claim.verdict == LAB_CLAIM_NO) {
        from--;
        bound = fmax(bound, grid->pooled[from].claim.bound);
    }
    if (from < last)
        add_between(grid, from, arena, text);
    if (from >= last || claim->verdict == LAB_CLAIM_NO)
        return;
    int devices = grid->pooled[from].devices;
    const char *whole = common_model(grid, from, last);
    bool gpus = lab_str_starts(grid->devices[0].title, "GPU ");
    const struct lab_claim *cell = farthest_cell(grid, from, last);
    const char *alone = lab_words_beyond(
        bound, lab_words_reach(0, cell),
        lab_arena_printf(arena, "single %s and model", gpus ? "GPU" : "device"), arena);
    if (*alone && cell->verdict == LAB_CLAIM_INCONCLUSIVE) /* a question mark in the map */
        alone = lab_arena_printf(arena, "%.*s, inconclusive)", (int)strlen(alone) - 1, alone);
    const char *mean =
        devices < 2 ? ""
                    : lab_arena_printf(arena, "mean of %d %s", devices, gpus ? "GPUs" : "devices");
    if (whole)
        lab_str_printf(text, " %s, any setting%s%s: no", whole, *mean ? ", " : "", mean);
    else
        lab_str_printf(text, " %s%s", lab_words_capital(mean, arena), *mean ? ": no" : "No");
    lab_str_printf(text, " difference%s", lab_claim_larger(bound, arena));
    if (!whole)
        lab_str_printf(text, " from %s up", grid->pooled[from].model);
    lab_str_printf(text, "%s.", devices < 2 ? "" : alone);
}

const char *lab_numa_answer(const struct lab_numa_grid *grids, int count, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int g = 0; g < count; g++) {
        if (grids[g].pooled_count == 0)
            continue;
        if (count > 1)
            lab_str_printf(&text, "%s%s: ", text.length ? " " : "", grids[g].study->name);
        LAB_AUTO(str, one);
        bool found = grids[g].transfer_bound.verdict == LAB_CLAIM_YES;
        for (int i = 0; i < grids[g].pooled_count; i++)
            found |= grids[g].pooled[i].claim.verdict == LAB_CLAIM_YES;
        if (found)
            add_binding(&grids[g], arena, &one);
        add_pooled(&grids[g], arena, &one);
        if (!found)
            add_devices(&grids[g], arena, &one);
        lab_str_add(&text, one.text);
    }
    return text.length ? lab_arena_strdup(arena, text.text) : NULL;
}
