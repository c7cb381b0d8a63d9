/* peers.c: each device against the mean of its peers, block by block. */
#include "analysis/peers/peers.h"
#include "analysis/analysis_words.h"

#include "base/list.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>

/* --- who is there --- */

static const char *hardware_of(const struct lab_study_table *study, int gpu) {
    const struct lab_pci *pci = lab_machine_gpu(study->machine, gpu);
    return pci ? pci->name : "";
}

static struct lab_peer *find_device(struct lab_peers *peers, const struct lab_study_rank *rank,
                                    struct lab_arena *arena) {
    int found = LAB_FIND(peers->devices, peers->device_count, name, rank->device);
    if (found >= 0)
        return &peers->devices[found];
    LAB_ADD(peers->devices, peers->device_count, arena) =
        (struct lab_peer){.name = rank->device,
                          .title = lab_study_device_title(rank->device, arena),
                          .hardware = hardware_of(peers->study, rank->gpu)};
    return &peers->devices[peers->device_count - 1];
}

/* That the kernel ran with, where it can be tuned; else NULL. */
static const char *configuration_of(const struct lab_study_run *run) {
    const struct lab_result *result = run->result;
    return result->rank_count > 0 ? result->ranks[0].configuration : result->configuration;
}

static int find_setup(struct lab_peers *peers, const struct lab_study_point *point,
                      struct lab_arena *arena) {
    const char *model = lab_study_point_model(point, arena);
    const char *configuration = configuration_of(point->runs[0]);
    int distance = point->runs[0]->ranks[0].distance;
    for (int i = 0; i < peers->setup_count; i++)
        if (peers->setups[i].distance == distance &&
            lab_str_equal(peers->setups[i].configuration, configuration) &&
            lab_str_equal(peers->setups[i].model, model))
            return i;
    LAB_ADD(peers->setups, peers->setup_count, arena) = (struct lab_peer_setup){
        model,    configuration,       point->runs[0]->model, lab_study_complexity(point->runs[0]),
        distance, LAB_STAGE_BOUND_OPEN};
    return peers->setup_count - 1;
}

/* A device alone, with a throughput: one that got nothing done has none to compare. What a
 * neighbour on purpose or another phase's choice slows says nothing of the device, nor does what
 * tuning chose otherwise from run to run. */
static bool is_comparable(const struct lab_study_point *point) {
    const struct lab_result *result = point->runs[0]->result;
    if (result->rank_count > 0 && (result->ranks[0].disturbed || result->ranks[0].regret.count))
        return false;
    for (int i = 1; i < point->count; i++)
        if (!lab_str_equal(configuration_of(point->runs[i]), configuration_of(point->runs[0])))
            return false;
    for (int i = 0; i < point->count && point->runs[0]->rank_count == 1; i++)
        if (point->runs[i]->rate > 0)
            return true;
    return false;
}

/* Of all devices and NUMA nodes together: of a model one says nothing of the other. */
static void find_bounds(struct lab_peers *peers, struct lab_arena *arena) {
    for (int s = 0; s < peers->setup_count; s++) {
        const struct lab_study_point **points = NULL;
        int count = 0;
        for (int k = 0; k < peers->setup_count; k++)
            for (int d = 0; d < peers->device_count; d++)
                for (int i = 0; i < peers->devices[d].cells[k].count; i++)
                    if (lab_str_equal(peers->setups[k].model, peers->setups[s].model))
                        LAB_ADD(points, count, arena) = peers->devices[d].cells[k].points[i];
        bool known = s > 0 && lab_str_equal(peers->setups[s].model, peers->setups[s - 1].model);
        peers->setups[s].bound =
            known ? peers->setups[s - 1].bound : lab_stage_bound_of(points, count, arena);
    }
}

static struct lab_peers find_peers(const struct lab_study_table *study, struct lab_arena *arena) {
    struct lab_peers peers = {.study = study};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points);
    for (int i = 0; i < count; i++)
        if (is_comparable(&points[i])) {
            find_device(&peers, &points[i].runs[0]->ranks[0], arena);
            find_setup(&peers, &points[i], arena);
        }
    LAB_SORT(peers.devices, peers.device_count, LAB_BY(peers.devices, name));
    LAB_SORT(peers.setups, peers.setup_count, LAB_BY(peers.setups, complexity),
             LAB_BY(peers.setups, model), LAB_BY(peers.setups, distance));
    for (int d = 0; d < peers.device_count; d++)
        peers.devices[d].cells =
            lab_arena_alloc(arena, (size_t)peers.setup_count, sizeof(struct lab_peer_cell));
    for (int i = 0; i < count; i++)
        if (is_comparable(&points[i])) {
            struct lab_peer *device = find_device(&peers, &points[i].runs[0]->ranks[0], arena);
            assert(device->cells); /* all devices were found above */
            struct lab_peer_cell *cell = &device->cells[find_setup(&peers, &points[i], arena)];
            LAB_ADD(cell->points, cell->count, arena) = &points[i];
        }
    find_bounds(&peers, arena);
    return peers;
}

/* --- claims --- */

