/* Charts: what lies where in their scenes, their files, and pictures where gnuplot is. */
#include "chart_fixture.h"
#include "unit/report/study_fixture.h"

#include "base/subprocess.h"
#include "plot/plot_internal.h"

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

/* --- geometry --- */

static const struct plot_format *const formats[] = {&plot_page, &plot_paper};

static struct plot_scene scene_of(struct given *g, const struct lab_chart *chart, int format) {
    struct plot_scene scene;
    plot_scene_make(chart, formats[format], &g->arena, &scene);
    return scene;
}

struct box {
    double left, top, right, bottom;
};

/* Of a text in coordinates that are turned by `angle`, in which texts of that angle lie level. */
static struct box box_of(const struct plot_mark *text, int angle) {
    double width = plot_text_width(text->text, text->size), height = 0.9 * text->size;
    double before = text->anchor == PLOT_START ? 0 : text->anchor == PLOT_STOP ? width : width / 2;
    double own = text->angle * 3.14159265 / 180, turn = angle * 3.14159265 / 180;
    struct box box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int c = 0; c < 4; c++) {
        double along = (c % 2 ? width : 0) - before, across = (c / 2 ? 0.5 : -0.5) * height;
        double x = text->x + along * cos(own) + across * sin(own),
               y = text->y - along * sin(own) + across * cos(own);
        double level_x = x * cos(turn) - y * sin(turn), level_y = x * sin(turn) + y * cos(turn);
        box = (struct box){fmin(box.left, level_x), fmin(box.top, level_y),
                           fmax(box.right, level_x), fmax(box.bottom, level_y)};
    }
    return box;
}

static bool overlap(const struct plot_mark *a, const struct plot_mark *b) {
    bool apart = false; /* by a line along either of them */
    int angles[] = {a->angle, b->angle};
    for (int i = 0; i < 2; i++) {
        struct box x = box_of(a, angles[i]), y = box_of(b, angles[i]);
        apart |= x.right <= y.left + 0.1 || y.right <= x.left + 0.1 || x.bottom <= y.top + 0.1 ||
                 y.bottom <= x.top + 0.1;
    }
    return !apart;
}

static void assert_texts_apart(const struct plot_scene *scene, const char *name) {
    for (int i = 0; i < scene->count; i++) {
        const struct plot_mark *a = &scene->marks[i];
        if (a->kind != PLOT_TEXT)
            continue;
        struct box box = box_of(a, 0);
        if (box.left < -1 || box.top < -1 || box.right > scene->width + 1 ||
            box.bottom > scene->height + 1)
            fail_msg("%s, %d wide: '%s' leaves the picture", name, scene->width, a->text);
        for (int k = 0; k < i; k++)
            if (scene->marks[k].kind == PLOT_TEXT && overlap(a, &scene->marks[k]))
                fail_msg("%s, %d wide: '%s' lies on '%s'", name, scene->width, a->text,
                         scene->marks[k].text);
    }
}

/* Given charts of every kind, bad ones too, then no text lies on another or beyond the edge, on a
 * page and in a column of a paper. */
LAB_TEST(texts_lie_apart) {
    struct given *g = *state;
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < GIVEN_CHARTS; i++) {
            struct plot_scene scene = scene_of(g, &g->charts[i], f);
            assert_texts_apart(&scene, g->charts[i].name);
        }
}

/* Given names of 200 characters, equal values, NaN and infinity, then all of it is legible. */
LAB_TEST(bad_input_is_legible) {
    struct given *g = *state;
    char name[3][201];
    const char *names[] = {name[0], name[1], name[2]};
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%0200d", 7 + i);
    double x[] = {0, 1, 2}, y[] = {5, 5, 5}, bad[] = {NAN, INFINITY, -INFINITY};
    for (int log = 0; log < 2; log++)
        for (int mark = 0; mark <= LAB_CHART_DASHES; mark++)
            for (int f = 0; f < 2; f++) {
                struct lab_chart_series series[] = {
                    {names[0], (enum lab_chart_mark)mark, x, y, y, y, y, y, 3, -1, true},
                    {names[1], (enum lab_chart_mark)mark, x, bad, bad, bad, bad, bad, 3, -1, true}};
                struct lab_chart_panel panel = {.title = names[2],
                                                .x = given_names(names[0], names, 3),
                                                .y = given_axis(names[1]),
                                                .series = series,
                                                .series_count = 2};
                panel.y.log = log;
                if (mark == LAB_CHART_ROW)
                    panel.y = given_names(names[1], names, 2);
                struct lab_chart chart = {
                    .name = "x", .title = names[0], .panels = &panel, .panel_count = 1};
                struct plot_scene scene = scene_of(g, &chart, f);
                assert_texts_apart(&scene, "bad input");
                lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
            }
    assert_null(strstr(g->text.text, "nan"));
    assert_null(strstr(g->text.text, "inf"));
}

