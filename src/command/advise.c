/*
 * advise.c: `gpulab advise`: where to put work on this machine, as lines that can be pasted, from
 * studies that ran here. What they gain is what was measured; --verify measures it again. Without a
 * study it says which one to run.
 */
#include "command/advise/verify.h"
#include "command/command.h"

#include "advise/advise.h"
#include "advise/advise_studies.h"
#include "advise/advise_training.h"
#include "analysis/analysis.h"
#include "base/list.h"
#include "device/device.h"
#include "load/studies.h"
#include "load/study_view.h"
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
    bool verify;
};

static const struct lab_option advise_options[] = {
    {"workload", LAB_OPTION_STRING, offsetof(struct advise_config, workload), .letter = 'w',
     .value_name = "NAME", .help = "only this workload; key=value words narrow it down"},
    {"study", LAB_OPTION_STRING, offsetof(struct advise_config, study), .letter = 's',
     .value_name = "PATH",
     .help = "this study instead of the newest; it may be a simulated one, or of another machine"},
    {"verify", LAB_OPTION_FLAG, offsetof(struct advise_config, verify),
     .help = "run the advised placements and the others again, in turn, and print the gain"},
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
    return lab_studies_read(wanted->studies, wanted->study_count,
                            LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_CURVES, call->arena,
                            &studies->tables, &studies->count, err);
}

/* --- advice --- */

struct gathered {
    struct lab_advice *items;
    const struct lab_study_table **tables; /* that they come from */
    int count;
};

static bool has_kind(const struct gathered *gathered, const char *kind) {
    for (int i = 0; i < gathered->count; i++)
        if (LAB_FIND(gathered->items[i].tested, gathered->items[i].tested_count, kind, kind) >= 0)
            return true;
    return false;
}

