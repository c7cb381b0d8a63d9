/*
 * peers.c: `gpulab analyze peers`: whether a device is slower than others of the same model, and
 * what else differs about it.
 *
 * A device is compared with the mean of its peers, each run of the same workload from an equally
 * distant NUMA node. A device that differs for certain is no reference for the others: then the
 * comparison is made again without it, the largest difference first.
 */
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
#include "analysis/peers/condition.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_LEAST 2 /* to compare a device with; fewer don't show which one is slow */

struct cell { /* points of a device under one condition */
    const struct lab_study_point **points;
    int count;
};

struct model_row {
    const char *device, *model;
    double gflop;
    struct lab_claim claim;
};

struct device {
    const char *name, *title, *hardware;
    struct cell *cells; /* one for each setup */
    bool odd;           /* it differs: no reference for others */
    int models;         /* that it was compared on */
    struct lab_claim claim;
    struct model_row *rows; /* by model, where there are several */
    int row_count;
    struct lab_condition condition;
    const char *differs;
};

struct setup { /* what has to be alike */
    const char *model;
    double complexity;
    int distance; /* of the NUMA node; 0 = unknown */
};

struct peers {
    const struct lab_study_table *study;
    struct device *devices;
    int device_count;
    struct setup *setups;
    int setup_count;
};

/* --- who is there --- */

static const char *hardware_of(const struct lab_study_table *study, int gpu) {
    const struct lab_machine *machine = study->machine;
    int number = 0;
    for (int i = 0; machine && i < machine->pci_count; i++)
        if (lab_pci_is_gpu(&machine->pci[i]) && number++ == gpu)
            return machine->pci[i].name;
    return "";
}

static struct device *find_device(struct peers *peers, const struct lab_study_rank *rank,
                                  struct lab_arena *arena) {
    for (int i = 0; i < peers->device_count; i++)
        if (lab_str_equal(peers->devices[i].name, rank->device))
            return &peers->devices[i];
    LAB_ADD(peers->devices, peers->device_count, arena) =
        (struct device){.name = rank->device,
                        .title = lab_study_device_title(rank->device, arena),
                        .hardware = hardware_of(peers->study, rank->gpu)};
    return &peers->devices[peers->device_count - 1];
}

static int find_setup(struct peers *peers, const struct lab_study_point *point,
                      struct lab_arena *arena) {
    const char *model = lab_study_point_model(point, arena);
    int distance = point->runs[0]->ranks[0].distance;
    for (int i = 0; i < peers->setup_count; i++)
        if (peers->setups[i].distance == distance && lab_str_equal(peers->setups[i].model, model))
            return i;
    LAB_ADD(peers->setups, peers->setup_count, arena) =
        (struct setup){model, lab_study_complexity(point->runs[0]), distance};
    return peers->setup_count - 1;
}

static int by_complexity(const void *a, const void *b) {
    const struct setup *x = a, *y = b;
    int order = lab_study_order(x->complexity, x->model, y->complexity, y->model);
    return order ? order : x->distance - y->distance;
}

