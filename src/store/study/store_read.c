/*
 * store_read.c: a study's file read back. What it says is checked before it is believed: a file can
 * be damaged or made by anybody, and no number in it may decide how much memory is taken.
 */
#include "store/store_internal.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static int damaged(struct lab_store *store, sqlite3_stmt *row, const char *what,
                   struct lab_err *err) {
    sqlite3_reset(row);
    return lab_err_set(err, LAB_ERR_WRONG, "%s is damaged: %s", store->path, what);
}

int lab_store_study(struct lab_store *store, struct lab_arena *arena,
                    struct lab_store_study *ret_study, struct lab_err *err) {
    sqlite3_stmt *row = lab_store_prepare(
        store,
        store->version == 1 ? "SELECT name, option, identity, seed, config, words, machine,"
                              " version, created_wall_ns, 0 FROM study"
                            : "SELECT name, option, identity, seed, config, words, machine,"
                              " version, created_wall_ns, machine_identity FROM study",
        err);
    if (!row)
        return -1;
    int got = lab_store_step(store, row, err);
    if (got <= 0)
        return got < 0 ? -1 : damaged(store, row, "it holds no study", err);
    *ret_study = (struct lab_store_study){
        .name = lab_sql_text(row, 0, arena),
        .option = lab_sql_text(row, 1, arena),
        .identity = (uint64_t)sqlite3_column_int64(row, 2),
        .seed = (uint64_t)sqlite3_column_int64(row, 3),
        .config = lab_sql_text(row, 4, arena),
        .words = lab_sql_text(row, 5, arena),
        .machine = lab_sql_text(row, 6, arena),
        .version = lab_sql_text(row, 7, arena),
        .created_wall_ns = lab_sql_time(row, 8),
        .machine_identity = (uint64_t)sqlite3_column_int64(row, 9),
    };
    sqlite3_reset(row);
    return 0;
}

/* --- runs --- */

/* The runs and ranks that have been read so far, and how many more there is room for. */
struct runs {
    struct lab_run *items;
    int count;
    struct lab_run_rank *ranks; /* of all runs, one after the other */
    int rank_count;
    bool brief; /* nothing of results is wanted but the rates */
};

static int read_state(sqlite3_stmt *row, int column, enum lab_run_state *ret_state) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    for (int i = LAB_RUN_PLANNED; i < LAB_RUN_STATE_COUNT; i++) {
        if (lab_str_equal(text, lab_run_state_name((enum lab_run_state)i))) {
            *ret_state = (enum lab_run_state)i;
            return 0;
        }
    }
    return -1;
}

#define RUN_COLUMNS_1                                                                              \
    "number, id, identity, position, repeat, workload, label, options, series, state,"             \
    " attempts, epoch, start_ns, end_ns, start_wall_ns, exit_code, error, concurrent"
#define RANK_COLUMNS " rank.rank, gpu_id, device, numa_node"
#define OF_RUN_AND_RANKS                                                                           \
    " FROM run LEFT JOIN rank ON rank.run = run.number"                                            \
    " ORDER BY run.position, run.number, rank.rank"

/* Columns of the statements that select runs: of a run first, then of its rank, then of its result
 * up to version 3. */
enum { RANK = 22, RESULT_3 = 26 };

/* Most texts don't have the word, and needn't be parsed. */
static bool is_spread(const char *test, struct lab_arena *arena) {
    struct lab_value *map;
    return strstr(test, LAB_RUN_SPREAD) &&
           lab_json_parse(test, strlen(test), "test", arena, &map, NULL) == 0 &&
           lab_value_get_bool(map, LAB_RUN_SPREAD);
}

static int read_run(sqlite3_stmt *row, struct lab_arena *arena, struct lab_run *run) {
    *run = (struct lab_run){
        .number = sqlite3_column_int64(row, 0),
        .id = lab_sql_text(row, 1, arena),
        .identity = (uint64_t)sqlite3_column_int64(row, 2),
        .position = lab_sql_small(row, 3),
        .repeat = lab_sql_small(row, 4),
        .workload = lab_sql_text(row, 5, arena),
        .label = lab_sql_text(row, 6, arena),
        .options = lab_sql_text(row, 7, arena),
        .series = lab_sql_text(row, 8, arena),
        .attempts = lab_sql_small(row, 10),
        .epoch = sqlite3_column_int64(row, 11),
        .start_ns = lab_sql_time(row, 12),
        .end_ns = lab_sql_time(row, 13),
        .start_wall_ns = lab_sql_time(row, 14),
        .exit_code = sqlite3_column_int(row, 15),
        .error = lab_sql_text(row, 16, arena),
        .concurrent = sqlite3_column_int(row, 17) != 0,
        .test = lab_sql_text(row, 18, arena),
        .iterations = lab_sql_count(row, 19),
        .warmup_iterations = lab_sql_count(row, 20),
        .rate = NAN,
        .rate_low = NAN,
        .rate_high = NAN,
        .rate_unit = "",
        .hint = lab_hint_find((const char *)sqlite3_column_text(row, 21)),
    };
    run->spread = is_spread(run->test, arena);
    if (read_state(row, 9, &run->state) < 0)
        return -1;
    run->valid = run->state != LAB_RUN_FAILED;
    return 0;
}

