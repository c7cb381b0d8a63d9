/* test_trace.c: a trace file has Nsight's tables and says what the records held. */
#include "store_fixture.h"

#include "base/str.h"
#include "store/trace/trace.h"

#include <sqlite3.h>

static struct lab_trace_kernel kernels[] = {
    {.start_ns = 100,
     .end_ns = 150,
     .place = {.device = 1, .context = 2, .green = 9, .stream = 13, .correlation = 77},
     .name = "layer_norm",
     .long_name = "layer_norm(float const*, float*)",
     .grid = {10, 2, 3},
     .block = {128, 4, 5},
     .registers = 40,
     .static_shared = 16,
     .dynamic_shared = 1024,
     .local_bytes = 8},
    {.start_ns = 160, .end_ns = 170, .place = {.stream = 13, .graph_node = 5}, .name = "gemm"},
    {.start_ns = 180, .end_ns = 190, .place = {.stream = 13}, .name = "gemm"},
};
static struct lab_trace_copy copies[] = {{.start_ns = 50,
                                          .end_ns = 90,
                                          .place = {.stream = 7},
                                          .size_bytes = 602112,
                                          .kind = LAB_TRACE_COPY_H2D,
                                          .from = LAB_TRACE_MEMORY_PINNED,
                                          .to = LAB_TRACE_MEMORY_DEVICE}};
static struct lab_trace_fill fills[] = {{.start_ns = 1,
                                         .end_ns = 2,
                                         .size_bytes = 64,
                                         .value = 255,
                                         .memory = LAB_TRACE_MEMORY_DEVICE}};
static struct lab_trace_call calls[] = {
    {.start_ns = 40, .end_ns = 44, .name = "cuLaunchKernel", .thread = 4243, .correlation = 77},
    {.start_ns = 45, .end_ns = 46, .name = "lab_copy", .thread = 4243, .result = 2}};
static struct lab_trace_range ranges[] = {
    {.start_ns = 40, .end_ns = 200, .text = "test_double_buffer", .thread = 4243, .kind = 59},
    {.start_ns = 50, .end_ns = -1, .text = "left \"open\"", .thread = 4243, .kind = 60}};
static struct lab_trace_gpu gpus[] = {{.device = 1,
                                       .name = "NVIDIA H200",
                                       .uuid = "GPU-1",
                                       .pci_bus = "0000:3b:00.0",
                                       .compute_units = 132,
                                       .compute_major = 9,
                                       .memory_bytes = 150000000000}};
static struct lab_trace_note notes[] = {{LAB_TRACE_NOTE_OVERHEAD, "0.012"}};

static const struct lab_trace a_trace = {
    .process = 4242,
    .kernels = kernels,
    .kernel_count = 3,
    .copies = copies,
    .copy_count = 1,
    .fills = fills,
    .fill_count = 1,
    .calls = calls,
    .call_count = 2,
    .ranges = ranges,
    .range_count = 2,
    .gpus = gpus,
    .gpu_count = 1,
    .notes = notes,
    .note_count = 1,
};

static const char *trace_path(void) {
    return lab_arena_printf(&arena, "%s/trace.sqlite", folder);
}

/* All rows of a query: columns joined by '|', rows by a space. */
static const char *query(const char *file, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    LAB_AUTO(str, text);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        lab_str_add(&text, text.length ? " " : "");
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const char *value = (const char *)sqlite3_column_text(statement, i);
            lab_str_printf(&text, "%s%s", i ? "|" : "", value ? value : "NULL");
        }
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    const char *kept = lab_arena_strdup(&arena, text.text);
    return kept;
}

static const char *written(const char *sql) {
    if (lab_trace_write(trace_path(), &a_trace, &err) < 0)
        fail_msg("%s", err.text);
    return query(trace_path(), sql);
}

LAB_TEST(kernels_have_their_names_and_shapes) {
    assert_string_equal(
        written(
            "SELECT start, end, deviceId, contextId, greenContextId, streamId, correlationId,"
            " globalPid >> 24, s.value, d.value, registersPerThread, gridX, gridY, gridZ, blockX,"
            " blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread,"
            " graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL k"
            " JOIN StringIds s ON s.id = k.shortName JOIN StringIds d ON d.id = demangledName"
            " WHERE start = 100"),
        "100|150|1|2|9|13|77|4242|layer_norm|layer_norm(float const*, float*)|40|10|2|3|128|"
        "4|5|16|1024|8|NULL");
}

LAB_TEST(what_is_not_known_is_null) {
    assert_string_equal(written("SELECT greenContextId, correlationId, graphNodeId"
                                " FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start > 150"),
                        "NULL|NULL|5 NULL|NULL|NULL");
}

