/* estimate.c: how long a study takes, as text and JSON. */
#include "report/estimate.h"

#include "base/clock.h"
#include "report/study/study_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- times --- */

void lab_report_add_clock(int64_t wall_ns, int64_t now_wall_ns, struct lab_str *out) {
    enum { HALF_YEAR_S = 180 * 86400 };
    time_t then = (time_t)(wall_ns / LAB_NS_PER_S), now = (time_t)(now_wall_ns / LAB_NS_PER_S);
    struct tm at, today;
    char text[64] = "";
    if (!localtime_r(&then, &at) || !localtime_r(&now, &today))
        return;
    bool same_day = at.tm_year == today.tm_year && at.tm_yday == today.tm_yday;
    bool same_year = at.tm_year == today.tm_year;
    /* within half a year the year is clear, also across its end */
    bool near = same_year || (then > now && then - now < HALF_YEAR_S);
    if (strftime(text, sizeof text,
                 same_day ? "%H:%M"
                 : near   ? "%a %d %b %H:%M"
                          : "%Y-%m-%d",
                 &at) > 0)
        lab_str_add(out, text);
}

/* The end's time in ns since 1970; 0 = unknown, or further off than anyone will wait. */
static int64_t end_wall_ns(const struct lab_report_estimate *estimate) {
    enum { YEARS_100 = 100 * 366 };
    if (!(estimate->left_s < YEARS_100 * 86400.0))
        return 0;
    return estimate->now_wall_ns + (int64_t)(estimate->left_s * (double)LAB_NS_PER_S);
}

/* --- the answer --- */

static void add_left(const struct lab_report_estimate *estimate, struct lab_str *out) {
    if (isnan(estimate->left_s)) {
        lab_str_add(out, "unknown time left");
        return;
    }
    lab_str_add(out, "about ");
    lab_str_add_duration(out, estimate->left_s, LAB_DURATION_ROUNDED);
    lab_str_add(out, " left");
}

static void add_title(struct lab_doc *doc, const struct lab_report_estimate *estimate) {
    LAB_AUTO(str, title);
    lab_str_printf(&title, "%s%s: ", estimate->study, estimate->simulated ? " (simulated)" : "");
    if (!estimate->folder) {
        lab_str_printf(&title, "%s, ", estimate->counts);
        if (isnan(estimate->left_s)) {
            lab_str_printf(&title, "time unknown (%s comparable runs)",
                           estimate->guessed < estimate->run_count ? "too few" : "no");
        } else {
            lab_str_add(&title, "about ");
            lab_str_add_duration(&title, estimate->left_s, LAB_DURATION_ROUNDED);
        }
    } else {
        lab_str_printf(&title, "%s, %d of %d run%s done", estimate->state, estimate->done,
                       estimate->run_count, study_plural(estimate->run_count));
        if (estimate->failed)
            lab_str_printf(&title, ", %d failed", estimate->failed);
        if (estimate->left_s != 0) {
            lab_str_add(&title, "; ");
            add_left(estimate, &title);
        }
    }
    lab_doc_text(doc, LAB_DOC_TITLE, "%s", title.text);
}

/* --- runs --- */

/* What was measured is exact; what is expected is rounded as it deserves. NaN adds nothing. */
static void add_time(double seconds, bool measured, struct lab_str *out) {
    if (isnan(seconds))
        return;
    if (measured && seconds < 99.5)
        lab_str_add_time(out, seconds);
    else if (seconds >= 0.95 || seconds <= 0)
        lab_str_add_duration(out, seconds, LAB_DURATION_ROUNDED);
    else
        lab_str_printf(out, "%.1g s", seconds);
}

static void add_time_cell(struct lab_doc *doc, double seconds, bool measured) {
    LAB_AUTO(str, text);
    add_time(seconds, measured, &text);
    lab_doc_cell(doc, "%s", text.text);
}

