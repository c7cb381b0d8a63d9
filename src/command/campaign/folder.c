/* folder.c: a campaign's folder: found again by what it plans, made, held, looked at. */
#include "command/campaign/course.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/file/lock.h"
#include "base/file/own.h"
#include "base/file/walk.h"
#include "base/json.h"
#include "base/yaml/yaml.h"
#include "load/point_sets.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MOST (4 << 20)
#define ATTEMPTS        100
#define PATIENCE_NS     (5 * LAB_NS_PER_S)
#define PAUSE_NS        (20 * LAB_NS_PER_MS)

static const char *path_in(const struct course *course, const char *folder, const char *name) {
    return lab_arena_printf(course->arena, "%s/%s", folder, name);
}

static const char *home(const struct course *course) {
    return lab_arena_printf(course->arena, "%s/campaign/%s", course->output_dir,
                            course->campaign.name);
}

static struct lab_value *read_json(const struct course *course, const char *folder,
                                   const char *name) {
    char *text;
    size_t length;
    struct lab_value *tree;
    const char *path = path_in(course, folder, name);
    if (lab_file_read(path, FILE_BYTES_MOST, course->arena, &text, &length, NULL) < 0 ||
        lab_json_parse(text, length, path, course->arena, &tree, NULL) < 0)
        return NULL;
    return tree;
}

static const char *number_text(uint64_t number, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%016" PRIx64, number);
}

/* Where each study lies. */
static void set_slots(struct course *course) {
    for (int p = 0; p < course->campaign.phase_count; p++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[p];
        for (int s = 0; s < phase->study_count; s++)
            course->studies[phase->first_study + s].slot = lab_arena_printf(
                course->arena, "%s/%s/%s", course->folder, phase->name, phase->studies[s].label);
    }
}

/* Of each study. Times of simulated runs are simulated, so that no other file has the real ones. */
static struct lab_value *times_value(const struct course *course,
                                     const struct lab_campaign_phase *phase) {
    struct lab_value *list = lab_value_list(course->arena);
    for (int s = 0; s < phase->study_count; s++) {
        double taken_s = course->found[phase->first_study + s].taken_s;
        lab_value_append(course->arena, list,
                         isnan(taken_s) ? lab_value_null(course->arena)
                                        : lab_value_float(course->arena, taken_s));
    }
    return list;
}

static void read_times(struct course *course, const struct lab_value *kept) {
    const struct lab_value *phases = lab_value_get(kept, "phases");
    for (int p = 0; phases && p < phases->count && p < course->campaign.phase_count; p++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[p];
        const struct lab_value *times = lab_value_get(phases->items[p], "taken_s");
        for (int s = 0; times && s < times->count && s < phase->study_count; s++)
            if (lab_value_as_number(times->items[s]) >= 0)
                course->found[phase->first_study + s].taken_s =
                    lab_value_as_number(times->items[s]);
    }
}

/* --- finding --- */

/* All folders of the campaign, newest first. */
static int find_folders(const struct course *course, const char ***ret_folders) {
    const char *root = home(course), **folders = NULL;
    const char *const *dates = lab_walk_names(root, course->arena);
    int count = 0, date_count = 0;
    while (dates && dates[date_count])
        date_count++;
    for (int d = date_count - 1; d >= 0; d--) {
        const char *date = path_in(course, root, dates[d]);
        const char *const *times = lab_walk_names(date, course->arena);
        int time_count = 0;
        while (times && times[time_count])
            time_count++;
        for (int t = time_count - 1; t >= 0; t--)
            if (times[t][0] != '.')
                LAB_ADD(folders, count, course->arena) = path_in(course, date, times[t]);
    }
    *ret_folders = folders;
    return count;
}

/* The first value in which two descriptions of a machine differ, "nodes.0.cores 16, now 8"; NULL =
 * none does. What is free changes all the time. */
