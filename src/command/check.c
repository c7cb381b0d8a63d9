/*
 * check.c: `gpulab check`: is this machine healthy? The tests are src/check's. Those of real GPUs
 * run in a process of their own, which this one never waits for beyond the limit: a driver that
 * hangs can hold a process for ever.
 */
#include "check/check.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/out_file.h"
#include "base/json.h"
#include "base/list.h"
#include "base/subprocess.h"
#include "base/tty/interrupt.h"
#include "command/command.h"
#include "device/device.h"
#include "doc/doc.h"
#include "machine/machine.h"
#include "run/run_study.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INSIDE           "inside" /* the word of the process that may hang */
#define OUTPUT_MOST      ((size_t)64 << 20)
#define FILE_BYTES_MOST  ((size_t)1 << 20)
#define LEARN_FACTOR     3
#define END_S            2.0
#define DEFAULT_SELECTOR "cuda"

struct check_config {
    int64_t level, seed;
    const char *against, *learn, *textfile, *output, *only, *fail_on;
    double limit_s;
};

#define AT(field) offsetof(struct check_config, field)

static const struct lab_option check_options[] = {
    {"level", LAB_OPTION_INT, AT(level), .fallback = "1", .min = 1, .max = LAB_CHECK_LEVELS,
     .letter = 'l', .value_name = "N",
     .help = "1: what the driver reports, at most 15 s; 2: rates too, 5 min; 3: long tests too, "
             "1 h"},
    {"against", LAB_OPTION_STRING, AT(against), .value_name = "FILE",
     .help = "expected values from this file, instead of those that ship"},
    {"learn", LAB_OPTION_STRING, AT(learn), .value_name = "FILE",
     .help = "measure rates three times and write them as this fleet's expected values; a file "
             "that is there is extended"},
    {"only", LAB_OPTION_STRING, AT(only), .value_name = "TEST",
     .help = "this test alone; several with commas"},
    {"fail-on", LAB_OPTION_CHOICE, AT(fail_on), .fallback = "monitor",
     .choices = lab_check_severities,
     .help = "the least severity of a failure that makes the exit status 1"},
    {"limit", LAB_OPTION_DURATION, AT(limit_s), .fallback = "0s", .max = 86400,
     .value_name = "TIME", .help = "longest time, if not the level's own"},
    {"textfile", LAB_OPTION_STRING, AT(textfile), .value_name = "FILE",
     .help = "also write metrics for node-exporter's textfile collector"},
    {"output", LAB_OPTION_STRING, AT(output), .letter = 'o', .value_name = "FILE",
     .help = "also write the page, by the file's ending: .html, .md, .json"},
    {"seed", LAB_OPTION_INT, AT(seed), .fallback = "42", .min = 0, .max = 0x1p53, .value_name = "N",
     .help = "of all random data"},
    {NULL},
};

static enum lab_check_severity least_of(const struct check_config *config) {
    return (enum lab_check_severity)lab_str_find(config->fail_on, lab_check_severities);
}

static double limit_of(const struct check_config *config) {
    double own = lab_check_limit_s((int)config->level) * (config->learn ? LEARN_FACTOR : 1);
    return config->limit_s > 0 ? config->limit_s : own;
}

/* Ending a process that hangs takes a moment of the limit too. */
static double inner_limit_of(const struct check_config *config) {
    double limit_s = limit_of(config);
    return limit_s - fmin(END_S, limit_s / 4);
}

static const char *limit_text(const struct check_config *config, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    double limit_s = limit_of(config);
    lab_str_add_duration(&text, limit_s, limit_s < 1 ? LAB_DURATION_PRECISE : LAB_DURATION_ROUNDED);
    return lab_arena_strdup(arena, text.text);
}

static const char *selector_of(const struct lab_command_call *call) {
    const char *device = lab_command_device(call);
    return device ? device : DEFAULT_SELECTOR;
}

static bool is_simulated(const struct lab_command_call *call) {
    return lab_str_starts(selector_of(call), "sim");
}

