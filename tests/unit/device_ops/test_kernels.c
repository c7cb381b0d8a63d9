/*
 * test_kernels.c: every kernel of the cpu backend, on every instruction set of this CPU, against
 * the op's definition: cut for several numbers of threads, in any order, beside its inputs and over
 * them.
 */
#include "conformance/op_check.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <pthread.h>

#include "test.h"

#define MARGIN 32 /* floats around the output that must stay as they are */
#define CANARY 12345.0f

static const struct cpu_simd *simds[4];

static int find_simds(void **state) {
    (void)state;
    static const char *const words[] = {"base", "avx2", "avx512"};
    int count = 0;
    for (int i = 0; i < 3; i++) {
        setenv("GPULAB_SIMD", words[i], 1);
        const struct cpu_simd *simd = cpu_simd_select();
        int known = 0;
        for (int j = 0; j < count; j++)
            known |= simds[j] == simd;
        if (!known)
            simds[count++] = simd;
    }
    unsetenv("GPULAB_SIMD");
    return 0;
}

struct memory { /* a launch's tensors, fresh for each try */
    struct lab_arena arena;
    struct lab_launch launch;
    float *out; /* between margins */
    int64_t count;
    float *also; /* the second output, where the op has one */
};

/* `over`: which input the output lies on; -1 = on none. */
static struct memory place(const struct op_case *c, int over) {
    struct memory memory = {.launch = c->launch, .count = c->count};
    lab_arena_init(&memory.arena);
    float *all = lab_arena_alloc(&memory.arena, (size_t)(c->count + 2 * MARGIN), sizeof *all);
    for (int64_t i = 0; i < c->count + 2 * MARGIN; i++)
        all[i] = CANARY;
    memory.out = all + MARGIN;
    memory.launch.out.data = memory.out;
    op_case_poison(memory.out, c->count);
    if (c->expected_also) {
        memory.launch.also = op_case_also(&c->launch);
        memory.also = lab_arena_alloc(&memory.arena, (size_t)c->also_count, sizeof *memory.also);
        memory.launch.also.data = memory.also;
        op_case_poison(memory.also, c->also_count);
    }
    for (int i = 0; i < c->op->inputs; i++) {
        size_t bytes = (size_t)c->in_count[i] * sizeof(float);
        void *data = i == over ? memory.out : lab_arena_alloc(&memory.arena, bytes, 1);
        memory.launch.in[i].data = memcpy(data, c->in[i], bytes);
    }
    struct lab_err err = LAB_ERR_INIT;
    if (lab_launch_complete(&memory.launch, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    return memory;
}

static void check(const struct op_case *c, const struct memory *memory, const char *how) {
    double error = op_case_error(c, memory->out);
    if (error > op_case_tolerance(LAB_FP32, true))
        fail_msg("%s, %s: relative error %g", c->name, how, error);
    error = c->expected_also ? op_case_also_error(c, memory->also) : 0;
    if (error > op_case_tolerance(LAB_FP32, true))
        fail_msg("%s, %s: relative error %g of the second output", c->name, how, error);
    for (int i = 1; i <= MARGIN; i++)
        if (memory->out[-i] != CANARY || memory->out[memory->count + i - 1] != CANARY)
            fail_msg("%s, %s: wrote beside the output", c->name, how);
}

/* A kernel without phases has one. */
static int phases_of(const struct lab_launch *launch) {
    const struct cpu_kernel *kernel = cpu_kernel_get(launch->op, LAB_FP32);
    return kernel->phases ? kernel->phases(launch) : 1;
}

static int64_t units_of(const struct lab_launch *launch, int phase, int threads) {
    const struct cpu_kernel *kernel = cpu_kernel_get(launch->op, LAB_FP32);
    return kernel->phases ? kernel->phase_units(launch, phase, threads)
                          : kernel->units(launch, threads);
}

struct piece {
    int phase, threads;
    int64_t units, begin, end;
};

static void run_piece(const struct lab_launch *launch, const struct cpu_simd *simd,
                      struct piece piece, struct cpu_scratch *scratch) {
    const struct cpu_kernel *kernel = cpu_kernel_get(launch->op, LAB_FP32);
    if (kernel->phases)
        kernel->phase_run(launch, simd, piece.phase, piece.threads, piece.begin, piece.end,
                          scratch);
    else
        kernel->run(launch, simd, piece.units, piece.begin, piece.end, scratch);
}

/* A phase's units in a shuffled order and in pieces of one to three. */
static void run_phase(const struct lab_launch *launch, const struct cpu_simd *simd, int phase,
                      int threads, struct cpu_scratch *scratch) {
    int64_t units = units_of(launch, phase, threads);
    assert_true(units >= 1);
    int64_t pieces = 0, begins[4096], ends[4096];
    for (int64_t begin = 0; begin < units; pieces++) {
        assert_true(pieces < 4096);
        begins[pieces] = begin;
        begin += 1 + (int64_t)lab_random_below(1, (uint64_t)begin, 3);
        ends[pieces] = begin = cpu_min(begin, units);
    }
    for (int64_t i = pieces; i > 0; i--) {
        int64_t pick = (int64_t)lab_random_below(2, (uint64_t)i, (uint64_t)i);
        run_piece(launch, simd, (struct piece){phase, threads, units, begins[pick], ends[pick]},
                  scratch);
        begins[pick] = begins[i - 1];
        ends[pick] = ends[i - 1];
    }
}

static void run_in_pieces(const struct memory *memory, const struct cpu_simd *simd, int threads,
                          struct cpu_scratch *scratch) {
    for (int phase = 0; phase < phases_of(&memory->launch); phase++)
        run_phase(&memory->launch, simd, phase, threads, scratch);
}

static void try_case(const struct op_case *c, const struct cpu_simd *simd,
                     struct cpu_scratch *scratch) {
    static const int threads[] = {1, 2, 7};
    for (int over = -1; over < c->op->inputs; over++) {
        if (over >= 0 && !(c->op->over >> over & 1))
            continue;
        for (int t = 0; t < 3; t++) {
            struct memory memory = place(c, over);
            run_in_pieces(&memory, simd, threads[t], scratch);
            char how[64];
            snprintf(how, sizeof how, "%s, %d threads, over input %d", cpu_simd_name(simd),
                     threads[t], over);
            check(c, &memory, how);
            lab_arena_release(&memory.arena);
        }
    }
}

/* An op without a kernel of its own is carried out by its parts. */
static bool is_composed(int id) {
    return !cpu_kernel_get((enum lab_op_id)id, LAB_FP32) && lab_op_get((enum lab_op_id)id)->lower;
}

LAB_TEST(every_kernel_agrees_with_its_definition) {
    struct cpu_scratch scratch = {0};
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        if (is_composed(id))
            continue;
        struct op_case c;
        struct lab_err err = LAB_ERR_INIT;
        LAB_AUTO(arena, arena);
        int index = 0;
        for (; op_case_make((enum lab_op_id)id, index, LAB_FP32, &arena, &c, &err) == 0; index++)
            for (int s = 0; simds[s]; s++)
                try_case(&c, simds[s], &scratch);
        assert_int_equal(err.code, LAB_ERR_NONE);
        assert_true(index >= 5);
    }
    free(scratch.memory);
}

struct worker {
    const struct lab_launch *launch;
    struct piece piece;
    pthread_t thread;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    struct cpu_scratch scratch = {0};
    run_piece(worker->launch, cpu_simd_select(), worker->piece, &scratch);
    free(scratch.memory);
    return NULL;
}

enum { THREADS = 3 };

static void share_phase(const struct lab_launch *launch, int phase) {
    int64_t units = units_of(launch, phase, THREADS);
    struct worker workers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){
            launch, {phase, THREADS, units, units * t / THREADS, units * (t + 1) / THREADS}, 0};
        assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(workers[t].thread, NULL);
}

