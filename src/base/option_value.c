/*
 * option_value.c: one row of an option table: what a value has to be, and its way into the struct
 * and back. Everything here judges a single value; tables and command lines are in option.c.
 */
#include "base/option_value.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STRINGIFY(macro)       STRINGIFY_TOKEN(macro)
#define STRINGIFY_TOKEN(token) #token

struct unit {
    const char *name;
    double factor;
};

/* largest first: the first that divides a value without rest is the one to show it in */
static const struct unit time_units[] = {
    {"d", 86400}, {"h", 3600},  {"min", 60},  {"m", 60},    {"s", 1},
    {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}, {NULL},
};

static const struct unit size_units[] = {
    {"PiB", 0x1p50}, {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10},
    {"P", 0x1p50},   {"T", 0x1p40},   {"G", 0x1p30},   {"M", 0x1p20},   {"K", 0x1p10},
    {"PB", 1e15},    {"TB", 1e12},    {"GB", 1e9},     {"MB", 1e6},     {"kB", 1e3},
    {"B", 1},        {NULL},
};

static bool is_whole(double value) {
    return isfinite(value) && value == floor(value) && fabs(value) <= 0x1p53;
}

static void add_quantity(struct lab_str *out, double value, const struct unit *units,
                         const char *plain) {
    const struct unit *unit = units;
    while (unit->name &&
           (value == 0 || fabs(value / unit->factor - round(value / unit->factor)) > 1e-9 ||
            round(value / unit->factor) == 0))
        unit++;
    if (unit->name)
        lab_str_printf(out, "%.0f%s", round(value / unit->factor), unit->name);
    else
        lab_str_printf(out, "%g%s", value, plain);
}

static void add_bound(const struct lab_option *row, double value, struct lab_str *out) {
    if (row->type == LAB_OPTION_DURATION)
        add_quantity(out, value, time_units, "s");
    else if (row->type == LAB_OPTION_SIZE)
        add_quantity(out, value, size_units, "B");
    else
        lab_str_printf(out, is_whole(value) ? "%.0f" : "%g", value);
}

struct bounds {
    double min, max; /* infinite where there is none */
};

static struct bounds bounds_of(const struct lab_option *row) {
    bool never_negative = row->type == LAB_OPTION_DURATION || row->type == LAB_OPTION_SIZE;
    struct bounds bounds = {row->min, row->max};
    if (row->min == 0 && row->max == 0)
        bounds = (struct bounds){-INFINITY, INFINITY};
    else if (row->max < row->min)
        bounds.max = INFINITY;
    if (never_negative && bounds.min < 0)
        bounds.min = 0;
    return bounds;
}

void lab_option_add_range(const struct lab_option *row, struct lab_str *out) {
    struct bounds bounds = bounds_of(row);
    bool low = isfinite(bounds.min), high = isfinite(bounds.max);
    if (low && !high)
        lab_str_add(out, "at least ");
    if (!low && high)
        lab_str_add(out, "at most ");
    if (low)
        add_bound(row, bounds.min, out);
    if (low && high)
        lab_str_add(out, " to ");
    if (high)
        add_bound(row, bounds.max, out);
    bool has_unit = row->type == LAB_OPTION_DURATION || row->type == LAB_OPTION_SIZE;
    if (row->unit && !has_unit)
        lab_str_printf(out, " %s", row->unit);
}

void lab_option_describe(const struct lab_option *row, struct lab_str *out) {
    static const char *const kinds[] = {
        [LAB_OPTION_FLAG] = "true or false",
        [LAB_OPTION_INT] = "a whole number",
        [LAB_OPTION_FLOAT] = "a number",
        [LAB_OPTION_DURATION] = "a time such as 100ms, 5s, 2min or 1h",
        [LAB_OPTION_SIZE] = "a size such as 4096, 64MiB or 1G",
        [LAB_OPTION_STRING] = "text",
        [LAB_OPTION_CHOICE] = "",
        [LAB_OPTION_INTS] = "a list of whole numbers such as [0,2]",
        [LAB_OPTION_VALUE] = "text, a number, a list [a,b] or a map {a: 1}",
    };
    if (row->type == LAB_OPTION_CHOICE) {
        lab_str_add_list(out, row->choices, "or");
        return;
    }
    lab_str_add(out, kinds[row->type]);
    if (row->min == 0 && row->max == 0)
        return;
    lab_str_add(out, row->type == LAB_OPTION_INTS ? ", each " : ", ");
    lab_option_add_range(row, out);
}

