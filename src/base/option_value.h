/*
 * option_value.h: what option.c and the manual share about a single row. Other layers use option.h.
 */
#pragma once

#include "base/option.h"

/* Where a row's new value comes from, for its meaning and for the message if it is refused. */
struct lab_option_source {
    const struct lab_value *value;
    const char *text; /* as it was typed; NULL if it came as a value */
    bool dashes;      /* a command's option: messages say --name */
};

/* Checks the value and writes the row's field; on failure the field is untouched. */
int lab_option_store(const struct lab_option *row, void *config, struct lab_arena *arena,
                     const struct lab_option_source *source, struct lab_err *err);

/* Appends "0 to 512 ms", "at least 1"; nothing where there are no bounds. */
void lab_option_add_range(const struct lab_option *row, struct lab_str *out);
