/*
 * straggler.c: `gpulab analyze straggler`, and what `gpulab watch` shows: which GPU or rank of a
 * job the others wait for, why, and how small a deviation would have been found. Evidence is
 * gathered in straggler/; here it becomes a verdict.
 */
#include "analysis/straggler/straggler.h"

#include "analysis/claims/rows.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>

struct straggler_config {
    struct lab_recording_stats_config stats;
};

static const struct lab_option straggler_options[] = {
    LAB_RECORDING_STATS_OPTIONS(straggler_config),
    {NULL},
};

#define LEAST_S 1.0
#define BUSY    90.0                  /* % of utilisation: peers that spin have this or more */
#define RESTS   0.5                   /* of its peers' utilisation */
#define CAUSE   LAB_STRAGGLER_METRICS /* its bit in the kinds of evidence */

enum verdict { NOT_TESTED, NONE, INCONCLUSIVE, NAMED };

static const char *const verdict_names[] = {"not_tested", "none", "inconclusive", "straggler"};

struct evidence {      /* of one unit */
    unsigned named_by; /* bits: metrics whose direction shows that it lags, and CAUSE */
    unsigned differs;  /* bits: metrics that deviate all the same */
    const char *const *causes;
};

struct figures { /* of a recording */
    const char *verdict, *straggler;
    double duration_s;
    int units;
    double windows, window_s;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, verdict, "verdict", NULL, LAB_UNIT_TEXT, "Verdict"),
    LAB_FIELD(struct figures, straggler, "straggler", NULL, LAB_UNIT_TEXT, "Straggler"),
    LAB_FIELD(struct figures, duration_s, "duration_s", NULL, LAB_UNIT_DURATION),
    LAB_FIELD(struct figures, units, "unit_count", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, windows, "windows", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, window_s, "window_s", NULL, LAB_UNIT_DURATION),
};

struct straggler { /* of one recording */
    struct lab_straggler_units units;
    struct lab_straggler_comparison comparisons[LAB_STRAGGLER_METRICS];
    struct evidence *evidence;
    enum verdict verdict;
    int named[LAB_RECORDING_STATS_GPUS_MAX];
    int named_count;
    struct figures figures;
    const char *const *notes;
};

/* --- deviations --- */

/* Whether every unit has it, and enough of it to be compared. */
static bool is_read(const struct lab_straggler_units *units, int metric) {
    double sum = 0;
    for (int u = 0; u < units->count; u++)
        sum += units->items[u].mean[metric]; /* NaN = one hasn't */
    return sum / units->count >= lab_straggler_kinds[metric].least;
}

/* Power stands in for SM activity where that can't be read. A rank's CPU time matters where there
 * is no GPU that shows what it does. */
static bool is_compared(const struct lab_straggler_units *units, int metric) {
    if (metric == LAB_STRAGGLER_POWER && is_read(units, LAB_STRAGGLER_SM))
        return false;
    if (metric == LAB_STRAGGLER_CPU && !units->processes)
        return false;
    return is_read(units, metric);
}

static void compare_all(struct straggler *job, struct lab_arena *arena) {
    const struct lab_straggler_units *units = &job->units;
    double **windows = lab_arena_alloc(arena, (size_t)units->count + 1, sizeof *windows);
    int family = 0;
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
        family += is_compared(units, m);
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++) {
        for (int u = 0; u < units->count; u++)
            windows[u] = units->items[u].windows[m];
        if (is_compared(units, m))
            lab_straggler_compare(windows, units->count, units->windows,
                                  lab_straggler_kinds[m].spread, family, arena,
                                  &job->comparisons[m]);
        if (is_compared(units, m) && !job->comparisons[m].tested)
            lab_analysis_note(&job->notes, arena, "%s was read too seldom to be compared.",
                              lab_straggler_kinds[m].title);
    }
}

/* Whether a unit that deviates like this is the one that is waited for. */
static bool shows_lag(const struct lab_straggler_comparison *comparison, int metric, int unit) {
    const struct lab_straggler_kind *kind = &lab_straggler_kinds[metric];
    if (comparison->units[unit].effect > 0)
        return kind->high;
    /* peers that aren't in a kernel all the time may as well wait for others than this one */
    return kind->low && (metric != LAB_STRAGGLER_UTILIZATION || comparison->peers >= BUSY);
}

