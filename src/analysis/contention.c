/*
 * contention.c: `gpulab analyze contention`: which kernels take longer next to others, the likely
 * cause, what each mitigation recovers, and what tuning under load costs. The claims are made in
 * contention/; here they become tables, advice and a verdict for scripts.
 */
#include "analysis/contention/contention.h"

#include "analysis/analysis_group.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

struct figures {
    struct lab_claim slowdown, cost;
    struct lab_doc_cell lowest, cause;
    int slower, kernels;
    double tried, tunings, other; /* NaN = not tuned */
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, slowdown, "change", "Time", LAB_UNIT_CHANGE, "Time"),
    LAB_FIELD(struct figures, kernels, "kernels", "Kernels", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, slower, "slower", "Slower kernels", LAB_UNIT_COUNT, "Slower kernels"),
    LAB_FIELD(struct figures, lowest, "resource", "Lower resource", LAB_UNIT_TEXT,
              "Lower resource"),
    LAB_FIELD(struct figures, cause, "cause", "Likely cause", LAB_UNIT_TEXT, "Likely cause"),
    LAB_FIELD(struct figures, tried, "configurations_tried", "Configs tried", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, tunings, "tunings", "Tunings", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, other, "other_choices", "Other choices", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, cost, "tuning_cost", "Tuning cost", LAB_UNIT_CHANGE),
};

static const struct lab_field recovery_fields[] = {
    LAB_FIELD(struct contention_phase, name, "phase", "Phase", LAB_UNIT_TEXT),
    LAB_FIELD(struct contention_phase, mitigations, "mitigations", "Mitigations", LAB_UNIT_TEXT),
    LAB_FIELD(struct contention_phase, recovery, "change", "Time", LAB_UNIT_CHANGE),
    LAB_FIELD(struct contention_phase, recovered, "recovered", "Recovered", LAB_UNIT_SHARE),
    LAB_FIELD(struct contention_phase, throughput, "throughput", "Total throughput",
              LAB_UNIT_CHANGE),
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct contention_row, phase, "phase", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct contention_row, kernel, "kernel", "Kernel", LAB_UNIT_TEXT),
    LAB_FIELD(struct contention_row, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct contention_row, gpu_id, "gpu_id", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct contention_row, change, "change", "Change of time", LAB_UNIT_CHANGE),
};

struct resource_row {
    struct contention_resource it;
    const char *measured, *base, *here;
};

static const struct lab_field resource_fields[] = {
    LAB_FIELD(struct resource_row, it.phase, "phase", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct resource_row, it.key, "resource", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct resource_row, measured, "measured", "Measured", LAB_UNIT_TEXT),
    LAB_FIELD(struct resource_row, it.base, "baseline", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct resource_row, base, NULL, "Alone, mean", LAB_UNIT_FIGURE),
    LAB_FIELD(struct resource_row, it.here, "here", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct resource_row, here, NULL, "In this phase", LAB_UNIT_FIGURE),
    LAB_FIELD(struct resource_row, it.change, "change", "Change", LAB_UNIT_CHANGE),
};

/* --- what to do --- */

/* Devices that a phase runs at once. */
static int count_at_once(const struct lab_phases *phases, const char *name) {
    int most = 0;
    for (int i = 0; i < phases->run_count; i++)
        if (strcmp(phases->run_phases[i], name) == 0 && phases->runs[i]->rank_count > most)
            most = phases->runs[i]->rank_count;
    return most;
}

/* The one that gains most throughput of all devices together: groups that wait for each other are
 * faster each, and slower in all. NULL = none gains for certain. */
static const struct contention_phase *best_mitigation(const struct contention *made) {
    const struct contention_phase *best = NULL;
    double most = 1, all = count_at_once(&made->phases, made->list[0].name);
    for (int p = 1; p < made->count; p++) {
        const struct contention_phase *phase = &made->list[p];
        double total = count_at_once(&made->phases, phase->name) / all / (1 + phase->recovery.high);
        if (phase->recovery.verdict == LAB_CLAIM_YES && total > most) {
            most = total;
            best = phase;
        }
    }
    return best;
}

