/* test_config_value.c: words that change values: each row of the grammar's table, and its edges. */
#include "config_fixture.h"

#define PRIMARY                                                                                    \
    "a: 1\n"                                                                                       \
    "text: words\n"                                                                                \
    "nothing: null\n"                                                                              \
    "test:\n"                                                                                      \
    "  batch_size: 10\n"                                                                           \
    "  shape: [3, 224, 224]\n"                                                                     \
    "  sub: {x: 1, y: 2}\n"                                                                        \
    "models:\n"                                                                                    \
    "  - {depth: 2, dim: 128}\n"                                                                   \
    "  - {depth: 4, dim: 256}\n"                                                                   \
    "empty: []\n"

LAB_TEST(change) {
    given_primary(PRIMARY);
    composes("", "a", "1");
    composes("a=2", "a", "2");
    composes("a=2 a=3", "a", "3");
    composes("test.batch_size=20", "test", "{batch_size:20,shape:[3,224,224],sub:{x:1,y:2}}");
    composes("test.batch_size=", "test.batch_size", "''");
    composes("nothing=5", "nothing", "5");
    composes("text='a,b'", "text", "'a,b'");
    /* another type is the schema's business */
    composes("a=words", "a", "words");
}

LAB_TEST(maps_merge_and_lists_are_replaced) {
    given_primary(PRIMARY);
    composes("test={batch_size:5}", "test.sub", "{x:1,y:2}");
    composes("test.sub={x:7}", "test.sub", "{x:7,y:2}");
    composes("test.shape=[1,2]", "test.shape", "[1,2]");
    composes("models=[{depth:9}]", "models", "[{depth:9}]");
    composes("test.sub=5", "test.sub", "5");
    refuses("test.sub={z:1}", "column 6: unknown key 'z' in 'test.sub'", "+test.sub={z:1}", NULL);
    composes("++test.sub={z:1}", "test.sub", "{x:1,y:2,z:1}");
}

LAB_TEST(unknown_keys) {
    given_primary(PRIMARY);
    refuses("test.batchsize=20", "test.batchsize=20: column 6: unknown key 'batchsize' in 'test'",
            "did you mean 'batch_size'?", "to add it: +test.batchsize=20", NULL);
    refuses("tset.batch_size=20", "column 1: unknown key 'tset'", "did you mean 'test'?", NULL);
    /* the end of a key that lies elsewhere */
    refuses("batch_size=20", "unknown key 'batch_size'", "did you mean 'test.batch_size'?", NULL);
    refuses("zzzzzz=1", "unknown key 'zzzzzz'; to add it: +zzzzzz=1", NULL);
    refuses("a.b=1", "'a' is a whole number and has no keys", NULL);
    refuses("nothing.b=1", "'nothing' is null and has no key 'b'; to add it: +nothing.b=1", NULL);
}

LAB_TEST(add) {
    given_primary(PRIMARY);
    composes("+b=5", "b", "5");
    composes("+b.c.d=5", "b", "{c:{d:5}}");
    composes("+test.new=5", "test.new", "5");
    composes("+nothing=5", "nothing", "5");
    composes("+nothing.b=5", "nothing", "{b:5}");
    refuses("+a=2", "column 2: 'a' is set already", "a=…, or ++a=…", NULL);
    refuses("+a.b=2", "'a' is a whole number and has no keys", NULL);
    /* maps and lists may meet what is there */
    composes("+test.sub={z:1}", "test.sub", "{x:1,y:2,z:1}");
    composes("+test.shape=[1]", "test.shape", "[1]");
}

LAB_TEST(add_or_change) {
    given_primary(PRIMARY);
    composes("++a=2", "a", "2");
    composes("++b.c=2", "b", "{c:2}");
    composes("++test.sub.x=2", "test.sub", "{x:2,y:2}");
}

