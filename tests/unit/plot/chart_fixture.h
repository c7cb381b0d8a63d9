/*
 * chart_fixture.h: charts of every kind, by hand: what analyses draw, with figures that are easy to
 * check in the picture. `given_charts` is all of them.
 */
#pragma once

#include "base/mem.h"
#include "base/random.h"
#include "model/chart.h"

#include <math.h>

#define GIVEN_CHARTS 10

static inline struct lab_chart_axis given_axis(const char *title) {
    return (struct lab_chart_axis){.title = title, .low = NAN, .high = NAN};
}

static inline struct lab_chart_axis given_names(const char *title, const char *const *names,
                                                int count) {
    return (struct lab_chart_axis){
        .title = title, .low = NAN, .high = NAN, .names = names, .name_count = count};
}

static inline double *given_count(struct lab_arena *arena, size_t count, double step) {
    double *x = lab_arena_alloc(arena, count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)i * step;
    return x;
}

static inline double *given_copy(struct lab_arena *arena, const double *from, size_t count,
                                 double factor) {
    double *copy = lab_arena_alloc(arena, count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = from[i] * factor;
    return copy;
}

/* Bars with whiskers over categories, two series, a limit. */
static inline struct lab_chart given_bars(struct lab_arena *arena) {
    static const char *const models[] = {"vit0x0x0",    "vit32x2x128", "vit32x4x256",
                                         "vit32x6x512", "vit16x8x768", "vit16x12x1024"};
    static const double local[] = {12400, 8300, 5200, 1900, 420, 61};
    double *x = given_count(arena, 6, 1);
    struct lab_chart_series *series = lab_arena_alloc(arena, 3, sizeof *series);
    for (int s = 0; s < 2; s++) {
        double by = s ? 0.86 : 1;
        series[s] = (struct lab_chart_series){.title = s ? "remote node" : "local node",
                                              .mark = LAB_CHART_BARS,
                                              .x = x,
                                              .y = given_copy(arena, local, 6, by),
                                              .low = given_copy(arena, local, 6, by * 0.95),
                                              .high = given_copy(arena, local, 6, by * 1.04),
                                              .count = 6,
                                              .colour = -1,
                                              .valued = true};
    }
    double *limit = given_count(arena, 6, 0);
    for (int i = 0; i < 6; i++)
        limit[i] = 10000;
    series[2] = (struct lab_chart_series){.title = "what the link carries",
                                          .mark = LAB_CHART_DASHES,
                                          .x = x,
                                          .y = limit,
                                          .count = 6,
                                          .colour = 6};
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = given_names("Model", models, 6),
                                      .y = given_axis("Throughput [samples/s]"),
                                      .series = series,
                                      .series_count = 3};
    return (struct lab_chart){.name = "bars",
                              .title = "Throughput by model and by the node that feeds GPU 0",
                              .caption = "The remote node costs 14 %.",
                              .panels = panel,
                              .panel_count = 1};
}

/* Points and a fit with its band on log axes. */
static inline struct lab_chart given_law(struct lab_arena *arena) {
    static const double x[] = {256, 512, 768, 1024}, y[] = {5400, 1800, 790, 455};
    size_t count = 60;
    double *fx = lab_arena_alloc(arena, count, sizeof *fx),
           *fy = lab_arena_alloc(arena, count, sizeof *fy);
    for (size_t i = 0; i < count; i++) {
        fx[i] = 200 * pow(1400.0 / 200, (double)i / (double)(count - 1));
        fy[i] = 1e9 / (fx[i] * fx[i] * 1.9 + 60000);
    }
    struct lab_chart_series *series = lab_arena_alloc(arena, 3, sizeof *series);
    series[0] = (struct lab_chart_series){.title = "95 % of a prediction",
                                          .mark = LAB_CHART_BAND,
                                          .x = fx,
                                          .low = given_copy(arena, fy, count, 0.85),
                                          .high = given_copy(arena, fy, count, 1.2),
                                          .count = count,
                                          .colour = 0};
    series[1] = (struct lab_chart_series){.title = "fitted law",
                                          .mark = LAB_CHART_DASHES,
                                          .x = fx,
                                          .y = fy,
                                          .count = count,
                                          .colour = 0};
    series[2] = (struct lab_chart_series){.title = "measured",
                                          .mark = LAB_CHART_POINTS,
                                          .x = x,
                                          .y = y,
                                          .low = given_copy(arena, y, 4, 0.92),
                                          .high = given_copy(arena, y, 4, 1.08),
                                          .count = 4,
                                          .colour = 5};
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = given_axis("Width of the model"),
                                      .y = given_axis("Throughput [samples/s]"),
                                      .series = series,
                                      .series_count = 3};
    panel->x.log = panel->y.log = true;
    return (struct lab_chart){.name = "law",
                              .title = "Throughput over the model's width",
                              .panels = panel,
                              .panel_count = 1,
                              .simulated = true};
}

