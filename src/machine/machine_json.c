/* machine_json.c: a machine as JSON, and back as far as analyses ask. */
#include "machine/machine_json.h"

#include "base/file/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define COUNT_MAX 100000 /* of nodes, CPUs and devices that are read */

static const char *const pci_kinds[] = {"gpu", "network", "storage", "other", NULL};

/* --- writing --- */

/* Unknown is null, never a magic number. */
static void set_known(struct lab_arena *arena, struct lab_value *map, const char *key,
                      int64_t value) {
    lab_value_set(arena, map, key,
                  value >= 0 ? lab_value_int(arena, value) : lab_value_null(arena));
}

static struct lab_value *nodes_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_int(arena, map, "node", node->number);
        lab_value_set_int(arena, map, "cores", node->core_count);
        lab_value_set(arena, map, "cpus", lab_cpus_value(&node->cpus, arena));
        lab_value_set_int(arena, map, "memory_bytes", node->memory_bytes);
        set_known(arena, map, "free_bytes", node->free_bytes);
        struct lab_value *distances = lab_value_map(arena);
        for (int j = 0; j < machine->node_count; j++) {
            int distance = lab_machine_distance(machine, i, j);
            set_known(arena, distances, lab_arena_printf(arena, "%d", machine->nodes[j].number),
                      distance ? distance : -1);
        }
        lab_value_set(arena, map, "distances", distances);
        lab_value_append(arena, list, map);
    }
    return list;
}

static struct lab_value *caches_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->cache_count; i++) {
        const struct lab_cache *cache = &machine->caches[i];
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_int(arena, map, "level", cache->level);
        lab_value_set_string(arena, map, "kind",
                             cache->kind == 'd'   ? "data"
                             : cache->kind == 'i' ? "instruction"
                                                  : "unified");
        lab_value_set_int(arena, map, "size_bytes", cache->size_bytes);
        lab_value_set_int(arena, map, "line_bytes", cache->line_bytes);
        lab_value_set_int(arena, map, "count", cache->count);
        lab_value_set_int(arena, map, "shared_by_cores", cache->shared_by_cores);
        lab_value_append(arena, list, map);
    }
    return list;
}

/* From the host's down; equal names are one bridge. */
static struct lab_value *bridges_value(const struct lab_pci *pci, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < pci->bridge_count; i++)
        lab_value_append(arena, list, lab_value_string(arena, pci->bridge_names[i]));
    return list;
}

static struct lab_value *pci_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->pci_count; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        struct lab_value *map = lab_value_map(arena);
        char name[LAB_PCI_NAME_BYTES];
        lab_machine_pci_name(machine, i, name);
        lab_value_set_string(arena, map, "name", *name ? name : NULL);
        lab_value_set_string(arena, map, "address", pci->address);
        lab_value_set_string(arena, map, "kind", pci_kinds[pci->kind]);
        lab_value_set_string(arena, map, "vendor", *pci->vendor ? pci->vendor : NULL);
        lab_value_set_string(arena, map, "model", *pci->name ? pci->name : NULL);
        lab_value_set_string(arena, map, "id",
                             lab_arena_printf(arena, "%04x:%04x", pci->vendor_id, pci->device_id));
        lab_value_set_string(arena, map, "os_name", *pci->os_name ? pci->os_name : NULL);
        set_known(arena, map, "node", pci->node < 0 ? -1 : machine->nodes[pci->node].number);
        lab_value_set(arena, map, "link_gb_per_second",
                      pci->link_gbs > 0 ? lab_value_float(arena, pci->link_gbs)
                                        : lab_value_null(arena));
        if (pci->bridge_names)
            lab_value_set(arena, map, "bridges", bridges_value(pci, arena));
        lab_value_append(arena, list, map);
    }
    return list;
}

static bool is_linked(const struct lab_pci *pci) {
    return lab_pci_is_gpu(pci) || pci->kind == LAB_PCI_NETWORK;
}

/* Each pair of GPUs and network cards once. */
static struct lab_value *links_value(const struct lab_machine *machine, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < machine->pci_count; i++)
        for (int j = i + 1; j < machine->pci_count; j++) {
            const struct lab_pci *a = &machine->pci[i], *b = &machine->pci[j];
            if (!is_linked(a) || !is_linked(b))
                continue;
            char name[LAB_PCI_NAME_BYTES];
            struct lab_value *map = lab_value_map(arena);
            lab_machine_pci_name(machine, i, name);
            lab_value_set_string(arena, map, "a", name);
            lab_machine_pci_name(machine, j, name);
            lab_value_set_string(arena, map, "b", name);
            enum lab_link link = lab_machine_link(machine, a, b);
            lab_value_set_string(arena, map, "link",
                                 link == LAB_LINK_UNKNOWN ? NULL : lab_link_name(link));
            lab_value_append(arena, list, map);
        }
    return list;
}

