/* point_file.c: whose results a JSON file holds. */
#include "store/foreign/point_file.h"

#include "base/file/file.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MOST ((size_t)256 << 20)

double lab_point_file_number(const struct lab_value *value) {
    const char *text = lab_value_as_text(value, NULL);
    char *end;
    if (!text)
        return lab_value_as_number(value);
    double number = strtod(text, &end);
    return end != text && *end == '\0' ? number : (double)NAN;
}

const char *lab_point_file_text(const struct lab_value *value, struct lab_arena *arena) {
    const char *text = lab_value_as_text(value, NULL);
    LAB_AUTO(str, plain);
    if (text)
        return text + strspn(text, " ");
    return value && lab_value_write_plain(value, &plain) ? lab_arena_strdup(arena, plain.text) : "";
}

static const struct {
    const char *name;
    bool (*read)(const struct lab_value *root, struct lab_arena *arena, struct lab_point_set *set);
} formats[] = {
    {"nvbench", lab_point_file_nvbench},
    {"nccl-tests", lab_point_file_nccl},
    {"nvbandwidth", lab_point_file_nvbandwidth},
};

static bool has_values(const struct lab_point_set *sets, int count) {
    for (int s = 0; s < count; s++)
        for (int i = 0; i < sets[s].point_count; i++)
            if (sets[s].points[i].count > 0)
                return true;
    return false;
}

int lab_point_file_read(const char *path, struct lab_arena *arena, struct lab_point_set **ret_sets,
                        int *ret_count, struct lab_err *err) {
    const char *slash = strrchr(path, '/'), *what = "gpulab compare";
    struct lab_value *root;
    struct lab_point_set *sets = NULL;
    char *text;
    size_t length;
    int count = 0;
    if (lab_file_read(path, BYTES_MOST, arena, &text, &length, err) < 0 ||
        lab_json_parse(text, length, path, arena, &root, err) < 0)
        return -1;
    if (lab_value_get(root, "sets")) {
        if (lab_point_sets_parse(root, path, arena, &sets, &count, err) < 0)
            return -1;
        for (int i = 0; i < count; i++)
            if (sets[i].session) /* commands: the same ones may be in several files */
                sets[i].source = lab_arena_printf(arena, "%s (%s)", sets[i].name, path);
    } else {
        sets = lab_arena_alloc(arena, 1, sizeof *sets);
        for (size_t i = 0; i < sizeof formats / sizeof *formats && count == 0; i++) {
            *sets = (struct lab_point_set){.name = slash ? slash + 1 : path, .source = path};
            count = formats[i].read(root, arena, sets);
            what = formats[i].name;
        }
    }
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s: JSON of another program: compare reads nvbench, nccl-tests, "
                           "nvbandwidth and its own",
                           path);
    if (!has_values(sets, count) && sets->failure_count)
        return lab_err_set(err, LAB_ERR_USER, "%s: %s failed at all points (%d): %s", path, what,
                           sets->failure_count, sets->failures[0].reason);
    if (!has_values(sets, count))
        return lab_err_set(err, LAB_ERR_USER, "%s: results of %s without a single value", path,
                           what);
    *ret_sets = sets;
    *ret_count = count;
    return 0;
}
