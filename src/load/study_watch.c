/* study_watch.c: the user's studies that run or were interrupted, read again and again. */
#include "load/study_watch.h"

#include "workload/workload.h"

static int watch_one(const char *word, struct lab_arena *arena, struct lab_study_watch *watch,
                     struct lab_err *err) {
    const char *path;
    if (lab_folder_resolve(word, arena, &path, err) < 0)
        return -1;
    watch->items = lab_arena_alloc(arena, 1, sizeof *watch->items);
    watch->items[watch->count++] =
        (struct lab_study_watch_item){.path = path, .running = lab_folder_held(path, NULL)};
    return 0;
}

static void watch_unfinished(int max, struct lab_arena *arena, struct lab_study_watch *watch) {
    const char *const *paths;
    lab_folder_known(arena, &paths, &watch->known);
    int room = max && max < watch->known ? max : watch->known;
    watch->items = lab_arena_alloc(arena, (size_t)room + 1, sizeof *watch->items);
    for (int i = 0; i < watch->known && !watch->more; i++) {
        LAB_AUTO(arena, scratch); /* a view of a study that has ended isn't wanted any longer */
        struct lab_study_view view;
        if (lab_study_view_look(paths[i], false, &scratch, &view, NULL) == 0 &&
            (view.report.running || view.counts[LAB_RUN_PLANNED] || view.counts[LAB_RUN_RUNNING])) {
            watch->more = watch->count == room;
            if (!watch->more)
                watch->items[watch->count++] =
                    (struct lab_study_watch_item){.path = paths[i], .running = view.report.running};
        }
    }
}

int lab_study_watch_open(const char *word, int max, struct lab_arena *arena,
                         struct lab_study_watch *ret_watch, struct lab_err *err) {
    struct lab_study_watch watch = {0};
    if (!word)
        watch_unfinished(max, arena, &watch);
    else if (watch_one(word, arena, &watch, err) < 0)
        return -1;
    *ret_watch = watch;
    return 0;
}

void lab_study_watch_close(struct lab_study_watch *watch) {
    for (int i = 0; i < watch->count; i++) {
        lab_programs_close(watch->items[i].programs);
        struct lab_history *history = watch->items[i].history;
        for (int k = i; history && k < watch->count; k++)
            if (watch->items[k].history == history)
                watch->items[k].history = NULL;
        lab_history_close(history);
    }
    *watch = (struct lab_study_watch){0};
}

bool lab_study_watch_any_running(const struct lab_study_watch *watch) {
    for (int i = 0; i < watch->count; i++)
        if (watch->items[i].running)
            return true;
    return false;
}

void lab_study_watch_keep_running(struct lab_study_watch *watch) {
    int kept = 0;
    for (int i = 0; i < watch->count; i++)
        if (watch->items[i].running)
            watch->items[kept++] = watch->items[i];
    watch->count = kept;
}

/* Another item's of the same machine, or a new one. */
static struct lab_history *find_history(const struct lab_study_watch *watch,
                                        const struct lab_study_file *file) {
    for (int i = 0; i < watch->count; i++)
        if (watch->items[i].history && watch->items[i].machine == file->study.machine_identity)
            return watch->items[i].history;
    return lab_study_view_history(file);
}

static void read_programs(struct lab_study_watch_item *item, struct lab_study_info *report) {
    if (!report->running || report->run_count == 0 ||
        !lab_workload_is_external(report->runs[0].workload))
        return;
    if (!item->programs)
        item->programs = lab_programs_open();
    report->program_count = lab_programs_read(item->programs, item->path, &report->programs);
}

int lab_study_watch_read(struct lab_study_watch *watch, int index, struct lab_arena *arena,
                         struct lab_study_view *ret_view, struct lab_err *err) {
    struct lab_study_watch_item *item = &watch->items[index];
    struct lab_study_file *file;
    if (lab_study_file_open(item->path, arena, &file, err) < 0)
        return -1;
    if (!item->history) {
        item->history = find_history(watch, file);
        item->machine = file->study.machine_identity;
    }
    if (lab_study_view_follow(file, item->history, ret_view, err) == 0) {
        read_programs(item, &ret_view->report);
        return 0;
    }
    lab_study_file_close(file);
    return -1;
}
