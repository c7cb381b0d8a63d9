/* analysis/latency/work.c: commands joined with their calls and with the ranges that they lie
 * in. */
#include "analysis/latency/work.h"

#include "analysis/latency/pipeline.h"

#include "base/list.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Files may say anything. Within these bounds no difference of times, and no sum of them or of
 * sizes over any trace that fits a disk, leaves 64 bits; real ones are far inside.
 */
#define TIME_MOST_NS     (INT64_C(1) << 61) /* 73 years, on either side of 0 */
#define DURATION_MOST_NS (INT64_C(1) << 50) /* 13 days */
#define SIZE_MOST_BYTES  (INT64_C(1) << 50)

static bool is_stretch(int64_t start_ns, int64_t end_ns) {
    return start_ns >= -TIME_MOST_NS && end_ns <= TIME_MOST_NS && end_ns >= start_ns &&
           end_ns - start_ns <= DURATION_MOST_NS;
}

/* --- calls --- */

struct calls {
    const struct lab_trace_call **items; /* by correlation, the outermost of several first */
    size_t count;
};

static struct calls index_calls(const struct lab_trace *trace, struct lab_arena *arena) {
    struct calls calls = {lab_arena_alloc(arena, trace->call_count + 1, sizeof *calls.items), 0};
    for (size_t i = 0; i < trace->call_count; i++)
        if (trace->calls[i].correlation &&
            is_stretch(trace->calls[i].start_ns, trace->calls[i].end_ns))
            calls.items[calls.count++] = &trace->calls[i];
    LAB_SORT_REFS(calls.items, calls.count, LAB_BY(*calls.items, correlation),
                  LAB_BY(*calls.items, start_ns));
    return calls;
}

static const struct lab_trace_call *find_call(const struct calls *calls, uint32_t correlation) {
    size_t low = 0, high = calls->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (calls->items[middle]->correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < calls->count && calls->items[low]->correlation == correlation;
    return correlation && found ? calls->items[low] : NULL;
}

/* --- commands --- */

static void add(struct lab_work_list *list, const struct calls *calls,
                const struct lab_trace_place *place, struct lab_latency_work work) {
    if (!is_stretch(work.start_ns, work.end_ns) || (work.start_ns == 0 && work.end_ns == 0)) {
        list->broken++;
        return;
    }
    if (work.size_bytes < 0 || work.size_bytes > SIZE_MOST_BYTES)
        work.size_bytes = 0;
    work.device = place->device;
    work.context = place->context;
    work.green = place->green;
    work.stream = place->stream;
    work.call = find_call(calls, place->correlation);
    list->items[list->count++] = work;
}

static int stage_of_copy(int32_t kind) {
    enum { H2A = 3, A2H = 4 }; /* CUPTI's: the device's side is an array */
    if (kind == LAB_TRACE_COPY_H2D || kind == H2A)
        return LAB_STAGE_H2D;
    if (kind == LAB_TRACE_COPY_D2H || kind == A2H)
        return LAB_STAGE_D2H;
    return LAB_PIPELINE_OTHER;
}

static int compare_pipeline(const struct lab_latency_work *a, const struct lab_latency_work *b) {
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->context != b->context)
        return a->context < b->context ? -1 : 1;
    return (a->green > b->green) - (a->green < b->green);
}

static int by_pipeline(const void *a, const void *b) {
    const struct lab_latency_work *x = a, *y = b;
    int order = compare_pipeline(x, y);
    if (order)
        return order;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

bool lab_work_same_pipeline(const struct lab_latency_work *a, const struct lab_latency_work *b) {
    return compare_pipeline(a, b) == 0;
}

void lab_work_collect(const struct lab_trace *trace, struct lab_arena *arena,
                      struct lab_work_list *ret_list) {
    size_t most = trace->kernel_count + trace->copy_count + trace->fill_count;
    struct lab_work_list list = {lab_arena_alloc(arena, most + 1, sizeof *list.items), 0, 0};
    struct calls calls = index_calls(trace, arena);
    for (size_t i = 0; i < trace->kernel_count; i++) {
        const struct lab_trace_kernel *kernel = &trace->kernels[i];
        add(&list, &calls, &kernel->place,
            (struct lab_latency_work){.start_ns = kernel->start_ns,
                                      .end_ns = kernel->end_ns,
                                      .stage = LAB_STAGE_COMPUTE,
                                      .whole_graph = kernel->whole_graph});
    }
    for (size_t i = 0; i < trace->copy_count; i++) {
        const struct lab_trace_copy *copy = &trace->copies[i];
        add(&list, &calls, &copy->place,
            (struct lab_latency_work){.start_ns = copy->start_ns,
                                      .end_ns = copy->end_ns,
                                      .size_bytes = copy->size_bytes,
                                      .stage = stage_of_copy(copy->kind)});
    }
    for (size_t i = 0; i < trace->fill_count; i++) {
        const struct lab_trace_fill *fill = &trace->fills[i];
        add(&list, &calls, &fill->place,
            (struct lab_latency_work){.start_ns = fill->start_ns,
                                      .end_ns = fill->end_ns,
                                      .size_bytes = fill->size_bytes,
                                      .stage = LAB_PIPELINE_OTHER});
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_pipeline);
    *ret_list = list;
}

/* --- ranges --- */

static int64_t end_of(const struct lab_trace_range *range) {
    return range->end_ns < range->start_ns ? INT64_MAX : range->end_ns; /* never closed */
}

/* The thread that drives this pipeline, if a window was opened on it: several pipelines of a
 * process have a thread and a window each. */
static bool find_thread(const struct lab_trace *trace, const char *window,
                        const struct lab_latency_work *work, size_t count, uint32_t *ret_thread) {
    for (size_t i = 0; i < trace->range_count; i++) {
        const struct lab_trace_range *range = &trace->ranges[i];
        if (!lab_str_equal(range->text, window))
            continue;
        for (size_t k = 0; k < count; k++) {
            if (work[k].call && work[k].call->thread == range->thread) {
                *ret_thread = range->thread;
                return true;
            }
        }
    }
    return false;
}

/* "h2d_batch_12": the stage and 12. */
static bool parse_batch(const char *text, int *ret_stage, int64_t *ret_index) {
    static const char *const prefixes[LAB_STAGE_COUNT] = {"h2d_batch_", "compute_batch_",
                                                          "d2h_batch_"};
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
        if (!lab_str_starts(text, prefixes[stage]))
            continue;
        const char *digits = text + strlen(prefixes[stage]);
        char *end;
        *ret_stage = stage;
        *ret_index = strtoll(digits, &end, 10);
        return *digits >= '0' && *digits <= '9' && *end == '\0' && *ret_index < INT32_MAX;
    }
    return false;
}

