/* training_known.c: see the header. */
#include "advise/training_known.h"

#include "advise/advise_studies.h"
#include "base/str.h"
#include "load/studies.h"
#include "load/study_view.h"
#include "machine/machine_json.h"
#include "run/folder.h"

#include <math.h>

#define STUDIES_MAX 100 /* whose headers are looked at, newest first */

static bool agrees(const struct lab_study_run *run, const struct lab_value *keys) {
    for (int i = 0; keys && i < keys->count; i++) {
        const struct lab_value *value = lab_value_get(run->options, keys->keys[i]);
        if (!lab_training_knows(keys->keys[i]) &&
            (!value || !lab_value_equal(value, keys->items[i])))
            return false;
    }
    return true;
}

bool lab_training_of_study(const struct lab_study_table *table, const struct lab_value *keys,
                           struct lab_arena *arena, struct lab_training_known *ret_known) {
    struct lab_training_set *sets;
    int count = lab_training_sets(table, arena, &sets);
    bool found = false;
    for (int i = 0; i < count; i++) {
        struct lab_training_known known = {
            .folder = table->folder, .simulated = table->simulated, .set = &sets[i]};
        if (!agrees(sets[i].rows[0].point->runs[0], keys))
            continue;
        lab_training_fit(sets[i].rows, sets[i].count, &known.training);
        struct lab_study_table *own = lab_arena_alloc(arena, 1, sizeof *own);
        *own = lab_training_set_study(table, &sets[i], arena);
        known.gangs = lab_gangs_make(own, "training", arena);
        for (int k = 0; k < sets[i].count && !known.device; k++)
            if (sets[i].rows[k].work.devices == 1)
                known.device = sets[i].rows[k].point->runs[0]->ranks[0].device;
        bool has_law = known.training.law_count > 0;
        if (known.training.pair_count == 0 || (found && !has_law))
            continue;
        *ret_known = known;
        found = true;
        if (has_law)
            return true;
    }
    return found;
}

struct lab_training_estimate lab_training_ask(const struct lab_training_known *known,
                                              const struct lab_training_work *work,
                                              struct lab_arena *arena) {
    struct lab_training_estimate made = {.value = NAN, .low = NAN, .high = NAN};
    for (int i = 0; i < known->gangs.count && !made.gang; i++) {
        const struct lab_gang *gang = &known->gangs.items[i];
        if (gang->parameters == work->parameters && gang->batch == work->batch &&
            gang->devices == work->devices && !gang->scaling == !work->weak &&
            gang->alone_count > 0 && gang->point->runs[0]->work.layers == work->layers) {
            double samples = work->batch * (work->weak ? work->devices : 1);
            made = (struct lab_training_estimate){.value = gang->speedup.value,
                                                  .low = gang->speedup.interval.low,
                                                  .high = gang->speedup.interval.high,
                                                  .one_s = work->batch / gang->one_per_s,
                                                  .many_s = samples / gang->many_per_s,
                                                  .gang = gang};
        }
    }
    if (made.gang)
        return made;
    struct lab_training_speedup predicted = lab_training_predict(&known->training, work);
    made.value = predicted.value;
    made.low = predicted.low;
    made.high = predicted.high;
    made.one_s = predicted.one_s;
    made.many_s = predicted.many_s;
    made.why_not = lab_training_why_not(&known->training, work, arena);
    return made;
}

/* A study that names its questions tells without a look at its runs. */
static bool may_train(const struct lab_study_file *file) {
    const char *const *answers = lab_studies_answers(file->study.config, file->arena);
    return !answers || lab_str_find("training", answers) >= 0;
}

static bool fits(struct lab_study_file *file, const struct lab_training_wanted *wanted, bool newest,
                 struct lab_training_known *ret_known) {
    struct lab_study_table table;
    return may_train(file) &&
           (file->study.machine_identity == wanted->machine_identity ||
            (newest && lab_machine_json_is_simulated(file->study.machine, file->arena))) &&
           lab_study_file_table(file, 0, &table, NULL) == 0 && lab_study_trains(&table) &&
           (!wanted->done || table.run_count + table.failed_count >= table.planned_count) &&
           lab_training_of_study(&table, wanted->keys, file->arena, ret_known) &&
           (wanted->device ? lab_str_equal(ret_known->device, wanted->device)
                           : newest || !ret_known->simulated);
}

