/* What the keys of `top` do. */
#include "top_fixture.h"
#include "unit/report/study_fixture.h"

#include "top/top.h"

#include <signal.h>

struct given {
    struct top_fixture f;
    struct lab_top_history *history;
    struct lab_top_view view;
};

static void begin(struct given *g, int gpus) {
    top_fixture_init(&g->f, gpus, false);
    g->history = top_fixture_history(&g->f, NULL);
    g->view = top_fixture_view(&g->f, 80, 24);
}

static void end(struct given *g) {
    lab_top_history_close(g->history);
    top_fixture_release(&g->f);
}

static struct lab_top_request press(struct given *g, int key) {
    return lab_top_key(&g->view, g->history, key);
}

static void type(struct given *g, const char *text) {
    for (; *text; text++)
        press(g, *text);
}

LAB_TEST(pages_are_reached) {
    struct given g;
    begin(&g, 4);
    press(&g, LAB_TOP_KEY_TAB);
    assert_int_equal(g.view.page, LAB_TOP_DEVICE);
    press(&g, LAB_TOP_KEY_BACK_TAB);
    press(&g, LAB_TOP_KEY_BACK_TAB);
    assert_int_equal(g.view.page, LAB_TOP_NUMA);
    press(&g, LAB_TOP_KEY_F1 + 3);
    assert_int_equal(g.view.page, LAB_TOP_PROCESSES);
    press(&g, 'o');
    press(&g, '2');
    press(&g, LAB_TOP_KEY_ENTER);
    assert_int_equal(g.view.page, LAB_TOP_DEVICE);
    assert_int_equal(g.view.device, 2);
    press(&g, LAB_TOP_KEY_ESCAPE);
    assert_int_equal(g.view.page, LAB_TOP_OVERVIEW);
    g.view.program_count = 2; /* Tab reaches their page while there are any */
    press(&g, LAB_TOP_KEY_BACK_TAB);
    assert_int_equal(g.view.page, LAB_TOP_PROGRAM);
    for (int i = 0; i < 3; i++)
        press(&g, LAB_TOP_KEY_DOWN);
    assert_int_equal(g.view.program, 1);
    end(&g);
}

LAB_TEST(devices_are_selected) {
    struct given g;
    begin(&g, 4);
    press(&g, LAB_TOP_KEY_DOWN);
    press(&g, LAB_TOP_KEY_DOWN);
    assert_int_equal(g.view.device, 2);
    for (int i = 0; i < 9; i++)
        press(&g, LAB_TOP_KEY_DOWN);
    assert_int_equal(g.view.device, 3);
    press(&g, LAB_TOP_KEY_HOME);
    assert_int_equal(g.view.device, 0);
    press(&g, '7');
    assert_int_equal(g.view.device, 0);
    assert_string_equal(g.view.message, "there is no GPU 7");
    press(&g, '1');
    assert_int_equal(g.view.device, 1);
    assert_string_equal(g.view.message, "");
    end(&g);
}

LAB_TEST(two_digits_select_a_gpu_from_10_on) {
    struct given g;
    begin(&g, 16);
    press(&g, '1');
    assert_int_equal(g.view.device, 1);
    press(&g, '2');
    assert_int_equal(g.view.device, 12);
    press(&g, '3'); /* there is no GPU 123 */
    assert_int_equal(g.view.device, 3);
    press(&g, '1');
    press(&g, LAB_TOP_KEY_UP); /* another key between them */
    press(&g, '4');
    assert_int_equal(g.view.device, 4);
    press(&g, '1');
    press(&g, '9'); /* there is no GPU 19 */
    assert_int_equal(g.view.device, 9);
    end(&g);
}

LAB_TEST(quitting_asks_only_for_w) {
    struct given g;
    begin(&g, 1);
    assert_int_equal(press(&g, 'q').action, LAB_TOP_QUIT);
    assert_int_equal(press(&g, 'w').action, LAB_TOP_NOTHING);
    assert_int_equal(g.view.prompt, LAB_TOP_ASK_LEAVE);
    assert_int_equal(press(&g, LAB_TOP_KEY_ESCAPE).action, LAB_TOP_NOTHING);
    assert_int_equal(g.view.prompt, LAB_TOP_NO_PROMPT);
    press(&g, 'w');
    assert_int_equal(press(&g, 'w').action, LAB_TOP_WRITE_AND_QUIT);
    press(&g, '?');
    assert_int_equal(press(&g, 'q').action, LAB_TOP_NOTHING); /* leaves the help only */
    end(&g);
}

/* Given a selected process: TERM after a yes, KILL the second time, nothing after anything else. */
LAB_TEST(killing_is_confirmed) {
    struct given g;
    begin(&g, 4);
    press(&g, 'l');
    press(&g, 'k');
    assert_int_equal(g.view.prompt, LAB_TOP_ASK_KILL);
    assert_int_equal(press(&g, 'q').action, LAB_TOP_NOTHING);
    press(&g, 'k');
    struct lab_top_request request = press(&g, 'y');
    assert_int_equal(request.action, LAB_TOP_KILL);
    assert_int_equal(request.pid, 4100);
    assert_int_equal(request.start, 77);
    assert_int_equal(request.signal, SIGTERM);
    press(&g, 'k');
    request = press(&g, 'y');
    assert_int_equal(request.pid, 4100);
    assert_int_equal(request.signal, SIGKILL);
    press(&g, LAB_TOP_KEY_DOWN);
    press(&g, 'k');
    request = press(&g, 'y');
    assert_int_equal(request.pid, 4377);
    assert_int_equal(request.signal, SIGTERM);
    end(&g);
}

