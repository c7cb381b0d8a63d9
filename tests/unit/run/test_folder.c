/* A study's folder: a new one gets its name, an unfinished one is found again. */
#include "folder_fixture.h"

#include "base/clock.h"
#include "base/file/own.h"
#include "base/log.h"
#include "base/yaml/yaml.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>

/* --- a new one --- */

LAB_TEST(a_new_folder_is_hidden_until_it_is_published) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_false(folder.resumed);
    const char *name = strrchr(folder.path, '/') + 1;
    assert_int_equal(name[0], '.');
    assert_contains(name, lab_arena_printf(&arena, ".%d", (int)getpid()));
    assert_true(exists(lab_arena_printf(&arena, "%s/lock", folder.path)));
    assert_true(exists(lab_arena_printf(&arena, "%s/logs", folder.path)));
    assert_false(exists(folder.place));
    assert_true(lab_str_starts(folder.place, in_study("20")));
    struct stat info;
    mode_t masked = umask(0);
    umask(masked);
    assert_int_equal(stat(in_study(""), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0777 & ~masked);

    const char *hidden = lab_arena_strdup(&arena, folder.path);
    assert_works(lab_folder_publish(&folder, &err));
    assert_string_equal(folder.path, folder.place);
    assert_true(exists(folder.path));
    assert_false(exists(hidden));
    lab_folder_close(&folder);
}

LAB_TEST(a_relative_output_dir_gives_absolute_paths) {
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    wanted.output_dir = "./outputs//";
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(lab_str_starts(folder.path, in_study("20")));
    assert_true(lab_str_starts(folder.place, in_study("20")));
    lab_folder_close(&folder);
    assert_int_equal(chdir(before), 0);
}

LAB_TEST(one_that_is_never_published_leaves_nothing) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    write_file(lab_arena_printf(&arena, "%s/logs/a.stdout", folder.path), "text");
    lab_folder_close(&folder);
    assert_int_equal(count_entries(in_root("outputs")), 0);
    lab_folder_close(&folder); /* twice does no harm */
}

/* Given a hidden folder that another process removed, then it gets no name. */
LAB_TEST(one_that_is_gone_is_not_published) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(false);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    lab_own_remove_tree(folder.path);
    assert_refused(lab_folder_publish(&folder, &err), LAB_ERR_SYSTEM,
                   lab_arena_printf(&arena, "naming the study's directory %s", folder.place));
    lab_folder_close(&folder);
    assert_false(exists(in_study("")));
}

LAB_TEST(a_name_that_is_taken_gets_a_suffix) {
    struct lab_folder folders[3];
    struct lab_folder_request wanted = request(false);
    for (int i = 0; i < 3; i++) {
        folders[i] = LAB_FOLDER_INIT;
        assert_works(lab_folder_open(&wanted, &folders[i], &err));
        /* as if all of them had begun in the same second */
        free(folders[i].place);
        folders[i].place = lab_mem_strdup(in_study("2026-11-15/10-42-03"));
        make_directories(in_study("2026-11-15"));
    }
    for (int i = 0; i < 3; i++)
        assert_works(lab_folder_publish(&folders[i], &err));
    assert_string_equal(folders[0].path, in_study("2026-11-15/10-42-03"));
    assert_string_equal(folders[1].path, in_study("2026-11-15/10-42-03_2"));
    assert_string_equal(folders[2].path, in_study("2026-11-15/10-42-03_3"));
    for (int i = 0; i < 3; i++)
        lab_folder_close(&folders[i]);
}

LAB_TEST(an_empty_directory_in_its_place_is_not_replaced) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(false);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    make_directories(folder.place);
    const char *taken = lab_arena_strdup(&arena, folder.place);
    assert_works(lab_folder_publish(&folder, &err));
    assert_string_equal(folder.path, lab_arena_printf(&arena, "%s_2", taken));
    lab_folder_close(&folder);
}

