/*
 * framework.c: the host's part of a training step, as a machine's description has it (`framework`).
 * A program that trains through a framework spends milliseconds of the host's time on a step whose
 * kernels take microseconds, and then sums gradients layer by layer. Devices share a batch, and
 * with it the time of its arithmetic. A framework whose one process serves its devices in turn
 * saves nothing by that: `whole_batch`. A captured graph pays nothing of it.
 *
 * The sums' part is known when a share of a batch is derived, and is spent when devices first wait
 * for each other, so that it counts as communication and not as arithmetic.
 */
#include "device/sim/sim.h"

static const struct sim_framework *framework_of(const struct sim_device *device) {
    return &device->machine->framework;
}

static void spend(struct sim_device *device, double seconds) {
    if (seconds <= 0)
        return;
    double factor = sim_chance_factor(&device->host_chance, &device->machine->noise, false,
                                      device->host.time_ns);
    sim_host_spend(device, seconds * factor);
}

static int layers_of(const struct lab_mlp *mlp) {
    return mlp->layer_end > 0 ? mlp->layer_end - mlp->layer_begin : lab_mlp_layers(mlp);
}

static double values_of(const struct lab_mlp *mlp) {
    return mlp->layer_end > 0 ? (double)(lab_mlp_weight_at(mlp, mlp->layer_end) -
                                         lab_mlp_weight_at(mlp, mlp->layer_begin))
                              : (double)lab_mlp_parameters(mlp);
}

static bool is_shared(const struct lab_mlp *mlp) {
    return mlp->rows > 0 && mlp->rows < mlp->batch;
}

/* Of this launch, which may be a share of a batch; of the whole one where the machine says so. */
static double arithmetic_s(const struct sim_framework *framework, const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    bool whole = framework->whole_batch && is_shared(mlp);
    double share = whole ? (double)mlp->rows / (double)mlp->batch : 1;
    return framework->gflops > 0 ? 1e-9 * launch->cost.flops / (framework->gflops * share) : 0;
}

static double sum_s(const struct sim_framework *framework, const struct lab_mlp *mlp) {
    double bytes = 2 * sizeof(float) * values_of(mlp);
    return 1e-6 * framework->sum_layer_us * layers_of(mlp) +
           (framework->sum_gb_s > 0 ? 1e-9 * bytes / framework->sum_gb_s : 0);
}

void sim_framework_launch(struct sim_device *device, const struct lab_launch *launch) {
    const struct sim_framework *framework = framework_of(device);
    double layers_s = 1e-6 * framework->layer_us * layers_of(&launch->mlp);
    double update_s = 1e-9 * framework->parameter_ns * (double)lab_mlp_parameters(&launch->mlp);
    /* the update follows captured graphs too, whose arithmetic isn't the framework's */
    device->whole_batch |= launch->op != LAB_OP_ADAM && framework->whole_batch &&
                           framework->gflops > 0 && is_shared(&launch->mlp);
    switch (launch->op) {
    case LAB_OP_MLP_FORWARD:
        spend(device, layers_s + arithmetic_s(framework, launch));
        break;
    case LAB_OP_MLP_BACKWARD:
        spend(device, layers_s + arithmetic_s(framework, launch));
        if (is_shared(&launch->mlp))
            device->owed_s += sum_s(framework, &launch->mlp);
        break;
    case LAB_OP_ADAM:
        sim_framework_sum(device); /* where devices didn't wait for each other by events */
        spend(device, layers_s + update_s);
        break;
    case LAB_OP_MLP_STEP:
        spend(device, 3 * layers_s + arithmetic_s(framework, launch) + update_s);
        break;
    default:
        break;
    }
}

void sim_framework_sum(struct sim_device *device) {
    double owed_s = device->owed_s;
    device->owed_s = 0;
    spend(device, owed_s);
}
