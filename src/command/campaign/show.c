/* show.c: a campaign on a terminal: when each study runs, and how far each phase is. */
#include "command/campaign/course.h"

#include "doc/doc.h"

#include <math.h>
#include <string.h>

#define CHART_COLUMNS_MOST 100
#define NAME_COLUMNS       30
#define FACT_COLUMNS       36 /* runs, time, energy, disk behind a bar */
#define BAR_COLUMNS_LEAST  10
#define LABEL_COLUMNS      12

static const char *const priority_names[] = {"high", "medium", "low"};

/* --- the schedule --- */

struct gantt {
    const struct course *course;
    const struct lab_campaign_schedule *schedule;
};

/* A bar from `start` to `end` of the whole, at least a cell. */
static void add_bar(double start, double end, int columns, bool unicode, struct lab_str *out) {
    int from = (int)floor(start * columns), until = (int)ceil(end * columns);
    from = from >= columns ? columns - 1 : from;
    until = until <= from ? from + 1 : until > columns ? columns : until;
    lab_str_add_repeat(out, " ", from);
    lab_str_add_repeat(out, unicode ? "█" : "#", until - from);
    lab_str_add_repeat(out, " ", columns - until);
}

static void add_facts(const char *runs, const char *time, const char *energy, const char *disk,
                      struct lab_str *out) {
    lab_str_printf(out, "  %5s  %8s  %7s  %8s", runs, time, energy, disk);
}

static void add_known_facts(const struct lab_campaign_slot *slot, int runs, struct lab_str *out) {
    LAB_AUTO(str, count);
    LAB_AUTO(str, time);
    LAB_AUTO(str, energy);
    LAB_AUTO(str, disk);
    lab_str_add_decimal(&count, runs, 0);
    lab_str_add(&time, isnan(slot->seconds) ? "?" : "");
    if (!isnan(slot->seconds))
        lab_str_add_duration(&time, slot->seconds, LAB_DURATION_ROUNDED);
    lab_str_add(&energy, isnan(slot->energy_j) ? "?" : "");
    if (!isnan(slot->energy_j))
        lab_str_add_si(&energy, slot->energy_j, "J");
    lab_str_add_bytes_binary(&disk, (double)slot->bytes);
    if (slot->dropped)
        add_facts(count.text, "dropped", "", "", out);
    else
        add_facts(count.text, time.text, energy.text, disk.text, out);
}

static void add_slot(const struct gantt *gantt, const struct lab_campaign_slot *slot, int columns,
                     bool unicode, struct lab_str *out) {
    const struct course *course = gantt->course;
    const struct lab_campaign_phase *phase = &course->campaign.phases[slot->phase];
    const struct lab_campaign_found *found = &course->found[phase->first_study + slot->study];
    double whole = gantt->schedule->seconds > 0 ? gantt->schedule->seconds : 1;
    lab_text_fit(lab_arena_printf(course->arena, "%s%s", slot->study ? "  " : "",
                                  phase->studies[slot->study].label),
                 NAME_COLUMNS - 2, unicode, out);
    lab_str_add(out, "  ");
    if (slot->dropped)
        lab_str_add_repeat(out, unicode ? "·" : ".", columns);
    else
        add_bar(slot->start_s / whole,
                (slot->start_s + (isnan(slot->seconds) ? 0 : slot->seconds)) / whole, columns,
                unicode, out);
    const struct lab_campaign_study *study = &phase->studies[slot->study];
    if (course->studies[phase->first_study + slot->study].refined)
        add_known_facts(slot, found->planned, out);
    else if (study->strategy == LAB_CAMPAIGN_BISECT)
        lab_str_printf(out, "  at most %lld runs by what is found", (long long)study->runs);
    else
        lab_str_add(out, "  runs by what is found");
}

/* A later step of a bisection; the first one stands for all. */
static bool is_hidden(const struct course *course, const struct lab_campaign_slot *slot) {
    const struct lab_campaign_phase *phase = &course->campaign.phases[slot->phase];
    return phase->studies[slot->study].step > 0 &&
           !course->studies[phase->first_study + slot->study].refined;
}

