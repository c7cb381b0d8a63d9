/*
 * scrape_text.c: the state as Prometheus's text format 0.0.4. A pure function of the state: no
 * clock is read and no time stamp written, so a series that isn't there is stale for Prometheus at
 * once.
 *
 * All lines of a name stand together, as the format asks for; so the loops go by name first, by
 * device second.
 */
#include "serve/scrape_internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* --- lines --- */

/* One broken byte in a label, such as in a process's name, would cost the whole scrape. */
static void add_escaped(const char *value, struct lab_str *out) {
    size_t left = strlen(value);
    while (left) {
        size_t good = lab_str_utf8_prefix(value, left);
        for (size_t i = 0; i < good; i++) {
            char c = value[i];
            if (c == '\\' || c == '"')
                lab_str_add_bytes(out, "\\", 1);
            if (c == '\n')
                lab_str_add(out, "\\n");
            else
                lab_str_add_bytes(out, &c, 1);
        }
        if (good < left) {
            lab_str_add(out, "\xef\xbf\xbd"); /* U+FFFD */
            good++;
        }
        value += good;
        left -= good;
    }
}

void scrape_add_label(const char *name, const char *value, struct lab_str *out) {
    lab_str_printf(out, "%s%s=\"", out->length ? "," : "", name);
    add_escaped(value, out);
    lab_str_add(out, "\"");
}

static void add_number_label(const char *name, int value, struct lab_str *out) {
    lab_str_printf(out, "%s%s=\"%d\"", out->length ? "," : "", name, value);
}

