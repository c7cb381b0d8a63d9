/*
 * hopper.cuh: Hopper's own instructions (sm_90a alone), a function or macro each: barriers in
 * shared memory, the copy engine and the matrix unit of a warp group. Addresses in shared memory
 * are the 32-bit ones.
 */
#ifndef HOPPER_CUH
#define HOPPER_CUH

#include "common.cuh"

/* --- barriers --- */

__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

/* Behind the last barrier_init, for the copy engine and the other blocks of a cluster. */
__device__ __forceinline__ void barriers_show() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Until the phase of this parity is over. */
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* By one lane of each warp, when the warp no longer reads what the barrier guards. */
__device__ __forceinline__ void barrier_release(u32 barrier, int lane) {
    asm volatile("{\n.reg .pred p;\nsetp.eq.s32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(barrier),
                 "r"(lane)
                 : "memory");
}

/* Of `threads` threads, those that only arrive included. Number 0 is __syncthreads. */
__device__ __forceinline__ void named_sync(int name, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_arrive(int name, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

__device__ __forceinline__ u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* --- who works --- */

/* True in one thread of the warp, which the compiler then knows to be alone. */
__device__ __forceinline__ bool elect() {
    u32 chosen;
    asm volatile("{ .reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(chosen));
    return chosen;
}

/* Registers of each thread, by all of a warp group: those that one gives up another may take. */
template <int LEFT> __device__ __forceinline__ void registers_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(LEFT));
}

template <int WANTED> __device__ __forceinline__ void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(WANTED));
}

/* --- shared memory --- */

__device__ __forceinline__ u64 load_long(u32 address) {
    u64 x;
    asm volatile("ld.shared.b64 %0, [%1];" : "=l"(x) : "r"(address) : "memory");
    return x;
}

__device__ __forceinline__ void store_long(u32 address, u64 x) {
    asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(x) : "memory");
}

__device__ __forceinline__ void store_four(u32 address, const float *x) {
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
}

/* Four times 8 rows of 16 bytes, columns of what the matrix unit made; lane i gives the address of
 * row i. */
__device__ __forceinline__ void store_four_turned(u32 address, const u32 *r) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

/* Before a barrier: what this thread stored, for the matrix unit and the copy engine. */
__device__ __forceinline__ void writes_show() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* --- global memory --- */

__device__ __forceinline__ u32 ticket_take(u32 *counter) {
    u32 ticket;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(ticket)
                 : "l"(counter)
                 : "memory");
    return ticket;
}

/* --- the copy engine --- */

struct __align__(64) tensor_map {
    u64 opaque[16];
};

__device__ __forceinline__ void prefetch_map(const tensor_map *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* A box at x, y into the same place of all blocks of `mask` (0 = here alone), told to `barrier`. */
__device__ __forceinline__ void load_box(u32 to, const tensor_map *map, int x, int y, u32 barrier,
                                         u32 mask) {
    if (mask)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                     "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((u16)mask)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(map), "r"(x), "r"(y), "r"(barrier)
                     : "memory");
}

/* The rows of one head from a token on, of a map [w / c, tokens, c, heads, images] of rank 5. */
__device__ __forceinline__ void load_head(u32 to, const tensor_map *map, int token, int head,
                                          int image, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(0), "r"(token), "r"(head), "r"(image)
                 : "memory");
}

/* Plain memory; addresses and size are multiples of 16. */
__device__ __forceinline__ void load_bytes(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void store_box(const tensor_map *map, int x, int y, u32 from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(x), "r"(y), "r"(from)
                 : "memory");
}

/* Until at most `KEPT` of this thread's stores still read shared memory. */
template <int KEPT> __device__ __forceinline__ void store_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(KEPT) : "memory");
}