/* `newest`: of those below the working directory, so that it may be a simulated one. */
static bool read_known(const char *folder, const struct lab_training_wanted *wanted, bool newest,
                       struct lab_arena *arena, struct lab_training_known *ret_known) {
    struct lab_study_file *file;
    if (lab_study_file_open(folder, arena, &file, NULL) < 0)
        return false;
    bool found = fits(file, wanted, newest, ret_known);
    lab_study_file_close(file);
    return found;
}

bool lab_training_find(const struct lab_training_wanted *wanted, struct lab_arena *arena,
                       struct lab_training_known *ret_known) {
    const char *const *paths;
    int count, below = 0;
    bool found = false;
    if (wanted->below_first)
        count = lab_advise_known(arena, &paths, &below);
    else
        lab_folder_known(arena, &paths, &count);
    for (int i = 0; i < count && i < STUDIES_MAX; i++) {
        struct lab_training_known known;
        if (!read_known(paths[i], wanted, i < below && !found, arena, &known))
            continue;
        bool has_law = known.training.law_count > 0;
        if (found && !has_law)
            continue;
        *ret_known = known;
        found = true;
        if (has_law || (known.simulated && !wanted->device))
            return true;
    }
    return found;
}

/* --- gpu_mode=auto --- */

struct memory { /* what was found last: points of a plan mostly ask for the same */
    struct lab_arena *arena;
    bool asked, found;
    uint64_t machine_identity;
    const char *device;
    const struct lab_value *options;
    struct lab_training_known known;
};

static bool same_keys(const struct lab_value *a, const struct lab_value *b) {
    for (int i = 0; i < a->count; i++) {
        const struct lab_value *other = lab_value_get(b, a->keys[i]);
        if (!lab_training_knows(a->keys[i]) && (!other || !lab_value_equal(a->items[i], other)))
            return false;
    }
    return a->count == b->count;
}

static const struct lab_training_known *recall(struct memory *memory,
                                               const struct lab_plan_question *question) {
    uint64_t identity = lab_machine_identity(question->machine);
    if (!memory->asked || memory->machine_identity != identity ||
        !lab_str_equal(memory->device, question->device) ||
        !same_keys(memory->options, question->options)) {
        struct lab_training_wanted wanted = {.machine_identity = identity,
                                             .device = question->device,
                                             .keys = question->options,
                                             .done = true};
        memory->asked = true;
        memory->machine_identity = identity;
        memory->device = question->device;
        memory->options = question->options;
        memory->found = lab_training_find(&wanted, memory->arena, &memory->known);
    }
    return memory->found ? &memory->known : NULL;
}

static enum lab_plan_choice choose(void *state, const struct lab_plan_question *question,
                                   struct lab_arena *arena, const char **ret_why) {
    const struct lab_training_known *known = recall(state, question);
    const struct lab_value *scaling = lab_value_get(question->options, "scaling");
    struct lab_training_work work = {.parameters = question->parameters,
                                     .layers = question->layers,
                                     .batch = question->batch,
                                     .devices = question->devices,
                                     .weak = scaling && scaling->type == LAB_VALUE_STRING &&
                                             lab_str_equal(scaling->string, "weak")};
    if (!known)
        return LAB_PLAN_UNKNOWN;
    struct lab_training_estimate made = lab_training_ask(known, &work, arena);
    if (isnan(made.low))
        return LAB_PLAN_UNKNOWN;
    *ret_why = lab_arena_printf(
        arena, "%d devices %s %s as fast as one, by %s%s", question->devices,
        made.gang ? "were" : "would be", lab_speedup_times(made.value, made.low, made.high, arena),
        lab_study_view_shorten(known->folder, arena), known->simulated ? " (simulated)" : "");
    return made.high < 1 ? LAB_PLAN_ONE : made.low > 1 ? LAB_PLAN_SEVERAL : LAB_PLAN_TRY;
}

struct lab_plan_strategy lab_training_strategy(struct lab_arena *arena) {
    struct memory *memory = lab_arena_alloc(arena, 1, sizeof *memory);
    memory->arena = arena;
    return (struct lab_plan_strategy){.choose = choose, .state = memory};
}
