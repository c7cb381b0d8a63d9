/* Names that stand beside each other, shortened to what tells them apart. */
#include "base/names.h"

#include "test.h"

static void becomes(const char *const *names, const char *const *wanted, int count, int columns) {
    LAB_AUTO(arena, arena);
    const char **shown = lab_names_shorten(names, count, columns, &arena);
    for (int i = 0; i < count; i++)
        assert_string_equal(shown[i], wanted[i]);
}

/* Given ids of runs, when they are too long, then what all share is left out, the rest
 * abbreviated. */
LAB_TEST(ids_keep_what_differs) {
    static const char *const names[] = {
        "gpu0_numa0_vit16x8x768_batch_size10_tensor_shape3x224x224_memory_size_mb512",
        "gpu0_numa2_vit16x8x768_batch_size4_tensor_shape3x224x224_memory_size_mb512",
        "gpu0_numa2_vit32x4x256_batch_size4_tensor_shape3x224x224_memory_size_mb1024"};
    static const char *const wanted[] = {"numa0, vit16x8x768, batch 10, 512 MiB pool",
                                         "numa2, vit16x8x768, batch 4, 512 MiB pool",
                                         "numa2, vit32x4x256, batch 4, 1024 MiB pool"};
    becomes(names, wanted, 3, 30);
}

/* Given names in words, then a comma within a list ends no term. */
LAB_TEST(words_keep_what_differs) {
    static const char *const names[] = {
        "sim:l40s-10:0, NUMA node 0, vit0x0x0, batch_size=16, tensor_shape=[3,224,224]",
        "sim:l40s-10:0, NUMA node 2, vit0x0x0, batch_size=16, tensor_shape=[3,224,224]",
        "sim:l40s-10:0, NUMA node 2, vit0x0x0, batch_size=16, tensor_shape=[3,384,384]"};
    static const char *const wanted[] = {"NUMA node 0, 3x224x224", "NUMA node 2, 3x224x224",
                                         "NUMA node 2, 3x384x384"};
    becomes(names, wanted, 3, 30);
}

/* Given a name that has nothing of its own, then it keeps its last term. */
LAB_TEST(the_plainest_keeps_its_last_term) {
    static const char *const names[] = {"vit32x4x256", "vit32x4x256_memory_size_mb1024"};
    static const char *const wanted[] = {"vit32x4x256", "1024 MiB pool"};
    becomes(names, wanted, 2, 20);
}

/* Given names that fit, or are alike, or differ in nothing that is a term, then they stay. */
LAB_TEST(others_stay) {
    static const char *const fit[] = {"gpu0_numa0", "gpu0_numa1"};
    becomes(fit, fit, 2, 30);
    static const char *const alike[] = {"a name that is too long", "a name that is too long"};
    becomes(alike, alike, 2, 10);
    static const char *const twice[] = {"one, two", "one, two, two"};
    becomes(twice, twice, 2, 10);
    static const char *const empty[] = {"", "one, two", "one, three"};
    static const char *const wanted[] = {"", "two", "three"};
    becomes(empty, wanted, 3, 5);
}

/* Given a name that isn't there, then the others are shortened all the same. */
LAB_TEST(none_is_passed_over) {
    static const char *const names[] = {NULL, "one, two", "one, three"};
    LAB_AUTO(arena, arena);
    const char **shown = lab_names_shorten(names, 3, 5, &arena);
    assert_null(shown[0]);
    assert_string_equal(shown[1], "two");
}
