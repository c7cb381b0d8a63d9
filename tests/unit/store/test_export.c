/* test_export.c: a study's data as tables and as one document, for programs that aren't ours. */
#include "store_fixture.h"

#include "store/export/export.h"
#include "store/study/results.h"

#include "base/json.h"

#include <time.h>

/* --- a reader of CSV, as strict as RFC 4180 --- */

struct table {
    const char *fields[64][64];
    int widths[64];
    int height;
};

static const char *read_field(const char **at) {
    LAB_AUTO(str, field);
    if (**at == '"') {
        for ((*at)++; **at != '"' || (*at)[1] == '"'; (*at)++) {
            assert_true(**at);
            *at += **at == '"';
            lab_str_add_bytes(&field, *at, 1);
        }
        (*at)++;
    } else {
        size_t length = strcspn(*at, ",\n\"\r");
        lab_str_add_bytes(&field, *at, length);
        *at += length;
    }
    assert_true(**at == ',' || **at == '\n');
    const char *text = lab_arena_strdup(&arena, field.text);
    return text;
}

static struct table *read_table(const char *text) {
    struct table *table = lab_arena_alloc(&arena, 1, sizeof *table);
    for (const char *at = text; *at; table->height++) {
        assert_true(table->height < 64);
        int *width = &table->widths[table->height];
        do {
            assert_true(*width < 64);
            table->fields[table->height][(*width)++] = read_field(&at);
        } while (*at++ == ',');
        assert_int_equal(*width, table->widths[0]);
    }
    return table;
}

static const char *cell(const struct table *table, int line, const char *column) {
    for (int i = 0; i < table->widths[0]; i++) {
        if (strcmp(table->fields[0][i], column) == 0)
            return table->fields[line][i];
    }
    fail_msg("no column %s", column);
    return "";
}

/* --- where it goes --- */

struct sink {
    struct lab_str text;
    int pieces, accepted; /* refuses all after so many */
    size_t largest;
};

static int take(void *state, const char *bytes, size_t length) {
    struct sink *sink = state;
    if (sink->pieces++ >= sink->accepted)
        return -1;
    lab_str_add_bytes(&sink->text, bytes, length);
    sink->largest = length > sink->largest ? length : sink->largest;
    return 0;
}

static struct sink sink;
static struct lab_doc_sink out = {.write = take, .state = &sink};
#define CSV lab_doc_row_format_find("csv")

static int set_up_sink(void **state) {
    sink = (struct sink){.accepted = INT32_MAX};
    lab_str_init(&sink.text);
    lab_str_init(&out.text);
    return set_up(state);
}

static int tear_down_sink(void **state) {
    lab_str_release(&sink.text);
    lab_str_release(&out.text);
    return tear_down(state);
}

static struct lab_store *open_fixture(struct lab_run **ret_runs, int *ret_count) {
    path = LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v2.db";
    struct lab_store *store = reopen(LAB_STORE_READ);
    assert_works(lab_store_runs(store, &arena, ret_runs, ret_count, &err));
    return store;
}

/* --- tests --- */

LAB_TEST(runs_are_a_line_each) {
    struct lab_run *runs;
    int count;
    struct lab_store *store = open_fixture(&runs, &count);
    assert_works(lab_export_runs(runs, count, CSV, &out));
    struct table *table = read_table(sink.text.text);
    assert_int_equal(table->height, 4);
    assert_string_equal(cell(table, 1, "run_id"), "gpu0_gpu1_numa0_numa3_vit32x6x512");
    assert_string_equal(cell(table, 1, "state"), "done");
    assert_string_equal(cell(table, 1, "valid"), "true");
    assert_string_equal(cell(table, 1, "gpu_ids"), "0;1");
    assert_string_equal(cell(table, 1, "devices"), "cpu:0/2.0;cpu:0/2.1");
    assert_string_equal(cell(table, 1, "numa_nodes"), "0;3");
    assert_string_equal(cell(table, 1, "series"), "strong");
    assert_string_equal(cell(table, 1, "start_time"), "2023-11-14T22:13:20.000001+00:00");
    assert_string_equal(cell(table, 1, "duration_s"), "2.5");
    assert_string_equal(cell(table, 1, "rate"), "850.5");
    assert_string_equal(cell(table, 1, "rate_high"), "");
    assert_string_equal(cell(table, 1, "rate_unit"), "samples/s");
    assert_string_equal(cell(table, 1, "latency_median_ms"), "11.25");
    assert_string_equal(cell(table, 1, "latency_p99_ms"), "13.75");
    assert_string_equal(cell(table, 1, "gang_overlap"), "0.99");
    assert_string_equal(cell(table, 1, "peak_memory_mb"), "96.5");
    assert_string_equal(cell(table, 1, "test.num_samples"), "1200");
    assert_string_equal(cell(table, 1, "option.dtype"), "fp32");
    assert_string_equal(cell(table, 1, "option.direction"), "");
    assert_string_equal(cell(table, 2, "option.direction"), "h2d");
    assert_string_equal(cell(table, 2, "state"), "failed");
    assert_string_equal(cell(table, 2, "valid"), "false");
    assert_string_equal(cell(table, 2, "rate"), "");
    assert_string_equal(cell(table, 2, "exit_code"), "3");
    assert_string_equal(cell(table, 2, "error"),
                        "out of device memory: take a smaller size, or\nnode 1");
    assert_string_equal(cell(table, 3, "state"), "running");
    assert_string_equal(cell(table, 3, "valid"), "");
    assert_string_equal(cell(table, 3, "duration_s"), "");
    lab_store_close(store);
}

