/* column.c: figures as people read them and as programs are given them. */
#include "doc/column.h"

#include "base/json.h"

#include <math.h>
#include <time.h>

#define CONFIDENCE 0.95
#define LARGE_MIB  (300 * 1024.0) /* more than one GPU has: totals, easier to read in GiB */

struct lab_doc_cell lab_cell_text(const char *text) {
    return (struct lab_doc_cell){.text = text, .value = NAN, .low = NAN, .high = NAN};
}

struct lab_doc_cell lab_cell_figure(double value) {
    return (struct lab_doc_cell){.value = value, .low = NAN, .high = NAN};
}

struct lab_doc_cell lab_cell_exact(int64_t count, int decimals) {
    return (struct lab_doc_cell){.exact = true, .count = count, .decimals = decimals};
}

struct lab_doc_cell lab_cell_flag(bool flag) {
    static struct lab_value values[] = {{.type = LAB_VALUE_BOOL, .boolean = false},
                                        {.type = LAB_VALUE_BOOL, .boolean = true}};
    return (struct lab_doc_cell){.data = &values[flag]};
}

bool lab_unit_is_words(enum lab_unit unit) {
    return unit == LAB_UNIT_TEXT || unit == LAB_UNIT_FIGURE;
}

static void add_date(double unix_s, struct lab_str *out) {
    time_t seconds = (time_t)unix_s;
    struct tm parts;
    char text[32];
    if (localtime_r(&seconds, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts))
        lab_str_add(out, text);
}

/* More than an interval over runs bears would be noise: "412.5", "36870". */
static void add_four_digits(double value, struct lab_str *out) {
    double unit = fabs(value) < 1000 ? 0.1 : pow(10, floor(log10(fabs(value))) - 3);
    lab_str_printf(out, "%.*f", unit < 1 ? 1 : 0, unit < 1 ? value : unit * round(value / unit));
}

void lab_unit_add(double value, enum lab_unit unit, const char *name, struct lab_str *out) {
    switch (unit) {
    case LAB_UNIT_TIME:
        lab_str_add_time(out, value);
        break;
    case LAB_UNIT_SHARE:
        lab_str_printf(out, "%.1f%%", 100 * value);
        break;
    case LAB_UNIT_RATIO:
        lab_str_add_factor(out, value);
        lab_str_add(out, "×");
        break;
    case LAB_UNIT_RATE:
        lab_str_add_si(out, value, "B/s");
        break;
    case LAB_UNIT_SIZE:
        lab_str_add_bytes_binary(out, value);
        break;
    case LAB_UNIT_DURATION:
        lab_str_add_duration(out, value, LAB_DURATION_PRECISE);
        break;
    case LAB_UNIT_PERCENT:
        lab_str_printf(out, "%.1f%%", value);
        break;
    case LAB_UNIT_MEBIBYTES:
        if (value >= LARGE_MIB)
            lab_str_printf(out, "%.1f GiB", value / 1024);
        else
            lab_str_printf(out, "%.1f MiB", value);
        break;
    case LAB_UNIT_WATTS:
        lab_str_printf(out, "%.1f W", value);
        break;
    case LAB_UNIT_JOULES:
        lab_str_add_si(out, value, "J");
        break;
    case LAB_UNIT_CELSIUS:
        lab_str_printf(out, "%.0f °C", value);
        break;
    case LAB_UNIT_PER_SECOND:
        add_four_digits(value, out);
        lab_str_printf(out, " %s", name ? name : LAB_UNIT_SAMPLES);
        break;
    case LAB_UNIT_CHANGE:
        lab_str_add_change(out, value);
        break;
    case LAB_UNIT_DATE:
        add_date(value, out);
        break;
    case LAB_UNIT_NUMBER:
        lab_str_printf(out, "%.4g", value);
        break;
    case LAB_UNIT_COUNT:
    case LAB_UNIT_TEXT:
    case LAB_UNIT_FIGURE:
        lab_str_printf(out, "%.0f", value);
        break;
    }
}

