/* test_status.c: `gpulab status` as a user calls it, on a terminal and elsewhere. */
#include "status_fixture.h"

#include <poll.h>
#include <pty.h>
#include <termios.h>

extern const struct lab_command lab_command_status;

static const struct lab_value *first_study(void) {
    struct lab_value *list = lab_value_get(output_value(), "studies");
    assert_true(list->count > 0);
    return list->items[0];
}

static int64_t run_count(const struct lab_value *study, const char *state) {
    return lab_value_get(lab_value_get(study, "runs"), state)->integer;
}

/* --- once --- */

LAB_TEST(without_studies_it_says_how_to_begin) {
    CALL(lab_command_status, NULL);
    assert_output("No study is running, and none was interrupted.\n");
    assert_output("gpulab run quick_test");
    assert_int_equal(status, 0);
    given_study("ended", "dddd");
    CALL(lab_command_status, NULL);
    assert_output("'gpulab list' shows those that have ended.\n");
}

LAB_TEST(running_study_is_shown_with_its_runner) {
    const char *path = given_study("busy", "dfr.");
    int runner = given_runner("busy");
    given_progress(path, 3, "measuring", 60);
    CALL(lab_command_status, NULL);
    assert_output("busy");
    assert_output("vit2");
    assert_output("measuring");
    assert_output("60");
    assert_output(lab_arena_printf(&arena, "process %d", (int)holders[runner].pid));
    CALL(lab_command_status, "--json");
    const struct lab_value *study = first_study();
    assert_string_equal(lab_value_get(study, "state")->string, "running");
    assert_string_equal(lab_value_get(study, "folder")->string, path);
    assert_int_equal(run_count(study, "total"), 4);
    assert_int_equal(run_count(study, "done"), 1);
    assert_int_equal(run_count(study, "failed"), 1);
    assert_int_equal(run_count(study, "running"), 1);
    assert_int_equal(run_count(study, "planned"), 1);
    const struct lab_value *progress = lab_value_get(study, "progress")->items[0];
    assert_string_equal(lab_value_get(progress, "run_id")->string, "gpu0_numa0_vit2");
    assert_int_equal(lab_value_get(progress, "done")->integer, 60);
    assert_int_equal(lab_value_get(lab_value_get(study, "holder"), "pid")->integer,
                     holders[runner].pid);
}

/* Given a program that reports, then its last values come with its run. */
LAB_TEST(values_of_a_running_program_are_shown) {
    run_workload = "command";
    const char *path = given_study("busy", "dr..");
    run_workload = "vit";
    given_runner("busy");
    given_progress(path, 2, "measuring", 3);
    static const struct lab_store_metric metrics[] = {{"loss", "", 0, 0.75, 1, 10},
                                                      {"loss", "", 0, 0.5, 2, 20},
                                                      {"speed", "tokens/s", 0, 1250, 2, 20}};
    struct lab_store *store;
    assert_works(lab_store_open(lab_arena_printf(&arena, "%s/study.db", path), LAB_STORE_WRITE,
                                &store, &err));
    assert_works(lab_store_add_metrics(store, 2, metrics, 3, &err));
    lab_store_close(store);
    CALL(lab_command_status, NULL);
    assert_output("loss 0.5");
    CALL(lab_command_status, "--json");
    const struct lab_value *run = lab_value_get(first_study(), "progress")->items[0];
    assert_true(lab_value_get_number(run, "step") == 20);
    const struct lab_value *list = lab_value_get(run, "metrics");
    assert_int_equal(list->count, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(lab_value_get_text(list->items[i], "name", ""), i ? "speed" : "loss");
        assert_string_equal(lab_value_get_text(list->items[i], "unit", "?"), i ? "tokens/s" : "");
        assert_int_equal(lab_value_get_int(list->items[i], "rank", -7), 0);
        assert_true(lab_value_get_number(list->items[i], "last") == (i ? 1250 : 0.5));
    }
}