/* --- what is expected --- */

static int read_expected_file(const char *path, struct lab_arena *arena,
                              struct lab_expected *ret_expected, struct lab_err *err) {
    char *text;
    size_t length;
    if (lab_file_read(path, FILE_BYTES_MOST, arena, &text, &length, err) < 0)
        return -1;
    return lab_expected_read(text, length, path, arena, ret_expected, err);
}

static int read_expected(const struct lab_command_call *call, struct lab_expected **ret_items,
                         int *ret_count, struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_config_path path = lab_run_path(NULL, call->arena);
    struct lab_expected *items = NULL;
    int count = 0;
    *ret_items = NULL;
    *ret_count = 0;
    if (!config->against && is_simulated(call))
        return 0; /* files are about hardware: a simulated GPU has its model's name alone */
    if (config->against) {
        items = lab_arena_alloc(call->arena, 1, sizeof *items);
        *ret_items = items;
        *ret_count = 1;
        return read_expected_file(config->against, call->arena, items, err);
    }
    const char *const *names = lab_config_options(&path, "expected", call->arena);
    for (int i = 0; names[i]; i++) {
        const char *text, *origin;
        size_t length;
        const char *file = lab_arena_printf(call->arena, "expected/%s.yaml", names[i]);
        struct lab_expected *item = &LAB_ADD(items, count, call->arena);
        if (lab_config_read(&path, file, call->arena, &text, &length, &origin, err) < 0 ||
            lab_expected_read(text, length, origin, call->arena, item, err) < 0)
            return -1;
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}

/* The names of --only, NULL-terminated; NULL = all. */
static int read_only(const struct lab_command_call *call, const char *const **ret_only,
                     struct lab_err *err) {
    const struct check_config *config = call->config;
    const char **names = NULL;
    int count = 0;
    char *rest = NULL, *text = config->only ? lab_arena_strdup(call->arena, config->only) : NULL;
    for (char *name = text ? strtok_r(text, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest)) {
        const struct lab_check_test *test = lab_check_test_find(name, err);
        if (!test)
            return lab_err_context(err, "--only");
        if (test->level > config->level)
            return lab_err_set(err, LAB_ERR_USER,
                               "--only %s: it is a test of level %d: add "
                               "--level %d",
                               name, test->level, test->level);
        LAB_ADD(names, count, call->arena) = name;
    }
    if (config->only && count == 0)
        return lab_err_set(err, LAB_ERR_USER, "--only: name a test");
    if (count)
        LAB_ADD(names, count, call->arena) = NULL;
    *ret_only = names;
    return 0;
}

/* --- in this process --- */

static bool is_instance(const struct lab_device_ref *ref) {
    return ref->uuid && lab_str_starts(ref->uuid, "MIG-");
}

/* One instance stands for its GPU: facts are the GPU's. Why rates can't be measured; NULL = they
 * can. */
static const char *join_instances(struct lab_device_list *devices, struct lab_arena *arena) {
    const char *why = NULL;
    int kept = 0;
    for (int i = 0; i < devices->count; i++) {
        const struct lab_device_ref *ref = &devices->items[i];
        if (is_instance(ref) && !why)
            why = lab_arena_printf(arena, "GPU %d is in MIG mode: rates are those of whole GPUs",
                                   ref->unit);
        if (!is_instance(ref) || kept == 0 || !is_instance(&devices->items[kept - 1]) ||
            devices->items[kept - 1].unit != ref->unit)
            devices->items[kept++] = *ref;
    }
    devices->count = kept;
    return why;
}

/* Without a word about devices of other kinds: a check is about GPUs. */
static int select_gpus(const struct lab_command_call *call, const struct lab_machine *machine,
                       struct lab_device_list *ret_devices, struct lab_err *err) {
    const char *why = NULL;
    if (lab_command_device(call))
        return lab_device_select(machine, selector_of(call), call->arena, ret_devices, err);
    const struct lab_backend *backend = lab_backend_find(DEFAULT_SELECTOR);
    if (backend->select(machine, "", call->arena, ret_devices, &why, err) < 0)
        return -1;
    return ret_devices->count > 0
               ? 0
               : lab_err_set(err, LAB_ERR_USER, "no GPU to check: %s", why ? why : "none found");
}

/* A file about another model would be ignored, and nothing compared. */
static int check_model(const char *against, const struct lab_check_setup *setup,
                       struct lab_err *err) {
    const char *name = setup->devices.items[0].description;
    if (!against || setup->expected_count == 0)
        return 0;
    for (int i = 0; i < setup->devices.count; i++)
        if (lab_expected_find(setup->expected, setup->expected_count,
                              setup->devices.items[i].description))
            return 0;
    return lab_err_set(err, LAB_ERR_USER, "--against %s is about %s, and this host has %.*s",
                       against, setup->expected->model, (int)strcspn(name, ","), name);
}

static int make_setup(const struct lab_command_call *call, const struct lab_machine *machine,
                      struct lab_check_setup *ret_setup, struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_expected *expected;
    struct lab_check_setup setup = {.machine = machine,
                                    .all_devices = !lab_command_device(call) ||
                                                   !strpbrk(selector_of(call), ",/"),
                                    .level = (int)config->level,
                                    .limit_s = inner_limit_of(config),
                                    .seed = (uint64_t)config->seed,
                                    .learns = config->learn != NULL};
    if (read_expected(call, &expected, &setup.expected_count, err) < 0 ||
        read_only(call, &setup.only, err) < 0 ||
        select_gpus(call, machine, &setup.devices, err) < 0)
        return -1;
    setup.expected = expected;
    if (!lab_command_device(call))
        setup.no_rates = join_instances(&setup.devices, call->arena);
    if (setup.devices.count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is no GPU to check");
    for (int i = 0; i < setup.devices.count; i++) {
        const struct lab_device_ref *ref = &setup.devices.items[i];
        if (lab_str_equal(ref->backend, "cpu") || ref->slices > 1 ||
            (is_instance(ref) && !setup.no_rates) ||
            !lab_str_equal(ref->backend, setup.devices.items[0].backend))
            return lab_err_set(err, LAB_ERR_USER,
                               "%s isn't a whole GPU: check takes GPUs of one machine, such as "
                               "cuda or sim:h200-8",
                               ref->name);
        if (!lab_str_equal(ref->definition, setup.devices.items[0].definition))
            return lab_err_set(err, LAB_ERR_USER, "%s and %s are of two machines: check one",
                               setup.devices.items[0].name, ref->name);
    }
    if (check_model(config->against, &setup, err) < 0)
        return -1;
    if (lab_command_device(call) && strrchr(setup.devices.items[0].name, ':') &&
        lab_str_equal(setup.devices.items[0].name, selector_of(call)))
        setup.all_devices = false; /* one of several was named */
    *ret_setup = setup;
    return 0;
}

static int check_here(const struct lab_command_call *call, struct lab_check_result *ret_result,
                      void (*told)(void *state, const struct lab_check_finding *finding),
                      void *state, struct lab_err *err) {
    struct lab_machine *machine;
    struct lab_check_setup setup;
    if (lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    int result = make_setup(call, machine, &setup, err);
    if (result == 0) {
        setup.told = told;
        setup.state = state;
        lab_check_run(&setup, call->arena, ret_result);
    }
    lab_machine_close(machine);
    return result;
}

/* --- in a process of its own: a line of JSON for each finding, then one for the rest --- */

static void tell_finding(void *state, const struct lab_check_finding *finding) {
    const struct lab_command_call *call = state;
    LAB_AUTO(arena, arena);
    const char *line = lab_json_text(lab_check_finding_value(finding, &arena), &arena);
    lab_console_write(call->console, line, strlen(line));
    lab_console_write(call->console, "\n", 1);
    lab_console_finish();
}

static int run_inside(const struct lab_command_call *call, struct lab_err *err) {
    struct lab_check_result result = {0};
    struct lab_value *map = lab_value_map(call->arena);
    if (check_here(call, &result, tell_finding, (void *)(uintptr_t)call, err) < 0)
        return -1;
    lab_value_set_string(call->arena, map, "gpu", result.gpu_name);
    lab_value_set_int(call->arena, map, "gpus", result.gpu_count);
    if (result.driver)
        lab_value_set_string(call->arena, map, "driver", result.driver);
    const char *line = lab_json_text(map, call->arena);
    lab_console_write(call->console, line, strlen(line));
    lab_console_write(call->console, "\n", 1);
    return 0;
}

static void read_line(const char *line, struct lab_arena *arena, struct lab_check_result *result) {
    struct lab_value *map;
    struct lab_check_finding finding;
    if (lab_json_parse(line, strlen(line), "check", arena, &map, NULL) < 0 ||
        map->type != LAB_VALUE_MAP)
        return;
    if (lab_check_finding_read(map, arena, &finding) == 0) {
        LAB_ADD(result->findings, result->count, arena) = finding;
    } else if (lab_value_get(map, "gpus")) {
        result->gpu_name = lab_value_get_text(map, "gpu", "GPU");
        result->gpu_count = (int)lab_value_get_int(map, "gpus", 0);
        result->driver = lab_value_get_text(map, "driver", NULL);
    }
}

/* The words of its last error line, without "gpulab: ". */
static const char *last_line(char *text) {
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    return lab_str_starts(line, "gpulab: ") ? line + strlen("gpulab: ") : line;
}

static const char **child_words(const struct lab_command_call *call, struct lab_arena *arena) {
    const struct check_config *config = call->config;
    const char **words = NULL;
    int count = 0;
    const struct {
        const char *name, *value;
    } texts[] = {
        {"--against", config->against}, {"--learn", config->learn}, {"--only", config->only}};
    LAB_ADD(words, count, arena) = "/proc/self/exe";
    LAB_ADD(words, count, arena) = "check";
    LAB_ADD(words, count, arena) = INSIDE;
    if (lab_command_device(call)) {
        LAB_ADD(words, count, arena) = "--device";
        LAB_ADD(words, count, arena) = selector_of(call);
    }
    LAB_ADD(words, count, arena) = lab_arena_printf(arena, "--level=%d", (int)config->level);
    LAB_ADD(words, count, arena) = lab_arena_printf(arena, "--seed=%lld", (long long)config->seed);
    LAB_ADD(words, count, arena) = lab_arena_printf(arena, "--limit=%.3fs", limit_of(config));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value)
            LAB_ADD(words, count, arena) =
                lab_arena_printf(arena, "%s=%s", texts[i].name, texts[i].value);
    LAB_ADD(words, count, arena) = NULL;
    return words;
}

/* A file that can't be written hides no verdict: that is said behind it. False: there was one. */
static bool write_files(const struct lab_command_call *call,
                        const struct lab_check_result *result) {
    const struct check_config *config = call->config;
    const struct lab_doc *doc = lab_check_doc(result, least_of(config), call->arena);
    struct lab_err page = LAB_ERR_INIT, metrics = LAB_ERR_INIT;
    LAB_AUTO(str, text);
    bool failed = config->output && lab_doc_save(doc, config->output, &page) < 0;
    if (failed)
        lab_console_note("%s", page.text);
    lab_check_write_textfile(result, least_of(config), (int64_t)time(NULL), &text);
    if (!config->textfile ||
        lab_out_file_save(config->textfile, text.text, text.length, &metrics) == 0)
        return !failed;
    lab_console_note("%s", metrics.text);
    return false;
}

static bool is_interrupted(void *state) {
    (void)state;
    return lab_interrupt_seen();
}

static int check_outside(const struct lab_command_call *call, struct lab_check_result *ret_result,
                         struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_check_result result = {.level = (int)config->level, .gpu_name = "GPU"};
    struct lab_subprocess_result ended = {0};
    const char *const *only = NULL;
    struct lab_expected *expected;
    int count;
    /* what is the user's mistake is said before anything starts */
    if (read_only(call, &only, err) < 0 || read_expected(call, &expected, &count, err) < 0)
        return -1;
    static const struct lab_subprocess_watcher watcher = {.stopped = is_interrupted};
    lab_interrupt_watch(NULL);
    struct lab_subprocess_spec spec = {.argv = child_words(call, call->arena),
                                       .max_output_bytes = OUTPUT_MOST,
                                       .timeout_ns = (int64_t)(1e9 * inner_limit_of(config)),
                                       .watcher = &watcher};
    if (lab_subprocess_run(&spec, call->arena, &ended, err) < 0)
        return -1;
    for (char *line = ended.out, *end; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        read_line(line, call->arena, &result);
    }
    if (ended.stopped || lab_interrupt_seen()) /* the other process may have ended by it first */
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped before the check was done");
    result.duration_s = 1e-9 * (double)ended.duration_ns;
    if (!ended.timed_out && ended.exit_status != 0 && result.count == 0) {
        const char *why = last_line(ended.err);
        lab_check_complete(&result, only, why, call->arena);
        write_files(call, &result); /* yesterday's verdict no longer holds */
        return lab_err_set(err, LAB_ERR_USER, "%s",
                           lab_check_fit(lab_arena_printf(call->arena, "not checked: %s", why),
                                         LAB_CHECK_REASON_COLUMNS - (int)strlen("gpulab: "),
                                         call->arena));
    }
    if (ended.timed_out)
        lab_check_complete(&result, only,
                           lab_arena_printf(call->arena,
                                            "the driver didn't answer within the limit of %s",
                                            limit_text(config, call->arena)),
                           call->arena);
    else if (ended.exit_status != 0)
        lab_check_complete(
            &result, only,
            lab_arena_printf(call->arena, "the check ended early: %s",
                             ended.signal ? "killed by a signal" : last_line(ended.err)),
            call->arena);
    *ret_result = result;
    return 0;
}

/* --- its answer --- */

/* The file that is extended; NULL = there is none yet. */
static int read_before(const struct lab_command_call *call, struct lab_expected **ret_before,
                       struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_expected *before = lab_arena_alloc(call->arena, 1, sizeof *before);
    char *old;
    size_t length;
    *ret_before = NULL;
    if (!config->learn ||
        lab_file_read(config->learn, FILE_BYTES_MOST, call->arena, &old, &length, NULL) < 0)
        return 0;
    if (lab_expected_read(old, length, config->learn, call->arena, before, err) < 0)
        return lab_err_context(err, "--learn %s", config->learn);
    *ret_before = before;
    return 0;
}

static int learn(const struct lab_command_call *call, const struct lab_check_result *result,
                 struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_expected *before;
    const char *text;
    if (read_before(call, &before, err) < 0)
        return -1;
    if (lab_check_learn(result, before, call->arena, &text, err) < 0)
        return lab_err_context(err, "--learn %s", config->learn);
    if (lab_file_write_atomic(config->learn, text, strlen(text), err) < 0) {
        err->code = LAB_ERR_USER; /* no failure of the host */
        return -1;
    }
    return 0;
}

static int answer(const struct lab_command_call *call, const struct lab_check_result *result,
                  int *ret_status, struct lab_err *err) {
    const struct check_config *config = call->config;
    *ret_status = lab_check_status(result, least_of(config));
    if (call->console->json || !call->console->quiet) {
        lab_doc_print(lab_check_doc(result, least_of(config), call->arena), call->console);
    } else {
        const char *reason = lab_check_reason(result, least_of(config), call->arena);
        lab_console_write(call->console, reason, strlen(reason));
        lab_console_write(call->console, "\n", 1);
    }
    lab_console_finish();
    if (!write_files(call, result) && *ret_status == 0)
        *ret_status = 2;
    if (config->learn && learn(call, result, err) < 0)
        return -1;
    if (config->learn && !call->console->quiet)
        lab_console_note("%s holds the expected values: gpulab check --against %s", config->learn,
                         config->learn);
    return 0;
}

static int check_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct check_config *config = call->config;
    struct lab_check_result result;
    struct lab_expected *before;
    bool inside = call->word_count > 0 && lab_str_equal(call->words[0], INSIDE);
    if (call->word_count > 0 && !inside)
        return lab_err_set(err, LAB_ERR_USER, "check takes no word such as '%s'", call->words[0]);
    if (inside)
        return run_inside(call, err);
    if (config->learn && config->level < 2)
        return lab_err_set(err, LAB_ERR_USER, "--learn measures rates: add --level 2");
    if (lab_doc_check_output(config->output, err) < 0 ||
        lab_command_check_output(call, config->output, err) < 0 ||
        lab_command_check_output(call, config->textfile, err) < 0 ||
        lab_command_check_output(call, config->learn, err) < 0 ||
        read_before(call, &before, err) < 0)
        return -1;
    if ((is_simulated(call) ? check_here(call, &result, NULL, NULL, err)
                            : check_outside(call, &result, err)) < 0) {
        if (err->code != LAB_ERR_INTERRUPTED)
            err->code = LAB_ERR_USER; /* could not be checked: exit status 2 */
        return -1;
    }
    return answer(call, &result, ret_status, err);
}

/* --- manual --- */

static const struct lab_manual_section *check_sections(struct lab_arena *arena, const char *word,
                                                       struct lab_err *err) {
    struct lab_topic *topics = NULL;
    int count = 0;
    const struct lab_check_test *test;
    if (word && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS)) {
        lab_err_set(err, LAB_ERR_USER, "check has no '%s'", word);
        return NULL;
    }
    for (int i = 0; (test = lab_check_test_at(i)); i++)
        LAB_ADD(topics, count, arena) =
            (struct lab_topic){test->name,
                               lab_arena_printf(arena, "level %d, %s: %s", test->level,
                                                lab_check_severities[test->severity], test->help),
                               NULL};
    LAB_ADD(topics, count, arena) = (struct lab_topic){NULL, NULL, NULL};
    return lab_command_topic_section("Tests", topics, "docs/CHECK.md has what each expects.",
                                     arena);
}

