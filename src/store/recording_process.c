/*
 * recording_process.c: packing lists of processes.
 *
 *     chunk := version · list … · sum of all bytes before (4 bytes)
 *     list  := time, as its step from the last one · processes · those left out · process …
 *     process := (which · 4 + new · 2 + changed), and if it changed: a byte with a bit for each figure
 *                that did, then those figures
 *
 * A process that was in the list before is named by how far its place there is from the one after the
 * last one's, which is 0 while the order holds; a new one by the number of its row in `process`. Figures
 * are written as their difference to those of the list before, shares in hundredths of a per cent.
 */
#include "store/recording_process.h"

#include "store/recording_pack.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

#define VERSION  17  /* none that packed ticks have: one must not be taken for the other */
#define GPUS_MAX 256 /* that one process uses */

enum {
    CHANGED_CPU = 1,
    CHANGED_MEMORY = 2,
    CHANGED_THREADS = 4,
    CHANGED_CPU_NODE = 8,
    CHANGED_ALLOWED = 16,
    CHANGED_NODES = 32,
    CHANGED_GPUS = 64,
    CHANGED_PLACEMENT = 128,
};

struct lab_process_known {
    uint64_t hash;
    int64_t number;
};

struct gpu_state {
    int64_t row, memory, sm_share, memory_share;
    uint64_t uses; /* bit 0: compute, bit 1: graphics */
};

struct lab_process_state {
    int64_t number;
    int64_t cpu_share, memory, threads, cpu_node;
    uint64_t allowed_nodes, placement;
    int node_count; /* -1 = not known */
    int64_t *node_bytes;
    int gpu_count;
    struct gpu_state *gpus;
};

/* What a process that is new starts from. */
static const struct lab_process_state blank = {.node_count = -1, .cpu_node = -1};

/* Hundredths of a per cent and 1, 0 = not a number. */
static int64_t share_of(double percent) {
    if (!(percent >= 0))
        return 0;
    return percent < 1e12 ? llround(percent * 100) + 1 : 0;
}

static double percent_of(int64_t share) {
    return share <= 0 ? (double)NAN : (double)(share - 1) / 100;
}

/* --- packing --- */

void lab_process_packer_init(struct lab_process_packer *packer) {
    memset(packer, 0, sizeof *packer);
    packer->next_number = 1;
    lab_str_init(&packer->bytes);
    for (int i = 0; i < 2; i++)
        lab_arena_init(&packer->arenas[i]);
}

void lab_process_packer_stored(struct lab_process_packer *packer) {
    for (int i = 0; i < packer->fresh_count; i++) {
        const struct lab_process_identity *identity = &packer->fresh[i];
        char *const texts[] = {identity->user, identity->name, identity->command,
                               identity->container, identity->advice};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            lab_mem_free(texts[k]);
    }
    packer->fresh_count = 0;
    packer->fresh_bytes = 0;
}

void lab_process_packer_restart(struct lab_process_packer *packer) {
    lab_str_clear(&packer->bytes);
    packer->state_count = packer->count = packer->items = 0;
}

void lab_process_packer_forget(struct lab_process_packer *packer) {
    lab_process_packer_stored(packer);
    lab_process_packer_restart(packer);
    packer->known_count = 0;
}

void lab_process_packer_release(struct lab_process_packer *packer) {
    lab_process_packer_forget(packer);
    lab_str_release(&packer->bytes);
    for (int i = 0; i < 2; i++)
        lab_arena_release(&packer->arenas[i]);
    lab_mem_free(packer->known);
    lab_mem_free(packer->fresh);
}

static uint64_t hash_of(const struct lab_process_sample *process) {
    const uint64_t numbers[] = {(uint64_t)process->pid, (uint64_t)process->parent_pid,
                                process->start, process->uid};
    const char *const texts[] = {process->user, process->name, process->command, process->container,
                                 process->advice};
    uint64_t hash = lab_hash_bytes(LAB_HASH_START, numbers, sizeof numbers);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hash = lab_hash_text(hash, texts[i] ? texts[i] : "");
        hash = lab_hash_bytes(hash, "", 1);
    }
    return hash;
}