static bool is_peer(const struct lab_peers *peers, int device, int other, int setup) {
    return other != device && peers->devices[other].cells[setup].count > 0 &&
           lab_str_equal(peers->devices[other].hardware, peers->devices[device].hardware);
}

/* Peers that are a reference, where there are enough of them, odd ones included; else 0. */
static int count_peers(const struct lab_peers *peers, int device, int setup) {
    int all = 0, count = 0;
    for (int i = 0; i < peers->device_count; i++)
        if (is_peer(peers, device, i, setup)) {
            all++;
            count += !peers->devices[i].odd;
        }
    return all >= LAB_PEERS_LEAST && peers->devices[device].cells[setup].count > 0 ? count : 0;
}

static void add_cell(struct lab_contrast *contrast, const struct lab_peer_cell *cell,
                     double weight) {
    for (int i = 0; i < cell->count; i++)
        lab_contrast_add(contrast, cell->points[i], weight / cell->count);
}

static void add_setup(const struct lab_peers *peers, int device, int setup, double weight,
                      struct lab_contrast *contrast) {
    int count = count_peers(peers, device, setup);
    add_cell(contrast, &peers->devices[device].cells[setup], weight);
    for (int i = 0; i < peers->device_count; i++)
        if (is_peer(peers, device, i, setup) && !peers->devices[i].odd)
            add_cell(contrast, &peers->devices[i].cells[setup], -weight / count);
}

struct chosen { /* setups; NULL and 0 = all */
    const char *model, *whole;
    enum lab_stage_bound bound;
};

static bool is_chosen(const struct lab_peer_setup *setup, const struct chosen *chosen) {
    return (!chosen->model || lab_str_equal(setup->model, chosen->model)) &&
           (!chosen->whole || lab_str_equal(setup->whole, chosen->whole)) &&
           (!chosen->bound || setup->bound == chosen->bound);
}

static struct lab_claim compare(const struct lab_peers *peers, int device, struct chosen chosen,
                                struct lab_arena *arena) {
    struct lab_contrast contrast = {
        .arena = arena, .value = peers->value, .context = peers->context};
    int setups = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int s = 0; s < peers->setup_count; s++) {
            if (!is_chosen(&peers->setups[s], &chosen) || count_peers(peers, device, s) == 0)
                continue;
            if (pass == 0)
                setups++;
            else
                add_setup(peers, device, s, 1.0 / setups, &contrast);
        }
    struct lab_claim claim = lab_claim_estimate(&contrast, LAB_STUDY_RATE);
    claim.quantity = peers->quantity;
    return claim;
}

static int count_models(const struct lab_peers *peers, int device, enum lab_stage_bound bound) {
    int models = 0;
    const char *last = NULL; /* setups are in the order of models */
    for (int s = 0; s < peers->setup_count; s++)
        if (is_chosen(&peers->setups[s], &(struct chosen){.bound = bound}) &&
            count_peers(peers, device, s) > 0 && !lab_str_equal(peers->setups[s].model, last)) {
            last = peers->setups[s].model;
            models++;
        }
    return models;
}

/* ", -1.1 to +10.2% by model" behind a mean of models that disagree; "" = they don't. */
static const char *disagreement(const struct lab_peer *device, struct lab_arena *arena) {
    double least = 0, most = 0;
    for (int i = 0; i < device->row_count; i++) {
        least = fmin(least, device->rows[i].claim.effect); /* fmin passes NaN over */
        most = fmax(most, device->rows[i].claim.effect);
    }
    return fmin(-least, most) > LAB_CLAIM_NEGLIGIBLE
               ? lab_arena_printf(arena, ", %s by model", lab_words_range(least, most, arena))
               : "";
}

static void compare_classes(const struct lab_peers *peers, int d, struct lab_arena *arena) {
    static const enum lab_stage_bound bounds[] = {LAB_STAGE_BOUND_TRANSFER,
                                                  LAB_STAGE_BOUND_COMPUTE};
    static const char *const words[] = {"transfer-bound ", "compute-bound "};
    struct lab_peer *device = &peers->devices[d];
    bool both = count_models(peers, d, bounds[0]) > 0 && count_models(peers, d, bounds[1]) > 0;
    for (int c = 0; c < LAB_PEER_CLASSES; c++) {
        int models = count_models(peers, d, bounds[c]);
        device->classes[c] = lab_claim_none;
        if (!both || peers->value) /* of another value than throughput */
            continue;
        device->classes[c] =
            lab_claim_named(compare(peers, d, (struct chosen){.bound = bounds[c]}, arena),
                            "peers.class", device->title, "its peers",
                            lab_arena_printf(arena, "%s on %s", peers->quantity,
                                             lab_study_counted(peers->study, models, device->models,
                                                               words[c], arena)));
    }
}

