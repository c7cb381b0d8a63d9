/* study_words.c: figures and sentences about studies, as the terminal and Markdown both have
 * them. */
#include "report/study/study_axes.h"
#include "report/study/study_internal.h"

#include "base/list.h"
#include "model/result.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* --- figures --- */

const char *study_plural(int64_t count) {
    return count == 1 ? "" : "s";
}

void study_add_figure(struct lab_str *out, double value, int digits) {
    if (isnan(value)) {
        lab_str_add(out, "–");
        return;
    }
    bool millions = fabs(value) >= 999.5e3;
    double shown = millions ? 1e-6 * value : value;
    /* %e rounds as it will be shown, so that 9.999 has one digit fewer behind its point */
    char rounded[40];
    snprintf(rounded, sizeof rounded, "%.*e", digits - 1, shown);
    double near = strtod(rounded, NULL), size = fabs(near);
    int before = size >= 1 ? (int)floor(log10(size) + 1e-9) + 1 : 0;
    if (size > 0 && size < 1)
        lab_str_printf(out, "%.*g", digits, near);
    else
        lab_str_printf(out, "%.*f", before < digits ? digits - (before ? before : 1) : 0, near);
    lab_str_add(out, millions ? " million" : "");
}

void study_add_rate(struct lab_str *out, double value, const char *unit) {
    if (strcmp(unit, STUDY_TIME) == 0 && !isnan(value)) {
        lab_str_add_time(out, 1 / value);
        return;
    }
    study_add_figure(out, value, fabs(value) >= 999.5 && fabs(value) < 9999.5 ? 4 : 3);
    if (*unit)
        lab_str_printf(out, " %s", unit);
}

void study_add_short_rate(double rate, const char *unit, struct lab_str *out) {
    if (isnan(rate) || strcmp(unit, STUDY_TIME) == 0 || rate < 9999.5) {
        study_add_rate(out, rate, unit);
        return;
    }
    lab_str_add_rate(out, rate);
    lab_str_printf(out, "%s%s", *unit ? " " : "", unit);
}

void study_add_change(const struct lab_claim *claim, struct lab_str *out) {
    if (claim->verdict == LAB_CLAIM_NO && !isnan(claim->bound))
        lab_str_printf(out, "±%.1f%%", fmax(0.1, ceil(1000 * claim->bound) / 10));
    else if (isnan(claim->effect))
        lab_str_add(out, "–");
    else
        lab_str_add_change(out, claim->effect);
    if (!isnan(claim->effect) && claim->verdict == LAB_CLAIM_INCONCLUSIVE)
        lab_str_add(out, "?");
}

void study_add_spread(struct lab_str *out, double rate, double low, double high) {
    double farthest = fmax(high - rate, rate - low) / rate;
    if (isnan(low) || isnan(high) || !isfinite(farthest))
        lab_str_add(out, "–");
    else if (farthest < 0.0005)
        lab_str_add(out, "< 0.1%");
    else if (farthest >= 0.995) /* nothing is known about it but its size */
        lab_str_add(out, "> 100%");
    else
        lab_str_printf(out, "%.*f%%", farthest < 0.0995 ? 1 : 0, 100 * farthest);
}

void lab_report_rate(const struct lab_run *run, struct lab_str *out) {
    if (!isfinite(run->rate) || !isnan(lab_run_once_s(run, run->rate))) {
        lab_str_add(out, "done");
        return;
    }
    study_add_rate(out, run->rate, run->rate_unit);
    if (isnan(run->rate_low) || isnan(run->rate_high))
        return;
    lab_str_add(out, " ± ");
    study_add_spread(out, run->rate, run->rate_low, run->rate_high);
}

static bool local_time(int64_t wall_ns, struct tm *ret) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    return localtime_r(&seconds, ret) != NULL;
}

static void add_duration(struct lab_str *out, double seconds) {
    if (seconds < 120)
        lab_str_add_time(out, seconds);
    else
        lab_str_add_duration(out, seconds, LAB_DURATION_ROUNDED);
}

#define PAUSED 1.1 /* whole time over that of the runs: there were cool-downs */