LAB_TEST(places_where_nothing_can_be_made_are_refused) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    write_file(in_root("outputs"), "a file");
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER, "is a file");
    assert_contains(err.text, in_root("outputs"));
    assert_contains(err.text, "output_dir=");
    wanted.output_dir = "/proc/self/outputs";
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER, "/proc/self/outputs");
    assert_contains(err.text, "output_dir=");
    /* the reason is that of the making, not of the look at what isn't there */
    wanted.output_dir = "/sys/gpulab-outputs";
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER, "/sys/gpulab-outputs");
    assert_null(strstr(err.text, "No such file"));
    assert_int_equal(folder.lock_fd, -1);
}

LAB_TEST(a_study_needs_a_name_that_can_be_a_directory) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    static const char *const names[] = {"", "..", ".hidden", "a/b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wanted.study = names[i];
        assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER, "experiment.name=");
    }
    char name[257];
    for (size_t length = 255; length <= 256; length++) {
        memset(name, 'a', sizeof name);
        name[length] = '\0';
        wanted.study = name;
        if (length > 255)
            assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER,
                           "it needs 1 to 255 characters");
        else
            assert_works(lab_folder_open(&wanted, &folder, &err));
        lab_folder_close(&folder);
    }
}

/* --- what others left under hidden names --- */

static const char *today(void) {
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(false);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    const char *path = lab_arena_strdup(&arena, folder.path);
    lab_folder_close(&folder);
    return lab_arena_strndup(&arena, path, (size_t)(strrchr(path, '/') - path));
}

LAB_TEST(hidden_folders_of_the_dead_are_removed_and_no_others) {
    /* given: one of a living process, one of a killed one, one that hadn't got its lock yet, and
     * things that look a little like it */
    struct lab_folder_request wanted = request(false);
    struct other living = start_other(open_and_keep, &wanted);
    struct other dead = start_other(open_and_keep, &wanted);
    kill_other(&dead);
    const char *date = today(); /* makes one too, and so removes the dead one's */
    assert_int_equal(count_entries(date), 1);
    make_directories(lab_arena_printf(&arena, "%s/.10-42-03.99/logs", date));
    make_directories(lab_arena_printf(&arena, "%s/.git", date));
    make_directories(lab_arena_printf(&arena, "%s/.10-42-03.mine", date));
    make_directories(lab_arena_printf(&arena, "%s/10-42-03", date));
    static const char *const others[] = {".10-42-0x.9", ".10-42-03x9", ".10-42-03", ".10-42-03.",
                                         "x10-42-03.9"};
    for (int i = 0; i < 5; i++)
        make_directories(lab_arena_printf(&arena, "%s/%s/lock", date, others[i]));
    make_directories(lab_arena_printf(&arena, "%s/.10-42-03.9.2", date));
    make_directories(lab_arena_printf(&arena, "%s/.10-42-03.7", date));
    if (chown(lab_arena_printf(&arena, "%s/.10-42-03.7", date), 65534, 65534) < 0)
        lab_own_remove_tree(lab_arena_printf(&arena, "%s/.10-42-03.7", date));
    int theirs = exists(lab_arena_printf(&arena, "%s/.10-42-03.7", date));
    /* when */
    struct lab_folder folder = LAB_FOLDER_INIT;
    assert_works(lab_folder_open(&wanted, &folder, &err));
    /* then */
    assert_false(exists(lab_arena_printf(&arena, "%s/.10-42-03.99", date)));
    assert_true(exists(lab_arena_printf(&arena, "%s/.git", date)));
    assert_true(exists(lab_arena_printf(&arena, "%s/.10-42-03.mine", date)));
    assert_true(exists(lab_arena_printf(&arena, "%s/10-42-03", date)));
    assert_false(exists(lab_arena_printf(&arena, "%s/.10-42-03.9.2", date)));
    for (int i = 0; i < 5; i++)
        assert_true(exists(lab_arena_printf(&arena, "%s/%s", date, others[i])));
    assert_int_equal(count_entries(date), 10 + theirs); /* these, the living one's, our own */
    lab_folder_close(&folder);
    assert_int_equal(count_entries(date), 9 + theirs);
    wait_for_other(&living);
}