static void draw_gantt(const void *state, struct lab_style style, struct lab_str *out) {
    const struct gantt *gantt = state;
    int width = style.columns < CHART_COLUMNS_MOST ? style.columns : CHART_COLUMNS_MOST;
    int columns = width - NAME_COLUMNS - FACT_COLUMNS;
    columns = columns < BAR_COLUMNS_LEAST ? BAR_COLUMNS_LEAST : columns;
    int phase = -1;
    LAB_AUTO(str, end);
    if (gantt->schedule->seconds > 0)
        lab_str_add_duration(&end, gantt->schedule->seconds, LAB_DURATION_ROUNDED);
    lab_str_add_repeat(out, " ", NAME_COLUMNS + 2);
    lab_str_printf(out, "0%*s", columns - 3, end.text);
    add_facts("Runs", "Time", "Energy", "Disk", out);
    lab_str_add(out, "\n");
    for (int i = 0; i < gantt->schedule->slot_count; i++) {
        const struct lab_campaign_slot *slot = &gantt->schedule->slots[i];
        if (is_hidden(gantt->course, slot))
            continue;
        if (slot->phase != phase)
            lab_str_printf(out, "%s (%s)\n", gantt->course->campaign.phases[slot->phase].name,
                           priority_names[gantt->course->campaign.phases[slot->phase].priority]);
        phase = slot->phase;
        lab_str_add(out, "  ");
        add_slot(gantt, slot, columns - 2, style.unicode, out);
        lab_str_add(out, "\n");
    }
}

static struct lab_value *schedule_value(const struct course *course,
                                        const struct lab_campaign_schedule *schedule) {
    struct lab_arena *arena = course->arena;
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < schedule->slot_count; i++) {
        const struct lab_campaign_slot *slot = &schedule->slots[i];
        const struct lab_campaign_phase *phase = &course->campaign.phases[slot->phase];
        const struct course_study *study = &course->studies[phase->first_study + slot->study];
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_string(arena, map, "phase", phase->name);
        lab_value_set_string(arena, map, "study", study->title);
        lab_value_set_int(arena, map, "runs",
                          course->found[phase->first_study + slot->study].planned);
        lab_value_set_float(arena, map, "start_s", schedule->unknown ? NAN : slot->start_s);
        lab_value_set_float(arena, map, "expected_s", slot->seconds);
        lab_value_set_float(arena, map, "energy_j", slot->energy_j);
        lab_value_set_int(arena, map, "disk_bytes", slot->bytes);
        lab_value_set_bool(arena, map, "dropped", slot->dropped);
        lab_value_append(arena, list, map);
    }
    return list;
}

/* "1,812 runs in about 3 min, 1.2 MJ, 62 MiB of disk" */
static void add_totals(const struct lab_campaign_schedule *schedule, int64_t runs, bool simulated,
                       struct lab_str *text) {
    lab_str_add_decimal(text, runs, 0);
    lab_str_add(text, " runs");
    if (schedule->seconds > 0) {
        lab_str_add(text, " in about ");
        lab_str_add_duration(text, schedule->seconds, LAB_DURATION_ROUNDED);
    }
    if (schedule->unknown > 0)
        lab_str_printf(text, " (time of %d %s unknown%s)", schedule->unknown,
                       schedule->unknown == 1 ? "study" : "studies",
                       simulated ? ": without --quiet, runs are measured" : "");
    lab_str_add(text, ", ");
    if (schedule->energy_j > 0)
        lab_str_add_si(text, schedule->energy_j, "J");
    if (schedule->energy_unknown > 0)
        lab_str_printf(text,
                       schedule->energy_j > 0 ? " (energy of %d studies unknown)"
                       : simulated            ? "energy unknown: the machine is simulated"
                                              : "energy unknown: no earlier run measured it",
                       schedule->energy_unknown);
    if (schedule->energy_j > 0 || schedule->energy_unknown > 0)
        lab_str_add(text, ", ");
    lab_str_add_bytes_binary(text, (double)schedule->bytes);
    lab_str_add(text, " of disk");
}