static void compare_device(struct lab_peers *peers, int d, struct lab_arena *arena) {
    struct lab_peer *device = &peers->devices[d];
    const char *last = NULL;
    device->row_count = 0;
    device->claim = compare(peers, d, (struct chosen){0}, arena);
    device->claim.kind = "peers.device";
    device->claim.subject = device->title;
    compare_classes(peers, d, arena);
    for (int s = 0; s < peers->setup_count && device->models > 1; s++) {
        const struct lab_peer_setup *setup = &peers->setups[s];
        if (count_peers(peers, d, s) == 0 || lab_str_equal(setup->model, last))
            continue;
        last = setup->model;
        struct lab_peer_model row = {
            device->title, setup->model, setup->complexity / 1e9,
            compare(peers, d, (struct chosen){.model = setup->model}, arena)};
        row.claim.kind = "peers.model";
        row.claim.subject = lab_arena_printf(arena, "%s, %s", row.device, row.model);
        row.claim.reference = "its peers";
        device->rows[device->row_count++] = row;
    }
    device->claim.reference =
        device->models > 1
            ? lab_arena_printf(arena, "its peers, mean of %s%s",
                               lab_study_count_words(peers->study, device->models, arena),
                               disagreement(device, arena))
            : "its peers";
}

static void adjust(struct lab_peers *peers, int from, int until, bool odd,
                   struct lab_arena *arena) {
    struct lab_claim **claims = NULL;
    int count = 0;
    for (int d = from; d < until; d++) {
        struct lab_peer *device = &peers->devices[d];
        if (device->odd != odd)
            continue;
        LAB_ADD(claims, count, arena) = &device->claim;
        for (int c = 0; c < LAB_PEER_CLASSES; c++)
            if (device->classes[c].verdict != LAB_CLAIM_NOT_TESTED)
                LAB_ADD(claims, count, arena) = &device->classes[c];
        for (int i = 0; i < device->row_count; i++)
            LAB_ADD(claims, count, arena) = &device->rows[i].claim;
    }
    lab_claim_adjust(claims, count);
}

/* Verdicts of all devices hold together, over models and by model: a slow GPU shows in what
 * computes, a slow link in what copies. One that was found among all makes it no easier to find
 * others: they hold by themselves. */
static void compare_devices(struct lab_peers *peers, struct lab_arena *arena) {
    for (int d = 0; d < peers->device_count; d++)
        compare_device(peers, d, arena);
    adjust(peers, 0, peers->device_count, false, arena);
    for (int d = 0; d < peers->device_count; d++)
        adjust(peers, d, d + 1, true, arena);
}

struct lab_claim lab_peers_compare(const struct lab_peers *peers, int device, const char *whole,
                                   struct lab_arena *arena) {
    return lab_claim_named(compare(peers, device, (struct chosen){.whole = whole}, arena),
                           "peers.model", peers->devices[device].title, "its peers", "throughput");
}

const struct lab_claim *lab_peer_told(const struct lab_peer *device) {
    const struct lab_claim *const classes[] = {&device->classes[0], &device->classes[1]};
    return lab_words_told(&device->claim, classes, LAB_PEER_CLASSES);
}

double lab_peer_effect(const struct lab_peer *device) {
    const struct lab_claim *told = lab_peer_told(device);
    double most = told->verdict == LAB_CLAIM_YES ? told->effect : 0;
    for (int i = 0; i < device->row_count; i++)
        if (device->rows[i].claim.verdict == LAB_CLAIM_YES &&
            fabs(device->rows[i].claim.effect) > fabs(most))
            most = device->rows[i].claim.effect;
    return most;
}

/* Where one half of the devices is slower, both halves differ equally: the slow one is odd. */
#define SLOW_WEIGHT 1.2

/* The one that differs most for certain, and leaves enough others; -1 = none. */
static int find_odd(const struct lab_peers *peers) {
    int odd = -1, rest = 0;
    double most = 0;
    for (int d = 0; d < peers->device_count; d++) {
        double effect = log1p(lab_peer_effect(&peers->devices[d]));
        double size = effect < 0 ? -SLOW_WEIGHT * effect : effect;
        rest += !peers->devices[d].odd;
        if (!peers->devices[d].odd && size > most) {
            odd = d;
            most = size;
        }
    }
    return rest > LAB_PEERS_LEAST ? odd : -1;
}

static void make_claims(struct lab_peers *peers, struct lab_arena *arena) {
    for (int d = 0; d < peers->device_count; d++) {
        peers->devices[d].models = count_models(peers, d, LAB_STAGE_BOUND_OPEN);
        peers->devices[d].rows =
            lab_arena_alloc(arena, (size_t)peers->setup_count + 1, sizeof *peers->devices[d].rows);
    }
    compare_devices(peers, arena);
    for (int odd; (odd = find_odd(peers)) >= 0;) {
        peers->devices[odd].odd = true;
        compare_devices(peers, arena);
    }
}

struct lab_peers lab_peers_make(const struct lab_study_table *study, struct lab_arena *arena) {
    return lab_peers_make_of(study, "throughput", NULL, NULL, arena);
}

struct lab_peers lab_peers_make_of(const struct lab_study_table *study, const char *quantity,
                                   double (*value)(const struct lab_study_run *run,
                                                   const void *context),
                                   const void *context, struct lab_arena *arena) {
    struct lab_peers peers = find_peers(study, arena);
    peers.quantity = quantity;
    peers.value = value;
    peers.context = context;
    make_claims(&peers, arena);
    return peers;
}
