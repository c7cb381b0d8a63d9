/* proof_plan.c: a study at random, of one of the kinds that are shipped, in small. */
#include "proof_claims.h"

#include "analysis/analysis_build.h"

#define POINTS_MAX  64
#define ONCE        0.04 /* studies with one run a point: nothing may be claimed of them */
#define REPEATS_MAX 6

struct plan { /* of a study that is being drawn */
    struct proof_random *random;
    const struct proof_drawn_machine *machine;
    struct lab_arena *arena;
    struct proof_drawn_study *study;
    int iterations;
};

static int whole(struct plan *plan, int low, int high) {
    return low + (int)(proof_uniform(plan->random) * (high - low + 1));
}

static int one_of(struct plan *plan, const int *values, int count) {
    return values[whole(plan, 0, count - 1)];
}
#define ONE_OF(plan, ...)                                                                          \
    one_of((plan), (const int[]){__VA_ARGS__}, LAB_COUNT_OF(((const int[]){__VA_ARGS__})))

/* `count` of 0 … below, ascending. */
static void choose(struct plan *plan, int below, int count, int *ret_chosen) {
    int found = 0;
    for (int i = 0; i < below && found < count; i++)
        if (proof_uniform(plan->random) * (below - i) < count - found)
            ret_chosen[found++] = i;
}

static struct proof_drawn_point *add(struct plan *plan, const struct proof_point *ranks,
                                     int count) {
    struct proof_drawn_study *study = plan->study;
    if (study->count == POINTS_MAX)
        return NULL;
    struct proof_drawn_point *point = &study->points[study->count++];
    point->count = count;
    for (int i = 0; i < count; i++) {
        point->ranks[i] = ranks[i];
        point->ranks[i].iterations = plan->iterations;
    }
    return point;
}

/* From pure copying to mostly compute. */
static struct proof_point draw_model(struct plan *plan) {
    struct proof_point point = {.patch = ONE_OF(plan, 16, 32),
                                .depth = ONE_OF(plan, 0, 0, 1, 2, 4, 6),
                                .dim = ONE_OF(plan, 64, 128, 256, 512, 768),
                                .batch = ONE_OF(plan, 4, 8, 12, 16)};
    return point;
}

static void on(struct proof_point *point, const struct proof_drawn_machine *machine, int gpu,
               int node) {
    point->gpu = gpu;
    point->node = node < 0 ? machine->node_of[gpu] : node;
}

/* Mostly two, where there are two. */
static int draw_nodes(struct plan *plan) {
    return plan->machine->nodes < 2 || whole(plan, 0, 3) == 0 ? 1 : 2;
}

/* --- kinds --- */

static bool plan_numa(struct plan *plan) {
    const struct proof_drawn_machine *machine = plan->machine;
    int gpus[PROOF_GPUS_MAX], nodes[PROOF_NODES_MAX], models = whole(plan, 1, 3);
    int gpu_count = whole(plan, 1, machine->gpus < 3 ? machine->gpus : 3);
    if (machine->nodes < 2)
        return false;
    int node_count = whole(plan, 2, machine->nodes);
    choose(plan, machine->gpus, gpu_count, gpus);
    choose(plan, machine->nodes, node_count, nodes);
    int compiled = whole(plan, 0, 4) == 0;
    for (int m = 0; m < models; m++) {
        struct proof_point point = draw_model(plan);
        point.batch += m; /* no model comes twice: the others are multiples of 4 */
        for (int c = 0; c <= compiled; c++)
            for (int i = 0; i < gpu_count * node_count; i++) {
                point.compiled = c;
                on(&point, machine, gpus[i / node_count], nodes[i % node_count]);
                add(plan, &point, 1);
            }
    }
    return true;
}

