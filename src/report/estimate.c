/* estimate.c: how long a study takes, as text and JSON. */
#include "report/estimate.h"

#include "base/clock.h"
#include "report/study/study_internal.h"

#include <math.h>
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

static void add_title(const struct lab_report_estimate *estimate, struct lab_style style,
                      struct lab_str *out) {
    struct lab_str title;
    lab_str_init(&title);
    lab_str_printf(&title, "%s%s: ", estimate->study, estimate->simulated ? " (simulated)" : "");
    if (!estimate->folder) {
        lab_str_printf(&title, "%d run%s, ", estimate->run_count,
                       study_plural(estimate->run_count));
        if (isnan(estimate->left_s)) {
            lab_str_printf(&title, "%s like them has run here",
                           estimate->guessed < estimate->run_count ? "too little" : "nothing");
        } else {
            lab_str_add(&title, "about ");
            lab_str_add_duration(&title, estimate->left_s, LAB_DURATION_ROUNDED);
        }
    } else {
        bool ended = estimate->left_s == 0;
        lab_str_printf(&title, "%s, %d of %d run%s done", estimate->state, estimate->done,
                       estimate->run_count, study_plural(estimate->run_count));
        if (estimate->failed)
            lab_str_printf(&title, ", %d failed", estimate->failed);
        if (!ended) {
            lab_str_add(&title, "; ");
            add_left(estimate, &title);
        }
    }
    lab_text_heading(title.text, style, out);
    lab_str_release(&title);
}

/* --- runs --- */

/* What was measured is exact; what is expected is rounded as it deserves. NaN adds nothing. */
static void add_time(double seconds, bool measured, struct lab_str *out) {
    if (isnan(seconds))
        return;
    if (measured && seconds < 99.5)
        lab_str_add_time(out, seconds);
    else
        lab_str_add_duration(out, seconds, LAB_DURATION_ROUNDED);
}

