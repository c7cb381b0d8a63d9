/* scrape_internal.h: the scrape's state, shared by who fills it and who writes it down. */
#pragma once

#include "serve/serve.h"

#include "base/mem.h"
#include "probe/sampler.h"

struct scrape_column {
    int64_t value;
    bool known;
    uint8_t in_a_row; /* ticks that brought it, up to SCRAPE_STEADY: then every tick does */
    uint8_t missing;  /* ticks in a row that should have and did not */
};

struct scrape_entity {
    bool told;                /* its number is in use */
    bool heard;               /* a tick or a gap came: `up` means something */
    bool up;                  /* it answered the last time */
    int64_t answered_ns;      /* when */
    struct lab_arena arena;   /* of what is below */
    struct lab_entity entity; /* a copy */
    struct scrape_column *columns;
};

struct lab_scrape {
    struct lab_arena arena; /* of the setup */
    struct lab_scrape_setup setup;
    struct scrape_entity *entities; /* by the sampler's number */
    int entity_count;
    struct lab_arena process_arena; /* of the last list */
    struct lab_process_list processes;
    bool has_processes;
    int64_t latest_ns; /* the newest time that was told */
    struct lab_sampler_stats stats;
    bool has_stats;
};

/* A column that came with so many ticks in a row is one that every tick brings; once so many in a
 * row came without it, it is no longer known. */
#define SCRAPE_STEADY 10

/* Between two readings of slow values a tick may bring none; after so long an entity is lost. */
#define SCRAPE_SILENCE_NS        (3 * LAB_NS_PER_S)
#define SCRAPE_SILENCE_INTERVALS 3

/* The value in the metric's unit; false = not known. Columns with instances are not looked at. */
bool scrape_value(const struct scrape_entity *entity, enum lab_metric_id metric, double *ret_value);

/* --- the text's parts --- */

/* Labels of an entity, without braces: of dcgm-exporter's names, and of ours. */
struct scrape_labels {
    const char *dcgm, *own;
};

/* One line; `more` are further labels or "". */
void scrape_add_sample(const char *name, const char *labels, const char *more, double value,
                       struct lab_str *out);
void scrape_add_header(const char *name, const char *type, const char *help, struct lab_str *out);
/* `name="value"` with the value escaped, after a comma where something is there already. */
void scrape_add_label(const char *name, const char *value, struct lab_str *out);

/* `labels` by entity number. */
void scrape_write_dcgm(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                       struct lab_str *out);
void scrape_write_metrics(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                          struct lab_str *out);
void scrape_write_processes(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                            struct lab_str *out);