/* A process for each GPU, on its NUMA node where that is part of it. NULL = nothing to paste. */
static const char *make_command(const struct contention *made) {
    const struct contention_phase *best = best_mitigation(made);
    const struct lab_study_run *widest = NULL;
    LAB_AUTO(str, list);
    for (int i = 0; best && i < made->phases.run_count; i++)
        if (strcmp(made->phases.run_phases[i], best->name) == 0 &&
            (!widest || made->phases.runs[i]->rank_count > widest->rank_count))
            widest = made->phases.runs[i];
    bool numa = best && strstr(best->mitigations, "numa");
    if (!widest || (!numa && !strstr(best->mitigations, "process")))
        return NULL;
    for (int r = 0; r < widest->rank_count; r++) {
        const struct lab_study_rank *rank = &widest->ranks[r];
        int gpu, length = 0;
        const char *title = lab_study_device_title(rank->device, made->arena);
        if (sscanf(title, "GPU %d%n", &gpu, &length) != 1 || title[length] ||
            (numa && rank->device_node < 0))
            return NULL;
        lab_str_printf(&list, numa ? " %d:%d" : " %d", gpu, rank->device_node);
    }
    return lab_arena_printf(made->arena,
                            numa ? "export CUDA_DEVICE_ORDER=PCI_BUS_ID; "
                                   "for g in%s; do CUDA_VISIBLE_DEVICES=${g%%:*} numactl "
                                   "--cpunodebind=${g#*:} --membind=${g#*:} PROGRAM & done; wait"
                                 : "export CUDA_DEVICE_ORDER=PCI_BUS_ID; "
                                   "for g in%s; do CUDA_VISIBLE_DEVICES=$g PROGRAM & done; wait",
                            list.text);
}

/* Where no kernel is slowed. */
static const char *free_to_run(const struct contention *made, const struct contention_phase *main) {
    return lab_arena_printf(made->arena, "Run %s: no kernel is slowed by more than %.1f%%",
                            strstr(main->title, " at once") ? main->title
                                                            : "devices at the same time",
                            contention_bound_percent(main));
}

/* Where kernels are slowed, and no mitigation recovers it: "Time softmax with the other GPUs idle:
 * it takes 29.5% longer with 2 GPUs at once". NULL = none is. */
static const char *alone_to_time(const struct contention *made,
                                 const struct contention_phase *main) {
    const char **slowed = NULL;
    int count = 0;
    double least = INFINITY, most = 0;
    for (int k = 0; k < main->kernel_count; k++) {
        const struct lab_claim *change = &main->kernels[k].change;
        if (!contention_is_slower(change))
            continue;
        LAB_ADD(slowed, count, made->arena) = main->kernels[k].kernel;
        least = fmin(least, 100 * change->effect);
        most = fmax(most, 100 * change->effect);
    }
    if (count == 0 || count_at_once(&made->phases, main->name) < 2)
        return NULL;
    LAB_AUTO(str, list);
    int named = count;
    LAB_ADD(slowed, named, made->arena) = NULL;
    lab_str_add_list(&list, slowed, "and");
    double from = most >= 100 ? 1 + least / 100 : least, to = most >= 100 ? 1 + most / 100 : most;
    const char *unit = most >= 100 ? "× as long" : "% longer", /* as the answer has it */
        *first = count > 1
                     ? lab_arena_printf(made->arena, most >= 100 ? "%.2f to " : "%.1f to ", from)
                     : "",
               *last = lab_arena_printf(made->arena, most >= 100 ? "%.2f" : "%.1f", to);
    return lab_arena_printf(made->arena, "Time %s with the other %ss idle: %s %s%s%s with %s",
                            list.text, made->phases.device, count > 1 ? "they take" : "it takes",
                            first, last, unit, main->title);
}