void course_add_schedule(const struct course *course, const struct lab_campaign_schedule *schedule,
                         struct lab_doc *doc) {
    struct gantt *gantt = lab_arena_alloc(course->arena, 1, sizeof *gantt);
    struct lab_value *totals = lab_value_map(course->arena);
    LAB_AUTO(str, text);
    int64_t runs = 0;
    for (int i = 0; i < schedule->slot_count; i++) {
        const struct lab_campaign_slot *slot = &schedule->slots[i];
        int study = course->campaign.phases[slot->phase].first_study + slot->study;
        runs += slot->dropped ? 0 : course->found[study].planned;
    }
    *gantt = (struct gantt){course, schedule};
    lab_doc_drawing(doc, draw_gantt, gantt);
    lab_doc_data(doc, "schedule", schedule_value(course, schedule));
    add_totals(schedule, runs, course->simulated, &text);
    lab_doc_gap(doc);
    lab_doc_line(doc, "In all", "%s", text.text);
    lab_value_set_int(course->arena, totals, "runs", runs);
    lab_value_set_float(course->arena, totals, "expected_s",
                        schedule->unknown ? NAN : schedule->seconds);
    lab_value_set_int(course->arena, totals, "unknown", schedule->unknown);
    lab_value_set_float(course->arena, totals, "energy_j",
                        schedule->energy_unknown ? NAN : schedule->energy_j);
    lab_value_set_int(course->arena, totals, "disk_bytes", schedule->bytes);
    lab_doc_data(doc, NULL, totals);
}

/* --- phases --- */

void course_add_phases(const struct course *course, const struct lab_campaign_status *statuses,
                       struct lab_doc *doc) {
    static const struct lab_doc_column columns[] = {
        {"phase", "Phase", .align = LAB_ALIGN_WHOLE},
        {"priority", "Priority"},
        {"state", "State"},
        {"done", "Done", LAB_UNIT_COUNT},
        {"failed", "Failed", LAB_UNIT_COUNT},
        {"planned", "Runs", LAB_UNIT_COUNT},
        {"taken_s", "Time", LAB_UNIT_DURATION},
        {"energy_kj", "Energy (kJ)", LAB_UNIT_NUMBER},
        {"energy_runs", NULL, LAB_UNIT_COUNT},
        {"why", NULL},
    };
    const struct lab_campaign *campaign = &course->campaign;
    int all_done = 0, all_measured = 0;
    lab_doc_rows(doc, "phases", NULL, columns, sizeof columns / sizeof *columns);
    for (int p = 0; p < campaign->phase_count; p++) {
        const struct lab_campaign_phase *phase = &campaign->phases[p];
        int done = 0, failed = 0, planned = 0, measured = 0;
        double taken_s = 0, energy_j = 0;
        for (int s = 0; s < phase->study_count; s++) {
            const struct lab_campaign_found *found = &course->found[phase->first_study + s];
            done += found->done;
            failed += found->failed;
            planned += found->planned;
            measured += found->energy_runs;
            taken_s += isnan(found->taken_s) ? 0 : found->taken_s;
            energy_j += isnan(found->energy_j) ? 0 : found->energy_j;
        }
        lab_doc_cell(doc, "%s", phase->name);
        lab_doc_cell(doc, "%s", priority_names[phase->priority]);
        lab_doc_cell(doc, "%s", lab_campaign_state_names[statuses[p].state]);
        lab_doc_figure(doc, done);
        lab_doc_figure(doc, failed);
        lab_doc_figure(doc, planned);
        lab_doc_figure(doc, taken_s > 0 ? taken_s : NAN);
        lab_doc_figure(doc, energy_j > 0 ? energy_j / 1000 : NAN);
        lab_doc_figure(doc, measured);
        all_done += done;
        all_measured += measured;
        lab_doc_add(doc, lab_cell_text(statuses[p].why));
    }
    lab_doc_gap(doc);
    int width = LABEL_COLUMNS;
    for (int p = 0; p < campaign->phase_count; p++)
        if ((int)strlen(campaign->phases[p].name) + 4 > width)
            width = (int)strlen(campaign->phases[p].name) + 4;
    lab_doc_set_labels(doc, width);
    if (all_measured > 0 && all_measured < all_done) /* short runs have none */
        lab_doc_line(doc, "energy", "of the %d of %d runs that were measured", all_measured,
                     all_done);
    for (int p = 0; p < campaign->phase_count; p++) {
        const struct lab_campaign_phase *phase = &campaign->phases[p];
        lab_doc_line(doc, phase->name, "%s", statuses[p].why ? statuses[p].why : "");
        const char *said = NULL;
        for (int s = 0; s < phase->study_count; s++) {
            const char *why = course->studies[phase->first_study + s].why;
            if (!said || !why ||
                !lab_str_equal(why, said)) /* steps that are left out say the same */
                lab_doc_line(doc, phase->name, "%s", why ? why : "");
            said = why;
        }
    }
}
