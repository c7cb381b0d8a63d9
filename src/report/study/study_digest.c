/*
 * study_digest.c: from a study's records to what can be said about it: runs that are repeats of
 * each other become rows with one figure, sentences that several runs share become one note.
 */
#include "base/hash.h"
#include "base/list.h"
#include "load/study_file.h"
#include "model/result.h"
#include "report/study/study_internal.h"
#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95

/* --- rows --- */

struct named {
    const struct lab_run *run;
    const char *name;
};

static int by_name(const void *a, const void *b) {
    const struct named *x = a, *y = b;
    if (x->run->rank_count != y->run->rank_count)
        return x->run->rank_count < y->run->rank_count ? -1 : 1;
    int order = strverscmp(x->name, y->name);
    if (order)
        return order;
    if (x->run->repeat != y->run->repeat)
        return x->run->repeat < y->run->repeat ? -1 : 1;
    return x->run->position < y->run->position ? -1 : x->run->position > y->run->position;
}

/* A name that was cut to the same length by chance is no repeat. */
static bool same_work(const struct named *a, const struct named *b) {
    if (strcmp(a->name, b->name) != 0 || a->run->rank_count != b->run->rank_count ||
        !lab_str_equal(a->run->options, b->run->options))
        return false;
    for (int i = 0; i < a->run->rank_count && !a->run->spread; i++)
        if (a->run->ranks[i].numa_node != b->run->ranks[i].numa_node ||
            !lab_str_equal(a->run->ranks[i].device, b->run->ranks[i].device))
            return false;
    return true;
}

/* Whether the run's rate is in its row's. */
static bool row_counts(const struct study_row *row, const struct lab_run *run) {
    return run->state == LAB_RUN_DONE && !isnan(run->rate) && (run->valid || !row->valid);
}

/* Most gangs' rates are sums, and a sum's inverse is no time; a program's isn't one. */
static bool did_one_thing(const struct lab_run *run) {
    return !isnan(lab_run_once_s(run, 1)) &&
           (run->rank_count == 1 || lab_str_equal(run->rate_unit, LAB_RATE_RUNS));
}

/* A row's rates; of what was done once 1/s, whatever the unit was. */
static double rate_of(const struct lab_run *run, double rate) {
    return did_one_thing(run) ? 1 / lab_run_once_s(run, rate) : rate;
}

/* Geometric, as analyses have it: a change between two rows is the ratio of these. */
static double mean_of(const double *values, int count) {
    double logs = 0;
    for (int i = 0; i < count; i++) {
        if (!(values[i] > 0))
            return lab_stats_mean(values, (size_t)count);
        logs += log(values[i]);
    }
    return count ? exp(logs / count) : (double)NAN;
}

static void rate_row(struct study_row *row, double *scratch) {
    int count = 0;
    for (int i = 0; i < row->run_count; i++)
        row->valid |= row->run[i]->valid && row_counts(row, row->run[i]);
    const struct lab_run *last = NULL;
    for (int i = 0; i < row->run_count; i++) {
        if (!row_counts(row, row->run[i]))
            continue;
        last = row->run[i];
        scratch[count++] = rate_of(last, last->rate);
    }
    row->rate_count = count;
    row->rate = mean_of(scratch, count);
    row->unit = last && last->rate_unit ? last->rate_unit : "";
    if (last && did_one_thing(last))
        row->unit = STUDY_TIME;
    row->low = row->high = NAN;
    if (count == 1) {
        row->low = rate_of(last, last->rate_low);
        row->high = rate_of(last, last->rate_high);
    } else if (count > 1) {
        struct lab_interval across =
            lab_stats_log_mean_interval(scratch, (size_t)count, CONFIDENCE);
        row->low = across.low;
        row->high = across.high;
    }
}

double study_row_latency_s(const struct study_row *row) {
    LAB_AUTO_FREE double *all = lab_mem_alloc((size_t)row->run_count, sizeof *all);
    int count = 0;
    for (int i = 0; i < row->run_count; i++) {
        double p95_ms =
            row_counts(row, row->run[i]) ? lab_run_result(row->run[i])->latency_ms_p95 : NAN;
        if (!isnan(p95_ms))
            all[count++] = 1e-3 * p95_ms;
    }
    return mean_of(all, count);
}

