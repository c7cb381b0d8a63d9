/*
 * test_config_studies.c: the studies that ship, by their figures, and the command lines that the
 * GPU-NUMA guide and plan give (what follows the script's name there), by what they come to. Points
 * are counted here as docs/STUDIES.md defines them.
 */
#include "config_fixture.h"

#define AXES_MAX 16

/* --- counting points --- */

struct axis { /* keys that move together, each with a list of values */
    int key_count;
    const char *keys[4];
    const struct lab_value *values[4];
};

struct count {
    int points;
    struct lab_value *runs; /* a map whose keys are the points that differ */
};

/* The elements of what an axis names: of a list, or the one value. */
static const struct lab_value *elements(struct lab_value *value) {
    if (value->type == LAB_VALUE_LIST)
        return value;
    struct lab_value *list = lab_value_list(&arena);
    lab_value_append(&arena, list, value);
    return list;
}

static int read_axes(struct lab_value *experiment, const struct lab_value *list,
                     struct axis *ret_axes) {
    int count = 0;
    for (int i = 0; list && i < list->count; i++) {
        struct lab_value *entry = list->items[i];
        if (entry->type == LAB_VALUE_MAP) {
            struct axis *axis = &ret_axes[count++];
            axis->key_count = entry->count;
            for (int k = 0; k < entry->count; k++) {
                axis->keys[k] = entry->keys[k];
                axis->values[k] = entry->items[k];
                assert_int_equal(entry->items[k]->count, entry->items[0]->count);
            }
            continue;
        }
        struct lab_value *value = value_at(experiment, entry->string);
        assert_non_null(value);
        if (value->type != LAB_VALUE_MAP) {
            ret_axes[count++] = (struct axis){1, {entry->string}, {elements(value)}};
            continue;
        }
        for (int k = 0; k < value->count; k++)
            ret_axes[count++] =
                (struct axis){1,
                              {lab_arena_printf(&arena, "%s.%s", entry->string, value->keys[k])},
                              {elements(value->items[k])}};
    }
    return count;
}

static bool is_in(const struct lab_value *where, struct lab_value *point) {
    for (int i = 0; where && i < where->count; i++) {
        struct lab_value *value = lab_value_get(point, where->keys[i]);
        const char *dot = strrchr(where->keys[i], '.');
        if (!value && dot)
            value = lab_value_get(
                lab_value_get(point, lab_arena_strndup(&arena, where->keys[i],
                                                       (size_t)(dot - where->keys[i]))),
                dot + 1);
        assert_non_null(value);
        if (!lab_value_equal(value, where->items[i]))
            return false;
    }
    return true;
}

static void add_points(const struct axis *axes, int count, struct lab_value *point,
                       void (*visit)(void *, struct lab_value *), void *context) {
    if (count == 0) {
        visit(context, point);
        return;
    }
    for (int i = 0; i < axes->values[0]->count; i++) {
        for (int k = 0; k < axes->key_count; k++)
            lab_value_set(&arena, point, axes->keys[k], axes->values[k]->items[i]);
        add_points(axes + 1, count - 1, point, visit, context);
    }
}

static void add_run(void *context, struct lab_value *point) {
    struct count *count = context;
    count->points++;
    lab_value_set_bool(&arena, count->runs, text_of(point), true);
}

struct study {
    struct lab_value *experiment;
    struct count *count;
};

static struct lab_value *copy_of(const struct lab_value *map) {
    struct lab_value *copy = lab_value_map(&arena);
    for (int i = 0; i < map->count; i++)
        lab_value_set(&arena, copy, map->keys[i], map->items[i]);
    return copy;
}

/* A point of the study's own axes, in each series that takes it. */
static void add_series(void *context, struct lab_value *point) {
    const struct study *study = context;
    const struct lab_value *series = lab_value_get(study->experiment, "series");
    bool taken = false;
    for (int i = 0; i < series->count; i++) {
        if (!is_in(lab_value_get(series->items[i], "where"), point))
            continue;
        struct axis axes[AXES_MAX];
        int count = read_axes(study->experiment, lab_value_get(series->items[i], "axes"), axes);
        add_points(axes, count, copy_of(point), add_run, study->count);
        taken = true;
    }
    if (!taken)
        add_run(study->count, point);
}

