/*
 * recording_process.c: packing lists of processes.
 *
 *     chunk := version · list … · sum of all bytes before (4 bytes) list  := time, as its step from
 *     the last one · processes · those left out · process … process := (which · 4 + new · 2 +
 *     changed), and if it changed: a byte with a bit for each figure
 *                that did, then those figures
 *
 * A process that was in the list before is named by how far its place there is from the one after
 * the last one's, which is 0 while the order holds; a new one by the number of its row in
 * `process`. Figures are written as their difference to those of the list before, shares in
 * hundredths of a per cent.
 */
#include "store/recording/recording_process_internal.h"

#include "store/recording/recording_pack.h"

#include "base/hash.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

struct lab_process_known {
    uint64_t hash;
    int64_t number;
};

const struct lab_process_state lab_process_blank = {.node_count = -1, .cpu_node = -1};

/* Hundredths of a per cent and 1, 0 = not a number. */
static int64_t share_of(double percent) {
    if (!(percent >= 0))
        return 0;
    return percent < 1e12 ? llround(percent * 100) + 1 : 0;
}

/* --- life --- */

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

/* --- packing --- */

static uint64_t hash_of(const struct lab_process_sample *process) {
    const uint64_t numbers[] = {(uint64_t)process->pid, (uint64_t)process->parent_pid,
                                process->start, process->uid};
    const char *const texts[] = {process->user, process->name, process->command, process->container,
                                 process->advice};
    uint64_t hash = LAB_HASH_START;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = lab_random_bits(hash, numbers[i]);
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
    LAB_PUSH(packer->fresh, packer->fresh_count) = (struct lab_process_identity){
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
    now.gpu_count =
        process->gpu_count < LAB_PROCESS_GPUS_MAX ? process->gpu_count : LAB_PROCESS_GPUS_MAX;
    now.gpus = lab_arena_alloc(arena, (size_t)now.gpu_count, sizeof *now.gpus);
    for (int i = 0; i < now.gpu_count; i++) {
        const struct lab_process_gpu *gpu = &process->gpus[i];
        now.gpus[i] = (struct lab_process_gpu_state){
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
    if (a->node_count != b->node_count)
        return false;
    for (int i = 0; i < a->node_count && a->node_bytes && b->node_bytes; i++)
        if (a->node_bytes[i] != b->node_bytes[i])
            return false;
    return true;
}

static bool same_gpus(const struct lab_process_state *a, const struct lab_process_state *b) {
    if (a->gpu_count != b->gpu_count)
        return false;
    for (int i = 0; i < a->gpu_count && a->gpus && b->gpus; i++)
        if (memcmp(&a->gpus[i], &b->gpus[i], sizeof *a->gpus) != 0)
            return false;
    return true;
}

static unsigned changes(const struct lab_process_state *now,
                        const struct lab_process_state *before) {
    return (now->cpu_share != before->cpu_share ? LAB_PROCESS_CHANGED_CPU : 0) |
           (now->memory != before->memory ? LAB_PROCESS_CHANGED_MEMORY : 0) |
           (now->threads != before->threads ? LAB_PROCESS_CHANGED_THREADS : 0) |
           (now->cpu_node != before->cpu_node ? LAB_PROCESS_CHANGED_CPU_NODE : 0) |
           (now->allowed_nodes != before->allowed_nodes ? LAB_PROCESS_CHANGED_ALLOWED : 0) |
           (same_nodes(now, before) ? 0 : LAB_PROCESS_CHANGED_NODES) |
           (same_gpus(now, before) ? 0 : LAB_PROCESS_CHANGED_GPUS) |
           (now->placement != before->placement ? LAB_PROCESS_CHANGED_PLACEMENT : 0);
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
    static const struct lab_process_gpu_state none;
    lab_varint_put(out, (uint64_t)now->gpu_count);
    for (int i = 0; i < now->gpu_count; i++) {
        const struct lab_process_gpu_state *was = i < before->gpu_count ? &before->gpus[i] : &none;
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
    if (changed & LAB_PROCESS_CHANGED_CPU)
        put_step(out, now->cpu_share, before->cpu_share);
    if (changed & LAB_PROCESS_CHANGED_MEMORY)
        put_step(out, now->memory, before->memory);
    if (changed & LAB_PROCESS_CHANGED_THREADS)
        put_step(out, now->threads, before->threads);
    if (changed & LAB_PROCESS_CHANGED_CPU_NODE)
        put_step(out, now->cpu_node, before->cpu_node);
    if (changed & LAB_PROCESS_CHANGED_ALLOWED)
        lab_varint_put(out, now->allowed_nodes);
    if (changed & LAB_PROCESS_CHANGED_NODES)
        put_nodes(out, now, before);
    if (changed & LAB_PROCESS_CHANGED_GPUS)
        put_gpus(out, now, before);
    if (changed & LAB_PROCESS_CHANGED_PLACEMENT)
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
        char version = LAB_PROCESS_VERSION;
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
        const struct lab_process_state *before = at < 0 ? &lab_process_blank : &packer->states[at];
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