static bool plan_devices(struct plan *plan) {
    const struct proof_drawn_machine *machine = plan->machine;
    int models = whole(plan, 1, 3), chosen[PROOF_GPUS_MAX];
    bool local = whole(plan, 0, 1);
    if (machine->gpus < 2)
        return false;
    int count = whole(plan, 0, 1) ? machine->gpus : 2;
    choose(plan, machine->gpus, count, chosen);
    for (int m = 0; m < models; m++) {
        struct proof_point point = draw_model(plan);
        point.batch += m;
        for (int i = 0; i < count; i++) {
            on(&point, machine, chosen[i], local ? -1 : 0);
            add(plan, &point, 1);
        }
    }
    return true;
}

static bool plan_scaling(struct plan *plan) {
    static const int depths[] = {0, 1, 2, 4, 6, 8, 12}, dims[] = {64, 128, 256, 512, 768, 1024};
    struct proof_point point = {
        .patch = ONE_OF(plan, 16, 32), .batch = ONE_OF(plan, 4, 8, 10), .heads = 8};
    int chosen[8], gpu = whole(plan, 0, plan->machine->gpus - 1);
    int dim = ONE_OF(plan, 128, 256, 512), depth = ONE_OF(plan, 2, 4, 6);
    int by_depth = whole(plan, 3, 6), by_dim = whole(plan, 1, 5);
    on(&point, plan->machine, gpu, -1);
    choose(plan, LAB_COUNT_OF(depths), by_depth, chosen);
    for (int i = 0; i < by_depth; i++) {
        point.dim = dim;
        point.depth = depths[chosen[i]];
        add(plan, &point, 1);
    }
    choose(plan, LAB_COUNT_OF(dims), by_dim, chosen);
    for (int i = 0; i < by_dim; i++) {
        point.dim = dims[chosen[i]];
        point.depth = depth;
        bool known = false;
        for (int k = 0; k < by_depth; k++)
            known |= plan->study->points[k].ranks[0].depth == depth && point.dim == dim;
        if (!known)
            add(plan, &point, 1);
    }
    return true;
}

/* Image sizes, batches and pools, each with all else as usual. */
static bool plan_transfer(struct plan *plan) {
    static const int images[] = {224, 384, 512, 768}, batches[] = {4, 8, 16, 32},
                     pools[] = {64, 128, 256};
    const struct proof_drawn_machine *machine = plan->machine;
    struct proof_point base = {.patch = 32, .depth = ONE_OF(plan, 0, 0, 2), .dim = 256};
    int gpu = whole(plan, 0, machine->gpus - 1), nodes[PROOF_NODES_MAX] = {-1};
    int node_count = draw_nodes(plan), series = ONE_OF(plan, 4, 4, 4, 5, 6, 6, 7);
    if (node_count > 1)
        choose(plan, machine->nodes, node_count, nodes);
    for (int n = 0; n < node_count; n++)
        for (int i = 0; i < 11; i++) {
            struct proof_point point = base;
            bool image = i < 4, batch = !image && i < 8;
            if (!(series & (image ? 1 : batch ? 2 : 4)))
                continue;
            point.image = image ? images[i] : images[0];
            point.batch = batch ? batches[i - 4] : 6;
            point.memory_mb = image || batch ? 96 : pools[i - 8];
            on(&point, machine, gpu, nodes[n]);
            add(plan, &point, 1);
        }
    return true;
}

static bool plan_compile(struct plan *plan) {
    int models = whole(plan, 1, 4), node_count = draw_nodes(plan);
    int gpu = whole(plan, 0, plan->machine->gpus - 1), nodes[PROOF_NODES_MAX] = {-1};
    if (node_count > 1)
        choose(plan, plan->machine->nodes, node_count, nodes);
    for (int m = 0; m < models; m++) {
        struct proof_point point = draw_model(plan);
        point.batch += m;
        for (int i = 0; i < 2 * node_count; i++) {
            point.compiled = i % 2;
            on(&point, plan->machine, gpu, nodes[i / 2]);
            add(plan, &point, 1);
        }
    }
    return true;
}