/* Of a file up to version 3. */
static void read_old_result(sqlite3_stmt *row, bool brief, struct lab_arena *arena,
                            struct lab_run *run) {
    if (run->state != LAB_RUN_DONE || sqlite3_column_count(row) <= RESULT_3)
        return;
    run->rate = lab_sql_number(row, RESULT_3 + 1);
    run->rate_low = lab_sql_number(row, RESULT_3 + 2);
    run->rate_high = lab_sql_number(row, RESULT_3 + 3);
    run->rate_unit = lab_sql_text(row, RESULT_3 + 4, arena);
    run->valid = sqlite3_column_int(row, RESULT_3 + 5) != 0;
    lab_store_read_old_result(run, brief ? NULL : (const char *)sqlite3_column_text(row, RESULT_3),
                              arena);
}

/* A row is a rank with its run before it; a run without ranks has one row with no rank in it. */
static int read_row(sqlite3_stmt *row, struct lab_arena *arena, struct runs *runs) {
    bool same =
        runs->count > 0 && runs->items[runs->count - 1].number == sqlite3_column_int64(row, 0);
    if (!same) {
        struct lab_run *run = &LAB_ADD(runs->items, runs->count, arena);
        if (read_run(row, arena, run) < 0)
            return -1;
        read_old_result(row, runs->brief, arena, run);
    }
    if (sqlite3_column_type(row, RANK) == SQLITE_NULL)
        return 0;
    LAB_ADD(runs->ranks, runs->rank_count, arena) = (struct lab_run_rank){
        .gpu_id = lab_sql_small(row, RANK + 1),
        .device = lab_sql_text(row, RANK + 2, arena),
        .numa_node = lab_sql_small(row, RANK + 3),
    };
    runs->items[runs->count - 1].rank_count++;
    return 0;
}

static void share_out_ranks(struct runs *runs) {
    int before = 0;
    for (int i = 0; i < runs->count && runs->rank_count > 0; i++) {
        runs->items[i].ranks = runs->ranks + before;
        before += runs->items[i].rank_count;
    }
}

/* A writer may have upgraded the file since it was opened. */
static int check_version(struct lab_store *store, struct lab_err *err) {
    int64_t version = store->version;
    if (!store->writes && store->version < LAB_STORE_VERSION &&
        lab_store_read_number(store, "PRAGMA user_version", &version, err) < 0)
        return -1;
    store->version = (int)version;
    return 0;
}

int lab_store_runs(struct lab_store *store, struct lab_arena *arena, struct lab_run **ret_runs,
                   int *ret_count, struct lab_err *err) {
    return lab_store_runs_with(store, NULL, arena, ret_runs, ret_count, err);
}

int lab_store_runs_with(struct lab_store *store, const char *const *keys, struct lab_arena *arena,
                        struct lab_run **ret_runs, int *ret_count, struct lab_err *err) {
    if (check_version(store, err) < 0)
        return -1;
    bool old = store->version < LAB_STORE_RESULTS;
    sqlite3_stmt *row = lab_store_prepare(
        store,
        store->version == 1 ? "SELECT " RUN_COLUMNS_1 ", '{}', 0, 0, ''," RANK_COLUMNS
                              ", result, NULL, NULL, NULL, '', 1" OF_RUN_AND_RANKS
        : old ? "SELECT " RUN_COLUMNS_1 ", test, iterations, warmup_iterations, ''," RANK_COLUMNS
                ", result, rate, rate_low, rate_high, rate_unit, valid" OF_RUN_AND_RANKS
              : "SELECT " RUN_COLUMNS_1
                ", test, iterations, warmup_iterations, hint," RANK_COLUMNS OF_RUN_AND_RANKS,
        err);
    if (!row)
        return -1;
    struct runs runs = {.brief = keys && !*keys};
    int got;
    while ((got = lab_store_step(store, row, err)) > 0) {
        if (read_row(row, arena, &runs) < 0) {
            got = damaged(store, row, "a run has an unknown state", err);
            break;
        }
    }
    share_out_ranks(&runs);
    if (got == 0 && !old)
        got = lab_store_read_results(store, keys, runs.items, runs.count, arena, err);
    if (got == 0) {
        *ret_runs = runs.items;
        *ret_count = runs.count;
    }
    return got;
}

