/*
 * test_http.c: pages, and clients that are many, slow or hostile. Client and server take turns in
 * one thread, so nothing here depends on speed.
 */
#include "serve/serve.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define TURNS 20000 /* of a server that doesn't answer: about a second */

struct fixture {
    struct lab_http *http;
    int port;
    int written; /* how often the page was made */
};

static void write_page(void *state, struct lab_str *out) {
    struct fixture *f = state;
    lab_str_printf(out, "value %d\n", ++f->written);
}

static void write_large(void *state, struct lab_str *out) {
    (void)state;
    lab_str_add_repeat(out, "0123456789abcdef", 1 << 16); /* 1 MiB: more than a socket's buffer */
}

static struct lab_http_page pages[] = {
    {"/metrics", LAB_SCRAPE_CONTENT_TYPE, write_page, NULL},
    {"/large", "text/plain", write_large, NULL},
    {NULL},
};

static void fixture_open(struct fixture *f, struct lab_http_setup setup) {
    struct lab_listen place;
    *f = (struct fixture){0};
    ASSERT_OK(lab_listen_open("127.0.0.1:0", 0, &place, err));
    f->port = (int)strtol(strrchr(place.url, ':') + 1, NULL, 10);
    pages[0].state = f;
    setup.fd = place.fd;
    setup.pages = pages;
    ASSERT_OK(lab_http_open(&setup, &f->http, err));
}

static int dial(const struct fixture *f) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)f->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void rest(void) {
    lab_clock_sleep(lab_clock_system(), 50 * LAB_NS_PER_US);
}

/* All that comes until the server closes; false = it doesn't. Closes the client's side. */
static bool hear(struct fixture *f, int fd, struct lab_str *ret_text) {
    char bytes[65536];
    for (int turn = 0; turn < TURNS; turn++) {
        lab_http_run(f->http);
        ssize_t count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count > 0)
            lab_str_add_bytes(ret_text, bytes, (size_t)count);
        if (count == 0 || (count < 0 && errno == ECONNRESET)) {
            close(fd);
            return true;
        }
        if (count < 0)
            rest();
    }
    close(fd);
    return false;
}

static struct lab_str ask(struct fixture *f, const char *request) {
    struct lab_str text;
    lab_str_init(&text);
    int fd = dial(f);
    say(fd, request);
    if (!hear(f, fd, &text))
        fail_msg("no end after '%.40s': %s", request, text.text);
    return text;
}

static void assert_answer(struct fixture *f, const char *request, const char *start,
                          const char *part) {
    struct lab_str text = ask(f, request);
    if (strncmp(text.text, start, strlen(start)) != 0 || !strstr(text.text, part))
        fail_msg("'%.60s' was answered: %.400s", request, text.text);
    lab_str_release(&text);
}

#define HOST "Host: x\r\n\r\n"

LAB_TEST(pages_can_be_read_and_nothing_else) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200 OK\r\n", "\r\n\r\nvalue 1\n");
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200 OK\r\n",
                  "Content-Type: text/plain; version=0.0.4");
    assert_answer(&f, "GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "value 1\n");
    assert_answer(&f, "GET /etc/passwd HTTP/1.1\r\n" HOST, "HTTP/1.1 404 Not Found\r\n",
                  "/metrics");
    assert_answer(&f, "POST /metrics HTTP/1.1\r\nContent-Length: 100000000\r\n" HOST,
                  "HTTP/1.1 405 Method Not Allowed\r\n", "Allow: GET, HEAD\r\n");
    assert_answer(&f, "DELETE /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 405", "GET or HEAD");
    struct lab_str nonsense = ask(&f, "\x16\x03\x01 nonsense\r\n\r\n");
    assert_null(strstr(nonsense.text, "200 OK"));
    lab_str_release(&nonsense);
    struct lab_str head = ask(&f, "HEAD /metrics HTTP/1.1\r\n" HOST);
    assert_contains(head.text, "Content-Length: 8\r\n");
    assert_null(strstr(head.text, "value"));
    lab_str_release(&head);
    lab_http_close(f.http);
}

/* Given a server for this host alone, then a name that was made to point here is refused. */
LAB_TEST(a_name_of_the_web_is_not_answered) {
    static const struct {
        const char *host, *start;
    } cases[] = {
        {"Host: localhost\r\n", "HTTP/1.1 200"},
        {"Host: LocalHost:9400\r\n", "HTTP/1.1 200"},
        {"Host: 127.0.0.1:9400\r\n", "HTTP/1.1 200"},
        {"Host: [::1]:9400\r\n", "HTTP/1.1 200"},
        {"Host: evil.example\r\n", "HTTP/1.1 403"},
        {"Host: localhost.evil:80\r\n", "HTTP/1.1 403"},
        {"Host: [::1\r\n", "HTTP/1.1 200"},
        {"Host: []\r\n", "HTTP/1.1 403"},
        {"Host: \r\n", "HTTP/1.1 403"},
    };
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){.loopback = true});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_answer(
            &f, lab_arena_printf(&test_arena, "GET /metrics HTTP/1.1\r\n%s\r\n", cases[i].host),
            cases[i].start, "");
    assert_answer(&f, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "");
    lab_http_close(f.http);
}

