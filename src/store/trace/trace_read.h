/*
 * trace_read.h: traces in Nsight Systems' SQLite layout, ours and Nsight's own of 2022 to 2026, as
 * records. Tables and columns are asked for before they are read, since the layout changes from
 * version to version: what isn't there is 0 or NULL in the records.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/trace.h"

struct lab_trace_file {
    struct lab_trace *traces; /* one for each process that used a device */
    int trace_count;          /* 0 = none did */
    const char *missing;      /* tables that it lacks, as a list of words; NULL = none */
};

/*
 * Reads the whole file into the arena. A file that ends in .nsys-rep or .qdrep is turned into a
 * database first, by `nsys export`, in a folder of its own that is gone afterwards; without nsys
 * that is LAB_ERR_USER and says how to get it. What is no trace is LAB_ERR_USER, too.
 */
int lab_trace_read(const char *path, struct lab_arena *arena, struct lab_trace_file *ret_file,
                   struct lab_err *err);
