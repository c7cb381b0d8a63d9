/*
 * export_json.c: a study as one JSON document. It is written as it goes, run by run, since the
 * iterations of a long study don't fit into a tree.
 */
#include "store/export/export_internal.h"

#include "store/study/results.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

static const char *hex(uint64_t value, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%016llx", (unsigned long long)value);
}

static struct lab_value *stored(const char *text, struct lab_arena *arena) {
    struct lab_value *value;
    return lab_json_parse(text, strlen(text), NULL, arena, &value, NULL) < 0 ? lab_value_null(arena)
                                                                             : value;
}

static void write_study(const struct lab_store_study *study, struct lab_arena *arena,
                        struct lab_str *out) {
    LAB_AUTO(str, created);
    lab_results_add_time(study->created_wall_ns, &created);
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", study->name);
    lab_value_set_string(arena, map, "experiment", study->option);
    lab_value_set_string(arena, map, "identity", hex(study->identity, arena));
    lab_value_set_string(arena, map, "machine_identity", hex(study->machine_identity, arena));
    lab_value_set_int(arena, map, "seed", (int64_t)study->seed);
    lab_value_set_string(arena, map, "created", created.text);
    lab_value_set_string(arena, map, "gpulab", study->version);
    lab_value_set(arena, map, "words", stored(study->words, arena));
    lab_value_set_string(arena, map, "config", study->config);
    lab_str_printf(out, "{\n  \"schema\": %d,\n  \"study\": ", LAB_JSON_SCHEMA);
    lab_json_write(map, 0, out);
    lab_str_add(out, ",\n  \"machine\": ");
    lab_json_write(stored(study->machine, arena), 0, out);
}

static int add_metrics(struct lab_store *store, const struct lab_run *run,
                       struct lab_export_buffer *buffer, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_store_metric *metrics;
    int count = 0;
    int result = lab_store_metrics(store, run->number, &arena, &metrics, &count, err);
    lab_str_add(&buffer->text, ",\n      \"metrics\": [");
    for (int i = 0; result == 0 && i < count; i++) {
        struct lab_value *map = lab_value_map(&arena);
        lab_value_set_string(&arena, map, "name", metrics[i].name);
        lab_value_set_string(&arena, map, "unit", metrics[i].unit);
        if (metrics[i].rank >= 0)
            lab_value_set_int(&arena, map, "rank", metrics[i].rank);
        else
            lab_value_set(&arena, map, "rank", lab_value_null(&arena));
        lab_value_set_float(&arena, map, "value", metrics[i].value);
        lab_value_set_int(&arena, map, "time_ns", metrics[i].time_ns);
        lab_str_add(&buffer->text, i ? ",\n        " : "\n        ");
        lab_json_write(map, 0, &buffer->text);
        result = lab_export_buffer_pass(buffer);
    }
    lab_str_add(&buffer->text, count ? "\n      ]" : "]");
    return result;
}

static int add_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    struct lab_export_buffer *buffer = state;
    for (size_t i = 0; i < count; i++) {
        lab_str_add(&buffer->text, first || i ? ",\n          [" : "\n          [");
        lab_export_add_times(&items[i], ", ", "null", &buffer->text);
        lab_str_add(&buffer->text, "]");
        if (lab_export_buffer_pass(buffer) < 0)
            return -1;
    }
    return 0;
}

static int add_iterations(struct lab_store *store, const struct lab_run *run,
                          struct lab_export_buffer *buffer, struct lab_err *err) {
    lab_str_add(&buffer->text, ",\n      \"iteration_times\": [");
    int result = 0;
    for (int rank = 0; rank < run->rank_count && result == 0; rank++) {
        lab_str_printf(
            &buffer->text,
            "%s\n        {\"rank\": %d, \"columns\": [\"start_ns\", \"end_ns\", \"h2d_ms\","
            " \"compute_ms\", \"d2h_ms\", \"latency_ms\"], \"rows\": [",
            rank ? "," : "", rank);
        result = lab_store_each_chunk(store, run->number, rank, add_chunk, buffer, err);
        lab_str_add(&buffer->text, "]}");
    }
    lab_str_add(&buffer->text, run->rank_count ? "\n      ]" : "]");
    return result;
}

static int add_run(struct lab_store *store, const struct lab_run *run, bool iterations,
                   struct lab_export_buffer *buffer, struct lab_err *err) {
    lab_str_add(&buffer->text, "\n    {");
    lab_results_write_run(run, "\n      ", &buffer->text);
    if (add_metrics(store, run, buffer, err) < 0 ||
        (iterations && add_iterations(store, run, buffer, err) < 0))
        return -1;
    lab_str_add(&buffer->text, "\n    }");
    return lab_export_buffer_pass(buffer);
}

static int write_document(struct lab_store *store, bool iterations,
                          struct lab_export_buffer *buffer, struct lab_arena *arena,
                          struct lab_err *err) {
    struct lab_store_study study;
    struct lab_run *runs;
    int count;
    if (lab_store_study(store, arena, &study, err) < 0 ||
        lab_store_runs(store, arena, &runs, &count, err) < 0)
        return -1;
    write_study(&study, arena, &buffer->text);
    lab_str_add(&buffer->text, ",\n  \"summary\": ");
    lab_json_write(lab_results_summary(study.name, runs, count, arena), 0, &buffer->text);
    lab_str_add(&buffer->text, ",\n  \"runs\": [");
    for (int i = 0; i < count; i++) {
        lab_str_add(&buffer->text, i ? "," : "");
        if (add_run(store, &runs[i], iterations, buffer, err) < 0)
            return -1;
    }
    lab_str_add(&buffer->text, count ? "\n  ]\n}\n" : "]\n}\n");
    return lab_export_buffer_flush(buffer);
}

int lab_export_json(struct lab_store *store, bool iterations, const struct lab_export *out,
                    struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_export_buffer buffer;
    lab_export_buffer_init(&buffer, out);
    int result = write_document(store, iterations, &buffer, &arena, err);
    lab_export_buffer_release(&buffer);
    return result;
}
