/*
 * fuzz_metrics.c: a program may print anything, and its user may write any pattern. The first line
 * of the input is the pattern, the rest what is printed. No figure without a name that was asked
 * for.
 * covers: src/workload/command
 */
#include "workload/command/command.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
    struct command_reader *reader;
    struct command_suggestions *suggestions;
};

static void on_figure(void *state, const struct command_value *value) {
    int *count = state;
    if (!*value->name || ++*count > COMMAND_LINE_MAX || value->rank < -1 ||
        value->rank >= COMMAND_RANKS_MAX)
        abort();
}

static void on_line(void *state, const char *text, size_t length) {
    const struct program *program = state;
    int count = 0;
    static struct command_reading reading; /* of all programs: any state will do */
    if (length == 0 || length > COMMAND_LINE_MAX)
        abort();
    command_reader_line(program->reader, &reading, text, length, on_figure, &count);
    command_suggestions_add(program->suggestions, text, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *metrics = lab_value_map(&arena);
    lab_value_set_string(&arena, metrics, "patterns",
                         lab_arena_strndup(&arena, (const char *)data, length));
    struct command_reader *reader;
    if (command_reader_make(metrics, &arena, &reader, &err) < 0) {
        if (err.code != LAB_ERR_USER || !err.text[0])
            abort();
    } else if (end) {
        struct command_lines lines = {0};
        struct program program = {reader, command_suggestions_make(&arena)};
        const char *text = (const char *)end + 1;
        size_t left = size - length - 1, first = left / 2; /* in two pieces */
        command_lines_add(&lines, text, first, on_line, &program);
        command_lines_look(&lines, on_line, &program);
        command_lines_add(&lines, text + first, left - first, on_line, &program);
        command_lines_end(&lines, on_line, &program);
        command_suggestions_text(program.suggestions, &arena);
    }
    return 0;
}
