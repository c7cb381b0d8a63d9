/*
 * monitor_file_table.c: takes in tables: ours with every metric, PCIe rates, nvidia-smi's and
 * nvitop's. Columns are found by their names, in any order; unknown ones are told and left out.
 * Where there is no line of names, units tell what a column is.
 *
 * A line is about one device, whose number may be in no column (then lines of one sample follow
 * each other in the devices' order), or about all of them, each with columns of its own. Times may
 * lack their date, or lack altogether: then a sample is a second.
 */
#include "store/foreign/monitor_file_reader.h"

#include "base/clock.h"
#include "base/hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX   4096
#define HEADER_BYTES (1 << 20)
#define PEEK_BYTES   65536
#define KEYS_MAX     1024
#define NAMES_MAX    8 /* of unknown columns */
#define DAY_NS       (86400 * LAB_NS_PER_S)

struct key { /* of a line within its sample */
    int index;
    int32_t pid;
    uint64_t name; /* of what else names its device */
};

struct table {
    struct lab_monitor_builder *builder;
    const struct lab_monitor_field *fields;
    struct lab_monitor_column *columns;
    int width, column_capacity;
    bool blanks;                                /* between fields, instead of commas */
    bool wide;                                  /* lines are about all devices */
    bool by_units;                              /* there is no line of names */
    bool lasts;                                 /* columns that are spare aren't needed */
    unsigned char has[LAB_MONITOR_UNKNOWN + 1]; /* columns of each kind */
    char first[64]; /* how the line of names begins; "" = there is none */
    char *fields_of_line[FIELDS_MAX];
    char *line; /* a copy whose fields are terminated */
    size_t line_capacity;
    /* samples */
    struct key keys[KEYS_MAX];
    int key_count;
    int64_t sample, day_ns, last_clock_ns;
    int place;    /* of the last line in its sample */
    bool several; /* a sample has lines of more than one device */
    bool placed;
    int64_t placed_ns;
    int64_t apart_ns; /* lines of one sample are less than this apart */
    struct {
        int64_t stamp; /* of the sample in which its last tick began */
        int processes; /* in it */
    } begun[LAB_MONITOR_ENTITIES];
};

/* --- fields --- */

/* A quoted field, or one up to the next comma. */
static const char *copy_field(const char *text, const char *end, char **to) {
    if (text < end && *text == '"') {
        for (text++; text < end && (*text != '"' || (text + 1 < end && text[1] == '"')); text++) {
            text += *text == '"';
            *(*to)++ = *text;
        }
        text += text < end;
    }
    while (text < end && *text != ',')
        *(*to)++ = *text++;
    return text;
}

/* One of those that blanks separate; the last that the table has is the rest of the line. */
static const char *copy_word(const char *text, const char *end, bool last, char **to) {
    while (last && end > text && isspace((unsigned char)end[-1]))
        end--;
    while (text < end && (last || !isspace((unsigned char)*text)))
        *(*to)++ = *text++;
    while (text < end && isspace((unsigned char)*text))
        text++;
    return text;
}

/* Cuts a line into fields; returns how many there are, or -1. */
static int split(struct table *table, const char *text, size_t length) {
    if (length + 1 > table->line_capacity) {
        table->line_capacity = 2 * (length + 1);
        table->line =
            lab_arena_alloc(lab_monitor_builder_arena(table->builder), table->line_capacity, 1);
    }
    char *to = table->line;
    const char *end = text + length;
    int count = 0;
    while (text < end && (table->blanks || *text == ' ') && isspace((unsigned char)*text))
        text++;
    for (bool more = true; more; text += more && !table->blanks) {
        if (count >= FIELDS_MAX)
            return -1;
        table->fields_of_line[count++] = to;
        bool last = count == table->width;
        text = table->blanks ? copy_word(text, end, last, &to) : copy_field(text, end, &to);
        more = text < end && !(table->blanks && last);
        *to++ = '\0';
    }
    for (int i = 0; i < count; i++)
        table->fields_of_line[i] += strspn(table->fields_of_line[i], " ");
    return count;
}

