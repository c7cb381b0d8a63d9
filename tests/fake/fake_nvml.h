/*
 * fake_nvml.h: a machine with 1 to 16 GPUs that nobody has, as NVML shows it: for tests of
 * everything that watches GPUs, and for `gpulab top --demo`. It plays a script:
 *
 *     GPULAB_FAKE_NVML="gpus=4; memory_total=24576; memory=12800,12750,12825; power=200~650/20"
 *     GPULAB_FAKE_NVML=/path/to/a/file      the same statements, one to a line; # begins a comment
 *     GPULAB_FAKE_NVML=demo                 the show that comes with it
 *
 * Without it the GPUs are those of FAKE_CUDA_GPUS and FAKE_CUDA_MIG (fake_cuda.h), standing still.
 *
 * Statements are `key=value`. Values of GPUs are separated by commas; the last one holds for all
 * GPUs that follow. Time is in seconds since the library was loaded. A value is one of
 *
 *     42                    always
 *     20~95/30              goes up and down between 20 and 95, smoothly, about once in 30 s; each
 *                           GPU at another time
 *     10@0:80@5:10@9        10 from the start, 80 from 5 s on, 10 from 9 s on
 *     -                     this GPU doesn't have it (NVML says: not supported)
 *     ?                     nonsense: what drivers give when they have nothing to say
 *
 *   gpus        how many                          name           "NVIDIA H200"
 *   memory_total (1024), memory, reserved   MiB   utilization, memory_utilization   %
 *   power, power_limit               W; `power` also makes the energy
 *   temperature, memory_temperature  °C           fan, encoder, decoder             %
 *   sm_clock, memory_clock           MHz          reasons        bits, as NVML has them (4 or 0x4)
 *   pstate                                        recovery       the recovery action
 *   graphics, sm, occupancy, tensor, dram, fp64, fp32, fp16, integer   % (GPM)
 *   gpm                              1 or 0: has it GPM
 *   pcie_tx, pcie_rx, nvlink_tx, nvlink_rx   MiB/s, of GPM and of the byte counters
 *   pcie_gen, pcie_width, links      the PCIe link, and the number of NVLinks
 *   pcie_gen_max, pcie_width_max     what the link could do; links_active of the NVLinks
 *   persistence, ecc                 1 or 0: is the mode on; power_default W, sm_clock_max MHz
 *   fabric, clique                   state of the registration (3 = completed), number
 *   replays, ecc_corrected, ecc_uncorrected, rows_corrected, rows_uncorrected, rows_pending,
 *   rows_failed                      counts
 *   held_power, held_sync, held_thermal, held_hw_thermal, held_brake   % of the time; `reasons`
 *                                                                      alone
 *                                    says what is so at the moment
 *   node                             the NUMA node
 *
 *   seed=7                           another show of the same kind
 *   mig=1:3                          GPU 1 has three MIG instances; several with commas
 *   process=0:self:8000:85:C         GPU, pid (or self, parent, children: those that this process
 *                                    has just then, leaves: its descendants without children), MiB,
 *                                    SM %, C compute, G graphics, M under MPS;
 *                                    of MIG GPUs 1.0 = instance 0; several with commas
 *   xid=1:79@12                      GPU 1 reports Xid 79 at 12 s, with @+12 so long after events
 *                                    were asked for; several with commas
 *   storm=1                          the wait for events returns at once, with nothing in it
 *   driver=580                       functions that came after that driver are missing, and those
 *                                    that are gone since; 535 writes process entries of 32 bytes
 *   missing=NAME,NAME                these too
 *   wrap=32                          counters have so many bits
 *
 * Faults; several with commas:
 *
 *   lost=1@5..9                      GPU 1 is lost from 5 s to 9 s, and for those who began NVML
 *                                    before then it stays so
 *   gone=0@5..9                      likewise, but NVML doesn't even list it: the others move up
 *   fail=NAME:999@3x2/1              the calls 3 and 4 of that function for GPU 1 fail with 999;
 *                                    without @3x2 all, with @3 all from the third on; without /1
 *                                    for any GPU
 *   hang=NAME:2.5@3/1                the third call of that function for GPU 1 takes 2.5 s
 *   garbage=1                        every value of GPU 1 is `?`
 *
 * FAKE_CUDA_FAIL works too. Tests that are linked with nothing of this reach for the functions
 * below through dlsym.
 */
