/*
 * plan_keys.c: the keys that are the study's own. One table is their schema; a tree is read against
 * it and against the workload's table, and whatever neither knows is refused with the nearest key.
 */
#include "plan/plan_internal.h"

#include "model/metric_name.h"

#include <stdio.h>

static const char *const orders[] = {"random", "as_given", NULL};
static const char *const gpu_modes[] = {"single", "multi", "auto", "compare", NULL};
static const char *const process_kinds[] = {"per_rank", "shared", "launcher", NULL};
static const char *const profilers[] = {"none", "nsys", NULL};
static const char *const disturbances[] = {"none", "cpu", "membw", "pcie", "sm", "power", NULL};

#define AT(field) offsetof(struct plan_keys, field)
#define DAY_S     86400.0

const struct lab_option lab_plan_keys[] = {
    {"device", LAB_OPTION_STRING, AT(device), .fallback = "auto", .value_name = "DEVICE",
     .help = "the list of devices that gpu_ids count through"},
    {"seed", LAB_OPTION_INT, AT(seed), .fallback = "42", .min = 0, .max = 0x1p53,
     .help = "of synthetic data and of the runs' order"},
    {"output_dir", LAB_OPTION_STRING, AT(output_dir), .fallback = "outputs", .value_name = "DIR",
     .help = "a study writes to <output_dir>/<name>/<date>/<time>"},
    {"tracker", LAB_OPTION_STRING, AT(tracker),
     .help = "where results are sent during the study; several joined by commas or as a list"},
    {"experiment.name", LAB_OPTION_STRING, AT(name), .help = "the study's directory"},
    {"experiment.workload", LAB_OPTION_STRING, AT(workload), .fallback = LAB_WORKLOAD_DEFAULT,
     .help = "what runs: see 'gpulab bench'"},
    {"experiment.question", LAB_OPTION_STRING, AT(question),
     .help = "what the study is to answer, as its report shows it"},
    {"experiment.answers", LAB_OPTION_STRING, AT(answers),
     .help = "analyses that the report opens with, in that order, as a list; none = by what ran"},
    {"experiment.objective", LAB_OPTION_STRING, AT(objective), .value_name = "METRIC",
     .help = "of programs: what settings are chosen by: a metric, or METRIC:min, METRIC:max"},
    {"experiment.hardware.gpu_ids", LAB_OPTION_INTS, AT(gpu_ids), .min = 0, .max = 65536,
     .help = "positions in the list of devices, or all; an inner list is a gang that runs at once"},
    {"experiment.hardware.numa_nodes", LAB_OPTION_INTS, AT(numa_nodes), .min = 0, .max = 65536,
     .help = "NUMA nodes to bind to, by the kernel's numbers, or all; local = each device's"},
    {"experiment.test.num_samples", LAB_OPTION_INT, AT(test.num_samples), .fallback = "1000",
     .min = 1, .max = 1e12, .unit = "samples",
     .help = "of one run, rounded up to whole batches; not given: 20 batches at least"},
    {"experiment.test.warmup_samples", LAB_OPTION_INT, AT(test.warmup_samples), .fallback = "100",
     .min = 0, .max = 1e12, .unit = "samples", .help = "dropped before those"},
    {"experiment.test.num_steps", LAB_OPTION_INT, AT(test.num_steps), .fallback = "-1", .min = -1,
     .max = 1e9, .unit = "iterations",
     .help = "of one run, 1 or more, whatever the batch, instead of num_samples; -1 = by samples"},
    {"experiment.test.warmup_steps", LAB_OPTION_INT, AT(test.warmup_steps), .fallback = "-1",
     .min = -1, .max = 1e9, .unit = "iterations",
     .help = "dropped before those, instead of warmup_samples; -1 = by samples"},
    {"experiment.test.timeout_s", LAB_OPTION_DURATION, AT(test.timeout_s), .fallback = "600",
     .min = 0.001, .max = 30 * DAY_S, .help = "after which a run has failed"},
    {"experiment.resume", LAB_OPTION_FLAG, AT(resume), .fallback = "true",
     .help = "resume the newest unfinished directory of the same plan"},
    {"experiment.spread", LAB_OPTION_FLAG, AT(spread), .fallback = "false",
     .help = "each point once, on whichever of gpu_ids is free, instead of on each of them"},
    {"experiment.max_workers", LAB_OPTION_INT, AT(max_workers), .min = 1, .max = 1024,
     .help = "runs at the same time; more than one disturb each other; absent = 1, or one on each "
             "device of a spread study"},
    {"experiment.runs_per_device", LAB_OPTION_INT, AT(runs_per_device), .fallback = "1", .min = 1,
     .max = 1024, .help = "of them on one device"},
    {"experiment.max_retries", LAB_OPTION_INT, AT(max_retries), .fallback = "1", .min = 0,
     .max = 100, .help = "of a run that failed"},
    {"experiment.fail_fast", LAB_OPTION_FLAG, AT(fail_fast), .fallback = "false",
     .help = "stop at the first run that failed for good"},
    {"experiment.order", LAB_OPTION_CHOICE, AT(order), .fallback = "random", .choices = orders,
     .help = "random: in blocks and by the seed, so that drift affects all runs alike"},
    {"experiment.repeat", LAB_OPTION_INT, AT(repeat), .fallback = "1", .min = 1, .max = 100000,
     .help = "runs of each point, one block of all points after the other"},
    {"experiment.processes", LAB_OPTION_CHOICE, AT(processes), .choices = process_kinds,
     .help = "ranks of a gang: a process each, threads of one, or launcher: your program once for "
             "all GPUs; absent = what devices and command need"},
    {"experiment.gpu_mode", LAB_OPTION_CHOICE, AT(gpu_mode), .choices = gpu_modes,
     .help = "which gangs gpu_ids forms: one device; all of them; 1, 2, 4, … to compare; auto: by "
             "model size and batch. Absent = as gpu_ids says"},
    {"experiment.budget", LAB_OPTION_DURATION, AT(budget_s), .min = 0, .max = 365 * DAY_S,
     .help = "start no more runs after this time; 0 = none"},
    {"experiment.monitor", LAB_OPTION_FLAG, AT(monitor), .fallback = "true",
     .help = "record the machine: energy, clocks, co-located processes; samples in study.db"},
    {"experiment.trace", LAB_OPTION_FLAG, AT(trace), .fallback = "true",
     .help = "a short traced pass after the first run of each point, kept in traces/"},
    {"experiment.profiler", LAB_OPTION_CHOICE, AT(profiler), .fallback = "none",
     .choices = profilers, .help = "a profiler around every run; its report is in traces/"},
    {"experiment.disturb", LAB_OPTION_CHOICE, AT(disturb), .fallback = "none",
     .choices = disturbances,
     .help = "adds a phase with a synthetic neighbour: cpu, membw on CPUs; pcie, membw, sm, power "
             "on GPUs"},
    {"experiment.cooldown", LAB_OPTION_DURATION, AT(cooldown_s), .min = 0, .max = DAY_S,
     .help =
         "pause between runs; in studies with phases the longest, until the devices are as cool "
         "as before"},
    {"experiment.duration", LAB_OPTION_DURATION, AT(duration_s), .min = 0, .max = 30 * DAY_S,
     .help = "time of a run, instead of num_samples; in studies with phases, of a phase on a "
             "device; 0 = none"},
    {NULL},
};

