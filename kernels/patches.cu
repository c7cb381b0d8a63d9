/*
 * patches.cu: images into rows of patches, and rows of patches into tokens. A block does one row of
 * the output.
 *
 *     patchify  out[b · patches, patch · patch · channels] ← image[b, channels, height, width]
 *     embed     out[b · (patches + 1), columns] = (first or x[b · patches, columns]) + position of
 *               the row's token
 *
 *     grid: a block of 128 threads for each row
 *
 * Memory bounds both: each number is moved once. On an H200, 64 images of 224 x 224 in bf16 and
 * patches of 16, a launch alone: patchify 38 µs, 1.0 TB/s read and written, since pixels of a patch
 * lie apart; embed into 1024 columns 17 µs, 3.0 TB/s. Where a layer norm comes next, layer_norm.cu
 * does either on the way.
 */
#include "common.cuh"

#ifdef MAKE_patchify
/* Inside a patch: row, column, channel, the channel fastest; neighbours in a row of an image are
 * read by neighbours among the threads. */
extern "C" __global__ void __launch_bounds__(128)
    patchify(const element *image, element *out, int channels, int height, int width, int patch) {
    wait_for_previous();
    int columns = patch * patch * channels, across = width / patch;
    int patches = across * (height / patch), p = (int)(blockIdx.x % patches);
    s64 b = blockIdx.x / patches;
    int top = p / across * patch, left = p % across * patch;
    const element *from = image + b * channels * height * width;
    element *to = out + (s64)blockIdx.x * columns;
    for (int c = (int)threadIdx.x; c < columns; c += 128) {
        int k = c % channels, at = c / channels, y = at / patch, x = at % patch;
        to[c] = from[((s64)k * height + top + y) * width + left + x];
    }
}
#endif

#ifdef MAKE_embed
extern "C" __global__ void __launch_bounds__(128)
    embed(const element *x, const element *first, const element *position, element *out,
          int patches, int columns) {
    wait_for_previous();
    s64 b = blockIdx.x / (patches + 1);
    int t = (int)(blockIdx.x % (patches + 1));
    const element *from = t ? x + (b * patches + t - 1) * columns : first;
    const element *add = position + (s64)t * columns;
    element *to = out + (s64)blockIdx.x * columns;
    if (aligned(from) && aligned(add) && aligned(to)) {
        int whole = columns - columns % PER_16_BYTES;
        for (int c = (int)threadIdx.x * PER_16_BYTES; c < whole; c += 128 * PER_16_BYTES) {
            union chunk a, p;
            a.bits = *(const uint4 *)(from + c);
            p.bits = *(const uint4 *)(add + c);
#pragma unroll
            for (int i = 0; i < PER_16_BYTES; i++)
                a.items[i] = from_float(to_float(a.items[i]) + to_float(p.items[i]));
            *(uint4 *)(to + c) = a.bits;
        }
        from += whole, add += whole, to += whole, columns -= whole;
    }
    for (int c = (int)threadIdx.x; c < columns; c += 128)
        to[c] = from_float(to_float(from[c]) + to_float(add[c]));
}
#endif
