/*
 * tunable.h: the ways in which a backend can do an op. A kernel has a few parameters with a few
 * choices each; a choice for each of them is a configuration. Which are legal depends on the launch
 * and the device, and the backend says why one isn't. The tuner tries them, a launch carries one
 * (`tuning` in struct lab_launch), and none means the backend's default.
 *
 * All of it is known without opening the device, so that a runner, which never does, can look up
 * what was tuned before. A configuration's text, "block_q=64,block_k=128", stays valid as long as
 * the kernel has these parameters and choices.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/device.h"

#include <stdint.h>

struct lab_tunable_place {
    const struct lab_machine *machine;
    const struct lab_device_ref *ref;
};

struct lab_tunable_parameter {
    const char *name;       /* "block_q" */
    const char *help;       /* what it is: "queries of a block" */
    const int32_t *choices; /* rising */
    int choice_count;
};

#define LAB_CHOICES(...)                                                                           \
    (const int32_t[]){__VA_ARGS__}, (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

struct lab_tunable {
    const char *kernel; /* for people and caches: "cpu flash_attention" */
    const char
        *version; /* another one whenever the kernel's code is: a number, a hash of its text */
    const struct lab_tunable_parameter *parameters;
    int count; /* at most LAB_TUNING_VALUES */
    /* what a launch without a tuning gets: a legal one */
    void (*fallback)(const struct lab_tunable_place *place, const struct lab_launch *launch,
                     struct lab_tuning *ret_tuning);
    /* whether choices that exist go together, for this launch here; the error says why not. NULL =
     * they always do */
    int (*check)(const struct lab_tunable_place *place, const struct lab_launch *launch,
                 const struct lab_tuning *tuning, struct lab_err *err);
};

/* What can be tuned of a launch (tensors may lack data); NULL = nothing there. */
const struct lab_tunable *lab_tunable_find(const struct lab_tunable_place *place,
                                           const struct lab_launch *launch);

/* --- configurations --- */

/* All combinations of choices, legal or not; number `index` of them, the last parameter fastest. */
int64_t lab_tunable_size(const struct lab_tunable *tunable);
struct lab_tuning lab_tunable_at(const struct lab_tunable *tunable, int64_t index);

bool lab_tuning_equal(const struct lab_tuning *a, const struct lab_tuning *b);

/* Appends "block_q=64,block_k=128"; "default" for none. */
void lab_tuning_write(const struct lab_tunable *tunable, const struct lab_tuning *tuning,
                      struct lab_str *out);

/*
 * Reads that text; "default" is none. Each parameter once, in any order; one that isn't named has
 * its default's value for this launch. Errors are LAB_ERR_USER and name what there is.
 */
int lab_tuning_parse(const struct lab_tunable *tunable, const struct lab_tunable_place *place,
                     const struct lab_launch *launch, const char *text,
                     struct lab_tuning *ret_tuning, struct lab_err *err);

/* LAB_ERR_UNSUPPORTED with the reason unless this launch can be done so here. None always can. */
int lab_tuning_check(const struct lab_tunable *tunable, const struct lab_tunable_place *place,
                     const struct lab_launch *launch, const struct lab_tuning *tuning,
                     struct lab_err *err);

/* --- what a tuned configuration holds for --- */

/*
 * Launches that share their tuning: appends the op, its sizes and its flags. Lengths are rounded up
 * to 1, 1.5 or 2 times a power of two: "flash_attention b4 s1024 h16 g16 w64 causal".
 */
void lab_tunable_shape_class(const struct lab_launch *launch, struct lab_str *out);

/* The same with the dtype: what a launch is called among those that were tuned. */
void lab_tunable_shape_name(const struct lab_launch *launch, struct lab_str *out);

struct lab_device_identity { /* what speed depends on; texts in the arena, "" = unknown or none */
    const char *model;       /* "AMD EPYC 9354", "NVIDIA H200" */
    int compute_units;       /* cores or multiprocessors; 0 = unknown */
    const char *driver;      /* its version */
    const char *compiler;    /* NVRTC's version; for CPUs the instruction set and the BLAS */
    double power_limit_w;    /* 0 = unknown or none */
};

int lab_device_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                        struct lab_device_identity *ret_identity, struct lab_err *err);
