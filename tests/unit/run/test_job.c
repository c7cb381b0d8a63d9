/* test_job.c: a job arrives as it was sent, and one that isn't whole is refused in words. */
#include "base/json.h"
#include "run/job.h"

#include <string.h>

#include "test.h"

static struct lab_job example(void) {
    static const struct lab_job_rank ranks[] = {{0, 4, "cpu:0/2.0", 1}, {2, 5, "cpu:0/2.1", -1}};
    struct lab_job job = {
        .run_id = "gpu4+5_numa1_vit32x6x512",
        .folder = "/tmp/a study's \"folder\"",
        .workload = "vit",
        .options = lab_value_map(&test_arena),
        .ranks = ranks,
        .rank_count = 2,
        .gang_size = 3,
        .iterations = 100,
        .warmup_iterations = 10,
        .duration_s = 0.25,
        .seed = ((uint64_t)1 << 53) - 1,
        .repeat = 4,
        .port = 29400,
        .launcher = true,
        .verify = true,
        .trace = true,
    };
    lab_value_set_int(&test_arena, job.options, "depth", 6);
    lab_value_set_string(&test_arena, job.options, "dtype", "fp32");
    lab_value_set_bool(&test_arena, job.options, "compile_model", false);
    return job;
}

static const char *text_of(const struct lab_job *job) {
    LAB_AUTO(str, text);
    lab_job_write(job, &text);
    const char *kept = lab_arena_strdup(&test_arena, text.text);
    return kept;
}

LAB_TEST(a_job_arrives_as_it_was_sent) {
    struct lab_job sent = example(), job;
    const char *text = text_of(&sent);
    ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
    assert_string_equal(job.run_id, sent.run_id);
    assert_string_equal(job.folder, sent.folder);
    assert_string_equal(job.workload, "vit");
    assert_true(lab_value_equal(job.options, sent.options));
    assert_int_equal(job.rank_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.ranks[i].index, sent.ranks[i].index);
        assert_int_equal(job.ranks[i].gpu_id, sent.ranks[i].gpu_id);
        assert_string_equal(job.ranks[i].device, sent.ranks[i].device);
        assert_int_equal(job.ranks[i].numa_node, sent.ranks[i].numa_node);
    }
    assert_int_equal(job.gang_size, 3);
    assert_int_equal(job.iterations, 100);
    assert_int_equal(job.warmup_iterations, 10);
    assert_true(job.duration_s == 0.25);
    assert_true(job.seed == sent.seed);
    assert_int_equal(job.repeat, 4);
    assert_int_equal(job.port, 29400);
    assert_true(job.launcher);
    assert_true(job.verify);
    assert_true(job.trace);
}

LAB_TEST(a_simulated_machine_comes_with_the_job) {
    struct lab_job sent = example(), job;
    sent.machine = "l40s-10";
    sent.definition = "title: \"ten\"\nnodes: []\n";
    sent.chance = 12345;
    sent.start_ns = INT64_C(1) << 60;
    const char *text = text_of(&sent);
    ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
    assert_string_equal(job.machine, "l40s-10");
    assert_string_equal(job.definition, sent.definition);
    assert_int_equal(job.chance, 12345);
    assert_true(job.start_ns == sent.start_ns);
}

LAB_TEST(a_phase_comes_with_the_job) {
    static const int cpus[] = {1, 3};
    static const struct lab_job_choice choices[] = {{"baseline", "rows=4"},
                                                    {"concurrent", "rows=8"}};
    static const struct lab_job_rank ranks[] = {{.device = "cpu:0",
                                                 .numa_node = -1,
                                                 .cpus = cpus,
                                                 .cpu_count = 2,
                                                 .config = "rows=4",
                                                 .choices = choices,
                                                 .choice_count = 2}};
    struct lab_job sent = example(), job;
    sent.ranks = ranks;
    sent.rank_count = 1;
    sent.probe = true;
    sent.tune_s = 2.5;
    sent.disturb = "membw";
    const char *text = text_of(&sent);
    ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
    assert_true(job.probe && job.tune_s == 2.5);
    assert_string_equal(job.disturb, "membw");
    assert_int_equal(job.ranks[0].cpu_count, 2);
    assert_int_equal(job.ranks[0].cpus[1], 3);
    assert_string_equal(job.ranks[0].config, "rows=4");
    assert_int_equal(job.ranks[0].choice_count, 2);
    assert_string_equal(job.ranks[0].choices[1].phase, "concurrent");
    assert_string_equal(job.ranks[0].choices[1].config, "rows=8");
}

