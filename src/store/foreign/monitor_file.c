/* monitor_file.c: a whole recording in one of the formats of other monitors. */
#include "store/foreign/monitor_file_writer.h"

#include "base/list.h"

#include <assert.h>
#include <math.h>

const char *lab_monitor_format_name(enum lab_monitor_format format) {
    static const char *const names[LAB_MONITOR_FORMAT_COUNT] = {
        [LAB_MONITOR_SINGLE] = "single",
        [LAB_MONITOR_MULTI] = "multi",
        [LAB_MONITOR_EXPERIMENT] = "experiment",
        [LAB_MONITOR_SYSTEM] = "system",
        [LAB_MONITOR_CSV] = "csv",
        [LAB_MONITOR_PCIE_CSV] = "pcie-csv",
        [LAB_MONITOR_JSON] = "json",
    };
    assert(format < LAB_MONITOR_FORMAT_COUNT);
    return names[format];
}

struct state {
    struct lab_doc_sink *sink;
    struct lab_monitor_writer writer;
};

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    lab_monitor_writer_entity(&((struct state *)state)->writer, number, entity);
}

static void take_tick(void *state, const struct lab_tick *tick) {
    lab_monitor_writer_tick(&((struct state *)state)->writer, tick);
}

static void take_event(void *state, const struct lab_sample_event *event) {
    lab_monitor_writer_event(&((struct state *)state)->writer, event);
}

static void take_processes(void *state, const struct lab_process_list *list) {
    lab_monitor_writer_processes(&((struct state *)state)->writer, list);
}

static bool wants(void *state, enum lab_entity_kind kind) {
    return lab_monitor_format_shows(((struct state *)state)->writer.format, kind);
}

static int pass_on(void *state) {
    return lab_doc_sink_pass(((struct state *)state)->sink);
}

/* --- what the recording holds --- */

/* As it was asked for, or as the ticks show. */
static int64_t interval_of(const struct lab_recording *recording, enum lab_monitor_format format) {
    if (recording->interval_ns > 0)
        return recording->interval_ns;
    const struct lab_track *track = NULL;
    for (int i = 0; i < recording->track_count && !track; i++)
        if (lab_monitor_format_shows(format, recording->tracks[i].entity.kind) &&
            recording->tracks[i].count > 1)
            track = &recording->tracks[i];
    if (!track)
        return 0;
    int64_t spans[101] = {0};
    size_t count = 0;
    for (; count < 101 && count + 1 < track->count; count++)
        spans[count] = track->times_ns[count + 1] - track->times_ns[count];
    LAB_SORT_NUMBERS(spans, count);
    return spans[count / 2];
}

static bool first_time(const struct lab_recording *recording, int64_t *ret_ns) {
    bool found = false;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->count && (!found || track->times_ns[0] < *ret_ns)) {
            *ret_ns = track->times_ns[0];
            found = true;
        }
    }
    return found;
}

/* For shares of memory, which lists of processes ask for before the first tick. */
static double host_bytes(const struct lab_recording *recording) {
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        int column = lab_entity_column(&track->entity, LAB_METRIC_HOST_TOTAL, -1);
        for (size_t k = 0; column >= 0 && track->values[column] && k < track->count; k++)
            if (track->valid[column][k])
                return (double)track->values[column][k] * lab_metric(LAB_METRIC_HOST_TOTAL)->scale;
    }
    return NAN;
}

static int check_gpu(const struct lab_recording *recording, int gpu, struct lab_err *err) {
    if (gpu < 0 || lab_recording_gpu(recording, gpu))
        return 0;
    LAB_AUTO(str, there);
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].entity.kind == LAB_ENTITY_GPU)
            lab_str_printf(&there, "%s%d", there.length ? ", " : "",
                           recording->tracks[i].entity.index);
    return lab_err_set(err, LAB_ERR_USER, "the recording holds no GPU %d, but %s", gpu, there.text);
}