static void add_row(struct lab_doc *doc, const struct lab_report_estimate *estimate, int index) {
    const struct lab_report_estimate_run *run = &estimate->runs[index];
    for (int i = 0; i < estimate->axes.count; i++)
        lab_doc_cell(doc, "%s", estimate->axes.items[i].values[index]);
    lab_doc_cell(doc, "%d", run->repeat + 1);
    lab_doc_cell(doc, "%s", run->state);
    if (!run->total)
        lab_doc_cell(doc, "%s", "");
    else if (estimate->folder)
        lab_doc_cell(doc, "%lld/%lld", (long long)run->done, (long long)run->total);
    else
        lab_doc_cell(doc, "%lld", (long long)run->total);
    add_time_cell(doc, run->taken_s, true);
    if (!run->ended && isnan(run->left_s))
        lab_doc_cell(doc, "?");
    else
        add_time_cell(doc, run->ended ? NAN : run->left_s, false);
    lab_doc_cell(doc, "%s", run->basis);
}

enum { REPEAT, STATE, ITERATIONS, TAKEN, LEFT, BASIS, VALUE_COUNT };

/* A column for each axis, then values. Axes are never cut for the sake of the past, nor of where a
 * value comes from. */
static void begin_table(struct lab_doc *doc, const struct lab_report_estimate *estimate) {
    static const struct lab_doc_column values[VALUE_COUNT] = {
        [REPEAT] = {NULL, "Repeat", LAB_UNIT_FIGURE},
        [STATE] = {NULL, "State"},
        [ITERATIONS] = {NULL, "Iterations", LAB_UNIT_FIGURE},
        [TAKEN] = {NULL, "Taken", LAB_UNIT_FIGURE, .yields = 2},
        [LEFT] = {NULL, "Left", LAB_UNIT_FIGURE},
        [BASIS] = {NULL, "By", .yields = 1},
    };
    int axes = estimate->axes.count;
    bool repeated = false;
    struct lab_doc_column *columns =
        lab_arena_alloc(lab_doc_arena(doc), (size_t)axes + VALUE_COUNT, sizeof *columns);
    for (int i = 0; i < axes; i++)
        columns[i] = study_axis_column(&estimate->axes.items[i]);
    memcpy(&columns[axes], values, sizeof values);
    for (int i = 0; i < estimate->run_count; i++)
        repeated |= estimate->runs[i].repeat > 0;
    if (!estimate->folder || !repeated)
        columns[axes + REPEAT].title = NULL;
    if (!estimate->folder) {
        columns[axes + STATE].title = columns[axes + TAKEN].title = NULL;
        columns[axes + LEFT].title = "Per run";
    }
    lab_doc_rows(doc, NULL, NULL, columns, axes + VALUE_COUNT);
}

static int by_axes(const void *a, const void *b, void *axes) {
    int x = *(const int *)a, y = *(const int *)b, order = study_axes_compare(axes, x, y);
    return order ? order : x - y;
}

/* Of a study, its runs in their order; of a plan, a run of each point, sorted by the axes. */
static int choose_runs(const struct lab_report_estimate *estimate, int *ret_runs) {
    struct study_axes axes = estimate->axes;
    int count = 0;
    for (int i = 0; i < estimate->run_count; i++)
        if (estimate->folder || estimate->runs[i].repeat == 0)
            ret_runs[count++] = i;
    if (!estimate->folder)
        qsort_r(ret_runs, (size_t)count, sizeof *ret_runs, by_axes, &axes);
    return count;
}

