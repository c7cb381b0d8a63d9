/*
 * command/table.c: values that a program prints as a table, the names once and then a row for each
 * epoch or step, as fastai and YOLO do:
 *
 *   epoch     train_loss  valid_loss  accuracy  time
 *   0         0.523112    0.312345    0.912345  00:12
 *
 * Columns lie between blanks, ',' or '|'. The first one counts, another has a known name.
 */
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <ctype.h>
#include <string.h>

#define COLUMNS_MIN 3
#define COLUMNS_MAX 24
#define NAME_BYTES  48

struct command_table {
    char names[COLUMNS_MAX][NAME_BYTES];
    int count;
};

static bool separates(char c) {
    return c == ' ' || c == '\t' || c == ',' || c == '|' || c == ';';
}

/* The next column: [*place, end); false = there is none. */
static bool next_column(const char *text, size_t length, size_t *place, size_t *ret_end) {
    while (*place < length && separates(text[*place]))
        (*place)++;
    *ret_end = *place;
    while (*ret_end < length && !separates(text[*ret_end]))
        (*ret_end)++;
    return *ret_end > *place;
}

static bool is_name(const char *text, size_t length) {
    if (length >= NAME_BYTES || !isalpha((unsigned char)*text))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_/@.-", text[i]))
            return false;
    return true;
}

bool command_table_head(struct command_table **table, const char *text, size_t length) {
    struct command_table head = {.count = 0};
    bool known = false;
    for (size_t place = 0, end; next_column(text, length, &place, &end); place = end) {
        if (head.count == COLUMNS_MAX || !is_name(text + place, end - place))
            return false;
        char *name = head.names[head.count++];
        for (size_t i = place; i < end; i++)
            name[i - place] = (char)tolower((unsigned char)text[i]);
        bool counts = command_is_epoch(name) || command_is_step(name);
        if (counts != (head.count == 1))
            return false;
        known |= !counts && (command_line_is_candidate(name, end - place) ||
                             command_is_memory(name, end - place));
    }
    if (!known || head.count < COLUMNS_MIN)
        return false;
    if (!*table)
        *table = lab_mem_alloc(1, sizeof **table);
    **table = head;
    return true;
}

/* "0.52", "1/100", "3.51G", "640:"; "00:12" is no value. */
static bool take_cell(const char *name, struct command_draft *draft, const char *text, size_t start,
                      size_t end) {
    struct command_field field = {.name = name, .unit = "", .scale = 1, .of = -1};
    double value, of;
    size_t at = command_number(text, end, start, COMMAND_UNGROUPED, &value);
    if (at == start)
        return false;
    field.number = command_draft_number(draft, start, at, value);
    field.kind = command_is_epoch(name)  ? COMMAND_IS_EPOCH | COMMAND_IS_NAMED
                 : command_is_step(name) ? COMMAND_IS_STEP | COMMAND_IS_NAMED
                                         : COMMAND_IS_VALUE | COMMAND_IS_KNOWN;
    if (at < end && text[at] == ':' && at + 1 < end)
        return true;
    if (at < end && text[at] == '/' &&
        command_number(text, end, at + 1, COMMAND_UNGROUPED, &of) == end) {
        field.of = command_draft_number(draft, at + 1, end, of);
        at = end;
    }
    bool memory =
        at < end && command_memory_suffix(text[at]) > 0 && command_is_memory(name, strlen(name));
    field.unit = memory ? "GiB" : "";
    if (at < end && command_suffix(text[at]) > 0)
        field.scale = memory ? command_memory_suffix(text[at++]) : command_suffix(text[at++]);
    at += at < end && text[at] == ':';
    return at == end && command_draft_add(draft, &field);
}

bool command_table_row(const struct command_table *table, struct command_draft *draft,
                       const char *text, size_t length) {
    size_t place = 0, end;
    if (!next_column(text, length, &place, &end) || !isdigit((unsigned char)text[place]))
        return false;
    command_draft_begin(draft, COMMAND_UNGROUPED);
    draft->lasting = false;
    for (int i = 0; i < table->count; i++, place = end)
        if (!next_column(text, length, &place, &end) ||
            !take_cell(table->names[i], draft, text, place, end))
            return false;
    return text[end - 1] == ':' || !next_column(text, length, &place, &end);
}
