/*
 * plan.c: what a study will do, before it does it. How long it takes is known where at least half
 * of its runs were timed before, if with other counts; else what is shown is the limit that their
 * time-outs set.
 */
#include "report/report.h"
#include "report/study/study_internal.h"

#include <math.h>

#define RUNS_SHOWN    20
#define DEVICES_SHOWN 16

/* --- parts --- */

/* "  Order     text", wrapped behind the title. */
static void add_line(const char *title, const char *text, struct lab_style style,
                     struct lab_str *out) {
    enum { INDENT = 12 };
    lab_str_printf(out, "  %-*s", INDENT - 2, title);
    lab_text_wrap(text, INDENT, INDENT, style.columns, out);
    lab_str_add(out, "\n");
}

static void add_title(const struct lab_plan *plan, struct lab_style style, struct lab_str *out) {
    struct lab_str title;
    lab_str_init(&title);
    lab_str_printf(&title, "%s: %d run%s", plan->option, plan->run_count,
                   study_plural(plan->run_count));
    int64_t distinct = plan->run_count / plan->repeat;
    if (plan->repeat > 1)
        lab_str_printf(&title, " = %lld × %d", (long long)distinct, plan->repeat);
    lab_str_printf(&title, ", %lld point%s", (long long)plan->point_count,
                   study_plural(plan->point_count));
    if (plan->point_count > distinct)
        lab_str_add(&title, "; what several points share runs once");
    lab_text_heading(title.text, style, out);
    lab_str_release(&title);
}

static bool is_used(const struct lab_plan *plan, int device) {
    for (int i = 0; i < plan->run_count; i++)
        for (int k = 0; k < plan->runs[i].rank_count; k++)
            if (plan->runs[i].ranks[k].gpu_id == device)
                return true;
    return false;
}

static void add_devices(const struct lab_plan *plan, struct lab_style style, struct lab_str *out) {
    int used = 0;
    for (int i = 0; i < plan->devices.count && used <= DEVICES_SHOWN; i++) {
        if (!is_used(plan, i))
            continue;
        const struct lab_device_ref *device = &plan->devices.items[i];
        struct lab_str line;
        lab_str_init(&line);
        if (used == DEVICES_SHOWN)
            lab_str_add(&line, "… and more");
        else
            lab_str_printf(&line, "%d is %s: %s%s", i, device->name, device->description,
                           device->simulated ? " (simulated)" : "");
        add_line(used++ ? "" : "Devices", line.text, style, out);
        lab_str_release(&line);
    }
}

static void add_order(const struct lab_plan *plan, struct lab_style style, struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    if (plan->ordered_as_given)
        lab_str_add(&line, "as given");
    else
        lab_str_printf(&line, "random, seed %llu", (unsigned long long)plan->seed);
    if (plan->repeat > 1)
        lab_str_printf(&line, ", in %d blocks of all %d runs", plan->repeat,
                       plan->run_count / plan->repeat);
    if (plan->max_workers > 1)
        lab_str_printf(&line, "; up to %d at the same time, which disturb each other",
                       plan->max_workers);
    else
        lab_str_add(&line, "; one at a time");
    add_line("Order", line.text, style, out);
    lab_str_release(&line);
}

/* What the time-outs allow; runs that fail and are tried again come on top. */
static double time_limit_s(const struct lab_plan *plan) {
    double sum = 0;
    for (int i = 0; i < plan->run_count; i++)
        sum += plan->runs[i].timeout_s + (i ? plan->cooldown_s : 0);
    return sum;
}

/* Where the expected time comes from. */
static void add_basis(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                      struct lab_str *line) {
    int asked = estimate->by_duration;
    if (asked == plan->run_count) {
        lab_str_add(line, " (by experiment.duration), ");
        return;
    }
    lab_str_add(line, " (from earlier runs here");
    if (asked > 0)
        lab_str_printf(line, "; %d of %d runs by experiment.duration", asked, plan->run_count);
    if (estimate->guessed > 0)
        lab_str_printf(line, "; %d of %d runs guessed", estimate->guessed, plan->run_count);
    lab_str_add(line, "), ");
}

static void add_time(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                     struct lab_style style, struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    int guessed = estimate->guessed;
    bool known = !isnan(estimate->expected_s), fair = known && 2 * guessed <= plan->run_count;
    if (fair) {
        lab_str_add(&line, "takes about ");
        lab_str_add_duration(&line, estimate->expected_s, LAB_DURATION_ROUNDED);
        add_basis(plan, estimate, &line);
    }
    lab_str_add(&line, "at most ");
    lab_str_add_duration(&line, estimate->most_s, LAB_DURATION_ROUNDED);
    lab_str_printf(&line, " by %s time-out%s and retries", plan->run_count == 1 ? "its" : "their",
                   study_plural(plan->run_count));
    if (plan->budget_s > 0) {
        lab_str_add(&line, ", and no run starts after ");
        lab_str_add_duration(&line, plan->budget_s, LAB_DURATION_ROUNDED);
    }
    if (!known)
        lab_str_add(&line, "; nothing like it has run here yet");
    else if (!fair)
        lab_str_printf(&line, "; %d of %d runs are unlike any that has run here", guessed,
                       plan->run_count);
    add_line("Time", line.text, style, out);
    lab_str_release(&line);
}

