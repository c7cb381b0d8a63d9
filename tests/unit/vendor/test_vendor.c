/*
 * test_vendor.c: libraries are found where people have them, those of the driver's version first,
 * and a toolkit's stubs are none. Copies of a fake library stand for the vendor's; the fake driver
 * is one for CUDA 12.4.
 */
#include "test.h"
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/str.h"
#include "vendor/ask.h"
#include "vendor/cublaslt.h"
#include "vendor/cuda.h"
#include "vendor/cupti.h"
#include "vendor/nccl.h"
#include "vendor/nvrtc.h"
#include "vendor/vendor.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#define WHEEL "venv/lib/python3.11/site-packages/nvidia/test/lib"

static size_t (*get_version)(void), (*get_nonsense)(void);

static const struct lab_dl_symbol symbols[] = {
    {"cublasLtGetVersion", &get_version, "no version"},
    {"gpulab_no_such_symbol", &get_nonsense, "no nonsense"},
    {NULL},
};

/* Puts a library of that name into the folder, which is made. */
static void put(const char *folder, const char *name) {
    char *bytes;
    size_t length;
    ASSERT_OK(lab_file_read(LAB_TEST_BINARY_DIR "/fake/libcublasLt.so.13", 64 << 20, &test_arena,
                            &bytes, &length, err));
    test_write_bytes(test_path("%s/%s", folder, name), bytes, length);
}

