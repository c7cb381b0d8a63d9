/*
 * test_kernel_compile.c: kernels through NVRTC, which needs no GPU: every kernel in its dtypes for
 * every architecture, variants that shapes at random ask for, and the cache that keeps them.
 * Without NVRTC it is skipped.
 *
 * Code is kept in the build's own folder, so that only what has changed is compiled again.
 */
#include "base/file/file.h"
#include "base/random.h"
#include "base/str.h"
#include "device/cuda/compile.h"
#include "device/cuda/cuda.h"
#include "device/kernel_cache.h"
#include "device/tunable.h"
#include "vendor/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static const int architectures[] = CUDA_ARCHITECTURES;
#define ARCHITECTURES ((int)(sizeof architectures / sizeof architectures[0]))

/* A typical shape of each kernel, by the order of plan.h's macros. */
static struct cuda_variant usual(enum cuda_kernel_id kernel, int dtype) {
    struct cuda_variant variant = {.kernel = (int16_t)kernel, .dtype = (int16_t)dtype};
    static const int32_t macros[CUDA_KERNEL_COUNT][CUDA_MACROS] = {
        [CUDA_KERNEL_layer_norm] = {512, 32, 1},
        [CUDA_KERNEL_patchify_layer_norm] = {768, 64, 0, 3, 16},
        [CUDA_KERNEL_layer_norm_embed] = {768, 32, 1},
        [CUDA_KERNEL_residual_layer_norm] = {768, 32, 1},
        [CUDA_KERNEL_layer_norm_backward] = {768, 32, 1, 12, 1},
        [CUDA_KERNEL_cross_entropy] = {512, 13},
        [CUDA_KERNEL_embed_tokens_backward] = {768, 16, 1},
        [CUDA_KERNEL_softmax] = {32, 4, 2, 1, 0, 0},
        [CUDA_KERNEL_softmax_wide] = {512, 4, 1, 1, 0, 0, 4},
        [CUDA_KERNEL_attention] = {2},
        [CUDA_KERNEL_flash_attention_mma] = {64, 1, 1, 64, 32, 4, 1, 1},
        [CUDA_KERNEL_flash_attention_backward_start] = {64, 1},
        [CUDA_KERNEL_flash_attention_backward_any] = {64, 1},
        [CUDA_KERNEL_flash_attention_backward_mma] = {64, 1, 1, 64, 2},
        [CUDA_KERNEL_gemm_mma] = {2, 3, 1, 64, 64, 32, 3, 2, 2},
        [CUDA_KERNEL_gemm_hopper] = {128, 256, 4, 0, 2, 1, 2, 3},
        [CUDA_KERNEL_flash_attention_hopper] = {64, 1, 128, 128, 3, 2, 1, 1},
        [CUDA_KERNEL_flash_attention_backward_hopper] = {1},
        [CUDA_KERNEL_mlp] = {7},
        [CUDA_KERNEL_mlp_rows] = {7, 5, 32, 16, 3},
        [CUDA_KERNEL_mlp_wide] = {7, 5, 64, 32, 3},
        [CUDA_KERNEL_mlp_take] = {5, 64, 32, 3},
        [CUDA_KERNEL_mlp_head] = {5, 64, 32, 3},
        [CUDA_KERNEL_mlp_finish] = {7, 5, 64, 32, 3},
        [CUDA_KERNEL_sum] = {4, 512, 2},
    };
    memcpy(variant.macros, macros[kernel], sizeof variant.macros);
    return variant;
}

static bool is_made(int kernel, int dtype, int capability) {
    return cuda_kernel_runs_on((enum cuda_kernel_id)kernel, capability) &&
           cuda_kernel_rows[kernel].dtypes >> dtype & 1;
}

/* Sources know 8.0 and 9.0 alone: for what lies between, one dtype shows that the assembler takes
 * it, another one from kernel to kernel. */
