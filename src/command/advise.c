/*
 * advise.c: `gpulab advise`: where to put work on this machine, as lines that can be pasted, from
 * studies that ran here. What they gain is what was measured; without a study it says which one to
 * run.
 */
#include "command/command.h"

#include "advise/advise.h"
#include "advise/advise_studies.h"
#include "advise/advise_training.h"
#include "analysis/analysis.h"
#include "device/device.h"
#include "load/studies.h"
#include "machine/machine.h"
#include "run/run_study.h"
#include "workload/workload.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define REPEATS        5
#define TRAINING_WORDS 8 /* of a command line, beside the keys */

struct advise_config {
    const char *workload, *study;
};

static const struct lab_option advise_options[] = {
    {"workload", LAB_OPTION_STRING, offsetof(struct advise_config, workload), .letter = 'w',
     .value_name = "NAME", .help = "only this workload; key=value words narrow it down"},
    {"study", LAB_OPTION_STRING, offsetof(struct advise_config, study), .letter = 's',
     .value_name = "PATH",
     .help = "this study instead of the newest; it may be a simulated one, or of another machine"},
    {NULL},
};

/* --- what is asked for --- */

struct wanted {
    const struct lab_workload *workload; /* NULL = any */
    struct lab_value *keys;              /* map: as the workload's options have them */
    const void *config;                  /* the workload's, with these keys; not checked */
    const char *const *studies;          /* words that are no keys */
    int study_count;
};

/* `--study`, and words without '=': paths or names of studies. */
static void split_words(const struct lab_command_call *call, struct wanted *wanted,
                        const char **ret_keys, int *ret_key_count) {
    const struct advise_config *config = call->config;
    const char **studies =
        lab_arena_alloc(call->arena, (size_t)call->word_count + 2, sizeof *studies);
    *ret_key_count = 0;
    if (config->study)
        studies[wanted->study_count++] = config->study;
    for (int i = 0; i < call->word_count; i++)
        if (strchr(call->words[i], '='))
            ret_keys[(*ret_key_count)++] = call->words[i];
        else
            studies[wanted->study_count++] = call->words[i];
    wanted->studies = studies;
}

