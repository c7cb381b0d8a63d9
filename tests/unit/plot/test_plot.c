/* Charts as gnuplot's scripts: golden files, and pictures where gnuplot is. */
#include "chart_fixture.h"
#include "unit/report/study_fixture.h"

#include "base/subprocess.h"
#include "plot/plot.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct given {
    struct lab_arena arena;
    struct lab_chart *charts;
    struct lab_str text;
};

static int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    fixture_setup(NULL);
    lab_arena_init(&g->arena);
    lab_str_init(&g->text);
    g->charts = given_charts(&g->arena);
    *state = g;
    return 0;
}

static int end(void **state) {
    struct given *g = *state;
    lab_str_release(&g->text);
    lab_arena_release(&g->arena);
    lab_mem_free(g);
    return 0;
}

static bool has_gnuplot(struct lab_arena *arena) {
    const char *argv[] = {"gnuplot", "--version", NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = 256, .timeout_ns = 10000000000};
    struct lab_subprocess_result result;
    return lab_subprocess_run(&spec, arena, &result, NULL) == 0 && result.exit_status == 0;
}

/* Given a chart of every kind, when its script is written, then it is the one that was looked
 * at. */
LAB_TEST(scripts_hold) {
    struct given *g = *state;
    for (int i = 0; i < GIVEN_CHARTS; i++) {
        lab_str_clear(&g->text);
        lab_plot_script(&g->charts[i], g->charts[i].name, &g->text);
        assert_golden(g->text.text, lab_arena_printf(&g->arena, "plot-%s.gp", g->charts[i].name));
    }
}

LAB_TEST(data_hold) {
    struct given *g = *state;
    struct lab_chart heat = given_heat(&g->arena), law = given_law(&g->arena);
    lab_plot_data(&heat, &g->text);
    lab_plot_data(&law, &g->text);
    assert_golden(g->text.text, "plot-data.dat");
}

static int count_lines(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Given 5000 points with one that stands out, when they are too many for a picture, it is kept. */
LAB_TEST(long_series_keep_their_extremes) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 5000, 1), *y = given_count(&g->arena, 5000, 0);
    y[3777] = 99;
    y[1234] = -7;
    struct lab_chart_series series = {
        .title = "t", .mark = LAB_CHART_LINE, .x = x, .y = y, .count = 5000};
    struct lab_chart_panel panel = {
        .x = given_axis("x"), .y = given_axis("y"), .series = &series, .series_count = 1};
    struct lab_chart chart = {.name = "spike", .panels = &panel, .panel_count = 1};
    lab_plot_data(&chart, &g->text);
    assert_true(count_lines(g->text.text) < 2100);
    assert_contains(g->text.text, "\n 3777 99 ");
    assert_contains(g->text.text, "\n 1234 -7 ");
}

/* Given a simulated chart, then the word is drawn; given a real one, it isn't. */
LAB_TEST(simulated_is_drawn_into_the_picture) {
    struct given *g = *state;
    for (int i = 0; i < GIVEN_CHARTS; i++) {
        lab_str_clear(&g->text);
        lab_plot_script(&g->charts[i], "x", &g->text);
        assert_int_equal(strstr(g->text.text, "'simulated'") != NULL, g->charts[i].simulated);
    }
}

/* Given words that mean something to gnuplot, then they stay words: in single quotes. */
LAB_TEST(words_stay_words) {
    struct given *g = *state;
    struct lab_chart_axis axis = given_axis("`rm -rf` it's");
    struct lab_chart_panel panel = {.title = "a\nb'", .x = axis, .y = given_axis("y")};
    struct lab_chart chart = {
        .name = "x", .title = "'; system 'id", .panels = &panel, .panel_count = 1};
    lab_plot_script(&chart, "x", &g->text);
    assert_contains(g->text.text, "'''; system ''id'");
    assert_contains(g->text.text, "'`rm -rf` it''s'");
    assert_contains(g->text.text, "'a b'''");
}

static bool is_there(const char *name, const char *ending) {
    return access(test_path("%s.%s", name, ending), F_OK) == 0;
}

