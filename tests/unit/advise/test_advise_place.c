/* A line that starts PROGRAM has the GPU, the cores and the memory, in every form, or it isn't
 * made. */
#include "advise/advise_place.h"

#include <string.h>

#include "test.h"

#define GPU0 "GPU-00000000-1111-2222-3333-444444444444"
#define GPU8 "GPU-88888888-1111-2222-3333-444444444444"
#define MIG  "MIG-0b5c1f8e-1111-2222-3333-444444444444"

static int low[] = {0, 1, 2, 3}, high[] = {16, 17, 18, 19};
static struct lab_node nodes[] = {{.number = 0, .core_count = 4, .cpus = {low, 4}},
                                  {.number = 2, .core_count = 0},
                                  {.number = 3, .core_count = 4, .cpus = {high, 4}}};
static const struct lab_machine machine = {.nodes = nodes, .node_count = 3, .numa_in_kernel = true};

static struct lab_advice_place given(const struct lab_study_rank *ranks, int count) {
    return lab_advice_place_make(ranks, count, &machine, false, &test_arena);
}

/* --- one GPU --- */

static const struct lab_study_rank by_uuid = {
    .device = "cuda:0", .gpu = 8, .uuid = GPU8, .numa_node = 3, .device_node = 3};
static const struct lab_study_rank by_number = {
    .device = "cuda:8", .gpu = 8, .numa_node = 3, .device_node = 3};

LAB_TEST(a_gpu_with_a_uuid_is_called_by_it_in_every_form) {
    struct lab_advice_place place = given(&by_uuid, 1);
    assert_null(place.missing);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_VISIBLE_DEVICES=" GPU8
                        " numactl --cpunodebind=3 --membind=3 PROGRAM");
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 1 --cpu-bind=none env CUDA_VISIBLE_DEVICES=" GPU8
                        " numactl --cpunodebind=3 --membind=3 PROGRAM");
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 1 env CUDA_VISIBLE_DEVICES=" GPU8
                        " numactl --cpunodebind=3 --membind=3 PROGRAM");
}

/* CUDA counts the fastest first unless it is told otherwise. */
LAB_TEST(a_number_comes_with_the_order_that_it_counts_in) {
    struct lab_advice_place place = given(&by_number, 1);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=8 numactl "
                        "--cpunodebind=3 --membind=3 PROGRAM");
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 1 --cpu-bind=none env CUDA_DEVICE_ORDER=PCI_BUS_ID "
                        "CUDA_VISIBLE_DEVICES=8 numactl --cpunodebind=3 --membind=3 PROGRAM");
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 1 env CUDA_DEVICE_ORDER=PCI_BUS_ID "
                        "CUDA_VISIBLE_DEVICES=8 numactl --cpunodebind=3 --membind=3 PROGRAM");
}

LAB_TEST(a_simulated_gpu_has_its_number_and_no_cpus) {
    /* the machine's name is a path, which makes it no slice */
    static const struct lab_study_rank rank = {
        .device = "sim:./my machines/l40s.yaml:8", .gpu = 8, .numa_node = 3, .device_node = 3};
    struct lab_advice_place place = lab_advice_place_make(&rank, 1, &machine, true, &test_arena);
    assert_null(place.missing);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=8 numactl "
                        "--cpunodebind=3 --membind=3 PROGRAM");
    assert_null(place.cpus);
}

LAB_TEST(a_mig_instance_has_its_own_uuid) {
    static const struct lab_study_rank rank = {
        .device = "cuda:" MIG, .gpu = 8, .uuid = MIG, .numa_node = 3, .device_node = 3};
    struct lab_advice_place place = given(&rank, 1);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_VISIBLE_DEVICES=" MIG " numactl --cpunodebind=3 --membind=3 PROGRAM");
}

/* --- several, and none --- */

LAB_TEST(a_gang_on_one_node_lists_all_of_its_gpus) {
    const struct lab_study_rank ranks[] = {
        {.device = "cuda:8", .gpu = 8, .uuid = GPU8, .numa_node = 3, .device_node = 3},
        {.device = "cuda:0", .gpu = 0, .uuid = GPU0, .numa_node = 3, .device_node = 0}};
    struct lab_advice_place place = given(ranks, 2);
#define BOTH "CUDA_VISIBLE_DEVICES=" GPU8 "," GPU0 " "
#define BIND "numactl --cpunodebind=3 --membind=3 PROGRAM"
    assert_string_equal(lab_advice_place_torchrun(&place, &test_arena),
                        BOTH "torchrun --nproc-per-node 2 --no-python " BIND);
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 2 --cpu-bind=none env " BOTH BIND);
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 2 env " BOTH BIND);
}

/* `gpulab bind` finds each GPU's local node by itself. */
LAB_TEST(a_gang_on_local_nodes_is_bound_by_gpulab) {
    const struct lab_study_rank ranks[] = {
        {.device = "cuda:8", .gpu = 8, .uuid = GPU8, .numa_node = 3, .device_node = 3},
        {.device = "cuda:0", .gpu = 0, .uuid = GPU0, .numa_node = 0, .device_node = 0}};
    struct lab_advice_place place = given(ranks, 2);
    assert_string_equal(lab_advice_place_torchrun(&place, &test_arena),
                        BOTH "torchrun --nproc-per-node 2 --no-python gpulab bind PROGRAM");
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 2 --cpu-bind=none env " BOTH "gpulab bind PROGRAM");
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 2 env " BOTH "gpulab bind PROGRAM");
}

