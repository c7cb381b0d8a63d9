/* study_samples.c: a study's samples, read once for each epoch and cut by run. */
#include "load/study_samples.h"

#include "store/recording/recording.h"

struct lab_study_samples_epoch {
    int64_t epoch, from_ns, until_ns; /* of all of its runs */
    struct lab_recording *recording;  /* NULL = not read yet */
};

static struct lab_study_samples_epoch *find_epoch(const struct lab_study_samples *samples,
                                                  int64_t epoch) {
    for (int i = samples->epoch_count - 1; i >= 0; i--)
        if (samples->epochs[i].epoch == epoch)
            return &samples->epochs[i];
    return NULL;
}

struct lab_study_samples lab_study_samples_of(struct lab_store *store, const struct lab_run *runs,
                                              int count, bool without_processes,
                                              struct lab_arena *arena) {
    struct lab_study_samples samples = {
        .store = store, .arena = arena, .without_processes = without_processes};
    for (int i = 0; i < count; i++) {
        const struct lab_run *run = &runs[i];
        struct lab_study_samples_epoch *own = find_epoch(&samples, run->epoch);
        if (run->state != LAB_RUN_DONE)
            continue;
        if (!own) {
            LAB_ADD(samples.epochs, samples.epoch_count, arena) =
                (struct lab_study_samples_epoch){run->epoch, run->start_ns, run->end_ns, NULL};
            continue;
        }
        own->from_ns = run->start_ns < own->from_ns ? run->start_ns : own->from_ns;
        own->until_ns = run->end_ns > own->until_ns ? run->end_ns : own->until_ns;
    }
    return samples;
}

const struct lab_recording *lab_study_samples_read(struct lab_study_samples *samples,
                                                   const struct lab_run *run, struct lab_err *err) {
    struct lab_study_samples_epoch *own = find_epoch(samples, run->epoch);
    if (!own->recording) {
        struct lab_recording *recording = lab_arena_alloc(samples->arena, 1, sizeof *recording);
        struct lab_recording_query query = {.from_ns = own->from_ns,
                                            .until_ns = own->until_ns,
                                            .epoch = own->epoch,
                                            .without_processes = samples->without_processes};
        if (lab_recording_read_store(samples->store, &query, samples->arena, recording, err) < 0)
            return NULL;
        own->recording = recording;
    }
    return lab_recording_between(own->recording, run->start_ns, run->end_ns, samples->arena);
}
