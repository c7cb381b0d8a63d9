/* studies_timings.c: files of timings as the runs of a study. */
#include "load/studies_files.h"

#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "stats/stats.h"
#include "store/tuning/timing_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 2

struct reading {
    struct lab_study_table *table;
    const char **devices; /* distinct ones: a gpu_id is the place in here */
    int device_count;
    int unstamped, untimed; /* files without time stamps, without timings of their best */
    unsigned needs;
    struct lab_arena *arena;
};

/* --- what names tell --- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *const phases[] = {"baseline", "concurrent", "isolated"};

static const char *phase_in(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        const char *at = strstr(name, phases[i]);
        if (at && at + strlen(phases[i]) <= name + length)
            return phases[i];
    }
    return NULL;
}

/* Of its word, its name, the folders above it from the nearest on, or else the name itself. */
static const char *phase_of(const struct lab_studies_timing *timing, const char *stem) {
    const char *found = *timing->phase ? timing->phase : phase_in(stem, strlen(stem));
    const char *end = base_of(timing->path);
    while (!found && end > timing->path) {
        const char *start = --end; /* the slash */
        while (start > timing->path && start[-1] != '/')
            start--;
        found = phase_in(start, (size_t)(end - start));
        end = start;
    }
    return found ? found : stem;
}

/* "flash_attention_v2" of "baseline_0_flash_attention_v2" and "baseline_gpu0_flash_attention_v2",
 * and its GPU; -1 = it names none. */
static const char *kernel_in(const char *stem, struct lab_arena *arena, int *ret_gpu) {
    LAB_AUTO(str, left);
    *ret_gpu = -1;
    for (const char *at = stem; *at; at += strspn(at, "_-.")) {
        size_t length = strcspn(at, "_-.");
        const char *digits = strncmp(at, "gpu", 3) == 0 ? at + 3 : at;
        size_t number = strspn(digits, "0123456789");
        bool gpu = *ret_gpu < 0 && number > 0 && number < 4 && digits + number == at + length;
        if (gpu)
            *ret_gpu = (int)strtol(digits, NULL, 10);
        else if (!phase_in(at, length))
            lab_str_printf(&left, "%s%.*s", left.length ? "_" : "", (int)length, at);
        at += length;
    }
    return left.length ? lab_arena_strdup(arena, left.text) : stem;
}

static const char *device_of(const char *gpu, int named, struct lab_arena *arena) {
    char *end;
    long number = strtol(gpu, &end, 10);
    bool is_number = end > gpu && !*end;
    if (named >= 0 && (!*gpu || is_number || lab_str_starts(gpu, "cuda:")))
        return lab_arena_printf(arena, "cuda:%d", named);
    return is_number ? lab_arena_printf(arena, "cuda:%ld", number) : *gpu ? gpu : "unknown device";
}

static int device_id(struct reading *reading, const char *device) {
    int id = 0;
    while (id < reading->device_count && !lab_str_equal(reading->devices[id], device))
        id++;
    if (id == reading->device_count) {
        LAB_ADD(reading->devices, reading->device_count, reading->arena) = device;
    }
    return id;
}

/* --- runs --- */

struct about { /* one file */
    const struct lab_timing_file *file;
    const char *kernel, *phase, *device, *stem;
};

static bool is_best(const struct lab_timing_file *file, const char *config) {
    return !*config || lab_str_equal(config, file->best_text);
}

/* Those without time stamps are laid one behind the other, from 0 on. */
static size_t take_iterations(const struct lab_timing_file *file, const char *config,
                              struct lab_iteration *iterations) {
    size_t count = 0;
    int64_t at_ns = 0;
    for (size_t i = 0; i < file->timing_count; i++) {
        const struct lab_timing *timing = &file->timings[i];
        if (config ? !lab_str_equal(timing->config, config) : !is_best(file, timing->config))
            continue;
        int64_t start_ns = timing->start_ns >= 0 ? timing->start_ns : at_ns;
        int64_t end_ns = start_ns + llround(1e9 * timing->time_s);
        iterations[count++] = (struct lab_iteration){.start_ns = start_ns, .end_ns = end_ns};
        at_ns = end_ns;
    }
    return count;
}

static double median_of(const struct lab_iteration *iterations, size_t count) {
    LAB_AUTO_FREE double *values = lab_mem_alloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = 1e-9 * (double)(iterations[i].end_ns - iterations[i].start_ns);
    return count > 0 ? lab_stats_median(values, count) : (double)NAN;
}

static struct lab_result *result_of(const struct lab_timing_file *file, struct lab_arena *arena) {
    struct lab_result *result = lab_arena_alloc(arena, 1, sizeof *result);
    *result = lab_result_none;
    result->best_time_ms = 1e3 * file->best_time_s;
    if (file->best_config)
        result->best_config = lab_json_text(file->best_config, arena);
    return result;
}

