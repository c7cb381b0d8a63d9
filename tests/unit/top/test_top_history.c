/* What `top` keeps of what it is told, and what stays of it: seeking, gaps, copies, sums, files. */
#include "top_fixture.h"
#include "unit/report/study_fixture.h"

#include "base/json.h"
#include "top/top.h"

#include <stdlib.h>
#include <unistd.h>

/* Given a recording, a time in it looks the same however one came there. */
LAB_TEST(seeking_shows_what_playing_shows) {
    struct top_fixture f;
    top_fixture_init(&f, 2, false);
    struct lab_top_setup setup = {.interval_ns = f.interval_ns};
    struct lab_top_history *one = lab_top_history_open(&setup), *two = lab_top_history_open(&setup);
    int64_t until_ns = TOP_BEGIN_NS + 40 * SECOND_NS;
    for (int64_t t = TOP_BEGIN_NS; t <= until_ns; t += 300 * SECOND_NS / 1000)
        lab_top_history_load(one, &f.recording, t);
    lab_top_history_load(one, &f.recording, until_ns);
    lab_top_history_load(two, &f.recording, TOP_BEGIN_NS + 85 * SECOND_NS);
    lab_top_history_load(two, &f.recording, until_ns);
    LAB_AUTO(str, played);
    LAB_AUTO(str, sought);
    for (int page = 0; page < LAB_TOP_PAGE_COUNT; page++) {
        struct lab_top_view view = top_fixture_view(&f, 120, 40);
        view.page = (enum lab_top_page)page;
        view.now_ns = until_ns;
        draw(one, &view, &played);
        draw(two, &view, &sought);
        assert_string_equal(played.text, sought.text);
    }
    assert_int_equal(lab_top_history_time_ns(two), until_ns);
    lab_top_history_close(one);
    lab_top_history_close(two);
    top_fixture_release(&f);
}

/* Given a pause, the copy stays as it was while the history goes on. */
LAB_TEST(a_copy_stands_still) {
    struct top_fixture f;
    top_fixture_init(&f, 2, false);
    struct lab_top_setup setup = {.interval_ns = f.interval_ns};
    struct lab_top_history *history = lab_top_history_open(&setup);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    view.now_ns = TOP_BEGIN_NS + 30 * SECOND_NS;
    lab_top_history_load(history, &f.recording, view.now_ns);
    struct lab_top_history *copy = lab_top_history_copy(history);
    LAB_AUTO(str, before);
    LAB_AUTO(str, after);
    draw(history, &view, &before);
    lab_top_history_load(history, &f.recording, view.end_ns);
    lab_top_history_close(history);
    draw(copy, &view, &after);
    assert_string_equal(before.text, after.text);
    lab_top_history_close(copy);
    top_fixture_release(&f);
}

