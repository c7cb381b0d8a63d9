/*
 * compile.c: a variant's text and options for NVRTC, and what NVRTC made of them.
 *
 * NVRTC compiles side by side in threads. The jobs of this process are a list that only grows: a
 * model needs a handful, and whoever looks a job up does it once, keeping the loaded kernel.
 */
#include "device/cuda/compile.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/kernel_cache.h"
#include "vendor/nvrtc.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the text --- */

static const struct lab_kernel_file *file_named(const char *name) {
    for (int i = 0; lab_kernel_files[i].name; i++)
        if (lab_str_equal(lab_kernel_files[i].name, name))
            return &lab_kernel_files[i];
    return NULL;
}

#define FILES_MAX 16

/* A kernel's file and the headers that it includes, and they: all that NVRTC can see. */
struct source {
    const struct lab_kernel_file *files[FILES_MAX]; /* the kernel's own first */
    int count;
};

static void add_file(struct source *source, const struct lab_kernel_file *file) {
    for (int i = 0; i < source->count; i++)
        if (source->files[i] == file)
            return;
    assert(source->count < FILES_MAX);
    source->files[source->count++] = file;
}

/* Those that `file` names in lines as #include "common.cuh". */
static void add_headers(struct source *source, const struct lab_kernel_file *file) {
    static const char include[] = "#include \"";
    for (const char *at = file->text; (at = strstr(at, include));) {
        char name[64];
        at += sizeof include - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\"\n"), at);
        if (file_named(name))
            add_file(source, file_named(name));
    }
}

static struct source source_of(const char *name) {
    struct source source = {0};
    add_file(&source, file_named(name));
    for (int i = 0; i < source.count; i++)
        add_headers(&source, source.files[i]);
    return source;
}

static uint64_t source_hash(const struct source *source, size_t *ret_length) {
    LAB_AUTO(str, text);
    for (int i = 0; i < source->count; i++)
        lab_str_add_bytes(&text, source->files[i]->text, source->files[i]->length);
    *ret_length = text.length;
    return lab_kernel_cache_hash(text.text, text.length);
}

uint64_t cuda_source_hash(const char *file) {
    struct source source = source_of(file);
    size_t length;
    return source_hash(&source, &length);
}

#define OPTIONS_MAX (CUDA_MACROS + 6)

static int make_options(const struct cuda_variant *variant, const char *architecture,
                        struct lab_arena *arena, const char *options[OPTIONS_MAX]) {
    const struct cuda_kernel_row *row = &cuda_kernel_rows[variant->kernel];
    int count = 0;
    options[count++] = lab_arena_printf(arena, "--gpu-architecture=%s", architecture);
    options[count++] = "--std=c++17";
    options[count++] = "--device-as-default-execution-space";
    options[count++] = lab_arena_printf(arena, "-DDTYPE=%d", variant->dtype);
    options[count++] = lab_arena_printf(arena, "-DMAKE_%s", row->name);
    for (int i = 0; row->macros[i]; i++)
        options[count++] =
            lab_arena_printf(arena, "-D%s=%d", row->macros[i], (int)variant->macros[i]);
    return count;
}

/* All that the code depends on. */
static const char *key_of(const struct source *source, const char *const *options, int count,
                          struct lab_arena *arena) {
    LAB_AUTO(str, key);
    size_t length;
    uint64_t hash = source_hash(source, &length);
    lab_str_printf(&key, "nvrtc %d, source %zu %016" PRIx64, lab_nvrtc_version(), length, hash);
    for (int i = 0; i < count; i++)
        lab_str_printf(&key, " %s", options[i]);
    return lab_arena_strdup(arena, key.text);
}

/* --- the compiler --- */

#define COMPLAINTS 3 /* lines of the log that go into the error */

/* "layer_norm.cu(12): error: …; layer_norm.cu(20): error: …" */
static void add_complaints(const char *log, struct lab_str *out) {
    int found = 0;
    while (*log && found < COMPLAINTS) {
        size_t length = strcspn(log, "\n");
        const char *error = strstr(log, "error");
        if (error && error < log + length) {
            lab_str_add(out, found++ ? "; " : "");
            lab_str_add_bytes(out, log, length);
        }
        log += length + (log[length] == '\n');
    }
}

static int refuse(const struct lab_nvrtc *nvrtc, lab_nvrtc_result result, lab_nvrtc_program program,
                  struct lab_err *err) {
    LAB_AUTO(str, text);
    size_t length = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &length) == LAB_NVRTC_SUCCESS && length > 1) {
        char *log = lab_mem_alloc(length + 1, 1);
        nvrtc->nvrtcGetProgramLog(program, log);
        lab_log(LAB_LOG_DEBUG, "NVRTC: %s", log);
        add_complaints(log, &text);
        lab_mem_free(log);
    }
    if (!text.length)
        lab_str_add(&text, nvrtc->nvrtcGetErrorString ? nvrtc->nvrtcGetErrorString(result)
                                                      : "the compiler gives no reason");
    return lab_err_set(err, LAB_ERR_SYSTEM, "NVRTC: %s (%d)", text.text, result);
}

