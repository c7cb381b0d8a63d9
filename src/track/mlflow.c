/*
 * mlflow.c: an MLflow server, by its REST API (MLFLOW_TRACKING_URI). A project is an experiment.
 *
 * What a run has is first made into lines, each a letter and its JSON: a metric, a parameter, a
 * tag, a file, the end. They are sent in batches as full as the server takes them. A batch that is
 * sent again after a crash changes nothing (mlflow/server.h).
 */
#include "base/clock.h"
#include "base/hash.h"
#include "track/mlflow/server.h"
#include "track/tracker.h"

#include <stdlib.h>
#include <string.h>

/* Of the server: mlflow/utils/validation.py. */
#define METRICS_MOST 1000 /* with params and tags, too */
#define PARAMS_MOST  100  /* and of tags */
#define BODY_MOST    900000
#define KEY_MOST     250
#define PARAM_MOST   6000 /* bytes of a value */
#define TAG_MOST     5000

enum { LINE_METRIC = 'M', LINE_PARAM = 'P', LINE_TAG = 'T', LINE_FILE = 'F', LINE_END = 'E' };

/* --- names and texts --- */

static bool is_plain(char byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z') ||
           byte == '_' || byte == '-' || byte == '.' || byte == ' ' || byte == ':';
}

/* Names are paths to the server: no part of one is empty or made of dots alone. */
static void add_part(struct lab_str *out, const char *part, size_t length) {
    bool dots = strspn(part, ".") >= length;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)part[i];
        if (byte >= 128)
            lab_str_printf(out, "x%02x", byte);
        else
            lab_str_add_bytes(out, is_plain(part[i]) && !dots ? &part[i] : "-", 1);
    }
}

static bool is_safe(const char *key) {
    size_t at = 0, part = 0;
    for (; key[at]; at++) {
        if (key[at] == '/') {
            if (at == part || strspn(key + part, ".") >= at - part)
                return false;
            part = at + 1;
        } else if (!is_plain(key[at])) {
            return false;
        }
    }
    return at > part && strspn(key + part, ".") < at - part && at <= KEY_MOST;
}

static void add_key(struct lab_str *out, const char *key) {
    lab_str_add(out, "{\"key\":\"");
    if (is_safe(key)) { /* mostly */
        lab_str_add(out, key);
    } else {
        LAB_AUTO(str, safe);
        for (const char *part = key; *part; part += *part == '/') {
            size_t length = strcspn(part, "/");
            if (length && safe.length)
                lab_str_add(&safe, "/");
            add_part(&safe, part, length);
            part += length;
        }
        if (safe.length > KEY_MOST || !safe.length)
            lab_str_printf(out, "%.*s-%08x", KEY_MOST - 9, safe.text,
                           (unsigned)lab_hash_text(LAB_HASH_START, key));
        else
            lab_str_add(out, safe.text);
    }
    lab_str_add(out, "\"");
}

static void add_cut(struct lab_str *out, const char *text, size_t most) {
    LAB_AUTO(arena, arena);
    size_t length = strlen(text);
    char *cut = lab_arena_strndup(&arena, text, length > most ? most : length);
    if (length > most)
        cut[lab_str_utf8_prefix(cut, most)] = '\0';
    lab_str_add(out, ",\"value\":");
    lab_track_add_text(out, cut);
    lab_str_add(out, "}\n");
}

static void add_tag(struct lab_str *out, const char *key, const char *text) {
    lab_str_add(out, "T");
    add_key(out, key);
    add_cut(out, text, TAG_MOST);
}

static void add_param(struct lab_str *out, const char *key, const struct lab_value *value) {
    LAB_AUTO(str, plain);
    if (value->type == LAB_VALUE_NULL)
        return;
    if (value->type != LAB_VALUE_STRING && !lab_value_write_plain(value, &plain))
        lab_track_add_number(&plain, lab_value_as_number(value), false);
    lab_str_add(out, "P");
    add_key(out, key);
    add_cut(out, value->type == LAB_VALUE_STRING ? value->string : plain.text, PARAM_MOST);
}