static struct lab_value cell_of(const struct table *table, int column) {
    return (struct lab_value){.type = LAB_VALUE_STRING, .string = table->fields_of_line[column]};
}

/* --- what the columns are --- */

static struct lab_monitor_column column_named(const struct table *table, char *name) {
    struct lab_monitor_column column = {.field = {.what = LAB_MONITOR_UNKNOWN}, .kind = -1};
    char *unit = strstr(name, " [");
    if (unit)
        *unit = '\0'; /* "power.draw [W]" */
    const struct lab_monitor_field *field = lab_monitor_find_field(table->fields, name);
    if (lab_monitor_smi_reason(name, &column.field))
        return column;
    if (!field && table->fields == lab_monitor_smi_query) {
        int metric = lab_monitor_find_column(name);
        if (metric >= 0) {
            column.field = (struct lab_monitor_field){.what = metric, .unit = 1};
            return column;
        }
        field = lab_monitor_find_field(lab_monitor_common, name);
        if (!field)
            field = lab_monitor_find_field(lab_monitor_gpu_fields, name);
        if (!field && lab_monitor_nvitop_column(name, &column))
            return column;
    }
    if (field)
        column.field = *field;
    return column;
}

/* The next column of that unit. */
static struct lab_monitor_column column_of_unit(const struct table *table, const char *unit) {
    struct lab_monitor_column column = {.field = {.what = LAB_MONITOR_UNKNOWN}, .kind = -1};
    for (const struct lab_monitor_field *field = table->fields; field->key && *unit; field++)
        if (lab_str_equal(field->suffix, unit) && !table->has[field->what]) {
            column.field = *field;
            break;
        }
    return column;
}

/* What a value itself tells: a time, a GPU's name in the driver, a unit. */
static struct lab_monitor_column column_of_value(const struct table *table, const char *text,
                                                 int place) {
    struct lab_monitor_column column = {.field = {.what = LAB_MONITOR_UNKNOWN}, .kind = -1};
    int64_t time_ns;
    unsigned part[4];
    char *end;
    strtod(text, &end);
    if (lab_monitor_parse_time(text, &time_ns) == LAB_MONITOR_TIME_WALL)
        column.field.what = LAB_MONITOR_TIMESTAMP;
    else if (lab_str_starts(text, "GPU-"))
        column.field.what = LAB_MONITOR_ID;
    else if (sscanf(text, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) == 4)
        column.field.what = LAB_MONITOR_PCI;
    else if (end != text && *end == ' ')
        return column_of_unit(table, end + 1);
    else if (end != text && !*end && place == table->has[LAB_MONITOR_TIMESTAMP])
        column.field.what = LAB_MONITOR_INDEX; /* the first, or right behind the time */
    return column;
}

enum header { BY_NAME, BY_UNIT, BY_VALUE };

/* Returns whether a column is a value, be it of a device or of a process. */
static bool name_columns(struct table *table, int width, enum header header) {
    bool any = false;
    memset(table->has, 0, sizeof table->has);
    if (width > table->column_capacity) { /* headers come again and again */
        table->column_capacity = width;
        table->columns = lab_arena_alloc(lab_monitor_builder_arena(table->builder), (size_t)width,
                                         sizeof *table->columns);
    }
    table->wide = table->lasts = false;
    for (int i = 0; i < width; i++) {
        char *text = table->fields_of_line[i];
        struct lab_monitor_column *column = &table->columns[i];
        *column = header == BY_NAME   ? column_named(table, text)
                  : header == BY_UNIT ? column_of_unit(table, text)
                                      : column_of_value(table, text, i);
        int what = column->field.what;
        table->has[what] = 1;
        table->wide |= column->kind >= 0;
        table->lasts |= column->kind >= 0 && !column->spare;
        any |= what < LAB_METRIC_COUNT || what == LAB_MONITOR_PID || column->pid;
    }
    table->width = width;
    table->by_units = header != BY_NAME;
    return any;
}

/* --- the header --- */

