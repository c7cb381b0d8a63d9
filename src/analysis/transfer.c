/*
 * transfer.c: `gpulab analyze transfer`: bandwidth and latency of copies by size and NUMA node,
 * throughput by batch and pool, and memory pressure against a remote node. The claims are made in
 * transfer/; here they become tables, charts and a headline.
 */
#include "analysis/transfer/transfer.h"
#include "analysis/analysis_group.h"
#include "analysis/claims/rows.h"
#include "analysis/recommend/recommend.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

struct figures { /* of a part; NaN = it doesn't ask about that */
    int points;
    struct lab_effect bandwidth, latency_s; /* of the nearest NUMA node, fitted */
    double nearest, farthest;               /* bandwidth, mean over the sizes, as the change is */
    struct lab_claim change;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, points, "points", "Points", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, bandwidth, "bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, NULL,
              true),
    LAB_FIELD(struct figures, nearest, "nearest_gb_per_s", NULL, LAB_UNIT_RATE,
              "Bandwidth, nearest NUMA node"),
    LAB_FIELD(struct figures, farthest, "farthest_gb_per_s", NULL, LAB_UNIT_RATE,
              "Bandwidth, farthest NUMA node"),
    LAB_FIELD(struct figures, latency_s, "latency_ms", "Latency", LAB_UNIT_TIME, NULL, true),
    LAB_FIELD(struct figures, change, "change", "Change", LAB_UNIT_CHANGE, "Change"),
};

static struct lab_effect effect_of(const struct lab_claim *claim) {
    return (struct lab_effect){claim->effect, {claim->low, claim->high, claim->confidence}};
}

static const struct lab_field path_fields[] = {
    LAB_FIELD(struct lab_transfer_path, title, "path", "Path", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_transfer_path, distance, "distance", "Distance", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_transfer_path, points, "points", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_transfer_path, bandwidth, "bandwidth_gb_per_s", "Bandwidth",
              LAB_UNIT_RATE),
    LAB_FIELD(struct lab_transfer_path, latency, "latency_ms", "Latency", LAB_UNIT_TIME),
    LAB_FIELD(struct lab_transfer_path, change, "change", "Bandwidth, all sizes", LAB_UNIT_CHANGE),
};

static const struct lab_field size_fields[] = {
    LAB_FIELD(struct lab_transfer_size, path, "path", "Path", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_transfer_size, megabytes, "size_mb", "MB", LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_transfer_size, bytes, "bytes", NULL, LAB_UNIT_SIZE),
    LAB_FIELD(struct lab_transfer_size, bandwidth, "bandwidth_gb_per_s", "Bandwidth",
              LAB_UNIT_RATE),
    LAB_FIELD(struct lab_transfer_size, example, "example", "For example", LAB_UNIT_TEXT),
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct lab_transfer_row, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_transfer_row, value, "value", "Value", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_transfer_row, rate, "rate_per_s", NULL, LAB_UNIT_PER_SECOND),
    LAB_FIELD(struct lab_transfer_row, per_second, NULL, "Samples/s", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_transfer_row, change, "change", "Throughput", LAB_UNIT_CHANGE),
};

struct look { /* of a part: its names for people; its table and its chart */
    const char *name, *table, *chart, *x, *caption;
};

static const struct look copy_looks[LAB_TRANSFER_DIRECTIONS] = {
    {"Copies to the device", "sizes", "transfer_h2d", "Copy [MB]",
     "Bandwidth of single copies, latency included."},
    {"Copies to the host", "sizes", "transfer_d2h", "Copy [MB]",
     "Copies to the host hold the model's output."},
};

static const struct look looks[LAB_TRANSFER_QUESTIONS] = {
    {"Throughput by batch size", "batches", "transfer_batch", "Batch [images]", NULL},
    {"Throughput by pool size", "pools", "transfer_pool", "Pool [MiB]",
     "Mean over all NUMA nodes that were tested."},
    {"Farthest NUMA node by pool size", "pressure", "transfer_pressure", "Pool [MiB]",
     "A falling line is memory pressure."},
};