/* A GPU that rests lowers its clock: that says nothing about how it works. */
static bool rests(const struct straggler *job, int unit) {
    const struct lab_straggler_comparison *use = &job->comparisons[LAB_STRAGGLER_UTILIZATION];
    return use->tested &&
           job->units.items[unit].mean[LAB_STRAGGLER_UTILIZATION] < use->peers * RESTS;
}

static void gather(struct straggler *job, struct lab_arena *arena) {
    int count = job->units.count;
    job->evidence = lab_arena_alloc(arena, (size_t)count + 1, sizeof *job->evidence);
    for (int u = 0; u < count; u++) {
        struct evidence *evidence = &job->evidence[u];
        const char *const *notes;
        evidence->causes = lab_straggler_causes(&job->units, u, &notes, arena);
        if (evidence->causes)
            evidence->named_by |= 1u << CAUSE;
        for (int i = 0; notes && notes[i]; i++)
            lab_analysis_note(&job->notes, arena, "%s: %s.", job->units.items[u].name, notes[i]);
        for (int m = 0; m < LAB_STRAGGLER_METRICS; m++) {
            const struct lab_straggler_comparison *comparison = &job->comparisons[m];
            if (!comparison->tested || !comparison->units[u].odd ||
                (m == LAB_STRAGGLER_CLOCK && rests(job, u)))
                continue;
            bool lags = count > 2 && shows_lag(comparison, m, u);
            /* rank 0 often reads what the others don't */
            if (!lags && m == LAB_STRAGGLER_PCIE && count > 2)
                continue;
            *(lags ? &evidence->named_by : &evidence->differs) |= 1u << m;
        }
    }
}

/* Whether a metric was compared by which a straggler would be named. */
static bool has_witness(const struct straggler *job) {
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
        if (job->comparisons[m].tested &&
            (lab_straggler_kinds[m].low || lab_straggler_kinds[m].high))
            return true;
    return false;
}

/* Several units are named only by something that they have in common, and as a minority. */
static void judge(struct straggler *job) {
    int count = job->units.count, differing = 0;
    unsigned common = ~0u;
    for (int u = 0; u < count; u++) {
        differing += job->evidence[u].differs != 0;
        if (!job->evidence[u].named_by || job->named_count == LAB_RECORDING_STATS_GPUS_MAX)
            continue;
        job->named[job->named_count++] = u;
        common &= job->evidence[u].named_by;
    }
    bool few = 2 * job->named_count < count || (count == 2 && job->named_count == 1);
    job->verdict = job->named_count > 0             ? (few && common ? NAMED : INCONCLUSIVE)
                   : differing || !has_witness(job) ? INCONCLUSIVE
                                                    : NONE;
}

/* --- words --- */

/* "SM clock 9.8% lower" */
static const char *short_of(const struct straggler *job, int metric, int unit,
                            struct lab_arena *arena) {
    double effect = job->comparisons[metric].units[unit].effect;
    return lab_arena_printf(arena, "%s %.1f%% %s", lab_straggler_kinds[metric].noun,
                            100 * fabs(effect), effect < 0 ? "lower" : "higher");
}

/* "[9.1, 10.5]%" */
static const char *interval_of(const struct straggler *job, int metric, int unit,
                               struct lab_arena *arena) {
    const struct lab_straggler_deviation *own = &job->comparisons[metric].units[unit];
    double low = own->effect < 0 ? -own->high : own->low;
    double high = own->effect < 0 ? -own->low : own->high;
    return lab_arena_printf(arena, "[%.1f, %.1f]%%", 100 * low, 100 * high);
}

/* "SM clock 9.8% lower than its peers (95% CI [9.1, 10.5]%)" */
static const char *phrase_of(const struct straggler *job, int metric, int unit,
                             struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s than %s (95%% CI %s)", short_of(job, metric, unit, arena),
                            job->units.count <= 2  ? job->units.items[1 - unit].name
                            : job->named_count > 1 ? "their peers"
                                                   : "its peers",
                            interval_of(job, metric, unit, arena));
}

