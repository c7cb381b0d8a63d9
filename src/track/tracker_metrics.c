/*
 * tracker_metrics.c: what a run's program reported, and the times of a workload's iterations, as
 * rows. Values that were reported together, at one step or time, are one row.
 *
 * A batch has a bound. Of a series that has more points in it than a chart can show, the least and
 * the largest value of each stretch are kept, so that no peak is lost.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

#define BATCH 262144 /* metrics read at once */

struct series {
    const char *name, *key;
    int rank;
    int64_t count;
    double last; /* value, whether it is kept or not */
    int64_t row; /* the last that it is in */
    bool has_steps;
    int64_t stretch;                       /* values of which two are kept; 0 = all are */
    int64_t seen, least, most, not_finite; /* of the current stretch; -1 = none */
};

struct item {
    int series;
    double value, step;
    int64_t time_ns, row; /* of those with this one's step or time */
};

struct batch {
    struct item *items;
    int64_t count, room;
    struct series *series;
    int series_count, guess;
    bool ranked;    /* the run has several */
    bool fractions; /* among the steps */
    const struct lab_track_run *about;
    uint64_t digest;
    struct lab_arena arena;
};

static void batch_init(struct batch *batch, const struct track_feed *feed) {
    *batch = (struct batch){.ranked = feed->run->rank_count > 1,
                            .about = feed->about,
                            .digest = (uint64_t)feed->at.digest};
    lab_arena_init(&batch->arena);
}

static void batch_release(struct batch *batch) {
    lab_mem_free(batch->items);
    lab_mem_free(batch->series);
    lab_arena_release(&batch->arena);
}

/* Programs report the same names in turn: the one behind the last is mostly it. */
static int find_series(struct batch *batch, const char *name, int rank) {
    for (int tried = 0; tried < batch->series_count; tried++) {
        int at = (batch->guess + tried) % batch->series_count;
        if (batch->series[at].rank == rank && strcmp(batch->series[at].name, name) == 0) {
            batch->guess = at + 1;
            return at;
        }
    }
    const char *own = lab_arena_strdup(&batch->arena, name);
    const char *key = lab_track_name(batch->about, own, &batch->arena);
    LAB_PUSH(batch->series, batch->series_count) = (struct series){
        .name = own,
        .key = batch->ranked && rank >= 0 ? lab_arena_printf(&batch->arena, "%s/rank%d", key, rank)
                                          : key,
        .rank = rank,
        .row = -1,
        .least = -1,
        .most = -1,
        .not_finite = -1};
    return batch->series_count - 1;
}

static void batch_add(struct batch *batch, int series, double value, double step, int64_t time_ns) {
    if (batch->count == batch->room) {
        batch->room = batch->room ? 2 * batch->room : 1024;
        batch->items = lab_mem_resize(batch->items, (size_t)batch->room, sizeof *batch->items);
    }
    batch->items[batch->count++] = (struct item){series, value, step, time_ns, 0};
    batch->series[series].count++;
    batch->series[series].has_steps |= !isnan(step);
    batch->fractions |= isfinite(step) && step != trunc(step);
    batch->series[series].last = value;
}

static uint64_t add_digest(uint64_t hash, const struct lab_store_metric *metric) {
    hash = lab_hash_text(hash ? hash : LAB_HASH_START, metric->name);
    hash = lab_hash_bytes(hash, &metric->rank, sizeof metric->rank);
    hash = lab_hash_bytes(hash, &metric->value, sizeof metric->value);
    hash = lab_hash_bytes(hash, &metric->step, sizeof metric->step);
    return hash & INT64_MAX;
}

static int take_digest(void *state, const struct lab_store_metric *metric) {
    uint64_t *hash = state;
    *hash = add_digest(*hash, metric);
    return 0;
}

int64_t track_metrics_digest(struct lab_store *store, int64_t run) {
    uint64_t hash = 0;
    return lab_store_each_metric(store, run, take_digest, &hash, NULL) < 0 ? 0 : (int64_t)hash;
}

static int take_metric(void *state, const struct lab_store_metric *metric) {
    struct batch *batch = state;
    batch->digest = add_digest(batch->digest, metric);
    batch_add(batch, find_series(batch, metric->name, metric->rank), metric->value, metric->step,
              metric->time_ns);
    return 0;
}

/* --- rows --- */

static bool belong_together(const struct item *a, const struct item *b) {
    if (isnan(a->step) || isnan(b->step))
        return isnan(a->step) && isnan(b->step) && a->time_ns == b->time_ns;
    return a->step == b->step;
}

/* Before any are dropped: their numbers are the same however many are. */
static void number_rows(struct batch *batch, struct track_feed *feed) {
    feed->at.fractions |= batch->fractions;
    for (int64_t first = 0, count; first < batch->count; first += count) {
        struct item *items = batch->items + first;
        for (count = 0; first + count < batch->count && belong_together(items, &items[count]) &&
                        batch->series[items[count].series].row != feed->at.counted;
             count++)
            batch->series[items[count].series].row = items[count].row = feed->at.counted;
        feed->at.counted++;
    }
}

/* --- thinning --- */

static void keep_stretch(struct series *series, char *keep) {
    if (series->least >= 0)
        keep[series->least] = 1;
    if (series->most >= 0)
        keep[series->most] = 1;
    if (series->not_finite >= 0)
        keep[series->not_finite] = 1;
    series->seen = 0;
    series->least = series->most = series->not_finite = -1;
}