static int check_content(const struct lab_recording *recording, enum lab_monitor_format format,
                         int gpu, struct lab_err *err) {
    bool any = format == LAB_MONITOR_JSON || format == LAB_MONITOR_CSV;
    for (int i = 0; i < recording->track_count && !any; i++)
        any = lab_monitor_format_shows(format, recording->tracks[i].entity.kind);
    if (!any)
        return lab_err_set(err, LAB_ERR_USER,
                           "the recording holds no %s: choose another format than %s",
                           format == LAB_MONITOR_SYSTEM ? "CPUs, memory or NUMA nodes" : "GPU",
                           lab_monitor_format_name(format));
    return format == LAB_MONITOR_SINGLE ? check_gpu(recording, gpu, err) : 0;
}

/* --- the document around --- */

static void add_head(struct state *state) {
    struct lab_str *out = &state->sink->text;
    struct lab_monitor_writer *writer = &state->writer;
    switch (writer->format) {
    case LAB_MONITOR_EXPERIMENT:
    case LAB_MONITOR_SYSTEM:
        lab_str_add(out, "{\"start_time\": ");
        if (writer->begun) {
            lab_str_add(out, "\"");
            lab_monitor_add_time(out, lab_monitor_wall_ns(writer, writer->begin_ns));
            lab_str_add(out, "\"");
        } else {
            lab_str_add(out, "null");
        }
        lab_str_add(out, ", \"samples\": [");
        break;
    case LAB_MONITOR_CSV:
        lab_monitor_begin_csv(writer);
        break;
    case LAB_MONITOR_PCIE_CSV:
        lab_monitor_begin_pcie(writer);
        break;
    default:
        lab_str_add(out, "[");
    }
}

static void add_tail(struct state *state) {
    enum lab_monitor_format format = state->writer.format;
    if (format == LAB_MONITOR_SINGLE || format == LAB_MONITOR_MULTI)
        lab_str_add(&state->sink->text, "\n]\n");
    else if (format == LAB_MONITOR_EXPERIMENT || format == LAB_MONITOR_SYSTEM)
        lab_str_add(&state->sink->text, "\n]}\n");
}

static void set_up(struct state *state, const struct lab_recording *recording,
                   enum lab_monitor_format format, int gpu) {
    lab_monitor_writer_init(&state->writer, format, &state->sink->text);
    state->writer.gpu = gpu;
    state->writer.recording = recording;
    state->writer.interval_ns = interval_of(recording, format);
    state->writer.begun = first_time(recording, &state->writer.begin_ns);
    state->writer.host_bytes = host_bytes(recording);
    state->writer.simulated_column = recording->simulated;
}

/* Knowing what the survey found. */
static void start_again(struct state *state) {
    struct lab_monitor_survey found = state->writer.survey;
    const struct lab_recording *recording = state->writer.recording;
    lab_monitor_writer_release(&state->writer);
    set_up(state, recording, LAB_MONITOR_EXPERIMENT, -1);
    state->writer.survey = found;
}

/* Which fields an experiment has, and where it begins. */
static int survey(struct state *state, const struct lab_monitor_player *player) {
    const struct lab_recording *recording = state->writer.recording;
    state->writer.survey.open = true;
    state->writer.survey.seen =
        lab_mem_alloc((size_t)recording->track_count + 1, sizeof *state->writer.survey.seen);
    int result = lab_monitor_play(recording, player);
    lab_monitor_writer_end(&state->writer);
    start_again(state);
    state->writer.survey.open = false;
    return result;
}

int lab_monitor_export(const struct lab_recording *recording, enum lab_monitor_format format,
                       int gpu, struct lab_doc_sink *sink, struct lab_err *err) {
    if (check_content(recording, format, gpu, err) < 0)
        return -1;
    if (format == LAB_MONITOR_JSON)
        return lab_monitor_export_json(recording, sink);
    struct state state = {.sink = sink};
    struct lab_monitor_player player = {
        .sink = {take_entity, take_tick, take_event, take_processes, &state},
        .wants = wants,
        .pass = pass_on,
        .state = &state};
    set_up(&state, recording, format, gpu);
    int result = format == LAB_MONITOR_EXPERIMENT ? survey(&state, &player) : 0;
    add_head(&state);
    if (result == 0)
        result = lab_monitor_play(recording, &player);
    lab_monitor_writer_end(&state.writer);
    if (result == 0) {
        add_tail(&state);
        result = lab_doc_sink_flush(sink);
    }
    lab_mem_free(state.writer.survey.seen);
    lab_monitor_writer_release(&state.writer);
    return result;
}
