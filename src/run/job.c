/*
 * job.c: a job as JSON and back. The reader is strict, unknown fields included: a worker that
 * overlooks half of what it was told would measure something else without a word.
 */
#include "run/job.h"

#include "base/json.h"
#include "run/frame.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

#define ITERATIONS_MAX INT32_MAX
#define SEED_MAX       (((int64_t)1 << 53) - 1) /* whole numbers that every reader of JSON keeps */
#define CPUS_MAX       8192
#define CHOICES_MAX    64

/* --- what is in it --- */

enum kind { INT, INT64, SECONDS, BOOL, TEXT, NAME /* not empty */, MAP, LIST /* by code below */ };

struct field {
    const char *key; /* NULL ends a table */
    enum kind kind;
    size_t offset;
    int64_t least, most; /* of whole numbers */
    bool optional;       /* may be left out: a text that may be NULL, a flag, 0 */
};

static const struct field job_fields[] = {
    {"run_id", NAME, offsetof(struct lab_job, run_id)},
    {"folder", TEXT, offsetof(struct lab_job, folder)},
    {"workload", NAME, offsetof(struct lab_job, workload)},
    {"options", MAP, offsetof(struct lab_job, options)},
    {"gang_size", INT, offsetof(struct lab_job, gang_size), 1, LAB_FRAME_MAX_RANKS},
    {"iterations", INT64, offsetof(struct lab_job, iterations), 0, ITERATIONS_MAX},
    {"warmup_iterations", INT64, offsetof(struct lab_job, warmup_iterations), 0, ITERATIONS_MAX},
    {"duration_s", SECONDS, offsetof(struct lab_job, duration_s)},
    {"seed", INT64, offsetof(struct lab_job, seed), 0, SEED_MAX},
    {"repeat", INT, offsetof(struct lab_job, repeat), 0, INT_MAX, .optional = true},
    {"port", INT, offsetof(struct lab_job, port), 0, 65535, .optional = true},
    {"launcher", BOOL, offsetof(struct lab_job, launcher), .optional = true},
    {"verify", BOOL, offsetof(struct lab_job, verify)},
    {"trace", BOOL, offsetof(struct lab_job, trace)},
    {"ranks", LIST},
    {"simulation", LIST},
    {"phase", LIST},
    {NULL},
};

static const struct field simulation_fields[] = {
    {"machine", NAME, offsetof(struct lab_job, machine)},
    {"definition", NAME, offsetof(struct lab_job, definition)},
    {"chance", INT64, offsetof(struct lab_job, chance), 0, SEED_MAX},
    {"start_ns", INT64, offsetof(struct lab_job, start_ns), 1, INT64_MAX},
    {NULL},
};

static const struct field phase_fields[] = {
    {"probe", BOOL, offsetof(struct lab_job, probe)},
    {"tune_s", SECONDS, offsetof(struct lab_job, tune_s)},
    {"disturb", NAME, offsetof(struct lab_job, disturb), .optional = true},
    {NULL},
};

static const struct field rank_fields[] = {
    {"index", INT, offsetof(struct lab_job_rank, index), INT_MIN, INT_MAX}, /* in its gang */
    {"gpu_id", INT, offsetof(struct lab_job_rank, gpu_id), 0, INT_MAX},
    {"device", NAME, offsetof(struct lab_job_rank, device)},
    {"numa_node", INT, offsetof(struct lab_job_rank, numa_node), -1, INT_MAX},
    {"config", NAME, offsetof(struct lab_job_rank, config), .optional = true},
    {"cpus", LIST},
    {"choices", LIST},
    {NULL},
};

static const struct field choice_fields[] = {
    {"phase", NAME, offsetof(struct lab_job_choice, phase)},
    {"config", NAME, offsetof(struct lab_job_choice, config)},
    {NULL},
};

/* --- writing --- */

static struct lab_value *fields_value(const struct field *field, const void *from,
                                      struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (; field->key; field++) {
        const void *at = (const char *)from + field->offset;
        if (field->kind == INT)
            lab_value_set_int(arena, map, field->key, *(const int *)at);
        else if (field->kind == INT64)
            lab_value_set_int(arena, map, field->key, *(const int64_t *)at);
        else if (field->kind == SECONDS)
            lab_value_set_float(arena, map, field->key, *(const double *)at);
        else if (field->kind == BOOL)
            lab_value_set_bool(arena, map, field->key, *(const bool *)at);
        else if (field->kind == MAP)
            lab_value_set(arena, map, field->key, *(struct lab_value *const *)at);
        else if (field->kind != LIST && (!field->optional || *(const char *const *)at))
            lab_value_set_string(arena, map, field->key, *(const char *const *)at);
    }
    return map;
}

static struct lab_value *rank_value(const struct lab_job_rank *rank, struct lab_arena *arena) {
    struct lab_value *map = fields_value(rank_fields, rank, arena);
    struct lab_value *cpus = lab_value_list(arena), *choices = lab_value_list(arena);
    for (int i = 0; i < rank->cpu_count; i++)
        lab_value_append(arena, cpus, lab_value_int(arena, rank->cpus[i]));
    for (int i = 0; i < rank->choice_count; i++)
        lab_value_append(arena, choices, fields_value(choice_fields, &rank->choices[i], arena));
    if (rank->cpu_count > 0)
        lab_value_set(arena, map, "cpus", cpus);
    if (rank->choice_count > 0)
        lab_value_set(arena, map, "choices", choices);
    return map;
}