static char *copy_text(struct lab_process_packer *packer, const char *text) {
    packer->fresh_bytes += text ? strlen(text) + 1 : 1;
    return lab_mem_strdup(text ? text : "");
}

static int64_t identify(struct lab_process_packer *packer, const struct lab_process_sample *process,
                        uint64_t hash, int place) {
    for (int i = 0; i < packer->known_count; i++) {
        const struct lab_process_known *known = &packer->known[(place + i) % packer->known_count];
        if (known->hash == hash)
            return known->number;
    }
    LAB_MEM_GROW(&packer->fresh, packer->fresh_count, &packer->fresh_capacity);
    packer->fresh[packer->fresh_count++] = (struct lab_process_identity){
        .number = packer->next_number,
        .pid = process->pid,
        .parent_pid = process->parent_pid,
        .start = process->start,
        .uid = process->uid,
        .user = copy_text(packer, process->user),
        .name = copy_text(packer, process->name),
        .command = copy_text(packer, process->command),
        .container = copy_text(packer, process->container),
        .advice = copy_text(packer, process->advice),
    };
    packer->fresh_bytes += sizeof *packer->fresh;
    return packer->next_number++;
}

static struct lab_process_state state_of(const struct lab_process_sample *process, int64_t number,
                                         struct lab_arena *arena,
                                         lab_process_entity_row *entity_row, void *state) {
    struct lab_process_state now = {
        .number = number,
        .cpu_share = share_of(process->cpu_percent),
        .memory = process->memory_bytes,
        .threads = process->threads,
        .cpu_node = process->cpu_node,
        .allowed_nodes = process->allowed_nodes,
        .placement = (uint64_t)process->placement,
        .node_count = -1,
    };
    if (process->node_bytes && process->node_count <= LAB_PROCESS_NODES_MAX) {
        now.node_count = process->node_count;
        now.node_bytes = lab_arena_alloc(arena, (size_t)process->node_count, sizeof(int64_t));
        for (int i = 0; i < process->node_count; i++)
            now.node_bytes[i] = process->node_bytes[i];
    }
    now.gpu_count = process->gpu_count < GPUS_MAX ? process->gpu_count : GPUS_MAX;
    now.gpus = lab_arena_alloc(arena, (size_t)now.gpu_count, sizeof *now.gpus);
    for (int i = 0; i < now.gpu_count; i++) {
        const struct lab_process_gpu *gpu = &process->gpus[i];
        now.gpus[i] = (struct gpu_state){
            .row = entity_row(state, gpu->entity),
            .memory = gpu->memory_bytes,
            .sm_share = share_of(gpu->sm_percent),
            .memory_share = share_of(gpu->memory_percent),
            .uses = (uint64_t)gpu->compute | (uint64_t)gpu->graphics << 1,
        };
    }
    return now;
}

static bool same_nodes(const struct lab_process_state *a, const struct lab_process_state *b) {
    return a->node_count == b->node_count &&
           (a->node_count <= 0 ||
            memcmp(a->node_bytes, b->node_bytes, (size_t)a->node_count * sizeof(int64_t)) == 0);
}

static bool same_gpus(const struct lab_process_state *a, const struct lab_process_state *b) {
    return a->gpu_count == b->gpu_count &&
           (a->gpu_count == 0 ||
            memcmp(a->gpus, b->gpus, (size_t)a->gpu_count * sizeof *a->gpus) == 0);
}

static unsigned changes(const struct lab_process_state *now,
                        const struct lab_process_state *before) {
    return (now->cpu_share != before->cpu_share ? CHANGED_CPU : 0) |
           (now->memory != before->memory ? CHANGED_MEMORY : 0) |
           (now->threads != before->threads ? CHANGED_THREADS : 0) |
           (now->cpu_node != before->cpu_node ? CHANGED_CPU_NODE : 0) |
           (now->allowed_nodes != before->allowed_nodes ? CHANGED_ALLOWED : 0) |
           (same_nodes(now, before) ? 0 : CHANGED_NODES) |
           (same_gpus(now, before) ? 0 : CHANGED_GPUS) |
           (now->placement != before->placement ? CHANGED_PLACEMENT : 0);
}

static void put_step(struct lab_str *out, int64_t now, int64_t before) {
    lab_varint_put(out, lab_zigzag((uint64_t)now - (uint64_t)before));
}