static bool is_tried(int kernel, int dtype, int capability) {
    int first = kernel % 4;
    while (!(cuda_kernel_rows[kernel].dtypes >> first & 1))
        first = (first + 1) % 4;
    return is_made(kernel, dtype, capability) &&
           (capability == 80 || capability == 90 || dtype == first);
}

static void require(int status, const struct lab_err *err) {
    if (status)
        fail_msg("%s", err->text);
}

static bool is_cubin(struct cuda_code code) {
    return code.length > 64 && memcmp(code.bytes, "\177ELF", 4) == 0;
}

LAB_TEST(every_kernel_compiles_for_each_of_its_architectures) {
    struct lab_err err = LAB_ERR_INIT;
    for (int pass = 0; pass < 2; pass++) /* asked for, then taken */
        for (int kernel = 0; kernel < CUDA_KERNEL_COUNT; kernel++)
            for (int dtype = 0; dtype < 4; dtype++)
                for (int i = 0; i < ARCHITECTURES; i++) {
                    struct cuda_variant variant = usual((enum cuda_kernel_id)kernel, dtype);
                    struct cuda_code code;
                    if (!is_tried(kernel, dtype, architectures[i]))
                        continue;
                    if (pass == 0) {
                        cuda_code_request(&variant, architectures[i]);
                        continue;
                    }
                    require(cuda_code_get(&variant, architectures[i], &code, &err), &err);
                    assert_true(is_cubin(code));
                }
}

#define AT_RANDOM 40

/* An op of random shape; those of ViTs, and odd ones. */
static struct lab_launch random_launch(uint64_t number, enum lab_dtype dtype) {
#define DRAW(which, bound) ((int64_t)lab_random_below(number, which, bound))
    int64_t columns = DRAW(0, 2) ? 1 + DRAW(1, 16384) : 64 * (1 + DRAW(1, 64));
    int64_t rows = 1 + DRAW(2, 5000), patch = 1 + DRAW(3, 32), channels = 1 + DRAW(4, 4);
    struct lab_tensor matrix = lab_tensor_matrix(NULL, dtype, rows, columns);
    struct lab_tensor vector = lab_tensor_vector(NULL, dtype, columns);
    int64_t inner = patch * patch * channels;
    switch (DRAW(5, 4)) {
    case 0:
        return (struct lab_launch){.op = LAB_OP_LAYER_NORM,
                                   .in = {matrix, vector, vector},
                                   .out = matrix,
                                   .epsilon = 1e-5f};
    case 1:
        return (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {matrix}, .out = matrix};
    case 2:
        return (struct lab_launch){
            .op = LAB_OP_LAYER_NORM_EMBED,
            .in = {matrix, vector, vector, vector,
                   lab_tensor_matrix(NULL, dtype, rows + 1, columns)},
            .out = lab_tensor_matrix(NULL, dtype, rows + 1, columns),
            .epsilon = 1e-5f,
        };
    default:
        return (struct lab_launch){
            .op = LAB_OP_PATCHIFY_LAYER_NORM,
            .in = {lab_tensor(NULL, dtype, 4, (int64_t[]){2, channels, 3 * patch, 2 * patch}),
                   lab_tensor_vector(NULL, dtype, inner), lab_tensor_vector(NULL, dtype, inner)},
            .out = lab_tensor_matrix(NULL, dtype, 12, inner),
            .patch = patch,
            .epsilon = 1e-5f,
        };
    }
#undef DRAW
}

/* A legal configuration at random, where the op has any. */
static void configure_at_random(uint64_t number, struct lab_launch *launch) {
    const struct lab_device_ref ref = {.compute_units = 132, .capability = 90};
    const struct lab_tunable_place place = {.ref = &ref};
    const struct lab_tunable *tunable = cuda_tunable(&place, launch);
    for (uint64_t i = 0; tunable && i < 1000; i++) {
        uint64_t size = (uint64_t)lab_tunable_size(tunable);
        struct lab_tuning tuning =
            lab_tunable_at(tunable, (int64_t)lab_random_below(number, 100 + i, size));
        if (lab_tuning_check(tunable, &place, launch, &tuning, NULL) == 0) {
            launch->tuning = tuning;
            return;
        }
    }
}