LAB_TEST(interrupted_study_says_how_to_go_on) {
    given_study("stopped", "dr..");
    CALL(lab_command_status, NULL);
    assert_output("gpulab run stopped");
    CALL(lab_command_status, "--json");
    assert_string_equal(lab_value_get(first_study(), "state")->string, "interrupted");
    assert_int_equal(lab_value_get(first_study(), "holder")->type, LAB_VALUE_NULL);
}

LAB_TEST(named_study_may_have_ended) {
    given_study("ended", "dddd");
    given_study("stopped", "d...");
    CALL(lab_command_status, "ended");
    assert_output("ended");
    assert_null(strstr(output, "stopped"));
    const char *const unknown[] = {"nothing_such", NULL};
    assert_int_equal(call_for_output(&lab_command_status, unknown), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
}

LAB_TEST(old_ones_are_shown_on_demand) {
    for (int i = 0; i < 11; i++)
        given_study(lab_arena_printf(&arena, "stopped_%d", i), "d...");
    CALL(lab_command_status, NULL);
    assert_output("older ones that are unfinished (--all)");
    CALL(lab_command_status, "--all");
    assert_null(strstr(output, "--all"));
}

/* --- follow: another process follows; the test goes on once it has seen what it waits for --- */

struct follower {
    pid_t pid;
    int fd; /* what it prints */
    struct lab_str seen;
};

static void follow(const char *const *words, bool on_terminal) {
    for (int i = 0; i < holder_count; i++)
        close(holders[i].go);
    int result = call_command(&lab_command_status, stdout, on_terminal, words);
    struct termios now;
    bool restored = !on_terminal || (tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & ICANON) &&
                                     (now.c_lflag & ECHO));
    fflush(stdout);
    _exit(result < 0 ? 99 : !restored ? 98 : status);
}

/* On a terminal of its own. */
static struct follower given_terminal(const char *term) {
    static const char *const words[] = {"--follow", "--interval=100ms", NULL};
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct follower follower;
    lab_str_init(&follower.seen);
    follower.pid = forkpty(&follower.fd, NULL, NULL, &size);
    assert_true(follower.pid >= 0);
    if (follower.pid == 0) {
        setenv("TERM", term, 1);
        follow(words, true);
    }
    return follower;
}

