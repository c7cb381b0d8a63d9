/* Which values of a rank belong together. */
#include "worker/worker_internal.h"

#include "test.h"

static int series_of(struct rank *rank, const char *name, int label) {
    const struct lab_reported_metric metric = {.name = name, .unit = "", .rank = label};
    const struct worker_series *series = worker_find_series(rank, &metric);
    return series ? (int)(series - rank->series) : -1;
}

LAB_TEST(values_of_a_name_and_a_rank_are_a_series) {
    LAB_AUTO(arena, arena);
    struct rank *rank = lab_arena_alloc(&arena, 1, sizeof *rank);
    lab_arena_init(&rank->arena);
    assert_int_equal(series_of(rank, "loss", -1), 0);
    assert_int_equal(series_of(rank, "lr", -1), 1);
    assert_int_equal(series_of(rank, "loss", 1), 2);
    assert_int_equal(series_of(rank, "lr", -1), 1);
    assert_int_equal(series_of(rank, "loss", -1), 0);
    assert_int_equal(series_of(rank, "Loss", -1), 3);
    assert_int_equal(rank->series_count, 4);
    lab_arena_release(&rank->arena);
}

/* In whatever order they come, each keeps its place; of too many the first are known. */
LAB_TEST(a_series_keeps_its_place) {
    LAB_AUTO(arena, arena);
    struct rank *rank = lab_arena_alloc(&arena, 1, sizeof *rank);
    char name[32];
    lab_arena_init(&rank->arena);
    for (int i = 0; i < WORKER_SERIES_MOST; i++) {
        snprintf(name, sizeof name, "m%d", i / 2);
        assert_int_equal(series_of(rank, name, i % 2), i);
    }
    assert_int_equal(series_of(rank, "another", 0), -1);
    for (int i = WORKER_SERIES_MOST - 1; i >= 0; i -= 7) {
        snprintf(name, sizeof name, "m%d", i / 2);
        assert_int_equal(series_of(rank, name, i % 2), i);
    }
    lab_arena_release(&rank->arena);
}
