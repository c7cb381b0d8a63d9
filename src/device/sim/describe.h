/*
 * describe.h: maps of a description into structs, by tables of options. A row without a default
 * must be given; a row of type LAB_OPTION_VALUE is a key that somebody else reads, listed so that a
 * mistyped one is suggested. Errors are LAB_ERR_USER and begin with "file:line: ".
 */
#pragma once

#include "device/sim/sim.h"

/* A map below a key, with a table of its own; a list of them ends with a NULL key. */
struct sim_nested {
    const char *key;
    const struct lab_option *table;
    size_t offset;
};

struct sim_reader {
    struct lab_arena *arena;
    struct sim_machine *machine;
    struct sim_model *models;
    int model_count;
    struct lab_err *err;
};

int sim_need(const struct sim_reader *reader, const struct lab_value *value, const char *what,
             enum lab_value_type type);

/* Fills `target` from a map: defaults first, then what is given. `nested` may be NULL. */
int sim_read_map(const struct sim_reader *reader, const struct lab_value *map, const char *what,
                 const struct lab_option *table, const struct sim_nested *nested, void *target);

/* The list under a key; it must be there and hold 1 to `most` elements. NULL = refused. */
const struct lab_value *sim_read_list(const struct sim_reader *reader, const struct lab_value *tree,
                                      const char *key, int most);