/* Into a pipe. */
static struct follower given_reader(const char *const *words) {
    int ends[2];
    struct follower follower;
    lab_str_init(&follower.seen);
    assert_int_equal(pipe(ends), 0);
    follower.pid = fork();
    assert_true(follower.pid >= 0);
    if (follower.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        follow(words, false);
    }
    close(ends[1]);
    follower.fd = ends[0];
    return follower;
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

/* Reads until the text has come so many times; false: the output has ended before. */
static bool await(struct follower *follower, const char *text, int times) {
    while (count_of(follower->seen.text, text) < times) {
        char bytes[4096];
        struct pollfd more = {.fd = follower->fd, .events = POLLIN};
        if (poll(&more, 1, 20000) <= 0)
            return false;
        ssize_t length = read(follower->fd, bytes, sizeof bytes);
        if (length <= 0)
            return false;
        lab_str_add_bytes(&follower->seen, bytes, (size_t)length);
    }
    return true;
}

#define assert_comes(from, part, times)                                                            \
    do {                                                                                           \
        if (!await(from, part, times))                                                             \
            fail_msg("no '%s' in:\n%s", part, (from)->seen.text);                                  \
    } while (0)

/* Its exit status; what it has printed stays in `output`. */
static int end_of(struct follower *follower) {
    int ended;
    await(follower, "\x7f", 1); /* never comes: reads to the end */
    assert_int_equal(waitpid(follower->pid, &ended, 0), follower->pid);
    close(follower->fd);
    output = lab_arena_strdup(&arena, follower->seen.text);
    lab_str_release(&follower->seen);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

/* --- without a terminal --- */

LAB_TEST(without_a_terminal_a_line_is_a_change) {
    static const char *const words[] = {"--follow", "--interval=100ms", NULL};
    const char *path = given_study("busy", "ddr.");
    given_progress(path, 3, "warm-up", 1);
    int runner = given_runner("busy");
    struct follower follower = given_reader(words);
    assert_comes(&follower, "busy: running, 2 of 4 done; gpu0_numa0_vit2 warm-up; about ", 1);
    given_progress(path, 3, "warm-up", 2); /* no change worth a line */
    given_progress(path, 3, "measuring", 50);
    assert_comes(&follower, "busy: running, 2 of 4 done; gpu0_numa0_vit2 measuring; about ", 1);
    let_go(runner);
    holder_count--;
    assert_comes(&follower, "busy: interrupted, 2 of 4 done\n", 1);
    assert_int_equal(end_of(&follower), 1); /* it didn't finish */
    assert_int_equal(count_of(output, "\n"), 3);
}

LAB_TEST(for_programs_each_look_is_a_line) {
    static const char *const words[] = {"--follow", "--interval=100ms", "--json", NULL};
    given_study("busy", "dr..");
    int runner = given_runner("busy");
    struct follower follower = given_reader(words);
    assert_comes(&follower, "\n", 2);
    let_go(runner);
    holder_count--;
    assert_int_equal(end_of(&follower), 1);
    for (char *line = output; *line;) {
        size_t length = strcspn(line, "\n");
        struct lab_value *value;
        assert_works(lab_json_parse(line, length, "line", &arena, &value, &err));
        assert_int_equal(lab_value_get(value, "studies")->count, 1);
        line += length + 1;
    }
}

LAB_TEST(followed_study_that_has_ended_says_how) {
    given_study("ended", "dddd");
    given_study("ended_badly", "ddfd");
    CALL(lab_command_status, "ended", "--follow");
    assert_output("ended: ended, 4 of 4 done\n");
    assert_int_equal(status, 0);
    CALL(lab_command_status, "ended_badly", "--follow");
    assert_output("ended_badly: ended, 3 of 4 done, 1 failed\n");
    assert_int_equal(status, 1);
}

LAB_TEST(nothing_to_follow_shows_what_there_is) {
    given_study("stopped", "d...");
    CALL(lab_command_status, "--follow");
    assert_output("gpulab run stopped");
    assert_int_equal(status, 0);
}

/* --- on a terminal --- */

static void assert_leaves_by(const char *key) {
    const char *path = given_study("busy", "dr..");
    given_runner("busy");
    given_progress(path, 2, "measuring", 60);
    struct follower follower = given_terminal("xterm");
    assert_comes(&follower, "\033[J", 2);  /* drawn again… */
    assert_comes(&follower, "\r\033[", 1); /* …at the same place */
    assert_int_equal(write(follower.fd, key, 1), 1);
    assert_int_equal(end_of(&follower), 0);
}

LAB_TEST(q_leaves) {
    assert_leaves_by("q");
}

LAB_TEST(ctrl_c_leaves) {
    assert_leaves_by("\003");
}

LAB_TEST(drawing_ends_with_the_study) {
    given_study("busy", "dr..");
    int runner = given_runner("busy");
    struct follower follower = given_terminal("xterm");
    assert_comes(&follower, "\033[J", 1);
    let_go(runner);
    holder_count--;
    assert_int_equal(end_of(&follower), 1);
    assert_output("gpulab run busy"); /* the last drawing says how to go on */
}

LAB_TEST(dumb_terminal_gets_lines) {
    given_study("busy", "dr..");
    int runner = given_runner("busy");
    struct follower follower = given_terminal("dumb");
    assert_comes(&follower, "busy: running", 1);
    let_go(runner);
    holder_count--;
    assert_comes(&follower, "busy: interrupted, 1 of 4 done", 1);
    assert_int_equal(end_of(&follower), 1);
    assert_null(strchr(output, '\033'));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