void lab_job_write(const struct lab_job *job, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_value *map = fields_value(job_fields, job, &arena), *ranks = lab_value_list(&arena);
    for (int i = 0; i < job->rank_count; i++)
        lab_value_append(&arena, ranks, rank_value(&job->ranks[i], &arena));
    lab_value_set(&arena, map, "ranks", ranks);
    if (job->machine)
        lab_value_set(&arena, map, "simulation", fields_value(simulation_fields, job, &arena));
    if (job->probe || job->tune_s > 0 || job->disturb)
        lab_value_set(&arena, map, "phase", fields_value(phase_fields, job, &arena));
    lab_json_write(map, 0, out);
}

/* --- reading --- */

/* The field, of that type; NULL and an error that says what is there instead. */
static struct lab_value *take(const struct lab_value *map, const char *key,
                              enum lab_value_type type, struct lab_err *err) {
    struct lab_value *value = lab_value_get(map, key);
    if (value && (value->type == type || (type == LAB_VALUE_FLOAT && value->type == LAB_VALUE_INT)))
        return value;
    if (!value)
        lab_err_set(err, LAB_ERR_USER, "'%s' is missing", key);
    else
        lab_err_set(err, LAB_ERR_USER, "'%s' must be %s, not %s", key, lab_value_type_name(type),
                    lab_value_type_name(value->type));
    return NULL;
}

static int check_range(const char *key, int64_t value, int64_t least, int64_t most,
                       struct lab_err *err) {
    if (value >= least && value <= most)
        return 0;
    return lab_err_set(err, LAB_ERR_USER, "'%s' is %lld, possible is %lld to %lld", key,
                       (long long)value, (long long)least, (long long)most);
}

static int read_field(const struct field *field, const struct lab_value *map, void *at,
                      struct lab_err *err) {
    static const enum lab_value_type types[] = {
        [INT] = LAB_VALUE_INT,   [INT64] = LAB_VALUE_INT,   [SECONDS] = LAB_VALUE_FLOAT,
        [BOOL] = LAB_VALUE_BOOL, [TEXT] = LAB_VALUE_STRING, [NAME] = LAB_VALUE_STRING,
        [MAP] = LAB_VALUE_MAP};
    if (field->kind == LIST || (field->optional && !lab_value_get(map, field->key)))
        return 0;
    struct lab_value *value = take(map, field->key, types[field->kind], err);
    if (!value)
        return -1;
    if (field->kind == INT || field->kind == INT64) {
        if (check_range(field->key, value->integer, field->least, field->most, err) < 0)
            return -1;
        if (field->kind == INT)
            *(int *)at = (int)value->integer;
        else
            *(int64_t *)at = value->integer;
    } else if (field->kind == SECONDS) {
        double seconds = lab_value_as_number(value);
        if (!isfinite(seconds) || seconds < 0)
            return lab_err_set(err, LAB_ERR_USER, "'%s' is %g, the least is 0", field->key,
                               seconds);
        *(double *)at = seconds;
    } else if (field->kind == BOOL) {
        *(bool *)at = value->boolean;
    } else if (field->kind == MAP) {
        *(struct lab_value **)at = value;
    } else {
        *(const char **)at = value->string;
        if (field->kind == NAME && !*value->string)
            return lab_err_set(err, LAB_ERR_USER, "'%s' is empty", field->key);
    }
    return 0;
}

/* All of the table's, and nothing else. */
static int read_fields(const struct field *fields, const struct lab_value *map, void *into,
                       struct lab_err *err) {
    if (map->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_USER, "must be a map, not %s",
                           lab_value_type_name(map->type));
    for (int i = 0; i < map->count; i++) {
        const struct field *known = fields;
        while (known->key && !lab_str_equal(map->keys[i], known->key))
            known++;
        if (!known->key)
            return lab_err_set(err, LAB_ERR_USER, "unknown key '%.80s'", map->keys[i]);
    }
    for (; fields->key; fields++)
        if (read_field(fields, map, (char *)into + fields->offset, err) < 0)
            return -1;
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
        if (read_fields(choice_fields, list->items[i], &choices[i], err) < 0)
            return lab_err_context(err, "choice %d", i);
    rank->choices = choices;
    rank->choice_count = list->count;
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
        if (read_fields(rank_fields, list->items[i], &ranks[i], err) < 0 ||
            check_range("index", ranks[i].index, 0, job->gang_size - 1, err) < 0 ||
            read_cpus(list->items[i], arena, &ranks[i], err) < 0 ||
            read_choices(list->items[i], arena, &ranks[i], err) < 0)
            return lab_err_context(err, "rank %d", i);
        if (i > 0 && ranks[i].index <= ranks[i - 1].index)
            return lab_err_set(err, LAB_ERR_USER, "rank %d: index %d must be above %d", i,
                               ranks[i].index, ranks[i - 1].index);
    }
    job->ranks = ranks;
    job->rank_count = list->count;
    return 0;
}

/* A map within the job's, where it is there. */
static int read_part(const struct lab_value *map, const char *key, const struct field *fields,
                     struct lab_job *job, struct lab_err *err) {
    if (!lab_value_get(map, key))
        return 0;
    const struct lab_value *part = take(map, key, LAB_VALUE_MAP, err);
    if (!part)
        return -1;
    return read_fields(fields, part, job, err) < 0 ? lab_err_context(err, "%s", key) : 0;
}

static int read_job(const struct lab_value *map, struct lab_arena *arena, struct lab_job *job,
                    struct lab_err *err) {
    if (read_fields(job_fields, map, job, err) < 0 ||
        read_part(map, "simulation", simulation_fields, job, err) < 0 ||
        read_part(map, "phase", phase_fields, job, err) < 0)
        return -1;
    if (job->iterations == 0 && job->duration_s <= 0)
        return lab_err_set(err, LAB_ERR_USER, "'iterations' or 'duration_s' is missing");
    if (job->folder && *job->folder && *job->folder != '/')
        return lab_err_set(err, LAB_ERR_USER, "'folder' must be an absolute path, not '%s'",
                           job->folder);
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
