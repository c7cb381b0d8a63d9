/* recording_names.c: entities and columns as a file names them, so that it outlives our numbers. */
#include "store/recording/recording_internal.h"

#include <errno.h>
#include <string.h>

void lab_recording_columns_write(const struct lab_column *columns, int count, struct lab_str *out) {
    for (int i = 0; i < count; i++) {
        lab_str_printf(out, "%s%s", i ? " " : "",
                       lab_metric((enum lab_metric_id)columns[i].metric)->name);
        if (columns[i].instance >= 0)
            lab_str_printf(out, "[%d]", columns[i].instance);
    }
}

/* "core_utilization[3]"; changes the word. */
static struct lab_column read_column(char *word) {
    struct lab_column column = {.metric = -1, .instance = -1};
    char *bracket = strchr(word, '['), *end = NULL;
    if (bracket) {
        errno = 0;
        long instance = strtol(bracket + 1, &end, 10);
        if (errno || end == bracket + 1 || strcmp(end, "]") != 0 || instance < 0 ||
            instance > INT16_MAX)
            return column;
        column.instance = (int16_t)instance;
        *bracket = '\0';
    }
    column.metric = (int16_t)lab_metric_find(word);
    return column;
}

struct lab_column *lab_recording_columns_read(const char *text, struct lab_arena *arena,
                                              int *ret_count) {
    char *copy = lab_arena_strdup(arena, text), *rest = NULL;
    struct lab_column *columns = lab_arena_alloc(arena, LAB_COLUMNS_MAX, sizeof *columns);
    int count = 0;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == LAB_COLUMNS_MAX)
            return NULL;
        columns[count++] = read_column(word);
    }
    *ret_count = count;
    return columns;
}