static const char *find_difference(const struct lab_value *a, const struct lab_value *b,
                                   const char *path, struct lab_arena *arena) {
    const char *differs = NULL;
    bool map = a->type == LAB_VALUE_MAP, nested = map || a->type == LAB_VALUE_LIST;
    if (lab_value_equal(a, b))
        return NULL;
    for (int i = 0; nested && b->type == a->type && i < a->count && !differs; i++) {
        const char *key = map ? a->keys[i] : lab_arena_printf(arena, "%d", i);
        const struct lab_value *other = map            ? lab_value_get(b, key)
                                        : i < b->count ? b->items[i]
                                                       : NULL;
        if (other && !lab_str_equal(key, "free_bytes"))
            differs =
                find_difference(a->items[i], other,
                                *path ? lab_arena_printf(arena, "%s.%s", path, key) : key, arena);
    }
    if (nested)
        return differs;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s ", path);
    lab_value_write(a, &text);
    lab_str_add(&text, ", now ");
    lab_value_write(b, &text);
    return lab_arena_strdup(arena, text.text);
}

static int check_machine(struct course *course, const char *folder, const struct lab_value *kept,
                         bool accept, struct lab_err *err) {
    struct lab_arena *arena = course->arena;
    struct lab_point_set sets[2] = {{0}, {0}};
    struct lab_value *now = NULL;
    const char *mine = number_text(course->machine_identity, arena);
    const struct lab_value *before = read_json(course, folder, "machine.json");
    if (lab_str_equal(lab_value_get_text(kept, "machine_identity", ""), mine))
        return 0;
    if (before && lab_json_parse(course->machine_json, strlen(course->machine_json), "machine",
                                 arena, &now, NULL) == 0) {
        lab_point_set_add_machine(&sets[0], before, 0, arena);
        lab_point_set_add_machine(&sets[1], now, 0, arena);
    }
    const char *differs = lab_point_set_other_machine(&sets[0], &sets[1], arena);
    if (!differs && before && now)
        differs = find_difference(before, now, "", arena);
    if (!differs && course->simulated)
        differs = "the file that describes it was edited";
    course->machine_note = lab_arena_printf(
        arena, "the machine is not the one that it began on (%s)", differs ? differs : "unknown");
    if (accept)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "%s: %s; --accept-machine continues here, experiment.resume=false begins a "
                       "new one",
                       folder, course->machine_note);
}

static int hold(struct course *course, const char *folder, struct lab_err *err) {
    const char *path = path_in(course, folder, "lock");
    int fd = lab_own_open(path, LAB_OWN_CHANGE, err);
    struct lab_holder holder;
    if (fd < 0)
        return -1;
    if (lab_lock_try(fd, path) != LAB_LOCK_TAKEN) {
        LAB_AUTO(str, who);
        lab_lock_read(fd, &holder);
        lab_holder_describe(&holder, &who);
        close(fd);
        return lab_err_set(err, LAB_ERR_USER, "%s: this campaign is run by %s", folder, who.text);
    }
    lab_holder_self(
        lab_arena_printf(course->arena, "gpulab campaign run %s", course->campaign.name), folder,
        &holder);
    lab_lock_write(fd, &holder);
    course->lock_fd = fd;
    course->folder = folder;
    return 0;
}

/* 1 = an unfinished one of the same plan is held, 0 = there is none. */
static int find_unfinished(struct course *course, bool accept, struct lab_err *err) {
    const char **folders;
    int count = course->resume ? find_folders(course, &folders) : 0;
    const char *mine = number_text(course->identity, course->arena);
    for (int i = 0; i < count; i++) {
        const struct lab_value *kept = read_json(course, folders[i], "campaign.json");
        if (!kept || !lab_str_equal(lab_value_get_text(kept, "identity", ""), mine) ||
            lab_value_get_bool(kept, "finished"))
            continue;
        if (hold(course, folders[i], err) < 0 ||
            check_machine(course, folders[i], kept, accept, err) < 0)
            return -1;
        read_times(course, kept);
        return 1;
    }
    return 0;
}

/* --- making --- */

static int write_text(const struct course *course, const char *name, const char *text,
                      struct lab_err *err) {
    return lab_file_write_atomic(path_in(course, course->folder, name), text, strlen(text), err);
}

