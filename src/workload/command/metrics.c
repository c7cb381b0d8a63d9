/*
 * command/metrics.c: what a program prints, as values. A line that is an object has their names;
 * else the user's patterns say what is in it, or the ways in which trainings print.
 */
#include "model/metric_name.h"
#include "workload/command/form.h"
#include "workload/command/line.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define PATTERNS_MAX 64 /* bits of command_reading.matched */

struct command_reader {
    bool json, printed;
    struct command_pattern **patterns;
    int pattern_count;
};

/* --- settings --- */

static int read_patterns(const struct lab_value *list, struct lab_arena *arena,
                         struct command_reader *reader, struct lab_err *err) {
    bool one = list->type == LAB_VALUE_STRING;
    struct lab_value *const *items = one ? (struct lab_value *const *)&list : list->items;
    int count = one ? 1 : list->count;
    if (!one && list->type != LAB_VALUE_LIST)
        return lab_value_err(list, err, "metrics.patterns: must be a list of texts, not %s",
                             lab_value_type_name(list->type));
    if (count > PATTERNS_MAX)
        return lab_value_err(list, err, "metrics.patterns: at most %d", PATTERNS_MAX);
    reader->patterns = lab_arena_alloc(arena, (size_t)count + 1, sizeof *reader->patterns);
    for (int i = 0; i < count; i++) {
        struct lab_err why = LAB_ERR_INIT;
        if (items[i]->type != LAB_VALUE_STRING)
            return lab_value_err(items[i], err,
                                 "metrics.patterns: a pattern is text, such as \"Iter {iter} loss "
                                 "{loss}\", in quotes; not %s",
                                 lab_value_type_name(items[i]->type));
        if (command_pattern_read(items[i]->string, arena, &reader->patterns[i], &why) < 0)
            return lab_value_err(items[i], err, "metrics.patterns: '%.80s': %s", items[i]->string,
                                 why.text);
        reader->pattern_count++;
    }
    return 0;
}

static int check_direction(const struct lab_value *map, struct lab_err *err) {
    if (map->type != LAB_VALUE_MAP)
        return lab_value_err(map, err,
                             "metrics.direction: must be a map such as {score_x: lower}, not %s",
                             lab_value_type_name(map->type));
    for (int i = 0; i < map->count; i++) {
        const struct lab_value *word = map->items[i];
        if (word->type != LAB_VALUE_STRING || lab_direction_find(word->string) < 0)
            return lab_value_err(
                word, err, "metrics.direction.%.80s: must be higher, lower or none", map->keys[i]);
    }
    return 0;
}

int command_reader_make(const struct lab_value *metrics, struct lab_arena *arena,
                        struct command_reader **ret_reader, struct lab_err *err) {
    static const char *const keys[] = {"direction", "json", "patterns", "printed", NULL};
    struct command_reader *reader = lab_arena_alloc(arena, 1, sizeof *reader);
    reader->json = reader->printed = true;
    if (metrics && metrics->type != LAB_VALUE_MAP)
        return lab_value_err(metrics, err,
                             "metrics: must be a map such as {json: true, patterns: [\"Iter {iter} "
                             "loss {loss}\"]}, not %s",
                             lab_value_type_name(metrics->type));
    for (int i = 0; metrics && i < metrics->count; i++) {
        const char *key = metrics->keys[i];
        const struct lab_value *value = metrics->items[i];
        if (value->type == LAB_VALUE_NULL)
            continue;
        if (strcmp(key, "patterns") == 0) {
            if (read_patterns(value, arena, reader, err) < 0)
                return -1;
        } else if (strcmp(key, "direction") == 0) {
            if (check_direction(value, err) < 0)
                return -1;
        } else if (strcmp(key, "json") == 0 || strcmp(key, "printed") == 0) {
            if (value->type != LAB_VALUE_BOOL)
                return lab_value_err(value, err, "metrics.%s: must be true or false", key);
            *(*key == 'j' ? &reader->json : &reader->printed) = value->boolean;
        } else {
            const char *nearest = lab_str_nearest(key, keys);
            return lab_value_err(value, err, "unknown key 'metrics.%.80s'; %s%s%s", key,
                                 nearest ? "did you mean '"
                                         : "there are direction, json, patterns and printed",
                                 nearest ? nearest : "", nearest ? "'?" : "");
        }
    }
    *ret_reader = reader;
    return 0;
}

