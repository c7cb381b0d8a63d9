/*
 * monitor_file_writer.c: who was told, and which ticks belong together. GPUs are read by a thread
 * each, so that ticks of one interval come at slightly different times and in any order; a record
 * of all GPUs takes those that are less than three quarters of an interval apart, and at most one
 * of each. It is written as soon as all are in it. While a GPU is away it waits for the next
 * interval to begin: the GPU might come back, and two records of one interval would both be wrong.
 */
#include "store/foreign/monitor_file_writer.h"

#include <math.h>
#include <string.h>

void lab_monitor_writer_init(struct lab_monitor_writer *writer, enum lab_monitor_format format,
                             struct lab_str *out) {
    *writer =
        (struct lab_monitor_writer){.format = format, .gpu = -1, .out = out, .host_bytes = NAN};
    lab_str_init(&writer->processes);
    lab_str_init(&writer->python_processes);
    lab_str_init(&writer->field);
    lab_arena_init(&writer->arena);
}

static void release_source(struct lab_monitor_source *source) {
    lab_arena_release(&source->arena);
    *source = (struct lab_monitor_source){0};
}

void lab_monitor_writer_release(struct lab_monitor_writer *writer) {
    for (int i = 0; i < writer->source_count; i++)
        release_source(&writer->sources[i]);
    lab_mem_free(writer->sources);
    lab_str_release(&writer->processes);
    lab_str_release(&writer->python_processes);
    lab_str_release(&writer->field);
    lab_arena_release(&writer->arena);
}

bool lab_monitor_format_shows(enum lab_monitor_format format, enum lab_entity_kind kind) {
    switch (format) {
    case LAB_MONITOR_SINGLE:
    case LAB_MONITOR_MULTI:
    case LAB_MONITOR_EXPERIMENT:
    case LAB_MONITOR_PCIE_CSV:
        return kind == LAB_ENTITY_GPU;
    case LAB_MONITOR_SYSTEM:
        return kind == LAB_ENTITY_CPU || kind == LAB_ENTITY_MEMORY || kind == LAB_ENTITY_NUMA;
    default:
        return true;
    }
}

int64_t lab_monitor_wall_ns(const struct lab_monitor_writer *writer, int64_t time_ns) {
    return writer->recording ? lab_recording_wall_ns(writer->recording, time_ns)
                             : time_ns + writer->wall_offset_ns;
}

/* --- entities --- */

static struct lab_monitor_source *find_source(struct lab_monitor_writer *writer, int number) {
    if (number < 0 || number >= writer->source_count || !writer->sources[number].told)
        return NULL;
    return &writer->sources[number];
}

void lab_monitor_writer_entity(struct lab_monitor_writer *writer, int number,
                               const struct lab_entity *entity) {
    if (!lab_monitor_format_shows(writer->format, entity->kind))
        return;
    while (writer->source_count <= number) {
        LAB_PUSH(writer->sources, writer->source_count) = (struct lab_monitor_source){0};
    }
    struct lab_monitor_source *source = &writer->sources[number];
    if (source->in_group)
        lab_monitor_writer_end(writer);
    release_source(source);
    source->told = true;
    source->entity = lab_entity_copy(entity, &source->arena);
    size_t count = (size_t)entity->column_count;
    source->values = lab_arena_alloc(&source->arena, count + 1, sizeof *source->values);
    source->valid =
        lab_arena_alloc(&source->arena, LAB_VALID_WORDS(count) + 1, sizeof *source->valid);
    lab_monitor_gpu_init(&source->gpu);
    if (writer->format == LAB_MONITOR_SINGLE && writer->gpu < 0)
        writer->gpu = entity->index;
}

/* --- groups --- */

void lab_monitor_writer_end(struct lab_monitor_writer *writer) {
    if (writer->group_count == 0)
        return;
    if (writer->format == LAB_MONITOR_SYSTEM)
        lab_monitor_write_system(writer);
    else
        lab_monitor_write_group(writer);
    for (int i = 0; i < writer->source_count; i++)
        writer->sources[i].in_group = false;
    writer->group_count = 0;
}

static int told_count(const struct lab_monitor_writer *writer) {
    int count = 0;
    for (int i = 0; i < writer->source_count; i++)
        count += writer->sources[i].told;
    return count;
}

static void join_group(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                       const struct lab_tick *tick) {
    int64_t due_ns = tick->time_ns - (tick->late_ns > 0 ? tick->late_ns : 0);
    int64_t reach_ns = writer->interval_ns > 0 ? writer->interval_ns / 4 * 3 : INT64_MAX;
    if (writer->group_count && (source->in_group || due_ns - writer->group_due_ns >= reach_ns))
        lab_monitor_writer_end(writer);
    if (writer->group_count == 0)
        writer->group_due_ns = due_ns;
    if (writer->group_count == 0 || tick->time_ns < writer->group_time_ns)
        writer->group_time_ns = tick->time_ns;
    int columns = source->entity.column_count;
    memcpy(source->values, tick->values, (size_t)columns * sizeof *source->values);
    memcpy(source->valid, tick->valid, LAB_VALID_WORDS((size_t)columns) * sizeof *source->valid);
    source->tick = *tick;
    source->tick.values = source->values;
    source->tick.valid = source->valid;
    source->in_group = true;
    if (++writer->group_count >= told_count(writer))
        lab_monitor_writer_end(writer);
}

/* --- what comes --- */

static bool says_nothing(const struct lab_monitor_source *source, const struct lab_tick *tick) {
    for (int i = 0; i < LAB_VALID_WORDS(source->entity.column_count); i++)
        if (tick->valid[i])
            return false;
    return true;
}

void lab_monitor_writer_tick(struct lab_monitor_writer *writer, const struct lab_tick *tick) {
    if (!writer->begun)
        writer->begin_ns = tick->time_ns;
    writer->begun = true;
    struct lab_monitor_source *source = find_source(writer, tick->entity);
    if (!source || says_nothing(source, tick))
        return;
    switch (writer->format) {
    case LAB_MONITOR_SINGLE:
        if (source->entity.index == writer->gpu)
            lab_monitor_write_single(writer, source, tick);
        break;
    case LAB_MONITOR_PCIE_CSV:
        lab_monitor_write_pcie(writer, source, tick);
        break;
    case LAB_MONITOR_CSV:
        lab_monitor_write_csv(writer, source, tick);
        break;
    default:
        join_group(writer, source, tick);
    }
}

void lab_monitor_writer_event(struct lab_monitor_writer *writer,
                              const struct lab_sample_event *event) {
    if (event->kind == LAB_EVENT_CLOCK)
        writer->wall_offset_ns += event->number;
}

void lab_monitor_writer_processes(struct lab_monitor_writer *writer,
                                  const struct lab_process_list *list) {
    if (writer->format == LAB_MONITOR_SYSTEM)
        lab_monitor_write_processes(writer, list);
}
