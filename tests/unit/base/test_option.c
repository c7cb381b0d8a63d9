/* test_option.c: option tables: what is taken, what is refused, and what the refusal says. */
#include "base/option.h"

#include "test.h"
#include <math.h>
#include <string.h>

struct config {
    bool json, quiet;
    int64_t depth, repeat, pool;
    double scale, rate, wait, limit;
    const char *name, *dtype;
    struct lab_option_ints shape;
};

static const char *const dtypes[] = {"fp32", "tf32", "bf16", "fp16", NULL};

static const struct lab_option keys[] = {
    {"depth", LAB_OPTION_INT, offsetof(struct config, depth), .fallback = "6", .min = 0,
     .max = 512},
    {"repeat", LAB_OPTION_INT, offsetof(struct config, repeat), .min = 1, .letter = 'r',
     .once = true},
    {"scale", LAB_OPTION_FLOAT, offsetof(struct config, scale), .fallback = "1.5"},
    {"rate", LAB_OPTION_FLOAT, offsetof(struct config, rate), .min = 0.5, .max = 2.5, .unit = "Hz"},
    {"wait", LAB_OPTION_DURATION, offsetof(struct config, wait), .fallback = "100ms"},
    {"limit", LAB_OPTION_DURATION, offsetof(struct config, limit), .min = 0.001, .max = 3600},
    {"pool", LAB_OPTION_SIZE, offsetof(struct config, pool), .fallback = "64MiB", .min = 1024,
     .max = 0x1p40},
    {"name", LAB_OPTION_STRING, offsetof(struct config, name), .letter = 'n'},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct config, dtype), .fallback = "fp32",
     .choices = dtypes},
    {"shape", LAB_OPTION_INTS, offsetof(struct config, shape), .fallback = "[3,224,224]", .min = 1,
     .max = 4096},
    {NULL},
};

static const struct lab_option shared[] = {
    {"json", LAB_OPTION_FLAG, offsetof(struct config, json), .letter = 'j'},
    {"quiet", LAB_OPTION_FLAG, offsetof(struct config, quiet), .letter = 'q'},
    {NULL},
};

static const struct lab_option *const tables[] = {keys, shared, NULL};

static struct config config;

static int set_up(void **state) {
    (void)state;
    memset(&config, 0xff, sizeof config);
    lab_options_defaults(keys, &config, &test_arena);
    lab_options_defaults(shared, &config, &test_arena);
    return 0;
}

static void take(const char *word) {
    ASSERT_OK(lab_options_set_word(keys, &config, &test_arena, word, err));
}

