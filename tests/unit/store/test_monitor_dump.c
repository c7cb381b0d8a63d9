/*
 * test_monitor_dump.c: all that is read from a file of each monitor, value by value, against
 * tests/golden. The files are the fuzzer's seeds: those of other programs, our own, and broken ones.
 */
#include "golden.h"
#include "store/foreign/monitor_file_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#define FOLDER LAB_TEST_SOURCE_DIR "/tests/fuzz/corpus/monitor"

static void add_track(const struct lab_recording *recording, const struct lab_track *track,
                      struct lab_str *out) {
    const struct lab_entity *entity = &track->entity;
    lab_str_printf(out, "  %s %d id=%s name=%s pci=%s node=%d parent=%d\n",
                   lab_entity_kind_name(entity->kind), entity->index, entity->id, entity->name,
                   entity->pci, entity->node, entity->parent);
    for (size_t k = 0; k < track->count; k++) {
        lab_str_printf(out,
                       "   %lld:", (long long)lab_recording_wall_ns(recording, track->times_ns[k]));
        for (int c = 0; c < entity->column_count; c++)
            if (track->values[c] && track->valid[c][k])
                lab_str_printf(out, " %d.%d=%lld", entity->columns[c].metric,
                               entity->columns[c].instance, (long long)track->values[c][k]);
        lab_str_add(out, "\n");
    }
}

static void add_processes(const struct lab_recording *recording, struct lab_str *out) {
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        lab_str_printf(out, "  processes at %lld, %d left out\n",
                       (long long)lab_recording_wall_ns(recording, list->time_ns), list->left_out);
        for (int k = 0; k < list->count; k++) {
            const struct lab_process_sample *one = &list->items[k];
            lab_str_printf(out, "   %d %s %s %s cpu %g memory %lld", one->pid, one->user, one->name,
                           one->command, one->cpu_percent, (long long)one->memory_bytes);
            for (int g = 0; g < one->gpu_count; g++)
                lab_str_printf(out, " on %d: %lld %g %g %d%d", one->gpus[g].entity,
                               (long long)one->gpus[g].memory_bytes, one->gpus[g].sm_percent,
                               one->gpus[g].memory_percent, one->gpus[g].compute,
                               one->gpus[g].graphics);
            if (one->parent_pid >= 0 || one->threads || one->node_count || *one->container)
                lab_str_printf(out, " of %d.%llu, user %u, %s, %d threads on node %d of %llx,",
                               one->parent_pid, (unsigned long long)one->start, one->uid,
                               one->container, one->threads, one->cpu_node,
                               (unsigned long long)one->allowed_nodes);
            for (int n = 0; n < one->node_count; n++)
                lab_str_printf(out, " %lld", (long long)one->node_bytes[n]);
            if (one->placement || *one->advice)
                lab_str_printf(out, ", placement %d %s", (int)one->placement, one->advice);
            lab_str_add(out, "\n");
        }
    }
}

static void add_file(const char *name, struct lab_str *out) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_recording recording;
    int fd = open(lab_arena_printf(&test_arena, FOLDER "/%s", name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    int result = lab_monitor_read_text(fd, name, &test_arena, &recording, &err);
    close(fd);
    if (result < 0) {
        lab_str_printf(out, "%s refused: %s\n", name, err.text);
        return;
    }
    lab_str_printf(out, "%s label=%s maker=%s interval=%lld epochs=%d simulated=%d\n", name,
                   recording.label, recording.maker, (long long)recording.interval_ns,
                   recording.epoch_count, recording.simulated);
    for (int i = 0; recording.missing && recording.missing[i]; i++)
        lab_str_printf(out, "  missing: %s\n", recording.missing[i]);
    for (int i = 0; i < recording.track_count; i++)
        add_track(&recording, &recording.tracks[i], out);
    for (size_t i = 0; i < recording.event_count; i++)
        lab_str_printf(out, "  %s of %d at %lld: %lld %s\n",
                       lab_event_kind_name(recording.events[i].kind), recording.events[i].entity,
                       (long long)recording.events[i].time_ns,
                       (long long)recording.events[i].number, recording.events[i].text);
    add_processes(&recording, out);
}

LAB_TEST(all_that_is_read) {
    LAB_AUTO(str, out);
    struct dirent **names;
    setenv("TZ", "UTC", 1);
    int count = scandir(FOLDER, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            add_file(names[i]->d_name, &out);
        free(names[i]);
    }
    assert_true(count > 20);
    free(names);
    assert_golden(out.text, "monitor-files.txt");
}
