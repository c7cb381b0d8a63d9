/*
 * plan.c: what a study will do, before it does it. How long it takes is known where at least half
 * of its runs were timed before, if with other counts; else what is shown is the limit that their
 * time-outs set.
 */
#include "report/estimate.h"
#include "report/report.h"
#include "report/study/study_axes.h"
#include "report/study/study_internal.h"
#include "run/estimate/plan_estimate.h"
#include "run/plan_record.h"

#include <math.h>

#define RUNS_SHOWN    20
#define DEVICES_SHOWN 16

/* --- parts --- */

void lab_report_add_counts(const struct lab_plan *plan, struct lab_str *out) {
    int distinct = plan->run_count / plan->repeat;
    lab_str_printf(out, "%lld point%s", (long long)plan->point_count,
                   study_plural(plan->point_count));
    if (plan->point_count > distinct)
        lab_str_printf(out, ", %d distinct", distinct);
    lab_str_printf(out, " × %d repeat%s = %d run%s", plan->repeat, study_plural(plan->repeat),
                   plan->run_count, study_plural(plan->run_count));
}

static void add_title(struct lab_doc *doc, const struct lab_plan *plan) {
    LAB_AUTO(str, counts);
    lab_report_add_counts(plan, &counts);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s: %s", plan->option, counts.text);
}

static bool may_use(const struct lab_plan_run *run, int device) {
    int count;
    const struct lab_run_rank *ranks = lab_plan_run_places(run, &count);
    for (int k = 0; k < count; k++)
        if (ranks[k].gpu_id == device)
            return true;
    return false;
}

static bool is_used(const struct lab_plan *plan, int device) {
    for (int i = 0; i < plan->run_count; i++)
        if (may_use(&plan->runs[i], device))
            return true;
    return false;
}

static void add_devices(struct lab_doc *doc, const struct lab_plan *plan) {
    int used = 0;
    for (int i = 0; i < plan->devices.count && used <= DEVICES_SHOWN; i++) {
        if (!is_used(plan, i))
            continue;
        const struct lab_device_ref *device = &plan->devices.items[i];
        const char *label = used++ ? "" : "Devices";
        if (used > DEVICES_SHOWN)
            lab_doc_line(doc, label, "… and more");
        else
            lab_doc_line(doc, label, "%d is %s: %s%s", i, device->name, device->description,
                         device->simulated ? " (simulated)" : "");
    }
}

static void add_order(struct lab_doc *doc, const struct lab_plan *plan) {
    LAB_AUTO(str, line);
    if (plan->ordered_as_given)
        lab_str_add(&line, "as given");
    else
        lab_str_printf(&line, "random, seed %llu", (unsigned long long)plan->seed);
    if (plan->repeat > 1)
        lab_str_printf(&line, ", in %d blocks of all %d points", plan->repeat,
                       plan->run_count / plan->repeat);
    if (plan->max_workers > 1)
        lab_str_printf(&line, "; up to %d at the same time, which disturb each other",
                       plan->max_workers);
    else
        lab_str_add(&line, "; one at a time");
    lab_doc_line(doc, "Order", "%s", line.text);
}

static bool is_launched(const struct lab_plan *plan) {
    for (int i = 0; i < plan->run_count; i++)
        if (plan->runs[i].processes == LAB_PLAN_LAUNCHER)
            return true;
    return false;
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
    lab_str_printf(line, " (from%s", estimate->earlier ? " earlier runs here" : "");
    if (estimate->brief)
        lab_str_printf(line, "%s %d short run%s just made", estimate->earlier ? " and" : "",
                       estimate->brief, study_plural(estimate->brief));
    if (asked > 0)
        lab_str_printf(line, "; %d of %d runs by experiment.duration", asked, plan->run_count);
    if (estimate->guessed > 0)
        lab_str_printf(line, "; %d of %d runs estimated from others", estimate->guessed,
                       plan->run_count);
    lab_str_add(line, "), ");
}