static int take_code(const struct lab_nvrtc *nvrtc, lab_nvrtc_program program, bool ptx,
                     char **ret_code, size_t *ret_length, struct lab_err *err) {
    size_t length = 0;
    lab_nvrtc_result result =
        ptx ? nvrtc->nvrtcGetPTXSize(program, &length) : nvrtc->nvrtcGetCUBINSize(program, &length);
    if (result != LAB_NVRTC_SUCCESS || length == 0)
        return refuse(nvrtc, result, program, err);
    char *code = lab_mem_alloc(length, 1);
    result = ptx ? nvrtc->nvrtcGetPTX(program, code) : nvrtc->nvrtcGetCUBIN(program, code);
    if (result != LAB_NVRTC_SUCCESS) {
        lab_mem_free(code);
        return refuse(nvrtc, result, program, err);
    }
    *ret_code = code;
    *ret_length = length;
    return 0;
}

static int compile(const struct source *source, const char *const *options, int count, bool ptx,
                   char **ret_code, size_t *ret_length, struct lab_err *err) {
    const struct lab_nvrtc *nvrtc = lab_nvrtc_load(NULL);
    const char *texts[FILES_MAX] = {NULL}, *names[FILES_MAX] = {NULL};
    for (int i = 0; i < source->count; i++) {
        texts[i] = source->files[i]->text;
        names[i] = source->files[i]->name;
    }
    lab_nvrtc_program program = NULL;
    lab_nvrtc_result result = nvrtc->nvrtcCreateProgram(&program, texts[0], names[0],
                                                        source->count - 1, texts + 1, names + 1);
    if (result != LAB_NVRTC_SUCCESS)
        return lab_err_set(err, LAB_ERR_SYSTEM, "NVRTC can't start (%d)", result);
    result = nvrtc->nvrtcCompileProgram(program, count, options);
    int status = result == LAB_NVRTC_SUCCESS
                     ? take_code(nvrtc, program, ptx, ret_code, ret_length, err)
                     : refuse(nvrtc, result, program, err);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

static int check_compiler(struct lab_err *err) {
    const struct lab_dl_report *report;
    lab_nvrtc_load(&report);
    if (lab_nvrtc_ready())
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "NVRTC, which compiles kernels, was not found: %s; it comes with the "
                       "CUDA toolkit and with PyTorch",
                       report->reason ? report->reason : "functions of it are missing");
}

/* From the cache where `folder` has it, else compiled and kept there. */
static int compile_variant(const struct cuda_variant *variant, const char *architecture,
                           const char *folder, char **ret_code, size_t *ret_length,
                           struct lab_err *err) {
    char name[CUDA_VARIANT_NAME_BYTES], *cached;
    const char *options[OPTIONS_MAX];
    if (check_compiler(err))
        return -1;
    LAB_AUTO(arena, arena);
    cuda_variant_name(variant, name);
    struct source source = source_of(cuda_kernel_rows[variant->kernel].file);
    int count = make_options(variant, architecture, &arena, options);
    const char *key = key_of(&source, options, count, &arena);
    if (lab_kernel_cache_load(folder, key, &arena, &cached, ret_length) == 0) {
        *ret_code = lab_mem_alloc(*ret_length, 1);
        memcpy(*ret_code, cached, *ret_length);
        return 0;
    }
    if (compile(&source, options, count, lab_str_starts(architecture, "compute_"), ret_code,
                ret_length, err))
        return lab_err_context(err, "compiling kernel '%s' for %s", name, architecture);
    lab_kernel_cache_store(folder, key, lab_arena_printf(&arena, "%s, %s", name, architecture),
                           *ret_code, *ret_length);
    return 0;
}

int cuda_compile(const struct cuda_variant *variant, const char *architecture, char **ret_code,
                 size_t *ret_length, struct lab_err *err) {
    return compile_variant(variant, architecture, NULL, ret_code, ret_length, err);
}

/* --- for which GPU --- */

void cuda_architecture(int capability, const int *known, int count, char ret_name[16]) {
    int newest = 0;
    for (int i = 0; i < count && known[i] <= capability; i++)
        newest = known[i];
    if (count == 0 || newest == capability)
        snprintf(ret_name, 16, "sm_%d", capability);
    else /* older than all that it knows: it says so itself */
        snprintf(ret_name, 16, "compute_%d", newest ? newest : capability);
}

