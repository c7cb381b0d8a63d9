/* support/training_known.c: see the header. */
#include "command/support/training_known.h"

#include "base/str.h"
#include "command/support/studies.h"
#include "store/store.h"
#include "study/folder.h"

#define STUDIES_MAX 100 /* whose headers are looked at, newest first */

/* Keys that the law knows of itself don't have to agree. */
static bool is_of_law(const char *key) {
    static const char *const keys[] = {"model",   "widths",       "dropout",   "batch_size",
                                       "scaling", "dataset_size", "data_seed", NULL};
    for (int i = 0; keys[i]; i++)
        if (lab_str_equal(keys[i], key))
            return true;
    return false;
}

static bool agrees(const struct lab_study_run *run, const struct lab_value *keys) {
    for (int i = 0; keys && i < keys->count; i++) {
        const struct lab_value *value = lab_value_get(run->options, keys->keys[i]);
        if (!is_of_law(keys->keys[i]) && (!value || !lab_value_equal(value, keys->items[i])))
            return false;
    }
    return true;
}

bool lab_training_of_study(const struct lab_study_table *table, const struct lab_value *keys,
                           struct lab_arena *arena, struct lab_training_known *ret_known) {
    struct lab_training_set *sets;
    int count = lab_training_sets(table, arena, &sets);
    for (int i = 0; i < count; i++) {
        struct lab_training_known known = {
            .folder = table->folder, .simulated = table->simulated, .set = &sets[i]};
        if (!agrees(sets[i].rows[0].point->runs[0], keys))
            continue;
        lab_training_fit(sets[i].rows, sets[i].count, &known.training);
        for (int k = 0; k < sets[i].count && !known.device; k++)
            if (sets[i].rows[k].work.devices == 1)
                known.device = sets[i].rows[k].point->runs[0]->ranks[0].device;
        if (known.training.law_count == 0)
            continue;
        *ret_known = known;
        return true;
    }
    return false;
}

/* From its header alone, so that other studies cost little. */
static bool may_have(const char *folder, uint64_t machine_identity, struct lab_arena *arena) {
    struct lab_store *store;
    struct lab_store_study study;
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    if (lab_store_open(path, LAB_STORE_READ, &store, NULL) < 0)
        return false;
    bool may = lab_store_study(store, arena, &study, NULL) == 0 &&
               study.machine_identity == machine_identity &&
               lab_str_equal(study.option, "train_scaling");
    lab_store_close(store);
    return may;
}

bool lab_training_find(const struct lab_training_wanted *wanted, struct lab_arena *arena,
                       struct lab_training_known *ret_known) {
    const char *const *paths;
    int count;
    lab_folder_known(arena, &paths, &count);
    for (int i = 0; i < count && i < STUDIES_MAX; i++) {
        struct lab_study_table table;
        struct lab_training_known known;
        if (!may_have(paths[i], wanted->machine_identity, arena) ||
            lab_studies_read_one(paths[i], 0, arena, &table, NULL) < 0 ||
            !lab_training_of_study(&table, wanted->keys, arena, &known))
            continue;
        if (wanted->device ? !lab_str_equal(known.device, wanted->device) : known.simulated)
            continue;
        *ret_known = known;
        return true;
    }
    return false;
}
