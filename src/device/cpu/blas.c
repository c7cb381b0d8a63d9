/*
 * blas.c: the serial OpenBLAS made safe for threads.
 *
 * gemm packs its operands into a buffer from blas_memory_alloc. In a serial build without
 * USE_LOCKING, as Debian ships it, two threads that ask at the same moment can get the same buffer,
 * and their products are silently wrong. So these two functions are replaced: the shared library
 * calls them through the dynamic linker, where the program's own come first; the portable build
 * redirects them while linking (--wrap). Each thread then has a buffer of its own, without any
 * lock.
 *
 * Should a library not take the replacement, the first gemm notices and all calls go one by one.
 */
#include "device/cpu/blas.h"

#include "base/log.h"
#include "base/mem.h"

#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The shared OpenBLAS finds ours by its own names for them. Its archive has strong functions of
 * these names, which win over weak ones; --wrap leads its calls here. */
void *memory_alloc(int where) __asm__("__wrap_blas_memory_alloc");
void memory_free(void *memory) __asm__("__wrap_blas_memory_free");
void *blas_memory_alloc(int where) __attribute__((weak, alias("__wrap_blas_memory_alloc")));
void blas_memory_free(void *memory) __attribute__((weak, alias("__wrap_blas_memory_free")));

/*
 * OpenBLAS never says how much it will use; its own buffers are 32 to 128 MiB, depending on version
 * and CPU. Only what is touched becomes memory.
 */
#define BUFFER_BYTES ((size_t)256 << 20)

struct buffer {
    struct buffer *next;
    void *memory;
    bool used;
};

static pthread_key_t buffers_key; /* each thread's list; a thread's end gives it back */
static pthread_once_t buffers_once = PTHREAD_ONCE_INIT;
static atomic_long buffers_handed_out;

static void buffers_release(void *list) {
    struct buffer *buffer = list;
    while (buffer) {
        struct buffer *next = buffer->next;
        munmap(buffer->memory, BUFFER_BYTES);
        lab_mem_free(buffer);
        buffer = next;
    }
}

static void buffers_init(void) {
    if (pthread_key_create(&buffers_key, buffers_release) != 0)
        abort(); /* only when a process has used up its thousand keys */
}

void *memory_alloc(int where) {
    (void)where;
    pthread_once(&buffers_once, buffers_init);
    atomic_fetch_add_explicit(&buffers_handed_out, 1, memory_order_relaxed);
    struct buffer *first = pthread_getspecific(buffers_key);
    for (struct buffer *buffer = first; buffer; buffer = buffer->next)
        if (!buffer->used) {
            buffer->used = true;
            return buffer->memory;
        }
    struct buffer *fresh = lab_mem_alloc(1, sizeof *fresh);
    fresh->memory = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh->memory == MAP_FAILED)
        lab_mem_exhausted(1, BUFFER_BYTES);
    fresh->used = true;
    fresh->next = first;
    pthread_setspecific(buffers_key, fresh);
    return fresh->memory;
}

void memory_free(void *memory) {
    struct buffer *buffer = pthread_getspecific(buffers_key);
    while (buffer && buffer->memory != memory)
        buffer = buffer->next;
    if (buffer)
        buffer->used = false;
}

/*
 * LD_LIBRARY_PATH can bring a threaded build. Its threads start before main, outside the device's
 * cores, and its buffers wander between threads, which those above must not.
 */
int cpu_blas_check(struct lab_err *err) {
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL)
        return 0;
    return lab_err_set(
        err, LAB_ERR_UNSUPPORTED,
        "this OpenBLAS is a threaded build, whose threads can't be bound to the device's cores; "
        "remove its folder from LD_LIBRARY_PATH to use the serial one");
}

static pthread_once_t probe_once = PTHREAD_ONCE_INIT;
static bool concurrent;
static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;

/* Large enough to be packed: small products are done in place on some CPUs. */
#define PROBE_SIZE 128

static void probe(void) {
    cpu_blas_core();
    LAB_AUTO_FREE float *a = lab_mem_alloc((size_t)2 * PROBE_SIZE * PROBE_SIZE, sizeof *a);
    long before = atomic_load(&buffers_handed_out);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, PROBE_SIZE, PROBE_SIZE, PROBE_SIZE, 1, a,
                PROBE_SIZE, a, PROBE_SIZE, 0, a + (size_t)PROBE_SIZE * PROBE_SIZE, PROBE_SIZE);
    concurrent = atomic_load(&buffers_handed_out) != before;
    if (!concurrent)
        lab_log(LAB_LOG_WARNING,
                "this OpenBLAS keeps its own buffers, so matrix products run one at a time");
}

bool cpu_blas_is_concurrent(void) {
    pthread_once(&probe_once, probe);
    return concurrent;
}

/* As a matrix times a vector: gemm would pack all of b to use it once, at a tenth of the speed. */
static void multiply_row(int64_t n, int64_t k, float alpha, struct cpu_matrix a,
                         struct cpu_matrix b, float beta, float *c) {
    if (beta == 0) { /* some versions scale what is there, and 0·NaN is NaN */
        memset(c, 0, (size_t)n * sizeof *c);
        beta = 1;
    }
    cblas_sgemv(CblasRowMajor, b.transposed ? CblasNoTrans : CblasTrans,
                (blasint)(b.transposed ? n : k), (blasint)(b.transposed ? k : n), alpha, b.data,
                (blasint)b.stride, a.data, a.transposed ? (blasint)a.stride : 1, beta, c, 1);
}

void cpu_blas_gemm(int64_t m, int64_t n, int64_t k, float alpha, struct cpu_matrix a,
                   struct cpu_matrix b, float beta, float *c, int64_t c_stride) {
    bool alone = !cpu_blas_is_concurrent();
    if (alone)
        pthread_mutex_lock(&one_by_one);
    if (m == 1)
        multiply_row(n, k, alpha, a, b, beta, c);
    else
        cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                    b.transposed ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k,
                    alpha, a.data, (blasint)a.stride, b.data, (blasint)b.stride, beta, c,
                    (blasint)c_stride);
    if (alone)
        pthread_mutex_unlock(&one_by_one);
}
