/* top_source.c: where `top` gets its samples: the sampler, a demonstration, a recording. */
#include "top/top_source.h"

#include "base/clock.h"
#include "device/watched_gpus.h"
#include "probe/probe_demo_machine.h"
#include "store/foreign/monitor_file.h"

#include <poll.h>
#include <unistd.h>

#define SETTLE_NS (1500 * LAB_NS_PER_MS) /* processes are read once a second */
#define SPAN_NS   (300 * LAB_NS_PER_MS)  /* over which rates mean something */
/* that a driver's start is waited for; eight GPUs that nothing keeps awake take a dozen seconds */
#define OPEN_SCREEN_NS LAB_NS_PER_S
#define OPEN_ONCE_NS   (30 * LAB_NS_PER_S)

/* --- this machine --- */

static void add_notes(struct lab_top_source *source) {
    struct lab_arena *arena = source->arena;
    int count = 0;
    while (lab_probes[count])
        count++;
    source->awaits = lab_sampler_awaits(source->sampler, "nvml");
    if (!source->notes) /* who shows them keeps the list */
        source->notes = lab_arena_alloc(arena, (size_t)count + 2, sizeof *source->notes);
    int at = 0;
    for (int i = 0; i < count; i++) {
        const char *why = lab_sampler_refusal(source->sampler, lab_probes[i]->name);
        if (why && !lab_str_equal(lab_probes[i]->name, "replay"))
            source->notes[at++] =
                lab_arena_printf(arena, "without %s: %s", lab_probes[i]->without, why);
    }
    const char *hidden =
        lab_sampler_refusal(source->sampler, "nvml") ? NULL : lab_device_visible_note(arena);
    if (hidden)
        source->notes[at++] = hidden;
    source->notes[at] = NULL;
}

int lab_top_source_live(const char *selector, struct lab_arena *arena, int64_t interval_ns,
                        bool screen, struct lab_top_source *ret_source, struct lab_err *err) {
    struct lab_top_source source = {.interval_ns = interval_ns, .arena = arena};
    if (lab_machine_open(NULL, &source.machine, err) < 0)
        return -1;
    const struct lab_machine *machine = lab_probe_demo_machine(source.machine, arena);
    struct lab_sampler_config config = {.setup = {.machine = machine,
                                                  .clock = lab_clock_system(),
                                                  .interval_ns = interval_ns,
                                                  .root = "",
                                                  .all_processes = true,
                                                  .speed = 1},
                                        .open_patience_ns = screen ? OPEN_SCREEN_NS : OPEN_ONCE_NS};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (lab_device_watched_gpus(source.machine, selector, arena, &config.gpus, &config.gpu_count,
                                err) < 0 ||
        lab_sampler_open(&config, &source.sampler, err) < 0) {
        lab_machine_close(source.machine);
        return -1;
    }
    struct lab_top_setup setup = {.interval_ns = interval_ns, .machine = machine};
    source.name = lab_arena_strdup(arena, host);
    source.history = lab_top_history_open(&setup);
    add_notes(&source);
    lab_sampler_edge(source.sampler); /* what is read seldom is there at once */
    *ret_source = source;
    return 0;
}

/* --- a recording --- */

int lab_top_source_recording(struct lab_arena *arena, const char *path,
                             struct lab_top_source *ret_source, struct lab_err *err) {
    struct lab_recording *recording = lab_arena_alloc(arena, 1, sizeof *recording);
    const char *study = lab_arena_printf(arena, "%s/study.db", path);
    if (access(study, F_OK) == 0)
        path = study; /* a study's folder */
    if (lab_monitor_read(path, arena, recording, err) < 0)
        return -1;
    int64_t interval_ns = recording->interval_ns > 0 ? recording->interval_ns : LAB_NS_PER_S;
    struct lab_top_source source = {.recording = recording,
                                    .name = path,
                                    .notes = recording->missing,
                                    .interval_ns = interval_ns};
    lab_top_recording_span(recording, &source.begin_ns, &source.end_ns);
    const char *why = recording->missing ? recording->missing[0] : NULL;
    if (!recording->track_count || source.end_ns == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s: holds no samples%s%s", path, why ? ": " : "",
                           why ? why : "");
    struct lab_top_setup setup = {.interval_ns = interval_ns};
    source.history = lab_top_history_open(&setup);
    source.position_ns = source.begin_ns;
    *ret_source = source;
    return 0;
}

void lab_top_source_close(struct lab_top_source *source) {
    lab_top_history_close(source->history);
    lab_sampler_close(source->sampler);
    lab_machine_close(source->machine);
    *source = (struct lab_top_source){.history = NULL};
}

/* --- taking --- */

static bool take_live(struct lab_top_source *source) {
    int64_t before_ns = lab_top_history_time_ns(source->history);
    struct lab_sink_samples sink = lab_top_history_sink(source->history);
    lab_sampler_take(source->sampler, &sink);
    if (source->awaits && !lab_sampler_awaits(source->sampler, "nvml"))
        add_notes(source);
    return lab_top_history_time_ns(source->history) != before_ns;
}

bool lab_top_source_take(struct lab_top_source *source, double speed) {
    if (!source->recording)
        return take_live(source);
    int64_t now_ns = lab_clock_now(lab_clock_system());
    int64_t passed_ns = source->moved_ns ? now_ns - source->moved_ns : 0;
    int64_t before_ns = source->position_ns;
    source->moved_ns = now_ns;
    source->position_ns += (int64_t)((double)passed_ns * speed);
    if (source->position_ns > source->end_ns)
        source->position_ns = source->end_ns;
    lab_top_history_load(source->history, source->recording, source->position_ns);
    return source->position_ns != before_ns;
}

void lab_top_source_seek(struct lab_top_source *source, int64_t time_ns) {
    source->position_ns = time_ns < source->begin_ns ? source->begin_ns
                          : time_ns > source->end_ns ? source->end_ns
                                                     : time_ns;
    lab_top_history_load(source->history, source->recording, source->position_ns);
}

bool lab_top_source_at_end(const struct lab_top_source *source) {
    return source->recording && source->position_ns >= source->end_ns;
}

void lab_top_source_settle(struct lab_top_source *source) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t until_ns = lab_clock_now(clock) + SETTLE_NS;
    while (!lab_top_history_is_whole(source->history, SPAN_NS) && lab_clock_now(clock) < until_ns) {
        struct pollfd ready = {.fd = lab_sampler_fd(source->sampler), .events = POLLIN};
        poll(&ready, 1, 50);
        take_live(source);
    }
}

/* --- time --- */

int64_t lab_top_source_now(const struct lab_top_source *source) {
    return source->recording ? source->position_ns : lab_clock_now(lab_clock_system());
}

int64_t lab_top_source_wall_offset(const struct lab_top_source *source) {
    if (source->recording)
        return lab_recording_wall_ns(source->recording, source->position_ns) - source->position_ns;
    return lab_clock_wall_ns() - lab_clock_now(lab_clock_system());
}

struct lab_top_history *lab_top_source_whole(struct lab_top_source *source) {
    if (!source->recording)
        return source->history;
    struct lab_top_setup setup = {.interval_ns = source->interval_ns,
                                  .window_ns = source->end_ns - source->begin_ns};
    struct lab_top_history *history = lab_top_history_open(&setup);
    lab_top_history_load(history, source->recording, source->end_ns);
    return history;
}