/* What a driver or kernel changes a comparison should name; nothing of a machine from a file. */
static void add_software(const struct lab_machine *machine, struct lab_arena *arena,
                         struct lab_value *map) {
    struct utsname name;
    char *driver;
    size_t length;
    if (machine->recorded)
        return;
    if (lab_file_read("/sys/module/nvidia/version", 256, arena, &driver, &length, NULL) == 0)
        lab_value_set_string(arena, map, "driver",
                             lab_arena_strndup(arena, driver, strcspn(driver, "\n")));
    if (uname(&name) == 0)
        lab_value_set_string(arena, map, "kernel", name.release);
}

struct lab_value *lab_machine_json_value(const struct lab_machine *machine,
                                         struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "source", machine->source);
    lab_value_set_bool(arena, map, "recorded", machine->recorded);
    lab_value_set_bool(arena, map, "simulated", machine->simulated);
    lab_value_set_string(arena, map, "host", *machine->host ? machine->host : NULL);
    lab_value_set_string(arena, map, "cpu_model", *machine->cpu_model ? machine->cpu_model : NULL);
    lab_value_set_int(arena, map, "packages", machine->package_count);
    lab_value_set_int(arena, map, "cores", machine->core_count);
    add_software(machine, arena, map);
    lab_value_set_bool(arena, map, "numa_in_kernel", machine->numa_in_kernel);
    lab_value_set(arena, map, "nodes", nodes_value(machine, arena));
    lab_value_set(arena, map, "caches", caches_value(machine, arena));
    lab_value_set(arena, map, "pci", pci_value(machine, arena));
    lab_value_set(arena, map, "links", links_value(machine, arena));
    return map;
}

/* --- reading --- */

static int count_of(const struct lab_value *list) {
    return list && list->type == LAB_VALUE_LIST && list->count <= COUNT_MAX ? list->count : 0;
}

static struct lab_cpus read_cpus(const struct lab_value *list, struct lab_arena *arena) {
    struct lab_cpus cpus = {.items =
                                lab_arena_alloc(arena, (size_t)count_of(list) + 1, sizeof(int))};
    for (int i = 0; i < count_of(list); i++)
        if (list->items[i]->type == LAB_VALUE_INT)
            cpus.items[cpus.count++] = (int)list->items[i]->integer;
    return cpus;
}

static void read_nodes(struct lab_machine *machine, const struct lab_value *list,
                       struct lab_arena *arena) {
    int count = machine->node_count;
    for (int i = 0; i < count; i++)
        machine->nodes[i] = (struct lab_node){
            .number = (int)lab_value_get_int(list->items[i], "node", i),
            .cpus = read_cpus(lab_value_get(list->items[i], "cpus"), arena),
            .core_count = (int)lab_value_get_int(list->items[i], "cores", 0),
            .memory_bytes = lab_value_get_int(list->items[i], "memory_bytes", 0),
            .free_bytes = lab_value_get_int(list->items[i], "free_bytes", -1),
        };
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            char key[16];
            snprintf(key, sizeof key, "%d", machine->nodes[to].number);
            machine->distances[from * count + to] =
                (int)lab_value_get_int(lab_value_get(list->items[from], "distances"), key, 0);
        }
}

static enum lab_pci_kind kind_of(const char *name) {
    int kind = lab_str_find(name, pci_kinds);
    return kind < 0 ? LAB_PCI_OTHER : (enum lab_pci_kind)kind;
}

static void read_bridges(struct lab_pci *pci, const struct lab_value *names,
                         struct lab_arena *arena) {
    pci->bridge_count = count_of(names);
    pci->bridges = lab_arena_alloc(arena, (size_t)pci->bridge_count + 1, sizeof *pci->bridges);
    pci->bridge_names =
        lab_arena_alloc(arena, (size_t)pci->bridge_count + 1, sizeof *pci->bridge_names);
    for (int i = 0; i < pci->bridge_count; i++) {
        pci->bridge_names[i] = lab_value_as_text(names->items[i], "");
        pci->bridges[i] = (int)(lab_hash_text(LAB_HASH_START, pci->bridge_names[i]) & INT_MAX);
    }
}

static void read_pci(struct lab_machine *machine, const struct lab_value *list,
                     struct lab_arena *arena) {
    for (int i = 0; i < machine->pci_count; i++) {
        const struct lab_value *item = list->items[i];
        struct lab_pci *pci = &machine->pci[i];
        unsigned vendor = 0, device = 0;
        sscanf(lab_value_get_text(item, "id", ""), "%4x:%4x", &vendor, &device);
        *pci = (struct lab_pci){
            .kind = kind_of(lab_value_get_text(item, "kind", "")),
            .vendor_id = (uint16_t)vendor,
            .device_id = (uint16_t)device,
            .vendor = lab_value_get_text(item, "vendor", ""),
            .name = lab_value_get_text(item, "model", ""),
            .os_name = lab_value_get_text(item, "os_name", ""),
            .node = lab_machine_node_index(machine, (int)lab_value_get_int(item, "node", -1))};
        snprintf(pci->address, sizeof pci->address, "%s", lab_value_get_text(item, "address", ""));
        read_bridges(pci, lab_value_get(item, "bridges"), arena);
    }
}

