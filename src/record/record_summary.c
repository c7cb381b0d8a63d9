/* record_summary.c: what a recording found, as text and JSON. */
#include "record/record_summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void lab_record_summary_init(struct lab_record_summary *summary, int64_t interval_ns) {
    *summary = (struct lab_record_summary){.interval_ns = interval_ns};
}

void lab_record_summary_release(struct lab_record_summary *summary) {
    for (int i = 0; i < summary->entity_count; i++)
        lab_mem_free((struct lab_column *)summary->entities[i].entity.columns);
    lab_mem_free(summary->entities);
    lab_mem_free(summary->gpus);
    *summary = (struct lab_record_summary){0};
}

/* --- the sink --- */

static struct lab_record_gpu *find_gpu(struct lab_record_summary *summary, int entity) {
    for (int i = 0; i < summary->gpu_count; i++)
        if (summary->gpus[i].entity == entity)
            return &summary->gpus[i];
    return NULL;
}

static void add_gpu(struct lab_record_summary *summary, int number,
                    const struct lab_entity *entity) {
    int at = (int)(&LAB_PUSH(summary->gpus, summary->gpu_count) - summary->gpus);
    if (entity->kind ==
        LAB_ENTITY_MIG) /* behind its GPU and those of its instances that are there */
        for (int before = at; before > 0 && summary->gpus[before - 1].entity != entity->parent &&
                              summary->gpus[before - 1].parent != entity->parent;
             at = --before)
            summary->gpus[before] = summary->gpus[before - 1];
    struct lab_record_gpu *gpu = &summary->gpus[at];
    *gpu = (struct lab_record_gpu){.entity = number,
                                   .parent = entity->kind == LAB_ENTITY_MIG ? entity->parent : -1,
                                   .index = entity->index,
                                   .simulated = entity->simulated,
                                   .peak_memory_bytes = NAN,
                                   .hottest_c = NAN};
    lab_energy_begin(&gpu->energy, lab_energy_gap_ns(summary->interval_ns), INT64_MIN, INT64_MAX);
    snprintf(gpu->name, sizeof gpu->name, "%s", entity->name);
}

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_record_summary *summary = state;
    while (summary->entity_count <= number) {
        LAB_PUSH(summary->entities, summary->entity_count) = (struct lab_record_entity){0};
    }
    summary->entities[number].told = true;
    struct lab_entity *mine = &summary->entities[number].entity;
    lab_mem_free((struct lab_column *)mine->columns);
    *mine = *entity;
    struct lab_column *columns =
        lab_mem_alloc((size_t)entity->column_count + 1, sizeof *entity->columns);
    if (entity->column_count)
        memcpy(columns, entity->columns, (size_t)entity->column_count * sizeof *columns);
    mine->columns = columns;
    mine->id = mine->name = mine->pci = ""; /* they live for the call alone */
    summary->simulated |= entity->simulated;
    summary->host |= entity->kind == LAB_ENTITY_CPU;
    if ((entity->kind == LAB_ENTITY_GPU || entity->kind == LAB_ENTITY_MIG) &&
        !find_gpu(summary, number))
        add_gpu(summary, number, entity);
}

static void add_reasons(struct lab_record_gpu *gpu, double value) {
    if (isnan(value))
        return;
    uint64_t harmful = lab_clock_harmful((uint64_t)value);
    gpu->reason_ticks++;
    gpu->throttled += harmful != 0;
    gpu->reasons |= harmful;
}

