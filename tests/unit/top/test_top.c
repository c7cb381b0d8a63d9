/* What `top` shows, as text: every page, sizes, gaps, instances, simulated devices, ASCII. */
#include "top_fixture.h"
#include "unit/report/study_fixture.h"

#include "top/top.h"

#include <stdlib.h>

/* --- golden screens --- */

enum given { PLAIN, GAP, MIG, SIMULATED, MACHINE, PROGRAM };

struct screen {
    const char *name;
    int gpus;
    enum given given;
    enum lab_top_page page;
    int columns, rows;
    const char *keys; /* pressed before it is drawn */
    bool ascii, styles;
};

static const struct screen screens[] = {
    {"overview-1", 1, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "", false, true},
    {"overview-4", 4, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "2", false, false},
    {"overview-16", 16, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "", false, false},
    {"overview-16", 16, PLAIN, LAB_TOP_OVERVIEW, 200, 60, "", false, false},
    {"overview-4", 4, PLAIN, LAB_TOP_OVERVIEW, 40, 12, "", false, false},
    {"overview-16", 16, PLAIN, LAB_TOP_OVERVIEW, 40, 12, "9", false, false},
    {"overview-gap", 2, GAP, LAB_TOP_OVERVIEW, 80, 24, "", false, true},
    {"overview-mig", 1, MIG, LAB_TOP_OVERVIEW, 80, 24, "", false, false},
    {"overview-cpu", 0, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "", false, false},
    {"device", 4, PLAIN, LAB_TOP_DEVICE, 80, 24, "0", false, false},
    {"device", 4, PLAIN, LAB_TOP_DEVICE, 200, 60, "2", false, false},
    {"device", 4, PLAIN, LAB_TOP_DEVICE, 40, 12, "", false, false},
    {"device-ascii", 4, PLAIN, LAB_TOP_DEVICE, 80, 24, "", true, false},
    {"device-gap", 2, GAP, LAB_TOP_DEVICE, 80, 24, "1", false, true},
    {"device-cpu", 0, PLAIN, LAB_TOP_DEVICE, 80, 24, "", false, false},
    {"device-simulated", 2, SIMULATED, LAB_TOP_DEVICE, 80, 24, "z", false, false},
    {"processes", 4, PLAIN, LAB_TOP_PROCESSES, 80, 24, "v", false, true},
    {"processes-tree", 4, PLAIN, LAB_TOP_PROCESSES, 80, 24, "ta", false, false},
    {"processes-filter", 4, PLAIN, LAB_TOP_PROCESSES, 80, 24, "a/loader", false, false},
    {"processes", 4, PLAIN, LAB_TOP_PROCESSES, 40, 12, "", false, false},
    {"processes-kill", 4, PLAIN, LAB_TOP_PROCESSES, 80, 24, "vk", false, false},
    {"numa", 4, MACHINE, LAB_TOP_NUMA, 80, 24, "", false, false},
    {"numa-no-machine", 4, PLAIN, LAB_TOP_NUMA, 80, 24, "", true, false},
    {"program", 1, PROGRAM, LAB_TOP_PROGRAM, 80, 24, "", false, true},
    {"program", 1, PROGRAM, LAB_TOP_PROGRAM, 120, 20, "", false, false},
    {"program", 1, PROGRAM, LAB_TOP_PROGRAM, 40, 12, "", true, false},
    {"program-none", 1, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "m", false, false},
    {"help", 1, PLAIN, LAB_TOP_OVERVIEW, 80, 24, "?", false, false},
};

/* Two nodes of 16 CPUs each. */
static const struct lab_machine *two_nodes(void) {
    static int cpus[32];
    static struct lab_node nodes[2];
    static const struct lab_machine machine = {.nodes = nodes, .node_count = 2};
    for (int i = 0; i < 32; i++)
        cpus[i] = i;
    for (int i = 0; i < 2; i++)
        nodes[i] = (struct lab_node){.number = i, .cpus = {i ? cpus + 16 : cpus, 16}};
    return &machine;
}