/* --- messages --- */

int plan_require(const struct lab_value *value, const char *key, struct lab_err *err) {
    if (value->type != LAB_VALUE_STRING || value->quoted || !lab_str_equal(value->string, "???"))
        return 0;
    return lab_value_err(value, err, "%s has no value yet: add %s=VALUE", key, key);
}

/* `known` is NULL-terminated. */
static int refuse_unknown(const struct lab_value *value, const char *key, const char *const *known,
                          struct lab_err *err) {
    const char *name = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;
    const char *nearest = lab_str_nearest(name, known);
    if (nearest)
        return lab_value_err(value, err, "unknown key '%.80s'; did you mean '%s'?", key, nearest);
    LAB_AUTO(str, list);
    lab_str_add_list(&list, known, "and");
    lab_value_err(value, err, "unknown key '%.80s'; there are %s", key, list.text);
    return -1;
}

static int count_rows(const struct lab_option *table) {
    int count = 0;
    while (table && table[count].name)
        count++;
    return count;
}

/* The study's keys directly below `prefix`, the workload's (may be NULL) and two more. */
static const char *const *known_keys(const char *prefix, const struct lab_workload *workload,
                                     const char *more, const char *and_more,
                                     struct lab_arena *arena) {
    const struct lab_option *rows = workload ? workload->options : NULL;
    int most = count_rows(lab_plan_keys) + count_rows(rows) + 2, count = 0;
    const char **names = lab_arena_alloc(arena, (size_t)most + 1, sizeof *names);
    size_t length = strlen(prefix);
    for (const struct lab_option *row = lab_plan_keys; row->name; row++)
        if (strncmp(row->name, prefix, length) == 0 && !strchr(row->name + length, '.'))
            names[count++] = row->name + length;
    for (const struct lab_option *row = rows; row && row->name; row++)
        names[count++] = row->name;
    if (more)
        names[count++] = more;
    if (and_more)
        names[count++] = and_more;
    return names;
}

