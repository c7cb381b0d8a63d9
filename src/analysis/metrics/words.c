/* words.c: figures of settings in words, and the line that runs a program with a setting. */
#include "analysis/metrics/metrics.h"

#include "analysis/analysis_words.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95
#define MIB_OF_GIB 1024.0

/* --- figures --- */

struct lab_doc_cell metrics_cell(const double *values, int count, struct lab_arena *arena) {
    double *kept = lab_arena_alloc(arena, (size_t)count + 1, sizeof *kept), logs = 0;
    size_t n = 0;
    bool positive = true;
    for (int i = 0; i < count; i++) {
        kept[n] = values[i];
        n += isfinite(values[i]);
    }
    for (size_t i = 0; i < n; i++) {
        positive &= kept[i] > 0;
        logs += log(kept[i]) / (double)n;
    }
    double mean = n == 0     ? (double)NAN
                  : n == 1   ? kept[0]
                  : positive ? exp(logs)
                             : lab_stats_mean(kept, n);
    if (n < 2)
        return lab_cell_figure(mean);
    struct lab_interval interval = positive ? lab_stats_log_mean_interval(kept, n, CONFIDENCE)
                                            : lab_stats_mean_interval(kept, n, CONFIDENCE);
    return lab_cell_interval(mean, interval.low, interval.high, CONFIDENCE);
}

/* "0.00897", "74.0k" */
static const char *number(double value, struct lab_arena *arena) {
    if (fabs(value) < 9999.5 || fabs(value) >= 1e15)
        return lab_arena_printf(arena, fabs(value) < 999.5 || fabs(value) > 1e15 ? "%.3g" : "%.0f",
                                value);
    const char *text = lab_words_si(value, "", arena), *space = strchr(text, ' ');
    return space ? lab_arena_printf(arena, "%.*s%s", (int)(space - text), text, space + 1) : text;
}

static const char *figure(double value, enum lab_unit unit, struct lab_arena *arena) {
    switch ((int)unit) {
    case LAB_UNIT_TIME:
        return lab_words_time(value, arena);
    case LAB_UNIT_MEBIBYTES:
        return lab_arena_printf(arena, value >= MIB_OF_GIB ? "%.3g GiB" : "%.3g MiB",
                                value >= MIB_OF_GIB ? value / MIB_OF_GIB : value);
    case LAB_UNIT_JOULES:
        return lab_words_si(value, "J", arena);
    case LAB_UNIT_SHARE:
        return lab_arena_printf(arena, "%.1f%%", 100 * value);
    default:
        return number(value, arena);
    }
}

/* The unit of "505 ms": behind the number. */
static const char *unit_of(const char *text) {
    const char *space = strrchr(text, ' ');
    return space ? space : "";
}

const char *metrics_cell_text(const struct lab_doc_cell *cell, enum lab_unit unit,
                              struct lab_arena *arena) {
    if (!isfinite(cell->value))
        return NULL;
    const char *value = figure(cell->value, unit, arena);
    if (isnan(cell->low) || isnan(cell->high))
        return value;
    const char *low = figure(cell->low, unit, arena), *high = figure(cell->high, unit, arena);
    if (strcmp(low, high) == 0) /* no wider than what is shown */
        return value;
    bool same =
        strcmp(unit_of(low), unit_of(value)) == 0 && strcmp(unit_of(high), unit_of(value)) == 0;
    size_t cut = same ? strlen(unit_of(value)) : 0;
    return lab_arena_printf(arena, "%s [%.*s, %.*s]", value, (int)(strlen(low) - cut), low,
                            (int)(strlen(high) - cut), high);
}

const char *metrics_cell_brief(const struct lab_doc_cell *cell, enum lab_unit unit,
                               struct lab_arena *arena) {
    if (!isfinite(cell->value))
        return NULL;
    const char *value = figure(cell->value, unit, arena);
    double end = fmax(cell->high - cell->value, cell->value - cell->low),
           far = 100 * end / fabs(cell->value);
    if (isfinite(end) && cell->low <= 0) /* a share of what may be 0 says nothing */
        return lab_arena_printf(arena, "%s ±%.2g", value, end);
    if (isfinite(far) && far > 100)
        return lab_arena_printf(arena, "%s ±>100%%", value);
    return isfinite(far) && far >= 0.05
               ? lab_arena_printf(arena, far < 9.95 ? "%s ±%.1f%%" : "%s ±%.0f%%", value, far)
               : value;
}

/* --- the command --- */

static void add_scalar(const struct lab_value *value, struct lab_str *out) {
    if (value->type == LAB_VALUE_STRING)
        lab_str_add_shell(out, value->string);
    else if (value->type == LAB_VALUE_BOOL)
        lab_str_add(out, value->boolean ? "true" : "false");
    else
        lab_str_printf(out, "%.15g", lab_value_as_number(value));
}

/* Fills {words} from the matrix, and {repeat} by the shell; false = there is another. */
static bool fill(const char *text, const struct lab_value *matrix, struct lab_arena *arena,
                 struct lab_str *out) {
    for (; *text; text++) {
        size_t length = *text == '{' ? strcspn(text + 1, "{}") : 0;
        if (*text != '{' || text[1 + length] != '}') {
            lab_str_add_bytes(out, text, 1);
            continue;
        }
        const char *name = lab_arena_strndup(arena, text + 1, length);
        const struct lab_value *value = matrix ? lab_value_get(matrix, name) : NULL;
        if (!value && lab_str_equal(name, "repeat")) {
            lab_str_add(out, METRICS_SEED);
            text += length + 1;
            continue;
        }
        if (!value || value->type == LAB_VALUE_LIST || value->type == LAB_VALUE_MAP ||
            value->type == LAB_VALUE_NULL)
            return false;
        add_scalar(value, out);
        text += length + 1;
    }
    return true;
}

const char *metrics_command(const struct metrics_setting *setting, struct lab_arena *arena) {
    const struct lab_value *options = setting->point.runs[0]->options;
    const struct lab_value *command = lab_value_get(options, "command"),
                           *matrix = lab_value_get(options, "matrix"),
                           *env = lab_value_get(options, "env");
    LAB_AUTO(str, line);
    for (int i = 0; env && env->type == LAB_VALUE_MAP && i < env->count; i++) {
        lab_str_printf(&line, "%s=", env->keys[i]);
        if (env->items[i]->type != LAB_VALUE_STRING)
            add_scalar(env->items[i], &line);
        else if (!fill(env->items[i]->string, matrix, arena, &line))
            return NULL;
        lab_str_add(&line, " ");
    }
    if (!command || command->type != LAB_VALUE_STRING ||
        !fill(command->string, matrix, arena, &line))
        return NULL;
    return lab_arena_strdup(arena, line.text);
}
