/*
 * peers.c: `gpulab analyze peers`: whether a device is slower than others of the same model, and
 * what else differs about it. The claims are made in peers/.
 */
#include "analysis/peers/peers.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static bool is_slow(const struct lab_peer *device) {
    return lab_peer_effect(device) < 0;
}

/* --- words --- */

static void add_sentence(struct lab_str *text, const struct lab_claim *claim,
                         struct lab_arena *arena) {
    lab_str_printf(text, "%s%s.", text->length ? " " : "", lab_claim_sentence(claim, arena));
}

/* All models, then the one with most arithmetic that differs; or the class that alone does. */
static void add_device(struct lab_str *text, const struct lab_peer *device,
                       struct lab_arena *arena) {
    int last = device->row_count - 1;
    while (last >= 0 && device->rows[last].claim.verdict != LAB_CLAIM_YES)
        last--;
    const struct lab_claim *told = lab_peer_told(device);
    if (told->verdict == LAB_CLAIM_YES)
        add_sentence(text, told, arena);
    if (last >= 0 && told == &device->claim) /* else the class says it */
        add_sentence(text, &device->rows[last].claim, arena);
    const struct lab_difference *other = &device->difference;
    if (*other->differs || *other->symptoms)
        lab_str_printf(text, " It also differs in: %s%s%s.", other->differs,
                       *other->differs && *other->symptoms ? ", " : "", other->symptoms);
}

/* Whether devices ran from NUMA nodes at several distances, which are compared one by one. */
static bool has_distances(const struct lab_peers *peers) {
    for (int s = 1; s < peers->setup_count; s++)
        if (peers->setups[s].distance != peers->setups[0].distance)
            return true;
    return false;
}

/* NULL = nothing was compared. */
static const char *make_answer(const struct lab_peers *peers, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    struct lab_words_singles singles = {0};
    double bound = 0;
    int compared = 0, same = 0, fewest = 0;
    const struct lab_peer *most = NULL; /* of those that are inconclusive */
    for (int d = 0; d < peers->device_count; d++) {
        const struct lab_claim *claim = &peers->devices[d].claim;
        compared += claim->verdict != LAB_CLAIM_NOT_TESTED;
        same += claim->verdict == LAB_CLAIM_NO;
        fewest = claim->n > 0 && (fewest == 0 || claim->n < fewest) ? claim->n : fewest;
        bound = fmax(bound, claim->bound); /* fmax passes NaN over */
        for (int i = 0; i < peers->devices[d].row_count; i++)
            lab_words_add_single(&singles, &peers->devices[d].rows[i].claim);
        if (claim->verdict == LAB_CLAIM_INCONCLUSIVE &&
            (!most || fabs(claim->effect) > fabs(most->claim.effect)))
            most = &peers->devices[d];
    }
    if (compared == 0)
        return NULL;
    for (int pass = 0; pass < 2 && !text.length; pass++) /* slow ones; without any, others */
        for (int d = 0; d < peers->device_count; d++)
            if (pass ? lab_peer_effect(&peers->devices[d]) != 0 : is_slow(&peers->devices[d]))
                add_device(&text, &peers->devices[d], arena);
    if (!text.length && same == compared)
        lab_str_printf(&text,
                       "No difference%s%s in mean throughput between %d devices "
                       "and their peers%s (%d runs each).",
                       lab_claim_larger(bound, arena),
                       lab_words_singles(bound, &singles,
                                         lab_study_has_phases(peers->study) ? "kernel" : "model",
                                         arena),
                       compared, has_distances(peers) ? " at the same NUMA distance" : "", fewest);
    else if (!text.length && most)
        lab_str_printf(&text,
                       "Inconclusive for %d of %d devices: %s differs most from its peers, by %s "
                       "(%d run%s each).",
                       compared - same, compared, most->title,
                       lab_claim_effect(&most->claim, arena), fewest, fewest == 1 ? "" : "s");
    return lab_arena_strdup(arena, text.text);
}