LAB_TEST(shapes_and_configurations_at_random_compile) {
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_variant variants[AT_RANDOM];
    for (uint64_t i = 0; i < AT_RANDOM; i++) {
        struct lab_launch launch = random_launch(i, (enum lab_dtype)(i % 4));
        struct cuda_call call;
        enum cuda_way way;
        require(lab_launch_complete(&launch, &err), &err);
        configure_at_random(i, &launch);
        require(cuda_plan(&launch, (struct cuda_capacity){132, 227 << 10, 90}, &way, &call, &err),
                &err);
        assert_int_equal(way, CUDA_WAY_KERNEL);
        variants[i] = call.variant;
        cuda_code_request(&variants[i], 90);
    }
    for (int i = 0; i < AT_RANDOM; i++) {
        struct cuda_code code;
        require(cuda_code_get(&variants[i], 90, &code, &err), &err);
        assert_true(is_cubin(code));
    }
}

#define TILES_AT_RANDOM 8

/* A legal configuration of an op's example, drawn by the number. */
static void draw_tiles(uint64_t number, const struct lab_tunable_place *place,
                       struct lab_launch *ret_launch) {
    enum lab_op_id id = number % 2 ? LAB_OP_FLASH_ATTENTION : LAB_OP_GEMM_BIAS;
    enum lab_dtype dtype = (enum lab_dtype)(number / 2 % 4);
    struct lab_err err = LAB_ERR_INIT;
    require(lab_op_example(id, (int)lab_random_below(number, 0, 10), dtype, ret_launch), &err);
    const struct lab_tunable *tunable = lab_tunable_find(place, ret_launch);
    uint64_t count = (uint64_t)lab_tunable_size(tunable), draw = 1;
    do
        ret_launch->tuning =
            lab_tunable_at(tunable, (int64_t)lab_random_below(number, draw++, count));
    while (lab_tuning_check(tunable, place, ret_launch, &ret_launch->tuning, NULL));
}

LAB_TEST(tiles_at_random_compile) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_device_ref rtx4090 = {
        .backend = "cuda", .compute_units = 128, .capability = 89};
    const struct lab_tunable_place place = {NULL, &rtx4090};
    struct cuda_variant variants[TILES_AT_RANDOM];
    for (int i = 0; i < TILES_AT_RANDOM; i++) {
        struct lab_launch launch;
        struct cuda_call call;
        enum cuda_way way;
        draw_tiles((uint64_t)i, &place, &launch);
        require(lab_launch_complete(&launch, &err), &err);
        require(cuda_plan(&launch, (struct cuda_capacity){128, 99 << 10, 89}, &way, &call, &err),
                &err);
        assert_int_equal(way, CUDA_WAY_KERNEL);
        variants[i] = call.variant;
        cuda_code_request(&variants[i], 89);
    }
    for (int i = 0; i < TILES_AT_RANDOM; i++) {
        struct cuda_code code;
        require(cuda_code_get(&variants[i], 89, &code, &err), &err);
        assert_true(is_cubin(code));
    }
}

#define HOPPER_TILES_AT_RANDOM 4

/* Its registers and shared memory are counted by the kernel itself: what is legal must be so
 * there. */