static void add_runs(struct lab_doc *doc, const struct lab_report_estimate *estimate) {
    int *chosen =
        lab_arena_alloc(lab_doc_arena(doc), (size_t)estimate->run_count + 1, sizeof *chosen);
    int count = choose_runs(estimate, chosen);
    int room = estimate->rows_max ? estimate->rows_max : count;
    bool all = count <= room;
    int ended_left_out = 0, left_out = 0;
    begin_table(doc, estimate);
    for (int i = 0; i < count; i++) {
        if (!all && estimate->runs[chosen[i]].ended)
            ended_left_out++;
        else if (room-- > 0)
            add_row(doc, estimate, chosen[i]);
        else
            left_out++;
    }
    LAB_AUTO(str, others);
    if (left_out)
        lab_str_printf(&others, "%d more", left_out);
    if (ended_left_out)
        lab_str_printf(&others, "%s%d that %s ended", left_out ? " and " : "", ended_left_out,
                       ended_left_out == 1 ? "has" : "have");
    if (others.length)
        lab_doc_text(doc, LAB_DOC_PLAIN, "… and %s (--all)", others.text);
}

/* --- what it comes to --- */

static void add_total(const struct lab_report_estimate *estimate, struct lab_str *line) {
    const char *comma = "";
    if (estimate->taken_s > 0) {
        add_time(estimate->taken_s, true, line);
        lab_str_add(line, " taken by runs that are done");
        comma = ", ";
    }
    if (estimate->folder && estimate->left_s == 0) {
        lab_str_printf(line, "%snothing left", comma);
        return;
    }
    lab_str_add(line, comma);
    if (isnan(estimate->left_s)) {
        lab_str_printf(line, "unknown%s: ", estimate->folder ? " time left" : "");
        if (estimate->guessed < estimate->run_count)
            lab_str_printf(line, "%d of its runs have no comparable run on this machine",
                           estimate->guessed);
        else
            lab_str_add(line, estimate->simulated ? LAB_REPORT_SIMULATED_TIME
                                                  : "no comparable run on this machine");
    } else if (estimate->folder) {
        add_left(estimate, line);
    } else {
        lab_str_add(line, "about ");
        lab_str_add_duration(line, estimate->left_s, LAB_DURATION_ROUNDED);
    }
    int64_t end_ns = end_wall_ns(estimate);
    if (end_ns) {
        lab_str_add(line, estimate->running  ? "; it ends at about "
                          : estimate->folder ? "; resumed now, it would end at about "
                                             : "; started now, it would end at about ");
        lab_report_add_clock(end_ns, estimate->now_wall_ns, line);
    }
    if (!isnan(estimate->most_s)) {
        lab_str_add(line, "; the time-outs allow ");
        lab_str_add_duration(line, estimate->most_s, LAB_DURATION_ROUNDED);
        lab_str_add(line, " at most, retries included");
    }
}

static void add_memory(const struct lab_report_estimate *estimate, struct lab_str *line) {
    for (int i = 0; i < estimate->memory_count; i++) {
        const struct lab_report_estimate_memory *item = &estimate->memory[i];
        lab_str_printf(line, "%s%s%s ", i ? "; " : "", item->device,
                       item->simulated ? " (simulated)" : "");
        if (estimate->running) {
            lab_str_add_bytes_binary(line, item->used_bytes);
            lab_str_add(line, " now, ");
        }
        lab_str_add_bytes_binary(line, item->peak_bytes);
        lab_str_add(line, " at most, of ");
        lab_str_add_bytes_binary(line, item->total_bytes);
    }
}

static void add_summary(struct lab_doc *doc, const struct lab_report_estimate *estimate) {
    LAB_AUTO(str, total);
    LAB_AUTO(str, disk);
    LAB_AUTO(str, memory);
    add_total(estimate, &total);
    lab_str_add_bytes_binary(&disk, (double)estimate->disk_bytes);
    add_memory(estimate, &memory);
    lab_doc_line(doc, "Total", "%s", total.text);
    if (estimate->guessed && !isnan(estimate->left_s))
        lab_doc_line(
            doc, "Unknown",
            "%d run%s no comparable one on this machine: counted as the mean of the others",
            estimate->guessed, estimate->guessed == 1 ? " has" : "s have");
    if (estimate->disk_bytes)
        lab_doc_line(doc, "Disk", "about %s", disk.text);
    lab_doc_line(doc, "Memory", "%s", memory.text);
    if (estimate->folder)
        lab_doc_line_whole(doc, "Folder", "%s", estimate->folder);
    if (estimate->running)
        lab_doc_line(doc, "Run by", "%s", estimate->holder);
    if (!estimate->running && estimate->left_s != 0)
        lab_doc_line_whole(doc, estimate->folder ? "Resume" : "Start", "%s", estimate->command);
}