/* --- tables --- */

struct figures { /* of a model of hardware */
    int devices, slow;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, devices, "devices", NULL, LAB_UNIT_COUNT, "Devices"),
    LAB_FIELD(struct figures, slow, "slow_devices", NULL, LAB_UNIT_COUNT, "Slow"),
};

#define FIELD(member, key, title, unit, ...)                                                       \
    LAB_FIELD(struct lab_peer, member, key, title, unit, .optional = true, __VA_ARGS__)
static const struct lab_field device_fields[] = {
    FIELD(title, "device", "Device", LAB_UNIT_TEXT),
    FIELD(claim, "change", "Throughput", LAB_UNIT_CHANGE),
    FIELD(classes[LAB_PEER_COPYING], "transfer_bound", "Transfer-bound", LAB_UNIT_CHANGE),
    FIELD(classes[LAB_PEER_COMPUTING], "compute_bound", "Compute-bound", LAB_UNIT_CHANGE),
    FIELD(condition.numa_node, "numa_node", "Node", LAB_UNIT_COUNT),
    FIELD(condition.sm_clock_mhz, "sm_clock_mhz", "SM MHz", LAB_UNIT_COUNT),
    FIELD(condition.temperature_c, "temperature_c", "Temp.", LAB_UNIT_CELSIUS),
    FIELD(condition.power_w, "power_w", "Power", LAB_UNIT_WATTS),
    FIELD(condition.power_limit_w, "power_limit_w", "Limit", LAB_UNIT_WATTS),
    FIELD(condition.pcie_generation, "pcie_generation", "PCIe gen", LAB_UNIT_COUNT),
    FIELD(condition.pcie_width, "pcie_width", "Lanes", LAB_UNIT_COUNT),
    FIELD(condition.link_gb_s, "link_gb_per_s", "Link GB/s", LAB_UNIT_NUMBER, .yields = 1),
    FIELD(condition.throttled_s, "throttled_s", "Throttled", LAB_UNIT_DURATION, .yields = 1),
    FIELD(condition.ecc_errors, "ecc_errors", "ECC errors", LAB_UNIT_COUNT, .yields = 1),
    FIELD(condition.xids, "xids", "Xids", LAB_UNIT_COUNT, .yields = 2),
    FIELD(condition.runs, "runs", "All runs", LAB_UNIT_COUNT, .yields = 2),
    FIELD(difference.differs, "differs", NULL, LAB_UNIT_TEXT),
    FIELD(difference.symptoms, "symptoms", NULL, LAB_UNIT_TEXT),
    FIELD(difference.alike, "alike", NULL, LAB_UNIT_TEXT),
    FIELD(difference.brief, "brief", NULL, LAB_UNIT_TEXT),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct lab_peer_model, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_peer_model, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_peer_model, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_peer_model, claim, "change", "Compared with peers", LAB_UNIT_CHANGE),
};

static bool has_classes(const struct lab_peers *peers) {
    for (int d = 0; d < peers->device_count; d++)
        if (peers->devices[d].classes[0].verdict != LAB_CLAIM_NOT_TESTED)
            return true;
    return false;
}

/* Those of a table: without columns of classes of models where none was compared by them. */
static struct lab_rows device_rows(const struct lab_peers *peers, struct lab_arena *arena) {
    struct lab_rows rows = LAB_ROWS(device_fields, peers->devices, peers->device_count);
    struct lab_field *fields = NULL;
    int count = 0;
    bool any = has_classes(peers);
    for (int f = 0; f < LAB_COUNT_OF(device_fields) && !any; f++)
        if (!strstr(device_fields[f].column.key, "_bound"))
            LAB_ADD(fields, count, arena) = device_fields[f];
    if (!any) {
        rows.fields = fields;
        rows.field_count = count;
    }
    return rows;
}

