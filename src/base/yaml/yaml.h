/*
 * yaml.h: YAML into a value tree, through libyaml. Plain scalars get YAML's core types as Hydra
 * reads them (1e-3 is a number, yes/no/on/off stay strings; so do 007 and 1:30). Anchors, aliases
 * and `<<` work; the nodes that aliases stand for are counted, so that a "YAML bomb" ends in an
 * error instead of memory. A key that is there twice, a second document and bytes that aren't UTF-8
 * are errors with their line.
 */
#pragma once

#include "base/value.h"

struct lab_yaml_limits {
    size_t max_bytes; /* of text */
    int max_nodes;    /* after aliases are followed */
    int max_depth;
};

#define LAB_YAML_LIMITS ((struct lab_yaml_limits){4 << 20, 1000000, 64})

/* Reads one document; `origin` names it in errors and values. An empty document is null. */
int lab_yaml_parse(const char *text, size_t length, const char *origin,
                   struct lab_yaml_limits limits, struct lab_arena *arena,
                   struct lab_value **ret_value, struct lab_err *err);

/* Appends the value as block-style YAML that reads back the same. */
void lab_yaml_write(const struct lab_value *value, struct lab_str *out);
