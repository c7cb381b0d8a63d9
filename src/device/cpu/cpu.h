/*
 * cpu.h: what the files of the cpu backend share. Not seen outside this folder.
 *
 *   cpu.c      selectors, opening, limits           pool.c    the device's threads, one for each core
 *   stream.c   streams, events, graphs              memory.c  buffers on nodes
 *   kernels.c  op → kernel: how its work is cut     simd/     the loops, once for each instruction set
 */
#ifndef LAB_DEVICE_CPU_CPU_H
#define LAB_DEVICE_CPU_CPU_H

#include "device/device.h"

#include <stddef.h>
#include <stdint.h>

/* --- kernels: an op is cut into units that any thread may do in any order --- */

struct cpu_scratch { /* one for each thread; grows and stays */
    void *memory;
    size_t size_bytes;
};

/* At least `size_bytes`, 64-aligned, uninitialised; valid until the thread's next call. */
void *cpu_scratch_get(struct cpu_scratch *scratch, size_t size_bytes);

struct cpu_simd; /* the loops for one instruction set: simd/simd.h */

struct cpu_kernel {
    /* how many units, when up to `threads` will work on them */
    int64_t (*units)(const struct lab_launch *launch, int threads);
    /* does units [begin, end); `units` as returned above */
    void (*run)(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                int64_t begin, int64_t end, struct cpu_scratch *scratch);
};

/* NULL where the backend lacks that op (a fused one is then lowered). */
const struct cpu_kernel *cpu_kernel_get(enum lab_op_id op, enum lab_dtype dtype);

/* The best instruction set of this CPU, or the one that GPULAB_SIMD=base|avx2|avx512 names. */
const struct cpu_simd *cpu_simd_select(void);
const char *cpu_simd_name(const struct cpu_simd *simd); /* "AVX-512" */

/* Multiply-adds from registers for about `duration_ns`: flops per second of one thread. */
double cpu_simd_peak_flops(const struct cpu_simd *simd, int64_t duration_ns);

/* --- pool: the device's threads --- */

struct cpu_pool;

/*
 * Starts threads for all CPUs but one: the stream's own thread that submits work is the last. Each is
 * bound to one CPU before it does anything else.
 */
int cpu_pool_open(const struct lab_machine *machine, const struct lab_cpus *cpus,
                  struct cpu_pool **ret_pool, struct lab_err *err);
void cpu_pool_close(struct cpu_pool *pool); /* accepts NULL */

/*
 * Runs the launch on up to `threads` threads (the caller among them) and returns when it is done.
 * Several callers may be in here at once: their work shares the threads.
 */
void cpu_pool_run(struct cpu_pool *pool, const struct cpu_kernel *kernel,
                  const struct lab_launch *launch, const struct cpu_simd *simd, int threads,
                  struct cpu_scratch *own_scratch);

#endif