void study_add_when(const struct study_digest *digest, struct lab_str *out) {
    struct tm first, last;
    if (!digest->first_wall_ns || !local_time(digest->first_wall_ns, &first) ||
        !local_time(digest->last_wall_ns, &last))
        return;
    lab_str_add_clock(out, digest->first_wall_ns, LAB_STR_DATE);
    bool one_day = first.tm_year == last.tm_year && first.tm_yday == last.tm_yday;
    /* a simulated study's clock begins with this machine's and then runs ahead of it */
    bool simulated = digest->study->simulated;
    if (!simulated && digest->last_wall_ns > digest->first_wall_ns) {
        lab_str_add(out, " to ");
        lab_str_add_clock(out, digest->last_wall_ns, one_day ? "%H:%M:%S" : LAB_STR_DATE);
    }
    double whole_s = 1e-9 * (double)(digest->last_wall_ns - digest->first_wall_ns);
    if (digest->busy_s > 0) {
        lab_str_add(out, "; the runs took ");
        add_duration(out, digest->busy_s);
        lab_str_add(out, simulated ? " of simulated time" : "");
    }
    if (digest->busy_s > 0 && simulated && whole_s > PAUSED * digest->busy_s) {
        lab_str_add(out, ", ");
        add_duration(out, whole_s);
        lab_str_add(out, " with the pauses between them");
    }
}

#define MEASURED_MOST 1024 /* GPUs or nodes of a machine */

/* "0–3", "0 and 2": the numbers below `most` that are set; how many there are. */
static int add_numbers(const bool *set, struct lab_str *out) {
    const char *names[MEASURED_MOST + 1];
    int count = 0, name_count = 0;
    LAB_AUTO(arena, arena);
    for (int from = 0, to; from < MEASURED_MOST; from = to + 1) {
        for (to = from; to < MEASURED_MOST && set[to];)
            to++;
        count += to - from;
        if (to - from > 2)
            names[name_count++] = lab_arena_printf(&arena, "%d–%d", from, to - 1);
        for (int i = from; i < to && to - from <= 2; i++)
            names[name_count++] = lab_arena_printf(&arena, "%d", i);
    }
    names[name_count] = NULL;
    lab_str_add_list(out, names, "and");
    return count;
}

static void add_measured(const bool *set, int of, const char *noun, struct lab_str *out) {
    LAB_AUTO(str, numbers);
    int count = add_numbers(set, &numbers);
    if (count > 0 && count < of)
        lab_str_printf(out, "%s%s%s %s of %d", out->length ? ", " : "", noun, study_plural(count),
                       numbers.text, of);
}

/* "; GPUs 4–7 ran from remote NUMA node 0": of those that never ran from another one. */
static void add_remote(const struct study_digest *digest, struct lab_str *out) {
    bool remote[MEASURED_MOST] = {0}, others[MEASURED_MOST] = {0};
    int from = -1;
    for (int i = 0; i < digest->row_count; i++) {
        const struct lab_run *run = digest->rows[i].run[0];
        const struct lab_result *result = lab_run_result(run);
        for (int k = 0; k < run->rank_count; k++) {
            const struct lab_result *own = k < result->rank_count ? &result->ranks[k]
                                           : run->rank_count == 1 ? result
                                                                  : &lab_result_none;
            int gpu = lab_run_device_gpu(run->ranks[k].device), node = run->ranks[k].numa_node;
            if (!(own->device_node >= 0) || gpu < 0 || gpu >= MEASURED_MOST || node < 0)
                continue;
            bool is_remote = (int)own->device_node != node && (from < 0 || from == node);
            from = is_remote ? node : from;
            remote[gpu] |= is_remote;
            others[gpu] |= !is_remote;
        }
    }
    for (int gpu = 0; gpu < MEASURED_MOST; gpu++)
        remote[gpu] &= !others[gpu];
    LAB_AUTO(str, gpus);
    int count = add_numbers(remote, &gpus);
    if (count > 0)
        lab_str_printf(out, "; GPU%s %s ran from remote NUMA node %d", study_plural(count),
                       gpus.text, from);
}

static void note_devices(const struct lab_run *run, bool *gpus, bool *nodes) {
    for (int i = 0; i < run->rank_count; i++) {
        int gpu = lab_run_device_gpu(run->ranks[i].device), node = run->ranks[i].numa_node;
        if (gpu >= 0 && gpu < MEASURED_MOST)
            gpus[gpu] = true;
        if (node >= 0 && node < MEASURED_MOST)
            nodes[node] = true;
    }
}