static void list_names(const struct table *table, int width, struct lab_str *names) {
    lab_str_clear(names);
    for (int i = 0; i < width && i < 6; i++)
        lab_str_printf(names, "%s%.40s", i ? ", " : "", table->fields_of_line[i]);
    if (width > 6)
        lab_str_add(names, ", …");
}

/* "# gpu   pwr", "#Date, Time, gpu": names, or in the next line their units. */
static bool read_smi_header(struct table *table, const char *line, size_t length,
                            struct lab_str *names) {
    int known = table->fields == lab_monitor_smi_query ? 0 : table->width;
    table->blanks = !memchr(line, ',', length);
    table->width = 0;
    int width = split(table, line + 1, length - 1);
    if (names && !names->length)
        list_names(table, width, names);
    bool units = false, pids = false;
    for (int i = 0; i < width; i++) {
        units |= lab_str_equal(table->fields_of_line[i], "Idx");
        pids |= lab_str_equal(table->fields_of_line[i], "pid");
    }
    if (units && known == width) {
        table->width = width;
        return true; /* of the names that came before */
    }
    table->fields = pids ? lab_monitor_smi_pmon : lab_monitor_smi_dmon;
    return width > 0 && name_columns(table, width, units ? BY_UNIT : BY_NAME);
}

/* Our tables and PCIe rates have a time; nvidia-smi's may have none. */
static bool is_complete(const struct table *table) {
    bool smi = false;
    for (int i = 0; i < table->width; i++)
        smi |= table->columns[i].field.key && strchr(table->columns[i].field.key, '.');
    return smi || table->has[LAB_MONITOR_TIMESTAMP];
}

/* Two columns of one unit (used, free and total memory, say) could be in any order. */
static bool is_ambiguous(const struct table *table) {
    for (int i = 0; i < table->width; i++)
        for (int k = 0; k < i; k++)
            if (table->columns[i].field.suffix &&
                lab_str_equal(table->columns[i].field.suffix, table->columns[k].field.suffix))
                return true;
    return false;
}

/* The first line; `ret_data` = it is one of values, too. */
static bool read_header(struct table *table, const char *line, size_t length, struct lab_str *names,
                        bool *ret_data) {
    *ret_data = false;
    if (length > 1 && *line == '#')
        return read_smi_header(table, line, length, names);
    table->fields = lab_monitor_smi_query;
    table->blanks = false;
    int width = split(table, line, length);
    if (width <= 0)
        return false;
    list_names(table, width, names);
    if (name_columns(table, width, BY_NAME) && is_complete(table))
        return true;
    split(table, line, length);
    *ret_data = true;
    return name_columns(table, width, BY_VALUE) && !is_ambiguous(table);
}

static void tell_of_columns(const struct table *table) {
    LAB_AUTO(str, text);
    LAB_AUTO(str, names);
    size_t unknown = 0;
    for (int i = 0; i < table->width; i++) {
        const struct lab_monitor_field *field = &table->columns[i].field;
        if (field->what == LAB_MONITOR_UNKNOWN && unknown++ < NAMES_MAX && !table->by_units)
            lab_str_printf(&names, "%s%.64s", names.length ? ", " : ": ", table->fields_of_line[i]);
        if (table->by_units && field->what < LAB_METRIC_COUNT)
            lab_str_printf(&text, "%s%s", text.length ? ", " : "", field->key);
    }
    if (table->by_units)
        lab_monitor_builder_note(
            table->builder,
            lab_arena_printf(lab_monitor_builder_arena(table->builder),
                             "no line names the columns: by their units they are taken for %s",
                             text.text));
    if (names.length)
        lab_str_make_printable(names.text);
    if (unknown)
        lab_monitor_builder_odd(table->builder,
                                lab_arena_printf(lab_monitor_builder_arena(table->builder),
                                                 "unknown columns%s%s",
                                                 names.text ? names.text : "",
                                                 names.length && unknown > NAMES_MAX ? ", …" : ""),
                                unknown);
}

static bool has_device(const struct table *table) {
    return table->has[LAB_MONITOR_INDEX] || table->has[LAB_MONITOR_ID] ||
           table->has[LAB_MONITOR_PCI];
}

