/*
 * plan_here.c: what a study asks for against what is here. Whatever is missing is named together
 * with what there is, and the message ends in the overrides that would run the study on this
 * machine.
 */
#include "plan/plan_internal.h"

#include "machine/machine.h"

#define SHOWN_MAX 8 /* missing things that a message names */

/* --- devices and nodes --- */

struct hardware_list { /* one of the two hardware keys in all of a job's products */
    const struct plan_book *book;
    const char *path;
    bool (*is_here)(const struct plan_book *book, int64_t number);
    int64_t missing[SHOWN_MAX];
    int missing_count;        /* at most SHOWN_MAX are kept */
    struct lab_str available; /* elements that are wholly here: "0,[0,1]" */
    struct lab_str rest;      /* of the first gang that isn't, its members that are: "0,1" */
    int rest_count;
    bool rest_preset;        /* that gang is one of experiment/ddp */
    int64_t kept[SHOWN_MAX]; /* those of them that are single numbers */
    int kept_count, asked;   /* asked: elements, whether here or not */
    bool hint_done;          /* that is complete */
    bool spread;             /* a value is a list of elements */
};

static bool device_is_here(const struct plan_book *book, int64_t number) {
    return number < book->devices.count;
}

static bool node_is_here(const struct plan_book *book, int64_t number) {
    return number <= INT32_MAX && lab_machine_node_index(book->machine, (int)number) >= 0;
}

static int check_number(const char *path, const struct lab_value *value, struct lab_err *err) {
    if (value->type == LAB_VALUE_INT && value->integer >= 0)
        return 0;
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    lab_value_err(value, err, "experiment.%s: %.60s isn't a number from 0 on; such as [0,1]%s",
                  path, text.text,
                  strcmp(path, PLAN_GPU_IDS) == 0 ? ", or [[0,1]] for both at once" : "");
    return -1;
}

bool plan_is_local_node(const struct lab_value *node) {
    return node->type == LAB_VALUE_STRING && lab_str_equal(node->string, "local");
}

static void note_missing(struct hardware_list *list, int64_t number) {
    for (int i = 0; i < list->missing_count && i < SHOWN_MAX; i++)
        if (list->missing[i] == number)
            return;
    if (list->missing_count < SHOWN_MAX)
        list->missing[list->missing_count] = number;
    list->missing_count++;
}

static void keep_rest(struct hardware_list *list, const struct lab_value *gang) {
    for (int i = 0; i < gang->count; i++)
        if (list->is_here(list->book, gang->items[i]->integer))
            lab_str_printf(&list->rest, "%s%lld", list->rest_count++ ? "," : "",
                           (long long)gang->items[i]->integer);
    list->rest_preset = gang->origin && strstr(gang->origin, "experiment/ddp/");
}

static int check_element(struct hardware_list *list, const struct lab_value *element,
                         struct lab_err *err) {
    bool gang = element->type == LAB_VALUE_LIST, here = true;
    if (plan_is_local_node(element) && strcmp(list->path, PLAN_NUMA_NODES) == 0)
        return 0; /* every device has one */
    struct lab_value *const *numbers = gang ? element->items : (struct lab_value *const *)&element;
    int count = gang ? element->count : 1;
    if (count == 0 || count > LAB_OPTION_INTS_MAX)
        return lab_value_err(element, err, "experiment.%s: an inner list has 1 to %d numbers",
                             list->path, LAB_OPTION_INTS_MAX);
    for (int i = 0; i < count; i++) {
        if (check_number(list->path, numbers[i], err) < 0)
            return -1;
        for (int k = 0; k < i && strcmp(list->path, PLAN_GPU_IDS) == 0; k++)
            if (numbers[k]->integer == numbers[i]->integer)
                return lab_value_err(element, err,
                                     "experiment.%s: duplicate device %lld in one gang", list->path,
                                     (long long)numbers[i]->integer);
        if (!list->is_here(list->book, numbers[i]->integer)) {
            note_missing(list, numbers[i]->integer);
            here = false;
        }
    }
    if (!here && gang && !list->hint_done && list->rest_count == 0)
        keep_rest(list, element);
    list->asked += !list->hint_done;
    if (here && !list->hint_done) {
        if (!gang && list->kept_count < SHOWN_MAX)
            list->kept[list->kept_count++] = element->integer;
        lab_str_add(&list->available, list->available.length ? "," : "");
        lab_value_write(element, &list->available);
    }
    return 0;
}

