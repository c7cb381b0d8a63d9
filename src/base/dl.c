/* dl.c: the only place that loads libraries at run time. */
#include "base/dl.h"

#include "base/str.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define MAX_SONAMES (sizeof((struct lab_dl_library *)0)->sonames / sizeof(const char *))

/* A slot is the address of a function pointer of any type; its bytes are copied. */
static void fill(const struct lab_dl_symbol *symbol, void *address) {
    memcpy(symbol->slot, &address, sizeof address);
}

/*
 * Keeps the failure that tells most: that of a file that is there but can't be loaded (another
 * architecture, a library that it needs in turn) before "not found".
 */
static void note_failure(const char *path, bool is_file, struct lab_arena *arena,
                         const char **reason) {
    const char *text = dlerror();
    bool absent = is_file ? access(path, F_OK) != 0
                          : !text || strstr(text, "cannot open shared object file: No such file");
    /* the loader names the file that it missed: another one than ours is a need of ours */
    bool needs_other = !is_file && text && absent && !lab_str_starts(text, path);
    if (!*reason && text && (!absent || needs_other))
        *reason = lab_arena_strdup(arena, text);
}

static const char *loaded_path(void *handle, struct lab_arena *arena) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name)
        return "";
    return lab_arena_strdup(arena, map->l_name);
}

/* A library whose functions do nothing must not answer for the real one: closed at once. */
static bool is_refused(const struct lab_dl_library *library, void *handle, struct lab_arena *arena,
                       const char **reason) {
    const char *path = library->refused ? loaded_path(handle, arena) : "";
    if (!library->refused || !strstr(path, library->refused))
        return false;
    if (!*reason)
        *reason = lab_arena_printf(arena, "the loader finds %s, which is for linking only", path);
    dlclose(handle);
    return true;
}

static void *open_first(const struct lab_dl_library *library, const char *folder,
                        struct lab_arena *arena, const char **reason) {
    for (size_t i = 0; i < MAX_SONAMES && library->sonames[i]; i++) {
        const char *path = folder ? lab_arena_printf(arena, "%s/%s", folder, library->sonames[i])
                                  : library->sonames[i];
        if (folder && access(path, F_OK) != 0)
            continue;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle && !is_refused(library, handle, arena, reason))
            return handle;
        if (!handle)
            note_failure(path, folder != NULL, arena, reason);
    }
    return NULL;
}

static const char *not_found(const struct lab_dl_library *library, struct lab_arena *arena) {
    const char *names[MAX_SONAMES + 1] = {NULL};
    for (size_t i = 0; i < MAX_SONAMES && library->sonames[i]; i++)
        names[i] = library->sonames[i];
    LAB_AUTO(str, text);
    lab_str_add_list(&text, names, "or");
    return lab_arena_printf(arena, "%s not found", text.text);
}

static void *lookup(void *handle, const char *name) {
    return dlsym(handle, name);
}

static void *find(const struct lab_dl_library *library, const struct lab_dl_symbol *symbol,
                  void *handle) {
    if (library->find)
        return library->find(symbol, lookup, handle);
    return dlsym(handle, symbol->name);
}

static void resolve(const struct lab_dl_library *library, struct lab_arena *arena,
                    struct lab_dl_report *report) {
    for (const struct lab_dl_symbol *symbol = library->symbols; symbol->name; symbol++) {
        void *address = report->handle ? find(library, symbol, report->handle) : NULL;
        fill(symbol, address);
        if (address)
            report->found++;
        else
            report->missing++;
    }
    report->effects = lab_arena_alloc(arena, (size_t)report->missing + 1, sizeof *report->effects);
    int count = 0;
    for (const struct lab_dl_symbol *symbol = library->symbols; symbol->name; symbol++) {
        void *address;
        memcpy(&address, symbol->slot, sizeof address);
        if (!address && symbol->effect)
            report->effects[count++] = symbol->effect;
    }
}

void lab_dl_load(const struct lab_dl_library *library, const char *const *folders,
                 struct lab_arena *arena, struct lab_dl_report *ret_report) {
    struct lab_dl_report report = {0};
    const char *reason = NULL;
    report.handle = open_first(library, NULL, arena, &reason);
    for (int i = 0; !report.handle && folders && folders[i]; i++)
        report.handle = open_first(library, folders[i], arena, &reason);
    if (report.handle)
        report.path = loaded_path(report.handle, arena);
    else
        report.reason = reason ? reason : not_found(library, arena);
    resolve(library, arena, &report);
    *ret_report = report;
}
