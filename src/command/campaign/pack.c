/*
 * pack.c: a campaign as one archive: plan, machine, data and report, and the configs that a rerun
 * elsewhere needs. The system's tar writes it.
 */
#include "command/campaign/course.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/lock.h"
#include "base/file/out_dir.h"
#include "base/file/out_file.h"
#include "base/file/walk.h"
#include "base/subprocess.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_NS   (3600 * LAB_NS_PER_S)
#define YAML_BYTES (4 << 20)

/* --- what is added --- */

static int add_text(const struct course *course, const char *folder, const char *name,
                    const char *text, struct lab_err *err) {
    const char *refused;
    int reason = lab_file_make_folders(folder, 0777, course->arena, &refused);
    if (reason)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, reason, "%s", refused);
    return lab_file_write_atomic(lab_arena_printf(course->arena, "%s/%s", folder, name), text,
                                 strlen(text), err);
}

/* The user's own studies or simulated machines: those that are built in are everywhere. */
static int add_configs(const struct course *course, const char *root, const char *kind,
                       struct lab_err *err) {
    static const char *const endings[] = {".yaml", NULL};
    struct lab_walk wanted = {.endings = endings, .depth = 4};
    for (int f = 0; course->path.folders && course->path.folders[f]; f++) {
        const char *from = lab_arena_printf(course->arena, "%s/%s", course->path.folders[f], kind);
        struct lab_walk_find *finds;
        int count;
        if (lab_walk(from, &wanted, course->arena, &finds, &count, NULL) < 0)
            continue;
        for (int i = 0; i < count; i++) {
            char *text;
            size_t length;
            const char *folder =
                lab_arena_printf(course->arena, "%s/conf/%s/%s", root, kind, finds[i].below);
            if (lab_file_read(finds[i].path, YAML_BYTES, course->arena, &text, &length, err) < 0 ||
                add_text(course, lab_walk_trim(folder, course->arena), finds[i].name, text, err) <
                    0)
                return -1;
        }
    }
    return 0;
}

/* "sim:./mine.yaml:3" names a file: the archive has it as conf/machine/mine.yaml, and `out` gets
 * "sim:mine:3". All else is handed on. */
static int add_device(const struct course *course, const char *root, const char *part,
                      struct lab_str *out, struct lab_err *err) {
    static const char prefix[] = "sim:", ending[] = ".yaml";
    struct lab_arena *arena = course->arena;
    const char *name = part + strlen(prefix), *unit = strrchr(part, ':');
    char *text;
    size_t length;
    if (!lab_str_starts(part, prefix) || (!strchr(name, '/') && !strstr(name, ending))) {
        lab_str_add(out, part);
        return 0;
    }
    bool has_unit = unit >= name && unit[strspn(unit + 1, "0123456789") + 1] == '\0';
    unit = has_unit ? unit : part + strlen(part);
    const char *path = lab_arena_strndup(arena, name, (size_t)(unit - name));
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *base = lab_str_ends(file, ending)
                           ? lab_arena_strndup(arena, file, strlen(file) - strlen(ending))
                           : file;
    if (lab_file_read(path, YAML_BYTES, arena, &text, &length, err) < 0 ||
        add_text(course, lab_arena_printf(arena, "%s/conf/machine", root),
                 lab_arena_printf(arena, "%s%s", base, ending), text, err) < 0)
        return -1;
    lab_str_printf(out, "%s%s%s", prefix, base, unit);
    return 0;
}

/* The same of a list, "sim:./a.yaml:0,sim:./a.yaml:1". */
static int add_devices(const struct course *course, const char *root, const char *selector,
                       const char **ret_selector, struct lab_err *err) {
    LAB_AUTO(str, out);
    for (const char *at = selector, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ',');
        const char *part = lab_arena_strndup(course->arena, at, (size_t)(end - at));
        if (add_device(course, root, part, &out, err) < 0)
            return -1;
        lab_str_add(&out, *end ? "," : "");
    }
    *ret_selector = lab_arena_strdup(course->arena, out.text);
    return 0;
}

/* The command that runs it anew there, with its device and its words. */
static int add_rerun_line(const struct course *course, const char *root, struct lab_str *text,
                          struct lab_err *err) {
    static const char key[] = "device=";
    const char *device;
    lab_str_add(text, "gpulab campaign run ");
    lab_str_add_shell(text, course->campaign.name);
    lab_str_add(text, " --config-dir conf");
    if (course->device) {
        if (add_devices(course, root, course->device, &device, err) < 0)
            return -1;
        lab_str_add(text, " --device ");
        lab_str_add_shell(text, device);
    }
    for (int i = 0; course->overrides[i]; i++) {
        const char *word = course->overrides[i];
        if (lab_str_starts(word, "output_dir="))
            continue;
        if (lab_str_starts(word, key)) {
            if (add_devices(course, root, word + strlen(key), &device, err) < 0)
                return -1;
            word = lab_arena_printf(course->arena, "%s%s", key, device);
        }
        lab_str_add(text, " ");
        lab_str_add_shell(text, word);
    }
    return 0;
}

