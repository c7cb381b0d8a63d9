/*
 * command/error.c: which line of a program's output says what it died of. The last one does of a
 * program by itself. A launcher of several prints a summary of its own after it, and ranks that
 * waited for the one that failed print errors of their own.
 */
#include "workload/command/command.h"

#include <ctype.h>
#include <string.h>

#define NAME_MOST 120         /* bytes of an exception's name */
#define USAGE     ": error: " /* "train.py: error: unrecognized arguments" */

/* Of "torch.cuda.OutOfMemoryError: CUDA out of memory": the length up to the colon or the end; 0 =
 * no such name. */
static size_t name_length(const char *line, size_t length) {
    size_t end = 0;
    while (end < length && (isalnum((unsigned char)line[end]) || strchr("._", line[end])))
        end++;
    return end > 0 && end <= NAME_MOST && (end == length || line[end] == ':') ? end : 0;
}

#define TRACEBACK  "Traceback (most recent call last)"
#define ROOT_CAUSE "Root Cause (first observed failure)" /* of torchrun's summary */
#define GOES_ON    8 /* lines with values after a traceback: it was caught */

static bool ends_with(const char *name, size_t length, const char *ending) {
    size_t most = strlen(ending);
    return length >= most && memcmp(name + length - most, ending, most) == 0;
}

/* Of launchers: that some process failed, not why. */
static bool is_summary(const char *line, size_t length) {
    static const char *const summaries[] = {"ChildFailedError", "CalledProcessError",
                                            "SignalException"};
    size_t name = name_length(line, length);
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++)
        if (ends_with(line, name, summaries[i]))
            return true;
    return false;
}

/* Without the label of a rank and blanks around it. Returns how many blanks were before it. */
static size_t trim(const char **line, size_t *length, int *ret_rank) {
    size_t label = command_rank_label(*line, *length, ret_rank), blanks = 0;
    *line += label;
    *length -= label;
    while (blanks < *length && isspace((unsigned char)(*line)[blanks]))
        blanks++;
    *line += blanks;
    *length -= blanks;
    while (*length && isspace((unsigned char)(*line)[*length - 1]))
        --*length;
    return blanks;
}

static bool begins_with(const char *line, size_t length, const char *text) {
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* Lines have few colons: most end after a look for one. */
static bool refuses_arguments(const char *line, size_t length) {
    const char *end = line + length;
    for (const char *at = line; (at = memchr(at, ':', (size_t)(end - at))); at++)
        if (begins_with(at, (size_t)(end - at), USAGE))
            return true;
    return false;
}

static bool says_error(const char *line, size_t length) {
    size_t name = name_length(line, length);
    return !is_summary(line, length) &&
           (ends_with(line, name, "Error") || ends_with(line, name, "Exception") ||
            refuses_arguments(line, length));
}

bool command_is_error(const char *line, size_t length) {
    int rank;
    trim(&line, &length, &rank);
    return says_error(line, length);
}

/* "rank      : 1 (local_rank: 1)" */
static void read_summary(struct command_errors *errors, const char *line, size_t length) {
    double rank;
    const char *colon = begins_with(line, length, "rank ") ? memchr(line, ':', length) : NULL;
    size_t start = colon ? (size_t)(colon - line) + 2 : length;
    if (start < length && command_number(line, length, start, COMMAND_UNGROUPED, &rank) > start &&
        rank >= 0 && rank < COMMAND_RANKS_MAX) {
        errors->root = (int)rank + 1;
        errors->summary = false;
    }
}

static struct command_error *find_error(struct command_errors *errors, int rank) {
    for (int i = 0; i < errors->count; i++)
        if (errors->items[i].rank == rank)
            return &errors->items[i];
    return NULL;
}

/* Of more ranks than are kept, the last has the place of the one before. */
static struct command_error *add_error(struct command_errors *errors, int rank) {
    errors->count -= errors->count == COMMAND_ERRORS_MAX;
    errors->items[errors->count] = (struct command_error){.rank = rank};
    return &errors->items[errors->count++];
}

static void remove_error(struct command_errors *errors, struct command_error *error) {
    size_t after = (size_t)(errors->items + errors->count - error) - 1;
    memmove(error, error + 1, after * sizeof *error);
    errors->count--;
}

static void take_line(struct command_errors *errors, const char *line, size_t length) {
    int rank;
    size_t blanks = trim(&line, &length, &rank);
    if (errors->summary)
        read_summary(errors, line, length);
    if (length == 0)
        return;
    if (begins_with(line, length, ROOT_CAUSE)) {
        errors->summary = errors->root == 0;
        return;
    }
    bool opens = begins_with(line, length, TRACEBACK), says = says_error(line, length);
    struct command_error *error = find_error(errors, rank);
    bool open = error && !*error->text;
    if (opens && !error) {
        error = add_error(errors, rank);
        error->traceback = true;
    } else if (open && blanks < 2 && is_summary(line, length)) {
        remove_error(errors, error);
    } else if ((open && blanks < 2 && !opens) || (!error && says)) {
        command_keep_line((error ? error : add_error(errors, rank))->text, line, length);
    }
}

/* Whether a second line that ran into this one could matter: most need no look for it. */
static bool may_matter(const struct command_errors *errors, const char *line, size_t length) {
    static const char *const words[] = {"rror", "xception", "Traceback"};
    for (int i = 0; i < errors->count; i++)
        if (!*errors->items[i].text)
            return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(line, length, words[i], strlen(words[i])))
            return true;
    return errors->summary;
}

void command_errors_line(struct command_errors *errors, const char *line, size_t length) {
    size_t next;
    while (length > 1 && memchr(line + 1, '[', length - 1) && may_matter(errors, line, length) &&
           (next = command_line_two(line, length, 0))) {
        take_line(errors, line, next);
        line += next;
        length -= next;
    }
    take_line(errors, line, length);
}

void command_errors_go_on(struct command_errors *errors, int rank) {
    for (int i = errors->count - 1; i >= 0; i--) {
        struct command_error *error = &errors->items[i];
        if (error->rank == rank && ++error->lines_after >= (error->traceback ? GOES_ON : 1))
            remove_error(errors, error);
    }
}

char *command_errors_first(struct command_errors *errors, int *ret_rank) {
    struct command_error *first = NULL;
    for (int i = errors->count - 1; i >= 0; i--)
        if (*errors->items[i].text)
            first = &errors->items[i];
    struct command_error *root = errors->root > 0 ? find_error(errors, errors->root - 1) : NULL;
    first = root && *root->text ? root : first;
    *ret_rank = first && first->rank >= 0 ? first->rank : errors->root - 1;
    return first ? first->text : NULL;
}

void command_keep_line(char last[COMMAND_LAST_MAX + 1], const char *text, size_t length) {
    while (length && isspace((unsigned char)*text))
        text++, length--;
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0)
        return;
    length = length < COMMAND_LAST_MAX ? length : COMMAND_LAST_MAX;
    memcpy(last, text, length);
    last[length] = '\0';
}