/* Given a logarithmic axis beyond 100,000, then all its ticks from 1000 have the prefix. */
LAB_TEST(decades_are_written_alike) {
    struct given *g = *state;
    static const double x[] = {1, 2, 3}, y[] = {90, 9e3, 1.1e5};
    struct lab_chart_series series = {"a", LAB_CHART_POINTS, x, y, .count = 3, .colour = -1};
    struct lab_chart_panel panel = {
        .x = given_axis("x"), .y = given_axis("y"), .series = &series, .series_count = 1};
    struct lab_chart chart = {.name = "x", .title = "x", .panels = &panel, .panel_count = 1};
    panel.y.log = true;
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    static const char *const texts[] = {">100<", ">1k<", ">10k<", ">100k<"};
    for (int i = 0; i < 4; i++)
        assert_contains(g->text.text, texts[i]);
}

/* Given ids of runs, then they are said in words, without what all share. */
LAB_TEST(ids_are_said_in_words) {
    struct given *g = *state;
    static const char *const ids[] = {"gpu0+1+2_numa0+0+1_vit16x12x1024_batch_size8_tree_r0",
                                      "gpu0+1+2_numa0+0+1_vit16x12x1024_batch_size8_tree_r1"};
    struct lab_chart_panel panels[] = {{.title = ids[0]}, {.title = ids[1]}};
    struct lab_chart chart = {.name = "x", .panels = panels, .panel_count = 2};
    assert_string_equal(plot_shorten(&chart, &g->arena).panels[1].title, "run 2");
    chart.panel_count = 1;
    assert_contains(plot_shorten(&chart, &g->arena).panels[0].title, "GPU 0–2, NUMA node 0–1, ");
}

/* Given a long list of settings, then whole ones from its beginning are left, not its two ends. */
LAB_TEST(lists_are_cut_at_their_end) {
    struct given *g = *state;
    static const char *const names[] = {"defaults", "algo tree",
                                        "algo tree, proto simple, p2p disabled, channels_max 8"};
    struct lab_chart_panel panel = {.x = given_names("Settings", names, 3)};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    assert_string_equal(plot_shorten(&chart, &g->arena).panels[0].x.names[2],
                        "algo tree, proto simple, …");
}

/* Given two panels of one quantity, then equal heights are equal values, unless one would be a
 * line; intervals are promised where they can be seen, and a band's entry of the key likewise. */
LAB_TEST(panels_compare_and_captions_promise_what_is_seen) {
    struct given *g = *state;
    static const double x[] = {1, 2}, values[][2] = {{0.8, 1}, {0.83, 1}, {80, 100}};
    for (int wide = 0; wide < 2; wide++) {
        struct lab_chart_series series[3], bands[3];
        struct lab_chart_panel panels[3];
        for (int p = 0; p < 3; p++) {
            double by = wide ? 0.1 : 1e-4;
            series[p] =
                (struct lab_chart_series){.mark = LAB_CHART_LINE_POINTS,
                                          .x = x,
                                          .y = values[p],
                                          .low = given_copy(&g->arena, values[p], 2, 1 - by),
                                          .high = given_copy(&g->arena, values[p], 2, 1 + by),
                                          .count = 2};
            panels[p] = (struct lab_chart_panel){.x = given_axis("Batch"),
                                                 .y = given_axis("Speed-up"),
                                                 .series = &series[p],
                                                 .series_count = 1};
            bands[p] = series[p];
            bands[p].mark = LAB_CHART_BAND;
            bands[p].title = "prediction";
        }
        struct lab_chart chart = {
            .panels = panels, .panel_count = 2, .columns = 2, .intervals = "95% intervals"};
        struct plot_layout layout;
        plot_layout_make(&chart, &plot_page, &g->arena, &layout);
        assert_true(layout.panels[0].y.low == layout.panels[1].y.low &&
                    layout.panels[0].y.high == layout.panels[1].y.high);
        assert_string_equal(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
                            wide ? "Bands are 95% intervals."
                                 : "95% intervals are narrower than the marks.");
        const double *const low = series[0].low;
        double one[] = {low[0], NAN}; /* a mark without one; a cost model's line has no marks */
        series[0].low = one;
        assert_int_equal(strstr(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
                                "Marks without one: too few runs.") != NULL,
                         wide);
        series[0].mark = LAB_CHART_DASHES;
        assert_null(
            strstr(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena), "too few runs"));
        series[0].mark = LAB_CHART_LINE_POINTS;
        series[0].low = low;
        chart.panel_count = 3;
        panels[0].series = &bands[0];
        plot_layout_make(&chart, &plot_page, &g->arena, &layout);
        assert_true(layout.panels[1].y.high < 2 && layout.panels[2].y.high > 80);
        assert_contains(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
                        " Ranges of y differ.");
        assert_int_equal(layout.key_count, wide);
    }
}

/* Given one interval that its mark covers, next to one that is seen, then the caption says so, and
 * where another has none, both. */
