/* server.c: an MLflow server, asked and told through its REST API. */
#include "track/mlflow/server.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/json.h"
#include "track/tracker_http.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MOST (64 << 20)

struct mlflow_server {
    struct track_http_settings settings;
    struct track_http *http;
    struct lab_arena *arena;
    const char *uri, *shown; /* without a '/' at its end; without user and password */
    const char *experiment, *run, *artifacts;
    bool shared, failed; /* several hosts write into the run; one of them has failed */
    struct lab_str body, answer;
};

/* --- the environment --- */

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static double number(const char *name, double fallback, double most) {
    const char *text = setting(name);
    double value = text ? strtod(text, NULL) : fallback;
    return value >= 0 && value <= most ? value : fallback;
}

const char *mlflow_uri(struct lab_arena *arena) {
    const char *uri = setting("MLFLOW_TRACKING_URI");
    if (!uri)
        return NULL;
    const char *scheme = strstr(uri, "://"), *host = scheme ? scheme + 3 : uri;
    size_t authority = strcspn(host, "/");
    const char *at = memrchr(host, '@', authority);
    size_t length = strlen(at ? at + 1 : host);
    while (length && (at ? at + 1 : host)[length - 1] == '/')
        length--;
    return lab_arena_printf(arena, "%.*s%.*s", (int)(host - uri), uri, (int)length,
                            at ? at + 1 : host);
}

struct mlflow_server *mlflow_server_open(struct lab_arena *arena, struct lab_err *err) {
    const char *uri = setting("MLFLOW_TRACKING_URI");
    if (!uri || !(lab_str_starts(uri, "http://") || lab_str_starts(uri, "https://"))) {
        lab_err_set(err, LAB_ERR_USER,
                    "set MLFLOW_TRACKING_URI to a server: http://127.0.0.1:5000%s",
                    uri ? "; other kinds of stores aren't written" : "");
        return NULL;
    }
    struct mlflow_server *server = lab_arena_alloc(arena, 1, sizeof *server);
    size_t length = strlen(uri);
    while (length && uri[length - 1] == '/')
        length--;
    *server = (struct mlflow_server){
        .arena = arena,
        .uri = lab_arena_strndup(arena, uri, length),
        .shown = mlflow_uri(arena),
        .settings = {.user = setting("MLFLOW_TRACKING_USERNAME"),
                     .password = setting("MLFLOW_TRACKING_PASSWORD"),
                     .token = setting("MLFLOW_TRACKING_TOKEN"),
                     .authority = setting("MLFLOW_TRACKING_SERVER_CERT_PATH"),
                     .certificate = setting("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
                     .timeout_s = number("MLFLOW_HTTP_REQUEST_TIMEOUT", 30, 3600),
                     .retries = (int)number("MLFLOW_HTTP_REQUEST_MAX_RETRIES", 3, 10)}};
    const char *insecure = setting("MLFLOW_TRACKING_INSECURE_TLS");
    server->settings.insecure =
        insecure && (lab_str_equal(insecure, "1") || strcasecmp(insecure, "true") == 0);
    server->http = track_http_open(&server->settings, err);
    if (!server->http)
        return NULL;
    lab_str_init(&server->body);
    lab_str_init(&server->answer);
    return server;
}

void mlflow_server_close(struct mlflow_server *server) {
    if (!server)
        return;
    track_http_close(server->http);
    lab_str_release(&server->body);
    lab_str_release(&server->answer);
}

/* --- requests --- */

/* Why a server refuses: its own words, a line of them. */
static int refuse(struct mlflow_server *server, const char *what, int status,
                  const struct lab_value *answer, struct lab_err *err) {
    char *reason = lab_arena_strdup(server->arena, lab_value_get_text(answer, "message", ""));
    reason[strcspn(reason, "\r\n")] = '\0';
    lab_str_make_printable(reason);
    if (status == 401 || status == 403)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s refuses access (%d): set MLFLOW_TRACKING_TOKEN, or "
                           "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
                           server->shown, status);
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s answers %d to %s%s%.300s", server->shown, status,
                       what, *reason ? ": " : "", reason);
}

/* The answer's status; -1 = there was none. */
static int send(struct mlflow_server *server, const char *method, const char *path,
                const char *body, size_t length, struct lab_value **ret_answer,
                struct lab_err *err) {
    struct track_http_request request = {
        .method = method,
        .url = lab_arena_printf(server->arena, "%s/api/2.0/%s", server->uri, path),
        .type = body == server->body.text ? "application/json" : "application/octet-stream",
        .body = body,
        .length = length};
    int status = 0;
    *ret_answer = NULL;
    if (track_http_send(server->http, &request, &status, &server->answer, err) < 0) {
        if (err && err->code == LAB_ERR_WRONG)
            lab_err_set(err, LAB_ERR_USER,
                        "its certificate isn't trusted: set MLFLOW_TRACKING_SERVER_CERT_PATH to "
                        "the authority's file");
        return lab_err_context(err, "%s", server->shown);
    }
    if (status == 200 || server->answer.length)
        lab_json_parse(server->answer.text, server->answer.length, "answer", server->arena,
                       ret_answer, NULL);
    return status;
}