static void put_nodes(struct lab_str *out, const struct lab_process_state *now,
                      const struct lab_process_state *before) {
    lab_varint_put(out, (uint64_t)(now->node_count + 1));
    for (int i = 0; i < now->node_count; i++)
        put_step(out, now->node_bytes[i], i < before->node_count ? before->node_bytes[i] : 0);
}

static void put_gpus(struct lab_str *out, const struct lab_process_state *now,
                     const struct lab_process_state *before) {
    static const struct gpu_state none;
    lab_varint_put(out, (uint64_t)now->gpu_count);
    for (int i = 0; i < now->gpu_count; i++) {
        const struct gpu_state *was = i < before->gpu_count ? &before->gpus[i] : &none;
        put_step(out, now->gpus[i].row, was->row);
        put_step(out, now->gpus[i].memory, was->memory);
        put_step(out, now->gpus[i].sm_share, was->sm_share);
        put_step(out, now->gpus[i].memory_share, was->memory_share);
        lab_varint_put(out, now->gpus[i].uses);
    }
}

static void put_figures(struct lab_str *out, unsigned changed, const struct lab_process_state *now,
                        const struct lab_process_state *before) {
    char mask = (char)changed;
    lab_str_add_bytes(out, &mask, 1);
    if (changed & CHANGED_CPU)
        put_step(out, now->cpu_share, before->cpu_share);
    if (changed & CHANGED_MEMORY)
        put_step(out, now->memory, before->memory);
    if (changed & CHANGED_THREADS)
        put_step(out, now->threads, before->threads);
    if (changed & CHANGED_CPU_NODE)
        put_step(out, now->cpu_node, before->cpu_node);
    if (changed & CHANGED_ALLOWED)
        lab_varint_put(out, now->allowed_nodes);
    if (changed & CHANGED_NODES)
        put_nodes(out, now, before);
    if (changed & CHANGED_GPUS)
        put_gpus(out, now, before);
    if (changed & CHANGED_PLACEMENT)
        lab_varint_put(out, now->placement);
}

/* Where the process was in the list before; -1 = it was not. */
static int find_state(const struct lab_process_packer *packer, int64_t number, int expected) {
    for (int i = 0; i < packer->state_count; i++) {
        int at = (expected + i) % packer->state_count;
        if (packer->states[at].number == number)
            return at;
    }
    return -1;
}

void lab_process_packer_add(struct lab_process_packer *packer, const struct lab_process_list *list,
                            lab_process_entity_row *entity_row, void *state) {
    struct lab_str *out = &packer->bytes;
    if (packer->count == 0) {
        char version = VERSION;
        lab_str_add_bytes(out, &version, 1);
        packer->first_ns = list->time_ns;
    }
    put_step(out, list->time_ns, packer->count ? packer->last_ns : 0);
    lab_varint_put(out, (uint64_t)list->count);
    lab_varint_put(out, (uint64_t)list->left_out);
    struct lab_process_known *known =
        lab_mem_alloc(list->count ? (size_t)list->count : 1, sizeof *known);
    struct lab_process_state *states =
        lab_arena_alloc(&packer->arenas[1], (size_t)list->count, sizeof *states);
    for (int i = 0, expected = 0; i < list->count; i++) {
        known[i].hash = hash_of(&list->items[i]);
        known[i].number = identify(packer, &list->items[i], known[i].hash, i);
        states[i] =
            state_of(&list->items[i], known[i].number, &packer->arenas[1], entity_row, state);
        int at = find_state(packer, known[i].number, expected);
        const struct lab_process_state *before = at < 0 ? &blank : &packer->states[at];
        uint64_t which =
            at < 0 ? (uint64_t)known[i].number : lab_zigzag((uint64_t)(int64_t)(at - expected));
        unsigned changed = changes(&states[i], before);
        lab_varint_put(out, which << 2 | (at < 0 ? 2 : 0) | (changed ? 1 : 0));
        if (changed)
            put_figures(out, changed, &states[i], before);
        if (at >= 0)
            expected = at + 1;
    }
    lab_mem_free(packer->known);
    packer->known = known;
    packer->known_count = packer->state_count = list->count;
    packer->states = states;
    struct lab_arena old = packer->arenas[0];
    packer->arenas[0] = packer->arenas[1];
    lab_arena_release(&old);
    lab_arena_init(&packer->arenas[1]);
    packer->last_ns = list->time_ns;
    packer->count++;
    packer->items += list->count;
}