LAB_TEST(a_whisker_within_its_mark_is_explained) {
    struct given *g = *state;
    double x[] = {1, 2, 3}, y[] = {1, 1.5, 2}, low[] = {0.5, 1.499, 1.2},
           high[] = {1.4, 1.501, 2.4};
    struct lab_chart_series series = {
        .mark = LAB_CHART_POINTS, .x = x, .y = y, .low = low, .high = high, .count = 3};
    struct lab_chart_panel panel = {.x = given_axis("Batch"),
                                    .y = given_axis("Speed-up"),
                                    .series = &series,
                                    .series_count = 1};
    struct lab_chart chart = {.panels = &panel, .panel_count = 1, .intervals = "95% intervals"};
    assert_string_equal(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
                        "Whiskers are 95% intervals. Marks without one: narrower than the mark.");
    low[2] = high[2] = NAN;
    assert_string_equal(
        lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
        "Whiskers are 95% intervals. Marks without one: too few runs, or narrower than the mark.");
}

/* Given intervals of two runs that reach twenty times as far as the values, then the axis follows
 * the values, and what leaves it is an arrow. One that no neighbour continues is a whisker. */
LAB_TEST(the_axis_follows_the_values) {
    struct given *g = *state;
    double x[] = {16, 32, 64, 128}, y[] = {0.45, 0.53, 0.66, 0.94}, low[] = {NAN, 0.2, NAN, 0.04},
           high[] = {NAN, 2.3, NAN, 20.5};
    struct lab_chart_series series = {
        .mark = LAB_CHART_LINE_POINTS, .x = x, .y = y, .low = low, .high = high, .count = 4};
    struct lab_chart_panel panel = {.x = given_axis("Batch"),
                                    .y = given_axis("Speed-up"),
                                    .series = &series,
                                    .series_count = 1};
    struct lab_chart chart = {.panels = &panel, .panel_count = 1, .intervals = "95% intervals"};
    struct plot_layout layout;
    plot_layout_make(&chart, &plot_page, &g->arena, &layout);
    assert_true(layout.panels[0].y.low == 0 && layout.panels[0].y.high < 2.1);
    assert_contains(lab_plot_caption(&chart, (struct lab_plot_view){0}, &g->arena),
                    "Arrows: beyond the axis.");
    struct plot_scene scene = scene_of(g, &chart, 0);
    int points = 0; /* of whiskers: eleven each */
    for (int i = 0; i < scene.count; i++)
        if (scene.marks[i].kind == PLOT_LINE && scene.marks[i].width == 1.2)
            points += scene.marks[i].count;
    assert_int_equal(points, 2 * 11);
}

static bool is_value(const struct plot_mark *mark) {
    return mark->kind == PLOT_TEXT && lab_str_equal(mark->text, "7.5");
}

/* Given 25 to 150 on a logarithmic axis, then more than 50 and 100 are at its ticks: with those
 * alone, 25 looked like 0. */
LAB_TEST(logarithmic_axes_show_that_they_are) {
    static const double x[] = {0.74, 1.44, 4, 6.6}, y[] = {24.6, 43.7, 101, 153};
    struct lab_chart_series series = {NULL, LAB_CHART_POINTS, x, y, .count = 4, .colour = -1};
    struct lab_chart_panel panel = {
        .x = given_axis("x"), .y = given_axis("y"), .series = &series, .series_count = 1};
    const struct lab_chart_panel *panels[] = {&panel};
    panel.x.log = panel.y.log = true;
    struct plot_axis axis;
    plot_axis_make(panels, 1, false, 250, 12, &axis);
    assert_int_equal(axis.tic_count, 3);
    assert_string_equal(axis.tics[0].text, "30");
    plot_axis_make(panels, 1, true, 300, 12, &axis);
    assert_true(axis.tic_count >= 3);
}

/* Given a range with one round step in it, or two decades, then y still has three ticks. */
LAB_TEST(axes_have_three_ticks) {
    static const double x[] = {0, 1}, small[] = {-0.45, 0.4}, far[] = {0.0148, 1};
    struct lab_chart_series series = {NULL, LAB_CHART_POINTS, x, small, .count = 2, .colour = -1};
    struct lab_chart_panel panel = {
        .x = given_axis("x"), .y = given_axis("y"), .series = &series, .series_count = 1};
    const struct lab_chart_panel *panels[] = {&panel};
    struct plot_axis axis;
    plot_axis_make(panels, 1, false, 130, 11, &axis);
    assert_true(axis.tic_count >= 3);
    series.y = far;
    panel.y.log = true;
    plot_axis_make(panels, 1, false, 130, 11, &axis);
    assert_true(axis.tic_count >= 3);
    assert_string_equal(axis.tics[0].text, "0.02");
}

/* Given three rows of panels with long names, then the second has them, too; and a title of two
 * lines keeps its end. */