/* Given a GPU that is lost and comes back, it is named while it is away and shown again after. */
LAB_TEST(a_gap_is_said_and_ends) {
    struct top_fixture f;
    top_fixture_init(&f, 2, false);
    top_fixture_gap(&f, 1, 100, "GPU is lost");
    struct lab_track *track = &f.recording.tracks[1];
    for (size_t t = 150; t < track->count; t++)
        track->valid[0][t] = 1;
    struct lab_top_setup setup = {.interval_ns = f.interval_ns};
    struct lab_top_history *history = lab_top_history_open(&setup);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    LAB_AUTO(str, text);
    view.now_ns = TOP_BEGIN_NS + 62 * SECOND_NS;
    lab_top_history_load(history, &f.recording, view.now_ns);
    draw(history, &view, &text);
    assert_contains(text.text, "no answer for 13 s: GPU is lost");
    view.now_ns = view.end_ns;
    lab_top_history_load(history, &f.recording, view.now_ns);
    draw(history, &view, &text);
    assert_null(strstr(text.text, "no answer"));
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given counters of bytes alone, as older GPUs have them, rates come from their growth. */
LAB_TEST(rates_come_from_counters) {
    struct top_fixture f = {.interval_ns = SECOND_NS, .ticks = 10};
    lab_arena_init(&f.arena);
    const struct top_series series[] = {
        {LAB_METRIC_UTILIZATION, -1, 50, curve_flat, 1},
        {LAB_METRIC_PCIE_RX_BYTES, -1, 1000000, curve_ramp, 1}, /* 1024 MB a second */
        {LAB_METRIC_PCIE_TX_BYTES, -1, 3000, curve_ramp, 1},
    };
    top_fixture_track(&f,
                      (struct lab_entity){.kind = LAB_ENTITY_GPU,
                                          .id = "G",
                                          .name = "Tesla V100",
                                          .pci = "",
                                          .node = -1,
                                          .parent = -1},
                      series, 3);
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    LAB_AUTO(str, text);
    draw(history, &view, &text);
    assert_contains(text.text, "1.0G/3.1M");
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given an hour at ten a second, the history is as large as after ten minutes. */
LAB_TEST(a_long_time_is_bounded) {
    struct lab_column column = {LAB_METRIC_UTILIZATION, -1};
    struct lab_entity entity = {.kind = LAB_ENTITY_GPU,
                                .id = "G",
                                .name = "N",
                                .pci = "",
                                .node = -1,
                                .parent = -1,
                                .columns = &column,
                                .column_count = 1};
    struct lab_top_setup setup = {.interval_ns = SECOND_NS / 10};
    struct lab_top_history *history = lab_top_history_open(&setup);
    struct lab_sink_samples sink = lab_top_history_sink(history);
    sink.entity(sink.state, 0, &entity);
    int64_t now_ns = 0;
    for (int i = 0; i < 36000; i++) {
        int64_t value = i % 100;
        uint64_t valid = 1;
        now_ns = TOP_BEGIN_NS + i * setup.interval_ns;
        sink.tick(sink.state, &(struct lab_tick){0, now_ns, 0, -1, &value, &valid});
        if (i % 100 == 0)
            sink.event(sink.state, &(struct lab_sample_event){now_ns, 0, LAB_EVENT_XID, 13, "x"});
    }
    struct lab_top_view view = {.columns = 120,
                                .rows = 30,
                                .unicode = true,
                                .speed = 1,
                                .now_ns = now_ns,
                                .page = LAB_TOP_DEVICE};
    LAB_AUTO(str, text);
    draw(history, &view, &text);
    assert_contains(text.text, "utilisation ━ 99%");
    lab_top_history_close(history);
}

/* --- what stays --- */

LAB_TEST(the_summary_holds) {
    struct top_fixture f;
    top_fixture_init(&f, 2, false);
    top_fixture_gap(&f, 1, 150, "GPU is lost");
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    LAB_AUTO(str, text);
    lab_top_summary(history, &view, true, &text);
    assert_golden(text.text, "top-summary.txt");
    lab_str_clear(&text);
    lab_top_summary(history, &view, false, &text);
    assert_ascii(text.text);
    lab_str_clear(&text);
    lab_top_snapshot(history, &view, &text);
    assert_golden(text.text, "top-snapshot.txt");
    lab_top_history_close(history);
    top_fixture_release(&f);
}

LAB_TEST(the_value_is_whole) {
    struct top_fixture f;
    top_fixture_init(&f, 2, false);
    top_fixture_gap(&f, 1, 150, "GPU is lost");
    LAB_AUTO(arena, arena);
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    struct lab_value *value = lab_top_value(history, &view, &arena);
    struct lab_value *devices = lab_value_get(value, "devices");
    assert_int_equal(devices->count, 2);
    struct lab_value *metrics = lab_value_get(devices->items[0], "metrics");
    assert_int_equal(lab_value_get(metrics, "utilization_percent")->integer, 96);
    assert_true(lab_value_get(metrics, "power_limit_w")->number == 700);
    assert_string_equal(lab_value_get(devices->items[0], "clock_reasons")->items[0]->string,
                        "sw_power_cap");
    assert_false(lab_value_get(devices->items[1], "answers")->boolean);
    assert_int_equal(lab_value_get(value, "host")->count, 3);
    struct lab_value *cpu = lab_value_get(value, "host")->items[0];
    struct lab_value *cores =
        lab_value_get(lab_value_get(cpu, "metrics"), "core_utilization_percent");
    assert_int_equal(cores->count, 32);
    struct lab_value *processes = lab_value_get(value, "processes");
    assert_int_equal(processes->count, 3);
    assert_string_equal(lab_value_get(processes->items[1], "placement")->string, "both");
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given no gnuplot, the error says so, and an SVG needs none. */
LAB_TEST(a_picture_needs_gnuplot) {
    struct top_fixture f;
    struct lab_err err = LAB_ERR_INIT;
    top_fixture_init(&f, 2, false);
    LAB_AUTO(arena, arena);
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    view.source = "node\"7<id>";
    char *old = lab_arena_strdup(&arena, getenv("PATH")), *text;
    size_t length;
    assert_int_equal(symlink("/usr/bin/env", test_path("env")), 0);
    setenv("PATH", test_folder(), 1);
    assert_int_equal(lab_top_plot(history, &view, test_path("a b.png"), &err), -1);
    assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
    assert_contains(err.text, "gnuplot isn't installed; FILE.svg needs none");
    assert_int_equal(lab_top_plot(history, &view, test_path("a b.svg"), &err), 0);
    setenv("PATH", old, 1);
    assert_int_equal(lab_file_read(test_path("a b.svg"), 1 << 24, &arena, &text, &length, &err), 0);
    assert_contains(text, "node&quot;7&lt;id>, 1 min 30 s from 20");
    assert_contains(text, "data-t=\"GPU 1\"");
    lab_top_history_close(history);
    top_fixture_release(&f);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
