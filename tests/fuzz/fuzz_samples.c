/*
 * fuzz_samples.c: a recording with any rows either is refused with a message or reads as tracks
 * whose times ascend, which the analyses of recordings take. What its packed ticks may hold:
 * fuzz_recording.c.
 * covers: src/store/recording/recording_read.c src/store/recording/recording_read_process.c
 * covers: src/store/recording/recording_salvage.c src/store/recording/recording_open.c
 */
#include "analysis/analysis.h"
#include "base/clock.h"
#include "rows.h"
#include "store/recording/recording.h"

#define TICKS 40

static const struct lab_column columns[] = {{LAB_METRIC_UTILIZATION, -1}, {LAB_METRIC_POWER, -1}};

static void send(const struct lab_sink_samples *sink, int64_t *now_ns) {
    const struct lab_entity gpu = {.kind = LAB_ENTITY_GPU,
                                   .id = "GPU-5f0c",
                                   .name = "NVIDIA H200",
                                   .pci = "0000:3b:00.0",
                                   .parent = -1,
                                   .columns = columns,
                                   .column_count = 2};
    const struct lab_sample_event xid = {
        .kind = LAB_EVENT_XID, .number = 79, .text = "off the bus"};
    sink->entity(sink->state, 0, &gpu);
    for (int i = 0; i < TICKS; i++) {
        const int64_t values[] = {i, 350000 + i};
        const uint64_t valid = 3;
        *now_ns = i * LAB_NS_PER_S / 10;
        const struct lab_tick tick = {
            .entity = 0, .time_ns = *now_ns, .values = values, .valid = &valid};
        sink->tick(sink->state, &tick);
    }
    sink->event(sink->state, &xid);
}

static void make_recording(void) {
    int64_t now_ns = 0;
    struct lab_clock clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {
        .interval_ns = LAB_NS_PER_S / 10, .note = "sleep 5", .clock = &clock};
    struct lab_recorder *recorder;
    require(lab_recorder_create(folder_file("a.db"), &setup, &recorder, NULL) == 0);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    send(&sink, &now_ns);
    require(lab_recorder_close(recorder, NULL) == 0);
}

static void analyse(const struct lab_recording *recording, size_t turn, struct lab_arena *arena) {
    const struct lab_labelled_recording named = {.label = "a", .recording = recording};
    const struct lab_analysis_input input = {.recordings = &named, .recording_count = 1};
    size_t seen = 0;
    for (int i = 0; lab_analyses[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_analysis_result found;
        if (lab_analyses[i]->source == LAB_ANALYSIS_OF_RECORDINGS && seen++ % 4 == turn % 4 &&
            lab_analysis_run(lab_analyses[i], NULL, &input, arena, &found, &err) < 0)
            require_error(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rows rows;
    if (!rows.scratch) {
        make_recording();
        rows_learn(&rows, "a.db");
    }
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_recording recording;
    if (lab_recording_read(rows_write(&rows, "a.db", data, size), NULL, &arena, &recording, &err) <
        0) {
        require_error(&err);
        return 0;
    }
    for (int i = 0; i < recording.track_count; i++)
        for (size_t k = 1; k < recording.tracks[i].count; k++)
            require(recording.tracks[i].times_ns[k] >= recording.tracks[i].times_ns[k - 1]);
    analyse(&recording, size, &arena);
    return 0;
}