LAB_TEST(names_are_near_and_titles_whole) {
    struct given *g = *state;
    static const char *const names[] = {"GPU 0, NUMA node 0, batch 16",
                                        "GPU 0, NUMA node 0, batch 32",
                                        "GPU 1, NUMA node 0, batch 16"};
    static const double x[] = {0, 1, 2}, y[] = {1, 2, 3};
    struct lab_chart_series series = {.mark = LAB_CHART_POINTS, .x = x, .y = y, .count = 3};
    struct lab_chart_panel panels[3];
    for (int p = 0; p < 3; p++)
        panels[p] = (struct lab_chart_panel){
            .title = lab_arena_printf(&g->arena, "NUMA node %d, batch 8, 512 MiB pool, 224 px", p),
            .x = given_names("", names, 3),
            .y = given_axis("Rate"),
            .series = &series,
            .series_count = 1};
    struct lab_chart chart = {.panels = panels, .panel_count = 3};
    struct plot_format narrow = plot_page;
    narrow.width = 420;
    struct plot_scene scene;
    plot_scene_make(&chart, &narrow, &g->arena, &scene);
    int named = 0, ends = 0;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        named += mark->kind == PLOT_TEXT && mark->angle != 0;
        ends += mark->kind == PLOT_TEXT && lab_str_ends(mark->text, "224 px");
    }
    assert_int_equal(named, 2 * 3);
    assert_int_equal(ends, 3);
    assert_texts_apart(&scene, "names");
}

/* Given more and more bars with values, then no two neighbours read as one number. */
LAB_TEST(values_of_bars_have_gaps) {
    struct given *g = *state;
    double x[16], y[16];
    for (int i = 0; i < 16; i++) {
        x[i] = i % 4;
        y[i] = 7.5;
    }
    for (int bars = 2; bars <= 16; bars++) {
        struct lab_chart_series series[16];
        for (int s = 0; s < bars; s++)
            series[s] = (struct lab_chart_series){
                .mark = LAB_CHART_BARS, .x = x, .y = y, .count = 4, .valued = true};
        struct lab_chart_axis axis = given_axis("CV [%]");
        axis.high = 80;
        struct lab_chart_panel panel = {
            .x = given_axis("Values"), .y = axis, .series = series, .series_count = bars};
        struct lab_chart chart = {.panels = &panel, .panel_count = 1};
        struct plot_scene scene = scene_of(g, &chart, 0);
        for (int i = 0; i < scene.count; i++)
            for (int k = 0; k < i && is_value(&scene.marks[i]); k++) {
                if (!is_value(&scene.marks[k]) || scene.marks[k].angle)
                    continue;
                struct box a = box_of(&scene.marks[i], 0), b = box_of(&scene.marks[k], 0);
                assert_true(a.left - b.right >= 4 || b.left - a.right >= 4);
            }
    }
}

/* Given machines from 1 × 1 to 16 × 8, then the map's values stand in their cells, all of them, and
 * no title is cut. */
LAB_TEST(maps_have_room_for_their_values) {
    struct given *g = *state;
    static const int sizes[][2] = {{1, 1}, {2, 2}, {10, 4}, {16, 8}};
    for (int i = 0; i < 4; i++)
        for (int f = 0; f < 2; f++) {
            int devices = sizes[i][0], nodes = sizes[i][1], texts = 0;
            struct lab_chart chart = given_map(&g->arena, devices, nodes, 6);
            struct plot_scene scene = scene_of(g, &chart, f);
            for (int m = 0; m < scene.count; m++) {
                bool text = scene.marks[m].kind == PLOT_TEXT;
                texts += text && strstr(scene.marks[m].text, "15.6") &&
                         scene.marks[m].anchor == PLOT_MIDDLE;
                assert_false(text && strstr(scene.marks[m].text, "…"));
            }
            assert_int_equal(texts, 6 * devices * nodes);
            assert_texts_apart(&scene, "map");
        }
}

/* Given values on both sides of 0, then equal distances have equal strengths, and 0 has none. */
LAB_TEST(colours_of_a_map_are_symmetric) {
    struct given *g = *state;
    static const double values[] = {-4, 4, 0, 2};
    static const char *const names[] = {"a", "b"};
    struct lab_chart_heat heat = {.values = values};
    struct lab_chart_panel panel = {
        .x = given_names("", names, 2), .y = given_names("", names, 2), .heat = &heat};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    struct plot_scene scene = scene_of(g, &chart, 0);
    struct plot_mark cells[4] = {0};
    int count = 0;
    for (int i = 0; i < scene.count; i++)
        if (scene.marks[i].kind == PLOT_RECT && scene.marks[i].text)
            cells[count++ % 4] = scene.marks[i];
    assert_int_equal(count, 4);
    assert_true(cells[0].opacity == cells[1].opacity && cells[0].colour != cells[1].colour);
    assert_true(cells[2].opacity < 0.05 && fabs(cells[3].opacity - 0.5) < 1e-6);
}