static void take_gpu_tick(struct lab_record_gpu *gpu, const struct lab_entity *entity,
                          const struct lab_tick *tick) {
    bool mig = entity->kind == LAB_ENTITY_MIG; /* drivers give less of it */
    double utilization =
        lab_tick_value(entity, tick, mig ? LAB_METRIC_SM_ACTIVE : LAB_METRIC_UTILIZATION, -1);
    double memory = lab_tick_value(entity, tick, LAB_METRIC_MEMORY_USED, -1);
    bool averaged = lab_entity_column(entity, LAB_METRIC_POWER, -1) >= 0;
    double power =
        lab_tick_value(entity, tick, averaged ? LAB_METRIC_POWER : LAB_METRIC_POWER_INSTANT, -1);
    if (!isnan(utilization)) {
        gpu->utilization_sum += utilization;
        gpu->utilization_count++;
    }
    if (!isnan(memory) && !(gpu->peak_memory_bytes >= memory))
        gpu->peak_memory_bytes = memory;
    if (!isnan(power)) {
        gpu->power_sum_w += power;
        gpu->power_count++;
    }
    gpu->hottest_c = fmax(gpu->hottest_c, lab_tick_value(entity, tick, LAB_METRIC_TEMPERATURE, -1));
    lab_energy_take(&gpu->energy, tick->time_ns, power,
                    lab_tick_value(entity, tick, LAB_METRIC_ENERGY, -1));
    add_reasons(gpu, lab_tick_value(entity, tick, LAB_METRIC_CLOCK_REASONS, -1));
    gpu->ticks++;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct lab_record_summary *summary = state;
    if (tick->entity < 0 || tick->entity >= summary->entity_count)
        return;
    const struct lab_entity *entity = &summary->entities[tick->entity].entity;
    struct lab_record_gpu *gpu = find_gpu(summary, tick->entity);
    summary->entities[tick->entity].last_ns = tick->time_ns;
    summary->ticks++;
    if (gpu)
        take_gpu_tick(gpu, entity, tick);
    double cpu = lab_tick_value(entity, tick, LAB_METRIC_CPU_UTILIZATION, -1);
    if (!isnan(cpu)) {
        summary->cpu_sum += cpu;
        summary->cpu_count++;
    }
}

static void take_event(void *state, const struct lab_sample_event *event) {
    struct lab_record_summary *summary = state;
    struct lab_record_gpu *gpu = find_gpu(summary, event->entity);
    if (event->entity < 0 || event->entity >= summary->entity_count ||
        (event->kind != LAB_EVENT_GAP && event->kind != LAB_EVENT_BACK))
        return;
    bool *away = &summary->entities[event->entity].away, was_away = *away;
    *away = event->kind == LAB_EVENT_GAP;
    if (gpu)
        gpu->gaps += *away && !was_away;
}

static void take_processes(void *state, const struct lab_process_list *list) {
    (void)state, (void)list;
}

struct lab_sink_samples lab_record_summary_sink(struct lab_record_summary *summary) {
    return (struct lab_sink_samples){take_entity, take_tick, take_event, take_processes, summary};
}

bool lab_record_summary_is_since(const struct lab_record_summary *summary, int64_t time_ns) {
    for (int i = 0; i < summary->entity_count; i++) {
        const struct lab_record_entity *entity = &summary->entities[i];
        if (entity->told && !entity->away && entity->last_ns < time_ns)
            return false;
    }
    return true;
}

/* --- what it comes to --- */

static double mean(double sum, int64_t count) {
    return count ? sum / (double)count : (double)NAN;
}

/* A figure or a dash. */
static void add_whole(struct lab_doc *doc, double value, const char *unit) {
    if (isnan(value))
        lab_doc_cell(doc, "–");
    else
        lab_doc_cell(doc, "%.0f%s", value, unit);
}

static void add_table(struct lab_doc *doc, const struct lab_record_summary *summary) {
    static const struct lab_doc_column columns[] = {
        {NULL, "GPU", LAB_UNIT_FIGURE},      {NULL, "Model"},
        {NULL, "Utilised", LAB_UNIT_FIGURE}, {NULL, "Peak memory", LAB_UNIT_SIZE},
        {NULL, "Power", LAB_UNIT_FIGURE},    {NULL, "Energy", LAB_UNIT_JOULES},
        {NULL, "Hottest", LAB_UNIT_CELSIUS}, {NULL, "Throttled", LAB_UNIT_FIGURE}};
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < summary->gpu_count; i++) {
        const struct lab_record_gpu *gpu = &summary->gpus[i];
        const char *mig = gpu->parent < 0 ? NULL : strstr(gpu->name, "MIG ");
        lab_doc_cell(doc, gpu->parent < 0 ? "%d" : "└ %d", gpu->index);
        lab_doc_cell(doc, "%s",
                     mig ? mig : gpu->name + (lab_str_starts(gpu->name, "NVIDIA ") ? 7 : 0));
        add_whole(doc, mean(gpu->utilization_sum, gpu->utilization_count), "%");
        lab_doc_figure(doc, gpu->peak_memory_bytes);
        add_whole(doc, mean(gpu->power_sum_w, gpu->power_count), " W");
        lab_doc_figure(doc, lab_energy_of(&gpu->energy).joules);
        lab_doc_figure(doc, gpu->hottest_c);
        add_whole(doc, 100 * mean((double)gpu->throttled, gpu->reason_ticks), "%");
    }
}