void lab_process_packer_finish(const struct lab_process_packer *packer, struct lab_str *out) {
    size_t from = out->length;
    lab_str_add_bytes(out, packer->bytes.text, packer->bytes.length);
    lab_packed_sum_put(out, from);
}

/* --- unpacking --- */

static bool take_step(struct lab_packed *packed, int64_t *value) {
    uint64_t step;
    if (!lab_varint_take(packed, &step))
        return false;
    *value = (int64_t)((uint64_t)*value + lab_unzigzag(step));
    return true;
}

static bool take_nodes(struct lab_packed *packed, struct lab_process_state *now,
                       struct lab_arena *arena) {
    uint64_t count;
    if (!lab_varint_take(packed, &count) || count > LAB_PROCESS_NODES_MAX + 1)
        return false;
    const int64_t *before = now->node_bytes;
    int before_count = now->node_count;
    now->node_count = (int)count - 1;
    now->node_bytes = NULL;
    if (count == 0)
        return true;
    now->node_bytes = lab_arena_alloc(arena, (size_t)count - 1, sizeof(int64_t));
    for (int i = 0; i < now->node_count; i++) {
        now->node_bytes[i] = i < before_count ? before[i] : 0;
        if (!take_step(packed, &now->node_bytes[i]))
            return false;
    }
    return true;
}

static bool take_gpus(struct lab_packed *packed, struct lab_process_state *now,
                      struct lab_arena *arena) {
    uint64_t count;
    if (!lab_varint_take(packed, &count) || count > GPUS_MAX)
        return false;
    const struct gpu_state *before = now->gpus;
    int before_count = now->gpu_count;
    now->gpu_count = (int)count;
    now->gpus = lab_arena_alloc(arena, (size_t)count, sizeof *now->gpus);
    for (int i = 0; i < now->gpu_count; i++) {
        struct gpu_state *gpu = &now->gpus[i];
        if (i < before_count)
            *gpu = before[i];
        if (!take_step(packed, &gpu->row) || !take_step(packed, &gpu->memory) ||
            !take_step(packed, &gpu->sm_share) || !take_step(packed, &gpu->memory_share) ||
            !lab_varint_take(packed, &gpu->uses))
            return false;
    }
    return true;
}

static bool take_figures(struct lab_packed *packed, struct lab_process_state *now,
                         struct lab_arena *arena) {
    if (packed->at == packed->end)
        return false;
    unsigned changed = *packed->at++;
    return (!(changed & CHANGED_CPU) || take_step(packed, &now->cpu_share)) &&
           (!(changed & CHANGED_MEMORY) || take_step(packed, &now->memory)) &&
           (!(changed & CHANGED_THREADS) || take_step(packed, &now->threads)) &&
           (!(changed & CHANGED_CPU_NODE) || take_step(packed, &now->cpu_node)) &&
           (!(changed & CHANGED_ALLOWED) || lab_varint_take(packed, &now->allowed_nodes)) &&
           (!(changed & CHANGED_NODES) || take_nodes(packed, now, arena)) &&
           (!(changed & CHANGED_GPUS) || take_gpus(packed, now, arena)) &&
           (!(changed & CHANGED_PLACEMENT) ||
            (lab_varint_take(packed, &now->placement) && now->placement <= LAB_PLACEMENT_BOTH));
}

static int to_int(int64_t value) {
    return value < INT32_MIN || value > INT32_MAX ? -1 : (int)value;
}

