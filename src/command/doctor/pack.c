/*
 * pack.c: what a bug report needs, in one ZIP file. What the program says about the machine comes
 * from the program itself, started again: where a driver hangs or crashes, the file is made all the
 * same, and shows it.
 */
#include "command/doctor/doctor.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/out_file.h"
#include "base/file/zip.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "doc/doc.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FOLDER     "gpulab-doctor/"
#define LIMIT_NS   (60 * LAB_NS_PER_S)
#define MOST_BYTES ((size_t)4 << 20)

/* --- what isn't anybody's business --- */

struct secret {
    const char *text, *instead;
    bool word; /* where it stands alone, not within another word */
};

struct secrets {
    struct secret items[8];
    int count;
    char host[HOST_NAME_MAX + 1];
};

static void hide(struct secrets *secrets, const char *text, const char *instead, bool word) {
    if (text && strlen(text) > 1 && !(word && lab_str_equal(text, "root")))
        secrets->items[secrets->count++] = (struct secret){text, instead, word};
}

static void find_secrets(struct secrets *ret_secrets) {
    const struct passwd *user = getpwuid(getuid());
    *ret_secrets = (struct secrets){.count = 0};
    hide(ret_secrets, getenv("HOME"), "~", false);
    hide(ret_secrets, user ? user->pw_dir : NULL, "~", false);
    hide(ret_secrets, user ? user->pw_name : NULL, "USER", true);
    hide(ret_secrets, getenv("USER"), "USER", true);
    hide(ret_secrets, getenv("LOGNAME"), "USER", true);
    hide(ret_secrets, getenv("SUDO_USER"), "USER", true);
    if (gethostname(ret_secrets->host, sizeof ret_secrets->host - 1) == 0)
        hide(ret_secrets, ret_secrets->host, "HOST", true);
}

static bool in_word(char byte) {
    return isalnum((unsigned char)byte) || byte == '_';
}

static bool stands_at(const struct secret *secret, const char *text, const char *at) {
    size_t length = strlen(secret->text);
    return !strncmp(at, secret->text, length) &&
           (!secret->word || ((at == text || !in_word(at[-1])) && !in_word(at[length])));
}

static void add_without(struct lab_str *out, const char *text, const struct secrets *secrets) {
    for (const char *at = text; *at;) {
        const struct secret *found = NULL;
        for (int i = 0; i < secrets->count && !found; i++)
            if (stands_at(&secrets->items[i], text, at))
                found = &secrets->items[i];
        if (found)
            lab_str_add(out, found->instead);
        else
            lab_str_add_bytes(out, at, 1);
        at += found ? strlen(found->text) : 1;
    }
}

/* --- the environment --- */

/* An asterisk at the end: all that begin so. */
static const char *const harmless[] = {"CUDA_*",
                                       "GPULAB_*",
                                       "LANG",
                                       "LC_ALL",
                                       "LD_LIBRARY_PATH",
                                       "LD_PRELOAD",
                                       "NCCL_*",
                                       "NO_COLOR",
                                       "NVIDIA_DRIVER_CAPABILITIES",
                                       "NVIDIA_VISIBLE_DEVICES",
                                       "OMP_NUM_THREADS",
                                       "OPENBLAS_*",
                                       "SLURM_CPUS_*",
                                       "SLURM_GPUS*",
                                       "SLURM_JOB_GPUS",
                                       "SLURM_MEM_*",
                                       "SLURM_NTASKS*",
                                       "TERM",
                                       "XDG_CACHE_HOME",
                                       "XDG_CONFIG_HOME",
                                       "XDG_STATE_HOME",
                                       NULL};
static const char *const never[] = {"AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN", NULL};

static bool is_harmless(const char *name) {
    for (const char *const *word = never; *word; word++)
        if (strcasestr(name, *word))
            return false;
    for (const char *const *known = harmless; *known; known++) {
        size_t length = strlen(*known);
        if ((*known)[length - 1] == '*' ? !strncmp(name, *known, length - 1)
                                        : lab_str_equal(name, *known))
            return true;
    }
    return false;
}

