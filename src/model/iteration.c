/*
 * iteration.c: iterations as few bytes. A workload repeats itself, so the step from one time to the
 * next is nearly what the same step was an iteration ago; only that change is written:
 *
 *     version · count · first start · per iteration: flags, then its times flags: bits 0 to 2 = the
 *     stage exists; 3 = starts with its first stage; 4 = ends with its last
 *
 * What the flags already say is left out. All arithmetic is modulo 2^64, so that any times, also
 * nonsensical ones, come back exactly.
 */
#include "model/iteration.h"

#include "base/list.h"
#include "model/varint.h"

#define VERSION             1
#define TIMES               (2 + 2 * LAB_STAGE_COUNT)
#define ITERATION_MIN_BYTES 3 /* flags and two times */
#define ITERATION_MAX_BYTES (1 + TIMES * LAB_VARINT_BYTES)

#define STARTS_WITH_STAGE (1u << LAB_STAGE_COUNT)
#define ENDS_WITH_STAGE   (2u << LAB_STAGE_COUNT)
#define STAGE_FLAGS       (STARTS_WITH_STAGE - 1)
#define ALL_FLAGS         (STAGE_FLAGS | STARTS_WITH_STAGE | ENDS_WITH_STAGE)

/* What writer and reader both remember: the last time, and for each place in an iteration the last
 * step that led there. */
struct course {
    uint64_t time;
    uint64_t steps[TIMES];
};

/* Which times of an iteration are written, by the flags alone: bit i = times[i] below. */
static unsigned written_times(unsigned flags) {
    unsigned written = 0;
    if (!(flags & STARTS_WITH_STAGE))
        written |= 1u;
    for (int s = 0; s < LAB_STAGE_COUNT; s++)
        if (flags & (1u << s))
            written |= 3u << (1 + 2 * s);
    if (!(flags & ENDS_WITH_STAGE))
        written |= 1u << (TIMES - 1);
    return written;
}

static int first_stage(unsigned flags) {
    return __builtin_ctz(flags & STAGE_FLAGS);
}

static int last_stage(unsigned flags) {
    return 31 - __builtin_clz(flags & STAGE_FLAGS);
}

/* --- packing --- */

static unsigned flags_of(const struct lab_iteration *item) {
    unsigned flags = 0;
    for (int s = 0; s < LAB_STAGE_COUNT; s++)
        if (item->stages[s].start_ns != 0 || item->stages[s].end_ns != 0)
            flags |= 1u << s;
    if (!flags)
        return 0;
    unsigned edges = 0;
    if (item->start_ns == item->stages[first_stage(flags)].start_ns)
        edges |= STARTS_WITH_STAGE;
    if (item->end_ns == item->stages[last_stage(flags)].end_ns)
        edges |= ENDS_WITH_STAGE;
    return flags | edges;
}

static size_t put_iteration(unsigned char *to, const struct lab_iteration *item,
                            struct course *course) {
    uint64_t times[TIMES] = {(uint64_t)item->start_ns};
    for (int s = 0; s < LAB_STAGE_COUNT; s++) {
        times[1 + 2 * s] = (uint64_t)item->stages[s].start_ns;
        times[2 + 2 * s] = (uint64_t)item->stages[s].end_ns;
    }
    times[TIMES - 1] = (uint64_t)item->end_ns;

    unsigned flags = flags_of(item), written = written_times(flags);
    size_t length = 0;
    to[length++] = (unsigned char)flags;
    for (int i = 0; i < TIMES; i++) {
        if (!(written & (1u << i)))
            continue;
        uint64_t step = times[i] - course->time;
        length += lab_varint_write(to + length, lab_zigzag(step - course->steps[i]));
        course->steps[i] = step;
        course->time = times[i];
    }
    return length;
}