int lab_store_count(struct lab_store *store, int ret_counts[LAB_RUN_STATE_COUNT],
                    struct lab_err *err) {
    sqlite3_stmt *row =
        lab_store_prepare(store, "SELECT state, count(*) FROM run GROUP BY state", err);
    if (!row)
        return -1;
    int counts[LAB_RUN_STATE_COUNT] = {0}, got;
    while ((got = lab_store_step(store, row, err)) > 0) {
        enum lab_run_state state;
        if (read_state(row, 0, &state) < 0)
            return damaged(store, row, "a run has an unknown state", err);
        counts[state] = sqlite3_column_int(row, 1);
    }
    if (got == 0)
        memcpy(ret_counts, counts, sizeof counts);
    return got;
}

int lab_store_progress(struct lab_store *store, struct lab_arena *arena,
                       struct lab_run_progress **ret_items, int *ret_count, struct lab_err *err) {
    struct lab_run_progress *items = NULL;
    int count = 0, got = 0;
    if (store->version > 1) { /* before that nobody said so */
        sqlite3_stmt *row = lab_store_prepare(
            store,
            "SELECT progress.run, phase, done, total, time_ns FROM progress"
            " JOIN run ON run.number = progress.run ORDER BY run.position, run.number",
            err);
        if (!row)
            return -1;
        while ((got = lab_store_step(store, row, err)) > 0) {
            LAB_ADD(items, count, arena) = (struct lab_run_progress){
                .run = sqlite3_column_int64(row, 0),
                .phase = lab_sql_text(row, 1, arena),
                .done = lab_sql_count(row, 2),
                .total = lab_sql_count(row, 3),
                .time_ns = lab_sql_time(row, 4),
            };
        }
    }
    if (got == 0) {
        *ret_items = items;
        *ret_count = count;
    }
    return got;
}

/* --- what they left --- */

/* Unpacks a chunk and hands it on; `next` is the iteration that has to come. */
static int read_chunk(struct lab_store *store, sqlite3_stmt *row, int64_t *next,
                      lab_store_chunk *each, void *state, struct lab_err *err) {
    int64_t first = sqlite3_column_int64(row, 0), expected = sqlite3_column_int64(row, 1);
    const void *bytes = sqlite3_column_blob(row, 2);
    size_t length = (size_t)sqlite3_column_bytes(row, 2), count = 0;
    if (first != *next || !bytes)
        return damaged(store, row, "iterations are missing", err);
    LAB_AUTO(arena, arena);
    struct lab_iteration *items = NULL;
    /* an iteration takes a byte at least, whatever the count says */
    int result = lab_iterations_unpack(bytes, length, length, &arena, &items, &count, err);
    if (result < 0) {
        lab_err_context(err, "%s is damaged: iterations", store->path);
        if (err)
            err->code = LAB_ERR_WRONG;
        sqlite3_reset(row);
    } else if ((int64_t)count != expected) {
        result = damaged(store, row, "iterations are missing", err);
    } else {
        *next += (int64_t)count;
        result = count ? each(state, first, items, count) : 0;
        if (result)
            sqlite3_reset(row);
    }
    return result ? -1 : 0;
}

int lab_store_each_chunk(struct lab_store *store, int64_t run, int rank, lab_store_chunk *each,
                         void *state, struct lab_err *err) {
    sqlite3_stmt *row = lab_store_query(
        store,
        "SELECT first, count, bytes FROM iterations WHERE run = ? AND rank = ? ORDER BY first",
        LAB_ROW(SQL_INT(run), SQL_INT(rank)), err);
    int64_t next = 0;
    int got = -1;
    while (row && (got = lab_store_step(store, row, err)) > 0) {
        if (read_chunk(store, row, &next, each, state, err) < 0)
            return -1;
    }
    return got;
}

struct iterations {
    struct lab_iteration *items;
    size_t count, capacity;
};

static int keep_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    (void)first;
    struct iterations *all = state;
    while (all->capacity < all->count + count)
        all->capacity = all->capacity ? 2 * all->capacity : 256;
    all->items = lab_mem_resize(all->items, all->capacity, sizeof *items);
    memcpy(all->items + all->count, items, count * sizeof *items);
    all->count += count;
    return 0;
}

