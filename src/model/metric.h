/*
 * model/metric.h: what can be watched, as one table: each metric has a name for programs, a unit, a
 * kind and a scale. A sample's value is a whole number; times the scale it is in the metric's unit.
 * Whole numbers pack well, never round, and are what drivers give.
 *
 * The numbers of metrics are this program's own business: files name them by name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum lab_metric_kind {
    LAB_METRIC_GAUGE,   /* as it is now */
    LAB_METRIC_COUNTER, /* grows; only differences mean anything; may start anew */
    LAB_METRIC_FLAGS,   /* bits, each with a meaning of its own */
};

/*
 * X(id, name, unit, kind, scale, title). Instances: of a metric marked [n] an entity may have
 * several, one for each core, node or link; the others have the instance -1.
 */
#define LAB_METRICS(X)                                                                             \
    /* a GPU, at every tick */                                                                     \
    X(UTILIZATION, "utilization", "%", GAUGE, 1, "GPU utilisation")                                \
    X(MEMORY_UTILIZATION, "memory_utilization", "%", GAUGE, 1, "Memory controller utilisation")    \
    X(MEMORY_USED, "memory_used", "B", GAUGE, 1024, "Memory used")                                 \
    X(MEMORY_RESERVED, "memory_reserved", "B", GAUGE, 1024, "Memory reserved by the driver")       \
    X(MEMORY_TOTAL, "memory_total", "B", GAUGE, 1024, "Memory")                                    \
    X(POWER, "power", "W", GAUGE, 0.001, "Power draw")                                             \
    X(POWER_INSTANT, "power_instant", "W", GAUGE, 0.001, "Power draw at this instant")             \
    X(TEMPERATURE, "temperature", "C", GAUGE, 1, "Temperature")                                    \
    X(MEMORY_TEMPERATURE, "memory_temperature", "C", GAUGE, 1, "Memory temperature")               \
    X(SM_CLOCK, "sm_clock", "MHz", GAUGE, 1, "Multiprocessor clock")                               \
    X(MEMORY_CLOCK, "memory_clock", "MHz", GAUGE, 1, "Memory clock")                               \
    X(FAN, "fan", "%", GAUGE, 1, "Fan speed")                                                      \
    X(CLOCK_REASONS, "clock_event_reasons", "", FLAGS, 1, "Clock event reasons")                   \
    X(PERFORMANCE_STATE, "performance_state", "", GAUGE, 1, "Performance state")                   \
    X(ENCODER, "encoder_utilization", "%", GAUGE, 1, "Encoder utilisation")                        \
    X(DECODER, "decoder_utilization", "%", GAUGE, 1, "Decoder utilisation")                        \
    /* a GPU, each 0.5 s (0.1 s in studies): shares of the time between two readings (GPM) */      \
    X(GRAPHICS_ACTIVE, "graphics_active", "%", GAUGE, 0.01, "Graphics or compute engine active")   \
    X(SM_ACTIVE, "sm_active", "%", GAUGE, 0.01, "Multiprocessors active")                          \
    X(SM_OCCUPANCY, "sm_occupancy", "%", GAUGE, 0.01, "Occupancy of multiprocessors")              \
    X(TENSOR_ACTIVE, "tensor_active", "%", GAUGE, 0.01, "Tensor cores active")                     \
    X(DRAM_ACTIVE, "dram_active", "%", GAUGE, 0.01, "Memory interface active")                     \
    X(FP64_ACTIVE, "fp64_active", "%", GAUGE, 0.01, "FP64 units active")                           \
    X(FP32_ACTIVE, "fp32_active", "%", GAUGE, 0.01, "FP32 units active")                           \
    X(FP16_ACTIVE, "fp16_active", "%", GAUGE, 0.01, "FP16 units active")                           \
    X(INTEGER_ACTIVE, "integer_active", "%", GAUGE, 0.01, "Integer units active")                  \
    X(PCIE_TX_RATE, "pcie_tx_rate", "B/s", GAUGE, 1024, "PCIe out of the GPU")                     \
    X(PCIE_RX_RATE, "pcie_rx_rate", "B/s", GAUGE, 1024, "PCIe into the GPU")                       \
    X(NVLINK_TX_RATE, "nvlink_tx_rate", "B/s", GAUGE, 1024, "NVLink out of the GPU")               \
    X(NVLINK_RX_RATE, "nvlink_rx_rate", "B/s", GAUGE, 1024, "NVLink into the GPU")                 \
    /* a GPU, each second and at the edges of runs */                                              \
    X(ENERGY, "energy", "J", COUNTER, 0.001, "Energy used")                                        \
    X(POWER_LIMIT, "power_limit", "W", GAUGE, 0.001, "Power limit")                                \
    X(PCIE_TX_BYTES, "pcie_tx_bytes", "B", COUNTER, 1024, "PCIe out of the GPU, total")            \
    X(PCIE_RX_BYTES, "pcie_rx_bytes", "B", COUNTER, 1024, "PCIe into the GPU, total")              \
    X(NVLINK_TX_BYTES, "nvlink_tx_bytes", "B", COUNTER, 1024, "NVLink out of the GPU, total")      \
    X(NVLINK_RX_BYTES, "nvlink_rx_bytes", "B", COUNTER, 1024, "NVLink into the GPU, total")        \
    X(PCIE_REPLAYS, "pcie_replays", "", COUNTER, 1, "PCIe replays")                                \
    X(PCIE_GENERATION, "pcie_generation", "", GAUGE, 1, "PCIe generation in use")                  \
    X(PCIE_WIDTH, "pcie_width", "", GAUGE, 1, "PCIe lanes in use")                                 \
    X(ECC_CORRECTED, "ecc_corrected", "", COUNTER, 1, "Memory errors, corrected")                  \
    X(ECC_UNCORRECTED, "ecc_uncorrected", "", COUNTER, 1, "Memory errors, uncorrected")            \
    X(ROWS_REMAPPED, "rows_remapped", "", COUNTER, 1, "Memory rows remapped")                      \
    X(ROWS_PENDING, "rows_pending", "", GAUGE, 1, "Memory rows to be remapped at the next reset")  \
    X(ROWS_FAILED, "rows_failed", "", GAUGE, 1, "Memory rows that could not be remapped")          \
    X(THROTTLED_POWER, "throttled_power", "s", COUNTER, 1e-6, "Throttled by the power limit")      \
    X(THROTTLED_SYNC, "throttled_sync", "s", COUNTER, 1e-6, "Throttled by peer GPUs (sync boost)") \
    X(THROTTLED_THERMAL, "throttled_thermal", "s", COUNTER, 1e-6, "Thermally throttled (driver)")  \
    X(THROTTLED_HW_THERMAL, "throttled_hw_thermal", "s", COUNTER, 1e-6,                            \
      "Thermally throttled (hardware)")                                                            \
    X(THROTTLED_BRAKE, "throttled_brake", "s", COUNTER, 1e-6, "Throttled by the power brake")      \
    X(XIDS, "xids", "", COUNTER, 1, "Xid errors")                                                  \
    X(LAST_XID, "last_xid", "", GAUGE, 1, "Last Xid error")                                        \
    X(RECOVERY_ACTION, "recovery_action", "", GAUGE, 1, "Recovery action of the driver")           \
    X(PROCESSES, "processes", "", GAUGE, 1, "Processes on it")                                     \
    /* the CPUs; [n] = the kernel's number of a logical CPU */                                     \
    X(CPU_UTILIZATION, "cpu_utilization", "%", GAUGE, 0.01, "CPU utilisation")                     \
    X(CPU_SYSTEM, "cpu_system", "%", GAUGE, 0.01, "CPU time in the kernel")                        \
    X(CPU_IOWAIT, "cpu_iowait", "%", GAUGE, 0.01, "CPU time waiting for the disk")                 \
    X(CPU_STEAL, "cpu_steal", "%", GAUGE, 0.01, "CPU steal time")                                  \
    X(CORE_UTILIZATION, "core_utilization", "%", GAUGE, 0.1, "Utilisation [n]")                    \
    X(CORE_FREQUENCY, "core_frequency", "MHz", GAUGE, 1, "Frequency [n]")                          \
    X(CPU_FREQUENCY, "cpu_frequency", "MHz", GAUGE, 1, "Frequency, mean of all")                   \
    X(LOAD, "load", "", GAUGE, 0.01, "Load average, 1 minute")                                     \
    X(PRESSURE_CPU, "pressure_cpu", "%", GAUGE, 0.01, "CPU pressure (PSI some)")                   \
    X(PRESSURE_MEMORY, "pressure_memory", "%", GAUGE, 0.01, "Memory pressure (PSI some)")          \
    X(PRESSURE_IO, "pressure_io", "%", GAUGE, 0.01, "I/O pressure (PSI some)")                     \
    /* host memory */                                                                              \
    X(HOST_TOTAL, "host_memory_total", "B", GAUGE, 1024, "Host memory")                            \
    X(HOST_USED, "host_memory_used", "B", GAUGE, 1024, "Host memory used")                         \
    X(HOST_AVAILABLE, "host_memory_available", "B", GAUGE, 1024, "Host memory available")          \
    X(HOST_CACHED, "host_memory_cached", "B", GAUGE, 1024, "Host page cache")                      \
    X(SWAP_USED, "swap_used", "B", GAUGE, 1024, "Swap used")                                       \
    /* NUMA nodes; [n] = the kernel's number of a node */                                          \
    X(NODE_TOTAL, "node_memory_total", "B", GAUGE, 1024, "Memory of NUMA node [n]")                \
    X(NODE_FREE, "node_memory_free", "B", GAUGE, 1024, "Free memory of NUMA node [n]")             \
    X(NODE_HIT, "node_hit", "", COUNTER, 1, "Local page allocations (numa_hit) [n]")               \
    X(NODE_MISS, "node_miss", "", COUNTER, 1,                                                      \
      "Page allocations for other NUMA nodes (numa_miss) [n]")                                     \
    X(NODE_FOREIGN, "node_foreign", "", COUNTER, 1,                                                \
      "Page allocations gone to other NUMA nodes (numa_foreign) [n]")                              \
    X(NODE_OTHER, "node_other", "", COUNTER, 1,                                                    \
      "Page allocations of remote processes (other_node) [n]")                                     \
    X(NODE_UTILIZATION, "node_utilization", "%", GAUGE, 0.01, "CPU utilisation of NUMA node [n]")