static int make_folder(struct course *course, struct lab_err *err) {
    LAB_AUTO(str, date);
    LAB_AUTO(str, time);
    int64_t now_ns = lab_clock_wall_ns();
    lab_str_add_clock(&date, now_ns, "%Y-%m-%d");
    lab_str_add_clock(&time, now_ns, "%H-%M-%S");
    const char *parent = path_in(course, home(course), date.text), *refused = parent, *path;
    int reason = lab_file_make_folders(parent, 0777, course->arena, &refused);
    for (int i = 1; i <= ATTEMPTS && reason == 0; i++) {
        path = lab_arena_printf(course->arena, i > 1 ? "%s/%s_%d" : "%s/%s", parent, time.text, i);
        if (lab_own_new_folder(path) == 0)
            return hold(course, path, err);
        reason = errno == EEXIST ? 0 : errno;
        refused = path;
    }
    return lab_err_set_errno(err, LAB_ERR_USER, reason ? reason : EEXIST,
                             "can't make the campaign's directory (output_dir=… chooses another): "
                             "%s",
                             refused);
}

int course_write(const struct course *course, const struct lab_campaign_status *statuses,
                 bool ended, struct lab_err *err) {
    struct lab_arena *arena = course->arena;
    const struct lab_campaign *campaign = &course->campaign;
    struct lab_value *map = lab_value_map(arena), *phases = lab_value_list(arena);
    bool finished = ended;
    for (int p = 0; statuses && p < campaign->phase_count; p++) {
        struct lab_value *phase = lab_value_map(arena);
        enum lab_campaign_state state = statuses[p].state;
        finished &= state == LAB_CAMPAIGN_DONE || state == LAB_CAMPAIGN_SKIPPED;
        lab_value_set_string(arena, phase, "name", campaign->phases[p].name);
        lab_value_set_string(arena, phase, "state", lab_campaign_state_names[state]);
        lab_value_set_string(arena, phase, "why", statuses[p].why);
        lab_value_set(arena, phase, "taken_s", times_value(course, &campaign->phases[p]));
        lab_value_append(arena, phases, phase);
    }
    lab_value_set_string(arena, map, "campaign", campaign->name);
    lab_value_set_string(arena, map, "identity", number_text(course->identity, arena));
    lab_value_set_string(arena, map, "machine_identity",
                         number_text(course->machine_identity, arena));
    lab_value_set(arena, map, "overrides", lab_value_strings(arena, course->overrides));
    lab_value_set_string(arena, map, "device", course->device);
    lab_value_set_string(arena, map, "version", LAB_VERSION);
    lab_value_set_bool(arena, map, "finished", finished);
    lab_value_set_string(arena, map, "machine_note", course->machine_note);
    lab_value_set(arena, map, "phases", phases);
    LAB_AUTO(str, text);
    lab_json_write(map, 2, &text);
    lab_str_add(&text, "\n");
    lab_failpoint("before-campaign");
    int result = write_text(course, "campaign.json", text.text, err);
    lab_failpoint("after-campaign");
    return result;
}

/* Two that begin at once: one finds the other's folder. */
static int take_turn(const struct course *course) {
    const char *root = home(course), *refused;
    if (lab_file_make_folders(root, 0777, course->arena, &refused) != 0)
        return -1;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t until_ns = lab_clock_now(lab_clock_system()) + PATIENCE_NS;
    while (fd >= 0 && lab_lock_try(fd, root) == LAB_LOCK_HELD &&
           lab_clock_now(lab_clock_system()) < until_ns)
        lab_clock_sleep(lab_clock_system(), PAUSE_NS);
    return fd;
}

int course_open(struct course *course, bool accept_machine, struct lab_err *err) {
    LAB_AUTO_CLOSE int turn_fd = take_turn(course);
    (void)turn_fd; /* held until the end */
    int found = find_unfinished(course, accept_machine, err);
    if (found < 0 || (found == 0 && make_folder(course, err) < 0))
        return -1;
    course->resumed = found > 0;
    set_slots(course);
    if (course->resumed && !course->machine_note)
        return 0;
    return write_text(course, "campaign.yaml", course->yaml, err) < 0 ||
                   write_text(course, "machine.json", course->machine_json, err) < 0
               ? -1
               : course_write(course, NULL, false, err);
}

