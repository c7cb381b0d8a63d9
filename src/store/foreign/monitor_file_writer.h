/*
 * monitor_file_writer.h: text from ticks. They go by in order of time, from a recording or as they
 * are sampled, and the writer appends a record or a line for each, or for all of one interval.
 */
#pragma once

#include "store/foreign/monitor_file_internal.h"

struct lab_monitor_source { /* an entity that was told */
    bool told;
    struct lab_arena arena; /* of all that follows */
    struct lab_entity entity;
    struct lab_monitor_gpu gpu;
    int64_t held_ns; /* of EXPERIMENT: when it answered last */
    /* its tick in the group that is open */
    bool in_group;
    struct lab_tick tick;
    int64_t *values;
    uint64_t *valid;
};

struct lab_monitor_writer {
    enum lab_monitor_format format; /* all but JSON */
    int gpu;                        /* of SINGLE, its index; -1 = the first that is told */
    int64_t interval_ns;            /* 0 = unknown */
    /* wall clock of a time: of the recording's epochs, or by an offset */
    const struct lab_recording *recording;
    int64_t wall_offset_ns;
    struct lab_str *out;   /* records: "\n{…}", with a comma before all but the first; lines */
    size_t records;        /* so many are in front of the next */
    bool simulated_column; /* of PCIE_CSV: there is one */
    /* the writer's own */
    struct lab_doc_stream rows; /* of CSV and PCIE_CSV */
    struct lab_str field;       /* of a row, while it is made */
    struct lab_arena arena;
    struct lab_monitor_source *sources;
    int source_count;
    int group_count;
    int64_t group_due_ns, group_time_ns;
    bool begun;
    int64_t begin_ns;                           /* the first tick's time, of any entity */
    struct lab_str processes, python_processes; /* the last list, as JSON */
    int64_t processes_ns;
    bool has_processes;
    /* Of EXPERIMENT, whose readers take no null at its beginning: a first pass surveys. */
    struct lab_monitor_survey {
        bool open;                                   /* it is that pass: nothing is written */
        bool shown[LAB_MONITOR_EXPERIMENT_FIELDS];   /* fields that have a value somewhere */
        bool (*seen)[LAB_MONITOR_EXPERIMENT_FIELDS]; /* likewise, by source */
        bool begun, whole;                           /* there is a group; one with every GPU */
        int64_t first_ns; /* of the first with every GPU, or of the first */
    } survey;
    double host_bytes; /* for shares of memory; NaN = not known */
};

void lab_monitor_writer_init(struct lab_monitor_writer *writer, enum lab_monitor_format format,
                             struct lab_str *out);
void lab_monitor_writer_release(struct lab_monitor_writer *writer);

void lab_monitor_writer_entity(struct lab_monitor_writer *writer, int number,
                               const struct lab_entity *entity);
void lab_monitor_writer_tick(struct lab_monitor_writer *writer, const struct lab_tick *tick);
void lab_monitor_writer_event(struct lab_monitor_writer *writer,
                              const struct lab_sample_event *event);
void lab_monitor_writer_processes(struct lab_monitor_writer *writer,
                                  const struct lab_process_list *list);
/* Writes the group that is open. */
void lab_monitor_writer_end(struct lab_monitor_writer *writer);

/* Does this format show such entities? */
bool lab_monitor_format_shows(enum lab_monitor_format format, enum lab_entity_kind kind);

/* The writer's parts; each appends one record or line. */
int64_t lab_monitor_wall_ns(const struct lab_monitor_writer *writer, int64_t time_ns);
void lab_monitor_write_single(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                              const struct lab_tick *tick);
void lab_monitor_write_pcie(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                            const struct lab_tick *tick);
void lab_monitor_write_group(struct lab_monitor_writer *writer);
void lab_monitor_write_system(struct lab_monitor_writer *writer);
void lab_monitor_write_processes(struct lab_monitor_writer *writer,
                                 const struct lab_process_list *list);
/* What stands before the lines. */
void lab_monitor_begin_csv(struct lab_monitor_writer *writer);
void lab_monitor_begin_pcie(struct lab_monitor_writer *writer);
void lab_monitor_write_csv(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                           const struct lab_tick *tick);

/* Goes through a recording in order of time; entities first. Ends early if `pass` returns -1; it is
 * asked after each tick. */
struct lab_monitor_player {
    struct lab_sink_samples sink;
    bool (*wants)(void *state, enum lab_entity_kind kind); /* NULL = all */
    int (*pass)(void *state);
    void *state;
};
int lab_monitor_play(const struct lab_recording *recording,
                     const struct lab_monitor_player *player);

int lab_monitor_export_json(const struct lab_recording *recording, struct lab_doc_sink *sink);