static void take_item(const struct batch *batch, struct series *series, int64_t at, char *keep) {
    double value = batch->items[at].value;
    if (!isfinite(value))
        series->not_finite = series->not_finite < 0 ? at : series->not_finite;
    else if (series->least < 0 || value < batch->items[series->least].value)
        series->least = at;
    if (isfinite(value) && (series->most < 0 || value > batch->items[series->most].value))
        series->most = at;
    if (++series->seen == series->stretch)
        keep_stretch(series, keep);
}

/* Drops items of series that are longer than `most`, in place. */
static void thin(struct batch *batch, int64_t most, struct track_feed *feed) {
    bool any = false;
    for (int i = 0; i < batch->series_count; i++) {
        struct series *series = &batch->series[i];
        if (series->count > most) {
            series->stretch = (2 * series->count + most - 1) / most;
            feed->thinned_from += series->count;
            any = true;
        }
    }
    if (!any)
        return;
    LAB_AUTO_FREE char *keep = lab_mem_alloc((size_t)batch->count, 1);
    for (int64_t i = 0; i < batch->count; i++) {
        struct series *series = &batch->series[batch->items[i].series];
        if (series->stretch)
            take_item(batch, series, i, keep);
        else
            keep[i] = 1;
    }
    for (int i = 0; i < batch->series_count; i++)
        keep_stretch(&batch->series[i], keep);
    int64_t count = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        if (!keep[i])
            continue;
        feed->thinned_to += batch->series[batch->items[i].series].stretch > 0;
        batch->items[count++] = batch->items[i];
    }
    batch->count = count;
}

#define ROW_MOST 256

static void write_rows(struct track_feed *feed, const struct batch *batch) {
    struct lab_track_value values[ROW_MOST];
    for (int64_t first = 0, count; first < batch->count; first += count) {
        const struct item *items = batch->items + first;
        bool whole = !feed->at.fractions && isfinite(items->step) && fabs(items->step) < 0x1p53;
        for (count = 0;
             count < ROW_MOST && first + count < batch->count && items[count].row == items->row;
             count++)
            values[count] = (struct lab_track_value){batch->series[items[count].series].key,
                                                     items[count].value};
        struct lab_track_row row = {.number = feed->at.rows++,
                                    .wall_ns = track_feed_wall(feed, items->time_ns),
                                    .step = items->step,
                                    .whole_step = whole ? (int64_t)items->step : items->row,
                                    .values = values,
                                    .count = (int)count};
        feed->tracker->row(feed->about, &row, &feed->out);
        feed->points += count;
    }
}

static void write_last(struct track_feed *feed, const struct batch *batch, bool with_steps) {
    LAB_AUTO(arena, arena);
    struct lab_track_row row = {.step = (double)NAN};
    struct lab_track_value *values =
        lab_arena_alloc(&arena, (size_t)batch->series_count + 1, sizeof *values);
    for (int i = 0; i < batch->series_count; i++)
        if (batch->series[i].has_steps == with_steps)
            values[row.count++] =
                (struct lab_track_value){batch->series[i].key, batch->series[i].last};
    for (int64_t i = batch->count; i > 0 && with_steps && isnan(row.step); i--)
        row.step = batch->items[i - 1].step;
    row.values = values;
    if (row.count && feed->tracker->last)
        feed->tracker->last(feed->about, &row, &feed->out);
}

static void write_batch(struct track_feed *feed, struct batch *batch) {
    number_rows(batch, feed);
    thin(batch, feed->max_points, feed);
    write_rows(feed, batch);
    write_last(feed, batch, false);
    write_last(feed, batch, true);
}

int64_t track_feed_metrics(struct track_feed *feed, struct lab_err *err) {
    struct batch batch;
    int64_t read = -1;
    if (!feed->store)
        return 0;
    batch_init(&batch, feed);
    if (lab_store_each_metric_after(feed->store, feed->run->number, feed->at.metric,
                                    feed->bound.attempt ? feed->bound.read : BATCH, take_metric,
                                    &batch, &feed->at.metric, err) == 0) {
        feed->at.read = read = batch.count;
        feed->more_metrics = read == BATCH;
        feed->at.digest = (int64_t)batch.digest;
        write_batch(feed, &batch);
    }
    batch_release(&batch);
    return read;
}

/* --- iterations --- */

struct iterations {
    struct batch batch;
    int series;
};

static int take_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    struct iterations *all = state;
    for (size_t i = 0; i < count; i++)
        batch_add(&all->batch, all->series,
                  (double)(items[i].end_ns - items[i].start_ns) / (double)LAB_NS_PER_MS,
                  (double)(first + (int64_t)i), items[i].end_ns);
    return 0;
}

int track_feed_iterations(struct track_feed *feed, struct lab_err *err) {
    int result = 0;
    for (int rank = 0; rank < feed->run->rank_count && result == 0; rank++) {
        struct iterations all;
        batch_init(&all.batch, feed);
        all.series = find_series(&all.batch, "iteration_ms", rank);
        result = lab_store_each_chunk(feed->store, feed->run->number, rank, take_chunk, &all, err);
        if (result == 0)
            write_batch(feed, &all.batch);
        batch_release(&all.batch);
    }
    return result;
}
