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

/* --- ratios --- */

static struct lab_study_ratio compare(struct given_study *given, enum lab_study_figure figure) {
    struct lab_study_point *points;
    assert_int_equal(make_points(given, &points), 2);
    return lab_study_compare(&points[0], &points[1], figure);
}

LAB_TEST(test_a_clear_difference_is_found) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 876, 5, 0.005);
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(ratio.verdict, LAB_STUDY_LESS);
    assert_true(ratio.low < 0.876 && ratio.high > 0.876);
    assert_false(ratio.within);
    assert_int_equal(ratio.base_runs, 5);
    assert_int_equal(ratio.needed, 0);
    /* times tell the same the other way round */
    struct lab_study_ratio time = compare(&given, LAB_STUDY_TIME);
    assert_int_equal(time.verdict, LAB_STUDY_MORE);
    assert_near(time.ratio, 1 / ratio.ratio, 1e-9);
    assert_near(time.low, 1 / ratio.high, 1e-9);
    given_end(&given);
}

LAB_TEST(test_no_difference_says_how_large_one_could_be) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 1000, 5, 0.01);
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(ratio.verdict, LAB_STUDY_SAME);
    assert_true(ratio.bound > 0 && ratio.bound < 0.05);
    assert_true(ratio.needed > 5);
    assert_int_equal(strncmp(lab_study_ratio_words(&ratio, &given.arena), "none larger than ", 17),
                     0);
    given_end(&given);
}

LAB_TEST(test_a_single_run_borrows_the_spread_of_the_others) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 500, 4, 0.01);
    for (int i = 3; i < given.table.run_count; i += 2)
        given.table.runs[i].used = false; /* one is left of node 1 */
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(ratio.other_runs, 1);
    assert_false(ratio.within);
    assert_int_equal(ratio.verdict, LAB_STUDY_LESS);
    assert_true(ratio.low < 0.5 && ratio.high > 0.5);
    given_end(&given);
}

static struct lab_study_ratio compare_single(double other, int iterations, double spread) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        given_add(&given, (struct given_run){.model = "vit32x2x128",
                                             .node = node,
                                             .rate = node ? other : 1000,
                                             .iterations = iterations,
                                             .spread = spread});
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    struct lab_study_ratio time = compare(&given, LAB_STUDY_TIME);
    assert_int_equal(isnan(ratio.low), isnan(time.low));
    given_end(&given);
    return ratio;
}

LAB_TEST(test_one_run_each_gives_no_verdict) {
    struct lab_study_ratio small = compare_single(985, 400, 0.02);
    assert_true(small.within);
    assert_true(small.high < 1); /* it is there, but another run might not have it */
    assert_int_equal(small.verdict, LAB_STUDY_UNDECIDED);
    struct lab_study_ratio large = compare_single(900, 400, 0.02);
    assert_true(large.within);
    assert_int_equal(large.verdict, LAB_STUDY_UNDECIDED);
    struct lab_study_ratio blurred = compare_single(970, 20, 0.3);
    assert_int_equal(blurred.verdict, LAB_STUDY_UNDECIDED);
    assert_true(blurred.bound > 0.03);
}

LAB_TEST(test_one_run_each_without_iterations_is_undecided) {
    struct lab_study_ratio ratio = compare_single(500, 0, 0);
    assert_near(ratio.ratio, 0.5, 1e-9);
    assert_true(isnan(ratio.low) && isnan(ratio.p));
    assert_int_equal(ratio.verdict, LAB_STUDY_UNDECIDED);
}

LAB_TEST(test_the_runs_own_interval_serves_where_iterations_were_not_read) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 800, 1, 0);
    for (int i = 0; i < 2; i++) {
        struct lab_run *run = (struct lab_run *)given.table.runs[i].run;
        run->rate_low = run->rate * 0.99;
        run->rate_high = run->rate * 1.01;
    }
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    assert_near(ratio.low, 0.8 * 0.9859, 1e-3); /* √2 × 1 % */
    assert_int_equal(ratio.verdict, LAB_STUDY_UNDECIDED);
    given_end(&given);
}

LAB_TEST(test_constant_values_are_certain) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 1000, 3, 0);
    struct lab_study_ratio same = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(same.verdict, LAB_STUDY_SAME);
    assert_near(same.p, 1, 0);
    assert_string_equal(lab_study_ratio_words(&same, &given.arena), "none");
    given_end(&given);
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 950, 3, 0);
    struct lab_study_ratio less = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(less.verdict, LAB_STUDY_LESS);
    assert_near(less.p, 0, 0);
    assert_string_equal(lab_study_ratio_words(&less, &given.arena), "-5.0 % [-5.0, -5.0]");
    given_end(&given);
}

LAB_TEST(test_values_that_are_none_are_left_out) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_pair(&given, 1000, 900, 3, 0.001);
    given.table.runs[0].rate = NAN;
    given.table.runs[1].rate = 0;
    struct lab_study_ratio ratio = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(ratio.base_runs, 2);
    assert_int_equal(ratio.other_runs, 2);
    assert_false(isnan(ratio.low));
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].rate = NAN;
    ratio = compare(&given, LAB_STUDY_RATE);
    assert_int_equal(ratio.verdict, LAB_STUDY_UNDECIDED);
    assert_string_equal(lab_study_ratio_words(&ratio, &given.arena), "unknown");
    given_end(&given);
}