LAB_TEST(killed_around_its_naming_it_is_hidden_or_whole) {
    static const char *const points[] = {"before-publish", "after-publish"};
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct lab_folder folder = LAB_FOLDER_INIT;
            struct lab_folder_request wanted = request(false);
            setenv("GPULAB_FAILPOINT", points[i], 1);
            if (lab_folder_open(&wanted, &folder, &err) == 0)
                lab_folder_publish(&folder, &err);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        const char *date = today(); /* removes what is hidden */
        assert_int_equal(exists(date) ? count_entries(date) : 0, i);
    }
}

/* Makers remove what looks dead while others are about to take their lock. */
LAB_TEST(many_at_once_don_t_lose_a_folder) {
    enum { PROCESSES = 4, EACH = 10 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        for (int j = 0; children[i] == 0 && j < EACH; j++) {
            struct lab_folder folder = LAB_FOLDER_INIT;
            struct lab_folder_request wanted = request(false);
            if (lab_folder_open(&wanted, &folder, &err) < 0 ||
                lab_folder_publish(&folder, &err) < 0 || !lab_folder_held(folder.path, NULL))
                _exit(1);
            lab_folder_close(&folder);
        }
        if (children[i] == 0)
            _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    int count = 0; /* over midnight they are in two of them */
    DIR *directory = opendir(in_root("outputs/quick_test"));
    for (const struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            count += count_entries(in_study(entry->d_name));
    closedir(directory);
    assert_int_equal(count, PROCESSES * EACH);
}

/* --- resume --- */

LAB_TEST(the_newest_unfinished_one_of_the_same_plan_goes_on) {
    make_study(in_study("2026-11-13/09-00-00"), PLAN, MACHINE, 0);
    make_study(in_study("2026-11-14/23-59-59_9"), PLAN, MACHINE, 1);
    make_study(in_study("2026-11-14/23-59-59_10"), PLAN, MACHINE, 1);
    make_study(in_study("2026-11-14/23-59-59"), PLAN, MACHINE, 0);
    make_study(in_study("2026-11-15/08-00-00"), PLAN, MACHINE, 2);     /* finished */
    make_study(in_study("2026-11-15/09-00-00"), PLAN + 1, MACHINE, 0); /* another plan */
    make_study(in_study("2026-11-15/10-00-00"), PLAN, MACHINE + 1, 0); /* another machine */
    make_directories(in_study("2026-11-15/11-00-00"));                 /* no study at all */
    make_directories(in_study("2026-11-15/12-00-00_"));                /* nor these */
    make_study(in_study("2026-11-15/12-00-00_x"), PLAN, MACHINE, 0);
    make_study(in_study("2026-11-15/12-00-00_1x"), PLAN, MACHINE, 0);
    make_directories(in_study("notes"));
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    assert_string_equal(folder.path, in_study("2026-11-14/23-59-59_10"));
    assert_string_equal(folder.place, folder.path);
    lab_folder_close(&folder);
    assert_true(exists(in_study("2026-11-14/23-59-59_10/study.db")));
}

static void keep_log(enum lab_log_level level, const char *text, void *state) {
    (void)level;
    snprintf(state, 512, "%s", text);
}

/* Given a study that the same words began when defaults were others, then it is said how it goes on. */
LAB_TEST(one_of_other_defaults_is_named) {
    static const struct {
        const char *config, *words, *changes;
        int done;
    } cases[] = {
        {"a: 1\nb: {c: 2, d: [x]}\ne: {f: 3}\ng: 4\n", "[\"quick\"]",
         " a=1 'b.d=[\"x\"]' 'e={\"f\": 3}'", 1},
        {"a: 2\n", "[\"quick\"]", "", 1},
        {"a: 1\n", "[\"other\"]", NULL, 1},
        {"a: 1\n", "[\"quick\"]", NULL, 2},
        {"[1]\n", "[\"quick\"]", NULL, 1},
        {"{\n", "[\"quick\"]", NULL, 1},
    };
    struct lab_value *now;
    static const char text[] = "{a: 2, b: {c: 2, d: [y]}, e: 5}";
    assert_works(lab_yaml_parse(text, strlen(text), "now", LAB_YAML_LIMITS, &arena, &now, &err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = in_study(lab_arena_printf(&arena, "2026-11-1%zu/10-00-00", i));
        char said[512] = "";
        study_config = cases[i].config;
        study_words = cases[i].words;
        make_study(path, PLAN + 1, MACHINE, cases[i].done);
        struct lab_folder folder = LAB_FOLDER_INIT;
        struct lab_folder_request wanted = request(true);
        wanted.words = "[\"quick\"]";
        wanted.config = now;
        lab_log_set_sink(keep_log, said, LAB_LOG_WARNING);
        int result = lab_folder_open(&wanted, &folder, &err);
        lab_log_set_sink(NULL, NULL, LAB_LOG_ERROR);
        assert_works(result);
        assert_false(folder.resumed);
        lab_folder_close(&folder);
        const char *expected =
            cases[i].changes
                ? lab_arena_printf(&arena,
                                   "%s is unfinished and has other defaults: a new study starts. "
                                   "To resume it: gpulab run quick_test%s",
                                   path, cases[i].changes)
                : "";
        assert_string_equal(said, expected);
        nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    study_config = NULL;
    study_words = NULL;
}

LAB_TEST(a_failed_run_is_unfinished) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 1);
    struct lab_store *store;
    assert_works(
        lab_store_open(in_study("2026-11-14/10-00-00/study.db"), LAB_STORE_WRITE, &store, &err));
    finish_run(store, 2, LAB_RUN_FAILED, 1.0);
    lab_store_close(store);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    lab_folder_close(&folder);
}

LAB_TEST(without_resume_a_new_one_is_made) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(false);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_false(folder.resumed);
    lab_folder_close(&folder);
}

LAB_TEST(a_file_that_cannot_be_read_is_passed_over) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    make_directories(in_study("2026-11-15/10-00-00"));
    write_file(in_study("2026-11-15/10-00-00/study.db"), "this was never a database of ours");
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_string_equal(folder.path, in_study("2026-11-14/10-00-00"));
    lab_folder_close(&folder);
}

