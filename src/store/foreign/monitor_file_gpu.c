/* monitor_file_gpu.c: records of GPUs: of one, of all, of an experiment. */
#include "store/foreign/monitor_file_writer.h"

#include "base/clock.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

static void begin_record(struct lab_monitor_writer *writer) {
    lab_str_add(writer->out, writer->records++ ? ",\n{" : "\n{");
}

static void add_reasons(struct lab_str *out, const struct lab_monitor_gpu *gpu) {
    double held = gpu->held[LAB_METRIC_CLOCK_REASONS];
    const char *comma = "";
    lab_str_add(out,
                isnan(held) ? ", \"clock_event_reasons\": null" : ", \"clock_event_reasons\": [");
    for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit && held > 0;
         reason++) {
        if (!((uint64_t)held & reason->bit))
            continue;
        lab_str_printf(out, "%s\"%s\"", comma, reason->name);
        comma = ", ";
    }
    lab_str_add(out, isnan(held) ? "" : "]");
}

static void add_field(struct lab_str *out, const struct lab_monitor_source *source,
                      const struct lab_monitor_field *field) {
    lab_str_printf(out, ", \"%s\": ", field->key);
    lab_monitor_add_number(out, source->gpu.held[field->what] / field->unit, field->decimals,
                           "null");
}

/* "gpu0" is what a reader calls one of which no file told the name. */
static bool has_uuid(const struct lab_entity *entity) {
    char made[32];
    snprintf(made, sizeof made, "%s%d", lab_entity_kind_name(entity->kind), entity->index);
    return *entity->id && strcmp(entity->id, made) != 0;
}

/* `whole`: what is unknown is null; else it is left out. */
static void add_rest(struct lab_str *out, const struct lab_monitor_source *source, bool whole) {
    bool known = has_uuid(&source->entity);
    if (whole || !isnan(source->gpu.held[LAB_METRIC_CLOCK_REASONS]))
        add_reasons(out, &source->gpu);
    if (known || whole)
        lab_str_add(out, ", \"gpu_uuid\": ");
    if (known)
        lab_monitor_add_string(out, source->entity.id);
    else if (whole)
        lab_str_add(out, "null");
    if (source->entity.simulated)
        lab_str_add(out, ", \"simulated\": true");
}

static void add_gpu(struct lab_str *out, const struct lab_monitor_source *source) {
    lab_str_printf(out, "\"gpu_index\": %d, \"gpu_name\": ", source->entity.index);
    lab_monitor_add_string(out, source->entity.name);
    for (const struct lab_monitor_field *field = lab_monitor_gpu_fields; field->key; field++)
        add_field(out, source, field);
    add_rest(out, source, true);
}

static void add_stamp(struct lab_monitor_writer *writer, int64_t time_ns) {
    lab_str_add(writer->out, "\"timestamp\": \"");
    lab_monitor_add_time(writer->out, lab_monitor_wall_ns(writer, time_ns));
    lab_str_add(writer->out, "\"");
}

void lab_monitor_write_single(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                              const struct lab_tick *tick) {
    lab_monitor_gpu_pass(&source->gpu, &source->entity, tick);
    begin_record(writer);
    add_stamp(writer, tick->time_ns);
    lab_str_add(writer->out, ", ");
    add_gpu(writer->out, source);
    lab_str_add(writer->out, "}");
}

/* --- all GPUs of a group --- */

enum { USED, TOTAL, UTILIZATION, POWER, TEMPERATURE, SUMMED };

struct sums {
    struct {
        double sum, most;
        int count;
    } of[SUMMED];
    double both_used, both_total; /* of GPUs of which both are known */
    int count;
    bool simulated;
};

static void add_to_sums(struct sums *sums, const struct lab_monitor_source *source) {
    static const enum lab_metric_id metrics[SUMMED] = {
        LAB_METRIC_MEMORY_USED, LAB_METRIC_MEMORY_TOTAL, LAB_METRIC_UTILIZATION, LAB_METRIC_POWER,
        LAB_METRIC_TEMPERATURE};
    double values[SUMMED];
    for (int i = 0; i < SUMMED; i++) {
        values[i] = source->gpu.held[metrics[i]];
        if (isnan(values[i]))
            continue;
        sums->of[i].most = sums->of[i].count ? fmax(sums->of[i].most, values[i]) : values[i];
        sums->of[i].sum += values[i];
        sums->of[i].count++;
    }
    sums->count++;
    sums->simulated |= source->entity.simulated;
    if (!isnan(values[USED]) && !isnan(values[TOTAL])) {
        sums->both_used += values[USED];
        sums->both_total += values[TOTAL];
    }
}

