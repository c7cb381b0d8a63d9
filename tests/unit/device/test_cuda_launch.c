/*
 * test_cuda_launch.c: launches on the way to the driver: every op's kernel is compiled, loaded and
 * enqueued, directly and into graphs; what fails on the way is named. That results are right is
 * test_ops's matter, on a real GPU. Without NVRTC it is skipped.
 */
#include "cuda_fixture.h"

#include "base/log.h"
#include "base/str.h"
#include "device/cuda/compile.h"
#include "device/kernel_cache.h"
#include "vendor/nvrtc.h"

#include <string.h>

struct bench {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer memory; /* all tensors side by side */
};

#define MEMORY_BYTES ((size_t)24 << 20)

static void bench_open(struct cuda_fixture *fixture, const char *selector, struct bench *bench) {
    *bench = (struct bench){.device = cuda_fixture_device(fixture, selector, 0)};
    ASSERT_OK(lab_stream_open(bench->device, LAB_STREAM_COMPUTE, &bench->stream, err));
    ASSERT_OK(
        lab_buffer_open(bench->device, LAB_MEMORY_DEVICE, -1, MEMORY_BYTES, &bench->memory, err));
}

static void bench_close(struct bench *bench) {
    lab_buffer_close(&bench->memory);
    lab_stream_close(bench->stream);
    lab_device_close(bench->device);
}

/* Example `index` of an op with memory for its tensors; false behind the last. */
static bool example(const struct bench *bench, enum lab_op_id id, int index, enum lab_dtype dtype,
                    struct lab_launch *ret_launch) {
    const struct lab_op *op = lab_op_get(id);
    size_t at = 0;
    if (lab_op_example(id, index, dtype, ret_launch))
        return false;
    for (int i = -1; i < op->inputs; i++) {
        struct lab_tensor *tensor = i < 0 ? &ret_launch->out : &ret_launch->in[i];
        tensor->data = (char *)bench->memory.data + at;
        at += (lab_tensor_bytes(tensor) + 255) / 256 * 256;
    }
    assert_true(at <= bench->memory.size_bytes);
    return true;
}

static bool is_missing(const struct bench *bench, enum lab_op_id id, enum lab_dtype dtype) {
    return lab_op_get(id)->optional && !bench->device->ops->supports(bench->device, id, dtype);
}

#define EXAMPLES                                                                                   \
    2 /* of an op: each takes a kernel that has to be compiled, and test_ops has them all */

static void launch_all(const struct bench *bench, enum lab_dtype dtype) {
    struct lab_launch launch;
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int i = 0; i < EXAMPLES && !is_missing(bench, (enum lab_op_id)id, dtype) &&
                        example(bench, (enum lab_op_id)id, i, dtype, &launch);
             i++)
            ASSERT_OK(lab_launch(bench->stream, &launch, err));
}

LAB_TEST(every_op_can_be_launched_directly_and_in_graphs) {
    struct bench bench;
    bench_open(*state, "cuda:0", &bench);
    for (int dtype = 0; dtype < 4; dtype++) {
        struct lab_graph *graph;
        launch_all(&bench, (enum lab_dtype)dtype);
        ASSERT_OK(lab_stream_sync(bench.stream, err));
        ASSERT_OK(lab_graph_begin(bench.stream, err));
        launch_all(&bench, (enum lab_dtype)dtype);
        ASSERT_OK(lab_graph_end(bench.stream, &graph, err));
        ASSERT_OK(lab_graph_launch(graph, bench.stream, err));
        ASSERT_OK(lab_stream_sync(bench.stream, err));
        lab_graph_close(graph);
    }
    bench_close(&bench);
}

/* A product is tuned at its first launch, which may well be inside a capture. */
LAB_TEST(the_first_launch_may_be_inside_a_graph) {
    struct bench bench;
    struct lab_graph *graph;
    bench_open(*state, "cuda:0/2", &bench);
    ASSERT_OK(lab_graph_begin(bench.stream, err));
    launch_all(&bench, LAB_BF16);
    ASSERT_OK(lab_graph_end(bench.stream, &graph, err));
    ASSERT_OK(lab_graph_launch(graph, bench.stream, err));
    ASSERT_OK(lab_stream_sync(bench.stream, err));
    lab_graph_close(graph);
    bench_close(&bench);
}