static int read_words(const struct lab_command_call *call, struct wanted *ret_wanted,
                      struct lab_err *err) {
    const struct advise_config *config = call->config;
    const char **keys = lab_arena_alloc(call->arena, (size_t)call->word_count + 1, sizeof *keys);
    int count;
    *ret_wanted = (struct wanted){.keys = lab_value_map(call->arena)};
    split_words(call, ret_wanted, keys, &count);
    if (count > 0 && !config->workload)
        return lab_err_set(err, LAB_ERR_USER,
                           "'%s': keys belong to a workload: gpulab advise --workload vit %s",
                           keys[0], keys[0]);
    if (!config->workload)
        return 0;
    ret_wanted->workload = lab_workload_find(config->workload, err);
    if (!ret_wanted->workload)
        return -1;
    const struct lab_option *table = ret_wanted->workload->options;
    void *values = lab_arena_alloc(call->arena, 1, ret_wanted->workload->config_size);
    lab_options_defaults(table, values, call->arena);
    for (int i = 0; i < count; i++)
        if (lab_options_set_word(table, values, call->arena, keys[i], err) < 0)
            return -1;
    struct lab_value *all = lab_options_to_map(table, values, call->arena);
    for (int i = 0; i < count; i++) {
        const char *key = lab_arena_strndup(call->arena, keys[i], strcspn(keys[i], "="));
        lab_value_set(call->arena, ret_wanted->keys, key, lab_value_get(all, key));
    }
    ret_wanted->config = values;
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

static int read_named(const struct lab_command_call *call, const struct wanted *wanted,
                      struct lab_advise_studies *studies, struct lab_err *err) {
    return lab_studies_read(wanted->studies, wanted->study_count, LAB_STUDY_WITH_ITERATIONS,
                            call->arena, &studies->tables, &studies->count, err);
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
                        struct gathered *gathered, struct lab_err *err) {
    struct lab_analysis_input input = {.studies = table, .study_count = 1};
    struct lab_analysis_result result;
    bool any = false;
    if (table->run_count == 0)
        return 0;
    if (analyse("recommend", &input, call->arena, &result, err) < 0)
        return -1;
    for (int i = 0; i < result.part_count; i++) {
        struct lab_advice advice = lab_advice_make(&result, i, table, call->arena);
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
    if (wanted->workload && !lab_options_find(wanted->workload->options, "patch_size"))
        return NULL;
    if (lab_device_select(machine, "auto", call->arena, &devices, NULL) < 0)
        return NULL;
    bool one_place = devices.count == 1 && machine->node_count == 1;
    words[count++] = lab_config_study_for(one_place ? "compile" : "numa", call->arena);
    words[count++] = lab_arena_printf(call->arena, "experiment.hardware.gpu_ids=[%s]",
                                      id_list(devices.count, false, machine, call->arena));
    words[count++] = lab_arena_printf(call->arena, "experiment.hardware.numa_nodes=[%s]",
                                      id_list(machine->node_count, true, machine, call->arena));
    for (int i = 0; i < wanted->keys->count && count < 10; i++) {
        static const char *const model[] = {"patch_size", "depth", "heads", "dim", "mlp_dim", NULL};
        const char *key = wanted->keys->keys[i];
        LAB_AUTO(str, value);
        lab_value_write(wanted->keys->items[i], &value);
        bool of_model = false;
        for (int k = 0; model[k]; k++)
            of_model |= lab_str_equal(model[k], key);
        words[count++] = lab_arena_printf(call->arena, "experiment.%s.%s=%s",
                                          of_model ? "vit_configs" : "test", key, value.text);
    }
    words[count++] = lab_arena_printf(call->arena, "experiment.repeat=%d", REPEATS);
    return lab_run_command(words, call->arena);
}

static void print_nothing(const struct lab_command_call *call, const struct lab_machine *machine,
                          const struct wanted *wanted, int looked_at) {
    /* a study that was named may be another machine's */
    const char *named = wanted->study_count > 0 ? wanted->studies[0] : NULL;
    const char *command = named ? NULL : study_to_run(call, machine, wanted);
    const char *model = wanted->workload ? wanted->workload->name : "a model";
    const char *answer = "Nothing can be advised yet: no study was run on this machine.";
    if (named)
        answer = lab_arena_printf(call->arena,
                                  "Nothing can be advised yet: %s hasn't measured %s in more than "
                                  "one place.",
                                  named, model);
    else if (looked_at)
        answer = lab_arena_printf(call->arena,
                                  "Nothing can be advised yet: no study of this machine has "
                                  "measured %s in more than one place.",
                                  model);
    struct lab_doc *doc = lab_doc_open("Advice", call->arena);
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, answer);
    lab_doc_data(doc, "study", lab_value_null(call->arena));
    lab_doc_data(doc, "simulated", lab_value_bool(call->arena, false));
    lab_doc_data(doc, "models", lab_value_list(call->arena));
    lab_doc_data(doc, "run",
                 command ? lab_value_string(call->arena, command) : lab_value_null(call->arena));
    if (command) {
        lab_doc_text(doc, LAB_DOC_WHOLE,
                     "This study would tell, with %d runs of each point:", REPEATS);
        lab_doc_gap(doc);
        lab_doc_code(doc, NULL, command);
    } else {
        lab_doc_text(doc, LAB_DOC_WHOLE,
                     "A study of your own would tell; 'gpulab help run' says how.");
    }
    lab_doc_print(doc, call->console);
}

/* --- output --- */

static void print_advice(const struct lab_command_call *call, const struct gathered *gathered) {
    const char *answer = lab_advice_answer(gathered->items, gathered->count, call->arena);
    struct lab_doc *doc = lab_doc_open("Advice", call->arena);
    struct lab_value *list = lab_value_list(call->arena);
    for (int i = 0; i < gathered->count; i++)
        lab_value_append(call->arena, list, lab_advice_value(&gathered->items[i], call->arena));
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, answer);
    lab_doc_data(doc, "study", lab_value_string(call->arena, gathered->items[0].study));
    lab_doc_data(doc, "simulated", lab_value_bool(call->arena, gathered->simulated));
    lab_doc_data(doc, "models", list);
    lab_doc_data(doc, "analyses", gathered->answers);
    lab_doc_data(doc, "run", lab_value_null(call->arena));
    for (int i = 0; i < gathered->answers->count; i++)
        lab_doc_text(doc, LAB_DOC_SAYS, "%s",
                     lab_value_get(gathered->answers->items[i], "answer")->string);
    lab_advice_add(doc, gathered->items, gathered->count);
    lab_doc_print(doc, call->console);
}

