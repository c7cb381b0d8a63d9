/*
 * vendor/nvrtc.h: NVRTC, the compiler of CUDA C as a library, as far as we use it. Rows as in
 * vendor/cuda.h; every function returns a lab_nvrtc_result unless it stands below the table.
 */
#pragma once

#include "base/dl.h"

#include <stdbool.h>
#include <stddef.h>

typedef int lab_nvrtc_result; /* 0 = success */
typedef struct lab_nvrtc_program_st *lab_nvrtc_program;

enum { LAB_NVRTC_SUCCESS = 0 };

#define LAB_NVRTC_ESSENTIAL "kernels can't be compiled, so CUDA devices only copy and multiply"
#define LAB_NVRTC_ARCHS     "whether it knows this GPU's architecture is found only by compiling"

#define LAB_NVRTC_FUNCTIONS(X)                                                                     \
    X(nvrtcVersion, LAB_NVRTC_ESSENTIAL, (int *ret_major, int *ret_minor))                         \
    X(nvrtcCreateProgram, LAB_NVRTC_ESSENTIAL,                                                     \
      (lab_nvrtc_program * ret_program, const char *source, const char *name, int header_count,    \
       const char *const *headers, const char *const *header_names))                               \
    X(nvrtcDestroyProgram, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program * program))                     \
    X(nvrtcCompileProgram, LAB_NVRTC_ESSENTIAL,                                                    \
      (lab_nvrtc_program program, int option_count, const char *const *options))                   \
    X(nvrtcGetProgramLogSize, LAB_NVRTC_ESSENTIAL,                                                 \
      (lab_nvrtc_program program, size_t * ret_bytes))                                             \
    X(nvrtcGetProgramLog, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program program, char *log))             \
    X(nvrtcGetCUBINSize, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program program, size_t * ret_bytes))     \
    X(nvrtcGetCUBIN, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program program, char *cubin))                \
    X(nvrtcGetPTXSize, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program program, size_t * ret_bytes))       \
    X(nvrtcGetPTX, LAB_NVRTC_ESSENTIAL, (lab_nvrtc_program program, char *ptx))                    \
    X(nvrtcGetNumSupportedArchs, LAB_NVRTC_ARCHS, (int *ret_count))                                \
    X(nvrtcGetSupportedArchs, LAB_NVRTC_ARCHS, (int *ret_architectures))

struct lab_nvrtc {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_NVRTC_MEMBER(name, effect, parameters) lab_nvrtc_result(*name) parameters;
    LAB_NVRTC_FUNCTIONS(LAB_NVRTC_MEMBER)
#undef LAB_NVRTC_MEMBER
    const char *(*nvrtcGetErrorString)(lab_nvrtc_result result); /* may be NULL */
};

/*
 * Loads it at the first call, from any thread; never NULL, but the functions may be. Of several,
 * one of the driver's own major version goes first: what it compiles, that driver can load.
 *
 * nvrtcCompileProgram calls cuInit where there is a driver (seen with 13.0), so a process that must
 * not initialise CUDA must not compile, and one that does should have opened its device before:
 * the driver reads its environment only then.
 */
const struct lab_nvrtc *lab_nvrtc_load(const struct lab_dl_report **ret_report);

/* All that compiling needs is there. */
bool lab_nvrtc_ready(void);

/* As 13000 for 13.0; 0 where there is none. */
int lab_nvrtc_version(void);