/* --- parts --- */

struct adding {
    const struct lab_study_table *study;
    struct lab_analysis_result *result;
    const char *prefix, *suffix;
    struct lab_arena *arena;
    struct lab_choices placements; /* where batches vary; else empty */
    const char *where;             /* that batches are compared, as lab_choices_used() has it */
};

static struct lab_analysis_part *add_part(const struct adding *to, const struct look *look,
                                          const struct figures *figures) {
    struct lab_analysis_part *part = lab_analysis_add_part(
        to->result, lab_arena_printf(to->arena, "%s%s", to->prefix, look->name), to->arena);
    LAB_PART_FIGURES(part, figure_fields, figures, to->arena);
    return part;
}

static void add_chart(const struct adding *to, const struct look *look, struct lab_chart_axis y,
                      const struct lab_rows *rows, const char *x, const char *y_key,
                      const char *series) {
    struct lab_chart chart = {.name = lab_arena_printf(to->arena, "%s%s", look->chart, to->suffix),
                              .title = look->name,
                              .caption = look->caption,
                              .intervals = "95% intervals over runs",
                              .simulated = to->study->simulated};
    lab_rows_add_series(lab_chart_add_panel(&chart, NULL, lab_axis_log(look->x), y, to->arena),
                        rows, x, y_key, series, LAB_CHART_LINE_POINTS, to->arena);
    lab_analysis_add_chart(to->result, chart, to->arena);
}

/* The farthest remote path, over all devices where there are several; NULL = there is none. */
static const struct lab_transfer_path *find_remote(const struct lab_transfer_copies *copies) {
    for (int i = 0; i < copies->path_count; i++)
        if (!copies->paths[i].reference)
            return &copies->paths[i];
    return NULL;
}

/* The first path's bandwidth; where that depends on the size, that of its largest copies. */
static const struct lab_claim *find_first(const struct lab_transfer_copies *copies) {
    int last = 0;
    while (last + 1 < copies->size_count &&
           lab_str_equal(copies->sizes[last + 1].path, copies->paths[0].title))
        last++;
    return copies->paths[0].bandwidth.verdict == LAB_CLAIM_NOT_TESTED
               ? &copies->sizes[last].bandwidth
               : &copies->paths[0].bandwidth;
}

/* Geometric mean over the sizes of a path, as the claim about it is. */
static double bandwidth_over(const struct lab_transfer_copies *copies, const char *path) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < copies->size_count; i++)
        if (lab_str_equal(copies->sizes[i].path, path)) {
            sum += log(copies->sizes[i].bandwidth.effect);
            count++;
        }
    return count > 0 ? exp(sum / count) : (double)NAN;
}

static void add_copies(const struct adding *to, const struct lab_transfer_copies *copies,
                       const struct look *look) {
    const struct lab_transfer_path *first = &copies->paths[0], *remote = find_remote(copies);
    struct figures figures = {
        first->points,
        effect_of(&first->bandwidth),
        effect_of(&first->latency),
        bandwidth_over(copies, first->title),
        remote ? bandwidth_over(copies, remote->title) : (double)NAN,
        remote ? remote->change : lab_claim_none,
    };
    struct look named = *look; /* with what the change is from and to */
    if (remote)
        named.name =
            lab_arena_printf(to->arena, "%s: %s vs %s", look->name, remote->title, first->title);
    struct lab_analysis_part *part = add_part(to, &named, &figures);
    struct lab_rows sizes = LAB_ROWS(size_fields, copies->sizes, copies->size_count),
                    paths = LAB_ROWS(path_fields, copies->paths, copies->path_count);
    struct lab_rows changes = paths; /* what a node costs comes first */
    changes.fields += LAB_COUNT_OF(path_fields) - 1;
    changes.field_count = 1;
    paths.field_count--;
    lab_rows_add_claims(to->result, &changes, to->arena);
    lab_rows_add_claims(to->result, &paths, to->arena);
    paths.field_count++;
    part->answer =
        lab_arena_printf(to->arena, "%s.", lab_claim_sentence(find_first(copies), to->arena));
    if (remote)
        part->answer = lab_arena_printf(
            to->arena, "%s. %s", lab_claim_sentence(&remote->change, to->arena), part->answer);
    lab_rows_add_table(part, "paths", "Time of a copy = latency + bytes/bandwidth", &paths,
                       to->arena);
    lab_rows_add_table(part, look->table, "By size", &sizes, to->arena);
    lab_rows_add_claims(to->result, &sizes, to->arena);
    add_chart(to, look, lab_axis_from("Bandwidth [GB/s]", 0), &sizes, "size_mb",
              "bandwidth_gb_per_s", "path");
}

