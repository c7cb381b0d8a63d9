/*
 * kernels_gemm.c: matrix products. The output is cut into a grid of tiles, each one call of
 * OpenBLAS, which packs its share of both operands anew: so few tiles, and a grid that follows the
 * output's shape, unless the launch says how large they are. What is fused happens to a tile just
 * before and after, by the same thread.
 */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <string.h>

enum { TILE_M, TILE_N, TILE_K, PARAMETERS };

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"tile_m", "rows of a tile; 0 with tile_n: tiles by the number of threads",
     LAB_CHOICES(0, 64, 128, 256, 512, 1024)},
    {"tile_n", "columns of a tile; 0 with tile_m: tiles by the number of threads",
     LAB_CHOICES(0, 64, 128, 256, 512, 1024, 2048)},
    {"tile_k", "step along k; 0: all of it", LAB_CHOICES(0, 256, 512, 1024)},
};

#define TILE_FLOPS 1e6 /* below, waking a thread costs more than it does */
#define PACKED_SHARE                                                                               \
    0.004              /* elements packed per element and k: beyond, it costs several per cent */
#define ROW_STEP    4  /* tiles keep to the micro-kernels' steps, so that only */
#define COLUMN_STEP 16 /* those at the end have ragged edges */

static void cpu_gemm_fallback(const struct lab_tunable_place *place,
                              const struct lab_launch *launch, struct lab_tuning *ret_tuning) {
    (void)place;
    (void)launch;
    *ret_tuning = (struct lab_tuning){.count = PARAMETERS};
}

/* A tile that is larger than the matrix does what the next smaller one does. */
static int check_tile(const char *name, int64_t tile, int64_t size, struct lab_err *err) {
    if (tile <= 64 || tile < 2 * size)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s=%lld: the matrix has only %lld there", name,
                       (long long)tile, (long long)size);
}

static int cpu_gemm_check(const struct lab_tunable_place *place, const struct lab_launch *launch,
                          const struct lab_tuning *tuning, struct lab_err *err) {
    (void)place;
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    if (!tuning->values[TILE_M] != !tuning->values[TILE_N])
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tile_m=%d with tile_n=%d: both are 0 or neither",
                           (int)tuning->values[TILE_M], (int)tuning->values[TILE_N]);
    if (tuning->values[TILE_K] >= s.k && tuning->values[TILE_K])
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "tile_k=%d: sums have only %lld terms",
                           (int)tuning->values[TILE_K], (long long)s.k);
    return check_tile("tile_m", tuning->values[TILE_M], s.m, err) ||
                   check_tile("tile_n", tuning->values[TILE_N], s.n, err)
               ? -1
               : 0;
}

const struct lab_tunable cpu_tunable_gemm = {
    .kernel = "cpu gemm",
    .version = "1",
    .parameters = parameters,
    .count = PARAMETERS,
    .fallback = cpu_gemm_fallback,
    .check = cpu_gemm_check,
};

/* Where the tile's size was chosen: so many in either direction. */
static struct cpu_grid grid_of_tiles(struct lab_gemm_shape s, const struct lab_tuning *tuning) {
    int64_t tile_m = tuning->values[TILE_M], tile_n = tuning->values[TILE_N];
    return (struct cpu_grid){(s.m + tile_m - 1) / tile_m, (s.n + tile_n - 1) / tile_n};
}

struct cpu_grid cpu_grid_of(int64_t m, int64_t n, int64_t tiles) {
    struct cpu_grid best = {1, tiles};
    int64_t least = INT64_MAX;
    for (int64_t down = 1; down <= tiles; down++) {
        int64_t packed = down * n + tiles / down * m;
        if (tiles % down || packed >= least)
            continue;
        least = packed;
        best = (struct cpu_grid){down, tiles / down};
    }
    return best;
}

/*
 * A tile for each thread, or two where that hardly packs more: then a thread that is held up leaves
 * one that another can take.
 */
