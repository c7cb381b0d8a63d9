/* recording_process_unpack.c: lists of processes out of their bytes, whatever those may be. */
#include "store/recording/recording_process_internal.h"

#include "store/recording/recording_pack.h"

#include <math.h>

static double percent_of(int64_t share) {
    return share <= 0 ? (double)NAN : (double)(share - 1) / 100;
}

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
    if (!lab_varint_take(packed, &count) || count > LAB_PROCESS_GPUS_MAX)
        return false;
    const struct lab_process_gpu_state *before = now->gpus;
    int before_count = now->gpu_count;
    now->gpu_count = (int)count;
    now->gpus = lab_arena_alloc(arena, (size_t)count, sizeof *now->gpus);
    for (int i = 0; i < now->gpu_count; i++) {
        struct lab_process_gpu_state *gpu = &now->gpus[i];
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
    return (!(changed & LAB_PROCESS_CHANGED_CPU) || take_step(packed, &now->cpu_share)) &&
           (!(changed & LAB_PROCESS_CHANGED_MEMORY) || take_step(packed, &now->memory)) &&
           (!(changed & LAB_PROCESS_CHANGED_THREADS) || take_step(packed, &now->threads)) &&
           (!(changed & LAB_PROCESS_CHANGED_CPU_NODE) || take_step(packed, &now->cpu_node)) &&
           (!(changed & LAB_PROCESS_CHANGED_ALLOWED) ||
            lab_varint_take(packed, &now->allowed_nodes)) &&
           (!(changed & LAB_PROCESS_CHANGED_NODES) || take_nodes(packed, now, arena)) &&
           (!(changed & LAB_PROCESS_CHANGED_GPUS) || take_gpus(packed, now, arena)) &&
           (!(changed & LAB_PROCESS_CHANGED_PLACEMENT) ||
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
    sample.queue_percent = sample.active_percent = NAN;
    sample.memory_bytes = state->memory;
    sample.threads = to_int(state->threads);
    sample.cpu_node = to_int(state->cpu_node);
    sample.allowed_nodes = state->allowed_nodes;
    sample.node_bytes = state->node_bytes;
    sample.node_count = state->node_count < 0 ? 0 : state->node_count;
    sample.placement = (enum lab_placement)state->placement;
    sample.gpus = lab_arena_alloc(arena, (size_t)state->gpu_count, sizeof *sample.gpus);
    for (int i = 0; i < state->gpu_count; i++) {
        const struct lab_process_gpu_state *gpu = &state->gpus[i];
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
        *ret = lab_process_blank;
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
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: checksum mismatch");
    if (at[0] != LAB_PROCESS_VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: version %d, known is %d", at[0],
                           LAB_PROCESS_VERSION);
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
            return lab_err_set(err, LAB_ERR_SYSTEM, "packed processes: invalid list %d", count + 1);
        count++;
    }
    *ret_lists = lists;
    *ret_count = count;
    return 0;
}
