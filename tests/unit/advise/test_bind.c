/* A rank is bound next to its GPU, or not at all with the reason. */
#include "advise/bind.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

/* two NUMA nodes of four cores with two hardware threads each; four GPUs, two on each */
static int cpus_of_0[] = {0, 1, 2, 3, 8, 9, 10, 11}, cpus_of_1[] = {4, 5, 6, 7, 12, 13, 14, 15};
static int threads[8][2];
static struct lab_core cores[8];
static struct lab_node nodes[] = {{.number = 0, .cpus = {cpus_of_0, 8}, .core_count = 4},
                                  {.number = 1, .cpus = {cpus_of_1, 8}, .core_count = 4}};
static const struct lab_machine machine = {
    .nodes = nodes, .node_count = 2, .cores = cores, .core_count = 8, .numa_in_kernel = true};
static struct lab_device_ref gpus[] = {{.name = "cuda:0", .node = 0},
                                       {.name = "cuda:1", .node = 0},
                                       {.name = "cuda:2", .node = 1},
                                       {.name = "cuda:3", .node = 1}};
static const struct lab_device_list all_gpus = {.items = gpus, .count = 4};
static int every[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const struct lab_cpus any = {every, 16};

static int set_up(void **state) {
    (void)state;
    static const char *const names[] = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_LOCALID",
                                        "SLURM_TASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    for (int i = 0; i < 8; i++) {
        threads[i][0] = i;
        threads[i][1] = i + 8;
        cores[i] = (struct lab_core){.node = i / 4, .cpus = {threads[i], 2}};
    }
    return 0;
}

static struct lab_bind_place bind_rank(int rank, int ranks, const struct lab_cpus *allowed,
                                       bool exclusive) {
    struct lab_bind_rank at = {.rank = rank, .ranks = ranks};
    return lab_bind_place_make(&machine, &all_gpus, &at, allowed, exclusive, &test_arena);
}

static const char *list(const struct lab_cpus *cpus) {
    LAB_AUTO(str, text);
    lab_cpus_write(cpus, &text);
    return lab_arena_strdup(&test_arena, text.text);
}

LAB_TEST(a_rank_gets_the_cores_of_its_gpus_node) {
    struct lab_bind_place place = bind_rank(2, 4, &any, false);
    assert_string_equal(place.device->name, "cuda:2");
    assert_int_equal(place.node, 1);
    assert_string_equal(list(&place.cpus), "4-7,12-15");
    assert_null(place.note);
}

LAB_TEST(exclusive_ranks_divide_whole_cores) {
    struct lab_bind_place first = bind_rank(2, 4, &any, true), second = bind_rank(3, 4, &any, true);
    assert_string_equal(list(&first.cpus), "4-5,12-13");
    assert_string_equal(list(&second.cpus), "6-7,14-15");
    /* a third GPU that no rank uses has no share */
    struct lab_bind_place alone = bind_rank(2, 3, &any, true);
    assert_string_equal(list(&alone.cpus), "4-7,12-15");
}

LAB_TEST(only_cpus_of_the_job_are_used) {
    int job[] = {6, 7, 8}, far[] = {0, 1};
    struct lab_cpus allowed = {job, 3}, elsewhere = {far, 2};
    struct lab_bind_place place = bind_rank(2, 4, &allowed, false);
    assert_string_equal(list(&place.cpus), "6-7");
    struct lab_bind_place shared = bind_rank(3, 4, &allowed, true);
    assert_string_equal(list(&shared.cpus), "7");
    struct lab_bind_place none = bind_rank(2, 4, &elsewhere, false);
    assert_int_equal(none.node, -1);
    assert_string_equal(none.note, "this process may use CPUs 0-1, none of them on NUMA node 1, "
                                   "where cuda:2 is");
}

LAB_TEST(fewer_cores_than_ranks_are_shared) {
    int one[] = {4};
    struct lab_cpus allowed = {one, 1};
    struct lab_bind_place place = bind_rank(3, 4, &allowed, true);
    assert_int_equal(place.node, 1);
    assert_string_equal(list(&place.cpus), "4");
    struct lab_bind_place other = bind_rank(2, 4, &allowed, true);
    assert_string_equal(list(&other.cpus), "4");
    assert_true((place.note == NULL) != (other.note == NULL)); /* one has it, the other is told */
}

LAB_TEST(without_a_rank_nothing_is_guessed) {
    struct lab_bind_place place = bind_rank(-1, -1, &any, false);
    assert_int_equal(place.node, -1);
    assert_contains(place.note, "no launcher gave a rank");
    struct lab_bind_place beyond = bind_rank(7, 8, &any, false);
    assert_string_equal(beyond.note, "rank 7 has no device: there are 4");
    /* one GPU is the rank's own, whatever its number; GPUs of one node leave no choice */
    struct lab_bind_rank rank = {.rank = 7, .ranks = 8}, unknown = {.rank = -1, .ranks = -1};
    struct lab_device_list one = {.items = &gpus[3], .count = 1},
                           near = {.items = gpus, .count = 2};
    assert_int_equal(lab_bind_place_make(&machine, &one, &rank, &any, false, &test_arena).node, 1);
    struct lab_bind_place both =
        lab_bind_place_make(&machine, &near, &unknown, &any, false, &test_arena);
    assert_int_equal(both.node, 0);
    assert_null(both.device);
}

LAB_TEST(launchers_are_known_by_their_variables) {
    struct lab_bind_rank rank = lab_bind_find_rank(&test_arena);
    assert_int_equal(rank.rank, -1);
    assert_null(rank.variable);
    setenv("SLURM_LOCALID", "3", 1);
    setenv("SLURM_TASKS_PER_NODE", "8(x2)", 1);
    rank = lab_bind_find_rank(&test_arena);
    assert_int_equal(rank.rank, 3);
    assert_int_equal(rank.ranks, 8);
    /* torchrun inside a Slurm job: the innermost counts */
    setenv("LOCAL_RANK", "1", 1);
    rank = lab_bind_find_rank(&test_arena);
    assert_int_equal(rank.rank, 1);
    assert_string_equal(rank.variable, "LOCAL_RANK");
    setenv("LOCAL_RANK", "one", 1);
    rank = lab_bind_find_rank(&test_arena);
    assert_int_equal(rank.rank, -1);
    assert_string_equal(rank.note, "LOCAL_RANK is 'one', not a rank");
    setenv("LOCAL_RANK", "2abc", 1);
    assert_int_equal(lab_bind_find_rank(&test_arena).rank, -1);
    setenv("LOCAL_RANK", "", 1); /* as good as unset */
    rank = lab_bind_find_rank(&test_arena);
    assert_int_equal(rank.rank, 3);
    assert_string_equal(rank.variable, "SLURM_LOCALID");
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
