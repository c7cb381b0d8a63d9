/*
 * tracker_http.h: requests to a tracker's server, through libcurl, which is looked up at run time.
 * What may pass by itself (too many requests, a server's fault, no answer in time) is tried again,
 * each time after twice the pause.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct track_http;

/* Texts may be NULL and must outlive the handle. No secret is ever part of an error's text. */
struct track_http_settings {
    const char *user, *password, *token;
    const char *authority, *certificate; /* PEM files: who signs the server's; our own */
    bool insecure;                       /* any server's certificate will do */
    double timeout_s;                    /* of one request */
    int retries;
};

/* NULL and an error that says what to install where there is no libcurl. */
struct track_http *track_http_open(const struct track_http_settings *settings, struct lab_err *err);
void track_http_close(struct track_http *http);

struct track_http_request {
    const char *method, *url, *type; /* type: of the body */
    const char *body;
    size_t length;
};

/* The last answer's status and body, whatever the status is; -1 = there was none. LAB_ERR_WRONG:
 * the server's certificate isn't trusted. */
int track_http_send(struct track_http *http, const struct track_http_request *request,
                    int *ret_status, struct lab_str *ret_body, struct lab_err *err);

/* What may stand in a URL's path or query, percent-encoded. */
void track_http_add_encoded(struct lab_str *out, const char *text);