/* An inconclusive cell, the largest of all, was the strongest colour, and made the others pale. */
LAB_TEST(inconclusive_cells_are_grey_and_scale_no_colour) {
    struct given *g = *state;
    static const double values[] = {-40, -8, 4, 2};
    static const bool open[] = {true, false, false, false};
    static const char *const names[] = {"0", "1"},
                             *const texts[] = {"−40.0?", "−8.0", "+4.0", "≤2.0"},
                             *const tips[] = {"a", "-8.0% [-9.0, -7.0], 5 runs", "c", "d"};
    struct lab_chart_heat heat = {.values = values,
                                  .low = values,
                                  .high = values,
                                  .open = open,
                                  .texts = texts,
                                  .tips = tips};
    struct lab_chart_panel panel = {.title = "vit",
                                    .x = given_names("NUMA node", names, 2),
                                    .y = given_names("", names, 2),
                                    .heat = &heat};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    struct plot_scene scene = scene_of(g, &chart, 0);
    double opacity[4] = {0};
    int count = 0;
    for (int i = 0; i < scene.count; i++)
        if (scene.marks[i].kind == PLOT_RECT && scene.marks[i].text) {
            assert_true((scene.marks[i].colour == LAB_COLOUR_GRID) == (count % 4 == 0));
            opacity[count++ % 4] = scene.marks[i].opacity;
        }
    assert_int_equal(count, 4);
    assert_true(opacity[1] == 1 && fabs(opacity[2] - 0.5) < 1e-6);
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, ">−8.0<");
    assert_contains(g->text.text, ">+8.0<"); /* the scale */
    assert_contains(g->text.text, ">?: inconclusive<");
    assert_contains(g->text.text, ">≤: no difference larger than that<");
    assert_contains(g->text.text, "0, NUMA node 1, vit: −8.0% [−9.0, −7.0], 5 runs");
    lab_str_clear(&g->text);
    lab_plot_data(&chart, &g->text);
    assert_contains(g->text.text, "-40,-40,-40");
}

/* A line that lies on another in one panel has gaps in all of them, as its entry of the key has. */
LAB_TEST(a_line_is_dashed_alike_in_all_panels) {
    struct given *g = *state;
    static double x[] = {1, 2, 3}, low[] = {1, 1, 1}, high[] = {9, 9, 9};
    struct lab_chart_series first[] = {
        {"GPU 0, baseline, softmax8192x2048", LAB_CHART_LINE, x, low, .count = 3, .colour = 0},
        {"GPUs 0–3, concurrent, flash1x1024x8x64", LAB_CHART_LINE, x, low, .count = 3,
         .colour = 1}};
    struct lab_chart_series second[] = {first[0], first[1]};
    second[1].y = high;
    struct lab_chart_panel panels[] = {
        {.x = given_axis("x"), .y = given_axis("y"), .series = first, .series_count = 2},
        {.x = given_axis("x"), .y = given_axis("y"), .series = second, .series_count = 2}};
    struct lab_chart chart = {.name = "x", .panels = panels, .panel_count = 2};
    struct plot_scene scene = scene_of(g, &chart, 0);
    int lines = 0;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        if (mark->kind != PLOT_LINE || mark->width < 1.5)
            continue;
        lines++;
        assert_int_equal(mark->beneath, mark->colour == LAB_COLOUR_C1);
    }
    assert_int_equal(lines, 6); /* of two panels and the key */
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, ">GPU 0, baseline, softmax8192x2048<"); /* not "GPU 0, …" */
}

/* Above the parts of a stack stands what they are together. */
LAB_TEST(a_stack_has_its_total) {
    struct given *g = *state;
    static const char *const names[] = {"a", "b"};
    static double x[] = {0, 1}, y[] = {3, 4}, more[] = {12.5, 20};
    struct lab_chart_series series[] = {
        {"forward", LAB_CHART_STACK, x, y, .count = 2, .valued = true},
        {"backward", LAB_CHART_STACK, x, more, .count = 2, .valued = true}};
    struct lab_chart_panel panel = {
        .x = given_names("", names, 2), .y = given_axis("y"), .series = series, .series_count = 2};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, ">15.5<");
    assert_contains(g->text.text, ">24.0<");
    assert_null(strstr(g->text.text, ">4.0<"));
}

/* Points of single devices stand on the bar of their phase, not between bars. */
LAB_TEST(points_stand_on_their_bars) {
    struct given *g = *state;
    static const char *const names[] = {"a", "b"};
    static double x[] = {0, 1}, y[] = {3, 4};
    struct lab_chart_series series[] = {{"one", LAB_CHART_BARS, x, y, .count = 2},
                                        {"two", LAB_CHART_BARS, x, y, .count = 2},
                                        {"single", LAB_CHART_POINTS, x, y, .count = 2, .on = 2}};
    struct lab_chart_panel panel = {
        .x = given_names("", names, 2), .y = given_axis("y"), .series = series, .series_count = 3};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    struct plot_scene scene = scene_of(g, &chart, 0);
    double middle = NAN, at = NAN;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        if (mark->text && strcmp(mark->text, "two, b: 4") == 0)
            middle = mark->x + mark->width / 2;
        if (mark->text && strcmp(mark->text, "single, b: 4") == 0)
            at = mark->x;
    }
    assert_true(fabs(middle - at) < 1);
}