/* Given too few descriptors to find an unfinished study or to read it, then no other one begins. */
LAB_TEST(what_the_system_keeps_unknown_is_not_passed_over) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int refused = 0, next = dup(STDIN_FILENO);
    close(next);
    for (int spare = 0; spare < 8; spare++) {
        struct lab_folder folder = LAB_FOLDER_INIT;
        struct lab_folder_request wanted = request(true);
        struct rlimit few = {(rlim_t)(next + spare), before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int result = lab_folder_open(&wanted, &folder, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        refused += result < 0;
        if (result == 0)
            assert_true(folder.resumed);
        else
            assert_int_equal(err.code, LAB_ERR_SYSTEM);
        lab_folder_close(&folder);
    }
    assert_in_range(refused, 2, 7);
}

/* Given an unfinished study of the same plan that is another user's, or leads elsewhere, then it is
 * neither resumed nor touched. */
LAB_TEST(a_study_of_another_user_is_passed_over) {
    const char *theirs = in_study("2026-11-15/10-00-00");
    make_study(theirs, PLAN, MACHINE, 0);
    make_study(in_root("elsewhere"), PLAN, MACHINE, 0);
    make_directories(in_study("2026-11-15/11-00-00"));
    assert_int_equal(
        symlink(in_root("elsewhere/study.db"), in_study("2026-11-15/11-00-00/study.db")), 0);
    assert_int_equal(symlink(in_root("elsewhere"), in_study("2026-11-15/12-00-00")), 0);
    if (chown(theirs, 65534, 65534) < 0) /* only root can: then it is our own */
        lab_own_remove_tree(theirs);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_false(folder.resumed);
    lab_folder_close(&folder);
    assert_false(exists(lab_arena_printf(&arena, "%s/lock", theirs)));
    assert_false(exists(in_root("elsewhere/lock")));
}

LAB_TEST(a_lock_that_leads_elsewhere_is_not_opened) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    write_file(in_root("precious"), "precious");
    assert_int_equal(symlink(in_root("precious"), in_study("2026-11-14/10-00-00/lock")), 0);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER, "lock is a link");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