/* With the reference itself, which has no change and is a point of the line all the same. */
static struct lab_rows drawn_rows(const struct lab_transfer_answer *answer,
                                  struct lab_arena *arena) {
    struct lab_transfer_row *rows =
        lab_arena_copy(arena, answer->rows, (size_t)answer->count, sizeof *rows);
    double width = NAN; /* of the others: one run each has none */
    for (int i = 0; i < answer->count; i++)
        width = fmax(width, 0 * (rows[i].change.high - rows[i].change.low));
    for (int i = 0; i < answer->count; i++) {
        struct lab_claim *change = &rows[i].change;
        if (!isnan(change->effect) || !*change->subject ||
            !lab_str_equal(change->subject, change->reference))
            continue;
        change->effect = 0;
        change->low = change->high = width;
    }
    return LAB_ROWS(row_fields, rows, answer->count);
}

/* The batch that is advised, where programs are advised to run; else the largest against the
 * smallest. */
static struct lab_claim batch_claim(const struct adding *to,
                                    const struct lab_transfer_answer *answer) {
    const struct lab_choices *placements = &to->placements;
    for (int i = 0; i < placements->row_count; i++)
        if (placements->rows[i].chosen && placements->rows[i].in_use.verdict == LAB_CLAIM_YES)
            return placements->rows[i].in_use;
    return answer->pooled;
}

static void add_question(const struct adding *to, const struct lab_transfer_answer *answer,
                         const struct look *look) {
    struct lab_effect none = effect_of(&lab_claim_none);
    bool batch = look == &looks[LAB_TRANSFER_BATCH];
    struct lab_claim claim = batch ? batch_claim(to, answer) : answer->pooled;
    struct figures figures = {answer->count, none, none, NAN, NAN, claim};
    struct look named = *look, drawn = *look; /* with what the change is from and to */
    bool pressure = lab_str_equal(answer->pooled.quantity, LAB_CLAIM_REMOTE);
    named.name = lab_arena_printf(
        to->arena, "%s: %s%s vs %s%s%s", look->name, pressure ? "remote NUMA nodes, " : "",
        lab_claim_within(claim.subject, to->arena), claim.reference,
        claim.mean_of ? ", mean of " : "", claim.mean_of ? claim.mean_of : "");
    struct lab_analysis_part *part = add_part(to, &named, &figures);
    struct lab_rows rows = LAB_ROWS(row_fields, answer->rows, answer->count);
    part->answer = lab_arena_printf(
        to->arena, "%s.", lab_words_capital(lab_claim_sentence(&claim, to->arena), to->arena));
    struct lab_doc_table *table =
        lab_rows_add_table(part, look->table, look->name, &rows, to->arena);
    lab_analysis_own_columns(table, to->arena)[1].title = look->x;
    lab_analysis_add_claim(to->result, &answer->pooled, to->arena);
    lab_rows_add_claims(to->result, &rows, to->arena);
    drawn.name =
        lab_arena_printf(to->arena, "%s%s, compared with %s", look->name, batch ? to->where : "",
                         pressure ? "the nearest NUMA node" : answer->pooled.reference);
    struct lab_rows all = drawn_rows(answer, to->arena);
    add_chart(to, &drawn, lab_axis("Change of throughput [%]"), &all, "value", "change", "model");
}

