/* command_fixture.h: what is read of a program's lines, as text. */
#pragma once

#include "workload/command/command.h"

#include "test.h"
#include <math.h>

static struct lab_err err;
static struct lab_str seen;

static inline int set_up(void **state) {
    (void)state;
    lab_str_init(&seen);
    err = LAB_ERR_INIT;
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    lab_str_release(&seen);
    return 0;
}

/* "r1:loss=3.21@120": of rank 1, at step 120; "@e0.5": at epoch 0.5. */
static inline void note(void *state, const struct command_value *value) {
    (void)state;
    if (value->rank >= 0)
        lab_str_printf(&seen, "%sr%d:", seen.length ? " " : "", value->rank);
    lab_str_printf(&seen, "%s%s=%.10g%s", seen.length && value->rank < 0 ? " " : "", value->name,
                   value->value, value->unit);
    if (!isnan(value->step))
        lab_str_printf(&seen, "@%s%.10g", value->by_epoch ? "e" : "", value->step);
}

static inline void read_line(const struct command_reader *reader, const char *line) {
    struct command_reading reading = {0};
    command_reader_line(reader, &reading, line, strlen(line), note, NULL);
    command_reading_release(&reading);
}

static inline struct command_reader *reader_of(const char *metrics) {
    struct lab_value *value;
    struct command_reader *reader = NULL;
    if (lab_value_parse(metrics, &test_arena, &value, &err) == 0)
        command_reader_make(value, &test_arena, &reader, &err);
    return reader;
}

#define END "<end>"

/* A line and what is read of it, in order; END = the program ends, NULL = another begins. */
static inline void assert_reads(const char *const cases[][2], size_t count) {
    const struct command_reader *reader = reader_of("{}");
    struct command_reading reading = {0};
    for (size_t i = 0; i < count; i++) {
        const char *line = cases[i][0];
        lab_str_clear(&seen);
        if (!line) {
            command_reading_release(&reading);
            continue;
        }
        if (strcmp(line, END) == 0)
            command_reading_end(&reading, note, NULL);
        else
            command_reader_line(reader, &reading, line, strlen(line), note, NULL);
        if (strcmp(seen.text, cases[i][1]) != 0)
            fail_msg("%s: %s, not %s", line, seen.text, cases[i][1]);
    }
    command_reading_release(&reading);
}
