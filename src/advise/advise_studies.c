/* advise_studies.c: see the header. */
#include "advise/advise_studies.h"

#include "analysis/analysis.h"
#include "base/json.h"
#include "base/str.h"
#include "load/studies.h"
#include "run/folder.h"
#include "store/store.h"

#include <string.h>
#include <unistd.h>

#define STUDIES_MAX 20 /* that are looked at, newest first: older ones tell of an older machine */

/* --- all that are known --- */

static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return length > 1 && lab_str_starts(path, folder) && (path[length] == '/' || !path[length]);
}

int lab_advise_known(struct lab_arena *arena, const char *const **ret_paths, int *ret_below) {
    char here[4096];
    const char *const *known;
    int count, filled = 0;
    if (!getcwd(here, sizeof here))
        *here = '\0';
    lab_folder_known(arena, &known, &count);
    const char **paths = lab_arena_alloc(arena, (size_t)count + 1, sizeof *paths);
    for (int i = 0; i < count; i++)
        if (is_below(known[i], here))
            paths[filled++] = known[i];
    *ret_below = filled;
    for (int i = 0; i < count; i++)
        if (!is_below(known[i], here))
            paths[filled++] = known[i];
    *ret_paths = paths;
    return count;
}

/* --- what they are --- */

/* As machine.json says; studies from before it did say so by their devices' names alone. */
static bool is_simulated(const char *machine_json, struct lab_arena *arena) {
    struct lab_value *map;
    if (lab_json_parse(machine_json, strlen(machine_json), "machine.json", arena, &map, NULL) < 0)
        return false;
    const struct lab_value *simulated = lab_value_get(map, "simulated");
    return simulated && simulated->type == LAB_VALUE_BOOL && simulated->boolean;
}

struct lab_advise_header lab_advise_header_read(const char *folder, struct lab_arena *arena) {
    struct lab_advise_header header = {.option = NULL};
    struct lab_store *store;
    struct lab_store_study study;
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    if (lab_store_open(path, LAB_STORE_READ, &store, NULL) < 0)
        return header;
    if (lab_store_study(store, arena, &study, NULL) == 0)
        header = (struct lab_advise_header){.option = study.option,
                                            .machine_identity = study.machine_identity,
                                            .simulated = is_simulated(study.machine, arena)};
    lab_store_close(store);
    return header;
}

/* --- those to go by --- */

struct lab_advise_studies lab_advise_studies_read(uint64_t machine_identity,
                                                  struct lab_arena *arena) {
    const char *const *paths;
    int below, known = lab_advise_known(arena, &paths, &below);
    struct lab_advise_studies studies = {
        .tables = lab_arena_alloc(arena, STUDIES_MAX, sizeof *studies.tables)};
    for (int i = 0; i < known && studies.count < STUDIES_MAX; i++) {
        struct lab_study_table *table = &studies.tables[studies.count];
        struct lab_advise_header header = lab_advise_header_read(paths[i], arena);
        bool newest = i < below && studies.count == 0;
        bool fits = header.simulated ? newest : header.machine_identity == machine_identity;
        if (!header.option || !fits ||
            lab_studies_read_one(paths[i], LAB_STUDY_WITH_ITERATIONS, arena, table, NULL) < 0 ||
            (table->simulated && !newest))
            continue;
        studies.first_simulated |= table->simulated;
        studies.count++;
    }
    return studies;
}
