/*
 * command/error.c: which line of a program's output says what it died of. The last one does of a
 * program by itself; a launcher of several prints a summary of its own behind it.
 */
#include "workload/command/command.h"

#include <ctype.h>

#define NAME_MOST 120         /* bytes of an exception's name */
#define USAGE     ": error: " /* "train.py: error: unrecognized arguments" */

/* Of "torch.cuda.OutOfMemoryError: CUDA out of memory": the length up to the colon or the end; 0 =
 * no such name. */
static size_t name_length(const char *line, size_t length) {
    size_t end = 0;
    while (end < length && (isalnum((unsigned char)line[end]) || strchr("._", line[end])))
        end++;
    return end > 0 && end <= NAME_MOST && (end == length || line[end] == ':') ? end : 0;
}

static bool ends_with(const char *name, size_t length, const char *ending) {
    size_t most = strlen(ending);
    return length >= most && memcmp(name + length - most, ending, most) == 0;
}

bool command_is_error(const char *line, size_t length) {
    /* of launchers: that some process failed, not why */
    static const char *const summaries[] = {"ChildFailedError", "CalledProcessError",
                                            "SignalException"};
    int rank;
    size_t label = command_rank_label(line, length, &rank);
    line += label;
    length -= label;
    while (length && isspace((unsigned char)*line))
        line++, length--;
    while (length && isspace((unsigned char)line[length - 1]))
        length--;
    size_t name = name_length(line, length);
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++)
        if (ends_with(line, name, summaries[i]))
            return false;
    return ends_with(line, name, "Error") || ends_with(line, name, "Exception") ||
           memmem(line, length, USAGE, strlen(USAGE));
}
