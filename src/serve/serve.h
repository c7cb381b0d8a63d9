/*
 * serve.h: what the program answers over HTTP: the latest state of the machine as text for
 * Prometheus, and the small server that hands it out.
 *
 * Nothing here has a thread of its own: whoever owns them polls the server's descriptor beside the
 * sampler's and lets each do its work in turn. So no lock is needed, and no client can hold up the
 * sampler, whose lanes have threads of theirs.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/sample.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_sampler_stats;

/* --- the latest of everything --- */

/*
 * A scrape keeps the latest value of each column of each entity. A value stays for as long as its
 * entity answers, since slow ones come once in many ticks. When the entity is lost all of them are
 * forgotten; so are those of a column that used to come with every tick and no longer does.
 */
struct lab_scrape;

struct lab_scrape_setup {
    const char *host;    /* the label Hostname; "" = left out */
    const char *driver;  /* the label DCGM_FI_DRIVER_VERSION; "" = left out */
    const char *version; /* this program's */
    int64_t interval_ns; /* between ticks */
};

struct lab_scrape *lab_scrape_open(const struct lab_scrape_setup *setup);
void lab_scrape_set_driver(struct lab_scrape *scrape, const char *driver); /* once it is known */
void lab_scrape_close(struct lab_scrape *scrape);                          /* accepts NULL */

/* What it learns from; lives as long as the scrape. */
struct lab_sink_samples lab_scrape_sink(struct lab_scrape *scrape);

/* How the sampler does; before the first time there is nothing of it in the text. */
void lab_scrape_set_stats(struct lab_scrape *scrape, const struct lab_sampler_stats *stats);

/*
 * Appends the text format 0.0.4: dcgm-exporter's names and labels, then our own, gpulab_*, in base
 * units (bytes, seconds, watts, joules, hertz; shares as ratios of 1). What is unknown is left
 * out.
 */
void lab_scrape_write(const struct lab_scrape *scrape, struct lab_str *out);

#define LAB_SCRAPE_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* --- where to listen --- */

struct lab_listen {
    int fd;        /* bound and listening, doesn't block; whoever takes it closes it */
    char url[320]; /* "http://127.0.0.1:9400", with the port that was given */
    bool loopback; /* only programs on this machine can reach it */
};

/*
 * `address` is host:port, [::1]:port, :port (every address of this machine), a port alone
 * (127.0.0.1), or a host alone (`default_port`). Port 0 takes any that is free. LAB_ERR_USER: can't
 * be meant here; LAB_ERR_SYSTEM: refused, as when another program listens there.
 */
int lab_listen_open(const char *address, int default_port, struct lab_listen *ret_listen,
                    struct lab_err *err);

/* --- the server --- */

struct lab_http;

struct lab_http_page {
    const char *path; /* "/metrics"; NULL ends the table */
    const char *content_type;
    /* appends the page; called only when somebody asks and lab_http_changed came since */
    void (*write)(void *state, struct lab_str *out);
    void *state;
};

/*
 * GET and HEAD of the pages, 405 for other methods, 404 for other paths. A connection answers one
 * request and has to be done within `lifetime_ns`, however busily it sends. Who comes when an
 * address has all its connections, or the server has, pushes out the oldest one of that address, or
 * of the address that has most; so idle ones can't keep a newcomer out.
 */
struct lab_http_setup {
    int fd; /* from lab_listen_open; the server closes it, also on failure */
    const struct lab_http_page *pages; /* outlives the server */
    bool loopback;       /* answers only those who ask for localhost, this host or an address: a
                            page of the web that has its name point here gets 403 */
    int64_t lifetime_ns; /* 0 = 10 s */
    int connections;     /* 0 = 256 */
    int per_address;     /* 0 = 64 */
};

int lab_http_open(const struct lab_http_setup *setup, struct lab_http **ret_http,
                  struct lab_err *err);
void lab_http_close(struct lab_http *http); /* accepts NULL */

/* Readable while there is something to do (for poll). */
int lab_http_fd(const struct lab_http *http);

/* In how many milliseconds lab_http_run is due even if nothing becomes readable; -1 = never. */
int lab_http_timeout_ms(const struct lab_http *http);

/* Does what can be done without waiting. */
void lab_http_run(struct lab_http *http);

/* The pages aren't what they were: they are written anew for the next who asks. */
void lab_http_changed(struct lab_http *http);