static int64_t units(const struct lab_launch *launch, int threads) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    if (launch->tuning.count && launch->tuning.values[TILE_M]) {
        struct cpu_grid grid = grid_of_tiles(s, &launch->tuning);
        return grid.down * grid.across;
    }
    double elements = (double)s.m * (double)s.n;
    double tiles_max = 2.0 * elements * (double)s.k / TILE_FLOPS;
    if (threads == 1)
        return 1;
    int64_t twice = 2 * (int64_t)threads;
    struct cpu_grid fine = cpu_grid_of(s.m, s.n, twice);
    double packed = (double)fine.down * (double)s.n + (double)fine.across * (double)s.m;
    if (tiles_max >= (double)twice && packed <= PACKED_SHARE * elements)
        return twice;
    return tiles_max >= threads ? threads : cpu_max(1, (int64_t)tiles_max);
}

struct tile {
    int64_t row, rows, column, columns;
};

static struct tile tile_of(struct lab_gemm_shape s, struct cpu_grid grid, int64_t index) {
    int64_t y = index / grid.across, x = index % grid.across;
    int64_t row = cpu_cut(s.m, grid.down, y, ROW_STEP);
    int64_t column = cpu_cut(s.n, grid.across, x, COLUMN_STEP);
    return (struct tile){row, cpu_cut(s.m, grid.down, y + 1, ROW_STEP) - row, column,
                         cpu_cut(s.n, grid.across, x + 1, COLUMN_STEP) - column};
}

/* What the product is added to; returns BLAS's beta: 0 where there is nothing. */
static float prepare(const struct lab_launch *launch, const struct cpu_simd *simd, float *out,
                     int64_t stride, struct tile tile) {
    const float *base = NULL, *bias = NULL;
    if (launch->op == LAB_OP_GEMM_ADD)
        base = launch->in[2].data;
    else if (launch->op != LAB_OP_GEMM)
        bias = (const float *)launch->in[2].data + tile.column;
    if (launch->op == LAB_OP_GEMM_BIAS_ADD)
        base = launch->in[3].data;
    for (int64_t r = 0; r < tile.rows; r++) {
        float *to = out + r * stride;
        const float *from = base ? base + (tile.row + r) * stride + tile.column : NULL;
        if (from && bias)
            simd->add(to, from, bias, tile.columns);
        else if (bias || (from && from != to))
            memcpy(to, bias ? bias : from, (size_t)tile.columns * sizeof *to);
    }
    return base || bias ? 1.0f : 0.0f;
}

static void run_tile(const struct lab_launch *launch, const struct cpu_simd *simd,
                     struct lab_gemm_shape s, struct tile tile) {
    if (tile.rows == 0 || tile.columns == 0)
        return;
    float *out = (float *)launch->out.data + tile.row * s.n + tile.column;
    const float *a = launch->in[0].data, *b = launch->in[1].data;
    bool ta = launch->transpose_a, tb = launch->transpose_b;
    struct cpu_matrix left = {a + tile.row * (ta ? 1 : s.k), ta ? s.m : s.k, ta};
    struct cpu_matrix right = {b + tile.column * (tb ? s.k : 1), tb ? s.k : s.n, tb};
    float beta = prepare(launch, simd, out, s.n, tile);
    int64_t step =
        launch->tuning.count && launch->tuning.values[TILE_K] ? launch->tuning.values[TILE_K] : s.k;
    for (int64_t at = 0; at < s.k; at += step) {
        cpu_blas_gemm(tile.rows, tile.columns, cpu_min(step, s.k - at), 1, left, right, beta, out,
                      s.n);
        left.data += step * (ta ? s.m : 1);
        right.data += step * (tb ? 1 : s.n);
        beta = 1;
    }
    if (launch->op == LAB_OP_GEMM_BIAS_GELU)
        for (int64_t r = 0; r < tile.rows; r++)
            simd->gelu(out + r * s.n, out + r * s.n, tile.columns);
}

static void run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t unit_count,
                int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    bool chosen = launch->tuning.count && launch->tuning.values[TILE_M];
    struct cpu_grid grid =
        chosen ? grid_of_tiles(s, &launch->tuning) : cpu_grid_of(s.m, s.n, unit_count);
    for (int64_t index = begin; index < end; index++)
        run_tile(launch, simd, s, tile_of(s, grid, index));
}

const struct cpu_kernel cpu_kernel_gemm = {units, run};