static void count_points(struct lab_value *tree, struct count *count) {
    struct study study = {.experiment = lab_value_get(tree, "experiment"), .count = count};
    struct lab_value *point = lab_value_map(&arena);
    const struct lab_value *test = lab_value_get(study.experiment, "test");
    for (int i = 0; i < test->count;
         i++) /* first, so that all points have their keys in one order */
        if (strcmp(test->keys[i], "timeout_s") != 0)
            lab_value_set(&arena, point, lab_arena_printf(&arena, "test.%s", test->keys[i]),
                          test->items[i]);
    struct axis axes[AXES_MAX];
    int axis_count = read_axes(study.experiment, lab_value_get(study.experiment, "axes"), axes);
    add_points(axes, axis_count, point, add_series, &study);
}

/* --- studies --- */

static void has_points(const char *line, int points, int runs) {
    struct count count = {.runs = lab_value_map(&arena)};
    count_points(compose(line).tree, &count);
    if (count.points != points || count.runs->count != runs)
        fail_msg("'%s' has %d points and %d runs, not %d and %d", line, count.points,
                 count.runs->count, points, runs);
}

LAB_TEST(quick_test) {
    composes("experiment=quick_test", "experiment.test",
             "{num_samples:100,batch_size:5,warmup_samples:20,memory_size_mb:256,"
             "tensor_shape:[3,224,224],compile_model:false,timeout_s:300,dtype:fp32,d2h:output,"
             "fill:random,sync_frequency:10}");
    composes("experiment=quick_test", "experiment.hardware", "{gpu_ids:[0],numa_nodes:local}");
    composes("experiment=quick_test", "experiment.vit_configs",
             "[{patch_size:32,depth:0,heads:8,dim:64,mlp_dim:0},"
             "{patch_size:32,depth:2,heads:4,dim:256,mlp_dim:0},"
             "{patch_size:32,depth:4,heads:8,dim:512,mlp_dim:0}]");
    has_points("experiment=quick_test", 3, 3);
}

LAB_TEST(numa_study) {
    composes("", "experiment.name", "numa_locality_study");
    composes("", "experiment.hardware", "{gpu_ids:[0,1,2,3],numa_nodes:[0,2]}");
    composes("", "experiment.test",
             "{num_samples:1000,batch_size:10,warmup_samples:100,memory_size_mb:512,"
             "tensor_shape:[3,224,224],compile_model:false,timeout_s:600,dtype:fp32,d2h:output,"
             "fill:random,sync_frequency:10}");
    composes("", "experiment.vit_configs",
             "[{patch_size:32,depth:0,heads:8,dim:64,mlp_dim:0},"
             "{patch_size:32,depth:2,heads:4,dim:128,mlp_dim:0},"
             "{patch_size:32,depth:4,heads:8,dim:256,mlp_dim:0},"
             "{patch_size:32,depth:6,heads:8,dim:512,mlp_dim:0},"
             "{patch_size:16,depth:8,heads:12,dim:768,mlp_dim:0},"
             "{patch_size:16,depth:12,heads:16,dim:1024,mlp_dim:0}]");
    has_points("", 48, 48);
}

LAB_TEST(keys_that_all_studies_have) {
    composes("", "device", "auto");
    composes("", "seed", "42");
    composes("", "output_dir", "outputs");
    composes("", "tracker", "null");
    static const char *const keys[][2] = {
        {"resume", "true"},    {"max_workers", "null"}, {"runs_per_device", "1"},
        {"max_retries", "1"},  {"fail_fast", "false"},  {"order", "random"},
        {"processes", "null"}, {"budget", "null"},      {"trace", "true"},
        {"profiler", "none"},  {"disturb", "none"},     {"cooldown", "0"},
        {"duration", "null"},  {"spread", "false"},
    };
    const char *const *options = lab_config_options(&path, "experiment", &arena);
    for (; *options; options++) {
        if (lab_str_equal(*options, "contention") || lab_str_equal(*options, "train_scaling") ||
            lab_str_equal(*options, "nccl_settings"))
            continue; /* have some of their own */
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            composes(lab_arena_printf(&arena, "experiment=%s", *options),
                     lab_arena_printf(&arena, "experiment.%s", keys[i][0]), keys[i][1]);
        /* what compares has several runs of each point; a first look and programs of the user's
         * own have one */
        bool once = lab_str_equal(*options, "quick_test") || lab_str_equal(*options, "test_matrix");
        composes(lab_arena_printf(&arena, "experiment=%s", *options), "experiment.repeat",
                 once ? "1" : "5");
    }
    composes("experiment=contention", "experiment.repeat", "5");
    composes("experiment=contention", "experiment.duration", "300s");
    composes("experiment=contention", "experiment.cooldown", "30s");
    composes("experiment=nccl_settings", "experiment.repeat", "10");
    composes("experiment=nccl_settings", "experiment.allreduce", "nccl");
    composes("experiment=train_scaling", "experiment.repeat", "50");
    composes("experiment=train_scaling", "experiment.test.num_steps", "100");
    composes("experiment=train_scaling", "experiment.test.warmup_steps", "10");
}