static double total_of(const struct sums *sums, int which) {
    return sums->of[which].count ? sums->of[which].sum : (double)NAN;
}

static void add_sum(struct lab_str *out, const char *key, double value, int decimals) {
    lab_str_printf(out, "\"%s\": ", key);
    lab_monitor_add_number(out, value, decimals, "null");
    lab_str_add(out, ", ");
}

static void add_sums(struct lab_str *out, const struct sums *sums) {
    double mib = 1048576.0;
    lab_str_add(out, "], \"aggregate_stats\": {");
    add_sum(out, "total_memory_used", total_of(sums, USED) / mib, 4);
    add_sum(out, "total_memory_total", total_of(sums, TOTAL) / mib, 4);
    add_sum(out, "total_memory_percent",
            sums->both_total > 0 ? 100 * sums->both_used / sums->both_total : (double)NAN, 2);
    add_sum(out, "average_utilization", total_of(sums, UTILIZATION) / sums->of[UTILIZATION].count,
            2);
    add_sum(out, "total_power", total_of(sums, POWER), 3);
    add_sum(out, "max_temperature",
            sums->of[TEMPERATURE].count ? sums->of[TEMPERATURE].most : (double)NAN, 0);
    lab_str_printf(out, "\"gpu_count\": %d}", sums->count);
    if (sums->simulated)
        lab_str_add(out, ", \"simulated\": true");
}

/* Of a GPU that the recording knows nothing of: its number alone. */
static void add_place(struct lab_monitor_writer *writer, int index) {
    lab_str_printf(writer->out, "{\"gpu_id\": %d", index);
    for (int i = 0; i < LAB_MONITOR_EXPERIMENT_FIELDS; i++)
        if (writer->survey.shown[i])
            lab_str_printf(writer->out, ", \"%s\": null", lab_monitor_experiment_fields[i].key);
    lab_str_add(writer->out, "}, ");
}

#define HELD_NS (2 * LAB_NS_PER_S)

/* What never has a value is left out. A GPU that is silent for longer than a late answer takes is
 * marked: its values are the last ones. */
static void add_held(struct lab_monitor_writer *writer, const struct lab_monitor_source *source) {
    for (int i = 0; i < LAB_MONITOR_EXPERIMENT_FIELDS; i++)
        if (writer->survey.shown[i])
            add_field(writer->out, source, &lab_monitor_experiment_fields[i]);
    if (!source->in_group && writer->group_time_ns - source->held_ns > HELD_NS)
        lab_str_add(writer->out, ", \"repeated\": true");
}

static void add_element(struct lab_monitor_writer *writer, struct lab_monitor_source *source) {
    if (writer->format == LAB_MONITOR_MULTI) {
        add_gpu(writer->out, source);
        return;
    }
    lab_str_printf(writer->out, "\"gpu_id\": %d", source->entity.index);
    add_held(writer, source);
    add_rest(writer->out, source, false);
    lab_str_add(writer->out, ", \"gpu_name\": ");
    lab_monitor_add_string(writer->out, source->entity.name);
}

/* --- the start of an experiment --- */

#define EARLY_NS (2 * LAB_NS_PER_S) /* what has no value by then is not waited for */

/* Some GPU has no value yet of a field of which it gets one later. Rates need two readings; the
 * monitor whose files these are waits for its first ones. */
static bool is_early(const struct lab_monitor_writer *writer) {
    const struct lab_monitor_survey *survey = &writer->survey;
    if (writer->group_time_ns < survey->first_ns)
        return true;
    if (writer->records > 0 || writer->group_time_ns - survey->first_ns >= EARLY_NS)
        return false;
    for (int i = 0; i < writer->source_count; i++)
        for (int f = 0; writer->sources[i].in_group && f < LAB_MONITOR_EXPERIMENT_FIELDS; f++)
            if (survey->seen[i][f] &&
                isnan(writer->sources[i].gpu.held[lab_monitor_experiment_fields[f].what]))
                return true;
    return false;
}