static void describe(struct lab_peers *peers, struct lab_arena *arena) {
    for (int d = 0; d < peers->device_count; d++)
        peers->devices[d].condition = lab_condition_of(peers->study, peers->devices[d].name);
    for (int d = 0; d < peers->device_count; d++) {
        const struct lab_condition **others = NULL;
        int count = 0;
        for (int i = 0; i < peers->device_count; i++)
            if (lab_str_equal(peers->devices[i].hardware, peers->devices[d].hardware) &&
                !peers->devices[i].odd)
                LAB_ADD(others, count, arena) = &peers->devices[i].condition;
        peers->devices[d].difference =
            lab_condition_compare(&peers->devices[d].condition, others, count, arena);
    }
}

static void add_chart(struct lab_analysis_result *result, const struct lab_peers *peers,
                      const char *suffix, struct lab_arena *arena) {
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = lab_arena_printf(arena, "peers%s", suffix),
                           .title = "Throughput of each device compared with its peers",
                           .intervals = "95% intervals over runs",
                           .simulated = peers->study->simulated},
        arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(""), lab_axis("Change of throughput [%]"), arena);
    struct lab_rows rows = LAB_ROWS(device_fields, peers->devices, peers->device_count);
    static const char *const keys[] = {"transfer_bound", "compute_bound"};
    static const char *const titles[] = {"transfer-bound models", "compute-bound models"};
    struct lab_chart_series *series =
        lab_rows_add_series(panel, &rows, "device", "change", NULL, LAB_CHART_POINTS, arena);
    if (!series || !has_classes(peers))
        return;
    series->title = "all models";
    for (int c = 0; c < LAB_PEER_CLASSES; c++) {
        series =
            lab_rows_add_series(panel, &rows, "device", keys[c], NULL, LAB_CHART_POINTS, arena);
        if (series)
            series->title = titles[c];
    }
}

/* Whom the others are not compared with. */
static void note_odd(const struct lab_peers *peers, const char *const **notes,
                     struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int d = 0; d < peers->device_count; d++)
        if (peers->devices[d].odd)
            LAB_ADD(names, count, arena) = peers->devices[d].title;
    if (count > 0)
        lab_analysis_note(notes, arena,
                          "%s differ%s and %s no reference for the others: those are compared with "
                          "the rest.",
                          lab_words_devices(names, count, arena), count > 1 ? "" : "s",
                          count > 1 ? "are" : "is");
}

static void note_untested(const struct lab_peers *peers, const char *const **notes,
                          struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int d = 0; d < peers->device_count; d++)
        if (peers->devices[d].models == 0)
            LAB_ADD(names, count, arena) = peers->devices[d].title;
    if (count == 0 || count == peers->device_count)
        return;
    LAB_ADD(names, count, arena) = NULL;
    LAB_AUTO(str, text);
    lab_str_add_list(&text, names, "and");
    lab_analysis_note(notes, arena,
                      "%s: not tested, fewer than 2 peers at the same NUMA distance. "
                      "experiment.hardware.numa_nodes=all tests them.",
                      text.text);
}

static void add_part(struct lab_analysis_result *result, const struct lab_peers *peers,
                     const char *prefix, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%s%s", prefix, peers->study->name), arena);
    const char *hardware = peers->devices[0].hardware;
    struct figures figures = {.devices = peers->device_count};
    struct lab_peer_model *rows = NULL;
    int count = 0;
    for (int d = 0; d < peers->device_count; d++) {
        const struct lab_peer *device = &peers->devices[d];
        lab_rows_add_claims(result, &LAB_ROWS(model_fields, device->rows, device->row_count),
                            arena);
        figures.slow += is_slow(device);
        for (int i = 0; i < device->row_count && device->odd; i++)
            LAB_ADD(rows, count, arena) = device->rows[i];
    }
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    note_untested(peers, &part->notes, arena);
    note_odd(peers, &part->notes, arena);
    part->about =
        lab_arena_printf(arena, "%d × %s", peers->device_count, *hardware ? hardware : "device");
    struct lab_rows devices = device_rows(peers, arena);
    lab_analysis_hide_columns(lab_rows_add_table(part, "devices",
                                                 "Throughput compared with peers, and conditions",
                                                 &devices, arena),
                              arena);
    lab_rows_add_table(part, "models", "By model, of devices that differ",
                       &LAB_ROWS(model_fields, rows, count), arena);
}

