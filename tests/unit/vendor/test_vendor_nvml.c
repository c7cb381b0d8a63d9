/*
 * test_vendor_nvml.c: NVML's structures are as large as the vendor's and lie where theirs do; the
 * demonstration's library is found; and a session lets NVML be restarted when nobody is inside.
 *
 * Where a toolkit has put nvml.h, its declarations are compared; otherwise the known sizes are.
 */
#include "test.h"
#include <stdlib.h>

#include "vendor/nvml_session.h"
#include "vendor/visible.h"

#define LAB_NS(seconds)   (int64_t)((seconds)*1e9)
#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
#define OFFSET(type, member, bytes)                                                                \
    _Static_assert(offsetof(type, member) == (bytes), #member " lies elsewhere")

SIZE(struct lab_nvml_memory, 24);
SIZE(struct lab_nvml_memory_v2, LAB_NVML_MEMORY_V2 & 0xffffff);
SIZE(struct lab_nvml_temperature, LAB_NVML_TEMPERATURE_V1 & 0xffffff);
SIZE(struct lab_nvml_pci, 68);
SIZE(struct lab_nvml_field, 40);
OFFSET(struct lab_nvml_field, type, 24);
OFFSET(struct lab_nvml_field, value, 32);
SIZE(struct lab_nvml_gpm_metric, 40);
SIZE(struct lab_nvml_gpm_metrics, 13344);
SIZE(struct lab_nvml_process_v1, 16);
SIZE(struct lab_nvml_process_v2, 24);
SIZE(struct lab_nvml_process_v3, 32);
SIZE(struct lab_nvml_process_use, 32);
SIZE(struct lab_nvml_event, 32);

#if __has_include(<nvml.h>)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#define SAME(ours, theirs)                                                                         \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
SAME(sizeof(struct lab_nvml_memory), sizeof(nvmlMemory_t));
SAME(sizeof(struct lab_nvml_memory_v2), sizeof(nvmlMemory_v2_t));
SAME(LAB_NVML_MEMORY_V2, nvmlMemory_v2);
SAME(offsetof(struct lab_nvml_memory_v2, used_bytes), offsetof(nvmlMemory_v2_t, used));
SAME(offsetof(struct lab_nvml_memory_v2, reserved_bytes), offsetof(nvmlMemory_v2_t, reserved));
SAME(sizeof(struct lab_nvml_pci), sizeof(nvmlPciInfo_t));
SAME(offsetof(struct lab_nvml_pci, bus), offsetof(nvmlPciInfo_t, bus));
SAME(sizeof(struct lab_nvml_attributes), sizeof(nvmlDeviceAttributes_t));
SAME(sizeof(struct lab_nvml_field), sizeof(nvmlFieldValue_t));
SAME(offsetof(struct lab_nvml_field, result), offsetof(nvmlFieldValue_t, nvmlReturn));
SAME(offsetof(struct lab_nvml_field, scope), offsetof(nvmlFieldValue_t, scopeId));
SAME(sizeof(struct lab_nvml_gpm_metric), sizeof(nvmlGpmMetric_t));
SAME(offsetof(struct lab_nvml_gpm_metric, value), offsetof(nvmlGpmMetric_t, value));
SAME(offsetof(struct lab_nvml_gpm_metrics, until), offsetof(nvmlGpmMetricsGet_t, sample2));
SAME(sizeof(struct lab_nvml_process_v1), sizeof(nvmlProcessInfo_v1_t));
SAME(sizeof(struct lab_nvml_process_v2), sizeof(nvmlProcessInfo_v2_t));
SAME(offsetof(struct lab_nvml_process_v2, used_bytes),
     offsetof(nvmlProcessInfo_v2_t, usedGpuMemory));
SAME(sizeof(struct lab_nvml_process_use), sizeof(nvmlProcessUtilizationSample_t));
SAME(offsetof(struct lab_nvml_process_use, sm_percent),
     offsetof(nvmlProcessUtilizationSample_t, smUtil));
SAME(sizeof(struct lab_nvml_event), sizeof(nvmlEventData_t));
SAME(offsetof(struct lab_nvml_event, data), offsetof(nvmlEventData_t, eventData));
SAME(LAB_NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME(LAB_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME(LAB_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
SAME(LAB_NVML_FI_ECC_CORRECTED, NVML_FI_DEV_ECC_SBE_VOL_TOTAL);
SAME(LAB_NVML_FI_ECC_UNCORRECTED, NVML_FI_DEV_ECC_DBE_VOL_TOTAL);
SAME(LAB_NVML_FI_THROTTLED_POWER, NVML_FI_DEV_PERF_POLICY_POWER);
SAME(LAB_NVML_FI_THROTTLED_SYNC, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST);
SAME(LAB_NVML_FI_MEMORY_TEMPERATURE, NVML_FI_DEV_MEMORY_TEMP);
SAME(LAB_NVML_FI_ENERGY, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME(LAB_NVML_FI_LINK_COUNT, NVML_FI_DEV_NVLINK_LINK_COUNT);
SAME(LAB_NVML_FI_PCIE_REPLAYS, NVML_FI_DEV_PCIE_REPLAY_COUNTER);
SAME(LAB_NVML_FI_NVLINK_TX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME(LAB_NVML_FI_NVLINK_RX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME(LAB_NVML_FI_ROWS_CORRECTED, NVML_FI_DEV_REMAPPED_COR);
SAME(LAB_NVML_FI_ROWS_FAILED, NVML_FI_DEV_REMAPPED_FAILURE);
SAME(LAB_NVML_FI_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT);
SAME(LAB_NVML_FI_POWER_LIMIT, NVML_FI_DEV_POWER_CURRENT_LIMIT);
SAME(LAB_NVML_GPM_TENSOR, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME(LAB_NVML_GPM_DRAM, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME(LAB_NVML_GPM_PCIE_TX, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME(LAB_NVML_GPM_NVLINK_RX, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
#ifdef nvmlTemperature_v1 /* R565 and later */
SAME(LAB_NVML_TEMPERATURE_V1, nvmlTemperature_v1);
SAME(LAB_NVML_FI_PCIE_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
SAME(LAB_NVML_FI_NVLINK5_TX_BYTES, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES);
SAME(LAB_NVML_FI_NVLINK5_RX_BYTES, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES);
SAME(LAB_NVML_FI_RECOVERY_ACTION, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
#endif
#endif

/* --- CUDA_VISIBLE_DEVICES --- */

LAB_TEST(visible_devices_are_ordered_as_the_driver_does) {
    static const struct lab_visible_gpu gpus[] = {
        {"GPU-aaaa", -1}, {"GPU-aabb", -1}, {"MIG-cccc", 1}, {"MIG-dddd", 1}, {"GPU-eeee", -1}};
    static const struct {
        const char *visible;
        int count, order[3];
        bool twice;
    } cases[] = {
        {NULL, 3, {0, 1, 4}, false},
        {"", 0, {0}, false},
        {"2,0", 2, {4, 0}, false},
        {"GPU-e,1", 2, {4, 1}, false},
        {"GPU-aa", 0, {0}, false}, /* two begin so */
        {"0,9,1", 1, {0}, false},  /* ends at what isn't there */
        {"MIG-d,MIG-c", 2, {3, 2}, false},
        {"1,MIG-d", 0, {0}, true}, /* it is part of the first */
        {"0,0", 0, {0}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int order[5];
        bool twice;
        assert_int_equal(lab_visible_order(cases[i].visible, gpus, 5, order, &twice),
                         cases[i].count);
        assert_int_equal(twice, cases[i].twice);
        for (int k = 0; k < cases[i].count; k++)
            assert_int_equal(order[k], cases[i].order[k]);
    }
}

/* --- the demonstration; before anything else loads NVML --- */

LAB_TEST(the_demonstration_lies_beside_the_program) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_dl_report *report;
    LAB_AUTO(arena, arena);
    assert_string_equal(lab_nvml_demo_folder(&arena), LAB_TEST_BINARY_DIR "/fake");
    if (lab_nvml_use_demo(&err))
        fail_msg("%s", err.text);
    assert_string_equal(getenv("GPULAB_FAKE_NVML"), "demo");
    const struct lab_nvml *nvml = lab_nvml_load(&report);
    assert_string_equal(report->path, LAB_TEST_BINARY_DIR "/fake/libnvidia-ml.so.1");
    assert_true(lab_nvml_simulated(nvml));
    assert_int_equal(lab_nvml_use_demo(&err), -1); /* too late now */
    assert_contains(err.text, "too late");
}

/* --- sessions --- */

static int released;

static void release(void *state) {
    (void)state;
    released++;
}

LAB_TEST(a_restart_waits_until_nobody_is_inside) {
    struct lab_nvml_holder holder = {.release = release};
    struct lab_err err = LAB_ERR_INIT;
    unsigned before, after;
    lab_nvml_hold(&holder);
    assert_int_equal(lab_nvml_enter(&before, &err), 0);
    assert_int_equal(lab_nvml_restart(before, LAB_NS(100), true, &err), -1);
    assert_contains(err.text, "hangs");
    assert_int_equal(released, 0);
    lab_nvml_leave();
    assert_int_equal(lab_nvml_restart(before, LAB_NS(100.5), true, &err), -1);
    assert_contains(err.text, "has just restarted");
    assert_int_equal(lab_nvml_restart(before, LAB_NS(103), true, &err), 0);
    assert_int_equal(released, 1);
    assert_int_equal(lab_nvml_restart(before, LAB_NS(103), true, &err), 0); /* was done */
    assert_int_equal(released, 1);
    assert_int_equal(lab_nvml_enter(&after, &err), 0);
    lab_nvml_leave();
    assert_int_not_equal(before, after);
    assert_true(lab_nvml_unhold(&holder));
    assert_int_equal(lab_nvml_restart(after, LAB_NS(200), false, &err), 0);
    assert_int_equal(released, 1);
}

static int begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
    unsetenv("GPULAB_FAKE_NVML");
    unsetenv("LD_LIBRARY_PATH");
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.begin = begin};
