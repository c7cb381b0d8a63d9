/* What is found and removed of a study: what gpulab wrote, part by part, and nothing else. */
#include "folder_fixture.h"

#include "base/file/file.h"
#include "base/file/out_dir.h"
#include "run/clean.h"

#include <fcntl.h>
#include <sys/file.h>

static const char *below(const char *folder, const char *name) {
    return lab_arena_printf(&arena, "%s/%s", folder, name);
}

/* A study with all that gpulab leaves, and with files of the user's, whose names are like those. */
static const char *given_study(const char *name) {
    static const char *const files[] = {
        "config.yaml", "overrides.yaml", "machine.json", "results.json", "experiment_summary.json",
        ".room", "study.db-wal", "study.db-shm", "study.db-journal", "lock", "traces/pipeline_a",
        "logs/experiment.log", "logs/a.stdout", "logs/a.stderr", "track/a.log", "report/report.md",
        "report/index.html", "report/last.svg", "report/plot.png",
        /* not gpulab's */
        "notes.txt", "config.yaml.old", "traces/a", "logs/a.log", "track/a.txt", "report/index",
        "report/mine.html", "own/report.md", "report/gpulab"};
    const char *folder = in_root(name);
    make_study(folder, PLAN, MACHINE, 2);
    for (int i = 0; i < 5; i++)
        make_directories(
            below(folder, (const char *[]){"traces", "logs", "track", "report", "own"}[i]));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        write_file(below(folder, files[i]), "some");
    write_file(below(folder, LAB_FILE_TEMPORARY "1"), "");
    write_file(below(folder, "report/" LAB_OUT_DIR_MANIFEST),
               "gpulab files 1\nindex.html\nlast.svg");
    write_file(below(folder, "report/" LAB_OUT_DIR_KEPT), "gpulab files 1\nplot.png\n");
    assert_int_equal(symlink("/etc/passwd", below(folder, "traces/pipeline_link")), 0);
    assert_int_equal(symlink("/etc", below(folder, "results")), 0);
    return folder;
}

static const char *joined(const char *const *names, int count) {
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = lab_arena_printf(&arena, "%s%s%s", text, i ? " " : "", names[i]);
    return text;
}

static struct lab_clean find(const char *folder, unsigned set) {
    struct lab_clean clean;
    assert_works(lab_clean_find(folder, set, &arena, &clean, &err));
    return clean;
}

LAB_TEST(each_part_is_found_by_its_names) {
    static const struct {
        unsigned set;
        const char *files, *kept;
    } cases[] = {
        {LAB_CLEAN_TRACES, "traces/pipeline_a", ""},
        {LAB_CLEAN_LOGS, "logs/a.stderr logs/a.stdout logs/experiment.log", ""},
        {LAB_CLEAN_TRACES | LAB_CLEAN_LOGS,
         "traces/pipeline_a logs/a.stderr logs/a.stdout logs/experiment.log", ""},
        {LAB_CLEAN_STUDY,
         "traces/pipeline_a logs/a.stderr logs/a.stdout logs/experiment.log track/a.log "
         "report/.gpulab.kept report/.gpulab.manifest report/index.html report/last.svg "
         "report/plot.png report/report.md " LAB_FILE_TEMPORARY "1 .room config.yaml "
         "experiment_summary.json machine.json overrides.yaml results.json study.db-journal "
         "study.db-shm study.db-wal study.db lock",
         "traces/a traces/pipeline_link logs/a.log track/a.txt report/gpulab report/index "
         "report/mine.html config.yaml.old notes.txt own results"},
    };
    const char *folder = given_study("study");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_clean clean = find(folder, cases[i].set);
        int64_t bytes = 0;
        assert_string_equal(joined(clean.files, clean.file_count), cases[i].files);
        assert_string_equal(joined(clean.kept, clean.kept_count), cases[i].kept);
        for (int k = 0; k < clean.file_count; k++) {
            struct stat info;
            assert_int_equal(stat(below(folder, clean.files[k]), &info), 0);
            bytes += info.st_blocks * 512;
        }
        assert_true(bytes > 0);
        assert_int_equal(clean.bytes, bytes);
    }
}

LAB_TEST(however_many_there_are) {
    enum { LOGS = 300 };
    const char *folder = in_root("study");
    make_study(folder, PLAN, MACHINE, 2);
    make_directories(below(folder, "logs"));
    for (int i = 0; i < LOGS; i++)
        write_file(below(folder, lab_arena_printf(&arena, "logs/run%03d.stdout", i)), "");
    struct lab_clean clean = find(folder, LAB_CLEAN_LOGS);
    assert_int_equal(clean.file_count, LOGS);
    for (int i = 0; i < LOGS; i++)
        assert_string_equal(clean.files[i], lab_arena_printf(&arena, "logs/run%03d.stdout", i));
    assert_works(lab_clean_remove(folder, &clean, &err));
    assert_int_equal(count_entries(below(folder, "logs")), 0);
    assert_true(exists(below(folder, "logs")));
    assert_true(exists(below(folder, "study.db")));
}

