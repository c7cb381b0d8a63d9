/*
 * monitor_file_read_own.c: takes in our own document, section by section. Numbers of entities are
 * those of the file; whatever refers to one that isn't there is left out and counted.
 */
#include "store/foreign/monitor_file_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct entry {  /* an entity of the file */
    int entity; /* the builder's; -1 = none */
    struct lab_column *columns;
    int count;
};

struct lab_monitor_own {
    struct lab_monitor_builder *builder;
    struct entry entries[LAB_MONITOR_ENTITIES];
};

struct lab_monitor_own *lab_monitor_own_new(struct lab_monitor_builder *builder) {
    struct lab_monitor_own *own = lab_mem_alloc(1, sizeof *own);
    own->builder = builder;
    for (int i = 0; i < LAB_MONITOR_ENTITIES; i++)
        own->entries[i].entity = -1;
    return own;
}

void lab_monitor_own_free(struct lab_monitor_own *own) {
    for (int i = 0; own && i < LAB_MONITOR_ENTITIES; i++)
        lab_mem_free(own->entries[i].columns);
    lab_mem_free(own);
}

/* --- fields --- */

static double number_of(const struct lab_value *map, const char *key) {
    double number;
    return lab_monitor_number(lab_value_get(map, key), &number) ? number : (double)NAN;
}

static const char *text_of(struct lab_monitor_own *own, const struct lab_value *map,
                           const char *key) {
    return lab_monitor_builder_text(own->builder, lab_value_get_text(map, key, NULL));
}

/* A steady time or an offset that sums can bear. */
static bool time_of(const struct lab_value *map, const char *key, int64_t *ret_ns) {
    *ret_ns = lab_value_get_int(map, key, INT64_MIN);
    return *ret_ns<LAB_MONITOR_TIME_MAX_NS && * ret_ns> - LAB_MONITOR_TIME_MAX_NS;
}

static struct entry *entry_of(struct lab_monitor_own *own, int64_t number) {
    return number >= 0 && number < LAB_MONITOR_ENTITIES && own->entries[number].entity >= 0
               ? &own->entries[number]
               : NULL;
}

/* --- sections --- */

void lab_monitor_own_header(struct lab_monitor_own *own, const struct lab_value *header,
                            struct lab_recording *recording) {
    const struct lab_value *missing = lab_value_get(header, "missing");
    if (lab_value_get(header, "maker"))
        recording->maker = text_of(own, header, "maker");
    if (lab_value_get(header, "label") && *text_of(own, header, "label"))
        recording->label = text_of(own, header, "label");
    int64_t interval_ns = lab_value_get_int(header, "interval_ns", 0);
    if (interval_ns > 0)
        recording->interval_ns = interval_ns;
    if (lab_value_get_int(header, "version", 1) > 1)
        lab_monitor_builder_note(own->builder, "it was written by a newer gpulab: what that added "
                                               "isn't read");
    for (int i = 0; missing && missing->type == LAB_VALUE_LIST && i < missing->count; i++)
        if (missing->items[i]->type == LAB_VALUE_STRING)
            lab_monitor_builder_note(own->builder, missing->items[i]->string);
}

static void read_epoch(struct lab_monitor_own *own, const struct lab_value *record) {
    struct lab_recording_epoch epoch = {.host = text_of(own, record, "host"),
                                        .boot_id = text_of(own, record, "boot_id")};
    if (time_of(record, "from_ns", &epoch.from_ns) &&
        time_of(record, "offset_ns", &epoch.offset_ns))
        lab_monitor_builder_epoch(own->builder, &epoch);
    else
        lab_monitor_builder_odd(own->builder, "epochs without their times", 1);
}

/* "core_utilization_percent[3]" */
static struct lab_column column_of(const struct lab_value *value) {
    struct lab_column column = {.metric = -1, .instance = -1};
    char name[64];
    if (value->type != LAB_VALUE_STRING)
        return column;
    size_t length = strcspn(value->string, "[");
    if (length >= sizeof name)
        return column;
    memcpy(name, value->string, length);
    name[length] = '\0';
    column.metric = (int16_t)lab_monitor_find_column(name);
    if (value->string[length] == '[') {
        long instance = strtol(value->string + length + 1, NULL, 10);
        if (instance < 0 || instance > INT16_MAX)
            column.metric = -1;
        else
            column.instance = (int16_t)instance;
    }
    return column;
}

