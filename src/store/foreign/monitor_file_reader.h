/*
 * monitor_file_reader.h: a recording from text. Records are cut out of the file one by one, so that
 * a file of a gigabyte needs no more memory than its figures, and a builder puts them together.
 */
#pragma once

#include "store/foreign/monitor_file_internal.h"

#include <math.h>

/* --- cutting records out of a file --- */

enum lab_monitor_part {
    /* an object: an element of the outer list or of a section, or by itself */
    LAB_MONITOR_PART_RECORD,
    LAB_MONITOR_PART_HEADER, /* an object with members that stand around a section */
    LAB_MONITOR_PART_END,
};

struct lab_monitor_scan {
    int fd;
    char *bytes; /* [at, length) hasn't been read yet */
    size_t at, length, capacity;
    size_t anchor;   /* what lies from here on is still needed; SIZE_MAX = nothing before `at` is */
    int64_t offset;  /* of bytes[0] in the file */
    bool at_end;     /* the file has no more */
    int errno_value; /* why it could not be read to its end; 0 = it could */
    /* where it is */
    int depth;           /* 0 outside, 1 in the outer list or object, 2 in a section */
    char closer;         /* of the outer one */
    int indent;          /* blanks before `at` in its line; -1 = something else, too */
    int anchor_indent;   /* likewise before the anchor */
    char section[16];    /* the key of the list that it is in; "" = the outer one */
    bool sectioned;      /* the outer object has shown to be one around sections */
    bool own;            /* and to be our own document */
    bool odd;            /* the value holds NaN or Infinity, which only Python takes for JSON */
    struct lab_str text; /* of a part that had to be changed */
    int64_t again_bytes; /* gone through a second time, after something broken */
    /* what it met */
    bool list;          /* the outermost thing is a list */
    bool cut;           /* the end came before its time */
    int64_t record_end; /* offset behind the last whole record, or behind the list's bracket */
    size_t stray_bytes; /* that belong to no record */
    size_t broken;      /* records that don't end */
};

void lab_monitor_scan_init(struct lab_monitor_scan *scan, int fd);
void lab_monitor_scan_release(struct lab_monitor_scan *scan);

/* How many bytes lie ahead, up to `wanted` if the file has them. */
size_t lab_monitor_scan_fill(struct lab_monitor_scan *scan, size_t wanted);

/* The next part of JSON; its text lives until the next call. NaN and Infinity are null in it. */
enum lab_monitor_part lab_monitor_scan_next(struct lab_monitor_scan *scan, const char **ret_text,
                                            size_t *ret_length);

/* The next line of CSV without its end; lives until the next call. false = there is no whole
 * one. */
bool lab_monitor_scan_line(struct lab_monitor_scan *scan, const char **ret_text,
                           size_t *ret_length);

/* --- building a recording --- */

struct lab_monitor_builder;

#define LAB_MONITOR_ENTITIES 1024 /* no more of them */

struct lab_monitor_builder *lab_monitor_builder_new(struct lab_arena *arena);

/* Something was left out: told once for each text, with how often. The text must last. */
void lab_monitor_builder_odd(struct lab_monitor_builder *builder, const char *text, size_t times);
/* All that was left out: "fields that are not numbers (3), …". */
void lab_monitor_builder_add_odd(const struct lab_monitor_builder *builder, struct lab_str *out);
/* Something else that the user has to know. */
void lab_monitor_builder_note(struct lab_monitor_builder *builder, const char *text);

/* Finds it by kind and id, or by kind and index if there is no id; makes a new one. -1 = too
 * many. */
int lab_monitor_builder_entity(struct lab_monitor_builder *builder, enum lab_entity_kind kind,
                               int index, const char *id);
/* The same without making one; -1 = there is none. */
int lab_monitor_builder_find(const struct lab_monitor_builder *builder, enum lab_entity_kind kind,
                             int index, const char *id);
/* What is known of it besides; texts must come from lab_monitor_builder_text. */
struct lab_entity *lab_monitor_builder_facts(struct lab_monitor_builder *builder, int entity);
const char *lab_monitor_builder_text(struct lab_monitor_builder *builder, const char *text);

/* Relative times count from here. */
void lab_monitor_builder_start(struct lab_monitor_builder *builder, int64_t wall_ns);

/*
 * Begins a tick. A wall clock that goes back by a second or more was set back: a new epoch begins,
 * and the steady time goes on. -1 = that is no time.
 */