LAB_TEST(threads_share_an_op) {
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        if (is_composed(id))
            continue;
        struct op_case c;
        LAB_AUTO(arena, arena);
        int last = 0;
        struct lab_launch unused;
        while (lab_op_example((enum lab_op_id)id, last + 1, LAB_FP32, &unused) == 0)
            last++;
        assert_int_equal(op_case_make((enum lab_op_id)id, last, LAB_FP32, &arena, &c, NULL), 0);
        struct memory memory = place(&c, -1);
        for (int phase = 0; phase < phases_of(&memory.launch); phase++)
            share_phase(&memory.launch, phase);
        check(&c, &memory, "three threads");
        lab_arena_release(&memory.arena);
    }
}

LAB_TEST(fused_kernels_agree_with_their_composition) {
    struct cpu_scratch scratch = {0};
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        const struct lab_op *op = lab_op_get((enum lab_op_id)id);
        if (!op->lower)
            continue;
        LAB_AUTO(arena, arena);
        struct op_case c;
        for (int index = 0;
             op_case_make((enum lab_op_id)id, index, LAB_FP32, &arena, &c, NULL) == 0; index++)
            for (int over = -1; over < op->inputs; over++) {
                if (over >= 0 && !(op->over >> over & 1))
                    continue;
                struct memory memory = place(&c, over);
                struct lab_launch parts[LAB_OP_PARTS];
                int count = op->lower(&memory.launch, parts);
                assert_in_range(count, 2, LAB_OP_PARTS);
                for (int p = 0; p < count; p++) {
                    struct lab_err err = LAB_ERR_INIT;
                    if (lab_launch_complete(&parts[p], &err) < 0)
                        fail_msg("%s, part %d: %s", c.name, p, err.text);
                    struct memory part = {.launch = parts[p]};
                    run_in_pieces(&part, cpu_simd_select(), 2, &scratch);
                }
                check(&c, &memory, "by its composition");
                lab_arena_release(&memory.arena);
            }
    }
    free(scratch.memory);
}

