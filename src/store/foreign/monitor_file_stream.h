/*
 * monitor_file_stream.h: a JSON list on disk that grows at its end. The file is valid after each
 * append but for the instant of a single write, which puts new records where the closing bracket
 * was and the bracket behind them.
 */
#pragma once

#include "store/foreign/monitor_file_writer.h"

struct lab_monitor_list {
    char *path;
    int fd;
    int64_t end;      /* offset behind the last record */
    bool has_records; /* so that a comma is due before the next */
    bool created;     /* it wasn't there before */
};

/* Makes it, or goes on with one that holds records of that format. */
int lab_monitor_list_open(const char *path, enum lab_monitor_format format,
                          struct lab_monitor_list *ret_list, struct lab_err *err);
void lab_monitor_list_close(struct lab_monitor_list *list); /* accepts a zeroed one */
void lab_monitor_list_undo(
    struct lab_monitor_list *list); /* closes, and leaves no new file behind */

/* All of it or nothing. */
int lab_monitor_list_append(struct lab_monitor_list *list, const char *records, size_t length,
                            struct lab_err *err);
