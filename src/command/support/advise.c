/* support/advise.c: lines to paste, from what recommend found and what the machine has. */
#include "command/support/advise.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 16

/* --- reading a result by its keys --- */

static int find_column(const struct lab_analysis_column *columns, int count, const char *key) {
    for (int c = 0; c < count; c++)
        if (lab_str_equal(columns[c].key, key))
            return c;
    return -1;
}

static const struct lab_analysis_cell nothing = {NULL, NAN, NAN, NAN, NAN};

static const struct lab_analysis_cell *figure(const struct lab_analysis_result *result, int part,
                                              const char *key) {
    int c = find_column(result->columns, result->column_count, key);
    return c < 0 ? &nothing : &result->parts[part].cells[c];
}

static const char *text(const struct lab_analysis_result *result, int part, const char *key) {
    const char *found = figure(result, part, key)->text;
    return found ? found : "";
}

static const struct lab_analysis_table *find_table(const struct lab_analysis_part *part,
                                                   const char *key) {
    for (int i = 0; i < part->table_count; i++)
        if (lab_str_equal(part->tables[i].key, key))
            return &part->tables[i];
    return NULL;
}

static const struct lab_analysis_cell *cell(const struct lab_analysis_table *table, int row,
                                            const char *key) {
    int c = find_column(table->columns, table->column_count, key);
    return c < 0 ? &nothing : &table->cells[(ptrdiff_t)row * table->column_count + c];
}

/* --- where it runs --- */

struct target {
    const char *nodes; /* "1", "0,1" */
    int node;          /* the single one; -1 = several */
    const char *gpus;  /* "3", "0,1" as CUDA_VISIBLE_DEVICES takes them; NULL = no GPU of CUDA's */
    const char *gpu_index; /* as nvidia-smi counts; NULL = not by number */
    bool several;          /* devices */
    bool simulated;
    const struct lab_node *cores; /* of the node; NULL = unknown */
    double batch;
    bool compiled;
};

/* "[0,1]" without its brackets */
static const char *bare(const char *list, struct lab_arena *arena) {
    size_t length = strlen(list);
    return length >= 2 && *list == '[' ? lab_arena_strndup(arena, list + 1, length - 2) : list;
}

/* A simulated GPU's number is the one that it would have in that machine. */
static const char *visible_gpus(const char *devices, const char *ids, bool *ret_by_number,
                                struct lab_arena *arena) {
    *ret_by_number = true;
    if (lab_str_starts(devices, "sim:"))
        return bare(ids, arena);
    if (!lab_str_starts(devices, "cuda:") || strchr(devices, '/'))
        return NULL;
    struct lab_str list;
    lab_str_init(&list);
    for (const char *at = devices; *at;) {
        size_t length = strcspn(at, ",");
        const char *name = lab_arena_strndup(arena, at, length);
        *ret_by_number = *ret_by_number && !strstr(name, "MIG-");
        lab_str_printf(&list, "%s%s", list.length ? "," : "",
                       lab_str_starts(name, "cuda:") ? name + strlen("cuda:") : name);
        at += length + (at[length] == ',');
    }
    const char *copy = lab_arena_strdup(arena, list.text);
    lab_str_release(&list);
    return copy;
}