/* A job that copies may be slowed where no kernel is; NULL = nothing shows that. */
static const char *where_to_copy(const struct contention *made,
                                 const struct contention_phase *main) {
    const struct contention_resource *pcie = contention_pcie_fall(main);
    if (!pcie)
        return NULL;
    struct contention_bridges bridges = contention_bridges_find(made, pcie);
    if (!bridges.shared)
        return lab_arena_printf(made->arena,
                                "Put jobs that copy much on GPUs without a common PCIe bridge: %s",
                                contention_fall_words(made, pcie, false));
    if (bridges.own)
        return lab_arena_printf(
            made->arena,
            "Put at most one copying job on %s, which share a PCIe bridge: %s lower bandwidth at "
            "once, %s on %s",
            bridges.shared, bridges.range,
            bridges.own_most < 100 * LAB_CLAIM_NEGLIGIBLE
                ? "unchanged"
                : lab_arena_printf(made->arena, "at most %.1f%% lower", bridges.own_most),
            bridges.own);
    return lab_arena_printf(made->arena,
                            "Expect %s lower PCIe bandwidth where %d %ss copy at once (%s). One "
                            "copying job on each PCIe bridge: not tested",
                            bridges.range, pcie->device_count, made->phases.device,
                            contention_values_words(pcie, made->arena));
}

/* What copies ask for, besides what the kernels do. */
static void add_others(struct lab_analysis_result *result, const struct contention *made) {
    const char **others = NULL;
    int count = 0;
    for (int i = 0; i < made->slow.copy_count; i++)
        LAB_ADD(others, count, made->arena) = made->slow.checks[i];
    const char *copies = where_to_copy(made, &made->list[0]);
    if (copies)
        LAB_ADD(others, count, made->arena) = copies;
    LAB_ADD(others, count, made->arena) = NULL;
    result->others = others;
}

/* --- for scripts --- */

/* Of the main phase and those with a neighbour: something is slower, or less of a resource. */
static enum lab_analysis_finding find(const struct contention *made) {
    bool open = false;
    for (int p = 0; p < made->count; p++) {
        const struct contention_phase *phase = &made->list[p];
        if (p > 0 && !made->phases.disturb[phase->number][0])
            continue;
        if (contention_is_slowed(phase) || phase->lowest >= 0)
            return LAB_ANALYSIS_FINDS;
        for (int k = 0; k < phase->kernel_count; k++)
            open |= phase->kernels[k].change.verdict == LAB_CLAIM_INCONCLUSIVE;
    }
    return open ? LAB_ANALYSIS_CANT_TELL : LAB_ANALYSIS_FINDS_NOTHING;
}

/* --- parts --- */

/* GPUs are probed by attention in bf16, whatever the kernels' precision (worker_probe.c). */
static const char *measured_words(const struct contention_resource *resource) {
    return lab_str_equal(resource->key, "sm") ? "SM compute rate (bf16 attention)"
                                              : resource->title;
}

static struct lab_rows resource_rows(const struct contention_phase *phase,
                                     struct lab_arena *arena) {
    struct resource_row *rows = NULL;
    int count = 0;
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct contention_resource *it = &phase->resources[r];
        if (it->change.verdict != LAB_CLAIM_NOT_TESTED)
            LAB_ADD(rows, count, arena) = (struct resource_row){
                *it, measured_words(it), lab_words_si(it->base, it->unit, arena),
                lab_words_si(it->here, it->unit, arena)};
    }
    return LAB_ROWS(resource_fields, rows, count);
}

/* The kernels over all devices, then on each where there are several. */
static struct lab_rows kernel_rows(const struct contention_phase *phase, struct lab_arena *arena) {
    struct contention_row *rows = NULL;
    int count = 0;
    for (int k = 0; k < phase->kernel_count; k++)
        LAB_ADD(rows, count, arena) = phase->kernels[k];
    for (int k = 0; k < phase->kernel_count; k++)
        for (int i = 0; i < phase->device_count && phase->device_count > phase->kernel_count; i++)
            if (strcmp(phase->devices[i].kernel, phase->kernels[k].kernel) == 0)
                LAB_ADD(rows, count, arena) = phase->devices[i];
    return LAB_ROWS(row_fields, rows, count);
}

/* The resource that fell most, by its key for programs. */
static struct lab_doc_cell resource_cell(const struct contention_phase *phase, bool known,
                                         struct lab_arena *arena) {
    struct lab_doc_cell cell = lab_cell_text(NULL);
    if (known) {
        cell.text = phase->resources[phase->lowest].title;
        cell.data = lab_value_string(arena, phase->resources[phase->lowest].key);
    }
    return cell;
}

