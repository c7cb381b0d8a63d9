/*
 * monitor_file_smi.c: the names of nvidia-smi's columns: of `--query-gpu … --format=csv`, of `dmon`
 * and of `pmon`. A file without a line of names has only units. A query's column is then the first
 * of its unit here; `dmon`'s are taken in this order.
 */
#include "store/foreign/monitor_file_reader.h"

#include <string.h>

#define MIB LAB_MONITOR_MIB

const struct lab_monitor_field lab_monitor_smi_query[] = {
    {"utilization.gpu", LAB_METRIC_UTILIZATION, 1, .suffix = "%"},
    {"utilization.memory", LAB_METRIC_MEMORY_UTILIZATION, 1, .suffix = "%"},
    {"memory.used", LAB_METRIC_MEMORY_USED, MIB, .suffix = "MiB"},
    {"memory.total", LAB_METRIC_MEMORY_TOTAL, MIB, .suffix = "MiB"},
    {"power.draw", LAB_METRIC_POWER, 1, .suffix = "W"},
    {"power.draw.average", LAB_METRIC_POWER, 1, .suffix = "W"},
    {"gpu.power.draw.average", LAB_METRIC_POWER, 1, .suffix = "W"},
    {"power.limit", LAB_METRIC_POWER_LIMIT, 1, .suffix = "W"},
    {"enforced.power.limit", LAB_METRIC_POWER_LIMIT, 1, .suffix = "W"},
    {"gpu.power.current_limit", LAB_METRIC_POWER_LIMIT, 1, .suffix = "W"},
    {"power.draw.instant", LAB_METRIC_POWER_INSTANT, 1, .suffix = "W"},
    {"gpu.power.draw.instant", LAB_METRIC_POWER_INSTANT, 1, .suffix = "W"},
    {"clocks.current.sm", LAB_METRIC_SM_CLOCK, 1, .suffix = "MHz"},
    {"clocks.sm", LAB_METRIC_SM_CLOCK, 1, .suffix = "MHz"},
    {"clocks.current.memory", LAB_METRIC_MEMORY_CLOCK, 1, .suffix = "MHz"},
    {"clocks.mem", LAB_METRIC_MEMORY_CLOCK, 1, .suffix = "MHz"},
    {"memory.reserved", LAB_METRIC_MEMORY_RESERVED, MIB, .suffix = "MiB"},
    {"temperature.gpu", LAB_METRIC_TEMPERATURE, 1},
    {"temperature.memory", LAB_METRIC_MEMORY_TEMPERATURE, 1},
    {"fan.speed", LAB_METRIC_FAN, 1, .suffix = "%"},
    {"utilization.encoder", LAB_METRIC_ENCODER, 1, .suffix = "%"},
    {"utilization.decoder", LAB_METRIC_DECODER, 1, .suffix = "%"},
    {"pstate", LAB_METRIC_PERFORMANCE_STATE, 1},
    {"clocks_event_reasons.active", LAB_METRIC_CLOCK_REASONS, 1},
    {"clocks_throttle_reasons.active", LAB_METRIC_CLOCK_REASONS, 1},
    {"pcie.link.gen.current", LAB_METRIC_PCIE_GENERATION, 1},
    {"pcie.link.gen.gpucurrent", LAB_METRIC_PCIE_GENERATION, 1},
    {"pcie.link.width.current", LAB_METRIC_PCIE_WIDTH, 1},
    {"ecc.errors.corrected.volatile.total", LAB_METRIC_ECC_CORRECTED, 1},
    {"ecc.errors.uncorrected.volatile.total", LAB_METRIC_ECC_UNCORRECTED, 1},
    {"pci.bus_id", LAB_MONITOR_PCI},
    {"gpu_bus_id", LAB_MONITOR_PCI},
    {"clocks_event_reasons.supported", LAB_MONITOR_IGNORED},
    {"clocks_throttle_reasons.supported", LAB_MONITOR_IGNORED},
    {"memory.free", LAB_MONITOR_IGNORED},
    {"driver_version", LAB_MONITOR_IGNORED},
    {"count", LAB_MONITOR_IGNORED},
    {NULL},
};

