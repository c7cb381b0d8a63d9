/* top_summary.c: what stays as text: a snapshot for a pipe, and a summary of all that was
 * watched. */
#include "top/top_internal.h"

#include "doc/doc.h"

#include <math.h>

/* --- a snapshot --- */

void lab_top_snapshot(const struct lab_top_history *history, const struct lab_top_view *view,
                      struct lab_str *out) {
    struct lab_top_grid grid;
    struct lab_top_view text = *view;
    LAB_AUTO(arena, arena);
    struct top_row *rows;
    text.snapshot = true;
    text.page = LAB_TOP_OVERVIEW;
    text.prompt = LAB_TOP_NO_PROMPT;
    lab_top_grid_init(&grid);
    lab_top_draw(history, &text, &grid);
    lab_top_grid_write(&grid, out);
    lab_top_grid_release(&grid);
    int count = top_process_rows(history, &text, &arena, &rows);
    for (int i = 0, said = 0; i < count; i++) { /* whole lines: they are to be pasted */
        const struct lab_process_sample *p = rows[i].process;
        if (!*p->advice)
            continue;
        const char *what = p->placement == LAB_PLACEMENT_CORES    ? "runs"
                           : p->placement == LAB_PLACEMENT_MEMORY ? "has its memory"
                           : p->placement == LAB_PLACEMENT_BOTH   ? "runs and has its memory"
                                                                  : NULL;
        if (what)
            lab_str_printf(out, "%s%d %s %s on a NUMA node remote to its GPU; this corrects it:\n",
                           said ? "" : "\n", p->pid, p->name, what);
        else
            lab_str_printf(out,
                           "%s%d %s is not bound to its GPU's NUMA node; this binds "
                           "it:\n",
                           said ? "" : "\n", p->pid, p->name);
        lab_str_printf(out, "  %s\n", p->advice);
        said++;
    }
}

/* --- the summary --- */

static void mean_and_most(struct lab_doc *doc, const struct top_entity *e,
                          enum lab_metric_id metric,
                          const char *(*write)(double value, char text[TOP_TEXT])) {
    char mean[TOP_TEXT], most[TOP_TEXT];
    double value = top_mean(e, metric);
    if (isnan(value))
        lab_doc_cell(doc, "–");
    else
        lab_doc_cell(doc, "%s / %s", write(value, mean), write(top_highest(e, metric), most));
}

static const char *watts(double value, char text[TOP_TEXT]) {
    return top_whole(value, "W", text);
}

static const char *celsius(double value, char text[TOP_TEXT]) {
    return top_whole(value, "°C", text);
}

static void add_devices(const struct lab_top_history *history, struct lab_style style,
                        struct lab_str *out) {
    static const struct lab_doc_column columns[] = {
        {NULL, "device", .align = LAB_ALIGN_WHOLE}, {NULL, "utilised", LAB_UNIT_FIGURE},
        {NULL, "memory", LAB_UNIT_FIGURE},          {NULL, "power", LAB_UNIT_FIGURE},
        {NULL, "temperature", LAB_UNIT_FIGURE},     {NULL, "energy", LAB_UNIT_FIGURE},
        {NULL, "throttled", LAB_UNIT_FIGURE}};
    int devices[TOP_DEVICES_MAX], count = top_devices(history, devices);
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, name);
    char text[TOP_TEXT];
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_doc_rows(doc, NULL, NULL, columns, 7);
    for (int i = 0; i < count; i++) {
        const struct top_entity *e = &history->entities[devices[i]];
        bool cpu = e->entity.kind == LAB_ENTITY_CPU;
        lab_str_clear(&name);
        top_device_name(history, e, &name);
        lab_doc_cell(doc, "%s", name.text);
        mean_and_most(doc, e, cpu ? LAB_METRIC_CPU_UTILIZATION : LAB_METRIC_UTILIZATION,
                      top_percent);
        mean_and_most(doc, cpu ? top_of_kind(history, LAB_ENTITY_MEMORY) : e,
                      cpu ? LAB_METRIC_HOST_USED : LAB_METRIC_MEMORY_USED, top_size);
        mean_and_most(doc, e, LAB_METRIC_POWER, watts);
        mean_and_most(doc, e, LAB_METRIC_TEMPERATURE, celsius);
        lab_doc_cell(doc, "%s", top_energy(top_energy_j(e), text));
        lab_doc_cell(doc, "%s", top_seconds(top_held_back_s(e), text));
    }
    lab_doc_write(doc, "text", style, out);
}

static void add_events(const struct lab_top_history *history, const struct lab_top_view *view,
                       struct lab_str *out) {
    int64_t first =
        history->event_count > TOP_EVENTS_KEPT ? history->event_count - TOP_EVENTS_KEPT : 0;
    bool any = false;
    for (int64_t i = first; i < history->event_count; i++) {
        const struct top_event *event = &history->events[i % TOP_EVENTS_KEPT];
        if (event->kind == LAB_EVENT_MISSED)
            continue;
        lab_str_add(out, any ? "  " : "\nEvents:\n  ");
        any = true;
        lab_str_add_clock(out, event->time_ns + view->wall_offset_ns, LAB_STR_DATE);
        lab_str_add(out, "  ");
        if (event->entity >= 0 && event->entity < history->count) {
            top_device_name(history, &history->entities[event->entity], out);
            lab_str_add(out, " ");
        }
        lab_str_add(out, lab_event_kind_name(event->kind));
        if (event->kind == LAB_EVENT_XID)
            lab_str_printf(out, " %lld", (long long)event->number);
        lab_str_printf(out, "%s%s\n", *event->text ? ": " : "", event->text);
    }
}

static int64_t begin_of(const struct lab_top_history *history) {
    int64_t begin_ns = -1;
    for (int i = 0; i < history->count; i++) {
        const struct top_entity *e = &history->entities[i];
        if (e->known && e->first_ns >= 0 && (begin_ns < 0 || e->first_ns < begin_ns))
            begin_ns = e->first_ns;
    }
    return begin_ns;
}

void lab_top_summary(const struct lab_top_history *history, const struct lab_top_view *view,
                     bool unicode, struct lab_str *out) {
    LAB_AUTO(str, text);
    char duration[TOP_TEXT];
    int64_t begin_ns = begin_of(history);
    lab_str_printf(&text, "%s%s", view->source ? view->source : "",
                   lab_top_history_simulated(history) ? " (simulated)" : "");
    if (begin_ns < 0) {
        lab_str_add(&text, ": nothing was sampled.\n");
    } else {
        lab_str_printf(&text, ", watched for %s from ",
                       top_seconds((double)(history->time_ns - begin_ns) * 1e-9, duration));
        lab_str_add_clock(&text, begin_ns + view->wall_offset_ns, LAB_STR_DATE);
        lab_str_add(&text, "; mean / highest:\n\n");
        add_devices(history, (struct lab_style){.columns = 120, .unicode = unicode}, &text);
        add_events(history, view, &text);
    }
    if (unicode)
        lab_str_add(out, text.text);
    else
        lab_text_to_ascii(text.text, out);
}