void scrape_add_header(const char *name, const char *type, const char *help, struct lab_str *out) {
    lab_str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Whole numbers with all their digits; others with 15, which hides what the scale's rounding
 * adds. */
static void add_value(double value, struct lab_str *out) {
    if (fabs(value) < 1e18 && value == floor(value))
        lab_str_printf(out, "%.0f", value);
    else
        lab_str_printf(out, "%.15g", value);
}

void scrape_add_sample(const char *name, const char *labels, const char *more, double value,
                       struct lab_str *out) {
    lab_str_add(out, name);
    if (*labels || *more) {
        lab_str_add(out, "{");
        lab_str_add(out, labels);
        lab_str_add(out, *labels && *more ? "," : "");
        lab_str_add(out, more);
        lab_str_add(out, "}");
    }
    lab_str_add(out, " ");
    add_value(value, out);
    lab_str_add(out, "\n");
}

/* --- labels --- */

/* As NVML and with it dcgm-exporter write it: "00000000:3B:00.0". */
static void add_bus_label(const char *pci, struct lab_str *out) {
    LAB_AUTO(str, text);
    size_t domain = strcspn(pci, ":");
    if (domain < 8 && pci[domain])
        lab_str_add_repeat(&text, "0", 8 - (int)domain);
    for (; *pci; pci++) {
        char c = (char)toupper((unsigned char)*pci);
        lab_str_add_bytes(&text, &c, 1);
    }
    scrape_add_label("pci_bus_id", text.text, out);
}

/* "NVIDIA H100 80GB HBM3 MIG 1g.10gb" is an instance of the profile 1g.10gb. */
static const char *mig_profile(const char *name) {
    const char *mark = strstr(name, "MIG ");
    return mark ? mark + strlen("MIG ") : name;
}

static const struct lab_entity *gpu_of(const struct lab_scrape *scrape,
                                       const struct lab_entity *entity) {
    if (entity->kind != LAB_ENTITY_MIG)
        return entity;
    if (entity->parent < 0 || entity->parent >= scrape->entity_count ||
        !scrape->entities[entity->parent].told)
        return NULL;
    return &scrape->entities[entity->parent].entity;
}

static void add_mig_labels(const struct lab_entity *entity, struct lab_str *out) {
    if (entity->kind != LAB_ENTITY_MIG)
        return;
    scrape_add_label("GPU_I_PROFILE", mig_profile(entity->name), out);
    add_number_label("GPU_I_ID", entity->index, out);
}

/* The driver's own: what CUDA_VISIBLE_DEVICES leaves this process is nothing to a whole machine. */
static int number_of(const struct lab_entity *gpu) {
    return gpu->numbered ? gpu->driver_index : gpu->index;
}

static void write_dcgm_labels(const struct lab_scrape *scrape, const struct lab_entity *entity,
                              const struct lab_entity *gpu, struct lab_str *out) {
    int minor = gpu->numbered && gpu->driver_minor >= 0 ? gpu->driver_minor : number_of(gpu);
    add_number_label("gpu", number_of(gpu), out);
    scrape_add_label("UUID", gpu->id, out);
    add_bus_label(gpu->pci, out);
    lab_str_printf(out, ",device=\"nvidia%d\"", minor);
    scrape_add_label("modelName", gpu->name, out);
    add_mig_labels(entity, out);
    if (*scrape->setup.host)
        scrape_add_label("Hostname", scrape->setup.host, out);
    if (*scrape->setup.driver)
        scrape_add_label("DCGM_FI_DRIVER_VERSION", scrape->setup.driver, out);
}

/* The same names as above, so that the two kinds can be joined: on (gpu, UUID, GPU_I_ID). */
static void write_own_labels(const struct lab_entity *entity, const struct lab_entity *gpu,
                             struct lab_str *out) {
    add_number_label("gpu", number_of(gpu), out);
    scrape_add_label("UUID", gpu->id, out);
    add_mig_labels(entity, out);
}

static struct scrape_labels *make_labels(const struct lab_scrape *scrape, struct lab_arena *arena) {
    struct scrape_labels *labels =
        lab_arena_alloc(arena, (size_t)scrape->entity_count, sizeof *labels);
    LAB_AUTO(str, own);
    LAB_AUTO(str, dcgm);
    for (int i = 0; i < scrape->entity_count; i++) {
        const struct lab_entity *entity = &scrape->entities[i].entity;
        const struct lab_entity *gpu = gpu_of(scrape, entity);
        if (!scrape->entities[i].told || !gpu)
            continue;
        lab_str_clear(&dcgm);
        lab_str_clear(&own);
        if (gpu->kind == LAB_ENTITY_GPU) {
            write_dcgm_labels(scrape, entity, gpu, &dcgm);
            write_own_labels(entity, gpu, &own);
        }
        if (entity->simulated) {
            scrape_add_label("simulated", "true", &dcgm);
            scrape_add_label("simulated", "true", &own);
        }
        if (gpu->kind == LAB_ENTITY_GPU)
            labels[i].dcgm = lab_arena_strdup(arena, dcgm.text);
        labels[i].own = lab_arena_strdup(arena, own.text);
    }
    return labels;
}

/* --- what is there --- */

static void write_up(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                     struct lab_str *out) {
    const char *name = "gpulab_device_up";
    bool begun = false;
    for (int i = 0; i < scrape->entity_count; i++) {
        const struct scrape_entity *entity = &scrape->entities[i];
        if (!labels[i].own || !entity->heard)
            continue;
        LAB_AUTO(str, kind);
        scrape_add_label("kind", lab_entity_kind_name(entity->entity.kind), &kind);
        if (!begun)
            scrape_add_header(name, "gauge", "1 if it answers, 0 if it was lost", out);
        begun = true;
        scrape_add_sample(name, labels[i].own, kind.text, entity->up, out);
    }
}

static void write_info(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                       struct lab_str *out) {
    const char *name = "gpulab_gpu_info";
    bool begun = false;
    for (int i = 0; i < scrape->entity_count; i++) {
        const struct lab_entity *entity = &scrape->entities[i].entity;
        if (!labels[i].dcgm || !scrape->entities[i].up)
            continue;
        LAB_AUTO(str, more);
        scrape_add_label("id", entity->id, &more);
        scrape_add_label("name", entity->name, &more);
        add_bus_label(gpu_of(scrape, entity)->pci, &more);
        if (entity->node >= 0)
            add_number_label("node", entity->node, &more);
        if (!begun)
            scrape_add_header(name, "gauge", "Name, PCI address and local NUMA node", out);
        begun = true;
        scrape_add_sample(name, labels[i].own, more.text, 1, out);
    }
}

static void write_single(const char *name, const char *type, const char *help, double value,
                         struct lab_str *out) {
    scrape_add_header(name, type, help, out);
    scrape_add_sample(name, "", "", value, out);
}

static void write_sampler(const struct lab_scrape *scrape, struct lab_str *out) {
    const struct lab_sampler_stats *stats = &scrape->stats;
    write_single("gpulab_sampler_interval_seconds", "gauge", "Time between ticks",
                 (double)scrape->setup.interval_ns / (double)LAB_NS_PER_S, out);
    if (!scrape->has_stats)
        return;
    write_single("gpulab_sampler_ticks_total", "counter", "Readings of a device",
                 (double)stats->ticks, out);
    write_single("gpulab_sampler_missed_ticks_total", "counter",
                 "Ticks skipped since a reading took too long", (double)stats->missed, out);
    write_single("gpulab_sampler_dropped_ticks_total", "counter",
                 "Ticks dropped since the queue "
                 "was full",
                 (double)stats->dropped, out);
    write_single("gpulab_sampler_lanes", "gauge", "Probed parts of the machine", stats->lanes, out);
    write_single("gpulab_sampler_lanes_away", "gauge", "Parts that don't answer", stats->lanes_away,
                 out);
    write_single("gpulab_sampler_lateness_p50_seconds", "gauge", "How late ticks are, median",
                 stats->late_p50_ms / 1e3, out);
    write_single("gpulab_sampler_lateness_p99_seconds", "gauge",
                 "How late ticks are, 99th percentile", stats->late_p99_ms / 1e3, out);
    write_single("gpulab_sampler_lateness_max_seconds", "gauge", "How late ticks are, at worst",
                 stats->late_max_ms / 1e3, out);
    write_single("gpulab_sampler_reading_seconds", "gauge",
                 "CPU time of a reading of the slowest probe, mean", stats->cost_ms / 1e3, out);
}

void lab_scrape_write(const struct lab_scrape *scrape, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, version);
    const struct scrape_labels *labels = make_labels(scrape, &arena);
    scrape_write_dcgm(scrape, labels, out);
    write_up(scrape, labels, out);
    write_info(scrape, labels, out);
    scrape_write_metrics(scrape, labels, out);
    scrape_write_processes(scrape, labels, out);
    write_sampler(scrape, out);
    scrape_add_label("version", scrape->setup.version, &version);
    scrape_add_header("gpulab_build_info", "gauge", "This program", out);
    scrape_add_sample("gpulab_build_info", version.text, "", 1, out);
}