/* Newer studies come first: older ones are asked for what no newer one compares. */
static void gather_study(const struct lab_command_call *call, const struct lab_study_table *table,
                         struct gathered *gathered) {
    if (table->run_count == 0)
        return;
    struct lab_advice advice = lab_advice_make(table, NULL, call->arena);
    for (int i = 0; i < advice.tested_count; i++)
        if (!has_kind(gathered, advice.tested[i].kind)) {
            gathered->tables[gathered->count] = table;
            gathered->items[gathered->count++] = advice;
            return;
        }
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

static struct lab_value *text_or_null(const char *text, struct lab_arena *arena) {
    return text ? lab_value_string(arena, text) : lab_value_null(arena);
}

/* Why there is nothing to advise. `named`: the study that was asked, or NULL; `any`: there is one
 * of this machine. */
static const char *why_nothing(const struct lab_command_call *call, const char *named, bool any,
                               const struct wanted *wanted,
                               const struct lab_advise_studies *studies) {
    const struct lab_study_table *first = named && studies->count > 0 ? studies->tables : NULL;
    const char *model = wanted->workload ? wanted->workload->name : "a model";
    if (first && first->failed_count > 0 && first->failed_count == first->planned_count)
        return lab_arena_printf(call->arena, "Nothing is advised: no run of %s succeeded.", named);
    if (!any)
        return "Nothing is advised: no study was run on this machine.";
    if (first && !wanted->workload)
        return lab_arena_printf(call->arena,
                                "Nothing is advised: %s compares no settings, and no single "
                                "device's local NUMA node with others.",
                                named);
    return lab_arena_printf(call->arena, "Nothing is advised: %s placements of %s.",
                            named ? lab_arena_printf(call->arena, "%s compares no", named)
                                  : "no study of this machine compares",
                            model);
}

struct other_question { /* that a study answers, though it compares no placements */
    const char *answer, *title, *command;
};

/* "model=medium", "widths=50-64-3" of a run that trains. */
static const char *model_word(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *widths = lab_value_get_text(run->options, "widths", "");
    return *widths ? lab_arena_printf(arena, "widths=%s", widths)
                   : lab_arena_printf(arena, "model=%s",
                                      lab_value_get_text(run->options, "model", "medium"));
}

static struct other_question ask_devices(const struct lab_study_table *table,
                                         struct lab_arena *arena) {
    const struct lab_study_run *run = &table->runs[0];
    LAB_AUTO(str, line);
    lab_str_printf(&line, "gpulab advise --workload %s --study ", run->run->workload);
    lab_str_add_shell(&line, lab_study_view_shorten(table->folder, arena));
    lab_str_printf(&line, " %s batch_size=%.0f", model_word(run, arena), run->work.samples);
    return (struct other_question){
        "This study compares one device with several: ask for a model and a batch.",
        "On how many devices to train", lab_arena_strdup(arena, line.text)};
}

static struct other_question ask_mitigations(const struct lab_study_table *table,
                                             struct lab_arena *arena) {
    const struct lab_study_run *most = &table->runs[0];
    const char **words = lab_arena_alloc(arena, 5, sizeof *words), *ids = "";
    int count = 0;
    for (int i = 0; i < table->run_count; i++)
        most = table->runs[i].rank_count > most->rank_count ? &table->runs[i] : most;
    for (int r = 0; r < most->rank_count; r++)
        ids = lab_arena_printf(arena, "%s%s%d", ids, r ? "," : "", most->ranks[r].gpu_id);
    words[count++] = lab_config_study_for("contention", arena);
    if (table->simulated) /* "sim:l40s-10" of "sim:l40s-10:3" */
        words[count++] =
            lab_arena_printf(arena, "device=%.*s",
                             (int)(strrchr(most->ranks[0].device, ':') - most->ranks[0].device),
                             most->ranks[0].device);
    words[count++] = lab_arena_printf(arena, "experiment.hardware.gpu_ids=[%s]", ids);
    words[count++] = "experiment.phases=[baseline,concurrent,isolated]";
    return (struct other_question){
        "Nothing is advised: this study tests no mitigation.",
        lab_arena_printf(arena, "A study that does, %d runs per point", REPEATS),
        lab_run_command(words, arena)};
}

/* Of programs, and of a matrix over a workload: the setting to use, as its report has it. */
static struct other_question advise_setting(const struct lab_study_table *table,
                                            struct lab_arena *arena) {
    const struct lab_analysis *metrics = lab_analysis_find("metrics", NULL);
    struct lab_analysis_input input = {.studies = table, .study_count = 1};
    struct lab_analysis_result result;
    if (!metrics || metrics->interest(table) == 0 ||
        lab_analysis_run(metrics, NULL, &input, arena, &result, NULL) < 0)
        return (struct other_question){0};
    const char *action = result.action ? result.action : "Nothing is advised";
    const char *remark = strstr(action, " (SEED: "); /* on the command */
    size_t length = remark ? (size_t)(remark - action) : strlen(action);
    const char *answer = lab_arena_printf(arena, "%s. %s", action, result.answer);
    if (strncmp(result.answer, action, length) == 0) /* it says what to do already */
        answer = remark ? lab_arena_printf(arena, "%s %.*s.", result.answer,
                                           (int)strcspn(remark + 2, ")"), remark + 2)
                        : result.answer;
    return (struct other_question){answer, "Its command", result.command};
}

/* Of a study that has been run; an answer of NULL = none. */
static struct other_question find_other(const struct lab_advise_studies *studies,
                                        struct lab_arena *arena) {
    for (int i = 0; i < studies->count; i++)
        if (studies->tables[i].run_count > 0 &&
            studies->tables[i].failed_count < studies->tables[i].planned_count) {
            const struct lab_study_table *table = &studies->tables[i];
            struct other_question setting = advise_setting(table, arena);
            return setting.answer                ? setting
                   : lab_study_trains(table)     ? ask_devices(table, arena)
                   : lab_study_has_phases(table) ? ask_mitigations(table, arena)
                                                 : (struct other_question){0};
        }
    return (struct other_question){0};
}

static void print_nothing(const struct lab_command_call *call, const struct lab_machine *machine,
                          const struct wanted *wanted, const struct lab_advise_studies *studies) {
    /* a study that was named may be another machine's */
    const char *named = wanted->study_count > 0 ? wanted->studies[0] : NULL, *study = NULL;
    bool simulated = false;
    struct other_question other = find_other(studies, call->arena);
    const char *command =
        named || other.answer ? other.command : study_to_run(call, machine, wanted);
    for (int i = 0; i < studies->count && !study; i++)
        if (studies->tables[i].run_count > 0) {
            study = lab_study_view_shorten(studies->tables[i].folder, call->arena);
            simulated = studies->tables[i].simulated;
        }
    const char *answer =
        other.answer ? other.answer
                     : why_nothing(call, named, study || studies->count > studies->first_simulated,
                                   wanted, studies);
    struct lab_doc *doc = lab_doc_open("Advice", call->arena);
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, answer);
    lab_doc_data(doc, "study", text_or_null(study, call->arena));
    lab_doc_data(doc, "simulated", lab_value_bool(call->arena, simulated));
    lab_doc_data(doc, "advice", lab_value_list(call->arena));
    lab_doc_data(doc, "run", text_or_null(command, call->arena));
    if (study)
        lab_doc_text(doc, LAB_DOC_WHOLE, "Study: %s%s", study, simulated ? " (simulated)" : "");
    if (command) {
        lab_doc_gap(doc);
        if (other.title)
            lab_doc_text(doc, LAB_DOC_TITLE, "%s", other.title);
        else
            lab_doc_text(doc, LAB_DOC_TITLE, "A study that compares, %d runs per point", REPEATS);
        lab_doc_code(doc, NULL, command);
    }
    lab_doc_print(doc, call->console);
}