LAB_TEST(kernels_can_be_asked_for_ahead) {
    struct bench bench;
    struct lab_launch launch;
    bench_open(*state, "cuda:0", &bench);
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int i = 0;
             i < EXAMPLES && lab_op_example((enum lab_op_id)id, i, LAB_FP32, &launch) == 0; i++)
            lab_prepare(bench.device, &launch, 1); /* without data */
    launch_all(&bench, LAB_FP32);
    bench_close(&bench);
}

static int go(struct cuda_fixture *fixture, enum lab_op_id op, struct lab_err *err) {
    struct bench bench;
    struct lab_launch launch;
    bench_open(fixture, "cuda:0", &bench);
    example(&bench, op, 0, LAB_FP32, &launch);
    int status = lab_launch(bench.stream, &launch, err);
    unsetenv("FAKE_CUDA_FAIL");
    bench_close(&bench);
    return status;
}

LAB_TEST(what_fails_is_named) {
    static const struct {
        enum lab_op_id op;
        enum lab_err_code code;
        const char *injected, *expected;
    } cases[] = {
        {LAB_OP_FILL, LAB_ERR_SYSTEM, "cuLibraryLoadData:200",
         "fill: kernel 'fill fp32': cuLibraryLoadData"},
        {LAB_OP_FILL, LAB_ERR_SYSTEM, "cuLibraryGetKernel:500",
         "fill: kernel 'fill fp32': cuLibraryGetKernel"},
        {LAB_OP_FILL, LAB_ERR_SYSTEM, "cuKernelGetFunction:500", "cuKernelGetFunction"},
        {LAB_OP_ATTENTION, LAB_ERR_SYSTEM, "cuKernelSetAttribute:1", "cuKernelSetAttribute"},
        {LAB_OP_FILL, LAB_ERR_SYSTEM, "cuLaunchKernelEx:1", "fill: cuLaunchKernelEx"},
        {LAB_OP_GEMM, LAB_ERR_SYSTEM, "cublasLtCreate:1", "gemm: cublasLtCreate"},
        {LAB_OP_GEMM, LAB_ERR_SYSTEM, "cublasLtMatmulDescCreate:7", "gemm: planning"},
        {LAB_OP_GEMM, LAB_ERR_SYSTEM, "cublasLtMatrixLayoutCreate:7", "gemm: planning"},
        {LAB_OP_GEMM, LAB_ERR_SYSTEM, "cublasLtMatmulAlgoGetHeuristic:14", "gemm: planning"},
        {LAB_OP_GEMM, LAB_ERR_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic:15",
         "cuBLASLt has no algorithm for 1 x 1 x 1 in fp32"},
        {LAB_OP_GEMM_BIAS, LAB_ERR_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic:15",
         "gemm_bias: gemm: cuBLASLt has no algorithm"}, /* its parts were tried */
        {LAB_OP_GEMM, LAB_ERR_SYSTEM, "cublasLtMatmul:13", "gemm: cublasLtMatmul"},
        {LAB_OP_GEMM, LAB_ERR_MEMORY, "cuMemAlloc:2", ""},
    };
    if (cuda_is_real())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench bench; /* the memory first: it isn't what shall fail */
        struct lab_launch launch;
        bench_open(*state, "cuda:0", &bench);
        example(&bench, cases[i].op, 0, LAB_FP32, &launch);
        setenv("FAKE_CUDA_FAIL", cases[i].injected, 1);
        ASSERT_FAILS(lab_launch(bench.stream, &launch, err), cases[i].code, cases[i].expected);
        unsetenv("FAKE_CUDA_FAIL");
        /* and the device goes on: what failed to load is tried again */
        if (cases[i].code != LAB_ERR_UNSUPPORTED)
            ASSERT_OK(lab_launch(bench.stream, &launch, err));
        bench_close(&bench);
    }
}

