/* log.c: messages with a level, to the sink that was set. */
#include "base/log.h"

#include "base/str.h"

#include <stdio.h>

#define TEXT_BYTES 1024 /* longer messages are cut; none of ours should be */

static const char *const names[] = {"error", "warning", "info", "debug", NULL};

static struct {
    lab_log_sink *sink;
    void *state;
    enum lab_log_level max_level;
} target;

void lab_log_set_sink(lab_log_sink *sink, void *state, enum lab_log_level max_level) {
    target.sink = sink;
    target.state = state;
    target.max_level = max_level;
}

bool lab_log_enabled(enum lab_log_level level) {
    return target.sink && level <= target.max_level;
}

void lab_log(enum lab_log_level level, const char *format, ...) {
    if (!lab_log_enabled(level))
        return;
    char text[TEXT_BYTES];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    target.sink(level, text, target.state);
}

const char *lab_log_level_name(enum lab_log_level level) {
    return names[level];
}

int lab_log_level_parse(const char *name, enum lab_log_level *ret_level) {
    int found = lab_str_find(name, names);
    if (found >= 0)
        *ret_level = (enum lab_log_level)found;
    return found < 0 ? -1 : 0;
}