LAB_TEST(scaling) {
    composes("experiment=scaling_study", "experiment.name", "model_scaling_study");
    composes("experiment=scaling_study", "experiment.test.num_samples", "2000");
    composes("experiment=scaling_study", "experiment.test.warmup_samples", "200");
    composes("experiment=scaling_study", "experiment.test.memory_size_mb", "1024");
    composes("experiment=scaling_study", "experiment.test.timeout_s", "900");
    has_points("experiment=scaling_study", 9, 8);
    has_points("experiment=scaling_extended", 15, 14);
}

LAB_TEST(other_studies) {
    has_points("experiment=transfer_study", (4 + 8 + 4) * 3 * 2, (4 + 8 + 4 - 1) * 3 * 2);
    has_points("experiment=compile_study", 28, 28);
    has_points("experiment=throughput_study", 108, 108);
    has_points("experiment=stability", 48, 48);
    composes("experiment=stability", "experiment.test.num_samples", "5000");
    composes("experiment=stability", "experiment.test.timeout_s", "1800");
    has_points("experiment=test_matrix", 3, 3);
    has_points("experiment=test_matrix +experiment.matrix.lr=[0.1,0.01]", 6, 6);
    composes("experiment=test_matrix experiment.matrix.max_iters=500",
             "experiment.matrix.max_iters", "500");
}

/* --- command lines --- */

static const struct {
    const char *line;
    bool multirun;
    int jobs, points, runs;
    const char *key, *value; /* of the last job */
} lines[] = {
    /* the guide */
    {"experiment=numa_study", false, 1, 48, 48, "experiment.name", "numa_locality_study"},
    {"experiment=quick_test", false, 1, 3, 3, "experiment.name", "quick_test"},
    {"experiment=scaling_study", false, 1, 9, 8, "experiment.name", "model_scaling_study"},
    {"experiment=numa_study experiment.hardware.gpu_ids=[0,1]", false, 1, 24, 24,
     "experiment.hardware.gpu_ids", "[0,1]"},
    {"experiment=quick_test experiment.test.num_samples=500", false, 1, 3, 3,
     "experiment.test.num_samples", "500"},
    {"experiment=numa_study experiment.hardware.numa_nodes=[0,1,2]", false, 1, 72, 72,
     "experiment.hardware.numa_nodes", "[0,1,2]"},
    {"experiment=numa_study experiment.test.compile_model=true", false, 1, 48, 48,
     "experiment.test.compile_model", "true"},
    {"experiment=scaling_study experiment.test.compile_model=true,false", true, 2, 18, 16,
     "experiment.test.compile_model", "false"},
    {"experiment=numa_study experiment.test.compile_model=true,false "
     "experiment.hardware.numa_nodes=[0],[2]",
     true, 4, 96, 96, "experiment.hardware.numa_nodes", "[2]"},
    {"experiment.vit_configs.depth=2,4,6,8 experiment.hardware.gpu_ids=[0],[1]", true, 8, 96, 96,
     "experiment.vit_configs.5.depth", "8"},
    {"+experiment=custom experiment.vit_configs.patch_size=16", false, 1, 2, 2,
     "experiment.vit_configs",
     "[{patch_size:16,depth:3,heads:2,dim:64,mlp_dim:0},"
     "{patch_size:16,depth:5,heads:2,dim:64,mlp_dim:0}]"},
    {"experiment=numa_study experiment.test.batch_size=20 experiment.test.timeout_s=900", false, 1,
     48, 48, "experiment.test.timeout_s", "900"},
    {"experiment=quick_test experiment.hardware.gpu_ids=[0,1,2,3]", false, 1, 12, 12,
     "experiment.hardware.gpu_ids", "[0,1,2,3]"},
    {"experiment=numa_study experiment.test.compile_model=true,false "
     "experiment.hardware.numa_nodes=[0],[2] experiment.test.num_samples=500",
     true, 4, 96, 96, "experiment.test.num_samples", "500"},
    {"experiment=numa_study experiment.resume=false", false, 1, 48, 48, "experiment.resume",
     "false"},
    /* the plan */
    {"experiment=numa_study experiment.hardware.gpu_ids=[0,3] "
     "experiment.hardware.numa_nodes=[0,2,3]",
     false, 1, 36, 36, "experiment.hardware.numa_nodes", "[0,2,3]"},
    {"experiment=numa_study experiment.test.num_samples=2000", false, 1, 48, 48,
     "experiment.test.num_samples", "2000"},
    {"experiment=scaling_study experiment.vit_configs[0].depth=2,4,6,8,10,12,16,20", true, 8, 73,
     11, "experiment.vit_configs.0.depth", "20"},
    {"experiment=scaling_study experiment.vit_configs[0].dim=128,256,384,512,768,1024,1280", true,
     7, 63, 14, "experiment.vit_configs.0.dim", "1280"},
    {"experiment=numa_study "
     "experiment.test.tensor_shape=[3,224,224],[3,384,384],[3,512,512],[3,768,768] "
     "experiment.test.batch_size=10,8,6,4",
     true, 16, 768, 768, "experiment.test.tensor_shape", "[3,768,768]"},
    /* the same, as it was meant: in pairs */
    {"experiment=numa_study "
     "zip(experiment.test.tensor_shape=[[3,224,224],[3,384,384],[3,512,512],[3,768,768]],"
     "experiment.test.batch_size=[10,8,6,4])",
     true, 4, 192, 192, "experiment.test.batch_size", "4"},
    {"experiment=numa_study experiment.test.batch_size=4,8,16,32 "
     "experiment.test.memory_size_mb=512,1024",
     true, 8, 384, 384, "experiment.test.memory_size_mb", "1024"},
    {"experiment=numa_study experiment.test.memory_size_mb=256,512,1024,2048", true, 4, 192, 192,
     "experiment.test.memory_size_mb", "2048"},
    {"experiment=numa_study experiment.test.compile_model=true,false", true, 2, 96, 96,
     "experiment.test.compile_model", "false"},
    {"experiment.test.compile_model=true,false "
     "experiment.vit_configs=[{name:small,patch_size:32,depth:2,heads:4,dim:256,mlp_dim:1024}]",
     true, 2, 16, 16, "experiment.vit_configs",
     "[{name:small,patch_size:32,depth:2,heads:4,dim:256,mlp_dim:1024}]"},
    {"experiment=numa_study experiment.test.batch_size=16,32,64 experiment.max_workers=8", true, 3,
     144, 144, "experiment.max_workers", "8"},
    {"experiment=numa_study experiment.test.num_samples=5000 experiment.test.timeout_s=1800", false,
     1, 48, 48, "experiment.test.timeout_s", "1800"},
    {"experiment=numa_study experiment.hardware.gpu_ids=[0],[1],[2],[3],[0,1],[0,2]", true, 6, 96,
     48, "experiment.hardware.gpu_ids", "[0,2]"},
};

