/* advise.c: lines to paste, from what recommend found and what the machine has. */
#include "advise/advise.h"

#include "advise/advise_place.h"
#include "base/str.h"
#include "load/study_view.h"

#include <math.h>
#include <string.h>

#define LINES_MAX 16

/* --- reading a result by its keys --- */

static int find_column(const struct lab_doc_column *columns, int count, const char *key) {
    for (int c = 0; c < count; c++)
        if (lab_str_equal(columns[c].key, key))
            return c;
    return -1;
}

static const struct lab_doc_cell nothing = {NULL, NAN, NAN, NAN, NAN};

static const struct lab_doc_cell *figure(const struct lab_analysis_result *result, int part,
                                         const char *key) {
    int c = find_column(result->columns, result->column_count, key);
    return c < 0 ? &nothing : &result->parts[part].cells[c];
}

static const char *text(const struct lab_analysis_result *result, int part, const char *key) {
    const char *found = figure(result, part, key)->text;
    return found ? found : "";
}

static const struct lab_doc_table *find_table(const struct lab_analysis_part *part,
                                              const char *key) {
    for (int i = 0; i < part->table_count; i++)
        if (lab_str_equal(part->tables[i].key, key))
            return &part->tables[i];
    return NULL;
}

static const struct lab_doc_cell *cell(const struct lab_doc_table *table, int row,
                                       const char *key) {
    int c = find_column(table->columns, table->column_count, key);
    return c < 0 ? &nothing : &table->cells[(ptrdiff_t)row * table->column_count + c];
}

/* --- where it runs --- */

struct target {
    struct lab_advice_place place;
    const char *nodes; /* "1", "[0,1]": as recommend has them */
    double batch;
    bool compiled;
};

/* A run of the best place: the first of recommend's list, which is found again by its point. */
static const struct lab_study_run *find_run(const struct lab_analysis_part *part,
                                            const struct lab_study_table *study) {
    const struct lab_doc_table *places = find_table(part, "places");
    const char *point = places && places->row_count > 0 ? cell(places, 0, "point")->text : NULL;
    for (int i = 0; point && i < study->run_count; i++)
        if (lab_str_equal(study->runs[i].point, point))
            return &study->runs[i];
    return NULL;
}

static struct target find_target(const struct lab_analysis_result *result, int part,
                                 const struct lab_study_table *study, struct lab_arena *arena) {
    const struct lab_study_run *run = find_run(&result->parts[part], study);
    return (struct target){.place = lab_advice_place_make(run ? run->ranks : NULL,
                                                          run ? run->rank_count : 0, study->machine,
                                                          result->simulated, arena),
                           .nodes = text(result, part, "numa_nodes"),
                           .batch = figure(result, part, "batch_size")->value,
                           .compiled = lab_str_equal(text(result, part, "compile_model"), "true")};
}

/* --- lines --- */

static struct lab_advice_line *add(struct lab_advice *advice, enum lab_advice_state state,
                                   const char *tool, const char *line, const char *why) {
    if (advice->count == LINES_MAX)
        return NULL;
    struct lab_advice_line *made = &advice->lines[advice->count++];
    *made = (struct lab_advice_line){.line = line,
                                     .tool = tool,
                                     .why = why,
                                     .gain = NAN,
                                     .low = NAN,
                                     .high = NAN,
                                     .state = state};
    return made;
}

/* What PROGRAM has to do itself for the choice; NULL = where it is started says it all. */
static const char *setting_of(const char *choice, const struct target *target,
                              struct lab_arena *arena) {
    if (lab_str_equal(choice, "batch"))
        return lab_arena_printf(arena, "batch_size=%.0f", target->batch);
    if (lab_str_equal(choice, "compile"))
        return lab_arena_printf(arena, "compile_model=%s", target->compiled ? "true" : "false");
    return NULL;
}

/* Of several places that a choice avoids the one that costs most: that is what it is worth at
 * most. */
