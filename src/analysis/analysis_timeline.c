/* analysis_timeline.c: the picture of what a machine did while runs ran. */
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_build.h"
#include "analysis/variance/phases.h"

#include <math.h>
#include <string.h>

#define GAP_READINGS 20 /* a stretch without readings that is longer stays empty; some slow down */
#define GIB          1073741824.0
#define GPUS_MAX     64
#define NAMES_MAX    4  /* that are shaded each in its own colour */
#define LINES_MOST   24 /* recordings whose line can be followed */
#define RUNS_MAX     60 /* that are shaded: more are noise */
#define USED_PERCENT 1 /* of utilisation: a GPU that no run has and that never reached it is idle */

/* --- short series --- */

struct lab_points lab_points_thin(const double *x, const double *y, size_t count, size_t most,
                                  double gap, struct lab_arena *arena) {
    size_t size = most > 0 && count > most ? (count + most - 1) / most : 1;
    size_t room = 2 * count + 1; /* each may come after a gap, which takes a place too */
    struct lab_points points = {.x = lab_arena_alloc(arena, room, sizeof *points.x),
                                .y = lab_arena_alloc(arena, room, sizeof *points.y)};
    for (size_t i = 0; i < count;) {
        double sum_x = 0, sum_y = 0, n = 0;
        size_t start = i;
        bool jump = i > 0 && gap > 0 && x[i] - x[i - 1] > gap;
        if ((isnan(y[i]) || jump) && points.count > 0 && !isnan(points.y[points.count - 1])) {
            points.x[points.count] = x[i];
            points.y[points.count++] = NAN;
        }
        for (; i < count && i - start < size && !isnan(y[i]); i++) {
            if (i > start && gap > 0 && x[i] - x[i - 1] > gap)
                break;
            sum_x += x[i];
            sum_y += y[i];
            n++;
        }
        if (n > 0) {
            points.x[points.count] = sum_x / n;
            points.y[points.count++] = sum_y / n;
        } else {
            i++;
        }
    }
    return points;
}

double lab_timeline_unit(double span_s, const char **ret_title) {
    *ret_title = span_s < 300 ? "Time [s]" : span_s < 4 * 3600 ? "Time [min]" : "Time [h]";
    return span_s < 300 ? 1 : span_s < 4 * 3600 ? 60 : 3600;
}

/* --- readings --- */

struct timeline {
    const struct lab_recording *const *recordings;
    int recording_count;
    int64_t start_ns, end_ns; /* since 1970 */
    double unit_s;
    const char *time_title;
    int gpus[GPUS_MAX];
    int gpu_count;
    const struct lab_chart_shade *shades; /* behind every panel */
    int shade_count;
    struct lab_arena *arena;
};

static void add_gpu(struct timeline *line, int index) {
    int at = 0;
    while (at < line->gpu_count && line->gpus[at] < index)
        at++;
    if ((at < line->gpu_count && line->gpus[at] == index) || line->gpu_count == GPUS_MAX)
        return;
    memmove(line->gpus + at + 1, line->gpus + at,
            (size_t)(line->gpu_count - at) * sizeof *line->gpus);
    line->gpus[at] = index;
    line->gpu_count++;
}

static void look_at(struct timeline *line) {
    bool any = false;
    for (int r = 0; r < line->recording_count; r++) {
        const struct lab_recording *recording = line->recordings[r];
        for (int t = 0; t < recording->track_count; t++) {
            const struct lab_track *track = &recording->tracks[t];
            if (track->entity.kind == LAB_ENTITY_GPU)
                add_gpu(line, track->entity.index);
            if (track->count == 0)
                continue;
            int64_t first_ns = lab_recording_wall_ns(recording, track->times_ns[0]);
            int64_t last_ns = lab_recording_wall_ns(recording, track->times_ns[track->count - 1]);
            line->start_ns = !any || first_ns < line->start_ns ? first_ns : line->start_ns;
            line->end_ns = !any || last_ns > line->end_ns ? last_ns : line->end_ns;
            any = true;
        }
    }
    line->unit_s =
        lab_timeline_unit(1e-9 * (double)(line->end_ns - line->start_ns), &line->time_title);
}

static bool is_busy(const struct timeline *line, int gpu) {
    for (int r = 0; r < line->recording_count; r++)
        for (int t = 0; t < line->recordings[r]->track_count; t++) {
            const struct lab_track *track = &line->recordings[r]->tracks[t];
            if (track->entity.kind == LAB_ENTITY_GPU && track->entity.index == gpu &&
                lab_track_between(track, LAB_METRIC_UTILIZATION, INT64_MIN, INT64_MAX).max >=
                    USED_PERCENT)
                return true;
        }
    return false;
}