#pragma once

#include "fake/fake_cuda.h"
#include "vendor/nvml.h"

#include <math.h>

/* --- for tests; not while a call is under way --- */

FAKE_EXPORT int lab_fake_nvml(const char *function); /* has this driver that function? */
/* Plays another script from the start; the message, or NULL. NVML stays initialised. */
FAKE_EXPORT const char *lab_fake_nvml_play(const char *script);
FAKE_EXPORT void lab_fake_nvml_set_time(double seconds); /* stands still there; NaN = runs */
FAKE_EXPORT int lab_fake_nvml_calls(const char *function, int gpu); /* -1 = of all */
FAKE_EXPORT int lab_fake_nvml_misuse(void); /* calls with handles of an ended session */

/* --- the script --- */

/* X(key, what it is without a statement) */
#define FAKE_VALUES(X)                                                                             \
    X(memory_total, NAN)                                                                           \
    X(memory, 0)                                                                                   \
    X(reserved, 0)                                                                                 \
    X(utilization, 0)                                                                              \
    X(memory_utilization, 0)                                                                       \
    X(power, 100)                                                                                  \
    X(power_limit, 700)                                                                            \
    X(temperature, 40)                                                                             \
    X(memory_temperature, 45)                                                                      \
    X(fan, 30)                                                                                     \
    X(encoder, 0)                                                                                  \
    X(decoder, 0)                                                                                  \
    X(sm_clock, 1980)                                                                              \
    X(memory_clock, 3201)                                                                          \
    X(reasons, 0)                                                                                  \
    X(pstate, 0)                                                                                   \
    X(recovery, 0)                                                                                 \
    X(graphics, 0)                                                                                 \
    X(sm, 0)                                                                                       \
    X(occupancy, 0)                                                                                \
    X(tensor, 0)                                                                                   \
    X(dram, 0)                                                                                     \
    X(fp64, 0)                                                                                     \
    X(fp32, 0)                                                                                     \
    X(fp16, 0)                                                                                     \
    X(integer, 0)                                                                                  \
    X(gpm, 1)                                                                                      \
    X(pcie_tx, 0)                                                                                  \
    X(pcie_rx, 0)                                                                                  \
    X(nvlink_tx, 0)                                                                                \
    X(nvlink_rx, 0)                                                                                \
    X(pcie_gen, 5)                                                                                 \
    X(pcie_width, 16)                                                                              \
    X(links, 18)                                                                                   \
    X(replays, 0)                                                                                  \
    X(ecc_corrected, 0)                                                                            \
    X(ecc_uncorrected, 0)                                                                          \
    X(rows_corrected, 0)                                                                           \
    X(rows_uncorrected, 0)                                                                         \
    X(rows_pending, 0)                                                                             \
    X(rows_failed, 0)                                                                              \
    X(held_power, 0)                                                                               \
    X(held_sync, 0)                                                                                \
    X(held_thermal, 0)                                                                             \
    X(held_hw_thermal, 0)                                                                          \
    X(held_brake, 0)                                                                               \
    X(pcie_gen_max, 5)                                                                             \
    X(pcie_width_max, 16)                                                                          \
    X(persistence, 1)                                                                              \
    X(ecc, 1)                                                                                      \
    X(power_default, 700)                                                                          \
    X(sm_clock_max, 1980)                                                                          \
    X(links_active, 18)                                                                            \
    X(fabric, 3)                                                                                   \
    X(clique, 0)                                                                                   \
    X(node, 0)

enum fake_key {
#define FAKE_KEY(key, fallback) FAKE_##key,
    FAKE_VALUES(FAKE_KEY)
#undef FAKE_KEY
        FAKE_KEY_COUNT
};

