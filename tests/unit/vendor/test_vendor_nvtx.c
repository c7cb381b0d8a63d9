/*
 * test_vendor_nvtx.c: a tool's library is let in where NVTX_INJECTION64_PATH names one, and gets
 * the ranges. The tool is tests/fake/nvtx_injection.c; where a toolkit has put the vendor's
 * headers, the same tool listens to their own implementation too, which shows that it is one, and
 * our declarations are compared with theirs.
 *
 * A process lets a tool in once, so each test is a process of its own.
 */
#include "test.h"
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/str.h"
#include "vendor/nvtx.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define TOOL LAB_TEST_BINARY_DIR "/fake/libnvtx_injection.so"

#ifdef LAB_TEST_CUDA_HEADERS

#include <nvtx3/nvToolsExt.h>

#define SAME(ours, theirs)                                                                         \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
#define SAME_OFFSET(ours, member, theirs, their_member)                                            \
    SAME(offsetof(ours, member), offsetof(theirs, their_member))

SAME(LAB_NVTX_VERSION, NVTX_VERSION);
SAME(LAB_NVTX_EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(LAB_NVTX_EXPORT_VERSION, NVTX_ETID_VERSIONINFO);
SAME(LAB_NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME(LAB_NVTX_CUDA, NVTX_CB_MODULE_CUDA);
SAME(LAB_NVTX_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(LAB_NVTX_CUDART, NVTX_CB_MODULE_CUDART);
SAME(LAB_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
SAME(LAB_NVTX_SYNC, NVTX_CB_MODULE_SYNC);
SAME(LAB_NVTX_CORE_SLOTS, NVTX_CBID_CORE_SIZE);
SAME(LAB_NVTX_CUDA_SLOTS, NVTX_CBID_CUDA_SIZE);
SAME(LAB_NVTX_OPENCL_SLOTS, NVTX_CBID_OPENCL_SIZE);
SAME(LAB_NVTX_CUDART_SLOTS, NVTX_CBID_CUDART_SIZE);
SAME(LAB_NVTX_CORE2_SLOTS, NVTX_CBID_CORE2_SIZE);
SAME(LAB_NVTX_SYNC_SLOTS, NVTX_CBID_SYNC_SIZE);
SAME(LAB_NVTX_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(LAB_NVTX_RANGE_PUSH, NVTX_CBID_CORE_RangePushA);
SAME(LAB_NVTX_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(LAB_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(sizeof(struct lab_nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME_OFFSET(struct lab_nvtx_attributes, payload, nvtxEventAttributes_t, payload);
SAME_OFFSET(struct lab_nvtx_attributes, message_kind, nvtxEventAttributes_t, messageType);
SAME_OFFSET(struct lab_nvtx_attributes, message, nvtxEventAttributes_t, message);
SAME(sizeof(struct lab_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME_OFFSET(struct lab_nvtx_callbacks, get_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME(sizeof(struct lab_nvtx_version_info), sizeof(NvtxExportTableVersionInfo));
SAME_OFFSET(struct lab_nvtx_version_info, version, NvtxExportTableVersionInfo, version);
SAME_OFFSET(struct lab_nvtx_version_info, set_tool_version, NvtxExportTableVersionInfo,
            SetInjectionNvtxVersion);

#endif

static char log_path[] = "/tmp/gpulab-test-nvtx-XXXXXX";

/* A pipeline's ranges, one of which a failure leaves open. */
static void tell_ranges(void) {
    int window = lab_nvtx_push("test_double_buffer");
    int batch = lab_nvtx_push("batch_%d", 7);
    lab_nvtx_push("%s_batch_%d", "h2d", 7);
    lab_nvtx_pop();
    lab_nvtx_push("compute_batch_%d", 7);
    lab_nvtx_pop_to(batch);
    lab_nvtx_pop_to(window);
    lab_nvtx_pop();
}

/* In a process with these variables: what `act` told the tool, without the numbers of threads. */
static const char *heard(const char *tool, const char *variable, const char *value,
                         void (*act)(void)) {
    char *bytes;
    size_t length;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("FAKE_NVTX_LOG", log_path, 1);
        setenv(variable, value, 1);
        if (tool)
            setenv(LAB_NVTX_VARIABLE, tool, 1);
        else
            unsetenv(LAB_NVTX_VARIABLE);
        act();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    ASSERT_OK(lab_file_read(log_path, 1 << 20, &test_arena, &bytes, &length, err));
    struct lab_str text;
    lab_str_init(&text);
    for (char *save, *line = strtok_r(bytes, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        lab_str_printf(&text, "%s;", strchr(line, ' ') + 1);
    const char *copy = lab_arena_strdup(&test_arena, text.text);
    lab_str_release(&text);
    return copy;
}

#define ALL                                                                                        \
    "push test_double_buffer;push batch_7;push h2d_batch_7;pop;push compute_batch_7;pop;pop;pop;"

LAB_TEST(the_tool_gets_every_range_and_its_end) {
    assert_string_equal(heard(TOOL, "FAKE_NVTX", "", tell_ranges), ALL);
}

LAB_TEST(a_tool_may_take_ranges_with_attributes_alone) {
    assert_string_equal(heard(TOOL, "FAKE_NVTX_ONLY", "ex", tell_ranges), ALL);
}

static void say_whether_it_is_on(void) {
    if (lab_nvtx_is_on())
        abort();
    tell_ranges();
}

LAB_TEST(without_a_tool_that_works_there_are_no_ranges) {
    assert_string_equal(heard(NULL, "FAKE_NVTX", "", say_whether_it_is_on), "");
    assert_string_equal(heard("", "FAKE_NVTX", "", say_whether_it_is_on), "");
    assert_string_equal(heard("/nowhere/tool.so", "FAKE_NVTX", "", say_whether_it_is_on), "");
    assert_string_equal(heard(TOOL, "FAKE_NVTX_FAIL", "1", say_whether_it_is_on), "");
    assert_string_equal(heard(TOOL, "FAKE_NVTX_ONLY", "nothing", say_whether_it_is_on), "");
    /* a library that is none of theirs */
    assert_string_equal(heard("libm.so.6", "FAKE_NVTX", "", say_whether_it_is_on), "");
}

#ifdef LAB_TEST_CUDA_HEADERS

static void tell_as_the_vendor_does(void) {
    nvtxRangePushA("test_double_buffer");
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                        .message.ascii = "batch_7"};
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    nvtxRangePop();
}

LAB_TEST(the_tool_of_these_tests_is_one_to_the_vendor_too) {
    assert_string_equal(heard(TOOL, "FAKE_NVTX", "", tell_as_the_vendor_does),
                        "push test_double_buffer;push batch_7;pop;pop;");
}

#endif

static int set_up(void **state) {
    (void)state;
    snprintf(log_path + sizeof log_path - 7, 7, "XXXXXX");
    int fd = mkstemp(log_path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state) {
    (void)state;
    return unlink(log_path);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
