/*
 * job.c: a job as JSON and back. The reader is strict, unknown fields included: a worker that
 * overlooks half of what it was told would measure something else without a word.
 */
#include "run/job.h"

#include "base/json.h"
#include "run/frame.h"

#include <limits.h>
#include <math.h>

#define ITERATIONS_MAX INT32_MAX
#define SEED_MAX       (((int64_t)1 << 53) - 1) /* whole numbers that every reader of JSON keeps */

static const char *const job_fields[] = {
    "run_id",    "folder",     "workload",          "options",    "ranks",
    "gang_size", "iterations", "warmup_iterations", "duration_s", "seed",
    "verify",    "trace",      "simulation",        "phase",      NULL};
static const char *const phase_fields[] = {"probe", "tune_s", "disturb", NULL};
static const char *const choice_fields[] = {"phase", "config", NULL};
static const char *const simulation_fields[] = {"machine", "definition", "chance", "start_ns",
                                                NULL};
static const char *const rank_fields[] = {"index", "gpu_id", "device",  "numa_node",
                                          "cpus",  "config", "choices", NULL};
#define CPUS_MAX    8192
#define CHOICES_MAX 64

/* --- writing --- */

static struct lab_value *rank_value(const struct lab_job_rank *rank, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "index", rank->index);
    lab_value_set_int(arena, map, "gpu_id", rank->gpu_id);
    lab_value_set_string(arena, map, "device", rank->device);
    lab_value_set_int(arena, map, "numa_node", rank->numa_node);
    struct lab_value *cpus = lab_value_list(arena), *choices = lab_value_list(arena);
    for (int i = 0; i < rank->cpu_count; i++)
        lab_value_append(arena, cpus, lab_value_int(arena, rank->cpus[i]));
    for (int i = 0; i < rank->choice_count; i++) {
        struct lab_value *choice = lab_value_map(arena);
        lab_value_set_string(arena, choice, "phase", rank->choices[i].phase);
        lab_value_set_string(arena, choice, "config", rank->choices[i].config);
        lab_value_append(arena, choices, choice);
    }
    if (rank->cpu_count > 0)
        lab_value_set(arena, map, "cpus", cpus);
    if (rank->config)
        lab_value_set_string(arena, map, "config", rank->config);
    if (rank->choice_count > 0)
        lab_value_set(arena, map, "choices", choices);
    return map;
}

static struct lab_value *simulation_value(const struct lab_job *job, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "machine", job->machine);
    lab_value_set_string(arena, map, "definition", job->definition);
    lab_value_set_int(arena, map, "chance", (int64_t)job->chance);
    lab_value_set_int(arena, map, "start_ns", job->start_ns);
    return map;
}

static struct lab_value *phase_value(const struct lab_job *job, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_bool(arena, map, "probe", job->probe);
    lab_value_set_float(arena, map, "tune_s", job->tune_s);
    if (job->disturb)
        lab_value_set_string(arena, map, "disturb", job->disturb);
    return map;
}

void lab_job_write(const struct lab_job *job, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_value *map = lab_value_map(&arena), *ranks = lab_value_list(&arena);
    for (int i = 0; i < job->rank_count; i++)
        lab_value_append(&arena, ranks, rank_value(&job->ranks[i], &arena));
    lab_value_set_string(&arena, map, "run_id", job->run_id);
    lab_value_set_string(&arena, map, "folder", job->folder);
    lab_value_set_string(&arena, map, "workload", job->workload);
    lab_value_set(&arena, map, "options", job->options);
    lab_value_set(&arena, map, "ranks", ranks);
    lab_value_set_int(&arena, map, "gang_size", job->gang_size);
    lab_value_set_int(&arena, map, "iterations", job->iterations);
    lab_value_set_int(&arena, map, "warmup_iterations", job->warmup_iterations);
    lab_value_set_float(&arena, map, "duration_s", job->duration_s);
    lab_value_set_int(&arena, map, "seed", (int64_t)job->seed);
    lab_value_set_bool(&arena, map, "verify", job->verify);
    lab_value_set_bool(&arena, map, "trace", job->trace);
    if (job->machine)
        lab_value_set(&arena, map, "simulation", simulation_value(job, &arena));
    if (job->probe || job->tune_s > 0 || job->disturb)
        lab_value_set(&arena, map, "phase", phase_value(job, &arena));
    lab_json_write(map, 0, out);
}