/* Given charts of which two have one name, when they are drawn, then each has its own files. */
LAB_TEST(charts_are_drawn) {
    struct given *g = *state;
    struct lab_plot plots[3] = {0};
    struct lab_chart charts[] = {given_heat(&g->arena), given_heat(&g->arena),
                                 given_little(&g->arena)};
    charts[2].name = "../odd name";
    bool able = has_gnuplot(&g->arena);
    lab_plot_draw(charts, 3, test_folder(), 0, &g->arena, plots);
    assert_string_equal(plots[0].name, "heat");
    assert_string_equal(plots[1].name, "heat_2");
    assert_string_equal(plots[2].name, "___odd_name");
    for (int i = 0; i < 3; i++) {
        assert_true(plots[i].written);
        assert_true(is_there(plots[i].name, "gp") && is_there(plots[i].name, "dat"));
        assert_int_equal(plots[i].drawn, able);
        assert_int_equal(is_there(plots[i].name, "png"), able);
        assert_int_equal(is_there(plots[i].name, "svg"), able);
    }
    const char *missing = lab_plot_missing(plots, 3, &g->arena);
    if (able)
        assert_null(missing);
    else
        assert_contains(missing, LAB_PLOT_GET);
}

/* Given no gnuplot on the path, then scripts and figures are written, and it is said how to get
 * it. */
LAB_TEST(without_gnuplot_scripts_remain) {
    struct given *g = *state;
    struct lab_plot plot = {0};
    struct lab_chart chart = given_bars(&g->arena);
    char *path = lab_mem_strdup(getenv("PATH") ? getenv("PATH") : "");
    char link_path[128];
    snprintf(link_path, sizeof link_path, "%s/env", test_folder());
    assert_int_equal(symlink("/usr/bin/env", link_path), 0);
    setenv("PATH", test_folder(), 1);
    lab_plot_draw(&chart, 1, test_folder(), 0, &g->arena, &plot);
    setenv("PATH", path, 1);
    lab_mem_free(path);
    assert_true(plot.written && !plot.drawn && plot.without);
    assert_true(is_there("bars", "gp"));
    assert_contains(lab_plot_missing(&plot, 1, &g->arena), LAB_PLOT_GET);
}

/* Given a deadline that has passed, then nothing is drawn and the reason is said. */
LAB_TEST(nothing_is_drawn_after_the_deadline) {
    struct given *g = *state;
    struct lab_plot plot = {0};
    struct lab_chart chart = given_bars(&g->arena);
    lab_plot_draw(&chart, 1, test_folder(), 1, &g->arena, &plot);
    assert_false(plot.drawn);
    assert_contains(lab_plot_missing(&plot, 1, &g->arena), "no time was left");
}

/* Given gnuplot's SVG, when it goes into a page, then ids have a prefix and colours are the
 * page's. */
LAB_TEST(svg_becomes_a_part_of_a_page) {
    struct given *g = *state;
    lab_plot_inline_svg(
        "<?xml version=\"1.0\"?>\n<svg \n width=\"8\" height=\"4\"\n viewBox=\"0 0 8 4\">\n"
        "<title>Gnuplot</title><rect x=\"0\" y=\"0\" width=\"8\" height=\"4\" fill=\"#ffffff\"/>"
        "<defs><circle id='gpDot' r='0.5'/></defs><g fill=\"none\">\n</g>"
        "<g><path stroke='rgb(  0, 114, 178)'/><use xlink:href='#gpDot' "
        "color='rgb( 34,  34,  34)'/><path fill='rgb(1, 2, 3)'/>"
        "<text>rgb(0, 114, 178) id='x'</text></g></svg>",
        "c7", &g->text);
    assert_string_equal(g->text.text,
                        "<svg role=\"img\" viewBox=\"0 0 8 4\" style=\"min-width:4px\">\n"
                        "<defs><circle id='c7-gpDot' r='0.5'/></defs>"
                        "<g><path stroke='var(--c0)'/><use href='#c7-gpDot' color='var(--ink)'/>"
                        "<path fill='#010203'/><text>rgb(0, 114, 178) id='x'</text></g></svg>");
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