static void refuse(const char *word, const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    struct config before = config;
    assert_int_equal(lab_options_set_word(keys, &config, &test_arena, word, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_string_equal(err.text, expected);
    assert_memory_equal(&before, &config, sizeof config);
}

LAB_TEST(defaults) {
    assert_int_equal(config.depth, 6);
    assert_int_equal(config.repeat, 0);
    assert_true(config.scale == 1.5);
    assert_true(config.wait == 0.1);
    assert_int_equal(config.pool, 64 << 20);
    assert_null(config.name);
    assert_string_equal(config.dtype, "fp32");
    assert_int_equal(config.shape.count, 3);
    assert_int_equal(config.shape.items[2], 224);
    assert_false(config.json);
}

LAB_TEST(whole_numbers) {
    take("depth=0");
    assert_int_equal(config.depth, 0);
    take("depth=5_1_2");
    assert_int_equal(config.depth, 512);
    take("repeat=1e3");
    assert_int_equal(config.repeat, 1000);
    refuse("depth=-1", "depth=-1: must be 0 to 512");
    refuse("depth=513", "depth=513: must be 0 to 512");
    refuse("depth=2.5", "depth=2.5: must be a whole number, 0 to 512");
    refuse("depth=", "depth=: must be a whole number, 0 to 512");
    refuse("depth='4'", "depth='4': must be a whole number, 0 to 512");
    refuse("depth=[1]", "depth=[1]: must be a whole number, 0 to 512");
    refuse("depth=inf", "depth=inf: must be a whole number, 0 to 512");
    refuse("depth=null", "depth=null: must be a whole number, 0 to 512");
    refuse("repeat=0", "repeat=0: must be at least 1");
    refuse("depth=99999999999999999999",
           "depth=99999999999999999999: must be a whole number, 0 to 512");
}

LAB_TEST(numbers) {
    take("scale=-3");
    assert_true(config.scale == -3);
    take("scale=inf");
    assert_true(isinf(config.scale));
    take("rate=2.5");
    refuse("rate=3", "rate=3: must be 0.5 to 2.5 Hz");
    refuse("scale=nan", "scale=nan: must be a number");
    refuse("scale=fast", "scale=fast: must be a number");
}

LAB_TEST(durations) {
    static const struct {
        const char *word;
        double seconds;
    } cases[] = {
        {"wait=0", 0},        {"wait=5", 5},         {"wait=.5", .5},        {"wait=5s", 5},
        {"wait=100ms", .1},   {"wait=2.5 min", 150}, {"wait=1h", 3600},      {"wait=250us", 250e-6},
        {"wait=7µs", 7e-6},   {"wait=3ns", 3e-9},    {"wait=1h30min", 5400}, {"wait=1d", 86400},
        {"wait='2min'", 120}, {"wait=2m", 120},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        take(cases[i].word);
        assert_true(fabs(config.wait - cases[i].seconds) < 1e-12);
    }
    static const char *const wrong[] = {"wait=5mo", "wait=s",    "wait=5 apples", "wait=1h30",
                                        "wait=inf", "wait=0x5s", "wait=true"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse(wrong[i],
               lab_arena_printf(&test_arena, "%s: must be a time such as 100ms, 5s, 2min or 1h",
                                wrong[i]));
    refuse("limit=2h", "limit=2h: must be 1ms to 1h");
    refuse("wait=-1", "wait=-1: must be at least 0s");
}

LAB_TEST(sizes) {
    static const struct {
        const char *word;
        int64_t bytes;
    } cases[] = {
        {"pool=4096", 4096},        {"pool=64MiB", 64 << 20},     {"pool=1G", 1 << 30},
        {"pool=4kB", 4000},         {"pool=4KB", 4000},           {"pool=4k", 4096},
        {"pool=1.5GiB", 3LL << 29}, {"pool=1 TB", 1000000000000}, {"pool=1100B", 1100},
        {"pool=1e6", 1000000},      {"pool=2mb", 2000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        take(cases[i].word);
        assert_int_equal(config.pool, cases[i].bytes);
    }
    refuse("pool=2 TB", "pool=2 TB: must be 1KiB to 1TiB");
    refuse("pool=10", "pool=10: must be 1KiB to 1TiB");
    refuse("pool=1e30", "pool=1e30: must be a size such as 4096, 64MiB or 1G, 1KiB to 1TiB");
    refuse("pool=-4096", "pool=-4096: must be a size such as 4096, 64MiB or 1G, 1KiB to 1TiB");
    refuse("pool=1.0001KiB", "pool=1.0001KiB: is not a whole number of bytes");
    refuse("pool=big", "pool=big: must be a size such as 4096, 64MiB or 1G, 1KiB to 1TiB");
}

LAB_TEST(text) {
    take("name=plain words");
    assert_string_equal(config.name, "plain words");
    take("name='a=b'");
    assert_string_equal(config.name, "a=b");
    take("name= 1_000 "); /* what looks like a number stays as typed */
    assert_string_equal(config.name, "1_000");
    take("name=");
    assert_string_equal(config.name, "");
    take("name=null");
    assert_null(config.name);
    refuse("name=[a]", "name=[a]: must be text; put it in quotes if it is");
    refuse("name=a,b",
           "name=a,b: column 2: a comma outside of brackets makes a sweep, which needs `run -m`; a "
           "string with a comma needs quotes");
}

LAB_TEST(choices) {
    take("dtype=bf16");
    assert_ptr_equal(config.dtype, dtypes[2]);
    take("dtype=FP16");
    assert_ptr_equal(config.dtype, dtypes[3]);
    refuse("dtype=fp31", "dtype=fp31: must be fp32, tf32, bf16 or fp16");
    refuse("dtype=", "dtype=: must be fp32, tf32, bf16 or fp16");
}

LAB_TEST(lists_of_numbers) {
    take("shape=[3, 8]");
    assert_int_equal(config.shape.count, 2);
    assert_int_equal(config.shape.items[1], 8);
    take("shape=7");
    assert_int_equal(config.shape.count, 1);
    take("shape=[]");
    assert_int_equal(config.shape.count, 0);
    refuse("shape=[1,0]", "shape=[1,0]: each must be 1 to 4096");
    refuse("shape=[1,x]", "shape=[1,x]: must be a list of whole numbers such as [0,2], each 1 to "
                          "4096");
    refuse("shape=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
           "shape=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]: must be at most 16 numbers");
}

LAB_TEST(unknown_keys) {
    refuse("dept=4", "unknown key 'dept'; did you mean 'depth'?");
    refuse("zzzzzz=4", "unknown key 'zzzzzz'; there are depth, repeat, scale, rate, wait, limit, "
                       "pool, name, dtype and shape");
    refuse("depth", "'depth' needs a value: depth=N");
    refuse("quick", "'quick' is not key=value");
    refuse("=4", "unknown key ''; there are depth, repeat, scale, rate, wait, limit, pool, name, "
                 "dtype and shape");
}

LAB_TEST(values_from_a_file_name_their_line) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = lab_value_int(&test_arena, 600);
    value->origin = "conf/mine.yaml";
    value->line = 12;
    assert_int_equal(lab_options_set_value(keys, &config, &test_arena, "depth", value, &err), -1);
    assert_string_equal(err.text, "conf/mine.yaml:12: depth=600: must be 0 to 512");
    assert_int_equal(lab_options_set_value(keys, &config, &test_arena, "dpeth", value, &err), -1);
    assert_string_equal(err.text, "conf/mine.yaml:12: unknown key 'dpeth'; did you mean 'depth'?");
    value = lab_value_bool(&test_arena, true);
    assert_int_equal(lab_options_set_value(keys, &config, &test_arena, "name", value, &err), 0);
    assert_string_equal(config.name, "true");
}

LAB_TEST(a_config_survives_its_map) {
    take("depth=3");
    take("scale=0.1");
    take("rate=1");
    take("repeat=2");
    take("limit=1.5s");
    take("name='10'");
    struct lab_value *map = lab_options_to_map(keys, &config, &test_arena);
    LAB_AUTO(str, out);
    lab_value_write(map, &out);
    assert_string_equal(out.text, "{depth:3,repeat:2,scale:0.1,rate:1.0,wait:0.1,limit:1.5,"
                                  "pool:67108864,name:'10',dtype:fp32,shape:[3,224,224]}");

    struct config copy;
    memset(&copy, 0, sizeof copy);
    for (int i = 0; i < map->count; i++)
        ASSERT_OK(
            lab_options_set_value(keys, &copy, &test_arena, map->keys[i], map->items[i], err));
    assert_true(lab_value_equal(map, lab_options_to_map(keys, &copy, &test_arena)));
}

#define MAX_WORDS 16

static bool ends_at_word;

/* Parses a line of words that are split at '|'. */
static int parse_line(const char *line, const char ***ret_words, int *ret_count,
                      const char *const **ret_rest, struct lab_err *err) {
    const char *argv[MAX_WORDS];
    int argc = 0;
    for (const char *c = line; *c;) {
        size_t length = strcspn(c, "|");
        argv[argc++] = lab_arena_strndup(&test_arena, c, length);
        c += length + (c[length] == '|');
    }
    return lab_options_parse(tables, &config, &test_arena, argc, argv, ends_at_word, ret_words,
                             ret_count, ret_rest, err);
}

static const char **words;
static int word_count;
static const char *const *rest;

static void take_line(const char *line) {
    ASSERT_OK(parse_line(line, &words, &word_count, &rest, err));
    assert_null(words[word_count]);
}

static void refuse_line(const char *line, const char *expected) {
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(parse_line(line, &words, &word_count, &rest, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_string_equal(err.text, expected);
}

LAB_TEST(options_and_words_mix) {
    take_line("gemm|--depth=4|m=512|--rate|1.5|-j|-|-5");
    assert_int_equal(word_count, 4);
    assert_string_equal(words[0], "gemm");
    assert_string_equal(words[1], "m=512");
    assert_string_equal(words[2], "-");
    assert_string_equal(words[3], "-5");
    assert_null(rest);
    assert_int_equal(config.depth, 4);
    assert_true(config.rate == 1.5);
    assert_true(config.json);
    assert_false(config.quiet);
}

LAB_TEST(letters) {
    take_line("-qj|-r|5");
    assert_true(config.quiet && config.json);
    assert_int_equal(config.repeat, 5);
    take_line("-jr|7");
    assert_int_equal(config.repeat, 7);
    refuse_line("-r5", "'-r5': write the value of -r after a space: -r 5");
    refuse_line(
        "-x", "unknown option '-x'; there are --depth, --repeat, --scale, --rate, --wait, --limit, "
              "--pool, --name, --dtype, --shape, --json and --quiet");
    refuse_line("-depth|4", "unknown option '-depth'; did you mean '--depth'?");
    refuse_line("-r", "-r needs a value: a whole number, at least 1");
}

LAB_TEST(flags) {
    take_line("--json|--no-quiet");
    assert_true(config.json);
    take_line("--no-json");
    assert_false(config.json);
    take_line("--json=on");
    assert_true(config.json);
    take_line("--json=false");
    assert_false(config.json);
    refuse_line("--json=7", "--json=7: must be true or false");
    refuse_line("--no-json=true", "--no-json takes no value");
    refuse_line("--no-depth", "--no-depth: --depth takes a value and can't be switched off");
}

LAB_TEST(behind_two_dashes_all_is_left_alone) {
    take_line("word|--|--json|-x|--");
    assert_int_equal(word_count, 1);
    assert_string_equal(rest[0], "--json");
    assert_string_equal(rest[1], "-x");
    assert_string_equal(rest[2], "--");
    assert_null(rest[3]);
    assert_false(config.json);
    take_line("--");
    assert_non_null(rest);
    assert_null(rest[0]);
}

LAB_TEST(arguments_of_options) {
    take_line("--name|cpu:0,cpu:1");
    assert_string_equal(config.name, "cpu:0,cpu:1");
    take_line("--name='x'"); /* the shell has had its quotes */
    assert_string_equal(config.name, "'x'");
    take_line("-n|a=b #c.xml");
    assert_string_equal(config.name, "a=b #c.xml");
    take_line("--name=");
    assert_string_equal(config.name, "");
    take_line("--scale|-3");
    assert_true(config.scale == -3);
    take_line("--shape|1,2|--dtype|bf16");
    assert_int_equal(config.shape.count, 2);
    assert_string_equal(config.dtype, "bf16");
    refuse_line("--depth|-1", "--depth=-1: must be 0 to 512");
    refuse_line("--depth", "--depth needs a value: a whole number, 0 to 512");
    refuse_line("--depth|--json", "--depth needs a value: a whole number, 0 to 512");
    refuse_line("--depth|--|4", "--depth needs a value: a whole number, 0 to 512");
    refuse_line("--dtype=fp8", "--dtype=fp8: must be fp32, tf32, bf16 or fp16");
    refuse_line("--depht|4", "unknown option '--depht'; did you mean '--depth'?");
    refuse_line("--qqqqqqqqqqqq=4",
                "unknown option '--qqqqqqqqqqqq'; there are --depth, --repeat, --scale, --rate, "
                "--wait, --limit, --pool, --name, --dtype, --shape, --json and --quiet");
}

LAB_TEST(once_or_the_last_wins) {
    take_line("--depth=1|--depth=2");
    assert_int_equal(config.depth, 2);
    refuse_line("--repeat=1|-r|2", "--repeat is given twice");
}

/* --- trees --- */

struct tree_config {
    struct lab_value *any;
};

static const struct lab_option tree_keys[] = {
    {"any", LAB_OPTION_VALUE, offsetof(struct tree_config, any), .fallback = "{a: [1, 0.1]}"},
    {NULL},
};

static const char *written(const struct lab_value *value) {
    LAB_AUTO(str, text);
    lab_value_write(value, &text);
    const char *kept = lab_arena_strdup(&test_arena, text.text);
    return kept;
}

LAB_TEST(a_tree_is_taken_whole) {
    struct tree_config tree;
    lab_options_defaults(tree_keys, &tree, &test_arena);
    assert_string_equal(written(tree.any), "{a:[1,0.1]}");
    ASSERT_OK(lab_options_set_word(tree_keys, &tree, &test_arena, "any='sleep 0.1'", err));
    assert_string_equal(tree.any->string, "sleep 0.1");
    assert_string_equal(written(lab_options_to_map(tree_keys, &tree, &test_arena)),
                        "{any:sleep 0.1}");
    ASSERT_OK(lab_options_set_word(tree_keys, &tree, &test_arena, "any=null", err));
    assert_null(tree.any);
    assert_string_equal(written(lab_options_to_map(tree_keys, &tree, &test_arena)), "{any:null}");
    ASSERT_SAYS(lab_options_set_word(tree_keys, &tree, &test_arena, "any=[1", err),
                "any=[1: column");
    assert_string_equal(lab_option_value_name(&tree_keys[0]), "VALUE");
}

LAB_TEST(a_tree_outlives_where_it_came_from) {
    struct tree_config tree;
    struct lab_value *value;
    LAB_AUTO(arena, file);
    ASSERT_OK(lab_value_parse("{a: [x, {b: 'y'}], c: null}", &file, &value, err));
    value->origin = lab_arena_strdup(&file, "mine.yaml");
    value->line = 3;
    ASSERT_OK(lab_options_set_value(tree_keys, &tree, &test_arena, "any", value, err));
    assert_true(lab_value_equal(tree.any, value));
    assert_string_equal(written(tree.any), "{a:[x,{b:y}],c:null}");
    LAB_AUTO(str, place);
    lab_value_add_place(tree.any, &place);
    assert_string_equal(place.text, "mine.yaml:3: ");
}

LAB_TEST(a_program_ends_the_options) {
    ends_at_word = true;
    take_line("--json|python|train.py|--lr|3");
    ends_at_word = false;
    assert_int_equal(word_count, 0);
    assert_true(config.json);
    assert_string_equal(rest[0], "python");
    assert_string_equal(rest[2], "--lr");
    assert_string_equal(rest[3], "3");
    assert_null(rest[4]);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
