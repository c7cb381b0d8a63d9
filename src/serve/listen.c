/*
 * listen.c: an address as people write it, to a socket that listens. The socket is made here and
 * not by the HTTP library, so that a refusal can say what is wrong, and port 0 which port it
 * became.
 */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG     128
#define PORT_MAX    65535
#define FORMS       "write it as 127.0.0.1:9400, [::1]:9400, :9400 or 9400"
#define HOST_LENGTH 256

struct place {
    char host[HOST_LENGTH]; /* "" = every address */
    int port;
    bool numeric; /* no name: nobody is asked for it */
};

/* --- reading --- */

static int read_port(const char *text, int *ret_port) {
    size_t length = strspn(text, "0123456789");
    if (!length || text[length] || length > 5)
        return -1;
    long port = strtol(text, NULL, 10);
    if (port > PORT_MAX)
        return -1;
    *ret_port = (int)port;
    return 0;
}

static int refuse(const char *address, const char *why, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_USER, "can't listen on '%s': %s; " FORMS, address, why);
}

static int set_host(struct place *place, const char *address, const char *host, size_t length,
                    struct lab_err *err) {
    if (length >= sizeof place->host)
        return refuse("…", "the host's name is too long", err);
    if (!length)
        return refuse(address, "the host is missing", err);
    memcpy(place->host, host, length);
    place->host[length] = '\0';
    return 0;
}

static int set_port(struct place *place, const char *address, const char *text,
                    struct lab_err *err) {
    if (read_port(text, &place->port) < 0)
        return refuse(address, "the port must be 0 to 65535", err);
    return 0;
}

static int read_bracketed(const char *address, struct place *place, struct lab_err *err) {
    const char *end = strchr(address, ']');
    if (!end || (end[1] && end[1] != ':'))
        return refuse(address, "a bracket isn't closed before the port", err);
    if (set_host(place, address, address + 1, (size_t)(end - address - 1), err) < 0)
        return -1;
    place->numeric = true;
    return end[1] ? set_port(place, address, end + 2, err) : 0;
}

static int read_place(const char *address, int default_port, struct place *place,
                      struct lab_err *err) {
    const char *colon = strchr(address, ':');
    *place = (struct place){.port = default_port};
    if (!*address)
        return refuse(address, "it is empty", err);
    if (*address == '[')
        return read_bracketed(address, place, err);
    if (colon && strchr(colon + 1, ':'))
        return refuse(address, "an IPv6 address needs brackets around it", err);
    if (colon == address)
        return set_port(place, address, address + 1, err);
    if (colon) {
        if (set_host(place, address, address, (size_t)(colon - address), err) < 0)
            return -1;
        return set_port(place, address, colon + 1, err);
    }
    if (strspn(address, "0123456789") < strlen(address))
        return set_host(place, address, address, strlen(address), err);
    snprintf(place->host, sizeof place->host, "127.0.0.1");
    return set_port(place, address, address, err);
}

/* --- opening --- */

static bool is_loopback(const char *host) {
    return lab_str_starts(host, "127.") || lab_str_equal(host, "::1") ||
           lab_str_starts(host, "::ffff:127.");
}

static int write_url(int fd, struct lab_listen *listen_, struct lab_err *err) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char host[HOST_LENGTH], port[16];
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "asking which port was given");
    if (getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the address that was given can't be written");
    bool six = address.ss_family == AF_INET6;
    snprintf(listen_->url, sizeof listen_->url, "http://%s%s%s:%s", six ? "[" : "", host,
             six ? "]" : "", port);
    listen_->loopback = is_loopback(host);
    return 0;
}

/* A socket that listens at this one address, or -1 and errno. */
static int open_socket(const struct addrinfo *at) {
    int one = 1, zero = 0;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* connections of a server that ended a moment ago are no obstacle */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ai_family == AF_INET6) /* [::] means IPv4 as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* Every address: IPv6's socket takes both kinds. A name: IPv4 first, which is what most ask for. */
static int open_any(const struct addrinfo *list, bool six_first, int *ret_errno) {
    const int order[2] = {six_first ? AF_INET6 : AF_INET, six_first ? AF_INET : AF_INET6};
    *ret_errno = EADDRNOTAVAIL;
    for (int pass = 0; pass < 2; pass++)
        for (const struct addrinfo *at = list; at; at = at->ai_next) {
            if (at->ai_family != order[pass])
                continue;
            int fd = open_socket(at);
            if (fd >= 0)
                return fd;
            /* a machine without IPv6 says nothing about the other kind */
            if (errno != EAFNOSUPPORT)
                *ret_errno = errno;
        }
    return -1;
}

static int explain(const char *address, const struct place *place, int code, struct lab_err *err) {
    if (code == EADDRINUSE)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "can't listen on '%s': another program listens on port %d already; "
                           "choose another one, or 0 for any that is free",
                           address, place->port);
    if (code == EADDRNOTAVAIL)
        return lab_err_set(err, LAB_ERR_USER,
                           "can't listen on '%s': this machine has no such address", address);
    if (code == EACCES)
        return lab_err_set(err, LAB_ERR_USER,
                           "can't listen on '%s': port %d needs root; choose one of 1024 to "
                           "65535",
                           address, place->port);
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, code, "can't listen on '%s'", address);
}

int lab_listen_open(const char *address, int default_port, struct lab_listen *ret_listen,
                    struct lab_err *err) {
    struct place place;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list;
    struct lab_listen made = {.fd = -1};
    char port[16];
    if (read_place(address, default_port, &place, err) < 0)
        return -1;
    snprintf(port, sizeof port, "%d", place.port);
    hints.ai_flags |= place.numeric ? AI_NUMERICHOST : 0;
    int failed = getaddrinfo(*place.host ? place.host : NULL, port, &hints, &list);
    if (failed)
        return lab_err_set(err, LAB_ERR_USER, "can't listen on '%s': host '%s': %s", address,
                           place.host, gai_strerror(failed));
    int code;
    made.fd = open_any(list, !*place.host, &code);
    freeaddrinfo(list);
    if (made.fd < 0)
        return explain(address, &place, code, err);
    if (write_url(made.fd, &made, err) < 0) {
        close(made.fd);
        return -1;
    }
    *ret_listen = made;
    return 0;
}