LAB_TEST(odd_texts_keep_their_field) {
    struct lab_run run = two_runs[0];
    run.id = "a,\"b\"\r\nc";
    run.options = "{\"text\": \"x, \\\"y\\\"\", \"list\": [1, 2], \"none\": null, \"a,b\": true}";
    run.test = "{\"broken";
    run.series = "nonsense";
    assert_works(lab_export_runs(&run, 1, CSV, &out));
    struct table *table = read_table(sink.text.text);
    assert_int_equal(table->height, 2);
    assert_string_equal(cell(table, 1, "run_id"), "a,\"b\"\r\nc");
    assert_string_equal(cell(table, 1, "option.text"), "x, \"y\"");
    assert_string_equal(cell(table, 1, "option.list"), "[1, 2]");
    assert_string_equal(cell(table, 1, "option.none"), "");
    assert_string_equal(cell(table, 1, "option.a,b"), "true");
    assert_string_equal(cell(table, 1, "series"), "");
}

LAB_TEST(no_runs_are_a_header) {
    assert_works(lab_export_runs(NULL, 0, CSV, &out));
    assert_int_equal(read_table(sink.text.text)->height, 1);
}

LAB_TEST(iterations_are_a_line_each) {
    struct lab_run *runs;
    int count;
    struct lab_store *store = open_fixture(&runs, &count);
    assert_works(lab_export_iterations(store, runs, count, CSV, &out, &err));
    const char *header =
        "run_id,rank,iteration,start_ns,end_ns,h2d_ms,compute_ms,d2h_ms,latency_ms\n";
    const char *first = "gpu0_gpu1_numa0_numa3_vit32x6x512,0,0,5000000000,5000900000,,0.799990,,"
                        "0.900000\n";
    assert_int_equal(strncmp(sink.text.text, header, strlen(header)), 0);
    assert_int_equal(strncmp(sink.text.text + strlen(header), first, strlen(first)), 0);
    int lines = 0;
    for (const char *at = sink.text.text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 1 + 120 + 7);
    assert_contains(sink.text.text, "vit32x6x512,0,119,");
    assert_contains(sink.text.text, "vit32x6x512,1,6,");
    lab_store_close(store);
}

LAB_TEST(metrics_are_a_line_each) {
    struct lab_store *store = create(path);
    int64_t epoch;
    static const struct lab_store_metric metrics[] = {{"loss", "1", -1, 3.25, 77, 120},
                                                      {"a,b", "MB/s", 1, NAN, 78, NAN},
                                                      {"x", "", 0, -INFINITY, 79, NAN}};
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    for (int i = 0; i < 3; i++)
        assert_works(lab_store_add_metrics(store, 1, &metrics[i], 1, &err));
    struct lab_run run = read_run(store, 1);
    assert_works(lab_export_metrics(store, &run, 1, CSV, &out, &err));
    assert_string_equal(sink.text.text, "run_id,rank,name,unit,value,time_ns,step,time_s\n"
                                        "gpu0_gpu1_vit32x6x512,,loss,1,3.25,77,120,0.000000076\n"
                                        "gpu0_gpu1_vit32x6x512,1,\"a,b\",MB/s,nan,78,,0.000000077\n"
                                        "gpu0_gpu1_vit32x6x512,0,x,,-inf,79,,0.000000078\n");
    lab_str_clear(&sink.text);
    assert_works(lab_export_json(store, &run, 1, false, &out, &err));
    assert_contains(sink.text.text, "\"value\": \"nan\"");
    assert_contains(sink.text.text, "\"value\": \"-inf\"");
    lab_store_close(store);
}

