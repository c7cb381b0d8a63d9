/*
 * monitor_file_read_csv.c: takes in tables: ours with every metric, and PCIe rates. Columns are
 * found by their names, in any order; those that are unknown are told and left out.
 */
#include "store/foreign/monitor_file_reader.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX   4096
#define HEADER_BYTES (1 << 20)

enum column {
    UNKNOWN = -20,
    TIMESTAMP,
    ELAPSED,
    KIND,
    INDEX,
    ID,
    NAME,
    SIMULATED,
    GPU,
    PCIE_RX,
    PCIE_TX
};

struct table {
    struct lab_monitor_builder *builder;
    int columns[FIELDS_MAX]; /* an enum column, or a metric */
    int width;
    const char *fields[FIELDS_MAX];
    char *line; /* a copy whose fields are terminated */
    size_t line_capacity;
    bool has_start;
    int64_t start_ns; /* wall clock at which elapsed_s is 0 */
};

/* --- fields --- */

/* Cuts a line into fields, quotes taken off; returns how many there are, or -1. */
static int split(struct table *table, const char *text, size_t length) {
    if (length + 1 > table->line_capacity) {
        table->line_capacity = 2 * (length + 1);
        table->line =
            lab_arena_alloc(lab_monitor_builder_arena(table->builder), table->line_capacity, 1);
    }
    char *to = table->line;
    int count = 0;
    const char *end = text + length;
    for (;;) {
        if (count >= FIELDS_MAX)
            return -1;
        table->fields[count++] = to;
        if (text < end && *text == '"') {
            for (text++; text < end && (*text != '"' || (text + 1 < end && text[1] == '"'));
                 text++) {
                text += *text == '"';
                *to++ = *text;
            }
            text += text < end;
        }
        while (text < end && *text != ',')
            *to++ = *text++;
        bool more = text < end;
        *to++ = '\0';
        if (!more)
            return count;
        text++;
    }
}

static const char *field(const struct table *table, int column) {
    for (int i = 0; i < table->width; i++)
        if (table->columns[i] == column)
            return table->fields[i];
    return "";
}

static bool number_of(const char *text, double *ret) {
    char *end;
    errno = 0;
    *ret = strtod(text, &end);
    while (*end == ' ')
        end++;
    return end != text && !*end && !errno && isfinite(*ret);
}

/* --- the header line --- */