/* --- the whole --- */

/* Points on one device each, for copies: of several the bandwidth of one is unknown. */
static int keep_single(const struct lab_study_point *points, int count,
                       struct lab_study_point *ret_points) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (points[i].runs[0]->rank_count == 1)
            ret_points[kept++] = points[i];
    LAB_SORT(ret_points, kept, LAB_BY(ret_points, name));
    return kept;
}

/* On the placements where programs are advised to run, as `recommend` has them; on all where none
 * of those shows it. */
static struct lab_transfer_answer ask_batches(struct adding *to,
                                              const struct lab_study_point *points, int count) {
    const struct lab_choices *placements = &to->placements;
    struct lab_study_point *used = lab_arena_alloc(to->arena, (size_t)count + 1, sizeof *used);
    bool *avoided = lab_arena_alloc(to->arena, (size_t)to->study->run_count + 1, sizeof *avoided);
    int kept = 0;
    for (int i = 0; i < placements->count; i++)
        avoided[placements->items[i].point->runs[0] - to->study->runs] =
            placements->items[i].avoided;
    for (int i = 0; i < count; i++)
        if (!avoided[points[i].runs[0] - to->study->runs])
            used[kept++] = points[i];
    struct lab_transfer_answer answer =
        lab_transfer_ask(to->study, used, kept, LAB_TRANSFER_BATCH, to->arena);
    if (answer.count == 0)
        return lab_transfer_ask(to->study, points, count, LAB_TRANSFER_BATCH, to->arena);
    to->where = lab_choices_used(placements, to->arena);
    for (int i = 0; i < answer.count; i++)
        if (answer.rows[i].change.mean_of)
            answer.rows[i].change.mean_of =
                lab_arena_printf(to->arena, "%s%s", answer.rows[i].change.mean_of, to->where);
    return answer;
}

#define NODES LAB_TRANSFER_QUESTIONS /* of the families */

/* A family for each of what is asked: nodes, batches, pools; over all models and by model. That one
 * matters makes it no easier to find another. */
static void judge(struct lab_transfer_copies *copies, struct lab_transfer_answer *answers,
                  struct lab_arena *arena) {
    static const int pooled[] = {LAB_TRANSFER_BATCH, LAB_TRANSFER_POOL, LAB_TRANSFER_POOL},
                     single[] = {LAB_TRANSFER_BATCH, LAB_TRANSFER_POOL, NODES};
    struct lab_claim **families[NODES + 1] = {NULL};
    int counts[NODES + 1] = {0};
    for (int d = 0; d < LAB_TRANSFER_DIRECTIONS; d++)
        for (int i = 0; i < copies[d].path_count && copies[d].size_count > 1; i++)
            LAB_ADD(families[NODES], counts[NODES], arena) = &copies[d].paths[i].change;
    for (int q = 0; q < LAB_TRANSFER_QUESTIONS; q++) {
        int of_pooled = pooled[q], of_single = single[q];
        LAB_ADD(families[of_pooled], counts[of_pooled], arena) = &answers[q].pooled;
        for (int i = 0; i < answers[q].count; i++)
            LAB_ADD(families[of_single], counts[of_single], arena) = &answers[q].rows[i].change;
    }
    for (int f = 0; f <= NODES; f++)
        lab_claim_adjust(families[f], counts[f]);
}

/* --- the headline --- */

/* "GPU 0, NUMA node 2, host to device: 12.2% lower copy bandwidth than NUMA node 0, 21.5 instead of
 * 24.5 GB/s (95% CI …)" */
