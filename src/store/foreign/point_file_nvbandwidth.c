/*
 * point_file_nvbandwidth.c: nvbandwidth --json: test cases, each a matrix of texts, "N/A" where a
 * pair wasn't tested; the description ends with the unit, "(GB/s)" or, of a latency, "(ns)". A test
 * of both directions appends three matrices to one: each direction's, then their sum.
 */
#include "store/foreign/point_file.h"

#include "base/str.h"

#include <string.h>

#define DIRECTIONS 2

static void add_cell(const struct lab_value *test, int part, int row, int column, double value,
                     struct lab_arena *arena, struct lab_point_set *set) {
    static const char *const parts[] = {"1", "2", "total"};
    bool latency = strstr(lab_value_get_text(test, "bandwidth_description", ""), "(ns)");
    struct lab_axis_setting axes[4] = {{"test", lab_value_get_text(test, "name", "")},
                                       {"row", lab_arena_printf(arena, "%d", row)},
                                       {"column", lab_arena_printf(arena, "%d", column)}};
    if (part >= 0)
        axes[3] = (struct lab_axis_setting){"direction", parts[part]};
    struct lab_point *point =
        lab_point_set_point(set, axes, part < 0 ? 3 : 4, latency ? "latency" : "bandwidth",
                            latency ? "s" : "B/s", arena);
    point->is_sum = part == DIRECTIONS;
    lab_point_add_value(point, latency ? 1e-9 * value : 1e9 * value, 0, arena);
}

static void add_test(const struct lab_value *test, struct lab_arena *arena,
                     struct lab_point_set *set) {
    const struct lab_value *matrix = lab_value_get(test, "bandwidth_matrix");
    const char *name = lab_value_get_text(test, "name", ""),
               *status = lab_value_get_text(test, "status", "");
    int rows = matrix && matrix->type == LAB_VALUE_LIST ? matrix->count : 0;
    bool split = strstr(name, "bidirectional") && rows > 0 && rows % (DIRECTIONS + 1) == 0;
    int height = split ? rows / (DIRECTIONS + 1) : rows;
    if (lab_str_equal(status, "Error"))
        lab_point_set_add_failure(set, &(struct lab_axis_setting){"test", name}, 1,
                                  lab_value_get_text(test, "error", "error"), arena);
    for (int r = 0; r < rows; r++) {
        const struct lab_value *row = matrix->items[r];
        for (int c = 0; row->type == LAB_VALUE_LIST && c < row->count; c++) {
            double value = lab_point_file_number(row->items[c]);
            if (value > 0)
                add_cell(test, split ? r / height : -1, r % height, c, value, arena, set);
        }
    }
}

bool lab_point_file_nvbandwidth(const struct lab_value *root, struct lab_arena *arena,
                                struct lab_point_set *set) {
    static const char *const facts[][2] = {{"CUDA Runtime Version", "CUDA"},
                                           {"Driver Version", "driver"},
                                           {"version", "nvbandwidth"},
                                           {"git_version", "nvbandwidth commit"}};
    const struct lab_value *top = lab_value_get(root, "nvbandwidth"),
                           *tests = lab_value_get(top, "testcases");
    if (!tests || tests->type != LAB_VALUE_LIST)
        return false;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *text = lab_point_file_text(lab_value_get(top, facts[i][0]), arena);
        if (*text)
            lab_point_set_add_fact(set, "software", facts[i][1], text, arena);
    }
    for (int i = 0; i < tests->count; i++)
        add_test(tests->items[i], arena, set);
    return true;
}
