/*
 * json.h: JSON in and out of a value tree, through jansson.
 */
#pragma once

#include "base/value.h"

/* What an object of --json means; it rises when a key's meaning changes (docs/COMPATIBILITY.md). */
#define LAB_JSON_SCHEMA 1

/* Reads text; `origin` names it in errors ("file:line: …") and in the values. */
int lab_json_parse(const char *text, size_t length, const char *origin, struct lab_arena *arena,
                   struct lab_value **ret_value, struct lab_err *err);

/* Appends the value as JSON; indent 0 = one line. NaN and infinity, which JSON lacks, become null.
 */
/* Writes on one line, into the arena. */
const char *lab_json_text(const struct lab_value *value, struct lab_arena *arena);
void lab_json_write(const struct lab_value *value, int indent, struct lab_str *out);