/* One process on both nodes would be the same line whichever GPU was fed from which. */
LAB_TEST(a_gang_on_several_nodes_has_a_process_for_each) {
    const struct lab_study_rank ranks[] = {
        {.device = "cuda:8", .gpu = 8, .uuid = GPU8, .numa_node = 3, .device_node = 3},
        {.device = "cuda:0", .gpu = 0, .uuid = GPU0, .numa_node = 0, .device_node = 3}};
    struct lab_advice_place place = given(ranks, 2);
    const char *mpi = "mpirun --bind-to none -n 1 env CUDA_VISIBLE_DEVICES=" GPU8
                      " numactl --cpunodebind=3 --membind=3 PROGRAM : -n 1 env "
                      "CUDA_VISIBLE_DEVICES=" GPU0 " numactl --cpunodebind=0 --membind=0 PROGRAM";
    assert_null(lab_advice_place_torchrun(&place, &test_arena));
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena), mpi);
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 2 --cpu-bind=none sh -c 'case $SLURM_LOCALID in "
                        "0) exec env CUDA_VISIBLE_DEVICES=" GPU8
                        " numactl --cpunodebind=3 --membind=3 PROGRAM;; "
                        "1) exec env CUDA_VISIBLE_DEVICES=" GPU0
                        " numactl --cpunodebind=0 --membind=0 PROGRAM;; esac'");
}

/* CUDA shows a process one of them at most. */
LAB_TEST(a_gang_of_mig_instances_has_a_process_for_each) {
    const struct lab_study_rank ranks[] = {
        {.device = "cuda:" MIG, .gpu = 8, .uuid = MIG, .numa_node = 3, .device_node = 3},
        {.device = "cuda:" MIG "-2", .gpu = 8, .uuid = MIG "-2", .numa_node = 3, .device_node = 3}};
    struct lab_advice_place place = given(ranks, 2);
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 1 env CUDA_VISIBLE_DEVICES=" MIG
                        " numactl --cpunodebind=3 --membind=3 PROGRAM : -n 1 env "
                        "CUDA_VISIBLE_DEVICES=" MIG
                        "-2 numactl --cpunodebind=3 --membind=3 PROGRAM");
}

/* CUDA takes no list of UUIDs and numbers. */
LAB_TEST(where_one_uuid_is_missing_all_have_numbers) {
    const struct lab_study_rank ranks[] = {
        {.device = "cuda:8", .gpu = 8, .uuid = GPU8, .numa_node = 3, .device_node = 3},
        {.device = "cuda:0", .gpu = 0, .numa_node = 3, .device_node = 0}};
    struct lab_advice_place place = given(ranks, 2);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=8,0 numactl "
                        "--cpunodebind=3 --membind=3 PROGRAM");
}

LAB_TEST(a_cpu_device_needs_no_gpu) {
    static const struct lab_study_rank rank = {
        .device = "cpu:3", .gpu = -1, .numa_node = 0, .device_node = 3};
    struct lab_advice_place place = given(&rank, 1);
    assert_null(place.gpus);
    /* it computes on its own cores; the other node's memory feeds it */
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "numactl --cpunodebind=3 --membind=0 PROGRAM");
    assert_string_equal(lab_advice_place_slurm(&place, &test_arena),
                        "srun -n 1 --cpu-bind=none numactl --cpunodebind=3 --membind=0 PROGRAM");
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 1 numactl --cpunodebind=3 --membind=0 PROGRAM");
}

/* --- machines --- */

LAB_TEST(a_node_without_cores_binds_memory_alone) {
    struct lab_study_rank rank = by_uuid;
    rank.numa_node = 2;
    struct lab_advice_place place = given(&rank, 1);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_VISIBLE_DEVICES=" GPU8 " numactl --membind=2 PROGRAM");
}

/* numactl would refuse to start anything there. */
LAB_TEST(a_kernel_without_nodes_is_bound_by_taskset) {
    const struct lab_machine plain = {.nodes = nodes, .node_count = 1};
    struct lab_study_rank rank = by_uuid;
    rank.numa_node = 0;
    struct lab_advice_place place = lab_advice_place_make(&rank, 1, &plain, false, &test_arena);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_VISIBLE_DEVICES=" GPU8 " taskset -c 0-3 PROGRAM");
    assert_string_equal(lab_advice_place_mpi(&place, &test_arena),
                        "mpirun --bind-to none -n 1 env CUDA_VISIBLE_DEVICES=" GPU8
                        " taskset -c 0-3 PROGRAM");
}

LAB_TEST(an_unknown_machine_has_nodes_but_no_cpus) {
    struct lab_advice_place place = lab_advice_place_make(&by_uuid, 1, NULL, false, &test_arena);
    assert_string_equal(lab_advice_place_line(&place, &test_arena),
                        "CUDA_VISIBLE_DEVICES=" GPU8
                        " numactl --cpunodebind=3 --membind=3 PROGRAM");
}

/* --- no line at all --- */

static void refused(struct lab_study_rank rank, const char *why) {
    const struct lab_study_rank ranks[] = {by_uuid, rank};
    struct lab_advice_place place = given(ranks, 2);
    if (!place.missing || !strstr(place.missing, why))
        fail_msg("'%s' instead of '%s'", place.missing ? place.missing : "a line", why);
}

LAB_TEST(what_cannot_be_addressed_has_no_line) {
    struct lab_study_rank rank = by_uuid;
    rank.device = "cuda:0/4.2";
    refused(rank, "cuda:0/4.2 is a slice of a GPU, which gpulab alone can address");
    rank.device = "cpu:3/2.1";
    refused(rank, "a slice of a NUMA node's cores");
    rank = by_uuid;
    rank.numa_node = -1;
    refused(rank, "the NUMA node of cuda:0 is unknown");
    refused((struct lab_study_rank){.device = "unknown device", .gpu = -1, .numa_node = 0},
            "the GPU of unknown device is unknown");
    assert_non_null(given(NULL, 0).missing);
}