static bool has_gpu(const struct lab_study_table *study, int gpu) {
    for (int i = 0; i < study->run_count; i++)
        for (int r = 0; r < study->runs[i].rank_count; r++)
            if (study->runs[i].ranks[r].gpu == gpu)
                return true;
    return false;
}

/* A GPU that was idle, and that no run of the study had, says nothing about the study. */
static void drop_idle(struct timeline *line, const struct lab_study_table *study) {
    int kept = 0;
    for (int g = 0; g < line->gpu_count; g++)
        if (has_gpu(study, line->gpus[g]) || is_busy(line, line->gpus[g]))
            line->gpus[kept++] = line->gpus[g];
    line->gpu_count = kept;
}

static double place(const struct timeline *line, int64_t wall_ns) {
    return 1e-9 * (double)(wall_ns - line->start_ns) / line->unit_s;
}

struct wanted { /* the sum of up to two metrics; counters by the second */
    enum lab_entity_kind kind;
    int index; /* of a GPU */
    enum lab_metric_id metrics[2];
    int metric_count;
    double divisor;
};

static bool find_columns(const struct lab_track *track, const struct wanted *wanted, int *columns) {
    for (int m = 0; m < wanted->metric_count; m++) {
        columns[m] = lab_entity_column(&track->entity, wanted->metrics[m], -1);
        if (columns[m] < 0 || !track->values[columns[m]])
            return false;
    }
    return true;
}

/* The sum at a tick, of a counter since the tick `before`; NaN = one of them isn't there. */
static double value_at(const struct lab_track *track, const struct wanted *wanted,
                       const int *columns, size_t tick, size_t before) {
    double sum = 0;
    for (int m = 0; m < wanted->metric_count; m++) {
        const struct lab_metric *metric = lab_metric(wanted->metrics[m]);
        const int64_t *values = track->values[columns[m]];
        double value = (double)values[tick] * metric->scale;
        if (!track->valid[columns[m]][tick])
            return NAN;
        if (metric->kind == LAB_METRIC_COUNTER) {
            int64_t since_ns = track->times_ns[tick] - track->times_ns[before];
            value = since_ns > 0 && values[tick] >= values[before]
                        ? 1e9 * (double)(values[tick] - values[before]) * metric->scale /
                              (double)since_ns
                        : (double)NAN;
        }
        sum += value;
    }
    return sum / wanted->divisor;
}

static bool has_all(const struct lab_track *track, const struct wanted *wanted, const int *columns,
                    size_t tick) {
    for (int m = 0; m < wanted->metric_count; m++)
        if (!track->valid[columns[m]][tick])
            return false;
    return true;
}

static size_t read_track(const struct timeline *line, const struct lab_recording *recording,
                         const struct lab_track *track, const struct wanted *wanted, double after,
                         double *x, double *y) {
    int columns[2];
    size_t n = 0, before = 0;
    bool any = false;
    if (!find_columns(track, wanted, columns))
        return 0;
    for (size_t i = 0; i < track->count; i++) {
        if (!has_all(track, wanted, columns, i))
            continue;
        double value = value_at(track, wanted, columns, i, any ? before : i);
        before = i;
        any = true;
        double at = place(line, lab_recording_wall_ns(recording, track->times_ns[i]));
        if (isnan(value) || at <= after)
            continue;
        x[n] = at;
        y[n++] = value;
    }
    return n;
}

/* What one recording ends with and the next begins with are no course of anything. */
static size_t add_gap(double *x, double *y, size_t count) {
    if (count == 0 || isnan(y[count - 1]))
        return count;
    x[count] = x[count - 1];
    y[count] = NAN;
    return count + 1;
}

static struct lab_points read_all(const struct timeline *line, const struct wanted *wanted) {
    size_t room = 1 + (size_t)line->recording_count, n = 0; /* readings, and gaps between */
    for (int r = 0; r < line->recording_count; r++)
        for (int t = 0; t < line->recordings[r]->track_count; t++)
            if (line->recordings[r]->tracks[t].entity.kind == wanted->kind)
                room += line->recordings[r]->tracks[t].count;
    double *x = lab_mem_resize(NULL, room, sizeof *x), *y = lab_mem_resize(NULL, room, sizeof *y);
    double apart = 0;
    for (int r = 0; r < line->recording_count; r++) {
        const struct lab_recording *recording = line->recordings[r];
        n = add_gap(x, y, n);
        for (int t = 0; t < recording->track_count; t++) {
            const struct lab_entity *entity = &recording->tracks[t].entity;
            if (entity->kind != wanted->kind ||
                (entity->kind == LAB_ENTITY_GPU && entity->index != wanted->index))
                continue;
            double after = n > 0 ? x[n - 1] : -INFINITY; /* runs side by side share readings */
            size_t count =
                read_track(line, recording, &recording->tracks[t], wanted, after, x + n, y + n);
            if (count > 1)
                apart = fmax(apart, (x[n + count - 1] - x[n]) / (double)(count - 1));
            n += count;
        }
    }
    struct lab_points points =
        lab_points_thin(x, y, n, LAB_TIMELINE_POINTS, GAP_READINGS * apart, line->arena);
    lab_mem_free(x);
    lab_mem_free(y);
    return points;
}