/* --- single keys --- */

/* As identities see it: the order of a map's keys doesn't count. */
static bool same_tree(const struct lab_option *row, const void *a, const void *b) {
    LAB_AUTO(str, right);
    LAB_AUTO(str, left);
    plan_option_write(row, a, false, &left);
    plan_option_write(row, b, false, &right);
    return lab_str_equal(left.text, right.text);
}

bool plan_option_equal(const struct lab_option *row, const void *a, const void *b) {
    const char *left = (const char *)a + row->offset, *right = (const char *)b + row->offset;
    switch (row->type) {
    case LAB_OPTION_FLAG:
        return *(const bool *)left == *(const bool *)right;
    case LAB_OPTION_INT:
    case LAB_OPTION_SIZE:
        return memcmp(left, right, sizeof(int64_t)) == 0;
    case LAB_OPTION_FLOAT:
    case LAB_OPTION_DURATION:
        return memcmp(left, right, sizeof(double)) == 0;
    case LAB_OPTION_STRING:
    case LAB_OPTION_CHOICE:
        return lab_str_equal(*(const char *const *)left, *(const char *const *)right);
    case LAB_OPTION_VALUE:
        return same_tree(row, a, b);
    case LAB_OPTION_INTS:
        break;
    }
    const struct lab_option_ints *x = (const void *)left, *y = (const void *)right;
    return x->count == y->count &&
           memcmp(x->items, y->items, (size_t)x->count * sizeof *x->items) == 0;
}

/* A list where one value belongs is mostly meant as an axis. */
static int refuse_list(const struct lab_option *row, const struct lab_value *value,
                       struct lab_err *err) {
    LAB_AUTO(str, bare);
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    lab_str_add_bytes(&bare, text.text + 1, text.length > 2 ? text.length - 2 : 0);
    lab_value_err(
        value, err,
        "%s=%.60s: takes one value; to run each, sweep it (-m …%s=%.60s) or name it in axes",
        row->name, text.text, row->name, bare.text);
    return -1;
}

/* "…batch_size=x: batch_size=x: must be" says it twice where the word of the command line is the
 * place: the second one goes. */
static int say_once(const char *name, const struct lab_value *value, struct lab_err *err) {
    const char *place = value->line == 0 && value->origin ? value->origin : "";
    LAB_AUTO(str, word);
    lab_str_printf(&word, "%s=", name);
    lab_value_write(value, &word);
    size_t length = strlen(place);
    bool ends = length >= word.length && strcmp(place + length - word.length, word.text) == 0;
    if (ends && lab_str_starts(err->text, place) && strlen(err->text) > length + 2) {
        char *again = err->text + length + 2;
        if (lab_str_starts(again, word.text) && lab_str_starts(again + word.length, ": "))
            memmove(again, again + word.length + 2, strlen(again + word.length + 2) + 1);
    }
    return -1;
}

