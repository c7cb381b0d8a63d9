/* What config=tuned means: from the cache, if what was tuned is what will run. */
#include "tune/tuned.h"
#include "unit/workload/on_cpu.h"
#include "workload/vit/vit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct on_cpu cpu;
static const char *path;
static const struct lab_workload *flash;
static struct lab_tunable_place place;

static int set_up(void **state) {
    (void)state;
    on_cpu_open(&cpu);
    path = test_path("tuning.db");
    flash = lab_workload_find("flash_attention_v2", NULL);
    place = (struct lab_tunable_place){cpu.machine, &cpu.device->ref};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    on_cpu_close(&cpu);
    return 0;
}

static struct lab_tuned_key key_of(const struct lab_workload *workload, const void *config) {
    struct lab_tuned_key key;
    ASSERT_OK(lab_tuned_key(workload, config, &place, &cpu.arena, &key, err));
    return key;
}

static void tune_workload_to(const struct lab_workload *workload, const void *config,
                             const char *text) {
    struct lab_tuning_cache *cache;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_tuned_key key = key_of(workload, config);
    struct lab_tuning_entry entry = {.key = key.text, .config = text, .time_s = 1};
    if (lab_tuning_cache_open(path, true, &cpu.arena, &cache, NULL, &err) ||
        lab_tuning_cache_put(cache, &entry, &err))
        fail_msg("%s", err.text);
    lab_tuning_cache_close(cache);
}

static void tune_to(const void *config, const char *text) {
    tune_workload_to(flash, config, text);
}

static struct lab_tuned find(const void *config) {
    struct lab_tuned tuned;
    lab_tuned_find(flash, config, &place, path, &cpu.arena, &tuned);
    return tuned;
}

LAB_TEST(the_key_says_all_that_a_tuning_holds_for) {
    void *one = on_cpu_configure(&cpu, flash, WORDS("seq=1000"));
    void *near = on_cpu_configure(&cpu, flash, WORDS("seq=1024"));
    void *causal = on_cpu_configure(&cpu, flash, WORDS("seq=1024", "causal=true"));
    assert_string_equal(key_of(flash, one).text, key_of(flash, near).text);
    assert_string_not_equal(key_of(flash, causal).text, key_of(flash, near).text);
    assert_contains(key_of(flash, one).text, "kernel=cpu flash_attention 1|");
    assert_contains(key_of(flash, one).text, "s1024");
    assert_contains(key_of(flash, one).text, "fp32");
    assert_contains(key_of(flash, one).text, "units=");
    /* another number of cores is another device */
    struct lab_device_ref half = cpu.device->ref;
    half.cpus.count = half.cpus.count + 1;
    const char *whole = key_of(flash, one).text;
    place.ref = &half;
    assert_string_not_equal(key_of(flash, one).text, whole);
}

LAB_TEST(what_was_tuned_is_used_and_nothing_else) {
    void *config = on_cpu_configure(&cpu, flash, WORDS("seq=512"));
    struct lab_tuned tuned = find(config);
    assert_false(tuned.found);
    assert_string_equal(tuned.config, "default");
    assert_null(tuned.note);
    tune_to(config, "block_q=32,block_k=128");
    tuned = find(config);
    assert_true(tuned.found);
    assert_string_equal(tuned.config, "block_q=32,block_k=128");
    /* who asks for something else gets it untouched */
    tuned = find(on_cpu_configure(&cpu, flash, WORDS("seq=512", "config=default")));
    assert_null(tuned.config);
    tuned = find(on_cpu_configure(&cpu, flash, WORDS("seq=512", "config='block_q=64'")));
    assert_null(tuned.config);
}

LAB_TEST(a_tuned_one_that_does_not_fit_is_left_with_a_note) {
    void *config = on_cpu_configure(&cpu, flash, WORDS("seq=33")); /* shares s48 with 48 */
    tune_to(config, "block_q=96,block_k=64");
    struct lab_tuned tuned = find(config);
    assert_false(tuned.found);
    assert_string_equal(tuned.config, "default");
    assert_contains(tuned.note, "the sequence has only 33 tokens");
    tune_to(config, "block_z=1");
    assert_contains(find(config).note, "not a parameter");
}

LAB_TEST(a_cache_that_can_not_be_read_is_no_failure) {
    void *config = on_cpu_configure(&cpu, flash, WORDS("seq=512"));
    path = test_folder(); /* a directory */
    struct lab_tuned tuned = find(config);
    assert_false(tuned.found);
    assert_string_equal(tuned.config, "default");
    assert_true(tuned.unread);
    assert_int_equal(tuned.wanted, 1); /* there would be something to choose from */
    assert_contains(tuned.note, "the default is used");
}

LAB_TEST(a_plan_gets_the_configuration_frozen_in) {
    setenv("XDG_CACHE_HOME", test_folder(), 1);
    path = lab_tuning_cache_path(&cpu.arena);
    void *config = on_cpu_configure(&cpu, flash, WORDS("seq=512"));
    tune_to(config, "block_q=32,block_k=128");
    struct lab_value *options = lab_options_to_map(flash->options, config, &cpu.arena);
    struct lab_value *frozen =
        lab_tuned_options(flash, options, cpu.machine, cpu.device->ref.name, &cpu.arena);
    unsetenv("XDG_CACHE_HOME");
    assert_string_equal(lab_value_get(frozen, "config")->string, "block_q=32,block_k=128");
    assert_string_equal(lab_value_get(options, "config")->string, "tuned"); /* the plan's stay */
    const struct lab_workload *null = lab_workload_find("null", NULL);
    assert_ptr_equal(lab_tuned_options(null, options, cpu.machine, "cpu", &cpu.arena), options);
}

