/* A study's runs become points; points are compared over runs, and claims stay within what they
 * carry. */
#include "study_fixture.h"

#include "test.h"

static int make_points(struct given_study *given, struct lab_study_point **ret_points) {
    return lab_study_points(&given->table, &given->arena, ret_points);
}

/* One model at two nodes, `runs` runs each, their rates spread by `noise`. */
static void add_pair(struct given_study *given, double base, double other, int runs, double noise) {
    for (int r = 0; r < runs; r++)
        for (int node = 0; node < 2; node++)
            given_add(given, (struct given_run){.model = "vit32x2x128",
                                                .node = node,
                                                .repeat = r,
                                                .rate = (node ? other : base) *
                                                        exp(noise * given_normal(given))});
}

/* --- points --- */

LAB_TEST(test_runs_of_one_point_are_together) {
    struct given_study given;
    struct lab_study_point *points;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 900, 3, 0);
    given.table.runs[3].used = false;
    assert_int_equal(make_points(&given, &points), 2);
    assert_string_equal(points[0].name, "gpu0_numa0_vit32x2x128");
    assert_int_equal(points[0].count, 3);
    assert_int_equal(points[1].count, 2); /* one of them doesn't count */
    assert_near(points[1].rates[1], 900, 1e-9);
    assert_near(points[1].times_s[1], 10.0 / 900, 1e-12);
    given_end(&given);
}

LAB_TEST(test_phases_are_points_of_their_own) {
    struct given_study given;
    struct lab_study_point *points;
    given_begin(&given, "contention");
    given_add(&given, (struct given_run){.model = "softmax", .rate = 100, .phase = "baseline"});
    given_add(&given, (struct given_run){.model = "softmax", .rate = 80, .phase = "concurrent"});
    assert_int_equal(make_points(&given, &points), 2);
    given_end(&given);
}

LAB_TEST(test_a_study_without_a_used_run_has_no_point) {
    struct given_study given;
    struct lab_study_point *points;
    given_begin(&given, "numa_study");
    assert_int_equal(make_points(&given, &points), 0);
    given_end(&given);
}

LAB_TEST(test_points_and_devices_have_names_for_people) {
    struct given_study given;
    struct lab_study_point *points;
    given_begin(&given, "compile_study");
    const struct lab_study_run *run = given_add(
        &given, (struct given_run){
                    .model = "vit32x2x128", .rate = 10, .suffix = "_compiled", .flops = 5e9});
    given_add(&given,
              (struct given_run){.model = "softmax", .gpu = 1, .rate = 10, .phase = "baseline"});
    given.table.runs[1].point = "alone";
    given_add(&given,
              (struct given_run){.model = "vit0x0x0",
                                 .rate = 10,
                                 .suffix = "_batch_size4_tensor_shape3x224x224_memory_size_mb512"});
    assert_int_equal(make_points(&given, &points), 3);
    assert_string_equal(lab_study_point_model(&points[2], &given.arena),
                        "vit0x0x0, batch 4, 224 px, 512 MiB pool");
    assert_string_equal(lab_study_point_model(&points[0], &given.arena), "vit32x2x128_compiled");
    assert_string_equal(lab_study_point_model(&points[1], &given.arena), "softmax, baseline");
    assert_string_equal(lab_study_device_title("cuda:3", &given.arena), "GPU 3");
    assert_string_equal(lab_study_device_title("sim:l40s-10:7", &given.arena), "GPU 7");
    assert_string_equal(lab_study_device_title("cuda:0/4.2", &given.arena), "cuda:0/4.2");
    assert_string_equal(lab_study_device_title("cpu:0", &given.arena), "cpu:0");
    assert_near(lab_study_complexity(run), 5e8, 1e-3);
    given_end(&given);
}

/* --- keys --- */

LAB_TEST(test_settings_are_not_counted_as_models) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_add(&given, (struct given_run){.model = "vit0x0x0"});
    given_add(&given, (struct given_run){.model = "vit0x0x0", .suffix = "_batch_size8"});
    given_add(&given, (struct given_run){.model = "vit32x2x128"});
    assert_string_equal(lab_study_count_words(&given.table, 2, &given.arena), "2 models");
    assert_string_equal(lab_study_count_words(&given.table, 3, &given.arena), "3 configurations");
    given_end(&given);
}