int course_look(struct course *course, struct lab_err *err) {
    const char **folders, *other = NULL;
    int count = find_folders(course, &folders);
    const char *mine = number_text(course->identity, course->arena);
    for (int i = 0; i < count; i++) {
        const struct lab_value *kept = read_json(course, folders[i], "campaign.json");
        if (!kept || !lab_str_equal(lab_value_get_text(kept, "identity", ""), mine)) {
            other = other || !kept ? other : folders[i];
            continue;
        }
        course->folder = folders[i];
        course->machine_note = lab_value_get_text(kept, "machine_note", NULL);
        read_times(course, kept);
        set_slots(course);
        return 0;
    }
    if (other)
        return lab_err_set(err, LAB_ERR_USER,
                           "no folder of this campaign with these words; give those of its 'run', "
                           "or a folder: the newest is %s",
                           other);
    return lab_err_set(err, LAB_ERR_USER,
                       "no folder of this campaign in %s: gpulab campaign run %s", home(course),
                       course->campaign.name);
}

bool course_is_folder(const char *word) {
    LAB_AUTO(arena, arena);
    return access(lab_arena_printf(&arena, "%s/campaign.json", word), F_OK) == 0;
}

/* A file's name, and no option of tar. */
static bool is_plain(const char *name, struct lab_arena *arena) {
    char *shown = lab_arena_strdup(arena, name);
    lab_str_make_printable(shown);
    return *name && *name != '-' && *name != '.' && !strchr(name, '/') &&
           lab_str_equal(name, shown);
}

int course_reopen(struct course *course, const char *folder, struct lab_err *err) {
    char *text;
    size_t length;
    struct lab_value *tree;
    const char *path = path_in(course, folder, "campaign.yaml"), **overrides = NULL;
    const struct lab_value *kept = read_json(course, folder, "campaign.json");
    const struct lab_value *words = lab_value_get(kept, "overrides");
    int count = 0;
    const char *name = lab_value_get_text(kept, "campaign", "");
    if (!is_plain(
            name,
            course->arena)) /* others may have written it: archives and configs have its name */
        return lab_err_set(err, LAB_ERR_WRONG, "%s/campaign.json %s", folder,
                           kept ? "has no usable name" : "can't be read");
    if (lab_file_read(path, FILE_BYTES_MOST, course->arena, &text, &length, err) < 0 ||
        lab_yaml_parse(text, length, path, LAB_YAML_LIMITS, course->arena, &tree, err) < 0)
        return -1;
    for (int i = 0; words && i < words->count; i++)
        LAB_ADD(overrides, count, course->arena) = lab_value_as_text(words->items[i], "");
    course->overrides = lab_arena_copy(course->arena, overrides, (size_t)count, sizeof *overrides);
    if (course_take(course, name, tree, err) < 0)
        return -1;
    course->folder = lab_walk_trim(folder, course->arena);
    course->machine_note = lab_value_get_text(kept, "machine_note", NULL);
    course->device = lab_value_get_text(kept, "device", NULL);
    course->simulated = lab_value_get_bool(read_json(course, folder, "machine.json"), "simulated");
    read_times(course, kept);
    set_slots(course);
    return 0;
}

void course_discard(struct course *course) {
    if (course->resumed)
        return;
    lab_own_remove_tree(course->folder);
    char *above = lab_arena_strdup(course->arena, course->folder);
    for (int level = 0; level < 2; level++) { /* date and name, unless others lie there */
        char *slash = strrchr(above, '/');
        if (!slash)
            return;
        *slash = '\0';
        if (lab_own_remove_empty(above) < 0)
            return;
    }
}

void course_close(struct course *course) {
    if (course->lock_fd >= 0)
        lab_file_close(&course->lock_fd);
}
