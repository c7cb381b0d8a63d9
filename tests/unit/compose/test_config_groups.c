/* test_config_groups.c: search path, groups, defaults lists, packages, and words that choose. */
#include "config_fixture.h"

/* "option@package from parent" for each config that was merged, in that order. */
static void merges(const char *line, const char *expected) {
    struct lab_config config = compose(line);
    LAB_AUTO(str, out);
    for (int i = 0; i < config.choice_count; i++) {
        const struct lab_config_choice *choice = &config.choices[i];
        lab_str_printf(&out, "%s%s%s%s", i > 0 ? " " : "", choice->group ? choice->group : "",
                       choice->group && *choice->group ? "/" : "", choice->option);
        if (*choice->package)
            lab_str_printf(&out, "@%s", choice->package);
        if (choice->overridden)
            lab_str_add(&out, "!");
    }
    if (strcmp(out.text, expected) != 0)
        fail_msg("'%s' merges %s, not %s", line, out.text, expected);
}

static void given_databases(void) {
    given("db/mysql.yaml", "driver: mysql\nport: 3306\n");
    given("db/sqlite.yaml", "driver: sqlite\nfile: x.db\n");
    given("db/_hidden.yaml", "port: 1\n");
}

/* --- files --- */

LAB_TEST(folders_hide_what_is_built_in) {
    composes("", "experiment.name", "numa_locality_study");
    const char *full = given("experiment/numa_study.yaml", "name: mine\n");
    composes("", "experiment", "{name:mine}");
    struct lab_config config = compose("");
    assert_string_equal(config.choices[0].origin, full);
    assert_string_equal(config.choices[0].parent, "config");
    assert_string_equal(config.choices[1].origin, "built-in:config.yaml");
    assert_null(config.choices[1].parent);
    /* what mine builds on may still be built in */
    given("experiment/other.yaml", "defaults: [quick_test]\nname: other\n");
    composes("experiment=other", "experiment.test.batch_size", "5");
}

