/* advise_studies.c: see the header. */
#include "advise/advise_studies.h"

#include "analysis/analysis.h"
#include "base/str.h"
#include "load/study_file.h"
#include "machine/machine_json.h"
#include "run/folder.h"

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

/* --- those to go by --- */

static bool read_table(struct lab_study_file *file, uint64_t machine_identity, bool newest,
                       struct lab_study_table *ret_table) {
    bool simulated = lab_machine_json_is_simulated(file->study.machine, file->arena);
    bool fits = simulated ? newest : file->study.machine_identity == machine_identity;
    return fits &&
           lab_study_file_table(file, LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_CURVES, ret_table,
                                NULL) == 0 &&
           (newest || !ret_table->simulated);
}

struct lab_advise_studies lab_advise_studies_read(uint64_t machine_identity,
                                                  struct lab_arena *arena) {
    const char *const *paths;
    int below, known = lab_advise_known(arena, &paths, &below);
    struct lab_advise_studies studies = {
        .tables = lab_arena_alloc(arena, STUDIES_MAX, sizeof *studies.tables)};
    for (int i = 0; i < known && studies.count < STUDIES_MAX; i++) {
        struct lab_study_table *table = &studies.tables[studies.count];
        struct lab_study_file *file;
        if (lab_study_file_open(paths[i], arena, &file, NULL) < 0)
            continue;
        if (read_table(file, machine_identity, i < below && studies.count == 0, table)) {
            studies.first_simulated |= table->simulated;
            studies.count++;
        }
        lab_study_file_close(file);
    }
    return studies;
}