int lab_store_iterations(struct lab_store *store, int64_t run, int rank, struct lab_arena *arena,
                         struct lab_iteration **ret_items, size_t *ret_count, struct lab_err *err) {
    struct iterations all = {0};
    int result = lab_store_each_chunk(store, run, rank, keep_chunk, &all, err);
    if (result == 0) {
        *ret_items = lab_arena_copy(arena, all.items, all.count, sizeof *all.items);
        *ret_count = all.count;
    }
    lab_mem_free(all.items);
    return result;
}

/* --- metrics --- */

int lab_store_each_metric_after(struct lab_store *store, int64_t run, int64_t after, int64_t most,
                                lab_store_metric_each *each, void *state, int64_t *ret_last,
                                struct lab_err *err) {
    if (check_version(store, err) < 0)
        return -1;
    sqlite3_stmt *row =
        lab_store_query(store,
                        store->version < LAB_STORE_STEPS
                            ? "SELECT name, unit, rank, value, time_ns, NULL, id FROM metric "
                              "WHERE run = ? AND id > ? ORDER BY id LIMIT ?"
                            : "SELECT name, unit, rank, value, time_ns, step, id FROM metric "
                              "WHERE run = ? AND id > ? ORDER BY id LIMIT ?",
                        LAB_ROW(SQL_INT(run), SQL_INT(after), SQL_INT(most)), err);
    int got = -1;
    while (row && (got = lab_store_step(store, row, err)) > 0) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        const char *unit = (const char *)sqlite3_column_text(row, 1);
        struct lab_store_metric metric = {
            .name = name ? name : "",
            .unit = unit ? unit : "",
            .rank = lab_sql_small(row, 2),
            .value = lab_sql_number(row, 3),
            .time_ns = lab_sql_time(row, 4),
            .step = lab_sql_number(row, 5),
        };
        *ret_last = sqlite3_column_int64(row, 6);
        if (each(state, &metric) != 0) {
            sqlite3_reset(row);
            return -1;
        }
    }
    return got;
}

int lab_store_each_metric(struct lab_store *store, int64_t run, lab_store_metric_each *each,
                          void *state, struct lab_err *err) {
    int64_t last;
    return lab_store_each_metric_after(store, run, 0, -1, each, state, &last, err);
}

struct metrics {
    struct lab_store_metric *items;
    int count;
    struct lab_arena *arena;
};

static int keep_metric(void *state, const struct lab_store_metric *metric) {
    struct metrics *all = state;
    struct lab_store_metric *kept = &LAB_ADD(all->items, all->count, all->arena);
    *kept = *metric;
    kept->name = lab_arena_strdup(all->arena, metric->name);
    kept->unit = lab_arena_strdup(all->arena, metric->unit);
    return 0;
}

int lab_store_metrics(struct lab_store *store, int64_t run, struct lab_arena *arena,
                      struct lab_store_metric **ret_metrics, int *ret_count, struct lab_err *err) {
    struct metrics all = {.arena = arena};
    if (lab_store_each_metric(store, run, keep_metric, &all, err) < 0)
        return -1;
    *ret_metrics = all.items;
    *ret_count = all.count;
    return 0;
}

int64_t lab_store_run_start(struct lab_store *store, int64_t run) {
    sqlite3_stmt *row = lab_store_query(store, "SELECT start_ns FROM run WHERE number = ?",
                                        LAB_ROW(SQL_INT(run)), NULL);
    int64_t start_ns = -1;
    while (row && lab_store_step(store, row, NULL) > 0)
        start_ns = lab_sql_time(row, 0);
    return start_ns;
}

struct curves {
    struct lab_metric_curves *all;
    int64_t start_ns;
};

static int add_to_curve(void *state, const struct lab_store_metric *metric) {
    struct curves *curves = state;
    struct lab_metric_curve *curve =
        lab_metric_curves_get(curves->all, metric->name, metric->unit, metric->rank);
    double time_s =
        metric->time_ns < 0 ? (double)NAN : 1e-9 * (double)(metric->time_ns - curves->start_ns);
    lab_curve_add(&curve->curve, metric->step, time_s, metric->value, curves->all->arena);
    return 0;
}

int lab_store_read_curves(struct lab_store *store, int64_t run, int64_t start_ns,
                          struct lab_metric_curves *curves, struct lab_err *err) {
    struct curves state = {curves, start_ns};
    return lab_store_each_metric_after(store, run, curves->last, -1, add_to_curve, &state,
                                       &curves->last, err);
}