LAB_TEST(tiles_for_hopper_at_random_compile) {
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_variant variants[HOPPER_TILES_AT_RANDOM];
    for (int i = 0; i < HOPPER_TILES_AT_RANDOM; i++) {
        static const enum lab_dtype dtypes[] = {LAB_BF16, LAB_FP16, LAB_TF32};
        struct lab_launch launch;
        struct cuda_call call;
        enum cuda_way way = CUDA_WAY_GEMM;
        /* rows of 768 and 256 bytes */
        require(lab_op_example(LAB_OP_GEMM_BIAS_ADD, 7, dtypes[i % 3], &launch), &err);
        require(lab_launch_complete(&launch, &err), &err);
        for (uint64_t draw = 0; way == CUDA_WAY_GEMM; draw++) {
            configure_at_random((uint64_t)i * 100 + draw, &launch);
            require(
                cuda_plan(&launch, (struct cuda_capacity){132, 227 << 10, 90}, &way, &call, &err),
                &err);
        }
        assert_int_equal(call.variant.kernel, CUDA_KERNEL_gemm_hopper);
        variants[i] = call.variant;
        cuda_code_request(&variants[i], 90);
    }
    for (int i = 0; i < HOPPER_TILES_AT_RANDOM; i++) {
        struct cuda_code code;
        require(cuda_code_get(&variants[i], 90, &code, &err), &err);
        assert_true(is_cubin(code));
    }
}

/* The types that PTX gives a kernel's parameters, as letters of plan.h's table. */
static void parameters_of(const char *ptx, const char *name, struct lab_str *out) {
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *at = strstr(ptx, entry);
    assert_non_null(at);
    const char *end = strchr(at, ')');
    while ((at = strstr(at, ".param .")) && at < end) {
        at += strlen(".param .");
        lab_str_add(out, strncmp(at, "align", 5) == 0    ? "m" /* bytes: .align 64 .b8 x[128] */
                         : strncmp(at, "f32", 3) == 0    ? "f"
                         : strncmp(at + 1, "32", 2) == 0 ? "i"
                                                         : "8");
    }
}

LAB_TEST(the_table_knows_every_kernels_parameters) {
    struct lab_err err = LAB_ERR_INIT;
    for (int kernel = 0; kernel < CUDA_KERNEL_COUNT; kernel++) {
        struct cuda_variant variant = usual((enum cuda_kernel_id)kernel, LAB_BF16);
        char *ptx;
        size_t length;
        bool alone = cuda_kernel_rows[kernel].architectures == CUDA_ONLY_90;
        const char *architecture = alone ? "compute_90a" : "compute_90";
        require(cuda_compile(&variant, architecture, &ptx, &length, &err), &err);
        LAB_AUTO(str, found);
        LAB_AUTO(str, expected);
        parameters_of(ptx, cuda_kernel_rows[kernel].name, &found);
        for (const char *a = cuda_kernel_rows[kernel].arguments; *a; a++)
            lab_str_add_bytes(&expected, *a == 'p' || *a == 'l' ? "8" : a, 1);
        assert_string_equal(found.text, expected.text);
        lab_mem_free(ptx);
    }
}

LAB_TEST(what_does_not_compile_is_named_with_the_reason) {
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_code code;
    struct cuda_variant variant = usual(CUDA_KERNEL_layer_norm, LAB_BF16);
    variant.macros[1] = 0; /* no threads: a division by zero and an array of nothing */
    cuda_code_request(&variant, 90);
    assert_int_equal(cuda_code_get(&variant, 90, &code, &err), -1);
    assert_int_equal(err.code, LAB_ERR_SYSTEM);
    assert_contains(err.text, "layer_norm bf16 COLUMNS=512 THREADS=0 VECTOR=1");
    assert_contains(err.text, "rows.cuh(");
    assert_null(strchr(err.text, '\n'));
}

LAB_TEST(a_kernel_is_not_compiled_for_a_gpu_that_cannot_run_it) {
    struct cuda_code code;
    struct cuda_variant variant = usual(CUDA_KERNEL_fill, LAB_FP32);
    ASSERT_FAILS(cuda_code_get(&variant, 75, &code, err), LAB_ERR_UNSUPPORTED,
                 "'fill' isn't for GPUs of compute capability 7.5");
}