static const char *environment(struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (const char **variable = lab_subprocess_environment(NULL, arena); *variable; variable++) {
        const char *name = lab_arena_strndup(arena, *variable, strcspn(*variable, "="));
        if ((*variable)[strlen(name)] == '=' && is_harmless(name))
            lab_value_set_string(arena, map, name, *variable + strlen(name) + 1);
    }
    LAB_AUTO(str, text);
    lab_json_write(map, 2, &text);
    return lab_arena_strdup(arena, text.text);
}

static const char *operating_system(struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    struct utsname kernel;
    char *release;
    size_t length;
    if (uname(&kernel) == 0) {
        lab_value_set_string(arena, map, "kernel", kernel.release);
        lab_value_set_string(arena, map, "kernel_build", kernel.version);
        lab_value_set_string(arena, map, "architecture", kernel.machine);
    }
    if (!lab_file_read("/etc/os-release", 64u << 10, arena, &release, &length, NULL))
        lab_value_set_string(arena, map, "os_release", release);
    lab_value_set_string(arena, map, "glibc", gnu_get_libc_version());
    LAB_AUTO(str, text);
    lab_json_write(map, 2, &text);
    return lab_arena_strdup(arena, text.text);
}

/* --- what the program says --- */

static const char *say(const char *const *argv, struct lab_arena *arena) {
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = MOST_BYTES, .timeout_ns = LIMIT_NS};
    struct lab_subprocess_result result = {0};
    struct lab_err err = LAB_ERR_INIT;
    if (lab_subprocess_run(&spec, arena, &result, &err) < 0)
        return lab_arena_strdup(arena, err.text);
    if (result.exit_status == 0)
        return result.out;
    return lab_arena_printf(arena, "%s%s\nexit status %d, signal %d%s\n", result.out, result.err,
                            result.exit_status, result.signal,
                            result.timed_out ? ", after a minute without an end" : "");
}

static void add_commands(struct lab_zip *zip, const struct secrets *secrets,
                         struct lab_arena *arena) {
#define SELF "/proc/self/exe"
    static const struct {
        const char *file;
        const char *argv[4];
    } commands[] = {
        {FOLDER "version.json", {SELF, "version", "--json", NULL}},
        {FOLDER "devices.json", {SELF, "devices", "--json", NULL}},
        {FOLDER "devices.txt", {SELF, "devices", NULL}},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        LAB_AUTO(str, text);
        add_without(&text, say(commands[i].argv, arena), secrets);
        lab_zip_add(zip, commands[i].file, text.text, text.length);
    }
}

static void add_text(struct lab_zip *zip, const char *file, const char *text,
                     const struct secrets *secrets) {
    LAB_AUTO(str, clean);
    add_without(&clean, text, secrets);
    lab_zip_add(zip, file, clean.text, clean.length);
}

int lab_doctor_pack(const struct lab_doc *doc, const char *path, struct lab_arena *arena,
                    struct lab_err *err) {
    struct lab_style style = {.columns = 100};
    struct secrets secrets;
    struct lab_zip zip;
    LAB_AUTO(str, text);
    LAB_AUTO(str, json);
    find_secrets(&secrets);
    lab_zip_init(&zip);
    lab_doc_write(doc, "text", style, &text);
    lab_json_write(lab_doc_value(doc, arena), 2, &json);
    add_text(&zip, FOLDER "doctor.txt", text.text, &secrets);
    add_text(&zip, FOLDER "doctor.json", json.text, &secrets);
    add_text(&zip, FOLDER "environment.json", environment(arena), &secrets);
    add_text(&zip, FOLDER "system.json", operating_system(arena), &secrets);
    add_commands(&zip, &secrets, arena);
    lab_zip_end(&zip);
    int result = lab_out_file_save(path, zip.bytes.text, zip.bytes.length, err);
    lab_zip_release(&zip);
    return result;
}