LAB_TEST(test_words_of_a_difference_have_sign_and_interval) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_study_ratio ratio = {
        .ratio = 1.124, .low = 1.113, .high = 1.135, .bound = 0.135, .verdict = LAB_STUDY_MORE};
    assert_string_equal(lab_study_ratio_words(&ratio, &arena), "+12.4 % [11.3, 13.5]");
    ratio.within = true;
    assert_string_equal(lab_study_ratio_words(&ratio, &arena),
                        "+12.4 % [11.3, 13.5] within one run each");
    struct lab_study_ratio same = {
        .ratio = 0.999, .low = 0.9921, .high = 1.006, .bound = 0.0079, .verdict = LAB_STUDY_SAME};
    assert_string_equal(lab_study_ratio_words(&same, &arena), "none larger than 0.8 %");
    lab_arena_release(&arena);
}

/* --- the promise of the intervals --- */

#define STUDIES 2000

/* At 95 %, of 2,000 ratios with a known truth 93 to 97 % lie within their intervals. */
static void check_coverage(int base_runs, int other_runs) {
    int covered = 0;
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int i = 0; i < STUDIES; i++) {
        double base[8], other[8];
        for (int r = 0; r < base_runs; r++)
            base[r] = 1000 * exp(0.03 * given_normal(&given));
        for (int r = 0; r < other_runs; r++)
            other[r] = 880 * exp(0.03 * given_normal(&given));
        struct lab_study_point a = {.count = base_runs, .rates = base, .times_s = base};
        struct lab_study_point b = {.count = other_runs, .rates = other, .times_s = other};
        struct lab_study_ratio ratio = lab_study_compare(&a, &b, LAB_STUDY_RATE);
        covered += ratio.low <= 0.88 && ratio.high >= 0.88;
    }
    given_end(&given);
    assert_in_range(covered, STUDIES * 93 / 100, STUDIES * 97 / 100);
}

LAB_TEST(test_intervals_cover_as_they_say) {
    check_coverage(3, 3);
    check_coverage(5, 5);
    check_coverage(8, 3);
    check_coverage(5, 1);
}

LAB_TEST(test_many_comparisons_are_judged_together) {
    enum { SETS = 100, SIZE = 20 };
    struct given_study given;
    int alarms_alone = 0, alarms_together = 0;
    given_begin(&given, "numa_study");
    for (int set = 0; set < SETS; set++) {
        struct lab_study_ratio ratios[SIZE];
        bool alone = false, together = false;
        for (int i = 0; i < SIZE; i++) {
            double base[3], other[3];
            for (int r = 0; r < 3; r++) {
                base[r] = exp(0.02 * given_normal(&given));
                other[r] = exp(0.02 * given_normal(&given));
            }
            struct lab_study_point a = {.count = 3, .rates = base, .times_s = base};
            struct lab_study_point b = {.count = 3, .rates = other, .times_s = other};
            ratios[i] = lab_study_compare(&a, &b, LAB_STUDY_RATE);
            alone |= ratios[i].verdict == LAB_STUDY_MORE || ratios[i].verdict == LAB_STUDY_LESS;
        }
        lab_study_adjust(ratios, SIZE);
        for (int i = 0; i < SIZE; i++)
            together |= ratios[i].verdict == LAB_STUDY_MORE || ratios[i].verdict == LAB_STUDY_LESS;
        alarms_alone += alone;
        alarms_together += together;
    }
    assert_true(alarms_alone > SETS / 3); /* each has its 5 %: in 20 of them, often one */
    assert_true(alarms_together <= 12);   /* 5 of 100 expected; 12 or more have p < 0.5 % */
    given_end(&given);
}

LAB_TEST(test_a_demoted_difference_says_how_many_runs_would_tell) {
    struct lab_study_ratio ratios[40];
    for (int i = 0; i < 40; i++)
        ratios[i] = (struct lab_study_ratio){.ratio = 1.03,
                                             .low = 1.001,
                                             .high = 1.06,
                                             .bound = 0.06,
                                             .p = i ? 0.9 : 0.04,
                                             .base_runs = 3,
                                             .other_runs = 3,
                                             .spread = 0.01,
                                             .verdict = LAB_STUDY_MORE};
    lab_study_adjust(ratios, 40);
    assert_int_equal(ratios[0].verdict, LAB_STUDY_SAME);
    assert_true(ratios[0].needed > 3);
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
    /* one after the other, each does */
    for (int i = 1; i < COUNT; i++)
        iterations[i].start_ns = iterations[i - 1].end_ns + 5000;
    lab_study_intervals(&rank, &arena, &count);
    assert_int_equal(count, COUNT - 1);
    lab_arena_release(&arena);
}

LAB_TEST(test_intervals_run_from_end_to_end) {
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
    lab_study_add_notes(&given.table, "", &notes, &given.arena);
    assert_int_equal(count_notes(notes), 4);
    assert_string_equal(notes[0], "1 of 8 runs failed and is left out.");
    assert_string_equal(notes[1], "3 of 8 runs are still to be done.");
    assert_string_equal(notes[2], "1 run is done but not valid, and left out.");
    lab_study_add_notes(&given.table, "numa_study: ", &notes, &given.arena);
    assert_int_equal(count_notes(notes), 8);
    assert_string_equal(notes[4], "numa_study: 1 of 8 runs failed and is left out.");
    given_end(&given);
}