/* --- reading --- */

/* The field, of that type; NULL and an error that says what is there instead. */
static struct lab_value *take(const struct lab_value *map, const char *key,
                              enum lab_value_type type, struct lab_err *err) {
    struct lab_value *value = lab_value_get(map, key);
    if (value && value->type == type)
        return value;
    if (!value)
        lab_err_set(err, LAB_ERR_USER, "'%s' is missing", key);
    else
        lab_err_set(err, LAB_ERR_USER, "'%s' must be %s, not %s", key, lab_value_type_name(type),
                    lab_value_type_name(value->type));
    return NULL;
}

static int take_int(const struct lab_value *map, const char *key, int64_t least, int64_t most,
                    int64_t *ret_value, struct lab_err *err) {
    const struct lab_value *value = take(map, key, LAB_VALUE_INT, err);
    if (!value)
        return -1;
    if (value->integer < least || value->integer > most)
        return lab_err_set(err, LAB_ERR_USER, "'%s' is %lld, possible is %lld to %lld", key,
                           (long long)value->integer, (long long)least, (long long)most);
    *ret_value = value->integer;
    return 0;
}

static int take_text(const struct lab_value *map, const char *key, const char **ret_text,
                     struct lab_err *err) {
    const struct lab_value *value = take(map, key, LAB_VALUE_STRING, err);
    if (!value)
        return -1;
    *ret_text = value->string;
    return 0;
}

static int take_name(const struct lab_value *map, const char *key, const char **ret_text,
                     struct lab_err *err) {
    if (take_text(map, key, ret_text, err) < 0)
        return -1;
    return **ret_text ? 0 : lab_err_set(err, LAB_ERR_USER, "'%s' is empty", key);
}

static int take_duration(const struct lab_value *map, const char *key, double *ret_seconds,
                         struct lab_err *err) {
    const struct lab_value *value = lab_value_get(map, key);
    double seconds = 0;
    if (value && value->type == LAB_VALUE_INT)
        seconds = (double)value->integer;
    else if ((value = take(map, key, LAB_VALUE_FLOAT, err)))
        seconds = value->number;
    else
        return -1;
    if (!isfinite(seconds) || seconds < 0)
        return lab_err_set(err, LAB_ERR_USER, "'%s' is %g, the least is 0", key, seconds);
    *ret_seconds = seconds;
    return 0;
}

static int check_fields(const struct lab_value *map, const char *const *known,
                        struct lab_err *err) {
    for (int i = 0; i < map->count; i++) {
        bool found = false;
        for (int k = 0; known[k] && !found; k++)
            found = lab_str_equal(map->keys[i], known[k]);
        if (!found)
            return lab_err_set(err, LAB_ERR_USER, "'%.80s' is nothing that a worker knows",
                               map->keys[i]);
    }
    return 0;
}

static int read_cpus(const struct lab_value *map, struct lab_arena *arena,
                     struct lab_job_rank *rank, struct lab_err *err) {
    if (!lab_value_get(map, "cpus"))
        return 0;
    const struct lab_value *list = take(map, "cpus", LAB_VALUE_LIST, err);
    if (!list)
        return -1;
    int *cpus = lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *cpus);
    for (int i = 0; i < list->count; i++) {
        const struct lab_value *cpu = list->items[i];
        if (cpu->type != LAB_VALUE_INT || cpu->integer < 0 || cpu->integer >= CPUS_MAX ||
            (i > 0 && cpu->integer <= cpus[i - 1]))
            return lab_err_set(err, LAB_ERR_USER, "'cpus' must be rising numbers below %d",
                               CPUS_MAX);
        cpus[i] = (int)cpu->integer;
    }
    rank->cpus = cpus;
    rank->cpu_count = list->count;
    return 0;
}