void study_add_measured(const struct study_digest *digest, struct lab_str *out) {
    bool gpus[MEASURED_MOST] = {0}, nodes[MEASURED_MOST] = {0};
    for (int i = 0; i < digest->row_count; i++) /* repeats of a spread study are on several GPUs */
        for (int k = 0; k < digest->rows[i].run_count; k++)
            note_devices(digest->rows[i].run[k], gpus, nodes);
    add_measured(gpus, digest->study->gpu_count, "GPU", out);
    add_measured(nodes, digest->study->node_count, "NUMA node", out);
    if (out->length)
        add_remote(digest, out);
}

#define PAIRS_SHOWN 6

void study_add_pairs(const struct study_digest *digest, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    const char **pairs = NULL;
    int count = 0;
    for (int i = 0; i < digest->row_count && digest->study->gpu_count > 2; i++) {
        const struct lab_run *run = digest->rows[i].run[0];
        int first = run->rank_count == 2 ? lab_run_device_gpu(run->ranks[0].device) : -1;
        int second = first < 0 ? -1 : lab_run_device_gpu(run->ranks[1].device);
        const char *pair = lab_arena_printf(&arena, "%d+%d", first, second);
        if (second >= 0 && lab_list_find_text(pairs, count, pair) < 0)
            LAB_ADD(pairs, count, &arena) = pair;
    }
    for (int i = 0; i < count && i < PAIRS_SHOWN; i++)
        lab_str_printf(out, "%s%s", i ? ", " : "GPUs ", pairs[i]);
    if (count > PAIRS_SHOWN)
        lab_str_printf(out, " and %d more", count - PAIRS_SHOWN);
}

void study_add_shared(const struct study_digest *digest, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    const struct lab_run **runs =
        lab_arena_alloc(&arena, (size_t)digest->row_count + 1, sizeof *runs);
    for (int i = 0; i < digest->row_count; i++)
        runs[i] = digest->rows[i].run[0];
    study_axes_add_shared(runs, digest->row_count, out);
}

