/*
 * fuzz_point.c: any bytes either are refused with a message or are a benchmark's results, whose
 * values are positive; and these, written as our own, read back with as many points.
 * covers: src/store/foreign/point_file.c src/store/foreign/point_file_nccl.c
 * covers: src/store/foreign/point_file_nvbandwidth.c src/store/foreign/point_file_nvbench.c
 * covers: src/model/point_set.c
 */
#include "base/json.h"
#include "folder.h"
#include "store/foreign/point_file.h"

#include <math.h>

static int count_points(const struct lab_point_set *sets, int count) {
    int points = 0;
    for (int i = 0; i < count; i++) {
        require(sets[i].name);
        points += sets[i].point_count;
        for (int k = 0; k < sets[i].point_count; k++)
            for (int v = 0; v < sets[i].points[k].count; v++)
                require(sets[i].points[k].values[v] > 0 && isfinite(sets[i].points[k].values[v]));
    }
    return points;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_point_set *sets, *again;
    int count, again_count;
    if (lab_point_file_read(folder_write("a.json", data, size), &arena, &sets, &count, &err) < 0) {
        require_error(&err);
        return 0;
    }
    int points = count_points(sets, count);
    struct lab_value *map = lab_value_map(&arena);
    lab_value_set(&arena, map, "sets", lab_point_sets_value(sets, count, &arena));
    lab_json_write(map, 0, &text);
    require(lab_point_file_read(folder_write("a.json", text.text, text.length), &arena, &again,
                                &again_count, &err) == 0);
    require(again_count == count && count_points(again, again_count) == points);
    return 0;
}