static int read_choices(const struct lab_value *map, struct lab_arena *arena,
                        struct lab_job_rank *rank, struct lab_err *err) {
    if (!lab_value_get(map, "choices"))
        return 0;
    const struct lab_value *list = take(map, "choices", LAB_VALUE_LIST, err);
    if (!list)
        return -1;
    if (list->count < 1 || list->count > CHOICES_MAX)
        return lab_err_set(err, LAB_ERR_USER, "'choices' has %d, possible is 1 to %d", list->count,
                           CHOICES_MAX);
    struct lab_job_choice *choices = lab_arena_alloc(arena, (size_t)list->count, sizeof *choices);
    for (int i = 0; i < list->count; i++)
        if (check_fields(list->items[i], choice_fields, err) < 0 ||
            take_name(list->items[i], "phase", &choices[i].phase, err) < 0 ||
            take_name(list->items[i], "config", &choices[i].config, err) < 0)
            return lab_err_context(err, "choice %d", i);
    rank->choices = choices;
    rank->choice_count = list->count;
    return 0;
}

static int read_rank(const struct lab_value *map, int gang_size, struct lab_arena *arena,
                     struct lab_job_rank *ret_rank, struct lab_err *err) {
    int64_t index = 0, gpu_id = 0, numa_node = 0;
    if (map->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_USER, "must be a map, not %s",
                           lab_value_type_name(map->type));
    if (check_fields(map, rank_fields, err) < 0 ||
        take_int(map, "index", 0, gang_size - 1, &index, err) < 0 ||
        take_int(map, "gpu_id", 0, INT_MAX, &gpu_id, err) < 0 ||
        take_name(map, "device", &ret_rank->device, err) < 0 ||
        take_int(map, "numa_node", -1, INT_MAX, &numa_node, err) < 0 ||
        read_cpus(map, arena, ret_rank, err) < 0 || read_choices(map, arena, ret_rank, err) < 0 ||
        (lab_value_get(map, "config") && take_name(map, "config", &ret_rank->config, err) < 0))
        return -1;
    ret_rank->index = (int)index;
    ret_rank->gpu_id = (int)gpu_id;
    ret_rank->numa_node = (int)numa_node;
    return 0;
}

/* Ascending indices are unique ones. */
static int read_ranks(const struct lab_value *map, struct lab_arena *arena, struct lab_job *job,
                      struct lab_err *err) {
    const struct lab_value *list = take(map, "ranks", LAB_VALUE_LIST, err);
    if (!list)
        return -1;
    if (list->count < 1 || list->count > job->gang_size)
        return lab_err_set(err, LAB_ERR_USER, "'ranks' has %d, possible is 1 to %d", list->count,
                           job->gang_size);
    struct lab_job_rank *ranks = lab_arena_alloc(arena, (size_t)list->count, sizeof *ranks);
    for (int i = 0; i < list->count; i++) {
        if (read_rank(list->items[i], job->gang_size, arena, &ranks[i], err) < 0)
            return lab_err_context(err, "rank %d", i);
        if (i > 0 && ranks[i].index <= ranks[i - 1].index)
            return lab_err_set(err, LAB_ERR_USER, "rank %d: index %d must be above %d", i,
                               ranks[i].index, ranks[i - 1].index);
    }
    job->ranks = ranks;
    job->rank_count = list->count;
    return 0;
}

