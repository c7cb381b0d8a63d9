/* Curves of what programs of the user's own report: over steps, epochs and time, by setting. */
#include "metrics_fixture.h"

/* The note that has these words; NULL = none. */
static const char *find_note(const struct given *g, const char *words) {
    for (int n = 0; g->result.notes && g->result.notes[n]; n++)
        if (strstr(g->result.notes[n], words))
            return g->result.notes[n];
    return NULL;
}

/* Given runs that count epochs alone, then the axis is theirs. */
LAB_TEST(epochs_are_an_axis) {
    struct given *g = *state;
    struct lab_study_run *run = add_curve(g, "sgd", 0, 0.5, 10);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 3, sizeof *said);
    said[0] = run->metrics[0];
    said[1] = (struct lab_study_metric){"epoch", "", -1, 10};
    said[2] = (struct lab_study_metric){"iterations_per_s", "", -1, 50}; /* of a bar */
    for (int i = 0; i <= 10; i++) {
        lab_curve_add(&said[1].curve, i, 5 + i, i, &g->study.arena);
        lab_curve_add(&said[2].curve, 20 * i, 5 + i, 50, &g->study.arena);
    }
    run->metrics = said;
    run->metric_count = 3;
    analyse(g);
    assert_string_equal(g->result.charts[1].panels[1].x.title, "Step");
    assert_string_equal(g->result.charts[0].title, "loss over epochs");
    assert_string_equal(g->result.charts[0].panels[0].x.title, "Epoch");
    said[1].curve.last_step = 7; /* it counts steps as well */
    analyse(g);
    assert_string_equal(g->result.charts[0].title, "loss over steps");
}

/* Given a curve and the value that it ends with, then settings of different lengths are compared
 * along the curve; the best value has its step. */
LAB_TEST(a_curve_decides_before_its_final_value) {
    struct given *g = *state;
    for (int i = 0; i < 2; i++) { /* the longer one ends lower, and is higher at step 10 */
        struct lab_study_run *run = add_curve(g, i ? "sgd" : "adam", 0, i ? 0.4 : 0.5, i ? 20 : 10);
        struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 2, sizeof *said);
        said[0] = (struct lab_study_metric){"final_loss", "", -1, i ? 0.4 : 0.5};
        lab_curve_add(&said[0].curve, i ? 20 : 10, 30, said[0].value, &g->study.arena);
        said[1] = run->metrics[0];
        if (i) /* it overfits */
            lab_curve_add(&said[1].curve, 21, 31, 0.45, &g->study.arena);
        run->metrics = said;
        run->metric_count = 2;
    }
    analyse(g);
    assert_contains(g->result.answer, "loss at step 10 from 0.5 (adam) to 0.7 (sgd)");
    assert_contains(g->result.by_point, "They are compared at step 10");
    const struct lab_doc_table *table = &g->result.parts[0].tables[0];
    assert_string_equal(table->columns[7].key, "best_step");
    assert_string_equal(table->cells[8].text, "0.5 (10)");
    assert_string_equal(table->cells[table->column_count + 8].text, "0.4 (20)");
    assert_float_equal(table->cells[table->column_count + 6].value, 0.4, 0);
}

/* Given epochs with so few digits that several values have the same, then the note says that. */
LAB_TEST(values_at_a_rounded_epoch_are_no_ranks) {
    struct given *g = *state;
    for (int i = 0; i < 2; i++) {
        struct lab_study_run *run = add(g, i ? "sgd" : "adam", 0, "loss", i ? 2 : 1, NAN);
        struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 2, sizeof *said);
        said[0] = said[1] = run->metrics[0];
        said[1].name = "epoch";
        for (int v = 0; v < 15; v++) {
            double epoch = 0.01 * (1 + v / 5);
            lab_curve_add(&said[0].curve, epoch, 5 + v, 4 - 0.1 * v, &g->study.arena);
            lab_curve_add(&said[1].curve, epoch, 5 + v, epoch, &g->study.arena);
        }
        run->metrics = said;
        run->metric_count = 2;
    }
    analyse(g);
    assert_non_null(find_note(g, "loss has 5 values at each epoch: the last one counts. Its epochs "
                                 "are rounded: print the step, too."));
}

/* Given several values at each step, then the last ones are drawn and compared, and a note says
 * so; a setting whose printed steps are others is interpolated there, which is said, too. */