LAB_TEST(a_page_is_written_once_for_all_who_ask_until_it_changes) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    for (int i = 0; i < 5; i++)
        assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 1\n");
    lab_http_changed(f.http);
    assert_int_equal(f.written, 1); /* nobody asked yet */
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 2\n");
    lab_http_close(f.http);
}

LAB_TEST(a_large_page_changes_under_who_reads_it_slowly) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    LAB_AUTO(str, text);
    int fd = dial(&f);
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 100; i++)
        lab_http_run(f.http); /* until the socket takes no more */
    lab_http_changed(f.http);
    assert_true(hear(&f, fd, &text));
    assert_int_equal(strlen(strstr(text.text, "\r\n\r\n") + 4), 1 << 20);
    lab_http_close(f.http);
}

LAB_TEST(a_header_without_end_is_cut_off) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    LAB_AUTO(str, text);
    int fd = dial(&f);
    char line[1024];
    memset(line, 'a', sizeof line);
    say(fd, "GET /metrics HTTP/1.1\r\nX: ");
    size_t sent = 0;
    for (; sent < (size_t)100 << 20; sent += sizeof line) {
        if (send(fd, line, sizeof line, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        lab_http_run(f.http);
    }
    assert_true(sent < (size_t)1 << 20); /* of 100 MiB */
    hear(&f, fd, &text);                 /* 431, or nothing since what was sent lay unread */
    assert_null(strstr(text.text, "200 OK"));
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 1\n");
    lab_http_close(f.http);
}

LAB_TEST(who_sends_slowly_but_steadily_is_cut_off_all_the_same) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){.lifetime_ns = 20 * LAB_NS_PER_MS});
    int fd = dial(&f);
    say(fd, "GET /metrics HTTP/1.1\r\nX: ");
    bool closed = false;
    for (int turn = 0; turn < TURNS && !closed; turn++) {
        char byte;
        lab_http_run(f.http);
        send(fd, "a", 1, MSG_NOSIGNAL); /* never idle */
        closed = recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
        rest();
        assert_true(closed || lab_http_timeout_ms(f.http) <= 21);
    }
    assert_true(closed);
    close(fd);
    lab_http_close(f.http);
}

static bool is_closed(int fd) {
    char byte;
    ssize_t count = recv(fd, &byte, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
}

LAB_TEST(a_newcomer_is_served_however_many_sit_idle) {
    struct fixture f;
    int idle[60], closed = 0;
    fixture_open(&f, (struct lab_http_setup){.connections = 40, .per_address = 10});
    for (int i = 0; i < 60; i++) {
        idle[i] = dial(&f);
        say(idle[i], "GET /met");
        lab_http_run(f.http);
    }
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 1\n");
    for (int i = 0; i < 20; i++)
        lab_http_run(f.http);
    for (int i = 0; i < 60; i++)
        closed += is_closed(idle[i]);
    assert_int_equal(closed, 60 - 9); /* the newcomer was the tenth; it has gone */
    for (int i = 0; i < 60; i++) {
        assert_int_equal(is_closed(idle[i]), i < 51); /* the oldest went first */
        close(idle[i]);
    }
    lab_http_close(f.http);
}

LAB_TEST(who_hangs_up_in_the_middle_harms_nobody) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    for (int i = 0; i < 20; i++) {
        int fd = dial(&f);
        say(fd, "GET /large HTTP/1.1\r\n" HOST);
        lab_http_run(f.http);
        close(fd);
        lab_http_run(f.http);
    }
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 1\n");
    int open_at_the_end = dial(&f); /* closing with a connection open is clean as well */
    lab_http_run(f.http);
    lab_http_close(f.http);
    close(open_at_the_end);
}

LAB_TEST(an_idle_server_asks_for_no_turn) {
    struct fixture f;
    fixture_open(&f, (struct lab_http_setup){0});
    assert_int_equal(lab_http_timeout_ms(f.http), -1);
    assert_answer(&f, "GET /metrics HTTP/1.1\r\n" HOST, "HTTP/1.1 200", "value 1\n");
    for (int i = 0; i < 10; i++)
        lab_http_run(f.http);
    assert_int_equal(lab_http_timeout_ms(f.http), -1);
    assert_true(lab_http_fd(f.http) >= 0);
    lab_http_close(f.http);
}