const char *lab_option_value_name(const struct lab_option *row) {
    static const char *const names[] = {
        [LAB_OPTION_FLAG] = NULL,       [LAB_OPTION_INT] = "N",      [LAB_OPTION_FLOAT] = "X",
        [LAB_OPTION_DURATION] = "TIME", [LAB_OPTION_SIZE] = "SIZE",  [LAB_OPTION_STRING] = "TEXT",
        [LAB_OPTION_CHOICE] = "CHOICE", [LAB_OPTION_INTS] = "N,...", [LAB_OPTION_VALUE] = "VALUE",
    };
    return row->value_name && row->type != LAB_OPTION_FLAG ? row->value_name : names[row->type];
}

/* How the value looked when it came, cut where it is long. */
static void add_shown(const struct lab_option_source *source, struct lab_str *out) {
    LAB_AUTO(str, text);
    if (source->text)
        lab_str_add(&text, source->text);
    else
        lab_value_write(source->value, &text);
    if (text.length > 60)
        lab_str_printf(out, "%.*s…", (int)lab_str_utf8_prefix(text.text, 57), text.text);
    else
        lab_str_add(out, text.text);
}

/* "file:3: depth=-1: must be …" */
static int refuse(const struct lab_option *row, const struct lab_option_source *source,
                  const char *what, struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_value_add_place(source->value, &text);
    lab_str_printf(&text, "%s%s=", source->dashes ? "--" : "", row->name);
    add_shown(source, &text);
    lab_str_printf(&text, ": %s", what);
    return lab_err_set(err, LAB_ERR_USER, "%s", text.text);
}

static int refuse_kind(const struct lab_option *row, const struct lab_option_source *source,
                       struct lab_err *err) {
    LAB_AUTO(str, what);
    lab_str_add(&what, "must be ");
    lab_option_describe(row, &what);
    refuse(row, source, what.text, err);
    return -1;
}

static int check_range(const struct lab_option *row, const struct lab_option_source *source,
                       double number, struct lab_err *err) {
    struct bounds bounds = bounds_of(row);
    if (number >= bounds.min && number <= bounds.max)
        return 0;
    LAB_AUTO(str, what);
    lab_str_add(&what, row->type == LAB_OPTION_INTS ? "each must be " : "must be ");
    lab_option_add_range(row, &what);
    refuse(row, source, what.text, err);
    return -1;
}

/* A whole number, also where it was written 1e3. */
static bool take_integer(const struct lab_value *value, int64_t *ret_integer) {
    if (value->type == LAB_VALUE_INT)
        *ret_integer = value->integer;
    else if (value->type == LAB_VALUE_FLOAT && is_whole(value->number))
        *ret_integer = (int64_t)value->number;
    else
        return false;
    return true;
}

static bool take_number(const struct lab_value *value, double *ret_number) {
    if (value->type == LAB_VALUE_INT)
        *ret_number = (double)value->integer;
    else if (value->type == LAB_VALUE_FLOAT && !isnan(value->number))
        *ret_number = value->number;
    else
        return false;
    return true;
}