static void add_metric(struct lab_str *out, const char *key, double value, int64_t wall_ns,
                       int64_t step) {
    lab_str_add(out, "M");
    add_key(out, key);
    lab_str_add(out, ",\"value\":");
    lab_track_add_number(out, value, true);
    lab_str_add(out, ",\"timestamp\":");
    lab_str_add_decimal(out, wall_ns / LAB_NS_PER_MS, 0);
    lab_str_add(out, ",\"step\":");
    lab_str_add_decimal(out, step, 0);
    lab_str_add(out, "}\n");
}

/* --- the tracker --- */

static const char *mlflow_destination(struct lab_arena *arena) {
    const char *uri = mlflow_uri(arena);
    return uri ? uri : "";
}

static const char *mlflow_place(const struct lab_track_run *run, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s, experiment %s", mlflow_destination(arena), run->project);
}

static void add_tags(const struct lab_track_run *run, struct lab_str *out) {
    for (int i = 0; run->tags[i]; i++)
        add_tag(out, run->tags[i], "true");
}

static void mlflow_begin(const struct lab_track_run *run, struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_str *text = &out->bytes;
    const char *user = getenv("USER");
    add_tag(text, "mlflow.source.name", run->notes);
    add_tag(text, "mlflow.source.type", "LOCAL");
    if (user && *user)
        add_tag(text, "mlflow.user", user);
    add_tag(text, "group", run->group);
    if (*run->host)
        add_tag(text, lab_track_label(run, "host", &arena), run->host);
    add_tags(run, text);
    for (int i = 0; i < run->config->count; i++)
        add_param(text, lab_track_label(run, run->config->keys[i], &arena), run->config->items[i]);
}

static void mlflow_row(const struct lab_track_run *run, const struct lab_track_row *row,
                       struct lab_track_out *out) {
    (void)run;
    for (int i = 0; i < row->count; i++)
        add_metric(&out->bytes, row->values[i].key, row->values[i].value, row->wall_ns,
                   row->whole_step);
}

/* What its own monitor writes: the page "System metrics" is made of these names. */
static const struct lab_track_key system_keys[] = {
    {"gpu_%d_utilization_percentage", LAB_METRIC_UTILIZATION, 1},
    {"gpu_%d_memory_usage_megabytes", LAB_METRIC_MEMORY_USED, 1e-6},
    {"gpu_%d_power_usage_watts", LAB_METRIC_POWER, 1},
    {"gpu_%d_temperature_celsius", LAB_METRIC_TEMPERATURE, 1},
    {"gpu_%d_sm_clock_megahertz", LAB_METRIC_SM_CLOCK, 1},
    {"gpu_%d_energy_joules", LAB_METRIC_ENERGY, 1},
    {"gpu_%d_memory_usage_percentage", LAB_METRIC_MEMORY_USED, 100, .share = true,
     .whole = LAB_METRIC_MEMORY_TOTAL},
    {"gpu_%d_power_usage_percentage", LAB_METRIC_POWER, 100, .share = true,
     .whole = LAB_METRIC_POWER_LIMIT},
    {"cpu_utilization_percentage", LAB_METRIC_CPU_UTILIZATION, 1, true},
    {NULL},
};

static void mlflow_system_row(const struct lab_track_run *run, const struct lab_track_row *row,
                              struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    for (int i = 0; i < row->count; i++)
        add_metric(
            &out->bytes,
            lab_arena_printf(&arena, "system/%s", lab_track_label(run, row->values[i].key, &arena)),
            row->values[i].value, row->wall_ns, row->whole_step);
}

static void mlflow_end(const struct lab_track_run *run, const struct lab_track_end *end,
                       struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_track_row row;
    struct lab_str *text = &out->bytes;
    lab_track_end_row(run, end, &arena, &row);
    for (int i = 0; i < row.count; i++)
        add_metric(text, row.values[i].key, row.values[i].value, end->wall_ns, 0);
    if (*end->text)
        add_tag(text, *run->label ? lab_track_label(run, "verdict", &arena) : "mlflow.note.content",
                end->text);
    add_tags(run, text);
    for (int i = 0; end->files && end->files[i]; i++)
        lab_str_printf(text, "F%s\n", end->files[i]);
    lab_str_printf(text, "E%c%lld\n", end->exit_code == 0 ? '+' : '-',
                   (long long)(end->wall_ns / LAB_NS_PER_MS));
}

