/*
 * studies_copies.c: runs that several folders hold, as after `cp -r`. Each counts once: as repeats
 * they would narrow an interval and measure nothing.
 */
#include "load/studies_files.h"

#include "base/str.h"

#include <math.h>

/* Runs of two studies may have one id, but they don't begin and end in the same nanosecond. */
static bool is_same(const struct lab_study_run *a, const struct lab_study_run *b) {
    const struct lab_run *x = a->run, *y = b->run;
    bool rates = a->rate == b->rate || (isnan(a->rate) && isnan(b->rate));
    return x->start_wall_ns != 0 && x->start_wall_ns == y->start_wall_ns &&
           x->start_ns == y->start_ns && x->end_ns == y->end_ns && rates &&
           lab_str_equal(x->id, y->id);
}

static bool holds(const struct lab_study_run *runs, int count, const struct lab_study_run *run) {
    for (int i = 0; runs && i < count; i++)
        if (is_same(&runs[i], run))
            return true;
    return false;
}

/* Leaves out of `table` what `other` has. Returns how many runs that are. */
static int leave_out(struct lab_study_table *table, const struct lab_study_table *other) {
    int kept = 0, failed = 0, before = table->run_count + table->failed_count;
    if (table->machine_identity != other->machine_identity)
        return 0;
    table->invalid_count = 0;
    for (int i = 0; i < table->run_count; i++)
        if (!holds(other->runs, other->run_count, &table->runs[i])) {
            table->invalid_count += !table->runs[i].run->valid;
            table->runs[kept++] = table->runs[i];
        }
    for (int i = 0; table->failed && i < table->failed_count; i++)
        if (!holds(other->failed, other->failed_count, &table->failed[i]))
            table->failed[failed++] = table->failed[i];
    table->run_count = kept;
    table->failed_count = table->failed ? failed : table->failed_count;
    int left_out = before - table->run_count - table->failed_count;
    table->planned_count -= left_out;
    table->all_invalid = kept > 0 && table->invalid_count == kept;
    for (int i = 0; i < kept; i++)
        table->runs[i].used = table->runs[i].run->valid || table->all_invalid;
    return left_out;
}

static void note(struct lab_study_table *table, const char *copy, int count,
                 struct lab_arena *arena) {
    int had = 0;
    while (table->notes && table->notes[had])
        had++;
    const char **notes = lab_arena_alloc(arena, (size_t)had + 2, sizeof *notes);
    for (int i = 0; i < had; i++)
        notes[i] = table->notes[i];
    notes[had] =
        lab_arena_printf(arena, "Warning: %s holds copies of %d run%s of %s. They count once.",
                         copy, count, count == 1 ? "" : "s", table->folder);
    table->notes = notes;
}

void lab_studies_leave_copies(struct lab_study_table *tables, int *count, struct lab_arena *arena) {
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        struct lab_study_table table = tables[i];
        bool any = table.run_count + table.failed_count > 0;
        for (int k = 0; k < kept && any; k++) {
            int left_out = leave_out(&table, &tables[k]);
            if (left_out > 0)
                note(&tables[k], table.folder, left_out, arena);
        }
        if (!any || table.run_count + table.failed_count > 0)
            tables[kept++] = table;
    }
    *count = kept;
}