bool command_reader_is_on(const struct command_reader *reader) {
    return reader->json || reader->printed || reader->pattern_count > 0;
}

/* --- a line --- */

struct command_progress *command_reading_of(struct command_reading *reading, int rank) {
    reading->rank = rank >= 0 ? rank : reading->rank;
    int needed = reading->rank + 2;
    if (needed > reading->rank_count) {
        reading->ranks = lab_mem_resize(reading->ranks, (size_t)needed, sizeof *reading->ranks);
        memset(reading->ranks + reading->rank_count, 0,
               (size_t)(needed - reading->rank_count) * sizeof *reading->ranks);
        reading->rank_count = needed;
    }
    return &reading->ranks[reading->rank + 1];
}

void command_reading_release(struct command_reading *reading) {
    lab_mem_free(reading->ranks);
    command_forms_release(reading->forms);
    lab_mem_free(reading->table);
    lab_mem_free(reading->cells);
    command_names_release(reading->names);
    lab_mem_free(reading->draft);
    *reading = (struct command_reading){0};
}

double command_progress_step(const struct command_progress *progress, bool *ret_by_epoch) {
    double first = progress->first_epoch >= 1 ? 1 : 0;
    *ret_by_epoch =
        !progress->has_step && (progress->has_part || progress->has_epoch || progress->has_given);
    return progress->has_step ? progress->step
           : progress->has_part
               ? (progress->has_epoch ? progress->epoch - first : progress->wraps) + progress->part
           : progress->has_epoch ? progress->epoch
           : progress->has_given ? progress->given
           : progress->has_bar   ? progress->bar
                                 : (double)NAN;
}

/* A pattern's numbers; one that counts steps, else epochs, is the others' step. */
static void take_pattern(const struct command_pattern *pattern, const double *values,
                         struct command_reading *reading, command_found *found, void *state) {
    struct command_progress *progress = command_reading_of(reading, -1);
    int count = command_pattern_count(pattern);
    bool by_epoch;
    double epoch = NAN;
    for (int i = 0; i < count; i++)
        if (command_is_step(command_pattern_name(pattern, i))) {
            progress->has_step = true;
            progress->step = values[i];
        } else if (command_is_epoch(command_pattern_name(pattern, i))) {
            epoch = values[i];
        }
    double step = command_progress_step(progress, &by_epoch);
    by_epoch |= !progress->has_step && !isnan(epoch);
    for (int i = 0; i < count; i++) {
        struct command_value value = {
            command_names_spell(&reading->names, command_pattern_name(pattern, i)),
            "",
            values[i],
            progress->has_step || isnan(epoch) ? step : epoch,
            reading->rank,
            by_epoch};
        if (!command_is_step(value.name))
            found(state, &value);
    }
}

/* {…}, OrderedDict([…]) */
static bool may_be_object(const char *line, size_t length) {
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    return length > 0 && (line[length - 1] == '}' ||
                          (line[length - 1] == ')' && memmem(line, length, "OrderedDict(", 12)));
}

/* "20%|██   | 10/50 [00:10<00:40]{'loss': 0.12}": a bar that no newline ended; what loggers put
 * before it; its bytes. */