/* Cells with texts, two hues. */
static inline struct lab_chart given_heat(struct lab_arena *arena) {
    static const char *const models[] = {"vit0x0x0", "vit32x2x128", "vit32x6x512", "vit16x12x1024"};
    static const char *const gpus[] = {"GPU 0", "GPU 1", "GPU 2", "GPU 3"};
    static const double values[] = {14.2, 12.1, 3.3, 0.1,  13.8, NAN,  3.1,  -0.2,
                                    -0.4, 0.3,  0.1, -0.1, 21.5, 18.0, 6.05, 0.4};
    const char **texts = lab_arena_alloc(arena, 16, sizeof *texts);
    for (int i = 0; i < 16; i++)
        texts[i] = isnan(values[i]) ? "" : lab_arena_printf(arena, "%+.1f %%", values[i]);
    struct lab_chart_heat *heat = lab_arena_alloc(arena, 1, sizeof *heat);
    *heat = (struct lab_chart_heat){.values = values, .texts = texts, .title = "Penalty [%]"};
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){
        .x = given_names("Model", models, 4), .y = given_names("", gpus, 4), .heat = heat};
    return (struct lab_chart){.name = "heat",
                              .title = "What the remote node costs",
                              .panels = panel,
                              .panel_count = 1,
                              .simulated = true};
}

/* A map of a machine, devices by NUMA nodes, a panel for each model. */
static inline struct lab_chart given_map(struct lab_arena *arena, int devices, int nodes,
                                         int models) {
    size_t cells = (size_t)devices * (size_t)nodes;
    const char **x = lab_arena_alloc(arena, (size_t)nodes, sizeof *x),
               **y = lab_arena_alloc(arena, (size_t)devices, sizeof *y),
               **texts = lab_arena_alloc(arena, cells, sizeof *texts);
    double *values = lab_arena_alloc(arena, cells, sizeof *values);
    for (int i = 0; i < nodes; i++)
        x[i] = lab_arena_printf(arena, "%d", i);
    for (int i = 0; i < devices; i++)
        y[i] = lab_arena_printf(arena, "GPU %d", i);
    for (size_t i = 0; i < cells; i++) {
        values[i] = i % 3 ? -15.6 : 15.6;
        texts[i] = i % 3 ? "-15.6" : "≤ 15.6";
    }
    struct lab_chart_heat *heat = lab_arena_alloc(arena, 1, sizeof *heat);
    *heat = (struct lab_chart_heat){
        .values = values, .texts = texts, .title = "Change of throughput [%]"};
    struct lab_chart_panel *panels = lab_arena_alloc(arena, (size_t)models, sizeof *panels);
    for (int p = 0; p < models; p++)
        panels[p] = (struct lab_chart_panel){.title = lab_arena_printf(arena, "vit16x%dx1024", p),
                                             .x = given_names("NUMA node", x, nodes),
                                             .y = given_names("", y, devices),
                                             .heat = heat};
    return (struct lab_chart){.name = "map",
                              .title = "Throughput on remote NUMA nodes",
                              .panels = panels,
                              .panel_count = models};
}