enum fake_value_kind { FAKE_CONSTANT, FAKE_WAVE, FAKE_STEPS, FAKE_ABSENT, FAKE_NONSENSE };

#define FAKE_STEPS_MAX 8

struct fake_value {
    enum fake_value_kind kind;
    double low, high, period_s; /* a constant is `low` */
    struct {
        double value, from_s;
    } steps[FAKE_STEPS_MAX];
    int step_count;
};

#define FAKE_LIST_MAX 160
#define FAKE_MIG_MAX  7
#define FAKE_CHILDREN 0xfffffffeu /* in place of a pid */
#define FAKE_LEAVES   0xfffffffdu

struct fake_process {
    int gpu, instance; /* -1 = the whole GPU */
    unsigned pid;
    double memory_mib, sm_percent;
    char kind; /* 'C', 'G', 'M' */
};

struct fake_xid {
    int gpu;
    unsigned code;
    double at_s;
    bool relative; /* to when its events were asked for */
};

struct fake_away {
    int gpu;
    bool unlisted;
    double from_s, until_s;
};

struct fake_fault {
    char function[64];
    int gpu; /* -1 = any */
    int code;
    double hang_s;
    int from, times; /* calls, from 1; 0 times = all from there on */
};

struct fake_script {
    bool scripted; /* false: FAKE_CUDA_… say what there is */
    int gpus, driver, wrap_bits, seed;
    bool storm;
    char name[64];
    char missing[512];
    struct fake_value values[FAKE_GPUS_MAX][FAKE_KEY_COUNT];
    int mig[FAKE_GPUS_MAX];
    struct fake_process processes[FAKE_LIST_MAX];
    int process_count;
    struct fake_xid xids[FAKE_LIST_MAX];
    int xid_count;
    struct fake_away away[FAKE_LIST_MAX];
    int away_count;
    struct fake_fault faults[FAKE_LIST_MAX];
    int fault_count;
};

extern struct fake_script fake_script;

/* Reads statements over the defaults; NULL, or what is wrong. */
const char *fake_script_read(const char *text, struct fake_script *script);

/* --- values --- */

double fake_now(void);
int fake_gpu_count(void); /* of the script, listed or not */
int fake_instances(int gpu);

/* 0, or LAB_NVML_NOT_SUPPORTED; NaN = nonsense. */
int fake_at(int gpu, enum fake_key key, double *ret_value);
int fake_sum(int gpu, enum fake_key key, double from_s, double until_s, double *ret_sum);
int fake_unsigned(int gpu, enum fake_key key, double scale, unsigned *ret_value);

/* --- calls --- */

enum fake_function {
#define FAKE_FUNCTION(name, effect, parameters) FAKE_##name,
    LAB_NVML_FUNCTIONS(FAKE_FUNCTION)
#undef FAKE_FUNCTION
        FAKE_FUNCTION_COUNT
};

struct lab_nvml_device_st {
    int gpu, instance; /* instance -1 = the whole GPU */
    unsigned session;
};

/* Counts the call, plays faults; what it returns, or 0 = go on. */
int fake_begin(enum fake_function function, int gpu);
int fake_begin_on(enum fake_function function, lab_nvml_device device);

#define BEGIN(name)                                                                                \
    do {                                                                                           \
        int begin_code = fake_begin(FAKE_##name, -1);                                              \
        if (begin_code)                                                                            \
            return begin_code;                                                                     \
    } while (0)

#define BEGIN_ON(name, device)                                                                     \
    do {                                                                                           \
        int begin_code = fake_begin_on(FAKE_##name, device);                                       \
        if (begin_code)                                                                            \
            return begin_code;                                                                     \
    } while (0)

#define FAKE_PROTOTYPE(name, effect, parameters) FAKE_EXPORT lab_nvml_result name parameters;
LAB_NVML_FUNCTIONS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

lab_nvml_device fake_handle(int gpu, int instance); /* in this session */
