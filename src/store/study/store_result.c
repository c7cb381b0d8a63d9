/*
 * store_result.c: what came out of runs, in tables that are made from the rows of model/result.h. A
 * run has a line in `result` for itself (rank -1) and one for each rank; a row of the table is a
 * column of its name. Lists are tables of their own, `result_warnings` among them, a line an item.
 *
 * So rows that are added later need no new version of the file: a writer adds the columns and
 * tables that are missing; a reader takes what is missing as absent, and passes over what it
 * doesn't know.
 *
 * Up to version 3 all of it was one JSON text in `run`.
 */
#include "store/store_internal.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OF_RUN (-1) /* in place of a rank */

/* --- tables --- */

struct table {
    int slot;                          /* of its statement to insert */
    const struct lab_result_row *list; /* NULL = the results themselves */
    const struct lab_result_row *rows;
    int row_count;
};

static struct table table_of(int slot) {
    if (slot == LAB_RESULT_ROW_COUNT)
        return (struct table){slot, NULL, lab_result_rows, LAB_RESULT_ROW_COUNT};
    const struct lab_result_row *list = &lab_result_rows[slot];
    return (struct table){slot, list, list->item->rows, list->item->row_count};
}

/* The first, or the one after `slot`: lists by their rows, then the results. */
static int next_slot(int slot) {
    do
        slot++;
    while (slot < LAB_RESULT_ROW_COUNT && lab_result_rows[slot].type != LAB_RESULT_LIST);
    return slot;
}

static void add_name(const struct table *table, struct lab_str *out) {
    lab_str_add(out, "result");
    if (table->list) {
        const char *point = strchr(table->list->key, '.');
        lab_str_printf(out, "_%s", point ? point + 1 : table->list->key);
    }
}

static bool is_column(const struct lab_result_row *row) {
    return row->type != LAB_RESULT_LIST;
}

static void add_column(const struct lab_result_row *row, struct lab_str *out) {
    static const char *const types[] = {[LAB_RESULT_NUMBER] = "REAL",
                                        [LAB_RESULT_COUNT] = "INTEGER",
                                        [LAB_RESULT_FLAG] = "INTEGER",
                                        [LAB_RESULT_TEXT] = "TEXT",
                                        [LAB_RESULT_JSON] = "TEXT"};
    lab_str_printf(out, "\"%s\" %s", row->key, types[row->type]);
}

static int create_table(struct lab_store *store, const struct table *table, struct lab_err *err) {
    LAB_AUTO(str, sql);
    lab_str_add(&sql, "CREATE TABLE IF NOT EXISTS ");
    add_name(table, &sql);
    lab_str_add(&sql, " (run INTEGER NOT NULL, rank INTEGER NOT NULL");
    if (table->list)
        lab_str_add(&sql, ", position INTEGER NOT NULL");
    for (int i = 0; i < table->row_count; i++)
        if (is_column(&table->rows[i])) {
            lab_str_add(&sql, ", ");
            add_column(&table->rows[i], &sql);
        }
    /* with a row id where lines are long: they make a WITHOUT ROWID tree slow */
    lab_str_add(&sql, table->list ? ", PRIMARY KEY (run, rank, position)) WITHOUT ROWID"
                                  : ", PRIMARY KEY (run, rank))");
    return lab_store_exec(store, sql.text, err);
}