/* Four stacked panels that share time, with shaded phases, 4 GPUs, a gap. */
static inline struct lab_chart given_timeline(struct lab_arena *arena) {
    static const char *const titles[] = {"GPU utilisation [%]", "PCIe [GB/s]", "GPU memory [GiB]",
                                         "CPU utilisation [%]"};
    static const char *const names[] = {"GPU 0", "GPU 1", "GPU 2", "GPU 3"};
    size_t count = 600;
    double *x = given_count(arena, count, 0.1);
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 4, sizeof *panels);
    struct lab_chart_shade *shades = lab_arena_alloc(arena, 6, sizeof *shades);
    for (int i = 0; i < 6; i++)
        shades[i] = (struct lab_chart_shade){i * 10, i * 10 + (i % 2 ? 9 : 2),
                                             i % 2 ? "measuring" : "warm-up", i % 2};
    for (int p = 0; p < 4; p++) {
        int lines = p == 3 ? 1 : 4;
        struct lab_chart_series *series = lab_arena_alloc(arena, (size_t)lines, sizeof *series);
        for (int s = 0; s < lines; s++) {
            double *y = given_count(arena, count, 0);
            for (size_t i = 0; i < count; i++) {
                double noise = lab_random_uniform(3, (uint64_t)(p * 100000 + s * 1000) + i);
                y[i] = (p == 0   ? 70
                        : p == 1 ? 12
                        : p == 2 ? 8
                                 : 35) *
                       ((i / 100) % 2 ? 1 : 0.3) * (0.9 + 0.05 * s + 0.1 * noise);
                if (p == 0 && s == 1 && i > 400 && i < 450)
                    y[i] = NAN;
            }
            series[s] = (struct lab_chart_series){.title = p == 3 ? "all cores" : names[s],
                                                  .mark = p == 3 ? LAB_CHART_LINE : LAB_CHART_ROW,
                                                  .x = x,
                                                  .y = y,
                                                  .count = count,
                                                  .colour = p == 3 ? 6 : s};
        }
        panels[p] = (struct lab_chart_panel){.x = given_axis("Time [s]"),
                                             .y = given_axis(titles[p]),
                                             .series = series,
                                             .series_count = lines,
                                             .shades = shades,
                                             .shade_count = 6};
        if (p < 3) {
            panels[p].y.names = names;
            panels[p].y.name_count = 4;
        }
        if (p == 0)
            panels[p].y.high = 100;
    }
    return (struct lab_chart){
        .name = "timeline", .title = "Resources over time", .panels = panels, .panel_count = 4};
}

/* A grid of eight panels, one for each GPU. */
static inline struct lab_chart given_grid(struct lab_arena *arena) {
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 8, sizeof *panels);
    double *x = given_count(arena, 120, 1);
    for (int p = 0; p < 8; p++) {
        struct lab_chart_series *series = lab_arena_alloc(arena, 2, sizeof *series);
        for (int s = 0; s < 2; s++) {
            double *y = given_count(arena, 120, 0);
            for (size_t i = 0; i < 120; i++)
                y[i] = (s ? 14 : 12) + p * 0.1 + sin((double)i / 9) * 0.2;
            series[s] = (struct lab_chart_series){.title = s ? "sgd" : "adamw",
                                                  .mark = LAB_CHART_LINE,
                                                  .x = x,
                                                  .y = y,
                                                  .count = 120,
                                                  .colour = s};
        }
        panels[p] = (struct lab_chart_panel){.title = lab_arena_printf(arena, "GPU %d", p),
                                             .x = given_axis("Time [s]"),
                                             .y = given_axis("Memory [GiB]"),
                                             .series = series,
                                             .series_count = 2};
        panels[p].y.low = 0;
        panels[p].y.high = 24;
    }
    return (struct lab_chart){.name = "grid",
                              .title = "Memory of each GPU",
                              .panels = panels,
                              .panel_count = 8,
                              .columns = 4};
}

/* Boxes of three series, by category. */
static inline struct lab_chart given_boxes(struct lab_arena *arena) {
    static const char *const phases[] = {"baseline", "concurrent", "isolated"};
    static const double y[] = {1.02, 1.19, 1.04};
    double *x = given_count(arena, 3, 1);
    struct lab_chart_series *series = lab_arena_alloc(arena, 3, sizeof *series);
    static const char *const kernels[] = {"softmax", "gemm", "flash_attention_v2"};
    for (int s = 0; s < 3; s++)
        series[s] = (struct lab_chart_series){.title = kernels[s],
                                              .mark = LAB_CHART_BOXES,
                                              .x = x,
                                              .y = given_copy(arena, y, 3, 1 + 0.3 * s),
                                              .low = given_copy(arena, y, 3, 0.97 + 0.3 * s),
                                              .high = given_copy(arena, y, 3, 1.05 + 0.3 * s),
                                              .least = given_copy(arena, y, 3, 0.9 + 0.3 * s),
                                              .most = given_copy(arena, y, 3, 1.2 + 0.3 * s),
                                              .count = 3,
                                              .colour = -1};
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = given_names("Phase", phases, 3),
                                      .y = given_axis("Iteration time [ms]"),
                                      .series = series,
                                      .series_count = 3};
    return (struct lab_chart){
        .name = "boxes", .title = "Iteration times by phase", .panels = panel, .panel_count = 1};
}