static void begin(struct top_fixture *f, const struct screen *screen) {
    top_fixture_init(f, screen->gpus, screen->given == SIMULATED);
    if (screen->given == GAP)
        top_fixture_gap(f, 1, 150, "the GPU is lost: it fell off the bus or was taken out (15)");
    for (int i = 0; screen->given == MIG && i < 2; i++)
        top_fixture_mig(f, 0, i);
}

/* 'v' stands for the arrow down. */
static void press(struct lab_top_view *view, const struct lab_top_history *history,
                  const char *keys) {
    for (; *keys; keys++)
        lab_top_key(view, history,
                    *keys == 'v' && view->prompt == LAB_TOP_NO_PROMPT ? LAB_TOP_KEY_DOWN : *keys);
}

/* One letter for each cell. */
static void write_styles(const struct lab_top_grid *grid, struct lab_str *out) {
    static const char letters[LAB_TOP_STYLE_COUNT + 1] = ".dbtsFSWA";
    for (int i = 0; i < grid->rows * grid->columns; i++) {
        lab_str_add_bytes(out, &letters[grid->cells[i].style], 1);
        lab_str_add(out, (i + 1) % grid->columns ? "" : "\n");
    }
}

LAB_TEST(golden_screens_hold) {
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        const struct screen *screen = &screens[i];
        struct top_fixture f;
        struct lab_top_grid grid;
        char name[80];
        begin(&f, screen);
        struct lab_top_history *history =
            top_fixture_history(&f, screen->given == MACHINE ? two_nodes() : NULL);
        struct lab_top_view view = top_fixture_view(&f, screen->columns, screen->rows);
        view.page = screen->page;
        view.unicode = !screen->ascii;
        struct fixture study;
        fixture_program_running(&study);
        if (screen->given == PROGRAM) {
            view.programs = study.study.programs;
            view.program_count = 1;
        }
        press(&view, history, screen->keys);
        lab_top_grid_init(&grid);
        LAB_AUTO(str, text);
        lab_top_draw(history, &view, &grid);
        lab_top_grid_write(&grid, &text);
        assert_fits(text.text, screen->columns);
        if (screen->ascii)
            assert_ascii(text.text);
        if (screen->styles)
            write_styles(&grid, &text);
        snprintf(name, sizeof name, "top-%s-%dx%d.txt", screen->name, screen->columns,
                 screen->rows);
        assert_golden(text.text, name);
        lab_top_grid_release(&grid);
        lab_top_history_close(history);
        top_fixture_release(&f);
        fixture_release(&study);
    }
}

/* --- what holds for every page and size --- */

/* Given a simulated machine, the word stands on each page, also in the snapshot and the summary. */
LAB_TEST(simulated_devices_say_so_everywhere) {
    struct top_fixture f;
    top_fixture_init(&f, 2, true);
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    LAB_AUTO(str, text);
    for (int page = 0; page < LAB_TOP_PAGE_COUNT; page++)
        for (int narrow = 0; narrow < 2; narrow++) {
            struct lab_top_view view =
                top_fixture_view(&f, narrow ? 40 : 80, narrow ? LAB_TOP_ROWS_MIN : 24);
            view.page = (enum lab_top_page)page;
            draw(history, &view, &text);
            assert_contains(text.text, "SIMULATED");
            view.prompt = LAB_TOP_HELP;
            draw(history, &view, &text);
            assert_contains(text.text, "SIMULATED");
        }
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    lab_str_clear(&text);
    lab_top_snapshot(history, &view, &text);
    assert_contains(text.text, "SIMULATED");
    lab_str_clear(&text);
    lab_top_summary(history, &view, true, &text);
    assert_contains(text.text, "(simulated)");
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given many steps, then they are whole: neither rounded nor with an exponent. */
LAB_TEST(steps_of_programs_are_whole) {
    struct top_fixture f;
    struct fixture study;
    top_fixture_init(&f, 1, false);
    fixture_program_running(&study);
    struct lab_program program = study.study.programs[0];
    struct lab_metric_curve metric = program.metrics[0];
    lab_curve_add(&metric.curve, 123456789, 60, 0.5, &study.arena);
    program.metrics = &metric;
    program.metric_count = 1;
    program.step = 123456789;
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 80, 24);
    LAB_AUTO(str, text);
    view.page = LAB_TOP_PROGRAM;
    view.programs = &program;
    view.program_count = 1;
    draw(history, &view, &text);
    assert_contains(text.text, "adamw, step 123456789");
    assert_contains(text.text, "step 0 to 123456789");
    lab_top_history_close(history);
    top_fixture_release(&f);
    fixture_release(&study);
}