static int first_bit(unsigned bits) {
    return bits ? __builtin_ctz(bits) : -1;
}

static void add_names(struct lab_str *text, const struct straggler *job, struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)job->named_count + 1, sizeof *names);
    for (int i = 0; i < job->named_count; i++)
        names[i] = job->units.items[job->named[i]].name;
    lab_str_add_list(text, names, "and");
}

static const char *name_answer(const struct straggler *job, struct lab_arena *arena) {
    const struct evidence *first = &job->evidence[job->named[0]];
    int metric = first_bit(first->named_by & ~(1u << CAUSE));
    LAB_AUTO(str, text);
    add_names(&text, job, arena);
    bool several = job->named_count > 1;
    if (metric < 0)
        lab_str_printf(&text, " likely lag%s: %s.", several ? "" : "s", first->causes[0]);
    else
        lab_str_printf(&text, " lag%s: %s.", several ? "" : "s",
                       phrase_of(job, metric, job->named[0], arena));
    if (metric >= 0 && first->causes)
        lab_str_printf(&text, " Likely cause: %s.", first->causes[0]);
    else if (metric >= 0)
        lab_str_printf(&text, " It %s.",
                       job->comparisons[metric].units[job->named[0]].effect < 0
                           ? lab_straggler_kinds[metric].low
                           : lab_straggler_kinds[metric].high);
    return lab_arena_strdup(arena, text.text);
}

/* "SM clock 5.9%, utilisation 2.8%" */
static const char *list_limits(const struct straggler *job, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
        if (job->comparisons[m].tested)
            lab_str_printf(&text, "%s%s %.1f%%", text.length ? ", " : "",
                           lab_straggler_kinds[m].noun,
                           ceil(1000 * job->comparisons[m].limit) / 10);
    return lab_arena_strdup(arena, text.text);
}

static const char *inconclusive_answer(const struct straggler *job, struct lab_arena *arena) {
    const struct lab_straggler_unit *units = job->units.items;
    LAB_AUTO(str, text);
    if (job->named_count > 1) {
        lab_str_add(&text, "Inconclusive: ");
        add_names(&text, job, arena);
        lab_str_add(&text, " each differ from their peers.");
        return lab_arena_strdup(arena, text.text);
    }
    for (int u = job->units.count - 1; u >= 0; u--) {
        int metric = first_bit(job->evidence[u].differs);
        if (metric < 0)
            continue;
        if (job->units.count == 2)
            lab_str_printf(&text, "Inconclusive which of %s and %s lags: %s: %s.", units[0].name,
                           units[1].name, units[u].name, phrase_of(job, metric, u, arena));
        else
            lab_str_printf(&text, "Inconclusive whether %s lags: %s.", units[u].name,
                           phrase_of(job, metric, u, arena));
        return lab_arena_strdup(arena, text.text);
    }
    return lab_arena_printf(arena,
                            "Inconclusive whether one of %d ranks lags: only CPU time is known, "
                            "and a rank may be late without it.",
                            job->units.count);
}

static const char *make_answer(const struct straggler *job, struct lab_arena *arena) {
    if (job->verdict == NAMED)
        return name_answer(job, arena);
    if (job->verdict == INCONCLUSIVE)
        return inconclusive_answer(job, arena);
    return lab_arena_printf(arena, "None of %d %s lags. Detection limits: %s (80%% power).",
                            job->units.count, job->units.processes ? "ranks" : "GPUs",
                            list_limits(job, arena));
}