static const struct lab_manual_example examples[] = {
    {"gpulab check", "what the driver reports of all GPUs, in seconds"},
    {"gpulab check --level 2 --output check.html", "with rates; the answer as a page"},
    {"gpulab check --quiet --fail-on reset", "one line, for a Slurm prolog"},
    {"gpulab check --level 2 --learn fleet.yaml", "what healthy hosts of this fleet reach"},
    {"gpulab check --level 2 --against fleet.yaml", "compare with that"},
    {"gpulab check --level 2 --device sim:h200-8", "on a simulated machine"},
    {NULL},
};

const struct lab_command lab_command_check = {
    .name = "check",
    .summary = "check whether the GPUs of this host are healthy, for prologs and by hand",
    .usage = "",
    .description =
        "Level 1 reads what driver and kernel report and opens no GPU. Level 2 measures copies, "
        "products, memory bandwidth and links between GPUs, and compares them with expected "
        "values and between GPUs. Level 3 adds a soak, variation, contention and memory "
        "patterns.\n"
        "\n"
        "A failure is tested twice more before it counts. A test that could not run is SKIPPED "
        "with its reason. Severity says what to do: isolate the host, reset the GPU, or monitor.\n"
        "\n"
        "The exit status is 0 where all is healthy and 1 after a failure. It is 2 where the host "
        "could not be checked: no GPU, a driver that doesn't answer, a test that broke, a wrong "
        "option. "
        "--quiet prints one line of at most 120 characters.",
    .options = check_options,
    .config_size = sizeof(struct check_config),
    .uses_device = true,
    .device_help = "GPUs to check; all of this host if not given",
    .max_words = 1,
    .examples = examples,
    .sections = check_sections,
    .run = check_run,
};