static int by_title(const void *a, const void *b) {
    const struct device *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static struct peers find_peers(const struct lab_study_table *study, struct lab_arena *arena) {
    struct peers peers = {.study = study};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    for (int i = 0; i < count; i++)
        if (points[i].runs[0]->rank_count == 1) {
            find_device(&peers, &points[i].runs[0]->ranks[0], arena);
            find_setup(&peers, &points[i], arena);
        }
    if (peers.device_count > 1)
        qsort(peers.devices, (size_t)peers.device_count, sizeof *peers.devices, by_title);
    if (peers.setup_count > 1)
        qsort(peers.setups, (size_t)peers.setup_count, sizeof *peers.setups, by_complexity);
    for (int d = 0; d < peers.device_count; d++)
        peers.devices[d].cells =
            lab_arena_alloc(arena, (size_t)peers.setup_count, sizeof(struct cell));
    for (int i = 0; i < count; i++)
        if (points[i].runs[0]->rank_count == 1) {
            struct device *device = find_device(&peers, &points[i].runs[0]->ranks[0], arena);
            struct cell *cell = &device->cells[find_setup(&peers, &points[i], arena)];
            LAB_ADD(cell->points, cell->count, arena) = &points[i];
        }
    return peers;
}

/* --- claims --- */

static bool is_peer(const struct peers *peers, int device, int other, int setup) {
    return other != device && peers->devices[other].cells[setup].count > 0 &&
           lab_str_equal(peers->devices[other].hardware, peers->devices[device].hardware);
}

/* Peers that are a reference, where there are enough of them, odd ones included; else 0. */
static int count_peers(const struct peers *peers, int device, int setup) {
    int all = 0, count = 0;
    for (int i = 0; i < peers->device_count; i++)
        if (is_peer(peers, device, i, setup)) {
            all++;
            count += !peers->devices[i].odd;
        }
    return all >= PEERS_LEAST && peers->devices[device].cells[setup].count > 0 ? count : 0;
}

static void add_cell(struct lab_contrast *contrast, const struct cell *cell, double weight) {
    for (int i = 0; i < cell->count; i++)
        lab_contrast_add(contrast, cell->points[i], weight / cell->count);
}

static void add_setup(const struct peers *peers, int device, int setup, double weight,
                      struct lab_contrast *contrast) {
    int count = count_peers(peers, device, setup);
    add_cell(contrast, &peers->devices[device].cells[setup], weight);
    for (int i = 0; i < peers->device_count; i++)
        if (is_peer(peers, device, i, setup) && !peers->devices[i].odd)
            add_cell(contrast, &peers->devices[i].cells[setup], -weight / count);
}

/* Over all setups of a model, or of all (NULL). */
static struct lab_claim compare(const struct peers *peers, int device, const char *model,
                                struct lab_arena *arena) {
    struct lab_contrast contrast = {.arena = arena};
    int setups = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < peers->setup_count; s++) {
            if ((model && !lab_str_equal(peers->setups[s].model, model)) ||
                count_peers(peers, device, s) == 0)
                continue;
            if (pass == 0)
                setups++;
            else
                add_setup(peers, device, s, 1.0 / setups, &contrast);
        }
    struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
    claim.quantity = "throughput";
    claim.simulated = peers->study->simulated;
    return claim;
}

static int count_models(const struct peers *peers, int device) {
    int models = 0;
    const char *last = NULL; /* setups are in the order of models */
    for (int s = 0; s < peers->setup_count; s++)
        if (count_peers(peers, device, s) > 0 && !lab_str_equal(peers->setups[s].model, last)) {
            last = peers->setups[s].model;
            models++;
        }
    return models;
}

static void compare_device(struct peers *peers, int d, struct lab_arena *arena) {
    struct device *device = &peers->devices[d];
    const char *last = NULL;
    device->row_count = 0;
    device->claim = compare(peers, d, NULL, arena);
    device->claim.kind = "peers.device";
    device->claim.subject = device->title;
    device->claim.reference =
        device->models > 1 ? lab_arena_printf(arena, "its peers, mean of %d models", device->models)
                           : "its peers";
    for (int s = 0; s < peers->setup_count && device->models > 1; s++) {
        const struct setup *setup = &peers->setups[s];
        if (count_peers(peers, d, s) == 0 || lab_str_equal(setup->model, last))
            continue;
        last = setup->model;
        struct model_row row = {device->title, setup->model, setup->complexity / 1e9,
                                compare(peers, d, setup->model, arena)};
        row.claim.kind = "peers.model";
        row.claim.subject = lab_arena_printf(arena, "%s, %s", row.device, row.model);
        row.claim.reference = "its peers";
        device->rows[device->row_count++] = row;
    }
}

/* Verdicts of all devices hold together, over models and by model: a slow GPU shows in what
 * computes, a slow link in what copies. */