const char *study_latency_title(const struct study_digest *digest) {
    for (int i = 0; i < digest->row_count; i++)
        if (digest->rows[i].run[0]->iterations != 1)
            return "p95 latency";
    return "Time";
}

static struct named *sort_runs(struct study_digest *digest) {
    const struct lab_study_info *study = digest->study;
    struct named *named = lab_arena_alloc(&digest->arena, (size_t)study->run_count, sizeof *named);
    bool repeated = false;
    for (int i = 0; i < study->run_count; i++)
        repeated |= study->runs[i].repeat > 0;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_run *run = &study->runs[i];
        named[i].run = run;
        named[i].name = repeated ? lab_study_file_point(run, &digest->arena) : run->id;
    }
    qsort(named, (size_t)study->run_count, sizeof *named, by_name);
    return named;
}

static void make_rows(struct study_digest *digest, const struct named *named) {
    size_t count = (size_t)digest->study->run_count;
    const struct lab_run **runs = lab_arena_alloc(&digest->arena, count, sizeof *runs);
    double *scratch = lab_arena_alloc(&digest->arena, count, sizeof *scratch);
    digest->rows = lab_arena_alloc(&digest->arena, count, sizeof *digest->rows);
    for (size_t i = 0; i < count; i++) {
        const struct lab_run *run = runs[i] = named[i].run;
        if (i == 0 || !same_work(&named[i - 1], &named[i]))
            digest->rows[digest->row_count++] =
                (struct study_row){.name = named[i].name, .run = &runs[i]};
        struct study_row *row = &digest->rows[digest->row_count - 1];
        row->run_count++;
        row->state_counts[run->state]++;
        row->invalid += run->state == LAB_RUN_DONE && !run->valid;
        row->concurrent += run->state == LAB_RUN_DONE && run->concurrent;
    }
    for (int i = 0; i < digest->row_count; i++) {
        digest->repeats |= digest->rows[i].run_count > 1;
        rate_row(&digest->rows[i], scratch);
    }
}

static struct study_range *range_of(struct study_digest *digest, const char *unit) {
    int found = LAB_FIND(digest->ranges, digest->range_count, unit, unit);
    if (found >= 0)
        return &digest->ranges[found];
    digest->ranges[digest->range_count].unit = unit;
    return &digest->ranges[digest->range_count++];
}

static void make_ranges(struct study_digest *digest) {
    size_t most = (size_t)digest->row_count;
    digest->ranges = lab_arena_alloc(&digest->arena, most, sizeof *digest->ranges);
    for (int i = 0; i < digest->row_count; i++) {
        const struct study_row *row = &digest->rows[i];
        if (isnan(row->rate) || (!row->valid && !digest->nothing_valid))
            continue;
        struct study_range *range = range_of(digest, row->unit);
        if (!range->row_count || row->rate < range->worst->rate)
            range->worst = row;
        if (!range->row_count || row->rate > range->best->rate)
            range->best = row;
        range->row_count++;
    }
}

/* --- notes --- */

struct remark {
    uint64_t gist;
    int order;
    enum lab_run_warning kind;
    const char *text; /* with its rank */
    const struct lab_run *run;
};