static void add_part(struct lab_analysis_result *result, const struct contention *made,
                     const struct contention_phase *phase) {
    struct lab_arena *arena = made->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, phase->name, arena);
    struct lab_rows kernels = kernel_rows(phase, arena), resources = resource_rows(phase, arena);
    const struct lab_phase_tuning *tuning = &phase->tuning;
    struct figures figures = {.slowdown = phase->slowdown,
                              .cost = tuning->cost,
                              .lowest = resource_cell(phase, phase->lowest >= 0, arena),
                              .cause = contention_is_slowed(phase) && !phase->explains
                                           ? lab_cell_text("not identified")
                                           : resource_cell(phase, phase->explains, arena),
                              .kernels = phase->kernel_count,
                              .tried = tuning->tried > 0 && tuning->tried < LAB_TUNING_UNKNOWN
                                           ? tuning->tried
                                           : (double)NAN,
                              .tunings = tuning->tunings > 0 ? tuning->tunings : (double)NAN,
                              .other = tuning->tunings > 0 ? tuning->other : (double)NAN};
    for (int k = 0; k < phase->kernel_count; k++)
        figures.slower += contention_is_slower(&phase->kernels[k].change);
    part->answer = lab_arena_printf(arena, "%s.", lab_claim_sentence(&phase->slowdown, arena));
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    lab_rows_add_table(part, "comparisons", "Compared with the baseline", &kernels, arena);
    lab_rows_add_table(part, "resources", "Resources, measured after each run", &resources, arena);
    lab_analysis_add_claim(result, &phase->slowdown, arena);
    lab_rows_add_claims(result, &kernels, arena);
    lab_rows_add_claims(result, &resources, arena);
    if (phase->explains) {
        struct lab_claim cause = phase->resources[phase->lowest].change;
        cause.kind = "contention.cause";
        lab_analysis_add_claim(result, &cause, arena);
    }
    lab_analysis_add_claim(result, &tuning->cost, arena);
}

/* In the main phase's part: what each mitigation recovers of it. */
static void add_recoveries(struct lab_analysis_result *result, const struct contention *made) {
    struct contention_phase *list = NULL;
    int count = 0;
    for (int p = 1; p < made->count; p++)
        if (made->list[p].recovery.verdict != LAB_CLAIM_NOT_TESTED)
            LAB_ADD(list, count, made->arena) = made->list[p];
    struct lab_rows rows = LAB_ROWS(recovery_fields, list, count);
    lab_rows_add_table(
        &result->parts[0], "recoveries",
        lab_arena_printf(made->arena, "Mitigations, compared with %s", made->list[0].title), &rows,
        made->arena);
    lab_rows_add_claims(result, &rows, made->arena);
}

#define SINGLE_COLOUR 6 /* of single devices, on the bars of all: black */

/* Bars of each phase, which has one colour in all charts of a report: that of its number. */
static void add_bars(struct lab_chart_panel *panel, const struct contention *made,
                     const struct lab_rows *rows, const char *x) {
    struct lab_chart_series *bars =
        lab_rows_add_series(panel, rows, x, "change", "phase", LAB_CHART_BARS, made->arena);
    for (int s = 0; s < panel->series_count; s++) {
        int phase = LAB_FIND(made->list, made->count, name, bars[s].title);
        if (phase >= 0)
            bars[s].colour = made->list[phase].number;
    }
}

/* On the bars of resources, which are means: what falls on some devices alone is none of theirs. */
static void add_single_devices(struct lab_chart_panel *panel, const struct contention *made) {
    int bars = panel->series_count;
    for (int p = 0; p < made->count; p++) {
        struct lab_series points = {.arena = made->arena};
        int on = LAB_FIND(panel->series, bars, title, made->list[p].name);
        for (int r = 0; r < CONTENTION_RESOURCES && on >= 0; r++) {
            const struct contention_resource *it = &made->list[p].resources[r];
            int at = lab_list_find_text(panel->x.names, panel->x.name_count, it->title);
            for (int d = 0; at >= 0 && it->device_count > 1 && d < it->device_count; d++)
                lab_series_add_point(&points, at, 100 * expm1(it->logs[d]));
        }
        if (points.count == 0)
            continue;
        struct lab_chart_series series = lab_series_chart(
            &points, lab_arena_printf(made->arena, "single %ss", made->phases.device),
            LAB_CHART_POINTS, SINGLE_COLOUR);
        series.on = 1 + on;
        lab_panel_add_series(panel, series, made->arena);
    }
}