/* --- gaps and long series --- */

static struct plot_scene scene_of_series(struct given *g, enum lab_chart_mark mark, double *x,
                                         double *y, size_t count) {
    static const char *const rows[] = {"GPU 0"};
    struct lab_chart_series series = {.title = "t", .mark = mark, .x = x, .y = y, .count = count};
    struct lab_chart_panel panel = {
        .x = given_axis("x"), .y = given_axis("y"), .series = &series, .series_count = 1};
    if (mark == LAB_CHART_ROW)
        panel.y = given_names("y", rows, 1);
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    return scene_of(g, &chart, 0);
}

static const struct plot_mark *find_kind(const struct plot_scene *scene, enum plot_kind kind) {
    const struct plot_mark *found = NULL;
    for (int i = 0; i < scene->count; i++)
        if (scene->marks[i].kind == kind && scene->marks[i].count > 2)
            found = &scene->marks[i];
    assert_non_null(found);
    return found;
}

/* Given 9000 readings with a pause, then nothing is drawn across it, thinned as they are. */
LAB_TEST(gaps_stay_gaps) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 9000, 0.01), *y = given_count(&g->arena, 9000, 0);
    for (int i = 0; i < 9000; i++)
        y[i] = i < 3000 ? 20 + i % 7 : i < 6000 ? (double)NAN : 80 + i % 5;
    enum lab_chart_mark marks[] = {LAB_CHART_LINE, LAB_CHART_ROW};
    for (int m = 0; m < 2; m++) {
        struct plot_scene scene = scene_of_series(g, marks[m], x, y, 9000);
        const struct plot_mark *mark = find_kind(&scene, m ? PLOT_AREA : PLOT_LINE);
        double widest = 0;
        for (int i = 1; i < mark->count; i++)
            if (mark->points[2 * i + 1] != mark->points[2 * i - 1])
                widest = fmax(widest, mark->points[2 * i] - mark->points[2 * i - 2]);
        assert_true(widest < 10);
        assert_true(mark->count < 2500);
    }
}

/* Given one value, as of a short run, then it is seen. */
LAB_TEST(one_value_is_drawn) {
    struct given *g = *state;
    double x[] = {0, 1, 2}, y[] = {NAN, 5, NAN};
    struct plot_scene scene = scene_of_series(g, LAB_CHART_LINE, x, y, 3);
    int lines = 0;
    for (int i = 0; i < scene.count; i++)
        lines += scene.marks[i].kind == PLOT_LINE && scene.marks[i].series &&
                 scene.marks[i].points[2] - scene.marks[i].points[0] > 5;
    assert_int_equal(lines, 1);
}

/* Given values that differ by rounding alone, then their line is flat. */
LAB_TEST(rounding_is_no_range) {
    double x[] = {0, 1, 2}, y[] = {1e-3, 1e-3, 1e-3 - 1e-18};
    struct plot_scene scene = scene_of_series(*state, LAB_CHART_LINE, x, y, 3);
    const struct plot_mark *line = find_kind(&scene, PLOT_LINE);
    assert_float_equal(line->points[1], line->points[2 * line->count - 1], 0.1);
}

/* Given lines that lie on each other, then the later one has gaps, in the key as well; lines that
 * only cross have none. */
LAB_TEST(lines_on_each_other_are_seen) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 50, 1), *y = given_count(&g->arena, 50, 0.1);
    const double above[] = {0.005, 0.01, 2, -1}; /* -1: falls instead */
    struct lab_chart_series series[5];
    for (int s = 0; s < 5; s++) {
        double *own = given_copy(&g->arena, y, 50, s == 4 ? -1 : 1);
        for (int i = 0; s > 0 && i < 50; i++)
            own[i] += s == 4 ? 5 : above[s - 1];
        series[s] = (struct lab_chart_series){.title = lab_arena_printf(&g->arena, "%d", s),
                                              .x = x,
                                              .y = own,
                                              .count = 50,
                                              .colour = s};
    }
    struct lab_chart_panel panel = {
        .x = given_axis("Step"), .y = given_axis("loss"), .series = series, .series_count = 5};
    struct lab_chart chart = {.name = "c", .title = "c", .panels = &panel, .panel_count = 1};
    struct plot_scene scene;
    plot_scene_make(&chart, &plot_page, &g->arena, &scene);
    const int beneath[] = {0, 1, 2, 0, 0};
    int found = 0, keys = 0;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        if (mark->kind == PLOT_LINE && mark->series)
            assert_int_equal(mark->beneath, beneath[found++]);
        else
            keys += mark->kind == PLOT_LINE && mark->beneath > 0;
    }
    assert_int_equal(found, 5);
    assert_int_equal(keys, 2);
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, "stroke-dasharray=\"8 16\"");
}

