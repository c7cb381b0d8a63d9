/* test_placement.c: is a process where its GPU is, on machines of one, two and four nodes? */
#include "probe/placement.h"

#include "test.h"

#define MIB ((int64_t)1 << 20)

static int cpus[4][4] = {{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}};
static struct lab_node nodes[4] = {{.number = 0, .cpus = {cpus[0], 4}},
                                   {.number = 1, .cpus = {cpus[1], 4}},
                                   {.number = 2, .cpus = {cpus[2], 4}},
                                   {.number = 3, .cpus = {cpus[3], 4}}};

/* A process with a GPU on node 0 that runs, may run and has its memory as said. */
static void judged(int node_count, const int *gpu_nodes, int gpus, int cpu_node, uint64_t allowed,
                   int64_t *node_bytes, enum lab_placement placement, const char *advice) {
    struct lab_machine machine = {.nodes = nodes, .node_count = node_count};
    struct lab_process_gpu on[4] = {0};
    struct lab_process_sample process = {.pid = 4711,
                                         .cpu_node = cpu_node,
                                         .allowed_nodes = allowed,
                                         .node_bytes = node_bytes,
                                         .node_count = node_bytes ? node_count : 0,
                                         .gpus = on,
                                         .gpu_count = gpus};
    struct lab_arena arena;
    lab_arena_init(&arena);
    lab_placement_judge(&machine, gpu_nodes, &arena, &process);
    assert_int_equal(process.placement, placement);
    assert_string_equal(process.advice, advice);
    lab_arena_release(&arena);
}

static const int on_0[] = {0}, on_0_and_2[] = {0, 2}, unknown[] = {-1}, one_unknown[] = {0, -1};

LAB_TEST(on_one_node_nothing_can_be_wrong) {
    judged(1, on_0, 1, 0, 1, NULL, LAB_PLACEMENT_ONE_NODE, "");
    judged(1, unknown, 1, -1, 0, NULL, LAB_PLACEMENT_ONE_NODE, "");
}

LAB_TEST(what_is_bound_to_the_gpus_node_is_local) {
    int64_t there[] = {900 * MIB, 100 * MIB};
    judged(2, on_0, 1, 0, 1, NULL, LAB_PLACEMENT_LOCAL, "");
    judged(2, on_0, 1, 0, 1, there, LAB_PLACEMENT_LOCAL, "");
    judged(2, on_0, 1, -1, 1, there, LAB_PLACEMENT_LOCAL, "");
}

LAB_TEST(what_only_happens_to_be_there_is_loose) {
    judged(2, on_0, 1, 0, 3, NULL, LAB_PLACEMENT_LOOSE, "taskset -a -cp 0-1,8-9 4711");
}

LAB_TEST(wrong_cores_and_memory_are_distinct) {
    int64_t there[] = {900 * MIB, 100 * MIB}, elsewhere[] = {100 * MIB, 900 * MIB};
    judged(2, on_0, 1, 1, 3, there, LAB_PLACEMENT_CORES, "taskset -a -cp 0-1,8-9 4711");
    judged(2, on_0, 1, -1, 2, NULL, LAB_PLACEMENT_CORES, "taskset -a -cp 0-1,8-9 4711");
    judged(2, on_0, 1, 0, 1, elsewhere, LAB_PLACEMENT_MEMORY, "migratepages 4711 1 0");
    judged(2, on_0, 1, 1, 2, elsewhere, LAB_PLACEMENT_BOTH,
           "taskset -a -cp 0-1,8-9 4711 && migratepages 4711 1 0");
}

LAB_TEST(little_memory_and_half_of_it_do_not_count) {
    int64_t little[] = {0, 63 * MIB}, enough[] = {0, 64 * MIB}, half[] = {64 * MIB, 64 * MIB};
    judged(2, on_0, 1, 0, 1, little, LAB_PLACEMENT_LOCAL, "");
    judged(2, on_0, 1, 0, 1, enough, LAB_PLACEMENT_MEMORY, "migratepages 4711 1 0");
    judged(2, on_0, 1, 0, 1, half, LAB_PLACEMENT_LOCAL, "");
}

LAB_TEST(gpus_of_several_nodes_make_all_of_them_local) {
    int64_t spread[] = {10 * MIB, 300 * MIB, 10 * MIB, 300 * MIB};
    judged(4, on_0_and_2, 2, 2, 1 << 2, NULL, LAB_PLACEMENT_LOCAL, "");
    judged(4, on_0_and_2, 2, 0, 1 | 1 << 2, NULL, LAB_PLACEMENT_LOCAL, "");
    judged(4, on_0_and_2, 2, 0, 15, NULL, LAB_PLACEMENT_LOOSE,
           "taskset -a -cp 0-1,4-5,8-9,12-13 4711");
    judged(4, on_0_and_2, 2, 3, 15, spread, LAB_PLACEMENT_BOTH,
           "taskset -a -cp 0-1,4-5,8-9,12-13 4711 && migratepages 4711 1,3 0,2");
}

LAB_TEST(what_is_not_known_is_not_judged) {
    judged(2, unknown, 1, 1, 2, NULL, LAB_PLACEMENT_UNKNOWN, "");
    judged(2, on_0, 1, -1, 0, NULL, LAB_PLACEMENT_UNKNOWN, "");
    judged(2, on_0, 1, -1, 3, NULL, LAB_PLACEMENT_UNKNOWN, "");
    judged(2, on_0, 0, 1, 2, NULL, LAB_PLACEMENT_UNKNOWN, ""); /* uses no GPU */
    /* one of two GPUs is known: there it is right, elsewhere it may be, too */
    judged(2, one_unknown, 2, 0, 1, NULL, LAB_PLACEMENT_LOCAL, "");
    judged(2, one_unknown, 2, 1, 2, NULL, LAB_PLACEMENT_UNKNOWN, "");
    /* a node without cores, or whose cores are not for us to see */
    struct lab_cpus kept = nodes[0].cpus;
    nodes[0].cpus.count = 0;
    judged(2, on_0, 1, 1, 2, NULL, LAB_PLACEMENT_UNKNOWN, "");
    judged(2, on_0, 1, 0, 3, NULL, LAB_PLACEMENT_LOCAL, "");
    nodes[0].cpus = kept;
}