int lab_monitor_builder_tick(struct lab_monitor_builder *builder, int entity,
                             enum lab_monitor_time kind, int64_t time_ns);
/* Likewise where the steady time is known; `offset_ns` to the wall clock, INT64_MIN = not known. */
int lab_monitor_builder_tick_at(struct lab_monitor_builder *builder, int entity, int64_t time_ns,
                                int64_t offset_ns);
/* A value of the entity's last tick. */
void lab_monitor_builder_set(struct lab_monitor_builder *builder, int entity,
                             enum lab_metric_id metric, int instance, int64_t value);
int64_t lab_monitor_builder_time(const struct lab_monitor_builder *builder, int entity);
/* Of the tick that came last; false = there is none. */
bool lab_monitor_builder_newest(const struct lab_monitor_builder *builder, int64_t *ret_ns);
/* The wall clock's time at which elapsed times are 0: the first that it is asked with. */
int64_t lab_monitor_builder_origin(struct lab_monitor_builder *builder, int64_t wall_ns);

void lab_monitor_builder_event(struct lab_monitor_builder *builder,
                               const struct lab_sample_event *event);
/* The items must live in the builder's arena. */
void lab_monitor_builder_processes(struct lab_monitor_builder *builder,
                                   const struct lab_process_list *list);
/* Is the last list of that time, to a millisecond? */
bool lab_monitor_builder_has_list(const struct lab_monitor_builder *builder, int64_t time_ns);
/* The list of that time, made unless the last one is; a process of it (NULL = there are too many),
 * and its use of a GPU, likewise. They live until the next call. */
struct lab_process_list *lab_monitor_builder_list(struct lab_monitor_builder *builder,
                                                  int64_t time_ns);
struct lab_process_sample *lab_monitor_builder_process(struct lab_monitor_builder *builder,
                                                       int64_t time_ns, int32_t pid);
struct lab_process_gpu *lab_monitor_builder_process_gpu(struct lab_monitor_builder *builder,
                                                        struct lab_process_sample *process,
                                                        int entity);
void lab_monitor_builder_epoch(struct lab_monitor_builder *builder,
                               const struct lab_recording_epoch *epoch);
struct lab_arena *lab_monitor_builder_arena(struct lab_monitor_builder *builder);

/* Is there any value, or a list of processes? */
bool lab_monitor_builder_has_values(const struct lab_monitor_builder *builder);

/* All that was taken in; lives in the arena. Path, label, maker and interval stay as they are. */
void lab_monitor_builder_finish(struct lab_monitor_builder *builder,
                                struct lab_recording *ret_recording);

/* --- rows: what a line of a table or an object of JSON says of one device --- */

enum { LAB_MONITOR_NO_INDEX = -1, LAB_MONITOR_BAD_INDEX = -2 };

struct lab_monitor_row {
    struct lab_monitor_builder *builder;
    int kind, index;
    const char *id, *name, *pci; /* NULL = not told */
    int node;
    bool simulated;
    enum lab_monitor_time time;
    int64_t time_ns;
    double elapsed_s;         /* NaN = not told */
    const char *date, *clock; /* of tables that have them in columns of their own */
    int32_t pid;              /* 0 = of no process */
    double host_bytes;        /* for shares of memory */
    /* once it has begun */
    int entity;    /* -1 = not yet */
    int gpu;       /* that processes use; -1 = none */
    int64_t at_ns; /* steady */
};

static inline struct lab_monitor_row lab_monitor_row_new(struct lab_monitor_builder *builder,
                                                         int kind) {
    return (struct lab_monitor_row){.builder = builder,
                                    .kind = kind,
                                    .index = LAB_MONITOR_NO_INDEX,
                                    .node = -1,
                                    .elapsed_s = (double)NAN,
                                    .host_bytes = (double)NAN,
                                    .entity = -1,
                                    .gpu = -1};
}

/* Takes note of a field that names device, time or process; of others nothing. */
void lab_monitor_row_know(struct lab_monitor_row *row, const struct lab_monitor_field *field,
                          const struct lab_value *value);
/* Begins the device's tick. -1 = that is no device (`entity` is -1), or no time. */
int lab_monitor_row_begin(struct lab_monitor_row *row);
/* A metric's value, or a process's; other fields change nothing. */
void lab_monitor_row_set(const struct lab_monitor_row *row, const struct lab_monitor_field *field,
                         int instance, const struct lab_value *value);
void lab_monitor_row_process(const struct lab_monitor_row *row,
                             const struct lab_monitor_field *field, const struct lab_value *value);

