/*
 * scrape_metrics.c: every metric of the model's table under a name of ours. The name follows from
 * the table: gpulab_gpu_ for GPUs and their instances, gpulab_ for the host; then the metric's
 * name, its base unit, and _total for a counter. So a new metric is served without a line here.
 */
#include "serve/scrape_internal.h"

#include <string.h>

static const struct unit {
    const char *unit, *suffix;
    double factor; /* to the base unit */
} units[] = {
    {"%", "_ratio", 0.01},  {"B", "_bytes", 1},   {"B/s", "_bytes_per_second", 1},
    {"W", "_watts", 1},     {"J", "_joules", 1},  {"C", "_celsius", 1},
    {"MHz", "_hertz", 1e6}, {"s", "_seconds", 1}, {"", "", 1},
};

static const struct unit *unit_of(const struct lab_metric *metric) {
    size_t last = sizeof units / sizeof *units - 1, i = 0;
    while (i < last && strcmp(units[i].unit, metric->unit) != 0)
        i++;
    return &units[i];
}

static void write_name(const struct lab_metric *metric, bool gpu, struct lab_str *out) {
    const struct unit *unit = unit_of(metric);
    size_t length = strlen(metric->name);
    if (strcmp(metric->unit, "B/s") == 0 && lab_str_ends(metric->name, "_rate"))
        length -= strlen("_rate"); /* the unit says so */
    lab_str_add(out, gpu ? "gpulab_gpu_" : "gpulab_");
    lab_str_add_bytes(out, metric->name, length);
    if (!lab_str_ends(out->text, unit->suffix))
        lab_str_add(out, unit->suffix);
    if (metric->kind == LAB_METRIC_COUNTER)
        lab_str_add(out, "_total");
}

/* A number that the metric has several of: what it counts, by the metric's name. */
static const char *instance_label(const struct lab_metric *metric) {
    if (lab_str_starts(metric->name, "core_"))
        return "core";
    return lab_str_starts(metric->name, "node_") ? "node" : "link";
}

/* The table's title without its place for the instance, which is a label here. */
static void write_help(const struct lab_metric *metric, struct lab_str *out) {
    const char *mark = strstr(metric->title, "[n]");
    if (!mark) {
        lab_str_add(out, metric->title);
        return;
    }
    size_t length = (size_t)(mark - metric->title);
    bool node = length >= 10 && strncmp(mark - 10, "NUMA node ", 10) == 0;
    lab_str_add_bytes(out, metric->title, length - (node ? 10 : 1));
    lab_str_add(out, node ? "a NUMA node" : "");
    lab_str_add(out, lab_str_starts(metric->name, "core_") ? " of a logical CPU" : "");
}

/* --- one name --- */

struct family {
    const struct lab_scrape *scrape;
    const struct scrape_labels *labels;
    int metric;
    bool gpu;
    struct lab_str name;
    struct lab_str *out;
    bool begun;
};

static bool belongs(const struct family *family, int number) {
    const struct scrape_entity *entity = &family->scrape->entities[number];
    return family->labels[number].own && entity->up &&
           (family->labels[number].dcgm != NULL) == family->gpu;
}

static void begin(struct family *family, const struct lab_metric *metric) {
    if (family->begun)
        return;
    LAB_AUTO(str, help);
    write_help(metric, &help);
    if (metric->kind == LAB_METRIC_FLAGS)
        lab_str_add(&help, ", as the driver's bits");
    scrape_add_header(family->name.text, metric->kind == LAB_METRIC_COUNTER ? "counter" : "gauge",
                      help.text, family->out);
    family->begun = true;
}

static void write_entity(struct family *family, int number, struct lab_str *instance) {
    const struct scrape_entity *entity = &family->scrape->entities[number];
    const struct lab_metric *metric = lab_metric((enum lab_metric_id)family->metric);
    for (int i = 0; i < entity->entity.column_count; i++) {
        const struct lab_column *column = &entity->entity.columns[i];
        if (column->metric != family->metric || !entity->columns[i].known)
            continue;
        begin(family, metric);
        lab_str_clear(instance);
        if (column->instance >= 0)
            lab_str_printf(instance, "%s=\"%d\"", instance_label(metric), column->instance);
        scrape_add_sample(family->name.text, family->labels[number].own, instance->text,
                          (double)entity->columns[i].value * metric->scale *
                              unit_of(metric)->factor,
                          family->out);
    }
}

/* The bits of a GPU one by one, which alerts can use. */
static void write_reasons(const struct family *family) {
    const char *name = "gpulab_gpu_clock_event_reason";
    bool begun = false;
    for (int i = 0; i < family->scrape->entity_count; i++) {
        const struct scrape_entity *entity = &family->scrape->entities[i];
        if (!belongs(family, i))
            continue;
        int column = lab_entity_column(&entity->entity, LAB_METRIC_CLOCK_REASONS, -1);
        if (column < 0 || !entity->columns[column].known)
            continue;
        if (!begun)
            scrape_add_header(name, "gauge", "1 while clocks are lowered for this reason",
                              family->out);
        begun = true;
        for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++) {
            LAB_AUTO(str, label);
            scrape_add_label("reason", reason->name, &label);
            scrape_add_sample(name, family->labels[i].own, label.text,
                              ((uint64_t)entity->columns[column].value & reason->bit) != 0,
                              family->out);
        }
    }
}

void scrape_write_metrics(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                          struct lab_str *out) {
    LAB_AUTO(str, instance);
    for (int group = 0; group < 2; group++)
        for (int metric = 0; metric < LAB_METRIC_COUNT; metric++) {
            struct family family = {scrape, labels, metric, group == 0, .out = out};
            lab_str_init(&family.name);
            write_name(lab_metric((enum lab_metric_id)metric), family.gpu, &family.name);
            for (int i = 0; i < scrape->entity_count; i++)
                if (belongs(&family, i))
                    write_entity(&family, i, &instance);
            if (metric == LAB_METRIC_CLOCK_REASONS && family.gpu)
                write_reasons(&family);
            lab_str_release(&family.name);
        }
}
