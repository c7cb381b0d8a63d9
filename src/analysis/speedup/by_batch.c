/* by_batch.c: which number of devices is fastest at which batch: a mean over batches hides that it
 * differs. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/speedup/gang.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define STRETCHES_MOST 4 /* that are named */

struct place { /* a model and a batch */
    double order, batch;
    const char *model, *work;
    int devices;                 /* the fewest of the fastest; 1 = none is faster for certain */
    const struct lab_gang *gang; /* of these; NULL = one device */
};

struct stretch { /* neighbouring batches of a model with the same number of devices */
    const struct place *first, *last;
    bool from_least, to_most; /* of the model's batches */
};

struct by_batch {
    struct place *places;
    struct stretch *stretches;
    int place_count, stretch_count;
    bool several; /* models */
};

static const struct lab_gang *fastest_at(const struct lab_gangs *gangs, const char *work) {
    const struct lab_gang *fastest = NULL, *fewest = NULL;
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (lab_str_equal(gang->work, work) && lab_str_equal(gang->grade, "beneficial") &&
            (!fastest || gang->speedup.interval.low > fastest->speedup.interval.low))
            fastest = gang;
    }
    for (int i = 0; i < gangs->count && fastest; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (lab_str_equal(gang->work, work) && lab_str_equal(gang->grade, "beneficial") &&
            gang->speedup.interval.high >= fastest->speedup.interval.low &&
            (!fewest || gang->devices < fewest->devices))
            fewest = gang;
    }
    return fewest;
}

static void find_places(const struct lab_gangs *gangs, struct by_batch *made,
                        struct lab_arena *arena) {
    for (int i = 0; i < gangs->count; i++) {
        const struct lab_gang *gang = &gangs->items[i];
        if (LAB_FIND(made->places, made->place_count, work, gang->work) >= 0)
            continue;
        const struct lab_gang *best = fastest_at(gangs, gang->work);
        LAB_ADD(made->places, made->place_count, arena) = (struct place){
            gang->order, gang->batch, gang->model, gang->work, best ? best->devices : 1, best};
    }
    LAB_SORT(made->places, made->place_count, LAB_BY(made->places, order),
             LAB_BY(made->places, model), LAB_BY(made->places, batch));
}

static void find_stretches(struct by_batch *made, struct lab_arena *arena) {
    const struct place *places = made->places;
    for (int i = 0, next; i < made->place_count; i = next) {
        bool first = i == 0 || !lab_str_equal(places[i - 1].model, places[i].model);
        for (next = i + 1; next < made->place_count &&
                           lab_str_equal(places[next].model, places[i].model) &&
                           places[next].devices == places[i].devices;)
            next++;
        bool last =
            next == made->place_count || !lab_str_equal(places[next].model, places[i].model);
        made->several |= first && i > 0;
        LAB_ADD(made->stretches, made->stretch_count, arena) =
            (struct stretch){&places[i], &places[next - 1], first, last};
    }
}

/* False = no number of devices pays off on the mean, one is the fastest everywhere, or points don't
 * differ by batch. */
static bool find(const struct lab_gangs *gangs, const struct lab_gang_pool *best,
                 struct by_batch *made, struct lab_arena *arena) {
    bool differs = false, used = false;
    *made = (struct by_batch){0};
    if (!best || gangs->pool_count < 2 || lab_gangs_count(gangs, "independent") > 0)
        return false;
    find_places(gangs, made, arena);
    for (int i = 0; i < made->place_count; i++) {
        if (!(made->places[i].batch > 0))
            return false;
        differs |= made->places[i].devices != best->devices;
        used |= made->places[i].devices == best->devices;
    }
    find_stretches(made, arena);
    return differs && used;
}

/* "from batch 32 up", "for large at all batches" */
static const char *where_words(const struct by_batch *made, const struct stretch *it,
                               struct lab_arena *arena) {
    const char *model = made->several ? lab_arena_printf(arena, "for %s ", it->first->model) : "";
    if (it->from_least && it->to_most)
        return lab_arena_printf(arena, "%sat all batches", model);
    if (it->first == it->last)
        return lab_arena_printf(arena, "%sat batch %.0f", model, it->first->batch);
    if (it->to_most)
        return lab_arena_printf(arena, "%sfrom batch %.0f up", model, it->first->batch);
    if (it->from_least)
        return lab_arena_printf(arena, "%sup to batch %.0f", model, it->last->batch);
    return lab_arena_printf(arena, "%sfrom batch %.0f to %.0f", model, it->first->batch,
                            it->last->batch);
}

