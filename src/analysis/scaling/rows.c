/* rows.c: the models of a group as rows of figures that laws can be fitted to. */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

double scaling_bytes_of(const struct lab_study_work *work, enum scaling_bytes which) {
    switch (which) {
    case SCALING_DEVICE_BYTES:
        return work->memory_bytes;
    case SCALING_COPIED_BYTES:
        return work->h2d_bytes + work->d2h_bytes;
    default:
        return 0;
    }
}

static int compare_work(const void *a, const void *b) {
    const struct scaling_row *left = a, *right = b;
    return (left->flops > right->flops) - (left->flops < right->flops);
}

/* Runs without a time of an iteration still have a rate. */
static double point_time(const struct lab_study_point *point, double samples) {
    double time_s = lab_study_estimate(point->times_s, point->count).value;
    if (!isnan(time_s))
        return time_s;
    return samples * point->runs[0]->rank_count /
           lab_study_estimate(point->rates, point->count).value;
}

static double point_memory(const struct lab_study_point *point, bool device) {
    size_t offset = device ? offsetof(struct lab_result, gpu_memory_peak_mb)
                           : offsetof(struct lab_result, peak_memory_mb);
    return lab_study_point_figure(point, offset, 1).value;
}

static struct scaling_row make_row(const struct lab_study_point *point) {
    const struct lab_study_run *run = point->runs[0];
    double samples = run->work.samples > 0 ? run->work.samples : 1;
    return (struct scaling_row){
        .point = point,
        .model = run->model,
        .depth = lab_study_setting_number(run, "depth"),
        .dim = lab_study_setting_number(run, "dim"),
        .patch_size = lab_study_setting_number(run, "patch_size"),
        .heads = lab_study_setting_number(run, "heads"),
        .mlp_dim = lab_study_setting_number(run, "mlp_dim"),
        .samples = samples,
        .flops = run->work.flops,
        .parameters = run->work.parameters > 0 ? run->work.parameters : NAN,
        .time_s = point_time(point, samples),
        .rate = lab_study_point_rate(point),
    };
}

static bool is_usable(const struct scaling_row *row) {
    return row->flops > 0 && row->time_s > 0 && isfinite(row->time_s) && row->rate.value > 0;
}

/* The device's where every row has them, since those of the link mostly don't grow with a model. */
static enum scaling_bytes choose_bytes(const struct scaling_rows *rows, const char *wanted) {
    bool device = rows->count > 0, copied = rows->count > 0;
    for (int i = 0; i < rows->count; i++) {
        const struct lab_study_work *work = &rows->items[i].point->runs[0]->work;
        device = device && work->memory_bytes > 0;
        copied = copied && work->h2d_bytes + work->d2h_bytes > 0;
    }
    bool any = lab_str_equal(wanted, "auto");
    device = device && (any || lab_str_equal(wanted, "device"));
    copied = copied && (any || lab_str_equal(wanted, "copies"));
    return device ? SCALING_DEVICE_BYTES : copied ? SCALING_COPIED_BYTES : SCALING_NO_BYTES;
}

static double find_steady_share(const struct scaling_rows *rows, struct lab_arena *arena) {
    double *shares = lab_arena_alloc(arena, (size_t)rows->count + 1, sizeof *shares);
    for (int i = 0; i < rows->count; i++) {
        const struct scaling_row *row = &rows->items[i];
        shares[i] = row->rate.value * row->time_s / row->samples;
    }
    return lab_study_estimate(shares, rows->count).value;
}

struct scaling_rows scaling_rows_make(const struct lab_study_group *group, const char *bytes,
                                      struct lab_arena *arena) {
    struct scaling_rows rows = {
        .items = lab_arena_alloc(arena, (size_t)group->count + 1, sizeof *rows.items)};
    rows.device_memory = true;
    for (int i = 0; i < group->count; i++) {
        struct scaling_row row = make_row(group->points[i]);
        if (is_usable(&row))
            rows.items[rows.count++] = row;
        else
            rows.left_out++;
    }
    for (int i = 0; i < rows.count; i++)
        rows.device_memory &= !isnan(point_memory(rows.items[i].point, true));
    rows.bytes = choose_bytes(&rows, bytes);
    for (int i = 0; i < rows.count; i++) {
        struct scaling_row *row = &rows.items[i];
        row->bytes = scaling_bytes_of(&row->point->runs[0]->work, rows.bytes);
        row->memory_mib = point_memory(row->point, rows.device_memory);
    }
    rows.steady_share = find_steady_share(&rows, arena);
    qsort(rows.items, (size_t)rows.count, sizeof *rows.items, compare_work);
    return rows;
}