/* One element, or all of those that a spread study chooses from. */
static int check_value(struct hardware_list *list, const struct lab_value *value,
                       struct lab_err *err) {
    if (!list->spread)
        return check_element(list, value, err);
    for (int i = 0; i < plan_spread_count(value); i++)
        if (check_element(list, plan_spread_slot(value, i), err) < 0)
            return -1;
    return 0;
}

static int check_product(struct hardware_list *list, const struct plan_product *product,
                         struct lab_err *err) {
    for (int i = 0; i < product->count; i++)
        for (int k = 0; k < product->axes[i].key_count; k++) {
            if (strcmp(product->axes[i].paths[k], list->path) != 0)
                continue;
            for (int place = 0; place < product->axes[i].length; place++)
                if (check_value(list, product->axes[i].values[k][place], err) < 0)
                    return -1;
        }
    return 0;
}

/* Every product that has points; the first one's elements are what a hint is made of. */
static int check_list(struct hardware_list *list, const struct plan_job *job, struct lab_err *err) {
    int result = 0;
    if (job->has_own_points) {
        result = check_product(list, &job->product, err);
        list->hint_done = true;
    }
    for (int i = 0; i < job->series_count && result == 0; i++) {
        if (!job->series[i].own_axes)
            continue;
        result = check_product(list, &job->series[i].product, err);
        list->hint_done = true;
    }
    return result;
}

static void add_numbers(struct lab_str *out, const int64_t *numbers, int count) {
    for (int i = 0; i < count && i < SHOWN_MAX; i++)
        lab_str_printf(out, "%s%lld",
                       i == 0                                 ? ""
                       : i == count - 1 || i == SHOWN_MAX - 1 ? " and "
                                                              : ", ",
                       (long long)numbers[i]);
    if (count > SHOWN_MAX)
        lab_str_add(out, " (and more)");
}

static void add_devices(const struct plan_book *book, const char *selector, struct lab_str *out) {
    int count = book->devices.count;
    lab_str_printf(out, "device=%s has %d%s (", selector, count,
                   book->machine->simulated ? "" : " here");
    for (int i = 0; i < count && i < SHOWN_MAX; i++)
        lab_str_printf(out, "%s%d is %s", i ? ", " : "", i, book->devices.items[i].name);
    lab_str_add(out, count > SHOWN_MAX ? ", …)" : ")");
}

static void add_nodes(const struct lab_machine *machine, struct lab_str *out) {
    int64_t numbers[SHOWN_MAX];
    for (int i = 0; i < machine->node_count && i < SHOWN_MAX; i++)
        numbers[i] = machine->nodes[i].number;
    lab_str_printf(out, "%s has %s ", machine->simulated ? machine->source : "this machine",
                   machine->node_count == 1 ? "only node" : "nodes");
    add_numbers(out, numbers, machine->node_count);
}

static bool is_kept(const struct hardware_list *list, int number) {
    for (int i = 0; i < list->kept_count; i++)
        if (list->kept[i] == number)
            return true;
    return false;
}

/* A study of two nodes is about their difference: as many as were asked for, of those that there
 * are. */
static void fill_nodes(struct hardware_list *nodes, const struct lab_machine *machine) {
    int wanted = nodes->asked < SHOWN_MAX ? nodes->asked : SHOWN_MAX;
    for (int i = 0; i < machine->node_count && nodes->kept_count < wanted; i++) {
        if (is_kept(nodes, machine->nodes[i].number))
            continue;
        nodes->kept[nodes->kept_count++] = machine->nodes[i].number;
        lab_str_printf(&nodes->available, "%s%d", nodes->available.length ? "," : "",
                       machine->nodes[i].number);
    }
}

/* What runs here: elements that are wholly here, else the gang's members that are. */
static void add_device_hint(const struct hardware_list *devices, struct lab_str *out) {
    const struct lab_str *available = &devices->available;
    if (available->length || devices->rest_count == 0) {
        lab_str_printf(out, " experiment.%s=[%s]", devices->path,
                       available->length ? available->text : "0");
        return;
    }
    int size = 1; /* of a preset */
    while (2 * size <= devices->rest_count && size < 8)
        size *= 2;
    lab_str_printf(out, " experiment.%s=[[%s]]", devices->path, devices->rest.text);
    if (devices->rest_preset)
        lab_str_printf(out, " (or choose experiment/ddp=%dgpu%s)", size, size == 1 ? "" : "s");
}

