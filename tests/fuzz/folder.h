/*
 * folder.h: a folder of this process for targets whose parser reads files; gone at the end. And
 * what a target says of what must hold.
 */
#pragma once

#include "base/err.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/gpulab-fuzz-XXXXXX";

#define require(holds)                                                                             \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A refusal names its cause. */
static inline void require_error(const struct lab_err *err) {
    if (!err->text[0] ||
        (err->code != LAB_ERR_USER && err->code != LAB_ERR_SYSTEM && err->code != LAB_ERR_WRONG)) {
        fprintf(stderr, "error %d without a cause: '%s'\n", (int)err->code, err->text);
        abort();
    }
}

static inline int folder_remove_one(const char *name, const struct stat *info, int kind,
                                    struct FTW *walk) {
    (void)info;
    (void)kind;
    (void)walk;
    return remove(name);
}

static inline void folder_remove(void) {
    nftw(folder, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Its path, made at the first call; `name` is that of the one file that most targets need. */
static inline const char *folder_file(const char *name) {
    static char path[96];
    static bool made;
    if (!made) {
        require(mkdtemp(folder));
        atexit(folder_remove);
        made = true;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline const char *folder_write(const char *name, const void *bytes, size_t size) {
    const char *path = folder_file(name);
    FILE *file = fopen(path, "wb");
    require(file && (size == 0 || fwrite(bytes, 1, size, file) == size) && fclose(file) == 0);
    return path;
}
