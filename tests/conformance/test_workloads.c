/*
 * Every workload, whoever added it: its descriptor says what help, schema and runner need, and on
 * every backend with devices it opens, runs, is right, lies where it should, and closes: twice.
 */
#include "machine/machine.h"
#include "workload/workload.h"

#include "test.h"
#include <math.h>
#include <stdio.h>

/* Small and unlike the defaults. A workload that isn't here runs with its defaults. */
static const struct {
    const char *workload;
    const char *words[9];
} cases[] = {
    {"allreduce", {"bytes=100003"}},
    {"allreduce", {"bytes=4", "allreduce=nccl", "nccl_proto=ll"}},
    {"command", {"command=true"}},
    {"command", {"command=[sh, -c, 'exit {x}']", "matrix={x: 0}", "env={A: '{device}'}"}},
    {"gemm", {"m=33", "n=17", "k=65"}},
    {"gemm", {"m=33", "n=17", "k=65", "layout=nt", "epilogue=bias"}},
    {"gemm", {"m=33", "n=17", "k=65", "layout=tn", "epilogue=bias_gelu"}},
    {"gemm", {"m=33", "n=17", "k=65", "epilogue=bias_add"}},
    {"flash_attention_v2", {"batch=2", "heads=4", "kv_heads=2", "seq=67", "causal=true"}},
    {"flash_attention_v2", {"batch=1", "heads=1", "seq=130", "head_dim=96", "config=default"}},
    {"gemm", {"m=33", "n=17", "k=65", "config='tile_m=64,tile_n=64'"}},
    {"gemm", {"m=1024", "n=512", "k=1024"}}, /* more than is checked */
    {"gpt2",
     {"dtype=fp32", "depth=1", "width=64", "heads=1", "seq=3", "vocab=20", "batch_size=1",
      "accumulation=2"}},
    {"memcpy", {"size=100003", "direction=h2d"}},
    {"memcpy", {"size=100003", "direction=d2h", "memory=pageable"}},
    {"memcpy", {"size=1MiB", "direction=both"}},
    {"mlp", {"widths=50-33-7-3", "batch_size=16", "dataset_size=40"}},
    {"mlp", {"widths=5-40-2", "dropout=0", "batch_size=3", "dataset_size=7", "compile_model=true"}},
    {"null", {"sync_frequency=3"}},
    {"softmax", {"rows=37", "columns=111"}},
    {"vit",
     {"patch_size=8", "tensor_shape=[3,30,20]", "dim=48", "heads=3", "depth=2", "batch_size=3",
      "memory_size_mb=1"}},
    {"vit",
     {"patch_size=8", "tensor_shape=[3,30,20]", "dim=48", "heads=3", "depth=2", "batch_size=3",
      "memory_size_mb=1", "compile_model=true"}},
    {"vit", {"tensor_shape=[3,30,20]", "depth=0", "batch_size=3", "memory_size_mb=1"}},
    {"vit", {"tensor_shape=[3,30,20]", "depth=0", "dtype=bf16", "memory_size_mb=1"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* --- descriptors --- */

static size_t field_bytes(enum lab_option_type type) {
    switch (type) {
    case LAB_OPTION_FLAG:
        return sizeof(bool);
    case LAB_OPTION_INT:
    case LAB_OPTION_SIZE:
        return sizeof(int64_t);
    case LAB_OPTION_FLOAT:
    case LAB_OPTION_DURATION:
        return sizeof(double);
    case LAB_OPTION_STRING:
    case LAB_OPTION_CHOICE:
        return sizeof(const char *);
    case LAB_OPTION_INTS:
        return sizeof(struct lab_option_ints);
    case LAB_OPTION_VALUE:
        return sizeof(struct lab_value *);
    }
    return 0;
}

LAB_TEST(names_are_those_of_the_files) {
    assert_non_null(lab_workloads[0]);
    for (int i = 0; lab_workloads[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        char path[512];
        snprintf(path, sizeof path, "%s/src/workload/%s.c", LAB_TEST_SOURCE_DIR,
                 lab_workloads[i]->name);
        FILE *file = fopen(path, "r");
        if (!file)
            fail_msg("there is no %s", path);
        fclose(file);
        assert_ptr_equal(lab_workload_find(lab_workloads[i]->name, &err), lab_workloads[i]);
    }
}

LAB_TEST(descriptors_are_complete) {
    for (int i = 0; lab_workloads[i]; i++) {
        const struct lab_workload *w = lab_workloads[i];
        print_message("  %s\n", w->name);
        assert_true(w->help && *w->help && !strchr(w->help, '\n'));
        assert_true(w->help[strlen(w->help) - 1] != '.');
        assert_non_null(w->options);
        assert_non_null(w->cost);
        assert_true(w->open && w->close && w->run && w->verify);
        w->close(NULL);
    }
}

static void check_option(const struct lab_workload *w, const struct lab_option *o) {
    bool numeric = o->type == LAB_OPTION_INT || o->type == LAB_OPTION_FLOAT ||
                   o->type == LAB_OPTION_DURATION || o->type == LAB_OPTION_SIZE ||
                   o->type == LAB_OPTION_INTS;
    if (!o->help || !*o->help || o->help[strlen(o->help) - 1] == '.')
        fail_msg("%s.%s: help must be a sentence without a full stop", w->name, o->name);
    if (o->offset + field_bytes(o->type) > w->config_size)
        fail_msg("%s.%s lies outside its config", w->name, o->name);
    if (numeric && !o->unit)
        fail_msg("%s.%s has no unit", w->name, o->name);
    if (numeric && o->min >= o->max)
        fail_msg("%s.%s has no bounds", w->name, o->name);
    if (o->type != LAB_OPTION_CHOICE)
        return;
    if (!o->choices || !o->choices[0] || !o->fallback)
        fail_msg("%s.%s needs choices and a default", w->name, o->name);
    bool found = false;
    for (int i = 0; o->choices[i]; i++)
        found = found || lab_str_equal(o->choices[i], o->fallback);
    if (!found)
        fail_msg("%s.%s: the default is none of its choices", w->name, o->name);
}

LAB_TEST(options_are_complete) {
    for (int i = 0; lab_workloads[i]; i++)
        for (const struct lab_option *o = lab_workloads[i]->options; o->name; o++) {
            check_option(lab_workloads[i], o);
            for (const struct lab_option *other = o + 1; other->name; other++)
                assert_string_not_equal(o->name, other->name);
        }
}

/* Setting the default again goes through the bounds, which taking it as a default needn't. */
LAB_TEST(defaults_are_within_bounds) {
    for (int i = 0; lab_workloads[i]; i++) {
        const struct lab_workload *w = lab_workloads[i];
        struct lab_err err = LAB_ERR_INIT;
        LAB_AUTO(arena, arena);
        void *config = lab_workload_config(w, &arena);
        for (const struct lab_option *o = w->options; o->name; o++)
            if (o->fallback &&
                lab_options_set(w->options, config, &arena, o->name, o->fallback, &err))
                fail_msg("%s: %s", w->name, err.text);
        /* nobody but the user knows which program an external one is to run */
        if (w->external)
            assert_true(w->check && w->check(config, &err) < 0 && err.code == LAB_ERR_USER);
        else if (w->check && w->check(config, &err))
            fail_msg("%s: %s", w->name, err.text);
    }
}

static bool countable(double value) {
    return isfinite(value) && value >= 0;
}

LAB_TEST(costs_are_countable) {
    for (int i = 0; lab_workloads[i]; i++) {
        struct lab_workload_cost cost;
        LAB_AUTO(arena, arena);
        memset(&cost, 0xff, sizeof cost);
        lab_workloads[i]->cost(lab_workload_config(lab_workloads[i], &arena), &cost);
        if (!countable(cost.compute.flops) || !countable(cost.compute.bytes_read) ||
            !countable(cost.compute.bytes_written) || !countable(cost.h2d_bytes) ||
            !countable(cost.d2h_bytes) || !countable(cost.samples) || cost.device_bytes < 0 ||
            cost.host_bytes < 0)
            fail_msg("%s: a cost is negative or no number", lab_workloads[i]->name);
    }
}

LAB_TEST(labels_are_stable) {
    for (int i = 0; lab_workloads[i]; i++) {
        if (!lab_workloads[i]->label)
            continue;
        LAB_AUTO(arena, arena);
        LAB_AUTO(str, first);
        LAB_AUTO(str, second);
        lab_workloads[i]->label(lab_workload_config(lab_workloads[i], &arena), &first);
        lab_workloads[i]->label(lab_workload_config(lab_workloads[i], &arena), &second);
        assert_true(first.length > 0 && !strpbrk(first.text, " /\t\n"));
        assert_string_equal(first.text, second.text);
        bool sizes = strpbrk(first.text, "0123456789") && strchr(first.text, 'x');
        assert_true(!sizes ||
                    lab_workloads[i]->label_words); /* "gemm64x64x64" needs an explanation */
    }
}

static void check_launch(const struct lab_launch *launch, void *count) {
    struct lab_launch complete = *launch;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_launch_complete(&complete, &err))
        fail_msg("%s: %s", lab_op_get(launch->op)->name, err.text);
    assert_null(launch->out.data);
    assert_int_equal(launch->tuning.count, 0);
    ++*(int *)count;
}

LAB_TEST(what_can_be_tuned_is_a_launch_and_has_its_key) {
    for (int i = 0; lab_workloads[i]; i++) {
        const struct lab_workload *w = lab_workloads[i];
        struct lab_launch launch;
        const struct lab_option *key = w->options;
        int count = 0;
        assert_true(!w->launch == !w->configure && !(w->launch && w->launches));
        if (!w->launch && !w->launches)
            continue;
        LAB_AUTO(arena, arena);
        if (w->launch) {
            w->launch(lab_workload_config(w, &arena), &launch);
            check_launch(&launch, &count);
        } else {
            w->launches(lab_workload_config(w, &arena), check_launch, &count);
        }
        assert_true(count > 0);
        while (key->name && !lab_str_equal(key->name, LAB_WORKLOAD_CONFIG))
            key++;
        /* `later`: runs that were made before it was there have the same identity */
        assert_true(key->name && key->type == LAB_OPTION_STRING && key->later);
        assert_string_equal(key->fallback, LAB_CONFIG_TUNED);
    }
}

/* --- on devices --- */

struct place {
    struct lab_machine *machine;
    struct lab_device_ref ref;
    const struct lab_workload *workload;
    void *config;
};

static void check_records(const struct lab_iteration *records, int count) {
    for (int i = 0; i < count; i++) {
        assert_true(records[i].start_ns > 0 && records[i].start_ns <= records[i].end_ns);
        if (i > 0)
            assert_true(records[i - 1].end_ns <= records[i].end_ns);
        for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
            const struct lab_span *span = &records[i].stages[stage];
            if (span->start_ns || span->end_ns)
                assert_true(records[i].start_ns <= span->start_ns &&
                            span->start_ns <= span->end_ns && span->end_ns <= records[i].end_ns);
        }
    }
}

static void use_once(const struct place *place, struct lab_device *device) {
    const struct lab_workload *w = place->workload;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_verification verification = {0};
    struct lab_iteration records[5];
    struct lab_rank rank = {
        .device = device, .ref = &place->ref, .numa_node = place->ref.node, .count = 1, .seed = 42};
    void *state = NULL;
    if (w->open(place->config, &rank, &state, &err)) {
        /* CPUs do everything; another backend may lack an operation and must then say so */
        if (err.code != LAB_ERR_UNSUPPORTED || lab_str_equal(place->ref.backend, "cpu"))
            fail_msg("%s on %s: %s", w->name, place->ref.name, err.text);
        print_message("    %s\n", err.text);
        return;
    }
    if (w->run(state, 1, records, &err) || w->run(state, 5, records, &err) ||
        w->verify(state, 7, &verification, &err))
        fail_msg("%s on %s: %s", w->name, place->ref.name, err.text);
    check_records(records, 5);
    if (verification.applicable && !verification.passed)
        fail_msg("%s on %s: %s", w->name, place->ref.name, verification.text);
    assert_true(!w->external || !verification.applicable);
    assert_true(*verification.text && !strstr(verification.text, "applicable"));
    if (w->prove_placement && !place->ref.simulated && w->prove_placement(state, &err))
        fail_msg("%s on %s: %s", w->name, place->ref.name, err.text);
    if (w->run(state, 2, records, &err))
        fail_msg("%s on %s: %s", w->name, place->ref.name, err.text);
    w->close(state);
}

static void use_twice(const struct place *place) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device *device = NULL;
    struct lab_device_setup setup =
        place->workload->setup ? place->workload->setup(place->config) : LAB_DEVICE_SETUP;
    if (!place->workload->external &&
        lab_device_open(place->machine, &place->ref, setup, &device, &err))
        fail_msg("%s", err.text);
    use_once(place, device);
    use_once(place, device);
    lab_device_close(device);
}

static void use_case(struct place *place, struct lab_arena *arena, const char *const *words) {
    struct lab_err err = LAB_ERR_INIT;
    place->config = lab_workload_config(place->workload, arena);
    for (; words && *words; words++)
        if (lab_options_set_word(place->workload->options, place->config, arena, *words, &err))
            fail_msg("%s: %s", place->workload->name, err.text);
    if (place->workload->check && place->workload->check(place->config, &err))
        fail_msg("%s: %s", place->workload->name, err.text);
    use_twice(place);
}

/* A way to do it that only backends with several have. */
static bool names_a_configuration(const char *const *words) {
    for (; *words; words++)
        if (strncmp(*words, "config='", 8) == 0)
            return true;
    return false;
}

static void use_workload(struct place *place, struct lab_arena *arena) {
    bool listed = false;
    print_message("  %s on %s\n", place->workload->name, place->ref.name);
    for (int i = 0; i < CASES; i++)
        if (lab_str_equal(cases[i].workload, place->workload->name)) {
            listed = true;
            if (!lab_backend_find(place->ref.backend)->tunable &&
                names_a_configuration(cases[i].words))
                continue;
            use_case(place, arena, cases[i].words);
        }
    if (!listed)
        use_case(place, arena, NULL);
}

LAB_TEST(they_work_on_every_backend) {
    struct place place = {0};
    LAB_AUTO(arena, arena);
    ASSERT_OK(lab_machine_open(NULL, &place.machine, err));
    for (int b = 0; lab_backends[b]; b++) {
        struct lab_device_list list = {0};
        const char *why_none = NULL;
        /* simulated devices have to be named */
        const char *which = lab_backends[b]->rank < 0 ? ":l40s-10:4" : "";
        ASSERT_OK(lab_backends[b]->select(place.machine, which, &arena, &list, &why_none, err));
        if (list.count == 0) {
            print_message("  no %s devices: %s\n", lab_backends[b]->name, why_none);
            continue;
        }
        place.ref = list.items[0];
        for (int i = 0; lab_workloads[i]; i++) {
            place.workload = lab_workloads[i];
            if (place.workload->external && place.ref.simulated)
                continue;
            use_workload(&place, &arena);
        }
    }
    lab_machine_close(place.machine);
}