static void tell_of_times(const struct table *table) {
    if (!table->has[LAB_MONITOR_TIMESTAMP] && !table->has[LAB_MONITOR_CLOCK])
        lab_monitor_builder_note(table->builder, "it has no times: 1 s between samples is assumed");
    if (!table->wide && !has_device(table))
        lab_monitor_builder_note(table->builder, "no column names the GPU: lines of one sample are "
                                                 "taken as GPU 0, 1 and so on");
}

/* --- samples --- */

/* A sample ends where a line would be in it twice. */
static void next_sample(struct table *table, const struct lab_monitor_row *row) {
    bool twice = table->key_count >= KEYS_MAX;
    const char *names[] = {row->id, row->pci, row->name};
    struct key key = {row->index, row->pid, LAB_HASH_START};
    for (int i = 0; i < 3; i++)
        key.name = names[i] ? lab_hash_text(key.name, names[i]) : key.name;
    for (int i = 0; i < table->key_count && !twice; i++)
        twice = table->keys[i].index == key.index && table->keys[i].pid == key.pid &&
                table->keys[i].name == key.name;
    if (twice)
        table->key_count = 0;
    table->sample += twice;
    table->keys[table->key_count++] = key;
}

/* "19:04:32" of any day: the next one, where it goes back by half a day or more. */
static bool time_of_day(struct table *table, const char *text, int64_t *ret_ns) {
    unsigned part[3];
    if (sscanf(text, "%2u:%2u:%2u", &part[0], &part[1], &part[2]) != 3 || part[0] > 23)
        return false;
    int64_t clock_ns = ((part[0] * 60 + part[1]) * 60 + part[2]) * LAB_NS_PER_S;
    if (clock_ns < table->last_clock_ns - DAY_NS / 2)
        table->day_ns += DAY_NS;
    table->last_clock_ns = clock_ns;
    *ret_ns = table->day_ns + clock_ns;
    return true;
}

static void find_time(struct table *table, struct lab_monitor_row *row) {
    char text[32];
    if (table->has[LAB_MONITOR_TIMESTAMP])
        return;
    row->time = LAB_MONITOR_TIME_NONE;
    if (row->clock && row->date && strlen(row->date) == 8) {
        snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.8s", row->date, row->date + 4, row->date + 6,
                 row->clock);
        row->time = lab_monitor_parse_time(text, &row->time_ns);
    } else if (row->clock && !row->date) {
        if (time_of_day(table, row->clock, &row->time_ns))
            row->time = LAB_MONITOR_TIME_RELATIVE;
    } else if (!row->clock && !row->date) {
        next_sample(table, row);
        row->time = LAB_MONITOR_TIME_RELATIVE;
        row->time_ns = table->sample * LAB_NS_PER_S;
    }
}

/*
 * Lines of one sample come milliseconds after each other, samples at their interval: where the
 * pauses between lines are of two kinds, the long ones are between samples. Where they are alike,
 * there is one GPU, or one sample of all.
 */
static int64_t find_pause(struct table *table, struct lab_monitor_scan *scan) {
    int64_t last_ns = 0, time_ns, least = INT64_MAX, most = 0;
    size_t there = lab_monitor_scan_fill(scan, PEEK_BYTES);
    const char *line = scan->bytes + scan->at, *end = line + there, *stop;
    for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
        int width = split(table, line, (size_t)(stop - line));
        struct lab_monitor_row row = lab_monitor_row_new(table->builder, LAB_ENTITY_GPU);
        for (int i = 0; width == table->width && i < width; i++)
            if (table->columns[i].field.what == LAB_MONITOR_TIMESTAMP) {
                struct lab_value cell = cell_of(table, i);
                row.time = lab_monitor_value_time(&cell, &time_ns);
            }
        if (row.time != LAB_MONITOR_TIME_WALL)
            continue;
        if (last_ns && time_ns >= last_ns) {
            least = time_ns - last_ns < least ? time_ns - last_ns : least;
            most = time_ns - last_ns > most ? time_ns - last_ns : most;
        }
        last_ns = time_ns;
    }
    if (most < 10 * LAB_NS_PER_MS)
        return 10 * LAB_NS_PER_MS;
    return most / 4 > least ? most / 2 : -1;
}