/* "Baseline: one GPU alone. Concurrent: 10 GPUs at once. Isolated: likewise, each in its own
 * process and on its own cores." NULL = the names say it. */
static const char *phase_words(const struct contention *made) {
    static const char *const means[][2] = {{"process", "in its own process"},
                                           {"affinity", "on its own cores"},
                                           {"numa", "on its local NUMA node"},
                                           {"mps", "in its own process under MPS"}};
    const struct lab_phases *phases = &made->phases;
    LAB_AUTO(str, text);
    if (!lab_str_equal(phases->titles[phases->base], "alone"))
        return NULL;
    lab_str_printf(&text, "%s: one %s alone.",
                   lab_words_capital(phases->names[phases->base], made->arena), phases->device);
    for (int p = 0; p < made->count; p++) {
        const struct contention_phase *phase = &made->list[p];
        const char *own[LAB_COUNT_OF(means) + 1] = {NULL};
        int count = 0;
        for (int m = 0; m < LAB_COUNT_OF(means); m++)
            if (strstr(phase->mitigations, means[m][0]))
                own[count++] = means[m][1];
        if (!count && lab_str_starts(phase->title, phase->name))
            continue;
        lab_str_printf(&text, " %s: %s", lab_words_capital(phase->name, made->arena),
                       count ? "likewise, each " : phase->title);
        lab_str_add_list(&text, own, "and");
        lab_str_add(&text, ".");
    }
    return lab_arena_strdup(made->arena, text.text);
}

static void add_chart(struct lab_analysis_result *result, const struct contention *made) {
    struct lab_arena *arena = made->arena;
    struct contention_row *kernels = NULL;
    struct resource_row *resources = NULL;
    int kernel_count = 0, resource_count = 0;
    for (int p = 0; p < made->count; p++) {
        for (int k = 0; k < made->list[p].kernel_count; k++)
            LAB_ADD(kernels, kernel_count, arena) = made->list[p].kernels[k];
        for (int r = 0; r < CONTENTION_RESOURCES; r++)
            if (made->list[p].resources[r].change.verdict != LAB_CLAIM_NOT_TESTED)
                LAB_ADD(resources, resource_count, arena) = (struct resource_row){
                    .it = made->list[p].resources[r], .measured = made->list[p].resources[r].title};
    }
    struct lab_chart *chart =
        lab_analysis_add_chart(result,
                               (struct lab_chart){.name = "contention",
                                                  .title = "Phases compared with the baseline",
                                                  .caption = phase_words(made),
                                                  .intervals = "95% intervals over runs",
                                                  .simulated = made->phases.simulated},
                               arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis("Kernel"), lab_axis("Change of time [%]"), arena);
    add_bars(panel, made, &LAB_ROWS(row_fields, kernels, kernel_count), "kernel");
    if (resource_count == 0)
        return;
    chart->caption = lab_arena_printf(arena, "%s%sCapacity: bars are the mean of all %ss.",
                                      chart->caption ? chart->caption : "",
                                      chart->caption ? " " : "", made->phases.device);
    panel = lab_chart_add_panel(chart, NULL, lab_axis("Resource"),
                                lab_axis("Change of the device's capacity [%]"), arena);
    add_bars(panel, made, &LAB_ROWS(resource_fields, resources, resource_count), "measured");
    add_single_devices(panel, made);
}

/* What the plan left out, which every run of it repeats. */
static void add_plan_notes(struct lab_analysis_result *result, const struct lab_study_table *study,
                           struct lab_arena *arena) {
    const struct lab_value *list =
        study->run_count ? lab_value_get(study->runs[0].test, "notes") : NULL;
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            lab_analysis_note(&result->notes, arena, "%s.",
                              lab_words_capital(list->items[i]->string, arena));
}

#define TUNE_S 10 /* of a tuning, as the shipped study has it */

/* Where tunings were too short for a choice: the study's duration that lengthens them. A phase's
 * time is shared by kernels and blocks, half of it tuning. */