static void add_text_of(const char *name, struct lab_str *out) {
    for (int i = 0; lab_kernel_files[i].name; i++)
        if (lab_str_equal(lab_kernel_files[i].name, name))
            lab_str_add_bytes(out, lab_kernel_files[i].text, lab_kernel_files[i].length);
}

LAB_TEST(a_source_is_known_by_its_text_and_that_of_its_headers) {
    LAB_AUTO(str, text);
    add_text_of("gemm_mma.cu", &text);
    add_text_of("mma.cuh", &text);
    add_text_of("common.cuh", &text); /* which mma.cuh includes */
    assert_true(cuda_source_hash("gemm_mma.cu") == lab_kernel_cache_hash(text.text, text.length));
    assert_true(cuda_source_hash("softmax.cu") != cuda_source_hash("attention.cu"));
}

LAB_TEST(an_unknown_gpu_gets_code_of_the_newest_before_it) {
    static const int known[] = {75, 80, 90, 100};
    char name[16];
    cuda_architecture(90, known, 4, name);
    assert_string_equal(name, "sm_90");
    cuda_architecture(120, known, 4, name);
    assert_string_equal(name, "compute_100");
    cuda_architecture(89, known, 4, name);
    assert_string_equal(name, "compute_80");
    cuda_architecture(89, NULL, 0, name); /* a compiler that doesn't say */
    assert_string_equal(name, "sm_89");
}

/* --- the cache, with a real kernel --- */

struct place { /* a cache of a test's own */
    char root[64];
    char *before;
    struct lab_arena arena;
    const char *folder;
};

static void place_open(struct place *place) {
    *place = (struct place){.root = "/tmp/gpulab-test-XXXXXX"};
    assert_non_null(mkdtemp(place->root));
    place->before = lab_mem_strdup(getenv("XDG_CACHE_HOME"));
    setenv("XDG_CACHE_HOME", place->root, 1);
    lab_arena_init(&place->arena);
    place->folder = lab_kernel_cache_folder(&place->arena);
    cuda_code_forget();
}

static void place_close(struct place *place) {
    struct lab_err err = LAB_ERR_INIT;
    int count;
    int64_t bytes;
    cuda_code_forget();
    setenv("XDG_CACHE_HOME", place->before, 1);
    lab_mem_free(place->before);
    require(lab_kernel_cache_clear(place->folder, &count, &bytes, &err), &err);
    rmdir(place->folder);
    rmdir(lab_arena_printf(&place->arena, "%s/gpulab", place->root));
    assert_int_equal(rmdir(place->root), 0); /* so nothing else was left there */
    lab_arena_release(&place->arena);
}

static struct lab_kernel_cache_entry *entries_of(struct place *place, int expected) {
    struct lab_kernel_cache_entry *entries;
    struct lab_err err = LAB_ERR_INIT;
    int count;
    require(lab_kernel_cache_list(place->folder, &place->arena, &entries, &count, &err), &err);
    assert_int_equal(count, expected);
    return entries;
}

LAB_TEST(code_comes_from_the_cache_the_second_time) {
    struct place place;
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_variant variant = usual(CUDA_KERNEL_fill, LAB_BF16);
    struct cuda_code code;
    place_open(&place);
    /* given a kernel that was compiled once */
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    struct lab_kernel_cache_entry *entry = entries_of(&place, 1);
    assert_string_equal(entry->title, "fill bf16, sm_90");
    assert_false(entry->damaged);
    /* when what is kept is exchanged for something else that is whole */
    char path[256], *text, *cut;
    size_t length;
    snprintf(path, sizeof path, "%s/%s", place.folder, entry->file);
    require(lab_file_read(path, 1 << 20, &place.arena, &text, &length, &err), &err);
    cut = text;
    for (int line = 0; line < 3; line++)
        cut = strchr(cut, '\n') + 1;
    LAB_AUTO(str, other);
    lab_str_add_bytes(&other, text, (size_t)(cut - text));
    lab_str_printf(&other, "6 %016llx\nhello\n",
                   (unsigned long long)lab_kernel_cache_hash("hello\n", 6));
    require(lab_file_write_atomic(path, other.text, other.length, &err), &err);
    /* then that is what the next process gets */
    cuda_code_forget();
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    assert_int_equal(code.length, 6);
    place_close(&place);
}