LAB_TEST(test_keys_are_found_by_dots) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    const struct lab_study_run *run =
        given_add(&given, (struct given_run){.model = "vit32x6x512",
                                             .rate = 10,
                                             .options = "{\"depth\": 6, \"dtype\": \"fp32\"}",
                                             .test = "{\"compile_model\": true}",
                                             .result = "{\"ranks\": [{\"h2d_gb_per_s\": 11.5}]}"});
    assert_near(lab_study_number(run, "options.depth"), 6, 0);
    assert_near(lab_study_number(run, "test.compile_model"), 1, 0);
    assert_near(run->result->ranks[0].h2d_gb_per_s, 11.5, 0);
    assert_string_equal(lab_study_text(run, "options.dtype"), "fp32");
    assert_string_equal(lab_study_text(run, "test.compile_model"), "true");
    assert_true(isnan(lab_study_number(run, "options.dtype")));
    assert_true(isnan(lab_study_number(run, "options.width")));
    assert_true(isnan(lab_study_number(run, "result.ranks.1.h2d_gb_per_s")));
    assert_true(isnan(lab_study_number(run, "depth")));
    assert_string_equal(lab_study_text(run, "options.depth"), "");
    given_end(&given);
}

/* --- the rest --- */

/* Three stretches of a double-buffered pipeline, 1 ms each, that is empty before each of them. */
LAB_TEST(test_where_a_pipeline_begins_afresh_is_no_interval) {
    enum { STRETCH = 20, COUNT = 3 * STRETCH };
    struct lab_iteration iterations[COUNT] = {{0}};
    int64_t end_ns = 0;
    for (int i = 0; i < COUNT; i++) {
        bool first = i % STRETCH == 0;
        iterations[i].start_ns = first ? end_ns + 5000 : end_ns - 900000;
        end_ns = iterations[i].end_ns = end_ns + (first ? 2000000 : 1000000);
    }
    struct lab_study_rank rank = {.iterations = iterations, .iteration_count = COUNT};
    struct lab_arena arena;
    lab_arena_init(&arena);
    size_t count;
    const double *intervals = lab_study_intervals(&rank, &arena, &count);
    assert_int_equal(count, COUNT - 3);
    for (size_t i = 0; i < count; i++)
        assert_true(fabs(intervals[i] - 1e-3) < 1e-12);
    lab_arena_release(&arena);
}

/* One after the other, 1 ms each; a measurement pauses for 1 ms after each ten. */
LAB_TEST(test_pauses_between_chunks_are_part_of_no_iteration) {
    enum { COUNT = 40 };
    struct lab_iteration iterations[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        iterations[i].start_ns = (int64_t)(i + i / 10) * 1000000;
        iterations[i].end_ns = iterations[i].start_ns + 1000000;
    }
    struct lab_study_rank rank = {.iterations = iterations, .iteration_count = COUNT};
    struct lab_arena arena;
    lab_arena_init(&arena);
    size_t count;
    const double *intervals = lab_study_intervals(&rank, &arena, &count);
    assert_int_equal(count, COUNT - 1);
    for (size_t i = 0; i < count; i++)
        assert_true(fabs(intervals[i] - 1e-3) < 1e-12);
    lab_arena_release(&arena);
}

LAB_TEST(test_an_interval_is_an_iteration) {
    struct given_study given;
    size_t count;
    given_begin(&given, "stability");
    const struct lab_study_run *run = given_add(
        &given, (struct given_run){.model = "vit32x2x128", .rate = 1000, .iterations = 5});
    const double *intervals = lab_study_intervals(&run->ranks[0], &given.arena, &count);
    assert_int_equal(count, 4);
    assert_near(intervals[3], 0.01, 1e-9);
    run->ranks[0].iteration_count = 1;
    assert_null(lab_study_intervals(&run->ranks[0], &given.arena, &count));
    assert_int_equal(count, 0);
    given_end(&given);
}

static int count_notes(const char *const *notes) {
    int count = 0;
    while (notes[count])
        count++;
    return count;
}

LAB_TEST(test_notes_tell_what_is_missing) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 900, 2, 0);
    const char *const *notes = NULL;
    lab_study_add_notes(&given.table, "", &notes, &given.arena);
    assert_null(notes);
    given.table.planned_count = 8;
    given.table.failed_count = 1;
    given.table.invalid_count = 1;
    given.table.repeated = false;
    given.table.repeats_planned = true;
    lab_study_add_notes(&given.table, "", &notes, &given.arena);
    assert_int_equal(count_notes(notes), 4);
    assert_string_equal(notes[0], "1 of 8 runs failed and is left out.");
    assert_string_equal(notes[1], "3 of 8 runs are still to be done.");
    assert_string_equal(notes[2], "1 run is done but not valid, and left out.");
    assert_contains(notes[3], "2 points have 1 run each: there are values and no verdicts.");
    assert_contains(notes[3], "Finish the study: its repeats give verdicts.");
    lab_study_add_notes(&given.table, "numa_study: ", &notes, &given.arena);
    assert_int_equal(count_notes(notes), 8);
    assert_string_equal(notes[4], "numa_study: 1 of 8 runs failed and is left out.");
    given_end(&given);
}