static bool has_column(struct lab_store *store, const char *table, const char *column) {
    return sqlite3_table_column_metadata(store->db, NULL, table, column, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

static int complete_table(struct lab_store *store, const struct table *table, struct lab_err *err) {
    LAB_AUTO(str, name);
    LAB_AUTO(str, sql);
    add_name(table, &name);
    for (int i = 0; i < table->row_count; i++) {
        const struct lab_result_row *row = &table->rows[i];
        if (!is_column(row) || has_column(store, name.text, row->key))
            continue;
        lab_str_clear(&sql);
        lab_str_printf(&sql, "ALTER TABLE %s ADD COLUMN ", name.text);
        add_column(row, &sql);
        if (lab_store_exec(store, sql.text, err) < 0)
            return -1;
    }
    return 0;
}

int lab_store_make_results(struct lab_store *store, struct lab_err *err) {
    for (int slot = next_slot(-1); slot <= LAB_RESULT_ROW_COUNT; slot = next_slot(slot)) {
        struct table table = table_of(slot);
        if (create_table(store, &table, err) < 0 || complete_table(store, &table, err) < 0)
            return -1;
    }
    return 0;
}

/* --- writing --- */

int lab_store_drop_result(struct lab_store *store, int64_t run, struct lab_err *err) {
    LAB_AUTO(str, sql);
    for (int slot = next_slot(-1); slot <= LAB_RESULT_ROW_COUNT; slot = next_slot(slot)) {
        struct table table = table_of(slot);
        lab_str_add(&sql, "DELETE FROM ");
        add_name(&table, &sql);
        lab_str_printf(&sql, " WHERE run = %lld;", (long long)run);
    }
    return lab_store_exec(store, sql.text, err);
}

static sqlite3_stmt *prepare_insert(struct lab_store *store, const struct table *table,
                                    struct lab_err *err) {
    sqlite3_stmt **prepared = &store->result_inserts[table->slot], *ready = *prepared;
    if (ready)
        return ready;
    LAB_AUTO(str, sql);
    LAB_AUTO(str, values);
    lab_str_add(&sql, "INSERT INTO ");
    add_name(table, &sql);
    lab_str_add(&sql, table->list ? " (run, rank, position" : " (run, rank");
    lab_str_add(&values, table->list ? "?, ?, ?" : "?, ?");
    for (int i = 0; i < table->row_count; i++)
        if (is_column(&table->rows[i])) {
            lab_str_printf(&sql, ", \"%s\"", table->rows[i].key);
            lab_str_add(&values, ", ?");
        }
    lab_str_printf(&sql, ") VALUES (%s)", values.text);
    if (sqlite3_prepare_v3(store->db, sql.text, -1, SQLITE_PREPARE_PERSISTENT, prepared, NULL)) {
        lab_store_fail(store, err);
        return NULL;
    }
    return *prepared;
}

static void bind(sqlite3_stmt *insert, int index, const void *record,
                 const struct lab_result_row *row) {
    const void *at = lab_result_get(record, row);
    if (!lab_result_has(record, row))
        sqlite3_bind_null(insert, index);
    else if (row->type == LAB_RESULT_NUMBER)
        sqlite3_bind_double(insert, index, *(const double *)at);
    else if (row->type == LAB_RESULT_COUNT)
        sqlite3_bind_int64(insert, index, *(const int64_t *)at);
    else if (row->type == LAB_RESULT_FLAG)
        sqlite3_bind_int(insert, index, *(const signed char *)at != 0);
    else
        sqlite3_bind_text(insert, index, *(const char *const *)at, -1, SQLITE_STATIC);
}

/* `keys` are the run, the rank, and of a list's item its position. */
static int insert(struct lab_store *store, const struct table *table, const int64_t *keys,
                  const void *record, struct lab_err *err) {
    sqlite3_stmt *statement = prepare_insert(store, table, err);
    if (!statement)
        return -1;
    int index = 1;
    for (int i = 0; i < (table->list ? 3 : 2); i++)
        sqlite3_bind_int64(statement, index++, keys[i]);
    for (int i = 0; i < table->row_count; i++)
        if (is_column(&table->rows[i]))
            bind(statement, index++, record, &table->rows[i]);
    int result = lab_store_step(store, statement, err);
    sqlite3_clear_bindings(statement);
    return result;
}

static int insert_result(struct lab_store *store, int64_t run, int rank,
                         const struct lab_result *result, struct lab_err *err) {
    for (int slot = next_slot(-1); slot <= LAB_RESULT_ROW_COUNT; slot = next_slot(slot)) {
        struct table table = table_of(slot);
        int64_t keys[] = {run, rank, 0};
        if (!table.list)
            return insert(store, &table, keys, result, err);
        struct lab_result_list list = lab_result_items(result, table.list);
        for (; keys[2] < list.count; keys[2]++)
            if (insert(store, &table, keys,
                       (const char *)list.items + (size_t)keys[2] * table.list->item->size,
                       err) < 0)
                return -1;
    }
    return 0;
}

int lab_store_add_result(struct lab_store *store, int64_t run, const struct lab_run *outcome,
                         struct lab_err *err) {
    struct lab_result whole = outcome->result ? *outcome->result : lab_result_none;
    whole.rate = outcome->rate;
    whole.rate_low = outcome->rate_low;
    whole.rate_high = outcome->rate_high;
    whole.rate_unit = outcome->rate_unit && *outcome->rate_unit ? outcome->rate_unit : NULL;
    whole.valid = outcome->valid;
    for (int i = 0; i < whole.rank_count; i++)
        if (insert_result(store, run, i, &whole.ranks[i], err) < 0)
            return -1;
    return insert_result(store, run, OF_RUN, &whole, err);
}

/* --- reading --- */

struct known { /* a run, found by its number */
    int64_t number;
    struct lab_run *run;
    struct lab_result *result, *ranks;
    int rank_room;
};

struct results {
    struct known *items;     /* ascending */
    int count, last;         /* the last that was found */
    const char *const *keys; /* that are wanted; NULL = all */
    struct lab_arena *arena;
};

static bool is_wanted(const struct results *results, const char *key) {
    static const char *const always[] = {"rate",      "rate_low", "rate_high",
                                         "rate_unit", "valid",    NULL};
    return !results->keys || lab_str_find(key, results->keys) >= 0 ||
           lab_str_find(key, always) >= 0;
}

static int by_number(const void *a, const void *b) {
    const struct known *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Lines mostly come run by run. */
static struct known *find_run(struct results *results, int64_t number) {
    for (int at = results->last; at < results->last + 2 && at < results->count; at++)
        if (results->items[at].number == number) {
            results->last = at;
            return &results->items[at];
        }
    struct known key = {.number = number};
    struct known *found =
        bsearch(&key, results->items, (size_t)results->count, sizeof *results->items, by_number);
    if (found)
        results->last = (int)(found - results->items);
    return found;
}

/* A new rank's, after those that are there: a file can't ask for more than it has lines. */
static struct lab_result *add_rank(struct known *known, struct lab_arena *arena) {
    int count = known->result->rank_count;
    if (count == known->rank_room) {
        known->rank_room = count ? 2 * count : 1;
        struct lab_result *larger =
            lab_arena_alloc(arena, (size_t)known->rank_room, sizeof *larger);
        if (count)
            memcpy(larger, known->ranks, (size_t)count * sizeof *larger);
        known->result->ranks = known->ranks = larger;
    }
    known->ranks[count] = lab_result_none;
    known->result->rank_count++;
    return &known->ranks[count];
}

/* Where a line's values go; NULL where it belongs to nothing that is there. */
static struct lab_result *find_result(struct results *results, sqlite3_stmt *row, bool adds) {
    struct known *known = find_run(results, sqlite3_column_int64(row, 0));
    int64_t rank = sqlite3_column_int64(row, 1);
    if (!known || rank < OF_RUN || rank >= known->run->rank_count)
        return NULL;
    if (rank == OF_RUN)
        return known->result;
    if (rank < known->result->rank_count)
        return &known->ranks[rank];
    return adds && rank == known->result->rank_count ? add_rank(known, results->arena) : NULL;
}

static void take(sqlite3_stmt *row, int column, void *record, const struct lab_result_row *into,
                 struct lab_arena *arena) {
    int type = sqlite3_column_type(row, column);
    if (type == SQLITE_NULL)
        return;
    void *at = lab_result_member(record, into);
    bool number = type == SQLITE_FLOAT || type == SQLITE_INTEGER;
    if (into->type == LAB_RESULT_NUMBER && number) {
        double value = sqlite3_column_double(row, column);
        *(double *)at = isfinite(value) ? value : NAN;
    } else if (into->type == LAB_RESULT_COUNT && type == SQLITE_INTEGER) {
        *(int64_t *)at = sqlite3_column_int64(row, column);
    } else if (into->type == LAB_RESULT_FLAG && type == SQLITE_INTEGER) {
        *(signed char *)at = sqlite3_column_int64(row, column) != 0;
    } else if (type == SQLITE_TEXT &&
               (into->type == LAB_RESULT_TEXT || into->type == LAB_RESULT_JSON)) {
        const char *text = (const char *)sqlite3_column_text(row, column);
        *(const char **)at =
            lab_arena_strndup(arena, text, (size_t)sqlite3_column_bytes(row, column));
    }
}

/* The columns of a statement behind the run and the rank: which row each of them is. */
struct columns {
    const struct lab_result_row *rows[LAB_RESULT_ROW_COUNT];
    int count;
};

static void take_line(sqlite3_stmt *row, const struct table *table, const struct columns *columns,
                      struct results *results) {
    struct lab_result *result = find_result(results, row, !table->list);
    void *record = result;
    if (!result)
        return;
    if (table->list) {
        if (lab_result_items(result, table->list).count >= LAB_RESULT_ITEMS_MAX)
            return;
        record = lab_result_add(result, table->list, results->arena);
    }
    for (int i = 0; i < columns->count; i++)
        take(row, i + 2, record, columns->rows[i], results->arena);
}

/* Of results the lines of runs or of ranks, with the columns that these have; of a list all. */
static int read_lines(struct lab_store *store, const struct table *table, unsigned of,
                      struct results *results, struct lab_err *err) {
    struct columns columns = {.count = 0};
    LAB_AUTO(str, name);
    LAB_AUTO(str, sql);
    add_name(table, &name);
    if (!has_column(store, name.text, "run") || !has_column(store, name.text, "rank"))
        return 0; /* written before there was such a list */
    lab_str_add(&sql, "SELECT run, rank");
    for (int i = 0; i < table->row_count; i++) {
        const struct lab_result_row *row = &table->rows[i];
        if (!is_column(row) || (of && !(row->of & of)) || (of && !is_wanted(results, row->key)) ||
            !has_column(store, name.text, row->key))
            continue;
        columns.rows[columns.count++] = row;
        lab_str_printf(&sql, ", \"%s\"", row->key);
    }
    if (columns.count == 0)
        return 0;
    lab_str_printf(&sql, " FROM %s%s", name.text,
                   !of                       ? " ORDER BY run, rank, position"
                   : of == LAB_RESULT_OF_RUN ? " WHERE rank < 0"
                                             : " WHERE rank >= 0 ORDER BY run, rank");
    LAB_AUTO_STATEMENT *row = NULL;
    if (sqlite3_prepare_v2(store->db, sql.text, -1, &row, NULL))
        return lab_store_fail(store, err);
    int got;
    while ((got = lab_store_step(store, row, err)) > 0)
        take_line(row, table, &columns, results);
    return got;
}

/* A run's own copy of the first values, for whoever needs no more. */
static void settle(struct lab_run *run, const struct lab_result *result) {
    run->result = result;
    run->rate = result->rate;
    run->rate_low = result->rate_low;
    run->rate_high = result->rate_high;
    run->rate_unit = result->rate_unit ? result->rate_unit : "";
    run->valid = result->valid != 0;
}

int lab_store_read_results(struct lab_store *store, const char *const *keys, struct lab_run *runs,
                           int count, struct lab_arena *arena, struct lab_err *err) {
    struct results results = {.keys = keys, .arena = arena};
    results.items = lab_mem_alloc((size_t)count + 1, sizeof *results.items);
    for (int i = 0; i < count; i++) {
        if (runs[i].state != LAB_RUN_DONE)
            continue;
        struct lab_result *made = lab_arena_alloc(arena, 1, sizeof *made);
        *made = lab_result_none;
        results.items[results.count++] =
            (struct known){.number = runs[i].number, .run = &runs[i], .result = made};
    }
    qsort(results.items, (size_t)results.count, sizeof *results.items, by_number);
    struct table table = table_of(LAB_RESULT_ROW_COUNT);
    int result = read_lines(store, &table, LAB_RESULT_OF_RUN, &results, err);
    if (result == 0)
        result = read_lines(store, &table, LAB_RESULT_OF_RANK, &results, err);
    for (int slot = next_slot(-1); slot < LAB_RESULT_ROW_COUNT && result == 0;
         slot = next_slot(slot)) {
        table = table_of(slot);
        if (is_wanted(&results, table.list->key))
            result = read_lines(store, &table, 0, &results, err);
    }
    for (int i = 0; i < results.count; i++)
        settle(results.items[i].run, results.items[i].result);
    lab_mem_free(results.items);
    return result;
}

/* --- up to version 3 --- */

void lab_store_read_old_result(struct lab_run *run, const char *json, struct lab_arena *arena) {
    LAB_AUTO(arena, scratch);
    struct lab_result *result = lab_result_read(lab_result_json(json, &scratch), arena);
    if (!isnan(run->rate)) { /* version 1 had the JSON alone */
        result->rate = run->rate;
        result->rate_low = run->rate_low;
        result->rate_high = run->rate_high;
        result->rate_unit = *run->rate_unit ? run->rate_unit : NULL;
    }
    result->valid = run->valid;
    settle(run, result);
}

int lab_store_upgrade_results(struct lab_store *store, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_run *runs;
    int count;
    if (lab_store_runs(store, &arena, &runs, &count, err) < 0 ||
        lab_store_make_results(store, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (runs[i].state == LAB_RUN_DONE &&
            lab_store_add_result(store, runs[i].number, &runs[i], err) < 0)
            return -1;
    return lab_store_exec(store,
                          "ALTER TABLE run DROP COLUMN result; ALTER TABLE run DROP COLUMN rate;"
                          "ALTER TABLE run DROP COLUMN rate_low;"
                          "ALTER TABLE run DROP COLUMN rate_high;"
                          "ALTER TABLE run DROP COLUMN rate_unit;"
                          "ALTER TABLE run DROP COLUMN valid",
                          err);
}
