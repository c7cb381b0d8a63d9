/* test_listen.c: addresses as people write them, and what is said when they can't be had. */
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static struct lab_listen open_or_fail(const char *address) {
    struct lab_listen place;
    ASSERT_OK(lab_listen_open(address, 0, &place, err));
    return place;
}

static void assert_url(const char *address, const char *start, bool loopback) {
    struct lab_listen place = open_or_fail(address);
    if (strncmp(place.url, start, strlen(start)) != 0)
        fail_msg("%s became %s", address, place.url);
    assert_true(strtol(place.url + strlen(start), NULL, 10) > 0); /* port 0 became a real one */
    assert_int_equal(place.loopback, loopback);
    close(place.fd);
}

static bool has_ipv6(void) {
    return access("/proc/net/if_inet6", R_OK) == 0;
}

LAB_TEST(every_form_of_an_address_is_understood) {
    assert_url("127.0.0.1:0", "http://127.0.0.1:", true);
    assert_url("0", "http://127.0.0.1:", true); /* a port alone stays on this machine */
    assert_url("127.0.0.1", "http://127.0.0.1:", true);
    assert_url("localhost:0", "http://127.0.0.1:", true);
    assert_url("0.0.0.0:0", "http://0.0.0.0:", false);
}

LAB_TEST(ipv6_goes_in_brackets) {
    if (!has_ipv6())
        skip();
    struct lab_err err = LAB_ERR_INIT;
    struct lab_listen place;
    if (lab_listen_open("[::1]:0", 0, &place, &err) == 0) { /* the interface may have none */
        assert_int_equal(strncmp(place.url, "http://[::1]:", 13), 0);
        assert_true(place.loopback);
        close(place.fd);
    }
    assert_url(":0", "http://[::]:", false); /* every address, of both kinds */
}

static void assert_refused(const char *address, enum lab_err_code code, const char *words) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_listen place = {.fd = -7};
    if (lab_listen_open(address, 9400, &place, &err) == 0)
        fail_msg("'%s' was taken for %s", address, place.url);
    assert_int_equal(err.code, code);
    assert_int_equal(place.fd, -7); /* untouched */
    if (!strstr(err.text, words))
        fail_msg("'%s': '%s' doesn't say '%s'", address, err.text, words);
}

LAB_TEST(what_is_no_address_is_refused_with_what_is_right) {
    const char *forms = "write it as 127.0.0.1:9400, [::1]:9400, :9400 or 9400";
    assert_refused("", LAB_ERR_USER, forms);
    assert_refused(":", LAB_ERR_USER, "0 to 65535");
    assert_refused("127.0.0.1:", LAB_ERR_USER, "0 to 65535");
    assert_refused("127.0.0.1:http", LAB_ERR_USER, "0 to 65535");
    assert_refused("127.0.0.1:-1", LAB_ERR_USER, "0 to 65535");
    assert_refused("65536", LAB_ERR_USER, "0 to 65535");
    assert_refused("99999999999999999999", LAB_ERR_USER, "0 to 65535");
    assert_refused("::1", LAB_ERR_USER, "needs brackets");
    assert_refused("[::1", LAB_ERR_USER, "bracket isn't closed");
    assert_refused("[::1]9400", LAB_ERR_USER, "bracket isn't closed");
    assert_refused("[]:9400", LAB_ERR_USER, "the host is missing");
    assert_refused("[::g]:9400", LAB_ERR_USER, "host '::g'");
    assert_refused("192.0.2.1:9400", LAB_ERR_USER, "no such address"); /* kept for documents */
    char name[400];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_refused(name, LAB_ERR_USER, "too long");
}

LAB_TEST(a_port_in_use_is_no_fault_of_the_address) {
    struct lab_listen first = open_or_fail("127.0.0.1:0");
    assert_refused(first.url + strlen("http://"), LAB_ERR_SYSTEM,
                   "another program listens on port");
    close(first.fd);
    struct lab_listen again = open_or_fail(first.url + strlen("http://"));
    close(again.fd);
}
