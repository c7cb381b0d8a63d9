/*
 * This computer, whatever it is: threads bound and read back, memory mapped and its pages counted,
 * proofs that fail when they must. Placement among several nodes is proven in tests/numa.
 */
#include "base/mem.h"
#include "base/str.h"
#include "machine/machine.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define PAGES 300

static struct lab_machine *machine;
static size_t page_bytes;

static int open_machine(void **state) {
    (void)state;
    struct lab_err err = LAB_ERR_INIT;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    return lab_machine_open(NULL, &machine, &err);
}

static int close_machine(void **state) {
    (void)state;
    lab_machine_close(machine);
    return 0;
}

static void *map(int node, size_t size_bytes, unsigned flags) {
    void *memory = NULL;
    ASSERT_OK(lab_memory_map(machine, node, size_bytes, flags, &memory, err));
    return memory;
}

/* Each test that binds does so in a thread of its own, so that the others are left alone. */
static void in_a_thread(void *(*body)(void *)) {
    pthread_t thread;
    const char *failure = NULL;
    assert_int_equal(pthread_create(&thread, NULL, body, &failure), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (failure)
        fail_msg("%s", failure);
}

/* --- what is here --- */

LAB_TEST(this_machine_is_what_the_kernel_says) {
    assert_string_equal(machine->source, "this machine");
    assert_false(machine->recorded);
    assert_true(machine->node_count >= 1);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cpus = 0;
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        cpus += node->cpus.count;
        assert_true(node->memory_bytes > 0);
        assert_true(node->free_bytes > 0 && node->free_bytes <= node->memory_bytes);
        assert_int_equal(lab_machine_distance(machine, i, i), 10);
        for (int j = 0; j < node->cpus.count; j++)
            assert_true(CPU_ISSET((size_t)node->cpus.items[j], &allowed));
    }
    assert_int_equal(cpus, CPU_COUNT(&allowed));
    assert_true(machine->core_count >= 1 && machine->core_count <= cpus);
    assert_int_equal(lab_machine_free_bytes(machine, 4711), -1);
}

