/* tracker.c: trackers by name, and what they share: names, numbers, samples as values. */
#include "track/tracker.h"

#include "base/json.h"

#include "base/clock.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lab_track_out_init(struct lab_track_out *out) {
    *out = (struct lab_track_out){0};
    lab_str_init(&out->bytes);
    lab_str_init(&out->part);
}

void lab_track_out_release(struct lab_track_out *out) {
    lab_str_release(&out->bytes);
    lab_str_release(&out->part);
}

/* --- by name --- */

const char *const lab_tracker_names[] = {"mlflow", "tensorboard", "trackio", "wandb", NULL};

const struct lab_tracker *lab_tracker_find(const char *name, struct lab_err *err) {
    const char *names[32] = {0};
    for (int i = 0; lab_trackers[i]; i++) {
        if (lab_str_equal(lab_trackers[i]->name, name))
            return lab_trackers[i];
        names[i] = lab_trackers[i]->name;
    }
    LAB_AUTO(str, list);
    const char *nearest = lab_str_nearest(name, names);
    lab_str_add_list(&list, names, "and");
    if (nearest)
        lab_err_set(err, LAB_ERR_USER, "no tracker '%.60s'; did you mean '%s'?", name, nearest);
    else
        lab_err_set(err, LAB_ERR_USER, "no tracker '%.60s'; there are %s", name, list.text);
    return NULL;
}

int lab_tracker_list(const char *names, struct lab_arena *arena,
                     const struct lab_tracker *const **ret_trackers, struct lab_err *err) {
    const struct lab_tracker **all = NULL;
    int count = 0;
    char *rest = NULL, *text = lab_arena_strdup(arena, names ? names : "");
    for (char *name = strtok_r(text, "[], ", &rest); name; name = strtok_r(NULL, "[], ", &rest)) {
        if (lab_str_equal(name, "none"))
            continue;
        const struct lab_tracker *tracker = lab_tracker_find(name, err);
        bool known = false;
        if (!tracker)
            return -1;
        for (int i = 0; i < count; i++)
            known |= all[i] == tracker;
        if (!known)
            LAB_ADD(all, count, arena) = tracker;
    }
    *ret_trackers = all ? all : lab_arena_alloc(arena, 1, sizeof *all);
    return 0;
}

const char *lab_tracker_view(const struct lab_tracker *tracker, const char *folder,
                             struct lab_arena *arena) {
    const char *view = tracker->view, *mark = strstr(view, "%s");
    const char *other = tracker->variable ? getenv(tracker->variable) : NULL;
    LAB_AUTO(str, path);
    lab_str_add_shell(&path, other && *other ? other : folder);
    return mark ? lab_arena_printf(arena, "%.*s%s%s", (int)(mark - view), view, path.text, mark + 2)
                : view;
}

/* --- texts --- */

void lab_track_add_number(struct lab_str *out, double value, bool quoted) {
    const char *quote = quoted ? "\"" : "";
    if (isfinite(value) && value == trunc(value) && fabs(value) < 0x1p53)
        lab_str_add_decimal(out, (int64_t)value, 0);
    else if (isfinite(value))
        lab_str_add_double(out, value);
    else
        lab_str_printf(out, "%s%s%s", quote,
                       isnan(value) ? "NaN"
                       : value > 0  ? "Infinity"
                                    : "-Infinity",
                       quote);
}

void lab_track_add_text(struct lab_str *out, const char *text) {
    size_t plain = 0;
    while ((unsigned char)text[plain] >= ' ' && (unsigned char)text[plain] < 127 &&
           text[plain] != '"' && text[plain] != '\\')
        plain++;
    if (!text[plain]) { /* mostly */
        lab_str_add_bytes(out, "\"", 1);
        lab_str_add_bytes(out, text, plain);
        lab_str_add_bytes(out, "\"", 1);
        return;
    }
    LAB_AUTO(arena, arena);
    size_t length = strlen(text), valid = lab_str_utf8_prefix(text, length);
    char *copy = lab_arena_strdup(&arena, text);
    for (; valid < length; valid += lab_str_utf8_prefix(copy + valid, length - valid))
        copy[valid] = '?';
    lab_json_write(lab_value_string(&arena, copy), 0, out);
}

#define NAME_MOST   96
#define HASH_LENGTH 9