/* Given more lines than colours, then each entry of the key has its line's colour and dashes. */
LAB_TEST(keys_look_like_their_lines) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 9, 1);
    struct lab_chart_series series[9];
    for (int s = 0; s < 9; s++) {
        double *y = given_count(&g->arena, 9, 0.1);
        for (int i = 0; i < 9; i++)
            y[i] += 10 * s;
        series[s] = (struct lab_chart_series){
            .title = lab_arena_printf(&g->arena, "%d", s), .x = x, .y = y, .count = 9, .colour = s};
    }
    struct lab_chart_panel panel = {
        .x = given_axis("Step"), .y = given_axis("loss"), .series = series, .series_count = 9};
    struct lab_chart chart = {.name = "c", .title = "c", .panels = &panel, .panel_count = 1};
    struct plot_scene scene;
    plot_scene_make(&chart, &plot_page, &g->arena, &scene);
    const struct plot_mark *keys[9], *lines[9];
    int key_count = 0, line_count = 0;
    bool key = false;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        if (mark->kind == PLOT_GROUP)
            key = mark->group == PLOT_KEY;
        else if (mark->kind == PLOT_LINE && key)
            keys[key_count++ % 9] = mark;
        else if (mark->kind == PLOT_LINE && mark->series)
            lines[line_count++ % 9] = mark;
        key = key && mark->kind != PLOT_END;
    }
    assert_int_equal(key_count, 9);
    assert_int_equal(line_count, 9);
    for (int s = 0; s < 9; s++) {
        assert_int_equal(keys[s]->colour, lines[s]->colour);
        assert_int_equal(keys[s]->dash, lines[s]->dash);
    }
    assert_int_equal(keys[0]->colour, keys[8]->colour);
    assert_int_not_equal(keys[0]->dash, keys[8]->dash);
}

/* Given eight GPUs' panels, four of them in a row, then there are two rows. */
LAB_TEST(grids_have_the_columns_they_ask_for) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 9, 1), *y = given_count(&g->arena, 9, 0.1);
    struct lab_chart_series series = {.x = x, .y = y, .count = 9};
    struct lab_chart_panel panels[8];
    for (int p = 0; p < 8; p++)
        panels[p] = (struct lab_chart_panel){.title = lab_arena_printf(&g->arena, "GPU %d", p),
                                             .x = given_axis("Time [s]"),
                                             .y = given_axis("Memory [GiB]"),
                                             .series = &series,
                                             .series_count = 1};
    struct lab_chart chart = {
        .name = "c", .title = "c", .panels = panels, .panel_count = 8, .columns = 4};
    struct plot_scene scene = scene_of(g, &chart, 0);
    double first = NAN, last = NAN;
    int in_first = 0, in_last = 0;
    for (int i = 0; i < scene.count; i++) {
        const struct plot_mark *mark = &scene.marks[i];
        if (mark->kind != PLOT_TEXT || strncmp(mark->text, "GPU ", 4) != 0)
            continue;
        first = isnan(first) ? mark->y : first;
        last = mark->y;
        in_first += mark->y == first;
    }
    for (int i = 0; i < scene.count; i++)
        in_last += scene.marks[i].kind == PLOT_TEXT && scene.marks[i].y == last &&
                   strncmp(scene.marks[i].text, "GPU ", 4) == 0;
    assert_int_equal(in_first, 4);
    assert_int_equal(in_last, 4);
    assert_texts_apart(&scene, "grid");
}

/* Given one reading that stands out among many, then it is kept. */
/* Two panels of a row whose times differ 100-fold, the right one above another: each has its numbers.
 */
LAB_TEST(panels_of_other_ranges_are_labelled) {
    struct given *g = *state;
    double *y = given_count(&g->arena, 9, 0.1);
    struct lab_chart_series series[4];
    struct lab_chart_panel panels[4];
    for (int p = 0; p < 4; p++) {
        series[p] = (struct lab_chart_series){
            .x = given_count(&g->arena, 9, p == 0 ? 1 : 0.01), .y = y, .count = 9};
        panels[p] = (struct lab_chart_panel){.title = lab_arena_printf(&g->arena, "run %d", p),
                                             .x = given_axis("Time [s]"),
                                             .y = given_axis("Time [ms]"),
                                             .series = &series[p],
                                             .series_count = 1};
    }
    struct lab_chart chart = {
        .name = "c", .title = "c", .panels = panels, .panel_count = 4, .columns = 2};
    struct plot_scene scene = scene_of(g, &chart, 0);
    int titles = 0;
    for (int i = 0; i < scene.count; i++)
        titles += scene.marks[i].kind == PLOT_TEXT && strcmp(scene.marks[i].text, "Time [s]") == 0;
    assert_int_equal(titles, 4);
    assert_texts_apart(&scene, "ranges");
}

