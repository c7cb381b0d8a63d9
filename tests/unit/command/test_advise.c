/* Lines to paste follow from what recommend found; a gain stands only on what was measured. */
#include "unit/analysis/study_fixture.h"

#include "analysis/analysis.h"
#include "base/str.h"
#include "command/support/advise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int cpus[] = {16, 17, 18, 19};
static struct lab_node nodes[] = {{.number = 0, .core_count = 4},
                                  {.number = 1, .core_count = 4, .cpus = {cpus, 4}}};
static const struct lab_machine machine = {.nodes = nodes, .node_count = 2};

static struct lab_advice advise(struct given_study *given) {
    const struct lab_analysis *recommend = lab_analysis_find("recommend", NULL);
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    assert_int_equal(recommend->run(lab_analysis_config(recommend, &given->arena), &input,
                                    &given->arena, &result, NULL),
                     0);
    assert_int_equal(result.part_count, 1);
    return lab_advice_make(&result, 0, "outputs/given", &machine, &given->arena);
}

static const struct lab_advice_line *find(const struct lab_advice *advice, const char *tool) {
    for (int i = 0; i < advice->count; i++)
        if (lab_str_equal(advice->lines[i].tool, tool))
            return &advice->lines[i];
    return NULL;
}

/* GPU 3 at home on node 1, fed from both nodes. */
static void given_nodes(struct given_study *given, double local, double remote, int runs,
                        double spread) {
    given_begin(given, "numa_study");
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < runs; i++)
            given_add(given, (struct given_run){.model = "vit32x2x128",
                                                .gpu = 3,
                                                .node = node,
                                                .home = 1,
                                                .repeat = i,
                                                .rate = (node ? local : remote) *
                                                        (1 + spread * given_normal(given))});
}

static void a_node_that_pays_is_a_line_with_its_gain(void **state) {
    (void)state;
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    const struct lab_advice_line *line = find(&advice, "numactl");
    assert_non_null(line);
    assert_string_equal(line->line, "numactl --cpunodebind=1 --membind=1 PROGRAM");
    assert_int_equal(line->state, LAB_ADVICE_WORTH);
    assert_true(line->low < .2 && .2 < line->high);
    assert_string_equal(line->why, "node 1 rather than node 0");
    assert_string_equal(
        find(&advice, "slurm")->line,
        "srun -n 1 --cpu-bind=map_ldom:1 --mem-bind=map_mem:1 --gpu-bind=map_gpu:3 PROGRAM");
    assert_string_equal(find(&advice, "taskset")->line, "taskset -c 16-19 PROGRAM");
    assert_string_equal(find(&advice, "openmp")->line,
                        "OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close PROGRAM");
    const char *answer = lab_advice_answer(&advice, 1, &given.arena);
    assert_non_null(strstr(answer, "Worth most: node 1 rather than node 0 gains 2"));
    given_end(&given);
}

static void what_was_not_measured_says_so(void **state) {
    (void)state;
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    for (int i = 0; i < advice.count; i++) {
        const struct lab_advice_line *line = &advice.lines[i];
        assert_int_equal(isnan(line->gain), line->state >= LAB_ADVICE_SAME_PLACE);
        assert_true(line->why && *line->why);
    }
    assert_int_equal(find(&advice, "mps")->state, LAB_ADVICE_NOT_MEASURED);
    struct lab_str text;
    lab_str_init(&text);
    lab_advice_write(&advice, 1, (struct lab_style){.columns = 80, .unicode = true}, &given.arena,
                     &text);
    const char *apart = strstr(text.text, "Not measured here");
    assert_non_null(apart);
    assert_true(strstr(text.text, "numactl --cpunodebind=1") < apart);
    assert_non_null(strstr(apart, "nvidia-smi -i 3 -c EXCLUSIVE_PROCESS"));
    lab_str_release(&text);
    given_end(&given);
}

static void a_node_that_gains_nothing_is_not_advised(void **state) {
    (void)state;
    struct given_study given;
    given_nodes(&given, 1000, 1000, 6, .005);
    struct lab_advice advice = advise(&given);
    assert_int_equal(find(&advice, "numactl")->state, LAB_ADVICE_NOT_WORTH);
    assert_string_equal(advice.best, "device 3 from any node");
    assert_null(find(&advice, "slurm"));
    assert_null(find(&advice, "taskset"));
    const char *answer = lab_advice_answer(&advice, 1, &given.arena);
    assert_true(lab_str_starts(answer, "Nothing is worth it: none of 1 choice gains more than"));
    struct lab_str text;
    lab_str_init(&text);
    lab_advice_write(&advice, 1, (struct lab_style){.columns = 80}, &given.arena, &text);
    assert_null(strstr(text.text, "numactl"));
    assert_non_null(strstr(text.text, "none larger than"));
    lab_str_release(&text);
    given_end(&given);
}

static void one_run_each_advises_nothing_but_more_runs(void **state) {
    (void)state;
    struct given_study given;
    given_nodes(&given, 1200, 1000, 1, 0);
    struct lab_advice advice = advise(&given);
    assert_int_equal(find(&advice, "numactl")->state, LAB_ADVICE_UNDECIDED);
    assert_true(
        lab_str_starts(lab_advice_answer(&advice, 1, &given.arena), "Nothing can be advised yet"));
    assert_non_null(advice.next);
    assert_non_null(strstr(advice.next, "experiment.repeat=5"));
    given_end(&given);
}

static void programs_get_states_and_intervals(void **state) {
    (void)state;
    struct given_study given;
    given_nodes(&given, 1200, 1000, 5, .005);
    struct lab_advice advice = advise(&given);
    struct lab_value *value = lab_advice_value(&advice, &given.arena);
    const struct lab_value *first = lab_value_get(value, "lines")->items[0];
    assert_string_equal(lab_value_get(first, "state")->string, "worth");
    assert_true(lab_value_get(first, "measured")->boolean);
    const struct lab_value *interval = lab_value_get(first, "gain_interval");
    assert_true(lab_value_get(interval, "low")->number < lab_value_get(interval, "high")->number);
    given_end(&given);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_pays_is_a_line_with_its_gain),
        cmocka_unit_test(what_was_not_measured_says_so),
        cmocka_unit_test(a_node_that_gains_nothing_is_not_advised),
        cmocka_unit_test(one_run_each_advises_nothing_but_more_runs),
        cmocka_unit_test(programs_get_states_and_intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
