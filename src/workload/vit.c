/*
 * vit.c: inference with a vision transformer as a pipeline: images wait in pinned memory on a NUMA
 * node, are copied to the device, go through the model, and its output is copied back. What it
 * measures is the whole way, so it feels where the host's memory lies. vit/ holds the parts.
 */
#include "workload/vit/vit.h"

#include "machine/machine.h"
#include "workload/kernel/kernel.h"

static const char *const back_choices[] = {"output", "input", NULL};
static const char *const fill_choices[] = {"random", "sequential", "zeros", NULL};

#define AT(field) offsetof(struct vit_config, field)

static const struct lab_option options[] = {
    {"patch_size", LAB_OPTION_INT, AT(patch_size), .fallback = "32", .min = 1, .max = 4096,
     .unit = "pixels", .help = "side of the square patches that images are cut into"},
    {"depth", LAB_OPTION_INT, AT(depth), .fallback = "6", .min = 0, .max = 1024, .unit = "blocks",
     .help = "transformer blocks; 0 = no model at all, the input is copied there and back"},
    {"heads", LAB_OPTION_INT, AT(heads), .fallback = "8", .min = 1, .max = 1024, .unit = "heads",
     .help = "attention heads, each 64 wide"},
    {"dim", LAB_OPTION_INT, AT(dim), .fallback = "512", .min = 1, .max = 65536, .unit = "values",
     .help = "width of a token"},
    {"mlp_dim", LAB_OPTION_INT, AT(mlp_dim), .fallback = "0", .min = 0, .max = 262144,
     .unit = "values", .help = "width of the hidden layer in each block; 0 = 4 · dim"},
    {"batch_size", LAB_OPTION_INT, AT(batch_size), .fallback = "10", .min = 1, .max = 65536,
     .unit = "images", .help = "images in one iteration"},
    {"tensor_shape", LAB_OPTION_INTS, AT(tensor_shape), .fallback = "[3,224,224]", .min = 1,
     .max = 65536, .unit = "values",
     .help = "channels, height and width of an image; the latter two are rounded up to whole "
             "patches"},
    {"memory_size_mb", LAB_OPTION_INT, AT(memory_size_mb), .fallback = "256", .min = 1,
     .max = 1 << 24, .unit = "MiB",
     .help = "pinned pool of input images on the NUMA node, cycled; at least two batches"},
    {"dtype", LAB_OPTION_CHOICE, AT(dtype), .fallback = "fp32", .choices = lab_dtype_names,
     .help = "number format of images, weights and activations"},
    {"d2h", LAB_OPTION_CHOICE, AT(d2h), .fallback = "output", .choices = back_choices,
     .help = "what is copied back to the host"},
    {"fill", LAB_OPTION_CHOICE, AT(fill), .fallback = "random", .choices = fill_choices,
     .help = "what the images consist of"},
    {"sync_frequency", LAB_OPTION_INT, AT(sync_frequency), .fallback = "10", .min = 1, .max = 10000,
     .unit = "iterations", .help = "iterations between two synchronisations of the host"},
    {"compile_model", LAB_OPTION_FLAG, AT(compile_model), .fallback = "false",
     .help = "fused operations and captured graphs"},
    {"copy_cores", LAB_OPTION_INT, AT(copy_cores), .fallback = "-1", .min = -1, .max = 65536,
     .unit = "cores",
     .help = "cores that compute leaves to copies on a CPU; -1 = as many as are busy with them"},
    {"overlap", LAB_OPTION_FLAG, AT(overlap), .fallback = "true",
     .help = "copies overlap compute; false = one stage after the other"},
    {"forward", LAB_OPTION_FLAG, AT(forward), .fallback = "true", .later = true,
     .help = "false = only the copies, the same bytes each way: the limit of the link"},
    {LAB_WORKLOAD_CONFIG, LAB_OPTION_STRING, AT(config), .fallback = LAB_CONFIG_TUNED,
     .suggestions = kernel_config_words, .value_name = "CONFIG", .later = true,
     .help =
         "configuration of the products: tuned (where available, see 'gpulab tune gemm'), default, "
         "or SHAPE:name=value,… for each, joined by ;"},
    {NULL},
};