LAB_TEST(delete) {
    given_primary(PRIMARY);
    composes("~a", "a", "(nothing)");
    composes("~test.sub.x", "test.sub", "{y:2}");
    composes("~test.sub", "test", "{batch_size:10,shape:[3,224,224]}");
    composes("~a=1", "a", "(nothing)");
    composes("~nothing", "nothing", "(nothing)");
    composes("~test.shape.0", "test.shape", "[224,224]");
    composes("~models.dim", "models", "[{depth:2},{depth:4}]");
    refuses("~a=2", "'a' is 1, so this deletes nothing", NULL);
    refuses("~b", "there is no key 'b'", NULL);
    refuses("~test.batchsize", "there is no key 'batchsize' in 'test'; did you mean 'batch_size'?",
            NULL);
}

LAB_TEST(elements_of_lists) {
    given_primary(PRIMARY);
    composes("test.shape.1=5", "test.shape", "[3,5,224]");
    composes("test.shape[2]=5", "test.shape", "[3,224,5]");
    composes("models[1].depth=9", "models", "[{depth:2,dim:128},{depth:9,dim:256}]");
    composes("models.0.depth=9", "models", "[{depth:9,dim:128},{depth:4,dim:256}]");
    composes("models[1]={dim:7}", "models.1", "{depth:4,dim:7}");
    refuses("test.shape[3]=5", "column 12: 'test.shape' has 3 elements: the index goes from 0 to 2",
            NULL);
    refuses("+test.shape.3=5", "the index goes from 0 to 2", NULL);
    refuses("test.shape.99999999999999999999=5", "the index goes from 0 to 2", NULL);
    refuses("empty[0]=5", "'empty' is an empty list", NULL);
}

LAB_TEST(a_key_on_a_list_means_each_element) {
    given_primary(PRIMARY);
    composes("models.depth=6", "models", "[{depth:6,dim:128},{depth:6,dim:256}]");
    composes("+models.heads=8", "models", "[{depth:2,dim:128,heads:8},{depth:4,dim:256,heads:8}]");
    refuses("models.dept=6", "unknown key 'dept' in 'models'; did you mean 'depth'?", NULL);
    refuses("test.shape.x=6", "element 0 of 'test.shape' is a whole number and has no key 'x'",
            NULL);
    refuses("empty.x=6", "'empty' is an empty list", NULL);
}

LAB_TEST(some_keys_have_other_names) {
    composes("repeat=3", "experiment.repeat", "3");
    composes("runs=3", "experiment.repeat", "3");
    composes("experiment.runs=3", "experiment.repeat", "3");
    given_primary("experiment: {hardware: {gpu_ids: [0], numa_nodes: [0]}}\n");
    composes("gpu_ids=all", "experiment.hardware", "{gpu_ids:all,numa_nodes:[0]}");
    composes("numa_nodes=local", "experiment.hardware", "{gpu_ids:[0],numa_nodes:local}");
    given_primary("repeat: 1\nexperiment: {repeat: 1}\n");
    composes("repeat=3", "", "{repeat:3,experiment:{repeat:1}}");
}

LAB_TEST(deep_keys_end) {
    LAB_AUTO(str, word);
    lab_str_add(&word, "+a");
    lab_str_add_repeat(&word, ".a", 100000);
    lab_str_add(&word, "=1");
    refuses(word.text, "a key of more than 64 parts", NULL);
}

/* A word that leaves a value where an error may be found later is its origin. */
LAB_TEST(values_know_their_word) {
    given_primary(PRIMARY);
    struct lab_value *tree = compose("test.batch_size=abc test.shape=[x]").tree;
    LAB_AUTO(str, place);
    lab_value_add_place(value_at(tree, "test.batch_size"), &place);
    assert_string_equal(place.text, "test.batch_size=abc: ");
    lab_str_clear(&place);
    lab_value_add_place(value_at(tree, "test.shape.0"), &place);
    assert_string_equal(place.text, "test.shape=[x]: ");
    lab_str_clear(&place);
    lab_value_add_place(value_at(tree, "models.1.dim"), &place);
    assert_contains(place.text, "/test.yaml:10: ");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
