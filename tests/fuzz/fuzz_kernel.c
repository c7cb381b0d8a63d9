/*
 * fuzz_kernel.c: a file of the kernel cache is a miss, or the very code of its key and sum; the list
 * shows it either way, and code that is stored in its place is loaded. A database is never replaced.
 * covers: src/device/kernel_cache.c
 */
#include "base/str.h"
#include "device/kernel_cache.h"
#include "folder.h"

#include <string.h>

#define KEY "layer_norm bf16 sm_90"

/* Or its WAL or journal. */
static bool is_database(const uint8_t *data, size_t size) {
    static const struct {
        size_t length;
        const char *bytes;
    } heads[] = {{16, "SQLite format 3"},
                 {4, "\x37\x7f\x06\x82"},
                 {4, "\x37\x7f\x06\x83"},
                 {8, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"}};
    bool found = false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        found |= size >= heads[i].length && memcmp(data, heads[i].bytes, heads[i].length) == 0;
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_kernel_cache_entry *entries;
    char *code = NULL;
    size_t length = 0;
    int count;
    int64_t bytes;
    folder_file("");
    lab_kernel_cache_store(folder, KEY, "title", "code", 4);
    require(lab_kernel_cache_list(folder, &arena, &entries, &count, &err) == 0 && count == 1);
    folder_write(entries->file, data, size);
    bool hit = lab_kernel_cache_load(folder, KEY, &arena, &code, &length) == 0;
    require(lab_kernel_cache_list(folder, &arena, &entries, &count, &err) == 0 && count == 1);
    require(entries->size_bytes == (int64_t)size && (!hit || !entries->damaged));
    require(entries->damaged == lab_str_equal(entries->title, "damaged") || !entries->damaged);
    if (hit)
        require(length <= size && memcmp(code, data + size - length, length) == 0);
    lab_kernel_cache_store(folder, KEY, "title", (const char *)data, size);
    bool stored = lab_kernel_cache_load(folder, KEY, &arena, &code, &length) == 0;
    require(stored != is_database(data, size));
    require(!stored || (length == size && (size == 0 || memcmp(code, data, size) == 0)));
    require(lab_kernel_cache_clear(folder, &count, &bytes, &err) == 0 && count == 1);
    return 0;
}
