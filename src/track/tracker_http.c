/*
 * tracker_http.c: libcurl, as far as it is needed. Its numbers of options never change, so that
 * they are declared here and no header is needed to build.
 */
#include "track/tracker_http.h"

#include "base/clock.h"
#include "base/dl.h"
#include "base/tty/stop.h"
#include "version.h"

#include <string.h>

enum {
    OPT_SSLCERT = 10025,
    OPT_URL = 10002,
    OPT_WRITEDATA = 10001,
    OPT_ERRORBUFFER = 10010,
    OPT_POSTFIELDS = 10015,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_CUSTOMREQUEST = 10036,
    OPT_CAINFO = 10065,
    OPT_USERNAME = 10173,
    OPT_PASSWORD = 10174,
    OPT_WRITEFUNCTION = 20011,
    OPT_XFERINFOFUNCTION = 20219,
    OPT_POSTFIELDSIZE_LARGE = 30120,
    OPT_NOPROGRESS = 43,
    OPT_SSL_VERIFYPEER = 64,
    OPT_SSL_VERIFYHOST = 81,
    OPT_NOSIGNAL = 99,
    OPT_TIMEOUT_MS = 155,
    OPT_CONNECTTIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
};
enum { INFO_RESPONSE_CODE = 0x200002, INFO_RETRY_AFTER = 0x600039 };
enum { PROTOCOL_HTTP = 1, PROTOCOL_HTTPS = 2 };
enum { CURL_OK = 0, CURL_TIMEOUT = 28, CURL_ABORTED = 42, CURL_NOTHING = 52 };
enum { CURL_PARTIAL = 18, CURL_SEND = 55, CURL_RECEIVE = 56, CURL_VERIFY = 60 };
#define ERROR_SIZE  256
#define ANSWER_MOST (16 << 20)
#define CONNECT_MS  5000
#define PAUSE_NS    (LAB_NS_PER_S / 2)
#define PAUSE_MOST  (30 * LAB_NS_PER_S)

static struct {
    void *(*init)(void);
    int (*setopt)(void *, int, ...);
    int (*perform)(void *);
    int (*getinfo)(void *, int, ...);
    void (*cleanup)(void *);
    const char *(*error)(int);
    void *(*append)(void *, const char *);
    void (*free_all)(void *);
} curl;

static const struct lab_dl_symbol symbols[] = {
    {"curl_easy_init", &curl.init, "no server can be reached"},
    {"curl_easy_setopt", &curl.setopt, "no server can be reached"},
    {"curl_easy_perform", &curl.perform, "no server can be reached"},
    {"curl_easy_getinfo", &curl.getinfo, "no server can be reached"},
    {"curl_easy_cleanup", &curl.cleanup, "no server can be reached"},
    {"curl_easy_strerror", &curl.error, "no server can be reached"},
    {"curl_slist_append", &curl.append, "no server can be reached"},
    {"curl_slist_free_all", &curl.free_all, "no server can be reached"},
    {NULL},
};

struct track_http {
    void *easy;
    const struct track_http_settings *settings;
    char problem[ERROR_SIZE];
};

static size_t take_answer(const char *bytes, size_t size, size_t count, void *state) {
    struct lab_str *body = state;
    if (body->length + size * count > ANSWER_MOST)
        return 0;
    lab_str_add_bytes(body, bytes, size * count);
    return size * count;
}

/* TERM ends a request that hangs. */
static int look_for_stop(void *state, int64_t a, int64_t b, int64_t c, int64_t d) {
    (void)state, (void)a, (void)b, (void)c, (void)d;
    return lab_stop_level() > 1;
}