static const char *node_words(const struct lab_transfer_copies *copies,
                              const struct lab_transfer_path *remote, struct lab_arena *arena) {
    struct lab_claim claim = remote->change;
    double here = bandwidth_over(copies, copies->paths[0].title),
           there = bandwidth_over(copies, remote->title);
    if (claim.verdict == LAB_CLAIM_YES && copies->paths[0].reference && here > 0 && there > 0)
        claim.reference = lab_arena_printf(arena, "%s, %.1f instead of %.1f GB/s", claim.reference,
                                           1e-9 * there, 1e-9 * here);
    return lab_claim_sentence(&claim, arena);
}

/* "Copy from NUMA node 0. ": where each other NUMA node is slower for certain; else "". */
static const char *advice_words(const struct lab_transfer_copies *copies, struct lab_arena *arena) {
    const char *from = NULL;
    for (int i = 0; i < copies->path_count; i++) {
        const struct lab_transfer_path *path = &copies->paths[i];
        if (path->reference)
            continue;
        bool slower = path->change.verdict == LAB_CLAIM_YES && path->change.effect < 0;
        if (!slower || (from && !lab_str_equal(from, path->change.reference)))
            return "";
        from = path->change.reference;
    }
    return from ? lab_arena_printf(arena, "Copy from %s. ", from) : "";
}

/* " Copies of images (GPU 0, NUMA node 0), 2.41 to 28.3 MB: 24.1 to 24.6 GB/s.": of the local NUMA
 * node, which is named where others were measured as well; "" where one size was copied. */
static const char *size_words(const struct lab_transfer_copies *copies, int direction,
                              struct lab_arena *arena) {
    static const char *const titles[LAB_TRANSFER_DIRECTIONS] = {
        "Copies of images", "Copies of the model's output to the host"};
    double low = INFINITY, high = 0, least = INFINITY, most = 0;
    for (int i = 0; i < copies->size_count; i++) {
        const struct lab_transfer_size *size = &copies->sizes[i];
        if (!lab_str_equal(size->path, copies->paths[0].title) || !(size->bandwidth.effect > 0))
            continue;
        low = fmin(low, size->megabytes);
        high = fmax(high, size->megabytes);
        least = fmin(least, 1e-9 * size->bandwidth.effect);
        most = fmax(most, 1e-9 * size->bandwidth.effect);
    }
    const char *path =
        copies->path_count > 1 ? lab_arena_printf(arena, " (%s)", copies->paths[0].title) : "";
    return low < high ? lab_arena_printf(arena, " %s%s, %.3g to %.3g MB: %.3g to %.3g GB/s.",
                                         titles[direction], path, low, high, least, most)
                      : "";
}

#define OTHERS_NAMED 3

/* ". vit16x8x768: +4.0%; vit0x0x0: no difference larger than 1.3%": the other models, with the
 * same batch. */
static void name_others(const struct lab_transfer_answer *answer,
                        const struct lab_transfer_row *most, struct lab_arena *arena,
                        struct lab_str *text) {
    const char *between = ". ";
    for (int i = 0; i < answer->count; i++) {
        const struct lab_transfer_row *row = &answer->rows[i];
        const struct lab_claim *change = &row->change;
        if (lab_str_equal(row->model, most->model) || row->value != most->value)
            continue;
        lab_str_printf(
            text, "%s%s: %s", between, row->model,
            change->verdict == LAB_CLAIM_YES
                ? lab_arena_printf(arena, "%+.1f%%", 100 * change->effect)
            : change->verdict == LAB_CLAIM_NO
                ? lab_arena_printf(arena, "no difference%s", lab_claim_larger(change->bound, arena))
                : lab_arena_printf(arena, "%s, inconclusive", lab_claim_effect(change, arena)));
        between = "; ";
    }
}

/* ". Other models with batch 32: 3 change by -1.3% to +0.8%, 1 by no more than 0.6%, 1
 * inconclusive" */