/* --- how many devices to train on --- */

/* The study of this model that would tell, on the devices that are here. */
static const char *training_to_run(const struct lab_command_call *call,
                                   const struct lab_machine *machine, const struct wanted *wanted,
                                   double batch, const struct lab_training_known *known) {
    struct lab_device_list devices = {0};
    const char **words =
        lab_arena_alloc(call->arena, (size_t)wanted->keys->count + TRAINING_WORDS, sizeof *words);
    int count = 0;
    words[count++] = lab_config_study_for("training", call->arena);
    if (known->simulated && known->device) /* "sim:l40s-10" of "sim:l40s-10:3" */
        words[count++] =
            lab_arena_printf(call->arena, "device=%.*s",
                             (int)(strrchr(known->device, ':') - known->device), known->device);
    else if (lab_device_select(machine, "auto", call->arena, &devices, NULL) == 0 &&
             devices.count == 1)
        words[count++] = lab_arena_printf(call->arena, "device=%s/2", devices.items[0].name);
    if (lab_value_get(wanted->keys, "widths"))
        words[count++] = "experiment.model=medium";
    for (int i = 0; i < wanted->keys->count; i++) {
        const char *key = wanted->keys->keys[i];
        struct lab_str value;
        if (lab_str_equal(key, "batch_size"))
            continue;
        lab_str_init(&value);
        lab_value_write(wanted->keys->items[i], &value);
        words[count++] = lab_arena_printf(call->arena, "++experiment.%s=%s", key, value.text);
        lab_str_release(&value);
    }
    words[count++] = lab_arena_printf(call->arena, "experiment.batch_sizes=[%.0f,%.0f,%.0f,%.0f]",
                                      fmax(2, batch / 4), fmax(4, batch / 2), fmax(8, batch),
                                      fmax(16, 2 * batch));
    words[count++] = lab_arena_printf(call->arena, "experiment.runs=%d", REPEATS);
    return lab_run_command(words, call->arena);
}

/* What is asked, where the workload trains a model: 1; 0 = it does other work, -1 = its keys are
 * wrong. */
static int ask_training(const struct lab_command_call *call, const struct wanted *wanted,
                        struct lab_training_question *ret_question, struct lab_err *err) {
    const struct lab_workload *workload = wanted->workload;
    struct lab_workload_cost cost = {0};
    if (!workload || !workload->collective || !workload->cost)
        return 0;
    if (workload->check && workload->check((void *)wanted->config, err) < 0)
        return -1;
    workload->cost(wanted->config, &cost);
    if (!(cost.parameters > 0) || !(cost.layers > 0))
        return 0;
    *ret_question = (struct lab_training_question){
        .model = lab_workload_label(workload, wanted->config, call->arena),
        .work = {.parameters = cost.parameters,
                 .layers = cost.layers,
                 .batch = cost.samples,
                 .devices = 1,
                 .weak = lab_str_equal(lab_value_get_text(wanted->keys, "scaling", NULL), "weak")}};
    return 1;
}