static const char *why_untested(const struct straggler *job, struct lab_arena *arena) {
    const struct lab_straggler_units *units = &job->units;
    double duration_s = (double)(units->end_ns - units->start_ns) / 1e9;
    bool any = false, busy = false;
    double cpu = 0; /* NaN = unknown of one */
    if (units->count == 0)
        return "no GPU was used, and no ranks are known.";
    if (units->count == 1)
        return lab_arena_printf(arena, "only %s is used, and a straggler has peers.",
                                units->items[0].name);
    if (units->windows < LAB_STRAGGLER_WINDOWS || duration_s < LEAST_S)
        return lab_arena_printf(arena, "%.1f s in %d windows, at least %d windows are needed.",
                                duration_s, units->windows, LAB_STRAGGLER_WINDOWS);
    for (int u = 0; u < units->count; u++) /* a rank, or unknown: it may be busy */
        busy |= !(units->items[u].mean[LAB_STRAGGLER_UTILIZATION] < LAB_RECORDING_STATS_IDLE);
    for (int u = 0; u < units->count; u++)
        cpu += units->items[u].mean[LAB_STRAGGLER_CPU] / units->count;
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
        any |= is_compared(units, m);
    if (!any && units->processes && !isnan(cpu))
        return lab_arena_printf(
            arena,
            "the ranks use %.1f%% of a CPU each, and no GPU: less than the %.0f%% "
            "that can be compared.",
            cpu, lab_straggler_kinds[LAB_STRAGGLER_CPU].least);
    return !any ? "no metric is known of all of them." : !busy ? "the GPUs were idle." : NULL;
}

/* --- tables --- */

struct row { /* of a unit */
    const char *name, *rank;
    int pid;
    double clock, utilization, sm, power, pcie, share, cpu, queue, throttled;
    const char *link, *node, *mark;
};

struct deviation_row {
    const char *name, *evidence, *brief; /* brief: for people, on a line */
};

static const struct lab_field deviation_fields[] = {
    LAB_FIELD(struct deviation_row, name, "unit", "GPU or rank", LAB_UNIT_TEXT,
              .align = LAB_ALIGN_WHOLE),
    LAB_FIELD(struct deviation_row, evidence, "evidence", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct deviation_row, brief, NULL, "Differs from its peers (95% CI)", LAB_UNIT_TEXT,
              .below = true),
};

#define FIELD(member, key, title, unit, ...)                                                       \
    LAB_FIELD(struct row, member, key, title, unit, .optional = true, __VA_ARGS__)
static const struct lab_field row_fields[] = {
    FIELD(name, "unit", "GPU or rank", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE),
    FIELD(rank, "rank", NULL, LAB_UNIT_TEXT),
    FIELD(pid, "pid", NULL, LAB_UNIT_COUNT),
    FIELD(mark, "deviates", "Deviates", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE),
    FIELD(clock, "sm_clock_mhz", "SM MHz", LAB_UNIT_COUNT),
    FIELD(utilization, "utilization_percent", "Util.", LAB_UNIT_PERCENT),
    FIELD(sm, "sm_active_percent", "SM", LAB_UNIT_PERCENT),
    FIELD(power, "power_w", "Power", LAB_UNIT_WATTS),
    FIELD(pcie, "pcie_rx_gb_per_s", "PCIe in", LAB_UNIT_RATE, .yields = 1),
    FIELD(share, "gpu_share_percent", "GPU share", LAB_UNIT_PERCENT),
    FIELD(cpu, "cpu_percent", "CPU", LAB_UNIT_PERCENT, .yields = 1),
    FIELD(queue, "cpu_wait", "CPU wait", LAB_UNIT_SHARE, .yields = 2),
    FIELD(throttled, "throttled", "Throttled", LAB_UNIT_SHARE, .yields = 2),
    FIELD(link, "pcie_link", "Link", LAB_UNIT_TEXT, .yields = 3),
    FIELD(node, "numa", "NUMA", LAB_UNIT_TEXT, .yields = 3),
};

struct limit_row { /* of a metric */
    const char *metric;
    double spread, limit;
};

static const struct lab_field limit_fields[] = {
    LAB_FIELD(struct limit_row, metric, "metric", "Metric", LAB_UNIT_TEXT),
    LAB_FIELD(struct limit_row, spread, "spread", "Spread of peers", LAB_UNIT_SHARE),
    LAB_FIELD(struct limit_row, limit, "detection_limit", "Detected from", LAB_UNIT_SHARE),
};