static int refuse_missing(const struct plan_book *book, const struct plan_job *job,
                          struct hardware_list *devices, struct hardware_list *nodes,
                          struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s asks for ", book->option);
    if (devices->missing_count) {
        lab_str_add(&text, devices->missing_count == 1 ? "device " : "devices ");
        add_numbers(&text, devices->missing, devices->missing_count);
        lab_str_add(&text, ", but ");
        add_devices(book, job->keys.device, &text);
    }
    if (nodes->missing_count) {
        lab_str_printf(&text, "%sNUMA node%s ", devices->missing_count ? "; and for " : "",
                       nodes->missing_count == 1 ? "" : "s");
        add_numbers(&text, nodes->missing, nodes->missing_count);
        lab_str_add(&text, ", but ");
        add_nodes(book->machine, &text);
    }
    lab_str_add(&text, "; to run it here, add:");
    if (devices->missing_count && job->keys.gpu_mode && book->devices.count > 1)
        lab_str_printf(&text, " experiment.%s=all", devices->path); /* it makes the gangs of them */
    else if (devices->missing_count)
        add_device_hint(devices, &text);
    fill_nodes(nodes, book->machine);
    if (nodes->missing_count && nodes->available.length)
        lab_str_printf(&text, " experiment.%s=[%s]", nodes->path, nodes->available.text);
    else if (nodes->missing_count)
        lab_str_printf(&text, " experiment.%s=[%d]", nodes->path, book->machine->nodes[0].number);
    return lab_err_set(err, LAB_ERR_USER, "%s", text.text);
}

int plan_check_hardware(const struct plan_book *book, const struct plan_job *job,
                        struct lab_err *err) {
    struct hardware_list devices = {
        .book = book, .path = PLAN_GPU_IDS, .is_here = device_is_here, .spread = job->keys.spread};
    struct hardware_list nodes = {.book = book, .path = PLAN_NUMA_NODES, .is_here = node_is_here};
    lab_str_init(&devices.available);
    lab_str_init(&devices.rest);
    lab_str_init(&nodes.available);
    lab_str_init(&nodes.rest);
    int result = check_list(&devices, job, err);
    if (result == 0)
        result = check_list(&nodes, job, err);
    if (result == 0 && (devices.missing_count || nodes.missing_count))
        result = refuse_missing(book, job, &devices, &nodes, err);
    lab_str_release(&devices.available);
    lab_str_release(&devices.rest);
    lab_str_release(&nodes.available);
    lab_str_release(&nodes.rest);
    return result;
}

/* --- memory --- */

/* Bytes that the draft's ranks need together on a node (their host memory, and the device's where
 * that is the node's cores), and what the node has. */
static int64_t need_on_node(const struct plan_book *book, const struct plan_draft *draft,
                            const struct lab_workload_cost *cost, int node) {
    int64_t need = 0;
    for (int i = 0; i < draft->rank_count; i++) {
        const struct lab_device_ref *ref = &book->devices.items[draft->ranks[i].gpu_id];
        need += draft->ranks[i].numa_node == node ? cost->host_bytes : 0;
        need += ref->cpus.count > 0 && ref->node == node ? cost->device_bytes : 0;
    }
    return need;
}

static int64_t need_on_device(const struct plan_book *book, const struct plan_draft *draft,
                              const struct lab_workload_cost *cost, const char *physical) {
    int64_t need = 0;
    for (int i = 0; i < draft->rank_count; i++) {
        const struct lab_device_ref *ref = &book->devices.items[draft->ranks[i].gpu_id];
        need += lab_str_equal(ref->physical, physical) ? cost->device_bytes : 0;
    }
    return need;
}

struct shortage {
    const struct plan_draft *draft; /* NULL = none */
    char where[64];                 /* "NUMA node 0", "device cuda:0" */
    int64_t need, there;            /* bytes */
};