LAB_TEST(the_last_value_of_a_step_is_compared) {
    struct given *g = *state;
    for (int i = 0; i < 2; i++) { /* the same up to step 2 */
        struct lab_study_run *run = add(g, i ? "sgd" : "adam", 0, "loss", i ? 2 : 1, NAN);
        struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
        *said = run->metrics[0];
        for (int v = 0; v < (i ? 10 : 15); v++)
            lab_curve_add(&said->curve, 1 + v / 5, 5 + v, 4 - v / 5 - (v % 5 - 4) * 0.5,
                          &g->study.arena);
        run->metrics = said;
    }
    analyse(g);
    const struct lab_chart_series *adam = g->result.charts[0].panels[0].series;
    adam += strcmp(adam->title, "adam") != 0; /* which is first, nothing says */
    assert_int_equal(adam->count, 3);
    assert_float_equal(adam->y[2], 2, 0);
    assert_contains(g->result.by_point, "They are compared at step 2, which all have");
    assert_non_null(find_note(g, "loss has 5 values at each step: the last one counts."));
    struct lab_study_run *run = add(g, "lion", 0, "loss", 0.5, NAN);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
    *said = run->metrics[0];
    for (int v = 0; v < 5; v++)
        lab_curve_add(&said->curve, 1.5 * v, 5 + v, 4 - v, &g->study.arena);
    run->metrics = said;
    analyse(g);
    assert_contains(g->result.by_point, "at step 2, interpolated between printed steps for lion;");
}

/* Given repeats whose steps differ, then the line is their mean and the band their range. */
LAB_TEST(curves_have_a_mean_and_a_band) {
    struct given *g = *state;
    for (int r = 0; r < 3; r++) {
        add_curve(g, "sgd", r, 0.5 + 0.01 * r, 10 + r);
        add_curve(g, "adamw", r, 0.02, 20);
    }
    analyse(g);
    const struct lab_chart *chart = g->result.charts;
    assert_string_equal(chart->name, "curve");
    assert_string_equal(chart->title, "loss over steps");
    assert_contains(chart->caption, "Lines are means over runs; bands go from their minimum to "
                                    "maximum.");
    const struct lab_chart_panel *panel = chart->panels;
    assert_int_equal(panel->series_count, 3); /* adamw's runs are alike: it has no band */
    const struct lab_chart_series *adamw = &panel->series[0], *band = &panel->series[1],
                                  *sgd = &panel->series[2];
    assert_string_equal(adamw->title, "adamw");
    assert_float_equal(adamw->y[20], 0.02, 1e-9);
    assert_int_equal(band->mark, LAB_CHART_BAND);
    assert_int_equal(band->colour, sgd->colour);
    assert_string_equal(sgd->title, "sgd");
    assert_float_equal(sgd->x[5], 5, 0);
    assert_float_equal(sgd->y[5], 1 - 5 * (0.5 / 10 + 0.49 / 11 + 0.48 / 12) / 3, 1e-9);
    assert_float_equal(band->low[5], 0.75, 1e-9);
    assert_float_equal(band->high[5], 1 - 5 * 0.48 / 12, 1e-9);
    assert_float_equal(sgd->x[sgd->count - 1], 11, 0); /* where most of the runs still are */
    assert_string_equal(g->result.charts[1].name, "curves_over_time");
    assert_float_equal(g->result.charts[1].panels[0].series[0].x[0], 0, 1e-9);
}

/* Given two settings that end alike and one that doesn't, then the two are drawn again, larger. */
LAB_TEST(ends_that_look_like_one_are_drawn_again) {
    struct given *g = *state;
    for (int r = 0; r < 2; r++) {
        add_curve(g, "sgd", r, 0.9, 20);
        add_curve(g, "adam", r, 0.2 + 0.001 * r, 20);
        add_curve(g, "adamw", r, 0.21 + 0.001 * r, 20);
    }
    analyse(g);
    const struct lab_chart *chart = g->result.charts;
    assert_int_equal(chart->panel_count, 2);
    const struct lab_chart_panel *end = &chart->panels[1];
    assert_string_equal(end->title, "Last quarter");
    for (int s = 0; s < end->series_count; s++) {
        assert_string_not_equal(end->series[s].title ? end->series[s].title : "", "sgd");
        assert_true(end->series[s].x[0] >= 15);
    }
}