LAB_TEST(options_are_the_union_of_the_path) {
    given("experiment/numa_study.yaml", "");
    given("experiment/zebra.yaml", "");
    given("experiment/_base_of_mine.yaml", "");
    given("experiment/notes.txt", "");
    const char *const *options = lab_config_options(&path, "experiment", &arena);
    const char *const expected[] = {
        "compile_study",    "contention",     "nccl_settings", "numa_study",  "quick_test",
        "scaling_extended", "scaling_study",  "stability",     "test_matrix", "throughput_study",
        "train_scaling",    "transfer_study", "zebra"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_string_equal(options[i], expected[i]);
    assert_null(options[13]);
    assert_null(lab_config_options(&path, "nothing", &arena)[0]);
    assert_null(lab_config_options(&path, "../etc", &arena)[0]);
    assert_non_null(lab_config_options(&path, "experiment/matrix", &arena)[0]);
}

LAB_TEST(reading_a_file) {
    const char *text, *origin;
    size_t length;
    ASSERT_OK(
        lab_config_read(&path, "experiment/quick_test.yaml", &arena, &text, &length, &origin, err));
    assert_string_equal(origin, "built-in:experiment/quick_test.yaml");
    assert_int_equal(strlen(text), length);
    ASSERT_SAYS(lab_config_read(&path, "no.yaml", &arena, &text, &length, &origin, err),
                "there is no config 'no.yaml'");
    ASSERT_SAYS(lab_config_read(&path, "../a.yaml", &arena, &text, &length, &origin, err),
                "is not a path below a config folder");
}

LAB_TEST(a_folder_that_is_not_there) {
    static const char *const folders[] = {"/nonexistent/conf", NULL};
    path.folders = folders;
    refuses("", "the config folder /nonexistent/conf: No such file or directory", NULL);
    static const char *const files[] = {"/dev/null", NULL};
    path.folders = files;
    refuses("", "the config folder /dev/null is not a folder", NULL);
}

LAB_TEST(files_that_are_no_configs) {
    given_bytes("experiment/binary.yaml",
                "\x7f"
                "ELF\x02\0\xff\xfe",
                8);
    refuses("experiment=binary", "experiment/binary.yaml:1: invalid YAML", NULL);
    given("experiment/list.yaml", "- 1\n- 2\n");
    refuses("experiment=list",
            "experiment/list.yaml:1: a config is a map of keys, and this is a list", NULL);
    given("experiment/syntax.yaml", "a: 1\nb: [\n");
    refuses("experiment=syntax", "experiment/syntax.yaml:", "invalid YAML", NULL);
    given("experiment/folder.yaml/x.yaml", "");
    refuses("experiment=folder", "experiment/folder.yaml is a directory, not a file", NULL);
    given("experiment/empty.yaml", "# nothing\n");
    composes("experiment=empty", "experiment", "{}");
}

LAB_TEST(files_that_are_too_much) {
    /* 100 MB of holes: the size alone is refused */
    const char *huge = given("experiment/huge.yaml", "a: 1\n");
    assert_int_equal(truncate(huge, 100 << 20), 0);
    refuses("experiment=huge", "huge.yaml is too large: 104857600 bytes", NULL);
    LAB_AUTO(str, bomb);
    lab_str_add(&bomb, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        lab_str_printf(&bomb, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            lab_str_printf(&bomb, "%s*a%d", j ? ", " : "", i - 1);
        lab_str_add(&bomb, "]\n");
    }
    given("experiment/bomb.yaml", bomb.text);
    refuses("experiment=bomb", "experiment/bomb.yaml:", "too many values", NULL);
}

/* --- defaults lists --- */

LAB_TEST(self_comes_last_unless_named) {
    given_databases();
    given_primary("defaults: [db: mysql]\ndb: {port: 1}\n");
    composes("", "", "{db:{driver:mysql,port:1}}");
    given_primary("defaults: [_self_, db: mysql]\ndb: {port: 1, user: me}\n");
    composes("", "", "{db:{port:3306,user:me,driver:mysql}}");
    merges("", "test db/mysql@db");
    given_primary("defaults: [_self_, db: mysql, _self_]\n");
    refuses("", "test.yaml:1: duplicate `_self_`", NULL);
}

LAB_TEST(entries_of_every_kind) {
    given_databases();
    given("server/big.yaml", "defaults: [db: local, /db@db: mysql, _base]\ncores: 64\n");
    given("server/_base.yaml", "cores: 1\nname: base\n");
    given("server/db/local.yaml", "driver: none\n");
    given_primary("defaults: [server: big, db: null, optional db@x: missing, other]\n");
    given("other.yaml", "beside: true\n");
    merges("", "server/db/local@server.db db/mysql@server.db server/_base@server server/big@server "
               "other test");
    composes("", "", "{server:{db:{driver:mysql,port:3306},cores:64,name:base},beside:true}");
    composes("db=sqlite", "db.file", "x.db");
}

LAB_TEST(packages) {
    given_databases();
    given_primary("defaults: [db@main: mysql, db@backup.first: sqlite, db@_global_: mysql]\n");
    composes("", "",
             "{main:{driver:mysql,port:3306},backup:{first:{driver:sqlite,file:x.db}},"
             "driver:mysql,port:3306}");
    merges("db@backup.first=mysql", "db/mysql@main db/mysql@backup.first! db/mysql test");
    given("g/global.yaml", "# @package _global_\nkey: 1\n");
    given("g/named.yaml", "# A comment.\n# @package a.b\nkey: 2\n");
    given("g/plain.yaml", "key: 3\n");
    given_primary("defaults: [g: plain]\n");
    composes("", "", "{g:{key:3}}");
    composes("g=global", "", "{key:1}");
    composes("g=named", "", "{a:{b:{key:2}}}");
    /* what stands behind '@' wins over the file's own line */
    given_primary("defaults: [g@here: named]\n");
    composes("", "", "{here:{key:2}}");
}

LAB_TEST(several_options_of_a_group) {
    given_databases();
    given_primary("defaults: [db: [mysql, sqlite]]\n");
    composes("", "", "{db:{driver:sqlite,port:3306,file:x.db}}");
    composes("db=[sqlite,mysql]", "db.driver", "mysql");
    composes("db=[]", "", "{}");
}

LAB_TEST(lists_override_each_other) {
    given_databases();
    given("experiment/lite.yaml", "# @package _global_\n"
                                  "defaults: [override /db: sqlite]\n"
                                  "lr: 1\n");
    given_primary("defaults: [db: mysql, experiment: lite]\n");
    composes("", "", "{db:{driver:sqlite,file:x.db},lr:1}");
    /* the command line is stronger than any list */
    composes("db=mysql", "db.driver", "mysql");
    given("experiment/odd.yaml", "defaults:\n  - override /db: oracle\n");
    refuses("experiment=odd", "odd.yaml:2: 'oracle' is not an option of 'db'", NULL);
    given("experiment/wrong.yaml", "defaults: [override /dc: sqlite]\n");
    refuses("experiment=wrong", "wrong.yaml:1: no defaults list chooses 'dc'; did you mean 'db'?",
            NULL);
}

/* As Hydra 1.3 does: each was compared with it. */
LAB_TEST(choices_by_other_choices) {
    given_databases();
    given("server/big.yaml", "cores: 64\n");
    given("server/small.yaml", "cores: 4\n");
    given("tuned/mysql_big.yaml", "pool: 32\n");
    given("tuned/sqlite_small.yaml", "pool: 1\n");
    given_primary("defaults: [optional tuned: \"${db}_${server}\", server: big, db: mysql]\n");
    merges("", "tuned/mysql_big@tuned server/big@server db/mysql@db test");
    merges("db=sqlite server=small",
           "tuned/sqlite_small@tuned server/small@server! db/sqlite@db! test");
    merges("db=sqlite", "server/big@server db/sqlite@db! test"); /* optional, and not there */
    merges("tuned=sqlite_small", "tuned/sqlite_small@tuned! server/big@server db/mysql@db test");
    given_primary("defaults: [tuned: \"${db}_${server}\", server: big, db: mysql]\n");
    refuses("db=sqlite", "test.yaml:1: 'sqlite_big' is not an option of 'tuned'", NULL);
    /* a list that is expanded earlier has chosen; one that comes later hasn't */
    given("a/x.yaml", "defaults: [/tuned@_global_.tuned: \"${db}_${server}\"]\n");
    given_primary("defaults: [a: x, server: big, db: mysql]\n");
    composes("", "tuned.pool", "32");
    given_primary("defaults: [server: big, db: mysql, a: x]\n");
    refuses("", "a/x.yaml:1: 'db' is not the name of a choice made before this one", NULL);
    given_primary("defaults:\n  - db: ${x}\n");
    refuses("", "test.yaml:2: 'x' is not the name of a choice", NULL);
    given_primary("defaults:\n  - server: big\n  - optional db: [\"${server}\"]\n");
    refuses("", "test.yaml:3: ${…} isn't possible in a list of options", NULL);
    given("tuned/mysql_big.yaml", "defaults: [override /db@_global_.db: sqlite]\n");
    given_primary("defaults: [tuned: \"${db}_big\", db: mysql]\n");
    refuses("", "mysql_big.yaml:1: no `override` in a config that other choices have chosen", NULL);
}

LAB_TEST(a_group_is_chosen_once) {
    given_databases();
    given("a/x.yaml", "# @package _global_\ndefaults: [/db: sqlite]\n");
    given_primary("defaults:\n  - db: mysql\n  - a: x\n");
    refuses("",
            "test.yaml:2: 'db' is chosen twice, here mysql and later sqlite; `override "
            "db: sqlite` changes a choice",
            NULL);
    given_primary("defaults: [db: mysql, db: mysql]\n");
    refuses("", "'db' is chosen twice", NULL);
    given_primary("defaults: [db: null, db: mysql]\n");
    refuses("", "'db' is chosen twice, here null and later mysql", NULL);
    given_primary("defaults: [db@main: mysql, db: [sqlite], db: mysql]\n");
    merges("", "db/mysql@main db/sqlite@db db/mysql@db test");
    refuses("db=mysql", "'db' is chosen twice", NULL);
    composes("~db", "", "{main:{driver:mysql,port:3306}}");
}

/* Of several overrides: the command line's, the including list's, the later config's, the first. */
LAB_TEST(the_strongest_override) {
    given_databases();
    given("db/pg.yaml", "driver: pg\n");
    given("a/x.yaml", "# @package _global_\ndefaults: [override /db: sqlite]\n");
    given("b/y.yaml", "# @package _global_\ndefaults: [override /db: pg]\n");
    given("c/z.yaml", "# @package _global_\ndefaults: [b: y, override /db: sqlite]\n");
    static const char *const cases[][2] = {
        {"defaults: [db: mysql, a: x, /b: y]\n", "pg"},
        {"defaults: [db: mysql, /b: y, a: x]\n", "sqlite"},
        {"defaults: [db: mysql, a: x, override db: mysql]\n", "mysql"},
        {"defaults: [db: null, override db: pg, override db: sqlite]\n", "pg"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        given_primary(cases[i][0]);
        composes("", "db.driver", cases[i][1]);
        composes("db=mysql", "db.driver", "mysql");
    }
    given("c/b/y.yaml", "# @package _global_\ndefaults: [override /db: pg]\n");
    given_primary("defaults: [db: mysql, c: z]\n");
    composes("", "db.driver", "sqlite");
    given_primary("defaults: [a: x, db: mysql]\n");
    refuses("", "a/x.yaml:2: no defaults list chooses 'db'", NULL);
}

LAB_TEST(lists_that_cannot_be_read) {
    given_primary("defaults: {db: mysql}\n");
    refuses("", "test.yaml:1: `defaults` is a list", NULL);
    given_primary("defaults:\n  - 5\n");
    refuses("", "test.yaml:2: can't be read: an entry of a defaults list is", NULL);
    given_primary("defaults:\n  - {a: b, c: d}\n");
    refuses("", "test.yaml:2: can't be read", NULL);
    given_primary("defaults:\n  - db: 7\n");
    refuses("", "test.yaml:2: an option is a name, a list of names, or null", NULL);
    given_primary("defaults:\n  - nowhere\n");
    refuses("", "test.yaml:2: there is no config 'nowhere'", NULL);
    given_primary("defaults:\n  - db: ../../etc/passwd\n");
    refuses("", "'../../etc/passwd' is not an option of 'db'", NULL);
    given_primary("defaults:\n  - override experiment\n");
    refuses("", "test.yaml:2: `override` needs a group and an option", NULL);
}

LAB_TEST(configs_that_ask_for_themselves) {
    given("a.yaml", "defaults: [b]\n");
    given("b.yaml", "defaults: [c]\n");
    given("c.yaml", "defaults: [b]\n");
    given_primary("defaults: [a]\n");
    refuses("", "c.yaml:1: the config 'b' includes itself, via 'c'", NULL);
    /* each asks for the next one twice: 2^30 configs */
    for (int i = 0; i < 30; i++)
        given(lab_arena_printf(&arena, "x%d.yaml", i),
              lab_arena_printf(&arena, "defaults: [x%d, x%d]\n", i + 1, i + 1));
    given("x30.yaml", "");
    given_primary("defaults: [x0]\n");
    refuses("", "the defaults lists name more than 1000 configs", NULL);
}

/* --- words that choose --- */

LAB_TEST(choosing) {
    merges("experiment=quick_test", "experiment/_base@experiment experiment/_vit@experiment "
                                    "experiment/quick_test@experiment! config");
    composes("experiment=quick_test", "experiment.name", "quick_test");
    composes("experiment=numa_study experiment=quick_test", "experiment.name", "quick_test");
    composes("experiment=test_matrix experiment/matrix=quick", "experiment.matrix.max_iters",
             "500");
    composes("~experiment", "", "{device:auto,seed:42,output_dir:outputs,tracker:null}");
    composes("~experiment=numa_study", "experiment", "(nothing)");
    /* a map is a value, not an option */
    composes("experiment={name:mine}", "experiment.name", "mine");
}

LAB_TEST(choosing_what_is_not_there) {
    refuses("experiment=numa_stduy",
            "experiment=numa_stduy: 'numa_stduy' is not an option of 'experiment'",
            "did you mean 'numa_study'?", NULL);
    refuses("experiment=zzzzzz", "there are compile_study, contention, nccl_settings, numa_study,",
            "and transfer_study", NULL);
    refuses("experiment=", "'' is not an option of 'experiment'", NULL);
    refuses("experiment=5", "'experiment' is a config group: it takes the name of an option", NULL);
    refuses("expriment/matrix=full", "there is no config group 'expriment/matrix'", NULL);
    refuses("experiment@other=quick_test", "no defaults list chooses 'experiment@other'",
            "to add it: +experiment@other=quick_test", NULL);
    refuses("experiment/matrix=full", "no defaults list chooses 'experiment/matrix'", NULL);
    refuses("~experiment=quick_test", "the choice is numa_study, so this deletes nothing", NULL);
    refuses("~experiment/matrix", "no defaults list chooses 'experiment/matrix'", NULL);
    refuses("++experiment=quick_test", "chosen with 'experiment=' or '+experiment=', not '++'",
            NULL);
    given_primary("defaults:\n  - experiment: ???\n");
    refuses("", "test.yaml:2: 'experiment' must be chosen", NULL);
    composes("experiment=quick_test", "experiment.name", "quick_test");
}

LAB_TEST(adding) {
    given_databases();
    merges("+db=mysql", "experiment/_base@experiment experiment/_vit@experiment "
                        "experiment/numa_study@experiment config db/mysql@db!");
    composes("+db@where.it.goes=mysql", "where", "{it:{goes:{driver:mysql,port:3306}}}");
    composes("+db=[mysql,sqlite]", "db.driver", "sqlite");
    /* a study is one: adding takes the place of the one that was chosen */
    composes("+experiment=quick_test", "experiment.name", "quick_test");
    composes("+experiment=quick_test", "experiment.hardware.numa_nodes", "local");
}

/* A composer that has composed one thing composes the next as if it were the first. */
LAB_TEST(composers_keep_jobs_apart) {
    given_databases();
    struct lab_composer *composer = NULL;
    ASSERT_OK(lab_composer_make(&path, "config", &arena, &composer, err));
    static const char *const lines[] = {"",
                                        "seed=1",
                                        "experiment=quick_test seed=2",
                                        "+db=mysql",
                                        "experiment.vit_configs.depth=3",
                                        "~experiment",
                                        ""};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct lab_override words[WORDS_MAX];
        int count = read_words(lines[i], words);
        struct lab_config config;
        ASSERT_OK(lab_composer_compose(composer, words, count, &arena, &config, err));
        assert_string_equal(text_of(config.tree), text_of(compose(lines[i]).tree));
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