/* Of the studies that were named the first that fits a law; else the newest of this machine. */
static int advise_training(const struct lab_command_call *call, const struct lab_machine *machine,
                           const struct wanted *wanted, struct lab_training_question *question,
                           struct lab_err *err) {
    struct lab_training_known known = {0};
    const char *none = "no study has trained a model on one device and on several here";
    bool found = false;
    if (wanted->study_count > 0) {
        struct lab_advise_studies studies = {0};
        if (read_named(call, wanted, &studies, err) < 0)
            return -1;
        for (int i = 0; i < studies.count && known.training.law_count == 0; i++) {
            struct lab_training_known other;
            if (lab_training_of_study(&studies.tables[i], wanted->keys, call->arena, &other) &&
                (!found || other.training.law_count > 0)) {
                known = other;
                found = true;
            }
        }
        none = lab_arena_printf(call->arena,
                                "%s has no models that were trained on one device and on several, "
                                "with these keys",
                                wanted->studies[0]);
    } else {
        struct lab_training_wanted asked = {.machine_identity = lab_machine_identity(machine),
                                            .keys = wanted->keys,
                                            .below_first = true};
        found = lab_training_find(&asked, call->arena, &known);
    }
    question->run = training_to_run(call, machine, wanted, question->work.batch, &known);
    if (found)
        lab_advise_training(call->console, call->arena, question, &known);
    else
        lab_advise_training_nothing(call->console, call->arena, question, none);
    return 0;
}

/* --- the whole --- */

static int advise(const struct lab_command_call *call, const struct lab_machine *machine,
                  struct lab_err *err) {
    struct wanted wanted;
    struct lab_advise_studies studies = {0};
    struct gathered gathered = {.answers = lab_value_list(call->arena)};
    if (read_words(call, &wanted, err) < 0)
        return -1;
    struct lab_training_question question;
    int trains = ask_training(call, &wanted, &question, err);
    if (trains)
        return trains < 0 ? -1 : advise_training(call, machine, &wanted, &question, err);
    if (wanted.study_count == 0)
        studies = lab_advise_studies_read(lab_machine_identity(machine), call->arena);
    else if (read_named(call, &wanted, &studies, err) < 0)
        return -1;
    int result = 0;
    bool answered = false; /* by a simulated study, which says nothing of this machine */
    for (int i = 0; i < studies.count && result == 0 && !answered; i++) {
        narrow(&studies.tables[i], &wanted);
        result = gather_study(call, &studies.tables[i], &gathered, err);
        answered = studies.first_simulated && i == 0 && gathered.count > 0;
    }
    if (result == 0 && gathered.count == 0)
        print_nothing(call, machine, &wanted, studies.count - studies.first_simulated);
    else if (result == 0)
        print_advice(call, &gathered);
    lab_mem_free(gathered.items);
    return result;
}

static int advise_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    int result = advise(call, machine, err);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab advise", "where to put what was measured here"},
    {"gpulab advise --workload vit depth=2 dim=128", "one model"},
    {"gpulab advise --workload mlp widths=50-1024-1024-3 batch_size=64",
     "how many devices to train a model on that was never run"},
    {"gpulab advise --study outputs/numa_locality_study/2026-11-15/10-42-03", "from one study"},
    {NULL},
};

const struct lab_command lab_command_advise = {
    .name = "advise",
    .summary = "best placement on this machine, as lines to paste",
    .usage = "[key=value...] [STUDY...]",
    .description =
        "Prints for each model the lines that start PROGRAM where it ran fastest. Every line names "
        "the GPU (CUDA_VISIBLE_DEVICES: its UUID, else its number in PCI order), the cores and the "
        "memory (numactl), also those for Slurm, Open MPI and others. A measured line has its gain "
        "with a 95% interval: over all places that agree in the other choices, or over the slowest "
        "place where there is one pair alone. Choices without a gain are listed with a bound. What "
        "wasn't measured stands apart. A slice of a device has no line: other programs can't "
        "address it.\n\n"
        "Without STUDY it takes the newest studies below the working directory, then the newest "
        "elsewhere, all of this machine. A simulated study counts where it is the newest below the "
        "working directory; it then stands alone. The study is named.\n\n"
        "Of a workload that trains a model (mlp) it says on how many devices: by the law that the "
        "newest train_scaling study of this machine, or the one given, was fitted with, also for "
        "widths and batches that were never run; with intervals, where several devices begin to "
        "pay, and how far beyond what was run that is.\n\n"
        "It changes nothing on the machine: compute modes, MPS and MIG are only advised.",
    .options = advise_options,
    .config_size = sizeof(struct advise_config),
    .max_words = -1,
    .examples = examples,
    .run = advise_run,
};
