/* fake_driver.h: what the files of the fake libcuda share. */
#pragma once

#include "fake/fake_cuda.h"

#define PROTOTYPE(name, suffix, version, effect, parameters)                                       \
    FAKE_EXPORT lab_cu_result name##suffix parameters;
LAB_CUDA_FUNCTIONS(PROTOTYPE)
#undef PROTOTYPE

enum {
    FAKE_INVALID_VALUE = 1,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_NOT_REGISTERED = 713,
    FAKE_CAPTURE_UNSUPPORTED = 900,
};

#define FAKE_BEGIN(name)                                                                           \
    do {                                                                                           \
        int injected = fake_injected(#name);                                                       \
        if (injected)                                                                              \
            return injected;                                                                       \
    } while (0)

#define FAKE_BEGIN_IN_CONTEXT(name)                                                                \
    do {                                                                                           \
        FAKE_BEGIN(name);                                                                          \
        if (!fake_current)                                                                         \
            return FAKE_INVALID_CONTEXT;                                                           \
    } while (0)