static void count_others(const struct lab_transfer_answer *answer,
                         const struct lab_transfer_row *most, struct lab_str *text) {
    double low = INFINITY, high = -INFINITY, bound = 0;
    int changed = 0, same = 0, open = 0;
    for (int i = 0; i < answer->count; i++) {
        const struct lab_transfer_row *row = &answer->rows[i];
        if (lab_str_equal(row->model, most->model) || row->value != most->value)
            continue;
        if (row->change.verdict == LAB_CLAIM_YES) {
            changed++;
            low = fmin(low, row->change.effect);
            high = fmax(high, row->change.effect);
        } else if (row->change.verdict == LAB_CLAIM_NO) {
            same++;
            bound = fmax(bound, row->change.bound);
        } else {
            open++;
        }
    }
    if (changed + same + open > 0)
        lab_str_printf(text, ". Other models with batch %.0f: ", most->value);
    if (changed > 1)
        lab_str_printf(text, "%d change by %+.1f%% to %+.1f%%", changed, 100 * low, 100 * high);
    else if (changed == 1)
        lab_str_printf(text, "1 changes by %+.1f%%", 100 * low);
    if (same > 0)
        lab_str_printf(text, "%s%d by no more than %.1f%%", changed ? ", " : "", same,
                       lab_words_bound_percent(bound));
    if (open > 0)
        lab_str_printf(text, "%s%d inconclusive", changed + same ? ", " : "", open);
}

/* Where it changes for certain, the model that it changes most, and what that batch does to the
 * others; which one to use is what `recommend` says. */
static const char *batch_words(const struct lab_transfer_answer *answer, struct lab_arena *arena) {
    const struct lab_transfer_row *most = NULL;
    int others = 0;
    LAB_AUTO(str, text);
    for (int i = 0; i < answer->count; i++) {
        const struct lab_claim *change = &answer->rows[i].change;
        if (change->verdict == LAB_CLAIM_YES &&
            (!most || fabs(change->effect) > fabs(most->change.effect)))
            most = &answer->rows[i];
    }
    if (!most)
        return lab_words_capital(lab_claim_sentence(&answer->pooled, arena), arena);
    for (int i = 0; i < answer->count; i++)
        others += answer->rows[i].value == most->value;
    lab_str_add(&text, lab_claim_sentence(&most->change, arena));
    if (others - 1 <= OTHERS_NAMED)
        name_others(answer, most, arena, &text);
    else
        count_others(answer, most, &text);
    return lab_arena_strdup(arena, text.text);
}

/* Of the batch that is advised; NaN = none is. */
static double advised_batch(const struct adding *to) {
    const struct lab_choices *placements = &to->placements;
    for (int r = 0; r < placements->row_count; r++)
        for (int i = 0; i < placements->count && placements->rows[r].chosen; i++)
            if (placements->rows[r].factor == LAB_FACTOR_BATCH && placements->rows[r].model < 0 &&
                lab_str_equal(placements->items[i].levels[LAB_FACTOR_BATCH],
                              placements->rows[r].level))
                return placements->items[i].batch;
    return NAN;
}

/* "; with batch 16 only 512 and 1024 MiB were tested": where the smallest pool never ran with the
 * batch that is advised; NULL = it did, or none is advised. */
static const char *untested_pools(const struct adding *to, const struct lab_study_point *points,
                                  int count, double least) {
    double batch = advised_batch(to), *pools = NULL;
    int pool_count = 0;
    const char **names = NULL;
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = points[i].runs[0];
        double pool = lab_study_setting_number(run, "memory_size_mb");
        if (lab_study_setting_number(run, "batch_size") == batch && !isnan(pool))
            LAB_ADD(pools, pool_count, to->arena) = pool;
    }
    LAB_SORT_NUMBERS(pools, pool_count);
    int name_count = 0;
    for (int i = 0; i < pool_count; i++)
        if (i == 0 || pools[i] > pools[i - 1])
            LAB_ADD(names, name_count, to->arena) = lab_arena_printf(to->arena, "%g", pools[i]);
    if (pool_count == 0 || pools[0] == least)
        return NULL;
    LAB_ADD(names, name_count, to->arena) = NULL;
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "and");
    return lab_arena_printf(to->arena, "; with batch %g only %s MiB %s tested", batch, list.text,
                            name_count > 2 ? "were" : "was");
}