static void list_deviations(const struct straggler *job, struct deviation_row **rows, int *count,
                            struct lab_arena *arena) {
    for (int u = 0; u < job->units.count; u++) {
        const struct evidence *evidence = &job->evidence[u];
        const char *name = job->units.items[u].name;
        for (int i = 0; evidence->causes && evidence->causes[i]; i++)
            LAB_ADD(*rows, *count, arena) =
                (struct deviation_row){name, evidence->causes[i], evidence->causes[i]};
        for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
            if ((evidence->named_by | evidence->differs) >> m & 1)
                LAB_ADD(*rows, *count, arena) = (struct deviation_row){
                    name, phrase_of(job, m, u, arena),
                    lab_arena_printf(arena, "%s %s", short_of(job, m, u, arena),
                                     interval_of(job, m, u, arena))};
    }
}

/* "SM clock -10.1%" for short; NULL = it doesn't differ. */
static const char *mark_of(const struct straggler *job, int unit, struct lab_arena *arena) {
    const struct evidence *evidence = &job->evidence[unit];
    int metric = first_bit((evidence->named_by | evidence->differs) & ~(1u << CAUSE));
    if (metric < 0)
        return evidence->causes ? "see below" : NULL;
    return lab_arena_printf(arena, "%s %+.1f%%", lab_straggler_kinds[metric].title,
                            100 * job->comparisons[metric].units[unit].effect);
}

static struct row make_row(const struct straggler *job, int number, struct lab_arena *arena) {
    const struct lab_straggler_unit *unit = &job->units.items[number];
    struct row row = {.name = unit->name,
                      .rank = unit->ranks,
                      .pid = unit->pid,
                      .clock = unit->mean[LAB_STRAGGLER_CLOCK],
                      .utilization = unit->mean[LAB_STRAGGLER_UTILIZATION],
                      .sm = unit->mean[LAB_STRAGGLER_SM],
                      .power = unit->mean[LAB_STRAGGLER_POWER],
                      .pcie = unit->mean[LAB_STRAGGLER_PCIE],
                      .share = unit->mean[LAB_STRAGGLER_SHARE],
                      .cpu = unit->mean[LAB_STRAGGLER_CPU],
                      .queue = unit->queue,
                      .mark = mark_of(job, number, arena),
                      .throttled = unit->throttled};
    if (!isnan(unit->pcie_width) && !isnan(unit->pcie_generation))
        row.link = lab_arena_printf(arena, "%.0f.0 x%.0f", unit->pcie_generation, unit->pcie_width);
    if (!isnan(unit->remote))
        row.node = unit->remote >= 0.5 ? "remote" : "local";
    return row;
}

static void add_tables(struct lab_analysis_part *part, const struct straggler *job,
                       struct lab_arena *arena) {
    int count = job->units.count, limits = 0;
    struct row *rows = lab_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    struct limit_row *limit_rows = NULL;
    struct deviation_row *deviations = NULL;
    int deviation_count = 0;
    for (int u = 0; u < count; u++)
        rows[u] = make_row(job, u, arena);
    lab_rows_add_table(part, "units", job->units.processes ? "By rank" : "By GPU",
                       &LAB_ROWS(row_fields, rows, count), arena);
    list_deviations(job, &deviations, &deviation_count, arena);
    lab_rows_add_table(part, "deviations", "Deviations",
                       &LAB_ROWS(deviation_fields, deviations, deviation_count), arena);
    for (int m = 0; m < LAB_STRAGGLER_METRICS; m++)
        if (job->comparisons[m].tested)
            LAB_ADD(limit_rows, limits, arena) =
                (struct limit_row){lab_straggler_kinds[m].title, job->comparisons[m].spread,
                                   job->comparisons[m].limit};
    lab_rows_add_table(part, "limits", "Detection limits (80% power)",
                       &LAB_ROWS(limit_fields, limit_rows, limits), arena);
}

/* --- the analysis --- */

static const char *describe(const struct straggler *job, struct lab_arena *arena) {
    const struct lab_straggler_units *units = &job->units;
    const struct lab_track *track = units->count > 0 ? units->items[0].track : NULL;
    LAB_AUTO(str, text);
    if (units->processes)
        lab_str_printf(&text, "%d ranks", units->count);
    else
        lab_str_printf(&text, "%d × %s", units->count,
                       track && *track->entity.name ? track->entity.name : "GPU");
    if (units->windows > 0) {
        lab_str_printf(&text, ", %d windows of ", units->windows);
        lab_str_add_time(&text, units->window_s);
    }
    return lab_arena_strdup(arena, text.text);
}