static void add_time(struct lab_doc *doc, const struct lab_plan *plan,
                     const struct lab_plan_estimate *estimate) {
    LAB_AUTO(str, line);
    bool known = !isnan(estimate->expected_s);
    if (known) {
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
        lab_str_add(&line, lab_run_plan_is_simulated(plan) ? "; " LAB_REPORT_SIMULATED_TIME
                                                           : "; no comparable run on this machine");
    lab_doc_line(doc, "Time", "%s", line.text);
}

/* --- the table --- */

/* The node that is named, or that each slot has its own. */
static void add_slot_nodes(struct lab_doc *doc, const struct lab_plan_run *run) {
    int count;
    const struct lab_run_rank *ranks = lab_plan_run_places(run, &count);
    bool one = true;
    for (int i = 1; i < count; i++)
        one &= ranks[i].numa_node == ranks[0].numa_node;
    if (one)
        lab_doc_cell(doc, "%d", ranks[0].numa_node);
    else
        lab_doc_cell(doc, "local");
}

static void add_places(struct lab_doc *doc, const struct lab_plan_run *run) {
    LAB_AUTO(str, devices);
    LAB_AUTO(str, nodes);
    bool one_node = true;
    if (run->slot_count > 0) {
        lab_doc_cell(doc, "%s of %d", LAB_PLAN_ANY, run->slot_count);
        add_slot_nodes(doc, run);
        return;
    }
    for (int i = 0; i < run->rank_count; i++) {
        lab_str_printf(&devices, "%s%s", i ? "+" : "", run->ranks[i].device);
        lab_str_printf(&nodes, "%s%d", i ? "+" : "", run->ranks[i].numa_node);
        one_node &= run->ranks[i].numa_node == run->ranks[0].numa_node;
    }
    lab_doc_cell(doc, "%s", devices.text);
    if (one_node && run->ranks[0].numa_node < 0)
        lab_doc_cell(doc, "any");
    else if (one_node)
        lab_doc_cell(doc, "%d", run->ranks[0].numa_node);
    else
        lab_doc_cell(doc, "%s", nodes.text);
}

static bool is_program(const struct lab_plan_run *run) {
    return lab_str_equal(run->workload, "command");
}

/* Of programs, whose ids have all keys of the matrix: by what varies. */
static const char **name_runs(const struct lab_plan *plan, struct lab_arena *arena) {
    size_t count = (size_t)plan->run_count;
    const char **names = lab_arena_alloc(arena, count + 1, sizeof *names);
    bool programs = false;
    for (int i = 0; i < plan->run_count; i++) {
        names[i] = plan->runs[i].id;
        programs |= is_program(&plan->runs[i]);
    }
    if (!programs)
        return names;
    const struct lab_run *records = lab_run_plan_records(plan, arena);
    const struct lab_run **all = lab_arena_alloc(arena, count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = &records[i];
    struct study_axes axes = study_axes_make(all, plan->run_count, arena);
    for (int i = 0; i < plan->run_count; i++) {
        LAB_AUTO(str, name);
        study_axes_add_name(&axes, i, &name);
        if (plan->repeat > 1)
            lab_str_printf(&name, ", run %d", plan->runs[i].repeat + 1);
        if (is_program(&plan->runs[i]))
            names[i] = lab_arena_strdup(arena, name.text);
    }
    return names;
}

/* Names are never cut for the sake of what they say already, nor for sizes. */
static void add_runs(struct lab_doc *doc, const struct lab_plan *plan) {
    static const struct lab_doc_column columns[] = {
        {NULL, "#", LAB_UNIT_COUNT},
        {NULL, "Run"},
        {NULL, "Device", .yields = 1},
        {NULL, "Node", LAB_UNIT_FIGURE, .yields = 1},
        {NULL, "Warm-up", LAB_UNIT_COUNT},
        {NULL, "Iterations", LAB_UNIT_COUNT},
        {NULL, "Host", LAB_UNIT_SIZE, .yields = 2},
        {NULL, "On device", LAB_UNIT_SIZE, .yields = 2},
    };
    const char **names = name_runs(plan, lab_doc_arena(doc));
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < plan->run_count && i < RUNS_SHOWN; i++) {
        const struct lab_plan_run *run = &plan->runs[i];
        lab_doc_figure(doc, i + 1);
        lab_doc_cell(doc, "%s", names[i]);
        add_places(doc, run);
        lab_doc_figure(doc, (double)run->warmup_iterations);
        lab_doc_figure(doc, (double)run->iterations);
        lab_doc_figure(doc, (double)run->host_bytes);
        lab_doc_figure(doc, (double)run->device_bytes);
    }
    if (plan->run_count > RUNS_SHOWN)
        lab_doc_text(doc, LAB_DOC_PLAIN, "… and %d more (all of them with --json)",
                     plan->run_count - RUNS_SHOWN);
}

/* --- for programs --- */

static struct lab_value *hash_value(uint64_t hash, struct lab_arena *arena) {
    /* JSON's numbers don't hold 64 bits */
    return lab_value_string(arena, lab_arena_printf(arena, "%016llx", (unsigned long long)hash));
}

static struct lab_value *run_value(const struct lab_plan_run *run, struct lab_arena *arena) {
    static const char *const processes[] = {[LAB_PLAN_PER_RANK] = "per_rank",
                                            [LAB_PLAN_SHARED] = "shared",
                                            [LAB_PLAN_LAUNCHER] = "launcher"};
    struct lab_value *map = lab_value_map(arena), *ranks = lab_value_list(arena);
    int count;
    const struct lab_run_rank *places = lab_plan_run_places(run, &count);
    for (int i = 0; i < count; i++) {
        struct lab_value *rank = lab_value_map(arena);
        lab_value_set_int(arena, rank, "gpu_id", places[i].gpu_id);
        lab_value_set_string(arena, rank, "device", places[i].device);
        lab_value_set_int(arena, rank, "numa_node", places[i].numa_node);
        lab_value_append(arena, ranks, rank);
    }
    lab_value_set_string(arena, map, "run_id", run->id);
    lab_value_set(arena, map, "identity", hash_value(run->identity, arena));
    lab_value_set_string(arena, map, "workload", run->workload);
    lab_value_set_string(arena, map, "label", run->label);
    lab_value_set(arena, map, run->slot_count ? "slots" : "ranks", ranks);
    if (run->slot_count) /* as many ranks in each slot, one slot after the other */
        lab_value_set_int(arena, map, "rank_count", run->rank_count);
    if (run->rank_count > 1)
        lab_value_set_string(arena, map, "processes", processes[run->processes]);
    lab_value_set_int(arena, map, "repeat", run->repeat);
    lab_value_set_int(arena, map, "num_samples", run->num_samples);
    lab_value_set_int(arena, map, "warmup_samples", run->warmup_samples);
    lab_value_set_int(arena, map, "iterations", run->iterations);
    lab_value_set_int(arena, map, "warmup_iterations", run->warmup_iterations);
    lab_value_set_float(arena, map, "timeout_s", run->timeout_s);
    lab_value_set_int(arena, map, "host_bytes", run->host_bytes);
    lab_value_set_int(arena, map, "device_bytes", run->device_bytes);
    lab_value_set(arena, map, "series", lab_value_strings(arena, run->series));
    lab_value_set_int(arena, map, "points", run->point_count);
    lab_value_set(arena, map, "options", run->options);
    return map;
}

static struct lab_value *plan_value(const struct lab_plan *plan,
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
    lab_value_set(arena, map, "notes", lab_value_strings(arena, plan->notes));
    lab_value_set(arena, map, "runs", runs);
    return map;
}

void lab_report_add_plan(struct lab_doc *doc, const struct lab_plan *plan,
                         const struct lab_plan_estimate *estimate) {
    LAB_AUTO(str, disk);
    lab_str_add_bytes_binary(&disk, (double)estimate->disk_bytes);
    lab_doc_data(doc, NULL, plan_value(plan, estimate, lab_doc_arena(doc)));
    add_title(doc, plan);
    if (plan->machine->recorded)
        lab_doc_line(doc, "Machine", "%s", plan->machine->source);
    add_devices(doc, plan);
    add_order(doc, plan);
    if (is_launched(plan))
        lab_doc_line(doc, "Start", "the command once for all devices of a run: processes=launcher");
    add_time(doc, plan, estimate);
    lab_doc_line(doc, "Disk", "writes about %s", disk.text);
    for (int i = 0; plan->notes && plan->notes[i]; i++)
        lab_doc_line(doc, "Note", "%s", plan->notes[i]);
    lab_doc_line(doc, "Results", "%s/%s/<date>/<time>", plan->output_dir, plan->study);
    add_runs(doc, plan);
}