/* "1.5GiB", "1h30min": numbers, each with its unit, added up. */
static bool read_quantity(const char *text, const struct unit *units, double *ret_number) {
    double sum = 0;
    const char *c = text;
    do {
        if ((!isdigit((unsigned char)*c) && *c != '.') || tolower((unsigned char)c[1]) == 'x')
            return false; /* strtod would take hex, inf and nan too */
        char *end;
        double number = strtod(c, &end);
        c = end;
        while (*c == ' ')
            c++;
        size_t length = 0;
        while (c[length] && !isdigit((unsigned char)c[length]) && !strchr(" .+-", c[length]))
            length++;
        const struct unit *unit = units;
        while (unit->name &&
               (strlen(unit->name) != length || strncasecmp(unit->name, c, length) != 0))
            unit++;
        if (!unit->name)
            return false;
        sum += number * unit->factor;
        c += length;
        while (*c == ' ')
            c++;
    } while (*c);
    *ret_number = sum;
    return true;
}

static bool take_quantity(const struct lab_value *value, const struct unit *units,
                          double *ret_number) {
    bool is_text = value->type == LAB_VALUE_STRING;
    if (is_text ? !read_quantity(value->string, units, ret_number)
                : !take_number(value, ret_number))
        return false;
    return isfinite(*ret_number);
}

static bool take_bool(const struct lab_value *value, bool *ret_boolean) {
    static const char *const words[] = {"no", "yes", "off", "on", NULL};
    if (value->type == LAB_VALUE_BOOL) {
        *ret_boolean = value->boolean;
        return true;
    }
    if (value->type == LAB_VALUE_INT && (value->integer == 0 || value->integer == 1)) {
        *ret_boolean = value->integer == 1;
        return true;
    }
    for (int i = 0; value->type == LAB_VALUE_STRING && words[i]; i++)
        if (strcasecmp(value->string, words[i]) == 0) {
            *ret_boolean = i % 2 == 1;
            return true;
        }
    return false;
}

/* A scalar's text: as it was typed where that is known (1_000 stays so), else as it is written. */
static const char *take_text(const struct lab_option_source *source, struct lab_arena *arena) {
    if (source->value->type == LAB_VALUE_STRING)
        return lab_arena_strdup(arena, source->value->string);
    LAB_AUTO(str, text);
    if (source->text)
        lab_str_add(&text, source->text);
    else
        lab_value_write(source->value, &text);
    const char *start = text.text + strspn(text.text, " \t");
    size_t length = strlen(start);
    while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t'))
        length--;
    return lab_arena_strndup(arena, start, length);
}

static int set_choice(const struct lab_option *row, void *field,
                      const struct lab_option_source *source, struct lab_arena *arena,
                      struct lab_err *err) {
    const char *text = take_text(source, arena);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; row->choices[i]; i++)
            if (pass == 0 ? strcmp(row->choices[i], text) == 0
                          : strcasecmp(row->choices[i], text) == 0) {
                *(const char **)field = row->choices[i];
                return 0;
            }
    return refuse_kind(row, source, err);
}

static int set_text(const struct lab_option *row, void *field,
                    const struct lab_option_source *source, struct lab_arena *arena,
                    struct lab_err *err) {
    enum lab_value_type type = source->value->type;
    if (type == LAB_VALUE_LIST || type == LAB_VALUE_MAP)
        return refuse(row, source, "must be text; put it in quotes if it is", err);
    if (type == LAB_VALUE_NULL) {
        *(const char **)field = NULL;
        return 0;
    }
    if (row->type == LAB_OPTION_CHOICE)
        return set_choice(row, field, source, arena, err);
    *(const char **)field = take_text(source, arena);
    return 0;
}

static int set_ints(const struct lab_option *row, void *field,
                    const struct lab_option_source *source, struct lab_err *err) {
    const struct lab_value *value = source->value;
    struct lab_option_ints ints = {.count = 1};
    if (value->type == LAB_VALUE_LIST) {
        if (value->count > LAB_OPTION_INTS_MAX)
            return refuse(row, source, "must be at most " STRINGIFY(LAB_OPTION_INTS_MAX) " numbers",
                          err);
        ints.count = value->count;
        for (int i = 0; i < ints.count; i++)
            if (!take_integer(value->items[i], &ints.items[i]))
                return refuse_kind(row, source, err);
    } else if (!take_integer(value, &ints.items[0])) {
        return refuse_kind(row, source, err);
    }
    for (int i = 0; i < ints.count; i++)
        if (check_range(row, source, (double)ints.items[i], err) < 0)
            return -1;
    *(struct lab_option_ints *)field = ints;
    return 0;
}