static struct lab_dl_report find(const char *name) {
    struct lab_vendor_search search = {
        .title = "a library",
        .sonames = {lab_arena_printf(&test_arena, "lib%s.so.13", name),
                    lab_arena_printf(&test_arena, "lib%s.so.12", name)},
        .symbols = symbols,
        .effect = "nothing works",
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    lab_vendor_load(&search, NULL);
    return search.report;
}

static int set_up(void **state) {
    (void)state;
    setenv("VIRTUAL_ENV", test_path("venv"), 1);
    unsetenv("CUDA_HOME");
    return 0;
}

static pthread_key_t key;
static bool released;

static void release_late(void *flag) {
    usleep(20000);
    *(bool *)flag = true;
}

static void question(void *flag) {
    pthread_setspecific(key, flag);
}

/* dlerror's text is such memory: a program that ended before its release leaked it. */
LAB_TEST(what_a_question_left_in_its_thread_is_released) {
    assert_int_equal(pthread_key_create(&key, release_late), 0);
    ASSERT_OK(lab_ask(question, &released, err));
    assert_true(released);
    pthread_key_delete(key);
}

LAB_TEST(nothing_found_names_all_that_was_looked_for) {
    struct lab_dl_report report = find("gpulab-none");
    assert_null(report.handle);
    assert_string_equal(report.reason, "libgpulab-none.so.13 or libgpulab-none.so.12 not found");
}

LAB_TEST(a_wheel_of_a_virtual_environment_will_do) {
    put(WHEEL, "libgpulab-wheel.so.13");
    struct lab_dl_report report = find("gpulab-wheel");
    assert_string_equal(report.path, test_path(WHEEL "/libgpulab-wheel.so.13"));
    assert_int_equal(report.found, 1);
    assert_string_equal(report.effects[0], "no nonsense");
}

LAB_TEST(where_the_user_points_to_goes_first) {
    put(WHEEL, "libgpulab-home.so.12");
    put("toolkit/lib64", "libgpulab-home.so.12");
    setenv("CUDA_HOME", test_path("toolkit"), 1);
    assert_string_equal(find("gpulab-home").path, test_path("toolkit/lib64/libgpulab-home.so.12"));
}

LAB_TEST(a_toolkit_may_be_laid_out_in_several_ways) {
    setenv("CUDA_HOME", test_path("toolkit"), 1);
    put("toolkit/lib", "libgpulab-plain.so.13");
    assert_string_equal(find("gpulab-plain").path, test_path("toolkit/lib/libgpulab-plain.so.13"));
    put("toolkit/extras/CUPTI/lib64", "libgpulab-extra.so.13");
    assert_string_equal(find("gpulab-extra").path,
                        test_path("toolkit/extras/CUPTI/lib64/libgpulab-extra.so.13"));
}

LAB_TEST(the_drivers_major_version_goes_before_a_newer_one) {
    assert_int_equal(lab_cuda_version(), 12040);
    put("toolkit/lib64", "libgpulab-major.so.13");
    put(WHEEL, "libgpulab-major.so.12");
    setenv("CUDA_HOME", test_path("toolkit"), 1);
    assert_string_equal(find("gpulab-major").path, test_path(WHEEL "/libgpulab-major.so.12"));
}

LAB_TEST(stubs_are_none) {
    put("toolkit/lib64/stubs/lib64", "libgpulab-stub.so.13");
    setenv("CUDA_HOME", test_path("toolkit/lib64/stubs"), 1);
    struct lab_dl_report report = find("gpulab-stub");
    assert_null(report.handle);
}

static const struct lab_vendor_library *find_library(const struct lab_vendor_library *libraries,
                                                     int count, const char *title) {
    for (int i = 0; i < count; i++)
        if (lab_str_equal(libraries[i].title, title))
            return &libraries[i];
    fail_msg("no %s in the list", title);
    return NULL;
}

LAB_TEST(what_is_missing_is_listed_once_for_each_effect) {
    struct lab_vendor_library *libraries;
    put("toolkit/lib64", "libnccl.so.2"); /* which has none of NCCL's functions */
    setenv("CUDA_HOME", test_path("toolkit"), 1);
    int count = lab_vendor_list(&test_arena, &libraries);
    assert_true(count >= 4);
    assert_string_equal(libraries[0].title, "CUDA driver");
    assert_string_equal(libraries[0].version, "580.00, CUDA 12.4");
    assert_string_equal(libraries[0].effects[0], LAB_CUDA_SLICES); /* 12.5 has what is missing */
    assert_null(libraries[0].effects[1]);
    for (int i = 0; i < count; i++)
        assert_true(libraries[i].path || (libraries[i].reason && libraries[i].effect));
    const struct lab_vendor_library *nccl = find_library(libraries, count, "NCCL");
    assert_string_equal(nccl->path, test_path("toolkit/lib64/libnccl.so.2"));
    assert_null(nccl->version);
    assert_string_equal(nccl->effects[0], LAB_NCCL_ESSENTIAL);
    assert_string_equal(nccl->effects[2], LAB_NCCL_TEXTS);
    assert_null(nccl->effects[3]);
}

/* The fakes of cuBLASLt and CUPTI are of CUDA 13; where a toolkit of 12 is installed, its own are
 * taken. */
LAB_TEST(a_library_of_a_later_major_version_is_too_new) {
    struct lab_vendor_library *libraries;
    int count = lab_vendor_list(&test_arena, &libraries);
    const struct {
        const char *title, *effect;
        int major;
    } of_cuda[] = {
        {"NVRTC", LAB_NVRTC_ESSENTIAL, lab_nvrtc_version() / 1000},
        {"cuBLASLt", LAB_LT_ESSENTIAL, (int)(lab_cublaslt_version() / 10000)},
        {"CUPTI", LAB_CUPTI_ESSENTIAL, lab_cupti_cuda_major()},
    };
    for (size_t i = 0; i < sizeof of_cuda / sizeof *of_cuda; i++) {
        const struct lab_vendor_library *library = find_library(libraries, count, of_cuda[i].title);
        if (!library->path)
            continue;
        if (of_cuda[i].major <= 12) {
            assert_null(library->reason);
            continue;
        }
        assert_string_equal(library->reason, "too new for the driver, which is for CUDA 12.4");
        assert_string_equal(library->effect, of_cuda[i].effect);
    }
    assert_null(find_library(libraries, count, "CUDA driver")->reason);
    assert_null(find_library(libraries, count, "NCCL")->reason);
}

/* In a process of its own: the driver's version and the libraries are looked up once. */
LAB_TEST(a_driver_takes_every_minor_version_of_its_own_major_one) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("FAKE_CUPTI_VERSION", "24", 1); /* of CUDA 12.6 */
        struct lab_vendor_library *libraries;
        int count = lab_vendor_list(&test_arena, &libraries);
        _exit(lab_cuda_version() != 12040 || lab_cupti_cuda_major() != 12 ||
              find_library(libraries, count, "CUPTI")->reason != NULL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int begin(int argc, char **argv) {
    (void)argc;
    if (!getenv("FAKE_CUDA_VERSION")) {
        setenv("LD_LIBRARY_PATH", LAB_TEST_BINARY_DIR "/fake", 1);
        setenv("FAKE_CUDA_VERSION", "12040", 1);
        execv("/proc/self/exe", argv);
    }
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .begin = begin};
