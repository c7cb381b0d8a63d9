/*
 * settings.h: NCCL's settings as keys of the workloads that use it. NCCL reads them from its
 * environment when it is loaded and takes whatever it finds there, a wrong value for another one:
 * so they are checked here, and set before anything is loaded (struct lab_workload's
 * `environment`).
 *
 *     struct my_config { …; struct nccl_settings nccl; };
 *     static const struct lab_option options[] = {…, NCCL_OPTIONS(AT(nccl)), {NULL}};
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/option.h"

#include <stddef.h>
#include <stdint.h>

struct nccl_settings { /* "auto" and 0: NCCL's own choice, or the variable that the user has set */
    const char *algo, *proto, *p2p, *shm, *gdr_level, *threads;
    int64_t buffer, channels_min, channels_max;
};

#define NCCL_CHANNELS_MAX 64 /* MAXCHANNELS of 2.28 */

extern const char *const nccl_algos[],
    *const nccl_protos[], *const nccl_switches[], *const nccl_levels[], *const nccl_threads[];

#define NCCL_CHOICE(at, key, field, list, text)                                                    \
    {                                                                                              \
        key, LAB_OPTION_CHOICE, (at) + offsetof(struct nccl_settings, field),                      \
            .fallback = "auto", .choices = (list), .help = (text), .later = true                   \
    }
#define NCCL_COUNT(at, key, field, text)                                                           \
    {                                                                                              \
        key, LAB_OPTION_INT, (at) + offsetof(struct nccl_settings, field),                         \
            .fallback = "0", .max = NCCL_CHANNELS_MAX, .unit = "channels", .help = (text),         \
            .later = true                                                                          \
    }

#define NCCL_OPTIONS(at)                                                                           \
    NCCL_CHOICE(at, "nccl_algo", algo, nccl_algos, "NCCL_ALGO: algorithm of the all-reduce"),      \
        NCCL_CHOICE(at, "nccl_proto", proto, nccl_protos,                                          \
                    "NCCL_PROTO: protocol, from lowest latency to highest bandwidth"),             \
        NCCL_CHOICE(at, "nccl_p2p", p2p, nccl_switches,                                            \
                    "NCCL_P2P_DISABLE: peer access between GPUs"),                                 \
        NCCL_CHOICE(at, "nccl_shm", shm, nccl_switches, "NCCL_SHM_DISABLE: shared host memory"),   \
        NCCL_CHOICE(at, "nccl_gdr_level", gdr_level, nccl_levels,                                  \
                    "NCCL_NET_GDR_LEVEL: largest distance of a network card for GPUDirect RDMA"),  \
        NCCL_CHOICE(at, "nccl_threads", threads, nccl_threads,                                     \
                    "NCCL_NTHREADS: threads per block"),                                           \
        {"nccl_buffer",                                                                            \
         LAB_OPTION_SIZE,                                                                          \
         (at) + offsetof(struct nccl_settings, buffer),                                            \
         .fallback = "0",                                                                          \
         .max = 0x1p30,                                                                            \
         .unit = "bytes",                                                                          \
         .help = "NCCL_BUFFSIZE: buffer between two GPUs, 64KiB to 1GiB; 0 = NCCL's own",          \
         .later = true},                                                                           \
        NCCL_COUNT(at, "nccl_channels_min", channels_min,                                          \
                   "NCCL_MIN_NCHANNELS: minimum of channels; 0 = NCCL's own"),                     \
        NCCL_COUNT(at, "nccl_channels_max", channels_max,                                          \
                   "NCCL_MAX_NCHANNELS: maximum of channels; 0 = NCCL's own")

/* What the rows' own bounds don't say. */
int nccl_settings_check(const struct nccl_settings *settings, struct lab_err *err);

/* "NCCL_ALGO=tree", …, of those that aren't left to NCCL; NULL-terminated, in the arena. */
const char *const *nccl_settings_words(const struct nccl_settings *settings,
                                       struct lab_arena *arena);