LAB_TEST(long_series_keep_their_extremes) {
    struct given *g = *state;
    double *x = given_count(&g->arena, 50000, 1), *y = given_count(&g->arena, 50000, 0);
    y[37777] = 99;
    struct plot_scene scene = scene_of_series(g, LAB_CHART_LINE, x, y, 50000);
    const struct plot_mark *line = find_kind(&scene, PLOT_LINE);
    double low = 0, high = INFINITY;
    for (int i = 0; i < line->count; i++) {
        low = fmax(low, line->points[2 * i + 1]);
        high = fmin(high, line->points[2 * i + 1]);
    }
    assert_true(low - high > 200 && line->count < 1200);
}

/* --- files --- */

/* Given a map of 10 × 4 × 6, then it is small, and its colours are the page's. */
LAB_TEST(svg_takes_the_colours_of_a_page) {
    struct given *g = *state;
    struct lab_chart chart = given_map(&g->arena, 10, 4, 6);
    lab_plot_svg(&chart, (struct lab_plot_view){.inlined = true}, &g->text);
    assert_true(g->text.length < 60000);
    assert_contains(g->text.text, "fill:var(--less)");
    assert_contains(g->text.text, "<title>GPU 9, NUMA node 3, vit16x0x1024: ");
    assert_null(strchr(g->text.text, '#'));
    lab_str_clear(&g->text);
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_null(strstr(g->text.text, "var("));
}

/* Given words that mean something to XML, then they stay words; and no number is none. */
LAB_TEST(svg_is_never_broken) {
    struct given *g = *state;
    for (int i = 0; i < GIVEN_CHARTS; i++)
        lab_plot_svg(&g->charts[i], (struct lab_plot_view){.inlined = true}, &g->text);
    assert_contains(g->text.text, "&quot;quoted&quot; &lt;b>");
    assert_null(strstr(g->text.text, "nan"));
    assert_null(strstr(g->text.text, "inf\""));
    assert_contains(g->text.text, "no data");
}

/* Under a pointer are values with units; an interpolated line has none, its points have; a key of
 * shades hides them. */
LAB_TEST(svg_has_units_and_whatever_a_key_hides) {
    struct given *g = *state;
    static double x[] = {1, 2}, y[] = {3, 4}, low[] = {2.5, 3.5}, high[] = {3.5, 4.5};
    struct lab_chart_series series[] = {{"compute", LAB_CHART_POINTS, x, y, low, high, .count = 2},
                                        {"compute", LAB_CHART_DASHES, x, y, .count = 2},
                                        {"limit", LAB_CHART_DASHES, x, y, .count = 2}};
    struct lab_chart_shade shade = {1, 1.5, "crossover", 0};
    struct lab_chart_panel panel = {.x = given_axis("Work [GFLOP]"),
                                    .y = given_axis("Change [%]"),
                                    .series = series,
                                    .series_count = 3,
                                    .shades = &shade,
                                    .shade_count = 1};
    struct lab_chart chart = {.name = "x", .panels = &panel, .panel_count = 1};
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, "<title>compute, 1 GFLOP: 3 [2.5, 3.5]%</title>");
    assert_contains(g->text.text, " 0|| GFLOP\" data-y=");
    assert_contains(g->text.text, " 0||%\">");
    assert_contains(g->text.text, "<g class=\"s s2\" data-t=\"crossover\">\n<rect");
    const char *line = strstr(g->text.text, "class=\"l\"");
    assert_non_null(line);
    assert_null(strstr(line + 1, "class=\"l\""));
    panel.x = given_axis("Batch size");
    lab_str_clear(&g->text);
    lab_plot_svg(&chart, (struct lab_plot_view){0}, &g->text);
    assert_contains(g->text.text, "<title>compute, Batch size 2: 4 ");
    assert_contains(g->text.text, " 0|Batch size |\" data-y=");
}

LAB_TEST(data_hold) {
    struct given *g = *state;
    struct lab_chart heat = given_heat(&g->arena), bars = given_bars(&g->arena);
    lab_plot_data(&heat, &g->text);
    lab_plot_data(&bars, &g->text);
    assert_golden(g->text.text, "plot-data.csv");
}

/* Given a band, then its values have the name of the line in its colour. */
LAB_TEST(a_bands_values_are_named) {
    struct given *g = *state;
    static double at[] = {1, 2};
    struct lab_chart_series series[] = {
        {.mark = LAB_CHART_BAND, .colour = 1, .x = at, .y = at, .low = at, .high = at, .count = 2},
        {.title = "sgd", .mark = LAB_CHART_LINE, .colour = 1, .x = at, .y = at, .count = 2}};
    struct lab_chart_panel panel = {.series = series, .series_count = 2};
    struct lab_chart chart = {.panels = &panel, .panel_count = 1};
    lab_plot_data(&chart, &g->text);
    assert_contains(g->text.text, "\"sgd (band)\",1,1,1,1\n");
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
        assert_true(is_there(plots[i].name, "gp") && is_there(plots[i].name, "csv"));
        assert_true(is_there(plots[i].name, "svg"));
        assert_int_equal(plots[i].drawn, able);
        assert_int_equal(is_there(plots[i].name, "png"), able);
        assert_int_equal(is_there(plots[i].name, "pdf"), able);
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

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
