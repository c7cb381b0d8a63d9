/*
 * kernel.h: one launch as a workload. What gemm, softmax and flash_attention_v2 share: memory for
 * the tensors, random inputs, a stretch of launches, and rows of the output against double
 * precision. The state of such a workload is a `struct kernel`, and these functions are its slots.
 */
#pragma once

#include "workload/workload.h"

#define KERNEL_TENSORS (LAB_LAUNCH_INPUTS + 1)

/* The row of the option table that all of them have; `field` is a const char * of their config. */
#define KERNEL_CONFIG_OPTION(type, field)                                                          \
    {                                                                                              \
        LAB_WORKLOAD_CONFIG, LAB_OPTION_STRING, offsetof(type, field),                             \
            .fallback = LAB_CONFIG_TUNED, .suggestions = kernel_config_words,                      \
            .value_name = "CONFIG", .later = true,                                                 \
            .help = "configuration: tuned (where available, see 'gpulab tune'), default, or "      \
                    "name=value,…"                                                               \
    }
extern const char *const kernel_config_words[];

/* Row `row` of the output, the tensor seen as a matrix, from the definition. */
typedef void kernel_row(const struct lab_launch *launch, const float *const *in, int64_t row,
                        double *out);

/* The launch that a config stands for, without data: the slot of the workload. */
typedef void kernel_launch(const void *config, struct lab_launch *ret_launch);

/* `text` is that option's. */
int kernel_open(kernel_launch *launch_of, const void *config, const char *text,
                kernel_row *reference, const struct lab_rank *rank, void **ret_state,
                struct lab_err *err);
void kernel_close(void *state);
int kernel_run(void *state, int count, struct lab_iteration *records, struct lab_err *err);
int kernel_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);
int kernel_configure(void *state, const struct lab_tuning *tuning, struct lab_err *err);

/* What it does and holds, counted from the launch. */
void kernel_cost(kernel_launch *launch_of, const void *config, double samples,
                 struct lab_workload_cost *ret_cost);