/* Runs `body` in a child process; its exit status 0 is success. */
static void in_a_child(int (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int open_on_one_cpu(void) {
    int cpu = machine->nodes[0].cpus.items[machine->nodes[0].cpus.count - 1];
    struct lab_cpus one = {&cpu, 1};
    struct lab_machine *mine;
    if (lab_bind_cpus(machine, &one, true, NULL) < 0 || lab_machine_open(NULL, &mine, NULL) < 0)
        return 1;
    if (mine->core_count != 1 || mine->cores[0].cpus.count != 1 ||
        mine->cores[0].cpus.items[0] != cpu || mine->pci_count != machine->pci_count)
        return 2;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_cpus all = machine->nodes[0].cpus;
    if (all.count > 1 && lab_bind_cpus(mine, &all, false, &err) == 0)
        return 3;
    lab_machine_close(mine);
    return 0;
}

LAB_TEST(cores_outside_taskset_do_not_exist) {
    in_a_child(open_on_one_cpu);
}

/* --- threads --- */

static bool reads_back(pid_t tid, int cpu) {
    struct lab_cpus cpus = {0};
    struct lab_err err = LAB_ERR_INIT;
    if (lab_bind_read_cpus(tid, &cpus, &err) < 0)
        return false;
    bool same = cpus.count == 1 && cpus.items[0] == cpu;
    lab_mem_free(cpus.items);
    return same;
}

static void *bind_self_to_each_cpu(void *ret_failure) {
    const char **failure = ret_failure;
    for (int i = 0; i < machine->core_count; i++)
        for (int j = 0; j < machine->cores[i].cpus.count; j++) {
            int cpu = machine->cores[i].cpus.items[j];
            struct lab_cpus one = {&cpu, 1};
            if (lab_bind_cpus(machine, &one, false, NULL) < 0)
                *failure = "can't bind";
            if (!reads_back(0, cpu) || !reads_back(gettid(), cpu) || sched_getcpu() != cpu)
                *failure = "bound, but /proc says otherwise";
        }
    return NULL;
}

LAB_TEST(a_thread_is_bound_alone) {
    struct lab_cpus before = {0}, after = {0};
    assert_int_equal(lab_bind_read_cpus(0, &before, NULL), 0);
    in_a_thread(bind_self_to_each_cpu);
    assert_int_equal(lab_bind_read_cpus(0, &after, NULL), 0);
    assert_int_equal(before.count, after.count);
    lab_mem_free(before.items);
    lab_mem_free(after.items);
}

static pthread_barrier_t barrier;
static pid_t others[3];

static void *wait_for_binding(void *place) {
    *(pid_t *)place = gettid();
    pthread_barrier_wait(&barrier); /* known */
    pthread_barrier_wait(&barrier); /* checked */
    return NULL;
}

static void *note_tid(void *place) {
    *(bool *)place = reads_back(0, machine->nodes[0].cpus.items[0]);
    return NULL;
}

static int bind_whole_process(void) {
    pthread_t threads[3];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_for_binding, &others[i]);
    pthread_barrier_wait(&barrier);
    struct lab_cpus one = {machine->nodes[0].cpus.items, 1};
    int result = lab_bind_cpus(machine, &one, true, NULL) < 0 ? 1 : 0;
    if (!reads_back(0, one.items[0]))
        result = 2;
    for (int i = 0; i < 3; i++)
        if (!reads_back(others[i], one.items[0]))
            result = 3;
    bool later_too = false;
    pthread_t later;
    pthread_create(&later, NULL, note_tid, &later_too);
    pthread_join(later, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return later_too ? result : 4;
}

LAB_TEST(a_process_is_bound_with_all_its_threads) {
    in_a_child(bind_whole_process);
}

static void *bind_to_node_and_prove(void *ret_failure) {
    const char **failure = ret_failure;
    int node = machine->nodes[0].number;
    if (lab_bind_thread_to_node(machine, node, NULL) < 0)
        *failure = "can't bind to the node";
    else if (lab_bind_prove_thread(machine, node, NULL) < 0)
        *failure = "the proof failed";
    return NULL;
}

LAB_TEST(a_thread_on_a_node_is_proven_there) {
    in_a_thread(bind_to_node_and_prove);
}

LAB_TEST(a_binding_to_nothing_is_refused) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_cpus none = {0};
    assert_int_equal(lab_bind_cpus(machine, &none, false, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(err.hint, LAB_HINT_NUMA_NODE);
    int absent = 1000000;
    struct lab_cpus wrong = {&absent, 1};
    assert_int_equal(lab_bind_cpus(machine, &wrong, false, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "this process has no CPU 1000000: it may use ");
    assert_int_equal(err.hint, LAB_HINT_CPUSET);
    assert_int_equal(lab_bind_thread_to_node(machine, 4711, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(lab_bind_prove_thread(machine, 4711, &err), -1);
    assert_contains(err.text, "there is no NUMA node 4711: this machine has ");
    assert_int_equal(err.hint, LAB_HINT_NUMA_NODE);
    assert_int_equal(lab_bind_read_cpus(0x3fffffff, &none, &err), -1);
}

/* --- memory --- */

LAB_TEST(touched_pages_are_counted_on_their_node) {
    char *memory = map(machine->nodes[0].number, PAGES * page_bytes, LAB_MEMORY_TOUCH);
    struct lab_page_census census;
    assert_int_equal(lab_memory_census(machine, memory, PAGES * page_bytes, &census, NULL), 0);
    assert_int_equal(census.pages, PAGES);
    assert_int_equal(census.absent, 0);
    assert_int_equal(census.on_node[0], PAGES);
    assert_int_equal(census.elsewhere, 0);
    for (size_t i = 0; i < PAGES * page_bytes; i++)
        assert_int_equal(memory[i], 0);
    assert_int_equal(
        lab_memory_prove(machine, memory, PAGES * page_bytes, machine->nodes[0].number, NULL), 0);
    lab_memory_unmap(memory, PAGES * page_bytes);
}

/* More than one batch of questions, not touched but for the ends. */
LAB_TEST(absent_pages_are_counted_as_such) {
    size_t pages = 3000;
    char *memory = map(machine->nodes[0].number, pages * page_bytes, 0);
    struct lab_page_census census;
    assert_int_equal(lab_memory_census(machine, memory, pages * page_bytes, &census, NULL), 0);
    assert_int_equal(census.absent, 3000);

    struct lab_err err = LAB_ERR_INIT;
    int node = machine->nodes[0].number;
    assert_int_equal(lab_memory_prove(machine, memory, pages * page_bytes, node, &err), -1);
    assert_int_equal(err.hint, LAB_HINT_MEMORY_MOVED);
    assert_int_equal(err.code, LAB_ERR_WRONG);
    assert_contains(err.text, "of 3000 pages 3000 not allocated");

    memory[0] = memory[(pages - 1) * page_bytes] = 1;
    assert_int_equal(lab_memory_census(machine, memory, pages * page_bytes, &census, NULL), 0);
    assert_true(census.on_node[0] >= 2); /* more where the kernel gives huge pages */
    assert_int_equal(census.on_node[0] + census.absent, 3000);
    assert_int_equal(lab_memory_prove(machine, memory, pages * page_bytes, node, NULL), 0);
    lab_memory_unmap(memory, pages * page_bytes);
}

LAB_TEST(a_range_counts_every_page_that_it_touches) {
    char *memory = map(-1, 3 * page_bytes, LAB_MEMORY_TOUCH);
    struct lab_page_census census;
    assert_int_equal(lab_memory_census(machine, memory + page_bytes - 1, 2, &census, NULL), 0);
    assert_int_equal(census.pages, 2);
    assert_int_equal(lab_memory_census(machine, memory, 0, &census, NULL), 0);
    assert_int_equal(census.pages, 0);
    lab_memory_unmap(memory, 3 * page_bytes);
}

LAB_TEST(huge_and_locked_memory_is_zeroed_and_aligned) {
    size_t size_bytes = ((size_t)4 << 20) + 1;
    unsigned flags = LAB_MEMORY_TOUCH | LAB_MEMORY_HUGE | LAB_MEMORY_LOCK;
    char *memory = map(machine->nodes[0].number, size_bytes, flags);
    assert_int_equal((uintptr_t)memory % ((size_t)2 << 20), 0);
    memory[size_bytes - 1] = 1;
    assert_int_equal(memory[0], 0);
    assert_int_equal(lab_memory_prove(machine, memory, size_bytes, machine->nodes[0].number, NULL),
                     0);
    lab_memory_unmap(memory, size_bytes);
    lab_memory_unmap(NULL, 0);
}

LAB_TEST(memory_beyond_the_node_is_refused_before_it_is_touched) {
    struct lab_err err = LAB_ERR_INIT;
    void *memory = NULL;
    int node = machine->nodes[0].number;
    size_t size_bytes = (size_t)1 << 50;
    assert_int_equal(lab_memory_map(machine, node, size_bytes, LAB_MEMORY_TOUCH, &memory, &err),
                     -1);
    assert_int_equal(err.code, LAB_ERR_MEMORY);
    assert_true(lab_str_starts(err.text, "NUMA node 0 has "));
    assert_contains(err.text, " free, 1.00 PiB asked for");
    assert_int_equal(err.hint, LAB_HINT_OUT_OF_MEMORY);
    assert_int_equal(lab_memory_map(machine, -1, size_bytes, LAB_MEMORY_TOUCH, &memory, &err), -1);
    assert_int_equal(err.code, LAB_ERR_MEMORY);
    assert_true(lab_str_starts(err.text, "this machine has "));
    assert_int_equal(lab_memory_map(machine, node, SIZE_MAX, 0, &memory, &err), -1);
    assert_int_equal(err.code, LAB_ERR_MEMORY);
    assert_int_equal(lab_memory_map(machine, node, 0, 0, &memory, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_null(memory);
}

LAB_TEST(a_node_that_is_not_there_holds_no_memory) {
    void *memory = NULL;
    ASSERT_FAILS(lab_memory_map(machine, 4711, page_bytes, 0, &memory, err), LAB_ERR_USER, "");
    char *here = map(-1, page_bytes, LAB_MEMORY_TOUCH);
    ASSERT_FAILS(lab_memory_prove(machine, here, page_bytes, 4711, err), LAB_ERR_USER,
                 "there is no NUMA node 4711");
    lab_memory_unmap(here, page_bytes);
}

/* --- a kernel without NUMA, and a container that forbids it --- */

static int numa_calls_answer(int errno_value) {
    const int calls[] = {SYS_move_pages, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy};
    enum { CALLS = sizeof calls / sizeof calls[0] };
    struct sock_filter filter[CALLS + 3];
    filter[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                     (uint8_t)(CALLS - i), 0);
    filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[CALLS + 2] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)errno_value);
    struct sock_fprog program = {.len = CALLS + 3, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int check_one_node_works(const struct lab_machine *mine) {
    int node = mine->nodes[0].number;
    size_t size_bytes = PAGES * page_bytes;
    void *memory;
    struct lab_page_census census;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_memory_map(mine, node, size_bytes, 0, &memory, &err) < 0)
        return 10;
    if (lab_memory_prove(mine, memory, size_bytes, node, &err) == 0 || err.code != LAB_ERR_WRONG)
        return 11;
    memset(memory, 1, size_bytes);
    if (lab_memory_census(mine, memory, size_bytes, &census, &err) < 0 || census.absent != 0 ||
        census.on_node[0] != PAGES || lab_memory_prove(mine, memory, size_bytes, node, &err) < 0)
        return 12;
    lab_memory_unmap(memory, size_bytes);
    if (lab_bind_thread_to_node(mine, node, &err) < 0 ||
        lab_bind_prove_thread(mine, node, &err) < 0)
        return 13;
    return 0;
}

static int live_without_numa(void) {
    struct lab_machine *mine;
    struct lab_err err = LAB_ERR_INIT;
    if (numa_calls_answer(ENOSYS) < 0 || lab_machine_open(NULL, &mine, &err) < 0)
        return 1;
    if (mine->numa_in_kernel || mine->nodes[0].free_bytes <= 0)
        return 2;
    if (lab_machine_require_node(mine, 4711, &err) == 0 ||
        !strstr(err.text, "the kernel has no NUMA, so NUMA node 0 is the whole machine"))
        return 3;
    int result = mine->node_count == 1 ? check_one_node_works(mine) : 0;
    lab_machine_close(mine);
    return result;
}

static int live_where_numa_is_forbidden(void) {
    struct lab_machine *mine;
    struct lab_err err = LAB_ERR_INIT;
    if (numa_calls_answer(EPERM) < 0 || lab_machine_open(NULL, &mine, &err) < 0)
        return 1;
    int result = 0;
    if (!mine->numa_in_kernel)
        result = 2;
    else if (mine->node_count == 1)
        result = check_one_node_works(mine);
    lab_machine_close(mine);
    return result;
}

LAB_TEST(a_kernel_without_numa_works_as_one_node) {
    in_a_child(live_without_numa);
}

LAB_TEST(a_container_that_forbids_numa_works_on_one_node) {
    in_a_child(live_where_numa_is_forbidden);
}

LAB_TEST(a_lent_place_is_taken_back) {
    struct lab_affinity_guard loan;
    struct lab_cpus before = {0}, during = {0}, after = {0};
    ASSERT_OK(lab_bind_read_cpus(0, &before, err));
    struct lab_cpus last = {&before.items[before.count - 1], 1};
    ASSERT_OK(lab_affinity_guard_begin(&last, 0, &loan, err));
    ASSERT_OK(lab_bind_read_cpus(0, &during, err));
    lab_affinity_guard_end(&loan);
    lab_affinity_guard_end(&loan);
    ASSERT_OK(lab_bind_read_cpus(0, &after, err));
    assert_int_equal(during.count, 1);
    assert_int_equal(during.items[0], last.items[0]);
    assert_int_equal(after.count, before.count);

    int nowhere[] = {8000};
    struct lab_cpus absent = {nowhere, 1};
    ASSERT_SAYS(lab_affinity_guard_begin(&absent, -1, &loan, err), "CPUs 8000");
    lab_mem_free(before.items);
    lab_mem_free(during.items);
    lab_mem_free(after.items);
}

/* What simulated runs open: the same nodes and cores, and no device. */
LAB_TEST(cores_alone_are_those_of_the_machine) {
    struct lab_machine *cores = NULL;
    ASSERT_OK(lab_machine_open_cores(&cores, err));
    assert_int_equal(cores->pci_count, 0);
    assert_int_equal(cores->node_count, machine->node_count);
    for (int i = 0; i < cores->node_count; i++) {
        assert_int_equal(cores->nodes[i].number, machine->nodes[i].number);
        assert_int_equal(cores->nodes[i].core_count, machine->nodes[i].core_count);
    }
    lab_machine_close(cores);
}

const struct lab_test_program lab_test_program = {.open = open_machine, .close = close_machine};