/* Given too few points for a last quarter, then there is no empty panel for it. */
LAB_TEST(ends_without_a_line_are_not_drawn_again) {
    struct given *g = *state;
    for (int r = 0; r < 2; r++) {
        add_curve(g, "adam", r, 0.2 + 0.001 * r, 2);
        add_curve(g, "adamw", r, 0.21 + 0.001 * r, 2);
    }
    analyse(g);
    assert_string_equal(g->result.charts[0].name, "curve");
    assert_int_equal(g->result.charts[0].panel_count, 1);
}

/* Given settings of different lengths, then they are compared at the last step that all have. */
LAB_TEST(different_lengths_are_compared_where_all_are) {
    static const struct {
        int sgd, rms, adam;
        const char *answer, *note; /* NULL = none */
    } cases[] = {
        {10, 20, 30, "No difference larger than 0.3% in loss at step 10 between all 3 settings.",
         "Settings end at different steps: 10 (sgd), 20 (rms), 30 (adam). They are compared at "
         "step "
         "10, which all have; at=end of analyze compares their ends."},
        {30, 30, 30, "adam: 33.3% lower loss than rms (95% CI", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < 3; r++) { /* each loses 0.02 a step, and a bit by its seed */
            add_curve(g, "sgd", r, 0.8 + 0.001 * r, cases[i].sgd);
            add_curve(g, "rms", r, 0.6 + 0.001 * (r ^ 1), cases[i].rms);
            add_curve(g, "adam", r, 0.4 + 0.001 * r, cases[i].adam);
        }
        analyse(g);
        assert_contains(g->result.answer, cases[i].answer);
        assert_true(lab_str_equal(find_note(g, "different steps"), cases[i].note));
        assert_true(!strstr(g->result.by_point, "different steps") == !cases[i].note);
        assert_contains(g->result.by_point, "Geometric mean over runs");
        const struct lab_doc_table *table = &g->result.parts[0].tables[0];
        assert_string_equal(table->cells[0].text, "adam");
        assert_float_equal(table->cells[1].value, 0.401, 1e-3); /* ends stay in the table */
        assert_true(lab_str_equal(table->columns[4].title, i ? NULL : "At step 10"));
        given_end(&g->study);
    }
}

/* Given ends that the user set, then they are compared as they are. */
LAB_TEST(lengths_that_are_set_are_compared_at_their_ends) {
    static const struct {
        const char *key;
        int values[2], steps[2];
        double epoch;
        const char *note;
    } cases[] = {
        {"max_iters", {10, 20}, {10, 20}, NAN, "Their ends are compared, which max_iters sets."},
        {"batch", {64, 32}, {10, 20}, NAN, "Their ends are compared, which batch sets."},
        {"width", {64, 32}, {10, 40}, 3, "Their ends are compared: they have the same epochs."},
        {"width", {64, 32}, {10, 40}, NAN, "They are compared at step 10, which all have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < 6; r++) {
            struct lab_arena *arena = &g->study.arena;
            struct lab_study_run *run =
                add_curve(g, r % 2 ? "b" : "a", r / 2, 0.5 + 0.001 * r, cases[i].steps[r % 2]);
            struct lab_study_metric *said = lab_arena_alloc(arena, 2, sizeof *said);
            said[0] = run->metrics[0];
            said[1] = (struct lab_study_metric){"epoch", "", -1, cases[i].epoch};
            run->metrics = said;
            run->metric_count = isnan(cases[i].epoch) ? 1 : 2;
            run->options =
                given_json(&g->study, lab_arena_printf(arena, "{\"matrix\": {\"%s\": %d}}",
                                                       cases[i].key, cases[i].values[r % 2]));
        }
        analyse(g);
        assert_contains(find_note(g, "different steps"), cases[i].note);
        given_end(&g->study);
    }
}

/* Given a setting whose loss becomes NaN, then its curve ends there, marked; also where all do. */
LAB_TEST(what_diverged_is_drawn_up_to_there) {
    for (int all = 0; all < 2; all++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int s = 0; s < 2; s++) {
            struct lab_study_run *run = add(g, s ? "hot" : "sgd", 0, "loss", NAN, NAN);
            struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
            *said = run->metrics[0];
            for (int i = 0; i <= 10; i++)
                lab_curve_add(&said->curve, i, i, (s || all) && i > 6 ? (double)NAN : 1 - 0.05 * i,
                              &g->study.arena);
            said->value = said->curve.last;
            run->metrics = said;
        }
        analyse(g);
        const struct lab_chart *chart = &g->result.charts[0];
        const struct lab_chart_series *mark = &chart->panels[0].series[all ? 2 : 1],
                                      *hot = mark + 1;
        assert_string_equal(chart->title, "loss over steps");
        assert_string_equal(chart->caption, "A point marks where a setting diverged.");
        assert_string_equal(hot->title, "hot (diverged)");
        assert_float_equal(hot->x[hot->count - 1], 6, 0);
        assert_int_equal(mark->mark, LAB_CHART_POINTS);
        assert_int_equal(mark->colour, hot->colour);
        assert_float_equal(mark->x[0], 6, 0);
        assert_float_equal(mark->y[0], 0.7, 1e-9);
        given_end(&g->study);
    }
}