/* --- for programs --- */

static struct lab_value *run_value(const struct lab_report_estimate_run *run,
                                   struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "run_id", run->id);
    lab_value_set_string(arena, map, "state", run->state);
    lab_value_set_bool(arena, map, "ended", run->ended);
    lab_value_set_int(arena, map, "iterations_done", run->done);
    lab_value_set_int(arena, map, "iterations", run->total);
    lab_value_set_float(arena, map, "taken_s", run->taken_s);
    lab_value_set_float(arena, map, "left_s", run->left_s);
    lab_value_set_string(arena, map, "basis", *run->basis ? run->basis : NULL);
    return map;
}

static struct lab_value *memory_value(const struct lab_report_estimate_memory *item,
                                      struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "device", item->device);
    lab_value_set_float(arena, map, "used_mb", item->used_bytes / 0x1p20);
    lab_value_set_float(arena, map, "peak_mb", item->peak_bytes / 0x1p20);
    lab_value_set_float(arena, map, "total_mb", item->total_bytes / 0x1p20);
    lab_value_set_bool(arena, map, "simulated", item->simulated);
    return map;
}

static struct lab_value *estimate_value(const struct lab_report_estimate *estimate,
                                        struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *runs = lab_value_list(arena);
    for (int i = 0; i < estimate->run_count; i++)
        lab_value_append(arena, runs, run_value(&estimate->runs[i], arena));
    struct lab_value *memory = lab_value_list(arena);
    for (int i = 0; i < estimate->memory_count; i++)
        lab_value_append(arena, memory, memory_value(&estimate->memory[i], arena));
    lab_value_set(arena, map, "memory", memory);
    lab_value_set_string(arena, map, "study", estimate->study);
    lab_value_set_string(arena, map, "folder", estimate->folder);
    lab_value_set_string(arena, map, "state", estimate->folder ? estimate->state : "planned");
    lab_value_set_bool(arena, map, "simulated", estimate->simulated);
    lab_value_set_string(arena, map, "command", *estimate->command ? estimate->command : NULL);
    if (!estimate->folder) {
        lab_value_set_int(arena, map, "point_count", estimate->point_count);
        lab_value_set_int(arena, map, "repeat", estimate->repeat);
    }
    lab_value_set_int(arena, map, "run_count", estimate->run_count);
    lab_value_set_int(arena, map, "done", estimate->done);
    lab_value_set_int(arena, map, "failed", estimate->failed);
    lab_value_set_float(arena, map, "taken_s", estimate->taken_s);
    lab_value_set_float(arena, map, "left_s", estimate->left_s);
    lab_value_set_int(arena, map, "unknown", estimate->unknown);
    lab_value_set_int(arena, map, "guessed", estimate->guessed);
    int64_t end_ns = end_wall_ns(estimate);
    lab_value_set_float(arena, map, "end_unix_s",
                        end_ns ? (double)end_ns / (double)LAB_NS_PER_S : NAN);
    lab_value_set_float(arena, map, "most_s", estimate->most_s);
    if (estimate->disk_bytes)
        lab_value_set_int(arena, map, "disk_bytes", estimate->disk_bytes);
    lab_value_set(arena, map, "runs", runs);
    return map;
}

void lab_report_add_estimate(struct lab_doc *doc, const struct lab_report_estimate *estimate) {
    lab_doc_data(doc, NULL, estimate_value(estimate, lab_doc_arena(doc)));
    lab_doc_gap(doc);
    add_title(doc, estimate);
    add_runs(doc, estimate);
    lab_doc_gap(doc);
    add_summary(doc, estimate);
}