static struct target find_target(const struct lab_analysis_result *result, int part,
                                 const struct lab_machine *machine, struct lab_arena *arena) {
    const char *devices = text(result, part, "devices");
    bool by_number;
    struct target target = {
        .nodes = bare(text(result, part, "numa_nodes"), arena),
        .gpus = visible_gpus(devices, text(result, part, "gpu_ids"), &by_number, arena),
        .several = strchr(devices, ',') != NULL,
        .simulated = result->simulated,
        .batch = figure(result, part, "batch_size")->value,
        .compiled = lab_str_equal(text(result, part, "compile_model"), "true")};
    char *end;
    long node = strtol(target.nodes, &end, 10);
    target.node = *target.nodes && !*end ? (int)node : -1;
    target.gpu_index = by_number ? target.gpus : NULL;
    int index = machine && target.node >= 0 ? lab_machine_node_index(machine, target.node) : -1;
    if (index >= 0 && !result->simulated && machine->nodes[index].cpus.count > 0)
        target.cores = &machine->nodes[index];
    return target;
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

static const char *choice_line(const char *choice, const struct target *target,
                               const char **ret_tool, struct lab_arena *arena) {
    if (lab_str_equal(choice, "node")) {
        *ret_tool = "numactl";
        return lab_arena_printf(arena, "numactl --cpunodebind=%s --membind=%s PROGRAM",
                                target->nodes, target->nodes);
    }
    if (lab_str_equal(choice, "device")) {
        *ret_tool = "CUDA_VISIBLE_DEVICES";
        return target->gpus
                   ? lab_arena_printf(arena, "CUDA_VISIBLE_DEVICES=%s PROGRAM", target->gpus)
                   : NULL;
    }
    *ret_tool = "gpulab";
    if (lab_str_equal(choice, "batch"))
        return lab_arena_printf(arena, "experiment.test.batch_size=%.0f", target->batch);
    return lab_arena_printf(arena, "experiment.test.compile_model=%s",
                            target->compiled ? "true" : "false");
}

/* Of several places that a choice avoids the one that costs most: that is what it is worth at most. */
static int worst_row(const struct lab_analysis_table *choices, const char *choice) {
    int worst = -1;
    for (int i = 0; i < choices->row_count; i++)
        if (lab_str_equal(cell(choices, i, "choice")->text, choice) &&
            (worst < 0 || cell(choices, i, "gain")->value > cell(choices, worst, "gain")->value))
            worst = i;
    return worst;
}

/* The same choice over all places that are alike otherwise: as `recommend` judges it, and surer than
 * one pair of places that was chosen for being far apart. */
static int over_places(const struct lab_analysis_table *factors, const char *words) {
    for (int i = 0; factors && i < factors->row_count; i++)
        if (lab_str_equal(cell(factors, i, "words")->text, words) &&
            cell(factors, i, "pairs")->value > 1 && !isnan(cell(factors, i, "gain")->low))
            return i;
    return -1;
}

/* Whether it was held over all places, and none of its alternatives is slower for sure: then a pair
 * in which one is doesn't carry the choice. */
static bool is_denied(const struct lab_analysis_table *factors, const char *choice) {
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
    const struct lab_analysis_table *choices = find_table(part, "choices");
    const struct lab_analysis_table *factors = find_table(part, "factors");
    static const char *const kinds[] = {"node", "device", "compile", "batch"};
    for (int k = 0; k < 4; k++) {
        int row = worst_row(choices, kinds[k]);
        const char *tool, *line = choice_line(kinds[k], target, &tool, arena);
        if (row < 0 || !line)
            continue;
        const char *words = cell(choices, row, "words")->text;
        int over = over_places(factors, words);
        const struct lab_analysis_table *table = over >= 0 ? factors : choices;
        if (over >= 0)
            row = over;
        else if (cell(choices, row, "within_one_run")->value > 0)
            words = lab_arena_printf(arena, "%s (within one run each)", words);
        const struct lab_analysis_cell *gain = cell(table, row, "gain");
        const char *verdict = cell(table, row, "verdict")->text;
        if (over < 0 && is_denied(factors, kinds[k]))
            verdict = "undecided";
        struct lab_advice_line *made = add(advice,
                                           lab_str_equal(verdict, "faster") ? LAB_ADVICE_WORTH
                                           : lab_str_equal(verdict, "same") ? LAB_ADVICE_NOT_WORTH
                                                                            : LAB_ADVICE_UNDECIDED,
                                           tool, line, words);
        if (!made)
            return;
        made->gain = gain->value;
        made->low = gain->low;
        made->high = gain->high;
    }
}

/* Where feeding from that node pays, the same place in the words of those who start programs. */
static void add_same_place(struct lab_advice *advice, const struct target *target,
                           struct lab_arena *arena) {
    bool pays = false;
    for (int i = 0; i < advice->count; i++)
        pays |= advice->lines[i].state == LAB_ADVICE_WORTH &&
                lab_str_equal(advice->lines[i].tool, "numactl");
    if (!pays || target->node < 0)
        return;
    const char *gpu = target->gpu_index && !target->several
                          ? lab_arena_printf(arena, " --gpu-bind=map_gpu:%s", target->gpu_index)
                          : "";
    add(advice, LAB_ADVICE_SAME_PLACE, "slurm",
        lab_arena_printf(arena, "srun -n 1 --cpu-bind=map_ldom:%d --mem-bind=map_mem:%d%s PROGRAM",
                         target->node, target->node, gpu),
        "Slurm: a task on the same cores and memory");
    add(advice, LAB_ADVICE_SAME_PLACE, "openmpi",
        lab_arena_printf(arena,
                         "mpirun -n 1 --bind-to none numactl --cpunodebind=%d --membind=%d PROGRAM",
                         target->node, target->node),
        "Open MPI: numactl binds the rank, mpirun keeps off");
    if (!target->cores)
        return;
    struct lab_str cpus;
    lab_str_init(&cpus);
    lab_cpus_write(&target->cores->cpus, &cpus);
    add(advice, LAB_ADVICE_NOT_MEASURED, "taskset",
        lab_arena_printf(arena, "taskset -c %s PROGRAM", cpus.text),
        "the same cores where there is no numactl; memory lies where it is touched first");
    lab_str_release(&cpus);
}

static void add_unmeasured(struct lab_advice *advice, const struct target *target,
                           struct lab_arena *arena) {
    if (target->cores && target->cores->core_count > 0)
        add(advice, LAB_ADVICE_NOT_MEASURED, "openmp",
            lab_arena_printf(arena,
                             "OMP_NUM_THREADS=%d OMP_PLACES=cores OMP_PROC_BIND=close PROGRAM",
                             target->cores->core_count),
            lab_arena_printf(arena, "a thread for each core of node %d and none beyond",
                             target->node));
    if (target->gpus && target->several)
        add(advice, LAB_ADVICE_NOT_MEASURED, "nccl", "NCCL_IGNORE_CPU_AFFINITY=1 PROGRAM",
            "NCCL's threads stay where the program was put instead of at each GPU's own node");
    if (!target->gpu_index || target->several)
        return;
    add(advice, LAB_ADVICE_NOT_MEASURED, "exclusive",
        lab_arena_printf(arena, "nvidia-smi -i %s -c EXCLUSIVE_PROCESS", target->gpu_index),
        "keeps strangers off the GPU; needs root, and gpulab never does it by itself");
    add(advice, LAB_ADVICE_NOT_MEASURED, "mps",
        lab_arena_printf(arena, "CUDA_VISIBLE_DEVICES=%s nvidia-cuda-mps-control -d",
                         target->gpu_index),
        "several small programs of one user run on the GPU side by side instead of in turns");
    add(advice, LAB_ADVICE_NOT_MEASURED, "mig",
        lab_arena_printf(arena, "nvidia-smi -i %s -mig 1", target->gpu_index),
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
            lab_str_equal(advice->lines[i].tool, "numactl"))
            return lab_arena_printf(arena, "%.*s from any node%s", (int)(at - words), words,
                                    at + strlen(node));
    return words;
}

struct lab_advice lab_advice_make(const struct lab_analysis_result *result, int part,
                                  const char *study, const struct lab_machine *machine,
                                  struct lab_arena *arena) {
    const struct lab_analysis_part *found = &result->parts[part];
    const struct lab_analysis_table *next = find_table(found, "next");
    struct target target = find_target(result, part, machine, arena);
    struct lab_advice advice = {.model = found->name,
                                .study = study,
                                .answer = found->answer,
                                .simulated = result->simulated,
                                .lines = lab_arena_alloc(arena, LINES_MAX, sizeof *advice.lines)};
    if (find_table(found, "choices"))
        add_measured(&advice, found, &target, arena);
    advice.best = best_words(&advice, text(result, part, "best"), &target, arena);
    add_same_place(&advice, &target, arena);
    add_unmeasured(&advice, &target, arena);
    if (next && next->row_count > 0)
        advice.next = cell(next, 0, "command")->text;
    return advice;
}