/* One model on single devices, the first with each of the others, and all at once. */
static void add_gangs(struct plan *plan, const struct proof_point *model, const int *gpus,
                      int count, bool all) {
    struct proof_point ranks[PROOF_RANKS_MAX];
    bool local = model->node < 0;
    for (int g = 0; g < count; g++) {
        ranks[g] = *model;
        on(&ranks[g], plan->machine, gpus[g], local ? -1 : 0);
        add(plan, &ranks[g], 1);
    }
    for (int g = 1; g < count; g++) {
        struct proof_point pair[] = {ranks[0], ranks[g]};
        add(plan, pair, 2);
    }
    if (all)
        add(plan, ranks, count);
}

static bool plan_throughput(struct plan *plan) {
    static const int gpus[] = {0, 1, 2, 3};
    int batches = whole(plan, 1, 2), most = plan->machine->gpus < 4 ? plan->machine->gpus : 4;
    if (plan->machine->gpus < 2)
        return false;
    bool local = whole(plan, 0, 1), all = most > 2 && whole(plan, 0, 1);
    struct proof_point model = draw_model(plan);
    model.node = local ? -1 : 0;
    for (int b = 0; b < batches; b++, model.batch *= 2)
        add_gangs(plan, &model, gpus, most, all);
    return true;
}

/* A pair on one bridge and a pair on two, with a model that copies and one that mostly computes. */
static bool plan_bridges(struct plan *plan) {
    const struct proof_drawn_machine *machine = plan->machine;
    int gpus[3] = {0, -1, -1};
    for (int g = 1; g < machine->gpus; g++)
        gpus[machine->node_of[g] == machine->node_of[0] ? 1 : 2] = g;
    if (machine->bridge_gb_s[machine->node_of[0]] == 0 || gpus[1] < 0 || gpus[2] < 0)
        return false;
    struct proof_point copies = draw_model(plan), computes = draw_model(plan);
    copies.depth = 0;
    computes.depth = ONE_OF(plan, 4, 6);
    computes.patch = 16;
    copies.node = computes.node = whole(plan, -1, 0);
    add_gangs(plan, &copies, gpus, 3, false);
    add_gangs(plan, &computes, gpus, 3, false);
    return true;
}

static bool plan_stability(struct plan *plan) {
    struct proof_point point = draw_model(plan);
    int points = ONE_OF(plan, 1, 2, 2, 2);
    plan->iterations = whole(plan, 120, 300);
    plan->study->drifts = true;
    point.sampled = whole(plan, 0, 1);
    for (int i = 0; i < points; i++) {
        point.batch += i;
        on(&point, plan->machine, whole(plan, 0, plan->machine->gpus - 1), -1);
        add(plan, &point, 1);
    }
    return true;
}

static const char *const *kernel_options(struct plan *plan, int kernel) {
    const char **words = lab_arena_alloc(plan->arena, 4, sizeof *words);
    if (kernel == 0) {
        words[0] = lab_arena_printf(plan->arena, "size=%dMiB", ONE_OF(plan, 1, 4, 16));
    } else if (kernel == 1) {
        for (int i = 0; i < 3; i++)
            words[i] =
                lab_arena_printf(plan->arena, "%c=%d", "mnk"[i], ONE_OF(plan, 256, 512, 1024));
    } else {
        words[0] = lab_arena_printf(plan->arena, "rows=%d", ONE_OF(plan, 1024, 4096));
        words[1] = lab_arena_printf(plan->arena, "columns=%d", ONE_OF(plan, 256, 1024));
    }
    return words;
}

/* Kernels alone, all devices at once, and the same bound to their own nodes. */
static bool plan_phases(struct plan *plan) {
    static const char *const kernels[] = {"memcpy", "gemm", "softmax"};
    const struct proof_drawn_machine *machine = plan->machine;
    int chosen[3], count = whole(plan, 1, 3), gpus = machine->gpus < 4 ? machine->gpus : 4;
    if (gpus < 2)
        return false;
    choose(plan, 3, count, chosen);
    plan->iterations = whole(plan, 11, 24); /* fewer have no spread */
    for (int k = 0; k < count; k++) {
        struct proof_point ranks[PROOF_RANKS_MAX],
            base = {.workload = kernels[chosen[k]], .options = kernel_options(plan, chosen[k])};
        for (int g = 0; g < gpus; g++) {
            ranks[g] = base;
            ranks[g].gpu = g;
            ranks[g].node = -1;
            ranks[g].phase = "baseline";
            add(plan, &ranks[g], 1);
        }
        for (int phase = 0; phase < 2; phase++) {
            for (int g = 0; g < gpus; g++) {
                ranks[g].phase = phase ? "isolated" : "concurrent";
                ranks[g].node = phase ? machine->node_of[g] : -1;
            }
            add(plan, ranks, gpus);
        }
    }
    return true;
}

