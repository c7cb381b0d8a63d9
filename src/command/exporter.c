/*
 * exporter.c: `gpulab exporter`: what is sampled, for Prometheus to fetch. Runs until it is told to
 * end. The sampler's lanes have threads of their own; here one loop takes what they found and
 * answers who asks, neither of which ever waits.
 */
#include "command/command.h"

#include "base/clock.h"
#include "base/tty/stop.h"
#include "device/watched_gpus.h"
#include "machine/machine.h"
#include "probe/sampler.h"
#include "serve/serve.h"
#include "vendor/nvml_session.h"
#include "version.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_PORT 9400 /* dcgm-exporter's */

struct exporter_config {
    const char *listen;
    double interval_s;
    bool demo;
};

static const struct lab_option exporter_options[] = {
    {"listen", LAB_OPTION_STRING, offsetof(struct exporter_config, listen),
     .fallback = "127.0.0.1:9400", .value_name = "ADDRESS", .letter = 'l',
     .help = "where to listen: host:port, [::1]:port, :port for every address, or a port alone"},
    {"interval", LAB_OPTION_DURATION, offsetof(struct exporter_config, interval_s),
     .fallback = "1s", .min = 0.01, .max = 3600, .letter = 'i', .help = "how often to sample"},
    {"demo", LAB_OPTION_FLAG, offsetof(struct exporter_config, demo),
     .help = "serve a simulated machine with GPUs; all of its lines say so"},
    {NULL},
};

struct exporter {
    const struct lab_command_call *call;
    struct lab_listen place;
    struct lab_sampler *sampler;
    struct lab_scrape *scrape;
    struct lab_http *http;
    const char **names; /* of entities, for messages */
    int name_count;
    const char *said; /* why the driver is waited for, if that was told; NULL = nothing was */
    bool knows_driver;
};

/* --- what happens, as lines --- */

static void name_entity(void *state, int number, const struct lab_entity *entity) {
    struct exporter *exporter = state;
    while (exporter->name_count <= number) {
        LAB_PUSH(exporter->names, exporter->name_count) = "";
    }
    if (*exporter->names[number])
        return;
    exporter->names[number] =
        entity->kind == LAB_ENTITY_GPU
            ? lab_arena_printf(exporter->call->arena, "GPU %d (%s)", entity->index, entity->id)
            : lab_arena_strdup(exporter->call->arena, entity->id);
}

static void tell_event(void *state, const struct lab_sample_event *event) {
    struct exporter *exporter = state;
    bool known = event->entity >= 0 && event->entity < exporter->name_count;
    const char *name = known ? exporter->names[event->entity] : "the NVIDIA driver";
    if (event->kind == LAB_EVENT_GAP && exporter->said &&
        lab_str_equal(event->text, exporter->said))
        exporter->said = NULL; /* as what is missing, when it began */
    else if (event->kind == LAB_EVENT_GAP)
        lab_console_note("%s has no samples: %s", name, event->text);
    else if (event->kind == LAB_EVENT_BACK)
        lab_console_note("%s is back after %.1f s", name,
                         (double)event->number / (double)LAB_NS_PER_S);
    else if (event->kind == LAB_EVENT_XID)
        lab_console_note("%s: Xid %lld", name, (long long)event->number);
}

static void pass_tick(void *state, const struct lab_tick *tick) {
    (void)state;
    (void)tick;
}

static void pass_processes(void *state, const struct lab_process_list *list) {
    (void)state;
    (void)list;
}

/* --- pages --- */

static void write_metrics(void *state, struct lab_str *out) {
    struct exporter *exporter = state;
    struct lab_sampler_stats stats;
    lab_sampler_stats(exporter->sampler, &stats);
    lab_scrape_set_stats(exporter->scrape, &stats);
    lab_scrape_write(exporter->scrape, out);
}

static void write_start(void *state, struct lab_str *out) {
    (void)state;
    lab_str_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<title>gpulab exporter</title></head>\n<body><h1>gpulab exporter</h1>\n"
                     "<p>gpulab " LAB_VERSION ": the measurements of this machine for Prometheus "
                     "are at <a href=\"/metrics\">/metrics</a>.</p>\n</body></html>\n");
}

