/*
 * advise.c: `gpulab advise`: where to put work on this machine, as lines that can be pasted, from
 * studies that ran here. What they gain is what was measured; without a study it says which one to run.
 */
#include "command/command.h"

#include "analysis/analysis.h"
#include "command/support/advise.h"
#include "command/support/run_execute.h"
#include "command/support/studies.h"
#include "command/support/study_view.h"
#include "device/device.h"
#include "machine/machine.h"
#include "store/store.h"
#include "study/folder.h"
#include "workload/workload.h"

#include <stddef.h>
#include <string.h>

#define STUDIES_MAX 20 /* that are looked at, newest first: older ones tell of an older machine */
#define REPEATS     5

struct advise_config {
    const char *workload, *study;
};

static const struct lab_option advise_options[] = {
    {"workload", LAB_OPTION_STRING, offsetof(struct advise_config, workload), .letter = 'w',
     .value_name = "NAME", .help = "only this workload; key=value words narrow it down"},
    {"study", LAB_OPTION_STRING, offsetof(struct advise_config, study), .letter = 's',
     .value_name = "PATH",
     .help = "this study instead of the newest of this machine; it may be a simulated one"},
    {NULL},
};

/* --- what is asked for --- */

struct wanted {
    const struct lab_workload *workload; /* NULL = any */
    struct lab_value *keys;              /* map: as the workload's options have them */
};

static int read_words(const struct lab_command_call *call, struct wanted *ret_wanted,
                      struct lab_err *err) {
    const struct advise_config *config = call->config;
    *ret_wanted = (struct wanted){.keys = lab_value_map(call->arena)};
    if (call->word_count > 0 && !config->workload)
        return lab_err_set(err, LAB_ERR_USER,
                           "'%s': keys belong to a workload: gpulab advise --workload vit %s",
                           call->words[0], call->words[0]);
    if (!config->workload)
        return 0;
    ret_wanted->workload = lab_workload_find(config->workload, err);
    if (!ret_wanted->workload)
        return -1;
    const struct lab_option *table = ret_wanted->workload->options;
    void *values = lab_arena_alloc(call->arena, 1, ret_wanted->workload->config_size);
    lab_options_defaults(table, values, call->arena);
    for (int i = 0; i < call->word_count; i++)
        if (lab_options_set_word(table, values, call->arena, call->words[i], err) < 0)
            return -1;
    struct lab_value *all = lab_options_to_map(table, values, call->arena);
    for (int i = 0; i < call->word_count; i++) {
        const char *key =
            lab_arena_strndup(call->arena, call->words[i], strcspn(call->words[i], "="));
        lab_value_set(call->arena, ret_wanted->keys, key, lab_value_get(all, key));
    }
    return 0;
}

static bool is_wanted(const struct lab_study_run *run, const struct wanted *wanted) {
    if (wanted->workload && !lab_str_equal(run->run->workload, wanted->workload->name))
        return false;
    for (int i = 0; i < wanted->keys->count; i++) {
        const struct lab_value *value = lab_value_get(run->options, wanted->keys->keys[i]);
        if (!value || !lab_value_equal(value, wanted->keys->items[i]))
            return false;
    }
    return true;
}

/* Runs of other work are taken out of the table; their order stays. */
static void narrow(struct lab_study_table *table, const struct wanted *wanted) {
    int count = 0;
    for (int i = 0; i < table->run_count; i++)
        if (is_wanted(&table->runs[i], wanted))
            table->runs[count++] = table->runs[i];
    table->run_count = count;
}

/* --- which studies --- */

/* Was it run on this machine, on devices that are here? Simulated ones only speak where they are asked. */
static bool is_here(const char *folder, uint64_t identity, struct lab_arena *arena) {
    struct lab_store *store;
    struct lab_store_study study;
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    if (lab_store_open(path, LAB_STORE_READ, &store, NULL) < 0)
        return false;
    bool here =
        lab_store_study(store, arena, &study, NULL) == 0 && study.machine_identity == identity;
    lab_store_close(store);
    return here;
}

struct studies {
    struct lab_study_table *tables;
    int count;
};

static int read_named(const struct lab_command_call *call, const char *word,
                      struct studies *studies, struct lab_err *err) {
    const char *const *folders;
    int count;
    if (lab_studies_find(&word, 1, call->arena, &folders, &count, err) < 0)
        return -1;
    studies->count = count;
    return lab_studies_read(folders, count, LAB_ANALYSIS_ITERATIONS, call->arena, &studies->tables,
                            err);
}

static int read_known(const struct lab_command_call *call, const struct lab_machine *machine,
                      struct studies *studies) {
    const char *const *paths;
    int known;
    lab_folder_known(call->arena, &paths, &known);
    studies->tables = lab_arena_alloc(call->arena, STUDIES_MAX, sizeof *studies->tables);
    for (int i = 0; i < known && studies->count < STUDIES_MAX; i++) {
        struct lab_study_table *table = &studies->tables[studies->count];
        if (is_here(paths[i], lab_machine_identity(machine), call->arena) &&
            lab_studies_read_one(paths[i], LAB_ANALYSIS_ITERATIONS, call->arena, table, NULL) ==
                0 &&
            !table->simulated)
            studies->count++;
    }
    return 0;
}