LAB_TEST(killing_is_refused_where_it_must_be) {
    struct given g;
    begin(&g, 4);
    press(&g, 'k');
    assert_string_equal(g.view.message, "select a process first (F4)");
    press(&g, 'l');
    g.view.readonly = true;
    press(&g, 'k');
    assert_int_equal(g.view.prompt, LAB_TOP_NO_PROMPT);
    assert_string_equal(g.view.message, "--readonly: nothing can be ended from here");
    g.view.readonly = false;
    g.view.replay = true;
    press(&g, 'k');
    assert_string_equal(g.view.message, "these processes are of a recording");
    end(&g);
}

LAB_TEST(the_filter_is_typed) {
    struct given g;
    begin(&g, 4);
    press(&g, 'l');
    press(&g, '/');
    type(&g, "webq");
    press(&g, 0xe9); /* é */
    assert_string_equal(g.view.filter, "webq\xc3\xa9");
    press(&g, LAB_TOP_KEY_BACKSPACE);
    press(&g, LAB_TOP_KEY_BACKSPACE);
    press(&g, LAB_TOP_KEY_ENTER);
    assert_string_equal(g.view.filter, "web");
    assert_int_equal(g.view.prompt, LAB_TOP_NO_PROMPT);
    press(&g, 'k');
    assert_int_equal(press(&g, 'y').pid, 4377); /* the first that matches */
    press(&g, LAB_TOP_KEY_ESCAPE);
    assert_string_equal(g.view.filter, "");
    assert_int_equal(g.view.page, LAB_TOP_PROCESSES); /* the filter went first */
    press(&g, '/');
    for (int i = 0; i < 300; i++)
        press(&g, 'x');
    assert_int_equal(strlen(g.view.filter), sizeof g.view.filter - 1);
    press(&g, LAB_TOP_KEY_ESCAPE);
    assert_string_equal(g.view.filter, "");
    end(&g);
}

LAB_TEST(sorting_goes_round) {
    struct given g;
    begin(&g, 4);
    press(&g, 'l');
    for (int i = 0; i < LAB_TOP_BY_PID; i++)
        press(&g, 's');
    assert_int_equal(g.view.sort, LAB_TOP_BY_PID);
    press(&g, 'k');
    assert_int_equal(press(&g, 'y').pid, 2210);
    press(&g, 'S');
    press(&g, LAB_TOP_KEY_HOME);
    press(&g, 'k');
    assert_int_equal(press(&g, 'y').pid, 4377);
    for (int i = LAB_TOP_BY_PID; i < LAB_TOP_SORT_COUNT; i++)
        press(&g, 's');
    assert_int_equal(g.view.sort, LAB_TOP_BY_GPU_MEMORY);
    end(&g);
}

LAB_TEST(a_replay_is_steered) {
    struct given g;
    begin(&g, 1);
    g.view.replay = true;
    g.view.now_ns = g.view.begin_ns + 30 * SECOND_NS;
    struct lab_top_request request = press(&g, LAB_TOP_KEY_RIGHT);
    assert_int_equal(request.action, LAB_TOP_SEEK);
    assert_int_equal(request.time_ns, g.view.begin_ns + 40 * SECOND_NS);
    assert_int_equal(press(&g, LAB_TOP_KEY_LEFT).time_ns, g.view.begin_ns + 20 * SECOND_NS);
    assert_int_equal(press(&g, LAB_TOP_KEY_SHIFT_LEFT).time_ns, g.view.begin_ns);
    assert_int_equal(press(&g, LAB_TOP_KEY_SHIFT_RIGHT).time_ns, g.view.end_ns);
    assert_int_equal(press(&g, LAB_TOP_KEY_HOME).time_ns, g.view.begin_ns);
    assert_int_equal(press(&g, LAB_TOP_KEY_END).time_ns, g.view.end_ns);
    press(&g, ' ');
    assert_true(g.view.paused);
    for (int i = 0; i < 20; i++)
        press(&g, '+');
    assert_true(g.view.speed == 64);
    for (int i = 0; i < 40; i++)
        press(&g, '-');
    assert_true(g.view.speed == 0.125);
    end(&g);
}

/* Given nothing to select, no key does harm. */
LAB_TEST(keys_on_an_empty_history_do_nothing) {
    struct lab_top_setup setup = {.interval_ns = SECOND_NS};
    struct lab_top_history *history = lab_top_history_open(&setup);
    for (int page = 0; page < LAB_TOP_PAGE_COUNT; page++)
        for (int key = 1; key <= LAB_TOP_KEY_F10; key += key < 256 || key >= 0x10fff0 ? 1 : 4096) {
            struct lab_top_view view = {.columns = 80, .rows = 24, .speed = 1};
            view.page = (enum lab_top_page)page;
            assert_int_not_equal(lab_top_key(&view, history, key).action, LAB_TOP_KILL);
            assert_int_not_equal(lab_top_key(&view, history, 'y').action, LAB_TOP_KILL);
        }
    lab_top_history_close(history);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