/* null stands for the default, which is already there. */
static int set_row(const struct lab_option *table, const struct lab_option *row, void *config,
                   struct lab_arena *arena, const struct lab_value *value, struct lab_err *err) {
    if (plan_require(value, row->name, err) < 0)
        return -1;
    if (value->type == LAB_VALUE_NULL)
        return 0;
    if (value->type == LAB_VALUE_LIST && row->type != LAB_OPTION_INTS &&
        row->type != LAB_OPTION_VALUE)
        return refuse_list(row, value, err);
    if (lab_options_set_value(table, config, arena, row->name, value, err) < 0)
        return say_once(row->name, value, err);
    return 0;
}

int plan_set_option(const struct lab_workload *workload, void *config, struct lab_arena *arena,
                    const char *key, const struct lab_value *value, struct lab_err *err) {
    const struct lab_option *row = lab_options_find(workload->options, key);
    if (row)
        return set_row(workload->options, row, config, arena, value, err);
    refuse_unknown(value, key, known_keys("?", workload, NULL, NULL, arena), err);
    return -1;
}

static const struct lab_option *find_study_key(const char *prefix, const char *key) {
    char name[160];
    if ((size_t)snprintf(name, sizeof name, "%s%s", prefix, key) >= sizeof name)
        return NULL;
    return lab_options_find(lab_plan_keys, name);
}

int plan_set_test(const struct plan_job *job, struct plan_test *test, void *config,
                  struct lab_arena *arena, const char *key, const struct lab_value *value,
                  struct lab_err *err) {
    const struct lab_option *row = find_study_key("experiment.test.", key);
    if (row) {
        struct plan_keys keys = {.test = *test};
        if (set_row(lab_plan_keys, row, &keys, arena, value, err) < 0)
            return -1;
        if (keys.test.num_steps == 0) { /* between the two that the range allows */
            lab_value_err(value, err, "%s=0: must be at least 1, or -1 to count by samples",
                          row->name);
            return say_once(row->name, value, err);
        }
        *test = keys.test;
        test->counted |= lab_str_equal(key, "num_samples") || lab_str_equal(key, "num_steps");
        return 0;
    }
    if (lab_options_find(job->workload->options, key))
        return plan_set_option(job->workload, config, arena, key, value, err);
    return refuse_unknown(value, lab_arena_printf(arena, "experiment.test.%s", key),
                          known_keys("experiment.test.", job->workload, NULL, NULL, arena), err);
}

/* --- a tree --- */

/* `device` and `tracker` may be lists of names, too. */
static int set_names(const struct lab_option *row, const char **field, struct lab_arena *arena,
                     const struct lab_value *list, struct lab_err *err) {
    LAB_AUTO(str, names);
    for (int i = 0; i < list->count; i++) {
        if (list->items[i]->type != LAB_VALUE_STRING)
            return lab_value_err(list->items[i], err, "%s: must be names", row->name);
        lab_str_printf(&names, "%s%s", i ? "," : "", list->items[i]->string);
    }
    *field = lab_arena_strdup(arena, names.text);
    return 0;
}

static int read_top(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    for (int i = 0; i < job->tree->count; i++) {
        const char *key = job->tree->keys[i];
        const struct lab_value *value = job->tree->items[i];
        if (key[0] == '_' || lab_str_equal(key, "experiment"))
            continue;
        const struct lab_option *row = strchr(key, '.') ? NULL : find_study_key("", key);
        if (!row)
            return refuse_unknown(value, key, known_keys("", NULL, "experiment", NULL, arena), err);
        bool names = lab_str_equal(key, "device") || lab_str_equal(key, "tracker");
        void *field = (char *)&job->keys + row->offset;
        if (names && value->type == LAB_VALUE_LIST
                ? set_names(row, field, arena, value, err) < 0
                : set_row(lab_plan_keys, row, &job->keys, arena, value, err) < 0)
            return -1;
    }
    return 0;
}