/* "model" of "Model"; "GPU" and "NUMA node" stay. */
static const char *title_within(const char *title, struct lab_arena *arena) {
    if (strcmp(title, "Compiled") == 0)
        return "compilation";
    if (strcmp(title, "Batch") == 0)
        return "batch size";
    char *text = lab_arena_strdup(arena, title);
    if (text[0] && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

void study_add_axes(const struct study_digest *digest, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    size_t rows = (size_t)digest->row_count;
    const struct lab_run **runs = lab_arena_alloc(&arena, rows + 1, sizeof *runs);
    for (size_t i = 0; i < rows; i++)
        runs[i] = digest->rows[i].run[0];
    struct study_axes axes = study_axes_make(runs, digest->row_count, &arena);
    for (int a = 0; a < axes.count; a++)
        lab_str_printf(out, "%s%s",
                       a == 0               ? ""
                       : a + 1 < axes.count ? ", "
                                            : " and ",
                       title_within(axes.items[a].title, &arena));
}

void study_add_points_counted(const struct study_digest *digest, struct lab_str *out) {
    const struct lab_study_info *study = digest->study;
    int distinct = digest->row_count, repeats = distinct ? digest->rows[0].run_count : 0;
    for (int i = 1; i < distinct; i++)
        repeats = digest->rows[i].run_count == repeats ? repeats : 0;
    lab_str_printf(out, "%d", distinct);
    if (study->point_count > distinct)
        lab_str_printf(out, " distinct of %lld", (long long)study->point_count);
    if (repeats > 1)
        lab_str_printf(out, " × %d repeats =", repeats);
    else
        lab_str_add(out, " in");
    lab_str_printf(out, " %d run%s", study->run_count, study_plural(study->run_count));
}

/* --- of one row --- */

static void add_part(struct lab_str *out, size_t from, const char *text) {
    lab_str_printf(out, "%s%s", out->length > from ? ", " : "", text);
}

void study_add_remark(const struct study_digest *digest, const struct study_row *row,
                      struct lab_str *out) {
    size_t from = out->length;
    const int *counts = row->state_counts;
    const char *under_way = digest->study->running ? "running" : "interrupted";
    if (row->run_count == 1) {
        if (counts[LAB_RUN_RUNNING])
            add_part(out, from, under_way);
        else if (!counts[LAB_RUN_DONE])
            add_part(out, from, lab_run_state_name(row->run[0]->state));
        if (row->invalid)
            add_part(out, from, "invalid");
        if (row->concurrent)
            add_part(out, from, "concurrent");
        return;
    }
    const struct {
        int count;
        const char *what;
    } parts[] = {
        {counts[LAB_RUN_FAILED], "failed"},   {row->invalid, "invalid"},
        {row->concurrent, "concurrent"},      {counts[LAB_RUN_RUNNING], under_way},
        {counts[LAB_RUN_PLANNED], "planned"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].count)
            continue;
        add_part(out, from, "");
        if (parts[i].count < row->run_count)
            lab_str_printf(out, "%d ", parts[i].count);
        lab_str_add(out, parts[i].what);
    }
}

double study_share_of(const char *text, const char **ret_at) {
    for (const char *at = text; *at && *at != '\''; at++) { /* not in a line that it quotes */
        size_t length = strspn(at, "0123456789.");
        if (isdigit((unsigned char)*at) && (at[length] == '%' || memchr(at, '.', length - 1))) {
            *ret_at = at;
            return strtod(at, NULL);
        }
        at += length > 1 ? length - 1 : 0;
    }
    *ret_at = NULL;
    return -1;
}

/* Of runs with values of their own: "other processes took up to 64.3% of …"; of what has no share
 * that could be the largest, one of them. */
static void add_most(const struct study_note *note, struct lab_str *out) {
    const char *text = note->most, *at;
    double most = study_share_of(text, &at);
    size_t length = strcspn(text, ";");
    if (at && note->kind == LAB_RUN_WARNING_OUTLIERS)
        lab_str_printf(out, ": %.*s" LAB_WARNS_OUTLIERS ", up to %.1f%% of a run's times",
                       (int)(lab_run_warning_of_rank(text) - text), text, most);
    else if (at && at < text + length)
        lab_str_printf(out, ": %.*sup to %.*s", (int)(at - text), text, (int)(text + length - at),
                       at);
    else
        lab_str_printf(out, ", e.g. %s", note->text);
}

void study_add_note(const struct study_digest *digest, const struct study_note *note,
                    struct lab_str *out) {
    static const char long_words[] = "the machine's CPU time during the run";
    int ended = digest->state_counts[LAB_RUN_DONE] + digest->state_counts[LAB_RUN_FAILED];
    if (note->run_count == ended && ended > 1)
        lab_str_printf(out, "all %d runs", ended);
    else if (ended > 1)
        lab_str_printf(out, "%d of %d runs", note->run_count, ended);
    if (note->exact)
        lab_str_printf(out, "%s%s", ended > 1 ? ": " : "", note->text);
    else
        add_most(note, out);
    char *found = strstr(out->text, long_words);
    if (found) {
        LAB_AUTO(str, rest);
        lab_str_add(&rest, found + strlen(long_words));
        out->length = (size_t)(found - out->text);
        lab_str_printf(out, "the CPU time%s", rest.text ? rest.text : "");
    }
}

void study_add_who(const struct study_note *note, int of, struct lab_str *out) {
    int others = note->run_count - 1;
    const char *first = note->run[0]->id;
    if (others == 0) {
        lab_str_add(out, first);
        if (note->run[0]->attempts > 1)
            lab_str_printf(out, " (%d attempts)", note->run[0]->attempts);
    } else if (!note->exact)
        lab_str_printf(out, "%s (%s%d other%s with other values)", first,
                       note->run_count == of && others > 1 ? "and all " : "and ", others,
                       study_plural(others));
    else if (note->run_count == of)
        lab_str_printf(out, "all %d runs", of);
    else if (others == 1)
        lab_str_printf(out, "%s and %s", first, note->run[1]->id);
    else
        lab_str_printf(out, "%s and %d more runs", first, others);
}

/* What can be done about a failure, for all of its runs; false = nothing to say. */
static bool add_hint(const struct study_note *note, struct lab_str *out) {
    const char *options = note->run[0]->options;
    for (int i = 1; i < note->run_count; i++) /* what one workload has, another may not */
        if (!lab_str_equal(note->run[i]->workload, note->run[0]->workload))
            options = NULL;
    return lab_report_hint(note->run[0]->hint, options, note->run[0]->error, out);
}

const char *study_hint(const struct study_note *note, struct lab_arena *arena) {
    LAB_AUTO(str, hint);
    return add_hint(note, &hint) ? lab_arena_strdup(arena, hint.text) : NULL;
}

/* --- of the study --- */

static const char *are(int count) {
    return count == 1 ? "is" : "are";
}

void study_add_counts(const struct lab_study_info *study,
                      const int state_counts[LAB_RUN_STATE_COUNT], int invalid,
                      struct lab_str *out) {
    int done = state_counts[LAB_RUN_DONE], failed = state_counts[LAB_RUN_FAILED];
    int under_way = state_counts[LAB_RUN_RUNNING], left = state_counts[LAB_RUN_PLANNED];
    int total = done + failed + under_way + left;
    if (total == 0) {
        lab_str_add(out, "no runs");
        return;
    }
    if (done + failed == 0)
        lab_str_printf(out, "none of %d run%s has ended yet", total, study_plural(total));
    else if (done == 0)
        lab_str_printf(out, "none of %d run%s succeeded", total, study_plural(total));
    else
        lab_str_printf(out, "%d of %d run%s succeeded", done, total, study_plural(total));
    if (done + failed && study->running)
        lab_str_add(out, " so far");
    if (invalid && invalid == done)
        lab_str_add(out, done == 1 ? ", but it is invalid" : ", but all of them are invalid");
    else if (invalid)
        lab_str_printf(out, ", %d of them invalid", invalid);
    if (failed)
        lab_str_printf(out, ", %d failed", failed);
    if (under_way && study->running)
        lab_str_printf(out, ", %d %s under way", under_way, are(under_way));
    else
        left += under_way;
    if (left && left < total)
        lab_str_printf(out, ", %d %s left", left, are(left));
    if (under_way && !study->running)
        lab_str_printf(out, " (%d interrupted)", under_way);
}

/* A name in so many columns, without its middle where it is longer. Both ends of it matter: devices
 * stand at its beginning, what varies at its end. */
static const char *cut_name(const char *name, int columns, bool unicode, struct lab_arena *arena) {
    int length = (int)strlen(name); /* ids are ASCII */
    if (length <= columns)
        return name;
    int head = (columns - 1) / 2, tail = columns - 1 - head;
    return lab_arena_printf(arena, "%.*s%s%s", head, name, unicode ? "…" : "~",
                            name + length - tail);
}

/* Of a program's matrix by what varies; else the point's own name. */
static const char *row_name(struct study_digest *digest, const struct study_row *row, int columns,
                            bool unicode) {
    struct lab_arena *arena = &digest->arena;
    size_t rows = (size_t)digest->row_count;
    const struct lab_run **runs = lab_arena_alloc(arena, rows + 1, sizeof *runs);
    for (size_t i = 0; i < rows; i++)
        runs[i] = digest->rows[i].run[0];
    struct study_axes axes = study_axes_make(runs, digest->row_count, arena);
    for (int a = 0; a < axes.count; a++) {
        LAB_AUTO(str, name);
        if (axes.items[a].kind != STUDY_AXIS_MATRIX)
            continue;
        study_axes_add_name(&axes, (int)(row - digest->rows), &name);
        return lab_arena_strdup(arena, name.text);
    }
    return cut_name(row->name, columns, unicode, arena);
}

void study_add_answer(struct study_digest *digest, int name_columns, bool unicode,
                      struct lab_str *out) {
    study_add_counts(digest->study, digest->state_counts, digest->invalid, out);
    for (int i = 0; i < digest->range_count; i++) {
        const struct study_range *range = &digest->ranges[i];
        bool time = strcmp(range->unit, STUDY_TIME) == 0; /* the least of them is the best */
        const struct study_row *ends[] = {time ? range->best : range->worst,
                                          time ? range->worst : range->best};
        lab_str_add(out, i ? "; " : ": ");
        for (int k = 0; k < (range->row_count > 1 ? 2 : 1); k++) {
            lab_str_add(out, k ? " to " : "");
            size_t from = out->length;
            study_add_rate(out, ends[k]->rate, range->unit);
            lab_text_keep(out, from);
            lab_str_printf(out, " (%s)", row_name(digest, ends[k], name_columns, unicode));
        }
    }
    lab_str_add(out, ".");
}