/* "Use a pinned input pool of 256 MiB (memory_size_mb): no larger one gains more than 1.1% for any
 * model"; where it wasn't run with the batch that is advised, what is known of either. NULL = that
 * isn't known. */
static const char *pool_words(const struct adding *to, const struct lab_transfer_answer *answer,
                              const struct lab_study_point *points, int count) {
    double least = INFINITY, most = 0;
    if (answer->count == 0 || answer->pooled.verdict != LAB_CLAIM_NO)
        return NULL;
    for (int i = 0; i < answer->count; i++)
        least = fmin(least, answer->rows[i].value);
    for (int i = 0; i < answer->count; i++) {
        const struct lab_claim *change = &answer->rows[i].change;
        if (!(answer->rows[i].value > least))
            continue;
        bool yes = change->verdict == LAB_CLAIM_YES;
        if ((!yes && change->verdict != LAB_CLAIM_NO) || (yes && change->effect >= LAB_CLAIM_WORTH))
            return NULL;
        most = fmax(most, yes ? change->effect : change->bound);
    }
    const char *untested = untested_pools(to, points, count, least);
    if (untested)
        return lab_arena_printf(to->arena,
                                "No gain above %.1f%% from pools of more than %g MiB "
                                "(memory_size_mb)%s%s%s",
                                lab_words_bound_percent(most), least, answer->at ? " at " : "",
                                answer->at ? answer->at : "", untested);
    return lab_arena_printf(to->arena,
                            "Use a pinned input pool of %.0f MiB (memory_size_mb): no larger one "
                            "gains more than %.1f%% "
                            "for any model",
                            least, lab_words_bound_percent(most));
}

static const char *question_words(const struct lab_transfer_answer *answer,
                                  enum lab_transfer_question question, bool first,
                                  struct lab_arena *arena) {
    struct lab_claim claim = answer->pooled;
    if (question == LAB_TRANSFER_BATCH)
        return batch_words(answer, arena);
    if (first) /* of two about pools */
        claim.subject = lab_arena_printf(arena, "%s of pinned host buffers", claim.subject);
    struct lab_words_singles singles = {0};
    for (int i = 0; i < answer->count && claim.verdict == LAB_CLAIM_NO; i++)
        lab_words_add_single(&singles, &answer->rows[i].from_least);
    const char *text = lab_words_capital(lab_claim_sentence(&claim, arena), arena);
    if (answer->at)
        text = lab_arena_printf(arena, "%s at %s", text, answer->at);
    return lab_arena_printf(arena, "%s%s", text,
                            lab_words_singles(claim.bound, &singles, "model", arena));
}