static void compare_devices(struct peers *peers, struct lab_arena *arena) {
    struct lab_claim **claims = NULL;
    int count = 0;
    for (int d = 0; d < peers->device_count; d++) {
        compare_device(peers, d, arena);
        LAB_ADD(claims, count, arena) = &peers->devices[d].claim;
        for (int i = 0; i < peers->devices[d].row_count; i++)
            LAB_ADD(claims, count, arena) = &peers->devices[d].rows[i].claim;
    }
    lab_claim_adjust(claims, count);
}

/* The largest effect of a device that is certain; 0 = none is. */
static double certain_effect(const struct device *device) {
    double most = device->claim.verdict == LAB_CLAIM_YES ? device->claim.effect : 0;
    for (int i = 0; i < device->row_count; i++)
        if (device->rows[i].claim.verdict == LAB_CLAIM_YES &&
            fabs(device->rows[i].claim.effect) > fabs(most))
            most = device->rows[i].claim.effect;
    return most;
}

/* The one that differs most for certain, and leaves enough others; -1 = none. */
static int find_odd(const struct peers *peers) {
    int odd = -1, rest = 0;
    double most = 0;
    for (int d = 0; d < peers->device_count; d++) {
        double effect = fabs(certain_effect(&peers->devices[d]));
        rest += !peers->devices[d].odd;
        if (!peers->devices[d].odd && effect > most) {
            odd = d;
            most = effect;
        }
    }
    return rest > PEERS_LEAST ? odd : -1;
}

static void make_claims(struct peers *peers, struct lab_arena *arena) {
    for (int d = 0; d < peers->device_count; d++) {
        peers->devices[d].models = count_models(peers, d);
        peers->devices[d].rows =
            lab_arena_alloc(arena, (size_t)peers->setup_count + 1, sizeof *peers->devices[d].rows);
    }
    compare_devices(peers, arena);
    for (int odd; (odd = find_odd(peers)) >= 0;) {
        peers->devices[odd].odd = true;
        compare_devices(peers, arena);
    }
}

static bool is_slow(const struct device *device) {
    return certain_effect(device) < 0;
}

/* --- words --- */

static void add_sentence(struct lab_str *text, const struct lab_claim *claim,
                         struct lab_arena *arena) {
    lab_str_printf(text, "%s%s.", text->length ? " " : "", lab_claim_sentence(claim, arena));
}

/* All models, then the one with most arithmetic that differs. */
static void add_device(struct lab_str *text, const struct device *device, struct lab_arena *arena) {
    int last = device->row_count - 1;
    while (last >= 0 && device->rows[last].claim.verdict != LAB_CLAIM_YES)
        last--;
    if (device->claim.verdict == LAB_CLAIM_YES)
        add_sentence(text, &device->claim, arena);
    if (last >= 0)
        add_sentence(text, &device->rows[last].claim, arena);
    if (*device->differs)
        lab_str_printf(text, " It also differs in: %s.", device->differs);
}

