/*
 * log.h: what library code has to say beside its result. It never prints by itself: main installs a
 * sink (the terminal, experiment.log, both). Until then, and below the level, messages cost
 * nothing.
 */
#pragma once

#include <stdbool.h>

enum lab_log_level { LAB_LOG_ERROR, LAB_LOG_WARNING, LAB_LOG_INFO, LAB_LOG_DEBUG };

typedef void lab_log_sink(enum lab_log_level level, const char *text, void *state);

/* Process-wide; set before threads start. NULL = nowhere. `text` comes without a newline. */
void lab_log_set_sink(lab_log_sink *sink, void *state, enum lab_log_level max_level);
bool lab_log_enabled(enum lab_log_level level);

void lab_log(enum lab_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *lab_log_level_name(enum lab_log_level level); /* "error", "warning", "info", "debug" */
int lab_log_level_parse(const char *name, enum lab_log_level *ret_level); /* 0 or -1 */