/* A variant that doesn't compile is that variant's failure: others of the kernel go on. */
LAB_TEST(a_variant_that_does_not_compile_leaves_the_device_working) {
    struct bench bench;
    struct lab_launch good, bad;
    bench_open(*state, "cuda:0", &bench);
    example(&bench, LAB_OP_FILL, 0, LAB_FP32, &good);
    ASSERT_OK(lab_launch_complete(&good, err));
    example(&bench, LAB_OP_SOFTMAX, 0, LAB_FP32, &bad);
    ASSERT_OK(lab_launch_complete(&bad, err));
    /* past lab_launch, which checks configurations: the compiler has the last word */
    bad.tuning = (struct lab_tuning){.count = 6, .values = {8, 1, 0, 0, 0, 2}};
    lab_prepare(bench.device, &bad, 1);
    ASSERT_FAILS(bench.device->ops->launch(bench.stream, &bad, err), LAB_ERR_SYSTEM, "NVRTC");
    ASSERT_OK(lab_launch(bench.stream, &good, err));
    bad.tuning = (struct lab_tuning){0};
    ASSERT_OK(lab_launch(bench.stream, &bad, err));
    ASSERT_OK(lab_stream_sync(bench.stream, err));
    bench_close(&bench);
}

#define KERNELS LAB_TEST_SOURCE_DIR "/build/kernel-cache"
#define CHOICES LAB_TEST_BINARY_DIR "/choices-" /* of products' algorithms: empty at first */

static void use_cache(const char *folder) {
    int count;
    int64_t bytes;
    LAB_AUTO(arena, arena);
    setenv("XDG_CACHE_HOME", folder, 1);
    if (lab_str_starts(folder, CHOICES))
        ASSERT_OK(lab_kernel_cache_clear(lab_kernel_cache_folder(&arena), &count, &bytes, err));
}

/* Timing needs memory and graphs of its own; without them the library's first proposal is taken. */
LAB_TEST(products_work_where_they_cannot_be_timed) {
    static const char *const failures[] = {"cuStreamBeginCapture:800",
                                           "cuGraphInstantiateWithFlags:801", "cuEventCreate:2",
                                           "cuEventElapsedTime:1"};
    if (cuda_is_real())
        skip();
    use_cache(CHOICES "none-yet");
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct bench bench;
        struct lab_launch launch;
        bench_open(*state, "cuda:0", &bench);
        example(&bench, LAB_OP_GEMM_BIAS_ADD, 0, LAB_BF16, &launch);
        setenv("FAKE_CUDA_FAIL", failures[i], 1);
        ASSERT_OK(lab_launch(bench.stream, &launch, err));
        unsetenv("FAKE_CUDA_FAIL");
        bench_close(&bench);
    }
    setenv("FAKE_CUDA_MEMORY_MIB", "60", 1); /* the workspace, and no second one */
    ASSERT_OK(go(*state, LAB_OP_GEMM, err));
    use_cache(KERNELS);
}

static void count_timings(enum lab_log_level level, const char *text, void *state) {
    (void)level;
    *(int *)state += strstr(text, "the library's first") != NULL;
}

LAB_TEST(a_product_is_timed_once_for_all_processes) {
    int timings = 0;
    if (cuda_is_real())
        skip();
    use_cache(CHOICES "kept");
    lab_log_set_sink(count_timings, &timings, LAB_LOG_DEBUG);
    ASSERT_OK(go(*state, LAB_OP_GEMM, err));
    assert_int_equal(timings, 1);
    ASSERT_OK(go(*state, LAB_OP_GEMM, err)); /* on the device opened anew */
    assert_int_equal(timings, 1);
    setenv("FAKE_CUBLASLT_FIRST", "9", 1); /* as another library would: what is known is no help */
    ASSERT_OK(go(*state, LAB_OP_GEMM, err));
    assert_int_equal(timings, 2);
    unsetenv("FAKE_CUBLASLT_FIRST");
    lab_log_set_sink(NULL, NULL, LAB_LOG_ERROR);
    use_cache(KERNELS);
}

static int begin(int argc, char **argv) {
    (void)argc;
    cuda_use_fake(argv);
    /* one for all builds of the tree: a compiler takes seconds, and isn't what is tested */
    use_cache(KERNELS);
    if (cuda_is_absent())
        return LAB_TEST_SKIPPED;
    if (!lab_nvrtc_ready()) {
        print_message("skipped: NVRTC isn't here, so no kernel can be compiled\n");
        return LAB_TEST_SKIPPED;
    }
    return LAB_TEST_GO;
}

static int end(int failed) {
    cuda_code_forget();
    return failed;
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = begin, .end = end};
