/*
 * command/environment.c: how a program learns where it runs. Frameworks read these variables
 * anyway; so the same command, unchanged, runs on each device of a study. What the user sets wins.
 */
#include "workload/command/command.h"

#include "machine/machine.h"

#include <ctype.h>
#include <stdlib.h>

#define OWN_MAX 16

/* --- the user's --- */

static bool is_variable(const char *name) {
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

int command_check_env(const struct lab_value *env, const struct lab_value *matrix,
                      struct lab_err *err) {
    if (!env)
        return 0;
    if (env->type != LAB_VALUE_MAP)
        return lab_value_err(env, err, "env: must be a map of variables with values, not %s",
                             lab_value_type_name(env->type));
    for (int i = 0; i < env->count; i++) {
        const struct lab_value *value = env->items[i];
        if (!is_variable(env->keys[i]))
            return lab_value_err(
                value, err,
                "env: '%.80s' is not a variable name: letters, digits and '_', no digit in front",
                env->keys[i]);
        if (!command_is_scalar(value))
            return lab_value_err(value, err, "env.%s is %s, but a variable is one text",
                                 env->keys[i], lab_value_type_name(value->type));
        char what[160];
        snprintf(what, sizeof what, "env.%s", env->keys[i]);
        if (value->type == LAB_VALUE_STRING &&
            command_check_text(what, value->string, matrix, value, err) < 0)
            return -1;
    }
    return 0;
}

/* --- ours --- */

struct variables {
    struct lab_arena *arena;
    const char **items;
    int count;
};

static void set(struct variables *v, const char *name, const char *value) {
    v->items[v->count++] = value ? lab_arena_printf(v->arena, "%s=%s", name, value) : name;
}

static void set_int(struct variables *v, const char *name, int value) {
    v->items[v->count++] = lab_arena_printf(v->arena, "%s=%d", name, value);
}

bool command_is_cuda(const struct lab_device_ref *ref) {
    return ref && lab_str_equal(ref->backend, "cuda");
}

/* Its devices, by names that don't change; none at all where none was asked for. */
static void set_cuda(struct variables *v, const struct lab_rank *rank) {
    LAB_AUTO(str, visible);
    for (int i = 0; i < command_place_count(rank); i++) {
        const struct lab_device_ref *ref = command_place_at(rank, i);
        if (!command_is_cuda(ref))
            continue;
        lab_str_add(&visible, visible.length ? "," : "");
        if (ref->uuid)
            lab_str_add(&visible, ref->uuid);
        else
            lab_str_printf(&visible, "%d", ref->unit);
    }
    set(v, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    set(v, "CUDA_VISIBLE_DEVICES", visible.text);
}

/* Of one process: a CPU device's cores; for a GPU its host thread's, shared by the gang's ranks. */
static int thread_count(const struct lab_rank *rank, int ranks) {
    int cores = 0, places = command_place_count(rank);
    for (int i = 0; i < places && command_place_at(rank, i); i++)
        cores += command_place_at(rank, i)->cpus.count;
    if (cores > 0)
        return cores > places ? cores / places : 1;
    struct lab_cpus allowed = {0};
    struct lab_err ignored;
    if (lab_bind_read_cpus(0, &allowed, &ignored) < 0)
        return 1;
    lab_mem_free(allowed.items);
    return allowed.count > ranks ? allowed.count / ranks : 1;
}

/* Python prints to a pipe in blocks of 8 KiB: the values of a block would all have its time. */
static void set_unbuffered(struct variables *v) {
    if (!getenv("PYTHONUNBUFFERED"))
        set(v, "PYTHONUNBUFFERED", "1");
}

static void set_ranks(struct variables *v, const struct lab_rank *rank, bool cuda) {
    set_int(v, "RANK", rank->index);
    /* programs index the GPUs that they see by it, and see only theirs */
    set_int(v, "LOCAL_RANK", cuda ? 0 : rank->index);
    set_int(v, "WORLD_SIZE", rank->count);
}

/* A launcher tells its processes so; what was said to us is not meant for them. */
static void clear_ranks(struct variables *v) {
    set(v, "RANK", NULL);
    set(v, "LOCAL_RANK", NULL);
    set(v, "WORLD_SIZE", NULL);
}

/* Where a gang's processes meet: a port of its own, so that gangs at the same time don't mix. */
static void set_meeting(struct variables *v, const struct lab_rank *rank) {
    if (rank->port == 0)
        return;
    set(v, "MASTER_ADDR", "127.0.0.1");
    set_int(v, "MASTER_PORT", rank->port);
}

static void set_users(struct variables *v, const struct command_config *config,
                      const struct lab_rank *rank) {
    LAB_AUTO(str, text);
    for (int i = 0; config->env && i < config->env->count; i++) {
        const struct lab_value *value = config->env->items[i];
        lab_str_clear(&text);
        if (value->type == LAB_VALUE_STRING)
            command_fill(value->string, config->matrix, rank, &text);
        else
            command_add_scalar(value, &text);
        const char *name = lab_arena_strdup(v->arena, config->env->keys[i]);
        set(v, name, value->type == LAB_VALUE_NULL ? NULL : text.text);
    }
}

/* Of two for one name the later one, the user's, stays: programs see the first of a name. */
static void keep_last(struct variables *v) {
    int kept = 0;
    for (int i = 0; i < v->count; i++) {
        size_t length = strcspn(v->items[i], "=");
        bool again = false;
        for (int k = i + 1; k < v->count && !again; k++)
            again = strcspn(v->items[k], "=") == length &&
                    strncmp(v->items[i], v->items[k], length) == 0;
        if (!again)
            v->items[kept++] = v->items[i];
    }
    v->items[kept] = NULL;
    v->count = kept;
}

const char **command_environment(const struct command_config *config, const struct lab_rank *rank,
                                 struct lab_arena *arena) {
    int ranks = rank->count > 0 ? rank->count : 1, own = config->env ? config->env->count : 0;
    struct variables v = {arena, lab_arena_alloc(arena, (size_t)own + OWN_MAX + 1, sizeof(char *)),
                          0};
    set_cuda(&v, rank);
    set_int(&v, "OMP_NUM_THREADS", thread_count(rank, ranks));
    set_unbuffered(&v);
    if (rank->gang)
        clear_ranks(&v);
    else if (ranks > 1)
        set_ranks(&v, rank, command_is_cuda(command_place(rank)));
    if (rank->gang || ranks > 1)
        set_meeting(&v, rank);
    set(&v, "GPULAB_RUN_ID", rank->run_id);
    set(&v, "GPULAB_OUTPUT_DIR", rank->folder && *rank->folder ? rank->folder : NULL);
    if (rank->numa_node >= 0)
        set_int(&v, "GPULAB_NUMA_NODE", rank->numa_node);
    else
        set(&v, "GPULAB_NUMA_NODE", NULL);
    set_users(&v, config, rank);
    keep_last(&v);
    return v.items;
}