static void test_tuning(struct lab_analysis_result *result, const struct contention *made,
                        struct lab_arena *arena) {
    const struct contention_phase *main = &made->list[0];
    double tune_s = NAN, blocks = 0;
    for (int i = 0; i < made->phases.run_count; i++) {
        tune_s = fmin(tune_s, lab_study_setting_number(made->phases.runs[i], "tune_s"));
        blocks = fmax(blocks, made->phases.runs[i]->run->repeat + 1);
    }
    if (main->tuning.tried == 0 && made->phases.simulated) {
        result->further = "device=cuda";
        result->tests = "Test auto-tuning on real GPUs";
    }
    if (main->tuning.tried == 0 || main->tuning.tried >= LAB_TUNING_LEAST || !(tune_s > 0))
        return;
    double longer_s = fmax(TUNE_S, 10 * tune_s);
    double phase_s = 2 * longer_s * main->kernel_count * blocks;
    result->further = lab_arena_printf(arena, "experiment.duration=%.0fs", ceil(phase_s));
    result->tests = "Test auto-tuning by a longer duration";
}

static int contention_run(const struct lab_analysis_input *input,
                          struct lab_analysis_result *result, struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    struct contention made = contention_make(input, arena);
    result->lacks = made.count == 0;
    for (int p = 0; p < made.count; p++)
        if (made.list[p].kernel_count > 0)
            add_part(result, &made, &made.list[p]);
    if (made.count > 0) {
        made.slow = contention_slow_find(&made);
        result->answer = contention_answer(&made);
        result->command = make_command(&made);
        result->finding = find(&made);
        const struct contention_phase *main = &made.list[0];
        if (main->slowdown.verdict == LAB_CLAIM_NO && count_at_once(&made.phases, main->name) > 1 &&
            result->finding == LAB_ANALYSIS_FINDS_NOTHING)
            result->action = free_to_run(&made, main);
        else if (!result->command)
            result->action = alone_to_time(&made, main);
        add_others(result, &made);
        add_recoveries(result, &made);
        for (int i = 0; i < made.slow.copy_count; i++)
            lab_analysis_add_claim(result, &made.slow.copies[i], arena);
        for (int i = 0; i < made.slow.doubtful_count; i++)
            lab_analysis_add_claim(result, &made.slow.doubts[i], arena);
        test_tuning(result, &made, arena);
        contention_add_devices(result, &made);
        add_chart(result, &made);
    } else {
        result->untested = lab_phases_lack(&made.phases);
    }
    lab_study_add_notes(&input->studies[0], "", &result->notes, arena);
    add_plan_notes(result, &input->studies[0], arena);
    return 0;
}

/* A study whose plan has phases, rather than one whose runs merely have names for them. */
static int contention_interest(const struct lab_study_table *study) {
    for (int i = 1; i < study->run_count && lab_study_has_phases(study); i++)
        if (strcmp(study->runs[i].phase, study->runs[0].phase) != 0)
            return 100;
    return 0;
}

const struct lab_analysis lab_analysis_contention = {
    .name = "contention",
    .summary = "slow-down of concurrent devices, its likely cause, and what recovers it",
    .description =
        "The phases of a study compared with its baseline, by block: kernel times and measured "
        "resources of each device (compute rate, memory bandwidth, PCIe, clock). Then what each "
        "mitigation recovers, and how configurations tuned under load perform on the idle device. "
        "Intervals are over blocks, at 95%. A cause is named only if its own measured value fell "
        "and explains the slow-down. Tuning counts from three configurations on.\n"
        "\n"
        "One block gives values and no verdict: experiment.repeat=5 gives both.",
    .kinds = (const struct lab_analysis_kind[]){{"contention.slowdown"},
                                                {"contention.kernel"},
                                                {"contention.device"},
                                                {"contention.recovery"},
                                                {"contention.throughput"},
                                                {"contention.resource", LAB_KIND_PROBED},
                                                {"contention.alone", LAB_KIND_PROBED},
                                                {"contention.cause", LAB_KIND_PROBED},
                                                {"contention.tuning", LAB_KIND_PROBED},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = contention_interest,
    LAB_PARTS_OF("phases", figure_fields),
    .run = contention_run,
};