/* A link in a part's place is no part, and what is found in it isn't removed through one. */
LAB_TEST(no_link_is_followed) {
    const char *folder = in_root("study");
    make_study(folder, PLAN, MACHINE, 2);
    make_directories(below(folder, "logs"));
    make_directories(in_root("elsewhere"));
    write_file(below(folder, "logs/a.stdout"), "");
    write_file(in_root("elsewhere/a.stdout"), "precious");
    struct lab_clean clean = find(folder, LAB_CLEAN_LOGS);
    assert_int_equal(clean.file_count, 1);
    assert_int_equal(rename(below(folder, "logs"), below(folder, "old")), 0);
    assert_int_equal(symlink(in_root("elsewhere"), below(folder, "logs")), 0);
    assert_refused(lab_clean_remove(folder, &clean, &err), LAB_ERR_SYSTEM, "logs/a.stdout");
    assert_true(exists(in_root("elsewhere/a.stdout")));
    assert_int_equal(find(folder, LAB_CLEAN_LOGS).file_count, 0);
    assert_int_equal(symlink(folder, in_root("link")), 0);
    assert_refused(lab_clean_find(in_root("link"), LAB_CLEAN_LOGS, &arena, &clean, &err),
                   LAB_ERR_USER, "link");
    assert_refused(lab_clean_remove(in_root("link"), &clean, &err), LAB_ERR_USER, "link");
}

/* --- remaining folders --- */

LAB_TEST(folders_that_are_empty_then_go_too) {
    static const struct {
        const char *study, *left; /* its folder, and the last one above that stays */
    } cases[] = {
        {"outputs/quick_test/2026-11-14/10-00-00", "outputs"},
        {"outputs/quick_test/2026-1-14/10-00-00", "outputs/quick_test/2026-1-14"},
        {"outputs/mine", "outputs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = in_root(cases[i].study), *left = in_root(cases[i].left);
        make_study(folder, PLAN, MACHINE, 2);
        make_directories(below(folder, "logs"));
        write_file(below(folder, "logs/a.stdout"), "");
        write_file(below(folder, "lock"), "");
        struct lab_clean clean = find(folder, LAB_CLEAN_STUDY);
        /* one that is gone meanwhile is no failure */
        assert_int_equal(unlink(below(folder, "logs/a.stdout")), 0);
        assert_works(lab_clean_remove(folder, &clean, &err));
        assert_true(exists(left));
        assert_int_equal(count_entries(left), 0);
        nftw(in_root("outputs"), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

LAB_TEST(what_is_the_users_stays_with_its_folders) {
    const char *folder = given_study("outputs/quick_test/2026-11-14/10-00-00");
    make_study(in_root("outputs/quick_test/2026-11-14/11-00-00"), PLAN, MACHINE, 2);
    struct lab_clean clean = find(folder, LAB_CLEAN_STUDY);
    assert_works(lab_clean_remove(folder, &clean, &err));
    for (int i = 0; i < clean.file_count; i++)
        assert_false(exists(below(folder, clean.files[i])));
    for (int i = 0; i < clean.kept_count; i++)
        assert_true(exists(below(folder, clean.kept[i])));
    assert_true(exists("/etc/passwd"));
    assert_refused(lab_clean_find(folder, LAB_CLEAN_STUDY, &arena, &clean, &err), LAB_ERR_USER,
                   "is not a study: it has no study.db");
    /* the other one of that day keeps the day's */
    folder = in_root("outputs/quick_test/2026-11-14/11-00-00");
    write_file(below(folder, "lock"), "");
    clean = find(folder, LAB_CLEAN_STUDY);
    assert_works(lab_clean_remove(folder, &clean, &err));
    assert_false(exists(folder));
    assert_true(exists(in_root("outputs/quick_test/2026-11-14/10-00-00/notes.txt")));
}

/* Named from its own place, nothing above is known. */
LAB_TEST(a_relative_path_ends_with_itself) {
    static const char *const studies[] = {"mine", "2026-11-14/10-00-00"};
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    for (int i = 0; i < 2; i++) {
        make_study(in_root(studies[i]), PLAN, MACHINE, 2);
        write_file(below(in_root(studies[i]), "lock"), "");
        struct lab_clean clean = find(studies[i], LAB_CLEAN_STUDY);
        assert_works(lab_clean_remove(studies[i], &clean, &err));
        assert_false(exists(studies[i]));
    }
    assert_int_equal(chdir(before), 0);
}

static bool hold_lock(const void *folder) {
    struct lab_holder self;
    int fd = open(below(folder, "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    lab_holder_self("gpulab run quick_test", folder, &self);
    lab_lock_write(fd, &self);
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

LAB_TEST(one_that_runs_is_refused) {
    const char *folder = given_study("study");
    struct lab_clean clean = find(folder, LAB_CLEAN_STUDY);
    struct other other = start_other(hold_lock, folder);
    assert_refused(lab_clean_remove(folder, &clean, &err), LAB_ERR_USER,
                   lab_arena_printf(&arena, "study is running: process %d", other.pid));
    kill_other(&other);
    assert_true(exists(below(folder, "traces/pipeline_a")));
    nftw(below(folder, "study.db"), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    assert_refused(lab_clean_remove(folder, &clean, &err), LAB_ERR_USER, "is not a study");
    assert_true(exists(below(folder, "traces/pipeline_a")));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
