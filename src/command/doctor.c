/*
 * doctor.c: `gpulab doctor`: what works on this machine and what is missing, with the one line that
 * mends it. --bundle packs the answer for a bug report.
 */
#include "command/doctor/doctor.h"

#include "doc/doc.h"

#include <stddef.h>

struct doctor_config {
    const char *bundle;
};

static const struct lab_option doctor_options[] = {
    {"bundle", LAB_OPTION_STRING, offsetof(struct doctor_config, bundle), .value_name = "FILE.json",
     .help = "also pack it for a bug report, with version, devices and topology; without the "
             "names of user and host, and without secrets"},
    {NULL},
};

static const char *const states[] = {"ok", "limited", "missing"};

static void add_table(struct lab_doc *doc, const struct lab_doctor_finding *findings, int count) {
    static const struct lab_doc_column columns[] = {
        {"check", "Check"}, {"state", "State"}, {"found", "Found"},
        {"essential"},      {"cost"},           {"mend"},
    };
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_gap(doc);
    lab_doc_rows(doc, "checks", NULL, columns, sizeof columns / sizeof *columns)->untitled = true;
    for (int i = 0; i < count; i++) {
        const struct lab_doctor_finding *finding = &findings[i];
        struct lab_value *texts[2] = {lab_value_null(arena), lab_value_null(arena)};
        if (finding->cost)
            texts[0] = lab_value_string(arena, finding->cost);
        if (finding->mend)
            texts[1] = lab_value_string(arena, finding->mend);
        lab_doc_cell(doc, "%s", finding->check);
        lab_doc_cell(doc, "%s", states[finding->state]);
        lab_doc_cell(doc, "%s", finding->found);
        lab_doc_add(doc, (struct lab_doc_cell){.data = lab_value_bool(arena, finding->essential)});
        lab_doc_add(doc, (struct lab_doc_cell){.data = texts[0]});
        lab_doc_add(doc, (struct lab_doc_cell){.data = texts[1]});
    }
}

/* What isn't ok, the missing first. */
static void add_problems(struct lab_doc *doc, const struct lab_doctor_finding *findings,
                         int count) {
    lab_doc_only(doc, LAB_DOC_PEOPLE);
    for (int state = LAB_DOCTOR_MISSING; state > LAB_DOCTOR_OK; state--)
        for (int i = 0; i < count; i++) {
            const struct lab_doctor_finding *finding = &findings[i];
            if ((int)finding->state != state)
                continue;
            lab_doc_gap(doc);
            lab_doc_text(doc, LAB_DOC_ITEM, "%s %s: %s", finding->check, states[state],
                         finding->cost);
            if (finding->mend)
                lab_doc_text(doc, LAB_DOC_WHOLE, "    %s", finding->mend);
        }
    lab_doc_only(doc, LAB_DOC_ALL);
}

static bool is_sick(const struct lab_doctor_finding *finding) {
    return finding->essential && finding->state == LAB_DOCTOR_MISSING;
}

static struct lab_doc *write_doc(const struct lab_doctor_finding *findings, int count,
                                 struct lab_arena *arena) {
    struct lab_doc *doc = lab_doc_open("Doctor", arena);
    struct lab_value *list = lab_value_list(arena);
    LAB_AUTO(str, sick);
    int tally[3] = {0};
    for (int i = 0; i < count; i++) {
        tally[findings[i].state]++;
        if (!is_sick(&findings[i]))
            continue;
        lab_str_printf(&sick, "%s%s", list->count ? ", " : "", findings[i].check);
        lab_value_append(arena, list, lab_value_string(arena, findings[i].check));
    }
    lab_doc_text(doc, LAB_DOC_ANSWER, "%s%s: %d of %d checks ok, %d limited, %d missing",
                 list->count ? "Missing and essential: " : "Nothing essential is missing",
                 sick.text, tally[LAB_DOCTOR_OK], count, tally[LAB_DOCTOR_LIMITED],
                 tally[LAB_DOCTOR_MISSING]);
    lab_doc_data(doc, "essential_missing", list);
    add_table(doc, findings, count);
    add_problems(doc, findings, count);
    return doc;
}

static int check_bundle(const struct lab_command_call *call, const char *path,
                        struct lab_err *err) {
    if (path && !lab_str_ends(path, ".json"))
        return lab_err_set(err, LAB_ERR_USER, "--bundle %s: the name must end in .json", path);
    return lab_command_check_output(call, path, err);
}

static int doctor_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct doctor_config *config = call->config;
    struct lab_doctor_finding *findings;
    if (check_bundle(call, config->bundle, err) < 0)
        return -1;
    int count = lab_doctor_examine(call->arena, &findings);
    struct lab_doc *doc = write_doc(findings, count, call->arena);
    if (config->bundle && lab_doctor_pack(doc, config->bundle, call->arena, err) < 0)
        return -1;
    lab_doc_print(doc, call->console);
    if (config->bundle && !call->console->quiet)
        lab_console_note("%s is ready to send: names of user and host and the home folder are "
                         "replaced",
                         config->bundle);
    for (int i = 0; i < count; i++)
        if (is_sick(&findings[i]))
            *ret_status = 1;
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab doctor", "what works here, what is missing, and the line that mends it"},
    {"gpulab doctor --bundle report.json", "the same as a file for a bug report"},
    {NULL},
};

const struct lab_command lab_command_doctor = {
    .name = "doctor",
    .summary = "check what works on this machine, and how to fix what is missing",
    .usage = "",
    .description =
        "Checks topology, CPUs, memory, NUMA, limits of containers and jobs, the clock, GPUs with "
        "their libraries and permissions, and the folders that gpulab writes to. Each limit "
        "or missing part is listed with its effect and the line that fixes it.\n\n"
        "Exit status: 0 if nothing essential is missing, else 1. Essential are the topology, a "
        "folder for outputs, one for leases, and, where there are NVIDIA GPUs, a GPU that works.",
    .options = doctor_options,
    .config_size = sizeof(struct doctor_config),
    .examples = examples,
    .run = doctor_run,
};