static void add_disk(const struct lab_plan_estimate *estimate, struct lab_style style,
                     struct lab_str *out) {
    struct lab_str line;
    lab_str_init(&line);
    lab_str_add(&line, "writes about ");
    lab_str_add_bytes_binary(&line, (double)estimate->disk_bytes);
    add_line("Disk", line.text, style, out);
    lab_str_release(&line);
}

/* --- the table --- */

static void add_rank_cells(struct lab_table *table, const struct lab_plan_run *run) {
    struct lab_str devices, nodes;
    lab_str_init(&devices);
    lab_str_init(&nodes);
    bool one_node = true;
    for (int i = 0; i < run->rank_count; i++) {
        lab_str_printf(&devices, "%s%s", i ? "+" : "", run->ranks[i].device);
        lab_str_printf(&nodes, "%s%d", i ? "+" : "", run->ranks[i].numa_node);
        one_node &= run->ranks[i].numa_node == run->ranks[0].numa_node;
    }
    lab_table_cell(table, "%s", devices.text);
    if (one_node && run->ranks[0].numa_node < 0)
        lab_table_cell(table, "any");
    else if (one_node)
        lab_table_cell(table, "%d", run->ranks[0].numa_node);
    else
        lab_table_cell(table, "%s", nodes.text);
    lab_str_release(&devices);
    lab_str_release(&nodes);
}

static void add_size_cell(struct lab_table *table, int64_t bytes) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add_bytes_binary(&text, (double)bytes);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

/* Names are never cut for the sake of what they say already, nor for sizes. */
struct shown {
    bool places, sizes;
};

static struct shown fitting(const struct lab_plan *plan, int columns) {
    int name = 0, device = 0;
    for (int i = 0; i < plan->run_count && i < RUNS_SHOWN; i++) {
        const struct lab_plan_run *run = &plan->runs[i];
        int devices = run->rank_count - 1;
        for (int k = 0; k < run->rank_count; k++)
            devices += lab_str_columns(run->ranks[k].device);
        name = lab_str_columns(run->id) > name ? lab_str_columns(run->id) : name;
        device = devices > device ? devices : device;
    }
    enum { NUMBER = 8, ITERATIONS = 21, NODE = 10, SIZES = 24 };
    int least = NUMBER + name + ITERATIONS, places = NODE + device;
    return (struct shown){.places = least + places <= columns,
                          .sizes = least + places + SIZES <= columns};
}

