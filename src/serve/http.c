/*
 * http.c: a few pages over HTTP, for clients that may be many, slow or hostile. libmicrohttpd does
 * the protocol, in the caller's thread; the limits that it lacks are here: a connection's age
 * counts from its beginning, not from its last byte, and a full house turns out the oldest guest
 * instead of the newest.
 */
#include "serve/serve.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIFETIME_NS  (10 * LAB_NS_PER_S)
#define CONNECTIONS  256
#define PER_ADDRESS  64
#define REQUEST_SIZE 16384 /* bytes for a request's lines and ours; a longer one is answered 431 */

struct guest {          /* a connection */
    struct guest *next; /* younger */
    int fd;
    unsigned char address[16]; /* who counts as one client */
    int64_t since_ns;
    bool dropped; /* its socket is shut down; the library closes it when it notices */
};

struct lab_http {
    struct MHD_Daemon *daemon;
    const struct lab_http_page *pages;
    struct MHD_Response **ready; /* by page; NULL = to be written */
    int page_count;
    struct MHD_Response *not_found, *not_allowed, *not_here;
    bool loopback;
    int64_t lifetime_ns;
    int connections, per_address;
    struct guest *oldest, *youngest;
};

/* --- who is connected --- */

/* An IPv4 address, or the network of an IPv6 one: a single client may have all addresses of
 * that. */
static void write_key(const struct sockaddr *from, unsigned char key[16]) {
    memset(key, 0, 16);
    if (from->sa_family == AF_INET) {
        memcpy(key + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)from;
        bool four = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
        memcpy(key + (four ? 12 : 0), six->sin6_addr.s6_addr + (four ? 12 : 0), four ? 4 : 8);
    }
}

static bool same_client(const struct guest *a, const struct guest *b) {
    return memcmp(a->address, b->address, sizeof a->address) == 0;
}

static int count_of(const struct lab_http *http, const struct guest *client) {
    int count = 0;
    for (const struct guest *guest = http->oldest; guest; guest = guest->next)
        count += !guest->dropped && same_client(guest, client);
    return count;
}

static void drop(struct guest *guest) {
    shutdown(guest->fd, SHUT_RDWR);
    guest->dropped = true;
}

static void drop_oldest_of(struct lab_http *http, const struct guest *client) {
    for (struct guest *guest = http->oldest; guest; guest = guest->next)
        if (!guest->dropped && same_client(guest, client)) {
            drop(guest);
            return;
        }
}

static const struct guest *greediest(const struct lab_http *http) {
    const struct guest *most = NULL;
    int highest = 0;
    for (const struct guest *guest = http->oldest; guest; guest = guest->next) {
        int count = guest->dropped ? 0 : count_of(http, guest);
        if (count > highest) {
            highest = count;
            most = guest;
        }
    }
    return most;
}

static void make_room(struct lab_http *http, const struct guest *newcomer) {
    int all = 0;
    for (const struct guest *guest = http->oldest; guest; guest = guest->next)
        all += !guest->dropped;
    if (count_of(http, newcomer) > http->per_address)
        drop_oldest_of(http, newcomer);
    else if (all > http->connections)
        drop_oldest_of(http, greediest(http));
}

static void add_guest(struct lab_http *http, struct MHD_Connection *connection, void **socket) {
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct guest *guest = lab_mem_alloc(1, sizeof *guest);
    guest->fd = fd->connect_fd;
    guest->since_ns = lab_clock_now(lab_clock_system());
    write_key(from->client_addr, guest->address);
    if (http->youngest)
        http->youngest->next = guest;
    else
        http->oldest = guest;
    http->youngest = guest;
    *socket = guest;
    make_room(http, guest);
}

static void remove_guest(struct lab_http *http, struct guest *gone) {
    struct guest *before = NULL;
    for (struct guest *guest = http->oldest; guest != gone; guest = guest->next)
        before = guest;
    if (before)
        before->next = gone->next;
    else
        http->oldest = gone->next;
    if (http->youngest == gone)
        http->youngest = before;
    lab_mem_free(gone);
}

static void on_connection(void *state, struct MHD_Connection *connection, void **socket,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        add_guest(state, connection, socket);
    else if (*socket)
        remove_guest(state, *socket);
}

/* --- answers --- */

/* Takes the text over. A connection answers once: how long it lives is then easy to bound. */
static struct MHD_Response *make_response(struct lab_str *text, const char *content_type) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(text->length, text->text, lab_mem_free);
    if (!response) {
        lab_str_release(text);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response;
}

static struct MHD_Response *make_message(const char *message) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(&text, message);
    return make_response(&text, "text/plain; charset=utf-8");
}

/* The same bytes for all who ask before the next change: neither time nor memory grows with
 * them. */
static struct MHD_Response *page_response(struct lab_http *http, int page) {
    if (!http->ready[page]) {
        struct lab_str text;
        lab_str_init(&text);
        http->pages[page].write(http->pages[page].state, &text);
        http->ready[page] = make_response(&text, http->pages[page].content_type);
    }
    return http->ready[page];
}