static void write_health(void *state, struct lab_str *out) {
    (void)state;
    lab_str_add(out, "ok\n");
}

/* --- the loop --- */

/* Once the sampler has started it: before that, asking might take as long as that does. */
static void ask_driver(struct exporter *exporter) {
    char version[96] = "";
    unsigned generation;
    if (exporter->knows_driver || lab_sampler_refusal(exporter->sampler, "nvml") ||
        lab_nvml_enter(&generation, NULL) < 0)
        return;
    const struct lab_nvml *nvml = lab_nvml_load(NULL);
    if (nvml->nvmlSystemGetDriverVersion &&
        nvml->nvmlSystemGetDriverVersion(version, sizeof version) == LAB_NVML_SUCCESS)
        lab_scrape_set_driver(exporter->scrape, version);
    lab_nvml_leave();
    exporter->knows_driver = true;
}

static void take(struct exporter *exporter) {
    const struct lab_sink_samples lines = {name_entity, pass_tick, tell_event, pass_processes,
                                           exporter};
    const struct lab_sink_samples scrape = lab_scrape_sink(exporter->scrape);
    const struct lab_sink_samples *const sinks[] = {&scrape, &lines, NULL};
    struct lab_sink_fan fan = {sinks};
    struct lab_sink_samples sink = lab_sink_fan(&fan);
    ask_driver(exporter);
    lab_sampler_take(exporter->sampler, &sink);
    lab_http_changed(exporter->http);
}

static void loop(struct exporter *exporter, int64_t interval_ns, const sigset_t *open_signals) {
    int sampler_fd = lab_sampler_fd(exporter->sampler);
    struct pollfd fds[] = {{.fd = lab_http_fd(exporter->http), .events = POLLIN},
                           {.fd = sampler_fd, .events = POLLIN}};
    while (lab_stop_level() == 0) {
        int64_t wait_ns = lab_http_timeout_ms(exporter->http) * LAB_NS_PER_MS;
        if (sampler_fd < 0 && (wait_ns < 0 || wait_ns > interval_ns))
            wait_ns = interval_ns;
        struct timespec wait = {wait_ns / LAB_NS_PER_S, wait_ns % LAB_NS_PER_S};
        fds[0].revents = fds[1].revents = 0;
        /* signals come while it waits and at no other time, so that none is overlooked */
        ppoll(fds, 2, wait_ns < 0 ? NULL : &wait, open_signals);
        if (sampler_fd < 0 || fds[1].revents)
            take(exporter);
        lab_http_run(exporter->http);
    }
}

static void block_signals(sigset_t *ret_before) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, ret_before);
    signal(SIGPIPE, SIG_IGN); /* whoever read our messages may go; the exporter stays */
}

/* --- beginning --- */

static void say_what_is_missing(struct exporter *exporter) {
    for (int i = 0; lab_probes[i]; i++) {
        const char *why = lab_sampler_refusal(exporter->sampler, lab_probes[i]->name);
        if (why && !lab_str_equal(lab_probes[i]->name, "replay"))
            lab_console_note("without %s: %s", lab_probes[i]->without, why);
        if (why && lab_sampler_awaits(exporter->sampler, lab_probes[i]->name))
            exporter->said = why;
    }
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !lab_sampler_refusal(exporter->sampler, "nvml"))
        lab_console_note("CUDA_VISIBLE_DEVICES='%s' hides the GPUs that it doesn't name", visible);
}

static void say_where(const struct exporter *exporter) {
    const struct lab_command_call *call = exporter->call;
    if (!exporter->place.loopback)
        lab_console_note("other machines can reach %s, without a password", exporter->place.url);
    if (call->console->json) {
        struct lab_value *map = lab_value_map(call->arena);
        const char *url = lab_arena_printf(call->arena, "%s/metrics", exporter->place.url);
        lab_value_set_string(call->arena, map, "url", url);
        lab_value_set_int(call->arena, map, "pid", getpid());
        lab_console_print_json(call->console, map);
        fflush(call->console->out); /* whoever started it waits for this */
    } else if (!call->console->quiet) {
        lab_console_say("listening on %s/metrics", exporter->place.url);
    }
}