static int read_experiment(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    for (int i = 0; i < job->experiment->count; i++) {
        const char *key = job->experiment->keys[i];
        if (lab_str_equal(key, "runs"))
            key = "repeat";
        const struct lab_option *row = strchr(key, '.') ? NULL : find_study_key("experiment.", key);
        const struct lab_value *value = job->experiment->items[i];
        bool names = (lab_str_equal(key, "workload") || lab_str_equal(key, "answers")) &&
                     value->type == LAB_VALUE_LIST;
        void *field = row ? (char *)&job->keys + row->offset : NULL;
        if (row && (names ? set_names(row, field, arena, value, err)
                          : set_row(lab_plan_keys, row, &job->keys, arena, value, err)))
            return -1;
    }
    if (!job->keys.name)
        return lab_value_err(job->experiment, err,
                             "experiment.name is missing: the name of the study's directory");
    if (!*job->keys.name || strchr(job->keys.name, '/') || job->keys.name[0] == '.')
        return lab_value_err(lab_value_get(job->experiment, "name"), err,
                             "experiment.name=%.80s: must be a directory's name, without '/' and "
                             "without a '.' in front",
                             job->keys.name);
    return 0;
}

/* What a typing error in it would cost is known only after the last run. */
static int check_objective(const struct plan_job *job, struct lab_err *err) {
    size_t length;
    enum lab_direction better;
    struct lab_err refused = LAB_ERR_INIT;
    if (!job->keys.objective ||
        lab_metric_objective_read(job->keys.objective, &length, &better, &refused) == 0)
        return 0;
    lab_value_err(lab_value_get(job->experiment, "objective"), err, "%s", refused.text);
    return say_once("objective", lab_value_get(job->experiment, "objective"), err);
}

/* Of one name, or of several joined by commas. */
static int find_workloads(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    const struct lab_value *value = lab_value_get(job->experiment, "workload");
    bool listed = value && value->type == LAB_VALUE_LIST;
    int most = listed ? value->count : 1;
    if (most == 0)
        return lab_value_err(value, err, "experiment.workload is empty: nothing would run");
    job->workloads = lab_arena_alloc(arena, (size_t)most, sizeof(const struct lab_workload *));
    for (int i = 0; i < most; i++) {
        const char *name = listed ? value->items[i]->string : job->keys.workload;
        const struct lab_workload *found = lab_workload_find(name, err);
        if (!found) {
            char text[sizeof err->text];
            snprintf(text, sizeof text, "%s", err->text);
            return lab_value_err(value, err, "experiment.workload: %s", text);
        }
        for (int k = 0; k < i; k++)
            if (job->workloads[k] == found)
                return lab_value_err(value, err, "experiment.workload: duplicate %s", found->name);
        job->workloads[i] = found;
    }
    job->workload_count = most;
    job->workload = job->workloads[0];
    return 0;
}

/* A preset's is for programs: without one, workloads of gpulab's run on the same gangs. */
static int check_launcher(struct plan_job *job, struct lab_err *err) {
    const struct lab_value *value = lab_value_get(job->experiment, "processes");
    const struct lab_workload *own = NULL;
    int programs = 0;
    for (int i = 0; i < job->workload_count; i++) {
        programs += job->workloads[i]->external;
        own = own || job->workloads[i]->external ? own : job->workloads[i];
    }
    if (!own || !job->keys.processes || !lab_str_equal(job->keys.processes, "launcher"))
        return 0;
    if (programs > 0 || value->line == 0)
        return lab_value_err(value, err,
                             "experiment.processes=launcher starts a program of your own once for "
                             "all GPUs of a gang; %s is a workload of gpulab's: leave %s out",
                             own->name, programs > 0 ? "one of them" : "it");
    job->keys.processes = NULL; /* plan_note_programs notes it */
    return 0;
}

