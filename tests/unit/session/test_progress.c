/* The status line of a measurement. */
#include "session/session_progress.h"

#include <math.h>

#include "test.h"

static const char *line_of(struct lab_progress progress, struct lab_measure_progress now,
                           struct lab_str *out) {
    lab_str_clear(out);
    lab_progress_line(&progress, &now, out);
    return out->text;
}

LAB_TEST(says_phase_share_median_and_time_left) {
    LAB_AUTO(str, out);
    struct lab_progress progress = {.columns = 100, .label = "gemm", .run = 2, .run_count = 5};
    struct lab_measure_progress now = {.phase = LAB_MEASURE_MEASURE,
                                       .fraction = 0.5,
                                       .left_s = 3.2,
                                       .median_s = 0.0413,
                                       .precision = 0.012};
    assert_string_equal(line_of(progress, now, &out),
                        "gemm, run 2 of 5: measuring ████████████░░░░░░░░░░░░  50%  4 s left  "
                        "41.3 ms ± 1.2%");
}

LAB_TEST(figures_give_way_to_the_bar) {
    LAB_AUTO(str, out);
    struct lab_progress progress = {.label = "gemm", .run = 1, .run_count = 1};
    struct lab_measure_progress now = {.phase = LAB_MEASURE_MEASURE,
                                       .fraction = 0.5,
                                       .left_s = 3.2,
                                       .median_s = 0.0413,
                                       .precision = 0.012};
    progress.columns = 60;
    assert_string_equal(line_of(progress, now, &out),
                        "gemm: measuring ██████░░░░░░  50%  4 s left  41.3 ms ± 1.2%");
    progress.columns = 50;
    assert_string_equal(line_of(progress, now, &out),
                        "gemm: measuring █████████░░░░░░░░░  50%  4 s left");
    progress.columns = 40;
    assert_string_equal(line_of(progress, now, &out), "gemm: measuring █████████░░░░░░░░░  50%");
    progress.columns = 24;
    assert_string_equal(line_of(progress, now, &out), "gemm: measuring   50%");
}

/* The longest label that workloads have, several runs, and an ordinary terminal. */
LAB_TEST(a_bar_fits_80_columns) {
    LAB_AUTO(str, out);
    struct lab_progress progress = {
        .columns = 80, .label = "gemm16384x16384x16384", .run = 10, .run_count = 10};
    struct lab_measure_progress now = {.phase = LAB_MEASURE_MEASURE,
                                       .fraction = 1,
                                       .left_s = 12,
                                       .median_s = 41.3,
                                       .precision = 0.312};
    line_of(progress, now, &out);
    assert_contains(out.text, "██████████");
    assert_in_range(lab_str_columns(out.text), 60, 79);
}

LAB_TEST(leaves_out_what_is_unknown) {
    LAB_AUTO(str, out);
    struct lab_progress progress = {.columns = 100, .label = "gemm", .run = 1, .run_count = 1};
    struct lab_measure_progress now = {.phase = LAB_MEASURE_WARMUP,
                                       .fraction = NAN,
                                       .left_s = NAN,
                                       .median_s = NAN,
                                       .precision = NAN};
    assert_string_equal(line_of(progress, now, &out),
                        "gemm: warming up ░░░░░░░░░░░░░░░░░░░░░░░░   0%");
}
