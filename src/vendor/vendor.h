/*
 * vendor.h: where the vendor's libraries are looked for, and what was found. A missing one is no
 * error: `gpulab devices` says what can't be done without it.
 */
#pragma once

#include "base/cond.h"
#include "base/dl.h"

#include <stdatomic.h>

struct lab_vendor_library {
    const char *title;    /* "NVRTC" */
    const char *path;     /* NULL: not found */
    const char *version;  /* "13.0"; may be NULL */
    const char *reason;   /* not found, or found and too new for the driver: why; else NULL */
    const char *effect;   /* likewise: what is then unavailable */
    const char **effects; /* found, but functions are missing: what each is for, once; NULL ends */
};

/*
 * Looks for all of them (some are large: a tenth of a second in all) and returns how many there
 * are; they live in the arena.
 */
int lab_vendor_list(struct lab_arena *arena, struct lab_vendor_library **ret_libraries);

/*
 * Where they are looked for, on one line, with when each folder was last changed: as long as it is
 * the same, the same libraries are found. In the arena.
 */
const char *lab_vendor_places(struct lab_arena *arena);

/* --- for the libraries' own files --- */

struct lab_vendor_search {
    const char *title;
    const char *sonames[6]; /* the newest first; one of the driver's major version is preferred */
    const struct lab_dl_symbol *symbols;
    const char *effect;
    pthread_mutex_t lock; /* of the report, until it is loaded */
    atomic_bool loaded;
    struct lab_dl_report report; /* its strings live for ever */
};

/*
 * At the first call, from any thread: looks in the folder of CUDA_HOME, in the loader's path, in
 * the usual folders of toolkits and in those of PyTorch's wheels. `ret_report` may be NULL.
 */
void lab_vendor_load(struct lab_vendor_search *search, const struct lab_dl_report **ret_report);

/* The first of the symbols that was not found and has this effect; NULL where all are there. */
const char *lab_vendor_lacks(const struct lab_dl_symbol *symbols, const char *effect);
