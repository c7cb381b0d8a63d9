/*
 * The allreduce workload on CPU devices: alone it drives the slices of its device, in a gang each
 * rank is an end of it; sums are checked, rates are nccl-tests'. And NCCL's settings, which need no
 * NCCL.
 */
#include "unit/workload/on_cpu.h"
#include "workload/allreduce/allreduce.h"

#include <pthread.h>
#include <string.h>

extern const struct lab_workload lab_workload_allreduce;
static const struct lab_workload *const workload = &lab_workload_allreduce;

static void require(int failed, const struct lab_err *err) {
    if (failed)
        fail_msg("%s", err->text);
}

/* What the workload tells. */
struct told {
    double ranks, algorithm, bus;
    char warning[256];
};

static void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    struct told *told = state;
    const char *name = items[0].name;
    double value = items[0].value;
    assert_int_equal(count, 1);
    if (strcmp(name, "ranks") == 0)
        told->ranks = value;
    if (strcmp(name, "algorithm_gb_per_s") == 0)
        told->algorithm = value;
    if (strcmp(name, "bus_gb_per_s") == 0)
        told->bus = value;
}

static void on_warning(void *state, const char *text) {
    struct told *told = state;
    snprintf(told->warning, sizeof told->warning, "%s", text);
}

static void check_times(const struct lab_iteration *records, int count) {
    for (int i = 0; i < count; i++) {
        assert_true(records[i].end_ns >= records[i].start_ns);
        assert_true(i == 0 || records[i].start_ns >= records[i - 1].start_ns);
    }
}

/* --- alone --- */

LAB_TEST(it_sums_over_the_slices_of_its_device) {
    struct on_cpu *cpu = *state;
    struct lab_device_list list = {0};
    struct lab_device *slice = NULL;
    struct lab_err err = LAB_ERR_INIT;
    struct told told = {0};
    struct lab_sink sink = {.metrics = on_metrics, .warning = on_warning, .state = &told};
    char selector[64];
    if (cpu->device->ref.cpus.count < 2)
        skip();
    snprintf(selector, sizeof selector, "%s/2", cpu->device->ref.name);
    require(lab_device_select(cpu->machine, selector, &cpu->arena, &list, &err) ||
                lab_device_open(cpu->machine, &list.items[1], LAB_DEVICE_SETUP, &slice, &err),
            &err);
    struct lab_rank rank = {.device = slice, .numa_node = -1, .count = 1, .sink = &sink};
    void *config =
        on_cpu_configure(cpu, workload, WORDS("bytes=40006", "wait=30s", "allreduce=nccl"));
    void *all = NULL;
    struct lab_iteration records[7] = {{0}};
    struct lab_verification v = {0};
    require(workload->open(config, &rank, &all, &err) || workload->run(all, 7, records, &err) ||
                workload->verify(all, 3, &v, &err),
            &err);
    assert_true(v.applicable && v.passed && v.elements == 10001);
    check_times(records, 7);
    /* two ranks: the bus carries what each has */
    assert_true(told.ranks == 2 && told.algorithm > 0 && told.bus == told.algorithm);
    assert_contains(told.warning, "allreduce=nccl not available, used ring");
    workload->close(all);
    config = on_cpu_configure(cpu, workload, WORDS("devices=cpu:0/2.0"));
    assert_int_equal(workload->open(config, &rank, &all, &err), -1);
    assert_contains(err.text, "must be among them");
    lab_device_close(slice);
}

LAB_TEST(one_rank_is_its_own_sum) {
    struct on_cpu *cpu = *state;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_iteration records[3] = {{0}};
    struct lab_verification v = {0};
    void *all = on_cpu_start(cpu, workload, WORDS("bytes=12", "flush=true"));
    require(workload->run(all, 3, records, &err) || workload->verify(all, 3, &v, &err), &err);
    assert_true(v.applicable && v.passed && v.elements == 3);
    workload->close(all);
}

/* --- in a gang --- */

enum { RANKS = 3 };

struct rank {
    struct lab_rank place;
    void *config;
    struct lab_verification verification;
    int failed;
    struct lab_err err;
    pthread_t thread;
};

static void *rank_main(void *argument) {
    struct rank *rank = argument;
    struct lab_iteration records[40] = {{0}};
    void *all = NULL;
    rank->err = LAB_ERR_INIT;
    rank->failed = workload->open(rank->config, &rank->place, &all, &rank->err) ||
                   workload->verify(all, rank->place.seed, &rank->verification, &rank->err) ||
                   workload->run(all, 40, records, &rank->err) ||
                   workload->verify(all, rank->place.seed + 1, &rank->verification, &rank->err);
    if (rank->failed)
        lab_group_fail(rank->place.group, rank->place.index, &rank->err);
    workload->close(all);
    return NULL;
}

static void gang_of(struct rank *ranks, const char *const words[RANKS][4]) {
    struct on_cpu cpus[RANKS];
    struct lab_group *group =
        lab_group_open(&(struct lab_group_setup){.ranks = RANKS, .limit_s = 20});
    for (int i = 0; i < RANKS; i++) {
        on_cpu_open(&cpus[i]);
        ranks[i].place = cpus[i].rank;
        ranks[i].place.index = i;
        ranks[i].place.count = RANKS;
        ranks[i].place.seed = (uint64_t)i * 7 + 1; /* each draws its own */
        ranks[i].place.group = group;
        ranks[i].config = on_cpu_configure(&cpus[i], workload, words[i]);
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        on_cpu_close(&cpus[i]);
    }
    lab_group_close(group);
}