static const char *make_answer(const struct peers *peers, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    double bound = 0;
    int compared = 0, same = 0, fewest = 0;
    for (int d = 0; d < peers->device_count; d++) {
        const struct lab_claim *claim = &peers->devices[d].claim;
        compared += claim->verdict != LAB_CLAIM_NOT_TESTED;
        same += claim->verdict == LAB_CLAIM_NO;
        fewest = claim->n > 0 && (fewest == 0 || claim->n < fewest) ? claim->n : fewest;
        bound = fmax(bound, claim->bound); /* fmax passes NaN over */
    }
    if (compared == 0)
        return "Not tested: this needs 3 devices of one model, each with the same workload.";
    for (int pass = 0; pass < 2 && !text.length; pass++) /* slow ones; without any, others */
        for (int d = 0; d < peers->device_count; d++)
            if (pass ? certain_effect(&peers->devices[d]) != 0 : is_slow(&peers->devices[d]))
                add_device(&text, &peers->devices[d], arena);
    if (!text.length && same == compared)
        lab_str_printf(&text,
                       "No difference larger than %.1f%% in throughput between %d devices and "
                       "their peers (%d runs each).",
                       ceil(1000 * bound - 1e-9) / 10, compared, fewest);
    else if (!text.length)
        lab_str_printf(&text,
                       "%d of %d devices compared with their peers: inconclusive (%d run%s "
                       "each).",
                       compared - same, compared, fewest, fewest == 1 ? "" : "s");
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
    LAB_FIELD(struct device, member, key, title, unit, .optional = true, __VA_ARGS__)
static const struct lab_field device_fields[] = {
    FIELD(title, "device", "Device", LAB_UNIT_TEXT),
    FIELD(claim, "change", "Throughput", LAB_UNIT_CHANGE),
    FIELD(condition.numa_node, "numa_node", "Node", LAB_UNIT_COUNT),
    FIELD(condition.sm_clock_mhz, "sm_clock_mhz", "SM MHz", LAB_UNIT_COUNT),
    FIELD(condition.temperature_c, "temperature_c", "Temp.", LAB_UNIT_CELSIUS),
    FIELD(condition.power_w, "power_w", "Power", LAB_UNIT_WATTS),
    FIELD(condition.power_limit_w, "power_limit_w", "Limit", LAB_UNIT_WATTS),
    FIELD(condition.pcie_generation, "pcie_generation", "PCIe", LAB_UNIT_COUNT),
    FIELD(condition.pcie_width, "pcie_width", "Lanes", LAB_UNIT_COUNT),
    FIELD(condition.link_gb_s, "link_gb_per_s", "Link GB/s", LAB_UNIT_NUMBER, .yields = 1),
    FIELD(condition.throttled_s, "throttled_s", "Throttled", LAB_UNIT_DURATION, .yields = 1),
    FIELD(condition.ecc_errors, "ecc_errors", "ECC errors", LAB_UNIT_COUNT, .yields = 1),
    FIELD(condition.xids, "xids", "Xids", LAB_UNIT_COUNT, .yields = 2),
    FIELD(condition.runs, "runs", "Runs", LAB_UNIT_COUNT, .yields = 2),
    FIELD(differs, "differs", NULL, LAB_UNIT_TEXT),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct model_row, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct model_row, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct model_row, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER),
    LAB_FIELD(struct model_row, claim, "change", "Compared with peers", LAB_UNIT_CHANGE),
};

static void describe(struct peers *peers, struct lab_arena *arena) {
    for (int d = 0; d < peers->device_count; d++)
        peers->devices[d].condition = lab_condition_of(peers->study, peers->devices[d].name);
    for (int d = 0; d < peers->device_count; d++) {
        const struct lab_condition **others = NULL;
        int count = 0;
        for (int i = 0; i < peers->device_count; i++)
            if (lab_str_equal(peers->devices[i].hardware, peers->devices[d].hardware) &&
                !peers->devices[i].odd)
                LAB_ADD(others, count, arena) = &peers->devices[i].condition;
        peers->devices[d].differs =
            lab_condition_differences(&peers->devices[d].condition, others, count, arena);
    }
}

static void add_chart(struct lab_analysis_result *result, const struct peers *peers,
                      const char *suffix, struct lab_arena *arena) {
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = lab_arena_printf(arena, "peers%s", suffix),
                           .title = "Throughput of each device compared with its peers",
                           .caption = "Whiskers are 95% intervals over runs.",
                           .simulated = peers->study->simulated},
        arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(""), lab_axis("Change of throughput [%]"), arena);
    struct lab_rows rows = LAB_ROWS(device_fields, peers->devices, peers->device_count);
    lab_rows_add_series(panel, &rows, "device", "change", NULL, LAB_CHART_POINTS, arena);
}