static int worst_row(const struct lab_doc_table *choices, const char *choice) {
    int worst = -1;
    for (int i = 0; i < choices->row_count; i++)
        if (lab_str_equal(cell(choices, i, "choice")->text, choice) &&
            (worst < 0 || cell(choices, i, "gain")->value > cell(choices, worst, "gain")->value))
            worst = i;
    return worst;
}

/* The same choice over all places that are alike otherwise: as `recommend` judges it, and surer
 * than one pair of places that was chosen for being far apart. */
static int over_places(const struct lab_doc_table *factors, const char *words) {
    for (int i = 0; factors && i < factors->row_count; i++)
        if (lab_str_equal(cell(factors, i, "words")->text, words) &&
            cell(factors, i, "pairs")->value > 1 && !isnan(cell(factors, i, "gain")->low))
            return i;
    return -1;
}

/* Whether it was held over all places, and none of its alternatives is slower for sure: then a pair
 * in which one is doesn't carry the choice. */
static bool is_denied(const struct lab_doc_table *factors, const char *choice) {
    bool held = false;
    for (int i = 0; factors && i < factors->row_count; i++) {
        if (!lab_str_equal(cell(factors, i, "choice")->text, choice) ||
            !(cell(factors, i, "pairs")->value > 1))
            continue;
        if (lab_str_equal(cell(factors, i, "verdict")->text, "faster"))
            return false;
        held = true;
    }
    return held;
}

static void add_measured(struct lab_advice *advice, const struct lab_analysis_part *part,
                         const struct target *target, struct lab_arena *arena) {
    const struct lab_doc_table *choices = find_table(part, "choices");
    const struct lab_doc_table *factors = find_table(part, "factors");
    static const char *const kinds[] = {"node", "device", "compile", "batch"};
    const char *line =
        target->place.missing ? NULL : lab_advice_place_line(&target->place, NULL, arena);
    for (int k = 0; k < 4; k++) {
        int row = worst_row(choices, kinds[k]);
        if (row < 0)
            continue;
        const char *words = cell(choices, row, "words")->text;
        int over = over_places(factors, words);
        const struct lab_doc_table *table = over >= 0 ? factors : choices;
        if (over >= 0)
            row = over;
        else if (cell(choices, row, "within_one_run")->value > 0)
            words = lab_arena_printf(arena, "%s (within one run each)", words);
        const struct lab_doc_cell *gain = cell(table, row, "gain");
        const char *verdict = cell(table, row, "verdict")->text;
        if (over < 0 && is_denied(factors, kinds[k]))
            verdict = "undecided";
        struct lab_advice_line *made = add(advice,
                                           lab_str_equal(verdict, "faster") ? LAB_ADVICE_WORTH
                                           : lab_str_equal(verdict, "same") ? LAB_ADVICE_NOT_WORTH
                                                                            : LAB_ADVICE_UNDECIDED,
                                           target->place.tool, line, words);
        if (!made)
            return;
        made->choice = kinds[k];
        made->setting = setting_of(kinds[k], target, arena);
        made->gain = gain->value;
        made->low = gain->low;
        made->high = gain->high;
    }
}

/* Whether it is worth while to run there, and not elsewhere. */
static bool place_pays(const struct lab_advice *advice) {
    for (int i = 0; i < advice->count; i++)
        if (advice->lines[i].state == LAB_ADVICE_WORTH && !advice->lines[i].setting)
            return true;
    return false;
}

#define WHOLE_HOST "Slurm, in a job with the whole host (--exclusive --mem=0); a smaller job "