static void read_entity(struct lab_monitor_own *own, const struct lab_value *record) {
    const struct lab_value *kind = lab_value_get(record, "kind"),
                           *columns = lab_value_get(record, "columns");
    int64_t number = lab_value_get_int(record, "number", -1),
            index = lab_value_get_int(record, "index", 0);
    int which = kind && kind->type == LAB_VALUE_STRING ? lab_entity_kind_find(kind->string) : -1;
    int entity = -1;
    if (which >= 0 && number >= 0 && number < LAB_MONITOR_ENTITIES && index >= 0 &&
        index <= INT16_MAX && own->entries[number].entity < 0)
        entity = lab_monitor_builder_entity(own->builder, (enum lab_entity_kind)which, (int)index,
                                            text_of(own, record, "id"));
    if (entity < 0) {
        lab_monitor_builder_odd(own->builder, "invalid entities", 1);
        return;
    }
    struct lab_entity *facts = lab_monitor_builder_facts(own->builder, entity);
    facts->name = text_of(own, record, "name");
    facts->pci = text_of(own, record, "pci");
    facts->node = (int)lab_value_get_int(record, "node", -1);
    const struct entry *parent = entry_of(own, lab_value_get_int(record, "parent", -1));
    facts->parent = parent ? parent->entity : -1;
    facts->simulated = lab_value_get_bool(record, "simulated");
    struct entry *entry = &own->entries[number];
    entry->entity = entity;
    entry->count = columns && columns->type == LAB_VALUE_LIST ? columns->count : 0;
    entry->columns = lab_mem_alloc((size_t)entry->count + 1, sizeof *entry->columns);
    for (int i = 0; i < entry->count; i++) {
        entry->columns[i] = column_of(columns->items[i]);
        if (entry->columns[i].metric < 0)
            lab_monitor_builder_odd(own->builder, "unknown columns", 1);
    }
}

static void read_tick(struct lab_monitor_own *own, const struct lab_value *record) {
    const struct entry *entry = entry_of(own, lab_value_get_int(record, "entity", -1));
    const struct lab_value *values = lab_value_get(record, "values");
    int64_t time_ns, raw;
    double number;
    if (!entry || !values || values->type != LAB_VALUE_LIST ||
        !time_of(record, "time_ns", &time_ns) ||
        lab_monitor_builder_tick_at(own->builder, entry->entity, time_ns, INT64_MIN) < 0) {
        lab_monitor_builder_odd(own->builder, "invalid ticks", 1);
        return;
    }
    for (int i = 0; i < values->count && i < entry->count; i++) {
        enum lab_metric_id metric = (enum lab_metric_id)entry->columns[i].metric;
        if (entry->columns[i].metric >= 0 && lab_monitor_number(values->items[i], &number) &&
            lab_monitor_to_raw(metric, number, &raw))
            lab_monitor_builder_set(own->builder, entry->entity, metric, entry->columns[i].instance,
                                    raw);
        else if (entry->columns[i].metric >= 0 && values->items[i]->type != LAB_VALUE_NULL)
            lab_monitor_builder_odd(own->builder, "fields that are not numbers", 1);
    }
}

static void read_event(struct lab_monitor_own *own, const struct lab_value *record) {
    const struct entry *entry = entry_of(own, lab_value_get_int(record, "entity", -1));
    struct lab_sample_event event = {
        .entity = entry ? entry->entity : -1,
        .kind = lab_event_kind_find(lab_value_get_text(record, "kind", NULL)),
        .number = lab_value_get_int(record, "number", 0),
        .text = text_of(own, record, "text")};
    if (event.kind < LAB_EVENT_KIND_COUNT && time_of(record, "time_ns", &event.time_ns))
        lab_monitor_builder_event(own->builder, &event);
    else
        lab_monitor_builder_odd(own->builder, "unknown events", 1);
}

/* --- processes --- */