int plan_keys_read(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    job->experiment = lab_value_get(job->tree, "experiment");
    if (!job->experiment || job->experiment->type != LAB_VALUE_MAP)
        return lab_value_err(job->experiment ? job->experiment : job->tree, err,
                             "there is no study: choose one, such as experiment=quick_test");
    if (read_top(job, arena, err) < 0 || read_experiment(job, arena, err) < 0)
        return -1;
    if (check_objective(job, err) < 0 || find_workloads(job, arena, err) < 0)
        return -1;
    if (check_launcher(job, err) < 0)
        return -1;
    if (job->workload->external) { /* one run of the program, unless told otherwise */
        job->keys.test.num_samples = 1;
        job->keys.test.warmup_samples = 0;
        job->keys.test.counted = true;
    }
    return 0;
}

/* --- what is the same for all points of a job --- */

static int read_test(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    const struct lab_value *test = lab_value_get(job->experiment, "test");
    if (!test)
        return 0;
    if (test->type != LAB_VALUE_MAP)
        return lab_value_err(test, err, "experiment.test must be a map of keys");
    for (int i = 0; i < test->count; i++) {
        char path[160];
        snprintf(path, sizeof path, "test.%s", test->keys[i]);
        if (test->keys[i][0] == '_' || plan_is_axis(&job->product, path))
            continue;
        if (plan_set_test(job, &job->keys.test, job->base, arena, test->keys[i], test->items[i],
                          err) < 0)
            return -1;
    }
    return 0;
}

static int read_hardware(const struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    const struct lab_value *hardware = lab_value_get(job->experiment, "hardware");
    if (!hardware || hardware->type != LAB_VALUE_MAP)
        return lab_value_err(hardware ? hardware : job->experiment, err,
                             "experiment.hardware must be a map of gpu_ids and numa_nodes");
    for (int i = 0; i < hardware->count; i++)
        if (hardware->keys[i][0] != '_' &&
            !find_study_key("experiment.hardware.", hardware->keys[i]))
            return refuse_unknown(
                hardware->items[i],
                lab_arena_printf(arena, "experiment.hardware.%s", hardware->keys[i]),
                known_keys("experiment.hardware.", NULL, NULL, NULL, arena), err);
    return 0;
}

/* Of a map that is one of the workload's options, the keys that no axis sets. */
static void set_constants(struct plan_job *job, const struct lab_option *row,
                          const struct lab_value *map, struct lab_arena *arena) {
    struct lab_value *constants = lab_value_map(arena);
    for (int i = 0; i < map->count; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s.%s", row->name, map->keys[i]);
        if (!plan_is_axis(&job->product, path))
            lab_value_set(arena, constants, map->keys[i], lab_value_copy(arena, map->items[i]));
    }
    *(struct lab_value **)(void *)((char *)job->base + row->offset) = constants;
}

/* The map that has a workload's name holds its keys; 1 = it was one, another's too. */
static int read_own(struct plan_job *job, const char *key, const struct lab_value *value,
                    struct lab_arena *arena, struct lab_err *err) {
    const struct lab_workload *owner = NULL;
    for (int i = 0; i < job->workload_count && value->type == LAB_VALUE_MAP; i++)
        if (lab_str_equal(job->workloads[i]->name, key))
            owner = job->workloads[i];
    if (!owner && value->type == LAB_VALUE_MAP && lab_workload_find(key, NULL))
        return 1; /* of one that this study leaves out */
    for (int i = 0; owner == job->workload && owner && i < value->count; i++)
        if (value->keys[i][0] != '_' &&
            plan_set_option(owner, job->base, arena, value->keys[i], value->items[i], err) < 0)
            return lab_err_context(err, "experiment.%s", key);
    return owner ? 1 : 0;
}

/* A key of a study of programs (command, env, metrics, matrix) in a study of another workload. */
static bool is_of_programs(const struct plan_job *job, const char *key) {
    for (int i = 0; lab_workloads[i] && !job->workload->external; i++)
        if (lab_workloads[i]->external && lab_options_find(lab_workloads[i]->options, key))
            return true;
    return false;
}

