/* turns.c: see the header. */
#include "command/compare/turns.h"

#include "base/clock.h"
#include "base/str.h"
#include "load/point_sets.h"

/* "A: ./bench --size 8", as one would write it in a shell. */
static const char *name_of(const struct lab_turns *turns, int side, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; turns->argv[side][i]; i++) {
        lab_str_add(&text, i ? " " : "");
        lab_str_add_shell(&text, turns->argv[side][i]);
    }
    return lab_arena_strdup(arena, text.text);
}

struct lab_point_set *lab_turns_sets(const struct lab_turns *turns, struct lab_arena *arena) {
    struct lab_point_set *sets = lab_arena_alloc(arena, 2, sizeof *sets);
    const char *session = lab_arena_printf(arena, "%lld", (long long)lab_clock_wall_ns());
    for (int side = 0; side < 2; side++) {
        const char *name = name_of(turns, side, arena);
        sets[side] = (struct lab_point_set){.name = name, .source = name, .session = session};
        if (turns->machine)
            lab_point_set_add_machine(&sets[side], turns->machine, turns->machine_identity, arena);
        struct lab_point *point = lab_point_set_point(&sets[side], NULL, 0, "time", "s", arena);
        for (int i = 0; i < turns->count; i++) {
            const struct lab_turn *turn = &turns->items[i];
            if (turn->side == side)
                lab_point_add_value(point, 1e-9 * (double)(turn->end_ns - turn->start_ns),
                                    turn->pair, arena);
        }
    }
    return sets;
}

void lab_turns_release(struct lab_turns *turns) {
    lab_mem_free(turns->items);
    turns->items = NULL;
    turns->count = 0;
}

/* --- when it is enough --- */

#define CHECK_GROWTH 1.1 /* a look costs as much as there are runs: seldom, where they are many */

/* Whether so many runs detect 2%; also where nothing varies. */
static bool is_precise(struct lab_turns *turns) {
    LAB_AUTO(arena, scratch);
    struct lab_comparison *comparison;
    if (turns->count < 2 * LAB_TURNS_LEAST || turns->count < CHECK_GROWTH * turns->checked)
        return false;
    turns->checked = turns->count;
    return lab_comparisons_make(lab_turns_sets(turns, &scratch), 2, &scratch, &comparison, NULL) ==
               0 &&
           comparison->pooled.needed <= comparison->pooled.n;
}

static bool is_enough(struct lab_turns *turns) {
    if (turns->runs > 0)
        return turns->count >= 2 * turns->runs;
    return turns->elapsed_s(turns->state) >= turns->budget_s || is_precise(turns);
}

/* --- running --- */

static int take_turn(struct lab_turns *turns, int side, struct lab_turn *ret_turn,
                     struct lab_err *err) {
    *ret_turn = (struct lab_turn){.side = side};
    int result = turns->run(turns->state, side, ret_turn, err);
    ret_turn->side = side;
    return result < 0 ? lab_err_context(err, "%c", 'A' + side) : result;
}

/* A B B A, kept as a whole or not at all. */
static int take_four(struct lab_turns *turns, struct lab_err *err) {
    static const int order[4] = {0, 1, 1, 0};
    struct lab_turn four[4];
    for (int i = 0; i < 4; i++) {
        int result = take_turn(turns, order[i], &four[i], err);
        if (result)
            return result;
        four[i].pair = turns->count / 2 + i / 2;
    }
    for (int i = 0; i < 4; i++) {
        LAB_PUSH(turns->items, turns->count) = four[i];
    }
    return 0;
}

int lab_turns_run(struct lab_turns *turns, struct lab_err *err) {
    struct lab_turn ignored;
    for (int64_t i = 0; i < 2 * turns->warmup; i++) {
        int result = take_turn(turns, (int)(i % 2), &ignored, err);
        if (result)
            return result;
    }
    do {
        int result = take_four(turns, err);
        if (result)
            return result;
    } while (!is_enough(turns));
    return 0;
}