const char *lab_track_safe_name(const char *name, bool wide, struct lab_arena *arena) {
    LAB_AUTO(str, safe);
    size_t length = strlen(name), cut = 0;
    for (size_t i = 0, step; i < length && safe.length <= NAME_MOST; i += step) {
        bool printable;
        if (safe.length <= NAME_MOST - HASH_LENGTH)
            cut = safe.length;
        step = lab_str_next(name + i, length - i, &printable);
        bool plain = step == 1 && (strchr("._-", name[i]) || (name[i] >= '0' && name[i] <= '9') ||
                                   ((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z'));
        if (plain || (wide && step > 1 && printable))
            lab_str_add_bytes(&safe, name + i, step);
        else if (safe.length && safe.text[safe.length - 1] != '-')
            lab_str_add(&safe, "-");
    }
    while (safe.length && safe.text[safe.length - 1] == '-')
        safe.text[--safe.length] = '\0';
    if (safe.length > NAME_MOST) /* two that differ behind it stay two */
        return lab_arena_printf(arena, "%.*s-%08x", (int)cut, safe.text,
                                (unsigned)lab_hash_text(LAB_HASH_START, name));
    if (strspn(safe.text, ".") == safe.length) /* "", "..": no name of a file */
        return "unnamed";
    return lab_arena_strdup(arena, safe.text);
}

/* --- samples --- */

struct values {
    struct lab_track_value *items;
    int count;
    struct lab_arena *arena;
};

static void add_value(struct values *values, double value, const char *key) {
    if (!isnan(value))
        values->items[values->count++] =
            (struct lab_track_value){lab_arena_strdup(values->arena, key), value};
}

static void add_gpu_value(struct values *values, double value, const char *format, int index) {
    char key[96], number[16];
    const char *mark = strstr(format, "%d");
    if (isnan(value) || !mark)
        return;
    snprintf(number, sizeof number, "%d", index);
    snprintf(key, sizeof key, "%.*s%s%s", (int)(mark - format), format, number, mark + 2);
    add_value(values, value, key);
}

struct total { /* over the GPUs that have a value */
    double sum, squares;
    int count;
};

static struct total total_of(const struct lab_track_sample *sample, enum lab_metric_id metric) {
    struct total total = {0};
    for (int i = 0; i < sample->gpu_count; i++) {
        double value = sample->gpus[i].values[metric];
        if (isnan(value))
            continue;
        total.sum += value;
        total.squares += value * value;
        total.count++;
    }
    return total;
}

/* Standard deviation over mean, in percent: of idle GPUs there is none. */
static double variation(struct total total) {
    double mean = total.sum / total.count;
    double variance = total.squares / total.count - mean * mean;
    return total.count > 1 && mean > 0 ? 100 * sqrt(fmax(variance, 0)) / mean : (double)NAN;
}

/* A sum of some would pass for the whole. */
static double sum_of_all(const struct lab_track_sample *sample, enum lab_metric_id metric) {
    struct total total = total_of(sample, metric);
    return total.count && total.count == sample->gpu_count ? total.sum : (double)NAN;
}

/* What stands behind "name=" in a list; NULL = it isn't there. */
static const char *find_new_name(const char *list, const char *name, struct lab_arena *arena) {
    size_t length = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t whole = strcspn(at, ",");
        if (whole > length && strncmp(at, name, length) == 0 && at[length] == '=')
            return lab_arena_strndup(arena, at + length + 1, whole - length - 1);
        at += whole;
    }
    return NULL;
}

const char *lab_track_label(const struct lab_track_run *run, const char *name,
                            struct lab_arena *arena) {
    return *run->label ? lab_arena_printf(arena, "%s/%s", run->label, name) : name;
}

const char *lab_track_name(const struct lab_track_run *run, const char *name,
                           struct lab_arena *arena) {
    const char *renamed = *run->renamed ? find_new_name(run->renamed, name, arena) : NULL;
    name = lab_track_label(run, renamed ? renamed : name, arena);
    return *run->prefix ? lab_arena_printf(arena, "%s%s", run->prefix, name) : name;
}

const char *lab_track_result_name(const struct lab_track_run *run, const char *key,
                                  struct lab_arena *arena) {
    return lab_track_label(run, lab_arena_printf(arena, "result/%s", key), arena);
}

static void add_result(struct values *values, const struct lab_track_run *run, const char *key,
                       double value) {
    add_value(values, value, lab_track_result_name(run, key, values->arena));
}

void lab_track_end_row(const struct lab_track_run *run, const struct lab_track_end *end,
                       struct lab_arena *arena, struct lab_track_row *ret_row) {
    const struct lab_value *summary = end->summary;
    struct values values = {.arena = arena};
    values.items = lab_arena_alloc(arena, (size_t)summary->count + 1, sizeof *values.items);
    for (int i = 0; i < summary->count; i++)
        if (!lab_str_equal(summary->keys[i], "exit_code"))
            add_result(&values, run, summary->keys[i], lab_value_as_number(summary->items[i]));
    add_result(&values, run, "exit_code", end->exit_code);
    *ret_row = (struct lab_track_row){.number = INT64_MAX,
                                      .wall_ns = end->wall_ns,
                                      .values = values.items,
                                      .count = values.count};
}

int lab_track_sample_row(const struct lab_track_run *run, const struct lab_track_sample *sample,
                         struct lab_arena *arena, struct lab_track_row *ret_row) {
    static const struct lab_track_key keys[] = {
        {"gpu_%d_memory", LAB_METRIC_MEMORY_USED, 0x1p-20},
        {"gpu_%d_utilization", LAB_METRIC_UTILIZATION, 1},
        {"gpu_%d_power", LAB_METRIC_POWER, 1},
        {"gpu_%d_temperature", LAB_METRIC_TEMPERATURE, 1},
        {"gpu_%d_energy", LAB_METRIC_ENERGY, 1},
        {NULL},
    };
    struct values values = {.arena = arena};
    struct total used = total_of(sample, LAB_METRIC_UTILIZATION);
    struct lab_track_value *own;
    int count = lab_track_sample_values(sample, keys, arena, &own);
    values.items = lab_arena_enlarge(arena, own, (size_t)count, (size_t)count + 6, sizeof *own);
    values.count = count;
    add_value(&values, 0x1p-20 * sum_of_all(sample, LAB_METRIC_MEMORY_USED), "gpu_total_memory");
    add_value(&values, sum_of_all(sample, LAB_METRIC_UTILIZATION) / used.count,
              "gpu_avg_utilization");
    add_value(&values, used.count == sample->gpu_count ? variation(used) : (double)NAN,
              "gpu_load_balance_cv");
    add_value(&values, sum_of_all(sample, LAB_METRIC_POWER), "gpu_total_power");
    add_value(&values, sum_of_all(sample, LAB_METRIC_ENERGY), "gpu_total_energy");
    for (int i = 0; i < values.count; i++)
        values.items[i].key = lab_track_name(run, values.items[i].key, arena);
    double step = floor((double)(sample->wall_ns - run->start_wall_ns) / (double)LAB_NS_PER_MS);
    *ret_row = (struct lab_track_row){.number = sample->number,
                                      .wall_ns = sample->wall_ns,
                                      .step = step,
                                      .whole_step = (int64_t)step,
                                      .values = values.items,
                                      .count = values.count,
                                      .sampled = true};
    return values.count;
}

int lab_track_sample_values(const struct lab_track_sample *sample, const struct lab_track_key *keys,
                            struct lab_arena *arena, struct lab_track_value **ret_values) {
    size_t key_count = 0;
    while (keys[key_count].name)
        key_count++;
    struct values values = {.arena = arena};
    values.items = lab_arena_alloc(arena, key_count * ((size_t)sample->gpu_count + 1) + 1,
                                   sizeof *values.items);
    for (const struct lab_track_key *key = keys; key->name; key++) {
        if (key->host)
            add_value(&values, sample->host[key->metric] * key->scale, key->name);
        for (int i = 0; i < sample->gpu_count && !key->host; i++) {
            const double *own = sample->gpus[i].values;
            double whole = !key->share ? 1 : own[key->whole] > 0 ? own[key->whole] : (double)NAN;
            add_gpu_value(&values, own[key->metric] * key->scale / whole, key->name,
                          sample->gpus[i].index);
        }
    }
    *ret_values = values.items;
    return values.count;
}

void lab_track_add_sample(const struct lab_tracker *tracker, const struct lab_track_run *run,
                          const struct lab_track_sample *sample, struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_track_row row, own;
    struct lab_track_value *values;
    int count = lab_track_sample_row(run, sample, &arena, &row);
    if (tracker->system_row) {
        own = row;
        own.count = lab_track_sample_values(sample, tracker->system_keys, &arena, &values);
        own.values = values;
        if (own.count)
            tracker->system_row(run, &own, out);
    }
    if (count)
        tracker->row(run, &row, out);
}