/* --- panels --- */

static bool add_readings(struct lab_chart_panel *panel, const struct timeline *line,
                         const struct wanted *wanted, const char *title, enum lab_chart_mark mark) {
    struct lab_points points = read_all(line, wanted);
    if (points.count > 0)
        lab_panel_add_series(panel,
                             (struct lab_chart_series){.title = title,
                                                       .mark = mark,
                                                       .x = points.x,
                                                       .y = points.y,
                                                       .count = points.count,
                                                       .colour = 0},
                             line->arena);
    return points.count > 0;
}

static struct lab_chart_panel *add_panel(struct lab_chart *chart, const struct timeline *line,
                                         const char *title, double high) {
    struct lab_chart_axis y = {.title = title, .low = 0, .high = high};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(line->time_title), y, line->arena);
    panel->shades = line->shades;
    panel->shade_count = line->shade_count;
    return panel;
}

/* Without a line it isn't there; returns whether it is. */
static bool close_panel(struct lab_chart *chart, const struct lab_chart_panel *panel) {
    chart->panel_count -= panel->series_count == 0;
    return panel->series_count > 0;
}

/* A row for each GPU, in order; of several ways to know the value, the first that a GPU has. */
static bool add_gpu_panel(struct lab_chart *chart, const struct timeline *line, const char *title,
                          double high, const struct wanted *ways, int way_count) {
    struct lab_chart_panel *panel = add_panel(chart, line, title, high);
    const char **names = NULL;
    int count = 0;
    for (int g = 0; g < line->gpu_count; g++)
        for (int w = 0; w < way_count; w++) {
            struct wanted wanted = ways[w];
            const char *name = lab_arena_printf(line->arena, "GPU %d", line->gpus[g]);
            wanted.index = line->gpus[g];
            if (add_readings(panel, line, &wanted, name, LAB_CHART_ROW)) {
                LAB_ADD(names, count, line->arena) = name;
                break;
            }
        }
    panel->y.names = names;
    panel->y.name_count = count;
    return close_panel(chart, panel);
}

/* Lines of many runs would be a scribble: then a row, as GPUs have. */
static void add_host_panel(struct lab_chart *chart, const struct timeline *line, const char *title,
                           double high, const struct wanted *wanted) {
    struct lab_chart_panel *panel = add_panel(chart, line, title, high);
    bool row = line->recording_count > LINES_MOST;
    static const char *const names[] = {"host"};
    add_readings(panel, line, wanted, row ? names[0] : NULL, row ? LAB_CHART_ROW : LAB_CHART_LINE);
    panel->y.names = row ? names : NULL;
    panel->y.name_count = row;
    close_panel(chart, panel);
}

static void add_panels(struct lab_chart *chart, const struct timeline *line) {
    static const struct wanted utilization[] = {{LAB_ENTITY_GPU, 0, {LAB_METRIC_UTILIZATION}, 1, 1},
                                                {LAB_ENTITY_GPU, 0, {LAB_METRIC_SM_ACTIVE}, 1, 1}};
    static const struct wanted pcie[] = {
        {LAB_ENTITY_GPU, 0, {LAB_METRIC_PCIE_TX_RATE, LAB_METRIC_PCIE_RX_RATE}, 2, 1e9},
        {LAB_ENTITY_GPU, 0, {LAB_METRIC_PCIE_TX_BYTES, LAB_METRIC_PCIE_RX_BYTES}, 2, 1e9},
        {LAB_ENTITY_GPU, 0, {LAB_METRIC_PCIE_TX_RATE}, 1, 1e9}};
    static const struct wanted memory[] = {{LAB_ENTITY_GPU, 0, {LAB_METRIC_MEMORY_USED}, 1, GIB}};
    static const struct wanted host = {LAB_ENTITY_MEMORY, 0, {LAB_METRIC_HOST_USED}, 1, GIB};
    static const struct wanted cpu = {LAB_ENTITY_CPU, 0, {LAB_METRIC_CPU_UTILIZATION}, 1, 1};
    add_gpu_panel(chart, line, "GPU utilisation [%]", 100, utilization, 2);
    add_gpu_panel(chart, line, "PCIe, both ways [GB/s]", NAN, pcie, 3);
    if (!add_gpu_panel(chart, line, "GPU memory used [GiB]", NAN, memory, 1))
        add_host_panel(chart, line, "Host memory used [GiB]", NAN, &host);
    add_host_panel(chart, line, "CPU utilisation, all cores [%]", NAN, &cpu);
}

