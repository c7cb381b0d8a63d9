/*
 * pack.c: what a bug report needs, in one file of JSON, which can be read before it is sent. What
 * the program says about the machine comes from the program itself, started again: where a driver
 * hangs or crashes, the file is made all the same, and shows it.
 */
#include "command/doctor/doctor.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/out_file.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "doc/doc.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

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

static const char *without(const char *text, const struct secrets *secrets,
                           struct lab_arena *arena) {
    LAB_AUTO(str, out);
    for (const char *at = text; *at;) {
        const struct secret *found = NULL;
        for (int i = 0; i < secrets->count && !found; i++)
            if (stands_at(&secrets->items[i], text, at))
                found = &secrets->items[i];
        if (found)
            lab_str_add(&out, found->instead);
        else
            lab_str_add_bytes(&out, at, 1);
        at += found ? strlen(found->text) : 1;
    }
    return lab_arena_strdup(arena, out.text);
}

/* Out of every text in it. */
static void remove_secrets(struct lab_value *value, const struct secrets *secrets,
                           struct lab_arena *arena) {
    if (value->type == LAB_VALUE_STRING)
        value->string = without(value->string, secrets, arena);
    if (value->type == LAB_VALUE_LIST || value->type == LAB_VALUE_MAP)
        for (int i = 0; i < value->count; i++)
            remove_secrets(value->items[i], secrets, arena);
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

static struct lab_value *environment(struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (const char **variable = lab_subprocess_environment(NULL, arena); *variable; variable++) {
        const char *name = lab_arena_strndup(arena, *variable, strcspn(*variable, "="));
        if ((*variable)[strlen(name)] == '=' && is_harmless(name))
            lab_value_set_string(arena, map, name, *variable + strlen(name) + 1);
    }
    return map;
}

static struct lab_value *operating_system(struct lab_arena *arena) {
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
    return map;
}

/* --- what the program says --- */

/* Its JSON; where it gives none, what it printed and how it ended. */
static struct lab_value *say(const char *command, struct lab_arena *arena) {
    const char *argv[] = {"/proc/self/exe", command, "--json", NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = MOST_BYTES, .timeout_ns = LIMIT_NS};
    struct lab_subprocess_result result = {0};
    struct lab_value *said;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_subprocess_run(&spec, arena, &result, &err) < 0)
        return lab_value_string(arena, err.text);
    if (result.exit_status == 0 &&
        lab_json_parse(result.out, result.out_length, command, arena, &said, NULL) == 0)
        return said;
    return lab_value_string(
        arena, lab_arena_printf(arena, "%s%s\nexit status %d, signal %d%s\n", result.out,
                                result.err, result.exit_status, result.signal,
                                result.timed_out ? ", after a minute without an end" : ""));
}

int lab_doctor_pack(const struct lab_doc *doc, const char *path, struct lab_arena *arena,
                    struct lab_err *err) {
    struct lab_value *all = lab_value_map(arena);
    struct secrets secrets;
    LAB_AUTO(str, text);
    find_secrets(&secrets);
    lab_value_set(arena, all, "doctor", lab_doc_value(doc, arena));
    lab_value_set(arena, all, "environment", environment(arena));
    lab_value_set(arena, all, "system", operating_system(arena));
    lab_value_set(arena, all, "version", say("version", arena));
    lab_value_set(arena, all, "devices", say("devices", arena));
    remove_secrets(all, &secrets, arena);
    lab_json_write(all, 2, &text);
    return lab_out_file_save(path, text.text, text.length, err);
}
