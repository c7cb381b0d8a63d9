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
    const char *words; /* "GPU 3, NUMA node 1": as recommend has them */
    const char *nodes; /* "1", "[0,1]" */
    double batch;
    bool compiled;
};

/* A run of the placement to use, which is found again by its point. */
static const struct lab_study_run *find_run(const struct lab_analysis_part *part,
                                            const struct lab_study_table *study) {
    const struct lab_doc_table *places = find_table(part, "placements");
    const char *point = NULL;
    for (int i = 0; places && i < places->row_count; i++)
        if (lab_str_equal(cell(places, i, "use")->text, "use this"))
            point = cell(places, i, "point")->text;
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
                           .words = text(result, part, "best"),
                           .nodes = text(result, part, "numa_nodes"),
                           .batch = figure(result, part, "batch_size")->value,
                           .compiled = figure(result, part, "compile_model")->data &&
                                       figure(result, part, "compile_model")->data->boolean};
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

/* What a choice gains: a level that is used against its reference, or the reference against a level
 * that is avoided. */
static void set_gain(struct lab_advice_line *line, const struct lab_doc_cell *change, bool used) {
    line->gain = used ? change->value : 1 / (1 + change->value) - 1;
    line->low = used ? change->low : 1 / (1 + change->high) - 1;
    line->high = used ? change->high : 1 / (1 + change->low) - 1;
}

/* Whether the placement has that level: "GPU 3", "Batch 32", "Compiled". */
static bool is_used(const struct target *target, const char *choice, const char *level,
                    struct lab_arena *arena) {
    if (lab_str_equal(choice, "device"))
        return lab_str_starts(target->words, lab_arena_printf(arena, "%s,", level));
    if (lab_str_equal(choice, "batch"))
        return lab_str_equal(level, lab_arena_printf(arena, "Batch %.0f", target->batch));
    return lab_str_equal(choice, "compile") && target->compiled;
}

/* The row of a choice to speak of: of the level that is used, else the first that is avoided. */
static int find_row(const struct lab_doc_table *factors, const char *choice,
                    const struct target *target, struct lab_arena *arena) {
    int first = -1, avoided = -1;
    for (int i = 0; i < factors->row_count; i++) {
        if (!lab_str_equal(cell(factors, i, "choice")->text, choice))
            continue;
        first = first < 0 ? i : first;
        if (is_used(target, choice, cell(factors, i, "level")->text, arena))
            return i;
        if (avoided < 0 && lab_str_equal(cell(factors, i, "change_verdict")->text, "yes") &&
            cell(factors, i, "change")->value < 0)
            avoided = i;
    }
    return avoided < 0 ? first : avoided;
}

static void add_measured(struct lab_advice *advice, const struct lab_analysis_part *part,
                         const struct target *target, struct lab_arena *arena) {
    const struct lab_doc_table *factors = find_table(part, "factors");
    static const char *const kinds[] = {"node", "device", "compile", "batch"};
    const char *line =
        target->place.missing ? NULL : lab_advice_place_line(&target->place, NULL, arena);
    for (int k = 0; k < 4; k++) {
        int row = find_row(factors, kinds[k], target, arena);
        if (row < 0)
            continue;
        const char *level = cell(factors, row, "level")->text,
                   *reference = cell(factors, row, "reference")->text,
                   *verdict = cell(factors, row, "change_verdict")->text;
        bool used = is_used(target, kinds[k], level, arena);
        double change = cell(factors, row, "change")->value;
        bool worth = lab_str_equal(verdict, "yes") && (used ? change > 0 : change < 0);
        struct lab_advice_line *made =
            add(advice,
                worth                          ? LAB_ADVICE_WORTH
                : lab_str_equal(verdict, "no") ? LAB_ADVICE_NOT_WORTH
                                               : LAB_ADVICE_UNDECIDED,
                target->place.tool, line,
                lab_arena_printf(arena, "%s rather than %s", used ? level : reference,
                                 used ? reference : level));
        if (!made)
            return;
        made->choice = kinds[k];
        made->setting = setting_of(kinds[k], target, arena);
        set_gain(made, cell(factors, row, "change"), used);
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
    const char *node = lab_arena_printf(arena, ", NUMA node %s", target->nodes);
    const char *at = strstr(words, node);
    for (int i = 0; at && i < advice->count; i++)
        if (advice->lines[i].state == LAB_ADVICE_NOT_WORTH &&
            lab_str_equal(advice->lines[i].choice, "node"))
            return lab_arena_printf(arena, "%.*s, any NUMA node%s", (int)(at - words), words,
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
    if (find_table(found, "factors"))
        add_measured(&advice, found, &target, arena);
    advice.best = best_words(&advice, target.words, &target, arena);
    if (!target.place.missing) {
        add_same_place(&advice, &target.place, arena);
        add_unmeasured(&advice, &target.place, arena);
    }
    if (next && next->row_count > 0)
        advice.next = cell(next, 0, "command")->text;
    return advice;
}