/* What a column has no room for. */
static void add_remarks(struct lab_doc *doc, const struct lab_record_gpu *gpu) {
    LAB_AUTO(str, reasons);
    if (gpu->parent >= 0)
        return; /* its GPU's are told */
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        if (gpu->reasons & reason->bit)
            lab_str_printf(&reasons, "%s %s", reasons.length ? "," : "", reason->words);
    if (gpu->throttled)
        lab_doc_code(doc, NULL,
                     lab_arena_printf(lab_doc_arena(doc), "GPU %d was throttled:%s", gpu->index,
                                      reasons.text));
    if (gpu->gaps || !gpu->ticks)
        lab_doc_code(doc, NULL,
                     lab_arena_printf(lab_doc_arena(doc), "GPU %d has no samples%s", gpu->index,
                                      !gpu->ticks      ? ""
                                      : gpu->gaps == 1 ? " for a while"
                                                       : " several times"));
}

void lab_record_summary_add(struct lab_doc *doc, const struct lab_record_summary *summary) {
    add_table(doc, summary);
    for (int i = 0; i < summary->gpu_count; i++)
        add_remarks(doc, &summary->gpus[i]);
    if (summary->cpu_count)
        lab_doc_code(doc, NULL,
                     lab_arena_printf(lab_doc_arena(doc), "CPUs: %.1f%% utilised on average",
                                      mean(summary->cpu_sum, summary->cpu_count)));
    if (summary->simulated)
        lab_doc_code(doc, NULL, "These are simulated devices.");
}

static struct lab_value *gpu_value(const struct lab_record_summary *summary,
                                   const struct lab_record_gpu *gpu, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *reasons = lab_value_list(arena);
    struct lab_energy energy = lab_energy_of(&gpu->energy);
    bool mig = gpu->parent >= 0;
    lab_value_set_int(arena, map, "gpu_index",
                      mig ? summary->entities[gpu->parent].entity.index : gpu->index);
    if (mig)
        lab_value_set_int(arena, map, "instance", gpu->index);
    lab_value_set_string(arena, map, "gpu_name", gpu->name);
    lab_value_set_int(arena, map, "ticks", gpu->ticks);
    lab_value_set_float(arena, map, "mean_utilization_percent",
                        mean(gpu->utilization_sum, gpu->utilization_count));
    lab_value_set_float(arena, map, "peak_memory_bytes", gpu->peak_memory_bytes);
    lab_value_set_float(arena, map, "mean_power_w", mean(gpu->power_sum_w, gpu->power_count));
    lab_value_set_float(arena, map, "energy_j", energy.joules);
    lab_value_set_bool(arena, map, "energy_estimated", energy.estimated);
    lab_value_set_float(arena, map, "peak_temperature_c", gpu->hottest_c);
    lab_value_set_float(arena, map, "throttled_percent",
                        100 * mean((double)gpu->throttled, gpu->reason_ticks));
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
        if (gpu->reasons & reason->bit)
            lab_value_append(arena, reasons, lab_value_string(arena, reason->name));
    lab_value_set(arena, map, "throttle_reasons", reasons);
    lab_value_set_int(arena, map, "gaps", gpu->gaps);
    lab_value_set_bool(arena, map, "simulated", gpu->simulated);
    return map;
}

void lab_record_summary_set(const struct lab_record_summary *summary, struct lab_arena *arena,
                            struct lab_value *map) {
    struct lab_value *gpus = lab_value_list(arena);
    struct lab_value *instances = lab_value_list(arena);
    for (int i = 0; i < summary->gpu_count; i++)
        lab_value_append(arena, summary->gpus[i].parent < 0 ? gpus : instances,
                         gpu_value(summary, &summary->gpus[i], arena));
    lab_value_set(arena, map, "gpus", gpus);
    if (instances->count)
        lab_value_set(arena, map, "mig_instances", instances);
    lab_value_set_float(arena, map, "mean_cpu_percent", mean(summary->cpu_sum, summary->cpu_count));
    lab_value_set_bool(arena, map, "simulated", summary->simulated);
}