static int read_amount(const struct lab_value *map, struct lab_job *job, struct lab_err *err) {
    if (take_int(map, "iterations", 0, ITERATIONS_MAX, &job->iterations, err) < 0 ||
        take_int(map, "warmup_iterations", 0, ITERATIONS_MAX, &job->warmup_iterations, err) < 0 ||
        take_duration(map, "duration_s", &job->duration_s, err) < 0)
        return -1;
    if (job->iterations == 0 && job->duration_s <= 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "neither 'iterations' nor 'duration_s' says how much to measure");
    return 0;
}

static int read_simulation(const struct lab_value *map, struct lab_job *job, struct lab_err *err) {
    int64_t chance = 0;
    if (!lab_value_get(map, "simulation"))
        return 0;
    const struct lab_value *inner = take(map, "simulation", LAB_VALUE_MAP, err);
    if (!inner)
        return -1;
    if (check_fields(inner, simulation_fields, err) < 0 ||
        take_name(inner, "machine", &job->machine, err) < 0 ||
        take_name(inner, "definition", &job->definition, err) < 0 ||
        take_int(inner, "chance", 0, SEED_MAX, &chance, err) < 0 ||
        take_int(inner, "start_ns", 1, INT64_MAX, &job->start_ns, err) < 0)
        return lab_err_context(err, "simulation");
    job->chance = (uint64_t)chance;
    return 0;
}

static int read_phase(const struct lab_value *map, struct lab_job *job, struct lab_err *err) {
    if (!lab_value_get(map, "phase"))
        return 0;
    const struct lab_value *inner = take(map, "phase", LAB_VALUE_MAP, err);
    const struct lab_value *probe = inner ? take(inner, "probe", LAB_VALUE_BOOL, err) : NULL;
    if (!probe)
        return -1;
    if (check_fields(inner, phase_fields, err) < 0 ||
        take_duration(inner, "tune_s", &job->tune_s, err) < 0 ||
        (lab_value_get(inner, "disturb") && take_name(inner, "disturb", &job->disturb, err) < 0))
        return lab_err_context(err, "phase");
    job->probe = probe->boolean;
    return 0;
}

static int read_job(const struct lab_value *map, struct lab_arena *arena, struct lab_job *job,
                    struct lab_err *err) {
    if (map->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_USER, "must be a map, not %s",
                           lab_value_type_name(map->type));
    int64_t gang_size = 0, seed = 0;
    const struct lab_value *verify = NULL, *trace = NULL;
    if (check_fields(map, job_fields, err) < 0 || take_name(map, "run_id", &job->run_id, err) < 0 ||
        take_text(map, "folder", &job->folder, err) < 0 ||
        take_name(map, "workload", &job->workload, err) < 0 ||
        !(job->options = take(map, "options", LAB_VALUE_MAP, err)) ||
        take_int(map, "gang_size", 1, LAB_FRAME_MAX_RANKS, &gang_size, err) < 0 ||
        read_amount(map, job, err) < 0 || take_int(map, "seed", 0, SEED_MAX, &seed, err) < 0 ||
        !(verify = take(map, "verify", LAB_VALUE_BOOL, err)) ||
        !(trace = take(map, "trace", LAB_VALUE_BOOL, err)) || read_simulation(map, job, err) < 0 ||
        read_phase(map, job, err) < 0)
        return -1;
    if (*job->folder && *job->folder != '/')
        return lab_err_set(err, LAB_ERR_USER, "'folder' must be an absolute path, not '%s'",
                           job->folder);
    job->gang_size = (int)gang_size;
    job->seed = (uint64_t)seed;
    job->verify = verify->boolean;
    job->trace = trace->boolean;
    return read_ranks(map, arena, job, err);
}

int lab_job_read(const char *text, size_t length, struct lab_arena *arena, struct lab_job *ret_job,
                 struct lab_err *err) {
    struct lab_value *map = NULL;
    struct lab_job job = {0};
    if (lab_json_parse(text, length, "job", arena, &map, err) < 0)
        return -1;
    if (read_job(map, arena, &job, err) < 0)
        return lab_err_context(err, "job");
    *ret_job = job;
    return 0;
}