/* " (3.21× at batch 32, 6.43× at batch 128)"; "" of one device. */
static const char *value_words(const struct stretch *it, struct lab_arena *arena) {
    const struct lab_gang *first = it->first->gang, *last = it->last->gang;
    if (!first)
        return "";
    const char *from = lab_words_ratio(first->speedup.value, arena);
    return first == last
               ? lab_arena_printf(arena, " (%s)", from)
               : lab_arena_printf(arena, " (%s at batch %.0f, %s at batch %.0f)", from,
                                  first->batch, lab_words_ratio(last->speedup.value, arena),
                                  last->batch);
}

static const char *count_words(const struct lab_gangs *gangs, int devices,
                               struct lab_arena *arena) {
    return lab_arena_printf(arena, "%d %s%s", devices, gangs->unit, devices == 1 ? "" : "s");
}

/* "8 GPUs from batch 32 up (…)", "4 GPUs at batch 16 (…)": first those of `devices`. */
static const char **list_stretches(const struct lab_gangs *gangs, const struct by_batch *made,
                                   int devices, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < made->stretch_count; i++) {
            const struct stretch *it = &made->stretches[i];
            if ((it->first->devices == devices) == own)
                LAB_ADD(names, count, arena) = lab_arena_printf(
                    arena, "%s %s%s", count_words(gangs, it->first->devices, arena),
                    where_words(made, it, arena), value_words(it, arena));
        }
    LAB_ADD(names, count, arena) = NULL;
    return names;
}

static int count_places(const struct by_batch *made, int devices) {
    int count = 0;
    for (int i = 0; i < made->place_count; i++)
        count += made->places[i].devices == devices;
    return count;
}

/* "8 GPUs at 9 of 16 points", "4 GPUs at 7": where there are too many stretches. */
static const char **list_counts(const struct lab_gangs *gangs, const struct by_batch *made,
                                int devices, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    LAB_ADD(names, count, arena) =
        lab_arena_printf(arena, "%s at %d of %d points", count_words(gangs, devices, arena),
                         count_places(made, devices), made->place_count);
    for (int p = gangs->pool_count; p >= 0; p--) {
        int other = p > 0 ? gangs->pools[p - 1].devices : 1, own = count_places(made, other);
        if (other != devices && own > 0)
            LAB_ADD(names, count, arena) =
                lab_arena_printf(arena, "%s at %d", count_words(gangs, other, arena), own);
    }
    LAB_ADD(names, count, arena) = NULL;
    return names;
}

/* "Speed-up over one GPU, 50 runs each; 95% CI within ±0.2%." */
static const char *basis_words(const struct lab_gangs *gangs, const struct by_batch *made,
                               struct lab_arena *arena) {
    double far = 0;
    int fewest = 0, most = 0;
    for (int i = 0; i < made->place_count; i++) {
        const struct lab_gang *gang = made->places[i].gang;
        if (!gang)
            continue;
        const struct lab_effect *speedup = &gang->speedup;
        int n = gang->claim.n, of = gang->claim.most > n ? gang->claim.most : n;
        far = fmax(far, fmax(speedup->interval.high / speedup->value - 1,
                             1 - speedup->interval.low / speedup->value));
        fewest = fewest == 0 || n < fewest ? n : fewest;
        most = of > most ? of : most;
    }
    return lab_arena_printf(arena, "Speed-up over one %s, %s; 95%% CI within ±%.1f%%.", gangs->unit,
                            lab_speedup_runs(fewest, most, arena), lab_words_bound_percent(far));
}

const char *lab_gangs_by_batch(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const struct lab_gang_pool *best = gangs->pool_count > 0 ? lab_gangs_best(gangs) : NULL;
    struct by_batch made;
    LAB_AUTO(str, list);
    if (!best || !find(gangs, best, &made, arena))
        return NULL;
    lab_str_add_list(&list,
                     made.stretch_count <= STRETCHES_MOST
                         ? list_stretches(gangs, &made, best->devices, arena)
                         : list_counts(gangs, &made, best->devices, arena),
                     "and");
    return lab_arena_printf(arena, "%s. %s", list.text, basis_words(gangs, &made, arena));
}

const char *lab_gangs_by_batch_where(const struct lab_gangs *gangs, struct lab_arena *arena) {
    const struct lab_gang_pool *best = gangs->pool_count > 0 ? lab_gangs_best(gangs) : NULL;
    const char **names = NULL;
    int count = 0;
    struct by_batch made;
    LAB_AUTO(str, list);
    if (!best || !find(gangs, best, &made, arena))
        return NULL;
    for (int i = 0; i < made.stretch_count; i++)
        if (made.stretches[i].first->devices == best->devices)
            LAB_ADD(names, count, arena) = where_words(&made, &made.stretches[i], arena);
    if (count > STRETCHES_MOST)
        return lab_arena_printf(arena, "at %d of %d points", count_places(&made, best->devices),
                                made.place_count);
    LAB_ADD(names, count, arena) = NULL;
    lab_str_add_list(&list, names, "and");
    return lab_arena_strdup(arena, list.text);
}