/* The largest amount of memory that a configuration may ask for: far above any machine, far below
 * where sizes would overflow. */
#define BYTES_MAX 0x1p48

/* Bytes as a floating-point number, from the keys as they are: nothing can overflow. */
static double estimate_bytes(const struct vit_config *config) {
    const int64_t *tensor = config->tensor_shape.items;
    double patch = (double)config->patch_size, dim = (double)config->dim;
    double mlp = config->mlp_dim ? (double)config->mlp_dim : 4 * dim;
    double inner = (double)config->heads * VIT_HEAD_WIDTH;
    double image = (double)tensor[0] * ((double)tensor[1] + patch) * ((double)tensor[2] + patch);
    double tokens = ((double)tensor[1] / patch + 1) * ((double)tensor[2] / patch + 1) + 1;
    double activations =
        (double)config->batch_size * (3 * image + tokens * (4 * dim + inner + 3 * inner + mlp));
    double weights = (double)config->depth * dim * (4 * inner + 2 * mlp) +
                     dim * ((double)tensor[0] * patch * patch + tokens);
    return sizeof(float) * (activations + weights);
}

static int vit_check(void *opaque, struct lab_err *err) {
    const struct vit_config *config = opaque;
    if (config->tensor_shape.count != 3)
        return lab_err_set(err, LAB_ERR_USER,
                           "tensor_shape has %d numbers: must be [channels,height,width], such as "
                           "[3,224,224]",
                           config->tensor_shape.count);
    double bytes = estimate_bytes(config);
    if (bytes > BYTES_MAX)
        return lab_err_set(err, LAB_ERR_USER,
                           "these sizes need about %.0f TiB: make batch_size, tensor_shape, dim or "
                           "depth smaller",
                           bytes / 0x1p40);
    struct vit_shape shape = vit_shape_of(config);
    if (vit_pool_batches(config, &shape) < VIT_POOL_BATCHES_MIN) {
        int64_t least = VIT_POOL_BATCHES_MIN * (int64_t)shape.input_bytes;
        return lab_err_set(err, LAB_ERR_USER,
                           "memory_size_mb=%lld: the pool must hold two batches of %lld images, "
                           "which takes %lld",
                           (long long)config->memory_size_mb, (long long)config->batch_size,
                           (long long)((least + (1 << 20) - 1) >> 20));
    }
    return 0;
}

/* Without a model its keys play no part, nor does the choice of what comes back; but for
 * patch_size, to which images are rounded up. */
static void vit_canonical(void *opaque) {
    struct vit_config *config = opaque;
    if (config->depth == 0) {
        config->heads = 1;
        config->dim = VIT_HEAD_WIDTH;
        config->mlp_dim = 0;
        config->d2h = back_choices[0];
        config->forward = true;
        config->config = LAB_CONFIG_TUNED;
    }
    if (config->mlp_dim == 0)
        config->mlp_dim = 4 * config->dim;
}

static void vit_label(const void *opaque, struct lab_str *out) {
    const struct vit_config *config = opaque;
    if (config->depth == 0)
        lab_str_add(out, "vit0x0x0");
    else
        lab_str_printf(out, "vit%lldx%lldx%lld", (long long)config->patch_size,
                       (long long)config->depth, (long long)config->dim);
    if (!config->forward && config->depth > 0)
        lab_str_add(out, "_copies");
}

static void vit_label_words(const void *opaque, struct lab_str *out) {
    const struct vit_config *config = opaque;
    if (config->depth == 0)
        lab_str_add(out, "no model, copies only");
    else
        lab_str_printf(out, "patch %lld, depth %lld, width %lld", (long long)config->patch_size,
                       (long long)config->depth, (long long)config->dim);
}