static int start_http(struct exporter *exporter, const struct lab_http_page *pages,
                      struct lab_err *err) {
    struct lab_http_setup setup = {
        .fd = exporter->place.fd, .pages = pages, .loopback = exporter->place.loopback};
    exporter->place.fd = -1;
    return lab_http_open(&setup, &exporter->http, err);
}

static int serve(struct exporter *exporter, const struct lab_sampler_config *config,
                 struct lab_err *err) {
    const struct lab_http_page pages[] = {
        {"/metrics", LAB_SCRAPE_CONTENT_TYPE, write_metrics, exporter},
        {"/", "text/html; charset=utf-8", write_start, NULL},
        {"/healthz", "text/plain; charset=utf-8", write_health, NULL},
        {NULL},
    };
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    struct lab_scrape_setup setup = {.host = host,
                                     .driver = "",
                                     .version = LAB_VERSION,
                                     .interval_ns = config->setup.interval_ns};
    exporter->scrape = lab_scrape_open(&setup);
    sigset_t before;
    block_signals(&before); /* the sampler's threads inherit it: signals are for this one */
    lab_stop_watch(NULL, NULL);
    int result = lab_sampler_open(config, &exporter->sampler, err);
    if (result == 0)
        result = start_http(exporter, pages, err);
    if (result == 0) {
        if (!exporter->call->console->quiet)
            say_what_is_missing(exporter);
        say_where(exporter);
        loop(exporter, config->setup.interval_ns, &before);
    }
    lab_http_close(exporter->http);
    lab_sampler_close(exporter->sampler);
    lab_scrape_close(exporter->scrape);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static int exporter_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct exporter_config *config = call->config;
    struct exporter exporter = {.call = call, .place.fd = -1};
    struct lab_machine *machine;
    if ((config->demo && lab_nvml_use_demo(err) < 0) || lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    struct lab_sampler_config sampler = {
        .setup = {.machine = machine,
                  .clock = lab_clock_system(),
                  .interval_ns = (int64_t)(config->interval_s * (double)LAB_NS_PER_S),
                  .root = "",
                  .speed = 1}};
    int result = lab_device_watched_gpus(machine, call->shared->device, call->arena, &sampler.gpus,
                                         &sampler.gpu_count, err);
    if (result == 0)
        result = lab_listen_open(config->listen ? config->listen : "", DEFAULT_PORT,
                                 &exporter.place, err);
    if (result == 0)
        result = serve(&exporter, &sampler, err);
    if (exporter.place.fd >= 0)
        close(exporter.place.fd);
    lab_mem_free(exporter.names);
    lab_machine_close(machine);
    return result;
}

/* --- manual --- */

static const struct lab_manual_example examples[] = {
    {"gpulab exporter", "everything, for a Prometheus on this machine"},
    {"gpulab exporter --listen :9400", "for one on another machine"},
    {"gpulab exporter --listen 0 --json", "on any free port, printed as JSON"},
    {"gpulab exporter --device cuda:0,1 --interval 200ms", "two GPUs, five times a second"},
    {"gpulab exporter --demo", "simulated GPUs, to build a dashboard without one"},
    {NULL},
};

const struct lab_command lab_command_exporter = {
    .name = "exporter",
    .summary = "serve what is measured to Prometheus",
    .usage = "",
    .description =
        "Samples GPUs, CPUs, memory, NUMA nodes and the processes on GPUs, and answers at "
        "http://ADDRESS/metrics in Prometheus's text format. Ctrl-C or TERM ends it with exit "
        "status 0. GPUs have dcgm-exporter's names and labels, so that dashboards made for it "
        "work; every metric also has a name of ours, gpulab_*, in base units. What is unknown is "
        "left out; of a GPU that is lost only gpulab_device_up 0 remains, until it is back.\n"
        "\n"
        "It listens on 127.0.0.1:9400 by default. There is no authentication. With an address that "
        "other machines can reach, their users can read measurements and process names, but no "
        "command lines.",
    .options = exporter_options,
    .config_size = sizeof(struct exporter_config),
    .uses_device = true,
    .device_help = "which GPUs: cuda (all), cuda:0, cuda:1,3; cpu = the host only",
    .max_words = 0,
    .examples = examples,
    .run = exporter_run,
};