/* Whether all GPUs that the recording has ticks of are in the group. */
static bool is_whole(const struct lab_monitor_writer *writer) {
    for (int i = 0; i < writer->source_count; i++)
        if (writer->sources[i].told && !writer->sources[i].in_group && writer->recording &&
            i < writer->recording->track_count && writer->recording->tracks[i].count > 0)
            return false;
    return true;
}

/* Takes note of the group's values. True: no record of an experiment is written of it. */
static bool is_left_out(struct lab_monitor_writer *writer) {
    struct lab_monitor_survey *survey = &writer->survey;
    if (writer->format != LAB_MONITOR_EXPERIMENT)
        return false;
    for (int i = 0; i < writer->source_count; i++)
        for (int f = 0; writer->sources[i].in_group && f < LAB_MONITOR_EXPERIMENT_FIELDS; f++) {
            const struct lab_monitor_field *field = &lab_monitor_experiment_fields[f];
            bool known = !isnan(writer->sources[i].gpu.held[field->what]);
            writer->sources[i].held_ns = writer->group_time_ns;
            survey->shown[f] |= known;
            survey->seen[i][f] |= known;
        }
    if (!survey->open)
        return is_early(writer);
    /* one that comes later isn't waited for */
    bool soon = !survey->begun || writer->group_time_ns - survey->first_ns < EARLY_NS;
    bool whole = !survey->whole && soon && is_whole(writer);
    survey->first_ns = whole || !survey->begun ? writer->group_time_ns : survey->first_ns;
    survey->whole |= whole;
    survey->begun = true;
    return true;
}

/* --- a group --- */

/* Those of the group, by index. Scripts look for GPU n of an experiment at place n: there, one that
 * gave no answer has a place too. Returns how many. */
static int find_members(const struct lab_monitor_writer *writer,
                        struct lab_monitor_source **members) {
    int count = 0;
    for (int i = 0; i < writer->source_count; i++) {
        struct lab_monitor_source *source = &writer->sources[i];
        if (!source->told || (!source->in_group && writer->format == LAB_MONITOR_MULTI))
            continue;
        if (!source->in_group)
            memset(source->valid, 0,
                   LAB_VALID_WORDS((size_t)source->entity.column_count) * sizeof *source->valid);
        if (!source->in_group)
            source->tick = (struct lab_tick){
                .time_ns = writer->group_time_ns, .values = source->values, .valid = source->valid};
        members[count++] = source;
    }
    LAB_SORT_REFS(members, count, LAB_BY(*members, entity.index));
    return count;
}

void lab_monitor_write_group(struct lab_monitor_writer *writer) {
    bool multi = writer->format == LAB_MONITOR_MULTI;
    LAB_AUTO_FREE struct lab_monitor_source **members =
        lab_mem_alloc((size_t)writer->source_count, sizeof(struct lab_monitor_source *));
    struct sums sums = {0};
    int count = find_members(writer, members);
    for (int i = 0; i < count; i++)
        lab_monitor_gpu_pass(&members[i]->gpu, &members[i]->entity, &members[i]->tick);
    if (is_left_out(writer))
        return;
    begin_record(writer);
    if (multi) {
        add_stamp(writer, writer->group_time_ns);
    } else {
        lab_str_add(writer->out, "\"timestamp\": ");
        lab_monitor_add_seconds(writer->out, writer->group_time_ns - writer->begin_ns);
    }
    lab_str_printf(writer->out, ", \"%s\": [", multi ? "multi_gpu_data" : "gpus");
    for (int i = 0, place = 0; i < count; i++, place++) {
        lab_str_add(writer->out, i ? ", " : "");
        for (; !multi && place < members[i]->entity.index; place++)
            add_place(writer, place);
        lab_str_add(writer->out, "{");
        add_element(writer, members[i]);
        lab_str_add(writer->out, "}");
        add_to_sums(&sums, members[i]);
    }
    if (multi)
        add_sums(writer->out, &sums);
    else
        lab_str_add(writer->out, "]");
    lab_str_add(writer->out, "}");
}