const struct lab_machine *lab_machine_json_read(const char *json, struct lab_arena *arena) {
    struct lab_value *map;
    if (lab_json_parse(json, strlen(json), "machine.json", arena, &map, NULL) < 0)
        return NULL;
    const struct lab_value *nodes = lab_value_get(map, "nodes"), *pci = lab_value_get(map, "pci");
    size_t node_count = (size_t)count_of(nodes);
    if (node_count == 0)
        return NULL;
    struct lab_machine *machine = lab_arena_alloc(arena, 1, sizeof *machine);
    *machine = (struct lab_machine){
        .source = "machine.json",
        .recorded = true,
        .simulated = lab_value_get_bool(map, "simulated"),
        .host = lab_value_get_text(map, "host", ""),
        .cpu_model = lab_value_get_text(map, "cpu_model", ""),
        .package_count = (int)lab_value_get_int(map, "packages", 0),
        .nodes = lab_arena_alloc(arena, node_count, sizeof *machine->nodes),
        .node_count = (int)node_count,
        .numa_in_kernel = lab_value_get_bool(map, "numa_in_kernel"),
        .distances = lab_arena_alloc(arena, node_count * node_count, sizeof(int)),
        .pci_count = count_of(pci),
        .pci = lab_arena_alloc(arena, (size_t)count_of(pci) + 1, sizeof *machine->pci)};
    read_nodes(machine, nodes, arena);
    read_pci(machine, pci, arena);
    return machine;
}

bool lab_machine_json_is_simulated(const char *json, struct lab_arena *arena) {
    struct lab_value *map;
    return lab_json_parse(json, strlen(json), "machine.json", arena, &map, NULL) == 0 &&
           lab_value_get_bool(map, "simulated");
}

/* --- in words --- */

static void add_count(struct lab_str *text, int64_t count, const char *noun) {
    if (count > 0)
        lab_str_printf(text, "%s%lld %s%s", text->length ? ", " : "", (long long)count, noun,
                       count == 1 ? "" : "s");
}

static bool is_gpu(const struct lab_value *pci) {
    return lab_str_starts(lab_value_get_text(pci, "name", ""), "GPU");
}

/* "H100 SXM5 80GB" of "GH100 [H100 SXM5 80GB]", where all GPUs are of one model; "" = they aren't,
 * or it is unknown. */
static const char *gpu_model(const struct lab_value *pci, struct lab_arena *arena) {
    const char *model = NULL;
    for (int i = 0; pci && i < pci->count; i++) {
        const char *own = lab_value_get_text(pci->items[i], "model", "");
        if (!is_gpu(pci->items[i]))
            continue;
        if (model && strcmp(model, own) != 0)
            return "";
        model = own;
    }
    const char *open = model ? strchr(model, '[') : NULL, *close = open ? strchr(open, ']') : NULL;
    return close && close > open + 1
               ? lab_arena_strndup(arena, open + 1, (size_t)(close - open - 1))
           : model ? model
                   : "";
}

struct lab_machine_words lab_machine_json_words(const char *json, struct lab_arena *arena) {
    struct lab_value *machine;
    struct lab_machine_words words = {.line = ""};
    if (lab_json_parse(json, strlen(json), "machine", arena, &machine, NULL) < 0)
        return words;
    LAB_AUTO(str, text);
    const char *host = lab_value_get_text(machine, "host", NULL);
    const struct lab_value *nodes = lab_value_get(machine, "nodes"),
                           *pci = lab_value_get(machine, "pci");
    words.node_count = nodes ? nodes->count : 0;
    for (int i = 0; pci && i < pci->count; i++)
        words.gpu_count += is_gpu(pci->items[i]);
    const char *model = gpu_model(pci, arena);
    lab_str_add(&text, lab_value_get_text(machine, "cpu_model", ""));
    add_count(&text, lab_value_get_int(machine, "cores", 0), "core");
    add_count(&text, words.node_count, "NUMA node");
    if (*model)
        lab_str_printf(&text, "%s%d × %s", text.length ? ", " : "", words.gpu_count, model);
    else
        add_count(&text, words.gpu_count, "GPU");
    words.line = lab_arena_printf(arena, "%s%s%s", host ? host : "",
                                  host && text.length ? ": " : "", text.text);
    return words;
}