/*
 * Whether a request for this Host means this machine. A browser sends the name of the page that
 * asks, whatever address that name is given later (DNS rebinding); no page has an address as its
 * name that isn't its own. Prometheus and curl send what they were told.
 */
static bool is_here(const char *host) {
    char name[256], own[256] = "";
    unsigned char address[16];
    bool six = *host == '[';
    size_t length = six ? strcspn(host, "]") - 1 : strcspn(host, ":");
    if (length >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, host + six);
    gethostname(own, sizeof own - 1);
    return inet_pton(six ? AF_INET6 : AF_INET, name, address) == 1 ||
           strcasecmp(name, "localhost") == 0 || strcasecmp(name, own) == 0;
}

static enum MHD_Result answer(void *state, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **request) {
    (void)version;
    (void)body; /* answered before it is read: no page takes one */
    (void)body_size;
    (void)request;
    struct lab_http *http = state;
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (http->loopback && host && !is_here(host))
        return MHD_queue_response(connection, MHD_HTTP_FORBIDDEN, http->not_here);
    int page = LAB_FIND(http->pages, http->page_count, path, path);
    if (page < 0)
        return MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, http->not_found);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, http->not_allowed);
    struct MHD_Response *response = page_response(http, page);
    return response ? MHD_queue_response(connection, MHD_HTTP_OK, response) : MHD_NO;
}

__attribute__((format(printf, 2, 0))) static void on_log(void *state, const char *format,
                                                         va_list args) {
    (void)state;
    char text[512];
    if (!lab_log_enabled(LAB_LOG_DEBUG))
        return;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    lab_log(LAB_LOG_DEBUG, "http: %s", text);
}

/* --- life --- */

static struct MHD_Daemon *start(struct lab_http *http, int fd) {
    /* the limit on connections is ours; the library's has room for those that are being dropped */
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer, http,
                            MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_SIZE,
                            MHD_OPTION_CONNECTION_LIMIT, 2 * (unsigned)http->connections,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

int lab_http_open(const struct lab_http_setup *setup, struct lab_http **ret_http,
                  struct lab_err *err) {
    struct lab_http *http = lab_mem_alloc(1, sizeof *http);
    http->pages = setup->pages;
    while (http->pages[http->page_count].path)
        http->page_count++;
    http->ready = lab_mem_alloc((size_t)http->page_count, sizeof *http->ready);
    http->lifetime_ns = setup->lifetime_ns ? setup->lifetime_ns : LIFETIME_NS;
    http->connections = setup->connections ? setup->connections : CONNECTIONS;
    http->per_address = setup->per_address ? setup->per_address : PER_ADDRESS;
    http->not_found = make_message("There is no such page; the measurements are at /metrics.\n");
    http->not_allowed = make_message("Pages here can be read only: GET or HEAD.\n");
    http->not_here = make_message("Ask for localhost or an address: this port is this host's.\n");
    http->loopback = setup->loopback;
    if (http->not_allowed)
        MHD_add_response_header(http->not_allowed, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (http->not_found && http->not_allowed && http->not_here)
        http->daemon = start(http, setup->fd);
    if (!http->daemon) {
        close(setup->fd);
        lab_http_close(http);
        return lab_err_set(err, LAB_ERR_SYSTEM, "the HTTP server doesn't start");
    }
    *ret_http = http;
    return 0;
}

void lab_http_close(struct lab_http *http) {
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon); /* tells of each connection that it closes */
    lab_http_changed(http);
    if (http->not_found)
        MHD_destroy_response(http->not_found);
    if (http->not_allowed)
        MHD_destroy_response(http->not_allowed);
    if (http->not_here)
        MHD_destroy_response(http->not_here);
    lab_mem_free(http->ready);
    lab_mem_free(http);
}

int lab_http_fd(const struct lab_http *http) {
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int lab_http_timeout_ms(const struct lab_http *http) {
    MHD_UNSIGNED_LONG_LONG library_ms;
    int64_t timeout_ms = -1;
    const struct guest *guest = http->oldest;
    while (guest && guest->dropped)
        guest = guest->next;
    if (guest) {
        int64_t left_ns = guest->since_ns + http->lifetime_ns - lab_clock_now(lab_clock_system());
        timeout_ms = left_ns < 0 ? 0 : left_ns / LAB_NS_PER_MS + 1;
    }
    if (MHD_get_timeout(http->daemon, &library_ms) == MHD_YES &&
        (timeout_ms < 0 || library_ms < (MHD_UNSIGNED_LONG_LONG)timeout_ms))
        timeout_ms = (int64_t)library_ms;
    return timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
}

void lab_http_run(struct lab_http *http) {
    int64_t latest_ns = lab_clock_now(lab_clock_system()) - http->lifetime_ns;
    for (struct guest *guest = http->oldest; guest && guest->since_ns < latest_ns;
         guest = guest->next)
        if (!guest->dropped)
            drop(guest);
    MHD_run(http->daemon);
}

void lab_http_changed(struct lab_http *http) {
    for (int i = 0; i < http->page_count; i++) {
        if (http->ready[i])
            MHD_destroy_response(http->ready[i]); /* those who still read it keep it */
        http->ready[i] = NULL;
    }
}