double lab_unit_scaled(double value, enum lab_unit unit) {
    return unit == LAB_UNIT_TIME ? value * 1e3 : unit == LAB_UNIT_RATE ? value / 1e9 : value;
}

/* --- a cell --- */

/* " [+1.1, +5.3]": a change may lie on either side of nothing, so that both ends are said. */
static void add_bounds(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                       struct lab_str *out) {
    if (column->with_interval && !isnan(cell->low) && !isnan(cell->high))
        lab_str_printf(out, " [%+.1f, %+.1f]", 100 * cell->low, 100 * cell->high);
}

/* "25.1 GB/s ± 1.2 %": the farther end's distance; beyond 100 % only that is said. An interval that
 * few values could not make as sure as that has its own confidence behind it. */
void lab_doc_add_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                      bool narrow, struct lab_str *out) {
    if (lab_unit_is_words(column->unit)) {
        lab_str_add(out, cell->text ? cell->text : "");
        return;
    }
    if (isnan(cell->value)) {
        lab_str_add(out, "–");
        return;
    }
    lab_unit_add(cell->value, column->unit, cell->unit, out);
    if (column->unit == LAB_UNIT_CHANGE) {
        add_bounds(cell, column, out);
        return;
    }
    bool sure = cell->confidence >= CONFIDENCE;
    if (!column->with_interval || isnan(cell->low) || isnan(cell->high) || cell->value == 0 ||
        (narrow && !sure))
        return;
    double farther = fmax(cell->value - cell->low, cell->high - cell->value) / fabs(cell->value);
    if (farther > 1)
        lab_str_add(out, " ± > 100%");
    else
        lab_str_printf(out, " ± %.1f%%", 100 * farther);
    if (!sure)
        lab_str_printf(out, " at %.0f%%", 100 * cell->confidence);
}

bool lab_doc_cell_is_shown(const struct lab_doc_cell *cell, const struct lab_doc_column *column) {
    return column->title && (lab_unit_is_words(column->unit) ? !!cell->text : !isnan(cell->value));
}

void lab_doc_add_json(const struct lab_doc_cell *cell, enum lab_unit unit, struct lab_str *out) {
    struct lab_value value = {.type = LAB_VALUE_NULL};
    if (cell->exact) {
        lab_str_add_decimal(out, cell->count, cell->decimals);
        return;
    }
    if (cell->text && lab_unit_is_words(unit))
        value = (struct lab_value){.type = LAB_VALUE_STRING, .string = cell->text};
    else if (isfinite(cell->value))
        value = (struct lab_value){.type = LAB_VALUE_FLOAT,
                                   .number = lab_unit_scaled(cell->value, unit)};
    lab_json_write(cell->data ? cell->data : &value, 0, out);
}

void lab_doc_set_cell(struct lab_arena *arena, struct lab_value *map,
                      const struct lab_doc_cell *cell, const struct lab_doc_column *column) {
    if (!column->key)
        return;
    bool whole = column->unit == LAB_UNIT_COUNT || column->unit == LAB_UNIT_SIZE;
    if (cell->data)
        lab_value_set(arena, map, column->key, cell->data);
    else if (lab_unit_is_words(column->unit))
        lab_value_set_string(arena, map, column->key, cell->text);
    else if (whole && !isnan(cell->value))
        lab_value_set_int(arena, map, column->key, (int64_t)cell->value);
    else
        lab_value_set_float(arena, map, column->key, lab_unit_scaled(cell->value, column->unit));
    if (!column->with_interval || lab_unit_is_words(column->unit))
        return;
    struct lab_value *interval = lab_value_null(arena);
    if (!isnan(cell->low) && !isnan(cell->high)) {
        interval = lab_value_map(arena);
        lab_value_set_float(arena, interval, "low", lab_unit_scaled(cell->low, column->unit));
        lab_value_set_float(arena, interval, "high", lab_unit_scaled(cell->high, column->unit));
        lab_value_set_float(arena, interval, "confidence", cell->confidence);
    }
    lab_value_set(arena, map, lab_arena_printf(arena, "%s_interval", column->key), interval);
}