void lab_iterations_pack(const struct lab_iteration *items, size_t count, struct lab_str *out) {
    unsigned char bytes[ITERATION_MAX_BYTES] = {VERSION};
    struct course course = {.time = count ? (uint64_t)items[0].start_ns : 0};
    size_t length = 1 + lab_varint_write(bytes + 1, count);
    length += lab_varint_write(bytes + length, lab_zigzag(course.time));
    lab_str_add_bytes(out, (const char *)bytes, length);
    for (size_t i = 0; i < count; i++) {
        length = put_iteration(bytes, &items[i], &course);
        lab_str_add_bytes(out, (const char *)bytes, length);
    }
}

/* --- unpacking --- */

static bool take_iteration(struct lab_packed *packed, struct course *course,
                           struct lab_iteration *item) {
    if (packed->at == packed->end)
        return false;
    unsigned flags = *packed->at++;
    if (flags > ALL_FLAGS || (flags && !(flags & STAGE_FLAGS)))
        return false;
    uint64_t times[TIMES] = {0};
    unsigned written = written_times(flags);
    for (int i = 0; i < TIMES; i++) {
        uint64_t change;
        if (!(written & (1u << i)))
            continue;
        if (!lab_varint_take(packed, &change))
            return false;
        course->steps[i] += lab_unzigzag(change);
        course->time += course->steps[i];
        times[i] = course->time;
    }
    for (int s = 0; s < LAB_STAGE_COUNT; s++)
        item->stages[s] = (struct lab_span){(int64_t)times[1 + 2 * s], (int64_t)times[2 + 2 * s]};
    item->start_ns =
        flags & STARTS_WITH_STAGE ? item->stages[first_stage(flags)].start_ns : (int64_t)times[0];
    item->end_ns = flags & ENDS_WITH_STAGE ? item->stages[last_stage(flags)].end_ns
                                           : (int64_t)times[TIMES - 1];
    return true;
}

/* The count is believed only as far as the bytes behind it reach: memory is bounded by the
 * input. */
static int take_count(struct lab_packed *packed, size_t max_count, size_t *ret_count,
                      struct lab_err *err) {
    uint64_t count;
    if (packed->at == packed->end)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: empty");
    if (*packed->at != VERSION)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: version %d, known is %d",
                           *packed->at, VERSION);
    packed->at++;
    if (!lab_varint_take(packed, &count))
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: invalid count");
    if (count > max_count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: %llu, at most %zu may be here",
                           (unsigned long long)count, max_count);
    size_t left = (size_t)(packed->end - packed->at);
    if (count > left / ITERATION_MIN_BYTES)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "packed iterations: cut off, %llu can't be in %zu bytes",
                           (unsigned long long)count, left);
    *ret_count = (size_t)count;
    return 0;
}

int lab_iterations_unpack(const void *bytes, size_t length, size_t max_count,
                          struct lab_arena *arena, struct lab_iteration **ret_items,
                          size_t *ret_count, struct lab_err *err) {
    struct lab_packed packed = {.at = bytes};
    packed.end = packed.at + length;
    size_t count = 0;
    uint64_t origin;
    if (take_count(&packed, max_count, &count, err) < 0)
        return -1;
    if (!lab_varint_take(&packed, &origin))
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: invalid first start");

    struct course course = {.time = lab_unzigzag(origin)};
    struct lab_iteration *items = lab_arena_alloc(arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        if (!take_iteration(&packed, &course, &items[i]))
            return lab_err_set(err, LAB_ERR_SYSTEM,
                               "packed iterations: number %zu of %zu is cut off or damaged", i + 1,
                               count);
    if (packed.at != packed.end)
        return lab_err_set(err, LAB_ERR_SYSTEM, "packed iterations: %zu bytes too many after %zu",
                           (size_t)(packed.end - packed.at), count);
    *ret_items = items;
    *ret_count = count;
    return 0;
}

/* --- spans --- */

size_t lab_spans_join(struct lab_span *spans, size_t count) {
    if (count == 0)
        return 0;
    LAB_SORT(spans, count, LAB_BY(spans, start_ns));
    size_t last = 0;
    for (size_t i = 1; i < count; i++) {
        if (spans[i].start_ns > spans[last].end_ns)
            spans[++last] = spans[i];
        else if (spans[i].end_ns > spans[last].end_ns)
            spans[last].end_ns = spans[i].end_ns;
    }
    return last + 1;
}