struct remarks {
    struct remark *items;
    int count;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Behind the unit that stands behind a number, if there is one: "1.2 s" and "31 ms" are alike. */
static const char *skip_unit(const char *text) {
    static const char *const units[] = {" ns", " µs", " ms", " s", " min", " KiB", " MiB", " GiB"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        char next = strncmp(text, units[i], length) == 0 ? text[length] : 'x';
        if ((next < 'a' || next > 'z') && (next < 'A' || next > 'Z'))
            return text + length;
    }
    return text;
}

/* A hash of the text without its figures. */
static uint64_t gist_of(const char *text) {
    uint64_t hash = LAB_HASH_START;
    while (*text) {
        char c = *text++;
        if (is_digit(c)) {
            while (is_digit(*text) || ((*text == '.' || *text == ',') && is_digit(text[1])))
                text++;
            text = skip_unit(text);
            c = '0';
        }
        hash = lab_hash_bytes(hash, &c, 1);
    }
    return hash;
}

/* What outliers are put down to differs between runs; the warning is one. */
static void say(struct remarks *remarks, const char *text, const struct lab_run *run) {
    const char *plain = lab_run_warning_of_rank(text);
    struct remark remark = {
        .order = remarks->count, .kind = lab_run_warning_kind(plain), .text = text, .run = run};
    remark.gist = gist_of(lab_str_starts(plain, LAB_WARNS_OUTLIERS) ? LAB_WARNS_OUTLIERS : plain);
    LAB_PUSH(remarks->items, remarks->count) = remark;
}

struct ordered_note {
    struct study_note note;
    int order;
    int busy; /* 1: other work on the machine, which comes first: all values may be of it */
};

/* Whether all of them are of one rank; the load of the machine is none's. */
static bool is_of_rank(const struct remark *remarks, size_t count) {
    size_t length = (size_t)(lab_run_warning_of_rank(remarks->text) - remarks->text);
    for (size_t i = 1; i < count; i++)
        if (lab_run_warning_of_rank(remarks[i].text) != remarks[i].text + length ||
            strncmp(remarks[i].text, remarks->text, length) != 0)
            return false;
    return remarks->kind != LAB_RUN_WARNING_LOAD && remarks->kind != LAB_RUN_WARNING_STEAL;
}

/* Of remarks with one gist; a run that says the same twice, as gangs do, counts once. */
static struct study_note note_of(const struct remark *remarks, size_t count,
                                 const struct lab_run **runs) {
    const char *at;
    bool ranked = is_of_rank(remarks, count);
    struct study_note note = {.kind = remarks->kind, .run = runs, .exact = true};
    for (size_t i = 0; i < count; i++) {
        const char *text = ranked ? remarks[i].text : lab_run_warning_of_rank(remarks[i].text);
        note.text = i == 0 ? text : note.text;
        note.most = i == 0 ? text : note.most;
        if (study_share_of(text, &at) > study_share_of(note.most, &at))
            note.most = text;
        if (note.run_count && note.run[note.run_count - 1] == remarks[i].run)
            continue;
        note.exact &= strcmp(note.text, text) == 0;
        runs[note.run_count++] = remarks[i].run;
    }
    if (note.run_count == 1)
        note.text = note.most;
    return note;
}

/* Releases the remarks. */
static struct study_notes gather(struct remarks *remarks, struct lab_arena *arena) {
    size_t count = (size_t)remarks->count;
    struct study_notes notes = {0};
    if (count == 0)
        return notes;
    LAB_SORT(remarks->items, count, LAB_BY(remarks->items, gist), LAB_BY(remarks->items, order));
    const struct lab_run **runs = lab_arena_alloc(arena, count, sizeof *runs);
    LAB_AUTO_FREE struct ordered_note *ordered = lab_mem_alloc(count, sizeof *ordered);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && remarks->items[next].gist == remarks->items[i].gist;)
            next++;
        enum lab_run_warning kind = remarks->items[i].kind;
        ordered[notes.count++] = (struct ordered_note){
            note_of(&remarks->items[i], next - i, &runs[i]), remarks->items[i].order,
            kind == LAB_RUN_WARNING_LOAD || kind == LAB_RUN_WARNING_STEAL};
    }
    LAB_SORT(ordered, notes.count, LAB_BY_MOST(ordered, busy), LAB_BY_MOST(ordered, note.run_count),
             LAB_BY(ordered, order));
    notes.items = lab_arena_alloc(arena, (size_t)notes.count, sizeof *notes.items);
    for (int i = 0; i < notes.count; i++)
        notes.items[i] = ordered[i].note;
    lab_mem_free(remarks->items);
    return notes;
}

static void say_list(struct remarks *remarks, const struct lab_run *run, const char *key) {
    struct lab_result_list list = lab_result_items(lab_run_result(run), lab_result_row(key));
    const struct lab_result_text *items = list.items;
    for (int i = 0; i < list.count; i++)
        if (items[i].text && *items[i].text)
            say(remarks, items[i].text, run);
}

static void say_result(struct remarks *problems, struct remarks *warnings,
                       const struct lab_run *run) {
    int before = problems->count;
    if (!run->valid)
        say_list(problems, run, "invalid");
    if (!run->valid && problems->count == before)
        say(problems, "its values must not be used, for an unknown reason", run);
    say_list(warnings, run, "warnings");
}