/* What the first node or device lacks for this draft at this cost, at its ranks. */
static bool lacks_there(const struct plan_book *book, const int64_t *free_bytes,
                        const struct plan_draft *draft, const struct lab_workload_cost *cost,
                        struct shortage *ret) {
    const struct lab_machine *machine = book->machine;
    for (int i = 0; i < machine->node_count; i++) {
        int64_t need = need_on_node(book, draft, cost, machine->nodes[i].number);
        if (free_bytes[i] <= 0 || need <= free_bytes[i])
            continue;
        *ret = (struct shortage){.draft = draft, .need = need, .there = free_bytes[i]};
        snprintf(ret->where, sizeof ret->where, "NUMA node %d", machine->nodes[i].number);
        return true;
    }
    for (int i = 0; i < draft->rank_count; i++) {
        const struct lab_device_ref *ref = &book->devices.items[draft->ranks[i].gpu_id];
        int64_t need = need_on_device(book, draft, cost, ref->physical);
        if (ref->cpus.count > 0 || ref->memory_bytes <= 0 || need <= ref->memory_bytes)
            continue;
        *ret = (struct shortage){.draft = draft, .need = need, .there = ref->memory_bytes};
        snprintf(ret->where, sizeof ret->where, "device %s", ref->physical);
        return true;
    }
    return false;
}

/* The same at any place where it may run. */
static bool lacks(const struct plan_book *book, const int64_t *free_bytes,
                  const struct plan_draft *draft, const struct lab_workload_cost *cost,
                  struct shortage *ret) {
    for (int i = 0; i < draft->slot_count; i++) {
        struct plan_draft placed = *draft;
        placed.ranks = (struct lab_run_rank *)&draft->slots[(ptrdiff_t)i * draft->rank_count];
        if (!lacks_there(book, free_bytes, &placed, cost, ret))
            continue;
        ret->draft = draft;
        return true;
    }
    return draft->slot_count == 0 && lacks_there(book, free_bytes, draft, cost, ret);
}

/* The largest power of two for the pool with which the draft fits; 0 = none does. */
static int64_t fitting_pool(const struct plan_book *book, const int64_t *free_bytes,
                            const struct plan_draft *draft) {
    const struct plan_work *work = &book->works[draft->work];
    const struct lab_option *row = lab_options_find(work->workload->options, "memory_size_mb");
    if (!row || row->type != LAB_OPTION_INT)
        return 0;
    LAB_AUTO_FREE char *config = lab_mem_alloc(1, work->workload->config_size);
    memcpy(config, work->config, work->workload->config_size);
    int64_t *pool = (int64_t *)(void *)(config + row->offset), fitting = 0;
    for (int64_t size = INT64_C(1) << 40; size >= 1 && !fitting; size /= 2) {
        if (size >= *(const int64_t *)(const void *)((const char *)work->config + row->offset))
            continue;
        struct lab_workload_cost cost;
        struct shortage shortage;
        struct lab_err ignored;
        *pool = size;
        if (work->workload->check && work->workload->check(config, &ignored) < 0)
            break;
        work->workload->cost(config, &cost);
        if (!lacks(book, free_bytes, draft, &cost, &shortage))
            fitting = size;
    }
    return fitting;
}

static int refuse_memory(const struct plan_book *book, const struct shortage *shortage, int count,
                         int64_t pool, struct lab_err *err) {
    LAB_AUTO(str, there);
    LAB_AUTO(str, need);
    lab_str_add_bytes_binary(&need, (double)shortage->need);
    lab_str_add_bytes_binary(&there, (double)shortage->there);
    const char *hint =
        pool ? lab_arena_printf(book->arena, "add: experiment.test.memory_size_mb=%lld",
                                (long long)pool)
             : "give a smaller experiment.test.batch_size, or a smaller model";
    lab_err_set(err, LAB_ERR_USER, "%s: %s needs %s on %s, which has %s free%s; to run it here, %s",
                book->option, book->works[shortage->draft->work].label, need.text, shortage->where,
                there.text,
                count > 1 ? lab_arena_printf(book->arena, "; so do %d more runs", count - 1) : "",
                hint);
    return -1;
}