static void read_gpus(struct lab_monitor_own *own, const struct lab_value *list,
                      struct lab_process_sample *process) {
    if (!list || list->type != LAB_VALUE_LIST || list->count == 0)
        return;
    process->gpus = lab_arena_alloc(lab_monitor_builder_arena(own->builder), (size_t)list->count,
                                    sizeof *process->gpus);
    for (int i = 0; i < list->count; i++) {
        const struct lab_value *item = list->items[i];
        const struct entry *entry = entry_of(own, lab_value_get_int(item, "entity", -1));
        if (entry)
            process->gpus[process->gpu_count++] = (struct lab_process_gpu){
                .entity = entry->entity,
                .memory_bytes = lab_value_get_int(item, "memory_bytes", -1),
                .sm_percent = number_of(item, "sm_percent"),
                .memory_percent = number_of(item, "memory_percent"),
                .compute = lab_value_get_bool(item, "compute"),
                .graphics = lab_value_get_bool(item, "graphics")};
    }
}

static void read_node_bytes(struct lab_monitor_own *own, const struct lab_value *list,
                            struct lab_process_sample *process) {
    if (!list || list->type != LAB_VALUE_LIST || list->count > LAB_PROCESS_NODES_MAX)
        return;
    process->node_count = list->count;
    process->node_bytes = lab_arena_alloc(lab_monitor_builder_arena(own->builder),
                                          (size_t)list->count + 1, sizeof *process->node_bytes);
    for (int i = 0; i < list->count; i++)
        process->node_bytes[i] =
            list->items[i]->type == LAB_VALUE_INT ? list->items[i]->integer : 0;
}

static void read_process(struct lab_monitor_own *own, const struct lab_value *item,
                         struct lab_process_sample *ret) {
    int64_t placement = lab_value_get_int(item, "placement", LAB_PLACEMENT_UNKNOWN);
    *ret = (struct lab_process_sample){
        .pid = (int32_t)lab_value_get_int(item, "pid", -1),
        .parent_pid = (int32_t)lab_value_get_int(item, "parent_pid", -1),
        .start = (uint64_t)lab_value_get_int(item, "start", 0),
        .uid = (uint32_t)lab_value_get_int(item, "uid", 0),
        .user = text_of(own, item, "user"),
        .name = text_of(own, item, "name"),
        .command = text_of(own, item, "command"),
        .container = text_of(own, item, "container"),
        .cpu_percent = number_of(item, "cpu_percent"),
        .queue_percent = NAN,
        .active_percent = NAN,
        .memory_bytes = lab_value_get_int(item, "memory_bytes", -1),
        .threads = (int)lab_value_get_int(item, "threads", 0),
        .cpu_node = (int)lab_value_get_int(item, "cpu_node", -1),
        .allowed_nodes = (uint64_t)lab_value_get_int(item, "allowed_nodes", 0),
        .placement = placement >= 0 && placement <= LAB_PLACEMENT_BOTH
                         ? (enum lab_placement)placement
                         : LAB_PLACEMENT_UNKNOWN,
        .advice = text_of(own, item, "advice")};
    read_node_bytes(own, lab_value_get(item, "node_bytes"), ret);
    read_gpus(own, lab_value_get(item, "gpus"), ret);
}

static void read_processes(struct lab_monitor_own *own, const struct lab_value *record) {
    const struct lab_value *items = lab_value_get(record, "items");
    struct lab_process_list list = {.left_out = (int)lab_value_get_int(record, "left_out", 0)};
    if (!items || items->type != LAB_VALUE_LIST || !time_of(record, "time_ns", &list.time_ns)) {
        lab_monitor_builder_odd(own->builder, "invalid lists of processes", 1);
        return;
    }
    list.count = items->count;
    list.items = lab_arena_alloc(lab_monitor_builder_arena(own->builder), (size_t)items->count + 1,
                                 sizeof *list.items);
    for (int i = 0; i < items->count; i++)
        read_process(own, items->items[i], &list.items[i]);
    lab_monitor_builder_processes(own->builder, &list);
}

void lab_monitor_own_record(struct lab_monitor_own *own, const char *section,
                            const struct lab_value *record) {
    static const struct {
        const char *section;
        void (*read)(struct lab_monitor_own *own, const struct lab_value *record);
    } readers[] = {
        {"epochs", read_epoch}, {"entities", read_entity},     {"ticks", read_tick},
        {"events", read_event}, {"processes", read_processes},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (lab_str_equal(section, readers[i].section))
            readers[i].read(own, record);
}