LAB_TEST(damaged_files_are_compiled_again) {
    struct place place;
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_variant variant = usual(CUDA_KERNEL_fill, LAB_FP32);
    struct cuda_code code;
    place_open(&place);
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    size_t whole = code.length;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", place.folder, entries_of(&place, 1)->file);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    const off_t lengths[] = {0, 10, info.st_size / 2, info.st_size - 1};
    for (int i = 0; i < 4; i++) {
        /* when the file is cut short */
        assert_int_equal(truncate(path, lengths[i]), 0);
        assert_true(entries_of(&place, 1)->damaged);
        /* then the code is right all the same, and so is the file again */
        cuda_code_forget();
        require(cuda_code_get(&variant, 90, &code, &err), &err);
        assert_int_equal(code.length, whole);
        assert_true(is_cubin(code));
        assert_false(entries_of(&place, 1)->damaged);
    }
    /* and when one byte is another */
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, -100, SEEK_END);
    int byte = fgetc(file);
    fseek(file, -100, SEEK_END);
    fputc(byte ^ 1, file);
    fclose(file);
    assert_true(entries_of(&place, 1)->damaged);
    cuda_code_forget();
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    assert_false(entries_of(&place, 1)->damaged);
    place_close(&place);
}

LAB_TEST(two_processes_may_fill_it_at_once) {
    struct place place;
    struct lab_err err = LAB_ERR_INIT;
    pid_t children[2];
    place_open(&place);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            int failed = 0;
            for (int kernel = 0; kernel < 3; kernel++) {
                struct cuda_variant variant = usual((enum cuda_kernel_id)kernel, LAB_FP16);
                struct cuda_code code;
                failed |= cuda_code_get(&variant, 90, &code, &err) || !is_cubin(code);
            }
            _exit(failed ? 1 : 0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    struct lab_kernel_cache_entry *entries = entries_of(&place, 3);
    for (int i = 0; i < 3; i++)
        assert_false(entries[i].damaged);
    place_close(&place);
}

LAB_TEST(without_a_place_to_keep_it_code_is_made_all_the_same) {
    struct place place;
    struct lab_err err = LAB_ERR_INIT;
    struct cuda_variant variant = usual(CUDA_KERNEL_fill, LAB_TF32);
    struct cuda_code code;
    place_open(&place);
    /* a file stands where the folder should be: nobody can write there, root neither */
    char path[128];
    snprintf(path, sizeof path, "%s/gpulab", place.root);
    require(lab_file_write_atomic(path, "x", 1, &err), &err);
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    assert_true(is_cubin(code));
    /* a folder that can't be written */
    cuda_code_forget();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(place.root, 0500), 0);
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    assert_true(is_cubin(code));
    assert_int_equal(chmod(place.root, 0700), 0);
    /* no home at all */
    cuda_code_forget();
    char *home = lab_mem_strdup(getenv("HOME"));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_null(lab_kernel_cache_folder(&place.arena));
    require(cuda_code_get(&variant, 90, &code, &err), &err);
    assert_true(is_cubin(code));
    if (home)
        setenv("HOME", home, 1);
    lab_mem_free(home);
    place_close(&place);
}

static int forget(void **state) {
    (void)state;
    cuda_code_forget();
    return 0;
}

static int begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
    setenv("XDG_CACHE_HOME", LAB_TEST_BINARY_DIR "/kernel-cache", 1);
    if (!lab_nvrtc_ready()) {
        print_message("skipped: NVRTC isn't here, so no kernel can be compiled\n");
        return LAB_TEST_SKIPPED;
    }
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.close = forget, .begin = begin};