/* Training, whose tensors stay fp32, also computes in two others. */
LAB_TEST(only_single_precision_is_there) {
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        bool rounds = lab_op_get((enum lab_op_id)id)->keeps_fp32;
        assert_true(cpu_kernel_get((enum lab_op_id)id, LAB_FP32) || is_composed(id));
        assert_int_equal(cpu_kernel_get((enum lab_op_id)id, LAB_TF32) != NULL, rounds);
        assert_int_equal(cpu_kernel_get((enum lab_op_id)id, LAB_BF16) != NULL, rounds);
        assert_null(cpu_kernel_get((enum lab_op_id)id, LAB_FP16));
    }
    assert_null(cpu_kernel_get(LAB_OP_COUNT, LAB_FP32));
}

/* One NaN in an input reaches exactly the outputs that depend on it. */
LAB_TEST(a_nan_goes_where_mathematics_sends_it) {
    struct cpu_scratch scratch = {0};
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int s = 0; simds[s] && !is_composed(id); s++) {
            LAB_AUTO(arena, arena);
            struct op_case c;
            op_case_make((enum lab_op_id)id, 3, LAB_FP32, &arena, &c, NULL);
            const double *in[LAB_LAUNCH_INPUTS];
            for (int i = 0; i < c.op->inputs; i++) {
                double *exact = lab_arena_alloc(&arena, (size_t)c.in_count[i], sizeof *exact);
                if (i == 0)
                    c.in[0][c.in_count[0] / 2] = NAN;
                for (int64_t e = 0; e < c.in_count[i]; e++)
                    exact[e] = c.in[i][e];
                in[i] = exact;
            }
            c.op->reference(&c.launch, in, c.expected);
            struct memory memory = place(&c, -1);
            run_in_pieces(&memory, simds[s], 2, &scratch);
            for (int64_t e = 0; e < c.count; e++)
                if (!isnan(memory.out[e]) != !isnan(c.expected[e]))
                    fail_msg("%s, %s: element %lld is %g, must be %g", c.name,
                             cpu_simd_name(simds[s]), (long long)e, (double)memory.out[e],
                             c.expected[e]);
            lab_arena_release(&memory.arena);
        }
    free(scratch.memory);
}

LAB_TEST(scratch_grows_and_stays) {
    struct cpu_scratch scratch = {0};
    char *first = cpu_scratch_get(&scratch, 100);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_ptr_equal(cpu_scratch_get(&scratch, 10), first);
    char *larger = cpu_scratch_get(&scratch, 100000);
    assert_int_equal((uintptr_t)larger % 64, 0);
    memset(larger, 1, 100000);
    assert_ptr_equal(cpu_scratch_get(&scratch, 100), larger);
    free(scratch.memory);
}

const struct lab_test_program lab_test_program = {.open = find_simds};