bool lab_monitor_smi_reason(const char *name, struct lab_monitor_field *ret_field) {
    static const char *const heads[] = {"clocks_event_reasons.", "clocks_throttle_reasons."};
    static const char *const reasons[] = {"gpu_idle",
                                          "applications_clocks_setting",
                                          "sw_power_cap",
                                          "hw_slowdown",
                                          "sync_boost",
                                          "sw_thermal_slowdown",
                                          "hw_thermal_slowdown",
                                          "hw_power_brake_slowdown",
                                          NULL}; /* NVML's bits, from the lowest */
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!lab_str_starts(name, heads[i]))
            continue;
        int bit = lab_str_find(name + strlen(heads[i]), reasons);
        if (bit >= 0) {
            *ret_field = (struct lab_monitor_field){.what = LAB_MONITOR_REASON, .unit = 1 << bit};
            return true;
        }
    }
    return false;
}

/* Its MB are MiB. What a GPU did (GPM) follows the groups of -s. */
const struct lab_monitor_field lab_monitor_smi_dmon[] = {
    {"Date", LAB_MONITOR_DATE, .suffix = "YYYYMMDD"},
    {"Time", LAB_MONITOR_CLOCK, .suffix = "HH:MM:SS"},
    {"gpu", LAB_MONITOR_INDEX, .suffix = "Idx"},
    {"pwr", LAB_METRIC_POWER, 1, .suffix = "W"},
    {"gtemp", LAB_METRIC_TEMPERATURE, 1, .suffix = "C"},
    {"temp", LAB_METRIC_TEMPERATURE, 1}, /* of drivers before 410 */
    {"mtemp", LAB_METRIC_MEMORY_TEMPERATURE, 1, .suffix = "C"},
    {"sm", LAB_METRIC_UTILIZATION, 1, .suffix = "%"},
    {"mem", LAB_METRIC_MEMORY_UTILIZATION, 1, .suffix = "%"},
    {"enc", LAB_METRIC_ENCODER, 1, .suffix = "%"},
    {"dec", LAB_METRIC_DECODER, 1, .suffix = "%"},
    {"jpg", LAB_MONITOR_IGNORED},
    {"ofa", LAB_MONITOR_IGNORED},
    {"mclk", LAB_METRIC_MEMORY_CLOCK, 1, .suffix = "MHz"},
    {"pclk", LAB_METRIC_SM_CLOCK, 1, .suffix = "MHz"},
    {"pviol", LAB_MONITOR_IGNORED},
    {"tviol", LAB_MONITOR_IGNORED},
    {"fb", LAB_METRIC_MEMORY_USED, MIB, .suffix = "MB"},
    {"bar1", LAB_MONITOR_IGNORED},
    {"ccpm", LAB_MONITOR_IGNORED},
    {"sbecc", LAB_METRIC_ECC_CORRECTED, 1, .suffix = "errs"},
    {"dbecc", LAB_METRIC_ECC_UNCORRECTED, 1, .suffix = "errs"},
    {"pci", LAB_METRIC_PCIE_REPLAYS, 1, .suffix = "errs"},
    {"rxpci", LAB_METRIC_PCIE_RX_RATE, 1e6, .suffix = "MB/s"},
    {"txpci", LAB_METRIC_PCIE_TX_RATE, 1e6, .suffix = "MB/s"},
    {"gract", LAB_METRIC_GRAPHICS_ACTIVE, 1, .suffix = "GPM:%"},
    {"smutil", LAB_METRIC_SM_ACTIVE, 1, .suffix = "GPM:%"},
    {"mmaact", LAB_METRIC_TENSOR_ACTIVE, 1, .suffix = "GPM:%"},
    {"dram", LAB_METRIC_DRAM_ACTIVE, 1, .suffix = "GPM:%"},
    {"pcitx", LAB_METRIC_PCIE_TX_RATE, MIB, .suffix = "GPM:MiB/s"},
    {"pcirx", LAB_METRIC_PCIE_RX_RATE, MIB, .suffix = "GPM:MiB/s"},
    {NULL},
};

const struct lab_monitor_field lab_monitor_smi_pmon[] = {
    {"Date", LAB_MONITOR_DATE},
    {"Time", LAB_MONITOR_CLOCK},
    {"gpu", LAB_MONITOR_INDEX},
    {"pid", LAB_MONITOR_PID},
    {"type", LAB_MONITOR_TYPE},
    {"sm", LAB_MONITOR_SM_PERCENT, 1},
    {"mem", LAB_MONITOR_GPU_MEMORY_PERCENT, 1},
    {"fb", LAB_MONITOR_GPU_MEMORY, MIB},
    {"enc", LAB_MONITOR_IGNORED},
    {"dec", LAB_MONITOR_IGNORED},
    {"jpg", LAB_MONITOR_IGNORED},
    {"ofa", LAB_MONITOR_IGNORED},
    {"ccpm", LAB_MONITOR_IGNORED},
    {"command", LAB_MONITOR_PROCESS_NAME},
    {NULL},
};