LAB_TEST(ranks_of_a_gang_sum_together) {
    struct rank ranks[RANKS] = {{{0}}};
    gang_of(ranks, (const char *const[RANKS][4]){{"bytes=4004"}, {"bytes=4004"}, {"bytes=4004"}});
    for (int i = 0; i < RANKS; i++) {
        require(ranks[i].failed, &ranks[i].err);
        assert_true(ranks[i].verification.passed && ranks[i].verification.elements == 1001);
    }
}

LAB_TEST(ranks_without_a_group_are_refused) {
    struct on_cpu *cpu = *state;
    struct lab_rank rank = cpu->rank;
    void *all = NULL;
    rank.count = 2;
    ASSERT_SAYS(workload->open(on_cpu_configure(cpu, workload, WORDS("bytes=8")), &rank, &all, err),
                "threads of one process");
}

/* --- NCCL's settings --- */

LAB_TEST(settings_become_variables_of_nccl) {
    struct on_cpu *cpu = *state;
    const struct allreduce_config *config =
        on_cpu_configure(cpu, workload,
                         WORDS("nccl_algo=tree", "nccl_proto=simple", "nccl_p2p=disabled",
                               "nccl_shm=enabled", "nccl_gdr_level=LOC", "nccl_buffer=32MiB",
                               "nccl_threads=64", "nccl_channels_min=4", "nccl_channels_max=8"));
    static const char *const expected[] = {
        "NCCL_ALGO=tree",         "NCCL_PROTO=simple",      "NCCL_P2P_DISABLE=1",
        "NCCL_SHM_DISABLE=0",     "NCCL_NET_GDR_LEVEL=LOC", "NCCL_NTHREADS=64",
        "NCCL_BUFFSIZE=33554432", "NCCL_MIN_NCHANNELS=4",   "NCCL_MAX_NCHANNELS=8"};
    const char *const *words = workload->environment(config, &cpu->arena);
    for (int i = 0; i < 9; i++)
        assert_string_equal(words[i], expected[i]);
    assert_null(words[9]);
    /* what is left to NCCL isn't set */
    config = on_cpu_configure(cpu, workload, WORDS("nccl_proto=ll128"));
    unsetenv("NCCL_PROTO");
    lab_workload_set_environment(workload, config, &cpu->arena);
    assert_string_equal(getenv("NCCL_PROTO"), "ll128");
    assert_null(getenv("NCCL_ALGO"));
    unsetenv("NCCL_PROTO");
}

LAB_TEST(values_that_nccl_does_not_accept_are_refused) {
    struct on_cpu *cpu = *state;
    static const struct {
        const char *words[3], *complaint;
    } cases[] = {
        {{"nccl_threads=16"}, "nccl_threads=16: must be auto, 64, 128, 256 or 512"},
        {{"nccl_buffer=1"}, "nccl_buffer=1: must be 64KiB to 1GiB, or 0 for NCCL's own 4MiB"},
        {{"nccl_channels_max=65"}, "nccl_channels_max=65: must be 0 to 64 channels"},
        {{"nccl_channels_max=4", "nccl_channels_min=5"},
         "nccl_channels_min=5: must be at most nccl_channels_max=4"},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct lab_err err = LAB_ERR_INIT;
        void *config = lab_workload_config(workload, &cpu->arena);
        int failed = 0;
        for (int k = 0; cases[i].words[k] && !failed; k++)
            failed = lab_options_set_word(workload->options, config, &cpu->arena, cases[i].words[k],
                                          &err);
        failed = failed || workload->check(config, &err);
        assert_true(failed);
        assert_string_equal(err.text, cases[i].complaint);
    }
}

LAB_TEST(settings_play_no_part_where_nccl_is_not_asked_for) {
    struct on_cpu *cpu = *state;
    struct allreduce_config *config =
        on_cpu_configure(cpu, workload, WORDS("allreduce=ring", "nccl_algo=tree"));
    workload->canonical(config);
    assert_string_equal(config->nccl.algo, "auto");
    config = on_cpu_configure(cpu, workload, WORDS("allreduce=nccl", "nccl_algo=tree"));
    workload->canonical(config);
    assert_string_equal(config->nccl.algo, "tree");
}

/* --- */

LAB_TEST(the_bus_carries_twice_all_but_one_part) {
    assert_true(allreduce_bus_bytes(8e6, 1) == 0);
    assert_true(allreduce_bus_bytes(8e6, 2) == 8e6);
    assert_true(allreduce_bus_bytes(8e6, 4) == 12e6);
}

static int open_cpu(void **state) {
    static struct on_cpu cpu;
    on_cpu_open(&cpu);
    *state = &cpu;
    return 0;
}

static int close_cpu(void **state) {
    on_cpu_close(*state);
    return 0;
}

const struct lab_test_program lab_test_program = {.open = open_cpu, .close = close_cpu};