/* `config`: its timings alone; NULL = those of the best one. */
static void add_run(struct reading *reading, const struct about *about, const char *config) {
    struct lab_arena *arena = reading->arena;
    struct lab_iteration *iterations =
        lab_arena_alloc(arena, about->file->timing_count + 1, sizeof *iterations);
    size_t count = take_iterations(about->file, config, iterations);
    double time_s = median_of(iterations, count);
    if (!config && !isnan(about->file->best_time_s))
        time_s = about->file->best_time_s;
    struct lab_study_rank *rank = lab_arena_alloc(arena, 1, sizeof *rank);
    struct lab_run_rank *kept = lab_arena_alloc(arena, 1, sizeof *kept);
    struct lab_run *run = lab_arena_alloc(arena, 1, sizeof *run);
    struct lab_study_table *table = reading->table;
    const char *model =
        config && *config ? lab_arena_printf(arena, "%s %s", about->kernel, config) : about->kernel;
    *rank = (struct lab_study_rank){.gpu_id = device_id(reading, about->device),
                                    .device = about->device,
                                    .gpu = -1,
                                    .numa_node = -1,
                                    .device_node = -1,
                                    .rate = 1 / time_s,
                                    .iterations = count ? iterations : NULL,
                                    .iteration_count = count,
                                    .apart = true};
    *kept = (struct lab_run_rank){rank->gpu_id, about->device, -1};
    *run = (struct lab_run){.number = table->run_count + 1,
                            .id = about->stem,
                            .workload = about->kernel,
                            .label = model,
                            .options = "{}",
                            .series = "[]",
                            .test = "{}",
                            .iterations = (int64_t)count,
                            .ranks = kept,
                            .rank_count = 1,
                            .state = LAB_RUN_DONE,
                            .error = "",
                            .rate = rank->rate,
                            .rate_low = NAN,
                            .rate_high = NAN,
                            .rate_unit = "iterations/s",
                            .valid = true};
    if (count > 0) {
        run->start_ns = run->start_wall_ns = iterations[0].start_ns;
        run->end_ns = iterations[count - 1].end_ns;
    }
    LAB_ADD(table->runs, table->run_count, reading->arena) =
        (struct lab_study_run){.run = run,
                               .options = lab_value_map(arena),
                               .test = lab_value_map(arena),
                               .result = result_of(about->file, arena),
                               .model = model,
                               .point = lab_arena_printf(arena, "%s_%s", about->device, model),
                               .phase = about->phase,
                               .ranks = rank,
                               .rank_count = 1,
                               .rate = rank->rate,
                               .time_s = time_s,
                               .used = true};
    table->simulated |= lab_run_device_is_simulated(about->device);
}

static void add_configurations(struct reading *reading, const struct about *about) {
    const struct lab_timing_file *file = about->file;
    for (size_t i = 0; i < file->timing_count; i++) {
        if (LAB_FIND(file->timings, i, config, file->timings[i].config) < 0)
            add_run(reading, about, file->timings[i].config);
    }
}

static int read_file(struct reading *reading, const struct lab_studies_timing *timing,
                     struct lab_err *err) {
    struct lab_arena *arena = reading->arena;
    struct lab_timing_file *file = lab_arena_alloc(arena, 1, sizeof *file);
    if (lab_timing_file_read(timing->path, arena, file, err) < 0)
        return -1;
    const char *name = base_of(timing->path), *dot = strrchr(name, '.');
    const char *stem =
        dot && dot > name ? lab_arena_strndup(arena, name, (size_t)(dot - name)) : name;
    int gpu;
    const char *kernel = kernel_in(stem, arena, &gpu);
    struct about about = {.file = file,
                          .kernel = *file->kernel ? file->kernel : kernel,
                          .phase = phase_of(timing, stem),
                          .device = device_of(file->gpu, gpu, arena),
                          .stem = stem};
    reading->unstamped += file->timing_count > 0 && file->timings[0].start_ns < 0;
    if (reading->needs & LAB_STUDY_WITH_CONFIGURATIONS)
        add_configurations(reading, &about);
    else
        add_run(reading, &about, NULL);
    if (reading->table->run_count > 0)
        reading->untimed +=
            reading->table->runs[reading->table->run_count - 1].ranks[0].iterations == NULL;
    return 0;
}

/* --- the table --- */

static int by_start(const void *a, const void *b) {
    const struct lab_study_run *x = a, *y = b;
    if (x->run->start_ns != y->run->start_ns)
        return x->run->start_ns < y->run->start_ns ? -1 : 1;
    return x->run->number < y->run->number ? -1 : 1;
}

static bool is_repeated(const struct lab_study_table *table) {
    for (int i = 0; i < table->run_count; i++)
        for (int k = 0; k < i; k++)
            if (lab_str_equal(table->runs[i].point, table->runs[k].point) &&
                lab_str_equal(table->runs[i].phase, table->runs[k].phase))
                return true;
    return false;
}

static const char *const *make_notes(const struct reading *reading) {
    const char **notes = lab_arena_alloc(reading->arena, NOTES_MAX + 1, sizeof *notes);
    int count = 0;
    if (reading->untimed > 0)
        notes[count++] =
            lab_arena_printf(reading->arena,
                             "%d file%s no single timings of the best configuration "
                             "(detailed_timings): their spread is unknown.",
                             reading->untimed, reading->untimed == 1 ? " has" : "s have");
    if (reading->unstamped > 0)
        notes[count++] = lab_arena_printf(
            reading->arena,
            "%d file%s timings without time stamps, which no recording can be compared with.",
            reading->unstamped, reading->unstamped == 1 ? " has" : "s have");
    return notes;
}

int lab_studies_read_timings(const struct lab_studies_timing *timings, int count, unsigned needs,
                             struct lab_arena *arena, struct lab_study_table *ret_table,
                             struct lab_err *err) {
    struct lab_study_table table = {.name =
                                        count == 1 ? base_of(timings[0].path) : "files of timings",
                                    .folder = ".",
                                    .option = "",
                                    .work_of = lab_studies_work};
    struct reading reading = {.table = &table, .needs = needs, .arena = arena};
    for (int i = 0; i < count; i++)
        if (read_file(&reading, &timings[i], err) < 0)
            return -1;
    if (table.run_count > 0)
        qsort(table.runs, (size_t)table.run_count, sizeof *table.runs, by_start);
    table.planned_count = table.run_count;
    table.repeated = is_repeated(&table);
    table.notes = make_notes(&reading);
    *ret_table = table;
    return 0;
}