/* The window that a range begins in; -1 = none. Where there is no window at all, all are in one. */
static int64_t window_of(const struct lab_work_ranges *ranges, int64_t start_ns) {
    for (size_t i = 0; i < ranges->window_count; i++)
        if (start_ns >= ranges->windows[i].start_ns && start_ns <= ranges->windows[i].end_ns)
            return (int64_t)i;
    return ranges->window_count ? -1 : 0;
}

static void add_batches(const struct lab_trace *trace, const uint32_t *thread,
                        struct lab_work_ranges *ranges) {
    for (size_t i = 0; i < trace->range_count; i++) {
        const struct lab_trace_range *range = &trace->ranges[i];
        int stage;
        int64_t index;
        if (!range->text || (thread && range->thread != *thread) ||
            !parse_batch(range->text, &stage, &index))
            continue;
        int64_t window = window_of(ranges, range->start_ns);
        if (window >= 0) /* the same number may come in each window */
            ranges->batches[stage][ranges->batch_counts[stage]++] =
                (struct lab_work_batch){range->start_ns, end_of(range), (window << 32) + index};
    }
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++)
        LAB_SORT(ranges->batches[stage], ranges->batch_counts[stage],
                 LAB_BY(ranges->batches[stage], start_ns));
}

/*
 * Where no call is known, what starts after a window was most likely asked for within it, as long
 * as nothing else has begun: programs close their ranges before they wait for the device.
 */
static int64_t find_tail(const struct lab_trace *trace, const uint32_t *thread, int64_t end_ns) {
    int64_t tail_ns = INT64_MAX;
    for (size_t i = 0; i < trace->range_count; i++) {
        const struct lab_trace_range *range = &trace->ranges[i];
        if ((!thread || range->thread == *thread) && range->start_ns > end_ns &&
            range->start_ns <= tail_ns)
            tail_ns = range->start_ns - 1;
    }
    return tail_ns;
}

void lab_work_ranges(const struct lab_trace *trace, const char *window,
                     const struct lab_latency_work *work, size_t count, struct lab_arena *arena,
                     struct lab_work_ranges *ret_ranges) {
    struct lab_work_ranges ranges = {.follow_device = LAB_FIND(trace->notes, trace->note_count,
                                                               name, LAB_TRACE_NOTE_SOURCE) >= 0};
    size_t most = trace->range_count + 1;
    uint32_t found;
    const uint32_t *thread = find_thread(trace, window, work, count, &found) ? &found : NULL;
    ranges.windows = lab_arena_alloc(arena, most, sizeof *ranges.windows);
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++)
        ranges.batches[stage] = lab_arena_alloc(arena, most, sizeof *ranges.batches[stage]);
    for (size_t i = 0; i < trace->range_count; i++) {
        const struct lab_trace_range *range = &trace->ranges[i];
        if (!lab_str_equal(range->text, window) || (thread && range->thread != *thread))
            continue;
        int64_t end_ns = end_of(range);
        ranges.windows[ranges.window_count++] = (struct lab_work_window){
            range->start_ns, end_ns,
            ranges.follow_device ? end_ns : find_tail(trace, thread, end_ns)};
    }
    LAB_SORT(ranges.windows, ranges.window_count, LAB_BY(ranges.windows, start_ns));
    add_batches(trace, thread, &ranges);
    *ret_ranges = ranges;
}

/* --- which commands they cover --- */

/* When it is looked for in ranges: when it was asked for, where the ranges follow the host. */
static int64_t key_of(const struct lab_work_ranges *ranges, const struct lab_latency_work *work) {
    return ranges->follow_device || !work->call ? work->start_ns : work->call->start_ns;
}

bool lab_work_is_within(const struct lab_work_ranges *ranges, const struct lab_latency_work *work) {
    int64_t key_ns = key_of(ranges, work);
    for (size_t i = 0; i < ranges->window_count; i++) {
        const struct lab_work_window *window = &ranges->windows[i];
        if (key_ns >= window->start_ns && key_ns <= (work->call ? window->end_ns : window->tail_ns))
            return true;
    }
    return ranges->window_count == 0;
}

int64_t lab_work_batch(const struct lab_work_ranges *ranges, const struct lab_latency_work *work) {
    if (work->stage == LAB_PIPELINE_OTHER || (!ranges->follow_device && !work->call))
        return -1; /* the host's ranges say nothing about when the device works */
    const struct lab_work_batch *batches = ranges->batches[work->stage];
    int64_t key_ns = key_of(ranges, work);
    size_t low = 0, high = ranges->batch_counts[work->stage];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (batches[middle].start_ns <= key_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && key_ns <= batches[low - 1].end_ns ? batches[low - 1].id : -1;
}