/* The device's number where no column has it: its place in the sample. */
static void find_place(struct table *table, struct lab_monitor_row *row) {
    if (row->index != LAB_MONITOR_NO_INDEX || row->id || row->pci)
        return;
    bool same = table->placed && row->time_ns - table->placed_ns < table->apart_ns &&
                row->time_ns >= table->placed_ns;
    table->place = same ? table->place + 1 : 0;
    table->several |= same;
    table->placed = true;
    table->placed_ns = row->time_ns;
    row->index = table->place;
}

/* --- lines --- */

/* "12.5;;3": the instances' values, one at each place. */
static void set_list(const struct lab_monitor_row *row, const struct lab_monitor_field *field,
                     char *text) {
    for (int instance = 0; instance <= INT16_MAX; instance++) {
        char *next = strchr(text, ';');
        if (next)
            *next = '\0';
        struct lab_value cell = {.type = LAB_VALUE_STRING, .string = text};
        lab_monitor_row_set(row, field, instance, &cell);
        if (!next)
            return;
        text = next + 1;
    }
}

static void set(const struct table *table, const struct lab_monitor_row *row, int column) {
    const struct lab_monitor_field *field = &table->columns[column].field;
    struct lab_value cell = cell_of(table, column);
    if (row->pid)
        lab_monitor_row_process(row, field, &cell);
    else if (field->what < LAB_METRIC_COUNT && *cell.string &&
             strstr(lab_metric((enum lab_metric_id)field->what)->title, "[n]"))
        set_list(row, field, table->fields_of_line[column]);
    else
        lab_monitor_row_set(row, field, -1, &cell);
}

/* A device's tick, if the sample with that stamp has none of it yet. */
static int begin_once(struct table *table, struct lab_monitor_row *row, int64_t stamp) {
    int entity = lab_monitor_builder_find(table->builder, (enum lab_entity_kind)row->kind,
                                          row->index, row->id);
    if (entity < 0 || table->begun[entity].stamp != stamp) {
        if (lab_monitor_row_begin(row) < 0)
            return -1;
        table->begun[row->entity].stamp = stamp;
        table->begun[row->entity].processes = 0;
        return 0;
    }
    row->entity = entity;
    row->gpu = row->kind == LAB_ENTITY_GPU ? entity : -1;
    row->at_ns = lab_monitor_builder_time(table->builder, entity);
    return 0;
}

/* One of pmon's; "-" = the GPU has none. The GPU's tick counts them. */
static int read_process(struct table *table, struct lab_monitor_row *row) {
    if (begin_once(table, row, row->time_ns + 1) < 0)
        return -1;
    int *count = &table->begun[row->entity].processes;
    *count += row->pid > 0;
    lab_monitor_builder_set(table->builder, row->entity, LAB_METRIC_PROCESSES, -1, *count);
    lab_monitor_builder_list(table->builder, row->at_ns);
    for (int i = 0; row->pid && i < table->width; i++)
        set(table, row, i);
    return 0;
}

/* Those of all devices. */
static int read_wide(struct table *table, const struct lab_monitor_row *line) {
    struct lab_monitor_row row = *line;
    table->sample++;
    for (int i = 0; i < table->width; i++) {
        const struct lab_monitor_column *column = &table->columns[i];
        if (column->kind < 0 || (column->spare && table->lasts) || !*table->fields_of_line[i])
            continue;
        row.kind = column->kind;
        row.index = column->index;
        row.pid = column->pid;
        if (begin_once(table, &row, table->sample) < 0)
            return -1;
        set(table, &row, i);
    }
    return 0;
}

/* nvidia-smi's columns of one reason each: "Active", "Not Active". */
static void set_reasons(const struct table *table, const struct lab_monitor_row *row) {
    int64_t bits = 0;
    bool known = false;
    for (int i = 0; i < table->width; i++) {
        const char *text = table->fields_of_line[i];
        bool active = lab_str_equal(text, "Active");
        if (table->columns[i].field.what != LAB_MONITOR_REASON)
            continue;
        known |= active || lab_str_equal(text, "Not Active");
        bits |= active ? (int64_t)table->columns[i].field.unit : 0;
    }
    if (known)
        lab_monitor_builder_set(table->builder, row->entity, LAB_METRIC_CLOCK_REASONS, -1, bits);
}

