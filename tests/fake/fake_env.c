/* fake_env.c: what both fake libraries read from the environment. */
#include "fake/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t fake_number(const char *variable, int64_t fallback) {
    const char *text = getenv(variable);
    return text && *text ? strtoll(text, NULL, 10) : fallback;
}

int fake_injected(const char *function) {
    const char *at = getenv("FAKE_CUDA_FAIL"), *hangs = getenv("FAKE_CUDA_HANG");
    size_t length = strlen(function);
    while (hangs && strcmp(hangs, function) == 0)
        pause();
    while (at && *at) {
        if (strncmp(at, function, length) == 0 && at[length] == ':')
            return (int)strtol(at + length + 1, NULL, 10);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return 0;
}

void fake_uuid(int gpu, int instance, struct lab_cu_uuid *ret_uuid) {
    memset(ret_uuid, 0, sizeof *ret_uuid);
    ret_uuid->bytes[3] = (char)(instance < 0 ? gpu : 16 * gpu + instance);
    ret_uuid->bytes[15] = (char)(instance < 0 ? 0xab : 0xcd);
}

void fake_uuid_text(int gpu, int instance, char ret_text[48]) {
    struct lab_cu_uuid uuid;
    fake_uuid(gpu, instance, &uuid);
    snprintf(ret_text, 48, "%s-000000%02x-0000-0000-0000-0000000000%02x",
             instance < 0 ? "GPU" : "MIG", (unsigned char)uuid.bytes[3],
             (unsigned char)uuid.bytes[15]);
}