/* --- advice --- */

struct gathered {
    struct lab_advice *items;
    int count, capacity;
    bool simulated;
    struct lab_value *answers; /* of analyses: a list of maps */
};

static bool is_told(const struct gathered *gathered, const char *model) {
    for (int i = 0; i < gathered->count; i++)
        if (lab_str_equal(gathered->items[i].model, model))
            return true;
    return false;
}

static int analyse(const char *name, const struct lab_analysis_input *input,
                   struct lab_arena *arena, struct lab_analysis_result *ret_result,
                   struct lab_err *err) {
    const struct lab_analysis *analysis = lab_analysis_find(name, err);
    if (!analysis)
        return -1;
    return analysis->run(lab_analysis_config(analysis, arena), input, arena, ret_result, err);
}

/* What else was asked of the study: sentences that stand beside the lines. */
static void add_answers(const struct lab_study_table *table, struct gathered *gathered,
                        struct lab_arena *arena) {
    static const char *const names[] = {"numa", "compile"};
    struct lab_analysis_input input = {.studies = table, .study_count = 1};
    for (int i = 0; i < 2; i++) {
        const struct lab_analysis *analysis = lab_analysis_find(names[i], NULL);
        struct lab_analysis_result result;
        if (!analysis || !analysis->interest || analysis->interest(table) == 0 ||
            analyse(names[i], &input, arena, &result, NULL) < 0)
            continue;
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "analysis", names[i]);
        lab_value_set_string(arena, item, "study", table->folder);
        lab_value_set_string(arena, item, "answer", result.answer);
        lab_value_append(arena, gathered->answers, item);
    }
}

/* Newer studies come first: a model that one of them has a choice for isn't asked of older ones. */
static int gather_study(const struct lab_command_call *call, const struct lab_study_table *table,
                        const struct lab_machine *machine, struct gathered *gathered,
                        struct lab_err *err) {
    struct lab_analysis_input input = {.studies = table, .study_count = 1};
    struct lab_analysis_result result;
    bool any = false;
    if (table->run_count == 0)
        return 0;
    if (analyse("recommend", &input, call->arena, &result, err) < 0)
        return -1;
    const char *folder = lab_study_view_shorten(table->folder, call->arena);
    for (int i = 0; i < result.part_count; i++) {
        struct lab_advice advice = lab_advice_make(
            &result, i, folder, table->machine ? table->machine : machine, call->arena);
        bool choices = false;
        for (int k = 0; k < advice.count; k++)
            choices |= advice.lines[k].state <= LAB_ADVICE_UNDECIDED;
        if (!choices || is_told(gathered, advice.model))
            continue;
        LAB_MEM_GROW(&gathered->items, gathered->count, &gathered->capacity);
        gathered->items[gathered->count++] = advice;
        gathered->simulated |= result.simulated;
        any = true;
    }
    if (any)
        add_answers(table, gathered, call->arena);
    return 0;
}

/* --- nothing to go by --- */

static const char *id_list(int count, bool nodes, const struct lab_machine *machine,
                           struct lab_arena *arena) {
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = lab_arena_printf(arena, "%s%s%d", list, i ? "," : "",
                                nodes ? machine->nodes[i].number : i);
    return list;
}

/* The study that would tell, for this machine. */
static const char *study_to_run(const struct lab_command_call *call,
                                const struct lab_machine *machine, const struct wanted *wanted) {
    struct lab_device_list devices = {0};
    const char **words = lab_arena_alloc(call->arena, 12, sizeof *words);
    int count = 0;
    if (wanted->workload && !lab_str_equal(wanted->workload->name, "vit"))
        return NULL;
    if (lab_device_select(machine, "auto", call->arena, &devices, NULL) < 0)
        return NULL;
    bool one_place = devices.count == 1 && machine->node_count == 1;
    words[count++] = one_place ? "compile_study" : "numa_study";
    words[count++] = lab_arena_printf(call->arena, "experiment.hardware.gpu_ids=[%s]",
                                      id_list(devices.count, false, machine, call->arena));
    words[count++] = lab_arena_printf(call->arena, "experiment.hardware.numa_nodes=[%s]",
                                      id_list(machine->node_count, true, machine, call->arena));
    for (int i = 0; i < wanted->keys->count && count < 10; i++) {
        static const char *const model[] = {"patch_size", "depth", "heads", "dim", "mlp_dim", NULL};
        const char *key = wanted->keys->keys[i];
        struct lab_str value;
        lab_str_init(&value);
        lab_value_write(wanted->keys->items[i], &value);
        bool of_model = false;
        for (int k = 0; model[k]; k++)
            of_model |= lab_str_equal(model[k], key);
        words[count++] = lab_arena_printf(call->arena, "experiment.%s.%s=%s",
                                          of_model ? "vit_configs" : "test", key, value.text);
        lab_str_release(&value);
    }
    words[count++] = lab_arena_printf(call->arena, "experiment.repeat=%d", REPEATS);
    return lab_run_command(words, call->arena);
}