static void comes_to(size_t at) {
    struct lab_override words[WORDS_MAX];
    int word_count = read_words(lines[at].line, words);
    struct lab_sweep sweep;
    struct lab_composer *composer;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_sweep_init(&path, words, word_count, lines[at].multirun, &arena, &sweep, &err) < 0 ||
        lab_composer_make(&path, "config", &arena, &composer, &err) < 0)
        fail_msg("%s", err.text);
    struct count count = {.runs = lab_value_map(&arena)};
    struct lab_config config = {0};
    for (int64_t i = 0; i < sweep.job_count; i++) {
        struct lab_override *overrides = NULL;
        int override_count = 0;
        if (lab_sweep_job(&sweep, i, &arena, &overrides, &override_count, &err) < 0 ||
            lab_composer_compose(composer, overrides, override_count, &arena, &config, &err) < 0)
            fail_msg("'%s': %s", lines[at].line, err.text);
        count_points(config.tree, &count);
    }
    if (sweep.job_count != lines[at].jobs || count.points != lines[at].points ||
        count.runs->count != lines[at].runs)
        fail_msg("'%s' has %lld jobs, %d points and %d runs, not %d, %d and %d", lines[at].line,
                 (long long)sweep.job_count, count.points, count.runs->count, lines[at].jobs,
                 lines[at].points, lines[at].runs);
    assert_string_equal(text_of(value_at(config.tree, lines[at].key)), lines[at].value);
}

LAB_TEST(studies_that_answer) {
    assert_string_equal(lab_config_study_for("numa", &arena), "numa_study");
    assert_string_equal(lab_config_study_for("transfer", &arena), "transfer_study");
    assert_null(lab_config_study_for("nothing", &arena));
}

LAB_TEST(command_lines) {
    given("experiment/custom.yaml",
          "defaults: [_vit]\n"
          "name: custom\n"
          "vit_configs:\n"
          "  - {patch_size: 32, depth: 3, heads: 2, dim: 64, mlp_dim: 0}\n"
          "  - {patch_size: 32, depth: 5, heads: 2, dim: 64, mlp_dim: 0}\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        comes_to(i);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
