/* yaml_scalar.h: what a YAML scalar stands for; shared by yaml.c and yaml_write.c alone. */
#pragma once

#include "base/value.h"

/* An unquoted scalar: null, a constant, a number, or else text. -1 and the problem for a number
 * that is too large. */
int lab_yaml_read_plain(const char *text, struct lab_arena *arena, struct lab_value **ret_value,
                        struct lab_str *problem);

/* A scalar with an explicit tag such as !!str. */
int lab_yaml_read_tagged(const char *text, const char *tag, struct lab_arena *arena,
                         struct lab_value **ret_value, struct lab_str *problem);

/* Whether unquoted text would be read as text. */
bool lab_yaml_is_text(const char *text);
