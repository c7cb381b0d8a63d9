/*
 * report_studies.c: the report of several studies: point by point and pooled, as `gpulab compare`
 * matches them.
 */
#include "report/report_internal.h"

#include "analysis/comparison/comparison_result.h"
#include "base/str.h"
#include "load/point_sets.h"
#include "load/recordings.h"
#include "version.h"

#include <string.h>
#include <sys/stat.h>

/* --- names --- */

/* Folders of the date and the time: "2026-11-15", "12-00-01". */
static bool is_moment(const char *part, size_t length) {
    return length > 0 && strspn(part, "0123456789-") >= length && memchr(part, '-', length);
}

static size_t part_length(const char *path) {
    return strcspn(path, "/");
}

/* Where paths of one kind begin to differ, as a name: "before" of "before/numa_study/2026-11-15";
 * of dates and times, both. */
static const char *distinct_part(const struct lab_point_set *sets, int count, int own,
                                 struct lab_arena *arena) {
    const char *path = sets[own].source, *moment = NULL;
    size_t at = 0;
    for (bool shared = true; path[at]; at += path[at] == '/') {
        size_t length = part_length(path + at);
        for (int i = 0; i < count; i++)
            shared &= strncmp(sets[i].source, path, at + length) == 0 &&
                      (sets[i].source[at + length] == '/' || sets[i].source[at + length] == '\0');
        if (is_moment(path + at, length) && !moment)
            moment = path + at;
        if (!shared && !moment)
            return lab_arena_strndup(arena, path + at, length);
        at += length;
    }
    return moment ? lab_arena_printf(arena, "%s %s", sets[own].name, moment) : path;
}

/* Labels that were given; else the studies' names; else what their paths differ by. */
static void name_sets(struct lab_point_set *sets, const char *const *labels, int count,
                      struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        names[i] = sets[i].name;
        for (int k = 0; k < count; k++)
            if (k != i && lab_str_equal(sets[i].name, sets[k].name))
                names[i] = distinct_part(sets, count, i, arena);
        if (labels[i])
            names[i] = labels[i];
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (lab_str_equal(names[i], names[k]))
                names[i] = lab_arena_printf(arena, "%s (%d)", names[i], i + 1);
    for (int i = 0; i < count; i++)
        sets[i].name = names[i];
}

/* --- sets --- */

bool lab_report_are_studies(const char *const *words, int count, struct lab_arena *arena) {
    for (int i = 0; i < count; i++) {
        const char *path, *const *folders;
        struct stat info;
        int found;
        lab_recordings_split(words[i], arena, &path);
        if ((stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) ||
            lab_studies_find(&path, 1, arena, &folders, &found, NULL) < 0)
            return false;
    }
    return count > 1;
}

static int read_sets(const char *const *words, int count, struct lab_arena *arena,
                     struct lab_point_set **ret_sets, struct lab_err *err) {
    struct lab_point_set *sets = lab_arena_alloc(arena, (size_t)count + 1, sizeof *sets);
    const char **labels = lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    for (int i = 0; i < count; i++) {
        struct lab_point_set *own;
        const char *path;
        int own_count;
        labels[i] = lab_recordings_split(words[i], arena, &path);
        if (lab_point_sets_read(path, arena, &own, &own_count, err) < 0)
            return -1;
        sets[i] = *own;
    }
    name_sets(sets, labels, count, arena);
    *ret_sets = sets;
    return 0;
}

/* --- the whole --- */

static const char *question_of(const struct lab_point_set *sets, int count,
                               struct lab_arena *arena) {
    return count == 2
               ? lab_arena_printf(arena, "Is %s faster or slower than %s?", sets[1].name,
                                  sets[0].name)
               : lab_arena_printf(arena, "Which are faster or slower than %s?", sets[0].name);
}

int lab_report_build_studies(const char *const *words, int count,
                             const struct lab_report_request *request, struct lab_arena *arena,
                             struct lab_report_made *ret_made, struct lab_err *err) {
    struct report_found *found = lab_arena_alloc(arena, 1, sizeof *found);
    struct lab_analysis_result *result = lab_arena_alloc(arena, 1, sizeof *result);
    struct lab_comparison *comparisons;
    struct lab_point_set *sets;
    LAB_AUTO(str, title);
    LAB_AUTO(str, source);
    found->arena = arena;
    if (read_sets(words, count, arena, &sets, err) < 0 ||
        lab_comparisons_make(sets, count, arena, &comparisons, err) < 0)
        return -1;
    *result = lab_comparison_result(comparisons, count - 1, arena);
    found->items[found->count++] =
        (struct lab_page_analysis){.name = "compare",
                                   .summary = "what differs between studies, point by point",
                                   .result = result,
                                   .named = true};
    for (int i = 0; i < count; i++) {
        lab_str_printf(&title, "%s%s", i == 0 ? "" : i == count - 1 ? " and " : ", ", sets[i].name);
        lab_str_printf(&source, "%s%s", i ? " " : "", words[i]);
    }
    *ret_made = (struct lab_report_made){.page = {.title = lab_arena_strdup(arena, title.text),
                                                  .question = question_of(sets, count, arena),
                                                  .source = lab_arena_strdup(arena, source.text),
                                                  .version = LAB_VERSION,
                                                  .simulated = result->simulated,
                                                  .analyses = found->items,
                                                  .analysis_count = found->count}};
    return request->folder ? report_write(found, request, ret_made, err) : 0;
}