/* Given a setting that diverges, then the others can still be seen. */
LAB_TEST(what_diverges_hides_nothing) {
    struct given *g = *state;
    add_curve(g, "sgd", 0, 1e30, 10);
    add_curve(g, "adamw", 0, 0.2, 10);
    analyse(g);
    const struct lab_chart_panel *panel = g->result.charts[0].panels;
    for (int s = 0; s < panel->series_count; s++)
        for (size_t i = 0; i < panel->series[s].count; i++)
            assert_true(panel->series[s].y[i] <= 10);
    assert_contains(g->result.charts[0].caption, "Values above 10 aren't drawn.");
}

/* Given one long run, then its band is what the thinned points stand for. */
LAB_TEST(a_thinned_curve_keeps_its_extremes) {
    struct given *g = *state;
    struct lab_study_run *run = add(g, "sgd", 0, "loss", 0.5, NAN);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
    *said = run->metrics[0];
    for (int i = 0; i < 5000; i++)
        lab_curve_add(&said->curve, i, i, i % 2 ? 0.4 : 0.6, &g->study.arena);
    run->metrics = said;
    analyse(g);
    const struct lab_chart_panel *panel = g->result.charts[0].panels;
    assert_int_equal(panel->series_count, 2);
    assert_in_range(panel->series[0].count, 100, 200);
    assert_float_equal(panel->series[0].low[3], 0.4, 1e-9);
    assert_float_equal(panel->series[0].high[3], 0.6, 1e-9);
    assert_float_equal(panel->series[1].y[3], 0.5, 1e-9);
}

/* Given values that came in blocks, then there is no chart over time, and it is said why. */
LAB_TEST(buffered_values_have_no_times) {
    static const int blocks[] = {1, 8, -8, -40};
    for (int b = 0; b < 4; b++) {
        int block = blocks[b];
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        struct lab_study_run *run = add(g, "sgd", 0, "loss", 0.5, NAN);
        struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
        *said = run->metrics[0];
        double pause_s = block < 0 ? 0.01 : 1; /* a program that prints fast has none */
        for (int i = 0; i < 40; i++)           /* of two epochs, each counted from 0 */
            lab_curve_add(&said->curve, i % 20, 9 + pause_s * (i / abs(block)), 1 - 0.01 * i,
                          &g->study.arena);
        run->metrics = said;
        analyse(g);
        assert_string_equal(g->result.charts[0].title, "loss over steps");
        assert_float_equal(g->result.charts[0].panels[0].series[0].x[39], 39, 0);
        bool over_time = g->result.chart_count > 1 &&
                         lab_str_equal(g->result.charts[1].name, "curves_over_time");
        assert_true(over_time == (block == 1));
        const char *noted = NULL;
        for (const char *const *note = g->result.notes; note && *note; note++)
            noted = strstr(*note, "buffers its output") ? *note : noted;
        assert_true((noted != NULL) == (block != 1));
        assert_true((noted && strstr(noted, "in one block")) == (block < 0));
        given_end(&g->study);
    }
}

/* Given a run that goes on at an earlier step, then there is no chart over steps, and it is said. */
LAB_TEST(steps_that_go_back_are_noted) {
    struct given *g = *state;
    struct lab_study_run *run = add(g, "sgd", 0, "loss", 0.5, NAN);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 1, sizeof *said);
    *said = run->metrics[0];
    for (int i = 0; i < 20; i++)
        lab_curve_add(&said->curve, i < 10 ? i + 1 : i - 4, i, 1, &g->study.arena);
    run->metrics = said;
    analyse(g);
    assert_string_equal(g->result.charts[0].title, "loss over time");
    const char *const *note = g->result.notes;
    while (note && *note && !strstr(*note, "steps go back"))
        note++;
    assert_true(note && *note);
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
