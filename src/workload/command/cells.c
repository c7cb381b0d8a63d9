/*
 * command/cells.c: values that a program prints as a table of names and values under sections, as
 * Stable-Baselines3 does:
 *
 *   ----------------------------------
 *   | rollout/            |          |
 *   |    ep_rew_mean      | 21.3     |
 *   | time/               |          |
 *   |    total_timesteps  | 2048     |
 *   ----------------------------------
 *
 * The step is one of its rows, behind others: values wait for the table's end. Other loggers of the
 * kind (OpenAI's, Spinning Up's) have no sections: a table of theirs begins with a line of dashes,
 * and has a row that counts.
 */
#include "workload/command/form.h"

#include <math.h>
#include <string.h>

#define ROWS_MAX   64
#define RULE_LEAST 10
#define NAME_BYTES 96

struct command_cells {
    size_t section; /* bytes of the section's name, in `name` */
    char name[NAME_BYTES];
    struct {
        char name[NAME_BYTES];
        double value;
    } rows[ROWS_MAX];
    int count;
    bool sections;
    double step, epoch; /* NaN = no row is one */
};

struct cell {
    const char *text;
    size_t length;
};

static struct cell trimmed(const char *text, const char *end) {
    while (text < end && *text == ' ')
        text++;
    while (end > text && end[-1] == ' ')
        end--;
    return (struct cell){text, (size_t)(end - text)};
}

/* "| name | value |": two cells, no more. */
static bool cut_row(const char *text, size_t length, struct cell *name, struct cell *value) {
    struct cell row = trimmed(text, text + length);
    if (row.length < 5 || *row.text != '|' || row.text[row.length - 1] != '|')
        return false;
    const char *start = row.text + 1, *end = row.text + row.length - 1;
    const char *middle = memchr(start, '|', (size_t)(end - start));
    if (!middle || memchr(middle + 1, '|', (size_t)(end - middle - 1)))
        return false;
    *name = trimmed(start, middle);
    *value = trimmed(middle + 1, end);
    return name->length > 0 && name->length < NAME_BYTES / 2;
}

/* "------------" */
static bool is_rule(const char *text, size_t length) {
    size_t dashes = 0;
    while (dashes < length && text[dashes] == '-')
        dashes++;
    return dashes >= RULE_LEAST && dashes == length;
}

static void add_row(struct command_cells *cells, const struct cell *name, double value) {
    char key[NAME_BYTES];
    memcpy(key, name->text, name->length);
    key[name->length] = '\0';
    if (command_is_step(key)) {
        bool best = strcmp(key, "total_timesteps") == 0; /* before "iterations" and "episodes" */
        cells->step = best || isnan(cells->step) ? value : cells->step;
    } else if (command_is_epoch(key)) {
        cells->epoch = value;
    } else if (cells->count < ROWS_MAX) {
        char *full = cells->rows[cells->count].name;
        memcpy(full, cells->name, cells->section);
        memcpy(full + cells->section, key, name->length + 1);
        cells->rows[cells->count++].value = value;
    }
}

static void end_table(struct command_reading *reading, command_found *found, void *state) {
    struct command_cells *cells = reading->cells;
    bool by_epoch;
    reading->rank = -1;
    struct command_progress *progress = command_reading_of(reading, -1);
    if (!isnan(cells->step)) {
        progress->has_step = true;
        progress->step = cells->step;
    }
    if (!isnan(cells->epoch)) {
        progress->has_given = true;
        progress->given = cells->epoch;
    }
    double step = command_progress_step(progress, &by_epoch);
    bool counts = cells->sections || !isnan(cells->step) || !isnan(cells->epoch);
    for (int i = 0; i < cells->count && counts; i++)
        found(state,
              &(struct command_value){command_names_spell(&reading->names, cells->rows[i].name), "",
                                      cells->rows[i].value, step, -1, by_epoch});
    lab_mem_free(cells);
    reading->cells = NULL;
}

bool command_cells_line(struct command_reading *reading, const char *text, size_t length,
                        command_found *found, void *state) {
    struct cell name, value;
    double number;
    bool row = cut_row(text, length, &name, &value),
         section = row && value.length == 0 && name.text[name.length - 1] == '/';
    bool ruled = reading->ruled && row && value.length > 0;
    reading->ruled = is_rule(text, length);
    if (!row || (!section && !reading->cells && !ruled)) {
        if (reading->cells)
            end_table(reading, found, state);
        return false;
    }
    if (!reading->cells) {
        reading->cells = lab_mem_alloc(1, sizeof *reading->cells);
        reading->cells->step = reading->cells->epoch = NAN;
    }
    reading->cells->sections |= section;
    if (section) {
        memcpy(reading->cells->name, name.text, name.length);
        reading->cells->section = name.length;
    } else if (value.length > 0 && command_number(value.text, value.length, 0, COMMAND_UNGROUPED,
                                                  &number) == value.length) {
        add_row(reading->cells, &name, number);
    }
    return true;
}
