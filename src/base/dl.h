/*
 * dl.h: libraries that may or may not be there. A vendor library is a table of symbols, each of
 * which may be missing; what then can't be done is said in the table, and shown by `gpulab
 * devices`.
 *
 *     static struct { int (*init)(unsigned); … } cu;
 *     static const struct lab_dl_symbol symbols[] = {
 *         {"cuInit", &cu.init, "no CUDA device can be used"},
 *         {NULL},
 *     };
 *     static const struct lab_dl_library libcuda = {"CUDA driver", {"libcuda.so.1"}, symbols, …};
 *
 * dlopen and dlsym appear in dl.c alone.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

struct lab_dl_symbol {
    const char *name;
    void *slot;         /* address of a function pointer; set to NULL where the symbol is missing */
    const char *effect; /* what is unavailable without it */
    int version;        /* of the signature that we declare; only for a library's own `find` */
};

struct lab_dl_library {
    const char *title;                   /* "CUDA driver" */
    const char *sonames[6];              /* tried in order; NULL ends */
    const struct lab_dl_symbol *symbols; /* a NULL name ends */
    const char *effect;                  /* what is unavailable without the library at all */
    const char
        *refused; /* part of a path ("/stubs/"): a library found there is none; may be NULL */
    /*
     * May be NULL. Some libraries have a lookup of their own that knows versions of a function:
     * `find` then decides alone, given how to look up a name; NULL = missing.
     */
    void *(*find)(const struct lab_dl_symbol *symbol,
                  void *(*lookup)(void *handle, const char *name), void *handle);
};

struct lab_dl_report {
    void *handle;         /* NULL: not found; stays open for the life of the process */
    const char *path;     /* the file that was loaded, in the arena */
    int found, missing;   /* symbols */
    const char **effects; /* of missing symbols, NULL-terminated, in the arena */
    const char *reason;   /* why it wasn't found, in the arena */
};

/*
 * Loads the first soname that can be loaded, first through the loader's own path, then from
 * `folders` (NULL-terminated, may be NULL). Slots are all NULL when nothing was found. Never fails:
 * absence is an answer.
 */
void lab_dl_load(const struct lab_dl_library *library, const char *const *folders,
                 struct lab_arena *arena, struct lab_dl_report *ret_report);