LAB_TEST(a_text_has_one_number) {
    assert_string_equal(written("SELECT count(*), count(DISTINCT value) FROM StringIds"), "5|5");
}

LAB_TEST(copies_have_direction_and_kinds) {
    assert_string_equal(
        written("SELECT start, end, streamId, bytes, copyKind, o.label, f.label, t.label"
                " FROM CUPTI_ACTIVITY_KIND_MEMCPY c"
                " JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = copyKind"
                " JOIN ENUM_CUDA_MEM_KIND f ON f.id = srcKind"
                " JOIN ENUM_CUDA_MEM_KIND t ON t.id = dstKind"),
        "50|90|7|602112|1|Host-to-Device|Pinned|Device");
    assert_string_equal(written("SELECT start, end, value, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET"),
                        "1|2|255|64");
}

LAB_TEST(calls_and_ranges_name_process_and_thread) {
    assert_string_equal(written("SELECT start, end, eventClass, globalTid / 0x1000000 % 0x1000000,"
                                " globalTid % 0x1000000, correlationId, value, returnValue"
                                " FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId"),
                        "40|44|1|4242|4243|77|cuLaunchKernel|0 45|46|0|4242|4243|NULL|lab_copy|2");
    assert_string_equal(written("SELECT start, end, eventType, text, textId, domainId,"
                                " globalTid % 0x1000000 FROM NVTX_EVENTS"),
                        "40|200|59|test_double_buffer|NULL|0|4243 50|NULL|60|left \"open\"|NULL|0|"
                        "4243");
}

LAB_TEST(it_says_what_it_is_about) {
    assert_string_equal(
        written("SELECT id, name, busLocation, smCount, uuid, totalMemory, computeMajor,"
                " computeMinor, smMajor, cuDevice FROM TARGET_INFO_GPU"),
        "1|NVIDIA H200|0000:3b:00.0|132|GPU-1|150000000000|9|0|9|1");
    assert_string_equal(written("SELECT name, value FROM META_DATA_EXPORT"),
                        "GPULAB_TRACE_OVERHEAD|0.012");
    assert_string_equal(written("SELECT pid, globalPid / 0x1000000 FROM PROCESSES"), "4242|4242");
    assert_string_equal(written("SELECT duration, startTime, stopTime FROM ANALYSIS_DETAILS"),
                        "199|1|200");
}

/* Thousands of different names make the table of texts grow more than once. */
LAB_TEST(many_texts_keep_their_numbers) {
    enum { COUNT = 3000 };
    struct lab_trace_kernel *many = lab_arena_alloc(&arena, COUNT, sizeof *many);
    for (int i = 0; i < COUNT; i++)
        many[i] = (struct lab_trace_kernel){
            .start_ns = i, .end_ns = i + 1, .name = lab_arena_printf(&arena, "k%d", i / 2)};
    struct lab_trace trace = {.kernels = many, .kernel_count = COUNT};
    assert_int_equal(lab_trace_write(trace_path(), &trace, &err), 0);
    assert_string_equal(query(trace_path(), "SELECT count(*), sum(value = 'k' || (start / 2)) FROM"
                                            " CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds"
                                            " ON id = shortName"),
                        "3000|3000");
    assert_string_equal(query(trace_path(), "SELECT count(*) FROM StringIds"), "1500");
}

LAB_TEST(an_empty_trace_has_all_tables) {
    struct lab_trace trace = {0};
    assert_int_equal(lab_trace_write(trace_path(), &trace, &err), 0);
    assert_string_equal(query(trace_path(), "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
                        "0");
    assert_string_equal(query(trace_path(), "SELECT count(*) FROM ANALYSIS_DETAILS"), "0");
    assert_string_equal(query(trace_path(), "PRAGMA integrity_check"), "ok");
}

LAB_TEST(a_second_trace_takes_the_place_of_the_first) {
    struct lab_trace trace = {0};
    assert_int_equal(lab_trace_write(trace_path(), &a_trace, &err), 0);
    assert_int_equal(lab_trace_write(trace_path(), &trace, &err), 0);
    assert_string_equal(query(trace_path(), "SELECT count(*) FROM NVTX_EVENTS"), "0");
    assert_int_equal(count_files(folder, false), 1);
}

LAB_TEST(a_folder_that_is_not_there_is_an_error) {
    const char *file = lab_arena_printf(&arena, "%s/no/trace.sqlite", folder);
    assert_int_equal(lab_trace_write(file, &a_trace, &err), -1);
    assert_contains(err.text, "no/trace.sqlite");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