static int stage(const struct course *course, const char *root, struct lab_err *err) {
    LAB_AUTO(str, rerun);
    if (add_configs(course, root, "experiment", err) < 0 ||
        add_configs(course, root, "machine", err) < 0 ||
        add_rerun_line(course, root, &rerun, err) < 0)
        return -1;
    const char *about = lab_arena_printf(course->arena,
                                         "# %s\n\n"
                                         "A campaign of gpulab %s. From this folder:\n\n"
                                         "```\n"
                                         "gpulab campaign report .      # its answers again\n"
                                         "%s      # all of it again\n"
                                         "```\n\n"
                                         "`report/index.html` has the answers, `campaign.yaml` the "
                                         "plan, `machine.json` the machine. "
                                         "Each study lies below its phase.\n",
                                         course->campaign.name, LAB_VERSION, rerun.text);
    const char *plan = lab_arena_printf(course->arena, "%s.yaml", course->campaign.name);
    return add_text(course, root, "README.md", about, err) < 0 ||
                   add_text(course, lab_arena_printf(course->arena, "%s/conf/campaign", root), plan,
                            course->yaml, err) < 0
               ? -1
               : 0;
}

/* --- the archive --- */

struct writing {
    struct lab_out_file file;
    struct lab_err err;
    bool failed;
};

static void on_output(void *state, bool is_stderr, const char *bytes, size_t length) {
    struct writing *writing = state;
    if (!is_stderr && !writing->failed)
        writing->failed = lab_out_file_write(&writing->file, bytes, length, &writing->err) < 0;
}

static bool on_stop(void *state) {
    const struct writing *writing = state;
    return writing->failed;
}

static int write_archive(const struct course *course, const char *scratch, const char *name,
                         const char *output, struct lab_err *err) {
    const char *slash = strrchr(course->folder, '/');
    const char *parent =
        slash ? lab_arena_strndup(course->arena, course->folder, (size_t)(slash - course->folder))
              : ".";
    const char *own = slash ? slash + 1 : course->folder;
    const char *const argv[] = {
        "tar",
        "-cz",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--exclude=lock",
        "--exclude=.room",
        lab_arena_printf(course->arena, "--directory=%s", scratch),
        name,
        lab_arena_printf(course->arena, "--directory=%s",
                         *parent ? lab_out_dir_resolve(parent, course->arena) : "/"),
        lab_arena_printf(course->arena, "--transform=s,^%s\\(/\\|$\\),%s\\1,", own, name),
        own,
        NULL};
    struct writing writing = {.err = LAB_ERR_INIT};
    struct lab_subprocess_watcher watcher = {
        .output = on_output, .stopped = on_stop, .state = &writing};
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = 1024, .timeout_ns = LIMIT_NS, .watcher = &watcher};
    struct lab_subprocess_result result;
    if (lab_out_file_open(output, course->arena, &writing.file, err) < 0)
        return -1;
    int status = lab_subprocess_run(&spec, course->arena, &result, err);
    if (status == 0 && writing.failed)
        status = lab_err_set(err, writing.err.code, "%s", writing.err.text);
    else if (status == 0 && result.exit_status != 0)
        status = lab_err_set(err, LAB_ERR_SYSTEM, "tar: %s", result.err);
    if (status == 0)
        return lab_out_file_finish(&writing.file, err);
    lab_out_file_drop(&writing.file);
    return -1;
}

/* "numa_plan-2026-11-18-10-42-03", by the folder's last parts. */
static const char *archive_name(const struct course *course) {
    LAB_AUTO(str, name);
    LAB_AUTO_FREE char *real = realpath(course->folder, NULL);
    const char *path = real ? real : course->folder, *from = path + strlen(path);
    for (int slashes = 0; from > path && slashes < 2; from--)
        slashes += from[-1] == '/';
    from += *from == '/';
    lab_str_printf(&name, "%s-%s", course->campaign.name, from);
    for (char *c = name.text; *c; c++)
        *c = *c == '/' ? '-' : *c;
    return lab_arena_strdup(course->arena, name.text);
}

int course_pack(const struct course *course, const char *output, const char **ret_path,
                struct lab_err *err) {
    struct lab_holder holder;
    struct lab_scratch_dir scratch;
    const char *name = archive_name(course);
    *ret_path = output ? output : lab_arena_printf(course->arena, "%s.tar.gz", name);
    if (lab_lock_held(lab_arena_printf(course->arena, "%s/lock", course->folder), &holder))
        return lab_err_set(err, LAB_ERR_USER, "%s is being run: pack it when it has ended",
                           course->folder);
    if (lab_scratch_dir_open(course->arena, &scratch, err) < 0)
        return -1;
    int result = stage(course, lab_arena_printf(course->arena, "%s/%s", scratch.path, name), err);
    if (result == 0)
        result = write_archive(course, scratch.path, name, *ret_path, err);
    lab_scratch_dir_close(&scratch);
    return result;
}