/* `study`: NULL = the recordings are of no study. */
static bool make_chart(struct timeline line, const struct lab_timeline_segment *segments,
                       int segment_count, const struct lab_study_table *study, bool simulated,
                       struct lab_chart *ret_chart) {
    struct lab_chart_shade *shades =
        lab_arena_alloc(line.arena, (size_t)segment_count + 1, sizeof *shades);
    line.shades = shades;
    line.shade_count = segment_count;
    look_at(&line);
    if (study)
        drop_idle(&line, study);
    for (int i = 0; i < segment_count; i++) /* a run begins before its first reading */
        line.start_ns = segments[i].from_ns < line.start_ns ? segments[i].from_ns : line.start_ns;
    for (int i = 0; i < segment_count; i++)
        shades[i] = (struct lab_chart_shade){
            place(&line, segments[i].from_ns), place(&line, segments[i].until_ns),
            segments[i].title ? segments[i].title : "", segments[i].colour};
    *ret_chart = (struct lab_chart){
        .name = "resource_timeline",
        .title = "Utilisation, PCIe and memory over time",
        .caption = segment_count > 0 ? "Runs or phases are shaded; a gap: no reading." : NULL,
        .columns = 1,
        .simulated = simulated};
    if (line.end_ns > line.start_ns)
        add_panels(ret_chart, &line);
    return ret_chart->panel_count > 0;
}

bool lab_timeline_make(const struct lab_recording *const *recordings, int recording_count,
                       const struct lab_timeline_segment *segments, int segment_count,
                       bool simulated, struct lab_arena *arena, struct lab_chart *ret_chart) {
    struct timeline line = {
        .recordings = recordings, .recording_count = recording_count, .arena = arena};
    return make_chart(line, segments, segment_count, NULL, simulated, ret_chart);
}

/* --- a study --- */

static const char *name_of(const struct lab_study_run *run) {
    return run->phase[0] ? run->phase : run->model;
}

/* Index of a name among those that were met; a new one is added while there is room. */
static int find_name(const char *name, const char **names, int *count) {
    int at = 0;
    while (at < *count && strcmp(names[at], name) != 0)
        at++;
    if (at == *count && *count <= NAMES_MAX)
        names[(*count)++] = name;
    return at;
}

/* Runs of one phase that follow each other are one segment; without phases each run is. More names
 * than there is room for: neighbours differ in their shade alone. */
static int make_segments(const struct lab_study_table *study,
                         struct lab_timeline_segment *segments) {
    static const char *const turns[] = {"a run", "the next run"};
    const char *names[NAMES_MAX + 1];
    const struct lab_study_run *last = NULL;
    int count = 0, name_count = 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].recording)
            find_name(name_of(&study->runs[i]), names, &name_count);
    bool named = name_count <= NAMES_MAX;
    if (named)
        lab_phases_order(names, name_count);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        if (!run->recording)
            continue;
        int64_t from_ns = lab_recording_wall_ns(run->recording, run->run->start_ns);
        int64_t until_ns = lab_recording_wall_ns(run->recording, run->run->end_ns);
        bool more = last && run->phase[0] && strcmp(last->phase, run->phase) == 0;
        last = run;
        if (more && until_ns > segments[count - 1].until_ns)
            segments[count - 1].until_ns = until_ns;
        int colour = named ? find_name(name_of(run), names, &name_count) : count % 2;
        if (!more)
            segments[count++] = (struct lab_timeline_segment){
                from_ns, until_ns, named ? name_of(run) : turns[colour], colour};
    }
    return count <= RUNS_MAX ? count : 0;
}

bool lab_timeline_of_study(const struct lab_study_table *study, struct lab_arena *arena,
                           struct lab_chart *ret_chart) {
    size_t room = (size_t)study->run_count + 1;
    const struct lab_recording **recordings = lab_arena_alloc(arena, room, sizeof *recordings);
    struct lab_timeline_segment *segments = lab_arena_alloc(arena, room, sizeof *segments);
    int count = 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_recording *recording = study->runs[i].recording;
        if (recording && (count == 0 || recordings[count - 1] != recording))
            recordings[count++] = recording;
    }
    struct timeline line = {.recordings = recordings, .recording_count = count, .arena = arena};
    return make_chart(line, segments, make_segments(study, segments), study, study->simulated,
                      ret_chart);
}
