/*
 * test_vendor_nccl.c: what is declared of NCCL by hand agrees with its own header, where a toolkit
 * has put it, and the library that is here, if any, has all of it.
 */
#include "test.h"

#include "vendor/nccl.h"

#ifdef LAB_TEST_NCCL_HEADER

#include <nccl.h>

#define SAME(ours, theirs)                                                                         \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)

SAME(LAB_NCCL_SUCCESS, ncclSuccess);
SAME(LAB_NCCL_IN_PROGRESS, ncclInProgress);
SAME(LAB_NCCL_FLOAT32, ncclFloat32);
SAME(LAB_NCCL_SUM, ncclSum);

/* the table's rows with their types in place of ours */
#define lab_nccl_result    ncclResult_t
#define lab_nccl_comm      ncclComm_t
#define lab_nccl_type      ncclDataType_t
#define lab_nccl_reduction ncclRedOp_t
#define lab_cu_stream      cudaStream_t
#define CHECK(name, effect, parameters)                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), ncclResult_t(*) parameters),    \
                   #name " has another signature in the vendor's header");
LAB_NCCL_FUNCTIONS(CHECK)

#endif

static bool is_missing;

LAB_TEST(the_library_here_has_all_that_is_declared) {
    const struct lab_dl_report *report;
    lab_nccl_load(&report);
    is_missing = !report->handle;
    if (is_missing) {
        print_message("skipped: no NCCL here: %s\n", report->reason);
        assert_false(lab_nccl_ready());
        assert_int_equal(lab_nccl_version(), 0);
        return;
    }
    print_message("%s is version %d\n", report->path, lab_nccl_version());
    assert_int_equal(report->missing, 0);
    assert_true(lab_nccl_ready());
    assert_in_range(lab_nccl_version(), 20000, 29999); /* its soname says 2 */
}

static int end(int failed) {
    return failed ? failed : is_missing ? LAB_TEST_SKIPPED : 0;
}

const struct lab_test_program lab_test_program = {.end = end};