/* Shared memory into plain memory, or added to it by the L2 cache; multiples of 16. */
__device__ __forceinline__ void store_bytes(void *to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void add_bytes(float *to, u32 from, u32 bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* Until all of this thread's stores have arrived. */
__device__ __forceinline__ void store_wait_all() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* What others stored, as far as this thread knows of it, for the copy engine. */
__device__ __forceinline__ void memory_show() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

/* --- the matrix unit --- */

#define TEXT_OF(x)    #x
#define TEXT(x)       TEXT_OF(x)
#define JOIN_OF(a, b) a##b
#define JOIN(a, b)    JOIN_OF(a, b)
#define APPLY(f, ...) f(__VA_ARGS__)

/* Of n columns: the sums' names and registers, and what the operands behind them are called, the
 * first factor in shared memory or held in registers. */
#define EIGHT(d, i)                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define LIST_16      "%0, %1, %2, %3, %4, %5, %6, %7"
#define LIST_32      LIST_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define LIST_48      LIST_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define LIST_64      LIST_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST_80      LIST_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define LIST_96      LIST_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define LIST_112     LIST_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define LIST_128     LIST_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST_144     LIST_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define LIST_160     LIST_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define LIST_176     LIST_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define LIST_192     LIST_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define LIST_208     LIST_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define LIST_224     LIST_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define LIST_240     LIST_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define LIST_256     LIST_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define ITEMS_16(d)  EIGHT(d, 0)
#define ITEMS_32(d)  ITEMS_16(d), EIGHT(d, 8)
#define ITEMS_48(d)  ITEMS_32(d), EIGHT(d, 16)
#define ITEMS_64(d)  ITEMS_48(d), EIGHT(d, 24)
#define ITEMS_80(d)  ITEMS_64(d), EIGHT(d, 32)
#define ITEMS_96(d)  ITEMS_80(d), EIGHT(d, 40)
#define ITEMS_112(d) ITEMS_96(d), EIGHT(d, 48)
#define ITEMS_128(d) ITEMS_112(d), EIGHT(d, 56)
#define ITEMS_144(d) ITEMS_128(d), EIGHT(d, 64)
#define ITEMS_160(d) ITEMS_144(d), EIGHT(d, 72)
#define ITEMS_176(d) ITEMS_160(d), EIGHT(d, 80)
#define ITEMS_192(d) ITEMS_176(d), EIGHT(d, 88)
#define ITEMS_208(d) ITEMS_192(d), EIGHT(d, 96)
#define ITEMS_224(d) ITEMS_208(d), EIGHT(d, 104)
#define ITEMS_240(d) ITEMS_224(d), EIGHT(d, 112)
#define ITEMS_256(d) ITEMS_240(d), EIGHT(d, 120)
#define SHARED_64    "%32", "%33", "%34"
#define SHARED_80    "%40", "%41", "%42"
#define SHARED_96    "%48", "%49", "%50"
#define SHARED_112   "%56", "%57", "%58"
#define SHARED_128   "%64", "%65", "%66"
#define SHARED_144   "%72", "%73", "%74"
#define SHARED_160   "%80", "%81", "%82"
#define SHARED_176   "%88", "%89", "%90"
#define SHARED_192   "%96", "%97", "%98"
#define HELD_64      "%32, %33, %34, %35", "%36", "%37"
#define HELD_80      "%40, %41, %42, %43", "%44", "%45"
#define HELD_96      "%48, %49, %50, %51", "%52", "%53"
#define HELD_112     "%56, %57, %58, %59", "%60", "%61"
#define HELD_128     "%64, %65, %66, %67", "%68", "%69"
#define HELD_144     "%72, %73, %74, %75", "%76", "%77"
#define HELD_160     "%80, %81, %82, %83", "%84", "%85"
#define HELD_176     "%88, %89, %90, %91", "%92", "%93"
#define HELD_192     "%96, %97, %98, %99", "%100", "%101"
#define HELD_256     "%128, %129, %130, %131", "%132", "%133"

#if DTYPE <= 1
#define KIND "k8.f32.tf32.tf32"
#elif DTYPE == 2
#define KIND "k16.f32.bf16.bf16"
#else
#define KIND "k16.f32.f16.f16"
#endif
#define WGMMA(n) "wgmma.mma_async.sync.aligned.m64n" TEXT(n) KIND " {" JOIN(LIST_, n) "}, "

/*
 * What the matrix unit is told of a matrix, in two words. The upper one is the same for all of a
 * kernel: the swizzle and the bytes of 8 rows. The lower one has its start and, where its rows are
 * summed over, `leading` bytes from one part to the next.
 */
__device__ __forceinline__ u32 matrix_at(u32 address, u32 leading) {
    return leading / 16 << 16 | address >> 4;
}

/* d[64, n] (+)= a·bᵀ, a [64, 16] and b [n, 16] in shared memory, by the lower words; `high` is the
 * upper one of both, `add` is "0" or "1". */
#define SHARED_CODE(n, add, turn, a, b, high)                                                      \
    "{\n.reg .b64 x, y;\nmov.b64 x, {" a ", " high "};\nmov.b64 y, {" b ", " high                  \
    "};\n" WGMMA(n) "x, y, " add ", 1, 1, 0, " turn ";\n}"
#define MULTIPLY_SHARED(n, d, a, b, high, add)                                                     \
    asm volatile(APPLY(SHARED_CODE, n, add, "0", JOIN(SHARED_, n))                                 \
                 : JOIN(ITEMS_, n)(d)                                                              \
                 : "r"(a), "r"(b), "r"(high))

/* The same with b [16, n] instead of [n, 16]. */
#define MULTIPLY_SHARED_TURNED(n, d, a, b, high, add)                                              \
    asm volatile(APPLY(SHARED_CODE, n, add, "1", JOIN(SHARED_, n))                                 \
                 : JOIN(ITEMS_, n)(d)                                                              \
                 : "r"(a), "r"(b), "r"(high))

/* The same with a in registers, and b [16, n] instead of [n, 16] where `turn` is "1". */
#define HELD_CODE(n, add, turn, a, b, high)                                                        \
    "{\n.reg .b64 y;\nmov.b64 y, {" b ", " high "};\n" WGMMA(n) "{" a "}, y, " add ", 1, 1, " turn \
                                                                ";\n}"
#define MULTIPLY_HELD(n, d, a, b, high, add, turn)                                                 \
    asm volatile(APPLY(HELD_CODE, n, add, turn, JOIN(HELD_, n))                                    \
                 : JOIN(ITEMS_, n)(d)                                                              \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b), "r"(high))

/* The same with b [16, n], and as d = a·b where `add`, a number, is 0. */
#define ADD_64 "%38"
#define HELD_IF_CODE(n, a, b, high, add)                                                           \
    "{\n.reg .b64 y;\n.reg .pred p;\nsetp.ne.u32 p, " add ", 0;\nmov.b64 y, {" b ", " high         \
    "};\n" WGMMA(n) "{" a "}, y, p, 1, 1, 1;\n}"
#define MULTIPLY_HELD_IF(n, d, a, b, high, add)                                                    \
    asm volatile(APPLY(HELD_IF_CODE, n, JOIN(HELD_, n), JOIN(ADD_, n))                             \
                 : JOIN(ITEMS_, n)(d)                                                              \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b), "r"(high),          \
                   "r"(add))

__device__ __forceinline__ void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void products_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until all but the last LEFT of what was committed is done. */
template <int LEFT> __device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The same, "0" or "1" for `left`. Naming the registers keeps the compiler from using them
 * earlier. */
#define WAIT_PRODUCTS(left, n, d)                                                                  \
    asm volatile("wgmma.wait_group.sync.aligned " left ";" : JOIN(ITEMS_, n)(d)::"memory")
#define HOLD(n, d) asm volatile("" : JOIN(ITEMS_, n)(d)::"memory")

#endif
