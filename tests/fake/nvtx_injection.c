/*
 * nvtx_injection.c: a library as profilers name it in NVTX_INJECTION64_PATH. It writes each range
 * that is opened or closed as a line to the file that FAKE_NVTX_LOG names: "THREAD push NAME",
 * "THREAD pop".
 *
 *   FAKE_NVTX_ONLY=ex      takes ranges with attributes alone, as a tool may
 *   FAKE_NVTX_ONLY=nothing takes none at all
 *   FAKE_NVTX_FAIL=1       says that it can't start
 */
#include "vendor/nvtx.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file = -1;
static _Thread_local int depth;

/* One write each: lines of several threads don't mix. */
static void tell(const char *what, const char *name) {
    char line[256];
    int length =
        snprintf(line, sizeof line, "%d %s%s%s\n", (int)gettid(), what, *name ? " " : "", name);
    if (write(file, line, (size_t)length) != length)
        abort();
}

static int push(const char *message) {
    tell("push", message);
    return depth++;
}

static int push_ex(const struct lab_nvtx_attributes *attributes) {
    if (attributes->version != LAB_NVTX_VERSION || attributes->size != sizeof *attributes ||
        attributes->message_kind != LAB_NVTX_MESSAGE_ASCII)
        abort();
    return push(attributes->message);
}

static int pop(void) {
    tell("pop", "");
    return --depth;
}

static int fill(const struct lab_nvtx_callbacks *callbacks) {
    const char *only = getenv("FAKE_NVTX_ONLY");
    lab_nvtx_function **table;
    unsigned slots;
    /* as profilers do: every group must be there, and be of the size that they know */
    static const unsigned known[LAB_NVTX_MODULES] = {0, 16, 9, 15, 7, 16, 7};
    for (int module = LAB_NVTX_CORE; module < LAB_NVTX_MODULES; module++)
        if (!callbacks->get_table((enum lab_nvtx_module)module, &table, &slots) ||
            slots != known[module] || table[0] || !table[slots - 1])
            return 0;
    if (only && strcmp(only, "nothing") == 0)
        return 1;
    callbacks->get_table(LAB_NVTX_CORE, &table, &slots);
    if (!only)
        *table[LAB_NVTX_RANGE_PUSH] = (lab_nvtx_function)push;
    *table[LAB_NVTX_RANGE_PUSH_EX] = (lab_nvtx_function)push_ex;
    *table[LAB_NVTX_RANGE_POP] = (lab_nvtx_function)pop;
    return 1;
}

__attribute__((visibility("default"))) lab_nvtx_initialize InitializeInjectionNvtx2;

int InitializeInjectionNvtx2(lab_nvtx_get_export *get_export) {
    const struct lab_nvtx_callbacks *callbacks = get_export(LAB_NVTX_EXPORT_CALLBACKS);
    const struct lab_nvtx_version_info *version = get_export(LAB_NVTX_EXPORT_VERSION);
    const char *path = getenv("FAKE_NVTX_LOG");
    if (getenv("FAKE_NVTX_FAIL") || !path || get_export(0) || !callbacks || !version ||
        callbacks->size < sizeof *callbacks || version->version != LAB_NVTX_VERSION)
        return 0;
    version->set_tool_version(LAB_NVTX_VERSION);
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return file >= 0 && fill(callbacks);
}