/* The names of devices and times that all formats have in common. */
extern const struct lab_monitor_field lab_monitor_common[];
const struct lab_monitor_field *lab_monitor_find_field(const struct lab_monitor_field *fields,
                                                       const char *name);

/* --- records of JSON --- */

enum { LAB_MONITOR_MARKS = 2, LAB_MONITOR_LISTS = 3 };

struct lab_monitor_list_format { /* objects of a record that are devices */
    const char *key;             /* NULL = the record is the device */
    enum lab_entity_kind kind;
    const struct lab_monitor_field *fields;         /* NULL = there is no such list */
    const struct lab_monitor_field *process_fields; /* of its list "processes"; NULL = none */
    void (*more)(const struct lab_monitor_row *row, const struct lab_value *object);
};

struct lab_monitor_json {
    const char *name;                     /* for messages; NULL = told already */
    enum lab_monitor_format format;       /* FORMAT_COUNT = one that we don't write */
    const char *time;                     /* its key; NULL = there is no sample in it */
    const char *marks[LAB_MONITOR_MARKS]; /* lists that a record has */
    const char *words[LAB_MONITOR_MARKS]; /* keys that it has */
    struct lab_monitor_list_format lists[LAB_MONITOR_LISTS];
    void (*read)(struct lab_monitor_builder *builder, const struct lab_value *record,
                 enum lab_monitor_time time, int64_t time_ns);
    void (*after)(struct lab_monitor_builder *builder, const struct lab_value *record);
};

extern const struct lab_monitor_json lab_monitor_gpustat, lab_monitor_all_smi,
    lab_monitor_all_smi_frame, lab_monitor_all_smi_index;

/* A finite number; false = it is none. */
bool lab_monitor_number(const struct lab_value *value, double *ret_number);

/* Which format a record belongs to, by its keys; NULL = none. */
const struct lab_monitor_json *lab_monitor_find_json(const struct lab_value *record);
void lab_monitor_add_json_names(struct lab_str *out);

/* Takes in a record of any of the JSON formats but our own; false = it is none of them. */
bool lab_monitor_read_record(struct lab_monitor_builder *builder, const struct lab_value *record);
void lab_monitor_read_system(struct lab_monitor_builder *builder, const struct lab_value *record,
                             enum lab_monitor_time time, int64_t time_ns);
void lab_monitor_take_processes(const struct lab_monitor_row *row,
                                const struct lab_monitor_field *fields,
                                const struct lab_value *list);

/* --- tables --- */

struct lab_monitor_column {
    struct lab_monitor_field field;
    int kind, index; /* whose it is, where a line is about many; kind -1 = the line's */
    int32_t pid;     /* likewise; 0 = of no process */
    bool spare;      /* it gives the same as another that is better */
};

extern const struct lab_monitor_field lab_monitor_smi_query[], lab_monitor_smi_dmon[],
    lab_monitor_smi_pmon[];
/* A column of one clock event reason: "clocks_event_reasons.sw_power_cap". */
bool lab_monitor_smi_reason(const char *name, struct lab_monitor_field *ret_field);
bool lab_monitor_nvitop_column(const char *name, struct lab_monitor_column *ret_column);

/* Reads a table from its header line on, or that line alone; false = it is none that is known. The
 * names of its first columns are added. `ret_mixed`: nothing tells whether its lines are of several
 * devices, or samples of one. */
bool lab_monitor_is_table(struct lab_monitor_scan *scan, struct lab_str *names);
bool lab_monitor_read_table(struct lab_monitor_builder *builder, struct lab_monitor_scan *scan,
                            struct lab_str *names, size_t *ret_lines, bool *ret_mixed);

/* --- our own document --- */

/* Parts of our own document, by section; `of` belongs to the reader. */
struct lab_monitor_own;
struct lab_monitor_own *lab_monitor_own_new(struct lab_monitor_builder *builder);
void lab_monitor_own_free(struct lab_monitor_own *own);
void lab_monitor_own_header(struct lab_monitor_own *own, const struct lab_value *header,
                            struct lab_recording *recording);
void lab_monitor_own_record(struct lab_monitor_own *own, const char *section,
                            const struct lab_value *record);

/* Is what the text begins with one of them? */
bool lab_monitor_is_text(int fd);

/* All formats but SQLite's; the descriptor stays the caller's. */
int lab_monitor_read_text(int fd, const char *path, struct lab_arena *arena,
                          struct lab_recording *ret_recording, struct lab_err *err);