/* Given any size, however small, drawing stays within it; below the least it says what it needs. */
LAB_TEST(every_size_is_drawn) {
    static const int columns[] = {1, 2, 5, 12, 39, 40, 41, 60, 79, 101, 133, 250};
    static const int rows[] = {1, 2, 3, 11, 12, 13, 17, 25, 70};
    struct top_fixture f;
    top_fixture_init(&f, 16, false);
    top_fixture_gap(&f, 3, 20, "GPU is lost");
    struct lab_top_history *history = top_fixture_history(&f, two_nodes());
    LAB_AUTO(str, text);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int page = 0; page <= LAB_TOP_PAGE_COUNT; page++) {
                struct lab_top_view view = top_fixture_view(&f, columns[c], rows[r]);
                view.page = (enum lab_top_page)(page % LAB_TOP_PAGE_COUNT);
                view.prompt = page == LAB_TOP_PAGE_COUNT ? LAB_TOP_HELP : LAB_TOP_NO_PROMPT;
                draw(history, &view, &text);
                assert_fits(text.text, columns[c]);
                bool small = columns[c] < LAB_TOP_COLUMNS_MIN || rows[r] < LAB_TOP_ROWS_MIN;
                if (small && columns[c] >= 39)
                    assert_contains(text.text, "needs 40 x 12");
                if (!small)
                    assert_contains(text.text, "gpulab");
            }
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given names with escapes, wide letters and broken bytes, nothing of them reaches the terminal. */
LAB_TEST(names_cannot_disturb_the_screen) {
    struct top_fixture f;
    top_fixture_init(&f, 1, false);
    f.recording.processes[0].items[0].command = "a\033[2Jb\nc \xe6\xbc\xa2 \xff\xfe d";
    f.recording.processes[0].items[0].user = "\xc3\xa9ric"; /* a letter that takes two bytes */
    struct lab_top_history *history = top_fixture_history(&f, NULL);
    struct lab_top_view view = top_fixture_view(&f, 120, 24);
    LAB_AUTO(str, text);
    draw(history, &view, &text);
    assert_contains(text.text, "a?[2Jb?c ? ?? d");
    assert_contains(text.text, "\xc3\xa9ric     0");
    assert_null(strchr(text.text, '\033'));
    lab_top_history_close(history);
    top_fixture_release(&f);
}

/* Given nothing at all, each page says that it waits. */
LAB_TEST(an_empty_history_is_drawn) {
    struct lab_top_setup setup = {.interval_ns = SECOND_NS};
    struct lab_top_history *history = lab_top_history_open(&setup);
    LAB_AUTO(str, text);
    for (int page = 0; page < LAB_TOP_PAGE_COUNT; page++) {
        struct lab_top_view view = {.columns = 80, .rows = 24, .unicode = true, .speed = 1};
        view.page = (enum lab_top_page)page;
        draw(history, &view, &text);
        if (page == LAB_TOP_OVERVIEW || page == LAB_TOP_DEVICE)
            assert_contains(text.text, "waiting for the first samples");
    }
    lab_top_history_close(history);
}

const struct lab_test_program lab_test_program = {.open = fixture_setup};