/* 24 long names, points with whiskers beside each other, signs that quotes are afraid of. */
static inline struct lab_chart given_long_names(struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, 24, sizeof *names);
    double *x = given_count(arena, 24, 1), *y = given_count(arena, 24, 0.03);
    for (int i = 0; i < 24; i++)
        names[i] = lab_arena_printf(arena, "gpu%d_numa%d_vit32x%dx512_compiled_batch%d", i % 4,
                                    i / 12, i, 1 << (i % 7));
    for (int i = 0; i < 24; i++)
        y[i] += 1;
    struct lab_chart_series *series = lab_arena_alloc(arena, 2, sizeof *series);
    for (int s = 0; s < 2; s++)
        series[s] = (struct lab_chart_series){
            .title = s ? "it's 100 % \"quoted\" <b>\\n `x` $HOME @y and far too long for a key"
                       : "plain",
            .mark = LAB_CHART_POINTS,
            .x = x,
            .y = given_copy(arena, y, 24, 1 + 0.1 * s),
            .low = given_copy(arena, y, 24, 0.95 + 0.1 * s),
            .high = given_copy(arena, y, 24, 1.07 + 0.1 * s),
            .count = 24,
            .colour = -1};
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = given_names("Run", names, 24),
                                      .y = given_axis("Ratio, 1 = no difference"),
                                      .series = series,
                                      .series_count = 2};
    return (struct lab_chart){
        .name = "long_names",
        .title = "A title that is far too long to stand in one line of a picture of this width, "
                 "whatever else is said in it, so that its middle goes",
        .panels = panel,
        .panel_count = 1,
        .simulated = true};
}

/* Sixteen lines: colours come again, dashed. */
static inline struct lab_chart given_many(struct lab_arena *arena) {
    double *x = given_count(arena, 5000, 0.01);
    struct lab_chart_series *series = lab_arena_alloc(arena, 16, sizeof *series);
    for (int s = 0; s < 16; s++) {
        double *y = given_count(arena, 5000, 0);
        for (size_t i = 0; i < 5000; i++)
            y[i] = 1e6 * (s + 1 + 0.3 * sin((double)i / 200 + s));
        series[s] = (struct lab_chart_series){.title = lab_arena_printf(arena, "GPU %d", s),
                                              .mark = LAB_CHART_LINE,
                                              .x = x,
                                              .y = y,
                                              .count = 5000,
                                              .colour = -1};
    }
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    *panel = (struct lab_chart_panel){.x = given_axis("Time [s]"),
                                      .y = given_axis("Parameters"),
                                      .series = series,
                                      .series_count = 16};
    return (struct lab_chart){
        .name = "many", .title = "Sixteen GPUs", .panels = panel, .panel_count = 1};
}

/* Nothing but gaps, one point, one value: what bad input leaves. */
static inline struct lab_chart given_little(struct lab_arena *arena) {
    static const double gap[] = {NAN}, one[] = {3};
    struct lab_chart_series *series = lab_arena_alloc(arena, 3, sizeof *series);
    series[0] = (struct lab_chart_series){
        .title = "gaps", .mark = LAB_CHART_LINE, .x = one, .y = gap, .count = 1, .colour = -1};
    series[1] = (struct lab_chart_series){
        .title = "one", .mark = LAB_CHART_POINTS, .x = one, .y = one, .count = 1, .colour = -1};
    series[2] = (struct lab_chart_series){.title = "none", .mark = LAB_CHART_BARS, .colour = -1};
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 3, sizeof *panels);
    for (int p = 0; p < 3; p++)
        panels[p] = (struct lab_chart_panel){.title = p == 0 ? "One point" : "Gaps alone",
                                             .x = given_axis("x"),
                                             .y = given_axis("y"),
                                             .series = p ? series : series + 1,
                                             .series_count = p == 2 ? 0 : 1};
    panels[1].y.log = true;
    return (struct lab_chart){.name = "little",
                              .title = "Little to see",
                              .panels = panels,
                              .panel_count = 3,
                              .columns = 3};
}

static inline struct lab_chart *given_charts(struct lab_arena *arena) {
    struct lab_chart *charts = lab_arena_alloc(arena, GIVEN_CHARTS, sizeof *charts);
    int count = 0;
    charts[count++] = given_bars(arena);
    charts[count++] = given_law(arena);
    charts[count++] = given_heat(arena);
    charts[count++] = given_map(arena, 10, 4, 6);
    charts[count++] = given_timeline(arena);
    charts[count++] = given_grid(arena);
    charts[count++] = given_boxes(arena);
    charts[count++] = given_long_names(arena);
    charts[count++] = given_many(arena);
    charts[count++] = given_little(arena);
    return charts;
}