static void note_untested(const struct peers *peers, const char *const **notes,
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

static void add_part(struct lab_analysis_result *result, const struct peers *peers,
                     const char *prefix, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(
        result, lab_arena_printf(arena, "%s%s", prefix, peers->study->name), arena);
    const char *hardware = peers->devices[0].hardware;
    struct figures figures = {.devices = peers->device_count};
    struct model_row *rows = NULL;
    int count = 0;
    for (int d = 0; d < peers->device_count; d++) {
        const struct device *device = &peers->devices[d];
        lab_rows_add_claims(result, &LAB_ROWS(model_fields, device->rows, device->row_count),
                            arena);
        figures.slow += is_slow(device);
        for (int i = 0; i < device->row_count && device->odd; i++)
            LAB_ADD(rows, count, arena) = device->rows[i];
    }
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    note_untested(peers, &part->notes, arena);
    part->about =
        lab_arena_printf(arena, "%d × %s", peers->device_count, *hardware ? hardware : "device");
    lab_rows_add_table(part, "devices", "Throughput compared with peers, and conditions",
                       &LAB_ROWS(device_fields, peers->devices, peers->device_count), arena);
    lab_rows_add_table(part, "models", "By model, of devices that differ",
                       &LAB_ROWS(model_fields, rows, count), arena);
}

static const char *add_study(struct lab_analysis_result *result,
                             const struct lab_analysis_input *input, int number,
                             struct lab_arena *arena) {
    const struct lab_study_table *study = &input->studies[number];
    const char *prefix = lab_analysis_prefix(input, study, arena);
    struct peers peers = find_peers(study, arena);
    make_claims(&peers, arena);
    describe(&peers, arena);
    for (int d = 0; d < peers.device_count; d++)
        if (peers.devices[d].models > 0)
            lab_analysis_add_claim(result, &peers.devices[d].claim, arena);
    if (peers.device_count > 0)
        add_part(result, &peers, prefix, arena);
    lab_study_add_notes(study, prefix, &result->notes, arena);
    if (peers.device_count > PEERS_LEAST)
        add_chart(result, &peers, lab_analysis_suffix(number, arena), arena);
    return make_answer(&peers, arena);
}

static int peers_run(const void *config, const struct lab_analysis_input *input,
                     struct lab_arena *arena, struct lab_analysis_result *ret_result,
                     struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT_OF("studies", figure_fields, arena), ret_result, err) <
        0)
        return -1;
    const char *answer = "";
    for (int i = 0; i < input->study_count; i++) {
        const char *own = add_study(ret_result, input, i, arena);
        answer = lab_arena_printf(arena, "%s%s%s%s", answer, *answer ? " " : "",
                                  lab_analysis_prefix(input, &input->studies[i], arena), own);
    }
    ret_result->answer = answer;
    return 0;
}

/* --- the analysis --- */

#define INTEREST 45

/* Whether three devices, one at a time, ran the same. */
static int peers_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study) || lab_study_trains(study))
        return 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *first = &study->runs[i];
        const char *seen[PEERS_LEAST + 1];
        int count = 0;
        for (int k = i; k < study->run_count && first->rank_count == 1; k++) {
            const struct lab_study_run *run = &study->runs[k];
            bool known = run->rank_count != 1 || !lab_str_equal(run->model, first->model);
            for (int s = 0; s < count && !known; s++)
                known = lab_str_equal(seen[s], run->ranks[0].device);
            if (!known)
                seen[count++] = run->ranks[0].device;
            if (count > PEERS_LEAST)
                return INTEREST;
        }
    }
    return 0;
}

static const struct lab_option peers_options[] = {{NULL}};

const struct lab_analysis lab_analysis_peers = {
    .name = "peers",
    .summary = "which device is slower than its peers, and what else differs about it",
    .description =
        "Compares each device with the mean of the other devices of its model, on the same "
        "workloads, from NUMA nodes at the same distance. Intervals are over runs, at 95%; "
        "verdicts hold for all devices together. A device that differs is no reference for the "
        "others. Clocks, temperature, power, PCIe link, throttling and errors are those of its "
        "own runs.\n\n"
        "It needs three devices of one model; one run a point gives values and no verdict.",
    .options = peers_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_SAMPLES,
    .interest = peers_interest,
    .run = peers_run,
};
