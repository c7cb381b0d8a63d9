/*
 * flash_attention_tiles.cuh: which tiles of queries a block of flash_attention_hopper.cu has, and
 * in what order. A function of the block's number and the shape alone, so that the thread that
 * fetches values counts them as the one that fetches keys does.
 *
 * Block b has every `blocks`th tile. Of a causal pair of batch and head, the tile with most to do
 * and that with least are taken together, then the next two, so that all that is handed out costs
 * the same. Tiles of one pair are in work at the same time, so its keys come from the L2 cache.
 *
 * With three groups, tiles cost different amounts. So a block's place is one further in each round:
 * where their rows divide `blocks`, it would else have the same row of all pairs. And of causal
 * ones, what is left for the last rounds is handed out by single tiles, from the largest to the
 * smallest, forth and back over the blocks: 1536 twos on 132 multiprocessors would take 12 rounds,
 * a third of the last one empty.
 */
#ifndef FLASH_ATTENTION_TILES_CUH
#define FLASH_ATTENTION_TILES_CUH

struct work {
    int tokens, heads, kv_heads, pairs;
};

struct __align__(16) tile {
    int first; /* query; negative where the first groups have none */
    int image, head;
    int blocks; /* of keys; 0 = behind the last tile */
};

/* Which tile the block has, as those who fetch count them. */
struct position {
    int round;      /* so often has it taken a tile, or two */
    int pair, rank; /* the tile: its batch and head, its place in the order of sizes */
    bool second;    /* the other of two comes next */
};

/* Whether groups without queries leave a tile to the others, and it costs less. Two groups were
 * slower by that, and no faster in the order that goes with it. */
#define LEAVES (GROUPS > 2)

/* The first query of a row of tiles. Causal, the one that isn't full comes first, where keys are
 * few; so its first groups have no queries. */
__device__ __forceinline__ int row_start(const work &w, int rows, int row) {
    int lacking = (rows * BLOCK_M - w.tokens) / 64 * 64;
    return row * BLOCK_M - (CAUSAL && LEAVES ? lacking : 0);
}

/* The next tile, or the first of two; false if that was all. */
__device__ __forceinline__ bool position_next(const work &w, position &at, int rows) {
    int each = CAUSAL ? (rows + 1) / 2 : rows, items = each * w.pairs;
    int grid = (int)gridDim.x, block = (int)blockIdx.x, round = at.round;
    int whole = CAUSAL && LEAVES ? max(items / grid - 1, 0) : items; /* rounds of twos */
    int number = round * grid + (block + (LEAVES ? round : 0)) % grid;
    at.round++;
    if (round >= whole) {
        int from = whole * grid, extra = (each - from % each) % each; /* to the end of a pair */
        int left = w.pairs - (from + extra) / each;
        round -= whole;
        number = round * grid + (round % 2 ? grid - 1 - block : block);
        if (number >= extra) {
            number -= extra;
            if (number >= rows * left)
                return false;
            at = {at.round, w.pairs - left + number % left, number / left, false};
            return true;
        }
        number += from;
    }
    int rank = number % each;
    at = {at.round, number / each, rank, CAUSAL && rank != rows - 1 - rank};
    return number < items;
}

/* The tile after a position, which is at first all 0; false if that was all. */
__device__ __forceinline__ bool tile_next(const work &w, position &at, tile &t) {
    int rows = (w.tokens + BLOCK_M - 1) / BLOCK_M;
    if (at.second)
        at = {at.round, at.pair, rows - 1 - at.rank, false};
    else if (!position_next(w, at, rows))
        return false;
    t.first = row_start(w, rows, rows - 1 - at.rank);
    t.image = at.pair / w.heads;
    t.head = at.pair % w.heads;
    int keys = CAUSAL ? min(t.first + BLOCK_M, w.tokens) : w.tokens;
    t.blocks = (keys + BLOCK_N - 1) / BLOCK_N;
    return true;
}

/* Blocks at the front of a tile of which a group's queries see nothing. */
__device__ __forceinline__ int blocks_unseen(const work &w, const tile &t, int group) {
    int keys = min(t.first + 64 * (group + 1), w.tokens);
    return CAUSAL ? max(0, t.blocks - (keys + BLOCK_N - 1) / BLOCK_N) : 0;
}

/* Whether a group leaves a tile to the others: it has none of the queries. */
__device__ __forceinline__ bool is_left(const work &w, const tile &t, int group) {
    int query = t.first + 64 * group;
    return LEAVES && (CAUSAL ? query < 0 : query >= w.tokens);
}

#endif
