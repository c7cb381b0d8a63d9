/*
 * point_file_nvbandwidth.c: nvbandwidth --json: test cases, each a matrix of texts, "N/A" where a
 * pair wasn't tested; GB/s, or ns of a latency, as the description says.
 */
#include "store/foreign/point_file.h"

#include <string.h>

static void add_test(const struct lab_value *test, struct lab_arena *arena,
                     struct lab_point_set *set) {
    const struct lab_value *matrix = lab_value_get(test, "bandwidth_matrix");
    const char *name = lab_value_get_text(test, "name", "");
    bool latency = strstr(lab_value_get_text(test, "bandwidth_description", ""), "latency");
    for (int r = 0; matrix && matrix->type == LAB_VALUE_LIST && r < matrix->count; r++) {
        const struct lab_value *row = matrix->items[r];
        for (int c = 0; row->type == LAB_VALUE_LIST && c < row->count; c++) {
            double value = lab_point_file_number(row->items[c]);
            struct lab_axis_setting axes[] = {{"test", name},
                                              {"row", lab_arena_printf(arena, "%d", r)},
                                              {"column", lab_arena_printf(arena, "%d", c)}};
            if (value > 0)
                lab_point_add_value(lab_point_set_point(set, axes, 3,
                                                        latency ? "latency" : "bandwidth",
                                                        latency ? "s" : "B/s", arena),
                                    latency ? 1e-9 * value : 1e9 * value, 0, arena);
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