/* A tree may come from a file that goes before the config does. */
static void set_tree(void *field, const struct lab_value *value, struct lab_arena *arena) {
    *(struct lab_value **)field =
        value->type == LAB_VALUE_NULL ? NULL : lab_value_copy(arena, value);
}

static int set_size(const struct lab_option *row, void *field,
                    const struct lab_option_source *source, struct lab_err *err) {
    double bytes;
    if (!take_quantity(source->value, size_units, &bytes))
        return refuse_kind(row, source, err);
    if (fabs(bytes - round(bytes)) > 1e-6)
        return refuse(row, source, "is not a whole number of bytes", err);
    if (bytes < 0 || bytes >= 0x1p63)
        return refuse_kind(row, source, err);
    if (check_range(row, source, bytes, err) < 0)
        return -1;
    bool exact = source->value->type == LAB_VALUE_INT;
    *(int64_t *)field = exact ? source->value->integer : (int64_t)round(bytes);
    return 0;
}

static int set_number(const struct lab_option *row, void *field,
                      const struct lab_option_source *source, struct lab_err *err) {
    int64_t integer = 0;
    double number = 0;
    bool ok;
    if (row->type == LAB_OPTION_INT) {
        ok = take_integer(source->value, &integer);
        number = (double)integer;
    } else if (row->type == LAB_OPTION_FLOAT) {
        ok = take_number(source->value, &number);
    } else {
        ok = take_quantity(source->value, time_units, &number);
    }
    if (!ok)
        return refuse_kind(row, source, err);
    if (check_range(row, source, number, err) < 0)
        return -1;
    if (row->type == LAB_OPTION_INT)
        *(int64_t *)field = integer;
    else
        *(double *)field = number;
    return 0;
}

int lab_option_store(const struct lab_option *row, void *config, struct lab_arena *arena,
                     const struct lab_option_source *source, struct lab_err *err) {
    void *field = (char *)config + row->offset;
    switch (row->type) {
    case LAB_OPTION_FLAG:
        return take_bool(source->value, field) ? 0 : refuse_kind(row, source, err);
    case LAB_OPTION_INT:
    case LAB_OPTION_FLOAT:
    case LAB_OPTION_DURATION:
        return set_number(row, field, source, err);
    case LAB_OPTION_SIZE:
        return set_size(row, field, source, err);
    case LAB_OPTION_STRING:
    case LAB_OPTION_CHOICE:
        return set_text(row, field, source, arena, err);
    case LAB_OPTION_INTS:
        return set_ints(row, field, source, err);
    case LAB_OPTION_VALUE:
        set_tree(field, source->value, arena);
        return 0;
    }
    return -1;
}

struct lab_value *lab_options_value(const struct lab_option *row, const void *config,
                                    struct lab_arena *arena) {
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case LAB_OPTION_FLAG:
        return lab_value_bool(arena, *(const bool *)field);
    case LAB_OPTION_INT:
    case LAB_OPTION_SIZE:
        return lab_value_int(arena, *(const int64_t *)field);
    case LAB_OPTION_FLOAT:
    case LAB_OPTION_DURATION:
        return lab_value_float(arena, *(const double *)field);
    case LAB_OPTION_STRING:
    case LAB_OPTION_CHOICE:
        break;
    case LAB_OPTION_INTS: {
        const struct lab_option_ints *ints = field;
        struct lab_value *list = lab_value_list(arena);
        for (int i = 0; i < ints->count; i++)
            lab_value_append(arena, list, lab_value_int(arena, ints->items[i]));
        return list;
    }
    case LAB_OPTION_VALUE: {
        const struct lab_value *tree = *(struct lab_value *const *)field;
        return tree ? lab_value_copy(arena, tree) : lab_value_null(arena);
    }
    }
    const char *text = *(const char *const *)field;
    return text ? lab_value_string(arena, text) : lab_value_null(arena);
}
