/* What a setting does for its energy, how fast it is, and the line that runs it. */
#include "analysis/metrics/metrics.h"
#include "metrics_fixture.h"

/* What a rate does for a joule is work: the faster run that takes more energy may do less. */
LAB_TEST(work_per_joule_is_compared) {
    struct given *g = *state;
    g->study.table.matrix = given_json(&g->study, "{\"batch_size\": [4, 8]}");
    for (int r = 0; r < 3; r++)
        for (int size = 4; size <= 8; size += 4) {
            struct lab_study_run *run =
                given_add(&g->study, (struct given_run){.model = size == 4 ? "gpt2_4" : "gpt2_8",
                                                        .repeat = r,
                                                        .rate = 50 + size + r});
            ((struct lab_run *)run->run)->rate_unit = "tokens/s";
            run->time_s /= 10; /* the median, next to few iterations that take long */
            run->options = given_json(
                &g->study, lab_arena_printf(&g->study.arena, "{\"batch_size\": %d}", size));
            run->result =
                result_from(lab_arena_printf(&g->study.arena, "{\"energy_j\": %g, \"samples\": %d}",
                                             (size == 4 ? 548 : 1070) + 0.1 * r, 40960 * size),
                            &g->study.arena);
        }
    analyse(g);
    assert_contains(g->result.answer,
                    "batch_size=8: 2.4% higher tokens per joule than batch_size=4");
    assert_string_equal(cell(g, "settings", 0, "tokens per kJ")->text, "306k");
    assert_string_equal(cell(g, "settings", 1, "tokens per kJ")->text, "299k");
    assert_string_equal(cell(g, "settings", 0, "Time per iteration")->text, "170 ms ±4.3%");
    assert_string_equal(cell(g, "settings", 0, "Energy of the run")->text, "1.07 kJ");
    /* all settings have their change at the study's end; a rate and the time next to it agree */
    assert_contains(g->result.by_point, "Time per iteration: mean over a run, as its throughput.");
    /* of a program it is its rate times its time */
    struct lab_study_metric said = {"tok_per_s", "tokens/s", -1, 100};
    struct metrics_metric rate = {
        .name = "tok_per_s", .unit = "tokens/s", .rate = true, .better = LAB_DIRECTION_HIGHER};
    struct lab_run planned = {.rate_unit = "runs/h"};
    struct lab_study_run run = {.run = &planned,
                                .metrics = &said,
                                .metric_count = 1,
                                .time_s = 30,
                                .result = result_from("{\"energy_j\": 600}", &g->study.arena)};
    assert_float_equal(metrics_per_kj(&run, &rate), 5000, 1e-9);
    rate.name = said.name = "eval_tok_per_s"; /* not what it did all the time */
    assert_true(isnan(metrics_per_kj(&run, &rate)));
}

/* The rate that gpulab counted has a column, unless the time shows it; and a line is promised only
 * where one can be made. */
LAB_TEST(steps_and_commands_are_shown) {
    static const struct {
        const char *unit, *command, *action;
    } cases[] = {
        {"steps/s", "t {optimizer} {repeat}", "Use adam (SEED: the study's repeat number)"},
        {"epochs/h", "torchrun {gpu_ids} {repeat}", "Use adam"},
        {"runs/h", "t {optimizer}", "Use adam"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < 6; r++) {
            const char *name = r < 3 ? "adam" : "sgd";
            struct lab_study_run *run = add(g, name, r % 3, "loss", 0.5 + 0.001 * r + r / 3, 1);
            ((struct lab_run *)run->run)->rate_unit = cases[i].unit;
            run->options = given_json(
                &g->study, lab_arena_printf(&g->study.arena,
                                            "{\"command\": \"%s\", \"matrix\": {\"optimizer\": "
                                            "\"%s\"}}",
                                            cases[i].command, name));
        }
        analyse(g);
        assert_true((cell(g, "settings", 0, cases[i].unit) != NULL) == (i < 2));
        assert_string_equal(g->result.action, cases[i].action);
        assert_true((g->result.command != NULL) == (i != 1));
        given_end(&g->study);
    }
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