static void vit_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct vit_config *config = opaque;
    struct vit_shape shape = vit_shape_of(config);
    bool has_output = config->depth > 0, forward = has_output && config->forward;
    size_t back_bytes =
        has_output && lab_str_equal(config->d2h, "output") ? shape.output_bytes : shape.input_bytes;
    int64_t pool_bytes = vit_pool_batches(config, &shape) * (int64_t)shape.input_bytes;
    *ret_cost = (struct lab_workload_cost){
        .h2d_bytes = (double)shape.input_bytes,
        .d2h_bytes = (double)back_bytes,
        .samples = (double)shape.batch,
        .device_bytes =
            VIT_BUFFERS * (int64_t)(shape.input_bytes + (has_output ? shape.output_bytes : 0)),
        .host_bytes = pool_bytes + VIT_BUFFERS * (int64_t)back_bytes,
        .dtype = forward ? shape.dtype : LAB_FP32, /* copies compute nothing: any device will do */
    };
    if (!forward)
        return;
    struct vit_model model;
    vit_model_plan(&shape, config->compile_model, &model);
    ret_cost->compute = vit_model_cost(&model, &ret_cost->launches);
    ret_cost->parameters = (double)vit_model_parameters(&shape);
    ret_cost->device_bytes += (int64_t)(model.weights_bytes + model.activations_bytes);
    vit_model_close(&model);
}

struct visitor {
    lab_launch_visit *visit;
    void *state;
};

static int visit_kernel(void *opaque, const struct lab_launch *launch, struct lab_err *err) {
    const struct visitor *visitor = opaque;
    (void)err;
    visitor->visit(launch, visitor->state);
    return 0;
}

static void vit_kernels(const void *opaque, lab_launch_visit *visit, void *state) {
    const struct vit_config *config = opaque;
    struct vit_shape shape = vit_shape_of(config);
    struct visitor visitor = {visit, state};
    struct vit_model model;
    if (config->depth == 0 || !config->forward)
        return;
    vit_model_plan(&shape, config->compile_model, &model);
    vit_model_forward(&model, NULL, NULL, visit_kernel, &visitor, NULL);
    vit_model_close(&model);
}

static struct lab_device_setup vit_setup(const void *opaque) {
    const struct vit_config *config = opaque;
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    setup.copy_cores = (int)config->copy_cores;
    return setup;
}

static void vit_launches(const void *opaque, lab_launch_visit *visit, void *state) {
    const struct vit_config *config = opaque;
    struct vit_shape shape = vit_shape_of(config);
    if (config->depth > 0 && config->forward)
        vit_products(&shape, config->compile_model, visit, state);
}

static int vit_prove_placement(void *state, struct lab_err *err) {
    const struct vit_pipeline *pipeline = state;
    const struct lab_machine *machine = pipeline->device->machine;
    int node = pipeline->numa_node;
    if (node < 0)
        return 0;
    if (lab_memory_prove(machine, pipeline->pool.data, pipeline->pool.size_bytes, node, err))
        return lab_err_context(err, "input pool");
    for (int i = 0; i < VIT_BUFFERS; i++)
        if (lab_memory_prove(machine, pipeline->host_out[i].data, pipeline->host_out[i].size_bytes,
                             node, err))
            return lab_err_context(err, "output buffer %d", i);
    return 0;
}

const struct lab_workload lab_workload_vit = {
    .name = "vit",
    .help = "inference with a vision transformer: host → device → model → host, pipelined",
    .description =
        "Images from a pinned pool on the NUMA node are copied to the device and go through a "
        "vision\n"
        "transformer. Its output is copied back. Three streams with two buffers overlap these. The "
        "model\n"
        "is vit-pytorch's without its head; heads are 64 wide and weights are drawn from the "
        "seed.\n"
        "\n"
        "depth=0 leaves the model out: the input is copied there and back, which loads both\n"
        "directions of the link. overlap=false runs the same stages one after the other. "
        "forward=false\n"
        "copies what the model's input and output take and computes nothing.",
    .options = options,
    .config_size = sizeof(struct vit_config),
    .compute_range = "vit_forward",
    .check = vit_check,
    .canonical = vit_canonical,
    .label = vit_label,
    .label_words = vit_label_words,
    .cost = vit_cost,
    .kernels = vit_kernels,
    .setup = vit_setup,
    .open = vit_open,
    .close = vit_close,
    .run = vit_run,
    .verify = vit_verify,
    .launches = vit_launches,
    .prove_placement = vit_prove_placement,
};
