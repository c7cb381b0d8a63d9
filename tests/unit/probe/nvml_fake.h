/*
 * nvml_fake.h: the fake NVML (tests/fake/fake_nvml.h), which a test program puts in front of any real
 * one by starting itself anew, and its controls.
 */
#pragma once

#include "test.h"

#include "vendor/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    const char *(*play)(const char *script);
    void (*set_time)(double seconds);
    int (*calls)(const char *function, int gpu);
    int (*misuse)(void);
} fake;

/* Call first in main: returns with the fake in the loader's path and its controls at hand. */
static inline void fixture_use_fake(char **argv) {
    if (!getenv("GPULAB_FAKE_NVML")) {
        setenv("LD_LIBRARY_PATH", LAB_TEST_BINARY_DIR "/fake", 1);
        setenv("GPULAB_FAKE_NVML", "gpus=2", 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
        execv("/proc/self/exe", argv);
        abort();
    }
    const struct lab_dl_report *report;
    lab_nvml_load(&report);
    if (!report->handle)
        abort();
    const struct {
        const char *name;
        void *slot;
    } controls[] = {{"lab_fake_nvml_play", &fake.play},
                    {"lab_fake_nvml_set_time", &fake.set_time},
                    {"lab_fake_nvml_calls", &fake.calls},
                    {"lab_fake_nvml_misuse", &fake.misuse}};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        void *address = dlsym(report->handle, controls[i].name);
        memcpy(controls[i].slot, &address, sizeof address);
    }
    lab_nvml_open(NULL); /* so that tests count the calls of their own probes only */
}