/* One that names a program can't be meant. */
static int check_no_program(const struct plan_job *job, const char *key,
                            const struct lab_value *value, struct lab_err *err) {
    struct lab_err unset = LAB_ERR_INIT;
    if (!lab_str_equal(key, "command") || plan_require(value, key, &unset) < 0)
        return 0;
    return lab_value_err(value, err,
                         "experiment.command names a program, but experiment.workload=%s is "
                         "gpulab's own: leave one out",
                         job->workload->name);
}

static int read_rest(struct plan_job *job, struct lab_arena *arena, struct lab_err *err) {
    static const char *const parts[] = {"hardware", "test",   "axes",        "series",
                                        "runs",     "phases", "batch_sizes", NULL};
    for (int i = 0; i < job->experiment->count; i++) {
        const char *key = job->experiment->keys[i];
        const struct lab_value *value = job->experiment->items[i];
        bool known = key[0] == '_' || plan_is_axis_root(job, key) ||
                     (!strchr(key, '.') && find_study_key("experiment.", key));
        for (int k = 0; parts[k]; k++)
            known |= lab_str_equal(key, parts[k]);
        const struct lab_option *row = lab_options_find(job->workload->options, key);
        if (!row && is_of_programs(job, key)) {
            if (check_no_program(job, key, value, err) < 0)
                return -1;
            if (value->line > 0) /* the study's; one that was typed is unknown to the workload */
                continue;
        }
        if (row && row->type == LAB_OPTION_VALUE && known && value->type == LAB_VALUE_MAP)
            set_constants(job, row, value, arena);
        if (known)
            continue;
        int own = row ? 0 : read_own(job, key, value, arena, err);
        if (own < 0)
            return -1;
        if (own > 0 || plan_is_others_setting(job, key, value))
            continue;
        if (row) {
            const char *path = lab_arena_printf(arena, "experiment.%s", key);
            if (plan_require(value, path, err) < 0 ||
                plan_set_option(job->workload, job->base, arena, key, value, err) < 0)
                return -1;
            continue;
        }
        if (value->type == LAB_VALUE_LIST || value->type == LAB_VALUE_MAP)
            return lab_value_err(
                value, err,
                "experiment.%.80s: nothing uses it: name it in experiment.axes, or "
                "leave it out",
                key);
        return refuse_unknown(value, lab_arena_printf(arena, "experiment.%s", key),
                              known_keys("experiment.", job->workload, "axes", "series", arena),
                              err);
    }
    return 0;
}

int plan_constants_read(struct plan_book *book, struct plan_job *job, struct lab_err *err) {
    const struct lab_workload *workload = job->workload;
    if (book->default_workload != workload) {
        book->defaults = lab_workload_config(workload, book->arena);
        book->default_workload = workload;
    }
    memcpy(job->base, book->defaults, workload->config_size);
    if (read_hardware(job, book->arena, err) < 0 || read_test(job, book->arena, err) < 0)
        return -1;
    return read_rest(job, book->arena, err);
}

/* --- several jobs --- */

int plan_keys_agree(const struct plan_keys *first, const struct plan_keys *other, int64_t job,
                    struct lab_err *err) {
    for (const struct lab_option *row = lab_plan_keys; row->name; row++) {
        bool of_runs = lab_str_starts(row->name, "experiment.test.") ||
                       lab_str_equal(row->name, "experiment.workload");
        if (of_runs || plan_option_equal(row, first, other))
            continue;
        LAB_AUTO(str, b);
        LAB_AUTO(str, a);
        plan_option_write(row, first, true, &a);
        plan_option_write(row, other, true, &b);
        const char *instead =
            lab_str_equal(row->name, "device")
                ? "; several devices are one list: device='cpu:0,cpu:1', chosen from by "
                  "experiment.hardware.gpu_ids"
            : lab_str_equal(row->name, "seed") ? "; repeat=2 does each run twice"
                                               : "; give each a command of its own";
        return lab_err_set(
            err, LAB_ERR_USER,
            "%s can't be swept, it is the whole study's: job 1 has %s, job %lld has %s%s",
            row->name, a.text, (long long)job + 1, b.text, instead);
    }
    return 0;
}