static void run_one(const struct lab_labelled_recording *source,
                    const struct straggler_config *config, struct lab_analysis_result *result,
                    struct straggler *job) {
    struct lab_arena *arena = result->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, source->name, arena);
    lab_straggler_units_make(source->recording, &config->stats, arena, &job->units);
    job->notes = job->units.notes;
    part->untested = why_untested(job, arena);
    if (!part->untested) {
        compare_all(job, arena);
        gather(job, arena);
        judge(job);
        part->answer = make_answer(job, arena);
        add_tables(part, job, arena);
    } else {
        part->answer = lab_analysis_untested(part->untested, arena);
    }
    for (int i = 0; i < job->named_count; i++)
        if (job->units.items[job->named[i]].advice)
            lab_analysis_note(&job->notes, arena, "Bind it to its GPU's NUMA node: %s",
                              job->units.items[job->named[i]].advice);
    if (job->verdict == INCONCLUSIVE && job->units.count == 2)
        lab_analysis_note(&job->notes, arena,
                          "Two have no majority. A cause names one: throttling, a narrower PCIe "
                          "link, a remote NUMA node, no free CPU, another process.");
    LAB_AUTO(str, names);
    if (job->verdict == NAMED)
        add_names(&names, job, arena);
    job->figures =
        (struct figures){.verdict = verdict_names[job->verdict],
                         .straggler = names.length ? lab_arena_strdup(arena, names.text) : NULL,
                         .duration_s = (double)(job->units.end_ns - job->units.start_ns) / 1e9,
                         .units = job->units.count,
                         .windows = job->units.windows,
                         .window_s = job->units.window_s};
    LAB_PART_FIGURES(part, figure_fields, &job->figures, arena);
    part->about = describe(job, arena);
    part->notes = job->notes;
}

static int straggler_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                         struct lab_err *err) {
    struct lab_arena *arena = result->arena;
    int count = input->recording_count, named = 0, inconclusive = 0;
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to analyse: no recording");
    struct straggler *jobs = lab_arena_alloc(arena, (size_t)count, sizeof *jobs);
    for (int i = 0; i < count; i++) {
        run_one(&input->recordings[i], input->config, result, &jobs[i]);
        named += jobs[i].verdict == NAMED;
        inconclusive += jobs[i].verdict == INCONCLUSIVE || jobs[i].verdict == NOT_TESTED;
    }
    result->finding = named          ? LAB_ANALYSIS_FINDS
                      : inconclusive ? LAB_ANALYSIS_CANT_TELL
                                     : LAB_ANALYSIS_FINDS_NOTHING;
    if (count == 1)
        result->answer = result->parts[0].answer;
    else
        result->answer = lab_arena_printf(arena, "%d of %d recordings have a straggler%s.", named,
                                          count, inconclusive ? "; some are inconclusive" : "");
    return 0;
}

const struct lab_analysis lab_analysis_straggler = {
    .name = "straggler",
    .summary = "which GPU or rank of a job the others wait for, and why",
    .description =
        "Compares the GPUs that a job used with each other: SM clock, utilisation, SM activity and "
        "copies over PCIe. Power stands in where SM activity can't be read. Values are compared in "
        "windows of time. A GPU deviates where it lies outside of the spread between its peers; "
        "verdicts hold for all GPUs and metrics together at 95%. In a synchronous job all ranks "
        "wait for the same one. So the one that differs is named, if its peers are a majority and "
        "the direction fits. A cause names a GPU by itself: throttling, a narrower PCIe link, a "
        "remote NUMA node, a process of another job.\n\n"
        "Of two GPUs that merely differ none is named. Detection limits are what would have been "
        "found with 80% power. A recording counts as one job: all GPUs with processes; gpus=[0,1] "
        "selects.",
    .options = straggler_options,
    .config_size = sizeof(struct straggler_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    LAB_PARTS_OF("recordings", figure_fields),
    .run = straggler_run,
};