static struct lab_process_sample sample_of(const struct lab_process_state *state,
                                           const struct lab_process_unpacking *unpacking,
                                           struct lab_arena *arena) {
    struct lab_process_sample sample = {
        .user = "", .name = "", .command = "", .container = "", .advice = ""};
    if (!unpacking->identify(unpacking->state, state->number, &sample))
        sample.name = "?";
    sample.cpu_percent = percent_of(state->cpu_share);
    sample.memory_bytes = state->memory;
    sample.threads = to_int(state->threads);
    sample.cpu_node = to_int(state->cpu_node);
    sample.allowed_nodes = state->allowed_nodes;
    sample.node_bytes = state->node_bytes;
    sample.node_count = state->node_count < 0 ? 0 : state->node_count;
    sample.placement = (enum lab_placement)state->placement;
    sample.gpus = lab_arena_alloc(arena, (size_t)state->gpu_count, sizeof *sample.gpus);
    for (int i = 0; i < state->gpu_count; i++) {
        const struct gpu_state *gpu = &state->gpus[i];
        int track = unpacking->track(unpacking->state, gpu->row);
        if (track >= 0)
            sample.gpus[sample.gpu_count++] = (struct lab_process_gpu){
                .entity = track,
                .memory_bytes = gpu->memory,
                .sm_percent = percent_of(gpu->sm_share),
                .memory_percent = percent_of(gpu->memory_share),
                .compute = gpu->uses & 1,
                .graphics = gpu->uses >> 1 & 1,
            };
    }
    return sample;
}

struct unpacker {
    struct lab_packed packed;
    const struct lab_process_unpacking *unpacking;
    struct lab_arena *arena;
    struct lab_process_state *states;
    int state_count, items_left;
    int64_t time_ns;
};

static bool take_process(struct unpacker *from, int *expected, struct lab_process_state *ret) {
    uint64_t head;
    if (!lab_varint_take(&from->packed, &head))
        return false;
    if (head & 2) {
        *ret = blank;
        ret->number = (int64_t)(head >> 2);
    } else {
        int64_t at = *expected + (int64_t)lab_unzigzag(head >> 2);
        if (at < 0 || at >= from->state_count)
            return false;
        *ret = from->states[at];
        *expected = (int)at + 1;
    }
    return !(head & 1) || take_figures(&from->packed, ret, from->arena);
}

static bool take_list(struct unpacker *from, struct lab_process_list *ret) {
    uint64_t count, left_out;
    if (!take_step(&from->packed, &from->time_ns) || !lab_varint_take(&from->packed, &count) ||
        !lab_varint_take(&from->packed, &left_out) || left_out > INT32_MAX ||
        count > (uint64_t)from->items_left)
        return false;
    struct lab_process_state *states = lab_arena_alloc(from->arena, (size_t)count, sizeof *states);
    *ret = (struct lab_process_list){
        .time_ns = from->time_ns,
        .items = lab_arena_alloc(from->arena, (size_t)count, sizeof *ret->items),
        .count = (int)count,
        .left_out = (int)left_out,
    };
    int expected = 0;
    for (int i = 0; i < ret->count; i++) {
        if (!take_process(from, &expected, &states[i]))
            return false;
        ret->items[i] = sample_of(&states[i], from->unpacking, from->arena);
    }
    from->items_left -= ret->count;
    from->states = states;
    from->state_count = ret->count;
    return true;
}

int lab_process_unpack(const void *bytes, size_t length, int max_items,
                       const struct lab_process_unpacking *unpacking, struct lab_arena *arena,
                       struct lab_process_list **ret_lists, int *ret_count, struct lab_err *err) {
    const uint8_t *at = bytes;
    if (!lab_packed_sum_fits(bytes, length) || length == LAB_PACKED_SUM_BYTES)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: their sum doesn't fit");
    if (at[0] != VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: version %d, known is %d", at[0],
                           VERSION);
    struct unpacker from = {
        .packed = {at + 1, at + length - LAB_PACKED_SUM_BYTES},
        .unpacking = unpacking,
        .arena = arena,
        .items_left = max_items,
    };
    struct lab_process_list *lists = lab_arena_alloc(arena, LAB_PROCESS_LISTS, sizeof *lists);
    int count = 0;
    while (from.packed.at < from.packed.end) {
        int64_t before_ns = from.time_ns;
        if (count == LAB_PROCESS_LISTS || !take_list(&from, &lists[count]) ||
            (count > 0 && from.time_ns < before_ns))
            return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: list %d doesn't read",
                               count + 1);
        count++;
    }
    *ret_lists = lists;
    *ret_count = count;
    return 0;
}