static const char *add_study(struct lab_analysis_result *result,
                             const struct lab_analysis_input *input, int number,
                             struct lab_arena *arena) {
    const struct lab_study_table *study = &input->studies[number];
    const char *prefix = lab_analysis_prefix(input, study, arena);
    struct lab_peers peers = lab_peers_make(study, arena);
    describe(&peers, arena);
    for (int d = 0; d < peers.device_count; d++)
        if (peers.devices[d].models > 0)
            lab_analysis_add_claim(result, &peers.devices[d].claim, arena);
    for (int d = 0; d < peers.device_count; d++)
        for (int c = 0; c < LAB_PEER_CLASSES; c++)
            if (peers.devices[d].classes[c].verdict != LAB_CLAIM_NOT_TESTED)
                lab_analysis_add_claim(result, &peers.devices[d].classes[c], arena);
    if (peers.device_count > 0)
        add_part(result, &peers, prefix, arena);
    lab_study_add_notes(study, prefix, &result->notes, arena);
    if (peers.device_count > LAB_PEERS_LEAST)
        add_chart(result, &peers, lab_analysis_suffix(number, arena), arena);
    return make_answer(&peers, arena);
}

#define UNTESTED                                                                                   \
    "this needs 3 devices of one model, each with the same workload and kernel configuration."

static int peers_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                     struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    const char *answer = "";
    for (int i = 0; i < input->study_count; i++) {
        const char *own = add_study(result, input, i, arena);
        if (!own && input->study_count == 1)
            result->untested = UNTESTED;
        own = own ? own : lab_analysis_untested(UNTESTED, arena);
        answer = lab_arena_printf(arena, "%s%s%s%s", answer, *answer ? " " : "",
                                  lab_analysis_prefix(input, &input->studies[i], arena), own);
    }
    result->answer = answer;
    return 0;
}

/* --- the analysis --- */

#define INTEREST 45

/* Whether three devices, one at a time, ran the same. */
static int peers_interest(const struct lab_study_table *study) {
    if (lab_study_trains(study))
        return 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *first = &study->runs[i];
        const char *seen[LAB_PEERS_LEAST + 1];
        int count = 0;
        for (int k = i; k < study->run_count && first->rank_count == 1; k++) {
            const struct lab_study_run *run = &study->runs[k];
            if (run->rank_count == 1 && lab_str_equal(run->model, first->model) &&
                lab_list_find_text(seen, count, run->ranks[0].device) < 0)
                seen[count++] = run->ranks[0].device;
            if (count > LAB_PEERS_LEAST)
                return INTEREST;
        }
    }
    return 0;
}

const struct lab_analysis lab_analysis_peers = {
    .name = "peers",
    .summary = "which device is slower than its peers, and what else differs about it",
    .description =
        "Compares each device with the mean of the other devices of its model, on the same "
        "workloads, from NUMA nodes at the same distance. Intervals are over runs, at 95%; "
        "verdicts hold for all devices together. A device that differs is not used as a reference "
        "for the others. Clocks, temperature, power, PCIe link, throttling and errors are those of "
        "its "
        "own runs.\n\n"
        "It needs three devices of one model; one run a point gives values and no verdict.",
    .kinds =
        (const struct lab_analysis_kind[]){
            {"peers.device"}, {"peers.class", LAB_KIND_MODELS}, {"peers.model"}, {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_SAMPLES,
    .interest = peers_interest,
    LAB_PARTS_OF("studies", figure_fields),
    .run = peers_run,
};