int plan_check_memory(const struct plan_book *book, struct lab_err *err) {
    const struct lab_machine *machine = book->machine;
    LAB_AUTO_FREE int64_t *free_bytes =
        lab_mem_alloc((size_t)machine->node_count, sizeof *free_bytes);
    for (int i = 0; i < machine->node_count; i++) {
        int64_t now =
            machine->recorded ? -1 : lab_machine_free_bytes(machine, machine->nodes[i].number);
        free_bytes[i] = now >= 0 ? now : machine->nodes[i].memory_bytes;
    }
    struct shortage first = {0}, other;
    int count = 0;
    int64_t pool = INT64_MAX;
    for (int i = 0; i < book->draft_count; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        if (!lacks(book, free_bytes, draft, &book->works[draft->work].cost, &other))
            continue;
        if (count++ == 0)
            first = other;
        int64_t fitting = pool ? fitting_pool(book, free_bytes, draft) : 0;
        pool = fitting < pool ? fitting : pool;
    }
    return count ? refuse_memory(book, &first, count, pool, err) : 0;
}

/* --- what devices can do --- */

/* Single values of the matrix that a program isn't given: those of the preset that every study has
 * are no surprise. */
static void note_unused(struct plan_book *book, const struct plan_job *job,
                        const struct lab_value *matrix) {
    LAB_AUTO(str, names);
    int count = 0;
    for (int i = 0; i < matrix->count; i++) {
        const struct lab_value *value = matrix->items[i];
        bool preset = value->origin && strstr(value->origin, "experiment/matrix/full");
        if (preset || value->type == LAB_VALUE_LIST || value->type == LAB_VALUE_MAP ||
            job->workload->uses(job->base, PLAN_MATRIX, matrix->keys[i]))
            continue;
        lab_str_printf(&names, "%s%s", count++ ? ", " : "", matrix->keys[i]);
    }
    if (count > 0)
        plan_note(book, "of the matrix, neither command nor env uses: %s", names.text);
}

void plan_note_programs(struct plan_book *book, const struct plan_job *job) {
    const struct lab_value *matrix = lab_value_get(job->experiment, PLAN_MATRIX);
    if (job->workload->external && book->machine->simulated)
        plan_note(book, "%s is simulated: the plan is shown, but your own program can't run on it",
                  book->machine->source);
    if (matrix && matrix->type == LAB_VALUE_MAP && job->workload->external)
        note_unused(book, job, matrix);
    LAB_AUTO(str, unused);
    for (int i = 0; matrix && matrix->type == LAB_VALUE_MAP && i < matrix->count; i++)
        if (plan_is_unused_setting(job, matrix->keys[i], matrix->items[i]))
            lab_str_printf(&unused, "%s%s", unused.length ? ", " : "", matrix->keys[i]);
    if (unused.length)
        plan_note(book, "of the matrix, %s has no option for: %s", job->workload->name,
                  unused.text);
    const struct lab_value *processes = lab_value_get(job->experiment, "processes");
    if (processes && processes->type == LAB_VALUE_STRING && !job->keys.processes)
        plan_note(book, "processes=%s has no effect: %s is not a program", processes->string,
                  job->workload->name);
    for (int i = 0; i < job->experiment->count; i++) {
        const struct lab_value *value = job->experiment->items[i];
        if (value->type != LAB_VALUE_NULL &&
            plan_is_others_setting(job, job->experiment->keys[i], value))
            plan_note(book, "%s has no effect: %s has no such option", job->experiment->keys[i],
                      job->workload->name);
    }
}

static int check_rank(const struct plan_book *book, const struct plan_work *work,
                      const struct lab_device_ref *ref, struct lab_err *err) {
    if (work->workload->external) {
        if (ref->slices > 1 && ref->cpus.count == 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s: %s: your own program needs the whole GPU, not a slice; to run "
                               "it here, add: device=%s:%d",
                               book->option, ref->name, ref->backend, ref->unit);
        return 0;
    }
    const char *lacks = work->cost.compute.flops > 0 ? lab_device_lacks(ref, book->arena) : NULL;
    if (!lacks)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "%s: %s can't compute: %s; to run it on the CPU, add: device=cpu",
                       book->option, ref->name, lacks);
}

int plan_check_able(const struct plan_book *book, struct lab_err *err) {
    for (int i = 0; i < book->draft_count; i++) {
        const struct plan_draft *draft = &book->drafts[i];
        int count;
        const struct lab_run_rank *ranks = plan_draft_places(draft, &count);
        for (int k = 0; k < count; k++)
            if (check_rank(book, &book->works[draft->work], &book->devices.items[ranks[k].gpu_id],
                           err) < 0)
                return -1;
    }
    return 0;
}