static size_t bar_before_object(const char *line, size_t length) {
    static const char *const loggers[] = {":::MLLOG ", "DLLL "};
    static const char stats[] = "json_stats: "; /* PySlowFast's, behind a date */
    for (size_t i = 0; i < sizeof loggers / sizeof *loggers; i++)
        if (length > strlen(loggers[i]) && memcmp(line, loggers[i], strlen(loggers[i])) == 0)
            return strlen(loggers[i]);
    const char *at = *line == '{' ? NULL : memmem(line, length, stats, sizeof stats - 1);
    if (at)
        return (size_t)(at - line) + sizeof stats - 1;
    const char *bracket = *line == '{' ? NULL : memmem(line, length, "]{", 2);
    return bracket ? (size_t)(bracket + 1 - line) : 0;
}

struct line { /* that is being read */
    const char *text;
    size_t length;
    bool object, printed, table; /* what it may be */
    bool bare;                   /* it has no label */
};

static void drop_forms(struct command_reading *reading) {
    command_forms_release(reading->forms);
    reading->forms = NULL;
}

static void settle(struct command_reading *reading) {
    reading->full += reading->draft->full;
    if (command_names_settle(&reading->names, reading->draft))
        drop_forms(reading);
}

static void keep_form(struct command_reading *reading, const struct line *line) {
    command_forms_keep(&reading->forms, reading->draft,
                       line->bare && command_line_is_bare(line->text, line->length), line->text,
                       line->length);
}

/* One that was met before, or that of its table; NULL = there is none. */
static const struct command_form *find_form(struct command_reading *reading,
                                            const struct line *line) {
    struct command_draft *draft = reading->draft;
    bool row = line->table && command_table_may_be_row(reading->table, line->text, line->length);
    const struct command_form *form =
        line->object || line->printed || row
            ? command_forms_find(reading->forms, line->text, line->length, draft->numbers)
            : NULL;
    if (form || !row || !command_table_row(reading->table, draft, line->text, line->length))
        return form;
    settle(reading);
    keep_form(reading, line);
    return &draft->form;
}

/* The form that the line has, and its numbers; NULL = it says nothing. */
static const struct command_form *make_form(struct command_reading *reading,
                                            const struct line *line) {
    struct command_draft *draft = reading->draft;
    bool is_object = line->object && command_object_line(draft, line->text, line->length);
    if (!is_object && !line->printed)
        return NULL;
    if (!is_object && !command_coco_line(draft, line->text, line->length))
        command_printed_line(draft, line->text, line->length);
    settle(reading);
    bool head = line->printed && draft->form.count == 0 &&
                command_table_head(&reading->table, line->text, line->length);
    /* an object that isn't whole may be so with other numbers; a head begins its table anew */
    if (head)
        drop_forms(reading);
    else if (is_object == line->object)
        keep_form(reading, line);
    return &draft->form;
}

/* Most lines are like one before, and have no label, or one in brackets: what else they could be
 * needs no look then. */
static const struct command_form *find_next(const struct command_reader *reader,
                                            struct command_reading *reading, const char *text,
                                            size_t length) {
    int rank = -1;
    if (!reading->forms || reading->cells || reader->pattern_count > 0)
        return NULL;
    size_t label = *text == '[' ? command_rank_label(text, length, &rank) : 0;
    const struct command_form *form = command_forms_next(reading->forms, label == 0, text + label,
                                                         length - label, reading->draft->numbers);
    reading->rank = form ? rank : reading->rank;
    return form;
}

