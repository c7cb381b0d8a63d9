/*
 * kernel_cache.c: an entry's file is four lines and the code:
 *
 *     gpulab kernel 1
 *     <title>
 *     <key>
 *     <length of the code> <its FNV-1a, 16 hexadecimal digits>
 */
#include "device/kernel_cache.h"

#include "base/file/file.h"
#include "base/file/out_file.h"
#include "base/file/own.h"
#include "base/list.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC           "gpulab kernel 1"
#define ENDING          ".kernel"
#define NAME_DIGITS     32
#define ENTRY_MAX_BYTES ((size_t)64 << 20)

uint64_t lab_kernel_cache_hash(const char *bytes, size_t length) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
    return hash;
}

const char *lab_kernel_cache_folder(struct lab_arena *arena) {
    const char *cache = getenv("XDG_CACHE_HOME");
    if (cache && *cache == '/') /* a relative one is to be ignored, says the specification */
        return lab_arena_printf(arena, "%s/gpulab/kernels", cache);
    const char *home = getenv("HOME");
    return home && *home == '/' ? lab_arena_printf(arena, "%s/.cache/gpulab/kernels", home) : NULL;
}

/* --- one entry --- */

/* Two hashes, the second of the key with its length behind it: 128 bits that no two keys share by
 * chance; and the key stands in the file. */
static const char *entry_path(const char *folder, const char *key, struct lab_arena *arena) {
    size_t length = strlen(key);
    uint64_t first = lab_kernel_cache_hash(key, length);
    const char *longer = lab_arena_printf(arena, "%zu:%s", length, key);
    return lab_arena_printf(arena, "%s/%016" PRIx64 "%016" PRIx64 ENDING, folder, first,
                            lab_kernel_cache_hash(longer, strlen(longer)));
}

/* Ends the line at *text and moves behind it; NULL where there is none. */
static char *cut_line(char **text) {
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    return line;
}

struct entry {
    const char *title, *key;
    char *code;
    size_t length;
};

/* Takes the file's text apart, in place; -1 where it isn't whole. */
static int parse(char *text, size_t length, struct entry *ret_entry) {
    char *rest = text, *magic = cut_line(&rest);
    if (!magic || strcmp(magic, MAGIC) != 0)
        return -1;
    char *title = cut_line(&rest), *key = title ? cut_line(&rest) : NULL;
    char *sums = key ? cut_line(&rest) : NULL;
    size_t code_length;
    uint64_t hash;
    int end = 0;
    if (!sums || sscanf(sums, "%zu %" SCNx64 "%n", &code_length, &hash, &end) != 2 || sums[end])
        return -1;
    if (code_length != length - (size_t)(rest - text) ||
        lab_kernel_cache_hash(rest, code_length) != hash)
        return -1;
    *ret_entry = (struct entry){title, key, rest, code_length};
    return 0;
}

int lab_kernel_cache_load(const char *folder, const char *key, struct lab_arena *arena,
                          char **ret_code, size_t *ret_length) {
    if (!folder)
        return -1;
    const char *path = entry_path(folder, key, arena);
    char *text;
    size_t length;
    struct entry entry;
    if (lab_file_read(path, ENTRY_MAX_BYTES, arena, &text, &length, NULL) ||
        parse(text, length, &entry) || strcmp(entry.key, key) != 0)
        return -1;
    utimensat(AT_FDCWD, path, NULL, 0); /* where it fails, the list shows an older time */
    *ret_code = entry.code;
    *ret_length = entry.length;
    return 0;
}

void lab_kernel_cache_store(const char *folder, const char *key, const char *title,
                            const char *code, size_t length) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    const char *refused;
    /* as the user's own */
    if (folder && lab_file_make_folders(folder, 0700, &arena, &refused) == 0) {
        struct lab_err ignored = LAB_ERR_INIT;
        lab_str_printf(&text, MAGIC "\n%s\n%s\n%zu %016" PRIx64 "\n", title, key, length,
                       lab_kernel_cache_hash(code, length));
        lab_str_add_bytes(&text, code, length);
        lab_out_file_save(entry_path(folder, key, &arena), text.text, text.length, &ignored);
    }
}

/* --- all of them --- */

static bool is_entry(const char *name) {
    return strspn(name, "0123456789abcdef") == NAME_DIGITS &&
           lab_str_equal(name + NAME_DIGITS, ENDING);
}

static void read_entry(int directory, const char *folder, const char *name, struct lab_arena *arena,
                       struct lab_kernel_cache_entry *ret_entry) {
    struct lab_kernel_cache_entry entry = {
        .file = lab_arena_strdup(arena, name), .title = "damaged", .damaged = true};
    struct stat info;
    if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        entry.size_bytes = info.st_size;
        entry.used_wall_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec;
    }
    LAB_AUTO(arena, scratch); /* the code isn't wanted */
    char *text;
    size_t length;
    struct entry parts;
    if (lab_file_read(lab_arena_printf(&scratch, "%s/%s", folder, name), ENTRY_MAX_BYTES, &scratch,
                      &text, &length, NULL) == 0 &&
        parse(text, length, &parts) == 0) {
        entry.title = lab_arena_strdup(arena, parts.title);
        entry.damaged = false;
    }
    *ret_entry = entry;
}

/* NULL and no error where the folder isn't there. */
static DIR *open_folder(const char *folder, int *ret_status, struct lab_err *err) {
    DIR *directory = folder ? opendir(folder) : NULL;
    *ret_status = 0;
    if (folder && !directory && errno != ENOENT && errno != ENOTDIR)
        *ret_status = lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", folder);
    return directory;
}

int lab_kernel_cache_list(const char *folder, struct lab_arena *arena,
                          struct lab_kernel_cache_entry **ret_entries, int *ret_count,
                          struct lab_err *err) {
    int status, count = 0;
    LAB_AUTO_CLOSEDIR DIR *directory = open_folder(folder, &status, err);
    if (status)
        return -1;
    struct lab_kernel_cache_entry *entries = NULL;
    const struct dirent *item;
    while (directory && (item = readdir(directory))) {
        if (!is_entry(item->d_name))
            continue;
        read_entry(dirfd(directory), folder, item->d_name, arena, &LAB_ADD(entries, count, arena));
    }
    LAB_SORT(entries, count, LAB_BY_MOST(entries, used_wall_ns), LAB_BY_BYTES(entries, file));
    *ret_entries = entries;
    *ret_count = count;
    return 0;
}

int lab_kernel_cache_clear(const char *folder, int *ret_count, int64_t *ret_bytes,
                           struct lab_err *err) {
    int status, count = 0;
    int64_t bytes = 0;
    LAB_AUTO_CLOSEDIR DIR *directory = open_folder(folder, &status, err);
    if (status)
        return -1;
    const struct dirent *item;
    while (directory && status == 0 && (item = readdir(directory))) {
        struct stat info;
        bool entry = is_entry(item->d_name);
        if ((!entry && !lab_str_starts(item->d_name, LAB_FILE_TEMPORARY)) ||
            fstatat(dirfd(directory), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (lab_own_remove_at(dirfd(directory), item->d_name) == 0) {
            count += entry;
            bytes += info.st_size;
        } else if (errno != ENOENT) { /* another process may be clearing as well */
            status = lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s/%s", folder, item->d_name);
        }
    }
    *ret_count = count;
    *ret_bytes = bytes;
    return status;
}
