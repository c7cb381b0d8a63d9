/* test_sweep.c: which jobs a command line stands for, in which order. */
#include "config_fixture.h"

static struct lab_sweep sweep_of(const char *line) {
    struct lab_override *words = lab_arena_alloc(&arena, WORDS_MAX, sizeof *words);
    int count = read_words(line, words);
    struct lab_sweep sweep;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_sweep_init(&path, words, count, true, &arena, &sweep, &err) < 0)
        fail_msg("'%s': %s", line, err.text);
    return sweep;
}

/* The words of job `index`, with spaces between them. */
static const char *job(const struct lab_sweep *sweep, int64_t index) {
    struct lab_override *overrides = NULL;
    int count = 0;
    ASSERT_OK(lab_sweep_job(sweep, index, &arena, &overrides, &count, err));
    LAB_AUTO(str, out);
    for (int i = 0; i < count; i++) {
        assert_int_equal(overrides[i].sweep, LAB_SWEEP_NONE);
        lab_str_printf(&out, "%s%s", i ? " " : "", overrides[i].text);
    }
    const char *text = lab_arena_strdup(&arena, out.text);
    return text;
}

/* The jobs of a line, with "; " between them. */
static void makes(const char *line, const char *expected) {
    struct lab_sweep sweep = sweep_of(line);
    LAB_AUTO(str, out);
    for (int64_t i = 0; i < sweep.job_count; i++)
        lab_str_printf(&out, "%s%s", i ? "; " : "", job(&sweep, i));
    if (strcmp(out.text, expected) != 0)
        fail_msg("'%s' makes '%s', not '%s'", line, out.text, expected);
}

#define rejects(multirun, line, ...)                                                               \
    rejects_with(multirun, line, (const char *const[]){__VA_ARGS__})
static void rejects_with(bool multirun, const char *line, const char *const *gists) {
    struct lab_override words[WORDS_MAX];
    int count = read_words(line, words);
    struct lab_sweep sweep = {.job_count = -7};
    struct lab_err err = LAB_ERR_INIT;
    if (lab_sweep_init(&path, words, count, multirun, &arena, &sweep, &err) == 0)
        fail_msg("'%s' was taken", line);
    assert_int_equal(sweep.job_count, -7);
    assert_int_equal(err.code, LAB_ERR_USER);
    for (; *gists; gists++)
        if (!strstr(err.text, *gists))
            fail_msg("'%s': '%s' lacks '%s'", line, err.text, *gists);
}

LAB_TEST(the_last_word_is_fastest) {
    makes("", "");
    makes("a=1 b=2", "a=1 b=2");
    makes("a=1,2 b=x c=3,4", "a=1 b=x c=3; a=1 b=x c=4; a=2 b=x c=3; a=2 b=x c=4");
    makes("a=[0],[0,1]", "a=[0]; a=[0,1]");
    makes("+a=1,2 ++b=range(2)", "+a=1 ++b=0; +a=1 ++b=1; +a=2 ++b=0; +a=2 ++b=1");
    makes("a='1','x,y'", "a='1'; a='x,y'");
    makes("db@main=mysql,sqlite", "db@main=mysql; db@main=sqlite");
}

LAB_TEST(zip_moves_together) {
    makes("zip(a=[1,2],b=[x,y])", "a=1 b=x; a=2 b=y");
    makes("c=5,6 zip(a=[1,2],b=[[x],[y]])",
          "c=5 a=1 b=[x]; c=5 a=2 b=[y]; c=6 a=1 b=[x]; c=6 a=2 b=[y]");
    makes("+zip(a=[1,2],b=[3,4])", "+a=1 +b=3; +a=2 +b=4");
}