/* `ret_next`: where another line begins, and nothing was read yet; NULL = none does. */
static bool read_one(const struct command_reader *reader, struct command_reading *reading,
                     const char *text, size_t length, size_t *ret_next, command_found *found,
                     void *state) {
    const struct command_form *same = find_next(reader, reading, text, length);
    if (same)
        return command_form_apply(same, reading->draft->numbers, reading, found, state);
    struct line line = {text,
                        length,
                        reader->json && may_be_object(text, length),
                        reader->printed && command_line_is_candidate(text, length),
                        reader->printed && reading->table,
                        false};
    bool matched = false, cells = reading->cells;
    if (reader->printed && (*text == '|' || *text == '-' || cells) &&
        command_cells_line(reading, text, length, found, state))
        return true;
    if (!line.object && !line.printed && !line.table && reader->pattern_count == 0)
        return cells;
    if (!reading->draft) /* large: nothing of it is touched before it is used */
        reading->draft = lab_mem_alloc(1, sizeof *reading->draft);
    const double *numbers = reading->draft->numbers;
    size_t label = command_rank_label(text, length, &reading->rank);
    size_t srun = command_label_bytes(text, label);
    reading->label_bytes = srun ? srun : reading->label_bytes;
    label += line.object ? bar_before_object(text + label, length - label) : 0;
    line.text += label;
    line.length -= label;
    line.bare = label == 0;
    const struct command_form *form = find_form(reading, &line);
    if (!form && ret_next && (*ret_next = command_line_two(text, length, reading->label_bytes)))
        return cells;
    form = form ? form : make_form(reading, &line);
    for (int i = 0; i < reader->pattern_count && !(form && form->object); i++) {
        double values[COMMAND_NUMBERS_MAX];
        if (!command_pattern_match(reader->patterns[i], line.text, line.length, values))
            continue;
        if (form && !matched) /* the step that the line has */
            command_form_apply(form, numbers, reading, NULL, NULL);
        take_pattern(reader->patterns[i], values, reading, found, state);
        reading->matched |= UINT64_C(1) << i;
        matched = true;
    }
    return matched || (form && command_form_apply(form, numbers, reading, found, state)) || cells;
}

/* Of a line behind an evaluation's heading that has nothing but a step: "global_step = 343" counts,
 * one that goes back is the evaluation's own. */
static bool is_step_of_evaluation(struct command_reading *reading, command_found *found,
                                  void *state) {
    const struct command_draft *draft = reading->draft;
    const struct command_progress *progress = command_reading_of(reading, -1);
    const struct command_field *step = draft->fields;
    if (draft->form.count != 1 || !(step->kind & COMMAND_IS_STEP))
        return false;
    if (step->kind & COMMAND_IS_GLOBAL)
        command_form_apply(&draft->form, draft->numbers, reading, found, state);
    return step->kind & COMMAND_IS_GLOBAL ||
           (progress->has_step && draft->numbers[step->number] < progress->printed);
}

/* Values of the training, behind an evaluation's heading. */
static bool trains(const char *name) {
    return strncasecmp(name, "train", 5) == 0;
}

/* A line whose values are named by one before; whether it is such. Of the best it counts nothing;
 * others count nothing anyway. */
static bool read_announced(struct command_reading *reading, const char *names, const char *text,
                           size_t length, command_found *found, void *state) {
    bool best = strcmp(names, COMMAND_ANNOUNCED_BEST) == 0;
    if (!reading->draft)
        reading->draft = lab_mem_alloc(1, sizeof *reading->draft);
    struct command_draft *draft = reading->draft;
    size_t label = command_rank_label(text, length, &reading->rank);
    draft->means = command_line_is_average(text + label, length - label);
    command_printed_line(draft, text + label, length - label);
    draft->means = false;
    if (!best && is_step_of_evaluation(reading, found, state))
        return true;
    for (int i = 0; i < draft->form.count && !best; i++)
        if (!(draft->fields[i].kind & COMMAND_IS_VALUE) || draft->form.evaluation ||
            trains(draft->fields[i].name))
            return false;
    for (int i = 0; i < draft->form.count; i++) {
        struct command_field *field = &draft->fields[i];
        if (!(field->kind & COMMAND_IS_VALUE))
            field->kind = 0;
        else if (best || !lab_metric_name_is_evaluation(field->name))
            command_draft_rename(draft, field, names, "");
        field->kind |= field->kind ? COMMAND_IS_KNOWN : 0;
    }
    settle(reading);
    return command_form_apply(&draft->form, draft->numbers, reading, found, state);
}

