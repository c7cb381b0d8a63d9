/* proof_draw.c: a machine at random. Nothing here knows what an analysis looks for. */
#include "proof_claims.h"

#include "base/random.h"
#include "device/device.h"

#include <math.h>

/* --- chance --- */

double proof_uniform(struct proof_random *random) {
    return lab_random_uniform(random->seed, random->drawn++);
}

static double between(struct proof_random *random, double low, double high) {
    return low + (high - low) * proof_uniform(random);
}

static double log_between(struct proof_random *random, double low, double high) {
    return low * pow(high / low, proof_uniform(random));
}

static bool chance(struct proof_random *random, double p) {
    return proof_uniform(random) < p;
}

static int whole(struct proof_random *random, int low, int high) {
    return low + (int)(proof_uniform(random) * (high - low + 1));
}

/* --- a machine --- */

#define NOTHING (1.0 / 3)
#define LOUD    0.05 /* share of machines whose runs differ by 5 to 20% */
#define WIDE    4000 /* GB/s of a link that slows nobody */

static void draw_nodes(struct proof_random *random, struct proof_drawn_machine *machine) {
    /* a simulated host's calls take a little longer with each step of distance */
    static const int far[] = {12, 16, 21, 32}, nearest = 11;
    machine->gpus = whole(random, 1, PROOF_GPUS_MAX);
    machine->nodes = whole(random, 1, PROOF_NODES_MAX);
    for (int g = 0; g < machine->gpus; g++)
        machine->node_of[g] = g * machine->nodes / machine->gpus;
    for (int a = 0; a < machine->nodes; a++)
        for (int b = 0; b <= a; b++)
            machine->distances[a][b] = machine->distances[b][a] = a == b ? 10
                                                                  : machine->nothing
                                                                      ? nearest
                                                                      : far[whole(random, 0, 3)];
}

static void draw_rates(struct proof_random *random, struct proof_drawn_machine *machine) {
    machine->tflops = log_between(random, 5, 100);
    machine->memory_gb_s = log_between(random, 300, 3000);
    machine->kernel_us = between(random, 1, 5);
    machine->launch_us = between(random, 1, 5);
    machine->copy_us = between(random, 1, 5);
    machine->slot_gb_s = log_between(random, 6, 50);
    machine->slot_us = between(random, 0, 2);
    machine->join_gb_s = WIDE;
    if (chance(random, 0.5))
        machine->framework_us = log_between(random, 1, 50);
}

/* Why links that are shared have no latency is said in proof_speedup.c. */
static void draw_effects(struct proof_random *random, struct proof_drawn_machine *machine) {
    if (chance(random, 0.7)) {
        machine->remote_small = log_between(random, 0.005, 0.5);
        machine->remote_large =
            chance(random, 0.5) ? machine->remote_small : log_between(random, 0.005, 0.5);
    }
    if (chance(random, 0.3)) {
        machine->join_gb_s = machine->slot_gb_s * between(random, 0.7, 3);
        machine->join_us = between(random, 0, 2);
    }
    for (int n = 0; n < machine->nodes && chance(random, 0.5); n++) {
        machine->bridge_gb_s[n] = machine->slot_gb_s * between(random, 1, 2.2);
        machine->slot_us = 0;
    }
    for (int g = 0; g < machine->gpus; g++) {
        machine->slow_compute[g] = chance(random, 0.2) ? log_between(random, 0.005, 0.3) : 0;
        machine->slow_copy[g] = chance(random, 0.1) ? log_between(random, 0.005, 0.3) : 0;
        machine->drift_per_minute[g] = chance(random, 0.5) ? log_between(random, 1, 10) : 0;
    }
}

static void draw_noise(struct proof_random *random, struct proof_drawn_machine *machine) {
    double level = log_between(random, 0.002, 0.03);
    machine->noise.compute = level * between(random, 0.5, 1);
    machine->noise.copy = level * between(random, 0.5, 1);
    if (chance(random, LOUD)) {
        machine->noise.compute = log_between(random, 0.05, 0.2);
        machine->noise.copy = log_between(random, 0.05, 0.2);
    }
    if (chance(random, 0.5)) {
        machine->noise.within = level * between(random, 0.3, 1.5);
        machine->noise.within_s = log_between(random, 2e-4, 5e-2);
    }
    if (chance(random, 0.5))
        machine->noise.each = log_between(random, 0.002, 0.02);
    else if (machine->noise.within == 0) /* no two iterations are alike */
        machine->noise.each = log_between(random, 0.0005, 0.002);
    if (chance(random, 0.4)) {
        machine->noise.tail_per_s = log_between(random, 2, 40);
        machine->noise.tail_us = between(random, 20, 60);
    }
    if (chance(random, 0.3))
        machine->noise.slope_per_minute = between(random, 0.01, 0.1);
    if (chance(random, 0.4))
        machine->noise.blocks = between(random, -0.05, 0.05);
}

void proof_draw_machine(struct proof_random *random, struct proof_drawn_machine *ret_machine) {
    *ret_machine = (struct proof_drawn_machine){.nothing = chance(random, NOTHING)};
    draw_nodes(random, ret_machine);
    draw_rates(random, ret_machine);
    if (!ret_machine->nothing)
        draw_effects(random, ret_machine);
    for (int n = 0; ret_machine->nothing && n < ret_machine->nodes && chance(random, 0.5); n++)
        ret_machine->bridge_gb_s[n] = WIDE; /* shared, and slows nobody */
    draw_noise(random, ret_machine);
}

