/*
 * compile.h: variants of kernels as code for a GPU: by NVRTC, or from the cache on disk. Needs no
 * GPU and no driver.
 *
 * Code is kept for the life of the process and shared by its devices. Variants that will be needed
 * can be asked for ahead: threads then compile them beside whatever else goes on.
 */
#pragma once

#include "base/err.h"
#include "device/cuda/plan/plan.h"

struct lab_kernel_file { /* a file of kernels/, as it was when the program was built */
    const char *name, *text;
    size_t length;
};
extern const struct lab_kernel_file lab_kernel_files[]; /* ends with a NULL name; generated */

struct cuda_code {
    const char *bytes; /* a cubin, or PTX where the compiler doesn't know the architecture */
    size_t length;
};

/*
 * The variant's code for a compute capability (90 for 9.0); waits for it where it is on its way.
 * The error names the variant and gives the compiler's first complaints; its whole log goes to the
 * debug log. Any thread may call.
 */
int cuda_code_get(const struct cuda_variant *variant, int capability, struct cuda_code *ret_code,
                  struct lab_err *err);

/* Has threads make the code, if it isn't there yet. What fails is told by cuda_code_get. */
void cuda_code_request(const struct cuda_variant *variant, int capability);

/* Waits until the threads have nothing left to do. */
void cuda_code_settle(void);

/* Forgets all code, for tests; nobody may use any. */
void cuda_code_forget(void);

/*
 * Compiles without looking at what is known or cached: `architecture` is "sm_90" or "sm_90a" for a
 * cubin, "compute_90" for PTX. The code is the caller's, by lab_mem_free.
 */
int cuda_compile(const struct cuda_variant *variant, const char *architecture, char **ret_code,
                 size_t *ret_length, struct lab_err *err);

/*
 * What to compile for: "sm_90" where the compiler knows that GPU, else "compute_NN" of the newest
 * before it, which the driver translates. `known` are the compiler's, rising; none = unknown.
 */
void cuda_architecture(int capability, const int *known, int count, char ret_name[16]);

/* What a kernel file's code depends on, as a hash: another one whenever its text is, or that of a
 * header that it includes, directly or through another one. */
uint64_t cuda_source_hash(const char *file);