/* Where the place pays, the same in the words of those who start programs. */
static void add_same_place(struct lab_advice *advice, const struct lab_advice_place *place,
                           struct lab_arena *arena) {
    if (!place_pays(advice))
        return;
    add(advice, LAB_ADVICE_SAME_PLACE, "slurm", lab_advice_place_slurm(place, arena),
        !place->gpus       ? WHOLE_HOST "may lack these cores"
        : place->by_number ? WHOLE_HOST "renumbers its GPUs"
                           : WHOLE_HOST "may lack this GPU or these cores");
    if (!place->split) /* else it has been said */
        add(advice, LAB_ADVICE_SAME_PLACE, "openmpi", lab_advice_place_mpi(place, arena),
            place->rank_count > 1 ? "Open MPI: a rank for each device"
                                  : "Open MPI: numactl binds the rank, not mpirun");
    const char *taskset = lab_advice_place_taskset(place, arena);
    if (taskset && !lab_str_equal(place->tool, "taskset"))
        add(advice, LAB_ADVICE_NOT_MEASURED, "taskset", taskset,
            "the same cores without numactl; memory isn't bound: first touch places it, on the "
            "local NUMA node while that has room");
}

static void add_unmeasured(struct lab_advice *advice, const struct lab_advice_place *place,
                           struct lab_arena *arena) {
    if (place->core_count > 0 && place->rank_count == 1) {
        const char *threads = lab_arena_printf(
            arena, "OMP_NUM_THREADS=%d OMP_PLACES=cores OMP_PROC_BIND=close", place->core_count);
        add(advice, LAB_ADVICE_NOT_MEASURED, "openmp", lab_advice_place_line(place, threads, arena),
            lab_arena_printf(arena, "a thread for each core of node %d and none beyond",
                             place->node));
    }
    if (place->gpus && place->rank_count > 1)
        add(advice, LAB_ADVICE_NOT_MEASURED, "nccl",
            lab_advice_place_line(place, "NCCL_IGNORE_CPU_AFFINITY=1", arena),
            "NCCL's threads stay where the program was put instead of at each GPU's own node");
    const char *mps = lab_advice_place_mps(place, arena);
    if (!mps)
        return;
    add(advice, LAB_ADVICE_NOT_MEASURED, "mps", mps,
        "several small programs of one user run on the GPU side by side instead of in turns");
    add(advice, LAB_ADVICE_NOT_MEASURED, "exclusive",
        lab_advice_place_smi(place, "-c EXCLUSIVE_PROCESS", arena),
        "no second process on the GPU; needs root, and gpulab never does it by itself");
    add(advice, LAB_ADVICE_NOT_MEASURED, "mig", lab_advice_place_smi(place, "-mig 1", arena),
        "splits a GPU that can be split, for programs that must not disturb each other; needs "
        "root");
}

/* Where no node is better than the others, which of them came first is chance. */
static const char *best_words(const struct lab_advice *advice, const char *words,
                              const struct target *target, struct lab_arena *arena) {
    const char *node = lab_arena_printf(arena, " from node %s", target->nodes);
    const char *at = strstr(words, node);
    for (int i = 0; at && i < advice->count; i++)
        if (advice->lines[i].state == LAB_ADVICE_NOT_WORTH &&
            lab_str_equal(advice->lines[i].choice, "node"))
            return lab_arena_printf(arena, "%.*s from any node%s", (int)(at - words), words,
                                    at + strlen(node));
    return words;
}

struct lab_advice lab_advice_make(const struct lab_analysis_result *result, int part,
                                  const struct lab_study_table *study, struct lab_arena *arena) {
    const struct lab_analysis_part *found = &result->parts[part];
    const struct lab_doc_table *next = find_table(found, "next");
    struct target target = find_target(result, part, study, arena);
    struct lab_advice advice = {.model = found->name,
                                .study = lab_study_view_shorten(study->folder, arena),
                                .answer = found->answer,
                                .no_line = target.place.missing,
                                .simulated = result->simulated,
                                .lines = lab_arena_alloc(arena, LINES_MAX, sizeof *advice.lines)};
    if (find_table(found, "choices"))
        add_measured(&advice, found, &target, arena);
    advice.best = best_words(&advice, text(result, part, "best"), &target, arena);
    if (!target.place.missing) {
        add_same_place(&advice, &target.place, arena);
        add_unmeasured(&advice, &target.place, arena);
    }
    if (next && next->row_count > 0)
        advice.next = cell(next, 0, "command")->text;
    return advice;
}