static int read_device(struct table *table, struct lab_monitor_row *row) {
    find_place(table, row);
    if (lab_monitor_row_begin(row) < 0)
        return -1;
    for (int i = 0; i < table->width; i++)
        set(table, row, i);
    if (table->has[LAB_MONITOR_REASON] && !table->has[LAB_METRIC_CLOCK_REASONS])
        set_reasons(table, row);
    return 0;
}

/* A log that was gone on with has its names again. */
static bool is_header(struct table *table, const char *line, size_t length) {
    bool data;
    LAB_AUTO(str, names);
    return (*line == '#' ||
            (*table->first && strncmp(line, table->first, strlen(table->first)) == 0)) &&
           read_header(table, line, length, &names, &data);
}

static void read_line(struct table *table, const char *line, size_t length) {
    if (length == 0 || is_header(table, line, length))
        return;
    if (split(table, line, length) != table->width) {
        lab_monitor_builder_odd(table->builder, "lines with more or fewer fields than the first",
                                1);
        return;
    }
    struct lab_monitor_row row = lab_monitor_row_new(table->builder, LAB_ENTITY_GPU);
    for (int i = 0; i < table->width; i++) {
        struct lab_value cell = cell_of(table, i);
        if (table->columns[i].kind < 0)
            lab_monitor_row_know(&row, &table->columns[i].field, &cell);
    }
    find_time(table, &row);
    int result = table->wide                   ? read_wide(table, &row)
                 : table->has[LAB_MONITOR_PID] ? read_process(table, &row)
                                               : read_device(table, &row);
    if (result < 0)
        lab_monitor_builder_odd(table->builder, "lines without a valid time or device", 1);
}

/* Reads the header; `ret_line` = the first line, where it holds values. */
static bool find_header(struct table *table, struct lab_monitor_scan *scan, struct lab_str *names,
                        const char **ret_line, size_t *ret_length) {
    bool data;
    if (!lab_monitor_scan_line(scan, ret_line, ret_length) || *ret_length >= HEADER_BYTES ||
        !read_header(table, *ret_line, *ret_length, names, &data))
        return false;
    if (!data) {
        snprintf(table->first, sizeof table->first, "%.*s", (int)strcspn(*ret_line, ",\n"),
                 *ret_line);
        *ret_length = 0;
    }
    return true;
}

bool lab_monitor_is_table(struct lab_monitor_scan *scan, struct lab_str *names) {
    const char *line;
    size_t length;
    LAB_AUTO(arena, arena);
    LAB_AUTO_FREE struct table *table = lab_mem_alloc(1, sizeof *table);
    table->builder = lab_monitor_builder_new(&arena);
    return find_header(table, scan, names, &line, &length);
}

bool lab_monitor_read_table(struct lab_monitor_builder *builder, struct lab_monitor_scan *scan,
                            struct lab_str *names, size_t *ret_lines, bool *ret_mixed) {
    const char *line;
    size_t length;
    LAB_AUTO_FREE struct table *table = lab_mem_alloc(1, sizeof *table);
    table->builder = builder;
    if (!find_header(table, scan, names, &line, &length))
        return false;
    LAB_AUTO(str, first);
    lab_str_add_bytes(&first, line, length);
    tell_of_columns(table);
    if (!table->wide && !has_device(table))
        table->apart_ns = find_pause(table, scan);
    read_line(table, first.text, first.length);
    *ret_lines = first.length > 0;
    for (; lab_monitor_scan_line(scan, &line, &length); ++*ret_lines)
        read_line(table, line, length);
    tell_of_times(table);
    *ret_mixed = *ret_lines > 1 && !table->several && !table->wide && !has_device(table) &&
                 !table->has[LAB_MONITOR_TIMESTAMP] && !table->has[LAB_MONITOR_CLOCK];
    return true;
}