/* --- batches --- */

struct batch {
    struct lab_str *metrics, *params, *tags;
    int metric_count, param_count, tag_count;
};

static int flush(struct mlflow_server *server, struct batch *batch, struct lab_err *err) {
    if (batch->metric_count + batch->param_count + batch->tag_count == 0)
        return 0;
    int result = mlflow_server_log(server, batch->metrics->text, batch->params->text,
                                   batch->tags->text, err);
    lab_str_clear(batch->metrics);
    lab_str_clear(batch->params);
    lab_str_clear(batch->tags);
    batch->metric_count = batch->param_count = batch->tag_count = 0;
    return result;
}

static bool is_full(const struct batch *batch, size_t more) {
    return batch->metric_count + batch->param_count + batch->tag_count == METRICS_MOST ||
           batch->param_count == PARAMS_MOST || batch->tag_count == PARAMS_MOST ||
           batch->metrics->length + batch->params->length + batch->tags->length + more > BODY_MOST;
}

static void add_item(struct lab_str *list, int *count, const char *item, size_t length) {
    lab_str_add_bytes(list, ",", (*count)++ > 0);
    lab_str_add_bytes(list, item, length);
}

static int send_line(struct mlflow_server *server, struct batch *batch, const char *line,
                     size_t length, struct lab_err *err) {
    const char *item = line + 1;
    LAB_AUTO(arena, arena);
    if (*line == LINE_FILE || *line == LINE_END) {
        const char *text = lab_arena_strndup(&arena, item, length - 1);
        if (flush(server, batch, err) < 0)
            return -1;
        return *line == LINE_FILE
                   ? mlflow_server_upload(server, text, err)
                   : mlflow_server_end(server, *text == '-', strtoll(text + 1, NULL, 10), err);
    }
    if (is_full(batch, length) && flush(server, batch, err) < 0)
        return -1;
    if (*line == LINE_METRIC)
        add_item(batch->metrics, &batch->metric_count, item, length - 1);
    else if (*line == LINE_PARAM)
        add_item(batch->params, &batch->param_count, item, length - 1);
    else
        add_item(batch->tags, &batch->tag_count, item, length - 1);
    return 0;
}

static int send_lines(struct mlflow_server *server, const struct lab_str *lines,
                      struct lab_err *err) {
    LAB_AUTO(str, metrics);
    LAB_AUTO(str, params);
    LAB_AUTO(str, tags);
    struct batch batch = {.metrics = &metrics, .params = &params, .tags = &tags};
    int result = 0;
    for (size_t at = 0; at < lines->length && result == 0;) {
        const char *end = memchr(lines->text + at, '\n', lines->length - at);
        size_t length = (size_t)(end - lines->text) - at;
        result = send_line(server, &batch, lines->text + at, length, err);
        at += length + 1;
    }
    return result < 0 ? -1 : flush(server, &batch, err);
}

static int mlflow_deliver(const struct lab_track_run *run, const char *place, int64_t batch,
                          const struct lab_track_out *out, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct mlflow_server *server = mlflow_server_open(&arena, err);
    (void)place, (void)batch;
    if (!server)
        return -1;
    int result = mlflow_server_run(server, run, out->offset == 0, err);
    if (result == 0)
        result = send_lines(server, &out->bytes, err);
    mlflow_server_close(server);
    return result;
}

const struct lab_tracker lab_tracker_mlflow = {
    .name = "mlflow",
    .summary = "an MLflow server, $MLFLOW_TRACKING_URI",
    .view = "open $MLFLOW_TRACKING_URI",
    .by_project = true,
    .destination = mlflow_destination,
    .place = mlflow_place,
    .begin = mlflow_begin,
    .row = mlflow_row,
    .system_row = mlflow_system_row,
    .system_keys = system_keys,
    .end = mlflow_end,
    .deliver = mlflow_deliver,
};