static int post(struct mlflow_server *server, const char *path, struct lab_value **ret_answer,
                struct lab_err *err) {
    const char *full = lab_arena_printf(server->arena, "mlflow/%s", path);
    return send(server, "POST", full, server->body.text, server->body.length, ret_answer, err);
}

/* Where nothing but success will do. */
static int demand(struct mlflow_server *server, const char *path, struct lab_value **ret_answer,
                  struct lab_err *err) {
    int status = post(server, path, ret_answer, err);
    if (status >= 0 && status != 200)
        return refuse(server, path, status, *ret_answer, err);
    return status < 0 ? -1 : 0;
}

static void add_field(struct lab_str *out, const char *key, const char *text) {
    lab_str_printf(out, "%s\"%s\":", out->length > 1 ? "," : "", key);
    lab_track_add_text(out, text);
}

static struct lab_str *open_body(struct mlflow_server *server) {
    lab_str_clear(&server->body);
    lab_str_add(&server->body, "{");
    return &server->body;
}

/* --- the run --- */

static int get_experiment(struct mlflow_server *server, const char *name, struct lab_err *err) {
    struct lab_value *answer = NULL;
    LAB_AUTO(str, path);
    lab_str_add(&path, "mlflow/experiments/get-by-name?experiment_name=");
    track_http_add_encoded(&path, name);
    int status = send(server, "GET", path.text, NULL, 0, &answer, err);
    if (status < 0 || (status != 200 && status != 404))
        return status < 0 ? -1 : refuse(server, "experiments/get-by-name", status, answer, err);
    server->experiment =
        lab_value_get_text(lab_value_get(answer, "experiment"), "experiment_id", NULL);
    return 0;
}

/* Two of us may make it at the same time: the one that is refused finds the other's. */
static int find_experiment(struct mlflow_server *server, const char *name, struct lab_err *err) {
    struct lab_value *answer = NULL;
    for (int i = 0; i < 2; i++) {
        if (get_experiment(server, name, err) < 0)
            return -1;
        if (server->experiment)
            return 0;
        struct lab_str *body = open_body(server);
        add_field(body, "name", name);
        lab_str_add(body, "}");
        int status = post(server, "experiments/create", &answer, err);
        if (status < 0)
            return -1;
        server->experiment = lab_value_get_text(answer, "experiment_id", NULL);
        if (server->experiment)
            return 0;
        if (i == 1 || status != 400)
            return refuse(server, "experiments/create", status, answer, err);
    }
    return 0;
}

static const char *tag_of(const struct lab_value *run, const char *key) {
    const struct lab_value *tags = lab_value_get(lab_value_get(run, "data"), "tags");
    for (int i = 0; tags && i < tags->count; i++)
        if (lab_str_equal(lab_value_get_text(tags->items[i], "key", ""), key))
            return lab_value_get_text(tags->items[i], "value", "");
    return "";
}

/* Of several, the one with the least id: all hosts choose the same. */
static void take_run(struct mlflow_server *server, const struct lab_value *run) {
    const struct lab_value *info = lab_value_get(run, "info");
    const char *id = lab_value_get_text(info, "run_id", NULL);
    if (!id || (server->run && strcmp(server->run, id) < 0))
        return;
    server->run = id;
    server->artifacts = lab_value_get_text(info, "artifact_uri", "");
    server->failed = lab_str_equal(lab_value_get_text(info, "status", ""), "FAILED");
}

static int remove_run(struct mlflow_server *server, const char *id, struct lab_err *err) {
    struct lab_value *answer = NULL;
    struct lab_str *body = open_body(server);
    add_field(body, "run_id", id);
    lab_str_add(body, "}");
    return demand(server, "runs/delete", &answer, err);
}

