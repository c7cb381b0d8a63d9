/*
 * monitor_file.h: the files that other monitors write and read: JSON of single GPUs, of all GPUs,
 * of an experiment, of the system; CSV with every metric; CSV of PCIe rates. Field for field as
 * docs/FORMATS.md describes them. All of them can be read back, cut off at any byte too.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "doc/stream.h"
#include "model/recording.h"

enum lab_monitor_format {
    LAB_MONITOR_SINGLE, /* [{timestamp, gpu_index, gpu_name, utilization, memory_used, …}, …] */
    LAB_MONITOR_MULTI,  /* [{timestamp, multi_gpu_data[], aggregate_stats{}}, …] */
    LAB_MONITOR_EXPERIMENT, /* {start_time, samples[{timestamp, gpus[]}]} */
    LAB_MONITOR_SYSTEM,     /* {start_time, samples[{timestamp, cpu_percent[], memory{}, …}]} */
    LAB_MONITOR_CSV,        /* a line for each entity and tick: time, id, every metric */
    LAB_MONITOR_PCIE_CSV,   /* timestamp,gpu,pcie_rx_mb,pcie_tx_mb */
    LAB_MONITOR_JSON,       /* everything: entities, ticks, processes, events */
    LAB_MONITOR_FORMAT_COUNT
};

const char *lab_monitor_format_name(enum lab_monitor_format format); /* "pcie-csv" */

/* --- a whole recording --- */

/* `gpu`: of SINGLE, which GPU's; -1 = the first. One that isn't there is LAB_ERR_USER, and so is a
 * format for which the recording holds nothing: no GPU, nothing of the host. */
int lab_monitor_export(const struct lab_recording *recording, enum lab_monitor_format format,
                       int gpu, struct lab_doc_sink *sink, struct lab_err *err);

/*
 * Reads any of them, found out by content, or a recording, or a study. A file that none of them
 * fits is LAB_ERR_USER with what was looked for. Anything that is missing or odd is in `missing`.
 */
int lab_monitor_read(const char *path, struct lab_arena *arena, struct lab_recording *ret_recording,
                     struct lab_err *err);

/* Does the file hold what a monitor saw: a recording, or one of these formats? A study's own files
 * don't, though its database can be read, too. Looks at the beginning only. */
bool lab_monitor_is_file(const char *path);

/* --- as it samples --- */

/*
 * Appends to files in SINGLE and MULTI format, or lines of CSV to a descriptor. Each append takes
 * the same time however long the file is, and leaves valid JSON behind. Existing files of the same
 * format are gone on with; one that was cut off is first cut back to its last whole record, which
 * the log tells; others are refused.
 */
struct lab_monitor_stream;

struct lab_monitor_stream_setup {
    int64_t interval_ns;    /* between ticks; those of one interval make one record of MULTI */
    int64_t wall_offset_ns; /* wall clock = time_ns + this; 0 = as it is now */
    int gpu;                /* of SINGLE, which GPU's; -1 = the first */
    bool without_host;      /* of CSV: lines of GPUs alone */
};

/* "NAME.json" and "NAME_multi_gpu.json"; a name without .json gets it. */
int lab_monitor_stream_files(const char *name, const struct lab_monitor_stream_setup *setup,
                             struct lab_monitor_stream **ret_stream, struct lab_err *err);

/*
 * A header line, then a line for each tick. A reader who goes away ends it quietly. One who is slow
 * is never waited for but by the close: lines that don't fit into a bound of memory are left out,
 * and how many is told by the close. The descriptor stays the caller's.
 */
int lab_monitor_stream_csv(int fd, const struct lab_monitor_stream_setup *setup,
                           struct lab_monitor_stream **ret_stream, struct lab_err *err);

struct lab_sink_samples lab_monitor_stream_sink(struct lab_monitor_stream *stream);

/* Writes what came since. -1 = can't; it may be tried again. */
int lab_monitor_stream_flush(struct lab_monitor_stream *stream, struct lab_err *err);
bool lab_monitor_stream_is_over(const struct lab_monitor_stream *stream); /* its reader is gone */

/* Accepts NULL. -1: something is missing, and what. */
int lab_monitor_stream_close(struct lab_monitor_stream *stream, struct lab_err *err);

/* Writes nothing any more, and leaves no file behind that it made. Accepts NULL. */
void lab_monitor_stream_undo(struct lab_monitor_stream *stream);