bool proof_shares_links(const struct proof_drawn_machine *machine) {
    bool shares = machine->join_gb_s < WIDE;
    for (int n = 0; n < machine->nodes; n++)
        shares |= machine->bridge_gb_s[n] > 0 && machine->bridge_gb_s[n] < WIDE;
    return shares;
}

/* --- as a description --- */

static void add_nodes(const struct proof_drawn_machine *machine, double pace, struct lab_str *out) {
    lab_str_add(out, "title: a machine drawn at random\ncpu: none\nnodes:\n");
    for (int i = 0; i < machine->nodes; i++)
        lab_str_printf(
            out, "  - {number: %d, package: %d, cores: 8, memory_gb: 64, bandwidth_gb_s: %d}\n", i,
            i, WIDE);
    lab_str_add(out, "distances:\n");
    for (int i = 0; i < machine->nodes; i++) {
        lab_str_add(out, "  - [");
        for (int k = 0; k < machine->nodes; k++)
            lab_str_printf(out, "%s%d", k ? ", " : "", machine->distances[i][k]);
        lab_str_add(out, "]\n");
    }
    lab_str_printf(out, "links:\n  - {name: root, bandwidth_gb_s: %d}\n", WIDE);
    for (int a = 0; a < machine->nodes; a++)
        for (int b = 0; b < a; b++)
            lab_str_printf(
                out,
                "  - {name: join%d%d, joins: [%d, %d], bandwidth_gb_s: %.9g, latency_us: %.9g}\n",
                a, b, a, b, pace * machine->join_gb_s, machine->join_us / pace);
    for (int i = 0; i < machine->nodes; i++)
        if (machine->bridge_gb_s[i] > 0)
            lab_str_printf(out, "  - {name: bridge%d, bandwidth_gb_s: %.9g}\n", i,
                           pace * machine->bridge_gb_s[i]);
}

static void add_gpus(const struct proof_drawn_machine *machine, double pace, struct lab_str *out) {
    lab_str_printf(out,
                   "models:\n"
                   "  gpu:\n"
                   "    name: Drawn GPU\n"
                   "    units: 100\n"
                   "    memory_gb: 48\n"
                   "    tflops: {fp32: %.9g}\n"
                   "    memory_gb_s: %.9g\n"
                   "    kernel_us: %.9g\n"
                   "    launch_us: %.9g\n"
                   "    copy_us: %.9g\n"
                   "    slot_gb_s: %.9g\n"
                   "    slot_us: %.9g\n"
                   "    clock_mhz: 2000\n"
                   "    power: {idle_w: 30, compute_w: 100, memory_w: 20, limit_w: 1000}\n"
                   "    heat: {c_per_w: 0.05}\n"
                   "gpus:\n",
                   pace * machine->tflops, pace * machine->memory_gb_s, machine->kernel_us / pace,
                   machine->launch_us / pace, machine->copy_us / pace, pace * machine->slot_gb_s,
                   machine->slot_us / pace);
    for (int i = 0; i < machine->gpus; i++) {
        int node = machine->node_of[i];
        if (machine->bridge_gb_s[node] > 0)
            lab_str_printf(out, "  - {model: gpu, node: %d, path: [bridge%d]}\n", node, node);
        else
            lab_str_printf(out, "  - {model: gpu, node: %d, path: [root]}\n", node);
    }
    if (machine->framework_us > 0)
        lab_str_printf(out, "framework: {layer_us: %.9g}\n", machine->framework_us / pace);
}

static void add_noise(const struct proof_drawn_machine *machine, struct lab_str *out) {
    lab_str_printf(out,
                   "noise:\n"
                   "  between: {compute: %.9g, copy: %.9g}\n"
                   "  within: {compute: %.9g, copy: %.9g}\n"
                   "  within_s: %.9g\n"
                   "  each: {compute: %.9g, copy: %.9g}\n"
                   "  tail_per_s: %.9g\n"
                   "  tail_us: %.9g\n"
                   "  tail_most_us: 2000\n"
                   "  drift_per_minute: %.9g\n",
                   machine->noise.compute, machine->noise.copy, machine->noise.within,
                   machine->noise.within, machine->noise.within_s > 0 ? machine->noise.within_s : 1,
                   machine->noise.each, machine->noise.each, machine->noise.tail_per_s,
                   machine->noise.tail_us, machine->noise.slope_per_minute);
}

static void add_effects(const struct proof_drawn_machine *machine, bool drifts,
                        struct lab_str *out) {
    lab_str_printf(out,
                   "effects:\n"
                   "  remote: [{size_kb: 100, slowdown: %.9g}, {size_kb: 10000, slowdown: %.9g}]\n"
                   "  slow_gpu:\n",
                   machine->remote_small, machine->remote_large);
    for (int i = 0; i < machine->gpus; i++)
        lab_str_printf(out, "    - {gpu: %d, compute: %.9g, copy: %.9g}\n", i,
                       machine->slow_compute[i], machine->slow_copy[i]);
    if (drifts)
        lab_str_add(out, "  drift:\n");
    for (int i = 0; i < machine->gpus && drifts; i++)
        lab_str_printf(out, "    - {gpu: %d, per_minute: %.9g}\n", i, machine->drift_per_minute[i]);
}

void proof_define_drawn(const struct proof_drawn_machine *machine, bool noisy, bool drifts,
                        double pace) {
    LAB_AUTO(str, text);
    add_nodes(machine, pace, &text);
    add_gpus(machine, pace, &text);
    if (noisy)
        add_noise(machine, &text);
    add_effects(machine, drifts, &text);
    lab_device_define("drawn", text.text);
}