static int find_run(struct mlflow_server *server, const struct lab_track_run *run,
                    struct lab_err *err) {
    struct lab_value *answer = NULL;
    struct lab_str *body = open_body(server);
    const char *attempt = lab_arena_printf(server->arena, "%d.%d", run->attempt, run->revision);
    lab_str_add(body, "\"experiment_ids\":[");
    lab_track_add_text(body, server->experiment);
    lab_str_printf(body, "],\"filter\":\"tags.gpulab_run = '%s'\",\"max_results\":100}", run->id);
    if (demand(server, "runs/search", &answer, err) < 0)
        return -1;
    const struct lab_value *runs = lab_value_get(answer, "runs");
    for (int i = 0; runs && i < runs->count; i++) {
        if (lab_str_equal(tag_of(runs->items[i], "gpulab_attempt"), attempt))
            take_run(server, runs->items[i]);
        else if (remove_run(server,
                            lab_value_get_text(lab_value_get(runs->items[i], "info"), "run_id", ""),
                            err) < 0)
            return -1;
    }
    return 0;
}

static int make_run(struct mlflow_server *server, const struct lab_track_run *run,
                    struct lab_err *err) {
    struct lab_value *answer = NULL;
    struct lab_str *body = open_body(server);
    add_field(body, "experiment_id", server->experiment);
    add_field(body, "run_name", run->name);
    lab_str_printf(body,
                   ",\"start_time\":%lld,\"tags\":[{\"key\":\"gpulab_run\",\"value\":\"%s\"},"
                   "{\"key\":\"gpulab_attempt\",\"value\":\"%d.%d\"}]}",
                   (long long)(run->start_wall_ns / LAB_NS_PER_MS), run->id, run->attempt,
                   run->revision);
    if (demand(server, "runs/create", &answer, err) < 0)
        return -1;
    take_run(server, lab_value_get(answer, "run"));
    return server->run ? 0
                       : lab_err_set(err, LAB_ERR_SYSTEM, "%s: no MLflow server", server->shown);
}

/* Several hosts may make it at once: whoever did so looked before, so that a pause later all see
 * the same runs. They keep one. Who finds one may have found it before another was made. */
static int join_run(struct mlflow_server *server, const struct lab_track_run *run,
                    struct lab_err *err) {
    const char *own = NULL;
    if (!server->run) {
        if (make_run(server, run, err) < 0)
            return -1;
        own = server->run;
    }
    lab_clock_sleep(lab_clock_system(), LAB_NS_PER_S);
    if (find_run(server, run, err) < 0)
        return -1;
    return !own || lab_str_equal(server->run, own) ? 0 : remove_run(server, own, err);
}

int mlflow_server_run(struct mlflow_server *server, const struct lab_track_run *run, bool make,
                      struct lab_err *err) {
    server->shared = *run->label;
    if (find_experiment(server, run->project, err) < 0 || find_run(server, run, err) < 0)
        return -1;
    if (make && *run->label)
        return join_run(server, run, err);
    if (server->run)
        return 0;
    if (!make)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s has the run no more: remove track/mlflow-*.log of the study to "
                           "send everything again",
                           server->shown);
    return make_run(server, run, err);
}

/* --- what is logged --- */

int mlflow_server_log(struct mlflow_server *server, const char *metrics, const char *params,
                      const char *tags, struct lab_err *err) {
    struct lab_value *answer = NULL;
    struct lab_str *body = open_body(server);
    add_field(body, "run_id", server->run);
    lab_str_add(body, ",\"metrics\":[");
    lab_str_add(body, metrics);
    lab_str_add(body, "],\"params\":[");
    lab_str_add(body, params);
    lab_str_add(body, "],\"tags\":[");
    lab_str_add(body, tags);
    lab_str_add(body, "]}");
    return demand(server, "runs/log-batch", &answer, err);
}

int mlflow_server_end(struct mlflow_server *server, bool failed, int64_t end_ms,
                      struct lab_err *err) {
    struct lab_value *answer = NULL;
    struct lab_str *body = open_body(server);
    add_field(body, "run_id", server->run);
    add_field(body, "status", failed || (server->shared && server->failed) ? "FAILED" : "FINISHED");
    lab_str_printf(body, ",\"end_time\":%lld}", (long long)end_ms);
    return demand(server, "runs/update", &answer, err);
}

#define PROXY "mlflow-artifacts:/"

int mlflow_server_upload(struct mlflow_server *server, const char *path, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, url);
    struct lab_value *answer = NULL;
    const char *slash = strrchr(path, '/');
    char *bytes;
    size_t length;
    if (!lab_str_starts(server->artifacts, PROXY) || server->artifacts[strlen(PROXY)] == '/')
        return 0;
    if (lab_file_read(path, FILE_MOST, &arena, &bytes, &length, err) < 0)
        return -1;
    lab_str_printf(&url, "mlflow-artifacts/artifacts/%s/", server->artifacts + strlen(PROXY));
    track_http_add_encoded(&url, slash ? slash + 1 : path);
    int status = send(server, "PUT", url.text, bytes, length, &answer, err);
    if (status >= 0 && status != 200)
        return refuse(server, "an artefact", status, answer, err);
    return status < 0 ? -1 : 0;
}