/* Fewer have no interval of their median by ranks at 95%. */
#define ITERATIONS_LEAST 6

/* Measured ones of a run that has too few; 0 = it has enough, or does one thing once. A program
 * that trains once has the rate that its own lines report. */
static int64_t few_iterations(const struct lab_run *run) {
    int64_t measured = lab_run_result(run)->iterations,
            count = measured > 0 ? measured : run->iterations;
    bool few = run->state == LAB_RUN_DONE && run->rate > 0 && count < ITERATIONS_LEAST,
         once = !isnan(lab_run_once_s(run, 1)) ||
                (run->iterations == 1 && lab_str_equal(run->workload, "command"));
    return few && !once ? count : 0;
}

/* One sentence for all: a rate from one or two times is no more than a guess. */
static void say_few(struct study_digest *digest, struct remarks *warnings) {
    const struct lab_study_info *study = digest->study;
    int64_t fewest = INT64_MAX, most = 0;
    for (int i = 0; i < study->run_count; i++) {
        int64_t own = few_iterations(&study->runs[i]);
        fewest = own > 0 && own < fewest ? own : fewest;
        most = own > most ? own : most;
    }
    if (most == 0)
        return;
    const char *range =
        fewest < most ? lab_arena_printf(&digest->arena, "%lld to ", (long long)fewest) : "";
    const char *text = lab_arena_printf(
        &digest->arena,
        "only %s%lld iteration%s each (++experiment.test.num_steps=%d measures more)", range,
        (long long)most, study_plural(most), STUDY_FEW_ADVISED);
    for (int i = 0; i < study->run_count; i++)
        if (few_iterations(&study->runs[i]) > 0)
            LAB_PUSH(warnings->items, warnings->count) =
                (struct remark){.gist = gist_of("few iterations"),
                                .order = warnings->count,
                                .kind = LAB_RUN_WARNING_FEW,
                                .text = text,
                                .run = &study->runs[i]};
}

static void make_notes(struct study_digest *digest, const struct named *named) {
    struct remarks failures = {0}, problems = {0}, warnings = {0};
    for (int i = 0; i < digest->study->run_count; i++) {
        const struct lab_run *run = named[i].run;
        if (run->state == LAB_RUN_FAILED)
            say(&failures, run->error && *run->error ? run->error : "it doesn't say why", run);
        else if (run->state == LAB_RUN_DONE)
            say_result(&problems, &warnings, run);
    }
    say_few(digest, &warnings);
    digest->failures = gather(&failures, &digest->arena);
    digest->problems = gather(&problems, &digest->arena);
    digest->warnings = gather(&warnings, &digest->arena);
}

/* --- all of it --- */

static void add_times(struct study_digest *digest, const struct lab_run *run) {
    bool ended = run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
    if (run->start_wall_ns <= 0)
        return;
    int64_t took_ns = ended && run->end_ns > run->start_ns ? run->end_ns - run->start_ns : 0;
    int64_t end_wall_ns = run->start_wall_ns + took_ns;
    digest->busy_s += 1e-9 * (double)took_ns;
    if (!digest->first_wall_ns || run->start_wall_ns < digest->first_wall_ns)
        digest->first_wall_ns = run->start_wall_ns;
    if (end_wall_ns > digest->last_wall_ns)
        digest->last_wall_ns = end_wall_ns;
}

void study_digest_init(struct study_digest *digest, const struct lab_study_info *study) {
    *digest = (struct study_digest){.study = study};
    lab_arena_init(&digest->arena);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_run *run = &study->runs[i];
        digest->state_counts[run->state]++;
        digest->invalid += run->state == LAB_RUN_DONE && !run->valid;
        digest->concurrent += run->state == LAB_RUN_DONE && run->concurrent;
        add_times(digest, run);
    }
    int done = digest->state_counts[LAB_RUN_DONE];
    digest->nothing_valid = done > 0 && digest->invalid == done;
    if (study->run_count == 0)
        return;
    struct named *named = sort_runs(digest);
    make_rows(digest, named);
    make_ranges(digest);
    make_notes(digest, named);
}

void study_digest_release(struct study_digest *digest) {
    lab_arena_release(&digest->arena);
}
