/* proof_machine.c: what is planted, as a description that the simulator reads. */
#include "proof.h"

#include "device/device.h"

#define TFLOPS      20.0
#define MEMORY_GB_S 2000
#define MEMORY_S    0.005

/* Nodes in a ring: the farthest is half-way round. */
static int distance(int nodes, int a, int b) {
    int apart = a > b ? a - b : b - a;
    apart = apart > nodes / 2 ? nodes - apart : apart;
    return 10 + 10 * apart;
}

static void add_nodes(const struct proof_truth *truth, struct lab_str *out) {
    lab_str_add(out, "title: a planted machine\ncpu: none\nnodes:\n");
    for (int i = 0; i < truth->nodes; i++)
        lab_str_printf(out,
                       "  - {number: %d, package: %d, cores: 8, memory_gb: 64, bandwidth_gb_s: "
                       "400}\n",
                       i, i);
    lab_str_add(out, "distances:\n");
    for (int i = 0; i < truth->nodes; i++) {
        lab_str_add(out, "  - [");
        for (int k = 0; k < truth->nodes; k++)
            lab_str_printf(out, "%s%d", k ? ", " : "", distance(truth->nodes, i, k));
        lab_str_add(out, "]\n");
    }
    lab_str_add(out, "links:\n");
    for (int i = 0; i < truth->nodes && (truth->nodes > 2 || i == 0); i++)
        lab_str_printf(out, "  - {name: ring%d, joins: [%d, %d], bandwidth_gb_s: 400}\n", i, i,
                       (i + 1) % truth->nodes);
    for (int i = 0; i < truth->nodes; i++)
        lab_str_printf(out, "  - {name: root%d, bandwidth_gb_s: 26}\n", i);
    if (truth->shared_gb_s > 0)
        lab_str_printf(out, "  - {name: shared, bandwidth_gb_s: %.9g}\n", truth->shared_gb_s);
}

/* Why links that are shared have no latency is said in proof_speedup.c. */
static void add_gpus(const struct proof_truth *truth, struct lab_str *out) {
    lab_str_printf(out,
                   "models:\n"
                   "  gpu:\n"
                   "    name: Planted GPU\n"
                   "    units: 100\n"
                   "    memory_gb: 48\n"
                   "    tflops: {fp32: %.6g}\n"
                   "    memory_gb_s: %.6g\n"
                   "    slot_gb_s: 25\n"
                   "%s"
                   "    clock_mhz: 2000\n"
                   "    power: {idle_w: 30, compute_w: 100, memory_w: 20, limit_w: 1000}\n"
                   "    heat: {c_per_w: 0.05}\n"
                   "gpus:\n",
                   truth->tflops > 0 ? truth->tflops : TFLOPS,
                   truth->memory_gb_s > 0 ? truth->memory_gb_s : MEMORY_GB_S,
                   truth->shared_gb_s > 0 ? "    slot_us: 0\n" : "");
    if (truth->shared_gb_s > 0) {
        lab_str_add(out, "  - {model: gpu, node: 0, path: [shared]}\n"
                         "  - {model: gpu, node: 0, path: [shared]}\n"
                         "  - {model: gpu, node: 1, path: [root1]}\n");
        return;
    }
    for (int i = 0; i < truth->nodes; i++)
        lab_str_printf(out, "  - {model: gpu, node: %d, path: [root%d]}\n", i, i);
}

static void add_noise(const struct proof_truth *truth, struct lab_str *out) {
    double s = truth->noise;
    lab_str_printf(out, "noise:\n  between: {compute: %.9g, copy: %.9g}\n", s, s);
    if (truth->rough)
        lab_str_printf(out,
                       "  within: {compute: %.9g, copy: %.9g}\n"
                       "  within_s: %.9g\n"
                       "  each: {compute: 0.01, copy: 0.01}\n"
                       "  tail_per_s: 20\n"
                       "  tail_us: 20\n"
                       "  tail_shape: 1.7\n"
                       "  tail_most_us: 2000\n"
                       "  drift_per_minute: 0.01\n",
                       s, s, truth->memory_s > 0 ? truth->memory_s : MEMORY_S);
}

static void add_effects(const struct proof_truth *truth, struct lab_str *out) {
    bool any =
        truth->remote > 0 || truth->slow_gpu > 0 || truth->drift != 0 || truth->neighbour_gb_s > 0;
    lab_str_add(out, any ? "effects:\n" : "");
    if (truth->remote > 0)
        lab_str_printf(out, "  remote: [{size_kb: 1, slowdown: %.9g}]\n", truth->remote);
    if (truth->slow_gpu > 0)
        lab_str_printf(out, "  slow_gpu: [{gpu: 1, compute: %.9g}]\n", truth->slow_gpu);
    if (truth->drift != 0)
        lab_str_printf(out, "  drift: [{gpu: 0, per_minute: %.9g}]\n", truth->drift);
    if (truth->neighbour_gb_s > 0)
        lab_str_printf(out,
                       "  neighbour: {node: %d, links: [root%d], gb_s: %.9g, cpu: 0.5, on_s: 0.4, "
                       "off_s: 0.6}\n",
                       truth->neighbour_node, truth->neighbour_node, truth->neighbour_gb_s);
}

void proof_define(const char *name, const struct proof_truth *truth) {
    LAB_AUTO(str, text);
    add_nodes(truth, &text);
    add_gpus(truth, &text);
    add_noise(truth, &text);
    add_effects(truth, &text);
    lab_device_define(name, text.text);
}
