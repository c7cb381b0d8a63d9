/*
 * fuzz_http.c: whatever a client sends, it gets an answer of HTTP or none, its connection ends, and
 * the next client gets its page. Pages are given to those alone who ask for this host.
 * covers: src/serve/http.c
 */
#include "folder.h"
#include "serve/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PAGE  "value 1\n"
#define TURNS 16

static struct lab_http *http;
static struct sockaddr_un place = {.sun_family = AF_UNIX};

static void write_page(void *state, struct lab_str *out) {
    (void)state;
    lab_str_add(out, PAGE);
}

static const struct lab_http_page pages[] = {
    {"/metrics", LAB_SCRAPE_CONTENT_TYPE, write_page, NULL}, {NULL}};

static void start(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(place.sun_path, sizeof place.sun_path, "%s", folder_file("socket"));
    require(fd >= 0 && bind(fd, (struct sockaddr *)&place, sizeof place) == 0 &&
            listen(fd, 16) == 0);
    const struct lab_http_setup setup = {.fd = fd, .pages = pages, .loopback = true};
    require(lab_http_open(&setup, &http, NULL) == 0);
}

/* What the server answers until it closes, or until the client has waited for some turns and
 * leaves: half a request is waited for, to the end of a connection's life. */
static void ask(const void *request, size_t size, struct lab_str *ret_text) {
    char bytes[4096];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0 && connect(fd, (struct sockaddr *)&place, sizeof place) == 0);
    (void)!send(fd, request, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    for (int turn = 0; turn < TURNS; turn++) {
        lab_http_run(http);
        ssize_t count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count > 0)
            lab_str_add_bytes(ret_text, bytes, (size_t)count);
        else if (count == 0 || errno != EAGAIN)
            break;
    }
    close(fd);
    lab_http_run(http);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char good[] = "GET /metrics HTTP/1.1\r\nHost: localhost:9400\r\n\r\n";
    if (!http)
        start();
    LAB_AUTO(str, text);
    LAB_AUTO(str, page);
    ask(data, size < 65536 ? size : 65536, &text);
    require(text.length == 0 || strncmp(text.text, "HTTP/1.", 7) == 0);
    lab_http_changed(http);
    ask(good, sizeof good - 1, &page);
    require(strncmp(page.text, "HTTP/1.1 200", 12) == 0 && strstr(page.text, "\r\n\r\n" PAGE));
    return 0;
}