static int column_of(const char *name) {
    static const struct {
        const char *name;
        int column;
    } known[] = {
        {"timestamp", TIMESTAMP},
        {"elapsed_s", ELAPSED},
        {"kind", KIND},
        {"index", INDEX},
        {"id", ID},
        {"name", NAME},
        {"simulated", SIMULATED},
        {"gpu", GPU},
        {"pcie_rx_mb", PCIE_RX},
        {"pcie_tx_mb", PCIE_TX},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (lab_str_equal(name, known[i].name))
            return known[i].column;
    int metric = lab_monitor_find_column(name);
    return metric < 0 ? UNKNOWN : metric;
}

static bool has(const struct table *table, int column) {
    for (int i = 0; i < table->width; i++)
        if (table->columns[i] == column)
            return true;
    return false;
}

static bool read_header(struct table *table, const char *line, size_t length) {
    table->width = split(table, line, length);
    for (int i = 0; i < table->width; i++)
        table->columns[i] = column_of(table->fields[i] + strspn(table->fields[i], " "));
    if (table->width < 0 || !has(table, TIMESTAMP))
        return false;
    if (!(has(table, KIND) && has(table, INDEX)) &&
        !(has(table, GPU) && (has(table, PCIE_RX) || has(table, PCIE_TX))))
        return false;
    for (int i = 0; i < table->width; i++)
        if (table->columns[i] == UNKNOWN)
            lab_monitor_builder_odd(table->builder, "unknown columns", 1);
    return true;
}

/* --- lines --- */

static int entity_of(struct table *table) {
    bool rates = !has(table, KIND);
    double index;
    int kind = rates ? LAB_ENTITY_GPU : lab_entity_kind_find(field(table, KIND));
    if (kind < 0 || !number_of(field(table, rates ? GPU : INDEX), &index) || index < 0 ||
        index > INT16_MAX)
        return -1;
    int entity = lab_monitor_builder_entity(table->builder, (enum lab_entity_kind)kind, (int)index,
                                            field(table, ID));
    if (entity < 0)
        return -1;
    struct lab_entity *facts = lab_monitor_builder_facts(table->builder, entity);
    if (!*facts->name)
        facts->name = lab_monitor_builder_text(table->builder, field(table, NAME));
    facts->simulated |= lab_str_equal(field(table, SIMULATED), "true");
    return entity;
}

/* By the wall clock, and by the steady one where the line tells of it. */
static int begin_tick(struct table *table, int entity) {
    int64_t wall_ns = 0, elapsed_ns = 0;
    enum lab_monitor_time kind = lab_monitor_parse_time(field(table, TIMESTAMP), &wall_ns);
    double elapsed;
    if (kind != LAB_MONITOR_TIME_WALL || !number_of(field(table, ELAPSED), &elapsed) ||
        fabs(elapsed) > 1e9)
        return lab_monitor_builder_tick(table->builder, entity, kind, wall_ns);
    elapsed_ns = llround(elapsed * LAB_NS_PER_S);
    if (!table->has_start)
        table->start_ns = wall_ns - elapsed_ns;
    table->has_start = true;
    int64_t time_ns = table->start_ns + elapsed_ns;
    return lab_monitor_builder_tick_at(table->builder, entity, time_ns, wall_ns - time_ns);
}

static void set(struct table *table, int entity, enum lab_metric_id metric, int instance,
                const char *text, double unit) {
    double number;
    int64_t raw;
    if (!*text)
        return;
    if (number_of(text, &number) && lab_monitor_to_raw(metric, number * unit, &raw))
        lab_monitor_builder_set(table->builder, entity, metric, instance, raw);
    else
        lab_monitor_builder_odd(table->builder, "fields that are not numbers", 1);
}

/* "12.5;;3": the instances' values, one at each place. */
static void set_list(struct table *table, int entity, enum lab_metric_id metric, char *text) {
    for (int instance = 0; instance <= INT16_MAX; instance++) {
        char *next = strchr(text, ';');
        if (next)
            *next = '\0';
        set(table, entity, metric, instance, text, 1);
        if (!next)
            return;
        text = next + 1;
    }
}

static bool has_instances(enum lab_metric_id metric) {
    return strstr(lab_metric(metric)->title, "[n]");
}

static void read_line(struct table *table, const char *line, size_t length) {
    if (length == 0)
        return;
    if (split(table, line, length) != table->width) {
        lab_monitor_builder_odd(table->builder, "lines with more or fewer fields than the first",
                                1);
        return;
    }
    int entity = entity_of(table);
    if (entity < 0 || begin_tick(table, entity) < 0) {
        lab_monitor_builder_odd(table->builder, "lines without a valid time or device", 1);
        return;
    }
    for (int i = 0; i < table->width; i++) {
        int column = table->columns[i];
        if (column == PCIE_RX)
            set(table, entity, LAB_METRIC_PCIE_RX_RATE, -1, table->fields[i], 1e6);
        else if (column == PCIE_TX)
            set(table, entity, LAB_METRIC_PCIE_TX_RATE, -1, table->fields[i], 1e6);
        else if (column >= 0 && *table->fields[i] && has_instances((enum lab_metric_id)column))
            set_list(table, entity, (enum lab_metric_id)column,
                     table->line + (table->fields[i] - table->line));
        else if (column >= 0)
            set(table, entity, (enum lab_metric_id)column, -1, table->fields[i], 1);
    }
}

static bool find_header(struct table *table, struct lab_monitor_scan *scan) {
    const char *line;
    size_t length;
    return lab_monitor_scan_line(scan, &line, &length) && length < HEADER_BYTES &&
           read_header(table, line, length);
}

bool lab_monitor_is_csv(struct lab_monitor_scan *scan) {
    LAB_AUTO(arena, arena);
    LAB_AUTO_FREE struct table *table = lab_mem_alloc(1, sizeof *table);
    table->builder = lab_monitor_builder_new(&arena);
    return find_header(table, scan);
}

bool lab_monitor_read_csv(struct lab_monitor_builder *builder, struct lab_monitor_scan *scan) {
    const char *line;
    size_t length;
    LAB_AUTO_FREE struct table *table = lab_mem_alloc(1, sizeof *table);
    table->builder = builder;
    bool good = find_header(table, scan);
    while (good && lab_monitor_scan_line(scan, &line, &length))
        read_line(table, line, length);
    return good;
}