static struct lab_value *read_document(void) {
    struct lab_value *document = NULL;
    assert_works(lab_json_parse(sink.text.text, sink.text.length, "x", &arena, &document, &err));
    return document;
}

LAB_TEST(the_document_holds_everything) {
    struct lab_run *runs;
    int count;
    struct lab_store *store = open_fixture(&runs, &count);
    assert_works(lab_export_json(store, runs, count, false, &out, &err));
    struct lab_value *document = read_document(), *study = lab_value_get(document, "study");
    assert_string_equal(lab_value_get(study, "name")->string, a_study.name);
    assert_string_equal(lab_value_get(study, "config")->string, a_study.config);
    assert_string_equal(lab_value_get(study, "identity")->string, "fedcba9876543210");
    assert_int_equal(lab_value_get(study, "words")->count, 2);
    assert_int_equal(lab_value_get(lab_value_get(document, "machine"), "nodes")->integer, 2);
    assert_int_equal(lab_value_get(lab_value_get(document, "summary"), "total_runs")->integer, 3);
    struct lab_value *list = lab_value_get(document, "runs");
    assert_int_equal(list->count, 3);
    struct lab_value *expected = lab_results_run(&runs[0], &arena), *first = list->items[0];
    for (int i = 0; i < expected->count; i++)
        assert_true(lab_value_equal(lab_value_get(first, expected->keys[i]), expected->items[i]));
    assert_int_equal(lab_value_get(first, "metrics")->count, 1);
    assert_null(lab_value_get(first, "iteration_times"));
    assert_string_equal(lab_value_get(list->items[2], "state")->string, "running");
    lab_store_close(store);
}

LAB_TEST(the_document_holds_iterations_if_asked) {
    struct lab_run *runs;
    int count;
    struct lab_store *store = open_fixture(&runs, &count);
    assert_works(lab_export_json(store, runs, count, true, &out, &err));
    struct lab_value *list = lab_value_get(read_document(), "runs");
    struct lab_value *ranks = lab_value_get(list->items[0], "iteration_times");
    assert_int_equal(ranks->count, 2);
    struct lab_value *rows = lab_value_get(ranks->items[0], "rows");
    assert_int_equal(rows->count, 120);
    assert_int_equal(lab_value_get(ranks->items[1], "rows")->count, 7);
    struct lab_value *columns = lab_value_get(ranks->items[0], "columns");
    assert_int_equal(columns->count, rows->items[119]->count);
    assert_string_equal(columns->items[3]->string, "compute_ms");
    assert_true(rows->items[0]->items[3]->number == 0.79999);
    assert_int_equal(rows->items[0]->items[2]->type, LAB_VALUE_NULL);
    lab_store_close(store);
}

static struct lab_store *with_many_iterations(int chunks) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    for (int i = 0; i < chunks; i++)
        assert_works(add_iterations(store, 1, 0, i * 1000, 1000));
    return store;
}

LAB_TEST(large_tables_come_in_small_pieces) {
    struct lab_store *store = with_many_iterations(30);
    struct lab_run run = read_run(store, 1);
    assert_works(lab_export_iterations(store, &run, 1, CSV, &out, &err));
    assert_true(sink.text.length > 1000000 && sink.pieces > 10);
    assert_true(sink.largest < 100000);
    lab_store_close(store);
}

LAB_TEST(whoever_has_enough_ends_it) {
    struct lab_store *store = with_many_iterations(5);
    struct lab_run run = read_run(store, 1);
    sink.accepted = 1;
    assert_int_equal(lab_export_iterations(store, &run, 1, CSV, &out, &err), -1);
    assert_string_equal(err.text, "");
    assert_int_equal(sink.pieces, 2);
    assert_int_equal(lab_export_json(store, &run, 1, true, &out, &err), -1);
    assert_int_equal(lab_export_runs(&run, 1, CSV, &out), -1);
    assert_int_equal(sink.pieces, 4);
    assert_int_equal(count_iterations(store, 1, 0), 5000); /* the store goes on */
    lab_store_close(store);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up_sink, .tear_down = tear_down_sink, .begin = lab_test_in_utc};