LAB_TEST(the_frozen_text_opens_and_runs) {
    void *running;
    struct lab_verification found;
    void *config = on_cpu_configure(
        &cpu, flash, WORDS("batch=1", "heads=1", "seq=40", "config='block_q=16,block_k=64'"));
    ASSERT_OK(flash->open(config, &cpu.rank, &running, err));
    ASSERT_OK(flash->verify(running, 5, &found, err));
    assert_true(found.passed);
    flash->close(running);
    config = on_cpu_configure(&cpu, flash, WORDS("seq=40", "config='block_q=512'"));
    ASSERT_SAYS(flash->open(config, &cpu.rank, &running, err),
                "config=block_q=512: block_q=512: the sequence has only 40");
    assert_ptr_equal(lab_workload_find("gemm_benchmark", NULL), lab_workload_find("gemm", NULL));
}

static void tune_product(const char *const *words, const char *text) {
    const struct lab_workload *gemm = lab_workload_find("gemm", NULL);
    tune_workload_to(gemm, on_cpu_configure(&cpu, gemm, words), text);
}

static int count_tuned(void *state, const struct lab_launch *launch, struct lab_err *err) {
    (void)err;
    *(int *)state += launch->tuning.count > 0;
    return 0;
}

LAB_TEST(a_model_gets_those_of_its_products_that_were_tuned) {
    const struct lab_workload *vit = lab_workload_find("vit", NULL);
    const char *const *small = WORDS("depth=1", "heads=2", "dim=64", "batch_size=2",
                                     "patch_size=32", "tensor_shape=[3,64,96]", "memory_size_mb=1");
    void *config = on_cpu_configure(&cpu, vit, small);
    struct lab_tuned tuned;
    struct lab_err err = LAB_ERR_INIT;
    /* given an empty cache, then all has its default, and the advice is a command that would
     * help */
    lab_tuned_find(vit, config, &place, path, &cpu.arena, &tuned);
    assert_string_equal(tuned.config, "default");
    assert_true(tuned.wanted >= 4 && tuned.found == 0);
    assert_string_equal(tuned.advice,
                        "gpulab tune gemm m=12 n=64 k=3072 layout=nt dtype=fp32 epilogue=bias");
    /* given that it and another were tuned as kernels of their own, 14 = 2 images of 7 tokens */
    tune_product(WORDS("m=12", "n=64", "k=3072", "layout=nt", "epilogue=bias"),
                 "tile_m=64,tile_n=64,tile_k=256");
    tune_product(WORDS("m=14", "n=64", "k=256", "layout=nt", "epilogue=bias_add"),
                 "tile_m=64,tile_n=64,tile_k=0");
    lab_tuned_find(vit, config, &place, path, &cpu.arena, &tuned);
    assert_int_equal(tuned.found, 2);
    assert_string_equal(tuned.config,
                        "gemm_bias m12 n64 k3072 nt fp32:tile_m=64,tile_n=64,tile_k=256;"
                        "gemm_bias_add m16 n64 k256 nt fp32:tile_m=64,tile_n=64,tile_k=0");
    /* when it is frozen into a job, then that opens, and its results are right */
    struct lab_value *options = lab_options_to_map(vit->options, config, &cpu.arena);
    options = lab_tuned_freeze(options, &tuned, &cpu.arena);
    assert_true(lab_options_set_value(vit->options, config, &cpu.arena, "config",
                                      lab_value_get(options, "config"), &err) >= 0);
    void *running = NULL;
    struct lab_verification found;
    if (vit->open(config, &cpu.rank, &running, &err) || vit->verify(running, 5, &found, &err))
        fail_msg("%s", err.text);
    assert_true(found.passed);
    int tuned_launches = 0;
    vit_model_forward(&((struct vit_pipeline *)running)->model, NULL, NULL, count_tuned,
                      &tuned_launches, &err);
    assert_int_equal(tuned_launches, 2);
    vit->close(running);
}

LAB_TEST(what_no_product_of_a_model_is_is_refused) {
    static const struct {
        const char *word, *part;
    } cases[] = {
        {"config='fast'", "'fast' must be tuned, default, or SHAPE:name=value"},
        {"config='gemm m7 n7 k7 nt fp32:tile_m=64'", "no product of this model is 'gemm m7"},
        {"config='gemm m128 n384 k64 nt fp32:tile_m=3'", "tile_m=3: must be 0, 64"},
    };
    const struct lab_workload *vit = lab_workload_find("vit", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_err err = LAB_ERR_INIT;
        void *running;
        void *config = on_cpu_configure(&cpu, vit,
                                        WORDS("depth=1", "heads=2", "dim=64", "batch_size=2",
                                              "memory_size_mb=3", cases[i].word));
        assert_int_equal(vit->open(config, &cpu.rank, &running, &err), -1);
        if (!strstr(err.text, cases[i].part))
            fail_msg("'%s' lacks '%s'", err.text, cases[i].part);
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