/* --- output --- */

static bool is_open(const struct lab_advice *advice) {
    for (int i = 0; i < advice->tested_count; i++)
        if (advice->tested[i].verdict == LAB_CLAIM_INCONCLUSIVE)
            return true;
    return false;
}

static const char *verify_command(const struct lab_advice *advice, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    lab_str_add(&text, "gpulab advise --verify --study ");
    lab_str_add_shell(&text, advice->study);
    return lab_arena_strdup(arena, text.text);
}

static void print_advice(const struct lab_command_call *call, const struct gathered *gathered) {
    const struct lab_advice *first = &gathered->items[0];
    struct lab_doc *doc = lab_doc_open("Advice", call->arena);
    struct lab_value *list = lab_value_list(call->arena);
    const char *next = NULL;
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, first->answer);
    lab_doc_data(doc, "study", lab_value_string(call->arena, first->study));
    lab_doc_data(doc, "simulated", lab_value_bool(call->arena, first->simulated));
    for (int i = 0; i < gathered->count; i++) {
        const struct lab_advice *advice = &gathered->items[i];
        if (i > 0) {
            lab_doc_gap(doc);
            lab_doc_text(doc, LAB_DOC_SAYS, "%s", advice->answer);
        }
        lab_advice_add(doc, advice);
        lab_value_append(call->arena, list, lab_advice_value(advice, call->arena));
        if (!next && is_open(advice))
            next = verify_command(advice, call->arena);
    }
    lab_doc_data(doc, "advice", list);
    lab_doc_data(doc, "run", text_or_null(next, call->arena));
    if (next) {
        lab_doc_gap(doc);
        lab_doc_text(doc, LAB_DOC_TITLE, "What is inconclusive, with %d runs per point", REPEATS);
        lab_doc_code(doc, NULL, next);
    }
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
                  int *ret_status, struct lab_err *err) {
    const struct advise_config *config = call->config;
    struct wanted wanted;
    struct lab_advise_studies studies = {0};
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
    size_t room = (size_t)studies.count + 1;
    struct gathered gathered = {.items = lab_arena_alloc(call->arena, room, sizeof *gathered.items),
                                .tables =
                                    lab_arena_alloc(call->arena, room, sizeof *gathered.tables)};
    for (int i = 0; i < studies.count; i++) {
        narrow(&studies.tables[i], &wanted);
        gather_study(call, &studies.tables[i], &gathered);
        /* a simulated study says nothing of this machine: it stands alone */
        if (studies.first_simulated && i == 0 && gathered.count > 0)
            break;
    }
    if (gathered.count == 0)
        print_nothing(call, machine, &wanted, &studies);
    else if (config->verify)
        return lab_command_verify(call, machine, gathered.tables[0], &gathered.items[0], ret_status,
                                  err);
    else
        print_advice(call, &gathered);
    return 0;
}

static int advise_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    struct lab_machine *machine;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    int result = advise(call, machine, ret_status, err);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab advise", "placements for what was measured here"},
    {"gpulab advise --verify", "measure that gain again"},
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
        "Prints a line for each device that has higher throughput when bound to one NUMA node. It "
        "sets GPU (CUDA_VISIBLE_DEVICES: its UUID, else its number in PCI order), cores and memory "
        "(numactl). Lines for torchrun, mpirun and srun follow. Each has its measured gain over "
        "the other NUMA nodes tested, with a 95% interval; a device without a certain gain has no "
        "line. Settings and phases that pay off follow, then lines that no study measures, marked "
        "so: MPS, MIG, OpenMP, NCCL and the like, where they apply. A slice of a device has no "
        "line: other programs can't address it.\n"
        "\n"
        "--verify runs the same points again, 5 runs each, advised and others in turn, and prints "
        "the measured gain. The lines are fixed before.\n"
        "\n"
        "Without STUDY it takes the newest studies below the working directory, then the newest "
        "elsewhere, all of this machine. A simulated study counts where it is the newest below the "
        "working directory; it is then used alone. The study is named.\n"
        "\n"
        "For a workload that trains a model (mlp) it shows the number of devices to use and the "
        "break-even batch, with intervals. It uses the cost model fitted to the newest "
        "train_scaling study of this machine, or to the study given. Widths and batches outside of "
        "the tested range are marked.\n"
        "\n"
        "It changes nothing on the machine.",
    .options = advise_options,
    .config_size = sizeof(struct advise_config),
    .max_words = -1,
    .examples = examples,
    .run = advise_run,
};