LAB_TEST(globs_name_options) {
    makes("experiment=glob(scaling*)", "experiment=scaling_extended; experiment=scaling_study");
    makes("experiment=glob([s*,q*],exclude=*_study)",
          "experiment=quick_test; experiment=scaling_extended; experiment=stability");
    /* what others build on is no study */
    assert_int_equal(sweep_of("experiment=glob(*)").job_count, 12);
    given("experiment/squirrel.yaml", "");
    makes("experiment=glob(sq*)", "experiment=squirrel");
    rejects(true, "experiment=glob(zz*)",
            "no option of 'experiment' matches; there are compile_study", NULL);
    rejects(true, "seed=glob(*)", "'seed' is not a group", NULL);
}

LAB_TEST(without_multirun) {
    struct lab_override word;
    read_words("seed=1", &word);
    struct lab_sweep sweep;
    ASSERT_OK(lab_sweep_init(&path, &word, 1, false, &arena, &sweep, err));
    assert_int_equal(sweep.job_count, 1);
    /* the three remedies */
    rejects(false, "tracker=wandb,trackio", "tracker=wandb,trackio: column 9: ", "with -m",
            "with quotes (\"tracker='wandb,trackio'\")", "with brackets (tracker=[wandb,trackio])",
            NULL);
    rejects(false, "seed=range(5)", "this is a sweep", "-m", "quotes", "brackets", NULL);
    rejects(false, "experiment=glob(*)", "this is a sweep", "-m", NULL);
    rejects(false, "zip(a=[1,2],b=[3,4])", "this is a sweep", "-m", NULL);
    rejects(false, "seed=choice(1,2)", "this is a sweep", "-m", NULL);
}

LAB_TEST(too_many_jobs) {
    assert_int_equal(sweep_of("a=range(1000) b=range(1000)").job_count, 1000000);
    rejects(true, "a=range(1000) b=range(1001)", "1001000 jobs; at most 1000000", NULL);
    rejects(true, "a=1,2 b=range(1000000) c=1,2",
            "b=range(1000000): with this word the sweep has "
            "2000000 jobs",
            NULL);
    struct lab_sweep sweep = sweep_of("a=1,2");
    struct lab_override *overrides = NULL;
    int count = 0;
    ASSERT_SAYS(lab_sweep_job(&sweep, 2, &arena, &overrides, &count, err),
                "no job 2: the sweep has 0 to 1");
}

/* Numbers, not stored: the last of many is found as fast as the first. */
LAB_TEST(a_job_by_its_number) {
    struct lab_sweep sweep = sweep_of("a=range(100) b=range(100) c=range(100)");
    assert_string_equal(job(&sweep, 123456), "a=12 b=34 c=56");
    assert_string_equal(job(&sweep, 999999), "a=99 b=99 c=99");
}

LAB_TEST(jobs_compose) {
    struct lab_sweep sweep = sweep_of(
        "experiment=quick_test,numa_study zip(experiment.test.batch_size=[1,2],seed=[3,4])");
    assert_int_equal(sweep.job_count, 4);
    struct lab_composer *composer = NULL;
    ASSERT_OK(lab_composer_make(&path, "config", &arena, &composer, err));
    LAB_AUTO(str, out);
    LAB_AUTO(str, place);
    for (int64_t i = 0; i < sweep.job_count; i++) {
        /* a job's memory may go before the next one's comes */
        LAB_AUTO(arena, job_arena);
        struct lab_override *overrides = NULL;
        int count = 0;
        struct lab_config config;
        ASSERT_OK(lab_sweep_job(&sweep, i, &job_arena, &overrides, &count, err));
        ASSERT_OK(lab_composer_compose(composer, overrides, count, &job_arena, &config, err));
        struct lab_value *batch = value_at(config.tree, "experiment.test.batch_size");
        lab_str_printf(&out, "%s %s %s; ", text_of(value_at(config.tree, "experiment.name")),
                       text_of(batch), text_of(value_at(config.tree, "seed")));
        lab_str_clear(&place);
        lab_value_add_place(batch, &place);
        assert_string_equal(place.text, "zip(experiment.test.batch_size=[1,2],seed=[3,4]): ");
    }
    assert_string_equal(out.text, "quick_test 1 3; quick_test 2 4; numa_locality_study 1 3; "
                                  "numa_locality_study 2 4; ");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
