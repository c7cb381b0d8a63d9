/* test_list.c: arrays of structs, sorted and searched by their members. */
#include "base/list.h"

#include "test.h"
#include <math.h>

struct item {
    const char *name;
    double rate;
    int place;
};

static struct item items[] = {{"gpu10", 2, 0}, {"gpu2", NAN, 1}, {"gpu2", 3, 2},
                              {"gpu1", 2, 3},  {"gpu1", 2, 4},   {"gpu1", 1, 5}};
enum { COUNT = sizeof items / sizeof *items };

static void are(const int *places) {
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(items[i].place, places[i]);
}

LAB_TEST(items_are_sorted_by_members) {
    LAB_SORT(items, COUNT, LAB_BY(items, name), LAB_BY_MOST(items, rate));
    are((const int[]){3, 4, 5, 2, 1, 0}); /* NaN last, equal ones as they were */
    LAB_SORT(items, COUNT, LAB_BY_MOST(items, rate));
    are((const int[]){2, 3, 4, 0, 5, 1});
    LAB_SORT(items, COUNT, LAB_BY(items, place));
    are((const int[]){0, 1, 2, 3, 4, 5});
    LAB_SORT((struct item *)NULL, 0, LAB_BY(items, place));
}

LAB_TEST(references_and_numbers_are_sorted) {
    struct item *refs[] = {&items[1], &items[4], &items[3], &items[0]};
    LAB_SORT_REFS(refs, 4, LAB_BY_BYTES(*refs, name));
    const int places[] = {4, 3, 0, 1}; /* gpu10 before gpu2, equal ones as they were */
    for (int i = 0; i < 4; i++)
        assert_int_equal(refs[i]->place, places[i]);
    double numbers[] = {NAN, 2, -1};
    LAB_SORT_NUMBERS(numbers, 3);
    assert_true(numbers[0] < 0 && numbers[1] > 0 && isnan(numbers[2]));
}

LAB_TEST(items_are_found_by_text) {
    assert_int_equal(LAB_FIND(items, COUNT, name, "gpu2"), 1);
    assert_int_equal(LAB_FIND(items, COUNT, name, "gpu3"), -1);
    assert_int_equal(LAB_FIND(items, COUNT, name, NULL), -1);
}

const struct lab_test_program lab_test_program = {0};