static void print_nothing(const struct lab_command_call *call, const struct lab_machine *machine,
                          const struct wanted *wanted, int looked_at) {
    const char *command = study_to_run(call, machine, wanted);
    const char *answer = lab_arena_printf(call->arena, "Nothing can be advised yet: %s%s%s.",
                                          looked_at ? "no study of this machine has measured "
                                                    : "no study was run on this machine",
                                          !looked_at         ? ""
                                          : wanted->workload ? wanted->workload->name
                                                             : "a model",
                                          looked_at ? " in more than one place" : "");
    if (call->shared->json) {
        struct lab_value *map = lab_value_map(call->arena);
        lab_value_set_string(call->arena, map, "answer", answer);
        lab_value_set_bool(call->arena, map, "simulated", false);
        lab_value_set(call->arena, map, "models", lab_value_list(call->arena));
        lab_value_set_string(call->arena, map, "run", command);
        lab_command_print_json(call, map);
        return;
    }
    struct lab_str text;
    lab_str_init(&text);
    lab_text_wrap(answer, 0, 0, call->style.columns, &text);
    lab_str_add(&text, "\n");
    if (command)
        lab_str_printf(&text, "This study would tell, with %d runs of each point:\n\n  %s\n",
                       REPEATS, command);
    else
        lab_str_add(&text, "A study of your own would tell; 'gpulab help run' says how.\n");
    lab_command_print(call, &text);
    lab_str_release(&text);
}

/* --- output --- */

static void print_advice(const struct lab_command_call *call, const struct gathered *gathered) {
    const char *answer = lab_advice_answer(gathered->items, gathered->count, call->arena);
    if (call->shared->json) {
        struct lab_value *map = lab_value_map(call->arena), *list = lab_value_list(call->arena);
        for (int i = 0; i < gathered->count; i++)
            lab_value_append(call->arena, list, lab_advice_value(&gathered->items[i], call->arena));
        lab_value_set_string(call->arena, map, "answer", answer);
        lab_value_set_bool(call->arena, map, "simulated", gathered->simulated);
        lab_value_set(call->arena, map, "models", list);
        lab_value_set(call->arena, map, "analyses", gathered->answers);
        lab_value_set_string(call->arena, map, "run", NULL);
        lab_command_print_json(call, map);
        return;
    }
    struct lab_str text;
    lab_str_init(&text);
    lab_text_wrap(answer, 0, 0, call->style.columns, &text);
    lab_str_add(&text, "\n");
    if (gathered->simulated)
        lab_str_add(&text, "These are simulated devices.\n");
    for (int i = 0; i < gathered->answers->count; i++) {
        const struct lab_value *said = lab_value_get(gathered->answers->items[i], "answer");
        lab_text_wrap(said->string, 0, 0, call->style.columns, &text);
        lab_str_add(&text, "\n");
    }
    lab_advice_write(gathered->items, gathered->count, call->style, call->arena, &text);
    lab_command_print(call, &text);
    lab_str_release(&text);
}

static int advise(const struct lab_command_call *call, const struct lab_machine *machine,
                  struct lab_err *err) {
    const struct advise_config *config = call->config;
    struct wanted wanted;
    struct studies studies = {0};
    struct gathered gathered = {.answers = lab_value_list(call->arena)};
    if (read_words(call, &wanted, err) < 0)
        return -1;
    if (config->study ? read_named(call, config->study, &studies, err) < 0
                      : read_known(call, machine, &studies) < 0)
        return -1;
    int result = 0;
    for (int i = 0; i < studies.count && result == 0; i++) {
        narrow(&studies.tables[i], &wanted);
        result = gather_study(call, &studies.tables[i], machine, &gathered, err);
    }
    if (result == 0 && gathered.count == 0)
        print_nothing(call, machine, &wanted, studies.count);
    else if (result == 0)
        print_advice(call, &gathered);
    lab_mem_free(gathered.items);
    return result;
}

static int run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    int result = advise(call, machine, err);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab advise", "where to put what was measured on this machine"},
    {"gpulab advise --workload vit depth=2 dim=128", "one model"},
    {"gpulab advise --study outputs/numa_locality_study/2026-11-15/10-42-03", "from one study"},
    {NULL},
};

const struct lab_command lab_command_advise = {
    .name = "advise",
    .summary = "best placement on this machine, as lines to paste",
    .usage = "[key=value...]",
    .description =
        "Takes the newest studies of this machine, or the one given, and prints for each model the "
        "lines that put it where it ran fastest: numactl, CUDA_VISIBLE_DEVICES, Slurm, Open MPI "
        "and "
        "others. Each measured line has its gain with an interval at 95 %, over the place that "
        "costs "
        "most among those that differ in this choice alone. Choices that gain nothing are said to, "
        "with how well that is known. What wasn't measured stands apart and says so.\n\n"
        "It changes nothing on the machine: compute modes, MPS and MIG are only advised.",
    .options = advise_options,
    .config_size = sizeof(struct advise_config),
    .max_words = -1,
    .examples = examples,
    .run = run,
};