static void set_up(struct track_http *http) {
    const struct track_http_settings *settings = http->settings;
    void *easy = http->easy;
    curl.setopt(easy, OPT_NOSIGNAL, 1L);
    curl.setopt(easy, OPT_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
    curl.setopt(easy, OPT_ERRORBUFFER, http->problem);
    curl.setopt(easy, OPT_USERAGENT, "gpulab/" LAB_VERSION);
    curl.setopt(easy, OPT_WRITEFUNCTION, take_answer);
    curl.setopt(easy, OPT_NOPROGRESS, 0L);
    curl.setopt(easy, OPT_XFERINFOFUNCTION, look_for_stop);
    curl.setopt(easy, OPT_TIMEOUT_MS, (long)(settings->timeout_s * 1000));
    curl.setopt(easy, OPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    if (settings->insecure) {
        curl.setopt(easy, OPT_SSL_VERIFYPEER, 0L);
        curl.setopt(easy, OPT_SSL_VERIFYHOST, 0L);
    }
    if (settings->authority)
        curl.setopt(easy, OPT_CAINFO, settings->authority);
    if (settings->certificate)
        curl.setopt(easy, OPT_SSLCERT, settings->certificate);
    if (settings->user && settings->password) {
        curl.setopt(easy, OPT_USERNAME, settings->user);
        curl.setopt(easy, OPT_PASSWORD, settings->password);
    }
}

struct track_http *track_http_open(const struct track_http_settings *settings,
                                   struct lab_err *err) {
    static const struct lab_dl_library library = {
        .title = "libcurl",
        .sonames = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"},
        .symbols = symbols,
        .effect = "no server can be reached",
    };
    LAB_AUTO(arena, arena);
    struct lab_dl_report report;
    lab_dl_load(&library, NULL, &arena, &report);
    if (!report.handle || report.missing) {
        lab_err_set(err, LAB_ERR_UNSUPPORTED,
                    "%s: install libcurl (Debian, Ubuntu: libcurl4; Fedora, RHEL: libcurl)",
                    report.handle ? "libcurl is too old" : report.reason);
        return NULL;
    }
    struct track_http *http = lab_mem_alloc(1, sizeof *http);
    *http = (struct track_http){.easy = curl.init(), .settings = settings};
    if (!http->easy) {
        lab_err_set(err, LAB_ERR_SYSTEM, "libcurl can't be set up");
        lab_mem_free(http);
        return NULL;
    }
    set_up(http);
    return http;
}

void track_http_close(struct track_http *http) {
    if (http)
        curl.cleanup(http->easy);
    lab_mem_free(http);
}

/* --- a request --- */

static int perform(struct track_http *http, const struct track_http_request *request,
                   long *ret_status, struct lab_str *body) {
    LAB_AUTO(str, token);
    LAB_AUTO(str, type);
    lab_str_printf(&type, "Content-Type: %s", request->type ? request->type : "application/json");
    void *headers = curl.append(NULL, "Expect:"); /* no round trip before a body */
    headers = curl.append(headers, type.text);
    if (http->settings->token && !(http->settings->user && http->settings->password)) {
        lab_str_printf(&token, "Authorization: Bearer %s", http->settings->token);
        headers = curl.append(headers, token.text);
    }
    lab_str_clear(body);
    *http->problem = '\0';
    curl.setopt(http->easy, OPT_URL, request->url);
    curl.setopt(http->easy, OPT_CUSTOMREQUEST, request->method);
    curl.setopt(http->easy, OPT_HTTPHEADER, headers);
    curl.setopt(http->easy, OPT_POSTFIELDS, request->body ? request->body : "");
    curl.setopt(http->easy, OPT_POSTFIELDSIZE_LARGE, (int64_t)request->length);
    curl.setopt(http->easy, OPT_WRITEDATA, body);
    int code = curl.perform(http->easy);
    curl.getinfo(http->easy, INFO_RESPONSE_CODE, ret_status);
    curl.setopt(http->easy, OPT_HTTPHEADER, NULL);
    curl.free_all(headers);
    return code;
}

static bool may_pass(int code, long status) {
    if (code != CURL_OK)
        return code == CURL_TIMEOUT || code == CURL_NOTHING || code == CURL_PARTIAL ||
               code == CURL_SEND || code == CURL_RECEIVE;
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* As long as the server asks for, else twice the time before. */
static void pause_before(struct track_http *http, int number) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t asked_s = 0, pause_ns = PAUSE_NS << (number < 6 ? number : 6);
    if (curl.getinfo(http->easy, INFO_RETRY_AFTER, &asked_s) == CURL_OK && asked_s > 0)
        pause_ns = asked_s * LAB_NS_PER_S;
    pause_ns = pause_ns > PAUSE_MOST ? PAUSE_MOST : pause_ns;
    int64_t end_ns = lab_clock_now(clock) + pause_ns;
    while (lab_clock_now(clock) < end_ns && !lab_stop_level())
        lab_clock_sleep(clock, 50 * LAB_NS_PER_MS);
}

int track_http_send(struct track_http *http, const struct track_http_request *request,
                    int *ret_status, struct lab_str *ret_body, struct lab_err *err) {
    long status = 0;
    int code = perform(http, request, &status, ret_body);
    for (int i = 0; i < http->settings->retries && may_pass(code, status) && !lab_stop_level();
         i++) {
        pause_before(http, i);
        code = perform(http, request, &status, ret_body);
    }
    if (code != CURL_OK) {
        enum lab_err_code kind = code == CURL_ABORTED  ? LAB_ERR_INTERRUPTED
                                 : code == CURL_VERIFY ? LAB_ERR_WRONG
                                                       : LAB_ERR_SYSTEM;
        return lab_err_set(err, kind, "%s", *http->problem ? http->problem : curl.error(code));
    }
    *ret_status = (int)status;
    return 0;
}

void track_http_add_encoded(struct lab_str *out, const char *text) {
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = strchr("-._~", byte) || (byte >= '0' && byte <= '9') ||
                     ((byte | 32) >= 'a' && (byte | 32) <= 'z');
        lab_str_printf(out, plain ? "%c" : "%%%02X", byte);
    }
}