static void add_runs(const struct lab_plan *plan, struct lab_style style, struct lab_str *out) {
    struct shown shown = fitting(plan, style.columns);
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "#", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Run", LAB_ALIGN_LEFT);
    if (shown.places) {
        lab_table_column(table, "Device", LAB_ALIGN_LEFT);
        lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    }
    lab_table_column(table, "Warm-up", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Iterations", LAB_ALIGN_RIGHT);
    if (shown.sizes) {
        lab_table_column(table, "Host", LAB_ALIGN_RIGHT);
        lab_table_column(table, "On device", LAB_ALIGN_RIGHT);
    }
    for (int i = 0; i < plan->run_count && i < RUNS_SHOWN; i++) {
        const struct lab_plan_run *run = &plan->runs[i];
        lab_table_cell(table, "%d", i + 1);
        lab_table_cell(table, "%s", run->id);
        if (shown.places)
            add_rank_cells(table, run);
        lab_table_cell(table, "%lld", (long long)run->warmup_iterations);
        lab_table_cell(table, "%lld", (long long)run->iterations);
        if (shown.sizes) {
            add_size_cell(table, run->host_bytes);
            add_size_cell(table, run->device_bytes);
        }
    }
    lab_table_write(table, style, out);
    lab_table_close(table);
    if (plan->run_count > RUNS_SHOWN)
        lab_str_printf(out, "  … and %d more (all of them with --json)\n",
                       plan->run_count - RUNS_SHOWN);
}

void lab_report_plan(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                     struct lab_style style, struct lab_str *out) {
    add_title(plan, style, out);
    if (plan->machine->recorded)
        add_line("Machine", plan->machine->source, style, out);
    add_devices(plan, style, out);
    add_order(plan, style, out);
    add_time(plan, estimate, style, out);
    add_disk(estimate, style, out);
    for (int i = 0; plan->notes && plan->notes[i]; i++)
        add_line("Note", plan->notes[i], style, out);
    struct lab_str results;
    lab_str_init(&results);
    lab_str_printf(&results, "%s/%s/<date>/<time>", plan->output_dir, plan->study);
    add_line("Results", results.text, style, out);
    lab_str_release(&results);
    lab_str_add(out, "\n");
    add_runs(plan, style, out);
}

/* --- for programs --- */

static struct lab_value *hash_value(uint64_t hash, struct lab_arena *arena) {
    /* JSON's numbers don't hold 64 bits */
    return lab_value_string(arena, lab_arena_printf(arena, "%016llx", (unsigned long long)hash));
}

static struct lab_value *run_value(const struct lab_plan_run *run, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *ranks = lab_value_list(arena);
    struct lab_value *series = lab_value_list(arena);
    for (int i = 0; i < run->rank_count; i++) {
        struct lab_value *rank = lab_value_map(arena);
        lab_value_set_int(arena, rank, "gpu_id", run->ranks[i].gpu_id);
        lab_value_set_string(arena, rank, "device", run->ranks[i].device);
        lab_value_set_int(arena, rank, "numa_node", run->ranks[i].numa_node);
        lab_value_append(arena, ranks, rank);
    }
    for (int i = 0; run->series[i]; i++)
        lab_value_append(arena, series, lab_value_string(arena, run->series[i]));
    lab_value_set_string(arena, map, "run_id", run->id);
    lab_value_set(arena, map, "identity", hash_value(run->identity, arena));
    lab_value_set_string(arena, map, "workload", run->workload);
    lab_value_set_string(arena, map, "label", run->label);
    lab_value_set(arena, map, "ranks", ranks);
    lab_value_set_int(arena, map, "repeat", run->repeat);
    lab_value_set_int(arena, map, "num_samples", run->num_samples);
    lab_value_set_int(arena, map, "warmup_samples", run->warmup_samples);
    lab_value_set_int(arena, map, "iterations", run->iterations);
    lab_value_set_int(arena, map, "warmup_iterations", run->warmup_iterations);
    lab_value_set_float(arena, map, "timeout_s", run->timeout_s);
    lab_value_set_int(arena, map, "host_bytes", run->host_bytes);
    lab_value_set_int(arena, map, "device_bytes", run->device_bytes);
    lab_value_set(arena, map, "series", series);
    lab_value_set_int(arena, map, "points", run->point_count);
    lab_value_set(arena, map, "options", run->options);
    return map;
}

struct lab_value *lab_report_plan_value(const struct lab_plan *plan,
                                        const struct lab_plan_estimate *estimate,
                                        struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *runs = lab_value_list(arena);
    struct lab_value *devices = lab_value_list(arena);
    for (int i = 0; i < plan->devices.count; i++)
        lab_value_append(arena, devices, lab_report_device_value(&plan->devices.items[i], arena));
    for (int i = 0; i < plan->run_count; i++)
        lab_value_append(arena, runs, run_value(&plan->runs[i], arena));
    lab_value_set_string(arena, map, "study", plan->option);
    lab_value_set_string(arena, map, "name", plan->study);
    lab_value_set(arena, map, "identity", hash_value(plan->identity, arena));
    lab_value_set_string(arena, map, "machine",
                         plan->machine->recorded ? plan->machine->source : NULL);
    lab_value_set_string(arena, map, "output_dir", plan->output_dir);
    lab_value_set_string(arena, map, "device", plan->selector);
    lab_value_set(arena, map, "devices", devices);
    lab_value_set_int(arena, map, "job_count", plan->job_count);
    lab_value_set_int(arena, map, "point_count", plan->point_count);
    lab_value_set_int(arena, map, "run_count", plan->run_count);
    lab_value_set_string(arena, map, "order", plan->ordered_as_given ? "as_given" : "random");
    lab_value_set_int(arena, map, "seed", (int64_t)plan->seed);
    lab_value_set_int(arena, map, "repeat", plan->repeat);
    lab_value_set_int(arena, map, "max_workers", plan->max_workers);
    lab_value_set_float(arena, map, "timeouts_s", time_limit_s(plan));
    lab_value_set_float(arena, map, "expected_s", estimate->expected_s);
    lab_value_set_int(arena, map, "expected_unknown", estimate->unknown);
    lab_value_set_int(arena, map, "expected_guessed", estimate->guessed);
    lab_value_set_int(arena, map, "expected_by_duration", estimate->by_duration);
    lab_value_set_float(arena, map, "expected_most_s", estimate->most_s);
    lab_value_set_int(arena, map, "disk_bytes", estimate->disk_bytes);
    struct lab_value *notes = lab_value_list(arena);
    for (int n = 0; plan->notes && plan->notes[n]; n++)
        lab_value_append(arena, notes, lab_value_string(arena, plan->notes[n]));
    lab_value_set(arena, map, "notes", notes);
    lab_value_set(arena, map, "runs", runs);
    return map;
}