static void add_time_cell(struct lab_table *table, double seconds, bool measured) {
    struct lab_str text;
    lab_str_init(&text);
    add_time(seconds, measured, &text);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

/* Names are never cut for the sake of the past, nor of where a figure comes from. */
struct shown {
    bool taken, basis;
};

static void widen(int *width, int columns) {
    *width = columns > *width ? columns : *width;
}

static int time_columns(double seconds, bool measured) {
    struct lab_str text;
    lab_str_init(&text);
    add_time(seconds, measured, &text);
    int columns = lab_str_columns(text.text);
    lab_str_release(&text);
    return columns;
}

static struct shown fitting(const struct lab_report_estimate *estimate, int columns) {
    enum { GAP = 2, ITERATIONS = 10, BASIS = 8 };
    int name = 0, state = (int)strlen("State");
    int taken = (int)strlen("Taken"), left = (int)strlen("Left");
    for (int i = 0; i < estimate->run_count; i++) {
        const struct lab_report_estimate_run *run = &estimate->runs[i];
        widen(&name, lab_str_columns(run->id));
        widen(&state, lab_str_columns(run->state));
        widen(&taken, time_columns(run->taken_s, true));
        widen(&left, time_columns(run->left_s, false));
    }
    int least = GAP + name + GAP + ITERATIONS + GAP + left + (estimate->folder ? GAP + state : 0);
    least += GAP + BASIS;
    return (struct shown){.taken = estimate->folder && least + GAP + taken <= columns,
                          .basis = least <= columns};
}

static void add_columns(struct lab_table *table, const struct lab_report_estimate *estimate,
                        struct shown shown) {
    lab_table_column(table, "Run", LAB_ALIGN_LEFT);
    if (estimate->folder)
        lab_table_column(table, "State", LAB_ALIGN_LEFT);
    lab_table_column(table, "Iterations", LAB_ALIGN_RIGHT);
    if (shown.taken)
        lab_table_column(table, "Taken", LAB_ALIGN_RIGHT);
    lab_table_column(table, estimate->folder ? "Left" : "Expected", LAB_ALIGN_RIGHT);
    if (shown.basis)
        lab_table_column(table, "By", LAB_ALIGN_LEFT);
}

static void add_row(struct lab_table *table, const struct lab_report_estimate *estimate,
                    const struct lab_report_estimate_run *run, struct shown shown) {
    lab_table_cell(table, "%s", run->id);
    if (estimate->folder)
        lab_table_cell(table, "%s", run->state);
    if (!run->total)
        lab_table_cell(table, "%s", "");
    else if (estimate->folder)
        lab_table_cell(table, "%lld/%lld", (long long)run->done, (long long)run->total);
    else
        lab_table_cell(table, "%lld", (long long)run->total);
    if (shown.taken)
        add_time_cell(table, run->taken_s, true);
    if (run->ended)
        lab_table_cell(table, "%s", "");
    else if (isnan(run->left_s))
        lab_table_cell(table, "?");
    else
        add_time_cell(table, run->left_s, false);
    if (shown.basis)
        lab_table_cell(table, "%s", run->basis);
}

static void add_runs(const struct lab_report_estimate *estimate, struct lab_style style,
                     struct lab_str *out) {
    int room = estimate->rows_max ? estimate->rows_max : estimate->run_count;
    bool all = estimate->run_count <= room;
    int ended_left_out = 0, left_out = 0;
    struct lab_table *table = lab_table_open();
    struct shown shown = fitting(estimate, style.columns);
    add_columns(table, estimate, shown);
    for (int i = 0; i < estimate->run_count; i++) {
        const struct lab_report_estimate_run *run = &estimate->runs[i];
        if (!all && run->ended)
            ended_left_out++;
        else if (room-- > 0)
            add_row(table, estimate, run, shown);
        else
            left_out++;
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
    if (left_out || ended_left_out) {
        lab_str_add(out, "  … and ");
        if (left_out)
            lab_str_printf(out, "%d more", left_out);
        if (ended_left_out)
            lab_str_printf(out, "%s%d that %s ended", left_out ? " and " : "", ended_left_out,
                           ended_left_out == 1 ? "has" : "have");
        lab_str_add(out, " (--all)\n");
    }
}

/* --- what it comes to --- */

/* "  Total     text", wrapped behind the title. */
static void add_line(const char *title, const char *text, struct lab_style style,
                     struct lab_str *out) {
    enum { INDENT = 12 };
    lab_str_printf(out, "  %-*s", INDENT - 2, title);
    lab_text_wrap(text, INDENT, INDENT, style.columns, out);
    lab_str_add(out, "\n");
}

/* As it is, to be pasted: a break in it would be two commands. */
static void add_whole_line(const char *title, const char *text, struct lab_str *out) {
    lab_str_printf(out, "  %-10s%s\n", title, text);
}

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
        lab_str_printf(line, "unknown%s, since ", estimate->folder ? " time left" : "");
        if (estimate->guessed < estimate->run_count)
            lab_str_printf(line, "%d of its runs are unlike any that has run here",
                           estimate->guessed);
        else
            lab_str_add(line, "nothing like it has run here");
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

static void add_summary(const struct lab_report_estimate *estimate, struct lab_style style,
                        struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    add_total(estimate, &line);
    add_line("Total", line.text, style, out);
    if (estimate->guessed && !isnan(estimate->left_s)) {
        lab_str_clear(&line);
        lab_str_printf(&line,
                       "%d run%s unlike any that has run here: in the total by what others took, "
                       "which may be far off",
                       estimate->guessed, estimate->guessed == 1 ? " is" : "s are");
        add_line("Guessed", line.text, style, out);
    }
    if (estimate->disk_bytes) {
        lab_str_clear(&line);
        lab_str_add(&line, "about ");
        lab_str_add_bytes_binary(&line, (double)estimate->disk_bytes);
        add_line("Disk", line.text, style, out);
    }
    if (estimate->memory_count) {
        lab_str_clear(&line);
        add_memory(estimate, &line);
        add_line("Memory", line.text, style, out);
    }
    if (estimate->folder)
        add_whole_line("Folder", estimate->folder, out);
    if (estimate->running && *estimate->holder)
        add_line("Run by", estimate->holder, style, out);
    if (!estimate->running && *estimate->command && estimate->left_s != 0)
        add_whole_line(estimate->folder ? "Resume" : "Start", estimate->command, out);
    lab_str_release(&line);
}

void lab_report_estimate(const struct lab_report_estimate *estimate, struct lab_style style,
                         struct lab_str *out) {
    add_title(estimate, style, out);
    add_runs(estimate, style, out);
    lab_str_add(out, "\n");
    add_summary(estimate, style, out);
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

struct lab_value *lab_report_estimate_value(const struct lab_report_estimate *estimate,
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
