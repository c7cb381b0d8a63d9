/*
 * devices.c: `gpulab devices`: the machine, what can be given to --device, which NUMA node feeds
 * which device, and which of the vendor's libraries were found. With --topology it shows a machine
 * that isn't here.
 */
#include "command/command.h"

#include "device/device.h"
#include "machine/machine.h"
#include "machine/machine_json.h"
#include "report/report.h"
#include "vendor/vendor.h"
#include "version.h"

#include <stddef.h>

struct devices_config {
    bool map;
    const char *topology;
};

static const struct lab_option devices_options[] = {
    {"map", LAB_OPTION_FLAG, offsetof(struct devices_config, map),
     .help = "draw the machine: a box for each NUMA node, with its bridges and devices"},
    {"topology", LAB_OPTION_STRING, offsetof(struct devices_config, topology), .value_name = "FILE",
     .help = "show the machine recorded in this hwloc XML file (lstopo FILE.xml)"},
    {NULL},
};

static void print(const struct lab_command_call *call, const struct lab_machine *machine,
                  const struct lab_device_offer *offers, int count) {
    const struct devices_config *config = call->config;
    struct lab_arena *arena = call->arena;
    struct lab_doc *doc = lab_doc_open("Devices", arena);
    struct lab_vendor_library *libraries = NULL;
    struct lab_value *map = lab_value_map(arena);
    bool whole = !config->map && !call->shared->device;
    int found = 0;
    /* a machine that isn't here has none */
    if ((whole || call->console->json) && !machine->recorded)
        found = lab_vendor_list(arena, &libraries);
    lab_value_set_string(arena, map, "gpulab", LAB_VERSION);
    lab_value_set_string(arena, map, "selector", call->shared->device);
    lab_value_set(arena, map, "machine", lab_machine_json_value(machine, arena));
    lab_doc_data(doc, NULL, map);
    lab_report_add_machine(doc, machine, config->map);
    /* the drawing is of the machine; what was asked for by name is shown all the same */
    lab_doc_only(doc, config->map && !call->shared->device ? LAB_DOC_PROGRAMS : LAB_DOC_ALL);
    lab_report_add_backends(doc, offers, count);
    /* without the driver there is nothing to add to why the backend has no devices */
    lab_doc_only(doc, whole && found && libraries[0].path ? LAB_DOC_ALL : LAB_DOC_PROGRAMS);
    lab_report_add_libraries(doc, libraries, found);
    lab_doc_print(doc, call->console);
}

/* Devices of a simulated machine are shown in it. */
static int machine_of(const struct lab_command_call *call, const struct lab_machine **machine,
                      struct lab_err *err) {
    struct lab_device_list list;
    if (!call->shared->device)
        return 0;
    if (lab_device_select(*machine, call->shared->device, call->arena, &list, err) < 0)
        return -1;
    if (list.items[0].machine)
        *machine = list.items[0].machine;
    return 0;
}

static int show(const struct lab_command_call *call, const struct lab_machine *machine,
                struct lab_err *err) {
    struct lab_device_offer *offers;
    const char *selector = call->shared->device;
    if (machine_of(call, &machine, err) < 0)
        return -1;
    int count = selector ? lab_device_offers_selected(machine, selector, call->arena, &offers, err)
                         : lab_device_offers(machine, call->arena, &offers);
    if (count < 0)
        return -1;
    print(call, machine, offers, count);
    return 0;
}

static int devices_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct devices_config *config = call->config;
    struct lab_machine *machine;
    if (config->topology && !*config->topology)
        return lab_err_set(err, LAB_ERR_USER,
                           "--topology needs a file: hwloc XML, as "
                           "'lstopo FILE.xml' writes it");
    if (lab_machine_open(config->topology, &machine, err) < 0)
        return -1;
    int result = show(call, machine, err);
    lab_machine_close(machine);
    return result;
}

static const struct lab_manual_section *devices_sections(struct lab_arena *arena, const char *word,
                                                         struct lab_err *err) {
    if (word && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS)) {
        lab_err_set(err, LAB_ERR_USER, "help devices: no further page '%s'", word);
        return NULL;
    }
    LAB_AUTO(str, text);
    for (int i = 0; lab_backends[i]; i++)
        lab_str_printf(&text, "%s%s: %s", i ? "\n\n" : "", lab_backends[i]->name,
                       lab_backends[i]->help);
    struct lab_manual_section *section = lab_arena_alloc(arena, 3, sizeof *section);
    section[0].title = "Backends";
    section[0].text = lab_arena_strdup(arena, text.text);
    const char *const *names, *const *titles;
    int count = lab_device_definitions(arena, &names, &titles);
    lab_str_clear(&text);
    lab_str_add(&text,
                "Models for planning and teaching; nothing runs on them, and every value of theirs "
                "is marked. machine/NAME.yaml in ~/.config/gpulab adds one.");
    for (int i = 0; i < count; i++)
        lab_str_printf(&text, "\n\nsim:%s: %s", names[i], titles[i]);
    section[1].title = "Simulated machines";
    section[1].text = lab_arena_strdup(arena, text.text);
    return section;
}

static const struct lab_manual_example examples[] = {
    {"gpulab devices", "NUMA nodes, devices and the links between them"},
    {"gpulab devices --map", "the same as a drawing"},
    {"gpulab devices --device cpu:0/4", "NUMA node 0 in four slices: which cores each has"},
    {"gpulab devices --device sim:l40s-10", "a simulated machine: what runs can be planned for"},
    {"gpulab devices --topology server.xml --map", "a machine recorded elsewhere by lstopo"},
    {NULL},
};

const struct lab_command lab_command_devices = {
    .name = "devices",
    .summary = "show this machine: NUMA nodes, cores, devices and their links",
    .usage = "",
    .description =
        "Shows NUMA nodes with their cores and memory, PCI devices with their local NUMA node, and "
        "links between GPUs and network cards. Then the names that --device takes, and which of "
        "the vendor's libraries were found.",
    .options = devices_options,
    .config_size = sizeof(struct devices_config),
    .uses_device = true,
    .device_help = "list these devices only: cuda:0 (a GPU), cuda:0/4 (in four slices), cpu:1 (a "
                   "NUMA node), cpu:0/2 (in halves), sim:l40s-10 (a simulated machine)",
    .examples = examples,
    .sections = devices_sections,
    .run = devices_run,
};