/* The example with one field set to a JSON text, or left out where it is NULL. */
static const char *with_field(const char *key, const char *json) {
    struct lab_job sent = example();
    const char *text = text_of(&sent);
    struct lab_value *whole = NULL, *changed = lab_value_map(&test_arena), *field = NULL;
    ASSERT_OK(lab_json_parse(text, strlen(text), "test", &test_arena, &whole, err));
    if (json)
        ASSERT_OK(lab_json_parse(json, strlen(json), "test", &test_arena, &field, err));
    for (int i = 0; i < whole->count; i++)
        if (!lab_str_equal(whole->keys[i], key))
            lab_value_set(&test_arena, changed, whole->keys[i], whole->items[i]);
    if (field)
        lab_value_set(&test_arena, changed, key, field);
    return lab_json_text(changed, &test_arena);
}

static void refuse(const char *key, const char *json, const char *message) {
    struct lab_job job;
    struct lab_err err = LAB_ERR_INIT;
    const char *text = with_field(key, json);
    assert_int_equal(lab_job_read(text, strlen(text), &test_arena, &job, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    if (!strstr(err.text, message))
        fail_msg("%s=%s: '%s' isn't in: %s", key, json, message, err.text);
}

LAB_TEST(whatever_is_missing_is_named) {
    static const char *const fields[] = {
        "run_id",     "folder",    "workload",   "options",
        "ranks",      "gang_size", "iterations", "warmup_iterations",
        "duration_s", "seed",      "verify",     "trace"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        refuse(fields[i], NULL, lab_arena_printf(&test_arena, "job: '%s' is missing", fields[i]));
}

LAB_TEST(whatever_is_of_another_type_is_named) {
    refuse("run_id", "3", "'run_id' must be text, not a whole number");
    refuse("folder", "null", "'folder' must be text");
    refuse("workload", "[]", "'workload' must be text, not a list");
    refuse("options", "[]", "'options' must be a map, not a list");
    refuse("ranks", "{}", "'ranks' must be a list, not a map");
    refuse("gang_size", "\"2\"", "'gang_size' must be a whole number");
    refuse("iterations", "1.5", "'iterations' must be a whole number");
    refuse("warmup_iterations", "null", "'warmup_iterations' must be");
    refuse("duration_s", "\"1s\"", "'duration_s' must be a number");
    refuse("seed", "true", "'seed' must be a whole number");
    refuse("verify", "1", "'verify' must be true or false");
}

LAB_TEST(whatever_is_out_of_bounds_is_named) {
    refuse("run_id", "\"\"", "'run_id' is empty");
    refuse("workload", "\"\"", "'workload' is empty");
    refuse("folder", "\"outputs/x\"", "'folder' must be an absolute path, not 'outputs/x'");
    refuse("gang_size", "0", "'gang_size' is 0, possible is 1 to 65536");
    refuse("gang_size", "1", "'ranks' has 2, possible is 1 to 1");
    refuse("iterations", "-1", "'iterations' is -1, possible is 0 to");
    refuse("warmup_iterations", "99999999999", "'warmup_iterations' is 99999999999");
    refuse("duration_s", "-0.5", "'duration_s' is -0.5, the least is 0");
    refuse("seed", "9007199254740992", "possible is 0 to 9007199254740991");
    refuse("colour", "\"red\"", "unknown key 'colour'");
}

#define RANK(index, more) "{\"index\":" index ",\"gpu_id\":0,\"device\":\"cpu:0\"" more "}"

LAB_TEST(ranks_are_checked_one_by_one) {
    refuse("ranks", "[]", "'ranks' has 0, possible is 1 to 3");
    refuse("ranks", "[7]", "rank 0: must be a map, not a whole number");
    refuse("ranks", "[" RANK("0", "") "]", "rank 0: 'numa_node' is missing");
    refuse("ranks", "[" RANK("3", ",\"numa_node\":0") "]", "'index' is 3, possible is 0 to 2");
    refuse("ranks", "[" RANK("0", ",\"numa_node\":-2") "]", "'numa_node' is -2");
    refuse("ranks", "[" RANK("0", ",\"numa_node\":0,\"core\":1") "]", "unknown key 'core'");
    refuse("ranks", "[" RANK("1", ",\"numa_node\":0") "," RANK("1", ",\"numa_node\":0") "]",
           "rank 1: index 1 must be above 1");
    refuse("ranks", "[{\"index\":0,\"gpu_id\":0,\"device\":\"\",\"numa_node\":0}]",
           "rank 0: 'device' is empty");
    static const struct {
        const char *more, *message;
    } cases[] = {
        {"\"cpus\":7", "rank 0: 'cpus' must be a list"},
        {"\"cpus\":[\"1\"]", "rank 0: 'cpus' must be rising numbers below"},
        {"\"cpus\":[-1]", "rank 0: 'cpus' must be rising numbers below"},
        {"\"cpus\":[1,1]", "rank 0: 'cpus' must be rising numbers below"},
        {"\"cpus\":[2,3,1]", "rank 0: 'cpus' must be rising numbers below"},
        {"\"cpus\":[8192]", "rank 0: 'cpus' must be rising numbers below 8192"},
        {"\"cpus\":[0,8191],\"choices\":7", "rank 0: 'choices' must be a list"},
        {"\"choices\":[]", "rank 0: 'choices' has 0, possible is 1 to"},
        {"\"choices\":[7]", "rank 0: choice 0: must be a map"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(
            "ranks",
            lab_arena_printf(&test_arena, "[" RANK("0", ",\"numa_node\":0,%s") "]", cases[i].more),
            cases[i].message);
}

/* What is just allowed, and what may be left out. */
LAB_TEST(bounds_are_allowed_themselves) {
    static const struct {
        const char *key, *json;
    } cases[] = {
        {"folder", "\"\""},
        {"folder", "\"/\""},
        {"gang_size", "65536"},
        {"iterations", "2147483647"},
        {"warmup_iterations", "0"},
        {"warmup_iterations", "2147483647"},
        {"duration_s", "0"},
        {"seed", "0"},
        {"seed", "9007199254740991"},
        {"repeat", "0"},
        {"repeat", "2147483647"},
        {"repeat", NULL},
        {"port", "0"},
        {"port", "65535"},
        {"port", NULL},
        {"launcher", NULL},
        {"ranks", "[" RANK("0", ",\"numa_node\":-1") "]"},
        {"ranks", "[" RANK("2", ",\"numa_node\":2147483647") "]"},
        {"ranks", "[" RANK("0", ",\"numa_node\":0,\"cpus\":[0,8191]") "]"},
        {"ranks", "[" RANK("0", ",\"numa_node\":0,\"cpus\":[]") "]"},
        {"ranks", "[" RANK("0", ",\"numa_node\":0,\"cpus\":[5,6,7]") "]"},
        {"ranks", "[" RANK("0", ",\"numa_node\":0") "," RANK("1", ",\"numa_node\":0") "]"},
        {"simulation", "{\"machine\":\"x\",\"definition\":\"y\",\"chance\":0,\"start_ns\":1}"},
        {"phase", "{\"probe\":true,\"tune_s\":0}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_job job;
        const char *text = with_field(cases[i].key, cases[i].json);
        ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
    }
    refuse("gang_size", "65537", "'gang_size' is 65537, possible is 1 to 65536");
    refuse("iterations", "2147483648", "'iterations' is 2147483648, possible is 0 to 2147483647");
    refuse("warmup_iterations", "2147483648", "'warmup_iterations' is 2147483648");
    refuse("seed", "-1", "'seed' is -1");
    refuse("repeat", "-1", "'repeat' is -1");
    refuse("repeat", "2147483648", "'repeat' is 2147483648");
    refuse("port", "-1", "'port' is -1, possible is 0 to 65535");
    refuse("port", "65536", "'port' is 65536, possible is 0 to 65535");
    refuse("launcher", "1", "'launcher' must be true or false");
    refuse("phase", "{\"probe\":true}", "phase: 'tune_s' is missing");
    refuse("phase", "{\"probe\":true,\"tune_s\":-1}", "phase: 'tune_s' is -1, the least is 0");
    refuse("phase", "{\"probe\":true,\"tune_s\":1,\"disturb\":\"\"}", "phase: 'disturb' is empty");
    refuse("ranks", "[{\"index\":0,\"gpu_id\":-1,\"device\":\"x\",\"numa_node\":0}]",
           "'gpu_id' is -1");
    refuse("ranks", "[" RANK("-1", ",\"numa_node\":0") "]", "'index' is -1, possible is 0 to 2");
}

/* The reader takes 64 choices of a rank. */
LAB_TEST(as_many_choices_as_there_are_phases) {
    for (int count = 63; count <= 66; count++) {
        LAB_AUTO(str, ranks);
        struct lab_job job;
        lab_str_add(&ranks, "[{\"index\":0,\"gpu_id\":0,\"device\":\"x\",\"numa_node\":0,"
                            "\"choices\":[");
        for (int i = 0; i < count; i++)
            lab_str_printf(&ranks, "%s{\"phase\":\"p%d\",\"config\":\"c\"}", i ? "," : "", i);
        lab_str_add(&ranks, "]}]");
        if (count > 64) {
            refuse("ranks", ranks.text,
                   lab_arena_printf(&test_arena, "'choices' has %d, possible is 1 to 64", count));
            continue;
        }
        const char *text = with_field("ranks", ranks.text);
        ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
        assert_int_equal(job.ranks[0].choice_count, count);
        assert_string_equal(job.ranks[0].choices[count - 1].phase,
                            lab_arena_printf(&test_arena, "p%d", count - 1));
    }
}

LAB_TEST(a_job_says_how_much_to_measure) {
    struct lab_job sent = example(), job;
    sent.iterations = 0;
    const char *text = text_of(&sent);
    ASSERT_OK(lab_job_read(text, strlen(text), &test_arena, &job, err));
    sent.duration_s = 0;
    text = text_of(&sent);
    ASSERT_SAYS(lab_job_read(text, strlen(text), &test_arena, &job, err),
                "'iterations' or 'duration_s' is missing");
}

LAB_TEST(a_half_described_machine_is_refused) {
    refuse("simulation", "7", "'simulation' must be a map");
    refuse("simulation", "{\"machine\": \"x\"}", "simulation: 'definition' is missing");
    refuse("simulation", "{\"machine\": \"\"}", "simulation: 'machine' is empty");
    refuse("simulation",
           "{\"machine\": \"x\", \"definition\": \"y\", \"chance\": 1, \"start_ns\": 0}",
           "'start_ns' is 0");
    refuse("simulation", "{\"machines\": \"x\"}", "unknown key 'machines'");
}

LAB_TEST(what_is_no_map_is_refused) {
    struct lab_job job;
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_job_read("[1]", 3, &test_arena, &job, &err), -1);
    assert_string_equal(err.text, "job: must be a map, not a list");
    assert_int_equal(lab_job_read("{\"run_id\"", 9, &test_arena, &job, &err), -1);
    assert_int_equal(lab_job_read("", 0, &test_arena, &job, &err), -1);
}