enum lab_metric_id {
#define LAB_METRIC_ID(id, name, unit, kind, scale, title) LAB_METRIC_##id,
    LAB_METRICS(LAB_METRIC_ID)
#undef LAB_METRIC_ID
        LAB_METRIC_COUNT
};

struct lab_metric {
    const char *name, *unit, *title;
    enum lab_metric_kind kind;
    double scale;
};

/* Of a metric's number; the table is constant. */
const struct lab_metric *lab_metric(enum lab_metric_id id);

/* What makes its name tell the unit in files for others: "_bytes"; "" where it does already. */
const char *lab_metric_ending(enum lab_metric_id id);

/* By its name in files; -1 = there is none. */
int lab_metric_find(const char *name);

/* --- why clocks are lowered: the bits of clock_event_reasons, as NVML gives them --- */

struct lab_clock_reason {
    uint64_t bit;
    const char *name;  /* "sw_power_cap" */
    const char *words; /* "power limit" */
    bool harmful;      /* work takes longer than this GPU could do it */
    bool excludes;     /* and not by the GPU's normal state under load: a run is not valid */
};

extern const struct lab_clock_reason lab_clock_reasons[]; /* ends with a bit of 0 */

/* The harmful ones of these bits; of UINT64_MAX: all there are. */
uint64_t lab_clock_harmful(uint64_t reasons);
