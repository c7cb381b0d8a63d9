/*
 * compiler.c: NVRTC's version without NVRTC. Loading it takes 10 to 40 ms, for a hundred megabytes
 * with 200,000 relocations: far longer than to look up what was tuned, which holds for a compiler's
 * version. So which library was found, and its version, is kept among the kernels, as long as the
 * places where libraries are looked for and that file stay as they are.
 */
#include "device/cuda/compiler.h"

#include "base/str.h"
#include "device/kernel_cache.h"
#include "vendor/nvrtc.h"
#include "vendor/vendor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TITLE "the version of NVRTC"

static const char *key_of(const char *places, struct lab_arena *arena) {
    return lab_arena_printf(arena, TITLE ": %s", places);
}

/* Which file it is: another one has another size or time. False = it isn't there. */
static bool describe_file(const char *path, struct lab_str *out) {
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    lab_str_printf(out, "%lld %lld.%09ld %s", (long long)info.st_size,
                   (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, path);
    return true;
}

int cuda_compiler_recall(const char *folder, const char *places, struct lab_arena *arena) {
    char *text = NULL, *rest;
    size_t length;
    int version = 0;
    if (lab_kernel_cache_load(folder, key_of(places, arena), arena, &text, &length) || !length)
        return 0;
    text = lab_arena_printf(arena, "%.*s", (int)length, text);
    long known = strtol(text, &rest, 10);
    const char *path = strchr(text, '/');
    LAB_AUTO(str, now);
    if (*rest == ' ' && path && describe_file(path, &now) && lab_str_equal(now.text, rest + 1))
        version = (int)known;
    return version;
}

void cuda_compiler_remember(const char *folder, const char *places, const char *path, int version,
                            struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%d ", version);
    if (path && path[0] == '/' && describe_file(path, &text))
        lab_kernel_cache_store(folder, key_of(places, arena), TITLE, text.text, text.length);
}

int cuda_compiler_version(const char *driver, struct lab_arena *arena) {
    const char *folder = lab_kernel_cache_folder(arena);
    const char *places = lab_arena_printf(arena, "driver %s, %s", driver, lab_vendor_places(arena));
    int version = folder ? cuda_compiler_recall(folder, places, arena) : 0;
    if (version)
        return version;
    const struct lab_dl_report *report;
    lab_nvrtc_load(&report);
    version = lab_nvrtc_version();
    if (folder && version)
        cuda_compiler_remember(folder, places, report->path, version, arena);
    return version;
}