static void architecture_here(enum cuda_kernel_id kernel, int capability, char ret_name[16]) {
    const struct lab_nvrtc *nvrtc = lab_nvrtc_load(NULL);
    int known[64], count = 0;
    if (cuda_kernel_rows[kernel].architectures == CUDA_ONLY_90) {
        snprintf(ret_name, 16, "sm_90a");
        return;
    }
    if (!nvrtc->nvrtcGetNumSupportedArchs || !nvrtc->nvrtcGetSupportedArchs ||
        nvrtc->nvrtcGetNumSupportedArchs(&count) != LAB_NVRTC_SUCCESS || count > 64 ||
        nvrtc->nvrtcGetSupportedArchs(known) != LAB_NVRTC_SUCCESS)
        count = 0;
    cuda_architecture(capability, known, count, ret_name);
}

/* --- jobs --- */

enum state { WAITING, RUNNING, DONE, FAILED };

struct job {
    struct cuda_variant variant;
    int capability;
    enum state state;
    struct cuda_code code;
    struct lab_err err;
    struct job *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *jobs; /* the newest first */
    int threads, running;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

#define THREADS_MAX 8

static struct job *find(const struct cuda_variant *variant, int capability) {
    struct job *job = all.jobs;
    while (job &&
           (job->capability != capability || memcmp(&job->variant, variant, sizeof *variant) != 0))
        job = job->next;
    return job;
}

static struct job *add(const struct cuda_variant *variant, int capability) {
    struct job *job = lab_mem_alloc(1, sizeof *job);
    *job = (struct job){.variant = *variant, .capability = capability, .next = all.jobs};
    all.jobs = job;
    return job;
}

static int refuse_capability(enum cuda_kernel_id kernel, int capability, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "kernel '%s' isn't for GPUs of compute capability %d.%d",
                       cuda_kernel_rows[kernel].name, capability / 10, capability % 10);
}

/* Does a waiting job; the lock is held before and after, not meanwhile. */
static void run(struct job *job) {
    job->state = RUNNING;
    all.running++;
    pthread_mutex_unlock(&all.lock);
    LAB_AUTO(arena, arena);
    char architecture[16], *code = NULL;
    size_t length = 0;
    struct lab_err err = LAB_ERR_INIT;
    enum cuda_kernel_id kernel = (enum cuda_kernel_id)job->variant.kernel;
    architecture_here(kernel, job->capability, architecture);
    int status = cuda_kernel_runs_on(kernel, job->capability)
                     ? compile_variant(&job->variant, architecture, lab_kernel_cache_folder(&arena),
                                       &code, &length, &err)
                     : refuse_capability(kernel, job->capability, &err);
    pthread_mutex_lock(&all.lock);
    job->code = (struct cuda_code){code, length};
    job->err = err;
    job->state = status ? FAILED : DONE;
    all.running--;
    pthread_cond_broadcast(&all.changed);
}

static struct job *next_waiting(void) {
    struct job *oldest = NULL;
    for (struct job *job = all.jobs; job; job = job->next)
        if (job->state == WAITING)
            oldest = job;
    return oldest;
}

static void *thread_main(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&all.lock);
    for (struct job *job; (job = next_waiting());)
        run(job);
    all.threads--;
    pthread_cond_broadcast(&all.changed);
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

/* One more thread, if it helps; where none can be started, cuda_code_get does the work. */
static void start_thread(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread;
    pthread_attr_t attributes;
    if (all.threads >= THREADS_MAX || all.threads >= cores)
        return;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)8 << 20); /* a compiler recurses */
    if (pthread_create(&thread, &attributes, thread_main, NULL) == 0)
        all.threads++;
    pthread_attr_destroy(&attributes);
}

void cuda_code_request(const struct cuda_variant *variant, int capability) {
    pthread_mutex_lock(&all.lock);
    if (!find(variant, capability)) {
        add(variant, capability);
        start_thread();
    }
    pthread_mutex_unlock(&all.lock);
}

int cuda_code_get(const struct cuda_variant *variant, int capability, struct cuda_code *ret_code,
                  struct lab_err *err) {
    pthread_mutex_lock(&all.lock);
    struct job *job = find(variant, capability);
    if (!job)
        job = add(variant, capability);
    if (job->state == WAITING)
        run(job);
    while (job->state == RUNNING)
        pthread_cond_wait(&all.changed, &all.lock);
    bool done = job->state == DONE;
    if (done)
        *ret_code = job->code;
    else if (err)
        *err = job->err;
    pthread_mutex_unlock(&all.lock);
    return done ? 0 : -1;
}

void cuda_code_settle(void) {
    pthread_mutex_lock(&all.lock);
    while (all.threads > 0 || all.running > 0)
        pthread_cond_wait(&all.changed, &all.lock);
    pthread_mutex_unlock(&all.lock);
}

void cuda_code_forget(void) {
    cuda_code_settle();
    pthread_mutex_lock(&all.lock);
    while (all.jobs) {
        struct job *job = all.jobs;
        all.jobs = job->next;
        lab_mem_free((char *)job->code.bytes);
        lab_mem_free(job);
    }
    pthread_mutex_unlock(&all.lock);
}