/* Returns the study's headline; NULL = nothing in it can be compared. */
static const char *add_study(struct adding *to) {
    struct lab_study_point *points;
    int count = lab_study_points(to->study, to->arena, &points);
    struct lab_study_point *single = lab_arena_alloc(to->arena, (size_t)count + 1, sizeof *single);
    int single_count = keep_single(points, count, single);
    struct lab_transfer_copies copies[LAB_TRANSFER_DIRECTIONS];
    struct lab_transfer_answer answers[LAB_TRANSFER_QUESTIONS];
    for (int d = 0; d < LAB_TRANSFER_DIRECTIONS; d++)
        copies[d] = lab_transfer_copies_make(to->study, single, single_count,
                                             (enum lab_transfer_direction)d, to->arena);
    answers[LAB_TRANSFER_BATCH] = ask_batches(to, points, count);
    for (int q = LAB_TRANSFER_BATCH + 1; q < LAB_TRANSFER_QUESTIONS; q++)
        answers[q] =
            lab_transfer_ask(to->study, points, count, (enum lab_transfer_question)q, to->arena);
    judge(copies, answers, to->arena);
    LAB_AUTO(str, text);
    for (int d = 0; d < LAB_TRANSFER_DIRECTIONS; d++) {
        if (copies[d].size_count < 2)
            continue;
        add_copies(to, &copies[d], &copy_looks[d]);
        const struct lab_transfer_path *remote = find_remote(&copies[d]);
        if (text.length == 0 && remote)
            lab_str_printf(&text, "%s%s.", advice_words(&copies[d], to->arena),
                           node_words(&copies[d], remote, to->arena));
        else if (text.length == 0)
            lab_str_add(&text, to->result->parts[to->result->part_count - 1].answer);
        lab_str_add(&text, size_words(&copies[d], d, to->arena));
    }
    for (int q = 0; q < LAB_TRANSFER_QUESTIONS; q++) {
        if (answers[q].count == 0)
            continue;
        add_question(to, &answers[q], &looks[q]);
        bool first = q == LAB_TRANSFER_POOL || answers[LAB_TRANSFER_POOL].count == 0;
        lab_str_printf(
            &text, "%s%s.", text.length ? " " : "",
            question_words(&answers[q], (enum lab_transfer_question)q, first, to->arena));
    }
    if (!to->result->action)
        to->result->action = pool_words(to, &answers[LAB_TRANSFER_POOL], points, count);
    to->result->minor = true; /* a pool matters least */
    return text.length ? lab_arena_strdup(to->arena, text.text) : NULL;
}

static int transfer_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                        struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        const struct lab_study_table *study = &input->studies[i];
        const char *prefix = lab_analysis_prefix(input, study, arena);
        struct adding to = {.study = study,
                            .result = result,
                            .prefix = prefix,
                            .suffix = lab_analysis_suffix(i, arena),
                            .arena = arena,
                            .where = ""};
        if (lab_study_setting_values(study, "batch_size") > 1) {
            to.placements = lab_choices_make(study, "", arena);
            lab_choices_compare(&to.placements, arena);
        }
        const char *answer = add_study(&to);
        if (answer && !result->answer)
            result->answer = lab_arena_printf(arena, "%s%s", prefix, answer);
        lab_study_add_notes(study, prefix, &result->notes, arena);
    }
    result->lacks = !result->answer;
    if (result->lacks)
        result->untested = "no points differ in image size, batch size or pool size alone. gpulab "
                           "run transfer_study tests them.";
    return 0;
}

static int transfer_interest(const struct lab_study_table *study) {
    int said = lab_study_setting_values(study, "tensor_shape") > 1 ? 40 : 0;
    said += lab_study_setting_values(study, "batch_size") > 1 ? 25 : 0;
    said += lab_study_setting_values(study, "memory_size_mb") > 1 ? 25 : 0;
    return said;
}

const struct lab_analysis lab_analysis_transfer = {
    .name = "transfer",
    .summary = "bandwidth of copies by size and NUMA node; throughput by batch and pool",
    .description =
        "Bandwidth and latency of copies in each direction, for each device and NUMA node (time = "
        "latency + bytes/bandwidth). Remote NUMA nodes are compared with the local one. Then the "
        "throughput by batch size and pinned input pool, and whether a larger pool changes the "
        "penalty of a remote NUMA node. Points are compared that agree in all else. Intervals are "
        "over runs, at 95%.",
    .kinds = (const struct lab_analysis_kind[]){{"transfer.node"},
                                                {"transfer.pool"},
                                                {"transfer.pool_model"},
                                                {"transfer.batch"},
                                                {"transfer.batch_model"},
                                                {"transfer.pressure"},
                                                {"transfer.pressure_model"},
                                                {"transfer.size", LAB_KIND_ESTIMATE},
                                                {"transfer.bandwidth", LAB_KIND_ESTIMATE},
                                                {"transfer.latency", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = transfer_interest,
    LAB_PARTS_OF("questions", figure_fields),
    .run = transfer_run,
};
