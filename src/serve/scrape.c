/*
 * scrape.c: takes what a sampler hands on and keeps the latest of it. Nothing is added up or
 * averaged: Prometheus does that, from counters as the driver gives them.
 */
#include "serve/scrape_internal.h"

#include <string.h>

/* --- entities --- */

static void copy_entity(struct scrape_entity *to, const struct lab_entity *from) {
    lab_arena_init(&to->arena);
    to->entity = lab_entity_copy(from, &to->arena);
    to->columns = lab_arena_alloc(&to->arena, (size_t)from->column_count, sizeof *to->columns);
    to->told = true;
}

static struct scrape_entity *find(struct lab_scrape *scrape, int number) {
    if (number < 0 || number >= scrape->entity_count || !scrape->entities[number].told)
        return NULL;
    return &scrape->entities[number];
}

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_scrape *scrape = state;
    while (scrape->entity_count <= number) {
        LAB_PUSH(scrape->entities, scrape->entity_count) = (struct scrape_entity){.told = false};
    }
    struct scrape_entity old = scrape->entities[number],
                         new = {.heard = old.heard, .up = old.up, .answered_ns = old.answered_ns};
    copy_entity(&new, entity);
    /* the same one told again, perhaps with another index: what it said still holds */
    if (old.told && lab_str_equal(old.entity.id, entity->id) &&
        old.entity.column_count == entity->column_count && entity->column_count)
        memcpy(new.columns, old.columns, (size_t)entity->column_count * sizeof *new.columns);
    if (old.told)
        lab_arena_release(&old.arena);
    scrape->entities[number] = new;
}

/* --- ticks and gaps --- */

static void forget(struct scrape_entity *entity) {
    entity->heard = true;
    entity->up = false;
    if (entity->entity.column_count)
        memset(entity->columns, 0, (size_t)entity->entity.column_count * sizeof *entity->columns);
}

static void note_value(struct scrape_column *column, int64_t value) {
    column->value = value;
    column->known = true;
    column->missing = 0;
    column->in_a_row += column->in_a_row < SCRAPE_STEADY;
}

static void note_absence(struct scrape_column *column) {
    if (column->in_a_row < SCRAPE_STEADY)
        column->in_a_row = 0;
    else if (++column->missing == SCRAPE_STEADY)
        *column = (struct scrape_column){.known = false};
}

static int64_t silence_ns(const struct lab_scrape *scrape) {
    int64_t limit_ns = SCRAPE_SILENCE_INTERVALS * scrape->setup.interval_ns;
    return limit_ns > SCRAPE_SILENCE_NS ? limit_ns : SCRAPE_SILENCE_NS;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct lab_scrape *scrape = state;
    struct scrape_entity *entity = find(scrape, tick->entity);
    if (!entity)
        return;
    bool any = false;
    for (int i = 0; i < entity->entity.column_count; i++) {
        bool valid = lab_valid_get(tick->valid, i);
        if (valid)
            note_value(&entity->columns[i], tick->values[i]);
        else
            note_absence(&entity->columns[i]);
        any |= valid;
    }
    if (tick->time_ns > scrape->latest_ns)
        scrape->latest_ns = tick->time_ns;
    if (any) {
        entity->heard = entity->up = true;
        entity->answered_ns = tick->time_ns;
    } else if (tick->time_ns - entity->answered_ns > silence_ns(scrape)) {
        forget(entity);
    }
}

static void take_event(void *state, const struct lab_sample_event *event) {
    struct lab_scrape *scrape = state;
    struct scrape_entity *entity = find(scrape, event->entity);
    if (!entity || event->kind != LAB_EVENT_GAP)
        return; /* that it is back is told by its next tick */
    forget(entity);
    for (int i = 0; i < scrape->entity_count; i++)
        if (scrape->entities[i].told && scrape->entities[i].entity.parent == event->entity)
            forget(&scrape->entities[i]);
}

/* --- processes --- */

static void take_processes(void *state, const struct lab_process_list *list) {
    struct lab_scrape *scrape = state;
    struct lab_arena *arena = &scrape->process_arena;
    lab_arena_release(arena);
    lab_arena_init(arena);
    scrape->processes = *list;
    scrape->processes.items =
        lab_arena_alloc(arena, (size_t)list->count, sizeof *scrape->processes.items);
    for (int i = 0; i < list->count; i++) {
        const struct lab_process_sample *from = &list->items[i];
        struct lab_process_sample *to = &scrape->processes.items[i];
        *to = *from;
        to->user = lab_arena_strdup(arena, from->user);
        to->name = lab_arena_strdup(arena, from->name);
        to->container = lab_arena_strdup(arena, from->container);
        to->command = to->advice = ""; /* not shown: they may hold what isn't for others */
        to->node_bytes = NULL;
        to->node_count = 0;
        to->gpus = lab_arena_copy(arena, from->gpus, (size_t)from->gpu_count, sizeof *to->gpus);
    }
    scrape->has_processes = true;
    if (list->time_ns > scrape->latest_ns)
        scrape->latest_ns = list->time_ns;
}

/* --- life --- */

struct lab_scrape *lab_scrape_open(const struct lab_scrape_setup *setup) {
    struct lab_scrape *scrape = lab_mem_alloc(1, sizeof *scrape);
    lab_arena_init(&scrape->arena);
    lab_arena_init(&scrape->process_arena);
    scrape->setup = (struct lab_scrape_setup){
        .host = lab_arena_strdup(&scrape->arena, setup->host),
        .driver = lab_arena_strdup(&scrape->arena, setup->driver),
        .version = lab_arena_strdup(&scrape->arena, setup->version),
        .interval_ns = setup->interval_ns,
    };
    return scrape;
}

void lab_scrape_set_driver(struct lab_scrape *scrape, const char *driver) {
    scrape->setup.driver = lab_arena_strdup(&scrape->arena, driver);
}

void lab_scrape_close(struct lab_scrape *scrape) {
    if (!scrape)
        return;
    for (int i = 0; i < scrape->entity_count; i++)
        if (scrape->entities[i].told)
            lab_arena_release(&scrape->entities[i].arena);
    lab_mem_free(scrape->entities);
    lab_arena_release(&scrape->process_arena);
    lab_arena_release(&scrape->arena);
    lab_mem_free(scrape);
}

struct lab_sink_samples lab_scrape_sink(struct lab_scrape *scrape) {
    return (struct lab_sink_samples){take_entity, take_tick, take_event, take_processes, scrape};
}

void lab_scrape_set_stats(struct lab_scrape *scrape, const struct lab_sampler_stats *stats) {
    scrape->stats = *stats;
    scrape->has_stats = true;
}

bool scrape_value(const struct scrape_entity *entity, enum lab_metric_id metric,
                  double *ret_value) {
    int column = lab_entity_column(&entity->entity, metric, -1);
    if (column < 0 || !entity->columns[column].known)
        return false;
    *ret_value = (double)entity->columns[column].value * lab_metric(metric)->scale;
    return true;
}
