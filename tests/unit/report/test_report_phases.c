/* The files beside the report of a study with phases: each run has its own, in the tuner's
 * format. */
#include "report/report_internal.h"
#include "unit/analysis/study_answers.h"

#define REGRET_RESULT                                                                              \
    "{\"ranks\": [{\"configuration\": \"rows=2,threads=64\", \"latency_ms\": {\"median\": 0.5}}]}"

static void given_shape(struct given_study *given, const char *kernel, const char *shape) {
    static const char *const phases[] = {"baseline", "concurrent", "regret"};
    for (int i = 0; i < 3; i++)
        for (int block = 0; block < 2; block++) {
            struct lab_study_run *run = given_add(
                given,
                (struct given_run){.model = shape,
                                   .repeat = block,
                                   .rate = 1000,
                                   .suffix = lab_arena_printf(&given->arena, "_%s", phases[i]),
                                   .phase = phases[i],
                                   .test = "{\"place\": \"alone\"}",
                                   .result = i == 2 ? REGRET_RESULT : NULL});
            struct lab_run *own = lab_arena_alloc(&given->arena, 1, sizeof *own);
            *own = *run->run;
            own->workload = kernel;
            run->run = own;
        }
}

static struct report_found when_made(struct given_study *given) {
    struct report_found found = {.arena = &given->arena, .deadline_ns = 1}; /* no analyses */
    report_phase_files(&found, &given->table);
    return found;
}

static const char *text_of(const struct report_found *found, const char *name) {
    for (int i = 0; i < found->file_count; i++)
        if (lab_str_equal(found->files[i].name, name))
            return found->files[i].text;
    fail_msg("no %s; the first is %s", name, found->file_count ? found->files[0].name : "none");
    return NULL;
}

LAB_TEST(a_kernel_of_several_shapes_has_a_file_for_each) {
    struct given_study given;
    given_begin(&given, "contention");
    given_shape(&given, "softmax", "softmax1024x2048");
    given_shape(&given, "gemm", "gemm512");
    given_shape(&given, "softmax", "softmax8192x2048");
    struct report_found found = when_made(&given);
    assert_int_equal(found.file_count, given.table.run_count);
    for (int i = 0; i < found.file_count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(found.files[i].name, found.files[k].name);
    text_of(&found, "baseline_gpu0_softmax1024x2048.json");
    text_of(&found, "concurrent_gpu0_softmax8192x2048_r1.json");
    text_of(&found, "baseline_gpu0_gemm.json"); /* as published scripts expect it */
    given_end(&given);
}

LAB_TEST(what_was_chosen_is_a_map_where_nothing_was_tuned_too) {
    struct given_study given;
    given_begin(&given, "contention");
    given_shape(&given, "softmax", "softmax1024x2048");
    struct report_found found = when_made(&given);
    const struct lab_value *regret =
        given_json(&given, text_of(&found, "regret_gpu0_softmax.json"));
    const struct lab_value *best = lab_value_get(regret, "best_config");
    assert_int_equal(best->type, LAB_VALUE_MAP);
    assert_int_equal(lab_value_get(best, "threads")->integer, 64);
    assert_string_equal(lab_value_get(regret, "best_config_text")->string, "rows=2,threads=64");
    given_end(&given);
}

/* Anybody may have written the file. */
LAB_TEST(a_tuning_that_is_no_map_is_left_out) {
    struct given_study given;
    given_begin(&given, "contention");
    given_shape(&given, "softmax", "softmax1024x2048");
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].result =
            result_from("{\"ranks\": [{\"tuning\": [1, 2]}]}", &given.arena);
    struct report_found found = when_made(&given);
    const struct lab_value *made =
        given_json(&given, text_of(&found, "baseline_gpu0_softmax.json"));
    assert_string_equal(lab_value_get_text(made, "kernel_name", ""), "softmax");
    given_end(&given);
}