static bool plan_training(struct plan *plan) {
    static const char *const models[] = {"medium", "large"};
    const struct proof_drawn_machine *machine = plan->machine;
    int model_count = whole(plan, 1, 2), batch_count = 3;
    int least = ONE_OF(plan, 64, 1024, 2048, 2048), step = ONE_OF(plan, 2, 4, 4, 4);
    if (machine->gpus < 2)
        return false;
    int most = machine->gpus >= 4 && whole(plan, 0, 1) ? 4 : 2;
    plan->study->in_step = true;
    for (int m = 0; m < model_count; m++)
        for (int b = 0, batch = least; b < batch_count; b++, batch *= step) {
            const char **words = lab_arena_alloc(plan->arena, 4, sizeof *words);
            words[0] = lab_arena_printf(plan->arena, "model=%s", models[m]);
            words[1] = lab_arena_printf(plan->arena, "batch_size=%d", batch);
            words[2] = "dataset_size=1000000";
            struct proof_point ranks[PROOF_RANKS_MAX], base = {.workload = "mlp", .options = words};
            for (int g = 0; g < most; g++) {
                ranks[g] = base;
                on(&ranks[g], machine, g, -1);
            }
            for (int n = 1; n <= most; n *= 2)
                add(plan, ranks, n);
        }
    return true;
}

/* --- one of them --- */

static const struct {
    const char *option;
    const char *const answers[3];
    bool (*plan)(struct plan *plan); /* false = not on such a machine */
    int weight;
} kinds[] = {
    {"numa_study", {"numa", "recommend"}, plan_numa, 6},
    {"quick_test", {"recommend", "crossover"}, plan_devices, 6},
    {"scaling_study", {"scaling", "crossover"}, plan_scaling, 8},
    {"transfer_study", {"transfer", "numa"}, plan_transfer, 9},
    {"compile_study", {"compile", "scaling"}, plan_compile, 9},
    {"throughput_study", {"speedup", "recommend"}, plan_throughput, 6},
    {"throughput_study", {"speedup", "recommend"}, plan_bridges, 40},
    {"stability", {"stability"}, plan_stability, 6},
    {"contention", {"contention", "variance"}, plan_phases, 7},
    {"train_scaling", {"training", "speedup"}, plan_training, 6},
};

void proof_draw_study(struct proof_random *random, const struct proof_drawn_machine *machine,
                      struct lab_arena *arena, struct proof_drawn_study *ret_study) {
    struct plan plan = {.random = random, .machine = machine, .arena = arena, .study = ret_study};
    int weights = 0, kind;
    for (int i = 0; i < LAB_COUNT_OF(kinds); i++)
        weights += kinds[i].weight;
    *ret_study = (struct proof_drawn_study){
        .points = lab_arena_alloc(arena, POINTS_MAX, sizeof *ret_study->points)};
    do {
        int left = whole(&plan, 0, weights - 1);
        for (kind = 0; left >= kinds[kind].weight; kind++)
            left -= kinds[kind].weight;
        ret_study->count = 0;
        plan.iterations = whole(&plan, 6, 24);
    } while (!kinds[kind].plan(&plan));
    ret_study->option = kinds[kind].option;
    ret_study->answers = kinds[kind].answers;
    ret_study->repeats = proof_uniform(random) < ONCE ? 1 : whole(&plan, 2, REPEATS_MAX);
}
