/* The one line of `gpulab run`: whole on a wide terminal, and on a narrow one without what matters
 * least. */
#include "study_fixture.h"

static const struct lab_report_bar half = {
    .done = 3,
    .total = 48,
    .fraction = 0.5,
    .run = "gpu0_numa1_vit32x6x512",
    .phase = "measuring",
    .iterations = 120,
    .iteration_total = 200,
    .elapsed_s = 12,
    .left_s = 130,
};

static char *line_of(struct lab_report_bar bar, int columns, bool unicode) {
    struct lab_str out;
    lab_str_init(&out);
    lab_report_bar(&bar, (struct lab_style){.columns = columns, .unicode = unicode}, &out);
    return out.text;
}

static void assert_line(struct lab_report_bar bar, int columns, bool unicode, const char *line) {
    char *text = line_of(bar, columns, unicode);
    assert_string_equal(text, line);
    lab_mem_free(text);
}

LAB_TEST(whole_where_wide) {
    assert_line(
        half, 120, true,
        "  3/48 ▕████████████            ▏ gpu0_numa1_vit32x6x512 measuring 120/200 · 2 min "
        "left");
    assert_line(half, 120, false,
                "  3/48 [############............] gpu0_numa1_vit32x6x512 measuring 120/200, 2 min "
                "left");
}

/* The bar gives way first, then the name, then words, and figures last. */
LAB_TEST(narrow_keeps_figures) {
    assert_line(half, 80, true,
                "  3/48 ▕██████      ▏ gpu0_numa1_vit32x6x512 measuring 120/200 · 2 min left");
    assert_line(half, 64, true, "  3/48 ▕██████      ▏ gpu0_numa… measuring 120/200 · 2 min left");
    assert_line(half, 55, true, "  3/48 ▕██████      ▏ measuring 120/200 · 2 min left");
    assert_line(half, 48, true, "  3/48 ▕██████      ▏ 120/200 · 2 min left");
    assert_line(half, 32, true, "  3/48 ▕████    ▏ · 2 min left");
    assert_line(half, 26, true, "  3/48 50% · 2 min left");
    assert_line(half, 20, true, "  3/48 50%");
}

LAB_TEST(fits_any_width) {
    struct lab_report_bar bars[] = {half, half, half};
    bars[1].done = bars[1].total = bars[1].failed = 10000;
    bars[1].fraction = 1;
    bars[2].run = "gpu0+1+2+3+4+5+6+7_numa0_vit16x12x1024_batch_size64_memory_size_mb2048_compiled";
    bars[2].left_s = NAN;
    bars[2].failed = 3;
    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++)
        for (int columns = 20; columns <= 200; columns++)
            for (int unicode = 0; unicode < 2; unicode++) {
                char *text = line_of(bars[i], columns, unicode);
                assert_fits(text, columns - 1);
                assert_null(strchr(text, '\n'));
                if (!unicode)
                    assert_ascii(text);
                lab_mem_free(text);
            }
}

LAB_TEST(failures_and_the_unknown_are_said) {
    struct lab_report_bar bar = half;
    bar.failed = 2;
    bar.left_s = NAN;
    bar.iteration_total = 0;
    assert_line(
        bar, 120, true,
        "  3/48 2 failed ▕████████████            ▏ gpu0_numa1_vit32x6x512 measuring 120 · 12 s "
        "so far");
    bar.phase = bar.run = "";
    bar.iterations = 0;
    bar.elapsed_s = 0;
    assert_line(bar, 120, true, "  3/48 2 failed ▕████████████            ▏");
}

/* A coloured line is as wide as it looks, not as its escape sequences are long. */
LAB_TEST(colour_takes_no_room) {
    struct lab_report_bar bar = half;
    bar.failed = 2;
    LAB_AUTO(str, plain);
    LAB_AUTO(str, coloured);
    lab_report_bar(&bar, (struct lab_style){.columns = 80, .unicode = true}, &plain);
    lab_report_bar(&bar, (struct lab_style){80, true, true}, &coloured);
    assert_contains(coloured.text, "\033[1;31m2 failed\033[0m");
    assert_int_equal(coloured.length, plain.length + strlen("\033[1;31m\033[0m"));
}

/* In eighths of a column; full only when all is done. */
LAB_TEST(the_bar_is_smooth) {
    struct lab_report_bar bar = {.total = 8, .left_s = NAN};
    static const struct {
        double fraction;
        const char *bar;
    } rows[] = {
        {0, "▕                        ▏"},         {1.0 / 192, "▕▏                       ▏"},
        {4.0 / 192, "▕▌                       ▏"}, {1.0 / 24, "▕█                       ▏"},
        {0.9999, "▕███████████████████████▉▏"},    {1, "▕████████████████████████▏"},
        {1.7, "▕████████████████████████▏"},       {NAN, "▕                        ▏"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bar.fraction = rows[i].fraction;
        char *text = line_of(bar, 80, true);
        assert_contains(text, rows[i].bar);
        lab_mem_free(text);
    }
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