/* The next of a list's objects; NULL = there is none. */
static const char *next_object(const char *at, const char *end, size_t *ret_length) {
    const char *start = memchr(at, '{', (size_t)(end - at));
    int depth = 0;
    char quote = '\0';
    for (at = start; at && at < end; at++) {
        if (quote) {
            at += *at == '\\';
            quote = at < end && *at == quote ? '\0' : quote;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '{') {
            depth++;
        } else if (*at == '}' && --depth == 0) {
            *ret_length = (size_t)(at + 1 - start);
            return start;
        }
    }
    return NULL;
}

/* [{"step": 1, …}, {"step": 2, …}]: each is an object of its own. */
static bool is_list(const char *line, size_t length) {
    size_t at = 1;
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    while (at < length && isspace((unsigned char)line[at]))
        at++;
    return length > 3 && *line == '[' && line[at] == '{' && line[length - 1] == ']';
}

/* {"level": "INFO", "message": "step 5 loss 2.5"}: the text of a log's line; NULL = it has none. */
static const char *find_message(const char *line, size_t length, size_t *ret_length) {
    static const char *const keys[] = {"message\":", "msg\":"};
    const char *end = line + length, *at = NULL;
    for (const char *m = line + 1; !at && (m = memchr(m, 'm', (size_t)(end - m))); m++)
        for (size_t i = 0; m[-1] == '"' && i < sizeof keys / sizeof *keys && !at; i++)
            if ((size_t)(end - m) > strlen(keys[i]) && memcmp(m, keys[i], strlen(keys[i])) == 0)
                at = m + strlen(keys[i]);
    while (at && at < end && *at == ' ')
        at++;
    if (!at || at == end || *at != '"')
        return NULL;
    const char *start = ++at;
    while (at < end && *at != '"')
        at += 1 + (*at == '\\');
    *ret_length = (size_t)(at - start);
    return at < end && command_line_is_candidate(start, *ret_length) ? start : NULL;
}

struct listener { /* who listens, and how many values it was given */
    command_found *found;
    void *state;
    int count;
};

static void pass_on(void *state, const struct command_value *value) {
    struct listener *listener = state;
    listener->count++;
    listener->found(listener->state, value);
}

/* Whether the object is a log's line with values in its text; its keys are the log's then. */
static bool read_message(const struct command_reader *reader, struct command_reading *reading,
                         const char *line, size_t length, command_found *found, void *state) {
    size_t bytes;
    struct listener listener = {found, state, 0};
    const char *text = reader->json && reader->printed ? find_message(line, length, &bytes) : NULL;
    if (text)
        read_one(reader, reading, text, bytes, NULL, pass_on, &listener);
    return listener.count > 0;
}

bool command_reader_line(const struct command_reader *reader, struct command_reading *reading,
                         const char *line, size_t length, command_found *found, void *state) {
    bool any = false, marked = length > 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0;
    line += marked ? 3 : 0; /* a mark of UTF-8 */
    length -= marked ? 3 : 0;
    if (reader->json && *line == '[' && is_list(line, length)) {
        const char *object = line, *end = line + length;
        for (size_t bytes = 0; (object = next_object(object + bytes, end, &bytes));)
            any |= read_one(reader, reading, object, bytes, NULL, found, state);
        return any;
    }
    if (*line == '{' && read_message(reader, reading, line, length, found, state))
        return true;
    const char *names = reading->announced                      ? reading->announced
                        : command_line_is_average(line, length) ? reading->head
                                                                : NULL;
    reading->announced = NULL;
    if (names && read_announced(reading, names, line, length, found, state)) {
        reading->announced = strcmp(names, COMMAND_ANNOUNCED_BEST) == 0 ? NULL : names;
        return true;
    }
    for (size_t next;; line += next, length -= next) {
        next = 0;
        any |= read_one(reader, reading, line, length, &next, found, state);
        if (next == 0) {
            reading->announced = reader->printed ? command_line_announces(line, length, any) : NULL;
            return any;
        }
        any |= read_one(reader, reading, line, next, NULL, found, state);
        reading->split++;
    }
}
